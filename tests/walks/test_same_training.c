/* Training in the mode of same bits (opd_same_bits_set) gives the weights whose hashes are in golden/same_training.txt,
   on each processor, with each compiler and any number of threads, also if compiled graphs compute the gradients.
   tests/cross.sh runs this test for other machines.
   With OPD_TEST_LIST in the environment, prints the hashes. */
#include "../inside.h"
#include "../check.h"

enum { LIMIT = 32, WORDS = 40, PLACES = 12, FEATURES = 32, HEADS = 4 };
static opd_tensor *weights[LIMIT];
static int count;

/* Makes a weight with random numbers, or with ones if `scale` is 0. */
static opd_tensor *weight(opd_ints sizes, double scale) {
    opd_tensor *const random = opd_randn(sizes, OPD_FLOAT32);
    opd_tensor *const all = scale > 0 ? opd_mul_Scalar(random, opd_value_double(scale)) : opd_ones(sizes, OPD_FLOAT32);
    weights[count++] = opd_tensor_set_requires_grad(all, true);
    return all;
}
/* A step of a training: the loss of these inputs, and its gradients, which the optimizer reads. */
static opd_tensor *(*loss_of)(opd_tensor *const *inputs);
static int ninputs;
static enum { EAGER, COMPILING, COMPILED } way;      /* COMPILING: the first training makes the code, and its bits do not matter */
static opd_compiled *compiled;
static opd_graph *step;

/* Computes the gradients of the loss by the weights (opd_transform_fn).  inputs: the weights, and those of the loss. */
static int gradients(void *user, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    opd_tensor *kept[LIMIT], *loss;
    memcpy(kept, weights, sizeof kept);
    for (int i = 0; i < count; i++) { weights[i] = opd_tensor_set_requires_grad(opd_detach(inputs[i]), true); }
    loss = loss_of(inputs + count);
    const int rc = loss ? opd_autograd_grad(&loss, 1, weights, count, NULL, outputs) : -1;
    memcpy(weights, kept, sizeof kept);
    (void)user;
    (void)n;
    return rc ? -1 : count;
}
/* Compiles a graph of the step, and runs it once, which draws random numbers. */
static void compile_step(opd_tensor *const *all) {
    opd_value values[LIMIT + 2], grads[LIMIT];
    opd_trace_options options;
    memset(&options, 0, sizeof options);
    options.parts = true;
    step = opd_graph_trace(gradients, NULL, all, count + ninputs, &options);
    compiled = step ? opd_graph_compile(step, NULL) : NULL;
    for (int i = 0; i < count + ninputs; i++) { values[i] = opd_value_tensor(all[i]); }
    CHECK(compiled && opd_compiled_run(compiled, values, count + ninputs, grads, LIMIT) == count);
}
/* Computes the gradients of the weights: by backward, or by compiled code. */
static void differentiate(opd_tensor *const *inputs) {
    opd_tensor *all[LIMIT + 2];
    opd_value values[LIMIT + 2], grads[LIMIT];
    if (way == EAGER) {
        CHECK(opd_backward(loss_of(inputs)) == 0);
        return;
    }
    for (int i = 0; i < count + ninputs; i++) { all[i] = opd_detach(i < count ? weights[i] : inputs[i - count]); }
    if (!compiled) { compile_step(all); }
    for (int i = 0; i < count + ninputs; i++) { values[i] = opd_value_tensor(all[i]); }
    CHECK(opd_compiled_run(compiled, values, count + ninputs, grads, LIMIT) == count);
    for (int i = 0; i < count && opd_ok(); i++) { CHECK(opd_tensor_set_grad(weights[i], grads[i].u.t) == 0); }
    CHECK(way == COMPILING || opd_compiled_reason(compiled) == NULL);
}
/* Reads the hash after "NAME: " in golden/same_training.txt into `hash`. */
static void wanted_hash(const char *name, char hash[65]) {
    char line[200];
    FILE *const file = check_golden("same_training.txt");
    hash[0] = 0;
    while (file && fgets(line, sizeof line, file)) {
        const size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == ':') { (void)sscanf(line + length + 1, "%64s", hash); }
    }
    if (file) { (void)fclose(file); }
}
static void expect(const char *name) {
    char hash[65], want[65];
    if (way == COMPILING) { return; }
    CHECK(opd_tensor_sha256(weights, count, hash) == 0);
    wanted_hash(name, want);
    if (getenv("OPD_TEST_LIST")) { printf("%s: %s\n", name, hash); }
    CHECK_OK();
    CHECK_STR(hash, want);
}
/* Trains in the mode of same bits: with one thread, with eight threads, without AVX-512, with OPD_CPU_LEVEL=0, which the
   mode does not follow, and with compiled steps.  Skips the test where the mode does not promise these bits. */
static void train_in_each_way(void (*train)(void)) {
    const bool was = opd_same_bits_set(true), promised = inside_same_everywhere();
    const int threads = opd_threads(), most = inside_cpu_most();
    way = EAGER;
    for (int i = 0; i < 4 && promised; i++) {
        (void)opd_threads_set(i == 0 ? 1 : 8);
        if (i > 1) { (void)inside_cpu_most_set(i == 2 && most > 0 ? 1 : 0); }
        train();
    }
    (void)inside_cpu_most_set(most);
    if (promised && check_cache_begin()) {
        way = COMPILING;
        train();
        way = COMPILED;
        train();
        opd_compiled_free(compiled);
        opd_graph_free(step);
        compiled = NULL;
        step = NULL;
        (void)check_cache_end();
    }
    (void)opd_threads_set(threads);
    (void)opd_same_bits_set(was);
    if (!promised) { SKIP("the bits are others without AVX2 and without optimisation"); }
}

//-- a convolutional network -------------------------------------------------------------------------------------------

static opd_tensor *convolutional(opd_tensor *x) {
    opd_tensor *y = opd_conv2d(x, weights[0], weights[1], OPD_INTS(1), OPD_INTS(1));
    y = opd_relu(opd_batch_norm(y, weights[2], weights[3], NULL, NULL, true, 0.1, 1e-5, false));
    y = opd_max_pool2d(opd_relu(opd_conv2d(y, weights[4], NULL, OPD_INTS(1), OPD_INTS(1))), OPD_INTS(2), OPD_INTS(2), OPD_INTS(0));
    y = opd_silu(opd_conv2d(y, weights[5], NULL, OPD_INTS(2), OPD_INTS(2)));
    return opd_linear(opd_reshape(y, OPD_INTS(opd_size(x, 0), -1)), weights[6], weights[7]);
}
static opd_tensor *convolutional_loss(opd_tensor *const *inputs) {
    return opd_cross_entropy_loss(convolutional(inputs[0]), inputs[1]);
}
static void train_a_convolutional_network(void) {
    OPD_SCOPED;
    loss_of = convolutional_loss;
    ninputs = 2;
    count = 0;
    opd_manual_seed(7);
    weight(OPD_INTS(16, 3, 3, 3), 0.2);
    weight(OPD_INTS(16), 0.1);
    weight(OPD_INTS(16), 0);
    weight(OPD_INTS(16), 0.1);
    weight(OPD_INTS(24, 16, 3, 3), 0.1);
    weight(OPD_INTS(20, 24, 5, 5), 0.05);
    weight(OPD_INTS(10, 180), 0.1);
    weight(OPD_INTS(10), 0.1);
    opd_sgd_options options = opd_sgd_defaults();
    options.lr = 0.05;
    options.momentum = 0.9;
    options.weight_decay = 0.001;
    opd_optimizer *const sgd = opd_sgd_new(weights, count, &options);
    opd_tensor *const images = opd_randn(OPD_INTS(24, 3, 10, 10), OPD_FLOAT32);
    opd_tensor *const labels = opd_randint(10, OPD_INTS(24), OPD_INT64), *const batch[2] = {images, labels};
    for (int step = 0; step < 6; step++) {
        OPD_SCOPED;
        differentiate(batch);
        opd_optimizer_step(sgd);
        opd_optimizer_zero_grad(sgd);
    }
    opd_optimizer_free(sgd);
    expect("a convolutional network");
}
TEST(a_convolutional_network) { train_in_each_way(train_a_convolutional_network); }

//-- a transformer -----------------------------------------------------------------------------------------------------

static opd_tensor *heads(opd_tensor *x, opd_tensor *w) {
    opd_tensor *const y = opd_reshape(opd_linear(x, w, NULL), OPD_INTS(opd_size(x, 0), PLACES, HEADS, FEATURES / HEADS));
    return opd_transpose(y, 1, 2);
}
static opd_tensor *transformer(opd_tensor *tokens) {
    opd_tensor *x = opd_add(opd_embedding(weights[0], tokens), weights[1]);
    for (int layer = 0; layer < 2; layer++) {
        opd_tensor *const *const w = weights + 3 + 8 * layer;
        opd_tensor *y = opd_layer_norm(x, OPD_INTS(FEATURES), w[0], NULL, 1e-5);
        opd_tensor *const q = heads(y, w[1]);     /* not as arguments: C does not say which it evaluates first */
        opd_tensor *const k = heads(y, w[2]), *const v = heads(y, w[3]);
        y = opd_scaled_dot_product_attention_full(q, k, v, NULL, 0.1, true, opd_value_none(), false);
        y = opd_linear(opd_reshape(opd_transpose(y, 1, 2), OPD_INTS(-1, PLACES, FEATURES)), w[4], NULL);
        x = opd_add(x, opd_dropout(y, 0.1, true));
        y = opd_gelu(opd_linear(opd_layer_norm(x, OPD_INTS(FEATURES), w[5], NULL, 1e-5), w[6], NULL));
        x = opd_add(x, opd_dropout(opd_linear(y, w[7], NULL), 0.1, true));
    }
    return opd_linear(opd_rms_norm(x, OPD_INTS(FEATURES), weights[2], opd_value_none()), weights[0], NULL);
}
static opd_tensor *transformer_loss(opd_tensor *const *inputs) {
    opd_tensor *const scores = transformer(opd_contiguous(opd_narrow(inputs[0], 1, 0, PLACES)));
    opd_tensor *const next = opd_reshape(opd_narrow(inputs[0], 1, 1, PLACES), OPD_INTS(-1));
    return opd_cross_entropy_loss(opd_reshape(scores, OPD_INTS(-1, WORDS)), next);
}
static void train_a_transformer(void) {
    OPD_SCOPED;
    loss_of = transformer_loss;
    ninputs = 1;
    count = 0;
    opd_manual_seed(7);
    weight(OPD_INTS(WORDS, FEATURES), 0.1);
    weight(OPD_INTS(PLACES, FEATURES), 0.1);
    weight(OPD_INTS(FEATURES), 0);
    for (int layer = 0; layer < 2; layer++) {
        weight(OPD_INTS(FEATURES), 0);
        for (int i = 0; i < 4; i++) { weight(OPD_INTS(FEATURES, FEATURES), 0.2); }
        weight(OPD_INTS(FEATURES), 0);
        weight(OPD_INTS(4 * FEATURES, FEATURES), 0.2);
        weight(OPD_INTS(FEATURES, 4 * FEATURES), 0.1);
    }
    opd_adam_options options = opd_adamw_defaults();
    options.lr = 0.003;
    opd_optimizer *const adam = opd_adamw_new(weights, count, &options);
    for (int step = 0; step < 8; step++) {
        OPD_SCOPED;
        opd_tensor *tokens = opd_randint(WORDS, OPD_INTS(5, PLACES + 1), OPD_INT64);
        differentiate(&tokens);
        (void)opd_clip_grad_norm(weights, count, 1.0, 2.0, false);
        (void)opd_optimizer_set_lr(adam, opd_lr_cosine(0.003, step, 8, 0));
        opd_optimizer_step(adam);
        opd_optimizer_zero_grad(adam);
    }
    opd_optimizer_free(adam);
    expect("a transformer");
}
TEST(a_transformer) { train_in_each_way(train_a_transformer); }
CHECK_MAIN()
