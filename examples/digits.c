/* Trains a small convolutional network with a custom operator on 1,797 images of handwritten digits.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/digits.c -o digits -lm && ./digits
   ci: --epochs 2 --plain --save $tmp/digits.pt

   The network has two 3x3 convolutions with 16 and 32 filters, each followed by digits::bias_relu (defined below), then
   one 2x2 max pooling, and two linear layers.  The optimizer is Adam.  Every fifth image (index mod 5 = 4) is used only
   for the test.  The same seed gives the same output with any number of threads ($OPD_NUM_THREADS).  --save writes a
   checkpoint of the network, the optimizer and the epoch, as PyTorch does, and --resume continues from a checkpoint.
   --hash trains in the mode of same bits, and prints the SHA-256 of the weights: with it, two machines can be compared.
   --compiled (not with -DOPD_LEAN) lets a compiled graph compute the gradients; with --hash, the weights are the same.

   For a GPU, compile without -DOPD_LEAN, and link or load the CUDA plug-in (see the first comment of
   opdispatch_cuda.cu):
   ./digits --device cuda --load ./opdispatch_cuda.so */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#define IS_TERMINAL isatty(1)
#else
#define IS_TERMINAL 0
#endif

enum { IMAGES = 1797, PIXELS = 64, CLASSES = 10, BATCH = 64 };

//-- a custom operator: max(x + bias, 0) with a bias for each channel, in one pass --------------------------------

/* x: (N, C, H, W), bias: (C) -> (N, C, H, W) */
static opd_tensor *bias_relu_result(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *bias = opd_arg_tensor(call, 1);
    if (opd_ndim(x) != 4 || opd_ndim(bias) != 1 || opd_size(bias, 0) != opd_size(x, 1)) {
        opd_fail(OPD_ERROR_SHAPE, "x must be (N, C, H, W) and bias (C)");
        return NULL;
    }
    return opd_result(call, 0, opd_sizes(x), 4, opd_dtype(x));
}
static int bias_relu_fake(opd_call *call) { return bias_relu_result(call) ? 0 : -1; }

static int bias_relu_cpu(opd_call *call) {
    opd_tensor *out = bias_relu_result(call);
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *bias = opd_contiguous(opd_arg_tensor(call, 1));
    const float *a = opd_data_f32(x), *b = opd_data_f32(bias);
    float *o = opd_data_f32(out);
    if (!opd_ok()) { return -1; }
    int64_t planes = opd_size(x, 0) * opd_size(x, 1), channels = opd_size(x, 1), area = opd_size(x, 2) * opd_size(x, 3);
    for (int64_t p = 0; p < planes; p++) {
        const float add = b[p % channels];
        for (int64_t i = 0; i < area; i++) {
            const float v = a[p * area + i] + add;
            o[p * area + i] = v > 0 ? v : 0;
        }
    }
    return opd_return_tensor(call, out);
}

/* The kernel for all other devices calls built-in operators. */
static int bias_relu_elsewhere(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *bias = opd_arg_tensor(call, 1);
    return opd_return_tensor(call, opd_relu(opd_add(x, opd_view(bias, OPD_INTS(1, opd_numel(bias), 1, 1)))));
}

/* dx = g where the result is positive; dbias = dx summed over all but the channels. */
static int bias_relu_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_threshold_backward(opd_bw_grad(bw, 0), opd_bw_result(bw, 0), opd_value_int(0));
    if (opd_bw_needs(bw, 1)) { opd_bw_return(bw, 1, opd_sum_dim(g, OPD_INTS(0, 2, 3), false)); }
    return opd_bw_return(bw, 0, g);
}

OPD_LIBRARY(digits, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "bias_relu(Tensor x, Tensor bias) -> Tensor",
        .cpu = bias_relu_cpu, .any = bias_relu_elsewhere, .fake = bias_relu_fake, .backward = bias_relu_backward, .save = "result",
    });
}

static opd_tensor *bias_relu(opd_tensor *x, opd_tensor *bias) {
    static opd_op *op;
    return OPD_CALL(OPD_OP(&op, "digits::bias_relu"), x, bias);
}

//-- data ---------------------------------------------------------------------------------------------------------

typedef struct digit_set { float pixels[IMAGES][PIXELS]; int64_t label[IMAGES]; } digit_set;

static int bad_data(const char *path, const char *why) {
    fprintf(stderr, "digits: %s: %s\n", path, why);
    return -1;
}

/* Reads a line, 64 pixels, a space and the label, into image n.  Returns NULL, or the end of an error message. */
static const char *image_of_line(const char *line, digit_set *set, int n) {
    if (n == IMAGES || strcspn(line, "\n") != PIXELS + 2 || line[PIXELS] != ' ') {
        return "is damaged: a line is not 64 pixels and a label";
    }
    for (int i = 0; i < PIXELS; i++) {
        const int c = line[i], v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'g' ? c - 'a' + 10 : -1;
        if (v < 0) { return "is damaged: a pixel is not one of 0-9, a-g"; }
        set->pixels[n][i] = (float)v / 16.0f;
    }
    if (line[PIXELS + 1] < '0' || line[PIXELS + 1] > '9') { return "is damaged: a label is not a digit"; }
    set->label[n] = line[PIXELS + 1] - '0';
    return NULL;
}
/* Reads the file and checks its checksums.  Returns 0, or -1 after printing an error message. */
static int read_digits(const char *path, digit_set *set) {
    char line[512];
    unsigned long long want = 0, hash = 0xcbf29ce484222325u;
    int n = 0;
    FILE *f = fopen(path, "r");
    if (!f) { return bad_data(path, "cannot be opened (run from the root of the project, or use --data FILE)"); }
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#') {
            const char *sum = strstr(line, "newlines ");
            if (sum) { want = strtoull(sum + 9, NULL, 16); }
            continue;
        }
        const char *damage = image_of_line(line, set, n++);
        if (damage) { fclose(f); return bad_data(path, damage); }
        for (const char *p = line; *p; p++) { hash = (hash ^ (unsigned char)*p) * 0x100000001b3u; }
    }
    fclose(f);
    if (n != IMAGES) { return bad_data(path, "is damaged: it does not have 1797 images"); }
    return hash == want ? 0 : bad_data(path, "is damaged: its checksum is wrong");
}

static opd_device device;                /* the device of the network and the images */

/* Makes the tensors of the images `which[0..n)`, (n, 1, 8, 8), and of their labels, (n). */
static void batch_of(const digit_set *set, const int *which, int n, opd_tensor **images, opd_tensor **labels) {
    *images = opd_tensor_new(OPD_INTS(n, 1, 8, 8), OPD_FLOAT32);
    *labels = opd_tensor_new(OPD_INTS(n), OPD_INT64);
    float *x = opd_data_f32(*images);
    int64_t *y = opd_data_i64(*labels);
    for (int i = 0; i < n && opd_ok(); i++) {
        memcpy(x + i * PIXELS, set->pixels[which[i]], sizeof set->pixels[0]);
        y[i] = set->label[which[i]];
    }
    *images = opd_to_device(*images, device, OPD_FLOAT32);
    *labels = opd_to_device(*labels, device, OPD_INT64);
}

//-- the network --------------------------------------------------------------------------------------------------

enum { WEIGHTS = 8 };                    /* a weight and a bias for each of four layers */
typedef struct network {
    opd_module *parameters;
    opd_optimizer *adam;
    opd_tensor *weights[WEIGHTS];        /* the parameters, in the order of their layers */
} network;

/* Adds a layer's weight of these sizes and its bias, with PyTorch's initial values: uniform in +-1/sqrt(fan_in). */
static void add_layer(opd_module *parameters, const char *name, opd_ints sizes) {
    char full[40];
    int64_t fan_in, fan_out;
    opd_tensor *weight = opd_tensor_new(sizes, OPD_FLOAT32), *bias = opd_tensor_new(OPD_INTS(sizes.data[0]), OPD_FLOAT32);
    opd_init_kaiming_uniform_(weight, sqrt(5), false, "leaky_relu");
    opd_init_fans(weight, &fan_in, &fan_out);
    opd_init_uniform_(bias, -1 / sqrt((double)fan_in), 1 / sqrt((double)fan_in));
    snprintf(full, sizeof full, "%s.weight", name);
    opd_module_add(parameters, full, opd_tensor_set_requires_grad(weight, true), OPD_MODULE_PARAMETER);
    snprintf(full, sizeof full, "%s.bias", name);
    opd_module_add(parameters, full, opd_tensor_set_requires_grad(bias, true), OPD_MODULE_PARAMETER);
}

static void network_make(network *net) {
    net->parameters = opd_module_new();
    OPD_SCOPE {
        add_layer(net->parameters, "conv1", OPD_INTS(16, 1, 3, 3));
        add_layer(net->parameters, "conv2", OPD_INTS(32, 16, 3, 3));
        add_layer(net->parameters, "linear1", OPD_INTS(64, 512));
        add_layer(net->parameters, "linear2", OPD_INTS(CLASSES, 64));
        opd_module_to(net->parameters, &device, OPD_DTYPE_NONE);
        net->adam = opd_module_adam(net->parameters, NULL, NULL);
        (void)opd_module_parameters(net->parameters, NULL, net->weights, WEIGHTS);
    }
}
static void network_free(network *net) {
    opd_optimizer_free(net->adam);
    opd_module_free(net->parameters);
}

/* Loads a file that network_save has written.  Returns the number of its epochs, or -1 and sets an error. */
static int network_resume(network *net, const char *path) {
    double epoch = 0;
    opd_tensor_file *file = opd_tensor_file_open(path);
    int rc = file ? opd_training_load(file, net->parameters, net->adam) : -1;
    if (rc == 0) { rc = opd_tensor_file_number(file, "epoch", &epoch); }
    opd_tensor_file_close(file);
    return rc ? -1 : (int)epoch;
}
static int network_save(const network *net, const char *path, int epoch) {
    const char *name = "epoch";
    const opd_value value = opd_value_int(epoch);
    return opd_training_save(path, net->parameters, net->adam, &name, &value, 1);
}

/* (n, 1, 8, 8) -> (n, 10) */
static opd_tensor *forward(opd_tensor *const *w, opd_tensor *x) {
    const opd_ints one = OPD_INTS(1, 1);          /* stride, padding, dilation */
    x = bias_relu(opd_conv2d_full(x, w[0], NULL, one, one, one, 1), w[1]);
    x = bias_relu(opd_conv2d_full(x, w[2], NULL, one, one, one, 1), w[3]);
    x = opd_flatten(opd_max_pool2d(x, OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0)), 1, -1);
    return opd_linear(opd_relu(opd_linear(x, w[4], w[5])), w[6], w[7]);
}

//-- training and testing -----------------------------------------------------------------------------------------

/* A step of the training, compiled for each size of a batch: 64, and 30 for the last one. */
enum { SIZES = 2 };
#if !defined(OPD_LEAN)                    /* compiled graphs may call any operator */
static bool compiles;
static opd_graph *graphs[SIZES];
static opd_compiled *compiled[SIZES];
static int runs, compiled_runs;

/* Weights, images and labels -> the gradients of the weights, the loss and the scores. */
static int gradients(void *user, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    opd_tensor *w[WEIGHTS];
    (void)user;
    for (int i = 0; i < WEIGHTS; i++) { w[i] = opd_tensor_set_requires_grad(opd_detach(inputs[i]), true); }
    opd_tensor *scores = forward(w, inputs[WEIGHTS]), *loss = opd_cross_entropy_loss(scores, inputs[n - 1]);
    if (opd_autograd_grad(&loss, 1, w, WEIGHTS, NULL, outputs)) { return -1; }
    outputs[WEIGHTS] = opd_detach(loss);
    outputs[WEIGHTS + 1] = opd_detach(scores);
    return WEIGHTS + 2;
}
/* Computes the gradients, *loss and *scores by compiled code. */
static void compiled_step(const network *net, opd_tensor *images, opd_tensor *labels, opd_tensor **loss,
                          opd_tensor **scores) {
    opd_tensor *in[WEIGHTS + 2], *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int which = opd_size(images, 0) != BATCH;
    for (int i = 0; i < WEIGHTS; i++) { in[i] = opd_detach(net->weights[i]); }
    in[WEIGHTS] = images;
    in[WEIGHTS + 1] = labels;
    if (!compiled[which]) {
        opd_trace_options options;
        memset(&options, 0, sizeof options);
        options.parts = true;                     /* needed for gradients */
        graphs[which] = opd_graph_trace(gradients, NULL, in, WEIGHTS + 2, &options);
        compiled[which] = graphs[which] ? opd_graph_compile(graphs[which], NULL) : NULL;
    }
    if (!compiled[which] || opd_compiled_function(compiled[which], in, WEIGHTS + 2, out) < 0) { return; }
    runs++;
    compiled_runs += opd_compiled_reason(compiled[which]) == NULL;
    for (int i = 0; i < WEIGHTS; i++) { opd_tensor_set_grad(net->weights[i], out[i]); }
    *loss = out[WEIGHTS];
    *scores = out[WEIGHTS + 1];
}
/* Says how many steps were compiled: not the first of each size, and none if there is no C compiler. */
static void compiled_end(void) {
    if (compiles) { printf("\n%d of %d steps were compiled\n", compiled_runs, runs); }
    for (int i = 0; i < SIZES; i++) {
        opd_compiled_free(compiled[i]);
        opd_graph_free(graphs[i]);
    }
}
#endif
/* Computes the gradients of the weights, *loss and *scores. */
static void step(const network *net, opd_tensor *images, opd_tensor *labels, opd_tensor **loss, opd_tensor **scores) {
    *loss = *scores = NULL;
#if !defined(OPD_LEAN)
    if (compiles) {
        compiled_step(net, images, labels, loss, scores);
        return;
    }
#endif
    *scores = forward(net->weights, images);
    *loss = opd_cross_entropy_loss(*scores, labels);
    opd_backward(*loss);
}

static int count_right(opd_tensor *scores, opd_tensor *labels) {
    return (int)opd_item_i64(opd_sum(opd_eq(opd_argmax(scores, OPD_V(1), false), labels)));
}

typedef struct progress {
    int epoch, epochs, done, all, right, steps, most; /* most: the number of steps that end the training; 0: none does */
    double loss;
    bool live;
} progress;
static bool goes_on(const progress *p) { return (p->most == 0 || p->steps < p->most) && opd_ok(); }

static void show_progress(const progress *p, bool last) {
    char bar[31];
    int full = p->all ? 30 * p->done / p->all : 0;
    if (!p->live && !last) { return; }
    memset(bar, ' ', 30);
    memset(bar, '#', (size_t)full);
    bar[30] = 0;
    printf("%sepoch %3d/%d [%s] loss %.4f  accuracy %5.1f%%%s", p->live ? "\r" : "", p->epoch, p->epochs, bar,
           p->done ? p->loss / p->done : 0,
           p->done ? 100.0 * p->right / p->done : 0, last ? "\n" : "");
    fflush(stdout);
}

/* Trains with each training image once, in random order. */
static void train_epoch(network *net, const digit_set *set, const int *train, int n, progress *p) {
    int order[IMAGES];
    OPD_SCOPE {
        const int64_t *perm = opd_data_i64(opd_randperm(n, OPD_INT64));
        for (int i = 0; perm && i < n; i++) { order[i] = train[perm[i]]; }
    }
    for (int at = 0; at < n && goes_on(p); at += BATCH, p->steps++) {
        OPD_SCOPED;
        int size = n - at < BATCH ? n - at : BATCH;
        opd_tensor *images, *labels, *loss, *scores;
        batch_of(set, order + at, size, &images, &labels);
        step(net, images, labels, &loss, &scores);
        const double done = (p->epoch - 1 + (double)at / n) / p->epochs;
        opd_optimizer_set_lr(net->adam, 0.002 * (1 - done));                 /* falls to zero */
        opd_optimizer_step(net->adam);
        opd_optimizer_zero_grad(net->adam);
        p->loss += opd_item_f64(loss) * size;
        p->right += count_right(scores, labels);
        p->done += size;
        show_progress(p, false);
    }
}

/* Writes the predictions for the images `which` to predicted[].  Returns how many are right. */
static int predict(const network *net, const digit_set *set, const int *which, int n, int *predicted) {
    int right = 0;
    bool was = opd_grad_mode_set(false);
    OPD_SCOPE {
        opd_tensor *images, *labels, *best;
        batch_of(set, which, n, &images, &labels);
        best = opd_to_device(opd_argmax(forward(net->weights, images), OPD_V(1), false), opd_device_make(OPD_CPU, -1), OPD_INT64);
        const int64_t *b = opd_data_i64(best);
        for (int i = 0; b && i < n; i++) {
            predicted[i] = (int)b[i];
            right += b[i] == set->label[which[i]];
        }
    }
    opd_grad_mode_set(was);
    return right;
}

static void print_confusion(const digit_set *set, const int *which, int n, const int *predicted) {
    int table[CLASSES][CLASSES] = {{0}};
    for (int i = 0; i < n; i++) { table[set->label[which[i]]][predicted[i]]++; }
    printf("\nconfusion (rows: the digit, columns: the prediction)\n    ");
    for (int c = 0; c < CLASSES; c++) { printf("%4d", c); }
    for (int r = 0; r < CLASSES; r++) {
        printf("\n%3d ", r);
        for (int c = 0; c < CLASSES; c++) {
            if (table[r][c]) { printf("%4d", table[r][c]); } else { printf("   ."); }
        }
    }
    printf("\n");
}

/* Draws five test images side by side, among them the first ones whose prediction is wrong. */
static void draw_digits(const digit_set *set, const int *which, int n, const int *predicted) {
    int pick[5], picked = 0;
    for (int i = 0; i < n && picked < 2; i++) {
        if (predicted[i] != set->label[which[i]]) { pick[picked++] = i; }
    }
    for (int i = 0; i < n && picked < 5; i++) {
        if (predicted[i] == set->label[which[i]]) { pick[picked++] = i; }
    }
    printf("\n");
    for (int row = 0; row < 8; row++) {
        for (int k = 0; k < picked; k++) {
            for (int col = 0; col < 8; col++) {
                char c = " .:-=+*#@"[(int)(set->pixels[which[pick[k]]][row * 8 + col] * 8)];
                printf("%c%c", c, c);
            }
            printf(k + 1 < picked ? "   " : "\n");
        }
    }
    for (int k = 0; k < picked; k++) {
        int i = pick[k], is = (int)set->label[which[i]];
        printf("%d, predicted %d %-4s", is, predicted[i], is == predicted[i] ? "" : "(!)");
        printf(k + 1 < picked ? "  " : "\n");
    }
}

/* Prints the SHA-256 of all weights. */
static void print_hash(const network *net) {
    char hash[65];
    if (opd_tensor_sha256(net->weights, WEIGHTS, hash) == 0) { printf("\nSHA-256 of the weights: %s\n", hash); }
}

static int usage(FILE *to, int status) {
    fprintf(to, "usage: digits [--epochs N] [--steps N] [--seed N] [--data FILE] [--plain] [--hash]\n"
                "              [--compiled] [--save FILE] [--resume FILE] [--device NAME] [--load FILE]\n"
                "  Trains a small convolutional network on 8x8 images of handwritten digits and tests it on every fifth one.\n"
                "  --epochs N   passes over the training images (30)\n"
                "  --steps N    ends the training after N batches of 64 images\n"
                "  --seed N     the seed for the first weights and for the order of the images (0)\n"
                "  --data FILE  the images (examples/data/digits.txt)\n"
                "  --plain      prints one line per epoch, without a progress bar (the default if the output is not a terminal)\n"
                "  --save FILE  writes the trained network, the optimizer and the epoch (.pt or .safetensors)\n"
                "  --resume F   continues the training from such a file for --epochs more epochs\n"
                "  --device D   the device for the training: cpu (the default) or cuda\n"
                "  --hash       trains in the mode of same bits, and prints the SHA-256 of the weights\n"
                "  --compiled   trains with a compiled graph, which needs a C compiler (not with -DOPD_LEAN)\n"
                "  --load FILE  loads the plug-in of the device: opdispatch_cuda.so (not with -DOPD_LEAN)\n");
    return status;
}

int main(int argc, char **argv) {
    static digit_set set;
    static network net;
    static int train[IMAGES], test[IMAGES], predicted[IMAGES];
    const char *data = "examples/data/digits.txt", *save = NULL, *resume = NULL;
    progress p = {0};
    int epochs = 30, seen = 0, ntrain = 0, ntest = 0;
    unsigned long long seed = 0;
    bool hash = false;
    p.live = IS_TERMINAL;
    device = opd_device_make(OPD_CPU, -1);
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { return usage(stdout, 0); }
        else if (strcmp(argv[i], "--plain") == 0) { p.live = false; }
        else if (strcmp(argv[i], "--hash") == 0) { hash = true; }
        else if (strcmp(argv[i], "--epochs") == 0 && more) { epochs = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--steps") == 0 && more) { p.most = atoi(argv[++i]) > 0 ? atoi(argv[i]) : -1; }
        else if (strcmp(argv[i], "--seed") == 0 && more) { seed = strtoull(argv[++i], NULL, 10); }
        else if (strcmp(argv[i], "--data") == 0 && more) { data = argv[++i]; }
        else if (strcmp(argv[i], "--save") == 0 && more) { save = argv[++i]; }
        else if (strcmp(argv[i], "--resume") == 0 && more) { resume = argv[++i]; }
        else if (strcmp(argv[i], "--device") == 0 && more) {
            if (opd_device_parse(argv[++i], &device) < 0) { return opd_finish(); }
        }
#if !defined(OPD_LEAN)
        else if (strcmp(argv[i], "--compiled") == 0) { compiles = true; }
                                                   /* a plug-in may call any operator, so loading would keep all of them */
        else if (strcmp(argv[i], "--load") == 0 && more) { if (!opd_plugin_load(argv[++i])) { return opd_finish(); } }
#endif
        else { fprintf(stderr, "digits: '%s' is not understood\n", argv[i]); return usage(stderr, 2); }
    }
    if (epochs < 1 || p.most < 0) {
        fprintf(stderr, "digits: %s needs a number of at least 1\n", epochs < 1 ? "--epochs" : "--steps");
        return 2;
    }
    if (read_digits(data, &set)) { return 1; }
    for (int i = 0; i < IMAGES; i++) { if (i % 5 == 4) { test[ntest++] = i; } else { train[ntrain++] = i; } }
    opd_manual_seed(seed);
    if (hash) { (void)opd_same_bits_set(true); }
    network_make(&net);
    if (resume) { seen = network_resume(&net, resume); }
    for (int e = seen + 1; e <= seen + epochs && goes_on(&p); e++) {
        p.epoch = e; p.epochs = seen + epochs; p.done = p.right = 0; p.loss = 0; p.all = ntrain;
        train_epoch(&net, &set, train, ntrain, &p);
        show_progress(&p, true);
    }
    if (save && opd_ok()) { network_save(&net, save, seen + epochs); }
    int right = predict(&net, &set, test, ntest, predicted);
    if (opd_ok()) {
        printf("\ntest accuracy %.2f%% (%d of %d)\n", 100.0 * right / ntest, right, ntest);
        print_confusion(&set, test, ntest, predicted);
        draw_digits(&set, test, ntest, predicted);
        if (hash) { print_hash(&net); }
    }
#if !defined(OPD_LEAN)
    compiled_end();
#endif
    network_free(&net);
    return opd_finish();
}
