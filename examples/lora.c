/* Trains a small language model, then only adapters for it (LoRA), and saves the adapters in a file of their own.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/lora.c -o lora -lm && ./lora   (or ./lora FILE.safetensors, to keep the file)

   The model is a decoder with two layers, which predicts the next character.
   1. It learns a text, and writes it from its first letters on.
   2. The model is frozen.  Each of its linear layers gets an adapter, a product of two thin matrices, which is added:
      y = W x + B A x.  Only the adapters learn a second text.
   3. The adapters are saved, and loaded into new ones.  With them, the model writes the second text; without them, the
      first one again.
   The program prints losses, the numbers of parameters, and what the model writes. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <string.h>

enum { CONTEXT = 24, WIDTH = 32, HEADS = 2, HIDDEN = 64, LAYERS = 2, RANK = 4, BATCH = 12, LETTERS = 29, STEPS = 300 };

static const char first_text[] = "when the sun comes over the hill, a baker sells his bread. the smell goes down to "
                                 "the mill, and mice get out of bed.";
static const char second_text[] = "under a stone by the garden gate, one cricket drums until it is late.";
static const char *const layer_names[] = {"qkv", "proj", "up", "down"};
static const int64_t layer_sizes[][2] = {{3 * WIDTH, WIDTH}, {WIDTH, WIDTH}, {HIDDEN, WIDTH}, {WIDTH, HIDDEN}};

//-- the model --------------------------------------------------------------------------------------------------------

static opd_module *model, *adapters;              /* adapters: NULL without adapters */

static void add(opd_module *to, const char *name, int64_t rows, int64_t columns, double std) {
    OPD_SCOPE {
        opd_tensor *t = opd_init_normal_(opd_tensor_new(OPD_INTS(rows, columns), OPD_FLOAT32), 0, std);
        (void)opd_module_add(to, name, opd_tensor_set_requires_grad(t, true), OPD_MODULE_PARAMETER);
    }
}
static opd_module *new_model(void) {
    char name[32];
    opd_module *m = opd_module_new();
    add(m, "letters", LETTERS, WIDTH, 0.5);
    add(m, "positions", CONTEXT, WIDTH, 0.1);
    add(m, "head", LETTERS, WIDTH, 0.1);
    for (int i = 0; i < 4 * LAYERS; i++) {
        (void)snprintf(name, sizeof name, "%d.%s", i / 4, layer_names[i % 4]);
        add(m, name, layer_sizes[i % 4][0], layer_sizes[i % 4][1], 0.15);
    }
    return m;
}
/* B begins with zeros, so that new adapters change nothing. */
static opd_module *new_adapters(void) {
    char name[32];
    opd_module *m = opd_module_new();
    for (int i = 0; i < 4 * LAYERS; i++) {
        (void)snprintf(name, sizeof name, "%d.%s.A", i / 4, layer_names[i % 4]);
        add(m, name, RANK, layer_sizes[i % 4][1], 0.2);
        (void)snprintf(name, sizeof name, "%d.%s.B", i / 4, layer_names[i % 4]);
        add(m, name, layer_sizes[i % 4][0], RANK, 0);
    }
    return m;
}
static opd_tensor *linear(opd_tensor *x, int layer, const char *which) {
    char name[32];
    (void)snprintf(name, sizeof name, "%d.%s", layer, which);
    opd_tensor *y = opd_linear(x, opd_module_get(model, name), NULL);
    if (!adapters) { return y; }
    (void)snprintf(name, sizeof name, "%d.%s.A", layer, which);
    x = opd_linear(x, opd_module_get(adapters, name), NULL);
    (void)snprintf(name, sizeof name, "%d.%s.B", layer, which);
    return opd_add(y, opd_linear(x, opd_module_get(adapters, name), NULL));
}
static opd_tensor *norm(opd_tensor *x) { return opd_rms_norm(x, OPD_INTS(WIDTH), NULL, OPD_NONE); }
/* ids [batch, length] -> logits [batch, length, LETTERS] */
static opd_tensor *forward(opd_tensor *ids) {
    const int64_t n = opd_size(ids, 0), length = opd_size(ids, 1);
    opd_tensor *x = opd_add(opd_embedding(opd_module_get(model, "letters"), ids),
                            opd_narrow(opd_module_get(model, "positions"), 0, 0, length));
    for (int i = 0; i < LAYERS && opd_ok(); i++) {
        opd_tensor *parts = opd_view(linear(norm(x), i, "qkv"), OPD_INTS(n, length, 3, HEADS, WIDTH / HEADS));
        parts = opd_permute(parts, OPD_INTS(2, 0, 3, 1, 4));
        opd_tensor *q = opd_select(parts, 0, 0), *k = opd_select(parts, 0, 1), *v = opd_select(parts, 0, 2);
        opd_tensor *seen = opd_scaled_dot_product_attention_full(q, k, v, NULL, 0, true, OPD_NONE, false);
        seen = opd_reshape(opd_transpose(seen, 1, 2), OPD_INTS(n, length, WIDTH));
        x = opd_add(x, linear(seen, i, "proj"));
        x = opd_add(x, linear(opd_gelu(linear(norm(x), i, "up")), i, "down"));
    }
    return opd_linear(norm(x), opd_module_get(model, "head"), NULL);
}

//-- training and writing ---------------------------------------------------------------------------------------------

/* The zero at the end of a text counts as a space. */
static int64_t id_of(char c) { return c >= 'a' && c <= 'z' ? c - 'a' : c == ',' ? 26 : c == '.' ? 27 : 28; }
static char letter_of(int64_t id) { return "abcdefghijklmnopqrstuvwxyz,. "[id]; }

/* Trains the parameters of `what` on pieces of a text, which begins again after its end. */
static void train(opd_module *what, const char *text, double lr) {
    opd_optimizer *adam = opd_module_adam(what, NULL, NULL);
    const int64_t length = (int64_t)strlen(text) + 1;
    double sum = 0;
    for (int step = 1; step <= STEPS && opd_ok(); step++) {
        OPD_SCOPED;
        int64_t ids[BATCH][CONTEXT], next[BATCH][CONTEXT];
        const int64_t *start = opd_data_i64(opd_randint(length, OPD_INTS(BATCH), OPD_INT64));
        for (int i = 0; start && i < BATCH * CONTEXT; i++) {
            const int64_t at = start[i / CONTEXT] + i % CONTEXT;
            ids[i / CONTEXT][i % CONTEXT] = id_of(text[at % length]);
            next[i / CONTEXT][i % CONTEXT] = id_of(text[(at + 1) % length]);
        }
        opd_tensor *logits = forward(opd_tensor_from(ids, OPD_INTS(BATCH, CONTEXT), OPD_INT64));
        opd_tensor *right = opd_tensor_from(next, OPD_INTS(BATCH * CONTEXT), OPD_INT64);
        opd_tensor *loss = opd_cross_entropy_loss(opd_view(logits, OPD_INTS(BATCH * CONTEXT, LETTERS)), right);
        (void)opd_backward(loss);
        (void)opd_optimizer_set_lr(adam, opd_lr_cosine(lr, step, STEPS, 0));
        (void)opd_optimizer_step(adam);
        (void)opd_optimizer_zero_grad(adam);
        sum = step % 50 == 1 ? opd_item_f64(loss) : sum + opd_item_f64(loss);
        if (step != 50 && step != STEPS) { continue; }
        printf("  steps %d to %d: mean loss %.1f\n", step - 49, step, sum / 50);
        (void)fflush(stdout);
    }
    opd_optimizer_free(adam);
}
/* Lets the model continue the first letters of a text, with the most probable letter each time, and prints the result.
   Returns 0 if it is the text, or 1. */
static int writes(const char *text) {
    char line[200];
    int64_t ids[CONTEXT];
    const size_t length = strlen(text);
    (void)snprintf(line, sizeof line, "%.*s", CONTEXT / 2, text);
    for (size_t n = strlen(line); n < length && opd_ok(); n++) {
        OPD_SCOPED;
        const size_t seen = n < CONTEXT ? n : CONTEXT;
        for (size_t i = 0; i < seen; i++) { ids[i] = id_of(line[n - seen + i]); }
        OPD_NO_GRAD {
            opd_tensor *logits = forward(opd_tensor_from(ids, OPD_INTS(1, (int64_t)seen), OPD_INT64));
            line[n] = letter_of(opd_item_i64(opd_argmax(opd_select(logits, 1, -1), OPD_NONE, false)));
        }
        line[n + 1] = 0;
    }
    printf("  %s\n", line);
    return strcmp(line, text) != 0;
}
/* Saves the adapters, and loads the file into new ones. */
static int save_and_load(const char *path) {
    if (opd_module_save(adapters, path)) { return -1; }
    opd_tensor_file *file = opd_tensor_file_open(path);
    opd_module_free(adapters);
    adapters = new_adapters();
    const int failed = opd_module_load(adapters, file, NULL);
    opd_tensor_file_close(file);
    return failed;
}

int main(int argc, char **argv) {
    const char *path = argc == 2 ? argv[1] : "lora_adapters.safetensors";
    int wrong;
    if (argc > 2 || path[0] == '-') {
        printf("usage: lora [FILE.safetensors]\n");
        return argc == 2 && strcmp(path, "--help") == 0 ? 0 : 2;
    }
    opd_manual_seed(3);
    model = new_model();
    printf("the model learns: %d parameters\n", (int)opd_module_numel(model, NULL));
    train(model, first_text, 0.01);
    wrong = writes(first_text);

    (void)opd_module_set_requires_grad(model, NULL, false);
    adapters = new_adapters();
    printf("its adapters learn: %d parameters\n", (int)opd_module_numel(adapters, NULL));
    train(adapters, second_text, 0.02);
    wrong += writes(second_text);

    if (save_and_load(path) == 0) {
        printf("with the adapters from the file, of %d tensors:\n", (int)opd_module_count(adapters));
        wrong += writes(second_text);
    }
    if (argc == 1) { (void)remove(path); }
    opd_module_free(adapters);
    adapters = NULL;
    printf("without adapters:\n");
    wrong += writes(first_text);
    opd_module_free(model);
    return opd_finish() || wrong;
}
