/* Files that are not trusted: no code from files, interruptions of runs, and limits of a thread.
   THREADED.  C ONLY: signal handlers and threads with C function types. */
#if !defined(_WIN32) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include "../../opdispatch.h"
#include "../check.h"
#include <math.h>
#include <signal.h>
#include <time.h>
#if !defined(_WIN32) && !defined(__wasm__)
#define PROCESSES
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#endif
#if !defined(OPD_NO_THREADS) && !defined(_WIN32)
#include <pthread.h>
#endif

static int64_t live(void) { return opd_memory_stats().live; }
static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

//-- no code from files ------------------------------------------------------------------------------------------------

#if defined(PROCESSES)
/* Tries all ways to load or compile code.  Each must fail with this error. */
static void every_way(opd_graph *graph) {
    const char *const files[] = {"none.c", NULL};
    CHECK(!opd_plugin_load("none.so"));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_plugin_load: machine code");
    CHECK(!opd_compile_and_load("none", files, NULL));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_compile_and_load: machine code");
    CHECK(!opd_compile_and_load_inline("none", "int none;", NULL));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_compile_and_load_inline: machine code");
    CHECK(!opd_graph_compile(graph, NULL));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_graph_compile: machine code");
    CHECK(!opd_program_compile(NULL, NULL));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_program_compile: machine code");
    CHECK(opd_code_forbidden(NULL));
    CHECK_OK();
    CHECK(opd_code_forbidden("who"));
    CHECK_ERROR(OPD_ERROR_FORBIDDEN, "who: machine code");
}
/* Runs `forbid`, which forbids code, and all ways to code in a process of their own. */
static void forbidden_apart(void (*forbid)(void)) {
    char folder[] = "/tmp/opd_trust.XXXXXX", cache[64];
    struct stat s;
    int status = 1;
    opd_graph *graph = opd_graph_new();
    CHECK_OR_RETURN(mkdtemp(folder) != NULL);
    (void)snprintf(cache, sizeof cache, "%s/opdispatch", folder);
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        CHECK(!opd_code_forbidden("before"));
        (void)setenv("XDG_CACHE_HOME", folder, 1);
        forbid();
        every_way(graph);
        (void)unsetenv("OPD_NO_CODE");
        every_way(graph);
        CHECK(stat(cache, &s) != 0);
        (void)fflush(stdout);
        CHECK_CHILD_ENDS(check_failures ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    (void)rmdir(cache);
    (void)rmdir(folder);
    opd_graph_free(graph);
}
static void by_environment(void) { (void)setenv("OPD_NO_CODE", "1", 1); }
static void by_another_value(void) { (void)setenv("OPD_NO_CODE", "no", 1); }
static void by_a_grandparent(void) {              /* a child of the process that forbids code */
    int status = 1;
    opd_code_forbid();
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) { return; }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}
static void by_both(void) {
    by_environment();
    opd_code_forbid();
}
#endif

TEST(code_forbidden) {
#if defined(PROCESSES) && !defined(OPD_NO_PLUGINS)
    forbidden_apart(opd_code_forbid);
    forbidden_apart(by_environment);
    forbidden_apart(by_another_value);
    forbidden_apart(by_a_grandparent);
    forbidden_apart(by_both);
#else
    SKIP("needs processes and plug-ins");
#endif
}
TEST(code_is_allowed_without_the_switch) {
#if defined(PROCESSES)
    for (int i = 0; i < 2; i++) {
        (void)setenv("OPD_NO_CODE", i ? "0" : "", 1);
        CHECK(!opd_code_forbidden("who"));
    }
    (void)unsetenv("OPD_NO_CODE");
#endif
    CHECK(!opd_code_forbidden("who"));
    CHECK_OK();
}

//-- interruptions -----------------------------------------------------------------------------------------------------

static int calls_made, stop_at;                   /* the operator trust::step interrupts when calls_made is stop_at */
static int k_step(opd_call *call) {
    if (++calls_made == stop_at) { (void)raise(SIGINT); }
    return opd_return_tensor(call, opd_neg(opd_arg_tensor(call, 0)));
}
OPD_LIBRARY(trust, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "step(Tensor self) -> Tensor";
    d.cpu = k_step;
    opd_define(lib, &d);
}
static void stopped(int number) {
    (void)signal(number, stopped);
    opd_interrupt();
}
static void step_ready(void) {
    opd_error_clear();
    calls_made = stop_at = 0;
    (void)signal(SIGINT, stopped);
}
static int three_steps(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    opd_op *const step = opd_find("trust::step");
    (void)user;
    (void)count;
    outputs[0] = OPD_CALL(step, OPD_CALL(step, OPD_CALL(step, inputs[0])));
    return 1;
}
TEST(interrupt_graph) {
    OPD_SCOPED;
    step_ready();
    opd_tensor *x = opd_full(OPD_INTS(3), opd_value_double(2), OPD_FLOAT32), *out;
    opd_graph *graph = opd_graph_trace(three_steps, NULL, &x, 1, NULL);
    CHECK_OR_RETURN(graph != NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
    const int64_t before = live();
    calls_made = 0;
    stop_at = 2;
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    CHECK(out == NULL);
    CHECK_INT(calls_made, 2);
    CHECK(live() <= before);
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), -1);     /* until it is taken back */
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    CHECK_INT(calls_made, 2);
    CHECK_NEAR(opd_item_f64(opd_sum(x)), 6, 0);              /* single calls are not interrupted */
    CHECK(opd_interrupted());
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    opd_interrupt_clear();
    CHECK(!opd_interrupted());
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
    CHECK_NEAR(opd_item_f64(opd_sum(out)), -6, 0);
    opd_graph_free(graph);
}
TEST(interrupt_fold) {
    OPD_SCOPED;
    step_ready();
    opd_graph *graph = opd_graph_new();
    opd_graph_value *value = opd_graph_constant(graph, opd_value_tensor(opd_zeros(OPD_INTS(3), OPD_FLOAT32)));
    for (int i = 0; i < 3; i++) { (void)opd_graph_call(graph, "trust::step", &value, 1, &value, 1); }
    (void)opd_graph_output(graph, &value, 1, false);
    stop_at = 2;
    CHECK_INT(opd_graph_fold(graph), -1);
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    CHECK_INT(calls_made, 2);
    opd_interrupt_clear();
    CHECK(opd_graph_fold(graph) > 0);
    CHECK_INT(calls_made, 3);
    opd_graph_free(graph);
}
static opd_tensor *hook_stops(opd_tensor *grad, void *user) {
    (void)grad;
    (void)user;
    opd_interrupt();
    return NULL;
}
TEST(interrupt_backward) {
    OPD_SCOPED;
    opd_backward_options options;
    opd_tensor *x = opd_tensor_set_requires_grad(opd_full(OPD_INTS(3), opd_value_double(2), OPD_FLOAT32), true);
    opd_tensor *y = opd_exp(opd_mul(x, x)), *z = opd_sum(y);
    const int64_t hook = opd_tensor_hook_add(y, hook_stops, NULL, NULL);
    memset(&options, 0, sizeof options);
    options.retain_graph = true;
    CHECK_INT(opd_backward_with(&z, 1, &options), -1);
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    CHECK(!opd_tensor_grad(x));
    opd_interrupt_clear();
    const int64_t before = live();
    CHECK_INT(opd_backward_with(&z, 1, &options), -1);
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    CHECK(live() <= before);
    opd_interrupt_clear();
    (void)opd_hook_remove(hook);
    CHECK_INT(opd_backward(z), 0);                /* the graph is not used up */
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(x), 0, 0)), 4 * exp(4), 1e-3);
}
TEST(interrupt_program) {
#if defined(OPD_NO_PROGRAMS)
    SKIP("no programs");
#else
    OPD_SCOPED;
    opd_program *program = opd_program_load(check_path("golden/programs/branch.pt2"), NULL);
    opd_tensor_file *file = opd_tensor_file_open(check_path("golden/programs/branch.npz"));
    opd_value inputs[8], outputs[8];
    const int count = opd_program_ninputs(program);
    char name[16];
    CHECK_OR_RETURN(program && file && count <= 8);
    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "in%d", i);
        inputs[i] = opd_value_tensor(opd_tensor_file_get(file, name));
    }
    CHECK(opd_program_run(program, inputs, count, outputs, 8) > 0);
    CHECK_OK();
    opd_interrupt();
    CHECK_INT(opd_program_run(program, inputs, count, outputs, 8), -1);
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    opd_interrupt_clear();
    CHECK(opd_program_run(program, inputs, count, outputs, 8) > 0);
    opd_tensor_file_close(file);
    opd_program_free(program);
#endif
}

#if !defined(OPD_NO_SCRIPTS)
static const char endless[] = "def f(x: Tensor) -> Tensor:\n    while True:\n        x = x + 1\n    return x\n"
    "def g(x: Tensor) -> int:\n    n = 0\n    while True:\n        n = n + 1\n    return n\n";
#if !defined(OPD_NO_THREADS) && !defined(_WIN32)
static void *interrupts_soon(void *arg) {
    const struct timespec wait = {0, 20000000};
    (void)nanosleep(&wait, NULL);
    opd_interrupt();
    return arg;
}
#endif
TEST(interrupt_script_from_a_thread) {
#if !defined(OPD_NO_THREADS) && !defined(_WIN32)
    static const char *const names[] = {"f", "g"};
    OPD_SCOPED;
    opd_script *script = opd_script_compile(endless, NULL);
    const opd_value x = opd_value_tensor(opd_zeros(OPD_INTS(2), OPD_FLOAT32));
    opd_value result;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        const int64_t before = i ? live() : 0;
        CHECK_INT(pthread_create(&thread, NULL, interrupts_soon, NULL), 0);
        CHECK_INT(opd_script_run(script, names[i], &x, 1, &result), -1);
        CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
        (void)pthread_join(thread, NULL);
        opd_interrupt_clear();
        CHECK(!i || live() <= before + 4096);     /* the method's graph is compiled by the first run */
    }
    opd_script_free(script);
#else
    SKIP("needs threads");
#endif
}

//-- limits ------------------------------------------------------------------------------------------------------------

static opd_limits limits_of(double time, int64_t bytes, int64_t nodes, int depth) {
    opd_limits limits;
    limits.seconds = time;
    limits.bytes = bytes;
    limits.nodes = nodes;
    limits.depth = depth;
    return limits;
}
TEST(limit_seconds) {
    static const char *const names[] = {"f", "g"};
    OPD_SCOPED;
    const opd_limits limits = limits_of(0.02, 0, 0, 0);
    opd_script *script = opd_script_compile(endless, NULL);
    const opd_value x = opd_value_tensor(opd_zeros(OPD_INTS(2), OPD_FLOAT32));
    opd_value result;
    for (int i = 0; i < 2; i++) {
        const double begin = seconds();
        opd_limits_set(&limits);
        CHECK_INT(opd_script_run(script, names[i], &x, 1, &result), -1);
        CHECK_ERROR(OPD_ERROR_LIMIT, "the time limit of 0.02 seconds");
        CHECK(seconds() - begin < 1);
        CHECK_INT(opd_script_run(script, names[i], &x, 1, &result), -1);
        CHECK_ERROR(OPD_ERROR_LIMIT, "the time limit of 0.02 seconds");
        opd_limits_set(NULL);
    }
    opd_script_free(script);
}
/* The text of a value with 2^40 parts. */
TEST(limit_seconds_of_texts) {
    const opd_limits limits = limits_of(0.02, 0, 0, 0);
    OPD_SCOPED;
    opd_script *script = opd_script_compile("def f(x: int) -> str:\n    a: Any = x\n    for i in range(40):\n        a = (a, a)\n"
                                            "    return str(a)\n", NULL);
    const opd_value x = opd_value_int(1);
    opd_value result;
    const double begin = seconds();
    opd_limits_set(&limits);
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), -1);
    CHECK_ERROR(OPD_ERROR_LIMIT, "the time limit of 0.02 seconds");
    opd_limits_set(NULL);
    CHECK(seconds() - begin < 1);
    opd_script_free(script);
}
/* An archive whose lists have 2^40 elements, because each list contains the one before it twice. */
TEST(limit_seconds_of_shared_lists) {
#if defined(PROCESSES)
    const opd_limits limits = limits_of(0.05, 0, 0, 0);
    char path[] = "/tmp/opd_trust.XXXXXX", text[8000];
    const int fd = mkstemp(path);
    OPD_SCOPED;
    int length = snprintf(text, sizeof text, "class M(nn.Module):\n    def __init__(self):\n        self.l = torch.jit.annotate(");
    for (int i = 0; i < 40; i++) { length += snprintf(text + length, sizeof text - (size_t)length, "List["); }
    length += snprintf(text + length, sizeof text - (size_t)length, "int");
    for (int i = 0; i < 40; i++) { length += snprintf(text + length, sizeof text - (size_t)length, "]"); }
    length += snprintf(text + length, sizeof text - (size_t)length,
                       ", [])\n    def forward(self, x: int) -> int:\n        a1 = [x, x]\n");
    for (int i = 2; i <= 40; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, "        a%d = [a%d, a%d]\n", i, i - 1, i - 1);
    }
    (void)snprintf(text + length, sizeof text - (size_t)length, "        self.l = a40\n        return x\n");
    opd_script *script = opd_script_compile(text, NULL);
    const opd_value x = opd_value_int(1);
    opd_value result;
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
    CHECK_INT(opd_script_save(script, path), 0);
    opd_script_free(script);
    opd_limits_set(&limits);
    CHECK(!opd_script_load(path));
    CHECK_ERROR(OPD_ERROR_LIMIT, "the time limit of 0.05 seconds");
    opd_limits_set(NULL);
    if (fd >= 0) { close(fd); }
    (void)remove(path);
#else
    SKIP("needs files");
#endif
}
/* Reads the text as JSON, as a script, and as a script that also runs, with these limits. */
static opd_code reads(const opd_limits *limits, const char *json, const char *script) {
    opd_limits_set(limits);
    if (json) { opd_json_free(opd_json_parse(json, strlen(json))); }
    if (script) { opd_script_free(opd_script_compile(script, NULL)); }
    opd_limits_set(NULL);
    const opd_code code = opd_error_code();
    opd_error_clear();
    return code;
}
TEST(limit_nodes) {
    static const char json[] = "[1, 2, 3, 4, 5, 6, 7, 8]";
    static const char script[] = "def f(x: Tensor) -> Tensor:\n    return x + x * x + x\n";
    opd_limits limits = limits_of(0, 0, 9, 0);
    CHECK_INT(reads(&limits, json, NULL), OPD_OK);
    limits.nodes = 8;
    CHECK_INT(reads(&limits, json, NULL), OPD_ERROR_LIMIT);
    limits.nodes = 5;
    CHECK_INT(reads(&limits, NULL, script), OPD_ERROR_LIMIT);
    limits.nodes = 500;
    CHECK_INT(reads(&limits, NULL, script), OPD_OK);
}
TEST(limit_nodes_of_all_files) {
    static const char *const names[] = {"a", "b", "c"};
    const opd_value values[3] = {opd_value_int(1), opd_value_int(2), opd_value_int(3)};
    const opd_limits limits = limits_of(0, 0, 2, 0);
    char checkpoint[] = "/tmp/opd_trust.XXXXXX";
#if defined(PROCESSES)
    const int fd = mkstemp(checkpoint);
    CHECK_OR_RETURN(fd >= 0 && close(fd) == 0);
#else
    (void)snprintf(checkpoint, sizeof checkpoint, "opd_trust.pt");
#endif
    CHECK_INT(opd_checkpoint_file_save(checkpoint, names, values, 3), 0);
    for (int i = 0; i < 3; i++) {
        opd_limits_set(&limits);
        if (i == 0) { opd_tensor_file_close(opd_tensor_file_open(checkpoint)); }
        if (i == 1) { opd_script_free(opd_script_load(check_path("golden/scripts/mlp.pt"))); }
#if !defined(OPD_NO_PROGRAMS)
        if (i == 2) { opd_program_free(opd_program_load(check_path("golden/programs/branch.pt2"), NULL)); }
#else
        if (i == 2) { break; }
#endif
        opd_limits_set(NULL);
        CHECK_ERROR(OPD_ERROR_LIMIT, "the limit for the number of values and nodes is reached");
    }
    opd_limits_set(NULL);
    (void)remove(checkpoint);
}
/* At whatever node the limit is reached, the error says so, and nothing is left out. */
static const char whole_script[] = "class C(object):\n    def __init__(self, n: int):\n        self.n = n\n"
    "    def twice(self) -> int:\n        return 2 * self.n\n"
    "def f(x: Tensor, d: Dict[str, int]) -> Tensor:\n    names = [n for n in d.keys()]\n    total = 0\n"
    "    for key, value in d.items():\n        total += value\n    c = C(len(names))\n"
    "    return x * total + c.twice()\n";
static int read_with(int which, opd_script *script) {
    int rc = -1;
    OPD_SCOPED;
    if (which == 0) {
        opd_script *made = opd_script_compile(whole_script, NULL);
        rc = made && opd_script_graph(made, "f") ? 0 : -1;
        opd_script_free(made);
    } else if (which == 1) {
        opd_script *made = opd_script_load(check_path("golden/scripts/attributes.pt"));
        for (int i = 0; made && opd_ok() && i < opd_script_count(made); i++) {
            (void)opd_script_graph(made, opd_script_name(made, i));
        }
        rc = made && opd_ok() ? 0 : -1;
        opd_script_free(made);
    } else if (which == 2) { rc = opd_file_kind_of(check_path("golden/detection.npz")) == OPD_FILE_NONE ? -1 : 0; }
    else { rc = opd_script_operator(script, 0, NULL, NULL) ? 0 : -1; }
    return rc;
}
TEST(limit_nodes_at_each_node) {
    for (int which = 0; which < 4; which++) {
        for (int64_t nodes = 1, rc = -1; rc && nodes < 100000; nodes += 1 + nodes / 24) {
            const opd_limits limits = limits_of(0, 0, nodes, 0);
            opd_script *script = which == 3 ? opd_script_compile(whole_script, NULL) : NULL;
            opd_limits_set(&limits);
            rc = read_with(which, script);
            opd_limits_set(NULL);
            if (rc) { CHECK_ERROR(OPD_ERROR_LIMIT, "the limit for the number of values and nodes is reached"); }
            CHECK_OK();
            opd_error_clear();
            if (which == 3) { CHECK_INT(read_with(which, script), 0); }      /* not as if there were no operators */
            opd_script_free(script);
        }
    }
}
TEST(limit_depth) {
    opd_limits limits = limits_of(0, 0, 0, 3);
    CHECK_INT(reads(&limits, "[[[1]]]", NULL), OPD_OK);
    CHECK_INT(reads(&limits, "[[[[1]]]]", NULL), OPD_ERROR_FILE);
    CHECK_INT(reads(NULL, "[[[[1]]]]", NULL), OPD_OK);
    limits.depth = 5;
    CHECK_INT(reads(&limits, NULL, "def f(x: int) -> int:\n    return ((((((((x))))))))\n"), OPD_ERROR_SCHEMA);
    CHECK_INT(reads(NULL, NULL, "def f(x: int) -> int:\n    return ((((((((x))))))))\n"), OPD_OK);
}
TEST(limit_bytes) {
    OPD_SCOPED;
    const opd_limits limits = limits_of(0, 1 << 20, 0, 0);
    opd_script *script = opd_script_compile("def f(x: Tensor) -> Tensor:\n    while True:\n        x = torch.cat([x, x])\n"
                                            "    return x\n", NULL);
    opd_value x = opd_value_tensor(opd_zeros(OPD_INTS(1000), OPD_FLOAT32)), result;
    CHECK_OR_RETURN(script != NULL);
    opd_limits_set(&limits);
    CHECK(!opd_zeros(OPD_INTS(1 << 20), OPD_FLOAT32));
    CHECK_ERROR(OPD_ERROR_MEMORY, "limit for the memory of this thread");
    for (int i = 0; i < 20; i++) { OPD_SCOPE { CHECK(opd_zeros(OPD_INTS(100000), OPD_FLOAT32) != NULL); } }    /* freed memory does
                                                                                                      not count */
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), -1);
    CHECK_ERROR(OPD_ERROR_MEMORY, "limit for the memory of this thread");
    opd_limits_set(NULL);
    CHECK(opd_zeros(OPD_INTS(1 << 20), OPD_FLOAT32) != NULL);
    opd_script_free(script);
}
#endif
TEST(limits_left) {
    opd_limits limits = {3, 1000000, 50, 7}, left;
    CHECK_INT(opd_limits_left().nodes, 0);
    opd_limits_set(&limits);
    opd_json_free(opd_json_parse("[1, 2]", 6));
    left = opd_limits_left();
    CHECK(left.seconds > 0 && left.seconds <= 3);
    CHECK(left.bytes > 0 && left.bytes <= 1000000);
    CHECK_INT(left.nodes, 47);
    CHECK_INT(left.depth, 7);
    opd_limits_set(NULL);
    left = opd_limits_left();
    CHECK(left.seconds == 0 && left.bytes == 0 && left.nodes == 0 && left.depth == 0);
    limits.seconds = -1;
    limits.bytes = limits.nodes = INT64_MAX;
    opd_limits_set(&limits);
    left = opd_limits_left();
    CHECK(left.seconds == 0 && left.bytes > 0 && left.nodes == INT64_MAX - 1);
    opd_limits_set(NULL);
}
CHECK_MAIN()
