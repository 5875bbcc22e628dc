/* Runs a language model from a GGUF file or a folder of Hugging Face's transformers, and trains adapters (LoRA) for it.
   cc -O2 examples/llama.c -o llama -lm && ./llama --check tests/golden/gguf/llama_Q4_0.gguf
   ci: --check tests/golden/{llama/[a-z]*,gguf/{gpt2_BF16,llama_Q4_K_M,qwen2_Q8_0,vocab_llama-bpe}}.gguf \
       tests/golden/folders/[a-z]*

   ./llama MODEL --prompt "The sea is" writes text.  ./llama --help explains the other options.

   The file has four parts:
   1. the settings and weights of the file, each of which is checked before it is used;
   2. the network, which is about 200 lines of operator calls.  Weights in few bits stay as they are in the mapped file:
      opd_linear and opd_embedding take them.  Only the rotation of queries and keys is an operator of this program;
   3. choosing tokens, and writing text;
   4. training.  The weights of the file have no gradients; adapters that are added to some of them have.
   Files in examples/llama: tokens.h has the tokenisers, tokenizer.h reads tokenizer.json, folder.h reads the settings
   and weights of a folder, rotation.h makes the angles of positions, adapters.h reads and writes adapters, and check.h
   compares results. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "llama/folder.h"
#include "llama/tokenizer.h"

//-- the rotation, an operator -----------------------------------------------------------------------------------------

/* Rotates pairs of numbers of x [tokens, heads, size] by angles.  cosines and sines are [tokens, pairs].  The pairs are
   neighbours (0, 1), (2, 3) ..., or if `halves` is true, (0, n), (1, n + 1) ... with n = pairs.  Numbers behind the
   last pair are copied. */
#define ROTATE(type, data) do { \
        const type *in = data(x), *co = data(c), *si = data(s); \
        type *to = data(out); \
        if (!in || !co || !si || !to) { return -1; } \
        for (int64_t i = 0; i < tokens * heads; i++, in += size, to += size) { \
            const int64_t angle = i / heads * pairs; \
            for (int64_t j = 0; j < pairs; j++) { \
                const int64_t one = halves ? j : 2 * j, two = halves ? j + pairs : 2 * j + 1; \
                const type a = in[one], b = in[two]; \
                to[one] = a * co[angle + j] - b * si[angle + j]; \
                to[two] = a * si[angle + j] + b * co[angle + j]; \
            } \
            for (int64_t j = 2 * pairs; j < size; j++) { to[j] = in[j]; } \
        } \
    } while (0)
static int rotate_cpu(opd_call *call) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *c = opd_contiguous(opd_arg_tensor(call, 1));
    opd_tensor *s = opd_contiguous(opd_arg_tensor(call, 2));
    const bool halves = opd_arg_bool(call, 3);
    if (!opd_ok()) { return -1; }
    OPD_CHECK(opd_ndim(x) == 3 && opd_ndim(c) == 2 && opd_is_same_size(c, s) && opd_size(c, 0) == opd_size(x, 0) &&
                  2 * opd_size(c, 1) <= opd_size(x, 2),
              "x must be [tokens, heads, size], the angles [tokens, up to size / 2]");
    OPD_CHECK(opd_dtype(x) == opd_dtype(c) && opd_dtype(x) == opd_dtype(s), "all tensors must have one dtype");
    opd_tensor *out = opd_result(call, 0, opd_sizes(x), 3, opd_dtype(x));
    if (!out || !opd_data(out)) { return opd_ok() ? 0 : -1; }
    const int64_t tokens = opd_size(x, 0), heads = opd_size(x, 1), size = opd_size(x, 2), pairs = opd_size(c, 1);
    if (opd_dtype(x) == OPD_FLOAT64) { ROTATE(double, opd_data_f64); } else { ROTATE(float, opd_data_f32); }
    return 0;
}
/* The same by operators, for devices. */
static int rotate_any(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *c = opd_unsqueeze(opd_arg_tensor(call, 1), 1);
    opd_tensor *s = opd_unsqueeze(opd_arg_tensor(call, 2), 1);
    const int64_t tokens = opd_size(x, 0), heads = opd_size(x, 1), size = opd_size(x, 2), pairs = opd_size(c, -1);
    const bool halves = opd_arg_bool(call, 3);
    opd_tensor *turned = opd_narrow(x, 2, 0, 2 * pairs), *rest = opd_narrow(x, 2, 2 * pairs, size - 2 * pairs);
    turned = opd_reshape(turned, halves ? OPD_INTS(tokens, heads, 2, pairs) : OPD_INTS(tokens, heads, pairs, 2));
    const int dim = halves ? 2 : 3;
    opd_tensor *a = opd_select(turned, dim, 0), *b = opd_select(turned, dim, 1);
    turned = opd_stack(OPD_TENSORS(opd_sub(opd_mul(a, c), opd_mul(b, s)), opd_add(opd_mul(a, s), opd_mul(b, c))), dim);
    turned = opd_reshape(turned, OPD_INTS(tokens, heads, 2 * pairs));
    return opd_return_tensor(call, size > 2 * pairs ? opd_cat(OPD_TENSORS(turned, rest), 2) : turned);
}
static opd_op *rotate_op;
static opd_tensor *rotate(opd_tensor *x, opd_tensor *cosines, opd_tensor *sines, bool halves) {
    return OPD_CALL(OPD_OP(&rotate_op, "llama::rotate"), x, cosines, sines, OPD_V(halves));
}
/* The gradient is rotated back.  The angles are constants. */
static int rotate_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, rotate(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 1), opd_neg(opd_bw_tensor(bw, 2)),
                                       opd_bw_bool(bw, 3)));
}
static int rotate_jvp(opd_jvp_call *jv) {
    opd_tensor *dx = opd_jvp_tangent(jv, 0), *c = opd_jvp_tensor(jv, 1), *s = opd_jvp_tensor(jv, 2);
    return opd_jvp_return(jv, 0, rotate(dx, c, s, opd_jvp_value(jv, 3).u.i != 0));
}
OPD_LIBRARY(llama, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "rotate(Tensor x, Tensor cosines, Tensor sines, bool halves) -> Tensor",
        .cpu = rotate_cpu, .any = rotate_any, .fake = rotate_cpu, .backward = rotate_backward, .save = "cosines, sines",
        .constant = "cosines, sines", .jvp = rotate_jvp, .vmap = OPD_BATCH_LOOP });
}

//-- the settings and weights ------------------------------------------------------------------------------------------

/* y = W x + bias, and with an adapter + scale B A x. */
typedef struct linear { opd_tensor *weight, *bias, *a, *b; const char *name; int block; } linear;
typedef struct norm { opd_tensor *weight, *bias; } norm;
typedef struct block {
    norm attn, ffn, q, k, after_attn, after_ffn;
    linear wq, wk, wv, wqkv, wo, gate, up, down, route;
    opd_tensor **experts;                         /* gate, up and down of each expert */
    int64_t kv_heads;
    bool window;                                  /* a token sees only the last `window` tokens */
    opd_tensor *keys, *values;                    /* of the tokens so far [texts, kv heads, room, size] */
} block;
typedef enum family { LLAMA, QWEN2, QWEN3, GEMMA, GEMMA2, GEMMA3, PHI3, GPT2, FAMILIES } family;
/* halves: how the rotation pairs numbers */
static const struct { const char *name; family family; bool halves; } architectures[] = {
    {"llama", LLAMA, false}, {"mistral", LLAMA, false}, {"mixtral", LLAMA, false}, {"qwen2", QWEN2, true},
    {"qwen3", QWEN3, true}, {"qwen3moe", QWEN3, true}, {"gemma", GEMMA, true}, {"gemma2", GEMMA2, true},
    {"gemma3", GEMMA3, true}, {"phi3", PHI3, true}, {"gpt2", GPT2, true},
};
typedef struct model {
    const char *path, *arch;
    opd_tensor_file *file;                        /* a GGUF file ... */
    model_folder *folder;                          /* ... or a folder as transformers writes it */
    tok_vocabulary *vocabulary;
    family family;
    bool halves;
    int64_t blocks, width, hidden, heads, key_size, value_size, context, words, experts, experts_used, window;
    int64_t trained_context;                      /* tokens for which the model was trained */
    int64_t pattern;                              /* of so many layers, all but the last have the window; 0: a list */
    bool *used;                                   /* for each tensor of the file: it was read */
    double eps, scale, cap_scores, cap_logits;
    opd_tensor *tokens, *positions, *cosines[2], *sines[2];        /* [1]: in layers with a window */
    norm last;
    linear head;
    block *block;
    int64_t texts, room, *past;                   /* of the cache; past: tokens of each text that are in it */
    bool shares;                                  /* the shares of the chosen experts are made to add up to 1 */
    double adapter_scale;
} model;

static const char *settings_of(const model *m) { return m->folder ? m->folder->config_path : m->path; }
static int bad(const model *m, const char *what, const char *name) {
    return opd_fail(OPD_ERROR_FILE, "%s: '%s' %s", settings_of(m), name, what);
}
/* Looks for a setting, and writes its name in the file to name[128].  Returns whether it is there. */
static bool setting(const model *m, const char *key, char *name) {
    const char *own = NULL;
    const bool there = m->folder && folder_setting(m->folder, key, &own) >= 0;
    if (m->folder) { (void)snprintf(name, 128, "%s", own); return there; }
    (void)snprintf(name, 128, "%s.%s", m->arch, key);
    return opd_tensor_file_metadata_type(m->file, name) != NULL;
}
/* Reads the setting `key`, an integer from 1 to `most`.  If the key is missing, returns `otherwise`; -1: the key must
   be there. */
static int64_t integer(const model *m, const char *key, int64_t i, int64_t most, int64_t otherwise) {
    char name[128];
    double number = 0;
    if (!setting(m, key, name)) {
        if (otherwise < 0) { (void)bad(m, "is missing", name); }
        return otherwise;
    }
    if (m->file && opd_tensor_file_metadata_count(m->file, name) < 0) { i = 0; }      /* one number for all layers */
    if (m->file ? opd_tensor_file_metadata_number(m->file, name, i, &number) : folder_number(m->folder, key, &number)) {
        return -1;
    }
    const int least = otherwise != 0;                      /* 0 is allowed if a missing key means 0 */
    if (!(number >= least && number <= (double)most) || number != floor(number)) {
        return opd_fail(OPD_ERROR_FILE, "%s: '%s' is %g, which is no integer from %d to %lld", settings_of(m), name,
                        number, least, (long long)most);
    }
    return (int64_t)number;
}
/* Reads the setting `key`, a number from low to high; NaN as `otherwise`: the key must be there. */
static double real(const model *m, const char *key, double low, double high, double otherwise) {
    char name[128];
    double number = 0;
    if (!setting(m, key, name)) {
        if (otherwise != otherwise) { (void)bad(m, "is missing", name); }
        return otherwise;
    }
    if (m->file ? opd_tensor_file_metadata_number(m->file, name, 0, &number) : folder_number(m->folder, key, &number)) {
        return otherwise;
    }
    if (!(number >= low && number <= high)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: '%s' is %g, which is not from %g to %g", settings_of(m), name, number, low,
                       high);
    }
    return number;
}
/* Writes the name of the tensor blk.BLOCK.name.end, or without a block (-1), name.end, to text[160].  expert: of a
   folder, which has a tensor for each; else -1. */
static const char *tensor_name(const model *m, int64_t block, const char *name, int64_t expert, const char *end,
                               char *text) {
    if (m->folder) { folder_name(m->folder, block, name, expert, end, text, 160); }
    else if (block < 0) { (void)snprintf(text, 160, "%s.%s", name, end); }
    else { (void)snprintf(text, 160, "blk.%d.%s.%s", (int)block, name, end); }
    return text;
}
/* Returns the tensor at a place of the file, or of a folder's files. */
static opd_tensor *tensor_at(const model *m, int64_t place, const char *name) {
    if (m->file) { return opd_tensor_file_at(m->file, place); }
    const opd_tensor_file *part = folder_part(m->folder, place, &place);
    opd_tensor *t = opd_tensor_file_at(part, place);
    return t && folder_turned(m->folder, name) && opd_ndim(t) == 2 ? opd_contiguous(opd_t(t)) : t;
}
/* Where the weights are, and where the network computes: --device. */
static opd_device place;
static opd_tensor *there(opd_tensor *t) {
    return t && place.type != OPD_CPU ? opd_to_device(t, place, opd_dtype(t)) : t;
}
static opd_tensor *back(opd_tensor *t) {
    return t && place.type != OPD_CPU ? opd_to_device(t, opd_device_make(OPD_CPU, -1), opd_dtype(t)) : t;
}
/* Reads a tensor of these sizes (rows 0: a vector; experts 0: no experts).  Returns NULL if the tensor is missing and
   `needed` is false, and NULL with an error if it does not fit.  The caller releases it.  Matrices of 16-bit floats and
   of blocks stay views of the file, unless they move to a device; vectors become float32. */
static opd_tensor *weight(const model *m, const char *name, int64_t experts, int64_t rows, int64_t columns,
                          bool needed) {
    if (!opd_ok()) { return NULL; }
    const int64_t place = m->file ? opd_tensor_file_find(m->file, name) : folder_find(m->folder, name);
    if (place < 0) {
        if (needed) { (void)opd_fail(OPD_ERROR_FILE, "%s: the tensor '%s' is missing", m->path, name); }
        return NULL;
    }
    opd_tensor *kept = NULL;
    m->used[place] = true;
    OPD_SCOPE {
        opd_tensor *t = tensor_at(m, place, name);
        const int64_t want[] = {experts, rows, columns};
        const int from = experts ? 0 : rows ? 1 : 2, dims = 3 - from;
        bool fits = t && opd_ndim(t) == dims;
        for (int i = 0; i < dims && fits; i++) { fits = opd_size(t, i) == want[from + i]; }
        if (t && !fits) {
            (void)opd_fail(OPD_ERROR_FILE,
                           "%s: the tensor '%s' does not have the sizes [%lld, %lld, %lld] (0: none) that "
                           "the settings of the file ask for",
                           m->path, name, (long long)experts, (long long)rows, (long long)columns);
        } else if (t && rows && columns % 32 == 0 && opd_dtype(t) == OPD_FLOAT16) {
            kept = opd_keep(there(opd_view_dtype(t, OPD_WEIGHT_F16)));
        } else if (t && rows && columns % 32 == 0 && opd_dtype(t) == OPD_BFLOAT16) {
            kept = opd_keep(there(opd_view_dtype(t, OPD_WEIGHT_BF16)));
        } else if (t) {
            const opd_scalar_type dtype = opd_dtype(t);
            const bool widen = dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16 || dtype == OPD_FLOAT64;
            if (!widen && dtype != OPD_FLOAT32 && (!rows || opd_dtype_size(dtype))) {
                (void)opd_fail(OPD_ERROR_FILE, "%s: the tensor '%s' has the dtype %s", m->path, name,
                               opd_dtype_name(dtype));
            } else { kept = opd_keep(there(widen ? opd_to_dtype(t, OPD_FLOAT32) : t)); }
        }
    }
    return kept;
}
static linear layer(const model *m, int i, const char *name, int64_t rows, int64_t columns, bool needed) {
    linear l;
    char text[160];
    const bool biased = m->folder ? folder_biased(m->folder, name) : m->family == GPT2;
    memset(&l, 0, sizeof l);
    l.name = name;
    l.block = i;
    l.weight = weight(m, tensor_name(m, i, name, -1, "weight", text), 0, rows, columns, needed);
    if (l.weight && (biased || m->file)) {        /* a bias of a folder that does not say so is a tensor too many */
        l.bias = weight(m, tensor_name(m, i, name, -1, "bias", text), 0, 0, rows, biased);
    }
    return l;
}
/* i: -1 for the norm behind all blocks */
static norm norm_of(const model *m, int i, const char *name, int64_t size) {
    norm n;
    char text[160];
    n.weight = weight(m, tensor_name(m, i, name, -1, "weight", text), 0, 0, size, true);
    n.bias = m->family == GPT2 ? weight(m, tensor_name(m, i, name, -1, "bias", text), 0, 0, size, true) : NULL;
    if (n.weight && m->folder && (m->folder->arch->flags & FOLDER_ADDS_ONE)) {
        opd_tensor *before = n.weight;
        OPD_SCOPE { n.weight = opd_keep(opd_add_Scalar(before, OPD_V(1))); }
        opd_release(before);
    }
    return n;
}
/* Reads the experts of block i.  A GGUF file has one tensor for all of them, a folder a tensor for each. */
static void read_experts(const model *m, int i, block *b) {
    static const char *const names[] = {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"};
    char text[160];
    b->experts = (opd_tensor **)calloc((size_t)(3 * m->experts), sizeof *b->experts);
    if (!b->experts) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its experts", m->path); }
    for (int64_t k = 0; k < 3 && opd_ok(); k++) {
        const int64_t rows = k < 2 ? m->hidden : m->width, columns = k < 2 ? m->width : m->hidden;
        opd_tensor *all = m->folder ? NULL : weight(m, tensor_name(m, i, names[k], -1, "weight", text), m->experts,
                                                    rows, columns, true);
        for (int64_t e = 0; e < m->experts && opd_ok(); e++) {
            if (all) { OPD_SCOPE { b->experts[3 * e + k] = opd_keep(opd_select(all, 0, e)); } continue; }
            b->experts[3 * e + k] = weight(m, tensor_name(m, i, names[k], e, "weight", text), 0, rows, columns, true);
        }
        opd_release(all);
    }
}
/* Reads the tensors of block i. */
static void read_block(const model *m, int i, block *b) {
    const int64_t heads = m->heads * m->key_size, out = m->heads * m->value_size, width = m->width;
    const bool two_norms = m->family == GEMMA2 || m->family == GEMMA3;
    const bool size_norms = m->family == QWEN3 || m->family == GEMMA3;
    b->kv_heads = integer(m, "attention.head_count_kv", i, m->heads, m->heads);
    if (opd_ok() && m->heads % b->kv_heads) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: there are %lld heads, which is no multiple of the %lld heads of keys and "
                       "values", settings_of(m), (long long)m->heads, (long long)b->kv_heads);
    }
    if (!opd_ok()) { return; }
    const int64_t keys = b->kv_heads * m->key_size, values = b->kv_heads * m->value_size;
    b->window = m->window && (m->folder ? folder_window(m->folder, i, m->blocks)
               : two_norms && (m->pattern ? i % m->pattern != m->pattern - 1
                               : integer(m, "attention.sliding_window_pattern", i, 100000, 0) > 0));
    b->attn = norm_of(m, i, "attn_norm", width);
    b->ffn = norm_of(m, i, "ffn_norm", width);
    if (two_norms) {
        b->after_attn = norm_of(m, i, "post_attention_norm", width);
        b->after_ffn = norm_of(m, i, "post_ffw_norm", width);
    }
    if (size_norms) {
        b->q = norm_of(m, i, "attn_q_norm", m->key_size);
        b->k = norm_of(m, i, "attn_k_norm", m->key_size);
    }
    b->wqkv = layer(m, i, "attn_qkv", heads + keys + values, width, m->family == PHI3 || m->family == GPT2);
    if (!b->wqkv.weight) {
        b->wq = layer(m, i, "attn_q", heads, width, true);
        b->wk = layer(m, i, "attn_k", keys, width, true);
        b->wv = layer(m, i, "attn_v", values, width, true);
    }
    b->wo = layer(m, i, "attn_output", width, out, true);
    if (m->experts) {
        b->route = layer(m, i, "ffn_gate_inp", m->experts, width, true);
        read_experts(m, i, b);
        return;
    }
    if (m->family != PHI3 && m->family != GPT2) { b->gate = layer(m, i, "ffn_gate", m->hidden, width, true); }
    b->up = layer(m, i, "ffn_up", m->family == PHI3 ? 2 * m->hidden : m->hidden, width, true);
    b->down = layer(m, i, "ffn_down", width, m->hidden, true);
}
/* Reads a limit of scores or logits: 0 if there is none. */
static double cap_setting(const model *m, const char *key, double otherwise) {
    return real(m, key, 0, 1e6, m->folder && folder_null(m->folder, key) ? 0 : otherwise);
}
/* Reads the settings that all architectures have. */
static int read_settings(model *m) {
    const int64_t large = INT64_C(1) << 24;
    char pattern[128];
    m->arch = m->folder ? m->folder->arch->gguf : opd_tensor_file_metadata(m->file, "general.architecture");
    if (!m->arch) { return bad(m, "is missing, or is no text", "general.architecture"); }
    m->family = FAMILIES;
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        if (strcmp(architectures[i].name, m->arch) == 0) {
            m->family = architectures[i].family;
            m->halves = architectures[i].halves || m->folder;
        }
    }
    if (m->family == FAMILIES) { return bad(m, "is an architecture that this program does not know", m->arch); }
    m->blocks = integer(m, "block_count", 0, 100000, -1);
    m->trained_context = integer(m, "context_length", 0, INT64_C(1) << 31, -1);
    m->width = integer(m, "embedding_length", 0, large, -1);
    m->heads = integer(m, "attention.head_count", 0, 65536, -1);
    if (!opd_ok()) { return -1; }
    const bool whole = m->width % m->heads == 0;           /* else the file has to say the size of a head */
    m->key_size = integer(m, "attention.key_length", 0, large, whole ? m->width / m->heads : -1);
    m->value_size = integer(m, "attention.value_length", 0, large, whole ? m->width / m->heads : -1);
    m->experts = integer(m, "expert_count", 0, 65536, 0);
    m->experts_used = m->experts ? integer(m, "expert_used_count", 0, m->experts, -1) : 0;
    const bool each = m->family == QWEN3 && m->experts;    /* the file says how large each expert is, or all are */
    const int64_t all = each && m->file ? integer(m, "feed_forward_length", 0, large, 0) : 0;
    m->hidden = integer(m, each ? "expert_feed_forward_length" : "feed_forward_length", 0, large,
                        all ? all / m->experts_used : m->folder && m->family == GPT2 ? 4 * m->width : -1);
    m->window = integer(m, "attention.sliding_window", 0, INT64_C(1) << 31,
                        m->folder ? folder_window_default(m->folder) : m->family == GEMMA2 ? 4096 : 0);
    m->pattern = 1;
    if (m->file && (m->family == GEMMA2 || m->family == GEMMA3)) {
        (void)snprintf(pattern, sizeof pattern, "%s.attention.sliding_window_pattern", m->arch);
        m->pattern = opd_tensor_file_metadata_count(m->file, pattern) >= 0 ? 0
                   : integer(m, "attention.sliding_window_pattern", 0, 100000, m->family == GEMMA2 ? 2 : 6);
    }
    if (real(m, "attention.causal", 0, 1, 1) != 1) {
        return bad(m, "is a model whose tokens see later ones, which this program does not know", m->arch);
    }
    const char *eps = m->family == GPT2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    m->eps = real(m, eps, 0, 1, NAN);
    const bool caps = m->family == GEMMA2, may_cap = caps || m->family == GEMMA3;
    m->cap_scores = caps ? cap_setting(m, "attn_logit_softcapping", 50) : 0;
    m->cap_logits = may_cap ? cap_setting(m, "final_logit_softcapping", caps ? 30 : 0) : 0;
    m->shares = !m->folder || m->family != QWEN3 || folder_true(m->folder, 0, "norm_topk_prob", false);
    if (!opd_ok()) { return -1; }
    /* gemma 2 and 3 with 27 billion weights scale by the width */
    const bool by_width = (m->family == GEMMA2 && m->blocks == 46) || (m->family == GEMMA3 && m->blocks == 62);
    const double by = by_width ? (double)m->width / (double)m->heads : (double)m->key_size;
    m->scale = 1 / sqrt(m->folder && may_cap ? real(m, "attention.scale", 1e-3, 1e6, NAN) : by);
    if (!opd_ok()) { return -1; }
    if (m->experts && m->family != LLAMA && m->family != QWEN3) {
        return bad(m, "has experts, which this program does not know for it", m->arch);
    }
    if (m->file && m->experts && integer(m, "expert_group_count", 0, 65536, 0) > 1) {
        return bad(m, "has groups of experts, which this program does not know", m->arch);
    }
    return 0;
}

#include "llama/rotation.h"

static void release_linear(linear *l) {
    opd_release(l->weight); opd_release(l->bias); opd_release(l->a); opd_release(l->b);
}
static void release_norm(norm *n) { opd_release(n->weight); opd_release(n->bias); }

static void model_close(model *m) {
    for (int64_t i = 0; m->block && i < m->blocks; i++) {
        block *b = &m->block[i];
        norm *norms[] = {&b->attn, &b->ffn, &b->q, &b->k, &b->after_attn, &b->after_ffn};
        linear *linears[] = {&b->wq, &b->wk, &b->wv, &b->wqkv, &b->wo, &b->gate, &b->up, &b->down, &b->route};
        for (int j = 0; j < 6; j++) { release_norm(norms[j]); }
        for (int j = 0; j < 9; j++) { release_linear(linears[j]); }
        for (int64_t j = 0; b->experts && j < 3 * m->experts; j++) { opd_release(b->experts[j]); }
        free(b->experts);
        opd_release(b->keys); opd_release(b->values);
    }
    for (int i = 0; i < 2; i++) { opd_release(m->cosines[i]); opd_release(m->sines[i]); }
    if (m->head.weight != m->tokens) { opd_release(m->head.weight); }
    opd_release(m->head.bias); opd_release(m->tokens); opd_release(m->positions);
    release_norm(&m->last);
    free(m->block);
    free(m->used);
    free(m->past);
    tok_free(m->vocabulary);
    opd_tensor_file_close(m->file);
    folder_close(m->folder);
}
static int64_t tensors_of(const model *m) { return m->file ? opd_tensor_file_count(m->file) : m->folder->tensors; }
/* Fails if the file has a tensor that was not read: then it is not the model that this program computes. */
static int all_used(const model *m) {
    for (int64_t i = 0; opd_ok() && i < tensors_of(m); i++) {
        int64_t at = i;
        const opd_tensor_file *file = m->file ? m->file : folder_part(m->folder, i, &at);
        const char *name = opd_tensor_file_name(file, at);
        if (m->used[i] || !name) { continue; }
        const bool harmless = m->folder ? folder_harmless(m->folder, name)
                            : strcmp(name, "rope_freqs.weight") == 0 || strcmp(name, "rope_factors_long.weight") == 0 ||
                              strcmp(name, "rope_factors_short.weight") == 0 ||
                              (strncmp(name, "blk.", 4) == 0 && strstr(name, ".attn_rot_embd"));
        if (!harmless) {
            return opd_fail(OPD_ERROR_FILE, "%s: this program does not know what the tensor '%s' does in a model of "
                            "the architecture %s with %lld blocks", m->path, name, m->arch, (long long)m->blocks);
        }
    }
    return opd_ok() ? 0 : -1;
}
static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}
/* Is this path a folder?  Reading one fails. */
static bool is_folder(const char *path) {
    char config[1100], byte;
    (void)snprintf(config, sizeof config, "%.1000s/config.json", path);
    FILE *file = fopen(path, "rb");
    const bool reads = !file || fread(&byte, 1, 1, file) == 1 || !ferror(file);
    if (file) { (void)fclose(file); }
    return !reads || folder_has(config);
}
/* Reads the tokens that end a text from generation_config.json, or if it has none, from config.json. */
static int read_ends(model *m) {
    char path[1024];
    tok_vocabulary *v = m->vocabulary;
    (void)snprintf(path, sizeof path, "%.900s/generation_config.json", m->path);
    opd_json *own = folder_has(path) ? opd_json_load(path) : NULL, *json = own;
    int64_t value = json ? opd_json_get(json, 0, "eos_token_id") : -1;
    if (opd_json_kind_of(json, value) < OPD_JSON_INT) {
        json = m->folder->config;
        value = opd_json_get(json, 0, "eos_token_id");
        (void)snprintf(path, sizeof path, "%s", m->folder->config_path);
    }
    const bool list = opd_json_kind_of(json, value) == OPD_JSON_LIST;
    if (opd_json_kind_of(json, value) < OPD_JSON_INT) { value = -1; }
    for (int64_t at = list ? opd_json_first(json, value) : value; at >= 0 && opd_ok(); ) {
        const int64_t id = opd_json_int(json, at, -1);
        if (id < 0 || v->ends_count == (int)(sizeof v->ends / sizeof *v->ends)) {
            (void)opd_fail(OPD_ERROR_FILE, "%s: 'eos_token_id' is neither a token nor a list of up to 16 tokens", path);
        } else if (id < m->words) { v->ends[v->ends_count++] = (int32_t)id; }
        else {
            opd_warn("%s: 'eos_token_id' is %lld, which is no token of the vocabulary of %lld, and ends no text", path,
                     (long long)id, (long long)m->words);
        }
        at = list ? opd_json_next(json, at) : -1;
    }
    opd_json_free(own);
    return opd_ok() ? 0 : -1;
}
static int read_vocabulary(model *m) {
    char path[1024];
    if (m->file) { m->vocabulary = tok_open(m->file); }
    else {
        m->words = integer(m, "vocab_size", 0, INT64_C(1) << 24, -1);
        m->tokens = weight(m, tensor_name(m, -1, "token_embd", -1, "weight", path), 0, m->words, m->width, true);
        (void)snprintf(path, sizeof path, "%.900s/tokenizer.json", m->path);
        if (opd_ok() && !folder_has(path)) {
            return opd_fail(OPD_ERROR_FILE, "%s has no tokenizer.json; other forms of vocabularies, such as "
                            "tokenizer.model, are not read", m->path);
        }
        m->vocabulary = opd_ok() ? tok_open_json(path, m->words) : NULL;
    }
    if (!m->vocabulary) { return -1; }
    if (m->folder) { return read_ends(m); }
    m->words = m->vocabulary->count;
    m->tokens = weight(m, "token_embd.weight", 0, m->words, m->width, true);
    return opd_ok() ? 0 : -1;
}
/* If a folder's head is tied to the embeddings, and the folder has the head, too: are they equal? */
static bool tied_head_is_equal(const model *m) {
    const int64_t place = folder_find(m->folder, "lm_head.weight");
    bool equal = place < 0;
    OPD_SCOPE {
        char name[160];
        const int64_t words = folder_find(m->folder, tensor_name(m, -1, "token_embd", -1, "weight", name));
        opd_tensor *head = equal ? NULL : tensor_at(m, place, "lm_head.weight");
        equal = equal || (head && opd_equal(head, tensor_at(m, words, name)));
    }
    return equal || !opd_ok();
}
/* Opens a model, with room for `context` tokens (0: what the model was trained for, at most 4096). */
static int model_open(model *m, const char *path, int64_t context) {
    char name[160];
    memset(m, 0, sizeof *m);
    m->path = path;
    if (is_folder(path)) { m->folder = folder_open(path); }
    else if (ends_with(path, ".json") || ends_with(path, ".safetensors")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s is only a part of a model: give the folder, or a GGUF file", path);
    } else { m->file = opd_tensor_file_open(path); }
    if ((!m->file && !m->folder) || read_settings(m) != 0) { return -1; }
    m->context = context ? context : m->trained_context < 4096 ? m->trained_context : 4096;
    m->used = (bool *)calloc((size_t)tensors_of(m) + 1, sizeof *m->used);
    if (!m->used) { return opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its tensors", path); }
    if (read_vocabulary(m) != 0) { return -1; }
    m->last = norm_of(m, -1, "output_norm", m->width);
    if (!m->folder || !m->folder->tied) {
        m->head.weight = weight(m, tensor_name(m, -1, "output", -1, "weight", name), 0, m->words, m->width, m->folder);
    }
    if (!m->head.weight) { m->head.weight = m->tokens; }
    if (m->file && m->family == QWEN2) { m->head.bias = weight(m, "output.bias", 0, 0, m->words, false); }
    if (opd_ok() && m->folder && m->folder->tied && !tied_head_is_equal(m)) {
        return opd_fail(OPD_ERROR_FILE, "%s: 'tie_word_embeddings' is true, but the tensor 'lm_head.weight' differs "
                        "from the embeddings", settings_of(m));
    }
    if (m->family == GPT2) {
        m->positions = weight(m, tensor_name(m, -1, "position_embd", -1, "weight", name), 0, m->trained_context,
                              m->width, true);
        if (m->context > m->trained_context) { m->context = m->trained_context; }
        if (m->positions && opd_dtype_block(opd_dtype(m->positions), NULL) > 1) {
            opd_tensor *in_blocks = m->positions;
            OPD_SCOPE { m->positions = opd_keep(opd_dequantize(in_blocks)); }
            opd_release(in_blocks);
        }
    }
    /* the blocks are named in the file before there is memory for them */
    (void)tensor_name(m, m->blocks - 1, "attn_norm", -1, "weight", name);
    if (opd_ok() && (m->file ? opd_tensor_file_find(m->file, name) : folder_find(m->folder, name)) < 0) {
        char key[128];
        (void)setting(m, "block_count", key);
        return opd_fail(OPD_ERROR_FILE, "%s: '%s' is %lld, but the tensor '%s' is missing", settings_of(m), key,
                        (long long)m->blocks, name);
    }
    m->block = opd_ok() ? (block *)calloc((size_t)m->blocks, sizeof *m->block) : NULL;
    if (opd_ok() && !m->block) {
        return opd_fail(OPD_ERROR_MEMORY, "%s: no memory for %lld blocks", path, (long long)m->blocks);
    }
    for (int64_t i = 0; i < m->blocks && opd_ok(); i++) { read_block(m, (int)i, &m->block[i]); }
    /* memory for angles after the blocks, whose tensors say that the size of a head is right */
    if (opd_ok() && m->family != GPT2 && read_angles(m, 0) == 0 &&
        (m->family == GEMMA3 || (m->family == GEMMA2 && m->file))) { (void)read_angles(m, 1); }
    return all_used(m);
}
/* Makes the cache, with room for so many tokens of each text.  dtype: OPD_FLOAT32, OPD_WEIGHT_F16 or OPD_Q8_0. */
static int cache_open(model *m, int64_t texts, int64_t room, opd_scalar_type dtype) {
    const bool blocks = dtype != OPD_FLOAT32;              /* of 32 numbers */
    if (blocks && (m->key_size % 32 || m->value_size % 32)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: --cache f16 and q8_0 need heads of a multiple of 32 numbers, but the "
                        "heads of this model have %lld", m->path, (long long)m->key_size);
    }
    m->texts = texts;
    m->room = room < m->context ? room : m->context;
    m->past = (int64_t *)calloc((size_t)texts, sizeof *m->past);
    if (!m->past) { return opd_fail(OPD_ERROR_MEMORY, "%s: no memory for %lld texts", m->path, (long long)texts); }
    for (int64_t i = 0; i < m->blocks && opd_ok(); i++) {
        block *b = &m->block[i];
        b->keys = opd_keep(opd_tensor_new_on(OPD_INTS(texts, b->kv_heads, m->room, m->key_size), dtype, place));
        b->values = opd_keep(opd_tensor_new_on(OPD_INTS(texts, b->kv_heads, m->room, m->value_size), dtype, place));
    }
    return opd_ok() ? 0 : -1;
}

//-- the network -------------------------------------------------------------------------------------------------------

/* Some tokens of a text: its place in the cache, and how many. */
typedef struct span { int64_t text, tokens; } span;
/* Tokens that go through the network together: `rows` of them, which belong to several texts. */
typedef struct batch {
    const span *span;
    int64_t spans, rows;
    bool cached;                                  /* the tokens follow those in the cache, and are added to it */
    opd_tensor *places, *cosines[2], *sines[2];   /* the place of each token in its text, and its angles */
} batch;
static int64_t past_of(const model *m, const batch *all, int64_t i) {
    return all->cached ? m->past[all->span[i].text] : 0;
}
/* x [tokens, in] -> [tokens, out] */
static opd_tensor *apply(const model *m, const linear *l, opd_tensor *x) {
    opd_tensor *y = opd_linear(x, l->weight, l->bias);
    if (!l->a) { return y; }
    return opd_add_full(y, opd_linear(opd_linear(x, l->a, NULL), l->b, NULL), OPD_V(m->adapter_scale));
}
static opd_tensor *normalise(const model *m, const norm *n, opd_tensor *x) {
    const int64_t size = opd_size(x, -1);
    if (m->family == GPT2) { return opd_layer_norm(x, OPD_INTS(size), n->weight, n->bias, m->eps); }
    return opd_rms_norm(x, OPD_INTS(size), n->weight, OPD_V(m->eps));
}
static opd_tensor *cap(opd_tensor *x, double limit) {
    return limit > 0 ? opd_mul_Scalar(opd_tanh(opd_mul_Scalar(x, OPD_V(1 / limit))), OPD_V(limit)) : x;
}
/* Returns which keys each token sees, bool [tokens, keys].  The first token has the position `past`, the first key the
   position `from`. */
static opd_tensor *sight(const model *m, const block *b, int64_t tokens, int64_t keys, int64_t past, int64_t from) {
    opd_tensor *mask = opd_tensor_new(OPD_INTS(tokens, keys), OPD_BOOL);
    bool *sees = mask ? opd_data_bool(mask) : NULL;
    for (int64_t i = 0; sees && i < tokens; i++) {
        for (int64_t j = 0; j < keys; j++) {
            const int64_t behind = past + i - (from + j);
            *sees++ = behind >= 0 && (!b->window || behind < m->window);
        }
    }
    return there(mask);
}
/* Attention of q [heads, tokens, size] over k and v [kv heads, keys, size], which may be in blocks. */
static opd_tensor *attend(const model *m, opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *mask, bool causal) {
    if (!(m->cap_scores > 0) && opd_dtype(k) == OPD_FLOAT32) {
        return opd_select(opd_scaled_dot_product_attention_full(opd_unsqueeze(q, 0), opd_unsqueeze(k, 0),
                                                                opd_unsqueeze(v, 0), mask, 0, causal, OPD_V(m->scale),
                                                                true),
                          0, 0);
    }
    const int64_t kv_heads = opd_size(k, 0), tokens = opd_size(q, 1), keys = opd_size(k, 1),
                  group = opd_size(q, 0) / kv_heads;
    q = opd_reshape(q, OPD_INTS(kv_heads, group * tokens, m->key_size));
    opd_tensor *scores = cap(opd_mul_Scalar(opd_bmm(q, opd_transpose(k, 1, 2)), OPD_V(m->scale)), m->cap_scores);
    scores = opd_reshape(scores, OPD_INTS(kv_heads, group, tokens, keys));
    if (mask) { scores = opd_masked_fill_Scalar(scores, opd_logical_not(mask), OPD_V(-INFINITY)); }
    scores = opd_reshape(opd_softmax(scores, 3), OPD_INTS(kv_heads, group * tokens, keys));
    return opd_reshape(opd_bmm(scores, v), OPD_INTS(kv_heads * group, tokens, m->value_size));
}
/* Attention of one text of a batch: q [heads, tokens, size], k and v [kv heads, tokens, size] -> [tokens, ...]. */
static opd_tensor *attend_text(const model *m, const block *b, opd_tensor *q, opd_tensor *k, opd_tensor *v,
                               const batch *all, int64_t i) {
    const int64_t tokens = all->span[i].tokens, past = past_of(m, all, i);
    int64_t from = 0;
    if (all->cached) {
        opd_tensor *keys = opd_select(b->keys, 0, all->span[i].text), *values = opd_select(b->values, 0,
                                                                                           all->span[i].text);
        (void)opd_copy_(opd_narrow(keys, 1, past, tokens), k);
        (void)opd_copy_(opd_narrow(values, 1, past, tokens), v);
        from = b->window && past + 1 > m->window ? past + 1 - m->window : 0;
        k = opd_narrow(keys, 1, from, past + tokens - from);
        v = opd_narrow(values, 1, from, past + tokens - from);
    }
    const int64_t seen = past + tokens - from;
    const bool fused = !(m->cap_scores > 0) && opd_ok() && opd_dtype(k) == OPD_FLOAT32;
    const bool causal = tokens == seen && !(b->window && tokens > m->window) && fused;
    opd_tensor *mask = tokens == 1 || causal ? NULL : sight(m, b, tokens, seen, past, from);
    q = opd_ok() ? opd_transpose(attend(m, q, k, v, mask, causal && tokens > 1), 0, 1) : NULL;
    return q ? opd_reshape(q, OPD_INTS(tokens, m->heads * m->value_size)) : NULL;
}
/* x [rows, width] -> [rows, width] */
static opd_tensor *attention(const model *m, const block *b, opd_tensor *x, const batch *all) {
    const int64_t rows = all->rows, queries = m->heads * m->key_size, keys = b->kv_heads * m->key_size;
    const int64_t values = b->kv_heads * m->value_size;
    opd_tensor *q, *k, *v;
    if (b->wqkv.weight) {
        opd_tensor *joined = apply(m, &b->wqkv, x);
        q = opd_narrow(joined, 1, 0, queries);
        k = opd_narrow(joined, 1, queries, keys);
        v = opd_narrow(joined, 1, queries + keys, values);
    } else {
        q = apply(m, &b->wq, x);
        k = apply(m, &b->wk, x);
        v = apply(m, &b->wv, x);
    }
    q = opd_reshape(q, OPD_INTS(rows, m->heads, m->key_size));
    k = opd_reshape(k, OPD_INTS(rows, b->kv_heads, m->key_size));
    v = opd_transpose(opd_reshape(v, OPD_INTS(rows, b->kv_heads, m->value_size)), 0, 1);
    if (b->q.weight) { q = normalise(m, &b->q, q); }
    if (b->k.weight) { k = normalise(m, &b->k, k); }
    const int table = all->cosines[1] && b->window;
    if (all->cosines[table]) {
        q = rotate(q, all->cosines[table], all->sines[table], m->halves);
        k = rotate(k, all->cosines[table], all->sines[table], m->halves);
    }
    q = opd_transpose(q, 0, 1);
    k = opd_transpose(k, 0, 1);
    if (all->spans == 1) { return apply(m, &b->wo, attend_text(m, b, q, k, v, all, 0)); }
    opd_tensor **parts = (opd_tensor **)calloc((size_t)all->spans, sizeof *parts);
    if (!parts) { (void)opd_fail(OPD_ERROR_MEMORY, "%s: no memory for a batch", m->path); return NULL; }
    for (int64_t i = 0, row = 0; i < all->spans && opd_ok(); row += all->span[i++].tokens) {
        const int64_t n = all->span[i].tokens;
        parts[i] = attend_text(m, b, opd_narrow(q, 1, row, n), opd_narrow(k, 1, row, n), opd_narrow(v, 1, row, n), all,
                               i);
    }
    x = opd_ok() ? opd_cat(opd_tensors_of(parts, all->spans), 0) : NULL;
    free(parts);
    return apply(m, &b->wo, x);
}
static opd_tensor *activation(const model *m, opd_tensor *x) {
    const bool gelu = m->family == GEMMA || m->family == GEMMA2 || m->family == GEMMA3 || m->family == GPT2;
    return gelu ? opd_gelu_full(x, "tanh") : opd_silu(x);
}
/* A mixture of experts: each token uses the best `experts_used`, weighted by their shares. */
static opd_tensor *mixture(const model *m, const block *b, opd_tensor *x) {
    opd_tensor *best[2], *sum = opd_zeros_like(x);
    if (opd_topk(best, opd_softmax(apply(m, &b->route, x), 1), m->experts_used) < 0) { return NULL; }
    opd_tensor *shares = m->shares ? opd_div(best[0], opd_sum_dim(best[0], OPD_INTS(1), true)) : best[0];
    const int64_t *chosen = opd_data_i64(back(best[1])), tokens = opd_size(x, 0);
    for (int64_t expert = 0; chosen && expert < m->experts && opd_ok(); expert++) {
        int64_t n = 0;
        for (int64_t i = 0; i < tokens * m->experts_used; i++) { n += chosen[i] == expert; }
        if (n == 0) { continue; }
        opd_tensor *rows = opd_tensor_new(OPD_INTS(n), OPD_INT64), *places = opd_tensor_new(OPD_INTS(n), OPD_INT64);
        int64_t *row = opd_data_i64(rows), *place = opd_data_i64(places);
        for (int64_t i = 0; row && place && i < tokens * m->experts_used; i++) {
            if (chosen[i] == expert) { *row++ = i / m->experts_used; *place++ = i; }
        }
        rows = there(rows);
        opd_tensor *part = opd_index_select(x, 0, rows);
        opd_tensor *share = opd_index_select(opd_reshape(shares, OPD_INTS(-1, 1)), 0, there(places));
        opd_tensor *gate = activation(m, opd_linear(part, b->experts[3 * expert], NULL));
        part = opd_mul(gate, opd_linear(part, b->experts[3 * expert + 1], NULL));
        part = opd_linear(part, b->experts[3 * expert + 2], NULL);
        sum = opd_index_add(sum, 0, rows, opd_mul(part, share));
    }
    return sum;
}
static opd_tensor *feed_forward(const model *m, const block *b, opd_tensor *x) {
    if (m->experts) { return mixture(m, b, x); }
    opd_tensor *up = apply(m, &b->up, x);
    if (m->family == PHI3) {
        opd_tensor *gate = activation(m, opd_narrow(up, 1, 0, m->hidden));
        up = opd_mul(gate, opd_narrow(up, 1, m->hidden, m->hidden));
    } else if (b->gate.weight) { up = opd_mul(activation(m, apply(m, &b->gate, x)), up); }
    else { up = activation(m, up); }
    return apply(m, &b->down, up);
}
static opd_tensor *run_block(const model *m, const block *b, opd_tensor *x, const batch *all) {
    OPD_SCOPED;
    opd_tensor *y = attention(m, b, normalise(m, &b->attn, x), all);
    x = opd_add(x, b->after_attn.weight ? normalise(m, &b->after_attn, y) : y);
    y = feed_forward(m, b, normalise(m, &b->ffn, x));
    return opd_scope_return(opd_add(x, b->after_ffn.weight ? normalise(m, &b->after_ffn, y) : y));
}
/* Checks a batch, and finds the places and angles of its tokens. */
static int batch_ready(const model *m, batch *all, opd_tensor *ids) {
    const int64_t *id = ids ? opd_data_i64(ids) : NULL;
    for (int64_t i = 0; i < all->spans; i++) {
        const int64_t tokens = all->span[i].tokens, most = all->cached && m->room < m->context ? m->room : m->context;
        if (tokens < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: there are no tokens", m->path); }
        if (past_of(m, all, i) + tokens > most) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "%s: the context is full: it has room for %lld tokens, and %lld are asked for (see "
                            "--context)",
                            m->path, (long long)most, (long long)(past_of(m, all, i) + tokens));
        }
        all->rows += tokens;
    }
    for (int64_t i = 0; id && i < all->rows; i++) {
        if (id[i] < 0 || id[i] >= m->words) {
            return opd_fail(OPD_ERROR_INDEX, "%s: the token %lld (element %lld) is not in the vocabulary of %lld",
                            m->path, (long long)id[i], (long long)i, (long long)m->words);
        }
    }
    all->places = opd_tensor_new(OPD_INTS(all->rows), OPD_INT64);
    int64_t *place = all->places ? opd_data_i64(all->places) : NULL;
    for (int64_t i = 0; place && i < all->spans; i++) {
        for (int64_t k = 0; k < all->span[i].tokens; k++) { *place++ = past_of(m, all, i) + k; }
    }
    all->places = there(all->places);
    for (int i = 0; i < 2 && m->cosines[i] && opd_ok(); i++) {
        all->cosines[i] = opd_index_select(m->cosines[i], 0, all->places);
        all->sines[i] = opd_index_select(m->sines[i], 0, all->places);
    }
    return opd_ok() ? 0 : -1;
}
/* ids [rows] of several texts -> logits [rows, words], or if `every` is false, [1, words] of the last row. */
static opd_tensor *forward_batch(model *m, opd_tensor *ids, const span *spans, int64_t n, bool every, bool cached) {
    OPD_SCOPED;
    batch all;
    memset(&all, 0, sizeof all);
    all.span = spans;
    all.spans = n;
    all.cached = cached;
    if (batch_ready(m, &all, ids) != 0) { return NULL; }
    opd_tensor *x = opd_embedding(m->tokens, there(ids));
    if (m->family == GEMMA || m->family == GEMMA2 || m->family == GEMMA3) {
        x = opd_mul_Scalar(x, OPD_V((float)sqrt((double)m->width)));
    }
    if (m->positions) { x = opd_add(x, opd_embedding(m->positions, all.places)); }
    for (int64_t i = 0; i < m->blocks && opd_ok(); i++) { x = run_block(m, &m->block[i], x, &all); }
    if (!every) { x = opd_narrow(x, 0, all.rows - 1, 1); }
    x = cap(opd_linear(normalise(m, &m->last, x), m->head.weight, m->head.bias), m->cap_logits);
    for (int64_t i = 0; i < n && cached && opd_ok(); i++) { m->past[spans[i].text] += spans[i].tokens; }
    return opd_scope_return(x);
}
/* The same for the tokens of one text, which has place 0 in the cache. */
static opd_tensor *forward(model *m, opd_tensor *ids, bool every, bool cached) {
    const span one = {0, ids ? opd_size(ids, 0) : 0};
    return forward_batch(m, ids, &one, 1, every, cached);
}

//-- choosing tokens, and writing text ---------------------------------------------------------------------------------

typedef struct settings {
    const char *model, *prompt, *prompts, *inputs, *outputs, *train, *save, *adapter, *targets, *cache, *device, *load;
    int64_t tokens, context, top_k, rank, steps, length, parallel;
    double temperature, top_p, min_p, penalty, alpha, rate;
    uint64_t seed;
    bool exact, check, figures, sgd, special;
} settings;

typedef struct choice { double logit; int64_t id; } choice;

static double random_number(uint64_t *state) {             /* splitmix64; from 0 to below 1 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}
static int compare_choices(const void *a, const void *b) {
    const choice *x = (const choice *)a, *y = (const choice *)b;
    return x->logit > y->logit ? -1 : x->logit < y->logit ? 1 : x->id < y->id ? -1 : x->id > y->id;
}
/* Chooses the next token by logits[words], which are changed.  recent: the last tokens, which are made less likely. */
static int64_t choose(float *logits, int64_t words, const int32_t *recent, int64_t nrecent, settings *s) {
    int64_t best = 0, n = 0;
    for (int64_t i = 0; i < words; i++) {
        if (!isfinite(logits[i])) {
            return opd_fail(OPD_ERROR_FILE, "the logit of token %lld is not finite: the model or its adapter has "
                            "numbers that are broken or too large", (long long)i);
        }
    }
    for (int64_t i = 0; i < nrecent && s->penalty != 1; i++) {
        bool before = false;
        for (int64_t j = 0; j < i && !before; j++) { before = recent[j] == recent[i]; }
        float *logit = &logits[recent[i]];
        if (!before) { *logit = (float)(*logit > 0 ? *logit / s->penalty : *logit * s->penalty); }
    }
    for (int64_t i = 1; i < words; i++) { if (logits[i] > logits[best]) { best = i; } }
    if (!(s->temperature > 0)) { return best; }
    choice *list = (choice *)malloc((size_t)words * sizeof *list);
    if (!list) { return opd_fail(OPD_ERROR_MEMORY, "no memory for %lld choices", (long long)words); }
    const float top = logits[best], least = top - (float)(30 * fmax(1, s->temperature));
    for (int64_t i = 0; i < words; i++) {                  /* the shares of the others are too small to matter */
        if (logits[i] >= least) { list[n].logit = logits[i] - top; list[n++].id = i; }
    }
    qsort(list, (size_t)n, sizeof *list, compare_choices);
    if (s->top_k > 0 && n > s->top_k) { n = s->top_k; }
    double sum = 0, share = 0;
    for (int64_t i = 0; i < n; i++) { sum += exp(list[i].logit); }
    for (int64_t i = 0; i < n && s->top_p < 1; i++) {
        share += exp(list[i].logit) / sum;
        if (share >= s->top_p) { n = i + 1; }
    }
    while (n > 1 && s->min_p > 0 && list[n - 1].logit < log(s->min_p)) { n--; }
    sum = 0;
    for (int64_t i = 0; i < n; i++) { sum += exp(list[i].logit / s->temperature); }
    double left = random_number(&s->seed) * sum;
    best = list[n - 1].id;
    for (int64_t i = 0; i < n; i++) {
        left -= exp(list[i].logit / s->temperature);
        if (left < 0) { best = list[i].id; break; }
    }
    free(list);
    return best;
}
static double seconds(void) {
    struct timespec now;
    (void)timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
static opd_tensor *ids_tensor(const int32_t *ids, int64_t count) {
    opd_tensor *t = opd_tensor_new(OPD_INTS(count), OPD_INT64);
    int64_t *to = t ? opd_data_i64(t) : NULL;
    for (int64_t i = 0; to && i < count; i++) { to[i] = ids[i]; }
    return t;
}
static void print_rate(const char *what, int64_t tokens, int64_t timed, double time) {
    (void)fprintf(stderr, "%s: %lld tokens", what, (long long)tokens);
    if (timed > 0 && time > 0) { (void)fprintf(stderr, ", %.1f per second", (double)timed / time); }
}
/* A text that is being written. */
typedef struct writing {
    const char *prompt;
    tok_ids ids;                                  /* of the prompt, and those that follow */
    int64_t given, place;                         /* tokens of the prompt; the place in the cache, -1: none */
    uint64_t seed;
    bool done;
    tok_text text;                                /* what was written, but not yet printed */
} writing;
enum { PART = 512 };                              /* tokens of a prompt that are computed at a time */

/* Chooses the next token of a text by logits[words], which are kept, and decides whether the text is done. */
static int write_token(const model *m, writing *w, const float *logits, int64_t made, settings *s, bool stops) {
    settings own = *s;
    const int64_t back = w->ids.count < 64 ? w->ids.count : 64;
    const int64_t choices = m->vocabulary->count < m->words ? m->vocabulary->count : m->words;
    float *copy = (float *)malloc((size_t)m->words * sizeof *copy);
    if (!copy) { return opd_fail(OPD_ERROR_MEMORY, "no memory for %lld logits", (long long)m->words); }
    memcpy(copy, logits, (size_t)m->words * sizeof *copy);
    own.seed = w->seed;
    const int64_t id = choose(copy, choices, w->ids.at + w->ids.count - back, back, &own);
    w->seed = own.seed;
    free(copy);
    if (id < 0 || tok_push(&w->ids, (int32_t)id) != 0) { return -1; }
    w->done = (stops && tok_ends(m->vocabulary, (int32_t)id)) || made + 1 >= s->tokens ||
              m->past[w->place] == m->context;
    if (stops && tok_ends(m->vocabulary, (int32_t)id)) { return 0; }
    return tok_piece(m->vocabulary, (int32_t)id, &w->text);
}
/* Computes the prompt of a text, at its place in the cache, and chooses its first token.  like: another text with the
   same prompt that was just computed, or NULL. */
static int write_first(model *m, writing *w, const writing *like, opd_tensor **logits, settings *s, bool stops) {
    if (w->given == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "the prompt is empty: give --prompt TEXT"); }
    m->past[w->place] = 0;
    for (int64_t i = 0; i < m->blocks && like && opd_ok(); i++) {
        const block *b = &m->block[i];
        opd_tensor *caches[] = {b->keys, b->values};
        for (int k = 0; k < 2; k++) {
            (void)opd_copy_(opd_narrow(opd_select(caches[k], 0, w->place), 1, 0, w->given),
                            opd_narrow(opd_select(caches[k], 0, like->place), 1, 0, w->given));
        }
    }
    if (like) { m->past[w->place] = w->given; }
    while (m->past[w->place] < w->given && opd_ok()) {
        const int64_t left = w->given - m->past[w->place];
        const span part = {w->place, left < PART ? left : PART};
        *logits = forward_batch(m, ids_tensor(w->ids.at + m->past[w->place], part.tokens), &part, 1, false, true);
    }
    const float *data = opd_ok() ? opd_data_f32(back(*logits)) : NULL;
    return data ? write_token(m, w, data, 0, s, stops) : -1;
}
/* Gives all texts that are not done a further token: one step through the weights for all of them. */
static int write_step(model *m, writing *list, int64_t n, settings *s, bool stops) {
    OPD_SCOPED;
    span *spans = (span *)calloc((size_t)m->texts, sizeof *spans);
    opd_tensor *ids = opd_tensor_new(OPD_INTS(m->texts), OPD_INT64), *logits = NULL;
    int64_t *id = ids ? opd_data_i64(ids) : NULL, active = 0;
    if (!spans) { (void)opd_fail(OPD_ERROR_MEMORY, "no memory for %lld texts", (long long)n); }
    for (int64_t i = 0; i < n && id && spans; i++) {
        if (list[i].done || list[i].place < 0) { continue; }
        spans[active].text = list[i].place;
        spans[active].tokens = 1;
        id[active++] = list[i].ids.at[list[i].ids.count - 1];
    }
    if (opd_ok()) { logits = forward_batch(m, opd_narrow(ids, 0, 0, active), spans, active, true, true); }
    const float *data = logits ? opd_data_f32(back(logits)) : NULL;
    for (int64_t i = 0; i < n && data && opd_ok(); i++) {
        if (list[i].done || list[i].place < 0) { continue; }
        (void)write_token(m, &list[i], data, list[i].ids.count - list[i].given, s, stops);
        data += m->words;
    }
    free(spans);
    return opd_ok() ? 0 : -1;
}
/* Prints what was written.  Of several texts, each is printed when it and those before it are done: printed counts
   them. */
static void print_texts(writing *list, int64_t n, int64_t *printed, FILE *out) {
    for (; *printed < n && (n == 1 || list[*printed].done); ++*printed) {
        writing *w = &list[*printed];
        if (n > 1) {
            (void)fprintf(out, "--- text %lld of %lld ---\n%s", (long long)*printed + 1, (long long)n, w->prompt);
        }
        if ((w->text.count && fwrite(w->text.at, 1, (size_t)w->text.count, out) != (size_t)w->text.count) ||
            (n > 1 && fputc('\n', out) == EOF) || fflush(out) != 0) {
            (void)opd_fail(OPD_ERROR_FILE, "the text cannot be written: %s", strerror(errno));
        }
        w->text.count = 0;
        if (n == 1) { return; }
    }
}
/* Says on stderr how fast the texts were written, and how much memory their cache needs. */
static void print_rates(const model *m, const writing *list, int64_t n, double prompts, double texts) {
    int64_t given = 0, made = 0, bytes = 0, full = 0, started = 0;
    for (int64_t i = 0; i < n; i++) {
        given += list[i].given;
        made += list[i].ids.count - list[i].given;
        started += list[i].ids.count > list[i].given;
        full += list[i].ids.count > m->context;
    }
    for (int64_t i = 0; i < m->blocks; i++) {
        opd_tensor *caches[] = {m->block[i].keys, m->block[i].values};
        for (int k = 0; k < 2; k++) {
            int64_t block_bytes;
            const int64_t numbers = opd_dtype_block(opd_dtype(caches[k]), &block_bytes);
            bytes += opd_numel(caches[k]) / numbers * block_bytes;
        }
    }
    print_rate("prompt", given, given, prompts);
    print_rate("; text", made, made - started, texts);
    (void)fprintf(stderr, "\ncache: %.3g MB, for %lld tokens of %lld %s\n", (double)bytes / 1e6, (long long)m->room,
                  (long long)m->texts, m->texts == 1 ? "text" : "texts");
    if (full) { (void)fprintf(stderr, "the context of %lld tokens is full\n", (long long)m->context); }
}
/* Appends up to s->tokens tokens to each text, and prints them to `out`, or if that is NULL, ends at no special token.
   As many texts are written at a time as the cache has room for.  same: they have the same prompt. */
static int generate(model *m, writing *list, int64_t n, bool same, settings *s, FILE *out) {
    int64_t next = 0, left = n, printed = 0;
    double prompts = 0, texts = 0;
    for (int64_t i = 0; i < n; i++) {
        list[i].given = list[i].ids.count;
        list[i].place = -1;
        list[i].seed = s->seed + (uint64_t)i;
        list[i].done = s->tokens == 0;
    }
    while (left > 0 && s->tokens > 0 && opd_ok()) {
        OPD_SCOPED;
        opd_tensor *logits = NULL;
        const double began = seconds();
        for (int64_t i = 0; i < next; i++) {
            if (list[i].done && list[i].place >= 0) { list[i].place = -1; left--; }
        }
        for (int64_t place = 0; place < m->texts && next < n && opd_ok(); place++) {
            bool taken = false;
            for (int64_t i = 0; i < next; i++) { taken = taken || list[i].place == place; }
            if (taken) { continue; }
            list[next].place = place;
            (void)write_first(m, &list[next], same && logits ? &list[next - 1] : NULL, &logits, s, out != NULL);
            next++;
            if (out) { print_texts(list, n, &printed, out); }
        }
        const double answered = seconds();
        bool writes = false;
        for (int64_t i = 0; i < next; i++) { writes = writes || !list[i].done; }
        if (writes && opd_ok()) { (void)write_step(m, list, n, s, out != NULL); }
        if (out && opd_ok()) { print_texts(list, n, &printed, out); }
        prompts += answered - began;
        texts += seconds() - answered;
    }
    if (out && opd_ok()) {
        print_texts(list, n, &printed, out);
        if (n == 1) { (void)fprintf(out, "\n"); }
        print_rates(m, list, n, prompts, texts);
    }
    return opd_ok() ? 0 : -1;
}
/* Writes the logits of all positions of the tokens in0, [tokens] or [rows, tokens], as out0.  If there is a cache, they
   are computed by way of it. */
static int write_logits(model *m, const char *inputs, const char *outputs) {
    static const char *const name[] = {"out0"};
    opd_tensor_file *file = opd_tensor_file_open(inputs);
    opd_tensor *ids = file ? opd_tensor_file_get(file, "in0") : NULL, *rows[256];
    if (ids && (opd_dtype(ids) != OPD_INT64 || opd_ndim(ids) < 1 || opd_ndim(ids) > 2 ||
                (opd_ndim(ids) == 2 && (opd_size(ids, 0) < 1 || opd_size(ids, 0) > 256)))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: in0 must be int64 [tokens] or [rows, tokens], with 1 to 256 rows",
                       inputs);
    }
    const bool one = ids && opd_ndim(ids) == 1;
    int64_t n = ids ? one ? 1 : opd_size(ids, 0) : 0;
    for (int64_t i = 0; i < n && opd_ok(); i++) {
        if (m->past) { m->past[0] = 0; }
        rows[i] = back(forward(m, opd_contiguous(one ? ids : opd_select(ids, 0, i)), true, m->past != NULL));
    }
    if (opd_ok()) {
        opd_tensor *all = one ? rows[0] : opd_stack(opd_tensors_of(rows, n), 0);
        (void)opd_npz_save(outputs, name, opd_tensors_of(&all, 1));
    }
    opd_tensor_file_close(file);
    return opd_ok() ? 0 : -1;
}

//-- training ----------------------------------------------------------------------------------------------------------

#include "llama/adapters.h"

/* Collects the factors of all adapters, which get gradients from now on.  Returns their number. */
static int adapters_of(model *m, opd_tensor **list, int cap) {
    int n = 0;
    for (int64_t i = 0; i < m->blocks * LINEARS; i++) {
        const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        if (!l->a || n + 2 > cap) { continue; }
        list[n++] = opd_tensor_set_requires_grad(l->a, true);
        list[n++] = opd_tensor_set_requires_grad(l->b, true);
    }
    return n;
}
/* The mean loss of ids[1..] after ids[..n - 1). */
static opd_tensor *loss_of(model *m, opd_tensor *ids) {
    const int64_t n = opd_size(ids, 0) - 1;
    opd_tensor *logits = forward(m, opd_narrow(ids, 0, 0, n), true, false);
    return opd_cross_entropy_loss(logits, there(opd_narrow(ids, 0, 1, n)));
}
static char *read_text(const char *path, int64_t *bytes) {
    FILE *f = fopen(path, "rb");
    tok_text text = {NULL, 0, 0};
    char part[4096];
    size_t n = 0;
    if (!f) { (void)opd_fail(OPD_ERROR_FILE, "%s cannot be opened: %s", path, strerror(errno)); return NULL; }
    while ((n = fread(part, 1, sizeof part, f)) > 0 && tok_append(&text, part, (int64_t)n) == 0) { }
    if (ferror(f)) { (void)opd_fail(OPD_ERROR_FILE, "%s cannot be read: %s", path, strerror(errno)); }
    (void)tok_append(&text, "", 1);
    (void)fclose(f);
    *bytes = text.count - 1;
    return text.at;
}
/* Fails if a file cannot be written, before hours of training. */
static int try_to_write(const char *path) {
    char part[1100], byte;
    (void)snprintf(part, sizeof part, "%.1080s.part~", path);
    const size_t length = strlen(path);
    if (!length || path[length - 1] == '/' || length > 1000) {
        return opd_fail(OPD_ERROR_ARGUMENT, "--save '%.60s': this is no name of a file%s", path,
                        length > 1000 ? ", or too long a name" : "");
    }
    FILE *made = fopen(part, "wb"), *old = made ? fopen(path, "rb") : NULL;
    if (!made) { return opd_fail(OPD_ERROR_FILE, "--save %s: it cannot be written: %s", path, strerror(errno)); }
    (void)fclose(made);
    (void)remove(part);
    if (old && fread(&byte, 1, 1, old) != 1 && ferror(old)) {              /* a folder */
        (void)opd_fail(OPD_ERROR_FILE, "--save %s: it cannot be written: %s", path, strerror(errno));
    }
    if (old) { (void)fclose(old); }
    return opd_ok() ? 0 : -1;
}
static int all_finite(opd_tensor **list, int count) {
    for (int i = 0; i < count; i++) {
        OPD_SCOPED;
        const float *data = opd_data_f32(back(list[i]));
        for (int64_t k = 0; data && k < opd_numel(list[i]); k++) {
            if (!isfinite(data[k])) {
                return opd_fail(OPD_ERROR_ARGUMENT, "the adapter has numbers that are not finite, so it is not saved: "
                                "try a smaller --lr");
            }
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Trains adapters on random pieces of a text. */
static int train(model *m, settings *s) {
    int64_t bytes = 0;
    char *text = read_text(s->train, &bytes);
    if (!s->save) { (void)fprintf(stderr, "llama: without --save, the adapter is lost at the end\n"); }
    else if (opd_ok()) { (void)try_to_write(s->save); }
    tok_ids ids = {NULL, 0, 0};
    const int cap = (int)(2 * m->blocks * LINEARS);
    opd_tensor **list = (opd_tensor **)calloc((size_t)cap, sizeof *list);
    if (!list) { (void)opd_fail(OPD_ERROR_MEMORY, "no memory for %d adapters", cap); }
    const char *targets = s->targets ? s->targets : m->block[0].wqkv.weight ? "attn_qkv" : "attn_q,attn_v";
    if (opd_ok() && !s->adapter) {
        (void)adapters_new(m, targets, s->rank ? s->rank : 8, s->alpha > 0 ? s->alpha : 16);
    }
    const int count = opd_ok() ? adapters_of(m, list, cap) : 0;
    if (opd_ok()) { (void)tok_encode(m->vocabulary, text, bytes, true, false, &ids); }
    if (opd_ok() && ids.count < 2) { (void)opd_fail(OPD_ERROR_ARGUMENT, "%s has fewer than 2 tokens", s->train); }
    opd_adam_options adamw = opd_adamw_defaults();
    opd_sgd_options sgd = opd_sgd_defaults();
    adamw.lr = sgd.lr = s->rate;
    opd_optimizer *optimizer = !opd_ok() ? NULL
                               : s->sgd  ? opd_sgd_new(list, count, &sgd)
                                         : opd_adamw_new(list, count, &adamw);
    const double began = seconds();
    double mean = 0;
    for (int64_t step = 1; step <= s->steps && opd_ok(); step++) {
        OPD_SCOPED;
        const int64_t n = ids.count < s->length + 1 ? ids.count : s->length + 1;
        const int64_t from = (int64_t)(random_number(&s->seed) * (double)(ids.count - n + 1));
        opd_tensor *loss = loss_of(m, ids_tensor(ids.at + from, n));
        const double now = loss ? opd_item_f64(loss) : 0;
        if (!isfinite(now)) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "the loss of step %lld is not finite: training stops, and nothing is "
                           "saved (try a smaller --lr)", (long long)step);
        }
        if (opd_backward(loss) != 0 || opd_optimizer_step(optimizer) != 0 || opd_optimizer_zero_grad(optimizer) != 0) {
            break;
        }
        mean = step == 1 ? now : 0.9 * mean + 0.1 * now;
        if (step == 1 || step % 10 == 0 || step == s->steps) {
            printf("step %lld of %lld: loss %.4f\n", (long long)step, (long long)s->steps, mean);
            (void)fflush(stdout);
            (void)fprintf(stderr, "%.1f tokens per second\n", (double)(step * (n - 1)) / fmax(1e-9, seconds() - began));
        }
    }
    if (opd_ok() && s->save && all_finite(list, count) == 0 &&
        adapters_save(m, s->save, opd_size(list[0], 0), m->adapter_scale * (double)opd_size(list[0], 0)) == 0) {
        printf("saved: %s\n", s->save);
    }
    opd_optimizer_free(optimizer);
    free(list); free(text); free(ids.at);
    return opd_ok() ? 0 : -1;
}

#include "llama/check.h"

//-- the program -------------------------------------------------------------------------------------------------------

static int usage(FILE *to, int status) {
    (void)fprintf(to,
        "usage: llama MODEL [--prompt TEXT] [options]\n"
        "  Writes text with a language model, or trains adapters (LoRA) for it.  MODEL is a GGUF file, or a folder\n"
        "  with config.json, model.safetensors (also in parts) and tokenizer.json, as Hugging Face's transformers\n"
        "  writes it.\n"
        "  Architectures: llama, mistral, mixtral, qwen2, qwen3, qwen3moe, gemma, gemma2, gemma3, phi3, gpt2.\n"
        "  --prompt TEXT         the beginning of the text; --special: it may contain the names of special tokens\n"
        "  --parallel N          writes N texts of the prompt at once; the seed of each is one higher\n"
        "  --prompts FILE        writes a text for each line of a file, --parallel N (8) at a time\n"
        "  --tokens N            how many tokens are written at most (128)\n"
        "  --context N           room for N tokens (as many as the model was trained for, at most 4096)\n"
        "  --cache TYPE          keeps keys and values as f32 (the default), f16 or q8_0, which need less memory\n"
        "  --temperature T       0: always the most likely token (the default); 1: tokens by their probabilities\n"
        "  --top-k K, --top-p P, --min-p P   leave out unlikely tokens (0, 1, 0: none)\n"
        "  --repeat-penalty R    makes the last 64 tokens less likely (1: not)\n"
        "  --seed S              of the random numbers (1)\n"
        "  --threads N           threads that compute\n"
        "  --device cuda[:N]     computes on a GPU; --load FILE loads the CUDA plug-in, unless it is linked in\n"
        "  --exact               does not round activations in products with weights in few bits\n"
        "  --inputs X.npz --outputs Y.npz   writes the logits out0 of all positions of the token ids in0 (int64);\n"
        "                        with --cache, they are computed by way of the cache\n"
        "  --adapter FILE        adds an adapter: .safetensors as PEFT writes it, or .gguf\n"
        "  --train FILE.txt      trains an adapter on a text; --save FILE saves it.  --rank N (8), --alpha A (16),\n"
        "                        --lr R (0.001), --steps N (100), --length N (128 tokens a step), --sgd (instead of\n"
        "                        AdamW), --targets LIST (attn_q,attn_v)\n"
        "  --check MODEL...      compares models with the results of llama.cpp in FILE.json and FILE.npz, or of\n"
        "                        transformers in FOLDER/golden.json and golden.npz; with --figures before it, prints\n"
        "                        the differences\n");
    return status;
}
/* If argv[*i] is this option, returns true and steps to its value.  Ends the program if there is none. */
static bool option(char **argv, int *i, const char *name) {
    if (strcmp(argv[*i], name) != 0) { return false; }
    if (!argv[++*i]) {
        (void)fprintf(stderr, "llama: %s needs a value\n", name);
        exit(2);
    }
    return true;
}
/* Reads an option with a number.  Returns false if argv[*i] is another option. */
static bool number_option(char **argv, int *i, const char *name, bool whole, double low, double high, double *number) {
    char *end;
    if (!option(argv, i, name)) { return false; }
    const double value = strtod(argv[*i], &end);
    if (*end || end == argv[*i] || !(value >= low && value <= high) || (whole && value != floor(value))) {
        (void)fprintf(stderr, "llama: %s needs a%s number from %.16g to %.16g\n", name, whole ? " whole" : "", low,
                      high);
        exit(2);
    }
    *number = value;
    return true;
}
static bool read_number(char **argv, int *i, settings *s) {
    const struct { const char *name; double low, high, *real; int64_t *whole;
    } options[] = {
        {"--tokens", 0, 1e9, NULL, &s->tokens},
        {"--context", 1, 2147483648.0, NULL, &s->context},
        {"--top-k", 0, 1e9, NULL, &s->top_k},
        {"--rank", 1, 65536, NULL, &s->rank},
        {"--steps", 1, 1e9, NULL, &s->steps},
        {"--length", 1, 1e9, NULL, &s->length},
        {"--parallel", 1, 1024, NULL, &s->parallel},
        {"--temperature", 0, 1000, &s->temperature, NULL},
        {"--top-p", 0, 1, &s->top_p, NULL},
        {"--min-p", 0, 1, &s->min_p, NULL},
        {"--repeat-penalty", 1e-3, 1e3, &s->penalty, NULL},
        {"--alpha", 1e-6, 1e6, &s->alpha, NULL},
        {"--lr", 0, 1e3, &s->rate, NULL},
    };
    double number = 0;
    for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
        if (!number_option(argv, i, options[k].name, options[k].whole != NULL, options[k].low, options[k].high,
                           &number)) { continue; }
        if (options[k].real) { *options[k].real = number; } else { *options[k].whole = (int64_t)number; }
        return true;
    }
    if (number_option(argv, i, "--seed", true, 0, 9007199254740992.0, &number)) {
        s->seed = (uint64_t)number;
        return true;
    }
    if (number_option(argv, i, "--threads", true, 1, 1024, &number)) {
        (void)opd_threads_set((int)number);
        return true;
    }
    return false;
}
static opd_scalar_type cache_dtype(const char *name) {
    return !name || strcmp(name, "f32") == 0 ? OPD_FLOAT32 : strcmp(name, "f16") == 0 ? OPD_WEIGHT_F16
         : strcmp(name, "q8_0") == 0 ? OPD_Q8_0 : OPD_DTYPE_NONE;
}
/* Returns what is wrong with options that do not fit together, or NULL. */
static const char *contradiction(const settings *s) {
    const bool of_new = s->rank || s->alpha > 0 || s->targets;
    const bool texts = s->prompts || s->parallel || s->cache;
    return s->save && !s->train ? "--save needs --train"
           : s->prompt && s->prompts ? "--prompt and --prompts cannot be used together"
           : s->prompts && s->inputs ? "--prompts cannot be used with --inputs"
           : s->parallel && s->inputs ? "--parallel cannot be used with --inputs"
           : s->train && texts ? "--prompts, --parallel and --cache cannot be used with --train"
           : s->cache && cache_dtype(s->cache) == OPD_DTYPE_NONE ? "--cache is f32, f16 or q8_0"
           : s->device && s->cache && cache_dtype(s->cache) != OPD_FLOAT32 ? "with --device, --cache is f32"
           : s->train && s->prompt ? "--prompt cannot be used with --train"
           : s->train && s->inputs ? "--inputs cannot be used with --train"
           : s->prompt && s->inputs ? "--prompt cannot be used with --inputs"
           : of_new && s->adapter ? "the --adapter has its own --rank, --alpha and --targets"
           : of_new && !s->train ? "--rank, --alpha and --targets need --train"
           : !s->inputs != !s->outputs ? "--inputs and --outputs need each other" : NULL;
}
/* Encodes the prompts of all texts, which are the lines of `lines` or, if that is NULL, the same prompt.  Returns the
   number of tokens of the longest, -1 with an error. */
static int64_t encode_prompts(const model *m, writing *list, int64_t n, char *lines, const settings *s) {
    int64_t longest = 0;
    bool warned = false;
    for (int64_t i = 0; i < n && opd_ok(); i++) {
        list[i].prompt = lines ? lines : s->prompt ? s->prompt : "";
        if (lines) {
            const size_t length = strcspn(lines, "\n");
            lines += length + (lines[length] == '\n');
            ((char *)list[i].prompt)[length] = 0;
            if (length && list[i].prompt[length - 1] == '\r') { ((char *)list[i].prompt)[length - 1] = 0; }
        }
        const int64_t bytes = (int64_t)strlen(list[i].prompt);
        if (!warned && m->folder && tok_may_compose(m->vocabulary, list[i].prompt, bytes)) {
            warned = true;
            opd_warn("the model wants text in the form NFC, and this program does not compose characters: if the "
                     "prompt is not in this form, other tokens than transformers' are used");
        }
        if (tok_encode(m->vocabulary, list[i].prompt, bytes, true, s->special, &list[i].ids) != 0) { break; }
        const int64_t count = list[i].ids.count;
        if (count > m->context) {
            char which[64] = "the prompt";
            if (n > 1) { (void)snprintf(which, sizeof which, "prompt %lld of %lld", (long long)i + 1, (long long)n); }
            (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has %lld tokens, but there is room for %lld (see --context)",
                           m->path, which, (long long)count, (long long)m->context);
        }
        if (count == 0 && !lines) { (void)opd_fail(OPD_ERROR_ARGUMENT, "the prompt is empty: give --prompt TEXT"); }
        if (count == 0 && lines) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "line %lld of %s is empty", (long long)i + 1, s->prompts);
        }
        if (count > longest) { longest = count; }
    }
    return opd_ok() ? longest : -1;
}
/* Writes the texts that the options ask for. */
static void write_texts(model *m, settings *s) {
    int64_t n = s->parallel ? s->parallel : 1, bytes = 0;
    char *lines = s->prompts ? read_text(s->prompts, &bytes) : NULL;
    if (lines && bytes && lines[bytes - 1] != '\n') { n = 1; } else if (lines) { n = 0; }
    for (int64_t i = 0; lines && i < bytes; i++) { n += lines[i] == '\n'; }
    if (lines && (n == 0 || strlen(lines) != (size_t)bytes)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s %s", s->prompts, n ? "has zero bytes" : "has no lines");
    }
    writing *list = opd_ok() ? (writing *)calloc((size_t)n, sizeof *list) : NULL;
    if (opd_ok() && !list) { (void)opd_fail(OPD_ERROR_MEMORY, "no memory for %lld texts", (long long)n); }
    const int64_t longest = opd_ok() ? encode_prompts(m, list, n, lines, s) : -1;
    const int64_t most = !lines ? n : s->parallel ? s->parallel : 8;
    if (longest >= 0 && cache_open(m, n < most ? n : most, longest + s->tokens, cache_dtype(s->cache)) == 0) {
        if (n == 1) { (void)fputs(list[0].prompt, stdout); }
        (void)fflush(stdout);
        (void)generate(m, list, n, !lines, s, stdout);
    }
    for (int64_t i = 0; list && i < n; i++) { free(list[i].ids.at); free(list[i].text.at); }
    free(list);
    free(lines);
}
static void run(settings *s) {
    OPD_SCOPED;
    model m;
    (void)opd_exact_blocks_set(s->exact);
    if (model_open(&m, s->model, s->context) != 0 || (s->adapter && adapters_load(&m, s->adapter) != 0)) { }
    else if (s->train) { (void)train(&m, s); }
    else {
        OPD_NO_GRAD {
            if (!s->inputs) { write_texts(&m, s); }
            else if (!s->cache || cache_open(&m, 1, m.context, cache_dtype(s->cache)) == 0) {
                (void)write_logits(&m, s->inputs, s->outputs);
            }
        }
    }
    model_close(&m);
}
/* Sets the device.  Behind --load, and before the models of --check. */
static int place_of(const char *name) {
    if (opd_device_parse(name, &place) != 0) { return -1; }
    if (place.type == OPD_CPU || opd_device_count((opd_backend)place.type) > 0) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "--device %s: there is no such device, or its plug-in is missing (--load comes "
                    "before --device)", name);
}
int main(int argc, char **argv) {
    settings s;
    memset(&s, 0, sizeof s);
    s.tokens = s.length = 128; s.steps = 100;
    s.top_p = s.penalty = 1; s.rate = 1e-3; s.seed = 1;
    int status = 0, checked = 0;
    for (int i = 1; i < argc; i++) {
        const struct { const char *name; const char **text;
        } texts[] = {
            {"--prompt", &s.prompt}, {"--inputs", &s.inputs},   {"--outputs", &s.outputs}, {"--train", &s.train},
            {"--save", &s.save},     {"--adapter", &s.adapter}, {"--targets", &s.targets}, {"--cache", &s.cache},
            {"--prompts", &s.prompts}, {"--device", &s.device}, {"--load", &s.load},
        };
        bool known = false;
        for (int k = 0; k < 11 && !known; k++) {
            known = option(argv, &i, texts[k].name);
            if (known) { *texts[k].text = argv[i]; }
        }
        if (known && argv[i] == s.load && !opd_plugin_load(s.load)) { return opd_finish(); }
        if (known && argv[i] == s.device && place_of(s.device) != 0) { return opd_finish(); }
        if (known || read_number(argv, &i, &s)) { continue; }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { return usage(stdout, 0); }
        else if (strcmp(argv[i], "--exact") == 0) { s.exact = true; }
        else if (strcmp(argv[i], "--sgd") == 0) { s.sgd = true; }
        else if (strcmp(argv[i], "--special") == 0) { s.special = true; }
        else if (strcmp(argv[i], "--check") == 0) { s.check = true; }
        else if (strcmp(argv[i], "--figures") == 0) { s.figures = true; }
        else if (argv[i][0] != '-' && s.check) {
            checked++;
            if (check(argv[i], s.figures) != 0) { status = 1; }
            if (!opd_ok()) {
                opd_warn("%s: %s", argv[i], opd_error_message());
                opd_error_clear();
            }
        }
        else if (argv[i][0] != '-' && !s.model) { s.model = argv[i]; }
        else { (void)fprintf(stderr, "llama: '%s' is not understood (see --help)\n", argv[i]); return 2; }
    }
    const char *wrong = s.check && (s.model || !checked) ? "--check needs files behind it, and no other"
                        : s.check ? NULL : contradiction(&s);
    if (wrong) { (void)fprintf(stderr, "llama: %s\n", wrong); return 2; }
    if (!s.model && !s.check) { return usage(stderr, 2); }
    if (!s.check) {
        opd_manual_seed(s.seed);
        run(&s);
    }
    if ((fflush(stdout) != 0 || ferror(stdout)) && opd_ok()) {
        (void)opd_fail(OPD_ERROR_FILE, "the output cannot be written");
    }
    if (!opd_ok() && s.model && !strstr(opd_error_message(), s.model)) {
        (void)fprintf(stderr, "llama: %s: ", s.model);
    }
    return opd_finish() || status;
}
