/* Ownership and errors: scopes, opd_keep, sticky errors, the log, threads that end.  THREADED */
#include "../../opdispatch.h"
#include "../check.h"
#include <setjmp.h>

#include <pthread.h>

static opd_tensor *one(void) {
    static const float v[] = {1};
    return opd_tensor_from(v, opd_ints_of(NULL, 0), OPD_FLOAT32);
}
static int64_t handles(void) { return opd_scope_stats().handles; }

//-- scopes ------------------------------------------------------------------------------------------------------------

TEST(scope_releases_what_was_made) {
    int64_t before, live = (opd_exp(one()), opd_memory_stats().live);
    before = handles();
    OPD_SCOPE {
        opd_tensor *t = one();
        CHECK(opd_exp(t) != NULL);
        CHECK(handles() > before);
    }
    CHECK_INT(handles(), before);
    CHECK_INT(opd_memory_stats().live, live);
}

static int leave(int how) {
    int i;
    for (i = 0; i < 3; i++) {
        OPD_SCOPED;
        (void)one();
        if (how == 0 && i == 1) { break; }
        if (how == 1) { continue; }
        if (how == 2) { return i; }
        (void)one();
    }
    return -1;
}
static int leave_block(void) {
    OPD_SCOPE {
        (void)one();
        OPD_SCOPE {
            (void)one();
            return 7;
        }
    }
    return 0;
}
TEST(scopes_and_jumps) {
    int64_t before = handles(), live = opd_memory_stats().live;
    int depth = opd_scope_stats().depth, how;
    for (how = 0; how < 4; how++) {
        CHECK_INT(leave(how), how == 2 ? 0 : -1);
        CHECK_INT(handles(), before);
        CHECK_INT(opd_scope_stats().depth, depth);
    }
    CHECK_INT(leave_block(), 7);
    CHECK_INT(handles(), before);
    CHECK_INT(opd_scope_stats().depth, depth);
    CHECK_INT(opd_memory_stats().live, live);
}

/* break and continue in a block with an end: in C++ they are the loop's round it; in C the block takes them, and a break
   says so. */
#if defined(__cplusplus)
enum { IN_CXX = 1 };
#else
enum { IN_CXX = 0 };
#endif
#define LEAVE(name, block) \
    static int name(int how) { \
        int i, behind = 0; \
        for (i = 0; i < 10; i++) { \
            block { \
                if (i == 3 && how == 0) { break; } \
                if (i == 3 && how == 1) { continue; } \
                if (i == 3 && how == 2) { return behind; } \
                if (i == 3 && how == 3) { goto out; } \
            } \
            if (!opd_ok()) { return -1; } \
            behind++; \
        } \
    out: \
        return behind; \
    }
LEAVE(leave_scope, OPD_SCOPE)
LEAVE(leave_no_grad, OPD_NO_GRAD)
LEAVE(leave_inference, OPD_INFERENCE_MODE(true))
LEAVE(leave_autocast, OPD_AUTOCAST(OPD_CPU))
LEAVE(leave_dual, OPD_DUAL_LEVEL)
LEAVE(leave_mutation, OPD_ALLOW_MUTATION)
LEAVE(leave_fake, OPD_FAKE_MODE)
static bool nothing_open(void) {
    if (opd_dual_level_begin() != 0 || opd_dual_level_end(0) || opd_allow_mutation_begin()) { return false; }
    opd_allow_mutation_end();
    return opd_grad_mode_enabled() && !opd_inference_mode_enabled() && !opd_autocast_enabled(OPD_CPU) && !opd_fake_enabled();
}
TEST(blocks_and_jumps) {
    static int (*const blocks[])(int) = {leave_scope, leave_no_grad, leave_inference, leave_autocast, leave_dual, leave_mutation,
                                         leave_fake};
    const int depth = opd_scope_stats().depth;
    size_t b;
    for (b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        CHECK_INT(blocks[b](-1), 10);
        CHECK_INT(blocks[b](0), IN_CXX ? 3 : -1);
        if (IN_CXX) { CHECK_OK(); } else { CHECK_ERROR(OPD_ERROR_USER, "a break left this block"); }
        CHECK_INT(blocks[b](1), IN_CXX ? 9 : 10);
#if defined(__GNUC__) && !defined(__TINYC__)
        CHECK_INT(blocks[b](2), 3);
        CHECK_INT(blocks[b](3), 3);
#endif
        CHECK_INT(opd_scope_stats().depth, depth);
        CHECK(nothing_open());
        CHECK_OK();
    }
}
TEST(a_block_that_cannot_be_entered_is_left_out) {
    int rounds = 0;
    OPD_DUAL_LEVEL {
        OPD_DUAL_LEVEL { rounds++; }
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Nested forward mode AD");
        if (rounds) { rounds++; } else OPD_NO_GRAD { rounds += 10; }
    }
    CHECK_INT(rounds, 10);
    CHECK(nothing_open());
}

#if !defined(CHECK_SANITIZED) && defined(__GNUC__) && !defined(__TINYC__)
/* A kernel that a longjmp leaves, as libraries that report errors so make one do. */
static jmp_buf way_out;
static int k_jumps(opd_call *call) {
    (void)opd_exp(opd_arg_tensor(call, 0));
    longjmp(way_out, 1);
    return 0;
}
static int k_autograd_jumps(opd_call *call) {     /* with everything below excluded */
    (void)opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("AutogradCPU")));
    return opd_redispatch(call, opd_keyset_remove(opd_call_keys(call), opd_key_parse("AutogradCPU")));
}
static void jump_out(opd_op *op, int deeper) {
    volatile char room[3000];
    room[deeper] = 1;
    if (deeper > 0) { jump_out(op, deeper - 1); return; }
    if (setjmp(way_out) == 0) { CHECK(OPD_CALL(op, one()) == NULL); CHECK(!"not left"); }
    CHECK(room[0] || true);
}
static void work_on(int deeper) {                 /* somewhere else on the stack */
    volatile char room[2000];
    room[deeper] = 1;
    if (deeper > 0) { work_on(deeper - 1); } else { (void)opd_exp(one()); }
    CHECK(room[0] || true);
}
TEST(a_longjmp_out_of_a_kernel_is_an_error) {
    opd_library *lib = opd_library_open(OPD_DEF, "jumps", NULL, __FILE__, __LINE__);
    const int depth = opd_scope_stats().depth;
    opd_op *op;
    int there, after;
    CHECK_INT(opd_def(lib, "out(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "out", "CPU", k_jumps, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "out", "AutogradCPU", k_autograd_jumps, NULL, NULL), 0);
    op = opd_find("jumps::out");
    for (there = 0; there < 8; there++) {
        for (after = 0; after < 8; after++) {
            const opd_scope_info before = opd_scope_stats();
            OPD_SCOPE { jump_out(op, there); work_on(after); }
            CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel");
            CHECK(opd_scope_stats().depth == before.depth && opd_scope_stats().handles == before.handles);
            OPD_SCOPE {                           /* and the tape records */
                opd_tensor *x = opd_tensor_set_requires_grad(one(), true);
                CHECK_INT(opd_backward(opd_sum(opd_mul(x, x))), 0);
                CHECK_NEAR(opd_item_f64(opd_tensor_grad(x)), 2 * opd_item_f64(opd_detach(x)), 0);
            }
        }
    }
    OPD_SCOPE { jump_out(op, 0); }                /* and where nothing but the end of the scope comes behind it */
    CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel");
    OPD_SCOPE { jump_out(op, 0); (void)opd_fail(OPD_ERROR_USER, "the program's own"); }
    CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel");
    CHECK_INT(opd_scope_stats().depth, depth);
    opd_library_close(lib);
}
#endif

#if defined(__GLIBC__) && !defined(CHECK_SANITIZED) && !defined(__TINYC__) && !defined(__SHSTK__)
#include <ucontext.h>
/* A kernel that runs its work in a coroutine, on a stack below or above the thread's own or that of another coroutine. */
enum { STACK = 65536 };
static ucontext_t way_home, coroutine, outer_home, outer_coroutine;
static opd_tensor *work;
static char *work_stack, stacks_of_both[2 * STACK];
static void works(void) {
    work = opd_exp(opd_mul(work, work));
    OPD_SCOPE { CHECK(opd_add(work, work) != NULL); }
    CHECK(!opd_add(work, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "coroutines::f: aten::add");
}
static int k_runs_a_coroutine(opd_call *call) {
    work = opd_arg_tensor(call, 0);
    (void)getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = work_stack;
    coroutine.uc_stack.ss_size = STACK;
    coroutine.uc_link = &way_home;
    makecontext(&coroutine, works, 0);
    (void)swapcontext(&way_home, &coroutine);
    return opd_return_tensor(call, work);
}
static void calls_it(void) {
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
        opd_tensor *y = OPD_CALL(opd_find("coroutines::f"), x);
        CHECK_INT(opd_backward(y), 0);
        CHECK_NEAR(opd_item_f64(opd_tensor_grad(x)), 2 * exp(1), 1e-5);
    }
}
static void calls_it_on(char *stack) {            /* itself in a coroutine */
    (void)getcontext(&outer_coroutine);
    outer_coroutine.uc_stack.ss_sp = stack;
    outer_coroutine.uc_stack.ss_size = STACK;
    outer_coroutine.uc_link = &outer_home;
    makecontext(&outer_coroutine, calls_it, 0);
    (void)swapcontext(&outer_home, &outer_coroutine);
}
TEST(kernels_may_run_coroutines) {
    opd_library *lib = opd_library_open(OPD_DEF, "coroutines", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(lib, "f(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "f", "CompositeImplicitAutograd", k_runs_a_coroutine, NULL, NULL), 0);
    work_stack = stacks_of_both;
    calls_it();
    calls_it_on(stacks_of_both + STACK);
    work_stack = stacks_of_both + STACK;
    calls_it_on(stacks_of_both);
    CHECK_OK();
    opd_library_close(lib);
}
#endif

#if !defined(CHECK_SANITIZED)                     /* which find it by themselves */
static opd_tensor *gone(int64_t n) {
    opd_tensor *t = NULL;
    OPD_SCOPE { t = opd_full(OPD_INTS(n), OPD_V(2), OPD_FLOAT32); }
    return t;
}
#define IS_GONE(what) CHECK_ERROR(OPD_ERROR_ARGUMENT, what)
TEST(tensors_that_are_gone) {
    static const int64_t sizes[] = {1, 3, 8, 60};
    static opd_op *add;
    size_t s;
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        opd_tensor *x = gone(sizes[s]), *y = opd_ones(OPD_INTS(sizes[s]), OPD_FLOAT32), *z = NULL, *list[2], *leaf;
        char text[100];
        CHECK(x != y);                            /* not given out again at once */
        CHECK(!opd_add(x, y)); IS_GONE("aten::add.Tensor: argument 'self' has been freed: the scope");
        CHECK(!opd_mul(y, x)); IS_GONE("argument 'other' has been freed");
        CHECK(!opd_exp(x)); IS_GONE("has been freed");
        CHECK(!OPD_CALL(OPD_OP(&add, "aten::add.Tensor"), y, x)); IS_GONE("has been freed");
        list[0] = y; list[1] = x;
        CHECK(!opd_cat(opd_tensors_of(list, 2), 0)); IS_GONE("argument 'tensors'[1] has been freed");
        CHECK(!opd_zero_(x)); IS_GONE("has been freed");
        CHECK(!opd_reshape(x, OPD_INTS(-1))); IS_GONE("has been freed");
        CHECK(opd_tensor_print(x, text, sizeof text) == strlen("a freed tensor")); IS_GONE("has been freed");
        CHECK(!opd_data(x)); IS_GONE("reading the data: the tensor has been freed");
        CHECK(!opd_data_f32(x)); IS_GONE("has been freed");
        CHECK(opd_item_f64(x) <= 0); IS_GONE("reading the value: the tensor has been freed");
        CHECK(!opd_keep(x)); IS_GONE("opd_keep: the tensor has been freed");
        opd_release(x); IS_GONE("released more often than it was kept");
        z = x;
        CHECK(opd_assign(&z, y) == y); IS_GONE("released more often"); CHECK(z == y);
        opd_release(z);
        CHECK(!opd_tensor_set_requires_grad(x, true)); IS_GONE("has been freed");
        CHECK(opd_backward(x) != 0); CHECK(!opd_ok()); opd_error_clear();
        leaf = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
        CHECK(opd_autograd_grad(&leaf, 1, &x, 1, NULL, &z) != 0); CHECK(!opd_ok()); opd_error_clear();
        CHECK(!opd_tensor_grad(x) && opd_tensor_is_leaf(x) && !opd_tensor_requires_grad(x) && !opd_tensor_grad_fn(x));
        CHECK(opd_ndim(x) == 0 && opd_numel(x) == 0 && opd_dtype(x) == OPD_DTYPE_NONE && opd_tensor_offset(x) == 0);
        opd_error_clear();
        CHECK(opd_add(y, y) != NULL);
    }
}
TEST(a_value_carried_through_a_loop_without_hold) {
    opd_tensor *w = NULL;
    int i;
    for (i = 0; i < 3 && opd_ok(); i++) {
        OPD_SCOPED;
        w = w ? opd_add(w, one()) : one();
    }
    CHECK_INT(i, 2);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_assign");
}
TEST(released_twice) {
    opd_tensor *t;
    OPD_SCOPE { t = opd_keep(opd_ones(OPD_INTS(2), OPD_FLOAT32)); }
    opd_release(t);
    CHECK_OK();
    opd_release(t);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more often than it was kept");
    opd_release(t);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more often than it was kept");
    OPD_SCOPE { opd_release(opd_ones(OPD_INTS(2), OPD_FLOAT32)); }
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more often than it was kept");
}
#endif

TEST(a_schema_freed_twice) {
    opd_schema *schema = opd_schema_parse("f(Tensor x) -> Tensor");
    opd_schema_free(schema);
    opd_schema_free(schema);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "freed already");
    for (int i = 0; i < 20; i++) {
        opd_schema *again = opd_schema_parse("f(Tensor x) -> Tensor");
        CHECK(again != NULL);
        opd_schema_free(again);
        CHECK_OK();
    }
}

TEST(closing_closes_what_was_opened_after) {
    int depth = opd_scope_stats().depth;
    int64_t before = handles();
    opd_scope a = opd_scope_open(), b, c;
    (void)one();
    b = opd_scope_open();
    (void)one();
    c = opd_scope_open();
    (void)one();
    opd_scope_close(&a);
    CHECK_INT(opd_scope_stats().depth, depth);
    CHECK_INT(handles(), before);
    opd_scope_close(&c);
    opd_scope_close(&b);
    opd_scope_close(&a);
    CHECK_INT(opd_scope_stats().depth, depth);
    CHECK_OK();
}

static opd_tensor *inner_result(void) {
    opd_tensor *t;
    OPD_SCOPED;
    t = opd_exp(one());
    return opd_scope_return(t);
}
TEST(scope_return) {
    int64_t before;
    opd_tensor *t, *u;
    opd_scope a, b;
    before = handles();
    t = inner_result();
    CHECK_INT(handles(), before + 1);
    CHECK_NEAR(opd_item_f64(t), exp(1), 1e-6);
    a = opd_scope_open();
    b = opd_scope_open();
    u = opd_scope_return(one());
    opd_scope_close(&b);
    CHECK_NEAR(opd_item_f64(u), 1, 0);
    u = opd_scope_return(u);                      /* one scope at a time */
    opd_scope_close(&a);
    CHECK_NEAR(opd_item_f64(u), 1, 0);
    a = opd_scope_open();
    CHECK(opd_scope_return(t) == t);              /* of an outer scope already: held twice */
    opd_scope_close(&a);
    CHECK_NEAR(opd_item_f64(t), exp(1), 1e-6);
    CHECK(opd_scope_return(NULL) == NULL);
    CHECK_OK();
}

TEST(keep_and_release) {
    int64_t live;
    opd_tensor *kept = NULL, *hold;
    OPD_SCOPE { (void)opd_add(one(), one()); }
    live = opd_memory_stats().live;
    OPD_SCOPE { kept = opd_keep(one()); }
    CHECK_NEAR(opd_item_f64(kept), 1, 0);
    CHECK(opd_memory_stats().live > live);
    opd_release(kept);
    CHECK_INT(opd_memory_stats().live, live);
    CHECK(opd_keep(NULL) == NULL);
    opd_release(NULL);
    hold = NULL;
    {
        int i;
        for (i = 0; i < 5; i++) {
            OPD_SCOPED;
            (void)opd_assign(&hold, hold ? opd_add(hold, hold) : one());
        }
    }
    CHECK_NEAR(opd_item_f64(hold), 16, 0);
    (void)opd_assign(&hold, hold);
    CHECK_NEAR(opd_item_f64(hold), 16, 0);
    (void)opd_assign(&hold, NULL);
    CHECK(hold == NULL);
    CHECK_INT(opd_memory_stats().live, live);
}

TEST(many_handles) {
    int64_t before = handles(), live;
    int i;
    (void)one();
    live = opd_memory_stats().live;
    (void)live;
    OPD_SCOPE {
        for (i = 0; i < 100000; i++) { (void)one(); }
        CHECK_INT(handles(), before + 100001);
    }
    CHECK_INT(handles(), before + 1);
}

//-- kernels -----------------------------------------------------------------------------------------------------------

static opd_scope *outer_scope;
static int k_temporaries(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    int i;
    for (i = 0; i < 10; i++) { t = opd_add(t, t); }
    OPD_SCOPE { return opd_return_tensor(call, opd_add(t, t)); }
    return 0;
}
static int k_closes(opd_call *call) {
    opd_scope_close(outer_scope);
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
static opd_op *define(opd_library **lib, opd_kernel fn) {
    *lib = opd_library_open(OPD_DEF, "scopes", NULL, "t", 1);
    CHECK_INT(opd_def(*lib, "op(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(*lib, "op", "CompositeImplicitAutograd", fn, NULL, NULL), 0);
    return opd_find("scopes::op");
}
TEST(temporaries_of_a_kernel_die_with_it) {
    opd_library *lib;
    opd_op *op = define(&lib, k_temporaries);
    opd_tensor *t = one(), *r;
    int64_t before = handles();
    r = OPD_CALL(op, t);
    CHECK_NEAR(opd_item_f64(r), 2048, 0);
    CHECK_INT(handles(), before + 1);
    opd_library_close(lib);
}
TEST(kernel_may_not_close_outer_scopes) {
    opd_library *lib;
    opd_op *op = define(&lib, k_closes);
    opd_scope scope = opd_scope_open();
    opd_tensor *t = one();
    int depth = opd_scope_stats().depth;
    outer_scope = &scope;
    CHECK(OPD_CALL(op, t) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "scopes::op: a kernel closed a scope that was opened outside of the kernel");
    CHECK_INT(opd_scope_stats().depth, depth);
    CHECK_NEAR(opd_item_f64(t), 1, 0);
    opd_scope_close(&scope);
    CHECK_INT(opd_scope_stats().depth, depth - 1);
    opd_library_close(lib);
}

//-- errors ------------------------------------------------------------------------------------------------------------

TEST(the_first_error_sticks_and_stops) {
    opd_tensor *t = one(), *x = one(), *y;
    opd_value v, r[1];
    int64_t made;
    (void)opd_tensor_set_requires_grad(x, true);
    y = opd_mul(x, x);
    CHECK_OK();
    CHECK_INT(opd_fail(OPD_ERROR_USER, "number %d", 1), -1);
    CHECK_INT(opd_fail(OPD_ERROR_SHAPE, "number %d", 2), -1);
    CHECK(!opd_ok() && opd_error_code() == OPD_ERROR_USER);
    CHECK_STR(opd_error_message(), "number 1");
    made = opd_memory_stats().allocations;
    CHECK(opd_exp(t) == NULL);
    CHECK(opd_add(t, t) == NULL);
    CHECK_INT(opd_backward(y), -1);
    CHECK(opd_tensor_grad(x) == NULL);
    v = opd_value_tensor(t);
    CHECK_INT(opd_call_all(opd_find_quiet("aten::exp"), r, &v, 1), -1);
    CHECK(opd_find("aten::exp") == NULL);
    CHECK(opd_library_open(OPD_DEF, "stopped", NULL, "t", 1) == NULL);
    CHECK(opd_tensor_set_requires_grad(t, true) == NULL);
    CHECK_INT(opd_memory_stats().allocations, made);
    CHECK_INT(opd_numel(t), 1);                   /* queries, scopes and releases work */
    CHECK_NEAR(opd_data_f32(t)[0], 1, 0);
    OPD_SCOPE { CHECK(opd_keep(t) == t); }
    opd_release(t);
    CHECK_STR(opd_error_message(), "number 1");
    opd_error_clear();
    CHECK(opd_ok());
    CHECK_STR(opd_error_message(), "");
    CHECK(opd_exp(t) != NULL);
    CHECK_INT(opd_backward(y), 0);
}

TEST(a_failed_value_goes_no_further) {
    opd_tensor *t = one(), *r;
    r = opd_clamp_Tensor_full(t, opd_exp(NULL), NULL);       /* the optional argument is the failed one */
    CHECK(r == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::exp");
    r = opd_clamp_Tensor_full(t, NULL, t);
    CHECK(r != NULL);
    CHECK_OK();
}

TEST(mark_and_rewind) {
    int m = opd_error_mark(), inner;
    CHECK_INT(opd_error_rewind(m), OPD_OK);
    m = opd_error_mark();
    (void)opd_exp(NULL);
    CHECK_INT(opd_error_rewind(m), OPD_ERROR_ARGUMENT);
    CHECK(opd_ok());
    (void)opd_fail(OPD_ERROR_USER, "first");
    inner = opd_error_mark();
    (void)opd_fail(OPD_ERROR_SHAPE, "second");
    CHECK_INT(opd_error_rewind(inner), OPD_OK);
    CHECK_ERROR(OPD_ERROR_USER, "first");
    (void)opd_fail(OPD_OK, "no code");
    CHECK_ERROR(OPD_ERROR_USER, "no code");
}

TEST(long_messages_are_cut) {
    char text[20000];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = 0;
    (void)opd_fail(OPD_ERROR_USER, "%s", text);
    CHECK(strlen(opd_error_message()) > 100 && strlen(opd_error_message()) < sizeof text);
    opd_error_clear();
}

//-- the log -----------------------------------------------------------------------------------------------------------

static char logged[4096];
static int logged_errors, logged_warnings;
static void log_here(void *user, int is_error, const char *text) {
    CHECK(user == logged);
    (void)snprintf(logged, sizeof logged, "%s", text);
    if (is_error) { logged_errors++; } else { logged_warnings++; }
}
static void log_begin(void) {
    logged[0] = 0;
    logged_errors = logged_warnings = 0;
    opd_log_set(log_here, logged);
}

TEST(warnings_go_to_the_log) {
    log_begin();
    opd_warn("careful: %d", 3);
    opd_log_set(NULL, NULL);
    CHECK_STR(logged, "careful: 3");
    CHECK_INT(logged_warnings, 1);
    CHECK_INT(logged_errors, 0);
}

#if !defined(OPD_NO_THREADS)
static void *in_thread(void *arg) {
    void (*fn)(void) = *(void (**)(void))arg;
    fn();
    return NULL;
}
static void run_thread(void (*fn)(void)) {
    pthread_t id;
    CHECK_INT(pthread_create(&id, NULL, in_thread, (void *)&fn), 0);
    CHECK_INT(pthread_join(id, NULL), 0);
}

static void finish_twice(void) {
    (void)opd_scope_open();
    (void)one();
    CHECK_INT(opd_finish(), 0);
    CHECK_INT(opd_scope_stats().depth, 0);
    CHECK_INT(opd_scope_stats().handles, 0);
    (void)opd_fail(OPD_ERROR_USER, "nobody looked");
    CHECK_INT(opd_finish(), 1);
    CHECK(opd_ok());
    CHECK_INT(opd_finish(), 0);
}
TEST(finish_reports_once) {
    log_begin();
    run_thread(finish_twice);
    opd_log_set(NULL, NULL);
    CHECK_STR(logged, "nobody looked");
    CHECK_INT(logged_errors, 1);
}

static void ends_with_error(void) {
    int i;
    (void)opd_scope_open();
    for (i = 0; i < 100; i++) { (void)opd_exp(one()); }
    (void)opd_exp(NULL);
    (void)opd_exp(one());
}
TEST(thread_end_reports_and_gives_back) {
    log_begin();
    run_thread(ends_with_error);                  /* what is made once is there */
    int64_t live = opd_memory_stats().live;
    run_thread(ends_with_error);
    opd_log_set(NULL, NULL);
    CHECK_INT(logged_errors, 2);
    CHECK(strstr(logged, "aten::exp() Expected a value of type 'Tensor' for argument 'self'") != NULL);
    CHECK_INT(opd_memory_stats().live, live);
    CHECK(opd_ok());                              /* this thread has no error */
}

static void quiet_end(void) {
    (void)opd_fail(OPD_ERROR_USER, "looked at");
    opd_error_clear();
}
TEST(looked_at_errors_are_not_reported) {
    log_begin();
    run_thread(quiet_end);
    opd_log_set(NULL, NULL);
    CHECK_INT(logged_errors, 0);
}

static opd_tensor *shared;
static void use_shared(void) {
    int i;
    for (i = 0; i < 2000; i++) {
        opd_tensor *t = opd_keep(shared);
        OPD_SCOPE { CHECK(opd_add(t, t) != NULL); }
        opd_release(t);
    }
}
TEST(tensors_are_shared_between_threads) {
    pthread_t id[4];
    void (*fn)(void) = use_shared;
    int i;
    shared = opd_keep(one());
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_create(&id[i], NULL, in_thread, (void *)&fn), 0); }
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_join(id[i], NULL), 0); }
    CHECK_NEAR(opd_item_f64(shared), 1, 0);
    opd_release(shared);
}

static int k_same(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static void warns_once(void) {
    opd_op *op = opd_find("scopes::op");
    opd_tensor *t = one();
    int i;
    for (i = 0; i < 3 << 20; i++) { if (!OPD_CALL(op, t)) { break; } }
    CHECK_INT(logged_warnings, 1);
}
TEST(forgotten_scope_warns_once) {
    opd_library *lib;
    (void)define(&lib, k_same);
    log_begin();
    run_thread(warns_once);
    opd_log_set(NULL, NULL);
    CHECK(strstr(logged, "tensors are in the root scope, which frees them only when the thread ends (the last one was made by scopes::op)") != NULL);
    opd_library_close(lib);
}
#endif

CHECK_MAIN()
