/* The time of the first compiled run: equal layers share their C functions, and a long C text is compiled in parts. */
#include "../check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 6, WIDTH = 24 };
static opd_tensor *weights[LAYERS], *scales[LAYERS];           /* constants of the graph */

/* Layers that differ only in their weights. */
static int layers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    (void)user;
    (void)n;
    for (int i = 0; i < LAYERS; i++) {
        x = opd_relu(opd_matmul(x, weights[i]));
        x = opd_mul(opd_softmax(x, -1), scales[i]);
    }
    out[0] = x;
    return 1;
}
/* The same two operations with the operands exchanged. */
static int exchanged(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_sum(opd_sub(in[0], in[1]));
    out[1] = opd_sum(opd_sub(in[1], in[0]));
    out[2] = opd_sum(opd_sub(in[0], in[0]));
    return 3;
}
static opd_tensor *numbers(opd_ints sizes, int from) {
    opd_tensor *const x = opd_empty(sizes, OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((from + 7 * i) % 11) / 8 - 0.5f; }
    return x;
}
static bool near(opd_tensor *a, opd_tensor *b) {
    return opd_item_f64(opd_amax(opd_abs(opd_sub(a, b)), opd_ints_of(NULL, 0), false)) < 1e-4;
}
/* Returns how often `word` is in the file NAME.c in the folder check_cache. */
static int words_in(const char *name, const char *word) {
    char path[600], line[4096];
    int count = 0;
    (void)snprintf(path, sizeof path, "%s/%s.c", check_cache, name);
    FILE *const file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) { count += strstr(line, word) != NULL; }
    if (file) { (void)fclose(file); }
    return count;
}
static void make_layers(void) {
    for (int i = 0; i < LAYERS; i++) {
        weights[i] = numbers(OPD_INTS(WIDTH, WIDTH), i);
        scales[i] = numbers(OPD_INTS(WIDTH), 3 * i);
    }
}
TEST(equal_layers_share_functions) {
    opd_tensor *x, *want[1], *got[1];
    opd_c_options options;
    opd_compile_options compile;
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    make_layers();
    x = numbers(OPD_INTS(5, WIDTH), 1);
    opd_graph *const graph = opd_graph_trace(layers, NULL, &x, 1, NULL);
    memset(&options, 0, sizeof options);
    options.name = "layers";
    CHECK_INT(opd_graph_write_c(graph, &x, 1, check_cache, &options), 0);
    const int functions = words_in("layers", "APART static int k"), calls = words_in("layers", "FRESH; if ((rc = k");
    CHECK(functions > 0 && 2 * functions <= calls);            /* not one function for each layer */
    CHECK(calls >= 2 * LAYERS);
    memset(&compile, 0, sizeof compile);
    opd_compiled *const compiled = opd_graph_compile(graph, &compile);
    for (int run = 0; run < 2; run++) {
        CHECK_INT(opd_graph_run(graph, &x, 1, want, 1), 1);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 1);
        CHECK(near(got[0], want[0]));
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK(opd_ok());
}
TEST(other_operands_do_not_share) {
    opd_tensor *in[2], *want[3], *got[3];
    opd_compile_options compile;
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    in[0] = numbers(OPD_INTS(WIDTH, WIDTH), 1);
    in[1] = numbers(OPD_INTS(WIDTH, WIDTH), 4);
    opd_graph *const graph = opd_graph_trace(exchanged, NULL, in, 2, NULL);
    memset(&compile, 0, sizeof compile);
    opd_compiled *const compiled = opd_graph_compile(graph, &compile);
    for (int run = 0; run < 2; run++) {
        CHECK_INT(opd_graph_run(graph, in, 2, want, 3), 3);
        CHECK_INT(opd_compiled_function(compiled, in, 2, got), 3);
        for (int i = 0; i < 3; i++) { CHECK(near(got[i], want[i])); }
    }
    CHECK_STR(opd_compiled_reason(compiled) ? opd_compiled_reason(compiled) : "", "");
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK(opd_ok());
}
/* The last test: removes the folder. */
TEST(the_folder_is_removed) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
