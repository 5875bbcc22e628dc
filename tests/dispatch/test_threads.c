/* Registering and deregistering while other threads call; passing a thread's dispatch state to another thread.
   THREADED.  C ONLY: pthreads with C function types. */
#include "../../opdispatch.h"
#include "../check.h"

#if defined(OPD_NO_THREADS) || defined(__TINYC__)
TEST(no_threads) { SKIP("built without threads"); }
CHECK_MAIN()
#else
#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#include <sys/wait.h>

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

/* Returns whether the error is allowed: the operator or kernel of the call may be unregistered at the moment. */
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

/* Defines and removes race::changing, with one argument and with two. */
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

/* Registers and removes newer kernels of race::fixed, and a fallback for every operator. */
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
    if (is_error > 0) { printf("%s\n", text); }
}

/* Names of keys are never removed, and cases run more than once. */
static void name_key(int functionality, const char *name) {
    if (opd_key_parse(name) == OPD_KEY_INVALID) {
        opd_error_clear();
        CHECK_INT(opd_key_define(functionality, name), functionality);
    }
}

TEST(registration_while_others_call) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "race", NULL, __FILE__, __LINE__);
    pthread_t callers[CALLERS], writers[2];
    int i;
    name_key(OPD_F_USER_4, "RaceMode");
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

/* A call never finds an operator with its kernel but without its backward function. */
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
    opd_library_close(opd_library_open(OPD_FRAGMENT, "race", NULL, __FILE__, __LINE__));
    CHECK_INT(opd_registry_stats().retired, 0);   /* with nobody inside, what calls held is given back */
    CHECK_INT(opd_check_invariants(), 0);
}

//-- removed kernels and operators wait for running calls --------------------------------------------------------------

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
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "is not defined any more: its library was closed (opd_library_close)");
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
    CHECK_ERROR(OPD_ERROR_REGISTER, "inner::two is being defined with another schema than before, while a call");
    CHECK_INT(opd_check_invariants(), 0);
}

/* A call waits for the thread that redefines its operator: this thread gives up after some time. */
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
    CHECK_ERROR(OPD_ERROR_REGISTER, "wait::op is being defined with another schema than before, while a call");
    __atomic_store_n(&redefined, 1, __ATOMIC_RELEASE);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(opd_def(b, "op(int n, int m) -> int"), 0);
    opd_library_close(b);
    CHECK_INT(opd_registry_stats().retired, 0);
}

//-- everything at once ------------------------------------------------------------------------------------------------

/* Threads call operators by handle, by name, by base name and by keywords, query them and run backward, also through
   nodes of removed operators.  Meanwhile, operators, overloads, kernels of built-in operators, fallbacks, listeners,
   observers, a profiler, a device and a plug-in are added and removed. */
static int mix_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 1) && opd_bw_return(bw, 1, g)) { return -1; }          /* an overload's second tensor */
    return opd_bw_return(bw, 0, opd_add(g, g));
}
static int k_exp(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    const float *from = opd_data_f32(x);
    float *to = opd_data_f32(y);
    if (!opd_ok()) { return -1; }
    *to = expf(*from);
    return 0;
}
static void mix_define(opd_library *lib, const char *schema, void *user) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema; d.cpu = k_double; d.backward = mix_backward; d.user = user; d.destroy = ticket_free;
    CHECK_INT(opd_define(lib, &d), 0);
}
static opd_tensor *mix_leaf(void) {
    const float one = 1;
    return opd_tensor_set_requires_grad(opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32), true);
}
static bool mix_excused(void) { return opd_ok() || excused(); }

static void *mix_caller(void *arg) {
    static opd_op *come;
    opd_tensor *kept = NULL, *kept_leaf = NULL;
    int64_t n = 0;
    (void)arg;
    while (!is_stopped()) {
        OPD_SCOPE {
            const opd_keyset mode = opd_keyset_add(OPD_KEYS_EMPTY, n & 2 ? OPD_F_USER_4 : OPD_F_USER_6);
            const opd_key_guard guard = opd_keys_include(n & 1 ? mode : OPD_KEYS_EMPTY);
            opd_tensor *x = mix_leaf(), *y, *z;
            opd_value v[2], r[1];
            opd_keyword kw;
            opd_overloads *all;
            opd_op *op;
            v[0] = opd_value_tensor(x); v[1] = opd_value_int(1);
            kw.name = "n"; kw.value = v[1];
            y = opd_call_op(opd_find("mix::fixed"), v, 1);                      /* by name, the mode may be missing */
            CHECK(mix_excused());
            op = opd_find_quiet("mix::come");                                   /* by a handle that may be stale */
            if (op) { __atomic_store_n(&come, op, __ATOMIC_RELEASE); }
            op = __atomic_load_n(&come, __ATOMIC_ACQUIRE);
            z = op ? opd_call_op(op, v, 1 + (int)(n & 1)) : NULL;
            CHECK(mix_excused());
            if (z && y) { y = opd_add(y, z); CHECK(mix_excused()); }
            if (op && opd_call_keywords(op, r, v, 1, &kw, 1) == 0 && y) { y = opd_add(y, r[0].u.t); }
            CHECK(mix_excused());
            all = opd_overloads_find("mix::come");                              /* by base name */
            CHECK(mix_excused());
            if (all && opd_overloads_call(all, r, v, n % 3 == 0 ? 1 : 2, &kw, n % 3 == 0) == 0 && y) {
                y = opd_add(y, r[0].u.t);
            }
            CHECK(mix_excused());
            v[1] = v[0];
            if (all && opd_overloads_call(all, r, v, 2, NULL, 0) == 0 && y) { y = opd_add(y, r[0].u.t); }
            CHECK(mix_excused());
            op = opd_find_quiet("mixplug::twice");
            z = op ? opd_call_op(op, v, 1) : NULL;
            CHECK(mix_excused());
            if (z && y) { y = opd_mul(y, z); }
            if (y) { y = opd_exp(opd_mul_Scalar(y, opd_value_double(0.001))); }
            CHECK(mix_excused());
            if (n % 8 == 0) {
                char text[64];
                opd_op *ops[8];
                opd_op_filter filter;
                memset(&filter, 0, sizeof filter);
                filter.ns = "mix"; filter.dangling = n % 16 == 0;
                (void)opd_op_list(&filter, ops, 8);
                (void)opd_registry_stats();
                if (op) { (void)opd_dump(op, text, sizeof text); (void)opd_dump_table(op, text, sizeof text); }
                op = __atomic_load_n(&come, __ATOMIC_ACQUIRE);
                if (op) { (void)opd_explain(op, v, 1, text, sizeof text); }
                CHECK(mix_excused());
            }
            if (kept && opd_backward(kept)) { CHECK(mix_excused()); }          /* of before: nodes outlive all */
            opd_release(kept);
            opd_release(kept_leaf);
            kept = opd_keep(y);
            kept_leaf = opd_keep(x);
            opd_keys_restore(guard);
        }
        n++;
        (void)__atomic_add_fetch(&calls_done, 1, __ATOMIC_RELAXED);
    }
    opd_release(kept);
    opd_release(kept_leaf);
    return NULL;
}

static void *mix_definer(void *arg) {
    int i;
    for (i = 0; !is_stopped(); i++) {
        opd_library *a = opd_library_open(OPD_FRAGMENT, "mix", NULL, __FILE__, __LINE__);
        opd_library *b = opd_library_open(OPD_FRAGMENT, "mix", NULL, __FILE__, __LINE__);
        mix_define(a, "come(Tensor self, int n=1) -> Tensor", ticket_new(i));
        mix_define(b, "come.other(Tensor self, Tensor other) -> Tensor", ticket_new(i));
        (void)usleep(50);
        opd_library_close(i & 1 ? a : b);
        opd_library_close(i & 1 ? b : a);
    }
    return arg;
}
static void mix_told(void *user, opd_op *op) { (void)user; CHECK(opd_op_name(op) != NULL); }
static void *mix_overrider(void *arg) {
    int i;
    for (i = 0; !is_stopped(); i++) {
        opd_library *all = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_USER_4), __FILE__, __LINE__);
        opd_library *skip = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_USER_6), __FILE__, __LINE__);
        opd_library *aten = opd_library_open(OPD_IMPL, "aten", "CPU", __FILE__, __LINE__);
        opd_listener *l = opd_listener_add(mix_told, mix_told, NULL);
        CHECK_INT(opd_fallback(all, k_down), 0);
        CHECK_INT(opd_fallback(skip, OPD_FALLTHROUGH), 0);
        CHECK_INT(opd_impl_key(aten, "exp", NULL, k_exp, ticket_new(i), ticket_free), 0);
        (void)usleep(50);
        opd_listener_remove(l);
        opd_library_close(aten);
        opd_library_close(skip);
        if (i % 8 == 0) { CHECK_INT(opd_check_invariants(), 0); }
        opd_library_close(all);
    }
    return arg;
}

static void *mix_begin(const opd_event *e, void *user) {
    const ticket *t = (const ticket *)user;
    CHECK(t->twice == 2 * t->number && e->name != NULL && (!e->op || opd_op_name(e->op)));
    return user;
}
static void mix_end(const opd_event *e, void *context, void *user) { (void)e; CHECK(context == user); }
static void *mix_alloc(void *user, int index, size_t bytes) { (void)user; (void)index; return malloc(bytes); }
static void mix_free(void *user, int index, void *data, size_t bytes) {
    (void)user; (void)index; (void)bytes;
    free(data);
}
static int mix_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    (void)user; (void)to_index; (void)from_index;
    memcpy(to, from, bytes);
    return 0;
}
static void *mix_watcher(void *arg) {
    opd_backend_desc npu;
    int i;
    memset(&npu, 0, sizeof npu);
    npu.alloc = mix_alloc; npu.free = mix_free; npu.copy = mix_copy; npu.destroy = ticket_free;
    for (i = 0; !is_stopped(); i++) {
        opd_observer o;
        int64_t h;
        memset(&o, 0, sizeof o);
        o.begin = mix_begin; o.end = mix_end; o.user = ticket_new(i); o.destroy = ticket_free;
        o.sampling = i & 1 ? 0.1 : 0;
        h = opd_observer_add(&o);
        CHECK(h != 0);
        npu.user = ticket_new(i);
        CHECK_INT(opd_backend_register(OPD_PRIVATEUSE3, &npu), 0);
        if (i % 4 == 0) { CHECK_INT(opd_profiler_begin(NULL), 0); }
        OPD_SCOPE {
            opd_library *cpu = opd_library_open(OPD_IMPL, "_", "PrivateUse3", __FILE__, __LINE__);
            const int64_t two = 2;
            opd_tensor *t = opd_tensor_new_on(opd_ints_of(&two, 1), OPD_FLOAT32, opd_device_make(OPD_PRIVATEUSE3, 0));
            CHECK_INT(opd_fallback(cpu, opd_cpu_fallback), 0);
            CHECK(opd_cos(t) != NULL);
            CHECK_OK();
            opd_library_close(cpu);
        }
        CHECK_INT(opd_backend_unregister(OPD_PRIVATEUSE3), 0);
        opd_log_set(quiet_log, &o);
        (void)opd_dispatch_trace_set(i % 8 == 0);
        if (i % 4 == 0) { opd_profile_free(opd_profiler_end()); }
        CHECK(opd_observer_remove(h));
        CHECK_OK();
    }
    return arg;
}

/* Each registration of a device is undone once, on any thread. */
static int npus;
static void *mix_device(void *arg) {
    opd_backend_desc npu;
    int i;
    memset(&npu, 0, sizeof npu);
    npu.alloc = mix_alloc; npu.free = mix_free; npu.copy = mix_copy; npu.destroy = ticket_free;
    for (i = 0; i < 2000; i++) {
        npu.user = ticket_new(i);
        if (opd_backend_register(OPD_PRIVATEUSE2, &npu) == 0) { (void)__atomic_add_fetch(&npus, 1, __ATOMIC_RELAXED); }
        else { ticket_free(npu.user); }
        opd_error_clear();
        (void)opd_backend_unregister(OPD_PRIVATEUSE2);
        opd_error_clear();
    }
    return arg;
}
TEST(a_device_is_undone_once) {
    pthread_t threads[3];
    int i;
    made = unmade = npus = 0;
    for (i = 0; i < 3; i++) { CHECK_INT(pthread_create(&threads[i], NULL, mix_device, NULL), 0); }
    for (i = 0; i < 3; i++) { CHECK_INT(pthread_join(threads[i], NULL), 0); }
    CHECK_INT(opd_device_count(OPD_PRIVATEUSE2), 0);
    CHECK_INT(unmade, made);
    CHECK(npus > 2000 / 2);
}

static const char mix_source[] =
    "#include \"opdispatch.h\"\n"
    "static int twice(opd_call *call) {\n"
    "    opd_tensor *x = opd_arg_tensor(call, 0);\n"
    "    return opd_return_tensor(call, opd_add(x, x));\n"
    "}\n"
    "static int twice_backward(opd_backward_call *bw) {\n"
    "    opd_tensor *g = opd_bw_grad(bw, 0);\n"
    "    return opd_bw_return(bw, 0, opd_add(g, g));\n"
    "}\n"
    "static void *begin(const opd_event *e, void *user) { (void)e; return user; }\n"
    "OPD_LIBRARY(mixplug, lib) {\n"
    "    opd_op_desc d = {0};\n"
    "    opd_observer o = {0};\n"
    "    d.schema = \"twice(Tensor self) -> Tensor\"; d.cpu = twice; d.backward = twice_backward;\n"
    "    opd_define(lib, &d);\n"
    "    o.begin = begin; opd_observer_add(&o);\n"
    "}\n"
    "OPD_LIBRARY_IMPL(aten, CPU, lib) { opd_impl(lib, \"neg\", twice); }\n"
    "OPD_LIBRARY_FRAGMENT(mix, lib) { opd_def(lib, \"come.plug(str s) -> Tensor\"); }\n";
static void *mix_loader(void *arg) {
    while (!is_stopped()) {
        opd_plugin *p = opd_compile_and_load_inline("mix", mix_source, NULL);
        CHECK(p != NULL);
        CHECK_OK();
        (void)usleep(50);
        CHECK_INT(opd_plugin_unload(p), 0);
    }
    return arg;
}

/* Memory that remains: the tables of the operators called last, and a list of overloads for every order in which they
   were registered. */
TEST_KEEPS(everything_at_once) {
    void *(*const work[])(void *) = {mix_caller, mix_caller, mix_caller, mix_definer, mix_overrider, mix_watcher,
                                     mix_loader};
    enum { THREADS = 7 };
    pthread_t threads[THREADS];
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "mix", NULL, __FILE__, __LINE__);
    char cache[300];
    const char *tmp = getenv("TMPDIR");
    int i, n = THREADS;
    name_key(OPD_F_USER_4, "RaceMode");
    name_key(OPD_F_USER_6, "RaceSkipped");
    opd_log_set(quiet_log, NULL);
    snprintf(cache, sizeof cache, "%s/opd_threads.%ld", tmp && *tmp == '/' ? tmp : "/tmp", (long)getpid());
#if defined(OPD_NO_PLUGINS) || defined(_WIN32)
    n--;
#else
    (void)setenv("XDG_CACHE_HOME", cache, 1);
    (void)mkdir(cache, 0700);
    CHECK_INT(opd_plugin_unload(opd_compile_and_load_inline("mix", mix_source, NULL)), 0);      /* compiled before it counts */
#endif
    made = unmade = calls_done = 0;
    mix_define(lib, "fixed(Tensor self, int n=1) -> Tensor", ticket_new(1));
    __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
    for (i = 0; i < n; i++) { CHECK_INT(pthread_create(&threads[i], NULL, work[i], NULL), 0); }
    (void)usleep(1500 * 1000);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (i = 0; i < n; i++) { CHECK_INT(pthread_join(threads[i], NULL), 0); }
    opd_library_close(lib);
    (void)opd_dispatch_trace_set(false);
    CHECK(calls_done > 50);
    CHECK_INT(unmade, made);
    CHECK_INT(opd_registry_stats().retired, 0);
    CHECK_INT(opd_check_invariants(), 0);
    CHECK(opd_plugin_next(NULL) == NULL);
    opd_log_set(NULL, NULL);
#if !defined(OPD_NO_PLUGINS) && !defined(_WIN32)
    {
        char command[400];
        snprintf(command, sizeof command, "rm -rf '%s'", cache);
        CHECK_INT(system(command), 0);
    }
#endif
}

//-- a process that forks -----------------------------------------------------------------------------------------------

#if !defined(CHECK_THREADS_SANITIZED)
static int fork_kernel(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
/* The work of a child process: registers operators, calls them, trains, and removes them. */
static int fork_work(const char *ns) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, ns, NULL, "t", 1);
    opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    char name[80];
    opd_op *op;
    (void)opd_tensor_set_requires_grad(x, true);
    (void)opd_def(lib, "op(Tensor x) -> Tensor");
    (void)opd_impl_key(lib, "op", "CompositeImplicitAutograd", fork_kernel, NULL, NULL);
    (void)snprintf(name, sizeof name, "%s::op", ns);
    op = opd_find(name);
    (void)opd_backward(opd_sum(opd_mul(OPD_CALL(op, x), x)));
    (void)opd_overloads_at(opd_overloads_find(name), 0);
    opd_warn("%s", "");
    opd_library_close(lib);
    (void)opd_def(lib = opd_library_open(OPD_FRAGMENT, ns, NULL, "t", 1), "op(Tensor x, int n) -> Tensor");
    opd_library_close(lib);
    return opd_ok() && opd_registry_stats().retired == 0 ? 0 : 1;
}
static void fork_quiet(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static int fork_stop;
static void *fork_busy(void *arg) {
    while (!__atomic_load_n(&fork_stop, __ATOMIC_ACQUIRE)) {
        OPD_SCOPE { (void)fork_work((const char *)arg); }
        opd_error_clear();                        /* retired: the other thread may be in a call */
    }
    return NULL;
}
/* The address sanitizer's own malloc takes a lock that no fork handler of it lets go (clang before 17): with it the
   parent has no other thread that may hold it. */
#if defined(CHECK_SANITIZED)
enum { FORK_BUSY = 0 };
#else
enum { FORK_BUSY = 2 };
#endif
TEST(children_of_a_fork_register) {
    static char names[2][8] = {"forka", "forkb"};
    pthread_t threads[2];
    int i, right = 0;
    opd_log_set(fork_quiet, NULL);
    (void)opd_exp(opd_ones(OPD_INTS(2), OPD_FLOAT32));
    fork_stop = 0;
    for (i = 0; i < FORK_BUSY; i++) { CHECK_INT(pthread_create(&threads[i], NULL, fork_busy, names[i]), 0); }
    for (i = 0; i < 40; i++) {
        int status = 1;
        pid_t child;
        (void)usleep(1000);
        child = fork();
        if (child == 0) {
            (void)alarm(20);
            CHECK_CHILD_ENDS(fork_work(i % 2 ? "forkc" : "forkd"));
        }
        right += child > 0 && waitpid(child, &status, 0) == child && status == 0;
    }
    CHECK_INT(right, 40);
    __atomic_store_n(&fork_stop, 1, __ATOMIC_RELEASE);
    for (i = 0; i < FORK_BUSY; i++) { CHECK_INT(pthread_join(threads[i], NULL), 0); }
    opd_log_set(NULL, NULL);
}
#endif

//-- the thread's state ------------------------------------------------------------------------------------------------

typedef struct carried { opd_dispatch_state state; bool default_grad, grad, has, after; } carried;
static void *carry(void *arg) {
    carried *c = (carried *)arg;
    opd_dispatch_state was;
    c->default_grad = opd_grad_mode_enabled() && !opd_keyset_has(opd_keys_included(), OPD_F_TRACER);
    was = opd_dispatch_state_set(c->state);
    c->grad = opd_grad_mode_enabled();
    c->has = opd_keyset_has(opd_keys_included(), OPD_F_TRACER) && opd_keyset_has(opd_keys_excluded(), OPD_F_USER_5);
    (void)opd_dispatch_state_set(was);
    c->after = opd_grad_mode_enabled() && !opd_keyset_has(opd_keys_included(), OPD_F_TRACER) &&
        !opd_keyset_has(opd_keys_excluded(), OPD_F_USER_5);
    return NULL;
}
TEST(state_is_carried_by_an_explicit_call) {
    const opd_dispatch_state before = opd_dispatch_state_get();
    const opd_key_guard a = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_TRACER));
    const opd_key_guard b = opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_5));
    const bool grad = opd_grad_mode_set(false);
    opd_dispatch_state end;
    pthread_t thread;
    carried c;
    memset(&c, 0, sizeof c);
    c.state = opd_dispatch_state_get();
    (void)opd_grad_mode_set(grad);
    opd_keys_restore(b);
    opd_keys_restore(a);
    CHECK_INT(pthread_create(&thread, NULL, carry, &c), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(c.default_grad && !c.grad && c.has && c.after);
    end = opd_dispatch_state_get();
    CHECK(end.included == before.included && end.excluded == before.excluded &&
          end.grad_enabled == before.grad_enabled);
}

//-- threads that Windows starts ----------------------------------------------------------------------------------------

/* A thread that pthread_create did not start ends: its open scope is closed, and its state is freed. */
#if defined(_WIN32)
extern void *__stdcall CreateThread(void *security, size_t stack, unsigned long (__stdcall *work)(void *), void *arg,
                                    unsigned long flags, unsigned long *id);
extern unsigned long __stdcall WaitForSingleObject(void *handle, unsigned long ms);
extern int __stdcall CloseHandle(void *handle);
static unsigned long __stdcall leave_open(void *arg) {
    (void)arg;
    (void)opd_scope_open();
    (void)opd_ones(OPD_INTS(100), OPD_FLOAT32);
    return 0;
}
TEST(a_thread_of_windows_ends) {
    int64_t before = 0;
    int i, ended = 0;
    OPD_SCOPE { (void)opd_ones(OPD_INTS(100), OPD_FLOAT32); }
    before = opd_memory_stats().live;
    for (i = 0; i < 40 && ended == i; i++) {
        void *const thread = CreateThread(NULL, 0, leave_open, NULL, 0, NULL);
        ended += thread && WaitForSingleObject(thread, 10000) == 0 && CloseHandle(thread);
    }
    CHECK_INT(ended, 40);
    CHECK_INT(opd_memory_stats().live, before);
    CHECK_INT(opd_check_invariants(), 0);
}
#else
TEST(a_thread_of_windows_ends) { SKIP("threads of Windows"); }
#endif

CHECK_MAIN()
#endif
