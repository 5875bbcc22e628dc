//----------------------------------------------------------------------------------------------------------------------
//  >>platform     allocation, atomics, threads, errors, log, arenas
//
//  The base of all other folders, on top of the C library and, unless OPD_NO_THREADS is defined, pthreads.  Nearly all
//  memory comes from one private function, opdi_alloc.  Each thread has one structure, opdi_thread, with everything
//  that is thread-local.  This folder does not depend on tensors.
//----------------------------------------------------------------------------------------------------------------------

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <errno.h>
#include <float.h>
#include <limits.h>
#include <time.h>
#if defined(__GNUC__) && (defined(__GLIBC__) || defined(__APPLE__) || defined(__FreeBSD__)) && !defined(__TINYC__)
#define OPDI_UNWINDS             /* on other systems the unwinder is not always linked */
#include <unwind.h>
#endif

#if !defined(OPD_NO_THREADS) && (defined(__TINYC__) || !defined(__GNUC__) || \
                                 (defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)))
#define OPD_NO_THREADS
#endif
#if defined(__TINYC__) && !defined(OPD_NO_SIMD)
#define OPD_NO_SIMD
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif
#if !defined(OPD_NO_THREADS)
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#if !defined(__cplusplus)
extern int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr);
extern int pthread_attr_getstack(const pthread_attr_t *attr, void **low, size_t *size);
#endif
#endif
#endif
#if defined(__unix__) || defined(__linux__) || defined(__APPLE__)
#define OPDI_MAPS                /* files can be mapped */
#include <fcntl.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#if !defined(__cplusplus)                         /* declared by the headers in C++, but not in strict C */
extern int fileno(FILE *file);
extern int fsync(int fd);
extern char *realpath(const char *path, char *out);
extern ssize_t readlink(const char *path, char *out, size_t size);
#endif
#endif
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>
#include <wchar.h>
/* The functions of Windows that the library calls.  windows.h is not included, because of its many macros.  These
   declarations agree with it. */
#define OPDI_WIN(R) __declspec(dllimport) R __stdcall
#if defined(__cplusplus)
extern "C" {
#endif
struct _SECURITY_ATTRIBUTES;
OPDI_WIN(unsigned long) GetLastError(void);
OPDI_WIN(int) MultiByteToWideChar(unsigned page, unsigned long flags, const char *text, int length, wchar_t *wide,
                                  int cap);
OPDI_WIN(void *) CreateFileW(const wchar_t *path, unsigned long access, unsigned long share,
                             struct _SECURITY_ATTRIBUTES *security, unsigned long how, unsigned long flags, void *like);
OPDI_WIN(void *) CreateFileMappingW(void *file, struct _SECURITY_ATTRIBUTES *security, unsigned long protect,
                                    unsigned long high, unsigned long low, const wchar_t *name);
#if defined(_WIN64)
typedef unsigned long long opdi_windows_size;
#else
typedef unsigned long opdi_windows_size;
#endif
OPDI_WIN(void) GetCurrentThreadStackLimits(opdi_windows_size *low, opdi_windows_size *high);
OPDI_WIN(void *) MapViewOfFile(void *map, unsigned long access, unsigned long high, unsigned long low,
                               opdi_windows_size bytes);
OPDI_WIN(int) UnmapViewOfFile(const void *data);
OPDI_WIN(int) CloseHandle(void *handle);
OPDI_WIN(unsigned long) GetFileType(void *file);
OPDI_WIN(unsigned long) GetFileSize(void *file, unsigned long *high);
OPDI_WIN(unsigned long) GetFileAttributesW(const wchar_t *path);
OPDI_WIN(int) DeleteFileW(const wchar_t *path);
OPDI_WIN(int) MoveFileExW(const wchar_t *from, const wchar_t *to, unsigned long flags);
OPDI_WIN(unsigned long) GetFullPathNameW(const wchar_t *path, unsigned long cap, wchar_t *whole, wchar_t **name);
#if defined(NO_STRICT)                            /* windows.h heeds this macro, too */
typedef void *opdi_windows_library;
#else
struct HINSTANCE__;
typedef struct HINSTANCE__ *opdi_windows_library;
#endif
OPDI_WIN(opdi_windows_library) LoadLibraryExW(const wchar_t *path, void *file, unsigned long flags);
OPDI_WIN(int) SetThreadErrorMode(unsigned long mode, unsigned long *was);
OPDI_WIN(void) FlushProcessWriteBuffers(void);
union _LARGE_INTEGER;
OPDI_WIN(int) QueryPerformanceCounter(union _LARGE_INTEGER *count);
OPDI_WIN(int) QueryPerformanceFrequency(union _LARGE_INTEGER *count);
OPDI_WIN(unsigned long) TlsAlloc(void);
OPDI_WIN(void *) TlsGetValue(unsigned long slot);
OPDI_WIN(int) TlsSetValue(unsigned long slot, void *value);
OPDI_WIN(int) FreeLibrary(opdi_windows_library library);
typedef intptr_t (__stdcall *opdi_windows_fn)(void);
OPDI_WIN(opdi_windows_fn) GetProcAddress(opdi_windows_library library, const char *name);
OPDI_WIN(unsigned long) FormatMessageW(unsigned long flags, const void *source, unsigned long code,
                                       unsigned long language, wchar_t *text, unsigned long cap, va_list *arguments);
OPDI_WIN(int) WideCharToMultiByte(unsigned page, unsigned long flags, const wchar_t *wide, int length, char *text,
                                  int cap, const char *other, int *was_other);
OPDI_WIN(void) SetLastError(unsigned long code);
OPDI_WIN(void) Sleep(unsigned long milliseconds);
OPDI_WIN(unsigned long) GetEnvironmentVariableW(const wchar_t *name, wchar_t *value, unsigned long cap);
OPDI_WIN(unsigned long) GetModuleFileNameW(opdi_windows_library library, wchar_t *path, unsigned long cap);
OPDI_WIN(unsigned long) SearchPathW(const wchar_t *folders, const wchar_t *name, const wchar_t *ending,
                                    unsigned long cap, wchar_t *path, wchar_t **last);
OPDI_WIN(unsigned long) GetCurrentProcessId(void);
struct _PROC_THREAD_ATTRIBUTE_LIST;
struct _STARTUPINFOW;
struct _PROCESS_INFORMATION;
OPDI_WIN(int) InitializeProcThreadAttributeList(struct _PROC_THREAD_ATTRIBUTE_LIST *list, unsigned long count,
                                                unsigned long flags, opdi_windows_size *bytes);
OPDI_WIN(int) UpdateProcThreadAttribute(struct _PROC_THREAD_ATTRIBUTE_LIST *list, unsigned long flags,
                                        opdi_windows_size attribute, void *value, opdi_windows_size bytes,
                                        void *previous, opdi_windows_size *needed);
OPDI_WIN(void) DeleteProcThreadAttributeList(struct _PROC_THREAD_ATTRIBUTE_LIST *list);
OPDI_WIN(int) CreateProcessW(const wchar_t *program, wchar_t *line, struct _SECURITY_ATTRIBUTES *process,
                             struct _SECURITY_ATTRIBUTES *thread, int inherit, unsigned long flags, void *environment,
                             const wchar_t *folder, struct _STARTUPINFOW *startup, struct _PROCESS_INFORMATION *made);
OPDI_WIN(unsigned long) WaitForSingleObject(void *handle, unsigned long milliseconds);
OPDI_WIN(int) GetExitCodeProcess(void *process, unsigned long *status);
#if defined(__cplusplus)
}
#endif
/* The constants for these functions. */
enum {
    OPDI_WIN_UTF8 = 65001, OPDI_WIN_INVALID_FAILS = 8, OPDI_WIN_TOO_SMALL = 122, OPDI_WIN_SHARE_ALL = 7,
    OPDI_WIN_OPEN_EXISTING = 3, OPDI_WIN_ON_DISK = 1, OPDI_WIN_FOLDER = 16, OPDI_WIN_PAGE_WRITECOPY = 8,
    OPDI_WIN_MAP_COPY = 1, OPDI_WIN_REPLACE = 1, OPDI_WIN_WRITE_THROUGH = 8, OPDI_WIN_SEARCH_ITS_FOLDER = 8,
    OPDI_WIN_SYSTEM_TEXT = 0x1200, OPDI_WIN_THREAD_ENDS = 3, OPDI_WIN_NO_DIALOGS = 1, OPDI_WIN_READ_ONLY = 1,
    OPDI_WIN_IN_USE = 32, OPDI_WIN_LOCKED = 33, OPDI_WIN_MAKE_EMPTY = 2
};
#define OPDI_WIN_READ 0x80000000ul
#define OPDI_WIN_WRITE 0x40000000ul
#define OPDI_WIN_NO_ATTRIBUTES 0xfffffffful
#define OPDI_WIN_NO_FILE ((void *)(intptr_t)-1)
#define OPDI_WIDE_PATH 4096                       /* the longest path in UTF-16, with its final 0 */
#endif
#if ((!defined(__unix__) && !defined(_WIN32)) || defined(__EMSCRIPTEN__)) && !defined(OPD_NO_PLUGINS)
#define OPD_NO_PLUGINS
#endif
#if !defined(OPD_NO_PLUGINS)
#if defined(_WIN32)
#define OPDI_DLLS                /* plug-ins are DLLs */
#else
#define OPDI_SPAWNS              /* plug-ins are ELF files, and can be compiled at run time */
#endif
#endif
#if defined(OPDI_SPAWNS)
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>
#include <utime.h>
#include <sys/stat.h>
#include <sys/wait.h>
#if !defined(__cplusplus)
extern int lstat(const char *path, struct stat *out);
extern int fchmod(int fd, mode_t mode);
extern int mkstemp(char *path);
extern char *mkdtemp(char *path);
extern ssize_t readlink(const char *path, char *out, size_t cap);
extern int gethostname(char *name, size_t cap);
extern int sigemptyset(sigset_t *set);
extern int sigaddset(sigset_t *set, int signal);
extern char **environ;
#endif
#endif

/* If a family of operators is left out (see CONFIGURATION), so are the families that need it. */
#if defined(OPD_NO_OPERATORS)
#if !defined(OPD_NO_COLLECTIVES)
#define OPD_NO_COLLECTIVES
#endif
#define OPD_NO_OP_CONV
#define OPD_NO_OP_POOL
#define OPD_NO_OP_DISTANCE
#define OPD_NO_OP_FFT
#define OPD_NO_OP_SOLVE
#define OPD_NO_OP_SPECIAL
#define OPD_NO_OP_NORM
#define OPD_NO_OP_QUANTIZED
#define OPD_NO_OP_SEQUENCE
#define OPD_NO_OP_LOSS
#define OPD_NO_OP_INDEX
#define OPD_NO_OP_TRAIN
#endif
#if defined(OPD_NO_OP_CONV) && !defined(OPD_NO_OP_POOL)
#define OPD_NO_OP_POOL
#endif
#if defined(OPD_NO_OP_CONV) && !defined(OPD_NO_OP_RESAMPLE)
#define OPD_NO_OP_RESAMPLE
#endif
#if defined(OPD_NO_OP_NORM) && !defined(OPD_NO_OP_LOSS)
#define OPD_NO_OP_LOSS
#endif
#if defined(OPD_NO_OP_NORM) && !defined(OPD_NO_OP_SEQUENCE)
#define OPD_NO_OP_SEQUENCE
#endif
#if (defined(OPD_NO_GRAPHS) || defined(OPD_NO_EXCHANGE) || defined(OPD_NO_MODULES)) && !defined(OPD_NO_PROGRAMS)
#define OPD_NO_PROGRAMS
#endif
#if (defined(OPD_NO_GRAPHS) || defined(OPD_NO_EXCHANGE) || defined(OPD_NO_MODULES)) && !defined(OPD_NO_SCRIPTS)
#define OPD_NO_SCRIPTS
#endif
#if (defined(OPD_NO_GRAPHS) || defined(OPD_NO_EXCHANGE) || defined(OPD_NO_OPERATORS)) && !defined(OPD_NO_COMPILER)
#define OPD_NO_COMPILER
#endif
#if defined(OPD_NO_TRANSFORMS) || defined(OPD_NO_GRAPHS) || defined(OPD_NO_CHECKING) || defined(OPD_NO_TRAINING) || \
    defined(OPD_NO_EXCHANGE) || defined(OPD_NO_MODULES) || defined(OPD_NO_PROFILER) || defined(OPD_NO_AUTOCAST) || \
    defined(OPD_NO_PROGRAMS) || defined(OPD_NO_SCRIPTS) || defined(OPD_NO_COLLECTIVES) || defined(OPD_NO_COMPILER)
#define OPDI_TOOLS_LESS
#endif
#if defined(OPD_NO_OP_POOL) || defined(OPD_NO_OP_RESAMPLE) || defined(OPD_NO_OP_LOSS) || \
    defined(OPD_NO_OP_INDEX) || defined(OPD_NO_COMPLEX) || defined(OPDI_TOOLS_LESS) || defined(OPD_LEAN) || \
    defined(OPDISPATCH_PART)
#define OPDI_LESS                /* helpers of left-out families or of other parts are compiled, but unused */
#endif
#if defined(OPDI_LESS) && defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#if defined(OPDISPATCH_PART) && defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wattributes"     /* g++ takes `hidden` only in the prototype of a constant */
#elif defined(OPDISPATCH_PART)
#pragma GCC diagnostic ignored "-Wmissing-prototypes"        /* some functions are defined by macros */
#endif
#endif
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpragma-clang-attribute"      /* a cold region may contain no function */
#endif

#if defined(OPD_MALLOC) != defined(OPD_FREE)
#error "define both OPD_MALLOC(size) and OPD_FREE(pointer), or neither"
#endif
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "build this file without -ffast-math, -Ofast, -ffinite-math-only, -fassociative-math: they give wrong results"
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
/* A program must not link if its parts (OPDISPATCH_PART) were compiled with different settings of OPD_NO_THREADS or
   OPD_NO_CACHE.  So the name of the function OPDI_PARTS_FIT depends on these settings: part 1 defines the function, and
   each other part calls it. */
#if defined(OPDISPATCH_PART)
#if defined(OPD_NO_THREADS) && defined(OPD_NO_CACHE)
#define OPDI_PARTS_FIT opdi_parts_without_threads_and_cache
#elif defined(OPD_NO_THREADS)
#define OPDI_PARTS_FIT opdi_parts_without_threads
#elif defined(OPD_NO_CACHE)
#define OPDI_PARTS_FIT opdi_parts_without_cache
#else
#define OPDI_PARTS_FIT opdi_parts_whole
#endif
OPDI_INTERNAL void OPDI_PARTS_FIT(void);
#if OPDISPATCH_PART == 1
OPDI_INTERNAL void OPDI_PARTS_FIT(void) { }
#else
#if defined(__GNUC__)
__attribute__((used))
#endif
static void opdi_parts_fit(void) { OPDI_PARTS_FIT(); }
#endif
#endif

#if defined(__GNUC__)
#define OPDI_MAY_ALIAS __attribute__((may_alias))         /* memory of this type may also be accessed as another type */
#else
#define OPDI_MAY_ALIAS
#endif
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_LIKELY(x) __builtin_expect(!!(x), 1)
#define OPDI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OPDI_NOINLINE __attribute__((noinline))
#define OPDI_FORCE_INLINE __attribute__((always_inline)) inline
#define OPDI_ALWAYS static inline __attribute__((always_inline))
#define OPDI_TLS __thread __attribute__((tls_model("initial-exec")))
#define OPDI_LOAD(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define OPDI_ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define OPDI_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define OPDI_PUBLISH(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define OPDI_ADD(p, v) __atomic_add_fetch(p, v, __ATOMIC_RELAXED)
#define OPDI_SUB(p, v) __atomic_sub_fetch(p, v, __ATOMIC_ACQ_REL)
#define OPDI_EXCHANGE(p, was, v) \
    (OPDI_ALONE ? (*(p) = (v), true) : __atomic_compare_exchange_n(p, was, v, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
#define OPDI_IN_ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)      /* orders memory accesses for the compiler only */
#define OPDI_PREFETCH(p) __builtin_prefetch((const void *)(p))
#else
#define OPDI_LIKELY(x) (x)
#define OPDI_UNLIKELY(x) (x)
#define OPDI_NOINLINE
#define OPDI_FORCE_INLINE inline
#define OPDI_ALWAYS static inline
#define OPDI_TLS
#define OPDI_LOAD(p) (*(p))
#define OPDI_ACQUIRE(p) (*(p))
#define OPDI_STORE(p, v) (*(p) = (v))
#define OPDI_PUBLISH(p, v) (*(p) = (v))
#define OPDI_ADD(p, v) (*(p) += (v))
#define OPDI_SUB(p, v) (*(p) -= (v))
#define OPDI_EXCHANGE(p, was, v) ((void)(was), *(p) = (v), true)
#define OPDI_IN_ORDER() ((void)0)
#define OPDI_PREFETCH(p) ((void)(p))
#endif

/* True while the process has only one thread, according to glibc.  Only that thread can change this, by starting
   another thread. */
#if defined(OPD_NO_THREADS)
#define OPDI_ALONE 1
#elif defined(__linux__) && defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define OPDI_ALONE (__libc_single_threaded)
#endif
#endif
#if !defined(OPDI_ALONE)
#define OPDI_ALONE 0
#endif

/* opdi_ref_up adds a reference. opdi_ref_down drops a reference and returns how many are left. */
static inline void opdi_ref_up(int32_t *refs) {
    if (OPDI_ALONE) { OPDI_STORE(refs, *refs + 1); } else { (void)OPDI_ADD(refs, 1); }
}
static inline int32_t opdi_ref_down(int32_t *refs) {
    if (!OPDI_ALONE) { return OPDI_SUB(refs, 1); }
    int32_t left = *refs - 1;
    OPDI_STORE(refs, left);
    return left;
}

#if defined(OPD_NO_THREADS)
typedef int opdi_mutex;
#define OPDI_MUTEX_INIT 0
#define opdi_lock(m) ((void)(m))
#define opdi_unlock(m) ((void)(m))
#define opdi_try_lock(m) ((void)(m), true)        /* returns whether the lock was free, and is now taken */
#else
typedef pthread_mutex_t opdi_mutex;
#define OPDI_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define opdi_lock(m) ((void)pthread_mutex_lock(m))
#define opdi_unlock(m) ((void)pthread_mutex_unlock(m))
#define opdi_try_lock(m) (pthread_mutex_trylock(m) == 0)
#endif

/* In the whole implementation, the compiler rounds each product and each sum, also if the processor can compute
   a * b + c with one rounding, so that all compilers give the same bits.  The code says where it rounds once
   (OPDI_FMAF, OPDI_ASM_FMA).  implementation_end.h ends this mode. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC push_options
#pragma GCC optimize ("fp-contract=off")
#if defined(OPD_LEAN)             /* saves 1% of the code; functions stay aligned, because calls would be slower */
#pragma GCC optimize ("align-jumps=1")
#endif
#endif

/* Marks for how much the compiler optimises.  Code between OPDI_COLD_BEGIN and OPDI_COLD_END is not on any hot path;
   gcc takes a third of the time to compile it.  OPDI_COLD marks a single function.  Functions that hot loops call and
   the compiler should inline stay outside.
   Between OPDI_ONCE_BEGIN and OPDI_ONCE_END nothing is optimised: tools, text and code that runs once.
   Between OPDI_LOOPS_BEGIN and OPDI_LOOPS_END are loops over elements.  Passes of gcc that gain nothing there are
   switched off.  gcc may assume that floating-point exceptions do not trap, so that the loops vectorise.  Still, gcc
   lets square roots set errno: see opdi_vsqrt. */
#define OPDI_COLD_BEGIN
#define OPDI_COLD_END
#define OPDI_COLD
#define OPDI_ONCE_BEGIN
#define OPDI_ONCE_END
#define OPDI_LOOPS_BEGIN
#define OPDI_LOOPS_END
#if defined(__clang__) && defined(__OPTIMIZE__)
#undef OPDI_COLD_BEGIN
#undef OPDI_COLD_END
#define OPDI_COLD_BEGIN _Pragma("clang attribute push(__attribute__((minsize)), apply_to = function)")
#define OPDI_COLD_END _Pragma("clang attribute pop")
#undef OPDI_ONCE_BEGIN
#undef OPDI_ONCE_END
#if defined(OPD_LEAN)
#define OPDI_ONCE_BEGIN OPDI_COLD_BEGIN
#define OPDI_ONCE_END OPDI_COLD_END
#else
#define OPDI_ONCE_BEGIN _Pragma("clang optimize off")
#define OPDI_ONCE_END _Pragma("clang optimize on")
#endif
#elif defined(__GNUC__) && !defined(__TINYC__) && defined(__OPTIMIZE__)
#undef OPDI_COLD_BEGIN
#undef OPDI_COLD_END
#undef OPDI_COLD
#if defined(OPD_LEAN)             /* a lean program has so little code that it may be compiled for size */
#define OPDI_COLD_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize (\"Os\")")
#define OPDI_COLD __attribute__((optimize("Os")))
#else
/* Without estimates of how often branches are taken, gcc compiles faster, and the code is smaller. */
#define OPDI_COLD_BEGIN _Pragma("GCC push_options") \
    _Pragma("GCC optimize (\"Og\", \"no-guess-branch-probability\", \"no-reorder-blocks\", \"no-shrink-wrap\")") \
    _Pragma("GCC optimize (\"no-if-conversion\", \"no-split-wide-types\")")
#define OPDI_COLD __attribute__((optimize("Og", "no-guess-branch-probability")))
#endif
#define OPDI_COLD_END _Pragma("GCC pop_options")
#undef OPDI_ONCE_BEGIN
#undef OPDI_ONCE_END
/* In two cases, code that runs once is compiled like cold code, because -O0 has a problem.  With OPD_LEAN: gcc keeps
   unused functions that are compiled at -O0 (gcc's PR24561).  With _FORTIFY_SOURCE, which Ubuntu's gcc defines: the
   checks of open, read and others in glibc's headers need an optimising compiler. */
#if defined(OPD_LEAN) || (defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0)
#define OPDI_ONCE_BEGIN OPDI_COLD_BEGIN
#define OPDI_ONCE_END OPDI_COLD_END
#else                            /* saves __OPTIMIZE__, which gcc's pop_options does not restore in C */
#define OPDI_ONCE_BEGIN _Pragma("push_macro(\"__OPTIMIZE__\")") \
    _Pragma("GCC push_options") _Pragma("GCC optimize (\"O0\", \"omit-frame-pointer\")")
#define OPDI_ONCE_END _Pragma("GCC pop_options") _Pragma("pop_macro(\"__OPTIMIZE__\")")
#endif
#undef OPDI_LOOPS_BEGIN
#undef OPDI_LOOPS_END
#define OPDI_LOOPS_BEGIN _Pragma("GCC push_options") \
    _Pragma("GCC optimize (\"no-thread-jumps\", \"no-tree-vrp\", \"no-tree-pre\", \"no-gcse\", \"no-code-hoisting\")") \
    _Pragma("GCC optimize (\"no-schedule-insns2\", \"no-ipa-cp\", \"no-ipa-icf\", \"no-ipa-modref\", \"no-ipa-sra\")") \
    _Pragma("GCC optimize (\"no-math-errno\", \"no-trapping-math\")")
#define OPDI_LOOPS_END _Pragma("GCC pop_options")
#endif

#if defined(__TINYC__)
#define OPDI_INF (1e308 * 10)
#define OPDI_MINUS_INF (-1e308 * 10)          /* for tcc, -OPDI_INF is not a constant */
#else
#define OPDI_INF HUGE_VAL
#define OPDI_MINUS_INF (-HUGE_VAL)
#endif
/* A text in the initial value of a table that every program contains.  Compilers put the long texts of all tables into
   one section, which the linker keeps or drops as a whole; this one gets its own.  See OPD_LEAN. */
#if defined(OPD_LEAN) && !defined(OPD_STATIC) && defined(__GNUC__) && !defined(__cplusplus)
#define OPDI_TEXT(text) ((const char[]){text})
#else
#define OPDI_TEXT(text) text
#endif
#define OPDI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define OPDI_MAX(a, b) ((a) > (b) ? (a) : (b))
/* Checks that `array` has `count` elements, a number that other files depend on.  If the number is wrong, the code does
   not compile, and the error names the array. */
#define OPDI_HAS_COUNT(array, count) \
    typedef char array##_has_another_count[sizeof array / sizeof array[0] == (size_t)(count) ? 1 : -1]

/* The part of a thread's state that a kernel may change and the dispatcher restores. */
typedef struct opdi_state {
    /* include: bits of the functionalities that are added to the keys of every call; allow: bits of the
       functionalities that are not excluded */
    uint64_t include, allow;
    int16_t no_grad;
    uint16_t autocast;           /* number of the state in opdi_autocasts; 0: no autocast region */
    int16_t inference;           /* not 0: new tensors have no history and no version */
    int16_t forward;             /* OPDI_FORWARD_*; if only OPDI_FORWARD_OPEN is set, tangents are computed */
} opdi_state;
enum { OPDI_FORWARD_OPEN = 1, OPDI_FORWARD_OFF = 2 };      /* OPEN: a level is open; OFF: forward mode is switched
                                                              off */
/* Returns the four modes of state in one word, so that a call saves and restores them with one load and one store. */
static inline uint64_t opdi_modes_get(const opdi_state *state) {
    uint64_t modes;
    memcpy(&modes, &state->no_grad, sizeof modes);
    return modes;
}
static inline void opdi_modes_set(opdi_state *state, uint64_t modes) {
    memcpy(&state->no_grad, &modes, sizeof modes);
}

#define OPDI_SMALL_CLASSES 64                     /* up to 1 KiB, the classes are 16 bytes apart */
#define OPDI_CLASSES (OPDI_SMALL_CLASSES + 24)    /* up to 64 KiB, four classes for each doubling */
#define OPDI_QUARANTINE 16                        /* how many freed blocks of a class wait in `late`; a power of two */
#define OPDI_QUARANTINE_CLASSES 32
#define OPDI_QUARANTINE_BYTES 512                 /* bytes of the largest blocks that `late` delays */
#define OPDI_PLACES 64
/* A note that a tensor was kept at `place`; NULL: that it was released.  See >>kept. */
#define OPDI_NOTES 16
typedef struct opdi_note { opd_tensor *tensor; const char *place; } opdi_note;
/* The link in a free block.  The link overwrites the block's first bytes: the code that frees a block must have read
   these bytes before, and the code that allocates the block writes them after. */
typedef struct OPDI_MAY_ALIAS opdi_free_block { struct opdi_free_block *next; } opdi_free_block;

/* The thread's default sets of included and excluded keys (DispatchKeySet.h). */
#define OPDI_DEFAULT_INCLUDE (OPD_BIT_OF(OPD_F_BACKEND_SELECT) | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW))
#define OPDI_DEFAULT_ALLOW (~OPD_BIT_OF(OPD_F_AUTOCAST))

/* The most observers that a thread can have.  Half of the places are for observers of all threads. */
#define OPDI_MAX_OBSERVERS 32
typedef struct opdi_observer opdi_observer;
typedef struct opdi_watch { opdi_observer *observer; int64_t left; } opdi_watch;      /* left: events to skip */

/* The innermost open objects around a call, one of each kind; NULL or 0 if there is none.  A helper thread that
   continues the work of another thread copies this struct. */
typedef struct opdi_innermost {
    opd_node *node;              /* autograd: the node whose backward function is running */
    struct opdi_engine *engine;  /* autograd: the backward that this thread works for */
    struct opdi_packer *packer;  /* autograd: the innermost pair of saved-tensor hooks */
    struct opdi_keeping *keeping;                 /* checkpoints: the run whose options say which results are kept */
    const char *packers_off;     /* autograd: the reason why saved-tensor hooks fail; NULL: they work */
    struct opdi_mutation *mutation;               /* autograd: see opd_allow_mutation_begin */
    struct opdi_level *level;    /* forward mode: the innermost open level that called operators see */
    struct opdi_level *dual;     /* forward mode: the level, inside `level`, whose tangents are being computed */
    bool tangents;               /* forward mode: operators compute tangents, not the results of a call */
    int32_t floor;               /* forward mode: levels outside of this layer are off; 0: none is off */
    struct opdi_layer *layer;    /* transforms: the innermost layer */
    struct opdi_layer *rule;     /* transforms: the vmap layer whose batching rule is running */
    uint32_t serials, serial;    /* transforms: serials: how many layers were opened so far; serial: the number of the
                                    open layer */
    uint32_t tape;               /* transforms: the number of the open grad or jvp; 0: none */
    struct opdi_tracer *tracer;  /* graphs: the recording in progress */
    struct opdi_fake *fake;      /* fakes: the innermost open fake mode */
    bool observe_off;            /* observers: switched off on this thread */
} opdi_innermost;
/* A visit is the time in which the library runs code of the user that is not a kernel: hooks, observers, functions to
   differentiate or to trace.  If an exception or a longjmp leaves this code, nobody ends the visit (see opdi_is_left).
   The function that runs the code has an opdi_visit_frame in its frame.  The opdi_visit has the state of the thread
   when the visit began. */
#define OPDI_VISITS 32                            /* visits that are nested deeper are not examined */
typedef struct opdi_visit_frame { struct opdi_thread *thread; int32_t at; } opdi_visit_frame;
typedef struct opdi_visit {
    const opdi_visit_frame *frame;
    const char *what;                             /* for messages: what kind of code runs */
    void (*end)(struct opdi_visit *visit);        /* ends what opdi_forget_left does not end; NULL: nothing */
    void *user;                                   /* for `end` */
    int32_t scope_depth, depth;
    int64_t scope_mark, top;
    opdi_innermost innermost;
    opdi_state state;
    opd_call *current;
    bool observing;
} opdi_visit;
typedef struct opdi_thread {
    uint64_t inside;             /* the epoch in which the outermost running call began; 0: no call is running (see
                                    opdi_enter) */
    opdi_state state;
    opd_code error;              /* OPD_OK: no error is pending */
    int32_t observed;            /* observers: 0: none are called; else OPDI_OBSERVE_LOOK or OPDI_OBSERVE_SKIP */
    int32_t scope_depth;
    int32_t warned_scope;        /* the warning about a scope with many tensors was given */
    opd_call *current;           /* the innermost running call */
    uintptr_t *handles;          /* the scope stack: tensors; with bit 0 set, opdi_block */
    int64_t top, cap;            /* top: how many handles are in use; cap: the size of the array */
    int64_t scope_mark;          /* the index at which the innermost scope begins */
    uint64_t sequence;           /* autograd: the number of the next node */
    opdi_innermost innermost;
    int64_t fake_live;           /* bytes of fakes that this thread made, less those that it freed */
    opdi_free_block *free_lists[OPDI_CLASSES];
    void *late[OPDI_QUARANTINE_CLASSES][OPDI_QUARANTINE]; /* freed blocks that are not yet in free_lists: see
                                                             opdi_free_quarantined */
    uint8_t late_at[OPDI_QUARANTINE_CLASSES];     /* index of the oldest block in each row of `late` */
    int32_t hand;                                 /* the size class that was emptied last: see opdi_cache_evict */
    struct opdi_planned *planned;                 /* the memory plan of the graph that this thread runs */
    uint32_t run;                                 /* the number of the graph's run; 0: no planned run */
    const char *ending;          /* the reason why tensors are being freed: see opdi_dead_why */
    int64_t cached;              /* bytes in free_lists and late */
    int64_t live_delta;          /* bytes handed out but not yet added to the global count */
    int64_t allocated;           /* bytes handed out to this thread so far */
    int64_t allocations;
    struct opdi_thread *next;    /* the next in the list of all threads */
    uint64_t born;               /* the thread's number, from 1 */
    bool observing, observe_end; /* observing: a callback is running; observe_end: the thread is ending */
    bool showing;                /* the dispatch trace is being written: calls inside are not traced */
    int32_t nobservers;
    opdi_mutex observe_lock;     /* protects the list of observers */
    opdi_watch observers[OPDI_MAX_OBSERVERS];
    opdi_observer *own_observers;                 /* observers of this thread only */
    int64_t skip, skip_from;     /* sampling: skip: events to skip before the list is read again; skip_from: the first
                                    value of skip */
    uint64_t random, events;
    int32_t depth;               /* autograd: how many backwards are nested on this thread */
    void *recorder;              /* profiler: this thread's recorder, if it belongs to profile recorder_of */
    uint64_t recorder_of;
    char message[2048];
    uintptr_t stack_low;         /* lowest address of this thread's stack, see opdi_on_own_stack */
    size_t stack_bytes;          /* size of this thread's stack; 0: unknown */
    bool no_wait;                /* copies to and from a device do not wait */
    int32_t sorting;             /* scripts: nesting depth of sorts that call __lt__ */
    struct opdi_poison *poison; /* opcheck: fills new blocks */
    bool left;                   /* an exception or longjmp has left calls, so `inside` may be wrong */
    int64_t live_before;         /* bytes handed out and already added to the global count */
    struct opdi_thread_limits {  /* see opd_limits_set; 0: no limit */
        double seconds;
        int64_t until;           /* the time at which runs end, by opdi_clock */
        int64_t bytes;           /* the most bytes that live_before + live_delta may become */
        int64_t nodes;           /* one more than the number of nodes that may still be made */
        int32_t depth;
    } limits;
    int32_t nvisits;             /* how many visits are open */
    opdi_visit visits[OPDI_VISITS];               /* the outermost first */
    const char *places[OPDI_PLACES];              /* "file:line" of each open scope, the outermost first */
    bool keeps;                                   /* the thread has kept or released a tensor */
    int32_t notes_left;                           /* the notes from this index on are not in the table yet */
    opdi_note notes[OPDI_NOTES];
} opdi_thread;

OPDI_VARIABLE OPDI_TLS opdi_thread *opdi_thread_self;

OPDI_NOINLINE OPDI_INTERNAL opdi_thread *opdi_thread_make(void);
static inline uint32_t opdi_thread_number(const opdi_thread *thread) { return (uint32_t)thread->born & 0xfffff; }
static inline opdi_thread *opdi_self(void) {
    opdi_thread *thread = opdi_thread_self;
    return OPDI_LIKELY(thread != NULL) ? thread : opdi_thread_make();
}

/* The limit of nested calls.  A kernel that calls itself without end fails at this depth. */
#define OPDI_MAX_DEPTH 400
/* Calls that are nested deeper than opdi_depth_limit take the slow path (opdi_beyond_limit).  The limit is 0, so that
   all calls do, while the dispatch trace is on, collectives run, or a thread has a small stack. */
#define OPDI_QUICK_DEPTH 32
#if defined(OPDI_DIVIDED)
extern OPDI_INTERNAL int32_t opdi_depth_limit;
#else
static int32_t opdi_depth_limit = OPDI_QUICK_DEPTH;
#endif

#if defined(OPDI_DIVIDED)
extern OPDI_INTERNAL uint64_t opdi_epoch;
#else
static uint64_t opdi_epoch = 1;                   /* increases when a table or kernel is taken out of use */
#endif

/* Begins to read operators' tables or schemas without the registry's lock.  Pass the result to opdi_leave, which ends
   the reading. */
static inline uint64_t opdi_enter(opdi_thread *thread) {
    const uint64_t was = thread->inside;
    if (OPDI_LIKELY(was == 0)) {
        OPDI_PUBLISH(&thread->inside, OPDI_ACQUIRE(&opdi_epoch));
        OPDI_IN_ORDER();
    }
    return was;
}
static inline void opdi_leave(opdi_thread *thread, uint64_t was) { OPDI_PUBLISH(&thread->inside, was); }

/* Returns the index of the highest set bit of `bits`, which must not be 0.  Compilers turn 63 ^ clz into one
   instruction, but 63 - clz not always. */
static inline int opdi_top_bit(uint64_t bits) {
#if defined(__GNUC__) && !defined(__TINYC__)
    return 63 ^ __builtin_clzll(bits);
#else
    int count = 0;
    if (bits >> 32) {
        count += 32;
        bits >>= 32;
    }
    if (bits >> 16) {
        count += 16;
        bits >>= 16;
    }
    if (bits >> 8) {
        count += 8;
        bits >>= 8;
    }
    if (bits >> 4) {
        count += 4;
        bits >>= 4;
    }
    if (bits >> 2) {
        count += 2;
        bits >>= 2;
    }
    return count + (int)(bits >> 1);
#endif
}
static inline int opdi_popcount(uint64_t bits) {  /* without branches, which processors mispredict */
    bits -= bits >> 1 & 0x5555555555555555u;
    bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
    return (int)(((bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56);
}
#if defined(__GNUC__) && !defined(__TINYC__)
static inline int opdi_low_bit(uint64_t bits) { return __builtin_ctzll(bits); }
#else
static inline int opdi_low_bit(uint64_t bits) { return opdi_top_bit(bits & (0 - bits)); }
#endif

