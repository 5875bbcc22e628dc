/* In the mode of same bits, graphs that are written as C without calls give the bits of uncompiled runs: with gcc and
   clang, with and without instructions for fused multiply-adds, and as code for a Cortex-M7, which an emulator of 32-bit ARM
   runs. */
#include "../check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAPH(name, count, body) \
    static int name(void *user, opd_tensor *const *in, int n, opd_tensor **out) { \
        (void)user; \
        (void)n; \
        body \
        return opd_ok() ? count : -1; \
    }
GRAPH(linear_softmax, 2, { out[1] = opd_linear(in[0], in[1], in[2]); out[0] = opd_softmax(out[1], -1); })
GRAPH(linear_log_softmax, 2, { out[1] = opd_linear(in[0], in[1], in[2]); out[0] = opd_log_softmax(out[1], 1); })
GRAPH(product, 1, { out[0] = opd_matmul(in[0], in[1]); })
GRAPH(product_turned, 1, { out[0] = opd_mm(in[0], opd_transpose(in[1], 0, 1)); })
GRAPH(sum_and_product, 2, {
    out[0] = opd_addmm_full(in[0], in[1], in[2], opd_value_double(0.5), opd_value_int(1));
    out[1] = opd_addmm_full(in[0], in[1], in[2], opd_value_int(1), opd_value_double(0.3));
})
GRAPH(network, 2, {
    out[1] = opd_conv2d(in[0], in[1], in[2], OPD_INTS(1), OPD_INTS(1));
    out[0] = opd_max_pool2d(opd_relu(out[1]), OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0));
})
GRAPH(zeros, 3, {
    opd_tensor *const x = opd_mul_Scalar(opd_sign(opd_round(in[0])), opd_value_double(0));  /* zeros with both signs */
    out[0] = opd_max_pool2d(x, OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0));
    out[1] = opd_max_pool2d(x, OPD_INTS(3, 3), OPD_INTS(2, 2), OPD_INTS(1));
    out[2] = opd_max_pool2d(x, OPD_INTS(2, 3), OPD_INTS(1, 1), OPD_INTS(1));
})
/* The network of examples/digits.c, with small random numbers in the place of constants. */
GRAPH(digits, 1, {
    opd_tensor *x = opd_relu(opd_conv2d(opd_view(opd_narrow(in[0], 0, 0, 256), OPD_INTS(4, 1, 8, 8)),
                                        opd_view(opd_narrow(in[0], 0, 300, 144), OPD_INTS(16, 1, 3, 3)),
                                        opd_narrow(in[0], 0, 500, 16), OPD_INTS(1), OPD_INTS(1)));
    x = opd_conv2d(x, opd_view(opd_narrow(in[0], 0, 600, 4608), OPD_INTS(32, 16, 3, 3)), opd_narrow(in[0], 0, 600, 32),
                   OPD_INTS(1), OPD_INTS(1));
    x = opd_flatten(opd_max_pool2d(opd_relu(x), OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0)), 1, -1);
    x = opd_relu(opd_linear(x, in[1], opd_narrow(in[0], 0, 700, 64)));
    out[0] = opd_log_softmax(opd_linear(x, in[2], opd_narrow(in[0], 0, 800, 10)), 1);
})
GRAPH(conv_steps, 1, { out[0] = opd_conv2d(in[0], in[1], in[2], OPD_INTS(2), OPD_INTS(2)); })
GRAPH(conv_padded, 1, { out[0] = opd_conv2d(in[0], in[1], NULL, OPD_INTS(1), OPD_INTS(1)); })
GRAPH(conv_plain, 1, { out[0] = opd_conv2d(in[0], in[1], NULL, OPD_INTS(1), OPD_INTS(0)); })
GRAPH(conv_groups, 1, { out[0] = opd_conv2d_full(in[0], in[1], NULL, OPD_INTS(1), OPD_INTS(1), OPD_INTS(1), 4); })
GRAPH(conv_line, 1, { out[0] = opd_conv1d_full(in[0], in[1], in[2], OPD_INTS(2), OPD_INTS(1), OPD_INTS(2), 1); })
GRAPH(conv_even, 1, { out[0] = opd_conv1d_full(in[0], in[1], NULL, OPD_INTS(2), OPD_INTS(0), OPD_INTS(1), 1); })
GRAPH(one_less, 1, { out[0] = opd_expm1(in[0]); })
GRAPH(functions, 6, {
    out[0] = opd_exp(in[0]);
    out[1] = opd_tanh(in[0]);
    out[2] = opd_sigmoid(in[0]);
    out[3] = opd_log(in[0]);
    out[4] = opd_silu(in[0]);
    out[5] = opd_gelu(in[0]);
})
GRAPH(rows, 2, { out[0] = opd_softmax(in[0], -1); out[1] = opd_log_softmax(in[0], -1); })
GRAPH(loss, 1, { out[0] = opd_cross_entropy_loss(in[0], opd_argmax(in[1], OPD_V(1), false)); })
GRAPH(columns, 1, { out[0] = opd_softmax(in[0], 0); })
GRAPH(sum, 1, { out[0] = opd_sum(in[0]); })
GRAPH(dot, 1, { out[0] = opd_dot(in[0], in[1]); })
/* A graph and the sizes of its inputs, which are random numbers times `scale`. */
typedef struct example { const char *name; opd_transform_fn fn; int64_t sizes[3][4]; double scale; } example;
static const example examples[] = {
    {"linear, softmax", linear_softmax, {{5, 700}, {33, 700}, {33}}, 0.2},
    {"linear, log_softmax", linear_log_softmax, {{3, 64}, {10, 64}, {10}}, 1},
    {"mm, deep", product, {{7, 1400}, {1400, 21}}, 1},
    {"mm, turned", product_turned, {{70, 576}, {40, 576}}, 1},
    {"bmm", product, {{3, 9, 31}, {3, 31, 12}}, 1},
    {"mv", product, {{9, 1000}, {1000}}, 1},
    {"addmm", sum_and_product, {{20}, {6, 1300}, {1300, 20}}, 1},
    {"conv, relu, max_pool", network, {{3, 1, 8, 8}, {16, 1, 3, 3}, {16}}, 1},
    {"max_pool of zeros", zeros, {{3, 4, 11, 10}}, 1},
    {"digits", digits, {{6000}, {64, 512}, {10, 64}}, 0.3},
    {"conv with strides", conv_steps, {{2, 16, 15, 13}, {8, 16, 5, 5}, {8}}, 1},
    {"conv, deep", conv_padded, {{1, 130, 9, 9}, {4, 130, 3, 3}}, 1},
    {"conv, 1 x 1", conv_plain, {{2, 40, 6, 6}, {24, 40, 1, 1}}, 1},
    {"conv1d", conv_line, {{2, 6, 50}, {9, 6, 3}, {9}}, 1},
    {"products below the least float", conv_even, {{2, 13, 26}, {8, 13, 4}}, 1e-30},
    {"functions of large numbers", functions, {{2000}}, 30},
    {"functions", functions, {{2000}}, 1},
    {"functions of tiny numbers", functions, {{200}}, 1e-39},
    {"expm1", one_less, {{900}}, 2},
    {"softmax of long rows", rows, {{4, 1024}}, 3},
    {"softmax", rows, {{9, 77}}, 20},
    {"cross entropy", loss, {{37, 10}, {37, 10}}, 2},
};
enum { EXAMPLES = (int)(sizeof examples / sizeof *examples), OUTPUTS = 6, MOST = 1 << 17 };

static int inputs_of(const example *one, opd_tensor **in) {
    int n = 0;
    opd_manual_seed(5);
    for (; n < 3 && one->sizes[n][0]; n++) {
        int dims = 0;
        while (dims < 4 && one->sizes[n][dims]) { dims++; }
        in[n] = opd_mul_Scalar(opd_randn(opd_ints_of(one->sizes[n], dims), OPD_FLOAT32), opd_value_double(one->scale));
    }
    return n;
}
/* Writes a program that reads the inputs from a file, runs the written graph, and writes the outputs to a file. */
static bool write_program(opd_tensor *const *in, int n, opd_tensor *const *want, int results) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s/main.c", check_cache);
    FILE *const file = fopen(path, "w");
    if (!file) { return false; }
    (void)fputs("#include \"model.h\"\n#include <stdio.h>\nstatic double memory[2][1 << 18];\n", file);
    for (int i = 0; i < n; i++) { (void)fprintf(file, "static float in%d[%lld];\n", i, (long long)opd_numel(in[i])); }
    for (int i = 0; i < results; i++) { (void)fprintf(file, "static float out%d[%lld];\n", i, (long long)opd_numel(want[i])); }
    (void)fputs("int main(int argc, char **argv) {\n    model m;\n    FILE *f = fopen(argv[argc - 2], \"rb\");\n", file);
    (void)fputs("    void *const inputs[] = {", file);
    for (int i = 0; i < n; i++) { (void)fprintf(file, "in%d, ", i); }
    (void)fputs("}, *outputs[] = {", file);
    for (int i = 0; i < results; i++) { (void)fprintf(file, "out%d, ", i); }
    (void)fputs("};\n", file);
    for (int i = 0; i < n; i++) { (void)fprintf(file, "    if (!f || !fread(in%d, sizeof in%d, 1, f)) { return 4; }\n", i, i); }
    (void)fputs("    fclose(f);\n    if (model_init(&m, \"\", (void *)memory[0], (void *)memory[1])) { return 2; }\n"
                "    if (model_call(&m, inputs, outputs)) { return 3; }\n    f = fopen(argv[argc - 1], \"wb\");\n", file);
    for (int i = 0; i < results; i++) { (void)fprintf(file, "    if (!f || !fwrite(out%d, sizeof out%d, 1, f)) { return 5; }\n", i, i); }
    (void)fputs("    return fclose(f);\n}\n", file);
    if (fclose(file)) { return false; }
    (void)snprintf(path, sizeof path, "%s/in.bin", check_cache);
    FILE *const data = fopen(path, "wb");
    for (int i = 0; data && i < n; i++) { (void)fwrite(opd_data_f32(in[i]), 4, (size_t)opd_numel(in[i]), data); }
    return data && fclose(data) == 0;
}
/* Returns how many elements of the outputs of the program have other bits, or -1 if it fails. */
static int64_t differences(const char *compiler, const char *link, const char *runner, opd_tensor *const *want, int results) {
    static float got[MOST];
    char command[1200], path[300];
    int64_t other = 0;
    (void)snprintf(command, sizeof command, "cd '%s' && %s -w -c model.c -o model.o && %s -w main.c model.o -o main -lm && "
                   "%s ./main in.bin out.bin", check_cache, compiler, link ? link : compiler, runner);
    if (system(command) != 0) { return -1; }
    (void)snprintf(path, sizeof path, "%s/out.bin", check_cache);
    FILE *const file = fopen(path, "rb");
    for (int i = 0; file && i < results; i++) {
        const int64_t count = opd_numel(want[i]);
        if (count > MOST || fread(got, 4, (size_t)count, file) != (size_t)count) { other = -1; break; }
        const float *const from = opd_data_f32(want[i]);
        for (int64_t k = 0; k < count; k++) {
            other += memcmp(&got[k], &from[k], 4) != 0 && (got[k] == got[k] || from[k] == from[k]);
        }
    }
    if (!file) { return -1; }
    (void)fclose(file);
    return other;
}
/* Writes every `step`-th graph, and compares what the program gives that `compiler` and `link` make of it. */
static void compare_with(const char *compiler, const char *link, const char *runner, int step) {
    char command[400];
    const bool was = opd_same_bits_set(true);
    (void)setenv("OPD_WINOGRAD", "0", 1);         /* test_same_compiled.c tries to write a convolution without it */
    (void)snprintf(command, sizeof command, "%.*s -v >/dev/null 2>&1", (int)strcspn(compiler, " "), compiler);
    const bool here = system(command) == 0;
    (void)snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", *runner ? runner : "true");
    const bool runs = !*runner || system(command) == 0;
    if (!here || !runs || !check_cache_begin()) {
        (void)opd_same_bits_set(was);
        SKIP("a compiler or emulator is missing");
    }
    for (int i = 0; i < EXAMPLES; i += step) {
        OPD_SCOPED;
        opd_tensor *in[3], *want[OUTPUTS];
        const int n = inputs_of(&examples[i], in);
        opd_graph *const graph = opd_graph_trace(examples[i].fn, NULL, in, n, NULL);
        const int results = graph ? opd_graph_run(graph, in, n, want, OUTPUTS) : -1;
        CHECK(results > 0 && opd_graph_write_c(graph, in, n, check_cache, NULL) == 0);
        CHECK_OK();
        if (results > 0) {
            CHECK(write_program(in, n, want, results));
            const int64_t other = differences(compiler, link, runner, want, results);
            if (other) { printf("    %s: %lld elements differ: %s\n", compiler, (long long)other, examples[i].name); }
            CHECK_INT(other, 0);
        }
        opd_error_clear();
        opd_graph_free(graph);
    }
    (void)opd_same_bits_set(was);
}
TEST(gcc) { compare_with("gcc -O2", NULL, "", 1); }
TEST(gcc_for_this_processor) { compare_with("gcc -O3 -march=native", NULL, "", 3); }
TEST(clang) { compare_with("clang -O2", NULL, "", 3); }
TEST(clang_for_this_processor) { compare_with("clang -O3 -march=native", NULL, "", 3); }
/* The code is that for a Cortex-M7.  Without the note that names this processor, the linker joins it with the C library
   for processors that have its instructions, too. */
TEST(cortex_m7) {
    compare_with("arm-linux-gnueabihf-gcc -Os -mcpu=cortex-m7 -mthumb -mfpu=fpv5-d16 -mfloat-abi=hard",
                 "arm-linux-gnueabihf-objcopy -R .ARM.attributes model.o && arm-linux-gnueabihf-gcc -static", "qemu-arm", 3);
}
TEST(arm_without_fused_products) {
    compare_with("arm-linux-gnueabihf-gcc -Os -static -mthumb -mfpu=vfpv3-d16 -march=armv7-a", NULL, "qemu-arm", 3);
}

/* What kernels add in another order than C text is an error. */
TEST(what_cannot_be_written) {
    static const example refused[] = {
        {"groups", conv_groups, {{1, 16, 8, 8}, {16, 4, 3, 3}}, 1},
        {"columns", columns, {{40, 7}}, 1}, {"long rows", rows, {{2, 1025}}, 1}, {"sum", sum, {{40, 7}}, 1},
        {"dot", dot, {{40}, {40}}, 1}, {"depth 1", product, {{4, 1}, {1, 4}}, 1},
    };
    const bool was = opd_same_bits_set(true);
    if (!check_cache_begin()) { (void)opd_same_bits_set(was); SKIP("no cc"); }
    for (int i = 0; i < (int)(sizeof refused / sizeof *refused); i++) {
        OPD_SCOPED;
        opd_tensor *in[3];
        const int n = inputs_of(&refused[i], in);
        opd_graph *const graph = opd_graph_trace(refused[i].fn, NULL, in, n, NULL);
        CHECK_INT(opd_graph_write_c(graph, in, n, check_cache, NULL), -1);
        CHECK(strstr(opd_error_message(), "in the mode of same bits") != NULL);
        opd_error_clear();
        opd_graph_free(graph);
    }
    (void)opd_same_bits_set(was);
}
TEST(the_cache_goes) { if (!check_cache_end()) { SKIP("no cc"); } }
CHECK_MAIN()
