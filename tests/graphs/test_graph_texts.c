/* Texts of graphs with constants in a file beside them: opd_graph_save_text and opd_graph_load_text are inverse. */
#include "../../opdispatch.h"
#include "../control_bodies.h"

#include <unistd.h>

static const char *path_of(const char *end) {
    static char paths[4][400];
    static int next;
    const char *const temporary = getenv("TMPDIR");
    char *const path = paths[next++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/opd_text_%d.graph%s", temporary ? temporary : "/tmp", (int)getpid(), end);
    return path;
}
#define PATH path_of("")
#define BESIDE path_of(".safetensors")
static void clean(void) { (void)remove(PATH), (void)remove(BESIDE); }
static char *read_text(void) {
    static char text[100000];
    FILE *const file = fopen(PATH, "rb");
    CHECK(file != NULL);
    text[0] = 0;
    if (file) {
        text[fread(text, 1, sizeof text - 1, file)] = 0;
        (void)fclose(file);
    }
    return text;
}
static void write_bytes(const char *path, const void *data, size_t n) {
    FILE *const file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(data, 1, n, file) == n);
    if (file) { (void)fclose(file); }
}
static void write_text(const char *text) { write_bytes(PATH, text, strlen(text)); }
/* Replaces `from` in the text of the file. */
static void edit(const char *from, const char *to) {
    char *const text = read_text(), *const at = strstr(text, from), all[20000];
    CHECK(at != NULL && strlen(text) < 19000);
    if (!at) { return; }
    (void)snprintf(all, sizeof all, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    write_text(all);
}
static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* Saves and loads a graph, which must be equal then, and have the same text. */
static opd_graph *round_trip(const opd_graph *graph) {
    static char first[100000];
    CHECK_INT(opd_graph_save_text(graph, PATH), 0);
    CHECK_OK();
    opd_graph *const again = opd_graph_load_text(PATH);
    CHECK_OK();
    CHECK(again && opd_graph_equal(again, graph));
    CHECK_INT(opd_graph_save_text(again, PATH), 0);
    (void)snprintf(first, sizeof first, "%s", read_text());
    opd_graph *const third = opd_graph_load_text(PATH);
    CHECK(third && opd_graph_equal(third, graph));
    CHECK_INT(opd_graph_save_text(third, PATH), 0);
    CHECK_STR(read_text(), first);                                     /* the numbers of values stay */
    opd_graph_free(third);
    return again;
}

static opd_tensor *held[12];
static int nheld;
BODY(adds) {
    UNUSED();
    out[0] = in[0];
    for (int i = 0; i < nheld; i++) { out[0] = opd_add(out[0], opd_sum(opd_to_dtype(held[i], OPD_FLOAT64))); }
    DONE(1);
}
BODY(scaled) { UNUSED(); out[0] = opd_mul(in[0], held[0]), out[1] = opd_sum(opd_mul(in[1], held[0])); DONE(2); }
BODY(scans) { UNUSED(); return opd_scan(scaled, NULL, in, 1, in + 1, 1, NONE, NULL, out, 2); }
BODY(wraps) { UNUSED(); out[0] = OPD_CALL(opd_find("aten::mul.Tensor"), in[0], 2.5); DONE(1); }

TEST(constants_of_all_kinds) {
    OPD_SCOPED;
    const double odd[] = {1.0 / 3, -0.0, 0.0 / 1.0, 1e300}, plain[] = {1, -2.5, 1e6};
    opd_tensor *x = number(1), *got[1], *want[1];
    held[0] = numbers(plain, 3);                                       /* these three are in the text */
    held[1] = opd_to_dtype(numbers(plain, 2), OPD_INT64);
    held[2] = opd_full(opd_ints_of(NULL, 0), OPD_V(0.1), OPD_FLOAT32);
    held[3] = numbers(odd, 4);
    held[4] = opd_full(OPD_INTS(2, 3), OPD_V(1), OPD_BOOL);
    held[5] = opd_arange(OPD_V(100), OPD_INT32);
    held[6] = opd_full(opd_ints_of(NULL, 0), OPD_V(1.0 / 3), OPD_FLOAT64);
    held[7] = opd_to_dtype(numbers(odd, 3), OPD_BFLOAT16);
    held[8] = opd_t(opd_randn(OPD_INTS(3, 4), OPD_FLOAT32));
    held[9] = opd_empty(OPD_INTS(0, 2), OPD_FLOAT32);
    held[10] = opd_full(opd_ints_of(NULL, 0), OPD_V(NAN), OPD_FLOAT16);
    held[11] = opd_full(opd_ints_of(NULL, 0), OPD_V(9007199254740993), OPD_INT64);
    nheld = 12;
    opd_graph *const graph = opd_graph_trace(adds, NULL, &x, 1, NULL);
    opd_graph *const again = round_trip(graph);
    const char *const text = read_text();
    CHECK(strstr(text, "prim::Constant[value= 1  -2.5  1e+06 [ CPUDoubleType{3} ]]()") != NULL);
    CHECK(strstr(text, "[value={0.1}]") && strstr(text, "[value={9007199254740993}]") && strstr(text, "aten::sum("));
    held[10] = number(0);
    opd_tensor_file *const file = opd_tensor_file_open(BESIDE);
    CHECK_INT(opd_tensor_file_count(file), 8);
    opd_tensor_file_close(file);
    CHECK_INT(opd_graph_run(graph, &x, 1, want, 1), 1);
    CHECK_INT(opd_graph_run(again, &x, 1, got, 1), 1);
    CHECK(opd_equal(opd_nan_to_num(got[0]), opd_nan_to_num(want[0])));
    opd_graph_free(graph);
    opd_graph_free(again);
    clean();
}
TEST(a_number_stays_a_number) {
    OPD_SCOPED;
    opd_tensor *x = opd_ones(OPD_INTS(3), OPD_INT64), *got[1];
    opd_graph *const graph = opd_graph_trace(wraps, NULL, &x, 1, NULL), *loaded[2];
    loaded[0] = round_trip(graph);
    CHECK(strstr(read_text(), "prim::Constant[value={2.5}, number]()") != NULL && !exists(BESIDE));
    CHECK_INT(opd_graph_save(graph, PATH), 0);
    loaded[1] = opd_graph_load(PATH);
    CHECK(opd_graph_equal(loaded[1], graph));
    for (int i = 0; i < 2; i++) {
        CHECK_INT(opd_graph_run(loaded[i], &x, 1, got, 1), 1);
        CHECK_INT(opd_dtype(got[0]), OPD_FLOAT32);
        opd_graph_free(loaded[i]);
    }
    CHECK(!opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = prim::Constant[value= 1  2 [ CPUFloatType{2} ], number]()\n"
                           "  return (%y)\n"));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "line 2 of the graph: a number must be a tensor without dims");
    opd_graph_free(graph);
    clean();
}
TEST(blocks_and_edits) {
    OPD_SCOPED;
    opd_tensor *got[2], *want[2];
    held[0] = opd_randn(OPD_INTS(1, 2), OPD_FLOAT64);
    opd_tensor *const x[] = {opd_ones(OPD_INTS(1, 2), OPD_FLOAT64), opd_ones(OPD_INTS(3, 1, 2), OPD_FLOAT64)};
    opd_graph *const graph = opd_graph_trace(scans, NULL, x, 2, NULL);
    opd_graph *again = round_trip(graph);
    CHECK_INT(opd_graph_run(graph, x, 2, want, 2), 2);
    CHECK_INT(opd_graph_run(again, x, 2, got, 2), 2);
    CHECK(opd_equal(got[0], want[0]) && opd_equal(got[1], want[1]));
    opd_graph_free(again);
    edit("aten::sum(", "aten::mean(");                               /* the text is edited, and the constant stays */
    again = opd_graph_load_text(PATH);
    CHECK_OK();
    CHECK(again && !opd_graph_equal(again, graph));
    CHECK_INT(opd_graph_run(again, x, 2, got, 2), 2);
    CHECK(opd_equal(got[0], want[0]) && opd_allclose(opd_mul_Scalar(got[1], OPD_V(2)), want[1]));
    opd_graph_free(again);
    opd_graph_free(graph);
    clean();
}
/* Loads the text, which must fail with an error that has `part` and the path. */
static void refused(opd_code code, const char *part) {
    CHECK(!opd_graph_load_text(PATH));
    if (!strstr(opd_error_message(), PATH)) { printf("%s\n", opd_error_message()); }
    CHECK(strstr(opd_error_message(), PATH) != NULL);
    CHECK_ERROR(code, part);
}
TEST(mistakes_are_named) {
    OPD_SCOPED;
    static const char *const key = "w";
    static const char head[] = "graph(%x : Tensor):\n  %w : ", tail[] = "]()\n  %y : Tensor = aten::add(%x, %w)\n  return (%y)\n";
    opd_tensor *w = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32);
    char text[500];
    CHECK_INT(opd_safetensors_save(BESIDE, &key, opd_tensors_of(&w, 1), NULL), 0);
    static const struct { const char *middle; opd_code code; const char *part; } rows[] = {
        {"Tensor = prim::Constant[value=$w", OPD_OK, ""},
        {"Float(2, 3) = prim::Constant[value=$w", OPD_OK, ""},
        {"Double(2, 3) = prim::Constant[value=$w", OPD_ERROR_ARGUMENT,
         "line 2 of the graph: the constant $w is a float32 tensor of sizes [2, 3], which differs from its type"},
        {"Float(3, 2) = prim::Constant[value=$w", OPD_ERROR_ARGUMENT, "$w is a float32 tensor of sizes [2, 3]"},
        {"Float(2) = prim::Constant[value=$w", OPD_ERROR_ARGUMENT, "$w is a float32 tensor of sizes [2, 3]"},
        {"Tensor = prim::Constant[value=$v", OPD_ERROR_ARGUMENT, "has no tensor 'v', at 'v]()'"},
        {"Tensor = prim::Constant[value=$", OPD_ERROR_ARGUMENT, "line 2 of the graph: the name of a constant has"},
        {"Tensor = prim::Constant[value=$\xc3\xa4", OPD_ERROR_ARGUMENT, "the name of a constant has letters, digits"},
        {"Tensor = prim::Constant[value=$w\xc3\xa4", OPD_ERROR_ARGUMENT, "the name of a constant has letters, digits"},
        {"Tensor = prim::Constant[value=$w w", OPD_ERROR_ARGUMENT, "line 2 of the graph: expected ']', at 'w]()'"},
        {"int = prim::Constant[value=$w", OPD_ERROR_ARGUMENT, "line 2 of the graph: expected a number"},
        {"Tensor = prim::Constant[value=<Tensor>", OPD_ERROR_ARGUMENT, "line 2 of the graph: the text does not contain"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(text, sizeof text, "%s%s%s", head, rows[i].middle, tail);
        write_text(text);
        if (rows[i].code != OPD_OK) { refused(rows[i].code, rows[i].part); continue; }
        opd_graph *const graph = opd_graph_load_text(PATH);
        CHECK_OK();
        opd_graph_free(graph);
    }
    (void)snprintf(text, sizeof text, "%s%s%s", head, rows[0].middle, tail);
    for (size_t n = 0; n < strlen(text) - 1; n++) {                    /* truncated */
        write_bytes(PATH, text, n);
        refused(OPD_ERROR_ARGUMENT, "of the graph");
    }
    write_bytes(PATH, text, strlen(text) + 1);
    refused(OPD_ERROR_ARGUMENT, "line 5 of the graph: the text contains a zero byte");
    write_text(text);
    write_bytes(BESIDE, "nothing", 7);
    refused(OPD_ERROR_FILE, "[line 2 of the graph]");
    (void)remove(BESIDE);
    refused(OPD_ERROR_FILE, ".safetensors");
    clean();
    refused(OPD_ERROR_FILE, "opd_graph_load_text");
    CHECK(!opd_graph_load_text(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_load_text: the path is NULL");
    CHECK_INT(opd_graph_save_text(NULL, PATH), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_save_text: the graph is NULL");
    CHECK(!opd_graph_parse("graph():\n  %w : Tensor = prim::Constant[value=$w]()\n  return (%w)\n"));
    opd_error_clear();
}
TEST(graphs_that_a_text_cannot_keep) {
    OPD_SCOPED;
    opd_tensor *x = number(1);
    held[0] = opd_ones(OPD_INTS(20), OPD_COMPLEX128);
    nheld = 1;
    opd_graph *graph = opd_graph_trace(adds, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_save_text(graph, PATH), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "safetensors has no dtype complex128");
    CHECK(!exists(PATH) && !exists(BESIDE));
    CHECK_INT(opd_graph_save_text(graph, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_save_text: the path is NULL");
    opd_graph_free(graph);
    nheld = 0;
    graph = opd_graph_trace(adds, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_save_text(graph, "/nowhere/at/all"), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "/nowhere/at/all");
    opd_graph_free(graph);
}
/* 100 outputs, and the types of a tuple of 100 elements. */
BODY(many) {
    UNUSED();
    for (int i = 0; i < OPD_TRANSFORM_OUTPUTS; i++) { out[i] = opd_add_Scalar(in[0], OPD_V(i)); }
    DONE(OPD_TRANSFORM_OUTPUTS);
}
TEST(many_outputs_are_read) {
    OPD_SCOPED;
    static char text[20000], types[4000], *end = types;
    opd_tensor *x = number(1), *out[200];
    opd_graph *graph = opd_graph_trace(many, NULL, &x, 1, NULL);
    opd_graph_free(round_trip(graph));
    opd_graph_free(graph);
    clean();
    for (int i = 0; i < 100; i++) { end += snprintf(end, 30, "%sTensor", i ? ", " : ""); }
    end = text + snprintf(text, sizeof text, "graph(%%x : Tensor):\n");
    end += snprintf(end, 8000, "  %%t : (%s) = prim::TupleConstruct(", types);
    for (int i = 0; i < 100; i++) { end += snprintf(end, 30, "%s%%x", i ? ", " : ""); }
    (void)snprintf(end, 100, ")\n  return (%%t)\n");
    graph = opd_graph_parse(text);
    CHECK_OK();
    CHECK_INT(opd_graph_noutputs(graph), 100);
    CHECK_INT(opd_graph_run(graph, &x, 1, out, 200), 100);
    opd_graph_free(round_trip(graph));
    opd_graph_free(graph);
    clean();
    end = text + snprintf(text, sizeof text, "graph(%%x : Tensor):\n  %%b : bool = prim::isinstance[types=[");
    for (int i = 0; i < 100; i++) { end += snprintf(end, 30, "%sint", i ? ", " : ""); }
    (void)snprintf(end, 100, "]](%%x)\n  return (%%b)\n");
    graph = opd_graph_parse(text);
    CHECK_OK();
    CHECK(graph != NULL);
    opd_graph_free(graph);
}
static int save_again(void *graph) {
    const int rc = opd_graph_save_text((const opd_graph *)graph, PATH);
    clean();
    return rc;
}
static int load_again(void *unused) {
    opd_graph *const graph = opd_graph_load_text(PATH);
    (void)unused;
    if (!graph) { return -1; }
    opd_graph_free(graph);
    return 0;
}
TEST(allocations_fail) {
    opd_graph *graph = NULL;
    OPD_SCOPE {
        opd_tensor *x = number(1);
        held[0] = opd_ones(OPD_INTS(20), OPD_FLOAT32);
        held[1] = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32);
        nheld = 2;
        graph = opd_graph_trace(adds, NULL, &x, 1, NULL);
    }
    CHECK(check_allocations_at(save_again, graph, "saving a text", 300, false, __FILE__, __LINE__) > 10);
    CHECK_INT(opd_graph_save_text(graph, PATH), 0);
    CHECK(check_allocations_at(load_again, NULL, "loading a text", 300, false, __FILE__, __LINE__) > 10);
    opd_graph_free(graph);
    clean();
}

/* A zero keeps its sign in all forms of a graph. */
static int times_minus_zero(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mul_Scalar(in[0], OPD_V(-0.0));
    return out[0] ? 1 : -1;
}
TEST(zeros_keep_their_signs) {
    OPD_SCOPED;
    char text[2000];
    opd_tensor *x = opd_ones(OPD_INTS(1), OPD_FLOAT32), *y = NULL;
    opd_graph *const graph = opd_graph_trace(times_minus_zero, NULL, &x, 1, NULL);
    CHECK_OR_RETURN(graph != NULL);
    (void)opd_graph_print(graph, text, sizeof text);
    opd_graph *const again = opd_graph_parse(text);
    CHECK_OR_RETURN(again != NULL && opd_graph_run(again, &x, 1, &y, 1) == 1);
    CHECK(1 / opd_item_f64(y) < 0);
    opd_graph_free(again);
    opd_graph_free(graph);
    CHECK_OK();
}
CHECK_MAIN()
