//----------------------------------------------------------------------------------------------------------------------
//  >>api:load       plug-ins, and compiling at run time
//----------------------------------------------------------------------------------------------------------------------

/* A loaded library of operators (a plug-in). */
typedef struct opd_plugin opd_plugin;
/* Loads a library of operators (torch.ops.load_library) and runs its OPD_LIBRARY blocks:
       cc -shared -fPIC -DOPDISPATCH_PLUGIN ops.c -o ops.so
   On Windows, a library is a DLL, path is UTF-8, and the define is needed:
       gcc -shared -DOPDISPATCH_PLUGIN ops.c -o ops.dll
   With the define, the library calls the program through a table, whatever the program exports.  Without it, the
   program must export its symbols (-rdynamic).  path names a file; no folders are searched.  Loading a file again does
   nothing and returns the same handle.  Returns NULL and sets an error, with nothing registered, if one of these holds.
   - The file is not for this machine.
   - The library needs a newer minor version or another major version.
   - The library contains an implementation itself.
   - The library lacks a symbol.
   - A block of the library fails.
   If the library has instructions that this processor lacks (opd_plugin_lacks), this warns first: running them ends
   the program.
   Symbols of the library stay local (in PyTorch they become global).  Any thread may call this, but not from a
   constructor. */
OPD_API opd_plugin *opd_plugin_load(const char *path);
/* Returns the name of an instruction set, such as "AVX512", that the code of a shared library needs and this processor
   lacks; or NULL if none is known.  Code that was built with -march=native on a newer processor ends a program with
   SIGILL.  Finds AVX and later sets in ELF files for x86-64 that list their functions, as those of gcc and clang do.
   Returns NULL for a library that itself asks which instructions the processor has (cpuid), and for a file that cannot
   be read.  The file is not loaded.  Any thread may call this. */
OPD_API const char *opd_plugin_lacks(const char *path);
/* Removes all registrations of the library immediately.  The library's code stays mapped while it is needed: by an
   autograd node, a deleter, a tensor over its data, an observer, a device that it registered, or a call that began
   before.  The code is unmapped when the last of these ends, or at the next load or unload.  Returns 0, or -1 and sets
   an error if the library is not loaded.  Works while an error is pending. */
OPD_API int opd_plugin_unload(opd_plugin *plugin);
/* opd_plugin_next: Returns the next loaded library after plugin, or the first if plugin is NULL.
   opd_plugin_path: Returns the path as it was given, which lives as long as the library is loaded. */
OPD_API opd_plugin *opd_plugin_next(const opd_plugin *plugin);
OPD_API const char *opd_plugin_path(const opd_plugin *plugin);
/* Compiles C files (.cpp, .cc, .cxx: C++; .cu: CUDA) with $CC ($CXX, $NVCC), or cc (c++, nvcc), on Windows gcc (g++),
   into a plug-in and loads it (torch.utils.cpp_extension.load).  No shell is used.  Returns the plug-in.  On failure,
   returns NULL and sets an error with the compiler's message.  If $OPD_VERBOSE is set, commands are logged.
   files: Ends with NULL.  Compilers work on as many files at the same time as there are processors.
   flags: Words separated by blanks, for compilers and linker, or NULL.  nvcc gets words that it does not know by
   -Xcompiler.  It makes code for the GPU of this machine, unless a word or $NVCC ("nvcc -arch=sm_90") says otherwise.
   name: Letters, digits and _.+-, used in the names of files in the cache.
   Cache: The result is kept in $XDG_CACHE_HOME/opdispatch (or ~/.cache/opdispatch, or on Windows
   %LOCALAPPDATA%\opdispatch), which only the user may write.  The folder may be a link.  The result is used again while
   flags, compiler, version, the files and their includes stay the same and, with -march=native, the processor.  A
   result that a crash or a full disk damaged is built again.  If the folder has more than $OPD_CACHE_MB megabytes
   (512), the results that were not used for the longest time are removed after a compilation, but none that was used
   within the last hour.
   Includes: opdispatch.h is searched in the folders of the flags (-I), then in $OPD_INCLUDE or, if that is not set, in
   the folder from which this program was compiled (unless other users can write there), and then in the system's
   folders. (If the path of the program's source is relative, it is searched from the program's folder and the folders
   above it, never from the current folder.) */
OPD_API opd_plugin *opd_compile_and_load(const char *name, const char *const *files, const char *flags);
/* Compiles and loads source text like opd_compile_and_load.  The text is C++ if name ends in .cpp,
   CUDA if it ends in .cu. */
OPD_API opd_plugin *opd_compile_and_load_inline(const char *name, const char *source, const char *flags);

#ifdef __cplusplus
}
#endif

#if defined(__COUNTER__)
#define OPDI_BLOCK_NUMBER __COUNTER__
#else
#define OPDI_BLOCK_NUMBER __LINE__
#endif
#if defined(__cplusplus)
#define OPDI_AT_LOAD(n, id) \
    namespace { struct opd_block_at_load_##n { opd_block_at_load_##n() { opd_block_use_##n(); } } \
        opd_block_object_##n; }
#define OPDI_USE_BLOCKS(id) (void)0
#elif defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_AT_LOAD(n, id) \
    __attribute__((constructor)) static void opd_block_at_load_##n(void) { opd_block_use_##n(); }
#define OPDI_USE_BLOCKS(id) (void)0
#elif defined(_MSC_VER)
#define OPDI_AT_LOAD(n, id) \
    static void __cdecl opd_block_at_load_##n(void) { opd_block_use_##n(); } \
    OPDI_MICROSOFT_AT_LOAD(opd_block_at_load_##n, id, n, __LINE__)
#define OPDI_USE_BLOCKS(id) (void)0
#else
/* Without constructors, the n-th block of a file fills its slot n, and OPD_USE_LIBRARY searches the slots. */
typedef struct opdi_block_slot { const char *id; void (*use)(void); } opdi_block_slot;
#define OPDI_BLOCK_SLOTS(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) \
    X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) \
    X(26) X(27) X(28) X(29) X(30) X(31) X(32) X(33) X(34) X(35) X(36) X(37) X(38) \
    X(39) X(40) X(41) X(42) X(43) X(44) X(45) X(46) X(47) X(48) X(49) X(50) X(51) \
    X(52) X(53) X(54) X(55) X(56) X(57) X(58) X(59) X(60) X(61) X(62) X(63)
#define OPDI_BLOCK_SLOT(n) static opdi_block_slot opd_block_slot_##n;
OPDI_BLOCK_SLOTS(OPDI_BLOCK_SLOT)
#undef OPDI_BLOCK_SLOT
OPD_INLINE void opdi_block_use_all(const char *id) {
#define OPDI_BLOCK_SLOT(n) &opd_block_slot_##n,
    const opdi_block_slot *slots[] = {OPDI_BLOCK_SLOTS(OPDI_BLOCK_SLOT) NULL};
#undef OPDI_BLOCK_SLOT
    for (int i = 0; slots[i]; i++) {
        const char *at = slots[i]->id, *of = id;
        while (at && *at && *at == *of) { at++, of++; }
        if (at && *at == *of) { slots[i]->use(); }
    }
}
#define OPDI_AT_LOAD(n, id) \
    typedef char opd_block_too_many_##n[(n) < 64 ? 1 : -1];                                              \
    static opdi_block_slot opd_block_slot_##n = {#id, opd_block_use_##n};
#define OPDI_USE_BLOCKS(id) opdi_block_use_all(#id)
#endif
#define OPDI_LIBRARY_BLOCK(n, id, kind_, ns_, key_, lib) OPDI_BLOCK_(n, id, kind_, ns_, key_, lib)
#define OPDI_BLOCK_(n, id, kind_, ns_, key_, lib)                                                         \
    static void opd_block_run_##n(opd_library *lib);                                                     \
    OPD_INLINE void opd_block_use_##n(void) {                                                            \
        static opd_block b;                                                                              \
        b.run = opd_block_run_##n; b.kind = kind_; b.ns = ns_; b.key = key_; b.file = __FILE__;          \
        b.line = __LINE__; opdi_block_link(&b);                                                           \
    }                                                                                                    \
    OPDI_AT_LOAD(n, id)                                                                                   \
    static void opd_block_run_##n(opd_library *lib)
/* OPD_LIBRARY(ns, lib) { opd_def(lib, ...); ... } runs its body once, before the first use of the dispatcher, like
   TORCH_LIBRARY.  OPD_LIBRARY_FRAGMENT(ns, lib) adds operators to a namespace, and OPD_LIBRARY_IMPL(ns, KEY, lib) only
   registers kernels; both may be used any number of times.
   A constructor runs the blocks.  No constructor runs if the compiler does not support constructors (tcc), or if the
   linker leaves out the file with the blocks (from a static archive, or with --as-needed).  In these cases, call
   OPD_USE_LIBRARY in the file with the blocks, below them, in a function that the program calls.  Declare this function
   OPD_EXPORT if the library hides its symbols.  OPD_USE_LIBRARY keeps the file in the program and, without
   constructors, runs blocks: OPD_USE_LIBRARY(ns) runs OPD_LIBRARY(ns, ...) and the fragments of ns, and
   OPD_USE_LIBRARY(ns_KEY) runs all OPD_LIBRARY_IMPL(ns, KEY, ...).
   Each block defines a type, which OPD_USE_LIBRARY uses.  So a wrong name in OPD_USE_LIBRARY is a compile error. */
#define OPD_LIBRARY(ns, lib) \
    typedef int opd_block_of_##ns; OPDI_LIBRARY_BLOCK(OPDI_BLOCK_NUMBER, opd_block_of_##ns, OPD_DEF, #ns, NULL, lib)
#define OPD_LIBRARY_IMPL(ns, key, lib) \
    typedef int opd_block_of_##ns##_##key;                                                           \
    OPDI_LIBRARY_BLOCK(OPDI_BLOCK_NUMBER, opd_block_of_##ns##_##key, OPD_IMPL, #ns, #key, lib)
#define OPD_LIBRARY_FRAGMENT(ns, lib) \
    typedef int opd_block_of_##ns; \
    OPDI_LIBRARY_BLOCK(OPDI_BLOCK_NUMBER, opd_block_of_##ns, OPD_FRAGMENT, #ns, NULL, lib)
#define OPD_USE_LIBRARY(id) ((void)sizeof(opd_block_of_##id), OPDI_USE_BLOCKS(opd_block_of_##id))

/* OPD_CALL(op, a, b, 3) calls op with C values and returns the first result, which must be a tensor.  OPD_CALL_N(op,
   rets, a, b) writes all results to rets and returns 0, or -1 and sets an error.  Both take up to 16 arguments.  None
   is NULL in C, and nullptr in C++, where NULL is the number 0. */
#define OPDI_CAT(a, b) OPDI_CAT_(a, b)
#define OPDI_CAT_(a, b) a##b
#define OPDI_COUNT_ARGS(...) OPDI_COUNT_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define OPDI_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
/* Arguments of OPD_GRAPH_CALL (see opd_graph_call_args). */
OPD_INLINE opd_graph_arg opdi_graph_arg_c(opd_value constant) {
    opd_graph_arg arg;
    arg.kind = OPD_GRAPH_ARG_C;
    arg.name = NULL;
    arg.value = NULL;
    arg.list.data = NULL;
    arg.list.n = 0;
    arg.constant = constant;
    return arg;
}
OPD_INLINE opd_graph_arg opdi_graph_arg_value(opd_graph_value *value) {
    opd_graph_arg arg = opdi_graph_arg_c(opd_value_none());
    arg.kind = OPD_GRAPH_ARG_VALUE;
    arg.value = value;
    return arg;
}
OPD_INLINE opd_graph_arg opdi_graph_arg_values(opd_graph_values list) {
    opd_graph_arg arg = opdi_graph_arg_c(opd_value_none());
    arg.kind = OPD_GRAPH_ARG_VALUES;
    arg.list = list;
    return arg;
}
OPD_INLINE opd_graph_arg opdi_graph_arg_named(const char *name, opd_graph_arg arg) {
    arg.name = name ? name : "";
    return arg;
}
#define OPD_GRAPH_NAMED(name, x) opdi_graph_arg_named(name, OPD_GRAPH_V(x))
#ifdef __cplusplus
#include <new>
inline opd_value opdi_cxx_value(bool b) { return opd_value_bool(b); }
inline opd_value opdi_cxx_value(int i) { return opd_value_int(i); }
inline opd_value opdi_cxx_value(long i) { return opd_value_int(i); }
inline opd_value opdi_cxx_value(long long i) { return opd_value_int(i); }
inline opd_value opdi_cxx_value(unsigned i) { return opd_value_int(static_cast<int64_t>(i)); }
inline opd_value opdi_cxx_value(unsigned long i) { return opd_value_int(static_cast<int64_t>(i)); }
inline opd_value opdi_cxx_value(unsigned long long i) { return opd_value_int(static_cast<int64_t>(i)); }
inline opd_value opdi_cxx_value(float d) { return opd_value_double(static_cast<double>(d)); }
inline opd_value opdi_cxx_value(double d) { return opd_value_double(d); }
inline opd_value opdi_cxx_value(opd_tensor *tensor) { return opd_value_tensor(tensor); }
inline opd_value opdi_cxx_value(const char *text) { return opd_value_str(text); }
inline opd_value opdi_cxx_value(opd_device device) { return opd_value_device(device); }
inline opd_value opdi_cxx_value(opd_ints list) { return opd_value_of_ints(list); }
inline opd_value opdi_cxx_value(opd_doubles floats) { return opd_value_of_doubles(floats); }
inline opd_value opdi_cxx_value(opd_tensors list) { return opd_value_of_tensors(list); }
inline opd_value opdi_cxx_value(opd_generator *generator) { return opd_value_generator(generator); }
inline opd_value opdi_cxx_value(opd_value value) { return value; }
inline opd_value opdi_cxx_value(decltype(nullptr)) { return opd_value_none(); }
opd_value opdi_cxx_value(const volatile void *) = delete;    /* another pointer: not a tensor, and not a bool */
template <class R, class... A> opd_value opdi_cxx_value(R (*)(A...)) = delete;          /* a function is not a value */
template <class T, class C> opd_value opdi_cxx_value(T C::*) = delete;
opd_value opdi_cxx_value(...) = delete;                      /* no other type is a value */
template <class... A> inline opd_tensor *opdi_cxx_call(opd_op *op, A... a) {
    const opd_value values[] = {opdi_cxx_value(a)..., opd_value_none()};
    return opd_call_op(op, values, static_cast<int>(sizeof...(A)));
}
template <class... A> inline int opdi_cxx_call_n(opd_op *op, opd_value *rets, A... a) {
    const opd_value values[] = {opdi_cxx_value(a)..., opd_value_none()};
    return opd_call_all(op, rets, values, static_cast<int>(sizeof...(A)));
}
/* The type of OPD_INTS(2, 3) in C++: a list that contains its elements, and converts to an opd_ints that points to
   them.  After `auto s = OPD_INTS(2, 3);`, the elements live as long as s.  Do not store the list as an opd_ints (in a
   variable, a struct or a vector), and do not return it as one: the elements are destroyed at the end of the statement.
   clang warns if the list initialises an opd_ints variable or member, or is returned as an opd_ints. */
#if defined(__has_cpp_attribute)
#if __has_cpp_attribute(clang::lifetimebound)
#define OPDI_LIFETIMEBOUND [[clang::lifetimebound]]
#endif
#endif
#if !defined(OPDI_LIFETIMEBOUND)
#define OPDI_LIFETIMEBOUND
#endif
template <class L, class T, size_t N> struct opd_list {
    T v[N];
    operator L() const OPDI_LIFETIMEBOUND { L l; l.data = v; l.n = static_cast<int64_t>(N); return l; }
};
struct opdi_no_list {};
template <class L, class T> struct opd_lists {
    template <size_t N> static opd_list<L, T, N> of(const T (&a)[N]) {
        opd_list<L, T, N> l;
        for (size_t i = 0; i < N; i++) { l.v[i] = a[i]; }
        return l;
    }
    static L of(opdi_no_list) {                          /* an empty list: a NULL pointer would mean None */
        static const T nothing[1] = {T()};
        L l; l.data = nothing; l.n = 0;
        return l;
    }
};
#define OPD_V(x) opdi_cxx_value(x)
inline opd_graph_arg opdi_cxx_graph_arg(opd_graph_value *value) { return opdi_graph_arg_value(value); }
inline opd_graph_arg opdi_cxx_graph_arg(opd_graph_values list) { return opdi_graph_arg_values(list); }
inline opd_graph_arg opdi_cxx_graph_arg(opd_graph_arg arg) { return arg; }
template <size_t N>
inline opd_graph_arg opdi_cxx_graph_arg(const opd_list<opd_graph_values, opd_graph_value *, N> &list) {
    return opdi_graph_arg_values(list);
}
template <class T> inline opd_graph_arg opdi_cxx_graph_arg(const T &a) {
    return opdi_graph_arg_c(opdi_cxx_value(a));
}
template <class... A> inline opd_graph_value *opdi_cxx_graph_call(opd_graph *graph, const char *name, const A &... a) {
    const opd_graph_arg args[] = {opdi_cxx_graph_arg(a)..., opdi_graph_arg_c(opd_value_none())};
    return opd_graph_call_args(graph, name, args, static_cast<int>(sizeof...(A)));
}
#define OPD_GRAPH_V(x) opdi_cxx_graph_arg(x)
#define OPD_GRAPH_CALL(...) opdi_cxx_graph_call(__VA_ARGS__)
#define OPD_GRAPH_VALUES(...) opd_lists<opd_graph_values, opd_graph_value *>::of({__VA_ARGS__})
template <class... A> inline opd_tensor *opd_apply_cpp(const opd_autograd_function *fn, A... a) {
    const opd_value values[] = {opdi_cxx_value(a)..., opd_value_none()};
    return opd_autograd_call(fn, values, static_cast<int>(sizeof...(A)));
}
#define OPD_APPLY(...) opd_apply_cpp(__VA_ARGS__)
#define OPD_CALL(...) opdi_cxx_call(__VA_ARGS__)
#define OPD_CALL_N(...) opdi_cxx_call_n(__VA_ARGS__)
#define OPD_INTS(...) opd_lists<opd_ints, int64_t>::of({__VA_ARGS__})
#define OPD_DOUBLES(...) opd_lists<opd_doubles, double>::of({__VA_ARGS__})
#define OPD_TENSORS(...) opd_lists<opd_tensors, opd_tensor *>::of({__VA_ARGS__})
inline opd_scalar_type opdi_cxx_dtype(const float *) { return OPD_FLOAT32; }
inline opd_scalar_type opdi_cxx_dtype(const double *) { return OPD_FLOAT64; }
inline opd_scalar_type opdi_cxx_dtype(const bool *) { return OPD_BOOL; }
inline opd_scalar_type opdi_cxx_dtype(const signed char *) { return OPD_INT8; }
inline opd_scalar_type opdi_cxx_dtype(const short *) { return OPD_INT16; }
inline opd_scalar_type opdi_cxx_dtype(const int *) { return OPD_INT32; }
inline opd_scalar_type opdi_cxx_dtype(const long *) { return sizeof(long) == 8 ? OPD_INT64 : OPD_INT32; }
inline opd_scalar_type opdi_cxx_dtype(const long long *) { return OPD_INT64; }
inline opd_scalar_type opdi_cxx_dtype(const unsigned char *) { return OPD_UINT8; }
inline opd_scalar_type opdi_cxx_dtype(const unsigned short *) { return OPD_UINT16; }
inline opd_scalar_type opdi_cxx_dtype(const unsigned *) { return OPD_UINT32; }
inline opd_scalar_type opdi_cxx_dtype(const unsigned long *) { return sizeof(long) == 8 ? OPD_UINT64 : OPD_UINT32; }
inline opd_scalar_type opdi_cxx_dtype(const unsigned long long *) { return OPD_UINT64; }
template <class T, size_t N> inline opd_tensor *opdi_cxx_tensor(const T (&array)[N]) {
    const int64_t count = static_cast<int64_t>(N);
    return opd_tensor_from(array, opd_ints_of(&count, 1), opdi_cxx_dtype(array));
}
#define OPD_TENSOR(...) opdi_cxx_tensor(__VA_ARGS__)
#else
/* Makes an opd_value from a C value: OPD_V(2.5).  The C value is a number, a bool, a text, a tensor, a list (opd_ints,
   opd_doubles, opd_tensors), a device, a generator, or an opd_value.  NULL, or nullptr in C++, becomes None. */
#define OPD_V(x) _Generic((x), \
    bool: opd_value_bool, char: opd_value_int, signed char: opd_value_int, unsigned char: opd_value_int, \
    short: opd_value_int, unsigned short: opd_value_int, int: opd_value_int, unsigned: opd_value_uint, \
    long: opd_value_int, unsigned long: opd_value_uint, long long: opd_value_int, unsigned long long: opd_value_uint, \
    float: opd_value_double, double: opd_value_double, opd_tensor *: opd_value_tensor, char *: opd_value_str, \
    const char *: opd_value_str, opd_device: opd_value_device, opd_ints: opd_value_of_ints, \
    opd_doubles: opd_value_of_doubles, opd_tensors: opd_value_of_tensors, opd_generator *: opd_value_generator, \
    opd_value: opdi_value_same, void *: opdi_value_null)(x)
/* The functions for OPD_GRAPH_V: an argument of a graph's call from each C type. */
OPD_INLINE opd_graph_arg opdi_graph_arg_same(opd_graph_arg arg) { return arg; }
OPD_INLINE opd_graph_arg opdi_graph_arg_b(bool x) { return opdi_graph_arg_c(opd_value_bool(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_i(int64_t x) { return opdi_graph_arg_c(opd_value_int(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_u(uint64_t x) { return opdi_graph_arg_c(opd_value_uint(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_d(double x) { return opdi_graph_arg_c(opd_value_double(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_t(opd_tensor *x) { return opdi_graph_arg_c(opd_value_tensor(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_s(const char *x) { return opdi_graph_arg_c(opd_value_str(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_device(opd_device x) { return opdi_graph_arg_c(opd_value_device(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_ints(opd_ints x) { return opdi_graph_arg_c(opd_value_of_ints(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_doubles(opd_doubles x) { return opdi_graph_arg_c(opd_value_of_doubles(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_tensors(opd_tensors x) { return opdi_graph_arg_c(opd_value_of_tensors(x)); }
OPD_INLINE opd_graph_arg opdi_graph_arg_null(const void *x) { return opdi_graph_arg_c(opdi_value_null(x)); }
#define OPD_GRAPH_V(x) _Generic((x), \
    opd_graph_value *: opdi_graph_arg_value, opd_graph_values: opdi_graph_arg_values, \
    opd_graph_arg: opdi_graph_arg_same, bool: opdi_graph_arg_b, char: opdi_graph_arg_i, \
    signed char: opdi_graph_arg_i, unsigned char: opdi_graph_arg_i, short: opdi_graph_arg_i, \
    unsigned short: opdi_graph_arg_i, int: opdi_graph_arg_i, unsigned: opdi_graph_arg_u, long: opdi_graph_arg_i, \
    unsigned long: opdi_graph_arg_u, long long: opdi_graph_arg_i, unsigned long long: opdi_graph_arg_u, \
    float: opdi_graph_arg_d, double: opdi_graph_arg_d, opd_tensor *: opdi_graph_arg_t, char *: opdi_graph_arg_s, \
    const char *: opdi_graph_arg_s, opd_device: opdi_graph_arg_device, opd_ints: opdi_graph_arg_ints, \
    opd_doubles: opdi_graph_arg_doubles, opd_tensors: opdi_graph_arg_tensors, opd_value: opdi_graph_arg_c, \
    void *: opdi_graph_arg_null)(x)
OPD_INLINE opd_graph_values opdi_graph_values_of(opd_graph_value *const *values, int64_t count) {
    opd_graph_values list;
    list.data = values;
    list.n = count;
    return list;
}
/* OPDI_MAP_n(V, a, b, ...) is V(a), V(b), ... for n values. */
#define OPDI_MAP_1(V, a) V(a)
#define OPDI_MAP_2(V, a, ...) V(a), OPDI_MAP_1(V, __VA_ARGS__)
#define OPDI_MAP_3(V, a, ...) V(a), OPDI_MAP_2(V, __VA_ARGS__)
#define OPDI_MAP_4(V, a, ...) V(a), OPDI_MAP_3(V, __VA_ARGS__)
#define OPDI_MAP_5(V, a, ...) V(a), OPDI_MAP_4(V, __VA_ARGS__)
#define OPDI_MAP_6(V, a, ...) V(a), OPDI_MAP_5(V, __VA_ARGS__)
#define OPDI_MAP_7(V, a, ...) V(a), OPDI_MAP_6(V, __VA_ARGS__)
#define OPDI_MAP_8(V, a, ...) V(a), OPDI_MAP_7(V, __VA_ARGS__)
#define OPDI_MAP_9(V, a, ...) V(a), OPDI_MAP_8(V, __VA_ARGS__)
#define OPDI_MAP_10(V, a, ...) V(a), OPDI_MAP_9(V, __VA_ARGS__)
#define OPDI_MAP_11(V, a, ...) V(a), OPDI_MAP_10(V, __VA_ARGS__)
#define OPDI_MAP_12(V, a, ...) V(a), OPDI_MAP_11(V, __VA_ARGS__)
#define OPDI_MAP_13(V, a, ...) V(a), OPDI_MAP_12(V, __VA_ARGS__)
#define OPDI_MAP_14(V, a, ...) V(a), OPDI_MAP_13(V, __VA_ARGS__)
#define OPDI_MAP_15(V, a, ...) V(a), OPDI_MAP_14(V, __VA_ARGS__)
#define OPDI_MAP_16(V, a, ...) V(a), OPDI_MAP_15(V, __VA_ARGS__)
#define OPDI_LIST_OF(type, V, ...) \
    (const type[OPDI_COUNT_ARGS(__VA_ARGS__)]){OPDI_CAT(OPDI_MAP_, OPDI_COUNT_ARGS(__VA_ARGS__))(V, __VA_ARGS__)}, \
        OPDI_COUNT_ARGS(__VA_ARGS__)
#define OPDI_ARGS(...) OPDI_LIST_OF(opd_value, OPD_V, __VA_ARGS__)
/* The number of arguments after the first: NONE, SOME, or too MANY. */
#define OPDI_HOW_MANY(...) OPDI_HOW_MANY_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, SOME, SOME, \
    SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, SOME, NONE, 0)
#define OPDI_HOW_MANY_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, which, ...) which
#define OPDI_WITH_NONE(first) first, (const opd_value *)0, 0
#define OPDI_WITH_SOME(first, ...) first, OPDI_ARGS(__VA_ARGS__)
#define OPDI_WITH_MANY(first, ...) first, (const opd_value *)0, \
    (int)sizeof(struct { _Static_assert(0, "at most 16 arguments; pass more with opd_call_all"); int n; })
#define OPDI_WITH(...) OPDI_CAT(OPDI_WITH_, OPDI_HOW_MANY(__VA_ARGS__))(__VA_ARGS__)
#define OPD_CALL(...) opd_call_op(OPDI_WITH(__VA_ARGS__))
#define OPD_CALL_N(op, ...) opd_call_all(op, OPDI_WITH(__VA_ARGS__))
#define OPDI_GRAPH_WITH_NONE(name) name, (const opd_graph_arg *)0, 0
#define OPDI_GRAPH_WITH_SOME(name, ...) name, OPDI_LIST_OF(opd_graph_arg, OPD_GRAPH_V, __VA_ARGS__)
#define OPDI_GRAPH_WITH_MANY(name, ...) name, (const opd_graph_arg *)0, \
    (int)sizeof(struct { _Static_assert(0, "at most 16 arguments; pass more with opd_graph_call_args"); int n; })
#define OPDI_GRAPH_WITH(...) OPDI_CAT(OPDI_GRAPH_WITH_, OPDI_HOW_MANY(__VA_ARGS__))(__VA_ARGS__)
#define OPD_GRAPH_CALL(graph, ...) opd_graph_call_args(graph, OPDI_GRAPH_WITH(__VA_ARGS__))
#define OPD_GRAPH_VALUES(...) \
    opdi_graph_values_of((opd_graph_value *const[]){__VA_ARGS__}, \
                         (int64_t)(sizeof((opd_graph_value *const[]){__VA_ARGS__}) / sizeof(opd_graph_value *)))
/* Calls a custom function with C values, and returns its first result: OPD_APPLY(&fn, x, 2).  See opd_autograd_call. */
#define OPD_APPLY(...) opd_autograd_call(OPDI_WITH(__VA_ARGS__))
/* Lists for arguments: OPD_INTS(2, 3), such as the sizes of a tensor; OPD_DOUBLES(0.5, 1); OPD_TENSORS(x, y).  In C, a
   list lives until the end of the block.  In C++, it lives until the end of the statement; write `auto s = OPD_INTS(2,
   3);` for a list that lives as long as s. */
#define OPD_INTS(...) \
    opd_ints_of((const int64_t[]){__VA_ARGS__}, (int64_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define OPD_DOUBLES(...) \
    opd_doubles_of((const double[]){__VA_ARGS__}, (int64_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)))
#define OPD_TENSORS(...) \
    opd_tensors_of((opd_tensor *const[]){__VA_ARGS__}, \
                   (int64_t)(sizeof((opd_tensor *const[]){__VA_ARGS__}) / sizeof(opd_tensor *)))
#define OPDI_DTYPE_OF(x) _Generic((x), \
    float: OPD_FLOAT32, double: OPD_FLOAT64, bool: OPD_BOOL, signed char: OPD_INT8, short: OPD_INT16, int: OPD_INT32, \
    long: sizeof(long) == 8 ? OPD_INT64 : OPD_INT32, long long: OPD_INT64, unsigned char: OPD_UINT8, \
    unsigned short: OPD_UINT16, unsigned: OPD_UINT32, unsigned long: sizeof(long) == 8 ? OPD_UINT64 : OPD_UINT32, \
    unsigned long long: OPD_UINT64)
#define OPDI_POINTERS(type) type **: 0, const type **: 0
#define OPDI_IS_ARRAY(...) _Generic(&(__VA_ARGS__), OPDI_POINTERS(float), OPDI_POINTERS(double), OPDI_POINTERS(bool), \
    OPDI_POINTERS(signed char), OPDI_POINTERS(short), OPDI_POINTERS(int), OPDI_POINTERS(long), \
    OPDI_POINTERS(long long), OPDI_POINTERS(unsigned char), OPDI_POINTERS(unsigned short), \
    OPDI_POINTERS(unsigned), OPDI_POINTERS(unsigned long), OPDI_POINTERS(unsigned long long), default: 1)
/* Makes a tensor of one dim from a C array, whose type gives the dtype: OPD_TENSOR(values), or in C
   OPD_TENSOR((float[]){1, 2, 3}).  Copies the numbers.  A pointer instead of an array is a compile error. */
#define OPD_TENSOR(...) \
    opd_tensor_from((__VA_ARGS__), OPD_INTS((int64_t)(sizeof(__VA_ARGS__) / sizeof((__VA_ARGS__)[0])) + \
        0 * (int64_t)sizeof(int[OPDI_IS_ARRAY(__VA_ARGS__) ? 1 : -1])), /* a pointer is no array */ \
        OPDI_DTYPE_OF((__VA_ARGS__)[0]))
#endif

