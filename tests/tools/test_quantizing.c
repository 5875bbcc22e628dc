/* Quantising modules, graphs and programs.  golden/quantizing.npz is made by golden/make_quantizing.py. */
#include "../../opdispatch.h"
#include "../program_files.h"
#include <unistd.h>

static opd_tensor_file *golden_file(void) {
    static char path[1100];
    const char *const slash = strrchr(__FILE__, '/');
    (void)snprintf(path, sizeof path, "%.*s../golden/quantizing.npz", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__);
    return opd_tensor_file_open(path);
}
/* Returns the path of a file that the test writes, valid until the next call. */
static const char *temporary(const char *end) {
    static char path[100];
    (void)snprintf(path, sizeof path, "/tmp/opd_quantized_%d%s", (int)getpid(), end);
    return path;
}
/* Returns whether two tensors differ by at most `most`. */
static bool near(opd_tensor *x, opd_tensor *y, double most) {
    if (!x || !y || opd_numel(x) != opd_numel(y)) { return false; }
    y = opd_reshape(opd_to_dtype(y, OPD_FLOAT64), opd_ints_of(opd_sizes(x), opd_ndim(x)));
    return opd_numel(x) == 0 || opd_item_f64(opd_max(opd_abs(opd_sub(opd_to_dtype(x, OPD_FLOAT64), y)))) <= most;
}
/* The lines of a report. */
static opd_quantized lines[20];
static char names[20][60], ops[20][60], forms[20][100];
static int nlines;
static void line(void *user, const opd_quantized *its) {
    (void)user;
    if (nlines == 20) { return; }
    lines[nlines] = *its;
    (void)snprintf(names[nlines], sizeof names[nlines], "%s", its->name);
    (void)snprintf(forms[nlines], sizeof forms[nlines], "%s", its->form);
    (void)snprintf(ops[nlines], sizeof ops[nlines], "%s", its->op ? its->op : "");
    lines[nlines].name = names[nlines];           /* the texts live until this function returns */
    if (its->op) { lines[nlines].op = ops[nlines]; }
    lines[nlines].form = forms[nlines];
    nlines++;
}
static opd_quantize_options reported(void) {
    opd_quantize_options options;
    memset(&options, 0, sizeof options);
    options.report = line;
    nlines = 0;
    return options;
}
/* Records the function fn of the tensors of a module and of x. */
static opd_graph *record(opd_module *module, opd_transform_fn fn, opd_tensor *x) {
    opd_tensor *in[20];
    const int count = (int)opd_module_count(module);
    for (int i = 0; i < count; i++) { in[i] = opd_module_at(module, i); }
    in[count] = x;
    return opd_graph_trace(fn, NULL, in, count + 1, NULL);
}
static opd_tensor *run(const opd_graph *graph, const opd_module *module, opd_tensor *x) {
    opd_tensor *in[20], *out[1] = {NULL};
    const int count = (int)opd_module_count(module);
    for (int i = 0; i < count; i++) { in[i] = opd_module_at(module, i); }
    in[count] = x;
    return opd_graph_run(graph, in, count + 1, out, 1) == 1 ? out[0] : NULL;
}
static int linear(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    return (out[0] = opd_linear(in[2], in[0], in[1])) ? 1 : -1;
}
static int addmm(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    return (out[0] = opd_addmm(in[1], in[2], opd_t(in[0]))) ? 1 : -1;
}
/* The matrix is [inputs, outputs]. */
static int turned(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    return (out[0] = opd_addmm(in[1], in[2], in[0])) ? 1 : -1;
}
static opd_tensor *conv_of(opd_tensor *x, opd_tensor *w) {
    return opd_conv2d(x, w, NULL, OPD_INTS(1, 1), OPD_INTS(0, 0));
}
static int conv(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    return (out[0] = conv_of(in[1], in[0])) ? 1 : -1;
}
static opd_module *module_of(opd_tensor *w, opd_tensor *b) {
    opd_module *const module = opd_module_new();
    CHECK_INT(opd_module_add(module, "weight", w, OPD_MODULE_PARAMETER), 0);
    if (b) { CHECK_INT(opd_module_add(module, "bias", b, OPD_MODULE_PARAMETER), 0); }
    return module;
}

//-- weights -----------------------------------------------------------------------------------------------------------

static void check_weight(const opd_tensor_file *file, const char *how, opd_transform_fn fn, bool half_bytes) {
    char key[100];
    opd_tensor *w = opd_tensor_file_get(file, "w0"), *b = opd_tensor_file_get(file, "b0");
    opd_tensor *x = opd_tensor_file_get(file, "x0");
    (void)snprintf(key, sizeof key, "w0.%s.again", how);
    opd_tensor *again = opd_tensor_file_get(file, key);
    if (fn == turned) {
        w = opd_contiguous(opd_t(w));
        again = opd_contiguous(opd_t(again));
    }
    opd_module *module = module_of(w, b), *same = module_of(again, b);
    opd_graph *graph = record(module, fn, x), *wanted = record(same, fn, x);
    const opd_quantize_options options = reported();
    opd_graph *made = opd_quantize_graph(graph, module, how, &options);
    CHECK(made != NULL);
    if (!made) { printf("%s: %s\n", how, opd_error_message()); opd_error_clear(); }
    else {
        CHECK_INT(opd_graph_check(made), 0);
        opd_tensor *const stored = opd_module_get(module, "weight");
        (void)snprintf(key, sizeof key, "w0.%s.codes", how);
        opd_tensor *codes = opd_tensor_file_get(file, key);
        if (half_bytes) {
            CHECK_INT(opd_dtype(stored), OPD_UINT8);
            opd_tensor *const pairs = opd_add_Scalar(opd_reshape(opd_to_dtype(codes, OPD_INT64), OPD_INTS(6, 32, 2)), OPD_V(8));
            codes = opd_add(opd_select(pairs, 2, 0), opd_mul_Scalar(opd_select(pairs, 2, 1), OPD_V(16)));
        } else { CHECK_INT(opd_dtype(stored), OPD_INT8); }
        CHECK(near(stored, codes, 0));
        CHECK(near(run(made, module, x), run(wanted, same, x), 1e-6));
        CHECK_INT(nlines, 1);
        CHECK_STR(names[0], "weight");
        CHECK_STR(forms[0], how);
        CHECK(!lines[0].kept && lines[0].uses == 1 && lines[0].bytes_before == 6 * 64 * 4);
        CHECK(lines[0].bytes_after < lines[0].bytes_before && lines[0].weight_mean > 0 && lines[0].weight_max < 2.5);
        CHECK(near(opd_scalar_tensor(opd_value_double(lines[0].weight_max), OPD_FLOAT64), opd_max(opd_abs(opd_sub(w, again))), 1e-7));
        CHECK(isnan(lines[0].output_mean));
    }
    opd_graph_free(made);
    opd_graph_free(graph);
    opd_graph_free(wanted);
    opd_module_free(module);
    opd_module_free(same);
}
TEST(weights_are_those_of_pytorch) {
    static const char *const hows[] = {"int8", "int8, group 16", "int8, asymmetric", "int4", "int4, group 16"};
    opd_tensor_file *file = golden_file();
    CHECK(file != NULL);
    for (int i = 0; i < 5; i++) {
        OPD_SCOPE {
            check_weight(file, hows[i], linear, i > 2);
            check_weight(file, hows[i], addmm, i > 2);
            check_weight(file, hows[i], turned, i > 2);
        }
    }
    opd_tensor_file_close(file);
}
TEST(weights_of_convolutions) {
    static const char *const hows[] = {"int8", "int4", "int8, asymmetric"};
    opd_tensor_file *file = golden_file();
    for (int i = 0; i < 3; i++) {
        OPD_SCOPE {
            char key[60];
            opd_tensor *x = opd_reshape(opd_narrow(opd_tensor_file_get(file, "x1"), 0, 0, 3), OPD_INTS(1, 3, 8, 8));
            opd_module *module = module_of(opd_tensor_file_get(file, "w1"), NULL);
            opd_graph *graph = record(module, conv, x), *made = opd_quantize_graph(graph, module, hows[i], NULL);
            CHECK(made != NULL);
            (void)snprintf(key, sizeof key, "w1.%s.again", hows[i]);
            if (made) { CHECK(near(run(made, module, x), conv_of(x, opd_tensor_file_get(file, key)), 1e-5)); }
            opd_graph_free(graph);
            opd_graph_free(made);
            opd_module_free(module);
        }
    }
    opd_tensor_file_close(file);
}

//-- inputs ------------------------------------------------------------------------------------------------------------

/* Quantises a linear layer with the batches of the golden file. */
static opd_graph *with_batches(const opd_tensor_file *file, opd_module **module, const char *how) {
    static opd_value values[3];
    static const opd_value *batches[3];
    opd_tensor *x[3];
    for (int i = 0; i < 3; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "x%d", i);
        x[i] = opd_tensor_file_get(file, key);
        values[i] = opd_value_tensor(x[i]);
        batches[i] = &values[i];
    }
    *module = module_of(opd_tensor_file_get(file, "w0"), opd_tensor_file_get(file, "b0"));
    opd_graph *graph = record(*module, linear, x[0]);
    opd_quantize_options options = reported();
    options.batches = batches;
    options.nbatches = 3;
    options.ninputs = 1;
    opd_graph *made = opd_quantize_graph(graph, *module, how, &options);
    opd_graph_free(graph);
    return made;
}
static void check_inputs(const opd_tensor_file *file, const char *how, const char *key, double tolerance) {
    opd_module *module;
    char name[40];
    opd_graph *made = with_batches(file, &module, how);
    CHECK(made != NULL);
    if (!made) { printf("%s: %s\n", how, opd_error_message()); opd_error_clear(); }
    else {
        (void)snprintf(name, sizeof name, "y.%s", key);
        CHECK(near(run(made, module, opd_tensor_file_get(file, "x0")), opd_tensor_file_get(file, name), tolerance));
        (void)snprintf(name, sizeof name, "%s.scale", key);
        if (opd_tensor_file_find(file, name) >= 0) {
            CHECK(near(opd_tensor_file_get(file, name), opd_scalar_tensor(opd_value_double(lines[0].input_scale), OPD_FLOAT64), 1e-8));
            (void)snprintf(name, sizeof name, "%s.zero", key);
            CHECK_INT(lines[0].input_zero_point, opd_item_i64(opd_tensor_file_get(file, name)));
        }
        CHECK_INT(nlines, 2);
        CHECK_STR(names[1], "output 0");
        CHECK(lines[1].op == NULL && lines[0].output_mean > 0 && lines[0].output_max < 20 && lines[0].output_size > 3);
        CHECK(fabs(lines[1].output_mean - lines[0].output_mean) < 1e-6);        /* it is the only layer */
        CHECK(fabs(lines[1].output_size - lines[0].output_size) < 1e-6);
        CHECK(fabs(lines[1].output_max - lines[0].output_max) < 1e-5);
    }
    opd_graph_free(made);
    opd_module_free(module);
}
TEST(scales_of_inputs_are_those_of_pytorch) {
    opd_tensor_file *file = golden_file();
    OPD_SCOPE { check_inputs(file, "int8, static", "minmax", 5e-5); }
    OPD_SCOPE { check_inputs(file, "int8, static, histogram", "histogram", 5e-5); }
    OPD_SCOPE { check_inputs(file, "int8, dynamic", "dynamic", 5e-5); }
    opd_tensor_file_close(file);
}
TEST(a_histogram_leaves_out_a_number_far_away) {
    opd_tensor_file *file = golden_file();
    OPD_SCOPE {
        opd_tensor *n = opd_remainder_Scalar(opd_mul_Scalar(opd_arange(OPD_V(60000), OPD_INT64), OPD_V(7919)), OPD_V(10009));
        n = opd_div_Scalar(opd_to_dtype(opd_sub_Scalar(n, OPD_V(5004)), OPD_FLOAT64), OPD_V(1280));
        opd_tensor *const x = opd_reshape(opd_to_dtype(opd_mul(opd_mul(n, n), n), OPD_FLOAT32), OPD_INTS(6000, 10));
        opd_tensor *one = opd_clone(opd_narrow(x, 0, 0, 2000)), *two = opd_mul_Scalar(opd_narrow(x, 0, 2000, 4000), OPD_V(0.5));
        (void)opd_fill_(opd_select(opd_select(x, 0, 123), 0, 4), OPD_V(900));
        opd_tensor *three = opd_add_Scalar(opd_mul_Scalar(x, OPD_V(1.5)), OPD_V(3));
        const opd_value values[3] = {opd_value_tensor(one), opd_value_tensor(two), opd_value_tensor(three)};
        const opd_value *const batches[3] = {&values[0], &values[1], &values[2]};
        opd_module *module = module_of(opd_ones(OPD_INTS(1, 10), OPD_FLOAT32), opd_zeros(OPD_INTS(1), OPD_FLOAT32));
        opd_graph *graph = record(module, linear, one);
        opd_quantize_options options = reported();
        options.batches = batches;
        options.nbatches = 3;
        options.ninputs = 1;
        opd_graph *made = opd_quantize_graph(graph, module, "int8, static, histogram", &options);
        CHECK(made != NULL);
        const double want = opd_item_f64(opd_tensor_file_get(file, "long.scale"));
        CHECK(want < 0.8);                        /* with MinMaxObserver, it is 5.6 */
        CHECK(fabs(lines[0].input_scale - want) < 1e-5);
        CHECK_INT(lines[0].input_zero_point, opd_item_i64(opd_tensor_file_get(file, "long.zero")));
        opd_graph_free(graph);
        opd_graph_free(made);
        opd_module_free(module);
    }
    opd_tensor_file_close(file);
}
TEST(percentiles_are_between_the_parts_of_the_histogram) {
    opd_tensor_file *file = golden_file();
    OPD_SCOPE {
        opd_module *module;
        opd_graph *made = with_batches(file, &module, "int4, group 32, static, percentile 99");
        CHECK(made != NULL);
        const double part = (90.0 + 6) / 2048;
        CHECK(fabs(lines[0].input_min - opd_item_f64(opd_tensor_file_get(file, "percentile.low"))) < 2 * part);
        CHECK(fabs(lines[0].input_max - opd_item_f64(opd_tensor_file_get(file, "percentile.high"))) < 2 * part);
        char text[400];
        CHECK(opd_quantized_print(&lines[0], text, sizeof text) == strlen(text));
        CHECK(strstr(text, "weight aten::linear") && strstr(text, "int4, group 32: 1536 -> 336 bytes"));
        CHECK(opd_quantized_print(NULL, text, sizeof text) == 0);
        opd_graph_free(made);
        opd_module_free(module);
    }
    opd_tensor_file_close(file);
}

//-- which weights -----------------------------------------------------------------------------------------------------

/* in: embedding (also the last layer), a, b, c, odd, x. */
static int several(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *x = opd_embedding(in[0], in[5]);
    opd_tensor *const y = opd_add(opd_linear(x, in[1], NULL), opd_linear(x, in[2], NULL));
    x = opd_linear(opd_linear(opd_relu(y), in[3], NULL), in[3], NULL);
    x = opd_linear(opd_mm(opd_select(x, 0, 0), in[4]), opd_t(in[4]), NULL);
    return (out[0] = opd_linear(x, in[0], NULL)) ? 1 : -1;
}
static bool no_b(void *user, const opd_quantized *weight) {
    (void)user;
    return strcmp(weight->name, "b") != 0;
}
TEST(which_weights_are_quantised) {
    OPD_SCOPE {
        static const char *const its[] = {"embedding", "a", "b", "c", "odd"};
        opd_module *module = opd_module_new();
        for (int i = 0; i < 5; i++) {
            opd_tensor *const w = opd_randn(i ? OPD_INTS(16, 16) : OPD_INTS(12, 16), OPD_FLOAT32);
            CHECK(opd_tensor_set_requires_grad(w, true) != NULL);
            CHECK_INT(opd_module_add(module, its[i], w, OPD_MODULE_PARAMETER), 0);
        }
        opd_tensor *const x = opd_to_dtype(opd_reshape(opd_arange(OPD_V(6), OPD_FLOAT32), OPD_INTS(2, 3)), OPD_INT64);
        opd_graph *graph = record(module, several, x);
        opd_tensor *const before = run(graph, module, x);
        opd_quantize_options options = reported();
        options.choose = no_b;
        opd_graph *made = opd_quantize_graph(graph, module, "int8, dynamic", &options);
        CHECK(made != NULL && nlines == 5);
        CHECK(lines[0].kept && strcmp(forms[0], "it is used by aten::embedding") == 0);
        CHECK(!lines[1].kept && lines[1].uses == 1);
        CHECK(lines[2].kept && strcmp(forms[2], "it is not selected") == 0);
        CHECK(!lines[3].kept && lines[3].uses == 2);
        CHECK(lines[4].kept && strcmp(lines[4].name, "odd") == 0);
        if (made) {
            CHECK_INT(opd_dtype(opd_module_get(module, "c")), OPD_INT8);
            CHECK_INT(opd_graph_count(made, "quantized_decomposed::dequantize_per_channel"), 3);
            CHECK_INT(opd_graph_count(made, "quantized_decomposed::quantize_per_token"), 3);
            opd_tensor *const after = run(made, module, x);
            CHECK(near(after, before, 0.1 * opd_item_f64(opd_max(opd_abs(before)))));
            /* gradients reach the weights that stay */
            opd_backward(opd_sum(after));
            CHECK(opd_tensor_grad(opd_module_get(module, "embedding")) != NULL);
            CHECK(opd_tensor_grad(opd_module_get(module, "b")) != NULL);
        }
        opd_graph_free(made);
        options = reported();
        options.layers = "b";
        CHECK(opd_quantize_graph(graph, module, "int8", &options) == NULL);      /* the graph is that of the floats */
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_graph: the weight 'b' has a gradient");
        opd_graph_free(graph);
        opd_module_free(module);
    }
}
/* Two layers with one input, whose memory is written between them, through a view or through the base of a view. */
static int written_between(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const weight = (opd_tensor *)user, *const base = opd_mul_Scalar(in[0], opd_value_int(2));
    opd_tensor *const x = n == 1 ? opd_view(base, OPD_INTS(-1, 32)) : NULL, *const first = opd_linear(x, weight, NULL);
    opd_mul_Scalar_(opd_ok() ? opd_narrow(base, 1, 0, 16) : NULL, opd_value_int(-1));
    opd_tensor *const second = opd_linear(x, weight, NULL);
    return (out[0] = opd_sub(first, second)) ? 1 : -1;
}
TEST(inputs_that_are_written_between_layers_are_rounded_again) {
    static const char *const hows[] = {"int8", "int8, dynamic", "int8, static, minmax"};
    for (int i = 0; i < 3; i++) {
        OPD_SCOPED;
        opd_tensor *const weight = opd_randn(OPD_INTS(24, 32), OPD_FLOAT32), *const x = opd_randn(OPD_INTS(5, 32), OPD_FLOAT32);
        opd_tensor *before, *after = NULL;
        const opd_value batch = opd_value_tensor(x), *const batches = &batch;
        opd_quantize_options options;
        memset(&options, 0, sizeof options);
        options.batches = &batches;
        options.nbatches = options.ninputs = 1;
        CHECK_INT(written_between(weight, &x, 1, &before), 1);
        opd_graph *graph = opd_graph_trace(written_between, weight, &x, 1, NULL);
        opd_graph *made = opd_quantize_graph(graph, NULL, hows[i], &options);
        CHECK_OR_RETURN(made != NULL);
        CHECK_INT(opd_graph_run(made, &x, 1, &after, 1), 1);
        CHECK(after && near(after, before, 0.05 * opd_item_f64(opd_max(opd_abs(before)))));
        opd_graph_free(graph);
        opd_graph_free(made);
    }
    CHECK_OK();
}
TEST(a_tied_weight_stays_tied_in_a_module) {
    OPD_SCOPE {
        opd_tensor *const w = opd_randn(OPD_INTS(4, 64), OPD_FLOAT32), *const x = opd_randn(OPD_INTS(2, 64), OPD_FLOAT32);
        opd_module *module = module_of(w, opd_randn(OPD_INTS(64), OPD_FLOAT32));
        CHECK_INT(opd_module_add(module, "tied", w, OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_add(module, "other.weight", opd_randn(OPD_INTS(8, 32), OPD_FLOAT16), OPD_MODULE_PARAMETER), 0);
        CHECK_INT(opd_module_add(module, "doubles", opd_randn(OPD_INTS(8, 32), OPD_FLOAT64), OPD_MODULE_PARAMETER), 0);
        opd_tensor *const before = opd_linear(x, w, NULL);
        opd_quantize_options options = reported();
        CHECK_INT(opd_quantize_module(module, "q8_0", &options), 3);
        CHECK_INT(nlines, 4);
        CHECK_STR(forms[0], opd_dtype_name(OPD_Q8_0));
        CHECK(lines[3].kept && lines[0].bytes_after == 4 * 2 * 34 && lines[0].weight_max > 0);
        CHECK(opd_module_get(module, "tied") == opd_module_get(module, "weight"));
        CHECK_INT(opd_dtype(opd_module_get(module, "tied")), OPD_Q8_0);
        CHECK_INT(opd_dtype(opd_module_get(module, "other.weight")), OPD_Q8_0);
        CHECK(near(opd_linear(x, opd_module_get(module, "tied"), NULL), before, 0.3));
        CHECK_INT(opd_module_save(module, temporary(".gguf")), 0);
        opd_module *again = opd_module_open(temporary(".gguf"), NULL);
        CHECK(again && opd_module_count(again) == 4 && opd_dtype(opd_module_get(again, "weight")) == OPD_Q8_0);
        CHECK(near(opd_dequantize(opd_module_get(again, "weight")), opd_dequantize(opd_module_get(module, "tied")), 0));
        opd_module_free(again);
        (void)remove(temporary(".gguf"));
        CHECK_INT(opd_quantize_module(module, "q8_0", NULL), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_module: there is no matrix of floats");
        opd_module_free(module);
    }
}
TEST(what_is_refused_in_a_module) {
    OPD_SCOPE {
        opd_tensor *const w = opd_randn(OPD_INTS(4, 48), OPD_FLOAT32), *const good = opd_randn(OPD_INTS(4, 32), OPD_FLOAT32);
        opd_module *module = module_of(good, w);
        CHECK_INT(opd_quantize_module(module, "q4_0", NULL), -1);
        CHECK(strstr(opd_error_message(), "[opd_quantize_module: the weight 'bias']"));
        opd_error_clear();
        CHECK(opd_module_get(module, "weight") == good);             /* nothing has changed */
        CHECK_INT(opd_quantize_module(module, "int8", NULL), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_module: \"int8\" needs a graph");
        CHECK_INT(opd_quantize_module(NULL, "q8_0", NULL), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_module: the module is NULL");
        opd_quantize_options options = reported();
        options.layers = "nothing*";
        CHECK_INT(opd_quantize_module(module, "q8_0", &options), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_module: there is no matrix of floats that is selected by nothing*");
        (void)opd_fill_(opd_select(opd_select(good, 0, 1), 0, 2), OPD_V(NAN));
        CHECK_INT(opd_quantize_module(module, "q8_0", NULL), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_module: the weight 'weight' has a number that is not finite");
        opd_module_free(module);
    }
}
TEST(texts_that_are_not_understood) {
    static const char *const wrong[][2] = {
        {"int7", "opd_quantize_graph: 'int7' in \"int7\" is not understood"}, {"", "'' in \"\" is not understood"},
        {"int8, group 1", "'group 1' in"}, {"int8, group 8x", "'group 8x' in"}, {"int8, percentile 101", "'percentile 101'"},
        {"int8, something", "'something' in"}, {"int8,, dynamic", "'' in \"int8,, dynamic\""},
        {"q8_0, group 32", "blocks have no groups"}, {"int4, dynamic, static", "inputs are either dynamic or static"},
        {"int8, histogram", "ranges of inputs are found only for static"}, {"float32", "'float32' in"}, {NULL, "the text that says how is NULL"}};
    OPD_SCOPE {
        opd_tensor *const x = opd_randn(OPD_INTS(2, 4), OPD_FLOAT32);
        opd_module *module = module_of(opd_randn(OPD_INTS(4, 4), OPD_FLOAT32), opd_randn(OPD_INTS(4), OPD_FLOAT32));
        opd_graph *graph = record(module, linear, x);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            CHECK(opd_quantize_graph(graph, module, wrong[i][0], NULL) == NULL);
            CHECK(opd_error_code() == OPD_ERROR_ARGUMENT && strstr(opd_error_message(), wrong[i][1]));
            opd_error_clear();
        }
        opd_graph_free(graph);
        opd_module_free(module);
    }
}
TEST(what_is_refused_in_a_graph) {
    OPD_SCOPE {
        opd_tensor *const x = opd_randn(OPD_INTS(2, 6), OPD_FLOAT32), *const nan = opd_full(OPD_INTS(2, 6), OPD_V(NAN), OPD_FLOAT32);
        opd_module *module = module_of(opd_randn(OPD_INTS(4, 6), OPD_FLOAT32), opd_randn(OPD_INTS(4), OPD_FLOAT32));
        opd_graph *graph = record(module, linear, x);
        CHECK(opd_quantize_graph(graph, module, "int8, group 4", NULL) == NULL);
        CHECK_ERROR(OPD_ERROR_SHAPE, "opd_quantize_graph: the weight 'weight' has rows of 6 numbers, which groups of 4 do not divide");
        CHECK(opd_quantize_graph(graph, module, "q8_0", NULL) == NULL);
        CHECK_ERROR(OPD_ERROR_SHAPE, "opd_quantize_graph: the weight 'weight' has rows of 6 numbers, which blocks of 32 do not divide");
        CHECK(opd_quantize_graph(graph, module, "int8, static", NULL) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_graph: static quantisation needs batches");
        opd_quantize_options options = reported();
        opd_value value = opd_value_tensor(nan);
        const opd_value *const batches[1] = {&value};
        options.batches = batches;
        options.nbatches = 1;
        options.ninputs = 1;
        CHECK(opd_quantize_graph(graph, module, "int8, static, histogram", &options) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_graph: the layer of 'weight': an input has a number that is not finite");
        options.ninputs = 2;
        CHECK(opd_quantize_graph(graph, module, "int8, static", &options) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_graph: the batches have 2 inputs, but the graph has 1 besides the module's tensors");
        options.ninputs = 1;
        options.batches = NULL;
        CHECK(opd_quantize_graph(graph, module, "int8", &options) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_graph: the batches are NULL");
        CHECK(opd_quantize_graph(NULL, module, "int8", NULL) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_quantize_graph: the graph is NULL");
        CHECK_INT(opd_dtype(opd_module_get(module, "weight")), OPD_FLOAT32);
        CHECK_INT(nlines, 0);
        opd_graph_free(graph);
        opd_module_free(module);
    }
}
/* Blocks, half floats, and weights that are constants of the graph. */
static opd_tensor *its_weight;
static int constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    return (out[0] = opd_linear(opd_mm(in[0], opd_t(its_weight)), its_weight, NULL)) ? 1 : -1;
}
TEST(weights_that_are_constants) {
    static const char *const hows[] = {"int8", "int4, group 16, dynamic", "q8_0"};
    for (int i = 0; i < 3; i++) {
        for (int half = 0; half < 2; half++) {
            OPD_SCOPE {
                const opd_scalar_type dtype = half ? OPD_BFLOAT16 : OPD_FLOAT32;
                its_weight = opd_to_dtype(opd_div_Scalar(opd_randn(OPD_INTS(32, 32), OPD_FLOAT32), OPD_V(5)), dtype);
                opd_tensor *x = opd_to_dtype(opd_randn(OPD_INTS(3, 32), OPD_FLOAT32), dtype), *in[1] = {x}, *want[1], *got[1];
                opd_graph *graph = opd_graph_trace(constant, NULL, in, 1, NULL);
                opd_quantize_options options = reported();
                opd_graph *made = opd_quantize_graph(graph, NULL, hows[i], &options);
                CHECK(made != NULL && nlines == 1 && !lines[0].kept && lines[0].uses == 2);
                if (!made) { printf("%s: %s\n", hows[i], opd_error_message()); opd_error_clear(); }
                CHECK_INT(opd_graph_run(graph, in, 1, want, 1), 1);
                CHECK_INT(opd_graph_run(made, in, 1, got, 1), 1);
                CHECK_INT(opd_dtype(got[0]), dtype);
                CHECK(near(got[0], want[0], i == 1 ? 0.8 : 0.1));
                if (!half && i < 2) {
                    CHECK_INT(opd_program_save(made, NULL, temporary(".pt2")), 0);
                    opd_program *program = opd_program_load(temporary(".pt2"), NULL);
                    opd_value value = opd_value_tensor(x), result;
                    CHECK(program && opd_program_run(program, &value, 1, &result, 1) == 1);
                    CHECK(program && near(result.u.t, got[0], 1e-5));       /* the program fuses its layers */
                    opd_program_free(program);
                    (void)remove(temporary(".pt2"));
                }
                opd_graph_free(graph);
                opd_graph_free(made);
            }
        }
    }
}

//-- programs ----------------------------------------------------------------------------------------------------------

static void quantize_program(const char *name, const char *how, int weights, double off) {
    opd_program *program = opd_program_load(golden(name, ".pt2"), NULL), *again = NULL;
    const char *const core = strstr(name, ".core");
    char arrays[40];
    (void)snprintf(arrays, sizeof arrays, "%.*s", core ? (int)(core - name) : 30, name);
    opd_tensor_file *file = opd_tensor_file_open(golden(arrays, ".npz"));
    opd_value in[16], before[16], after[16], saved[16];
    const opd_value *const batches[2] = {in, in};
    const int ninputs = fill(program, file, in), count = opd_program_noutputs(program);
    opd_quantize_options options = reported();
    options.batches = batches;
    options.nbatches = 2;
    options.ninputs = ninputs;
    OPD_NO_GRAD {
        CHECK_INT(opd_program_run(program, in, ninputs, before, 16), count);
        CHECK_INT(opd_quantize_program(program, how, &options), weights);
        CHECK(nlines > weights && lines[nlines - 1].op == NULL);
        CHECK_INT(opd_program_run(program, in, ninputs, after, 16), count);
        CHECK_INT(opd_program_save(opd_program_graph(program), opd_program_module(program), temporary(".pt2")), 0);
        again = opd_program_load(temporary(".pt2"), NULL);
        CHECK(again && opd_program_ninputs(again) == ninputs);
        if (again) { CHECK_INT(opd_program_run(again, in, ninputs, saved, 16), count); }
        CHECK_INT(opd_graph_count(opd_program_graph(again), "opdispatch::quantized_linear"), 0);    /* PyTorch lacks it */
        CHECK_INT(opd_graph_count(opd_program_graph(again), "opdispatch::quantized_convolution"), 0);
        if (!opd_ok()) { printf("%s, %s: %s\n", name, how, opd_error_message()); opd_error_clear(); }
        else {
            for (int i = 0; i < count; i++) {
                const double most = opd_item_f64(opd_max(opd_abs(before[i].u.t)));
                CHECK(near(saved[i].u.t, after[i].u.t, 0));
                CHECK(near(after[i].u.t, before[i].u.t, off * most));
            }
            CHECK(!near(after[0].u.t, before[0].u.t, 0));
            char type[2][200];
            for (int i = 0; i < ninputs; i++) {       /* dynamic sizes and names are kept */
                CHECK_STR(opd_program_input_name(again, i), opd_program_input_name(program, i));
                (void)opd_program_input_type(program, i, type[0], sizeof type[0]);
                (void)opd_program_input_type(again, i, type[1], sizeof type[1]);
                CHECK_STR(type[1], type[0]);
            }
        }
    }
    opd_program_free(again);
    opd_program_free(program);
    opd_tensor_file_close(file);
    (void)remove(temporary(".pt2"));
}
TEST(programs_are_quantised_and_saved) {
    static const char *const hows[] = {"int8", "int8, dynamic", "int8, static, histogram", "int4, asymmetric", "int8, asymmetric, static, percentile 99.9"};
    for (int i = 0; i < 5; i++) {
        const double off = i == 3 ? 0.6 : 0.06;
        OPD_SCOPE { quantize_program("mlp", hows[i], 2, off); }
        OPD_SCOPE { quantize_program("conv", hows[i], i == 3 ? 3 : 4, off); }          /* rows of 5 do not fit 4 bits */
        OPD_SCOPE { quantize_program("tokens", hows[i], 5, off); }
        OPD_SCOPE { quantize_program("mlp.core", hows[i], 2, off); }
    }
    OPD_SCOPE { quantize_program("tokens", "int4, group 4, dynamic", 5, 0.6); }
}
static int attempt(void *arg) {
    opd_tensor *const x = opd_ones(OPD_INTS(2, 8), OPD_FLOAT32);
    opd_module *const module = opd_module_new();
    int rc = -1;
    opd_tensor *const w = x ? opd_linspace(OPD_V(-1), OPD_V(1), 64, OPD_FLOAT32) : NULL;
    if (module && w && opd_module_add(module, "weight", opd_reshape(w, OPD_INTS(8, 8)), OPD_MODULE_PARAMETER) == 0 &&
        opd_module_add(module, "bias", opd_zeros(OPD_INTS(8), OPD_FLOAT32), OPD_MODULE_PARAMETER) == 0) {
        opd_tensor *in[3] = {opd_module_at(module, 0), opd_module_at(module, 1), x};
        opd_graph *const graph = opd_graph_trace(linear, NULL, in, 3, NULL);
        const opd_value value = opd_value_tensor(x);
        const opd_value *const batches[1] = {&value};
        opd_quantize_options options = reported();
        options.batches = batches;
        options.nbatches = options.ninputs = 1;
        opd_graph *const made = graph ? opd_quantize_graph(graph, module, (const char *)arg, &options) : NULL;
        if (!made) { CHECK_INT(opd_dtype(in[0]), OPD_FLOAT32); }
        rc = made ? 0 : -1;
        opd_graph_free(made);
        opd_graph_free(graph);
    }
    opd_module_free(module);
    return rc;
}
static int both_layers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    return (out[0] = opd_linear(opd_linear(in[2], in[0], NULL), in[1], NULL)) ? 1 : -1;
}
TEST(weights_that_share_memory) {
    OPD_SCOPE {
        opd_tensor *w = opd_randn(OPD_INTS(8, 8), OPD_FLOAT32), *x = opd_randn(OPD_INTS(4, 8), OPD_FLOAT32), *made[1];
        opd_module *module = module_of(w, opd_detach(w));
        opd_graph *graph = record(module, both_layers, x);
        const opd_value value = opd_value_tensor(x), *const batches[1] = {&value};
        opd_quantize_options options = reported();
        options.batches = batches;
        options.nbatches = options.ninputs = 1;
        opd_graph *quantized = opd_quantize_graph(graph, module, "int8, static, histogram", &options);
        CHECK(quantized && nlines == 3 && !lines[0].kept && !lines[1].kept);
        opd_tensor *in[3] = {opd_module_at(module, 0), opd_module_at(module, 1), x};
        CHECK_INT(opd_graph_run(quantized, in, 3, made, 1), 1);
        CHECK(near(made[0], opd_linear(opd_linear(x, w, NULL), w, NULL), 1));
        CHECK_OK();
        opd_graph_free(quantized);
        opd_graph_free(graph);
        opd_module_free(module);
    }
}
/* Quantises a program whose weight is a parameter.  If that fails, the program and its weight stay as they are. */
static int attempt_program(void *arg) {
    opd_program *const program = opd_program_load((const char *)arg, NULL);
    opd_tensor *const x = program ? opd_ones(OPD_INTS(2, 8), OPD_FLOAT32) : NULL;
    const opd_value value = x ? opd_value_tensor(x) : opd_value_none();
    opd_value out = opd_value_none();
    int rc = -1;
    if (x && (rc = opd_quantize_program(program, "int8", NULL)) < 0) {
        const opd_code code = opd_error_code();
        char text[300];
        (void)snprintf(text, sizeof text, "%s", opd_error_message());
        opd_error_clear();
        CHECK_INT(opd_dtype(opd_module_at(opd_program_module(program), 0)), OPD_FLOAT32);
        CHECK(opd_graph_count(opd_program_graph(program), "quantized_decomposed::dequantize_per_channel") == 0);
        (void)opd_fail(code, "%s", text);
    }
    if (rc >= 0) { rc = opd_program_run(program, &value, 1, &out, 1); }
    opd_program_free(program);
    return rc;
}
static void failing_line(void *user, const opd_quantized *its) { (void)its, (void)opd_fail(OPD_ERROR_ARGUMENT, "%s", (const char *)user); }
TEST(what_fails_leaves_programs_and_modules_as_they_were) {
    static char path[100];
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(2, 8), OPD_FLOAT32);
        opd_module *module = module_of(opd_randn(OPD_INTS(8, 8), OPD_FLOAT32), opd_zeros(OPD_INTS(8), OPD_FLOAT32));
        opd_graph *graph = record(module, linear, x);
        static char text[] = "this report fails";
        opd_quantize_options options = reported();
        options.report = failing_line;
        options.user = text;
        CHECK(opd_quantize_graph(graph, module, "int8", &options) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, text);
        CHECK_INT(opd_quantize_module(module, "weight_f16", &options), -1);
        opd_error_clear();
        CHECK_INT(opd_dtype(opd_module_at(module, 0)), OPD_FLOAT32);
        (void)snprintf(path, sizeof path, "%s", temporary(".pt2"));
        CHECK_INT(opd_program_save(graph, module, path), 0);
        CHECK_OK();
        opd_graph_free(graph);
        opd_module_free(module);
        /* A quantised program that is loaded inside of a fake block has its numbers. */
        opd_program *program = opd_program_load(path, NULL), *again = NULL;
        opd_value value = opd_value_tensor(x), out[2];
        const opd_value *const batches[1] = {&value};
        options = reported();
        options.batches = batches;
        options.nbatches = options.ninputs = 1;
        CHECK_INT(opd_quantize_program(program, "int8, static", &options), 1);
        CHECK_INT(opd_program_run(program, &value, 1, out, 1), 1);
        CHECK_INT(opd_program_save(opd_program_graph(program), opd_program_module(program), temporary(".2.pt2")), 0);
        OPD_FAKE_MODE { again = opd_program_load(temporary(".2.pt2"), NULL); }
        CHECK_INT(opd_program_run(again, &value, 1, out + 1, 1), 1);
        CHECK(near(out[1].u.t, out[0].u.t, 0));
        (void)remove(temporary(".2.pt2"));
        opd_program_free(again);
        opd_program_free(program);
    }
    CHECK(check_allocations(attempt_program, path, "programs", 2000, false) > 100);
    (void)remove(path);
}
TEST(any_allocation_may_fail) {
    static char hows[2][50] = {"int4, group 4, static, histogram", "int8, dynamic"};
    for (int i = 0; i < 2; i++) { CHECK(check_allocations(attempt, hows[i], hows[i], 150, false) > 100); }
}
CHECK_MAIN()
