/* The first questions of a first run on a GPU.  Each probe runs in its own process.  tests/first_gpu_run.sh builds
   and runs this program, linked with the CUDA plug-in.
     probes NAME         prints measurements as "figure: ..." and mistakes as "wrong: ..."; the exit status is 0, 1, or
                         77 (skipped)
     probes --list       prints the names */
#include "../../opdispatch.h"
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int nwrong;
static void wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("wrong: ");
    (void)vprintf(format, list);
    printf("\n");
    va_end(list);
    nwrong++;
}
/* Whether all went well; an error is wrong and forgotten. */
static bool well(const char *doing) {
    if (opd_ok()) { return true; }
    wrong("%s: %s", doing, opd_error_message());
    opd_error_clear();
    return false;
}
static double now(void) {
    struct timespec t;
    (void)timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static bool quick(void) { const char *q = getenv("QUICK"); return q && *q; }
static opd_device gpu(void) { return opd_device_make(OPD_CUDA, 0); }
static opd_device host(void) { return opd_device_make(OPD_CPU, -1); }
static opd_tensor *on(opd_tensor *t) { return t ? opd_to_device(t, gpu(), opd_dtype(t)) : NULL; }
static opd_tensor *off(opd_tensor *t) { return t ? opd_to_device(opd_detach(t), host(), OPD_FLOAT32) : NULL; }
static opd_tensor *ones(opd_ints sizes, double v, opd_scalar_type dtype) {
    return opd_full_full(sizes, opd_value_double(v), opd_value_int(dtype), OPD_NONE, opd_value_device(gpu()), OPD_NONE);
}
/* The GPU's against the CPU's: the largest difference, beside the largest number. */
static void same(const char *what, opd_tensor *got, opd_tensor *want, double tolerance) {
    opd_tensor *a = off(got), *b = want ? opd_to_dtype(opd_detach(want), OPD_FLOAT32) : NULL;
    double far = 0, most = 0;
    if (!well(what)) { return; }
    if (!a || !b || opd_numel(a) != opd_numel(b)) { wrong("%s: another shape", what); return; }
    a = opd_contiguous(a); b = opd_contiguous(b);
    for (int64_t i = 0; i < opd_numel(a); i++) {
        const double x = opd_data_f32(a)[i], y = opd_data_f32(b)[i], d = fabs(x - y);
        if (d > far || isnan(d)) { far = d; }
        if (fabs(y) > most) { most = fabs(y); }
        if (isnan(d)) { break; }
    }
    printf("%s: %.3g of %.3g\n", what, far, most);
    if (!(far <= tolerance * (most + 1e-6))) { wrong("%s: differs by %.3g of %.3g from the CPU's", what, far, most); }
}

//-- the probes ----------------------------------------------------------------------------------------------------

/* Convolutions by each of their ways, with gradients. */
static int convolution(void) {
    static const struct { opd_scalar_type dtype; double tolerance; } types[] = {{OPD_FLOAT32, 1e-4}, {OPD_FLOAT16, 1e-2}, {OPD_BFLOAT16, 4e-2}};
    static const int64_t shapes[][6] = {                              /* images, channels, side, channels, kernel, groups */
        {2, 16, 14, 32, 3, 1}, {2, 3, 17, 16, 3, 1}, {2, 16, 12, 16, 3, 16}, {1, 64, 28, 72, 1, 1}, {2, 32, 9, 32, 3, 2}};
    char text[100];
    for (size_t t = quick() ? 2 : 0; t < sizeof types / sizeof *types; t++) {
        for (size_t s = quick() ? 4 : 0; s < sizeof shapes / sizeof *shapes; s++) {
            OPD_SCOPE {
                const int64_t *n = shapes[s], pad = n[4] / 2;
                opd_tensor *x[2], *w[2], *y[2];
                x[0] = opd_to_dtype(opd_randn(OPD_INTS(n[0], n[1], n[2], n[2]), OPD_FLOAT32), types[t].dtype);
                w[0] = opd_to_dtype(opd_randn(OPD_INTS(n[3], n[1] / n[5], n[4], n[4]), OPD_FLOAT32), types[t].dtype);
                x[1] = on(x[0]); w[1] = on(w[0]);
                for (int k = 0; k < 2; k++) {
                    if (!k) { x[0] = opd_to_dtype(x[0], OPD_FLOAT32); w[0] = opd_to_dtype(w[0], OPD_FLOAT32); }
                    x[k] = opd_tensor_set_requires_grad(opd_detach(x[k]), true);
                    w[k] = opd_tensor_set_requires_grad(opd_detach(w[k]), true);
                    y[k] = opd_convolution(x[k], w[k], NULL, OPD_INTS(1, 1), OPD_INTS(pad, pad), OPD_INTS(1, 1), false, OPD_INTS(0, 0), n[5]);
                    if (y[k]) { (void)opd_backward(opd_sum(y[k])); }
                }
                (void)snprintf(text, sizeof text, "%s convolution %d", opd_dtype_name(types[t].dtype), (int)s);
                if (!well(text)) { continue; }
                same(text, y[1], y[0], types[t].tolerance);
                (void)snprintf(text, sizeof text, "%s convolution %d, by x", opd_dtype_name(types[t].dtype), (int)s);
                same(text, opd_tensor_grad(x[1]), opd_tensor_grad(x[0]), types[t].tolerance);
                (void)snprintf(text, sizeof text, "%s convolution %d, by w", opd_dtype_name(types[t].dtype), (int)s);
                same(text, opd_tensor_grad(w[1]), opd_tensor_grad(w[0]), types[t].tolerance);
            }
        }
    }
    return 0;
}
/* Sums of views that see elements more than once. */
static int overlap(void) {
    opd_tensor *x = opd_randn(OPD_INTS(16, 67), OPD_FLOAT32), *y = on(x);
    char text[60];
    for (int k = 0; k < 4; k++) {
        for (int d = 0; d < 3; d++) {
            opd_tensor *r[2];
            for (int g = 0; g < 2; g++) {
                opd_tensor *t = g ? y : x;
                t = k == 0 ? opd_unfold(t, 1, 8, 1) : k == 1 ? opd_unfold(t, 1, 16, 1) : k == 2 ? opd_unfold(t, 0, 8, 1)
                    : opd_expand(opd_view(t, OPD_INTS(1, 16, 67)), OPD_INTS(8, 16, 67));
                r[g] = opd_sum_dim(t, OPD_INTS(d), false);
            }
            (void)snprintf(text, sizeof text, "view %d, sum over dim %d", k, d);
            same(text, r[1], r[0], 1e-5);
        }
    }
    return 0;
}
static opd_tensor *step(opd_tensor *x, opd_tensor *w, opd_tensor *k, opd_tensor *i) {
    opd_tensor *y = opd_convolution(x, k, NULL, OPD_INTS(1, 1), OPD_INTS(1, 1), OPD_INTS(1, 1), false, OPD_INTS(0, 0), 1);
    y = opd_softmax(opd_mm(opd_view(y, OPD_INTS(64, 64)), w), -1);
    return opd_sum_dim(opd_index_select(y, 0, i), OPD_INTS(0), false);
}
/* A capture of what was never run before, in a process where nothing was. */
static int capture(void) {
    opd_tensor *x = on(opd_randn(OPD_INTS(2, 8, 16, 16), OPD_FLOAT32)), *w = on(opd_randn(OPD_INTS(64, 64), OPD_FLOAT32));
    opd_tensor *k = on(opd_randn(OPD_INTS(8, 8, 3, 3), OPD_FLOAT32)), *i = on(opd_ones(OPD_INTS(5), OPD_INT64)), *out = ones(OPD_INTS(64), 0, OPD_FLOAT32);
    opd_stream s = opd_stream_new(gpu()), was;
    opd_capture *c;
    opd_memory before, after;
    (void)opd_stream_wait(s, opd_stream_current(gpu()));
    was = opd_stream_set(s);
    if (opd_capture_begin(s)) { (void)well("begin"); return 0; }
    OPD_SCOPE { (void)opd_copy_(out, step(x, w, k, i)); }
    (void)well("a capture without warm-up");
    c = opd_capture_end(s);
    if (!c) { (void)well("the end of a capture without warm-up"); return 0; }
    (void)opd_capture_replay(c, s);
    (void)opd_stream_synchronize(s);
    (void)opd_stream_set(was);
    if (well("a replay")) { same("a captured step", out, off(step(x, w, k, i)), 1e-5); }
    before = opd_device_memory(gpu());
    for (int n = 0; n < (quick() ? 3 : 200); n++) { (void)opd_capture_replay(c, s); }
    (void)opd_stream_synchronize(s);
    after = opd_device_memory(gpu());
    if (after.live != before.live || after.cached > before.cached) { wrong("replays took memory: %lld bytes", (long long)(after.live + after.cached - before.live - before.cached)); }
    opd_capture_free(c);
    before = opd_device_memory(gpu());
    for (int n = 0; n < (quick() ? 4 : 20); n++) {
        (void)opd_stream_set(s);
        if (opd_capture_begin(s)) { break; }
        OPD_SCOPE { (void)opd_copy_(out, step(x, w, k, i)); }
        if ((c = opd_capture_end(s)) != NULL) { (void)opd_capture_replay(c, s); opd_capture_free(c); }
        (void)opd_stream_set(was);
        if (n == 1) { before = opd_device_memory(gpu()); }
    }
    after = opd_device_memory(gpu());
    printf("figure: captures keep %lld bytes of device memory\n", (long long)after.cached);
    if (after.live > before.live || after.cached > before.cached) { wrong("captures take more memory each time: %lld bytes", (long long)(after.live + after.cached - before.live - before.cached)); }
    (void)well("captures");
    opd_stream_free(s);
    return 0;
}
/* Debug mode inside of a capture. */
static int debug(void) {
    opd_tensor *x = ones(OPD_INTS(32, 32), 1, OPD_FLOAT32), *y = ones(OPD_INTS(32, 32), 0, OPD_FLOAT32);
    opd_stream s = opd_stream_new(gpu()), was;
    opd_capture *c;
    (void)opd_cuda_debug_set(true);
    (void)opd_mm(x, x);
    (void)opd_stream_wait(s, opd_stream_current(gpu()));
    was = opd_stream_set(s);
    (void)opd_capture_begin(s);
    (void)opd_copy_(y, opd_mm(opd_add(x, x), x));
    (void)well("a product in a capture in debug mode");
    c = opd_capture_end(s);
    if (c) { (void)opd_capture_replay(c, s); (void)opd_stream_synchronize(s); opd_capture_free(c); }
    (void)opd_stream_set(was);
    if (well("the capture")) { same("what it gave", y, opd_full(OPD_INTS(32, 32), OPD_V(64), OPD_FLOAT32), 0); }
    return 0;
}
/* More than 2^31 elements. */
static int large(void) {
    const int64_t n = ((int64_t)1 << 31) + 4099;
    opd_tensor *x = ones(OPD_INTS(n), 1, OPD_INT8), *y = NULL;
    if (!x) { printf("it does not fit: %s\n", opd_error_message()); opd_error_clear(); return 77; }
    OPD_SCOPE {
        y = opd_add(x, x);
        if (y && opd_item_f64(opd_sum(y)) != 2.0 * (double)n) { wrong("the sum of 2^31 + 4099 numbers"); }
        if (y && opd_item_f64(opd_select(y, 0, n - 1)) != 2) { wrong("the last of them"); }
        (void)well("sums");
    }
    OPD_SCOPE {
        y = opd_clone(opd_narrow(x, 0, 1, n - 1));
        if (y && opd_item_f64(opd_select(y, 0, n - 2)) != 1) { wrong("the last of a copy that begins at an odd place"); }
        (void)well("a copy");
    }
    OPD_SCOPE {
        y = opd_to_dtype(x, OPD_FLOAT16);
        if (y && fabs(opd_item_f64(opd_sum_dim_full(y, OPD_INTS(0), false, opd_value_int(OPD_FLOAT32))) / (double)n - 1) > 1e-3) { wrong("the sum of as many float16"); }
        (void)well("float16");
    }
    for (int half = 0; half < 2; half++) {        /* more products in a batch than a grid has rows */
        OPD_SCOPE {
            const int64_t many = 65535 * 2 + 3;
            opd_tensor *a = ones(OPD_INTS(many, 2, 3), 1, half ? OPD_BFLOAT16 : OPD_FLOAT32);
            opd_tensor *b = ones(OPD_INTS(many, 3, 2), 2, half ? OPD_BFLOAT16 : OPD_FLOAT32);
            y = opd_bmm(a, b);
            if (y && !(opd_item_f64(opd_amin(opd_to_dtype(y, OPD_FLOAT32), OPD_INTS(0, 1, 2), false)) == 6 &&
                       opd_item_f64(opd_amax(opd_to_dtype(y, OPD_FLOAT32), OPD_INTS(0, 1, 2), false)) == 6)) {
                wrong("131,073 products in one batch");
            }
            (void)well("a batch of 131,073 products");
        }
    }
    OPD_SCOPE {
        opd_tensor *m = opd_view(opd_narrow(x, 0, 0, (int64_t)1 << 31), OPD_INTS(1 << 16, 1 << 15));
        y = opd_contiguous(opd_transpose(m, 0, 1));
        if (y && opd_item_f64(opd_sum(y)) != 2147483648.0) { wrong("a transposed copy of 2^31 elements"); }
        (void)well("a transposed copy");
    }
    return 0;
}
static void timed(const char *what, double since) {
    (void)opd_device_synchronize(gpu());
    printf("figure: %-34s %9.2f ms\n", what, now() - since);
}
/* What the first call of a kind takes, and the second. */
static int first(void) {
    double t = now();
    opd_tensor *x, *c, *k;
    (void)opd_sum(opd_ones(OPD_INTS(4), OPD_FLOAT32));
    printf("figure: %-34s %9.2f ms\n", "first operator, on the CPU", now() - t);
    t = now();
    x = on(opd_randn(OPD_INTS(64, 64), OPD_FLOAT32));
    timed("first CUDA tensor", t);
    for (int again = 0; again < 2; again++) {
        t = now(); (void)opd_add(x, x); timed(again ? "add again" : "first add", t);
        t = now(); (void)opd_sum(x); timed(again ? "sum again" : "first sum", t);
        t = now(); (void)opd_mm(x, x); timed(again ? "product again" : "first product", t);
        c = opd_view(opd_to_dtype(x, OPD_BFLOAT16), OPD_INTS(4, 16, 8, 8));
        k = opd_to_dtype(opd_view(opd_narrow(opd_view(x, OPD_INTS(4096)), 0, 0, 2304), OPD_INTS(16, 16, 3, 3)), OPD_BFLOAT16);
        (void)opd_device_synchronize(gpu());
        t = now(); (void)opd_convolution(c, k, NULL, OPD_INTS(1, 1), OPD_INTS(1, 1), OPD_INTS(1, 1), false, OPD_INTS(0, 0), 1);
        timed(again ? "convolution again" : "first convolution", t);
    }
    (void)well("first calls");
    return 0;
}
/* Bytes a second, there and back. */
static int copies(void) {
    const int64_t n = (int64_t)16 << 20;
    opd_tensor *x = ones(OPD_INTS(n), 1, OPD_FLOAT32), *p[2];
    p[0] = opd_ones(OPD_INTS(n), OPD_FLOAT32);
    p[1] = opd_tensor_new_pinned(OPD_INTS(n), OPD_FLOAT32, OPD_CUDA);
    if (!well("memory")) { return 0; }
    (void)opd_copy_(p[1], p[0]);
    for (int k = 0; k < 2; k++) {
        for (int back = 0; back < 2; back++) {
            double best = 1e30;
            for (int r = 0; r < 4; r++) {
                const double t = now();
                (void)opd_copy_full_(back ? p[k] : x, back ? x : p[k], true);
                (void)opd_device_synchronize(gpu());
                if (now() - t < best) { best = now() - t; }
            }
            printf("figure: %-34s %9.2f GB/s\n", k ? back ? "to pinned memory" : "from pinned memory" : back ? "to pageable memory" : "from pageable memory",
                   (double)n * 4 / best / 1e6);
        }
    }
    if (opd_device_count(OPD_CUDA) > 1) {
        opd_tensor *y = opd_to_device(x, opd_device_make(OPD_CUDA, 1), OPD_FLOAT32);
        const double t = now();
        for (int r = 0; r < 4; r++) { (void)opd_copy_(y, x); }
        (void)opd_device_synchronize(gpu());
        (void)opd_device_synchronize(opd_device_make(OPD_CUDA, 1));
        printf("figure: %-34s %9.2f GB/s\n", "to the second GPU", (double)n * 16 / (now() - t) / 1e6);
        same("what came to the second GPU", opd_narrow(y, 0, n - 4, 4), opd_ones(OPD_INTS(4), OPD_FLOAT32), 0);
    }
    (void)well("copies");
    return 0;
}
static void *works(void *arg) {
    double *sum = (double *)arg;
    OPD_SCOPE {
        opd_stream s = opd_stream_new(gpu());
        (void)opd_stream_set(s);
        opd_tensor *x = ones(OPD_INTS(64, 64), 1, OPD_FLOAT32);
        for (int i = 0; i < 20; i++) { x = opd_mul_Scalar(opd_mm(x, opd_add(x, x)), opd_value_double(1.0 / 128)); }
        *sum = opd_item_f64(opd_sum(x));
        opd_stream_free(s);
    }
    return NULL;
}
/* Several threads, each on a stream of its own, with products; they end, and others begin. */
static int threads(void) {
    for (int round = 0; round < 3; round++) {
        pthread_t t[4];
        double sums[4] = {0, 0, 0, 0};
        int n = 0;
        while (n < 4 && pthread_create(&t[n], NULL, works, &sums[n]) == 0) { n++; }
        for (int i = 0; i < n; i++) { (void)pthread_join(t[i], NULL); if (sums[i] != 4096) { wrong("thread %d: %g, not 4096", i, sums[i]); } }
    }
    (void)well("threads");
    return 0;
}

static const struct { const char *name; int (*run)(void); } probes[] = {
    {"convolution", convolution}, {"overlap", overlap}, {"capture", capture}, {"debug", debug}, {"first", first}, {"copies", copies},
    {"threads", threads}, {"large", large}};
int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        if (argc > 1 && strcmp(argv[1], "--list") == 0) { printf("%s\n", probes[i].name); continue; }
        if (argc < 2 || strcmp(argv[1], probes[i].name) != 0) { continue; }
        int rc = 0;
        if (strcmp(argv[1], "first") != 0 && !opd_cuda_available()) {
            (void)opd_tensor_new_on(OPD_INTS(1), OPD_FLOAT32, gpu());
            printf("no GPU: %s\n", opd_error_message());
            opd_error_clear();
            return 77;
        }
        OPD_SCOPE { rc = probes[i].run(); }
        (void)well(argv[1]);
        return nwrong ? 1 : rc;
    }
    return argc > 1 && strcmp(argv[1], "--list") == 0 ? 0 : 2;
}
