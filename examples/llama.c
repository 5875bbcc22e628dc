/* Runs a language model from a GGUF file, and trains adapters (LoRA) for it.
   cc -O2 examples/llama.c -o llama -lm && ./llama --check tests/golden/gguf/llama_Q4_0.gguf
   ci: --check tests/golden/llama/[a-z]*.gguf tests/golden/gguf/{gpt2_BF16,llama_Q4_K_M,qwen2_Q8_0,vocab_llama-bpe}.gguf

   ./llama MODEL.gguf --prompt "The sea is" writes text.  ./llama --help explains the other options.

   The file has four parts:
   1. the settings and weights of the file, each of which is checked before it is used;
   2. the network, which is about 150 lines of operator calls.  Weights in few bits stay as they are in the mapped file:
      opd_linear and opd_embedding take them.  Only the rotation of queries and keys is an operator of this program;
   3. choosing tokens, and writing text;
   4. training.  The weights of the file have no gradients; adapters that are added to some of them have.
   The tokenisers are in examples/llama/tokens.h. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "llama/tokens.h"

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
        .cpu = rotate_cpu, .fake = rotate_cpu, .backward = rotate_backward, .save = "cosines, sines",
        .constant = "cosines, sines", .jvp = rotate_jvp, .vmap = OPD_BATCH_LOOP });
}

//-- the settings and weights ------------------------------------------------------------------------------------------

/* y = W x + bias, and with an adapter + scale B A x. */
typedef struct linear { opd_tensor *weight, *bias, *a, *b; const char *name; int block; } linear;
typedef struct norm { opd_tensor *weight, *bias; } norm;
typedef struct block {
    norm attn, ffn, q, k, after_attn, after_ffn;
    linear wq, wk, wv, wqkv, wo, gate, up, down, route;
    opd_tensor *gates, *ups, *downs;              /* of experts [experts, out, in] */
    int64_t kv_heads;
    bool window;                                  /* a token sees only the last `window` tokens */
    opd_tensor *keys, *values;                    /* of the tokens so far [kv heads, context, size] */
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
    opd_tensor_file *file;
    tok_vocabulary *vocabulary;
    family family;
    bool halves;
    int64_t blocks, width, hidden, heads, key_size, value_size, context, words, experts, experts_used, window;
    int64_t trained_context;                      /* tokens for which the model was trained */
    int64_t pattern;                              /* of so many layers, all but the last have the window */
    bool *used;                                   /* for each tensor of the file: it was read */
    double eps, scale, cap_scores, cap_logits;
    opd_tensor *tokens, *positions, *cosines[2], *sines[2];        /* [1]: in layers with a window */
    norm last;
    linear head;
    block *block;
    opd_tensor *kept[64];                         /* released at the end, as the tensors of the blocks are */
    int nkept;
    int64_t past;                                 /* tokens in the cache */
    double adapter_scale;
} model;

static int bad(const model *m, const char *what, const char *name) {
    return opd_fail(OPD_ERROR_FILE, "%s: '%s' %s", m->path, name, what);
}
/* Reads the setting ARCH.key, an integer from 1 to `most`.  If the key is missing, returns `otherwise`; -1: the key
   must be there. */
static int64_t integer(const model *m, const char *key, int64_t i, int64_t most, int64_t otherwise) {
    char name[128];
    double number = 0;
    (void)snprintf(name, sizeof name, "%s.%s", m->arch, key);
    if (!opd_tensor_file_metadata_type(m->file, name)) {
        if (otherwise < 0) { (void)bad(m, "is missing", name); }
        return otherwise;
    }
    if (opd_tensor_file_metadata_count(m->file, name) < 0) { i = 0; }        /* one number for all layers */
    if (opd_tensor_file_metadata_number(m->file, name, i, &number) != 0) { return -1; }
    const int least = otherwise != 0;                      /* 0 is allowed if a missing key means 0 */
    if (!(number >= least && number <= (double)most) || number != floor(number)) {
        return opd_fail(OPD_ERROR_FILE, "%s: '%s' is %g, which is no integer from %d to %lld", m->path, name, number,
                        least, (long long)most);
    }
    return (int64_t)number;
}
/* Reads the setting ARCH.key, a number from low to high; NaN as `otherwise`: the key must be there. */
static double real(const model *m, const char *key, double low, double high, double otherwise) {
    char name[128];
    double number = 0;
    (void)snprintf(name, sizeof name, "%s.%s", m->arch, key);
    if (!opd_tensor_file_metadata_type(m->file, name)) {
        if (otherwise != otherwise) { (void)bad(m, "is missing", name); }
        return otherwise;
    }
    if (opd_tensor_file_metadata_number(m->file, name, 0, &number) != 0) { return otherwise; }
    if (!(number >= low && number <= high)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: '%s' is %g, which is not from %g to %g", m->path, name, number, low, high);
    }
    return number;
}
/* Reads a tensor of these sizes (rows 0: a vector; experts 0: no experts).  Returns NULL if the tensor is missing and
   `needed` is false, and NULL with an error if it does not fit.  The caller releases it.  Matrices of 16-bit floats and
   of blocks stay views of the file; vectors become float32. */
static opd_tensor *weight(const model *m, const char *name, int64_t experts, int64_t rows, int64_t columns,
                          bool needed) {
    if (!opd_ok()) { return NULL; }
    const int64_t place = opd_tensor_file_find(m->file, name);
    if (place < 0) {
        if (needed) { (void)opd_fail(OPD_ERROR_FILE, "%s: the tensor '%s' is missing", m->path, name); }
        return NULL;
    }
    opd_tensor *kept = NULL;
    m->used[place] = true;
    OPD_SCOPE {
        opd_tensor *t = opd_tensor_file_get(m->file, name);
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
            kept = opd_keep(opd_view_dtype(t, OPD_WEIGHT_F16));
        } else if (t && rows && columns % 32 == 0 && opd_dtype(t) == OPD_BFLOAT16) {
            kept = opd_keep(opd_view_dtype(t, OPD_WEIGHT_BF16));
        } else if (t) {
            const opd_scalar_type dtype = opd_dtype(t);
            const bool widen = dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16 || dtype == OPD_FLOAT64;
            if (!widen && dtype != OPD_FLOAT32 && (!rows || opd_dtype_size(dtype))) {
                (void)opd_fail(OPD_ERROR_FILE, "%s: the tensor '%s' has the dtype %s", m->path, name,
                               opd_dtype_name(dtype));
            } else { kept = opd_keep(widen ? opd_to_dtype(t, OPD_FLOAT32) : t); }
        }
    }
    return kept;
}
static linear layer(const model *m, int i, const char *name, int64_t rows, int64_t columns, bool needed) {
    linear l;
    char text[128];
    const bool biased = m->family == GPT2 || (m->family == QWEN2 && strncmp(name, "attn_", 5) == 0 &&
                                              strcmp(name, "attn_output") != 0);
    memset(&l, 0, sizeof l);
    l.name = name;
    l.block = i;
    (void)snprintf(text, sizeof text, "blk.%d.%s.weight", i, name);
    l.weight = weight(m, text, 0, rows, columns, needed);
    (void)snprintf(text, sizeof text, "blk.%d.%s.bias", i, name);
    l.bias = l.weight ? weight(m, text, 0, 0, rows, biased) : NULL;
    return l;
}
/* i: -1 for the norm behind all blocks */
static norm norm_of(const model *m, int i, const char *name, int64_t size) {
    norm n;
    char text[128], prefix[32] = "";
    if (i >= 0) { (void)snprintf(prefix, sizeof prefix, "blk.%d.", i); }
    (void)snprintf(text, sizeof text, "%s%s.weight", prefix, name);
    n.weight = weight(m, text, 0, 0, size, true);
    (void)snprintf(text, sizeof text, "%s%s.bias", prefix, name);
    n.bias = m->family == GPT2 ? weight(m, text, 0, 0, size, true) : NULL;
    return n;
}
/* Reads the tensors of block i. */
static void read_block(const model *m, int i, block *b) {
    const int64_t heads = m->heads * m->key_size, out = m->heads * m->value_size, width = m->width;
    const bool two_norms = m->family == GEMMA2 || m->family == GEMMA3;
    const bool size_norms = m->family == QWEN3 || m->family == GEMMA3;
    char name[64];
    b->kv_heads = integer(m, "attention.head_count_kv", i, m->heads, m->heads);
    if (opd_ok() && m->heads % b->kv_heads) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: '%s.attention.head_count' %lld is no multiple of head_count_kv %lld",
                       m->path, m->arch, (long long)m->heads, (long long)b->kv_heads);
    }
    if (!opd_ok()) { return; }
    const int64_t keys = b->kv_heads * m->key_size, values = b->kv_heads * m->value_size;
    b->window = m->window && two_norms && i % m->pattern != m->pattern - 1;
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
        (void)snprintf(name, sizeof name, "blk.%d.ffn_gate_exps.weight", i);
        b->gates = weight(m, name, m->experts, m->hidden, width, true);
        (void)snprintf(name, sizeof name, "blk.%d.ffn_up_exps.weight", i);
        b->ups = weight(m, name, m->experts, m->hidden, width, true);
        (void)snprintf(name, sizeof name, "blk.%d.ffn_down_exps.weight", i);
        b->downs = weight(m, name, m->experts, width, m->hidden, true);
        return;
    }
    if (m->family != PHI3 && m->family != GPT2) { b->gate = layer(m, i, "ffn_gate", m->hidden, width, true); }
    b->up = layer(m, i, "ffn_up", m->family == PHI3 ? 2 * m->hidden : m->hidden, width, true);
    b->down = layer(m, i, "ffn_down", width, m->hidden, true);
}
/* Reads the settings that all architectures have. */
static int read_settings(model *m) {
    const int64_t large = INT64_C(1) << 24;
    char pattern[128];
    m->arch = opd_tensor_file_metadata(m->file, "general.architecture");
    if (!m->arch) { return bad(m, "is missing, or is no text", "general.architecture"); }
    m->family = FAMILIES;
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        if (strcmp(architectures[i].name, m->arch) == 0) {
            m->family = architectures[i].family;
            m->halves = architectures[i].halves;
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
    m->hidden = integer(m, m->family == QWEN3 && m->experts ? "expert_feed_forward_length" : "feed_forward_length", 0,
                        large, -1);
    m->window = integer(m, "attention.sliding_window", 0, INT64_C(1) << 31, 0);
    m->pattern = 1;
    if (m->family == GEMMA2 || m->family == GEMMA3) {
        (void)snprintf(pattern, sizeof pattern, "%s.attention.sliding_window_pattern", m->arch);
        if (opd_tensor_file_metadata_count(m->file, pattern) >= 0) {
            return bad(m, "is a list, which this program does not know", pattern);
        }
        m->pattern = integer(m, "attention.sliding_window_pattern", 0, 100000, m->family == GEMMA2 ? 2 : 6);
    }
    if (real(m, "attention.causal", 0, 1, 1) != 1) {
        return bad(m, "is a model whose tokens see later ones, which this program does not know", m->arch);
    }
    const char *eps = m->family == GPT2 ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    m->eps = real(m, eps, 0, 1, NAN);
    m->cap_scores = m->family == GEMMA2 ? real(m, "attn_logit_softcapping", 0, 1e6, 50) : 0;
    m->cap_logits = m->family == GEMMA2 || m->family == GEMMA3
                  ? real(m, "final_logit_softcapping", 0, 1e6, m->family == GEMMA2 ? 30 : 0) : 0;
    if (!opd_ok()) { return -1; }
    /* gemma 2 and 3 with 27 billion weights scale by the width */
    const bool by_width = (m->family == GEMMA2 && m->blocks == 46) || (m->family == GEMMA3 && m->blocks == 62);
    m->scale = 1 / sqrt(by_width ? (double)m->width / (double)m->heads : (double)m->key_size);
    if (m->experts && m->family != LLAMA && m->family != QWEN3) {
        return bad(m, "has experts, which this program does not know for it", m->arch);
    }
    return 0;
}

/* How much frequency i of the rotation is lowered: a text `rope.scaling.type`, and its settings. */
typedef struct stretch { double factor, magnitude, low, high; bool yarn; opd_tensor *factors; } stretch;

static stretch stretch_of(const model *m, int64_t pairs, double base) {
    stretch s = {1, 1, 0, 0, false, NULL};
    char name[96];
    (void)snprintf(name, sizeof name, "%s.rope.scaling.type", m->arch);
    const char *type = opd_tensor_file_metadata(m->file, name);
    const double original = real(m, "rope.scaling.original_context_length", 1, 1e9, (double)m->trained_context);
    if (type && strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0 && strcmp(type, "none") != 0 &&
        strcmp(type, "longrope") != 0) {
        (void)bad(m, "is not none, linear, yarn or longrope", name);
    }
    if (!type || strcmp(type, "none") != 0) {              /* no type: linear; 0: no factor; scale_linear: old files */
        const double factor = real(m, "rope.scaling.factor", 0, 1e6, real(m, "rope.scale_linear", 0, 1e6, 0));
        if (factor > 0 && factor < 1e-3) { (void)bad(m, "has a factor below 0.001", "rope.scaling"); }
        if (factor > 0) { s.factor = factor; }
    }
    s.magnitude = real(m, "rope.scaling.attn_factor", 1e-3, 1e3, 1);
    if (type && strcmp(type, "yarn") == 0 && s.factor > 1) {
        const double fast = real(m, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, 32),
                     slow = real(m, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, 1);
        const double turns = 2 * 3.14159265358979323846, ln = 2 * log(base);
        s.yarn = true;
        s.low = fmax(0, floor(2 * (double)pairs * log(original / (fast * turns)) / ln));
        s.high = fmin(2 * (double)pairs - 1, ceil(2 * (double)pairs * log(original / (slow * turns)) / ln));
        s.magnitude *= 1 + 0.1 * log(s.factor);
    }
    s.factors = weight(m, "rope_freqs.weight", 0, 0, pairs, false);
    if (!s.factors && opd_ok()) {
        s.factors = weight(m, (double)m->context > original ? "rope_factors_long.weight" : "rope_factors_short.weight",
                           0, 0, pairs, false);
    }
    return s;
}
/* Makes the tables of the angles of all positions.  which: 1 for layers with a window. */
static int read_angles(model *m, int which) {
    const int64_t size = integer(m, "rope.dimension_count", 0, m->key_size, m->key_size), pairs = size / 2;
    const bool own_base = m->family == GEMMA3 && which;
    const double base =
        own_base ? real(m, "rope.freq_base_swa", 1, 1e12, 10000) : real(m, "rope.freq_base", 1, 1e12, 10000);
    stretch s = {1, 1, 0, 0, false, NULL};
    if (opd_ok() && !own_base) { s = stretch_of(m, pairs, base); }
    if (opd_ok() && (size % 2 || m->key_size < 2)) { (void)bad(m, "is odd", "rope.dimension_count"); }
    if (opd_ok()) {
        m->cosines[which] = opd_keep(opd_tensor_new(OPD_INTS(m->context, pairs), OPD_FLOAT32));
        m->sines[which] = opd_keep(opd_tensor_new(OPD_INTS(m->context, pairs), OPD_FLOAT32));
    }
    float *co = opd_ok() ? opd_data_f32(m->cosines[which]) : NULL,
          *si = opd_ok() ? opd_data_f32(m->sines[which]) : NULL;
    const float *factors = s.factors ? opd_data_f32(s.factors) : NULL;
    for (int64_t j = 0; co && si && j < pairs; j++) {
        const double plain = pow(base, -2.0 * (double)j / (double)size) / (factors ? factors[j] : 1);
        const double ramp = !s.yarn ? 0 : 1 - fmin(1, fmax(0, ((double)j - s.low) / fmax(0.001, s.high - s.low)));
        const double frequency = plain / s.factor * (1 - ramp) + plain * ramp;
        for (int64_t i = 0; i < m->context; i++) {
            co[i * pairs + j] = (float)(cos((double)i * frequency) * s.magnitude);
            si[i * pairs + j] = (float)(sin((double)i * frequency) * s.magnitude);
        }
    }
    opd_release(s.factors);
    return opd_ok() ? 0 : -1;
}
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
        opd_release(b->gates); opd_release(b->ups); opd_release(b->downs); opd_release(b->keys); opd_release(b->values);
    }
    for (int i = 0; i < 2; i++) { opd_release(m->cosines[i]); opd_release(m->sines[i]); }
    if (m->head.weight != m->tokens) { opd_release(m->head.weight); }
    opd_release(m->tokens); opd_release(m->positions);
    release_norm(&m->last);
    free(m->block);
    free(m->used);
    tok_free(m->vocabulary);
    opd_tensor_file_close(m->file);
}
/* Fails if the file has a tensor that was not read: then it is not the model that this program computes. */
static int all_used(const model *m) {
    for (int64_t i = 0; opd_ok() && i < opd_tensor_file_count(m->file); i++) {
        const char *name = opd_tensor_file_name(m->file, i);
        if (m->used[i] || !name) { continue; }
        const bool harmless = strcmp(name, "rope_freqs.weight") == 0 || strcmp(name, "rope_factors_long.weight") == 0 ||
                              strcmp(name, "rope_factors_short.weight") == 0 ||
                              (strncmp(name, "blk.", 4) == 0 && strstr(name, ".attn_rot_embd"));
        if (!harmless) {
            return opd_fail(OPD_ERROR_FILE, "%s: this program does not know what the tensor '%s' does in a model of "
                            "the architecture %s with %lld blocks", m->path, name, m->arch, (long long)m->blocks);
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Opens a model, with room for `context` tokens (0: what the model was trained for, at most 4096). */
static int model_open(model *m, const char *path, int64_t context) {
    memset(m, 0, sizeof *m);
    m->path = path;
    m->file = opd_tensor_file_open(path);
    if (!m->file || read_settings(m) != 0) { return -1; }
    m->context = context ? context : m->trained_context < 4096 ? m->trained_context : 4096;
    m->vocabulary = tok_open(m->file);
    if (!m->vocabulary) { return -1; }
    m->words = m->vocabulary->count;
    m->used = (bool *)calloc((size_t)opd_tensor_file_count(m->file) + 1, sizeof *m->used);
    if (!m->used) { return opd_fail(OPD_ERROR_MEMORY, "%s: no memory for its tensors", path); }
    m->tokens = weight(m, "token_embd.weight", 0, m->words, m->width, true);
    m->last = norm_of(m, -1, "output_norm", m->width);
    m->head.weight = weight(m, "output.weight", 0, m->words, m->width, false);
    if (!m->head.weight) { m->head.weight = m->tokens; }
    if (m->family == GPT2) {
        m->positions = weight(m, "position_embd.weight", 0, m->trained_context, m->width, true);
        if (m->context > m->trained_context) { m->context = m->trained_context; }
        if (m->positions && opd_dtype_block(opd_dtype(m->positions), NULL) > 1) {
            opd_tensor *in_blocks = m->positions;
            OPD_SCOPE { m->positions = opd_keep(opd_dequantize(in_blocks)); }
            opd_release(in_blocks);
        }
    }
    /* the blocks are named in the file before there is memory for them */
    char last[64];
    (void)snprintf(last, sizeof last, "blk.%lld.attn_norm.weight", (long long)m->blocks - 1);
    if (opd_ok() && opd_tensor_file_find(m->file, last) < 0) {
        return opd_fail(OPD_ERROR_FILE, "%s: '%s.block_count' is %lld, but the tensor '%s' is missing", path, m->arch,
                        (long long)m->blocks, last);
    }
    m->block = opd_ok() ? (block *)calloc((size_t)m->blocks, sizeof *m->block) : NULL;
    if (opd_ok() && !m->block) {
        return opd_fail(OPD_ERROR_MEMORY, "%s: no memory for %lld blocks", path, (long long)m->blocks);
    }
    for (int64_t i = 0; i < m->blocks && opd_ok(); i++) { read_block(m, (int)i, &m->block[i]); }
    /* memory for angles after the blocks, whose tensors say that the size of a head is right */
    if (opd_ok() && m->family != GPT2 && read_angles(m, 0) == 0 && m->family == GEMMA3) { (void)read_angles(m, 1); }
    return all_used(m);
}
/* Makes the cache. */
static int cache_open(model *m) {
    for (int64_t i = 0; i < m->blocks && opd_ok(); i++) {
        block *b = &m->block[i];
        b->keys = opd_keep(opd_tensor_new(OPD_INTS(b->kv_heads, m->context, m->key_size), OPD_FLOAT32));
        b->values = opd_keep(opd_tensor_new(OPD_INTS(b->kv_heads, m->context, m->value_size), OPD_FLOAT32));
    }
    return opd_ok() ? 0 : -1;
}

//-- the network -------------------------------------------------------------------------------------------------------

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
            const int64_t back = past + i - (from + j);
            *sees++ = back >= 0 && (!b->window || back < m->window);
        }
    }
    return mask;
}
/* Attention of q [heads, tokens, size] over k and v [kv heads, keys, size]. */
static opd_tensor *attend(const model *m, opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *mask, bool causal) {
    if (!(m->cap_scores > 0)) {
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
/* x [tokens, width] at the positions past ... -> [tokens, width].  cached: keys and values are in the cache. */
static opd_tensor *attention(const model *m, const block *b, opd_tensor *x, bool cached) {
    const int64_t tokens = opd_size(x, 0), queries = m->heads * m->key_size, keys = b->kv_heads * m->key_size;
    const int64_t past = cached ? m->past : 0, values = b->kv_heads * m->value_size;
    opd_tensor *q, *k, *v;
    if (b->wqkv.weight) {
        opd_tensor *all = apply(m, &b->wqkv, x);
        q = opd_narrow(all, 1, 0, queries);
        k = opd_narrow(all, 1, queries, keys);
        v = opd_narrow(all, 1, queries + keys, values);
    } else {
        q = apply(m, &b->wq, x);
        k = apply(m, &b->wk, x);
        v = apply(m, &b->wv, x);
    }
    q = opd_reshape(q, OPD_INTS(tokens, m->heads, m->key_size));
    k = opd_reshape(k, OPD_INTS(tokens, b->kv_heads, m->key_size));
    v = opd_transpose(opd_reshape(v, OPD_INTS(tokens, b->kv_heads, m->value_size)), 0, 1);
    if (b->q.weight) { q = normalise(m, &b->q, q); }
    if (b->k.weight) { k = normalise(m, &b->k, k); }
    const int table = m->family == GEMMA3 && b->window;
    if (m->cosines[table]) {
        opd_tensor *co = opd_narrow(m->cosines[table], 0, past, tokens),
                   *si = opd_narrow(m->sines[table], 0, past, tokens);
        q = rotate(q, co, si, m->halves);
        k = rotate(k, co, si, m->halves);
    }
    q = opd_transpose(q, 0, 1);
    k = opd_transpose(k, 0, 1);
    int64_t from = 0;
    if (cached) {
        (void)opd_copy_(opd_narrow(b->keys, 1, past, tokens), k);
        (void)opd_copy_(opd_narrow(b->values, 1, past, tokens), v);
        from = b->window && past + 1 > m->window ? past + 1 - m->window : 0;
        k = opd_narrow(b->keys, 1, from, past + tokens - from);
        v = opd_narrow(b->values, 1, from, past + tokens - from);
    }
    const int64_t seen = past + tokens - from;
    const bool causal = tokens == seen && !(b->window && tokens > m->window) && !(m->cap_scores > 0);
    opd_tensor *mask = tokens == 1 || causal ? NULL : sight(m, b, tokens, seen, past, from);
    x = opd_transpose(attend(m, q, k, v, mask, causal && tokens > 1), 0, 1);
    return apply(m, &b->wo, opd_reshape(x, OPD_INTS(tokens, m->heads * m->value_size)));
}
static opd_tensor *activation(const model *m, opd_tensor *x) {
    const bool gelu = m->family == GEMMA || m->family == GEMMA2 || m->family == GEMMA3 || m->family == GPT2;
    return gelu ? opd_gelu_full(x, "tanh") : opd_silu(x);
}
/* A mixture of experts: each token uses the best `experts_used`, weighted by their shares. */
static opd_tensor *mixture(const model *m, const block *b, opd_tensor *x) {
    opd_tensor *best[2], *sum = opd_zeros_like(x);
    if (opd_topk(best, opd_softmax(apply(m, &b->route, x), 1), m->experts_used) < 0) { return NULL; }
    opd_tensor *shares = opd_div(best[0], opd_sum_dim(best[0], OPD_INTS(1), true));
    const int64_t *chosen = opd_data_i64(best[1]), tokens = opd_size(x, 0);
    for (int64_t expert = 0; chosen && expert < m->experts && opd_ok(); expert++) {
        int64_t n = 0;
        for (int64_t i = 0; i < tokens * m->experts_used; i++) { n += chosen[i] == expert; }
        if (n == 0) { continue; }
        opd_tensor *rows = opd_tensor_new(OPD_INTS(n), OPD_INT64), *places = opd_tensor_new(OPD_INTS(n), OPD_INT64);
        int64_t *row = opd_data_i64(rows), *place = opd_data_i64(places);
        for (int64_t i = 0; row && place && i < tokens * m->experts_used; i++) {
            if (chosen[i] == expert) { *row++ = i / m->experts_used; *place++ = i; }
        }
        opd_tensor *part = opd_index_select(x, 0, rows);
        opd_tensor *share = opd_index_select(opd_reshape(shares, OPD_INTS(-1, 1)), 0, places);
        opd_tensor *gate = activation(m, opd_linear(part, opd_select(b->gates, 0, expert), NULL));
        part = opd_mul(gate, opd_linear(part, opd_select(b->ups, 0, expert), NULL));
        part = opd_linear(part, opd_select(b->downs, 0, expert), NULL);
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
static opd_tensor *run_block(const model *m, const block *b, opd_tensor *x, bool cached) {
    OPD_SCOPED;
    opd_tensor *y = attention(m, b, normalise(m, &b->attn, x), cached);
    x = opd_add(x, b->after_attn.weight ? normalise(m, &b->after_attn, y) : y);
    y = feed_forward(m, b, normalise(m, &b->ffn, x));
    return opd_scope_return(opd_add(x, b->after_ffn.weight ? normalise(m, &b->after_ffn, y) : y));
}
/* ids [tokens] -> logits [tokens, words], or of the last token only.  cached: the tokens follow those in the cache, and
   are added to it. */
static opd_tensor *forward(model *m, opd_tensor *ids, bool all, bool cached) {
    OPD_SCOPED;
    const int64_t tokens = opd_size(ids, 0), past = cached ? m->past : 0;
    if (tokens < 1) { (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: there are no tokens", m->path); return NULL; }
    if (past + tokens > m->context) {
        (void)opd_fail(OPD_ERROR_ARGUMENT,
                       "%s: the context is full: it has room for %lld tokens, and %lld are asked for (see "
                       "--context)",
                       m->path, (long long)m->context, (long long)(past + tokens));
        return NULL;
    }
    const int64_t *id = opd_data_i64(ids);
    for (int64_t i = 0; id && i < tokens; i++) {
        if (id[i] < 0 || id[i] >= m->words) {
            (void)opd_fail(OPD_ERROR_INDEX, "%s: the token %lld (element %lld) is not in the vocabulary of %lld",
                           m->path, (long long)id[i], (long long)i, (long long)m->words);
        }
    }
    opd_tensor *x = opd_embedding(m->tokens, ids);
    if (m->family == GEMMA || m->family == GEMMA2 || m->family == GEMMA3) {
        x = opd_mul_Scalar(x, OPD_V((float)sqrt((double)m->width)));
    }
    if (m->positions) { x = opd_add(x, opd_narrow(m->positions, 0, past, tokens)); }
    for (int64_t i = 0; i < m->blocks && opd_ok(); i++) { x = run_block(m, &m->block[i], x, cached); }
    if (!all) { x = opd_narrow(x, 0, tokens - 1, 1); }
    x = cap(opd_linear(normalise(m, &m->last, x), m->head.weight, NULL), m->cap_logits);
    if (cached && opd_ok()) { m->past += tokens; }
    return opd_scope_return(x);
}

//-- choosing tokens, and writing text ---------------------------------------------------------------------------------

typedef struct settings {
    const char *model, *prompt, *inputs, *outputs, *train, *save, *adapter, *targets;
    int64_t tokens, context, top_k, rank, steps, length;
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
enum { PART = 512 };                              /* tokens of a prompt that are computed at a time */

/* Appends up to s->tokens tokens to ids, and prints their text to `out` if that is not NULL. */
static int generate(model *m, tok_ids *ids, settings *s, FILE *out) {
    tok_text text = {NULL, 0, 0};
    const int64_t given = ids->count;
    const double began = seconds();
    double answered = began;
    if (given == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "the prompt is empty: give --prompt TEXT"); }
    m->past = 0;
    for (int64_t n = 0; n < s->tokens && opd_ok(); n++) {
        OPD_SCOPED;
        opd_tensor *logits = NULL;
        do {
            const int64_t left = ids->count - m->past;
            logits = forward(m, ids_tensor(ids->at + m->past, left < PART ? left : PART), false, true);
        } while (logits && m->past < ids->count);
        float *data = logits ? opd_data_f32(logits) : NULL;
        if (n == 0) { answered = seconds(); }
        const int64_t back = ids->count < 64 ? ids->count : 64;
        const int64_t id = data ? choose(data, m->words, ids->at + ids->count - back, back, s) : -1;
        if (id < 0 || tok_push(ids, (int32_t)id) != 0 || (out && tok_ends(m->vocabulary, (int32_t)id))) { break; }
        text.count = 0;
        if (out && tok_piece(m->vocabulary, (int32_t)id, &text) == 0) {
            if (fwrite(text.at, 1, (size_t)text.count, out) != (size_t)text.count || fflush(out) != 0) {
                (void)opd_fail(OPD_ERROR_FILE, "the text cannot be written: %s", strerror(errno));
            }
        }
        if (m->past == m->context) { break; }
    }
    const double done = seconds();
    const int64_t made = ids->count - given;
    if (out && opd_ok()) {
        (void)fprintf(out, "\n");
        print_rate("prompt", given, given, answered - began);
        print_rate("; text", made, made - 1, done - answered);
        (void)fprintf(stderr, "\n");
        if (m->past == m->context) {
            (void)fprintf(stderr, "the context of %lld tokens is full\n", (long long)m->context);
        }
    }
    free(text.at);
    return opd_ok() ? 0 : -1;
}
/* Writes the logits of all positions of the tokens in0, [tokens] or [rows, tokens], as out0. */
static int write_logits(model *m, const char *inputs, const char *outputs) {
    static const char *const name[] = {"out0"};
    opd_tensor_file *file = opd_tensor_file_open(inputs);
    opd_tensor *ids = file ? opd_tensor_file_get(file, "in0") : NULL, *rows[256];
    if (ids && (opd_dtype(ids) != OPD_INT64 || opd_ndim(ids) < 1 || opd_ndim(ids) > 2 ||
                (opd_ndim(ids) == 2 && opd_size(ids, 0) > 256))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: in0 must be int64 [tokens] or [rows, tokens], with up to 256 rows",
                       inputs);
    }
    const bool one = ids && opd_ndim(ids) == 1;
    int64_t n = ids ? one ? 1 : opd_size(ids, 0) : 0;
    for (int64_t i = 0; i < n && opd_ok(); i++) {
        rows[i] = forward(m, opd_contiguous(one ? ids : opd_select(ids, 0, i)), true, false);
    }
    if (opd_ok()) {
        opd_tensor *all = one ? rows[0] : opd_stack(opd_tensors_of(rows, n), 0);
        (void)opd_npz_save(outputs, name, opd_tensors_of(&all, 1));
    }
    opd_tensor_file_close(file);
    return opd_ok() ? 0 : -1;
}

//-- training ----------------------------------------------------------------------------------------------------------

enum { LINEARS = 8 };
static linear *linear_at(block *b, int i) {
    linear *list[LINEARS] = {&b->wq, &b->wk, &b->wv, &b->wqkv, &b->wo, &b->gate, &b->up, &b->down};
    return list[i];
}
/* Is `name` in a list like "attn_q,attn_v"? */
static bool is_target(const char *list, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) { return true; }
    }
    return false;
}
/* Puts an adapter of A [rank, in] and B [out, rank] on a linear layer.  Keeps both. */
static int adapter_put(const model *m, linear *l, opd_tensor *a, opd_tensor *b) {
    if (!a || !b) { return -1; }
    const int64_t rank = opd_size(a, 0);
    if (opd_ndim(a) != 2 || opd_ndim(b) != 2 || opd_dtype(a) != OPD_FLOAT32 || opd_dtype(b) != OPD_FLOAT32 ||
        opd_size(a, 1) != opd_size(l->weight, 1) || opd_size(b, 0) != opd_size(l->weight, 0) ||
        opd_size(b, 1) != rank) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the adapter of blk.%d.%s does not fit the weight [%lld, %lld] of %s",
                        l->block, l->name, (long long)opd_size(l->weight, 0), (long long)opd_size(l->weight, 1),
                        m->path);
    }
    if (rank < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "the adapter of blk.%d.%s has rank 0", l->block, l->name); }
    opd_release(l->a); opd_release(l->b);
    l->a = opd_keep(a);
    l->b = opd_keep(b);
    return 0;
}
/* Puts new adapters on the layers whose names are in `targets`.  B is zero, so the model is as before. */
static int adapters_new(model *m, const char *targets, int64_t rank, double alpha) {
    m->adapter_scale = alpha / (double)rank;
    for (const char *at = targets; ; at++) {               /* each name of the list */
        const size_t length = strcspn(at, ",");
        bool found = false;
        for (int64_t i = 0; i < m->blocks * LINEARS && !found; i++) {
            const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
            found = l->weight && strlen(l->name) == length && memcmp(l->name, at, length) == 0;
        }
        if (!found) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s has no layers '%.*s' (--targets)", m->path, (int)length, at);
        }
        at += length;
        if (!*at) { break; }
    }
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        if (!l->weight || !is_target(targets, l->name)) { continue; }
        OPD_SCOPE {
            const int64_t in = opd_size(l->weight, 1);
            opd_tensor *a = opd_init_uniform_(opd_tensor_new(OPD_INTS(rank, in), OPD_FLOAT32), -1 / sqrt((double)in),
                                              1 / sqrt((double)in));
            (void)adapter_put(m, l, a, opd_zeros(OPD_INTS(opd_size(l->weight, 0), rank), OPD_FLOAT32));
        }
    }
    return opd_ok() ? 0 : -1;
}
/* The names that PEFT gives the layers. */
static int peft_name(const model *m, const linear *l, const char *factor, char *buf, size_t cap) {
    static const char *const names[][3] = {
        {"attn_q", "self_attn.q_proj", ""},
        {"attn_k", "self_attn.k_proj", ""},
        {"attn_v", "self_attn.v_proj", ""},
        {"attn_qkv", "self_attn.qkv_proj", "attn.c_attn"},
        {"attn_output", "self_attn.o_proj", "attn.c_proj"},
        {"ffn_gate", "mlp.gate_proj", ""},
        {"ffn_up", "mlp.up_proj", "mlp.c_fc"},
        {"ffn_down", "mlp.down_proj", "mlp.c_proj"},
    };
    const bool gpt2 = m->family == GPT2;
    const char *name = "";
    for (int i = 0; i < LINEARS; i++) { if (strcmp(names[i][0], l->name) == 0) { name = names[i][gpt2 ? 2 : 1]; } }
    if (m->family == PHI3 && strcmp(l->name, "ffn_up") == 0) { name = "mlp.gate_up_proj"; }
    return snprintf(buf, cap, "base_model.model.%s.%d.%s%s", gpt2 ? "transformer.h" : "model.layers", l->block, name,
                    factor);
}
/* GGUF files of llama pair neighbouring rows of queries and keys, Hugging Face's files rows half a head apart.  Orders
   the rows of B [out, rank]; to_gguf: from Hugging Face's order. */
static opd_tensor *reorder(const model *m, const linear *l, opd_tensor *b, bool to_gguf) {
    const bool q = strcmp(l->name, "attn_q") == 0, k = strcmp(l->name, "attn_k") == 0;
    if (m->halves || !(q || k) || !b) { return b; }
    const int64_t heads = opd_size(b, 0) / m->key_size, half = m->key_size / 2, rank = opd_size(b, 1);
    b = opd_view(opd_contiguous(b), to_gguf ? OPD_INTS(heads, 2, half, rank) : OPD_INTS(heads, half, 2, rank));
    return opd_reshape(opd_transpose(b, 1, 2), OPD_INTS(heads * m->key_size, rank));
}
static bool ends_with(const char *text, const char *end) {
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}
/* Writes the text of a file beside `path`. */
static void beside(const char *path, const char *name, char *buf, size_t cap) {
    const char *slash = strrchr(path, '/');
    (void)snprintf(buf, cap, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, name);
}
static int save_config(const model *m, const char *path, int64_t rank, double alpha) {
    char name[1024], part[1032];
    beside(path, "adapter_config.json", name, sizeof name);
    (void)snprintf(part, sizeof part, "%s.part", name);    /* the file gets its name when it is complete */
    FILE *f = fopen(part, "w");
    if (!f) { return opd_fail(OPD_ERROR_FILE, "%s cannot be written: %s", part, strerror(errno)); }
    (void)fprintf(
        f,
        "{\"peft_type\": \"LORA\", \"task_type\": \"CAUSAL_LM\", \"r\": %lld, \"lora_alpha\": %.17g, "
        "\"bias\": \"none\", \"base_model_name_or_path\": null, \"fan_in_fan_out\": %s, \"target_modules\": [",
        (long long)rank, alpha, m->family == GPT2 ? "true" : "false");
    const char *comma = "";
    for (int i = 0; i < LINEARS; i++) {
        const linear *l = linear_at(&m->block[0], i);
        char peft[160];
        if (!l->a) { continue; }
        (void)peft_name(m, l, "", peft, sizeof peft);
        const char *end = strrchr(peft, '.');
        while (end > peft && end[-1] != '.') { end--; }    /* the last two words, such as self_attn.q_proj */
        (void)fprintf(f, "%s\"%s\"", comma, end);
        comma = ", ";
    }
    (void)fprintf(f, "]}\n");
    const bool written = !ferror(f);
    if (fclose(f) == 0 && written && rename(part, name) == 0) { return 0; }
    (void)opd_fail(OPD_ERROR_FILE, "%s cannot be written: %s", name, strerror(errno));
    (void)remove(part);
    return -1;
}
/* Saves the adapters: as safetensors with the names of PEFT, or as GGUF if the name ends with .gguf. */
static int adapters_save(model *m, const char *path, int64_t rank, double alpha) {
    OPD_SCOPED;
    const int64_t most = 2 * m->blocks * LINEARS;
    char (*names)[160] = (char (*)[160])calloc((size_t)most, sizeof *names), text[32];
    const char **list = (const char **)calloc((size_t)most, sizeof *list);
    opd_tensor **tensors = (opd_tensor **)calloc((size_t)most, sizeof *tensors);
    const bool gguf = ends_with(path, ".gguf");
    int64_t n = 0;
    if (!names || !list || !tensors) {
        (void)opd_fail(OPD_ERROR_MEMORY, "no memory for %lld adapters", (long long)most);
    }
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        for (int factor = 0; factor < 2 && l->a; factor++, n++) {
            list[n] = names[n];
            tensors[n] = opd_detach(factor ? l->b : l->a);
            if (gguf) {
                (void)snprintf(names[n], sizeof *names, "blk.%d.%s.weight.lora_%c", l->block, l->name, "ab"[factor]);
                continue;
            }
            (void)peft_name(m, l, factor ? ".lora_B.weight" : ".lora_A.weight", names[n], sizeof *names);
            if (factor) { tensors[n] = reorder(m, l, tensors[n], false); }
        }
    }
    (void)snprintf(text, sizeof text, "%.17g", alpha);
    const char *const metadata[] = {"format", "pt", "lora_alpha", text, NULL};
    if (opd_ok() && gguf) {
        static const char *const keys[] = {"general.type", "general.architecture", "adapter.type",
                                           "adapter.lora.alpha"};
        const opd_value values[] = {OPD_V("adapter"), OPD_V(m->arch), OPD_V("lora"), OPD_V(alpha)};
        (void)opd_gguf_save(path, list, opd_tensors_of(tensors, n), keys, values, 4);
    } else if (opd_ok()) { (void)opd_safetensors_save(path, list, opd_tensors_of(tensors, n), metadata); }
    if (opd_ok() && !gguf && ends_with(path, "adapter_model.safetensors")) { (void)save_config(m, path, rank, alpha); }
    free(names); free(list); free(tensors);
    return opd_ok() ? 0 : -1;
}
/* Reads the scale of adapters from the file adapter_config.json that PEFT writes beside them. */
static double peft_scale(const char *path, int64_t rank) {
    char name[1024];
    beside(path, "adapter_config.json", name, sizeof name);
    opd_json *json = opd_json_load(name);
    if (!json) { return NAN; }
    const int64_t alpha = opd_json_get(json, 0, "lora_alpha");
    const opd_json_kind kind = opd_json_kind_of(json, alpha);
    const bool number = kind == OPD_JSON_INT || kind == OPD_JSON_FLOAT;
    const double root = opd_json_bool(json, opd_json_get(json, 0, "use_rslora"), false) ? sqrt((double)rank) : 1;
    const double scale = number ? opd_json_double(json, alpha, 0) / (double)rank * root : 0;
    const char *type = opd_json_text(json, opd_json_get(json, 0, "peft_type"), "LORA");
    const char *cannot =
        strcmp(type, "LORA") != 0 ? "peft_type is not LORA"
        : opd_json_bool(json, opd_json_get(json, 0, "use_dora"), false) ? "use_dora is true"
        : opd_json_count(json, opd_json_get(json, 0, "alpha_pattern")) > 0 ? "alpha_pattern is not empty"
        : opd_json_count(json, opd_json_get(json, 0, "rank_pattern")) > 0 ? "rank_pattern is not empty" : NULL;
    if (cannot) { (void)opd_fail(OPD_ERROR_FILE, "%s: %s, which this program does not know", name, cannot); }
    if (opd_json_int(json, opd_json_get(json, 0, "r"), rank) != rank) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: r is not %lld, the rank of the tensors", name, (long long)rank);
    }
    if (!number || !(scale > 0)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: lora_alpha is %s", name, alpha < 0 ? "missing" : "no positive number");
    }
    opd_json_free(json);
    return scale;
}
/* Returns the scale of adapters, alpha / rank: alpha is in the metadata of their file, or PEFT's file says it. */
static double scale_of(const opd_tensor_file *file, const char *path, bool gguf, int64_t rank) {
    const char *key = gguf ? "adapter.lora.alpha" : "lora_alpha", *text = NULL;
    double alpha = NAN;
    if (gguf) {
        if (opd_tensor_file_metadata_number(file, key, 0, &alpha) != 0) { return NAN; }
    } else if ((text = opd_tensor_file_metadata(file, key)) != NULL) {
        char *end;
        alpha = strtod(text, &end);
        if (*end || end == text) { alpha = NAN; }
    } else { return peft_scale(path, rank); }
    if (!(alpha > 0 && isfinite(alpha))) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: %s is no positive number", path, key);
    }
    return alpha / (double)rank;
}
/* Loads adapters that adapters_save, PEFT or llama.cpp's converter wrote. */
static int adapters_load(model *m, const char *path) {
    OPD_SCOPED;
    opd_tensor_file *file = opd_tensor_file_open(path);
    const bool gguf = ends_with(path, ".gguf");
    int64_t found = 0, rank = 0;
    const char *arch = file && gguf ? opd_tensor_file_metadata(file, "general.architecture") : m->arch;
    if (file && (!arch || strcmp(arch, m->arch) != 0)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s is for the architecture %s, but %s is %s", path, arch ? arch : "?", m->path,
                       m->arch);
    }
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        char names[2][160];
        if (!l->weight) { continue; }
        for (int factor = 0; factor < 2; factor++) {
            if (gguf) {
                (void)snprintf(names[factor], sizeof names[factor], "blk.%d.%s.weight.lora_%c", l->block, l->name,
                               "ab"[factor]);
            } else {
                (void)peft_name(m, l, factor ? ".lora_B.weight" : ".lora_A.weight", names[factor],
                                sizeof names[factor]);
            }
        }
        if (opd_tensor_file_find(file, names[0]) < 0) { continue; }
        opd_tensor *a = opd_tensor_file_get(file, names[0]), *b = opd_tensor_file_get(file, names[1]);
        a = a ? opd_to_dtype(a, OPD_FLOAT32) : NULL;
        b = b ? opd_to_dtype(b, OPD_FLOAT32) : NULL;
        if (a && b && rank && rank != opd_size(a, 0)) {
            (void)opd_fail(OPD_ERROR_FILE, "%s: the adapters have different ranks", path);
        }
        if (a && b && opd_ndim(b) == 2 && opd_size(b, 0) == opd_size(l->weight, 0) && !gguf) {
            b = reorder(m, l, b, true);
        }
        if (adapter_put(m, l, a, b) == 0) { rank = opd_size(a, 0); }
        found += 2;
    }
    const int64_t all = file ? opd_tensor_file_count(file) : 0;
    if (opd_ok() && (found == 0 || found != all)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: %lld of its %lld tensors belong to layers of %s", path, (long long)found,
                       (long long)all, m->path);
    }
    if (opd_ok()) { m->adapter_scale = scale_of(file, path, gguf, rank); }
    if (opd_ok() && !isfinite(m->adapter_scale)) {
        (void)opd_fail(OPD_ERROR_FILE, "%s: its alpha is too large", path);
    }
    opd_tensor_file_close(file);
    return opd_ok() ? 0 : -1;
}
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
    return opd_cross_entropy_loss(logits, opd_narrow(ids, 0, 1, n));
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
        const float *data = opd_data_f32(list[i]);
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

//-- the results of llama.cpp ------------------------------------------------------------------------------------------

static const char *verdict(bool good) { return good ? "ok" : "WRONG"; }

/* Compares logits and greedy tokens with FILE.npz.  allowed: how far products with rounded activations may be off. */
static bool check_logits(model *m, const opd_tensor_file *file, bool exact, double allowed, bool figures) {
    opd_tensor *ids = opd_tensor_file_get(file, "ids"), *want = opd_tensor_file_get(file, "logits_exact");
    opd_tensor *greedy = opd_tensor_file_get(file, "greedy_exact");
    settings s;
    tok_ids list = {NULL, 0, 0};
    (void)opd_exact_blocks_set(exact);
    opd_tensor *got = ids ? forward(m, ids, true, false) : NULL, *off = got ? opd_sub(got, want) : NULL;
    if (!off || !greedy || opd_numel(want) == 0 || opd_numel(greedy) == 0) { return false; }
    const bool gelu = m->family == GPT2 || m->family == GEMMA || m->family == GEMMA2 || m->family == GEMMA3;
    const double most = opd_item_f64(opd_max(opd_abs(off))) / opd_item_f64(opd_max(opd_abs(want)));
    const double spread = sqrt(opd_item_f64(opd_mean(opd_mul(off, off)))) / opd_item_f64(opd_std(want));
    memset(&s, 0, sizeof s);
    s.tokens = opd_size(greedy, 0);
    s.penalty = 1;
    const int64_t n = opd_size(ids, 0);
    for (int64_t i = 0; i < n; i++) { (void)tok_push(&list, (int32_t)opd_data_i64(ids)[i]); }
    bool same = generate(m, &list, &s, NULL) == 0 && list.count == n + s.tokens;
    for (int64_t i = 0; same && i < s.tokens; i++) { same = list.at[n + i] == opd_data_i64(greedy)[i]; }
    free(list.at);
    const bool near = exact ? most < (gelu ? 1e-3 : 1e-5) : spread < allowed;
    if (figures || !near || !same) {
        (void)fprintf(stderr, "%s: %s: largest difference %.2g of the largest logit, spread %.2g; greedy tokens %s\n",
                      m->path, exact ? "exact" : "rounded", most, spread, verdict(same));
    }
    return near && same && opd_ok();
}
/* Compares the gradients and losses of adapters with FILE.lora.npz. */
static bool check_training(model *m, const opd_tensor_file *file, opd_tensor *ids) {
    opd_tensor *list[64], *losses = opd_tensor_file_get(file, "losses");
    bool good = losses != NULL;
    m->adapter_scale = 2;
    for (int64_t i = 0; i < m->blocks * LINEARS && opd_ok(); i++) {
        linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
        char names[2][64];
        for (int factor = 0; factor < 2; factor++) {
            (void)snprintf(names[factor], sizeof names[factor], "blk.%d.%s.lora_%c", l->block, l->name ? l->name : "",
                           "ab"[factor]);
        }
        if (!l->weight || opd_tensor_file_find(file, names[0]) < 0) { continue; }
        (void)adapter_put(m, l, opd_clone(opd_tensor_file_get(file, names[0])),
                          opd_clone(opd_tensor_file_get(file, names[1])));
    }
    const int count = opd_ok() ? adapters_of(m, list, 64) : 0;
    opd_sgd_options options = opd_sgd_defaults();
    options.lr = 0.05;
    opd_optimizer *sgd = count ? opd_sgd_new(list, count, &options) : NULL;
    for (int step = 0; sgd && step < 4 && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *loss = loss_of(m, ids);
        (void)opd_backward(loss);
        good &= fabs(opd_item_f64(loss) / opd_data_f64(losses)[step] - 1) < 1e-3;
        for (int64_t i = 0; step == 0 && i < m->blocks * LINEARS && opd_ok(); i++) {
            const linear *l = linear_at(&m->block[i / LINEARS], (int)(i % LINEARS));
            for (int factor = 0; factor < 2 && l->a; factor++) {
                char name[64];
                (void)snprintf(name, sizeof name, "grad.blk.%d.%s.lora_%c", l->block, l->name, "ab"[factor]);
                opd_tensor *want = opd_tensor_file_get(file, name), *got = opd_tensor_grad(factor ? l->b : l->a);
                if (!want || !got) { good = false; continue; }
                good &=
                    opd_item_f64(opd_max(opd_abs(opd_sub(got, want)))) < 1e-4 * opd_item_f64(opd_max(opd_abs(want)));
            }
        }
        (void)opd_optimizer_step(sgd);
        (void)opd_optimizer_zero_grad(sgd);
    }
    good &= count > 0 && opd_ok();
    opd_optimizer_free(sgd);
    return good;
}
/* Compares a model, or a file with only a vocabulary, with the files FILE.json, FILE.npz and FILE.lora.npz. */
static int check(const char *path, bool figures) {
    char beside_it[4][1024];
    static const char *const ends[] = {".json", ".npz", ".lora.npz"};
    const int stem = (int)(strlen(path) - (ends_with(path, ".gguf") ? 5 : 0));
    for (int i = 0; i < 3; i++) { (void)snprintf(beside_it[i], sizeof *beside_it, "%.*s%s", stem, path, ends[i]); }
    FILE *logits = fopen(beside_it[1], "rb"), *adapters = fopen(beside_it[2], "rb");
    if (logits) { (void)fclose(logits); }
    if (adapters) { (void)fclose(adapters); }
    OPD_SCOPED;
    opd_json *json = opd_json_load(beside_it[0]);
    if (!json) { return -1; }
    model m;
    bool good = false;
    if (!logits) {
        opd_tensor_file *file = opd_tensor_file_open(path);
        tok_vocabulary *v = file ? tok_open(file) : NULL;
        good = v && tok_wrong(v, json) == 0;
        printf("%s: tokens %s\n", path, verdict(good));
        tok_free(v);
        opd_tensor_file_close(file);
    } else if (model_open(&m, path, 0) != 0 || cache_open(&m) != 0) { model_close(&m); }
    else {
        const double spread = opd_json_double(json, opd_json_get(json, 0, "rms_difference_over_std"), 0);
        opd_tensor_file *file = opd_tensor_file_open(beside_it[1]),
                        *lora = adapters ? opd_tensor_file_open(beside_it[2]) : NULL;
        bool tokens = tok_wrong(m.vocabulary, json) == 0, exact = false, rounded = false, trained = true;
        OPD_NO_GRAD {
            exact = check_logits(&m, file, true, 0, figures);
            rounded = check_logits(&m, file, false, fmax(0.03, 1.5 * spread), figures);
        }
        (void)opd_exact_blocks_set(true);
        if (lora) { trained = check_training(&m, lora, opd_tensor_file_get(file, "ids")); }
        printf("%s: tokens %s, exact %s, rounded %s%s%s\n", path, verdict(tokens), verdict(exact), verdict(rounded),
               lora ? ", training " : "", lora ? verdict(trained) : "");
        good = tokens && exact && rounded && trained;
        opd_tensor_file_close(file);
        opd_tensor_file_close(lora);
        model_close(&m);
    }
    opd_json_free(json);
    return good && opd_ok() ? 0 : -1;
}

//-- the program -------------------------------------------------------------------------------------------------------

static int usage(FILE *to, int status) {
    (void)fprintf(to,
        "usage: llama MODEL.gguf [--prompt TEXT] [options]\n"
        "  Writes text with a language model, or trains adapters (LoRA) for it.  Architectures: llama, mistral,\n"
        "  mixtral, qwen2, qwen3, qwen3moe, gemma, gemma2, gemma3, phi3, gpt2.\n"
        "  --prompt TEXT         the beginning of the text; --special: it may contain the names of special tokens\n"
        "  --tokens N            how many tokens are written at most (128)\n"
        "  --context N           room for N tokens (as many as the model was trained for, at most 4096)\n"
        "  --temperature T       0: always the most likely token (the default); 1: tokens by their probabilities\n"
        "  --top-k K, --top-p P, --min-p P   leave out unlikely tokens (0, 1, 0: none)\n"
        "  --repeat-penalty R    makes the last 64 tokens less likely (1: not)\n"
        "  --seed S              of the random numbers (1)\n"
        "  --threads N           threads that compute\n"
        "  --exact               does not round activations in products with weights in few bits\n"
        "  --inputs X.npz --outputs Y.npz   writes the logits out0 of all positions of the token ids in0 (int64)\n"
        "  --adapter FILE        adds an adapter: .safetensors as PEFT writes it, or .gguf\n"
        "  --train FILE.txt      trains an adapter on a text; --save FILE saves it.  --rank N (8), --alpha A (16),\n"
        "                        --lr R (0.001), --steps N (100), --length N (128 tokens a step), --sgd (instead of\n"
        "                        AdamW), --targets LIST (attn_q,attn_v)\n"
        "  --check FILE...       compares models with FILE.json and FILE.npz, results of llama.cpp; with --figures\n"
        "                        before it, prints the differences\n");
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
/* Returns what is wrong with options that do not fit together, or NULL. */
static const char *contradiction(const settings *s) {
    const bool of_new = s->rank || s->alpha > 0 || s->targets;
    return s->save && !s->train ? "--save needs --train"
           : s->train && s->prompt ? "--prompt cannot be used with --train"
           : s->train && s->inputs ? "--inputs cannot be used with --train"
           : s->prompt && s->inputs ? "--prompt cannot be used with --inputs"
           : of_new && s->adapter ? "the --adapter has its own --rank, --alpha and --targets"
           : of_new && !s->train ? "--rank, --alpha and --targets need --train"
           : !s->inputs != !s->outputs ? "--inputs and --outputs need each other" : NULL;
}
static void run(settings *s) {
    OPD_SCOPED;
    const char *prompt = s->prompt ? s->prompt : "";
    model m;
    tok_ids ids = {NULL, 0, 0};
    (void)opd_exact_blocks_set(s->exact);
    if (model_open(&m, s->model, s->context) != 0 || (s->adapter && adapters_load(&m, s->adapter) != 0)) { }
    else if (s->train) { (void)train(&m, s); }
    else {
        OPD_NO_GRAD {
            if (s->inputs) { (void)write_logits(&m, s->inputs, s->outputs);
            } else if (cache_open(&m) == 0 &&
                       tok_encode(m.vocabulary, prompt, (int64_t)strlen(prompt), true, s->special, &ids) == 0) {
                if (ids.count > m.context) {
                    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the prompt has %lld tokens, but there is room for %lld "
                                   "(see --context)", m.path, (long long)ids.count, (long long)m.context);
                } else {
                    (void)fputs(prompt, stdout);
                    (void)fflush(stdout);
                    (void)generate(&m, &ids, s, stdout);
                }
            }
        }
    }
    free(ids.at);
    model_close(&m);
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
            {"--save", &s.save},     {"--adapter", &s.adapter}, {"--targets", &s.targets},
        };
        bool known = false;
        for (int k = 0; k < 7 && !known; k++) {
            known = option(argv, &i, texts[k].name);
            if (known) { *texts[k].text = argv[i]; }
        }
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
        else { (void)fprintf(stderr, "llama: '%s' is not understood\n", argv[i]); return usage(stderr, 2); }
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
