/* Each operator, compiled with empty arguments of all shapes that it takes, gives the same results as uncompiled: empty
   tensors need not have the sizes, nor the number of dims, of other arguments. */
#include "../cases.h"

/* The most calls, and the most inputs and outputs, of one graph. */
enum { CALLS = 24, PLACES = 56, SHAPES = 7 };

/* Calls of one operator, with the other arguments of one of its sample calls. */
static op_case sample;
static struct { opd_tensor *in[PLACES], *out[PLACES]; int each, calls, nin, nout; } all;

static int call_all(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int count = 0;
    (void)user;
    (void)n;
    for (int i = 0; i < all.calls; i++) {
        const int made = case_call(&sample, in + i * all.each, all.each, out + count);
        if (made < 0) { return -1; }
        count += made;
    }
    return count;
}
/* Returns an empty tensor like x: of the shape number `shape`. */
static opd_tensor *empty_like(opd_tensor *x, int shape) {
    static const int64_t fixed[SHAPES - 2][4] = {{0}, {2, 0}, {2, 2, 0}, {0, 3}, {1, 1, 2, 0}};
    static const int counts[SHAPES - 2] = {1, 2, 3, 2, 4};
    int64_t sizes[OPD_MAX_DIMS];
    const int ndim = opd_ndim(x), own = shape - (SHAPES - 2);
    if (own < 0) { return opd_empty(opd_ints_of(fixed[shape], counts[shape]), opd_dtype(x)); }
    if (!ndim) { return NULL; }
    memcpy(sizes, opd_sizes(x), (size_t)ndim * sizeof *sizes);
    sizes[own ? ndim - 1 : 0] = 0;
    return opd_empty(opd_ints_of(sizes, ndim), opd_dtype(x));
}
/* Adds the call with an empty argument number `which` (`all.each`: with all arguments empty), if the operator takes
   it. */
static void add_call(opd_tensor *const *given, int which, int shape) {
    opd_tensor *in[OPD_MAX_ARGS], *out[MOST_RESULTS];
    int count = 0;
    if (all.calls == CALLS || all.nin + all.each > PLACES) { return; }
    for (int i = 0; i < all.each; i++) {
        in[i] = i == which || which == all.each ? empty_like(given[i], shape) : opd_clone(given[i]);
        if (!in[i]) { return; }
    }
    OPD_SCOPE {
        opd_tensor *again[OPD_MAX_ARGS];
        for (int i = 0; i < all.each; i++) { again[i] = opd_clone(in[i]); }
        count = case_call(&sample, again, all.each, out);
        for (int i = 0; i < count; i++) { count = out[i] ? count : -1; }
    }
    opd_error_clear();
    if (count < 0 || all.nout + count > PLACES) { return; }
    memcpy(all.in + all.nin, in, (size_t)all.each * sizeof *in);
    all.nin += all.each;
    all.nout += count;
    all.calls++;
}
static void clone_all(opd_tensor **to) { for (int i = 0; i < all.nin; i++) { to[i] = opd_clone(all.in[i]); } }
static bool same_tensors(opd_tensor *got, opd_tensor *want) {
    if (!got || !want || opd_dtype(got) != opd_dtype(want) || opd_ndim(got) != opd_ndim(want) ||
        memcmp(opd_sizes(got), opd_sizes(want), (size_t)opd_ndim(got) * sizeof(int64_t)) != 0) { return false; }
    return opd_allclose_full(opd_to_dtype(got, OPD_COMPLEX128), opd_to_dtype(want, OPD_COMPLEX128), 1e-5, 1e-6,
                             true);
}
/* Compares the calls, compiled and uncompiled.  Returns whether they were compiled. */
static bool compare_calls(void) {
    opd_tensor *in[PLACES], *got[PLACES], *want[PLACES];
    bool done = false;
    clone_all(in);
    opd_graph *const graph = opd_graph_trace(call_all, NULL, in, all.nin, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    opd_error_clear();
    for (int k = 0; k < 2 && compiled; k++) {
        clone_all(in);
        const int count = opd_graph_run(graph, in, all.nin, want, PLACES);
        clone_all(in);
        CHECK_INT(opd_compiled_function(compiled, in, all.nin, got), count);
        done = opd_compiled_reason(compiled) == NULL;
        for (int i = 0; i < count && done; i++) {
            const bool same = same_tensors(got[i], want[i]);
            if (!same) { printf("%s\n", what); }
            CHECK(same);
        }
        opd_error_clear();
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    return done;
}
/* Compares all calls with empty arguments that are like one of the operator's sample calls.  Returns the number of
   compiled calls. */
static int compare_sample(const opd_op *op, const char *text) {
    opd_tensor *given[OPD_MAX_ARGS];
    OPD_SCOPED;
    memset(&sample, 0, sizeof sample);
    memset(&all, 0, sizeof all);
    sample.op = op;
    sample.dtype = OPD_FLOAT32;
    (void)snprintf(what, sizeof what, "    %s \"%.*s\"", opd_op_name(op), (int)strcspn(text, ";"), text);
    if (!case_read_next(&sample, &text)) {
        opd_error_clear();
        return 0;
    }
    for (int i = 0; i < sample.nargs; i++) {
        if (sample.args[i].tag == OPD_TAG_TENSOR && all.each < 8) { given[all.each++] = sample.args[i].u.t; }
    }
    for (int which = 0; which <= all.each; which++) {
        for (int shape = 0; shape < SHAPES && all.each && (which < all.each || all.each > 1); shape++) {
            add_call(given, which, shape);
        }
    }
    return all.calls && compare_calls() ? all.calls : 0;
}
static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
/* All operators where there is a compiler that takes no time, else only those that read or write at indices. */
TEST(empty_arguments) {
    const bool quick = system("tcc -v >/dev/null 2>&1") == 0;
    const char *const cc = getenv("CC");
    char was[200];
    int count = 0;
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(was, sizeof was, "%s", cc ? cc : "cc");
    if (quick) { (void)setenv("CC", "tcc", 1); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    opd_log_set(say_nothing, NULL);
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *const card = opd_op_card(op);
        const char *const name = opd_op_name(op), *text = card && card->cases ? card->cases : "";
        const bool at = strstr(name, "scatter") || strstr(name, "gather") || strstr(name, "index");
        if (is_random(op) || strstr(name, "empty") || !(at || (quick && check_compiles(name)))) { continue; }
        for (; *text; text += quick ? strcspn(text, ";") : strlen(text)) {
            text += *text == ';';
            count += compare_sample(op, text);
        }
    }
    opd_log_set(NULL, NULL);
    (void)setenv("CC", was, 1);
    printf("%d calls compiled\n", count);
    CHECK(count > 100);
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
