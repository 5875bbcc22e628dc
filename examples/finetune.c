/* Trains a network that PyTorch has trained before: it knows the digits 0 to 3, and learns all ten.
   cc -O2 examples/finetune.c -o finetune -lm && ./finetune
   ci: --epochs 3 --plain

   The network is an exported program of PyTorch (examples/data/four_digits.pt2, written by
   examples/finetune_network.py).  Its layers are not defined in this file.  The result is saved as a state dict, which
   PyTorch can load:
   ./finetune --out finetuned.pt && python3 examples/finetune_network.py --check finetuned.pt */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#define IS_TERMINAL isatty(1)
#else
#define IS_TERMINAL 0
#endif

enum { IMAGES = 1797, PIXELS = 64, CLASSES = 10, BATCH = 64 };

typedef struct digit_set { float pixels[IMAGES][PIXELS]; int64_t label[IMAGES]; } digit_set;

typedef struct settings {
    const char *model, *data, *out;
    int epochs;
    bool plain;
} settings;

/* Reads the file.  A line has 64 pixels (0-9 and a-g are 0 to 16 sixteenths) and the label.  Returns 0, or -1 and sets
   an error. */
static int read_digits(const char *path, digit_set *set) {
    char line[512];
    int n = 0;
    FILE *f = fopen(path, "r");
    if (!f) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s cannot be opened (run from the root of the project, or use --data "
                        "FILE)", path);
    }
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#') { continue; }
        if (n == IMAGES || strlen(line) != PIXELS + 3 || line[PIXELS + 1] < '0' || line[PIXELS + 1] > '9') { n = 0; break; }
        for (int i = 0; i < PIXELS; i++) {
            const int c = line[i];
            set->pixels[n][i] = (float)(c >= 'a' ? c - 'a' + 10 : c - '0') / 16.0f;
        }
        set->label[n++] = line[PIXELS + 1] - '0';
    }
    fclose(f);
    return n == IMAGES ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s is damaged: it does not have 1797 images", path);
}

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
}

/* Runs the program: images (n, 1, 8, 8) -> scores (n, 10). */
static opd_tensor *scores_of(const opd_program *program, opd_tensor *images) {
    opd_value in = opd_value_tensor(images), out = opd_value_none();
    return opd_program_run(program, &in, 1, &out, 1) == 1 ? out.u.t : NULL;
}

/* Returns how many of the images `which` are classified correctly.  right[] and all[] get the correct images and all
   images of each digit. */
static int test(const opd_program *program, const digit_set *set, const int *which, int n, int *right, int *all) {
    int sum = 0;
    bool was = opd_grad_mode_set(false);
    memset(right, 0, CLASSES * sizeof *right);
    memset(all, 0, CLASSES * sizeof *all);
    OPD_SCOPE {
        opd_tensor *images, *labels;
        batch_of(set, which, n, &images, &labels);
        const int64_t *best = opd_data_i64(opd_argmax(scores_of(program, images), OPD_V(1), false));
        for (int i = 0; best && i < n; i++) {
            all[set->label[which[i]]]++;
            right[set->label[which[i]]] += best[i] == set->label[which[i]];
            sum += best[i] == set->label[which[i]];
        }
    }
    opd_grad_mode_set(was);
    return sum;
}

/* Draws a bar for each digit: the percentage of correct images. */
static void draw(const char *title, const int *right, const int *all, int sum, int n) {
    printf("%s: %d of %d\n", title, sum, n);
    for (int digit = 0; digit < CLASSES; digit++) {
        char bar[41];
        const int full = all[digit] ? 40 * right[digit] / all[digit] : 0;
        memset(bar, '.', 40);
        memset(bar, '#', (size_t)full);
        bar[40] = 0;
        printf("  %d %s %3.0f%%\n", digit, bar, all[digit] ? 100.0 * right[digit] / all[digit] : 0);
    }
}

/* Trains with each training image once, in random order.  Returns the mean loss. */
static double train_epoch(const opd_program *program, opd_optimizer *adam, const digit_set *set, const int *train, int n) {
    int order[IMAGES];
    double loss_sum = 0;
    OPD_SCOPE {
        const int64_t *perm = opd_data_i64(opd_randperm(n, OPD_INT64));
        for (int i = 0; perm && i < n; i++) { order[i] = train[perm[i]]; }
    }
    for (int at = 0; at < n && opd_ok(); at += BATCH) {
        OPD_SCOPED;
        const int size = n - at < BATCH ? n - at : BATCH;
        opd_tensor *images, *labels;
        batch_of(set, order + at, size, &images, &labels);
        opd_tensor *loss = opd_cross_entropy_loss(scores_of(program, images), labels);
        opd_backward(loss);
        opd_optimizer_step(adam);
        opd_optimizer_zero_grad(adam);
        loss_sum += opd_item_f64(loss) * size;
    }
    return loss_sum / n;
}

/* The last layers (head) get new random weights.  The first layers (features) learn with a tenth of the learning
   rate. */
static opd_optimizer *optimizer_of(const opd_module *module) {
    static const char *const heads[] = {"head.0", "head.2"};
    for (int i = 0; i < 2; i++) {
        char name[32];
        OPD_SCOPED;
        snprintf(name, sizeof name, "%s.weight", heads[i]);
        opd_init_kaiming_uniform_(opd_module_get(module, name), 0, false, "relu");
        snprintf(name, sizeof name, "%s.bias", heads[i]);
        opd_init_zeros_(opd_module_get(module, name));
    }
    opd_adam_options options = opd_adam_defaults();
    options.lr = 3e-3;
    opd_optimizer *adam = opd_module_adam(module, NULL, &options);
    opd_optimizer_set_option(adam, opd_module_group(module, adam, "features.*"), "lr", 3e-4);
    return adam;
}

/* Loads, tests, trains, tests, saves. */
static int finetune(const settings *s, const digit_set *set) {
    int train[IMAGES], held_out[IMAGES], ntrain = 0, ntest = 0, right[CLASSES], all[CLASSES];
    for (int i = 0; i < IMAGES; i++) { if (i % 5 == 4) { held_out[ntest++] = i; } else { train[ntrain++] = i; } }
    opd_program *program = opd_program_load(s->model, NULL);
    opd_optimizer *adam = NULL;
    /* saves before training, too, so that a file that cannot be written is reported immediately */
    if (program && (!s->out || opd_module_save(opd_program_module(program), s->out) == 0)) {
        int sum = test(program, set, held_out, ntest, right, all);
        draw("as PyTorch trained it on the digits 0 to 3", right, all, sum, ntest);
        adam = optimizer_of(opd_program_module(program));
        for (int epoch = 1; epoch <= s->epochs && opd_ok(); epoch++) {
            const double loss = train_epoch(program, adam, set, train, ntrain);
            printf("%sepoch %2d/%d loss %.4f%s", s->plain ? "" : "\r", epoch, s->epochs, loss,
                   s->plain || epoch == s->epochs ? "\n" : "");
            fflush(stdout);
        }
        sum = test(program, set, held_out, ntest, right, all);
        draw("trained on with all ten", right, all, sum, ntest);
        if (s->out && opd_ok() && opd_module_save(opd_program_module(program), s->out) == 0) {
            printf("saved: %s\n", s->out);
        }
    }
    opd_optimizer_free(adam);
    opd_program_free(program);
    return opd_ok() ? 0 : -1;
}

static int usage(FILE *to, int status) {
    fprintf(to, "usage: finetune [--model FILE] [--epochs N] [--out FILE] [--data FILE] [--plain]\n"
                "  Continues the training of an exported program, with more classes than it was trained on in PyTorch.\n"
                "  --model FILE  the exported program (examples/data/four_digits.pt2)\n"
                "  --epochs N    passes over the training images (10)\n"
                "  --out FILE    saves the state dict to a file that PyTorch can load\n"
                "  --data FILE   the images (examples/data/digits.txt)\n"
                "  --plain       prints one line per epoch (the default if the output is not a terminal)\n");
    return status;
}

int main(int argc, char **argv) {
    static digit_set set;
    settings s = {"examples/data/four_digits.pt2", "examples/data/digits.txt", NULL, 10, !IS_TERMINAL};
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { return usage(stdout, 0); }
        else if (strcmp(argv[i], "--plain") == 0) { s.plain = true; }
        else if (strcmp(argv[i], "--model") == 0 && more) { s.model = argv[++i]; }
        else if (strcmp(argv[i], "--data") == 0 && more) { s.data = argv[++i]; }
        else if (strcmp(argv[i], "--out") == 0 && more) { s.out = argv[++i]; }
        else if (strcmp(argv[i], "--epochs") == 0 && more) { s.epochs = atoi(argv[++i]); }
        else { fprintf(stderr, "finetune: '%s' is not understood\n", argv[i]); return usage(stderr, 2); }
    }
    if (s.epochs < 1) { fprintf(stderr, "finetune: --epochs needs a number of at least 1\n"); return 2; }
    opd_manual_seed(0);
    if (read_digits(s.data, &set) == 0) { finetune(&s, &set); }
    return opd_finish();
}
