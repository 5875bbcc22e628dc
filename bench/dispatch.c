/* Measures operator calls, small tensors, autograd and kernels, beside an indirect call in C and beside libtorch.
   cc -O2 bench/dispatch.c -o bench_dispatch -lm -lpthread
   ./bench_dispatch [--quick] [--filter TEXT] [--compile] [--markdown] [--help]

   Everything runs on one thread, after a warm-up.  A time is in nanoseconds of processor time of this thread, unless
   the row says otherwise.  Each figure is the median of several rounds, and the best round is printed beside it.
   libtorch's figures come from the program bench/peers/torch_dispatch, or from the program that $OPD_TORCH_PEER names
   (the first comment of torch_dispatch.cpp has the build command).  Without this program, the columns of libtorch stay
   empty.  Compare only figures of one run, because the clock rate of a processor varies. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/wait.h>

//-- rows -------------------------------------------------------------------------------------------------------------

static bool quick;
static const char *filter = "", *program;

/* A row of the table.  A target is met if the figure is at most `most`, or at most `most_calls` indirect calls, or
   at least `least`. */
typedef struct row {
    const char *key, *what;
    const char *unit;                             /* NULL: ns */
    const char *peer;                             /* name of libtorch's figure */
    double ops;   /* the number of operations in the timed code (0: one); figures are for one operation */
    double peer_ops;                              /* the same for libtorch's figure */
    double most, most_calls, least;
    double kib;                                   /* size of code and constants, for the last column in Markdown */
    const char *note;                             /* written at the end */
} row;
#define ROW(key_, ...) ((row){.key = key_, .what = __VA_ARGS__})

enum { MAX_ROUNDS = 64 };
typedef struct samples { int n; double v[MAX_ROUNDS]; } samples;

static double clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
/* Returns the processor time of this thread, which does not include the time of other programs. */
static double now(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
static double wall(void) { return clock_ns(CLOCK_MONOTONIC); }
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static void add_sample(samples *s, double v) { if (s->n < MAX_ROUNDS) { s->v[s->n++] = v; } }
static double median(samples *s) {
    qsort(s->v, (size_t)s->n, sizeof s->v[0], compare);
    return s->n ? s->v[s->n / 2] : 0;
}
static bool wanted(row r) { return strstr(r.key, filter) || strstr(r.what, filter); }
static bool wanted_key(const char *key) { return strstr(key, filter) != NULL; }

static double indirect_ns = 1;                    /* from the latest measurement */
static int missed;

typedef struct peer_figure { char name[40]; double value; } peer_figure;
static peer_figure peers[128];
static int npeers;

static double peer_of(row r) {
    for (int i = 0; r.peer && i < npeers; i++) {
        if (!strcmp(peers[i].name, r.peer)) { return peers[i].value / (r.peer_ops > 0 ? r.peer_ops : 1); }
    }
    return 0;
}

static const char *number(char *buf, double v) {
    if (v <= 0) { snprintf(buf, 16, "%s", v < 0 ? "" : "0"); }
    else { snprintf(buf, 16, "%.*f", v < 1 ? 3 : v < 10 ? 2 : v < 1000 ? 1 : 0, v); }
    return buf;
}

static bool markdown;                             /* prints in the form of bench/tables */
static const char *next_heading;                 /* printed before the first row below it */
static const char *last_column = "libtorch";      /* in Markdown */
static void heading(const char *text) { next_heading = text; }
static void print_heading(void) {
    if (!next_heading) { return; }
    if (markdown) { printf("\n| %s | here | target | %s |\n|---|---|---|---|\n", next_heading, last_column); }
    else {
        printf("\n%-64s %8s %8s %-8s%8s %8s %7s  target\n", next_heading, "median", "best", "", "indirect",
               "libtorch", "ratio");
    }
    next_heading = NULL;
}

/* Prints the row in Markdown: the median, the target, whether it is missed, and libtorch's figure. */
static void report_markdown(row r, double v, bool met, bool best_met, double peer) {
    const char *unit = r.unit ? r.unit : "ns", *what = r.what + strspn(r.what, " ");
    char b[3][16];
    printf("| %s%s | %s %s |", what == r.what ? "" : "&nbsp; ", what, number(b[0], v), unit);
    if (r.most > 0) { printf(r.most < 1000 ? " at most %.3g" : " at most %.0f", r.most); }
    if (r.most_calls > 0) { printf(" or %g indirect calls", r.most_calls); }
    if (r.least > 0) { printf(" at least %.3g", r.least); }
    if ((r.most > 0 || r.least > 0) && r.note) { printf(" %s", r.note); }
    if ((r.most > 0 || r.least > 0) && !met) { printf("%s", best_met ? ", missed but by the best" : ", **missed**"); }
    if (r.kib > 0) { printf(" | %.0f KiB |\n", r.kib); }
    else if (peer > 0) { printf(" | %s %s |\n", number(b[1], peer), unit); }
    else { puts(" | |"); }
}

/* Prints a row.  The ratio is libtorch's figure divided by ours (for GFLOP/s, ours divided by libtorch's): above 1,
   ours is faster. */
static void report(row r, samples *s) {
    char b[5][16], target[80] = "";
    double v = median(s), best = s->v[r.least > 0 ? s->n - 1 : 0], peer = peer_of(r), calls = v / indirect_ns;
    bool met = (r.most > 0 && v <= r.most) || (r.most_calls > 0 && calls <= r.most_calls) ||
               (r.least > 0 && v >= r.least), best_met;
    if (r.most_calls > 0) { snprintf(target, sizeof target, "<= %g or %gx", r.most, r.most_calls); }
    else if (r.most > 0) { snprintf(target, sizeof target, "<= %.3g", r.most); }
    else if (r.least > 0) { snprintf(target, sizeof target, ">= %.3g", r.least); }
    best_met = (r.most > 0 && best <= r.most) || (r.least > 0 && best >= r.least);
    if (target[0]) {
        strcat(target, met ? " met" : best_met ? " MISSED (not by the best)" : " MISSED");
        missed += !met;
    }
    print_heading();
    if (markdown) { report_markdown(r, v, met, best_met, peer); return; }
    printf("%-64s %8s %8s %-8s%8s ", r.what, number(b[0], v), number(b[1], best), r.unit ? r.unit : "ns",
           number(b[2], r.unit || r.ops > 1000 ? -1 : calls));
    printf("%8s %7s  %s%s%s\n", number(b[3], peer > 0 ? peer : -1),
           number(b[4], peer > 0 ? (r.least > 0 ? v / peer : peer / v) : -1), target, target[0] && r.note ? " " : "",
           r.note ? r.note : "");
    fflush(stdout);
}
static void report_value(row r, double v) {
    samples s = {0};
    add_sample(&s, v);
    if (wanted(r)) { report(r, &s); }
}

static __attribute__((noinline)) int plain_function(void *a, void *b, int64_t c) {
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c));
    return 0;
}
static int (*volatile plain_pointer)(void *, void *, int64_t) = plain_function;

static double indirect_round(void) {
    int64_t n = 100000;
    double t = now();
    for (int64_t i = 0; i < n; i++) { plain_pointer(NULL, NULL, i); }
    return (now() - t) / (double)n;
}

/* Runs the code n times per round, and an indirect call in the same rounds.  Stores nanoseconds per run. */
#define MEASURE(s, n, ops, ...)                                                                                \
    do {                                                                                                       \
        samples indirect_ = {0};                                                                               \
        int64_t n_ = quick ? (n) / 10 + 1 : (n);                                                               \
        for (int round_ = -1; round_ < (quick ? 5 : 21); round_++) {                                           \
            double other_ = indirect_round(), t_ = now();                                                      \
            for (int64_t i_ = 0; i_ < n_; i_++) { __VA_ARGS__; }                                               \
            t_ = now() - t_;                                                                                   \
            if (round_ >= 0) { add_sample(&(s), t_ / (double)n_ / (ops)); add_sample(&indirect_, other_); }    \
        }                                                                                                      \
        indirect_ns = median(&indirect_);                                                                      \
    } while (0)
#define BENCH(row_, n, ...)                                                                                    \
    do {                                                                                                       \
        row r_ = row_;                                                                                         \
        samples s_ = {0};                                                                                      \
        if (!wanted(r_)) { break; }                                                                            \
        MEASURE(s_, n, r_.ops > 0 ? r_.ops : 1, __VA_ARGS__);                                                  \
        report(r_, &s_);                                                                                       \
    } while (0)

//-- libtorch's figures -----------------------------------------------------------------------------------------------

static void run_peer(void) {
    const char *path = getenv("OPD_TORCH_PEER");
    char command[600], line[200];
    FILE *f;
    if (!path) { path = "./bench/peers/torch_dispatch"; }
    if (access(path, X_OK)) {
        printf("libtorch: left out, no program %s (bench/peers/torch_dispatch.cpp says how to build it)\n", path);
        return;
    }
    snprintf(command, sizeof command, "'%s'%s", path, quick || filter[0] ? " --quick" : "");
    f = popen(command, "r");
    while (f && fgets(line, sizeof line, f)) {
        char *tab = strchr(line, '\t');
        if (line[0] == '#') { printf("libtorch: %s", line + 2); }
        if (!tab || npeers == 64 || tab - line >= 40) { continue; }
        *tab = 0;
        strcpy(peers[npeers].name, line);
        peers[npeers++].value = atof(tab + 1);
    }
    if (f) { pclose(f); }
}

//-- calls ------------------------------------------------------------------------------------------------------------

static int64_t autograd_calls;
static int nothing_kernel(opd_call *call) { (void)call; return 0; }
static int self_kernel(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int below_kernel(opd_call *call) {
    autograd_calls++;
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}
OPD_LIBRARY(bench, lib) {
    opd_def(lib, "noop(Tensor self, Tensor other, int n) -> ()");
    opd_def(lib, "noop_(Tensor(a!) self, Tensor other, int n) -> Tensor(a!)");
    opd_def(lib, "noop2(Tensor self, Tensor other, int n) -> Tensor");
    opd_def(lib, "noop_ad(Tensor self, Tensor other, int n) -> ()");
    opd_def(lib, "noop2_ad(Tensor self, Tensor other, int n) -> Tensor");
}
OPD_LIBRARY_IMPL(bench, CPU, lib) {
    opd_impl(lib, "noop", nothing_kernel);
    opd_impl(lib, "noop_", self_kernel);
    opd_impl(lib, "noop2", self_kernel);
    opd_impl(lib, "noop_ad", nothing_kernel);
    opd_impl(lib, "noop2_ad", self_kernel);
}
OPD_LIBRARY_IMPL(bench, Autograd, lib) {
    opd_impl(lib, "noop_ad", below_kernel);
    opd_impl(lib, "noop2_ad", below_kernel);
}

static int64_t observed;
static void *observed_begin(const opd_event *event, void *user) { (void)event; (void)user; observed++; return NULL; }
static void observed_end(const opd_event *event, void *context, void *user) {
    (void)event; (void)context; (void)user;
    observed++;
}

/* Registers n operators with three kernels each, and undoes it. */
static void register_many(int n) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "many", NULL, __FILE__, __LINE__);
    for (int i = 0; i < n; i++) {
        char schema[80];
        snprintf(schema, sizeof schema, "op%d(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", i);
        opd_def(lib, schema);
        *strchr(schema, '(') = 0;
        opd_impl_key(lib, schema, "CPU", self_kernel, NULL, NULL);
        opd_impl_key(lib, schema, "Meta", self_kernel, NULL, NULL);
        opd_impl_key(lib, schema, "Autograd", self_kernel, NULL, NULL);
    }
    opd_library_close(lib);
}

/* The same calls with a user key in the thread's included set: first with only a fallthrough at this key, then with a
   mode. */
static int mode_kernel(opd_call *call) {
    return opd_redispatch(call, opd_keyset_remove(opd_call_keys(call), OPD_F_USER_7));
}
static void bench_user_keys(opd_op *noop, opd_tensor *x, opd_tensor *y) {
    opd_library *all = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_USER_7), __FILE__, __LINE__);
    opd_key_guard on = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_7));
    opd_value rets[1];
    opd_fallback(all, OPD_FALLTHROUGH);
    BENCH(ROW("noop_user_key", "noop with a user key whose kernel is a fallthrough", .most = 6, .most_calls = 4), 200000,
          OPD_CALL_N(noop, rets, x, y, 3));
    opd_library_close(all);
    all = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_USER_7), __FILE__, __LINE__);
    opd_fallback(all, mode_kernel);
    BENCH(ROW("noop_mode", "noop through a mode at a user key"), 200000, OPD_CALL_N(noop, rets, x, y, 3));
    opd_keys_restore(on);
    opd_library_close(all);
}

static void bench_calls(void) {
    opd_op *noop = opd_find("bench::noop"), *noop_ = opd_find("bench::noop_"), *noop2 = opd_find("bench::noop2");
    opd_op *noop_ad = opd_find("bench::noop_ad"), *noop2_ad = opd_find("bench::noop2_ad");
    const char *schema = "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    static const char one_tensor[] = "(libtorch's takes one tensor)";
    opd_value rets[1];
    int64_t observer;
    OPD_SCOPED;
    opd_tensor *x = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    heading("calls: two tensors and an int");
    BENCH(ROW("indirect", "indirect call of a C function"), 200000, plain_pointer(x, y, 3));
    BENCH(ROW("noop", "noop: returns nothing", .peer = "noop", .most = 6, .most_calls = 4, .note = one_tensor), 200000,
          OPD_CALL_N(noop, rets, x, y, 3));
    observer = opd_observer_add_local(&(opd_observer){.begin = observed_begin, .end = observed_end});
    opd_observer_enable(observer, false);
    BENCH(ROW("noop_observer_off", "noop with an observer that is switched off", .most = 6, .most_calls = 4), 200000,
          OPD_CALL_N(noop, rets, x, y, 3));
    opd_observer_enable(observer, true);
    BENCH(ROW("noop_observed", "noop with an observer that counts"), 50000, OPD_CALL_N(noop, rets, x, y, 3));
    opd_observer_remove(observer);
    observer = opd_observer_add_local(
        &(opd_observer){.begin = observed_begin, .end = observed_end, .sampling = 0.001});
    BENCH(ROW("noop_sampled", "noop with an observer that sees one call in 1,000"), 200000, OPD_CALL_N(noop, rets, x, y, 3));
    opd_observer_remove(observer);
    BENCH(ROW("noop_", "noop_: returns the in-place argument", .most = 6, .most_calls = 4), 200000,
          OPD_CALL_N(noop_, rets, x, y, 3));
    BENCH(ROW("noop2", "noop2: retains and returns an argument", .peer = "noop2", .most = 13, .most_calls = 9,
              .ops = 1000), 200,
          OPD_SCOPE { for (int k = 0; k < 1000; k++) { OPD_CALL(noop2, x, y, 3); } });
    BENCH(ROW("noop_autograd", "noop through an Autograd kernel that redispatches", .peer = "noop_autograd", .most = 10,
              .most_calls = 7, .note = one_tensor),
          200000, OPD_CALL_N(noop_ad, rets, x, y, 3));
    BENCH(ROW("noop2_autograd", "noop2 through an Autograd kernel that redispatches", .peer = "noop2_autograd", .ops = 1000), 200,
          OPD_SCOPE { for (int k = 0; k < 1000; k++) { OPD_CALL(noop2_ad, x, y, 3); } });
    if (opd_key_define(OPD_F_USER_7, "BenchMode") != OPD_KEY_INVALID) { bench_user_keys(noop, x, y); }
    BENCH(ROW("find", "finding an operator by its name", .peer = "find"), 50000, opd_find("bench::noop"));
    BENCH(ROW("by_name", "noop, found by its name and called", .most = 30), 50000, OPD_CALL_N(opd_find("bench::noop"), rets, x, y, 3));
    BENCH(ROW("parse", "parsing the schema of add"), 5000, opd_schema_free(opd_schema_parse(schema)));
    BENCH(ROW("register", "registering an operator with three kernels, and removing it", .ops = 1000, .most = 3000), 1,
          register_many(1000));
    if (!filter[0] && !autograd_calls) { opd_fail(OPD_ERROR_USER, "the kernel at Autograd did not run"); }
}

/* The same operators in a plug-in, and calls from a plug-in.  The target is at most 2 ns more than in the program. */
static const char plugin_source[] =
    "#include \"opdispatch.h\"\n"
    "static int nothing(opd_call *call) { (void)call; return 0; }\n"
    "static int self(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }\n"
    "static int many(opd_call *call) {\n"
    "    static opd_op *noop;\n"
    "    opd_value rets[1];\n"
    "    int64_t i, n = opd_arg_int(call, 2);\n"
    "    for (i = 0; i < n; i++) {\n"
    "        opd_value v[3] = {opd_call_args(call)[0], opd_call_args(call)[1], opd_value_int(3)};\n"
    "        if (opd_call_all(OPD_OP(&noop, \"bench::noop\"), rets, v, 3)) { return -1; }\n"
    "    }\n"
    "    return 0;\n"
    "}\n"
    "OPD_LIBRARY(bench_plugin, lib) {\n"
    "    opd_def(lib, \"noop(Tensor self, Tensor other, int n) -> ()\"); opd_impl(lib, \"noop\", nothing);\n"
    "    opd_def(lib, \"noop2(Tensor self, Tensor other, int n) -> Tensor\"); opd_impl(lib, \"noop2\", self);\n"
    "    opd_def(lib, \"many(Tensor self, Tensor other, int n) -> ()\"); opd_impl(lib, \"many\", many);\n"
    "}\n";
static int many_kernel(opd_call *call) {
    static opd_op *noop;
    opd_value rets[1];
    int64_t n = opd_arg_int(call, 2);
    for (int64_t i = 0; i < n; i++) {
        opd_value v[3] = {opd_call_args(call)[0], opd_call_args(call)[1], opd_value_int(3)};
        if (opd_call_all(OPD_OP(&noop, "bench::noop"), rets, v, 3)) { return -1; }
    }
    return 0;
}
OPD_LIBRARY_FRAGMENT(bench, lib) {
    opd_def(lib, "many(Tensor self, Tensor other, int n) -> ()");
    opd_impl(lib, "many", many_kernel);
}
static void bench_plugin(void) {
    static const char *const ours[] = {"bench::noop", "bench::noop2", "bench::many"};
    static const char *const theirs[] = {"bench_plugin::noop", "bench_plugin::noop2", "bench_plugin::many"};
    static const char *const what[][2] = {
        {"noop of the program", "noop of a plug-in"}, {"noop2 of the program", "noop2 of a plug-in"},
        {"noop called by a kernel of the program", "noop called by a kernel of a plug-in"}};
    opd_value rets[1];
    opd_plugin *plugin;
    OPD_SCOPED;
    opd_tensor *x = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    if (!wanted_key("plugin")) { return; }
    heading("calls and plug-ins");
    plugin = opd_compile_and_load_inline("bench_plugin", plugin_source, "-O2");
    if (!plugin) {
        printf("plug-ins: left out: %s\n", opd_error_message());
        opd_error_clear();
        return;
    }
    for (int k = 0; k < 3; k++) {
        const int n = k == 2 ? 1000 : 1;
        const int64_t times = k == 0 ? 200000 : k == 1 ? 100000 : 200;
        samples own = {0}, other = {0};
        opd_op *op = opd_find(ours[k]), *plug = opd_find(theirs[k]);
        MEASURE(own, times, n, OPD_SCOPE { OPD_CALL_N(op, rets, x, y, n); });
        MEASURE(other, times, n, OPD_SCOPE { OPD_CALL_N(plug, rets, x, y, n); });
        report(ROW("plugin", what[k][0]), &own);
        report(ROW("plugin", what[k][1], .most = median(&own) + 2, .note = "(2 ns more)"), &other);
    }
    opd_plugin_unload(plugin);
}

//-- small tensors ----------------------------------------------------------------------------------------------------

static void bench_small(void) {
    bool was;
    OPD_SCOPED;
    opd_tensor *a = opd_ones(OPD_INTS(1), OPD_FLOAT32), *b = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    opd_tensor *w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
    opd_op *add_out = opd_find("aten::add.out");
    heading("add of one element, and the release of its result");
    BENCH(ROW("scope", "an empty scope (most rows below open one)"), 50000, OPD_SCOPE { });
    was = opd_grad_mode_set(false);
    BENCH(ROW("add1_inference", "add with grad mode off", .peer = "add1_inference", .most = 40), 50000,
          OPD_SCOPE { opd_add(w, b); });
    opd_grad_mode_set(was);
    BENCH(ROW("add1_normal", "add of tensors that do not require grad", .peer = "add1_normal", .most = 40), 50000,
          OPD_SCOPE { opd_add(a, b); });
    BENCH(ROW("add1_many", "the same, with 1,000 calls in one scope", .peer = "add1_normal", .ops = 1000), 50,
          OPD_SCOPE { for (int k = 0; k < 1000; k++) { opd_add(a, b); } });
    BENCH(ROW("add1_out", "add into an existing tensor (out=)", .peer = "add1_out"), 50000, OPD_CALL(add_out, a, b, OPD_DEFAULT, a));
    BENCH(ROW("empty16", "making an empty tensor of 16 elements", .peer = "empty16"), 50000,
          OPD_SCOPE { opd_empty(OPD_INTS(16), OPD_FLOAT32); });
    BENCH(ROW("add1_recording", "add that autograd records", .peer = "add1_recording", .most = 90), 50000,
          OPD_SCOPE { opd_add(w, b); });
    OPD_DUAL_LEVEL {
        opd_tensor *da = opd_dual_new(a, b), *db = opd_dual_new(b, a);
        BENCH(ROW("add1_open", "add while a level of forward mode is open", .peer = "add1_open"), 50000, OPD_SCOPE { opd_add(a, b); });
        BENCH(ROW("add1_dual", "add of dual tensors (values with tangents)", .peer = "add1_dual"), 20000, OPD_SCOPE { opd_add(da, db); });
    }
}

/* The cost of an autocast region: for an operator that autocast does not change, for one whose arguments already
   have the dtype, and for one with a weight. */
static void bench_autocast(void) {
    OPD_SCOPED;
    opd_tensor *a = opd_ones(OPD_INTS(1, 1), OPD_FLOAT32), *low = opd_to_dtype(a, OPD_BFLOAT16);
    opd_tensor *w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1, 1), OPD_FLOAT32), true);
    opd_tensor *low_w = opd_tensor_set_requires_grad(opd_detach(low), true);
    samples add = {0}, mm = {0}, recorded = {0};
    heading("autocast, one element");
    if (!wanted_key("autocast")) { return; }
    MEASURE(add, 50000, 1, OPD_SCOPE { opd_add(a, a); });
    MEASURE(mm, 20000, 1, OPD_SCOPE { opd_mm(low, low); });
    MEASURE(recorded, 20000, 1, OPD_SCOPE { opd_mm(low, low_w); });
    BENCH(ROW("autocast_region", "beginning and ending a region"), 50000, OPD_AUTOCAST(OPD_CPU) { });
    OPD_AUTOCAST(OPD_CPU) {
        report(ROW("autocast_add_outside", "add, outside"), &add);
        BENCH(ROW("autocast_add", "  inside", .most = 1.1 * median(&add), .note = "(1.1 times)"), 50000,
              OPD_SCOPE { opd_add(a, a); });
        report(ROW("autocast_mm_outside", "mm of bfloat16 tensors, outside"), &mm);
        BENCH(ROW("autocast_mm", "  inside"), 20000, OPD_SCOPE { opd_mm(low, low); });
        report(ROW("autocast_weight_outside", "recorded mm of a bfloat16 tensor and a bfloat16 weight, outside"), &recorded);
        BENCH(ROW("autocast_weight", "  the same inside, with a float32 weight whose cast is cached"), 20000,
              OPD_SCOPE { opd_mm(low, w); });
        BENCH(ROW("autocast_cast", "mm of two float32 tensors inside, both cast"), 20000,
              OPD_SCOPE { opd_mm(a, a); });
    }
}

//-- autograd: chains of operators on one element ---------------------------------------------------------------------

static opd_tensor *link_mul(opd_tensor *y, opd_tensor *w) { return opd_mul(y, w); }
static opd_tensor *link_add(opd_tensor *y, opd_tensor *w) { return opd_add(y, w); }
static opd_tensor *link_exp(opd_tensor *y, opd_tensor *w) { (void)w; return opd_exp(y); }
static opd_tensor *link_tanh(opd_tensor *y, opd_tensor *w) { (void)w; return opd_tanh(y); }
static opd_tensor *link_sigmoid(opd_tensor *y, opd_tensor *w) { (void)w; return opd_sigmoid(y); }
static opd_tensor *link_clamp(opd_tensor *y, opd_tensor *w) { (void)w; return opd_clamp(y, OPD_V(-1), OPD_V(2)); }
static opd_tensor *link_view(opd_tensor *y, opd_tensor *w) { (void)w; return opd_view(y, OPD_INTS(1)); }
static opd_tensor *link_slice(opd_tensor *y, opd_tensor *w) { (void)w; return opd_slice(y, 0, OPD_NONE, OPD_NONE, 1); }
static opd_tensor *link_expand(opd_tensor *y, opd_tensor *w) { (void)w; return opd_expand(y, OPD_INTS(1)); }
/* Multiplies y in place, or into a new tensor if y is a leaf, which must not be written. */
static opd_tensor *link_mul_(opd_tensor *y, opd_tensor *w) {
    static opd_op *op;
    return opd_tensor_is_leaf(y) ? opd_mul(y, w) : OPD_CALL(OPD_OP(&op, "aten::mul_.Tensor"), y, w);
}
static opd_tensor *link_mul_view(opd_tensor *y, opd_tensor *w) {
    return opd_tensor_is_leaf(y) ? opd_mul(y, w) : link_mul_(opd_slice(y, 0, OPD_NONE, OPD_NONE, 1), w) ? y : NULL;
}

typedef opd_tensor *(*link_fn)(opd_tensor *, opd_tensor *);
/* Applies the operator n times, beginning with a leaf x.  The caller owns the result. */
static opd_tensor *chain(link_fn link, opd_tensor *x, opd_tensor *w, int64_t n) {
    opd_tensor *y = opd_keep(x);
    for (int64_t i = 0; i < n && opd_ok(); i++) {
        opd_scope s = opd_scope_open();
        opd_assign(&y, link(y, w));
        opd_scope_close(&s);
    }
    return y;
}

static void bench_chain(int64_t n, bool w_grad) {
    samples forward = {0}, backward = {0}, release = {0};
    double peak = 0, count = (double)n;
    char base[40], what[3][64], key[4][64];
    snprintf(base, sizeof base, "chain%s_%lld", w_grad ? "_w" : "", (long long)n);
    if (!wanted_key(base)) { return; }
    for (int round = -1; round < (n <= 1000 ? 51 : quick ? 1 : 7); round++) {
        OPD_SCOPED;
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
        opd_tensor *w = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y;
        int64_t live;
        double t0, t1, t2, t3;
        opd_tensor_set_requires_grad(w, w_grad);
        live = opd_memory_stats().live;
        opd_memory_reset_peak();
        t0 = now();
        y = chain(link_mul, x, w, n);
        t1 = now();
        opd_backward(y);
        t2 = now();
        opd_release(y);
        t3 = now();
        peak = (double)(opd_memory_stats().peak - live) / count;
        if (round < 0) { continue; }
        add_sample(&forward, (t1 - t0) / count);
        add_sample(&backward, (t2 - t1) / count);
        add_sample(&release, (t3 - t2) / count);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const part[] = {"forward", "backward", "free"};
        snprintf(key[i], sizeof key[i], "%s_%s", base, part[i]);
        snprintf(what[i], sizeof what[i], "%lld %s%s", (long long)n, part[i], w_grad ? ", w requires grad" : "");
    }
    snprintf(key[3], sizeof key[3], "%s_node_bytes", base);
    report(ROW(key[0], what[0], .peer = key[0]), &forward);
    report(ROW(key[1], what[1], .peer = key[1], .most = w_grad ? 0 : 120), &backward);
    report(ROW(key[2], what[2], .peer = key[2], .most = w_grad ? 0 : 30), &release);
    report_value(ROW(key[3], "  peak of memory, per node", .unit = "bytes", .peer = key[3]), peak);
}

static opd_tensor *values(opd_ints sizes);

/* Adds n leaves to one sum. */
static void bench_wide(int64_t n) {
    samples forward = {0}, backward = {0};
    char key[2][64], what[2][64];
    snprintf(key[0], sizeof key[0], "wide_%lld", (long long)n);
    if (!wanted_key(key[0])) { return; }
    for (int round = -1; round < (quick ? 1 : 7); round++) {
        opd_tensor **x = (opd_tensor **)malloc((size_t)n * sizeof *x), *sum = NULL;
        double t0, t1, t2;
        if (!x) { return; }
        for (int64_t i = 0; i < n; i++) {
            OPD_SCOPED;
            x[i] = opd_keep(opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true));
        }
        t0 = now();
        for (int64_t i = 0; i < n; i++) {
            OPD_SCOPED;
            opd_assign(&sum, sum ? opd_add(sum, x[i]) : x[i]);
        }
        t1 = now();
        opd_backward(sum);
        t2 = now();
        opd_release(sum);
        for (int64_t i = 0; i < n; i++) { opd_release(x[i]); }
        free(x);
        if (round < 0) { continue; }
        add_sample(&forward, (t1 - t0) / (double)n);
        add_sample(&backward, (t2 - t1) / (double)n);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(key[i], sizeof key[i], "wide_%lld_%s", (long long)n, i ? "backward" : "forward");
        snprintf(what[i], sizeof what[i], "%lld leaves added to one sum, %s", (long long)n, i ? "backward" : "forward");
    }
    report(ROW(key[0], what[0], .peer = key[0]), &forward);
    report(ROW(key[1], what[1], .peer = key[1]), &backward);
}

/* The second derivative through a chain of n operators. */
static void bench_second(int64_t n) {
    samples once = {0}, twice = {0};
    char key[2][64], what[2][64];
    snprintf(key[0], sizeof key[0], "second_%lld", (long long)n);
    if (!wanted_key(key[0])) { return; }
    for (int round = -1; round < (quick ? 3 : 11); round++) {
        OPD_SCOPED;
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true), *g = NULL, *gg = NULL;
        opd_tensor *y = chain(link_tanh, x, NULL, n);
        opd_backward_options o = {.create_graph = true};
        double t0 = now(), t1, t2;
        opd_autograd_grad(&y, 1, &x, 1, &o, &g);
        t1 = now();
        opd_autograd_grad(&g, 1, &x, 1, NULL, &gg);
        t2 = now();
        opd_release(y);
        if (round < 0) { continue; }
        add_sample(&once, (t1 - t0) / (double)n);
        add_sample(&twice, (t2 - t1) / (double)n);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(key[i], sizeof key[i], "second_%lld_%s", (long long)n, i ? "twice" : "once");
        snprintf(what[i], sizeof what[i], "%lld tanh, %s", (long long)n, i ? "second backward" : "first backward, recorded");
    }
    report(ROW(key[0], what[0], .peer = key[0]), &once);
    report(ROW(key[1], what[1], .peer = key[1]), &twice);
}

/* Memory and time of a network of 32 layers with checkpoints of 8 layers each, compared with no checkpoints. */
enum { SEGMENT = 8, SEGMENTS = 4 };
static int segment(void *user, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    opd_tensor *y = opd_keep(inputs[0]);
    (void)n;
    for (int i = 0; i < SEGMENT; i++) {
        OPD_SCOPED;
        opd_assign(&y, opd_tanh(opd_mm(y, (opd_tensor *)user)));
    }
    outputs[0] = opd_mul(y, y);
    opd_release(y);
    return 1;
}
static void bench_checkpoint(void) {
    static const char *const key[2][2] = {
        {"checkpoint_without", "checkpoint_without_peak"}, {"checkpoint", "checkpoint_peak"}};
    static const char *const what[2][2] = {
        {"32 layers on 512 x 128, forward and backward", "  peak of memory"},
        {"  with a checkpoint every 8 layers", "  peak of memory"}};
    if (!wanted_key("checkpoint")) { return; }
    heading("checkpoints");
    for (int with = 0; with < 2; with++) {
        samples s = {0};
        double peak = 0;
        for (int round = -1; round < (quick ? 1 : 11); round++) {
            OPD_SCOPED;
            opd_tensor *x = opd_tensor_set_requires_grad(values(OPD_INTS(512, 128)), true), *y = opd_keep(x);
            opd_tensor *w = opd_tensor_set_requires_grad(values(OPD_INTS(128, 128)), true);
            double t0 = now();
            int64_t live = opd_memory_stats().live;
            opd_memory_reset_peak();
            for (int i = 0; i < SEGMENTS; i++) {
                OPD_SCOPED;
                opd_tensor *out = NULL;
                if (with) { opd_checkpoint_call(segment, w, NULL, &y, 1, NULL, &out, 1); }
                else { segment(w, &y, 1, &out); }
                opd_assign(&y, out);
            }
            opd_backward(opd_sum(y));
            opd_release(y);
            peak = (double)(opd_memory_stats().peak - live) / 1048576;
            if (round >= 0) { add_sample(&s, (now() - t0) / 1e6); }
        }
        report(ROW(key[with][0], what[with][0], .unit = "ms"), &s);
        report_value(ROW(key[with][1], what[with][1], .unit = "MiB"), peak);
    }
}

static void bench_bytes(void) {
    static const struct { const char *key, *what; link_fn link; bool w_grad; } links[] = {
        {"bytes_mul", "mul", link_mul, false}, {"bytes_mul_w", "mul, both arguments require grad", link_mul, true},
        {"bytes_add", "add", link_add, false}, {"bytes_exp", "exp", link_exp, false},
        {"bytes_tanh", "tanh", link_tanh, false}, {"bytes_sigmoid", "sigmoid", link_sigmoid, false},
        {"bytes_clamp", "clamp", link_clamp, false},
        {"bytes_view", "view", link_view, false}, {"bytes_slice", "slice", link_slice, false},
        {"bytes_expand", "expand", link_expand, false}, {"bytes_mul_", "mul_ in place", link_mul_, false},
        {"bytes_mul_view", "mul_ into a view (two nodes)", link_mul_view, false}};
    const int64_t n = 10000;
    heading("memory of a node and its result");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        OPD_SCOPED;
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
        opd_tensor *w = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y;
        int64_t live = opd_memory_stats().live;
        opd_tensor_set_requires_grad(w, links[i].w_grad);
        y = chain(links[i].link, x, w, n);
        live = opd_memory_stats().live - live;
        opd_release(y);
        report_value(ROW(links[i].key, links[i].what, .unit = "bytes",
                         .most = links[i].link == link_mul_view ? 600 : 300), (double)live / (double)n);
    }
}

//-- limits of the machine: loops compiled for each instruction set ---------------------------------------------------

#if defined(__x86_64__)
#define LEVELS 3
#if defined(__clang__)
#define FOR(isa) __attribute__((target(isa)))
#else
#define FOR(isa) __attribute__((target(isa ",prefer-vector-width=512"), optimize("O3")))
#endif
static int machine_level(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? 2
         : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 1 : 0;
}
#else
#define LEVELS 1
#define FOR(isa)
static int machine_level(void) { return 0; }
#endif
static const char *const level_names[] = {"without SIMD", "AVX2", "AVX-512"};
static volatile float sink;
enum { ELEMENTS = 65536 };

#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define FMA_ZERO(i) v a##i = {(float)i};
#define FMA_STEP(i) a##i = a##i * m + b;
#define FMA_SUM(i) sum += a##i[0];
/* Twelve independent chains of multiply-adds, which hide the latency; and a plain loop that adds two bfloat16 rows. */
#define MACHINE_LOOPS(name, attribute, bytes)                                                                          \
    attribute static void fma_##name(int64_t n) {                                                                      \
        typedef float v __attribute__((vector_size(bytes)));                                                           \
        v m = {1}, b = {1};                                                                                            \
        float sum = 0;                                                                                                 \
        TWELVE(FMA_ZERO)                                                                                               \
        for (int64_t i = 0; i < n; i++) { TWELVE(FMA_STEP) }                                                           \
        TWELVE(FMA_SUM)                                                                                                \
        sink = sum;                                                                                                    \
    }                                                                                                                  \
    attribute static void bf16_##name(uint16_t *restrict o, const uint16_t *restrict x, const uint16_t *restrict y) {  \
        for (int64_t i = 0; i < ELEMENTS; i++) {                                                                       \
            union { uint32_t u; float f; } p, q;                                                                       \
            p.u = (uint32_t)x[i] << 16;                                                                                \
            q.u = (uint32_t)y[i] << 16;                                                                                \
            p.f += q.f;                                                                                                \
            o[i] = (uint16_t)((p.u + 0x7fffu + (p.u >> 16 & 1u)) >> 16);                                               \
        }                                                                                                              \
    }
typedef void (*bf16_loop)(uint16_t *restrict, const uint16_t *restrict, const uint16_t *restrict);
MACHINE_LOOPS(plain, , 16)
#if LEVELS == 3
MACHINE_LOOPS(avx2, FOR("avx2,fma"), 32)
MACHINE_LOOPS(avx512, FOR("avx512f,avx512bw,avx512vl"), 64)
static void (*const fma_loops[])(int64_t) = {fma_plain, fma_avx2, fma_avx512};
static const bf16_loop bf16_loops[] = {bf16_plain, bf16_avx2, bf16_avx512};
#else
static void (*const fma_loops[])(int64_t) = {fma_plain};
static const bf16_loop bf16_loops[] = {bf16_plain};
#endif

//-- kernels ----------------------------------------------------------------------------------------------------------

/* Returns the median of GFLOP/s that the best instruction set reaches. */
static double bench_peak(void) {
    double best = 0;
    for (int level = 0; level <= machine_level(); level++) {
        samples s = {0};
        char what[64];
        int64_t n = 100000;
        double flops = 12.0 * 2 * (4 << level);
        MEASURE(s, 10, (double)n, fma_loops[level](n));
        for (int i = 0; i < s.n; i++) { s.v[i] = flops / s.v[i]; }
        snprintf(what, sizeof what, "peak of multiply-adds, %s", level_names[level]);
        best = median(&s);
        report_value(ROW("fma_peak", what, .unit = "GFLOP/s"), best);
    }
    return best;
}

/* Returns a tensor with values in -2..2. */
static opd_tensor *values(opd_ints sizes) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; t && i < opd_numel(t); i++) { opd_data_f32(t)[i] = (float)(i * 37 % 401 - 200) / 100; }
    return t;
}

static void bench_matmul(void) {
    samples s = {0};
    double peak, flops = 2.0 * 512 * 512 * 512;
    OPD_SCOPED;
    opd_tensor *a = values(OPD_INTS(512, 512)), *b = values(OPD_INTS(512, 512));
    char note[64];
    if (!wanted_key("gemm512_f32 matmul")) { return; }
    peak = bench_peak();
    MEASURE(s, 20, 1, OPD_SCOPE { opd_mm(a, b); });
    for (int i = 0; i < s.n; i++) { s.v[i] = flops / s.v[i]; }
    for (int i = 0; i < npeers; i++) {            /* libtorch's figure is a time */
        if (!strcmp(peers[i].name, "gemm512_f32")) { peers[i].value = flops / peers[i].value; }
    }
    snprintf(note, sizeof note, "(60%% of the peak; it reaches %.0f%%)", 100 * median(&s) / peak);
    report(ROW("gemm512_f32", "matmul 512 x 512 x 512, float32", .unit = "GFLOP/s", .peer = "gemm512_f32",
               .least = 0.6 * peak, .note = note), &s);
}

static void bench_kernels(void) {
    const double n = ELEMENTS;
    bool was = opd_grad_mode_set(false);
    OPD_SCOPED;
    opd_tensor *x = values(OPD_INTS(ELEMENTS)), *y = values(OPD_INTS(ELEMENTS)), *o = values(OPD_INTS(ELEMENTS));
    opd_tensor *x2 = opd_slice(values(OPD_INTS(2 * ELEMENTS)), 0, OPD_NONE, OPD_NONE, 2);
    opd_tensor *hx = opd_to_dtype(x, OPD_BFLOAT16), *hy = opd_to_dtype(y, OPD_BFLOAT16), *ho = opd_clone(hx);
    opd_op *add_out = opd_find("aten::add.out"), *exp_out = opd_find("aten::exp.out");
    samples contiguous = {0}, direct = {0};
    char what[64];
    double m;
    heading("kernels, per element");
    if (!opd_ok()) { return; }
    BENCH(ROW("add_64k", "add float32", .peer = "add_64k", .ops = n, .peer_ops = n, .most = 0.06), 1000,
          OPD_SCOPE { opd_add(x, y); });
    BENCH(ROW("add_64k_out", "add float32 into an existing tensor (out=)", .peer = "add_64k_out", .ops = n, .peer_ops = n), 1000,
          OPD_CALL(add_out, x, y, OPD_DEFAULT, o));
    if (wanted_key("stride2")) { MEASURE(contiguous, 1000, n, OPD_SCOPE { opd_add(x, y); }); }
    m = 4 * median(&contiguous);
    BENCH(ROW("stride2", "add float32, both tensors with stride 2", .ops = n, .most = m, .note = "(4 times the first row)"), 300,
          OPD_SCOPE { opd_add(x2, x2); });
    for (int level = 0; level <= machine_level() && wanted_key("add_bf16"); level++) {
        uint16_t *po = (uint16_t *)opd_data(ho), *px = (uint16_t *)opd_data(hx), *py = (uint16_t *)opd_data(hy);
        direct.n = 0;
        MEASURE(direct, 500, n, bf16_loops[level](po, px, py));
        snprintf(what, sizeof what, "C loop that adds bfloat16, %s", level_names[level]);
        report(ROW("add_bf16_direct", what, .ops = n), &direct);
        if (level == 0) { m = 1.4 * median(&direct); }          /* the plain loop, with the same compiler and options */
    }
    BENCH(ROW("add_bf16_out", "add bfloat16 into an existing tensor (out=)", .ops = n, .most = m, .note = "(1.4 times the plain C loop)"), 500,
          OPD_CALL(add_out, hx, hy, OPD_DEFAULT, ho));
    BENCH(ROW("add_bf16", "add bfloat16", .ops = n), 500, OPD_SCOPE { opd_add(hx, hy); });
    BENCH(ROW("exp_64k", "exp float32", .peer = "exp_64k", .ops = n, .peer_ops = n), 300, OPD_SCOPE { opd_exp(x); });
    BENCH(ROW("exp_64k_out", "exp float32 into an existing tensor (out=)", .peer = "exp_64k_out", .ops = n, .peer_ops = n), 300,
          OPD_CALL(exp_out, x, o));
    bench_matmul();
    opd_grad_mode_set(was);
}

//-- transforms -------------------------------------------------------------------------------------------------------

static int dot(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_dot(in[0], in[1]);
    return 1;
}
/* The cost of a transform's level with one input and output, and of an operator inside of it. */
static void bench_layer(void) {
    OPD_SCOPED;
    opd_tensor *x = opd_ones(OPD_INTS(8), OPD_FLOAT32), *a, *b;
    samples plain = {0};
    int level;
    BENCH(ROW("vmap_level", "opening and closing a level of vmap, with one tensor in and out", .peer = "vmap_level", .most = 60), 100000,
          OPD_SCOPE {
              const int l = opd_vmap_begin(8, OPD_RANDOM_ERROR);
              opd_vmap_unwrap(opd_vmap_wrap(x, 0, l), 0, l);
              opd_vmap_end(l);
          });
    if (!wanted_key("vmap_add")) { return; }
    MEASURE(plain, 100000, 1, OPD_SCOPE { opd_add(x, x); });
    report(ROW("vmap_add_plain", "add of 8 elements, without vmap", .peer = "add8"), &plain);
    level = opd_vmap_begin(8, OPD_RANDOM_ERROR);
    a = opd_vmap_wrap(x, 0, level);
    b = opd_vmap_wrap(x, 0, level);
    BENCH(ROW("vmap_add", "  the same add inside vmap", .peer = "vmap_add", .most = median(&plain) + 60, .note = "(60 more)"),
          100000, OPD_SCOPE { opd_add(a, b); });
    opd_vmap_end(level);
}
static void bench_vmap(void) {
    static const char *const key[2][2] = {{"vmap_dot_16", "sum_mul_16"}, {"vmap_dot_512", "sum_mul_512"}};
    static const char *const what[2] = {"dot product, vmap over 128 rows of 16",
                                        "dot product, vmap over 128 rows of 512"};
    bool was = opd_grad_mode_set(false);
    heading("transforms");
    bench_layer();
    for (int i = 0; i < 2; i++) {
        const int64_t n = i ? 512 : 16;
        samples sum = {0};
        OPD_SCOPED;
        opd_tensor *in[2] = {values(OPD_INTS(128, n)), values(OPD_INTS(128, n))}, *out;
        if (!wanted_key(key[i][0])) { continue; }
        MEASURE(sum, 2000, 1e3, OPD_SCOPE { opd_sum_dim(opd_mul(in[0], in[1]), OPD_INTS(1), false); });
        BENCH(ROW(key[i][0], what[i], .unit = "us", .ops = 1e3, .peer = key[i][0], .peer_ops = 1e3,
                  .most = 1.5 * median(&sum), .note = "(1.5 times the next row)"), 2000,
              OPD_SCOPE { opd_vmap(dot, NULL, in, 2, NULL, &out, 1); });
        report(ROW(key[i][1], "  (a * b).sum(1)", .unit = "us", .peer = key[i][1], .peer_ops = 1e3), &sum);
    }
    opd_grad_mode_set(was);
}

/* Per-example gradients of a network of two linear layers.  The first inputs of the loss are the parameters. */
static int network_loss(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *h = opd_tanh(opd_linear(in[4], in[0], in[1]));
    (void)user; (void)n;
    out[0] = opd_cross_entropy_loss(opd_unsqueeze(opd_linear(h, in[2], in[3]), 0), opd_unsqueeze(in[5], 0));
    return 1;
}
/* The network of examples/digits.c for one image. */
static opd_tensor *digits_output(opd_tensor *const *p, opd_tensor *x) {
    static opd_op *conv;
    x = opd_relu(OPD_CALL(OPD_OP(&conv, "aten::conv2d"), x, p[0], p[1], 1, 1));
    x = opd_relu(OPD_CALL(conv, x, p[2], p[3], 1, 1));
    x = opd_flatten(opd_max_pool2d(x, OPD_INTS(2, 2), opd_ints_of(NULL, 0), OPD_INTS(0)), 1, -1);
    return opd_linear(opd_relu(opd_linear(x, p[4], p[5])), p[6], p[7]);
}
static int digits_loss(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_cross_entropy_loss(digits_output(in, opd_unsqueeze(in[8], 0)), opd_unsqueeze(in[9], 0));
    return 1;
}
/* Gradients of a loss with respect to all inputs except the last two, image and label. */
typedef struct example_loss { opd_transform_fn loss; int parameters; } example_loss;
static int example_grads(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const example_loss *e = (const example_loss *)user;
    return opd_grad(e->loss, NULL, in, n, &(opd_transform_options){.argnums = all, .nargnums = e->parameters}, out, OPD_TRANSFORM_OUTPUTS);
}
static int example_grads_all(const example_loss *e, opd_tensor *const *in, opd_tensor **out) {
    const int n = e->parameters + 2;
    int dims[10];
    for (int i = 0; i < n; i++) { dims[i] = i < e->parameters ? OPD_NO_DIM : 0; }
    return opd_vmap(example_grads, (void *)(uintptr_t)e, in, n, &(opd_vmap_options){.in_dims = dims, .nin_dims = n},
                    out, OPD_TRANSFORM_OUTPUTS);
}
static void example_grads_loop(const example_loss *e, opd_tensor *const *in, int64_t count) {
    for (int64_t k = 0; k < count; k++) {
        opd_tensor *one[10], *out[8];
        OPD_SCOPED;
        memcpy(one, in, sizeof one);
        for (int i = e->parameters; i < e->parameters + 2; i++) { one[i] = opd_select(in[i], 0, k); }
        example_grads((void *)(uintptr_t)e, one, e->parameters + 2, out);
    }
}
static opd_tensor *labels_of(int64_t n) {
    opd_tensor *t = opd_tensor_new(OPD_INTS(n), OPD_INT64);
    for (int64_t i = 0; t && i < n; i++) { opd_data_i64(t)[i] = i % 10; }
    return t;
}
/* Forward and backward of the sum of the losses of all examples, as in a training step. */
static void digits_step(opd_tensor *const *p, opd_tensor *images, opd_tensor *labels) {
    opd_tensor *leaves[8], *grads[8], *loss;
    OPD_SCOPED;
    for (int i = 0; i < 8; i++) { leaves[i] = opd_tensor_set_requires_grad(opd_detach(p[i]), true); }
    loss = opd_cross_entropy_loss(digits_output(leaves, images), labels);
    opd_autograd_grad(&loss, 1, leaves, 8, NULL, grads);
}
static void bench_example_grads(void) {
    static const example_loss network = {network_loss, 4}, digits = {digits_loss, 8};
    enum { EXAMPLES = 256 };
    samples step = {0}, fill = {0};
    double bytes = 0, most;
    int64_t live;
    char note[80];
    OPD_SCOPED;
    opd_tensor *out[8], *in[10] = {values(OPD_INTS(256, 784)), values(OPD_INTS(256)), values(OPD_INTS(10, 256)),
                                   values(OPD_INTS(10)), values(OPD_INTS(64, 784)), labels_of(64)};
    BENCH(ROW("per_example", "per-example gradients, network of 784-256-10, 64 examples", .unit = "ms", .ops = 1e6, .most = 2,
              .peer = "per_example", .peer_ops = 1e6), 5, OPD_SCOPE { example_grads_all(&network, in, out); });
    BENCH(ROW("per_example_loop", "  the same, by a loop over the examples", .unit = "ms", .ops = 1e6, .peer = "per_example_loop",
              .peer_ops = 1e6), 2, OPD_SCOPE { example_grads_loop(&network, in, 64); });
    if (!wanted_key("digits_example")) { return; }
    in[0] = values(OPD_INTS(16, 1, 3, 3)); in[1] = values(OPD_INTS(16)); in[2] = values(OPD_INTS(32, 16, 3, 3));
    in[3] = values(OPD_INTS(32)); in[4] = values(OPD_INTS(64, 512)); in[5] = values(OPD_INTS(64));
    in[6] = values(OPD_INTS(10, 64)); in[7] = values(OPD_INTS(10));
    in[8] = values(OPD_INTS(EXAMPLES, 1, 8, 8));
    in[9] = labels_of(EXAMPLES);
    for (int i = 0; i < 8; i++) { bytes += 4.0 * EXAMPLES * (double)opd_numel(in[i]); }
    MEASURE(step, 2, 1e6, digits_step(in, in[8], in[9]));
    report(ROW("digits_example_step", "digits network, 256 images: forward and backward", .unit = "ms"), &step);
    MEASURE(fill, 2, 1e6, OPD_SCOPE { opd_zeros(OPD_INTS((int64_t)(bytes / 4)), OPD_FLOAT32); });
    report(ROW("digits_example_write", "  writing the memory of 256 gradients", .unit = "ms"), &fill);
    most = 2 * (median(&step) + median(&fill));
    BENCH(ROW("digits_example", "  per-example gradients of the 256 images", .unit = "ms", .ops = 1e6, .most = most,
              .note = "(twice the sum of the two rows above)"), 1, OPD_SCOPE { example_grads_all(&digits, in, out); });
    live = opd_memory_stats().live;
    opd_memory_reset_peak();
    OPD_SCOPE { example_grads_all(&digits, in, out); }
    snprintf(note, sizeof note, "(3 times the %.1f MiB of the gradients)", bytes / 1048576);
    report_value(ROW("digits_example_peak", "  peak of memory for per-example gradients", .unit = "MiB", .most = 3 * bytes / 1048576,
                     .note = note), (double)(opd_memory_stats().peak - live) / 1048576);
}

/* One step of Adam as a plain loop. */
static void adam_loop(float *restrict p, float *restrict m, float *restrict v, const float *restrict g, int64_t n,
                      float step, float scale) {
    for (int64_t i = 0; i < n; i++) {
        m[i] += (g[i] - m[i]) * 0.1f;
        v[i] = v[i] * 0.999f + g[i] * g[i] * 0.001f;
        p[i] -= step * m[i] / (sqrtf(v[i]) * scale + 1e-8f);
    }
}
static void sgd_loop(float *restrict p, float *restrict b, const float *restrict g, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        b[i] = b[i] * 0.9f + g[i];
        p[i] -= b[i] * 1e-3f;
    }
}
/* Steps of optimizers, which are bound by memory: they read four arrays of 32 MiB and write three. */
static void bench_steps(void) {
    enum { BIG = 8 << 20 };
    const double n = BIG;
    OPD_SCOPED;
    opd_sgd_options options = opd_sgd_defaults();
    samples plain = {0};
    opd_optimizer *adam, *sgd;
    opd_tensor *p, *g, *small[100];
    float *a[4];
    heading("a step of an optimizer with 8 M parameters, per parameter");
    if (!wanted_key("step_")) { return; }
    p = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(BIG), OPD_FLOAT32), true);
    g = opd_full(OPD_INTS(BIG), OPD_V(0.5), OPD_FLOAT32);
    opd_tensor_set_grad(p, g);
    options.momentum = 0.9;
    adam = opd_adam_new(&p, 1, NULL);
    sgd = opd_sgd_new(&p, 1, &options);
    for (int i = 0; i < 4; i++) { a[i] = opd_data_f32(opd_full(OPD_INTS(BIG), OPD_V(0.5), OPD_FLOAT32)); }
    if (!opd_ok()) { return; }
    MEASURE(plain, 1, n, adam_loop(a[0], a[1], a[2], a[3], BIG, 1e-3f, 1));
    report(ROW("step_adam_loop", "Adam, written as a plain C loop", .ops = n), &plain);
    BENCH(ROW("step_adam", "Adam", .peer = "step_adam", .ops = n, .peer_ops = n, .most = median(&plain),
              .note = "(the plain loop)"), 1, opd_optimizer_step(adam));
    plain.n = 0;
    MEASURE(plain, 1, n, sgd_loop(a[0], a[1], a[2], BIG));
    report(ROW("step_sgd_loop", "SGD with momentum, written as a plain C loop", .ops = n), &plain);
    BENCH(ROW("step_sgd", "SGD with momentum", .peer = "step_sgd", .ops = n, .peer_ops = n,
              .most = 1.1 * median(&plain), .note = "(1.1 times the plain loop)"), 1, opd_optimizer_step(sgd));
    opd_optimizer_free(adam);
    opd_optimizer_free(sgd);
    for (int i = 0; i < 100; i++) {
        small[i] = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(16), OPD_FLOAT32), true);
        opd_tensor_set_grad(small[i], opd_full(OPD_INTS(16), OPD_V(0.5), OPD_FLOAT32));
    }
    adam = opd_adam_new(small, 100, NULL);
    BENCH(ROW("step_adam_small", "Adam with 100 tensors of 16 elements, per tensor", .peer = "step_adam_small",
              .ops = 100, .peer_ops = 100), 1000, opd_optimizer_step(adam));
    opd_optimizer_free(adam);
}

/* A hundred operators on 16 elements: runs of the traced graph, compared with the traced calls. */
static int hundred(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0], *y = in[1];
    (void)user; (void)n;
    for (int k = 0; k < 25; k++) { x = opd_relu(opd_sub(opd_mul(opd_add(x, y), y), in[0])); }
    out[0] = x;
    return 1;
}
static void hundred_called(opd_tensor *const *in) {
    opd_tensor *out;
    OPD_SCOPE { hundred(NULL, in, 2, &out); }
}
static void hundred_run(opd_graph *g, opd_tensor *const *in) {
    opd_tensor *out;
    OPD_SCOPE { opd_graph_run(g, in, 2, &out, 1); }
}
static void bench_graphs(void) {
    OPD_SCOPED;
    opd_tensor *in[2], *w[2];
    opd_graph *g;
    samples plain = {0}, tape = {0};
    heading("a graph of 100 operators, per operator");
    if (!wanted_key("graph")) { return; }
    in[0] = w[0] = opd_full(OPD_INTS(16), OPD_V(0.5), OPD_FLOAT32);
    in[1] = opd_full(OPD_INTS(16), OPD_V(0.75), OPD_FLOAT32);
    w[1] = opd_tensor_set_requires_grad(opd_detach(in[1]), true);
    g = opd_graph_trace(hundred, NULL, in, 2, NULL);
    MEASURE(plain, 500, 100, hundred_called(in));
    report(ROW("graph_called", "the same operators called one by one (`opd_add`, ...)", .peer = "graph_called",
               .peer_ops = 100), &plain);
    BENCH(ROW("graph_run", "  running the graph", .ops = 100, .peer = "graph_run", .peer_ops = 100,
              .most = 1.2 * median(&plain), .note = "(1.2 times the row above)"), 500, hundred_run(g, in));
    MEASURE(tape, 500, 100, hundred_called(w));
    report(ROW("graph_called_tape", "the same calls, recorded by autograd"), &tape);
    BENCH(ROW("graph_run_tape", "  running the graph, recorded by autograd", .ops = 100, .most = 1.2 * median(&tape),
              .note = "(1.2 times the row above)"), 500, hundred_run(g, w));
    BENCH(ROW("graph_trace", "tracing without autograd: the calls, making the graph, and freeing it", .ops = 100,
              .peer = "graph_trace", .peer_ops = 100, .most = median(&plain) + 300,
              .note = "(300 more than the first row)"), 100,
          opd_graph_free(opd_graph_trace(hundred, NULL, in, 2, NULL)));
    opd_graph_free(g);
}

/* Page faults of a 64 MiB result, right after the previous result was freed. */
static void bench_faults(void) {
    struct rusage before, after;
    const int64_t n = 16 << 20;
    OPD_SCOPED;
    if (!wanted_key("faults")) { return; }
    opd_tensor *x = opd_ones(OPD_INTS(n), OPD_FLOAT32);
    for (int i = -2; i < 8; i++) {
        if (i == 0) { getrusage(RUSAGE_SELF, &before); }
        OPD_SCOPE { opd_add(x, x); }
    }
    getrusage(RUSAGE_SELF, &after);
    report_value(ROW("faults", "page faults of an add with a result of 64 MiB", .unit = "faults", .most = 0.5),
                 (double)(after.ru_minflt - before.ru_minflt) / 8);
}

//-- files ------------------------------------------------------------------------------------------------------------

/* A sparse safetensors file of 500 MB with 200 tensors: opening it must not read the data. */
static void bench_files(void) {
    enum { TENSORS = 200 };
    static char header[TENSORS * 100];
    const char *tmp = getenv("TMPDIR");
    const int64_t each = 2500000;
    char path[300], begin[8];
    samples open_it = {0}, one = {0};
    size_t n = 0;
    FILE *f;
    if (!wanted_key("open_safetensors") && !wanted_key("open_safetensors_get")) { return; }
    heading("a safetensors file of 500 MB, 200 tensors");
    for (int i = 0; i < TENSORS; i++) {
        n += (size_t)snprintf(header + n, sizeof header - n, "%c\"layer.%d.weight\":{\"dtype\":\"F32\","
                              "\"shape\":[625,1000],\"data_offsets\":[%lld,%lld]}", i ? ',' : '{', i, (long long)(i * each),
                              (long long)((i + 1) * each));
    }
    header[n++] = '}';
    while (n % 8) { header[n++] = ' '; }
    for (int i = 0; i < 8; i++) { begin[i] = (char)(n >> 8 * i & 255); }
    snprintf(path, sizeof path, "%s/opd_bench_%d.safetensors", tmp ? tmp : "/tmp", (int)getpid());
    f = fopen(path, "wb");
    if (!f || fwrite(begin, 1, 8, f) != 8 || fwrite(header, 1, n, f) != n || fclose(f) ||
        truncate(path, (off_t)(8 + n) + TENSORS * each)) {
        printf("left out: %s cannot be written\n", path);
        return;
    }
    for (int round = -2; round < (quick ? 5 : 31); round++) {
        double t = wall();
        opd_tensor_file *file = opd_tensor_file_open(path);
        if (round >= 0) { add_sample(&open_it, (wall() - t) / 1e3); }
        OPD_SCOPE {
            t = wall();
            opd_tensor_file_get(file, "layer.150.weight");
            if (round >= 0) { add_sample(&one, (wall() - t) / 1e3); }
        }
        opd_tensor_file_close(file);
    }
    report(ROW("open_safetensors", "opening it", .unit = "us", .most = 1000), &open_it);
    report(ROW("open_safetensors_get", "getting one of its tensors by name", .unit = "us"), &one);
    (void)remove(path);
}

//-- start-up and compiling -------------------------------------------------------------------------------------------

extern char **environ;
static double start(const char *path, const char *argument) {
    char *arguments[] = {(char *)path, (char *)argument, NULL};
    double t = wall();
    int status = -1;
    pid_t child;
    if (posix_spawn(&child, path, NULL, NULL, arguments, environ) || waitpid(child, &status, 0) != child || status) {
        opd_fail(OPD_ERROR_USER, "%s %s did not run", path, argument ? argument : "");
    }
    return (wall() - t) / 1e6;
}

static void bench_start(void) {
    static const struct { row r; const char *argument; } starts[] = {
        {{"start_true", "`/bin/true`, for comparison", .unit = "ms"}, NULL},
        {{"start", "a program that includes the header and does nothing", .unit = "ms", .most = 2}, "--nothing"},
        {{"start_call", "a program that includes the header and adds two tensors", .unit = "ms", .most = 2}, "--one-call"}};
    heading("starting and ending");
    for (int i = 0; i < 3; i++) {
        samples s = {0};
        if (!wanted(starts[i].r)) { continue; }
        for (int round = -2; round < (quick ? 5 : 31); round++) {
            double ms = start(starts[i].argument ? program : "/bin/true", starts[i].argument);
            if (round >= 0) { add_sample(&s, ms); }
        }
        report(starts[i].r, &s);
    }
}

/* Returns the processor time of ended child processes in ms. */
static double children_ms(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Returns the processor time in ms for compiling a source after a header, or -1 if the compiler is missing.  source
   NULL: an empty file. */
static double compile(const char *compiler, const char *options, const char *header, const char *source,
                      const char *object) {
    char command[800];
    double t;
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", compiler);
    if (system(command)) { return -1; }
    t = children_ms();
    snprintf(command, sizeof command, "%s %s%s%s -x %s -c -o %s %s", compiler, options, header ? " -include " : "",
             header ? header : "", strstr(compiler, "++") ? "c++" : "c", object, source ? source : "/dev/null");
    if (system(command)) { opd_fail(OPD_ERROR_USER, "`%s` failed", command); }
    return children_ms() - t;
}

/* Returns the bytes of code and constants in an object, as printed by the program `size`. */
static double text_of(const char *object) {
    char command[300];
    double text = 0;
    FILE *f;
    snprintf(command, sizeof command, "size %s 2>/dev/null | awk 'NR == 2 { print $1 }'", object);
    f = popen(command, "r");
    if (f) { if (fscanf(f, "%lf", &text) != 1) { text = 0; } pclose(f); }
    return text;
}

/* Leaves out everything that CONFIGURATION lists: only schemas, dispatcher, tensors and autograd remain. */
#define CORE_ALONE \
    "-O2 -DOPD_NO_OPERATORS -DOPD_NO_TRANSFORMS -DOPD_NO_GRAPHS -DOPD_NO_CHECKING -DOPD_NO_TRAINING " \
    "-DOPD_NO_EXCHANGE -DOPD_NO_PROFILER -DOPD_NO_AUTOCAST -DOPD_NO_PLUGINS"
#define LEAN "-O2 -DOPD_LEAN -DOPD_STATIC"
#define DECLARATIONS "the declarations, more than an empty file"
#define DECLARATIONS_COPY "a copy with only the declarations, more than an empty file"
/* The README's first program. */
static const char first_program[] =
    "int main(void) {\n"
    "    OPD_SCOPE {\n"
    "        opd_tensor *x = opd_arange(OPD_V(4), OPD_FLOAT32);\n"
    "        opd_tensor_set_requires_grad(x, true);\n"
    "        opd_backward(opd_sum(opd_mul(x, opd_sin(x))));\n"
    "        opd_print(opd_tensor_grad(x));\n"
    "    }\n"
    "    return opd_finish();\n"
    "}\n";
/* Compiles the library once with OPD_LEAN, and then compiles and links the first program with it.  source, object: files
   to use. */
static void bench_linked(const char *compiler, const char *header, const char *source, const char *object) {
    char options[400], command[1200], library[300], what[120];
    samples time = {0}, text = {0};
    snprintf(library, sizeof library, "%s_lean.o", object);
    snprintf(options, sizeof options, "-O2 -w -DOPD_LEAN -DOPDISPATCH_IMPLEMENTATION -ffunction-sections -fdata-sections");
    const double once = compile(compiler, options, header, NULL, library);
    if (once < 0) { return; }
    snprintf(command, sizeof command, "%s -O2 -DOPD_LEAN -include %s -x c %s -x none %s -Wl,--gc-sections -s -o %s -lm -lpthread",
             compiler, header, source, library, object);
    for (int round = 0; round < (quick ? 3 : 11); round++) {
        const double t = children_ms();
        if (system(command)) { opd_fail(OPD_ERROR_USER, "`%s` failed", command); break; }
        add_sample(&time, children_ms() - t);
        add_sample(&text, text_of(object) / 1024);
    }
    remove(library);
    snprintf(what, sizeof what, "%s %s", compiler, "-O2, the README's first program, linked with a library compiled before");
    report(ROW("compile", what, .unit = "ms", .kib = median(&text)), &time);
    samples library_time = {0};
    add_sample(&library_time, once / 1e3);
    snprintf(what, sizeof what, "%s %s", compiler, "-O2, this library, with a section for each function");
    report(ROW("compile", what, .unit = "s"), &library_time);
}

/* Compiles the declarations, a program with OPD_LEAN, the whole library, its parts if there are two or four, the library
   without operators, and only the core.  Also measures the sizes of the objects. */
static void bench_compile(void) {
    static const char file[] = __FILE__;
    static const struct { const char *compiler, *options; double most; bool whole; const char *name; } builds[] = {
        {"gcc", "", 35, false, DECLARATIONS}, {"g++", "", 55, false, DECLARATIONS}, {"clang", "", 0, false, DECLARATIONS},
        {"gcc", "", 0, false, DECLARATIONS_COPY}, {"clang", "", 0, false, DECLARATIONS_COPY},
        {"gcc", LEAN, 0, true, "-O2, the README's first program with OPD_LEAN"},
        {"clang", LEAN, 0, true, "-O2, the README's first program with OPD_LEAN"},
        {"gcc", "-O0", 3.5, true, NULL}, {"gcc", "-O2", 10, true, NULL},
        {"gcc", "-O2 -DOPDISPATCH_PARTS=2 -DOPDISPATCH_PART=1", 0.6, true, NULL},
        {"gcc", "-O2 -DOPDISPATCH_PARTS=2 -DOPDISPATCH_PART=2", 0.6, true, NULL},
        {"gcc", "-O2 -DOPDISPATCH_PARTS=4 -DOPDISPATCH_PART=1", 0.3, true, NULL},
        {"gcc", "-O2 -DOPDISPATCH_PARTS=4 -DOPDISPATCH_PART=2", 0.3, true, NULL},
        {"gcc", "-O2 -DOPDISPATCH_PARTS=4 -DOPDISPATCH_PART=3", 0.3, true, NULL},
        {"gcc", "-O2 -DOPDISPATCH_PARTS=4 -DOPDISPATCH_PART=4", 0.3, true, NULL},
        {"gcc", "-O2 -DOPD_NO_OPERATORS", 0, true, NULL}, {"gcc", CORE_ALONE, 3.5, true, "-O2, the core alone"},
        {"clang", "-O0", 0, true, NULL}, {"clang", "-O2", 15, true, NULL},
        {"clang", "-O2 -DOPD_NO_OPERATORS", 0, true, NULL}, {"clang", CORE_ALONE, 0, true, "-O2, the core alone"}};
    char header[300], object[] = "/tmp/opd_bench_XXXXXX", source[] = "/tmp/opd_bench_XXXXXX", declarations[64], command[600];
    const char *slash = strrchr(file, '/');
    snprintf(header, sizeof header, "%.*s../opdispatch.h", slash ? (int)(slash - file + 1) : 0, file);
    double all = 0;   /* seconds for the whole library, with the compiler of the row above */
    last_column = "code and constants";
    heading("compiling, processor time");
    if (access(header, R_OK)) { printf("left out: %s is not below this folder\n", header); return; }
    const int fd = mkstemp(object), source_fd = mkstemp(source);
    FILE *const program_file = source_fd < 0 ? NULL : fdopen(source_fd, "w");
    if (fd < 0 || !program_file || fputs(first_program, program_file) < 0 || fclose(program_file)) {
        printf("left out: /tmp cannot be written\n");
        return;
    }
    close(fd);
    snprintf(declarations, sizeof declarations, "%s.h", object);
    snprintf(command, sizeof command, "sed '/^#if defined(OPDISPATCH_IMPLEMENTATION) &&/,/^#endif .*IMPLEMENTATION/d' %s >%s", header,
             declarations);
    if (system(command)) { opd_fail(OPD_ERROR_USER, "`%s` failed", command); }
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        const bool whole = builds[i].whole, part = builds[i].most > 0 && builds[i].most < 1;
        const char *const name = builds[i].name ? builds[i].name : builds[i].options;
        char options[300], what[120];
        samples time = {0}, text = {0};
        snprintf(options, sizeof options, "%s%s", builds[i].options, whole ? " -DOPDISPATCH_IMPLEMENTATION" : "");
        snprintf(what, sizeof what, whole ? "%s %s" : "%s, %s", builds[i].compiler, name);
        for (int round = 0; round < (whole ? quick ? 1 : 3 : quick ? 3 : 11); round++) {
            const char *const text_file = strcmp(builds[i].options, LEAN) == 0 ? source : NULL;
            const char *const include = strcmp(name, DECLARATIONS_COPY) == 0 ? declarations : header;
            const double none = whole ? 0 : compile(builds[i].compiler, "", NULL, NULL, object);
            const double ms = none < 0 ? -1 : compile(builds[i].compiler, options, include, text_file, object);
            if (ms < 0) { break; }
            add_sample(&time, whole ? ms / 1e3 : ms - none);
            if (whole) { add_sample(&text, text_of(object) / 1024); }
        }
        if (!time.n) { printf("%s: not there\n", what); continue; }
        if (strcmp(builds[i].options, "-O2") == 0) { all = median(&time); }
        report(ROW("compile", what, .unit = whole ? "s" : "ms", .most = builds[i].most * (part ? all : 1),
                   .kib = whole ? median(&text) : 0, .note = part ? builds[i].most < 0.5 ? "(30% of the whole)" : "(60% of the whole)" : NULL), &time);
        if (whole && !markdown) { report(ROW("compile_text", "  code and constants", .unit = "KiB"), &text); }
    }
    bench_linked("gcc", header, source, object);
    bench_linked("clang", header, source, object);
    remove(object);
    remove(source);
    remove(declarations);
}

//-- main -------------------------------------------------------------------------------------------------------------

static const char help[] =
    "bench_dispatch: measures calls, small tensors, autograd and kernels\n"
    "  --quick          fewer rounds, and no chain of a million operators\n"
    "  --filter TEXT    only rows whose name or text contains TEXT; fewer rounds for libtorch\n"
    "  --compile        measures only how long the header takes to compile\n"
    "  --markdown       prints Markdown, as in bench/tables\n"
    "  --nothing        ends at once (bench_dispatch starts itself with this option, to measure starting)\n"
    "  --one-call       ends after one addition (the same)\n"
    "Columns: \"indirect\" is the time divided by that of an indirect call; \"ratio\" is libtorch's time divided by ours.\n";

static void print_machine(void) {
    char line[300] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && strncmp(line, "model name", 10)) { }
    if (f) { fclose(f); }
    printf("machine: %s", strchr(line, ':') ? strchr(line, ':') + 2 : "?\n");
    printf("instruction set: %s; compiler: %s; one thread\n", level_names[machine_level()], __VERSION__);
}

int main(int argc, char **argv) {
    bool compiling = false;
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--nothing")) { return opd_finish(); }
        else if (!strcmp(argv[i], "--one-call")) {
            opd_add(opd_ones(OPD_INTS(1), OPD_FLOAT32), opd_ones(OPD_INTS(1), OPD_FLOAT32));
            return opd_finish();
        }
        else if (!strcmp(argv[i], "--quick")) { quick = true; }
        else if (!strcmp(argv[i], "--compile")) { compiling = true; }
        else if (!strcmp(argv[i], "--markdown")) { markdown = true; }
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc) { filter = argv[++i]; }
        else { fputs(help, stdout); return strcmp(argv[i], "--help") ? 2 : 0; }
    }
    opd_threads_set(1);
    print_machine();
    if (compiling) { bench_compile(); return opd_finish(); }
    run_peer();
    bench_files();
    bench_start();
    bench_calls();
    bench_plugin();
    bench_small();
    bench_autocast();
    heading("chain y = y * w of one element, per operator");
    bench_chain(1000, false);
    bench_chain(100000, false);
    if (!quick) { bench_chain(1000000, false); }
    bench_chain(100000, true);
    heading("wide graphs and second derivatives, per operator");
    bench_wide(10000);
    bench_wide(100000);
    bench_second(1000);
    bench_second(10000);
    bench_checkpoint();
    bench_bytes();
    bench_kernels();
    bench_vmap();
    bench_example_grads();
    bench_graphs();
    bench_steps();
    bench_faults();
    printf("\n%d target%s missed\n", missed, missed == 1 ? "" : "s");
    if (!opd_ok()) { puts("an error is pending: the figures mean nothing"); }
    return opd_finish();
}
