/* Trains the network of examples/digits.c in a browser: the functions that the page index.html calls in its worker.
   emcc -O2 -mllvm -unroll-runtime=false -msimd128 examples/web/digits_web.c -o examples/web/digits_web.js \
     -sALLOW_MEMORY_GROWTH -sMALLOC=emmalloc -sFILESYSTEM=0 -sENVIRONMENT=worker \
     -sEXPORTED_FUNCTIONS=_malloc,_free -sEXPORTED_RUNTIME_METHODS=UTF8ToString

   Then `python3 -m http.server` in the folder of opdispatch.h serves http://localhost:8000/examples/web/.  Any server
   of files will do; the page also reads examples/data/digits.txt.  On Debian, emcc needs NODE_PATH=/usr/share/nodejs.
   The option -unroll-runtime=false makes the page 11 KB smaller, and no slower.

   A function that fails returns -1, and web_error says why.  The network and the optimizer remain as they are, so the
   page can call the function again. */
#define OPD_LEAN
#define OPD_STATIC
#define main digits_main                 /* never called: the linker drops it and the functions that only it calls */
#include "../digits.c"
#undef main
#include <emscripten.h>

enum { FILTERS = 16, TEXT = 16384 };

static digit_set set;
static network net;
static int train[IMAGES], test[IMAGES], order[IMAGES], predicted[IMAGES], ntrain, ntest;
static int epoch, epochs, at, ordered;   /* the next batch is order[at..at+BATCH); ordered: the epochs that had one */
static double batch_loss, batch_accuracy;
static float probabilities[CLASSES], responses[FILTERS][PIXELS], filters[FILTERS][9];
static char text[TEXT], message[1024];

/* Stores and clears the pending error.  Returns -1 if there was one, otherwise 0. */
static int outcome(void) {
    if (opd_ok()) { return 0; }
    snprintf(message, sizeof message, "%s", opd_error_message());
    opd_error_clear();
    return -1;
}

/* Returns the text of the last failure. */
EMSCRIPTEN_KEEPALIVE const char *web_error(void) { return message; }
EMSCRIPTEN_KEEPALIVE const char *web_version(void) { return OPD_VERSION; }
/* Returns the number of bytes that the tensors use now. */
EMSCRIPTEN_KEEPALIVE double web_memory(void) { return (double)opd_memory_stats().live; }

//-- data and training ------------------------------------------------------------------------------------------------

/* Reads the lines of examples/data/digits.txt.  Returns the number of images, or -1. */
EMSCRIPTEN_KEEPALIVE int web_data(const char *lines) {
    int n = 0;
    ntrain = ntest = 0;
    for (const char *line = lines, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        if (*line == '#') { continue; }
        const char *damage = image_of_line(line, &set, n);
        if (damage) { snprintf(message, sizeof message, "digits.txt, image %d %s", n, damage); return -1; }
        if (n % 5 == 4) { test[ntest++] = n; } else { train[ntrain++] = n; }
        n++;
    }
    if (n != IMAGES) { snprintf(message, sizeof message, "digits.txt has %d images, not %d", n, IMAGES); return -1; }
    return n;
}

/* Makes a new network, which is to be trained for `count` epochs.  Returns 0, or -1. */
EMSCRIPTEN_KEEPALIVE int web_reset(int count, int seed) {
    network_free(&net);
    net.parameters = NULL;
    net.adam = NULL;
    epoch = at = ordered = 0;
    epochs = count;
    device = opd_device_make(OPD_CPU, -1);
    opd_manual_seed((uint64_t)seed);
    network_make(&net);
    return outcome();
}

/* Trains with the next batch.  Returns the number of epochs that are complete, or -1. */
EMSCRIPTEN_KEEPALIVE int web_step(void) {
    OPD_SCOPED;
    const int size = ntrain - at < BATCH ? ntrain - at : BATCH;
    opd_tensor *images, *labels;
    if (ordered == epoch) {
        const int64_t *perm = opd_data_i64(opd_randperm(ntrain, OPD_INT64));
        for (int i = 0; perm && i < ntrain; i++) { order[i] = train[perm[i]]; }
        if (outcome()) { return -1; }
        ordered++;
    }
    opd_optimizer_zero_grad(net.adam);
    batch_of(&set, order + at, size, &images, &labels);
    opd_tensor *scores = forward(net.weights, images), *loss = opd_cross_entropy_loss(scores, labels);
    opd_backward(loss);
    opd_optimizer_set_lr(net.adam, 0.002 * (1 - (epoch + (double)at / ntrain) / epochs));      /* falls to zero */
    opd_optimizer_step(net.adam);
    batch_loss = opd_item_f64(loss);
    batch_accuracy = (double)count_right(scores, labels) / size;
    if (outcome()) { return -1; }
    at += size;
    if (at == ntrain) { at = 0; epoch++; }
    return epoch;
}
EMSCRIPTEN_KEEPALIVE int web_steps_an_epoch(void) { return (ntrain + BATCH - 1) / BATCH; }
EMSCRIPTEN_KEEPALIVE double web_loss(void) { return batch_loss; }
EMSCRIPTEN_KEEPALIVE double web_accuracy(void) { return batch_accuracy; }

/* Returns the share of the held-out images that the network recognises, or -1. */
EMSCRIPTEN_KEEPALIVE double web_test(void) {
    const int right = predict(&net, &set, test, ntest, predicted);
    return outcome() ? -1 : (double)right / ntest;
}
/* web_test_image returns the number of the n-th image that is held out for the test (n modulo their count).  The others
   return the pixels and the digit of an image. */
EMSCRIPTEN_KEEPALIVE int web_test_image(unsigned n) { return test[n % (unsigned)ntest]; }
EMSCRIPTEN_KEEPALIVE const float *web_pixels(int image) { return set.pixels[image]; }
EMSCRIPTEN_KEEPALIVE int web_label(int image) { return (int)set.label[image]; }

//-- what the network does with one image -----------------------------------------------------------------------------

/* Copies a tensor's numbers into out[count]. */
static void copy_out(opd_tensor *t, float *out, int count) {
    const float *numbers = opd_data_f32(opd_contiguous(t));
    if (numbers && opd_numel(t) == count) { memcpy(out, numbers, (size_t)count * sizeof *out); }
}

/* Classifies an image of 8 x 8 pixels from 0 to 1: fills `probabilities`, and `responses`, the outputs of the first
   layer's filters.  Returns the digit, or -1. */
EMSCRIPTEN_KEEPALIVE int web_classify(const float *pixels) {
    int64_t best = -1;
    OPD_SCOPED;
    OPD_NO_GRAD {
        const opd_ints one = OPD_INTS(1, 1);
        opd_tensor *x = opd_tensor_from(pixels, OPD_INTS(1, 1, 8, 8), OPD_FLOAT32);
        opd_tensor *p = opd_softmax(forward(net.weights, x), 1);
        opd_tensor *y = opd_conv2d_full(x, opd_module_get(net.parameters, "conv1.weight"), NULL, one, one, one, 1);
        copy_out(p, probabilities, CLASSES);
        copy_out(bias_relu(y, opd_module_get(net.parameters, "conv1.bias")), responses[0], FILTERS * PIXELS);
        best = opd_item_i64(opd_argmax(p, OPD_V(1), false));
    }
    return outcome() ? -1 : (int)best;
}
EMSCRIPTEN_KEEPALIVE const float *web_probabilities(void) { return probabilities; }
EMSCRIPTEN_KEEPALIVE const float *web_responses(void) { return responses[0]; }
EMSCRIPTEN_KEEPALIVE const float *web_filters(void) {
    OPD_SCOPED;
    copy_out(opd_detach(opd_module_get(net.parameters, "conv1.weight")), filters[0], FILTERS * 9);
    return outcome() ? NULL : filters[0];
}

//-- what the dispatcher does -----------------------------------------------------------------------------------------

/* Explains a call of digits::bias_relu.  how: 0 as in training, 1 without gradients, 2 with tensors that have sizes but
   no numbers (the device meta).  Returns opd_explain's text, or NULL. */
EMSCRIPTEN_KEEPALIVE const char *web_explain(int how) {
    OPD_SCOPED;
    const opd_device on = opd_device_make(how == 2 ? OPD_META : OPD_CPU, -1);
    opd_tensor *x = opd_tensor_new_on(OPD_INTS(BATCH, FILTERS, 8, 8), OPD_FLOAT32, on);
    opd_tensor *bias = how == 2 ? opd_tensor_new_on(OPD_INTS(FILTERS), OPD_FLOAT32, on)
                                : opd_module_get(net.parameters, "conv1.bias");
    const opd_value args[] = {opd_value_tensor(x), opd_value_tensor(bias)};
    const bool was = opd_grad_mode_set(how == 0);
    const size_t length = opd_explain(opd_find("digits::bias_relu"), args, 2, text, sizeof text);
    opd_grad_mode_set(was);
    return outcome() || length >= sizeof text ? NULL : text;
}

/* Starts the profiler.  web_profile stops it, and returns a line for each operator, the one that takes most time first:
   name, calls, nanoseconds without the operators inside it; or NULL. */
EMSCRIPTEN_KEEPALIVE int web_profile_begin(void) {
    opd_profiler_begin(&(opd_profiler_options){.order = OPD_PROFILE_BY_SELF});
    return outcome();
}
EMSCRIPTEN_KEEPALIVE const char *web_profile(void) {
    opd_profile *profile = opd_profiler_end();
    int64_t count = 0;
    const opd_profile_row *rows = opd_profile_rows(profile, &count);
    size_t used = 0;
    text[0] = 0;
    for (int64_t i = 0; i < count && used < sizeof text - 200; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%.120s\t%lld\t%lld\n", rows[i].name,
                                 (long long)rows[i].calls, (long long)rows[i].self_ns);
    }
    opd_profile_free(profile);
    return outcome() ? NULL : text;
}
