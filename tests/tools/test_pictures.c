/* opd_graph_dot: the text for small graphs, names, truncated buffers, large graphs, bad input, failing allocations. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_tensor *leaf(opd_ints sizes) { return opd_tensor_set_requires_grad(opd_ones(sizes, OPD_FLOAT32), true); }
static void has(const char *text, const char *part) {
    if (!strstr(text, part)) { printf("  no \"%s\" in\n%s\n", part, text); }
    CHECK(strstr(text, part) != NULL);
}
#define HEAD "digraph backward {\n  graph [fontname=\"sans-serif\", fontsize=11];\n" \
    "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n" \
    "  edge [fontname=\"sans-serif\", fontsize=9];\n"

TEST(a_small_graph) {
    static const char *const text = HEAD
        "  n0 [label=\"SumBackward0\\n[] float32\"];\n"
        "  n1 [label=\"MulBackward0\\n[2, 3] float32\\nsaved 48 bytes\"];\n"
        "  n2 [label=\"TanhBackward0\\n[2, 3] float32\\nsaved 24 bytes\"];\n"
        "  n3 [label=\"leaf\\n[2, 3] float32\", shape=ellipse, fillcolor=lightblue];\n"
        "  n4 [label=\"a \\\"name\\\"\\nin \\\\two lines\\n[2, 3] float32\", shape=ellipse, fillcolor=lightblue];\n"
        "  n1 -> n0;\n"
        "  n2 -> n1;\n"
        "  n3 -> n1;\n"
        "  n4 -> n2;\n"
        "  o0 [label=\"loss\\n[] float32\", shape=ellipse, fillcolor=palegreen];\n"
        "  n0 -> o0;\n"
        "  labelloc=t;\n"
        "  label=\"the title\\n3 nodes, 2 leaves, saved tensors lie in 48 bytes of memory\";\n}\n";
    char buf[4000], small[20];
    opd_tensor *named[2], *x = leaf(OPD_INTS(2, 3)), *y = leaf(OPD_INTS(2, 3)), *loss = opd_sum(opd_mul(opd_tanh(x), y));
    static const char *const names[] = {"loss", "a \"name\"\nin \\two lines"};
    opd_graph_options o;
    size_t n;
    memset(&o, 0, sizeof o);
    named[0] = loss;
    named[1] = x;
    o.tensors = named;
    o.names = names;
    o.nnames = 2;
    o.title = "the title";
    n = opd_graph_dot(&loss, 1, &o, buf, sizeof buf);
    CHECK_STR(buf, text);
    CHECK_INT(n, strlen(text));
    CHECK_INT(opd_graph_dot(&loss, 1, &o, NULL, 0), n);
    CHECK_INT(opd_graph_dot(&loss, 1, &o, small, sizeof small), n);
    CHECK(strlen(small) == sizeof small - 1 && strncmp(small, text, sizeof small - 1) == 0);
    o.no_saved = true;
    (void)opd_graph_dot(&loss, 1, &o, buf, sizeof buf);
    CHECK(strstr(buf, "saved") == NULL);
    CHECK_INT(opd_backward(loss), 0);
    (void)opd_graph_dot(&loss, 1, NULL, buf, sizeof buf);
    has(buf, "n1 [label=\"MulBackward0\\n[2, 3] float32\\nsaved: freed\"];");
    has(buf, "label=\"3 nodes, 2 leaves, saved tensors lie in 0 bytes of memory\"");
}
TEST(leaves_and_constants_and_several_outputs) {
    char buf[6000];
    opd_tensor *t[4], *x = leaf(OPD_INTS(4)), *parts[2];
    opd_tensors list = opd_split(x, 2, 0);
    parts[0] = list.data[0];
    parts[1] = list.data[1];
    t[0] = x;
    t[1] = opd_ones(OPD_INTS(3), OPD_INT64);
    t[2] = opd_mul(parts[0], parts[1]);
    t[3] = x;
    (void)opd_graph_dot(t, 4, NULL, buf, sizeof buf);
    has(buf, "  n0 [label=\"leaf\\n[4] float32\", shape=ellipse, fillcolor=lightblue];\n");
    has(buf, "  o0 [label=\"output\\n[4] float32\", shape=ellipse, fillcolor=palegreen];\n  n0 -> o0;\n");
    has(buf, "  o1 [label=\"output\\n[3] int64\", shape=ellipse, fillcolor=lightgray];\n  o2 ");
    has(buf, " -> n1 [label=\"0\"];\n");
    has(buf, " -> n1 [label=\"1\"];\n");
    has(buf, "2 nodes, 1 leaves");
    CHECK(opd_graph_dot(NULL, 0, NULL, buf, sizeof buf) > 0);
    has(buf, "0 nodes, 0 leaves");
}
TEST(a_write_into_a_view) {
    char buf[4000];
    opd_tensor *x = leaf(OPD_INTS(4)), *y = opd_mul_Scalar(x, OPD_V(2)), *v = opd_select(y, 0, 1);
    opd_value args[2], rets[1];
    args[0] = opd_value_tensor(v);
    args[1] = opd_value_tensor(v);
    CHECK_INT(opd_call_all(opd_find("aten::mul_.Tensor"), rets, args, 2), 0);
    (void)opd_graph_dot(&y, 1, NULL, buf, sizeof buf);
    has(buf, "n0 [label=\"CopySlices of MulBackward0\\n[4] float32\\nsaved 8 bytes\"];");
}
TEST(a_long_chain_and_a_wide_sum) {
    enum { LONG = 50000, WIDE = 2000 };
    static opd_tensor *wide[WIDE];
    opd_tensor *x = leaf(OPD_INTS(1)), *y = x;
    char *buf;
    size_t n;
    int i;
    for (i = 0; i < LONG; i++) { y = opd_neg(y); }
    n = opd_graph_dot(&y, 1, NULL, NULL, 0);
    buf = (char *)malloc(n + 1);
    CHECK_OR_RETURN(buf != NULL);
    CHECK_INT(opd_graph_dot(&y, 1, NULL, buf, n + 1), n);
    CHECK_INT(strlen(buf), n);
    has(buf + n - 120, "50000 nodes, 1 leaves");
    free(buf);
    for (i = 0; i < WIDE; i++) { wide[i] = leaf(OPD_INTS(1)); }
    y = opd_cat(opd_tensors_of(wide, WIDE), 0);
    CHECK(opd_graph_dot(&y, 1, NULL, NULL, 0) > (size_t)WIDE * 40);
}
TEST(bad_input) {
    char buf[100] = "x";
    opd_tensor *x = leaf(OPD_INTS(1)), *null = NULL;
    const char *name = NULL;
    opd_graph_options o;
    memset(&o, 0, sizeof o);
    CHECK_INT(opd_graph_dot(NULL, 1, NULL, buf, sizeof buf), 0);
    CHECK_STR(buf, "");
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_dot: the pointer to an array is NULL");
    CHECK_INT(opd_graph_dot(&null, 1, NULL, buf, sizeof buf), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_dot");
    CHECK_INT(opd_graph_dot(&x, 1, NULL, NULL, 10), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_dot: the pointer to an array is NULL");
    o.nnames = 1;
    CHECK_INT(opd_graph_dot(&x, 1, &o, buf, sizeof buf), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_dot: the pointer to an array is NULL");
    o.tensors = &x;
    o.names = &name;
    CHECK_INT(opd_graph_dot(&x, 1, &o, buf, sizeof buf), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "name 0 is NULL");
    (void)opd_fail(OPD_ERROR_USER, "pending");
    CHECK_INT(opd_graph_dot(&x, 1, NULL, buf, sizeof buf), 0);
    CHECK_ERROR(OPD_ERROR_USER, "pending");
}
TEST(any_allocation_may_fail) {
    char buf[20000];
    opd_tensor *x = leaf(OPD_INTS(3)), *y = x;
    int64_t n, live;
    int i;
    for (i = 0; i < 100; i++) { y = opd_mul(y, opd_exp(x)); }
    for (n = 1; n < 100; n++) {
        size_t length;
        live = opd_memory_stats().live;
        (void)opd_memory_fail_at(n, n % 2 == 0);
        length = opd_graph_dot(&y, 1, NULL, buf, sizeof buf);
        if (opd_memory_fail_at(0, false) < n) { CHECK(length > 0); break; }
        CHECK_INT(length, 0);
        CHECK_STR(buf, "");
        CHECK_ERROR(OPD_ERROR_MEMORY, "");
        CHECK_INT(opd_memory_stats().live, live);
    }
    CHECK(n > 3 && n < 100);
}

CHECK_MAIN()
