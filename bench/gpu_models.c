/* Measures whole steps of models on a GPU: training, and the decoding of a language model.
   cc -O2 bench/gpu_models.c -o gpu_models -lm -lpthread -ldl
   ./gpu_models --load ./opdispatch_cuda.so [--quick] [--tiny] [--seconds S] [--help] [MODEL ...]

   The first comment of opdispatch_cuda.cu shows how to build the CUDA plug-in.  A step of training is: forward,
   backward, the optimizer's step, and removing the gradients.  Weights and inputs are random, and the batch is always
   the same, so that the loss has to fall.  After some steps that are not measured, the program measures rounds of steps,
   and waits for the GPU at the end of each round.  A time is the median of the rounds.  Each row is one line: the model,
   milliseconds of a step, kernel launches of a step, the peak of the memory in use in GB, and the loss of the first
   and of the last step.  bench/peers/torch_models.py measures the same models in PyTorch, and prints the same
   columns.  Without a GPU, the program says so and measures nothing. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 5, MOST_PARAMS = 512 };
static bool tiny, quick;
static double seconds = 8;                        /* the time to measure a model, without its preparation */
static opd_device gpu;
static opd_tensor *params[MOST_PARAMS];
static int nparams;

/* Returns the kernel launches of the process until now, or -1.  They are counted by a program that is linked with a
   function bench_launches, and by the emulation that tests/cuda.sh links. */
#if defined(__GNUC__) && defined(__ELF__)
extern long bench_launches(void) __attribute__((weak));
extern long opd_emu_count(const char *name) __attribute__((weak));
#define LAUNCHES() (bench_launches ? bench_launches() : opd_emu_count ? opd_emu_count("launches") : -1L)
#define COUNTED(name) (opd_emu_count ? opd_emu_count(name) : -1L)
#else
#define LAUNCHES() (-1L)
#define COUNTED(name) (-1L)
#endif

static double now_ms(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
/* Returns the size of a model, or its size in a test. */
static int64_t size(int64_t whole, int64_t in_test) { return tiny ? in_test : whole; }

//-- weights and inputs -------------------------------------------------------------------------------------------

static opd_tensor *normal(opd_ints sizes, double std, opd_scalar_type dtype) {
    return opd_normal_(opd_tensor_new_on(sizes, dtype, gpu), 0, std);
}
static opd_tensor *filled(opd_ints sizes, double with, opd_scalar_type dtype) {
    return opd_fill_(opd_tensor_new_on(sizes, dtype, gpu), opd_value_double(with));
}
static opd_tensor *classes(int64_t count, opd_ints sizes) {
    return opd_to_device(opd_randint(count, sizes, OPD_INT64), gpu, OPD_INT64);
}
/* Makes tensor, a new float32 tensor, a parameter of the model. */
static opd_tensor *param(opd_tensor *tensor) {
    if (nparams < MOST_PARAMS) { params[nparams++] = tensor; }
    return opd_tensor_set_requires_grad(tensor, true);
}
/* Weights [out, in] with their bias [out]. */
typedef struct dense { opd_tensor *w, *b; } dense;
static dense dense_new(int64_t out, int64_t in) {
    dense d;
    d.w = param(normal(OPD_INTS(out, in), 0.02, OPD_FLOAT32));
    d.b = param(filled(OPD_INTS(out), 0, OPD_FLOAT32));
    return d;
}
static opd_tensor *dense_run(dense d, opd_tensor *x) { return opd_linear(x, d.w, d.b); }
/* The scale [features] and shift [features] of a norm, and the running mean and variance of a batch norm. */
typedef struct norm { opd_tensor *w, *b, *mean, *var; } norm;
static norm norm_new(int64_t features) {
    norm n = {NULL, NULL, NULL, NULL};
    n.w = param(filled(OPD_INTS(features), 1, OPD_FLOAT32));
    n.b = param(filled(OPD_INTS(features), 0, OPD_FLOAT32));
    return n;
}
static opd_tensor *layer_norm(norm n, opd_tensor *x) {
    return opd_layer_norm(x, OPD_INTS(opd_size(n.w, 0)), n.w, n.b, 1e-5);
}
static opd_tensor *multi_head(opd_tensor *qkv, int64_t heads, bool causal) {    /* qkv: [batch, tokens, 3 * features] */
    const int64_t batch = opd_size(qkv, 0), tokens = opd_size(qkv, 1), features = opd_size(qkv, 2) / 3;
    opd_tensor *in[3];
    for (int i = 0; i < 3; i++) {
        in[i] = opd_view(opd_narrow(qkv, 2, i * features, features), OPD_INTS(batch, tokens, heads, features / heads));
        in[i] = opd_transpose(in[i], 1, 2);
    }
    opd_tensor *const y = opd_scaled_dot_product_attention(in[0], in[1], in[2], NULL, 0, causal);
    return opd_reshape(opd_transpose(y, 1, 2), OPD_INTS(batch, tokens, features));
}

//-- training ------------------------------------------------------------------------------------------------------

/* What a step of training needs.  loss computes the loss of the batch. */
static struct {
    opd_optimizer *optimizer;
    opd_tensor *(*loss)(void);
    opd_tensor *x, *target;
    bool autocast;                                /* bfloat16 */
    bool clip;                                    /* the gradients' norm, to 1 */
} training;
static opd_tensor *train_step(void) {
    opd_tensor *loss = NULL;
    OPD_AUTOCAST_AS(OPD_CUDA, OPD_BFLOAT16, training.autocast, -1) { loss = training.loss(); }
    if (opd_backward(loss)) { return NULL; }
    if (training.clip) { opd_clip_grad_norm(params, nparams, 1, 2, false); }
    opd_optimizer_step(training.optimizer);
    opd_optimizer_zero_grad(training.optimizer);
    return loss;
}
static void train_with_adamw(double lr) {
    opd_adam_options o = opd_adamw_defaults();
    o.lr = lr;
    training.optimizer = opd_adamw_new(params, nparams, &o);
}
static void train_with_sgd(double lr, double momentum) {
    opd_sgd_options o = opd_sgd_defaults();
    o.lr = lr; o.momentum = momentum;
    training.optimizer = opd_sgd_new(params, nparams, &o);
}

//-- transformers: GPT-2 and ViT -----------------------------------------------------------------------------------

enum { MOST_LAYERS = 32 };
typedef struct transformer_layer { norm first, second; dense qkv, out, up, down; } transformer_layer;
static struct {
    int64_t layers, heads, features;
    transformer_layer layer[MOST_LAYERS];
    norm last;
    opd_tensor *tokens, *places, *patches, *patches_bias, *class_token;
    dense head;
} net;
static void transformer_new(int64_t layers, int64_t heads, int64_t c) {
    net.layers = layers; net.heads = heads; net.features = c;
    for (int64_t i = 0; i < layers; i++) {
        transformer_layer *l = &net.layer[i];
        l->first = norm_new(c);
        l->qkv = dense_new(3 * c, c);
        l->out = dense_new(c, c);
        l->second = norm_new(c);
        l->up = dense_new(4 * c, c);
        l->down = dense_new(c, 4 * c);
    }
    net.last = norm_new(c);
}
/* x: [batch, tokens, features]; approximate: the kind of gelu. */
static opd_tensor *transformer_run(opd_tensor *x, bool causal, const char *approximate) {
    for (int64_t i = 0; i < net.layers; i++) {
        const transformer_layer *l = &net.layer[i];
        x = opd_add(x, dense_run(l->out, multi_head(dense_run(l->qkv, layer_norm(l->first, x)), net.heads, causal)));
        opd_tensor *const h = opd_gelu_full(dense_run(l->up, layer_norm(l->second, x)), approximate);
        x = opd_add(x, dense_run(l->down, h));
    }
    return layer_norm(net.last, x);
}
static opd_tensor *gpt2_loss(void) {
    opd_tensor *x = opd_add(opd_embedding(net.tokens, training.x), net.places);
    x = opd_linear(transformer_run(x, true, "tanh"), net.tokens, NULL);
    return opd_cross_entropy_loss(opd_view(x, OPD_INTS(-1, opd_size(net.tokens, 0))), training.target);
}
static opd_tensor *(*gpt2_new(void))(void) {
    const int64_t batch = size(8, 2), tokens = size(1024, 16), words = size(50257, 101), c = size(768, 32);
    net.tokens = param(normal(OPD_INTS(words, c), 0.02, OPD_FLOAT32));
    net.places = param(normal(OPD_INTS(tokens, c), 0.02, OPD_FLOAT32));
    transformer_new(size(12, 2), size(12, 2), c);
    training.x = classes(words, OPD_INTS(batch, tokens));
    training.target = classes(words, OPD_INTS(batch * tokens));
    training.loss = gpt2_loss;
    training.autocast = training.clip = true;
    train_with_adamw(3e-4);
    return train_step;
}
static opd_tensor *vit_loss(void) {
    const int64_t batch = opd_size(training.x, 0), side = opd_size(net.patches, 2);
    opd_tensor *x = opd_conv2d(training.x, net.patches, net.patches_bias, OPD_INTS(side, side), OPD_INTS(0, 0));
    x = opd_transpose(opd_flatten(x, 2, -1), 1, 2);
    opd_tensor *const first = opd_expand(net.class_token, OPD_INTS(batch, 1, net.features));
    x = opd_add(opd_cat(OPD_TENSORS(opd_to_dtype(first, opd_dtype(x)), x), 1), net.places);
    x = opd_select(transformer_run(x, false, "none"), 1, 0);
    return opd_cross_entropy_loss(dense_run(net.head, x), training.target);
}
static opd_tensor *(*vit_new(void))(void) {
    const int64_t batch = size(64, 2), side = size(224, 32), c = size(768, 32), patches = side / 16 * (side / 16);
    net.patches = param(normal(OPD_INTS(c, 3, 16, 16), 0.02, OPD_FLOAT32));
    net.patches_bias = param(filled(OPD_INTS(c), 0, OPD_FLOAT32));
    net.class_token = param(normal(OPD_INTS(1, 1, c), 0.02, OPD_FLOAT32));
    net.places = param(normal(OPD_INTS(1, patches + 1, c), 0.02, OPD_FLOAT32));
    transformer_new(size(12, 2), size(12, 2), c);
    net.head = dense_new(size(1000, 10), c);
    training.x = normal(OPD_INTS(batch, 3, side, side), 1, OPD_FLOAT32);
    training.target = classes(size(1000, 10), OPD_INTS(batch));
    training.loss = vit_loss;
    training.autocast = true;
    train_with_adamw(3e-4);
    return train_step;
}

//-- convolutional networks: ResNet-50 and U-Net --------------------------------------------------------------------

enum { MOST_CONVOLUTIONS = 64 };
static struct { opd_tensor *w; norm n; int64_t stride; } convs[MOST_CONVOLUTIONS];
static int nconvs, at_conv;
static bool channels_last;
static struct { opd_tensor *w, *b; } ups[4], final_conv;
static dense classifier;

static opd_tensor *in_layout(opd_tensor *x) { return channels_last ? opd_contiguous_full(x, 2) : x; }
/* Adds a convolution without bias and its batch norm. */
static void conv_new(int64_t out, int64_t in, int64_t side, int64_t stride) {
    const double std = sqrt(2.0 / (double)(in * side * side));
    convs[nconvs].w = param(in_layout(normal(OPD_INTS(out, in, side, side), std, OPD_FLOAT32)));
    convs[nconvs].n = norm_new(out);
    convs[nconvs].n.mean = filled(OPD_INTS(out), 0, OPD_FLOAT32);
    convs[nconvs].n.var = filled(OPD_INTS(out), 1, OPD_FLOAT32);
    convs[nconvs++].stride = stride;
}
/* The next convolution and its batch norm. */
static opd_tensor *conv_norm(opd_tensor *x) {
    const int64_t stride = convs[at_conv].stride, around = opd_size(convs[at_conv].w, 2) / 2;
    const norm n = convs[at_conv].n;
    x = opd_conv2d(x, convs[at_conv++].w, NULL, OPD_INTS(stride, stride), OPD_INTS(around, around));
    return opd_batch_norm(x, n.w, n.b, n.mean, n.var, true, 0.1, 1e-5, true);
}
static opd_tensor *conv_norm_relu(opd_tensor *x) { return opd_relu_(conv_norm(x)); }

static const int resnet_blocks[4] = {3, 4, 6, 3};
static opd_tensor *resnet_loss(void) {
    at_conv = 0;
    opd_tensor *x = conv_norm_relu(training.x);
    x = opd_max_pool2d(x, OPD_INTS(3, 3), OPD_INTS(2, 2), OPD_INTS(1, 1));
    for (int stage = 0; stage < 4; stage++) {
        for (int block = 0; block < (tiny ? 1 : resnet_blocks[stage]); block++) {
            opd_tensor *y = conv_norm(conv_norm_relu(conv_norm_relu(x)));
            if (block == 0) { x = conv_norm(x); }
            x = opd_relu_(opd_add_(y, x));
        }
    }
    x = opd_flatten(opd_adaptive_avg_pool2d(x, OPD_INTS(1, 1)), 1, -1);
    return opd_cross_entropy_loss(dense_run(classifier, x), training.target);
}
static opd_tensor *(*resnet_new(void))(void) {
    const int64_t batch = size(256, 2), side = size(224, 32), width = size(64, 4);
    int64_t in = width;
    conv_new(width, 3, 7, 2);
    for (int stage = 0; stage < 4; stage++) {
        const int64_t c = width << stage;
        for (int block = 0; block < (tiny ? 1 : resnet_blocks[stage]); block++) {
            const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
            conv_new(c, in, 1, 1);
            conv_new(c, c, 3, stride);
            conv_new(4 * c, c, 1, 1);
            if (block == 0) { conv_new(4 * c, in, 1, stride); }
            in = 4 * c;
        }
    }
    classifier = dense_new(size(1000, 10), in);
    training.x = in_layout(normal(OPD_INTS(batch, 3, side, side), 1, OPD_FLOAT32));
    training.target = classes(size(1000, 10), OPD_INTS(batch));
    training.loss = resnet_loss;
    training.autocast = true;
    train_with_sgd(0.02, 0.9);
    return train_step;
}
static opd_tensor *(*resnet_last_new(void))(void) {
    channels_last = true;
    return resnet_new();
}
static opd_tensor *unet_loss(void) {
    opd_tensor *skip[4], *x = training.x;
    at_conv = 0;
    for (int i = 0; i < 4; i++) {
        skip[i] = conv_norm_relu(conv_norm_relu(x));
        x = opd_max_pool2d(skip[i], OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0, 0));
    }
    x = conv_norm_relu(conv_norm_relu(x));
    for (int i = 3; i >= 0; i--) {
        x = opd_conv_transpose2d(x, ups[i].w, ups[i].b, OPD_INTS(2, 2), OPD_INTS(0, 0));
        x = conv_norm_relu(conv_norm_relu(opd_cat(OPD_TENSORS(skip[i], x), 1)));
    }
    x = opd_conv2d(x, final_conv.w, final_conv.b, OPD_INTS(1, 1), OPD_INTS(0, 0));
    return opd_binary_cross_entropy_with_logits(x, training.target);
}
static opd_tensor *(*unet_new(void))(void) {
    const int64_t batch = size(16, 2), side = size(256, 16), width = size(64, 4);
    int64_t in = 3;
    for (int i = 0; i < 5; i++) {
        conv_new(width << i, in, 3, 1);
        conv_new(width << i, width << i, 3, 1);
        in = width << i;
    }
    for (int i = 3; i >= 0; i--) {
        const int64_t c = width << i;
        ups[i].w = param(normal(OPD_INTS(2 * c, c, 2, 2), sqrt(0.5 / (double)c), OPD_FLOAT32));
        ups[i].b = param(filled(OPD_INTS(c), 0, OPD_FLOAT32));
        conv_new(c, 2 * c, 3, 1);
        conv_new(c, c, 3, 1);
    }
    final_conv.w = param(normal(OPD_INTS(1, width, 1, 1), 0.1, OPD_FLOAT32));
    final_conv.b = param(filled(OPD_INTS(1), 0, OPD_FLOAT32));
    training.x = normal(OPD_INTS(batch, 3, side, side), 1, OPD_FLOAT32);
    training.target = opd_to_dtype(classes(2, OPD_INTS(batch, 1, side, side)), OPD_FLOAT32);
    training.loss = unet_loss;
    training.autocast = true;
    train_with_sgd(0.02, 0.9);
    return train_step;
}

//-- LSTM -----------------------------------------------------------------------------------------------------------

static opd_tensor *lstm_loss(void) {
    opd_tensor *out[3];
    const int64_t batch = opd_size(training.x, 1), features = opd_size(training.x, 2);
    opd_tensor *const zero = filled(OPD_INTS(1, batch, features), 0, OPD_FLOAT32);
    if (opd_lstm(out, training.x, OPD_TENSORS(zero, zero), opd_tensors_of(params, 4), true, 1, 0, true, false, false)) {
        return NULL;
    }
    return opd_mse_loss(out[0], training.target);
}
static opd_tensor *(*lstm_new(void))(void) {
    const int64_t steps = size(128, 5), batch = size(64, 2), h = size(512, 8);
    const double most = 1 / sqrt((double)h);
    for (int i = 0; i < 4; i++) {                 /* w_ih, w_hh, b_ih, b_hh */
        opd_tensor *const p = opd_tensor_new_on(i < 2 ? OPD_INTS(4 * h, h) : OPD_INTS(4 * h), OPD_FLOAT32, gpu);
        param(opd_uniform_(p, -most, most));
    }
    training.x = normal(OPD_INTS(steps, batch, h), 1, OPD_FLOAT32);
    training.target = normal(OPD_INTS(steps, batch, h), 0.1, OPD_FLOAT32);
    training.loss = lstm_loss;
    train_with_sgd(0.5, 0);
    return train_step;
}

//-- Llama 8B, decoding one token -----------------------------------------------------------------------------------

static struct {
    struct { opd_tensor *first, *q, *k, *v, *out, *second, *gate, *up, *down, *keys, *values; } layer[MOST_LAYERS];
    opd_tensor *tokens, *last, *head, *token, *place, *cos, *sin;
    int64_t layers, heads, groups, width;
    opd_capture *capture;
    opd_stream stream;
    opd_tensor *result;
} llama;
static opd_tensor *bf16(opd_ints sizes, double std) { return normal(sizes, std, OPD_BFLOAT16); }
static opd_tensor *rotated(opd_tensor *x) {       /* x: [1, heads, 1, width] */
    const int64_t half = llama.width / 2;
    opd_tensor *const turned = opd_cat(OPD_TENSORS(opd_neg(opd_narrow(x, 3, half, half)), opd_narrow(x, 3, 0, half)), 3);
    return opd_add(opd_mul(x, llama.cos), opd_mul(turned, llama.sin));
}
static opd_tensor *rms(opd_tensor *x, opd_tensor *w) { return opd_rms_norm(x, OPD_INTS(opd_size(w, 0)), w, OPD_V(1e-5)); }
static opd_tensor *heads_of(opd_tensor *x, int64_t heads) { return opd_view(x, OPD_INTS(1, heads, 1, llama.width)); }
/* Computes the token after llama.token, and writes it there.  Returns the greatest logit. */
static opd_tensor *llama_step(void) {
    opd_tensor *x = opd_embedding(llama.tokens, llama.token);
    for (int64_t i = 0; i < llama.layers; i++) {
        opd_tensor *h = rms(x, llama.layer[i].first);
        opd_tensor *const q = rotated(heads_of(opd_linear(h, llama.layer[i].q, NULL), llama.heads));
        opd_tensor *const k = rotated(heads_of(opd_linear(h, llama.layer[i].k, NULL), llama.groups));
        opd_tensor *const v = heads_of(opd_linear(h, llama.layer[i].v, NULL), llama.groups);
        opd_index_copy_(llama.layer[i].keys, 2, llama.place, k);
        opd_index_copy_(llama.layer[i].values, 2, llama.place, v);
        h = opd_scaled_dot_product_attention_full(q, llama.layer[i].keys, llama.layer[i].values, NULL, 0, false, OPD_NONE,
                                                  true);
        h = opd_linear(opd_view(h, OPD_INTS(1, 1, llama.heads * llama.width)), llama.layer[i].out, NULL);
        x = opd_add(x, h);
        h = rms(x, llama.layer[i].second);
        h = opd_mul(opd_silu(opd_linear(h, llama.layer[i].gate, NULL)), opd_linear(h, llama.layer[i].up, NULL));
        x = opd_add(x, opd_linear(h, llama.layer[i].down, NULL));
    }
    opd_tensor *const logits = opd_linear(rms(x, llama.last), llama.head, NULL);
    opd_copy_(llama.token, opd_argmax(logits, OPD_V(-1), false));
    return opd_amax(logits, OPD_INTS(0, 1, 2), false);
}
static opd_tensor *(*llama_new(void))(void) {
    const int64_t c = size(4096, 32), hidden = size(14336, 64), words = size(128256, 101), keys = size(2048, 16);
    llama.layers = size(32, 2); llama.heads = size(32, 4); llama.groups = size(8, 2); llama.width = c / llama.heads;
    const int64_t narrow = llama.groups * llama.width;
    llama.tokens = bf16(OPD_INTS(words, c), 1);
    llama.head = bf16(OPD_INTS(words, c), 0.02);
    llama.last = filled(OPD_INTS(c), 1, OPD_BFLOAT16);
    for (int64_t i = 0; i < llama.layers; i++) {
        llama.layer[i].first = filled(OPD_INTS(c), 1, OPD_BFLOAT16);
        llama.layer[i].second = filled(OPD_INTS(c), 1, OPD_BFLOAT16);
        llama.layer[i].q = bf16(OPD_INTS(c, c), 0.02);
        llama.layer[i].k = bf16(OPD_INTS(narrow, c), 0.02);
        llama.layer[i].v = bf16(OPD_INTS(narrow, c), 0.02);
        llama.layer[i].out = bf16(OPD_INTS(c, c), 0.02);
        llama.layer[i].gate = bf16(OPD_INTS(hidden, c), 0.02);
        llama.layer[i].up = bf16(OPD_INTS(hidden, c), 0.02);
        llama.layer[i].down = bf16(OPD_INTS(c, hidden), 0.02);
        llama.layer[i].keys = bf16(OPD_INTS(1, llama.groups, keys, llama.width), 1);
        llama.layer[i].values = bf16(OPD_INTS(1, llama.groups, keys, llama.width), 1);
    }
    llama.token = classes(words, OPD_INTS(1, 1));
    llama.place = opd_fill_(opd_tensor_new_on(OPD_INTS(1), OPD_INT64, gpu), opd_value_int(keys - 1));
    opd_tensor *const angle = normal(OPD_INTS(llama.width), 3, OPD_FLOAT32);
    llama.cos = opd_to_dtype(opd_cos(angle), OPD_BFLOAT16);
    llama.sin = opd_to_dtype(opd_sin(angle), OPD_BFLOAT16);
    return llama_step;
}
static opd_tensor *llama_replay(void) {
    return opd_capture_replay(llama.capture, llama.stream) ? NULL : llama.result;
}
/* Records the step on a stream of its own, which stays the current one. */
static opd_tensor *(*llama_captured_new(void))(void) {
    llama_new();
    opd_device_synchronize(gpu);
    llama.stream = opd_stream_new(gpu);
    opd_stream_set(llama.stream);
    OPD_NO_GRAD {
        OPD_SCOPE { llama_step(); }
        opd_stream_synchronize(llama.stream);
        if (opd_capture_begin(llama.stream) == 0) {
            llama.result = llama_step();
            llama.capture = opd_capture_end(llama.stream);
        }
    }
    return llama.capture ? llama_replay : NULL;
}

//-- the measurement -------------------------------------------------------------------------------------------------

/* A model: make prepares it, and returns the function that makes a step and returns the loss. */
typedef struct model { const char *name, *what; opd_tensor *(*(*make)(void))(void); bool trains; } model;
static const model models[] = {
    {"gpt2", "GPT-2 124M, training, 8 x 1,024 tokens, bf16 autocast, AdamW, clipped", gpt2_new, true},
    {"resnet50", "ResNet-50, training, 256 images, bf16 autocast, SGD with momentum, contiguous", resnet_new, true},
    {"resnet50_last", "the same, channels-last", resnet_last_new, true},
    {"llama", "Llama 8B, decoding a token, 2,048 tokens in the cache, bf16", llama_new, false},
    {"llama_captured", "the same as a captured graph", llama_captured_new, false},
    {"lstm", "LSTM, training, 128 steps, batch 64, 512 features, float32, SGD", lstm_new, true},
    {"unet", "U-Net of 2-D images, training, 16 x 256 x 256, bf16 autocast, SGD with momentum", unet_new, true},
    {"vit", "ViT-B/16, training, 64 images, bf16 autocast, AdamW", vit_new, true}};
enum { MODELS = (int)(sizeof models / sizeof *models) };

/* Runs `steps` steps, and waits.  Returns the milliseconds of a step, and writes the loss of the last to *loss. */
static double run_steps(opd_tensor *(*step)(void), bool trains, int steps, double *loss) {
    const double start = now_ms();
    double ms = 0;
    for (int i = 0; i < steps && opd_ok(); i++) {
        OPD_SCOPE {
            OPD_GRAD_MODE(trains) {
                opd_tensor *const t = step();
                if (i == steps - 1) {
                    if (t) { opd_stream_synchronize(opd_stream_current(gpu)); }
                    ms = (now_ms() - start) / steps;
                    *loss = t ? opd_item_f64(t) : NAN;
                }
            }
        }
    }
    return ms;
}
static void measure(const model *m) {
    double first = NAN, last = NAN, rounds[ROUNDS], ms = 0, first_ms = 0;
    long launches = -1;
    const int count = quick ? 1 : ROUNDS;
    nparams = nconvs = 0; channels_last = false;
    memset(&training, 0, sizeof training);
    memset(&llama, 0, sizeof llama);
    const double began = now_ms();
    OPD_SCOPE {
        opd_tensor *(*const step)(void) = m->make();
        opd_device_synchronize(gpu);
        const double made = now_ms() - began;
        opd_device_memory_reset_peak(gpu);
        if (step && opd_ok()) { first_ms = run_steps(step, m->trains, 1, &first); }
        for (int i = 0; i < 2 && opd_ok(); i++) { ms = run_steps(step, m->trains, 1, &last); }
        const long before = LAUNCHES(), products = COUNTED("products"), flops = COUNTED("megaflops");
        if (opd_ok()) { ms = run_steps(step, m->trains, 1, &last); }
        if (before >= 0) { launches = LAUNCHES() - before; }
        char counted[80] = "";
        if (products >= 0) {
            (void)snprintf(counted, sizeof counted, " (and %ld matrix products of %.4g TFLOP)", COUNTED("products") - products,
                           (double)(COUNTED("megaflops") - flops) * 1e-6);
        }
        const double want = seconds * 1e3 / (count * (ms + 1e-3));
        const int steps = quick || want < 1 ? 1 : want > 20 ? 20 : (int)want;
        for (int r = 0; r < count && opd_ok(); r++) { rounds[r] = run_steps(step, m->trains, steps, &last); }
        if (!opd_ok()) { printf("%-16s %s\n", m->name, opd_error_message()); opd_error_clear(); }
        else {
            qsort(rounds, (size_t)count, sizeof *rounds, compare);
            printf("%-16s %9.3f ms %7ld launches %8.2f GB  loss %.4f to %.4f%s  (made in %.0f ms, first step %.0f ms) %s%s\n",
                   m->name, rounds[count / 2], launches, (double)opd_device_memory(gpu).peak / 1e9, first, last,
                   !isfinite(last) ? " NOT FINITE" : m->trains && !(last < first) ? " DOES NOT FALL" : "",
                   made, first_ms, m->what, counted);
        }
        if (training.optimizer) { opd_optimizer_free(training.optimizer); }
        for (int i = 0; i < nparams; i++) { opd_tensor_set_requires_grad(params[i], false); }
        if (llama.stream.id) {
            opd_capture_free(llama.capture);
            opd_stream_set((opd_stream){gpu, 0});
        }
    }
    if (llama.stream.id) { opd_stream_free(llama.stream); }
    opd_device_empty_cache(gpu);
    fflush(stdout);
}
static void help(void) {
    printf("gpu_models: measures steps of whole models on a GPU\n  --load FILE    loads the CUDA plug-in (opdispatch_cuda.so)\n"
           "  --seconds S    measures each model for S seconds (default: 8)\n  --quick        measures only one step\n"
           "  --tiny         small models, for tests\nMODEL (default: all):\n");
    for (int i = 0; i < MODELS; i++) { printf("  %-16s %s\n", models[i].name, models[i].what); }
}

int main(int argc, char **argv) {
    bool wanted[MODELS] = {false}, any = false;
    for (int i = 1; i < argc; i++) {
        int found = -1;
        for (int k = 0; k < MODELS; k++) { if (strcmp(argv[i], models[k].name) == 0) { found = k; } }
        if (found >= 0) { wanted[found] = any = true; }
        else if (strcmp(argv[i], "--quick") == 0) { quick = true; }
        else if (strcmp(argv[i], "--tiny") == 0) { tiny = true; }
        else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) { seconds = atof(argv[++i]); }
        else if (strcmp(argv[i], "--load") == 0 && i + 1 < argc) { if (!opd_plugin_load(argv[++i])) { return opd_finish(); } }
        else { help(); return strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 ? 0 : 2; }
    }
    if (opd_device_count(OPD_CUDA) == 0) {
        printf("there is no GPU, or no CUDA plug-in (--load): nothing was measured\n");
        return opd_finish();
    }
    gpu = opd_device_make(OPD_CUDA, 0);
    for (int i = 0; i < MODELS; i++) { if (wanted[i] || !any) { measure(&models[i]); } }
    return opd_finish();
}
