/* opdispatch.h - PyTorch's operator system for C programs, in one header.                           version 0.1.0

   WHAT IT IS
     An operator is declared once by a schema string, gets kernels per dispatch key, and composes from then on with
     autograd, fake tensors and other backends without knowing any of them.  This header holds the schema parser, the
     keyed dispatch table, tensors, the autograd tape and CPU kernels of the usual ATen operators.  It follows PyTorch
     2.6 in behaviour and error texts; where PyTorch hurts it does better and says so below.

   WHAT IT IS NOT
     No Python, no bindings, no model formats, no optimizers, no distributed anything.  Not yet there: in-place
     operations on views under autograd (refused, never wrong), vmap, autocast, tracing, forward mode, plug-ins, CUDA;
     cards already name what those layers will read (.vmap, .autocast).  Complex tensors can be stored, copied and
     printed, not computed with.

   BUILD
     In exactly one C or C++ file:
         #define OPDISPATCH_IMPLEMENTATION
         #include "opdispatch.h"
     and include it without the define elsewhere.
         cc -O2 program.c -o program -lm                  (add -lpthread where libc is older than glibc 2.34)
         c++ -O2 -std=c++11 program.cpp -o program -lm
     C11 or C++11; gcc, clang; tcc without threads and SIMD.  No -march is needed: instruction sets are chosen at run
     time.  Do not use -ffast-math: infinities and NaN would be lost.  A copy inside a library: define OPD_STATIC, and
     everything is static.

   QUICK START IN C
         static int myadd_cpu(opd_call *call) {
             opd_tensor *self = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
             opd_tensor *out = opd_result(call, 0, opd_sizes(self), opd_ndim(self), opd_dtype(self));
             float *o = opd_data_f32(out), *a = opd_data_f32(self), *b = opd_data_f32(other);
             if (!opd_ok()) { return -1; }
             for (int64_t i = 0; i < opd_numel(out); i++) { o[i] = a[i] + b[i]; }
             return opd_return_tensor(call, out);
         }
         OPD_LIBRARY(myops, lib) {
             opd_define(lib, &(opd_op_desc){ .schema = "myadd(Tensor self, Tensor other) -> Tensor", .cpu = myadd_cpu });
         }
         int main(void) {
             static opd_op *myadd;
             OPD_SCOPE {
                 float data[] = {1, 2, 3};
                 opd_tensor *x = opd_tensor_from(data, OPD_INTS(3), OPD_FLOAT32);
                 opd_print(OPD_CALL(OPD_OP(&myadd, "myops::myadd"), x, x));
             }
             return opd_finish();
         }
     The whole of it, with a fake kernel and a derivative, is examples/quickstart.c; in C++11 examples/quickstart.cpp
     (the same, with `opd_op_desc d = opd_op_desc(); d.schema = ...;` in place of the designated initialiser).

   TWO RULES
     Scopes own.  A function that returns a tensor gives it to the innermost open scope of the thread; closing the
     scope releases it.  OPD_SCOPE { } is a block, OPD_SCOPED; the rest of one; opd_keep and opd_release hold a tensor
     across scopes, opd_scope_return hands one to the scope around.  Every kernel runs in a scope of its own.
     The first error sticks, and stops.  A failing call records one error on its thread and returns NULL or -1; while it
     is pending every operator call, backward and optimizer step on the thread does nothing and fails.  So a long
     expression is checked once, at its end: opd_ok, opd_error_message, opd_error_clear.  Nothing aborts.  Running out
     of memory is an error like any other.

   HOW TO ADD AN OPERATOR
     One struct (opd_op_desc): a schema; kernels that read opd_arg_* and give opd_result or opd_return_*; optionally
     `fake` (shapes only, for the meta device), `backward` with `save` (what the formula reads), `inplace` and `out`
     (forms that the dispatcher derives).  Kernel and fake kernel may be one function that returns after opd_result
     when opd_data is NULL.  Or in two steps: opd_def, then opd_impl_key per key, in any order and from any file.
     A built-in operator: its card in the room of its family (see >>operators) and one row in OPD_OPERATORS.

   HOW TO ADD A KEY OR A BACKEND
     A mode or wrapper layer uses one of the user keys (OPD_F_USER_n + 0..3, four between any two layers): register
     kernels or a fallback (OPD_LIBRARY_IMPL(_, KEY, lib) { opd_fallback(lib, fn); }) and include the key in the
     thread's state (opd_keys_include).  Kernels of a backend are registered at its key (CUDA, PrivateUse1, ...).

   CONFIGURATION (define before including the implementation)
     OPD_NO_THREADS   no pthreads: kernels run on one thread       OPD_MALLOC(n), OPD_FREE(p)   another allocator
     OPD_NO_SIMD      plain C kernels only                         OPD_STATIC                   everything static
     OPD_NO_CACHE     every free goes to the allocator (set by itself under sanitizers)
     Environment: OPD_NUM_THREADS, OPD_CPU_LEVEL (0 plain C, 1 AVX2, 2 AVX-512).

   LIMITS
     64 dimensions, 64 arguments, 16 results, 400 nested calls.  A tensor's memory counts up to 2^62 bytes.

   THE LANGUAGE OF `cases`
     Argument lists that the generic tests walk: `[2,3]` a tensor of normal values, `[2,3]+` positive, `[2,3]u` in (0, 1),
     `[2,3]i5` int64 in 0..4, `[2,3]b` bool, `[]` zero-dim, `{[2],[2]}` a list of tensors, `(1,2)` a list of integers, 2, 1.5,
     True, None, 'text', name=value; a semicolon separates cases.

   FROM PYTORCH'S NAMES TO OURS
     TORCH_LIBRARY(ns, m)               OPD_LIBRARY(ns, lib)            torch.no_grad()        opd_grad_set(false)
     TORCH_LIBRARY_IMPL(ns, KEY, m)     OPD_LIBRARY_IMPL(ns, KEY, lib)  x.requires_grad_()     opd_tensor_set_requires_grad(x, true)
     m.def, m.impl, m.fallback          opd_def, opd_impl, opd_fallback y.backward()           opd_backward(y)
     torch.library.custom_op            opd_define                      x.grad                 opd_tensor_grad(x)
     CppFunction::makeFallthrough()     OPD_FALLTHROUGH                 torch.autograd.grad    opd_autograd_grad
     Dispatcher::findSchemaOrThrow      opd_find, OPD_OP                autograd::Function     opd_autograd_record
     op.call, op.redispatch             OPD_CALL, opd_redispatch        torch::add(x, y)       opd_add(x, y)
     ExcludeDispatchKeyGuard            opd_keys_exclude                print(x)               opd_print(x)
     c10::DispatchKeySet                opd_keyset                      x.item()               opd_item_f64(x)

   WHERE IT DIFFERS FROM PYTORCH ON PURPOSE
     Backward through an operator without a formula is an error that names it, not a warning.  A kernel that returns
     its argument under autograd returns an alias of it.  Errors list the kernels that are there before the fallbacks.
     Registration is safe while other threads call.  Schemas: see the list at >>schema.  Random numbers are
     counter-based (Philox), not those of PyTorch's CPU generator.  Keys without a meaning in C are left out: Python,
     PythonTLSSnapshot, PythonDispatcher, Named, DeferredInit, Batched, VmapMode and the testing wrappers.

   CONTENTS (search for the anchor)
     >>api:base        results, errors, log, memory
     >>api:values      dtypes, devices, the 16-byte tagged value
     >>api:schema      operator schemas
     >>api:keys        dispatch keys, key sets, guards
     >>api:dispatcher  operators, libraries, calls
     >>api:scopes      who owns what
     >>api:tensors     making tensors, reading them, printing them
     >>api:autograd    the tape
     >>api:plug        library blocks
     >>api:formulas    the pointwise formulas
     >>api:operators   the built-in operators and their wrappers
     >>platform        allocation, atomics, threads, errors, log, scopes' stack
     >>values          dtypes, devices, what a tensor is
     >>schema          lexer, parser, printer, alias sets, argument binding
     >>keys            dispatch keys, alias keys, key sets
     >>dispatcher      operators, kernels, computed tables, libraries, calls, dumps
     >>tensors         storage, sizes and strides, results of kernels, derived forms
     >>autograd        nodes, the generic kernels, the engine, grad modes
     >>kernels         instruction sets, threads, half precision, vector math, matrix product, convolution, random numbers
     >>operators       the cards: everything about one operator in one place

   Licence: MIT or public domain, your choice; the text is at the end of this file.
*/
#ifndef OPDISPATCH_H
#define OPDISPATCH_H

#include <stdint.h>
#include <stddef.h>
#include <stdbool.h>

#define OPD_VERSION_MAJOR 0
#define OPD_VERSION_MINOR 1
#define OPD_VERSION_PATCH 0
#define OPD_VERSION "0.1.0"

#if defined(__GNUC__)
#define OPD_PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define OPD_UNUSED __attribute__((unused))
#else
#define OPD_PRINTF_LIKE(f, a)
#define OPD_UNUSED
#endif
#if defined(OPD_STATIC)
#define OPD_API static OPD_UNUSED
#else
#define OPD_API extern
#endif
#define OPD_INLINE static inline OPD_UNUSED

#define OPD_MAX_DIMS 64          /* dimensions of a tensor */
#define OPD_MAX_ARGS 64          /* arguments of an operator */

#ifdef __cplusplus
extern "C" {
#endif

//----------------------------------------------------------------------------------------------------------------------
//  >>api:base       results, errors, log, memory
//----------------------------------------------------------------------------------------------------------------------

typedef struct opd_tensor opd_tensor;
typedef struct opd_op opd_op;
typedef struct opd_schema opd_schema;
typedef struct opd_library opd_library;
typedef struct opd_call opd_call;
typedef struct opd_node opd_node;
typedef struct opd_backward_call opd_backward_call;
typedef struct opd_generator opd_generator;

/* What kind of mistake a pending error is. */
typedef enum opd_code {
    OPD_OK = 0,
    OPD_ERROR_MEMORY,            /* an allocation failed */
    OPD_ERROR_SCHEMA,            /* text that is no schema */
    OPD_ERROR_REGISTER,          /* a registration that is not allowed */
    OPD_ERROR_NOT_FOUND,         /* no such operator, key, library */
    OPD_ERROR_ARGUMENT,          /* count, kind or value of an argument */
    OPD_ERROR_SHAPE,             /* sizes that do not fit */
    OPD_ERROR_DTYPE,             /* a dtype that does not fit */
    OPD_ERROR_INDEX,             /* index, dimension or target out of range */
    OPD_ERROR_NO_KERNEL,         /* nothing registered for the keys of this call */
    OPD_ERROR_KERNEL,            /* a kernel broke the calling convention */
    OPD_ERROR_AUTOGRAD,          /* the tape refuses */
    OPD_ERROR_USER               /* recorded by opd_fail in code that is not ours */
} opd_code;

/* True when no error is pending on this thread.  While one is pending every operator call, backward and
   optimizer step on the thread does nothing and fails; queries, releases and scope ends still work. */
OPD_API bool opd_ok(void);
OPD_API opd_code opd_error_code(void);
/* The pending error's text: operator, argument, what was expected.  "" when there is none.  The text belongs to
   the thread and stays until opd_error_clear or the next error. */
OPD_API const char *opd_error_message(void);
OPD_API void opd_error_clear(void);
/* Records an error (the first one sticks) and returns -1, so that a kernel can `return opd_fail(...)`.  The name
   of the operator whose kernel is running is put in front of the text. */
OPD_API int opd_fail(opd_code code, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
/* Lets code try something: `int m = opd_error_mark(); ...; opd_error_rewind(m);` forgets an error recorded since
   the mark and returns its code (OPD_OK when there was none).  An error already pending at the mark stays. */
OPD_API int opd_error_mark(void);
OPD_API opd_code opd_error_rewind(int mark);
/* Reports a pending error through the log and returns 1, or returns 0.  Closes all scopes of the thread.
   The last line of main: `return opd_finish();`. */
OPD_API int opd_finish(void);

/* Log function: warnings, and errors nobody looked at.  Default: one line to stderr.  NULL restores it. */
typedef void (*opd_log_fn)(void *user, int is_error, const char *text);
OPD_API void opd_log_set(opd_log_fn fn, void *user);
OPD_API void opd_warn(const char *format, ...) OPD_PRINTF_LIKE(1, 2);

/* Bytes, of all threads.  live: handed out; cached: freed and kept for reuse; peak: largest live since reset. */
typedef struct opd_memory { int64_t live, cached, peak, allocations; } opd_memory;
OPD_API opd_memory opd_memory_stats(void);
OPD_API void opd_memory_reset_peak(void);
/* Gives the calling thread's cached blocks and the shared ones back to the allocator. */
OPD_API void opd_memory_trim(void);
/* For tests: the n-th allocation from now on fails (n >= 1), and with `forever` all after it; n = 0 ends it.
   Returns how many allocations there have been since the last call. */
OPD_API int64_t opd_memory_fail_at(int64_t n, bool forever);

/* Number of threads that kernels may use, the caller's included; 0 restores the default (the number of cores, or
   $OPD_NUM_THREADS).  Results do not depend on it. */
OPD_API void opd_threads_set(int n);
OPD_API int opd_threads(void);

//----------------------------------------------------------------------------------------------------------------------
//  >>api:values     dtypes, devices, the 16-byte tagged value
//----------------------------------------------------------------------------------------------------------------------

/* ATen's ScalarType numbers, which is what schemas print. */
typedef enum opd_scalar_type {
    OPD_UINT8 = 0, OPD_INT8 = 1, OPD_INT16 = 2, OPD_INT32 = 3, OPD_INT64 = 4, OPD_FLOAT16 = 5, OPD_FLOAT32 = 6,
    OPD_FLOAT64 = 7, OPD_COMPLEX64 = 9, OPD_COMPLEX128 = 10, OPD_BOOL = 11, OPD_BFLOAT16 = 15,
    OPD_DTYPE_NONE = -1
} opd_scalar_type;
OPD_API const char *opd_dtype_name(opd_scalar_type dtype);        /* "float32"; "?" for a number that is no dtype */
OPD_API const char *opd_dtype_cname(opd_scalar_type dtype);       /* ATen's: "Float" */
OPD_API size_t opd_dtype_size(opd_scalar_type dtype);             /* bytes per element; 0 for no dtype */
OPD_API bool opd_dtype_is_floating(opd_scalar_type dtype);        /* float16, bfloat16, float32, float64 */
OPD_API bool opd_dtype_is_complex(opd_scalar_type dtype);
OPD_API bool opd_dtype_is_integral(opd_scalar_type dtype, bool include_bool);
/* torch.promote_types */
OPD_API opd_scalar_type opd_promote_types(opd_scalar_type a, opd_scalar_type b);
/* torch.can_cast(from, to) */
OPD_API bool opd_can_cast(opd_scalar_type from, opd_scalar_type to);

/* Backends in the order of their bits; a device type is a backend. */
typedef enum opd_backend {
    OPD_CPU = 0, OPD_CUDA, OPD_HIP, OPD_XLA, OPD_MPS, OPD_IPU, OPD_XPU, OPD_HPU, OPD_VE, OPD_LAZY, OPD_MTIA,
    OPD_PRIVATEUSE1, OPD_PRIVATEUSE2, OPD_PRIVATEUSE3, OPD_META, OPD_BACKEND_COUNT
} opd_backend;
typedef struct opd_device { int32_t type; int32_t index; } opd_device;      /* index -1: the current one */
OPD_INLINE opd_device opd_device_of(opd_backend type, int index) {
    opd_device d; d.type = (int32_t)type; d.index = index; return d;
}
/* "cpu", "cuda:1", "meta": 0, or -1 with an error. */
OPD_API int opd_device_parse(const char *text, opd_device *out);
/* Writes "cuda:1" into buf (cut to cap bytes with its zero), returns buf. */
OPD_API const char *opd_device_print(opd_device device, char *buf, size_t cap);

typedef enum opd_tag {
    OPD_TAG_NONE = 0, OPD_TAG_TENSOR, OPD_TAG_INT, OPD_TAG_FLOAT, OPD_TAG_BOOL, OPD_TAG_COMPLEX, OPD_TAG_STR,
    OPD_TAG_DEVICE, OPD_TAG_OBJECT, OPD_TAG_INTS, OPD_TAG_FLOATS, OPD_TAG_BOOLS, OPD_TAG_TENSORS, OPD_TAG_LIST,
    OPD_TAG_DEFAULT,             /* in an argument list: use the schema's default */
    OPD_TAG_COUNT
} opd_tag;

/* One argument or result.  Values borrow: what a pointer points to belongs to the caller for the length of the
   call.  ScalarType, Layout and MemoryFormat travel as INT; Generator as OBJECT. */
typedef struct opd_value {
    int32_t tag;                                  /* opd_tag */
    int32_t n;                                    /* length of a list or string */
    union {
        int64_t i;                                /* INT, BOOL (0 or 1) */
        double d;                                 /* FLOAT */
        const double *c;                          /* COMPLEX: two doubles */
        const char *s;                            /* STR, zero-terminated */
        opd_tensor *t;                            /* TENSOR, never NULL */
        opd_device device;
        void *object;
        const int64_t *ints;                      /* INTS */
        const double *floats;                     /* FLOATS */
        const bool *bools;                        /* BOOLS */
        opd_tensor *const *tensors;               /* TENSORS; an element may be NULL where the schema says Tensor? */
        const struct opd_value *list;             /* LIST: anything else */
    } u;
} opd_value;

OPD_INLINE opd_value opd_value_none(void) { opd_value v; v.tag = OPD_TAG_NONE; v.n = 0; v.u.i = 0; return v; }
OPD_INLINE opd_value opd_value_default(void) { opd_value v = opd_value_none(); v.tag = OPD_TAG_DEFAULT; return v; }
OPD_INLINE opd_value opd_value_int(int64_t i) { opd_value v; v.tag = OPD_TAG_INT; v.n = 0; v.u.i = i; return v; }
OPD_INLINE opd_value opd_value_float(double d) { opd_value v; v.tag = OPD_TAG_FLOAT; v.n = 0; v.u.d = d; return v; }
OPD_INLINE opd_value opd_value_bool(bool b) { opd_value v; v.tag = OPD_TAG_BOOL; v.n = 0; v.u.i = b; return v; }
OPD_INLINE opd_value opd_value_complex(const double *re_im) {
    opd_value v; v.tag = OPD_TAG_COMPLEX; v.n = 0; v.u.c = re_im; return v;
}
/* NULL is None, here and in the next two. */
OPD_INLINE opd_value opd_value_tensor(opd_tensor *t) {
    opd_value v; v.tag = t ? OPD_TAG_TENSOR : OPD_TAG_NONE; v.n = 0; v.u.t = t; return v;
}
OPD_INLINE opd_value opd_value_str(const char *s) {
    opd_value v; v.tag = s ? OPD_TAG_STR : OPD_TAG_NONE; v.n = 0; v.u.s = s; return v;
}
OPD_INLINE opd_value opd_value_object(void *p) {
    opd_value v; v.tag = p ? OPD_TAG_OBJECT : OPD_TAG_NONE; v.n = 0; v.u.object = p; return v;
}
OPD_INLINE opd_value opd_value_generator(opd_generator *g) { return opd_value_object(g); }
OPD_INLINE opd_value opd_value_device(opd_device d) {
    opd_value v; v.tag = OPD_TAG_DEVICE; v.n = 0; v.u.device = d; return v;
}
OPD_INLINE opd_value opd_value_ints(const int64_t *p, int64_t n) {
    opd_value v; v.tag = OPD_TAG_INTS; v.n = (int32_t)n; v.u.ints = p; return v;
}
OPD_INLINE opd_value opd_value_floats(const double *p, int64_t n) {
    opd_value v; v.tag = OPD_TAG_FLOATS; v.n = (int32_t)n; v.u.floats = p; return v;
}
OPD_INLINE opd_value opd_value_bools(const bool *p, int64_t n) {
    opd_value v; v.tag = OPD_TAG_BOOLS; v.n = (int32_t)n; v.u.bools = p; return v;
}
OPD_INLINE opd_value opd_value_tensors(opd_tensor *const *p, int64_t n) {
    opd_value v; v.tag = OPD_TAG_TENSORS; v.n = (int32_t)n; v.u.tensors = p; return v;
}
OPD_INLINE opd_value opd_value_list(const opd_value *p, int64_t n) {
    opd_value v; v.tag = OPD_TAG_LIST; v.n = (int32_t)n; v.u.list = p; return v;
}
OPD_INLINE opd_value opd_value_same(opd_value v) { return v; }
OPD_INLINE opd_value opd_value_null(const void *p) { (void)p; return opd_value_none(); }

/* A borrowed list of integers, doubles or tensors: OPD_INTS(3, 4), OPD_TENSORS(a, b), opd_ints_of(p, n). */
typedef struct opd_ints { const int64_t *data; int64_t n; } opd_ints;
typedef struct opd_floats { const double *data; int64_t n; } opd_floats;
typedef struct opd_tensors { opd_tensor *const *data; int64_t n; } opd_tensors;
OPD_INLINE opd_ints opd_ints_of(const int64_t *p, int64_t n) { opd_ints l; l.data = p; l.n = n; return l; }
OPD_INLINE opd_floats opd_floats_of(const double *p, int64_t n) { opd_floats l; l.data = p; l.n = n; return l; }
OPD_INLINE opd_tensors opd_tensors_of(opd_tensor *const *p, int64_t n) {
    opd_tensors l; l.data = p; l.n = n; return l;
}
OPD_INLINE opd_value opd_value_of_ints(opd_ints l) { return opd_value_ints(l.data, l.n); }
OPD_INLINE opd_value opd_value_of_floats(opd_floats l) { return opd_value_floats(l.data, l.n); }
OPD_INLINE opd_value opd_value_of_tensors(opd_tensors l) { return opd_value_tensors(l.data, l.n); }
OPD_INLINE opd_value opd_value_uint(uint64_t i) { return opd_value_int((int64_t)i); }
#define OPD_NONE opd_value_none()
#define OPD_DEFAULT opd_value_default()

//----------------------------------------------------------------------------------------------------------------------
//  >>api:schema     operator schemas
//----------------------------------------------------------------------------------------------------------------------

/* Parses "ns::name.overload(Tensor self, int dim=0) -> Tensor" (torch._C.parse_schema; the manual lists the
   deliberate differences).  NULL with an error that has line, column and a caret.  The caller frees it. */
OPD_API opd_schema *opd_schema_parse(const char *text);
OPD_API void opd_schema_free(opd_schema *schema);
/* Writes the schema as PyTorch prints it, cut to cap bytes with the zero; returns the full length. */
OPD_API size_t opd_schema_print(const opd_schema *schema, char *buf, size_t cap);
OPD_API int opd_schema_nargs(const opd_schema *schema);
OPD_API int opd_schema_nreturns(const opd_schema *schema);
OPD_API const char *opd_schema_arg_name(const opd_schema *schema, int i);
/* True when an argument is annotated as written, e.g. Tensor(a!). */
OPD_API bool opd_schema_is_mutable(const opd_schema *schema);

//----------------------------------------------------------------------------------------------------------------------
//  >>api:keys       dispatch keys, key sets, guards
//----------------------------------------------------------------------------------------------------------------------

/* Functionalities, low to high priority: the number is the bit in a key set.  PyTorch's order (c10/core/DispatchKey.h)
   without what means nothing in C: Python, PythonTLSSnapshot, PythonDispatcher, Named, DeferredInit, Batched, VmapMode,
   the testing wrappers.  The autocast keys are one functionality with a backend, like Autograd. */
typedef enum opd_functionality {
    OPD_F_UNDEFINED = 0, OPD_F_DENSE, OPD_F_FPGA, OPD_F_MAIA, OPD_F_VULKAN, OPD_F_METAL, OPD_F_QUANTIZED,
    OPD_F_CUSTOM_RNG, OPD_F_MKLDNN_CPU, OPD_F_SPARSE, OPD_F_SPARSE_CSR, OPD_F_NESTED_TENSOR,
    OPD_F_USER_0 = 12,           /* 12..15: user keys between the backends and BackendSelect */
    OPD_F_BACKEND_SELECT = 16,
    OPD_F_USER_1 = 17,           /* 17..20 */
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
   with a backend.  Alias keys stand for a set of runtime keys and are never in a key set. */
typedef int32_t opd_key;
#define OPD_KEY_UNDEFINED 0
#define OPD_KEY_OF(functionality) ((opd_key)(functionality))
#define OPD_KEY_BACKEND_BASE 64
#define OPD_KEY_PER_BACKEND(index, backend) ((opd_key)(OPD_KEY_BACKEND_BASE + 16 * (index) + (int)(backend)))
#define OPD_KEY_CPU OPD_KEY_PER_BACKEND(0, OPD_CPU)
#define OPD_KEY_CUDA OPD_KEY_PER_BACKEND(0, OPD_CUDA)
#define OPD_KEY_META OPD_KEY_PER_BACKEND(0, OPD_META)
#define OPD_KEY_AUTOGRAD_CPU OPD_KEY_PER_BACKEND(5, OPD_CPU)
#define OPD_KEY_AUTOGRAD_CUDA OPD_KEY_PER_BACKEND(5, OPD_CUDA)
#define OPD_KEY_BACKEND_SELECT OPD_KEY_OF(OPD_F_BACKEND_SELECT)
#define OPD_KEY_AD_INPLACE_OR_VIEW OPD_KEY_OF(OPD_F_AD_INPLACE_OR_VIEW)
#define OPD_KEY_AUTOGRAD_OTHER OPD_KEY_OF(OPD_F_AUTOGRAD_OTHER)
#define OPD_KEY_SLOTS (OPD_KEY_BACKEND_BASE + 7 * 16)
enum {
    OPD_KEY_AUTOGRAD = OPD_KEY_SLOTS, OPD_KEY_COMPOSITE_IMPLICIT, OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION,
    OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR, OPD_KEY_COMPOSITE_EXPLICIT, OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL,
    OPD_KEY_COUNT, OPD_KEY_INVALID = -1
};
/* "CPU", "AutogradCUDA", "CompositeImplicitAutograd", ...: PyTorch's names and its legacy spellings.
   OPD_KEY_INVALID with an error "could not parse dispatch key: X". */
OPD_API opd_key opd_key_parse(const char *name);
OPD_API const char *opd_key_name(opd_key key);
OPD_API bool opd_key_is_alias(opd_key key);

/* A set of keys: functionality bits (bit f-1 is functionality f) and backend bits (bit b is backend b).  As in
   PyTorch the two are separate, so {AutogradCPU, SparseCUDA} also holds AutogradCUDA and SparseCPU. */
typedef struct opd_keyset { uint64_t functionality; uint64_t backends; } opd_keyset;
OPD_INLINE opd_keyset opd_keyset_make(uint64_t functionality, uint64_t backends) {
    opd_keyset s; s.functionality = functionality; s.backends = backends; return s;
}
#define OPD_KEYS_EMPTY opd_keyset_make(0, 0)
#define OPD_BIT_OF(functionality) ((uint64_t)1 << ((functionality) - 1))
OPD_API opd_keyset opd_keyset_add(opd_keyset set, opd_key key);
/* Takes the functionality bit away, never a backend bit. */
OPD_API opd_keyset opd_keyset_remove(opd_keyset set, opd_key key);
OPD_API bool opd_keyset_has(opd_keyset set, opd_key key);
/* The runtime key tried first: highest functionality, with the highest backend. */
OPD_API opd_key opd_keyset_highest(opd_keyset set);
/* Everything strictly below a functionality, with all backend bits: `keys & opd_keyset_below(OPD_F_AUTOGRAD_OTHER)`
   is what a kernel at an Autograd key redispatches with. */
OPD_INLINE opd_keyset opd_keyset_below(int functionality) {
    return opd_keyset_make(OPD_BIT_OF(functionality) - 1, ~(uint64_t)0);
}
OPD_INLINE opd_keyset opd_keyset_and(opd_keyset a, opd_keyset b) {
    return opd_keyset_make(a.functionality & b.functionality, a.backends & b.backends);
}
OPD_INLINE opd_keyset opd_keyset_or(opd_keyset a, opd_keyset b) {
    return opd_keyset_make(a.functionality | b.functionality, a.backends | b.backends);
}
/* Text "DispatchKeySet(CPU, AutogradCPU)", low to high; cut to cap bytes; returns buf. */
OPD_API const char *opd_keyset_print(opd_keyset set, char *buf, size_t cap);

/* Thread-local key state.  A guard adds functionalities to the included or excluded set and at its end removes only
   what it added.  The dispatcher restores the state that a kernel forgot to restore. */
typedef struct opd_key_guard { uint64_t include, exclude; } opd_key_guard;
OPD_API opd_key_guard opd_keys_include(opd_keyset set);
OPD_API opd_key_guard opd_keys_exclude(opd_keyset set);
OPD_API void opd_keys_restore(opd_key_guard guard);
OPD_API opd_keyset opd_keys_included(void);
OPD_API opd_keyset opd_keys_excluded(void);

//----------------------------------------------------------------------------------------------------------------------
//  >>api:dispatcher operators, libraries, calls
//----------------------------------------------------------------------------------------------------------------------

/* A kernel reads arguments with opd_arg_*, gives results with opd_result or opd_return_* and returns 0; not 0 means
   that it failed (after opd_fail, or after something it called failed). */
typedef int (*opd_kernel)(opd_call *call);
/* A derivative formula; see opd_backward_call below. */
typedef int (*opd_backward_fn)(opd_backward_call *bw);
/* A batching rule.  A function of one's own, or a named family. */
typedef int (*opd_vmap_rule)(opd_call *call);

/* Kernel that stands for "act as if this key were not there". */
OPD_API int opd_fallthrough(opd_call *call);
#define OPD_FALLTHROUGH opd_fallthrough
/* Said in a card in place of a formula: results never require grad. */
OPD_API int opd_not_differentiable(opd_backward_call *bw);
#define OPD_NOT_DIFFERENTIABLE opd_not_differentiable
/* Batching families named in cards (zero means forgotten). */
OPD_API int opd_batch_pointwise(opd_call *call);
OPD_API int opd_batch_shift_dim(opd_call *call);
OPD_API int opd_batch_matmul(opd_call *call);
OPD_API int opd_batch_view(opd_call *call);
OPD_API int opd_batch_decompose(opd_call *call);
OPD_API int opd_batch_factory(opd_call *call);
OPD_API int opd_batch_loop(opd_call *call);
#define OPD_BATCH_POINTWISE opd_batch_pointwise
#define OPD_BATCH_SHIFT_DIM opd_batch_shift_dim
#define OPD_BATCH_MATMUL opd_batch_matmul
#define OPD_BATCH_VIEW opd_batch_view
#define OPD_BATCH_DECOMPOSE opd_batch_decompose
#define OPD_BATCH_FACTORY opd_batch_factory
#define OPD_BATCH_LOOP opd_batch_loop

typedef enum opd_autocast {
    OPD_AUTOCAST_FORGOTTEN = 0, OPD_AUTOCAST_KEEP, OPD_AUTOCAST_LOWER, OPD_AUTOCAST_FP32, OPD_AUTOCAST_FP32_SET_DTYPE,
    OPD_AUTOCAST_PROMOTE, OPD_AUTOCAST_BANNED
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
                                    wanted; "" or NULL = no tensors (other arguments are always kept) */
    opd_vmap_rule vmap;
    opd_autocast autocast;
    const char *inplace;         /* in-place form derived from this one: its name, e.g. "add_.Tensor" */
    const char *out;             /* out= form: its name ("add.out"), or a whole schema where the names are irregular */
    const char *cases;           /* argument lists that the generic tests walk, in a small language: see the manual */
    void *user;                  /* handed to kernels as opd_call_user */
    void (*destroy)(void *user); /* called when the last kernel that holds `user` is gone */
} opd_op_desc;

typedef enum opd_library_kind { OPD_DEF = 1, OPD_FRAGMENT, OPD_IMPL } opd_library_kind;
/* Opens a library: TORCH_LIBRARY, TORCH_LIBRARY_FRAGMENT, TORCH_LIBRARY_IMPL.  ns "_" (IMPL only) is every namespace;
   key is a key's name or NULL.  NULL with an error.  Any thread. */
OPD_API opd_library *opd_library_open(opd_library_kind kind, const char *ns, const char *key, const char *file, int line);
/* Undoes everything that was registered through it, in any order relative to other libraries. */
OPD_API void opd_library_close(opd_library *lib);
/* Defines an operator by its schema.  0, or -1 with nothing changed. */
OPD_API int opd_def(opd_library *lib, const char *schema);
/* Registers a kernel at the library's key, or without one at CompositeImplicitAutograd (catch-all). */
OPD_API int opd_impl(opd_library *lib, const char *name, opd_kernel kernel);
/* The same at a named key, with a user pointer (may be NULL) and its destructor (may be NULL). */
OPD_API int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                         void (*destroy)(void *user));
/* Registers a kernel for every operator at the library's key, where nothing better is there (namespace "_" only). */
OPD_API int opd_fallback(opd_library *lib, opd_kernel kernel);
/* Defines an operator with everything that belongs to it.  The desc is copied. */
OPD_API int opd_define(opd_library *lib, const opd_op_desc *desc);

/* Finds "ns::name.overload"; NULL with an error that names the nearest ones.  Handles stay valid for ever; a call
   through one whose operator has been undefined fails. */
OPD_API opd_op *opd_find(const char *name);
/* The same without an error. */
OPD_API opd_op *opd_find_quiet(const char *name);
OPD_API const char *opd_op_name(const opd_op *op);                /* "ns::name.overload" */
OPD_API const opd_schema *opd_op_schema(const opd_op *op);        /* NULL when only implementations are there */
OPD_API const opd_op_desc *opd_op_card(const opd_op *op);         /* what opd_define was given, or NULL */
/* The next operator in the order of definition; NULL begins. */
OPD_API opd_op *opd_op_next(const opd_op *op);
/* Checks a C signature, one letter a type, result first ("TTTi"), against the schema: T tensor, i int64_t, d double,
   b bool, s string, D device, G generator, I opd_ints, F opd_floats, L opd_tensors, V opd_value (anything); as result also
   v nothing, N several tensors.  Trailing arguments with defaults may be missing.  0, or -1 with an error. */
OPD_API int opd_op_check(const opd_op *op, const char *signature);
/* Text dumps in PyTorch's form (_dispatch_dump, _dispatch_dump_table); cut to cap bytes; return the full length. */
OPD_API size_t opd_dump(const opd_op *op, char *buf, size_t cap);
OPD_API size_t opd_dump_table(const opd_op *op, char *buf, size_t cap);
/* 0 when every slot of every table equals what the registrations say and the counters agree; -1 with an error. */
OPD_API int opd_check_invariants(void);

/* Calls.  args in schema order; trailing ones may be left out where there are defaults.  Results belong to the
   innermost scope; an argument that comes back from an in-place or out= operator stays whose it was. */
OPD_API opd_tensor *opd_call_op(opd_op *op, const opd_value *args, int nargs);          /* first result; NULL: failed */
OPD_API int opd_call_all(opd_op *op, opd_value *rets, const opd_value *args, int nargs); /* 0, or -1 */
/* For operators whose results are all tensors: fills rets (NULL where a result is undefined). */
OPD_API int opd_call_tensors(opd_op *op, opd_tensor **rets, const opd_value *args, int nargs);
typedef struct opd_keyword { const char *name; opd_value value; } opd_keyword;
OPD_API int opd_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs, const opd_keyword *kw,
                              int nkw);
/* Runs the operator again from inside one of its kernels, with the same arguments and results, at the keys given. */
OPD_API int opd_redispatch(opd_call *call, opd_keyset keys);
/* OPD_OP(&handle, "ns::name") looks up once and keeps the handle. */
OPD_INLINE opd_op *opd_op_cached(opd_op **handle, const char *name) {
    if (!*handle) { *handle = opd_find(name); }
    return *handle;
}
#define OPD_OP(handle, name) opd_op_cached(handle, name)
/* The same with a signature (see opd_op_check) that is checked at that one look-up; NULL with an error when it does not fit. */
OPD_API opd_op *opd_op_look_up(opd_op **handle, const char *name, const char *signature);
OPD_INLINE opd_op *opd_op_typed(opd_op **handle, const char *name, const char *signature) {
    return *handle ? *handle : opd_op_look_up(handle, name, signature);
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
/* The same with strides (elements) for a fresh one; NULL: contiguous. */
OPD_API opd_tensor *opd_result_strided(opd_call *call, int i, const int64_t *sizes, const int64_t *strides, int ndim,
                                       opd_scalar_type dtype, opd_device device);
/* Give the next result; take hold of it at once (lists and strings are copied).  NULL tensor: the error passes on. */
OPD_API int opd_return_tensor(opd_call *call, opd_tensor *t);
OPD_API int opd_return_tensors(opd_call *call, opd_tensor *const *list, int64_t n);
OPD_API int opd_return_value(opd_call *call, opd_value v);
OPD_INLINE int opd_return_int(opd_call *call, int64_t i) { return opd_return_value(call, opd_value_int(i)); }
OPD_INLINE int opd_return_float(opd_call *call, double d) { return opd_return_value(call, opd_value_float(d)); }
OPD_INLINE int opd_return_bool(opd_call *call, bool b) { return opd_return_value(call, opd_value_bool(b)); }

//----------------------------------------------------------------------------------------------------------------------
//  >>api:scopes     who owns what
//----------------------------------------------------------------------------------------------------------------------

/* A scope is a mark in the thread's stack of handles; closing it releases what was made since, and closes scopes
   opened after it.  Open returns the mark. */
typedef struct opd_scope { int64_t mark, outer; int32_t depth, open; } opd_scope;
OPD_API opd_scope opd_scope_open(void);
OPD_API void opd_scope_close(opd_scope *scope);
/* Moves a tensor of the innermost scope to the one around it; returns t. */
OPD_API opd_tensor *opd_scope_return(opd_tensor *t);
typedef struct opd_scope_info { int depth; int64_t handles; } opd_scope_info;
OPD_API opd_scope_info opd_scope_stats(void);
/* Hold a tensor across scopes, and let it go.  NULL is allowed.  Any thread. */
OPD_API opd_tensor *opd_keep(opd_tensor *t);
OPD_API void opd_release(opd_tensor *t);
/* *handle = t with t kept and the old one released: the way to carry a value through a loop. */
OPD_API opd_tensor *opd_assign(opd_tensor **handle, opd_tensor *t);

//----------------------------------------------------------------------------------------------------------------------
//  >>api:tensors    making tensors, reading them, printing them
//----------------------------------------------------------------------------------------------------------------------

/* A fresh CPU tensor with undefined contents; belongs to the innermost scope.  NULL with an error. */
OPD_API opd_tensor *opd_tensor_new(opd_ints sizes, opd_scalar_type dtype);
/* The same on any device that has an allocator: cpu, meta. */
OPD_API opd_tensor *opd_tensor_new_on(opd_ints sizes, opd_scalar_type dtype, opd_device device);
/* A CPU tensor with a copy of numel elements of that dtype from data. */
OPD_API opd_tensor *opd_tensor_from(const void *data, opd_ints sizes, opd_scalar_type dtype);
/* A tensor over foreign memory, not copied.  strides in elements, NULL: contiguous.  deleter(data, user) runs when
   the last view is gone (also when this call fails); NULL: the memory outlives every view. */
OPD_API opd_tensor *opd_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                    void (*deleter)(void *data, void *user), void *user);
/* A 0-dim tensor that yields to any tensor operand's dtype, as a Python number does. */
OPD_API opd_tensor *opd_tensor_wrapped_number(opd_value number);
/* A view on t's storage: sizes and strides in elements, offset in elements from the storage's start.  Checks that it
   stays inside the storage. */
OPD_API opd_tensor *opd_tensor_view(opd_tensor *t, const int64_t *sizes, const int64_t *strides, int ndim, int64_t offset);

OPD_API int opd_ndim(const opd_tensor *t);
OPD_API const int64_t *opd_sizes(const opd_tensor *t);
OPD_API const int64_t *opd_strides(const opd_tensor *t);                      /* in elements */
OPD_API int64_t opd_size(const opd_tensor *t, int dim);                       /* dim may be negative */
OPD_API int64_t opd_numel(const opd_tensor *t);
OPD_API int64_t opd_offset(const opd_tensor *t);                              /* elements from the storage's start */
OPD_API opd_scalar_type opd_dtype(const opd_tensor *t);
OPD_API opd_device opd_tensor_device(const opd_tensor *t);
OPD_API opd_keyset opd_tensor_keys(const opd_tensor *t);
OPD_API bool opd_is_contiguous(const opd_tensor *t);
OPD_API bool opd_tensor_is_wrapped_number(const opd_tensor *t);
OPD_API bool opd_tensor_same_storage(const opd_tensor *a, const opd_tensor *b);
OPD_API int64_t opd_tensor_storage_bytes(const opd_tensor *t);
OPD_API uint32_t opd_tensor_version(const opd_tensor *t);                     /* of its storage family */
/* First element.  The dtype must be the one named, else NULL with an error.  opd_data gives it untyped. */
OPD_API void *opd_data(const opd_tensor *t);
OPD_API float *opd_data_f32(const opd_tensor *t);
OPD_API double *opd_data_f64(const opd_tensor *t);
OPD_API int64_t *opd_data_i64(const opd_tensor *t);
OPD_API int32_t *opd_data_i32(const opd_tensor *t);
OPD_API uint8_t *opd_data_u8(const opd_tensor *t);
OPD_API bool *opd_data_bool(const opd_tensor *t);
/* The value of a one-element tensor. */
OPD_API double opd_item_f64(const opd_tensor *t);
OPD_API int64_t opd_item_i64(const opd_tensor *t);
/* PyTorch's text of a tensor: cut to cap bytes; returns the full length. */
OPD_API size_t opd_tensor_print(const opd_tensor *t, char *buf, size_t cap);
OPD_API void opd_print(const opd_tensor *t);                                  /* to stdout, with a newline */

/* The random generator: Philox 4x32-10, counter-based.  NULL is the default one (seed 0 until seeded). */
OPD_API void opd_manual_seed(uint64_t seed);
OPD_API opd_generator *opd_generator_new(uint64_t seed);
OPD_API void opd_generator_free(opd_generator *g);
OPD_API void opd_generator_seed(opd_generator *g, uint64_t seed);

//----------------------------------------------------------------------------------------------------------------------
//  >>api:autograd   the tape
//----------------------------------------------------------------------------------------------------------------------

/* torch.Tensor.requires_grad_: only floating tensors, only leaves.  Returns t, or NULL with an error. */
OPD_API opd_tensor *opd_tensor_set_requires_grad(opd_tensor *t, bool on);
OPD_API bool opd_tensor_requires_grad(const opd_tensor *t);
OPD_API bool opd_tensor_is_leaf(const opd_tensor *t);
/* The accumulated gradient of a leaf: borrowed, NULL when there is none. */
OPD_API opd_tensor *opd_tensor_grad(const opd_tensor *t);
OPD_API int opd_tensor_set_grad(opd_tensor *t, opd_tensor *grad);             /* NULL takes it away */
OPD_API const char *opd_tensor_grad_fn(const opd_tensor *t);                  /* "MulBackward0", or NULL for a leaf */
/* torch.autograd.backward of one tensor, with an implicit gradient of one for a one-element tensor. */
OPD_API int opd_backward(opd_tensor *t);
typedef struct opd_backward_options {
    opd_tensor *const *grad_outputs;   /* one for each output, or NULL; elements may be NULL */
    bool retain_graph, create_graph;
    bool allow_unused;                 /* opd_autograd_grad: an input that was not used gives NULL, not an error */
    opd_tensor *const *inputs; int ninputs;   /* opd_backward_with: accumulate into these leaves only */
} opd_backward_options;
OPD_API int opd_backward_with(opd_tensor *const *outputs, int n, const opd_backward_options *options);
/* torch.autograd.grad: gradients of outputs with respect to inputs, into grads (of the innermost scope). */
OPD_API int opd_autograd_grad(opd_tensor *const *outputs, int n, opd_tensor *const *inputs, int ninputs,
                              const opd_backward_options *options, opd_tensor **grads);
/* Grad mode of this thread.  opd_grad_set returns what it was: `bool was = opd_grad_set(false); ... opd_grad_set(was);` */
OPD_API bool opd_grad_enabled(void);
OPD_API bool opd_grad_set(bool on);

/* Inside a formula.  Arguments and results are those of the forward call; only what the card's `save` names is there
   (NULL for other tensors). */
OPD_API opd_tensor *opd_bw_grad(opd_backward_call *bw, int i);                /* gradient of result i; NULL: undefined */
OPD_API opd_tensor *opd_bw_tensor(opd_backward_call *bw, int i);              /* saved tensor argument i */
OPD_API opd_tensors opd_bw_tensors(opd_backward_call *bw, int i);             /* saved list argument i */
OPD_API opd_value opd_bw_value(opd_backward_call *bw, int i);                 /* any argument that is no tensor */
OPD_API opd_tensor *opd_bw_result(opd_backward_call *bw, int i);              /* saved result i */
/* Whether argument i's gradient is wanted; for a list argument, of its element k (bw_needs: of any). */
OPD_API bool opd_bw_needs(const opd_backward_call *bw, int i);
OPD_API bool opd_bw_needs_at(const opd_backward_call *bw, int i, int k);
/* Sizes and dtype of argument i (element k of a list), where its gradient is wanted; n = -1 elsewhere. */
OPD_API opd_ints opd_bw_sizes(const opd_backward_call *bw, int i);
OPD_API opd_ints opd_bw_sizes_at(const opd_backward_call *bw, int i, int k);
OPD_API opd_scalar_type opd_bw_dtype(const opd_backward_call *bw, int i);
/* Gives argument i's gradient (kept at once).  A NULL after something failed passes the error on; returns 0 or -1.
   A gradient that is broadcast or of another floating dtype is summed down and cast by the engine. */
OPD_API int opd_bw_return(opd_backward_call *bw, int i, opd_tensor *grad);
OPD_API int opd_bw_return_at(opd_backward_call *bw, int i, int k, opd_tensor *grad);

/* Autograd by hand, in a kernel at an Autograd key: call the operator below, then tie its results to a formula.
   `inputs` are the tensors whose gradients the formula gives (in the order of opd_bw_return), `saved` the tensors it
   reads with opd_bw_tensor.  Nothing happens when no input requires grad or grad mode is off. */
OPD_API int opd_autograd_record(const char *name, opd_backward_fn backward, opd_tensor *const *inputs, int ninputs,
                                opd_tensor *const *saved, int nsaved, const opd_value *values, int nvalues,
                                opd_tensor *const *results, int nresults);
/* True when grad mode is on and one of the call's tensors requires grad. */
OPD_API bool opd_call_requires_grad(const opd_call *call);

//----------------------------------------------------------------------------------------------------------------------
//  >>api:plug       library blocks
//----------------------------------------------------------------------------------------------------------------------

/* What OPD_LIBRARY leaves behind: linked into a list at load, run at the first use of the dispatcher. */
typedef struct opd_block {
    void (*run)(opd_library *lib);
    opd_library_kind kind;
    const char *ns, *key, *file;
    int line;
    opd_library *library;        /* filled when it has run */
    struct opd_block *next;
    int linked;
} opd_block;
/* Links a block (any thread, allocates nothing, harmless when repeated). */
OPD_API void opd_block_link(opd_block *block);

#ifdef __cplusplus
}
#endif

/* OPD_LIBRARY(ns, lib) { opd_def(lib, ...); ... } runs its body once, before the first use of the dispatcher, as
   TORCH_LIBRARY does.  Where constructors do not run (tcc), or where a static archive would drop the file, call
   OPD_USE_LIBRARY(ns) from main's file in the same translation unit. */
#if defined(__cplusplus)
#define OPD_AT_LOAD(fn) \
    namespace { struct fn##_at_load { fn##_at_load() { fn(); } } fn##_object; }
#elif defined(__GNUC__) && !defined(__TINYC__)
#define OPD_AT_LOAD(fn) __attribute__((constructor)) static void fn##_at_load(void) { fn(); }
#else
#define OPD_AT_LOAD(fn)
#endif
#define OPD_BLOCK(id, kind_, ns_, key_, lib)                                                             \
    static void opd_block_run_##id(opd_library *lib);                                                    \
    OPD_INLINE void opd_block_use_##id(void) {                                                           \
        static opd_block b;                                                                              \
        b.run = opd_block_run_##id; b.kind = kind_; b.ns = ns_; b.key = key_; b.file = __FILE__;         \
        b.line = __LINE__; opd_block_link(&b);                                                           \
    }                                                                                                    \
    OPD_AT_LOAD(opd_block_use_##id)                                                                      \
    static void opd_block_run_##id(opd_library *lib)
#define OPD_LIBRARY(ns, lib) OPD_BLOCK(ns, OPD_DEF, #ns, NULL, lib)
#define OPD_LIBRARY_IMPL(ns, key, lib) OPD_BLOCK(ns##_##key, OPD_IMPL, #ns, #key, lib)
#define OPD_LIBRARY_FRAGMENT(ns, lib) OPD_LIBRARY_FRAGMENT_1(ns, __LINE__, lib)
#define OPD_LIBRARY_FRAGMENT_1(ns, line, lib) OPD_LIBRARY_FRAGMENT_2(ns, line, lib)
#define OPD_LIBRARY_FRAGMENT_2(ns, line, lib) OPD_BLOCK(ns##_fragment_##line, OPD_FRAGMENT, #ns, NULL, lib)
#define OPD_USE_LIBRARY(id) opd_block_use_##id()

/* OPD_CALL(op, a, b, 3) wraps C values and yields the first result; OPD_CALL_N(op, rets, a, b) fills an array and
   yields 0 or -1.  Up to 16 arguments. */
#define OPD_COUNT(...) OPD_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define OPD_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#ifdef __cplusplus
#include <initializer_list>
inline opd_value opd_v(bool b) { return opd_value_bool(b); }
inline opd_value opd_v(int i) { return opd_value_int(i); }
inline opd_value opd_v(long i) { return opd_value_int(i); }
inline opd_value opd_v(long long i) { return opd_value_int(i); }
inline opd_value opd_v(unsigned i) { return opd_value_int(static_cast<int64_t>(i)); }
inline opd_value opd_v(unsigned long i) { return opd_value_int(static_cast<int64_t>(i)); }
inline opd_value opd_v(unsigned long long i) { return opd_value_int(static_cast<int64_t>(i)); }
inline opd_value opd_v(float d) { return opd_value_float(static_cast<double>(d)); }
inline opd_value opd_v(double d) { return opd_value_float(d); }
inline opd_value opd_v(opd_tensor *t) { return opd_value_tensor(t); }
inline opd_value opd_v(const char *s) { return opd_value_str(s); }
inline opd_value opd_v(opd_device d) { return opd_value_device(d); }
inline opd_value opd_v(opd_ints l) { return opd_value_of_ints(l); }
inline opd_value opd_v(opd_floats l) { return opd_value_of_floats(l); }
inline opd_value opd_v(opd_tensors l) { return opd_value_of_tensors(l); }
inline opd_value opd_v(opd_generator *g) { return opd_value_generator(g); }
inline opd_value opd_v(opd_value v) { return v; }
inline opd_value opd_v(decltype(nullptr)) { return opd_value_none(); }
template <class... A> inline opd_tensor *opd_call_cpp(opd_op *op, A... a) {
    const opd_value v[] = {opd_v(a)..., opd_value_none()};
    return opd_call_op(op, v, static_cast<int>(sizeof...(A)));
}
template <class... A> inline int opd_call_cpp_n(opd_op *op, opd_value *rets, A... a) {
    const opd_value v[] = {opd_v(a)..., opd_value_none()};
    return opd_call_all(op, rets, v, static_cast<int>(sizeof...(A)));
}
inline opd_ints opd_ints_in(const std::initializer_list<int64_t> &l) {
    return opd_ints_of(l.begin(), static_cast<int64_t>(l.size()));
}
inline opd_floats opd_floats_in(const std::initializer_list<double> &l) {
    return opd_floats_of(l.begin(), static_cast<int64_t>(l.size()));
}
inline opd_tensors opd_tensors_in(const std::initializer_list<opd_tensor *> &l) {
    return opd_tensors_of(l.begin(), static_cast<int64_t>(l.size()));
}
#define OPD_V(x) opd_v(x)
#define OPD_CALL(...) opd_call_cpp(__VA_ARGS__)
#define OPD_CALL_N(...) opd_call_cpp_n(__VA_ARGS__)
#define OPD_INTS(...) opd_ints_in({__VA_ARGS__})
#define OPD_FLOATS(...) opd_floats_in({__VA_ARGS__})
#define OPD_TENSORS(...) opd_tensors_in({__VA_ARGS__})
#else
#define OPD_V(x) _Generic((x), \
    bool: opd_value_bool, char: opd_value_int, signed char: opd_value_int, unsigned char: opd_value_int, \
    short: opd_value_int, unsigned short: opd_value_int, int: opd_value_int, unsigned: opd_value_uint, \
    long: opd_value_int, unsigned long: opd_value_uint, long long: opd_value_int, unsigned long long: opd_value_uint, \
    float: opd_value_float, double: opd_value_float, opd_tensor *: opd_value_tensor, char *: opd_value_str, \
    const char *: opd_value_str, opd_device: opd_value_device, opd_ints: opd_value_of_ints, \
    opd_floats: opd_value_of_floats, opd_tensors: opd_value_of_tensors, opd_generator *: opd_value_generator, \
    opd_value: opd_value_same, void *: opd_value_null)(x)
#define OPD_MAP_1(a) OPD_V(a)
#define OPD_MAP_2(a, ...) OPD_V(a), OPD_MAP_1(__VA_ARGS__)
#define OPD_MAP_3(a, ...) OPD_V(a), OPD_MAP_2(__VA_ARGS__)
#define OPD_MAP_4(a, ...) OPD_V(a), OPD_MAP_3(__VA_ARGS__)
#define OPD_MAP_5(a, ...) OPD_V(a), OPD_MAP_4(__VA_ARGS__)
#define OPD_MAP_6(a, ...) OPD_V(a), OPD_MAP_5(__VA_ARGS__)
#define OPD_MAP_7(a, ...) OPD_V(a), OPD_MAP_6(__VA_ARGS__)
#define OPD_MAP_8(a, ...) OPD_V(a), OPD_MAP_7(__VA_ARGS__)
#define OPD_MAP_9(a, ...) OPD_V(a), OPD_MAP_8(__VA_ARGS__)
#define OPD_MAP_10(a, ...) OPD_V(a), OPD_MAP_9(__VA_ARGS__)
#define OPD_MAP_11(a, ...) OPD_V(a), OPD_MAP_10(__VA_ARGS__)
#define OPD_MAP_12(a, ...) OPD_V(a), OPD_MAP_11(__VA_ARGS__)
#define OPD_MAP_13(a, ...) OPD_V(a), OPD_MAP_12(__VA_ARGS__)
#define OPD_MAP_14(a, ...) OPD_V(a), OPD_MAP_13(__VA_ARGS__)
#define OPD_MAP_15(a, ...) OPD_V(a), OPD_MAP_14(__VA_ARGS__)
#define OPD_MAP_16(a, ...) OPD_V(a), OPD_MAP_15(__VA_ARGS__)
#define OPD_CAT(a, b) OPD_CAT_(a, b)
#define OPD_CAT_(a, b) a##b
#define OPD_ARGS(...) (const opd_value[]){OPD_CAT(OPD_MAP_, OPD_COUNT(__VA_ARGS__))(__VA_ARGS__)}, OPD_COUNT(__VA_ARGS__)
#define OPD_CALL(op, ...) opd_call_op(op, OPD_ARGS(__VA_ARGS__))
#define OPD_CALL_N(op, rets, ...) opd_call_all(op, rets, OPD_ARGS(__VA_ARGS__))
#define OPD_INTS(...) \
    opd_ints_of((const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define OPD_FLOATS(...) \
    opd_floats_of((const double[]){__VA_ARGS__}, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))
#define OPD_TENSORS(...) \
    opd_tensors_of((opd_tensor *const[]){__VA_ARGS__}, \
                   (int64_t)(sizeof((opd_tensor *const[]){__VA_ARGS__}) / sizeof(opd_tensor *)))
#endif

/* OPD_SCOPE { ... } is a block of its own; OPD_SCOPED; makes the rest of the enclosing block a scope.  break, continue
   and return out of both are right with gcc, clang and C++; elsewhere the enclosing scope closes them. */
#if defined(__cplusplus)
struct opd_scope_guard {
    opd_scope scope;
    opd_scope_guard() : scope(opd_scope_open()) {}
    ~opd_scope_guard() { opd_scope_close(&scope); }
    opd_scope_guard(const opd_scope_guard &) = delete;
    opd_scope_guard &operator=(const opd_scope_guard &) = delete;
};
#define OPD_SCOPE for (opd_scope_guard opd_s; opd_s.scope.open; opd_scope_close(&opd_s.scope))
#define OPD_SCOPED opd_scope_guard OPD_SCOPED_NAME(__LINE__)
#elif defined(__GNUC__) && !defined(__TINYC__)
#define OPD_SCOPE for (__attribute__((cleanup(opd_scope_close))) opd_scope opd_s = opd_scope_open(); \
                       opd_s.open; opd_scope_close(&opd_s))
#define OPD_SCOPED __attribute__((cleanup(opd_scope_close), unused)) opd_scope OPD_SCOPED_NAME(__LINE__) = opd_scope_open()
#else
#define OPD_SCOPE for (opd_scope opd_s = opd_scope_open(); opd_s.open; opd_scope_close(&opd_s))
#define OPD_SCOPED opd_scope OPD_SCOPED_NAME(__LINE__) = opd_scope_open()
#endif
#define OPD_SCOPED_NAME(line) OPD_SCOPED_NAME_(line)
#define OPD_SCOPED_NAME_(line) opd_scoped_##line

//----------------------------------------------------------------------------------------------------------------------
//  >>api:formulas   the pointwise formulas
//
//  One list that the CPU kernels and opdispatch_cuda.cu both expand.  A row is X(name, inputs, kind, formula).  Inputs
//  are x, y, z; numbers are a, b, c; the type is OPD_T.  Whoever expands defines OPD_T, OPD_FN(f) (the C function f for
//  OPD_T: expf for float), OPD_H(f) (a helper below) and the arithmetic OPD_ADD, OPD_SUB, OPD_MUL, OPD_NEG, which wrap
//  for integers.  Kinds, which only say how it is compiled: V arithmetic that vectorises, S scalar calls, M a function
//  with a vector form in float.
//----------------------------------------------------------------------------------------------------------------------

/* float, double and int64_t */
#define OPD_FORMULAS_ALL(X) \
    X(add, 2, V, OPD_ADD(x, y)) \
    X(add_scaled, 2, V, OPD_ADD(x, OPD_MUL(a, y))) \
    X(sub, 2, V, OPD_SUB(x, y)) \
    X(sub_scaled, 2, V, OPD_SUB(x, OPD_MUL(a, y))) \
    X(mul, 2, V, OPD_MUL(x, y)) \
    X(neg, 1, V, OPD_NEG(x)) \
    X(square, 1, V, OPD_MUL(x, x)) \
    X(cube, 1, V, OPD_MUL(OPD_MUL(x, x), x)) \
    X(sign, 1, V, (OPD_T)((x > 0) - (x < 0))) \
    X(relu, 1, V, x < 0 ? 0 : x) \
    X(clamp, 1, V, (x < a ? a : x) > b ? b : (x < a ? a : x)) \
    X(threshold, 2, V, y <= a ? b : x) \
    X(hardtanh_backward, 2, V, (y <= a) | (y >= b) ? 0 : x) \
    X(maximum, 2, V, (x > y) | (x != x) ? x : y) \
    X(minimum, 2, V, (x < y) | (x != x) ? x : y) \
    X(fmax, 2, V, (x >= y) | (y != y) ? x : y) \
    X(fmin, 2, V, (x <= y) | (y != y) ? x : y) \
    X(where, 3, V, x != 0 ? y : z) \
    X(addcmul, 3, V, OPD_ADD(x, OPD_MUL(OPD_MUL(a, y), z))) \
    X(eq, 2, V, (OPD_T)(x == y)) \
    X(ne, 2, V, (OPD_T)(x != y)) \
    X(lt, 2, V, (OPD_T)(x < y)) \
    X(le, 2, V, (OPD_T)(x <= y)) \
    X(gt, 2, V, (OPD_T)(x > y)) \
    X(ge, 2, V, (OPD_T)(x >= y)) \
    X(logical_not, 1, S, (OPD_T)(x == 0)) \
    X(logical_and, 2, S, (OPD_T)((x != 0) & (y != 0))) \
    X(logical_or, 2, S, (OPD_T)((x != 0) | (y != 0))) \
    X(logical_xor, 2, S, (OPD_T)((x != 0) ^ (y != 0))) \
    X(isnan, 1, S, (OPD_T)(x != x)) \
    X(heaviside, 2, S, x == 0 ? y : (OPD_T)(x > 0))

/* float and double */
#define OPD_FORMULAS_FLOAT(X) \
    X(abs, 1, V, OPD_FN(fabs)(x)) \
    X(div, 2, V, x / y) \
    X(div_trunc, 2, S, OPD_FN(trunc)(x / y)) \
    X(div_floor, 2, S, OPD_H(div_floor)(x, y)) \
    X(fmod, 2, S, OPD_FN(fmod)(x, y)) \
    X(remainder, 2, S, OPD_H(remainder)(x, y)) \
    X(pow, 2, S, OPD_FN(pow)(x, y)) \
    X(reciprocal, 1, V, 1 / x) \
    X(exp, 1, M, OPD_FN(exp)(x)) \
    X(exp2, 1, S, OPD_FN(exp2)(x)) \
    X(expm1, 1, M, OPD_FN(expm1)(x)) \
    X(log, 1, M, OPD_FN(log)(x)) \
    X(log2, 1, S, OPD_FN(log2)(x)) \
    X(log10, 1, S, OPD_FN(log10)(x)) \
    X(log1p, 1, M, OPD_FN(log1p)(x)) \
    X(sqrt, 1, S, OPD_FN(sqrt)(x)) \
    X(rsqrt, 1, S, 1 / OPD_FN(sqrt)(x)) \
    X(sin, 1, M, OPD_FN(sin)(x)) \
    X(cos, 1, M, OPD_FN(cos)(x)) \
    X(tan, 1, S, OPD_FN(tan)(x)) \
    X(asin, 1, S, OPD_FN(asin)(x)) \
    X(acos, 1, S, OPD_FN(acos)(x)) \
    X(atan, 1, S, OPD_FN(atan)(x)) \
    X(sinh, 1, S, OPD_FN(sinh)(x)) \
    X(cosh, 1, S, OPD_FN(cosh)(x)) \
    X(asinh, 1, S, OPD_FN(asinh)(x)) \
    X(acosh, 1, S, OPD_FN(acosh)(x)) \
    X(atanh, 1, S, OPD_FN(atanh)(x)) \
    X(tanh, 1, M, OPD_FN(tanh)(x)) \
    X(erf, 1, M, OPD_FN(erf)(x)) \
    X(erfc, 1, S, OPD_FN(erfc)(x)) \
    X(sigmoid, 1, M, 1 / (1 + OPD_FN(exp)(-x))) \
    X(floor, 1, V, OPD_FN(floor)(x)) \
    X(ceil, 1, V, OPD_FN(ceil)(x)) \
    X(round, 1, V, OPD_FN(nearbyint)(x)) \
    X(trunc, 1, V, OPD_FN(trunc)(x)) \
    X(frac, 1, V, x - OPD_FN(trunc)(x)) \
    X(round_decimals, 1, S, b != 0 ? OPD_FN(nearbyint)(x / a) * a : OPD_FN(nearbyint)(x * a) / a) \
    X(isinf, 1, S, (OPD_T)(OPD_FN(fabs)(x) == (OPD_T)INFINITY)) \
    X(isfinite, 1, S, (OPD_T)(OPD_FN(fabs)(x) < (OPD_T)INFINITY)) \
    X(isposinf, 1, S, (OPD_T)(x == (OPD_T)INFINITY)) \
    X(isneginf, 1, S, (OPD_T)(x == -(OPD_T)INFINITY)) \
    X(signbit, 1, S, (OPD_T)(OPD_FN(copysign)(1, x) < 0)) \
    X(copysign, 2, S, OPD_FN(copysign)(x, y)) \
    X(nextafter, 2, S, OPD_FN(nextafter)(x, y)) \
    X(atan2, 2, S, OPD_FN(atan2)(x, y)) \
    X(hypot, 2, S, OPD_FN(hypot)(x, y)) \
    X(xlogy, 2, S, y != y ? y : x == 0 ? 0 : x * OPD_FN(log)(y)) \
    X(logaddexp, 2, S, OPD_H(logaddexp)(x, y)) \
    X(logaddexp2, 2, S, OPD_H(logaddexp2)(x, y)) \
    X(lerp, 3, V, OPD_FN(fabs)(z) < (OPD_T)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z)) \
    X(addcdiv, 3, V, x + a * y / z) \
    X(clamp_tensor, 3, S, OPD_H(clamp)(x, y, z)) \
    X(leaky_relu, 1, V, x > 0 ? x : x * a) \
    X(leaky_relu_backward, 2, V, y > 0 ? x : x * a) \
    X(elu, 1, S, x <= 0 ? OPD_FN(expm1)(x * c) * a : x * b) \
    X(elu_backward, 2, S, y <= 0 ? x * c * a * OPD_FN(exp)(y * c) : x * b) \
    X(elu_backward_result, 2, S, y <= 0 ? x * c * (y + a) : x * b) \
    X(softplus, 1, S, x * a > b ? x : OPD_FN(log1p)(OPD_FN(exp)(x * a)) / a) \
    X(softplus_backward, 2, S, y * a > b ? x : x * OPD_FN(exp)(y * a) / (OPD_FN(exp)(y * a) + 1)) \
    X(gelu, 1, S, (OPD_T)0.5 * x * (1 + OPD_FN(erf)(x * (OPD_T)0.70710678118654752440))) \
    X(gelu_tanh, 1, S, (OPD_T)0.5 * x * (1 + OPD_FN(tanh)(OPD_H(gelu_inner)(x)))) \
    X(gelu_backward, 2, S, x * OPD_H(gelu_slope)(y)) \
    X(gelu_tanh_backward, 2, S, x * OPD_H(gelu_tanh_slope)(y)) \
    X(silu, 1, S, x / (1 + OPD_FN(exp)(-x))) \
    X(silu_backward, 2, S, x * OPD_H(silu_slope)(y)) \
    X(mish, 1, S, x * OPD_FN(tanh)(OPD_FN(log1p)(OPD_FN(exp)(x)))) \
    X(mish_backward, 2, S, x * OPD_H(mish_slope)(y)) \
    X(hardsigmoid, 1, V, OPD_H(relu6)(x + 3) / 6) \
    X(hardsigmoid_backward, 2, V, (y > -3) & (y < 3) ? x / 6 : 0) \
    X(hardswish, 1, V, x * OPD_H(relu6)(x + 3) / 6) \
    X(hardswish_backward, 2, V, y < -3 ? 0 : y <= 3 ? x * (y / 3 + (OPD_T)0.5) : x) \
    X(tanh_backward, 2, V, x * (1 - y * y)) \
    X(sigmoid_backward, 2, V, x * (1 - y) * y) \
    X(log_sigmoid, 1, S, (x < 0 ? x : 0) - OPD_FN(log1p)(OPD_FN(exp)(-OPD_FN(fabs)(x)))) \
    X(log_sigmoid_backward, 2, S, y < 0 ? x - x * OPD_H(exp_ratio)(y) : x * OPD_H(exp_ratio)(y)) \
    X(softshrink, 1, V, x > a ? x - a : x < -a ? x + a : x != x ? x : 0) \
    X(hardshrink, 1, V, (x >= -a) & (x <= a) ? 0 : x) \
    X(shrink_backward, 2, V, (y >= -a) & (y <= a) ? 0 : x) \
    X(logit, 1, S, OPD_H(logit)(x, a, b)) \
    X(logit_backward, 2, S, (y < a) | (y > b) ? c : x / (y * (1 - y))) \
    X(sinc, 1, S, x == 0 ? 1 : OPD_FN(sin)(x * (OPD_T)3.14159265358979323846) / (x * (OPD_T)3.14159265358979323846)) \
    X(nan_to_num, 1, V, x != x ? a : x == (OPD_T)INFINITY ? b : x == -(OPD_T)INFINITY ? c : x)

/* int64_t, which narrower integers and bool are computed in.  OPD_H's also wrap, and know of division by zero. */
#define OPD_FORMULAS_INT(X) \
    X(abs, 1, S, x < 0 ? OPD_NEG(x) : x) \
    X(div_trunc, 2, S, OPD_H(div_trunc)(x, y)) \
    X(div_floor, 2, S, OPD_H(div_floor)(x, y)) \
    X(fmod, 2, S, OPD_H(fmod)(x, y)) \
    X(remainder, 2, S, OPD_H(remainder)(x, y)) \
    X(pow, 2, S, OPD_H(pow)(x, y)) \
    X(clamp_tensor, 3, S, OPD_H(clamp)(x, y, z)) \
    X(floor, 1, S, x) \
    X(zero, 1, S, 0 * x) \
    X(one, 1, S, 0 * x + 1) \
    X(bitwise_and, 2, V, x & y) \
    X(bitwise_or, 2, V, x | y) \
    X(bitwise_xor, 2, V, x ^ y) \
    X(bitwise_not, 1, V, ~x) \
    X(bitwise_left_shift, 2, S, OPD_H(shift_left)(x, y)) \
    X(bitwise_right_shift, 2, S, OPD_H(shift_right)(x, y)) \
    X(signbit, 1, S, (OPD_T)(x < 0)) \
    X(gcd, 2, S, OPD_H(gcd)(x, y)) \
    X(lcm, 2, S, OPD_H(lcm)(x, y))

/* Helpers of the float formulas; QUAL is `static inline`, or `static __device__`. */
#define OPD_FORMULA_HELPERS_FLOAT(QUAL) \
    /* Python's floor division, computed so that it agrees with remainder (at::native::div_floor_kernel) */ \
    QUAL OPD_T OPD_H(div_floor)(OPD_T x, OPD_T y) { \
        OPD_T mod, q, f; \
        if (y == 0) { return x / y; } \
        mod = OPD_FN(fmod)(x, y); \
        q = (x - mod) / y; \
        if (mod != 0 && (y < 0) != (mod < 0)) { q -= 1; } \
        if (q == 0) { return OPD_FN(copysign)(0, x / y); } \
        f = OPD_FN(floor)(q); \
        return q - f > (OPD_T)0.5 ? f + 1 : f; \
    } \
    QUAL OPD_T OPD_H(remainder)(OPD_T x, OPD_T y) { \
        OPD_T mod = OPD_FN(fmod)(x, y); \
        return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod; \
    } \
    QUAL OPD_T OPD_H(clamp)(OPD_T x, OPD_T y, OPD_T z) { \
        OPD_T m = x > y || x != x ? x : y; \
        return m < z || m != m ? m : z; \
    } \
    QUAL OPD_T OPD_H(relu6)(OPD_T x) { return x < 0 ? 0 : x > 6 ? 6 : x; } \
    QUAL OPD_T OPD_H(logaddexp)(OPD_T x, OPD_T y) { \
        OPD_T m = x > y || x != x ? x : y; \
        if (x == y && OPD_FN(fabs)(x) == (OPD_T)INFINITY) { return x; } \
        return m + OPD_FN(log1p)(OPD_FN(exp)(-OPD_FN(fabs)(x - y))); \
    } \
    QUAL OPD_T OPD_H(logaddexp2)(OPD_T x, OPD_T y) { \
        OPD_T m = x > y || x != x ? x : y; \
        if (x == y && OPD_FN(fabs)(x) == (OPD_T)INFINITY) { return x; } \
        return m + OPD_FN(log1p)(OPD_FN(exp2)(-OPD_FN(fabs)(x - y))) * (OPD_T)1.44269504088896340736; \
    } \
    /* sqrt(2 / pi) (x + 0.044715 x^3) */ \
    QUAL OPD_T OPD_H(gelu_inner)(OPD_T x) { \
        return (OPD_T)0.79788456080286535588 * (x + (OPD_T)0.044715 * x * x * x); \
    } \
    /* Phi(x) + x phi(x) */ \
    QUAL OPD_T OPD_H(gelu_slope)(OPD_T x) { \
        return (OPD_T)0.5 * (1 + OPD_FN(erf)(x * (OPD_T)0.70710678118654752440)) + \
               x * OPD_FN(exp)((OPD_T)-0.5 * x * x) * (OPD_T)0.39894228040143267794; \
    } \
    QUAL OPD_T OPD_H(gelu_tanh_slope)(OPD_T x) { \
        OPD_T t = OPD_FN(tanh)(OPD_H(gelu_inner)(x)); \
        OPD_T inner = (OPD_T)0.79788456080286535588 * (1 + 3 * (OPD_T)0.044715 * x * x); \
        return (OPD_T)0.5 * (1 + t) + (OPD_T)0.5 * x * (1 - t * t) * inner; \
    } \
    QUAL OPD_T OPD_H(silu_slope)(OPD_T x) { \
        OPD_T s = 1 / (1 + OPD_FN(exp)(-x)); \
        return s * (1 + x * (1 - s)); \
    } \
    QUAL OPD_T OPD_H(mish_slope)(OPD_T x) { \
        OPD_T s = 1 / (1 + OPD_FN(exp)(-x)), t = OPD_FN(tanh)(OPD_FN(log1p)(OPD_FN(exp)(x))); \
        return t + x * s * (1 - t * t); \
    } \
    /* e / (1 + e), e = exp(-|x|) */ \
    QUAL OPD_T OPD_H(exp_ratio)(OPD_T x) { \
        OPD_T e = OPD_FN(exp)(-OPD_FN(fabs)(x)); \
        return e / (1 + e); \
    } \
    QUAL OPD_T OPD_H(logit)(OPD_T x, OPD_T low, OPD_T high) { \
        OPD_T p = x < low ? low : x > high ? high : x; \
        return p == 1 ? (OPD_T)INFINITY : OPD_FN(log)(p / (1 - p)); \
    }

/* The rows of the operator list: see >>api:operators. */

//----------------------------------------------------------------------------------------------------------------------
//  >>api:operators  the built-in operators and their wrappers
//----------------------------------------------------------------------------------------------------------------------

/* One row an operator: X(card, "name.overload", kind, wrapper, (required types), kind of _full or 0, (all types)).
   opd_<wrapper> takes the required arguments, opd_<wrapper>_full all of them.  Kinds of result: T one tensor, N several
   (the wrapper takes an array `rets` of them and returns 0 or -1), L a list, V a number.  Types: T tensor, i int64_t,
   d double, b bool, s string, I opd_ints, F opd_floats, L opd_tensors, D opd_device, G opd_generator, V opd_value
   (numbers and None: OPD_V(2), OPD_NONE). */
#define OPD_OPERATORS(X) OPD_OPERATORS_CREATE(X) OPD_OPERATORS_VIEW(X) OPD_OPERATORS_POINTWISE(X) \
    OPD_OPERATORS_REDUCE(X) OPD_OPERATORS_LINALG(X) OPD_OPERATORS_NN(X) OPD_OPERATORS_INDEX(X)

#define OPD_OPERATORS_CREATE(X) \
    X(empty_memory_format, "empty.memory_format", T, empty, (I, i), T, (I, V, V, V, V, V)) \
    X(empty_strided, "empty_strided", T, empty_strided, (I, I, i), T, (I, I, V, V, V, V)) \
    X(zeros, "zeros", T, zeros, (I, i), T, (I, V, V, V, V)) \
    X(ones, "ones", T, ones, (I, i), T, (I, V, V, V, V)) \
    X(full, "full", T, full, (I, V, i), T, (I, V, V, V, V, V)) \
    X(empty_like, "empty_like", T, empty_like, (T), T, (T, V, V, V, V, V)) \
    X(zeros_like, "zeros_like", T, zeros_like, (T), T, (T, V, V, V, V, V)) \
    X(ones_like, "ones_like", T, ones_like, (T), T, (T, V, V, V, V, V)) \
    X(full_like, "full_like", T, full_like, (T, V), T, (T, V, V, V, V, V, V)) \
    X(new_empty, "new_empty", T, new_empty, (T, I), T, (T, I, V, V, V, V)) \
    X(new_empty_strided, "new_empty_strided", T, new_empty_strided, (T, I, I), T, (T, I, I, V, V, V, V)) \
    X(new_zeros, "new_zeros", T, new_zeros, (T, I), T, (T, I, V, V, V, V)) \
    X(new_ones, "new_ones", T, new_ones, (T, I), T, (T, I, V, V, V, V)) \
    X(new_full, "new_full", T, new_full, (T, I, V), T, (T, I, V, V, V, V, V)) \
    X(scalar_tensor, "scalar_tensor", T, scalar_tensor, (V, i), T, (V, V, V, V, V)) \
    X(fill__Scalar, "fill_.Scalar", T, fill_, (T, V), 0, ()) \
    X(fill__Tensor, "fill_.Tensor", T, fill_Tensor_, (T, T), 0, ()) \
    X(zero_, "zero_", T, zero_, (T), 0, ()) \
    X(fill_Scalar, "fill.Scalar", T, fill, (T, V), 0, ()) \
    X(fill_Tensor, "fill.Tensor", T, fill_Tensor, (T, T), 0, ()) \
    X(zero, "zero", T, zero, (T), 0, ()) \
    X(arange, "arange", T, arange, (V, i), T, (V, V, V, V, V)) \
    X(arange_start, "arange.start", T, arange_start, (V, V, i), T, (V, V, V, V, V, V)) \
    X(arange_start_step, "arange.start_step", T, arange_start_step, (V, V, V, i), T, (V, V, V, V, V, V, V)) \
    X(range, "range", T, range, (V, V, i), T, (V, V, V, V, V, V)) \
    X(range_step, "range.step", T, range_step, (V, V, V, i), T, (V, V, V, V, V, V, V)) \
    X(linspace, "linspace", T, linspace, (V, V, i, i), T, (V, V, i, V, V, V, V)) \
    X(logspace, "logspace", T, logspace, (V, V, i, d, i), T, (V, V, i, d, V, V, V, V)) \
    X(eye, "eye", T, eye, (i, i), T, (i, V, V, V, V)) \
    X(eye_m, "eye.m", T, eye_m, (i, i, i), T, (i, i, V, V, V, V)) \
    X(tril, "tril", T, tril, (T), T, (T, i)) \
    X(triu, "triu", T, triu, (T), T, (T, i)) \
    X(tril_indices, "tril_indices", T, tril_indices, (i, i), T, (i, i, i, V, V, V, V)) \
    X(triu_indices, "triu_indices", T, triu_indices, (i, i), T, (i, i, i, V, V, V, V)) \
    X(rand, "rand", T, rand, (I, i), T, (I, V, V, V, V)) \
    X(rand_generator, "rand.generator", T, rand_generator, (I, G, i), T, (I, G, V, V, V, V)) \
    X(randn, "randn", T, randn, (I, i), T, (I, V, V, V, V)) \
    X(randn_generator, "randn.generator", T, randn_generator, (I, G, i), T, (I, G, V, V, V, V)) \
    X(randint, "randint", T, randint, (i, I, i), T, (i, I, V, V, V, V)) \
    X(randint_generator, "randint.generator", T, randint_generator, (i, I, G, i), T, (i, I, G, V, V, V, V)) \
    X(randint_low, "randint.low", T, randint_low, (i, i, I, i), T, (i, i, I, V, V, V, V)) \
    X(randint_low_generator, "randint.low_generator", T, randint_low_generator, (i, i, I, G, i), T, (i, i, I, G, V, V, V, V)) \
    X(randperm, "randperm", T, randperm, (i, i), T, (i, V, V, V, V)) \
    X(randperm_generator, "randperm.generator", T, randperm_generator, (i, G, i), T, (i, G, V, V, V, V)) \
    X(rand_like, "rand_like", T, rand_like, (T), T, (T, V, V, V, V, V)) \
    X(randn_like, "randn_like", T, randn_like, (T), T, (T, V, V, V, V, V)) \
    X(randint_like, "randint_like", T, randint_like, (T, i), T, (T, i, V, V, V, V, V)) \
    X(randint_like_low_dtype, "randint_like.low_dtype", T, randint_like_low, (T, i, i), T, (T, i, i, V, V, V, V, V)) \
    X(normal_, "normal_", T, normal_, (T, d, d), T, (T, d, d, G)) \
    X(uniform_, "uniform_", T, uniform_, (T, d, d), T, (T, d, d, G)) \
    X(exponential_, "exponential_", T, exponential_, (T, d), T, (T, d, G)) \
    X(random_, "random_", T, random_, (T), T, (T, G)) \
    X(random__from, "random_.from", T, random_from_, (T, i, V), T, (T, i, V, G)) \
    X(random__to, "random_.to", T, random_to_, (T, i), T, (T, i, G)) \
    X(bernoulli__float, "bernoulli_.float", T, bernoulli_, (T, d), T, (T, d, G)) \
    X(bernoulli__Tensor, "bernoulli_.Tensor", T, bernoulli_Tensor_, (T, T), T, (T, T, G)) \
    X(bernoulli, "bernoulli", T, bernoulli, (T), T, (T, G)) \
    X(bernoulli_p, "bernoulli.p", T, bernoulli_p, (T, d), T, (T, d, G)) \
    X(normal_functional, "normal_functional", T, normal_functional, (T, d, d), T, (T, d, d, G)) \
    X(normal_Tensor_float, "normal.Tensor_float", T, normal_Tensor_float, (T, d), T, (T, d, G)) \
    X(normal_float_Tensor, "normal.float_Tensor", T, normal_float_Tensor, (d, T), T, (d, T, G)) \
    X(normal_Tensor_Tensor, "normal.Tensor_Tensor", T, normal_Tensor_Tensor, (T, T), T, (T, T, G)) \
    X(normal_float_float, "normal.float_float", T, normal, (d, d, I), T, (d, d, I, G, V, V, V, V))

#define OPD_OPERATORS_VIEW(X) \
    X(view, "view", T, view, (T, I), 0, ()) \
    X(_unsafe_view, "_unsafe_view", T, unsafe_view, (T, I), 0, ()) \
    X(_reshape_alias, "_reshape_alias", T, reshape_alias, (T, I, I), 0, ()) \
    X(reshape, "reshape", T, reshape, (T, I), 0, ()) \
    X(expand, "expand", T, expand, (T, I), 0, ()) \
    X(transpose_int, "transpose.int", T, transpose, (T, i, i), 0, ()) \
    X(t, "t", T, t, (T), 0, ()) \
    X(permute, "permute", T, permute, (T, I), 0, ()) \
    X(select_int, "select.int", T, select, (T, i, i), 0, ()) \
    X(slice_Tensor, "slice.Tensor", T, slice, (T, i, V, V, i), 0, ()) \
    X(unsqueeze, "unsqueeze", T, unsqueeze, (T, i), 0, ()) \
    X(squeeze, "squeeze", T, squeeze, (T), 0, ()) \
    X(squeeze_dim, "squeeze.dim", T, squeeze_dim, (T, i), 0, ()) \
    X(detach, "detach", T, detach, (T), 0, ()) \
    X(alias, "alias", T, alias, (T), 0, ()) \
    X(as_strided, "as_strided", T, as_strided, (T, I, I), T, (T, I, I, V)) \
    X(select_backward, "select_backward", T, select_backward, (T, I, i, i), 0, ()) \
    X(slice_backward, "slice_backward", T, slice_backward, (T, I, i, i, i, i), 0, ()) \
    X(as_strided_backward, "as_strided_backward", T, as_strided_backward, (T, I, I, I, I, i), 0, ()) \
    X(flatten_using_ints, "flatten.using_ints", T, flatten, (T), T, (T, i, i)) \
    X(expand_as, "expand_as", T, expand_as, (T, T), 0, ()) \
    X(view_as, "view_as", T, view_as, (T, T), 0, ()) \
    X(reshape_as, "reshape_as", T, reshape_as, (T, T), 0, ()) \
    X(copy_, "copy_", T, copy_, (T, T), T, (T, T, b)) \
    X(copy, "copy", T, copy, (T, T), T, (T, T, b)) \
    X(clone, "clone", T, clone, (T), T, (T, V)) \
    X(_to_copy, "_to_copy", T, to_copy, (T, i), T, (T, V, V, V, V, b, V)) \
    X(contiguous, "contiguous", T, contiguous, (T), T, (T, i)) \
    X(to_dtype, "to.dtype", T, to_dtype, (T, i), T, (T, i, b, b, V)) \
    X(_local_scalar_dense, "_local_scalar_dense", V, local_scalar_dense, (T), 0, ()) \
    X(item, "item", V, item, (T), 0, ())

#define OPD_OPERATORS_POINTWISE(X) \
    X(exp, "exp", T, exp, (T), 0, ()) \
    X(exp2, "exp2", T, exp2, (T), 0, ()) \
    X(expm1, "expm1", T, expm1, (T), 0, ()) \
    X(log, "log", T, log, (T), 0, ()) \
    X(log2, "log2", T, log2, (T), 0, ()) \
    X(log10, "log10", T, log10, (T), 0, ()) \
    X(log1p, "log1p", T, log1p, (T), 0, ()) \
    X(sqrt, "sqrt", T, sqrt, (T), 0, ()) \
    X(rsqrt, "rsqrt", T, rsqrt, (T), 0, ()) \
    X(reciprocal, "reciprocal", T, reciprocal, (T), 0, ()) \
    X(square, "square", T, square, (T), 0, ()) \
    X(sin, "sin", T, sin, (T), 0, ()) \
    X(cos, "cos", T, cos, (T), 0, ()) \
    X(tan, "tan", T, tan, (T), 0, ()) \
    X(asin, "asin", T, asin, (T), 0, ()) \
    X(acos, "acos", T, acos, (T), 0, ()) \
    X(atan, "atan", T, atan, (T), 0, ()) \
    X(sinh, "sinh", T, sinh, (T), 0, ()) \
    X(cosh, "cosh", T, cosh, (T), 0, ()) \
    X(asinh, "asinh", T, asinh, (T), 0, ()) \
    X(acosh, "acosh", T, acosh, (T), 0, ()) \
    X(atanh, "atanh", T, atanh, (T), 0, ()) \
    X(tanh, "tanh", T, tanh, (T), 0, ()) \
    X(erf, "erf", T, erf, (T), 0, ()) \
    X(erfc, "erfc", T, erfc, (T), 0, ()) \
    X(sigmoid, "sigmoid", T, sigmoid, (T), 0, ()) \
    X(sinc, "sinc", T, sinc, (T), 0, ()) \
    X(floor, "floor", T, floor, (T), 0, ()) \
    X(frac, "frac", T, frac, (T), 0, ()) \
    X(sign, "sign", T, sign, (T), 0, ()) \
    X(abs, "abs", T, abs, (T), 0, ()) \
    X(hardsigmoid, "hardsigmoid", T, hardsigmoid, (T), 0, ()) \
    X(hardswish, "hardswish", T, hardswish, (T), 0, ()) \
    X(mish, "mish", T, mish, (T), 0, ()) \
    X(ceil, "ceil", T, ceil, (T), 0, ()) \
    X(round, "round", T, round, (T), 0, ()) \
    X(trunc, "trunc", T, trunc, (T), 0, ()) \
    X(sgn, "sgn", T, sgn, (T), 0, ()) \
    X(isnan, "isnan", T, isnan, (T), 0, ()) \
    X(isinf, "isinf", T, isinf, (T), 0, ()) \
    X(isfinite, "isfinite", T, isfinite, (T), 0, ()) \
    X(isposinf, "isposinf", T, isposinf, (T), 0, ()) \
    X(isneginf, "isneginf", T, isneginf, (T), 0, ()) \
    X(signbit, "signbit", T, signbit, (T), 0, ()) \
    X(logical_not, "logical_not", T, logical_not, (T), 0, ()) \
    X(neg, "neg", T, neg, (T), 0, ()) \
    X(bitwise_not, "bitwise_not", T, bitwise_not, (T), 0, ()) \
    X(relu, "relu", T, relu, (T), 0, ()) \
    X(silu, "silu", T, silu, (T), 0, ()) \
    X(clamp, "clamp", T, clamp, (T), T, (T, V, V)) \
    X(clamp_min, "clamp_min", T, clamp_min, (T, V), 0, ()) \
    X(clamp_max, "clamp_max", T, clamp_max, (T, V), 0, ()) \
    X(hardtanh, "hardtanh", T, hardtanh, (T), T, (T, V, V)) \
    X(relu6, "relu6", T, relu6, (T), 0, ()) \
    X(gelu, "gelu", T, gelu, (T), T, (T, s)) \
    X(leaky_relu, "leaky_relu", T, leaky_relu, (T), T, (T, V)) \
    X(elu, "elu", T, elu, (T), T, (T, V, V, V)) \
    X(selu, "selu", T, selu, (T), 0, ()) \
    X(celu, "celu", T, celu, (T), T, (T, V)) \
    X(softplus, "softplus", T, softplus, (T), T, (T, V, V)) \
    X(threshold, "threshold", T, threshold, (T, V, V), 0, ()) \
    X(round_decimals, "round.decimals", T, round_decimals, (T, i), 0, ()) \
    X(softshrink, "softshrink", T, softshrink, (T), T, (T, V)) \
    X(hardshrink, "hardshrink", T, hardshrink, (T), T, (T, V)) \
    X(softshrink_backward, "softshrink_backward", T, softshrink_backward, (T, T, V), 0, ()) \
    X(hardshrink_backward, "hardshrink_backward", T, hardshrink_backward, (T, T, V), 0, ()) \
    X(nan_to_num, "nan_to_num", T, nan_to_num, (T), T, (T, V, V, V)) \
    X(deg2rad, "deg2rad", T, deg2rad, (T), 0, ()) \
    X(rad2deg, "rad2deg", T, rad2deg, (T), 0, ()) \
    X(logit, "logit", T, logit, (T), T, (T, V)) \
    X(logit_backward, "logit_backward", T, logit_backward, (T, T), T, (T, T, V)) \
    X(add_Tensor, "add.Tensor", T, add, (T, T), T, (T, T, V)) \
    X(add_Scalar, "add.Scalar", T, add_Scalar, (T, V), T, (T, V, V)) \
    X(sub_Tensor, "sub.Tensor", T, sub, (T, T), T, (T, T, V)) \
    X(sub_Scalar, "sub.Scalar", T, sub_Scalar, (T, V), T, (T, V, V)) \
    X(rsub_Tensor, "rsub.Tensor", T, rsub, (T, T), T, (T, T, V)) \
    X(rsub_Scalar, "rsub.Scalar", T, rsub_Scalar, (T, V), T, (T, V, V)) \
    X(mul_Tensor, "mul.Tensor", T, mul, (T, T), 0, ()) \
    X(mul_Scalar, "mul.Scalar", T, mul_Scalar, (T, V), 0, ()) \
    X(div_Tensor, "div.Tensor", T, div, (T, T), 0, ()) \
    X(div_Scalar, "div.Scalar", T, div_Scalar, (T, V), 0, ()) \
    X(div_Tensor_mode, "div.Tensor_mode", T, div_Tensor_mode, (T, T, s), 0, ()) \
    X(div_Scalar_mode, "div.Scalar_mode", T, div_Scalar_mode, (T, V, s), 0, ()) \
    X(floor_divide, "floor_divide", T, floor_divide, (T, T), 0, ()) \
    X(floor_divide_Scalar, "floor_divide.Scalar", T, floor_divide_Scalar, (T, V), 0, ()) \
    X(fmod_Tensor, "fmod.Tensor", T, fmod, (T, T), 0, ()) \
    X(fmod_Scalar, "fmod.Scalar", T, fmod_Scalar, (T, V), 0, ()) \
    X(remainder_Tensor, "remainder.Tensor", T, remainder, (T, T), 0, ()) \
    X(remainder_Scalar, "remainder.Scalar", T, remainder_Scalar, (T, V), 0, ()) \
    X(pow_Tensor_Tensor, "pow.Tensor_Tensor", T, pow_Tensor_Tensor, (T, T), 0, ()) \
    X(pow_Tensor_Scalar, "pow.Tensor_Scalar", T, pow_Tensor_Scalar, (T, V), 0, ()) \
    X(pow_Scalar, "pow.Scalar", T, pow_Scalar, (V, T), 0, ()) \
    X(maximum, "maximum", T, maximum, (T, T), 0, ()) \
    X(minimum, "minimum", T, minimum, (T, T), 0, ()) \
    X(fmax, "fmax", T, fmax, (T, T), 0, ()) \
    X(fmin, "fmin", T, fmin, (T, T), 0, ()) \
    X(clamp_Tensor, "clamp.Tensor", T, clamp_Tensor, (T), T, (T, T, T)) \
    X(clamp_min_Tensor, "clamp_min.Tensor", T, clamp_min_Tensor, (T, T), 0, ()) \
    X(clamp_max_Tensor, "clamp_max.Tensor", T, clamp_max_Tensor, (T, T), 0, ()) \
    X(eq_Tensor, "eq.Tensor", T, eq, (T, T), 0, ()) \
    X(eq_Scalar, "eq.Scalar", T, eq_Scalar, (T, V), 0, ()) \
    X(ne_Tensor, "ne.Tensor", T, ne, (T, T), 0, ()) \
    X(ne_Scalar, "ne.Scalar", T, ne_Scalar, (T, V), 0, ()) \
    X(lt_Tensor, "lt.Tensor", T, lt, (T, T), 0, ()) \
    X(lt_Scalar, "lt.Scalar", T, lt_Scalar, (T, V), 0, ()) \
    X(le_Tensor, "le.Tensor", T, le, (T, T), 0, ()) \
    X(le_Scalar, "le.Scalar", T, le_Scalar, (T, V), 0, ()) \
    X(gt_Tensor, "gt.Tensor", T, gt, (T, T), 0, ()) \
    X(gt_Scalar, "gt.Scalar", T, gt_Scalar, (T, V), 0, ()) \
    X(ge_Tensor, "ge.Tensor", T, ge, (T, T), 0, ()) \
    X(ge_Scalar, "ge.Scalar", T, ge_Scalar, (T, V), 0, ()) \
    X(logical_and, "logical_and", T, logical_and, (T, T), 0, ()) \
    X(logical_or, "logical_or", T, logical_or, (T, T), 0, ()) \
    X(logical_xor, "logical_xor", T, logical_xor, (T, T), 0, ()) \
    X(bitwise_and_Tensor, "bitwise_and.Tensor", T, bitwise_and, (T, T), 0, ()) \
    X(bitwise_and_Scalar, "bitwise_and.Scalar", T, bitwise_and_Scalar, (T, V), 0, ()) \
    X(bitwise_and_Scalar_Tensor, "bitwise_and.Scalar_Tensor", T, bitwise_and_Scalar_Tensor, (V, T), 0, ()) \
    X(bitwise_or_Tensor, "bitwise_or.Tensor", T, bitwise_or, (T, T), 0, ()) \
    X(bitwise_or_Scalar, "bitwise_or.Scalar", T, bitwise_or_Scalar, (T, V), 0, ()) \
    X(bitwise_or_Scalar_Tensor, "bitwise_or.Scalar_Tensor", T, bitwise_or_Scalar_Tensor, (V, T), 0, ()) \
    X(bitwise_xor_Tensor, "bitwise_xor.Tensor", T, bitwise_xor, (T, T), 0, ()) \
    X(bitwise_xor_Scalar, "bitwise_xor.Scalar", T, bitwise_xor_Scalar, (T, V), 0, ()) \
    X(bitwise_xor_Scalar_Tensor, "bitwise_xor.Scalar_Tensor", T, bitwise_xor_Scalar_Tensor, (V, T), 0, ()) \
    X(bitwise_left_shift_Tensor, "bitwise_left_shift.Tensor", T, bitwise_left_shift, (T, T), 0, ()) \
    X(bitwise_left_shift_Tensor_Scalar, "bitwise_left_shift.Tensor_Scalar", T, bitwise_left_shift_Tensor_Scalar, (T, V), 0, ()) \
    X(bitwise_left_shift_Scalar_Tensor, "bitwise_left_shift.Scalar_Tensor", T, bitwise_left_shift_Scalar_Tensor, (V, T), 0, ()) \
    X(bitwise_right_shift_Tensor, "bitwise_right_shift.Tensor", T, bitwise_right_shift, (T, T), 0, ()) \
    X(bitwise_right_shift_Tensor_Scalar, "bitwise_right_shift.Tensor_Scalar", T, bitwise_right_shift_Tensor_Scalar, (T, V), 0, ()) \
    X(bitwise_right_shift_Scalar_Tensor, "bitwise_right_shift.Scalar_Tensor", T, bitwise_right_shift_Scalar_Tensor, (V, T), 0, ()) \
    X(gcd, "gcd", T, gcd, (T, T), 0, ()) \
    X(lcm, "lcm", T, lcm, (T, T), 0, ()) \
    X(atan2, "atan2", T, atan2, (T, T), 0, ()) \
    X(hypot, "hypot", T, hypot, (T, T), 0, ()) \
    X(xlogy_Tensor, "xlogy.Tensor", T, xlogy, (T, T), 0, ()) \
    X(logaddexp, "logaddexp", T, logaddexp, (T, T), 0, ()) \
    X(logaddexp2, "logaddexp2", T, logaddexp2, (T, T), 0, ()) \
    X(copysign_Tensor, "copysign.Tensor", T, copysign, (T, T), 0, ()) \
    X(nextafter, "nextafter", T, nextafter, (T, T), 0, ()) \
    X(heaviside, "heaviside", T, heaviside, (T, T), 0, ()) \
    X(where_self, "where.self", T, where_self, (T, T, T), 0, ()) \
    X(where_ScalarOther, "where.ScalarOther", T, where_ScalarOther, (T, T, V), 0, ()) \
    X(where_ScalarSelf, "where.ScalarSelf", T, where_ScalarSelf, (T, V, T), 0, ()) \
    X(masked_fill_Scalar, "masked_fill.Scalar", T, masked_fill_Scalar, (T, T, V), 0, ()) \
    X(masked_fill_Tensor, "masked_fill.Tensor", T, masked_fill, (T, T, T), 0, ()) \
    X(lerp_Scalar, "lerp.Scalar", T, lerp_Scalar, (T, T, V), 0, ()) \
    X(lerp_Tensor, "lerp.Tensor", T, lerp, (T, T, T), 0, ()) \
    X(addcmul, "addcmul", T, addcmul, (T, T, T), T, (T, T, T, V)) \
    X(addcdiv, "addcdiv", T, addcdiv, (T, T, T), T, (T, T, T, V)) \
    X(tanh_backward, "tanh_backward", T, tanh_backward, (T, T), 0, ()) \
    X(sigmoid_backward, "sigmoid_backward", T, sigmoid_backward, (T, T), 0, ()) \
    X(threshold_backward, "threshold_backward", T, threshold_backward, (T, T, V), 0, ()) \
    X(hardtanh_backward, "hardtanh_backward", T, hardtanh_backward, (T, T, V, V), 0, ()) \
    X(leaky_relu_backward, "leaky_relu_backward", T, leaky_relu_backward, (T, T, V, b), 0, ()) \
    X(hardsigmoid_backward, "hardsigmoid_backward", T, hardsigmoid_backward, (T, T), 0, ()) \
    X(hardswish_backward, "hardswish_backward", T, hardswish_backward, (T, T), 0, ()) \
    X(softplus_backward, "softplus_backward", T, softplus_backward, (T, T, V, V), 0, ()) \
    X(silu_backward, "silu_backward", T, silu_backward, (T, T), 0, ()) \
    X(mish_backward, "mish_backward", T, mish_backward, (T, T), 0, ()) \
    X(gelu_backward, "gelu_backward", T, gelu_backward, (T, T), T, (T, T, s)) \
    X(elu_backward, "elu_backward", T, elu_backward, (T, V, V, V, b, T), 0, ()) \
    X(true_divide_Tensor, "true_divide.Tensor", T, true_divide, (T, T), 0, ()) \
    X(ldexp_Tensor, "ldexp.Tensor", T, ldexp, (T, T), 0, ())

#define OPD_OPERATORS_REDUCE(X) \
    X(sum, "sum", T, sum, (T), T, (T, V)) \
    X(sum_dim_IntList, "sum.dim_IntList", T, sum_dim, (T, I, b), T, (T, I, b, V))

#define OPD_OPERATORS_LINALG(X) \
    X(mm, "mm", T, mm, (T, T), 0, ()) \
    X(bmm, "bmm", T, bmm, (T, T), 0, ()) \
    X(addmm, "addmm", T, addmm, (T, T, T), T, (T, T, T, V, V)) \
    X(baddbmm, "baddbmm", T, baddbmm, (T, T, T), T, (T, T, T, V, V)) \
    X(addbmm, "addbmm", T, addbmm, (T, T, T), T, (T, T, T, V, V)) \
    X(mv, "mv", T, mv, (T, T), 0, ()) \
    X(addmv, "addmv", T, addmv, (T, T, T), T, (T, T, T, V, V)) \
    X(dot, "dot", T, dot, (T, T), 0, ()) \
    X(vdot, "vdot", T, vdot, (T, T), 0, ()) \
    X(outer, "outer", T, outer, (T, T), 0, ()) \
    X(ger, "ger", T, ger, (T, T), 0, ()) \
    X(addr, "addr", T, addr, (T, T, T), T, (T, T, T, V, V)) \
    X(matmul, "matmul", T, matmul, (T, T), 0, ()) \
    X(linear, "linear", T, linear, (T, T), T, (T, T, T)) \
    X(tensordot, "tensordot", T, tensordot, (T, T, I, I), 0, ()) \
    X(inner, "inner", T, inner, (T, T), 0, ()) \
    X(kron, "kron", T, kron, (T, T), 0, ()) \
    X(convolution, "convolution", T, convolution, (T, T, T, I, I, I, b, I, i), 0, ()) \
    X(convolution_backward, "convolution_backward", N, convolution_backward, (T, T, T, V, I, I, I, b, I, i, V), 0, ()) \
    X(_convolution, "_convolution", T, under_convolution, (T, T, T, I, I, I, b, I, i, b, b, b), 0, ()) \
    X(_convolution_deprecated, "_convolution.deprecated", T, under_convolution_deprecated, (T, T, T, I, I, I, b, I, i, b, b, b), 0, ()) \
    X(conv1d, "conv1d", T, conv1d, (T, T), T, (T, T, T, I, I, I, i)) \
    X(conv1d_padding, "conv1d.padding", T, conv1d_padding, (T, T), T, (T, T, T, I, s, I, i)) \
    X(conv2d, "conv2d", T, conv2d, (T, T), T, (T, T, T, I, I, I, i)) \
    X(conv2d_padding, "conv2d.padding", T, conv2d_padding, (T, T), T, (T, T, T, I, s, I, i)) \
    X(conv3d, "conv3d", T, conv3d, (T, T), T, (T, T, T, I, I, I, i)) \
    X(conv3d_padding, "conv3d.padding", T, conv3d_padding, (T, T), T, (T, T, T, I, s, I, i)) \
    X(conv_transpose1d, "conv_transpose1d", T, conv_transpose1d, (T, T), T, (T, T, T, I, I, I, i, I)) \
    X(conv_transpose2d_input, "conv_transpose2d.input", T, conv_transpose2d, (T, T), T, (T, T, T, I, I, I, i, I)) \
    X(conv_transpose3d_input, "conv_transpose3d.input", T, conv_transpose3d, (T, T), T, (T, T, T, I, I, I, i, I))

#define OPD_OPERATORS_NN(X)

#define OPD_OPERATORS_INDEX(X) \
    X(gather, "gather", T, gather, (T, i, T), T, (T, i, T, b)) \
    X(scatter_src, "scatter.src", T, scatter, (T, i, T, T), 0, ()) \
    X(scatter_value, "scatter.value", T, scatter_value, (T, i, T, V), 0, ()) \
    X(scatter_reduce, "scatter.reduce", T, scatter_reduce, (T, i, T, T, s), 0, ()) \
    X(scatter_value_reduce, "scatter.value_reduce", T, scatter_value_reduce, (T, i, T, V, s), 0, ()) \
    X(scatter_add, "scatter_add", T, scatter_add, (T, i, T, T), 0, ()) \
    X(scatter_reduce_two, "scatter_reduce.two", T, scatter_reduce_two, (T, i, T, T, s), T, (T, i, T, T, s, b)) \
    X(index_select, "index_select", T, index_select, (T, i, T), 0, ()) \
    X(index_select_backward, "index_select_backward", T, index_select_backward, (T, I, i, T), 0, ()) \
    X(index_add, "index_add", T, index_add, (T, i, T, T), T, (T, i, T, T, V)) \
    X(index_copy, "index_copy", T, index_copy, (T, i, T, T), 0, ()) \
    X(index_fill_int_Scalar, "index_fill.int_Scalar", T, index_fill_int_Scalar, (T, i, T, V), 0, ()) \
    X(index_fill_int_Tensor, "index_fill.int_Tensor", T, index_fill_int_Tensor, (T, i, T, T), 0, ()) \
    X(index_reduce, "index_reduce", T, index_reduce, (T, i, T, T, s), T, (T, i, T, T, s, b)) \
    X(index_Tensor, "index.Tensor", T, index, (T, L), 0, ()) \
    X(index_put, "index_put", T, index_put, (T, L, T), T, (T, L, T, b)) \
    X(index_put_impl_, "_index_put_impl_", T, _index_put_impl_, (T, L, T), T, (T, L, T, b, b)) \
    X(take, "take", T, take, (T, T), 0, ()) \
    X(put, "put", T, put, (T, T, T), T, (T, T, T, b)) \
    X(take_along_dim, "take_along_dim", T, take_along_dim, (T, T), T, (T, T, V)) \
    X(masked_select, "masked_select", T, masked_select, (T, T), 0, ()) \
    X(masked_scatter, "masked_scatter", T, masked_scatter, (T, T, T), 0, ()) \
    X(where_Scalar, "where.Scalar", T, where_Scalar, (T, V, V), 0, ()) \
    X(where, "where", L, where, (T), 0, ()) \
    X(cat, "cat", T, cat, (L), T, (L, i)) \
    X(stack, "stack", T, stack, (L), T, (L, i)) \
    X(hstack, "hstack", T, hstack, (L), 0, ()) \
    X(vstack, "vstack", T, vstack, (L), 0, ()) \
    X(dstack, "dstack", T, dstack, (L), 0, ()) \
    X(column_stack, "column_stack", T, column_stack, (L), 0, ()) \
    X(row_stack, "row_stack", T, row_stack, (L), 0, ()) \
    X(concat, "concat", T, concat, (L), T, (L, i)) \
    X(constant_pad_nd, "constant_pad_nd", T, constant_pad_nd, (T, I), T, (T, I, V)) \
    X(reflection_pad1d, "reflection_pad1d", T, reflection_pad1d, (T, I), 0, ()) \
    X(reflection_pad1d_backward, "reflection_pad1d_backward", T, reflection_pad1d_backward, (T, T, I), 0, ()) \
    X(reflection_pad2d, "reflection_pad2d", T, reflection_pad2d, (T, I), 0, ()) \
    X(reflection_pad2d_backward, "reflection_pad2d_backward", T, reflection_pad2d_backward, (T, T, I), 0, ()) \
    X(reflection_pad3d, "reflection_pad3d", T, reflection_pad3d, (T, I), 0, ()) \
    X(reflection_pad3d_backward, "reflection_pad3d_backward", T, reflection_pad3d_backward, (T, T, I), 0, ()) \
    X(replication_pad1d, "replication_pad1d", T, replication_pad1d, (T, I), 0, ()) \
    X(replication_pad1d_backward, "replication_pad1d_backward", T, replication_pad1d_backward, (T, T, I), 0, ()) \
    X(replication_pad2d, "replication_pad2d", T, replication_pad2d, (T, I), 0, ()) \
    X(replication_pad2d_backward, "replication_pad2d_backward", T, replication_pad2d_backward, (T, T, I), 0, ()) \
    X(replication_pad3d, "replication_pad3d", T, replication_pad3d, (T, I), 0, ()) \
    X(replication_pad3d_backward, "replication_pad3d_backward", T, replication_pad3d_backward, (T, T, I), 0, ()) \
    X(pad, "pad", T, pad, (T, I), T, (T, I, s, V)) \
    X(embedding, "embedding", T, embedding, (T, T), T, (T, T, i, b, b)) \
    X(embedding_dense_backward, "embedding_dense_backward", T, embedding_dense_backward, (T, T, i, i, b), 0, ()) \
    X(embedding_backward, "embedding_backward", T, embedding_backward, (T, T, i, i, b, b), 0, ()) \
    X(one_hot, "one_hot", T, one_hot, (T), T, (T, i)) \
    X(slice_scatter, "slice_scatter", T, slice_scatter, (T, T), T, (T, T, i, V, V, i)) \
    X(select_scatter, "select_scatter", T, select_scatter, (T, T, i, i), 0, ()) \
    X(diagonal_scatter, "diagonal_scatter", T, diagonal_scatter, (T, T), T, (T, T, i, i, i)) \
    X(as_strided_scatter, "as_strided_scatter", T, as_strided_scatter, (T, T, I, I), T, (T, T, I, I, V)) \
    X(repeat_interleave_Tensor, "repeat_interleave.Tensor", T, repeat_interleave_Tensor, (T), 0, ()) \
    X(repeat_interleave_self_Tensor, "repeat_interleave.self_Tensor", T, repeat_interleave_self_Tensor, (T, T), T, (T, T, V, V)) \
    X(repeat_interleave_self_int, "repeat_interleave.self_int", T, repeat_interleave, (T, i), T, (T, i, V, V)) \
    X(searchsorted_Tensor, "searchsorted.Tensor", T, searchsorted, (T, T), T, (T, T, b, b, V, V)) \
    X(searchsorted_Scalar, "searchsorted.Scalar", T, searchsorted_Scalar, (T, V), 0, ()) \
    X(bucketize_Tensor, "bucketize.Tensor", T, bucketize, (T, T), T, (T, T, b, b)) \
    X(bucketize_Scalar, "bucketize.Scalar", T, bucketize_Scalar, (V, T), 0, ())

#define OPD_C_T opd_tensor *
#define OPD_C_i int64_t
#define OPD_C_d double
#define OPD_C_b bool
#define OPD_C_s const char *
#define OPD_C_I opd_ints
#define OPD_C_F opd_floats
#define OPD_C_L opd_tensors
#define OPD_C_D opd_device
#define OPD_C_G opd_generator *
#define OPD_C_V opd_value
#define OPD_W_T opd_value_tensor
#define OPD_W_i opd_value_int
#define OPD_W_d opd_value_float
#define OPD_W_b opd_value_bool
#define OPD_W_s opd_value_str
#define OPD_W_I opd_value_of_ints
#define OPD_W_F opd_value_of_floats
#define OPD_W_L opd_value_of_tensors
#define OPD_W_D opd_value_device
#define OPD_W_G opd_value_generator
#define OPD_W_V opd_value_same
#define OPD_PARAMS_1(A) OPD_C_##A a
#define OPD_PARAMS_2(A, B) OPD_C_##A a, OPD_C_##B b
#define OPD_PARAMS_3(A, B, C) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c
#define OPD_PARAMS_4(A, B, C, D) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d
#define OPD_PARAMS_5(A, B, C, D, E) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e
#define OPD_PARAMS_6(A, B, C, D, E, F) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f
#define OPD_PARAMS_7(A, B, C, D, E, F, G) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f, OPD_C_##G g
#define OPD_PARAMS_8(A, B, C, D, E, F, G, H) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f, OPD_C_##G g, OPD_C_##H h
#define OPD_PARAMS_9(A, B, C, D, E, F, G, H, I) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f, OPD_C_##G g, OPD_C_##H h, OPD_C_##I i
#define OPD_PARAMS_10(A, B, C, D, E, F, G, H, I, J) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f, OPD_C_##G g, OPD_C_##H h, OPD_C_##I i, OPD_C_##J j
#define OPD_PARAMS_11(A, B, C, D, E, F, G, H, I, J, K) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f, OPD_C_##G g, OPD_C_##H h, OPD_C_##I i, OPD_C_##J j, OPD_C_##K k
#define OPD_PARAMS_12(A, B, C, D, E, F, G, H, I, J, K, L) OPD_C_##A a, OPD_C_##B b, OPD_C_##C c, OPD_C_##D d, OPD_C_##E e, OPD_C_##F f, OPD_C_##G g, OPD_C_##H h, OPD_C_##I i, OPD_C_##J j, OPD_C_##K k, OPD_C_##L l
#define OPD_FILL_1(A) v[0] = OPD_W_##A(a);
#define OPD_FILL_2(A, B) OPD_FILL_1(A) v[1] = OPD_W_##B(b);
#define OPD_FILL_3(A, B, C) OPD_FILL_2(A, B) v[2] = OPD_W_##C(c);
#define OPD_FILL_4(A, B, C, D) OPD_FILL_3(A, B, C) v[3] = OPD_W_##D(d);
#define OPD_FILL_5(A, B, C, D, E) OPD_FILL_4(A, B, C, D) v[4] = OPD_W_##E(e);
#define OPD_FILL_6(A, B, C, D, E, F) OPD_FILL_5(A, B, C, D, E) v[5] = OPD_W_##F(f);
#define OPD_FILL_7(A, B, C, D, E, F, G) OPD_FILL_6(A, B, C, D, E, F) v[6] = OPD_W_##G(g);
#define OPD_FILL_8(A, B, C, D, E, F, G, H) OPD_FILL_7(A, B, C, D, E, F, G) v[7] = OPD_W_##H(h);
#define OPD_FILL_9(A, B, C, D, E, F, G, H, I) OPD_FILL_8(A, B, C, D, E, F, G, H) v[8] = OPD_W_##I(i);
#define OPD_FILL_10(A, B, C, D, E, F, G, H, I, J) OPD_FILL_9(A, B, C, D, E, F, G, H, I) v[9] = OPD_W_##J(j);
#define OPD_FILL_11(A, B, C, D, E, F, G, H, I, J, K) OPD_FILL_10(A, B, C, D, E, F, G, H, I, J) v[10] = OPD_W_##K(k);
#define OPD_FILL_12(A, B, C, D, E, F, G, H, I, J, K, L) OPD_FILL_11(A, B, C, D, E, F, G, H, I, J, K) v[11] = OPD_W_##L(l);
#define OPD_JOIN(a, b) OPD_JOIN_(a, b)
#define OPD_JOIN_(a, b) a##b
#define OPD_SIG_1(A) #A
#define OPD_SIG_2(A, B) #A #B
#define OPD_SIG_3(A, B, C) #A #B #C
#define OPD_SIG_4(A, B, C, D) #A #B #C #D
#define OPD_SIG_5(A, B, C, D, E) #A #B #C #D #E
#define OPD_SIG_6(A, B, C, D, E, F) #A #B #C #D #E #F
#define OPD_SIG_7(A, B, C, D, E, F, G) #A #B #C #D #E #F #G
#define OPD_SIG_8(A, B, C, D, E, F, G, H) #A #B #C #D #E #F #G #H
#define OPD_SIG_9(A, B, C, D, E, F, G, H, I) #A #B #C #D #E #F #G #H #I
#define OPD_SIG_10(A, B, C, D, E, F, G, H, I, J) #A #B #C #D #E #F #G #H #I #J
#define OPD_SIG_11(A, B, C, D, E, F, G, H, I, J, K) #A #B #C #D #E #F #G #H #I #J #K
#define OPD_SIG_12(A, B, C, D, E, F, G, H, I, J, K, L) #A #B #C #D #E #F #G #H #I #J #K #L
/* OPD_TYPED(T, myadd, "myops::myadd", (T, T)) defines `opd_tensor *myadd(opd_tensor *a, opd_tensor *b)`, a typed function for an
   operator: looked up, and its signature checked against the schema, at the first call and never again.  The first word is
   the kind of result, the letters are those above. */
#define OPD_TYPED(kind, fn, name, types) OPD_TYPED_##kind(fn, name, types)
#define OPD_LOOKED_UP(kind, name, types) opd_op_typed(&op, name, #kind OPD_JOIN(OPD_SIG_, OPD_COUNT types) types)
#define OPD_TYPED_0(fn, name, types)
#define OPD_TYPED_T(fn, name, types)                                                       \
    OPD_INLINE opd_tensor *fn(OPD_JOIN(OPD_PARAMS_, OPD_COUNT types) types) {              \
        static opd_op *op; opd_value v[OPD_COUNT types];                                    \
        OPD_JOIN(OPD_FILL_, OPD_COUNT types) types                                         \
        return opd_call_op(OPD_LOOKED_UP(T, name, types), v, OPD_COUNT types);             \
    }
#define OPD_TYPED_N(fn, name, types)                                                       \
    OPD_INLINE int fn(opd_tensor **rets, OPD_JOIN(OPD_PARAMS_, OPD_COUNT types) types) {   \
        static opd_op *op; opd_value v[OPD_COUNT types];                                    \
        OPD_JOIN(OPD_FILL_, OPD_COUNT types) types                                         \
        return opd_call_tensors(OPD_LOOKED_UP(N, name, types), rets, v, OPD_COUNT types);  \
    }
#define OPD_TYPED_V(fn, name, types)                                                       \
    OPD_INLINE opd_value fn(OPD_JOIN(OPD_PARAMS_, OPD_COUNT types) types) {                \
        static opd_op *op; opd_value v[OPD_COUNT types]; opd_value r = opd_value_none();    \
        OPD_JOIN(OPD_FILL_, OPD_COUNT types) types                                         \
        (void)opd_call_all(OPD_LOOKED_UP(V, name, types), &r, v, OPD_COUNT types); return r; \
    }
#define OPD_TYPED_L(fn, name, types)                                                       \
    OPD_INLINE opd_tensors fn(OPD_JOIN(OPD_PARAMS_, OPD_COUNT types) types) {              \
        static opd_op *op; opd_value v[OPD_COUNT types]; opd_value r = opd_value_none();    \
        OPD_JOIN(OPD_FILL_, OPD_COUNT types) types                                         \
        (void)opd_call_all(OPD_LOOKED_UP(L, name, types), &r, v, OPD_COUNT types);         \
        return opd_tensors_of(r.u.tensors, r.n);                                           \
    }
#define OPD_WRAPPERS(card, qual, kind, fn, types, full_kind, full_types) \
    OPD_TYPED_##kind(opd_##fn, "aten::" qual, types) OPD_TYPED_##full_kind(opd_##fn##_full, "aten::" qual, full_types)
#ifdef __cplusplus
extern "C" {
#endif
OPD_OPERATORS(OPD_WRAPPERS)

#define OPD_ENUM(card, qual, kind, fn, types, full_kind, full_types) OPD_OP_##card,
typedef enum opd_op_id { OPD_OPERATORS(OPD_ENUM) OPD_OP_COUNT } opd_op_id;
#undef OPD_ENUM
/* The handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);
#ifdef __cplusplus
}
#endif

#endif /* OPDISPATCH_H */
//======================================================================================================================
//  Stop here if you are only interested in the API: what follows is the implementation.
//======================================================================================================================
#if defined(OPDISPATCH_IMPLEMENTATION) && !defined(OPDI_IMPLEMENTED)
#define OPDI_IMPLEMENTED

//----------------------------------------------------------------------------------------------------------------------
//  >>platform   allocation, atomics, threads, errors, log, scopes' stack
//
//  What the rest stands on: the C library and, unless OPD_NO_THREADS, pthreads.  One private function allocates
//  (opdi_alloc); one structure per thread (opdi_thread) holds everything that is thread-local.  Knows nothing of
//  tensors but their release.
//----------------------------------------------------------------------------------------------------------------------

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <float.h>
#include <limits.h>

#if defined(__TINYC__) && !defined(OPD_NO_THREADS)
#define OPD_NO_THREADS
#endif
#if defined(__TINYC__) && !defined(OPD_NO_SIMD)
#define OPD_NO_SIMD
#endif
#if !defined(OPD_NO_THREADS)
#include <pthread.h>
#include <unistd.h>
#endif
#if defined(__linux__) && !defined(__TINYC__)
#include <sys/mman.h>
#endif

#if defined(OPD_MALLOC) != defined(OPD_FREE)
#error "define OPD_MALLOC(size) and OPD_FREE(pointer) both or neither"
#endif
#if !defined(OPD_MALLOC)
#define OPD_MALLOC(size) malloc(size)
#define OPD_FREE(pointer) free(pointer)
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPDI_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OPDI_SANITIZED
#endif
#endif
#if defined(OPDI_SANITIZED) && !defined(OPD_NO_CACHE)
#define OPD_NO_CACHE
#endif

#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_LIKELY(x) __builtin_expect(!!(x), 1)
#define OPDI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OPDI_NOINLINE __attribute__((noinline))
#define OPDI_FORCE_INLINE __attribute__((always_inline)) inline
#define OPDI_TLS __thread __attribute__((tls_model("initial-exec")))
#define OPDI_LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define OPDI_ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define OPDI_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define OPDI_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define OPDI_ADD(p, v) __atomic_add_fetch(p, v, __ATOMIC_RELAXED)
#define OPDI_SUB(p, v) __atomic_sub_fetch(p, v, __ATOMIC_ACQ_REL)
#else
#define OPDI_LIKELY(x) (x)
#define OPDI_UNLIKELY(x) (x)
#define OPDI_NOINLINE
#define OPDI_FORCE_INLINE inline
#define OPDI_TLS
#define OPDI_LOAD(p) (*(p))
#define OPDI_ACQUIRE(p) (*(p))
#define OPDI_STORE(p, v) (*(p) = (v))
#define OPDI_PUBLISH(p, v) (*(p) = (v))
#define OPDI_ADD(p, v) (*(p) += (v))
#define OPDI_SUB(p, v) (*(p) -= (v))
#endif

#if defined(OPD_NO_THREADS)
typedef int opdi_mutex;
#define OPDI_MUTEX_INIT 0
#define opdi_lock(m) ((void)(m))
#define opdi_unlock(m) ((void)(m))
#else
typedef pthread_mutex_t opdi_mutex;
#define OPDI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define opdi_lock(m) ((void)pthread_mutex_lock(m))
#define opdi_unlock(m) ((void)pthread_mutex_unlock(m))
#endif

/* Code between these is not on any hot path: gcc spends half the time on it. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__) && defined(__OPTIMIZE__)
#define OPDI_COLD_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize (\"Og\")")
#define OPDI_COLD_END _Pragma("GCC pop_options")
#else
#define OPDI_COLD_BEGIN
#define OPDI_COLD_END
#endif

#define OPDI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define OPDI_MAX(a, b) ((a) > (b) ? (a) : (b))

/* What a kernel may change and the dispatcher puts back. */
typedef struct opdi_state {
    uint64_t include, allow;     /* functionality bits: always in the set of a call; not excluded from it */
    int32_t no_grad;
    int32_t spare;
} opdi_state;

#define OPDI_SMALL_CLASSES 64                     /* 16-byte steps to 1 KiB */
#define OPDI_CLASSES (OPDI_SMALL_CLASSES + 24)    /* then four steps a doubling to 64 KiB */
typedef struct opdi_free_block { struct opdi_free_block *next; } opdi_free_block;

/* The thread's defaults: what is included and excluded when nobody said anything (DispatchKeySet.h). */
#define OPDI_DEFAULT_INCLUDE (OPD_BIT_OF(OPD_F_BACKEND_SELECT) | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW))
#define OPDI_DEFAULT_ALLOW (~OPD_BIT_OF(OPD_F_AUTOCAST))

typedef struct opdi_thread {
    opdi_state state;
    opd_code error;              /* OPD_OK: none pending */
    int32_t depth;               /* nested calls */
    int32_t scope_depth;
    int32_t warned_root;
    opd_call *current;           /* innermost running call */
    uintptr_t *handles;          /* the scope stack: tensors; with bit 0 set, opdi_block */
    int64_t top, cap;            /* handles in use and allocated */
    int64_t scope_mark;          /* where the innermost scope begins */
    uint64_t sequence;           /* autograd: number of the next node */
    opd_node *node;              /* autograd: node whose formula is running */
    opdi_free_block *free_lists[OPDI_CLASSES];
    int64_t cached;              /* bytes in free_lists */
    int64_t live_delta;          /* bytes handed out and not yet added to the global count */
    int64_t allocations;
    struct opdi_thread *next;    /* in the list of all threads */
    char message[2048];
} opdi_thread;

static opdi_thread opdi_main_thread;              /* the first thread's; no allocation */
static int opdi_main_taken;
static OPDI_TLS opdi_thread *opdi_thread_self;

OPDI_NOINLINE static opdi_thread *opdi_thread_make(void);
static inline opdi_thread *opdi_self(void) {
    opdi_thread *th = opdi_thread_self;
    return OPDI_LIKELY(th != NULL) ? th : opdi_thread_make();
}

static void opdi_log_default(void *user, int is_error, const char *text) {
    (void)user;
    fprintf(stderr, "opdispatch: %s%s\n", is_error ? "error: " : "warning: ", text);
}

static struct { opd_log_fn fn; void *user; } opdi_log = {opdi_log_default, NULL};

void opd_log_set(opd_log_fn fn, void *user) {
    opdi_log.fn = fn ? fn : opdi_log_default;
    opdi_log.user = user;
}

void opd_warn(const char *format, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    opdi_log.fn(opdi_log.user, 0, text);
}

//-- counting leading zeros: the highest set bit of x, x != 0
static inline int opdi_top_bit(uint64_t x) {
#if defined(__GNUC__) && !defined(__TINYC__)
    return 63 - __builtin_clzll(x);
#else
    int n = 0;
    if (x >> 32) { n += 32; x >>= 32; }
    if (x >> 16) { n += 16; x >>= 16; }
    if (x >> 8) { n += 8; x >>= 8; }
    if (x >> 4) { n += 4; x >>= 4; }
    if (x >> 2) { n += 2; x >>= 2; }
    return n + (int)(x >> 1);
#endif
}
static inline int opdi_low_bit(uint64_t x) { return opdi_top_bit(x & (0 - x)); }

//-- threads ------------------------------------------------------------------------------------------------------

static opdi_mutex opdi_threads_lock = OPDI_MUTEX_INIT;
static opdi_thread *opdi_all_threads;
static int64_t opdi_live_total, opdi_live_peak, opdi_gone_allocations;

static void opdi_scope_unwind(opdi_thread *th, int64_t mark);
static void opdi_cache_drain(opdi_thread *th);
static void opdi_live_flush(opdi_thread *th);

static void opdi_report_pending(opdi_thread *th) {
    if (th->error != OPD_OK) {
        th->error = OPD_OK;
        opdi_log.fn(opdi_log.user, 1, th->message);
    }
}

static void opdi_raw_free(void *p, size_t n);

//-- A thread ends: what it forgot is reported and given back.
static void opdi_thread_end(void *arg) {
    opdi_thread *th = (opdi_thread *)arg;
    opdi_thread **p;
    opdi_thread_self = th;
    opdi_report_pending(th);
    opdi_scope_unwind(th, 0);
    if (th->handles) { OPD_FREE(th->handles); }
    th->handles = NULL;
    th->cap = 0;
    opdi_cache_drain(th);
    opdi_live_flush(th);
    opdi_lock(&opdi_threads_lock);
    for (p = &opdi_all_threads; *p; p = &(*p)->next) {
        if (*p == th) { *p = th->next; break; }
    }
    opdi_gone_allocations += th->allocations;
    opdi_unlock(&opdi_threads_lock);
    opdi_thread_self = NULL;
    if (th != &opdi_main_thread) { OPD_FREE(th); }
    else { memset(th, 0, sizeof *th); OPDI_PUBLISH(&opdi_main_taken, 0); }
}

#if !defined(OPD_NO_THREADS)
static pthread_key_t opdi_thread_key;
static pthread_once_t opdi_thread_once = PTHREAD_ONCE_INIT;
static void opdi_thread_key_make(void) { (void)pthread_key_create(&opdi_thread_key, opdi_thread_end); }
#endif

//-- The program ends: an error nobody looked at is reported once.
static void opdi_at_exit(void) {
    if (opdi_thread_self) { opdi_report_pending(opdi_thread_self); }
}

OPDI_NOINLINE static opdi_thread *opdi_thread_make(void) {
    opdi_thread *th;
    static int at_exit_done;
    opdi_lock(&opdi_threads_lock);
    if (!opdi_main_taken) {
        opdi_main_taken = 1;
        th = &opdi_main_thread;
        if (!at_exit_done) { at_exit_done = 1; (void)atexit(opdi_at_exit); }
    } else {
        th = (opdi_thread *)OPD_MALLOC(sizeof *th);
    }
    if (!th) {                                    /* no memory for a thread's state: all such threads share one */
        static opdi_thread emergency;
        opdi_unlock(&opdi_threads_lock);
        emergency.error = OPD_ERROR_MEMORY;
        strcpy(emergency.message, "out of memory: no room for the state of a thread");
        return &emergency;
    }
    memset(th, 0, sizeof *th);
    th->state.include = OPDI_DEFAULT_INCLUDE;
    th->state.allow = OPDI_DEFAULT_ALLOW;
    th->next = opdi_all_threads;
    opdi_all_threads = th;
    opdi_unlock(&opdi_threads_lock);
#if !defined(OPD_NO_THREADS)
    (void)pthread_once(&opdi_thread_once, opdi_thread_key_make);
    if (th != &opdi_main_thread) { (void)pthread_setspecific(opdi_thread_key, th); }
#endif
    opdi_thread_self = th;
    return th;
}

//-- errors -------------------------------------------------------------------------------------------------------

bool opd_ok(void) { return opdi_self()->error == OPD_OK; }
opd_code opd_error_code(void) { return opdi_self()->error; }
const char *opd_error_message(void) {
    opdi_thread *th = opdi_self();
    return th->error != OPD_OK ? th->message : "";
}
void opd_error_clear(void) { opdi_self()->error = OPD_OK; }

static const char *opdi_call_name(const opd_call *call);

int opd_fail(opd_code code, const char *format, ...) {
    opdi_thread *th = opdi_self();
    va_list ap;
    int n = 0;
    if (th->error != OPD_OK) { return -1; }       /* the first one sticks */
    if (th->current) { n = snprintf(th->message, sizeof th->message, "%s: ", opdi_call_name(th->current)); }
    if (n < 0 || n >= (int)sizeof th->message) { n = 0; }
    va_start(ap, format);
    vsnprintf(th->message + n, sizeof th->message - (size_t)n, format, ap);
    va_end(ap);
    th->error = code == OPD_OK ? OPD_ERROR_USER : code;
    return -1;
}

//-- Adds to the text of the pending error.
static int opdi_fail_more(const char *format, ...) OPD_PRINTF_LIKE(1, 2);
static int opdi_fail_more(const char *format, ...) {
    opdi_thread *th = opdi_self();
    size_t n = strlen(th->message);
    va_list ap;
    va_start(ap, format);
    vsnprintf(th->message + n, sizeof th->message - n, format, ap);
    va_end(ap);
    return -1;
}

int opd_error_mark(void) { return opdi_self()->error == OPD_OK ? 1 : 0; }

opd_code opd_error_rewind(int mark) {
    opdi_thread *th = opdi_self();
    opd_code code = th->error;
    if (!mark) { return OPD_OK; }                 /* it was pending before */
    th->error = OPD_OK;
    return code;
}

int opd_finish(void) {
    opdi_thread *th = opdi_self();
    int failed = th->error != OPD_OK;
    opdi_report_pending(th);
    opdi_scope_unwind(th, 0);
    th->scope_depth = 0;
    th->scope_mark = 0;
    return failed;
}

//-- allocation ---------------------------------------------------------------------------------------------------
//
//  Blocks up to 64 KiB come from the thread's free lists by size class, larger ones from shared lists, so that a
//  result of a size just freed costs no page faults.  Who frees says the size, so blocks have no headers.

#define OPDI_THREAD_CACHE ((int64_t)8 << 20)      /* bytes a thread keeps */
#define OPDI_LARGE_CACHE ((int64_t)512 << 20)     /* bytes all threads keep together */
#define OPDI_MEDIUM ((size_t)65536)
#define OPDI_ALIGN ((size_t)64)
#define OPDI_HUGE ((size_t)2 << 20)

static int64_t opdi_fail_count, opdi_fail_seen;   /* opd_memory_fail_at: countdown, and allocations since */
static int opdi_fail_on, opdi_fail_forever;

//-- Size class of n bytes (1 <= n <= OPDI_MEDIUM) and the bytes of a class.
static inline int opdi_class_of(size_t n) {
    int e;
    if (n <= 1024) { return (int)((n - 1) >> 4); }
    e = opdi_top_bit((uint64_t)n - 1);
    return OPDI_SMALL_CLASSES + (e - 10) * 4 + (int)(((n - 1) >> (e - 2)) & 3);
}
static inline size_t opdi_class_bytes(int c) {
    int e;
    if (c < OPDI_SMALL_CLASSES) { return (size_t)(c + 1) << 4; }
    e = 10 + (c - OPDI_SMALL_CLASSES) / 4;
    return ((size_t)1 << e) + ((size_t)((c - OPDI_SMALL_CLASSES) % 4 + 1) << (e - 2));
}
//-- Larger blocks: eight steps a doubling.
static inline size_t opdi_large_bytes(size_t n) {
    size_t step = (size_t)1 << (opdi_top_bit((uint64_t)n - 1) - 3);
    return (n + step - 1) & ~(step - 1);
}
static inline int opdi_large_class(size_t rounded) {
    int e = opdi_top_bit((uint64_t)rounded - 1);
    return ((e - 16) * 8 + (int)(((rounded - 1) >> (e - 3)) & 7)) % (32 * 8);
}

//-- Blocks over 1 KiB are aligned to a cache line, very large ones to a huge page; the word before one is malloc's.
static void *opdi_raw_alloc(size_t n) {
    size_t align = n >= 2 * OPDI_HUGE ? OPDI_HUGE : OPDI_ALIGN;
    char *raw, *p;
    if (n <= 1024) { return OPD_MALLOC(n); }
    if (n > SIZE_MAX / 2) { return NULL; }
    raw = (char *)OPD_MALLOC(n + align + sizeof(void *));
    if (!raw) { return NULL; }
    p = (char *)(((uintptr_t)raw + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1));
    memcpy(p - sizeof(void *), &raw, sizeof raw);
#if defined(MADV_HUGEPAGE) && !defined(OPD_NO_CACHE)
    if (align == OPDI_HUGE) { (void)madvise(p, n & ~(OPDI_HUGE - 1), MADV_HUGEPAGE); }
#endif
    return p;
}

static void opdi_raw_free(void *p, size_t n) {
    char *raw;
    if (n <= 1024) { OPD_FREE(p); return; }
    memcpy(&raw, (char *)p - sizeof(void *), sizeof raw);
    OPD_FREE(raw);
}

static void opdi_live_flush(opdi_thread *th) {
    int64_t total = OPDI_ADD(&opdi_live_total, th->live_delta), peak = OPDI_LOAD(&opdi_live_peak);
    th->live_delta = 0;
    if (total > peak) { OPDI_STORE(&opdi_live_peak, total); }
}

OPDI_NOINLINE static void *opdi_out_of_memory(size_t n) {
    (void)opd_fail(OPD_ERROR_MEMORY, "out of memory: an allocation of %llu bytes failed", (unsigned long long)n);
    return NULL;
}

//-- True when a test wants this allocation to fail.
OPDI_NOINLINE static bool opdi_fail_now(void) {
    int64_t left;
    (void)OPDI_ADD(&opdi_fail_seen, 1);
    if (OPDI_LOAD(&opdi_fail_count) <= 0) { return OPDI_LOAD(&opdi_fail_count) < 0; }
    left = OPDI_ADD(&opdi_fail_count, -1);
    if (left == 0 && opdi_fail_forever) { OPDI_STORE(&opdi_fail_count, -1); }
    return left == 0;
}

#if !defined(OPD_NO_CACHE)
static struct { opdi_mutex lock; int64_t cached; opdi_free_block *lists[32 * 8]; } opdi_large = {
    OPDI_MUTEX_INIT, 0, {NULL}};

static void *opdi_large_take(size_t rounded) {
    opdi_free_block *b = NULL;
    int c = opdi_large_class(rounded);
    opdi_lock(&opdi_large.lock);
    if (opdi_large.lists[c]) {
        b = opdi_large.lists[c];
        opdi_large.lists[c] = b->next;
        opdi_large.cached -= (int64_t)rounded;
    }
    opdi_unlock(&opdi_large.lock);
    return b;
}

static bool opdi_large_give(void *p, size_t rounded) {
    bool kept = false;
    opdi_lock(&opdi_large.lock);
    if (opdi_large.cached + (int64_t)rounded <= OPDI_LARGE_CACHE) {
        opdi_free_block *b = (opdi_free_block *)p;
        int c = opdi_large_class(rounded);
        b->next = opdi_large.lists[c];
        opdi_large.lists[c] = b;
        opdi_large.cached += (int64_t)rounded;
        kept = true;
    }
    opdi_unlock(&opdi_large.lock);
    return kept;
}
#endif

//-- n bytes, or NULL with the error recorded.  Free with the same n.  The only function that allocates.
static inline void *opdi_alloc(size_t n) {
    opdi_thread *th = opdi_self();
    void *p = NULL;
    th->allocations++;
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_fail_on)) && opdi_fail_now()) { return opdi_out_of_memory(n); }
    if (n == 0) { n = 1; }
#if !defined(OPD_NO_CACHE)
    if (OPDI_LIKELY(n <= OPDI_MEDIUM)) {
        int c = opdi_class_of(n);
        opdi_free_block *b = th->free_lists[c];
        n = opdi_class_bytes(c);
        if (OPDI_LIKELY(b != NULL)) {
            th->free_lists[c] = b->next;
            th->cached -= (int64_t)n;
            p = b;
        }
    } else if (n <= SIZE_MAX / 4) {
        n = opdi_large_bytes(n);
        p = opdi_large_take(n);
    }
#endif
    if (!p) { p = opdi_raw_alloc(n); }
    if (OPDI_UNLIKELY(!p)) { return opdi_out_of_memory(n); }
    th->live_delta += (int64_t)n;
    if (OPDI_UNLIKELY(th->live_delta > 65536)) { opdi_live_flush(th); }
    return p;
}

static inline void opdi_free(void *p, size_t n) {
    opdi_thread *th;
    if (!p) { return; }
    th = opdi_self();
    if (n == 0) { n = 1; }
#if !defined(OPD_NO_CACHE)
    if (OPDI_LIKELY(n <= OPDI_MEDIUM)) {
        int c = opdi_class_of(n);
        n = opdi_class_bytes(c);
        th->live_delta -= (int64_t)n;
        if (OPDI_LIKELY(th->cached + (int64_t)n <= OPDI_THREAD_CACHE)) {
            opdi_free_block *b = (opdi_free_block *)p;
            b->next = th->free_lists[c];
            th->free_lists[c] = b;
            th->cached += (int64_t)n;
            return;
        }
    } else {
        n = opdi_large_bytes(n);
        th->live_delta -= (int64_t)n;
        if (th->live_delta < -65536) { opdi_live_flush(th); }
        if (opdi_large_give(p, n)) { return; }
    }
#else
    th->live_delta -= (int64_t)n;
#endif
    opdi_raw_free(p, n);
}

static void opdi_cache_drain(opdi_thread *th) {
    int c;
    for (c = 0; c < OPDI_CLASSES; c++) {
        while (th->free_lists[c]) {
            opdi_free_block *b = th->free_lists[c];
            th->free_lists[c] = b->next;
            opdi_raw_free(b, opdi_class_bytes(c));
        }
    }
    th->cached = 0;
}

void opd_memory_trim(void) {
    opdi_cache_drain(opdi_self());
#if !defined(OPD_NO_CACHE)
    {
        int e, s;
        opdi_lock(&opdi_large.lock);
        for (e = 0; e < 32; e++) {
            for (s = 0; s < 8; s++) {
                opdi_free_block **list = &opdi_large.lists[e * 8 + s];
                while (*list) {
                    opdi_free_block *b = *list;
                    *list = b->next;
                    opdi_raw_free(b, OPDI_MEDIUM + 1);
                }
            }
        }
        opdi_large.cached = 0;
        opdi_unlock(&opdi_large.lock);
    }
#endif
}

opd_memory opd_memory_stats(void) {
    opd_memory m;
    opdi_thread *th = opdi_self();
    opdi_live_flush(th);
    memset(&m, 0, sizeof m);
    opdi_lock(&opdi_threads_lock);
    m.live = OPDI_LOAD(&opdi_live_total);
    m.allocations = opdi_gone_allocations;
    for (th = opdi_all_threads; th; th = th->next) {
        m.cached += OPDI_LOAD(&th->cached);
        m.allocations += OPDI_LOAD(&th->allocations);
        if (th != opdi_thread_self) { m.live += OPDI_LOAD(&th->live_delta); }
    }
    opdi_unlock(&opdi_threads_lock);
    m.peak = OPDI_LOAD(&opdi_live_peak);
#if !defined(OPD_NO_CACHE)
    opdi_lock(&opdi_large.lock);
    m.cached += opdi_large.cached;
    opdi_unlock(&opdi_large.lock);
#endif
    return m;
}

void opd_memory_reset_peak(void) {
    opdi_live_flush(opdi_self());
    OPDI_STORE(&opdi_live_peak, OPDI_LOAD(&opdi_live_total));
}

int64_t opd_memory_fail_at(int64_t n, bool forever) {
    int64_t seen = OPDI_LOAD(&opdi_fail_seen);
    OPDI_STORE(&opdi_fail_seen, 0);
    OPDI_STORE(&opdi_fail_count, n);
    OPDI_STORE(&opdi_fail_forever, forever);
    OPDI_STORE(&opdi_fail_on, n > 0);
    return seen;
}

//-- scopes -------------------------------------------------------------------------------------------------------
//
//  The thread's stack of handles holds one reference each.  A handle is a tensor, or with bit 0 set a block of memory
//  (list results, strings); bit 1 marks one that opd_scope_return handed to the enclosing scope.

#define OPDI_HANDLE_BLOCK ((uintptr_t)1)
#define OPDI_HANDLE_UP ((uintptr_t)2)
typedef struct opdi_block { size_t bytes; double align; } opdi_block;      /* in front of the block's contents */

static inline void opdi_drop(opd_tensor *t);

//-- Room for n more handles.  Grown with the raw allocator: the stack is the thread's, not the caller's.
OPDI_NOINLINE static int opdi_scope_grow(opdi_thread *th, int64_t n) {
    int64_t cap = th->cap ? th->cap * 2 : 256;
    uintptr_t *p;
    while (cap < th->top + n) { cap *= 2; }
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_fail_on)) && opdi_fail_now()) { p = NULL; }
    else { p = (uintptr_t *)OPD_MALLOC((size_t)cap * sizeof *p); }
    if (!p) { (void)opdi_out_of_memory((size_t)cap * sizeof *p); return -1; }
    if (th->top) { memcpy(p, th->handles, (size_t)th->top * sizeof *p); }
    if (th->handles) { OPD_FREE(th->handles); }
    th->handles = p;
    th->cap = cap;
    return 0;
}
static inline int opdi_scope_reserve(opdi_thread *th, int64_t n) {
    return OPDI_LIKELY(th->top + n <= th->cap) ? 0 : opdi_scope_grow(th, n);
}

#define OPDI_ROOT_WARNING 1048576                 /* handles, a power of two; looked at where it divides their number */
OPDI_NOINLINE static void opdi_root_warn(opdi_thread *th, const opd_op *op);

//-- Pushes a handle for which opdi_scope_reserve made room: a result of op, or of none.
static inline void opdi_push_of(opdi_thread *th, opd_tensor *t, const opd_op *op) {
    th->handles[th->top++] = (uintptr_t)t;
    if (OPDI_UNLIKELY((th->top & (OPDI_ROOT_WARNING - 1)) == 0)) { opdi_root_warn(th, op); }
}
static inline void opdi_push(opdi_thread *th, opd_tensor *t) { opdi_push_of(th, t, NULL); }

//-- Gives a reference to the innermost scope; on failure it is dropped and NULL comes back.
static opd_tensor *opdi_own(opd_tensor *t) {
    opdi_thread *th = opdi_self();
    if (!t) { return NULL; }
    if (opdi_scope_reserve(th, 1)) { opdi_drop(t); return NULL; }
    opdi_push(th, t);
    return t;
}

//-- A block of memory that lives as long as the innermost scope.
static void *opdi_scope_alloc(size_t n) {
    opdi_thread *th = opdi_self();
    opdi_block *b;
    if (opdi_scope_reserve(th, 1) || n > SIZE_MAX / 2) { return NULL; }
    b = (opdi_block *)opdi_alloc(n + sizeof *b);
    if (!b) { return NULL; }
    b->bytes = n + sizeof *b;
    th->handles[th->top++] = (uintptr_t)b | OPDI_HANDLE_BLOCK;
    return b + 1;
}

static void opdi_handle_release(uintptr_t h) {
    uintptr_t p = h & ~(OPDI_HANDLE_BLOCK | OPDI_HANDLE_UP);
    if (h & OPDI_HANDLE_BLOCK) {
        opdi_block *b = (opdi_block *)p;
        opdi_free(b, b->bytes);
    } else {
        opdi_drop((opd_tensor *)p);
    }
}

//-- Releases the handles above mark, but those marked "up", which move down to it.
static void opdi_scope_unwind(opdi_thread *th, int64_t mark) {
    int64_t i, keep = mark;
    for (i = mark; i < th->top; i++) {
        uintptr_t h = th->handles[i];
        if (h & OPDI_HANDLE_UP) {
            th->handles[i] = th->handles[keep];
            th->handles[keep++] = h & ~OPDI_HANDLE_UP;
        }
    }
    while (th->top > keep) { opdi_handle_release(th->handles[--th->top]); }
}

opd_scope opd_scope_open(void) {
    opdi_thread *th = opdi_self();
    opd_scope s;
    s.mark = th->top;
    s.outer = th->scope_mark;
    s.depth = ++th->scope_depth;
    s.open = 1;
    th->scope_mark = th->top;
    return s;
}

static int opdi_call_scope_depth(const opd_call *call);

void opd_scope_close(opd_scope *scope) {
    opdi_thread *th = opdi_self();
    if (!scope->open) { return; }
    if (th->current && scope->depth <= opdi_call_scope_depth(th->current)) {
        (void)opd_fail(OPD_ERROR_KERNEL, "a kernel may not close a scope that was opened outside it");
        return;                                   /* still open: its owner will close it */
    }
    scope->open = 0;
    if (scope->depth > th->scope_depth) { return; }      /* closed already, by one around it */
    opdi_scope_unwind(th, scope->mark);
    th->scope_depth = scope->depth - 1;
    th->scope_mark = scope->outer;
}

opd_scope_info opd_scope_stats(void) {
    opdi_thread *th = opdi_self();
    opd_scope_info info;
    info.depth = th->scope_depth;
    info.handles = th->top;
    return info;
}

/* A bump allocator: many small things that live and die together.  All zero is an empty arena. */
typedef struct opdi_arena_block {
    struct opdi_arena_block *next;
    size_t size;                                  /* as handed to opdi_alloc */
} opdi_arena_block;

typedef struct opdi_arena {
    opdi_arena_block *blocks;                     /* newest first */
    char *at, *end;                               /* free part of the newest */
} opdi_arena;

/* Takes a new block with room for n bytes.  0, or -1 with the error recorded. */
static int opdi_arena_grow(opdi_arena *a, size_t n) {
    const size_t head = sizeof(opdi_arena_block);
    size_t size = n < 1024 - head - 8 ? 1024 : n + head + 8;
    opdi_arena_block *b;
    if (size < n) { opd_fail(OPD_ERROR_MEMORY, "out of memory: %zu bytes asked for", n); return -1; }
    b = (opdi_arena_block *)opdi_alloc(size);
    if (b == NULL) return -1;
    b->next = a->blocks;
    b->size = size;
    a->blocks = b;
    a->at = (char *)b + head;
    a->end = (char *)b + size;
    return 0;
}

/* n bytes, aligned to 8, not cleared.  NULL with the error recorded when memory is out. */
static void *opdi_arena_alloc(opdi_arena *a, size_t n) {
    size_t pad = (size_t)(0u - (uintptr_t)a->at) & 7u;
    void *p;
    if (OPDI_UNLIKELY(a->at == NULL || (size_t)(a->end - a->at) < pad || (size_t)(a->end - a->at) - pad < n)) {
        if (opdi_arena_grow(a, n) < 0) return NULL;
        pad = (size_t)(0u - (uintptr_t)a->at) & 7u;
    }
    p = a->at + pad;
    a->at += pad + n;
    return p;
}

/* A zero-terminated copy of n bytes; takes no padding in front. */
static char *opdi_arena_copy(opdi_arena *a, const char *s, size_t n) {
    char *p;
    if (OPDI_UNLIKELY(a->at == NULL || (size_t)(a->end - a->at) <= n)) {
        if (n == SIZE_MAX || opdi_arena_grow(a, n + 1) < 0) return NULL;
    }
    p = a->at;
    a->at += n + 1;
    if (n > 0) memcpy(p, s, n);
    p[n] = 0;
    return p;
}

static void opdi_arena_free(opdi_arena *a) {
    opdi_arena_block *b = a->blocks;
    while (b != NULL) {
        opdi_arena_block *next = b->next;
        opdi_free(b, b->size);
        b = next;
    }
    a->blocks = NULL;
    a->at = a->end = NULL;
}

//----------------------------------------------------------------------------------------------------------------------
//  >>values     dtypes, devices, what a tensor is
//
//  What a dtype is and which one two of them meet in (c10/core/ScalarType.h), devices by name (c10/core/Device.cpp) and
//  tensors as text, character by character as torch/_tensor_str.py writes them.  Reads elements where they lie and
//  allocates nothing; knows no operators.
//----------------------------------------------------------------------------------------------------------------------

//  Dtypes

enum { OPDI_CLASS_NONE = 0, OPDI_CLASS_BOOL, OPDI_CLASS_INT, OPDI_CLASS_FLOAT, OPDI_CLASS_COMPLEX };

/* Indexed by opd_scalar_type; size in bytes, 0 for a number that is no dtype. */
typedef struct opdi_dtype_info { const char *name, *cname; uint8_t size, kind; } opdi_dtype_info;
static const opdi_dtype_info opdi_dtypes[16] = {
    {"uint8", "Byte", 1, OPDI_CLASS_INT}, {"int8", "Char", 1, OPDI_CLASS_INT}, {"int16", "Short", 2, OPDI_CLASS_INT},
    {"int32", "Int", 4, OPDI_CLASS_INT}, {"int64", "Long", 8, OPDI_CLASS_INT}, {"float16", "Half", 2, OPDI_CLASS_FLOAT},
    {"float32", "Float", 4, OPDI_CLASS_FLOAT}, {"float64", "Double", 8, OPDI_CLASS_FLOAT}, {"?", "?", 0, 0},
    {"complex64", "ComplexFloat", 8, OPDI_CLASS_COMPLEX}, {"complex128", "ComplexDouble", 16, OPDI_CLASS_COMPLEX},
    {"bool", "Bool", 1, OPDI_CLASS_BOOL}, {"?", "?", 0, 0}, {"?", "?", 0, 0}, {"?", "?", 0, 0},
    {"bfloat16", "BFloat16", 2, OPDI_CLASS_FLOAT}
};

static const opdi_dtype_info *opdi_dtype(opd_scalar_type dtype) {
    int i = (int)dtype;
    return &opdi_dtypes[i >= 0 && i < 16 ? i : 8];
}

OPD_API const char *opd_dtype_name(opd_scalar_type dtype) { return opdi_dtype(dtype)->name; }
OPD_API const char *opd_dtype_cname(opd_scalar_type dtype) { return opdi_dtype(dtype)->cname; }
OPD_API size_t opd_dtype_size(opd_scalar_type dtype) { return opdi_dtype(dtype)->size; }
OPD_API bool opd_dtype_is_floating(opd_scalar_type dtype) { return opdi_dtype(dtype)->kind == OPDI_CLASS_FLOAT; }
OPD_API bool opd_dtype_is_complex(opd_scalar_type dtype) { return opdi_dtype(dtype)->kind == OPDI_CLASS_COMPLEX; }
OPD_API bool opd_dtype_is_integral(opd_scalar_type dtype, bool include_bool) {
    int kind = opdi_dtype(dtype)->kind;
    return kind == OPDI_CLASS_INT || (include_bool && kind == OPDI_CLASS_BOOL);
}

/* Both of one class, and not equal. */
static opd_scalar_type opdi_promote_within(opd_scalar_type a, opd_scalar_type b) {
    opd_scalar_type low = a < b ? a : b, high = a < b ? b : a;
    if (low == OPD_UINT8 && high == OPD_INT8) { return OPD_INT16; }
    if (high == OPD_BFLOAT16) { return low == OPD_FLOAT16 ? OPD_FLOAT32 : low; }
    return high;
}

OPD_API opd_scalar_type opd_promote_types(opd_scalar_type a, opd_scalar_type b) {
    int ka = opdi_dtype(a)->kind, kb = opdi_dtype(b)->kind;
    opd_scalar_type high = ka > kb ? a : b, low = ka > kb ? b : a;
    if (ka == OPDI_CLASS_NONE || kb == OPDI_CLASS_NONE) {
        (void)opd_fail(OPD_ERROR_DTYPE, "promote_types: %d is no dtype", (int)(ka == OPDI_CLASS_NONE ? a : b));
        return OPD_DTYPE_NONE;
    }
    if (a == b) { return a; }
    if (ka == kb) { return opdi_promote_within(a, b); }
    return high == OPD_COMPLEX64 && low == OPD_FLOAT64 ? OPD_COMPLEX128 : high;
}

OPD_API bool opd_can_cast(opd_scalar_type from, opd_scalar_type to) {
    int kf = opdi_dtype(from)->kind, kt = opdi_dtype(to)->kind;
    return kf != OPDI_CLASS_NONE && kt != OPDI_CLASS_NONE && (kt >= kf);
}

//  Devices

#define OPDI_MAX_DEVICE_INDEX 127                 /* c10::DeviceIndex is 8 bits */

/* Indexed by backend.  The last two private backends have no device in PyTorch. */
static const char *const opdi_device_names[OPD_BACKEND_COUNT] = {
    "cpu", "cuda", "hip", "xla", "mps", "ipu", "xpu", "hpu", "ve", "lazy", "mtia", "privateuseone", "privateusetwo",
    "privateusethree", "meta"
};

/* Reads "", or ":" and an index without leading zeros.  False with an error. */
static bool opdi_device_index(const char *rest, const char *text, int32_t *index) {
    const char *p = rest + 1;
    *index = -1;
    if (*rest == 0) { return true; }
    if (*rest != ':' || *p == 0 || (*p == '0' && p[1])) { goto invalid; }
    for (; *p; p++) {
        if (*p < '0' || *p > '9') { goto invalid; }
    }
    *index = 0;
    for (p = rest + 1; *p && *index <= OPDI_MAX_DEVICE_INDEX; p++) { *index = *index * 10 + (*p - '0'); }
    if (*index <= OPDI_MAX_DEVICE_INDEX) { return true; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "Could not parse device index '%s' in device string '%s'", rest + 1, text);
    return false;
invalid:
    (void)opd_fail(OPD_ERROR_ARGUMENT, "Invalid device string: '%s'", text);
    return false;
}

static int opdi_device_unknown(const char *text) {
    char names[256];
    size_t at = 0;
    int i;
    for (i = 0; i < OPD_BACKEND_COUNT; i++) {
        const char *p = opdi_device_names[i];
        while (*p && at + 3 < sizeof(names)) { names[at++] = *p++; }
        if (i + 1 < OPD_BACKEND_COUNT && at + 3 < sizeof(names)) { names[at++] = ','; names[at++] = ' '; }
    }
    names[at] = 0;
    return opd_fail(OPD_ERROR_ARGUMENT, "Expected one of %s device type at start of device string: %s", names, text);
}

OPD_API int opd_device_parse(const char *text, opd_device *out) {
    size_t n = 0;
    int32_t index;
    int i;
    if (!text || !*text) { return opd_fail(OPD_ERROR_ARGUMENT, "Device string must not be empty"); }
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z') || text[n] == '_') { n++; }
    if (n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Invalid device string: '%s'", text); }
    if (!opdi_device_index(text + n, text, &index)) { return -1; }
    for (i = 0; i < OPD_BACKEND_COUNT; i++) {
        if (strlen(opdi_device_names[i]) != n || memcmp(opdi_device_names[i], text, n) != 0) { continue; }
        out->type = i;
        out->index = index;
        return 0;
    }
    return opdi_device_unknown(text);
}

OPD_API const char *opd_device_print(opd_device device, char *buf, size_t cap) {
    const char *name = device.type >= 0 && device.type < OPD_BACKEND_COUNT ? opdi_device_names[device.type] : "?";
    if (cap == 0) { return buf; }
    if (device.index >= 0) {
        (void)snprintf(buf, cap, "%s:%d", name, (int)device.index);
    } else {
        (void)snprintf(buf, cap, "%s", name);
    }
    return buf;
}

/* A block of memory that one or more tensors look at.  Embedded in the block of the tensor that made it, or (foreign
   memory) a block of its own.  The block is freed when `refs` is zero. */
typedef struct opdi_storage {
    int32_t refs;
    uint32_t version;            /* counts in-place writes */
    char *data;                  /* NULL: no memory (meta), or none needed */
    int64_t bytes;
    void *block;                 /* what to free, */
    int64_t block_bytes;         /* and its size; negative: an opdi_foreign */
    uint32_t viewed;             /* a view operator has looked at it */
    uint32_t spare;
} opdi_storage;

typedef struct opdi_foreign {
    opdi_storage storage;
    void (*deleter)(void *data, void *user);
    void *user;
} opdi_foreign;

/* Flags of a tensor. */
#define OPDI_WRAPPED 1u          /* a number in a Tensor slot: yields in type promotion */
#define OPDI_REQUIRES_GRAD 2u    /* a leaf that wants a gradient, or a result that has a grad_fn */
#define OPDI_IS_VIEW 4u          /* made by a view operator */
#define OPDI_SAVED_BY_OWN 8u     /* its grad_fn's node holds it: see opdi_tensor_drop */
#define OPDI_WEAK_NODE 32u       /* grad_fn is not held: only its own node still holds the tensor */
#define OPDI_CONTIGUOUS 16u      /* row-major without gaps (kept up to date) */

/* dims: sizes[ndim], then strides[ndim] (elements); behind the struct until a resize needs more room. */
struct opd_tensor {
    int32_t refs;
    int8_t dtype;
    uint8_t ndim;
    int16_t room;                /* int64_t values of dims that fit behind the struct */
    uint64_t functionality;      /* key set, with backend_bit */
    opdi_storage *storage;
    int64_t *dims;
    char *data;                  /* first element, NULL on meta */
    int64_t numel;
    opd_node *grad_fn;           /* NULL for a leaf */
    struct opdi_meta *meta;      /* what few tensors have: gradient, accumulator, view record */
    uint32_t output_nr;          /* which result of grad_fn */
    uint8_t flags, backend;      /* these four bytes are read together: opdi_traits */
    uint16_t backend_bit;
};
/* What a call wants to know of a tensor besides its functionalities; the traits of several are united with |. */
typedef union opdi_traits { struct opdi_traits_fields { uint8_t flags, backend; uint16_t backends; } f; uint32_t all; } opdi_traits;
static inline uint32_t opdi_traits_of(const opd_tensor *t) { uint32_t all; memcpy(&all, &t->flags, sizeof all); return all; }
static inline int64_t *opdi_sizes(const opd_tensor *t) { return t->dims; }
static inline int64_t *opdi_strides(const opd_tensor *t) { return t->dims + t->ndim; }

//  Elements

static float opdi_f16_to_f32(uint16_t h);
static float opdi_bf16_to_f32(uint16_t h);

/* The element `offset` bytes after t's first as a double.  Complex: the real part; the imaginary one lies half an
   element further. */
static double opdi_element_f64(const opd_tensor *t, int64_t offset) {
    const char *p = t->data + offset;
    union { float f; double d; uint16_t h; int16_t s; int32_t i; int64_t l; } u;
    switch ((opd_scalar_type)t->dtype) {
    case OPD_FLOAT32: case OPD_COMPLEX64: memcpy(&u.f, p, 4); return (double)u.f;
    case OPD_FLOAT64: case OPD_COMPLEX128: memcpy(&u.d, p, 8); return u.d;
    case OPD_FLOAT16: memcpy(&u.h, p, 2); return (double)opdi_f16_to_f32(u.h);
    case OPD_BFLOAT16: memcpy(&u.h, p, 2); return (double)opdi_bf16_to_f32(u.h);
    case OPD_INT16: memcpy(&u.s, p, 2); return u.s;
    case OPD_INT32: memcpy(&u.i, p, 4); return u.i;
    case OPD_INT64: memcpy(&u.l, p, 8); return (double)u.l;
    case OPD_INT8: return *(const signed char *)p;
    case OPD_UINT8: return *(const unsigned char *)p;
    case OPD_BOOL: return *(const unsigned char *)p != 0;
    case OPD_DTYPE_NONE: default: return 0;
    }
}

/* A double as an integer: towards zero, and what does not fit at the nearest end; nan is 0. */
static int64_t opdi_f64_to_i64(double d) {
    if (d != d) { return 0; }
    if (d >= 9223372036854775808.0) { return INT64_MAX; }
    return d <= -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

/* The same as an integer. */
static int64_t opdi_element_i64(const opd_tensor *t, int64_t offset) {
    if (t->dtype == OPD_INT64) {
        int64_t v;
        memcpy(&v, t->data + offset, 8);
        return v;
    }
    return opdi_f64_to_i64(opdi_element_f64(t, offset));
}

//----------------------------------------------------------------------------------------------------------------------
//  >>schema     lexer, parser, printer, alias sets, argument binding
//
//  Text of an operator declaration to opd_schema and back (torch/csrc/jit/frontend/function_schema_parser.cpp,
//  aten/src/ATen/core/function_schema.cpp).  Uses the platform only.
//----------------------------------------------------------------------------------------------------------------------

/* Kinds of type.  A type has the kind it behaves as (`kind`) and the word it was written with (`word`), which is what
   is printed: SymInt is an int, ScalarType is an int. */
typedef enum opdi_type_kind {
    OPDI_TYPE_TENSOR = 1, OPDI_TYPE_INT, OPDI_TYPE_FLOAT, OPDI_TYPE_BOOL, OPDI_TYPE_COMPLEX, OPDI_TYPE_STR,
    OPDI_TYPE_NUMBER, OPDI_TYPE_DEVICE, OPDI_TYPE_GENERATOR, OPDI_TYPE_NONE, OPDI_TYPE_OTHER /* Storage, Stream, ... */,
    OPDI_TYPE_VAR, OPDI_TYPE_CLASS, OPDI_TYPE_LIST, OPDI_TYPE_OPTIONAL, OPDI_TYPE_TUPLE, OPDI_TYPE_DICT,
    OPDI_TYPE_UNION, OPDI_TYPE_FUTURE, OPDI_TYPE_RREF, OPDI_TYPE_AWAIT
} opdi_type_kind;

/* "(a! -> b|c)": sets in source order.  A bare "!" has one set "$0" and no after-set. */
typedef struct opdi_alias {
    bool write;
    int nbefore, nafter;
    const char *const *before, *const *after;     /* "*" is the wildcard */
} opdi_alias;

typedef struct opdi_type {
    int32_t kind;                                 /* opdi_type_kind */
    int32_t size;                                 /* N of T[N], -1 without */
    int32_t nelems;                               /* list, optional, future: 1; dict: 2; tuple, union: n */
    int32_t spare;
    const char *word;                             /* as printed, for kinds up to CLASS */
    const struct opdi_type *const *elems;
    const opdi_alias *alias;                      /* annotation on this type itself; NULL: none */
} opdi_type;

typedef struct opdi_arg {
    const char *name;                             /* "" for an unnamed return */
    const opdi_type *type;
    opd_value value;                              /* the default as parsed, where has_default */
    bool has_default, keyword_only, written;      /* written: its annotation, or its elements', says so */
    bool optional;                                /* the type is T? */
    uint8_t tag;                                  /* opd_tag that binds without conversion; 0: look closer */
} opdi_arg;

struct opd_schema {
    opdi_arena arena;                             /* owns everything below */
    const char *ns, *name, *overload;             /* ns and overload "" when not written */
    opdi_arg *args, *returns;
    int32_t nargs, nreturns;
    bool vararg, varret;
};

OPDI_COLD_BEGIN

/* Deliberate differences from PyTorch 2.6 (each is a place where it misreads, crashes or prints what it cannot read):
   - a positional argument without default after one with default is an error (1.13 crashes);
   - 0x10 is 16 and 1E3 is 1000. (read as 0 and 1 there); the same for N of T[N]; a number that is out of range is
     "number out of range" here (there: a bare C++ exception);
   - a complex default without j is real ("complex x=12" is 12+0j, not 1j); "1.+2.j", which is how complex defaults
     are printed, can be read;
   - several alias sets keep their source order (there: the order of a hash table); equal sets count once;
   - "Tensor! x" prints as it was written, and so does "Tensor(a!)?[] x" (there: text that cannot be read again);
   - SymInt, ScalarType, ... keep their word inside tuples, dictionaries and the like;
   - a Device default prints with quotes; so does any string default (there only of str and str?); a string default of
     Device? is a device;
   - __torch__.torch.classes.NS.Cls is accepted without registration: there are no classes to register here;
   - an argument is "written" also when only its elements are: "Tensor(a!)[](b) x";
   - a default for a type that can have none says so, and does not ask for a bug report;
   - "invalid numeric default value" underlines the word and not what follows it; a bad character is shown whole;
   - \r counts as a blank; UTF-8 in a string default comes back as octal escapes of its bytes (1.13: wrong escapes);
   - limits: OPD_MAX_ARGS arguments and returns, 256 nested types in an argument, 32 alias sets in an
     annotation, N of a repeated default up to 65536, 16 MiB of text.
   As there: equal elements of an int[] default print as one number, which only int[N] reads again; -0. prints as 0.;
   two arguments may have one name (keywords then reach the first), and a default's type is not compared with
   the argument's ("int x=1.5"), except in lists. */

#define OPDI_MAX_TYPE_NODES 512
#define OPDI_MAX_ALIAS_SETS 32
#define OPDI_MAX_REPEATED 65536
#define OPDI_MAX_SCHEMA_TEXT (1 << 24)

//-- lexer -------------------------------------------------------------------------------------------------------------

/* Kinds of token.  A one-character operator has its character as kind. */
typedef enum opdi_token_kind {
    OPDI_TOKEN_EOF = 256, OPDI_TOKEN_IDENT, OPDI_TOKEN_NUMBER, OPDI_TOKEN_STRING, OPDI_TOKEN_ARROW, OPDI_TOKEN_DOTS,
    OPDI_TOKEN_NEWLINE, OPDI_TOKEN_INDENT, OPDI_TOKEN_DEDENT, OPDI_TOKEN_TRUE, OPDI_TOKEN_FALSE, OPDI_TOKEN_NONE,
    OPDI_TOKEN_NONETYPE, OPDI_TOKEN_KEYWORD, OPDI_TOKEN_OPERATOR,
    OPDI_TOKEN_BAD               /* no token; the error has been recorded */
} opdi_token_kind;

typedef struct opdi_token {
    int kind;                                     /* opdi_token_kind or a character */
    int n;                                        /* bytes */
    const char *s;                                /* in the source */
} opdi_token;

typedef struct opdi_lexer {
    const char *text, *at, *end;
    opdi_token cur;
    int nesting;                                  /* open brackets: inside them a newline is a blank */
    int indent;                                   /* blanks before the first token */
} opdi_lexer;

static inline bool opdi_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static inline bool opdi_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline char opdi_lex_peek(const opdi_lexer *lx, int i) { return lx->end - lx->at > i ? lx->at[i] : '\0'; }

/* Records "<what>: line L, column C", the source line (long ones cut), and a line that underlines the token. */
OPDI_NOINLINE static int opdi_syntax_error(const opdi_lexer *lx, const opdi_token *tok, const char *what) {
    const char *begin = tok->s, *stop = tok->s, *first, *c;
    char line[164], mark[84];
    int row = 1, column = 1, pad = 0, n = 0, m = 0;
    for (c = lx->text; c < tok->s; c++) row += *c == '\n';
    while (begin > lx->text && begin[-1] != '\n') { begin--; column += (*begin & 0xC0) != 0x80; }
    while (stop < lx->end && *stop != '\n') stop++;
    first = tok->s - begin > 70 ? tok->s - 70 : begin;
    while (first < tok->s && (*first & 0xC0) == 0x80) first++;
    for (c = first; c < stop && n < 160; c++) line[n++] = (unsigned char)*c < 32 || *c == 127 ? ' ' : *c;
    while (c < stop && n > 0 && (*c & 0xC0) == 0x80) { c--; n--; }    /* not half a character at the cut */
    line[n] = 0;
    for (c = first; c < tok->s; c++) pad += (*c & 0xC0) != 0x80;
    for (c = tok->s; c < tok->s + tok->n && c < stop && m < 80; c++) {
        if ((*c & 0xC0) != 0x80) mark[m++] = '~';
    }
    if (m == 0) mark[m++] = '^';
    mark[m] = 0;
    opd_fail(OPD_ERROR_SCHEMA, "%s: line %d, column %d\n%s\n%*s%s <--- HERE", what, row, column, line, pad, "", mark);
    return -1;
}

/* PyTorch's name of a token, for messages. */
static const char *opdi_token_name(const opdi_token *tok, char *buf, size_t cap) {
    static const char *const names[] = {"eof", "ident", "number", "string_literal", "arrow", "dots", "newline",
                                        "indent", "dedent", "True", "False", "None", "NoneType"};
    static const char *const operators[] = {"!=", "ne", "==", "eq", "<=", "le", ">=", "ge", "//", "floordiv",
                                            "**", "pow", "<<", "lshift", ">>", "rshift", "<=>", "equivalent"};
    size_t i;
    if (tok->kind >= OPDI_TOKEN_EOF && tok->kind <= OPDI_TOKEN_NONETYPE) return names[tok->kind - OPDI_TOKEN_EOF];
    for (i = 0; i < sizeof operators / sizeof *operators; i += 2) {
        if (tok->kind == OPDI_TOKEN_OPERATOR && strlen(operators[i]) == (size_t)tok->n &&
            memcmp(operators[i], tok->s, (size_t)tok->n) == 0) return operators[i + 1];
    }
    if (tok->kind < OPDI_TOKEN_EOF) snprintf(buf, cap, "%c", tok->kind);
    else snprintf(buf, cap, "%.*s", tok->n, tok->s);
    return buf;
}

/* The bytes at lx->at begin no token. */
OPDI_NOINLINE static void opdi_lex_bad(opdi_lexer *lx) {
    char what[64], shown[8];
    unsigned char c = (unsigned char)*lx->at;
    int n = 1, want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 1;
    while (n < want && (opdi_lex_peek(lx, n) & 0xC0) == 0x80) n++;
    lx->cur.kind = OPDI_TOKEN_BAD;
    lx->cur.s = lx->at;
    lx->cur.n = n;
    if (c >= 32 && c < 127) snprintf(shown, sizeof shown, "%c", c);
    else if (want > 1 && n == want) snprintf(shown, sizeof shown, "%.*s", n, lx->at);
    else snprintf(shown, sizeof shown, "\\x%02x", c);
    snprintf(what, sizeof what, "expected a valid token but found '%s' here", shown);
    opdi_syntax_error(lx, &lx->cur, what);
}

/* Steps over blanks, comments and, inside brackets, newlines.  Outside of them a newline with text behind it is a
   token: true with lx->cur set. */
static bool opdi_lex_blank(opdi_lexer *lx) {
    const char *newline = NULL, *line = lx->at;
    for (;;) {
        char c = opdi_lex_peek(lx, 0);
        if (lx->at == lx->end) { newline = NULL; break; }
        if (c == ' ' || c == '\t' || c == '\r') lx->at++;
        else if (c == '#') {
            while (lx->at < lx->end && *lx->at != '\n') lx->at++;
        } else if (c == '\\' && opdi_lex_peek(lx, 1) == '\n') lx->at += 2;
        else if (c == '\n') {
            if (lx->nesting == 0 && newline == NULL) newline = lx->at;
            line = ++lx->at;
        } else break;
    }
    if (newline == NULL) return false;
    lx->cur.kind = lx->at - line > lx->indent ? OPDI_TOKEN_INDENT :
                   lx->at - line < lx->indent ? OPDI_TOKEN_DEDENT : OPDI_TOKEN_NEWLINE;
    lx->cur.s = newline;
    lx->cur.n = 1;
    return true;
}

/* True for the word w of n bytes, n not 0, when it is one of the words in list, each followed by a space. */
static bool opdi_word_in(const char *w, int n, const char *list) {
    while (*list != 0) {
        int k = 0;
        while (list[k] != ' ') k++;
        if (k == n && memcmp(list, w, (size_t)n) == 0) return true;
        list += k + 1;
    }
    return false;
}

/* Kind of a word: identifier, or one of TorchScript's keywords. */
static int opdi_word_kind(const char *w, int n) {
    const char *keywords = NULL;
    if (n < 2 || n > 8) return OPDI_TOKEN_IDENT;
    switch (w[0]) {
    case 'T': return opdi_word_in(w, n, "True ") ? OPDI_TOKEN_TRUE : OPDI_TOKEN_IDENT;
    case 'F': return opdi_word_in(w, n, "False ") ? OPDI_TOKEN_FALSE : OPDI_TOKEN_IDENT;
    case 'N':
        return opdi_word_in(w, n, "None ") ? OPDI_TOKEN_NONE : opdi_word_in(w, n, "NoneType ") ? OPDI_TOKEN_NONETYPE
                                                                                               : OPDI_TOKEN_IDENT;
    case 'E': keywords = "Ellipsis "; break;
    case 'a': keywords = "and as assert "; break;
    case 'b': keywords = "break "; break;
    case 'c': keywords = "class continue "; break;
    case 'd': keywords = "def del "; break;
    case 'e': keywords = "else elif "; break;
    case 'f': keywords = "for "; break;
    case 'g': keywords = "global "; break;
    case 'i': keywords = "if in is import "; break;
    case 'n': keywords = "not "; break;
    case 'o': keywords = "or "; break;
    case 'p': keywords = "pass "; break;
    case 'r': keywords = "return raise "; break;
    case 'w': keywords = "while with "; break;
    default: return OPDI_TOKEN_IDENT;
    }
    return opdi_word_in(w, n, keywords) ? OPDI_TOKEN_KEYWORD : OPDI_TOKEN_IDENT;
}

/* Bytes of the number at s: digits, fraction, exponent; or 0x and digits; with a j behind for an imaginary one.
   0: no number. */
static int opdi_lex_number(const char *s, const char *end) {
    const char *c = s, *e;
    if (end - s > 2 && s[0] == '0' && (s[1] | 32) == 'x') {
        for (c = s + 2; c < end && (opdi_is_digit(*c) || ((*c | 32) >= 'a' && (*c | 32) <= 'f')); c++) {}
        if (c > s + 2) return (int)(c - s);
        c = s;
    }
    while (c < end && opdi_is_digit(*c)) c++;
    if (c < end && *c == '.') {
        c++;
        while (c < end && opdi_is_digit(*c)) c++;
        if (c == s + 1) return 0;
    }
    if (c == s) return 0;
    if (end - c > 1 && (*c | 32) == 'e') {
        e = c + 1;
        if (end - e > 1 && (*e == '+' || *e == '-')) e++;
        if (opdi_is_digit(*e)) {
            while (e < end && opdi_is_digit(*e)) e++;
            c = e;
        }
    }
    if (c < end && *c == 'j') c++;
    return (int)(c - s);
}

/* Bytes of the string literal at s with its quotes.  0: not closed. */
static int opdi_lex_string(const char *s, const char *end) {
    const char quote = s[0];
    const int q = end - s > 2 && s[1] == quote && s[2] == quote ? 3 : 1;
    const char *c = s + q;
    for (; end - c >= q; c++) {
        if (*c == quote && (q == 1 || (c[1] == quote && c[2] == quote))) return (int)(c - s) + q;
        if (*c == '\n' && q == 1) return 0;
        if (*c == '\\') c++;
    }
    return 0;
}

/* Bytes of the operator at the lexer, and its kind.  0: none. */
static int opdi_lex_operator(const opdi_lexer *lx, int *kind) {
    const char a = opdi_lex_peek(lx, 0), b = opdi_lex_peek(lx, 1), c = opdi_lex_peek(lx, 2);
    *kind = OPDI_TOKEN_OPERATOR;
    if (a == '-' && b == '>') { *kind = OPDI_TOKEN_ARROW; return 2; }
    if (a == '.' && b == '.' && c == '.') { *kind = OPDI_TOKEN_DOTS; return 3; }
    if (a == '<' && b == '=' && c == '>') return 3;
    if ((a == '<' || a == '>' || a == '*') && b == a) return c == '=' ? 3 : 2;
    if (a == '/' && b == '/') return 2;
    if (b == '=' && a != 0 && strchr("!=<>+-*/%&|^", a) != NULL) return 2;
    *kind = (unsigned char)a;
    return a != 0 && strchr("+-*/%@()[]{}:,=<>.?!&|^~", a) != NULL ? 1 : 0;
}

/* Reads the next token into lx->cur. */
static void opdi_lex(opdi_lexer *lx) {
    opdi_token *tok = &lx->cur;
    char c;
    if (opdi_lex_blank(lx)) return;
    tok->s = lx->at;
    tok->n = 0;
    tok->kind = OPDI_TOKEN_EOF;
    if (lx->at == lx->end) return;
    c = *lx->at;
    if (opdi_is_letter(c)) {
        const char *w = lx->at + 1;
        while (w < lx->end && (opdi_is_letter(*w) || opdi_is_digit(*w))) w++;
        tok->n = (int)(w - lx->at);
        tok->kind = opdi_word_kind(lx->at, tok->n);
    } else if (c == ',' || c == '(' || c == ')') {                  /* the frequent ones */
        tok->n = 1;
        tok->kind = c;
    } else if ((opdi_is_digit(c) || c == '.') && (tok->n = opdi_lex_number(lx->at, lx->end)) > 0) {
        tok->kind = OPDI_TOKEN_NUMBER;
    } else if ((c == '"' || c == '\'') && (tok->n = opdi_lex_string(lx->at, lx->end)) > 0) {
        tok->kind = OPDI_TOKEN_STRING;
    } else if ((tok->n = opdi_lex_operator(lx, &tok->kind)) == 0) {
        opdi_lex_bad(lx);
        return;
    }
    if (tok->kind == '(' || tok->kind == '[' || tok->kind == '{') lx->nesting++;
    if ((tok->kind == ')' || tok->kind == ']' || tok->kind == '}') && lx->nesting > 0) lx->nesting--;
    lx->at += tok->n;
}

static void opdi_lexer_init(opdi_lexer *lx, const char *text, size_t length) {
    const char *c = text, *line = text;
    while (c < text + length && (*c == ' ' || *c == '\t' || *c == '\r' || *c == '\n')) {
        if (*c++ == '\n') line = c;
    }
    lx->text = text;
    lx->at = c;
    lx->end = text + length;
    lx->nesting = 0;
    lx->indent = (int)(c - line);
    opdi_lex(lx);
}

static inline bool opdi_lex_next_if(opdi_lexer *lx, int kind) {
    if (lx->cur.kind != kind) return false;
    opdi_lex(lx);
    return true;
}

/* "expected X but found 'Y' here"; nothing when the lexer has complained already.  -1. */
OPDI_NOINLINE static int opdi_lex_unexpected(const opdi_lexer *lx, int kind) {
    opdi_token wanted;
    char what[160], a[8], b[64];
    if (lx->cur.kind == OPDI_TOKEN_BAD) return -1;
    wanted.kind = kind;
    wanted.n = 0;
    wanted.s = "";
    snprintf(what, sizeof what, "expected %s but found '%s' here", opdi_token_name(&wanted, a, sizeof a),
             opdi_token_name(&lx->cur, b, sizeof b));
    return opdi_syntax_error(lx, &lx->cur, what);
}

/* Takes a token of this kind, copied to *tok when that is not NULL.  0, or -1 with the error recorded. */
static inline int opdi_lex_expect(opdi_lexer *lx, int kind, opdi_token *tok) {
    if (OPDI_UNLIKELY(lx->cur.kind != kind)) { opdi_lex_unexpected(lx, kind); return -1; }
    if (tok != NULL) *tok = lx->cur;
    opdi_lex(lx);
    return 0;
}

static bool opdi_token_is(const opdi_token *tok, const char *word) {
    return strlen(word) == (size_t)tok->n && memcmp(tok->s, word, (size_t)tok->n) == 0;
}

//-- names -------------------------------------------------------------------------------------------------------------

/* "ns::name.overload": parts of the text, ns and overload of length 0 when not written. */
typedef struct opdi_name {
    const char *ns, *name, *overload;
    int nns, nname, noverload;
} opdi_name;

/* name := IDENT ['::' IDENT] ['.' IDENT] */
static int opdi_lex_name(opdi_lexer *lx, opdi_name *out) {
    opdi_token tok;
    if (opdi_lex_expect(lx, OPDI_TOKEN_IDENT, &tok) < 0) return -1;
    out->ns = out->overload = "";
    out->nns = out->noverload = 0;
    if (opdi_lex_next_if(lx, ':')) {
        out->ns = tok.s;
        out->nns = tok.n;
        if (opdi_lex_expect(lx, ':', NULL) < 0 || opdi_lex_expect(lx, OPDI_TOKEN_IDENT, &tok) < 0) return -1;
    }
    out->name = tok.s;
    out->nname = tok.n;
    if (opdi_lex_next_if(lx, '.')) {
        if (opdi_lex_expect(lx, OPDI_TOKEN_IDENT, &tok) < 0) return -1;
        if (opdi_token_is(&tok, "default") || (tok.n >= 2 && tok.s[0] == '_' && tok.s[1] == '_')) {
            return opd_fail(OPD_ERROR_SCHEMA, "%.*s is not a legal overload name for aten operators",
                            tok.n < 80 ? tok.n : 80, tok.s);
        }
        out->overload = tok.s;
        out->noverload = tok.n;
    }
    return 0;
}

static int opdi_schema_check_text(const char *text, size_t length) {
    if (text == NULL) return opd_fail(OPD_ERROR_SCHEMA, "the text of the schema is NULL");
    if (length > OPDI_MAX_SCHEMA_TEXT) return opd_fail(OPD_ERROR_SCHEMA, "schema of %zu bytes is too long", length);
    return 0;
}

/* Splits an operator's name; *out points into text.  0, or -1 with the error recorded (a schema is one, too). */
static int opdi_name_parse(const char *text, size_t length, opdi_name *out) {
    opdi_lexer lx;
    if (opdi_schema_check_text(text, length) < 0) return -1;
    opdi_lexer_init(&lx, text, length);
    if (opdi_lex_name(&lx, out) < 0) return -1;
    if (lx.cur.kind == '(') {
        return opd_fail(OPD_ERROR_SCHEMA, "Tried to parse an operator name but function schema was given: %.*s",
                        length < 200 ? (int)length : 200, text);
    }
    (void)opdi_lex_next_if(&lx, OPDI_TOKEN_NEWLINE);
    return opdi_lex_expect(&lx, OPDI_TOKEN_EOF, NULL);
}

//-- types and alias annotations ---------------------------------------------------------------------------------------

typedef struct opdi_parser {
    opdi_lexer lx;
    opdi_arena *arena;
    bool typevars;               /* an unknown lower-case word is a type variable */
    bool written;                /* an annotation of the current argument has "!" */
    int nodes;                   /* composite types in the current argument (bracketed ones twice): bounds nesting */
    int fresh;                   /* bare "!" so far */
} opdi_parser;

/* The words that are types, with what they are and print as. */
typedef struct opdi_base_type { const char *spelled; opdi_type type; } opdi_base_type;
#define OPDI_BASE(spelled, kind, word) {spelled, {kind, -1, 0, 0, word, NULL, NULL}}
static const opdi_base_type opdi_base_types[] = {
    OPDI_BASE("Any", OPDI_TYPE_OTHER, "Any"),
    OPDI_BASE("AnyClassType", OPDI_TYPE_OTHER, "AnyClassType"),
    OPDI_BASE("AnyEnumType", OPDI_TYPE_OTHER, "AnyEnumType"),
    OPDI_BASE("Capsule", OPDI_TYPE_OTHER, "Capsule"),
    OPDI_BASE("ConstQuantizerPtr", OPDI_TYPE_INT, "int"),
    OPDI_BASE("Device", OPDI_TYPE_DEVICE, "Device"),
    OPDI_BASE("DeviceIndex", OPDI_TYPE_INT, "int"),
    OPDI_BASE("Dimname", OPDI_TYPE_STR, "str"),
    OPDI_BASE("Generator", OPDI_TYPE_GENERATOR, "Generator"),
    OPDI_BASE("Layout", OPDI_TYPE_INT, "Layout"),
    OPDI_BASE("MemoryFormat", OPDI_TYPE_INT, "MemoryFormat"),
    OPDI_BASE("None", OPDI_TYPE_NONE, "NoneType"),
    OPDI_BASE("NoneType", OPDI_TYPE_NONE, "NoneType"),
    OPDI_BASE("QScheme", OPDI_TYPE_OTHER, "QScheme"),
    OPDI_BASE("Quantizer", OPDI_TYPE_OTHER, "Quantizer"),
    OPDI_BASE("Scalar", OPDI_TYPE_NUMBER, "Scalar"),
    OPDI_BASE("ScalarType", OPDI_TYPE_INT, "ScalarType"),
    OPDI_BASE("Storage", OPDI_TYPE_OTHER, "Storage"),
    OPDI_BASE("Stream", OPDI_TYPE_OTHER, "Stream"),
    OPDI_BASE("SymInt", OPDI_TYPE_INT, "SymInt"),
    OPDI_BASE("Tensor", OPDI_TYPE_TENSOR, "Tensor"),
    OPDI_BASE("bool", OPDI_TYPE_BOOL, "bool"),
    OPDI_BASE("complex", OPDI_TYPE_COMPLEX, "complex"),
    OPDI_BASE("float", OPDI_TYPE_FLOAT, "float"),
    OPDI_BASE("int", OPDI_TYPE_INT, "int"),
    OPDI_BASE("str", OPDI_TYPE_STR, "str"),
};

static const opdi_type *opdi_base_find(const opdi_token *tok) {
    const char c = tok->s[0];
    size_t i = c >= 'a' ? 21 : c >= 'T' ? 20 : c == 'S' ? 15 : 0;   /* where to begin: "bool", "Tensor", "Scalar" */
    for (; i < sizeof opdi_base_types / sizeof *opdi_base_types; i++) {
        if (opdi_base_types[i].spelled[0] == c && opdi_token_is(tok, opdi_base_types[i].spelled)) {
            return &opdi_base_types[i].type;
        }
    }
    return NULL;
}

/* A composite type with n elements, of which the first is set to `first`. */
static opdi_type *opdi_type_new(opdi_parser *p, opdi_type_kind kind, const opdi_type *const *elems, int n) {
    opdi_type *t;
    const opdi_type **slots;
    int i;
    if (++p->nodes > OPDI_MAX_TYPE_NODES) {
        opdi_syntax_error(&p->lx, &p->lx.cur, "type has too many parts");
        return NULL;
    }
    t = (opdi_type *)opdi_arena_alloc(p->arena, sizeof *t + (size_t)n * sizeof *slots);
    if (t == NULL) return NULL;
    slots = (const opdi_type **)(t + 1);
    for (i = 0; i < n; i++) slots[i] = elems[i];
    t->kind = (int32_t)kind;
    t->size = -1;
    t->nelems = n;
    t->spare = 0;
    t->word = NULL;
    t->elems = slots;
    t->alias = NULL;
    return t;
}

/* set := ('*' | IDENT) ('|' IDENT)*, into a list in the arena; its length, or -1. */
static int opdi_parse_alias_set(opdi_parser *p, const char *const **out) {
    const char *names[OPDI_MAX_ALIAS_SETS], **list;
    bool wildcard = false;
    int n = 0, i;
    do {
        const char *name = "*";
        opdi_token tok;
        if (opdi_lex_next_if(&p->lx, '*')) wildcard = true;
        else if (wildcard) break;                 /* and the caller meets a word where it wants ")" */
        else if (opdi_lex_expect(&p->lx, OPDI_TOKEN_IDENT, &tok) < 0) return -1;
        else if ((name = opdi_arena_copy(p->arena, tok.s, (size_t)tok.n)) == NULL) return -1;
        for (i = 0; i < n && strcmp(names[i], name) != 0; i++) {}
        if (i == OPDI_MAX_ALIAS_SETS) return opdi_syntax_error(&p->lx, &p->lx.cur, "too many alias sets");
        if (i == n) names[n++] = name;
    } while (opdi_lex_next_if(&p->lx, '|'));
    list = (const char **)opdi_arena_alloc(p->arena, (size_t)n * sizeof *list);
    if (list == NULL) return -1;
    for (i = 0; i < n; i++) list[i] = names[i];
    *out = list;
    return n;
}

/* A bare "!": an anonymous set of its own, written, without an after-set. */
static int opdi_parse_alias_bare(opdi_parser *p, opdi_alias *a) {
    char name[16];
    const char **list = (const char **)opdi_arena_alloc(p->arena, sizeof *list);
    snprintf(name, sizeof name, "$%d", p->fresh++);
    if (list == NULL || (*list = opdi_arena_copy(p->arena, name, strlen(name))) == NULL) return -1;
    a->write = p->written = true;
    a->nbefore = 1;
    a->before = list;
    return 0;
}

/* alias := '(' set ['!'] ['->' set] ')' | '!', or nothing; puts it on *type (a copy when that is a shared one). */
static int opdi_parse_alias(opdi_parser *p, const opdi_type **type) {
    opdi_lexer *lx = &p->lx;
    opdi_alias *a;
    opdi_type *t;
    if (OPDI_LIKELY(lx->cur.kind != '(' && lx->cur.kind != '!')) return 0;
    a = (opdi_alias *)opdi_arena_alloc(p->arena, sizeof *a);
    t = (opdi_type *)opdi_arena_alloc(p->arena, sizeof *t);
    if (a == NULL || t == NULL) return -1;
    *t = **type;
    t->alias = a;
    *type = t;
    memset(a, 0, sizeof *a);
    if (opdi_lex_next_if(lx, '!')) return opdi_parse_alias_bare(p, a);
    opdi_lex(lx);
    if ((a->nbefore = opdi_parse_alias_set(p, &a->before)) < 0) return -1;
    if (opdi_lex_next_if(lx, '!')) a->write = p->written = true;
    a->after = a->before;
    a->nafter = a->nbefore;
    if (opdi_lex_next_if(lx, OPDI_TOKEN_ARROW) && (a->nafter = opdi_parse_alias_set(p, &a->after)) < 0) return -1;
    return opdi_lex_expect(lx, ')', NULL);
}

static const opdi_type *opdi_parse_type(opdi_parser *p);

/* '(' type (',' type)* ')' after the constructor's word; nothing between the brackets only for a tuple.  `n` types are
   wanted; 0: any number. */
static const opdi_type *opdi_parse_composite(opdi_parser *p, opdi_type_kind kind, int n) {
    const opdi_type **elems = NULL;
    int count = 0, cap = 0;
    if (++p->nodes > OPDI_MAX_TYPE_NODES) {
        opdi_syntax_error(&p->lx, &p->lx.cur, "type has too many parts");
        return NULL;
    }
    if (opdi_lex_expect(&p->lx, '(', NULL) < 0) return NULL;
    while (n > 0 ? count < n : (count > 0 || p->lx.cur.kind != ')')) {
        if (count > 0 && n > 0 && opdi_lex_expect(&p->lx, ',', NULL) < 0) return NULL;
        if (count > 0 && n == 0 && !opdi_lex_next_if(&p->lx, ',')) break;
        if (count == cap) {
            const size_t bytes = (size_t)(cap = cap == 0 ? 4 : 2 * cap) * sizeof *elems;
            const opdi_type **more = (const opdi_type **)opdi_arena_alloc(p->arena, bytes);
            if (more == NULL) return NULL;
            if (count > 0) memcpy(more, elems, (size_t)count * sizeof *elems);
            elems = more;
        }
        if ((elems[count++] = opdi_parse_type(p)) == NULL) return NULL;
    }
    if (opdi_lex_expect(&p->lx, ')', NULL) < 0) return NULL;
    return opdi_type_new(p, kind, elems, count);
}

static const opdi_type *opdi_make_optional(opdi_parser *p, const opdi_type *t) {
    return t->kind == OPDI_TYPE_OPTIONAL ? t : opdi_type_new(p, OPDI_TYPE_OPTIONAL, &t, 1);
}

/* Union(T, U, ...); with two members of which one is None it is an optional. */
static const opdi_type *opdi_parse_union(opdi_parser *p) {
    const opdi_token at = p->lx.cur;
    const opdi_type *t = opdi_parse_composite(p, OPDI_TYPE_UNION, 0);
    if (t == NULL) return NULL;
    if (t->nelems < 2) { opdi_syntax_error(&p->lx, &at, "a Union needs two types or more"); return NULL; }
    if (t->nelems == 2 && t->elems[1]->kind == OPDI_TYPE_NONE) return opdi_make_optional(p, t->elems[0]);
    if (t->nelems == 2 && t->elems[0]->kind == OPDI_TYPE_NONE) return opdi_make_optional(p, t->elems[1]);
    return t;
}

/* A leaf whose word is the n bytes at s. */
static const opdi_type *opdi_type_word(opdi_parser *p, opdi_type_kind kind, const char *s, size_t n) {
    opdi_type *t = opdi_type_new(p, kind, NULL, 0);
    if (t != NULL && (t->word = opdi_arena_copy(p->arena, s, n)) == NULL) return NULL;
    return t;
}

/* __torch__.torch.classes.NS.Cls, from the first dot on. */
static const opdi_type *opdi_parse_class(opdi_parser *p) {
    opdi_token part[4];
    char what[160];
    int i;
    for (i = 0; i < 4; i++) {
        if (opdi_lex_expect(&p->lx, '.', NULL) < 0 || opdi_lex_expect(&p->lx, OPDI_TOKEN_IDENT, &part[i]) < 0) {
            return NULL;
        }
        if (i < 2 && !opdi_token_is(&part[i], i == 0 ? "torch" : "classes")) {
            snprintf(what, sizeof what, "Expected classes namespace but got %.*s", part[i].n < 80 ? part[i].n : 80,
                     part[i].s);
            opdi_syntax_error(&p->lx, &part[i], what);
            return NULL;
        }
    }
    snprintf(what, sizeof what, "__torch__.torch.classes.%.*s.%.*s", part[2].n, part[2].s, part[3].n, part[3].s);
    if (part[2].n + part[3].n > 120) {
        opdi_syntax_error(&p->lx, &part[3], "class name is too long");
        return NULL;
    }
    return opdi_type_word(p, OPDI_TYPE_CLASS, what, strlen(what));
}

/* A word that is no type: a type variable where they are allowed, else an error. */
OPDI_NOINLINE static const opdi_type *opdi_parse_unknown_type(opdi_parser *p, const opdi_token *tok) {
    const char *what = "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, "
                       "str, Scalar, Device, ScalarType, Layout, MemoryFormat, Generator; T[] is a list, T? optional";
    if (p->typevars && tok->s[0] >= 'a' && tok->s[0] <= 'z') {
        return opdi_type_word(p, OPDI_TYPE_VAR, tok->s, (size_t)tok->n);
    }
    if (opdi_token_is(tok, "double")) {
        what = "unknown type specifier. Use `float` instead of `double` in an operator's schema string";
    } else if (opdi_token_is(tok, "int64_t")) {
        what = "unknown type specifier. Use `SymInt` or `int` instead of `int64_t` in an operator's schema string";
    }
    opdi_syntax_error(&p->lx, tok, what);
    return NULL;
}

static const opdi_type *opdi_parse_base_type(opdi_parser *p) {
    opdi_token tok = p->lx.cur;
    const opdi_type *t;
    if (tok.kind == '(') return opdi_parse_composite(p, OPDI_TYPE_TUPLE, 0);
    if (tok.kind != OPDI_TOKEN_NONE && tok.kind != OPDI_TOKEN_NONETYPE && tok.kind != OPDI_TOKEN_IDENT) {
        opdi_lex_unexpected(&p->lx, OPDI_TOKEN_IDENT);
        return NULL;
    }
    opdi_lex(&p->lx);
    if ((t = opdi_base_find(&tok)) != NULL) return t;
    if (opdi_token_is(&tok, "Future")) return opdi_parse_composite(p, OPDI_TYPE_FUTURE, 1);
    if (opdi_token_is(&tok, "Await")) return opdi_parse_composite(p, OPDI_TYPE_AWAIT, 1);
    if (opdi_token_is(&tok, "RRef")) return opdi_parse_composite(p, OPDI_TYPE_RREF, 1);
    if (opdi_token_is(&tok, "Dict")) return opdi_parse_composite(p, OPDI_TYPE_DICT, 2);
    if (opdi_token_is(&tok, "Union")) return opdi_parse_union(p);
    if (opdi_token_is(&tok, "__torch__")) return opdi_parse_class(p);
    return opdi_parse_unknown_type(p, &tok);
}

/* type := base [alias] ( '[' ']' [alias] | '?' )*.  Stops at the "[" of a sized list. */
static const opdi_type *opdi_parse_type(opdi_parser *p) {
    const opdi_type *t = opdi_parse_base_type(p);
    if (t == NULL || opdi_parse_alias(p, &t) < 0) return NULL;
    for (;;) {
        if (p->lx.cur.kind == '[') {
            const opdi_lexer before = p->lx;
            opdi_lex(&p->lx);
            if (p->lx.cur.kind != ']') { p->lx = before; return t; }
            opdi_lex(&p->lx);
            if ((t = opdi_type_new(p, OPDI_TYPE_LIST, &t, 1)) == NULL || opdi_parse_alias(p, &t) < 0) return NULL;
        } else if (opdi_lex_next_if(&p->lx, '?')) {
            if ((t = opdi_make_optional(p, t)) == NULL) return NULL;
        } else return t;
    }
}

//-- constants ---------------------------------------------------------------------------------------------------------

/* A number as written.  `i` is right where `integral`, `d` always. */
typedef struct opdi_lexed {
    bool integral, imaginary, overflow;           /* overflow: integral, and more than int64_t holds */
    int64_t i;
    double d;
} opdi_lexed;

/* The C library's reading of the n characters at s, whatever decimal point the locale has.  HUGE_VAL: out of range, or
   too long. */
OPDI_NOINLINE static double opdi_strtod(const char *s, int n) {
    char buf[512], half[16];
    int i, k = 0, point;
    double d;
    bool zero = true, mantissa = true;
    snprintf(half, sizeof half, "%.1f", 0.5);                        /* "0.5": what is between is the point */
    point = (int)strlen(half) - 2;
    if (n > 480 || point < 1) return HUGE_VAL;
    for (i = 0; i < n; i++) {
        if ((s[i] | 32) == 'e') mantissa = false;
        if (mantissa && s[i] >= '1' && s[i] <= '9') zero = false;
        if (s[i] == '.') { memcpy(buf + k, half + 1, (size_t)point); k += point; }
        else buf[k++] = s[i];
    }
    buf[k] = 0;
    d = strtod(buf, NULL);
    return !zero && d < DBL_MIN ? HUGE_VAL : d;
}

/* Value of the decimal number at s. */
static double opdi_decimal(const char *s, int n) {
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int64_t m = 0;
    int i = 0, e = 0;
    if (n <= 15) {                                /* mantissa and power are exact, so is their quotient's rounding */
        for (; i < n && opdi_is_digit(s[i]); i++) m = 10 * m + (s[i] - '0');
        if (i < n && s[i] == '.') {
            for (i++; i < n && opdi_is_digit(s[i]); i++, e++) m = 10 * m + (s[i] - '0');
        }
        if (i == n && sizeof(void *) == 8) return (double)m / tens[e];    /* not where doubles may be wider (x87) */
    }
    return opdi_strtod(s, n);
}

static int opdi_read_number(const opdi_lexer *lx, const opdi_token *tok, bool negative, opdi_lexed *out) {
    const char *s = tok->s;
    const bool hex = tok->n > 2 && (s[1] | 32) == 'x';
    const uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1u : 0u), base = hex ? 16u : 10u;
    uint64_t u = 0;
    int i, n = tok->n;
    out->imaginary = s[n - 1] == 'j';
    if (out->imaginary) n--;
    out->integral = true;
    out->overflow = false;
    for (i = hex ? 2 : 0; i < n; i++) {
        const uint64_t digit = (uint64_t)(opdi_is_digit(s[i]) ? s[i] - '0' : (s[i] | 32) - 'a' + 10);
        if (!hex && !opdi_is_digit(s[i])) { out->integral = false; break; }
        if (u > (limit - digit) / base) out->overflow = true;
        else u = base * u + digit;
    }
    out->i = negative ? -(int64_t)(u / 2) - (int64_t)(u - u / 2) : (int64_t)u;
    out->d = hex ? (double)u : opdi_decimal(s, n);
    if (!(out->d <= DBL_MAX) || (hex && out->overflow)) return opdi_syntax_error(lx, tok, "number out of range");
    if (negative) out->d = -out->d;
    return 0;
}

/* The imaginary part of "1.+2.j", when the lexer stands before one; 0 parts read, 1, or -1. */
static int opdi_parse_imaginary(opdi_parser *p, double *im) {
    const opdi_lexer before = p->lx;
    opdi_lexed number;
    opdi_token tok;
    if (before.cur.kind != '+' && before.cur.kind != '-') return 0;
    opdi_lex(&p->lx);
    tok = p->lx.cur;
    if (tok.kind != OPDI_TOKEN_NUMBER || tok.s[tok.n - 1] != 'j') { p->lx = before; return 0; }
    opdi_lex(&p->lx);
    if (opdi_read_number(&p->lx, &tok, before.cur.kind == '-', &number) < 0) return -1;
    *im = number.d;
    return 1;
}

/* ['-'] NUMBER for an argument of this kind: complex where that is complex or the text has j, double where it is float
   or the text has a point or an exponent, else an integer. */
static int opdi_parse_number(opdi_parser *p, int32_t kind, opd_value *out) {
    const bool negative = opdi_lex_next_if(&p->lx, '-');
    opdi_lexed number;
    opdi_token tok;
    double im = 0.0;
    int more;
    if (opdi_lex_expect(&p->lx, OPDI_TOKEN_NUMBER, &tok) < 0) return -1;
    if (opdi_read_number(&p->lx, &tok, negative, &number) != 0) return -1;
    if ((more = number.imaginary ? 0 : opdi_parse_imaginary(p, &im)) < 0) return -1;
    if (kind == OPDI_TYPE_COMPLEX || number.imaginary || more) {
        double *c = (double *)opdi_arena_alloc(p->arena, 2 * sizeof *c);
        if (c == NULL) return -1;
        c[0] = number.imaginary ? 0.0 : number.d;
        c[1] = number.imaginary ? number.d : im;
        *out = opd_value_complex(c);
    } else if (kind == OPDI_TYPE_FLOAT || !number.integral) {
        *out = opd_value_float(number.d);
    } else {
        if (number.overflow) return opdi_syntax_error(&p->lx, &tok, "number out of range");
        *out = opd_value_int(number.i);
    }
    return 0;
}

/* Character of the escape sequence at s (behind the backslash), and its bytes; or the complaint. */
static const char *opdi_unescape(const char *s, const char *end, char *c, int *n) {
    static const char letters[] = "abfnrtv", codes[] = "\a\b\f\n\r\t\v";
    const char *at = s < end && *s != 0 ? strchr(letters, *s) : NULL;
    int v = 0;
    *n = 1;
    if (at != NULL) { *c = codes[at - letters]; return NULL; }
    if (s < end && (*s == '\\' || *s == '\'' || *s == '"' || *s == '\n')) { *c = *s; return NULL; }
    if (s < end && *s == 'x') return "unsupported hex specifier";
    if (s < end && (*s == 'u' || *s == 'U')) return "unsupported unicode specifier";
    for (*n = 0; *n < 3 && s + *n < end && s[*n] >= '0' && s[*n] <= '7'; ++*n) v = 8 * v + (s[*n] - '0');
    if (*n == 0 || v > 255) return "ill formed octal specifier";
    *c = (char)(unsigned char)v;
    return NULL;
}

static int opdi_parse_string(opdi_parser *p, const opdi_token *tok, opd_value *out) {
    const int q = tok->n >= 6 && tok->s[1] == tok->s[0] && tok->s[2] == tok->s[0] ? 3 : 1;
    const char *s = tok->s + q, *end = tok->s + tok->n - q, *complaint;
    char *text = opdi_arena_copy(p->arena, s, (size_t)(end - s)), *to = text;
    if (text == NULL) return -1;
    while (s < end) {
        int n;
        if (*s != '\\') { *to++ = *s++; continue; }
        complaint = opdi_unescape(s + 1, end, to++, &n);
        if (complaint != NULL) return opdi_syntax_error(&p->lx, tok, complaint);
        s += 1 + n;
    }
    *to = 0;
    *out = opd_value_str(text);
    out->n = (int32_t)(to - text);
    return 0;
}

/* Words that stand for numbers: the first six for any type, names of dtypes for ScalarType only. */
typedef struct opdi_word_number { const char *word; int32_t number; } opdi_word_number;
static const opdi_word_number opdi_word_numbers[] = {
    {"float", 6}, {"long", 4}, {"complex", 9}, {"strided", 0}, {"Mean", 1}, {"contiguous_format", 0},
    {"uint8", 0}, {"int8", 1}, {"int16", 2}, {"short", 2}, {"int32", 3}, {"int", 3}, {"int64", 4}, {"float16", 5},
    {"half", 5}, {"float32", 6}, {"float64", 7}, {"double", 7}, {"complex32", 8}, {"chalf", 8}, {"complex64", 9},
    {"cfloat", 9}, {"complex128", 10}, {"cdouble", 10}, {"bool", 11}, {"qint8", 12}, {"quint8", 13}, {"qint32", 14},
    {"bfloat16", 15}, {"float8_e5m2", 23}, {"float8_e4m3fn", 24}, {"float8_e5m2fnuz", 25}, {"float8_e4m3fnuz", 26},
    {"uint16", 27}, {"uint32", 28}, {"uint64", 29},
};

static int opdi_parse_word_constant(opdi_parser *p, const opdi_type *type, opd_value *out) {
    const opdi_type *inner = type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0] : type;
    const bool dtype = inner->word != NULL && strcmp(inner->word, "ScalarType") == 0;
    const size_t n = dtype ? sizeof opdi_word_numbers / sizeof *opdi_word_numbers : 6;
    const opdi_token tok = p->lx.cur;
    size_t i;
    for (i = 0; i < n; i++) {
        if (opdi_token_is(&tok, opdi_word_numbers[i].word)) {
            *out = opd_value_int(opdi_word_numbers[i].number);
            opdi_lex(&p->lx);
            return 0;
        }
    }
    return opdi_syntax_error(&p->lx, &tok, "invalid numeric default value");
}

static int opdi_parse_device(opdi_parser *p, opd_value *out) {
    opdi_token tok;
    opd_device device = opd_device_of(OPD_CPU, -1);
    if (opdi_lex_expect(&p->lx, OPDI_TOKEN_STRING, &tok) < 0 || opdi_parse_string(p, &tok, out) < 0) return -1;
    if (opd_device_parse(out->u.s, &device) < 0) return -1;
    *out = opd_value_device(device);
    return 0;
}

/* One constant of any kind; the type decides little (see opdi_parse_number). */
static int opdi_parse_constant(opdi_parser *p, const opdi_type *type, opd_value *out) {
    opdi_token tok = p->lx.cur;
    switch (tok.kind) {
    case OPDI_TOKEN_TRUE: case OPDI_TOKEN_FALSE:
        *out = opd_value_bool(tok.kind == OPDI_TOKEN_TRUE);
        opdi_lex(&p->lx);
        return 0;
    case OPDI_TOKEN_NONE:
        *out = opd_value_none();
        opdi_lex(&p->lx);
        return 0;
    case OPDI_TOKEN_STRING:
        if (type->kind == OPDI_TYPE_OPTIONAL && type->elems[0]->kind == OPDI_TYPE_DEVICE) {
            return opdi_parse_device(p, out);
        }
        opdi_lex(&p->lx);
        return opdi_parse_string(p, &tok, out);
    case OPDI_TOKEN_IDENT: return opdi_parse_word_constant(p, type, out);
    default: return opdi_parse_number(p, type->kind, out);
    }
}

/* A list of defaults while it is read: elements of 8 bytes (int64_t, double), bool, or opd_value (complex). */
typedef struct opdi_constants {
    int32_t kind;                                 /* of an element */
    size_t size;                                  /* bytes of an element */
    int n, cap;
    char *data;
} opdi_constants;

static const char opdi_no_list[] = "lists are only supported for float, int and complex types";
static bool opdi_constants_allowed(int32_t kind) {
    return kind == OPDI_TYPE_INT || kind == OPDI_TYPE_FLOAT || kind == OPDI_TYPE_BOOL || kind == OPDI_TYPE_COMPLEX;
}

/* Adds a value `times` times; it must be of the element's kind. */
static int opdi_constants_add(opdi_parser *p, opdi_constants *l, opd_value v, int times, const opdi_token *at) {
    const int tag = l->kind == OPDI_TYPE_INT ? OPD_TAG_INT : l->kind == OPDI_TYPE_FLOAT ? OPD_TAG_FLOAT :
                    l->kind == OPDI_TYPE_BOOL ? OPD_TAG_BOOL : OPD_TAG_COMPLEX;
    const bool truth = v.u.i != 0;
    const void *from = tag == OPD_TAG_BOOL ? (const void *)&truth : tag == OPD_TAG_COMPLEX ? (const void *)&v
                                                                                         : (const void *)&v.u;
    if (!opdi_constants_allowed(l->kind)) return opdi_syntax_error(&p->lx, at, opdi_no_list);
    if (v.tag != tag) return opdi_syntax_error(&p->lx, at, "default value in a list is not of the list's type");
    if (l->cap - l->n < times) {
        char *more;
        l->cap = OPDI_MAX(OPDI_MAX(2 * l->cap, 4), l->n + times);
        more = (char *)opdi_arena_alloc(p->arena, (size_t)l->cap * l->size);
        if (more == NULL) return -1;
        if (l->n > 0) memcpy(more, l->data, (size_t)l->n * l->size);
        l->data = more;
    }
    for (; times > 0; times--) memcpy(l->data + (size_t)l->n++ * l->size, from, l->size);
    return 0;
}

static opd_value opdi_constants_value(const opdi_constants *l) {
    const void *data = l->data;
    switch (l->kind) {
    case OPDI_TYPE_INT: return opd_value_ints((const int64_t *)data, l->n);
    case OPDI_TYPE_FLOAT: return opd_value_floats((const double *)data, l->n);
    case OPDI_TYPE_BOOL: return opd_value_bools((const bool *)data, l->n);
    default: return opd_value_list((const opd_value *)data, l->n);
    }
}

/* Default of a list: "[c, c]", or of a sized one a single constant that is repeated. */
static int opdi_parse_list_default(opdi_parser *p, const opdi_type *type, opd_value *out) {
    const opdi_type *elem = type->elems[0];
    const opdi_token first = p->lx.cur;
    opdi_constants list;
    opd_value v;
    memset(&list, 0, sizeof list);
    list.kind = elem->kind;
    list.size = elem->kind == OPDI_TYPE_BOOL ? sizeof(bool) : elem->kind == OPDI_TYPE_COMPLEX ? sizeof v : 8;
    if (first.kind == OPDI_TOKEN_IDENT) return opdi_lex_expect(&p->lx, OPDI_TOKEN_NONE, NULL);
    if (type->size >= 0 && first.kind != '[') {
        if (type->size > OPDI_MAX_REPEATED) {
            return opdi_syntax_error(&p->lx, &first, "list is too long for a repeated default value");
        }
        if (opdi_parse_constant(p, elem, &v) < 0) return -1;
        if (opdi_constants_add(p, &list, v, type->size, &first) < 0) return -1;
    } else {
        if (opdi_lex_expect(&p->lx, '[', NULL) < 0) return -1;
        while (list.n > 0 || p->lx.cur.kind != ']') {
            opdi_token at;
            if (list.n > 0 && !opdi_lex_next_if(&p->lx, ',')) break;
            at = p->lx.cur;
            if (opdi_parse_constant(p, elem, &v) < 0 || opdi_constants_add(p, &list, v, 1, &at) < 0) return -1;
        }
        if (opdi_lex_expect(&p->lx, ']', NULL) < 0) return -1;
    }
    if (!opdi_constants_allowed(list.kind)) return opdi_syntax_error(&p->lx, &first, opdi_no_list);
    *out = opdi_constants_value(&list);
    return 0;
}

static int opdi_parse_default(opdi_parser *p, const opdi_type *type, opd_value *out) {
    switch (type->kind) {
    case OPDI_TYPE_STR: case OPDI_TYPE_OPTIONAL: case OPDI_TYPE_NUMBER: case OPDI_TYPE_INT: case OPDI_TYPE_BOOL:
    case OPDI_TYPE_FLOAT: case OPDI_TYPE_COMPLEX:
        return opdi_parse_constant(p, type, out);
    case OPDI_TYPE_DEVICE: return opdi_parse_device(p, out);
    case OPDI_TYPE_LIST: return opdi_parse_list_default(p, type, out);
    default: break;
    }
    if (type->kind != OPDI_TYPE_TENSOR && type->kind != OPDI_TYPE_GENERATOR &&
        !(type->kind == OPDI_TYPE_OTHER && strcmp(type->word, "Quantizer") == 0)) {
        return opdi_syntax_error(&p->lx, &p->lx.cur, "unexpected type, no default value can be given for it");
    }
    *out = opd_value_none();
    return opdi_lex_expect(&p->lx, OPDI_TOKEN_NONE, NULL);
}

//-- declarations ------------------------------------------------------------------------------------------------------

/* '[' NUMBER ']' [alias] ['?'] behind the type of an argument or return. */
static const opdi_type *opdi_parse_sized(opdi_parser *p, const opdi_type *elem) {
    const opdi_type *t;
    opdi_type *list;
    opdi_lexed number;
    opdi_token tok;
    opdi_lex(&p->lx);
    if (opdi_lex_expect(&p->lx, OPDI_TOKEN_NUMBER, &tok) < 0) return NULL;
    if (opdi_read_number(&p->lx, &tok, false, &number) < 0) return NULL;
    if (number.imaginary || number.d > INT32_MAX) {
        opdi_syntax_error(&p->lx, &tok, "number out of range");
        return NULL;
    }
    if (opdi_lex_expect(&p->lx, ']', NULL) < 0) return NULL;
    if ((list = opdi_type_new(p, OPDI_TYPE_LIST, &elem, 1)) == NULL) return NULL;
    list->size = (int32_t)number.d;
    t = list;
    if (opdi_parse_alias(p, &t) < 0) return NULL;
    return opdi_lex_next_if(&p->lx, '?') ? opdi_make_optional(p, t) : t;
}

/* The tag that binds to this type without a conversion; 0: none does. */
static uint8_t opdi_type_tag(const opdi_type *t) {
    const opdi_type *elem;
    if (t->kind == OPDI_TYPE_OPTIONAL) t = t->elems[0];
    switch (t->kind) {
    case OPDI_TYPE_TENSOR: return OPD_TAG_TENSOR;
    case OPDI_TYPE_INT: return OPD_TAG_INT;
    case OPDI_TYPE_FLOAT: return OPD_TAG_FLOAT;
    case OPDI_TYPE_BOOL: return OPD_TAG_BOOL;
    case OPDI_TYPE_STR: return OPD_TAG_STR;
    case OPDI_TYPE_DEVICE: return OPD_TAG_DEVICE;
    case OPDI_TYPE_GENERATOR: return OPD_TAG_OBJECT;
    case OPDI_TYPE_LIST: break;
    default: return 0;
    }
    elem = t->elems[0];
    if (elem->kind == OPDI_TYPE_INT) return OPD_TAG_INTS;
    if (elem->kind == OPDI_TYPE_FLOAT) return OPD_TAG_FLOATS;
    if (elem->kind == OPDI_TYPE_BOOL) return OPD_TAG_BOOLS;
    if (elem->kind == OPDI_TYPE_OPTIONAL) elem = elem->elems[0];
    return elem->kind == OPDI_TYPE_TENSOR ? OPD_TAG_TENSORS : 0;
}

/* argument := type [sized] IDENT ['=' default];  return := type [sized] [IDENT] */
static int opdi_parse_argument(opdi_parser *p, opdi_arg *arg, bool is_return, bool keyword_only) {
    const opdi_type *t;
    opdi_token tok;
    p->written = false;
    p->nodes = 0;
    if ((t = opdi_parse_type(p)) == NULL) return -1;
    if (p->lx.cur.kind == '[' && (t = opdi_parse_sized(p, t)) == NULL) return -1;
    memset(arg, 0, sizeof *arg);
    arg->type = t;
    arg->name = "";
    arg->value = opd_value_none();
    arg->keyword_only = keyword_only;
    arg->written = p->written;
    arg->optional = t->kind == OPDI_TYPE_OPTIONAL;
    arg->tag = opdi_type_tag(t);
    if (is_return && p->lx.cur.kind != OPDI_TOKEN_IDENT) return 0;
    if (opdi_lex_expect(&p->lx, OPDI_TOKEN_IDENT, &tok) < 0) return -1;
    if ((arg->name = opdi_arena_copy(p->arena, tok.s, (size_t)tok.n)) == NULL) return -1;
    if (is_return || !opdi_lex_next_if(&p->lx, '=')) return 0;
    arg->has_default = true;
    return opdi_parse_default(p, t, &arg->value);
}

/* '(' [item (',' item)*] ')' of arguments or returns, into args[OPD_MAX_ARGS]; their number, or -1. */
static int opdi_parse_items(opdi_parser *p, opdi_arg *args, bool returns, bool *dots) {
    bool keyword_only = false;
    int n = 0;
    if (opdi_lex_expect(&p->lx, '(', NULL) < 0) return -1;
    if (opdi_lex_next_if(&p->lx, ')')) return 0;
    do {
        if (*dots) {
            return opdi_syntax_error(&p->lx, &p->lx.cur, returns ?
                                     "... must be the last element of the return list" :
                                     "... must be the last element of the argument list");
        }
        if (opdi_lex_next_if(&p->lx, OPDI_TOKEN_DOTS)) { *dots = true; continue; }
        if (!returns && opdi_lex_next_if(&p->lx, '*')) { keyword_only = true; continue; }
        if (n == OPD_MAX_ARGS) {
            return opdi_syntax_error(&p->lx, &p->lx.cur, returns ? "too many returns, this build only supports 64" :
                                                                   "too many arguments, this build only supports 64");
        }
        if (opdi_parse_argument(p, &args[n], returns, keyword_only) < 0) return -1;
        n++;
    } while (opdi_lex_next_if(&p->lx, ','));
    return opdi_lex_expect(&p->lx, ')', NULL) < 0 ? -1 : n;
}

/* Rules about defaults that need the whole list. */
static int opdi_check_defaults(const opdi_parser *p, const opdi_arg *args, int nargs, bool vararg) {
    bool seen = false;
    int i;
    for (i = 0; i < nargs; i++) {
        if (args[i].has_default) seen = true;
        else if (seen && !args[i].keyword_only && args[i].type->kind != OPDI_TYPE_LIST) {
            return opd_fail(OPD_ERROR_SCHEMA, "Non-default positional argument follows default argument. Parameter "
                            "%.80s in %.*s", args[i].name,
                            (int)OPDI_MIN(p->lx.end - p->lx.text, 400), p->lx.text);
        }
    }
    if (vararg && seen) {
        return opdi_syntax_error(&p->lx, &p->lx.cur, "schemas with vararg (...) can't have default value args");
    }
    return 0;
}

static int opdi_schema_take(opdi_parser *p, const opdi_arg *from, int n, opdi_arg **to, int32_t *count) {
    *to = NULL;
    *count = n;
    if (n == 0) return 0;
    *to = (opdi_arg *)opdi_arena_alloc(p->arena, (size_t)n * sizeof *from);
    if (*to == NULL) return -1;
    memcpy(*to, from, (size_t)n * sizeof *from);
    return 0;
}

/* arguments '->' returns [NEWLINE] EOF */
static int opdi_parse_signature(opdi_parser *p, opd_schema *s) {
    opdi_arg args[OPD_MAX_ARGS];
    int n = opdi_parse_items(p, args, false, &s->vararg);
    if (n < 0 || opdi_check_defaults(p, args, n, s->vararg) < 0) return -1;
    if (opdi_schema_take(p, args, n, &s->args, &s->nargs) < 0) return -1;
    if (opdi_lex_expect(&p->lx, OPDI_TOKEN_ARROW, NULL) < 0) return -1;
    n = 0;
    if (opdi_lex_next_if(&p->lx, OPDI_TOKEN_DOTS)) s->varret = true;
    else if (p->lx.cur.kind == '(') n = opdi_parse_items(p, args, true, &s->varret);
    else n = opdi_parse_argument(p, args, true, false) < 0 ? -1 : 1;
    if (n < 0 || opdi_schema_take(p, args, n, &s->returns, &s->nreturns) < 0) return -1;
    (void)opdi_lex_next_if(&p->lx, OPDI_TOKEN_NEWLINE);
    return opdi_lex_expect(&p->lx, OPDI_TOKEN_EOF, NULL);
}

static int opdi_schema_set_name(opdi_parser *p, opd_schema *s, const opdi_name *name, const char *ns) {
    s->ns = name->nns > 0 ? opdi_arena_copy(p->arena, name->ns, (size_t)name->nns)
                          : opdi_arena_copy(p->arena, ns, strlen(ns));
    s->name = opdi_arena_copy(p->arena, name->name, (size_t)name->nname);
    s->overload = opdi_arena_copy(p->arena, name->overload, (size_t)name->noverload);
    if (s->ns == NULL || s->name == NULL || s->overload == NULL) return -1;
    if (strcmp(s->ns, "aten") == 0 || strcmp(s->ns, "prim") == 0) p->typevars = true;
    return 0;
}

/* Bytes that the parts of a schema will take, so that one allocation does for an ordinary one. */
static size_t opdi_schema_estimate(const char *text, size_t length) {
    size_t i, commas = 0, brackets = 0;
    for (i = 0; i < length; i++) {
        commas += text[i] == ',' || text[i] == '>';
        brackets += text[i] == '(' || text[i] == '[' || text[i] == '?';
    }
    commas = OPDI_MIN(commas, 2u * OPD_MAX_ARGS);
    brackets = OPDI_MIN(brackets, 4u * OPD_MAX_ARGS);
    return sizeof(opd_schema) + length + 64 + (commas + 1) * (sizeof(opdi_arg) + 8) +
           brackets * (sizeof(opdi_type) + sizeof(opdi_alias) + 16);
}

/* Parses a declaration.  `ns` is its namespace when the text has none (NULL: stays without); `typevars` allows type
   variables outside of aten and prim, too.  NULL with the error recorded. */
static opd_schema *opdi_schema_parse(const char *text, size_t length, const char *ns, bool typevars) {
    opdi_parser p;
    opdi_arena arena;
    opdi_name name;
    opd_schema *s;
    memset(&arena, 0, sizeof arena);
    if (opdi_schema_check_text(text, length) < 0) return NULL;
    opdi_lexer_init(&p.lx, text, length);
    if (opdi_lex_name(&p.lx, &name) < 0) return NULL;
    if (p.lx.cur.kind == OPDI_TOKEN_EOF) {
        opd_fail(OPD_ERROR_SCHEMA, "Tried to parse a function schema but only the operator name was given: %.*s",
                 length < 200 ? (int)length : 200, text);
        return NULL;
    }
    if (p.lx.cur.kind != '(') { opdi_lex_unexpected(&p.lx, OPDI_TOKEN_EOF); return NULL; }
    p.arena = &arena;
    p.typevars = typevars;
    p.fresh = 0;
    if (opdi_arena_grow(&arena, opdi_schema_estimate(text, length)) < 0) return NULL;
    s = (opd_schema *)opdi_arena_alloc(&arena, sizeof *s);
    if (s != NULL) memset(s, 0, sizeof *s);
    if (s == NULL || opdi_schema_set_name(&p, s, &name, ns == NULL ? "" : ns) < 0 || opdi_parse_signature(&p, s) < 0) {
        opdi_arena_free(&arena);
        return NULL;
    }
    s->arena = arena;
    return s;
}

OPD_API opd_schema *opd_schema_parse(const char *text) {
    return opdi_schema_parse(text, text == NULL ? 0 : strlen(text), NULL, true);
}

OPD_API void opd_schema_free(opd_schema *schema) {
    if (schema != NULL) {
        opdi_arena arena = schema->arena;         /* which the schema lies in */
        opdi_arena_free(&arena);
    }
}

OPD_API int opd_schema_nargs(const opd_schema *schema) { return schema == NULL ? 0 : schema->nargs; }
OPD_API int opd_schema_nreturns(const opd_schema *schema) { return schema == NULL ? 0 : schema->nreturns; }

OPD_API const char *opd_schema_arg_name(const opd_schema *schema, int i) {
    if (schema != NULL && i >= 0 && i < schema->nargs) return schema->args[i].name;
    opd_fail(OPD_ERROR_INDEX, "schema has no argument %d", i);
    return NULL;
}

OPD_API bool opd_schema_is_mutable(const opd_schema *schema) {
    int i;
    for (i = 0; schema != NULL && i < schema->nargs; i++) {
        if (schema->args[i].written) return true;
    }
    return false;
}

//-- printer -----------------------------------------------------------------------------------------------------------

/* Text that is cut to cap bytes, and the length that it would have. */
typedef struct opdi_writer {
    char *buf;
    size_t cap, n;
} opdi_writer;

static void opdi_write(opdi_writer *w, const char *s, size_t n) {
    if (w->n < w->cap) memcpy(w->buf + w->n, s, OPDI_MIN(n, w->cap - w->n));
    w->n += n;
}
static void opdi_write_text(opdi_writer *w, const char *s) { opdi_write(w, s, strlen(s)); }
static void opdi_write_char(opdi_writer *w, char c) { opdi_write(w, &c, 1); }

static void opdi_write_int(opdi_writer *w, int64_t i) {
    char buf[24];
    snprintf(buf, sizeof buf, "%lld", (long long)i);
    opdi_write_text(w, buf);
}

/* As PyTorch prints a double: "1." when integral, else 17 significant digits. */
static void opdi_write_double(opdi_writer *w, double d) {
    char buf[48];
    const char *c;
    if (d > -9e18 && d < 9e18 && (double)(int64_t)d == d) {
        opdi_write_int(w, (int64_t)d);
        opdi_write_char(w, '.');
        return;
    }
    snprintf(buf, sizeof buf, "%.17g", d);
    for (c = buf; *c != 0; c++) {                 /* the locale's decimal point, of any length, becomes "." */
        if (opdi_is_digit(*c) || opdi_is_letter(*c) || *c == '-' || *c == '+') opdi_write_char(w, *c);
        else if (c == buf || opdi_is_digit(c[-1])) opdi_write_char(w, '.');
    }
}

static void opdi_write_quoted(opdi_writer *w, const char *s, int n) {
    static const char codes[] = "\a\b\f\n\r\t\v\\\"'", letters[] = "abfnrtv\\\"'";
    char octal[8];
    int i;
    opdi_write_char(w, '"');
    for (i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        const char *at = c != 0 ? strchr(codes, c) : NULL;
        if (at != NULL) {
            opdi_write_char(w, '\\');
            opdi_write_char(w, letters[at - codes]);
        } else if (c >= 32 && c < 127) {
            opdi_write_char(w, (char)c);
        } else {
            snprintf(octal, sizeof octal, "\\%03o", (unsigned)c);
            opdi_write_text(w, octal);
        }
    }
    opdi_write_char(w, '"');
}

static void opdi_write_device(opdi_writer *w, opd_device device) {
    char buf[64];
    opdi_write_char(w, '"');
    opdi_write_text(w, opd_device_print(device, buf, sizeof buf));
    opdi_write_char(w, '"');
}

static void opdi_write_scalar(opdi_writer *w, const opd_value *v) {
    switch (v->tag) {
    case OPD_TAG_INT: opdi_write_int(w, v->u.i); break;
    case OPD_TAG_FLOAT: opdi_write_double(w, v->u.d); break;
    case OPD_TAG_BOOL: opdi_write_text(w, v->u.i ? "True" : "False"); break;
    case OPD_TAG_STR: opdi_write_quoted(w, v->u.s, v->n); break;
    case OPD_TAG_DEVICE: opdi_write_device(w, v->u.device); break;
    case OPD_TAG_COMPLEX: {
        const double im = v->u.c[1];
        const bool minus = im < 0.0;
        opdi_write_double(w, v->u.c[0]);
        opdi_write_char(w, minus ? '-' : '+');
        opdi_write_double(w, minus ? -im : im);
        opdi_write_char(w, 'j');
        break;
    }
    default: opdi_write_text(w, "None"); break;
    }
}

static opd_value opdi_list_element(const opd_value *v, int i) {
    switch (v->tag) {
    case OPD_TAG_INTS: return opd_value_int(v->u.ints[i]);
    case OPD_TAG_FLOATS: return opd_value_float(v->u.floats[i]);
    case OPD_TAG_BOOLS: return opd_value_bool(v->u.bools[i]);
    default: return v->u.list[i];
    }
}

/* A default.  A list of several equal numbers, declared int[N] or int[], prints as one number, as in PyTorch. */
static void opdi_write_default(opdi_writer *w, const opdi_arg *arg) {
    const opd_value *v = &arg->value;
    bool once = arg->type->kind == OPDI_TYPE_LIST && v->tag == OPD_TAG_INTS && v->n > 1 &&
                strcmp(arg->type->elems[0]->word, "int") == 0;
    int i;
    if (v->tag < OPD_TAG_INTS || v->tag > OPD_TAG_LIST) { opdi_write_scalar(w, v); return; }
    for (i = 1; once && i < v->n; i++) once = v->u.ints[i] == v->u.ints[0];
    if (!once) opdi_write_char(w, '[');
    for (i = 0; i < (once ? 1 : v->n); i++) {
        const opd_value elem = opdi_list_element(v, i);
        if (i > 0) opdi_write_text(w, ", ");
        opdi_write_scalar(w, &elem);
    }
    if (!once) opdi_write_char(w, ']');
}

static bool opdi_alias_same_sets(const opdi_alias *a) {
    int i, k;
    for (i = 0; i < a->nbefore; i++) {
        for (k = 0; k < a->nafter && strcmp(a->before[i], a->after[k]) != 0; k++) {}
        if (k == a->nafter) return false;
    }
    return a->nbefore == a->nafter;
}

static void opdi_write_sets(opdi_writer *w, const char *const *sets, int n) {
    int i;
    for (i = 0; i < n; i++) {
        if (i > 0) opdi_write_char(w, '|');
        opdi_write_text(w, sets[i]);
    }
}

static void opdi_write_alias(opdi_writer *w, const opdi_alias *a) {
    if (a == NULL) return;
    if (a->nafter == 0) { opdi_write_char(w, '!'); return; }
    opdi_write_char(w, '(');
    opdi_write_sets(w, a->before, a->nbefore);
    if (a->write) opdi_write_char(w, '!');
    if (!opdi_alias_same_sets(a)) {
        opdi_write_text(w, " -> ");
        opdi_write_sets(w, a->after, a->nafter);
    }
    opdi_write_char(w, ')');
}

static void opdi_write_type(opdi_writer *w, const opdi_type *t) {
    static const char *const heads[] = {"(", "Dict(", "Union(", "Future(", "RRef(", "Await("};    /* from TUPLE on */
    int i;
    if (t->kind <= OPDI_TYPE_CLASS) {
        opdi_write_text(w, t->word);
    } else if (t->kind == OPDI_TYPE_LIST) {
        opdi_write_type(w, t->elems[0]);
        opdi_write_char(w, '[');
        if (t->size >= 0) opdi_write_int(w, t->size);
        opdi_write_char(w, ']');
    } else if (t->kind == OPDI_TYPE_OPTIONAL) {
        opdi_write_type(w, t->elems[0]);
        opdi_write_char(w, '?');
    } else {
        opdi_write_text(w, heads[t->kind - OPDI_TYPE_TUPLE]);
        for (i = 0; i < t->nelems; i++) {
            if (i > 0) opdi_write_text(w, ", ");
            opdi_write_type(w, t->elems[i]);
        }
        opdi_write_char(w, ')');
    }
    opdi_write_alias(w, t->alias);
}

static void opdi_write_argument(opdi_writer *w, const opdi_arg *arg) {
    opdi_write_type(w, arg->type);
    if (arg->name[0] != 0) {
        opdi_write_char(w, ' ');
        opdi_write_text(w, arg->name);
    }
    if (arg->has_default) {
        opdi_write_char(w, '=');
        opdi_write_default(w, arg);
    }
}

/* One return stands bare, unless its text begins with a bracket, which would be read as the list's. */
static void opdi_write_returns(opdi_writer *w, const opd_schema *s) {
    bool brackets = s->nreturns + (s->varret ? 1 : 0) != 1;
    int i;
    if (!brackets && s->nreturns == 1) {
        const opdi_type *t = s->returns[0].type;
        while (t->kind == OPDI_TYPE_LIST || t->kind == OPDI_TYPE_OPTIONAL) t = t->elems[0];
        brackets = t->kind == OPDI_TYPE_TUPLE;
    }
    if (brackets) opdi_write_char(w, '(');
    for (i = 0; i < s->nreturns; i++) {
        if (i > 0) opdi_write_text(w, ", ");
        opdi_write_argument(w, &s->returns[i]);
    }
    if (s->varret) opdi_write_text(w, s->nreturns > 0 ? ", ..." : "...");
    if (brackets) opdi_write_char(w, ')');
}

static void opdi_write_schema(opdi_writer *w, const opd_schema *s) {
    bool star = false;
    int i;
    if (s->ns[0] != 0) {
        opdi_write_text(w, s->ns);
        opdi_write_text(w, "::");
    }
    opdi_write_text(w, s->name);
    if (s->overload[0] != 0) {
        opdi_write_char(w, '.');
        opdi_write_text(w, s->overload);
    }
    opdi_write_char(w, '(');
    for (i = 0; i < s->nargs; i++) {
        if (i > 0) opdi_write_text(w, ", ");
        if (s->args[i].keyword_only && !star) {
            opdi_write_text(w, "*, ");
            star = true;
        }
        opdi_write_argument(w, &s->args[i]);
    }
    if (s->vararg) opdi_write_text(w, s->nargs > 0 ? ", ..." : "...");
    opdi_write_text(w, ") -> ");
    opdi_write_returns(w, s);
}

OPD_API size_t opd_schema_print(const opd_schema *schema, char *buf, size_t cap) {
    opdi_writer w;
    w.buf = buf;
    w.cap = buf == NULL || cap == 0 ? 0 : cap - 1;
    w.n = 0;
    if (schema != NULL) opdi_write_schema(&w, schema);
    if (buf != NULL && cap > 0) buf[OPDI_MIN(w.n, w.cap)] = 0;
    return w.n;
}

OPDI_COLD_END

//----------------------------------------------------------------------------------------------------------------------
//  >>keys       dispatch keys, alias keys, key sets
//
//  Names and numbers of keys, what an alias key stands for, and the arithmetic of key sets (c10/core/DispatchKey.h,
//  c10/core/DispatchKeySet.cpp).  Everything follows from the tables below.  Uses errors only; knows no operators.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_BACKEND_MASK (((uint64_t)1 << OPD_BACKEND_COUNT) - 1)
#define OPDI_FUNCTIONALITY_MASK (((uint64_t)1 << (OPD_F_COUNT - 1)) - 1)
#define OPDI_ROWS 7                               /* per-backend functionalities */

/* What stands above a functionality: a bit per alias key, in the order of the enum, and two more facts. */
#define OPDI_BY_AUTOGRAD 1u                       /* in Autograd */
#define OPDI_BY_IMPLICIT 2u                       /* in CompositeImplicitAutograd */
#define OPDI_BY_BATCHED 4u                        /* in FuncTorchBatchedDecomposition */
#define OPDI_BY_NESTED 8u                         /* in CompositeImplicitAutogradNestedTensor */
#define OPDI_BY_EXPLICIT 16u                      /* in CompositeExplicitAutograd */
#define OPDI_BY_NON_FUNCTIONAL 32u                /* in CompositeExplicitAutogradNonFunctional, but for XLA and Lazy */
#define OPDI_IS_BACKEND 64u                       /* in the backend set */
#define OPDI_IN_OTHER 128u                        /* a backend whose autograd key is AutogradOther */

#define OPDI_COMPOSITE_ROLE (OPDI_BY_IMPLICIT | OPDI_BY_EXPLICIT)
#define OPDI_UNDEFINED_ROLE (OPDI_COMPOSITE_ROLE | OPDI_BY_NON_FUNCTIONAL)
#define OPDI_DENSE_ROLE (OPDI_UNDEFINED_ROLE | OPDI_IS_BACKEND)
#define OPDI_OTHER_ROLE (OPDI_DENSE_ROLE | OPDI_IN_OTHER)
#define OPDI_SPARSE_ROLE (OPDI_COMPOSITE_ROLE | OPDI_IS_BACKEND | OPDI_IN_OTHER)
#define OPDI_GRAD_ROLE (OPDI_BY_AUTOGRAD | OPDI_BY_IMPLICIT)

/* One row a functionality: its name, and the bits above.  Indexed by functionality. */
typedef struct opdi_functionality { const char *name; uint32_t role; } opdi_functionality;
static const opdi_functionality opdi_functionalities[64] = {
    {"Undefined", OPDI_UNDEFINED_ROLE},
    {"Dense", OPDI_DENSE_ROLE}, {"FPGA", OPDI_OTHER_ROLE}, {"MAIA", OPDI_OTHER_ROLE}, {"Vulkan", OPDI_OTHER_ROLE},
    {"Metal", OPDI_OTHER_ROLE}, {"Quantized", OPDI_OTHER_ROLE}, {"CustomRNGKeyId", OPDI_OTHER_ROLE},
    {"MkldnnCPU", OPDI_OTHER_ROLE}, {"Sparse", OPDI_SPARSE_ROLE}, {"SparseCsr", OPDI_OTHER_ROLE},
    {"NestedTensor", OPDI_BY_IMPLICIT | OPDI_BY_NESTED},
    {"UserKey12", 0}, {"UserKey13", 0}, {"UserKey14", 0}, {"UserKey15", 0},
    {"BackendSelect", 0},
    {"UserKey17", 0}, {"UserKey18", 0}, {"UserKey19", 0}, {"UserKey20", 0},
    {"Fake", 0}, {"FuncTorchDynamicLayerBackMode", 0}, {"Functionalize", OPDI_BY_IMPLICIT}, {"Conjugate", 0},
    {"Negative", 0}, {"ZeroTensor", 0},
    {"UserKey27", 0}, {"UserKey28", 0}, {"UserKey29", 0}, {"UserKey30", 0},
    {"ADInplaceOrView", 0},
    {"UserKey32", 0}, {"UserKey33", 0}, {"UserKey34", 0}, {"UserKey35", 0},
    {"AutogradOther", OPDI_GRAD_ROLE}, {"AutogradFunctionality", OPDI_GRAD_ROLE},
    {"AutogradNestedTensor", OPDI_GRAD_ROLE | OPDI_BY_NESTED},
    {"UserKey39", 0}, {"UserKey40", 0}, {"UserKey41", 0}, {"UserKey42", 0},
    {"Tracer", 0},
    {"UserKey44", 0}, {"UserKey45", 0}, {"UserKey46", 0}, {"UserKey47", 0},
    {"AutocastFunctionality", 0},
    {"UserKey49", 0}, {"UserKey50", 0}, {"UserKey51", 0}, {"UserKey52", 0},
    {"FuncTorchBatched", OPDI_BY_BATCHED}, {"BatchedNestedTensor", 0}, {"FuncTorchVmapMode", 0},
    {"FuncTorchGradWrapper", 0}, {"FuncTorchDynamicLayerFrontMode", 0},
    {"UserKey58", 0}, {"UserKey59", 0}, {"UserKey60", 0}, {"UserKey61", 0},
    {"PreDispatch", 0}, {NULL, 0}
};

/* Names given to user keys at run time; NULL: not taken.  Filled under the lock of whoever makes user keys, with
   OPDI_PUBLISH and a string that stays for ever; read without a lock. */
static const char *opdi_user_names[64];

/* First table slot of a functionality, indexed by functionality: itself, or of its row of backends. */
static const uint8_t opdi_key_base[64] = {
    0, 64, 2, 3, 4, 5, 80, 7, 8, 96, 112, 128, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 33, 34, 35, 36, 144, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 160, 49, 50, 51, 52, 53, 54, 55, 56, 57,
    58, 59, 60, 61, 62, 0
};
/* The way back: functionality of a row. */
static const uint8_t opdi_row_functionality[OPDI_ROWS] = {
    OPD_F_DENSE, OPD_F_QUANTIZED, OPD_F_SPARSE, OPD_F_SPARSE_CSR, OPD_F_NESTED_TENSOR, OPD_F_AUTOGRAD, OPD_F_AUTOCAST
};

/* Names of the per-backend keys; indexed by row and backend. */
#define OPDI_ROW_NAMES(p) {p "CPU", p "CUDA", p "HIP", p "XLA", p "MPS", p "IPU", p "XPU", p "HPU", p "VE", p "Lazy", \
    p "MTIA", p "PrivateUse1", p "PrivateUse2", p "PrivateUse3", p "Meta"}
static const char opdi_row_names[OPDI_ROWS][OPD_BACKEND_COUNT][24] = {
    OPDI_ROW_NAMES(""), OPDI_ROW_NAMES("Quantized"), OPDI_ROW_NAMES("Sparse"), OPDI_ROW_NAMES("SparseCsr"),
    OPDI_ROW_NAMES("NestedTensor"), OPDI_ROW_NAMES("Autograd"), OPDI_ROW_NAMES("Autocast")
};

static const char *const opdi_alias_names[OPD_KEY_COUNT - OPD_KEY_SLOTS] = {
    "Autograd", "CompositeImplicitAutograd", "FuncTorchBatchedDecomposition", "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"
};

/* Spellings of older versions. */
typedef struct opdi_old_key { const char *name; opd_key key; } opdi_old_key;
static const opdi_old_key opdi_old_keys[] = {
    {"DefaultBackend", OPD_KEY_COMPOSITE_EXPLICIT}, {"Autocast", OPD_KEY_PER_BACKEND(6, OPD_CUDA)},
    {"CatchAll", OPD_KEY_UNDEFINED}, {"CPUTensorId", OPD_KEY_CPU}, {"CUDATensorId", OPD_KEY_CUDA},
    {"PrivateUse1_PreAutograd", OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE1)},
    {"PrivateUse2_PreAutograd", OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE2)},
    {"PrivateUse3_PreAutograd", OPD_KEY_PER_BACKEND(5, OPD_PRIVATEUSE3)},
    {"ORT", OPD_KEY_OF(OPD_F_MAIA)}
};

//  Numbers

/* The key's functionality; -1 for an alias key or a number that is no key. */
static int opdi_key_functionality(opd_key key) {
    if (key >= 0 && key < OPD_F_COUNT) { return (int)key; }
    if (key < OPD_KEY_BACKEND_BASE || key >= OPD_KEY_SLOTS || (key & 15) >= OPD_BACKEND_COUNT) { return -1; }
    return opdi_row_functionality[(key - OPD_KEY_BACKEND_BASE) >> 4];
}

/* The backend of a per-backend key; -1 for every other. */
static int opdi_key_backend(opd_key key) {
    return key >= OPD_KEY_BACKEND_BASE && opdi_key_functionality(key) >= 0 ? (int)(key & 15) : -1;
}

static bool opdi_functionality_per_backend(int functionality) {
    return opdi_key_base[functionality] >= OPD_KEY_BACKEND_BASE;
}

/* True for a key that is a slot of the table.  "Dense" and the other six are not: only with a backend. */
static bool opdi_key_is_runtime(opd_key key) {
    int f = opdi_key_functionality(key);
    return f >= 0 && (key >= OPD_KEY_BACKEND_BASE || !opdi_functionality_per_backend(f));
}

OPD_API bool opd_key_is_alias(opd_key key) { return key >= OPD_KEY_SLOTS && key < OPD_KEY_COUNT; }

/* The role bits of a slot; 0 for a key that is none. */
static uint32_t opdi_key_role(opd_key slot) {
    return opdi_key_is_runtime(slot) ? opdi_functionalities[opdi_key_functionality(slot)].role : 0;
}

//  What alias keys stand for

/* True when registering at `alias` fills `slot`.  A key that is no alias covers itself. */
static bool opdi_key_covers(opd_key alias, opd_key slot) {
    uint32_t role = opdi_key_role(slot), bit;
    int backend = opdi_key_backend(slot);
    if (!opd_key_is_alias(alias)) { return alias == slot && opdi_key_is_runtime(slot); }
    bit = 1u << (alias - OPD_KEY_SLOTS);
    if (bit == OPDI_BY_NON_FUNCTIONAL && (backend == OPD_XLA || backend == OPD_LAZY)) { return false; }
    return (role & bit) != 0;
}

/* Sets slots_out[s] to 1 for each of the OPD_KEY_SLOTS slots that the key fills, else to 0. */
static void opdi_key_expand(opd_key key, uint8_t *slots_out) {
    opd_key slot;
    for (slot = 0; slot < OPD_KEY_SLOTS; slot++) { slots_out[slot] = opdi_key_covers(key, slot); }
}

/* In the backend set: a kernel here hides CompositeImplicitAutograd at the autograd key above. */
static bool opdi_key_is_backend(opd_key slot) { return (opdi_key_role(slot) & OPDI_IS_BACKEND) != 0; }

/* A backend that has no autograd key of its own. */
static bool opdi_key_in_autograd_other(opd_key slot) { return (opdi_key_role(slot) & OPDI_IN_OTHER) != 0; }

/* The autograd slot that sits above a backend slot; Undefined where there is none. */
static opd_key opdi_autograd_key_of(opd_key backend_slot) {
    int f = opdi_key_is_runtime(backend_slot) ? opdi_key_functionality(backend_slot) : OPD_F_UNDEFINED;
    if (f == OPD_F_DENSE) { return OPD_KEY_PER_BACKEND(5, opdi_key_backend(backend_slot)); }
    if (f == OPD_F_NESTED_TENSOR) { return OPD_KEY_OF(OPD_F_AUTOGRAD_NESTED_TENSOR); }
    return opdi_key_in_autograd_other(backend_slot) ? OPD_KEY_AUTOGRAD_OTHER : OPD_KEY_UNDEFINED;
}

//  Names

/* A name given to a user key; NULL when it is not taken, or is no user key. */
static const char *opdi_user_name(int functionality) { return OPDI_ACQUIRE(&opdi_user_names[functionality]); }

/* User keys are the functionalities that are called so until they get a name. */
static bool opdi_functionality_is_user(int functionality) {
    return strncmp(opdi_functionalities[functionality].name, "UserKey", 7) == 0;
}

static const char *opdi_functionality_name(int functionality) {
    const char *name = opdi_user_name(functionality);
    return name ? name : opdi_functionalities[functionality].name;
}

OPD_API const char *opd_key_name(opd_key key) {
    int f = opdi_key_functionality(key);
    if (opd_key_is_alias(key)) { return opdi_alias_names[key - OPD_KEY_SLOTS]; }
    if (f < 0) { return "?"; }
    if (key < OPD_KEY_BACKEND_BASE) { return opdi_functionality_name(f); }
    return opdi_row_names[(key - OPD_KEY_BACKEND_BASE) >> 4][key & 15];
}

/* The same without an error.  A user key is found by the name it was given, and not before it has one. */
static opd_key opdi_key_find(const char *name) {
    opd_key key;
    size_t i;
    for (key = 0; key < OPD_KEY_COUNT; key++) {
        int f = opdi_key_functionality(key);
        if (f < 0 && !opd_key_is_alias(key)) { continue; }
        if (f == key && opdi_functionality_is_user(f) && !opdi_user_name(f)) { continue; }
        if (strcmp(opd_key_name(key), name) == 0) { return key; }
    }
    for (i = 0; i < sizeof(opdi_old_keys) / sizeof(opdi_old_keys[0]); i++) {
        if (strcmp(opdi_old_keys[i].name, name) == 0) { return opdi_old_keys[i].key; }
    }
    return OPD_KEY_INVALID;
}

OPD_API opd_key opd_key_parse(const char *name) {
    opd_key key = name ? opdi_key_find(name) : (opd_key)OPD_KEY_INVALID;
    if (key == OPD_KEY_INVALID) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "could not parse dispatch key: %s", name ? name : "NULL");
    }
    return key;
}

//  Key sets

/* Number of the highest bit; x must not be 0. */
static inline int opdi_highest_bit(uint64_t x) {
#if defined(__GNUC__) && !defined(__TINYC__)
    return 63 - __builtin_clzll(x);
#else
    int n = 0, step;
    for (step = 32; step > 0; step >>= 1) {
        if (x >> step) { x >>= step; n += step; }
    }
    return n;
#endif
}

/* Table index of the highest key: 0 (Undefined) for the empty set.  A per-backend functionality without a backend goes
   to CPU's slot, as in PyTorch. */
static inline int opdi_slot_of(opd_keyset set) {
    int base = opdi_key_base[opdi_highest_bit(set.functionality << 1 | 1)];
    int backend = opdi_highest_bit((set.backends & OPDI_BACKEND_MASK) | 1);
    return base + (backend & -(base >> 6 != 0));
}

/* The bits that stand for a key; empty for Undefined, an alias key and what is no key. */
static opd_keyset opdi_keyset_of(opd_key key) {
    int f = opdi_key_functionality(key), backend = opdi_key_backend(key);
    return opd_keyset_make(f > 0 ? OPD_BIT_OF(f) : 0, backend >= 0 ? (uint64_t)1 << backend : 0);
}

OPD_API opd_keyset opd_keyset_add(opd_keyset set, opd_key key) {
    if (opdi_key_functionality(key) < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, opd_key_is_alias(key) ? "alias key %s cannot be in a key set"
                       : "%s: not a dispatch key, so it cannot be in a key set", opd_key_name(key));
    }
    return opd_keyset_or(set, opdi_keyset_of(key));
}

OPD_API opd_keyset opd_keyset_remove(opd_keyset set, opd_key key) {
    return opd_keyset_make(set.functionality & ~opdi_keyset_of(key).functionality, set.backends);
}

OPD_API bool opd_keyset_has(opd_keyset set, opd_key key) {
    opd_keyset k = opdi_keyset_of(key);
    return (set.functionality & k.functionality) != 0 && (set.backends & k.backends) == k.backends;
}

OPD_API opd_key opd_keyset_highest(opd_keyset set) {
    int slot;
    set.functionality &= OPDI_FUNCTIONALITY_MASK;
    slot = opdi_slot_of(set);
    if (slot >= OPD_KEY_BACKEND_BASE && (set.backends & OPDI_BACKEND_MASK) == 0) { return OPD_KEY_UNDEFINED; }
    return (opd_key)slot;
}

/* Appends at *at what fits into cap bytes with the zero. */
static void opdi_keyset_append(char *buf, size_t cap, size_t *at, const char *text) {
    while (*text && *at + 1 < cap) { buf[(*at)++] = *text++; }
}

OPD_API const char *opd_keyset_print(opd_keyset set, char *buf, size_t cap) {
    const char *comma = "";
    size_t at = 0;
    int f, b;
    opdi_keyset_append(buf, cap, &at, "DispatchKeySet(");
    for (f = 1; f < OPD_F_COUNT; f++) {
        int count = opdi_functionality_per_backend(f) ? OPD_BACKEND_COUNT : 1;
        if (!(set.functionality & OPD_BIT_OF(f))) { continue; }
        for (b = 0; b < count; b++) {
            if (count > 1 && !(set.backends >> b & 1)) { continue; }
            opdi_keyset_append(buf, cap, &at, comma);
            opdi_keyset_append(buf, cap, &at, opd_key_name((opd_key)opdi_key_base[f] + b));
            comma = ", ";
        }
    }
    opdi_keyset_append(buf, cap, &at, ")");
    if (cap > 0) { buf[at] = 0; }
    return buf;
}

#define OPDI_AUTOGRAD_BITS (OPD_BIT_OF(OPD_F_AUTOGRAD_OTHER) | OPD_BIT_OF(OPD_F_AUTOGRAD) | \
                            OPD_BIT_OF(OPD_F_AUTOGRAD_NESTED_TENSOR))

//-- guards ---------------------------------------------------------------------------------------------------------

opd_keyset opd_keys_included(void) { return opd_keyset_make(opdi_self()->state.include, 0); }
opd_keyset opd_keys_excluded(void) { return opd_keyset_make(~opdi_self()->state.allow, 0); }

opd_key_guard opd_keys_include(opd_keyset set) {
    opdi_thread *th = opdi_self();
    opd_key_guard g;
    g.include = set.functionality & ~th->state.include;
    g.exclude = 0;
    th->state.include |= g.include;
    return g;
}

opd_key_guard opd_keys_exclude(opd_keyset set) {
    opdi_thread *th = opdi_self();
    opd_key_guard g;
    g.include = 0;
    g.exclude = set.functionality & th->state.allow;
    th->state.allow &= ~g.exclude;
    return g;
}

void opd_keys_restore(opd_key_guard guard) {
    opdi_thread *th = opdi_self();
    th->state.include &= ~guard.include;
    th->state.allow |= guard.exclude;
}

//----------------------------------------------------------------------------------------------------------------------
//  >>dispatcher operators, kernels, computed tables, libraries, calls, dumps
//
//  Which kernel a call runs, and the call itself.  Registration is under one lock; tables are computed at an operator's
//  first call, published whole and never changed, so that calls take no lock.  Uses schemas and keys; knows of tensors
//  their key set, of autograd that a call may skip its keys when nothing requires grad.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_MAX_RETURNS 16
#define OPDI_MAX_DEPTH 400                        /* nested calls: a kernel that calls itself ends here, not at the stack's end */

/* A registered kernel. */
typedef struct opdi_kernel {
    opd_kernel fn;
    void *user;
    void (*destroy)(void *user);
    opd_key key;
    opd_library *lib;
    struct opdi_kernel *next;                     /* in its operator's list, newest first */
} opdi_kernel;

typedef struct opdi_slot { opd_kernel fn; void *user; } opdi_slot;

typedef struct opdi_table {
    uint64_t masks[2][16];                        /* functionalities that do not fall through, per backend; [0]: when nothing
                                                     requires grad, where autograd kernels that then do nothing are left out */
    struct opdi_table *retired;                   /* older ones: a call may still be inside */
    opdi_slot slots[OPD_KEY_SLOTS];
} opdi_table;

/* What a node runs in backward. */
typedef struct opdi_derivative {
    const char *name;
    opd_backward_fn fn;
    const struct opdi_card *card;                 /* NULL: recorded by hand */
} opdi_derivative;

/* A card as registered: the desc, and what the autograd kernel needs, worked out once.  Never freed: nodes of a tape
   may outlive the library. */
typedef struct opdi_card {
    opd_op_desc desc;
    opd_op *op;
    char node_name[64];                           /* "MulBackward0" */
    opdi_derivative formula, missing;                /* what its nodes run: the card's, or one that says there is none */
    uint64_t save_args;                           /* tensor arguments the formula reads */
    uint32_t save_results;
    int8_t save_if[OPD_MAX_ARGS];                 /* saved only if this argument's gradient is wanted; -1: always */
    int8_t save_result_if[OPDI_MAX_RETURNS];
    struct opdi_card *base;                       /* derived forms: the functional card */
    int8_t map[OPD_MAX_ARGS];                     /* derived forms: functional argument -> own argument, or -1 */
    bool inplace;
    struct opdi_card *next;                       /* in its operator's list */
} opdi_card;

struct opd_op {
    opdi_table *table;                            /* NULL: not computed, or undefined */
    opd_schema *schema;                           /* NULL: not defined */
    uint64_t tensor_args, list_args;              /* which arguments are Tensor(?), Tensor(?)[] */
    uint64_t written_args;                        /* annotated as written */
    int32_t nargs, nrets;
    uint8_t tags[OPD_MAX_ARGS];                   /* opd_tag that binds without conversion */
    int8_t ret_alias[OPDI_MAX_RETURNS];           /* the written argument that result i is, or -1 */
    bool ret_tensor[OPDI_MAX_RETURNS];            /* result i is a Tensor(?) */
    char *name;                                   /* "ns::name.overload" */
    int32_t base_length;                          /* of "ns::name" */
    int32_t kernels_count;
    opdi_kernel *kernels;
    opdi_card *card, *cards;                      /* cards: of undone definitions too */
    opdi_card *bare;                              /* made for an operator without a card, to say that a formula is missing */
    opd_library *lib;                             /* the one that defined it */
    opd_op *next_in_bucket, *next_defined, *prev_defined;
    opdi_table *retired;
};

/* One thing a library did, newest first. */
typedef struct opdi_registration {
    int32_t kind;                                 /* 0 definition, 1 kernel, 2 fallback, 3 user pointer of a card */
    opd_key key;
    opd_op *op;
    opdi_kernel *kernel;
    struct opdi_registration *next;
} opdi_registration;

struct opd_library {
    opd_library_kind kind;
    int32_t line;
    opd_key key;                                  /* OPD_KEY_INVALID: none */
    bool in_block;
    char ns[64];
    const char *file;
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
    int32_t scope_depth;
    opd_key slot;
    bool inplace, elementwise;                    /* derived forms: target is self; kernel may write over its inputs */
};

static const char *opdi_call_name(const opd_call *call) { return call->op->name; }
static int opdi_call_scope_depth(const opd_call *call) { return call->scope_depth; }

#define OPDI_BUCKETS 2048
static struct {
    opdi_mutex lock;                              /* all of this but reading tables */
    opd_op *buckets[OPDI_BUCKETS];
    opd_op *first_defined, *last_defined;
    opd_library *libraries;
    opdi_kernel *fallbacks[OPD_KEY_SLOTS];
    opd_block *blocks, **blocks_end;
    opdi_mutex start;                             /* held while blocks run */
    opdi_thread *starter;
    int started;
    opd_op *builtin[OPD_OP_COUNT + 1];
} opdi_registry = {OPDI_MUTEX_INIT, {NULL}, NULL, NULL, NULL, {NULL}, NULL, NULL, OPDI_MUTEX_INIT, NULL, 0, {NULL}};

static int opdi_autograd_kernel(opd_call *call);
static int opdi_autograd_fallback(opd_call *call);
static int opdi_autograd_inplace_kernel(opd_call *call);
static int opdi_autograd_out_kernel(opd_call *call);
static int opdi_version_kernel(opd_call *call);
static int opdi_register_builtins(void);

//-- Text of a type or an argument, cut to cap bytes with the zero.
static const char *opdi_type_print(const opdi_type *type, char *buf, size_t cap) {
    opdi_writer w = {buf, cap - 1, 0};
    opdi_write_type(&w, type);
    buf[OPDI_MIN(w.n, cap - 1)] = 0;
    return buf;
}
static const char *opdi_arg_print(const opdi_arg *arg, char *buf, size_t cap) {
    opdi_writer w = {buf, cap - 1, 0};
    opdi_write_argument(&w, arg);
    buf[OPDI_MIN(w.n, cap - 1)] = 0;
    return buf;
}

int opd_fallthrough(opd_call *call) {
    (void)call;
    return opd_fail(OPD_ERROR_KERNEL, "a fallthrough kernel was called");
}
int opd_not_differentiable(opd_backward_call *bw) {
    (void)bw;
    return opd_fail(OPD_ERROR_AUTOGRAD, "not differentiable");
}

/* Families named in cards: the batching layer reads the name and never calls it. */
static int opdi_batch_named(void) { return opd_fail(OPD_ERROR_KERNEL, "a batching family is a name for cards, not a kernel"); }
int opd_batch_pointwise(opd_call *call) { (void)call; return opdi_batch_named(); }
int opd_batch_shift_dim(opd_call *call) { (void)call; return opdi_batch_named(); }
int opd_batch_matmul(opd_call *call) { (void)call; return opdi_batch_named(); }
int opd_batch_view(opd_call *call) { (void)call; return opdi_batch_named(); }
int opd_batch_decompose(opd_call *call) { (void)call; return opdi_batch_named(); }
int opd_batch_factory(opd_call *call) { (void)call; return opdi_batch_named(); }
int opd_batch_loop(opd_call *call) { (void)call; return opdi_batch_named(); }

OPDI_COLD_BEGIN

//-- library blocks -----------------------------------------------------------------------------------------------

void opd_block_link(opd_block *block) {
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

static void opdi_block_run(opd_block *b) {
    opdi_thread *th = opdi_self();
    opd_call *current = th->current;
    th->current = NULL;                           /* errors of a block are not the running kernel's */
    b->library = opd_library_open(b->kind, b->ns, b->key, b->file, b->line);
    if (b->library) {
        b->library->in_block = true;
        b->run(b->library);
        b->library->in_block = false;
    }
    th->current = current;
}

//-- Runs the blocks that nobody has run yet, the built-in operators first.  A thread that comes second waits.
OPDI_NOINLINE static void opdi_start(void) {
    opdi_thread *th = opdi_self();
    if (OPDI_LOAD(&opdi_registry.starter) == th) { return; }     /* a block looks something up */
    opdi_lock(&opdi_registry.start);
    OPDI_STORE(&opdi_registry.starter, th);
    if (!opdi_registry.builtin[OPD_OP_COUNT]) { (void)opdi_register_builtins(); }
    for (;;) {
        opd_block *b;
        opdi_lock(&opdi_registry.lock);
        b = opdi_registry.blocks;
        if (b) {
            opdi_registry.blocks = b->next;
            if (!b->next) { opdi_registry.blocks_end = &opdi_registry.blocks; }
        } else {
            OPDI_PUBLISH(&opdi_registry.started, 1);
        }
        opdi_unlock(&opdi_registry.lock);
        if (!b) { break; }
        opdi_block_run(b);
    }
    OPDI_STORE(&opdi_registry.starter, NULL);
    opdi_unlock(&opdi_registry.start);
}
static inline void opdi_started(void) {
    if (OPDI_UNLIKELY(!OPDI_ACQUIRE(&opdi_registry.started))) { opdi_start(); }
}

//-- names --------------------------------------------------------------------------------------------------------

static uint32_t opdi_hash(const char *s, size_t n) {
    uint32_t h = 2166136261u;
    size_t i;
    for (i = 0; i < n; i++) { h = (h ^ (uint8_t)s[i]) * 16777619u; }
    return h;
}

static opd_op *opdi_lookup(const char *name, size_t n) {
    opd_op *op = opdi_registry.buckets[opdi_hash(name, n) % OPDI_BUCKETS];
    while (op && !(strncmp(op->name, name, n) == 0 && op->name[n] == 0)) { op = op->next_in_bucket; }
    return op;
}

//-- The entry of a name, made if it is new.  Entries stay for ever, so handles are always valid.
static opd_op *opdi_entry(const char *name) {
    size_t n = strlen(name), bucket = opdi_hash(name, n) % OPDI_BUCKETS;
    const char *dot;
    opd_op *op = opdi_lookup(name, n);
    if (op) { return op; }
    op = (opd_op *)opdi_alloc(sizeof *op + n + 1);
    if (!op) { return NULL; }
    memset(op, 0, sizeof *op);
    op->name = (char *)(op + 1);
    memcpy(op->name, name, n + 1);
    dot = strrchr(name, '.');
    op->base_length = (int32_t)(dot ? dot - name : (ptrdiff_t)n);
    op->next_in_bucket = opdi_registry.buckets[bucket];
    opdi_registry.buckets[bucket] = op;
    return op;
}

//-- Edit distance, at most `most`: for "did you mean".
static int opdi_distance(const char *a, const char *b, int most) {
    int row[2][65], i, j, na = (int)strlen(a), nb = (int)strlen(b);
    if (na > 64 || nb > 64 || abs(na - nb) > most) { return most + 1; }
    for (j = 0; j <= nb; j++) { row[0][j] = j; }
    for (i = 1; i <= na; i++) {
        int *cur = row[i & 1], *old = row[(i + 1) & 1];
        cur[0] = i;
        for (j = 1; j <= nb; j++) {
            int d = old[j - 1] + (a[i - 1] != b[j - 1]);
            d = OPDI_MIN(d, old[j] + 1);
            cur[j] = OPDI_MIN(d, cur[j - 1] + 1);
        }
    }
    return row[na & 1][nb];
}

static int opdi_not_found(const char *name) {
    char near_text[512];
    size_t n = 0;
    int d, found = 0;
    size_t length = strlen(name);
    opd_op *op;
    near_text[0] = 0;
    opdi_lock(&opdi_registry.lock);
    for (d = 0; d <= 3 && found < 4; d++) {
        for (op = opdi_registry.first_defined; op && found < 4; op = op->next_defined) {
            bool overload = strncmp(op->name, name, length) == 0 && op->name[length] == '.';
            if (d == 0 ? overload : !overload && opdi_distance(op->name, name, 3) == d) {
                n += (size_t)snprintf(near_text + n, sizeof near_text - n, "%s%s", found ? ", " : "", op->name);
                if (n >= sizeof near_text) { n = sizeof near_text - 1; }
                found++;
            }
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return opd_fail(OPD_ERROR_NOT_FOUND, "no operator named '%s'%s%s", name, found ? "; did you mean " : "", near_text);
}

opd_op *opd_find_quiet(const char *name) {
    opd_op *op;
    size_t n = strlen(name);
    opdi_started();
    opdi_lock(&opdi_registry.lock);
    op = opdi_lookup(name, n);
    if (op && !op->schema && !op->kernels) { op = NULL; }
    opdi_unlock(&opdi_registry.lock);
    return op;
}

opd_op *opd_find(const char *name) {
    opd_op *op;
    if (!opd_ok()) { return NULL; }
    op = opd_find_quiet(name);
    if (!opd_ok()) { return NULL; }
    if (!op) { (void)opdi_not_found(name); return NULL; }
    if (!op->schema) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "Could not find schema for %s, but we found an implementation; did you forget "
                       "to opd_def() the operator?", name);
        return NULL;
    }
    return op;
}

const char *opd_op_name(const opd_op *op) { return op->name; }
const opd_schema *opd_op_schema(const opd_op *op) { return op->schema; }
const opd_op_desc *opd_op_card(const opd_op *op) { return op->card ? &op->card->desc : NULL; }
opd_op *opd_op_next(const opd_op *op) {
    opdi_started();
    return op ? op->next_defined : opdi_registry.first_defined;
}
opd_op *opd_op_builtin(opd_op_id id) {
    opdi_started();
    return (unsigned)id < (unsigned)OPD_OP_COUNT ? opdi_registry.builtin[id] : NULL;
}

static int opdi_signature_type(const opdi_type *t, char c) {
    const opdi_type *inner = t->kind == OPDI_TYPE_OPTIONAL ? t->elems[0] : t;
    const opdi_type *elem = inner->kind == OPDI_TYPE_LIST ? inner->elems[0] : NULL;
    switch (c) {
    case 'T': return inner->kind == OPDI_TYPE_TENSOR;
    case 'i': return inner->kind == OPDI_TYPE_INT || inner->kind == OPDI_TYPE_NUMBER;
    case 'd': return inner->kind == OPDI_TYPE_FLOAT || inner->kind == OPDI_TYPE_NUMBER;
    case 'b': return inner->kind == OPDI_TYPE_BOOL;
    case 's': return inner->kind == OPDI_TYPE_STR;
    case 'D': return inner->kind == OPDI_TYPE_DEVICE;
    case 'G': return inner->kind == OPDI_TYPE_GENERATOR;
    case 'I': return elem && elem->kind == OPDI_TYPE_INT;
    case 'F': return elem && elem->kind == OPDI_TYPE_FLOAT;
    case 'L': return elem && (elem->kind == OPDI_TYPE_TENSOR || elem->kind == OPDI_TYPE_OPTIONAL);
    case 'V': return 1;
    default: return 0;
    }
}

static int opdi_signature_error(const opd_op *op, const char *what, int i, char c) {
    char decl[700];
    (void)opd_schema_print(op->schema, decl, sizeof decl);
    return opd_fail(OPD_ERROR_REGISTER, "Tried to access or call an operator with a wrong signature. operator: %s. Type mismatch in %s %d: "
                    "accessed as '%c'.", decl, what, i, c);
}

int opd_op_check(const opd_op *op, const char *signature) {
    int i, nargs = (int)strlen(signature) - 1;
    char r = signature[0];
    if (!opd_ok()) { return -1; }
    if (!op || !op->schema) { return opd_fail(OPD_ERROR_NOT_FOUND, "no schema to check a signature against"); }
    if (nargs > op->nargs || (nargs < op->nargs && !op->schema->args[nargs].has_default)) {
        return opd_fail(OPD_ERROR_REGISTER, "Tried to access or call an operator with a wrong signature. operator: %s. The number of "
                        "arguments is different. %d vs %d.", op->name, nargs, op->nargs);
    }
    for (i = 0; i < nargs; i++) {
        if (!opdi_signature_type(op->schema->args[i].type, signature[i + 1])) { return opdi_signature_error(op, "argument", i + 1, signature[i + 1]); }
    }
    if (r == 'v' ? op->nrets != 0 : r == 'N' ? op->nrets < 1 : op->nrets != 1 || !opdi_signature_type(op->schema->returns[0].type, r)) {
        return opdi_signature_error(op, "return", 1, r);
    }
    return 0;
}

opd_op *opd_op_look_up(opd_op **handle, const char *name, const char *signature) {
    opd_op *op = opd_find(name);
    if (!op || opd_op_check(op, signature)) { return NULL; }
    *handle = op;
    return op;
}

//-- computed tables ----------------------------------------------------------------------------------------------

/* How a slot was chosen: the tags of PyTorch's dumps. */
typedef enum opdi_chosen {
    OPDI_CHOSEN_KERNEL, OPDI_CHOSEN_DEFAULT, OPDI_CHOSEN_NESTED, OPDI_CHOSEN_AMBIGUOUS, OPDI_CHOSEN_MATH,
    OPDI_CHOSEN_AUTOGRAD, OPDI_CHOSEN_BATCHED, OPDI_CHOSEN_FALLBACK, OPDI_CHOSEN_MISSING
} opdi_chosen;
static const char *const opdi_chosen_names[] = {"kernel", "default backend kernel", "nested kernel",
    "ambiguous autogradother", "math kernel", "autograd kernel", "batched kernel", "backend fallback", "missing"};

static opdi_kernel *opdi_direct(const opd_op *op, opd_key key) {
    opdi_kernel *k = op->kernels;
    while (k && k->key != key) { k = k->next; }
    return k;
}

//-- Some kernel is registered for a backend that the autograd slot `key` sits above, or one for every backend.
static bool opdi_has_backend_kernel(const opd_op *op, opd_key key) {
    const opdi_kernel *k;
    for (k = op->kernels; k; k = k->next) {
        if (k->key == OPD_KEY_COMPOSITE_EXPLICIT) { return true; }
        if (key != OPD_KEY_UNDEFINED && k->key < OPD_KEY_SLOTS && opdi_autograd_key_of(k->key) == key) { return true; }
    }
    return false;
}

//-- The kernel for one slot, in the order of precedence of OperatorEntry::computeDispatchTableEntryWithDebug.
static opdi_kernel *opdi_compute_slot(const opd_op *op, opd_key key, opdi_chosen *how) {
    opdi_kernel *k;
    bool undefined = key == OPD_KEY_UNDEFINED;
    *how = OPDI_CHOSEN_KERNEL;
    if ((k = opdi_direct(op, key)) != NULL) { return k; }
    *how = OPDI_CHOSEN_DEFAULT;
    if ((undefined || opdi_key_covers(OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, key)) &&
        (k = opdi_direct(op, OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL)) != NULL) { return k; }
    if ((undefined || opdi_key_covers(OPD_KEY_COMPOSITE_EXPLICIT, key)) &&
        (k = opdi_direct(op, OPD_KEY_COMPOSITE_EXPLICIT)) != NULL) { return k; }
    *how = OPDI_CHOSEN_NESTED;
    if (!undefined && opdi_key_covers(OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR, key) &&
        (k = opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR)) != NULL) { return k; }
    if ((undefined || opdi_key_covers(OPD_KEY_COMPOSITE_IMPLICIT, key)) &&
        (k = opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT)) != NULL) {
        const opdi_kernel *b;
        *how = OPDI_CHOSEN_AMBIGUOUS;
        for (b = op->kernels; key == OPD_KEY_AUTOGRAD_OTHER && b; b = b->next) {
            if (b->key < OPD_KEY_SLOTS && opdi_autograd_key_of(b->key) == OPD_KEY_AUTOGRAD_OTHER) { return NULL; }
        }
        *how = OPDI_CHOSEN_MATH;
        if (!opdi_has_backend_kernel(op, key)) { return k; }
    }
    *how = OPDI_CHOSEN_AUTOGRAD;
    if (opdi_key_covers(OPD_KEY_AUTOGRAD, key) && (k = opdi_direct(op, OPD_KEY_AUTOGRAD)) != NULL) { return k; }
    *how = OPDI_CHOSEN_BATCHED;
    if (opdi_key_covers(OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION, key) &&
        (k = opdi_direct(op, OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION)) != NULL) { return k; }
    *how = OPDI_CHOSEN_FALLBACK;
    if ((k = opdi_registry.fallbacks[key]) != NULL) { return k; }
    *how = OPDI_CHOSEN_MISSING;
    return NULL;
}

static size_t opdi_table_text(const opd_op *op, char *buf, size_t cap, bool fallbacks);

OPDI_NOINLINE static int opdi_ambiguous_kernel(opd_call *call) {
    return opd_fail(OPD_ERROR_NO_KERNEL, "%s has kernels registered to both CompositeImplicitAutograd and a backend mapped to "
                    "AutogradOther. This makes the backend kernel unreachable; the dispatcher will always prefer the "
                    "CompositeImplicitAutograd lowering. If you want to override it, open an issue to request a dedicated "
                    "Autograd dispatch key for the backend, or register an Autograd kernel.", call->op->name);
}

//-- The slot of keys for which nothing is registered: names what is, real kernels first.
OPDI_NOINLINE static int opdi_missing_kernel(opd_call *call) {
    char have[1200];
    opdi_lock(&opdi_registry.lock);
    (void)opdi_table_text(call->op, have, sizeof have, false);
    opdi_unlock(&opdi_registry.lock);
    if (call->slot == OPD_KEY_UNDEFINED) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "There were no tensor arguments to this function (e.g., you passed an empty list "
                        "of Tensors), but no fallback function is registered for schema %s.\nAvailable functions are [%s]",
                        call->op->name, have);
    }
    return opd_fail(OPD_ERROR_NO_KERNEL, "Could not run '%s' with arguments from the '%s' backend. '%s' is only available for "
                    "these backends: [%s]", call->op->name, opd_key_name(call->slot), call->op->name, have);
}

static bool opdi_is_autograd_slot(int slot) {
    return slot == OPD_F_AUTOGRAD_OTHER || slot == OPD_F_AUTOGRAD_NESTED_TENSOR ||
           (slot >= OPD_KEY_PER_BACKEND(5, 0) && slot < OPD_KEY_PER_BACKEND(6, 0));
}

static bool opdi_slot_skips(const opdi_slot *s, opdi_chosen how) {
    return s->fn == opdi_autograd_kernel || s->fn == opdi_autograd_fallback || s->fn == opdi_autograd_inplace_kernel ||
           s->fn == opdi_autograd_out_kernel || s->fn == opd_fallthrough || how == OPDI_CHOSEN_MATH ||
           how == OPDI_CHOSEN_MISSING;
}

static void opdi_fill_table(const opd_op *op, opdi_table *table) {
    uint64_t skip = OPDI_AUTOGRAD_BITS;
    int slot, b;
    memset(table, 0, sizeof *table);
    for (b = 0; b < 16; b++) { table->masks[1][b] = ~(uint64_t)0; }
    for (slot = 0; slot < OPD_KEY_SLOTS; slot++) {
        opdi_chosen how;
        const opdi_kernel *k = opdi_compute_slot(op, slot, &how);
        opdi_slot *s = &table->slots[slot];
        s->fn = k ? k->fn : how == OPDI_CHOSEN_AMBIGUOUS ? opdi_ambiguous_kernel : opdi_missing_kernel;
        s->user = k ? k->user : NULL;
        if (opdi_is_autograd_slot(slot) && !opdi_slot_skips(s, how)) { skip = 0; }
        if (s->fn != opd_fallthrough || slot == 0) { continue; }
        if (slot < OPD_KEY_BACKEND_BASE) {
            for (b = 0; b < 16; b++) { table->masks[1][b] &= ~OPD_BIT_OF(slot); }
        } else {
            b = (slot - OPD_KEY_BACKEND_BASE) % 16;
            table->masks[1][b] &= ~OPD_BIT_OF(opdi_row_functionality[(slot - OPD_KEY_BACKEND_BASE) / 16]);
        }
    }
    for (b = 0; b < 16; b++) { table->masks[0][b] = table->masks[1][b] & ~skip; }
}

//-- A retired table that says the same, taken out of the retired ones: registering and undoing the same things again and
//-- again does not grow.
static opdi_table *opdi_table_known(opd_op *op, const opdi_table *fresh) {
    opdi_table **p, *t;
    for (p = &op->retired; (t = *p) != NULL; p = &t->retired) {
        if (memcmp(t->masks, fresh->masks, sizeof t->masks) == 0 && memcmp(t->slots, fresh->slots, sizeof t->slots) == 0) {
            *p = t->retired;
            return t;
        }
    }
    return NULL;
}

//-- The table of an operator, computed at its first call; NULL with an error when it is not defined.
OPDI_NOINLINE static const opdi_table *opdi_table_make(opd_op *op) {
    opdi_table *table = NULL;
    bool defined;
    opdi_lock(&opdi_registry.lock);
    defined = op->schema != NULL;
    if (defined && !(table = OPDI_ACQUIRE(&op->table))) {
        table = (opdi_table *)opdi_alloc(sizeof *table);
        if (table) {
            opdi_table *known;
            opdi_fill_table(op, table);
            known = opdi_table_known(op, table);
            if (known) { opdi_free(table, sizeof *table); table = known; }
            OPDI_PUBLISH(&op->table, table);
        }
    }
    opdi_unlock(&opdi_registry.lock);
    if (!defined) { (void)opd_fail(OPD_ERROR_NOT_FOUND, "the operator %s is not defined (any more)", op->name); }
    return table;
}

//-- After a registration: the table is retired, the next call computes a new one.  Retired ones stay until the program
//-- ends, since a call may be inside, and are published again when they are right again.
static void opdi_table_retire(opd_op *op) {
    opdi_table *old = op->table;
    if (!old) { return; }
    OPDI_PUBLISH(&op->table, (opdi_table *)NULL);
    old->retired = op->retired;
    op->retired = old;
}
static void opdi_tables_retire_all(void) {
    int i;
    for (i = 0; i < OPDI_BUCKETS; i++) {
        opd_op *op;
        for (op = opdi_registry.buckets[i]; op; op = op->next_in_bucket) { opdi_table_retire(op); }
    }
}

//-- libraries ----------------------------------------------------------------------------------------------------

//-- Ends the message of an error that a library's work raised; always -1.
static int opdi_library_error(const opd_library *lib) {
    return opdi_fail_more(" (Error occurred while processing %s block at %s:%d)", opdi_kind_names[lib->kind], lib->file,
                          lib->line);
}

opd_library *opd_library_open(opd_library_kind kind, const char *ns, const char *key, const char *file, int line) {
    opd_library *lib, *other;
    opd_key k = OPD_KEY_INVALID;
    if (!opd_ok()) { return NULL; }
    if (kind != OPD_DEF && kind != OPD_FRAGMENT && kind != OPD_IMPL) {
        (void)opd_fail(OPD_ERROR_REGISTER, "unknown kind of library");
        return NULL;
    }
    if (!ns || !*ns || strlen(ns) >= sizeof lib->ns) {
        (void)opd_fail(OPD_ERROR_REGISTER, "a library's namespace has 1 to 63 characters");
        return NULL;
    }
    if (kind != OPD_IMPL && (strcmp(ns, "_") == 0 || key)) {
        (void)opd_fail(OPD_ERROR_REGISTER, key ? "%s \"%s\" takes no dispatch key" : "%s: cannot define operators in the wildcard "
                       "namespace \"%s\"", opdi_kind_names[kind], ns);
        return NULL;
    }
    if (key && (k = opd_key_parse(key)) == OPD_KEY_INVALID) { return NULL; }
    lib = (opd_library *)opdi_alloc(sizeof *lib);
    if (!lib) { return NULL; }
    memset(lib, 0, sizeof *lib);
    lib->kind = kind;
    lib->key = k;
    lib->file = file ? file : "?";
    lib->line = line;
    strcpy(lib->ns, ns);
    opdi_lock(&opdi_registry.lock);
    for (other = opdi_registry.libraries; other && kind == OPD_DEF; other = other->next) {
        if (other->kind == OPD_DEF && strcmp(other->ns, ns) == 0) { break; }
    }
    if (kind != OPD_DEF || !other) {
        lib->next = opdi_registry.libraries;
        opdi_registry.libraries = lib;
        other = NULL;
    }
    opdi_unlock(&opdi_registry.lock);
    if (other) {
        (void)opd_fail(OPD_ERROR_REGISTER, "Only a single OPD_LIBRARY can be used to register the namespace %s; please put all of "
                       "your definitions in a single OPD_LIBRARY block. If you were trying to specify implementations, "
                       "consider using OPD_LIBRARY_IMPL (which can be duplicated). If you really intended to define "
                       "operators for a single namespace in a distributed way, you can use OPD_LIBRARY_FRAGMENT. Previous "
                       "registration of OPD_LIBRARY was at %s:%d; latest registration was at %s:%d", ns, other->file,
                       other->line, lib->file, line);
        opdi_free(lib, sizeof *lib);
        return NULL;
    }
    return lib;
}

//-- Runs of registration, under the lock.

static void opdi_undefine(opd_op *op) {
    opdi_table_retire(op);
    if (op->prev_defined) { op->prev_defined->next_defined = op->next_defined; }
    else { opdi_registry.first_defined = op->next_defined; }
    if (op->next_defined) { op->next_defined->prev_defined = op->prev_defined; }
    else { opdi_registry.last_defined = op->prev_defined; }
    op->next_defined = op->prev_defined = NULL;
    opd_schema_free(op->schema);
    op->schema = NULL;
    op->card = NULL;
    op->lib = NULL;
}

static void opdi_kernel_remove(opd_op *op, opdi_kernel *kernel) {
    opdi_kernel **p = &op->kernels;
    while (*p && *p != kernel) { p = &(*p)->next; }
    if (*p) { *p = kernel->next; }
    opdi_table_retire(op);
}

//-- Undoes what a library did until only `keep` is left; destructors run after the lock is given back.
static void opdi_library_undo(opd_library *lib, const opdi_registration *keep) {
    opdi_kernel *dead = NULL;
    opdi_lock(&opdi_registry.lock);
    while (lib->registrations && lib->registrations != keep) {
        opdi_registration *r = lib->registrations;
        lib->registrations = r->next;
        if (r->kind == 0) { opdi_undefine(r->op); }
        else if (r->kind == 1) { opdi_kernel_remove(r->op, r->kernel); }
        else if (r->kind == 2) { opdi_registry.fallbacks[r->key] = NULL; opdi_tables_retire_all(); }
        if (r->kernel) { r->kernel->next = dead; dead = r->kernel; }
        opdi_free(r, sizeof *r);
    }
    opdi_unlock(&opdi_registry.lock);
    while (dead) {
        opdi_kernel *k = dead;
        dead = k->next;
        if (k->destroy) { k->destroy(k->user); }
        opdi_free(k, sizeof *k);
    }
}

void opd_library_close(opd_library *lib) {
    opd_library **p;
    if (!lib) { return; }
    opdi_library_undo(lib, NULL);
    opdi_lock(&opdi_registry.lock);
    for (p = &opdi_registry.libraries; *p; p = &(*p)->next) {
        if (*p == lib) { *p = lib->next; break; }
    }
    opdi_unlock(&opdi_registry.lock);
    opdi_free(lib, sizeof *lib);
}

static const opdi_type *opdi_strip_optional(const opdi_type *t) {
    return t->kind == OPDI_TYPE_OPTIONAL ? t->elems[0] : t;
}

//-- What the call path wants to know about a schema, worked out once.
static void opdi_op_describe(opd_op *op) {
    const opd_schema *s = op->schema;
    int i, j;
    op->nargs = s->nargs;
    op->nrets = s->nreturns;
    op->tensor_args = op->list_args = op->written_args = 0;
    for (i = 0; i < s->nargs; i++) {
        op->tags[i] = s->args[i].tag;
        if (s->args[i].tag == OPD_TAG_TENSOR) { op->tensor_args |= (uint64_t)1 << i; }
        if (s->args[i].tag == OPD_TAG_TENSORS) { op->list_args |= (uint64_t)1 << i; }
        if (s->args[i].written) { op->written_args |= (uint64_t)1 << i; }
    }
    for (i = 0; i < s->nreturns; i++) {
        const opdi_alias *ra = s->returns[i].type->alias;
        op->ret_alias[i] = -1;
        op->ret_tensor[i] = opdi_strip_optional(s->returns[i].type)->kind == OPDI_TYPE_TENSOR;
        for (j = 0; ra && ra->write && j < s->nargs; j++) {
            const opdi_type *t = s->args[j].type;
            const opdi_alias *a = t->alias ? t->alias : t->kind == OPDI_TYPE_OPTIONAL ? t->elems[0]->alias : NULL;
            if (a && a->write && a->nbefore && ra->nbefore && strcmp(a->before[0], ra->before[0]) == 0) {
                op->ret_alias[i] = (int8_t)j;
            }
        }
    }
}

//-- Puts the library's namespace in front of a name, or checks the one that is there.
static int opdi_qualify(const opd_library *lib, const char *name, const char *what, char *out, size_t cap) {
    const char *colons = strstr(name, "::");
    size_t n = colons ? (size_t)(colons - name) : 0;
    if (!colons && strcmp(lib->ns, "_") == 0) {
        return opd_fail(OPD_ERROR_REGISTER, "%s '%s' must be qualified with a namespace in an OPD_LIBRARY_IMPL block of "
                        "namespace _", what, name);
    }
    if (colons && strcmp(lib->ns, "_") != 0 && (strlen(lib->ns) != n || strncmp(name, lib->ns, n) != 0)) {
        return opd_fail(OPD_ERROR_REGISTER, "Explicitly provided namespace (%.*s) in %s does not match namespace of enclosing "
                        "%s block (%s). Move this definition to the (unique) OPD_LIBRARY block corresponding to this "
                        "namespace (and consider deleting the namespace from your %s.)", (int)n, name, what,
                        opdi_kind_names[lib->kind], lib->ns, what);
    }
    if (snprintf(out, cap, "%s%s%s", colons ? "" : lib->ns, colons ? "" : "::", name) >= (int)cap) {
        return opd_fail(OPD_ERROR_REGISTER, "the name '%.60s...' is too long", name);
    }
    return 0;
}

static opdi_registration *opdi_registration_new(int kind, opd_key key) {
    opdi_registration *r = (opdi_registration *)opdi_alloc(sizeof *r);
    if (!r) { return NULL; }
    memset(r, 0, sizeof *r);
    r->kind = kind;
    r->key = key;
    return r;
}
static void opdi_registration_add(opd_library *lib, opdi_registration *r) {
    r->next = lib->registrations;
    lib->registrations = r;
}

//-- Enters a parsed schema under its name.  Takes the schema, also when it fails.
static opd_op *opdi_def_schema(opd_library *lib, opd_schema *schema) {
    char name[256], local[200];
    opdi_registration *r = NULL;
    opd_op *op = NULL;
    const char *before_file = NULL;
    int before_line = 0;
    snprintf(local, sizeof local, "%s%s%s%s%s", schema->ns, *schema->ns ? "::" : "", schema->name,
             *schema->overload ? "." : "", schema->overload);
    if (schema->nreturns > OPDI_MAX_RETURNS || schema->vararg || schema->varret) {
        (void)opd_fail(OPD_ERROR_REGISTER, "%s: an operator has at most %d results and no \"...\"", local, OPDI_MAX_RETURNS);
    } else if (opdi_qualify(lib, local, "schema string", name, sizeof name) == 0) {
        r = opdi_registration_new(0, 0);
    }
    if (!r) { opd_schema_free(schema); return NULL; }
    opdi_lock(&opdi_registry.lock);
    op = opdi_entry(name);
    if (op && op->schema) {
        before_file = op->lib->file;
        before_line = op->lib->line;
    } else if (op) {
        op->schema = schema;
        op->lib = lib;
        r->op = op;
        opdi_op_describe(op);
        op->prev_defined = opdi_registry.last_defined;
        if (op->prev_defined) { op->prev_defined->next_defined = op; }
        else { opdi_registry.first_defined = op; }
        opdi_registry.last_defined = op;
        opdi_registration_add(lib, r);
    }
    opdi_unlock(&opdi_registry.lock);
    if (!op || before_file) {
        if (before_file) {
            char text[512];
            (void)opd_schema_print(schema, text, sizeof text);
            (void)opd_fail(OPD_ERROR_REGISTER, "Tried to register an operator (%s) with the same name and overload name multiple "
                           "times. Each overload's schema should only be registered with a single call to opd_def(). "
                           "Duplicate registration: registered at %s:%d. Original registration: registered at %s:%d", text,
                           lib->file, lib->line, before_file, before_line);
        }
        opdi_free(r, sizeof *r);
        opd_schema_free(schema);
        return NULL;
    }
    return op;
}

static opd_op *opdi_def_text(opd_library *lib, const char *text) {
    opd_schema *schema;
    opd_op *op = NULL;
    if (!opd_ok()) { return NULL; }
    if (!lib) { (void)opd_fail(OPD_ERROR_REGISTER, "opd_def: the library is NULL"); return NULL; }
    if (!text) { (void)opd_fail(OPD_ERROR_REGISTER, "opd_def: the schema is NULL"); (void)opdi_library_error(lib); return NULL; }
    if (lib->kind == OPD_IMPL) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_def(\"%s\"): Cannot define an operator inside of a %s block. All def()s should be "
                       "placed in the (unique) OPD_LIBRARY block for their namespace.", text, opdi_kind_names[lib->kind]);
    } else {
        schema = opdi_schema_parse(text, strlen(text), lib->ns, false);
        if (schema) { op = opdi_def_schema(lib, schema); }
    }
    if (!op) { (void)opdi_library_error(lib); }
    return op;
}

int opd_def(opd_library *lib, const char *schema) { return opdi_def_text(lib, schema) ? 0 : -1; }

//-- Adds a kernel to an operator that may not be defined yet.
static int opdi_impl_at(opd_library *lib, const char *name, opd_key key, opd_kernel fn, void *user,
                        void (*destroy)(void *user)) {
    opdi_kernel *k = (opdi_kernel *)opdi_alloc(sizeof *k);
    opdi_registration *r = k ? opdi_registration_new(1, key) : NULL;
    opd_op *op = NULL;
    if (r) {
        memset(k, 0, sizeof *k);
        k->fn = fn;
        k->user = user;
        k->destroy = destroy;
        k->key = key;
        k->lib = lib;
        opdi_lock(&opdi_registry.lock);
        op = opdi_entry(name);
        if (op) {
            k->next = op->kernels;
            op->kernels = k;
            r->op = op;
            r->kernel = k;
            opdi_registration_add(lib, r);
            opdi_table_retire(op);
        }
        opdi_unlock(&opdi_registry.lock);
    }
    if (op) { return 0; }
    opdi_free(r, sizeof *r);
    opdi_free(k, sizeof *k);
    return -1;
}

static int opdi_impl_checked(opd_library *lib, const char *name, const char *key_name, opd_kernel fn, void *user,
                             void (*destroy)(void *user)) {
    char qualified[256];
    opd_key key = lib->key;
    if (!name || !fn) { return opd_fail(OPD_ERROR_REGISTER, "opd_impl: the %s is NULL", name ? "kernel" : "name"); }
    if (strchr(name, '(')) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_impl(\"%s\"): an operator's name was expected, but a function schema was given", name);
    }
    if (key_name) {
        opd_key given = opd_key_parse(key_name);
        if (given == OPD_KEY_INVALID) { return -1; }
        if (key != OPD_KEY_INVALID && key != given) {
            return opd_fail(OPD_ERROR_REGISTER, "opd_impl(\"%s\"): Explicitly provided dispatch key (%s) is inconsistent with the "
                            "dispatch key of the enclosing %s block (%s).", name, opd_key_name(given),
                            opdi_kind_names[lib->kind], opd_key_name(key));
        }
        key = given;
    }
    if (key == OPD_KEY_INVALID) { key = OPD_KEY_COMPOSITE_IMPLICIT; }
    if (opdi_qualify(lib, name, "operator name", qualified, sizeof qualified)) { return -1; }
    return opdi_impl_at(lib, qualified, key, fn, user, destroy);
}

int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                 void (*destroy)(void *user)) {
    if (!opd_ok()) { return -1; }
    if (!lib) { return opd_fail(OPD_ERROR_REGISTER, "opd_impl: the library is NULL"); }
    return opdi_impl_checked(lib, name, key, kernel, user, destroy) ? opdi_library_error(lib) : 0;
}

int opd_impl(opd_library *lib, const char *name, opd_kernel kernel) {
    return opd_impl_key(lib, name, NULL, kernel, NULL, NULL);
}

//-- One fallback for one runtime key.
static int opdi_fallback_at(opd_library *lib, opd_key key, opd_kernel fn) {
    opdi_kernel *k = (opdi_kernel *)opdi_alloc(sizeof *k), *other = NULL;
    opdi_registration *r = k ? opdi_registration_new(2, key) : NULL;
    if (!r) { opdi_free(k, sizeof *k); return -1; }
    memset(k, 0, sizeof *k);
    k->fn = fn;
    k->key = key;
    k->lib = lib;
    opdi_lock(&opdi_registry.lock);
    other = opdi_registry.fallbacks[key];
    if (!other) {
        opdi_registry.fallbacks[key] = k;
        r->kernel = k;
        opdi_registration_add(lib, r);
        opdi_tables_retire_all();
    }
    opdi_unlock(&opdi_registry.lock);
    if (!other) { return 0; }
    opdi_free(r, sizeof *r);
    opdi_free(k, sizeof *k);
    return opd_fail(OPD_ERROR_REGISTER, "Tried to register multiple backend fallbacks for the same dispatch key %s; previous "
                    "registration registered at %s:%d, new registration registered at %s:%d", opd_key_name(key),
                    other->lib->file, other->lib->line, lib->file, lib->line);
}

static int opdi_fallback_checked(opd_library *lib, opd_kernel kernel) {
    uint8_t slots[OPD_KEY_SLOTS];
    const opdi_registration *before = lib->registrations;
    int i;
    if (lib->kind != OPD_IMPL) {
        return opd_fail(OPD_ERROR_REGISTER, "fallback(...): Cannot define an operator inside of a %s block. Did you mean to call "
                        "this function inside an OPD_LIBRARY_IMPL block?", opdi_kind_names[lib->kind]);
    }
    if (strcmp(lib->ns, "_") != 0) {
        return opd_fail(OPD_ERROR_REGISTER, "Fallback functions which apply to only a single namespace (you specified %s) are not "
                        "supported. If you intended to apply this fallback function globally, please define a separate "
                        "block: OPD_LIBRARY_IMPL(_, %s, lib) { opd_fallback(lib, ...); }", lib->ns,
                        lib->key == OPD_KEY_INVALID ? "KEY" : opd_key_name(lib->key));
    }
    if (lib->key == OPD_KEY_INVALID || !kernel) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_fallback: the block needs a dispatch key and the kernel must not be NULL");
    }
    if (lib->key < OPD_KEY_SLOTS) { return opdi_fallback_at(lib, lib->key, kernel); }
    memset(slots, 0, sizeof slots);
    opdi_key_expand(lib->key, slots);
    for (i = 0; i < OPD_KEY_SLOTS; i++) {
        if (slots[i] && opdi_fallback_at(lib, i, kernel)) { opdi_library_undo(lib, before); return -1; }
    }
    return 0;
}

int opd_fallback(opd_library *lib, opd_kernel kernel) {
    if (!opd_ok()) { return -1; }
    if (!lib) { return opd_fail(OPD_ERROR_REGISTER, "opd_fallback: the library is NULL"); }
    return opdi_fallback_checked(lib, kernel) ? opdi_library_error(lib) : 0;
}

//-- cards --------------------------------------------------------------------------------------------------------

static int opdi_arg_index(const opd_schema *s, const char *name, size_t n) {
    int i;
    for (i = 0; i < s->nargs; i++) {
        if (strlen(s->args[i].name) == n && strncmp(s->args[i].name, name, n) == 0) { return i; }
    }
    return -1;
}

//-- Which result a save entry names: "result", "result1", or the result's own name.
static int opdi_result_index(const opd_schema *s, const char *name, size_t n) {
    int i;
    for (i = 0; i < s->nreturns; i++) {
        if (n > 0 && strlen(s->returns[i].name) == n && strncmp(s->returns[i].name, name, n) == 0) { return i; }
    }
    if (n < 6 || strncmp(name, "result", 6) != 0) { return -1; }
    i = n == 6 ? 0 : n == 7 ? name[6] - '0' : -1;
    return i >= 0 && i < s->nreturns ? i : -1;
}

//-- "self, other(self), result": names from the schema, each with an optional condition.
static int opdi_card_save(opdi_card *card, const opd_schema *s) {
    const char *p = card->desc.save ? card->desc.save : "";
    while (*p) {
        size_t n = strcspn(p, "(, ");
        int arg = opdi_arg_index(s, p, n), result = arg < 0 ? opdi_result_index(s, p, n) : -1;
        if (arg >= 0) { card->save_args |= (uint64_t)1 << arg; }
        else if (result >= 0) { card->save_results |= 1u << result; }
        else { return opd_fail(OPD_ERROR_REGISTER, "%s: save names '%.*s', which the schema does not have", s->name, (int)n, p); }
        p += n;
        if (*p == '(') {
            int wanted;
            n = strcspn(++p, ")");
            wanted = opdi_arg_index(s, p, n);
            if (wanted < 0) { return opd_fail(OPD_ERROR_REGISTER, "%s: save: '(%.*s)' names no argument", s->name, (int)n, p); }
            if (arg >= 0) { card->save_if[arg] = (int8_t)wanted; } else { card->save_result_if[result] = (int8_t)wanted; }
            p += n + (p[n] == ')');
        }
        p += strspn(p, ", ");
    }
    return 0;
}

//-- "native_layer_norm" -> "NativeLayerNormBackward0"
static void opdi_node_name(const char *op, char *out, size_t cap) {
    size_t n = 0;
    bool up = true;
    for (; *op && n + 11 < cap; op++) {
        if (*op == '_') { up = true; continue; }
        out[n++] = (char)(up && *op >= 'a' && *op <= 'z' ? *op - 'a' + 'A' : *op);
        up = false;
    }
    strcpy(out + n, "Backward0");
}

static int opdi_missing_formula(opd_backward_call *bw);

//-- Names of nodes, and their formulas.
static void opdi_card_init(opdi_card *card, opd_op *op) {
    card->op = op;
    memset(card->save_if, -1, sizeof card->save_if);
    memset(card->save_result_if, -1, sizeof card->save_result_if);
    opdi_node_name(op->schema->name, card->node_name, sizeof card->node_name);
    card->formula.name = card->missing.name = card->node_name;
    card->formula.fn = card->desc.backward;
    card->missing.fn = opdi_missing_formula;
    card->formula.card = card->missing.card = card;
}

//-- A card of an undone definition that says the same: used again, so that defining and undoing does not grow.
static opdi_card *opdi_card_known(const opdi_card *card) {
    opdi_card *c;
    for (c = card->op->cards; c; c = c->next) {
        if (c->base == card->base && c->inplace == card->inplace && c->save_args == card->save_args &&
            c->save_results == card->save_results && memcmp(&c->desc, &card->desc, sizeof c->desc) == 0 &&
            memcmp(c->save_if, card->save_if, sizeof c->save_if) == 0 && memcmp(c->map, card->map, sizeof c->map) == 0) { break; }
    }
    return c;
}

//-- The card of an operator that has just been defined; base and inplace for a derived form.
static opdi_card *opdi_card_new(opd_op *op, const opd_op_desc *desc, opdi_card *base, bool inplace) {
    opdi_card *card = (opdi_card *)opdi_alloc(sizeof *card), *known;
    int i;
    if (!card) { return NULL; }
    memset(card, 0, sizeof *card);
    card->desc = *desc;
    card->base = base;
    card->inplace = inplace;
    opdi_card_init(card, op);
    if (opdi_card_save(card, op->schema)) { opdi_free(card, sizeof *card); return NULL; }
    for (i = 0; base && i < base->op->nargs; i++) {
        const char *a = base->op->schema->args[i].name;
        card->map[i] = (int8_t)opdi_arg_index(op->schema, a, strlen(a));
    }
    opdi_lock(&opdi_registry.lock);
    known = opdi_card_known(card);
    if (known) {
        opdi_free(card, sizeof *card);
        card = known;
    } else {
        card->next = op->cards;
        op->cards = card;
    }
    op->card = card;
    opdi_unlock(&opdi_registry.lock);
    return card;
}

static int opdi_derived_kernel(opd_call *call);
static int opdi_derived_composite(opd_call *call);

//-- The schema of a derived form: the functional one's arguments, with self written (in-place) or with out arguments.
static opd_schema *opdi_derived_schema(const opd_schema *f, const char *ns, const char *name, bool inplace) {
    char text[1600], item[600];
    size_t n = (size_t)snprintf(text, sizeof text, "%s(", name);
    bool star = false;
    int i;
    if (strchr(name, '(')) { return opdi_schema_parse(name, strlen(name), ns, true); }
    for (i = 0; i < f->nargs && n < sizeof text; i++) {
        const opdi_arg *a = &f->args[i];
        (void)opdi_arg_print(a, item, sizeof item);
        if (a->keyword_only && !star) { star = true; n += (size_t)snprintf(text + n, sizeof text - n, "%s*", i ? ", " : ""); }
        if (inplace && i == 0) { n += (size_t)snprintf(text + n, sizeof text - n, "Tensor(a!) %s", a->name); }
        else if (n < sizeof text) { n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i || star ? ", " : "", item); }
    }
    if (!inplace && n < sizeof text) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%sTensor(a!) out", star ? "" : f->nargs ? ", *" : "*", ", ");
    }
    if (n < sizeof text) { n += (size_t)snprintf(text + n, sizeof text - n, ") -> Tensor(a!)"); }
    if (n >= sizeof text) { (void)opd_fail(OPD_ERROR_REGISTER, "the schema of %s is too long", name); return NULL; }
    return opdi_schema_parse(text, strlen(text), ns, true);
}

//-- Registers an in-place or out= form of a functional card: one kernel for every backend (or a composite one), the
//-- autograd kernel that fits, and the kernel that counts versions.
static int opdi_derive(opd_library *lib, opdi_card *base, const char *name, bool inplace) {
    opd_op_desc desc = base->desc;
    opd_schema *schema = opdi_derived_schema(base->op->schema, lib->ns, name, inplace);
    opd_op *op = schema ? opdi_def_schema(lib, schema) : NULL;
    opdi_card *card;
    bool composite = desc.composite != NULL && !desc.cpu && !desc.any;
    if (!op) { return -1; }
    desc.inplace = desc.out = NULL;
    desc.schema = name;
    if (inplace) { desc.save = base->desc.save; } else { desc.save = NULL; }
    if (!inplace) { desc.cases = NULL; }
    card = opdi_card_new(op, &desc, base, inplace);
    if (!card) { return -1; }
    if (opdi_impl_at(lib, op->name, composite ? OPD_KEY_COMPOSITE_IMPLICIT : OPD_KEY_COMPOSITE_EXPLICIT,
                     composite ? opdi_derived_composite : opdi_derived_kernel, card, NULL)) { return -1; }
    if (composite) { return 0; }
    if (opdi_impl_at(lib, op->name, OPD_KEY_AUTOGRAD, inplace ? opdi_autograd_inplace_kernel : opdi_autograd_out_kernel,
                     card, NULL)) { return -1; }
    return opdi_impl_at(lib, op->name, OPD_KEY_AD_INPLACE_OR_VIEW, opdi_version_kernel, NULL, NULL);
}

static int opdi_define_kernels(opd_library *lib, opdi_card *card) {
    const opd_op_desc *d = &card->desc;
    const char *name = card->op->name;
    opd_kernel autograd = d->autograd ? d->autograd : !d->backward || d->composite ? NULL :
                          card->op->written_args & 1 ? opdi_autograd_inplace_kernel : opdi_autograd_kernel;
    if (d->cpu && opdi_impl_at(lib, name, OPD_KEY_CPU, d->cpu, d->user, NULL)) { return -1; }
    if (d->cuda && opdi_impl_at(lib, name, OPD_KEY_CUDA, d->cuda, d->user, NULL)) { return -1; }
    if (d->fake && opdi_impl_at(lib, name, OPD_KEY_META, d->fake, d->user, NULL)) { return -1; }
    if (d->any && opdi_impl_at(lib, name, OPD_KEY_COMPOSITE_EXPLICIT, d->any, d->user, NULL)) { return -1; }
    if (d->composite && opdi_impl_at(lib, name, OPD_KEY_COMPOSITE_IMPLICIT, d->composite, d->user, NULL)) { return -1; }
    if (autograd && opdi_impl_at(lib, name, OPD_KEY_AUTOGRAD, autograd, d->autograd ? d->user : (void *)card, NULL)) { return -1; }
    if (card->op->written_args &&
        opdi_impl_at(lib, name, OPD_KEY_AD_INPLACE_OR_VIEW, opdi_version_kernel, NULL, NULL)) { return -1; }
    if (d->inplace && opdi_derive(lib, card, d->inplace, true)) { return -1; }
    return d->out ? opdi_derive(lib, card, d->out, false) : 0;
}

//-- The user pointer of a card is destroyed when its definition is undone.
static int opdi_hold_user(opd_library *lib, const opd_op_desc *desc) {
    opdi_kernel *k;
    opdi_registration *r;
    if (!desc->destroy) { return 0; }
    k = (opdi_kernel *)opdi_alloc(sizeof *k);
    r = k ? opdi_registration_new(3, 0) : NULL;
    if (!r) { opdi_free(k, sizeof *k); return -1; }
    memset(k, 0, sizeof *k);
    k->user = desc->user;
    k->destroy = desc->destroy;
    r->kernel = k;
    opdi_registration_add(lib, r);
    return 0;
}

int opd_define(opd_library *lib, const opd_op_desc *desc) {
    const opdi_registration *before;
    opd_op *op;
    opdi_card *card;
    if (!opd_ok()) { return -1; }
    if (!lib || !desc) { return opd_fail(OPD_ERROR_REGISTER, "opd_define: the %s is NULL", lib ? "desc" : "library"); }
    before = lib->registrations;
    op = opdi_def_text(lib, desc->schema);
    if (!op) { return -1; }
    card = opdi_card_new(op, desc, NULL, false);
    if (!card || opdi_hold_user(lib, desc) || opdi_define_kernels(lib, card)) {
        opdi_library_undo(lib, before);
        return opdi_library_error(lib);
    }
    return 0;
}

OPDI_COLD_END

//-- calls --------------------------------------------------------------------------------------------------------
//
//  bind (tags of the arguments against the schema; anything else goes through opdi_bind), unite the key sets of the
//  tensor arguments, find the slot, run the kernel in a scope of its own, hand the results to the caller's scope.

static void opdi_ret_block_free(opd_value *v);
static void opdi_ret_block_own(opdi_thread *th, opd_value *v);
static void opdi_scope_remove(opdi_thread *th, int64_t from, int64_t to);
static inline void opdi_retain(opd_tensor *t);

static const char *opdi_value_kind(const opd_value *v) {
    static const char *const names[] = {"NoneType", "Tensor", "int", "float", "bool", "complex", "str", "Device", "Object",
        "List[int]", "List[float]", "List[bool]", "List[Tensor]", "List", "default"};
    return (unsigned)v->tag < OPD_TAG_COUNT ? names[v->tag] : "?";
}

static int opdi_bind_error(const opd_op *op, int i, const opd_value *v) {
    char type[256], decl[700];
    (void)opdi_type_print(op->schema->args[i].type, type, sizeof type);
    (void)opd_schema_print(op->schema, decl, sizeof decl);
    return opd_fail(OPD_ERROR_ARGUMENT, "%s() Expected a value of type '%s' for argument '%s' but instead found type '%s'.\n"
                    "Position: %d\nDeclaration: %s", op->name, type, op->schema->args[i].name, opdi_value_kind(v), i, decl);
}

static bool opdi_is_number(const opd_value *v) {
    return v->tag == OPD_TAG_INT || v->tag == OPD_TAG_FLOAT || v->tag == OPD_TAG_BOOL || v->tag == OPD_TAG_COMPLEX;
}

//-- A number, or a one-kind list, where the schema says a list of numbers.  int[3] x=1 repeats a single one.
static int opdi_bind_list(const opdi_type *t, const opd_value *v, opd_value *out) {
    int32_t want = t->elems[0]->kind, i, n;
    int64_t *ints;
    double *floats;
    if (want == OPDI_TYPE_INT && v->tag == OPD_TAG_INT && t->size > 0) {
        ints = (int64_t *)opdi_scope_alloc((size_t)t->size * sizeof *ints);
        if (!ints) { return -1; }
        for (i = 0; i < t->size; i++) { ints[i] = v->u.i; }
        *out = opd_value_ints(ints, t->size);
        return 0;
    }
    n = v->tag == OPD_TAG_INTS ? v->n : t->size;
    if (want == OPDI_TYPE_FLOAT && n >= 0 && (v->tag == OPD_TAG_INTS || (t->size > 0 && (v->tag == OPD_TAG_INT || v->tag == OPD_TAG_FLOAT)))) {
        floats = (double *)opdi_scope_alloc((size_t)n * sizeof *floats);
        if (!floats) { return -1; }
        for (i = 0; i < n; i++) {
            floats[i] = v->tag == OPD_TAG_INTS ? (double)v->u.ints[i] : v->tag == OPD_TAG_INT ? (double)v->u.i : v->u.d;
        }
        *out = opd_value_floats(floats, n);
        return 0;
    }
    return 1;
}

static bool opdi_is_list(const opd_value *v) {
    return v->tag == OPD_TAG_INTS || v->tag == OPD_TAG_FLOATS || v->tag == OPD_TAG_BOOLS || v->tag == OPD_TAG_TENSORS ||
           v->tag == OPD_TAG_LIST;
}

//-- An empty list fits every list type.
static bool opdi_bind_empty(const opdi_type *t, opd_value *out) {
    int32_t kind = t->elems[0]->kind;
    if (kind == OPDI_TYPE_OPTIONAL) { kind = t->elems[0]->elems[0]->kind; }
    *out = kind == OPDI_TYPE_INT ? opd_value_ints(NULL, 0) : kind == OPDI_TYPE_FLOAT ? opd_value_floats(NULL, 0) :
           kind == OPDI_TYPE_BOOL ? opd_value_bools(NULL, 0) : kind == OPDI_TYPE_TENSOR ? opd_value_tensors(NULL, 0) :
           opd_value_list(NULL, 0);
    return true;
}

//-- Converts one value to what type t wants: 0 done, 1 does not fit, -1 failed.
static int opdi_bind_value(const opdi_type *type, const opd_value *v, opd_value *out) {
    const opdi_type *t = opdi_strip_optional(type);
    *out = *v;
    if (v->tag == OPD_TAG_NONE) {
        return type->kind == OPDI_TYPE_OPTIONAL || t->kind == OPDI_TYPE_NONE || t->kind == OPDI_TYPE_GENERATOR ? 0 : 1;
    }
    switch (t->kind) {
    case OPDI_TYPE_TENSOR:
        if (v->tag == OPD_TAG_TENSOR) { return v->u.t ? 0 : 1; }
        if (!opdi_is_number(v)) { return 1; }
        out->u.t = opd_tensor_wrapped_number(*v);
        out->tag = OPD_TAG_TENSOR;
        out->n = 0;
        return out->u.t ? 0 : -1;
    case OPDI_TYPE_INT:
        if (v->tag == OPD_TAG_BOOL) { out->tag = OPD_TAG_INT; }
        return v->tag == OPD_TAG_INT || v->tag == OPD_TAG_BOOL ? 0 : 1;
    case OPDI_TYPE_FLOAT:
        if (v->tag == OPD_TAG_INT || v->tag == OPD_TAG_BOOL) { *out = opd_value_float((double)v->u.i); return 0; }
        return v->tag == OPD_TAG_FLOAT ? 0 : 1;
    case OPDI_TYPE_BOOL:
        if (v->tag == OPD_TAG_INT && (v->u.i == 0 || v->u.i == 1)) { out->tag = OPD_TAG_BOOL; return 0; }
        return v->tag == OPD_TAG_BOOL ? 0 : 1;
    case OPDI_TYPE_NUMBER: return opdi_is_number(v) ? 0 : 1;
    case OPDI_TYPE_COMPLEX: return v->tag == OPD_TAG_COMPLEX ? 0 : 1;
    case OPDI_TYPE_STR: return v->tag == OPD_TAG_STR ? 0 : 1;
    case OPDI_TYPE_DEVICE:
        if (v->tag == OPD_TAG_STR) {
            opd_device d;
            if (opd_device_parse(v->u.s, &d)) { return -1; }
            *out = opd_value_device(d);
            return 0;
        }
        return v->tag == OPD_TAG_DEVICE ? 0 : 1;
    case OPDI_TYPE_LIST: {
        int32_t elem = t->elems[0]->kind, want;
        if (elem == OPDI_TYPE_OPTIONAL) { elem = t->elems[0]->elems[0]->kind; }
        want = elem == OPDI_TYPE_INT ? OPD_TAG_INTS : elem == OPDI_TYPE_FLOAT ? OPD_TAG_FLOATS : elem == OPDI_TYPE_BOOL ?
               OPD_TAG_BOOLS : elem == OPDI_TYPE_TENSOR ? OPD_TAG_TENSORS : OPD_TAG_LIST;
        if (v->tag == want) { return 0; }
        if (opdi_is_list(v) && v->n == 0) { return opdi_bind_empty(t, out) ? 0 : 1; }
        return opdi_bind_list(t, v, out);
    }
    default: return opdi_is_list(v) || v->tag == OPD_TAG_OBJECT ? 0 : 1;
    }
}

//-- Binds arguments that the fast path did not take as they are: defaults, coercions, wrapped numbers.
OPDI_NOINLINE static int opdi_bind(opd_op *op, const opd_value *args, int nargs, opd_value *out) {
    int i;
    if (nargs > op->nargs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected at most %d argument(s) for operator '%s', but received %d argument(s).",
                        op->nargs, op->name, nargs);
    }
    for (i = 0; i < op->nargs; i++) {
        const opdi_arg *a = &op->schema->args[i];
        const opd_value *v = i < nargs && args[i].tag != OPD_TAG_DEFAULT ? &args[i] : NULL;
        int rc;
        if (!v && !a->has_default) {
            char decl[700];
            (void)opd_schema_print(op->schema, decl, sizeof decl);
            return opd_fail(OPD_ERROR_ARGUMENT, "%s() is missing value for argument '%s'. Declaration: %s", op->name, a->name, decl);
        }
        if (!v) { v = &a->value; }
        if (v->tag == op->tags[i] && (v->tag != OPD_TAG_TENSOR || v->u.t)) { out[i] = *v; continue; }
        rc = opdi_bind_value(a->type, v, &out[i]);
        if (rc > 0 && v == &a->value) {           /* a default of another kind than its type: kept as written */
            out[i] = *v;
            rc = 0;
        }
        if (rc) { return rc > 0 ? opdi_bind_error(op, i, v) : -1; }
    }
    return 0;
}

//-- A NULL in a list of tensors is allowed where the schema says Tensor?[].
OPDI_NOINLINE static int opdi_null_element(const opd_op *op, int i) {
    const opdi_type *t = opdi_strip_optional(op->schema->args[i].type);
    if (t->elems[0]->kind == OPDI_TYPE_OPTIONAL) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s() Expected a value of type 'List[Tensor]' for argument '%s' but an element is None",
                    op->name, op->schema->args[i].name);
}

//-- What the tensor arguments say together.
typedef struct opdi_union { uint64_t functionality; uint32_t backends, flags, backend; } opdi_union;     /* backend: where there is one */

static inline void opdi_unite(opdi_union *u, const opd_tensor *t) {
    u->functionality |= t->functionality;
    u->backends |= 1u << t->backend;
    u->flags |= OPDI_LOAD(&t->flags);
    u->backend |= t->backend;
}

OPDI_NOINLINE static int opdi_unite_lists(opdi_union *u, const opd_op *op, const opd_value *args) {
    uint64_t m;
    for (m = op->list_args; m; m &= m - 1) {
        int i = opdi_low_bit(m);
        const opd_value *v = &args[i];
        int32_t k;
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
            if (v->u.tensors[k]) { opdi_unite(u, v->u.tensors[k]); }
            else if (opdi_null_element(op, i)) { return -1; }
        }
    }
    return 0;
}

//-- Unites the arguments and compares their tags with the schema's on the way: 0 all as expected, 1 some other kind is there
//-- (None, or one that binding has to convert), -1 failed.
OPDI_FORCE_INLINE static int opdi_unite_args(opdi_union *u, const opd_op *op, const opd_value *args) {
    uint64_t functionality = 0;
    opdi_traits traits;
    uint32_t all = 0;
    int i, n = op->nargs, other = 0;
    for (i = 0; i < n; i++) {
        const int32_t tag = args[i].tag;
        other |= tag ^ op->tags[i];
        if (tag == OPD_TAG_TENSOR) {
            functionality |= args[i].u.t->functionality;
            all |= opdi_traits_of(args[i].u.t);
        }
    }
    if (OPDI_UNLIKELY(op->list_args != 0)) {
        opdi_union l = {0, 0, 0, 0};
        if (opdi_unite_lists(&l, op, args)) { return -1; }
        functionality |= l.functionality;
        traits.f.flags = (uint8_t)l.flags;
        traits.f.backend = (uint8_t)l.backend;
        traits.f.backends = (uint16_t)l.backends;
        all |= traits.all;
    }
    traits.all = all;
    u->functionality = functionality;
    u->backends = traits.f.backends;
    u->flags = traits.f.flags;
    u->backend = traits.f.backend;
    return other != 0;
}

//-- Gives back results that a failed kernel had made.
static void opdi_rets_drop(opd_call *c) {
    int i;
    for (i = 0; i < c->op->nrets; i++) {
        if (c->owned >> i & 1) {
            opd_value *v = &c->rets[i];
            if (v->tag == OPD_TAG_TENSOR) { opdi_drop(v->u.t); }
            else { opdi_ret_block_free(v); }
        }
        c->rets[i] = opd_value_none();
    }
    c->owned = c->filled = 0;
}

OPDI_NOINLINE static int opdi_call_failed(opd_call *c, int rc) {
    if (opd_ok()) {
        if (rc) { (void)opd_fail(OPD_ERROR_KERNEL, "%s: its kernel for %s failed without saying why", c->op->name, opd_key_name(c->slot)); }
        else {
            (void)opd_fail(OPD_ERROR_KERNEL, "%s: its kernel for %s returned %d of %d result(s)", c->op->name, opd_key_name(c->slot),
                           c->cursor, c->op->nrets);
        }
    }
    opdi_rets_drop(c);
    return -1;
}

//-- Too deep: names the operator and key that came back to itself, if one did.
OPDI_NOINLINE static int opdi_too_deep(const opd_call *c) {
    const opd_call *o;
    for (o = c->outer; o; o = o->outer) {
        if (o->op == c->op && o->slot == c->slot) {
            return opd_fail(OPD_ERROR_KERNEL, "the kernel of %s for %s calls itself without end (%d nested calls)", c->op->name,
                            opd_key_name(c->slot), OPDI_MAX_DEPTH);
        }
    }
    return opd_fail(OPD_ERROR_KERNEL, "%s: calls are nested deeper than %d", c->op->name, OPDI_MAX_DEPTH);
}

//-- Runs a slot's kernel in a scope of its own and puts back the thread's state.
OPDI_FORCE_INLINE static int opdi_invoke_here(opdi_thread *th, opd_call *c, const opdi_slot *slot) {
    const uint64_t include = th->state.include, allow = th->state.allow;
    const int64_t mark = th->top, scope_mark = th->scope_mark;
    const int32_t no_grad = th->state.no_grad, depth = th->depth, scope_depth = th->scope_depth;
    opd_call *const outer = th->current;
    const int nrets = c->op->nrets;
    int rc;
    c->th = th;
    c->user = slot->user;
    c->outer = outer;
    c->filled = 0;
    c->owned = 0;
    c->cursor = 0;
    if (OPDI_UNLIKELY(depth >= OPDI_MAX_DEPTH)) { return opdi_too_deep(c); }
    th->depth = depth + 1;
    th->current = c;
    c->scope_depth = scope_depth;
    th->scope_mark = mark;
    rc = slot->fn(c);
    th->state.include = include;
    th->state.allow = allow;
    th->state.no_grad = no_grad;
    th->depth = depth;
    th->current = outer;
    th->scope_depth = scope_depth;
    th->scope_mark = scope_mark;
    if (OPDI_UNLIKELY(th->top != mark)) { opdi_scope_unwind(th, mark); }
    if (OPDI_UNLIKELY((rc | (int)th->error | (int)(c->filled ^ ((1u << nrets) - 1))) != 0)) { return opdi_call_failed(c, rc); }
    return 0;
}

OPDI_NOINLINE static int opdi_invoke(opdi_thread *th, opd_call *c, const opdi_slot *slot) { return opdi_invoke_here(th, c, slot); }

//-- The slot for the united keys under this thread's state; sets c->keys and c->slot.
static inline const opdi_slot *opdi_find_slot(const opdi_thread *th, opd_call *c, const opdi_table *table, const opdi_union *u) {
    const int grad = (u->flags & OPDI_REQUIRES_GRAD) && !th->state.no_grad;
    const int backend = u->backends & (u->backends - 1) ? opdi_top_bit(u->backends) : u->backend;     /* the usual cases */
    const uint64_t f = (u->functionality | th->state.include) & th->state.allow & table->masks[grad][backend];
    const int base = f == OPD_BIT_OF(OPD_F_DENSE) ? OPD_KEY_CPU : opdi_key_base[opdi_top_bit(f << 1 | 1)];     /* without a bit scan */
    c->keys.functionality = f;
    c->keys.backends = u->backends;
    c->slot = base + (base >= OPD_KEY_BACKEND_BASE ? backend : 0);
    return &table->slots[c->slot];
}

//-- Results go to the caller's scope; room for them was reserved before the call.
static inline void opdi_rets_own(opdi_thread *th, opd_call *c) {
    int i;
    for (i = 0; c->owned; i++, c->owned >>= 1) {
        if (!(c->owned & 1)) { continue; }
        if (OPDI_LIKELY(c->rets[i].tag == OPD_TAG_TENSOR)) { opdi_push_of(th, c->rets[i].u.t, c->op); }
        else { opdi_ret_block_own(th, &c->rets[i]); }
    }
}

OPDI_FORCE_INLINE static int opdi_call_united(opdi_thread *th, opd_op *op, const opdi_table *table, const opdi_union *u, opd_value *rets,
                                              const opd_value *args) {
    opd_call c;
    const opdi_slot *slot;
    if (OPDI_UNLIKELY(opdi_scope_reserve(th, OPDI_MAX_RETURNS))) { return -1; }
    c.op = op;
    c.args = args;
    c.rets = rets;
    c.targets = NULL;
    slot = opdi_find_slot(th, &c, table, u);
    if (opdi_invoke_here(th, &c, slot)) { return -1; }
    if (c.owned) {
        if (OPDI_UNLIKELY(opdi_scope_reserve(th, OPDI_MAX_RETURNS))) { opdi_rets_drop(&c); return -1; }
        opdi_rets_own(th, &c);
    }
    return 0;
}

//-- The same after binding; wrapped numbers and converted lists live until the call is over.
OPDI_NOINLINE static int opdi_call_slow(opdi_thread *th, opd_op *op, const opdi_table *table, opd_value *rets, const opd_value *args,
                                        int nargs) {
    opd_value bound[OPD_MAX_ARGS];
    int64_t mark = th->top;
    opdi_union u;
    int rc = opdi_bind(op, args, nargs, bound);
    int64_t top = th->top;
    if (rc == 0 && opdi_unite_args(&u, op, bound) < 0) { rc = -1; }
    if (rc == 0) { rc = opdi_call_united(th, op, table, &u, rets, bound); }
    if (top != mark) { opdi_scope_remove(th, mark, top); }
    return rc;
}

int opd_call_all(opd_op *op, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *th = opdi_self();
    const opdi_table *table;
    opdi_union u;
    if (OPDI_UNLIKELY(th->error != OPD_OK)) { return -1; }
    if (OPDI_UNLIKELY(!op)) { return opd_fail(OPD_ERROR_NOT_FOUND, "a call through an operator handle that is NULL"); }
    table = OPDI_ACQUIRE(&op->table);
    if (OPDI_UNLIKELY(!table) && !(table = opdi_table_make(op))) { return -1; }
    if (OPDI_UNLIKELY(nargs != op->nargs || opdi_unite_args(&u, op, args) != 0)) {
        return th->error == OPD_OK ? opdi_call_slow(th, op, table, rets, args, nargs) : -1;
    }
    return opdi_call_united(th, op, table, &u, rets, args);
}

opd_tensor *opd_call_op(opd_op *op, const opd_value *args, int nargs) {
    opd_value rets[OPDI_MAX_RETURNS];
    rets[0].tag = OPD_TAG_NONE;
    if (opd_call_all(op, rets, args, nargs)) { return NULL; }
    return op->nrets && rets[0].tag == OPD_TAG_TENSOR ? rets[0].u.t : NULL;
}

int opd_call_tensors(opd_op *op, opd_tensor **out, const opd_value *args, int nargs) {
    opd_value rets[OPDI_MAX_RETURNS];
    int i, rc = opd_call_all(op, rets, args, nargs);
    for (i = 0; op && i < op->nrets; i++) { out[i] = rc == 0 && rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL; }
    return rc;
}

int opd_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs, const opd_keyword *kw, int nkw) {
    opd_value full[OPD_MAX_ARGS];
    int i, k;
    if (!opd_ok()) { return -1; }
    if (!op || !op->schema) { return opd_fail(OPD_ERROR_NOT_FOUND, "a call through an operator handle that is NULL or not defined"); }
    if (nargs + nkw > op->nargs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected at most %d argument(s) for operator '%s', but received %d argument(s).",
                        op->nargs, op->name, nargs + nkw);
    }
    for (i = 0; i < op->nargs; i++) { full[i] = i < nargs ? args[i] : opd_value_default(); }
    for (i = 0; i < nargs; i++) {
        if (op->schema->args[i].keyword_only) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s() takes argument '%s' as a keyword only", op->name, op->schema->args[i].name);
        }
    }
    for (k = 0; k < nkw; k++) {
        i = opdi_arg_index(op->schema, kw[k].name, strlen(kw[k].name));
        if (i < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Unknown keyword argument '%s' for operator '%s'", kw[k].name, op->name); }
        if (full[i].tag != OPD_TAG_DEFAULT) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s(): argument '%s' specified both as positional and keyword argument", op->name, kw[k].name);
        }
        full[i] = kw[k].value;
    }
    return opd_call_all(op, rets, full, op->nargs);
}

int opd_redispatch(opd_call *call, opd_keyset keys) {
    opdi_thread *th = call->th;
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    opd_call c;
    int rc, base, backend;
    if (OPDI_UNLIKELY(th->error != OPD_OK)) { return -1; }
    if (OPDI_UNLIKELY(!table) && !(table = opdi_table_make(call->op))) { return -1; }
    if (OPDI_UNLIKELY(call->filled != 0)) { return opd_fail(OPD_ERROR_KERNEL, "opd_redispatch after a result was given"); }
    c.op = call->op;
    c.args = call->args;
    c.rets = call->rets;
    c.targets = NULL;
    backend = opdi_top_bit((keys.backends & OPDI_BACKEND_MASK) | 1);
    c.keys.functionality = keys.functionality & table->masks[1][backend];
    c.keys.backends = keys.backends & OPDI_BACKEND_MASK;
    base = opdi_key_base[opdi_top_bit(c.keys.functionality << 1 | 1)];
    c.slot = base + (base >= OPD_KEY_BACKEND_BASE ? backend : 0);
    rc = opdi_invoke_here(th, &c, &table->slots[c.slot]);
    call->filled = c.filled;
    call->owned = c.owned;
    call->cursor = c.cursor;
    return rc;
}

//-- inside a kernel ----------------------------------------------------------------------------------------------

opd_op *opd_call_operator(const opd_call *call) { return call->op; }
opd_keyset opd_call_keys(const opd_call *call) { return call->keys; }
void *opd_call_user(const opd_call *call) { return call->user; }
int opd_call_nargs(const opd_call *call) { return call->op->nargs; }
const opd_value *opd_call_args(const opd_call *call) { return call->args; }
opd_value *opd_call_rets(opd_call *call) { return call->rets; }

//-- Argument i, or NULL with an error when it is not of that kind.
static inline const opd_value *opdi_arg_of(const opd_call *call, int i, int32_t tag) {
    if (OPDI_UNLIKELY((unsigned)i >= (unsigned)call->op->nargs)) {
        (void)opd_fail(OPD_ERROR_KERNEL, "the kernel asks for argument %d of %d", i, call->op->nargs);
        return NULL;
    }
    if (OPDI_LIKELY(call->args[i].tag == tag)) { return &call->args[i]; }
    if (call->args[i].tag != OPD_TAG_NONE) {
        (void)opd_fail(OPD_ERROR_KERNEL, "the kernel asks for argument %d as another kind than %s", i, opdi_value_kind(&call->args[i]));
    }
    return NULL;
}

opd_tensor *opd_arg_tensor(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_TENSOR);
    return v ? v->u.t : NULL;
}
int64_t opd_arg_int(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_INT);
    return v ? v->u.i : 0;
}
double opd_arg_float(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_FLOAT);
    return v ? v->u.d : 0;
}
bool opd_arg_bool(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_BOOL);
    return v ? v->u.i != 0 : false;
}
opd_value opd_arg_value(const opd_call *call, int i) {
    return (unsigned)i < (unsigned)call->op->nargs ? call->args[i] : opd_value_none();
}
bool opd_arg_is_none(const opd_call *call, int i) { return opd_arg_value(call, i).tag == OPD_TAG_NONE; }
const char *opd_arg_str(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_STR);
    return v ? v->u.s : NULL;
}
opd_ints opd_arg_ints(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_INTS);
    return v ? opd_ints_of(v->u.ints, v->n) : opd_ints_of(NULL, 0);
}
opd_floats opd_arg_floats(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_FLOATS);
    return v ? opd_floats_of(v->u.floats, v->n) : opd_floats_of(NULL, 0);
}
opd_tensors opd_arg_tensors(const opd_call *call, int i) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_TENSORS);
    return v ? opd_tensors_of(v->u.tensors, v->n) : opd_tensors_of(NULL, 0);
}
opd_scalar_type opd_arg_dtype(const opd_call *call, int i, opd_scalar_type if_none) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_INT);
    if (!v) { return if_none; }
    if (v->u.i < 0 || v->u.i > 127 || !opd_dtype_size((opd_scalar_type)v->u.i)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "argument '%s': %lld is no dtype", call->op->schema->args[i].name, (long long)v->u.i);
        return if_none;
    }
    return (opd_scalar_type)v->u.i;
}
opd_device opd_arg_device(const opd_call *call, int i, opd_device if_none) {
    const opd_value *v = opdi_arg_of(call, i, OPD_TAG_DEVICE);
    return v ? v->u.device : if_none;
}

//-- results ------------------------------------------------------------------------------------------------------

//-- List, string and complex results travel in a block: the header is in front of what the value points to.
static void opdi_ret_block_free(opd_value *v) {
    opdi_block *b;
    int32_t i;
    if (v->tag == OPD_TAG_TENSORS) {
        for (i = 0; i < v->n; i++) {
            if (v->u.tensors[i]) { opdi_drop(v->u.tensors[i]); }
        }
    }
    b = (opdi_block *)(uintptr_t)v->u.object - 1;
    opdi_free(b, b->bytes);
}

//-- Gives such a block, and the tensors in it, to the innermost scope.  Room was reserved for the block alone.
static void opdi_ret_block_own(opdi_thread *th, opd_value *v) {
    opdi_block *b = (opdi_block *)(uintptr_t)v->u.object - 1;
    int32_t i;
    if (v->tag == OPD_TAG_TENSORS) {
        if (opdi_scope_reserve(th, (int64_t)v->n + OPDI_MAX_RETURNS)) { opdi_ret_block_free(v); *v = opd_value_none(); return; }
        for (i = 0; i < v->n; i++) {
            if (v->u.tensors[i]) { opdi_push(th, v->u.tensors[i]); }
        }
    }
    th->handles[th->top++] = (uintptr_t)b | OPDI_HANDLE_BLOCK;
}

//-- Index of the next result, or -1 with an error when all are there.
static int opdi_next_result(opd_call *call) {
    if (call->cursor >= call->op->nrets) {
        return opd_fail(OPD_ERROR_KERNEL, "the kernel returns more than the %d result(s) of the schema", call->op->nrets);
    }
    return call->cursor++;
}

static int opdi_return_error(const opd_call *call, int i, const char *kind) {
    char type[256];
    (void)opdi_type_print(call->op->schema->returns[i].type, type, sizeof type);
    return opd_fail(OPD_ERROR_KERNEL, "the kernel returns a %s as result %d, which the schema says is a %s", kind, i, type);
}

int opd_return_tensor(opd_call *call, opd_tensor *t) {
    const opd_op *op = call->op;
    int i = call->cursor, alias;
    uint32_t bit = 1u << i;
    if (OPDI_UNLIKELY(call->th->error != OPD_OK)) { return -1; }
    if (OPDI_UNLIKELY(i >= op->nrets)) { return opdi_next_result(call); }
    if (OPDI_UNLIKELY(!t)) { return opd_fail(OPD_ERROR_KERNEL, "the kernel returns NULL as result %d without an error", i); }
    if (OPDI_UNLIKELY(!op->ret_tensor[i])) { return opdi_return_error(call, i, "Tensor"); }
    call->cursor = i + 1;
    if (call->filled & bit) {                     /* made by opd_result */
        if (call->rets[i].u.t == t) { return 0; }
        if (call->owned & bit) { opdi_drop(call->rets[i].u.t); call->owned &= ~bit; }
    }
    alias = op->ret_alias[i];
    if (alias < 0 || call->args[alias].tag != OPD_TAG_TENSOR || call->args[alias].u.t != t) {     /* else it stays its owner's */
        opdi_retain(t);
        call->owned |= bit;
    }
    call->rets[i].tag = OPD_TAG_TENSOR;
    call->rets[i].n = 0;
    call->rets[i].u.t = t;
    call->filled |= bit;
    return 0;
}

//-- A block for result i with room for bytes, after its header.
static void *opdi_ret_block(size_t bytes) {
    opdi_block *b = (opdi_block *)opdi_alloc(bytes + sizeof *b);
    if (!b) { return NULL; }
    b->bytes = bytes + sizeof *b;
    return b + 1;
}

int opd_return_tensors(opd_call *call, opd_tensor *const *list, int64_t n) {
    opd_tensor **copy;
    int64_t k;
    int i;
    if (call->th->error != OPD_OK || (i = opdi_next_result(call)) < 0) { return -1; }
    if (opdi_strip_optional(call->op->schema->returns[i].type)->kind != OPDI_TYPE_LIST) { return opdi_return_error(call, i, "Tensor[]"); }
    copy = (opd_tensor **)opdi_ret_block((size_t)n * sizeof *copy);
    if (!copy) { return -1; }
    for (k = 0; k < n; k++) {
        copy[k] = list[k];
        if (copy[k]) { opdi_retain(copy[k]); }
    }
    call->rets[i] = opd_value_tensors(copy, n);
    call->filled |= 1u << i;
    call->owned |= 1u << i;
    return 0;
}

//-- Copies what a value points to into a block; the value then points there.
static int opdi_ret_copy(opd_value *v) {
    size_t bytes = v->tag == OPD_TAG_STR ? strlen(v->u.s) + 1 : v->tag == OPD_TAG_COMPLEX ? 2 * sizeof(double) :
                   v->tag == OPD_TAG_INTS ? (size_t)v->n * sizeof(int64_t) : v->tag == OPD_TAG_FLOATS ?
                   (size_t)v->n * sizeof(double) : v->tag == OPD_TAG_BOOLS ? (size_t)v->n : (size_t)v->n * sizeof(opd_value);
    void *p = opdi_ret_block(bytes);
    if (!p) { return -1; }
    if (bytes) { memcpy(p, v->u.object, bytes); }
    v->u.object = p;
    return 0;
}

int opd_return_value(opd_call *call, opd_value v) {
    const opdi_type *t;
    opd_value bound;
    int i, rc;
    if (v.tag == OPD_TAG_TENSOR) { return opd_return_tensor(call, v.u.t); }
    if (v.tag == OPD_TAG_TENSORS) { return opd_return_tensors(call, v.u.tensors, v.n); }
    if (call->th->error != OPD_OK || (i = opdi_next_result(call)) < 0) { return -1; }
    t = call->op->schema->returns[i].type;
    rc = v.tag == OPD_TAG_NONE && opdi_strip_optional(t)->kind == OPDI_TYPE_TENSOR ? 0 :     /* an undefined tensor */
         opdi_strip_optional(t)->kind == OPDI_TYPE_TENSOR ? 1 : opdi_bind_value(t, &v, &bound);
    if (rc) { return rc > 0 ? opdi_return_error(call, i, opdi_value_kind(&v)) : -1; }
    if (v.tag == OPD_TAG_STR || v.tag == OPD_TAG_COMPLEX || opdi_is_list(&v)) {
        if (opdi_ret_copy(&v)) { return -1; }
        call->owned |= 1u << i;
    }
    call->rets[i] = v;
    call->filled |= 1u << i;
    return 0;
}

OPDI_COLD_BEGIN

//-- dumps --------------------------------------------------------------------------------------------------------

typedef struct opdi_text { char *buf; size_t cap, n; } opdi_text;
static void opdi_text_add(opdi_text *t, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
static void opdi_text_add(opdi_text *t, const char *format, ...) {
    va_list ap;
    int n;
    va_start(ap, format);
    n = vsnprintf(t->n < t->cap ? t->buf + t->n : NULL, t->n < t->cap ? t->cap - t->n : 0, format, ap);
    va_end(ap);
    if (n > 0) { t->n += (size_t)n; }
}
static opdi_text opdi_text_of(char *buf, size_t cap) {
    opdi_text t;
    t.buf = buf;
    t.cap = cap;
    t.n = 0;
    if (cap) { buf[0] = 0; }
    return t;
}

//-- "CPU, Meta, ...": keys with a kernel of the operator's own, then the others folded into a count.
static size_t opdi_table_text(const opd_op *op, char *buf, size_t cap, bool fallbacks) {
    opdi_text t = opdi_text_of(buf, cap);
    const opdi_kernel *k;
    int slot, folded = 0;
    for (k = op->kernels; k; k = k->next) {
        opdi_text_add(&t, "%s%s [registered at %s:%d]", t.n ? ", " : "", opd_key_name(k->key), k->lib->file, k->lib->line);
    }
    for (slot = 0; slot < OPD_KEY_SLOTS; slot++) { folded += opdi_registry.fallbacks[slot] != NULL; }
    if (fallbacks || folded) { opdi_text_add(&t, "%s%d fallbacks for every operator", t.n ? ", " : "", folded); }
    return t.n;
}

size_t opd_dump(const opd_op *op, char *buf, size_t cap) {
    opdi_text t = opdi_text_of(buf, cap);
    char schema[1024];
    opd_key key;
    opdi_lock(&opdi_registry.lock);
    opdi_text_add(&t, "name: %s\n", op->name);
    if (op->schema) {
        (void)opd_schema_print(op->schema, schema, sizeof schema);
        opdi_text_add(&t, "schema: %s%s%s\ndebug: registered at %s:%d\nalias analysis kind: FROM_SCHEMA\n",
                      *op->schema->ns ? "" : op->lib->ns, *op->schema->ns ? "" : "::", schema, op->lib->file, op->lib->line);
    } else {
        opdi_text_add(&t, "schema: (none)\n");
    }
    for (key = 0; key < OPD_KEY_COUNT; key++) {
        const opdi_kernel *k;
        bool first = true;
        for (k = op->kernels; k; k = k->next) {
            if (k->key != key) { continue; }
            opdi_text_add(&t, "%s%s%s: registered at %s:%d :: (none) [ %sboxed ]\n", opd_key_name(key), opd_key_is_alias(key) ? "[alias]" : "",
                          first ? "" : " (inactive)", k->lib->file, k->lib->line, k->fn == opd_fallthrough ? "fallthrough " : "");
            first = false;
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return t.n;
}

size_t opd_dump_table(const opd_op *op, char *buf, size_t cap) {
    opdi_text t = opdi_text_of(buf, cap);
    int slot;
    opdi_lock(&opdi_registry.lock);
    for (slot = 0; slot < OPD_KEY_SLOTS; slot++) {
        opdi_chosen how;
        const opdi_kernel *k = opdi_compute_slot(op, slot, &how);
        if (how == OPDI_CHOSEN_AMBIGUOUS) { opdi_text_add(&t, "%s: [%s]\n", opd_key_name(slot), opdi_chosen_names[how]); }
        if (!k) { continue; }
        opdi_text_add(&t, "%s: %sregistered at %s:%d [%s]\n", opd_key_name(slot), k->fn == opd_fallthrough ? "fallthrough " : "",
                      k->lib->file, k->lib->line, opdi_chosen_names[how]);
    }
    opdi_unlock(&opdi_registry.lock);
    return t.n;
}

//-- One operator: its published table against the registrations.
static const char *opdi_check_op(const opd_op *op) {
    opdi_table fresh;
    const opdi_table *table = op->table;
    if (!*op->name) { return "has no name"; }
    if (table && !op->schema) { return "has a table but no schema"; }
    if (!table) { return NULL; }
    opdi_fill_table(op, &fresh);
    if (memcmp(fresh.masks, table->masks, sizeof fresh.masks) != 0) { return "has stale fallthrough masks"; }
    if (memcmp(fresh.slots, table->slots, sizeof fresh.slots) != 0) { return "has a stale table"; }
    return NULL;
}

int opd_check_invariants(void) {
    const char *wrong = NULL, *name = "";
    int i;
    opdi_lock(&opdi_registry.lock);
    for (i = 0; i < OPDI_BUCKETS && !wrong; i++) {
        const opd_op *op;
        for (op = opdi_registry.buckets[i]; op && !wrong; op = op->next_in_bucket) {
            wrong = opdi_check_op(op);
            name = op->name;
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return wrong ? opd_fail(OPD_ERROR_REGISTER, "the operator '%s' %s", name, wrong) : 0;
}

OPDI_COLD_END

//----------------------------------------------------------------------------------------------------------------------
//  >>tensors    storage, sizes and strides, results of kernels, derived forms
//
//  A tensor is one block: header, sizes, strides, storage header, data.  Its references are counted; the block goes when
//  the last tensor that looks at the storage goes.  Uses the dispatcher; of autograd it knows that a tensor may have a
//  node to let go of.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_TENSOR_KEYS (OPD_BIT_OF(OPD_F_DENSE) | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW) | OPD_BIT_OF(OPD_F_AUTOGRAD) | \
                          OPD_BIT_OF(OPD_F_AUTOCAST))

/* What few tensors have. */
typedef struct opdi_meta {
    opd_tensor *grad;            /* accumulated gradient of a leaf */
    struct opdi_task *task;      /* the backward that is at work on this leaf */
    int64_t *dims;               /* sizes and strides after a resize, dims_count of them */
    int64_t dims_count;
    opdi_storage *home;          /* the storage in whose block the tensor is, after a resize gave it another one */
} opdi_meta;

static void opdi_node_release(opd_node *node);
static void opdi_own_retain(opd_tensor *t);
static bool opdi_own_drop(opd_tensor *t);
static int opdi_copy(opd_tensor *dst, const opd_tensor *src);

static void opdi_storage_drop(opdi_storage *s) {
    if (OPDI_ACQUIRE(&s->refs) != 1 && OPDI_SUB(&s->refs, 1) != 0) { return; }
    if (s->block_bytes < 0) {
        opdi_foreign *f = (opdi_foreign *)(void *)s;
        if (f->deleter) { f->deleter(s->data, f->user); }
        opdi_free(f, sizeof *f);
    } else {
        opdi_free(s->block, (size_t)s->block_bytes);
    }
}

//-- The last reference is gone.  The block may live on, as the storage of views.
OPDI_NOINLINE static void opdi_tensor_free(opd_tensor *t) {
    opdi_storage *s = t->storage, *home = s->block == t ? s : NULL;
    if (t->meta) {
        opdi_meta *m = t->meta;
        opd_tensor *grad = m->grad;
        if (m->dims) { opdi_free(m->dims, (size_t)m->dims_count * sizeof(int64_t)); }
        if (m->home) { home = m->home; }
        opdi_free(m, sizeof *m);
        if (grad) { opdi_drop(grad); }
    }
    if (t->grad_fn && !(t->flags & OPDI_WEAK_NODE)) { opdi_node_release(t->grad_fn); }
    if (!home) { opdi_free(t, sizeof *t + (size_t)t->room * sizeof(int64_t)); }
    if (home && home != s) { opdi_storage_drop(home); }
    opdi_storage_drop(s);
}

static inline void opdi_retain(opd_tensor *t) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&t->flags) & OPDI_SAVED_BY_OWN)) { opdi_own_retain(t); return; }
    (void)OPDI_ADD(&t->refs, 1);
}

static inline void opdi_drop(opd_tensor *t) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&t->flags) & OPDI_SAVED_BY_OWN)) {
        if (opdi_own_drop(t)) { opdi_tensor_free(t); }
        return;
    }
    if (OPDI_ACQUIRE(&t->refs) == 1 || OPDI_SUB(&t->refs, 1) == 0) { opdi_tensor_free(t); }
}

opd_tensor *opd_keep(opd_tensor *t) {
    if (t) { opdi_retain(t); }
    return t;
}
void opd_release(opd_tensor *t) {
    if (t) { opdi_drop(t); }
}
opd_tensor *opd_assign(opd_tensor **handle, opd_tensor *t) {
    opd_tensor *old = *handle;
    *handle = opd_keep(t);
    opd_release(old);
    return t;
}

opd_tensor *opd_scope_return(opd_tensor *t) {
    opdi_thread *th = opdi_self();
    int64_t i;
    if (!t) { return NULL; }
    for (i = th->top; i-- > th->scope_mark;) {
        if (th->handles[i] == (uintptr_t)t) { th->handles[i] |= OPDI_HANDLE_UP; return t; }
    }
    if (opdi_scope_reserve(th, 1)) { return NULL; }
    opdi_retain(t);
    th->handles[th->top++] = (uintptr_t)t | OPDI_HANDLE_UP;
    return t;
}

//-- Takes the handles [from, to) out of the stack and releases them: what binding made for a call that is over.
static void opdi_scope_remove(opdi_thread *th, int64_t from, int64_t to) {
    uintptr_t gone[8];
    while (to > from) {
        int64_t i, n = OPDI_MIN(to - from, 8);
        for (i = 0; i < n; i++) { gone[i] = th->handles[from + i]; }
        memmove(th->handles + from, th->handles + from + n, (size_t)(th->top - from - n) * sizeof *th->handles);
        th->top -= n;
        to -= n;
        for (i = 0; i < n; i++) { opdi_handle_release(gone[i]); }
    }
}

OPDI_NOINLINE static void opdi_root_warn(opdi_thread *th, const opd_op *op) {
    if (th->warned_root || th->scope_depth > 0) { return; }
    th->warned_root = 1;
    opd_warn("%lld tensors wait in the root scope, the last one from %s: is an OPD_SCOPE missing in a loop?",
             (long long)th->top, op ? opd_op_name(op) : "no operator");
}

//-- making tensors -----------------------------------------------------------------------------------------------

//-- "[2, 3]"
static const char *opdi_sizes_text(const int64_t *sizes, int ndim, char *buf, size_t cap) {
    opdi_text t = opdi_text_of(buf, cap);
    int i;
    opdi_text_add(&t, "[");
    for (i = 0; i < ndim; i++) { opdi_text_add(&t, "%s%lld", i ? ", " : "", (long long)sizes[i]); }
    opdi_text_add(&t, "]");
    return buf;
}

//-- Number of elements; -1 with an error for a negative size or one that does not fit into memory.
static int64_t opdi_count(const int64_t *sizes, int ndim, size_t element) {
    uint64_t n = 1, limit = (uint64_t)INT64_MAX / 2 / element;
    bool zero = false;
    int i;
    if (ndim < 0 || ndim > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions, not %d", OPD_MAX_DIMS, ndim);
    }
    for (i = 0; i < ndim; i++) {
        char text[256];
        if (sizes[i] < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "Trying to create tensor with negative dimension %lld: %s", (long long)sizes[i],
                            opdi_sizes_text(sizes, ndim, text, sizeof text));
        }
        if (sizes[i] == 0) { zero = true; continue; }
        if ((uint64_t)sizes[i] > limit / n) {
            return opd_fail(OPD_ERROR_SHAPE, "the sizes %s do not fit into memory", opdi_sizes_text(sizes, ndim, text, sizeof text));
        }
        n *= (uint64_t)sizes[i];
    }
    return zero ? 0 : (int64_t)n;
}

//-- Elements from the first to the last that sizes and strides reach, plus one; 0 when there are none; -1: overflow.
static int64_t opdi_extent(const int64_t *sizes, const int64_t *strides, int ndim) {
    uint64_t last = 0;
    int i;
    for (i = 0; i < ndim; i++) {
        uint64_t steps, stride;
        if (sizes[i] == 0) { return 0; }
        steps = (uint64_t)sizes[i] - 1;
        stride = (uint64_t)strides[i];
        if (steps && stride > ((uint64_t)INT64_MAX / 4 - last) / steps) { return -1; }
        last += steps * stride;
    }
    return (int64_t)last + 1;
}

static bool opdi_strides_contiguous(const int64_t *sizes, const int64_t *strides, int ndim) {
    int64_t want = 1;
    int i;
    for (i = 0; i < ndim; i++) {
        if (sizes[i] == 0) { return true; }
    }
    for (i = ndim; i-- > 0;) {
        if (sizes[i] != 1 && strides[i] != want) { return false; }
        want *= sizes[i];
    }
    return true;
}

static void opdi_strides_fill(const int64_t *sizes, int64_t *strides, int ndim) {
    int64_t n = 1;
    int i;
    for (i = ndim; i-- > 0;) {
        strides[i] = n;
        n *= OPDI_MAX(sizes[i], 1);
    }
}

//-- Writes sizes, strides (NULL: contiguous) and what follows from them.
static inline void opdi_set_dims(opd_tensor *t, const int64_t *sizes, const int64_t *strides, int ndim, int64_t numel) {
    int i;
    t->ndim = (uint8_t)ndim;
    t->numel = numel;
    for (i = 0; i < ndim; i++) { t->dims[i] = sizes[i]; }
    if (strides) {
        for (i = 0; i < ndim; i++) { t->dims[ndim + i] = strides[i]; }
    } else {
        opdi_strides_fill(t->dims, t->dims + ndim, ndim);
    }
    t->flags = (uint8_t)(t->flags & ~OPDI_CONTIGUOUS);
    if (!strides || opdi_strides_contiguous(t->dims, t->dims + ndim, ndim)) { t->flags |= OPDI_CONTIGUOUS; }
}

static inline void opdi_tensor_init(opd_tensor *t, opd_scalar_type dtype, int backend, int ndim) {
    t->refs = 1;
    t->dtype = (int8_t)dtype;
    t->backend = (uint8_t)backend;
    t->flags = 0;
    t->functionality = OPDI_TENSOR_KEYS;
    t->grad_fn = NULL;
    t->meta = NULL;
    t->output_nr = 0;
    t->room = (int16_t)(2 * ndim);
    t->backend_bit = (uint16_t)(1u << backend);
    t->dims = (int64_t *)(void *)(t + 1);
}

//-- A fresh tensor with one reference, owned by the caller.
static opd_tensor *opdi_tensor_make(const int64_t *sizes, const int64_t *strides, int ndim, opd_scalar_type dtype, int backend) {
    size_t element = opd_dtype_size(dtype), head, align, bytes, block;
    int64_t numel, extent;
    opd_tensor *t;
    opdi_storage *s;
    if (element == 0) { (void)opd_fail(OPD_ERROR_DTYPE, "%d is no dtype", (int)dtype); return NULL; }
    if (OPDI_UNLIKELY(backend != OPD_CPU && backend != OPD_META)) {
        char name[32];
        (void)opd_fail(OPD_ERROR_NO_KERNEL, "no allocator for device %s: nothing in this program provides one",
                       opd_device_print(opd_device_of((opd_backend)backend, -1), name, sizeof name));
        return NULL;
    }
    numel = extent = opdi_count(sizes, ndim, element);
    if (numel < 0) { return NULL; }
    if (strides && numel) { extent = opdi_extent(sizes, strides, ndim); }
    if (extent < 0 || (uint64_t)extent > (uint64_t)INT64_MAX / 2 / element) {
        (void)opd_fail(OPD_ERROR_SHAPE, "sizes and strides do not fit into memory");
        return NULL;
    }
    bytes = (size_t)extent * element;
    head = sizeof *t + 2 * (size_t)ndim * sizeof(int64_t) + sizeof *s;
    align = bytes <= 8 ? 8 : bytes < 256 ? 16 : 64;
    block = ((head + align - 1) & ~(align - 1)) + (backend == OPD_META ? 0 : bytes);
    t = (opd_tensor *)opdi_alloc(block);
    if (!t) { return NULL; }
    opdi_tensor_init(t, dtype, backend, ndim);
    opdi_set_dims(t, sizes, strides, ndim, numel);
    s = (opdi_storage *)(void *)(t->dims + 2 * ndim);
    s->refs = 1;
    s->version = 0;
    s->bytes = (int64_t)bytes;
    s->block = t;
    s->block_bytes = (int64_t)block;
    s->viewed = s->spare = 0;
    s->data = backend == OPD_META ? NULL : (char *)t + ((head + align - 1) & ~(align - 1));
    t->storage = s;
    t->data = s->data;
    return t;
}

//-- A tensor that looks at s.  Not checked against its bounds.
static opd_tensor *opdi_tensor_on(opdi_storage *s, char *data, const int64_t *sizes, const int64_t *strides, int ndim,
                                  opd_scalar_type dtype, int backend) {
    int64_t numel = opdi_count(sizes, ndim, opd_dtype_size(dtype));
    opd_tensor *t;
    if (numel < 0) { return NULL; }
    t = (opd_tensor *)opdi_alloc(sizeof *t + 2 * (size_t)ndim * sizeof(int64_t));
    if (!t) { return NULL; }
    opdi_tensor_init(t, dtype, backend, ndim);
    opdi_set_dims(t, sizes, strides, ndim, numel);
    t->storage = s;
    t->data = data;
    return t;
}

//-- A view that view operators return: sizes and strides of t's storage at an offset (elements) from t's first element.
//-- Known to stay inside.  Belongs to the innermost scope.
static opd_tensor *opdi_view(opd_tensor *t, const int64_t *sizes, const int64_t *strides, int ndim, int64_t offset) {
    opd_tensor *v = opdi_tensor_on(t->storage, t->data ? t->data + offset * (int64_t)opd_dtype_size((opd_scalar_type)t->dtype) : NULL, sizes,
                                   strides, ndim, (opd_scalar_type)t->dtype, t->backend);
    if (!v) { return NULL; }
    (void)OPDI_ADD(&t->storage->refs, 1);
    OPDI_STORE(&t->storage->viewed, 1u);
    v->flags |= OPDI_IS_VIEW;
    return opdi_own(v);
}

opd_tensor *opd_tensor_view(opd_tensor *t, const int64_t *sizes, const int64_t *strides, int ndim, int64_t offset) {
    int64_t extent, own = opd_offset(t), element;
    int i;
    if (!opd_ok() || !t) { return NULL; }
    element = (int64_t)opd_dtype_size((opd_scalar_type)t->dtype);
    if (opdi_count(sizes, ndim, (size_t)element) < 0) { return NULL; }
    for (i = 0; i < ndim; i++) {
        if (strides[i] < 0) {
            (void)opd_fail(OPD_ERROR_SHAPE, "as_strided: Negative strides are not supported at the moment, got strides: %lld", (long long)strides[i]);
            return NULL;
        }
    }
    extent = opdi_extent(sizes, strides, ndim);
    if (offset < 0 || extent < 0 || (extent > 0 && extent > t->storage->bytes / element - offset)) {
        char a[256], b[256];
        (void)opd_fail(OPD_ERROR_INDEX, "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %lld are out of bounds for "
                       "storage of size %lld", opdi_sizes_text(sizes, ndim, a, sizeof a), opdi_sizes_text(strides, ndim, b, sizeof b),
                       (long long)offset, (long long)element, (long long)t->storage->bytes);
        return NULL;
    }
    return opdi_view(t, sizes, strides, ndim, offset - own);
}

opd_tensor *opd_tensor_new_on(opd_ints sizes, opd_scalar_type dtype, opd_device device) {
    if (!opd_ok()) { return NULL; }
    if (sizes.n > OPD_MAX_DIMS) { (void)opdi_count(sizes.data, OPD_MAX_DIMS + 1, 1); return NULL; }
    return opdi_own(opdi_tensor_make(sizes.data, NULL, (int)sizes.n, dtype, device.type));
}
opd_tensor *opd_tensor_new(opd_ints sizes, opd_scalar_type dtype) {
    return opd_tensor_new_on(sizes, dtype, opd_device_of(OPD_CPU, -1));
}

opd_tensor *opd_tensor_from(const void *data, opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *t = opd_tensor_new(sizes, dtype);
    if (t && t->numel) {
        if (!data) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_from: the data is NULL"); return NULL; }
        memcpy(t->data, data, (size_t)t->storage->bytes);
    }
    return t;
}

static opd_tensor *opdi_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                    void (*deleter)(void *data, void *user), void *user) {
    int64_t numel, extent, own[2 * OPD_MAX_DIMS];
    opdi_foreign *f;
    opd_tensor *t;
    int i;
    if (sizes.n > OPD_MAX_DIMS) { (void)opdi_count(sizes.data, OPD_MAX_DIMS + 1, 1); return NULL; }
    if (!opd_dtype_size(dtype)) { (void)opd_fail(OPD_ERROR_DTYPE, "%d is no dtype", (int)dtype); return NULL; }
    numel = opdi_count(sizes.data, (int)sizes.n, opd_dtype_size(dtype));
    if (numel < 0) { return NULL; }
    for (i = 0; strides && i < sizes.n; i++) {
        if (strides[i] < 0) { (void)opd_fail(OPD_ERROR_SHAPE, "opd_tensor_wrap: negative strides are not supported"); return NULL; }
    }
    if (!strides) { opdi_strides_fill(sizes.data, own, (int)sizes.n); }
    extent = opdi_extent(sizes.data, strides ? strides : own, (int)sizes.n);
    if (extent < 0 || extent > INT64_MAX / 16) { (void)opd_fail(OPD_ERROR_SHAPE, "opd_tensor_wrap: sizes and strides overflow"); return NULL; }
    if (numel && !data) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_wrap: the data is NULL"); return NULL; }
    f = (opdi_foreign *)opdi_alloc(sizeof *f);
    if (!f) { return NULL; }
    memset(f, 0, sizeof *f);
    f->storage.refs = 1;
    f->storage.data = (char *)data;
    f->storage.bytes = extent * (int64_t)opd_dtype_size(dtype);
    f->storage.block_bytes = -1;
    t = opdi_tensor_on(&f->storage, (char *)data, sizes.data, strides, (int)sizes.n, dtype, OPD_CPU);
    if (!t) { opdi_free(f, sizeof *f); return NULL; }
    f->deleter = deleter;
    f->user = user;
    return t;
}

opd_tensor *opd_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                            void (*deleter)(void *data, void *user), void *user) {
    opd_tensor *t = opd_ok() ? opdi_tensor_wrap(data, sizes, strides, dtype, deleter, user) : NULL;
    if (!t && deleter) { deleter(data, user); }
    return t ? opdi_own(t) : NULL;
}

opd_tensor *opd_tensor_wrapped_number(opd_value number) {
    opd_scalar_type dtype = number.tag == OPD_TAG_INT ? OPD_INT64 : number.tag == OPD_TAG_BOOL ? OPD_BOOL :
                            number.tag == OPD_TAG_FLOAT ? OPD_FLOAT64 : OPD_COMPLEX128;
    opd_tensor *t;
    if (!opdi_is_number(&number)) { (void)opd_fail(OPD_ERROR_ARGUMENT, "a number was expected"); return NULL; }
    t = opdi_tensor_make(NULL, NULL, 0, dtype, OPD_CPU);
    if (!t) { return NULL; }
    t->flags |= OPDI_WRAPPED;
    if (dtype == OPD_INT64) { memcpy(t->data, &number.u.i, sizeof(int64_t)); }
    else if (dtype == OPD_BOOL) { *t->data = number.u.i != 0; }
    else if (dtype == OPD_FLOAT64) { memcpy(t->data, &number.u.d, sizeof(double)); }
    else { memcpy(t->data, number.u.c, 2 * sizeof(double)); }
    return opdi_own(t);
}

//-- reading tensors ----------------------------------------------------------------------------------------------

int opd_ndim(const opd_tensor *t) { return t->ndim; }
const int64_t *opd_sizes(const opd_tensor *t) { return t->dims; }
const int64_t *opd_strides(const opd_tensor *t) { return t->dims + t->ndim; }
int64_t opd_numel(const opd_tensor *t) { return t->numel; }
opd_scalar_type opd_dtype(const opd_tensor *t) { return (opd_scalar_type)t->dtype; }
opd_device opd_tensor_device(const opd_tensor *t) { return opd_device_of((opd_backend)t->backend, t->backend == OPD_CPU || t->backend == OPD_META ? -1 : 0); }
opd_keyset opd_tensor_keys(const opd_tensor *t) { return opd_keyset_make(t->functionality, (uint64_t)1 << t->backend); }
bool opd_is_contiguous(const opd_tensor *t) { return (t->flags & OPDI_CONTIGUOUS) != 0; }
bool opd_tensor_is_wrapped_number(const opd_tensor *t) { return (t->flags & OPDI_WRAPPED) != 0; }
bool opd_tensor_same_storage(const opd_tensor *a, const opd_tensor *b) { return a->storage == b->storage; }
int64_t opd_tensor_storage_bytes(const opd_tensor *t) { return t->storage->bytes; }
uint32_t opd_tensor_version(const opd_tensor *t) { return OPDI_LOAD(&t->storage->version); }
int64_t opd_offset(const opd_tensor *t) {
    return t->data ? (int64_t)((t->data - t->storage->data) / (ptrdiff_t)opd_dtype_size((opd_scalar_type)t->dtype)) : 0;
}

int64_t opd_size(const opd_tensor *t, int dim) {
    int d = dim < 0 ? dim + t->ndim : dim;
    if (d < 0 || d >= t->ndim) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %d)", -OPDI_MAX((int)t->ndim, 1),
                        OPDI_MAX((int)t->ndim, 1) - 1, dim);
    }
    return t->dims[d];
}

void *opd_data(const opd_tensor *t) { return t->data; }

OPDI_NOINLINE static void *opdi_data_error(const opd_tensor *t, opd_scalar_type dtype) {
    if (!t) { (void)opd_fail(OPD_ERROR_ARGUMENT, "the data of a NULL tensor was asked for"); }
    else if (t->dtype != (int8_t)dtype) {
        (void)opd_fail(OPD_ERROR_DTYPE, "expected scalar type %s but found %s", opd_dtype_cname(dtype), opd_dtype_cname((opd_scalar_type)t->dtype));
    } else {
        char device[32];
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor on %s has no data that the host can read", opd_device_print(opd_tensor_device(t), device, sizeof device));
    }
    return NULL;
}
static inline void *opdi_data_of(const opd_tensor *t, opd_scalar_type dtype) {
    return OPDI_LIKELY(t && t->dtype == (int8_t)dtype && t->backend == OPD_CPU) ? (void *)t->data : opdi_data_error(t, dtype);
}
float *opd_data_f32(const opd_tensor *t) { return (float *)opdi_data_of(t, OPD_FLOAT32); }
double *opd_data_f64(const opd_tensor *t) { return (double *)opdi_data_of(t, OPD_FLOAT64); }
int64_t *opd_data_i64(const opd_tensor *t) { return (int64_t *)opdi_data_of(t, OPD_INT64); }
int32_t *opd_data_i32(const opd_tensor *t) { return (int32_t *)opdi_data_of(t, OPD_INT32); }
uint8_t *opd_data_u8(const opd_tensor *t) { return (uint8_t *)opdi_data_of(t, OPD_UINT8); }
bool *opd_data_bool(const opd_tensor *t) { return (bool *)opdi_data_of(t, OPD_BOOL); }

static int opdi_item_check(const opd_tensor *t) {
    if (!t) { return opd_fail(OPD_ERROR_ARGUMENT, "the value of a NULL tensor was asked for"); }
    if (t->numel != 1) { return opd_fail(OPD_ERROR_SHAPE, "a Tensor with %lld elements cannot be converted to Scalar", (long long)t->numel); }
    if (t->backend != OPD_CPU) { (void)opdi_data_error(t, (opd_scalar_type)t->dtype); return -1; }
    return 0;
}
double opd_item_f64(const opd_tensor *t) { return !opd_ok() || opdi_item_check(t) ? 0 : opdi_element_f64(t, 0); }
int64_t opd_item_i64(const opd_tensor *t) { return !opd_ok() || opdi_item_check(t) ? 0 : opdi_element_i64(t, 0); }

static opdi_meta *opdi_meta_of(opd_tensor *t) {
    if (!t->meta) {
        opdi_meta *m = (opdi_meta *)opdi_alloc(sizeof *m);
        if (!m) { return NULL; }
        memset(m, 0, sizeof *m);
        t->meta = m;
    }
    return t->meta;
}

//-- resizing -----------------------------------------------------------------------------------------------------

//-- A storage of its own for bytes, with one reference.
static opdi_storage *opdi_storage_make(int64_t bytes, int backend) {
    size_t head = (sizeof(opdi_storage) + 63) & ~(size_t)63;
    size_t block = head + (backend == OPD_META ? 0 : (size_t)bytes);
    opdi_storage *s = (opdi_storage *)opdi_alloc(block);
    if (!s) { return NULL; }
    memset(s, 0, sizeof *s);
    s->refs = 1;
    s->bytes = bytes;
    s->block = s;
    s->block_bytes = (int64_t)block;
    s->data = backend == OPD_META ? NULL : (char *)s + head;
    return s;
}

//-- Gives t other sizes, contiguous, as resize_ does; memory grows when it has to, and what was there is kept.
static int opdi_resize(opd_tensor *t, const int64_t *sizes, int ndim) {
    size_t element = opd_dtype_size((opd_scalar_type)t->dtype);
    int64_t numel = opdi_count(sizes, ndim, element), offset = opd_offset(t), need, *dims = NULL;
    opdi_storage *s = t->storage, *grown = NULL;
    opdi_meta *m = t->meta;
    if (numel < 0) { return -1; }
    need = (offset + numel) * (int64_t)element;
    if ((2 * ndim > t->room || (numel && need > s->bytes)) && !(m = opdi_meta_of(t))) { return -1; }
    if (2 * ndim > t->room && 2 * ndim > m->dims_count) {
        dims = (int64_t *)opdi_alloc(2 * (size_t)ndim * sizeof *dims);
        if (!dims) { return -1; }
    }
    if (numel && need > s->bytes) {
        if (s->block_bytes < 0 && s->bytes > 0) {
            opdi_free(dims, 2 * (size_t)ndim * sizeof *dims);
            return opd_fail(OPD_ERROR_SHAPE, "Trying to resize storage that is not resizable");
        }
        grown = opdi_storage_make(need, t->backend);
        if (!grown) { opdi_free(dims, 2 * (size_t)ndim * sizeof *dims); return -1; }
        grown->version = s->version;
        if (grown->data && s->bytes) { memcpy(grown->data, s->data, (size_t)s->bytes); }
        if (s->block == t) { m->home = s; } else { opdi_storage_drop(s); }
        t->storage = grown;
        t->data = grown->data ? grown->data + offset * (int64_t)element : NULL;
    }
    if (dims) {
        opdi_free(m->dims, (size_t)m->dims_count * sizeof *dims);
        m->dims = dims;
        m->dims_count = 2 * ndim;
    }
    t->dims = 2 * ndim > t->room ? m->dims : (int64_t *)(void *)(t + 1);
    opdi_set_dims(t, sizes, NULL, ndim, numel);
    return 0;
}

//-- results of kernels -------------------------------------------------------------------------------------------

//-- More than one element may sit at one address: a stride of zero, or strides that do not nest.
static bool opdi_overlaps_itself(const opd_tensor *t) {
    const int64_t *sizes = t->dims, *strides = t->dims + t->ndim;
    int64_t reach = 0, last = -1;
    int i, k;
    if ((t->flags & OPDI_CONTIGUOUS) || t->numel < 2) { return false; }
    for (k = 0; k < t->ndim; k++) {               /* dims by growing stride: each must step over what is inside */
        int best = -1;
        for (i = 0; i < t->ndim; i++) {
            if (sizes[i] > 1 && (strides[i] > last || (strides[i] == last && i < 0)) && (best < 0 || strides[i] < strides[best])) { best = i; }
        }
        if (best < 0) { break; }
        for (i = 0; i < t->ndim; i++) {
            if (i != best && sizes[i] > 1 && strides[i] == strides[best]) { return true; }
        }
        if (strides[best] <= reach) { return true; }
        last = strides[best];
        reach += (sizes[best] - 1) * strides[best];
    }
    return false;
}

#define OPDI_OVERLAP_TEXT "unsupported operation: more than one element of the written-to tensor refers to a single memory location. " \
                          "Please clone() the tensor before performing the operation."

static bool opdi_shares_input(const opd_call *call, const opd_tensor *out) {
    int i, k;
    for (i = 0; i < call->op->nargs; i++) {
        const opd_value *v = &call->args[i];
        if (v->tag == OPD_TAG_TENSOR && v->u.t->storage == out->storage) { return true; }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
            if (v->u.tensors[k] && v->u.tensors[k]->storage == out->storage) { return true; }
        }
    }
    return false;
}

static bool opdi_has_sizes(const opd_tensor *t, const int64_t *sizes, int ndim) {
    return t->ndim == ndim && (ndim == 0 || memcmp(t->dims, sizes, (size_t)ndim * sizeof *sizes) == 0);
}

//-- The out= tensor or self, checked against what the kernel wants to write; a temporary where it cannot be written directly.
static opd_tensor *opdi_result_target(opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    opd_tensor *out = call->targets[i], *temp;
    opd_scalar_type have = (opd_scalar_type)out->dtype;
    if (have != dtype && !opd_can_cast(dtype, have)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "result type %s can't be cast to the desired output type %s", opd_dtype_cname(dtype), opd_dtype_cname(have));
        return NULL;
    }
    if (!opdi_has_sizes(out, sizes, ndim)) {
        if (call->inplace) {
            char a[256], b[256];
            (void)opd_fail(OPD_ERROR_SHAPE, "output with shape %s doesn't match the broadcast shape %s", opdi_sizes_text(out->dims, out->ndim, a, sizeof a),
                           opdi_sizes_text(sizes, ndim, b, sizeof b));
            return NULL;
        }
        if (opdi_resize(out, sizes, ndim)) { return NULL; }
    }
    if (opdi_overlaps_itself(out)) { (void)opd_fail(OPD_ERROR_ARGUMENT, OPDI_OVERLAP_TEXT); return NULL; }
    call->filled |= 1u << i;
    if (have == dtype && (call->elementwise || !opdi_shares_input(call, out))) { call->rets[i] = opd_value_tensor(out); return out; }
    temp = opdi_tensor_make(sizes, NULL, ndim, dtype, out->backend);
    if (!temp) { call->filled &= ~(1u << i); return NULL; }
    call->rets[i] = opd_value_tensor(temp);
    call->owned |= 1u << i;
    return temp;
}

opd_tensor *opd_result_strided(opd_call *call, int i, const int64_t *sizes, const int64_t *strides, int ndim, opd_scalar_type dtype,
                               opd_device device) {
    opd_tensor *t;
    if (OPDI_UNLIKELY(call->th->error != OPD_OK)) { return NULL; }
    if (OPDI_UNLIKELY(i < 0 || i >= call->op->nrets || (call->filled >> i & 1))) {
        (void)opd_fail(OPD_ERROR_KERNEL, "opd_result: result %d of %d %s", i, call->op->nrets, i < 0 || i >= call->op->nrets ? "does not exist" : "was given already");
        return NULL;
    }
    if (OPDI_UNLIKELY(!call->op->ret_tensor[i])) { (void)opdi_return_error(call, i, "Tensor"); return NULL; }
    if (call->targets) { return opdi_result_target(call, i, sizes, ndim, dtype); }
    t = opdi_tensor_make(sizes, strides, ndim, dtype, device.type);
    if (!t) { return NULL; }
    call->rets[i] = opd_value_tensor(t);
    call->filled |= 1u << i;
    call->owned |= 1u << i;
    return t;
}

//-- Where the results of a call live: the highest backend among its arguments, the CPU without any.
static opd_device opdi_call_device(const opd_call *call) {
    return opd_device_of(call->keys.backends ? (opd_backend)opdi_top_bit(call->keys.backends) : OPD_CPU, -1);
}

opd_tensor *opd_result(opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    return opd_result_strided(call, i, sizes, NULL, ndim, dtype, opdi_call_device(call));
}

//-- derived forms ------------------------------------------------------------------------------------------------

//-- The functional form's arguments out of a derived call's.  What the derived form lacks has its default; a dtype or
//-- device it lacks is the target's.
static int opdi_derived_args(const opd_call *call, const opdi_card *card, opd_tensor *target, opd_value *args) {
    const opd_op *base = card->base->op;
    int i;
    for (i = 0; i < base->nargs; i++) {
        const opdi_arg *a = &base->schema->args[i];
        int from = card->map[i];
        if (from >= 0) { args[i] = call->args[from]; }
        else if (strcmp(a->name, "dtype") == 0) { args[i] = opd_value_int(target->dtype); }
        else if (strcmp(a->name, "device") == 0) { args[i] = opd_value_device(opd_tensor_device(target)); }
        else { args[i] = a->has_default ? a->value : opd_value_none(); }
    }
    return 0;
}

//-- The tensors a derived call writes: self, or the out arguments in order.
static int opdi_derived_targets(const opd_call *call, const opdi_card *card, opd_tensor **targets) {
    uint64_t m = call->op->written_args;
    int n = 0;
    if (card->inplace) { targets[0] = call->args[0].u.t; return 1; }
    for (; m && n < OPDI_MAX_RETURNS; m &= m - 1) { targets[n++] = call->args[opdi_low_bit(m)].u.t; }
    return n;
}

//-- In-place and out= forms, every backend: the functional kernel runs with its results pointed at the targets; what it had
//-- to put into a temporary (another dtype, overlap) is copied over.
static int opdi_derived_kernel(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    opd_op *base = card->base->op;
    const opdi_table *table = OPDI_ACQUIRE(&base->table);
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor *targets[OPDI_MAX_RETURNS];
    opd_call c;
    int i, rc = 0;
    if (!table && !(table = opdi_table_make(base))) { return -1; }
    (void)opdi_derived_targets(call, card, targets);
    if (opdi_derived_args(call, card, targets[0], args)) { return -1; }
    c.op = base;
    c.args = args;
    c.rets = rets;
    c.keys = call->keys;
    c.slot = call->slot;
    c.targets = targets;
    c.inplace = card->inplace;
    c.elementwise = card->desc.vmap == opd_batch_pointwise;
    if (opdi_invoke(call->th, &c, &table->slots[c.slot])) { return -1; }
    for (i = 0; i < base->nrets && rc == 0; i++) {
        opd_tensor *got = rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
        if (got && got != targets[i]) {
            if (!opdi_has_sizes(targets[i], got->dims, got->ndim)) { rc = card->inplace ? 0 : opdi_resize(targets[i], got->dims, got->ndim); }
            if (rc == 0) { rc = opdi_copy(targets[i], got); }
        }
    }
    opdi_rets_drop(&c);
    for (i = 0; i < call->op->nrets && rc == 0; i++) { rc = opd_return_tensor(call, targets[i]); }
    return rc;
}

//-- The same above a composite form: compute, then copy_, which autograd sees.
static int opdi_derived_composite(opd_call *call) {
    static opd_op *copy;
    const opdi_card *card = (const opdi_card *)call->user;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS], pair[3];
    opd_tensor *targets[OPDI_MAX_RETURNS];
    int i, n = opdi_derived_targets(call, card, targets);
    if (!card->inplace && opd_call_requires_grad(call)) { return opdi_autograd_out_kernel(call); }
    if (opdi_derived_args(call, card, targets[0], args) || opd_call_all(card->base->op, rets, args, card->base->op->nargs)) { return -1; }
    for (i = 0; i < n && i < card->base->op->nrets; i++) {
        opd_tensor *got = rets[i].u.t;
        if (rets[i].tag != OPD_TAG_TENSOR) { continue; }
        if (!opdi_has_sizes(targets[i], got->dims, got->ndim)) {
            if (card->inplace) {
                char a[256], b[256];
                return opd_fail(OPD_ERROR_SHAPE, "output with shape %s doesn't match the broadcast shape %s", opdi_sizes_text(targets[i]->dims, targets[i]->ndim, a, sizeof a),
                                opdi_sizes_text(got->dims, got->ndim, b, sizeof b));
            }
            if (opdi_resize(targets[i], got->dims, got->ndim)) { return -1; }
        }
        if (!opd_can_cast((opd_scalar_type)got->dtype, (opd_scalar_type)targets[i]->dtype)) {
            return opd_fail(OPD_ERROR_DTYPE, "result type %s can't be cast to the desired output type %s", opd_dtype_cname((opd_scalar_type)got->dtype),
                            opd_dtype_cname((opd_scalar_type)targets[i]->dtype));
        }
        pair[0] = opd_value_tensor(targets[i]);
        pair[1] = opd_value_tensor(got);
        pair[2] = opd_value_bool(false);
        if (got != targets[i] && !opd_call_op(OPD_OP(&copy, "aten::copy_"), pair, 3)) { return -1; }
    }
    for (i = 0; i < call->op->nrets; i++) {
        if (opd_return_tensor(call, targets[i])) { return -1; }
    }
    return 0;
}

//-- At ADInplaceOrView: counts a write of every written argument once the operator below is done.
static int opdi_version_kernel(opd_call *call) {
    uint64_t m;
    int rc = opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AD_INPLACE_OR_VIEW)));
    for (m = call->op->written_args; m && rc == 0; m &= m - 1) {
        const opd_value *v = &call->args[opdi_low_bit(m)];
        int k;
        if (v->tag == OPD_TAG_TENSOR) { (void)OPDI_ADD(&v->u.t->storage->version, 1u); }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
            if (v->u.tensors[k]) { (void)OPDI_ADD(&v->u.tensors[k]->storage->version, 1u); }
        }
    }
    return rc;
}

OPDI_COLD_BEGIN

//  Printing: torch/_tensor_str.py with its default options

#define OPDI_PRINT_THRESHOLD 1000                 /* more elements than this are summarised */
#define OPDI_PRINT_EDGE 3                         /* elements kept at either end of a dimension */
#define OPDI_PRINT_LINE 80
#define OPDI_PRINT_TEXT 400                       /* bytes for one number: "%.4f" of the largest double has 315 */

enum { OPDI_PRINT_WHOLE = 0, OPDI_PRINT_FIXED, OPDI_PRINT_SCI, OPDI_PRINT_INT, OPDI_PRINT_BOOL };

/* How the numbers of a tensor, or the real or imaginary parts of a complex one, are written.  The first pass over the
   elements collects what is below `width`; floats that are zero or not finite do not count. */
typedef struct opdi_print_column {
    int mode;                    /* one of the above */
    int width;                   /* numbers are filled up to this on the left */
    bool any, fraction;          /* some number; some number that is not whole */
    double low, high;            /* least and greatest magnitude */
    int widths[3];               /* by mode, for floats */
} opdi_print_column;

typedef struct opdi_printer {
    const opd_tensor *t;
    char *buf;
    size_t cap, len;             /* len counts all characters, also those beyond cap */
    size_t line;                 /* value of len where the last line began */
    int64_t item;                /* bytes per element */
    int64_t part;                /* bytes from real to imaginary part */
    int ncolumns;                /* 2 for complex */
    bool summarize;
    opdi_print_column columns[2];
} opdi_printer;

static void opdi_put(opdi_printer *p, const char *text, size_t n) {
    if (p->len < p->cap) { memcpy(p->buf + p->len, text, OPDI_MIN(n, p->cap - p->len)); }
    p->len += n;
}

static void opdi_puts(opdi_printer *p, const char *text) { opdi_put(p, text, strlen(text)); }

static void opdi_put_spaces(opdi_printer *p, int n) {
    while (n-- > 0) { opdi_put(p, " ", 1); }
}

/* Ends the line `count` times and indents. */
static void opdi_put_line(opdi_printer *p, int count, int indent) {
    while (count-- > 0) { opdi_put(p, "\n", 1); }
    p->line = p->len;
    opdi_put_spaces(p, indent);
}

/* Writes a float as Python's format() does, which knows no locale and no sign of a nan.  Returns the length. */
static int opdi_print_float(double v, int mode, char *out /*[OPDI_PRINT_TEXT]*/) {
    int n, i, k;
    if (!isfinite(v)) {
        strcpy(out, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
        return (int)strlen(out);
    }
    if (mode == OPDI_PRINT_WHOLE) { return snprintf(out, OPDI_PRINT_TEXT, "%.0f.", v); }
    n = snprintf(out, OPDI_PRINT_TEXT, mode == OPDI_PRINT_SCI ? "%.4e" : "%.4f", v);
    for (i = 0; i < n && ((out[i] >= '0' && out[i] <= '9') || out[i] == '-'); i++) { }
    if (i >= n || out[i] == '.') { return n; }
    for (k = i + 1; k < n && (out[k] < '0' || out[k] > '9'); k++) { }      /* the locale's point, perhaps many bytes */
    out[i] = '.';
    memmove(out + i + 1, out + k, (size_t)(n - k) + 1);
    return n - (k - i - 1);
}

/* Writes a part of the element at `offset` and returns its length. */
static int opdi_print_number(const opdi_printer *p, int column, int64_t offset, char *out /*[OPDI_PRINT_TEXT]*/) {
    int mode = p->columns[column].mode;
    if (mode < OPDI_PRINT_INT) {
        return opdi_print_float(opdi_element_f64(p->t, offset + column * p->part), mode, out);
    }
    if (mode == OPDI_PRINT_INT) {
        return snprintf(out, OPDI_PRINT_TEXT, "%lld", (long long)opdi_element_i64(p->t, offset));
    }
    strcpy(out, opdi_element_i64(p->t, offset) ? "True" : "False");
    return (int)strlen(out);
}

/* First pass: takes one number into account. */
static void opdi_print_measure(opdi_printer *p, int column, int64_t offset) {
    opdi_print_column *c = &p->columns[column];
    char text[OPDI_PRINT_TEXT];
    double v, magnitude;
    int mode;
    if (c->mode >= OPDI_PRINT_INT) {
        c->width = OPDI_MAX(c->width, opdi_print_number(p, column, offset, text));
        return;
    }
    v = opdi_element_f64(p->t, offset + column * p->part);
    magnitude = fabs(v);
    if (!isfinite(v) || magnitude <= 0) { return; }
    c->low = c->any ? OPDI_MIN(c->low, magnitude) : magnitude;
    c->high = OPDI_MAX(c->high, magnitude);
    c->any = true;
    if (v < ceil(v)) { c->fraction = true; }
    for (mode = 0; mode < 3; mode++) {
        if (mode != OPDI_PRINT_SCI && c->high > 1e8) { continue; }         /* it will be SCI */
        c->widths[mode] = OPDI_MAX(c->widths[mode], opdi_print_float(v, mode, text));
    }
}

/* How many of n are left out after the first OPDI_PRINT_EDGE. */
static int64_t opdi_print_gap(const opdi_printer *p, int64_t n) {
    return p->summarize && n > 2 * OPDI_PRINT_EDGE ? n - 2 * OPDI_PRINT_EDGE : 0;
}

/* First pass over the elements shown.  As deep as there are dimensions: 64 at most. */
static void opdi_print_scan(opdi_printer *p, int dim, int64_t offset) {
    int64_t i, n, gap, step;
    int column;
    if (dim == p->t->ndim) {
        for (column = 0; column < p->ncolumns; column++) { opdi_print_measure(p, column, offset); }
        return;
    }
    n = opdi_sizes(p->t)[dim];
    step = opdi_strides(p->t)[dim] * p->item;
    gap = opdi_print_gap(p, n);
    for (i = 0; i < n; i++) {
        if (i == OPDI_PRINT_EDGE) { i += gap; }
        opdi_print_scan(p, dim + 1, offset + i * step);
    }
}

static void opdi_print_choose(opdi_print_column *c) {
    if (c->mode >= OPDI_PRINT_INT || !c->any) { return; }
    c->mode = c->fraction ? OPDI_PRINT_FIXED : OPDI_PRINT_WHOLE;
    if (c->high / c->low > 1000.0 || c->high > 1.0e8 || (c->fraction && c->low < 1.0e-4)) { c->mode = OPDI_PRINT_SCI; }
    c->width = c->widths[c->mode];
}

/* Second pass: one element.  A complex one is "1.+2.j": only the real part is filled up. */
static void opdi_print_element(opdi_printer *p, int64_t offset) {
    char text[OPDI_PRINT_TEXT];
    int n = opdi_print_number(p, 0, offset, text);
    opdi_put_spaces(p, p->columns[0].width - n);
    opdi_put(p, text, (size_t)n);
    if (p->ncolumns == 2) {
        n = opdi_print_number(p, 1, offset, text);
        if (text[0] != '-') { opdi_puts(p, "+"); }
        opdi_put(p, text, (size_t)n);
        opdi_puts(p, "j");
    }
}

/* Elements on a line of the last dimension. */
static int64_t opdi_print_per_line(const opdi_printer *p, int indent) {
    int length = p->columns[0].width + 2;
    if (p->ncolumns == 2) { length += p->columns[1].width + 1; }
    return OPDI_MAX(1, (OPDI_PRINT_LINE - indent) / length);
}

static void opdi_print_elements(opdi_printer *p, int dim, int64_t offset, int indent) {
    bool last = dim + 1 == p->t->ndim;
    int64_t i, n, gap, step, per_line, count = 0;
    if (dim == p->t->ndim) { opdi_print_element(p, offset); return; }
    n = opdi_sizes(p->t)[dim];
    step = opdi_strides(p->t)[dim] * p->item;
    gap = opdi_print_gap(p, n);
    per_line = last ? opdi_print_per_line(p, indent) : 1;
    opdi_puts(p, "[");
    for (i = 0; i < n; i++, count++) {
        if (count > 0) { opdi_puts(p, ","); }
        if (count > 0 && count % per_line == 0) {
            opdi_put_line(p, last ? 1 : p->t->ndim - dim - 1, indent + 1);
        } else if (count > 0) {
            opdi_puts(p, " ");
        }
        if (gap > 0 && count == OPDI_PRINT_EDGE) {
            opdi_puts(p, last ? " ..." : "...");
            i += gap - 1;
        } else {
            opdi_print_elements(p, dim + 1, offset + i * step, indent + 1);
        }
    }
    opdi_puts(p, "]");
}

/* Adds ", text", on a new line where it would not fit. */
static void opdi_print_suffix(opdi_printer *p, size_t *line_length, int indent, const char *text) {
    size_t n = strlen(text);
    opdi_puts(p, ",");
    if (*line_length + n + 2 > OPDI_PRINT_LINE) {
        opdi_put_line(p, 1, indent);
        *line_length = (size_t)indent + n;
    } else {
        opdi_puts(p, " ");
        *line_length += n + 2;
    }
    opdi_puts(p, text);
}

/* "size=(2, 3)", "size=(5,)", "size=()".  out holds all OPD_MAX_DIMS sizes of 20 digits. */
static void opdi_print_sizes(const opd_tensor *t, char *out /*[cap]*/, size_t cap) {
    size_t at = (size_t)snprintf(out, cap, "size=(");
    int i;
    for (i = 0; i < t->ndim && at < cap; i++) {
        at += (size_t)snprintf(out + at, cap - at, "%s%lld", i ? ", " : "", (long long)opdi_sizes(t)[i]);
    }
    if (at < cap) { (void)snprintf(out + at, cap - at, "%s", t->ndim == 1 ? ",)" : ")"); }
}

/* What follows the contents.  `shown`: the elements were written. */
static void opdi_print_suffixes(opdi_printer *p, size_t line_length, int indent, bool shown) {
    const opd_tensor *t = p->t;
    opd_scalar_type dtype = (opd_scalar_type)t->dtype;
    opd_device device = opd_tensor_device(t);
    const char *grad_fn = opd_tensor_grad_fn(t);
    char text[24 * OPD_MAX_DIMS], name[32];
    if (device.type != OPD_CPU) {
        (void)snprintf(text, sizeof(text), "device='%s'", opd_device_print(device, name, sizeof(name)));
        opdi_print_suffix(p, &line_length, indent, text);
    }
    if (!shown && (device.type != OPD_CPU || t->numel > 0 || t->ndim != 1)) {
        opdi_print_sizes(t, text, sizeof(text));
        opdi_print_suffix(p, &line_length, indent, text);
    }
    if (dtype != OPD_FLOAT32 && !(shown && (dtype == OPD_COMPLEX64 || dtype == OPD_INT64 || dtype == OPD_BOOL))) {
        (void)snprintf(text, sizeof(text), "dtype=torch.%s", opd_dtype_name(dtype));
        opdi_print_suffix(p, &line_length, indent, text);
    }
    if (grad_fn) {
        (void)snprintf(text, sizeof(text), "grad_fn=<%s>", grad_fn);
        opdi_print_suffix(p, &line_length, indent, text);
    } else if (opd_tensor_requires_grad(t)) {
        opdi_print_suffix(p, &line_length, indent, "requires_grad=True");
    }
}

static void opdi_print_contents(opdi_printer *p, int indent) {
    const opd_tensor *t = p->t;
    const opdi_dtype_info *info = opdi_dtype((opd_scalar_type)t->dtype);
    int i;
    p->item = info->size;
    p->part = info->size / 2;
    p->ncolumns = info->kind == OPDI_CLASS_COMPLEX ? 2 : 1;
    p->summarize = t->numel > OPDI_PRINT_THRESHOLD;
    for (i = 0; i < p->ncolumns; i++) {
        p->columns[i].mode = info->kind == OPDI_CLASS_INT ? OPDI_PRINT_INT
                           : info->kind == OPDI_CLASS_BOOL ? OPDI_PRINT_BOOL : OPDI_PRINT_WHOLE;
        p->columns[i].width = 1;
    }
    opdi_print_scan(p, 0, 0);
    for (i = 0; i < p->ncolumns; i++) { opdi_print_choose(&p->columns[i]); }
    opdi_print_elements(p, 0, 0, indent);
}

/* A tensor whose memory cannot be read here (meta, another device) is written as PyTorch writes meta tensors. */
OPD_API size_t opd_tensor_print(const opd_tensor *t, char *buf, size_t cap) {
    const int indent = 7;                                                  /* strlen("tensor(") */
    opdi_printer p;
    bool shown;
    memset(&p, 0, sizeof(p));
    p.t = t;
    p.buf = buf;
    p.cap = cap > 0 ? cap - 1 : 0;
    if (!t) {
        opdi_puts(&p, "None");
    } else {
        bool readable = opd_tensor_device(t).type == OPD_CPU;
        shown = readable && t->numel > 0 && t->data != NULL;
        opdi_puts(&p, "tensor(");
        if (shown) {
            opdi_print_contents(&p, indent);
        } else {
            opdi_puts(&p, readable && t->numel == 0 ? "[]" : "...");
        }
        opdi_print_suffixes(&p, p.len - p.line + 2, indent, shown);
        opdi_puts(&p, ")");
    }
    if (cap > 0) { buf[OPDI_MIN(p.len, p.cap)] = 0; }
    return p.len;
}

OPD_API void opd_print(const opd_tensor *t) {
    char small[2048], *text = small;
    size_t n = opd_tensor_print(t, small, sizeof(small));
    if (n >= sizeof(small)) {
        text = (char *)opdi_alloc(n + 1);
        if (!text) { return; }
        (void)opd_tensor_print(t, text, n + 1);
    }
    (void)fwrite(text, 1, n, stdout);
    (void)fputc('\n', stdout);
    if (text != small) { opdi_free(text, n + 1); }
}

OPDI_COLD_END

//----------------------------------------------------------------------------------------------------------------------
//  >>autograd   nodes, the generic kernels, the engine, grad modes
//
//  One kernel at the Autograd key serves every operator that has a formula: it calls the operator below, saves what the
//  card names and links a node.  The engine walks nodes from the last to the first.  Formulas use public operators.  Knows
//  cards and tensors; no operator by name but add, sum and copies, through the dispatcher.
//----------------------------------------------------------------------------------------------------------------------

/* Where a gradient goes: a node's input, or (bit 0 set) a leaf.  0: nobody wants it. */
typedef struct opdi_edge { uintptr_t vertex; uint32_t nr, spare; } opdi_edge;

/* One block: the struct, edges, kept arguments, saved results, and for each forward result dtype, backend, ndim, sizes.
   A kept tensor's version when it was saved is in its value's n. */
struct opd_node {
    int32_t refs;
    uint16_t nedges;
    uint8_t nkept, nresults;                      /* opd_values that follow the edges */
    const opdi_derivative *formula;
    uint64_t sequence;
    struct opdi_task *task;                       /* the backward at work here; in the list of the dead: the next */
    uint32_t bytes;
    uint8_t noutputs;
    bool freed, has_saved;
    uint8_t spare;
};
static inline opdi_edge *opdi_edges(const opd_node *n) { return (opdi_edge *)(uintptr_t)(n + 1); }
static inline opd_value *opdi_kept(const opd_node *n) { return (opd_value *)(void *)(opdi_edges(n) + n->nedges); }
static inline opd_value *opdi_saved_results(const opd_node *n) { return opdi_kept(n) + n->nkept; }
static inline int64_t *opdi_node_metas(const opd_node *n) { return (int64_t *)(void *)(opdi_saved_results(n) + n->nresults); }

#define OPDI_LEAF ((uintptr_t)1)
static inline opd_node *opdi_edge_node(uintptr_t v) { return (opd_node *)v; }
static inline opd_tensor *opdi_edge_leaf(uintptr_t v) { return (opd_tensor *)(v & ~OPDI_LEAF); }

//-- saved results ------------------------------------------------------------------------------------------------
//
//  A node that saves its own result would make a cycle (result -> node -> result).  The result is marked
//  OPDI_SAVED_BY_OWN; when its node is the only holder left it lets go of the node (OPDI_WEAK_NODE), and takes hold again
//  when somebody retains it.  References to marked tensors change under one lock; unmarked ones never see it.

static opdi_mutex opdi_own_lock = OPDI_MUTEX_INIT;

OPDI_NOINLINE static void opdi_own_retain(opd_tensor *t) {
    opdi_lock(&opdi_own_lock);
    (void)OPDI_ADD(&t->refs, 1);
    if (t->flags & OPDI_WEAK_NODE) {
        OPDI_STORE(&t->flags, (uint8_t)(t->flags & ~OPDI_WEAK_NODE));
        (void)OPDI_ADD(&t->grad_fn->refs, 1);
    }
    opdi_unlock(&opdi_own_lock);
}

//-- True when the last reference is gone.
OPDI_NOINLINE static bool opdi_own_drop(opd_tensor *t) {
    opd_node *node = NULL;
    int32_t left;
    opdi_lock(&opdi_own_lock);
    left = OPDI_SUB(&t->refs, 1);
    if (left == 1 && (t->flags & OPDI_SAVED_BY_OWN) && !(t->flags & OPDI_WEAK_NODE) && t->grad_fn) {
        OPDI_STORE(&t->flags, (uint8_t)(t->flags | OPDI_WEAK_NODE));
        node = t->grad_fn;
    }
    opdi_unlock(&opdi_own_lock);
    if (node) { opdi_node_release(node); }
    return left == 0;
}

//-- The node lets go of its own result.
static void opdi_own_forget(opd_tensor *t) {
    int32_t left;
    opdi_lock(&opdi_own_lock);
    OPDI_STORE(&t->flags, (uint8_t)(t->flags & ~OPDI_SAVED_BY_OWN));
    left = OPDI_SUB(&t->refs, 1);
    opdi_unlock(&opdi_own_lock);
    if (left == 0) { opdi_tensor_free(t); }
}

//-- nodes --------------------------------------------------------------------------------------------------------

static OPDI_TLS opd_node *opdi_dead;              /* nodes to free: a list, so that a long chain is freed without recursion */
static OPDI_TLS bool opdi_reaping;

//-- Frees memory that a kept value points to, and drops kept tensors.
static void opdi_kept_drop(opd_value *v, bool own) {
    int32_t k;
    if (v->tag == OPD_TAG_TENSOR) {
        if (own) { opdi_own_forget(v->u.t); } else { opdi_drop(v->u.t); }
    } else if (v->tag == OPD_TAG_TENSORS && v->u.tensors) {
        for (k = 0; k < v->n; k++) {
            if (v->u.tensors[k]) { opdi_drop(v->u.tensors[k]); }
        }
        opdi_free((void *)(uintptr_t)v->u.tensors, (size_t)v->n * (sizeof(opd_tensor *) + sizeof(uint32_t)));
    }
}

static size_t opdi_kept_bytes(const opd_value *v) {
    switch (v->tag) {
    case OPD_TAG_INTS: return (size_t)v->n * sizeof(int64_t);
    case OPD_TAG_FLOATS: return (size_t)v->n * sizeof(double);
    case OPD_TAG_BOOLS: return (size_t)v->n;
    case OPD_TAG_LIST: return (size_t)v->n * sizeof(opd_value);
    case OPD_TAG_COMPLEX: return 2 * sizeof(double);
    case OPD_TAG_STR: return (size_t)v->n;        /* n: length with the zero, as kept */
    default: return 0;
    }
}

//-- Drops saved tensors; list lengths and plain values stay.
static void opdi_node_free_saved(opd_node *n) {
    opd_value *v = opdi_kept(n);
    int i;
    for (i = 0; i < n->nkept + n->nresults; i++) {
        opd_value old = v[i];
        if (old.tag == OPD_TAG_TENSOR) { v[i] = opd_value_none(); }
        else if (old.tag == OPD_TAG_TENSORS) { v[i].u.tensors = NULL; }
        else { continue; }
        opdi_kept_drop(&old, i >= n->nkept);
    }
    if (n->has_saved) { n->freed = true; }
}

static void opdi_node_destroy(opd_node *n) {
    opdi_edge *e = opdi_edges(n);
    opd_value *v = opdi_kept(n);
    int i;
    opdi_node_free_saved(n);
    for (i = 0; i < n->nkept; i++) {
        size_t bytes = opdi_kept_bytes(&v[i]);
        if (bytes) { opdi_free(v[i].u.object, bytes); }
    }
    for (i = 0; i < n->nedges; i++) {
        if (e[i].vertex & OPDI_LEAF) { opdi_drop(opdi_edge_leaf(e[i].vertex)); }
        else if (e[i].vertex) { opdi_node_release(opdi_edge_node(e[i].vertex)); }
    }
    opdi_free(n, n->bytes);
}

static void opdi_node_release(opd_node *node) {
    if (OPDI_ACQUIRE(&node->refs) != 1 && OPDI_SUB(&node->refs, 1) != 0) { return; }
    node->task = (struct opdi_task *)(void *)opdi_dead;
    opdi_dead = node;
    if (opdi_reaping) { return; }
    opdi_reaping = true;
    while (opdi_dead) {
        opd_node *n = opdi_dead;
        opdi_dead = (opd_node *)(void *)n->task;
        opdi_node_destroy(n);
    }
    opdi_reaping = false;
}

static inline void opdi_edge_to(opdi_edge *e, opd_tensor *t) {
    e->vertex = 0;
    e->nr = e->spare = 0;
    if (!t || !(t->flags & OPDI_REQUIRES_GRAD)) { return; }
    if (t->grad_fn) {
        (void)OPDI_ADD(&t->grad_fn->refs, 1);
        e->vertex = (uintptr_t)t->grad_fn;
        e->nr = t->output_nr;
    } else {
        opdi_retain(t);
        e->vertex = (uintptr_t)t | OPDI_LEAF;
    }
}

//-- Room for everything; edges and values empty.  One reference.
static opd_node *opdi_node_make(const opdi_derivative *formula, int nedges, int nkept, int nresults, opd_tensor *const *outs, int nouts) {
    opdi_thread *th = opdi_self();
    size_t bytes = sizeof(opd_node) + (size_t)nedges * sizeof(opdi_edge) + (size_t)(nkept + nresults) * sizeof(opd_value);
    opd_node *n;
    int64_t *meta;
    int i, k;
    for (i = 0; i < nouts; i++) { bytes += sizeof(int64_t) * (size_t)(1 + (outs[i] ? outs[i]->ndim : 0)); }
    if (nedges > 60000 || bytes > UINT32_MAX) { (void)opd_fail(OPD_ERROR_AUTOGRAD, "%s: too many tensors for one node", formula->name); return NULL; }
    n = (opd_node *)opdi_alloc(bytes);
    if (!n) { return NULL; }
    memset(n, 0, sizeof *n + (size_t)nedges * sizeof(opdi_edge) + (size_t)(nkept + nresults) * sizeof(opd_value));
    n->refs = 1;
    n->nedges = (uint16_t)nedges;
    n->nkept = (uint8_t)nkept;
    n->nresults = (uint8_t)nresults;
    n->formula = formula;
    n->sequence = th->sequence++;
    n->bytes = (uint32_t)bytes;
    n->noutputs = (uint8_t)nouts;
    meta = opdi_node_metas(n);
    for (i = 0; i < nouts; i++) {
        const opd_tensor *t = outs[i];
        *meta++ = t ? (int64_t)(uint8_t)t->dtype | (int64_t)t->backend << 8 | (int64_t)t->ndim << 16 : -1;
        for (k = 0; t && k < t->ndim; k++) { *meta++ = t->dims[k]; }
    }
    return n;
}

//-- Dtype, backend and sizes of a node's forward result nr; NULL when it was undefined.
static const int64_t *opdi_node_meta(const opd_node *n, uint32_t nr) {
    const int64_t *m = opdi_node_metas(n);
    for (; nr > 0; nr--) { m += 1 + (*m < 0 ? 0 : *m >> 16); }
    return *m < 0 ? NULL : m;
}

static opd_value opdi_keep_tensor(opd_tensor *t) {
    opd_value v = opd_value_tensor(t);
    opdi_retain(t);
    v.n = (int32_t)OPDI_LOAD(&t->storage->version);
    return v;
}

//-- Copies an argument into a node: tensors are retained with their version (dropped when save is false), memory copied.
static int opdi_keep_value(opd_value *out, const opd_value *v, bool save) {
    size_t bytes;
    int32_t k;
    if (v->tag == OPD_TAG_TENSOR) {
        *out = save ? opdi_keep_tensor(v->u.t) : opd_value_none();
        return 0;
    }
    *out = *v;
    if (v->tag == OPD_TAG_TENSORS) {              /* the versions stand behind the pointers */
        opd_tensor **list;
        uint32_t *versions;
        out->u.tensors = NULL;
        if (!save || v->n == 0) { return 0; }
        list = (opd_tensor **)opdi_alloc((size_t)v->n * (sizeof *list + sizeof *versions));
        if (!list) { out->tag = OPD_TAG_NONE; return -1; }
        versions = (uint32_t *)(void *)(list + v->n);
        for (k = 0; k < v->n; k++) {
            list[k] = v->u.tensors[k];
            versions[k] = list[k] ? OPDI_LOAD(&list[k]->storage->version) : 0;
            if (list[k]) { opdi_retain(list[k]); }
        }
        out->u.tensors = list;
        return 0;
    }
    if (v->tag == OPD_TAG_STR) { out->n = (int32_t)strlen(v->u.s) + 1; }
    bytes = opdi_kept_bytes(out);
    if (bytes) {
        out->u.object = opdi_alloc(bytes);
        if (!out->u.object) { *out = opd_value_none(); return -1; }
        memcpy(out->u.object, v->u.object, bytes);
    }
    return 0;
}

//-- recording ----------------------------------------------------------------------------------------------------

bool opd_grad_enabled(void) { return !opdi_self()->state.no_grad; }
bool opd_grad_set(bool on) {
    opdi_thread *th = opdi_self();
    bool was = !th->state.no_grad;
    th->state.no_grad = !on;
    return was;
}

bool opd_call_requires_grad(const opd_call *call) {
    opdi_union u;
    if (call->th->state.no_grad || opdi_unite_args(&u, call->op, call->args) < 0) { return false; }
    return (u.flags & OPDI_REQUIRES_GRAD) != 0;
}

//-- Which arguments a node keeps: what is no tensor, lists (for their length), and what the card saves.
static uint64_t opdi_kept_mask(const opdi_card *card) {
    const opd_op *op = card->op;
    uint64_t all = op->nargs == 64 ? ~(uint64_t)0 : ((uint64_t)1 << op->nargs) - 1;
    return (all & ~op->tensor_args) | card->save_args;
}
static int opdi_popcount(uint64_t x) {
    int n = 0;
    for (; x; x &= x - 1) { n++; }
    return n;
}

static bool opdi_arg_requires_grad(const opd_value *v) {
    int32_t k;
    if (v->tag == OPD_TAG_TENSOR) { return (v->u.t->flags & OPDI_REQUIRES_GRAD) != 0; }
    for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
        if (v->u.tensors[k] && (v->u.tensors[k]->flags & OPDI_REQUIRES_GRAD)) { return true; }
    }
    return false;
}

static int opdi_count_edges(const opd_op *op, const opd_value *args) {
    int n = opdi_popcount(op->tensor_args);
    uint64_t m;
    for (m = op->list_args; m; m &= m - 1) {
        const opd_value *v = &args[opdi_low_bit(m)];
        n += v->tag == OPD_TAG_TENSORS ? v->n : 0;
    }
    return n;
}

//-- Edges in schema order, lists flattened.
static void opdi_link_edges(opd_node *n, const opd_op *op, const opd_value *args) {
    opdi_edge *e = opdi_edges(n);
    uint64_t m;
    for (m = op->tensor_args | op->list_args; m; m &= m - 1) {
        int i = opdi_low_bit(m), k;
        const opd_value *v = &args[i];
        if (op->tensor_args >> i & 1) { opdi_edge_to(e++, v->tag == OPD_TAG_TENSOR ? v->u.t : NULL); }
        else if (v->tag == OPD_TAG_TENSORS) {
            for (k = 0; k < v->n; k++) { opdi_edge_to(e++, v->u.tensors[k]); }
        }
    }
}

static int opdi_save_args(opd_node *n, const opdi_card *card, const opd_value *args) {
    opd_value *kept = opdi_kept(n);
    uint64_t m;
    for (m = opdi_kept_mask(card); m; m &= m - 1) {
        int i = opdi_low_bit(m), when = card->save_if[i];
        bool save = (card->save_args >> i & 1) && (when < 0 || opdi_arg_requires_grad(&args[when]));
        if (opdi_keep_value(kept, &args[i], save)) { return -1; }
        if (save && (kept->tag == OPD_TAG_TENSOR || kept->tag == OPD_TAG_TENSORS)) { n->has_saved = true; }
        kept++;
    }
    return 0;
}

//-- The result tensors of a call, flat, into outs; -1 when there are too many.
static int opdi_flat_results(const opd_call *call, opd_tensor **outs, int cap) {
    int n = 0, i;
    int32_t k;
    for (i = 0; i < call->op->nrets; i++) {
        const opd_value *v = &call->rets[i];
        for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : 1); k++) {
            if (n == cap) { return opd_fail(OPD_ERROR_AUTOGRAD, "more than %d results in one recorded call", cap); }
            outs[n++] = v->tag == OPD_TAG_TENSORS ? v->u.tensors[k] : v->tag == OPD_TAG_TENSOR ? v->u.t : NULL;
        }
    }
    return n;
}

//-- Ties a result to a node; takes a reference for it.
static void opdi_attach(opd_tensor *t, opd_node *n, int nr) {
    if (!t || !(opd_dtype_is_floating((opd_scalar_type)t->dtype) || opd_dtype_is_complex((opd_scalar_type)t->dtype))) { return; }
    (void)OPDI_ADD(&n->refs, 1);
    t->grad_fn = n;
    t->output_nr = (uint32_t)nr;
    t->flags |= OPDI_REQUIRES_GRAD;
}

//-- A result that is one of the arguments (an operator that returns its input) becomes a tensor of its own.
static int opdi_unalias_results(opd_call *call) {
    int i, j;
    for (i = 0; i < call->op->nrets; i++) {
        opd_tensor *t = call->rets[i].tag == OPD_TAG_TENSOR ? call->rets[i].u.t : NULL, *v;
        for (j = 0; t && j < call->op->nargs; j++) {
            if (call->args[j].tag == OPD_TAG_TENSOR && call->args[j].u.t == t) { break; }
        }
        if (!t || j == call->op->nargs) { continue; }
        v = opdi_tensor_on(t->storage, t->data, t->dims, t->dims + t->ndim, t->ndim, (opd_scalar_type)t->dtype, t->backend);
        if (!v) { return -1; }
        (void)OPDI_ADD(&t->storage->refs, 1);
        v->flags |= OPDI_IS_VIEW;
        if (call->owned >> i & 1) { opdi_drop(t); }
        call->rets[i].u.t = v;
        call->owned |= 1u << i;
    }
    return 0;
}

#define OPDI_MAX_OUTPUTS 255
//-- After the call below: makes the node and ties the results to it.
static int opdi_record(opd_call *call, const opdi_card *card, const opdi_derivative *formula, const opd_value *args) {
    opd_tensor *outs[OPDI_MAX_OUTPUTS];
    const opd_op *op = call->op;
    opd_node *n;
    int nouts = opdi_flat_results(call, outs, OPDI_MAX_OUTPUTS), i, r = 0;
    if (nouts < 0) { return -1; }
    n = opdi_node_make(formula, opdi_count_edges(op, args), opdi_popcount(opdi_kept_mask(card)), opdi_popcount(card->save_results), outs, nouts);
    if (!n) { return -1; }
    opdi_link_edges(n, op, args);
    if (opdi_save_args(n, card, args)) { opdi_node_release(n); return -1; }
    for (i = 0; i < nouts; i++) { opdi_attach(outs[i], n, i); }
    for (i = 0; i < op->nrets; i++) {
        opd_tensor *t = call->rets[i].tag == OPD_TAG_TENSOR ? call->rets[i].u.t : NULL;
        int when = card->save_result_if[i];
        if (!(card->save_results >> i & 1)) { continue; }
        if (t && (when < 0 || opdi_arg_requires_grad(&args[when]))) {
            opdi_saved_results(n)[r] = opdi_keep_tensor(t);
            if (t->grad_fn == n) { t->flags |= OPDI_SAVED_BY_OWN; }
            n->has_saved = true;
        }
        r++;
    }
    opdi_node_release(n);
    return 0;
}

static inline int opdi_below_autograd(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}

//-- The kernel at Autograd of every operator that has a formula.
static int opdi_autograd_kernel(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    if (!opd_call_requires_grad(call)) { return opdi_below_autograd(call); }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_below_autograd(call)) { return -1; }
    if (card->desc.backward == opd_not_differentiable) { return 0; }
    if (opdi_unalias_results(call)) { return -1; }
    return opdi_record(call, card, &card->formula, call->args);
}

static opdi_card *opdi_bare_card(opd_op *op);

//-- The kernel at Autograd where nothing is registered: an operator that would need a formula gets a node that says so when
//-- backward comes to it.
static int opdi_autograd_fallback(opd_call *call) {
    opdi_card *card = call->op->card;
    if (!opd_call_requires_grad(call)) { return opdi_below_autograd(call); }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_below_autograd(call)) { return -1; }
    if (!card && !(card = opdi_bare_card(call->op))) { return -1; }
    if (call->op->written_args) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes its arguments and has no derivative formula, but one of them requires grad; register a "
                        "formula, or say OPD_NOT_DIFFERENTIABLE", call->op->name);
    }
    if (opdi_unalias_results(call)) { return -1; }
    return opdi_record(call, card, &card->missing, call->args);
}

//-- out= forms do not record.
static int opdi_autograd_out_kernel(opd_call *call) {
    if (!opd_call_requires_grad(call)) { return opdi_below_autograd(call); }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
                    "requires grad.", call->op->schema->name);
}

//-- What forbids writing into self while grad mode is on.
static int opdi_check_inplace(const opd_call *call, opd_tensor *self) {
    if ((self->flags & OPDI_REQUIRES_GRAD) && !self->grad_fn) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "a leaf Variable that requires grad is being used in an in-place operation.");
    }
    if (self->flags & OPDI_IS_VIEW) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "an in-place operation on a view cannot be recorded by autograd in this version; write the result out of "
                        "place (%s)", call->op->name);
    }
    if (OPDI_LOAD(&self->storage->viewed) && OPDI_LOAD(&self->storage->refs) > 1) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "an in-place operation on a tensor that has views cannot be recorded by autograd in this version; write the "
                        "result out of place (%s)", call->op->name);
    }
    return 0;
}

//-- The value that self had, for a formula that reads it: a copy with self's history.
static opd_tensor *opdi_inplace_original(opd_tensor *self) {
    opd_tensor *t = opdi_tensor_make(self->dims, NULL, self->ndim, (opd_scalar_type)self->dtype, self->backend);
    if (!t || opdi_copy(t, self)) { opd_release(t); return NULL; }
    if (self->grad_fn) {
        (void)OPDI_ADD(&self->grad_fn->refs, 1);
        t->grad_fn = self->grad_fn;
        t->output_nr = self->output_nr;
        t->flags |= OPDI_REQUIRES_GRAD;
    }
    return opdi_own(t);
}

//-- self leaves its old node: if that one has saved it as its own result, the saved value is void from now on.
static void opdi_leave_node(opd_tensor *self) {
    opd_node *old = self->grad_fn;
    if (!old) { return; }
    if (self->flags & OPDI_SAVED_BY_OWN) {
        opd_value *r = opdi_saved_results(old);
        int i;
        for (i = 0; i < old->nresults; i++) {
            if (r[i].tag == OPD_TAG_TENSOR && r[i].u.t == self) { r[i] = opd_value_none(); r[i].n = 1; opdi_own_forget(self); }
        }
    }
    self->grad_fn = NULL;
    opdi_node_release(old);
}

//-- Gives self a new node whose edges are those of the arguments before the write.
static int opdi_rebase(opd_call *call, const opdi_card *card, opd_tensor *self, const opd_value *args) {
    opd_node *n;
    int i, r = 0;
    n = opdi_node_make(&card->formula, opdi_count_edges(call->op, args), opdi_popcount(opdi_kept_mask(card)), opdi_popcount(card->save_results), &self, 1);
    if (!n) { return -1; }
    opdi_link_edges(n, call->op, args);
    if (opdi_save_args(n, card, args)) { opdi_node_release(n); return -1; }
    opdi_leave_node(self);
    opdi_attach(self, n, 0);
    for (i = 0; i < call->op->nrets; i++) {
        int when = card->save_result_if[i];
        if (!(card->save_results >> i & 1)) { continue; }
        if (when >= 0 && !opdi_arg_requires_grad(&args[when])) { r++; continue; }
        opdi_saved_results(n)[r++] = opdi_keep_tensor(self);
        self->flags |= OPDI_SAVED_BY_OWN;
        n->has_saved = true;
    }
    opdi_node_release(n);
    return 0;
}

//-- The kernel at Autograd of operators that write self: the functional formula, tied to self afterwards.
static int opdi_autograd_inplace_kernel(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *self = call->args[0].tag == OPD_TAG_TENSOR ? call->args[0].u.t : NULL;
    if (!opd_call_requires_grad(call) || !self) { return opdi_below_autograd(call); }
    if (opdi_check_inplace(call, self)) { return -1; }
    if (!card->desc.backward || card->desc.backward == opd_not_differentiable) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s is not differentiable, but one of its arguments requires grad", call->op->name);
    }
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    if ((card->save_args & 1) && (card->save_if[0] < 0 || opdi_arg_requires_grad(&args[card->save_if[0]]))) {
        args[0].u.t = opdi_inplace_original(self);
        if (!args[0].u.t) { return -1; }
    }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_below_autograd(call)) { return -1; }
    return opdi_rebase(call, card, self, args);
}

//-- A node recorded by hand: its formula stands behind it in the same kind of block.
typedef struct opdi_hand { opdi_derivative formula; struct opdi_hand *next; char name[64]; } opdi_hand;
static opdi_hand *opdi_hands;                     /* one for each (name, function): few, kept */

static const opdi_derivative *opdi_hand_formula(const char *name, opd_backward_fn fn) {
    opdi_hand *h;
    opdi_lock(&opdi_registry.lock);
    for (h = opdi_hands; h && (h->formula.fn != fn || strcmp(h->name, name) != 0); h = h->next) { }
    if (!h) {
        h = (opdi_hand *)opdi_alloc(sizeof *h);
        if (h) {
            memset(h, 0, sizeof *h);
            snprintf(h->name, sizeof h->name, "%s", name);
            h->formula.name = h->name;
            h->formula.fn = fn;
            h->next = opdi_hands;
            opdi_hands = h;
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return h ? &h->formula : NULL;
}

int opd_autograd_record(const char *name, opd_backward_fn backward, opd_tensor *const *inputs, int ninputs, opd_tensor *const *saved, int nsaved,
                        const opd_value *values, int nvalues, opd_tensor *const *results, int nresults) {
    const opdi_derivative *formula;
    opd_node *n;
    bool wanted = false;
    int i;
    if (!opd_ok()) { return -1; }
    if (!name || !backward || ninputs < 0 || nsaved < 0 || nvalues < 0 || nsaved + nvalues > 255 || nresults < 1 || nresults > OPDI_MAX_OUTPUTS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_record: a name, a formula and 1 to %d results are needed", OPDI_MAX_OUTPUTS);
    }
    for (i = 0; i < ninputs; i++) { wanted = wanted || (inputs[i] && (inputs[i]->flags & OPDI_REQUIRES_GRAD)); }
    if (!wanted || opdi_self()->state.no_grad) { return 0; }
    for (i = 0; i < nresults; i++) {
        if (results[i] && (results[i]->flags & OPDI_REQUIRES_GRAD)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "opd_autograd_record: result %d has a history already; call the operator below the Autograd keys", i);
        }
    }
    formula = opdi_hand_formula(name, backward);
    n = formula ? opdi_node_make(formula, ninputs, nsaved + nvalues, 0, results, nresults) : NULL;
    if (!n) { return -1; }
    for (i = 0; i < ninputs; i++) { opdi_edge_to(&opdi_edges(n)[i], inputs[i]); }
    for (i = 0; i < nsaved; i++) {
        opdi_kept(n)[i] = saved[i] ? opdi_keep_tensor(saved[i]) : opd_value_none();
        n->has_saved = true;
    }
    for (i = 0; i < nvalues; i++) {
        if (opdi_keep_value(&opdi_kept(n)[nsaved + i], &values[i], true)) { opdi_node_release(n); return -1; }
    }
    for (i = 0; i < nresults; i++) { opdi_attach(results[i], n, i); }
    opdi_node_release(n);
    return 0;
}

//-- formulas -----------------------------------------------------------------------------------------------------

struct opd_backward_call {
    opd_node *node;
    opd_tensor **grads;                           /* one for each forward result; NULL: undefined */
    opd_tensor **out;                             /* one for each edge, references */
};

static int opdi_missing_formula(opd_backward_call *bw) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "derivative for %s is not implemented; give it a formula (.backward), a composite kernel, or "
                    "OPD_NOT_DIFFERENTIABLE", bw->node->formula->card->op->name);
}

//-- A card for an operator that was defined without one: its nodes only say that a formula is missing.  Kept.
static opdi_card *opdi_bare_card(opd_op *op) {
    opdi_card *card = op->bare;
    if (card) { return card; }
    card = (opdi_card *)opdi_alloc(sizeof *card);
    if (!card) { return NULL; }
    memset(card, 0, sizeof *card);
    opdi_card_init(card, op);
    opdi_lock(&opdi_registry.lock);
    if (!op->bare) { op->bare = card; card = NULL; }
    opdi_unlock(&opdi_registry.lock);
    if (card) { opdi_free(card, sizeof *card); }
    return op->bare;
}

static const char *opdi_tensor_kind(const opd_tensor *t, char *buf, size_t cap) {
    char sizes[200];
    snprintf(buf, cap, "[%s %s]", opd_dtype_cname((opd_scalar_type)t->dtype), opdi_sizes_text(t->dims, t->ndim, sizes, sizeof sizes));
    return buf;
}

//-- A saved tensor, if nobody wrote to it since.
static opd_tensor *opdi_unpack(const opd_node *node, const opd_value *v, uint32_t version) {
    char kind[256];
    uint32_t now;
    (void)node;
    if (v->tag != OPD_TAG_TENSOR) {
        if (v->n == 1) { (void)opd_fail(OPD_ERROR_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an inplace operation: "
                                        "the result of %s was written to after it was saved", node->formula->name); }
        return NULL;
    }
    now = OPDI_LOAD(&v->u.t->storage->version);
    if (now != version) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an inplace operation: %s, which is output "
                       "%u of %s, is at version %u; expected version %u instead.", opdi_tensor_kind(v->u.t, kind, sizeof kind), (unsigned)v->u.t->output_nr,
                       v->u.t->grad_fn ? v->u.t->grad_fn->formula->name : "a leaf", (unsigned)now, (unsigned)version);
        return NULL;
    }
    return v->u.t;
}

//-- Where argument i is kept; NULL when it is not.
static const opd_value *opdi_bw_kept(const opd_backward_call *bw, int i) {
    const opdi_card *card = bw->node->formula->card;
    uint64_t mask;
    if (!card) { return i >= 0 && i < bw->node->nkept ? &opdi_kept(bw->node)[i] : NULL; }
    mask = opdi_kept_mask(card);
    if (i < 0 || i >= card->op->nargs || !(mask >> i & 1)) { return NULL; }
    return &opdi_kept(bw->node)[opdi_popcount(mask & (((uint64_t)1 << i) - 1))];
}

//-- Edge of element k of argument i; -1 when there is none.
static int opdi_bw_edge(const opd_backward_call *bw, int i, int k) {
    const opdi_card *card = bw->node->formula->card;
    int e = 0, j;
    if (!card) { return i >= 0 && i < bw->node->nedges ? i : -1; }
    for (j = 0; j <= i && j < card->op->nargs; j++) {
        bool list = (card->op->list_args >> j & 1) != 0, tensor = (card->op->tensor_args >> j & 1) != 0;
        const opd_value *v = list ? opdi_bw_kept(bw, j) : NULL;
        int n = list ? (v && v->tag == OPD_TAG_TENSORS ? v->n : 0) : tensor ? 1 : 0;
        if (j == i) { return k >= 0 && k < n ? e + k : -1; }
        e += n;
    }
    return -1;
}

opd_tensor *opd_bw_grad(opd_backward_call *bw, int i) { return i >= 0 && i < bw->node->noutputs ? bw->grads[i] : NULL; }

opd_tensor *opd_bw_tensor(opd_backward_call *bw, int i) {
    const opd_value *v = opdi_bw_kept(bw, i);
    return v && v->tag == OPD_TAG_TENSOR ? opdi_unpack(bw->node, v, (uint32_t)v->n) : NULL;
}

opd_tensors opd_bw_tensors(opd_backward_call *bw, int i) {
    const opd_value *v = opdi_bw_kept(bw, i);
    const uint32_t *versions;
    int32_t k;
    if (!v || v->tag != OPD_TAG_TENSORS || !v->u.tensors) { return opd_tensors_of(NULL, 0); }
    versions = (const uint32_t *)(const void *)(v->u.tensors + v->n);
    for (k = 0; k < v->n; k++) {
        opd_value one = opd_value_tensor(v->u.tensors[k]);
        if (v->u.tensors[k] && !opdi_unpack(bw->node, &one, versions[k])) { return opd_tensors_of(NULL, 0); }
    }
    return opd_tensors_of(v->u.tensors, v->n);
}

opd_value opd_bw_value(opd_backward_call *bw, int i) {
    const opd_value *v = opdi_bw_kept(bw, i);
    return v ? *v : opd_value_none();
}

opd_tensor *opd_bw_result(opd_backward_call *bw, int i) {
    const opdi_card *card = bw->node->formula->card;
    const opd_value *v;
    if (!card || i < 0 || i > 31 || !(card->save_results >> i & 1)) { return NULL; }
    v = &opdi_saved_results(bw->node)[opdi_popcount(card->save_results & ((1u << i) - 1))];
    return opdi_unpack(bw->node, v, (uint32_t)v->n);
}

bool opd_bw_needs_at(const opd_backward_call *bw, int i, int k) {
    int e = opdi_bw_edge(bw, i, k);
    return e >= 0 && opdi_edges(bw->node)[e].vertex != 0;
}
bool opd_bw_needs(const opd_backward_call *bw, int i) {
    int k;
    for (k = 0; opdi_bw_edge(bw, i, k) >= 0; k++) {
        if (opd_bw_needs_at(bw, i, k)) { return true; }
        if (!bw->node->formula->card) { break; }
    }
    return false;
}

//-- What the other end of an edge looks like: sizes, number of dims, dtype; false when nobody wants the gradient.
static bool opdi_edge_meta(const opdi_edge *e, const int64_t **sizes, int *ndim, opd_scalar_type *dtype, int *backend) {
    if (e->vertex & OPDI_LEAF) {
        const opd_tensor *t = opdi_edge_leaf(e->vertex);
        *sizes = t->dims;
        *ndim = t->ndim;
        *dtype = (opd_scalar_type)t->dtype;
        *backend = t->backend;
        return true;
    }
    if (e->vertex) {
        const int64_t *m = opdi_node_meta(opdi_edge_node(e->vertex), e->nr);
        if (!m) { return false; }
        *sizes = m + 1;
        *ndim = (int)(*m >> 16);
        *dtype = (opd_scalar_type)(*m & 0xff);
        *backend = (int)(*m >> 8 & 0xff);
        return true;
    }
    return false;
}

opd_ints opd_bw_sizes_at(const opd_backward_call *bw, int i, int k) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int e = opdi_bw_edge(bw, i, k), ndim, backend;
    if (e < 0 || !opdi_edge_meta(&opdi_edges(bw->node)[e], &sizes, &ndim, &dtype, &backend)) { return opd_ints_of(NULL, -1); }
    return opd_ints_of(sizes, ndim);
}
opd_ints opd_bw_sizes(const opd_backward_call *bw, int i) { return opd_bw_sizes_at(bw, i, 0); }

opd_scalar_type opd_bw_dtype(const opd_backward_call *bw, int i) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int e = opdi_bw_edge(bw, i, 0), ndim, backend;
    return e >= 0 && opdi_edge_meta(&opdi_edges(bw->node)[e], &sizes, &ndim, &dtype, &backend) ? dtype : OPD_DTYPE_NONE;
}

int opd_bw_return_at(opd_backward_call *bw, int i, int k, opd_tensor *grad) {
    int e = opdi_bw_edge(bw, i, k);
    if (!opd_ok()) { return -1; }
    if (e < 0) { return opd_fail(OPD_ERROR_AUTOGRAD, "%s: the formula gives a gradient for argument %d (element %d), which is no tensor argument", bw->node->formula->name, i, k); }
    if (!grad) { return opd_fail(OPD_ERROR_AUTOGRAD, "%s: the formula gives NULL as gradient of argument %d", bw->node->formula->name, i); }
    if (!opdi_edges(bw->node)[e].vertex) { return 0; }
    opdi_retain(grad);
    if (bw->out[e]) { opdi_drop(bw->out[e]); }
    bw->out[e] = grad;
    return 0;
}
int opd_bw_return(opd_backward_call *bw, int i, opd_tensor *grad) { return opd_bw_return_at(bw, i, 0, grad); }

//-- the engine ---------------------------------------------------------------------------------------------------
//
//  Finds everything reachable (a task for each node and leaf, made in a depth-first search with its own stack), counts for each
//  task the edges that lead to it, then runs nodes whose count is down to zero, the youngest first.  A task holds the
//  gradients that have arrived.  The first engine at work in the process marks nodes and leaves with their tasks; any other
//  (a nested backward, another thread) finds them through a hash table, so they never meet.

typedef struct opdi_task {
    uintptr_t vertex;
    struct opdi_task *next, *up;                  /* all tasks; the parent in the search */
    int32_t deps, cursor, ngrads;
    bool needed, captured, counted;
    opd_tensor *grads[1];                         /* ngrads of them, references */
} opdi_task;

typedef struct opdi_capture { uintptr_t vertex; uint32_t nr; opd_tensor *grad; } opdi_capture;

typedef struct opdi_engine {
    opdi_task *tasks, **heap, **hash;
    int64_t nheap, heap_cap, ntasks, hash_cap;
    opdi_capture *captures;
    int ncaptures;
    bool first, retain, create, accumulate, restricted;
} opdi_engine;

static int opdi_engines;                          /* how many are at work */

static struct opdi_task **opdi_task_home(uintptr_t vertex) {
    if (!(vertex & OPDI_LEAF)) { return &opdi_edge_node(vertex)->task; }
    return &opdi_edge_leaf(vertex)->meta->task;
}

static int64_t opdi_hash_slot(const opdi_engine *en, uintptr_t vertex) {
    uint64_t h = (uint64_t)vertex * 0x9E3779B97F4A7C15u;
    int64_t i = (int64_t)(h >> 20) & (en->hash_cap - 1);
    while (en->hash[i] && en->hash[i]->vertex != vertex) { i = (i + 1) & (en->hash_cap - 1); }
    return i;
}

static int opdi_hash_grow(opdi_engine *en) {
    opdi_task **old = en->hash, *t;
    int64_t old_cap = en->hash_cap;
    en->hash_cap = old_cap ? old_cap * 2 : 64;
    en->hash = (opdi_task **)opdi_alloc((size_t)en->hash_cap * sizeof *en->hash);
    if (!en->hash) { en->hash = old; en->hash_cap = old_cap; return -1; }
    memset(en->hash, 0, (size_t)en->hash_cap * sizeof *en->hash);
    for (t = en->tasks; t; t = t->next) { en->hash[opdi_hash_slot(en, t->vertex)] = t; }
    opdi_free(old, (size_t)old_cap * sizeof *old);
    return 0;
}

static opdi_task *opdi_task_find(const opdi_engine *en, uintptr_t vertex) {
    if (!en->first) { return en->hash_cap ? en->hash[opdi_hash_slot(en, vertex)] : NULL; }
    if ((vertex & OPDI_LEAF) && !opdi_edge_leaf(vertex)->meta) { return NULL; }
    return *opdi_task_home(vertex);
}

static opdi_task *opdi_task_make(opdi_engine *en, uintptr_t vertex, opdi_task *up) {
    int n = vertex & OPDI_LEAF ? 1 : opdi_edge_node(vertex)->noutputs;
    size_t bytes = sizeof(opdi_task) + (size_t)OPDI_MAX(n - 1, 0) * sizeof(opd_tensor *);
    opdi_task *t;
    if ((vertex & OPDI_LEAF) && !opdi_meta_of(opdi_edge_leaf(vertex))) { return NULL; }
    if (!en->first && 2 * (en->ntasks + 1) > en->hash_cap && opdi_hash_grow(en)) { return NULL; }
    t = (opdi_task *)opdi_alloc(bytes);
    if (!t) { return NULL; }
    memset(t, 0, bytes);
    t->vertex = vertex;
    t->ngrads = n;
    t->up = up;
    if (en->first) { *opdi_task_home(vertex) = t; } else { en->hash[opdi_hash_slot(en, vertex)] = t; }
    t->next = en->tasks;
    en->tasks = t;
    en->ntasks++;
    return t;
}

//-- Depth-first from one root.  With inputs given, a task is needed when it is captured or leads to one that is.
static int opdi_discover(opdi_engine *en, uintptr_t root) {
    opdi_task *t = opdi_task_find(en, root);
    if (t) { return 0; }
    t = opdi_task_make(en, root, NULL);
    if (!t) { return -1; }
    while (t) {
        opd_node *n = t->vertex & OPDI_LEAF ? NULL : opdi_edge_node(t->vertex);
        if (n && t->cursor < n->nedges) {
            uintptr_t v = opdi_edges(n)[t->cursor++].vertex;
            opdi_task *child = v ? opdi_task_find(en, v) : NULL;
            if (!v) { continue; }
            if (child) { t->needed = t->needed || child->needed; continue; }
            child = opdi_task_make(en, v, t);
            if (!child) { return -1; }
            t = child;
            continue;
        }
        if (!en->restricted) { t->needed = true; }
        else {
            int i;
            for (i = 0; i < en->ncaptures; i++) {
                if (en->captures[i].vertex == t->vertex) { t->needed = t->captured = true; }
            }
        }
        if (t->up) { t->up->needed = t->up->needed || t->needed; }
        t = t->up;
    }
    return 0;
}

static void opdi_count_deps(opdi_engine *en) {
    opdi_task *t;
    for (t = en->tasks; t; t = t->next) {
        const opd_node *n = t->vertex & OPDI_LEAF ? NULL : opdi_edge_node(t->vertex);
        int i;
        for (i = 0; n && t->needed && i < n->nedges; i++) {
            opdi_task *child = opdi_edges(n)[i].vertex ? opdi_task_find(en, opdi_edges(n)[i].vertex) : NULL;
            if (child && child->needed) { child->deps++; }
        }
    }
}

static uint64_t opdi_task_order(const opdi_task *t) { return t->vertex & OPDI_LEAF ? UINT64_MAX : opdi_edge_node(t->vertex)->sequence; }

static int opdi_heap_push(opdi_engine *en, opdi_task *t) {
    int64_t i;
    if (en->nheap == en->heap_cap) {
        int64_t cap = en->heap_cap ? en->heap_cap * 2 : 32;
        opdi_task **p = (opdi_task **)opdi_alloc((size_t)cap * sizeof *p);
        if (!p) { return -1; }
        if (en->nheap) { memcpy(p, en->heap, (size_t)en->nheap * sizeof *p); }
        opdi_free(en->heap, (size_t)en->heap_cap * sizeof *p);
        en->heap = p;
        en->heap_cap = cap;
    }
    for (i = en->nheap++; i > 0 && opdi_task_order(en->heap[(i - 1) / 2]) < opdi_task_order(t); i = (i - 1) / 2) { en->heap[i] = en->heap[(i - 1) / 2]; }
    en->heap[i] = t;
    return 0;
}

static opdi_task *opdi_heap_pop(opdi_engine *en) {
    opdi_task *top = en->heap[0], *last = en->heap[--en->nheap];
    int64_t i = 0, c;
    while ((c = 2 * i + 1) < en->nheap) {
        if (c + 1 < en->nheap && opdi_task_order(en->heap[c + 1]) > opdi_task_order(en->heap[c])) { c++; }
        if (opdi_task_order(en->heap[c]) <= opdi_task_order(last)) { break; }
        en->heap[i] = en->heap[c];
        i = c;
    }
    en->heap[i] = last;
    return top;
}

//-- a + b; in place when nobody else can see a.
static opd_tensor *opdi_grad_sum(opdi_engine *en, opd_tensor *a, opd_tensor *b) {
    static opd_op *add, *add_inplace;
    opd_value v[3];
    bool own = !en->create && a->refs == 1 && a->storage->refs == 1 && a->dtype == b->dtype && opdi_has_sizes(a, b->dims, b->ndim) && !opdi_overlaps_itself(a);
    v[0] = opd_value_tensor(a);
    v[1] = opd_value_tensor(b);
    v[2] = opd_value_int(1);
    return own ? opd_call_op(OPD_OP(&add_inplace, "aten::add_.Tensor"), v, 3) : opd_call_op(OPD_OP(&add, "aten::add.Tensor"), v, 3);
}

//-- Adds a gradient that has arrived; takes the reference.
static int opdi_task_add(opdi_engine *en, opdi_task *t, uint32_t nr, opd_tensor *grad) {
    opd_tensor *sum;
    if (!t->grads[nr]) { t->grads[nr] = grad; return 0; }
    sum = opdi_grad_sum(en, t->grads[nr], grad);
    if (sum && sum != t->grads[nr]) {
        opdi_retain(sum);
        opdi_drop(t->grads[nr]);
        t->grads[nr] = sum;
    }
    opdi_drop(grad);
    return sum ? 0 : -1;
}

//-- Sums a broadcast gradient down to the sizes it should have: aten::sum_to_size.
static opd_tensor *opdi_sum_to(opd_tensor *g, const int64_t *sizes, int ndim) {
    static opd_op *sum, *view;
    int64_t dims[OPD_MAX_DIMS];
    opd_value v[4];
    int i, n = 0, lead = g->ndim - ndim;
    for (i = 0; i < lead; i++) { dims[n++] = i; }
    for (i = lead; i < g->ndim; i++) {
        if (sizes[i - lead] == 1 && g->dims[i] != 1) { dims[n++] = i; }
    }
    if (n) {
        v[0] = opd_value_tensor(g);
        v[1] = opd_value_ints(dims, n);
        v[2] = opd_value_bool(true);
        v[3] = opd_value_none();
        g = opd_call_op(OPD_OP(&sum, "aten::sum.dim_IntList"), v, 4);
    }
    if (!g || lead == 0) { return g; }
    v[0] = opd_value_tensor(g);
    v[1] = opd_value_ints(sizes, ndim);
    return opd_call_op(OPD_OP(&view, "aten::reshape"), v, 2);
}

static bool opdi_expands(const int64_t *from, int nfrom, const int64_t *to, int nto) {
    int i;
    for (i = 0; i < nfrom; i++) {
        if (nto - nfrom + i < 0 || (from[i] != 1 && from[i] != to[nto - nfrom + i])) { return false; }
    }
    return true;
}

//-- Makes one gradient of a formula fit its edge: sizes, dtype, device.  A borrowed tensor, or NULL with an error.
static opd_tensor *opdi_validate(const opd_node *n, int i, opd_tensor *g) {
    static opd_op *to;
    const int64_t *sizes;
    opd_scalar_type dtype;
    int ndim, backend;
    char a[256], b[256];
    if (!opdi_edge_meta(&opdi_edges(n)[i], &sizes, &ndim, &dtype, &backend)) { return g; }
    if (!opdi_has_sizes(g, sizes, ndim)) {
        if (!opdi_expands(sizes, ndim, g->dims, g->ndim)) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "Function %s returned an invalid gradient at index %d - got %s but expected shape compatible with %s",
                           n->formula->name, i, opdi_sizes_text(g->dims, g->ndim, a, sizeof a), opdi_sizes_text(sizes, ndim, b, sizeof b));
            return NULL;
        }
        g = opdi_sum_to(g, sizes, ndim);
        if (!g) { return NULL; }
    }
    if (g->backend != backend && g->ndim) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Function %s returned an invalid gradient at index %d - expected device %s but got %s", n->formula->name, i,
                       opd_device_print(opd_device_of((opd_backend)backend, -1), a, sizeof a), opd_device_print(opd_tensor_device(g), b, sizeof b));
        return NULL;
    }
    if (g->dtype != (int8_t)dtype) {
        opd_value v[7];
        int k;
        if (!opd_dtype_is_floating(dtype) && !opd_dtype_is_complex(dtype)) { return g; }
        for (k = 2; k < 7; k++) { v[k] = opd_value_none(); }
        v[0] = opd_value_tensor(g);
        v[1] = opd_value_int(dtype);
        v[5] = opd_value_bool(false);
        g = opd_call_op(OPD_OP(&to, "aten::_to_copy"), v, 7);
    }
    return g;
}

static void opdi_set_grad(opdi_meta *m, opd_tensor *grad) {
    opd_tensor *old = m->grad;
    m->grad = grad;
    if (old) { opdi_drop(old); }
}

//-- A copy of g with the layout of t, without history.
static opd_tensor *opdi_grad_clone(const opd_tensor *t, const opd_tensor *g) {
    opd_tensor *c = opdi_tensor_make(t->dims, opdi_overlaps_itself(t) ? NULL : t->dims + t->ndim, t->ndim, (opd_scalar_type)t->dtype, t->backend);
    if (c && opdi_copy(c, g)) { opdi_drop(c); return NULL; }
    return c;
}

static bool opdi_same_layout(const opd_tensor *a, const opd_tensor *b) {
    return a->dtype == b->dtype && a->ndim == b->ndim && ((a->flags & b->flags & OPDI_CONTIGUOUS) ||
           memcmp(a->dims + a->ndim, b->dims + b->ndim, (size_t)a->ndim * sizeof *a->dims) == 0);
}

//-- AccumulateGrad: the gradient of a leaf is taken over, copied or added to.  Takes the reference.
static int opdi_accumulate(opdi_engine *en, opd_tensor *t, opd_tensor *g) {
    opdi_meta *m = t->meta;
    opd_tensor *sum;
    if (!m->grad) {
        if (en->create || (g->refs == 1 && g->storage->refs == 1 && opdi_same_layout(t, g))) { m->grad = g; return 0; }
        sum = opdi_grad_clone(t, g);
        opdi_drop(g);
        m->grad = sum;
        return sum ? 0 : -1;
    }
    if (!en->create) {
        static opd_op *add_inplace;
        opd_value v[3];
        v[0] = opd_value_tensor(m->grad);
        v[1] = opd_value_tensor(g);
        v[2] = opd_value_int(1);
        sum = opd_call_op(OPD_OP(&add_inplace, "aten::add_.Tensor"), v, 3);
    } else {
        sum = opdi_grad_sum(en, m->grad, g);
        if (sum && sum != m->grad) { opdi_retain(sum); opdi_set_grad(m, sum); }
    }
    opdi_drop(g);
    return sum ? 0 : -1;
}

static int opdi_task_done(opdi_engine *en, opdi_task *t);

//-- Sends what a formula gave along the edges.
static int opdi_send(opdi_engine *en, const opd_node *n, opd_tensor **out) {
    int i, rc = 0;
    for (i = 0; i < n->nedges && rc == 0; i++) {
        const opdi_edge *e = &opdi_edges(n)[i];
        opdi_task *child = e->vertex ? opdi_task_find(en, e->vertex) : NULL;
        opd_tensor *g = out[i];
        if (!child || !child->needed) { continue; }
        if (g) {
            g = opdi_validate(n, i, g);
            if (!g) { return -1; }
            opdi_retain(g);
            if (g == out[i]) { out[i] = NULL; opdi_drop(g); }     /* the formula's own reference moves on */
            rc = opdi_task_add(en, child, e->nr, g);
        }
        if (rc == 0 && --child->deps == 0) { rc = opdi_task_done(en, child); }
    }
    return rc;
}

//-- All gradients of a task have arrived: leaves accumulate at once, nodes wait their turn.
static int opdi_task_done(opdi_engine *en, opdi_task *t) {
    opd_tensor *g = t->grads[0];
    if (!(t->vertex & OPDI_LEAF)) { return opdi_heap_push(en, t); }
    if (!g) { return 0; }
    if (t->captured || !en->accumulate) {
        int i;
        for (i = 0; i < en->ncaptures; i++) {
            if (en->captures[i].vertex == t->vertex && !en->captures[i].grad) { opdi_retain(g); en->captures[i].grad = g; }
        }
    }
    if (!en->accumulate) { return 0; }
    t->grads[0] = NULL;
    return opdi_accumulate(en, opdi_edge_leaf(t->vertex), g);
}

static int opdi_run_formula(opdi_engine *en, opd_node *n, opd_tensor **grads, opd_tensor **out) {
    opd_backward_call bw;
    int rc;
    if (n->freed) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
                        "Saved intermediate values of the graph are freed when you call opd_backward or opd_autograd_grad. Specify retain_graph if you need to backward "
                        "through the graph a second time or if you need to access saved tensors after calling backward. (%s)", n->formula->name);
    }
    bw.node = n;
    bw.grads = grads;
    bw.out = out;
    rc = n->formula->fn(&bw);
    if (rc && opd_ok()) { (void)opd_fail(OPD_ERROR_AUTOGRAD, "the formula of %s failed without saying why", n->formula->name); }
    if (!opd_ok()) { return opdi_fail_more(" [in %s]", n->formula->name); }
    return opdi_send(en, n, out);
}

#define OPDI_INLINE_EDGES 16
//-- Runs one node in a scope of its own.
static int opdi_run_task(opdi_engine *en, opdi_task *t) {
    opdi_thread *th = opdi_self();
    opd_node *n = opdi_edge_node(t->vertex), *outer = th->node;
    opd_tensor *few[OPDI_INLINE_EDGES], **out = few;
    opdi_state state = th->state;
    int64_t mark = th->top, scope_mark = th->scope_mark;
    int i, rc = 0;
    bool any = false;
    for (i = 0; i < en->ncaptures && t->captured; i++) {
        opdi_capture *c = &en->captures[i];
        if (c->vertex == t->vertex && (int32_t)c->nr < t->ngrads && t->grads[c->nr] && !c->grad) { opdi_retain(t->grads[c->nr]); c->grad = t->grads[c->nr]; }
    }
    for (i = 0; i < t->ngrads; i++) { any = any || t->grads[i]; }
    if (n->nedges > OPDI_INLINE_EDGES && !(out = (opd_tensor **)opdi_alloc((size_t)n->nedges * sizeof *out))) { return -1; }
    memset(out, 0, (size_t)n->nedges * sizeof *out);
    th->node = n;
    th->scope_mark = mark;
    th->scope_depth++;
    th->state.no_grad = !en->create;
    rc = any ? opdi_run_formula(en, n, t->grads, out) : opdi_send(en, n, out);
    for (i = 0; i < n->nedges; i++) {
        if (out[i]) { opdi_drop(out[i]); }
    }
    if (out != few) { opdi_free(out, (size_t)n->nedges * sizeof *out); }
    for (i = 0; i < t->ngrads; i++) {
        if (t->grads[i]) { opdi_drop(t->grads[i]); t->grads[i] = NULL; }
    }
    th->state = state;
    th->node = outer;
    th->scope_depth--;
    th->scope_mark = scope_mark;
    if (th->top != mark) { opdi_scope_unwind(th, mark); }
    if (rc == 0 && !en->retain) { opdi_node_free_saved(n); }
    return rc;
}

static void opdi_engine_end(opdi_engine *en) {
    while (en->tasks) {
        opdi_task *t = en->tasks;
        int i;
        en->tasks = t->next;
        if (en->first) { *opdi_task_home(t->vertex) = NULL; }
        for (i = 0; i < t->ngrads; i++) {
            if (t->grads[i]) { opdi_drop(t->grads[i]); }
        }
        opdi_free(t, sizeof *t + (size_t)OPDI_MAX(t->ngrads - 1, 0) * sizeof(opd_tensor *));
    }
    opdi_free(en->heap, (size_t)en->heap_cap * sizeof *en->heap);
    opdi_free(en->hash, (size_t)en->hash_cap * sizeof *en->hash);
    (void)OPDI_SUB(&opdi_engines, 1);
}

//-- The gradient of root i: the one given, checked, or ones for a single element.  A reference.
static opd_tensor *opdi_root_grad(const opd_tensor *t, opd_tensor *given, int i) {
    opd_tensor *g, *one;
    if (given) {
        char a[256], b[256];
        if (!opdi_has_sizes(given, t->dims, t->ndim)) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "Mismatch in shape: grad_output[%d] has a shape of %s and output[%d] has a shape of %s.", i,
                           opdi_sizes_text(given->dims, given->ndim, a, sizeof a), i, opdi_sizes_text(t->dims, t->ndim, b, sizeof b));
            return NULL;
        }
        opdi_retain(given);
        return given;
    }
    if (t->numel != 1) { (void)opd_fail(OPD_ERROR_AUTOGRAD, "grad can be implicitly created only for scalar outputs"); return NULL; }
    g = opdi_tensor_make(t->dims, NULL, t->ndim, (opd_scalar_type)t->dtype, t->backend);
    one = g ? opd_tensor_wrapped_number(opd_value_int(1)) : NULL;
    if (!one || opdi_copy(g, one)) { opd_release(g); return NULL; }
    return g;
}

//-- Discovers from all roots and puts their gradients in place.
static int opdi_engine_start(opdi_engine *en, opd_tensor *const *outputs, int n, opd_tensor *const *grads) {
    opdi_task *t;
    int i;
    for (i = 0; i < n; i++) {
        opdi_edge e;
        opd_tensor *out = outputs[i];
        if (!out || !(out->flags & OPDI_REQUIRES_GRAD)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "element %d of tensors does not require grad and does not have a grad_fn", i);
        }
        e.vertex = out->grad_fn ? (uintptr_t)out->grad_fn : (uintptr_t)out | OPDI_LEAF;
        if (opdi_discover(en, e.vertex)) { return -1; }
    }
    for (i = 0; i < n; i++) {
        opd_tensor *out = outputs[i], *g = opdi_root_grad(out, grads ? grads[i] : NULL, i);
        uintptr_t v = out->grad_fn ? (uintptr_t)out->grad_fn : (uintptr_t)out | OPDI_LEAF;
        if (!g || opdi_task_add(en, opdi_task_find(en, v), out->grad_fn ? out->output_nr : 0, g)) { return -1; }
    }
    opdi_count_deps(en);
    for (t = en->tasks; t; t = t->next) { t->counted = t->deps == 0; }
    for (t = en->tasks; t; t = t->next) {
        if (t->counted && t->needed && opdi_task_done(en, t)) { return -1; }
    }
    return 0;
}

static int opdi_engine_run(opdi_engine *en, opd_tensor *const *outputs, int n, const opd_backward_options *o) {
    opdi_thread *th = opdi_self();
    opdi_state state = th->state;
    int64_t mark = th->top;
    int rc;
    en->create = o && o->create_graph;
    en->retain = o && (o->retain_graph || o->create_graph);
    en->first = OPDI_ADD(&opdi_engines, 1) == 1;
    th->state.no_grad = !en->create;
    rc = opdi_engine_start(en, outputs, n, o ? o->grad_outputs : NULL);
    while (rc == 0 && en->nheap) { rc = opdi_run_task(en, opdi_heap_pop(en)); }
    th->state = state;
    if (th->top != mark) { opdi_scope_unwind(th, mark); }
    opdi_engine_end(en);
    return rc;
}

static int opdi_captures_make(opdi_engine *en, opd_tensor *const *inputs, int n) {
    int i;
    en->restricted = true;
    en->captures = (opdi_capture *)opdi_alloc((size_t)n * sizeof *en->captures);
    if (!en->captures) { return -1; }
    memset(en->captures, 0, (size_t)n * sizeof *en->captures);
    en->ncaptures = n;
    for (i = 0; i < n; i++) {
        opd_tensor *t = inputs[i];
        if (!t || !(t->flags & OPDI_REQUIRES_GRAD)) { return opd_fail(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors does not require grad"); }
        en->captures[i].vertex = t->grad_fn ? (uintptr_t)t->grad_fn : (uintptr_t)t | OPDI_LEAF;
        en->captures[i].nr = t->grad_fn ? t->output_nr : 0;
    }
    return 0;
}

//-- Drops what was captured, or hands it to the innermost scope through grads.
static int opdi_captures_end(opdi_engine *en, opd_tensor **grads, bool ok) {
    int i;
    for (i = 0; i < en->ncaptures; i++) {
        opd_tensor *g = en->captures[i].grad;
        if (g && grads && ok) { grads[i] = opdi_own(g); ok = grads[i] != NULL; }
        else if (g) { opdi_drop(g); }
    }
    opdi_free(en->captures, (size_t)en->ncaptures * sizeof *en->captures);
    return ok ? 0 : -1;
}

int opd_backward_with(opd_tensor *const *outputs, int n, const opd_backward_options *options) {
    opdi_engine en;
    int rc;
    if (!opd_ok()) { return -1; }
    memset(&en, 0, sizeof en);
    en.accumulate = true;
    if (n < 1 || !outputs) { return opd_fail(OPD_ERROR_AUTOGRAD, "backward needs at least one tensor"); }
    if (options && options->inputs) {
        if (options->ninputs < 1) { return opd_fail(OPD_ERROR_AUTOGRAD, "'inputs' argument to backward cannot be empty."); }
        if (opdi_captures_make(&en, options->inputs, options->ninputs)) { (void)opdi_captures_end(&en, NULL, false); return -1; }
    }
    rc = opdi_engine_run(&en, outputs, n, options);
    (void)opdi_captures_end(&en, NULL, false);
    return rc;
}

int opd_backward(opd_tensor *t) {
    if (!opd_ok()) { return -1; }
    if (!t) { return opd_fail(OPD_ERROR_AUTOGRAD, "backward of a NULL tensor"); }
    return opd_backward_with(&t, 1, NULL);
}

int opd_autograd_grad(opd_tensor *const *outputs, int n, opd_tensor *const *inputs, int ninputs, const opd_backward_options *options, opd_tensor **grads) {
    opdi_engine en;
    int rc, i;
    if (!opd_ok()) { return -1; }
    memset(&en, 0, sizeof en);
    if (ninputs < 1) { return opd_fail(OPD_ERROR_AUTOGRAD, "grad requires non-empty inputs."); }
    if (n < 1 || !outputs) { return opd_fail(OPD_ERROR_AUTOGRAD, "grad needs at least one output"); }
    for (i = 0; i < ninputs; i++) { grads[i] = NULL; }
    rc = opdi_captures_make(&en, inputs, ninputs);
    if (rc == 0) { rc = opdi_engine_run(&en, outputs, n, options); }
    for (i = 0; i < ninputs && rc == 0 && !(options && options->allow_unused); i++) {
        if (!en.captures[i].grad) {
            rc = opd_fail(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused if this is the desired behavior.");
        }
    }
    return opdi_captures_end(&en, grads, rc == 0);
}

//-- tensors on the tape ------------------------------------------------------------------------------------------

bool opd_tensor_requires_grad(const opd_tensor *t) { return t && (t->flags & OPDI_REQUIRES_GRAD) != 0; }
bool opd_tensor_is_leaf(const opd_tensor *t) { return !t->grad_fn; }
opd_tensor *opd_tensor_grad(const opd_tensor *t) { return t && t->meta ? t->meta->grad : NULL; }
const char *opd_tensor_grad_fn(const opd_tensor *t) { return t->grad_fn ? t->grad_fn->formula->name : NULL; }

opd_tensor *opd_tensor_set_requires_grad(opd_tensor *t, bool on) {
    if (!opd_ok() || !t) { return NULL; }
    if (t->grad_fn) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "you can only change requires_grad flags of leaf variables.%s", on ? "" : " If you want to use a computed variable in a subgraph that doesn't "
                       "require differentiation use var_no_grad = var.detach().");
        return NULL;
    }
    if (on && !opd_dtype_is_floating((opd_scalar_type)t->dtype) && !opd_dtype_is_complex((opd_scalar_type)t->dtype)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "only Tensors of floating point and complex dtype can require gradients");
        return NULL;
    }
    t->flags = (uint8_t)(on ? t->flags | OPDI_REQUIRES_GRAD : t->flags & ~OPDI_REQUIRES_GRAD);
    return t;
}

int opd_tensor_set_grad(opd_tensor *t, opd_tensor *grad) {
    opdi_meta *m;
    if (!opd_ok() || !t) { return -1; }
    if (!grad && !t->meta) { return 0; }
    if (grad && (!opdi_has_sizes(grad, t->dims, t->ndim) || grad->dtype != t->dtype || grad->backend != t->backend)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "assigned grad has data of a different size, dtype or device than the tensor");
    }
    m = opdi_meta_of(t);
    if (!m) { return -1; }
    if (grad) { opdi_retain(grad); }
    opdi_set_grad(m, grad);
    return 0;
}

//----------------------------------------------------------------------------------------------------------------------
//  >>kernels    instruction sets, threads, half precision, vector math, matrix product, convolution, random numbers
//
//  Loops on raw pointers that the operators are made of.  This part uses the platform section (allocation, errors)
//  and knows nothing of tensors.  Code for AVX2 and AVX-512 is compiled by target attributes and chosen at run time,
//  so a plain `cc -O2` reaches full speed.  No result depends on the number of threads.
//----------------------------------------------------------------------------------------------------------------------

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__) && !defined(OPD_NO_SIMD)
#define OPDI_X86
#define OPDI_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define OPDI_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define OPDI_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#endif
#endif
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_ALWAYS static inline __attribute__((always_inline))
#define OPDI_FMAF(level, a, b, c) ((level) > 0 ? __builtin_fmaf(a, b, c) : (a) * (b) + (c))
#else
#define OPDI_ALWAYS static inline
#define OPDI_FMAF(level, a, b, c) ((a) * (b) + (c))
#endif

/* 0: plain C, 1: AVX2 with FMA, 2: AVX-512 F, BW, VL, DQ.  OPD_CPU_LEVEL in the environment may lower it. */
static int opdi_cpu_level(void) {
    static int known = -1;
    int level = OPDI_LOAD(&known);
    if (OPDI_LIKELY(level >= 0)) return level;
    level = 0;
#if defined(OPDI_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) level = 1;
    if (level && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) level = 2;
    const char *wish = getenv("OPD_CPU_LEVEL");
    if (wish && wish[0] >= '0' && wish[0] <= '2' && wish[1] == 0 && wish[0] - '0' < level) level = wish[0] - '0';
#endif
    OPDI_STORE(&known, level);
    return level;
}

//-- threads -----------------------------------------------------------------------------------------------------------

/* Works on [begin, end); begin is a multiple of the grain.  A range may span several grains. */
typedef void (*opdi_range_fn)(void *ctx, int64_t begin, int64_t end);

#define OPDI_MAX_THREADS 256

static int opdi_threads_wanted;                   /* 0: not asked yet */

static int opdi_threads_default(void) {
    long n = 1;
#if !defined(OPD_NO_THREADS)
    const char *text = getenv("OPD_NUM_THREADS");
    if (text) n = strtol(text, NULL, 10);
    if (!text || n < 1) n = sysconf(_SC_NPROCESSORS_ONLN);
#endif
    return (int)OPDI_MAX(1, OPDI_MIN(n, OPDI_MAX_THREADS));
}

int opd_threads(void) {
    int n = OPDI_LOAD(&opdi_threads_wanted);
    if (OPDI_LIKELY(n > 0)) return n;
    n = opdi_threads_default();
    OPDI_STORE(&opdi_threads_wanted, n);
    return n;
}

void opd_threads_set(int n) {
#if defined(OPD_NO_THREADS)
    n = 1;
#endif
    if (n <= 0) n = opdi_threads_default();
    if (n > OPDI_MAX_THREADS) n = OPDI_MAX_THREADS;
    OPDI_STORE(&opdi_threads_wanted, n);
}

#if defined(OPD_NO_THREADS)

static void opdi_parallel_for(int64_t n, int64_t grain, opdi_range_fn fn, void *ctx) {
    (void)grain;
    if (n > 0) fn(ctx, 0, n);
}

#else

/* The pool runs one job at a time.  Whoever takes `busy` owns it; workers join an open job under the lock and count
   themselves in `active`, so the owner knows when the last one has left. */
typedef struct opdi_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int busy;                                     /* taken with an atomic exchange */
    int threads;                                  /* workers that exist */
    int sleeping;                                 /* of them, waiting on `wake` */
    int open;                                     /* how many more may join the job */
    int active;                                   /* workers inside the job */
    uint32_t generation;                          /* counts jobs */
    opdi_range_fn fn;
    void *ctx;
    int64_t n, step, next;                        /* next: first index nobody has taken */
} opdi_pool;

static opdi_pool opdi_the_pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER,
                                  0, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0};
static pthread_once_t opdi_pool_once = PTHREAD_ONCE_INIT;
static OPDI_TLS int opdi_in_parallel;             /* this thread runs a part of a job: nested calls run inline */

/* The child of a fork has none of the workers: it starts with a fresh pool. */
static void opdi_pool_child(void) {
    opdi_pool *p = &opdi_the_pool;
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
}
static void opdi_pool_start(void) { (void)pthread_atfork(NULL, NULL, opdi_pool_child); }

static inline void opdi_pause(void) {
#if defined(OPDI_X86)
    __builtin_ia32_pause();
#endif
}

static void opdi_pool_work(opdi_range_fn fn, void *ctx, int64_t n, int64_t step) {
    opdi_pool *p = &opdi_the_pool;
    for (;;) {
        int64_t begin = __atomic_fetch_add(&p->next, step, __ATOMIC_RELAXED);
        if (begin >= n) return;
        fn(ctx, begin, n - begin < step ? n : begin + step);
    }
}

static void *opdi_pool_worker(void *unused) {
    opdi_pool *p = &opdi_the_pool;
    uint32_t seen = 0;
    (void)unused;
    opdi_in_parallel = 1;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        if (p->generation != seen && p->open > 0) {
            seen = p->generation;
            p->open--;
            OPDI_STORE(&p->active, p->active + 1);
            opdi_range_fn fn = p->fn;
            void *ctx = p->ctx;
            int64_t n = p->n, step = p->step;
            pthread_mutex_unlock(&p->lock);
            opdi_pool_work(fn, ctx, n, step);
            if (opdi_thread_self) opdi_thread_self->error = OPD_OK;   /* the job tells its caller what failed */
            pthread_mutex_lock(&p->lock);
            OPDI_PUBLISH(&p->active, p->active - 1);
            if (p->active == 0) pthread_cond_signal(&p->done);
        }
        seen = p->generation;
        pthread_mutex_unlock(&p->lock);
        for (int spin = 0; spin < 400 && OPDI_LOAD(&p->generation) == seen; spin++) opdi_pause();
        pthread_mutex_lock(&p->lock);
        if (p->generation == seen) {
            p->sleeping++;
            pthread_cond_wait(&p->wake, &p->lock);
            p->sleeping--;
        }
    }
    return NULL;
}

/* Makes workers until there are `want`; called with the lock held.  Goes on with fewer where the system refuses. */
static void opdi_pool_grow(opdi_pool *p, int want) {
    pthread_attr_t attr;
    if (p->threads >= want || pthread_attr_init(&attr)) return;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    while (p->threads < want) {
        pthread_t id;
        if (pthread_create(&id, &attr, opdi_pool_worker, NULL)) break;
        p->threads++;
    }
    pthread_attr_destroy(&attr);
}

static void opdi_pool_run(opdi_pool *p, int workers, int64_t n, int64_t step, opdi_range_fn fn, void *ctx) {
    pthread_once(&opdi_pool_once, opdi_pool_start);
    pthread_mutex_lock(&p->lock);
    opdi_pool_grow(p, workers);
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    p->step = step;
    __atomic_store_n(&p->next, 0, __ATOMIC_RELAXED);
    p->open = workers;
    OPDI_STORE(&p->generation, p->generation + 1);
    if (p->sleeping > 0) pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    opdi_in_parallel = 1;
    opdi_pool_work(fn, ctx, n, step);
    opdi_in_parallel = 0;
    pthread_mutex_lock(&p->lock);
    p->open = 0;                                  /* too late to join */
    if (p->active > 0) {
        pthread_mutex_unlock(&p->lock);
        for (int spin = 0; spin < 2000 && OPDI_LOAD(&p->active) > 0; spin++) opdi_pause();
        pthread_mutex_lock(&p->lock);
        while (p->active > 0) pthread_cond_wait(&p->done, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Runs fn over [0, n) in ranges that begin at multiples of `grain`; the caller takes part.  Runs everything in the
   caller where a range is all there is, inside another parallel_for, and while another thread has the pool. */
static void opdi_parallel_for(int64_t n, int64_t grain, opdi_range_fn fn, void *ctx) {
    opdi_pool *p = &opdi_the_pool;
    int threads = opd_threads();
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    int64_t chunks = (n - 1) / grain + 1;
    if (threads <= 1 || chunks <= 1 || opdi_in_parallel || n > INT64_MAX / 4 ||
        __atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE)) {
        fn(ctx, 0, n);
        return;
    }
    /* up to eight ranges a thread, so that an interrupted one does not hold up the rest */
    int64_t per = chunks / ((int64_t)threads * 8);
    opdi_pool_run(p, (int)OPDI_MIN((int64_t)threads - 1, chunks - 1), n, (per < 1 ? 1 : per) * grain, fn, ctx);
    OPDI_PUBLISH(&p->busy, 0);
}

#endif

//-- half precision ----------------------------------------------------------------------------------------------------

OPDI_ALWAYS uint32_t opdi_bits(float f) { uint32_t u; memcpy(&u, &f, sizeof u); return u; }
OPDI_ALWAYS float opdi_float(uint32_t u) { float f; memcpy(&f, &u, sizeof f); return f; }

/* c ? a : b by masks: a branch here would keep the compiler from vectorising */
OPDI_ALWAYS uint32_t opdi_pick_bits(int c, uint32_t a, uint32_t b) {
    uint32_t m = 0u - (uint32_t)c;
    return (a & m) | (b & ~m);
}

OPDI_ALWAYS float opdi_bf16_to_f32(uint16_t h) { return opdi_float((uint32_t)h << 16); }

OPDI_ALWAYS uint16_t opdi_f32_to_bf16(float f) {
    uint32_t u = opdi_bits(f), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, nan = (u >> 16) | 0x40u;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? nan : r);
}

/* The 15 bits without sign, read as a float with the exponent 112 too small; the product is exact. */
OPDI_ALWAYS float opdi_f16_to_f32(uint16_t h) {
    uint32_t u = (uint32_t)(h & 0x7fffu) << 13, v = opdi_bits(opdi_float(u) * 5.192296858534828e33f);
    v = opdi_pick_bits(u >= 0x0f800000u, u | 0x7f800000u, v);
    return opdi_float(v | (uint32_t)(h & 0x8000u) << 16);
}

/* Denormal results: adding 0.5 puts the float's last bit where the half's is, and the hardware rounds. */
OPDI_ALWAYS uint16_t opdi_f32_to_f16(float f) {
    uint32_t u = opdi_bits(f), a = u & 0x7fffffffu;
    uint32_t normal = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
    uint32_t tiny = opdi_bits(opdi_float(opdi_pick_bits(a < 0x38800000u, a, 0u)) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | ((a >> 13) & 0x3ffu);
    uint32_t r = opdi_pick_bits(a < 0x38800000u, tiny, normal);
    r = opdi_pick_bits(a >= 0x477ff000u, 0x7c00u, r);
    r = opdi_pick_bits(a > 0x7f800000u, nan, r);
    return (uint16_t)(r | (u >> 16 & 0x8000u));
}

//-- vector math -------------------------------------------------------------------------------------------------------
//
// Float functions over arrays, 16 elements a step in loops without branches, which the compiler vectorises for each
// instruction set.  `lv` is the level, a constant after inlining.  Error bounds in units in the last place, with and
// without FMA (the test samples all floats against them): exp, log 1.1, erf 1.3, log1p, expm1 1.6, sin, cos 1.8,
// sigmoid 2.5, tanh 2.6.  Values differ in the last place between levels.  -ffast-math breaks inf and nan here.

#define OPDI_VSTEP 16
#define OPDI_MAGIC 12582912.0f                    /* 1.5 * 2^23: adding it rounds to an integer in the low bits */

/* n = round(x / ln 2), and r = x - n ln 2, |r| <= 0.347 */
OPDI_ALWAYS float opdi_exp_reduce(int lv, float x, int32_t *n) {
    float t = OPDI_FMAF(lv, x, 1.44269504f, OPDI_MAGIC), k = t - OPDI_MAGIC;
    float r = OPDI_FMAF(lv, k, -0.693359375f, x);
    *n = (int32_t)(opdi_bits(t) - 0x4b400000u);
    return OPDI_FMAF(lv, k, 2.12194442e-4f, r);
}

OPDI_ALWAYS float opdi_pick(int c, float a, float b) {
    return opdi_float(opdi_pick_bits(c, opdi_bits(a), opdi_bits(b)));
}

OPDI_ALWAYS float opdi_pow2(int32_t n) { return opdi_float((uint32_t)(n + 127) << 23); }

/* e^x = 2^n e^r; 2^n in two factors, so that results near the ends round once */
OPDI_ALWAYS float opdi_exp1(int lv, float x) {
    int32_t n;
    x = opdi_pick(x > 89.0f, 89.0f, x);
    x = opdi_pick(x < -104.0f, -104.0f, x);
    float r = opdi_exp_reduce(lv, x, &n);
    float q = OPDI_FMAF(lv, 0.00139505544f, r, 0.00836892892f);
    q = OPDI_FMAF(lv, q, r, 0.041666206f);
    q = OPDI_FMAF(lv, q, r, 0.166665182f);
    q = OPDI_FMAF(lv, q, r, 0.5f);
    q = OPDI_FMAF(lv, q, r * r, r) + 1.0f;
    n &= -(int32_t)(x == x);
    return q * opdi_pow2(n >> 1) * opdi_pow2(n - (n >> 1));
}

/* e^x - 1 = 2^n (e^r - 1) + (2^n - 1), everything halved so that n = 128 does not overflow early */
OPDI_ALWAYS float opdi_expm11(int lv, float a) {
    int32_t n;
    float x = opdi_pick(a > 89.0f, 89.0f, a);
    x = opdi_pick(x < -18.0f, -18.0f, x);
    float r = opdi_exp_reduce(lv, x, &n);
    float q = OPDI_FMAF(lv, 0.000199127855f, r, 0.00139411015f);
    q = OPDI_FMAF(lv, q, r, 0.00833327603f);
    q = OPDI_FMAF(lv, q, r, 0.041666355f);
    q = OPDI_FMAF(lv, q, r, 0.166666672f);
    q = OPDI_FMAF(lv, q, r, 0.5f);
    q = OPDI_FMAF(lv, q, r * r, r);
    n &= -(int32_t)(x == x);
    float s = opdi_pow2(n - 1), y = OPDI_FMAF(lv, s, q, s - 0.5f) * 2.0f;
    return opdi_pick((opdi_bits(a) & 0x7fffffffu) < 0x33000000u, a, y);
}

/* log(m 2^e) for f = m - 1, m in [sqrt(1/2), sqrt(2)] */
OPDI_ALWAYS float opdi_log_core(int lv, float f, float e) {
    float p = OPDI_FMAF(lv, 0.0691537708f, f, -0.117898293f);
    p = OPDI_FMAF(lv, p, f, 0.118729778f);
    p = OPDI_FMAF(lv, p, f, -0.123843402f);
    p = OPDI_FMAF(lv, p, f, 0.142186567f);
    p = OPDI_FMAF(lv, p, f, -0.16669251f);
    p = OPDI_FMAF(lv, p, f, 0.200022265f);
    p = OPDI_FMAF(lv, p, f, -0.249999866f);
    p = OPDI_FMAF(lv, p, f, 0.333333105f);
    float z = f * f;
    float y = OPDI_FMAF(lv, e, -2.12194442e-4f, p * f * z);
    y = OPDI_FMAF(lv, -0.5f, z, y);
    return OPDI_FMAF(lv, e, 0.693359375f, f + y);
}

OPDI_ALWAYS float opdi_log1(int lv, float a) {
    int small = opdi_bits(a) < 0x00800000u;       /* denormal */
    uint32_t u = opdi_bits(opdi_pick(small, a * 8388608.0f, a)) - 0x3f3504f3u;
    float e = (float)(((int32_t)u >> 23) - (23 & -small));
    float y = opdi_log_core(lv, opdi_float((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f, e);
    y = opdi_pick(a < HUGE_VALF, y, a);                    /* inf and nan */
    y = opdi_pick(a < 0.0f, NAN, y);
    return opdi_pick(a == 0.0f, -HUGE_VALF, y);
}

/* u = 1 + x rounded, with what rounding lost added back to the reduced argument */
OPDI_ALWAYS float opdi_log1p1(int lv, float a) {
    float s = 1.0f + a, b = s - 1.0f, c = (1.0f - (s - b)) + (a - b);
    uint32_t u = opdi_bits(s) - 0x3f3504f3u;
    int32_t n = (int32_t)u >> 23;
    float m = opdi_float((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float y = opdi_log_core(lv, m + c * opdi_float((uint32_t)(127 - OPDI_MIN(n, 126)) << 23), (float)n);
    y = opdi_pick(a < HUGE_VALF, y, a);
    y = opdi_pick(a < -1.0f, NAN, y);
    y = opdi_pick(a == -1.0f, -HUGE_VALF, y);
    return opdi_pick((opdi_bits(a) & 0x7fffffffu) < 0x33000000u, a, y);
}

/* tanh |x| = m / (m + 2), m = e^(2|x|) - 1 */
OPDI_ALWAYS float opdi_tanh1(int lv, float a) {
    uint32_t sign = opdi_bits(a) & 0x80000000u;
    float x = opdi_float(opdi_bits(a) & 0x7fffffffu);
    x = opdi_pick(x > 10.0f, 10.0f, x);
    float m = opdi_expm11(lv, x + x), y = m / (m + 2.0f);
    y = opdi_pick(x < 1e-4f, x, y);
    return opdi_float(opdi_bits(y) | sign);
}

OPDI_ALWAYS float opdi_sigmoid1(int lv, float a) {
    float t = opdi_exp1(lv, opdi_float(opdi_bits(a) | 0x80000000u));
    float num = opdi_pick(a >= 0.0f, 1.0f, t);
    return num / (1.0f + t);
}

/* |x| < 0.93: x + x P(x^2); beyond 1 - exp(-L(x)), L = -log(1 - erf) */
OPDI_ALWAYS float opdi_erf1(int lv, float a) {
    uint32_t sign = opdi_bits(a) & 0x80000000u;
    float x = opdi_float(opdi_bits(a) & 0x7fffffffu), z = x * x;
    float t = opdi_pick(x > 4.0f, 4.0f, x);
    float p = OPDI_FMAF(lv, 8.34522143e-5f, z, -0.000813743682f);
    p = OPDI_FMAF(lv, p, z, 0.00520063424f);
    p = OPDI_FMAF(lv, p, z, -0.0268592704f);
    p = OPDI_FMAF(lv, p, z, 0.112836942f);
    p = OPDI_FMAF(lv, p, z, -0.376126349f);
    p = OPDI_FMAF(lv, p, z, 0.128379166f);
    p = OPDI_FMAF(lv, p, x, x);
    float q = OPDI_FMAF(lv, 1.11483105e-5f, t, -0.000321903295f);
    q = OPDI_FMAF(lv, q, t, 0.00363849476f);
    q = OPDI_FMAF(lv, q, t, -0.023753006f);
    q = OPDI_FMAF(lv, q, t, 0.10622555f);
    q = OPDI_FMAF(lv, q, t, 0.635158658f);
    q = OPDI_FMAF(lv, q, t, 0.128646553f);
    q = 1.0f - opdi_exp1(lv, -OPDI_FMAF(lv, q, t, t));
    q = opdi_pick(x > 4.0f, 1.0f, q);
    p = opdi_pick(!(x >= 0.93f), p, q);
    return opdi_float(opdi_bits(p) | sign);
}

/* x = n pi/2 + r in double, |x| < 2^27; then the polynomial of the quadrant.  shift 0: sin, 1: cos. */
#define OPDI_TRIG_MAX 134217728.0f
OPDI_ALWAYS float opdi_trig1(int lv, float a, uint32_t shift) {
    double x = (double)a, t = x * 0.63661977236758134308 + 6755399441055744.0, k = t - 6755399441055744.0;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    uint32_t n = (uint32_t)bits + shift;
    float r = (float)((x - k * 1.57079631090164184570) - k * 1.58932547735281966916e-8), z = r * r;
    float s = OPDI_FMAF(lv, -0.000195164772f, z, 0.00833217241f);
    s = OPDI_FMAF(lv, s, z, -0.166666552f);
    s = OPDI_FMAF(lv, s, z * r, r);
    float c = OPDI_FMAF(lv, 2.44375278e-5f, z, -0.00138873595f);
    c = OPDI_FMAF(lv, c, z, 0.0416666456f);
    c = OPDI_FMAF(lv, c, z * z, OPDI_FMAF(lv, -0.5f, z, 1.0f));
    return opdi_float(opdi_bits(n & 1u ? c : s) ^ (n & 2u) << 30);
}
OPDI_ALWAYS float opdi_sin1(int lv, float a) { float y = opdi_trig1(lv, a, 0u); return a == 0.0f ? a : y; }
OPDI_ALWAYS float opdi_cos1(int lv, float a) { return opdi_trig1(lv, a, 1u); }

/* The functions: name of the vector form, element form. */
#define OPDI_VMATH_LIST(X) X(exp, 0) X(log, 1) X(log1p, 2) X(expm1, 3) X(tanh, 4) X(erf, 5) X(sin, 6) X(cos, 7) \
    X(sigmoid, 8)

/* o[0..n) = f(a[0..n)); o == a is allowed.  Each step goes through y, so its loop has no aliases. */
#define OPDI_VMATH_CASE(name, number) \
    case number: \
        for (int64_t i = 0; i < n; i += OPDI_VSTEP) { \
            float y[OPDI_VSTEP]; \
            for (int t = 0; t < OPDI_VSTEP; t++) y[t] = opdi_##name##1(lv, a[i + t]); \
            for (int t = 0; t < OPDI_VSTEP; t++) o[i + t] = y[t]; \
        } \
        break;
OPDI_ALWAYS void opdi_vmath_body(int lv, int f, int64_t n, float *o, const float *a) {
    switch (f) { OPDI_VMATH_LIST(OPDI_VMATH_CASE) default: break; }
}
static void opdi_vmath_plain(int f, int64_t n, float *o, const float *a) { opdi_vmath_body(0, f, n, o, a); }
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_vmath_avx2(int f, int64_t n, float *o, const float *a) { opdi_vmath_body(1, f, n, o, a); }
OPDI_AVX512 static void opdi_vmath_avx512(int f, int64_t n, float *o, const float *a) {
    opdi_vmath_body(2, f, n, o, a);
}
#endif

/* n is a multiple of OPDI_VSTEP */
static void opdi_vmath_steps(int f, int64_t n, float *o, const float *a) {
#if defined(OPDI_X86)
    int level = opdi_cpu_level();
    if (level == 2) { opdi_vmath_avx512(f, n, o, a); return; }
    if (level == 1) { opdi_vmath_avx2(f, n, o, a); return; }
#endif
    opdi_vmath_plain(f, n, o, a);
}

static void opdi_vmath(int f, int64_t n, float *o, const float *a) {
    int64_t whole = n & ~(int64_t)(OPDI_VSTEP - 1);
    if (whole) opdi_vmath_steps(f, whole, o, a);
    if (n > whole) {
        float x[OPDI_VSTEP] = {0}, y[OPDI_VSTEP];
        memcpy(x, a + whole, (size_t)(n - whole) * sizeof(float));
        opdi_vmath_steps(f, OPDI_VSTEP, y, x);
        memcpy(o + whole, y, (size_t)(n - whole) * sizeof(float));
    }
}

/* sin and cos: blocks that hold an element too large for the reduction are done again by the C library */
static void opdi_vtrig(int f, int64_t n, float *o, const float *a) {
    float x[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = OPDI_MIN(n - i, 256);
        uint32_t large = 0;
        if (m < 256) memset(x, 0, sizeof x);
        memcpy(x, a + i, (size_t)m * sizeof(float));
        for (int t = 0; t < 256; t++) large |= (opdi_bits(x[t]) & 0x7fffffffu) >= 0x4d000000u ? 1u : 0u;
        opdi_vmath(f, m, o + i, x);
        for (int64_t t = 0; large && t < m; t++)
            if (!(fabsf(x[t]) < OPDI_TRIG_MAX)) o[i + t] = f == 6 ? sinf(x[t]) : cosf(x[t]);
    }
}

static void opdi_vexp(int64_t n, float *o, const float *a) { opdi_vmath(0, n, o, a); }
static void opdi_vlog(int64_t n, float *o, const float *a) { opdi_vmath(1, n, o, a); }
static void opdi_vlog1p(int64_t n, float *o, const float *a) { opdi_vmath(2, n, o, a); }
static void opdi_vexpm1(int64_t n, float *o, const float *a) { opdi_vmath(3, n, o, a); }
static void opdi_vtanh(int64_t n, float *o, const float *a) { opdi_vmath(4, n, o, a); }
static void opdi_verf(int64_t n, float *o, const float *a) { opdi_vmath(5, n, o, a); }
static void opdi_vsin(int64_t n, float *o, const float *a) { opdi_vtrig(6, n, o, a); }
static void opdi_vcos(int64_t n, float *o, const float *a) { opdi_vtrig(7, n, o, a); }
static void opdi_vsigmoid(int64_t n, float *o, const float *a) { opdi_vmath(8, n, o, a); }

//-- matrix product ----------------------------------------------------------------------------------------------------
//
// C[m,n] = A[m,k] B[k,n] + beta C.  B is copied into panels of NR columns (a panel's row is contiguous), A into
// panels of MR rows unless its rows are contiguous already; a micro-kernel keeps an MR x NR tile of C in registers.
// k is never split among threads and its blocks depend on k only.

/* An operand.  `dtype`: that of C, or for float C also OPD_FLOAT16 and OPD_BFLOAT16.  rs, cs: strides in elements.
   With `pack` (B only) there is no data: it writes out[t * ld + j] = B[k0 + t, j0 + j] for t < kc, j < nc <= ld, and
   may write anything into the columns nc <= j < ld. */
typedef void (*opdi_pack_fn)(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out);
typedef struct opdi_gemm_in {
    const void *data;
    int dtype;
    int64_t rs, cs;
    opdi_pack_fn pack;
    void *ctx;
} opdi_gemm_in;

/* A tile: c[r * ldc + j] (+)= sum over t < kc of rows[r][t * csa] * b[t * ldb + j], r < MR, j < NR */
typedef void (*opdi_micro_fn)(int64_t kc, const void *const *rows, int64_t csa, const void *b, int64_t ldb, void *c,
                              int64_t ldc, int add);
typedef struct opdi_micro { opdi_micro_fn run; int64_t mr, nr; } opdi_micro;
#define OPDI_MAX_MR 8
#define OPDI_MAX_NR 32

#define OPDI_MICRO_PLAIN(name, T) \
    static void name(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb, void *cv, \
                     int64_t ldc, int add) { \
        const T *b = (const T *)bv; \
        T *c = (T *)cv, acc[4][8] = {{0}}; \
        for (int64_t t = 0; t < kc; t++, b += ldb) \
            for (int r = 0; r < 4; r++) { \
                T x = ((const T *)rows[r])[t * csa]; \
                for (int j = 0; j < 8; j++) acc[r][j] += x * b[j]; \
            } \
        for (int r = 0; r < 4; r++) \
            for (int j = 0; j < 8; j++) c[r * ldc + j] = add ? c[r * ldc + j] + acc[r][j] : acc[r][j]; \
    }
OPDI_MICRO_PLAIN(opdi_micro_f32_plain, float)
OPDI_MICRO_PLAIN(opdi_micro_f64_plain, double)

#if defined(OPDI_X86)
typedef float opdi_v8f __attribute__((vector_size(32), aligned(4), may_alias));
typedef float opdi_v16f __attribute__((vector_size(64), aligned(4), may_alias));
typedef double opdi_v4d __attribute__((vector_size(32), aligned(8), may_alias));
typedef double opdi_v8d __attribute__((vector_size(64), aligned(8), may_alias));

/* Assembly, because ISO mode (-std=c11) does not let the compiler contract a * b + c. */
#define OPDI_ASM_FMA(s, c, a, b) __asm__("vfmadd231" s " {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
#define OPDI_ASM_SPLAT(s, x, p) __asm__("vbroadcasts" s " {%1, %0|%0, %1}" : "=v"(x) : "m"(*(p)))
#define OPDI_ROWS6(M, T, V, s) M(0, T, V, s) M(1, T, V, s) M(2, T, V, s) M(3, T, V, s) M(4, T, V, s) M(5, T, V, s)
#define OPDI_ROWS8(M, T, V, s) OPDI_ROWS6(M, T, V, s) M(6, T, V, s) M(7, T, V, s)
#define OPDI_ROW_INIT(i, T, V, s) \
    const T *p##i = (const T *)rows[i]; \
    V c##i = {0}, d##i = {0};
#define OPDI_ROW_STEP(i, T, V, s) { \
        V x; \
        OPDI_ASM_SPLAT(s, x, p##i + at); \
        OPDI_ASM_FMA("p" s, c##i, x, b0); \
        OPDI_ASM_FMA("p" s, d##i, x, b1); \
    }
#define OPDI_ROW_STORE(i, T, V, s) { \
        V *q = (V *)(void *)(c + i * ldc), *q1 = (V *)(void *)(c + i * ldc + (int64_t)(sizeof(V) / sizeof(T))); \
        if (add) { c##i += *q; d##i += *q1; } \
        *q = c##i; \
        *q1 = d##i; \
    }
#define OPDI_MICRO(name, attribute, ROWS, T, V, s) \
    attribute static void name(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb, \
                               void *cv, int64_t ldc, int add) { \
        const T *b = (const T *)bv; \
        T *c = (T *)cv; \
        ROWS(OPDI_ROW_INIT, T, V, s) \
        for (int64_t t = 0, at = 0; t < kc; t++, at += csa, b += ldb) { \
            V b0 = *(const V *)(const void *)b, b1 = *(const V *)(const void *)(b + sizeof(V) / sizeof(T)); \
            ROWS(OPDI_ROW_STEP, T, V, s) \
        } \
        ROWS(OPDI_ROW_STORE, T, V, s) \
    }
OPDI_MICRO(opdi_micro_f32_avx2, OPDI_AVX2, OPDI_ROWS6, float, opdi_v8f, "s")
OPDI_MICRO(opdi_micro_f64_avx2, OPDI_AVX2, OPDI_ROWS6, double, opdi_v4d, "d")
OPDI_MICRO(opdi_micro_f32_avx512, OPDI_AVX512, OPDI_ROWS8, float, opdi_v16f, "s")
OPDI_MICRO(opdi_micro_f64_avx512, OPDI_AVX512, OPDI_ROWS8, double, opdi_v8d, "d")
#endif

static opdi_micro opdi_micro_of(size_t size) {
    opdi_micro mk = {size == 4 ? opdi_micro_f32_plain : opdi_micro_f64_plain, 4, 8};
#if defined(OPDI_X86)
    int level = opdi_cpu_level();
    if (level == 1) {
        mk.run = size == 4 ? opdi_micro_f32_avx2 : opdi_micro_f64_avx2;
        mk.mr = 6;
        mk.nr = size == 4 ? 16 : 8;
    } else if (level == 2) {
        mk.run = size == 4 ? opdi_micro_f32_avx512 : opdi_micro_f64_avx512;
        mk.mr = 8;
        mk.nr = size == 4 ? 32 : 16;
    }
#endif
    return mk;
}

static inline float opdi_gemm_load_f32(const opdi_gemm_in *in, int64_t at) {
    if (in->dtype == OPD_BFLOAT16) return opdi_bf16_to_f32(((const uint16_t *)in->data)[at]);
    if (in->dtype == OPD_FLOAT16) return opdi_f16_to_f32(((const uint16_t *)in->data)[at]);
    return ((const float *)in->data)[at];
}

/* Half precision to float, contiguous, in fixed steps */
static void opdi_widen(const uint16_t *p, int bf16, int64_t n, float *out) {
    int64_t j = 0;
    for (; bf16 && j + 16 <= n; j += 16) {
        float x[16];
        for (int l = 0; l < 16; l++) x[l] = opdi_bf16_to_f32(p[j + l]);
        for (int l = 0; l < 16; l++) out[j + l] = x[l];
    }
    for (; !bf16 && j + 16 <= n; j += 16) {
        float x[16];
        for (int l = 0; l < 16; l++) x[l] = opdi_f16_to_f32(p[j + l]);
        for (int l = 0; l < 16; l++) out[j + l] = x[l];
    }
    for (; j < n; j++) out[j] = bf16 ? opdi_bf16_to_f32(p[j]) : opdi_f16_to_f32(p[j]);
}

/* out[j] = in[j * stride] for j < n; half precision becomes float */
static void opdi_pack_line(const opdi_gemm_in *in, int64_t at, int64_t stride, int64_t n, void *out) {
    if (stride == 1 && (in->dtype == OPD_FLOAT32 || in->dtype == OPD_FLOAT64)) {
        size_t size = in->dtype == OPD_FLOAT32 ? 4 : 8;
        memcpy(out, (const char *)in->data + at * (int64_t)size, (size_t)n * size);
    } else if (in->dtype == OPD_FLOAT64) {
        const double *p = (const double *)in->data + at;
        for (int64_t j = 0; j < n; j++) ((double *)out)[j] = p[j * stride];
    } else if (in->dtype == OPD_FLOAT32) {
        const float *p = (const float *)in->data + at;
        for (int64_t j = 0; j < n; j++) ((float *)out)[j] = p[j * stride];
    } else if (stride == 1) {
        opdi_widen((const uint16_t *)in->data + at, in->dtype == OPD_BFLOAT16, n, (float *)out);
    } else {
        for (int64_t j = 0; j < n; j++) ((float *)out)[j] = opdi_gemm_load_f32(in, at + j * stride);
    }
}

#if defined(OPDI_X86)
typedef float opdi_v4f __attribute__((vector_size(16), aligned(4), may_alias));
typedef int opdi_v4i __attribute__((vector_size(16)));
#if defined(__clang__)
#define OPDI_MIX4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define OPDI_MIX4(a, b, i, j, k, l) __builtin_shuffle(a, b, mix_##i##j##k##l)
#endif
/* out[t * ld + j] = pj[t] for t, j < 4 */
static inline void opdi_transpose4(const float *p0, const float *p1, const float *p2, const float *p3, float *out,
                                   int64_t ld) {
#if !defined(__clang__)
    const opdi_v4i mix_0415 = {0, 4, 1, 5}, mix_2637 = {2, 6, 3, 7};
#endif
    opdi_v4f a = *(const opdi_v4f *)(const void *)p0, b = *(const opdi_v4f *)(const void *)p1;
    opdi_v4f c = *(const opdi_v4f *)(const void *)p2, d = *(const opdi_v4f *)(const void *)p3;
    opdi_v4f ac = OPDI_MIX4(a, c, 0, 4, 1, 5), ac2 = OPDI_MIX4(a, c, 2, 6, 3, 7);
    opdi_v4f bd = OPDI_MIX4(b, d, 0, 4, 1, 5), bd2 = OPDI_MIX4(b, d, 2, 6, 3, 7);
    *(opdi_v4f *)(void *)out = OPDI_MIX4(ac, bd, 0, 4, 1, 5);
    *(opdi_v4f *)(void *)(out + ld) = OPDI_MIX4(ac, bd, 2, 6, 3, 7);
    *(opdi_v4f *)(void *)(out + 2 * ld) = OPDI_MIX4(ac2, bd2, 0, 4, 1, 5);
    *(opdi_v4f *)(void *)(out + 3 * ld) = OPDI_MIX4(ac2, bd2, 2, 6, 3, 7);
}
#else
static inline void opdi_transpose4(const float *p0, const float *p1, const float *p2, const float *p3, float *out,
                                   int64_t ld) {
    for (int t = 0; t < 4; t++, out += ld) {
        out[0] = p0[t];
        out[1] = p1[t];
        out[2] = p2[t];
        out[3] = p3[t];
    }
}
#endif

/* Columns [0, n) of a float matrix whose columns are contiguous: out[t * ld + j] = in[j * cs + t] */
static void opdi_pack_turned(const float *in, int64_t cs, int64_t kc, int64_t n, int64_t ld, float *out) {
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        int64_t t = 0;
        for (; t + 4 <= kc; t += 4) {
            const float *p = in + j * cs + t;
            opdi_transpose4(p, p + cs, p + 2 * cs, p + 3 * cs, out + t * ld + j, ld);
        }
        for (; t < kc; t++)
            for (int i = 0; i < 4; i++) out[t * ld + j + i] = in[(j + i) * cs + t];
    }
    for (; j < n; j++)
        for (int64_t t = 0; t < kc; t++) out[t * ld + j] = in[j * cs + t];
}

/* The panel of columns [j0, j0 + n) and rows [k0, k0 + kc), ld wide; columns from n on become zero. */
static void opdi_pack_panel(const opdi_gemm_in *in, size_t size, int64_t k0, int64_t kc, int64_t j0, int64_t n,
                            int64_t ld, void *out) {
    char *o = (char *)out;
    size_t line = (size_t)ld * size;
    int64_t at = k0 * in->rs + j0 * in->cs;
    if (in->pack) { in->pack(in->ctx, k0, kc, j0, n, ld, out); return; }
    if (n < ld) memset(o, 0, line * (size_t)kc);
    if (in->rs == 1 && in->cs != 1 && in->dtype == OPD_FLOAT32) {
        opdi_pack_turned((const float *)in->data + at, in->cs, kc, n, ld, (float *)out);
    } else if (in->rs == 1 && in->cs != 1 && size == 4) {             /* half precision, 64 rows at a time */
        float wide[OPDI_MAX_NR * 64];
        for (int64_t t = 0; t < kc; t += 64) {
            int64_t m = OPDI_MIN(64, kc - t);
            for (int64_t j = 0; j < n; j++) opdi_pack_line(in, at + t + j * in->cs, 1, m, wide + j * 64);
            opdi_pack_turned(wide, 64, m, n, ld, (float *)out + t * ld);
        }
    } else if (in->cs == 1 && n == ld && (in->dtype == OPD_FLOAT32 || in->dtype == OPD_FLOAT64)) {
        const char *p = (const char *)in->data + at * (int64_t)size;
        int64_t step = in->rs * (int64_t)size;
        if (line == 128) for (int64_t t = 0; t < kc; t++) memcpy(o + t * 128, p + t * step, 128);
        else for (int64_t t = 0; t < kc; t++) memcpy(o + t * (int64_t)line, p + t * step, line);
    } else {
        for (int64_t t = 0; t < kc; t++) opdi_pack_line(in, at + t * in->rs, in->cs, n, o + t * (int64_t)line);
    }
}

typedef struct opdi_gemm_job {
    opdi_micro mk;
    size_t size;
    opdi_gemm_in a, b;                            /* a as its transpose: rs over k, cs over the rows */
    char *c;
    int64_t rsc, csc;
    int64_t i0, mc, j0, nc, k0, kc;               /* the block at work */
    int64_t mb, nb;                               /* rows and columns of a work item */
    char *apack, *bpack;                          /* NULL: read the operand where it is */
    int add;
} opdi_gemm_job;

static void opdi_gemm_pack_a(void *ctx, int64_t begin, int64_t end) {
    opdi_gemm_job *g = (opdi_gemm_job *)ctx;
    int64_t mr = g->mk.mr;
    for (int64_t p = begin; p < end; p++)
        opdi_pack_panel(&g->a, g->size, g->k0, g->kc, g->i0 + p * mr, OPDI_MIN(mr, g->mc - p * mr), mr,
                        g->apack + (size_t)(p * mr * g->kc) * g->size);
}

static void opdi_gemm_pack_b(void *ctx, int64_t begin, int64_t end) {
    opdi_gemm_job *g = (opdi_gemm_job *)ctx;
    int64_t nr = g->mk.nr, size = (int64_t)g->size;
    int plain = g->b.dtype == (size == 4 ? OPD_FLOAT32 : OPD_FLOAT64) && g->b.cs == 1 && !g->b.pack;
    if (plain && nr * size == 128)                /* eight panels at a time: longer runs of memory */
        for (; begin + 1 < end && (begin + 1) * nr <= g->nc; begin += 8) {
            int64_t panels = OPDI_MIN(OPDI_MIN(8, end - begin), g->nc / nr - begin);
            const char *p = (const char *)g->b.data + (g->k0 * g->b.rs + g->j0 + begin * nr) * size;
            char *o = g->bpack + begin * nr * g->kc * size;
            for (int64_t t = 0; t < g->kc; t++, p += g->b.rs * size, o += 128)
                for (int64_t q = 0; q < panels; q++) memcpy(o + q * g->kc * 128, p + q * 128, 128);
            if (panels < 8) { begin += panels; break; }
        }
    for (int64_t p = begin; p < end; p++)
        opdi_pack_panel(&g->b, g->size, g->k0, g->kc, g->j0 + p * nr, OPDI_MIN(nr, g->nc - p * nr), nr,
                        g->bpack + (size_t)(p * nr * g->kc) * g->size);
}

/* Adds or copies the part m x n of a tile to C. */
static void opdi_gemm_store(const opdi_gemm_job *g, const void *tile, int64_t i, int64_t j, int64_t m, int64_t n) {
    if (g->csc == 1 && !g->add) {
        for (int64_t r = 0; r < m; r++)
            memcpy(g->c + ((i + r) * g->rsc + j) * (int64_t)g->size,
                   (const char *)tile + r * g->mk.nr * (int64_t)g->size, (size_t)n * g->size);
        return;
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t q = 0; q < n; q++) {
            int64_t to = (i + r) * g->rsc + (j + q) * g->csc;
            if (g->size == 4) {
                float v = ((const float *)tile)[r * g->mk.nr + q], *c = (float *)(void *)g->c + to;
                *c = g->add ? *c + v : v;
            } else {
                double v = ((const double *)tile)[r * g->mk.nr + q], *c = (double *)(void *)g->c + to;
                *c = g->add ? *c + v : v;
            }
        }
}

/* The tiles of rows [i, i + m), at most MR, and of a column panel b */
static void opdi_gemm_tile(const opdi_gemm_job *g, int64_t i, int64_t j, int64_t n, const void *b, int64_t ldb) {
    double tile[OPDI_MAX_MR * OPDI_MAX_NR / 2];
    const void *rows[OPDI_MAX_MR];
    const opdi_micro *mk = &g->mk;
    int64_t m = OPDI_MIN(mk->mr, g->mc - i), csa = mk->mr, size = (int64_t)g->size;
    for (int64_t r = 0; r < mk->mr; r++) {
        int64_t row = OPDI_MIN(r, m - 1);         /* rows past the end compute what nobody reads */
        if (g->apack) rows[r] = g->apack + (i * g->kc + r) * size;
        else rows[r] = (const char *)g->a.data + ((g->i0 + i + row) * g->a.cs + g->k0 * g->a.rs) * size;
    }
    if (!g->apack) csa = g->a.rs;
    if (m == mk->mr && n == mk->nr && g->csc == 1) {
        mk->run(g->kc, rows, csa, b, ldb, g->c + ((g->i0 + i) * g->rsc + g->j0 + j) * size, g->rsc, g->add);
    } else {
        mk->run(g->kc, rows, csa, b, ldb, tile, mk->nr, 0);
        opdi_gemm_store(g, tile, g->i0 + i, g->j0 + j, m, n);
    }
}

/* Work items are blocks of mb x nb of C, by rows. */
static void opdi_gemm_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemm_job *g = (const opdi_gemm_job *)ctx;
    int64_t across = (g->nc - 1) / g->nb + 1, nr = g->mk.nr;
    for (int64_t w = begin; w < end; w++) {
        int64_t ib = w / across * g->mb, jb = w % across * g->nb;
        int64_t ie = OPDI_MIN(ib + g->mb, g->mc), je = OPDI_MIN(jb + g->nb, g->nc);
        for (int64_t j = jb; j < je; j += nr) {
            int64_t n = OPDI_MIN(nr, g->nc - j), ldb = nr;
            const char *b;
            if (g->bpack) {
                b = g->bpack + (size_t)(j * g->kc) * g->size;
            } else {
                ldb = g->b.rs;
                b = (const char *)g->b.data + (g->k0 * ldb + g->j0 + j) * (int64_t)g->size;
            }
            for (int64_t i = ib; i < ie; i += g->mk.mr) opdi_gemm_tile(g, i, j, n, b, ldb);
        }
    }
}

/* One block of C, m x n, k0 .. k0 + kc. */
static void opdi_gemm_block(opdi_gemm_job *g) {
    int64_t mr = g->mk.mr, nr = g->mk.nr, rows = (g->mc - 1) / mr + 1, cols = (g->nc - 1) / nr + 1;
    double work = (double)g->mc * (double)g->nc * (double)g->kc;
    int64_t threads = work < 1e6 ? 1 : opd_threads(), mp = 16, np = 8;
    while (threads > 1 && ((rows - 1) / mp + 1) * ((cols - 1) / np + 1) < 4 * threads && (mp > 2 || np > 1)) {
        if (mp > 2) mp /= 2;
        else np /= 2;
    }
    g->mb = mp * mr;
    g->nb = np * nr;
    if (g->apack) opdi_parallel_for(rows, threads > 1 ? OPDI_MAX(1, 16384 / (mr * g->kc)) : rows, opdi_gemm_pack_a, g);
    int64_t items = ((g->mc - 1) / g->mb + 1) * ((g->nc - 1) / g->nb + 1);
    opdi_parallel_for(items, threads > 1 ? 1 : items, opdi_gemm_blocks, g);
}

#define OPDI_GEMM_K 576                           /* a panel of B, K x NR, is 72 KiB of float at most */
#define OPDI_GEMM_N 1024
#define OPDI_GEMM_M 2048

static int64_t opdi_round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

static int opdi_gemm_blocked(opdi_gemm_job *g, int64_t m, int64_t n, int64_t k) {
    int64_t kparts = (k - 1) / OPDI_GEMM_K + 1, kstep = opdi_round_up((k - 1) / kparts + 1, 8);
    int64_t mr = g->mk.mr, nr = g->mk.nr, nstep = OPDI_MIN(opdi_round_up(n, nr), OPDI_GEMM_N);
    int64_t mstep = OPDI_MIN(opdi_round_up(m, mr), OPDI_GEMM_M / mr * mr), size = (int64_t)g->size;
    int same = g->a.dtype == (size == 4 ? OPD_FLOAT32 : OPD_FLOAT64) && g->a.rs == 1 &&
               (n < 512 || m < 256 || g->a.cs * size < 4096);     /* far rows compete for the same cache lines */
    int direct = !g->b.pack && g->b.dtype == (size == 4 ? OPD_FLOAT32 : OPD_FLOAT64) && g->b.cs == 1 &&
                 n % nr == 0 && n * k * size <= 32768;
    kstep = OPDI_MIN(kstep, k);
    size_t asize = same ? 0 : (size_t)(mstep * kstep * size), bsize = direct ? 0 : (size_t)(nstep * kstep * size);
    double small[512];                            /* 4 KiB: small products allocate nothing */
    char *buffer = (char *)small;
    if (asize + bsize + 64 > sizeof small) {
        buffer = (char *)opdi_alloc(asize + bsize + 64);
        if (!buffer) return -1;
    }
    char *at = buffer + (64 - ((uintptr_t)buffer & 63));
    int first = g->add;
    g->bpack = direct ? NULL : at;
    g->apack = same ? NULL : at + bsize;
    for (g->j0 = 0; g->j0 < n; g->j0 += nstep) {
        g->nc = OPDI_MIN(nstep, n - g->j0);
        for (g->k0 = 0; g->k0 < k; g->k0 += kstep) {
            g->kc = OPDI_MIN(kstep, k - g->k0);
            g->add = first || g->k0 > 0;
            int64_t panels = (g->nc - 1) / nr + 1, grain = OPDI_MAX(1, 16384 / (nr * g->kc));
            if (g->bpack) opdi_parallel_for(panels, (double)m * (double)n * (double)k < 1e6 ? panels : grain,
                                            opdi_gemm_pack_b, g);
            for (g->i0 = 0; g->i0 < m; g->i0 += mstep) {
                g->mc = OPDI_MIN(mstep, m - g->i0);
                opdi_gemm_block(g);
            }
        }
    }
    if (buffer != (char *)small) opdi_free(buffer, asize + bsize + 64);
    return 0;
}

/* C = beta C; beta == 0 does not read C */
static void opdi_gemm_scale(const opdi_gemm_job *g, int64_t m, int64_t n, double beta) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t at = i * g->rsc + j * g->csc;
            float *f = (float *)(void *)g->c + at;
            double *d = (double *)(void *)g->c + at;
            if (g->size == 4) *f = beta == 0 ? 0.0f : *f * (float)beta;
            else *d = beta == 0 ? 0.0 : *d * beta;
        }
}

/* Matrix times vector, y[m] += A[m,k] x[k], x contiguous; A by rows (dot products) or by columns (added up). */
#define OPDI_GEMV_COLS(T, S) \
    OPDI_ALWAYS void opdi_gemv_cols_##S(int64_t m, int64_t k, const T *a, int64_t cs, const T *x, T *y) { \
        for (int64_t t = 0; t < k; t += 4) { \
            int64_t c1 = t + 1 < k ? cs : 0, c2 = t + 2 < k ? 2 * cs : 0, c3 = t + 3 < k ? 3 * cs : 0; \
            T x0 = x[t], x1 = c1 ? x[t + 1] : 0, x2 = c2 ? x[t + 2] : 0, x3 = c3 ? x[t + 3] : 0; \
            const T *p = a + t * cs; \
            for (int64_t i = 0; i < m; i += 16) { \
                T z[16]; \
                for (int l = 0; l < 16; l++) \
                    z[l] = y[i + l] + ((x0 * p[i + l] + x1 * p[c1 + i + l]) + \
                                       (x2 * p[c2 + i + l] + x3 * p[c3 + i + l])); \
                for (int l = 0; l < 16; l++) y[i + l] = z[l]; \
            } \
        } \
    }
OPDI_GEMV_COLS(float, f32)
OPDI_GEMV_COLS(double, f64)

#define OPDI_DOT_PLAIN(T, S) \
    static T opdi_dot_##S(int64_t k, const T *a, const T *x) { \
        T s[16] = {0}, sum = 0; \
        int64_t t = 0; \
        for (; t + 16 <= k; t += 16) \
            for (int l = 0; l < 16; l++) s[l] += a[t + l] * x[t + l]; \
        for (int l = 0; l < 16; l++) sum += s[l]; \
        for (; t < k; t++) sum += a[t] * x[t]; \
        return sum; \
    }
OPDI_DOT_PLAIN(float, f32)
OPDI_DOT_PLAIN(double, f64)

#if defined(OPDI_X86)
#define OPDI_DOT(name, attribute, T, V) \
    attribute static T name(int64_t k, const T *a, const T *x) { \
        enum { W = (int)(sizeof(V) / sizeof(T)) }; \
        V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}; \
        T lanes[W], sum = 0; \
        int64_t t = 0; \
        for (; t + 4 * W <= k; t += 4 * W) { \
            const V *p = (const V *)(const void *)(a + t), *q = (const V *)(const void *)(x + t); \
            s0 += p[0] * q[0]; \
            s1 += p[1] * q[1]; \
            s2 += p[2] * q[2]; \
            s3 += p[3] * q[3]; \
        } \
        for (; t + W <= k; t += W) s0 += *(const V *)(const void *)(a + t) * *(const V *)(const void *)(x + t); \
        s0 = (s0 + s1) + (s2 + s3); \
        memcpy(lanes, &s0, sizeof lanes); \
        for (int w = W / 2; w > 0; w /= 2) \
            for (int l = 0; l < w; l++) lanes[l] += lanes[l + w]; \
        for (; t < k; t++) sum += a[t] * x[t]; \
        return lanes[0] + sum; \
    }
OPDI_DOT(opdi_dot_f32_avx2, OPDI_AVX2, float, opdi_v8f)
OPDI_DOT(opdi_dot_f64_avx2, OPDI_AVX2, double, opdi_v4d)
OPDI_DOT(opdi_dot_f32_avx512, OPDI_AVX512, float, opdi_v16f)
OPDI_DOT(opdi_dot_f64_avx512, OPDI_AVX512, double, opdi_v8d)
#endif

typedef struct opdi_gemv_job {
    size_t size;
    const char *a, *x;
    char *y;
    int64_t m, k, rs, cs, incy;
    int add;
} opdi_gemv_job;

OPDI_ALWAYS void opdi_gemv_cols(const opdi_gemv_job *g, int64_t i, int64_t m, void *y) {
    const void *a = g->a + i * g->rs * (int64_t)g->size, *x = g->x;
    if (g->size == 4) opdi_gemv_cols_f32(m, g->k, (const float *)a, g->cs, (const float *)x, (float *)y);
    else opdi_gemv_cols_f64(m, g->k, (const double *)a, g->cs, (const double *)x, (double *)y);
}
static void opdi_gemv_cols_plain(const opdi_gemv_job *g, int64_t i, int64_t m, void *y) { opdi_gemv_cols(g, i, m, y); }
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_gemv_cols_avx512(const opdi_gemv_job *g, int64_t i, int64_t m, void *y) {
    opdi_gemv_cols(g, i, m, y);
}
#endif

static void opdi_gemv_rows(const opdi_gemv_job *g, int64_t i, int64_t m, void *y) {
    float (*f32)(int64_t, const float *, const float *) = opdi_dot_f32;
    double (*f64)(int64_t, const double *, const double *) = opdi_dot_f64;
#if defined(OPDI_X86)
    int level = opdi_cpu_level();
    if (level == 1) { f32 = opdi_dot_f32_avx2; f64 = opdi_dot_f64_avx2; }
    if (level == 2) { f32 = opdi_dot_f32_avx512; f64 = opdi_dot_f64_avx512; }
#endif
    for (int64_t r = 0; r < m; r++) {
        const void *a = g->a + (i + r) * g->rs * (int64_t)g->size, *x = g->x;
        if (g->size == 4) ((float *)y)[r] = f32(g->k, (const float *)a, (const float *)x);
        else ((double *)y)[r] = f64(g->k, (const double *)a, (const double *)x);
    }
}

/* The last m < 16 rows of a matrix by columns */
static void opdi_gemv_rest(const opdi_gemv_job *g, int64_t i, int64_t m, void *y) {
    const void *a = g->a + i * g->rs * (int64_t)g->size, *x = g->x;
    for (int64_t t = 0; t < g->k; t++)
        for (int64_t r = 0; r < m; r++) {
            int64_t at = r * g->rs + t * g->cs;
            if (g->size == 4) ((float *)y)[r] += ((const float *)a)[at] * ((const float *)x)[t];
            else ((double *)y)[r] += ((const double *)a)[at] * ((const double *)x)[t];
        }
}

static void opdi_gemv_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemv_job *g = (const opdi_gemv_job *)ctx;
    double y[1024];
    int64_t step = g->size == 4 ? 2048 : 1024;
    for (int64_t i = begin; i < end; i += step) {
        int64_t m = OPDI_MIN(step, end - i), whole = m & ~(int64_t)15;
        memset(y, 0, (size_t)m * g->size);
        if (g->cs == 1) {
            opdi_gemv_rows(g, i, m, y);
        } else {
#if defined(OPDI_X86)
            (opdi_cpu_level() == 2 ? opdi_gemv_cols_avx512 : opdi_gemv_cols_plain)(g, i, whole, y);
#else
            opdi_gemv_cols_plain(g, i, whole, y);
#endif
            opdi_gemv_rest(g, i + whole, m - whole, (char *)y + (size_t)whole * g->size);
        }
        for (int64_t r = 0; r < m; r++) {
            int64_t to = (i + r) * g->incy;
            float *f = (float *)(void *)g->y + to;
            double *d = (double *)(void *)g->y + to;
            if (g->size == 4) *f = (g->add ? *f : 0.0f) + ((const float *)(void *)y)[r];
            else *d = (g->add ? *d : 0.0) + y[r];
        }
    }
}

/* Returns 1 when it has done the product, 0 when the shapes are not for it, -1 on failure. */
static int opdi_gemv_try(opdi_gemm_job *g, int64_t m, int64_t n, int64_t k) {
    int dtype = g->size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    opdi_gemv_job v;
    int64_t incx;
    if ((m != 1 && n != 1) || g->b.pack || g->a.dtype != dtype || g->b.dtype != dtype) return 0;
    v.size = g->size;
    v.y = g->c;
    v.add = g->add;
    v.k = k;
    if (n == 1) {
        v.a = (const char *)g->a.data; v.rs = g->a.cs; v.cs = g->a.rs; v.m = m; v.incy = g->rsc;
        v.x = (const char *)g->b.data; incx = g->b.rs;
    } else {
        v.a = (const char *)g->b.data; v.rs = g->b.cs; v.cs = g->b.rs; v.m = n; v.incy = g->csc;
        v.x = (const char *)g->a.data; incx = g->a.rs;
    }
    if (v.cs != 1 && v.rs != 1) return 0;
    char *copy = NULL;
    if (incx != 1) {
        opdi_gemm_in x = n == 1 ? g->b : g->a;
        copy = (char *)opdi_alloc((size_t)k * v.size);
        if (!copy) return -1;
        opdi_pack_line(&x, 0, incx, k, copy);
        v.x = copy;
    }
    int64_t grain = opdi_round_up(OPDI_MAX(16, 65536 / k), 16);
    opdi_parallel_for(v.m, grain, opdi_gemv_range, &v);
    if (copy) opdi_free(copy, (size_t)k * v.size);
    return 1;
}

/* A product so small that everything else costs more than it */
static void opdi_gemm_tiny(const opdi_gemm_job *g, int64_t m, int64_t n, int64_t k) {
    const float *a = (const float *)g->a.data, *b = (const float *)g->b.data;
    const double *x = (const double *)g->a.data, *y = (const double *)g->b.data;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t p = i * g->a.cs, q = j * g->b.cs, to = i * g->rsc + j * g->csc;
            float f = 0;
            double d = 0;
            if (g->size == 4) for (int64_t t = 0; t < k; t++) f += a[p + t * g->a.rs] * b[q + t * g->b.rs];
            else for (int64_t t = 0; t < k; t++) d += x[p + t * g->a.rs] * y[q + t * g->b.rs];
            float *c = (float *)(void *)g->c + to;
            double *z = (double *)(void *)g->c + to;
            if (g->size == 4) *c = g->add ? *c + f : f;
            else *z = g->add ? *z + d : d;
        }
}

/* C = A B + beta C in float (size 4) or double (size 8).  -1: no memory. */
static int opdi_gemm(size_t size, int64_t m, int64_t n, int64_t k, const opdi_gemm_in *a, const opdi_gemm_in *b,
                     double beta, void *c, int64_t rsc, int64_t csc) {
    opdi_gemm_job g;
    if (m <= 0 || n <= 0) return 0;
    memset(&g, 0, sizeof g);
    g.mk = opdi_micro_of(size);
    g.size = size;
    g.c = (char *)c;
    g.rsc = rsc;
    g.csc = csc;
    if (k <= 0 || (beta != 0 && beta != 1)) opdi_gemm_scale(&g, m, n, beta);
    if (k <= 0) return 0;
    g.add = beta != 0;
    if (!b->pack && csc != 1 && rsc == 1 && n != 1) {
        int64_t t = m;                            /* C^T = B^T A^T, so that rows of C are contiguous */
        m = n;
        n = t;
        g.rsc = csc;
        g.csc = rsc;
        g.a = *b;
        g.b = *a;
        t = g.b.rs;
        g.b.rs = g.b.cs;
        g.b.cs = t;
    } else {
        g.a = *a;
        g.a.rs = a->cs;
        g.a.cs = a->rs;
        g.b = *b;
    }
    int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    if (m <= 16 && n <= 16 && k <= 16 && m * n * k <= 256 && !b->pack && a->dtype == dtype && b->dtype == dtype) {
        opdi_gemm_tiny(&g, m, n, k);
        return 0;
    }
    int done = opdi_gemv_try(&g, m, n, k);
    if (done) return done < 0 ? -1 : 0;
    return opdi_gemm_blocked(&g, m, n, k);
}

static opdi_gemm_in opdi_gemm_in_of(const void *data, int dtype, int64_t rs, int64_t cs) {
    opdi_gemm_in in;
    in.data = data;
    in.dtype = dtype;
    in.rs = rs;
    in.cs = cs;
    in.pack = NULL;
    in.ctx = NULL;
    return in;
}

static int opdi_gemm_f32(int64_t m, int64_t n, int64_t k, const float *a, int64_t rsa, int64_t csa, const float *b,
                         int64_t rsb, int64_t csb, float beta, float *c, int64_t rsc, int64_t csc) {
    opdi_gemm_in x = opdi_gemm_in_of(a, OPD_FLOAT32, rsa, csa), y = opdi_gemm_in_of(b, OPD_FLOAT32, rsb, csb);
    return opdi_gemm(4, m, n, k, &x, &y, (double)beta, c, rsc, csc);
}

static int opdi_gemm_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t rsa, int64_t csa, const double *b,
                         int64_t rsb, int64_t csb, double beta, double *c, int64_t rsc, int64_t csc) {
    opdi_gemm_in x = opdi_gemm_in_of(a, OPD_FLOAT64, rsa, csa), y = opdi_gemm_in_of(b, OPD_FLOAT64, rsb, csb);
    return opdi_gemm(8, m, n, k, &x, &y, beta, c, rsc, csc);
}

/* Integers wrap. */
static int opdi_gemm_i64(int64_t m, int64_t n, int64_t k, const int64_t *a, int64_t rsa, int64_t csa,
                         const int64_t *b, int64_t rsb, int64_t csb, int64_t beta, int64_t *c, int64_t rsc,
                         int64_t csc) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            int64_t *to = c + i * rsc + j * csc;
            uint64_t s = beta == 0 ? 0 : (uint64_t)beta * (uint64_t)*to;
            for (int64_t t = 0; t < k; t++) s += (uint64_t)a[i * rsa + t * csa] * (uint64_t)b[t * rsb + j * csb];
            *to = (int64_t)s;
        }
    return 0;
}

//-- convolution -------------------------------------------------------------------------------------------------------
//
// Two dimensions, contiguous x [n, c, h, w], weight [oc, c / groups, kh, kw], y [n, oc, oh, ow]; one dimension is
// h = kh = 1.  Each image of a group is copied with its padding into a buffer; the unfolded matrix
// [c / groups * kh * kw, oh * ow] is never stored: packing for the matrix product reads the buffer.

typedef struct opdi_conv {
    size_t size;                                  /* 4: float, 8: double */
    int64_t n, c, h, w, oc, kh, kw, sh, sw, ph, pw, dh, dw, groups, oh, ow;
    int64_t cg, og, hp, wp;                       /* channels of a group; the padded image, as far as it is read */
} opdi_conv;

/* Fills in oh .. wp.  -1 with an error recorded where the sizes make no sense; the caller checks channels. */
static int opdi_conv_init(opdi_conv *v) {
    const int64_t big = (int64_t)1 << 31;
    if (v->kh < 1 || v->kw < 1 || v->sh < 1 || v->sw < 1 || v->dh < 1 || v->dw < 1 || v->ph < 0 || v->pw < 0 ||
        v->groups < 1 || v->kh >= big || v->kw >= big || v->dh >= big || v->dw >= big || v->ph >= big ||
        v->pw >= big || v->c % v->groups || v->oc % v->groups)
        return opd_fail(OPD_ERROR_ARGUMENT, "convolution: stride, padding, dilation or groups out of range");
    int64_t rows = v->h + 2 * v->ph - v->dh * (v->kh - 1) - 1, cols = v->w + 2 * v->pw - v->dw * (v->kw - 1) - 1;
    if (rows < 0 || cols < 0) return opd_fail(OPD_ERROR_SHAPE, "convolution: kernel larger than the padded input");
    v->oh = rows / v->sh + 1;
    v->ow = cols / v->sw + 1;
    v->cg = v->c / v->groups;
    v->og = v->oc / v->groups;
    v->hp = (v->oh - 1) * v->sh + (v->kh - 1) * v->dh + 1;
    v->wp = (v->ow - 1) * v->sw + (v->kw - 1) * v->dw + 1;
    if ((double)v->hp * (double)v->wp * (double)(v->cg + 1) > 1e15)
        return opd_fail(OPD_ERROR_MEMORY, "convolution: the padded input is too large");
    return 0;
}

#define OPDI_CONV_SLACK 64                        /* elements behind a buffer that packing may read or write */

/* dst [planes, hp, wp], zero at first, from x [planes, h, w] (back = 0), or x += dst without the padding (back = 1);
   the padding stays zero from image to image */
static void opdi_conv_pad(const opdi_conv *v, int64_t planes, char *dst, char *x, int back) {
    int64_t size = (int64_t)v->size, left = OPDI_MIN(v->pw, v->wp), cols = OPDI_MIN(v->w, v->wp - left);
    for (int64_t p = 0; p < planes; p++)
        for (int64_t y = 0; y < v->hp; y++) {
            char *d = dst + (p * v->hp + y) * v->wp * size, *s = x + (p * v->h + y - v->ph) * v->w * size;
            int inside = y >= v->ph && y - v->ph < v->h && cols > 0;
            if (back) {
                for (int64_t i = 0; inside && i < cols; i++)
                    if (size == 4) ((float *)(void *)s)[i] += ((float *)(void *)d)[left + i];
                    else ((double *)(void *)s)[i] += ((double *)(void *)d)[left + i];
                continue;
            }
            if (inside) memcpy(d + left * size, s, (size_t)(cols * size));
        }
}

static int64_t opdi_conv_pad_bytes(const opdi_conv *v, int64_t planes) {
    return (planes * v->hp * v->wp + OPDI_CONV_SLACK) * (int64_t)v->size;
}

typedef struct opdi_unfold { const opdi_conv *v; const char *pad; } opdi_unfold;

/* Where row k of the unfolded matrix begins in the padded image, in elements */
static inline int64_t opdi_unfold_row(const opdi_conv *v, int64_t k) {
    int64_t kj = k % v->kw, ki = k / v->kw % v->kh, c = k / v->kw / v->kh;
    return (c * v->hp + ki * v->dh) * v->wp + kj * v->dw;
}

/* Packs rows k and columns j of the unfolded matrix.  A panel is a few runs along output rows; with stride 1 each is
   copied at full panel width, and what it writes too much the next run, or the next row, overwrites. */
static void opdi_unfold_pack(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out) {
    const opdi_unfold *u = (const opdi_unfold *)ctx;
    const opdi_conv *v = u->v;
    int64_t to[OPDI_MAX_NR], from[OPDI_MAX_NR], size = (int64_t)v->size, line = ld * size;
    int runs = 0;
    for (int64_t j = 0; j < nc; runs++) {
        int64_t y = (j0 + j) / v->ow, x = (j0 + j) % v->ow, len = v->sw == 1 ? OPDI_MIN(v->ow - x, nc - j) : 1;
        to[runs] = j * size;
        from[runs] = (y * v->sh * v->wp + x * v->sw) * size;
        j += len;
    }
    int64_t kj = k0 % v->kw, ki = k0 / v->kw % v->kh, c = k0 / v->kw / v->kh;
    for (int64_t t = 0; t < kc; t++) {
        const char *p = u->pad + ((c * v->hp + ki * v->dh) * v->wp + kj * v->dw) * size;
        char *o = (char *)out + t * line;
        if (++kj == v->kw) {
            kj = 0;
            if (++ki == v->kh) { ki = 0; c++; }
        }
        if (v->sw != 1 && size == 4) {
            for (int r = 0; r < runs; r++) memcpy(o + r * 4, p + from[r], 4);
        } else if (v->sw != 1) {
            for (int r = 0; r < runs; r++) memcpy(o + r * 8, p + from[r], 8);
        } else if (t + 1 < kc && line == 128) {
            for (int r = 0; r < runs; r++) memcpy(o + to[r], p + from[r], 128);
        } else if (t + 1 < kc && line == 64) {
            for (int r = 0; r < runs; r++) memcpy(o + to[r], p + from[r], 64);
        } else {
            for (int r = 0; r < runs; r++) memcpy(o + to[r], p + from[r], (size_t)(line - to[r]));
        }
    }
}

/* The same matrix turned: rows are output positions, columns are k. */
static void opdi_unfold_pack_turned(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out) {
    const opdi_unfold *u = (const opdi_unfold *)ctx;
    const opdi_conv *v = u->v;
    int64_t at[OPDI_MAX_NR];
    for (int64_t j = 0; j < nc; j++) at[j] = opdi_unfold_row(v, j0 + j);
    for (int64_t j = nc; j < ld; j++) at[j] = at[0];
    int64_t y = k0 / v->ow, x = k0 % v->ow;
    for (int64_t t = 0; t < kc;) {
        int64_t p = y * v->sh * v->wp + x * v->sw, step = 1;
        if (v->size == 4) {
            const float *s = (const float *)(const void *)u->pad + p;
            float *o = (float *)out + t * ld;
            if (v->sw == 1 && t + 4 <= kc && x + 4 <= v->ow) step = 4;
            for (int64_t j = 0; step == 4 && j < ld; j += 4)
                opdi_transpose4(s + at[j], s + at[j + 1], s + at[j + 2], s + at[j + 3], o + j, ld);
            for (int64_t j = 0; step == 1 && j < ld; j++) o[j] = s[at[j]];
        } else {
            const double *s = (const double *)(const void *)u->pad + p;
            for (int64_t j = 0; j < ld; j++) ((double *)out)[t * ld + j] = s[at[j]];
        }
        t += step;
        x += step;
        if (x >= v->ow) { x = 0; y++; }
    }
}

typedef struct opdi_conv_job {
    opdi_conv v;
    const char *x, *w, *bias, *gy;                /* inputs */
    char *y, *gx, *gw;                            /* results */
    int64_t parts;                                /* of the batch, each with a weight gradient of its own */
    int failed;
} opdi_conv_job;

static inline double opdi_number_at(size_t size, const void *p, int64_t i) {
    return size == 4 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

static void opdi_conv_fill(const opdi_conv_job *g, int64_t group, void *y) {
    int64_t area = g->v.oh * g->v.ow;
    for (int64_t o = 0; o < g->v.og; o++) {
        double b = opdi_number_at(g->v.size, g->bias, group * g->v.og + o);
        for (int64_t i = o * area; i < (o + 1) * area; i++)
            if (g->v.size == 4) ((float *)y)[i] = (float)b;
            else ((double *)y)[i] = b;
    }
}

/* One output plane of a depthwise convolution, rows in steps of 16: y[16] = sum over taps of w * x[16] */
#define OPDI_DEPTHWISE(T, S) \
    static void opdi_depthwise_##S(const opdi_conv *v, const T *pad, const T *w, T bias, T *y) { \
        for (int64_t i = 0; i < v->oh; i++) \
            for (int64_t j = 0; j < v->ow; j += 16) { \
                T acc[16]; \
                int64_t n = OPDI_MIN(v->ow - j, 16), sw = v->sw; \
                for (int l = 0; l < 16; l++) acc[l] = bias; \
                for (int64_t ki = 0; ki < v->kh; ki++) \
                    for (int64_t kj = 0; kj < v->kw; kj++) { \
                        T f = w[ki * v->kw + kj]; \
                        const T *p = pad + (i * v->sh + ki * v->dh) * v->wp + j * sw + kj * v->dw; \
                        if (sw == 1) for (int l = 0; l < 16; l++) acc[l] += f * p[l]; \
                        else for (int64_t l = 0; l < n; l++) acc[l] += f * p[l * sw]; \
                    } \
                memcpy(y + i * v->ow + j, acc, (size_t)n * sizeof(T)); \
            } \
    }
OPDI_DEPTHWISE(float, f32)
OPDI_DEPTHWISE(double, f64)

/* Depthwise weight gradient of one plane: gw[ki, kj] += sum of gy * x */
#define OPDI_DEPTHWISE_GW(T, S) \
    static void opdi_depthwise_gw_##S(const opdi_conv *v, const T *pad, const T *gy, T *gw) { \
        for (int64_t ki = 0; ki < v->kh; ki++) \
            for (int64_t kj = 0; kj < v->kw; kj++) { \
                T acc[16] = {0}; \
                for (int64_t i = 0; i < v->oh; i++) { \
                    const T *q = gy + i * v->ow, *p = pad + (i * v->sh + ki * v->dh) * v->wp + kj * v->dw; \
                    for (int64_t j = 0; j < v->ow; j++) acc[j & 15] += q[j] * p[j * v->sw]; \
                } \
                for (int l = 0; l < 16; l++) gw[ki * v->kw + kj] += acc[l]; \
            } \
    }
OPDI_DEPTHWISE_GW(float, f32)
OPDI_DEPTHWISE_GW(double, f64)

#if defined(OPDI_X86)
typedef int opdi_v8i __attribute__((vector_size(32), aligned(4), may_alias));
typedef int opdi_v16i __attribute__((vector_size(64), aligned(4), may_alias));
#define OPDI_MAX_TAPS 32
/* Both for float with stride 1, with vectors V (M: as integers) and at most OPDI_MAX_TAPS taps. */
#define OPDI_DEPTHWISE_VECTOR(S, attribute, V, M) \
    attribute static void opdi_depthwise_##S(const opdi_conv *v, const float *pad, const float *w, float bias, \
                                             float *y) { \
        enum { W = (int)(sizeof(V) / sizeof(float)) }; \
        for (int64_t i = 0; i < v->oh; i++) \
            for (int64_t j = 0; j < v->ow; j += W) { \
                V acc = {0}; \
                const float *f = w; \
                acc += bias; \
                for (int64_t ki = 0; ki < v->kh; ki++) { \
                    const float *p = pad + (i + ki * v->dh) * v->wp + j; \
                    for (int64_t kj = 0; kj < v->kw; kj++, p += v->dw) acc += *f++ * *(const V *)(const void *)p; \
                } \
                if (v->ow - j >= W) *(V *)(void *)(y + i * v->ow + j) = acc; \
                else memcpy(y + i * v->ow + j, &acc, (size_t)(v->ow - j) * sizeof(float)); \
            } \
    } \
    attribute static void opdi_depthwise_gw_##S(const opdi_conv *v, const float *pad, const float *gy, float *gw) { \
        enum { W = (int)(sizeof(V) / sizeof(float)) }; \
        V acc[OPDI_MAX_TAPS]; \
        int bits[W]; \
        M mask; \
        memset(acc, 0, sizeof acc); \
        for (int l = 0; l < W; l++) bits[l] = l < v->ow % W ? -1 : 0; \
        memcpy(&mask, bits, sizeof mask); \
        for (int64_t i = 0; i < v->oh; i++) \
            for (int64_t j = 0; j < v->ow; j += W) { \
                V q = {0}, *to = acc; \
                int whole = v->ow - j >= W; \
                if (whole) q = *(const V *)(const void *)(gy + i * v->ow + j); \
                else memcpy(&q, gy + i * v->ow + j, (size_t)(v->ow - j) * sizeof(float)); \
                for (int64_t ki = 0; ki < v->kh; ki++) { \
                    const float *p = pad + (i + ki * v->dh) * v->wp + j; \
                    for (int64_t kj = 0; kj < v->kw; kj++, p += v->dw) { \
                        V x = *(const V *)(const void *)p; \
                        *to++ += q * (whole ? x : (V)((M)x & mask)); \
                    } \
                } \
            } \
        for (int64_t t = 0; t < v->kh * v->kw; t++) \
            for (int l = 0; l < W; l++) gw[t] += acc[t][l]; \
    }
OPDI_DEPTHWISE_VECTOR(avx2, OPDI_AVX2, opdi_v8f, opdi_v8i)
OPDI_DEPTHWISE_VECTOR(avx512, OPDI_AVX512, opdi_v16f, opdi_v16i)
#endif

static void opdi_conv_depthwise(const opdi_conv_job *g, int64_t group, const char *pad, char *y) {
    const opdi_conv *v = &g->v;
    double b = g->bias ? opdi_number_at(v->size, g->bias, group) : 0;
    const void *w = g->w + group * v->kh * v->kw * (int64_t)v->size, *p = pad;
    void *o = y;
    if (v->size == 8) { opdi_depthwise_f64(v, (const double *)p, (const double *)w, b, (double *)o); return; }
#if defined(OPDI_X86)
    int level = v->sh == 1 && v->sw == 1 ? opdi_cpu_level() : 0;
    if (level) {
        (level == 2 ? opdi_depthwise_avx512 : opdi_depthwise_avx2)(v, (const float *)p, (const float *)w, (float)b,
                                                                  (float *)o);
        return;
    }
#endif
    opdi_depthwise_f32(v, (const float *)p, (const float *)w, (float)b, (float *)o);
}

static void opdi_conv_depthwise_gw(const opdi_conv *v, const void *pad, const void *gy, void *gw) {
    if (v->size == 8) { opdi_depthwise_gw_f64(v, (const double *)pad, (const double *)gy, (double *)gw); return; }
#if defined(OPDI_X86)
    int level = v->sh == 1 && v->sw == 1 && v->kh * v->kw <= OPDI_MAX_TAPS ? opdi_cpu_level() : 0;
    if (level) {
        (level == 2 ? opdi_depthwise_gw_avx512 : opdi_depthwise_gw_avx2)(v, (const float *)pad, (const float *)gy,
                                                                        (float *)gw);
        return;
    }
#endif
    opdi_depthwise_gw_f32(v, (const float *)pad, (const float *)gy, (float *)gw);
}

/* Forward: items are (image, group). */
static void opdi_conv_forward_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_job *g = (opdi_conv_job *)ctx;
    const opdi_conv *v = &g->v;
    int64_t size = (int64_t)v->size, k = v->cg * v->kh * v->kw, area = v->oh * v->ow;
    int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    int plain = v->kh == 1 && v->kw == 1 && v->sh == 1 && v->sw == 1 && v->ph == 0 && v->pw == 0;
    size_t bytes = plain ? 16 : (size_t)opdi_conv_pad_bytes(v, v->cg);
    char *pad = (char *)opdi_alloc(bytes);
    if (!pad) { OPDI_STORE(&g->failed, 1); return; }
    memset(pad, 0, bytes);
    for (int64_t i = begin; i < end; i++) {
        int64_t group = i % v->groups;
        const char *x = g->x + i * v->cg * v->h * v->w * size;
        char *y = g->y + i * v->og * area * size;
        opdi_unfold u;
        u.v = v;
        u.pad = pad;
        opdi_gemm_in a = opdi_gemm_in_of(g->w + group * v->og * k * size, dtype, k, 1);
        opdi_gemm_in b = opdi_gemm_in_of(x, dtype, area, 1);
        if (!plain) {
            opdi_conv_pad(v, v->cg, pad, (char *)(uintptr_t)x, 0);
            if (v->cg == 1 && v->og == 1) { opdi_conv_depthwise(g, group, pad, y); continue; }
            b.pack = opdi_unfold_pack;
            b.ctx = &u;
        }
        if (g->bias) opdi_conv_fill(g, group, y);
        if (opdi_gemm(v->size, v->og, area, k, &a, &b, g->bias ? 1.0 : 0.0, y, area, 1)) OPDI_STORE(&g->failed, 1);
    }
    opdi_free(pad, bytes);
}

static int opdi_conv_done(const opdi_conv_job *g) {
    return OPDI_LOAD(&g->failed) ? opd_fail(OPD_ERROR_MEMORY, "convolution: out of memory") : 0;
}

/* y = conv(x, w) + bias; bias [oc] or NULL.  `v` from opdi_conv_init. */
static int opdi_conv_forward(const opdi_conv *v, const void *x, const void *w, const void *bias, void *y) {
    opdi_conv_job g;
    memset(&g, 0, sizeof g);
    g.v = *v;
    g.x = (const char *)x;
    g.w = (const char *)w;
    g.bias = (const char *)bias;
    g.y = (char *)y;
    opdi_parallel_for(v->n * v->groups, 1, opdi_conv_forward_range, &g);
    return opdi_conv_done(&g);
}

/* The gradient of x by folding: the unfolded gradient w^T gy is added back into the padded image. */
static void opdi_fold_add(const opdi_conv *v, const char *col, int64_t y0, int64_t rows, char *pad) {
    int64_t k = v->cg * v->kh * v->kw;
    for (int64_t t = 0; t < k; t++)
        for (int64_t y = 0; y < rows; y++) {
            int64_t to = opdi_unfold_row(v, t) + (y0 + y) * v->sh * v->wp, from = (t * rows + y) * v->ow;
            if (v->size == 4) {
                float *d = (float *)(void *)pad + to;
                const float *s = (const float *)(const void *)col + from;
                for (int64_t x = 0; x < v->ow; x++) d[x * v->sw] += s[x];
            } else {
                double *d = (double *)(void *)pad + to;
                const double *s = (const double *)(const void *)col + from;
                for (int64_t x = 0; x < v->ow; x++) d[x * v->sw] += s[x];
            }
        }
}

static void opdi_conv_fold_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_job *g = (opdi_conv_job *)ctx;
    const opdi_conv *v = &g->v;
    int64_t size = (int64_t)v->size, k = v->cg * v->kh * v->kw, area = v->oh * v->ow;
    int64_t step = OPDI_MAX(1, OPDI_MIN(v->oh, 65536 / OPDI_MAX(1, k * v->ow)));
    int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    size_t pad_bytes = (size_t)opdi_conv_pad_bytes(v, v->cg), bytes = pad_bytes + (size_t)(k * step * v->ow * size);
    char *pad = (char *)opdi_alloc(bytes), *col;
    if (!pad) { OPDI_STORE(&g->failed, 1); return; }
    col = pad + pad_bytes;
    for (int64_t i = begin; i < end; i++) {
        const char *gy = g->gy + i * v->og * area * size;
        char *gx = g->gx + i * v->cg * v->h * v->w * size;
        memset(pad, 0, pad_bytes);
        for (int64_t y = 0; y < v->oh; y += step) {
            int64_t rows = OPDI_MIN(step, v->oh - y), n = rows * v->ow;
            opdi_gemm_in a = opdi_gemm_in_of(g->w + i % v->groups * v->og * k * size, dtype, 1, k);
            opdi_gemm_in b = opdi_gemm_in_of(gy + y * v->ow * size, dtype, area, 1);
            if (opdi_gemm(v->size, k, n, v->og, &a, &b, 0, col, n, 1)) OPDI_STORE(&g->failed, 1);
            else opdi_fold_add(v, col, y, rows, pad);
        }
        memset(gx, 0, (size_t)(v->cg * v->h * v->w * size));
        opdi_conv_pad(v, v->cg, pad, gx, 1);
    }
    opdi_free(pad, bytes);
}

/* w [groups * og, cg, kh, kw] to [groups * cg, og, kh, kw] with the taps reversed */
static void opdi_conv_flip(const opdi_conv *v, const char *w, char *out) {
    int64_t taps = v->kh * v->kw, size = (int64_t)v->size;
    for (int64_t g = 0; g < v->groups; g++)
        for (int64_t o = 0; o < v->og; o++)
            for (int64_t c = 0; c < v->cg; c++)
                for (int64_t t = 0; t < taps; t++)
                    memcpy(out + (((g * v->cg + c) * v->og + o) * taps + taps - 1 - t) * size,
                           w + (((g * v->og + o) * v->cg + c) * taps + t) * size, (size_t)size);
}

/* gx from gy and w.  With stride 1, and channels enough for the product, it is a convolution of gy with the
   flipped weight. */
static int opdi_conv_grad_input(const opdi_conv *v, const void *gy, const void *w, void *gx) {
    opdi_conv_job g;
    int64_t ph = v->dh * (v->kh - 1) - v->ph, pw = v->dw * (v->kw - 1) - v->pw;
    if (v->n <= 0 || v->c <= 0 || v->h <= 0 || v->w <= 0) return 0;
    if (v->sh == 1 && v->sw == 1 && ph >= 0 && pw >= 0 && (v->cg >= 8 || v->og == 1)) {
        opdi_conv f = *v;
        size_t bytes = (size_t)(v->oc * v->cg * v->kh * v->kw) * v->size;
        f.c = v->oc; f.h = v->oh; f.w = v->ow; f.oc = v->c; f.ph = ph; f.pw = pw;
        if (opdi_conv_init(&f)) return -1;
        char *turned = (char *)opdi_alloc(bytes);
        if (!turned) return -1;
        opdi_conv_flip(v, (const char *)w, turned);
        int r = opdi_conv_forward(&f, gy, turned, NULL, gx);
        opdi_free(turned, bytes);
        return r;
    }
    memset(&g, 0, sizeof g);
    g.v = *v;
    g.gy = (const char *)gy;
    g.w = (const char *)w;
    g.gx = (char *)gx;
    opdi_parallel_for(v->n * v->groups, 1, opdi_conv_fold_range, &g);
    return opdi_conv_done(&g);
}

/* Weight gradient: items are (part of the batch, group). */
static void opdi_conv_gw_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_job *g = (opdi_conv_job *)ctx;
    const opdi_conv *v = &g->v;
    int64_t size = (int64_t)v->size, k = v->cg * v->kh * v->kw, area = v->oh * v->ow;
    int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    size_t bytes = (size_t)opdi_conv_pad_bytes(v, v->cg);
    char *pad = (char *)opdi_alloc(bytes);
    if (!pad) { OPDI_STORE(&g->failed, 1); return; }
    memset(pad, 0, bytes);
    for (int64_t i = begin; i < end; i++) {
        int64_t part = i / v->groups, group = i % v->groups;
        char *gw = g->gw + (part * v->groups + group) * v->og * k * size;
        memset(gw, 0, (size_t)(v->og * k * size));
        for (int64_t n = v->n * part / g->parts; n < v->n * (part + 1) / g->parts; n++) {
            const char *gy = g->gy + (n * v->groups + group) * v->og * area * size;
            opdi_unfold u;
            u.v = v;
            u.pad = pad;
            opdi_conv_pad(v, v->cg, pad,
                          (char *)(uintptr_t)(g->x + (n * v->groups + group) * v->cg * v->h * v->w * size), 0);
            if (v->cg == 1 && v->og == 1) {
                opdi_conv_depthwise_gw(v, pad, gy, gw);
                continue;
            }
            opdi_gemm_in a = opdi_gemm_in_of(gy, dtype, area, 1), b = opdi_gemm_in_of(NULL, dtype, 0, 0);
            b.pack = opdi_unfold_pack_turned;
            b.ctx = &u;
            if (opdi_gemm(v->size, v->og, k, area, &a, &b, 1, gw, k, 1)) OPDI_STORE(&g->failed, 1);
        }
    }
    opdi_free(pad, bytes);
}

/* gw from gy and x.  The batch is cut into a number of parts that depends on the sizes only, summed in order. */
static int opdi_conv_grad_weight(const opdi_conv *v, const void *gy, const void *x, void *gw) {
    opdi_conv_job g;
    int64_t count = v->oc * v->cg * v->kh * v->kw, size = (int64_t)v->size;
    if (count <= 0) return 0;
    memset(&g, 0, sizeof g);
    g.v = *v;
    g.gy = (const char *)gy;
    g.x = (const char *)x;
    g.parts = OPDI_MAX(1, OPDI_MIN(OPDI_MIN(v->n, 8), ((int64_t)16 << 20) / (count * size)));
    size_t bytes = (size_t)(g.parts * count * size);
    g.gw = g.parts == 1 ? (char *)gw : (char *)opdi_alloc(bytes);
    if (!g.gw) return -1;
    opdi_parallel_for(g.parts * v->groups, 1, opdi_conv_gw_range, &g);
    if (g.parts > 1) {
        memcpy(gw, g.gw, (size_t)(count * size));
        for (int64_t p = 1; p < g.parts; p++)
            for (int64_t i = 0; i < count; i++)
                if (size == 4) ((float *)gw)[i] += ((float *)(void *)g.gw)[p * count + i];
                else ((double *)gw)[i] += ((double *)(void *)g.gw)[p * count + i];
        opdi_free(g.gw, bytes);
    }
    return opdi_conv_done(&g);
}

//-- random numbers ----------------------------------------------------------------------------------------------------
//
// Philox 4x32-10 (Salmon et al., 2011): each element depends on the key and its index only.

static void opdi_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]) {
    uint32_t a = (uint32_t)counter_lo, b = (uint32_t)(counter_lo >> 32), c = (uint32_t)counter_hi;
    uint32_t d = (uint32_t)(counter_hi >> 32), k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        uint64_t x = (uint64_t)a * 0xd2511f53u, y = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(y >> 32) ^ b ^ k0;
        b = (uint32_t)y;
        c = (uint32_t)(x >> 32) ^ d ^ k1;
        d = (uint32_t)x;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* Sixteen counters at once: out[4 * i + q] = word q of counter lo + i */
OPDI_ALWAYS void opdi_philox16_body(uint64_t key, uint64_t lo, uint32_t out[64]) {
    uint32_t a[16], b[16], c[16], d[16], k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 16; i++) {
        a[i] = (uint32_t)(lo + (uint64_t)i);
        b[i] = (uint32_t)((lo + (uint64_t)i) >> 32);
        c[i] = d[i] = 0;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u)
        for (int i = 0; i < 16; i++) {
            uint64_t x = (uint64_t)a[i] * 0xd2511f53u, y = (uint64_t)c[i] * 0xcd9e8d57u;
            a[i] = (uint32_t)(y >> 32) ^ b[i] ^ k0;
            b[i] = (uint32_t)y;
            c[i] = (uint32_t)(x >> 32) ^ d[i] ^ k1;
            d[i] = (uint32_t)x;
        }
    for (int i = 0; i < 16; i++) {
        out[4 * i] = a[i];
        out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i];
        out[4 * i + 3] = d[i];
    }
}
static void opdi_philox16_plain(uint64_t key, uint64_t lo, uint32_t out[64]) { opdi_philox16_body(key, lo, out); }
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_philox16_avx512(uint64_t key, uint64_t lo, uint32_t out[64]) {
    opdi_philox16_body(key, lo, out);
}
#endif
static void opdi_philox16(uint64_t key, uint64_t lo, uint32_t out[64]) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() == 2) { opdi_philox16_avx512(key, lo, out); return; }
#endif
    opdi_philox16_plain(key, lo, out);
}

/* [0, 1): 24 bits */
static void opdi_uniform_f32(const uint32_t r[64], float o[64]) {
    for (int i = 0; i < 64; i++) o[i] = (float)(int32_t)(r[i] >> 8) * 5.9604644775390625e-8f;
}
/* [0, 1): 53 bits of two words */
static void opdi_uniform_f64(const uint32_t r[64], double o[32]) {
    for (int i = 0; i < 32; i++)
        o[i] = (double)(((uint64_t)r[2 * i + 1] << 32 | r[2 * i]) >> 11) * 1.1102230246251565404e-16;
}
/* Box and Muller: two words make sqrt(-2 log u) times (cos 2 pi v, sin 2 pi v), u in (0, 1] */
static void opdi_normal_f32(const uint32_t r[64], float o[64]) {
    float u[32], v[32], s[32];
    for (int i = 0; i < 32; i++) {
        u[i] = (float)(int32_t)(r[2 * i] >> 8) * 5.9604644775390625e-8f + 2.98023223876953125e-8f;
        v[i] = (float)(int32_t)(r[2 * i + 1] >> 8) * 3.7450704e-7f;
    }
    opdi_vlog(32, u, u);
    opdi_vmath(6, 32, s, v);
    opdi_vmath(7, 32, v, v);
    for (int i = 0; i < 32; i++) {
        float radius = sqrtf(-2.0f * u[i]);
        o[2 * i] = radius * v[i];
        o[2 * i + 1] = radius * s[i];
    }
}
static void opdi_normal_f64(const uint32_t r[64], double o[32]) {
    opdi_uniform_f64(r, o);
    for (int i = 0; i < 32; i += 2) {
        double radius = sqrt(-2.0 * log(1.0 - o[i])), angle = 6.28318530717958647693 * o[i + 1];
        o[i] = radius * cos(angle);
        o[i + 1] = radius * sin(angle);
    }
}

typedef struct opdi_fill_job { char *out; uint64_t key, offset; int kind; int64_t n; } opdi_fill_job;

/* Kinds: 0 uniform, 1 normal; + 2 for double.  A block is 64 words: 64 floats or 32 doubles, at fixed indices. */
static void opdi_fill_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_fill_job *g = (const opdi_fill_job *)ctx;
    uint32_t r[64];
    double values[64];
    uint64_t per = g->kind >= 2 ? 32 : 64, size = g->kind >= 2 ? 8 : 4;
    for (uint64_t i = (uint64_t)begin; i < (uint64_t)end;) {
        uint64_t at = (g->offset + i) % per, m = OPDI_MIN(per - at, (uint64_t)end - i);
        opdi_philox16(g->key, (g->offset + i) / per * 16, r);
        if (g->kind == 0) opdi_uniform_f32(r, (float *)(void *)values);
        else if (g->kind == 1) opdi_normal_f32(r, (float *)(void *)values);
        else if (g->kind == 2) opdi_uniform_f64(r, values);
        else opdi_normal_f64(r, values);
        memcpy(g->out + i * size, (char *)values + at * size, (size_t)(m * size));
        i += m;
    }
}

static void opdi_fill_random(int kind, int64_t n, void *out, uint64_t key, uint64_t offset) {
    opdi_fill_job g;
    g.out = (char *)out;
    g.key = key;
    g.offset = offset;
    g.kind = kind;
    g.n = n;
    opdi_parallel_for(n, 16384, opdi_fill_range, &g);
}
/* Element i of the result depends on the key and `at` + i only. */
static void opdi_fill_uniform_f32(int64_t n, float *out, uint64_t key, uint64_t at) {
    opdi_fill_random(0, n, out, key, at);
}
static void opdi_fill_normal_f32(int64_t n, float *out, uint64_t key, uint64_t at) {
    opdi_fill_random(1, n, out, key, at);
}
static void opdi_fill_uniform_f64(int64_t n, double *out, uint64_t key, uint64_t at) {
    opdi_fill_random(2, n, out, key, at);
}
static void opdi_fill_normal_f64(int64_t n, double *out, uint64_t key, uint64_t at) {
    opdi_fill_random(3, n, out, key, at);
}

//-- tensor iteration: promotion, broadcasting, block loops, copies ---------------------------------------------------
//
//  What all pointwise kernels stand on.  A loop is written for float, double and int64_t over contiguous memory;
//  everything else (other dtypes, strides, broadcasting, threads) is brought to it here, 256 elements at a time.
//  Uses tensors and the thread pool; knows no operator.  Follows at::TensorIterator in what it computes.

#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__)
#define OPDI_IVDEP _Pragma("GCC ivdep")
#else
#define OPDI_IVDEP
#endif

#define OPDI_ITER_OPS 8                           /* operands of an iteration */
#define OPDI_BLOCK 256                            /* elements converted at a time */
#define OPDI_GRAIN 32768                          /* elements that are worth a thread */

/* The types loops are written for. */
enum { OPDI_F32 = 0, OPDI_F64 = 1, OPDI_I64 = 2 };

/* Numbers a loop takes besides its operands, in each compute type. */
typedef struct opdi_params {
    double f64[4];
    float f32[4];
    int64_t i64[4];
    int32_t *zero;                                /* set to 1 when an integer is divided by zero */
} opdi_params;

/* p[0] is the output, p[1].. the inputs: n contiguous elements of the compute type each. */
typedef void (*opdi_loop)(void *const *p, int64_t n, const opdi_params *s);

static int opdi_compute_type(opd_scalar_type t) {
    if (t == OPD_FLOAT64) { return OPDI_F64; }
    return opd_dtype_is_floating(t) ? OPDI_F32 : OPDI_I64;
}
static const int8_t opdi_compute_dtype[3] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64};

//-- conversions -------------------------------------------------------------------------------------------------------

/* Float to integer as PyTorch's CPU kernels do it on x86, where C leaves it undefined: what does not fit (and NaN)
   becomes the smallest integer of the register, narrow ones take its low bits (c10::convert). */
static inline int64_t opdi_to_i64(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}
static inline int32_t opdi_to_i32(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
/* Unsigned and signed narrowing of a 64-bit integer, wrapping. */
#define OPDI_WRAP_u8(x) ((uint8_t)((uint64_t)(x) & 255u))
#define OPDI_WRAP_i8(x) ((int8_t)(uint8_t)((uint64_t)(x) & 255u))
#define OPDI_WRAP_i16(x) ((int16_t)(uint16_t)((uint64_t)(x) & 65535u))
#define OPDI_WRAP_i32(x) ((int32_t)(uint32_t)((uint64_t)(x) & 4294967295u))

/* A conversion of n contiguous elements. */
typedef void (*opdi_convert)(void *dst, const void *src, int64_t n);
#define OPDI_CONVERT(name, D, S, expr) static OPDI_CONVERT_BODY(name, D, S, expr)
#define OPDI_CONVERT_BODY(name, D, S, expr)                                                     \
    void name(void *dst, const void *src, int64_t n) {                                   \
        D *d = (D *)dst; const S *s = (const S *)src; int64_t i = 0; int j;                     \
        for (; i + 32 <= n; i += 32) {                                                          \
            OPDI_IVDEP                                                                          \
            for (j = 0; j < 32; j++) { S x = s[i + j]; d[i + j] = (expr); }                     \
        }                                                                                       \
        for (; i < n; i++) { S x = s[i]; d[i] = (expr); }                                       \
    }
/* opdi_cvt_<to>_<from> */
OPDI_CONVERT(opdi_cvt_f32_u8, float, uint8_t, (float)x)
OPDI_CONVERT(opdi_cvt_f32_i8, float, int8_t, (float)x)
OPDI_CONVERT(opdi_cvt_f32_i16, float, int16_t, (float)x)
OPDI_CONVERT(opdi_cvt_f32_i32, float, int32_t, (float)x)
OPDI_CONVERT(opdi_cvt_f32_i64, float, int64_t, (float)x)
OPDI_CONVERT(opdi_cvt_f32_f64, float, double, (float)x)
OPDI_CONVERT(opdi_cvt_f32_b, float, uint8_t, (float)(x != 0))
OPDI_CONVERT(opdi_cvt_f64_u8, double, uint8_t, (double)x)
OPDI_CONVERT(opdi_cvt_f64_i8, double, int8_t, (double)x)
OPDI_CONVERT(opdi_cvt_f64_i16, double, int16_t, (double)x)
OPDI_CONVERT(opdi_cvt_f64_i32, double, int32_t, (double)x)
OPDI_CONVERT(opdi_cvt_f64_i64, double, int64_t, (double)x)
OPDI_CONVERT(opdi_cvt_f64_f32, double, float, (double)x)
OPDI_CONVERT(opdi_cvt_f64_b, double, uint8_t, (double)(x != 0))
OPDI_CONVERT(opdi_cvt_i64_u8, int64_t, uint8_t, (int64_t)x)
OPDI_CONVERT(opdi_cvt_i64_i8, int64_t, int8_t, (int64_t)x)
OPDI_CONVERT(opdi_cvt_i64_i16, int64_t, int16_t, (int64_t)x)
OPDI_CONVERT(opdi_cvt_i64_i32, int64_t, int32_t, (int64_t)x)
OPDI_CONVERT(opdi_cvt_i64_b, int64_t, uint8_t, (int64_t)(x != 0))
OPDI_CONVERT(opdi_cvt_u8_f32, uint8_t, float, OPDI_WRAP_u8(opdi_to_i64((double)x)))
OPDI_CONVERT(opdi_cvt_i8_f32, int8_t, float, OPDI_WRAP_i8(opdi_to_i32((double)x)))
OPDI_CONVERT(opdi_cvt_i16_f32, int16_t, float, OPDI_WRAP_i16(opdi_to_i32((double)x)))
OPDI_CONVERT(opdi_cvt_i32_f32, int32_t, float, opdi_to_i32((double)x))
OPDI_CONVERT(opdi_cvt_i64_f32, int64_t, float, opdi_to_i64((double)x))
OPDI_CONVERT(opdi_cvt_b_f32, uint8_t, float, (uint8_t)(x != 0))
OPDI_CONVERT(opdi_cvt_u8_f64, uint8_t, double, OPDI_WRAP_u8(opdi_to_i64(x)))
OPDI_CONVERT(opdi_cvt_i8_f64, int8_t, double, OPDI_WRAP_i8(opdi_to_i32(x)))
OPDI_CONVERT(opdi_cvt_i16_f64, int16_t, double, OPDI_WRAP_i16(opdi_to_i32(x)))
OPDI_CONVERT(opdi_cvt_i32_f64, int32_t, double, opdi_to_i32(x))
OPDI_CONVERT(opdi_cvt_i64_f64, int64_t, double, opdi_to_i64(x))
OPDI_CONVERT(opdi_cvt_b_f64, uint8_t, double, (uint8_t)(x != 0))
OPDI_CONVERT(opdi_cvt_u8_i64, uint8_t, int64_t, OPDI_WRAP_u8(x))
OPDI_CONVERT(opdi_cvt_i8_i64, int8_t, int64_t, OPDI_WRAP_i8(x))
OPDI_CONVERT(opdi_cvt_i16_i64, int16_t, int64_t, OPDI_WRAP_i16(x))
OPDI_CONVERT(opdi_cvt_i32_i64, int32_t, int64_t, OPDI_WRAP_i32(x))
OPDI_CONVERT(opdi_cvt_b_i64, uint8_t, int64_t, (uint8_t)(x != 0))
OPDI_CONVERT(opdi_cvt_b_b, uint8_t, uint8_t, (uint8_t)(x != 0))
/* Half precision is worth the wider registers. */
#if defined(OPDI_X86)
#define OPDI_CONVERT_WIDE(name, D, S, expr)                                                     \
    OPDI_ALWAYS OPDI_CONVERT_BODY(name##_body, D, S, expr)                                      \
    OPDI_AVX2 static void name##_avx2(void *d, const void *s, int64_t n) { name##_body(d, s, n); } \
    static void name(void *d, const void *s, int64_t n) {                                       \
        if (opdi_cpu_level() > 0) { name##_avx2(d, s, n); } else { name##_body(d, s, n); }      \
    }
#else
#define OPDI_CONVERT_WIDE(name, D, S, expr) static OPDI_CONVERT_BODY(name, D, S, expr)
#endif
OPDI_CONVERT_WIDE(opdi_cvt_f32_f16, float, uint16_t, opdi_f16_to_f32(x))
OPDI_CONVERT_WIDE(opdi_cvt_f16_f32, uint16_t, float, opdi_f32_to_f16(x))
OPDI_CONVERT_WIDE(opdi_cvt_f32_bf16, float, uint16_t, opdi_bf16_to_f32(x))
OPDI_CONVERT_WIDE(opdi_cvt_bf16_f32, uint16_t, float, opdi_f32_to_bf16(x))
/* Two steps through float, as c10::Half and c10::BFloat16 convert. */
#define OPDI_CONVERT_VIA(name, first, second, from_size, to_size)                               \
    static void name(void *dst, const void *src, int64_t n) {                                   \
        float t[64]; int64_t i, m;                                                              \
        for (i = 0; i < n; i += m) {                                                            \
            m = OPDI_MIN(n - i, (int64_t)64);                                                   \
            first(t, (const char *)src + i * from_size, m);                                     \
            second((char *)dst + i * to_size, t, m);                                            \
        }                                                                                       \
    }
OPDI_CONVERT_VIA(opdi_cvt_f64_f16, opdi_cvt_f32_f16, opdi_cvt_f64_f32, 2, 8)
OPDI_CONVERT_VIA(opdi_cvt_f64_bf16, opdi_cvt_f32_bf16, opdi_cvt_f64_f32, 2, 8)
OPDI_CONVERT_VIA(opdi_cvt_f16_f64, opdi_cvt_f32_f64, opdi_cvt_f16_f32, 8, 2)
OPDI_CONVERT_VIA(opdi_cvt_bf16_f64, opdi_cvt_f32_f64, opdi_cvt_bf16_f32, 8, 2)
OPDI_CONVERT_VIA(opdi_cvt_f16_i64, opdi_cvt_f32_i64, opdi_cvt_f16_f32, 8, 2)
OPDI_CONVERT_VIA(opdi_cvt_bf16_i64, opdi_cvt_f32_i64, opdi_cvt_bf16_f32, 8, 2)
OPDI_CONVERT_VIA(opdi_cvt_i64_f16, opdi_cvt_f32_f16, opdi_cvt_i64_f32, 2, 8)
OPDI_CONVERT_VIA(opdi_cvt_i64_bf16, opdi_cvt_f32_bf16, opdi_cvt_i64_f32, 2, 8)
static void opdi_cvt_8(void *d, const void *s, int64_t n) { memcpy(d, s, (size_t)n * 8); }
static void opdi_cvt_4(void *d, const void *s, int64_t n) { memcpy(d, s, (size_t)n * 4); }

/* [compute type][dtype number]: into the compute type, and out of it. */
static const opdi_convert opdi_load_table[3][16] = {
    {opdi_cvt_f32_u8, opdi_cvt_f32_i8, opdi_cvt_f32_i16, opdi_cvt_f32_i32, opdi_cvt_f32_i64, opdi_cvt_f32_f16, opdi_cvt_4,
     opdi_cvt_f32_f64, NULL, NULL, NULL, opdi_cvt_f32_b, NULL, NULL, NULL, opdi_cvt_f32_bf16},
    {opdi_cvt_f64_u8, opdi_cvt_f64_i8, opdi_cvt_f64_i16, opdi_cvt_f64_i32, opdi_cvt_f64_i64, opdi_cvt_f64_f16,
     opdi_cvt_f64_f32, opdi_cvt_8, NULL, NULL, NULL, opdi_cvt_f64_b, NULL, NULL, NULL, opdi_cvt_f64_bf16},
    {opdi_cvt_i64_u8, opdi_cvt_i64_i8, opdi_cvt_i64_i16, opdi_cvt_i64_i32, opdi_cvt_8, opdi_cvt_i64_f16, opdi_cvt_i64_f32,
     opdi_cvt_i64_f64, NULL, NULL, NULL, opdi_cvt_i64_b, NULL, NULL, NULL, opdi_cvt_i64_bf16}};
static const opdi_convert opdi_store_table[3][16] = {
    {opdi_cvt_u8_f32, opdi_cvt_i8_f32, opdi_cvt_i16_f32, opdi_cvt_i32_f32, opdi_cvt_i64_f32, opdi_cvt_f16_f32, opdi_cvt_4,
     opdi_cvt_f64_f32, NULL, NULL, NULL, opdi_cvt_b_f32, NULL, NULL, NULL, opdi_cvt_bf16_f32},
    {opdi_cvt_u8_f64, opdi_cvt_i8_f64, opdi_cvt_i16_f64, opdi_cvt_i32_f64, opdi_cvt_i64_f64, opdi_cvt_f16_f64,
     opdi_cvt_f32_f64, opdi_cvt_8, NULL, NULL, NULL, opdi_cvt_b_f64, NULL, NULL, NULL, opdi_cvt_bf16_f64},
    {opdi_cvt_u8_i64, opdi_cvt_i8_i64, opdi_cvt_i16_i64, opdi_cvt_i32_i64, opdi_cvt_8, opdi_cvt_f16_i64, opdi_cvt_f32_i64,
     opdi_cvt_f64_i64, NULL, NULL, NULL, opdi_cvt_b_i64, NULL, NULL, NULL, opdi_cvt_bf16_i64}};

//-- strided runs ------------------------------------------------------------------------------------------------------

/* n elements of `size` bytes from src, `stride` bytes apart, to contiguous dst; and back. */
#define OPDI_MOVE(T, dst_index, src_index)                                                      \
    { T *d = (T *)dst; const T *s = (const T *)src; int64_t i; for (i = 0; i < n; i++) { d[dst_index] = s[src_index]; } } break
OPDI_ALWAYS void opdi_gather_n(void *dst, const void *src, int64_t stride, int64_t n, int size) {
    const int64_t k = stride / size;
    switch (size) {
        case 1: OPDI_MOVE(uint8_t, i, i * k);
        case 2: OPDI_MOVE(uint16_t, i, i * k);
        case 4: OPDI_MOVE(uint32_t, i, i * k);
        case 8: OPDI_MOVE(uint64_t, i, i * k);
        default: {
            const char *s = (const char *)src; char *d = (char *)dst; int64_t i;
            for (i = 0; i < n; i++) { memcpy(d + i * size, s + i * stride, (size_t)size); }
        }
    }
}
static void opdi_scatter(void *dst, int64_t stride, const void *src, int64_t n, int size) {
    const int64_t k = stride / size;
    switch (size) {
        case 1: OPDI_MOVE(uint8_t, i * k, i);
        case 2: OPDI_MOVE(uint16_t, i * k, i);
        case 4: OPDI_MOVE(uint32_t, i * k, i);
        case 8: OPDI_MOVE(uint64_t, i * k, i);
        default: {
            const char *s = (const char *)src; char *d = (char *)dst; int64_t i;
            for (i = 0; i < n; i++) { memcpy(d + i * stride, s + i * size, (size_t)size); }
        }
    }
}
/* Every second element of 4 bytes, and one element repeated: with a constant trip count the compiler vectorises. */
static void opdi_gather_second(uint32_t *d, const uint32_t *s, int64_t n) {
    int64_t i = 0; int j;
    for (; i + 32 <= n - 1; i += 32) {
        OPDI_IVDEP
        for (j = 0; j < 32; j++) { d[i + j] = s[2 * i + 2 * j]; }
    }
    for (; i < n; i++) { d[i] = s[2 * i]; }
}
static void opdi_gather(void *dst, const void *src, int64_t stride, int64_t n, int size) {
    if (stride == size) { memcpy(dst, src, (size_t)n * (size_t)size); }
    else if (stride == 8 && size == 4) { opdi_gather_second((uint32_t *)dst, (const uint32_t *)src, n); }
    else { opdi_gather_n(dst, src, stride, n, size); }
}

//-- type promotion ----------------------------------------------------------------------------------------------------

/* torch.result_type over tensors (at::native::result_type): tensors with dimensions beat 0-dim ones, those beat wrapped
   numbers, unless the lower class is of a higher category (bool < integer < floating < complex). */
static int opdi_category(opd_scalar_type t) {
    if (opd_dtype_is_complex(t)) { return 3; }
    if (opd_dtype_is_floating(t)) { return 2; }
    return t == OPD_BOOL ? 0 : 1;
}
static opd_scalar_type opdi_promote(opd_scalar_type a, opd_scalar_type b) {
    return a == OPD_DTYPE_NONE ? b : b == OPD_DTYPE_NONE || a == b ? a : opd_promote_types(a, b);
}
static opd_scalar_type opdi_result_combine(opd_scalar_type higher, opd_scalar_type lower) {
    if (higher == OPD_DTYPE_NONE) { return lower; }
    if (lower == OPD_DTYPE_NONE || opdi_category(lower) <= opdi_category(higher)) { return higher; }
    return opd_promote_types(higher, lower);
}
static opd_scalar_type opdi_result_type(opd_tensor *const *ts, int n) {
    opd_scalar_type rank[3] = {OPD_DTYPE_NONE, OPD_DTYPE_NONE, OPD_DTYPE_NONE};   /* dims, 0-dim, wrapped */
    int i;
    if (n == 2 && ts[0]->dtype == ts[1]->dtype && !((ts[0]->flags & ts[1]->flags) & OPDI_WRAPPED)) {
        return (opd_scalar_type)ts[0]->dtype;
    }
    for (i = 0; i < n; i++) {
        opd_scalar_type t = (opd_scalar_type)ts[i]->dtype;
        int k = ts[i]->flags & OPDI_WRAPPED ? 2 : ts[i]->ndim == 0 ? 1 : 0;
        if (k == 2 && opd_dtype_is_complex(t)) { t = OPD_COMPLEX64; }      /* numbers take the default dtype */
        else if (k == 2 && opd_dtype_is_floating(t)) { t = OPD_FLOAT32; }
        rank[k] = opdi_promote(rank[k], t);
    }
    return opdi_result_combine(opdi_result_combine(rank[0], rank[1]), rank[2]);
}

//-- shapes ------------------------------------------------------------------------------------------------------------

static bool opdi_same_sizes(const opd_tensor *a, const opd_tensor *b) {
    return a->ndim == b->ndim && memcmp(opdi_sizes(a), opdi_sizes(b), sizeof(int64_t) * a->ndim) == 0;
}
/* Broadcasts t's sizes into sizes[*ndim] (aligned at the end); -1 with PyTorch's error. */
static int opdi_broadcast_into(int64_t *sizes, int *ndim, const opd_tensor *t) {
    const int64_t *ts = opdi_sizes(t);
    int i, shift = t->ndim - *ndim;
    if (shift > 0) {
        memmove(sizes + shift, sizes, sizeof(int64_t) * (size_t)*ndim);
        for (i = 0; i < shift; i++) { sizes[i] = 1; }
        *ndim = t->ndim;
    }
    for (i = 0; i < t->ndim; i++) {
        int d = *ndim - t->ndim + i;
        if (sizes[d] == ts[i] || ts[i] == 1) { continue; }
        if (sizes[d] != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d", (long long)sizes[d], (long long)ts[i], d);
        }
        sizes[d] = ts[i];
    }
    return 0;
}
/* The stride in elements with which t is walked along dim d of a broadcast shape of ndim dims. */
static inline int64_t opdi_broadcast_stride(const opd_tensor *t, const int64_t *sizes, int ndim, int d) {
    int k = d - (ndim - t->ndim);
    return k < 0 || (opdi_sizes(t)[k] == 1 && sizes[d] != 1) ? 0 : opdi_strides(t)[k];
}
/* Compares dims a and b by the operands' strides, first operand first (TensorIteratorBase::reorder_dimensions):
   1: they should swap so that a comes after b, -1: in order, 0: no operand says. */
static int opdi_dims_compare(opd_tensor *const *ops, int nops, const int64_t *sizes, int ndim, int a, int b) {
    int i;
    for (i = 0; i < nops; i++) {
        const int64_t es = (int64_t)opd_dtype_size((opd_scalar_type)ops[i]->dtype);
        int64_t sa = opdi_broadcast_stride(ops[i], sizes, ndim, a) * es, sb = opdi_broadcast_stride(ops[i], sizes, ndim, b) * es;
        if (sa == 0 || sb == 0) { continue; }
        if (sa != sb) { return sa < sb ? -1 : 1; }
        if (sizes[a] > sizes[b]) { return 1; }
    }
    return 0;
}
/* perm[0] is the dim to walk innermost.  Insertion sort that bears undecided pairs. */
static void opdi_dims_order(opd_tensor *const *ops, int nops, const int64_t *sizes, int ndim, int *perm) {
    int i, j, k, c, t;
    for (i = 0; i < ndim; i++) { perm[i] = ndim - 1 - i; }
    for (i = 1; i < ndim; i++) {
        for (k = i, j = i - 1; j >= 0; j--) {
            c = opdi_dims_compare(ops, nops, sizes, ndim, perm[j], perm[k]);
            if (c > 0) { t = perm[j]; perm[j] = perm[k]; perm[k] = t; k = j; }
            else if (c < 0) { break; }
        }
    }
}

//-- overlap -----------------------------------------------------------------------------------------------------------

/* at::assert_no_internal_overlap: an expanded tensor cannot be written.  As there, only zero strides are seen. */
static int opdi_check_internal_overlap(const opd_tensor *t) {
    int i;
    if (t->flags & OPDI_CONTIGUOUS) { return 0; }
    for (i = 0; i < t->ndim; i++) {
        if (opdi_strides(t)[i] == 0 && opdi_sizes(t)[i] > 1) {
            return opd_fail(OPD_ERROR_ARGUMENT, "unsupported operation: more than one element of the written-to tensor "
                            "refers to a single memory location. Please clone() the tensor before performing the operation.");
        }
    }
    return 0;
}
/* True when every element has its own memory and there are no gaps; from[0] becomes the bytes it covers. */
static bool opdi_is_dense(const opd_tensor *t) {
    int64_t expect = 1;
    int done, i;
    if (t->flags & OPDI_CONTIGUOUS) { return true; }
    for (done = 0; done < t->ndim; done++) {       /* each time, the dim that continues the block */
        for (i = 0; i < t->ndim; i++) { if (opdi_sizes(t)[i] > 1 && opdi_strides(t)[i] == expect) { break; } }
        if (i == t->ndim) { break; }
        expect *= opdi_sizes(t)[i];
    }
    return expect == t->numel;
}
/* at::assert_no_partial_overlap of an output with an input: the same elements in the same order are fine, and so is
   (as in PyTorch) what has gaps, where an exact test would cost too much. */
static int opdi_check_partial_overlap(const opd_tensor *out, const opd_tensor *in) {
    const char *b0, *e0, *b1, *e1;
    if (out == in || !out->storage || out->storage != in->storage || out->numel == 0 || in->numel == 0) { return 0; }
    if (!opdi_is_dense(out) || !opdi_is_dense(in)) { return 0; }
    b0 = out->data; e0 = b0 + out->numel * (int64_t)opd_dtype_size((opd_scalar_type)out->dtype);
    b1 = in->data; e1 = b1 + in->numel * (int64_t)opd_dtype_size((opd_scalar_type)in->dtype);
    if (b0 == b1 && e0 == e1) {
        if (opdi_same_sizes(out, in) && memcmp(opdi_strides(out), opdi_strides(in), sizeof(int64_t) * out->ndim) == 0) {
            return 0;
        }
    } else if (e0 <= b1 || e1 <= b0) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "unsupported operation: some elements of the input tensor and the written-to tensor "
                    "refer to a single memory location. Please clone() the tensor before performing the operation.");
}

//-- the iterator ------------------------------------------------------------------------------------------------------

/* How an operand is walked. */
enum { OPDI_WALK_STRIDED = 0, OPDI_WALK_LINEAR, OPDI_WALK_SCALAR };

typedef struct opdi_operand {
    char *data;
    int64_t stride[OPD_MAX_DIMS];                 /* bytes, dim 0 innermost */
    int32_t size;                                 /* bytes of an element */
    int8_t walk;
    bool convert;                                 /* its dtype is not the compute type */
    bool round;                                   /* an input that is first rounded to the common dtype */
    opdi_convert load, store;                     /* from and to the compute type */
} opdi_operand;

/* One pass over nops operands of one shape, outputs first.  Filled by opdi_iter_init. */
typedef struct opdi_iter {
    int nops, nout, ndim;
    int64_t numel;
    int64_t sizes[OPD_MAX_DIMS];                  /* coalesced, dim 0 innermost */
    int8_t compute, common;                       /* compute type; the dtype operands are promoted to */
    bool buffered;                                /* some operand goes through a block */
    opdi_loop loop;
    const opdi_params *params;
    opdi_operand op[OPDI_ITER_OPS];
} opdi_iter;

static void opdi_iter_coalesce(opdi_iter *it) {
    int d, k, last = 0;
    for (d = 1; d < it->ndim; d++) {
        bool join = true;
        if (it->sizes[d] == 1) { continue; }
        for (k = 0; k < it->nops && join; k++) {
            join = it->sizes[last] == 1 || it->op[k].stride[last] * it->sizes[last] == it->op[k].stride[d];
        }
        if (join) {
            if (it->sizes[last] == 1) { for (k = 0; k < it->nops; k++) { it->op[k].stride[last] = it->op[k].stride[d]; } }
            it->sizes[last] *= it->sizes[d];
            continue;
        }
        last++;
        it->sizes[last] = it->sizes[d];
        for (k = 0; k < it->nops; k++) { it->op[k].stride[last] = it->op[k].stride[d]; }
    }
    it->ndim = last + 1;
}
static int opdi_iter_walk(const opdi_iter *it, const opdi_operand *o) {
    int64_t expect = o->size;
    bool scalar = true, linear = true;
    int d;
    for (d = 0; d < it->ndim; d++) {
        if (it->sizes[d] > 1 && o->stride[d] != 0) { scalar = false; }
        if (it->sizes[d] > 1 && o->stride[d] != expect) { linear = false; }
        expect *= it->sizes[d];
    }
    return linear ? OPDI_WALK_LINEAR : scalar ? OPDI_WALK_SCALAR : OPDI_WALK_STRIDED;
}
/* The dtype of a complex number's parts. */
static int8_t opdi_real_dtype(int8_t t) {
    return t == OPD_COMPLEX64 ? (int8_t)OPD_FLOAT32 : t == OPD_COMPLEX128 ? (int8_t)OPD_FLOAT64 : t;
}
/* Prepares a pass: every operand broadcasts to ops[0], the inputs are promoted to dtype `common`, loops run in
   `compute`.  -1 with an error when an output overlaps itself or, partially, an input.  With common
   OPD_DTYPE_NONE (copies) nothing is promoted and a complex operand is walked by its real parts. */
static int opdi_iter_init(opdi_iter *it, opd_tensor *const *ops, int nops, int nout, opd_scalar_type common, int compute) {
    const opd_tensor *out = ops[0];
    const int ndim = out->ndim;
    int perm[OPD_MAX_DIMS], d, k;
    for (k = 0; k < nout; k++) {
        if (opdi_check_internal_overlap(ops[k]) != 0) { return -1; }
        for (d = nout; d < nops; d++) { if (opdi_check_partial_overlap(ops[k], ops[d]) != 0) { return -1; } }
    }
    opdi_dims_order(ops, nops, opdi_sizes(out), ndim, perm);
    it->nops = nops; it->nout = nout; it->numel = out->numel; it->ndim = OPDI_MAX(ndim, 1); it->sizes[0] = 1;
    it->compute = (int8_t)compute; it->common = (int8_t)common; it->buffered = false;
    for (d = 0; d < ndim; d++) { it->sizes[d] = opdi_sizes(out)[perm[d]]; }
    for (k = 0; k < nops; k++) {
        opdi_operand *o = &it->op[k];
        const int8_t full = ops[k]->dtype, t = common == OPD_DTYPE_NONE ? opdi_real_dtype(full) : full;
        const int64_t es = (int64_t)opd_dtype_size((opd_scalar_type)full);
        o->data = ops[k]->data;
        o->size = (int32_t)opd_dtype_size((opd_scalar_type)t);
        o->convert = t != opdi_compute_dtype[compute];
        o->round = k >= nout && t != common && common != opdi_compute_dtype[compute] && common != OPD_DTYPE_NONE;
        o->load = opdi_load_table[compute][t];
        o->store = opdi_store_table[compute][t];
        o->stride[0] = 0;
        for (d = 0; d < ndim; d++) { o->stride[d] = opdi_broadcast_stride(ops[k], opdi_sizes(out), ndim, perm[d]) * es; }
        if (!o->load) { return opd_fail(OPD_ERROR_DTYPE, "not implemented for '%s'", opd_dtype_cname((opd_scalar_type)t)); }
    }
    opdi_iter_coalesce(it);
    for (k = 0; k < nops; k++) {
        opdi_operand *o = &it->op[k];
        o->walk = (int8_t)opdi_iter_walk(it, o);
        if (o->convert || o->round || o->stride[0] != o->size) { it->buffered = true; }
    }
    return 0;
}

/* Brings n elements of operand o, from element index idx of the pass on, to buf (gather), or from it (scatter).  tmp
   holds one block of raw elements. */
static void opdi_iter_move(const opdi_iter *it, const opdi_operand *o, const int64_t *idx, int64_t n, char *buf, bool store) {
    int64_t at[OPD_MAX_DIMS], left = n, run;
    const int ndim = it->ndim;
    char *p = o->data;
    int d;
    for (d = 0; d < ndim; d++) { at[d] = idx[d]; p += idx[d] * o->stride[d]; }
    for (;;) {
        run = OPDI_MIN(it->sizes[0] - at[0], left);
        if (store) { opdi_scatter(p, o->stride[0], buf, run, o->size); }
        else { opdi_gather(buf, p, o->stride[0], run, o->size); }
        buf += run * o->size;
        left -= run;
        if (left == 0) { return; }
        p -= at[0] * o->stride[0];
        at[0] = 0;
        for (d = 1; d < ndim; d++) {
            p += o->stride[d];
            if (++at[d] < it->sizes[d]) { break; }
            p -= at[d] * o->stride[d];
            at[d] = 0;
        }
    }
}
/* The compute-type elements of input o for the block at idx (linear position pos), in place or in buf. */
static void *opdi_iter_load(const opdi_iter *it, const opdi_operand *o, const int64_t *idx, int64_t pos, int64_t n, char *buf) {
    uint64_t raw[OPDI_BLOCK];                     /* [n] elements of the operand's dtype, then rounded ones */
    const char *src = (const char *)raw;
    int d;
    if (o->walk == OPDI_WALK_LINEAR) { src = o->data + pos * o->size; }
    else if (o->stride[0] == o->size && idx[0] + n <= it->sizes[0]) {
        src = o->data;
        for (d = 0; d < it->ndim; d++) { src += idx[d] * o->stride[d]; }
    } else {
        opdi_iter_move(it, o, idx, n, o->convert ? (char *)raw : buf, false);
        if (!o->convert && !o->round) { return buf; }
        if (!o->convert) { src = buf; }
    }
    if (!o->convert && !o->round) { return (void *)(uintptr_t)src; }
    o->load(buf, src, n);
    if (o->round) {
        opdi_store_table[it->compute][it->common](raw, buf, n);
        opdi_load_table[it->compute][it->common](buf, raw, n);
    }
    return buf;
}
/* Where the loop may write the block of output o: in place, or NULL. */
static void *opdi_iter_target(const opdi_iter *it, const opdi_operand *o, const int64_t *idx, int64_t pos, int64_t n) {
    char *p = o->data;
    int d;
    if (o->convert) { return NULL; }
    if (o->walk == OPDI_WALK_LINEAR) { return p + pos * o->size; }
    if (o->stride[0] != o->size || idx[0] + n > it->sizes[0]) { return NULL; }
    for (d = 0; d < it->ndim; d++) { p += idx[d] * o->stride[d]; }
    return p;
}
static void opdi_iter_store(const opdi_iter *it, const opdi_operand *o, const int64_t *idx, int64_t pos, int64_t n, char *buf) {
    uint64_t raw[OPDI_BLOCK];
    char *p = o->data;
    int d;
    if (o->walk == OPDI_WALK_LINEAR) { o->store(p + pos * o->size, buf, n); return; }
    if (o->convert && o->stride[0] == o->size && idx[0] + n <= it->sizes[0]) {
        for (d = 0; d < it->ndim; d++) { p += idx[d] * o->stride[d]; }
        o->store(p, buf, n);
        return;
    }
    if (o->convert) { o->store(raw, buf, n); }
    opdi_iter_move(it, o, idx, n, o->convert ? (char *)raw : buf, true);
}
/* Steps idx n elements on, n not beyond the end. */
static void opdi_iter_step(const opdi_iter *it, int64_t *idx, int64_t n) {
    int d;
    for (d = 0; d < it->ndim; d++) {
        idx[d] += n;
        if (idx[d] < it->sizes[d]) { return; }
        n = idx[d] / it->sizes[d];
        idx[d] -= n * it->sizes[d];
    }
}
/* Elements [begin, end) of the pass.  Rows of at least half a block are walked row by row, so that contiguous ones are
   used in place; shorter ones are gathered across rows. */
static void opdi_iter_range(const opdi_iter *it, int64_t begin, int64_t end) {
    uint64_t block[OPDI_ITER_OPS][OPDI_BLOCK];    /* 16 KiB */
    void *p[OPDI_ITER_OPS];
    int64_t idx[OPD_MAX_DIMS], pos, n, rest = begin;
    const bool rows = it->sizes[0] >= OPDI_BLOCK / 2;
    int d, k;
    for (d = 0; d < it->ndim; d++) { idx[d] = rest % it->sizes[d]; rest /= it->sizes[d]; }
    for (k = it->nout; k < it->nops; k++) {       /* one number, repeated */
        if (it->op[k].walk != OPDI_WALK_SCALAR) { continue; }
        p[k] = opdi_iter_load(it, &it->op[k], idx, 0, OPDI_MIN(end - begin, (int64_t)OPDI_BLOCK), (char *)block[k]);
    }
    for (pos = begin; pos < end; pos += n) {
        n = end - pos;
        if (rows) { n = OPDI_MIN(n, it->sizes[0] - idx[0]); }
        if (it->buffered || !rows) { n = OPDI_MIN(n, (int64_t)OPDI_BLOCK); }
        for (k = it->nout; k < it->nops; k++) {
            if (it->op[k].walk != OPDI_WALK_SCALAR) { p[k] = opdi_iter_load(it, &it->op[k], idx, pos, n, (char *)block[k]); }
        }
        for (k = 0; k < it->nout; k++) {
            p[k] = opdi_iter_target(it, &it->op[k], idx, pos, n);
            if (!p[k]) { p[k] = block[k]; }
        }
        it->loop(p, n, it->params);
        for (k = 0; k < it->nout; k++) {
            if (p[k] == (void *)block[k]) { opdi_iter_store(it, &it->op[k], idx, pos, n, (char *)block[k]); }
        }
        opdi_iter_step(it, idx, n);
    }
}
static void opdi_iter_part(void *ctx, int64_t begin, int64_t end) { opdi_iter_range((const opdi_iter *)ctx, begin, end); }

/* A pass in which every operand is contiguous and of the compute type. */
typedef struct opdi_flat {
    char *p[OPDI_ITER_OPS];
    int nops, size;
    opdi_loop loop;
    const opdi_params *params;
} opdi_flat;
static void opdi_flat_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_flat *f = (const opdi_flat *)ctx;
    void *p[OPDI_ITER_OPS];
    int k;
    for (k = 0; k < f->nops; k++) { p[k] = f->p[k] + begin * f->size; }
    f->loop(p, end - begin, f->params);
}
OPDI_NOINLINE static int opdi_flat_run(opd_tensor *const *ops, int nops, opdi_loop loop, const opdi_params *params) {
    opdi_flat f;
    int k;
    f.nops = nops; f.loop = loop; f.params = params; f.size = (int)opd_dtype_size((opd_scalar_type)ops[0]->dtype);
    for (k = 0; k < nops; k++) { f.p[k] = ops[k]->data; }
    opdi_parallel_for(ops[0]->numel, OPDI_GRAIN, opdi_flat_part, &f);
    return 0;
}
OPDI_NOINLINE static int opdi_iter_run(opd_tensor *const *ops, int nops, int nout, opd_scalar_type common, int compute,
                                       opdi_loop loop, const opdi_params *params) {
    opdi_iter it;
    if (opdi_iter_init(&it, ops, nops, nout, common, compute) != 0) { return -1; }
    it.loop = loop; it.params = params;
    if (it.numel <= OPDI_GRAIN) { opdi_iter_range(&it, 0, it.numel); }
    else { opdi_parallel_for(it.numel, OPDI_GRAIN, opdi_iter_part, &it); }
    return 0;
}
/* Runs a loop over nops operands (nout outputs first), which broadcast to the first; inputs are promoted to `common`,
   whose compute type the loop is for.  0, or -1 with an error.  Zero elements are fine. */
static inline int opdi_run(opd_tensor *const *ops, int nops, int nout, opd_scalar_type common, opdi_loop loop,
                           const opdi_params *params) {
    const opd_tensor *out = ops[0];
    const int compute = opdi_compute_type(common);
    int k;
    if (out->numel == 0) { return 0; }
    for (k = 0; k < nops; k++) {
        const opd_tensor *t = ops[k];
        if (!(t->flags & OPDI_CONTIGUOUS) || t->dtype != opdi_compute_dtype[compute] || t->numel != out->numel ||
            (k > 0 && t->storage == out->storage && t->data != out->data)) {
            return opdi_iter_run(ops, nops, nout, common, compute, loop, params);
        }
    }
    if (out->numel <= OPDI_GRAIN) {
        void *p[OPDI_ITER_OPS];
        for (k = 0; k < nops; k++) { p[k] = ops[k]->data; }
        loop(p, out->numel, params);
        return 0;
    }
    return opdi_flat_run(ops, nops, loop, params);
}

//-- copies ------------------------------------------------------------------------------------------------------------

/* n elements of `size` bytes with any strides (bytes). */
static void opdi_move_run(char *d, int64_t ds, const char *s, int64_t ss, int64_t n, int size) {
    int64_t i;
    if (ds == size) { opdi_gather(d, s, ss, n, size); return; }
    if (ss == size) { opdi_scatter(d, ds, s, n, size); return; }
    for (i = 0; i < n; i++) { memcpy(d + i * ds, s + i * ss, (size_t)size); }
}
/* Same dtype, any strides: row by row. */
static void opdi_copy_rows(void *ctx, int64_t begin, int64_t end) {
    const opdi_iter *it = (const opdi_iter *)ctx;
    int64_t idx[OPD_MAX_DIMS], pos, n, rest = begin;
    int d;
    for (d = 0; d < it->ndim; d++) { idx[d] = rest % it->sizes[d]; rest /= it->sizes[d]; }
    for (pos = begin; pos < end; pos += n) {
        char *t = it->op[0].data;
        const char *s = it->op[1].data;
        n = OPDI_MIN(end - pos, it->sizes[0] - idx[0]);
        for (d = 0; d < it->ndim; d++) { t += idx[d] * it->op[0].stride[d]; s += idx[d] * it->op[1].stride[d]; }
        opdi_move_run(t, it->op[0].stride[0], s, it->op[1].stride[0], n, it->op[0].size);
        opdi_iter_step(it, idx, n);
    }
}
/* Another dtype: block by block through the compute type. */
static void opdi_copy_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_iter *it = (const opdi_iter *)ctx;
    const opdi_operand *o = &it->op[0];
    uint64_t block[OPDI_BLOCK];
    int64_t idx[OPD_MAX_DIMS], pos, n, rest = begin;
    const bool rows = it->sizes[0] >= OPDI_BLOCK / 2;
    int d;
    for (d = 0; d < it->ndim; d++) { idx[d] = rest % it->sizes[d]; rest /= it->sizes[d]; }
    for (pos = begin; pos < end; pos += n) {
        void *t, *s;
        n = OPDI_MIN(end - pos, (int64_t)OPDI_BLOCK);
        if (rows) { n = OPDI_MIN(n, it->sizes[0] - idx[0]); }
        t = opdi_iter_target(it, o, idx, pos, n);
        s = opdi_iter_load(it, &it->op[1], idx, pos, n, (char *)(t ? t : (void *)block));
        if (!t) { opdi_iter_store(it, o, idx, pos, n, (char *)s); }
        else if (s != t) { memcpy(t, s, (size_t)n * (size_t)o->size); }
        opdi_iter_step(it, idx, n);
    }
}
/* A tile of 32 x 32: dst[j][i] = src[i][j] with rows `ds` and `ss` bytes apart, through a buffer so that neither side is
   walked across its lines. */
#define OPDI_TILE 32
#define OPDI_TILE_MOVE(T) do {                                                                              \
        T t[OPDI_TILE][OPDI_TILE];                                                                          \
        for (i = 0; i < ni; i++) {                                                                          \
            const T *s = (const T *)(const void *)(src + i * ss);                                           \
            for (j = 0; j < nj; j++) { t[j][i] = s[j]; }                                                    \
        }                                                                                                   \
        for (j = 0; j < nj; j++) { memcpy(dst + j * ds, t[j], (size_t)ni * sizeof(T)); }                    \
    } while (0)
static void opdi_transpose_tile(char *dst, int64_t ds, const char *src, int64_t ss, int64_t ni, int64_t nj, int size) {
    int64_t i, j;
    switch (size) {
        case 1: OPDI_TILE_MOVE(uint8_t); break;
        case 2: OPDI_TILE_MOVE(uint16_t); break;
        case 4: OPDI_TILE_MOVE(uint32_t); break;
        default: OPDI_TILE_MOVE(uint64_t); break;
    }
}
typedef struct opdi_transpose { const opdi_iter *it; int across; } opdi_transpose;
/* One unit of work is a band: OPDI_TILE long in dim `across`, all of dim 0, at one index of the other dims. */
static void opdi_copy_bands(void *ctx, int64_t begin, int64_t end) {
    const opdi_transpose *tr = (const opdi_transpose *)ctx;
    const opdi_iter *it = tr->it;
    const int a = tr->across, size = it->op[0].size;
    const int64_t bands = (it->sizes[a] + OPDI_TILE - 1) / OPDI_TILE;
    int64_t b, i;
    int d;
    for (b = begin; b < end; b++) {
        const int64_t j = b % bands * OPDI_TILE, nj = OPDI_MIN((int64_t)OPDI_TILE, it->sizes[a] - j);
        int64_t rest = b / bands;
        char *t = it->op[0].data + j * it->op[0].stride[a];
        const char *s = it->op[1].data + j * it->op[1].stride[a];
        for (d = 1; d < it->ndim; d++) {
            if (d == a) { continue; }
            t += rest % it->sizes[d] * it->op[0].stride[d];
            s += rest % it->sizes[d] * it->op[1].stride[d];
            rest /= it->sizes[d];
        }
        for (i = 0; i < it->sizes[0]; i += OPDI_TILE) {
            opdi_transpose_tile(t + i * size, it->op[0].stride[a], s + i * it->op[1].stride[0], it->op[1].stride[0],
                                OPDI_MIN((int64_t)OPDI_TILE, it->sizes[0] - i), nj, size);
        }
    }
}
/* The dim that src walks contiguously while dst does not, when tiles pay; or 0. */
static int opdi_copy_across(const opdi_iter *it) {
    const int size = it->op[0].size;
    int d;
    if (it->op[0].stride[0] != size || it->op[1].stride[0] == size || it->op[1].stride[0] == 0 || size > 8) { return 0; }
    if (it->sizes[0] < 8) { return 0; }
    for (d = 1; d < it->ndim; d++) { if (it->op[1].stride[d] == size && it->sizes[d] >= 8) { return d; } }
    return 0;
}
typedef struct opdi_bytes { char *dst; const char *src; } opdi_bytes;
static void opdi_copy_bytes(void *ctx, int64_t begin, int64_t end) {
    const opdi_bytes *b = (const opdi_bytes *)ctx;
    memmove(b->dst + begin, b->src + begin, (size_t)(end - begin));
}
static int opdi_copy_same(opdi_iter *it) {
    const int across = opdi_copy_across(it);
    if (across) {
        opdi_transpose tr;
        const int64_t bands = (it->sizes[across] + OPDI_TILE - 1) / OPDI_TILE;
        int64_t n = it->numel / it->sizes[across] / it->sizes[0] * bands;
        tr.it = it; tr.across = across;
        opdi_parallel_for(n, OPDI_MAX((int64_t)1, OPDI_GRAIN / (OPDI_TILE * it->sizes[0])), opdi_copy_bands, &tr);
    } else { opdi_parallel_for(it->numel, OPDI_GRAIN, opdi_copy_rows, it); }
    return 0;
}
/* A fresh iteration of one part (0 real, 1 imaginary) of a copy that has complex numbers in it. */
static int opdi_copy_part(opd_tensor *dst, const opd_tensor *src, int part) {
    opd_tensor *ops[2];
    opdi_iter it;
    uint64_t zero = 0;
    const opd_scalar_type real = (opd_scalar_type)opdi_real_dtype(src->dtype);
    int d;
    ops[0] = dst; ops[1] = (opd_tensor *)(uintptr_t)src;
    if (opdi_iter_init(&it, ops, 2, 1, OPD_DTYPE_NONE, opdi_compute_type(real)) != 0) { return -1; }
    it.op[0].data += part * it.op[0].size;
    if (opd_dtype_is_complex((opd_scalar_type)src->dtype)) { it.op[1].data += part * it.op[1].size; }
    else if (part) {
        it.op[1].data = (char *)&zero;
        for (d = 0; d < it.ndim; d++) { it.op[1].stride[d] = 0; }
        it.op[1].walk = OPDI_WALK_STRIDED;
    }
    opdi_parallel_for(it.numel, OPDI_GRAIN, opdi_copy_blocks, &it);
    return 0;
}
/* dst = src, which broadcasts to it: any dtypes, any strides (copy_, contiguous, to, clone).  0, or -1 with an error
   when src does not broadcast or the memory overlaps. */
static int opdi_copy(opd_tensor *dst, const opd_tensor *src) {
    opd_tensor *ops[2];
    opdi_iter it;
    int d;
    if (src->ndim > dst->ndim) { return opd_fail(OPD_ERROR_SHAPE, "copy: %d dimensions do not fit into %d", src->ndim, dst->ndim); }
    for (d = 0; d < src->ndim; d++) {
        int64_t a = opdi_sizes(dst)[dst->ndim - src->ndim + d], b = opdi_sizes(src)[d];
        if (a != b && b != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d", (long long)a, (long long)b, dst->ndim - src->ndim + d);
        }
    }
    if (dst->numel == 0) { return 0; }
    if (dst->dtype == src->dtype && (dst->flags & src->flags & OPDI_CONTIGUOUS) && dst->numel == src->numel) {
        opdi_bytes b;
        const int64_t n = dst->numel * (int64_t)opd_dtype_size((opd_scalar_type)dst->dtype);
        if (opdi_check_partial_overlap(dst, src) != 0) { return -1; }
        b.dst = dst->data; b.src = src->data;
        if (n <= 4 * OPDI_GRAIN) { memmove(b.dst, b.src, (size_t)n); }
        else { opdi_parallel_for(n, 4 * OPDI_GRAIN, opdi_copy_bytes, &b); }
        return 0;
    }
    ops[0] = dst; ops[1] = (opd_tensor *)(uintptr_t)src;
    if (opd_dtype_is_complex((opd_scalar_type)dst->dtype) || opd_dtype_is_complex((opd_scalar_type)src->dtype)) {
        if (opdi_copy_part(dst, src, 0) != 0) { return -1; }
        return opd_dtype_is_complex((opd_scalar_type)dst->dtype) ? opdi_copy_part(dst, src, 1) : 0;
    }
    if (opdi_iter_init(&it, ops, 2, 1, OPD_DTYPE_NONE, opdi_compute_type((opd_scalar_type)src->dtype)) != 0) { return -1; }
    if (dst->dtype == src->dtype) { return opdi_copy_same(&it); }
    opdi_parallel_for(it.numel, OPDI_GRAIN, opdi_copy_blocks, &it);
    return 0;
}

//----------------------------------------------------------------------------------------------------------------------
//  >>operators  the cards: everything about one operator in one place
//
//  Each card fills an opd_op_desc.  Kernels take results from opd_result, formulas call public operators.  The list of
//  all cards is OPD_OPERATORS in the declarations: a card that is not in it is an unused function, a name in it without
//  a card does not compile.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_OP(name) static void opdi_card_##name(opd_op_desc *op)

//======================================================================================================================
//  >>op:create  making tensors
//======================================================================================================================

/* One kernel for every backend. */
#define OPDI_CARD_ANY(id, schema_, kernel_, backward_, save_, vmap_, inplace_, out_, cases_)                \
    OPDI_OP(id) {                                                                                           \
        op->schema = schema_; op->any = kernel_; op->backward = backward_; op->save = save_;                \
        op->vmap = vmap_; op->autocast = OPD_AUTOCAST_KEEP;                                                 \
        op->inplace = inplace_; op->out = out_; op->cases = cases_;                                         \
    }
/* One made of other operators. */
#define OPDI_CARD_OF(id, schema_, kernel_, inplace_, out_, cases_)                                          \
    OPDI_OP(id) {                                                                                           \
        op->schema = schema_; op->composite = kernel_; op->vmap = OPD_BATCH_DECOMPOSE;                      \
        op->autocast = OPD_AUTOCAST_KEEP; op->inplace = inplace_; op->out = out_; op->cases = cases_;       \
    }

//-- filling -----------------------------------------------------------------------------------------------------------

/* A number as an element of dtype, in out[2]: c10::checked_convert.  0, or -1 with an error when it does not fit. */
static int opdi_element_of(opd_value v, opd_scalar_type dtype, double *out /*[2]*/) {
    const double re = v.tag == OPD_TAG_FLOAT ? v.u.d : v.tag == OPD_TAG_COMPLEX ? v.u.c[0] : (double)v.u.i;
    const double im = v.tag == OPD_TAG_COMPLEX ? v.u.c[1] : 0;
    const bool whole = v.tag == OPD_TAG_INT || v.tag == OPD_TAG_BOOL;
    const int size = (int)opd_dtype_size(dtype);
    const double high = dtype == OPD_UINT8 ? 256 : ldexp(1, 8 * size - 1);
    const double low = dtype == OPD_UINT8 ? whole ? -255 : 0 : -high;
    int64_t i = whole ? v.u.i : opdi_f64_to_i64(re);
    float f = (float)re, pair[2];
    uint16_t h;
    out[0] = out[1] = 0;
    if (!opd_dtype_is_complex(dtype) && (im < 0 || im > 0)) {
        return opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to type %s without overflow", opd_dtype_cname(dtype));
    }
    if (opd_dtype_is_integral(dtype, false) && (!(re > low - 1) || !(re < high)) && !(whole && size == 8)) {
        return opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to type %s without overflow", opd_dtype_cname(dtype));
    }
    switch (dtype) {
        case OPD_FLOAT32: memcpy(out, &f, 4); break;
        case OPD_FLOAT64: out[0] = re; break;
        case OPD_FLOAT16: h = opdi_f32_to_f16(f); memcpy(out, &h, 2); break;
        case OPD_BFLOAT16: h = opdi_f32_to_bf16(f); memcpy(out, &h, 2); break;
        case OPD_COMPLEX64: pair[0] = f; pair[1] = (float)im; memcpy(out, pair, 8); break;
        case OPD_COMPLEX128: out[0] = re; out[1] = im; break;
        case OPD_BOOL: *(char *)out = whole ? v.u.i != 0 : (re < 0 || re > 0 || re != re || im < 0 || im > 0); break;
        case OPD_INT16: case OPD_INT32: case OPD_INT64: case OPD_INT8: case OPD_UINT8: {
            int32_t w = (int32_t)(uint32_t)(uint64_t)i;
            int16_t s = (int16_t)(uint16_t)(uint64_t)i;
            uint8_t b = (uint8_t)(uint64_t)i;
            memcpy(out, size == 8 ? (void *)&i : size == 4 ? (void *)&w : size == 2 ? (void *)&s : (void *)&b, (size_t)size);
            break;
        }
        case OPD_DTYPE_NONE: default: break;
    }
    return 0;
}

typedef struct opdi_fill { char *data; const void *element; int size; } opdi_fill;
#define OPDI_FILL_LOOP(T) do {                                                                              \
        T *p = (T *)(void *)f->data, x;                                                                     \
        memcpy(&x, f->element, sizeof x);                                                                   \
        for (i = begin; i < end; i++) { p[i] = x; }                                                         \
    } while (0)
static void opdi_fill_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_fill *f = (const opdi_fill *)ctx;
    int64_t i;
    switch (f->size) {
        case 1: memset(f->data + begin, *(const unsigned char *)f->element, (size_t)(end - begin)); break;
        case 2: OPDI_FILL_LOOP(uint16_t); break;
        case 4: OPDI_FILL_LOOP(uint32_t); break;
        case 8: OPDI_FILL_LOOP(uint64_t); break;
        default: for (i = begin; i < end; i++) { memcpy(f->data + i * f->size, f->element, (size_t)f->size); } break;
    }
}
/* Every element of t becomes v.  Nothing on meta.  0, or -1 with an error. */
static int opdi_fill_with(opd_tensor *t, opd_value v) {
    double element[2];
    opdi_fill f;
    opd_tensor one;
    if (opdi_element_of(v, (opd_scalar_type)t->dtype, element)) { return -1; }
    if (!t->data || t->numel == 0) { return 0; }
    f.data = t->data; f.element = element; f.size = (int)opd_dtype_size((opd_scalar_type)t->dtype);
    if (opdi_is_dense(t) && !opdi_overlaps_itself(t)) {
        opdi_parallel_for(t->numel, OPDI_GRAIN, opdi_fill_part, &f);
        return 0;
    }
    memset(&one, 0, sizeof one);
    one.refs = 1; one.numel = 1; one.dtype = t->dtype; one.flags = OPDI_CONTIGUOUS; one.data = (char *)element;
    return opdi_copy(t, &one);
}

//-- factories ---------------------------------------------------------------------------------------------------------

/* What (dtype, layout, device, pin_memory[, memory_format]) say. */
typedef struct opdi_options { opd_scalar_type dtype; opd_device device; int64_t format; } opdi_options;
enum { OPDI_FORMAT_CONTIGUOUS = 0, OPDI_FORMAT_PRESERVE, OPDI_FORMAT_LAST, OPDI_FORMAT_LAST_3D };

/* Reads them from argument `at` on; has_format: a memory format follows.  Names what cannot be had. */
static int opdi_options_read(const opd_call *call, int at, bool has_format, opd_scalar_type dtype, opd_device device,
                             opdi_options *o) {
    opd_value v = opd_arg_value(call, at), layout = opd_arg_value(call, at + 1), pin = opd_arg_value(call, at + 3);
    o->dtype = v.tag == OPD_TAG_INT && v.u.i == OPD_DTYPE_NONE ? dtype : opd_arg_dtype(call, at, dtype);
    o->device = opd_arg_device(call, at + 2, device);
    o->format = -1;
    if (has_format) {
        opd_value format = opd_arg_value(call, at + 4);
        o->format = format.tag == OPD_TAG_INT ? format.u.i : -1;
    }
    if (layout.tag == OPD_TAG_INT && layout.u.i != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: only strided tensors exist here, not layout %lld", call->op->name, (long long)layout.u.i);
    }
    if (pin.tag == OPD_TAG_BOOL && pin.u.i) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: pinned memory is not available", call->op->name);
    }
    return opd_ok() ? 0 : -1;
}
/* Strides of a memory format: channels last for 4 and 5 dimensions (c10/core/MemoryFormat.h). */
static int opdi_strides_format(const int64_t *sizes, int ndim, int64_t format, int64_t *strides) {
    const int want = format == OPDI_FORMAT_LAST ? 4 : 5;
    int64_t n = 1;
    int i;
    if (format <= OPDI_FORMAT_CONTIGUOUS) { opdi_strides_fill(sizes, strides, ndim); return 0; }
    if (format != OPDI_FORMAT_LAST && format != OPDI_FORMAT_LAST_3D) {
        return opd_fail(OPD_ERROR_ARGUMENT, "unsupported memory format %lld", (long long)format);
    }
    if (ndim != want) {
        return opd_fail(OPD_ERROR_SHAPE, "required rank %d tensor to use channels_last%s format", want, want == 5 ? "_3d" : "");
    }
    strides[1] = 1;
    n = sizes[1];
    for (i = ndim - 1; i >= 2; i--) { strides[i] = n; n *= OPDI_MAX(sizes[i], 1); }
    strides[0] = n;
    return 0;
}
/* Strides of a fresh tensor like t (at::empty_like with the preserve format, at::infer_dense_strides). */
static void opdi_strides_like(opd_tensor *t, int64_t *strides) {
    int perm[OPD_MAX_DIMS], i;
    int64_t n = 1;
    if (t->flags & OPDI_CONTIGUOUS) { memcpy(strides, opdi_strides(t), (size_t)t->ndim * sizeof *strides); return; }
    if (opdi_is_dense(t) && !opdi_overlaps_itself(t)) { memcpy(strides, opdi_strides(t), (size_t)t->ndim * sizeof *strides); return; }
    opdi_dims_order(&t, 1, opdi_sizes(t), t->ndim, perm);
    for (i = 0; i < t->ndim; i++) { strides[perm[i]] = n; n *= OPDI_MAX(opdi_sizes(t)[perm[i]], 1); }
}
/* The first result in a memory format; `like` gives sizes and, when the format says preserve, strides. */
static opd_tensor *opdi_result_like(opd_call *call, opd_tensor *like, opd_scalar_type dtype, opd_device device, int64_t format) {
    int64_t strides[OPD_MAX_DIMS];
    if (format < 0 || format == OPDI_FORMAT_PRESERVE) { opdi_strides_like(like, strides); }
    else if (opdi_strides_format(opdi_sizes(like), like->ndim, format, strides)) { return NULL; }
    return opd_result_strided(call, 0, opdi_sizes(like), strides, like->ndim, dtype, device);
}
static opd_tensor *opdi_result_sized(opd_call *call, opd_ints sizes, const opdi_options *o) {
    int64_t strides[OPD_MAX_DIMS];
    if (sizes.n > OPD_MAX_DIMS || o->format <= OPDI_FORMAT_CONTIGUOUS) {
        return opd_result_strided(call, 0, sizes.data, NULL, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1), o->dtype, o->device);
    }
    if (opdi_strides_format(sizes.data, (int)sizes.n, o->format, strides)) { return NULL; }
    return opd_result_strided(call, 0, sizes.data, strides, (int)sizes.n, o->dtype, o->device);
}
static int opdi_made(opd_tensor *t, opd_value v) { return t ? opdi_fill_with(t, v) : -1; }
static opd_device opdi_host(void) { return opd_device_of(OPD_CPU, -1); }
/* torch.full's dtype of a number. */
static opd_scalar_type opdi_dtype_of_number(opd_value v) {
    return v.tag == OPD_TAG_BOOL ? OPD_BOOL : v.tag == OPD_TAG_INT ? OPD_INT64 : v.tag == OPD_TAG_COMPLEX ? OPD_COMPLEX64 : OPD_FLOAT32;
}

/* From sizes. */
static int opdi_empty_kernel(opd_call *call) {
    opdi_options o;
    if (opdi_options_read(call, 1, true, OPD_FLOAT32, opdi_host(), &o)) { return -1; }
    return opdi_result_sized(call, opd_arg_ints(call, 0), &o) ? 0 : -1;
}
static int opdi_sized_kernel(opd_call *call, opd_value v) {
    opdi_options o;
    if (opdi_options_read(call, 1, false, OPD_FLOAT32, opdi_host(), &o)) { return -1; }
    return opdi_made(opdi_result_sized(call, opd_arg_ints(call, 0), &o), v);
}
static int opdi_zeros_kernel(opd_call *call) { return opdi_sized_kernel(call, opd_value_int(0)); }
static int opdi_ones_kernel(opd_call *call) { return opdi_sized_kernel(call, opd_value_int(1)); }
static int opdi_full_kernel(opd_call *call) {
    const opd_value v = opd_arg_value(call, 1);
    opdi_options o;
    if (opdi_options_read(call, 2, false, opdi_dtype_of_number(v), opdi_host(), &o)) { return -1; }
    return opdi_made(opdi_result_sized(call, opd_arg_ints(call, 0), &o), v);
}
static int opdi_scalar_tensor_kernel(opd_call *call) {
    opdi_options o;
    if (opdi_options_read(call, 1, false, OPD_FLOAT32, opdi_host(), &o)) { return -1; }
    return opdi_made(opdi_result_sized(call, opd_ints_of(NULL, 0), &o), opd_arg_value(call, 0));
}
static int opdi_empty_strided_at(opd_call *call, int at, const opdi_options *o) {
    opd_ints sizes = opd_arg_ints(call, at), strides = opd_arg_ints(call, at + 1);
    int64_t i;
    if (sizes.n != strides.n) {
        return opd_fail(OPD_ERROR_SHAPE, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                        (long long)sizes.n, (long long)strides.n);
    }
    for (i = 0; i < strides.n; i++) {
        if (strides.data[i] < 0) { return opd_fail(OPD_ERROR_SHAPE, "strides must be non-negative, not %lld", (long long)strides.data[i]); }
    }
    return opd_result_strided(call, 0, sizes.data, strides.data, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1), o->dtype, o->device) ? 0 : -1;
}
static int opdi_empty_strided_kernel(opd_call *call) {
    opdi_options o;
    return opdi_options_read(call, 2, false, OPD_FLOAT32, opdi_host(), &o) ? -1 : opdi_empty_strided_at(call, 0, &o);
}
#define OPDI_OPTIONS_TEXT "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define OPDI_CARD_FACTORY(id, schema_, kernel_, out_, cases_) \
    OPDI_CARD_ANY(id, schema_, kernel_, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_FACTORY, NULL, out_, cases_)
OPDI_CARD_FACTORY(empty_memory_format, "empty.memory_format(SymInt[] size, *, " OPDI_OPTIONS_TEXT ", MemoryFormat? memory_format=None) -> Tensor",
                  opdi_empty_kernel, "empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(empty_strided, "empty_strided(SymInt[] size, SymInt[] stride, *, " OPDI_OPTIONS_TEXT ") -> Tensor",
                  opdi_empty_strided_kernel, NULL, NULL)
OPDI_CARD_FACTORY(zeros, "zeros(SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_zeros_kernel,
                  "zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", "(2,3); (); (2,0), dtype=4")
OPDI_CARD_FACTORY(ones, "ones(SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_ones_kernel,
                  "ones.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", "(2,3); (); (2,0), dtype=4")
OPDI_CARD_FACTORY(full, "full(SymInt[] size, Scalar fill_value, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_full_kernel,
                  "full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)", "(2,3), 1.5; (2), 2; (2), True; (2), 1, dtype=7")
OPDI_CARD_FACTORY(scalar_tensor, "scalar_tensor(Scalar s, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_scalar_tensor_kernel, NULL, "1.5; 2, dtype=4")

/* From a tensor. */
static int opdi_like_options(const opd_call *call, int at, bool has_format, opdi_options *o) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    return opdi_options_read(call, at, has_format, (opd_scalar_type)self->dtype, opd_tensor_device(self), o);
}
static opd_tensor *opdi_like_result(opd_call *call, int at) {
    opdi_options o;
    if (opdi_like_options(call, at, true, &o)) { return NULL; }
    return opdi_result_like(call, opd_arg_tensor(call, 0), o.dtype, o.device, o.format);
}
static int opdi_empty_like_kernel(opd_call *call) { return opdi_like_result(call, 1) ? 0 : -1; }
static int opdi_zeros_like_kernel(opd_call *call) { return opdi_made(opdi_like_result(call, 1), opd_value_int(0)); }
static int opdi_ones_like_kernel(opd_call *call) { return opdi_made(opdi_like_result(call, 1), opd_value_int(1)); }
static int opdi_full_like_kernel(opd_call *call) { return opdi_made(opdi_like_result(call, 2), opd_arg_value(call, 1)); }
#define OPDI_FORMAT_TEXT OPDI_OPTIONS_TEXT ", MemoryFormat? memory_format=None"
#define OPDI_OUT_LIKE "MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)"
OPDI_CARD_FACTORY(empty_like, "empty_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_empty_like_kernel,
                  "empty_like.out(Tensor self, *, " OPDI_OUT_LIKE, NULL)
OPDI_CARD_FACTORY(zeros_like, "zeros_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_zeros_like_kernel,
                  "zeros_like.out(Tensor self, *, " OPDI_OUT_LIKE, "[2,3]; [2,3], dtype=4")
OPDI_CARD_FACTORY(ones_like, "ones_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_ones_like_kernel,
                  "ones_like.out(Tensor self, *, " OPDI_OUT_LIKE, "[2,3]; [2,3], dtype=4")
OPDI_CARD_FACTORY(full_like, "full_like(Tensor self, Scalar fill_value, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_full_like_kernel,
                  "full_like.out(Tensor self, Scalar fill_value, *, " OPDI_OUT_LIKE, "[2,3], 2; [2,3], 1.5, dtype=7")
static opd_tensor *opdi_new_result(opd_call *call, int at) {
    opdi_options o;
    return opdi_like_options(call, at, false, &o) ? NULL : opdi_result_sized(call, opd_arg_ints(call, 1), &o);
}
static int opdi_new_empty_kernel(opd_call *call) { return opdi_new_result(call, 2) ? 0 : -1; }
static int opdi_new_zeros_kernel(opd_call *call) { return opdi_made(opdi_new_result(call, 2), opd_value_int(0)); }
static int opdi_new_ones_kernel(opd_call *call) { return opdi_made(opdi_new_result(call, 2), opd_value_int(1)); }
static int opdi_new_full_kernel(opd_call *call) { return opdi_made(opdi_new_result(call, 3), opd_arg_value(call, 2)); }
static int opdi_new_empty_strided_kernel(opd_call *call) {
    opdi_options o;
    return opdi_like_options(call, 3, false, &o) ? -1 : opdi_empty_strided_at(call, 1, &o);
}
OPDI_CARD_FACTORY(new_empty, "new_empty(Tensor self, SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_new_empty_kernel,
                  "new_empty.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(new_empty_strided, "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " OPDI_OPTIONS_TEXT ") -> Tensor",
                  opdi_new_empty_strided_kernel, NULL, NULL)
OPDI_CARD_FACTORY(new_zeros, "new_zeros(Tensor self, SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_new_zeros_kernel,
                  "new_zeros.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", "[2], (2,3)")
OPDI_CARD_FACTORY(new_ones, "new_ones(Tensor self, SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_new_ones_kernel,
                  "new_ones.out(Tensor self, SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)", "[2], (2,3)")
OPDI_CARD_FACTORY(new_full, "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_new_full_kernel,
                  "new_full.out(Tensor self, SymInt[] size, Scalar fill_value, *, Tensor(a!) out) -> Tensor(a!)", "[2], (2,3), 2.5")

//-- fill, zero --------------------------------------------------------------------------------------------------------
//
//  The in-place forms are cards of their own, so that they have wrappers; a kernel serves both forms.

/* What a kernel of both forms writes: self, or a result like it. */
static opd_tensor *opdi_written(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (!(call->op->written_args & 1)) {
        return opdi_result_like(call, self, (opd_scalar_type)self->dtype, opd_tensor_device(self), OPDI_FORMAT_PRESERVE);
    }
    if (opdi_check_internal_overlap(self) || opd_return_tensor(call, self)) { return NULL; }
    return self;
}
static int opdi_fill_Scalar_kernel(opd_call *call) { return opdi_made(opdi_written(call), opd_arg_value(call, 1)); }
static int opdi_zero_kernel(opd_call *call) { return opdi_made(opdi_written(call), opd_value_int(0)); }
static int opdi_fill_Tensor_kernel(opd_call *call) {
    opd_tensor *value = opd_arg_tensor(call, 1), *out;
    if (value->ndim != 0) {
        return opd_fail(OPD_ERROR_SHAPE, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    }
    out = opdi_written(call);
    if (!out) { return -1; }
    return !out->data || !value->data ? 0 : opdi_copy(out, value);
}
static int opdi_fill_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_zeros_like(opd_bw_grad(bw, 0))); }
/* The value's gradient is summed by the engine, as one that was broadcast. */
static int opdi_fill_Tensor_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_zeros_like(g))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, g) : 0;
}
#define OPDI_CARD_FILL(id, schema_, kernel_, backward_, out_, cases_) \
    OPDI_CARD_ANY(id, schema_, kernel_, backward_, "", OPD_BATCH_POINTWISE, NULL, out_, cases_)
OPDI_CARD_FILL(fill__Scalar, "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)", opdi_fill_Scalar_kernel, opdi_fill_backward, NULL, "[2,3], 2")
OPDI_CARD_FILL(fill__Tensor, "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)", opdi_fill_Tensor_kernel, opdi_fill_Tensor_backward, NULL, "[2,3], []")
OPDI_CARD_FILL(zero_, "zero_(Tensor(a!) self) -> Tensor(a!)", opdi_zero_kernel, opdi_fill_backward, NULL, "[2,3]")
OPDI_CARD_FILL(fill_Scalar, "fill.Scalar(Tensor self, Scalar value) -> Tensor", opdi_fill_Scalar_kernel, opdi_fill_backward, "fill.Scalar_out", "[2,3], 2")
OPDI_CARD_FILL(fill_Tensor, "fill.Tensor(Tensor self, Tensor value) -> Tensor", opdi_fill_Tensor_kernel, opdi_fill_Tensor_backward, "fill.Tensor_out", "[2,3], []")
OPDI_CARD_FILL(zero, "zero(Tensor self) -> Tensor", opdi_zero_kernel, opdi_fill_backward, "zero.out", "[2,3]")

//-- sequences ---------------------------------------------------------------------------------------------------------

/* start + step i; made (linspace): from the nearer end, so that both ends are exact; base (logspace): base^that. */
typedef struct opdi_sequence { double start, end, step, base; int64_t i_start, i_step, n; bool whole, linear, power; void *out; } opdi_sequence;
static void opdi_sequence_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_sequence *q = (const opdi_sequence *)ctx;
    int64_t i;
    for (i = begin; i < end && q->whole; i++) {
        ((int64_t *)q->out)[i] = (int64_t)((uint64_t)q->i_start + (uint64_t)q->i_step * (uint64_t)i);
    }
    for (; i < end; i++) {
        double x = q->linear && i >= q->n / 2 ? q->end - q->step * (double)(q->n - 1 - i) : q->start + q->step * (double)i;
        ((double *)q->out)[i] = q->power ? pow(q->base, x) : x;
    }
}
/* Writes a sequence to a one-dimensional tensor of any dtype. */
static int opdi_sequence_write(opd_tensor *out, opdi_sequence *q) {
    const opd_scalar_type work = q->whole ? OPD_INT64 : OPD_FLOAT64;
    opd_tensor *t = out;
    if (!out || !out->data) { return out ? 0 : -1; }
    if (out->dtype != (int8_t)work || !(out->flags & OPDI_CONTIGUOUS)) { t = opd_tensor_new(opd_ints_of(&out->numel, 1), work); }
    if (!t) { return -1; }
    q->out = t->data;
    opdi_parallel_for(t->numel, OPDI_GRAIN, opdi_sequence_part, q);
    return t == out ? 0 : opdi_copy(out, t);
}
static double opdi_scalar_f64(opd_value v) { return v.tag == OPD_TAG_FLOAT ? v.u.d : v.tag == OPD_TAG_COMPLEX ? v.u.c[0] : (double)v.u.i; }
static int64_t opdi_scalar_i64(opd_value v) {
    return v.tag == OPD_TAG_INT || v.tag == OPD_TAG_BOOL ? v.u.i : opdi_f64_to_i64(opdi_scalar_f64(v));
}
static bool opdi_is_whole(opd_value v) { return v.tag == OPD_TAG_INT || v.tag == OPD_TAG_BOOL; }
/* Numbers that a factory takes as float32, int64, ...: no sequence of bool or complex. */
static int opdi_sequence_dtype(const opd_call *call, opd_scalar_type dtype) {
    if (dtype != OPD_BOOL && !opd_dtype_is_complex(dtype)) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "\"%s_cpu\" not implemented for '%s'", call->op->schema->name, opd_dtype_cname(dtype));
}
/* at::arange_out, at::range_out (closed: the end belongs to it). */
static int opdi_arange_run(opd_call *call, opd_value start, opd_value end, opd_value step, bool closed) {
    const bool whole = opdi_is_whole(start) && opdi_is_whole(end) && opdi_is_whole(step);
    const double a = opdi_scalar_f64(start), b = opdi_scalar_f64(end), s = opdi_scalar_f64(step);
    opdi_options o;
    opdi_sequence q;
    double count = closed ? floor((b - a) / s) + 1 : ceil((b - a) / s);
    if (opdi_options_read(call, call->op->nargs - 4, false, whole && !closed ? OPD_INT64 : OPD_FLOAT32, opdi_host(), &o)) { return -1; }
    if (opdi_sequence_dtype(call, o.dtype)) { return -1; }
    if (!(s < 0 || s > 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "step must be nonzero"); }
    if (!isfinite(a) || !isfinite(b)) { return opd_fail(OPD_ERROR_ARGUMENT, "unsupported range: %g -> %g", a, b); }
    if (s > 0 ? b < a : b > a) { return opd_fail(OPD_ERROR_ARGUMENT, "upper bound and larger bound inconsistent with step sign"); }
    memset(&q, 0, sizeof q);
    q.start = a; q.step = s; q.whole = opd_dtype_is_integral(o.dtype, false);
    q.i_start = opdi_scalar_i64(start); q.i_step = opdi_scalar_i64(step);
    if (o.dtype == OPD_INT64 && !closed) {
        int64_t last = opdi_scalar_i64(end);
        if (q.i_step == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "step must be nonzero"); }
        count = ceil((double)(int64_t)((uint64_t)last - (uint64_t)q.i_start) / (double)q.i_step);
    }
    if (!(count >= 0) || count > 4e18) { return opd_fail(OPD_ERROR_ARGUMENT, "invalid size, possible overflow?"); }
    q.n = (int64_t)count;
    return opdi_sequence_write(opdi_result_sized(call, opd_ints_of(&q.n, 1), &o), &q);
}
static int opdi_arange_kernel(opd_call *call) {
    const int n = call->op->nargs - 4;
    return opdi_arange_run(call, n == 1 ? opd_value_int(0) : opd_arg_value(call, 0), opd_arg_value(call, n == 1 ? 0 : 1),
                           n == 3 ? opd_arg_value(call, 2) : opd_value_int(1), false);
}
static int opdi_range_kernel(opd_call *call) {
    return opdi_arange_run(call, opd_arg_value(call, 0), opd_arg_value(call, 1), call->op->nargs == 7 ? opd_arg_value(call, 2) : opd_value_int(1), true);
}
#define OPDI_OUT_TEXT ", *, Tensor(a!) out) -> Tensor(a!)"
OPDI_CARD_FACTORY(arange, "arange(Scalar end, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_arange_kernel, "arange.out(Scalar end" OPDI_OUT_TEXT, "5; 2.5")
OPDI_CARD_FACTORY(arange_start, "arange.start(Scalar start, Scalar end, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_arange_kernel, NULL, "1, 4")
OPDI_CARD_FACTORY(arange_start_step, "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_arange_kernel,
                  "arange.start_out(Scalar start, Scalar end, Scalar step=1" OPDI_OUT_TEXT, "1, 4, 2; 3, 0, -1; 0, 1, 0.25")
OPDI_CARD_FACTORY(range, "range(Scalar start, Scalar end, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_range_kernel, NULL, "1, 4")
OPDI_CARD_FACTORY(range_step, "range.step(Scalar start, Scalar end, Scalar step=1, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_range_kernel,
                  "range.out(Scalar start, Scalar end, Scalar step=1" OPDI_OUT_TEXT, "1, 4, 2")
/* linspace; logspace has a base before the options. */
static int opdi_linspace_kernel(opd_call *call) {
    const bool power = call->op->nargs == 8;
    opd_value start = opd_arg_value(call, 0), end = opd_arg_value(call, 1);
    opdi_sequence q;
    opdi_options o;
    memset(&q, 0, sizeof q);
    q.n = opd_arg_int(call, 2); q.linear = true; q.power = power; q.base = power ? opd_arg_float(call, 3) : 0;
    if (opdi_options_read(call, power ? 4 : 3, false, OPD_FLOAT32, opdi_host(), &o) || opdi_sequence_dtype(call, o.dtype)) { return -1; }
    if (q.n < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "number of steps must be non-negative"); }
    q.start = opdi_scalar_f64(start); q.end = opdi_scalar_f64(end);
    if (opd_dtype_is_integral(o.dtype, false)) { q.start = (double)opdi_scalar_i64(start); q.end = (double)opdi_scalar_i64(end); }
    if (q.n > 1) { q.step = (q.end - q.start) / (double)(q.n - 1); } else { q.end = q.start; }
    return opdi_sequence_write(opdi_result_sized(call, opd_ints_of(&q.n, 1), &o), &q);
}
OPDI_CARD_FACTORY(linspace, "linspace(Scalar start, Scalar end, int steps, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_linspace_kernel,
                  "linspace.out(Scalar start, Scalar end, int steps" OPDI_OUT_TEXT, "0, 1, 5; 2, -1, 1; 0, 9, 4, dtype=4")
OPDI_CARD_FACTORY(logspace, "logspace(Scalar start, Scalar end, int steps, float base=10., *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_linspace_kernel,
                  "logspace.out(Scalar start, Scalar end, int steps, float base=10." OPDI_OUT_TEXT, "0, 1, 5; 0, 3, 4, 2.0")
static int opdi_eye_kernel(opd_call *call) {
    const bool square = call->op->nargs == 5;
    int64_t sizes[2], diagonal, stride;
    opdi_options o;
    opd_tensor *out, *line;
    sizes[0] = opd_arg_int(call, 0);
    sizes[1] = square ? sizes[0] : opd_arg_int(call, 1);
    if (opdi_options_read(call, square ? 1 : 2, false, OPD_FLOAT32, opdi_host(), &o)) { return -1; }
    if (sizes[0] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "n must be greater or equal to 0, got %lld", (long long)sizes[0]); }
    if (sizes[1] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "m must be greater or equal to 0, got %lld", (long long)sizes[1]); }
    out = opdi_result_sized(call, opd_ints_of(sizes, 2), &o);
    if (opdi_made(out, opd_value_int(0))) { return -1; }
    diagonal = OPDI_MIN(sizes[0], sizes[1]);
    stride = opdi_strides(out)[0] + opdi_strides(out)[1];
    line = opdi_view(out, &diagonal, &stride, 1, 0);
    return line ? opdi_fill_with(line, opd_value_int(1)) : -1;
}
OPDI_CARD_FACTORY(eye, "eye(int n, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_eye_kernel, "eye.out(int n" OPDI_OUT_TEXT, "3")
OPDI_CARD_FACTORY(eye_m, "eye.m(int n, int m, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_eye_kernel, "eye.m_out(int n, int m" OPDI_OUT_TEXT, "3, 2")

//-- triangles ---------------------------------------------------------------------------------------------------------

typedef struct opdi_triangle { char *out; const char *in; int64_t rows, cols, diagonal; size_t size; bool lower; } opdi_triangle;
/* Rows [begin, end) of all matrices: columns [0, k) or [k, cols) are kept, k cut to the row. */
static void opdi_triangle_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_triangle *g = (const opdi_triangle *)ctx;
    int64_t r, bytes = g->cols * (int64_t)g->size;
    for (r = begin; r < end; r++) {
        int64_t k = r % g->rows + g->diagonal + (g->lower ? 1 : 0);
        size_t first = (size_t)OPDI_MIN(OPDI_MAX(k, 0), g->cols) * g->size, rest = (size_t)bytes - first;
        char *o = g->out + r * bytes;
        const char *x = g->in + r * bytes;
        memcpy(o + (g->lower ? 0 : first), x + (g->lower ? 0 : first), g->lower ? first : rest);
        memset(o + (g->lower ? first : 0), 0, g->lower ? rest : first);
    }
}
static int opdi_triangle_run(opd_call *call, bool lower) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out, *target;
    int64_t diagonal = opd_arg_int(call, 1), limit = INT64_MAX / 4;
    opdi_triangle g;
    if (self->ndim < 2) { return opd_fail(OPD_ERROR_SHAPE, "%s: input tensor must have at least 2 dimensions", lower ? "tril" : "triu"); }
    target = out = opd_result(call, 0, opdi_sizes(self), self->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!(self->flags & OPDI_CONTIGUOUS) && !(self = opd_contiguous(self))) { return -1; }
    if (!(out->flags & OPDI_CONTIGUOUS) && !(target = opd_tensor_new(opd_ints_of(opdi_sizes(self), self->ndim), (opd_scalar_type)self->dtype))) { return -1; }
    g.out = target->data; g.in = self->data; g.lower = lower;
    g.rows = opdi_sizes(self)[self->ndim - 2]; g.cols = opdi_sizes(self)[self->ndim - 1];
    g.diagonal = OPDI_MIN(OPDI_MAX(diagonal, -limit), limit); g.size = opd_dtype_size((opd_scalar_type)self->dtype);
    opdi_parallel_for(self->numel / g.cols, OPDI_MAX((int64_t)1, OPDI_GRAIN / g.cols), opdi_triangle_part, &g);
    return target == out ? 0 : opdi_copy(out, target);
}
static int opdi_tril_kernel(opd_call *call) { return opdi_triangle_run(call, true); }
static int opdi_triu_kernel(opd_call *call) { return opdi_triangle_run(call, false); }
static int opdi_tril_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_tril_full(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i)); }
static int opdi_triu_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_triu_full(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i)); }
OPDI_CARD_ANY(tril, "tril(Tensor self, int diagonal=0) -> Tensor", opdi_tril_kernel, opdi_tril_backward, "", OPD_BATCH_SHIFT_DIM, "tril_", "tril.out",
              "[3,4]; [2,3,3], 1; [3,3], -1")
OPDI_CARD_ANY(triu, "triu(Tensor self, int diagonal=0) -> Tensor", opdi_triu_kernel, opdi_triu_backward, "", OPD_BATCH_SHIFT_DIM, "triu_", "triu.out",
              "[3,4]; [2,3,3], 1; [3,3], -1")
/* Columns [from, to) of row r that belong to the triangle. */
static void opdi_triangle_row(int64_t r, int64_t cols, int64_t offset, bool lower, int64_t *from, int64_t *to) {
    int64_t k = OPDI_MIN(OPDI_MAX(r + offset + (lower ? 1 : 0), 0), cols);
    *from = lower ? 0 : k;
    *to = lower ? k : cols;
}
static int opdi_triangle_indices(opd_call *call, bool lower) {
    int64_t rows = opd_arg_int(call, 0), cols = opd_arg_int(call, 1), offset, sizes[2], r, from, to, *p, i = 0;
    opdi_options o;
    opd_tensor *out, *t;
    offset = OPDI_MIN(OPDI_MAX(opd_arg_int(call, 2), -(INT64_MAX / 4)), INT64_MAX / 4);
    if (opdi_options_read(call, 3, false, OPD_INT64, opdi_host(), &o)) { return -1; }
    if (rows < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "row must be non-negative, got%lld", (long long)rows); }
    if (cols < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "col must be non-negative, got%lld", (long long)cols); }
    if (rows > INT32_MAX || cols > INT32_MAX) { return opd_fail(OPD_ERROR_SHAPE, "%s: the sizes do not fit into memory", call->op->name); }
    sizes[0] = 2;
    for (sizes[1] = 0, r = 0; r < rows; r++) { opdi_triangle_row(r, cols, offset, lower, &from, &to); sizes[1] += to - from; }
    out = opdi_result_sized(call, opd_ints_of(sizes, 2), &o);
    if (!out || !out->data) { return out ? 0 : -1; }
    t = opd_tensor_new(opd_ints_of(sizes, 2), OPD_INT64);
    if (!t) { return -1; }
    p = (int64_t *)(void *)t->data;
    for (r = 0; r < rows; r++) {
        for (opdi_triangle_row(r, cols, offset, lower, &from, &to); from < to; from++, i++) { p[i] = r; p[sizes[1] + i] = from; }
    }
    return opdi_copy(out, t);
}
static int opdi_tril_indices_kernel(opd_call *call) { return opdi_triangle_indices(call, true); }
static int opdi_triu_indices_kernel(opd_call *call) { return opdi_triangle_indices(call, false); }
#define OPDI_INTS_TEXT "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None"
OPDI_CARD_FACTORY(tril_indices, "tril_indices(int row, int col, int offset=0, *, " OPDI_INTS_TEXT ") -> Tensor", opdi_tril_indices_kernel,
                  "tril_indices.out(int row, int col, int offset=0" OPDI_OUT_TEXT, "3, 3; 3, 4, 1")
OPDI_CARD_FACTORY(triu_indices, "triu_indices(int row, int col, int offset=0, *, " OPDI_INTS_TEXT ") -> Tensor", opdi_triu_indices_kernel,
                  "triu_indices.out(int row, int col, int offset=0" OPDI_OUT_TEXT, "3, 3; 3, 4, 1")

//-- random numbers ----------------------------------------------------------------------------------------------------
//
//  A generator is a key and a count of 32-bit words used; a call takes its words under a lock and fills its result from
//  there, so that numbers depend neither on threads nor on the device.

struct opd_generator { uint64_t seed, used; };
static opdi_mutex opdi_generator_lock = OPDI_MUTEX_INIT;
static opd_generator opdi_generator_default;

void opd_generator_seed(opd_generator *g, uint64_t seed) {
    if (!g) { g = &opdi_generator_default; }
    opdi_lock(&opdi_generator_lock);
    g->seed = seed;
    g->used = 0;
    opdi_unlock(&opdi_generator_lock);
}
void opd_manual_seed(uint64_t seed) { opd_generator_seed(NULL, seed); }
opd_generator *opd_generator_new(uint64_t seed) {
    opd_generator *g = (opd_generator *)opdi_alloc(sizeof *g);
    if (g) { opd_generator_seed(g, seed); }
    return g;
}
void opd_generator_free(opd_generator *g) {
    if (g) { opdi_free(g, sizeof *g); }
}
/* Takes n words (whole blocks of 64) of the call's generator: where they start, and their key. */
static uint64_t opdi_words(const opd_call *call, int64_t n, uint64_t *key) {
    int i = opdi_arg_index(call->op->schema, "generator", 9);
    opd_value v = i < 0 ? opd_value_none() : opd_arg_value(call, i);
    opd_generator *g = v.tag == OPD_TAG_OBJECT && v.u.object ? (opd_generator *)v.u.object : &opdi_generator_default;
    uint64_t at;
    opdi_lock(&opdi_generator_lock);
    at = g->used;
    g->used += ((uint64_t)n + 63) / 64 * 64;
    *key = g->seed;
    opdi_unlock(&opdi_generator_lock);
    return at;
}

typedef struct opdi_draw { int64_t *out; uint64_t key, at, range, low; } opdi_draw;
/* Each of two words; range 0: all 64 bits. */
static void opdi_draw_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_draw *g = (const opdi_draw *)ctx;
    uint32_t r[64];
    int64_t i, k, m;
    for (i = begin; i < end; i += m) {
        uint64_t at = g->at + 2 * (uint64_t)i;
        m = OPDI_MIN((int64_t)(32 - at % 64 / 2), end - i);
        opdi_philox16(g->key, at / 64 * 16, r);
        for (k = 0; k < m; k++) {
            const uint32_t *w = r + at % 64 + 2 * k;
            uint64_t x = (uint64_t)w[1] << 32 | w[0];
            g->out[i + k] = (int64_t)(g->low + (g->range ? x % g->range : x));
        }
    }
}
/* n numbers of [low, low + range). */
static void opdi_draw_ints(const opd_call *call, int64_t *out, int64_t n, int64_t low, uint64_t range) {
    opdi_draw g;
    g.out = out; g.range = range; g.low = (uint64_t)low;
    g.at = opdi_words(call, 2 * n, &g.key);
    opdi_parallel_for(n, 16384, opdi_draw_part, &g);
}
/* Numbers of [0, 1), or (normal) of the standard normal distribution; out is contiguous, float32 or float64. */
static void opdi_draw_floats(const opd_call *call, opd_tensor *out, bool normal) {
    const bool wide = out->dtype == OPD_FLOAT64;
    uint64_t key, at = opdi_words(call, wide ? 2 * out->numel : out->numel, &key);
    opdi_fill_random((normal ? 1 : 0) + (wide ? 2 : 0), out->numel, out->data, key, wide ? at / 2 : at);
}
/* Where random numbers for out are made: out itself, or a contiguous tensor of this dtype.  NULL: failed. */
static opd_tensor *opdi_draft(opd_tensor *out, opd_scalar_type dtype) {
    if (out->dtype == (int8_t)dtype && (out->flags & OPDI_CONTIGUOUS)) { return out; }
    return opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), dtype);
}
static int opdi_draft_done(opd_tensor *out, const opd_tensor *draft) { return draft == out ? 0 : opdi_copy(out, draft); }
static opd_scalar_type opdi_float_work(int8_t dtype) { return dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32; }
static int opdi_random_dtype(const char *name, const opd_tensor *out) {
    if (opd_dtype_is_floating((opd_scalar_type)out->dtype)) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", name, opd_dtype_cname((opd_scalar_type)out->dtype));
}

enum { OPDI_DRAW_UNIFORM, OPDI_DRAW_NORMAL, OPDI_DRAW_EXPONENTIAL, OPDI_DRAW_BERNOULLI };
typedef struct opdi_shape { void *p; bool wide; int kind; double a, b, bits; } opdi_shape;
static double opdi_shape_one(const opdi_shape *s, double x) {
    switch (s->kind) {
        case OPDI_DRAW_UNIFORM: return (s->bits > 0 ? floor(x * s->bits) / s->bits : x) * (s->b - s->a) + s->a;
        case OPDI_DRAW_NORMAL: return x * s->b + s->a;
        case OPDI_DRAW_EXPONENTIAL: return -log1p(-x) / s->a;
        default: return x < s->a ? 1 : 0;
    }
}
static void opdi_shape_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_shape *s = (const opdi_shape *)ctx;
    int64_t i;
    if (s->wide) { for (i = begin; i < end; i++) { double *p = (double *)s->p + i; *p = opdi_shape_one(s, *p); } }
    else { for (i = begin; i < end; i++) { float *p = (float *)s->p + i; *p = (float)opdi_shape_one(s, *p); } }
}
/* Fills out with numbers of a distribution: uniform [a, b), normal of mean a and deviation b, exponential of rate a, ones
   with probability a.  Short floats take as many bits of the uniform number as they hold, so that b is never reached. */
static int opdi_draw_into(const opd_call *call, opd_tensor *out, int kind, double a, double b) {
    opd_tensor *t;
    opdi_shape s;
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!(t = opdi_draft(out, opdi_float_work(out->dtype)))) { return -1; }
    opdi_draw_floats(call, t, kind == OPDI_DRAW_NORMAL);
    s.p = t->data; s.wide = t->dtype == OPD_FLOAT64; s.kind = kind; s.a = a; s.b = b;
    s.bits = out->dtype == OPD_FLOAT16 ? 2048 : out->dtype == OPD_BFLOAT16 ? 256 : 0;
    if (kind > OPDI_DRAW_NORMAL || a < 0 || a > 0 || b < 1 || b > 1 || s.bits > 0) { opdi_parallel_for(t->numel, OPDI_GRAIN, opdi_shape_part, &s); }
    return opdi_draft_done(out, t);
}
static int opdi_normal_into(const opd_call *call, opd_tensor *out, double mean, double std) {
    if (!(std >= 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "normal expects std >= 0.0, but found std %g", std); }
    return out && opdi_random_dtype("normal_kernel_cpu", out) == 0 ? opdi_draw_into(call, out, OPDI_DRAW_NORMAL, mean, std) : -1;
}
static int opdi_uniform_into(const opd_call *call, opd_tensor *out, double from, double to) {
    if (!(from <= to)) { return opd_fail(OPD_ERROR_ARGUMENT, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to); }
    if (!isfinite(to - from)) { return opd_fail(OPD_ERROR_ARGUMENT, "uniform_ expects to-from to be finite, but found to=%g and from=%g", to, from); }
    return out && opdi_random_dtype("check_uniform_bounds", out) == 0 ? opdi_draw_into(call, out, OPDI_DRAW_UNIFORM, from, to) : -1;
}
static int opdi_bernoulli_into(const opd_call *call, opd_tensor *out, double p) {
    if (!(p >= 0 && p <= 1)) { return opd_fail(OPD_ERROR_ARGUMENT, "bernoulli_ expects p to be in [0, 1], but got p=%g", p); }
    return opdi_draw_into(call, out, OPDI_DRAW_BERNOULLI, p, 0);
}
/* Integers of [low, high), which the dtype must hold. */
static int opdi_ints_into(const opd_call *call, opd_tensor *out, int64_t low, int64_t high) {
    opd_tensor *t;
    double element[2];
    if (low >= high) {
        return opd_fail(OPD_ERROR_ARGUMENT, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)low, (long long)high);
    }
    if (!out) { return -1; }
    if (opd_dtype_is_complex((opd_scalar_type)out->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "\"random_update_from_to\" not implemented for '%s'", opd_dtype_cname((opd_scalar_type)out->dtype));
    }
    if ((out->dtype == OPD_UINT8 && low < 0) || (out->dtype == OPD_BOOL && (low < 0 || high > 2)) ||
        (opd_dtype_is_integral((opd_scalar_type)out->dtype, false) && (opdi_element_of(opd_value_int(low), (opd_scalar_type)out->dtype, element) ||
         opdi_element_of(opd_value_int(high - 1), (opd_scalar_type)out->dtype, element)))) {
        opd_error_clear();
        return opd_fail(OPD_ERROR_ARGUMENT, "from %lld or to - 1 %lld is out of bounds for %s", (long long)low, (long long)high - 1,
                        opd_dtype_name((opd_scalar_type)out->dtype));
    }
    if (!out->data || out->numel == 0) { return 0; }
    if (!(t = opdi_draft(out, OPD_INT64))) { return -1; }
    opdi_draw_ints(call, (int64_t *)(void *)t->data, t->numel, low, (uint64_t)high - (uint64_t)low);
    return opdi_draft_done(out, t);
}

/* Factories: the options are the last four arguments, the sizes stand before a generator. */
static opd_tensor *opdi_random_result(opd_call *call, int sizes, opd_scalar_type dtype) {
    opdi_options o;
    if (opdi_options_read(call, call->op->nargs - 4, false, dtype, opdi_host(), &o)) { return NULL; }
    return opdi_result_sized(call, opd_arg_ints(call, sizes), &o);
}
static int opdi_rand_kernel(opd_call *call) { return opdi_uniform_into(call, opdi_random_result(call, 0, OPD_FLOAT32), 0, 1); }
static int opdi_randn_kernel(opd_call *call) { return opdi_normal_into(call, opdi_random_result(call, 0, OPD_FLOAT32), 0, 1); }
static int opdi_randint_kernel(opd_call *call) { return opdi_ints_into(call, opdi_random_result(call, 1, OPD_INT64), 0, opd_arg_int(call, 0)); }
static int opdi_randint_low_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_random_result(call, 2, OPD_INT64), opd_arg_int(call, 0), opd_arg_int(call, 1));
}
static int opdi_normal_float_float_kernel(opd_call *call) {
    return opdi_normal_into(call, opdi_random_result(call, 2, OPD_FLOAT32), opd_arg_float(call, 0), opd_arg_float(call, 1));
}
/* Fisher and Yates. */
static int opdi_randperm_kernel(opd_call *call) {
    int64_t n = opd_arg_int(call, 0), i, *p, *r, t;
    double element[2];
    opdi_options o;
    opd_tensor *out, *draft, *draws;
    if (n < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "n must be non-negative, got%lld", (long long)n); }
    if (opdi_options_read(call, call->op->nargs - 4, false, OPD_INT64, opdi_host(), &o) || opdi_sequence_dtype(call, o.dtype)) { return -1; }
    if (opd_dtype_is_integral(o.dtype, false) && opdi_element_of(opd_value_int(n), o.dtype, element)) { return -1; }
    out = opdi_result_sized(call, opd_ints_of(&n, 1), &o);
    if (!out || !out->data || n == 0) { return out ? 0 : -1; }
    draft = opdi_draft(out, OPD_INT64);
    draws = draft ? opd_tensor_new(opd_ints_of(&n, 1), OPD_INT64) : NULL;
    if (!draws) { return -1; }
    p = (int64_t *)(void *)draft->data; r = (int64_t *)(void *)draws->data;
    opdi_draw_ints(call, r, n, 0, 0);
    for (i = 0; i < n; i++) { p[i] = i; }
    for (i = 0; i + 1 < n; i++) {
        int64_t j = i + (int64_t)((uint64_t)r[i] % (uint64_t)(n - i));
        t = p[i]; p[i] = p[j]; p[j] = t;
    }
    return opdi_draft_done(out, draft);
}
OPDI_CARD_FACTORY(rand, "rand(int[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_rand_kernel, "rand.out(int[] size" OPDI_OUT_TEXT, NULL)
OPDI_CARD_FACTORY(rand_generator, "rand.generator(int[] size, *, Generator? generator, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_rand_kernel,
                  "rand.generator_out(int[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(randn, "randn(int[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_randn_kernel, "randn.out(int[] size" OPDI_OUT_TEXT, NULL)
OPDI_CARD_FACTORY(randn_generator, "randn.generator(int[] size, *, Generator? generator, " OPDI_OPTIONS_TEXT ") -> Tensor", opdi_randn_kernel,
                  "randn.generator_out(int[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(randint, "randint(int high, int[] size, *, " OPDI_INTS_TEXT ") -> Tensor", opdi_randint_kernel,
                  "randint.out(int high, int[] size" OPDI_OUT_TEXT, NULL)
OPDI_CARD_FACTORY(randint_generator, "randint.generator(int high, int[] size, *, Generator? generator, " OPDI_INTS_TEXT ") -> Tensor", opdi_randint_kernel,
                  "randint.generator_out(int high, int[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(randint_low, "randint.low(int low, int high, int[] size, *, " OPDI_INTS_TEXT ") -> Tensor", opdi_randint_low_kernel,
                  "randint.low_out(int low, int high, int[] size" OPDI_OUT_TEXT, NULL)
OPDI_CARD_FACTORY(randint_low_generator, "randint.low_generator(int low, int high, int[] size, *, Generator? generator, " OPDI_INTS_TEXT ") -> Tensor",
                  opdi_randint_low_kernel,
                  "randint.low_generator_out(int low, int high, int[] size, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(randperm, "randperm(int n, *, " OPDI_INTS_TEXT ") -> Tensor", opdi_randperm_kernel, "randperm.out(int n" OPDI_OUT_TEXT, NULL)
OPDI_CARD_FACTORY(randperm_generator, "randperm.generator(int n, *, Generator? generator, " OPDI_INTS_TEXT ") -> Tensor", opdi_randperm_kernel,
                  "randperm.generator_out(int n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)", NULL)
OPDI_CARD_FACTORY(normal_float_float, "normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, " OPDI_OPTIONS_TEXT ") -> Tensor",
                  opdi_normal_float_float_kernel,
                  "normal.float_float_out(float mean, float std, int[] size, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)", NULL)
static int opdi_rand_like_kernel(opd_call *call) { return opdi_uniform_into(call, opdi_like_result(call, 1), 0, 1); }
static int opdi_randn_like_kernel(opd_call *call) { return opdi_normal_into(call, opdi_like_result(call, 1), 0, 1); }
static int opdi_randint_like_kernel(opd_call *call) { return opdi_ints_into(call, opdi_like_result(call, 2), 0, opd_arg_int(call, 1)); }
static int opdi_randint_like_low_kernel(opd_call *call) {
    return opdi_ints_into(call, opdi_like_result(call, 3), opd_arg_int(call, 1), opd_arg_int(call, 2));
}
OPDI_CARD_FACTORY(rand_like, "rand_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_rand_like_kernel, "rand_like.out(Tensor self, *, " OPDI_OUT_LIKE, NULL)
OPDI_CARD_FACTORY(randn_like, "randn_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_randn_like_kernel, "randn_like.out(Tensor self, *, " OPDI_OUT_LIKE, NULL)
OPDI_CARD_FACTORY(randint_like, "randint_like(Tensor self, int high, *, " OPDI_FORMAT_TEXT ") -> Tensor", opdi_randint_like_kernel,
                  "randint_like.out(Tensor self, int high, *, " OPDI_OUT_LIKE, NULL)
OPDI_CARD_FACTORY(randint_like_low_dtype, "randint_like.low_dtype(Tensor self, int low, int high, *, " OPDI_FORMAT_TEXT ") -> Tensor",
                  opdi_randint_like_low_kernel, "randint_like.low_dtype_out(Tensor self, int low, int high, *, " OPDI_OUT_LIKE, NULL)

/* Forms that write self, and those like self. */
static int opdi_normal__kernel(opd_call *call) { return opdi_normal_into(call, opdi_written(call), opd_arg_float(call, 1), opd_arg_float(call, 2)); }
static int opdi_uniform__kernel(opd_call *call) { return opdi_uniform_into(call, opdi_written(call), opd_arg_float(call, 1), opd_arg_float(call, 2)); }
static int opdi_exponential__kernel(opd_call *call) {
    double rate = opd_arg_float(call, 1);
    opd_tensor *out;
    if (!(rate > 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "exponential_ expects lambda > 0.0, but found lambda=%g", rate); }
    out = opdi_written(call);
    return out && opdi_random_dtype("exponential_cpu", out) == 0 ? opdi_draw_into(call, out, OPDI_DRAW_EXPONENTIAL, rate, 0) : -1;
}
static int opdi_bernoulli_p_kernel(opd_call *call) { return opdi_bernoulli_into(call, opdi_written(call), opd_arg_float(call, 1)); }
static int opdi_random_from_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int size = (int)opd_dtype_size((opd_scalar_type)self->dtype);
    int64_t low = call->op->nargs == 4 ? opd_arg_int(call, 1) : 0, high;
    opd_value to = call->op->nargs == 4 ? opd_arg_value(call, 2) : call->op->nargs == 3 ? opd_arg_value(call, 1) : opd_value_none();
    if (to.tag == OPD_TAG_INT) { high = to.u.i; }
    else if (opd_dtype_is_floating((opd_scalar_type)self->dtype)) {
        high = ((int64_t)1 << (self->dtype == OPD_FLOAT64 ? 53 : self->dtype == OPD_FLOAT32 ? 24 : self->dtype == OPD_FLOAT16 ? 11 : 8)) + 1;
    } else { high = self->dtype == OPD_BOOL ? 2 : self->dtype == OPD_UINT8 ? 256 : size == 8 ? INT64_MAX : (int64_t)1 << (8 * size - 1); }
    return opdi_ints_into(call, opdi_written(call), low, high);
}
/* Each element with a probability of its own. */
static int opdi_bernoulli_tensor_run(opd_call *call, opd_tensor *out, opd_tensor *p) {
    opd_tensor *chance, *draws;
    double *c, *d;
    int64_t i;
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!opd_dtype_is_floating((opd_scalar_type)p->dtype)) { return opdi_random_dtype("bernoulli_tensor_cpu_p_", p); }
    chance = opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), OPD_FLOAT64);
    draws = chance ? opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), OPD_FLOAT64) : NULL;
    if (!draws || opdi_copy(chance, p)) { return -1; }
    opdi_draw_floats(call, draws, false);
    c = (double *)(void *)chance->data; d = (double *)(void *)draws->data;
    for (i = 0; i < out->numel; i++) {
        if (!(c[i] >= 0 && c[i] <= 1)) { return opd_fail(OPD_ERROR_ARGUMENT, "Expected p_in >= 0 && p_in <= 1 to be true, but got false."); }
        d[i] = d[i] < c[i] ? 1 : 0;
    }
    return opdi_copy(out, draws);
}
static int opdi_bernoulli_kernel(opd_call *call) { return opdi_bernoulli_tensor_run(call, opdi_written(call), opd_arg_tensor(call, 0)); }
static int opdi_bernoulli__Tensor_kernel(opd_call *call) { return opdi_bernoulli_tensor_run(call, opdi_written(call), opd_arg_tensor(call, 1)); }
/* No gradient flows through a random number: zeros, for every tensor argument. */
static int opdi_zeros_backward(opd_backward_call *bw) {
    int i;
    for (i = 0; i < 2; i++) {
        opd_ints sizes = opd_bw_sizes(bw, i);
        if (sizes.n >= 0 && opd_bw_return(bw, i, opd_new_zeros(opd_bw_grad(bw, 0), sizes))) { return -1; }
    }
    return 0;
}
#define OPDI_CARD_DRAW(id, schema_, kernel_, out_) \
    OPDI_CARD_ANY(id, schema_, kernel_, opdi_zeros_backward, "", OPD_BATCH_LOOP, NULL, out_, NULL)
#define OPDI_GENERATOR_TEXT ", *, Generator? generator=None) -> Tensor"
OPDI_CARD_DRAW(normal_, "normal_(Tensor(a!) self, float mean=0., float std=1." OPDI_GENERATOR_TEXT "(a!)", opdi_normal__kernel, NULL)
OPDI_CARD_DRAW(uniform_, "uniform_(Tensor(a!) self, float from=0., float to=1." OPDI_GENERATOR_TEXT "(a!)", opdi_uniform__kernel, NULL)
OPDI_CARD_DRAW(exponential_, "exponential_(Tensor(a!) self, float lambd=1." OPDI_GENERATOR_TEXT "(a!)", opdi_exponential__kernel, NULL)
OPDI_CARD_DRAW(random_, "random_(Tensor(a!) self" OPDI_GENERATOR_TEXT "(a!)", opdi_random_from_kernel, NULL)
OPDI_CARD_DRAW(random__from, "random_.from(Tensor(a!) self, int from, int? to" OPDI_GENERATOR_TEXT "(a!)", opdi_random_from_kernel, NULL)
OPDI_CARD_DRAW(random__to, "random_.to(Tensor(a!) self, int to" OPDI_GENERATOR_TEXT "(a!)", opdi_random_from_kernel, NULL)
OPDI_CARD_DRAW(bernoulli__float, "bernoulli_.float(Tensor(a!) self, float p=0.5" OPDI_GENERATOR_TEXT "(a!)", opdi_bernoulli_p_kernel, NULL)
OPDI_CARD_DRAW(bernoulli__Tensor, "bernoulli_.Tensor(Tensor(a!) self, Tensor p" OPDI_GENERATOR_TEXT "(a!)", opdi_bernoulli__Tensor_kernel, NULL)
OPDI_CARD_DRAW(bernoulli, "bernoulli(Tensor self" OPDI_GENERATOR_TEXT, opdi_bernoulli_kernel, "bernoulli.out")
OPDI_CARD_DRAW(bernoulli_p, "bernoulli.p(Tensor self, float p" OPDI_GENERATOR_TEXT, opdi_bernoulli_p_kernel, NULL)
OPDI_CARD_DRAW(normal_functional, "normal_functional(Tensor self, float mean=0., float std=1." OPDI_GENERATOR_TEXT, opdi_normal__kernel, NULL)
static opd_tensor *opdi_to_f64(opd_tensor *t, const int64_t *sizes, int ndim) {
    opd_tensor *d = opd_tensor_new(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    return d && opdi_copy(d, t) == 0 ? d : NULL;
}
/* mean + std z, either a tensor. */
static int opdi_normal_tensor_kernel(opd_call *call) {
    opd_value mean = opd_arg_value(call, 0), std = opd_arg_value(call, 1);
    opd_tensor *t[2], *out, *z;
    int64_t sizes[OPD_MAX_DIMS], i;
    int ndim = 0, k;
    t[0] = mean.tag == OPD_TAG_TENSOR ? mean.u.t : NULL;
    t[1] = std.tag == OPD_TAG_TENSOR ? std.u.t : NULL;
    for (k = 0; k < 2; k++) {
        if (t[k] && (opdi_broadcast_into(sizes, &ndim, t[k]) || opdi_random_dtype("normal_kernel_cpu", t[k]))) { return -1; }
    }
    if (!t[1] && !(std.u.d >= 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "normal expects std >= 0.0, but found std %g", std.u.d); }
    out = opd_result(call, 0, sizes, ndim, (opd_scalar_type)(t[0] ? t[0] : t[1])->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (t[1] && !(t[1] = opdi_to_f64(t[1], sizes, ndim))) { return -1; }
    for (i = 0; t[1] && i < out->numel; i++) {
        if (!(((double *)(void *)t[1]->data)[i] >= 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "normal expects all elements of std >= 0.0"); }
    }
    z = opd_tensor_new(opd_ints_of(sizes, ndim), opdi_float_work(out->dtype));
    if (!z) { return -1; }
    opdi_draw_floats(call, z, true);
    z = t[1] ? opd_mul(z, t[1]) : opd_mul_Scalar(z, std);
    z = t[0] ? opd_add(z, t[0]) : opd_add_Scalar(z, mean);
    return z ? opdi_copy(out, z) : -1;
}
OPDI_CARD_DRAW(normal_Tensor_float, "normal.Tensor_float(Tensor mean, float std=1." OPDI_GENERATOR_TEXT, opdi_normal_tensor_kernel, "normal.Tensor_float_out")
OPDI_CARD_DRAW(normal_float_Tensor, "normal.float_Tensor(float mean, Tensor std" OPDI_GENERATOR_TEXT, opdi_normal_tensor_kernel, "normal.float_Tensor_out")
OPDI_CARD_DRAW(normal_Tensor_Tensor, "normal.Tensor_Tensor(Tensor mean, Tensor std" OPDI_GENERATOR_TEXT, opdi_normal_tensor_kernel, "normal.Tensor_Tensor_out")

//======================================================================================================================
//  >>op:view  views and copies
//======================================================================================================================

//-- helpers -----------------------------------------------------------------------------------------------------------

/* A dim counted from the end where it is negative (c10::maybe_wrap_dim); a 0-dim tensor takes 0 and -1.  -1: failed. */
static int opdi_view_dim(int64_t dim, int ndim) {
    const int n = OPDI_MAX(ndim, 1);
    if (dim < -n || dim >= n) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n, n - 1, (long long)dim);
    }
    return (int)(dim < 0 ? dim + n : dim);
}
static opd_ints opdi_sizes_of(const opd_tensor *t) { return opd_ints_of(opd_sizes(t), opd_ndim(t)); }
static int opdi_return_view(opd_call *call, opd_tensor *t, const int64_t *sizes, const int64_t *strides, int ndim, int64_t offset) {
    if (!opd_ok()) { return -1; }
    return opd_return_tensor(call, opdi_view(t, sizes, strides, ndim, offset));
}
/* Sizes and strides of t, to be changed. */
typedef struct opdi_geometry { int ndim; int64_t sizes[OPD_MAX_DIMS + 1], strides[OPD_MAX_DIMS + 1]; } opdi_geometry;
static void opdi_geometry_of(opdi_geometry *g, const opd_tensor *t) {
    g->ndim = t->ndim;
    memcpy(g->sizes, opdi_sizes(t), (size_t)t->ndim * sizeof *g->sizes);
    memcpy(g->strides, opdi_strides(t), (size_t)t->ndim * sizeof *g->strides);
}
static void opdi_geometry_remove(opdi_geometry *g, int d) {
    int i;
    for (i = d; i + 1 < g->ndim; i++) { g->sizes[i] = g->sizes[i + 1]; g->strides[i] = g->strides[i + 1]; }
    if (g->ndim > 0) { g->ndim--; }
}
static void opdi_geometry_insert(opdi_geometry *g, int d, int64_t size, int64_t stride) {
    int i;
    for (i = g->ndim++; i > d; i--) { g->sizes[i] = g->sizes[i - 1]; g->strides[i] = g->strides[i - 1]; }
    g->sizes[d] = size;
    g->strides[d] = stride;
}
static int opdi_return_geometry(opd_call *call, opd_tensor *t, const opdi_geometry *g, int64_t offset) {
    return opdi_return_view(call, t, g->sizes, g->strides, g->ndim, offset);
}

#define OPDI_CARD_VIEW(id, schema_, kernel_, backward_, cases_) \
    OPDI_CARD_ANY(id, schema_, kernel_, backward_, "", OPD_BATCH_VIEW, NULL, NULL, cases_)

//-- view, reshape -----------------------------------------------------------------------------------------------------

/* Replaces a -1 in sizes by what makes numel elements (at::infer_size).  0, or -1 with an error. */
static int opdi_infer_size(opd_ints shape, int64_t numel, int64_t *sizes) {
    int64_t product = 1;
    int i, unknown = -1;
    char text[256];
    if (shape.n > OPD_MAX_DIMS) { return (int)opdi_count(shape.data, OPD_MAX_DIMS + 1, 1); }
    for (i = 0; i < shape.n; i++) {
        sizes[i] = shape.data[i];
        if (sizes[i] == -1) {
            if (unknown >= 0) { return opd_fail(OPD_ERROR_SHAPE, "only one dimension can be inferred"); }
            unknown = i;
        } else if (sizes[i] < 0) { return opd_fail(OPD_ERROR_SHAPE, "invalid shape dimension %lld", (long long)sizes[i]); }
        else { product = product == 0 || sizes[i] == 0 ? 0 : sizes[i] > INT64_MAX / product ? -2 : product * sizes[i]; }
        if (product == -2) { break; }
    }
    if (product >= 0 && (numel == product || (unknown >= 0 && product > 0 && numel % product == 0))) {
        if (unknown >= 0 && product == 0) {
            return opd_fail(OPD_ERROR_SHAPE, "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can be "
                            "any value and is ambiguous", opdi_sizes_text(shape.data, (int)shape.n, text, sizeof text));
        }
        if (unknown >= 0) { sizes[unknown] = numel / product; }
        return 0;
    }
    return opd_fail(OPD_ERROR_SHAPE, "shape '%s' is invalid for input of size %lld", opdi_sizes_text(shape.data, (int)shape.n, text, sizeof text),
                    (long long)numel);
}
/* Strides with which t looks like sizes, when there are some (at::detail::computeStride). */
static bool opdi_view_strides(const opd_tensor *t, const int64_t *sizes, int ndim, int64_t *strides) {
    const int64_t *old = opdi_sizes(t), *steps = opdi_strides(t);
    int64_t base, chunk = 1, made = 1;
    int d, v = ndim - 1;
    if (t->numel == 0 && opdi_has_sizes(t, sizes, ndim)) { memcpy(strides, steps, (size_t)ndim * sizeof *strides); return true; }
    if ((t->flags & OPDI_CONTIGUOUS) || t->ndim == 0) { opdi_strides_fill(sizes, strides, ndim); return true; }
    base = steps[t->ndim - 1];
    for (d = t->ndim - 1; d >= 0; d--) {
        chunk *= old[d];
        if (d > 0 && (old[d - 1] == 1 || steps[d - 1] == chunk * base)) { continue; }
        while (v >= 0 && (made < chunk || sizes[v] == 1)) {
            strides[v] = made * base;
            made *= sizes[v--];
        }
        if (made != chunk) { return false; }
        if (d > 0) { base = steps[d - 1]; chunk = made = 1; }
    }
    return v == -1;
}
static int opdi_view_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints shape = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    if (opdi_infer_size(shape, self->numel, sizes)) { return -1; }
    if (!opdi_view_strides(self, sizes, (int)shape.n, strides)) {
        return opd_fail(OPD_ERROR_SHAPE, "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                        "contiguous subspaces). Use .reshape(...) instead.");
    }
    return opdi_return_view(call, self, sizes, strides, (int)shape.n, 0);
}
static int opdi_view_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_reshape(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0)));
}
OPDI_CARD_VIEW(view, "view(Tensor(a) self, SymInt[] size) -> Tensor(a)", opdi_view_kernel, opdi_view_backward, "[2,3], (3,2); [2,3], (-1); [], (1,1)")
OPDI_CARD_VIEW(_unsafe_view, "_unsafe_view(Tensor self, SymInt[] size) -> Tensor", opdi_view_kernel, opdi_view_backward, "[2,3], (3,2)")
static int opdi_as_strided_at(opd_call *call, int64_t offset) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints sizes = opd_arg_ints(call, 1), strides = opd_arg_ints(call, 2);
    if (sizes.n != strides.n) {
        return opd_fail(OPD_ERROR_SHAPE, "mismatch in length of strides and shape: %lld and %lld", (long long)strides.n, (long long)sizes.n);
    }
    return opd_return_tensor(call, opd_tensor_view(self, sizes.data, strides.data, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1), offset));
}
static int opdi_reshape_alias_kernel(opd_call *call) { return opdi_as_strided_at(call, opd_offset(opd_arg_tensor(call, 0))); }
OPDI_CARD_VIEW(_reshape_alias, "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)", opdi_reshape_alias_kernel,
               opdi_view_backward, "[2,3], (3,2), (2,1)")
/* A view where there is one, else a copy. */
static int opdi_reshape_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints shape = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    if (opdi_infer_size(shape, self->numel, sizes)) { return -1; }
    shape.data = sizes;
    if (opdi_view_strides(self, sizes, (int)shape.n, strides)) { return opd_return_tensor(call, opd_view(self, shape)); }
    return opd_return_tensor(call, opd_unsafe_view(opd_clone_full(self, opd_value_int(OPDI_FORMAT_CONTIGUOUS)), shape));
}
OPDI_CARD_OF(reshape, "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)", opdi_reshape_kernel, NULL, NULL, "[2,3], (3,2); [2,3], (-1)")
static int opdi_view_as_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_view(opd_arg_tensor(call, 0), opdi_sizes_of(opd_arg_tensor(call, 1))));
}
static int opdi_reshape_as_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_reshape(opd_arg_tensor(call, 0), opdi_sizes_of(opd_arg_tensor(call, 1))));
}
static int opdi_expand_as_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_expand(opd_arg_tensor(call, 0), opdi_sizes_of(opd_arg_tensor(call, 1))));
}
OPDI_CARD_OF(view_as, "view_as(Tensor(a) self, Tensor other) -> Tensor(a)", opdi_view_as_kernel, NULL, NULL, "[2,3], [3,2]")
OPDI_CARD_OF(reshape_as, "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", opdi_reshape_as_kernel, NULL, NULL, "[2,3], [3,2]")
OPDI_CARD_OF(expand_as, "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", opdi_expand_as_kernel, NULL, NULL, "[3], [2,3]")
static int opdi_flatten_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int first = opdi_view_dim(opd_arg_int(call, 1), self->ndim), last = opdi_view_dim(opd_arg_int(call, 2), self->ndim), i, n = 0;
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (first < 0 || last < 0) { return -1; }
    if (first > last) { return opd_fail(OPD_ERROR_ARGUMENT, "flatten() has invalid args: start_dim cannot come after end_dim"); }
    if (self->ndim == 0) { sizes[0] = 1; return opd_return_tensor(call, opd_reshape(self, opd_ints_of(sizes, 1))); }
    if (first == last) { return opd_return_tensor(call, self); }
    for (i = 0; i < self->ndim; i++) {
        if (i > first && i <= last) { sizes[n - 1] *= opdi_sizes(self)[i]; }
        else { sizes[n++] = opdi_sizes(self)[i]; }
    }
    return opd_return_tensor(call, opd_reshape(self, opd_ints_of(sizes, n)));
}
OPDI_CARD_OF(flatten_using_ints, "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)", opdi_flatten_kernel, NULL, NULL,
             "[2,3]; [2,3,2], 1; []")

//-- expand ------------------------------------------------------------------------------------------------------------

/* at::inferExpandGeometry.  0, or -1 with an error. */
static int opdi_expand_geometry(const opd_tensor *t, opd_ints to, opdi_geometry *g) {
    char a[256], b[256];
    int i;
    if (to.n > OPD_MAX_DIMS) { return (int)opdi_count(to.data, OPD_MAX_DIMS + 1, 1); }
    if (to.n < t->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "expand(%s{%s}, size=%s): the number of sizes provided (%lld) must be greater or equal to the number of "
                        "dimensions in the tensor (%d)", opd_dtype_cname((opd_scalar_type)t->dtype), opdi_sizes_text(opdi_sizes(t), t->ndim, a, sizeof a),
                        opdi_sizes_text(to.data, (int)to.n, b, sizeof b), (long long)to.n, t->ndim);
    }
    g->ndim = (int)to.n;
    for (i = g->ndim - 1; i >= 0; i--) {
        const int d = i - (g->ndim - t->ndim);
        int64_t size = d >= 0 ? opdi_sizes(t)[d] : 1, want = to.data[i];
        int64_t stride = d >= 0 ? opdi_strides(t)[d] : i + 1 < g->ndim ? g->sizes[i + 1] * g->strides[i + 1] : 1;
        if (want == -1 && d < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing dimension %d", (long long)want, i);
        }
        if (want == -1) { want = size; }
        if (want != size && size != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %d.  "
                            "Target sizes: %s.  Tensor sizes: %s", (long long)want, (long long)size, i,
                            opdi_sizes_text(to.data, (int)to.n, a, sizeof a), opdi_sizes_text(opdi_sizes(t), t->ndim, b, sizeof b));
        }
        g->sizes[i] = want;
        g->strides[i] = want != size ? 0 : stride;
    }
    return opdi_count(g->sizes, g->ndim, opd_dtype_size((opd_scalar_type)t->dtype)) < 0 ? -1 : 0;
}
static int opdi_expand_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_geometry g;
    return opdi_expand_geometry(self, opd_arg_ints(call, 1), &g) ? -1 : opdi_return_geometry(call, self, &g, 0);
}
/* The engine sums a gradient that was broadcast. */
static int opdi_pass_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
OPDI_CARD_VIEW(expand, "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", opdi_expand_kernel, opdi_pass_backward,
               "[3,1], (3,4); [3], (2,-1); [], (2)")

//-- dims in another order, dims of one --------------------------------------------------------------------------------

static int opdi_return_swapped(opd_call *call, opd_tensor *self, int a, int b) {
    opdi_geometry g;
    opdi_geometry_of(&g, self);
    if (self->ndim > 0) {
        g.sizes[a] = opdi_sizes(self)[b]; g.sizes[b] = opdi_sizes(self)[a];
        g.strides[a] = opdi_strides(self)[b]; g.strides[b] = opdi_strides(self)[a];
    }
    return opdi_return_geometry(call, self, &g, 0);
}
static int opdi_transpose_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int a = opdi_view_dim(opd_arg_int(call, 1), self->ndim), b = a < 0 ? -1 : opdi_view_dim(opd_arg_int(call, 2), self->ndim);
    return a < 0 || b < 0 ? -1 : opdi_return_swapped(call, self, a, b);
}
static int opdi_transpose_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_transpose(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i, opd_bw_value(bw, 2).u.i));
}
OPDI_CARD_VIEW(transpose_int, "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", opdi_transpose_kernel, opdi_transpose_backward,
               "[2,3], 0, 1; [2,3,2], -1, 0")
static int opdi_t_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (self->ndim > 2) { return opd_fail(OPD_ERROR_SHAPE, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim); }
    return opdi_return_swapped(call, self, 0, self->ndim < 2 ? 0 : 1);
}
static int opdi_t_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_t(opd_bw_grad(bw, 0))); }
OPDI_CARD_VIEW(t, "t(Tensor(a) self) -> Tensor(a)", opdi_t_kernel, opdi_t_backward, "[2,3]; [3]")
/* perm[i] = the dim of a tensor with ndim dims that dims[i] names. */
static int opdi_permutation(opd_ints dims, int ndim, int64_t *perm) {
    bool seen[OPD_MAX_DIMS];
    int i, d;
    if (dims.n != ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
                        "of dimensions i.e. input.dim() = %d is not equal to len(dims) = %lld", ndim, (long long)dims.n);
    }
    memset(seen, 0, sizeof seen);
    for (i = 0; i < ndim; i++) {
        if ((d = opdi_view_dim(dims.data[i], ndim)) < 0) { return -1; }
        if (seen[d]) { return opd_fail(OPD_ERROR_SHAPE, "permute(): duplicate dims are not allowed."); }
        seen[d] = true;
        perm[i] = d;
    }
    return 0;
}
static int opdi_permute_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t perm[OPD_MAX_DIMS];
    opdi_geometry g;
    int i;
    if (opdi_permutation(opd_arg_ints(call, 1), self->ndim, perm)) { return -1; }
    g.ndim = self->ndim;
    for (i = 0; i < g.ndim; i++) { g.sizes[i] = opdi_sizes(self)[perm[i]]; g.strides[i] = opdi_strides(self)[perm[i]]; }
    return opdi_return_geometry(call, self, &g, 0);
}
static int opdi_permute_backward(opd_backward_call *bw) {
    opd_value dims = opd_bw_value(bw, 1);
    int64_t perm[OPD_MAX_DIMS], inverse[OPD_MAX_DIMS];
    int i;
    if (opdi_permutation(opd_ints_of(dims.u.ints, dims.n), dims.n, perm)) { return -1; }
    for (i = 0; i < dims.n; i++) { inverse[perm[i]] = i; }
    return opd_bw_return(bw, 0, opd_permute(opd_bw_grad(bw, 0), opd_ints_of(inverse, dims.n)));
}
OPDI_CARD_VIEW(permute, "permute(Tensor(a) self, int[] dims) -> Tensor(a)", opdi_permute_kernel, opdi_permute_backward, "[2,3], (1,0); [2,3,2], (2,0,-2)")
static int opdi_unsqueeze_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int d = opdi_view_dim(opd_arg_int(call, 1), self->ndim + 1);
    opdi_geometry g;
    if (d < 0) { return -1; }
    opdi_geometry_of(&g, self);
    opdi_geometry_insert(&g, d, 1, d < self->ndim ? g.sizes[d] * g.strides[d] : 1);
    return opdi_return_geometry(call, self, &g, 0);
}
static int opdi_unsqueeze_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_squeeze_dim(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i));
}
OPDI_CARD_VIEW(unsqueeze, "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", opdi_unsqueeze_kernel, opdi_unsqueeze_backward, "[2,3], 1; [2,3], -1; [], 0")
/* Without dims of size 1, all of them or only dim `only`. */
static void opdi_geometry_squeeze(opdi_geometry *g, int only) {
    int d;
    for (d = g->ndim - 1; d >= 0; d--) {
        if (g->sizes[d] == 1 && (only < 0 || d == only)) { opdi_geometry_remove(g, d); }
    }
}
static int opdi_squeeze_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int only = call->op->nargs < 2 ? -1 : opdi_view_dim(opd_arg_int(call, 1), self->ndim);
    opdi_geometry g;
    if (!opd_ok()) { return -1; }
    opdi_geometry_of(&g, self);
    opdi_geometry_squeeze(&g, only);
    return opdi_return_geometry(call, self, &g, 0);
}
OPDI_CARD_VIEW(squeeze, "squeeze(Tensor(a) self) -> Tensor(a)", opdi_squeeze_kernel, opdi_view_backward, "[2,1,3,1]; [1]")
OPDI_CARD_VIEW(squeeze_dim, "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)", opdi_squeeze_kernel, opdi_view_backward, "[2,1,3], 1; [2,3], 0; [], 0")
static int opdi_alias_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opdi_return_view(call, self, opdi_sizes(self), opdi_strides(self), self->ndim, 0);
}
OPDI_CARD_VIEW(detach, "detach(Tensor(a) self) -> Tensor(a)", opdi_alias_kernel, OPD_NOT_DIFFERENTIABLE, "[2,3]")
OPDI_CARD_VIEW(alias, "alias(Tensor(a) self) -> Tensor(a)", opdi_alias_kernel, opdi_pass_backward, "[2,3]")

//-- parts -------------------------------------------------------------------------------------------------------------

/* g becomes the part of t at index of dim; returns its offset, -1: failed. */
static int64_t opdi_select_geometry(const opd_tensor *t, int64_t dim, int64_t index, opdi_geometry *g) {
    char text[256];
    int64_t size;
    int d;
    if (t->ndim == 0) { return opd_fail(OPD_ERROR_INDEX, "select() cannot be applied to a 0-dim tensor."); }
    if ((d = opdi_view_dim(dim, t->ndim)) < 0) { return -1; }
    size = opdi_sizes(t)[d];
    if (index < -size || index >= size) {
        return opd_fail(OPD_ERROR_INDEX, "select(): index %lld out of range for tensor of size %s at dimension %d", (long long)index,
                        opdi_sizes_text(opdi_sizes(t), t->ndim, text, sizeof text), d);
    }
    opdi_geometry_of(g, t);
    opdi_geometry_remove(g, d);
    return (index < 0 ? index + size : index) * opdi_strides(t)[d];
}
static int opdi_select_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_geometry g;
    int64_t offset = opdi_select_geometry(self, opd_arg_int(call, 1), opd_arg_int(call, 2), &g);
    return offset < 0 ? -1 : opdi_return_geometry(call, self, &g, offset);
}
static int opdi_select_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_select_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i, opd_bw_value(bw, 2).u.i));
}
OPDI_CARD_VIEW(select_int, "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)", opdi_select_kernel, opdi_select_bw, "[2,3], 0, 1; [2,3], -1, -2")
/* The same for every step-th index of [start, end), each cut to the dim. */
static int64_t opdi_slice_geometry(const opd_tensor *t, int64_t dim, int64_t start, int64_t end, int64_t step, opdi_geometry *g) {
    int64_t size;
    int d;
    if (t->ndim == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "slice() cannot be applied to a 0-dim tensor."); }
    if ((d = opdi_view_dim(dim, t->ndim)) < 0) { return -1; }
    if (step <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "slice step must be positive"); }
    size = opdi_sizes(t)[d];
    if (start < 0) { start += size; }
    if (end < 0) { end += size; }
    start = OPDI_MIN(OPDI_MAX(start, 0), size);
    end = OPDI_MIN(OPDI_MAX(end, start), size);
    opdi_geometry_of(g, t);
    g->sizes[d] = (end - start) / step + ((end - start) % step != 0);
    g->strides[d] = step > 1 && g->strides[d] > INT64_MAX / step ? INT64_MAX : g->strides[d] * step;
    return start * opdi_strides(t)[d];
}
static int opdi_slice_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_value start = opd_arg_value(call, 2), end = opd_arg_value(call, 3);
    opdi_geometry g;
    int64_t offset = opdi_slice_geometry(self, opd_arg_int(call, 1), start.tag == OPD_TAG_INT ? start.u.i : 0,
                                         end.tag == OPD_TAG_INT ? end.u.i : INT64_MAX, opd_arg_int(call, 4), &g);
    return offset < 0 ? -1 : opdi_return_geometry(call, self, &g, offset);
}
static int opdi_slice_bw(opd_backward_call *bw) {
    opd_value start = opd_bw_value(bw, 2), end = opd_bw_value(bw, 3);
    return opd_bw_return(bw, 0, opd_slice_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i,
                                                   start.tag == OPD_TAG_INT ? start.u.i : 0, end.tag == OPD_TAG_INT ? end.u.i : INT64_MAX,
                                                   opd_bw_value(bw, 4).u.i));
}
OPDI_CARD_VIEW(slice_Tensor, "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)", opdi_slice_kernel,
               opdi_slice_bw, "[4,3], 0, 1, 3; [4,3], 1, None, None, 2; [4,3], -1, -2")
static int opdi_as_strided_kernel(opd_call *call) {
    opd_value offset = opd_arg_value(call, 3);
    return opdi_as_strided_at(call, offset.tag == OPD_TAG_INT ? offset.u.i : opd_offset(opd_arg_tensor(call, 0)));
}
/* Into the geometry of self, which "save" keeps. */
static int opdi_as_strided_bw(opd_backward_call *bw) {
    opd_tensor *self = opd_bw_tensor(bw, 0);
    opd_value size = opd_bw_value(bw, 1), stride = opd_bw_value(bw, 2), offset = opd_bw_value(bw, 3);
    if (!self) { return -1; }
    return opd_bw_return(bw, 0, opd_as_strided_backward(opd_bw_grad(bw, 0), opdi_sizes_of(self), opd_ints_of(opd_strides(self), opd_ndim(self)),
                                                        opd_ints_of(size.u.ints, size.n), opd_ints_of(stride.u.ints, stride.n),
                                                        offset.tag == OPD_TAG_INT ? offset.u.i - opd_offset(self) : 0));
}
OPDI_CARD_ANY(as_strided, "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)", opdi_as_strided_kernel,
              opdi_as_strided_bw, "self", OPD_BATCH_VIEW, NULL, NULL, "[3,4], (2,2), (4,1); [6], (2,2), (1,1), 1")

//-- their gradients: zeros with the gradient at its place -------------------------------------------------------------

/* A result of zeros with these sizes. */
static opd_tensor *opdi_zero_result(opd_call *call, opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *out = opd_result(call, 0, sizes.data, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1), dtype);
    return out && opdi_fill_with(out, opd_value_int(0)) == 0 ? out : NULL;
}
static int opdi_put_at(opd_tensor *out, const opdi_geometry *g, int64_t offset, const opd_tensor *grad) {
    opd_tensor *part;
    if (offset < 0) { return -1; }
    part = opdi_view(out, g->sizes, g->strides, g->ndim, offset);
    if (!part) { return -1; }
    if (!opdi_has_sizes(part, opdi_sizes(grad), grad->ndim)) { return opd_fail(OPD_ERROR_SHAPE, "expected a gradient with the sizes of the part"); }
    return out->data && grad->data ? opdi_copy(part, grad) : 0;
}
static int opdi_select_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *out = opdi_zero_result(call, opd_arg_ints(call, 1), (opd_scalar_type)grad->dtype);
    opdi_geometry g;
    return out ? opdi_put_at(out, &g, opdi_select_geometry(out, opd_arg_int(call, 2), opd_arg_int(call, 3), &g), grad) : -1;
}
static int opdi_select_backward_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_select(opd_bw_grad(bw, 0), opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i));
}
#define OPDI_CARD_PUT(id, schema_, kernel_, backward_, out_, cases_) \
    OPDI_CARD_ANY(id, schema_, kernel_, backward_, "", OPD_BATCH_SHIFT_DIM, NULL, out_, cases_)
OPDI_CARD_PUT(select_backward, "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, int index) -> Tensor", opdi_select_backward_kernel,
              opdi_select_backward_bw, "select_backward.out", "[3], (2,3), 0, 1")
static int opdi_slice_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *out = opdi_zero_result(call, opd_arg_ints(call, 1), (opd_scalar_type)grad->dtype);
    opdi_geometry g;
    int64_t offset;
    if (!out) { return -1; }
    offset = opdi_slice_geometry(out, opd_arg_int(call, 2), opd_arg_int(call, 3), opd_arg_int(call, 4), opd_arg_int(call, 5), &g);
    return opdi_put_at(out, &g, offset, grad);
}
static int opdi_slice_backward_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_slice(opd_bw_grad(bw, 0), opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3), opd_bw_value(bw, 4), opd_bw_value(bw, 5).u.i));
}
OPDI_CARD_PUT(slice_backward, "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor",
              opdi_slice_backward_kernel, opdi_slice_backward_bw, "slice_backward.out", "[2,3], (4,3), 0, 1, 3, 1")

/* Adds what lies at (sizes, strides, at) of `values` in order to base, or (take) reads it from there. */
static void opdi_walk_strided(double *base, double *values, opd_ints sizes, opd_ints strides, int64_t at, bool take) {
    int64_t idx[OPD_MAX_DIMS], k, pos = at;
    int d;
    memset(idx, 0, sizeof idx);
    for (d = 0; d < sizes.n; d++) { if (sizes.data[d] == 0) { return; } }
    for (k = 0;; k++) {
        if (take) { values[k] = base[pos]; } else { base[pos] += values ? values[k] : 1; }
        for (d = (int)sizes.n - 1; d >= 0; d--) {
            pos += strides.data[d];
            if (++idx[d] < sizes.data[d]) { break; }
            pos -= strides.data[d] * sizes.data[d];
            idx[d] = 0;
        }
        if (d < 0) { return; }
    }
}
static opd_tensor *opdi_doubles(opd_ints sizes, const opd_tensor *from) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT64);
    if (!t || (from ? opdi_copy(t, from) : opdi_fill_with(t, opd_value_int(0)))) { return NULL; }
    return t;
}
/* The gradient of as_strided: grad is added up in a base that both geometries look at, and the input's geometry reads it;
   an input that overlaps itself shares the sum (torch/csrc/autograd/FunctionsManual.cpp).  storage_offset counts from the
   input's first element. */
static int opdi_as_strided_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *out, *base, *values, *input, *count = NULL;
    opd_ints in = opd_arg_ints(call, 1), in_strides = opd_arg_ints(call, 2), size = opd_arg_ints(call, 3), stride = opd_arg_ints(call, 4);
    int64_t offset = opd_arg_int(call, 5), low = OPDI_MIN(offset, 0), a, b, length, i;
    if (in.n != in_strides.n || size.n != stride.n || !opdi_has_sizes(grad, size.data, (int)size.n) || in.n > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_SHAPE, "mismatch in length of strides and shape");
    }
    out = opd_result(call, 0, in.data, (int)in.n, (opd_scalar_type)grad->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    for (i = 0; i < in.n + size.n; i++) {
        if ((i < in.n ? in_strides.data[i] : stride.data[i - in.n]) < 0) { return opd_fail(OPD_ERROR_SHAPE, "negative strides are not supported"); }
    }
    a = opdi_extent(in.data, in_strides.data, (int)in.n);
    b = opdi_extent(size.data, stride.data, (int)size.n);
    if (a < 0 || b < 0 || offset > INT64_MAX / 4 || offset < -(INT64_MAX / 4)) { return opd_fail(OPD_ERROR_SHAPE, "sizes and strides do not fit into memory"); }
    length = OPDI_MAX(a - low, b + offset - low);
    base = opdi_doubles(opd_ints_of(&length, 1), NULL);
    values = base ? opdi_doubles(size, grad) : NULL;
    input = values ? opdi_doubles(in, NULL) : NULL;
    if (!input) { return -1; }
    opdi_walk_strided((double *)(void *)base->data, (double *)(void *)values->data, size, stride, offset - low, false);
    opdi_walk_strided((double *)(void *)base->data, (double *)(void *)input->data, in, in_strides, -low, true);
    if (a < input->numel) {
        double *x = (double *)(void *)input->data, *c;
        if (opdi_fill_with(base, opd_value_int(0)) || !(count = opdi_doubles(in, NULL))) { return -1; }
        opdi_walk_strided((double *)(void *)base->data, NULL, in, in_strides, -low, false);
        opdi_walk_strided((double *)(void *)base->data, (double *)(void *)count->data, in, in_strides, -low, true);
        c = (double *)(void *)count->data;
        for (i = 0; i < input->numel; i++) { x[i] /= c[i]; }
    }
    return opdi_copy(out, input);
}
/* Its transpose: the gradient put where the input's elements lie, and looked at as the result lay. */
static int opdi_as_strided_backward_bw(opd_backward_call *bw) {
    opd_value in = opd_bw_value(bw, 1), in_strides = opd_bw_value(bw, 2), size = opd_bw_value(bw, 3), stride = opd_bw_value(bw, 4);
    int64_t offset = opd_bw_value(bw, 5).u.i, low = OPDI_MIN(offset, 0), length;
    opd_tensor *g = opd_bw_grad(bw, 0), *base;
    length = OPDI_MAX(opdi_extent(in.u.ints, in_strides.u.ints, in.n) - low, opdi_extent(size.u.ints, stride.u.ints, size.n) + offset - low);
    base = opd_zeros(opd_ints_of(&length, 1), (int64_t)opd_dtype(g));
    base = opd_as_strided_scatter_full(base, g, opd_ints_of(in.u.ints, in.n), opd_ints_of(in_strides.u.ints, in_strides.n), opd_value_int(-low));
    return opd_bw_return(bw, 0, opd_as_strided_full(base, opd_ints_of(size.u.ints, size.n), opd_ints_of(stride.u.ints, stride.n),
                                                    opd_value_int(offset - low)));
}
OPDI_CARD_ANY(as_strided_backward, "as_strided_backward(Tensor grad_output, SymInt[] input_sizes, SymInt[] input_strides, SymInt[] size, SymInt[] stride, "
              "SymInt storage_offset) -> Tensor", opdi_as_strided_backward_kernel, opdi_as_strided_backward_bw, "", OPD_BATCH_LOOP, NULL, NULL,
              "[2,2], (6), (1), (2,2), (1,1), 1")

//-- copies ------------------------------------------------------------------------------------------------------------

/* dst = src, broadcast; checked also where there is no memory. */
static int opdi_copy_into(opd_tensor *dst, const opd_tensor *src) {
    opdi_geometry g;
    if (dst == src) { return 0; }
    if (opdi_expand_geometry(src, opdi_sizes_of(dst), &g)) { return -1; }
    if (dst->backend == OPD_META) { return 0; }
    if (src->backend == OPD_META) { return opd_fail(OPD_ERROR_ARGUMENT, "Cannot copy out of meta tensor; no data!"); }
    return opdi_copy(dst, src);
}
static int opdi_copy__kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *src = opd_arg_tensor(call, 1);
    if (self != src && opdi_check_internal_overlap(self)) { return -1; }
    return opdi_copy_into(self, src) ? -1 : opd_return_tensor(call, self);
}
static int opdi_copy_kernel(opd_call *call) {
    opd_tensor *out = opdi_written(call);
    return out ? opdi_copy_into(out, opd_arg_tensor(call, 1)) : -1;
}
static int opdi_copy_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_zeros_like(g))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, g) : 0;
}
OPDI_CARD_ANY(copy_, "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)", opdi_copy__kernel, opdi_copy_backward, "",
              OPD_BATCH_POINTWISE, NULL, NULL, "[2,3], [2,3]; [2,3], [3]")
OPDI_CARD_ANY(copy, "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor", opdi_copy_kernel, opdi_copy_backward, "",
              OPD_BATCH_POINTWISE, NULL, "copy.out", "[2,3], [2,3]; [2,3], [3]")
static int64_t opdi_arg_format(const opd_call *call, int i) {
    opd_value v = opd_arg_value(call, i);
    return v.tag == OPD_TAG_INT ? v.u.i : OPDI_FORMAT_PRESERVE;
}
static int opdi_clone_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out;
    out = opdi_result_like(call, self, (opd_scalar_type)self->dtype, opd_tensor_device(self), opdi_arg_format(call, 1));
    return out ? opdi_copy_into(out, self) : -1;
}
OPDI_CARD_ANY(clone, "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", opdi_clone_kernel, opdi_pass_backward, "",
              OPD_BATCH_POINTWISE, NULL, "clone.out", "[2,3]; []")
static int opdi_to_copy_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out;
    opdi_options o;
    if (opdi_like_options(call, 1, false, &o)) { return -1; }
    o.format = opdi_arg_format(call, 6);
    if (o.format == OPDI_FORMAT_PRESERVE && !opdi_is_dense(self)) { o.format = OPDI_FORMAT_CONTIGUOUS; }
    out = opdi_result_like(call, self, o.dtype, o.device, o.format);
    return out ? opdi_copy_into(out, self) : -1;
}
/* The engine casts a gradient back to the input's dtype. */
OPDI_CARD_ANY(_to_copy, "_to_copy(Tensor self, *, " OPDI_OPTIONS_TEXT ", bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
              opdi_to_copy_kernel, opdi_pass_backward, "", OPD_BATCH_POINTWISE, NULL,
              "_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
              "[2,3], dtype=7; [2,3]; [2,3]i5, dtype=6")
static bool opdi_has_format(const opd_tensor *t, int64_t format) {
    int64_t strides[OPD_MAX_DIMS];
    int i;
    if (format <= OPDI_FORMAT_CONTIGUOUS) { return (t->flags & OPDI_CONTIGUOUS) != 0; }
    if (t->ndim != (format == OPDI_FORMAT_LAST ? 4 : 5) || opdi_strides_format(opdi_sizes(t), t->ndim, format, strides)) { return false; }
    for (i = 0; i < t->ndim; i++) { if (opdi_sizes(t)[i] != 1 && opdi_strides(t)[i] != strides[i]) { return false; } }
    return true;
}
static int opdi_contiguous_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t format = opd_arg_int(call, 1);
    if (opdi_has_format(self, format)) { return opd_return_tensor(call, self); }
    if (format == OPDI_FORMAT_PRESERVE) {
        return opd_fail(OPD_ERROR_ARGUMENT, "preserve memory format is unsupported by the contiguous operator");
    }
    return opd_return_tensor(call, opd_clone_full(self, opd_value_int(format)));
}
OPDI_CARD_OF(contiguous, "contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)", opdi_contiguous_kernel, NULL, NULL, "[2,3]")
/* at::native::to_impl: self itself where nothing changes. */
static int opdi_to(opd_call *call, opd_value dtype, opd_value device, bool copy, opd_value format) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    bool same = (dtype.tag != OPD_TAG_INT || dtype.u.i == self->dtype) && (device.tag != OPD_TAG_DEVICE || device.u.device.type == self->backend);
    if (same && !copy && (format.tag != OPD_TAG_INT || format.u.i == OPDI_FORMAT_PRESERVE || opdi_has_format(self, format.u.i))) {
        return opd_return_tensor(call, self);
    }
    return opd_return_tensor(call, opd_to_copy_full(self, dtype, OPD_NONE, device, OPD_NONE, false, format));
}
static int opdi_to_dtype_kernel(opd_call *call) { return opdi_to(call, opd_arg_value(call, 1), OPD_NONE, opd_arg_bool(call, 3), opd_arg_value(call, 4)); }
OPDI_CARD_OF(to_dtype, "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
             opdi_to_dtype_kernel, NULL, NULL, "[2,3], 7; [2,3], 6")

//-- the value of a tensor ---------------------------------------------------------------------------------------------

static int opdi_item_kernel(opd_call *call) {
    const opd_tensor *t = opd_arg_tensor(call, 0);
    double pair[2];
    if (opdi_item_check(t)) { return -1; }
    if (opd_dtype_is_complex((opd_scalar_type)t->dtype)) {
        pair[0] = opdi_element_f64(t, 0);
        pair[1] = opdi_element_f64(t, (int64_t)opd_dtype_size((opd_scalar_type)t->dtype) / 2);
        return opd_return_value(call, opd_value_complex(pair));
    }
    if (opd_dtype_is_floating((opd_scalar_type)t->dtype)) { return opd_return_float(call, opdi_element_f64(t, 0)); }
    return t->dtype == OPD_BOOL ? opd_return_bool(call, opdi_element_i64(t, 0) != 0) : opd_return_int(call, opdi_element_i64(t, 0));
}
OPDI_CARD_ANY(_local_scalar_dense, "_local_scalar_dense(Tensor self) -> Scalar", opdi_item_kernel, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP, NULL, NULL, "[]; [1]i5")
static int opdi_item_composite(opd_call *call) { return opd_return_value(call, opd_local_scalar_dense(opd_arg_tensor(call, 0))); }
OPDI_CARD_OF(item, "item(Tensor self) -> Scalar", opdi_item_composite, NULL, NULL, "[]; [1]i5")

//======================================================================================================================
//  >>op:pointwise  pointwise operators
//======================================================================================================================

//-- the pointwise operators ------------------------------------------------------------------------------------------
//
//  Loops are expanded from OPD_FORMULAS_* (see >>api:formulas); one generic kernel checks, promotes, makes the result
//  and runs them, at CPU and at Meta alike.  A card names its formula, its rule and its derivative.

//-- integer helpers: defined for every input, division by zero noted ------------------------------------------------------

static inline int64_t opdi_wrap_add(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
static inline int64_t opdi_wrap_sub(int64_t x, int64_t y) { return (int64_t)((uint64_t)x - (uint64_t)y); }
static inline int64_t opdi_wrap_mul(int64_t x, int64_t y) { return (int64_t)((uint64_t)x * (uint64_t)y); }
static inline int64_t opdi_h_i64_div_trunc(int64_t x, int64_t y, const opdi_params *s) {
    if (y == 0) { OPDI_STORE(s->zero, 1); return 0; }
    return y == -1 ? opdi_wrap_sub(0, x) : x / y;
}
static inline int64_t opdi_h_i64_fmod(int64_t x, int64_t y, const opdi_params *s) {
    if (y == 0) { OPDI_STORE(s->zero, 1); return 0; }
    return y == -1 ? 0 : x % y;
}
static inline int64_t opdi_h_i64_div_floor(int64_t x, int64_t y, const opdi_params *s) {
    int64_t q = opdi_h_i64_div_trunc(x, y, s);
    return y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}
static inline int64_t opdi_h_i64_remainder(int64_t x, int64_t y, const opdi_params *s) {
    int64_t r = opdi_h_i64_fmod(x, y, s);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
/* at::native::powi: a negative power of anything but 1 and -1 is 0. */
static int64_t opdi_h_i64_pow(int64_t x, int64_t y, const opdi_params *s) {
    uint64_t r = 1, b = (uint64_t)x;
    (void)s;
    if (y < 0) { return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0; }
    for (; y; y >>= 1) { if (y & 1) { r *= b; } b *= b; }
    return (int64_t)r;
}
static inline int64_t opdi_h_i64_clamp(int64_t x, int64_t y, int64_t z, const opdi_params *s) {
    int64_t m = x > y ? x : y;
    (void)s;
    return m < z ? m : z;
}
/* Shifts by a negative count or past the width push everything out (PyTorch from 2.0 on). */
static inline int64_t opdi_h_i64_shift_left(int64_t x, int64_t y, const opdi_params *s) {
    (void)s;
    return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
}
static inline int64_t opdi_h_i64_shift_right(int64_t x, int64_t y, const opdi_params *s) {
    int k = y < 0 || y > 63 ? 63 : (int)y;
    (void)s;
    return x < 0 ? (int64_t)~(~(uint64_t)x >> k) : (int64_t)((uint64_t)x >> k);
}
static int64_t opdi_h_i64_gcd(int64_t x, int64_t y, const opdi_params *s) {
    uint64_t a = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, b = y < 0 ? 0 - (uint64_t)y : (uint64_t)y, t;
    (void)s;
    while (b) { t = a % b; a = b; b = t; }
    return (int64_t)a;
}
static int64_t opdi_h_i64_lcm(int64_t x, int64_t y, const opdi_params *s) {
    int64_t g = opdi_h_i64_gcd(x, y, s), r;
    if (g == 0) { return 0; }
    r = opdi_wrap_mul(g == -1 ? opdi_wrap_sub(0, x) : x / g, y);
    return r < 0 ? opdi_wrap_sub(0, r) : r;
}

//-- loops: opdi_<type>_<formula> ----------------------------------------------------------------------------------------

#define OPDI_LOOP_IN_1(T) const T *xp = (const T *)p[1];
#define OPDI_LOOP_IN_2(T) OPDI_LOOP_IN_1(T) const T *yp = (const T *)p[2];
#define OPDI_LOOP_IN_3(T) OPDI_LOOP_IN_2(T) const T *zp = (const T *)p[3];
#define OPDI_LOOP_AT_1(T, k) const T x = xp[k];
#define OPDI_LOOP_AT_2(T, k) const T x = xp[k], y = yp[k];
#define OPDI_LOOP_AT_3(T, k) const T x = xp[k], y = yp[k], z = zp[k];
#define OPDI_LOOP_HEAD(tag, T, inputs)                                                                      \
    T *o = (T *)p[0]; OPDI_LOOP_IN_##inputs(T)                                                              \
    const T a = s->tag[0], b = s->tag[1], c = s->tag[2]; int64_t i = 0; (void)a; (void)b; (void)c;
/* One element after another. */
#define OPDI_LOOP_S(tag, T, name, inputs, formula)                                                          \
    static void opdi_##tag##_##name(void *const *p, int64_t n, const opdi_params *s) {                      \
        OPDI_LOOP_HEAD(tag, T, inputs)                                                                      \
        for (; i < n; i++) { OPDI_LOOP_AT_##inputs(T, i) o[i] = (formula); }                                \
    }
/* 64 elements at a time in a loop of constant length, which compilers vectorise without being asked. */
#define OPDI_LOOP_V_BODY(tag, T, name, inputs, formula)                                                     \
    {                                                                                                       \
        OPDI_LOOP_HEAD(tag, T, inputs)                                                                      \
        for (; i + 64 <= n; i += 64) {                                                                      \
            int j;                                                                                          \
            OPDI_IVDEP                                                                                      \
            for (j = 0; j < 64; j++) { OPDI_LOOP_AT_##inputs(T, i + j) o[i + j] = (formula); }              \
        }                                                                                                   \
        for (; i < n; i++) { OPDI_LOOP_AT_##inputs(T, i) o[i] = (formula); }                                \
    }
#define OPDI_LOOP_V_PLAIN(tag, T, name, inputs, formula)                                                    \
    static void opdi_##tag##_##name(void *const *p, int64_t n, const opdi_params *s)                        \
    OPDI_LOOP_V_BODY(tag, T, name, inputs, formula)
#if defined(OPDI_X86)
/* Twice, the second time for AVX2. */
#define OPDI_LOOP_V_WIDE(tag, T, name, inputs, formula)                                                     \
    OPDI_AVX2 static void opdi_##tag##_##name##_avx2(void *const *p, int64_t n, const opdi_params *s)       \
    OPDI_LOOP_V_BODY(tag, T, name, inputs, formula)                                                         \
    static void opdi_##tag##_##name(void *const *p, int64_t n, const opdi_params *s) {                      \
        if (opdi_cpu_level() > 0) { opdi_##tag##_##name##_avx2(p, n, s); return; }                          \
        OPDI_LOOP_V_BODY(tag, T, name, inputs, formula)                                                     \
    }
#else
#define OPDI_LOOP_V_WIDE OPDI_LOOP_V_PLAIN
#endif
#define OPDI_LOOP_F32_S(name, inputs, formula) OPDI_LOOP_S(f32, float, name, inputs, formula)
#define OPDI_LOOP_F32_V(name, inputs, formula) OPDI_LOOP_V_WIDE(f32, float, name, inputs, formula)
#define OPDI_LOOP_F32_M(name, inputs, formula)                                                              \
    static void opdi_f32_##name(void *const *p, int64_t n, const opdi_params *s) {                          \
        (void)s; opdi_v##name(n, (float *)p[0], (const float *)p[1]);                                       \
    }
#define OPDI_LOOP_F64_S(name, inputs, formula) OPDI_LOOP_S(f64, double, name, inputs, formula)
#define OPDI_LOOP_F64_V(name, inputs, formula) OPDI_LOOP_V_PLAIN(f64, double, name, inputs, formula)
#define OPDI_LOOP_F64_M(name, inputs, formula) OPDI_LOOP_S(f64, double, name, inputs, formula)
#define OPDI_LOOP_I64_S(name, inputs, formula) OPDI_LOOP_S(i64, int64_t, name, inputs, formula)
#define OPDI_LOOP_I64_V(name, inputs, formula) OPDI_LOOP_V_PLAIN(i64, int64_t, name, inputs, formula)
#define OPDI_LOOP_F32(name, inputs, kind, formula) OPDI_LOOP_F32_##kind(name, inputs, formula)
#define OPDI_LOOP_F64(name, inputs, kind, formula) OPDI_LOOP_F64_##kind(name, inputs, formula)
#define OPDI_LOOP_I64(name, inputs, kind, formula) OPDI_LOOP_I64_##kind(name, inputs, formula)

#define OPD_ADD(x, y) ((x) + (y))
#define OPD_SUB(x, y) ((x) - (y))
#define OPD_MUL(x, y) ((x) * (y))
#define OPD_NEG(x) (-(x))
#define OPD_T float
#define OPD_FN(name) name##f
#define OPD_H(f) opdi_f32_h_##f
OPD_FORMULA_HELPERS_FLOAT(static inline)
OPD_FORMULAS_ALL(OPDI_LOOP_F32)
OPD_FORMULAS_FLOAT(OPDI_LOOP_F32)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#define OPD_T double
#define OPD_FN(name) name
#define OPD_H(f) opdi_f64_h_##f
OPD_FORMULA_HELPERS_FLOAT(static inline)
OPD_FORMULAS_ALL(OPDI_LOOP_F64)
OPD_FORMULAS_FLOAT(OPDI_LOOP_F64)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#define OPD_ADD(x, y) opdi_wrap_add(x, y)
#define OPD_SUB(x, y) opdi_wrap_sub(x, y)
#define OPD_MUL(x, y) opdi_wrap_mul(x, y)
#define OPD_NEG(x) opdi_wrap_sub(0, x)
#define OPD_T int64_t
#define OPD_H(f) OPDI_H_##f                        /* the integer helpers also take s */
#define OPDI_H_div_trunc(x, y) opdi_h_i64_div_trunc(x, y, s)
#define OPDI_H_div_floor(x, y) opdi_h_i64_div_floor(x, y, s)
#define OPDI_H_fmod(x, y) opdi_h_i64_fmod(x, y, s)
#define OPDI_H_remainder(x, y) opdi_h_i64_remainder(x, y, s)
#define OPDI_H_pow(x, y) opdi_h_i64_pow(x, y, s)
#define OPDI_H_shift_left(x, y) opdi_h_i64_shift_left(x, y, s)
#define OPDI_H_shift_right(x, y) opdi_h_i64_shift_right(x, y, s)
#define OPDI_H_gcd(x, y) opdi_h_i64_gcd(x, y, s)
#define OPDI_H_lcm(x, y) opdi_h_i64_lcm(x, y, s)
#define OPDI_H_clamp(x, y, z) opdi_h_i64_clamp(x, y, z, s)
OPD_FORMULAS_ALL(OPDI_LOOP_I64)
OPD_FORMULAS_INT(OPDI_LOOP_I64)
#undef OPD_T
#undef OPD_H
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG

//-- activations in float, by blocks through the vector functions --------------------------------------------------------

/* Calls body for pieces [i, i + m) of at most 256 elements, with t[256] and u[256] as scratch. */
#define OPDI_PIECES(...)                                                                                    \
    float t[256], u[256]; int64_t i, m, j; (void)u;                                                         \
    for (i = 0; i < n; i += m) { m = OPDI_MIN(n - i, (int64_t)256); __VA_ARGS__ }
#define OPDI_PIECE_LOOP(index, ...) for (index = 0; index < m; index++) { __VA_ARGS__ }

/* gelu = x Phi(x) */
static void opdi_f32_vgelu(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *x = (const float *)p[1];
    (void)s;
    OPDI_PIECES(
        OPDI_PIECE_LOOP(j, t[j] = x[i + j] * 0.70710678118654752440f;)
        opdi_verf(m, t, t);
        OPDI_PIECE_LOOP(j, o[i + j] = 0.5f * x[i + j] * (1.0f + t[j]);)
    )
}
static void opdi_f32_vgelu_tanh(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *x = (const float *)p[1];
    (void)s;
    OPDI_PIECES(
        OPDI_PIECE_LOOP(j, t[j] = opdi_f32_h_gelu_inner(x[i + j]);)
        opdi_vtanh(m, t, t);
        OPDI_PIECE_LOOP(j, o[i + j] = 0.5f * x[i + j] * (1.0f + t[j]);)
    )
}
/* g (Phi(x) + x phi(x)) */
static void opdi_f32_vgelu_backward(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *g = (const float *)p[1]; const float *x = (const float *)p[2];
    (void)s;
    OPDI_PIECES(
        OPDI_PIECE_LOOP(j, t[j] = x[i + j] * 0.70710678118654752440f; u[j] = -0.5f * x[i + j] * x[i + j];)
        opdi_verf(m, t, t);
        opdi_vexp(m, u, u);
        OPDI_PIECE_LOOP(j, o[i + j] = g[i + j] * (0.5f * (1.0f + t[j]) + x[i + j] * u[j] * 0.39894228040143267794f);)
    )
}
static void opdi_f32_vgelu_tanh_backward(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *g = (const float *)p[1]; const float *x = (const float *)p[2];
    (void)s;
    OPDI_PIECES(
        OPDI_PIECE_LOOP(j, t[j] = opdi_f32_h_gelu_inner(x[i + j]);)
        opdi_vtanh(m, t, t);
        OPDI_PIECE_LOOP(j, u[j] = 0.79788456080286535588f * (1.0f + 0.134145f * x[i + j] * x[i + j]);)
        OPDI_PIECE_LOOP(j, o[i + j] = g[i + j] * (0.5f * (1.0f + t[j]) + 0.5f * x[i + j] * (1.0f - t[j] * t[j]) * u[j]);)
    )
}
/* silu = x sigmoid(x) */
static void opdi_f32_vsilu(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *x = (const float *)p[1];
    (void)s;
    OPDI_PIECES(
        opdi_vsigmoid(m, t, x + i);
        OPDI_PIECE_LOOP(j, o[i + j] = x[i + j] == -INFINITY ? -0.0f : x[i + j] * t[j];)
    )
}
static void opdi_f32_vsilu_backward(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *g = (const float *)p[1]; const float *x = (const float *)p[2];
    (void)s;
    OPDI_PIECES(
        opdi_vsigmoid(m, t, x + i);
        OPDI_PIECE_LOOP(j, o[i + j] = g[i + j] * (t[j] * (1.0f + x[i + j] * (1.0f - t[j])));)
    )
}

//-- the generic kernel --------------------------------------------------------------------------------------------------

/* What an operator does with dtypes. */
#define OPDI_TO_FLOAT 1                           /* integers and bool are promoted to float32 */
#define OPDI_TO_BOOL 2                            /* the result is bool, whatever is compared */
#define OPDI_NOT_BOOL 4                           /* refuses bool */
#define OPDI_BOOL_TO_INT 8                        /* bool is promoted to int64 */

/* Loops by compute type, NULL where there is none; what: the kernel's name in "not implemented for"; rule: above. */
typedef struct opdi_formula {
    opdi_loop loop[3];
    const char *what;
    int rule;
} opdi_formula;
#define OPDI_FORMULA_A(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{opdi_f32_##name, opdi_f64_##name, opdi_i64_##name}, #id "_cpu", rule_};
#define OPDI_FORMULA_F(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{opdi_f32_##name, opdi_f64_##name, NULL}, #id "_cpu", rule_};
#define OPDI_FORMULA_I(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{NULL, NULL, opdi_i64_##name}, #id "_cpu", rule_};

/* A number standing as a 0-dim operand that yields in promotion (c10::scalar_to_tensor, wrapped). */
typedef struct opdi_number { opd_tensor t; union { int64_t i; double d; bool b; double c[2]; } u; } opdi_number;
static opd_tensor *opdi_number_make(opdi_number *n, opd_value v) {
    memset(n, 0, sizeof *n);
    n->t.refs = 1; n->t.numel = 1; n->t.flags = OPDI_WRAPPED | OPDI_CONTIGUOUS; n->t.data = (char *)&n->u;
    switch (v.tag) {
        case OPD_TAG_FLOAT: n->t.dtype = OPD_FLOAT64; n->u.d = v.u.d; break;
        case OPD_TAG_BOOL: n->t.dtype = OPD_BOOL; n->u.b = v.u.i != 0; break;
        case OPD_TAG_COMPLEX: n->t.dtype = OPD_COMPLEX128; n->u.c[0] = v.u.c[0]; n->u.c[1] = v.u.c[1]; break;
        default: n->t.dtype = OPD_INT64; n->u.i = v.u.i; break;
    }
    return &n->t;
}
/* Argument i, a Tensor or a Scalar, as an operand. */
static opd_tensor *opdi_operand_of(const opd_call *call, int i, opdi_number *n) {
    opd_value v = opd_arg_value(call, i);
    return v.tag == OPD_TAG_TENSOR ? v.u.t : opdi_number_make(n, v);
}
static double opdi_number_f64(opd_value v) { return v.tag == OPD_TAG_FLOAT ? v.u.d : v.tag == OPD_TAG_COMPLEX ? v.u.c[0] : (double)v.u.i; }
static int64_t opdi_number_i64(opd_value v) {
    return v.tag == OPD_TAG_FLOAT ? opdi_to_i64(v.u.d) : v.tag == OPD_TAG_COMPLEX ? opdi_to_i64(v.u.c[0]) : v.u.i;
}
static void opdi_params_set(opdi_params *s, int k, opd_value v) {
    s->f64[k] = opdi_number_f64(v); s->f32[k] = (float)s->f64[k]; s->i64[k] = opdi_number_i64(v);
}
static void opdi_params_set_f64(opdi_params *s, int k, double d) { opdi_params_set(s, k, opd_value_float(d)); }

/* The result of inputs that are not all contiguous and of one shape: broadcast sizes, and the strides TensorIterator
   gives (TensorIteratorBase::fast_set_up, allocate_or_resize_outputs). */
OPDI_NOINLINE static opd_tensor *opdi_pointwise_result_slow(opd_call *call, opd_tensor *const *in, int nin, opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], next = 1;
    int perm[OPD_MAX_DIMS], ndim = 0, i, d;
    const opd_tensor *big = in[0];
    bool same = true, ordered = true;
    for (i = 0; i < nin; i++) {
        if (opdi_broadcast_into(sizes, &ndim, in[i]) != 0) { return NULL; }
        if (in[i]->ndim > big->ndim || (big->flags & OPDI_WRAPPED)) { big = in[i]; }
        if (i > 0 && same) {
            same = opdi_same_sizes(in[0], in[i]) &&
                   memcmp(opdi_strides(in[0]), opdi_strides(in[i]), sizeof(int64_t) * in[0]->ndim) == 0;
        }
    }
    if (same && opdi_is_dense(in[0])) {
        return opd_result_strided(call, 0, sizes, opdi_strides(in[0]), ndim, dtype, opd_tensor_device(big));
    }
    opdi_dims_order(in, nin, sizes, ndim, perm);
    for (d = 0; d < ndim; d++) {
        strides[perm[d]] = next;
        next *= sizes[perm[d]];
        if (perm[d] != ndim - 1 - d) { ordered = false; }
    }
    if (ordered) { return opd_result(call, 0, sizes, ndim, dtype); }
    return opd_result_strided(call, 0, sizes, strides, ndim, dtype, opd_tensor_device(big));
}
/* Result 0 of a pointwise operator: NULL with an error when the inputs do not broadcast. */
static opd_tensor *opdi_pointwise_result(opd_call *call, opd_tensor *const *in, int nin, opd_scalar_type dtype) {
    const opd_tensor *first = in[0];
    int i;
    if (!(first->flags & OPDI_CONTIGUOUS)) { return opdi_pointwise_result_slow(call, in, nin, dtype); }
    for (i = 1; i < nin; i++) {
        if (!(in[i]->flags & OPDI_CONTIGUOUS)) { return opdi_pointwise_result_slow(call, in, nin, dtype); }
        if (in[i]->ndim == 0 || opdi_same_sizes(first, in[i])) { continue; }
        if (first->ndim != 0) { return opdi_pointwise_result_slow(call, in, nin, dtype); }
        first = in[i];
    }
    return opd_result(call, 0, opdi_sizes(first), first->ndim, dtype);
}

OPDI_NOINLINE static int opdi_not_implemented(const opdi_formula *f, opd_scalar_type t) {
    return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", f->what, opd_dtype_cname(t));
}
/* Runs formula f with the inputs ops[1..nin] promoted to `common`, giving a result of dtype `result`. */
static int opdi_pointwise_typed(opd_call *call, const opdi_formula *f, opd_tensor **ops, int nin, opd_scalar_type common,
                                opd_scalar_type result, const opdi_params *s) {
    opdi_loop loop;
    if (common != OPD_FLOAT32 && (opd_dtype_is_complex(common) || (common == OPD_BOOL && (f->rule & OPDI_NOT_BOOL)))) {
        return opdi_not_implemented(f, common);
    }
    loop = f->loop[opdi_compute_type(common)];
    if (!loop) { return opdi_not_implemented(f, common); }
    ops[0] = opdi_pointwise_result(call, ops + 1, nin, result);
    if (!ops[0]) { return -1; }
    if (!ops[0]->data) { return 0; }              /* a fake, or no elements */
    return opdi_run(ops, nin + 1, 1, common, loop, s);
}
static opd_scalar_type opdi_rule_dtype(int rule, opd_scalar_type t) {
    if ((rule & OPDI_TO_FLOAT) && opd_dtype_is_integral(t, true)) { return OPD_FLOAT32; }
    return (rule & OPDI_BOOL_TO_INT) && t == OPD_BOOL ? OPD_INT64 : t;
}
static int opdi_pointwise(opd_call *call, const opdi_formula *f, opd_tensor **ops, int nin, const opdi_params *s) {
    opd_scalar_type common = nin == 1 ? (opd_scalar_type)ops[1]->dtype : opdi_result_type(ops + 1, nin);
    if (f->rule & (OPDI_TO_FLOAT | OPDI_BOOL_TO_INT)) { common = opdi_rule_dtype(f->rule, common); }
    return opdi_pointwise_typed(call, f, ops, nin, common, f->rule & OPDI_TO_BOOL ? OPD_BOOL : common, s);
}
static const opdi_params opdi_no_params = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}, NULL};
/* Kernels of formulas without numbers. */
static int opdi_unary(opd_call *call, const opdi_formula *f) {
    opd_tensor *ops[2];
    ops[1] = opd_arg_tensor(call, 0);
    return opdi_pointwise(call, f, ops, 1, &opdi_no_params);
}
/* Either argument may be a Scalar. */
static int opdi_binary(opd_call *call, const opdi_formula *f) {
    opd_tensor *ops[3];
    opdi_number n, m;
    ops[1] = opdi_operand_of(call, 0, &n);
    ops[2] = opdi_operand_of(call, 1, &m);
    return opdi_pointwise(call, f, ops, 2, &opdi_no_params);
}
/* The same for integer division. */
static int opdi_binary_div(opd_call *call, const opdi_formula *f) {
    opd_tensor *ops[3];
    opdi_number n, m;
    opdi_params s = opdi_no_params;
    int32_t zero = 0;
    s.zero = &zero;
    ops[1] = opdi_operand_of(call, 0, &n);
    ops[2] = opdi_operand_of(call, 1, &m);
    if (opdi_pointwise(call, f, ops, 2, &s) != 0) { return -1; }
    return zero ? opd_fail(OPD_ERROR_ARGUMENT, "ZeroDivisionError") : 0;
}

//-- what derivatives are written with -------------------------------------------------------------------------------------

static inline opd_tensor *opdi_muls(opd_tensor *t, double k) { return opd_mul_Scalar(t, opd_value_float(k)); }
static inline opd_tensor *opdi_adds(opd_tensor *t, double k) { return opd_add_Scalar(t, opd_value_float(k)); }
static inline opd_tensor *opdi_rsubs(double k, opd_tensor *t) { return opd_rsub_Scalar(t, opd_value_float(k)); }
/* t where the mask is false, 0 elsewhere. */
static inline opd_tensor *opdi_unless(opd_tensor *t, opd_tensor *mask) { return opd_masked_fill_Scalar(t, mask, opd_value_int(0)); }
static inline opd_tensor *opdi_where(opd_tensor *mask, opd_tensor *t) { return opdi_unless(t, opd_logical_not(mask)); }
/* t * k for a Scalar argument k; a factor 1 costs nothing. */
static opd_tensor *opdi_scale(opd_tensor *t, opd_value k) {
    return k.tag != OPD_TAG_COMPLEX && opdi_number_f64(k) == 1.0 ? t : opd_mul_Scalar(t, k);
}

/* d sinc(x) = (cos(pi x) pi x - sin(pi x)) / (pi x^2), 0 at 0 */
static opd_tensor *opdi_sinc_derivative(opd_tensor *g, opd_tensor *x) {
    opd_tensor *px = opdi_muls(x, 3.14159265358979323846);
    opd_tensor *d = opd_div(opd_sub(opd_mul(opd_cos(px), px), opd_sin(px)), opd_mul(px, x));
    return opd_mul(g, opdi_unless(d, opd_eq_Scalar(x, opd_value_int(0))));
}

//-- cards -----------------------------------------------------------------------------------------------------------------

#ifndef OPDI_OP
#define OPDI_OP(name) static void opdi_card_##name(opd_op_desc *op)
#endif
/* What all pointwise cards share. */
static void opdi_card_pointwise(opd_op_desc *op, const char *schema, opd_kernel kernel, opd_backward_fn backward,
                                const char *save, opd_autocast autocast, const char *cases) {
    op->schema = schema; op->cpu = kernel; op->fake = kernel; op->backward = backward; op->save = save;
    op->vmap = OPD_BATCH_POINTWISE; op->autocast = autocast; op->cases = cases;
}
/* Defines opdi_<id>_kernel, opdi_<id>_backward and the card <id> of a unary operator.  In the derivative g is the
   gradient, x the argument and r the result, of which only what `save` names is there. */
#define OPDI_UNARY_KERNEL(id) static int opdi_##id##_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_##id); }
#define OPDI_UNARY_BACKWARD(id, derivative)                                                                 \
    static int opdi_##id##_backward(opd_backward_call *bw) {                                                \
        opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *r = opd_bw_result(bw, 0);           \
        (void)g; (void)x; (void)r;                                                                          \
        return opd_bw_return(bw, 0, derivative);                                                            \
    }
#define OPDI_UNARY_CARD(id, backward_, save_, autocast_, cases_)                                            \
    OPDI_OP(id) {                                                                                           \
        opdi_card_pointwise(op, #id "(Tensor self) -> Tensor", opdi_##id##_kernel, backward_, save_,        \
                            OPD_AUTOCAST_##autocast_, cases_);                                              \
        op->inplace = #id "_"; op->out = #id ".out";                                                        \
    }
#define OPDI_UNARY(id, types, rule, autocast_, cases_, save_, derivative)                                   \
    OPDI_FORMULA_##types(id, id, rule) OPDI_UNARY_KERNEL(id) OPDI_UNARY_BACKWARD(id, derivative)            \
    OPDI_UNARY_CARD(id, opdi_##id##_backward, save_, autocast_, cases_)

OPDI_UNARY(exp, F, OPDI_TO_FLOAT, FP32, "[2,3]", "result", opd_mul(g, r))
OPDI_UNARY(exp2, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "result", opdi_muls(opd_mul(g, r), 0.69314718055994530942))
OPDI_UNARY(expm1, F, OPDI_TO_FLOAT, FP32, "[2,3]", "result", opd_mul(g, opdi_adds(r, 1)))
OPDI_UNARY(log, F, OPDI_TO_FLOAT, FP32, "[2,3]+", "self", opd_div(g, x))
OPDI_UNARY(log2, F, OPDI_TO_FLOAT, FP32, "[2,3]+", "self", opd_div(g, opdi_muls(x, 0.69314718055994530942)))
OPDI_UNARY(log10, F, OPDI_TO_FLOAT, FP32, "[2,3]+", "self", opd_div(g, opdi_muls(x, 2.30258509299404568402)))
OPDI_UNARY(log1p, F, OPDI_TO_FLOAT, FP32, "[2,3]+", "self", opd_div(g, opdi_adds(x, 1)))
OPDI_UNARY(sqrt, F, OPDI_TO_FLOAT, KEEP, "[2,3]+", "result", opd_div(g, opdi_muls(r, 2)))
OPDI_UNARY(rsqrt, F, OPDI_TO_FLOAT, FP32, "[2,3]+", "result", opd_mul(opdi_muls(g, -0.5), opd_mul(r, opd_square(r))))
OPDI_UNARY(reciprocal, F, OPDI_TO_FLOAT, FP32, "[2,3]+", "result", opd_mul(opd_neg(g), opd_mul(r, r)))
OPDI_UNARY(square, A, OPDI_BOOL_TO_INT, KEEP, "[2,3]", "self", opd_mul(g, opdi_muls(x, 2)))
OPDI_UNARY(sin, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self", opd_mul(g, opd_cos(x)))
OPDI_UNARY(cos, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self", opd_mul(g, opd_neg(opd_sin(x))))
OPDI_UNARY(tan, F, OPDI_TO_FLOAT, FP32, "[2,3]", "result", opd_mul(g, opdi_adds(opd_square(r), 1)))
OPDI_UNARY(asin, F, OPDI_TO_FLOAT, FP32, "[2,3]u", "self", opd_mul(g, opd_rsqrt(opdi_rsubs(1, opd_square(x)))))
OPDI_UNARY(acos, F, OPDI_TO_FLOAT, FP32, "[2,3]u", "self", opd_mul(g, opd_neg(opd_rsqrt(opdi_rsubs(1, opd_square(x))))))
OPDI_UNARY(atan, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self", opd_div(g, opdi_adds(opd_square(x), 1)))
OPDI_UNARY(sinh, F, OPDI_TO_FLOAT, FP32, "[2,3]", "self", opd_mul(g, opd_cosh(x)))
OPDI_UNARY(cosh, F, OPDI_TO_FLOAT, FP32, "[2,3]", "self", opd_mul(g, opd_sinh(x)))
OPDI_UNARY(asinh, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self", opd_mul(g, opd_rsqrt(opdi_adds(opd_square(x), 1))))
OPDI_UNARY(acosh, F, OPDI_TO_FLOAT, KEEP, "[2,3]g", "self", opd_mul(g, opd_rsqrt(opdi_adds(opd_square(x), -1))))
OPDI_UNARY(atanh, F, OPDI_TO_FLOAT, KEEP, "[2,3]u", "self", opd_div(g, opdi_rsubs(1, opd_square(x))))
OPDI_UNARY(tanh, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "result", opd_tanh_backward(g, r))
OPDI_UNARY(erf, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self",
           opd_mul(opdi_muls(opd_exp(opd_neg(opd_square(x))), 1.12837916709551257390), g))
OPDI_UNARY(erfc, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self",
           opd_mul(opdi_muls(opd_exp(opd_neg(opd_square(x))), -1.12837916709551257390), g))
OPDI_UNARY(sigmoid, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "result", opd_sigmoid_backward(g, r))
OPDI_UNARY(sinc, F, OPDI_TO_FLOAT, KEEP, "[2,3]", "self", opdi_sinc_derivative(g, x))
OPDI_UNARY(floor, A, OPDI_NOT_BOOL, KEEP, "[2,3]", "", opd_zeros_like(g))
OPDI_UNARY(frac, F, 0, KEEP, "[2,3]", "", g)
OPDI_UNARY(sign, A, 0, KEEP, "[2,3]", "", opd_zeros_like(g))
OPDI_UNARY(abs, A, OPDI_NOT_BOOL, KEEP, "[2,3]", "self", opd_mul(g, opd_sgn(x)))
OPDI_UNARY(hardsigmoid, F, 0, KEEP, "[2,3]", "self", opd_hardsigmoid_backward(g, x))
OPDI_UNARY(hardswish, F, 0, KEEP, "[2,3]", "self", opd_hardswish_backward(g, x))
OPDI_UNARY(mish, F, 0, KEEP, "[2,3]", "self", opd_mish_backward(g, x))
/* Rounding of integers is the identity (the int64 loop of floor). */
static const opdi_formula opdi_formula_ceil = {{opdi_f32_ceil, opdi_f64_ceil, opdi_i64_floor}, "ceil_cpu", OPDI_NOT_BOOL};
static const opdi_formula opdi_formula_round = {{opdi_f32_round, opdi_f64_round, opdi_i64_floor}, "round_cpu", OPDI_NOT_BOOL};
static const opdi_formula opdi_formula_trunc = {{opdi_f32_trunc, opdi_f64_trunc, opdi_i64_floor}, "trunc_cpu", OPDI_NOT_BOOL};
static const opdi_formula opdi_formula_sgn = {{opdi_f32_sign, opdi_f64_sign, opdi_i64_sign}, "sgn_cpu", 0};
static const opdi_formula opdi_formula_isinf = {{opdi_f32_isinf, opdi_f64_isinf, opdi_i64_zero}, "isinf_cpu", OPDI_TO_BOOL};
static const opdi_formula opdi_formula_isfinite = {{opdi_f32_isfinite, opdi_f64_isfinite, opdi_i64_one}, "isfinite_cpu", OPDI_TO_BOOL};
static const opdi_formula opdi_formula_isposinf = {{opdi_f32_isposinf, opdi_f64_isposinf, opdi_i64_zero}, "isposinf_cpu", OPDI_TO_BOOL};
static const opdi_formula opdi_formula_isneginf = {{opdi_f32_isneginf, opdi_f64_isneginf, opdi_i64_zero}, "isneginf_cpu", OPDI_TO_BOOL};
/* The same as OPDI_UNARY for a formula defined by hand; and for operators without a derivative. */
#define OPDI_UNARY_OF(id, autocast_, cases_, save_, derivative)                                             \
    OPDI_UNARY_KERNEL(id) OPDI_UNARY_BACKWARD(id, derivative)                                               \
    OPDI_UNARY_CARD(id, opdi_##id##_backward, save_, autocast_, cases_)
#define OPDI_UNARY_FLAT(id) OPDI_UNARY_KERNEL(id) OPDI_UNARY_CARD(id, OPD_NOT_DIFFERENTIABLE, "", KEEP, "[2,3]; [2,3]i5")
OPDI_UNARY_OF(ceil, KEEP, "[2,3]", "", opd_zeros_like(g))
OPDI_UNARY_OF(round, KEEP, "[2,3]", "", opd_zeros_like(g))
OPDI_UNARY_OF(trunc, KEEP, "[2,3]", "", opd_zeros_like(g))
OPDI_UNARY_OF(sgn, KEEP, "[2,3]", "", opd_zeros_like(g))
OPDI_FORMULA_A(isnan, isnan, OPDI_TO_BOOL)
OPDI_FORMULA_A(signbit, signbit, OPDI_TO_BOOL)
OPDI_FORMULA_A(logical_not, logical_not, OPDI_TO_BOOL)
OPDI_UNARY_FLAT(isnan)
OPDI_UNARY_FLAT(isinf)
OPDI_UNARY_FLAT(isfinite)
OPDI_UNARY_FLAT(isposinf)
OPDI_UNARY_FLAT(isneginf)
OPDI_UNARY_FLAT(signbit)
OPDI_UNARY_FLAT(logical_not)

//-- neg, bitwise_not, relu: bool has its own word
OPDI_FORMULA_A(neg, neg, 0)
static int opdi_neg_kernel(opd_call *call) {
    if (opd_arg_tensor(call, 0)->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
                        "invert a mask, use the `~` or `logical_not()` operator instead.");
    }
    return opdi_unary(call, &opdi_formula_neg);
}
OPDI_UNARY_BACKWARD(neg, opd_neg(g))
OPDI_UNARY_CARD(neg, opdi_neg_backward, "", KEEP, "[2,3]")
OPDI_FORMULA_I(bitwise_not, bitwise_not, 0)
static const opdi_formula opdi_formula_bitwise_not_bool = {{NULL, NULL, opdi_i64_logical_not}, "bitwise_not_cpu", 0};
static int opdi_bitwise_not_kernel(opd_call *call) {
    bool b = opd_arg_tensor(call, 0)->dtype == OPD_BOOL;
    return opdi_unary(call, b ? &opdi_formula_bitwise_not_bool : &opdi_formula_bitwise_not);
}
OPDI_UNARY_CARD(bitwise_not, OPD_NOT_DIFFERENTIABLE, "", KEEP, "[2,3]i5; [2,3]b")
OPDI_FORMULA_A(relu, relu, 0)
static int opdi_relu_kernel(opd_call *call) {
    if (opd_arg_tensor(call, 0)->dtype == OPD_BOOL) { return opd_fail(OPD_ERROR_DTYPE, "Boolean inputs not supported for relu"); }
    return opdi_unary(call, &opdi_formula_relu);
}
OPDI_UNARY_BACKWARD(relu, opd_threshold_backward(g, r, opd_value_int(0)))
OPDI_UNARY_CARD(relu, opdi_relu_backward, "result", KEEP, "[2,3]")
/* silu: float32 has its block form */
static const opdi_formula opdi_formula_silu = {{opdi_f32_vsilu, opdi_f64_silu, NULL}, "silu_cpu", 0};
OPDI_UNARY_OF(silu, KEEP, "[2,3]", "self", opd_silu_backward(g, x))

//-- unary operators with numbers ------------------------------------------------------------------------------------------

static int opdi_unary_params(opd_call *call, const opdi_formula *f, const opdi_params *s) {
    opd_tensor *ops[2];
    ops[1] = opd_arg_tensor(call, 0);
    return opdi_pointwise(call, f, ops, 1, s);
}
/* Arguments first..first+n-1 as numbers 0..n-1. */
static opdi_params opdi_params_of(const opd_call *call, int first, int n) {
    opdi_params s = opdi_no_params;
    int k;
    for (k = 0; k < n; k++) { opdi_params_set(&s, k, opd_arg_value(call, first + k)); }
    return s;
}
#define OPDI_BW1(id) static int opdi_##id##_backward(opd_backward_call *bw)
#define OPDI_KERNEL(id) static int opdi_##id##_kernel(opd_call *call)
/* g * 0 without spreading infinities */
static int opdi_zero_backward(opd_backward_call *bw) {
    int i;
    for (i = 0; i < 2; i++) {
        if (opd_bw_needs(bw, i) && opd_bw_return(bw, i, opd_zeros_like(opd_bw_grad(bw, 0))) != 0) { return -1; }
    }
    return 0;
}

static const opdi_formula opdi_formula_clamp = {{opdi_f32_clamp, opdi_f64_clamp, opdi_i64_clamp}, "clamp_cpu", OPDI_NOT_BOOL};
static const opdi_formula opdi_formula_clamp_tensor = {{opdi_f32_clamp_tensor, opdi_f64_clamp_tensor, opdi_i64_clamp_tensor},
                                                       "clamp_cpu", OPDI_NOT_BOOL};
/* Bounds in s; the result's dtype is promoted by the bounds (at::meta clamp). */
static int opdi_clamp_bounds(opd_call *call, opd_value low, opd_value high) {
    opd_tensor *ops[4];
    opdi_number n[2];
    opdi_params s = opdi_no_params;
    int nin = 1;
    opd_scalar_type t;
    ops[1] = opd_arg_tensor(call, 0);
    if (low.tag != OPD_TAG_NONE) { ops[++nin] = opdi_number_make(&n[0], low); }
    if (high.tag != OPD_TAG_NONE) { ops[++nin] = opdi_number_make(&n[1], high); }
    if (nin == 1) { return opd_fail(OPD_ERROR_ARGUMENT, "torch.clamp: At least one of 'min' or 'max' must not be None"); }
    t = opdi_result_type(ops + 1, nin);
    opdi_params_set_f64(&s, 0, -INFINITY);
    opdi_params_set_f64(&s, 1, INFINITY);
    s.i64[0] = INT64_MIN; s.i64[1] = INT64_MAX;
    if (low.tag != OPD_TAG_NONE) { opdi_params_set(&s, 0, low); }
    if (high.tag != OPD_TAG_NONE) { opdi_params_set(&s, 1, high); }
    if (s.f64[0] != s.f64[0] || s.f64[1] != s.f64[1]) {      /* a NaN bound makes everything NaN */
        ops[2] = opdi_number_make(&n[0], opd_value_float(NAN)); ops[3] = opdi_number_make(&n[1], opd_value_float(NAN));
        return opdi_pointwise_typed(call, &opdi_formula_clamp_tensor, ops, 3, t, t, &s);
    }
    return opdi_pointwise_typed(call, &opdi_formula_clamp, ops, 1, t, t, &s);
}
OPDI_KERNEL(clamp) { return opdi_clamp_bounds(call, opd_arg_value(call, 1), opd_arg_value(call, 2)); }
OPDI_KERNEL(clamp_min) { return opdi_clamp_bounds(call, opd_arg_value(call, 1), opd_value_none()); }
OPDI_KERNEL(clamp_max) { return opdi_clamp_bounds(call, opd_value_none(), opd_arg_value(call, 1)); }
/* The gradient passes where low <= x <= high. */
static opd_tensor *opdi_clamp_mask(opd_tensor *g, opd_tensor *x, opd_value low, opd_value high) {
    if (low.tag != OPD_TAG_NONE) { g = opdi_where(opd_ge_Scalar(x, low), g); }
    return high.tag != OPD_TAG_NONE ? opdi_where(opd_le_Scalar(x, high), g) : g;
}
OPDI_BW1(clamp) {
    return opd_bw_return(bw, 0, opdi_clamp_mask(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), opd_bw_value(bw, 2)));
}
OPDI_BW1(clamp_min) {
    return opd_bw_return(bw, 0, opdi_clamp_mask(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), opd_value_none()));
}
OPDI_BW1(clamp_max) {
    return opd_bw_return(bw, 0, opdi_clamp_mask(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_value_none(), opd_bw_value(bw, 1)));
}
/* A card whose kernel is opdi_<kernel>_kernel. */
#define OPDI_CARD(id, schema_, kernel_, backward_, save_, autocast_, inplace_, out_, cases_)                \
    OPDI_OP(id) {                                                                                           \
        opdi_card_pointwise(op, schema_, opdi_##kernel_##_kernel, backward_, save_, OPD_AUTOCAST_##autocast_, cases_); \
        op->inplace = inplace_; op->out = out_;                                                             \
    }
OPDI_CARD(clamp, "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", clamp, opdi_clamp_backward, "self", KEEP,
          "clamp_", "clamp.out", "[2,3], -0.5, 0.5; [2,3], None, 0.25; [2,3]i5, 1, 3")
OPDI_CARD(clamp_min, "clamp_min(Tensor self, Scalar min) -> Tensor", clamp_min, opdi_clamp_min_backward, "self", KEEP,
          "clamp_min_", "clamp_min.out", "[2,3], 0.1")
OPDI_CARD(clamp_max, "clamp_max(Tensor self, Scalar max) -> Tensor", clamp_max, opdi_clamp_max_backward, "self", KEEP,
          "clamp_max_", "clamp_max.out", "[2,3], 0.1")

static int opdi_hardtanh_bounds(opd_call *call, opd_value low, opd_value high) {
    const opd_scalar_type t = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    opd_tensor *ops[2];
    opdi_params s = opdi_no_params;
    if (t == OPD_BOOL) { return opd_fail(OPD_ERROR_DTYPE, "Bool inputs not supported for hardtanh"); }
    if (t == OPD_UINT8 && (opdi_number_f64(low) < 0 || opdi_number_f64(high) < 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "cannot do hardtanh on an unsigned type with negative limits");
    }
    opdi_params_set(&s, 0, low); opdi_params_set(&s, 1, high);
    ops[1] = opd_arg_tensor(call, 0);
    return opdi_pointwise_typed(call, &opdi_formula_clamp, ops, 1, t, t, &s);
}
OPDI_KERNEL(hardtanh) { return opdi_hardtanh_bounds(call, opd_arg_value(call, 1), opd_arg_value(call, 2)); }
OPDI_BW1(hardtanh) {
    return opd_bw_return(bw, 0, opd_hardtanh_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), opd_bw_value(bw, 2)));
}
OPDI_CARD(hardtanh, "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", hardtanh, opdi_hardtanh_backward,
          "self", KEEP, "hardtanh_", "hardtanh.out", "[2,3]; [2,3], -0.5, 0.25")
OPDI_KERNEL(relu6) { return opdi_hardtanh_bounds(call, opd_value_int(0), opd_value_int(6)); }
OPDI_UNARY_BACKWARD(relu6, opd_hardtanh_backward(g, x, opd_value_int(0), opd_value_int(6)))
OPDI_CARD(relu6, "relu6(Tensor self) -> Tensor", relu6, opdi_relu6_backward, "self", KEEP, "relu6_", NULL, "[2,3]")

static const opdi_formula opdi_formula_gelu = {{opdi_f32_vgelu, opdi_f64_gelu, NULL}, "GeluKernelImpl", 0};
static const opdi_formula opdi_formula_gelu_tanh = {{opdi_f32_vgelu_tanh, opdi_f64_gelu_tanh, NULL}, "GeluKernelImpl", 0};
static const opdi_formula opdi_formula_gelu_backward = {{opdi_f32_vgelu_backward, opdi_f64_gelu_backward, NULL}, "GeluBackwardKernelImpl", 0};
static const opdi_formula opdi_formula_gelu_tanh_backward = {{opdi_f32_vgelu_tanh_backward, opdi_f64_gelu_tanh_backward, NULL},
                                                            "GeluBackwardKernelImpl", 0};
/* 0 for "none", 1 for "tanh", -1 with an error. */
static int opdi_gelu_approximate(const char *text) {
    if (text && strcmp(text, "none") == 0) { return 0; }
    if (text && strcmp(text, "tanh") == 0) { return 1; }
    return opd_fail(OPD_ERROR_ARGUMENT, "approximate argument must be either none or tanh.");
}
OPDI_KERNEL(gelu) {
    int k = opdi_gelu_approximate(opd_arg_str(call, 1));
    return k < 0 ? -1 : opdi_unary(call, k ? &opdi_formula_gelu_tanh : &opdi_formula_gelu);
}
OPDI_BW1(gelu) {
    return opd_bw_return(bw, 0, opd_gelu_backward_full(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1).u.s));
}
OPDI_CARD(gelu, "gelu(Tensor self, *, str approximate='none') -> Tensor", gelu, opdi_gelu_backward, "self", KEEP, "gelu_", "gelu.out",
          "[2,3]; [2,3], approximate='tanh'")

OPDI_FORMULA_F(leaky_relu, leaky_relu, 0)
OPDI_KERNEL(leaky_relu) { opdi_params s = opdi_params_of(call, 1, 1); return opdi_unary_params(call, &opdi_formula_leaky_relu, &s); }
OPDI_BW1(leaky_relu) {
    return opd_bw_return(bw, 0, opd_leaky_relu_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), false));
}
OPDI_CARD(leaky_relu, "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor", leaky_relu, opdi_leaky_relu_backward, "self",
          KEEP, "leaky_relu_", "leaky_relu.out", "[2,3]; [2,3], 0.2")

/* x <= 0: (e^(x input_scale) - 1) alpha scale, else x scale */
static opdi_params opdi_elu_params(opd_value alpha, opd_value scale, opd_value input_scale) {
    opdi_params s = opdi_no_params;
    opdi_params_set_f64(&s, 0, opdi_number_f64(alpha) * opdi_number_f64(scale));
    opdi_params_set(&s, 1, scale);
    opdi_params_set(&s, 2, input_scale);
    return s;
}
OPDI_FORMULA_F(elu, elu, 0)
OPDI_KERNEL(elu) {
    opdi_params s = opdi_elu_params(opd_arg_value(call, 1), opd_arg_value(call, 2), opd_arg_value(call, 3));
    return opdi_unary_params(call, &opdi_formula_elu, &s);
}
OPDI_BW1(elu) {
    return opd_bw_return(bw, 0, opd_elu_backward(opd_bw_grad(bw, 0), opd_bw_value(bw, 1), opd_bw_value(bw, 2), opd_bw_value(bw, 3),
                                                 false, opd_bw_tensor(bw, 0)));
}
OPDI_CARD(elu, "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", elu, opdi_elu_backward, "self", KEEP,
          "elu_", "elu.out", "[2,3]; [2,3], 2, 0.5, 1.5")
/* selu and celu are elu with other numbers (at::native::selu, celu). */
OPDI_KERNEL(selu) {
    opdi_params s = opdi_elu_params(opd_value_float(1.6732632423543772848170429916717), opd_value_float(1.0507009873554804934193349852946),
                                    opd_value_int(1));
    return opdi_unary_params(call, &opdi_formula_elu, &s);
}
OPDI_UNARY_BACKWARD(selu, opd_elu_backward(g, opd_value_float(1.6732632423543772848170429916717),
                                           opd_value_float(1.0507009873554804934193349852946), opd_value_int(1), false, x))
OPDI_CARD(selu, "selu(Tensor self) -> Tensor", selu, opdi_selu_backward, "self", KEEP, "selu_", NULL, "[2,3]")
OPDI_KERNEL(celu) {
    double alpha = opdi_number_f64(opd_arg_value(call, 1));
    opdi_params s;
    if (alpha == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "ZeroDivisionError: alpha cannot be 0 for CELU"); }
    s = opdi_elu_params(opd_value_float(alpha), opd_value_int(1), opd_value_float(1 / alpha));
    return opdi_unary_params(call, &opdi_formula_elu, &s);
}
OPDI_BW1(celu) {
    double alpha = opdi_number_f64(opd_bw_value(bw, 1));
    return opd_bw_return(bw, 0, opd_elu_backward(opd_bw_grad(bw, 0), opd_value_float(alpha), opd_value_int(1), opd_value_float(1 / alpha),
                                                 false, opd_bw_tensor(bw, 0)));
}
OPDI_CARD(celu, "celu(Tensor self, Scalar alpha=1.) -> Tensor", celu, opdi_celu_backward, "self", KEEP, "celu_", "celu.out", "[2,3]; [2,3], 2")

OPDI_FORMULA_F(softplus, softplus, 0)
OPDI_KERNEL(softplus) { opdi_params s = opdi_params_of(call, 1, 2); return opdi_unary_params(call, &opdi_formula_softplus, &s); }
OPDI_BW1(softplus) {
    return opd_bw_return(bw, 0, opd_softplus_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), opd_bw_value(bw, 2)));
}
OPDI_CARD(softplus, "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", softplus, opdi_softplus_backward, "self", FP32,
          NULL, "softplus.out", "[2,3]; [2,3], 2, 0.5")

OPDI_FORMULA_A(threshold, threshold, OPDI_NOT_BOOL)
OPDI_KERNEL(threshold) {
    opdi_params s = opdi_params_of(call, 1, 2);
    opd_tensor *ops[3];
    ops[1] = ops[2] = opd_arg_tensor(call, 0);
    return opdi_pointwise(call, &opdi_formula_threshold, ops, 2, &s);
}
OPDI_BW1(threshold) {
    return opd_bw_return(bw, 0, opd_threshold_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1)));
}
OPDI_CARD(threshold, "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor", threshold, opdi_threshold_backward, "self", KEEP,
          "threshold_", "threshold.out", "[2,3], 0.1, 2")

OPDI_FORMULA_F(round_decimals, round_decimals, 0)
OPDI_KERNEL(round_decimals) {
    int64_t decimals = opd_arg_int(call, 1);
    opdi_params s = opdi_no_params;
    opdi_params_set_f64(&s, 0, pow(10, decimals < 0 ? -(double)decimals : (double)decimals));
    opdi_params_set_f64(&s, 1, decimals < 0);
    return opdi_unary_params(call, &opdi_formula_round_decimals, &s);
}
OPDI_CARD(round_decimals, "round.decimals(Tensor self, *, int decimals) -> Tensor", round_decimals, opdi_zero_backward, "", KEEP,
          "round_.decimals", "round.decimals_out", "[2,3], decimals=1; [2,3], decimals=-1")

OPDI_FORMULA_F(softshrink, softshrink, 0)
OPDI_KERNEL(softshrink) {
    opdi_params s = opdi_params_of(call, 1, 1);
    if (s.f64[0] < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "lambda must be greater or equal to 0, but found to be %g.", s.f64[0]);
    }
    return opdi_unary_params(call, &opdi_formula_softshrink, &s);
}
OPDI_BW1(softshrink) {
    return opd_bw_return(bw, 0, opd_softshrink_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1)));
}
OPDI_CARD(softshrink, "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor", softshrink, opdi_softshrink_backward, "self", KEEP, NULL,
          "softshrink.out", "[2,3]; [2,3], 0.2")
OPDI_FORMULA_F(hardshrink, hardshrink, 0)
OPDI_KERNEL(hardshrink) { opdi_params s = opdi_params_of(call, 1, 1); return opdi_unary_params(call, &opdi_formula_hardshrink, &s); }
OPDI_BW1(hardshrink) {
    return opd_bw_return(bw, 0, opd_hardshrink_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1)));
}
OPDI_CARD(hardshrink, "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor", hardshrink, opdi_hardshrink_backward, "self", KEEP, NULL,
          "hardshrink.out", "[2,3]; [2,3], 0.2")
/* Both shrinks: the gradient is 0 inside [-lambd, lambd]. */
OPDI_FORMULA_F(shrink_backward, shrink_backward, 0)
OPDI_KERNEL(shrink_backward) {
    opdi_params s = opdi_params_of(call, 2, 1);
    opd_tensor *ops[3];
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opd_arg_tensor(call, 1);
    return opdi_pointwise(call, &opdi_formula_shrink_backward, ops, 2, &s);
}
/* For g f'(x) where f' is constant by parts: the gradient of g by the same operator, that of x is 0. */
OPDI_BW1(softshrink_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_softshrink_backward(g, x, opd_bw_value(bw, 2))) != 0) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_zeros_like(g)) : 0;
}
OPDI_CARD(softshrink_backward, "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor", shrink_backward,
          opdi_softshrink_backward_backward, "self", KEEP, NULL,
          "softshrink_backward.grad_input(Tensor grad_output, Tensor self, Scalar lambd, *, Tensor(a!) grad_input) -> Tensor(a!)",
          "[2,3], [2,3], 0.5")
OPDI_CARD(hardshrink_backward, "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor", shrink_backward,
          opdi_softshrink_backward_backward, "self", KEEP, NULL,
          "hardshrink_backward.grad_input(Tensor grad_out, Tensor self, Scalar lambd, *, Tensor(a!) grad_input) -> Tensor(a!)",
          "[2,3], [2,3], 0.5")

/* nan_to_num: None means 0 for NaN and the dtype's largest and smallest numbers for the infinities. */
static const opdi_formula opdi_formula_nan_to_num = {{opdi_f32_nan_to_num, opdi_f64_nan_to_num, opdi_i64_floor}, "nan_to_num", 0};
static double opdi_dtype_max(int8_t t) {
    return t == OPD_FLOAT16 ? 65504.0 : t == OPD_BFLOAT16 ? 3.38953138925153547590e38 : t == OPD_FLOAT32 ? (double)FLT_MAX : DBL_MAX;
}
OPDI_KERNEL(nan_to_num) {
    const double top = opdi_dtype_max(opd_arg_tensor(call, 0)->dtype);
    opdi_params s = opdi_no_params;
    opdi_params_set_f64(&s, 0, opd_arg_is_none(call, 1) ? 0 : opd_arg_float(call, 1));
    opdi_params_set_f64(&s, 1, opd_arg_is_none(call, 2) ? top : opd_arg_float(call, 2));
    opdi_params_set_f64(&s, 2, opd_arg_is_none(call, 3) ? -top : opd_arg_float(call, 3));
    return opdi_unary_params(call, &opdi_formula_nan_to_num, &s);
}
OPDI_UNARY_BACKWARD(nan_to_num, opdi_where(opd_isfinite(x), g))
OPDI_CARD(nan_to_num, "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor", nan_to_num,
          opdi_nan_to_num_backward, "self", KEEP, "nan_to_num_", "nan_to_num.out", "[2,3]; [2,3], 1., 2., 3.")

/* deg2rad and rad2deg multiply by a constant. */
static const opdi_formula opdi_formula_angle = {{opdi_f32_mul, opdi_f64_mul, NULL}, "mul", OPDI_TO_FLOAT};
static int opdi_unary_times(opd_call *call, double k) {
    opd_tensor *ops[3];
    opdi_number n;
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opdi_number_make(&n, opd_value_float(k));
    return opdi_pointwise(call, &opdi_formula_angle, ops, 2, &opdi_no_params);
}
OPDI_KERNEL(deg2rad) { return opdi_unary_times(call, 3.14159265358979323846 / 180.0); }
OPDI_UNARY_BACKWARD(deg2rad, opdi_muls(g, 3.14159265358979323846 / 180.0))
OPDI_CARD(deg2rad, "deg2rad(Tensor self) -> Tensor", deg2rad, opdi_deg2rad_backward, "", KEEP, "deg2rad_", "deg2rad.out", "[2,3]")
OPDI_KERNEL(rad2deg) { return opdi_unary_times(call, 180.0 / 3.14159265358979323846); }
OPDI_UNARY_BACKWARD(rad2deg, opdi_muls(g, 180.0 / 3.14159265358979323846))
OPDI_CARD(rad2deg, "rad2deg(Tensor self) -> Tensor", rad2deg, opdi_rad2deg_backward, "", KEEP, "rad2deg_", "rad2deg.out", "[2,3]")

/* logit: eps clamps to [eps, 1 - eps] */
OPDI_FORMULA_F(logit, logit, OPDI_TO_FLOAT)
OPDI_KERNEL(logit) {
    opdi_params s = opdi_no_params;
    bool none = opd_arg_is_none(call, 1);
    opdi_params_set_f64(&s, 0, none ? -INFINITY : opd_arg_float(call, 1));
    opdi_params_set_f64(&s, 1, none ? INFINITY : 1 - opd_arg_float(call, 1));
    return opdi_unary_params(call, &opdi_formula_logit, &s);
}
OPDI_BW1(logit) {
    opd_value eps = opd_bw_value(bw, 1);
    return opd_bw_return(bw, 0, opd_logit_backward_full(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), eps));
}
OPDI_CARD(logit, "logit(Tensor self, float? eps=None) -> Tensor", logit, opdi_logit_backward, "self", KEEP, "logit_", "logit.out",
          "[2,3]u, 0.1")
OPDI_FORMULA_F(logit_backward, logit_backward, 0)
OPDI_KERNEL(logit_backward) {
    opdi_params s = opdi_no_params;
    bool none = opd_arg_is_none(call, 2);
    double eps = none ? 0 : opd_arg_float(call, 2);
    opd_tensor *ops[3];
    opdi_params_set_f64(&s, 0, eps < 0 ? 0 : eps);
    opdi_params_set_f64(&s, 1, eps < 0 ? 1 : 1 - eps);
    opdi_params_set_f64(&s, 2, none || eps < 0 ? NAN : 0);
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opd_arg_tensor(call, 1);
    return opdi_pointwise(call, &opdi_formula_logit_backward, ops, 2, &s);
}
OPDI_BW1(logit_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1);
    opd_value eps = opd_bw_value(bw, 2);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_logit_backward_full(g, x, eps)) != 0) { return -1; }
    if (!opd_bw_needs(bw, 1)) { return 0; }      /* d/dx 1 / (x (1 - x)) = (2x - 1) / (x (1 - x))^2 */
    return opd_bw_return(bw, 1, opd_mul(opd_mul(g, opd_logit_backward_full(go, x, eps)),
                                        opd_div(opdi_adds(opdi_muls(x, 2), -1), opd_mul(x, opdi_rsubs(1, x)))));
}
OPDI_CARD(logit_backward, "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor", logit_backward,
          opdi_logit_backward_backward, "grad_output(self), self", KEEP, NULL,
          "logit_backward.grad_input(Tensor grad_output, Tensor self, float? eps=None, *, Tensor(a!) grad_input) -> Tensor(a!)",
          "[2,3], [2,3]u, 0.1")

//-- add, sub, rsub, mul ---------------------------------------------------------------------------------------------------

OPDI_FORMULA_A(add, add, 0)
OPDI_FORMULA_A(add_scaled, add_scaled, 0)
OPDI_FORMULA_A(sub, sub, 0)
OPDI_FORMULA_A(sub_scaled, sub_scaled, 0)
OPDI_FORMULA_A(mul, mul, 0)
/* The `alpha` checks of at::native (alpha_check). */
static int opdi_alpha_check(opd_scalar_type t, opd_value alpha) {
    if (alpha.tag == OPD_TAG_BOOL && t != OPD_BOOL) { return opd_fail(OPD_ERROR_DTYPE, "Boolean alpha only supported for Boolean results."); }
    if (opd_dtype_is_integral(t, true) && alpha.tag != OPD_TAG_INT && alpha.tag != OPD_TAG_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "For integral input tensors, argument alpha must not be a floating point number.");
    }
    return 0;
}
static int opdi_sub_check(const opd_tensor *a, const opd_tensor *b) {
    if (a->dtype != OPD_BOOL && b->dtype != OPD_BOOL) { return 0; }
    if (a->dtype == OPD_BOOL && b->dtype == OPD_BOOL && !((a->flags | b->flags) & OPDI_WRAPPED)) {
        return opd_fail(OPD_ERROR_DTYPE, "Subtraction, the `-` operator, with two bool tensors is not supported. "
                        "Use the `^` or `logical_xor()` operator instead.");
    }
    if ((a->flags | b->flags) & OPDI_WRAPPED) {   /* True as a number is an int */
        const opd_tensor *t = a->flags & OPDI_WRAPPED ? b : a;
        if (t->dtype != OPD_BOOL) { return 0; }
    }
    return opd_fail(OPD_ERROR_DTYPE, "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
                    "invert a mask, use the `~` or `logical_not()` operator instead.");
}
/* ops[1] + alpha ops[2], or with a minus. */
static int opdi_scaled(opd_call *call, opd_tensor **ops, opd_value alpha, const opdi_formula *plain, const opdi_formula *scaled) {
    opdi_params s;
    if (alpha.tag == OPD_TAG_INT && alpha.u.i == 1) { return opdi_pointwise(call, plain, ops, 2, &opdi_no_params); }
    if (opdi_alpha_check(opdi_result_type(ops + 1, 2), alpha) != 0) { return -1; }
    s = opdi_no_params;
    opdi_params_set(&s, 0, alpha);
    return opdi_pointwise(call, scaled, ops, 2, &s);
}
OPDI_KERNEL(add) {
    opd_tensor *ops[3];
    opdi_number n;
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opdi_operand_of(call, 1, &n);
    return opdi_scaled(call, ops, opd_arg_value(call, 2), &opdi_formula_add, &opdi_formula_add_scaled);
}
OPDI_KERNEL(sub) {
    opd_tensor *ops[3];
    opdi_number n;
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opdi_operand_of(call, 1, &n);
    if (opdi_sub_check(ops[1], ops[2]) != 0) { return -1; }
    return opdi_scaled(call, ops, opd_arg_value(call, 2), &opdi_formula_sub, &opdi_formula_sub_scaled);
}
OPDI_KERNEL(rsub) {
    opd_tensor *ops[3];
    opdi_number n;
    ops[2] = opd_arg_tensor(call, 0); ops[1] = opdi_operand_of(call, 1, &n);
    if (opdi_sub_check(ops[2], ops[1]) != 0) { return -1; }
    return opdi_scaled(call, ops, opd_arg_value(call, 2), &opdi_formula_sub, &opdi_formula_sub_scaled);
}
OPDI_KERNEL(mul) { return opdi_binary(call, &opdi_formula_mul); }
/* Returns gradients of arguments i and j where they are wanted. */
#define OPDI_GIVE(i, expr) do { if (opd_bw_needs(bw, i) && opd_bw_return(bw, i, expr) != 0) { return -1; } } while (0)
OPDI_BW1(add) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, g);
    OPDI_GIVE(1, opdi_scale(g, opd_bw_value(bw, 2)));
    return 0;
}
OPDI_BW1(sub) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, g);
    OPDI_GIVE(1, opd_neg(opdi_scale(g, opd_bw_value(bw, 2))));
    return 0;
}
OPDI_BW1(rsub) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_neg(opdi_scale(g, opd_bw_value(bw, 2))));
    OPDI_GIVE(1, g);
    return 0;
}
OPDI_BW1(mul) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_mul(g, opd_bw_tensor(bw, 1)));
    OPDI_GIVE(1, opd_mul(g, opd_bw_tensor(bw, 0)));
    return 0;
}
OPDI_BW1(mul_Scalar) { return opd_bw_return(bw, 0, opdi_scale(opd_bw_grad(bw, 0), opd_bw_value(bw, 1))); }
#define OPDI_CASES_BINARY "[2,3], [2,3]; [2,3], [3]; [2,1], [1,3]; [2,3], []"
OPDI_CARD(add_Tensor, "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", add, opdi_add_backward, "", KEEP,
          "add_.Tensor", "add.out", OPDI_CASES_BINARY "; [2,3], [3], alpha=2")
OPDI_CARD(add_Scalar, "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", add, opdi_add_backward, "", KEEP,
          "add_.Scalar", "add.Scalar_out", "[2,3], 1.5; [2,3], 2, 3")
OPDI_CARD(sub_Tensor, "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", sub, opdi_sub_backward, "", KEEP,
          "sub_.Tensor", "sub.out", OPDI_CASES_BINARY "; [2,3], [3], alpha=2")
OPDI_CARD(sub_Scalar, "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", sub, opdi_sub_backward, "", KEEP,
          "sub_.Scalar", "sub.Scalar_out", "[2,3], 1.5; [2,3], 2, 3")
OPDI_CARD(rsub_Tensor, "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", rsub, opdi_rsub_backward, "", KEEP,
          NULL, "rsub.Tensor_out", OPDI_CASES_BINARY "; [2,3], [3], alpha=2")
OPDI_CARD(rsub_Scalar, "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", rsub, opdi_rsub_backward, "", KEEP,
          NULL, "rsub.Scalar_out", "[2,3], 1.5; [2,3], 2, 3")
OPDI_CARD(mul_Tensor, "mul.Tensor(Tensor self, Tensor other) -> Tensor", mul, opdi_mul_backward, "self(other), other(self)", KEEP,
          "mul_.Tensor", "mul.out", OPDI_CASES_BINARY)
OPDI_CARD(mul_Scalar, "mul.Scalar(Tensor self, Scalar other) -> Tensor", mul, opdi_mul_Scalar_backward, "", KEEP,
          "mul_.Scalar", "mul.Scalar_out", "[2,3], 1.5; [2,3], 2")

//-- div, floor_divide, fmod, remainder ------------------------------------------------------------------------------------

OPDI_FORMULA_F(div, div, OPDI_TO_FLOAT)
OPDI_FORMULA_A(div_trunc, div_trunc, OPDI_NOT_BOOL)
OPDI_FORMULA_A(div_floor, div_floor, OPDI_NOT_BOOL)
OPDI_FORMULA_A(fmod, fmod, OPDI_NOT_BOOL)
OPDI_FORMULA_A(remainder, remainder, OPDI_NOT_BOOL)
OPDI_KERNEL(div) { return opdi_binary(call, &opdi_formula_div); }
OPDI_KERNEL(div_mode) {
    const char *mode = opd_arg_is_none(call, 2) ? NULL : opd_arg_str(call, 2);
    if (!mode) { return opdi_binary(call, &opdi_formula_div); }
    if (strcmp(mode, "trunc") == 0) { return opdi_binary_div(call, &opdi_formula_div_trunc); }
    if (strcmp(mode, "floor") == 0) { return opdi_binary_div(call, &opdi_formula_div_floor); }
    return opd_fail(OPD_ERROR_ARGUMENT, "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", mode);
}
OPDI_KERNEL(floor_divide) { return opdi_binary_div(call, &opdi_formula_div_floor); }
OPDI_KERNEL(fmod) { return opdi_binary_div(call, &opdi_formula_fmod); }
OPDI_KERNEL(remainder) { return opdi_binary_div(call, &opdi_formula_remainder); }
/* d/dx = g / y, d/dy = -g (x / y) / y */
OPDI_BW1(div) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_div(g, y));
    OPDI_GIVE(1, opd_mul(opd_neg(g), opd_div(opd_div(x, y), y)));
    return 0;
}
OPDI_BW1(div_mode) { return opd_bw_value(bw, 2).tag == OPD_TAG_NONE ? opdi_div_backward(bw) : opdi_zero_backward(bw); }
OPDI_BW1(div_Scalar) { return opd_bw_return(bw, 0, opd_div_Scalar(opd_bw_grad(bw, 0), opd_bw_value(bw, 1))); }
OPDI_BW1(div_Scalar_mode) { return opd_bw_value(bw, 2).tag == OPD_TAG_NONE ? opdi_div_Scalar_backward(bw) : opdi_zero_backward(bw); }
OPDI_BW1(first) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
OPDI_BW1(fmod) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, g);
    OPDI_GIVE(1, opd_mul(opd_neg(g), opd_div_Tensor_mode(x, y, "trunc")));
    return 0;
}
OPDI_BW1(remainder) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, g);
    OPDI_GIVE(1, opd_mul(opd_neg(g), opd_div_Tensor_mode(x, y, "floor")));
    return 0;
}
#define OPDI_CASES_DIV "[2,3], [2,3]+; [2,3], [3]+; [2,1], [1,3]+"
OPDI_CARD(div_Tensor, "div.Tensor(Tensor self, Tensor other) -> Tensor", div, opdi_div_backward, "self(other), other", KEEP,
          "div_.Tensor", "div.out", OPDI_CASES_DIV)
OPDI_CARD(div_Scalar, "div.Scalar(Tensor self, Scalar other) -> Tensor", div, opdi_div_Scalar_backward, "", KEEP,
          "div_.Scalar", "div.Scalar_out", "[2,3], 2; [2,3], 1.5")
OPDI_CARD(div_Tensor_mode, "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor", div_mode, opdi_div_mode_backward,
          "self(other), other", KEEP, "div_.Tensor_mode", "div.out_mode",
          "[2,3], [3]+, rounding_mode=None; [2,3], [3]+, rounding_mode='floor'; [2,3], [2,3]+, rounding_mode='trunc'")
OPDI_CARD(div_Scalar_mode, "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor", div_mode,
          opdi_div_Scalar_mode_backward, "", KEEP, "div_.Scalar_mode", "div.Scalar_mode_out",
          "[2,3], 2, rounding_mode=None; [2,3], 0.5, rounding_mode='floor'")
OPDI_CARD(floor_divide, "floor_divide(Tensor self, Tensor other) -> Tensor", floor_divide, OPD_NOT_DIFFERENTIABLE, "", KEEP,
          "floor_divide_.Tensor", "floor_divide.out", OPDI_CASES_DIV)
OPDI_CARD(floor_divide_Scalar, "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", floor_divide, OPD_NOT_DIFFERENTIABLE, "", KEEP,
          "floor_divide_.Scalar", NULL, "[2,3], 2")
OPDI_CARD(fmod_Tensor, "fmod.Tensor(Tensor self, Tensor other) -> Tensor", fmod, opdi_fmod_backward, "self(other), other(other)", KEEP,
          "fmod_.Tensor", "fmod.Tensor_out", OPDI_CASES_DIV)
OPDI_CARD(fmod_Scalar, "fmod.Scalar(Tensor self, Scalar other) -> Tensor", fmod, opdi_first_backward, "", KEEP, "fmod_.Scalar",
          "fmod.Scalar_out", "[2,3], 0.5")
OPDI_CARD(remainder_Tensor, "remainder.Tensor(Tensor self, Tensor other) -> Tensor", remainder, opdi_remainder_backward,
          "self(other), other(other)", KEEP, "remainder_.Tensor", "remainder.Tensor_out", OPDI_CASES_DIV)
OPDI_CARD(remainder_Scalar, "remainder.Scalar(Tensor self, Scalar other) -> Tensor", remainder, opdi_first_backward, "", KEEP,
          "remainder_.Scalar", "remainder.Scalar_out", "[2,3], 0.5")

//-- pow -------------------------------------------------------------------------------------------------------------------

OPDI_FORMULA_A(pow, pow, OPDI_NOT_BOOL)
static const opdi_formula opdi_formula_pow_2 = {{opdi_f32_square, opdi_f64_square, opdi_i64_square}, "pow", OPDI_NOT_BOOL};
static const opdi_formula opdi_formula_pow_3 = {{opdi_f32_cube, opdi_f64_cube, opdi_i64_cube}, "pow", OPDI_NOT_BOOL};
OPDI_FORMULA_F(pow_half, sqrt, 0)
OPDI_FORMULA_F(pow_inverse, reciprocal, 0)
OPDI_FORMULA_F(pow_rsqrt, rsqrt, 0)
OPDI_KERNEL(pow) { return opdi_binary(call, &opdi_formula_pow); }
/* Small constant exponents have loops of their own (at::native::pow_tensor_scalar_optimized_kernel). */
OPDI_KERNEL(pow_Tensor_Scalar) {
    opd_tensor *ops[3];
    opdi_number n;
    opd_value v = opd_arg_value(call, 1);
    const double e = opdi_number_f64(v);
    const opdi_formula *f = &opdi_formula_pow;
    opd_scalar_type t;
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opdi_number_make(&n, v);
    t = opdi_result_type(ops + 1, 2);
    if (opd_dtype_is_integral(t, true) && e < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Integers to negative integer powers are not allowed.");
    }
    if (e == 2) { f = &opdi_formula_pow_2; }
    else if (e == 3) { f = &opdi_formula_pow_3; }
    else if (e == 0.5) { f = &opdi_formula_pow_half; }
    else if (e == -1) { f = &opdi_formula_pow_inverse; }
    else if (e == -0.5) { f = &opdi_formula_pow_rsqrt; }
    return opdi_pointwise_typed(call, f, ops, f == &opdi_formula_pow ? 2 : 1, t, t, &opdi_no_params);
}
/* d/dx x^e = e x^(e-1), 0 where e = 0 */
OPDI_BW1(pow_Tensor_Scalar) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0);
    opd_value v = opd_bw_value(bw, 1), less = v;
    if (opdi_number_f64(v) == 0) { return opd_bw_return(bw, 0, opd_zeros_like(g)); }
    if (v.tag == OPD_TAG_FLOAT) { less.u.d -= 1; }
    else { less = opd_value_int(opdi_wrap_sub(v.u.i, 1)); }
    return opd_bw_return(bw, 0, opd_mul(g, opdi_scale(opd_pow_Tensor_Scalar(x, less), v)));
}
/* d/de x^e = x^e log x, 0 where x = 0 and e >= 0 */
OPDI_BW1(pow_Tensor_Tensor) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *e = opd_bw_tensor(bw, 1);
    const opd_value zero = opd_value_int(0);
    OPDI_GIVE(0, opdi_unless(opd_mul(g, opd_mul(e, opd_pow_Tensor_Tensor(x, opdi_adds(e, -1)))), opd_eq_Scalar(e, zero)));
    OPDI_GIVE(1, opd_mul(g, opdi_unless(opd_mul(opd_bw_result(bw, 0), opd_log(x)),
                                        opd_logical_and(opd_eq_Scalar(x, zero), opd_ge_Scalar(e, zero)))));
    return 0;
}
OPDI_BW1(pow_Scalar) {
    opd_tensor *g = opd_bw_grad(bw, 0), *e = opd_bw_tensor(bw, 1), *r = opd_bw_result(bw, 0);
    const double base = opdi_number_f64(opd_bw_value(bw, 0));
    opd_tensor *d = opdi_muls(r, log(base));
    return opd_bw_return(bw, 1, opd_mul(g, base == 0 ? opdi_unless(d, opd_ge_Scalar(e, opd_value_int(0))) : d));
}
OPDI_CARD(pow_Tensor_Tensor, "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", pow, opdi_pow_Tensor_Tensor_backward,
          "self, exponent, result", FP32, "pow_.Tensor", "pow.Tensor_Tensor_out", "[2,3]+, [2,3]; [2,3]+, [3]")
OPDI_CARD(pow_Tensor_Scalar, "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", pow_Tensor_Scalar,
          opdi_pow_Tensor_Scalar_backward, "self", FP32, "pow_.Scalar", "pow.Tensor_Scalar_out",
          "[2,3], 2; [2,3]+, 1.5; [2,3]+, -1; [2,3], 3; [2,3], 0")
OPDI_CARD(pow_Scalar, "pow.Scalar(Scalar self, Tensor exponent) -> Tensor", pow, opdi_pow_Scalar_backward, "exponent, result", FP32,
          NULL, "pow.Scalar_out", "2, [2,3]; 1.5, [2,3]")

//-- maximum, minimum, fmax, fmin: a tie gives half to each (maximum, minimum) or all to self (fmax, fmin) -------------------

OPDI_FORMULA_A(maximum, maximum, 0)
OPDI_FORMULA_A(minimum, minimum, 0)
OPDI_FORMULA_A(fmax, fmax, 0)
OPDI_FORMULA_A(fmin, fmin, 0)
OPDI_KERNEL(maximum) { return opdi_binary(call, &opdi_formula_maximum); }
OPDI_KERNEL(minimum) { return opdi_binary(call, &opdi_formula_minimum); }
OPDI_KERNEL(fmax) { return opdi_binary(call, &opdi_formula_fmax); }
OPDI_KERNEL(fmin) { return opdi_binary(call, &opdi_formula_fmin); }
/* g where x beats y, g / 2 where they are equal, 0 where `loses`. */
static opd_tensor *opdi_tie(opd_tensor *g, opd_tensor *equal, opd_tensor *loses) {
    return opdi_unless(opd_where_self(equal, opdi_muls(g, 0.5), g), loses);
}
OPDI_BW1(maximum) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1), *e = opd_eq(x, y);
    OPDI_GIVE(0, opdi_tie(g, e, opd_lt(x, y)));
    OPDI_GIVE(1, opdi_tie(g, e, opd_gt(x, y)));
    return 0;
}
OPDI_BW1(minimum) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1), *e = opd_eq(x, y);
    OPDI_GIVE(0, opdi_tie(g, e, opd_gt(x, y)));
    OPDI_GIVE(1, opdi_tie(g, e, opd_lt(x, y)));
    return 0;
}
static int opdi_fmaxmin_backward(opd_backward_call *bw, opd_tensor *wins) {
    opd_tensor *g = opd_bw_grad(bw, 0), *mask = opd_logical_or(wins, opd_isnan(opd_bw_tensor(bw, 1)));
    OPDI_GIVE(0, opdi_where(mask, g));
    OPDI_GIVE(1, opdi_unless(g, mask));
    return 0;
}
OPDI_BW1(fmax) { return opdi_fmaxmin_backward(bw, opd_ge(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1))); }
OPDI_BW1(fmin) { return opdi_fmaxmin_backward(bw, opd_le(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1))); }
#define OPDI_CARD_BINARY(id, save_, autocast_, cases_)                                                      \
    OPDI_CARD(id, #id "(Tensor self, Tensor other) -> Tensor", id, opdi_##id##_backward, save_, autocast_, NULL, #id ".out", cases_)
OPDI_CARD_BINARY(maximum, "self, other", KEEP, OPDI_CASES_BINARY)
OPDI_CARD_BINARY(minimum, "self, other", KEEP, OPDI_CASES_BINARY)
OPDI_CARD_BINARY(fmax, "self, other", KEEP, OPDI_CASES_BINARY)
OPDI_CARD_BINARY(fmin, "self, other", KEEP, OPDI_CASES_BINARY)

//-- clamp with tensors ----------------------------------------------------------------------------------------------------

OPDI_KERNEL(clamp_Tensor) {
    opd_tensor *ops[4], *low = opd_arg_tensor(call, 1), *high = opd_arg_tensor(call, 2);
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = low ? low : high; ops[3] = high;
    if (low && high) { return opdi_pointwise(call, &opdi_formula_clamp_tensor, ops, 3, &opdi_no_params); }
    if (!low && !high) { return opd_fail(OPD_ERROR_ARGUMENT, "torch.clamp: At least one of 'min' or 'max' must not be None"); }
    return opdi_pointwise(call, low ? &opdi_formula_maximum : &opdi_formula_minimum, ops, 2, &opdi_no_params);
}
/* x gets g where low <= x <= high, low where x < low <= high, high where x > high or high < low. */
OPDI_BW1(clamp_Tensor) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *low = opd_bw_tensor(bw, 1), *high = opd_bw_tensor(bw, 2), *m;
    if (opd_bw_needs(bw, 0)) {
        m = low ? opd_ge(x, low) : opd_le(x, high);
        if (low && high) { m = opd_logical_and(m, opd_le(x, high)); }
        OPDI_GIVE(0, opdi_where(m, g));
    }
    if (opd_bw_needs(bw, 1)) {
        m = opd_lt(x, low);
        if (high) { m = opd_logical_and(m, opd_lt(low, high)); }
        OPDI_GIVE(1, opdi_where(m, g));
    }
    if (opd_bw_needs(bw, 2)) {
        m = opd_gt(x, high);
        if (low) { m = opd_logical_or(m, opd_lt(high, low)); }
        OPDI_GIVE(2, opdi_where(m, g));
    }
    return 0;
}
OPDI_BW1(clamp_min_Tensor) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opdi_where(opd_ge(x, y), g));
    OPDI_GIVE(1, opdi_where(opd_lt(x, y), g));
    return 0;
}
OPDI_BW1(clamp_max_Tensor) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opdi_where(opd_le(x, y), g));
    OPDI_GIVE(1, opdi_where(opd_gt(x, y), g));
    return 0;
}
OPDI_CARD(clamp_Tensor, "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", clamp_Tensor,
          opdi_clamp_Tensor_backward, "self, min, max", KEEP, "clamp_.Tensor", "clamp.Tensor_out", "[2,3], [2,3], [3]; [2,3], [3]; [2,3], None, [2,3]")
OPDI_CARD(clamp_min_Tensor, "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", maximum, opdi_clamp_min_Tensor_backward, "self, min", KEEP,
          "clamp_min_.Tensor", "clamp_min.Tensor_out", "[2,3], [3]")
OPDI_CARD(clamp_max_Tensor, "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", minimum, opdi_clamp_max_Tensor_backward, "self, max", KEEP,
          "clamp_max_.Tensor", "clamp_max.Tensor_out", "[2,3], [3]")

//-- comparisons and logic: results are bool ---------------------------------------------------------------------------------

/* Defines opdi_<id>_kernel and the cards <id>_Tensor, <id>_Scalar. */
#define OPDI_COMPARE(id)                                                                                    \
    OPDI_FORMULA_A(id, id, OPDI_TO_BOOL)                                                                    \
    OPDI_KERNEL(id) { return opdi_binary(call, &opdi_formula_##id); }                                       \
    OPDI_CARD(id##_Tensor, #id ".Tensor(Tensor self, Tensor other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, \
              #id "_.Tensor", #id ".Tensor_out", "[2,3], [2,3]; [2,3]i3, [3]i3")                            \
    OPDI_CARD(id##_Scalar, #id ".Scalar(Tensor self, Scalar other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, \
              #id "_.Scalar", #id ".Scalar_out", "[2,3], 0.5; [2,3]i3, 1")
OPDI_COMPARE(eq)
OPDI_COMPARE(ne)
OPDI_COMPARE(lt)
OPDI_COMPARE(le)
OPDI_COMPARE(gt)
OPDI_COMPARE(ge)
/* Defines opdi_<id>_kernel and the card <id>. */
#define OPDI_LOGICAL(id)                                                                                    \
    OPDI_FORMULA_A(id, id, OPDI_TO_BOOL)                                                                    \
    OPDI_KERNEL(id) { return opdi_binary(call, &opdi_formula_##id); }                                       \
    OPDI_CARD(id, #id "(Tensor self, Tensor other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, #id "_", #id ".out", \
              "[2,3]b, [2,3]b; [2,3]i3, [3]i3")
OPDI_LOGICAL(logical_and)
OPDI_LOGICAL(logical_or)
OPDI_LOGICAL(logical_xor)
/* Defines opdi_<id>_kernel and the cards <id>_Tensor, <id>_<scalar>, <id>_Scalar_Tensor of an integer operator. */
#define OPDI_BITWISE(id, rule_, scalar)                                                                     \
    OPDI_FORMULA_I(id, id, rule_)                                                                           \
    OPDI_KERNEL(id) { return opdi_binary(call, &opdi_formula_##id); }                                       \
    OPDI_CARD(id##_Tensor, #id ".Tensor(Tensor self, Tensor other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, \
              #id "_.Tensor", #id ".Tensor_out", "[2,3]i5, [2,3]i5; [2,3]i5, [3]i5")                        \
    OPDI_CARD(id##_##scalar, #id "." #scalar "(Tensor self, Scalar other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, \
              #id "_." #scalar, #id "." #scalar "_out", "[2,3]i5, 2")                                       \
    OPDI_CARD(id##_Scalar_Tensor, #id ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, \
              NULL, #id ".Scalar_Tensor_out", "2, [2,3]i5")
OPDI_BITWISE(bitwise_and, 0, Scalar)
OPDI_BITWISE(bitwise_or, 0, Scalar)
OPDI_BITWISE(bitwise_xor, 0, Scalar)
OPDI_BITWISE(bitwise_left_shift, OPDI_NOT_BOOL, Tensor_Scalar)
OPDI_BITWISE(bitwise_right_shift, OPDI_NOT_BOOL, Tensor_Scalar)
/* gcd, lcm: integers only */
#define OPDI_INTEGER(id)                                                                                    \
    OPDI_FORMULA_I(id, id, OPDI_NOT_BOOL)                                                                   \
    OPDI_KERNEL(id) { return opdi_binary(call, &opdi_formula_##id); }                                       \
    OPDI_CARD(id, #id "(Tensor self, Tensor other) -> Tensor", id, OPD_NOT_DIFFERENTIABLE, "", KEEP, #id "_", #id ".out", \
              "[2,3]i9, [3]i9")
OPDI_INTEGER(gcd)
OPDI_INTEGER(lcm)

//-- two-argument functions ------------------------------------------------------------------------------------------------

OPDI_FORMULA_F(atan2, atan2, OPDI_TO_FLOAT)
OPDI_FORMULA_F(hypot, hypot, 0)
OPDI_FORMULA_F(xlogy, xlogy, OPDI_TO_FLOAT)
OPDI_FORMULA_F(logaddexp, logaddexp, 0)
OPDI_FORMULA_F(logaddexp2, logaddexp2, 0)
OPDI_FORMULA_F(copysign, copysign, OPDI_TO_FLOAT)
OPDI_FORMULA_F(nextafter, nextafter, 0)
OPDI_FORMULA_A(heaviside, heaviside, 0)
OPDI_KERNEL(atan2) { return opdi_binary(call, &opdi_formula_atan2); }
OPDI_KERNEL(hypot) { return opdi_binary(call, &opdi_formula_hypot); }
OPDI_KERNEL(xlogy) { return opdi_binary(call, &opdi_formula_xlogy); }
OPDI_KERNEL(logaddexp) { return opdi_binary(call, &opdi_formula_logaddexp); }
OPDI_KERNEL(logaddexp2) { return opdi_binary(call, &opdi_formula_logaddexp2); }
OPDI_KERNEL(copysign) { return opdi_binary(call, &opdi_formula_copysign); }
/* The neighbour of a bfloat16 or float16 is one of its own kind: one step of the bits. */
static void opdi_bf16_nextafter(void *const *p, int64_t n, const opdi_params *s) {
    float *o = (float *)p[0]; const float *x = (const float *)p[1]; const float *y = (const float *)p[2];
    int64_t i;
    (void)s;
    for (i = 0; i < n; i++) {
        uint32_t u;
        float r = x[i];
        if (r != r || y[i] != y[i]) { o[i] = NAN; continue; }
        if (r == y[i]) { o[i] = y[i]; continue; }
        memcpy(&u, &r, sizeof u);
        u = r == 0 ? 0x00010000u | (y[i] < 0 ? 0x80000000u : 0u) : (r > 0) == (y[i] > r) ? u + 0x00010000u : u - 0x00010000u;
        memcpy(&o[i], &u, sizeof u);
    }
}
static const opdi_formula opdi_formula_nextafter_bf16 = {{opdi_bf16_nextafter, NULL, NULL}, "nextafter_cpu", 0};
OPDI_KERNEL(nextafter) {
    bool low = opd_arg_tensor(call, 0)->dtype == OPD_BFLOAT16 && opd_arg_tensor(call, 1)->dtype == OPD_BFLOAT16;
    return opdi_binary(call, low ? &opdi_formula_nextafter_bf16 : &opdi_formula_nextafter);
}
OPDI_KERNEL(heaviside) {
    if (opd_arg_tensor(call, 0)->dtype != opd_arg_tensor(call, 1)->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "heaviside is not yet implemented for tensors with different dtypes.");
    }
    return opdi_binary(call, &opdi_formula_heaviside);
}
OPDI_BW1(atan2) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    opd_tensor *k = opd_reciprocal(opd_add(opd_mul(x, x), opd_mul(y, y)));
    OPDI_GIVE(0, opd_mul(opd_mul(g, y), k));
    OPDI_GIVE(1, opd_mul(opd_mul(g, opd_neg(x)), k));
    return 0;
}
OPDI_BW1(hypot) {
    opd_tensor *g = opd_bw_grad(bw, 0), *r = opd_bw_result(bw, 0);
    OPDI_GIVE(0, opd_mul(g, opd_div(opd_bw_tensor(bw, 0), r)));
    OPDI_GIVE(1, opd_mul(g, opd_div(opd_bw_tensor(bw, 1), r)));
    return 0;
}
OPDI_BW1(xlogy) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    const opd_value zero = opd_value_int(0);
    OPDI_GIVE(0, opd_mul(g, opdi_unless(opd_log(y), opd_logical_and(opd_eq_Scalar(x, zero), opd_le_Scalar(y, zero)))));
    OPDI_GIVE(1, opd_div(opd_mul(g, x), y));
    return 0;
}
OPDI_BW1(logaddexp) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_div(g, opdi_adds(opd_exp(opd_sub(y, x)), 1)));
    OPDI_GIVE(1, opd_div(g, opdi_adds(opd_exp(opd_sub(x, y)), 1)));
    return 0;
}
OPDI_BW1(logaddexp2) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_div(g, opdi_adds(opd_exp2(opd_sub(y, x)), 1)));
    OPDI_GIVE(1, opd_div(g, opdi_adds(opd_exp2(opd_sub(x, y)), 1)));
    return 0;
}
OPDI_BW1(copysign) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0);
    OPDI_GIVE(0, opd_mul(g, opdi_unless(opd_div(opd_bw_result(bw, 0), x), opd_eq_Scalar(x, opd_value_int(0)))));
    if (opd_bw_needs(bw, 1)) { return opd_bw_return(bw, 1, opd_zeros_like(g)); }
    return 0;
}
OPDI_CARD(atan2, "atan2(Tensor self, Tensor other) -> Tensor", atan2, opdi_atan2_backward, "self, other", PROMOTE, "atan2_", "atan2.out",
          OPDI_CASES_BINARY)
OPDI_CARD(hypot, "hypot(Tensor self, Tensor other) -> Tensor", hypot, opdi_hypot_backward, "self(self), other(other), result", KEEP,
          "hypot_", "hypot.out", OPDI_CASES_BINARY)
OPDI_CARD(xlogy_Tensor, "xlogy.Tensor(Tensor self, Tensor other) -> Tensor", xlogy, opdi_xlogy_backward, "self, other", KEEP,
          "xlogy_.Tensor", "xlogy.OutTensor", "[2,3], [2,3]+; [2,3], [3]+")
OPDI_CARD(logaddexp, "logaddexp(Tensor self, Tensor other) -> Tensor", logaddexp, opdi_logaddexp_backward, "self, other", KEEP, NULL,
          "logaddexp.out", OPDI_CASES_BINARY)
OPDI_CARD(logaddexp2, "logaddexp2(Tensor self, Tensor other) -> Tensor", logaddexp2, opdi_logaddexp2_backward, "self, other", KEEP, NULL,
          "logaddexp2.out", OPDI_CASES_BINARY)
OPDI_CARD(copysign_Tensor, "copysign.Tensor(Tensor self, Tensor other) -> Tensor", copysign, opdi_copysign_backward, "self(self), result(self)",
          KEEP, "copysign_.Tensor", "copysign.out", OPDI_CASES_BINARY)
OPDI_CARD(nextafter, "nextafter(Tensor self, Tensor other) -> Tensor", nextafter, OPD_NOT_DIFFERENTIABLE, "", KEEP, "nextafter_",
          "nextafter.out", "[2,3], [2,3]")
OPDI_CARD(heaviside, "heaviside(Tensor self, Tensor values) -> Tensor", heaviside, OPD_NOT_DIFFERENTIABLE, "", KEEP, "heaviside_",
          "heaviside.out", "[2,3], [3]")

//-- where, masked_fill, lerp, addcmul, addcdiv ------------------------------------------------------------------------------

static const opdi_formula opdi_formula_where = {{opdi_f32_where, opdi_f64_where, opdi_i64_where}, "where_cpu", 0};
static int opdi_check_condition(const opd_tensor *c) {
    if (c->dtype == OPD_BOOL || c->dtype == OPD_UINT8) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                    opd_dtype_cname((opd_scalar_type)c->dtype));
}
OPDI_KERNEL(where_self) {
    opd_tensor *ops[4];
    opdi_number n, m;
    opd_scalar_type t;
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opdi_operand_of(call, 1, &n); ops[3] = opdi_operand_of(call, 2, &m);
    if (opdi_check_condition(ops[1]) != 0) { return -1; }
    t = opdi_result_type(ops + 2, 2);
    return opdi_pointwise_typed(call, &opdi_formula_where, ops, 3, t, t, &opdi_no_params);
}
OPDI_BW1(where_self) {
    opd_tensor *g = opd_bw_grad(bw, 0), *c = opd_bw_tensor(bw, 0);
    OPDI_GIVE(1, opdi_where(c, g));
    OPDI_GIVE(2, opdi_unless(g, c));
    return 0;
}
OPDI_CARD(where_self, "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", where_self, opdi_where_self_backward, "condition",
          KEEP, NULL, "where.self_out", "[2,3]b, [2,3], [3]; [3]b, [2,1], []")
OPDI_CARD(where_ScalarOther, "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor", where_self, opdi_where_self_backward,
          "condition", KEEP, NULL, NULL, "[2,3]b, [2,3], 1.5")
OPDI_CARD(where_ScalarSelf, "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor", where_self, opdi_where_self_backward,
          "condition", KEEP, NULL, NULL, "[2,3]b, 1.5, [2,3]")

/* self's dtype stays; value is cast to it. */
OPDI_KERNEL(masked_fill) {
    opd_tensor *ops[4], *self = opd_arg_tensor(call, 0);
    const opd_scalar_type t = (opd_scalar_type)self->dtype;
    opdi_number n;
    ops[1] = opd_arg_tensor(call, 1); ops[2] = opdi_operand_of(call, 2, &n); ops[3] = self;
    if (ops[1]->dtype != OPD_BOOL && ops[1]->dtype != OPD_UINT8) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_fill only supports boolean masks, but got mask with dtype %s",
                        opd_dtype_cname((opd_scalar_type)ops[1]->dtype));
    }
    if (ops[2]->ndim != 0) {
        return opd_fail(OPD_ERROR_SHAPE, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                        ops[2]->ndim);
    }
    if (!opd_can_cast((opd_scalar_type)ops[2]->dtype, t) && !(ops[2]->flags & OPDI_WRAPPED)) {
        return opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to type %s without overflow", opd_dtype_cname(t));
    }
    return opdi_pointwise_typed(call, &opdi_formula_where, ops, 3, t, t, &opdi_no_params);
}
OPDI_BW1(masked_fill) {
    opd_tensor *g = opd_bw_grad(bw, 0), *mask = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opdi_unless(g, mask));
    OPDI_GIVE(2, opdi_where(mask, g));
    return 0;
}
OPDI_CARD(masked_fill_Scalar, "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", masked_fill, opdi_masked_fill_backward,
          "mask", KEEP, "masked_fill_.Scalar", "masked_fill.Scalar_out", "[2,3], [2,3]b, 1.5; [2,3], [3]b, 0")
OPDI_CARD(masked_fill_Tensor, "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", masked_fill, opdi_masked_fill_backward,
          "mask", KEEP, "masked_fill_.Tensor", "masked_fill.Tensor_out", "[2,3], [2,3]b, []")

/* x + w (y - x) */
OPDI_FORMULA_F(lerp, lerp, 0)
OPDI_KERNEL(lerp) {
    opd_tensor *ops[4];
    opdi_number n;
    const opd_scalar_type t = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opd_arg_tensor(call, 1); ops[3] = opdi_operand_of(call, 2, &n);
    if (ops[2]->dtype != t) {
        return opd_fail(OPD_ERROR_DTYPE, "expected dtype %s for `end` but got dtype %s", opd_dtype_cname(t),
                        opd_dtype_cname((opd_scalar_type)ops[2]->dtype));
    }
    if (ops[3] != &n.t && ops[3]->dtype != t) {
        return opd_fail(OPD_ERROR_DTYPE, "expected dtype %s for `weight` but got dtype %s", opd_dtype_cname(t),
                        opd_dtype_cname((opd_scalar_type)ops[3]->dtype));
    }
    return opdi_pointwise_typed(call, &opdi_formula_lerp, ops, 3, t, t, &opdi_no_params);
}
OPDI_BW1(lerp_Scalar) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    const double w = opdi_number_f64(opd_bw_value(bw, 2));
    OPDI_GIVE(0, opdi_muls(g, 1 - w));
    OPDI_GIVE(1, opdi_muls(g, w));
    return 0;
}
OPDI_BW1(lerp_Tensor) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1), *w = opd_bw_tensor(bw, 2);
    OPDI_GIVE(0, opd_mul(g, opdi_rsubs(1, w)));
    OPDI_GIVE(1, opd_mul(g, w));
    OPDI_GIVE(2, opd_mul(g, opd_sub(y, x)));
    return 0;
}
OPDI_CARD(lerp_Scalar, "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", lerp, opdi_lerp_Scalar_backward, "", KEEP,
          "lerp_.Scalar", "lerp.Scalar_out", "[2,3], [2,3], 0.3; [2,3], [3], 0.8")
OPDI_CARD(lerp_Tensor, "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", lerp, opdi_lerp_Tensor_backward,
          "self(weight), end(weight), weight", KEEP, "lerp_.Tensor", "lerp.Tensor_out", "[2,3], [2,3], [3]")

OPDI_FORMULA_A(addcmul, addcmul, OPDI_NOT_BOOL)
OPDI_FORMULA_F(addcdiv, addcdiv, 0)
static int opdi_addc(opd_call *call, const opdi_formula *f) {
    opd_tensor *ops[4];
    opdi_params s = opdi_params_of(call, 3, 1);
    int i;
    for (i = 0; i < 3; i++) { ops[i + 1] = opd_arg_tensor(call, i); }
    return opdi_pointwise(call, f, ops, 3, &s);
}
OPDI_KERNEL(addcmul) { return opdi_addc(call, &opdi_formula_addcmul); }
OPDI_KERNEL(addcdiv) {
    if (opd_dtype_is_integral((opd_scalar_type)opd_arg_tensor(call, 1)->dtype, true) &&
        opd_dtype_is_integral((opd_scalar_type)opd_arg_tensor(call, 2)->dtype, true)) {
        return opd_fail(OPD_ERROR_DTYPE, "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
                        "perform a true division of tensor1 and tensor2.");
    }
    return opdi_addc(call, &opdi_formula_addcdiv);
}
OPDI_BW1(addcmul) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    const opd_value v = opd_bw_value(bw, 3);
    OPDI_GIVE(0, g);
    OPDI_GIVE(1, opd_mul(g, opdi_scale(opd_bw_tensor(bw, 2), v)));
    OPDI_GIVE(2, opd_mul(g, opdi_scale(opd_bw_tensor(bw, 1), v)));
    return 0;
}
OPDI_BW1(addcdiv) {
    opd_tensor *g = opd_bw_grad(bw, 0), *t1 = opd_bw_tensor(bw, 1), *t2 = opd_bw_tensor(bw, 2);
    const opd_value v = opd_bw_value(bw, 3);
    OPDI_GIVE(0, g);
    OPDI_GIVE(1, opd_mul(g, opdi_scale(opd_reciprocal(t2), v)));
    OPDI_GIVE(2, opd_mul(opd_neg(g), opd_div(opdi_scale(t1, v), opd_mul(t2, t2))));
    return 0;
}
OPDI_CARD(addcmul, "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcmul, opdi_addcmul_backward,
          "tensor1(tensor2), tensor2(tensor1)", PROMOTE, "addcmul_", "addcmul.out", "[2,3], [2,3], [3]; [2,3], [2,1], [3], value=2")
OPDI_CARD(addcdiv, "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", addcdiv, opdi_addcdiv_backward,
          "tensor1(tensor2), tensor2", PROMOTE, "addcdiv_", "addcdiv.out", "[2,3], [2,3], [3]+; [2,3], [2,1], [3]+, value=2")

//-- backward operators ----------------------------------------------------------------------------------------------------

/* A kernel over (grad, self) with numbers from argument `first` on. */
static int opdi_binary_params(opd_call *call, const opdi_formula *f, int first, int n) {
    opd_tensor *ops[3];
    opdi_params s = opdi_params_of(call, first, n);
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opd_arg_tensor(call, 1);
    return opdi_pointwise(call, f, ops, 2, &s);
}
#define OPDI_GRAD_INPUT(name, args) name ".grad_input(" args ", *, Tensor(a!) grad_input) -> Tensor(a!)"
/* The card <id> of an operator (args) -> Tensor whose out= form is named grad_input. */
#define OPDI_CARD_BACKWARD(id, args, save_, cases_)                                                         \
    OPDI_CARD(id, #id "(" args ") -> Tensor", id, opdi_##id##_backward, save_, KEEP, NULL, OPDI_GRAD_INPUT(#id, args), cases_)
#define OPDI_CASES_PAIR "[2,3], [2,3]"

OPDI_FORMULA_F(tanh_backward, tanh_backward, 0)
OPDI_KERNEL(tanh_backward) { return opdi_binary(call, &opdi_formula_tanh_backward); }
OPDI_BW1(tanh_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_tanh_backward(g, y));
    OPDI_GIVE(1, opd_mul(g, opd_mul(opdi_muls(y, -2), go)));
    return 0;
}
OPDI_CARD_BACKWARD(tanh_backward, "Tensor grad_output, Tensor output", "grad_output(output), output", OPDI_CASES_PAIR)
OPDI_FORMULA_F(sigmoid_backward, sigmoid_backward, 0)
OPDI_KERNEL(sigmoid_backward) { return opdi_binary(call, &opdi_formula_sigmoid_backward); }
OPDI_BW1(sigmoid_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_sigmoid_backward(g, y));
    OPDI_GIVE(1, opd_mul(opd_mul(g, go), opdi_adds(opdi_muls(y, -2), 1)));
    return 0;
}
OPDI_CARD_BACKWARD(sigmoid_backward, "Tensor grad_output, Tensor output", "grad_output(output), output", OPDI_CASES_PAIR)
static const opdi_formula opdi_formula_threshold_backward = {{opdi_f32_threshold, opdi_f64_threshold, opdi_i64_threshold},
                                                            "threshold_cpu", OPDI_NOT_BOOL};
OPDI_KERNEL(threshold_backward) { return opdi_binary_params(call, &opdi_formula_threshold_backward, 2, 1); }
OPDI_BW1(threshold_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_threshold_backward(g, opd_bw_tensor(bw, 1), opd_bw_value(bw, 2)));
    OPDI_GIVE(1, opd_zeros_like(g));
    return 0;
}
OPDI_CARD_BACKWARD(threshold_backward, "Tensor grad_output, Tensor self, Scalar threshold", "self", "[2,3], [2,3], 0.1")
OPDI_FORMULA_A(hardtanh_backward, hardtanh_backward, OPDI_NOT_BOOL)
OPDI_KERNEL(hardtanh_backward) { return opdi_binary_params(call, &opdi_formula_hardtanh_backward, 2, 2); }
OPDI_BW1(hardtanh_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_hardtanh_backward(g, opd_bw_tensor(bw, 1), opd_bw_value(bw, 2), opd_bw_value(bw, 3)));
    OPDI_GIVE(1, opd_zeros_like(g));
    return 0;
}
OPDI_CARD_BACKWARD(hardtanh_backward, "Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val", "self", "[2,3], [2,3], -0.5, 0.5")
OPDI_FORMULA_F(leaky_relu_backward, leaky_relu_backward, 0)
OPDI_KERNEL(leaky_relu_backward) {
    if (opd_arg_bool(call, 3) && opdi_number_f64(opd_arg_value(call, 2)) < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "In-place leakyReLu backward calculation is triggered with a negative slope which is not "
                        "supported. This is caused by calling in-place forward function with a negative slope, please call "
                        "out-of-place version instead.");
    }
    return opdi_binary_params(call, &opdi_formula_leaky_relu_backward, 2, 1);
}
OPDI_BW1(leaky_relu_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_leaky_relu_backward(g, opd_bw_tensor(bw, 1), opd_bw_value(bw, 2), false));
    OPDI_GIVE(1, opd_zeros_like(g));
    return 0;
}
OPDI_CARD_BACKWARD(leaky_relu_backward, "Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result", "self",
                   "[2,3], [2,3], 0.2, False")
OPDI_FORMULA_F(hardsigmoid_backward, hardsigmoid_backward, 0)
OPDI_KERNEL(hardsigmoid_backward) { return opdi_binary(call, &opdi_formula_hardsigmoid_backward); }
OPDI_BW1(hardsigmoid_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_hardsigmoid_backward(g, opd_bw_tensor(bw, 1)));
    OPDI_GIVE(1, opd_zeros_like(g));
    return 0;
}
OPDI_CARD_BACKWARD(hardsigmoid_backward, "Tensor grad_output, Tensor self", "self", OPDI_CASES_PAIR)
OPDI_FORMULA_F(hardswish_backward, hardswish_backward, 0)
OPDI_KERNEL(hardswish_backward) { return opdi_binary(call, &opdi_formula_hardswish_backward); }
OPDI_BW1(hardswish_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_hardswish_backward(g, x));
    OPDI_GIVE(1, opdi_where(opd_logical_and(opd_gt_Scalar(x, opd_value_int(-3)), opd_lt_Scalar(x, opd_value_int(3))),
                            opdi_muls(opd_mul(g, go), 1.0 / 3.0)));
    return 0;
}
OPDI_CARD(hardswish_backward, "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor", hardswish_backward,
          opdi_hardswish_backward_backward, "grad_output(self), self", KEEP, NULL, "hardswish_backward.out", OPDI_CASES_PAIR)
OPDI_FORMULA_F(softplus_backward, softplus_backward, 0)
OPDI_KERNEL(softplus_backward) { return opdi_binary_params(call, &opdi_formula_softplus_backward, 2, 2); }
/* d/dx sigmoid(beta x) = beta s (1 - s) below the threshold */
OPDI_BW1(softplus_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1), *bx, *s, *d;
    const opd_value beta = opd_bw_value(bw, 2), limit = opd_bw_value(bw, 3);
    OPDI_GIVE(0, opd_softplus_backward(g, x, beta, limit));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    bx = opdi_scale(x, beta);
    s = opd_sigmoid(bx);
    d = opdi_scale(opd_mul(opd_mul(g, go), opd_sigmoid_backward(s, s)), beta);
    d = opd_div(d, s);
    return opd_bw_return(bw, 1, opdi_unless(d, opd_gt_Scalar(bx, limit)));
}
OPDI_CARD_BACKWARD(softplus_backward, "Tensor grad_output, Tensor self, Scalar beta, Scalar threshold", "grad_output(self), self",
                   "[2,3], [2,3], 1.5, 20")
static const opdi_formula opdi_formula_silu_backward = {{opdi_f32_vsilu_backward, opdi_f64_silu_backward, NULL}, "silu_backward_cpu", 0};
OPDI_KERNEL(silu_backward) { return opdi_binary(call, &opdi_formula_silu_backward); }
/* f'' = s (1 - s) (2 + x (1 - 2 s)) */
OPDI_BW1(silu_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1), *s, *d;
    OPDI_GIVE(0, opd_silu_backward(g, x));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    s = opd_sigmoid(x);
    d = opdi_adds(opd_mul(x, opdi_adds(opdi_muls(s, -2), 1)), 2);
    return opd_bw_return(bw, 1, opd_mul(opd_mul(opd_mul(g, go), opd_mul(s, opdi_rsubs(1, s))), d));
}
OPDI_CARD_BACKWARD(silu_backward, "Tensor grad_output, Tensor self", "grad_output(self), self", OPDI_CASES_PAIR)
OPDI_FORMULA_F(mish_backward, mish_backward, 0)
OPDI_KERNEL(mish_backward) { return opdi_binary(call, &opdi_formula_mish_backward); }
/* f = x t, t = tanh(softplus x), s = sigmoid x, w = 1 - t^2: f'' = w s (2 + x (1 - s - 2 t s)) */
OPDI_BW1(mish_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1), *s, *t, *d;
    OPDI_GIVE(0, opd_mish_backward(g, x));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    s = opd_sigmoid(x);
    t = opd_tanh(opd_softplus(x));
    d = opd_mul(x, opd_sub(opdi_rsubs(1, s), opdi_muls(opd_mul(t, s), 2)));
    d = opd_mul(opd_mul(opdi_rsubs(1, opd_square(t)), s), opdi_adds(d, 2));
    return opd_bw_return(bw, 1, opd_mul(opd_mul(g, go), d));
}
OPDI_CARD(mish_backward, "mish_backward(Tensor grad_output, Tensor self) -> Tensor", mish_backward, opdi_mish_backward_backward,
          "grad_output(self), self", KEEP, NULL, NULL, OPDI_CASES_PAIR)
OPDI_KERNEL(gelu_backward) {
    int k = opdi_gelu_approximate(opd_arg_str(call, 2));
    return k < 0 ? -1 : opdi_binary(call, k ? &opdi_formula_gelu_tanh_backward : &opdi_formula_gelu_backward);
}
/* none: f'' = phi(x) (2 - x^2).  tanh: with u = k (x + c x^3), t = tanh u:
   f'' = (1 - t^2) (u' + x u'' / 2 - x t u'^2) */
static opd_tensor *opdi_gelu_second(opd_tensor *x, bool tanh_form) {
    opd_tensor *x2 = opd_square(x), *t, *du, *ddu, *d;
    if (!tanh_form) { return opd_mul(opdi_muls(opd_exp(opdi_muls(x2, -0.5)), 0.39894228040143267794), opdi_rsubs(2, x2)); }
    t = opd_tanh(opd_mul(opdi_muls(x, 0.79788456080286535588), opdi_adds(opdi_muls(x2, 0.044715), 1)));
    du = opdi_muls(opdi_adds(opdi_muls(x2, 0.134145), 1), 0.79788456080286535588);
    ddu = opdi_muls(x2, 0.5 * 0.26829 * 0.79788456080286535588);
    d = opd_sub(opd_add(du, ddu), opd_mul(opd_mul(x, t), opd_square(du)));
    return opd_mul(opdi_rsubs(1, opd_square(t)), d);
}
OPDI_BW1(gelu_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1);
    const char *approximate = opd_bw_value(bw, 2).u.s;
    OPDI_GIVE(0, opd_gelu_backward_full(g, x, approximate));
    OPDI_GIVE(1, opd_mul(opd_mul(g, go), opdi_gelu_second(x, strcmp(approximate, "tanh") == 0)));
    return 0;
}
OPDI_CARD(gelu_backward, "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor", gelu_backward,
          opdi_gelu_backward_backward, "grad_output(self), self", KEEP, NULL,
          "gelu_backward.grad_input(Tensor grad_output, Tensor self, *, str approximate='none', Tensor(a!) grad_input) -> Tensor(a!)",
          "[2,3], [2,3]; [2,3], [2,3], approximate='tanh'")
OPDI_FORMULA_F(elu_backward, elu_backward, 0)
OPDI_FORMULA_F(elu_backward_result, elu_backward_result, 0)
OPDI_KERNEL(elu_backward) {
    opd_tensor *ops[3];
    opdi_params s = opdi_elu_params(opd_arg_value(call, 1), opd_arg_value(call, 2), opd_arg_value(call, 3));
    bool result = opd_arg_bool(call, 4);
    if (result && opdi_number_f64(opd_arg_value(call, 1)) < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "In-place elu backward calculation is triggered with a negative slope which is not supported. "
                        "This is caused by calling in-place forward function with a negative slope, please call out-of-place "
                        "version instead.");
    }
    ops[1] = opd_arg_tensor(call, 0); ops[2] = opd_arg_tensor(call, 5);
    return opdi_pointwise(call, result ? &opdi_formula_elu_backward_result : &opdi_formula_elu_backward, ops, 2, &s);
}
/* From self: f'' = alpha scale input_scale^2 e^(x input_scale) for x <= 0; from the result y: the formula is linear in y,
   so the derivative is input_scale. */
OPDI_BW1(elu_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *go = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 5), *d;
    const opd_value alpha = opd_bw_value(bw, 1), scale = opd_bw_value(bw, 2), input_scale = opd_bw_value(bw, 3);
    const bool result = opd_bw_value(bw, 4).u.i != 0;
    OPDI_GIVE(0, opd_elu_backward(g, alpha, scale, input_scale, result, x));
    if (!opd_bw_needs(bw, 5)) { return 0; }
    d = opdi_scale(opd_mul(g, go), input_scale);
    if (!result) {
        d = opdi_scale(opdi_scale(opdi_scale(d, input_scale), alpha), scale);
        d = opd_mul(d, opd_exp(opdi_scale(x, input_scale)));
    }
    return opd_bw_return(bw, 5, opdi_unless(d, opd_gt_Scalar(x, opd_value_int(0))));
}
OPDI_CARD_BACKWARD(elu_backward,
                   "Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result",
                   "grad_output(self_or_result), self_or_result", "[2,3], 1, 1, 1, False, [2,3]; [2,3], 2, 0.5, 1.5, False, [2,3]")

//-- composites ------------------------------------------------------------------------------------------------------------

#define OPDI_COMPOSITE(id, schema_, inplace_, out_, cases_)                                                 \
    OPDI_OP(id) {                                                                                           \
        op->schema = schema_; op->composite = opdi_##id##_kernel; op->vmap = OPD_BATCH_DECOMPOSE;           \
        op->autocast = OPD_AUTOCAST_KEEP; op->inplace = inplace_; op->out = out_; op->cases = cases_;       \
    }
OPDI_KERNEL(true_divide_Tensor) { return opd_return_tensor(call, opd_div(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1))); }
OPDI_COMPOSITE(true_divide_Tensor, "true_divide.Tensor(Tensor self, Tensor other) -> Tensor", "true_divide_.Tensor", "true_divide.out", OPDI_CASES_DIV)
/* self * 2^other */
OPDI_KERNEL(ldexp_Tensor) {
    opd_tensor *p = opd_pow_Scalar(opd_value_float(2), opd_arg_tensor(call, 1));
    return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), p));
}
OPDI_COMPOSITE(ldexp_Tensor, "ldexp.Tensor(Tensor self, Tensor other) -> Tensor", "ldexp_", "ldexp.out", "[2,3], [2,3]")

//======================================================================================================================
//  >>op:reduce  reductions, softmax, scans, sorting
//======================================================================================================================

//-- dims of a reduction ---------------------------------------------------------------------------------------------------

/* d brought into [0, ndim); a 0-dim tensor has one dim here.  -1 with an error. */
static int opdi_reduce_dim(int64_t d, int ndim) {
    const int n = OPDI_MAX(ndim, 1);
    if (d < -n || d >= n) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n, n - 1,
                        (long long)d);
    }
    return (int)(d < 0 ? d + n : d);
}
#define OPDI_ALL_DIMS (~(uint64_t)0)
/* Bit d for each dim in the list, all of them for an empty one (at::dim_list_to_bitset). */
static int opdi_reduce_mask(opd_ints dims, int ndim, uint64_t *mask) {
    int64_t i;
    *mask = dims.n ? 0 : OPDI_ALL_DIMS;
    for (i = 0; i < dims.n; i++) {
        const int d = opdi_reduce_dim(dims.data[i], ndim);
        if (d < 0) { return -1; }
        if (*mask >> d & 1) { return opd_fail(OPD_ERROR_ARGUMENT, "dim %d appears multiple times in the list of dims", d); }
        *mask |= (uint64_t)1 << d;
    }
    return 0;
}
/* The sizes a reduction leaves, into sizes[]; returns how many. */
static int opdi_reduce_sizes(const opd_tensor *t, uint64_t mask, bool keep, int64_t *sizes) {
    int d, n = 0;
    for (d = 0; d < t->ndim; d++) {
        if (!(mask >> d & 1)) { sizes[n++] = opdi_sizes(t)[d]; }
        else if (keep) { sizes[n++] = 1; }
    }
    return n;
}

//-- the reduction driver --------------------------------------------------------------------------------------------------
//
// The input is seen as `outer` rows of n elements; a fold takes a row in pieces, contiguous and in a compute type, into
// a state.  Long rows of few outputs are cut into chunks, whose states are joined in order: how depends on the sizes
// only, so the number of threads does not change a result.

typedef struct opdi_folded {
    double f, g;                                  /* float and double are accumulated in these, */
    int64_t i, n;                                 /* integers here; a count or an index */
} opdi_folded;
typedef struct opdi_reduce opdi_reduce;
/* Takes in n elements of compute type, the first of which is element `at` of the row. */
typedef void (*opdi_fold_step)(opdi_folded *s, const void *x, int64_t n, int64_t at, const opdi_reduce *r);
typedef struct opdi_fold {
    opdi_fold_step step[3];                       /* by compute type, NULL where there is none */
    opdi_loop column[3];                          /* x (+) y over arrays, where the fold is one of those; or NULL */
    void (*join)(opdi_folded *s, const opdi_folded *with, const opdi_reduce *r);
    void (*finish)(opdi_folded *s, const opdi_reduce *r);      /* may be NULL */
    opdi_folded init;
    char out[2];                                  /* what the results are: f, g, i, n, or v = f or i by compute type */
    const char *what;                             /* the kernel's name in "not implemented for" */
} opdi_fold;

struct opdi_reduce {
    opdi_iter it;                                 /* op[0] the input, then the outputs; dims [0, nred) are reduced */
    int nred, nouts;
    int64_t n, outer;
    int64_t chunk, chunks;                        /* elements a chunk, chunks a row */
    int64_t tile, tiles;                          /* columns: outputs side by side worked on together */
    opdi_folded *states;                           /* [outer][chunks] when there is more than one chunk */
    const opdi_fold *fold;
    double p;                                     /* a number of the operator's */
};

/* Adds a dim of all operands, joined to the last one of its group where the strides allow. */
static void opdi_reduce_add(opdi_reduce *r, int first, int64_t size, const int64_t *strides) {
    opdi_iter *it = &r->it;
    int k, last = it->ndim - 1;
    bool join = last >= first;
    if (size == 1) { return; }
    for (k = 0; k < it->nops && join; k++) { join = it->op[k].stride[last] * it->sizes[last] == strides[k]; }
    if (join) { it->sizes[last] *= size; return; }
    it->sizes[it->ndim] = size;
    for (k = 0; k < it->nops; k++) { it->op[k].stride[it->ndim] = strides[k]; }
    it->ndim++;
}
/* Dims in the order in which they are walked: innermost first; reduced ones by stride unless their order counts. */
static int opdi_reduce_order(const opd_tensor *t, uint64_t mask, bool reduced, bool ordered, int *perm) {
    int d, i, n = 0;
    for (d = t->ndim - 1; d >= 0; d--) {
        if ((mask >> d & 1) != reduced) { continue; }
        for (i = n++; i > 0 && reduced && !ordered && opdi_strides(t)[perm[i - 1]] > opdi_strides(t)[d]; i--) { perm[i] = perm[i - 1]; }
        perm[i] = d;
    }
    return n;
}
/* Describes the reduction of t's dims in mask; outs have the sizes that leaves (without or, when keep, with ones). */
static void opdi_reduce_init(opdi_reduce *r, opd_tensor *t, uint64_t mask, bool keep, opd_tensor *const *outs, int nouts,
                             int compute, bool ordered) {
    opdi_iter *it = &r->it;
    opd_tensor *ops[3];
    int64_t strides[3];
    int perm[OPD_MAX_DIMS], at[OPD_MAX_DIMS], group, i, k, d, n = 0;
    ops[0] = t;
    for (k = 0; k < nouts; k++) { ops[k + 1] = outs[k]; }
    it->nops = 1 + nouts; it->nout = 0; it->numel = t->numel; it->ndim = 0;
    it->compute = (int8_t)compute; it->common = opdi_compute_dtype[compute]; it->buffered = false;
    for (d = 0; d < t->ndim; d++) { at[d] = (mask >> d & 1) && !keep ? -1 : n++; }
    for (group = 0; group < 2; group++) {
        const int first = it->ndim, m = opdi_reduce_order(t, mask, group == 0, ordered, perm);
        for (i = 0; i < m; i++) {
            d = perm[i];
            strides[0] = opdi_strides(t)[d] * (int64_t)opd_dtype_size((opd_scalar_type)t->dtype);
            for (k = 1; k <= nouts; k++) {
                strides[k] = group == 0 ? 0 : opdi_strides(ops[k])[at[d]] * (int64_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
            }
            opdi_reduce_add(r, first, opdi_sizes(t)[d], strides);
        }
        if (group == 0 && it->ndim == 0) {
            it->sizes[0] = 1; it->ndim = 1;
            for (k = 0; k <= nouts; k++) { it->op[k].stride[0] = 0; }
        }
        if (group == 0) { r->nred = it->ndim; }
    }
    r->n = r->outer = 1;
    for (i = 0; i < it->ndim; i++) { *(i < r->nred ? &r->n : &r->outer) *= it->sizes[i]; }
    for (k = 0; k < it->nops; k++) {
        opdi_operand *o = &it->op[k];
        o->data = ops[k]->data;
        o->size = (int32_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
        o->convert = ops[k]->dtype != opdi_compute_dtype[compute];
        o->round = false;
        o->load = opdi_load_table[compute][ops[k]->dtype];
        o->store = opdi_store_table[compute][ops[k]->dtype];
        o->walk = (int8_t)(k ? OPDI_WALK_STRIDED : opdi_iter_walk(it, o));
    }
    r->nouts = nouts; r->chunks = 1; r->chunk = r->n; r->states = NULL; r->tiles = 0;
}

/* Elements [begin, end) of a row into s. */
static void opdi_reduce_part(const opdi_reduce *r, int64_t row, int64_t begin, int64_t end, opdi_folded *s) {
    const opdi_iter *it = &r->it;
    const opdi_operand *o = &it->op[0];
    const bool direct = !o->convert && (o->stride[0] == o->size || o->walk == OPDI_WALK_LINEAR);
    uint64_t block[OPDI_BLOCK];
    int64_t idx[OPD_MAX_DIMS], at, m, rest = row * r->n + begin;
    int d;
    if (begin >= end) { return; }
    for (d = 0; d < it->ndim; d++) { idx[d] = rest % it->sizes[d]; rest /= it->sizes[d]; }
    for (at = begin; at < end; at += m) {
        const void *x;
        if (direct) {
            const char *p = o->data;
            m = OPDI_MIN(end - at, it->sizes[0] - idx[0]);
            for (d = 0; d < it->ndim; d++) { p += idx[d] * o->stride[d]; }
            x = p;
        } else {
            m = OPDI_MIN(end - at, (int64_t)OPDI_BLOCK);
            x = opdi_iter_load(it, o, idx, row * r->n + at, m, (char *)block);
        }
        r->fold->step[it->compute](s, x, m, at, r);
        opdi_iter_step(it, idx, m);
    }
}
/* Writes the results of the row at idx. */
static void opdi_reduce_store(const opdi_reduce *r, const int64_t *idx, opdi_folded *s) {
    int k, d;
    if (r->fold->finish) { r->fold->finish(s, r); }
    for (k = 0; k < r->nouts; k++) {
        const opdi_operand *o = &r->it.op[k + 1];
        const int dtype = r->it.common;
        char *p = o->data, kind = r->fold->out[k];
        for (d = r->nred; d < r->it.ndim; d++) { p += idx[d] * o->stride[d]; }
        if (kind == 'v') { kind = dtype == OPD_INT64 ? 'i' : 'f'; }
        if (kind == 'n') { memcpy(p, &s->n, sizeof s->n); }
        else if (kind == 'i' && o->size == 8) { memcpy(p, &s->i, sizeof s->i); }
        else if (o->load == opdi_cvt_4 && kind == 'f') { float v = (float)s->f; memcpy(p, &v, sizeof v); }
        else if (kind == 'i') { r->it.op[k + 1].store(p, &s->i, 1); }
        else { r->it.op[k + 1].store(p, kind == 'f' ? &s->f : &s->g, 1); }
    }
}
/* idx of an output row, reduced dims at 0; and the next one. */
static void opdi_reduce_index(const opdi_reduce *r, int64_t row, int64_t *idx) {
    int d;
    for (d = 0; d < r->nred; d++) { idx[d] = 0; }
    for (; d < r->it.ndim; d++) { idx[d] = row % r->it.sizes[d]; row /= r->it.sizes[d]; }
}
static void opdi_reduce_next(const opdi_reduce *r, int64_t *idx) {
    int d;
    for (d = r->nred; d < r->it.ndim; d++) {
        if (++idx[d] < r->it.sizes[d]) { return; }
        idx[d] = 0;
    }
}
/* Work is a chunk of a row.  Short rows are loaded several at a time. */
static void opdi_reduce_rows(void *ctx, int64_t begin, int64_t end) {
    const opdi_reduce *r = (const opdi_reduce *)ctx;
    const opdi_operand *o = &r->it.op[0];
    const size_t es = opd_dtype_size((opd_scalar_type)r->it.common);
    uint64_t block[OPDI_BLOCK];
    int64_t idx[OPD_MAX_DIMS], row, k, m;
    if (r->chunks > 1) {
        for (k = begin; k < end; k++) {
            const int64_t from = k % r->chunks * r->chunk;
            r->states[k] = r->fold->init;
            opdi_reduce_part(r, k / r->chunks, from, OPDI_MIN(from + r->chunk, r->n), &r->states[k]);
        }
        return;
    }
    opdi_reduce_index(r, begin, idx);
    for (row = begin; row < end; row += m) {
        const char *x = NULL;
        m = 1;
        if (!o->convert && o->walk == OPDI_WALK_LINEAR) { x = o->data + row * r->n * o->size; }
        else if (r->n > 0 && r->n <= OPDI_BLOCK / 2) {
            m = OPDI_MIN(end - row, OPDI_BLOCK / r->n);
            x = (const char *)opdi_iter_load(&r->it, o, idx, row * r->n, m * r->n, (char *)block);
        }
        for (k = 0; k < m; k++) {
            opdi_folded s = r->fold->init;
            if (x) { r->fold->step[r->it.compute](&s, x + (size_t)(k * r->n) * es, r->n, 0, r); }
            else { opdi_reduce_part(r, row, 0, r->n, &s); }
            opdi_reduce_store(r, idx, &s);
            opdi_reduce_next(r, idx);
        }
    }
}
#define OPDI_COLUMNS 256                          /* outputs side by side */
#define OPDI_COLUMN_ROWS 64                       /* rows added up before they go into the states */
/* Work is a chunk of rows of a tile of outputs that lie side by side in the input. */
static void opdi_reduce_columns(void *ctx, int64_t begin, int64_t end) {
    const opdi_reduce *r = (const opdi_reduce *)ctx;
    const opdi_iter *it = &r->it;
    const opdi_operand *o = &it->op[0];
    const int64_t width = it->sizes[r->nred];
    const opdi_loop loop = r->fold->column[it->compute];
    const size_t es = opd_dtype_size((opd_scalar_type)it->common);
    uint64_t acc[OPDI_COLUMNS], row[OPDI_COLUMNS];
    opdi_folded s[OPDI_COLUMNS];                   /* 8 KiB */
    int64_t item, j, k;
    for (item = begin; item < end; item++) {
        const int64_t chunk = item % r->chunks, col = item / r->chunks % r->tiles * r->tile, from = chunk * r->chunk;
        const int64_t first = item / r->chunks / r->tiles * width + col, to = OPDI_MIN(from + r->chunk, r->n);
        const int64_t w = OPDI_MIN(width - col, r->tile);
        int64_t idx[OPD_MAX_DIMS], red[OPD_MAX_DIMS], rest = from;
        const char *base = o->data;
        int d;
        opdi_reduce_index(r, first, idx);
        for (d = r->nred; d < it->ndim; d++) { base += idx[d] * o->stride[d]; }
        for (d = 0; d < r->nred; d++) { red[d] = rest % it->sizes[d]; rest /= it->sizes[d]; base += red[d] * o->stride[d]; }
        for (j = 0; j < w; j++) { s[j] = r->fold->init; }
        for (k = from; k < to; k++) {
            const int64_t inner = (k - from) % OPDI_COLUMN_ROWS;
            void *p[3];
            p[0] = p[1] = acc; p[2] = (void *)(uintptr_t)base;
            if (inner == 0) { o->load(acc, base, w); }
            else {
                if (o->convert) { o->load(row, base, w); p[2] = row; }
                loop(p, w, &opdi_no_params);
            }
            if (inner == OPDI_COLUMN_ROWS - 1 || k + 1 == to) {
                for (j = 0; j < w; j++) { r->fold->step[it->compute](&s[j], (char *)acc + (size_t)j * es, 1, 0, r); }
            }
            for (d = 0; d < r->nred; d++) {
                base += o->stride[d];
                if (++red[d] < it->sizes[d]) { break; }
                base -= red[d] * o->stride[d];
                red[d] = 0;
            }
        }
        for (j = 0; j < w; j++) {
            if (r->chunks > 1) { r->states[(first + j) * r->chunks + chunk] = s[j]; continue; }
            opdi_reduce_store(r, idx, &s[j]);
            opdi_reduce_next(r, idx);
        }
    }
}
static void opdi_reduce_join(void *ctx, int64_t begin, int64_t end) {
    const opdi_reduce *r = (const opdi_reduce *)ctx;
    int64_t idx[OPD_MAX_DIMS], row, k;
    opdi_reduce_index(r, begin, idx);
    for (row = begin; row < end; row++) {
        opdi_folded *s = r->states + row * r->chunks;
        for (k = 1; k < r->chunks; k++) { r->fold->join(s, s + k, r); }
        opdi_reduce_store(r, idx, s);
        opdi_reduce_next(r, idx);
    }
}
#define OPDI_REDUCE_CHUNK 131072
/* Runs a reduction that opdi_reduce_init described. */
static int opdi_reduce_run(opdi_reduce *r) {
    const opdi_iter *it = &r->it;
    int64_t items = r->outer, work = r->n;
    size_t bytes = 0;
    if (r->outer == 0) { return 0; }
    if (it->ndim > r->nred && r->n > 1 && r->fold->column[it->compute] && it->op[0].stride[0] != it->op[0].size &&
        it->op[0].stride[r->nred] == it->op[0].size && it->sizes[r->nred] >= 8) {
        r->tile = OPDI_MIN(it->sizes[r->nred], (int64_t)OPDI_COLUMNS);
        r->tiles = (it->sizes[r->nred] + r->tile - 1) / r->tile;
        items = r->outer / it->sizes[r->nred] * r->tiles;
        work = r->n * r->tile;
    }
    if (items < 16 && work >= 2 * OPDI_REDUCE_CHUNK) {
        r->chunk = r->tiles ? OPDI_REDUCE_CHUNK / r->tile : OPDI_REDUCE_CHUNK;
        r->chunks = (r->n + r->chunk - 1) / r->chunk;
        bytes = (size_t)(r->outer * r->chunks) * sizeof *r->states;
        r->states = (opdi_folded *)opdi_alloc(bytes);
        if (!r->states) { return -1; }
        items *= r->chunks; work = OPDI_REDUCE_CHUNK;
    }
    if (items * work <= OPDI_GRAIN) { (r->tiles ? opdi_reduce_columns : opdi_reduce_rows)(r, 0, items); }
    else {
        opdi_parallel_for(items, OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX(work, (int64_t)1)),
                          r->tiles ? opdi_reduce_columns : opdi_reduce_rows, r);
    }
    if (r->chunks > 1) { opdi_reduce_join(r, 0, r->outer); }
    if (r->states) { opdi_free(r->states, bytes); }
    return 0;
}
/* The whole of a kernel: results of these dtypes, the fold over the dims in mask in compute type `compute`. */
static int opdi_reduce_kernel(opd_call *call, const opdi_fold *fold, opd_tensor *t, uint64_t mask, bool keep, opd_scalar_type compute,
                              opd_scalar_type out0, opd_scalar_type out1, double p) {
    int64_t sizes[OPD_MAX_DIMS];
    const int ndim = opdi_reduce_sizes(t, mask, keep, sizes), type = opdi_compute_type(compute), nouts = fold->out[1] ? 2 : 1;
    opd_tensor *outs[2];
    opdi_reduce r;
    if (opd_dtype_is_complex((opd_scalar_type)t->dtype) || opd_dtype_is_complex(compute) || !fold->step[type]) {
        return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", fold->what, opd_dtype_cname(opd_dtype_is_complex(compute) ?
                        compute : (opd_scalar_type)t->dtype));
    }
    outs[0] = opd_result(call, 0, sizes, ndim, out0);
    if (!outs[0]) { return -1; }
    outs[1] = nouts == 2 ? opd_result(call, 1, sizes, ndim, out1) : NULL;
    if (nouts == 2 && !outs[1]) { return -1; }
    if (!outs[0]->data || !t->data) { return 0; }
    opdi_reduce_init(&r, t, mask, keep, outs, nouts, type, fold->out[0] == 'n' || fold->out[1] == 'n');
    r.fold = fold; r.p = p;
    for (int k = 0; k < nouts; k++) {             /* results are stored from double or int64 */
        const char kind = fold->out[k];
        r.it.op[k + 1].store = opdi_store_table[kind == 'i' || kind == 'n' || (kind == 'v' && type == OPDI_I64) ? OPDI_I64 : OPDI_F64][outs[k]->dtype];
    }
    return opdi_reduce_run(&r);
}

//-- sums --------------------------------------------------------------------------------------------------------------------

/* Sums of pieces of 4096 in 64 accumulators, then in double. */
#if defined(__GNUC__) && !defined(__TINYC__)
OPDI_ALWAYS double opdi_sum_f32_body(const float *x, int64_t n) {
    double total = 0;
    int64_t i = 0, m;
    int j;
    while (n - i >= 64) {
        opdi_v8f a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
        for (m = OPDI_MIN(n, i + 4096) - 63; i < m; i += 64) {
            const opdi_v8f *v = (const opdi_v8f *)(const void *)(x + i);
            a0 += v[0]; a1 += v[1]; a2 += v[2]; a3 += v[3]; a4 += v[4]; a5 += v[5]; a6 += v[6]; a7 += v[7];
        }
        a0 = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7));
        for (j = 0; j < 8; j++) { total += (double)a0[j]; }
    }
    for (; i < n; i++) { total += (double)x[i]; }
    return total;
}
#else
OPDI_ALWAYS double opdi_sum_f32_body(const float *x, int64_t n) {
    double total = 0;
    int64_t i;
    for (i = 0; i < n; i++) { total += (double)x[i]; }
    return total;
}
#endif
#if defined(OPDI_X86)
OPDI_AVX2 static double opdi_sum_f32_avx2(const float *x, int64_t n) { return opdi_sum_f32_body(x, n); }
#endif
static double opdi_sum_f32_plain(const float *x, int64_t n) { return opdi_sum_f32_body(x, n); }
static void opdi_fold_sum_f32(opdi_folded *s, const void *x, int64_t n, int64_t at, const opdi_reduce *r) {
    (void)at; (void)r;
    if (n == 1) { s->f += (double)*(const float *)x; return; }
#if defined(OPDI_X86)
    if (n >= 64 && opdi_cpu_level() > 0) { s->f += opdi_sum_f32_avx2((const float *)x, n); return; }
#endif
    s->f += opdi_sum_f32_plain((const float *)x, n);
}
/* 16 sums side by side over x[i] -> expr, in type A. */
#define OPDI_FOLD_SUM(name, T, A, field, expr)                                                              \
    static void name(opdi_folded *s, const void *px, int64_t n, int64_t at, const opdi_reduce *r) {          \
        const T *xp = (const T *)px; A a[16] = {0}; int64_t i = 0; int j;                                   \
        (void)at; (void)r;                                                                                  \
        for (; i + 16 <= n; i += 16) { for (j = 0; j < 16; j++) { const T x = xp[i + j]; a[j] += (A)(expr); } } \
        for (; i < n; i++) { const T x = xp[i]; a[i & 15] += (A)(expr); }                                   \
        for (j = 8; j > 0; j >>= 1) { for (i = 0; i < j; i++) { a[i] += a[i + j]; } }                       \
        s->field += a[0];                                                                                   \
    }
OPDI_FOLD_SUM(opdi_fold_sum_f64, double, double, f, x)
static void opdi_fold_sum_i64(opdi_folded *s, const void *px, int64_t n, int64_t at, const opdi_reduce *r) {
    const int64_t *x = (const int64_t *)px;
    uint64_t sum = (uint64_t)s->i;
    int64_t i;
    (void)at; (void)r;
    for (i = 0; i < n; i++) { sum += (uint64_t)x[i]; }
    s->i = (int64_t)sum;
}
static void opdi_join_sum(opdi_folded *s, const opdi_folded *with, const opdi_reduce *r) {
    (void)r;
    s->f += with->f; s->g += with->g; s->n += with->n;
    s->i = opdi_wrap_add(s->i, with->i);
}
static const opdi_fold opdi_the_sum = {
    {opdi_fold_sum_f32, opdi_fold_sum_f64, opdi_fold_sum_i64}, {opdi_f32_add, opdi_f64_add, opdi_i64_add}, opdi_join_sum, NULL,
    {0, 0, 0, 0}, {'v', 0}, "sum_cpu"};

/* The dtype a sum or product is computed in and has: the one asked for, the out= tensor's, int64 for integers. */
static opd_scalar_type opdi_reduce_dtype(const opd_call *call, int i, const opd_tensor *t) {
    if (!opd_arg_is_none(call, i)) { return opd_arg_dtype(call, i, OPD_FLOAT32); }
    if (call->targets) { return (opd_scalar_type)call->targets[0]->dtype; }
    return opd_dtype_is_integral((opd_scalar_type)t->dtype, true) ? OPD_INT64 : (opd_scalar_type)t->dtype;
}
/* A compute type that holds both the input and what is asked for. */
static opd_scalar_type opdi_reduce_compute(const opd_tensor *t, opd_scalar_type dtype) {
    if (dtype == OPD_BOOL || opd_dtype_is_integral(dtype, true)) { return OPD_INT64; }
    return dtype == OPD_FLOAT64 || dtype == OPD_FLOAT32 ? dtype : t->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
}

//-- what the derivatives of reductions are written with ---------------------------------------------------------------------

/* g, a reduction's gradient, with its reduced dims put back as ones. */
static opd_tensor *opdi_unreduce(opd_tensor *g, opd_ints dims, bool keep, int ndim) {
    uint64_t mask;
    int d;
    if (keep || ndim == 0 || !g) { return g; }
    if (opdi_reduce_mask(dims, ndim, &mask) != 0) { return NULL; }
    if (mask == OPDI_ALL_DIMS) { return g; }      /* 0-dim: broadcasts as it is */
    for (d = 0; d < ndim && g; d++) { if (mask >> d & 1) { g = opd_unsqueeze(g, d); } }
    return g;
}
static opd_ints opdi_bw_dims(opd_backward_call *bw, int i) {
    const opd_value v = opd_bw_value(bw, i);
    return v.tag == OPD_TAG_INTS ? opd_ints_of(v.u.ints, v.n) : opd_ints_of(NULL, 0);
}
static bool opdi_bw_bool(opd_backward_call *bw, int i) { return opd_bw_value(bw, i).u.i != 0; }
/* g spread over the input (argument 0), dims and keepdim being arguments i and i + 1; i < 0: everything was reduced. */
static opd_tensor *opdi_bw_spread(opd_backward_call *bw, opd_tensor *g, int i) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    if (i >= 0) { g = opdi_unreduce(g, opdi_bw_dims(bw, i), opdi_bw_bool(bw, i + 1), (int)sizes.n); }
    return g ? opd_expand(g, sizes) : NULL;
}

static void opdi_card_reduce(opd_op_desc *op, const char *schema, opd_kernel kernel, opd_backward_fn backward, const char *save,
                             opd_autocast autocast, const char *out, const char *cases) {
    op->schema = schema; op->cpu = kernel; op->fake = kernel; op->backward = backward; op->save = save;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = autocast; op->out = out; op->cases = cases;
}
/* The card <id>: kernel opdi_<kernel>_kernel. */
#define OPDI_CARD_REDUCE(id, schema_, kernel_, backward_, save_, autocast_, out_, cases_)                    \
    OPDI_OP(id) {                                                                                           \
        opdi_card_reduce(op, schema_, opdi_##kernel_##_kernel, backward_, save_, OPD_AUTOCAST_##autocast_, out_, cases_); \
    }
#define OPDI_CASES_ALL "[2,3]; [2,3]i5; []"
#define OPDI_CASES_DIMS "[2,3], (1); [2,3,2], (0,-1), True; [2,3], ()"

//-- sum, nansum, mean, prod -------------------------------------------------------------------------------------------------

static int opdi_reduce_sum(opd_call *call, const opdi_fold *fold, opd_ints dims, bool keep, int dtype_arg) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = opdi_reduce_dtype(call, dtype_arg, t);
    uint64_t mask;
    if (opdi_reduce_mask(dims, t->ndim, &mask) != 0) { return -1; }
    return opdi_reduce_kernel(call, fold, t, mask, keep, opdi_reduce_compute(t, dtype), dtype, OPD_DTYPE_NONE, 0);
}
OPDI_KERNEL(sum) { return opdi_reduce_sum(call, &opdi_the_sum, opd_ints_of(NULL, 0), false, 1); }
OPDI_KERNEL(sum_dim) { return opdi_reduce_sum(call, &opdi_the_sum, opd_arg_ints(call, 1), opd_arg_bool(call, 2), 3); }
OPDI_BW1(sum) { return opd_bw_return(bw, 0, opdi_bw_spread(bw, opd_bw_grad(bw, 0), -1)); }
OPDI_BW1(sum_dim) { return opd_bw_return(bw, 0, opdi_bw_spread(bw, opd_bw_grad(bw, 0), 1)); }
OPDI_CARD_REDUCE(sum, "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", sum, opdi_sum_backward, "", FP32_SET_DTYPE, "sum.out",
                 OPDI_CASES_ALL)
OPDI_CARD_REDUCE(sum_dim_IntList, "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                 sum_dim, opdi_sum_dim_backward, "", FP32_SET_DTYPE, "sum.IntList_out", OPDI_CASES_DIMS)

//======================================================================================================================
//  >>op:linalg  matrix products
//======================================================================================================================

//-- what the rooms below share --------------------------------------------------------------------------------------------

/* Operators of other rooms, by name: v[0..n) in schema order. */
static opd_tensor *opdi_do(opd_op **handle, const char *name, opd_tensor *t, opd_value b, opd_value c) {
    opd_value v[3];
    v[0] = opd_value_tensor(t); v[1] = b; v[2] = c;
    return opd_call_op(OPD_OP(handle, name), v, b.tag == OPD_TAG_DEFAULT ? 1 : c.tag == OPD_TAG_DEFAULT ? 2 : 3);
}
static opd_tensor *opdi_swap_dims(opd_tensor *t, int64_t a, int64_t b) {
    static opd_op *h; return opdi_do(&h, "aten::transpose.int", t, opd_value_int(a), opd_value_int(b));
}
static opd_tensor *opdi_mt(opd_tensor *t) { return opdi_swap_dims(t, -2, -1); }
static opd_tensor *opdi_reshape_to(opd_tensor *t, const int64_t *sizes, int64_t n) {
    static opd_op *h; return opdi_do(&h, "aten::reshape", t, opd_value_ints(sizes, n), OPD_DEFAULT);
}
static opd_tensor *opdi_expand_to(opd_tensor *t, const int64_t *sizes, int64_t n) {
    static opd_op *h; return opdi_do(&h, "aten::expand", t, opd_value_ints(sizes, n), OPD_DEFAULT);
}
static opd_tensor *opdi_unsqueeze_at(opd_tensor *t, int64_t dim) {
    static opd_op *h; return opdi_do(&h, "aten::unsqueeze", t, opd_value_int(dim), OPD_DEFAULT);
}
static opd_tensor *opdi_squeeze_at(opd_tensor *t, int64_t dim) {
    static opd_op *h; return opdi_do(&h, "aten::squeeze.dim", t, opd_value_int(dim), OPD_DEFAULT);
}
static opd_tensor *opdi_sum_over(opd_tensor *t, const int64_t *dims, int64_t n, bool keepdim) {
    static opd_op *h; return opdi_do(&h, "aten::sum.dim_IntList", t, opd_value_ints(dims, n), opd_value_bool(keepdim));
}
static opd_tensor *opdi_permute_to(opd_tensor *t, const int64_t *dims, int64_t n) {
    static opd_op *h; return opdi_do(&h, "aten::permute", t, opd_value_ints(dims, n), OPD_DEFAULT);
}

/* t itself when it is contiguous and of that dtype, else a copy of the innermost scope. */
static opd_tensor *opdi_dense_as(opd_tensor *t, opd_scalar_type dtype) {
    opd_tensor *c;
    if (!t || (t->dtype == (int8_t)dtype && (t->flags & OPDI_CONTIGUOUS))) { return t; }
    c = opdi_own(opdi_tensor_make(opdi_sizes(t), NULL, t->ndim, dtype, OPD_CPU));
    return c && opdi_copy(c, t) == 0 ? c : NULL;
}
/* A contiguous tensor of that dtype for what goes to `out`: out itself when it will do; opdi_done_with copies it over. */
static opd_tensor *opdi_work_for(opd_tensor *out, opd_scalar_type dtype) {
    if (out->dtype == (int8_t)dtype && (out->flags & OPDI_CONTIGUOUS)) { return out; }
    return opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, dtype, OPD_CPU));
}
static int opdi_done_with(opd_tensor *out, opd_tensor *work) { return work == out ? 0 : opdi_copy(out, work); }
/* What a kernel written for float and double (and int64, where ints is set) computes a dtype in; -1 with PyTorch's error. */
static int opdi_kernel_dtype(opd_scalar_type t, bool ints, const char *what) {
    if (opd_dtype_is_floating(t) || (ints && opd_dtype_is_integral(t, false))) { return opdi_compute_dtype[opdi_compute_type(t)]; }
    return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", what, opd_dtype_cname(t));
}
/* Whether t broadcasts to sizes; -1 with the error of expand. */
static int opdi_expand_check(const opd_tensor *t, const int64_t *sizes, int ndim) {
    char to[256], from[256];
    int d, shift = ndim - t->ndim;
    opdi_sizes_text(sizes, ndim, to, sizeof to);
    opdi_sizes_text(opdi_sizes(t), t->ndim, from, sizeof from);
    if (shift < 0) {
        return opd_fail(OPD_ERROR_SHAPE, "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%d) must be greater or equal "
                        "to the number of dimensions in the tensor (%d)", opd_dtype_cname((opd_scalar_type)t->dtype), from, to, ndim, t->ndim);
    }
    for (d = 0; d < t->ndim; d++) {
        if (opdi_sizes(t)[d] != sizes[d + shift] && opdi_sizes(t)[d] != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
                            "dimension %d.  Target sizes: %s.  Tensor sizes: %s", (long long)sizes[d + shift], (long long)opdi_sizes(t)[d],
                            d + shift, to, from);
        }
    }
    return 0;
}
static int opdi_same_dtype(const opd_tensor *a, const opd_tensor *b) {
    if (a->dtype == b->dtype) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "expected scalar type %s but found %s", opd_dtype_cname((opd_scalar_type)a->dtype),
                    opd_dtype_cname((opd_scalar_type)b->dtype));
}
#define OPDI_DTYPE(t) ((opd_scalar_type)(t)->dtype)

//-- the product of vectors, matrices and batches of matrices ----------------------------------------------------------------

/* Element (b, i, j) is b * bs + i * rs + j * cs elements behind data. */
typedef struct opdi_matrix { char *data; int64_t bs, rs, cs; } opdi_matrix;
typedef struct opdi_products {
    opdi_matrix a, b, c;
    int dtype, from;                              /* of c; of a and b */
    int64_t batch, m, n, k;
    double beta;
    int32_t failed;
} opdi_products;

/* A tensor of up to three dims; one dim is a column, or a row. */
static opdi_matrix opdi_matrix_of(const opd_tensor *t, bool row) {
    const int64_t *s = opdi_strides(t) + t->ndim;
    opdi_matrix m;
    m.data = t->data; m.bs = 0; m.rs = 1; m.cs = 1;
    if (t->ndim == 1 && row) { m.cs = s[-1]; }
    else if (t->ndim == 1) { m.rs = s[-1]; }
    else if (t->ndim > 1) { m.rs = s[-2]; m.cs = s[-1]; }
    if (t->ndim == 3) { m.bs = s[-3]; }
    return m;
}
static int opdi_product_at(const opdi_products *p, int64_t i, double beta) {
    const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)p->dtype), in = (int64_t)opd_dtype_size((opd_scalar_type)p->from);
    char *c = p->c.data + i * p->c.bs * size;
    opdi_gemm_in a = opdi_gemm_in_of(p->a.data + i * p->a.bs * in, p->from, p->a.rs, p->a.cs);
    opdi_gemm_in b = opdi_gemm_in_of(p->b.data + i * p->b.bs * in, p->from, p->b.rs, p->b.cs);
    if (p->dtype == OPD_INT64) {
        return opdi_gemm_i64(p->m, p->n, p->k, (const int64_t *)a.data, a.rs, a.cs, (const int64_t *)b.data, b.rs, b.cs,
                             (int64_t)beta, (int64_t *)(void *)c, p->c.rs, p->c.cs);
    }
    return opdi_gemm((size_t)size, p->m, p->n, p->k, &a, &b, beta, c, p->c.rs, p->c.cs);
}
static void opdi_products_range(void *ctx, int64_t begin, int64_t end) {
    opdi_products *p = (opdi_products *)ctx;
    int64_t i;
    for (i = begin; i < end; i++) { if (opdi_product_at(p, i, p->beta) != 0) { OPDI_STORE(&p->failed, 1); } }
}
/* c = a b + beta c, or with fewer dims than a and b (addbmm) the sum over the batch.  c of a compute dtype; a and b of the
   same, or halves for float. */
static int opdi_product_run(opd_tensor *c, opd_tensor *a, opd_tensor *b, double beta) {
    opdi_products p;
    int64_t work, i;
    p.a = opdi_matrix_of(a, true); p.b = opdi_matrix_of(b, false); p.c = opdi_matrix_of(c, false);
    p.dtype = c->dtype; p.from = a->dtype; p.beta = beta; p.failed = 0;
    p.batch = a->ndim == 3 ? opdi_sizes(a)[0] : 1;
    p.m = a->ndim > 1 ? opdi_sizes(a)[a->ndim - 2] : 1;
    p.k = opdi_sizes(a)[a->ndim - 1];
    p.n = b->ndim > 1 ? opdi_sizes(b)[b->ndim - 1] : 1;
    if (p.batch == 1) { return opdi_product_at(&p, 0, beta); }
    if (c->ndim < a->ndim) {
        if (p.batch == 0) { p.k = 0; return opdi_product_at(&p, 0, beta); }
        for (i = 0; i < p.batch; i++) { if (opdi_product_at(&p, i, i ? 1.0 : beta) != 0) { return -1; } }
        return 0;
    }
    work = p.m * p.n * p.k + 64;
    if (work >= 1 << 20 && p.batch < opd_threads()) {
        opdi_products_range(&p, 0, p.batch);
    } else { opdi_parallel_for(p.batch, OPDI_MAX((int64_t)1, (1 << 18) / work), opdi_products_range, &p); }
    return p.failed ? opd_fail(OPD_ERROR_MEMORY, "out of memory in a matrix product") : 0;
}
/* w = alpha w + beta s, both contiguous and of a compute dtype; s may be NULL. */
static void opdi_axpby(opd_tensor *w, const opd_tensor *s, opd_value alpha, opd_value beta) {
    int64_t i;
    const double a = opdi_number_f64(alpha), b = opdi_number_f64(beta);
    if (w->dtype == OPD_FLOAT32) {
        float *x = (float *)(void *)w->data;
        const float *y = s ? (const float *)(const void *)s->data : x, af = (float)a, bf = s ? (float)b : 0.0f;
        for (i = 0; i < w->numel; i++) { x[i] = s ? af * x[i] + bf * y[i] : af * x[i]; }
    } else if (w->dtype == OPD_FLOAT64) {
        double *x = (double *)(void *)w->data;
        const double *y = s ? (const double *)(const void *)s->data : x;
        for (i = 0; i < w->numel; i++) { x[i] = s ? a * x[i] + b * y[i] : a * x[i]; }
    } else {
        uint64_t *x = (uint64_t *)(void *)w->data, ai = (uint64_t)opdi_number_i64(alpha), bi = (uint64_t)opdi_number_i64(beta);
        const uint64_t *y = s ? (const uint64_t *)(const void *)s->data : x;
        for (i = 0; i < w->numel; i++) { x[i] = ai * x[i] + (s ? bi * y[i] : 0); }
    }
}
/* out = alpha a b + beta self; self may be NULL, and is not read where beta is 0.  Halves are rounded once. */
static int opdi_product(opd_tensor *out, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta, opd_value alpha) {
    const opd_scalar_type t = (opd_scalar_type)opdi_compute_dtype[opdi_compute_type(OPDI_DTYPE(a))];
    opd_tensor *work, *s = NULL;
    if (!out->data || out->numel == 0) { return 0; }
    if (self && opdi_number_f64(beta) == 0) { self = NULL; }
    if (t == OPD_INT64 && (a->dtype != OPD_INT64 || b->dtype != OPD_INT64)) {
        a = opdi_dense_as(a, t); b = opdi_dense_as(b, t);
        if (!a || !b) { return -1; }
    }
    if (out->dtype == (int8_t)t && t != OPD_INT64 && opdi_number_f64(alpha) == 1) {
        if (self && opdi_copy(out, self) != 0) { return -1; }
        return opdi_product_run(out, a, b, self ? opdi_number_f64(beta) : 0);
    }
    work = opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, t, OPD_CPU));
    if (!work || opdi_product_run(work, a, b, 0) != 0) { return -1; }
    if (self) {
        s = opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, t, OPD_CPU));
        if (!s || opdi_copy(s, self) != 0) { return -1; }
    }
    opdi_axpby(work, s, alpha, beta);
    return opdi_copy(out, work);
}
static int opdi_product_result(opd_call *call, opd_tensor *self, opd_tensor *a, opd_tensor *b, const int64_t *sizes, int ndim,
                               opd_value beta, opd_value alpha) {
    opd_tensor *out;
    if (self && opdi_expand_check(self, sizes, ndim) != 0) { return -1; }
    out = opd_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    return out ? opdi_product(out, self, a, b, beta, alpha) : -1;
}
static opd_value opdi_one(void) { return opd_value_int(1); }

//-- mm, addmm -------------------------------------------------------------------------------------------------------------

static int opdi_mm_shapes(const opd_tensor *a, const opd_tensor *b) {
    const int64_t *x = opdi_sizes(a), *y = opdi_sizes(b);
    if (x[1] == y[0]) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)x[0],
                    (long long)x[1], (long long)y[0], (long long)y[1]);
}
OPDI_KERNEL(mm) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *out;
    int64_t sizes[2];
    if (a->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "self must be a matrix"); }
    if (b->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "mat2 must be a matrix"); }
    if (opdi_mm_shapes(a, b) != 0 || opdi_same_dtype(a, b) != 0) { return -1; }
    if (opdi_kernel_dtype(OPDI_DTYPE(a), true, "addmm_impl_cpu_") < 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0]; sizes[1] = opdi_sizes(b)[1];
    out = opd_result(call, 0, sizes, 2, OPDI_DTYPE(a));
    return out ? opdi_product(out, NULL, a, b, opdi_one(), opdi_one()) : -1;
}
OPDI_BW1(mm) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_mm(g, opdi_mt(opd_bw_tensor(bw, 1))));
    OPDI_GIVE(1, opd_mm(opdi_mt(opd_bw_tensor(bw, 0)), g));
    return 0;
}
/* What the cards of products share. */
static void opdi_card_product(opd_op_desc *op, const char *schema, opd_kernel kernel, opd_backward_fn backward, const char *save,
                              const char *inplace, const char *out, const char *cases) {
    op->schema = schema; op->cpu = kernel; op->fake = kernel; op->backward = backward; op->save = save;
    op->vmap = OPD_BATCH_MATMUL; op->autocast = OPD_AUTOCAST_LOWER; op->inplace = inplace; op->out = out; op->cases = cases;
}
static void opdi_card_above(opd_op_desc *op, const char *schema, opd_kernel composite, opd_autocast autocast, const char *out,
                            const char *cases) {
    op->schema = schema; op->composite = composite; op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = autocast; op->out = out;
    op->cases = cases;
}
OPDI_OP(mm) {
    opdi_card_product(op, "mm(Tensor self, Tensor mat2) -> Tensor", opdi_mm_kernel, opdi_mm_backward, "self(mat2), mat2(self)", NULL,
                      "mm.out", "[2,3], [3,4]");
}

OPDI_KERNEL(addmm) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    int64_t sizes[2];
    if (self->dtype != b->dtype) { return opd_fail(OPD_ERROR_DTYPE, "self and mat2 must have the same dtype, but got %s and %s",
                                                   opd_dtype_cname(OPDI_DTYPE(self)), opd_dtype_cname(OPDI_DTYPE(b))); }
    if (a->dtype != b->dtype) { return opd_fail(OPD_ERROR_DTYPE, "mat1 and mat2 must have the same dtype, but got %s and %s",
                                                opd_dtype_cname(OPDI_DTYPE(a)), opd_dtype_cname(OPDI_DTYPE(b))); }
    if (a->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "mat1 must be a matrix, got %d-D tensor", a->ndim); }
    if (b->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "mat2 must be a matrix, got %d-D tensor", b->ndim); }
    if (opdi_mm_shapes(a, b) != 0 || opdi_kernel_dtype(OPDI_DTYPE(a), true, "addmm_impl_cpu_") < 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0]; sizes[1] = opdi_sizes(b)[1];
    return opdi_product_result(call, self, a, b, sizes, 2, opd_arg_value(call, 3), opd_arg_value(call, 4));
}
OPDI_BW1(addmm) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_GIVE(0, opdi_scale(g, beta));
    OPDI_GIVE(1, opdi_scale(opd_mm(g, opdi_mt(opd_bw_tensor(bw, 2))), alpha));
    OPDI_GIVE(2, opdi_scale(opd_mm(opdi_mt(opd_bw_tensor(bw, 1)), g), alpha));
    return 0;
}
OPDI_OP(addmm) {
    opdi_card_product(op, "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", opdi_addmm_kernel,
                      opdi_addmm_backward, "mat1(mat2), mat2(mat1)", "addmm_", "addmm.out", "[4], [2,3], [3,4]; [2,4], [2,3], [3,4], beta=0.5, alpha=2");
}

//-- bmm, baddbmm, addbmm ----------------------------------------------------------------------------------------------------

static int opdi_bmm_shapes(const opd_tensor *a, const opd_tensor *b) {
    const int64_t *x = opdi_sizes(a), *y = opdi_sizes(b);
    if (a->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch1 must be a 3D tensor"); }
    if (b->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch2 must be a 3D tensor"); }
    if (x[0] == y[0] && x[2] == y[1]) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
                    (long long)x[0], (long long)x[2], (long long)y[0], (long long)y[1]);
}
static int opdi_bmm_any(opd_call *call, opd_tensor *self, int first, opd_value beta, opd_value alpha) {
    opd_tensor *a = opd_arg_tensor(call, first), *b = opd_arg_tensor(call, first + 1);
    int64_t sizes[3];
    if (opdi_bmm_shapes(a, b) != 0 || opdi_same_dtype(a, b) != 0) { return -1; }
    if (opdi_kernel_dtype(OPDI_DTYPE(a), true, self ? "baddbmm" : "bmm") < 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0]; sizes[1] = opdi_sizes(a)[1]; sizes[2] = opdi_sizes(b)[2];
    return opdi_product_result(call, self, a, b, sizes, 3, beta, alpha);
}
OPDI_KERNEL(bmm) { return opdi_bmm_any(call, NULL, 0, opdi_one(), opdi_one()); }
OPDI_BW1(bmm) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_bmm(g, opdi_mt(opd_bw_tensor(bw, 1))));
    OPDI_GIVE(1, opd_bmm(opdi_mt(opd_bw_tensor(bw, 0)), g));
    return 0;
}
OPDI_OP(bmm) {
    opdi_card_product(op, "bmm(Tensor self, Tensor mat2) -> Tensor", opdi_bmm_kernel, opdi_bmm_backward, "self(mat2), mat2(self)", NULL,
                      "bmm.out", "[2,3,4], [2,4,2]");
}
OPDI_KERNEL(baddbmm) { return opdi_bmm_any(call, opd_arg_tensor(call, 0), 1, opd_arg_value(call, 3), opd_arg_value(call, 4)); }
OPDI_BW1(baddbmm) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_GIVE(0, opdi_scale(g, beta));
    OPDI_GIVE(1, opdi_scale(opd_bmm(g, opdi_mt(opd_bw_tensor(bw, 2))), alpha));
    OPDI_GIVE(2, opdi_scale(opd_bmm(opdi_mt(opd_bw_tensor(bw, 1)), g), alpha));
    return 0;
}
OPDI_OP(baddbmm) {
    opdi_card_product(op, "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
                      opdi_baddbmm_kernel, opdi_baddbmm_backward, "batch1(batch2), batch2(batch1)", "baddbmm_", "baddbmm.out",
                      "[2,3,2], [2,3,4], [2,4,2]; [2], [2,3,4], [2,4,2], beta=0.5, alpha=2");
}
OPDI_KERNEL(addbmm) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    const int64_t *x = opdi_sizes(a), *y = opdi_sizes(b);
    int64_t sizes[2];
    if (a->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch1 must be a 3D tensor"); }
    if (b->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch2 must be a 3D tensor"); }
    if (x[0] != y[0]) { return opd_fail(OPD_ERROR_SHAPE, "batch1 and batch2 must have same number of batches, got %lld and %lld",
                                        (long long)x[0], (long long)y[0]); }
    if (x[2] != y[1]) { return opd_fail(OPD_ERROR_SHAPE, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)", (long long)x[1],
                                        (long long)x[2], (long long)y[1], (long long)y[2]); }
    if (self->dtype != b->dtype) { return opd_fail(OPD_ERROR_DTYPE, "self and mat2 must have the same dtype"); }
    if (opdi_same_dtype(a, b) != 0 || opdi_kernel_dtype(OPDI_DTYPE(a), true, "addmm_impl_cpu_") < 0) { return -1; }
    sizes[0] = x[1]; sizes[1] = y[2];
    return opdi_product_result(call, self, a, b, sizes, 2, opd_arg_value(call, 3), opd_arg_value(call, 4));
}
OPDI_BW1(addbmm) {
    opd_tensor *g = opd_bw_grad(bw, 0), *a = opd_bw_tensor(bw, 1), *b = opd_bw_tensor(bw, 2), *wide = g;
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_GIVE(0, opdi_scale(g, beta));
    if (opd_ok() && (a || b)) {
        int64_t sizes[3];
        sizes[0] = opd_size(a ? a : b, 0); sizes[1] = opd_size(g, 0); sizes[2] = opd_size(g, 1);
        wide = opdi_expand_to(g, sizes, 3);
    }
    OPDI_GIVE(1, opdi_scale(opd_bmm(wide, opdi_mt(b)), alpha));
    OPDI_GIVE(2, opdi_scale(opd_bmm(opdi_mt(a), wide), alpha));
    return 0;
}
OPDI_OP(addbmm) {
    opdi_card_product(op, "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
                      opdi_addbmm_kernel, opdi_addbmm_backward, "batch1(batch2), batch2(batch1)", "addbmm_", "addbmm.out",
                      "[3,2], [2,3,4], [2,4,2]; [2], [2,3,4], [2,4,2], beta=0.5, alpha=2");
}

//-- mv, addmv, dot, vdot ------------------------------------------------------------------------------------------------------

static int opdi_mv_any(opd_call *call, opd_tensor *self, int first, opd_value beta, opd_value alpha) {
    opd_tensor *a = opd_arg_tensor(call, first), *v = opd_arg_tensor(call, first + 1);
    int64_t rows;
    if (a->ndim != 2 || v->ndim != 1 || (self && self->ndim > 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "vector + matrix @ vector expected, got %d, %d, %d", self ? self->ndim : 1, a->ndim, v->ndim);
    }
    rows = opdi_sizes(a)[0];
    if (opdi_sizes(a)[1] != opdi_sizes(v)[0] || (self && self->numel != rows && self->numel != 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "size mismatch, got %lld, %lldx%lld,%lld", (long long)(self ? self->numel : rows),
                        (long long)rows, (long long)opdi_sizes(a)[1], (long long)opdi_sizes(v)[0]);
    }
    if (opdi_same_dtype(a, v) != 0 || opdi_kernel_dtype(OPDI_DTYPE(a), true, "addmv_impl_cpu") < 0) { return -1; }
    return opdi_product_result(call, self, a, v, &rows, 1, beta, alpha);
}
OPDI_KERNEL(mv) { return opdi_mv_any(call, NULL, 0, opdi_one(), opdi_one()); }
OPDI_BW1(mv) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_outer(g, opd_bw_tensor(bw, 1)));
    OPDI_GIVE(1, opd_mv(opdi_mt(opd_bw_tensor(bw, 0)), g));
    return 0;
}
OPDI_OP(mv) {
    opdi_card_product(op, "mv(Tensor self, Tensor vec) -> Tensor", opdi_mv_kernel, opdi_mv_backward, "self(vec), vec(self)", NULL,
                      "mv.out", "[2,3], [3]");
}
OPDI_KERNEL(addmv) { return opdi_mv_any(call, opd_arg_tensor(call, 0), 1, opd_arg_value(call, 3), opd_arg_value(call, 4)); }
OPDI_BW1(addmv) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_GIVE(0, opdi_scale(g, beta));
    OPDI_GIVE(1, opdi_scale(opd_outer(g, opd_bw_tensor(bw, 2)), alpha));
    OPDI_GIVE(2, opdi_scale(opd_mv(opdi_mt(opd_bw_tensor(bw, 1)), g), alpha));
    return 0;
}
OPDI_OP(addmv) {
    opdi_card_product(op, "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", opdi_addmv_kernel,
                      opdi_addmv_backward, "mat(vec), vec(mat)", "addmv_", "addmv.out", "[2], [2,3], [3]; [2], [2,3], [3], beta=0.5, alpha=2");
}
static int opdi_dot_any(opd_call *call, const char *name) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    if (a->ndim != 1 || b->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "1D tensors expected, but got %dD and %dD tensors", a->ndim, b->ndim);
    }
    if (a->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "dot : expected both vectors to have same dtype, but found %s and %s",
                        opd_dtype_cname(OPDI_DTYPE(a)), opd_dtype_cname(OPDI_DTYPE(b)));
    }
    if (a->numel != b->numel) {
        const long long n = (long long)a->numel, m = (long long)b->numel;
        return opd_fail(OPD_ERROR_SHAPE, "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of "
                        "elements, but got %lld and %lld elements respectively", n, m, n, m);
    }
    if (opdi_kernel_dtype(OPDI_DTYPE(a), true, name) < 0) { return -1; }
    return opdi_product_result(call, NULL, a, b, NULL, 0, opdi_one(), opdi_one());
}
static int opdi_dot_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_mul(g, opd_bw_tensor(bw, 1)));
    OPDI_GIVE(1, opd_mul(g, opd_bw_tensor(bw, 0)));
    return 0;
}
OPDI_KERNEL(dot) { return opdi_dot_any(call, "dot"); }
OPDI_KERNEL(vdot) { return opdi_dot_any(call, "vdot"); }
OPDI_OP(dot) {
    opdi_card_product(op, "dot(Tensor self, Tensor tensor) -> Tensor", opdi_dot_kernel, opdi_dot_backward, "self(tensor), tensor(self)",
                      NULL, "dot.out", "[3], [3]");
    op->autocast = OPD_AUTOCAST_PROMOTE;
}
OPDI_OP(vdot) {
    opdi_card_product(op, "vdot(Tensor self, Tensor other) -> Tensor", opdi_vdot_kernel, opdi_dot_backward, "self(other), other(self)",
                      NULL, "vdot.out", "[3], [3]");
    op->autocast = OPD_AUTOCAST_KEEP;
}

//-- outer products ----------------------------------------------------------------------------------------------------------

static int opdi_outer_check(const char *name, const opd_tensor *a, const opd_tensor *b, const char *first) {
    if (a->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "%s: Expected 1-D argument %s, but got %d-D", name, first, a->ndim); }
    if (b->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "%s: Expected 1-D argument vec2, but got %d-D", name, b->ndim); }
    return 0;
}
OPDI_KERNEL(outer) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    if (opdi_outer_check("outer", a, b, "self") != 0) { return -1; }
    return opd_return_tensor(call, opd_mul(opdi_unsqueeze_at(a, 1), b));
}
OPDI_OP(outer) {
    opdi_card_above(op, "outer(Tensor self, Tensor vec2) -> Tensor", opdi_outer_kernel, OPD_AUTOCAST_KEEP, "outer.out", "[2], [3]");
}
OPDI_OP(ger) {
    opdi_card_above(op, "ger(Tensor self, Tensor vec2) -> Tensor", opdi_outer_kernel, OPD_AUTOCAST_KEEP, "ger.out", "[2], [3]");
}
/* beta self + alpha vec1 vec2^T, with promotion (at::native::math_addr) */
OPDI_KERNEL(addr) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2), *y;
    const opd_value beta = opd_arg_value(call, 3), alpha = opd_arg_value(call, 4);
    int64_t sizes[2];
    int k;
    if (opdi_outer_check("addr", a, b, "vec1") != 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0]; sizes[1] = opdi_sizes(b)[0];
    if (opdi_expand_check(self, sizes, 2) != 0) { return -1; }
    for (k = 3; k < 5; k++) {
        const char *name = k == 3 ? "beta" : "alpha";
        const opd_value v = opd_arg_value(call, k);
        const bool floats = opd_dtype_is_floating(OPDI_DTYPE(self)) || opd_dtype_is_floating(OPDI_DTYPE(a)) || opd_dtype_is_floating(OPDI_DTYPE(b));
        if (v.tag == OPD_TAG_FLOAT && !floats) {
            return opd_fail(OPD_ERROR_ARGUMENT, "For integral input tensors, argument %s must not be a floating point number.", name);
        }
    }
    y = opdi_scale(opd_outer(a, b), alpha);
    if (self->dtype == OPD_BOOL && a->dtype == OPD_BOOL && b->dtype == OPD_BOOL) {
        y = opd_mul(opd_outer(a, b), opd_tensor_wrapped_number(opd_value_bool(opdi_number_f64(alpha) != 0)));
        if (opdi_number_f64(beta) != 0) { y = opd_logical_or(y, self); }
        return opd_return_tensor(call, y);
    }
    if (opdi_number_f64(beta) != 0) { y = opd_add(opdi_scale(self, beta), y); }
    return opd_return_tensor(call, y);
}
OPDI_OP(addr) {
    opdi_card_above(op, "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", opdi_addr_kernel,
                    OPD_AUTOCAST_LOWER, "addr.out", "[2,3], [2], [3]; [3], [2], [3], beta=0.5, alpha=2");
    op->inplace = "addr_";
}

//-- matmul, linear ----------------------------------------------------------------------------------------------------------

/* The operand with more dims (as t1) is folded into a matrix when that needs no copy, or when the other one wants a gradient
   (at::native::should_fold). */
static bool opdi_matmul_folds(const opd_tensor *a, const opd_tensor *b) {
    const bool larger = a->ndim >= b->ndim;
    const opd_tensor *t1 = larger ? a : b, *t2 = larger ? b : a;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    int d, n = t1->ndim;
    if (n < 3 || t2->ndim > 2) { return false; }
    if (opd_tensor_requires_grad(t2)) { return true; }
    if (a->ndim == 2) { return false; }
    if (t1->numel == 0) { return true; }
    memcpy(sizes, opdi_sizes(t1), sizeof(int64_t) * (size_t)n);
    memcpy(strides, opdi_strides(t1), sizeof(int64_t) * (size_t)n);
    if (!larger) {
        sizes[n - 2] = opdi_sizes(t1)[n - 1]; sizes[n - 1] = opdi_sizes(t1)[n - 2];
        strides[n - 2] = opdi_strides(t1)[n - 1]; strides[n - 1] = opdi_strides(t1)[n - 2];
    }
    for (d = 0; d < n - 2; d++) { if (strides[d] != strides[d + 1] * sizes[d + 1]) { return false; } }
    return true;
}
static opd_tensor *opdi_matmul_fold(opd_tensor *a, opd_tensor *b) {
    const bool larger = a->ndim >= b->ndim;
    opd_tensor *t1 = larger ? a : opdi_mt(b), *t2 = larger ? b : a->ndim == 2 ? opdi_mt(a) : a, *y;
    int64_t sizes[OPD_MAX_DIMS], two[2];
    int n;
    if (!t1 || !t2) { return NULL; }
    n = t1->ndim;
    memcpy(sizes, opdi_sizes(t1), sizeof(int64_t) * (size_t)n);
    two[1] = sizes[n - 1];
    for (two[0] = 1, n = 0; n < t1->ndim - 1; n++) { two[0] *= sizes[n]; }
    t1 = opdi_reshape_to(t1, two, 2);
    if (t2->ndim == 1) { return opdi_reshape_to(opd_mv(t1, t2), sizes, n); }
    sizes[n] = opdi_sizes(t2)[1];
    y = opdi_reshape_to(opd_mm(t1, t2), sizes, n + 1);
    return larger ? y : opdi_mt(y);
}
/* Batches broadcast against each other, then one bmm. */
static opd_tensor *opdi_matmul_batches(opd_tensor *a, opd_tensor *b) {
    opd_tensor *in[2], *y;
    int64_t sizes[OPD_MAX_DIMS], one[OPD_MAX_DIMS], three[3], batch = 1;
    int ndim = 0, k, d;
    in[0] = a->ndim == 1 ? opdi_unsqueeze_at(a, 0) : a;
    in[1] = b->ndim == 1 ? opdi_unsqueeze_at(b, 1) : b;
    if (!in[0] || !in[1]) { return NULL; }
    for (k = 0; k < 2; k++) {
        opdi_number fake;                         /* a tensor's batch dims alone, for broadcasting */
        memset(&fake, 0, sizeof fake);
        fake.t.ndim = (uint8_t)(in[k]->ndim - 2);
        fake.t.dims = opdi_sizes(in[k]);
        if (opdi_broadcast_into(sizes, &ndim, &fake.t) != 0) { return NULL; }
    }
    for (d = 0; d < ndim; d++) { batch *= sizes[d]; }
    for (k = 0; k < 2; k++) {
        const int n = in[k]->ndim;
        memcpy(one, sizes, sizeof(int64_t) * (size_t)ndim);
        three[0] = batch; one[ndim] = three[1] = opdi_sizes(in[k])[n - 2]; one[ndim + 1] = three[2] = opdi_sizes(in[k])[n - 1];
        in[k] = opdi_reshape_to(opdi_expand_to(in[k], one, ndim + 2), three, 3);
        if (!in[k]) { return NULL; }
    }
    y = opd_bmm(in[0], in[1]);
    d = ndim;
    if (a->ndim > 1) { sizes[d++] = opd_size(a, -2); }
    if (b->ndim > 1) { sizes[d++] = opd_size(b, -1); }
    return opdi_reshape_to(y, sizes, d);
}
OPDI_KERNEL(matmul) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *y;
    if (a->ndim == 0 || b->ndim == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a->ndim, b->ndim);
    }
    if (a->ndim <= 2 && b->ndim <= 2) {
        if (a->ndim == 1 && b->ndim == 1) { y = opd_dot(a, b); }
        else if (b->ndim == 1) { y = opd_mv(a, b); }
        else if (a->ndim == 1) { y = opdi_squeeze_at(opd_mm(opdi_unsqueeze_at(a, 0), b), 0); }
        else { y = opd_mm(a, b); }
    }
    else if (opdi_matmul_folds(a, b)) { y = opdi_matmul_fold(a, b); }
    else { y = opdi_matmul_batches(a, b); }
    return opd_return_tensor(call, y);
}
OPDI_OP(matmul) {
    opdi_card_above(op, "matmul(Tensor self, Tensor other) -> Tensor", opdi_matmul_kernel, OPD_AUTOCAST_LOWER, "matmul.out",
                    "[3], [3]; [2,3], [3]; [3], [3,2]; [2,3], [3,4]; [2,2,3], [3,4]; [2,3], [2,3,4]; [2,1,2,3], [3,3,2]");
}
OPDI_KERNEL(linear) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2), *wt, *y;
    if (w->ndim > 2) { return opd_fail(OPD_ERROR_SHAPE, "t() expects a tensor with <= 2 dimensions, but self is %dD", w->ndim); }
    wt = w->ndim == 2 ? opdi_mt(w) : w;
    if (b && x->ndim == 2 && w->ndim == 2) { return opd_return_tensor(call, opd_addmm(b, x, wt)); }
    if (b && x->ndim == 3 && w->ndim == 2 && b->ndim == 1 && opd_is_contiguous(x)) {
        int64_t two[2], three[3];
        three[0] = opdi_sizes(x)[0]; three[1] = opdi_sizes(x)[1]; three[2] = opdi_sizes(w)[0];
        two[0] = three[0] * three[1]; two[1] = opdi_sizes(x)[2];
        return opd_return_tensor(call, opdi_reshape_to(opd_addmm(b, opdi_reshape_to(x, two, 2), wt), three, 3));
    }
    y = opd_matmul(x, wt);
    return opd_return_tensor(call, b ? opd_add(y, b) : y);
}
OPDI_OP(linear) {
    opdi_card_above(op, "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", opdi_linear_kernel, OPD_AUTOCAST_LOWER,
                    "linear.out", "[2,3], [4,3], [4]; [2,2,3], [4,3], [4]; [2,3], [4,3]");
}

//-- inner, tensordot, kron --------------------------------------------------------------------------------------------------

/* Contracts dims da of a with dims db of b: both become matrices, the rest of a's and then b's dims remain. */
static opd_tensor *opdi_contract(opd_tensor *a, opd_tensor *b, const int64_t *da, const int64_t *db, int n) {
    int64_t pa[OPD_MAX_DIMS], pb[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS], two[2], k = 1, m = 1, w = 1;
    bool in_a[OPD_MAX_DIMS] = {false}, in_b[OPD_MAX_DIMS] = {false};
    int d, i, rest = 0, at = 0;
    for (i = 0; i < n; i++) { in_a[da[i]] = in_b[db[i]] = true; k *= opdi_sizes(a)[da[i]]; }
    if (a->ndim + b->ndim - 2 * n > OPD_MAX_DIMS) { (void)opd_fail(OPD_ERROR_SHAPE, "tensordot: too many dimensions"); return NULL; }
    for (d = 0; d < a->ndim; d++) {
        if (!in_a[d]) { pa[at++] = d; sizes[rest++] = opdi_sizes(a)[d]; m *= opdi_sizes(a)[d]; }
    }
    for (i = 0; i < n; i++) { pa[at++] = da[i]; pb[i] = db[i]; }
    for (at = n, d = 0; d < b->ndim; d++) {
        if (!in_b[d]) { pb[at++] = d; sizes[rest++] = opdi_sizes(b)[d]; w *= opdi_sizes(b)[d]; }
    }
    two[0] = m; two[1] = k;
    a = opdi_reshape_to(opdi_permute_to(a, pa, a->ndim), two, 2);
    two[0] = k; two[1] = w;
    b = opdi_reshape_to(opdi_permute_to(b, pb, b->ndim), two, 2);
    return opdi_reshape_to(opd_mm(a, b), sizes, rest);
}
static int opdi_wrap_dim(int64_t *dim, int ndim) {
    const int n = ndim > 0 ? ndim : 1;
    if (*dim < -n || *dim >= n) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n, n - 1, (long long)*dim);
    }
    if (*dim < 0) { *dim += n; }
    return 0;
}
OPDI_KERNEL(tensordot) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    opd_ints x = opd_arg_ints(call, 2), y = opd_arg_ints(call, 3);
    int64_t da[OPD_MAX_DIMS], db[OPD_MAX_DIMS];
    uint64_t seen_a = 0, seen_b = 0;
    int i, n = (int)x.n, k = 0;
    if (x.n != y.n) { return opd_fail(OPD_ERROR_ARGUMENT, "both dimension lists should have same length"); }
    if (x.n > a->ndim || x.n > b->ndim) { return opd_fail(OPD_ERROR_ARGUMENT, "tensordot: more dimensions to contract than there are"); }
    for (i = 0; i < n; i++) {
        int64_t p = x.data[i], q = y.data[i], s, t;
        if (opdi_wrap_dim(&p, a->ndim) != 0 || opdi_wrap_dim(&q, b->ndim) != 0) { return -1; }
        if ((seen_a >> p & 1) || (seen_b >> q & 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "dim %lld appears multiple times in the list of dims", (long long)(seen_a >> p & 1 ? p : q));
        }
        seen_a |= (uint64_t)1 << p; seen_b |= (uint64_t)1 << q;
        s = opdi_sizes(a)[p]; t = opdi_sizes(b)[q];
        da[i] = p; db[i] = q;
        if (s == t) { continue; }
        if (t == 1) { a = opdi_sum_over(a, &p, 1, true); }
        else if (s == 1) { b = opdi_sum_over(b, &q, 1, true); }
        else { return opd_fail(OPD_ERROR_SHAPE, "contracted dimensions need to match, but first has size %lld in dim %lld and second has size "
                               "%lld in dim %lld", (long long)s, (long long)p, (long long)t, (long long)q); }
        if (!a || !b) { return -1; }
        k++;
    }
    return opd_return_tensor(call, opdi_contract(a, b, da, db, n));
}
OPDI_OP(tensordot) {
    opdi_card_above(op, "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor", opdi_tensordot_kernel,
                    OPD_AUTOCAST_PROMOTE, "tensordot.out", "[2,3,4], [4,3,2], (1,2), (1,0)");
}
OPDI_KERNEL(inner) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    int64_t da = a->ndim - 1, db = b->ndim - 1;
    char x[256], y[256];
    if (a->ndim == 0 || b->ndim == 0) { return opd_return_tensor(call, opd_mul(a, b)); }
    if (opdi_sizes(a)[da] != opdi_sizes(b)[db]) {
        return opd_fail(OPD_ERROR_SHAPE, "inner() the last dimension must match on both input tensors but got shapes %s and %s",
                        opdi_sizes_text(opdi_sizes(a), a->ndim, x, sizeof x), opdi_sizes_text(opdi_sizes(b), b->ndim, y, sizeof y));
    }
    return opd_return_tensor(call, opdi_contract(a, b, &da, &db, 1));
}
OPDI_OP(inner) {
    opdi_card_above(op, "inner(Tensor self, Tensor other) -> Tensor", opdi_inner_kernel, OPD_AUTOCAST_KEEP, "inner.out", "[2,3], [4,3]; [3], [3]");
}
/* Every dim of a is followed by the one of b: one product, then pairs of dims are merged. */
OPDI_KERNEL(kron) {
    opd_tensor *in[2];
    int64_t sizes[OPD_MAX_DIMS], out[OPD_MAX_DIMS];
    int n, d, k;
    in[0] = opd_arg_tensor(call, 0); in[1] = opd_arg_tensor(call, 1);
    n = OPDI_MAX(in[0]->ndim, in[1]->ndim);
    if (2 * n > OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_SHAPE, "kron: too many dimensions"); }
    for (d = 0; d < n; d++) { out[d] = 1; }
    for (k = 0; k < 2; k++) {
        for (d = 0; d < n; d++) {
            const int from = d - (n - in[k]->ndim);
            sizes[2 * d + k] = from < 0 ? 1 : opdi_sizes(in[k])[from];
            sizes[2 * d + 1 - k] = 1;
            out[d] *= sizes[2 * d + k];
        }
        in[k] = opdi_reshape_to(in[k], sizes, 2 * n);
    }
    return opd_return_tensor(call, opdi_reshape_to(opd_mul(in[0], in[1]), out, n));
}
OPDI_OP(kron) {
    opdi_card_above(op, "kron(Tensor self, Tensor other) -> Tensor", opdi_kron_kernel, OPD_AUTOCAST_KEEP, "kron.out", "[2,3], [2,2]; [2], [2,3]");
}

//======================================================================================================================
//  >>op:nn  convolution, pooling, normalisation, losses, dropout
//======================================================================================================================

//-- convolution and pooling --------------------------------------------------------------------------------------------------
//
//  Everything is done on contiguous tensors of a compute type, one to three spatial dims (fewer are given leading ones of size
//  1).  A transposed convolution is the gradient of a convolution with respect to its input.

/* A convolution x [n, c, in] with w [oc, c / groups, k] to y [n, oc, out]. */
typedef struct opdi_vol {
    int dtype;                                    /* float32, float64 or int64 */
    int64_t n, c, oc, groups;
    int64_t in[3], k[3], s[3], p[3], d[3], out[3];
} opdi_vol;
static int64_t opdi_vol_area(const int64_t *s) { return s[0] * s[1] * s[2]; }

/* The image x [c, in] unfolded to columns [c * k, out], `ld` elements a row; back adds the columns to x instead. */
#define OPDI_UNFOLD_ROW(T)                                                                                  \
    {                                                                                                       \
        const T *from = (const T *)(const void *)x + row; T *to = (T *)(void *)o;                           \
        if (back) { T *add = (T *)(void *)x + row; for (j = lo; j < hi; j++) { add[j * step] = (T)(add[j * step] + to[j]); } } \
        else {                                                                                              \
            for (j = 0; j < lo; j++) { to[j] = 0; }                                                         \
            for (; j < hi; j++) { to[j] = from[j * step]; }                                                 \
            for (; j < v->out[2]; j++) { to[j] = 0; }                                                       \
        }                                                                                                   \
    }
static void opdi_vol_unfold(const opdi_vol *v, int64_t channels, char *x, char *col, int64_t ld, bool back) {
    const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)v->dtype), taps = opdi_vol_area(v->k), step = v->s[2];
    int64_t t, i, j;
    for (t = 0; t < channels * taps; t++) {
        const int64_t c = t / taps, k2 = t % v->k[2], k1 = t / v->k[2] % v->k[1], k0 = t % taps / (v->k[2] * v->k[1]);
        const int64_t first = k2 * v->d[2] - v->p[2];               /* x of column 0 in the innermost dim */
        int64_t lo = first < 0 ? (-first + step - 1) / step : 0, hi = v->in[2] - first <= 0 ? 0 : (v->in[2] - first - 1) / step + 1;
        hi = OPDI_MIN(hi, v->out[2]);
        lo = OPDI_MIN(lo, v->out[2]);
        if (hi < lo) { hi = lo; }
        for (i = 0; i < v->out[0] * v->out[1]; i++) {
            const int64_t a = i / v->out[1] * v->s[0] + k0 * v->d[0] - v->p[0], b = i % v->out[1] * v->s[1] + k1 * v->d[1] - v->p[1];
            const int64_t row = ((c * v->in[0] + a) * v->in[1] + b) * v->in[2] + first;
            char *o = col + (t * ld + i * v->out[2]) * size;
            if (a < 0 || a >= v->in[0] || b < 0 || b >= v->in[1]) {
                if (!back) { memset(o, 0, (size_t)(v->out[2] * size)); }
            }
            else if (v->dtype == OPD_FLOAT32) { OPDI_UNFOLD_ROW(float) }
            else if (v->dtype == OPD_FLOAT64) { OPDI_UNFOLD_ROW(double) }
            else { OPDI_UNFOLD_ROW(int64_t) }
        }
    }
}
/* c [m, n] = a b + beta c with row strides and, for a and b, whether they are given transposed */
static int opdi_vol_gemm(const opdi_vol *v, int64_t m, int64_t n, int64_t k, const char *a, int64_t lda, bool ta, const char *b, int64_t ldb,
                         bool tb, double beta, char *c, int64_t ldc) {
    opdi_products p;
    p.a.data = (char *)(uintptr_t)a; p.a.bs = 0; p.a.rs = ta ? 1 : lda; p.a.cs = ta ? lda : 1;
    p.b.data = (char *)(uintptr_t)b; p.b.bs = 0; p.b.rs = tb ? 1 : ldb; p.b.cs = tb ? ldb : 1;
    p.c.data = c; p.c.bs = 0; p.c.rs = ldc; p.c.cs = 1;
    p.dtype = p.from = v->dtype; p.m = m; p.n = n; p.k = k;
    return opdi_product_at(&p, 0, beta);
}
/* The two-dimensional routines where they fit: then 1 and *q filled in. */
static int opdi_vol_flat(const opdi_vol *v, opdi_conv *q) {
    int mark, fits;
    if (v->dtype == OPD_INT64 || v->in[0] != 1 || v->k[0] != 1 || v->out[0] != 1 || v->p[0] != 0) { return 0; }
    memset(q, 0, sizeof *q);
    q->size = v->dtype == OPD_FLOAT32 ? 4 : 8;
    q->n = v->n; q->c = v->c; q->oc = v->oc; q->groups = v->groups;
    q->h = v->in[1]; q->w = v->in[2]; q->kh = v->k[1]; q->kw = v->k[2]; q->sh = v->s[1]; q->sw = v->s[2];
    q->ph = v->p[1]; q->pw = v->p[2]; q->dh = v->d[1]; q->dw = v->d[2];
    mark = opd_error_mark();
    fits = opdi_conv_init(q) == 0 && q->oh == v->out[1] && q->ow == v->out[2];
    (void)opd_error_rewind(mark);
    return fits;
}
enum { OPDI_VOL_Y, OPDI_VOL_GX, OPDI_VOL_GW };
/* One of y = conv(x, w), gx = its gradient for gy = y, gw = its gradient for gy = y, image by image through the columns. */
static int opdi_vol_columns(const opdi_vol *v, int what, char *x, char *w, char *y) {
    const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)v->dtype), cg = v->c / v->groups, og = v->oc / v->groups;
    const int64_t k = cg * opdi_vol_area(v->k), area = opdi_vol_area(v->out), image = opdi_vol_area(v->in);
    const double elements = (double)k * (double)area;
    int64_t i, g;
    char *col;
    int rc = 0;
    if (elements > 1e15 || !(col = (char *)opdi_alloc((size_t)(k * area * size) + 16))) {
        return opd_fail(OPD_ERROR_MEMORY, "convolution: out of memory");
    }
    if (what == OPDI_VOL_GX) { memset(x, 0, (size_t)(v->n * v->c * image * size)); }
    for (i = 0; i < v->n && rc == 0; i++) {
        for (g = 0; g < v->groups && rc == 0; g++) {
            char *xi = x + (i * v->c + g * cg) * image * size, *yi = y + (i * v->oc + g * og) * area * size, *wg = w + g * og * k * size;
            if (what != OPDI_VOL_GX) { opdi_vol_unfold(v, cg, xi, col, area, false); }
            if (what == OPDI_VOL_Y) { rc = opdi_vol_gemm(v, og, area, k, wg, k, false, col, area, false, 0, yi, area); }
            else if (what == OPDI_VOL_GW) { rc = opdi_vol_gemm(v, og, k, area, yi, area, false, col, area, true, i ? 1 : 0, wg, k); }
            else {
                rc = opdi_vol_gemm(v, k, area, og, wg, k, true, yi, area, false, 0, col, area);
                if (rc == 0) { opdi_vol_unfold(v, cg, xi, col, area, true); }
            }
        }
    }
    opdi_free(col, (size_t)(k * area * size) + 16);
    return rc;
}
static int opdi_vol_run(const opdi_vol *v, int what, const opd_tensor *x, const opd_tensor *w, const opd_tensor *y) {
    opd_tensor *const target = (opd_tensor *)(uintptr_t)(what == OPDI_VOL_Y ? y : what == OPDI_VOL_GX ? x : w);
    opdi_conv q;
    if (target->numel == 0) { return 0; }
    if (x->numel == 0 || w->numel == 0 || y->numel == 0) { memset(target->data, 0, (size_t)target->numel * opd_dtype_size(OPDI_DTYPE(target))); return 0; }
    if (!opdi_vol_flat(v, &q)) { return opdi_vol_columns(v, what, x->data, w->data, y->data); }
    if (what == OPDI_VOL_Y) { return opdi_conv_forward(&q, x->data, w->data, NULL, y->data); }
    if (what == OPDI_VOL_GX) { return opdi_conv_grad_input(&q, y->data, w->data, x->data); }
    return opdi_conv_grad_weight(&q, y->data, x->data, w->data);
}
/* y [n, c, area] += b [c] */
static void opdi_bias_add(opd_tensor *y, const opd_tensor *b) {
    const int64_t c = opdi_sizes(y)[1], area = y->numel / OPDI_MAX((int64_t)1, opdi_sizes(y)[0] * c);
    int64_t i, j;
    for (i = 0; i < opdi_sizes(y)[0] * c; i++) {
        if (y->dtype == OPD_FLOAT32) {
            float *p = (float *)(void *)y->data + i * area, k = ((const float *)(const void *)b->data)[i % c];
            for (j = 0; j < area; j++) { p[j] += k; }
        } else if (y->dtype == OPD_FLOAT64) {
            double *p = (double *)(void *)y->data + i * area, k = ((const double *)(const void *)b->data)[i % c];
            for (j = 0; j < area; j++) { p[j] += k; }
        } else {
            uint64_t *p = (uint64_t *)(void *)y->data + i * area, k = ((const uint64_t *)(const void *)b->data)[i % c];
            for (j = 0; j < area; j++) { p[j] += k; }
        }
    }
}
/* out [c] = sum over n and area of g [n, c, area], float or double */
static void opdi_bias_sum(const opd_tensor *g, opd_tensor *out) {
    const int64_t n = opdi_sizes(g)[0], c = opdi_sizes(g)[1], area = g->numel / OPDI_MAX((int64_t)1, n * c);
    int64_t i, b, j;
    int l;
    for (i = 0; i < c; i++) {
        double sum = 0;
        for (b = 0; b < n; b++) {
            double part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
            if (g->dtype == OPD_FLOAT32) {
                const float *p = (const float *)(const void *)g->data + (b * c + i) * area;
                float f[16] = {0};
                for (j = 0; j + 16 <= area && area <= 4096; j += 16) { for (l = 0; l < 16; l++) { f[l] += p[j + l]; } }
                for (l = 0; l < 8; l++) { part[l] = (double)f[l] + (double)f[l + 8]; }
                for (; j < area; j++) { part[j & 7] += (double)p[j]; }
            } else {
                const double *p = (const double *)(const void *)g->data + (b * c + i) * area;
                for (j = 0; j < area; j++) { part[j & 7] += p[j]; }
            }
            sum += ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
        }
        if (g->dtype == OPD_FLOAT32) { ((float *)(void *)out->data)[i] = (float)sum; }
        else { ((double *)(void *)out->data)[i] = sum; }
    }
}

//-- convolution: arguments --------------------------------------------------------------------------------------------------

/* Strides laid out as channels last, which a result then takes over (c10::is_channels_last_strides_2d and 3d). */
static bool opdi_is_channels_last(const opd_tensor *t) {
    const int64_t *sizes = opdi_sizes(t), *strides = opdi_strides(t);
    int64_t least = 0;
    int k, n = t->ndim;
    if ((n != 4 && n != 5) || strides[1] == 0) { return false; }
    for (k = 0; k < n; k++) {
        const int d = k == 0 ? 1 : k == n - 1 ? 0 : n - k;        /* c, w, h, (d,) n */
        if (sizes[d] == 0 || strides[d] < least || (d == 0 && least == strides[1])) { return false; }
        least = strides[d];
        if (sizes[d] > 1) { least *= sizes[d]; }
    }
    return true;
}
/* A result with sizes [n, c, ...], channels last where `last` says so. */
static opd_tensor *opdi_result_format(opd_call *call, int i, bool last, const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    int64_t strides[OPD_MAX_DIMS], next;
    int d;
    if (!last || (ndim != 4 && ndim != 5)) { return opd_result(call, i, sizes, ndim, dtype); }
    strides[1] = 1;
    next = sizes[1];
    for (d = ndim - 1; d > 1; d--) { strides[d] = next; next *= sizes[d]; }
    strides[0] = next;
    return opd_result_strided(call, i, sizes, strides, ndim, dtype, opdi_call_device(call));
}
/* A list of one number, or of one for each dim, into the last nd of three. */
static int opdi_conv_list(const char *name, opd_ints l, int nd, int64_t *out, int64_t fill) {
    char text[256];
    int i;
    for (i = 0; i < 3; i++) { out[i] = fill; }
    if (l.n != 1 && l.n != nd) {
        return opd_fail(OPD_ERROR_ARGUMENT, "expected %s to be a single integer value or a list of %d values to match the convolution "
                        "dimensions, but got %s=%s", name, nd, name, opdi_sizes_text(l.data, (int)OPDI_MIN(l.n, (int64_t)16), text, sizeof text));
    }
    for (i = 0; i < nd; i++) { out[3 - nd + i] = l.data[l.n == 1 ? 0 : i]; }
    return 0;
}
typedef struct opdi_conv_call {
    opdi_vol v;                                   /* of the underlying convolution: for a transposed one x and y trade places */
    int64_t sizes[5], opad[3];                    /* of the result */
    int nd;
    bool transposed, last;
} opdi_conv_call;

static const char *opdi_by_text(const int64_t *p, int n, char *buf) {
    int i, at = 0;
    for (i = 0; i < n; i++) { at += snprintf(buf + at, (size_t)(96 - at), i ? " x %lld" : "%lld", (long long)p[i]); }
    return buf;
}
/* The result's sizes; refuses what has none (at::native::check_shape_forward). */
static int opdi_conv_out_sizes(opdi_conv_call *q, const int64_t *in) {
    opdi_vol *v = &q->v;
    int64_t out[3], padded[3], reach[3];
    char a[96], b[96];
    int i;
    bool small = false, none = false;
    for (i = 0; i < 3; i++) {
        const double most = ((double)v->d[i] * (double)v->k[i] + (double)in[i] * (double)OPDI_MAX(v->s[i], (int64_t)1) + 2.0 * (double)v->p[i] + (double)q->opad[i]);
        if (most > 1e15) { return opd_fail(OPD_ERROR_ARGUMENT, "convolution: sizes too large"); }
        padded[i] = in[i] + 2 * v->p[i];
        reach[i] = v->d[i] * (v->k[i] - 1) + 1;
        if (q->transposed) { out[i] = (in[i] - 1) * v->s[i] - 2 * v->p[i] + reach[i] + q->opad[i]; }
        else { out[i] = (padded[i] - reach[i]) / v->s[i] + 1; }
        small |= padded[i] < reach[i];
        none |= out[i] < 1;
    }
    if (!q->transposed && small) {
        return opd_fail(OPD_ERROR_SHAPE, "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater than "
                        "actual input size", opdi_by_text(padded + 3 - q->nd, q->nd, a), opdi_by_text(reach + 3 - q->nd, q->nd, b));
    }
    if (none) {
        return opd_fail(OPD_ERROR_SHAPE, "Given input size per channel: (%s). Calculated output size per channel: (%s). Output size is too small",
                        opdi_by_text(in + 3 - q->nd, q->nd, a), opdi_by_text(out + 3 - q->nd, q->nd, b));
    }
    for (i = 0; i < 3; i++) {
        v->in[i] = q->transposed ? out[i] : in[i];
        v->out[i] = q->transposed ? in[i] : out[i];
        if (i >= 3 - q->nd) { q->sizes[2 + i - (3 - q->nd)] = out[i]; }
    }
    return 0;
}
static int opdi_conv_numbers(const opdi_conv_call *q) {
    const opdi_vol *v = &q->v;
    int i;
    for (i = 3 - q->nd; i < 3; i++) {
        if (v->p[i] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "negative padding is not supported"); }
        if (q->opad[i] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "negative output_padding is not supported"); }
        if (v->s[i] <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "non-positive stride is not supported"); }
        if (v->d[i] <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "dilation should be greater than zero, but got %lld", (long long)v->d[i]); }
    }
    return v->groups <= 0 ? opd_fail(OPD_ERROR_ARGUMENT, "non-positive groups is not supported") : 0;
}
/* Channels, bias (its number of elements, or -1) and what the kernel can do. */
static int opdi_conv_shapes(opdi_conv_call *q, const opd_tensor *x, const opd_tensor *w, const opd_tensor *bias) {
    const int64_t *xs = opdi_sizes(x), *ws = opdi_sizes(w), groups = q->v.groups;
    const int64_t want = q->transposed ? ws[0] : ws[1] * groups, oc = q->transposed ? ws[1] * groups : ws[0];
    char a[256], b[256];
    int i;
    opdi_sizes_text(ws, w->ndim, a, sizeof a);
    opdi_sizes_text(xs, x->ndim, b, sizeof b);
    if (x->ndim != w->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional input of size %s instead",
                        w->ndim, w->ndim, a, x->ndim, b);
    }
    if (ws[0] < groups || ws[0] % groups) {
        return opd_fail(OPD_ERROR_SHAPE, "Given groups=%lld, expected weight to be %s %lld at dimension 0, but got weight of size %s instead",
                        (long long)groups, ws[0] < groups ? "at least" : "divisible by", (long long)groups, a);
    }
    if (xs[1] != want) {
        if (q->transposed) {
            return opd_fail(OPD_ERROR_SHAPE, "Given transposed=1, weight of size %s, expected input%s to have %lld channels, but got %lld channels "
                            "instead", a, b, (long long)want, (long long)xs[1]);
        }
        return opd_fail(OPD_ERROR_SHAPE, "Given groups=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
                        (long long)groups, a, b, (long long)want, (long long)xs[1]);
    }
    if (bias && (bias->ndim != 1 || opdi_sizes(bias)[0] != oc)) {
        char c[256];
        return opd_fail(OPD_ERROR_SHAPE, "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of size %s "
                        "instead", q->transposed ? "transposed=1, " : "", a, (long long)oc, opdi_sizes_text(opdi_sizes(bias), bias->ndim, c, sizeof c));
    }
    for (i = 2; i < w->ndim; i++) {
        if (ws[i] < 1) { return opd_fail(OPD_ERROR_SHAPE, "kernel size should be greater than zero, but got weight of size %s", a); }
        if (xs[i] < 1) { return opd_fail(OPD_ERROR_SHAPE, "Only zero batch or zero channel inputs are supported, but got input shape: %s", b); }
    }
    if (q->transposed) {
        for (i = 3 - q->nd; i < 3; i++) {
            if (q->opad[i] >= q->v.s[i] && q->opad[i] >= q->v.d[i]) {
                return opd_fail(OPD_ERROR_ARGUMENT, "output padding must be smaller than either stride or dilation, but got output_padding: %lld stride: "
                                "%lld dilation: %lld", (long long)q->opad[i], (long long)q->v.s[i], (long long)q->v.d[i]);
            }
        }
    }
    return 0;
}
/* Reads stride, padding, dilation, transposed, output_padding, groups from argument `first` on. */
static int opdi_conv_read(const opd_call *call, int first, const opd_tensor *x, const opd_tensor *w, const opd_tensor *bias, opdi_conv_call *q) {
    opdi_vol *v = &q->v;
    int64_t in[3] = {1, 1, 1};
    int i;
    memset(q, 0, sizeof *q);
    if (w->ndim < 3) { return opd_fail(OPD_ERROR_SHAPE, "weight should have at least three dimensions"); }
    if (w->ndim > 5) { return opd_fail(OPD_ERROR_SHAPE, "convolution: at most three spatial dimensions are supported"); }
    q->nd = w->ndim - 2;
    q->transposed = opd_arg_bool(call, first + 3);
    v->groups = opd_arg_int(call, first + 5);
    if (opdi_conv_list("stride", opd_arg_ints(call, first), q->nd, v->s, 1) != 0 || opdi_conv_list("padding", opd_arg_ints(call, first + 1), q->nd, v->p, 0) != 0 ||
        opdi_conv_list("dilation", opd_arg_ints(call, first + 2), q->nd, v->d, 1) != 0 ||
        opdi_conv_list("output_padding", opd_arg_ints(call, first + 4), q->nd, q->opad, 0) != 0 || opdi_conv_numbers(q) != 0 ||
        opdi_conv_shapes(q, x, w, bias) != 0) { return -1; }
    if (!q->transposed) { memset(q->opad, 0, sizeof q->opad); }
    for (i = 0; i < 3; i++) { v->k[i] = i < 3 - q->nd ? 1 : opdi_sizes(w)[2 + i - (3 - q->nd)]; }
    for (i = 3 - q->nd; i < 3; i++) { in[i] = opdi_sizes(x)[2 + i - (3 - q->nd)]; }
    q->sizes[0] = v->n = opdi_sizes(x)[0];
    q->sizes[1] = q->transposed ? opdi_sizes(w)[1] * v->groups : opdi_sizes(w)[0];
    v->c = q->transposed ? q->sizes[1] : opdi_sizes(x)[1];
    v->oc = q->transposed ? opdi_sizes(x)[1] : q->sizes[1];
    if (opdi_sizes(x)[1] == 0) { q->sizes[1] = 0; }                /* as PyTorch has it */
    if (w->dtype != x->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Input type (%s) and weight type (%s) should be the same", opd_dtype_cname(OPDI_DTYPE(x)), opd_dtype_cname(OPDI_DTYPE(w)));
    }
    if (bias && bias->dtype != x->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Input type (%s) and bias type (%s) should be the same", opd_dtype_cname(OPDI_DTYPE(x)), opd_dtype_cname(OPDI_DTYPE(bias)));
    }
    v->dtype = opdi_kernel_dtype(OPDI_DTYPE(x), true, "slow_conv2d_cpu");
    q->last = opdi_is_channels_last(x) || opdi_is_channels_last(w);
    return v->dtype < 0 ? -1 : opdi_conv_out_sizes(q, in);
}

//-- convolution, convolution_backward -----------------------------------------------------------------------------------------

OPDI_KERNEL(convolution) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2), *out, *y;
    opdi_conv_call q;
    opd_scalar_type t;
    if (opdi_conv_read(call, 3, x, w, bias, &q) != 0) { return -1; }
    out = opdi_result_format(call, 0, q.last, q.sizes, q.nd + 2, OPDI_DTYPE(x));
    if (!out) { return -1; }
    if (!out->data || out->numel == 0) { return 0; }
    t = (opd_scalar_type)q.v.dtype;
    x = opdi_dense_as(x, t); w = opdi_dense_as(w, t); y = opdi_work_for(out, t);
    if (!x || !w || !y || opdi_vol_run(&q.v, q.transposed ? OPDI_VOL_GX : OPDI_VOL_Y, q.transposed ? y : x, w, q.transposed ? x : y) != 0) { return -1; }
    if (bias) {
        bias = opdi_dense_as(bias, t);
        if (!bias) { return -1; }
        opdi_bias_add(y, bias);
    }
    return opdi_done_with(out, y);
}
/* Lists at i, i + 1, .. of the forward call, handed on. */
static opd_ints opdi_bw_ints(opd_backward_call *bw, int i) { opd_value v = opd_bw_value(bw, i); return opd_ints_of(v.u.ints, v.n); }
OPDI_BW1(convolution) {
    opd_tensor *g = opd_bw_grad(bw, 0), *rets[3];
    bool mask[3];
    opd_ints bias = opd_bw_sizes(bw, 2);
    int i;
    for (i = 0; i < 3; i++) { mask[i] = opd_bw_needs(bw, i); }
    if (opd_convolution_backward(rets, g, opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), mask[2] ? opd_value_of_ints(bias) : OPD_NONE,
                                 opdi_bw_ints(bw, 3), opdi_bw_ints(bw, 4), opdi_bw_ints(bw, 5), opd_bw_value(bw, 6).u.i != 0, opdi_bw_ints(bw, 7),
                                 opd_bw_value(bw, 8).u.i, opd_value_bools(mask, 3)) != 0) { return -1; }
    for (i = 0; i < 3; i++) { OPDI_GIVE(i, rets[i]); }
    return 0;
}
OPDI_OP(convolution) {
    op->schema = "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, "
                 "int[] output_padding, int groups) -> Tensor";
    op->cpu = opdi_convolution_kernel; op->fake = opdi_convolution_kernel; op->backward = opdi_convolution_backward; op->save = "input, weight";
    op->vmap = OPD_BATCH_LOOP; op->autocast = OPD_AUTOCAST_LOWER; op->out = "convolution.out";
    op->cases = "[2,2,5,4], [3,2,3,2], [3], (1,1), (1,0), (1,1), False, (0,0), 1; [1,4,5], [2,2,2], None, (2,), (1,), (2,), False, (0,), 2; "
                "[2,2,3,3], [2,3,2,2], [3], (2,2), (1,1), (1,1), True, (1,0), 1; [1,2,3,3,3], [2,2,2,2,2], [2], (1,), (0,), (1,), False, (0,), 1";
}

static int opdi_conv_same_sizes(const opd_tensor *g, const int64_t *sizes, int ndim) {
    int d;
    if (g->ndim != ndim) { return opd_fail(OPD_ERROR_SHAPE, "Expected a tensor of dimension %d, but got %d", ndim, g->ndim); }
    for (d = 0; d < ndim; d++) {
        if (opdi_sizes(g)[d] != sizes[d]) {
            return opd_fail(OPD_ERROR_SHAPE, "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension %d and tensor.size[%d] = %lld",
                            ndim, d, (long long)sizes[d], ndim, d, (long long)opdi_sizes(g)[d]);
        }
    }
    return 0;
}
/* Result i of convolution_backward: undefined, a fake, or computed by `what` (-1: the bias). */
static int opdi_conv_gradient(opd_call *call, int i, const opdi_conv_call *q, opd_tensor *g, opd_tensor *x, opd_tensor *w) {
    const opd_scalar_type t = (opd_scalar_type)q->v.dtype, dtype = OPDI_DTYPE(g);
    const opd_tensor *like = i == 0 ? opd_arg_tensor(call, 1) : opd_arg_tensor(call, 2);
    opd_tensor *out, *y;
    int rc = 0;
    if (!opd_call_args(call)[10].u.bools[i]) { return opd_return_value(call, OPD_NONE); }
    if (i == 2) { out = opd_result(call, 2, q->sizes + 1, 1, dtype); }
    else { out = opdi_result_format(call, i, q->last, opdi_sizes(like), like->ndim, dtype); }
    if (!out) { return -1; }
    if (out->data && out->numel) {
        y = opdi_work_for(out, t);
        if (!y) { return -1; }
        if (i == 2) { opdi_bias_sum(g, y); }
        else if (i == 1) { rc = opdi_vol_run(&q->v, OPDI_VOL_GW, q->transposed ? g : x, y, q->transposed ? x : g); }
        else { rc = opdi_vol_run(&q->v, q->transposed ? OPDI_VOL_Y : OPDI_VOL_GX, q->transposed ? g : y, w, q->transposed ? y : g); }
        if (rc != 0 || opdi_done_with(out, y) != 0) { return -1; }
    }
    return opd_return_tensor(call, out);
}
OPDI_KERNEL(convolution_backward) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2);
    opdi_conv_call q;
    opd_scalar_type t;
    int i;
    if (opdi_conv_read(call, 4, x, w, NULL, &q) != 0 || opdi_conv_same_sizes(g, q.sizes, q.nd + 2) != 0 || opdi_same_dtype(x, g) != 0) { return -1; }
    t = (opd_scalar_type)q.v.dtype;
    if (t == OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "\"slow_conv2d_backward\" not implemented for '%s'", opd_dtype_cname(OPDI_DTYPE(x))); }
    if (x->data && g->data && w->data) {
        g = opdi_dense_as(g, t); x = opdi_dense_as(x, t); w = opdi_dense_as(w, t);
        if (!g || !x || !w) { return -1; }
    }
    for (i = 0; i < 3; i++) { if (opdi_conv_gradient(call, i, &q, g, x, w) != 0) { return -1; } }
    return 0;
}
/* With gI, gW, gb what convolution_backward gives, and ggI, ggW, ggb their gradients (at::native::_convolution_double_backward):
   d grad_output = conv(ggI, weight) + conv(input, ggW) + ggb;  d weight = gW(ggI, grad_output);  d input = gI(ggW, grad_output) */
static opd_tensor *opdi_conv_again(opd_backward_call *bw, opd_tensor *x, opd_tensor *w) {
    return opd_convolution(x, w, NULL, opdi_bw_ints(bw, 4), opdi_bw_ints(bw, 5), opdi_bw_ints(bw, 6), opd_bw_value(bw, 7).u.i != 0,
                           opdi_bw_ints(bw, 8), opd_bw_value(bw, 9).u.i);
}
static opd_tensor *opdi_conv_back_again(opd_backward_call *bw, opd_tensor *x, opd_tensor *w, int i) {
    bool mask[3] = {false, false, false};
    opd_tensor *rets[3];
    mask[i] = true;
    if (opd_convolution_backward(rets, opd_bw_tensor(bw, 0), x, w, OPD_NONE, opdi_bw_ints(bw, 4), opdi_bw_ints(bw, 5), opdi_bw_ints(bw, 6),
                                 opd_bw_value(bw, 7).u.i != 0, opdi_bw_ints(bw, 8), opd_bw_value(bw, 9).u.i, opd_value_bools(mask, 3)) != 0) { return NULL; }
    return rets[i];
}
OPDI_BW1(convolution_backward) {
    opd_tensor *gi = opd_bw_grad(bw, 0), *gw = opd_bw_grad(bw, 1), *gb = opd_bw_grad(bw, 2);
    opd_tensor *x = opd_bw_tensor(bw, 1), *w = opd_bw_tensor(bw, 2), *go = opd_bw_tensor(bw, 0), *sum = NULL;
    if (!x || !w || !go) { return -1; }
    if (opd_bw_needs(bw, 0)) {
        if (gi) { sum = opdi_conv_again(bw, gi, w); }
        if (gw) { opd_tensor *y = opdi_conv_again(bw, x, gw); sum = sum ? opd_add(sum, y) : y; }
        if (gb) {
            int64_t sizes[5] = {1, -1, 1, 1, 1};
            opd_tensor *b = opdi_expand_to(opdi_reshape_to(gb, sizes, go->ndim), opdi_sizes(go), go->ndim);
            sum = sum ? opd_add(sum, b) : b;
        }
        if (sum && opd_bw_return(bw, 0, sum) != 0) { return -1; }
    }
    if (gw) { OPDI_GIVE(1, opdi_conv_back_again(bw, x, gw, 0)); }
    if (gi) { OPDI_GIVE(2, opdi_conv_back_again(bw, gi, w, 1)); }
    return opd_ok() ? 0 : -1;
}
OPDI_OP(convolution_backward) {
    op->schema = "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, int[] stride, int[] padding, "
                 "int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)";
    op->cpu = opdi_convolution_backward_kernel; op->fake = opdi_convolution_backward_kernel; op->backward = opdi_convolution_backward_backward;
    op->save = "grad_output, input, weight"; op->vmap = OPD_BATCH_LOOP; op->autocast = OPD_AUTOCAST_KEEP;
    op->out = "convolution_backward.out(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, int[] stride, int[] padding, int[] dilation, "
              "bool transposed, int[] output_padding, int groups, bool[3] output_mask, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2) -> "
              "(Tensor(a!), Tensor(b!), Tensor(c!))";
    op->cases = "[2,3,5,3], [2,2,5,4], [3,2,3,2], (3,), (1,1), (1,0), (1,1), False, (0,0), 1, (True,True,True)";
}

//-- what calls convolution ----------------------------------------------------------------------------------------------------

OPDI_KERNEL(under_convolution) {                  /* _convolution: the flags of other backends mean nothing here */
    const opd_value *a = opd_call_args(call);
    return opd_return_tensor(call, opd_convolution(a[0].u.t, a[1].u.t, opd_arg_tensor(call, 2), opd_arg_ints(call, 3), opd_arg_ints(call, 4), opd_arg_ints(call, 5),
                                                   opd_arg_bool(call, 6), opd_arg_ints(call, 7), opd_arg_int(call, 8)));
}
#define OPDI_CONV_ARGS "Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, " \
                       "int groups, bool benchmark, bool deterministic, bool cudnn_enabled"
OPDI_OP(_convolution) {
    opdi_card_above(op, "_convolution(" OPDI_CONV_ARGS ", bool allow_tf32) -> Tensor", opdi_under_convolution_kernel, OPD_AUTOCAST_LOWER, "_convolution.out",
                    "[1,2,4,4], [3,2,2,2], [3], (1,1), (0,0), (1,1), False, (0,0), 1, False, False, True, True");
}
OPDI_OP(_convolution_deprecated) {
    opdi_card_above(op, "_convolution.deprecated(" OPDI_CONV_ARGS ") -> Tensor", opdi_under_convolution_kernel, OPD_AUTOCAST_LOWER, NULL,
                    "[1,2,4,4], [3,2,2,2], [3], (1,1), (0,0), (1,1), False, (0,0), 1, False, False, True");
}
/* padding='same': where the sides differ the bigger one is used on both, and the first outputs are left out. */
static opd_tensor *opdi_conv_same(opd_tensor *x, opd_tensor *w, opd_tensor *bias, opd_ints stride, opd_ints dilation, int64_t groups, opd_ints zero) {
    int64_t pad[3], skip[3];
    int i, nd = w->ndim - 2;
    opd_tensor *y;
    bool uneven = false;
    if (nd < 1 || nd > 3) { (void)opd_fail(OPD_ERROR_SHAPE, "weight should have at least three dimensions"); return NULL; }
    for (i = 0; i < stride.n; i++) {
        if (stride.data[i] != 1) { (void)opd_fail(OPD_ERROR_ARGUMENT, "padding='same' is not supported for strided convolutions"); return NULL; }
    }
    for (i = 0; i < nd; i++) {
        const int64_t d = dilation.n == 0 ? 1 : dilation.data[dilation.n == 1 ? 0 : OPDI_MIN((int64_t)i, dilation.n - 1)];
        const int64_t total = d > 0 && d < (int64_t)1 << 30 ? d * (opdi_sizes(w)[2 + i] - 1) : 0;
        pad[i] = total / 2 + total % 2;
        skip[i] = total % 2;
        uneven |= skip[i] != 0;
    }
    y = opd_convolution(x, w, bias, stride, opd_ints_of(pad, nd), dilation, false, zero, groups);
    if (!uneven) { return y; }
    for (i = 0; i < nd; i++) {
        if (skip[i]) { y = opd_slice(y, 2 + i, opd_value_int(1), OPD_NONE, 1); }
    }
    return opd_contiguous(y);
}
/* conv<nd>d and conv_transpose<nd>d.  Input without a batch gets one. */
static int opdi_conv_nd(opd_call *call, int nd, bool transposed) {
    static const int64_t zeros[1] = {0};
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2), *y;
    const opd_ints stride = opd_arg_ints(call, 3), zero = opd_ints_of(zeros, 1);
    const bool batched = x->ndim == nd + 2, text = opd_call_args(call)[4].tag == OPD_TAG_STR;
    if (!batched && x->ndim != nd + 1) {
        char a[256];
        return opd_fail(OPD_ERROR_SHAPE, "Expected %dD (unbatched) or %dD (batched) input to conv%s%dd, but got input of size: %s", nd + 1, nd + 2,
                        transposed ? "_transpose" : "", nd, opdi_sizes_text(opdi_sizes(x), x->ndim, a, sizeof a));
    }
    if (!batched) { x = opdi_unsqueeze_at(x, 0); }
    if (!x) { return -1; }
    if (transposed) {
        y = opd_convolution(x, w, bias, stride, opd_arg_ints(call, 4), opd_arg_ints(call, 7), true, opd_arg_ints(call, 5), opd_arg_int(call, 6));
    } else if (!text) {
        y = opd_convolution(x, w, bias, stride, opd_arg_ints(call, 4), opd_arg_ints(call, 5), false, zero, opd_arg_int(call, 6));
    } else if (strcmp(opd_arg_str(call, 4), "valid") == 0) {
        y = opd_convolution(x, w, bias, stride, zero, opd_arg_ints(call, 5), false, zero, opd_arg_int(call, 6));
    } else if (strcmp(opd_arg_str(call, 4), "same") == 0) {
        y = opdi_conv_same(x, w, bias, stride, opd_arg_ints(call, 5), opd_arg_int(call, 6), zero);
    } else { return opd_fail(OPD_ERROR_ARGUMENT, "Invalid padding string: '%s'", opd_arg_str(call, 4)); }
    return opd_return_tensor(call, batched ? y : opdi_squeeze_at(y, 0));
}
#define OPDI_CONV_ND(card, schema_, nd, transposed, cases_)                                                 \
    OPDI_KERNEL(card) { return opdi_conv_nd(call, nd, transposed); }                                        \
    OPDI_OP(card) { opdi_card_above(op, schema_, opdi_##card##_kernel, OPD_AUTOCAST_LOWER, NULL, cases_); }
OPDI_CONV_ND(conv1d, "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
             1, false, "[1,2,5], [3,2,2], [3]; [2,5], [3,2,2]")
OPDI_CONV_ND(conv1d_padding, "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding='valid', int[1] dilation=1, "
             "int groups=1) -> Tensor", 1, false, "[1,2,5], [3,2,2], [3], 1, 'same'")
OPDI_CONV_ND(conv2d, "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
             2, false, "[1,2,5,4], [3,2,2,3], [3]; [2,4,4], [3,2,2,2], None, 2, 1")
OPDI_CONV_ND(conv2d_padding, "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding='valid', int[2] dilation=1, "
             "int groups=1) -> Tensor", 2, false, "[1,2,4,4], [3,2,2,3], [3], 1, 'same'")
OPDI_CONV_ND(conv3d, "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, int[3] dilation=1, int groups=1) -> Tensor",
             3, false, "[1,2,3,3,3], [2,2,2,2,2], [2]")
OPDI_CONV_ND(conv3d_padding, "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str padding='valid', int[3] dilation=1, "
             "int groups=1) -> Tensor", 3, false, "[1,2,3,3,3], [2,2,2,2,2], [2], 1, 'same'")
OPDI_CONV_ND(conv_transpose1d, "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] output_padding=0, "
             "int groups=1, int[1] dilation=1) -> Tensor", 1, true, "[1,2,4], [2,3,2], [3]")
OPDI_CONV_ND(conv_transpose2d_input, "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
             "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor", 2, true, "[1,2,3,3], [2,3,2,2], [3], 2, 1, 1")
OPDI_CONV_ND(conv_transpose3d_input, "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
             "int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor", 3, true, "[1,2,2,2,2], [2,1,2,2,2]")

//-- end of convolution and pooling --------------------------------------------------------------------------------------------

//-- normalisation, losses, dropout --------------------------------------------------------------------------------------
//
//  First what this room and the next share: conversions to contiguous memory, results that begin as a copy of self, and
//  public operators called by name.

/* t itself, or a contiguous copy of another dtype: what loops read. */
static opd_tensor *opdi_as(opd_tensor *t, opd_scalar_type dtype) {
    opd_tensor *r;
    if (t->dtype == (int8_t)dtype && (t->flags & OPDI_CONTIGUOUS)) { return t; }
    r = opdi_tensor_make(t->dims, NULL, t->ndim, dtype, OPD_CPU);
    if (!r || !opdi_own(r) || opdi_copy(r, t)) { return NULL; }
    return r;
}
static opd_tensor *opdi_packed(opd_tensor *t) { return opdi_as(t, (opd_scalar_type)t->dtype); }
/* Where a loop over dtype writes: out itself, or a contiguous tensor that opdi_settle then copies to it. */
static opd_tensor *opdi_desk(opd_tensor *out, opd_scalar_type dtype) {
    if (out->dtype == (int8_t)dtype && (out->flags & OPDI_CONTIGUOUS)) { return out; }
    return opdi_own(opdi_tensor_make(out->dims, NULL, out->ndim, dtype, OPD_CPU));
}
static int opdi_settle(opd_tensor *out, opd_tensor *desk) { return out == desk ? 0 : opdi_copy(out, desk); }
static opd_tensor *opdi_desk_f32(opd_tensor *out) {
    return opdi_desk(out, out->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32);
}

/* c10::maybe_wrap_dim; -1 with the error. */
static int opdi_dim_of(int64_t dim, int ndim) {
    const int n = OPDI_MAX(ndim, 1);
    if (dim < -n || dim >= n) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -n, n - 1, (long long)dim);
    }
    return (int)(dim < 0 ? dim + n : dim);
}
static int64_t opdi_span_of(const int64_t *sizes, int from, int to) {
    int64_t n = 1;
    for (; from < to; from++) { n *= sizes[from]; }
    return n;
}

/* Calls a public operator by name; arguments that are OPD_DEFAULT have the schema's default. */
static opd_tensor *opdi_aten(opd_op **h, const char *name, opd_value a, opd_value b, opd_value c, opd_value d) {
    opd_value v[4];
    opd_op *op = OPD_OP(h, name);
    if (!op) { return NULL; }
    v[0] = a; v[1] = b; v[2] = c; v[3] = d;
    return opd_call_op(op, v, OPDI_MIN(4, op->nargs));
}
static opd_tensor *opdi_o_zeros(opd_tensor *like, opd_ints sizes) {
    static opd_op *h;
    return opdi_aten(&h, "aten::new_zeros", opd_value_tensor(like), opd_value_of_ints(sizes), OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_narrow(opd_tensor *t, int dim, int64_t start, int64_t length) {
    static opd_op *h;
    opd_value v[4];
    v[0] = opd_value_tensor(t); v[1] = opd_value_int(dim); v[2] = opd_value_int(start); v[3] = opd_value_int(start + length);
    return t ? opd_call_op(OPD_OP(&h, "aten::slice.Tensor"), v, 4) : NULL;
}
static opd_tensor *opdi_o_select(opd_tensor *t, int64_t dim, int64_t index) {
    static opd_op *h;
    return opdi_aten(&h, "aten::select.int", opd_value_tensor(t), opd_value_int(dim), opd_value_int(index), OPD_DEFAULT);
}
static opd_tensor *opdi_o_reshape(opd_tensor *t, const int64_t *sizes, int64_t n) {
    static opd_op *h;
    return opdi_aten(&h, "aten::reshape", opd_value_tensor(t), opd_value_ints(sizes, n), OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_expand(opd_tensor *t, const int64_t *sizes, int64_t n) {
    static opd_op *h;
    return opdi_aten(&h, "aten::expand", opd_value_tensor(t), opd_value_ints(sizes, n), OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_unsqueeze(opd_tensor *t, int64_t dim) {
    static opd_op *h;
    return opdi_aten(&h, "aten::unsqueeze", opd_value_tensor(t), opd_value_int(dim), OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_sum(opd_tensor *t) {
    static opd_op *h;
    return opdi_aten(&h, "aten::sum", opd_value_tensor(t), OPD_DEFAULT, OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_mean(opd_tensor *t) {
    static opd_op *h;
    return opdi_aten(&h, "aten::mean", opd_value_tensor(t), OPD_DEFAULT, OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_sum_dims(opd_tensor *t, const int64_t *dims, int64_t n, bool keep) {
    static opd_op *h;
    return opdi_aten(&h, "aten::sum.dim_IntList", opd_value_tensor(t), opd_value_ints(dims, n), opd_value_bool(keep), OPD_DEFAULT);
}
static opd_tensor *opdi_o_mean_dims(opd_tensor *t, const int64_t *dims, int64_t n, bool keep) {
    static opd_op *h;
    return opdi_aten(&h, "aten::mean.dim", opd_value_tensor(t), opd_value_ints(dims, n), opd_value_bool(keep), OPD_DEFAULT);
}

static void opdi_card_of(opd_op_desc *op, const char *schema, opd_kernel cpu, opd_backward_fn backward, const char *save,
                         opd_vmap_rule vmap, opd_autocast autocast, const char *cases) {
    op->schema = schema; op->cpu = cpu; op->fake = cpu; op->backward = backward; op->save = save;
    op->vmap = vmap; op->autocast = autocast; op->cases = cases;
}
/* One kernel for every backend, made of public operators. */
static void opdi_card_any(opd_op_desc *op, const char *schema, opd_kernel any, opd_backward_fn backward, const char *save,
                          opd_autocast autocast, const char *cases) {
    op->schema = schema; op->any = any; op->backward = backward; op->save = save;
    op->vmap = OPD_BATCH_LOOP; op->autocast = autocast; op->cases = cases;
}
static void opdi_card_composite(opd_op_desc *op, const char *schema, opd_kernel composite, opd_autocast autocast, const char *cases) {
    op->schema = schema; op->composite = composite; op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = autocast; op->cases = cases;
}

//======================================================================================================================
//  >>op:index  indexing, joining, scattering
//======================================================================================================================

//-- results that begin as a copy of self ----------------------------------------------------------------------------------

/* Result 0 filled with self.  The in-place form works on self at once when no other argument looks at its memory.  With
   `keep_strides` a fresh result has self's strides.  NULL with an error; its data is NULL on fakes. */
static opd_tensor *opdi_update(opd_call *call, bool keep_strides) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out;
    if (call->inplace && call->targets && call->targets[0] == self && !opdi_overlaps_itself(self)) {
        bool shared = false;
        int i, k;
        for (i = 1; i < call->op->nargs; i++) {
            const opd_value *v = &call->args[i];
            if (v->tag == OPD_TAG_TENSOR) { shared = shared || v->u.t->storage == self->storage; }
            for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
                if (v->u.tensors[k]) { shared = shared || v->u.tensors[k]->storage == self->storage; }
            }
        }
        if (!shared) {
            call->rets[0] = opd_value_tensor(self);
            call->filled |= 1u;
            return self;
        }
    }
    keep_strides = keep_strides && opdi_is_dense(self);
    out = opd_result_strided(call, 0, opdi_sizes(self), keep_strides ? opdi_strides(self) : NULL, self->ndim,
                             (opd_scalar_type)self->dtype, opd_tensor_device(self));
    if (out && out->data && opdi_copy(out, self)) { return NULL; }
    return out;
}
/* A desk that holds what `out` holds. */
static opd_tensor *opdi_desk_filled(opd_tensor *out, opd_scalar_type dtype) {
    opd_tensor *d = opdi_desk(out, dtype);
    return d && d != out && opdi_copy(d, out) ? NULL : d;
}
static int opdi_index_dtype(const opd_tensor *index, const char *text) {
    return index->dtype == OPD_INT64 || index->dtype == OPD_INT32 ? 0 : opd_fail(OPD_ERROR_DTYPE, "%s", text);
}
static int opdi_out_of_bounds(int64_t i, int dim, int64_t size) {
    return opd_fail(OPD_ERROR_INDEX, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, dim, (long long)size);
}
/* Indices as contiguous int64, each in [0, size) after adding size to negative ones where `wrap` says so; -1 in *bad when
   all are, else the position of the first that is not. */
static opd_tensor *opdi_index_load(opd_tensor *index, int64_t size, bool wrap, int64_t *bad) {
    opd_tensor *t = opdi_as(index, OPD_INT64);
    const int64_t *p;
    int64_t i, n, negative = 0;
    *bad = -1;
    if (!t) { return NULL; }
    p = (const int64_t *)(const void *)t->data;
    for (n = t->numel, i = 0; i < n; i++) {
        const int64_t k = p[i] < 0 && wrap ? p[i] + size : p[i];
        if ((uint64_t)k >= (uint64_t)size) { *bad = i; return t; }
        negative |= p[i];
    }
    if (negative < 0) {                           /* wrapped ones: in a copy */
        opd_tensor *c = opdi_own(opdi_tensor_make(t->dims, NULL, t->ndim, OPD_INT64, OPD_CPU));
        int64_t *q;
        if (!c) { return NULL; }
        q = (int64_t *)(void *)c->data;
        for (i = 0; i < n; i++) { q[i] = p[i] < 0 ? p[i] + size : p[i]; }
        return c;
    }
    return t;
}

//-- gather, scatter: one walk ---------------------------------------------------------------------------------------------
//
//  For every position p of `index`: a's element lies at p with dim `dim` replaced by index[p], b's at p.

enum { OPDI_WALK_GATHER = 0, OPDI_WALK_SCATTER, OPDI_WALK_ADD, OPDI_WALK_MUL, OPDI_WALK_MAX, OPDI_WALK_MIN };
typedef struct opdi_indexed {
    int ndim, row, kind, size, compute;           /* row: the dim that inner loops run along; size of an element in bytes */
    int64_t sizes[OPD_MAX_DIMS];                  /* of index */
    int64_t as[OPD_MAX_DIMS], bs[OPD_MAX_DIMS];   /* strides in elements; a's is 0 along dim */
    int64_t at;                                   /* a's stride along dim */
    const int64_t *index;                         /* contiguous, checked */
    char *a, *b;
} opdi_indexed;

#define OPDI_INDEXED_MOVE(T) {                                                                             \
        T *pa = (T *)(void *)a; T *pb = (T *)(void *)b;                                                    \
        if (w->kind == OPDI_WALK_GATHER) { for (k = 0; k < n; k++) { pb[k * bs] = pa[k * as + x[k] * at]; } } \
        else { for (k = 0; k < n; k++) { pa[k * as + x[k] * at] = pb[k * bs]; } }                          \
        break; }
#define OPDI_INDEXED_FOLD(T, ADD, MUL) {                                                                   \
        T *pa = (T *)(void *)a; const T *pb = (const T *)(const void *)b;                                  \
        for (k = 0; k < n; k++) {                                                                          \
            T *p = pa + k * as + x[k] * at; const T u = *p, v = pb[k * bs];                                \
            switch (w->kind) {                                                                             \
                case OPDI_WALK_ADD: *p = ADD; break;                                                       \
                case OPDI_WALK_MUL: *p = MUL; break;                                                       \
                case OPDI_WALK_MAX: *p = u > v || !(u <= u) ? u : v; break;                                \
                default: *p = u < v || !(u <= u) ? u : v; break;                                           \
            }                                                                                              \
        } break; }
static void opdi_indexed_row(const opdi_indexed *w, char *a, char *b, const int64_t *x) {
    const int64_t n = w->sizes[w->row], as = w->as[w->row], bs = w->bs[w->row], at = w->at;
    int64_t k;
    if (w->kind >= OPDI_WALK_ADD) {
        switch (w->compute) {
            case OPDI_F32: OPDI_INDEXED_FOLD(float, u + v, u * v)
            case OPDI_F64: OPDI_INDEXED_FOLD(double, u + v, u * v)
            default: OPDI_INDEXED_FOLD(int64_t, opdi_wrap_add(u, v), opdi_wrap_mul(u, v))
        }
        return;
    }
    switch (w->size) {
        case 1: OPDI_INDEXED_MOVE(uint8_t)
        case 2: OPDI_INDEXED_MOVE(uint16_t)
        case 4: OPDI_INDEXED_MOVE(uint32_t)
        case 8: OPDI_INDEXED_MOVE(uint64_t)
        default:
            for (k = 0; k < n; k++) {
                char *pa = a + (k * as + x[k] * at) * w->size, *pb = b + k * bs * w->size;
                if (w->kind == OPDI_WALK_GATHER) { memcpy(pb, pa, (size_t)w->size); } else { memcpy(pa, pb, (size_t)w->size); }
            }
    }
}
/* Rows [begin, end), counted over all dims but `row`. */
static void opdi_indexed_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_indexed *w = (const opdi_indexed *)ctx;
    int64_t r;
    for (r = begin; r < end; r++) {
        int64_t rest = r, a = 0, b = 0;
        int d;
        for (d = w->ndim - 1; d >= 0; d--) {
            int64_t at;
            if (d == w->row) { continue; }
            at = rest % w->sizes[d];
            rest /= w->sizes[d];
            a += at * w->as[d]; b += at * w->bs[d];
        }
        opdi_indexed_row(w, w->a + a * w->size, w->b + b * w->size, w->index + r * w->sizes[w->row]);
    }
}
/* a: the tensor that is indexed along dim; b: the one walked with index, with sizes at least those of index (stride 0 for
   one number).  Both of a's dtype. */
static int opdi_indexed_run(int kind, opd_tensor *a, int dim, opd_tensor *index, opd_tensor *b) {
    opdi_indexed w;
    int64_t bad, size = a->ndim ? opdi_sizes(a)[dim] : 1;
    opd_tensor *x;
    int d;
    if (index->numel == 0) { return 0; }
    x = opdi_index_load(index, size, false, &bad);
    if (!x) { return -1; }
    if (bad >= 0) { return opdi_out_of_bounds(((const int64_t *)(const void *)x->data)[bad], dim, size); }
    w.kind = kind; w.size = (int)opd_dtype_size((opd_scalar_type)a->dtype); w.compute = opdi_compute_type((opd_scalar_type)a->dtype);
    w.ndim = OPDI_MAX((int)index->ndim, 1); w.index = (const int64_t *)(const void *)x->data; w.a = a->data; w.b = b->data;
    w.sizes[0] = 1; w.as[0] = w.bs[0] = 0;
    w.at = a->ndim ? opdi_strides(a)[dim] : 0;
    for (d = 0; d < index->ndim; d++) {
        w.sizes[d] = opdi_sizes(index)[d];
        w.as[d] = d == dim || a->ndim == 0 ? 0 : opdi_strides(a)[d];
        w.bs[d] = b->ndim == 0 ? 0 : opdi_strides(b)[d];
    }
    for (w.row = w.ndim - 1; w.row > 0 && w.sizes[w.row] == 1; w.row--) { }
    d = (int)OPDI_MIN(index->numel, 1 << 30);
    if (kind == OPDI_WALK_GATHER) {
        opdi_parallel_for(index->numel / w.sizes[w.row], OPDI_MAX((int64_t)1, OPDI_GRAIN / w.sizes[w.row]), opdi_indexed_part, &w);
    } else { opdi_indexed_part(&w, 0, index->numel / w.sizes[w.row]); }
    return 0;
}
/* The shape checks of gather (src NULL) and scatter (ScatterGatherChecks.h). */
static int opdi_indexed_check(const opd_tensor *self, int dim, const opd_tensor *index, const opd_tensor *src, const char *name) {
    char a[256], b[256], c[256];
    bool wrong = false, wrong_src = false;
    int d;
    if (index->numel == 0) { return 0; }
    if (index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "%s(): Expected dtype int64 for index", name); }
    if (OPDI_MAX((int)self->ndim, 1) != OPDI_MAX((int)index->ndim, 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "Index tensor must have the same number of dimensions as %s tensor", *name == 'g' ? "input" : "self");
    }
    if (src && OPDI_MAX((int)src->ndim, 1) != OPDI_MAX((int)index->ndim, 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "Index tensor must have the same number of dimensions as src tensor");
    }
    for (d = 0; d < index->ndim; d++) {
        const int64_t n = opdi_sizes(index)[d];
        if (d != dim && n > (self->ndim ? opdi_sizes(self)[d] : 1)) { wrong = true; }
        if (src && n > (src->ndim ? opdi_sizes(src)[d] : 1)) { wrong_src = true; }
    }
    if (!wrong && !wrong_src) { return 0; }
    opdi_sizes_text(opdi_sizes(index), index->ndim, a, sizeof a);
    opdi_sizes_text(opdi_sizes(self), self->ndim, b, sizeof b);
    if (!src) { return opd_fail(OPD_ERROR_SHAPE, "Size does not match: expected index %s to be smaller than self %s apart from dimension %d", a, b, dim); }
    return opd_fail(OPD_ERROR_SHAPE, "Expected index %s to be smaller than self %s apart from dimension %d and to be smaller size than src %s",
                    a, b, dim, opdi_sizes_text(opdi_sizes(src), src->ndim, c, sizeof c));
}

OPDI_KERNEL(gather) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *out;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    if (dim < 0 || opdi_indexed_check(self, dim, index, NULL, "gather")) { return -1; }
    out = opd_result(call, 0, opdi_sizes(index), index->ndim, (opd_scalar_type)self->dtype);
    return !out ? -1 : !out->data ? 0 : opdi_indexed_run(OPDI_WALK_GATHER, self, dim, index, out);
}
OPDI_BW1(gather) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_scatter_add(opdi_o_zeros(g, opd_bw_sizes(bw, 0)), opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2), g));
}
OPDI_OP(gather) {
    opdi_card_of(op, "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor", opdi_gather_kernel,
                 opdi_gather_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [3,2]i4; [3,4], 0, [2,4]i3");
    op->out = "gather.out";
}

/* A Scalar as a 0-dim tensor of the dtype. */
static opd_tensor *opdi_filler(opd_value v, opd_scalar_type dtype) {
    opdi_number n;
    opd_tensor *t = opdi_own(opdi_tensor_make(NULL, NULL, 0, dtype, OPD_CPU));
    if (!t || opdi_copy(t, opdi_number_make(&n, v))) { return NULL; }
    return t;
}
/* scatter in all its forms: kind SCATTER moves, the others fold in the compute type.  scale NULL or a number. */
static int opdi_scatter_kind(opd_call *call, int kind, const char *name) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src, *out, *desk;
    opd_value v = opd_arg_value(call, 3);
    opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    src = v.tag == OPD_TAG_TENSOR ? v.u.t : NULL;
    if (dim < 0) { return -1; }
    if (index->numel && index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "%s(): Expected dtype int64 for index", name); }
    if (src && src->dtype != self->dtype) { return opd_fail(OPD_ERROR_DTYPE, "%s(): Expected self.dtype to be equal to src.dtype", name); }
    if (opdi_indexed_check(self, dim, index, src ? src : self, name) && src) { return -1; }
    if (!src && !opd_ok()) { return -1; }
    if (kind != OPDI_WALK_SCATTER && opd_dtype_is_complex(dtype)) { return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", name, opd_dtype_cname(dtype)); }
    out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (!src && !(src = opdi_filler(v, dtype))) { return -1; }
    if (kind == OPDI_WALK_SCATTER) { return opdi_indexed_run(kind, out, dim, index, src); }
    dtype = (opd_scalar_type)opdi_compute_dtype[opdi_compute_type(dtype)];
    desk = opdi_desk_filled(out, dtype);
    if (desk && dtype != (opd_scalar_type)src->dtype) { src = opdi_as(src, dtype); }
    return desk && src && opdi_indexed_run(kind, desk, dim, index, src) == 0 ? opdi_settle(out, desk) : -1;
}
OPDI_KERNEL(scatter_src) { return opdi_scatter_kind(call, OPDI_WALK_SCATTER, "scatter"); }
OPDI_KERNEL(scatter_add) { return opdi_scatter_kind(call, OPDI_WALK_ADD, "scatter_add"); }
OPDI_KERNEL(scatter_reduce) {
    const char *how = opd_arg_str(call, 4);
    if (strcmp(how, "add") == 0) { return opdi_scatter_kind(call, OPDI_WALK_ADD, "scatter"); }
    if (strcmp(how, "multiply") == 0) { return opdi_scatter_kind(call, OPDI_WALK_MUL, "scatter"); }
    return opd_fail(OPD_ERROR_ARGUMENT, "reduce argument must be either add or multiply.");
}
OPDI_BW1(scatter_src) {
    opd_tensor *g = opd_bw_grad(bw, 0), *index = opd_bw_tensor(bw, 2);
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    OPDI_GIVE(0, opd_scatter_value(g, dim, index, opd_value_int(0)));
    OPDI_GIVE(3, opd_gather(g, dim, index));
    return 0;
}
OPDI_BW1(scatter_add) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, g);
    OPDI_GIVE(3, opd_gather(g, opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2)));
    return 0;
}
OPDI_BW1(refused) {
    (void)bw;
    return opd_fail(OPD_ERROR_AUTOGRAD, "the derivative of this operator is not implemented (PyTorch has none either)");
}
OPDI_OP(scatter_src) {
    opdi_card_of(op, "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", opdi_scatter_src_kernel,
                 opdi_scatter_src_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [3,1]i4, [3,1]");
    op->inplace = "scatter_.src"; op->out = "scatter.src_out";
}
OPDI_OP(scatter_value) {
    opdi_card_of(op, "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", opdi_scatter_src_kernel,
                 opdi_scatter_src_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [3,1]i4, 1.5");
    op->inplace = "scatter_.value"; op->out = "scatter.value_out";
}
OPDI_OP(scatter_reduce) {
    opdi_card_of(op, "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor", opdi_scatter_reduce_kernel,
                 opdi_refused_backward, "", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "");
    op->inplace = "scatter_.reduce"; op->out = "scatter.reduce_out";
}
OPDI_OP(scatter_value_reduce) {
    opdi_card_of(op, "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor", opdi_scatter_reduce_kernel,
                 opdi_refused_backward, "", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "");
    op->inplace = "scatter_.value_reduce"; op->out = "scatter.value_reduce_out";
}
OPDI_OP(scatter_add) {
    opdi_card_of(op, "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", opdi_scatter_add_kernel,
                 opdi_scatter_add_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_PROMOTE, "[3,4], 1, [3,2]i4, [3,2]");
    op->inplace = "scatter_add_"; op->out = "scatter_add.out";
}

/* scatter_reduce.two: sum, prod, mean, amax, amin; without include_self the places written begin anew. */
static const char *const opdi_reduce_names[] = {"sum", "prod", "amax", "amin", "mean"};
static int opdi_reduce_of(const char *name) {
    int i;
    for (i = 0; i < 5; i++) { if (strcmp(name, opdi_reduce_names[i]) == 0) { return i; } }
    return opd_fail(OPD_ERROR_ARGUMENT, "reduce argument must be either sum, prod, mean, amax or amin, got %s", name);
}
/* What a fold begins with, as a number of the compute type. */
static opd_value opdi_reduce_start(int how, opd_scalar_type t) {
    const bool whole = opd_dtype_is_integral(t, true);
    if (how == 1) { return opd_value_int(1); }
    if (how == 2) { return whole ? opd_value_int(INT64_MIN) : opd_value_float(-INFINITY); }
    if (how == 3) { return whole ? opd_value_int(INT64_MAX) : opd_value_float(INFINITY); }
    return opd_value_int(0);
}
/* desk /= max(count, 1), rounding down for integers. */
static void opdi_reduce_divide(opd_tensor *desk, const opd_tensor *count) {
    const int64_t *c = (const int64_t *)(const void *)count->data;
    int64_t i;
    for (i = 0; i < desk->numel; i++) {
        const int64_t k = OPDI_MAX(c[i], (int64_t)1);
        if (desk->dtype == OPD_FLOAT32) { ((float *)(void *)desk->data)[i] /= (float)k; }
        else if (desk->dtype == OPD_FLOAT64) { ((double *)(void *)desk->data)[i] /= (double)k; }
        else {
            int64_t *p = (int64_t *)(void *)desk->data + i, q = *p / k;
            *p = *p % k < 0 ? q - 1 : q;
        }
    }
}
/* Folds src into out at index along dim (index and src of one shape or src larger). */
static int opdi_reduce_into(opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src, int how, bool include_self) {
    const opd_scalar_type t = (opd_scalar_type)opdi_compute_dtype[opdi_compute_type((opd_scalar_type)out->dtype)];
    opd_tensor *desk = opdi_desk_filled(out, t), *count = NULL, *start;
    static const int kinds[] = {OPDI_WALK_ADD, OPDI_WALK_MUL, OPDI_WALK_MAX, OPDI_WALK_MIN, OPDI_WALK_ADD};
    if (!desk || (src->dtype != (int8_t)t && !(src = opdi_as(src, t)))) { return -1; }
    if (!include_self) {
        start = opdi_filler(opdi_reduce_start(how, t), t);
        if (!start || opdi_indexed_run(OPDI_WALK_SCATTER, desk, dim, index, start)) { return -1; }
    }
    if (opdi_indexed_run(kinds[how], desk, dim, index, src)) { return -1; }
    if (how == 4) {
        opd_tensor *one = opdi_filler(opd_value_int(1), OPD_INT64);
        start = opdi_filler(opd_value_int(include_self), OPD_INT64);
        count = opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, OPD_INT64, OPD_CPU));
        if (!one || !start || !count || opdi_copy(count, start) || opdi_indexed_run(OPDI_WALK_ADD, count, dim, index, one)) { return -1; }
        opdi_reduce_divide(desk, count);
    }
    return opdi_settle(out, desk);
}
OPDI_KERNEL(scatter_reduce_two) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3), *out;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim), how = opdi_reduce_of(opd_arg_str(call, 4));
    if (dim < 0 || how < 0) { return -1; }
    if (index->numel && index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "scatter(): Expected dtype int64 for index"); }
    if (src->dtype != self->dtype) { return opd_fail(OPD_ERROR_DTYPE, "scatter(): Expected self.dtype to be equal to src.dtype"); }
    if (opd_dtype_is_complex((opd_scalar_type)self->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "\"scatter_reduce\" not implemented for '%s'", opd_dtype_cname((opd_scalar_type)self->dtype)); }
    if (opdi_indexed_check(self, dim, index, src, "scatter")) { return -1; }
    out = opdi_update(call, false);
    return !out ? -1 : !out->data ? 0 : opdi_reduce_into(out, dim, index, src, how, opd_arg_bool(call, 5));
}
/* The gradients of scatter_reduce and index_reduce share these; "pick" is gather or index_select along dim. */
typedef struct opdi_picker { int64_t dim; opd_tensor *index; bool rows, include_self; } opdi_picker;
static opd_tensor *opdi_picked(const opdi_picker *p, opd_tensor *t) {
    return p->rows ? opd_index_select(t, p->dim, p->index) : opd_gather(t, p->dim, p->index);
}
static opd_tensor *opdi_drop_into(const opdi_picker *p, opd_tensor *t, opd_tensor *src) {
    return p->rows ? opd_index_add(t, p->dim, p->index, src) : opd_scatter_add(t, p->dim, p->index, src);
}
static opd_tensor *opdi_blank(const opdi_picker *p, opd_tensor *t, double v) {
    return p->rows ? opd_index_fill_int_Scalar(t, p->dim, p->index, opd_value_float(v)) : opd_scatter_value(t, p->dim, p->index, opd_value_float(v));
}
static opd_tensor *opdi_full_like(opd_tensor *t, double v) { return opdi_adds(opd_zeros_like(t), v); }
/* src as far as index reaches: what a gather gave. */
static opd_tensor *opdi_reach(const opdi_picker *p, opd_tensor *src) {
    int d;
    for (d = 0; !p->rows && d < p->index->ndim; d++) {
        if (opdi_sizes(src)[d] != opdi_sizes(p->index)[d]) { src = opdi_o_narrow(src, d, 0, opdi_sizes(p->index)[d]); }
        if (!src) { return NULL; }
    }
    return src;
}
/* Derivative of the product: each factor's share is result / factor; one zero among them is looked at by itself. */
static int opdi_reduce_prod_backward(opd_backward_call *bw, const opdi_picker *p, opd_tensor *g, opd_tensor *self, opd_tensor *src, int at) {
    opd_tensor *part = opdi_reach(p, src), *self_zero = opd_eq_Scalar(self, opd_value_int(0)), *zero = opd_eq_Scalar(part, opd_value_int(0));
    opd_tensor *base = p->include_self ? self : opdi_blank(p, self, 1), *base_zero = opd_eq_Scalar(base, opd_value_int(0));
    opd_tensor *zeros, *rest, *log1;
    (void)self_zero;
    zeros = opdi_drop_into(p, opd_mul_Scalar(base_zero, opd_value_float(1)), opd_mul_Scalar(zero, opd_value_float(1)));
    zeros = opd_mul(zeros, opdi_full_like(g, 1));
    log1 = opd_masked_fill_Scalar(part, zero, opd_value_int(1));
    rest = opd_masked_fill_Scalar(base, base_zero, opd_value_int(1));
    rest = p->rows ? opd_index_reduce(rest, p->dim, p->index, log1, "prod") : opd_scatter_reduce_two(rest, p->dim, p->index, log1, "prod");
    if (!rest) { return -1; }                     /* the product of all factors that are not zero */
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *d = opd_div(rest, opd_masked_fill_Scalar(base, base_zero, opd_value_int(1)));
        opd_tensor *others = opd_sub(zeros, opd_mul_Scalar(base_zero, opd_value_float(1)));
        d = opd_mul(opdi_unless(d, opd_gt_Scalar(others, opd_value_float(0.5))), g);
        if (!p->include_self) { d = opdi_blank(p, d, 0); }
        if (opd_bw_return(bw, 0, d)) { return -1; }
    }
    if (opd_bw_needs(bw, at)) {
        opd_tensor *d = opd_div(opdi_picked(p, rest), log1);
        opd_tensor *others = opd_sub(opdi_picked(p, zeros), opd_mul_Scalar(zero, opd_value_float(1)));
        d = opd_mul(opdi_unless(d, opd_gt_Scalar(others, opd_value_float(0.5))), opdi_picked(p, g));
        if (opd_bw_return(bw, at, d)) { return -1; }
    }
    return 0;
}
/* sum: g; mean: g / count; amax, amin: g shared among the places that hold the result. */
static int opdi_reduce_backward(opd_backward_call *bw, const opdi_picker *p, int how, opd_tensor *self, opd_tensor *src, opd_tensor *result, int at) {
    opd_tensor *g = opd_bw_grad(bw, 0), *part, *mine, *hit, *count, *ones;
    if (how == 0 || how == 4) {
        if (how == 4) {
            ones = opdi_full_like(g, 1);
            count = p->include_self ? ones : opdi_blank(p, ones, 0);
            count = opdi_drop_into(p, count, opdi_picked(p, ones));
            g = opd_div(g, opd_clamp_min(count, opd_value_int(1)));
        }
        OPDI_GIVE(0, p->include_self ? g : opdi_blank(p, g, 0));
        OPDI_GIVE(at, opdi_picked(p, g));
        return 0;
    }
    if (how == 1) { return opdi_reduce_prod_backward(bw, p, g, self, src, at); }
    part = opdi_reach(p, src);
    mine = opd_mul_Scalar(opd_eq(self, result), opd_value_float(1));
    hit = opd_mul_Scalar(opd_eq(part, opdi_picked(p, result)), opd_value_float(1));
    if (!p->include_self) { mine = opdi_blank(p, mine, 1); }
    count = opdi_drop_into(p, p->include_self ? mine : opdi_blank(p, mine, 0), hit);
    count = opd_clamp_min(count, opd_value_int(1));
    g = opd_div(g, count);
    OPDI_GIVE(0, p->include_self ? opd_mul(g, mine) : opdi_blank(p, g, 0));
    OPDI_GIVE(at, opd_mul(opdi_picked(p, g), hit));
    return 0;
}
OPDI_BW1(scatter_reduce_two) {
    opdi_picker p;
    p.dim = opd_bw_value(bw, 1).u.i; p.index = opd_bw_tensor(bw, 2); p.rows = false; p.include_self = opd_bw_value(bw, 5).u.i != 0;
    return opdi_reduce_backward(bw, &p, opdi_reduce_of(opd_bw_value(bw, 4).u.s), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 3), opd_bw_result(bw, 0), 3);
}
OPDI_OP(scatter_reduce_two) {
    opdi_card_of(op, "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
                 opdi_scatter_reduce_two_kernel, opdi_scatter_reduce_two_backward, "self, index, src, result", OPD_BATCH_SHIFT_DIM,
                 OPD_AUTOCAST_KEEP, "[3,4], 1, [3,2]i4, [3,2], 'sum'; [3,4], 1, [3,2]i4, [3,2], 'mean'");
    op->inplace = "scatter_reduce_.two"; op->out = "scatter_reduce.two_out";
}

//-- rows: index_select, index_add, index_copy, index_fill, index_reduce -----------------------------------------------------

typedef struct opdi_rows {                        /* a[outer][index[j]][inner] and b[outer][j][inner], contiguous */
    char *a, *b;
    const int64_t *index;
    int64_t size, n, inner, bytes;                /* rows of a, rows of b; elements of a row, bytes of a row */
    int compute;
    bool back;                                    /* b to a */
    double alpha;
} opdi_rows;
static void opdi_rows_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_rows *w = (const opdi_rows *)ctx;
    int64_t r = begin;
    while (r < end) {
        const int64_t o = r / w->n, stop = OPDI_MIN(end, (o + 1) * w->n);
        char *a = w->a + o * w->size * w->bytes, *b = w->b + r * w->bytes;
        const int64_t *x = w->index + (r - o * w->n);
        int64_t k, m = stop - r;
        if (w->back) { for (k = 0; k < m; k++) { memcpy(a + x[k] * w->bytes, b + k * w->bytes, (size_t)w->bytes); } }
        else if (w->bytes == 4) { for (k = 0; k < m; k++) { memcpy(b + k * 4, a + x[k] * 4, 4); } }
        else if (w->bytes == 8) { for (k = 0; k < m; k++) { memcpy(b + k * 8, a + x[k] * 8, 8); } }
        else { for (k = 0; k < m; k++) { memcpy(b + k * w->bytes, a + x[k] * w->bytes, (size_t)w->bytes); } }
        r = stop;
    }
}
#define OPDI_ROWS_ADD(T, EXPR) {                                                                            \
        T *p = (T *)(void *)(w->a + (o * w->size + w->index[j]) * w->bytes) + from;                         \
        const T *q = (const T *)(const void *)(w->b + (o * w->n + j) * w->bytes) + from;                    \
        for (k = 0; k < m; k++) { p[k] = EXPR; } break; }
/* a += alpha b.  One unit of work is a piece of 1024 elements of one outer index, its rows in order, so that the sums do not depend on the
   threads. */
static void opdi_rows_add(void *ctx, int64_t begin, int64_t end) {
    const opdi_rows *w = (const opdi_rows *)ctx;
    const int64_t pieces = (w->inner + 1023) / 1024;
    const float f = (float)w->alpha;
    int64_t u;
    for (u = begin; u < end; u++) {
        const int64_t o = u / pieces, from = u % pieces * 1024, m = OPDI_MIN((int64_t)1024, w->inner - from);
        int64_t j, k;
        for (j = 0; j < w->n; j++) {
            switch (w->compute) {
                case OPDI_F32: OPDI_ROWS_ADD(float, p[k] + f * q[k])
                case OPDI_F64: OPDI_ROWS_ADD(double, p[k] + w->alpha * q[k])
                default: OPDI_ROWS_ADD(int64_t, opdi_wrap_add(p[k], opdi_wrap_mul((int64_t)w->alpha, q[k])))
            }
        }
    }
}
/* Fills w for contiguous a indexed along dim by checked int64 indices. */
static int64_t opdi_rows_init(opdi_rows *w, opd_tensor *a, int dim, opd_tensor *index, opd_tensor *b) {
    w->a = a->data; w->b = b->data;
    w->index = (const int64_t *)(const void *)index->data;
    w->size = a->ndim ? opdi_sizes(a)[dim] : 1;
    w->n = index->numel;
    w->inner = a->ndim ? opdi_span_of(opdi_sizes(a), dim + 1, a->ndim) : 1;
    w->bytes = w->inner * (int64_t)opd_dtype_size((opd_scalar_type)a->dtype);
    w->compute = opdi_compute_type((opd_scalar_type)a->dtype);
    w->back = false; w->alpha = 1;
    return a->ndim ? opdi_span_of(opdi_sizes(a), 0, dim) : 1;
}
/* out = a's rows at index along dim; out is contiguous in the order outer, index, inner. */
static int opdi_rows_select(opd_tensor *a, int dim, opd_tensor *index, opd_tensor *out, const char *text) {
    const int64_t size = a->ndim ? opdi_sizes(a)[dim] : 1;
    opdi_rows w;
    int64_t bad, outer;
    opd_tensor *x, *desk;
    if (out->numel == 0 && index->numel == 0) { return 0; }
    x = opdi_index_load(index, size, false, &bad);
    if (!x) { return -1; }
    if (bad >= 0) { return opd_fail(OPD_ERROR_INDEX, "%s", text); }
    a = opdi_packed(a);
    desk = a ? opdi_desk(out, (opd_scalar_type)out->dtype) : NULL;
    if (!desk) { return -1; }
    outer = opdi_rows_init(&w, a, dim, x, desk);
    if (out->numel) { opdi_parallel_for(outer * w.n, OPDI_MAX((int64_t)1, 4 * OPDI_GRAIN / OPDI_MAX(w.bytes, (int64_t)1)), opdi_rows_part, &w); }
    return opdi_settle(out, desk);
}
OPDI_KERNEL(index_select) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *out;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    int64_t sizes[OPD_MAX_DIMS];
    if (dim < 0) { return -1; }
    if (index->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "index_select(): Index is supposed to be a vector"); }
    if (opdi_index_dtype(index, "index_select(): Expected dtype int32 or int64 for index")) { return -1; }
    if (self->ndim == 0 && index->numel != 1) {
        return opd_fail(OPD_ERROR_INDEX, "index_select(): Index to scalar can have only 1 value, got %lld value(s)", (long long)index->numel);
    }
    memcpy(sizes, opdi_sizes(self), sizeof *sizes * self->ndim);
    if (self->ndim) { sizes[dim] = index->numel; }
    out = opd_result(call, 0, sizes, self->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    return opdi_rows_select(self, dim, index, out, "index out of range in self");
}
OPDI_BW1(index_select) {
    return opd_bw_return(bw, 0, opd_index_select_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2)));
}
OPDI_OP(index_select) {
    opdi_card_of(op, "index_select(Tensor self, int dim, Tensor index) -> Tensor", opdi_index_select_kernel, opdi_index_select_backward,
                 "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [5]i4; [3,4], 0, [2]i3");
    op->out = "index_select.out";
}
OPDI_KERNEL(index_select_backward) {
    opd_tensor *g = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_index_add(opdi_o_zeros(g, opd_arg_ints(call, 1)), opd_arg_int(call, 2), opd_arg_tensor(call, 3), g));
}
OPDI_OP(index_select_backward) {
    opdi_card_composite(op, "index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index) -> Tensor",
                        opdi_index_select_backward_kernel, OPD_AUTOCAST_KEEP, "[3,2], (3,4), 1, [2]i4");
}

/* Checks shared by index_add, index_copy and index_reduce: index is a vector as long as source along dim, the other sizes
   agree. */
static int opdi_rows_check(const opd_tensor *self, int dim, const opd_tensor *index, const opd_tensor *src, const char *name) {
    const int64_t n = src->ndim ? opdi_sizes(src)[OPDI_MIN(dim, src->ndim - 1)] : 1;
    int d, k;
    if (index->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "%s: Index is supposed to be a vector, but got dim: %d with type: %s and size: %lld", name, index->ndim, opd_dtype_cname((opd_scalar_type)index->dtype), (long long)index->numel); }
    if (self->dtype != src->dtype) { return opd_fail(OPD_ERROR_DTYPE, "%s: self and source expected to have the same dtype, but got (self) %s and (source) %s", name, opd_dtype_cname((opd_scalar_type)self->dtype), opd_dtype_cname((opd_scalar_type)src->dtype)); }
    if (src->ndim && dim >= src->ndim) { return opd_fail(OPD_ERROR_INDEX, "%s: Indexing dim %d is out of bounds of tensor", name, dim); }
    if (index->numel != n) { return opd_fail(OPD_ERROR_SHAPE, "%s: Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %d", name, (long long)index->numel, (long long)n, dim); }
    if (self->ndim <= 1 && src->ndim <= 1) { return 0; }
    for (d = 0, k = self->ndim != src->ndim; d < self->ndim && !k; d++) { k = d != dim && opdi_sizes(self)[d] != opdi_sizes(src)[d]; }
    return k ? opd_fail(OPD_ERROR_SHAPE, "%s: Source/destination tensor must have same slice shapes. Destination slice dimension does not match source at dim %d", name, dim) : 0;
}
/* The desk, the source in its dtype and checked indices for a write of rows; 0, or -1. */
static int opdi_rows_open(opd_tensor *out, opd_scalar_type t, int dim, opd_tensor **index, opd_tensor **src, opd_tensor **desk, bool wrap,
                          const char *text) {
    const int64_t size = out->ndim ? opdi_sizes(out)[dim] : 1;
    int64_t bad;
    opd_tensor *x = opdi_index_load(*index, size, wrap, &bad);
    if (!x) { return -1; }
    if (bad >= 0) {
        return text ? opd_fail(OPD_ERROR_INDEX, "%s", text) : opdi_out_of_bounds(((const int64_t *)(const void *)x->data)[bad], dim, size);
    }
    *index = x;
    *src = opdi_as(*src, t);
    *desk = *src ? opdi_desk_filled(out, t) : NULL;
    return *desk ? 0 : -1;
}
OPDI_KERNEL(index_add) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3), *out, *desk;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    opd_scalar_type t = (opd_scalar_type)self->dtype;
    opd_value alpha = opd_arg_value(call, 4);
    opdi_rows w;
    int64_t outer;
    if (dim < 0 || opdi_index_dtype(index, "index_add_(): Expected dtype int32/int64 for index") ||
        opdi_rows_check(self, dim, index, src, "index_add_()") || opdi_alpha_check(t, alpha)) { return -1; }
    if (opd_dtype_is_complex(t)) { return opd_fail(OPD_ERROR_DTYPE, "\"index_add\" not implemented for '%s'", opd_dtype_cname(t)); }
    out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (opdi_rows_open(out, (opd_scalar_type)opdi_compute_dtype[opdi_compute_type(t)], dim, &index, &src, &desk, false, "index out of range in self")) { return -1; }
    outer = opdi_rows_init(&w, desk, dim, index, src);
    w.alpha = opdi_number_f64(alpha);
    if (src->numel) { opdi_parallel_for(outer * ((w.inner + 1023) / 1024), OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX(w.n * OPDI_MIN(w.inner, (int64_t)1024), (int64_t)1)), opdi_rows_add, &w); }
    return opdi_settle(out, desk);
}
/* g's rows at index, with the shape that source has. */
static opd_tensor *opdi_rows_back(opd_backward_call *bw, opd_tensor *g, int at) {
    opd_tensor *t = opd_index_select(g, opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2));
    const opd_ints sizes = opd_bw_sizes(bw, at);
    return t && sizes.n != t->ndim ? opdi_o_reshape(t, sizes.data, sizes.n) : t;
}
OPDI_BW1(index_add) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, g);
    OPDI_GIVE(3, opdi_scale(opdi_rows_back(bw, g, 3), opd_bw_value(bw, 4)));
    return 0;
}
OPDI_OP(index_add) {
    opdi_card_of(op, "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", opdi_index_add_kernel,
                 opdi_index_add_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [2]i4, [3,2]; [3,4], 0, [5]i3, [5,4], alpha=2");
    op->inplace = "index_add_"; op->out = "index_add.out";
}
OPDI_KERNEL(index_copy) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3), *out, *desk;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    opdi_rows w;
    if (dim < 0) { return -1; }
    if (index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "index_copy_(): Expected a long tensor for index, but got %s", opd_dtype_cname((opd_scalar_type)index->dtype)); }
    if (opdi_rows_check(self, dim, index, src, "index_copy_()")) { return -1; }
    out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (opdi_rows_open(out, (opd_scalar_type)out->dtype, dim, &index, &src, &desk, false, NULL)) { return -1; }
    if (src->numel) {
        const int64_t outer = opdi_rows_init(&w, desk, dim, index, src);
        w.back = true;
        opdi_rows_part(&w, 0, outer * w.n);
    }
    return opdi_settle(out, desk);
}
OPDI_BW1(index_copy) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    OPDI_GIVE(0, opd_index_fill_int_Scalar(g, opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2), opd_value_int(0)));
    OPDI_GIVE(3, opdi_rows_back(bw, g, 3));
    return 0;
}
OPDI_OP(index_copy) {
    opdi_card_of(op, "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", opdi_index_copy_kernel,
                 opdi_index_copy_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [1]i4, [3,1]");
    op->inplace = "index_copy_"; op->out = "index_copy.out";
}
OPDI_KERNEL(index_fill) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src, *out, *x, *fill;
    opd_value v = opd_arg_value(call, 3);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    int64_t strides[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS], bad, k;
    if (dim < 0) { return -1; }
    if (v.tag == OPD_TAG_TENSOR && v.u.t->ndim) { return opd_fail(OPD_ERROR_SHAPE, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).", v.u.t->ndim); }
    if (index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "index_fill_(): Expected dtype int64 for index."); }
    if (index->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "Index has to be a vector/scalar"); }
    if (v.tag == OPD_TAG_COMPLEX && !opd_dtype_is_complex((opd_scalar_type)self->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "index_fill_(): Converting complex Scalar to non-complex type is not supported"); }
    out = opdi_update(call, true);
    if (!out || !out->data) { return out ? 0 : -1; }
    x = opdi_index_load(index, self->ndim ? opdi_sizes(self)[dim] : 1, true, &bad);
    src = v.tag == OPD_TAG_TENSOR ? opdi_as(v.u.t, (opd_scalar_type)self->dtype) : opdi_filler(v, (opd_scalar_type)self->dtype);
    if (!x || !src) { return -1; }
    if (bad >= 0) { return opdi_out_of_bounds(((const int64_t *)(const void *)x->data)[bad], dim, self->ndim ? opdi_sizes(self)[dim] : 1); }
    if (out->ndim == 0) { return x->numel ? opdi_copy(out, src) : 0; }
    for (k = 0; k < out->ndim; k++) { sizes[k] = opdi_sizes(out)[k]; strides[k] = opdi_strides(out)[k]; }
    sizes[dim] = 1;
    for (k = 0; k < x->numel; k++) {
        OPD_SCOPE {
            fill = opdi_view(out, sizes, strides, out->ndim, ((const int64_t *)(const void *)x->data)[k] * strides[dim]);
            bad = fill ? opdi_copy(fill, src) : -1;
        }
        if (bad == -1 && !opd_ok()) { return -1; }
    }
    return 0;
}
OPDI_BW1(index_fill) {
    opd_tensor *g = opd_bw_grad(bw, 0), *index = opd_bw_tensor(bw, 2);
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    OPDI_GIVE(0, opd_index_fill_int_Scalar(g, dim, index, opd_value_int(0)));
    OPDI_GIVE(3, opdi_o_sum(opd_index_select(g, dim, index)));
    return 0;
}
OPDI_OP(index_fill_int_Scalar) {
    opdi_card_of(op, "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", opdi_index_fill_kernel,
                 opdi_index_fill_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [2]i4, 1.5");
    op->inplace = "index_fill_.int_Scalar"; op->out = "index_fill.int_Scalar_out";
}
OPDI_OP(index_fill_int_Tensor) {
    opdi_card_of(op, "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor", opdi_index_fill_kernel,
                 opdi_index_fill_backward, "index", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP, "[3,4], 1, [1]i4, []");
    op->inplace = "index_fill_.int_Tensor"; op->out = "index_fill.int_Tensor_out";
}
/* index_reduce: scatter_reduce with the index spread over source. */
static opd_tensor *opdi_rows_spread(opd_tensor *index, int dim, const opd_tensor *src) {
    int64_t strides[OPD_MAX_DIMS];
    int d;
    index = opdi_as(index, OPD_INT64);
    for (d = 0; d < src->ndim; d++) { strides[d] = d == dim ? 1 : 0; }
    return index ? opdi_view(index, opdi_sizes(src), strides, src->ndim, 0) : NULL;
}
OPDI_KERNEL(index_reduce) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3), *out;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim), how = opdi_reduce_of(opd_arg_str(call, 4));
    if (dim < 0 || how < 0) { return -1; }
    if (how == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum"); }
    if (opdi_index_dtype(index, "index_reduce(): Expected dtype int32/int64 for index") || opdi_rows_check(self, dim, index, src, "index_reduce()")) { return -1; }
    if (opd_dtype_is_complex((opd_scalar_type)self->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "\"index_reduce\" not implemented for '%s'", opd_dtype_cname((opd_scalar_type)self->dtype)); }
    out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    index = opdi_rows_spread(index, dim, src);
    return index ? opdi_reduce_into(out, dim, index, src, how, opd_arg_bool(call, 5)) : -1;
}
OPDI_BW1(index_reduce) {
    opdi_picker p;
    p.dim = opd_bw_value(bw, 1).u.i; p.index = opd_bw_tensor(bw, 2); p.rows = true; p.include_self = opd_bw_value(bw, 5).u.i != 0;
    return opdi_reduce_backward(bw, &p, opdi_reduce_of(opd_bw_value(bw, 4).u.s), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 3), opd_bw_result(bw, 0), 3);
}
OPDI_OP(index_reduce) {
    opdi_card_of(op, "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
                 opdi_index_reduce_kernel, opdi_index_reduce_backward, "self, index, source, result", OPD_BATCH_SHIFT_DIM, OPD_AUTOCAST_KEEP,
                 "[3,4], 1, [2]i4, [3,2], 'mean'");
    op->inplace = "index_reduce_"; op->out = "index_reduce.out";
}

//-- index, index_put, take, put: lists of index tensors ---------------------------------------------------------------------

/* What a list of indices says about self: its dims as before, indexed, after (moved to the front when the indexed ones are
   not neighbours), and where in the indexed dims each position of the broadcast index lies. */
typedef struct opdi_pick_plan {
    int nbefore, nafter, nshape;                  /* dims; of the broadcast index */
    int64_t before[OPD_MAX_DIMS], before_stride[OPD_MAX_DIMS], after[OPD_MAX_DIMS], after_stride[OPD_MAX_DIMS];
    int64_t shape[OPD_MAX_DIMS];
    int64_t out[OPD_MAX_DIMS];                    /* sizes of the result: before, shape, after */
    int nout;
    int64_t nb, na, nq;                           /* products of before, after, shape */
    int64_t *offset;                              /* [nq] elements; NULL on fakes */
    opd_tensor *desk;                             /* whose memory that is */
    opd_tensor *index[OPD_MAX_DIMS];              /* one for each dim of self, NULL: all of it */
} opdi_pick_plan;

/* Positions of the true elements of a contiguous byte mask, as mask->ndim int64 vectors. */
static int opdi_mask_positions(opd_tensor *mask, opd_tensor **out) {
    opd_tensor *m = opdi_packed(mask);
    int64_t i, n = 0, k = 0, at[OPD_MAX_DIMS];
    int d;
    if (!m) { return -1; }
    for (i = 0; i < m->numel; i++) { n += m->data[i] != 0; }
    for (d = 0; d < m->ndim; d++) {
        at[d] = 0;
        out[d] = opdi_own(opdi_tensor_make(&n, NULL, 1, OPD_INT64, OPD_CPU));
        if (!out[d]) { return -1; }
    }
    for (i = 0; i < m->numel; i++) {
        if (m->data[i]) {
            for (d = 0; d < m->ndim; d++) { ((int64_t *)(void *)out[d]->data)[k] = at[d]; }
            k++;
        }
        for (d = m->ndim - 1; d >= 0 && ++at[d] == opdi_sizes(m)[d]; d--) { at[d] = 0; }
    }
    return 0;
}
/* Fills p->index from the list: masks become positions (at::native::expandTensors). */
static int opdi_pick_expand(opdi_pick_plan *p, const opd_tensor *self, opd_tensors list) {
    int64_t k;
    int n = 0, d;
    for (k = 0; k < list.n; k++) {
        opd_tensor *t = list.data[k];
        const int width = !t || (t->dtype != OPD_BOOL && t->dtype != OPD_UINT8) ? 1 : t->ndim;
        if (n + width > self->ndim) {
            return opd_fail(OPD_ERROR_INDEX, "too many indices for tensor of dimension %d (got %lld)", self->ndim, (long long)OPDI_MAX(list.n, (int64_t)n + width));
        }
        if (!t || t->dtype == OPD_INT64) { p->index[n++] = t; continue; }
        if (t->dtype != OPD_BOOL && t->dtype != OPD_UINT8) { return opd_fail(OPD_ERROR_INDEX, "tensors used as indices must be long, byte or bool tensors"); }
        for (d = 0; d < t->ndim; d++) {
            if (opdi_sizes(t)[d] != opdi_sizes(self)[n + d]) {
                char a[256], b[256];
                return opd_fail(OPD_ERROR_INDEX, "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
                                opdi_sizes_text(opdi_sizes(t), t->ndim, a, sizeof a), d, opdi_sizes_text(opdi_sizes(self), self->ndim, b, sizeof b), n + d);
            }
        }
        if (!t->data) { return opd_fail(OPD_ERROR_ARGUMENT, "a mask without data says nothing about the result's size"); }
        if (t->ndim == 0) { return opd_fail(OPD_ERROR_INDEX, "a mask without dimensions is not supported as an index"); }
        if (opdi_mask_positions(t, p->index + n)) { return -1; }
        n += t->ndim;
    }
    for (; n < self->ndim; n++) { p->index[n] = NULL; }
    return 0;
}
/* Broadcasts the indices and adds up their offsets into self. */
static int opdi_pick_offsets(opdi_pick_plan *p, const opd_tensor *self) {
    int d;
    int64_t q;
    p->desk = opdi_own(opdi_tensor_make(p->shape, NULL, p->nshape, OPD_INT64, OPD_CPU));
    if (!p->desk) { return -1; }
    p->offset = (int64_t *)(void *)p->desk->data;
    memset(p->offset, 0, (size_t)p->nq * sizeof *p->offset);
    for (d = 0; d < self->ndim; d++) {
        const int64_t size = opdi_sizes(self)[d], stride = opdi_strides(self)[d];
        opd_tensor *x;
        const int64_t *v;
        if (!p->index[d]) { continue; }
        x = opdi_own(opdi_tensor_make(p->shape, NULL, p->nshape, OPD_INT64, OPD_CPU));
        if (!x || opdi_copy(x, p->index[d])) { return -1; }
        v = (const int64_t *)(const void *)x->data;
        for (q = 0; q < p->nq; q++) {
            const int64_t k = v[q] < 0 ? v[q] + size : v[q];
            if ((uint64_t)k >= (uint64_t)size) { return opdi_out_of_bounds(v[q], d, size); }
            p->offset[q] += k * stride;
        }
    }
    return 0;
}
static int opdi_pick_shape(opdi_pick_plan *p, const opd_tensor *self) {
    int d;
    bool any = false;
    p->nshape = 0;
    for (d = 0; d < self->ndim; d++) {
        if (!p->index[d]) { continue; }
        any = true;
        if (opdi_broadcast_into(p->shape, &p->nshape, p->index[d]) == 0) { continue; }
        if (opd_error_code() != OPD_ERROR_SHAPE) { return -1; }
        return -1;
    }
    if (!any) { p->nshape = 0; }
    p->nq = opdi_span_of(p->shape, 0, p->nshape);
    return 0;
}
/* The plan of self[list]; 0, or -1. */
static int opdi_pick_make(opdi_pick_plan *p, const opd_tensor *self, opd_tensors list) {
    int d, first = -1, last = -1, count = 0;
    if (opdi_pick_expand(p, self, list) || opdi_pick_shape(p, self)) { return -1; }
    for (d = 0; d < self->ndim; d++) {
        if (!p->index[d]) { continue; }
        if (first < 0) { first = d; }
        last = d;
        count++;
    }
    if (count && last - first + 1 != count) { first = 0; }        /* not neighbours: the indexed dims come first */
    if (!count) { first = self->ndim; }
    p->nbefore = p->nafter = p->nout = 0;
    for (d = 0; d < self->ndim; d++) {
        const bool front = d < first && count;
        if (p->index[d]) { continue; }
        if (front || !count) { p->before[p->nbefore] = opdi_sizes(self)[d]; p->before_stride[p->nbefore++] = opdi_strides(self)[d]; }
        else { p->after[p->nafter] = opdi_sizes(self)[d]; p->after_stride[p->nafter++] = opdi_strides(self)[d]; }
    }
    if (p->nbefore + p->nshape + p->nafter > OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions", OPD_MAX_DIMS); }
    for (d = 0; d < p->nbefore; d++) { p->out[p->nout++] = p->before[d]; }
    for (d = 0; d < p->nshape; d++) { p->out[p->nout++] = p->shape[d]; }
    for (d = 0; d < p->nafter; d++) { p->out[p->nout++] = p->after[d]; }
    p->nb = opdi_span_of(p->before, 0, p->nbefore);
    p->na = opdi_span_of(p->after, 0, p->nafter);
    while (p->nafter > 1 && p->after_stride[p->nafter - 2] == p->after_stride[p->nafter - 1] * p->after[p->nafter - 1]) {
        p->after[p->nafter - 2] *= p->after[p->nafter - 1];
        p->after_stride[p->nafter - 2] = p->after_stride[p->nafter - 1];
        p->nafter--;
    }
    p->offset = NULL;
    return 0;
}

enum { OPDI_PICK_READ = 0, OPDI_PICK_WRITE, OPDI_PICK_ADD };
typedef struct opdi_pick_job { const opdi_pick_plan *p; char *self, *values; int kind, size, compute; } opdi_pick_job;
#define OPDI_PICK_ADD_RUN(T, EXPR) {                                                                        \
        T *s = (T *)(void *)a; const T *v = (const T *)(const void *)b;                                     \
        for (k = 0; k < n; k++) { T *t = s + k * stride; *t = EXPR; } break; }
/* n elements of self `stride` apart from a, against contiguous values b. */
static void opdi_pick_run(const opdi_pick_job *j, char *a, int64_t stride, char *b, int64_t n) {
    int64_t k;
    if (j->kind == OPDI_PICK_READ) { opdi_move_run(b, j->size, a, stride * j->size, n, j->size); return; }
    if (j->kind == OPDI_PICK_WRITE) { opdi_move_run(a, stride * j->size, b, j->size, n, j->size); return; }
    switch (j->compute) {
        case OPDI_F32: OPDI_PICK_ADD_RUN(float, *t + v[k])
        case OPDI_F64: OPDI_PICK_ADD_RUN(double, *t + v[k])
        default: OPDI_PICK_ADD_RUN(int64_t, opdi_wrap_add(*t, v[k]))
    }
}
#define OPDI_PICK_ELEMENTS(T) {                                                                             \
        T *s = (T *)(void *)a; T *v = (T *)(void *)b;                                                       \
        if (j->kind == OPDI_PICK_READ) { for (k = 0; k < n; k++) { v[k] = s[x[k]]; } }                      \
        else { for (k = 0; k < n; k++) { s[x[k]] = v[k]; } } return; }
/* The same for single elements at offsets x[0..n). */
static void opdi_pick_elements(const opdi_pick_job *j, char *a, const int64_t *x, char *b, int64_t n) {
    int64_t k;
    if (j->kind != OPDI_PICK_ADD) {
        switch (j->size) {
            case 1: OPDI_PICK_ELEMENTS(uint8_t)
            case 2: OPDI_PICK_ELEMENTS(uint16_t)
            case 4: OPDI_PICK_ELEMENTS(uint32_t)
            case 8: OPDI_PICK_ELEMENTS(uint64_t)
            default: break;
        }
    }
    for (k = 0; k < n; k++) { opdi_pick_run(j, a + x[k] * j->size, 1, b + k * j->size, 1); }
}
/* Positions [begin, end) of before x shape. */
static void opdi_pick_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_pick_job *j = (const opdi_pick_job *)ctx;
    const opdi_pick_plan *p = j->p;
    const int64_t n = p->nafter ? p->after[p->nafter - 1] : 1, stride = p->nafter ? p->after_stride[p->nafter - 1] : 1;
    int64_t u = begin, m, r;
    while (u < end) {
        int64_t rest = u / p->nq, q = u % p->nq;
        char *a = j->self, *b = j->values + u * p->na * j->size;
        int d;
        for (d = p->nbefore - 1; d >= 0; d--) { a += rest % p->before[d] * p->before_stride[d] * j->size; rest /= p->before[d]; }
        if (p->na == 1) {
            m = OPDI_MIN(p->nq - q, end - u);
            opdi_pick_elements(j, a, p->offset + q, b, m);
            u += m;
            continue;
        }
        a += p->offset[q] * j->size;
        for (r = 0; r < p->na / n; r++) {
            int64_t at = 0;
            rest = r;
            for (d = p->nafter - 2; d >= 0; d--) { at += rest % p->after[d] * p->after_stride[d]; rest /= p->after[d]; }
            opdi_pick_run(j, a + at * j->size, stride, b + r * n * j->size, n);
        }
        u++;
    }
}
/* values (contiguous, of self's dtype) against self at the plan's places. */
static int opdi_pick_go(const opdi_pick_plan *p, opd_tensor *self, opd_tensor *values, int kind) {
    opdi_pick_job j;
    const int64_t n = p->nb * p->nq;
    if (values->numel == 0) { return 0; }
    j.p = p; j.self = self->data; j.values = values->data; j.kind = kind;
    j.size = (int)opd_dtype_size((opd_scalar_type)self->dtype); j.compute = opdi_compute_type((opd_scalar_type)self->dtype);
    if (kind == OPDI_PICK_READ) { opdi_parallel_for(n, OPDI_MAX((int64_t)1, OPDI_GRAIN / p->na), opdi_pick_part, &j); }
    else { opdi_pick_part(&j, 0, n); }
    return 0;
}
OPDI_KERNEL(index_Tensor) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out, *desk;
    opdi_pick_plan p;
    if (opdi_pick_make(&p, self, opd_arg_tensors(call, 1))) { return -1; }
    out = opd_result(call, 0, p.out, p.nout, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (opdi_pick_offsets(&p, self)) { return -1; }
    desk = opdi_desk(out, (opd_scalar_type)self->dtype);
    return desk && opdi_pick_go(&p, self, desk, OPDI_PICK_READ) == 0 ? opdi_settle(out, desk) : -1;
}
OPDI_BW1(index_Tensor) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_index_put_full(opdi_o_zeros(g, opd_bw_sizes(bw, 0)), opd_bw_tensors(bw, 1), g, true));
}
OPDI_OP(index_Tensor) {
    opdi_card_of(op, "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", opdi_index_Tensor_kernel, opdi_index_Tensor_backward,
                 "indices", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[3,4], {[2]i3}; [3,4,2], {[2,1]i3, [2]i4}");
    op->out = "index.Tensor_out";
}
/* Writes or adds values at the list's places of the result, which begins as self. */
static int opdi_put_values(opd_tensor *out, opd_tensors list, opd_tensor *values, bool accumulate) {
    const opd_scalar_type t = (opd_scalar_type)(accumulate ? opdi_compute_dtype[opdi_compute_type((opd_scalar_type)out->dtype)] : out->dtype);
    opd_tensor *desk = accumulate ? opdi_desk_filled(out, t) : out, *full;
    opdi_pick_plan p;
    if (!desk || opdi_pick_make(&p, desk, list) || opdi_pick_offsets(&p, desk)) { return -1; }
    full = opdi_own(opdi_tensor_make(p.out, NULL, p.nout, t, OPD_CPU));
    if (!full) { return -1; }
    if (opdi_copy(full, values)) {
        return -1;
    }
    return opdi_pick_go(&p, desk, full, accumulate ? OPDI_PICK_ADD : OPDI_PICK_WRITE) == 0 ? opdi_settle(out, desk) : -1;
}
OPDI_KERNEL(index_put) {
    opd_tensor *self = opd_arg_tensor(call, 0), *values = opd_arg_tensor(call, 2), *out;
    const bool accumulate = opd_arg_bool(call, 3);
    if (self->dtype != values->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Index put requires the source and destination dtypes match, got %s for the destination and %s for the source.",
                        opd_dtype_cname((opd_scalar_type)self->dtype), opd_dtype_cname((opd_scalar_type)values->dtype));
    }
    if (accumulate && opd_dtype_is_complex((opd_scalar_type)self->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "\"index_put\" with accumulate is not implemented for '%s'", opd_dtype_cname((opd_scalar_type)self->dtype)); }
    out = opdi_update(call, true);
    return !out ? -1 : !out->data ? 0 : opdi_put_values(out, opd_arg_tensors(call, 1), values, accumulate);
}
OPDI_BW1(index_put) {
    opd_tensor *g = opd_bw_grad(bw, 0), *zero;
    const opd_tensors list = opd_bw_tensors(bw, 1);
    if (opd_bw_needs(bw, 0)) {
        zero = opd_bw_value(bw, 3).u.i ? NULL : opdi_o_zeros(g, opd_ints_of(NULL, 0));
        if (opd_bw_return(bw, 0, opd_bw_value(bw, 3).u.i ? g : opd_index_put_full(g, list, zero, false))) { return -1; }
    }
    OPDI_GIVE(2, opd_index(g, list));
    return 0;
}
OPDI_OP(index_put) {
    opdi_card_of(op, "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", opdi_index_put_kernel,
                 opdi_index_put_backward, "indices", OPD_BATCH_LOOP, OPD_AUTOCAST_PROMOTE, "[3,4], {[1]i3}, [4]; [3,4], {[2]i3}, [2,4], True");
    op->inplace = "index_put_"; op->out = "index_put.out";
}
OPDI_KERNEL(index_put_impl_) {
    opd_value v[4];
    static opd_op *h;
    int i;
    for (i = 0; i < 4; i++) { v[i] = call->args[i]; }
    return opd_return_tensor(call, opd_call_op(OPD_OP(&h, "aten::index_put_"), v, 4));
}
OPDI_OP(index_put_impl_) {
    opdi_card_composite(op, "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool unsafe=False) -> Tensor(a!)",
                        opdi_index_put_impl__kernel, OPD_AUTOCAST_KEEP, "");
}

/* take and put: self as one dimension. */
static opd_tensor *opdi_flat_of(opd_tensor *t) {
    const int64_t one = 1;
    t = opdi_packed(t);
    return t ? opdi_view(t, &t->numel, &one, 1, 0) : NULL;
}
/* The flat index as a list, checked with take's message. */
static opd_tensor *opdi_take_index(opd_tensor *index, int64_t numel) {
    int64_t bad;
    opd_tensor *x = opdi_index_load(index, numel, true, &bad);
    if (x && bad >= 0) {
        (void)opd_fail(OPD_ERROR_INDEX, "out of range: tried to access index %lld on a tensor of %lld elements.",
                       (long long)((const int64_t *)(const void *)x->data)[bad], (long long)numel);
        return NULL;
    }
    return x;
}
OPDI_KERNEL(take) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1), *out, *flat;
    if (index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "take(): Expected a long tensor for index, but got %s", opd_dtype_cname((opd_scalar_type)index->dtype)); }
    if (self->numel == 0 && index->numel) { return opd_fail(OPD_ERROR_INDEX, "take(): tried to take from an empty tensor"); }
    out = opd_result(call, 0, opdi_sizes(index), index->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    index = opdi_take_index(index, self->numel);
    flat = index ? opdi_flat_of(self) : NULL;
    return flat ? opdi_rows_select(flat, 0, index, out, "out of range") : -1;
}
OPDI_BW1(take) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_put_full(opdi_o_zeros(g, opd_bw_sizes(bw, 0)), opd_bw_tensor(bw, 1), g, true));
}
OPDI_OP(take) {
    opdi_card_of(op, "take(Tensor self, Tensor index) -> Tensor", opdi_take_kernel, opdi_take_backward, "index", OPD_BATCH_LOOP,
                 OPD_AUTOCAST_KEEP, "[3,4], [2,3]i12");
    op->out = "take.out";
}
OPDI_KERNEL(put) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1), *src = opd_arg_tensor(call, 2), *out, *desk, *flat;
    const int64_t one = 1;
    const opd_scalar_type t = (opd_scalar_type)self->dtype;
    opd_scalar_type work;
    if (index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "put_(): Expected a long tensor for index, but got %s", opd_dtype_cname((opd_scalar_type)index->dtype)); }
    if (self->dtype != src->dtype) { return opd_fail(OPD_ERROR_DTYPE, "put_(): self and source expected to have the same dtype, but got self.dtype = %s and source.dtype = %s", opd_dtype_cname(t), opd_dtype_cname((opd_scalar_type)src->dtype)); }
    if (index->numel != src->numel) { return opd_fail(OPD_ERROR_SHAPE, "put_(): Expected source and index to have the same number of elements, but got source.numel() = %lld, index.numel() = %lld", (long long)src->numel, (long long)index->numel); }
    if (self->numel == 0 && index->numel) { return opd_fail(OPD_ERROR_INDEX, "put_(): Tried to put elements into an empty tensor"); }
    if (opd_arg_bool(call, 3) && opd_dtype_is_complex(t)) { return opd_fail(OPD_ERROR_DTYPE, "\"put_\" with accumulate is not implemented for '%s'", opd_dtype_cname(t)); }
    out = opdi_update(call, true);
    if (!out || !out->data) { return out ? 0 : -1; }
    work = opd_arg_bool(call, 3) ? (opd_scalar_type)opdi_compute_dtype[opdi_compute_type(t)] : t;
    index = opdi_take_index(index, self->numel);
    desk = index ? opdi_desk_filled(out, work) : NULL;
    flat = desk ? opdi_view(desk, &desk->numel, &one, 1, 0) : NULL;
    src = flat ? opdi_as(src, work) : NULL;
    index = src ? opdi_flat_of(index) : NULL;
    src = index ? opdi_flat_of(src) : NULL;
    if (!src || opdi_put_values(flat, opd_tensors_of(&index, 1), src, opd_arg_bool(call, 3))) { return -1; }
    return opdi_settle(out, desk);
}
OPDI_BW1(put) {
    opd_tensor *g = opd_bw_grad(bw, 0), *index = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *zeros = opd_bw_value(bw, 3).u.i ? NULL : opdi_o_zeros(g, opd_ints_of(opdi_sizes(index), index->ndim));
        if (opd_bw_return(bw, 0, opd_bw_value(bw, 3).u.i ? g : opd_put_full(g, index, zeros, false))) { return -1; }
    }
    if (opd_bw_needs(bw, 2)) {
        const opd_ints sizes = opd_bw_sizes(bw, 2);
        if (opd_bw_return(bw, 2, opdi_o_reshape(opd_take(g, index), sizes.data, sizes.n))) { return -1; }
    }
    return 0;
}
OPDI_OP(put) {
    opdi_card_of(op, "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor", opdi_put_kernel, opdi_put_backward,
                 "index", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[3,4], [1]i12, [1]; [3,4], [5]i12, [5], True");
    op->inplace = "put_"; op->out = "put.out";
}
OPDI_KERNEL(take_along_dim) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1);
    int64_t a[OPD_MAX_DIMS], b[OPD_MAX_DIMS], minus = -1;
    int dim, d;
    if (index->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "torch.take_along_dim(): dtype of indices should be Long but got %s", opd_dtype_cname((opd_scalar_type)index->dtype)); }
    if (opd_arg_is_none(call, 2)) {
        return opd_return_tensor(call, opd_gather(opdi_o_reshape(self, &minus, 1), 0, opdi_o_reshape(index, &minus, 1)));
    }
    if (self->ndim != index->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d dimensions for input, "
                        "and %d dimensions for indices", self->ndim, index->ndim);
    }
    dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    if (dim < 0) { return -1; }
    for (d = 0; d < self->ndim; d++) {
        const int64_t m = opdi_sizes(self)[d], n = opdi_sizes(index)[d];
        if (d != dim && m != n && m != 1 && n != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d", (long long)m, (long long)n, d);
        }
        a[d] = d == dim ? m : m == 1 ? n : m;
        b[d] = d == dim ? n : a[d];
    }
    return opd_return_tensor(call, opd_gather(opdi_o_expand(self, a, self->ndim), dim, opdi_o_expand(index, b, self->ndim)));
}
OPDI_OP(take_along_dim) {
    opdi_card_composite(op, "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", opdi_take_along_dim_kernel, OPD_AUTOCAST_KEEP,
                        "[3,4], [3,2]i4, 1; [3,4], [5]i12");
    op->out = "take_along_dim.out";
}

//-- masked_select, masked_scatter -------------------------------------------------------------------------------------------

/* t and mask broadcast against each other, contiguous; sizes of both in sizes[*ndim]. */
static int opdi_masked_open(opd_tensor **t, opd_tensor **mask, int64_t *sizes, int *ndim) {
    opd_tensor *both[2];
    int i;
    *ndim = 0;
    both[0] = *t; both[1] = *mask;
    if (opdi_broadcast_into(sizes, ndim, *t) || opdi_broadcast_into(sizes, ndim, *mask)) { return -1; }
    for (i = 0; i < 2; i++) {
        opd_tensor *c;
        if (opdi_has_sizes(both[i], sizes, *ndim) && (both[i]->flags & OPDI_CONTIGUOUS)) { continue; }
        c = opdi_own(opdi_tensor_make(sizes, NULL, *ndim, (opd_scalar_type)both[i]->dtype, OPD_CPU));
        if (!c || opdi_copy(c, both[i])) { return -1; }
        both[i] = c;
    }
    *t = both[0]; *mask = both[1];
    return 0;
}
#define OPDI_MASKED_MOVE(T) {                                                                               \
        T *d = (T *)(void *)dst; const T *s = (const T *)(const void *)src;                                 \
        if (compress) { for (i = 0; i < n; i++) { if (mask[i]) { *d++ = s[i]; } } }                         \
        else { for (i = 0; i < n; i++) { if (mask[i]) { d[i] = *s++; } } } return; }
/* compress: dst gets the chosen of src; else the chosen places of dst get src in order. */
static void opdi_masked_move(char *dst, const char *src, const char *mask, int64_t n, int size, bool compress) {
    int64_t i;
    switch (size) {
        case 1: OPDI_MASKED_MOVE(uint8_t)
        case 2: OPDI_MASKED_MOVE(uint16_t)
        case 4: OPDI_MASKED_MOVE(uint32_t)
        case 8: OPDI_MASKED_MOVE(uint64_t)
        default: break;
    }
    for (i = 0; i < n; i++) {
        if (!mask[i]) { continue; }
        memcpy(compress ? dst : dst + i * size, compress ? src + i * size : src, (size_t)size);
        if (compress) { dst += size; } else { src += size; }
    }
}
static int64_t opdi_mask_count(const opd_tensor *mask) {
    int64_t i, n = 0;
    for (i = 0; i < mask->numel; i++) { n += mask->data[i] != 0; }
    return n;
}
OPDI_KERNEL(masked_select) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *out, *desk;
    int64_t sizes[OPD_MAX_DIMS], n;
    int ndim;
    if (mask->dtype != OPD_BOOL && mask->dtype != OPD_UINT8) { return opd_fail(OPD_ERROR_DTYPE, "masked_select: expected BoolTensor for mask"); }
    if (!mask->data) { return opd_fail(OPD_ERROR_ARGUMENT, "a mask without data says nothing about the result's size"); }
    if (opdi_masked_open(&self, &mask, sizes, &ndim)) { return -1; }
    n = opdi_mask_count(mask);
    out = opd_result(call, 0, &n, 1, (opd_scalar_type)self->dtype);
    desk = out ? opdi_desk(out, (opd_scalar_type)out->dtype) : NULL;
    if (!desk) { return -1; }
    opdi_masked_move(desk->data, self->data, mask->data, self->numel, (int)opd_dtype_size((opd_scalar_type)self->dtype), true);
    return opdi_settle(out, desk);
}
/* g back to the chosen places of a tensor with mask's and self's common size. */
OPDI_BW1(masked_select) {
    opd_tensor *g = opd_bw_grad(bw, 0), *mask = opd_bw_tensor(bw, 1);
    const opd_ints own = opd_bw_sizes(bw, 0);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = (int)own.n, d, shift;
    memcpy(sizes, own.data, sizeof *sizes * (size_t)own.n);
    if (opdi_broadcast_into(sizes, &ndim, mask)) { return -1; }
    g = opd_masked_scatter(opdi_o_zeros(g, opd_ints_of(sizes, ndim)), mask, g);
    shift = ndim - (int)own.n;
    for (d = 0; d < shift; d++) { sizes[d] = d; }
    for (ndim = shift, d = 0; d < (int)own.n && g; d++) { if (own.data[d] == 1 && opdi_sizes(g)[d + shift] != 1) { sizes[ndim++] = d + shift; } }
    if (ndim && g) { g = opdi_o_reshape(opdi_o_sum_dims(g, sizes, ndim, true), own.data, own.n); }
    return opd_bw_return(bw, 0, g);
}
OPDI_OP(masked_select) {
    opdi_card_of(op, "masked_select(Tensor self, Tensor mask) -> Tensor", opdi_masked_select_kernel, opdi_masked_select_backward, "mask",
                 OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[3,4], [3,4]b; [3,4], [4]b");
    op->out = "masked_select.out";
}
OPDI_KERNEL(masked_scatter) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *src = opd_arg_tensor(call, 2), *out, *desk, *m;
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    if (self->dtype != src->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_scatter: expected self and source to have same dtypes but got%s and %s", opd_dtype_cname((opd_scalar_type)self->dtype), opd_dtype_cname((opd_scalar_type)src->dtype));
    }
    if (mask->dtype != OPD_BOOL && mask->dtype != OPD_UINT8) { return opd_fail(OPD_ERROR_DTYPE, "masked_scatter only supports boolean masks, but got mask with dtype %s", opd_dtype_cname((opd_scalar_type)mask->dtype)); }
    if (opdi_broadcast_into(sizes, &ndim, self) || opdi_broadcast_into(sizes, &ndim, mask)) { return -1; }
    out = call->targets && call->inplace ? opdi_update(call, false) : opd_result(call, 0, sizes, ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (!opdi_has_sizes(out, sizes, ndim)) { return opd_fail(OPD_ERROR_SHAPE, "output with shape doesn't match the broadcast shape of the mask"); }
    if (!(call->targets && call->inplace) && opdi_copy(out, self)) { return -1; }
    m = opdi_own(opdi_tensor_make(sizes, NULL, ndim, (opd_scalar_type)mask->dtype, OPD_CPU));
    desk = opdi_desk_filled(out, (opd_scalar_type)out->dtype);
    src = opdi_packed(src);
    if (!m || !desk || !src || opdi_copy(m, mask)) { return -1; }
    if (opdi_mask_count(m) > src->numel) { return opd_fail(OPD_ERROR_SHAPE, "Number of elements of source < number of ones in mask"); }
    opdi_masked_move(desk->data, src->data, m->data, desk->numel, (int)opd_dtype_size((opd_scalar_type)out->dtype), false);
    return opdi_settle(out, desk);
}
OPDI_BW1(masked_scatter) {
    opd_tensor *g = opd_bw_grad(bw, 0), *mask = opd_bw_tensor(bw, 1);
    OPDI_GIVE(0, opd_masked_fill_Scalar(g, mask, opd_value_int(0)));
    if (opd_bw_needs(bw, 2)) {                    /* the chosen ones, and zeros for the rest of source */
        const opd_ints sizes = opd_bw_sizes(bw, 2);
        opd_tensor *t = opd_masked_select(g, mask);
        int64_t pad[2] = {0, 0};
        if (!t) { return -1; }
        pad[1] = opdi_span_of(sizes.data, 0, (int)sizes.n) - t->numel;
        if (pad[1]) { t = opd_constant_pad_nd(t, opd_ints_of(pad, 2)); }
        return opd_bw_return(bw, 2, opdi_o_reshape(t, sizes.data, sizes.n));
    }
    return 0;
}
OPDI_OP(masked_scatter) {
    opdi_card_of(op, "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", opdi_masked_scatter_kernel, opdi_masked_scatter_backward,
                 "mask", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[3,4], [3,4]b, [12]");
    op->inplace = "masked_scatter_"; op->out = "masked_scatter.out";
}

//-- where with numbers, where of one argument -------------------------------------------------------------------------------

OPDI_KERNEL(where_Scalar) {
    opd_value a = opd_arg_value(call, 1), b = opd_arg_value(call, 2);
    return opd_return_tensor(call, opd_where_self(opd_arg_tensor(call, 0), opd_tensor_wrapped_number(a), opd_tensor_wrapped_number(b)));
}
OPDI_OP(where_Scalar) {
    opdi_card_composite(op, "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", opdi_where_Scalar_kernel, OPD_AUTOCAST_KEEP, "[2,3]b, 1.5, 2.5");
}
OPDI_KERNEL(where) {
    static opd_op *h;
    opd_tensor *t = opdi_aten(&h, "aten::nonzero", opd_value_tensor(opd_arg_tensor(call, 0)), OPD_DEFAULT, OPD_DEFAULT, OPD_DEFAULT);
    opd_tensor *list[OPD_MAX_DIMS];
    int64_t d, n = t ? opdi_sizes(t)[1] : 0;
    if (!t) { return -1; }
    for (d = 0; d < n; d++) {
        list[d] = opdi_o_select(t, 1, d);
        if (!list[d]) { return -1; }
    }
    return opd_return_tensors(call, list, n);
}
OPDI_OP(where) { opdi_card_composite(op, "where(Tensor condition) -> Tensor[]", opdi_where_kernel, OPD_AUTOCAST_KEEP, "[2,3]b"); }

//-- joining -----------------------------------------------------------------------------------------------------------------

static bool opdi_cat_skips(const opd_tensor *t) { return t->ndim == 1 && t->numel == 0; }
/* Piece t of out, `at` elements along dim. */
static int opdi_cat_piece(opd_tensor *out, int dim, int64_t at, const opd_tensor *t) {
    const int64_t inner = opdi_span_of(opdi_sizes(out), dim + 1, out->ndim), outer = opdi_span_of(opdi_sizes(out), 0, dim);
    const int64_t es = (int64_t)opd_dtype_size((opd_scalar_type)out->dtype), n = opdi_sizes(t)[dim] * inner * es;
    const int64_t row = opdi_sizes(out)[dim] * inner * es;
    opd_tensor *piece;
    int64_t o;
    int rc = -1;
    if (t->numel == 0) { return 0; }
    if (t->dtype == out->dtype && (t->flags & out->flags & OPDI_CONTIGUOUS) && (outer == 1 || t->numel < 4 * OPDI_GRAIN) && t->numel < 32 * OPDI_GRAIN) {
        char *dst = out->data + at * inner * es;
        for (o = 0; o < outer; o++) { memcpy(dst + o * row, t->data + o * n, (size_t)n); }
        return 0;
    }
    OPD_SCOPE {
        piece = opdi_view(out, opdi_sizes(t), opdi_strides(out), out->ndim, at * opdi_strides(out)[dim]);
        rc = piece ? opdi_copy(piece, t) : -1;
    }
    return rc;
}
static int opdi_cat_sizes(opd_tensors list, const opd_tensor *first, int dim, int64_t *sizes) {
    int64_t k;
    int d;
    memcpy(sizes, opdi_sizes(first), sizeof *sizes * first->ndim);
    sizes[dim] = 0;
    for (k = 0; k < list.n; k++) {
        const opd_tensor *t = list.data[k];
        if (opdi_cat_skips(t)) { continue; }
        if (t->ndim != first->ndim) { return opd_fail(OPD_ERROR_SHAPE, "Tensors must have same number of dimensions: got %d and %d", first->ndim, t->ndim); }
        for (d = 0; d < t->ndim; d++) {
            if (d != dim && opdi_sizes(t)[d] != sizes[d]) {
                return opd_fail(OPD_ERROR_SHAPE, "Sizes of tensors must match except in dimension %d. Expected size %lld but got size %lld for tensor number %lld in the list.",
                                dim, (long long)sizes[d], (long long)opdi_sizes(t)[d], (long long)k);
            }
        }
        sizes[dim] += opdi_sizes(t)[dim];
    }
    return 0;
}
OPDI_KERNEL(cat) {
    opd_tensors list = opd_arg_tensors(call, 0);
    const opd_tensor *first = NULL;
    opd_tensor *out;
    int64_t sizes[OPD_MAX_DIMS], at = 0, k;
    int dim = 0;
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "torch.cat(): expected a non-empty list of Tensors"); }
    for (k = 0; k < list.n; k++) {
        if (list.data[k]->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)k); }
        if (!first && !opdi_cat_skips(list.data[k])) { first = list.data[k]; }
    }
    if (!first) {
        if (opdi_dim_of(opd_arg_int(call, 1), 1) < 0) { return -1; }
        sizes[0] = 0;
        return opd_result(call, 0, sizes, 1, opdi_result_type(list.data, (int)list.n)) ? 0 : -1;
    }
    dim = opdi_dim_of(opd_arg_int(call, 1), first->ndim);
    if (dim < 0 || opdi_cat_sizes(list, first, dim, sizes)) { return -1; }
    out = opd_result(call, 0, sizes, first->ndim, opdi_result_type(list.data, (int)list.n));
    if (!out || !out->data) { return out ? 0 : -1; }
    for (k = 0; k < list.n; k++) {
        if (opdi_cat_skips(list.data[k])) { continue; }
        if (opdi_cat_piece(out, dim, at, list.data[k])) { return -1; }
        at += opdi_sizes(list.data[k])[dim];
    }
    return 0;
}
OPDI_BW1(cat) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    int64_t at = 0;
    const opd_tensors list = opd_bw_tensors(bw, 0);
    int k, dim = opdi_dim_of(opd_bw_value(bw, 1).u.i, g->ndim);
    for (k = 0; k < (int)list.n && dim >= 0; k++) {
        const opd_tensor *t = list.data[k];
        opd_tensor *part;
        if (opdi_cat_skips(t)) {
            if (opd_bw_needs_at(bw, 0, k) && opd_bw_return_at(bw, 0, k, opd_zeros_like(list.data[k]))) { return -1; }
            continue;
        }
        if (opd_bw_needs_at(bw, 0, k)) {
            part = opdi_o_narrow(g, dim, at, opdi_sizes(t)[dim]);
            if (opd_bw_return_at(bw, 0, k, part)) { return -1; }
        }
        at += opdi_sizes(t)[dim];
    }
    return dim < 0 ? -1 : 0;
}
OPDI_OP(cat) {
    opdi_card_of(op, "cat(Tensor[] tensors, int dim=0) -> Tensor", opdi_cat_kernel, opdi_cat_backward, "tensors", OPD_BATCH_LOOP,
                 OPD_AUTOCAST_PROMOTE, "{[2,3], [1,3]}; {[2,3], [2,2]}, 1");
    op->out = "cat.out";
}
OPDI_KERNEL(stack) {
    opd_tensors list = opd_arg_tensors(call, 0);
    opd_tensor *out;
    int64_t sizes[OPD_MAX_DIMS], k;
    const opd_tensor *first;
    int dim, d;
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "stack expects a non-empty TensorList"); }
    first = list.data[0];
    dim = opdi_dim_of(opd_arg_int(call, 1), first->ndim + 1);
    if (dim < 0) { return -1; }
    if (first->ndim == OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions", OPD_MAX_DIMS); }
    for (k = 1; k < list.n; k++) {
        if (!opdi_same_sizes(first, list.data[k])) {
            char a[256], b[256];
            return opd_fail(OPD_ERROR_SHAPE, "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld",
                            opdi_sizes_text(opdi_sizes(first), first->ndim, a, sizeof a), opdi_sizes_text(opdi_sizes(list.data[k]), list.data[k]->ndim, b, sizeof b), (long long)k);
        }
    }
    for (d = 0; d <= first->ndim; d++) { sizes[d] = d == dim ? list.n : opdi_sizes(first)[d - (d > dim)]; }
    out = opd_result(call, 0, sizes, first->ndim + 1, opdi_result_type(list.data, (int)list.n));
    if (!out || !out->data) { return out ? 0 : -1; }
    for (k = 0; k < list.n; k++) {
        int64_t strides[2 * OPD_MAX_DIMS];
        const opd_tensor *t = list.data[k];
        int rc = -1;
        for (d = 0; d <= first->ndim; d++) { strides[d] = d == dim ? 0 : opdi_strides(t)[d - (d > dim)]; }
        sizes[dim] = 1;
        OPD_SCOPE {
            opd_tensor *wide = opdi_view(list.data[k], sizes, strides, first->ndim + 1, 0);
            rc = wide ? opdi_cat_piece(out, dim, k, wide) : -1;
        }
        if (rc) { return -1; }
    }
    return 0;
}
OPDI_BW1(stack) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    const int64_t dim = opd_bw_value(bw, 1).u.i, n = g->ndim ? opd_size(g, (int)dim) : 0;
    int k;
    for (k = 0; k < (int)n; k++) {
        if (opd_bw_needs_at(bw, 0, k) && opd_bw_return_at(bw, 0, k, opdi_o_select(g, dim, k))) { return -1; }
    }
    return 0;
}
OPDI_OP(stack) {
    opdi_card_of(op, "stack(Tensor[] tensors, int dim=0) -> Tensor", opdi_stack_kernel, opdi_stack_backward, "", OPD_BATCH_LOOP,
                 OPD_AUTOCAST_PROMOTE, "{[2,3], [2,3]}; {[2,3], [2,3]}, 1; {[], []}");
    op->out = "stack.out";
}
/* hstack, vstack, dstack, column_stack, row_stack: everything with `least` dims at least, then cat along dim.  column: a
   vector becomes a column. */
static int opdi_stack_like(opd_call *call, int least, int dim, bool column, const char *name) {
    opd_tensors list = opd_arg_tensors(call, 0);
    const size_t bytes = (size_t)list.n * sizeof(opd_tensor *);
    opd_tensor **wide;
    int64_t k;
    int rc = 0;
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "%s expects a non-empty TensorList", name); }
    wide = (opd_tensor **)opdi_alloc(bytes);
    if (!wide) { return -1; }
    for (k = 0; k < list.n && rc == 0; k++) {
        opd_tensor *t = list.data[k];
        int64_t s[3];
        if (t->ndim < least) {
            const int64_t a = t->ndim ? opdi_sizes(t)[0] : 1;
            s[0] = column ? a : least == 1 ? a : 1;
            s[1] = column ? 1 : t->ndim == 2 ? opdi_sizes(t)[1] : a;
            s[2] = 1;
            if (t->ndim == 2) { s[0] = opdi_sizes(t)[0]; }
            t = opdi_o_reshape(t, s, least);
        }
        wide[k] = t;
        rc = t ? 0 : -1;
    }
    if (rc == 0) {
        opd_tensor *r;
        if (dim == 1 && !column && wide[0]->ndim == 1) { dim = 0; }
        r = opd_cat_full(opd_tensors_of(wide, list.n), dim);
        rc = opd_return_tensor(call, r);
    }
    opdi_free(wide, bytes);
    return rc;
}
OPDI_KERNEL(hstack) { return opdi_stack_like(call, 1, 1, false, "hstack"); }
OPDI_KERNEL(vstack) { return opdi_stack_like(call, 2, 0, false, "vstack"); }
OPDI_KERNEL(dstack) { return opdi_stack_like(call, 3, 2, false, "dstack"); }
OPDI_KERNEL(column_stack) { return opdi_stack_like(call, 2, 1, true, "column_stack"); }
OPDI_KERNEL(concat) { return opd_return_tensor(call, opd_cat_full(opd_arg_tensors(call, 0), opd_arg_int(call, 1))); }
OPDI_OP(hstack) { opdi_card_composite(op, "hstack(Tensor[] tensors) -> Tensor", opdi_hstack_kernel, OPD_AUTOCAST_KEEP, "{[2,3], [2,2]}; {[2], [3]}"); op->out = "hstack.out"; }
OPDI_OP(vstack) { opdi_card_composite(op, "vstack(Tensor[] tensors) -> Tensor", opdi_vstack_kernel, OPD_AUTOCAST_KEEP, "{[2,3], [1,3]}; {[2], [2]}"); op->out = "vstack.out"; }
OPDI_OP(dstack) { opdi_card_composite(op, "dstack(Tensor[] tensors) -> Tensor", opdi_dstack_kernel, OPD_AUTOCAST_KEEP, "{[2,3], [2,3]}; {[2], [2]}"); op->out = "dstack.out"; }
OPDI_OP(column_stack) { opdi_card_composite(op, "column_stack(Tensor[] tensors) -> Tensor", opdi_column_stack_kernel, OPD_AUTOCAST_KEEP, "{[2], [2,3]}"); op->out = "column_stack.out"; }
OPDI_OP(row_stack) { opdi_card_composite(op, "row_stack(Tensor[] tensors) -> Tensor", opdi_vstack_kernel, OPD_AUTOCAST_KEEP, "{[2], [2]}"); op->out = "row_stack.out"; }
OPDI_OP(concat) { opdi_card_composite(op, "concat(Tensor[] tensors, int dim=0) -> Tensor", opdi_concat_kernel, OPD_AUTOCAST_KEEP, "{[2,3], [1,3]}"); op->out = "concat.out"; }

//-- padding -----------------------------------------------------------------------------------------------------------------

OPDI_KERNEL(constant_pad_nd) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out, *fill, *dst, *src;
    const opd_ints pad = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], inside[OPD_MAX_DIMS], at = 0, from = 0;
    int d, n = self->ndim;
    if (pad.n % 2) { return opd_fail(OPD_ERROR_SHAPE, "Length of pad must be even but instead it equals %lld", (long long)pad.n); }
    if (pad.n > 2 * n) { return opd_fail(OPD_ERROR_SHAPE, "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %lld while the input has %d dimensions.", (long long)pad.n, n); }
    for (d = 0; d < n; d++) {
        const int k = 2 * (n - 1 - d);
        const int64_t low = k < pad.n ? pad.data[k] : 0, high = k < pad.n ? pad.data[k + 1] : 0, size = opdi_sizes(self)[d];
        if (low > INT64_MAX / 4 || high > INT64_MAX / 4 || low < -size || high < -size) { sizes[d] = low < 0 || high < 0 ? -1 : INT64_MAX; }
        else { sizes[d] = size + low + high; }
        if (sizes[d] < 0 || (sizes[d] == 0 && k < pad.n && 0)) {
            return opd_fail(OPD_ERROR_SHAPE, "The input size %lld, plus negative padding %lld and %lld, resulted in a negative output size, which is invalid. "
                            "Check dimension %d of your input.", (long long)size, (long long)low, (long long)high, d);
        }
        inside[d] = size + OPDI_MIN(low, (int64_t)0) + OPDI_MIN(high, (int64_t)0);
        if (inside[d] < 0) { inside[d] = 0; }
    }
    out = opd_result(call, 0, sizes, n, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    for (d = 0; d < n; d++) {
        const int k = 2 * (n - 1 - d);
        const int64_t low = k < pad.n ? pad.data[k] : 0;
        if (low > 0) { at += low * opdi_strides(out)[d]; } else { from -= low * opdi_strides(self)[d]; }
    }
    fill = opdi_filler(opd_arg_value(call, 2), (opd_scalar_type)self->dtype);
    if (!fill || (out->numel && !opdi_same_sizes(out, self) && opdi_copy(out, fill))) { return -1; }
    if (opdi_span_of(inside, 0, n) == 0) { return out->numel ? opdi_copy(out, fill) : 0; }
    dst = opdi_view(out, inside, opdi_strides(out), n, at);
    src = opdi_view(self, inside, opdi_strides(self), n, from);
    if (opdi_same_sizes(out, self) && opdi_copy(out, fill)) { return -1; }
    return dst && src ? opdi_copy(dst, src) : -1;
}
OPDI_BW1(constant_pad_nd) {
    const opd_value pad = opd_bw_value(bw, 1);
    int64_t minus[2 * OPD_MAX_DIMS];
    int i;
    for (i = 0; i < pad.n && i < 2 * OPD_MAX_DIMS; i++) { minus[i] = -pad.u.ints[i]; }
    return opd_bw_return(bw, 0, opd_constant_pad_nd(opd_bw_grad(bw, 0), opd_ints_of(minus, pad.n)));
}
OPDI_OP(constant_pad_nd) {
    opdi_card_of(op, "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor", opdi_constant_pad_nd_kernel, opdi_constant_pad_nd_backward,
                 "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[2,3], (1,2); [2,3], (1,-1,0,2), 1.5");
    op->out = "constant_pad_nd.out";
}

/* reflection_pad and replication_pad: the last n dims; out[i, j, k] = in[map0[i], map1[j], map2[k]]. */
typedef struct opdi_pad_job {
    char *in, *out;
    int64_t planes, in_size[3], out_size[3];
    int64_t *map[3];                              /* from an output coordinate to an input one */
    int size, compute;
    bool back;
} opdi_pad_job;
static int64_t opdi_pad_map(int64_t i, int64_t low, int64_t n, bool reflect) {
    i -= low;
    if (!reflect) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}
#define OPDI_PAD_ROW_MOVE(T) {                                                                              \
        const T *a = (const T *)(const void *)j->in + x; T *b = (T *)(void *)j->out + y;                    \
        for (k = 0; k < n; k++) { b[k] = a[m[k]]; } break; }
#define OPDI_PAD_ROW_ADD(T) {                                                                               \
        T *a = (T *)(void *)j->in + x; const T *b = (const T *)(const void *)j->out + y;                    \
        for (k = 0; k < n; k++) { a[m[k]] += b[k]; } }
static void opdi_pad_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_pad_job *j = (const opdi_pad_job *)ctx;
    const int64_t in_plane = j->in_size[0] * j->in_size[1] * j->in_size[2], n = j->out_size[2], *m = j->map[2];
    int64_t p, u, v, k, y;
    for (p = begin; p < end; p++) {
        for (u = 0; u < j->out_size[0]; u++) {
            for (v = 0; v < j->out_size[1]; v++) {
                const int64_t x = p * in_plane + (j->map[0][u] * j->in_size[1] + j->map[1][v]) * j->in_size[2];
                y = ((p * j->out_size[0] + u) * j->out_size[1] + v) * n;
                if (j->back) {
                    if (j->compute == OPDI_F64) { OPDI_PAD_ROW_ADD(double) } else { OPDI_PAD_ROW_ADD(float) }
                    continue;
                }
                switch (j->size) {
                    case 1: OPDI_PAD_ROW_MOVE(uint8_t)
                    case 2: OPDI_PAD_ROW_MOVE(uint16_t)
                    case 4: OPDI_PAD_ROW_MOVE(uint32_t)
                    case 8: OPDI_PAD_ROW_MOVE(uint64_t)
                    default: for (k = 0; k < n; k++) { memcpy(j->out + (y + k) * j->size, j->in + (x + m[k]) * j->size, (size_t)j->size); }
                }
            }
        }
    }
}
/* in (or, backward, its zeroed gradient) against out. */
static int opdi_pad_run(opd_tensor *in, opd_tensor *out, opd_ints pad, bool reflect, bool back) {
    const int nd = (int)pad.n / 2;
    opdi_pad_job j;
    int64_t total = 0, i;
    opd_tensor *maps;
    int d;
    j.in = in->data; j.out = out->data; j.back = back; j.size = (int)opd_dtype_size((opd_scalar_type)in->dtype);
    j.compute = opdi_compute_type((opd_scalar_type)in->dtype);
    j.planes = opdi_span_of(opdi_sizes(in), 0, in->ndim - nd);
    for (d = 0; d < 3; d++) {
        const int at = in->ndim - 3 + d;
        j.in_size[d] = 3 - d <= nd ? opdi_sizes(in)[at] : 1;
        j.out_size[d] = 3 - d <= nd ? opdi_sizes(out)[at] : 1;
        total += j.out_size[d];
    }
    maps = opdi_own(opdi_tensor_make(&total, NULL, 1, OPD_INT64, OPD_CPU));
    if (!maps) { return -1; }
    j.map[0] = (int64_t *)(void *)maps->data; j.map[1] = j.map[0] + j.out_size[0]; j.map[2] = j.map[1] + j.out_size[1];
    for (d = 0; d < 3; d++) {
        const int64_t low = 3 - d <= nd ? pad.data[2 * (2 - d)] : 0;
        for (i = 0; i < j.out_size[d]; i++) { j.map[d][i] = opdi_pad_map(i, low, j.in_size[d], reflect); }
    }
    if (out->numel == 0) { return 0; }
    opdi_parallel_for(j.planes, OPDI_MAX((int64_t)1, OPDI_GRAIN * j.planes / out->numel), opdi_pad_part, &j);
    return 0;
}
/* Checks, and the sizes of the padded tensor. */
static int opdi_pad_sizes(const opd_tensor *in, opd_ints pad, bool reflect, int64_t *sizes) {
    const int nd = (int)pad.n / 2;
    char text[256];
    int d;
    (void)opdi_sizes_text(opdi_sizes(in), in->ndim, text, sizeof text);
    if (in->ndim != nd + 1 && in->ndim != nd + 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", nd + 1, nd + 2, text);
    }
    for (d = 0; d < in->ndim; d++) {
        const int k = 2 * (in->ndim - 1 - d);
        const int64_t n = opdi_sizes(in)[d];
        sizes[d] = n;
        if (n == 0 && !(d == 0 && in->ndim == nd + 2)) {
            return opd_fail(OPD_ERROR_SHAPE, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: %s", nd + 1, nd + 2, text);
        }
        if (k >= pad.n) { continue; }
        if (reflect && (pad.data[k] >= n || pad.data[k + 1] >= n)) {
            return opd_fail(OPD_ERROR_SHAPE, "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (%lld, %lld) at dimension %d of input %s",
                            (long long)pad.data[k], (long long)pad.data[k + 1], d, text);
        }
        if (OPDI_MAX(pad.data[k], pad.data[k + 1]) > INT64_MAX / 4 || pad.data[k] < -n || pad.data[k + 1] < -n || n + pad.data[k] + pad.data[k + 1] < 1) {
            return opd_fail(OPD_ERROR_SHAPE, "input (size %lld at dimension %d) is too small for the padding (%lld, %lld)", (long long)n, d,
                            (long long)pad.data[k], (long long)pad.data[k + 1]);
        }
        sizes[d] = n + pad.data[k] + pad.data[k + 1];
    }
    return 0;
}
static bool opdi_pad_reflects(const opd_call *call) { return strncmp(call->op->schema->name, "reflection", 10) == 0; }
OPDI_KERNEL(pad_nd) {
    opd_tensor *in = opd_arg_tensor(call, 0), *out, *desk;
    const opd_ints pad = opd_arg_ints(call, 1);
    const bool reflect = opdi_pad_reflects(call);
    int64_t sizes[OPD_MAX_DIMS];
    if (opdi_pad_sizes(in, pad, reflect, sizes)) { return -1; }
    if (opd_dtype_is_integral((opd_scalar_type)in->dtype, true) && (in->dtype == OPD_BOOL || reflect || 1)) {
        return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", call->op->schema->name, opd_dtype_cname((opd_scalar_type)in->dtype));
    }
    out = opd_result(call, 0, sizes, in->ndim, (opd_scalar_type)in->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    in = opdi_packed(in);
    desk = in ? opdi_desk(out, (opd_scalar_type)out->dtype) : NULL;
    return desk && opdi_pad_run(in, desk, pad, reflect, false) == 0 ? opdi_settle(out, desk) : -1;
}
OPDI_KERNEL(pad_nd_backward) {
    opd_tensor *g = opd_arg_tensor(call, 0), *in = opd_arg_tensor(call, 1), *out, *desk;
    const opd_ints pad = opd_arg_ints(call, 2);
    const bool reflect = opdi_pad_reflects(call);
    int64_t sizes[OPD_MAX_DIMS];
    if (opdi_pad_sizes(in, pad, reflect, sizes)) { return -1; }
    if (!opdi_has_sizes(g, sizes, in->ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_output width unexpected. Expected: %lld, Got: %lld", (long long)sizes[in->ndim - 1], (long long)(g->ndim ? opdi_sizes(g)[g->ndim - 1] : 0));
    }
    if (!opd_dtype_is_floating((opd_scalar_type)g->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", call->op->schema->name, opd_dtype_cname((opd_scalar_type)g->dtype)); }
    out = opd_result(call, 0, opdi_sizes(in), in->ndim, (opd_scalar_type)g->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    desk = opdi_desk_f32(out);
    g = desk ? opdi_as(g, (opd_scalar_type)desk->dtype) : NULL;
    if (!g) { return -1; }
    memset(desk->data, 0, (size_t)desk->numel * opd_dtype_size((opd_scalar_type)desk->dtype));
    return opdi_pad_run(desk, g, pad, reflect, true) == 0 ? opdi_settle(out, desk) : -1;
}
static const char *const opdi_pad_names[2][3] = {{"aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"},
                                                 {"aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d"}};
static opd_tensor *opdi_o_pad(opd_tensor *t, opd_value pad, bool reflect) {
    opd_op *h = NULL;
    return opdi_aten(&h, opdi_pad_names[reflect][OPDI_MIN(pad.n / 2, 3) - 1], opd_value_tensor(t), pad, OPD_DEFAULT, OPD_DEFAULT);
}
static opd_tensor *opdi_o_pad_backward(opd_tensor *g, opd_tensor *in, opd_value pad, bool reflect) {
    char name[64];
    opd_op *h = NULL;
    (void)snprintf(name, sizeof name, "%s_backward", opdi_pad_names[reflect][OPDI_MIN(pad.n / 2, 3) - 1]);
    return opdi_aten(&h, name, opd_value_tensor(g), opd_value_tensor(in), pad, OPD_DEFAULT);
}
#define OPDI_PAD(id, reflect, pad_, schema_, backward_schema_, backward_out_, cases_, backward_cases_)        \
    OPDI_BW1(id) { return opd_bw_return(bw, 0, opdi_o_pad_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), reflect)); } \
    OPDI_BW1(id##_backward) {                                                                               \
        OPDI_GIVE(0, opdi_o_pad(opd_bw_grad(bw, 0), opd_bw_value(bw, 2), reflect));                         \
        OPDI_GIVE(1, opdi_o_zeros(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 1)));                                \
        return 0;                                                                                           \
    }                                                                                                       \
    OPDI_OP(id) {                                                                                           \
        opdi_card_of(op, schema_, opdi_pad_nd_kernel, opdi_##id##_backward, "self", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, cases_); \
        op->out = #id ".out";                                                                               \
    }                                                                                                       \
    OPDI_OP(id##_backward) {                                                                                \
        opdi_card_of(op, backward_schema_, opdi_pad_nd_backward_kernel, opdi_##id##_backward_backward, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, backward_cases_); \
        op->out = backward_out_;                                                                            \
    }
#define OPDI_PAD_SET(id, reflect, n, cases_, backward_cases_)                                               \
    OPDI_PAD(id, reflect, n, #id "(Tensor self, int[" #n "] padding) -> Tensor",                            \
             #id "_backward(Tensor grad_output, Tensor self, int[" #n "] padding) -> Tensor",               \
             #id "_backward.grad_input(Tensor grad_output, Tensor self, int[" #n "] padding, *, Tensor(a!) grad_input) -> Tensor(a!)", \
             cases_, backward_cases_)
OPDI_PAD_SET(reflection_pad1d, true, 2, "[2,3,4], (1,2)", "[2,3,7], [2,3,4], (1,2)")
OPDI_PAD_SET(reflection_pad2d, true, 4, "[2,3,4], (1,2,1,0)", "[2,4,7], [2,3,4], (1,2,1,0)")
OPDI_PAD_SET(reflection_pad3d, true, 6, "[2,2,3,4], (1,2,1,0,0,1)", "[2,3,4,7], [2,2,3,4], (1,2,1,0,0,1)")
OPDI_PAD_SET(replication_pad1d, false, 2, "[2,3,4], (1,2)", "[2,3,7], [2,3,4], (1,2)")
OPDI_PAD_SET(replication_pad2d, false, 4, "[2,3,4], (1,2,1,0)", "[2,4,7], [2,3,4], (1,2,1,0)")
OPDI_PAD_SET(replication_pad3d, false, 6, "[2,2,3,4], (1,2,1,0,0,1)", "[2,3,4,7], [2,2,3,4], (1,2,1,0,0,1)")
/* circular: whole slices of the other end, dim by dim. */
static opd_tensor *opdi_pad_circular(opd_tensor *t, opd_value pad) {
    int k;
    for (k = 0; k < pad.n / 2 && t; k++) {
        const int dim = t->ndim - 1 - k;
        const int64_t low = pad.u.ints[2 * k], high = pad.u.ints[2 * k + 1], n = opdi_sizes(t)[dim];
        opd_tensor *parts[3];
        int np = 0;
        if (low > n || high > n) { (void)opd_fail(OPD_ERROR_SHAPE, "Padding value causes wrapping around more than once."); return NULL; }
        if (low < -n || high < -n || n + low + high < 0) { (void)opd_fail(OPD_ERROR_SHAPE, "Negative padding value is resulting in an empty dimension"); return NULL; }
        if (low > 0) { parts[np++] = opdi_o_narrow(t, dim, n - low, low); }
        parts[np++] = opdi_o_narrow(t, dim, low < 0 ? -low : 0, n + OPDI_MIN(low, (int64_t)0) + OPDI_MIN(high, (int64_t)0));
        if (high > 0) { parts[np++] = opdi_o_narrow(t, dim, 0, high); }
        if (!opd_ok()) { return NULL; }
        t = opd_cat_full(opd_tensors_of(parts, np), dim);
    }
    return t;
}
OPDI_KERNEL(pad) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    const char *mode = opd_arg_str(call, 2);
    const opd_value v = opd_value_of_ints(pad);
    const int nd = (int)pad.n / 2;
    if (strcmp(mode, "constant") == 0) {
        return opd_return_tensor(call, opd_constant_pad_nd_full(self, pad, opd_arg_is_none(call, 3) ? opd_value_float(0) : opd_arg_value(call, 3)));
    }
    if (pad.n % 2 || pad.n > 2 * self->ndim) { return opd_fail(OPD_ERROR_SHAPE, "Padding length must be divisible by 2 and at most twice the number of dimensions of the input"); }
    if (!opd_arg_is_none(call, 3) && opd_arg_float(call, 3) > 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Padding mode \"%s\" doesn't take in value argument", mode); }
    if (nd < 1 || nd > 3 || (self->ndim != nd + 1 && self->ndim != nd + 2)) {
        return opd_fail(OPD_ERROR_SHAPE, "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
    }
    if (strcmp(mode, "reflect") == 0) { return opd_return_tensor(call, opdi_o_pad(self, v, true)); }
    if (strcmp(mode, "replicate") == 0) { return opd_return_tensor(call, opdi_o_pad(self, v, false)); }
    if (strcmp(mode, "circular") == 0) { return opd_return_tensor(call, opdi_pad_circular(self, v)); }
    return opd_fail(OPD_ERROR_ARGUMENT, "Unrecognised padding mode %s", mode);
}
OPDI_OP(pad) {
    opdi_card_composite(op, "pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor", opdi_pad_kernel, OPD_AUTOCAST_KEEP,
                        "[2,3,4], (1,2); [2,3,4], (1,2), 'reflect'; [2,3,4], (1,2), 'circular'");
}

//-- embedding, one_hot --------------------------------------------------------------------------------------------------------

static int opdi_embedding_index(const opd_tensor *x, const char *name) {
    if (x->dtype == OPD_INT64 || x->dtype == OPD_INT32) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got %s instead "
                    "(while checking arguments for %s)", opd_dtype_cname((opd_scalar_type)x->dtype), name);
}
OPDI_KERNEL(embedding) {
    opd_tensor *w = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *out;
    int64_t sizes[OPD_MAX_DIMS];
    if (w->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "'weight' must be 2-D"); }
    if (opdi_embedding_index(x, "embedding")) { return -1; }
    if (x->ndim >= OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions", OPD_MAX_DIMS); }
    memcpy(sizes, opdi_sizes(x), sizeof *sizes * x->ndim);
    sizes[x->ndim] = opdi_sizes(w)[1];
    out = opd_result(call, 0, sizes, x->ndim + 1, (opd_scalar_type)w->dtype);
    return !out ? -1 : !out->data ? 0 : opdi_rows_select(w, 0, x, out, "index out of range in self");
}
OPDI_BW1(embedding) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    return opd_bw_return(bw, 0, opd_embedding_dense_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 1), sizes.data[0], opd_bw_value(bw, 2).u.i,
                                                            opd_bw_value(bw, 3).u.i != 0));
}
OPDI_OP(embedding) {
    opdi_card_of(op, "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
                 opdi_embedding_kernel, opdi_embedding_backward, "indices", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[5,3], [2,2]i5; [5,3], [4]i5, 1");
    op->out = "embedding.out";
}
/* The rows of g are added to the rows of the result that their index names; piece by piece of the row among threads. */
OPDI_KERNEL(embedding_dense_backward) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *out, *desk;
    const int64_t rows = opd_arg_int(call, 2), skip = opd_arg_int(call, 3);
    const bool scale = opd_arg_bool(call, 4);
    int64_t sizes[2], i, k, *counts;
    opd_tensor *count = NULL;
    if (opdi_embedding_index(x, "embedding_backward")) { return -1; }
    if (g->ndim == 0 || rows < 0) { return opd_fail(OPD_ERROR_SHAPE, "embedding_dense_backward: expected grad_output with dimensions and num_weights >= 0"); }
    sizes[0] = rows; sizes[1] = opdi_sizes(g)[g->ndim - 1];
    if (g->numel != x->numel * sizes[1]) { return opd_fail(OPD_ERROR_SHAPE, "embedding_dense_backward: grad_output has %lld rows for %lld indices", (long long)(sizes[1] ? g->numel / sizes[1] : 0), (long long)x->numel); }
    if (!opd_dtype_is_floating((opd_scalar_type)g->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "\"embedding_backward\" not implemented for '%s'", opd_dtype_cname((opd_scalar_type)g->dtype)); }
    out = opd_result(call, 0, sizes, 2, (opd_scalar_type)g->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    desk = opdi_desk_f32(out);
    g = desk ? opdi_as(g, (opd_scalar_type)desk->dtype) : NULL;
    x = g ? opdi_as(x, OPD_INT64) : NULL;
    count = x ? opdi_own(opdi_tensor_make(&rows, NULL, 1, OPD_INT64, OPD_CPU)) : NULL;
    if (!count) { return -1; }
    counts = (int64_t *)(void *)count->data;
    memset(counts, 0, (size_t)rows * sizeof *counts);
    memset(desk->data, 0, (size_t)desk->numel * opd_dtype_size((opd_scalar_type)desk->dtype));
    for (i = 0; i < x->numel; i++) {
        k = ((const int64_t *)(const void *)x->data)[i];
        if (k == skip) { continue; }
        if (k < 0 || k >= rows) { return opd_fail(OPD_ERROR_INDEX, "index out of range in self"); }
        counts[k]++;
    }
    for (i = 0; i < x->numel; i++) {
        double f;
        int64_t c;
        k = ((const int64_t *)(const void *)x->data)[i];
        if (k == skip) { continue; }
        f = scale ? 1.0 / (double)counts[k] : 1.0;
        if (desk->dtype == OPD_FLOAT32) {
            float *a = (float *)(void *)desk->data + k * sizes[1];
            const float *b = (const float *)(const void *)g->data + i * sizes[1], s = (float)f;
            for (c = 0; c < sizes[1]; c++) { a[c] += s * b[c]; }
        } else {
            double *a = (double *)(void *)desk->data + k * sizes[1];
            const double *b = (const double *)(const void *)g->data + i * sizes[1];
            for (c = 0; c < sizes[1]; c++) { a[c] += f * b[c]; }
        }
    }
    return opdi_settle(out, desk);
}
OPDI_BW1(embedding_dense_backward) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 1);
    const int64_t skip = opd_bw_value(bw, 3).u.i;
    if (opd_bw_value(bw, 4).u.i) { return opd_fail(OPD_ERROR_AUTOGRAD, "double backward of embedding with scale_grad_by_freq is not supported"); }
    g = opd_embedding(g, x);
    if (skip >= 0) { g = opdi_unless(g, opdi_o_unsqueeze(opd_eq_Scalar(x, opd_value_int(skip)), -1)); }
    return opd_bw_return(bw, 0, g);
}
OPDI_OP(embedding_dense_backward) {
    opdi_card_of(op, "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor",
                 opdi_embedding_dense_backward_kernel, opdi_embedding_dense_backward_backward, "indices", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP,
                 "[2,2,3], [2,2]i5, 5, 1, False");
    op->out = "embedding_dense_backward.out";
}
OPDI_KERNEL(embedding_backward) {
    return opd_return_tensor(call, opd_embedding_dense_backward(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_int(call, 2),
                                                               opd_arg_int(call, 3), opd_arg_bool(call, 4)));
}
OPDI_OP(embedding_backward) {
    opdi_card_composite(op, "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, int padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
                        opdi_embedding_backward_kernel, OPD_AUTOCAST_KEEP, "");
}
OPDI_KERNEL(one_hot) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *desk;
    int64_t n = opd_arg_int(call, 1), sizes[OPD_MAX_DIMS], i, most = -1;
    const int64_t *v;
    if (x->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "one_hot is only applicable to index tensor."); }
    if (x->ndim >= OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions", OPD_MAX_DIMS); }
    if (x->numel == 0 && n <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Can not infer total number of classes from empty tensor."); }
    if (!x->data && n <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "one_hot of a fake tensor needs num_classes"); }
    x = x->data ? opdi_packed(x) : x;
    if (!x) { return -1; }
    v = (const int64_t *)(const void *)x->data;
    for (i = 0; v && i < x->numel; i++) {
        if (v[i] < 0) { return opd_fail(OPD_ERROR_INDEX, "Class values must be non-negative."); }
        most = OPDI_MAX(most, v[i]);
    }
    if (n == -1) { n = most == INT64_MAX ? most : most + 1; }
    else if (n < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "num_classes should be positive"); }
    else if (most >= n) { return opd_fail(OPD_ERROR_INDEX, "Class values must be smaller than num_classes."); }
    memcpy(sizes, opdi_sizes(x), sizeof *sizes * x->ndim);
    sizes[x->ndim] = n;
    out = opd_result(call, 0, sizes, x->ndim + 1, OPD_INT64);
    if (!out || !out->data) { return out ? 0 : -1; }
    desk = opdi_desk(out, OPD_INT64);
    if (!desk) { return -1; }
    memset(desk->data, 0, (size_t)desk->numel * 8);
    for (i = 0; i < x->numel; i++) { ((int64_t *)(void *)desk->data)[i * n + v[i]] = 1; }
    return opdi_settle(out, desk);
}
OPDI_OP(one_hot) {
    opdi_card_of(op, "one_hot(Tensor self, int num_classes=-1) -> Tensor", opdi_one_hot_kernel, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP,
                 OPD_AUTOCAST_KEEP, "[2,3]i5, 5");
}

//-- writing through a view: slice_scatter and its kin -------------------------------------------------------------------------

/* The formulas: self's gradient is g with zeros where src went, src's is g seen through the same view. */
static int opdi_view_scatter(opd_call *call, const char *name, int nargs) {
    opd_tensor *src = opd_arg_tensor(call, 1), *out, *place;
    opd_value v[6];
    opd_op *h = NULL;
    int i;
    out = opdi_update(call, true);
    if (!out) { return -1; }
    v[0] = opd_value_tensor(out);
    for (i = 1; i < nargs; i++) { v[i] = call->args[i + 1]; }
    place = opd_call_op(OPD_OP(&h, name), v, nargs);
    if (!place) { return -1; }
    if (!opdi_same_sizes(place, src)) {
        char a[256], b[256];
        return opd_fail(OPD_ERROR_SHAPE, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                        opdi_sizes_text(opdi_sizes(src), src->ndim, a, sizeof a), opdi_sizes_text(opdi_sizes(place), place->ndim, b, sizeof b));
    }
    return out->data ? opdi_copy(place, src) : 0;
}
static int opdi_view_scatter_backward(opd_backward_call *bw, const char *view, const char *scatter, int nargs) {
    opd_tensor *g = opd_bw_grad(bw, 0), *part;
    opd_value v[7];
    opd_op *h = NULL, *s = NULL;
    int i;
    v[0] = opd_value_tensor(g);
    for (i = 1; i < nargs; i++) { v[i] = opd_bw_value(bw, i + 1); }
    part = opd_call_op(OPD_OP(&h, view), v, nargs);
    if (!part) { return -1; }
    OPDI_GIVE(1, part);
    if (!opd_bw_needs(bw, 0)) { return 0; }
    v[1] = opd_value_tensor(opd_zeros_like(part));
    for (i = 1; i < nargs; i++) { v[i + 1] = opd_bw_value(bw, i + 1); }
    return opd_bw_return(bw, 0, opd_call_op(OPD_OP(&s, scatter), v, nargs + 1));
}
#define OPDI_VIEW_SCATTER(id, view, nargs, schema_, cases_)                                                 \
    OPDI_KERNEL(id) { return opdi_view_scatter(call, view, nargs); }                                        \
    OPDI_BW1(id) { return opdi_view_scatter_backward(bw, view, "aten::" #id, nargs); }                      \
    OPDI_OP(id) {                                                                                           \
        opdi_card_of(op, schema_, opdi_##id##_kernel, opdi_##id##_backward, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, cases_); \
        op->out = #id ".out";                                                                               \
    }
OPDI_VIEW_SCATTER(slice_scatter, "aten::slice.Tensor", 5,
                  "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor", "[4,3], [2,3], 0, 1, 3")
OPDI_VIEW_SCATTER(select_scatter, "aten::select.int", 3, "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor", "[4,3], [4], 1, 2")
OPDI_VIEW_SCATTER(diagonal_scatter, "aten::diagonal", 4,
                  "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor", "[4,3], [3]")
OPDI_VIEW_SCATTER(as_strided_scatter, "aten::as_strided", 4,
                  "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor", "[4,3], [2,2], (2,2), (3,1), 1")

//-- repeat_interleave, searchsorted, bucketize ----------------------------------------------------------------------------------

OPDI_KERNEL(repeat_interleave_Tensor) {
    opd_tensor *r = opd_arg_tensor(call, 0), *out, *desk, *x;
    const int64_t *v;
    int64_t i, k, n = 0, *p;
    if (r->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "repeat_interleave only accept 1D vector as repeat"); }
    if (r->dtype != OPD_INT64 && r->dtype != OPD_INT32) { return opd_fail(OPD_ERROR_DTYPE, "repeats has to be Long or Int tensor"); }
    if (!r->data) { return opd_fail(OPD_ERROR_ARGUMENT, "repeats without data say nothing about the result's size"); }
    x = opdi_as(r, OPD_INT64);
    if (!x) { return -1; }
    v = (const int64_t *)(const void *)x->data;
    for (i = 0; i < x->numel; i++) {
        if (v[i] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "repeats can not be negative"); }
        if (v[i] > INT64_MAX / 16 - n) { return opd_fail(OPD_ERROR_SHAPE, "repeat_interleave: the result does not fit into memory"); }
        n += v[i];
    }
    if (!opd_arg_is_none(call, 1) && opd_arg_int(call, 1) != n) { return opd_fail(OPD_ERROR_SHAPE, "allocated size does not match required size"); }
    out = opd_result(call, 0, &n, 1, (opd_scalar_type)r->dtype);
    desk = out ? opdi_desk(out, OPD_INT64) : NULL;
    if (!desk) { return -1; }
    p = (int64_t *)(void *)desk->data;
    for (i = 0; i < x->numel; i++) { for (k = 0; k < v[i]; k++) { *p++ = i; } }
    return opdi_settle(out, desk);
}
OPDI_OP(repeat_interleave_Tensor) {
    opdi_card_of(op, "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor", opdi_repeat_interleave_Tensor_kernel,
                 OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[3]i4");
    op->out = "repeat_interleave.Tensor_out";
}
/* self's slices along dim (flat without one), each as often as repeats says (one number: all of them). */
static int opdi_repeat_interleave(opd_call *call, opd_tensor *repeats) {
    static opd_op *h;
    opd_tensor *self = opd_arg_tensor(call, 0), *index;
    const int64_t minus = -1;
    int dim = 0;
    int64_t n;
    if (opd_arg_is_none(call, 2)) { self = opdi_o_reshape(self, &minus, 1); }
    else { dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim); }
    if (!self || !repeats || dim < 0) { return -1; }
    n = self->ndim ? opdi_sizes(self)[dim] : 1;
    if (repeats->ndim == 0 || (repeats->ndim == 1 && repeats->numel == 1)) { repeats = opdi_o_expand(opdi_o_reshape(repeats, &minus, 1), &n, 1); }
    else if (repeats->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "repeats must be 0-dim or 1-dim tensor"); }
    else if (repeats->numel != n) { return opd_fail(OPD_ERROR_SHAPE, "repeats must have the same size as input along dim"); }
    index = opdi_aten(&h, "aten::repeat_interleave.Tensor", opd_value_tensor(repeats), opd_arg_value(call, 3), OPD_DEFAULT, OPD_DEFAULT);
    return opd_return_tensor(call, opd_index_select(self, dim, index));
}
OPDI_KERNEL(repeat_interleave_self_Tensor) { return opdi_repeat_interleave(call, opd_arg_tensor(call, 1)); }
OPDI_KERNEL(repeat_interleave_self_int) {
    const int64_t n = opd_arg_int(call, 1);
    return opdi_repeat_interleave(call, opd_tensor_from(&n, opd_ints_of(NULL, 0), OPD_INT64));
}
OPDI_OP(repeat_interleave_self_Tensor) {
    opdi_card_composite(op, "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor",
                        opdi_repeat_interleave_self_Tensor_kernel, OPD_AUTOCAST_KEEP, "[2,3], [3]i4, 1");
}
OPDI_OP(repeat_interleave_self_int) {
    opdi_card_composite(op, "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor",
                        opdi_repeat_interleave_self_int_kernel, OPD_AUTOCAST_KEEP, "[2,3], 2, 1");
}

/* Position of v among n sorted numbers: the first that is not below it, or (right) the first above it. */
#define OPDI_SEARCH(T) {                                                                                    \
        const T *s = (const T *)(const void *)seq; const T x = v;                                           \
        while (low < high) {                                                                                \
            const int64_t mid = low + (high - low) / 2; const T y = s[order ? order[mid] : mid];            \
            if (right ? !(y > x) : !(y >= x)) { low = mid + 1; } else { high = mid; }                       \
        } return low; }
static int64_t opdi_search_f64(const char *seq, const int64_t *order, int64_t n, double v, bool right) {
    int64_t low = 0, high = n;
    OPDI_SEARCH(double)
}
static int64_t opdi_search_i64(const char *seq, const int64_t *order, int64_t n, int64_t v, bool right) {
    int64_t low = 0, high = n;
    OPDI_SEARCH(int64_t)
}
/* seq [rows, n] or [n], values [rows, m] or of any shape. */
static int opdi_search(opd_call *call, opd_tensor *seq, opd_tensor *values, opd_tensor *sorter, bool narrow, bool right) {
    const bool whole = opd_dtype_is_integral((opd_scalar_type)seq->dtype, true);
    const opd_scalar_type t = whole ? OPD_INT64 : OPD_FLOAT64;
    const int64_t n = seq->ndim ? opdi_sizes(seq)[seq->ndim - 1] : 1;
    const int64_t m = seq->ndim > 1 ? opdi_sizes(values)[values->ndim - 1] : OPDI_MAX(values->numel, (int64_t)1);
    opd_tensor *out, *desk;
    int64_t i;
    if (narrow && n > INT32_MAX) { return opd_fail(OPD_ERROR_SHAPE, "torch.searchsorted(): the size of boundaries' last dimension should be less than 2147483647"); }
    out = opd_result(call, 0, opdi_sizes(values), values->ndim, narrow ? OPD_INT32 : OPD_INT64);
    if (!out || !out->data) { return out ? 0 : -1; }
    desk = opdi_desk(out, OPD_INT64);
    seq = desk ? opdi_as(seq, t) : NULL;
    values = seq ? opdi_as(values, t) : NULL;
    if (!values || (sorter && !(sorter = opdi_packed(sorter)))) { return -1; }
    for (i = 0; i < values->numel; i++) {
        const int64_t row = seq->ndim > 1 ? i / m : 0;
        const int64_t *order = sorter ? (const int64_t *)(const void *)sorter->data + row * n : NULL;
        const char *s = seq->data + row * n * 8;
        ((int64_t *)(void *)desk->data)[i] = whole ? opdi_search_i64(s, order, n, ((const int64_t *)(const void *)values->data)[i], right)
                                                   : opdi_search_f64(s, order, n, ((const double *)(const void *)values->data)[i], right);
    }
    return opdi_settle(out, desk);
}
static int opdi_search_check(opd_tensor *seq, opd_tensor *values, opd_tensor *sorter) {
    int64_t i, n = seq->ndim ? opdi_sizes(seq)[seq->ndim - 1] : 1;
    int d;
    if (seq->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, and boundaries tensor should have positive dimension"); }
    if (opd_dtype_is_complex((opd_scalar_type)seq->dtype)) { return opd_fail(OPD_ERROR_DTYPE, "torch.searchsorted(): not implemented for complex tensors"); }
    if (values->dtype != seq->dtype && !(values->flags & OPDI_WRAPPED)) {
        return opd_fail(OPD_ERROR_DTYPE, "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary tensor dtype %s and input value tensor dtype %s",
                        opd_dtype_cname((opd_scalar_type)seq->dtype), opd_dtype_cname((opd_scalar_type)values->dtype));
    }
    for (d = 0; seq->ndim > 1 && d < seq->ndim - 1; d++) {
        if (seq->ndim != values->ndim || opdi_sizes(seq)[d] != opdi_sizes(values)[d]) {
            return opd_fail(OPD_ERROR_SHAPE, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match");
        }
    }
    if (!sorter) { return 0; }
    if (!opdi_same_sizes(sorter, seq)) { return opd_fail(OPD_ERROR_SHAPE, "torch.searchsorted(): boundary and sorter must have the same size"); }
    if (sorter->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s", opd_dtype_cname((opd_scalar_type)sorter->dtype)); }
    if (!sorter->data) { return 0; }
    sorter = opdi_packed(sorter);
    for (i = 0; sorter && i < sorter->numel; i++) {
        const int64_t k = ((const int64_t *)(const void *)sorter->data)[i];
        if (k < 0 || k >= n) { return opd_fail(OPD_ERROR_INDEX, "torch.searchsorted(): sorter index out of range"); }
    }
    return sorter ? 0 : -1;
}
/* Argument i, a Tensor or a Scalar; a Scalar in the dtype of the sequence or, like PyTorch, a wrapped float. */
static opd_tensor *opdi_search_value(opd_call *call, int i) {
    const opd_value v = opd_arg_value(call, i);
    return v.tag == OPD_TAG_TENSOR ? v.u.t : opd_tensor_wrapped_number(v);
}
OPDI_KERNEL(searchsorted) {
    opd_tensor *seq = opd_arg_tensor(call, 0), *values = opdi_search_value(call, 1), *sorter = opd_arg_tensor(call, 5);
    bool right = opd_arg_bool(call, 3);
    if (!values) { return -1; }
    if (!opd_arg_is_none(call, 4)) {
        const char *side = opd_arg_str(call, 4);
        if (strcmp(side, "left") && strcmp(side, "right")) { return opd_fail(OPD_ERROR_ARGUMENT, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side); }
        if (right && *side == 'l') { return opd_fail(OPD_ERROR_ARGUMENT, "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"); }
        right = *side == 'r';
    }
    if (opdi_search_check(seq, values, sorter)) { return -1; }
    return opdi_search(call, seq, values, sorter, opd_arg_bool(call, 2), right);
}
OPDI_KERNEL(bucketize) {
    opd_tensor *values = opdi_search_value(call, 0), *seq = opd_arg_tensor(call, 1);
    if (!values) { return -1; }
    if (seq->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "bucketize(): boundaries tensor must be 1 dimension, but got dim(%d)", seq->ndim); }
    if (opdi_search_check(seq, values, NULL)) { return -1; }
    return opdi_search(call, seq, values, NULL, opd_arg_bool(call, 2), opd_arg_bool(call, 3));
}
OPDI_OP(searchsorted_Tensor) {
    opdi_card_of(op, "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
                 opdi_searchsorted_kernel, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[4], [2,3]");
    op->out = "searchsorted.Tensor_out";
}
OPDI_OP(searchsorted_Scalar) {
    opdi_card_of(op, "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
                 opdi_searchsorted_kernel, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[4], 0.5");
}
OPDI_OP(bucketize_Tensor) {
    opdi_card_of(op, "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
                 opdi_bucketize_kernel, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "[2,3], [4]");
    op->out = "bucketize.Tensor_out";
}
OPDI_OP(bucketize_Scalar) {
    opdi_card_of(op, "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
                 opdi_bucketize_kernel, OPD_NOT_DIFFERENTIABLE, "", OPD_BATCH_LOOP, OPD_AUTOCAST_KEEP, "0.5, [4]");
}


//-- the list of all cards, and their registration ----------------------------------------------------------------

#define OPDI_CARD_ROW(card, qual, kind, fn, types, full_kind, full_types) opdi_card_##card,
static void (*const opdi_cards[])(opd_op_desc *op) = {OPD_OPERATORS(OPDI_CARD_ROW) NULL};
#undef OPDI_CARD_ROW
#define OPDI_NAME_ROW(card, qual, kind, fn, types, full_kind, full_types) "aten::" qual,
static const char *const opdi_card_names[] = {OPD_OPERATORS(OPDI_NAME_ROW) NULL};
#undef OPDI_NAME_ROW

//-- What every operator falls back to, key by key (aten/src/ATen/core/VariableFallbackKernel.cpp and its neighbours).
static int opdi_register_fallbacks(void) {
    static const char *const through[] = {"BackendSelect", "ADInplaceOrView", "AutocastCPU", "AutocastCUDA", "AutocastMeta",
        "AutocastXPU", "AutocastPrivateUse1", "Tracer", "FuncTorchVmapMode"};
    opd_library *lib;
    size_t i;
    for (i = 0; i <= sizeof through / sizeof *through; i++) {
        bool last = i == sizeof through / sizeof *through;
        lib = opd_library_open(OPD_IMPL, "_", last ? "Autograd" : through[i], "opdispatch.h", __LINE__);
        if (!lib || opd_fallback(lib, last ? opdi_autograd_fallback : opd_fallthrough)) { return -1; }
    }
    return 0;
}

//-- The built-in operators, before any library block runs.
static int opdi_register_builtins(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "aten", NULL, "opdispatch.h", __LINE__);
    int i;
    if (!lib || opdi_register_fallbacks()) { return -1; }
    for (i = 0; i < OPD_OP_COUNT; i++) {
        opd_op_desc desc;
        memset(&desc, 0, sizeof desc);
        opdi_cards[i](&desc);
        if (opd_define(lib, &desc)) { return -1; }
        opdi_registry.builtin[i] = opdi_lookup(opdi_card_names[i], strlen(opdi_card_names[i]));
        if (!opdi_registry.builtin[i]) { return opd_fail(OPD_ERROR_REGISTER, "the card of %s defines another name", opdi_card_names[i]); }
    }
    opdi_registry.builtin[OPD_OP_COUNT] = opdi_registry.builtin[0];
    return 0;
}

#endif /* OPDISPATCH_IMPLEMENTATION */

/*
   This software is available under two licences: choose whichever you prefer.
   The data in examples/data has its own licence, see examples/data/README.

   ------------------------------------------------------------------------------
   ALTERNATIVE A - MIT License

   Copyright (c) 2026 the opdispatch authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of
   this software and associated documentation files (the "Software"), to deal in
   the Software without restriction, including without limitation the rights to
   use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies
   of the Software, and to permit persons to whom the Software is furnished to do
   so, subject to the following conditions:

   The above copyright notice and this permission notice shall be included in all
   copies or substantial portions of the Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
   IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
   FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
   LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
   OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
   SOFTWARE.

   ------------------------------------------------------------------------------
   ALTERNATIVE B - Public Domain (www.unlicense.org)

   This is free and unencumbered software released into the public domain.

   Anyone is free to copy, modify, publish, use, compile, sell, or distribute this
   software, either in source code form or as a compiled binary, for any purpose,
   commercial or non-commercial, and by any means.

   In jurisdictions that recognize copyright laws, the author or authors of this
   software dedicate any and all copyright interest in the software to the public
   domain. We make this dedication for the benefit of the public at large and to
   the detriment of our heirs and successors. We intend this dedication to be an
   overt act of relinquishment in perpetuity of all present and future rights to
   this software under copyright law.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
   IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
   FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN
   ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION
   WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
*/
