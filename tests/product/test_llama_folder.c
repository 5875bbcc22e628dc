/* The example examples/llama.c with folders of Hugging Face's transformers (golden/folders), several texts at once, and
   caches in few bits.  Damaged folders are errors that name file and key.
   C ONLY: designated initializers, main under another name. */
#define _GNU_SOURCE 1             /* for mkdtemp */
#include "../../opdispatch.h"
#include "../check.h"
#include "llama_inside.h"
#if defined(_WIN32)
#include <direct.h>
#define rmdir _rmdir
#else
#include <unistd.h>
#endif

static const char *const folders[] = {"gemma", "gemma2", "gemma3", "gpt2", "llama2", "llama3", "mistral", "mixtral",
                                      "phi3", "qwen2", "qwen3", "qwen3moe"};
enum { FOLDERS = sizeof folders / sizeof *folders };

/* Returns the path of a file below tests/golden; up to 4 results live at a time. */
static const char *golden(const char *name, const char *end) {
    static char path[4][600];
    static int next;
    char below[300];
    (void)snprintf(below, sizeof below, "golden/%s%s", name, end);
    next = (next + 1) % 4;
    (void)snprintf(path[next], sizeof *path, "%s", check_path(below));
    return path[next];
}
static char work[100];
static const char *const copied[] = {"config.json", "tokenizer.json", "generation_config.json", "model.safetensors",
                                     "model.safetensors.index.json", "model-00001-of-00002.safetensors",
                                     "model-00002-of-00002.safetensors", "prompts.txt"};
enum { COPIED = sizeof copied / sizeof *copied };
static const char *scratch(const char *name) {
    static char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", work, name);
    return path;
}
static void write_file(const char *name, const char *data, int64_t bytes) {
    FILE *f = fopen(scratch(name), "wb");
    CHECK_OR_RETURN(f != NULL);
    CHECK(fwrite(data, 1, (size_t)bytes, f) == (size_t)bytes);
    (void)fclose(f);
}
static char *read_golden(const char *folder, const char *name, int64_t *bytes) {
    char path[100];
    (void)snprintf(path, sizeof path, "folders/%s/%s", folder, name);
    if (!folder_has(golden(path, ""))) { return NULL; }
    return read_text(golden(path, ""), bytes);
}
/* Makes a copy of a golden folder in the scratch folder. */
static void copy_folder(const char *folder) {
    if (!*work) {
        const char *tmp = getenv("TMPDIR");
        (void)snprintf(work, sizeof work, "%.60s/opd_folder_XXXXXX", tmp && *tmp ? tmp : "/tmp");
#if defined(_WIN32)
        CHECK(_mktemp(work) != NULL && _mkdir(work) == 0);
#else
        CHECK(mkdtemp(work) != NULL);
#endif
    }
    for (int i = 0; i < COPIED; i++) {
        int64_t bytes = 0;
        char *data = read_golden(folder, copied[i], &bytes);
        if (data) { write_file(copied[i], data, bytes); } else { (void)remove(scratch(copied[i])); }
        free(data);
    }
}
/* Replaces the text `from` in a file of the scratch folder, once. */
static void edit(const char *name, const char *from, const char *to) {
    int64_t bytes = 0;
    tok_text made = {NULL, 0, 0};
    char *data = read_text(scratch(name), &bytes), *at = data ? strstr(data, from) : NULL;
    CHECK(at != NULL);
    if (!at) { printf("no '%s' in %s\n", from, name); free(data); return; }
    (void)tok_append(&made, data, at - data);
    (void)tok_append(&made, to, (int64_t)strlen(to));
    (void)tok_append(&made, at + strlen(from), bytes - (at - data) - (int64_t)strlen(from));
    write_file(name, made.at, made.count);
    free(made.at); free(data);
}
TEST(folders_give_the_tokens_and_logits_of_transformers) {
    for (int i = 0; i < FOLDERS; i++) {
        CHECK_INT(check(golden("folders/", folders[i]), false), 0);
        CHECK_OK();
    }
}
/* Without a word of a prefix in the names, as some folders have them; and with tensors that old versions saved. */
TEST(names_may_lack_their_prefix) {
    static const char *const which[] = {"gpt2", "qwen2"};
    for (int k = 0; k < 2; k++) {
        char text[100][100], at[100];
        const char *names[100];
        opd_tensor *tensors[100];
        copy_folder(which[k]);
        (void)snprintf(at, sizeof at, "folders/%s/model.safetensors", which[k]);
        opd_tensor_file *file = opd_tensor_file_open(golden(at, ""));
        int64_t n = file ? opd_tensor_file_count(file) : 0;
        for (int64_t i = 0; i < n; i++) {
            names[i] = strchr(opd_tensor_file_name(file, i), '.') + 1;
            (void)snprintf(text[i], sizeof *text, "%s", names[i]);
            names[i] = text[i];
            tensors[i] = opd_tensor_file_at(file, i);
        }
        names[n] = k ? "layers.0.self_attn.rotary_emb.inv_freq" : "h.0.attn.bias";
        tensors[n++] = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        CHECK_INT(opd_safetensors_save(scratch("model.safetensors"), names, opd_tensors_of(tensors, n), NULL), 0);
        opd_tensor_file_close(file);
        CHECK_INT(RUN(work, "--prompt", "The", "--tokens", "2"), 0);
        CHECK_OK();
    }
}

//-- damaged folders ---------------------------------------------------------------------------------------------------

TEST(mistakes_in_folders_name_file_and_key) {
    static const struct { const char *folder, *file, *from, *to, *error; } rows[] = {
        {"llama3", "config.json", "LlamaForCausalLM", "BertModel",
         "config.json, line 2: 'architectures' begins with 'BertModel'"},
        {"llama3", "config.json", "\"architectures\"", "\"a\"", "'architectures' is missing"},
        {"llama3", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3",
         "'num_hidden_layers' is 3, but the tensor 'model.layers.2.input_layernorm.weight' is missing"},
        {"llama3", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
         "does not know what the tensor 'model.layers.1."},
        {"llama3", "config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": \"2\"",
         "'num_hidden_layers' is no number"},
        {"llama3", "config.json", "\"num_attention_heads\": 2", "\"num_attention_heads\": 0",
         "config.json: 'num_attention_heads' is 0"},
        {"llama3", "config.json", "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 2",
         "'model.layers.0.self_attn.k_proj.weight' does not have the sizes"},
        {"llama3", "config.json", "\"hidden_size\": 32", "\"hidden_size\": 31",
         "'model.embed_tokens.weight' does not have the sizes"},
        {"llama3", "config.json", "\"rms_norm_eps\"", "\"eps\"", "'rms_norm_eps' is missing"},
        {"llama3", "config.json", "\"silu\"", "\"relu\"", "'hidden_act' is not silu"},
        {"llama3", "config.json", "\"vocab_size\": 297", "\"vocab_size\": 200", "does not have the sizes [0, 200, 32]"},
        {"llama3", "config.json", "\"rope_type\": \"llama3\"", "\"rope_type\": \"dynamic\"",
         "'rope_type' is not default, linear"},
        {"llama3", "config.json", "\"high_freq_factor\": 4.0,", "", "'high_freq_factor' is missing"},
        {"llama3", "config.json", "\"low_freq_factor\": 1.0", "\"low_freq_factor\": 9.0",
         "'high_freq_factor' is not above low_freq_factor"},
        {"llama3", "config.json", "{", "{\"quantization_config\": {\"quant_method\": \"awq\"}, ",
         "'quantization_config' asks for weights"},
        {"llama3", "config.json", "{", "", "config.json"},
        {"llama3", "generation_config.json", "291", "-1", "generation_config.json: 'eos_token_id' is neither a token"},
        {"llama3", "model.safetensors.index.json", "model-00001-of-00002", "../model",
         "is not in a file of this folder"},
        {"llama3", "model.safetensors.index.json", "model-00001-of-00002", "model-00009", "model-00009.safetensors"},
        {"llama3", "model.safetensors.index.json", "weight_map", "map", "'weight_map' is not an object"},
        {"llama3", "tokenizer.json", "\"BPE\"", "\"Unigram\"", "'model' is of the type 'Unigram'"},
        {"llama3", "tokenizer.json", "\"Split\"", "\"Punctuation\"", "'pre_tokenizer' is of the type 'Punctuation'"},
        {"llama3", "tokenizer.json", "(?i:'s", "(?<a>'s", "tokenizer.json: tokeniser: byte 1 of the expression"},
        {"llama3", "tokenizer.json", "\"add_prefix_space\": false", "\"add_prefix_space\": true",
         "'pre_tokenizer' is of the type 'ByteLevel' or has settings"},
        {"llama3", "tokenizer.json", "\"TemplateProcessing\"", "\"RobertaProcessing\"",
         "'post_processor' is of the type 'RobertaProcessing'"},
        {"llama3", "tokenizer.json", "\"dropout\": null", "\"dropout\": 0.1", "'dropout' is set"},
        {"llama3", "tokenizer.json", "\"id\": 290", "\"id\": 297",
         "'<s>' has an id for which the model has no numbers (vocab_size)"},
        {"llama3", "tokenizer.json", "\"id\": 291", "\"id\": 290", "has the id of another token"},
        {"llama3", "tokenizer.json", "\"id\": 290", "\"id\": 7", "'<s>' has the id of another token of the vocabulary"},
        {"llama3", "tokenizer.json", "\"single_word\": false", "\"single_word\": true", "'<s>' has single_word"},
        {"llama3", "tokenizer.json", "\"merges\": [", "\"merges\": [[\"a\"], ",
         "'merges' has an element that is not two texts"},
        {"llama3", "tokenizer.json", "\"merges\": [", "\"merges\": [[\"q\", \"q\"], ",
         "'merges' has a merge of texts that are not tokens"},
        {"qwen2", "tokenizer.json", "\"NFC\"", "\"NFKC\"", "'normalizer' is of the type 'NFKC'"},
        {"qwen2", "config.json", "\"use_sliding_window\": false",
         "\"use_sliding_window\": true, \"sliding_window\": 8, \"layer_types\": [\"x\", \"y\"]", "layer_types"},
        {"mistral", "tokenizer.json", "\"prepend_scheme\": \"first\"", "\"prepend_scheme\": \"x\"",
         "'pre_tokenizer' is of the type 'Metaspace'"},
        {"mistral", "tokenizer.json", "<0x41>", "<0x4g>", "'<0x41>' is not in the vocabulary"},
        {"phi3", "config.json", "2.0,", "", "'long_factor' is not a list of 3 numbers"},
        {"phi3", "config.json", "2.0", "-2.0", "'long_factor' has an element that is no positive number"},
        {"qwen3moe", "config.json", "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 5",
         "'num_experts_per_tok' is 5"},
        {"qwen3moe", "config.json", "\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2",
         "'decoder_sparse_step' is not 1"},
        {"gemma3", "config.json", "\"sliding_window_pattern\": 2", "\"sliding_window_pattern\": 0",
         "'sliding_window_pattern' is no positive integer"},
        {"gemma", "config.json", "\"hidden_act\": \"gelu_pytorch_tanh\"", "\"hidden_act\": \"relu\"",
         "'hidden_act' is not gelu_pytorch_tanh"},
        {"gemma", "config.json", "{", "{\"hidden_activation\": \"silu\", ", "'hidden_activation' is not gelu_pytorch"},
        {"gemma2", "config.json", "\"sliding_window\": 8", "\"sliding_window\": null", "'sliding_window' is null"},
        {"gemma3", "config.json", "\"attn_logit_softcapping\": null", "\"attn_logit_softcapping\": 50.0",
         "'attn_logit_softcapping' is not null"},
        {"gemma3", "config.json", "{", "{\"rope_parameters\": {\"rope_theta\": 5.0}, ",
         "'rope_scaling' stands beside rope_parameters"},
        {"gemma3", "config.json", "\"rope_scaling\"", "\"rope_parameters\"",
         "'full_attention' is missing in rope_parameters"},
        {"llama2", "config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true",
         "'tie_word_embeddings' is true, but the tensor 'lm_head.weight' differs"},
        {"llama2", "config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": 0",
         "'tie_word_embeddings' is neither true nor false"},
        {"llama2", "config.json", "\"attention_bias\": false", "\"attention_bias\": true",
         "'model.layers.0.self_attn.q_proj.bias' is missing"},
        {"llama2", "config.json", "\"mlp_bias\": false", "\"mlp_bias\": true", "mlp.gate_proj.bias' is missing"},
        {"llama2", "config.json", "{", "{\"partial_rotary_factor\": 0.5, ", "'partial_rotary_factor' is not 1"},
        {"phi3", "config.json", "\"partial_rotary_factor\": 0.75", "\"partial_rotary_factor\": NaN",
         "'partial_rotary_factor' is missing, or no number from 0 to 1"},
        {"llama2", "config.json", "{", "{\"rope_scaling\": \"yarn\", ", "'rope_parameters or rope_scaling' is not an"},
        {"llama2", "config.json", "{", "{\"rope_scaling\": {\"factor\": 2.0}, ",
         "'rope_type' is missing, but there is a factor"},
        {"llama2", "config.json", "{", "{\"rope_scaling\": {\"rope_type\": 3}, ", "'rope_type' is not default"},
        {"qwen2", "config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": 1, \"sliding_window\": 8",
         "'use_sliding_window' is neither true nor false"},
        {"qwen2", "config.json", "\"use_sliding_window\": false",
         "\"use_sliding_window\": true, \"layer_types\": null, \"sliding_window\": 8, \"max_window_layers\": \"1\"",
         "'max_window_layers' is no integer"},
        {"qwen3moe", "config.json", "\"norm_topk_prob\": false", "\"norm_topk_prob\": 1",
         "'norm_topk_prob' is neither true nor false"},
        {"llama3", "tokenizer.json", "\"id\": 293", "\"id\": 294", "'<tool>' has another id than its place"},
        {"llama3", "tokenizer.json", "\"ids\": [\n              290", "\"ids\": [\n              291",
         "'special_tokens' gives the token other ids"},
        {"mistral", "tokenizer.json", "\"pre_tokenizer\"", "\"x\"", "'normalizer' has no Replace of spaces"},
        {"llama3", "tokenizer.json", "\"ignore_merges\": true", "\"ignore_merges\": 1",
         "'ignore_merges' is neither true nor false"},
        {"gpt2", "config.json", "\"scale_attn_weights\": true", "\"scale_attn_weights\": false",
         "'scale_attn_weights' is not true"},
        {"gpt2", "config.json", "\"n_positions\": 64", "\"n_positions\": 63",
         "'transformer.wpe.weight' does not have the sizes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_folder(rows[i].folder);
        edit(rows[i].file, rows[i].from, rows[i].to);
        CHECK_INT(RUN(work, "--prompt", "a", "--tokens", "1"), 1);
        if (!strstr(opd_error_message(), rows[i].error)) { printf("row %d: %s\n", (int)i, opd_error_message()); }
        CHECK_ERROR(strstr(rows[i].error, "tokeniser") ? OPD_ERROR_ARGUMENT : OPD_ERROR_FILE, rows[i].error);
    }
}
/* Returns the logits of 20 tokens of the scratch folder, or NULL with an error. */
static opd_tensor *logits_of(void) {
    model m;
    int32_t ids[20];
    opd_tensor *y = NULL;
    for (int32_t i = 0; i < 20; i++) { ids[i] = (5 + 37 * i) % 280; }
    OPD_NO_GRAD {
        if (model_open(&m, work, 32) == 0) { y = forward(&m, ids_tensor(ids, 20), true, false); }
        model_close(&m);
    }
    return y;
}
/* A missing setting means the default of transformers; null means none. */
TEST(missing_settings_have_the_defaults_of_transformers) {
    static const struct { const char *folder, *from, *to, *same; } rows[] = {
        {"gemma2", "\"attn_logit_softcapping\": 50.0,", "", NULL},
        {"gemma2", "\"final_logit_softcapping\": 30.0,", "", NULL},
        {"gemma3", "\"sliding_window\": 8", "\"x\": 0", "\"sliding_window\": 4096"},
        {"qwen2", "\"use_sliding_window\": false", "\"use_sliding_window\": true", NULL},
        {"gemma", "\"hidden_act\": \"gelu_pytorch_tanh\"", "\"hidden_act\": \"gelu\"", NULL},
        {"gemma", "{", "{\"sliding_window\": 4, ", NULL},
        {"llama2", "{", "{\"sliding_window\": 4, ", NULL},
        {"mistral", "{", "{\"layer_types\": [\"full_attention\", \"full_attention\"], ", NULL},
        {"mixtral", "{", "{\"rope_scaling\": {}, ", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        OPD_SCOPED;
        copy_folder(rows[i].folder);
        if (rows[i].same) { edit("config.json", rows[i].from, rows[i].same); }
        opd_tensor *want = logits_of();
        if (rows[i].same) { copy_folder(rows[i].folder); }
        edit("config.json", rows[i].from, rows[i].to);
        opd_tensor *got = logits_of();
        if (!got || !want || !opd_equal(got, want)) { printf("row %d: %s\n", (int)i, opd_error_message()); }
        CHECK(got && want && opd_equal(got, want));
    }
    model m;
    copy_folder("mistral");
    edit("config.json", "\"sliding_window\": 8", "\"x\": 8");
    CHECK_INT(model_open(&m, work, 32), 0);
    CHECK_INT(m.window, 4096);
    CHECK(m.block[0].window);
    model_close(&m);
}
/* In all layers of qwen3moe, whatever max_window_layers says. */
TEST(windows_of_qwen3moe) {
    OPD_SCOPED;
    copy_folder("qwen3moe");
    opd_tensor *none = logits_of();
    edit("config.json", "\"use_sliding_window\": false", "\"use_sliding_window\": true, \"max_window_layers\": 0");
    edit("config.json", "\"sliding_window\": null", "\"sliding_window\": 8");
    opd_tensor *all = logits_of();
    edit("config.json", "\"max_window_layers\": 0", "\"max_window_layers\": 28");
    opd_tensor *late = logits_of();
    CHECK(none && all && late && opd_equal(all, late) && !opd_equal(all, none));
}
/* rope_scaling counts if rope_parameters are there, too. */
TEST(two_rotations) {
    OPD_SCOPED;
    copy_folder("mixtral");
    opd_tensor *plain = logits_of();
    edit("config.json", "{", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 4.0, \"rope_theta\": 50.0}, ");
    opd_tensor *both = logits_of();
    edit("config.json", "\"rope_parameters\"", "\"x\"");
    opd_tensor *one = logits_of();
    CHECK(plain && both && one && opd_equal(both, one) && !opd_equal(both, plain));
}
/* If the frequencies that yarn lowers would end before they begin, transformers lowers none. */
TEST(yarn_without_low_frequencies) {
    OPD_SCOPED;
    copy_folder("qwen3");
    edit("config.json", "\"rope_type\": \"yarn\"", "\"rope_type\": \"default\"");
    opd_tensor *plain = logits_of();
    copy_folder("qwen3");
    edit("config.json", "\"original_max_position_embeddings\": 16",
         "\"original_max_position_embeddings\": 4, \"truncate\": false, \"attention_factor\": 1.0");
    opd_tensor *yarn = logits_of();
    CHECK(plain && yarn && opd_equal(plain, yarn));
    edit("config.json", "\"truncate\": false", "\"truncate\": true");      /* then both ends are 0: only one is kept */
    opd_tensor *other = logits_of();
    CHECK(other && !opd_equal(plain, other));
    CHECK_OK();
}
/* As in transformers, an end beyond the vocabulary is never met. */
TEST(ends_beyond_the_vocabulary) {
    model m;
    copy_folder("llama3");
    edit("generation_config.json", "291", "297");
    CHECK_INT(model_open(&m, work, 0), 0);
    CHECK_INT(m.vocabulary->ends_count, 1);
    model_close(&m);
    CHECK_OK();
}
/* Checks the tokens of a text with the vocabulary of the scratch folder.  control: as tok_encode. */
static void check_ids(const char *text, bool control, int64_t words, const int32_t *ids, int64_t count) {
    tok_vocabulary *v = tok_open_json(scratch("tokenizer.json"), words);
    tok_ids got = {NULL, 0, 0};
    CHECK_OR_RETURN(v != NULL);
    CHECK_INT(tok_encode(v, text, (int64_t)strlen(text), false, control, &got), 0);
    CHECK_INT(got.count, count);
    for (int64_t i = 0; i < got.count && i < count; i++) { CHECK_INT(got.at[i], ids[i]); }
    free(got.at);
    tok_free(v);
}
#define IDS(...) (const int32_t[]){__VA_ARGS__}, (int64_t)(sizeof (const int32_t[]){__VA_ARGS__} / sizeof (int32_t))
/* The library tokenizers gives the expected tokens. */
TEST(special_tokens_as_in_tokenizers) {
    copy_folder("llama3");                        /* the name of a special token is no word, even with ignore_merges */
    edit("tokenizer.json", "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r", "\\\\s+|[^\\\\r");
    edit("tokenizer.json", "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|", "\\\\S+|");
    check_ids("a <s> a", false, 297, IDS(64, 220, 27, 82, 29, 220, 64));
    check_ids("a <s> a", true, 297, IDS(64, 220, 290, 220, 64));
    copy_folder("gemma");                         /* tokens that are not 'normalized' come first */
    edit("tokenizer.json", "\"content\": \"\\n\\n\\n\",\n      \"single_word\": false,\n      \"lstrip\": false,\n      "
         "\"rstrip\": false,\n      \"normalized\": false", "\"content\": \"\\n\\n\\n\", \"normalized\": true");
    check_ids("\n\n\n", false, 355, IDS(350, 13));
    copy_folder("gemma");                         /* a control token stays text, also its part that is another token */
    edit("tokenizer.json", "\"content\": \"\\n\\n\\n\",\n      \"single_word\": false,\n      \"lstrip\": false,\n      "
         "\"rstrip\": false,\n      \"normalized\": false,\n      \"special\": false",
         "\"content\": \"\\n\\n\\n\", \"special\": true");
    check_ids("\n\n\n", false, 355, IDS(13, 13, 13));
    check_ids("\n\n\n", true, 355, IDS(351));
    copy_folder("gemma");                         /* a token may begin in the white space that another one took */
    edit("tokenizer.json", "\"content\": \"\\n\\n\\n\",\n      \"single_word\": false,\n      "
         "\"lstrip\": false,\n      \"rstrip\": false", "\"content\": \"\\n\\n\\n\", \"rstrip\": true");
    check_ids("\n\n\n\n\n", false, 355, IDS(351, 350));
    check_ids("\n\n\n\na", false, 355, IDS(351, 277));
    copy_folder("gemma");                         /* 'normalized': spaces are U+2581 already, and no white space */
    edit("tokenizer.json", "\"content\": \"<tool>\",\n      \"single_word\": false,\n      \"lstrip\": false,\n      "
         "\"rstrip\": false,\n      \"normalized\": false",
         "\"content\": \"<tool>\", \"lstrip\": true, \"rstrip\": true, \"normalized\": true");
    check_ids("a <tool> \ta", false, 355, IDS(277, 298, 349, 298, 12, 277));
    check_ids("a\t<tool>\t a", false, 355, IDS(277, 349, 305));
    edit("tokenizer.json", "<tool>", "\xe2\x96\x81\xe2\x96\x81");
    CHECK(tok_open_json(scratch("tokenizer.json"), 355) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "has 'normalized' and spaces beside the normalizer Replace");
    copy_folder("llama2");                        /* these tokens would be searched behind the normalizer Prepend */
    edit("tokenizer.json", "\"normalized\": false", "\"normalized\": true");
    CHECK_INT(RUN(work, "--prompt", "a", "--tokens", "1"), 0);
    CHECK_INT(RUN(work, "--prompt", "a", "--tokens", "1", "--special"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "beside the normalizer Prepend");
}
/* A bias that config.json does not announce is an error, as is a head beside tied embeddings, unless it equals them. */
TEST(tensors_that_the_settings_do_not_announce) {
    static const char *const names[] = {"model.layers.0.self_attn.q_proj.bias", "model.layers.1.mlp.up_proj.bias",
                                        "lm_head.weight"};
    for (int k = 0; k < 3; k++) {
        OPD_SCOPED;
        const char *list[100];
        opd_tensor *tensors[100];
        copy_folder(k == 2 ? "qwen2" : "llama2");
        opd_tensor_file *file = opd_tensor_file_open(golden(k == 2 ? "folders/qwen2" : "folders/llama2",
                                                            "/model.safetensors"));
        int64_t n = file ? opd_tensor_file_count(file) : 0;
        for (int64_t i = 0; i < n; i++) {
            list[i] = opd_tensor_file_name(file, i);
            tensors[i] = opd_tensor_file_at(file, i);
        }
        list[n] = names[k];
        tensors[n++] = k == 2 ? opd_tensor_file_get(file, "model.embed_tokens.weight")
                              : opd_ones(OPD_INTS(k ? 64 : 32), OPD_FLOAT32);
        CHECK_INT(opd_safetensors_save(scratch("model.safetensors"), list, opd_tensors_of(tensors, n), NULL), 0);
        opd_tensor_file_close(file);
        opd_tensor *y = logits_of();
        if (k == 2) { CHECK(y != NULL); CHECK_OK(); } else { CHECK_ERROR(OPD_ERROR_FILE, names[k]); }
    }
}
TEST(missing_files_are_named) {
    static const struct { const char *file, *error; } rows[] = {
        {"config.json", "has no config.json"}, {"tokenizer.json", "has no tokenizer.json"},
        {"model.safetensors", "has neither model.safetensors nor"},
    };
#if defined(_WIN32)
    const int first = 1;                          /* a folder cannot be opened there, and looks like a missing file */
#else
    const int first = 0;
#endif
    for (int i = first; i < 3; i++) {
        copy_folder("gpt2");
        CHECK_INT(remove(scratch(rows[i].file)), 0);
        CHECK_INT(RUN(work, "--prompt", "a", "--tokens", "1"), 1);
        CHECK_ERROR(OPD_ERROR_FILE, rows[i].error);
    }
    copy_folder("gpt2");
    (void)remove(scratch("generation_config.json"));           /* this one need not be there */
    CHECK_INT(RUN(work, "--prompt", "a", "--tokens", "1"), 0);
    CHECK_OK();
    CHECK_INT(RUN(scratch("model.safetensors"), "--prompt", "a"), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is only a part of a model: give the folder");
    CHECK_INT(RUN("/no/such/folder", "--prompt", "a"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "/no/such/folder");
}
/* A folder with one other byte is opened, or is an error; nothing crashes.  Without OPD_TEST_ALL in the environment,
   few bytes are tried. */
TEST(other_bytes_crash_nothing) {
    static const struct { const char *folder, *file; int step; } rows[] = {
        {"llama3", "config.json", 17}, {"phi3", "config.json", 17}, {"gemma3", "config.json", 17},
        {"llama3", "model.safetensors.index.json", 29}, {"llama3", "tokenizer.json", 401},
        {"gemma", "tokenizer.json", 401}, {"mistral", "tokenizer.json", 401}, {"llama3", "generation_config.json", 7},
    };
    static const char others[] = "\"0-9{[,\\\x80 ";
    const bool all = getenv("OPD_TEST_ALL") != NULL;
    opd_log_set(NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t bytes = 0, good = 0;
        copy_folder(rows[i].folder);
        char *data = read_text(scratch(rows[i].file), &bytes);
        for (int64_t at = 0; data && at < bytes; at += all ? 1 + rows[i].step / 100 : rows[i].step) {
            const char was = data[at];
            model m;
            for (int other = 0; other < 3; other++) {
                if (other == 2) { write_file(rows[i].file, data, at); }        /* cut off there */
                else {
                    data[at] = other ? (char)(was ^ 1 << at % 8) : others[at % (int)(sizeof others - 1)];
                    write_file(rows[i].file, data, bytes);
                    data[at] = was;
                }
                OPD_NO_GRAD {
                    good += model_open(&m, work, 0) == 0 && opd_ok() &&
                            forward(&m, ids_tensor((const int32_t[]){1, 2}, 2), true, false);
                    model_close(&m);
                }
                opd_error_clear();
            }
        }
        CHECK(good > 0 || bytes < 300);
        free(data);
    }
}

//-- several texts -----------------------------------------------------------------------------------------------------

static const char *const prompts[] = {"The sea is", "a", "in the house of the other things, and they were there",
                                      "for (i = 0; i < 10; i++)", "12 34"};
enum { PROMPTS = sizeof prompts / sizeof *prompts };
/* Writes texts of some prompts, `texts` at a time, and puts their tokens into ids.  same: all prompts are the first. */
static void write_all(model *m, const char *const *list, int64_t n, int64_t texts, bool same, uint64_t seed,
                      double temperature, tok_ids *ids) {
    settings s;
    writing w[PROMPTS];
    memset(&s, 0, sizeof s);
    memset(w, 0, sizeof w);
    s.tokens = 20;
    s.penalty = s.top_p = 1;
    s.temperature = temperature;
    s.seed = seed;
    for (int64_t i = 0; i < n; i++) {
        w[i].prompt = list[same ? 0 : i];
        CHECK_INT(tok_encode(m->vocabulary, w[i].prompt, (int64_t)strlen(w[i].prompt), true, false, &w[i].ids), 0);
    }
    for (int64_t i = 0; i < m->blocks; i++) {
        opd_release(m->block[i].keys); opd_release(m->block[i].values);
        m->block[i].keys = m->block[i].values = NULL;
    }
    free(m->past);
    m->past = NULL;
    CHECK_INT(cache_open(m, texts, 200, OPD_FLOAT32), 0);
    CHECK_INT(generate(m, w, n, same, &s, NULL), 0);
    for (int64_t i = 0; i < n; i++) { ids[i] = w[i].ids; free(w[i].text.at); }
}
static bool same_ids(const tok_ids *a, const tok_ids *b) {
    return a->count == b->count && memcmp(a->at, b->at, (size_t)a->count * sizeof *a->at) == 0;
}
/* Prompts of different lengths, alone and together, all at once and two at a time; greedily, and in the mode of same
   bits at random, too. */
TEST(texts_together_are_the_texts_alone) {
    static const char *const files[] = {
        "gguf/gpt2_BF16.gguf", "gguf/llama_Q4_0.gguf", "gguf/llama_Q4_K_M.gguf", "gguf/qwen2_Q8_0.gguf",
        "llama/gemma2_Q5_0.gguf", "llama/gemma3_IQ4_NL.gguf", "llama/llama_Q4_0_moe.gguf", "llama/phi3_Q5_1.gguf",
        "folders/llama3", "folders/mistral", "folders/gemma2", "folders/gpt2", "folders/qwen3moe",
    };
    copy_folder("gpt2");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        model m;
        CHECK_INT(model_open(&m, golden(files[i], ""), 64), 0);
        CHECK_OK();
        for (int k = 0; k < 3 && opd_ok(); k++) {
            tok_ids together[PROMPTS], alone;
            const double temperature = k == 2 ? 0.8 : 0;
            const bool was = opd_same_bits_set(k == 2);
            OPD_NO_GRAD {
                write_all(&m, prompts, PROMPTS, k == 1 ? 2 : PROMPTS, false, 7, temperature, together);
                for (int j = 0; j < PROMPTS; j++) {
                    write_all(&m, &prompts[j], 1, 1, false, 7 + (uint64_t)j, temperature, &alone);
                    CHECK(same_ids(&alone, &together[j]));
                    if (!same_ids(&alone, &together[j])) { printf("%s: prompt %d, way %d\n", files[i], j, k); }
                    free(alone.at); free(together[j].at);
                }
            }
            (void)opd_same_bits_set(was);
        }
        model_close(&m);
    }
}
/* Several texts of one prompt, which is computed once, are the texts with their seeds; also two at a time. */
TEST(texts_of_one_prompt_have_their_seeds) {
    model m;
    CHECK_INT(model_open(&m, golden("folders/llama3", ""), 64), 0);
    const bool was = opd_same_bits_set(true);
    for (int64_t texts = 2; texts <= 3 && opd_ok(); texts++) {
        tok_ids together[3], alone;
        OPD_NO_GRAD {
            write_all(&m, prompts, 3, texts, true, 5, 1, together);
            for (int j = 0; j < 3; j++) {
                write_all(&m, prompts, 1, 1, false, 5 + (uint64_t)j, 1, &alone);
                CHECK(same_ids(&alone, &together[j]));
                CHECK(j == 0 || !same_ids(&together[0], &together[j]));
                free(alone.at);
            }
        }
        for (int j = 0; j < 3; j++) { free(together[j].at); }
    }
    (void)opd_same_bits_set(was);
    model_close(&m);
}
TEST(options_for_several_texts) {
    copy_folder("llama3");
    CHECK_INT(RUN(work, "--prompt", "The sea", "--tokens", "3", "--parallel", "4", "--temperature", "1"), 0);
    write_file("prompts.txt", "The sea\r\nin the\nof", 18);
    CHECK_INT(RUN(work, "--prompts", scratch("prompts.txt"), "--tokens", "3", "--parallel", "2"), 0);
    CHECK_INT(RUN(work, "--prompts", scratch("prompts.txt"), "--tokens", "0"), 0);
    CHECK_OK();
    write_file("prompts.txt", "", 0);
    CHECK_INT(RUN(work, "--prompts", scratch("prompts.txt")), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "prompts.txt has no lines");
    write_file("prompts.txt", "a\0b", 3);
    CHECK_INT(RUN(work, "--prompts", scratch("prompts.txt")), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "prompts.txt has zero bytes");
    write_file("prompts.txt", "a\nthe house of the rising sun and other things", 46);
    CHECK_INT(RUN(work, "--prompts", scratch("prompts.txt"), "--context", "4"), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "prompt 2 of 2 has");
    copy_folder("qwen2");                         /* without a token for the begin */
    write_file("prompts.txt", "a\n\n", 3);
    CHECK_INT(RUN(work, "--prompts", scratch("prompts.txt")), 1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "line 2 of ");
    CHECK_INT(RUN(work, "--prompts", "/no/such/file"), 1);
    CHECK_ERROR(OPD_ERROR_FILE, "/no/such/file cannot be opened");
    CHECK_INT(RUN(work, "--prompts", "a", "--prompt", "b"), 2);
    CHECK_INT(RUN(work, "--train", "a", "--parallel", "2"), 2);
    CHECK_INT(RUN(work, "--inputs", "a", "--outputs", "b", "--parallel", "2"), 2);
    CHECK_INT(RUN(work, "--prompt", "a", "--cache", "q4_0"), 2);
    CHECK_OK();
}
/* The logits of 30 tokens by way of a cache. */
static opd_tensor *cached_logits(const char *file, opd_scalar_type dtype) {
    model m;
    opd_tensor *out = NULL;
    int32_t ids[30];
    for (int i = 0; i < 30; i++) { ids[i] = 5 + 7 * i % 250; }
    (void)opd_exact_blocks_set(true);
    OPD_NO_GRAD {
        if (model_open(&m, file, 0) == 0 && cache_open(&m, 2, 40, dtype) == 0) {
            opd_tensor *const parts[] = {forward(&m, ids_tensor(ids, 20), true, true),
                                         forward(&m, ids_tensor(ids + 20, 10), true, true)};
            out = opd_cat(opd_tensors_of((opd_tensor **)parts, 2), 0);
        }
        model_close(&m);
    }
    (void)opd_exact_blocks_set(false);
    return out;
}
TEST(caches_in_few_bits_are_near) {
    static const char *const files[] = {"folders/llama3", "gguf/llama_Q4_K_M.gguf", "llama/gemma2_Q5_0.gguf",
                                        "llama/gemma3_IQ4_NL.gguf"};
    for (int i = 0; i < 4; i++) {
        opd_tensor *const exact = cached_logits(golden(files[i], ""), OPD_FLOAT32);
        opd_tensor *const half = cached_logits(golden(files[i], ""), OPD_WEIGHT_F16);
        opd_tensor *const eighth = cached_logits(golden(files[i], ""), OPD_Q8_0);
        CHECK_OR_RETURN(exact && half && eighth);
        const double most = opd_item_f64(opd_max(opd_abs(exact)));
        const double off = opd_item_f64(opd_max(opd_abs(opd_sub(half, exact)))) / most;
        const double further = opd_item_f64(opd_max(opd_abs(opd_sub(eighth, exact)))) / most;
        CHECK(off > 0 && off < 2e-3);
        CHECK(further > off && further < 5e-2);
    }
    CHECK(cached_logits(golden("gguf/llama_Q4_0.gguf", ""), OPD_Q8_0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "need heads of a multiple of 32 numbers");
}

//-- adapters ----------------------------------------------------------------------------------------------------------

/* An adapter for a folder of llama has the order of its rows; a GGUF file of the adapter has the other order. */
TEST(adapters_of_folders_keep_their_rows) {
    model m;
    char gguf[200], peft[200];
    copy_folder("llama2");
    (void)snprintf(gguf, sizeof gguf, "%s", scratch("a.gguf"));
    (void)snprintf(peft, sizeof peft, "%s", scratch("a.safetensors"));
    CHECK_INT(model_open(&m, work, 0), 0);
    CHECK_OR_RETURN(opd_ok());
    opd_tensor *const b = opd_reshape(opd_arange(OPD_V(64), OPD_FLOAT32), OPD_INTS(32, 2));
    CHECK_INT(adapter_put(&m, &m.block[0].wq, opd_ones(OPD_INTS(2, 32), OPD_FLOAT32), b), 0);
    CHECK_INT(adapters_save(&m, gguf, 2, 2), 0);
    CHECK_INT(adapters_save(&m, peft, 2, 2), 0);
    opd_tensor_file *one = opd_tensor_file_open(gguf), *two = opd_tensor_file_open(peft);
    CHECK_OR_RETURN(one && two);
    opd_tensor *const in_gguf = opd_tensor_file_get(one, "blk.0.attn_q.weight.lora_b"),
               *const in_peft = opd_tensor_file_at(two, opd_tensor_file_find(two, "base_model.model.model.layers.0."
                                                                             "self_attn.q_proj.lora_B.weight"));
    CHECK(opd_equal(in_peft, b));
    CHECK_NEAR(opd_data_f32(in_gguf)[2], 2 * 4, 0);          /* row 1 is row 4 of the head of 8 */
    CHECK_INT(adapters_load(&m, gguf), 0);
    CHECK(opd_equal(m.block[0].wq.b, b));
    CHECK_INT(adapters_load(&m, peft), 0);
    CHECK(opd_equal(m.block[0].wq.b, b));
    CHECK_OK();
    opd_tensor_file_close(one); opd_tensor_file_close(two);
    model_close(&m);
    (void)remove(gguf); (void)remove(peft);
}
TEST(files_are_removed) {
    for (int i = 0; i < COPIED; i++) { (void)remove(scratch(copied[i])); }
    CHECK_INT(rmdir(work), 0);                    /* nothing else was left there */
    *work = 0;
}
CHECK_MAIN()
