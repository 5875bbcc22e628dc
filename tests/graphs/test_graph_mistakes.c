/* All functions that change graphs, with wrong arguments at each place: NULL, values and nodes of another graph, and ones
   that were removed.  Each is an error that names the function, and the graph stays as it was. */
#include "../../opdispatch.h"
#include "../check.h"

static const char *const text = "graph(%x : Float(2, 2), %w : Float(2, 2)):\n  %n : int = prim::Constant[value=1]()\n"
    "  %y : Float(2, 2) = aten::mm(%x, %w)\n  %z : Float(2, 2) = aten::relu(%y)\n  %s : Float(2, 2) = aten::sin(%z)\n  return (%s)\n";
/* The arguments of one try: the graph, the value in question, and a right value and node. */
typedef struct mistake {
    opd_graph *graph;
    const opd_graph *inner;
    opd_graph_value *bad, *good;
    opd_graph_node *bad_node, *node;
} mistake;
typedef int (*attempt)(const mistake *m);
static bool all(void *user, const opd_graph_node *node) { (void)user; (void)node; return true; }
static int never(void *user, const opd_graph *part, opd_part_function *function) { (void)user; (void)part; (void)function; return 1; }

/* Functions that get a bad value or node. */
static int replaces(const mistake *m) { return opd_graph_replace(m->graph, m->bad, m->good); }
static int replaces_by(const mistake *m) { return opd_graph_replace(m->graph, m->good, m->bad); }
static int sets_input(const mistake *m) { return opd_graph_set_input(m->graph, m->node, 0, m->bad); }
static int sets_input_of(const mistake *m) { return opd_graph_set_input(m->graph, m->bad_node, 0, m->good); }
static int erases_node(const mistake *m) { return opd_graph_erase_node(m->graph, m->bad_node); }
static int erases(const mistake *m) { return opd_graph_erase(m->graph, m->bad); }
static int describes(const mistake *m) { return opd_graph_describe(m->graph, m->bad, "name", NULL); }
static int calls(const mistake *m) { opd_graph_value *out; return opd_graph_call(m->graph, "aten::relu", &m->bad, 1, &out, 1); }
static int calls_op(const mistake *m) {
    opd_graph_value *out;
    return opd_graph_call_op(m->graph, opd_find("aten::relu"), &m->bad, 1, &out, 1);
}
static int calls_args(const mistake *m) {
    opd_graph_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.kind = OPD_GRAPH_ARG_VALUE;
    arg.value = m->bad;
    return opd_graph_call_args(m->graph, "aten::relu", &arg, 1) ? 0 : -1;
}
static int lists(const mistake *m) { return opd_graph_list(m->graph, "Tensor", &m->bad, 1) ? 0 : -1; }
static int unpacks(const mistake *m) { opd_graph_value *part; return opd_graph_unpack(m->graph, m->bad, &part, 1); }
static int outputs(const mistake *m) { return opd_graph_output(m->graph, &m->bad, 1, false); }
static int inlines(const mistake *m) {
    opd_graph_value *out, *args[2];
    args[0] = m->good;
    args[1] = m->bad;
    return opd_graph_inline(m->graph, m->inner, args, 2, &out, 1);
}
static int ends(opd_graph *made) { opd_graph_free(made); return made ? 0 : -1; }
static int extracts(const mistake *m) { return ends(opd_graph_extract(m->graph, &m->bad, 1, &m->good, 1)); }
static int extracts_to(const mistake *m) { return ends(opd_graph_extract(m->graph, &m->good, 1, &m->bad, 1)); }
static int extracts_part(const mistake *m) {
    const opd_part part = {&m->bad_node, 1, &m->bad, 1, &m->good, 1};
    return ends(opd_graph_extract_part(m->graph, &part));
}
static int inserts_after(const mistake *m) { return m->bad ? opd_graph_insert_after(m->graph, m->bad) : opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_"); }
static int inserts_before(const mistake *m) { return m->bad ? opd_graph_insert_before(m->graph, m->bad) : opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_"); }
static const attempt with_values[] = {replaces, replaces_by, sets_input, sets_input_of, erases_node, erases, describes, calls, calls_op,
    calls_args, lists, unpacks, outputs, inlines, extracts, extracts_to, extracts_part, inserts_after, inserts_before};

/* Functions of whole graphs, which get NULL. */
static int copies(const mistake *m) { return ends(opd_graph_copy(m->graph)); }
static int checks(const mistake *m) { return opd_graph_check(m->graph); }
static int infers(const mistake *m) { return opd_graph_infer(m->graph, NULL, 0); }
static int partitions(const mistake *m) { return opd_graph_partition(m->graph, all, NULL, NULL, 0); }
static int delegates(const mistake *m) { const opd_part_compiler compiler = {all, never, 0, NULL}; return opd_graph_delegate(m->graph, &compiler); }
static int rewrites(const mistake *m) { return opd_graph_rewrite(m->graph, m->inner, m->inner, NULL); }
static int plans(const mistake *m) { return opd_graph_plan_memory(m->graph, opd_device_make(OPD_CPU, -1), NULL, 0, NULL); }
static int fuses(const mistake *m) { return opd_graph_fuse_pointwise(m->graph, 0); }
static int lays(const mistake *m) { return opd_graph_channels_last(m->graph); }
static int dces(const mistake *m) { return opd_graph_dce(m->graph); }
static int cses(const mistake *m) { return opd_graph_cse(m->graph); }
static int folds(const mistake *m) { return opd_graph_fold(m->graph); }
static int folds_norms(const mistake *m) { return opd_graph_fold_batch_norms(m->graph); }
static const attempt with_graphs[] = {copies, checks, infers, partitions, delegates, rewrites, plans, fuses, lays, dces, cses, folds, folds_norms};

static void refused(const attempt *attempts, int k, const mistake *m, const opd_graph *copy, const char *what) {
    const int rc = attempts[k](m);
    const bool named = strstr(opd_error_message(), "opd_graph_") || strstr(opd_error_message(), "OPD_GRAPH_CALL");
    CHECK_INT(rc, -1);
    CHECK(named);
    if (rc != -1 || !named) { fprintf(stderr, "function %d, %s: %s\n", k, what, opd_error_message()); }
    opd_error_clear();
    if (copy) { CHECK(opd_graph_equal(m->graph, copy)); CHECK_INT(opd_graph_check(m->graph), 0); }
    opd_error_clear();
}
TEST(wrong_values_and_nodes_are_refused_everywhere) {
    opd_graph *graph = opd_graph_parse(text), *other = opd_graph_parse(text), *inner = opd_graph_parse(text);
    opd_graph_value *gone = NULL, *first = opd_graph_find(graph, "y");
    CHECK_INT(opd_graph_call(graph, "aten::relu", &first, 1, &gone, 1), 1);
    opd_graph_node *const gone_node = opd_graph_value_node(gone);
    CHECK_INT(opd_graph_erase_node(graph, gone_node), 0);
    opd_graph *copy = opd_graph_copy(graph);
    opd_graph_value *bad[3];
    bad[0] = gone;
    bad[1] = opd_graph_find(other, "y");
    bad[2] = NULL;
    static const char *const kinds[] = {"removed", "of another graph", "NULL"};
    for (int kind = 0; kind < 3; kind++) {
        mistake m = {graph, inner, bad[kind], opd_graph_find(graph, "z"), NULL, NULL};
        m.node = opd_graph_value_node(m.good);
        m.bad_node = kind == 2 ? NULL : opd_graph_value_node(bad[kind]);
        if (kind == 0) { m.bad_node = gone_node; }
        for (int k = 0; k < (int)(sizeof with_values / sizeof *with_values); k++) { refused(with_values, k, &m, copy, kinds[kind]); }
    }
    mistake none = {NULL, NULL, opd_graph_find(graph, "y"), opd_graph_find(graph, "z"), NULL, NULL};
    none.node = none.bad_node = opd_graph_value_node(none.good);
    for (int k = 0; k < (int)(sizeof with_values / sizeof *with_values); k++) { refused(with_values, k, &none, NULL, "no graph"); }
    for (int k = 0; k < (int)(sizeof with_graphs / sizeof *with_graphs); k++) { refused(with_graphs, k, &none, NULL, "no graph"); }
    opd_graph_free(copy);
    opd_graph_free(inner);
    opd_graph_free(other);
    opd_graph_free(graph);
}
CHECK_MAIN()
