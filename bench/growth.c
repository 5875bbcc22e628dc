/* Measures how the cost of one operator, overload, graph value, autograd node or hook grows with their number, from
   1,000 to 100,000.
   cc -O2 bench/growth.c -o bench_growth -lm -lpthread
   ./bench_growth [--quick] [--plot FILE] [--help]

   If the cost does not depend on the number, all figures of a row are about equal.  The column "growth" is the largest
   figure divided by the first.  Objects that are rarely used leave the caches of the processor if there are many of
   them, so some growth is unavoidable.  Therefore the program also measures one read at a random address, in a block of
   memory as large as all objects of the row together.  Each address depends on the read before it.  The column "reads"
   gives the growth (the largest figure minus the first) as a number of such reads.  A row passes if its cost grows by a
   factor of at most 2, or by at most 3 reads.  Otherwise it is marked with "!".  A step of a long graph has a node, a
   value, a tensor and its memory, so a factor of 3 or 12 reads are allowed there: twice the steps then take at most 2.4
   times as long.
   An operator that was removed keeps its entry and its name: a handle that the program still holds reports the removal,
   and works again if the name is defined again.
   Times are processor time of the thread, the best of two or three rounds.  Memory is what the library holds.  With
   --plot, the program also draws the results as a picture (SVG). */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZES = 5, PANELS = 7, CURVES = 7, LINE = 64 };
static const int64_t sizes[SIZES] = {1000, 3000, 10000, 30000, 100000};
static int nsizes = SIZES;

typedef struct panel {
    const char *title, *unit, *number;            /* title, and the texts of the two axes */
    const char *curves[CURVES];
    double values[CURVES][SIZES];                 /* 0: not measured */
    double floors[SIZES];                         /* one read at random from as much memory; 0: memory does not grow */
} panel;
static panel panels[PANELS] = {
    {"Operators", "ns for each", "number of objects", {"define", "kernel at CPU", "find by name", "find a missing name", "first call",
                                  "call", "close the library"}, {{0}}, {0}},
    {"Calls by base name", "ns for each", "number of objects", {"find an overload set, first time", "find it again", "call after a new definition",
                                           "list the overloads of a name", "misspelt name, per defined name"}, {{0}}, {0}},
    {"Graphs", "ns for each", "number of objects", {"call", "name a value, equal names", "name a value, different names", "find by name", "erase",
                               "trace, inputs of one name"}, {{0}}, {0}},
    {"Autograd graphs and hooks", "ns for each", "number of objects", {"forward", "backward", "add a hook", "run a hook", "remove a hook",
                                                              "backward of a checkpoint"}, {{0}}, {0}},
    {"index_add_ of 3 rows", "ns for all", "elements of self", {"float32", "int32", "bfloat16", "uint8"}, {{0}}, {0}},
    {"Long graphs", "ns for each", "number of steps or values", {"write as C, steps", "write as C, inputs", "save, steps", "cse, constants",
                                                "first run, outputs", "erase, inputs",
                                                "write a loop as C, by rounds"}, {{0}}, {0}},
    {"Memory", "bytes for each", "number of objects", {"operator", "removed operator", "graph value", "autograd node",
                                  "one name, defined again"}, {{0}}, {0}},
};
enum { OPERATORS, OVERLOADS, GRAPHS, TAPES, INDEXED, LONG, MEMORY };

//-- measuring ----------------------------------------------------------------------------------------------------------

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static double held(void) { return (double)opd_memory_stats().live; }

/* Stores the cost of each of n, if it is the lowest so far. */
static void note(int p, int curve, int size, double since, double n) {
    double *v = &panels[p].values[curve][size], cost = fmax((now() - since) / n, 1);
    if (*v == 0 || cost < *v) { *v = cost; }
}
static void note_bytes(int curve, int size, double bytes, double n) {
    double *v = &panels[MEMORY].values[curve][size];
    if (*v == 0) { *v = fmax(bytes / n, 1); }     /* only the first time: later, the names are already stored */
}
/* Measures one read at a random address in `bytes` bytes of memory.  Each address depends on the previous read. */
static void note_floor(int p, int size, double bytes) {
    const size_t n = (size_t)fmax(bytes / LINE, 64);
    char *all = (char *)malloc(n * LINE);
    uint32_t *order = (uint32_t *)malloc(n * sizeof *order);
    uint64_t random = 88172645463325252u;
    double *v = &panels[p].floors[size], t, cost;
    size_t at = 0;
    enum { READS = 200000 };
    if (!all || !order) { fprintf(stderr, "out of memory\n"); exit(1); }
    for (size_t i = 0; i < n; i++) { order[i] = (uint32_t)i; }
    for (size_t i = n - 1; i > 0; i--) {          /* one cycle through all places */
        uint32_t was = order[i];
        random ^= random << 13; random ^= random >> 7; random ^= random << 17;
        order[i] = order[random % i];
        order[random % i] = was;
    }
    for (size_t i = 0; i < n; i++) { *(size_t *)(void *)(all + i * LINE) = order[i]; }
    free(order);
    for (int round = 0; round < 2; round++) {
        t = now();
        for (int i = 0; i < READS; i++) { at = *(size_t *)(void *)(all + at * LINE); }
        cost = (now() - t) / READS + (double)(at == n);
        if (*v == 0 || cost < *v) { *v = cost; }
    }
    free(all);
}
static void stop_on_error(const char *where) {
    if (opd_ok()) { return; }
    fprintf(stderr, "%s: %s\n", where, opd_error_message());
    exit(1);
}

static int same(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static opd_library *library(const char *ns) { return opd_library_open(OPD_FRAGMENT, ns, NULL, "bench/growth.c", 1); }
/* Returns the names of operators in an order that caches cannot predict. */
static const char *name_of(int64_t i, int64_t n, const char *end) {
    static char text[80];
    snprintf(text, sizeof text, "growth::op%d_%d%s", (int)(i * 7919 % n), (int)n, end);
    return text;
}

static void operators(int size) {
    const int64_t n = sizes[size];
    double before = held(), t;
    opd_library *lib = library("growth");
    char (*names)[40] = (char (*)[40])malloc((size_t)n * sizeof *names);
    opd_op **ops = (opd_op **)malloc((size_t)n * sizeof *ops);
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        for (int64_t i = 0; i < n; i++) { strcpy(names[i], name_of(i, n, "")); }
        t = now();
        for (int64_t i = 0; i < n; i++) { opd_def(lib, name_of(i, n, "(Tensor x) -> Tensor") + strlen("growth::")); }
        note(OPERATORS, 0, size, t, (double)n);
        t = now();
        for (int64_t i = 0; i < n; i++) { opd_impl_key(lib, name_of(i, n, ""), "CPU", same, NULL, NULL); }
        note(OPERATORS, 1, size, t, (double)n);
        note_bytes(0, size, held() - before, (double)n);
        note_floor(OPERATORS, size, held() - before);
        note_floor(OVERLOADS, size, held() - before);
        t = now();
        for (int64_t i = 0; i < n; i++) { ops[i] = opd_find(names[i]); }
        note(OPERATORS, 2, size, t, (double)n);
        for (int64_t i = 0; i < n; i++) { strcat(names[i], "x"); }
        t = now();
        for (int64_t i = 0; i < n; i++) { (void)opd_find_quiet(names[i]); }
        note(OPERATORS, 3, size, t, (double)n);
        for (int round = 0; round < 2; round++) {
            t = now();
            for (int64_t i = 0; i < n; i++) { OPD_SCOPE { (void)OPD_CALL(ops[i], x); } }
            note(OPERATORS, 4 + round, size, t, (double)n);
        }
    }
    t = now();
    opd_library_close(lib);
    note(OPERATORS, 6, size, t, (double)n);
    note_bytes(1, size, held() - before, (double)n);
    free(ops);
    free(names);
    stop_on_error("operators");
}

static void overloads(int size) {
    const int64_t n = sizes[size];
    enum { TRIES = 1000, MISSES = 5 };
    opd_library *lib = library("growth"), *other = library("other");
    opd_overloads *add = opd_overloads_find("aten::add");
    opd_value args[2], rets[1];
    char text[80];
    double t, defined = 0;
    OPD_SCOPE {
        args[0] = args[1] = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32));
        for (int64_t i = 0; i < n; i++) { opd_def(lib, name_of(i, n, "(Tensor x) -> Tensor")); }
        for (int round = 0; round < 2; round++) {
            t = now();
            for (int64_t i = 0; i < TRIES; i++) { (void)opd_overloads_find(name_of(i, n, "")); }
            note(OVERLOADS, round, size, t, TRIES);
        }
        for (int i = 0; i < TRIES; i++) {
            snprintf(text, sizeof text, "new%d(Tensor x) -> Tensor", i);
            opd_def(other, text);
            t = now();
            OPD_SCOPE { opd_overloads_call(add, rets, args, 2, NULL, 0); }
            note(OVERLOADS, 2, size, t, 1);
        }
        for (int64_t i = 0; i < n; i++) {
            snprintf(text, sizeof text, "one.name%d(Tensor x) -> Tensor", (int)i);
            opd_def(other, text);
        }
        t = now();
        (void)opd_overloads_find("other::one");
        note(OVERLOADS, 3, size, t, (double)n);
        stop_on_error("overloads");
        for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) { defined++; }
        t = now();
        for (int i = 0; i < MISSES; i++) { (void)opd_find("growth::pp1_1000"); opd_error_clear(); }
        note(OVERLOADS, 4, size, t, MISSES * defined);
    }
    opd_library_close(other);
    opd_library_close(lib);
}

static int first_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_neg(in[0]);
    return 1;
}
static void graphs(int size) {
    const int64_t n = sizes[size];
    double before = held(), t;
    opd_graph *g = opd_graph_new();
    opd_graph_value *x = opd_graph_input(g, "x", NULL), *v = x;
    opd_graph_value **all = (opd_graph_value **)malloc((size_t)n * sizeof *all);
    opd_tensor **in = (opd_tensor **)malloc((size_t)n * sizeof *in);
    const char **names = (const char **)malloc((size_t)n * sizeof *names);
    char text[32];
    opd_trace_options options;
    t = now();
    for (int64_t i = 0; i < n; i++) { opd_graph_call(g, "aten::neg", &v, 1, &v, 1); all[i] = v; }
    note(GRAPHS, 0, size, t, (double)n);
    note_bytes(2, size, held() - before, (double)n);
    note_floor(GRAPHS, size, held() - before);
    t = now();
    for (int64_t i = 0; i < n; i++) { opd_graph_describe(g, all[i], "y", NULL); }
    note(GRAPHS, 1, size, t, (double)n);
    t = now();
    for (int64_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "v%d", (int)i);
        opd_graph_describe(g, all[i], text, NULL);
    }
    note(GRAPHS, 2, size, t, (double)n);
    t = now();
    for (int64_t i = 0; i < n; i++) {
        snprintf(text, sizeof text, "v%d", (int)(i * 7919 % n));
        if (!opd_graph_find(g, text)) { opd_fail(OPD_ERROR_USER, "%s was not found", text); }
    }
    note(GRAPHS, 3, size, t, (double)n);
    t = now();
    for (int64_t i = n; i-- > 0;) { opd_graph_erase(g, all[i]); }
    note(GRAPHS, 4, size, t, (double)n);
    opd_graph_free(g);
    OPD_SCOPE {
        memset(&options, 0, sizeof options);
        options.names = names;
        options.nnames = (int)n;
        for (int64_t i = 0; i < n; i++) { in[i] = opd_ones(OPD_INTS(1), OPD_FLOAT32); names[i] = "x"; }
        t = now();
        g = opd_graph_trace(first_of, NULL, in, (int)n, &options);
        note(GRAPHS, 5, size, t, (double)n);
        opd_graph_free(g);
    }
    free(all);
    free(in);
    free((void *)names);
    stop_on_error("graphs");
}

static int decays(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_tanh(opd_add(opd_mul(in[0], in[2]), in[1]));
    out[1] = opd_mul(out[0], out[0]);
    return 2;
}
static int decays_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *got[2];
    (void)n;
    if (opd_scan(decays, user, in, 1, in + 1, 1, in + 2, 1, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_add(opd_sum(got[0]), opd_sum(got[1]));
    return 1;
}
static int decays_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(decays_sum, user, in, n, NULL, out, 1);
}

/* The files that the program writes and removes. */
static const char *const files[] = {"bench_growth_model.c", "bench_growth_model.h", "bench_growth_model.weights",
                                    "bench_growth_graph"};
static void long_graphs(int size) {
    const int64_t n = sizes[size];
    double before = held(), t;
    opd_graph *g = opd_graph_new();
    opd_graph_value **all = (opd_graph_value **)malloc((size_t)n * sizeof *all), *v[2];
    opd_tensor **in = (opd_tensor **)malloc((size_t)n * sizeof *in), **out = (opd_tensor **)malloc((size_t)n * sizeof *out);
    opd_c_options options;
    memset(&options, 0, sizeof options);
    options.name = "bench_growth_model";
    OPD_SCOPE {
        v[0] = opd_graph_input(g, "x", NULL);
        for (int64_t i = 0; i < n; i++) {             /* x = x + tanh(x) */
            opd_graph_call(g, "aten::tanh", v, 1, v + 1, 1);
            opd_graph_call(g, "aten::add", v, 2, v, 1);
        }
        opd_graph_output(g, v, 1, false);
        note_floor(LONG, size, held() - before);
        in[0] = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        for (int64_t i = 1; i < n; i++) { in[i] = in[0]; }
        t = now();
        opd_graph_write_c(g, in, 1, ".", &options);
        note(LONG, 0, size, t, (double)n);
        t = now();
        opd_graph_save(g, files[3]);
        note(LONG, 2, size, t, (double)n);
        opd_graph_free(g);
        g = opd_graph_new();
        for (int64_t i = 0; i < n; i++) { all[i] = opd_graph_input(g, NULL, NULL); }
        v[0] = all[0];
        for (int64_t i = 1; i < n; i++) {             /* the sum of all inputs */
            v[1] = all[i];
            opd_graph_call(g, "aten::add", v, 2, v, 1);
        }
        opd_graph_output(g, v, 1, false);
        t = now();
        opd_graph_write_c(g, in, (int)n, ".", &options);
        note(LONG, 1, size, t, (double)n);
        opd_graph_output(g, all, (int)n, false);
        for (int64_t i = 0; i < n; i++) { opd_graph_constant(g, opd_value_int(i)); }
        t = now();
        OPD_SCOPE { opd_graph_run(g, in, (int)n, out, (int)n); }
        note(LONG, 4, size, t, (double)n);
        t = now();
        opd_graph_cse(g);
        note(LONG, 3, size, t, (double)n);
        opd_graph_output(g, all, 1, false);
        opd_graph_dce(g);
        t = now();
        for (int64_t i = n; i-- > 1;) { opd_graph_erase(g, all[i]); }
        note(LONG, 5, size, t, (double)n);
        opd_graph_free(g);
        in[0] = opd_zeros(OPD_INTS(2), OPD_FLOAT32);
        in[1] = opd_ones(OPD_INTS(n, 2), OPD_FLOAT32);
        in[2] = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        g = opd_graph_trace(decays_grad, NULL, in, 3, NULL);      /* a loop of n rounds, and its derivative */
        t = now();
        opd_graph_write_c(g, in, 3, ".", &options);
        note(LONG, 6, size, t, 1);
    }
    opd_graph_free(g);
    for (int i = 0; i < 4; i++) { remove(files[i]); }
    free(all);
    free(in);
    free(out);
    stop_on_error("long graphs");
}

static int tanh_of(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    (void)n; (void)m; (void)user;
    out[0] = opd_tanh(in[0]);
    return 0;
}
static opd_tensor *hook(opd_tensor *grad, void *user) { (void)grad; (void)user; return NULL; }
static void tapes(int size) {
    const int64_t n = sizes[size];
    int64_t *hooks = (int64_t *)malloc((size_t)n * sizeof *hooks);
    double before = held(), t;
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
        opd_tensor *w = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y = opd_keep(x), *leaf;
        t = now();
        for (int64_t i = 0; i < n; i++) { OPD_SCOPE { opd_assign(&y, opd_mul(y, w)); } }
        note(TAPES, 0, size, t, (double)n);
        note_bytes(3, size, held() - before, (double)n);
        note_floor(TAPES, size, held() - before);
        t = now();
        opd_backward(y);
        note(TAPES, 1, size, t, (double)n);
        opd_release(y);
        leaf = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
        t = now();
        for (int64_t i = 0; i < n; i++) { hooks[i] = opd_tensor_hook_add(leaf, hook, NULL, NULL); }
        note(TAPES, 2, size, t, (double)n);
        y = opd_sum(opd_mul(leaf, w));
        t = now();
        opd_backward(y);
        note(TAPES, 3, size, t, (double)n);
        t = now();
        for (int64_t i = 0; i < n; i++) { opd_hook_remove(hooks[i]); }
        note(TAPES, 4, size, t, (double)n);
        y = opd_keep(opd_mul(x, w));
        for (int64_t i = 0; i < n; i++) {
            OPD_SCOPE {
                opd_tensor *out = NULL;
                opd_checkpoint(tanh_of, NULL, NULL, &y, 1, &out, 1);
                opd_assign(&y, out);
            }
        }
        t = now();
        opd_backward(y);
        note(TAPES, 5, size, t, (double)n);
        opd_release(y);
    }
    free(hooks);
    stop_on_error("tapes");
}

static void indexed(int size) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_INT32, OPD_BFLOAT16, OPD_UINT8};
    static const int64_t rows[] = {1, 0, 2};
    enum { CALLS = 3 };
    for (int d = 0; d < 4; d++) {
        OPD_SCOPE {
            opd_op *op = opd_find("aten::index_add_");
            opd_tensor *self = opd_zeros(OPD_INTS(sizes[size]), dtypes[d]), *of = opd_ones(OPD_INTS(3), dtypes[d]);
            opd_tensor *index = opd_tensor_from(rows, OPD_INTS(3), OPD_INT64);
            for (int i = 0; i < CALLS; i++) {
                double t = now();
                OPD_SCOPE { (void)OPD_CALL(op, self, 0, index, of); }
                note(INDEXED, d, size, t, 1);
            }
        }
    }
    stop_on_error("index_add_");
}

static void again(int size) {
    const int64_t n = sizes[size];
    double before = 0;
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        for (int64_t i = 0; i <= n; i++) {
            opd_library *lib = library("again");
            opd_def(lib, "op(Tensor x) -> Tensor");
            opd_impl_key(lib, "op", "CPU", same, NULL, NULL);
            OPD_SCOPE { (void)OPD_CALL(opd_find("again::op"), x); }
            opd_library_close(lib);
            if (i == 0) { before = held(); }
        }
        note_bytes(4, size, held() - before, (double)n);
    }
    stop_on_error("again");
}

//-- the table ----------------------------------------------------------------------------------------------------------

static int largest_of(const double *v) {
    int most = 0;
    for (int i = 1; i < nsizes; i++) { if (v[i] > v[most]) { most = i; } }
    return most;
}
static void print_figures(const double *v) { for (int i = 0; i < nsizes; i++) { printf(" %9.*f", v[i] < 10 ? 2 : 0, v[i]); } }
static void print_tables(void) {
    for (int p = 0; p < PANELS; p++) {
        const double *floors = panels[p].floors;
        printf("\n%-34s", panels[p].title);
        for (int i = 0; i < nsizes; i++) { printf(" %9d", (int)sizes[i]); }
        printf("   growth  reads   (%s)\n", panels[p].unit);
        for (int c = 0; c < CURVES && panels[p].curves[c]; c++) {
            const double *v = panels[p].values[c];
            const int most = largest_of(v);
            const double growth = v[most] / v[0], reads = floors[most] > 0 ? (v[most] - v[0]) / floors[most] : 0;
            printf("  %-32s", panels[p].curves[c]);
            print_figures(v);
            printf(" %7.1fx", growth);
            if (floors[0] > 0) { printf(" %6.1f", reads); }
            printf("%s\n", growth > (p == LONG ? 3 : 2) && (floors[0] <= 0 || reads > (p == LONG ? 12 : 3)) ? "  !" : "");
        }
        if (floors[0] > 0) {
            printf("  %-32s", "(one read of as much memory)");
            print_figures(floors);
            printf(" %7.1fx\n", floors[nsizes - 1] / floors[0]);
        }
    }
}

//-- the picture --------------------------------------------------------------------------------------------------------

enum { WIDE = 560, HIGH = 330, LEFT = 62, TOP = 46, PLOT_W = 300, PLOT_H = 226, MARGIN = 20, HEAD = 74 };
/* Colours that colour-blind people can tell apart (Okabe and Ito). */
static const char *const colours[CURVES] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333"};

static void tick_text(char *buf, size_t cap, double v) {
    if (v >= 1e9) { snprintf(buf, cap, "%gG", v / 1e9); }
    else if (v >= 1e6) { snprintf(buf, cap, "%gM", v / 1e6); }
    else if (v >= 1e3) { snprintf(buf, cap, "%gk", v / 1e3); }
    else { snprintf(buf, cap, "%g", v); }
}

typedef struct frame { double x, y, low, high; } frame;     /* the place of a panel, and the logarithms at its edges */
static double x_at(const frame *f, double n) {
    const double first = log10((double)sizes[0]), last = log10((double)sizes[nsizes - 1]);
    return f->x + (log10(n) - first) / (last - first) * PLOT_W;
}
static double y_at(const frame *f, double v) { return f->y + PLOT_H - (log10(v) - f->low) / (f->high - f->low) * PLOT_H; }

static void draw_axes(FILE *out, const panel *p, const frame *f) {
    char text[16];
    fprintf(out, "<text x='%.1f' y='%.1f' class='title'>%s</text>\n", f->x, f->y - 24, p->title);
    fprintf(out, "<text x='%.1f' y='%.1f' class='unit'>%s</text>\n", f->x, f->y - 8, p->unit);
    for (int e = (int)f->low; e <= (int)f->high; e++) {
        const double y = y_at(f, pow(10, e));
        tick_text(text, sizeof text, pow(10, e));
        fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='grid'/>", f->x, y, f->x + PLOT_W, y);
        fprintf(out, "<text x='%.1f' y='%.1f' class='tick' text-anchor='end'>%s</text>\n", f->x - 7, y + 4, text);
    }
    for (int i = 0; i < nsizes; i++) {
        const double x = x_at(f, (double)sizes[i]);
        tick_text(text, sizeof text, (double)sizes[i]);
        fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='axis'/>", x, f->y + PLOT_H, x, f->y + PLOT_H + 4);
        fprintf(out, "<text x='%.1f' y='%.1f' class='tick' text-anchor='middle'>%s</text>\n", x, f->y + PLOT_H + 17, text);
    }
    fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='axis'/>\n", f->x, f->y + PLOT_H, f->x + PLOT_W,
            f->y + PLOT_H);
    fprintf(out, "<text x='%.1f' y='%.1f' class='unit' text-anchor='middle'>%s</text>\n",
            f->x + PLOT_W / 2.0, f->y + PLOT_H + 34, p->number);
}

/* Draws the lines, and their names in the order of their ends, moved so that they do not overlap. */
static void draw_curves(FILE *out, const panel *p, const frame *f) {
    int order[CURVES], count = 0;
    double at[CURVES], gap = 17;
    for (int c = 0; c < CURVES && p->curves[c]; c++) {
        int k = count++;
        for (; k > 0 && p->values[order[k - 1]][nsizes - 1] < p->values[c][nsizes - 1]; k--) { order[k] = order[k - 1]; }
        order[k] = c;
    }
    for (int k = 0; k < count; k++) {
        at[k] = y_at(f, p->values[order[k]][nsizes - 1]);
        if (k > 0 && at[k] < at[k - 1] + gap) { at[k] = at[k - 1] + gap; }
    }
    for (int k = count - 1; k >= 0; k--) {        /* moves names up again that would leave the panel */
        const double most = k == count - 1 ? f->y + PLOT_H + 4 : at[k + 1] - gap;
        at[k] = fmin(at[k], most);
    }
    for (int k = 0; k < count; k++) {
        const double *v = p->values[order[k]], end = y_at(f, v[nsizes - 1]);
        const char *colour = colours[order[k]];
        fprintf(out, "<polyline fill='none' stroke='%s' stroke-width='2' points='", colour);
        for (int i = 0; i < nsizes; i++) { fprintf(out, "%.1f,%.1f ", x_at(f, (double)sizes[i]), y_at(f, v[i])); }
        fprintf(out, "'/>\n");
        for (int i = 0; i < nsizes; i++) {
            fprintf(out, "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>", x_at(f, (double)sizes[i]), y_at(f, v[i]), colour);
        }
        fprintf(out, "<polyline fill='none' stroke='%s' stroke-width='0.8' points='%.1f,%.1f %.1f,%.1f'/>\n", colour,
                f->x + PLOT_W + 4, end, f->x + PLOT_W + 14, at[k]);
        fprintf(out, "<text x='%.1f' y='%.1f' class='name' fill='%s'>%s</text>\n", f->x + PLOT_W + 18, at[k] + 4, colour,
                p->curves[order[k]]);
    }
}

static int draw(const char *path) {
    FILE *out = fopen(path, "w");
    if (!out) { perror(path); return 1; }
    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='Helvetica, Arial, sans-serif'>\n"
            "<style>.title{font-size:15px;font-weight:bold} .unit{font-size:11px;fill:#666} .tick{font-size:11px;fill:#444} "
            ".name{font-size:12px} .grid{stroke:#e4e4e4} .axis{stroke:#888} .guide{stroke:#999;stroke-dasharray:3 4}</style>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n", 2 * WIDE + 2 * MARGIN, HEAD + (PANELS + 1) / 2 * HIGH + MARGIN);
    fprintf(out, "<text x='%d' y='34' font-size='20' font-weight='bold'>opdispatch: the cost of one object among many</text>\n",
            MARGIN + 4);
    fprintf(out, "<text x='%d' y='54' font-size='12' fill='#666'>Both axes are logarithmic. A flat curve: the cost of an "
            "object does not depend on their number. As steep as the dashed line: it is proportional to their number.</text>\n", MARGIN + 4);
    for (int p = 0; p < PANELS; p++) {
        double least = INFINITY, most = 0;
        frame f;
        for (int c = 0; c < CURVES && panels[p].curves[c]; c++) {
            for (int i = 0; i < nsizes; i++) {
                least = fmin(least, panels[p].values[c][i]);
                most = fmax(most, panels[p].values[c][i]);
            }
        }
        f.x = MARGIN + LEFT + p % 2 * WIDE;
        f.y = HEAD + TOP + p / 2 * HIGH;
        f.low = floor(log10(least));
        f.high = fmax(ceil(log10(most)), f.low + 2);
        draw_axes(out, &panels[p], &f);
        {
            const double decades = fmin(f.high - f.low, log10((double)sizes[nsizes - 1]) - 3);
            fprintf(out, "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' class='guide'/>\n", f.x, f.y + PLOT_H,
                    x_at(&f, 1000 * pow(10, decades)), y_at(&f, pow(10, f.low + decades)));
        }
        draw_curves(out, &panels[p], &f);
    }
    fprintf(out, "</svg>\n");
    return fclose(out) != 0;
}

int main(int argc, char **argv) {
    static const char help[] = "bench_growth [--quick] [--plot FILE] [--help]\n"
        "  --quick      one round, with at most 10,000 objects of each kind\n"
        "  --plot FILE  draws the results as a picture (SVG)\n";
    const char *plot = NULL;
    int rounds = 3, rc;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick")) { nsizes = 3; rounds = 1; }
        else if (!strcmp(argv[i], "--plot") && i + 1 < argc) { plot = argv[++i]; }
        else { fputs(help, stdout); return strcmp(argv[i], "--help") ? 2 : 0; }
    }
    opd_threads_set(1);
    OPD_SCOPE { (void)opd_find("aten::nothing"); opd_error_clear(); }            /* registers the built-in operators */
    for (int size = 0; size < nsizes; size++) {
        for (int round = 0; round < (size < 3 ? rounds : 1 + (rounds > 1)); round++) {
            operators(size);
            overloads(size);
            graphs(size);
            long_graphs(size);
            tapes(size);
            indexed(size);
        }
        again(size);
    }
    print_tables();
    rc = plot ? draw(plot) : 0;
    return opd_finish() || rc;
}
