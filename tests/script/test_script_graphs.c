/* Graphs of scripts, and tensors, print as in PyTorch.  The functions are in golden/script_graphs.py, and PyTorch's
   texts in golden/script_graphs.txt, made by golden/make_script_graphs.py: nodes in their order, names and numbers
   of values, and source locations. */
#include "../../opdispatch.h"
#include "../check.h"

static char source[50000], wanted[200000];

static void read_golden(const char *name, char *text, size_t cap) {
    FILE *file = check_golden(name);
    const size_t length = file ? fread(text, 1, cap - 1, file) : 0;
    text[length] = 0;
    CHECK(length > 0 && length < cap - 1);
    if (file) { fclose(file); }
}
/* Takes away places where PyTorch names one in a text of its own. */
static void strip_line(char *line) {
    char *const place = strstr(line, " # ");
    if (place) { *place = 0; }
}
/* True if both texts are equal, line by line. */
static bool same_graph(const char *name, const char *got, const char *want, size_t length) {
    char first[2000], second[2000];
    const char *const end = want + length;
    while (want < end && *got) {
        const int ours = (int)strcspn(got, "\n"), theirs = (int)strcspn(want, "\n");
        (void)snprintf(first, sizeof first, "%.*s", ours, got);
        (void)snprintf(second, sizeof second, "%.*s", theirs, want);
        if (strstr(second, "# <string>")) {
            strip_line(first);
            strip_line(second);
        }
        if (strcmp(first, second) != 0) {
            printf("%s: '%s', not '%s'\n", name, first, second);
            return false;
        }
        got += ours + (got[ours] == '\n');
        want += theirs + (want[theirs] == '\n');
    }
    return want >= end && !*got;
}

TEST(functions_print_as_pytorch_prints_them) {
    static char text[50000];
    read_golden("script_graphs.py", source, sizeof source);
    read_golden("script_graphs.txt", wanted, sizeof wanted);
    opd_script *script = opd_script_compile(source, "script_graphs.py");
    int count = 0;
    CHECK(script != NULL);
    for (char *at = strstr(wanted, "== "); script && at; ) {
        char name[100];
        char *const next = strstr(at + 3, "\n== ");
        const char *const body = strchr(at, '\n') + 1, *const end = next ? next + 1 : at + strlen(at);
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 3, "\n"), at + 3);
        const opd_graph *graph = opd_script_graph(script, name);
        CHECK(graph != NULL);
        if (graph) { CHECK(opd_graph_print(graph, text, sizeof text) < sizeof text); }
        CHECK(graph && same_graph(name, text, body, (size_t)(end - body)));
        count++;
        at = next ? next + 1 : NULL;
    }
    CHECK(count > 60);
    opd_script_free(script);
}

/* Takes the folders out of what a graph says of places. */
static void plain_places(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        const char *const slash = strncmp(at, " # /", 4) == 0 ? at + 3 + strcspn(at + 3, "\n") : NULL;
        const char *last = at + 2;
        for (const char *k = at + 3; slash && k < slash; k++) { if (*k == '/') { last = k; } }
        *to++ = *at;
        if (!slash) { continue; }
        memcpy(to, "# ", 2);
        to += 2;
        at = last;
    }
    *to = 0;
}
/* Archives tell, beside their texts, of which sources these were made. */
TEST(archives_print_with_the_places_of_their_sources) {
    static char text[10000];
    static uint8_t bytes[10000];
    FILE *file = check_golden("scripts/enums.pt");
    CHECK_OR_RETURN(file != NULL);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    read_golden("scripts/enums.txt", wanted, sizeof wanted);
    opd_script *script = opd_script_from_bytes(bytes, size);
    CHECK_OR_RETURN(script != NULL);
    CHECK(opd_graph_print(opd_script_graph(script, NULL), text, sizeof text) < sizeof text);
    plain_places(text);
    CHECK(same_graph("enums", text, wanted, strlen(wanted)));
    opd_script_free(script);
    for (size_t i = 0; i + 9 < size; i++) {        /* places that are damaged are no places */
        if (memcmp(bytes + i, "debug_pkl", 9) == 0) { bytes[i] = 'D'; }
    }
    script = opd_script_from_bytes(bytes, size);
    CHECK_OR_RETURN(script != NULL);
    CHECK(opd_graph_print(opd_script_graph(script, NULL), text, sizeof text) < sizeof text);
    CHECK(strstr(text, "# code/__torch__.py:") != NULL);
    opd_script_free(script);
}

/* Passes over the graphs of scripts: a copy is changed, and takes the place of the method's graph. */
static const char two_methods[] =
    "class M(torch.nn.Module):\n"
    "    def __init__(self):\n"
    "        self.w = torch.nn.Parameter(torch.ones(2))\n"
    "        self.seen: List[int] = []\n"
    "    def inner(self, x: Tensor) -> Tensor:\n"
    "        return torch.relu(x * self.w)\n"
    "    def forward(self, x: Tensor, times: int = 2) -> Tuple[Tensor, int]:\n"
    "        for i in range(times):\n"
    "            x = torch.relu(x) + self.inner(x)\n"
    "            self.seen.append(i)\n"
    "        return x, len(self.seen)\n";
static double forward(const opd_script *script, int64_t *length) {
    const double two[] = {1, -1};
    opd_value x = opd_value_tensor(opd_tensor_from(two, OPD_INTS(2), OPD_FLOAT64)), result = opd_value_none();
    if (opd_script_run(script, NULL, &x, 1, &result)) { return -1; }
    *length = opd_list_at(result, 1).u.i;
    return opd_item_f64(opd_sum(opd_list_at(result, 0).u.t));
}
TEST(a_changed_graph_takes_the_place_of_a_method) {
    opd_script *script = opd_script_compile(two_methods, NULL);
    opd_graph *relu = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
    opd_graph *neg = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n");
    int64_t length = 0, count;
    bool missing;
    CHECK_OR_RETURN(script && relu && neg);
    OPD_SCOPE {
        CHECK_NEAR(forward(script, &length), 4, 0);
        CHECK_INT(length, 2);
        opd_graph *copy = opd_graph_copy(opd_script_graph(script, NULL));
        CHECK_INT(opd_graph_rewrite(copy, relu, neg, NULL), 2);
        CHECK_INT(opd_script_set_graph(script, NULL, copy), 0);
        CHECK(opd_script_graph(script, "forward") == copy);
        CHECK_NEAR(forward(script, &length), 0, 0);                   /* -x - x of 1 and -1, twice */
        CHECK_INT(length, 4);
        CHECK(opd_script_operator(script, 0, &count, &missing) != NULL);
        opd_value x = opd_value_tensor(opd_full(OPD_INTS(2), opd_value_int(3), OPD_FLOAT32)), y;
        CHECK_INT(opd_script_run(script, "inner", &x, 1, &y), 0);     /* another method, which stays */
        CHECK_NEAR(opd_item_f64(opd_sum(y.u.t)), 6, 0);
        CHECK_INT(opd_script_save(script, "nothing.pt"), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_script_save: a graph of the script was changed (opd_script_set_graph)");
    }
    opd_graph_free(relu);
    opd_graph_free(neg);
    opd_script_free(script);
}
TEST(a_graph_that_does_not_fit_a_method_is_refused) {
    opd_script *script = opd_script_compile(two_methods, NULL);
    opd_script *other = opd_script_compile("def f(x: Tensor, n: int) -> Tensor:\n    return x * n\n"
                                           "def g(x: Tensor, n: int) -> int:\n    return n\n"
                                           "def h(x: Tensor, n: float) -> Tensor:\n    return x * n\n", NULL);
    opd_graph *foreign = opd_graph_copy(opd_script_graph(other, "f"));
    opd_graph *inner = opd_graph_copy(opd_script_graph(script, "inner"));
    CHECK_OR_RETURN(foreign && inner);
    CHECK_INT(opd_script_set_graph(script, NULL, foreign), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_script_set_graph: the graph is not a copy of the method's graph");
    CHECK_INT(opd_script_set_graph(script, NULL, inner), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the graph has 2 inputs and a result, but the method has 3 and a");
    CHECK_INT(opd_script_set_graph(other, "g", foreign), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the result of the graph has the type Tensor, but the method has int");
    CHECK_INT(opd_script_set_graph(other, "h", foreign), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an input of the graph has the type int, but the method has float");
    CHECK_INT(opd_script_set_graph(other, "f", foreign), 0);
    CHECK_INT(opd_script_set_graph(other, "f", foreign), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "or it belongs to the script already");
    CHECK_INT(opd_script_set_graph(other, "missing", inner), -1);
    opd_error_clear();
    CHECK_INT(opd_script_set_graph(NULL, NULL, inner), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_script_set_graph: the script is NULL");
    CHECK_INT(opd_script_set_graph(script, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_script_set_graph: the graph is NULL");
    opd_graph_free(inner);
    opd_script_free(script);
    opd_script_free(other);
}

/* Texts of torch.jit's print. */
static void check_print(opd_tensor *tensor, const char *want) {
    char text[2000];
    (void)opd_value_print(opd_value_tensor(tensor), text, sizeof text);
    CHECK_STR(text, want);
}
TEST(tensors_print_as_libtorch_writes_them) {
    const double mixed[] = {1.5, -2.25, 1234567.5, 0.5}, tiny[] = {1.5e-6, -2.5e-6};
    OPD_SCOPED;
    check_print(opd_full(opd_ints_of(NULL, 0), OPD_V(0.1), OPD_FLOAT32), "0.10000000149011612\n[ CPUFloatType{} ]");
    check_print(opd_arange(OPD_V(3), OPD_INT64), " 0\n 1\n 2\n[ CPULongType{3} ]");
    check_print(opd_zeros(OPD_INTS(2, 0), OPD_FLOAT32), "[ CPUFloatType{2,0} ]");
    check_print(opd_tensor_from(mixed, OPD_INTS(2), OPD_FLOAT64), " 1.5000\n-2.2500\n[ CPUDoubleType{2} ]");
    check_print(opd_tensor_from(mixed, OPD_INTS(2, 2), OPD_FLOAT64),
                " 1.5000e+00 -2.2500e+00\n 1.2346e+06  5.0000e-01\n[ CPUDoubleType{2,2} ]");
    check_print(opd_tensor_from(tiny, OPD_INTS(1, 2), OPD_FLOAT64),
                "1e-06 *\n 1.5000 -2.5000\n[ CPUDoubleType{1,2} ]");
    check_print(opd_reshape(opd_arange(OPD_V(8), OPD_FLOAT32), OPD_INTS(2, 2, 2)),
                "(1,.,.) = \n 0  1\n  2  3\n\n(2,.,.) = \n 4  5\n  6  7\n[ CPUFloatType{2,2,2} ]");
}
CHECK_MAIN()
