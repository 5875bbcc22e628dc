//----------------------------------------------------------------------------------------------------------------------
//  >>api:functions  operators made from plain C functions (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A kernel made from a plain C function.  `signature` is the function's type in the letters of opd_op_check.
   OPD_FUNCTION(name, function, types) defines the variable `name` at file scope; the first type is the result's type,
   or void:

       static double scaled(double x, int64_t n) { return x * (double)n; }
       OPD_FUNCTION(scaled_op, scaled, double, double, int64_t)

       opd_def_function(lib, "scaled", &scaled_op);                      scaled(float _0, int _1) -> float _0
       opd_def_function(lib, "scaled(float x, int n=2) -> float", &scaled_op);
       opd_impl_function(lib, "scaled", "CPU", &scaled_op);

   Argument types: double, int64_t, bool, const char *, opd_tensor * (NULL for None), opd_device, opd_ints, opd_doubles,
   opd_tensors, and opd_value for all others (Scalar, int?, ...).  Result types: the first five, opd_tensors and
   opd_value.  At most 8 arguments.  Registering a function with float, int, long or other C types fails with an error
   that names the type to use.  In an operator descriptor, write `.function = &scaled_op`. */
typedef struct opd_function { opd_kernel kernel; const char *signature; } opd_function;

#ifdef __cplusplus
extern "C" {
#endif
/* Defines an operator whose kernel, at CompositeImplicitAutograd, is a C function.  If name_or_schema is only a name,
   the schema is made from the function's type.  If it is a schema, it must fit the function's type.  Returns 0, or -1
   and sets an error, with nothing changed. */
OPD_NEW int opd_def_function(opd_library *lib, const char *name_or_schema, const opd_function *function);
/* Registers a C function as the kernel of operator name at key (NULL: the library's key).  All C functions of an
   operator must have the same type, which the schema gives.  Returns 0, or -1 and sets an error. */
OPD_NEW int opd_impl_function(opd_library *lib, const char *name, const char *key, const opd_function *function);
#ifdef __cplusplus
}
#endif

OPD_INLINE int opd_return_str(opd_call *call, const char *text) { return opd_return_value(call, opd_value_str(text)); }
OPD_INLINE opd_device opdi_device_argument(const opd_call *call, int i) {
    return opd_arg_device(call, i, opd_device_make(OPD_CPU, -1));
}
OPD_INLINE int opd_return_list(opd_call *call, opd_tensors list) { return opd_return_tensors(call, list.data, list.n); }
#ifdef __cplusplus
template <class T> struct opdi_cxx_type {          /* the case of types that no operator accepts */
    static char letter() {
        static_assert(sizeof(T) == 0, "OPD_FUNCTION: an operator cannot have an argument or result of this type: use "
                      "double, int64_t, bool, const char * (for a std::string), opd_tensor *, opd_device, opd_ints, "
                      "opd_doubles or opd_tensors (for a std::vector), or opd_value; and by value, not by reference");
        return '?';
    }
    static T get(const opd_call *, int) { return T(); }
    static int give(opd_call *, T) { return -1; }
};
#define OPDI_CXX_REFUSED(T, c) template <> inline char opdi_cxx_type<T>::letter() { return c; }
OPDI_CXX_REFUSED(float, 'f') OPDI_CXX_REFUSED(int, 'n') OPDI_CXX_REFUSED(unsigned, 'u')
OPDI_CXX_REFUSED(unsigned long, 'u')
#define OPDI_CXX_TYPE(type, c, get_, give_) \
    template <> struct opdi_cxx_type<type> { \
        static char letter() { return c; } \
        static type get(const opd_call *call, int i) { return get_(call, i); } \
        static int give(opd_call *call, type v) { return give_(call, v); } \
    };
#define OPDI_CXX_ARGUMENT(type, c, get_) \
    template <> struct opdi_cxx_type<type> { \
        static char letter() { return c; } \
        static type get(const opd_call *call, int i) { return get_(call, i); } \
        static int give(opd_call *, type) { return -1; } \
    };
OPDI_CXX_TYPE(double, 'd', opd_arg_double, opd_return_double)
OPDI_CXX_TYPE(int64_t, 'i', opd_arg_int, opd_return_int)
OPDI_CXX_TYPE(bool, 'b', opd_arg_bool, opd_return_bool)
OPDI_CXX_TYPE(const char *, 's', opd_arg_str, opd_return_str)
OPDI_CXX_TYPE(opd_tensor *, 'T', opd_arg_tensor, opd_return_tensor)
OPDI_CXX_TYPE(opd_tensors, 'L', opd_arg_tensors, opd_return_list)
OPDI_CXX_TYPE(opd_value, 'V', opd_arg_value, opd_return_value)
OPDI_CXX_ARGUMENT(opd_ints, 'I', opd_arg_ints)
OPDI_CXX_ARGUMENT(opd_doubles, 'F', opd_arg_doubles)
OPDI_CXX_ARGUMENT(opd_device, 'D', opdi_device_argument)
/* opdi_cxx_long<int64_t>::other is long long if int64_t is long, and long if int64_t is long long.  A function with
   this type is rejected (letter 'l'). */
template <class T> struct opdi_cxx_long { typedef long other; };
template <> struct opdi_cxx_long<long> { typedef long long other; };
template <> inline char opdi_cxx_type<opdi_cxx_long<int64_t>::other>::letter() { return 'l'; }

/* Wraps a C++ function that the library calls (kernel, backward function, rule, hook, observer, function to trace) and
   that may throw:

       d.cpu = OPD_CATCH(warp_cpu);

   An exception becomes an error with the text of its what().  A function that returns int then returns -1, and one that
   returns a pointer NULL.  Without OPD_CATCH, the exception cannot pass the library.  The program then ends, or the
   library believes that the thread is still inside the call, and reports an error when it notices.  It notices at the
   latest when a scope is opened or closed, when a backward or a transform begins, or in opd_grad_mode_enabled.
   The same holds for a longjmp out of such a function (libpng, libjpeg): call setjmp in the function itself.
   OPD_FUNCTION includes OPD_CATCH.  A kernel may run a coroutine that calls operators, but the memory for the
   coroutine's stack must not be on the thread's stack. */
#define OPD_CATCH(fn) opd_catching<decltype(&fn), &fn>::call
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
static inline int opdi_caught();                   /* handles the current exception, returns -1 */
#define OPDI_CXX_CALL(R, ...) try { __VA_ARGS__ } catch (...) { return opdi_cxx_failed<R>::give(opdi_caught()); }
#else
#define OPDI_CXX_CALL(R, ...) __VA_ARGS__
#endif
/* The result of a function that has failed: -1, NULL or nothing. */
template <class R> struct opdi_cxx_failed { static R give(int) { return R(); } };
template <> struct opdi_cxx_failed<int> { static int give(int rc) { return rc; } };
template <> struct opdi_cxx_failed<void> { static void give(int) {} };
template <class F, F f> struct opd_catching;
template <class R, class... A, R (*f)(A...)> struct opd_catching<R (*)(A...), f> {
    static R call(A... a) { OPDI_CXX_CALL(R, return f(a...);) }
};
#if defined(__cpp_noexcept_function_type)         /* from C++17 on, noexcept is a part of the type */
template <class R, class... A, R (*f)(A...) noexcept> struct opd_catching<R (*)(A...) noexcept, f> {
    static R call(A... a) { return f(a...); }
};
#endif

template <int... I> struct opdi_cxx_indices {};
template <int N, int... I> struct opdi_cxx_count : opdi_cxx_count<N - 1, N - 1, I...> {};
template <int... I> struct opdi_cxx_count<0, I...> { typedef opdi_cxx_indices<I...> type; };
template <class R> struct opdi_cxx_run {
    template <class F, class... A> static int run(opd_call *call, F f, A... a) {
        return opdi_cxx_type<R>::give(call, f(a...));
    }
    static char letter() { return opdi_cxx_type<R>::letter(); }
};
template <> struct opdi_cxx_run<void> {
    template <class F, class... A> static int run(opd_call *, F f, A... a) { f(a...); return 0; }
    static char letter() { return 'v'; }
};
template <class R, class... A> struct opdi_cxx_function {
    template <int... I> static int run(opd_call *call, R (*function)(A...), opdi_cxx_indices<I...>) {
        (void)call;
        return opdi_cxx_run<R>::run(call, function, opdi_cxx_type<A>::get(call, I)...);
    }
    static int call(opd_call *call, R (*function)(A...)) {
        OPDI_CXX_CALL(int, return run(call, function, typename opdi_cxx_count<static_cast<int>(sizeof...(A))>::type());)
    }
    static const char *signature() {
        static const char letters[] = {opdi_cxx_run<R>::letter(), opdi_cxx_type<A>::letter()..., 0};
        return letters;
    }
};
#define OPD_FUNCTION(name, fn, ...) \
    static int name##_call(opd_call *call) { return opdi_cxx_function<__VA_ARGS__>::call(call, fn); } \
    static const opd_function name = {name##_call, opdi_cxx_function<__VA_ARGS__>::signature()};
#else
OPD_INLINE int opdi_c_refused(const opd_call *call, int i) {
    (void)call;
    (void)i;
    return 0;
}
OPD_INLINE int opdi_c_refused_result(opd_call *call, ...) {
    (void)call;
    return -1;
}
#define OPDI_C_LETTER(type) _Generic((type *)0, double *: 'd', int64_t *: 'i', bool *: 'b', const char **: 's', \
    opd_tensor **: 'T', opd_tensors *: 'L', opd_ints *: 'I', opd_doubles *: 'F', opd_device *: 'D', \
    opd_value *: 'V', void *: 'v', \
    default: _Generic((type *)0, float *: 'f', int *: 'n', long *: 'l', long long *: 'l', unsigned *: 'u', \
                      unsigned long *: 'u', unsigned long long *: 'u', default: '?'))
#define OPDI_C_GET(type, i) _Generic((type *)0, double *: opd_arg_double, int64_t *: opd_arg_int, \
    bool *: opd_arg_bool, const char **: opd_arg_str, opd_tensor **: opd_arg_tensor, \
    opd_tensors *: opd_arg_tensors, opd_ints *: opd_arg_ints, opd_doubles *: opd_arg_doubles, \
    opd_device *: opdi_device_argument, opd_value *: opd_arg_value, default: opdi_c_refused)(call, i)
#define OPDI_C_GIVE(type)                                                                                              \
    _Generic((type *)0, double *: opd_return_double, int64_t *: opd_return_int, bool *: opd_return_bool,               \
    const char **: opd_return_str, opd_tensor **: opd_return_tensor, opd_tensors *: opd_return_list, \
    opd_value *: opd_return_value, default: opdi_c_refused_result)
/* OPDI_C_RUN chooses the code for a result of type R: OPDI_C_RUN_VOID if R is void, else OPDI_C_RUN_VALUE.  It takes
   the second argument of OPDI_C_SECOND.  If R is void, OPDI_C_IS_##R is the macro OPDI_C_IS_void, which makes
   OPDI_C_RUN_VOID the second argument.  If R is another type, OPDI_C_IS_##R is no macro and counts as one argument, so
   OPDI_C_RUN_VALUE is the second. */
#define OPDI_C_IS_void ~, OPDI_C_RUN_VOID,
#define OPDI_C_SECOND(...) OPDI_C_SECOND_(__VA_ARGS__)
#define OPDI_C_SECOND_(a, b, ...) b
#define OPDI_C_RUN_VOID(R, ...) __VA_ARGS__; return 0;
#define OPDI_C_RUN_VALUE(R, ...) return OPDI_C_GIVE(R)(call, __VA_ARGS__);
#define OPDI_C_RUN(R, ...) OPDI_C_SECOND(OPDI_C_IS_##R, OPDI_C_RUN_VALUE, ~)(R, __VA_ARGS__)
#define OPDI_C_CALL_1(fn, R) R (*const opd_f)(void) = fn; OPDI_C_RUN(R, opd_f())
#define OPDI_C_CALL_2(fn, R, a) R (*const opd_f)(a) = fn; OPDI_C_RUN(R, opd_f(OPDI_C_GET(a, 0)))
#define OPDI_C_CALL_3(fn, R, a, b) R (*const opd_f)(a, b) = fn; OPDI_C_RUN(R, opd_f(OPDI_C_GET(a, 0), OPDI_C_GET(b, 1)))
#define OPDI_C_CALL_4(fn, R, a, b, c) R (*const opd_f)(a, b, c) = fn; \
    OPDI_C_RUN(R, opd_f(OPDI_C_GET(a, 0), OPDI_C_GET(b, 1), OPDI_C_GET(c, 2)))
#define OPDI_C_CALL_5(fn, R, a, b, c, d) R (*const opd_f)(a, b, c, d) = fn; \
    OPDI_C_RUN(R, opd_f(OPDI_C_GET(a, 0), OPDI_C_GET(b, 1), OPDI_C_GET(c, 2), OPDI_C_GET(d, 3)))
#define OPDI_C_CALL_6(fn, R, a, b, c, d, e) R (*const opd_f)(a, b, c, d, e) = fn; \
    OPDI_C_RUN(R, opd_f(OPDI_C_GET(a, 0), OPDI_C_GET(b, 1), OPDI_C_GET(c, 2), OPDI_C_GET(d, 3), OPDI_C_GET(e, 4)))
#define OPDI_C_CALL_7(fn, R, first, second, c, dim, e, function)                                                       \
    R (*const opd_f)(first, second, c, dim, e, function) = fn;                                                        \
    OPDI_C_RUN(R, opd_f(OPDI_C_GET(first, 0), OPDI_C_GET(second, 1), OPDI_C_GET(c, 2), OPDI_C_GET(dim, 3), \
                        OPDI_C_GET(e, 4), OPDI_C_GET(function, 5)))
#define OPDI_C_CALL_8(fn, R, first, second, c, dim, e, function, g)                                                    \
    R (*const opd_f)(first, second, c, dim, e, function, g) = fn;                                                     \
    OPDI_C_RUN(R, opd_f(OPDI_C_GET(first, 0), OPDI_C_GET(second, 1), OPDI_C_GET(c, 2), OPDI_C_GET(dim, 3), \
                        OPDI_C_GET(e, 4), OPDI_C_GET(function, 5), OPDI_C_GET(g, 6)))
#define OPDI_C_CALL_9(fn, R, first, second, c, dim, e, function, g, handle)                                            \
    R (*const opd_f)(first, second, c, dim, e, function, g, handle) = fn;                                             \
    OPDI_C_RUN(R, opd_f(OPDI_C_GET(first, 0), OPDI_C_GET(second, 1), OPDI_C_GET(c, 2), OPDI_C_GET(dim, 3), \
                        OPDI_C_GET(e, 4), OPDI_C_GET(function, 5), OPDI_C_GET(g, 6), OPDI_C_GET(handle, 7)))
#define OPDI_C_LETTERS_1(a) OPDI_C_LETTER(a)
#define OPDI_C_LETTERS_2(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_1(__VA_ARGS__)
#define OPDI_C_LETTERS_3(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_2(__VA_ARGS__)
#define OPDI_C_LETTERS_4(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_3(__VA_ARGS__)
#define OPDI_C_LETTERS_5(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_4(__VA_ARGS__)
#define OPDI_C_LETTERS_6(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_5(__VA_ARGS__)
#define OPDI_C_LETTERS_7(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_6(__VA_ARGS__)
#define OPDI_C_LETTERS_8(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_7(__VA_ARGS__)
#define OPDI_C_LETTERS_9(a, ...) OPDI_C_LETTER(a), OPDI_C_LETTERS_8(__VA_ARGS__)
#define OPD_FUNCTION(name, fn, ...) \
    static int name##_call(opd_call *call) { \
        (void)call; \
        OPDI_CAT(OPDI_C_CALL_, OPDI_COUNT_ARGS(__VA_ARGS__))(fn, __VA_ARGS__) \
    } \
    static const char name##_letters[] = {OPDI_CAT(OPDI_C_LETTERS_, OPDI_COUNT_ARGS(__VA_ARGS__))(__VA_ARGS__), 0}; \
    static const opd_function name = {name##_call, name##_letters};
#endif

#if defined(__cplusplus)
template <class T, void (*end)(T *)> struct opd_guard {
    T at;
    explicit opd_guard(T t) : at(t) {}
    ~opd_guard() { end(&at); }
    opd_guard(const opd_guard &) = delete;
    opd_guard &operator=(const opd_guard &) = delete;
    explicit operator bool() const { return false; }
};
#if defined(__clang__)                             /* clang does not see that the block always runs */
#define OPDI_QUIET_BEGIN _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wdangling-else\"") \
    _Pragma("clang diagnostic ignored \"-Wsometimes-uninitialized\"")
#define OPDI_QUIET_END _Pragma("clang diagnostic pop")
#else
#define OPDI_QUIET_BEGIN
#define OPDI_QUIET_END
#endif
#define OPDI_GUARDED(type, g, begin, end, is_open) \
    OPDI_QUIET_BEGIN if (const opd_guard<type, end> &g = opd_guard<type, end>(begin)) {} \
    else if (!is_open(g.at)) {} else OPDI_QUIET_END
#define OPD_SCOPED opd_guard<opd_scope, opd_scope_close> OPDI_GUARD_NAME(scoped)(opd_scope_open_at(OPDI_HERE))
#else
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_AT_END(fn) __attribute__((cleanup(fn), unused))
#else
#define OPDI_AT_END(fn)
#endif
OPD_INLINE bool opdi_guard_broken(const char *file, int line) {
    return opd_fail(OPD_ERROR_USER, "%s:%d: a break left this block (OPD_SCOPE, OPD_NO_GRAD, ...) and not a loop: "
                    "begin the body of the loop with OPD_SCOPED; or break outside of the block", file, line) == 0;
}
#define OPDI_GUARDED(type, g, begin, end, is_open) OPDI_GUARDED_(type, g, OPDI_CAT(g, _on), begin, end, is_open)
#define OPDI_GUARDED_(type, g, on, begin, end, is_open) \
    for (int on = 1; on; on = on && opdi_guard_broken(__FILE__, __LINE__)) \
        for (OPDI_AT_END(end) type g = begin; is_open(g) || (on = 0); end(&g))
#if defined(_MSC_VER)
#define OPD_SCOPED \
    _Static_assert(0, "Microsoft's C compiler cannot close OPD_SCOPED: write OPD_SCOPE { }, or compile as C++ (/TP)")
#else
#define OPD_SCOPED OPDI_AT_END(opd_scope_close) opd_scope OPDI_GUARD_NAME(scoped) = opd_scope_open_at(OPDI_HERE)
#endif
#endif
#define OPDI_HERE __FILE__ ":" OPDI_HERE_(__LINE__)
#define OPDI_HERE_(line) OPDI_HERE_2(line)
#define OPDI_HERE_2(line) #line
#define OPDI_GUARD_NAME(kind) OPDI_GUARD_NAME_(kind, __LINE__)
#define OPDI_GUARD_NAME_(kind, line) OPDI_GUARD_NAME_2(kind, line)
#define OPDI_GUARD_NAME_2(kind, line) opd_##kind##_##line
#define OPDI_IS_OPEN(block) ((block).open)
#define OPDI_IS_TRUE(open) (open)
#define OPDI_IS_LEVEL(level) ((level) >= 0)

/* OPD_SCOPE { ... } is a block that is a scope.  OPD_SCOPED; makes the rest of the enclosing block a scope.
   The macros of blocks here and below run code when their block ends: also when the block is left by return or goto
   and, in C++, by break, continue or an exception.
   tcc 0.9.27 and Microsoft's compiler have no cleanup attribute in C, and so do not run the code if a block is left by
   return, goto or break: the scope stays open until the scope around it ends, and the mode stays on.  For example,
   gradients stay off after a return inside OPD_NO_GRAD.  With these compilers, set a variable in the block and return
   after the block.  With tcc, the scope of OPD_SCOPED always stays open.  With Microsoft's compiler, OPD_SCOPED is an
   error in C.
   In C, a block is a loop, so break and continue apply to the block.  continue ends the block.  break ends it and sets
   an error.  To make the body of a loop a scope that break may leave, begin the body with OPD_SCOPED.  In C++, put
   braces around a block under a bare `if`. */
#define OPD_SCOPE \
    OPDI_GUARDED(opd_scope, OPDI_GUARD_NAME(scope), opd_scope_open_at(OPDI_HERE), opd_scope_close, OPDI_IS_OPEN)
/* Blocks with a grad mode.  After the block, the previous mode is restored (with tcc: not after a return inside). */
#define OPD_GRAD_MODE(on) \
    OPDI_GUARDED(opd_grad_block, OPDI_GUARD_NAME(grad), opdi_grad_begin(on), opdi_grad_end, OPDI_IS_OPEN)
#define OPD_NO_GRAD OPD_GRAD_MODE(false)
#define OPD_ENABLE_GRAD OPD_GRAD_MODE(true)
#define OPD_INFERENCE_MODE(on) \
    OPDI_GUARDED(opd_inference_block, OPDI_GUARD_NAME(inference), opd_inference_begin(on), opd_inference_end, \
                 OPDI_IS_OPEN)
/* A block with a level of forward mode.  The block is skipped if no level can be opened. */
#define OPD_DUAL_LEVEL OPDI_GUARDED(int, OPDI_GUARD_NAME(dual), opd_dual_level_begin(), opd_dual_end, OPDI_IS_LEVEL)
/* A block in which tensors that backward needs may be written: see opd_allow_mutation_begin. */
#define OPD_ALLOW_MUTATION \
    OPDI_GUARDED(int, OPDI_GUARD_NAME(mutation), opdi_allow_mutation_open(), opdi_allow_mutation_close, OPDI_IS_TRUE)
/* A block in which operators make fake tensors, which have sizes but no data: see opd_fake_begin. */
#define OPD_FAKE_MODE OPDI_GUARDED(opd_fake_block, OPDI_GUARD_NAME(fake), opd_fake_begin(), opd_fake_end, OPDI_IS_OPEN)
/* Blocks with autocast on a device, such as OPD_CPU: see opd_autocast_begin. */
#define OPD_AUTOCAST_AS(device, dtype, enabled, cache) \
    OPDI_GUARDED(opd_autocast_region, OPDI_GUARD_NAME(autocast), opd_autocast_begin(device, dtype, enabled, cache), \
                 opd_autocast_end, OPDI_IS_OPEN)
#define OPD_AUTOCAST(device) OPD_AUTOCAST_AS(device, OPD_DTYPE_NONE, true, -1)

