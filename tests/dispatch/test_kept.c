/* Tensors that are kept: the list with the places, and the warning of opd_finish; the warning about a scope with many
   tensors.  THREADED. */
#include "../../opdispatch.h"
#include "../check.h"

#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
#include <pthread.h>
#define HAS_THREADS 1
#endif
#if defined(HAS_THREADS) && !defined(_WIN32) && !defined(__wasm__)
#include <sys/wait.h>
#include <unistd.h>
#define HAS_FORK 1
#endif

static opd_kept list[20000];
static size_t listed(void) { return opd_kept_list(list, sizeof list / sizeof *list); }
/* The entry of a tensor in the list, or NULL. */
static const opd_kept *entry_of(const opd_tensor *tensor) {
    const size_t count = listed();
    for (size_t i = 0; i < count; i++) { if (list[i].tensor == tensor) { return &list[i]; } }
    return NULL;
}
static bool is_at(const opd_kept *kept, int line) {
    char end[64];
    (void)snprintf(end, sizeof end, "test_kept.c:%d", line);
    return kept && strlen(kept->place) >= strlen(end) && strcmp(kept->place + strlen(kept->place) - strlen(end), end) == 0;
}
static opd_tensor *floats(int64_t n) { return opd_zeros(OPD_INTS(n), OPD_FLOAT32); }
static int second_of(int first, int second) { return first ? second : 0; }

TEST(kept_tensors_are_listed_with_their_places) {
    const size_t before = listed();
    opd_tensor *small = NULL, *view, *large = opd_keep(floats(1000)); const int large_line = __LINE__;
    OPD_SCOPE { small = opd_keep(floats(second_of(1, 3))); } const int small_line = __LINE__;
    view = opd_keep(opd_select(large, 0, 0));
    CHECK_INT((int)listed(), (int)before + 3);
    CHECK(is_at(entry_of(large), large_line) && is_at(entry_of(small), small_line));
    CHECK_INT((int)entry_of(small)->count, 1);
    CHECK_INT((int)entry_of(small)->bytes, 12);
    CHECK_INT((int)(entry_of(large)->bytes + entry_of(view)->bytes), 4000);        /* shared memory counts once */
    CHECK_INT((int)opd_size(entry_of(small)->tensor, 0), 3);
    for (size_t i = 1; i < listed(); i++) { CHECK(list[i - 1].bytes >= list[i].bytes); }
    CHECK(opd_keep(small) == small); const int again = __LINE__;
    CHECK_INT((int)entry_of(small)->count, 2);
    CHECK(is_at(entry_of(small), again));
    opd_release(small);
    CHECK_INT((int)entry_of(small)->count, 1);
    CHECK_INT((int)opd_kept_list(NULL, 0), (int)before + 3);
    opd_release(small);
    opd_release(large);
    opd_release(view);
    CHECK_INT((int)listed(), (int)before);
}

TEST(names_without_brackets_are_functions) {
    opd_tensor *(*const keep)(opd_tensor *) = opd_keep, *(*const assign)(opd_tensor **, opd_tensor *) = opd_assign;
    opd_tensor *a = keep(floats(2)), *b = NULL;
    CHECK_STR(entry_of(a)->place, "");
    (void)assign(&b, floats(2));
    CHECK_STR(entry_of(b)->place, "");
    (void)opd_assign(&b, floats(4)); const int line = __LINE__;
    CHECK(is_at(entry_of(b), line));
    CHECK(opd_keep_at(a, "my place") == a);
    CHECK_STR(entry_of(a)->place, "my place");
    opd_release(a);
    opd_release(a);
    CHECK(opd_assign(&b, NULL) == NULL && b == NULL);
    CHECK(opd_keep(NULL) == NULL);
    opd_release(NULL);
    CHECK(opd_assign(NULL, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_assign: the handle's address is NULL");
}

/* A tensor may be kept by one pair of functions and released by the other. */
TEST(tensors_are_values_too) {
    const size_t before = listed();
    opd_tensor *first = NULL, *second = NULL;
    OPD_SCOPE {
        first = opd_keep(floats(2));
        second = floats(3);
        (void)opd_value_keep(opd_value_tensor(second));
    }
    CHECK_STR(entry_of(second)->place, "");
    CHECK_INT((int)listed(), (int)before + 2);
    opd_value_release(opd_value_tensor(first));
    opd_release(second);
    CHECK_INT((int)listed(), (int)before);
}
TEST(a_value_carried_through_a_loop) {
    const size_t before = listed();
    opd_tensor *y = opd_keep(floats(1));
    for (int i = 0; i < 3000; i++) { OPD_SCOPE { opd_assign(&y, opd_add(y, y)); } }
    CHECK_INT((int)listed(), (int)before + 1);
    CHECK_INT((int)entry_of(y)->count, 1);
    opd_assign(&y, NULL);
    CHECK_INT((int)listed(), (int)before);
}

/* Keeps and releases at random, beside counts that are kept here. */
TEST(random_keeps_and_releases) {
    enum { MANY = 3000 };
    static opd_tensor *tensors[MANY];
    static int counts[MANY];
    const size_t before = listed();
    uint32_t random = 1;
    int held = 0;
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < MANY; i++) { tensors[i] = floats(1); }
    for (int step = 0; step < 30000; step++) {
        random = random * 1664525u + 1013904223u;
        const int i = (int)((random >> 8) % MANY);
        if (random >> 31 || !counts[i]) {
            held += counts[i]++ == 0;
            (void)opd_keep(tensors[i]);
        } else {
            held -= --counts[i] == 0;
            opd_release(tensors[i]);
        }
        if (step % 5000 == 0) { CHECK_INT((int)listed(), (int)before + held); }
    }
    const size_t count = listed();
    CHECK_INT((int)count, (int)before + held);
    int64_t sum = 0, all = 0;
    for (size_t i = 0; i < count; i++) { sum += list[i].count; }
    for (int i = 0; i < MANY; i++) { all += counts[i]; }
    CHECK_INT((int)sum - (int)all, (int)before);
    for (int i = 0; i < MANY; i++) { while (counts[i] > 0) { counts[i]--; opd_release(tensors[i]); } }
    CHECK_INT((int)listed(), (int)before);
}

static int f_tanh(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    (void)user;
    (void)ninputs;
    outputs[0] = opd_sum(opd_tanh(inputs[0]));
    return outputs[0] ? 1 : -1;
}
TEST(what_the_library_keeps_is_not_listed) {
    const size_t before = listed();
    opd_tensor *w = opd_tensor_set_requires_grad(floats(4), true), *out = NULL;
    opd_optimizer *optimizer = opd_sgd_new(&w, 1, NULL);
    opd_backward(opd_sum(opd_exp(w)));
    opd_optimizer_step(optimizer);
    opd_graph *graph = opd_graph_trace(f_tanh, NULL, &w, 1, NULL);
    CHECK_INT(opd_graph_run(graph, &w, 1, &out, 1), 1);
    CHECK_INT(opd_grad(f_tanh, NULL, &w, 1, NULL, &out, 1), 1);
    CHECK_INT((int)listed(), (int)before);
    opd_graph_free(graph);
    opd_optimizer_free(optimizer);
    CHECK_OK();
}

//-- threads and the end of a program ----------------------------------------------------------------------------------

static char logged[4000];
static int logs;
static void log_text(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    logs++;
    (void)snprintf(logged, sizeof logged, "%s", text);
}

#if defined(HAS_THREADS)
static opd_tensor *passed[40];
static void *keeps_some(void *unused) {
    (void)unused;
    OPD_SCOPE { for (int i = 0; i < 40; i++) { passed[i] = opd_keep(floats(1)); } }
    return NULL;
}
static void *releases_some(void *unused) {
    (void)unused;
    for (int i = 0; i < 39; i++) { opd_release(passed[i]); }
    return NULL;
}
static void in_thread(void *(*fn)(void *)) {
    pthread_t id;
    CHECK_INT(pthread_create(&id, NULL, fn, NULL), 0);
    CHECK_INT(pthread_join(id, NULL), 0);
}
TEST(kept_by_one_thread_and_released_by_another) {
    const size_t before = listed();
    in_thread(keeps_some);
    CHECK_INT((int)listed(), (int)before + 40);
    in_thread(releases_some);
    CHECK_INT((int)listed(), (int)before + 1);
    opd_release(passed[39]);
    CHECK_INT((int)listed(), (int)before);
}

static int scope_line;
static void *fills_a_scope(void *unused) {
    const opd_tensor *first;
    (void)unused;
    OPD_SCOPE {
        scope_line = __LINE__ - 1;
        first = floats(1);
        for (int i = 1; i < 100040; i++) { (void)opd_detach((opd_tensor *)(uintptr_t)first); }
    }
    CHECK_INT(logs, 1);
    for (int i = 0; i < 100040; i++) { OPD_SCOPED; (void)floats(1); }
    CHECK_INT(logs, 1);
    return NULL;
}
static int kernel_of_many(opd_call *call) {
    for (int i = 0; i < 100040; i++) { (void)opd_detach(opd_arg_tensor(call, 0)); }
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
static void *fills_a_kernel(void *unused) {
    (void)unused;
    OPD_SCOPE {
        const opd_value arg = opd_value_tensor(floats(1));
        (void)opd_call_op(opd_find("kept::many"), &arg, 1);
        (void)opd_call_op(opd_find("kept::many"), &arg, 1);
    }
    return NULL;
}
TEST(a_scope_with_many_tensors) {
    char want[200];
    opd_log_set(log_text, NULL);
    logs = 0;
    in_thread(fills_a_scope);
    CHECK_INT(logs, 1);
    (void)snprintf(want, sizeof want, "test_kept.c:%d, which frees them only when it ends (the last one was made by aten::detach). If a loop makes them, begin the body of the loop with OPD_SCOPED;", scope_line);
    CHECK(strncmp(logged, "1000", 4) == 0 && strstr(logged, " tensors are in the scope that begins at ") != NULL);
    CHECK(strstr(logged, want) != NULL);
    opd_library *lib = opd_library_open(OPD_DEF, "kept", NULL, "kept.c", 1);
    CHECK_INT(opd_def(lib, "many(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "many", "CPU", kernel_of_many, NULL, NULL), 0);
    logs = 0;
    in_thread(fills_a_kernel);
    CHECK_INT(logs, 1);
    CHECK(strstr(logged, "tensors are in the scope of a kernel of kept::many, which") != NULL);
    opd_library_close(lib);
    opd_log_set(NULL, NULL);
}
#endif

#if defined(HAS_FORK)
#define CHILD_CHECK(cond) do { if (!(cond)) { printf("line %d: %s\n", __LINE__, logged); (void)fflush(stdout); CHECK_CHILD_ENDS(1); } } while (0)
static void *waits(void *ready) {
    OPD_SCOPE { opd_release(opd_keep(floats(1))); }
    __atomic_store_n((int *)ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n((int *)ready, __ATOMIC_ACQUIRE) != 2) { (void)usleep(1000); }
    return NULL;
}
/* The end of a program, in a process of its own. */
static void end_of_program(void) {
    static opd_tensor *more[8];
    opd_tensor *kept[3];
    char want[200];
    int first_line, second_line = 0, ready = 0;
    pthread_t id;
    logs = 0;
    logged[0] = 0;
    opd_log_set(log_text, NULL);
    CHILD_CHECK(opd_finish() == 0 && logs == 0);
    opd_release(opd_keep(floats(1)));
    CHILD_CHECK(opd_finish() == 0 && logs == 0);
    kept[0] = opd_keep(floats(1000));
    first_line = __LINE__ - 1;
    opd_tensor *w = opd_tensor_set_requires_grad(floats(5000), true);
    for (int i = 1; i < 3; i++) {
        kept[i] = opd_keep(opd_exp(w));
        second_line = __LINE__ - 1;
    }
    CHILD_CHECK(opd_finish() == 0 && logs == 1);
    CHILD_CHECK(strncmp(logged, "3 tensors were kept and not released (opd_release, or opd_assign with NULL): 42.97 KB\n  2 tensors, 39.06 KB, kept at ", 116) == 0);
    (void)snprintf(want, sizeof want, "test_kept.c:%d; 2 of them with autograd graphs, which hold more memory\n  1 tensor, 3.91 KB, kept at ", second_line);
    CHILD_CHECK(strstr(logged, want) != NULL);
    (void)snprintf(want, sizeof want, "test_kept.c:%d", first_line);
    CHILD_CHECK(strcmp(logged + strlen(logged) - strlen(want), want) == 0);
    CHILD_CHECK(opd_finish() == 0 && logs == 1);  /* said once */
    for (int i = 0; i < 3; i++) { opd_release(kept[i]); }
    CHILD_CHECK(opd_finish() == 0 && logs == 1);
    /* many places: the largest first, and a number for the others; without a place: another language's */
    static const char *const places[8] = {"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", ""};
    for (int i = 0; i < 8; i++) { more[i] = opd_keep_at(floats(10 * (i + 1)), places[i]); }
    (void)opd_fail(OPD_ERROR_USER, "an error");
    CHILD_CHECK(opd_finish() == 1 && logs == 3);
    CHILD_CHECK(strstr(logged, "7 tensors were kept and not released (opd_release, or opd_assign with NULL): 1.09 KB\n  1 tensor, 280 B, kept at g:1\n  1 tensor, 240 B, kept at f:1\n") != NULL);
    CHILD_CHECK(strstr(logged, "kept at c:1\n  and more at 2 other places") != NULL);
    for (int i = 0; i < 8; i++) { opd_release(more[i]); }
    /* a thread that is still running may release the tensors, so nothing is said */
    kept[0] = opd_keep(floats(1));
    CHILD_CHECK(pthread_create(&id, NULL, waits, &ready) == 0);
    while (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) { (void)usleep(1000); }
    CHILD_CHECK(opd_finish() == 0 && logs == 3);
    __atomic_store_n(&ready, 2, __ATOMIC_RELEASE);
    CHILD_CHECK(pthread_join(id, NULL) == 0);
    CHILD_CHECK(opd_finish() == 0 && logs == 4);
    opd_release(kept[0]);
}
TEST(opd_finish_says_what_was_not_released) {
    opd_tensor *of_parent = opd_keep(floats(1));
    int status = -1;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        end_of_program();
        CHECK_CHILD_ENDS(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    opd_release(of_parent);
}
#endif

CHECK_MAIN()
