/* Trains the network of digits.c three times: in float32, under autocast in bfloat16, and in float16 with a gradient
   scaler.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/mixed_precision.c -o mixed_precision -lm && ./mixed_precision
   ci: --epochs 2 --seeds 1 --check

   Inside OPD_AUTOCAST, convolutions and linear layers run in the lower dtype, and the loss in float32.  The weights and
   their gradients stay float32.  For each dtype, the program prints the accuracy on every fifth image, the time of a
   step, the memory that a step keeps from forward to backward, and the largest memory in use.  The largest memory does
   not count weights and optimizer, but counts the buffers of the CPU's convolutions.  With more than one seed, accuracy
   and time are means.  With --check, the program fails if an accuracy is more than half a percentage point below that
   of float32 (only from 20 epochs on). */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>

enum { IMAGES = 1797, PIXELS = 64, CLASSES = 10, BATCH = 64, PARAMETERS = 8 };

typedef struct digit_set { float pixels[IMAGES][PIXELS]; int64_t label[IMAGES]; } digit_set;
typedef struct precision { const char *name; bool on, scaled; opd_scalar_type dtype; } precision;
typedef struct outcome { double accuracy, milliseconds, kept, most, scale; } outcome;

/* Returns the time in milliseconds. */
static double now(void) {
#if defined(TIME_UTC)
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
#else
    return 1e3 * (double)clock() / CLOCKS_PER_SEC;
#endif
}

/* Reads lines of 64 pixels (0 to 9 and a to g), a blank and the label.  Returns 0, or -1. */
static int read_digits(const char *path, digit_set *set) {
    char line[512];
    int n = 0;
    FILE *f = fopen(path, "r");
    if (!f) { fprintf(stderr, "mixed_precision: %s cannot be opened (run from the root of the project)\n", path); return -1; }
    while (n < IMAGES && fgets(line, sizeof line, f)) {
        if (line[0] == '#' || strlen(line) < PIXELS + 2) { continue; }
        for (int i = 0; i < PIXELS; i++) {
            set->pixels[n][i] = (float)(line[i] <= '9' ? line[i] - '0' : line[i] - 'a' + 10) / 16.0f;
        }
        set->label[n++] = line[PIXELS + 1] - '0';
    }
    fclose(f);
    return n == IMAGES ? 0 : -1;
}
static void batch_of(const digit_set *set, const int *which, int n, opd_tensor **images, opd_tensor **labels) {
    *images = opd_tensor_new(OPD_INTS(n, 1, 8, 8), OPD_FLOAT32);
    *labels = opd_tensor_new(OPD_INTS(n), OPD_INT64);
    for (int i = 0; i < n && opd_ok(); i++) {
        memcpy(opd_data_f32(*images) + i * PIXELS, set->pixels[which[i]], sizeof set->pixels[0]);
        opd_data_i64(*labels)[i] = set->label[which[i]];
    }
}

/* Adds a parameter with PyTorch's initial values: uniform in +-1/sqrt(fan_in). */
static void add(opd_module *net, const char *name, opd_ints sizes, int fan_in) {
    opd_tensor *t = opd_init_uniform_(opd_tensor_new(sizes, OPD_FLOAT32), -1 / sqrt(fan_in), 1 / sqrt(fan_in));
    opd_module_add(net, name, opd_tensor_set_requires_grad(t, true), OPD_MODULE_PARAMETER);
}
static opd_module *net_make(void) {
    opd_module *net = opd_module_new();
    OPD_SCOPE {
        add(net, "conv1.weight", OPD_INTS(16, 1, 3, 3), 9); add(net, "conv1.bias", OPD_INTS(16), 9);
        add(net, "conv2.weight", OPD_INTS(32, 16, 3, 3), 144); add(net, "conv2.bias", OPD_INTS(32), 144);
        add(net, "linear1.weight", OPD_INTS(64, 512), 512); add(net, "linear1.bias", OPD_INTS(64), 512);
        add(net, "linear2.weight", OPD_INTS(CLASSES, 64), 64); add(net, "linear2.bias", OPD_INTS(CLASSES), 64);
    }
    return net;
}
/* (n, 1, 8, 8) -> (n, 10) */
static opd_tensor *forward(opd_tensor *const *p, opd_tensor *x) {
    const opd_ints one = OPD_INTS(1, 1);          /* stride, padding, dilation */
    x = opd_relu(opd_conv2d_full(x, p[0], p[1], one, one, one, 1));
    x = opd_relu(opd_conv2d_full(x, p[2], p[3], one, one, one, 1));
    x = opd_flatten(opd_max_pool2d(x, OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0)), 1, -1);
    return opd_linear(opd_relu(opd_linear(x, p[4], p[5])), p[6], p[7]);
}

/* Trains one step.  Returns the bytes in use between forward and backward.  Only forward and the loss are inside of the
   autocast region: backward uses the dtypes of forward. */
static int64_t step(opd_tensor *const *p, opd_optimizer *adam, opd_scaler *scaler, const precision *how, opd_tensor *images,
                 opd_tensor *labels) {
    opd_tensor *loss = NULL;
    OPD_AUTOCAST_AS(OPD_CPU, how->dtype, how->on, -1) { loss = opd_cross_entropy_loss(forward(p, images), labels); }
    int64_t live = opd_memory_stats().live;
    opd_backward(opd_scaler_scale(scaler, loss));
    opd_scaler_step(scaler, adam);
    opd_scaler_update(scaler, 0);
    opd_optimizer_zero_grad(adam);
    return live;
}
static int count_right(opd_tensor *const *p, const precision *how, const digit_set *set, const int *which, int n) {
    int right = 0;
    OPD_SCOPE {
        opd_tensor *images, *labels, *scores = NULL;
        batch_of(set, which, n, &images, &labels);
        OPD_NO_GRAD { OPD_AUTOCAST_AS(OPD_CPU, how->dtype, how->on, -1) { scores = forward(p, images); } }
        right = (int)opd_item_i64(opd_sum(opd_eq(opd_argmax(scores, OPD_V(1), false), labels)));
    }
    return right;
}

static outcome train(const digit_set *set, const precision *how, int epochs, unsigned long long seed) {
    int train[IMAGES], test[IMAGES], order[IMAGES], ntrain = 0, ntest = 0, steps = 0;
    opd_tensor *p[PARAMETERS];
    opd_scaler_options options = opd_scaler_defaults();
    opd_scaler *scaler;
    opd_optimizer *adam;
    int64_t before, kept = 0, most = 0;
    double spent = 0;
    outcome o;
    for (int i = 0; i < IMAGES; i++) { if (i % 5 == 4) { test[ntest++] = i; } else { train[ntrain++] = i; } }
    options.enabled = how->scaled;                /* if disabled, the scaler changes nothing */
    scaler = opd_scaler_new(&options);
    opd_manual_seed(seed);
    opd_module *net = net_make();
    opd_module_parameters(net, NULL, p, PARAMETERS);
    adam = opd_module_adam(net, NULL, NULL);
    for (int e = 0; e < epochs && opd_ok(); e++) {
        OPD_SCOPE {
            const int64_t *perm = opd_data_i64(opd_randperm(ntrain, OPD_INT64));
            for (int i = 0; perm && i < ntrain; i++) { order[i] = train[perm[i]]; }
        }
        for (int at = 0; at < ntrain && opd_ok(); at += BATCH) {
            OPD_SCOPED;
            opd_tensor *images, *labels;
            batch_of(set, order + at, ntrain - at < BATCH ? ntrain - at : BATCH, &images, &labels);
            opd_optimizer_set_lr(adam, 0.002 * (1 - (e + (double)at / ntrain) / epochs));
            before = opd_memory_stats().live;
            opd_memory_reset_peak();
            double start = now();
            int64_t live = step(p, adam, scaler, how, images, labels);
            spent += now() - start;
            if (live - before > kept) { kept = live - before; }
            if (opd_memory_stats().peak - before > most) { most = opd_memory_stats().peak - before; }
            steps++;
        }
    }
    o.accuracy = 100.0 * count_right(p, how, set, test, ntest) / ntest;
    o.milliseconds = spent / steps;
    o.kept = (double)kept / 1e6;
    o.most = (double)most / 1e6;
    o.scale = opd_scaler_get(scaler).scale;
    opd_scaler_free(scaler);
    opd_optimizer_free(adam);
    opd_module_free(net);
    return o;
}

int main(int argc, char **argv) {
    static const precision precisions[] = {
        {"float32", false, false, OPD_DTYPE_NONE}, {"bfloat16", true, false, OPD_BFLOAT16},
        {"float16, scaled", true, true, OPD_FLOAT16}};
    static digit_set set;
    double first = 0, worst = 0;
    int epochs = 30, seeds = 3;
    bool check = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--epochs") == 0 && i + 1 < argc) { epochs = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) { seeds = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--check") == 0) { check = true; }
        else {
            const bool asked = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
            fputs("usage: mixed_precision [--epochs N] [--seeds N] [--check]\n"
                  "  --check   fails if the accuracy of a precision is much lower than that of float32\n", asked ? stdout : stderr);
            return asked ? 0 : 2;
        }
    }
    if (epochs < 1 || seeds < 1 || read_digits("examples/data/digits.txt", &set)) { return 1; }
    printf("%-16s  test accuracy  ms/step    MB kept  MB at most  scale at the end\n", "");
    for (int k = 0; k < 3 && opd_ok(); k++) {
        outcome o = {0}, sum = {0};
        for (int s = 0; s < seeds; s++) {
            o = train(&set, &precisions[k], epochs, (unsigned long long)s);
            sum.accuracy += o.accuracy / seeds;
            sum.milliseconds += o.milliseconds / seeds;
        }
        printf("%-16s  %12.2f%%  %9.3f  %7.2f  %10.2f  %16g\n", precisions[k].name, sum.accuracy, sum.milliseconds,
               o.kept, o.most, o.scale);
        if (k == 0) { first = sum.accuracy; }
        if (sum.accuracy - first < worst) { worst = sum.accuracy - first; }
    }
    if (check && epochs >= 20 && worst < -0.5) { printf("more than half a point worse: %.2f\n", worst); return 1; }
    return opd_finish();
}
