/* A model in a folder, as Hugging Face's transformers writes it: config.json, and weights in model.safetensors or in
   the files that model.safetensors.index.json lists.

   examples/llama.c knows settings and tensors by the names of GGUF files.  The functions of this file take these names,
   and find what they mean in the folder.  What the folder cannot say in them has functions of its own: the layers with
   a window, and the rotation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How an architecture differs from llama. */
enum { FOLDER_GPT2 = 1, FOLDER_FOUR_NORMS = 2, FOLDER_ADDS_ONE = 4, FOLDER_MIXTRAL = 8, FOLDER_PHI3 = 16,
       FOLDER_ANY = 0 };
typedef struct folder_arch {
    const char *name, *gguf;                      /* the first of `architectures`; general.architecture */
    const char *act_key, *act;                    /* the only activation function that is known */
    int flags;
    bool tied;                                    /* tie_word_embeddings, if the folder does not say it */
    int window;                                   /* sliding_window, if the folder does not say it; -1: no layer has a
                                                     window, whatever the folder says */
} folder_arch;
static const folder_arch folder_archs[] = {
    {"LlamaForCausalLM", "llama", "hidden_act", "silu", 0, false, -1},
    {"MistralForCausalLM", "llama", "hidden_act", "silu", 0, false, 4096},
    {"MixtralForCausalLM", "llama", "hidden_act", "silu", FOLDER_MIXTRAL, false, 0},
    {"Qwen2ForCausalLM", "qwen2", "hidden_act", "silu", 0, false, 4096},
    {"Qwen3ForCausalLM", "qwen3", "hidden_act", "silu", 0, false, 4096},
    {"Qwen3MoeForCausalLM", "qwen3moe", "hidden_act", "silu", 0, false, 4096},
    {"GemmaForCausalLM", "gemma", "hidden_act", "gelu_pytorch_tanh", FOLDER_ADDS_ONE, true, -1},
    {"Gemma2ForCausalLM", "gemma2", "hidden_activation", "gelu_pytorch_tanh", FOLDER_ADDS_ONE | FOLDER_FOUR_NORMS,
     true, 4096},
    {"Gemma3ForCausalLM", "gemma3", "hidden_activation", "gelu_pytorch_tanh", FOLDER_ADDS_ONE | FOLDER_FOUR_NORMS,
     true, 4096},
    {"Phi3ForCausalLM", "phi3", "hidden_act", "silu", FOLDER_PHI3, false, 0},
    {"GPT2LMHeadModel", "gpt2", "activation_function", "gelu_new", FOLDER_GPT2, true, -1},
};
/* The settings.  names: in config.json, the first that is there counts. */
static const struct { const char *key, *names[2], *gpt2; } folder_keys[] = {
    {"block_count", {"num_hidden_layers"}, "n_layer"},
    {"context_length", {"max_position_embeddings"}, "n_positions"},
    {"embedding_length", {"hidden_size"}, "n_embd"},
    {"feed_forward_length", {"intermediate_size"}, "n_inner"},
    {"expert_feed_forward_length", {"moe_intermediate_size"}, NULL},
    {"attention.head_count", {"num_attention_heads"}, "n_head"},
    {"attention.head_count_kv", {"num_key_value_heads"}, NULL},
    {"attention.key_length", {"head_dim"}, NULL},
    {"attention.value_length", {"head_dim"}, NULL},
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps"}, NULL},
    {"attention.layer_norm_epsilon", {NULL}, "layer_norm_epsilon"},
    {"attention.sliding_window", {"sliding_window"}, NULL},
    {"attn_logit_softcapping", {"attn_logit_softcapping"}, NULL},
    {"final_logit_softcapping", {"final_logit_softcapping"}, NULL},
    {"expert_count", {"num_local_experts", "num_experts"}, NULL},
    {"expert_used_count", {"num_experts_per_tok"}, NULL},
    {"vocab_size", {"vocab_size"}, "vocab_size"},
    {"attention.scale", {"query_pre_attn_scalar"}, NULL},
};
/* The tensors; of rows with the same name, the first whose flag the architecture has.  %d: the block, or for experts
   the block and the expert. */
static const struct { int flag; const char *gguf, *name; } folder_tensors[] = {
    {FOLDER_GPT2, "token_embd", "transformer.wte"},
    {FOLDER_GPT2, "position_embd", "transformer.wpe"},
    {FOLDER_GPT2, "output_norm", "transformer.ln_f"},
    {FOLDER_GPT2, "attn_norm", "transformer.h.%d.ln_1"},
    {FOLDER_GPT2, "attn_qkv", "transformer.h.%d.attn.c_attn"},
    {FOLDER_GPT2, "attn_output", "transformer.h.%d.attn.c_proj"},
    {FOLDER_GPT2, "ffn_norm", "transformer.h.%d.ln_2"},
    {FOLDER_GPT2, "ffn_up", "transformer.h.%d.mlp.c_fc"},
    {FOLDER_GPT2, "ffn_down", "transformer.h.%d.mlp.c_proj"},
    {FOLDER_FOUR_NORMS, "ffn_norm", "model.layers.%d.pre_feedforward_layernorm"},
    {FOLDER_FOUR_NORMS, "post_attention_norm", "model.layers.%d.post_attention_layernorm"},
    {FOLDER_FOUR_NORMS, "post_ffw_norm", "model.layers.%d.post_feedforward_layernorm"},
    {FOLDER_MIXTRAL, "ffn_gate_inp", "model.layers.%d.block_sparse_moe.gate"},
    {FOLDER_MIXTRAL, "ffn_gate_exps", "model.layers.%d.block_sparse_moe.experts.%d.w1"},
    {FOLDER_MIXTRAL, "ffn_down_exps", "model.layers.%d.block_sparse_moe.experts.%d.w2"},
    {FOLDER_MIXTRAL, "ffn_up_exps", "model.layers.%d.block_sparse_moe.experts.%d.w3"},
    {FOLDER_PHI3, "ffn_up", "model.layers.%d.mlp.gate_up_proj"},
    {FOLDER_ANY, "token_embd", "model.embed_tokens"},
    {FOLDER_ANY, "output_norm", "model.norm"},
    {FOLDER_ANY, "output", "lm_head"},
    {FOLDER_ANY, "attn_norm", "model.layers.%d.input_layernorm"},
    {FOLDER_ANY, "attn_q", "model.layers.%d.self_attn.q_proj"},
    {FOLDER_ANY, "attn_k", "model.layers.%d.self_attn.k_proj"},
    {FOLDER_ANY, "attn_v", "model.layers.%d.self_attn.v_proj"},
    {FOLDER_ANY, "attn_qkv", "model.layers.%d.self_attn.qkv_proj"},
    {FOLDER_ANY, "attn_output", "model.layers.%d.self_attn.o_proj"},
    {FOLDER_ANY, "attn_q_norm", "model.layers.%d.self_attn.q_norm"},
    {FOLDER_ANY, "attn_k_norm", "model.layers.%d.self_attn.k_norm"},
    {FOLDER_ANY, "ffn_norm", "model.layers.%d.post_attention_layernorm"},
    {FOLDER_ANY, "ffn_gate", "model.layers.%d.mlp.gate_proj"},
    {FOLDER_ANY, "ffn_up", "model.layers.%d.mlp.up_proj"},
    {FOLDER_ANY, "ffn_down", "model.layers.%d.mlp.down_proj"},
    {FOLDER_ANY, "ffn_gate_inp", "model.layers.%d.mlp.gate"},
    {FOLDER_ANY, "ffn_gate_exps", "model.layers.%d.mlp.experts.%d.gate_proj"},
    {FOLDER_ANY, "ffn_up_exps", "model.layers.%d.mlp.experts.%d.up_proj"},
    {FOLDER_ANY, "ffn_down_exps", "model.layers.%d.mlp.experts.%d.down_proj"},
};
enum { FOLDER_PARTS = 1000 };
typedef struct model_folder {
    const folder_arch *arch;
    char config_path[1024];                       /* for errors, as a folder's settings are in this file */
    opd_json *config;
    opd_tensor_file **part;
    int64_t parts, tensors;
    bool tied;
} model_folder;

static void folder_close(model_folder *f) {
    if (!f) { return; }
    for (int64_t i = 0; i < f->parts; i++) { opd_tensor_file_close(f->part[i]); }
    free(f->part);
    opd_json_free(f->config);
    free(f);
}
/* Sets an error about a value of config.json.  Returns -1. */
static int folder_bad(const model_folder *f, int64_t value, const char *key, const char *what) {
    int64_t line = 0;
    opd_json_place(f->config, value < 0 ? 0 : value, &line, NULL);
    return opd_fail(OPD_ERROR_FILE, "%s, line %lld: '%s' %s", f->config_path, (long long)line, key, what);
}
/* Returns a value of config.json, -1 if it is missing or null. */
static int64_t folder_get(const model_folder *f, int64_t object, const char *key) {
    const int64_t value = opd_json_get(f->config, object, key);
    return opd_json_kind_of(f->config, value) == OPD_JSON_NULL ? -1 : value;
}
/* Is a value there, but null?  This means none, where a missing value means the default of the architecture. */
static bool folder_null(const model_folder *f, const char *key) {
    return opd_json_kind_of(f->config, opd_json_get(f->config, 0, key)) == OPD_JSON_NULL;
}
/* Returns a value of config.json that is true or false.  Sets an error if it is anything else. */
static bool folder_true(const model_folder *f, int64_t object, const char *key, bool otherwise) {
    const int64_t value = folder_get(f, object, key);
    if (value >= 0 && opd_json_kind_of(f->config, value) != OPD_JSON_BOOL) {
        (void)folder_bad(f, value, key, "is neither true nor false");
    }
    return opd_json_bool(f->config, value, otherwise);
}

//-- settings ----------------------------------------------------------------------------------------------------------

/* Returns the place of a setting in config.json, -1 if it is missing or null, and its name there. */
static int64_t folder_setting(const model_folder *f, const char *key, const char **name) {
    *name = key;
    for (size_t i = 0; i < sizeof folder_keys / sizeof *folder_keys; i++) {
        if (strcmp(folder_keys[i].key, key) != 0) { continue; }
        const bool gpt2 = f->arch->flags & FOLDER_GPT2;
        const char *const first = gpt2 ? folder_keys[i].gpt2 : folder_keys[i].names[0],
                   *const second = gpt2 ? NULL : folder_keys[i].names[1];
        if (!first) { return -1; }
        const int64_t value = folder_get(f, 0, first), other = second ? folder_get(f, 0, second) : -1;
        *name = value < 0 && other >= 0 ? second : first;
        return value < 0 ? other : value;
    }
    return -1;
}
/* Reads a setting that is a number.  Returns 0, or -1 with an error. */
static int folder_number(const model_folder *f, const char *key, double *number) {
    const char *name;
    const int64_t value = folder_setting(f, key, &name);
    const opd_json_kind kind = opd_json_kind_of(f->config, value);
    if (kind != OPD_JSON_INT && kind != OPD_JSON_FLOAT) { return folder_bad(f, value, name, "is no number"); }
    *number = opd_json_double(f->config, value, 0);
    return 0;
}
/* Returns the number of tokens of a window, if the folder does not say it. */
static int64_t folder_window_default(const model_folder *f) {
    return f->arch->window < 0 || folder_null(f, "sliding_window") ? 0 : f->arch->window;
}
/* Does layer i see only the last tokens?  Sets an error if the settings do not say it. */
static bool folder_window(const model_folder *f, int64_t i, int64_t blocks) {
    const int64_t types = folder_get(f, 0, "layer_types"), at = folder_get(f, 0, "sliding_window_pattern"),
                  first = folder_get(f, 0, "max_window_layers");
    const char *arch = f->arch->gguf;
    const bool qwen = strncmp(arch, "qwen", 4) == 0;
    if (f->arch->window < 0 || (qwen && !folder_true(f, 0, "use_sliding_window", false))) { return false; }
    if ((!qwen || strcmp(arch, "qwen3moe") == 0) && !(f->arch->flags & FOLDER_FOUR_NORMS)) { return true; }
    if (types >= 0) {
        int64_t value = opd_json_first(f->config, types);
        for (int64_t k = 0; k < i; k++) { value = opd_json_next(f->config, value); }
        const char *type = opd_json_text(f->config, value, "");
        const bool window = strcmp(type, "sliding_attention") == 0;
        if ((!window && strcmp(type, "full_attention") != 0) || opd_json_count(f->config, types) != blocks) {
            (void)folder_bad(f, types, "layer_types", "is no list of sliding_attention and full_attention for each "
                             "layer");
        }
        return window;
    }
    if (qwen) {
        const int64_t from = first < 0 ? 28 : opd_json_int(f->config, first, -1);
        if (from < 0) { (void)folder_bad(f, first, "max_window_layers", "is no integer from 0 on"); }
        return i >= from;
    }
    if (strcmp(arch, "gemma2") == 0) { return i % 2 == 0; }
    const int64_t pattern = at < 0 ? 6 : opd_json_int(f->config, at, 0);
    if (pattern < 1) { (void)folder_bad(f, at, "sliding_window_pattern", "is no positive integer"); return false; }
    return (i + 1) % pattern != 0;
}
/* Fails if the activation function is not the one that this program computes.  Gemma's first folders say gelu, and mean
   gelu_pytorch_tanh. */
static int folder_check_act(const model_folder *f) {
    const bool gemma = strcmp(f->arch->gguf, "gemma") == 0;
    const char *const keys[] = {f->arch->act_key, "hidden_activation"};
    for (int i = 0; i < (gemma ? 2 : 1); i++) {
        const int64_t value = folder_get(f, 0, keys[i]);
        const char *act = opd_json_text(f->config, value, "");
        char what[100];
        if (strcmp(act, f->arch->act) == 0 || (gemma && (value < 0 || strcmp(act, "gelu") == 0))) { continue; }
        (void)snprintf(what, sizeof what, "is not %s, the only one that this program knows here", f->arch->act);
        return folder_bad(f, value, keys[i], what);
    }
    return 0;
}
/* Fails if the folder asks for something that this program does not compute. */
static int folder_check(model_folder *f) {
    static const struct { const char *key; bool known; } flags[] = {
        {"scale_attn_weights", true}, {"scale_attn_by_inverse_layer_idx", false}, {"add_cross_attention", false},
        {"use_bidirectional_attention", false}, {"is_encoder_decoder", false},
    };
    const int64_t quantised = folder_get(f, 0, "quantization_config"), step = folder_get(f, 0, "decoder_sparse_step"),
                  dense = folder_get(f, 0, "mlp_only_layers"), cap = folder_get(f, 0, "attn_logit_softcapping");
    f->tied = folder_true(f, 0, "tie_word_embeddings", f->arch->tied);
    if (!opd_ok() || folder_check_act(f) != 0) { return -1; }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const int64_t value = folder_get(f, 0, flags[i].key);
        if (value >= 0 && opd_json_bool(f->config, value, !flags[i].known) != flags[i].known) {
            return folder_bad(f, value, flags[i].key, flags[i].known ? "is not true, which this program does not know"
                              : "is not false, which this program does not know");
        }
    }
    if (quantised >= 0) {
        return folder_bad(f, quantised, "quantization_config", "asks for weights in a form that this program does not "
                          "know; use the original model, or a GGUF file");
    }
    if (step >= 0 && opd_json_int(f->config, step, 0) != 1) {
        return folder_bad(f, step, "decoder_sparse_step", "is not 1, which this program does not know");
    }
    if (dense >= 0 && opd_json_first(f->config, dense) >= 0) {
        return folder_bad(f, dense, "mlp_only_layers", "is not empty, which this program does not know");
    }
    if (cap >= 0 && strcmp(f->arch->gguf, "gemma3") == 0) {
        return folder_bad(f, cap, "attn_logit_softcapping", "is not null, which this program does not know here");
    }
    if ((f->arch->flags & FOLDER_FOUR_NORMS) && folder_null(f, "sliding_window")) {
        return folder_bad(f, opd_json_get(f->config, 0, "sliding_window"), "sliding_window", "is null");
    }
    return 0;
}

//-- the rotation ------------------------------------------------------------------------------------------------------

/* The settings of a rotation.  divide: by which frequency i is divided (NULL: 1), to be freed. */
typedef struct stretch { double base, factor, magnitude, low, high; bool yarn; double *divide; } stretch;

/* Reads a number of `object`, or if it is not there, of config.json.  NaN as `otherwise`: it must be there. */
static double folder_rope_number(const model_folder *f, int64_t object, const char *key, double low, double high,
                                 double otherwise) {
    int64_t value = folder_get(f, object, key);
    if (value < 0) { value = folder_get(f, 0, key); }
    if (value < 0 && otherwise == otherwise) { return otherwise; }
    const double number = opd_json_double(f->config, value, NAN);
    if (!(number >= low && number <= high)) {
        char what[80];
        (void)snprintf(what, sizeof what, "is missing, or no number from %g to %g", low, high);
        (void)folder_bad(f, value < 0 ? object : value, key, what);
    }
    return number;
}
/* Returns the object with the settings of the rotation; -1 if there is none.  local: of layers with a window. */
static int64_t folder_rope(const model_folder *f, bool local) {
    const int64_t all = folder_get(f, 0, "rope_parameters"), old = folder_get(f, 0, "rope_scaling");
    if (all >= 0 && strcmp(f->arch->gguf, "gemma3") == 0) {
        const char *key = local ? "sliding_attention" : "full_attention";
        const int64_t own = folder_get(f, all, key);
        if (old >= 0) { (void)folder_bad(f, old, "rope_scaling", "stands beside rope_parameters"); }
        if (own < 0 && !local) { (void)folder_bad(f, all, key, "is missing in rope_parameters"); }
        return own;
    }
    /* transformers prefers rope_scaling if both are there, too */
    return local ? -1 : all >= 0 && opd_json_first(f->config, old) < 0 ? all : old;
}
/* Returns the type of a rotation. */
static const char *folder_rope_type(const model_folder *f, int64_t rope) {
    const int64_t first = folder_get(f, rope, "rope_type"), value = first >= 0 ? first : folder_get(f, rope, "type");
    const char *type = opd_json_text(f->config, value, value < 0 ? "default" : "");
    if (rope >= 0 && opd_json_kind_of(f->config, rope) != OPD_JSON_OBJECT) {
        (void)folder_bad(f, rope, "rope_parameters or rope_scaling", "is not an object");
    } else if (value < 0 && folder_get(f, rope, "factor") >= 0) {
        (void)folder_bad(f, rope, "rope_type", "is missing, but there is a factor");
    }
    return type;
}
/* Returns the share of each head that is rotated. */
static double folder_rope_share(const model_folder *f, bool local) {
    const int64_t rope = folder_rope(f, local);
    const double share = folder_rope_number(f, rope, "partial_rotary_factor", 0, 1, 1);
    if (share != 1 && !(f->arch->flags & FOLDER_PHI3)) {
        (void)folder_bad(f, rope, "partial_rotary_factor", "is not 1, which this program does not know here");
    }
    return share;
}
/* longrope: a list of factors, for short or long texts. */
static void folder_longrope(const model_folder *f, int64_t rope, int64_t context, double original, double trained,
                            int64_t pairs, stretch *s) {
    const char *key = (double)context > original ? "long_factor" : "short_factor";
    const int64_t list = folder_get(f, rope, key);
    const double factor = folder_rope_number(f, rope, "factor", 1e-3, 1e6, trained / original);
    int64_t n = 0;
    for (int64_t at = opd_json_first(f->config, list); at >= 0 && s->divide && n < pairs; n++) {
        s->divide[n] = opd_json_double(f->config, at, 0);
        if (!(s->divide[n] > 0 && s->divide[n] < 1e12)) {
            (void)folder_bad(f, at, key, "has an element that is no positive number");
        }
        at = opd_json_next(f->config, at);
    }
    if (n != pairs || opd_json_count(f->config, list) != pairs) {
        char what[80];
        (void)snprintf(what, sizeof what, "is not a list of %lld numbers, one a pair", (long long)pairs);
        (void)folder_bad(f, list < 0 ? rope : list, key, what);
    }
    s->magnitude = folder_rope_number(f, rope, "attention_factor", 1e-3, 1e3,
                                      factor > 1 ? sqrt(1 + log(factor) / log(original)) : 1);
}
static void folder_yarn(const model_folder *f, int64_t rope, double original, double trained, int64_t pairs,
                        stretch *s) {
    const double fast = folder_rope_number(f, rope, "beta_fast", 1e-3, 1e6, 32),
                 slow = folder_rope_number(f, rope, "beta_slow", 1e-3, 1e6, 1);
    const double turns = 2 * 3.14159265358979323846, ln = 2 * log(s->base);
    const double scale = folder_rope_number(f, rope, "mscale", 0, 1e3, 0),
                 all = folder_rope_number(f, rope, "mscale_all_dim", 0, 1e3, 0);
    s->factor = folder_rope_number(f, rope, "factor", 1e-3, 1e6, trained / original);
    const double grown = s->factor > 1 ? 0.1 * log(s->factor) : 0;
    s->yarn = true;
    s->low = 2 * (double)pairs * log(original / (fast * turns)) / ln;
    s->high = 2 * (double)pairs * log(original / (slow * turns)) / ln;
    if (folder_true(f, rope, "truncate", true)) {
        s->low = floor(s->low);
        s->high = ceil(s->high);
    }
    s->low = fmax(0, s->low);
    s->high = fmin(2 * (double)pairs - 1, s->high);
    if (s->high == s->low) { s->high += 0.001; }           /* below `low`, no frequency is lowered, as in transformers */
    s->magnitude = folder_rope_number(f, rope, "attention_factor", 1e-3, 1e3,
                                      scale > 0 && all > 0 ? (1 + scale * grown) / (1 + all * grown) : 1 + grown);
}
/* llama 3: frequencies that turn seldom are lowered. */
static void folder_llama3(const model_folder *f, int64_t rope, double original, int64_t pairs, stretch *s) {
    const double factor = folder_rope_number(f, rope, "factor", 1e-3, 1e6, NAN),
                 low = folder_rope_number(f, rope, "low_freq_factor", 1e-3, 1e6, NAN),
                 high = folder_rope_number(f, rope, "high_freq_factor", 1e-3, 1e6, NAN);
    if (opd_ok() && !(high > low)) { (void)folder_bad(f, rope, "high_freq_factor", "is not above low_freq_factor"); }
    for (int64_t j = 0; s->divide && opd_ok() && j < pairs; j++) {
        const double length = 2 * 3.14159265358979323846 * pow(s->base, (double)j / (double)pairs);
        const double kept = fmin(1, fmax(0, (original / length - low) / (high - low)));
        s->divide[j] = 1 / ((1 - kept) / factor + kept);
    }
}
/* Reads the settings of the rotation of `pairs` pairs, for `context` tokens. */
static stretch folder_stretch(const model_folder *f, bool local, int64_t pairs, int64_t context) {
    const bool mild = strcmp(f->arch->gguf, "gemma3") != 0 && !(f->arch->flags & FOLDER_MIXTRAL);
    const int64_t rope = folder_rope(f, local);
    const char *type = folder_rope_type(f, rope);
    const bool longrope = strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0;
    stretch s = {0, 1, 1, 0, 0, false, NULL};
    const double trained = folder_rope_number(f, 0, "max_position_embeddings", 1, 1e9, NAN);
    const double original = folder_rope_number(f, rope, "original_max_position_embeddings", 2, 1e9, trained);
    s.base = local && folder_get(f, rope, "rope_theta") < 0
           ? folder_rope_number(f, 0, "rope_local_base_freq", 1, 1e12, 10000)
           : folder_rope_number(f, rope, "rope_theta", 1, 1e12, mild ? 10000 : NAN);
    if (longrope || strcmp(type, "llama3") == 0) {
        s.divide = (double *)calloc((size_t)(pairs ? pairs : 1), sizeof *s.divide);
        if (!s.divide) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its rotation", f->config_path); }
    }
    if (!opd_ok() || strcmp(type, "default") == 0) { return s; }
    if (longrope) { folder_longrope(f, rope, context, original, trained, pairs, &s); }
    else if (strcmp(type, "llama3") == 0) { folder_llama3(f, rope, original, pairs, &s); }
    else if (strcmp(type, "yarn") == 0) { folder_yarn(f, rope, original, trained, pairs, &s); }
    else if (strcmp(type, "linear") == 0) { s.factor = folder_rope_number(f, rope, "factor", 1e-3, 1e6, NAN); }
    else {
        (void)folder_bad(f, rope, "rope_type", "is not default, linear, llama3, yarn or longrope, which this program "
                         "knows");
    }
    return s;
}

//-- tensors -----------------------------------------------------------------------------------------------------------

/* Writes the name that the tensor blk.BLOCK.name.end, or without a block (-1), name.end has in the folder.  end: weight
   or bias.  expert: of the experts of a block; else -1. */
static void folder_name(const model_folder *f, int64_t block, const char *name, int64_t expert, const char *end,
                        char *buf, size_t cap) {
    char stem[120] = "?";
    for (size_t i = 0; i < sizeof folder_tensors / sizeof *folder_tensors; i++) {
        const int flag = folder_tensors[i].flag;
        if (strcmp(folder_tensors[i].gguf, name) != 0 || (flag && !(f->arch->flags & flag))) { continue; }
        const char *pattern = folder_tensors[i].name, *first = strstr(pattern, "%d"),
                   *second = first ? strstr(first + 2, "%d") : NULL;
        if (!first) { (void)snprintf(stem, sizeof stem, "%s", pattern); }
        else if (!second) {
            (void)snprintf(stem, sizeof stem, "%.*s%d%s", (int)(first - pattern), pattern, (int)block, first + 2);
        } else {
            (void)snprintf(stem, sizeof stem, "%.*s%d%.*s%d%s", (int)(first - pattern), pattern, (int)block,
                           (int)(second - first - 2), first + 2, (int)expert, second + 2);
        }
        break;
    }
    (void)snprintf(buf, cap, "%s.%s", stem, end);
}
/* Returns the place of a tensor among the tensors of all files, -1 if it is missing.  Some folders of gpt2 leave out the word
   "transformer." in front of all names, as others leave out "model.". */
static int64_t folder_find(const model_folder *f, const char *name) {
    const char *dot = strchr(name, '.');
    const bool prefixed = strncmp(name, "model.", 6) == 0 || strncmp(name, "transformer.", 12) == 0;
    for (int with = 1; with >= (prefixed ? 0 : 1); with--) {
        int64_t before = 0;
        for (int64_t i = 0; i < f->parts; before += opd_tensor_file_count(f->part[i++])) {
            const int64_t at = opd_tensor_file_find(f->part[i], with ? name : dot + 1);
            if (at >= 0) { return before + at; }
        }
    }
    return -1;
}
/* Finds tensor i in its file, which is returned.  *at gets its place there. */
static const opd_tensor_file *folder_part(const model_folder *f, int64_t i, int64_t *at) {
    int64_t part = 0;
    while (i >= opd_tensor_file_count(f->part[part])) { i -= opd_tensor_file_count(f->part[part++]); }
    *at = i;
    return f->part[part];
}
/* Does this linear layer have a bias?  name: as in GGUF files. */
static bool folder_biased(const model_folder *f, const char *name) {
    const char *arch = f->arch->gguf;
    const bool attention = strncmp(name, "attn_", 5) == 0;
    const bool llama = strcmp(f->arch->name, "LlamaForCausalLM") == 0,
               may = llama || strncmp(arch, "gemma", 5) == 0 || strncmp(arch, "qwen3", 5) == 0;
    if (f->arch->flags & FOLDER_GPT2) { return true; }
    if (strcmp(arch, "qwen2") == 0) { return attention && strcmp(name, "attn_output") != 0; }
    return attention ? may && folder_true(f, 0, "attention_bias", false)
                     : llama && folder_true(f, 0, "mlp_bias", false);
}
/* Does the folder store this matrix as [in, out]?  gpt2's layers do. */
static bool folder_turned(const model_folder *f, const char *name) {
    return (f->arch->flags & FOLDER_GPT2) && strstr(name, ".c_") && strstr(name, ".weight");
}
/* Is a tensor that nothing reads harmless?  The tied head, and tables that old versions saved. */
static bool folder_harmless(const model_folder *f, const char *name) {
    static const char *const ends[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias"};
    const bool gpt2 = f->arch->flags & FOLDER_GPT2;
    if (f->tied && strcmp(name, "lm_head.weight") == 0) { return true; }
    for (int i = gpt2 ? 1 : 0; i < (gpt2 ? 3 : 1); i++) {
        const size_t n = strlen(name), k = strlen(ends[i]);
        if (n > k && strcmp(name + n - k, ends[i]) == 0) { return true; }
    }
    return false;
}
static int folder_add_part(model_folder *f, const char *path) {
    opd_tensor_file **grown = (opd_tensor_file **)realloc(f->part, (size_t)(f->parts + 1) * sizeof *grown);
    if (!grown) { return opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its parts", path); }
    f->part = grown;
    f->part[f->parts] = opd_tensor_file_open(path);
    if (!f->part[f->parts]) { return -1; }
    f->tensors += opd_tensor_file_count(f->part[f->parts++]);
    return 0;
}
static bool folder_has(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file) { (void)fclose(file); }
    return file != NULL;
}
/* Opens the files that model.safetensors.index.json lists. */
static int folder_open_parts(model_folder *f, const char *path, const char *index) {
    const char *names[FOLDER_PARTS];              /* of the files that are open */
    opd_json *json = opd_json_load(index);
    const int64_t map = json ? opd_json_get(json, 0, "weight_map") : -1;
    if (json && opd_json_kind_of(json, map) != OPD_JSON_OBJECT) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: 'weight_map' is not an object", index);
    }
    for (int64_t at = opd_json_first(json, map); at >= 0 && opd_ok(); at = opd_json_next(json, at)) {
        const char *name = opd_json_text(json, at, "");
        char part[1024];
        bool known = false;
        for (int64_t i = 0; i < f->parts && !known; i++) { known = strcmp(names[i], name) == 0; }
        if (known) { continue; }
        if (f->parts == FOLDER_PARTS) {
            (void)opd_fail(OPD_ERROR_FILE, "%s: it lists more than %d files", index, (int)FOLDER_PARTS);
        } else if (!*name || strchr(name, '/') || strchr(name, '\\')) {
            (void)opd_fail(OPD_ERROR_FILE, "%s: '%s' is not in a file of this folder", index, opd_json_key(json, at));
        } else if (snprintf(part, sizeof part, "%s/%s", path, name) >= (int)sizeof part) {
            (void)opd_fail(OPD_ERROR_FILE, "%s: the name of the file '%.60s' is too long", index, name);
        } else {
            names[f->parts] = name;
            (void)folder_add_part(f, part);
        }
    }
    opd_json_free(json);
    return opd_ok() ? 0 : -1;
}
static int folder_open_weights(model_folder *f, const char *path) {
    char one[1024], index[1024];
    (void)snprintf(one, sizeof one, "%s/model.safetensors", path);
    (void)snprintf(index, sizeof index, "%s/model.safetensors.index.json", path);
    if (folder_has(one)) { return folder_add_part(f, one); }
    if (folder_has(index)) { return folder_open_parts(f, path, index); }
    return opd_fail(OPD_ERROR_FILE, "%s has neither model.safetensors nor model.safetensors.index.json; other forms of "
                    "weights, such as pytorch_model.bin, are not read", path);
}
/* Opens a folder.  Returns NULL with an error. */
static model_folder *folder_open(const char *path) {
    model_folder *f = (model_folder *)calloc(1, sizeof *f);
    if (!f) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its settings", path); return NULL; }
    if (snprintf(f->config_path, sizeof f->config_path, "%s/config.json", path) > 900) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "the name of the folder is too long: %.60s...", path);
    } else if (!folder_has(f->config_path)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s has no config.json: it is no model as Hugging Face's transformers writes it",
                       path);
    } else { f->config = opd_json_load(f->config_path); }
    const int64_t list = f->config ? opd_json_get(f->config, 0, "architectures") : -1;
    const char *name = f->config ? opd_json_text(f->config, opd_json_first(f->config, list), "") : "";
    for (size_t i = 0; i < sizeof folder_archs / sizeof *folder_archs; i++) {
        if (strcmp(folder_archs[i].name, name) == 0) { f->arch = &folder_archs[i]; }
    }
    if (f->config && !f->arch) {
        char what[120];
        (void)snprintf(what, sizeof what, "begins with '%.60s', which this program does not know", name);
        (void)folder_bad(f, list, "architectures", list < 0 ? "is missing" : what);
    }
    if (opd_ok() && folder_check(f) == 0 && folder_open_weights(f, path) == 0) { return f; }
    folder_close(f);
    return NULL;
}
