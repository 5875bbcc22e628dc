/* In the mode of same bits, compiled graphs give the bits that the calls of their operators give: each operator with
   sample arguments, small and large, and graphs of several operators, with gcc and clang. */
#include "../cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
/* Returns whether two tensors have the same bits, except for signs of NaN. */
static bool same_bits(opd_tensor *a, opd_tensor *b) {
    if (!a || !b || opd_dtype(a) != opd_dtype(b) || opd_ndim(a) != opd_ndim(b)) { return a == b; }
    for (int i = 0; i < opd_ndim(a); i++) { if (opd_size(a, i) != opd_size(b, i)) { return false; } }
    if (opd_dtype_is_complex(opd_dtype(a))) {
        a = opd_view_as_real(opd_resolve_conj(a));
        b = opd_view_as_real(opd_resolve_conj(b));
    }
    if (!opd_dtype_is_floating(opd_dtype(a))) { return opd_equal(a, b); }
    a = opd_contiguous(opd_to_dtype(a, OPD_FLOAT64));
    b = opd_contiguous(opd_to_dtype(b, OPD_FLOAT64));
    const double *const x = opd_data_f64(a), *const y = opd_data_f64(b);
    for (int64_t i = 0; i < opd_numel(a); i++) {
        if (memcmp(&x[i], &y[i], sizeof x[i]) != 0 && (x[i] == x[i] || y[i] == y[i])) { return false; }
    }
    return opd_ok();
}

//-- each operator -----------------------------------------------------------------------------------------------------

/* Returns whether results of the operator are undefined, or undefined for its sample arguments. */
static bool is_unfit(const char *name) {
    return strstr(name, "empty") || strstr(name, "::searchsorted") || strstr(name, "::bucketize") ||
        strstr(name, "::resize_") || strcmp(name, "aten::cumprod_backward") == 0;
}
/* Runs the case compiled and uncompiled.  Returns 1 if it was compiled, 0 if it ran uncompiled, -1 if there is no
   graph. */
static int compile_case(const opd_op *op, const char *text, opd_scalar_type dtype) {
    OPD_SCOPED;
    static op_case c;
    opd_tensor *in[OPD_MAX_ARGS], *again[OPD_MAX_ARGS], *got[OPD_TRANSFORM_OUTPUTS], *want[OPD_TRANSFORM_OUTPUTS];
    int n = 0, results = 0, compiled_now = -1;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.dtype = dtype;
    c.smooth = true;
    if (!case_read_next(&c, &text)) {
        opd_error_clear();
        return -1;
    }
    for (int i = 0; i < c.nargs; i++) { if (c.args[i].tag == OPD_TAG_TENSOR) { in[n++] = c.args[i].u.t; } }
    opd_graph *const graph = opd_graph_trace(case_call, &c, in, n, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    opd_error_clear();
    for (int k = 0; k < 2 && compiled; k++) {
        for (int i = 0; i < n; i++) { again[i] = opd_clone(in[i]); }
        opd_manual_seed(3);
        results = opd_graph_run(graph, again, n, want, OPD_TRANSFORM_OUTPUTS);
        for (int i = 0; i < n; i++) { again[i] = opd_clone(in[i]); }
        opd_manual_seed(3);
        CHECK_INT(opd_compiled_function(compiled, again, n, got), results);
    }
    if (compiled) { compiled_now = opd_compiled_reason(compiled) == NULL; }
    for (int i = 0; compiled_now == 1 && i < results; i++) {
        const bool same = same_bits(got[i], want[i]);
        if (!same) { printf("    %s of %s gives other bits: %.200s\n", opd_op_name(op), opd_dtype_name(dtype), text); }
        CHECK(same);
    }
    if (compiled_now == 0 && getenv("OPD_VERBOSE")) { printf("    %s: %s\n", opd_op_name(op), opd_compiled_reason(compiled)); }
    opd_error_clear();
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    return compiled_now;
}
/* All operators where there is a compiler that takes no time, else one in sixteen. */
static void compile_operators(opd_scalar_type dtype, bool large, int least) {
    static char text[1 << 14];
    const bool quick = system("tcc -v >/dev/null 2>&1") == 0, was = opd_same_bits_set(true);
    const char *const cc = getenv("CC");
    char before[200];
    int count[2] = {0, 0}, turn = 0;
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(before, sizeof before, "%s", cc ? cc : "cc");
    if (quick) { (void)setenv("CC", "tcc", 1); }
    opd_log_set(say_nothing, NULL);
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *const card = opd_op_card(op);
        const char *const name = opd_op_name(op), *at = card && card->cases ? card->cases : "";
        if (is_unfit(name) || !check_compiles(name) || (!quick && turn++ % 16)) { continue; }
        if (large && !case_enlarge(at, text, sizeof text, false, 3, 1 << 15)) { continue; }
        for (at = large ? text : at; *at; at += strcspn(at, ";")) {
            at += *at == ';';
            const int one = compile_case(op, at, dtype);
            if (one >= 0) { count[one]++; }
        }
    }
    opd_log_set(NULL, NULL);
    (void)setenv("CC", before, 1);
    (void)opd_same_bits_set(was);
    printf("%s: %d compiled, %d plain\n", opd_dtype_name(dtype), count[1], count[0]);
    CHECK(!quick || check_compiles_a_share() || count[1] >= least);
    CHECK_OK();
}
TEST(operators_of_float32) { compile_operators(OPD_FLOAT32, false, 1900); }
TEST(operators_of_float64) { compile_operators(OPD_FLOAT64, false, 1700); }
TEST(operators_of_bfloat16) { compile_operators(OPD_BFLOAT16, false, 1600); }
TEST(large_operators) { compile_operators(OPD_FLOAT32, true, 1000); }
//-- graphs of several operators ---------------------------------------------------------------------------------------

/* A chain of pointwise operators, in which a compiler could fuse products with sums. */
static int chain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *x = opd_add(opd_mul(in[0], in[1]), in[2]), *const y = opd_sub(opd_mul(x, x), opd_mul(in[1], in[2]));
    x = opd_add_full(opd_exp(opd_neg(opd_abs(y))), x, opd_value_double(0.3));
    x = opd_div(opd_addcmul(x, y, in[0], opd_value_double(0.7)), opd_add_Scalar(opd_abs(in[1]), opd_value_double(1.25)));
    x = opd_where_self(opd_gt(x, y), opd_tanh(x), opd_lerp(x, y, in[0]));
    out[0] = opd_mul(opd_sqrt(opd_abs(x)), opd_sigmoid(opd_hardswish(y)));
    out[1] = opd_softmax(opd_add(out[0], opd_gelu(x)), -1);
    return out[1] ? 2 : -1;
}
/* A small network with products, sums and random numbers. */
static int network(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *x = opd_layer_norm(in[0], OPD_INTS(opd_size(in[0], -1)), NULL, NULL, 1e-5);
    x = opd_matmul(opd_dropout(opd_relu(opd_mul(x, in[1])), 0.3, true), opd_transpose(in[2], -1, -2));
    out[0] = opd_log_softmax(opd_add(opd_mul(x, x), opd_cumsum(x, -1)), -1);
    out[1] = opd_mean(opd_mul(opd_sum_dim(opd_transpose(x, 0, 1), OPD_INTS(1), false), opd_amax(x, OPD_INTS(0), false)));
    return out[1] ? 2 : -1;
}
static void compare(opd_transform_fn fn, const char *cc, const char *flags, int64_t rows, int64_t columns, opd_scalar_type dtype) {
    OPD_SCOPED;
    opd_tensor *in[3], *got[2], *want[2];
    opd_compile_options options;
    memset(&options, 0, sizeof options);
    options.flags = flags;
    opd_manual_seed((uint64_t)(rows + 7 * columns));
    for (int i = 0; i < 3; i++) { in[i] = opd_randn(OPD_INTS(rows, columns), dtype); }
    if (setenv("CC", cc, 1)) { return; }
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, 3, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, &options) : NULL;
    for (int k = 0; k < 2 && compiled; k++) {
        opd_manual_seed(9);
        CHECK_INT(fn(NULL, in, 3, want), 2);
        opd_manual_seed(9);
        CHECK_INT(opd_compiled_function(compiled, in, 3, got), 2);
        CHECK(same_bits(got[0], want[0]) && same_bits(got[1], want[1]));
    }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    CHECK_OK();
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
TEST(graphs_of_several_operators) {
    static const char *const compilers[] = {"gcc", "clang"};
    static const int64_t sizes[][2] = {{1, 7}, {5, 33}, {24, 100}};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16};
    const bool was = opd_same_bits_set(true);
    char before[200];
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(before, sizeof before, "%s", getenv("CC") ? getenv("CC") : "cc");
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    for (int i = 0; i < 2; i++) {
        char command[40];
        (void)snprintf(command, sizeof command, "%s -v >/dev/null 2>&1", compilers[i]);
        if (system(command) != 0) { continue; }
        for (int k = 0; k < 3; k++) {
            compare(chain, compilers[i], NULL, sizes[k][0], sizes[k][1], dtypes[k]);
            compare(network, compilers[i], k == 1 ? "-O1" : NULL, sizes[k][0], sizes[k][1], dtypes[(k + i) % 3]);
        }
    }
    (void)unsetenv("OPD_COMPILED_ALWAYS");
    (void)setenv("CC", before, 1);
    (void)opd_same_bits_set(was);
}

/* Compares `count` results of fn with those of compiled code, for which no run may stay uncompiled. */
static void compiled_equally(opd_transform_fn fn, opd_tensor *const *in, int n, int count) {
    opd_tensor *want[16], *got[16];
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    CHECK_OR_RETURN(compiled && fn(NULL, in, n, want) == count);
    for (int k = 0; k < 2; k++) { CHECK_INT(opd_compiled_function(compiled, in, n, got), count); }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    for (int i = 0; i < count; i++) { CHECK(same_bits(got[i], want[i])); }
    CHECK_OK();
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
/* Scans of one element: the operators give 0 for -0, which a copy would not do. */
static int scans(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    for (int i = 0; i < n; i++) {
        out[2 * i] = opd_cumsum(in[i], 0);
        out[2 * i + 1] = opd_logcumsumexp(in[i], -1);
    }
    return opd_ok() ? 2 * n : -1;
}
TEST(scans_of_one_element) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16};
    OPD_SCOPED;
    opd_tensor *in[8];
    const bool was = opd_same_bits_set(true);
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    for (int i = 0; i < 8; i++) {
        in[i] = opd_full(OPD_INTS(1, 1), opd_value_double(-0.0), dtypes[i % 4]);
        if (i < 4) { in[i] = opd_reshape(in[i], opd_ints_of(NULL, 0)); }
    }
    compiled_equally(scans, in, 8, 16);
    (void)unsetenv("OPD_COMPILED_ALWAYS");
    (void)opd_same_bits_set(was);
}
/* Composites that the CPU computes in a way of its own, and not by the operators into which they can be divided: derivatives of
   attention, and layers of codes. */
static int own_ways(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const double ending[2] = {0, 2.5};
    opd_value args[11], kept[3], rets[3];
    (void)user;
    (void)n;
    for (int i = 0; i < 3; i++) { args[i] = opd_value_tensor(in[i]); }
    if (opd_call_all(opd_find("aten::_scaled_dot_product_flash_attention_for_cpu"), kept, args, 3)) { return -1; }
    args[0] = opd_value_tensor(in[3]);
    for (int i = 0; i < 3; i++) { args[1 + i] = opd_value_tensor(in[i]); }
    args[4] = kept[0];
    args[5] = kept[1];
    args[6] = opd_value_double(0);
    args[7] = opd_value_bool(true);
    if (opd_call_all(opd_find("aten::_scaled_dot_product_flash_attention_for_cpu_backward"), rets, args, 8)) { return -1; }
    for (int i = 0; i < 3; i++) { out[i] = rets[i].u.t; }
    for (int i = 0; i < 11; i++) { args[i] = opd_value_none(); }
    for (int i = 0; i < 5; i++) { args[i] = opd_value_tensor(in[4 + i]); }
    args[10] = opd_value_doubles(ending, 2);
    out[3] = opd_call_op(opd_find("opdispatch::quantized_linear"), args, 11);
    return out[3] ? 4 : -1;
}
TEST(composites_with_a_way_of_their_own) {
    OPD_SCOPED;
    opd_tensor *in[9];
    const bool was = opd_same_bits_set(true);
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    opd_manual_seed(3);
    for (int i = 0; i < 4; i++) { in[i] = opd_randn(OPD_INTS(2, 3, 17, 16), OPD_FLOAT32); }
    in[4] = opd_to_dtype(opd_mul_Scalar(opd_randn(OPD_INTS(9, 70), OPD_FLOAT32), opd_value_double(40)), OPD_INT8);
    in[5] = opd_full(opd_ints_of(NULL, 0), opd_value_double(0.0137), OPD_FLOAT32);
    in[6] = opd_full(opd_ints_of(NULL, 0), opd_value_int(3), OPD_INT64);
    in[7] = opd_to_dtype(opd_mul_Scalar(opd_randn(OPD_INTS(33, 70), OPD_FLOAT32), opd_value_double(40)), OPD_INT8);
    in[8] = opd_add_Scalar(opd_abs(opd_randn(OPD_INTS(33), OPD_FLOAT32)), opd_value_double(0.01));
    compiled_equally(own_ways, in, 9, 4);
    (void)unsetenv("OPD_COMPILED_ALWAYS");
    (void)opd_same_bits_set(was);
}
/* Flags that let the compiler round otherwise have no effect in the mode. */
TEST(flags_do_not_change_the_bits) {
    static const char *const compilers[] = {"gcc", "clang"};
    static const char *const flags[] = {"-O3 -march=native -ffast-math", "-Ofast -march=native", "-O2 -march=native -funsafe-math-optimizations",
        "-O2 -march=native -freciprocal-math -fassociative-math -fno-signed-zeros -fno-trapping-math -ffp-contract=fast"};
    const bool was = opd_same_bits_set(true);
    char before[200];
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(before, sizeof before, "%s", getenv("CC") ? getenv("CC") : "cc");
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    for (int i = 0; i < 2; i++) {
        char command[40];
        (void)snprintf(command, sizeof command, "%s -v >/dev/null 2>&1", compilers[i]);
        for (int k = 0; k < 4 && system(command) == 0; k++) { compare(chain, compilers[i], flags[k], 24, 100, OPD_FLOAT32); }
    }
    (void)unsetenv("OPD_COMPILED_ALWAYS");
    (void)setenv("CC", before, 1);
    (void)opd_same_bits_set(was);
}

//-- files -------------------------------------------------------------------------------------------------------------

/* Winograd's method adds in an order that C text does not have. */
static int winograd(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)in;
    (void)n;
    opd_tensor *const x = opd_ones(OPD_INTS(1, 16, 8, 8), OPD_FLOAT32), *const w = opd_ones(OPD_INTS(16, 16, 3, 3), OPD_FLOAT32);
    out[0] = opd_conv2d(x, w, NULL, OPD_INTS(1), OPD_INTS(1));
    return out[0] ? 1 : -1;
}
/* Graphs are written as C without calls only if the text gives the same bits. */
TEST(files_without_calls) {
    OPD_SCOPED;
    opd_c_options options;
    opd_tensor *in[2];
    const bool was = opd_same_bits_set(true);
    memset(&options, 0, sizeof options);
    for (int i = 0; i < 2; i++) { in[i] = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32); }
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int i = 0; i < 3; i++) {
        static const char *const calls[] = {"mul", "hypot", "erf"};
        char text[200];
        (void)snprintf(text, sizeof text, "graph(%%x, %%y):\n  %%z = aten::%s(%%x%s)\n  return (%%z)\n", calls[i], i == 2 ? "" : ", %y");
        opd_graph *const graph = opd_graph_parse(text);
        CHECK_OR_RETURN(graph != NULL);
        CHECK_INT(opd_graph_write_c(graph, in, 2, check_cache, &options), i ? -1 : 0);
        CHECK(!i || (strstr(opd_error_message(), calls[i]) && strstr(opd_error_message(), "same bits")));
        opd_error_clear();
        options.calls = true;
        CHECK_INT(opd_graph_write_c(graph, in, 2, check_cache, &options), 0);
        options.calls = false;
        opd_graph_free(graph);
    }
    opd_graph *const graph = opd_graph_trace(winograd, NULL, in + 1, 0, NULL);
    CHECK_INT(opd_graph_write_c(graph, in, 0, check_cache, &options), -1);
    CHECK(strstr(opd_error_message(), "OPD_WINOGRAD=0") != NULL);
    opd_error_clear();
    opd_graph_free(graph);
    CHECK_OK();
    (void)opd_same_bits_set(was);
}
/* A file that is written in the mode has the bits of an uncompiled run, although gcc may round a product and
   a sum at once. */
static int products(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const x = opd_add(opd_mul(in[0], in[1]), in[1]);
    out[0] = opd_div(opd_sub(opd_mul(x, x), opd_mul(in[0], x)), opd_add_full(in[1], opd_abs(x), opd_value_double(1.7)));
    return out[0] ? 1 : -1;
}
TEST(a_file_rounds_products_and_sums_apart) {
    static const char *const compilers[] = {"gcc", "clang"};
    OPD_SCOPED;
    opd_tensor *in[2], *want;
    char path[200], command[900];
    const bool was = opd_same_bits_set(true);
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int i = 0; i < 2; i++) { in[i] = opd_randn(OPD_INTS(200), OPD_FLOAT32); }
    opd_graph *const graph = opd_graph_trace(products, NULL, in, 2, NULL);
    CHECK_OR_RETURN(graph != NULL && opd_graph_run(graph, in, 2, &want, 1) == 1);
    CHECK_INT(opd_graph_write_c(graph, in, 2, check_cache, NULL), 0);
    (void)opd_same_bits_set(was);
    (void)snprintf(path, sizeof path, "%s/main.c", check_cache);
    FILE *const file = fopen(path, "w");
    CHECK_OR_RETURN(file != NULL);
    (void)fputs("#include \"model.h\"\n#include <stdio.h>\nstatic float in[2][200] = {", file);
    for (int i = 0; i < 400; i++) { (void)fprintf(file, "%s%.9g", i ? ", " : "", (double)opd_data_f32(in[i / 200])[i % 200]); }
    (void)fputs("}, want[200] = {", file);
    for (int i = 0; i < 200; i++) { (void)fprintf(file, "%s%.9g", i ? ", " : "", (double)opd_data_f32(want)[i]); }
    (void)fputs("}, out[200];\nstatic unsigned char memory[2][1 << 16];\nint main(void) {\n    model m;\n"
                "    const void *const inputs[] = {in[0], in[1]};\n    void *outputs[] = {out};\n    int other = 0;\n"
                "    if (model_init(&m, \"\", memory[0], memory[1])) { return 2; }\n"
                "    if (model_call(&m, (void *const *)inputs, outputs)) { return 3; }\n"
                "    for (int i = 0; i < 200; i++) { other += out[i] != want[i]; }\n"
                "    if (other) { printf(\"%d elements differ\\n\", other); }\n    return other != 0;\n}\n", file);
    CHECK_INT(fclose(file), 0);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(command, sizeof command, "%s -v >/dev/null 2>&1", compilers[i]);
        if (system(command) != 0) { continue; }
        (void)snprintf(command, sizeof command, "cd '%s' && %s -w -O2 -march=native main.c model.c -o main%d -lm && ./main%d",
                       check_cache, compilers[i], i, i);
        CHECK_INT(system(command), 0);
    }
    CHECK_OK();
    opd_graph_free(graph);
}
TEST(the_cache_goes) { if (!check_cache_end()) { SKIP("no cc"); } }
CHECK_MAIN()
