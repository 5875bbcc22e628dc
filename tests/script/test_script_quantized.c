/* Archives with quantized layers: golden/scripts/quantized_*.pt and quantized_layers.npz, made by
   golden/make_script_quantized.py.  Results are compared in units of PyTorch's scales.  Errors name the operator.
   Each allocation fails once.  C ONLY: arrays of values with initialisers. */
#include "../../opdispatch.h"
#include "../check.h"

static const char *path_of(const char *name, const char *end) {
    char path[600];
    (void)snprintf(path, sizeof path, "golden/scripts/quantized_%s.%s", name, end);
    return check_path(path);
}
static opd_script *load(const char *name) {
    return opd_script_load(path_of(name, "pt"));
}
static opd_tensor_file *open_layers(void) {
    return opd_tensor_file_open(path_of("layers", "npz"));
}
static opd_tensor *tensor_of(const opd_tensor_file *file, const char *name, const char *kind, int i) {
    char key[64];
    (void)snprintf(key, sizeof key, "%s.%s%d", name, kind, i);
    return opd_tensor_file_find(file, key) < 0 ? NULL : opd_tensor_file_get(file, key);
}
/* An output is what PyTorch gives: to a step, few elements at all, or, where it has no steps, to 1e-4 of the largest
   number. */
static void check_output(const opd_tensor_file *file, const char *name, int i, opd_tensor *got) {
    opd_tensor *want = tensor_of(file, name, "out", i), *step = tensor_of(file, name, "step", i);
    CHECK_OR_RETURN(want && got && opd_numel(got) == opd_numel(want) && opd_dtype(got) == OPD_FLOAT32);
    opd_tensor *off = opd_abs(opd_sub(got, want));
    const double most = opd_item_f64(opd_max(off)), size = step ? opd_item_f64(step) : 0;
    const double bound = size > 0 ? size * 1.001 : 1e-4 * opd_item_f64(opd_max(opd_abs(want)));
    const double others = opd_item_f64(opd_sum(opd_gt_Scalar(off, opd_value_double(bound / 100))));
    CHECK(most <= bound && (size == 0 || others <= 0.2 * (double)opd_numel(want)));
    if (most > bound || others > 0.2 * (double)opd_numel(want)) {
        printf("%s, output %d: %.9g off, %.9g are allowed, %g of them\n", name, i, most, bound, others);
    }
}
static void check_archive(const char *name, int inputs, int outputs) {
    OPD_SCOPED;
    opd_tensor_file *file = open_layers();
    opd_script *script = load(name);
    opd_value args[4], result = opd_value_none();
    CHECK_OR_RETURN(file && script);
    for (int i = 0; i < inputs; i++) { args[i] = opd_value_tensor(tensor_of(file, name, "in", i)); }
    CHECK_INT(opd_script_run(script, NULL, args, inputs, &result), 0);
    CHECK_OK();
    if (opd_value_cell(result) == OPD_CELL_TUPLE) {
        CHECK_INT(opd_list_count(result), outputs);
        for (int i = 0; i < outputs; i++) { check_output(file, name, i, opd_list_at(result, i).u.t); }
    }
    CHECK(opd_value_cell(result) == OPD_CELL_TUPLE);
    CHECK_OK();
    opd_script_free(script);
    opd_tensor_file_close(file);
}
TEST(layers_of_scripts) { check_archive("script", 1, 2); }
TEST(layers_of_traces) { check_archive("trace", 1, 2); }
TEST(layers_that_are_constants_of_frozen_archives) { check_archive("frozen", 1, 2); }
TEST(operators_round_as_those_of_pytorch) { check_archive("operators", 3, 20); }
/* Pooling, means, upsampling and activations round to the steps of their input, a half to the even one of all or of
   those from zero, as the channels lie; or to steps of their own. */
TEST(operators_around_layers_round) {
    OPD_SCOPED;
    opd_tensor_file *file = opd_tensor_file_open(path_of("around", "npz"));
    opd_script *script = load("around");
    opd_value x, result = opd_value_none();
    CHECK_OR_RETURN(file && script);
    x = opd_value_tensor(tensor_of(file, "around", "in", 0));
    CHECK_INT(opd_script_run(script, NULL, &x, 1, &result), 0);
    CHECK_OK();
    CHECK_INT(opd_list_count(result), 15);
    for (int i = 0; i < (int)opd_list_count(result); i++) {
        check_output(file, "around", i, opd_list_at(result, i).u.t);
    }
    opd_script_free(script);
    opd_tensor_file_close(file);
}
TEST(rows_of_bytes) { check_archive("rows", 2, 2); }
TEST(recurrent_layers_and_cells_round_their_inputs) { check_archive("recurrent", 1, 8); }
TEST(recurrent_layers_with_weights_of_16_bits) { check_archive("half", 1, 8); }

/* Runs f of a source on [[-1, 2]] and checks the error, or (want NULL) that there is none. */
static void check_body(const char *body, const char *want) {
    OPD_SCOPED;
    char source[600];
    const float numbers[] = {-1, 2};
    (void)snprintf(source, sizeof source, "def f(x: Tensor):\n    q = torch.quantize_per_tensor(x, 0.1, 10, 13)\n"
                   "    return %s\n", body);
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(1, 2), OPD_FLOAT32)), result;
    opd_script *script = opd_script_compile(source, NULL);
    const int rc = script ? opd_script_run(script, "f", &x, 1, &result) : -1;
    if (want) {
        CHECK_INT(rc, -1);
        if (!strstr(opd_error_message(), want)) { printf("%s: %s\n", body, opd_error_message()); }
        CHECK(strstr(opd_error_message(), want) != NULL);
        opd_error_clear();
    } else {
        CHECK_INT(rc, 0);
        CHECK_OK();
    }
    opd_script_free(script);
}
/* What dequantize gives can be written to and viewed: it has memory of its own, row by row. */
TEST(dequantized_tensors_have_their_own_memory) {
    static const char source[] =
        "def f(x: Tensor):\n    q = torch.quantize_per_tensor(x, 0.1, 10, 13)\n    d = q.dequantize()\n"
        "    e = torch.dequantize([q])\n    d.add_(1)\n    e[0].add_(1)\n"
        "    return q.dequantize() + q.t().dequantize().view(-1)\n";
    OPD_SCOPED;
    const float numbers[] = {-1, 2};
    opd_script *script = opd_script_compile(source, NULL);
    opd_value x = opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(1, 2), OPD_FLOAT32)), result;
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", &x, 1, &result), 0);
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_sum(result.u.t)), 2, 1e-6);
    opd_script_free(script);
}
/* Each `if` has two branches to look into for the steps of what follows: in a row they are not multiplied. */
TEST(many_ifs_in_a_row) {
    OPD_SCOPED;
    char source[8000];
    size_t at = (size_t)snprintf(source, sizeof source, "def f(x: Tensor, c: bool):\n"
                                 "    q = torch.quantize_per_tensor(x, 0.1, 10, 13)\n");
    for (int i = 0; i < 64; i++) {
        at += (size_t)snprintf(source + at, sizeof source - at, "    if c:\n        q = torch.relu(q)\n    else:\n"
                               "        q = torch.flatten(q)\n");
    }
    (void)snprintf(source + at, sizeof source - at, "    return torch.mean(q).dequantize()\n");
    const float numbers[] = {-1, 2};
    opd_script *script = opd_script_compile(source, NULL);
    opd_value in[2] = {opd_value_tensor(opd_tensor_from(numbers, OPD_INTS(1, 2), OPD_FLOAT32)), opd_value_bool(true)}, result;
    CHECK_OR_RETURN(script != NULL);
    CHECK_INT(opd_script_run(script, "f", in, 2, &result), 0);
    CHECK_NEAR(opd_item_f64(result.u.t), 1, 1e-6);
    opd_script_free(script);
}

TEST(mistakes_name_the_operator) {
    check_body("q.dequantize()", NULL);
    check_body("torch.quantize_per_tensor(x, 0.1, 10, 12)", "dtype 12 is not a supported quantized dtype, which are quint8");
    check_body("torch.quantize_per_tensor(x.to(torch.float64), 0.1, 10, 13)", "Quantize only works on float32 Tensor");
    check_body("torch.quantize_per_tensor(x, 0.1, 300, 13)", "zero");
    check_body("torch.quantize_per_channel(x, x, x, 1, 14)", "dtype 14 is not a supported quantized dtype");
    check_body("q.int_repr()", "aten::int_repr is for quantized tensors");
    check_body("torch.ops.quantized.threshold(q, 0.1, 0.2)", "quantized::threshold");
    check_body("torch.ops.quantized.cat([q], 5, 0.1, 10)", "ut of range");
    check_body("torch.ops.quantized.linear(q, 3, 0.1, 10)", "quantized::linear");
    check_body("torch.ops.quantized.linear(q, torch.ops.quantized.conv2d_prepack(x[None, None], None, [1, 1], [0, 0], "
                 "[1, 1], 1), 0.1, 10)", "Conv2dPackedParamsBase, but must be packed weights for this function");
    check_body("torch.ops.quantized.conv2d(q, torch.ops.quantized.linear_prepack(x, None), 0.1, 10)",
                 "LinearPackedParamsBase, but must be packed weights for this function");
    check_body("torch.ops.quantized.conv2d(q, torch.ops.quantized.conv2d_prepack(x[None, None], None, [1, 1], [0, 0], "
                 "[1, 1], 1), 0.1, 10)", "the input must have 4 dimensions");
    check_body("torch.ops.quantized.conv2d(q, torch.ops.quantized.conv2d_prepack(x[None, None], None, [1], [0, 0], "
                 "[1, 1], 1), 0.1, 10)", "the packed weights are incomplete");
    check_body("torch.ops.quantized.linear(q, torch.ops.quantized.linear_prepack(x[0], None), 0.1, 10)", "no matrix");
    check_body("torch.ops.quantized.linear(q, torch.ops.quantized.linear_prepack(x, None), 0.1, 10)", NULL);
    check_body("torch.ops.quantized.conv3d_relu(x[None, None, None], torch.ops.quantized.conv3d_prepack("
                 "x[None, None, None], None, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1), 0.1, 10)", NULL);
    check_body("torch.ops.quantized.linear_leaky_relu(q, torch.ops.quantized.linear_prepack(x, None), 0.1, 10, 0.2)",
                 NULL);
}
/* Each byte of an archive's pickles changed: an error or a result, never a crash. */
static void change(uint8_t *bytes, size_t size, const char *entry, const opd_value *x) {
    size_t at = 0;
    while (at + strlen(entry) < size && memcmp(bytes + at, entry, strlen(entry)) != 0) { at++; }
    const size_t end = at + 4500 < size ? at + 4500 : size;
    for (at += strlen(entry); at < end; at += 3) {
        OPD_SCOPED;
        opd_value result;
        const uint8_t was = bytes[at];
        bytes[at] = (uint8_t)(was ^ 1 << at % 8);
        opd_script *script = opd_script_from_bytes(bytes, size);
        if (script) { (void)opd_script_run(script, NULL, x, 1, &result); }
        opd_script_free(script);
        opd_error_clear();
        bytes[at] = was;
    }
}
static size_t bytes_of(const char *name, uint8_t *bytes, size_t cap) {
    FILE *file = fopen(path_of(name, "pt"), "rb");
    const size_t size = file ? fread(bytes, 1, cap, file) : 0;
    if (file) { (void)fclose(file); }
    return size;
}
TEST(damage_is_told) {
    OPD_SCOPED;
    static uint8_t bytes[60000];
    opd_tensor_file *file = open_layers();
    CHECK_OR_RETURN(file != NULL);
    opd_value x = opd_value_tensor(tensor_of(file, "script", "in", 0));
    change(bytes, bytes_of("script", bytes, sizeof bytes), "data.pkl", &x);
    change(bytes, bytes_of("frozen", bytes, sizeof bytes), "constants.pkl", &x);
    x = opd_value_tensor(tensor_of(file, "recurrent", "in", 0));
    change(bytes, bytes_of("recurrent", bytes, sizeof bytes), "data.pkl", &x);
    CHECK_OK();
    opd_tensor_file_close(file);
}
/* Loads an archive and runs it: user is its name. */
static int load_and_run(void *user) {
    const char *name = (const char *)user;
    opd_value args[2], result;
    int rc = -1;
    OPD_SCOPE {
        opd_tensor_file *file = open_layers();
        opd_script *script = file ? load(name) : NULL;
        const int count = strcmp(name, "rows") == 0 ? 2 : 1;
        for (int i = 0; script && i < count; i++) { args[i] = opd_value_tensor(tensor_of(file, name, "in", i)); }
        if (script && opd_ok()) { rc = opd_script_run(script, NULL, args, count, &result); }
        opd_script_free(script);
        opd_tensor_file_close(file);
    }
    return rc;
}
TEST(every_allocation_may_fail) {
    static const char *const names[] = {"script", "frozen", "rows", "recurrent"};
    for (int i = 0; i < 4; i++) {
        CHECK(check_allocations_at(load_and_run, (void *)(uintptr_t)names[i], names[i], 250, false, __FILE__,
                                   __LINE__) > 1);
    }
}

CHECK_MAIN()
