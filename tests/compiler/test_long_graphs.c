/* Graphs of hundreds of nodes, compiled, give the same results as uncompiled: long chains of operators for each
   element, sums of more tensors than a C function may read, values that are moved into a reduction, and values that
   nothing reads. */
#include "../check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 500, TENSORS = 150 };
static opd_tensor *terms[TENSORS];                /* constants of the graph */

/* Each step reads the result of the step before it once.  Every fifth step exchanges rows and columns. */
static opd_tensor *chain(opd_tensor *x) {
    for (int i = 0; i < STEPS; i++) {
        switch (i % 5) {
        case 0: x = opd_add_Scalar(x, opd_value_double(0.5)); break;
        case 1: x = opd_neg(x); break;
        case 2: x = opd_abs(x); break;
        case 3: x = opd_mul_Scalar(x, opd_value_double(0.5)); break;
        default: x = opd_transpose(x, 0, 1); break;
        }
    }
    return x;
}
/* Each step reads the result of the step before it twice, and all steps can be moved into the product. */
static opd_tensor *after_product(opd_tensor *x, opd_tensor *y) {
    x = opd_mv(x, y);
    for (int i = 0; i < STEPS; i++) { x = opd_sub(x, opd_mul_Scalar(opd_tanh(x), opd_value_double(0.5))); }
    return x;
}
static opd_tensor *unused(opd_tensor *x, opd_tensor *y) {
    for (int i = 0; i < 20; i++) { y = opd_mv(x, opd_tanh(y)); }
    return y;
}
static int all_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *products[TENSORS];
    (void)user;
    (void)n;
    out[0] = chain(in[0]);
    out[1] = after_product(in[0], in[1]);
    out[2] = in[1];
    for (int i = 0; i < TENSORS; i++) { out[2] = opd_add(out[2], opd_relu(terms[i])); }
    for (int i = 0; i < TENSORS; i++) { products[i] = opd_mul(terms[i], in[1]); }
    out[3] = opd_sum(opd_stack(opd_tensors_of(products, TENSORS), 0));
    (void)unused(in[0], in[1]);
    return 4;
}
static opd_tensor *numbers(opd_ints sizes, int from) {
    opd_tensor *const x = opd_empty(sizes, OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((from + 7 * i) % 11) / 4 - 1; }
    return x;
}
TEST(long_graphs) {
    opd_tensor *in[2], *want[4], *got[4];
    opd_compile_options options;
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    in[0] = numbers(OPD_INTS(3, 3), 0);
    in[1] = numbers(OPD_INTS(3), 5);
    for (int i = 0; i < TENSORS; i++) { terms[i] = numbers(OPD_INTS(3), i); }
    opd_graph *const graph = opd_graph_trace(all_of, NULL, in, 2, NULL);
    memset(&options, 0, sizeof options);
    options.flags = "-O0";
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    for (int round = 0; round < 2; round++) {     /* the first run is uncompiled */
        CHECK_INT(opd_graph_run(graph, in, 2, want, 4), 4);
        CHECK_INT(opd_compiled_function(compiled, in, 2, got), 4);
        for (int i = 0; i < 4; i++) { CHECK(opd_allclose_full(got[i], want[i], 1e-5, 1e-5, false)); }
    }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
/* Returns the number of functions in a C file, and sets *longest to the largest number of values that one computes.
   Returns -1 if the file cannot be read. */
static int count_functions(const char *path, int *longest) {
    char line[600];
    int count = 0, values = 0;
    FILE *const file = fopen(path, "r");
    *longest = 0;
    while (file && fgets(line, sizeof line, file)) {
        const bool begins = strncmp(line, "APART static int ", 17) == 0;
        count += begins;
        values = begins ? 0 : values + (strstr(line, "const float v") != NULL);
        *longest = values > *longest ? values : *longest;
    }
    return file && fclose(file) == 0 ? count : -1;
}
/* The C texts of a sum of many inputs and of a chain have several functions. */
TEST(length_of_functions) {
    enum { INPUTS = 300 };
    static opd_tensor *in[INPUTS];
    opd_graph_value *v[2];
    char path[300];
    int longest;
    if (sizeof(void *) < 8) { SKIP("graphs can only be compiled on machines with 64-bit addresses"); }
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int way = 0; way < 2; way++) {
        OPD_SCOPED;
        opd_graph *const graph = opd_graph_new();
        const int count = way ? 1 : INPUTS;
        v[0] = opd_graph_input(graph, NULL, NULL);
        in[0] = numbers(OPD_INTS(5), 0);
        for (int i = 1; i < count; i++) {
            in[i] = in[0];
            v[1] = opd_graph_input(graph, NULL, NULL);
            CHECK_INT(opd_graph_call(graph, "aten::add", v, 2, v, 1), 1);
        }
        for (int i = 0; i < 3 * STEPS && way; i++) { CHECK_INT(opd_graph_call(graph, "aten::tanh", v, 1, v, 1), 1); }
        CHECK_INT(opd_graph_output(graph, v, 1, false), 0);
        CHECK_INT(opd_graph_write_c(graph, in, count, check_cache, NULL), 0);
        opd_graph_free(graph);
        (void)snprintf(path, sizeof path, "%s/model.c", check_cache);
        const int functions = count_functions(path, &longest);
        CHECK(functions >= 2 && functions <= 10);
        CHECK(longest > 50 && longest <= 800);
    }
}
CHECK_MAIN()
