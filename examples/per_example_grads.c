/* Computes the gradient of the loss of each single image, in one batched run: vmap of grad.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/per_example_grads.c -o per_example_grads -lm && ./per_example_grads

   The network is that of digits.c.  The loss is written for one image, without a batch.  opd_grad differentiates it,
   and opd_vmap runs the gradient for 256 images at once.  The norms of the gradients show which images change the
   weights most.  They are needed to clip each gradient separately (differential privacy), or to find wrong labels.  The
   program compares the gradients with those of a loop over the images. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { IMAGES = 256, PIXELS = 64, CLASSES = 10, PARAMETERS = 8, INPUTS = PARAMETERS + 2 };

static double now_ms(void) {
#if defined(TIME_UTC)
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
#else                            /* on Windows, clock() counts the time that has passed */
    return (double)clock() * 1e3 / CLOCKS_PER_SEC;
#endif
}

/* Reads the first images of the file.  A line has 64 pixels from 0 to g (16) and the label. */
static int read_digits(const char *path, opd_tensor *images, opd_tensor *labels) {
    char line[512];
    int n = 0, i;
    FILE *f = fopen(path, "r");
    while (f && n < IMAGES && fgets(line, sizeof line, f)) {
        if (line[0] == '#' || strlen(line) < PIXELS + 2) { continue; }
        for (i = 0; i < PIXELS; i++) {
            const int v = line[i] <= '9' ? line[i] - '0' : line[i] - 'a' + 10;
            opd_data_f32(images)[n * PIXELS + i] = (float)v / 16.0f;
        }
        opd_data_i64(labels)[n++] = line[PIXELS + 1] - '0';
    }
    if (f) { fclose(f); }
    if (n < IMAGES) { fprintf(stderr, "per_example_grads: %s cannot be read (run from the root of the project)\n", path); }
    return n < IMAGES ? -1 : 0;
}

/* Returns a parameter with random values, uniform in +-1/sqrt(fan_in). */
static opd_tensor *parameter(opd_ints sizes, int fan_in) {
    return opd_mul_Scalar(opd_sub_Scalar(opd_rand(sizes, OPD_FLOAT32), OPD_V(0.5)), OPD_V(2 / sqrt((double)fan_in)));
}

/* The loss of one image.  in: the eight parameters, the image (1, 8, 8), and its label (). */
static int loss(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_ints one = OPD_INTS(1, 1);          /* stride, padding, dilation */
    opd_tensor *x = opd_unsqueeze(in[PARAMETERS], 0);
    (void)user; (void)n;
    x = opd_relu(opd_conv2d_full(x, in[0], in[1], one, one, one, 1));
    x = opd_relu(opd_conv2d_full(x, in[2], in[3], one, one, one, 1));
    x = opd_flatten(opd_max_pool2d(x, OPD_INTS(2, 2), OPD_INTS(2, 2), OPD_INTS(0)), 1, -1);
    x = opd_linear(opd_relu(opd_linear(x, in[4], in[5])), in[6], in[7]);
    out[0] = opd_cross_entropy_loss(x, opd_unsqueeze(in[PARAMETERS + 1], 0));
    return out[0] ? 1 : -1;
}

/* The gradients of this loss with respect to the parameters. */
static int gradients(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int parameters[PARAMETERS] = {0, 1, 2, 3, 4, 5, 6, 7};
    opd_transform_options o;
    memset(&o, 0, sizeof o);
    o.argnums = parameters;
    o.nargnums = PARAMETERS;
    return opd_grad(loss, user, in, n, &o, out, OPD_TRANSFORM_OUTPUTS);
}

/* Computes the gradients of all images at once.  All images have the same parameters; images and labels are batched
   along dim 0. */
static int batched(opd_tensor *const *in, opd_tensor **out) {
    static const int dims[INPUTS] = {OPD_NO_DIM, OPD_NO_DIM, OPD_NO_DIM, OPD_NO_DIM, OPD_NO_DIM, OPD_NO_DIM, OPD_NO_DIM,
                                     OPD_NO_DIM, 0, 0};
    opd_vmap_options o;
    memset(&o, 0, sizeof o);
    o.in_dims = dims;
    o.nin_dims = INPUTS;
    return opd_vmap(gradients, NULL, in, INPUTS, &o, out, OPD_TRANSFORM_OUTPUTS);
}

/* Computes the gradients of the images one after the other.  Returns the largest difference to a gradient in `all`. */
static double looped(opd_tensor *const *in, opd_tensor *const *all, double *milliseconds) {
    double worst = 0;
    int i, k;
    *milliseconds = 0;
    for (i = 0; i < IMAGES && opd_ok(); i++) {
        OPD_SCOPED;
        opd_tensor *one[INPUTS], *g[OPD_TRANSFORM_OUTPUTS];
        const double start = now_ms();
        memcpy(one, in, sizeof one);
        one[PARAMETERS] = opd_select(in[PARAMETERS], 0, i);
        one[PARAMETERS + 1] = opd_select(in[PARAMETERS + 1], 0, i);
        if (gradients(NULL, one, INPUTS, g) < 0) { break; }
        *milliseconds += now_ms() - start;
        for (k = 0; k < PARAMETERS; k++) {
            worst = fmax(worst, opd_item_f64(opd_max(opd_abs(opd_sub(g[k], opd_select(all[k], 0, i))))));
        }
    }
    return worst;
}

int main(void) {
    OPD_SCOPE {
        opd_tensor *g[OPD_TRANSFORM_OUTPUTS], *squares = NULL, *in[INPUTS];
        double start, took, loop, worst;
        int64_t numbers = 0;
        int i, k, hardest = 0;
        opd_manual_seed(0);
        in[0] = parameter(OPD_INTS(16, 1, 3, 3), 9);   in[1] = parameter(OPD_INTS(16), 9);
        in[2] = parameter(OPD_INTS(32, 16, 3, 3), 144); in[3] = parameter(OPD_INTS(32), 144);
        in[4] = parameter(OPD_INTS(64, 512), 512);     in[5] = parameter(OPD_INTS(64), 512);
        in[6] = parameter(OPD_INTS(CLASSES, 64), 64);  in[7] = parameter(OPD_INTS(CLASSES), 64);
        in[8] = opd_tensor_new(OPD_INTS(IMAGES, 1, 8, 8), OPD_FLOAT32);
        in[9] = opd_tensor_new(OPD_INTS(IMAGES), OPD_INT64);
        if (read_digits("examples/data/digits.txt", in[8], in[9])) { return 1; }
        OPD_SCOPE { (void)batched(in, g); }             /* warm-up */
        start = now_ms();
        (void)batched(in, g);
        took = now_ms() - start;
        for (k = 0; k < PARAMETERS && opd_ok(); k++) {
            opd_tensor *rows = opd_reshape(g[k], OPD_INTS(IMAGES, -1));
            opd_tensor *sum = opd_sum_dim(opd_mul(rows, rows), OPD_INTS(1), false);
            numbers += opd_numel(in[k]);
            squares = squares ? opd_add(squares, sum) : sum;
        }
        if (!opd_ok()) { return opd_finish(); }
        worst = looped(in, g, &loop);
        printf("norms of the gradients of the first images\n");
        for (i = 0; i < IMAGES; i++) {
            const float *s = opd_data_f32(squares);
            hardest = s[i] > s[hardest] ? i : hardest;
            if (i < 10) { printf("  image %d (a %d): %.4f\n", i, (int)opd_data_i64(in[9])[i], sqrt(s[i])); }
        }
        printf("the largest: image %d, %.4f\n", hardest, sqrt(opd_data_f32(squares)[hardest]));
        printf("%d gradients of %lld numbers: batched %.1f ms, one by one %.1f ms; they differ by %.1e at most\n",
               IMAGES, (long long)numbers, took, loop, worst);
        if (!(worst < 1e-4)) { return 1; }
    }
    return opd_finish();
}
