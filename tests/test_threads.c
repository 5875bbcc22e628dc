/* Registering and deregistering while other threads call; the thread's dispatch state carried to another one.
   THREADED.  C ONLY: pthreads with C function types. */
#include "../opdispatch.h"
#include "check.h"

#if defined(OPD_NO_THREADS) || defined(__TINYC__)
TEST(no_threads) { SKIP("built without threads"); }
CHECK_MAIN()
#else
#include <pthread.h>
#include <unistd.h>

#define CALLERS 6
#define ROUNDS 60

static int stop, calls_done;
static int is_stopped(void) { return __atomic_load_n(&stop, __ATOMIC_ACQUIRE); }

/* What a kernel's user pointer shows: freed memory would be seen by the sanitizers, a wrong number by the check. */
typedef struct ticket { int64_t number, twice; } ticket;
static int made, unmade;
static ticket *ticket_new(int64_t number) {
    ticket *t = (ticket *)malloc(sizeof *t);
    if (!t) { abort(); }
    t->number = number;
    t->twice = 2 * number;
    (void)__atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    return t;
}
static void ticket_free(void *user) {
    ((ticket *)user)->twice = -1;
    free(user);
    (void)__atomic_add_fetch(&unmade, 1, __ATOMIC_RELAXED);
}
static int k_ticket(opd_call *call) {
    const ticket *t = (const ticket *)opd_call_user(call);
    const char *name = opd_schema_arg_name(opd_op_schema(opd_find("race::fixed")), 0);
    if (t->twice != 2 * t->number) { return opd_fail(OPD_ERROR_USER, "a kernel runs whose user pointer is gone"); }
    return name && name[0] == 'n' ? opd_return_int(call, t->number) : opd_fail(OPD_ERROR_USER, "no name");
}
static int k_down(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_USER_4)));
}

/* Errors that a call may meet because its operator or kernel is just not there. */
static bool excused(void) {
    const opd_code code = opd_error_code();
    const bool fine = code == OPD_ERROR_NOT_FOUND || code == OPD_ERROR_NO_KERNEL || code == OPD_ERROR_ARGUMENT;
    if (!fine) { printf("%s\n", opd_error_message()); }
    opd_error_clear();
    return fine;
}

static void *caller(void *arg) {
    static opd_op *changing;
    opd_op *fixed = opd_find("race::fixed");
    opd_value v[2], r[1];
    const opd_keyset mode = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_4);
    int64_t n = 0, right = 0;
    (void)arg;
    v[0] = v[1] = opd_value_int(1);
    while (!is_stopped()) {
        OPD_SCOPE {
            const opd_key_guard guard = opd_keys_include(n & 1 ? mode : OPD_KEYS_EMPTY);
            opd_op *op;
            if (opd_call_all(fixed, r, v, 1) == 0) { CHECK(r[0].u.i >= 1000); }
            else { CHECK((n & 1) && excused()); }        /* the mode's fallback is not there */
            opd_keys_restore(guard);
            op = opd_find_quiet("race::changing");
            if (op) { __atomic_store_n(&changing, op, __ATOMIC_RELEASE); }
            op = __atomic_load_n(&changing, __ATOMIC_ACQUIRE);
            if (op && opd_call_all(op, r, v, 1 + (int)(n & 1)) == 0) {
                right++;
                CHECK(r[0].u.i > 0 && r[0].u.i < 1000);
            } else if (op) { CHECK(excused()); }
            if (op && n % 64 == 0) {
                char text[256];
                (void)opd_dump(op, text, sizeof text);
                (void)opd_dump_table(op, text, sizeof text);
                if (opd_explain(op, v, 1, text, sizeof text) == 0) { CHECK(excused()); }
            }
        }
        n++;
        (void)__atomic_add_fetch(&calls_done, 1, __ATOMIC_RELAXED);
    }
    CHECK(right > 0 || n < 100);
    return NULL;
}

/* race::changing comes and goes, with one argument and with two. */
static void *definer(void *arg) {
    int i;
    (void)arg;
    for (i = 1; i <= ROUNDS; i++) {
        opd_library *lib = opd_library_open(OPD_FRAGMENT, "race", NULL, __FILE__, __LINE__), *impl;
        CHECK_INT(opd_def(lib, i & 1 ? "changing(int a) -> int" : "changing(int a, int b) -> int"), 0);
        impl = opd_library_open(OPD_IMPL, "race", NULL, __FILE__, __LINE__);
        CHECK_INT(opd_impl_key(impl, "changing", "CompositeExplicitAutograd", k_ticket, ticket_new(i), ticket_free), 0);
        (void)usleep(200);
        if (i & 2) { opd_library_close(lib); opd_library_close(impl); }
        else { opd_library_close(impl); opd_library_close(lib); }
    }
    return NULL;
}

/* race::fixed gets newer kernels that go again, and every operator a fallback. */
static void *overrider(void *arg) {
    int i;
    (void)arg;
    for (i = 1; i <= ROUNDS; i++) {
        opd_library *impl = opd_library_open(OPD_IMPL, "race", NULL, __FILE__, __LINE__);
        opd_library *all = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_USER_4), __FILE__, __LINE__);
        CHECK_INT(opd_impl_key(impl, "fixed", "CompositeExplicitAutograd", k_ticket, ticket_new(1000 + i),
                  ticket_free), 0);
        CHECK_INT(opd_fallback(all, k_down), 0);
        if (i % 16 == 0) { CHECK_INT(opd_check_invariants(), 0); }
        (void)usleep(100);
        opd_library_close(all);
        opd_library_close(impl);
    }
    return NULL;
}

static void quiet_log(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error) { printf("%s\n", text); }
}

TEST(registration_while_others_call) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "race", NULL, __FILE__, __LINE__);
    pthread_t callers[CALLERS], writers[2];
    opd_key key = opd_key_parse("RaceMode");
    int i;
    if (key == OPD_KEY_INVALID) {
        opd_error_clear();
        CHECK_INT(opd_key_define(OPD_F_USER_4, "RaceMode"), OPD_F_USER_4);
    }
    opd_log_set(quiet_log, NULL);
    made = unmade = calls_done = 0;
    CHECK_INT(opd_def(lib, "fixed(int n) -> int"), 0);
    CHECK_INT(opd_impl_key(lib, "fixed", "CompositeExplicitAutograd", k_ticket, ticket_new(1000), ticket_free), 0);
    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    for (i = 0; i < CALLERS; i++) { CHECK_INT(pthread_create(&callers[i], NULL, caller, NULL), 0); }
    while (__atomic_load_n(&calls_done, __ATOMIC_RELAXED) < CALLERS) { (void)usleep(100); }
    CHECK_INT(pthread_create(&writers[0], NULL, definer, NULL), 0);
    CHECK_INT(pthread_create(&writers[1], NULL, overrider, NULL), 0);
    for (i = 0; i < 2; i++) { CHECK_INT(pthread_join(writers[i], NULL), 0); }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (i = 0; i < CALLERS; i++) { CHECK_INT(pthread_join(callers[i], NULL), 0); }
    opd_library_close(lib);
    opd_log_set(NULL, NULL);
    CHECK_INT(unmade, made);                      /* nobody is inside now: everything is given back */
    CHECK_INT(opd_registry_stats().retired, 0);
    CHECK_INT(opd_check_invariants(), 0);
}

/* An operator is never seen with its kernel and without its formula. */
static int k_double(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_add(x, x));
}
static int double_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_add(g, g));
}
static void *differentiates(void *arg) {
    while (!is_stopped()) {
        opd_scope scope = opd_scope_open();
        const float one = 1;
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32), true);
        opd_op *op = opd_find_quiet("race::whole");
        opd_value v = opd_value_tensor(x);
        opd_tensor *y = op ? opd_call_op(op, &v, 1) : NULL;
        opd_error_clear();                        /* not there, or no kernel of it yet */
        if (y && opd_backward(y)) { printf("%s\n", opd_error_message()); CHECK(!"backward"); }
        opd_error_clear();
        (void)__atomic_add_fetch(&calls_done, y != NULL, __ATOMIC_RELAXED);
        opd_scope_close(&scope);
    }
    return arg;
}
TEST(an_operator_that_runs_has_its_formula) {
    pthread_t threads[2];
    opd_op_desc d;
    int i;
    memset(&d, 0, sizeof d);
    d.schema = "whole(Tensor self) -> Tensor"; d.cpu = k_double; d.backward = double_backward;
    calls_done = 0;
    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    for (i = 0; i < 2; i++) { CHECK_INT(pthread_create(&threads[i], NULL, differentiates, NULL), 0); }
    for (i = 0; i < 3000 || __atomic_load_n(&calls_done, __ATOMIC_RELAXED) < 10; i++) {
        opd_library *lib = opd_library_open(OPD_FRAGMENT, "race", NULL, __FILE__, __LINE__);
        CHECK_INT(opd_define(lib, &d), 0);
        opd_library_close(lib);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (i = 0; i < 2; i++) { CHECK_INT(pthread_join(threads[i], NULL), 0); }
    CHECK_INT(opd_check_invariants(), 0);
}

//-- what is out of use waits for the calls that are inside ------------------------------------------------------------

static opd_library *inner;
static int k_closes(opd_call *call) {
    const ticket *t = (const ticket *)opd_call_user(call);
    const int before = unmade;
    opd_library_close(inner);                     /* its own: the user pointer stays until the call is over */
    if (unmade != before) { return opd_fail(OPD_ERROR_USER, "destroyed while it runs"); }
    return opd_return_int(call, t->twice);
}
TEST(kernel_that_undoes_its_own_operator) {
    opd_value v = opd_value_int(1);
    opd_op *op;
    made = unmade = 0;
    inner = opd_library_open(OPD_FRAGMENT, "inner", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(inner, "op(int n) -> int"), 0);
    CHECK_INT(opd_impl_key(inner, "op", "CompositeExplicitAutograd", k_closes, ticket_new(21), ticket_free), 0);
    op = opd_find("inner::op");
    CHECK_INT(opd_call_value(op, &v, 1).u.i, 42);
    CHECK_OK();
    CHECK_INT(unmade, 0);
    CHECK(opd_registry_stats().retired > 0);
    opd_library_close(opd_library_open(OPD_FRAGMENT, "inner", NULL, __FILE__, __LINE__));      /* or opd_finish */
    CHECK_INT(unmade, 1);
    CHECK_INT(opd_registry_stats().retired, 0);
    CHECK_INT(opd_call_all(op, &v, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "is not defined (any more)");
}

static int k_redefines(opd_call *call) {
    opd_library *lib;
    (void)call;
    opd_library_close(inner);
    lib = opd_library_open(OPD_FRAGMENT, "inner", NULL, __FILE__, __LINE__);
    if (opd_def(lib, "two(int n) -> int")) { opd_library_close(lib); return -1; }      /* the same: allowed */
    opd_library_close(lib);
    lib = opd_library_open(OPD_FRAGMENT, "inner", NULL, __FILE__, __LINE__);
    (void)opd_def(lib, "two(int n, int m) -> int");
    opd_library_close(lib);
    return -1;
}
TEST(another_schema_under_a_running_call_is_refused) {
    opd_value v = opd_value_int(1);
    inner = opd_library_open(OPD_FRAGMENT, "inner", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(inner, "two(int n) -> int"), 0);
    CHECK_INT(opd_impl_key(inner, "two", "CompositeExplicitAutograd", k_redefines, NULL, NULL), 0);
    CHECK_INT(opd_call_all(opd_find("inner::two"), &v, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "inner::two was defined with another schema and is defined anew while a call");
    CHECK_INT(opd_check_invariants(), 0);
}

/* A call that waits for the thread that redefines its operator: that thread gives up in the end. */
static int redefined;
static int k_waits(opd_call *call) {
    (void)__atomic_add_fetch(&calls_done, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&redefined, __ATOMIC_ACQUIRE)) { (void)usleep(1000); }
    return opd_return_int(call, opd_arg_int(call, 0));
}
static void *wait_inside(void *arg) {
    opd_value v = opd_value_int(3), r[1];
    CHECK_INT(opd_call_all((opd_op *)arg, r, &v, 1), 0);
    CHECK_INT(r[0].u.i, 3);
    return NULL;
}
TEST(redefining_does_not_wait_for_ever) {
    opd_library *a = opd_library_open(OPD_FRAGMENT, "wait", NULL, __FILE__, __LINE__), *b;
    pthread_t thread;
    calls_done = redefined = 0;
    CHECK_INT(opd_def(a, "op(int n) -> int"), 0);
    CHECK_INT(opd_impl_key(a, "op", "CompositeExplicitAutograd", k_waits, NULL, NULL), 0);
    CHECK_INT(pthread_create(&thread, NULL, wait_inside, opd_find("wait::op")), 0);
    while (!__atomic_load_n(&calls_done, __ATOMIC_ACQUIRE)) { (void)usleep(100); }
    opd_library_close(a);
    b = opd_library_open(OPD_FRAGMENT, "wait", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(b, "op(int n, int m) -> int"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "wait::op was defined with another schema and is defined anew while a call");
    __atomic_store_n(&redefined, 1, __ATOMIC_RELEASE);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(opd_def(b, "op(int n, int m) -> int"), 0);
    opd_library_close(b);
    CHECK_INT(opd_registry_stats().retired, 0);
}

//-- the thread's state ------------------------------------------------------------------------------------------------

typedef struct carried { opd_dispatch_state state; bool default_grad, grad, has, after; } carried;
static void *carry(void *arg) {
    carried *c = (carried *)arg;
    opd_dispatch_state was;
    c->default_grad = opd_grad_enabled() && !opd_keyset_has(opd_keys_included(), OPD_F_TRACER);
    was = opd_dispatch_state_set(c->state);
    c->grad = opd_grad_enabled();
    c->has = opd_keyset_has(opd_keys_included(), OPD_F_TRACER) && opd_keyset_has(opd_keys_excluded(), OPD_F_USER_5);
    (void)opd_dispatch_state_set(was);
    c->after = opd_grad_enabled() && !opd_keyset_has(opd_keys_included(), OPD_F_TRACER) &&
        !opd_keyset_has(opd_keys_excluded(), OPD_F_USER_5);
    return NULL;
}
TEST(state_is_carried_by_an_explicit_call) {
    const opd_dispatch_state before = opd_dispatch_state_get();
    const opd_key_guard a = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    const opd_key_guard b = opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_5));
    const bool grad = opd_grad_set(false);
    opd_dispatch_state end;
    pthread_t thread;
    carried c;
    memset(&c, 0, sizeof c);
    c.state = opd_dispatch_state_get();
    (void)opd_grad_set(grad);
    opd_keys_restore(b);
    opd_keys_restore(a);
    CHECK_INT(pthread_create(&thread, NULL, carry, &c), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(c.default_grad && !c.grad && c.has && c.after);
    end = opd_dispatch_state_get();
    CHECK(end.included == before.included && end.excluded == before.excluded &&
          end.grad_enabled == before.grad_enabled);
}

CHECK_MAIN()
#endif
