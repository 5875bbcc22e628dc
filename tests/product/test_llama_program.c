/* The example examples/llama.c: files and options that it must refuse, because it would compute another model without a
   word, and settings that it must follow.  Its results are compared with llama.cpp's when the example runs.
   C ONLY: designated initializers, main under another name. */
#define _GNU_SOURCE 1             /* for mkdtemp */
#include "../../opdispatch.h"
#include "../check.h"
#include "llama_inside.h"
#if !defined(_WIN32)
#include <unistd.h>
#endif

static const char *golden(const char *name) {
    char below[300];
    (void)snprintf(below, sizeof below, "golden/gguf/%s.gguf", name);
    return check_path(below);
}
static char folder[100];
/* Returns the path of a file in a new folder; the next call overwrites the text. */
static const char *scratch(const char *name) {
    static char path[200];
    const char *tmp = getenv("TMPDIR");
    if (!*folder) {
        (void)snprintf(folder, sizeof folder, "%.60s/opd_llama_XXXXXX", tmp && *tmp ? tmp : "/tmp");
#if !defined(_WIN32)
        CHECK(mkdtemp(folder) != NULL);
#endif
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
/* Writes scratch("m.gguf"): the golden file without the tensor `drop`, and with the tensor `name` (replaced, if it is
   there) and a setting `key`, such as "llama.rope.scale_linear:f32".  All can be NULL. */
static struct { const char *key; opd_value value; } more[4];  /* further settings; the next call forgets them */
static void changed(const char *file, const char *drop, const char *name, opd_tensor *tensor, const char *key,
                    opd_value setting) {
    opd_tensor_file *from = opd_tensor_file_open(golden(file));
    const char *names[100], *keys[100];
    opd_tensor *tensors[100];
    opd_value values[100];
    static char text[100][100];
    int64_t n = 0, k = 0;
    CHECK_OR_RETURN(from && opd_tensor_file_count(from) < 99);
    for (int64_t i = 0; i < opd_tensor_file_count(from); i++) {
        names[n] = opd_tensor_file_name(from, i);
        if ((drop && strcmp(names[n], drop) == 0) || (name && strcmp(names[n], name) == 0)) { continue; }
        tensors[n++] = opd_tensor_file_at(from, i);
    }
    if (name) { names[n] = name; tensors[n++] = tensor; }
    for (const char *its; (its = opd_tensor_file_metadata_key(from, k)) != NULL && k < 99; k++) {
        (void)snprintf(text[k], sizeof *text, "%s:%s", its, opd_tensor_file_metadata_type(from, its));
        keys[k] = text[k];
        CHECK_INT(opd_tensor_file_metadata_value(from, its, &values[k]), 0);
    }
    if (key) { keys[k] = key; values[k++] = setting; }
    for (int i = 0; i < 4 && more[i].key; i++) { keys[k] = more[i].key; values[k++] = more[i].value; }
    memset(more, 0, sizeof more);
    CHECK_INT(opd_gguf_save(scratch("m.gguf"), names, opd_tensors_of(tensors, n), keys, values, k), 0);
    opd_tensor_file_close(from);
}
/* The exact logits of scratch("m.gguf") for some tokens. */
static opd_tensor *logits_of_it(void) {
    model m;
    opd_tensor *out = NULL;
    char path[200];
    (void)snprintf(path, sizeof path, "%s", scratch("m.gguf"));
    (void)opd_exact_blocks_set(true);
    OPD_NO_GRAD {
        if (model_open(&m, path, 0) == 0) {
            int32_t ids[40];
            for (int i = 0; i < 40; i++) { ids[i] = 5 + 7 * i % 250; }
            out = forward(&m, ids_tensor(ids, 40), true, false);
        }
        model_close(&m);
    }
    (void)opd_exact_blocks_set(false);
    return out;
}
static double apart(opd_tensor *a, opd_tensor *b) { return a && b ? opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))) : 1e9; }

TEST(tensors_that_nothing_reads_are_refused) {
    opd_tensor *one = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    changed("llama_Q4_0", NULL, "blk.0.attn_q.scale", one, NULL, opd_value_none());
    CHECK_INT(RUN(scratch("m.gguf"), "--prompt", "a"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "does not know what the tensor 'blk.0.attn_q.scale'");
    changed("llama_Q4_0", NULL, "blk.0.attn_norm.bias", opd_ones(OPD_INTS(64), OPD_FLOAT32), NULL, opd_value_none());
    CHECK_INT(RUN(scratch("m.gguf"), "--prompt", "a"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "'blk.0.attn_norm.bias'");
    changed("gpt2_BF16", "blk.0.ffn_up.bias", NULL, NULL, NULL, opd_value_none());
    CHECK_INT(RUN(scratch("m.gguf"), "--prompt", "a"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "'blk.0.ffn_up.bias' is missing");
    changed("llama_Q4_0", NULL, "blk.0.attn_rot_embd", one, NULL, opd_value_none());       /* harmless */
    CHECK(logits_of_it() != NULL);
    CHECK_OK();
}
TEST(numbers_that_are_not_finite_are_refused) {
    settings s;
    float logits[3] = {1, NAN, 2};
    memset(&s, 0, sizeof s);
    s.penalty = s.top_p = 1;
    for (int i = 0; i < 2; i++) {
        s.temperature = i;
        CHECK_INT(choose(logits, 3, NULL, 0, &s), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "the logit of token 1 is not finite");
    }
    changed("llama_Q4_0", NULL, "output_norm.weight", opd_full(OPD_INTS(64), OPD_V(INFINITY), OPD_FLOAT32), NULL,
            opd_value_none());
    CHECK_INT(RUN(scratch("m.gguf"), "--train", golden("llama_Q4_0"), "--steps", "1", "--save", "/tmp/none.gguf"), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the loss of step 1 is not finite");
}
/* A factor without a type is linear, and the old key means the same. */
TEST(settings_are_followed) {
    changed("llama_Q4_0", NULL, NULL, NULL, NULL, opd_value_none());
    opd_tensor *plain = logits_of_it();
    changed("llama_Q4_0", NULL, NULL, NULL, "llama.rope.scaling.factor:f32", OPD_V(4.0));
    opd_tensor *factor = logits_of_it();
    changed("llama_Q4_0", NULL, NULL, NULL, "llama.rope.scale_linear:f32", OPD_V(4.0));
    CHECK(apart(factor, logits_of_it()) == 0);
    CHECK(apart(factor, plain) > 1e-3);
    changed("llama_Q4_0", NULL, NULL, NULL, "llama.attention.causal:bool", opd_value_bool(false));
    CHECK(logits_of_it() == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "tokens see later ones");
}
/* Checks logits of the last token beside those of llama.cpp for the same settings and dequantised weights. */
static void near_llama_cpp(double a, double b, double c, double d, double most) {
    const double want[] = {a, b, c, d};
    opd_tensor *out = logits_of_it();
    CHECK_OR_RETURN(out != NULL);
    for (int i = 0; i < 4; i++) {
        const double is = opd_item_f64(opd_select(opd_select(out, 0, 39), 0, i ? 100 * i : 7));
        if (!(fabs(is - want[i]) < most)) { printf("%g beside %g\n", is, want[i]); }
        CHECK(fabs(is - want[i]) < most);
    }
    CHECK_OK();
}
TEST(rotations_are_those_of_llama_cpp) {
    for (int i = 0; i < 2; i++) {                             /* yarn, with longer and with shorter waves */
        more[0].key = "llama.rope.scaling.type:str"; more[0].value = opd_value_str("yarn");
        more[1].key = "llama.rope.scaling.original_context_length:u32"; more[1].value = opd_value_int(64);
        changed("llama_Q4_0", NULL, NULL, NULL, "llama.rope.scaling.factor:f32", OPD_V(i ? 0.5 : 4.0));
        if (i) { near_llama_cpp(1.406774, -2.410818, 3.018916, 2.389375, 1e-4); }
        else { near_llama_cpp(0.4409661, -6.193786, 3.183665, 2.455523, 1e-4); }
    }
    changed("../llama/gemma2_Q5_0", NULL, NULL, NULL, "gemma2.rope.freq_base_swa:f32", OPD_V(100.0));
    near_llama_cpp(2.887835, 12.06933, 9.115293, 0.0595421, 2e-2);
    /* "none" holds in layers without a window only */
    more[0].key = "gemma2.rope.scaling.type:str"; more[0].value = opd_value_str("none");
    changed("../llama/gemma2_Q5_0", NULL, NULL, NULL, "gemma2.rope.scaling.factor:f32", OPD_V(8.0));
    near_llama_cpp(-8.813927, 13.24372, -2.549761, -9.706273, 2e-2);
    /* layers of gemma3 with a window have the magnitude, too */
    changed("../llama/gemma3_IQ4_NL", NULL, NULL, NULL, "gemma3.rope.scaling.attn_factor:f32", OPD_V(0.5));
    near_llama_cpp(-3.766909, -4.797988, -3.426816, 10.81811, 2e-2);
    more[0].key = "gemma3.rope.scaling.type:str"; more[0].value = opd_value_str("yarn");
    changed("../llama/gemma3_IQ4_NL", NULL, NULL, NULL, "gemma3.rope.scaling.factor:f32", OPD_V(0.5));
    near_llama_cpp(0.783155, -4.886775, -2.967944, 7.199596, 2e-2);
}
TEST(windows_of_layers_are_those_of_llama_cpp) {
    static const int64_t window_first[] = {1, 0}, window_last[] = {0, 3};
    changed("../llama/gemma2_Q5_0", NULL, NULL, NULL, "gemma2.attention.sliding_window_pattern:i32",
            opd_value_ints(window_first, 2));
    near_llama_cpp(-4.178089, 6.407483, -2.603198, -1.303374, 2e-2);
    changed("../llama/gemma2_Q5_0", NULL, NULL, NULL, "gemma2.attention.sliding_window_pattern:i32",
            opd_value_ints(window_last, 2));
    near_llama_cpp(-3.836258, 10.51936, 5.817057, 9.556923, 2e-2);
    changed("../llama/gemma2_Q5_0", NULL, NULL, NULL, "gemma2.attention.sliding_window_pattern:i32",
            opd_value_ints(window_last, 1));
    CHECK(logits_of_it() == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "sliding_window_pattern");
}
TEST(rotations_of_two_sizes_are_refused) {
    for (int size = 8; size <= 16; size += 8) {
        more[0].key = "gemma2.rope.dimension_count:u32"; more[0].value = opd_value_int(16);
        changed("../llama/gemma2_Q5_0", NULL, NULL, NULL, "gemma2.rope.dimension_count_swa:u32", opd_value_int(size));
        opd_tensor *const out = logits_of_it();
        CHECK((out != NULL) == (size == 16));
        if (size == 8) { CHECK_ERROR(OPD_ERROR_FILE, "'rope.dimension_count_swa' is not rope.dimension_count"); }
    }
    CHECK_OK();
}
TEST(experts_in_groups_are_refused) {
    changed("../llama/llama_Q4_0_moe", NULL, NULL, NULL, "llama.expert_group_count:u32", opd_value_int(2));
    CHECK(logits_of_it() == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "has groups of experts");
    changed("../llama/llama_Q4_0_moe", NULL, NULL, NULL, "llama.expert_group_count:u32", opd_value_int(1));
    CHECK(logits_of_it() != NULL);
}
/* qwen2 may have a bias behind its head, and lack those of its queries. */
TEST(biases_of_qwen2) {
    changed("qwen2_Q8_0", NULL, NULL, NULL, NULL, opd_value_none());
    opd_tensor *plain = logits_of_it();
    opd_tensor *bias = opd_linspace(OPD_V(-1.0), OPD_V(1.0), 319, OPD_FLOAT32);
    changed("qwen2_Q8_0", NULL, "output.bias", bias, NULL, opd_value_none());
    CHECK(apart(plain ? opd_add(plain, bias) : NULL, logits_of_it()) < 1e-5);
    changed("qwen2_Q8_0", NULL, "blk.0.attn_q.bias", opd_zeros(OPD_INTS(64), OPD_FLOAT32), NULL, opd_value_none());
    plain = logits_of_it();
    changed("qwen2_Q8_0", "blk.0.attn_q.bias", NULL, NULL, NULL, opd_value_none());
    CHECK(apart(plain, logits_of_it()) == 0);
    CHECK_OK();
}
/* A text without tokens: the undefined-behaviour sanitizer looks at how nothing is written. */
TEST(no_tokens_are_a_text) {
    CHECK_INT(RUN(golden("llama_Q4_0"), "--prompt", "", "--tokens", "0"), 0);
    CHECK_INT(RUN(golden("llama_Q4_0"), "--prompt", "a", "--tokens", "0", "--parallel", "2"), 0);
    CHECK_OK();
}
/* convert_weights --type q8_0 puts the table of positions in blocks, too. */
TEST(positions_may_be_in_blocks) {
    opd_tensor_file *file = opd_tensor_file_open(golden("gpt2_BF16"));
    opd_tensor *positions = file ? opd_to_dtype(opd_tensor_file_get(file, "position_embd.weight"), OPD_Q8_0) : NULL;
    CHECK(positions != NULL);
    changed("gpt2_BF16", NULL, NULL, NULL, NULL, opd_value_none());
    opd_tensor *plain = logits_of_it();
    changed("gpt2_BF16", NULL, "position_embd.weight", positions, NULL, opd_value_none());
    const double off = apart(plain, logits_of_it());
    CHECK(off > 0 && off < 0.1 * opd_item_f64(opd_max(opd_abs(plain))));
    CHECK_OK();
    opd_tensor_file_close(file);
}
static void write_config(const char *more) {
    FILE *f = fopen(scratch("adapter_config.json"), "w");
    CHECK_OR_RETURN(f != NULL);
    (void)fprintf(f, "{\"peft_type\": \"LORA\", \"r\": 4%s}\n", more);
    (void)fclose(f);
}
TEST(adapters_of_peft_have_their_scale) {
    static const char *const names[] = {"base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight",
                                        "base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight"};
    static const struct { const char *config; double scale; const char *error; } cases[] = {
        {", \"lora_alpha\": 8", 2, NULL},
        {", \"lora_alpha\": 8, \"use_rslora\": true", 4, NULL},
        {", \"lora_alpha\": 8, \"use_dora\": true", 0, "use_dora is true"},
        {", \"lora_alpha\": 8, \"use_rslora\": 1", 0, "use_rslora is neither true nor false"},
        {", \"lora_alpha\": 8, \"use_dora\": \"yes\"", 0, "use_dora is neither true nor false"},
        {", \"lora_alpha\": 8, \"rank_pattern\": {\"v_proj\": 2}", 0, "rank_pattern is not empty"},
        {", \"lora_alpha\": 8, \"alora_invocation_tokens\": [5, 6]", 0, "alora_invocation_tokens is not empty"},
        {", \"lora_alpha\": 8, \"alora_invocation_tokens\": null, \"layer_replication\": []", 2, NULL},
        {", \"lora_alpha\": 8, \"layer_replication\": [[0, 1], [0, 1]]", 0, "layer_replication is not empty"},
        {", \"lora_alpha\": 8, \"init_lora_weights\": \"pissa_niter_4\"", 0, "init_lora_weights is pissa"},
        {", \"lora_alpha\": 8, \"init_lora_weights\": \"OLoRA\"", 0, "init_lora_weights is olora"},
        {", \"lora_alpha\": 8, \"init_lora_weights\": \"gaussian\"", 2, NULL},
        {", \"lora_alpha\": 8, \"init_lora_weights\": true", 2, NULL},
        {", \"lora_alpha\": \"8\"", 0, "lora_alpha is no positive number"},
        {"", 0, "lora_alpha is missing"},
    };
    model m;
    char path[200];
    opd_tensor_file *file = opd_tensor_file_open(golden("llama_Q4_0"));
    const int64_t rows = file ? opd_size(opd_tensor_file_get(file, "blk.0.attn_v.weight"), 0) : 0;
    opd_tensor_file_close(file);
    (void)snprintf(path, sizeof path, "%s", scratch("adapter_model.safetensors"));
    for (int rank = 4; rank >= 0; rank -= 4) {
        opd_tensor *const factors[] = {opd_zeros(OPD_INTS(rank, 64), OPD_FLOAT32),
                                       opd_zeros(OPD_INTS(rows, rank), OPD_FLOAT32)};
        CHECK_INT(opd_safetensors_save(path, names, opd_tensors_of((opd_tensor **)factors, 2), NULL), 0);
        for (size_t i = 0; i < (rank ? sizeof cases / sizeof *cases : 1); i++) {
            write_config(cases[i].config);
            CHECK_INT(model_open(&m, golden("llama_Q4_0"), 0), 0);
            const bool good = rank && !cases[i].error;
            CHECK_INT(adapters_load(&m, path), good ? 0 : -1);
            if (good) { CHECK_NEAR(m.adapter_scale, cases[i].scale, 1e-12); }
            else { CHECK_ERROR(rank ? OPD_ERROR_FILE : OPD_ERROR_ARGUMENT, rank ? cases[i].error : "has rank 0"); }
            model_close(&m);
        }
    }
}
/* An adapter that holds only behind some tokens gives other results in all other places. */
TEST(adapters_for_some_tokens_are_refused) {
    static const char *const names[] = {"blk.0.attn_v.weight.lora_a", "blk.0.attn_v.weight.lora_b"};
    static const char *const keys[] = {"general.architecture", "adapter.lora.alpha", "adapter.alora.invocation_tokens"};
    static const int64_t tokens[] = {5, 6};
    const opd_value values[] = {OPD_V("llama"), OPD_V(8.0), opd_value_ints(tokens, 2)};
    model m;
    char path[200];
    (void)snprintf(path, sizeof path, "%s", scratch("m.gguf"));
    opd_tensor *const factors[] = {opd_zeros(OPD_INTS(4, 64), OPD_FLOAT32), opd_zeros(OPD_INTS(32, 4), OPD_FLOAT32)};
    for (int n = 2; n <= 3; n++) {
        CHECK_INT(opd_gguf_save(path, names, opd_tensors_of((opd_tensor **)factors, 2), keys, values, n), 0);
        CHECK_INT(model_open(&m, golden("llama_Q4_0"), 0), 0);
        CHECK_INT(adapters_load(&m, path), n == 2 ? 0 : -1);
        if (n == 3) { CHECK_ERROR(OPD_ERROR_FILE, "an adapter for some tokens only"); }
        model_close(&m);
    }
    CHECK_OK();
}
TEST(adapters_of_other_layers_are_refused) {
    static const char *const names[] = {"blk.0.attn_v.weight.lora_a", "blk.0.attn_v.weight.lora_b",
                                        "blk.7.attn_v.weight.lora_a"};
    static const char *const keys[] = {"general.architecture", "adapter.lora.alpha"};
    static const struct { int first, count; const char *error; } rows[] = {
        {0, 3, "the tensor 'blk.7.attn_v.weight.lora_a' is no factor of an adapter of a layer of"},
        {2, 1, "the tensor 'blk.7.attn_v.weight.lora_a'"}, {1, 1, "the tensor 'blk.0.attn_v.weight.lora_b'"},
        {0, 1, "has no tensor 'blk.0.attn_v.weight.lora_b'"}, {0, 0, "has no tensors"}};
    const opd_value values[] = {OPD_V("llama"), OPD_V(8.0)};
    model m;
    char path[200];
    (void)snprintf(path, sizeof path, "%s", scratch("m.gguf"));
    opd_tensor *factors[] = {opd_zeros(OPD_INTS(4, 64), OPD_FLOAT32), opd_zeros(OPD_INTS(32, 4), OPD_FLOAT32), NULL};
    factors[2] = factors[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(opd_gguf_save(path, names + rows[i].first, opd_tensors_of(factors + rows[i].first, rows[i].count),
                                keys, values, 2), 0);
        CHECK_INT(model_open(&m, golden("llama_Q4_0"), 0), 0);
        CHECK_INT(adapters_load(&m, path), -1);
        CHECK(opd_error_message() && strstr(opd_error_message(), rows[i].error));
        if (!strstr(opd_error_message(), rows[i].error)) { printf("%s\n", opd_error_message()); }
        opd_error_clear();
        model_close(&m);
    }
}
TEST(bad_requests_fail_before_anything_is_computed) {
    const char *const file = golden("llama_Q4_0");
    char path[300];
    (void)snprintf(path, sizeof path, "%s", file);
    CHECK_INT(RUN(path, "--prompt", "one two three four five six", "--context", "4"), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "tokens, but there is room for 4");
    CHECK_INT(RUN(path, "--train", path, "--save", "/no/such/folder/a.gguf"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "--save /no/such/folder/a.gguf: it cannot be written");
    CHECK_INT(RUN(path, "--train", path, "--save", ""), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "this is no name of a file");
    CHECK_INT(RUN(path, "--train", path, "--save", "/tmp/"), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "--save '/tmp/': this is no name of a file");
    opd_tensor *const none = opd_zeros(OPD_INTS(0, 5), OPD_INT64);
    static const char *const in0[] = {"in0"};
    CHECK_INT(opd_npz_save(scratch("m.gguf"), in0, opd_tensors_of((opd_tensor **)&none, 1)), 0);
    CHECK_INT(RUN(path, "--inputs", scratch("m.gguf"), "--outputs", scratch("m.gguf")), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "with 1 to 256 rows");
    CHECK_INT(RUN(path, "--train", path, "--save", scratch("a.gguf"), "--targets", "attn_q,attn_x"), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has no layers 'attn_x'");
    CHECK_INT(RUN(path, "--train", path, "--prompt", "a"), 2);
    CHECK_INT(RUN(path, "--save", "a.gguf"), 2);
    CHECK_INT(RUN(path, "--train", path, "--adapter", "a.gguf", "--rank", "2"), 2);
    CHECK_INT(RUN("--check"), 2);
    CHECK_INT(RUN(path, "--check"), 2);
    CHECK_OK();
}
TEST(files_are_removed) {
    static const char *const names[] = {"m.gguf", "adapter_config.json", "adapter_model.safetensors"};
    for (int i = 0; i < 3; i++) { (void)remove(scratch(names[i])); }
#if !defined(_WIN32)
    CHECK_INT(rmdir(folder), 0);                  /* nothing else was left there */
#endif
    *folder = 0;
}
CHECK_MAIN()
