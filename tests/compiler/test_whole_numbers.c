/* Compiled graphs of quantised numbers, of sums and products of integers, and of computed indices give the same results
   as uncompiled ones. */
#include "../check.h"

#define QD "torch.ops.quantized_decomposed."
#define AO "torch.ops.torchao."
#define Q8 QD "quantize_per_tensor(x, 0.02, 3, -128, 127, torch.int8)"
#define W8 "(torch.arange(2048).view(64, 32) * 29 % 251 - 125).to(torch.int8)"
#define PACKED "torch.ops.onednn.qlinear_prepack(w.t(), None), torch.arange(32) * 0.001 + 0.001, torch.zeros([32])"
#define LOWERED(out) "torch.ops.onednn.qlinear_pointwise(" Q8 ", 0.02, 3, " PACKED ", torch.arange(32) * 0.1, " out ")"
#define PLACES "(x * 9).long().abs().clamp(0, 63)"
#define ROWS "torch.arange(5) * 0.01 + 0.01, torch.arange(5)"

/* Expressions of x [5,64] of float32.  w is an int8 matrix [64,32]. */
static const char *const expressions[] = {
    "torch._int_mm(" Q8 ", w).float()", "torch._int_mm(" Q8 ", w.t().contiguous().t()).float()",
    "torch.mm((x * 20).to(torch.int32), w.to(torch.int32))", "torch.mm((x * 20).to(torch.int64), w.to(torch.int64))",
    "torch.mm((x * 20).to(torch.int16).to(torch.int32), w.t().contiguous().t().to(torch.int32))",
    "torch.mm((x * 20).to(torch.int32).to(torch.int64), w.t().contiguous().t().to(torch.int64))",
    "torch.mm((x * 20).to(torch.int8), w)", "((x * 20).to(torch.int32) * w[:, :5].t()).sum(1)",
    "((x * 20).to(torch.int8) * (x * 9).to(torch.int8).long()).sum(1)", "(x * 20).to(torch.int32).amax(1)",
    "(x * 20).to(torch.int8).sum(1)", "((x * 20).to(torch.uint8).int() * w[:, 3].int()).sum(1)",
    QD "dequantize_per_tensor(" Q8 ", 0.02, 3, -128, 127, torch.int8).mm(w.float())",
    QD "dequantize_per_channel(w, torch.arange(32) * 0.01 + 0.01, torch.arange(32), 1, -128, 127, torch.int8).t().mm(x.t())",
    QD "quantize_per_channel(x, " ROWS ", 0, -128, 127, torch.int8)",
    QD "fake_quant_per_channel(x, " ROWS ", 0, -128, 127)",
    QD "choose_qparams(x, -128, 127, 1e-5, torch.int8)[0]", QD "choose_qparams(x, -128, 127, 1e-5, torch.int8)[1]",
    QD "choose_qparams_per_token_asymmetric(x, torch.int8)[1]", QD "choose_qparams_per_token(x, torch.int8)[0]",
    QD "dequantize_per_channel_group(w.t(), torch.full([32, 4], 0.25), None, -8, 7, torch.int8, 16, torch.float32)",
    AO "choose_qparams_affine(x, 'ASYMMETRIC', [1, 16], torch.int8, -8, 7)[1]",
    AO "choose_qparams_affine(x, 'SYMMETRIC', [1, 64], torch.int8)[0]",
    AO "quantize_affine(x, [1, 64], " ROWS ", torch.int8)", AO "dequantize_affine(w, [64, 1], torch.arange(32) * 0.1, None, torch.int8)",
    LOWERED("0.05, 7, torch.uint8, 'relu', [], ''"), LOWERED("1.0, 0, torch.bfloat16, 'gelu', [], 'tanh'"),
    LOWERED("1.0, 0, torch.float32, 'none', [], ''"), "torch.ops.onednn.qlinear_pointwise(" Q8 ", 0.02, 3, " PACKED
    ", x[:, :32], None, 1.0, 0, torch.float32, 1.0, 0, 'add', 1.0, 'relu', [], '').add(100)",
    "torch.ops.onednn.qlinear_pointwise(" Q8 ", 0.02, 3, " PACKED ", w[:5], None, 0.05, 0, torch.int8, 0.3, 4, 'sum', 1.0, 'relu', [], '')",
    "torch._weight_int8pack_mm(x, w.t().contiguous(), torch.arange(32) * 0.1)",
    "torch.fake_quantize_per_tensor_affine(x, 0.02, 3, -128, 127)",
    "torch.scatter_add(x, 1, " PLACES ", x)", "torch.scatter_add(torch.zeros_like(x), 1, " PLACES ", x)",
    "torch.index_add(x, 0, " PLACES "[:, 3] % 5, x)", "torch.gather(x, 1, " PLACES ")",
    "torch.scatter_add(x, 1, " PLACES ", torch.gather(x, 1, " PLACES "))",
    "torch.index_put(x, [" PLACES "[:, 3] % 5], x, True)",
    "torch.nn.functional.multilabel_margin_loss(x, " PLACES ")"
};

static opd_tensor *numbers(int round) {
    opd_tensor *const x = opd_empty(OPD_INTS(5, 64), OPD_FLOAT32);
    for (int64_t i = 0; x && i < 320; i++) {
        opd_data_f32(x)[i] = (float)((i * 37 + round * 11) % 101 - 50) * (round ? 0.083f : 0.021f);
    }
    return x;
}
static void compare(opd_compiled *compiled, const opd_script *script, const char *text) {
    for (int round = 0; round < 3; round++) {
        OPD_SCOPED;
        opd_tensor *x = numbers(round), *got = NULL;
        opd_value input = opd_value_tensor(x), want;
        memset(&want, 0, sizeof want);
        CHECK_OR_RETURN(opd_script_run(script, "f", &input, 1, &want) == 0 && want.tag == OPD_TAG_TENSOR);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        const bool exact = opd_dtype(want.u.t) != OPD_FLOAT32;
        const bool same = got && opd_dtype(got) == opd_dtype(want.u.t) &&
            (exact ? opd_equal(got, want.u.t) : opd_allclose(got, want.u.t));
        if (!same) { printf("%s, round %d\n", text, round); }
        CHECK(same);
        CHECK_OK();
    }
}
static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
TEST(whole_numbers) {
    char source[600];
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    opd_log_set(say_nothing, NULL);
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        if (!check_compiles(expressions[i])) { continue; }
        (void)snprintf(source, sizeof source, "def f(x: Tensor):\n    w = %s\n    return %s\n", W8, expressions[i]);
        opd_script *const script = opd_script_compile(source, NULL);
        CHECK_OK();
        CHECK_OR_RETURN(script != NULL);
        opd_compiled *const compiled = opd_graph_compile(opd_script_graph(script, "f"), NULL);
        CHECK(compiled != NULL);
        compare(compiled, script, expressions[i]);
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        opd_compiled_free(compiled);
        opd_script_free(script);
    }
    opd_log_set(NULL, NULL);
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
