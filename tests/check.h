/* check.h: a framework for the tests, in C11 and C++11.

       #include "check.h"

       TEST(adds_two_numbers) {
           CHECK_INT(1 + 1, 2);
       }
       CHECK_MAIN()

   A test case fails if a check in it fails, if it checks nothing, if it leaves an error pending or a scope open, or
   if it loses memory.  The runner opens a scope around every case, and afterwards opd_memory_stats must report as
   many live bytes as before.  Memory that grows only once (a registry, stacks of a thread) is not lost: to tell the
   difference, the runner runs the case again, at most twice.  So a case must be able to run several times.  Use
   TEST_KEEPS(name) for cases that keep memory on purpose (it must be reachable, otherwise the address sanitizer
   reports it), or that cannot run again.  Any thread may make checks.

   run.sh links all test files with the implementation in test_kernels.c, which defines OPDISPATCH_IMPLEMENTATION
   before it includes this header.  Other test files call private functions through inside.h.
   Program arguments: parts of names of the cases to run; --without=NAME leaves a case out; -v prints the name of each
   case before it runs; --list only prints the names. */
#ifndef OPD_TESTS_CHECK_H
#define OPD_TESTS_CHECK_H

#include "../opdispatch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__TINYC__)                            /* run.sh --quick links the objects of tcc with gcc, which runs constructors */
#undef OPDI_AT_LOAD
#define OPDI_AT_LOAD(n, id) __attribute((constructor)) static void opd_block_at_load_##n(void) { opd_block_use_##n(); }
#undef OPDI_USE_BLOCKS
#define OPDI_USE_BLOCKS(id) (void)0
#endif

/* Test data is little-endian: converts it, in place, to the byte order of this machine.  element: bytes of a number,
   or of a part of a complex number. */
static inline int check_big_endian(void) {
    const int one = 1;
    return *(const char *)&one == 0;
}
static inline void check_native(void *data, size_t bytes, size_t element) {
    char *p = (char *)data, *end = p + (check_big_endian() ? bytes : 0), c;
    for (; p < end; p += element) {
        size_t i;
        for (i = 0; i < element / 2; i++) { c = p[i]; p[i] = p[element - 1 - i]; p[element - 1 - i] = c; }
    }
}

/* Ends a child process with _exit, so that it does not run its parent's exit handlers.  With CHECK_COVERAGE
   (tests/coverage.sh), it first writes its counts. */
#ifdef CHECK_COVERAGE
#ifdef __cplusplus
extern "C"
#endif
int __llvm_profile_write_file(void);
#define CHECK_CHILD_ENDS(status) ((void)__llvm_profile_write_file(), _exit(status))
#else
#define CHECK_CHILD_ENDS(status) _exit(status)
#endif

#define CHECK_FAILURES_SHOWN 20  /* failures that are printed for a case; others are only counted */

/* Defined under the sanitizers: CHECK_SANITIZED under the one of addresses or of threads, CHECK_THREADS_SANITIZED. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CHECK_THREADS_SANITIZED
#elif __has_feature(address_sanitizer)
#define CHECK_SANITIZED
#endif
#endif
#if defined(__SANITIZE_THREAD__) && !defined(CHECK_THREADS_SANITIZED)
#define CHECK_THREADS_SANITIZED
#endif
#if (defined(CHECK_THREADS_SANITIZED) || defined(__SANITIZE_ADDRESS__)) && !defined(CHECK_SANITIZED)
#define CHECK_SANITIZED
#endif

typedef struct check_case {
    const char *name;
    void (*run)(void);
    void (*run_with)(void *arg); /* replaces run, for cases that a program adds itself */
    void *arg;
    int keeps;                   /* keeps memory on purpose */
    struct check_case *next;
} check_case;

static check_case *check_first;
static check_case **check_last = &check_first;
static const char *check_current = "";
static int check_failures, check_made, check_skipped;     /* counts of the running case */
static bool check_walking;                                /* the cases walk over operators */
OPD_UNUSED static int check_times;                         /* how often the case has begun to run */

#if defined(__GNUC__) && !defined(__TINYC__)
#define CHECK_COUNT(counter) __atomic_add_fetch(&(counter), 1, __ATOMIC_RELAXED)
#else
#define CHECK_COUNT(counter) (++(counter))
#endif

//-- functions for the macros ------------------------------------------------------------------------------------------

/* Counts a check; a failed one prints its place and returns true. */
OPD_UNUSED static bool check_failed(bool right, const char *file, int line) {
    (void)CHECK_COUNT(check_made);
    if (right) { return false; }
    if (CHECK_COUNT(check_failures) > CHECK_FAILURES_SHOWN) { return false; }
    printf("%s:%d: %s: ", file, line, check_current);
    return true;
}
OPD_UNUSED static bool check_true(bool right, const char *text, const char *file, int line) {
    if (check_failed(right, file, line)) { printf("CHECK(%s)\n", text); }
    return right;
}
OPD_UNUSED static bool check_str(const char *a, const char *b, const char *text, const char *file, int line) {
    bool right = a && b ? strcmp(a, b) == 0 : a == b;
    if (check_failed(right, file, line)) {
        printf("%s\n  is       \"%s\"\n  expected \"%s\"\n", text, a ? a : "(null)", b ? b : "(null)");
    }
    return right;
}
OPD_UNUSED static bool check_int(long long a, long long b, const char *text, const char *file, int line) {
    if (check_failed(a == b, file, line)) { printf("%s is %lld, expected %lld\n", text, a, b); }
    return a == b;
}
/* Checks that a and b differ by at most tol.  Infinities must be equal.  A NaN is near only to a NaN. */
OPD_UNUSED static bool check_near(double a, double b, double tol, const char *text, const char *file, int line) {
    bool nan_a = isnan(a) != 0, nan_b = isnan(b) != 0;
    bool right = nan_a || nan_b ? nan_a && nan_b : (isinf(a) || isinf(b) ? !(a < b) && !(b < a) : fabs(a - b) <= tol);
    if (check_failed(right, file, line)) {
        printf("%s is %.17g, expected %.17g, off by %.3g, allowed %.3g\n", text, a, b, fabs(a - b), tol);
    }
    return right;
}
OPD_UNUSED static bool check_ok(const char *file, int line) {
    bool right = opd_ok();
    if (check_failed(right, file, line)) { printf("error %d: %s\n", (int)opd_error_code(), opd_error_message()); }
    return right;
}
/* Checks that an error with this code and text is pending, and clears the error. */
OPD_UNUSED static bool check_error(opd_code code, const char *part, const char *file, int line) {
    const char *message = opd_error_message();
    bool right = !opd_ok() && opd_error_code() == code && strstr(message, part) != NULL;
    if (check_failed(right, file, line)) {
        printf("error is %d \"%s\", expected %d with \"%s\"\n", (int)opd_error_code(), message, (int)code, part);
    }
    opd_error_clear();
    return right;
}
OPD_UNUSED static void check_skip(const char *why) {
    check_skipped = 1;
    printf("skipped %s: %s\n", check_current, why);
}
/* Returns the path of a file in tests/.  The test may run in any folder. */
OPD_UNUSED static const char *check_path(const char *name) {
    static char path[1024];
    const char *const here = __FILE__, *const slash = strrchr(here, '/');
    (void)snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - here + 1) : 0, here, name);
    return path;
}
/* Opens golden/<name> for reading.  Returns NULL, and fails a check, if it does not exist. */
OPD_UNUSED static FILE *check_golden(const char *name) {
    char path[600];
    (void)snprintf(path, sizeof path, "golden/%s", name);
    FILE *file = fopen(check_path(path), "rb");
    if (check_failed(file != NULL, __FILE__, 0)) { printf("no file %s\n", check_path(path)); }
    return file;
}

/* Runs attempt once, because some memory grows only once.  Then runs it with each allocation failing in turn, every
   second time also with all later allocations failing.  Each run has its own scope.  It must succeed (return 0 or
   more) or fail with OPD_ERROR_MEMORY, and must not lose memory.  needed: every failing allocation must make it
   fail.  Tests each of the first `dense` allocations, then every seventh up to ten times as many.  Returns the
   number of the first allocation that was not made.  `what` is printed for a failure. */
OPD_UNUSED static int64_t check_allocations_at(int (*attempt)(void *arg), void *arg, const char *what, int64_t dense,
                                               bool needed, const char *file, int line) {
    int64_t n, live;
    int rc = 0, wrong = 0;
    bool last = false;
    OPD_SCOPE { (void)attempt(arg); }
    opd_error_clear();
    for (n = 1; n < 10 * dense && wrong < 3; n += n < dense ? 1 : 7) {
        live = opd_memory_stats().live;
        (void)opd_memory_fail_at(n, (n & 1) != 0);
        OPD_SCOPE { rc = attempt(arg); }
        last = opd_memory_fail_at(0, false) < n;
        if (!last && (opd_ok() ? rc < 0 || needed : opd_error_code() != OPD_ERROR_MEMORY)) {
            printf("%s: allocation %d: %d %s\n", what, (int)n, rc, opd_error_message());
            wrong++;
        }
        opd_error_clear();
        if (opd_memory_stats().live > live) {
            printf("%s: allocation %d: loses %d bytes\n", what, (int)n, (int)(opd_memory_stats().live - live));
            wrong++;
        }
        if (last) { break; }
    }
    if (check_failed(!wrong, file, line)) { printf("%s: an allocation that failed did harm\n", what); }
    return n;
}

//-- macros for tests --------------------------------------------------------------------------------------------------

#define CHECK(cond) ((void)check_true(!!(cond), #cond, __FILE__, __LINE__))
#define CHECK_STR(a, b) ((void)check_str(a, b, #a, __FILE__, __LINE__))
#define CHECK_INT(a, b) ((void)check_int((long long)(a), (long long)(b), #a, __FILE__, __LINE__))
#define CHECK_NEAR(a, b, tol) ((void)check_near((double)(a), (double)(b), (double)(tol), #a, __FILE__, __LINE__))
#define CHECK_OK() ((void)check_ok(__FILE__, __LINE__))
#define CHECK_ERROR(code, part) ((void)check_error(code, part, __FILE__, __LINE__))
/* Checks a condition, and leaves the case if it is false. */
#define CHECK_OR_RETURN(cond) do { if (!check_true(!!(cond), #cond, __FILE__, __LINE__)) { return; } } while (0)
/* Leaves the case, which counts as skipped. */
#define SKIP(why) do { check_skip(why); return; } while (0)
#define check_allocations(attempt, arg, what, dense, needed) \
    check_allocations_at(attempt, arg, what, dense, needed, __FILE__, __LINE__)

#define TEST(name) CHECK_CASE(name, 0)
#define TEST_KEEPS(name) CHECK_CASE(name, 1)
#if defined(OPDISPATCH_IMPLEMENTATION)
#define CHECK_WEAK __attribute__((weak))          /* if linked with another test file, that file's main is used */
#else
#define CHECK_WEAK
#endif
#define CHECK_MAIN() CHECK_WEAK int main(int argc, char **argv) { return check_main(argc, argv, __FILE__); }
/* The same as CHECK_MAIN, for a file whose cases walk over many operators. */
#define CHECK_MAIN_WALKS() int main(int argc, char **argv) { check_walking = true; return check_main(argc, argv, __FILE__); }
/* The same as CHECK_MAIN_WALKS, for a file whose function add() adds more cases with check_add_with. */
#define CHECK_MAIN_ADD(add) \
    int main(int argc, char **argv) { check_source = __FILE__; check_walking = true; add(); return check_main(argc, argv, __FILE__); }

/* Returns which of `parts` shares this run visits.  CHECK_TURN in the environment selects it: every twelfth commit has
   the next share, because some checks run for every second, third or fourth commit only, and must meet all shares. */
OPD_UNUSED static size_t check_share(size_t parts) {
    const char *const turn = getenv("CHECK_TURN");
    return (turn ? (size_t)atoi(turn) : 0) / 12 % parts;
}
/* Divides the names that a test file walks over into `parts` shares, in a different way for each file.  Returns whether
   this run visits the share of `name`. */
static const char *check_source = "";
OPD_UNUSED static bool check_shares(const char *name, unsigned parts) {
    const char *const slash = strrchr(check_source, '/'), *at;
    unsigned hash = 5381;
    for (at = slash ? slash : check_source; *at; at++) { hash = hash * 33 ^ (unsigned char)*at; }
    for (at = name; *at; at++) { hash = hash * 33 ^ (unsigned char)*at; }
    return parts < 2 || (hash >> 4) % parts == check_share(parts);
}
/* Returns whether a walk visits `name`.  With CHECK_PART=4 in the environment, the walk visits one of four shares.
   This is for builds that repeat a walk that another build does completely. */
OPD_UNUSED static bool check_walks(const char *name) {
    const char *const said = getenv("CHECK_PART");
    return check_shares(name, said ? (unsigned)atoi(said) : 1);
}
/* Returns whether a loop over the numbers from 0 to count - 1 visits number `at`: all of them, or with CHECK_PART=4 every
   fourth, but at least one. */
OPD_UNUSED static bool check_visits(size_t at, size_t count) {
    const char *const said = getenv("CHECK_PART");
    size_t parts = said ? (size_t)atoi(said) : 1;
    if (parts > count) { parts = count; }
    return parts < 2 || at % parts == check_share(parts);
}
/* The same for walks that call a compiler for each name.  With CHECK_COMPILED_PART=8, which tests/run.sh sets if it runs
   without --whole and without a name, these walks visit one of eight shares, too. */
OPD_UNUSED static bool check_compiles(const char *name) {
    const char *const said = getenv("CHECK_COMPILED_PART");
    return check_walks(name) && check_shares(name, said ? (unsigned)atoi(said) : 1);
}
/* Returns whether walks that call a compiler for each name visit only a share of the names. */
OPD_UNUSED static bool check_compiles_a_share(void) {
    return getenv("CHECK_PART") || getenv("CHECK_COMPILED_PART");
}
/* Returns the folder of opdispatch.h, for compilers that a test starts: the parent of this file's folder. */
OPD_UNUSED static const char *check_include(void) {
    static char folder[600];
    const char *const here = __FILE__, *const slash = strrchr(here, '/');
    snprintf(folder, sizeof folder, "%.*s/..", slash ? (int)(slash - here) : 1, slash ? here : ".");
    return folder;
}
/* In builds with CHECK_PART, tcc (if it is installed) compiles C that is written at run time, because it is faster.
   CC=false in the environment says that nothing can be compiled. */
OPD_UNUSED static void check_quick_compiler(void) {
    const char *const cc = getenv("CC");
    if (!getenv("CHECK_PART") || (cc && strcmp(cc, "false") == 0)) { return; }
    if (system("tcc -v >/dev/null 2>&1") == 0) { (void)setenv("CC", "tcc", 1); }
}

#if defined(_WIN32)
static char check_cache[200];
/* windows.sh sets the folder and the compiler, and removes the folder. */
OPD_UNUSED static bool check_cache_begin(void) {
    if (!getenv("OPD_REQUESTS")) { return false; }
    (void)snprintf(check_cache, sizeof check_cache, "%s", getenv("XDG_CACHE_HOME"));
    return true;
}
OPD_UNUSED static bool check_cache_end(void) { return false; }
#else
static char check_cache[64];
/* Uses a new folder as the cache of code that is compiled while the program runs.  Returns false if there is no
   compiler. */
OPD_UNUSED static bool check_cache_begin(void) {
    check_quick_compiler();
    if (system("${CC:-cc} -v >/dev/null 2>&1") != 0) { return false; }
    if (!*check_cache) {
        (void)snprintf(check_cache, sizeof check_cache, "/tmp/opd_check.XXXXXX");
        CHECK(mkdtemp(check_cache) != NULL);
        (void)setenv("XDG_CACHE_HOME", check_cache, 1);
    }
    return true;
}
/* Removes the folder.  Returns false if there is none. */
OPD_UNUSED static bool check_cache_end(void) {
    char command[100];
    if (!*check_cache) { return false; }
    (void)snprintf(command, sizeof command, "rm -rf '%s'", check_cache);
    CHECK_INT(system(command), 0);
    return true;
}
#endif

OPD_UNUSED static void check_add(check_case *c, const char *name, void (*run)(void), int keeps) {
    c->name = name;
    c->run = run;
    c->run_with = NULL;
    c->arg = NULL;
    c->keeps = keeps;
    c->next = NULL;
    *check_last = c;
    check_last = &c->next;
}
#if defined(_WIN32)
/* mingw-w64 runs the constructors of a C file in reverse order, so each case is put before the earlier ones. */
OPD_UNUSED static void check_add_first(check_case *c, const char *name, void (*run)(void), int keeps) {
    check_case *const others = check_first;
    check_first = NULL;
    check_last = &check_first;
    check_add(c, name, run, keeps);
    c->next = others;
    while (*check_last) { check_last = &(*check_last)->next; }
}
#define CHECK_ADD check_add_first
#else
#define CHECK_ADD check_add
#endif
/* Adds a case at run time, before check_main, if CHECK_PART includes it.  The name must remain valid. */
OPD_UNUSED static void check_add_with(const char *name, void (*run)(void *arg), void *arg) {
    check_case *c = check_walks(name) ? (check_case *)calloc(1, sizeof *c) : NULL;
    if (!c) { return; }
    check_add(c, name, NULL, 0);
    c->run_with = run;
    c->arg = arg;
}
#if defined(__cplusplus)
namespace {                                       /* private to this file, if several files are linked */
struct check_entry {
    check_case c;
    check_entry(const char *name, void (*run)(void), int keeps) { check_add(&c, name, run, keeps); }
};
}
#define CHECK_CASE(id, keeps) \
    static void check_run_##id(void); \
    static check_entry check_entry_##id(#id, check_run_##id, keeps); \
    static void check_run_##id(void)
#else                                             /* glibc's headers take the word __attribute__ away from tcc */
#define CHECK_CASE(id, keeps) \
    static void check_run_##id(void); \
    __attribute((constructor)) static void check_add_##id(void) { \
        static check_case c; \
        CHECK_ADD(&c, #id, check_run_##id, keeps); \
    } \
    static void check_run_##id(void)
#endif

//-- the runner --------------------------------------------------------------------------------------------------------

static void check_complain(const char *what) {
    (void)CHECK_COUNT(check_failures);
    printf("%s: %s\n", check_current, what);
}

/* Runs a case in its own scope.  Returns the growth of live memory in bytes. */
static long long check_once(const check_case *c) {
    int64_t live = opd_memory_stats().live;
    int depth = opd_scope_stats().depth, inside;
    opd_scope scope = opd_scope_open();
    inside = opd_scope_stats().depth;
    check_times++;
    if (c->run_with) { c->run_with(c->arg); } else { c->run(); }
    if (!opd_ok()) {
        (void)CHECK_COUNT(check_failures);
        printf("%s: left an error pending: %s\n", check_current, opd_error_message());
        opd_error_clear();
    }
#if !defined(__TINYC__)                           /* in a program of tcc, a return does not close the scopes that it leaves */
    if (opd_scope_stats().depth != inside) { check_complain("left a scope open, or closed one too many"); }
#endif
    opd_scope_close(&scope);
    if (opd_scope_stats().depth != depth) { check_complain("the scopes do not balance"); }
    return (long long)(opd_memory_stats().live - live);
}

/* Makes the tables of all operators, and the sets of overloads that errors name.  The first call of an operator makes
   them, so memory grows only once, but each case that calls an operator first would run again. */
static void check_make_tables(void) {
#if !defined(OPD_LEAN)
    static opd_value args[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    static bool made;
    opd_op *op;
    for (op = made ? NULL : opd_op_next(NULL); op; op = opd_op_next(op)) {
        char name[300];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(opd_op_name(op), "."), opd_op_name(op));
        (void)opd_overloads_find(name);
        (void)opd_call_all(op, rets, args, OPD_MAX_ARGS);         /* an error: these are too many arguments */
        opd_error_clear();
    }
    made = true;
#endif
}

static void check_case_run(const check_case *c) {
    long long grown;
    check_current = c->name;
    check_failures = check_made = check_skipped = check_times = 0;
    grown = check_once(c);
    if (!c->keeps && grown > 0 && !check_failures) { grown = check_once(c); }
    if (!c->keeps && grown > 0 && !check_failures) { grown = check_once(c); }
    if (!c->keeps && grown > 0 && !check_failures) {
        (void)CHECK_COUNT(check_failures);
        printf("%s: loses %lld bytes each time\n", check_current, grown);
    }
    if (!check_made && !check_skipped && !check_failures) { check_complain("checks nothing"); }
    if (check_failures > CHECK_FAILURES_SHOWN) { printf("%s: %d failures in all\n", check_current, check_failures); }
}

/* Returns whether a case is for this operator: "aten::add_.Tensor" is for "add", "add_.Tensor" and "aten::add".  A case
   whose name has no namespace is for no single operator, and counts as one for each. */
static bool check_is_for(const char *name, const char *op) {
    const char *const colons = strstr(name, "::");
    size_t n = strlen(op);
    if (!colons) { return true; }
    if (!strstr(op, "::")) { name = colons + 2; }
    if (strncmp(name, op, n) != 0) { return false; }
    if (name[n] == '_' && (n == 0 || op[n - 1] != '_')) { n++; }
    return !name[n] || name[n] == '.' || name[n] == ' ';
}
static bool check_wanted(const check_case *c, int argc, char **argv) {
    bool any = false;
    int i;
    for (i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--without=", 10) == 0 && strcmp(c->name, argv[i] + 10) == 0) { return false; }
        if (strncmp(argv[i], "--operator=", 11) == 0 && !check_is_for(c->name, argv[i] + 11)) { return false; }
    }
    for (i = 1; i < argc; i++) {
        if (argv[i][0] == '-') { continue; }
        if (strstr(c->name, argv[i])) { return true; }
        any = true;
    }
    return !any;
}

static int check_main(int argc, char **argv, const char *source) {
    int passed = 0, failed = 0, skipped = 0, verbose = 0, list = 0, i;
    const char *slash = strrchr(source, '/');
    const check_case *c;
    for (i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v")) { verbose = 1; }
        if (!strcmp(argv[i], "--list")) { list = 1; }
    }
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);                  /* so that output before a crash is not lost */
#if !defined(_WIN32)
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 0);  /* whether a test runs compiled code must not depend on times */
#endif
    if (!check_first) {
        printf("%s: no cases: this compiler does not run constructors\n", source);
        return 1;
    }
    /* memory of the first use of the library is not a leak */
    if (!list) { (void)opd_find_quiet("aten::add.Tensor"); }
    if (!opd_ok()) {
        printf("%s: the first use fails: %s\n", source, opd_error_message());
        return 1;
    }
    if (!list && check_walking) { check_make_tables(); }
    for (c = check_first; c; c = c->next) {
        if (!check_wanted(c, argc, argv)) { continue; }
        if (verbose || list) { printf("case %s\n", c->name); }
        (void)fflush(stdout);
        if (list) { continue; }
        check_case_run(c);
        if (check_failures) { failed++; }
        else if (check_skipped) { skipped++; }
        else { passed++; }
    }
    if (list) { return 0; }
    printf("%s: %d passed, %d failed", slash ? slash + 1 : source, passed, failed);
    if (skipped) { printf(", %d skipped", skipped); }
    printf("\n");
    (void)fflush(stdout);                                         /* before the leak sanitizer may end the process */
    return failed ? 1 : 0;
}

#endif /* OPD_TESTS_CHECK_H */
