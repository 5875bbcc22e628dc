/* A graph or a file of each kind is loaded, used and freed again and again.  Neither the memory in use nor the memory
   that is kept for later use grows. */
#include "../../opdispatch.h"
#include "../check.h"
#include <unistd.h>

enum { ROUNDS = 40, FIRST = 4 };
static char path[] = "/tmp/opd_reloads_XXXXXX";
static opd_tensor *eight(void) { return opd_ones(OPD_INTS(8), OPD_FLOAT32); }
static int chain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    (void)user; (void)n;
    for (int i = 0; i < 80; i++) { x = opd_relu(opd_mul(x, x)); }
    return (out[0] = x) ? 1 : -1;
}
static opd_graph *traced(opd_tensor *x) { return opd_graph_trace(chain, NULL, &x, 1, NULL); }
static void run_graph(opd_graph *graph, opd_tensor *x) {
    opd_tensor *y[1];
    for (int i = 0; i < 3; i++) { OPD_SCOPE { CHECK_INT(opd_graph_run(graph, &x, 1, y, 1), 1); } }
    opd_graph_free(graph);
}
static void graph_of_a_trace(void) {
    opd_tensor *x = opd_ones(OPD_INTS(100), OPD_FLOAT32);
    run_graph(traced(x), x);
}
static void graph_of_other_sizes(void) {           /* each run differs from the plan of the one before */
    opd_graph *graph = traced(eight());
    opd_tensor *y[1];
    for (int i = 1; i < 12; i++) {
        opd_tensor *x = opd_ones(OPD_INTS(50 * i), OPD_FLOAT32);
        CHECK_INT(opd_graph_run(graph, &x, 1, y, 1), 1);
    }
    opd_graph_free(graph);
}
static void graph_of_a_text(void) {
    run_graph(opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::mul.Tensor(%x, %x)\n"
                              "  %z : Tensor = aten::relu(%y)\n  return (%z)\n"), eight());
}
static void graph_of_a_file(void) {
    opd_graph *graph = traced(eight());
    CHECK_INT(opd_graph_save(graph, path), 0);
    opd_graph_free(graph);
    run_graph(opd_graph_load(path), eight());
}
static void program_of_a_file(void) {
    opd_graph *graph = traced(eight());
    CHECK_INT(opd_program_save(graph, NULL, path), 0);
    opd_graph_free(graph);
    opd_program *program = opd_program_load(path, NULL);
    opd_value x = opd_value_tensor(eight()), y[1];
    CHECK_INT(opd_program_run(program, &x, 1, y, 1), 1);
    opd_program_free(program);
}
static void script_of_a_text(void) {
    opd_value x = opd_value_tensor(eight()), y;
    opd_script *script = opd_script_compile("def f(x: Tensor) -> Tensor:\n    for i in range(3):\n        x = x * i\n    return x\n",
                                            NULL);
    CHECK_INT(opd_script_run(script, "f", &x, 1, &y), 0);
    opd_script_free(script);
}
static void script_of_a_file(void) {
    opd_value x = opd_value_tensor(eight()), y;
    opd_script *script = opd_script_compile("class M(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                                            "        self.w = torch.ones(8)\n    def forward(self, x):\n        return x * self.w\n",
                                            NULL);
    CHECK_INT(opd_script_save(script, path), 0);
    opd_script_free(script);
    script = opd_script_load(path);
    CHECK_INT(opd_script_run(script, "forward", &x, 1, &y), 0);
    opd_script_free(script);
}
static void read_all(void) {
    opd_tensor_file *file = opd_tensor_file_open(path);
    CHECK(opd_tensor_file_count(file) == 2);
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) { CHECK(opd_tensor_file_at(file, i) != NULL); }
    opd_tensor_file_close(file);
}
static const char *const two_names[] = {"a", "b"};
static void file_of_safetensors(void) {
    opd_tensor *both[2] = {eight(), opd_ones(OPD_INTS(70, 9), OPD_FLOAT32)};
    CHECK_INT(opd_safetensors_save(path, two_names, opd_tensors_of(both, 2), NULL), 0);
    read_all();
}
static void file_of_arrays(void) {
    opd_tensor *both[2] = {eight(), opd_ones(OPD_INTS(70, 9), OPD_FLOAT32)};
    CHECK_INT(opd_npz_save(path, two_names, opd_tensors_of(both, 2)), 0);
    read_all();
    CHECK_INT(opd_npy_save(path, both[1]), 0);
    CHECK(opd_npy_load(path) != NULL);
}
static void file_of_a_checkpoint(void) {
    const opd_value both[2] = {opd_value_tensor(eight()), opd_value_tensor(opd_ones(OPD_INTS(70, 9), OPD_FLOAT32))};
    CHECK_INT(opd_checkpoint_file_save(path, two_names, both, 2), 0);
    read_all();
    opd_module *module = opd_module_open(path, NULL);
    opd_optimizer *adam = opd_module_adam(module, NULL, NULL);
    CHECK_INT(opd_module_count(module), 2);
    opd_optimizer_free(adam);
    opd_module_free(module);
}
static void file_of_json(void) {
    static const char text[] = "{\"a\": [1, 2, {\"b\": \"text\"}], \"c\": 2.5}";
    opd_json *json = opd_json_parse(text, sizeof text - 1);
    CHECK(opd_json_get(json, 0, "c") > 0);
    opd_json_free(json);
}
static void file_that_is_damaged(void) {
    CHECK(!opd_graph_from_bytes("no graph", 8));
    opd_error_clear();
    CHECK(!opd_script_compile("def f(x):\n    return y\n", NULL) || !opd_ok());
    opd_error_clear();
    CHECK(!opd_json_parse("{\"a\": ", 6));
    opd_error_clear();
}
static int doubled(opd_call *call) {
    return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0)));
}
static void library_of_an_operator(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "reloads", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_def(lib, "doubled(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(lib, "doubled", doubled), 0);
    CHECK(OPD_CALL(opd_find("reloads::doubled"), eight()) != NULL);
    opd_library_close(lib);
}
typedef struct use { const char *name; void (*run)(void); } use;
static void check_growth(void *arg) {
    const use *const one = (const use *)arg;
    opd_memory first;
    const int fd = mkstemp(strcpy(path, "/tmp/opd_reloads_XXXXXX"));
    CHECK(fd >= 0);
    memset(&first, 0, sizeof first);
    for (int i = 0; i < ROUNDS; i++) {
        OPD_SCOPE { one->run(); }
        CHECK_OK();
        if (i == FIRST) { first = opd_memory_stats(); }
    }
    const opd_memory last = opd_memory_stats();
    CHECK_INT(last.live - first.live, 0);
    CHECK_INT(last.cached - first.cached, 0);
    if (fd >= 0) { close(fd); }
    remove(path);
}
static use uses[] = {
    {"graph_of_a_trace", graph_of_a_trace}, {"graph_of_other_sizes", graph_of_other_sizes},
    {"graph_of_a_text", graph_of_a_text}, {"graph_of_a_file", graph_of_a_file},
    {"program_of_a_file", program_of_a_file}, {"script_of_a_text", script_of_a_text},
    {"script_of_a_file", script_of_a_file}, {"file_of_safetensors", file_of_safetensors},
    {"file_of_arrays", file_of_arrays}, {"file_of_a_checkpoint", file_of_a_checkpoint}, {"file_of_json", file_of_json},
    {"file_that_is_damaged", file_that_is_damaged}, {"library_of_an_operator", library_of_an_operator}};
enum { OTHERS = sizeof uses / sizeof uses[0] - 1 };
/* Runs in each share of the walk (CHECK_PART). */
TEST(library_without_growth) { check_growth(&uses[OTHERS]); }
int main(int argc, char **argv) {
    for (size_t i = 0; i < OTHERS; i++) { check_add_with(uses[i].name, check_growth, &uses[i]); }
    return check_main(argc, argv, __BASE_FILE__);
}
