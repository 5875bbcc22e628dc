/* Keeps the tensors that backward needs in temporary files instead of memory.  A network runs forward and backward
   twice, the second time with saved-tensor hooks.  Each time, the program prints how much memory was in use.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/saved_on_disk.c -o saved_on_disk -lm && ./saved_on_disk
   (or ./saved_on_disk LAYERS, or --help)

   The hook `pack` writes the values of a tensor to a temporary file, and returns the file, the sizes and the dtype.
   The hook `unpack` reads the values into a new tensor.  The hook `drop` is called when a node has run, and closes the
   file.  Small tensors stay in memory, and so do the parameters, which are in memory anyway. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 2048, WIDTH = 256, LAYERS = 200, SMALL = 16 * 1024 };

static const char help[] =
    "saved_on_disk [layers]: a network whose activations wait for backward in temporary files\n"
    "  layers   how many layers it has, 1 to 200 (16)\n";

//-- the hooks -----------------------------------------------------------------------------------------------------

/* What `pack` returns for a saved tensor: a file with its values, or the tensor itself. */
typedef struct note {
    FILE *file;
    opd_tensor *t;
    int64_t sizes[OPD_MAX_DIMS], bytes;
    int ndim;
    opd_scalar_type dtype;
} note;

typedef struct disk { int64_t files, written, read; } disk;

static opd_tensor *weights[LAYERS];
static int layers = 16;

static bool is_weight(const opd_tensor *t) {
    int i;
    for (i = 0; i < layers && opd_data(weights[i]) != opd_data(t); i++) { }
    return i < layers;
}

static void note_free(note *n) {
    if (n->file) { fclose(n->file); }             /* this deletes the temporary file */
    opd_release(n->t);
    free(n);
}

static void *pack(opd_tensor *t, void *user) {
    disk *d = (disk *)user;
    note *n = (note *)calloc(1, sizeof *n);
    opd_tensor *flat;
    if (!n) { (void)opd_fail(OPD_ERROR_MEMORY, "saved_on_disk: no memory"); return NULL; }
    n->bytes = opd_numel(t) * (int64_t)opd_dtype_size(opd_dtype(t));
    if (n->bytes < SMALL || is_weight(t)) { n->t = opd_keep(t); return n; }
    flat = opd_contiguous(t);
    n->ndim = opd_ndim(t);
    n->dtype = opd_dtype(t);
    memcpy(n->sizes, opd_sizes(t), (size_t)n->ndim * sizeof n->sizes[0]);
    n->file = tmpfile();
    if (!flat || !n->file || fwrite(opd_data(flat), 1, (size_t)n->bytes, n->file) != (size_t)n->bytes) {
        (void)opd_fail(OPD_ERROR_USER, "saved_on_disk: cannot write a temporary file");
        note_free(n);
        return NULL;
    }
    d->files++;
    d->written += n->bytes;
    return n;
}

static opd_tensor *unpack(void *packed, void *user) {
    disk *d = (disk *)user;
    note *n = (note *)packed;
    opd_tensor *t = n->t ? n->t : opd_tensor_new(opd_ints_of(n->sizes, n->ndim), n->dtype);
    if (!t || n->t) { return t; }
    rewind(n->file);
    if (fread(opd_data(t), 1, (size_t)n->bytes, n->file) != (size_t)n->bytes) {
        (void)opd_fail(OPD_ERROR_USER, "saved_on_disk: cannot read a temporary file");
        return NULL;
    }
    d->read += n->bytes;
    return t;
}

static void drop(void *packed, void *user) { (void)user; note_free((note *)packed); }

//-- the network ---------------------------------------------------------------------------------------------------

/* Each layer has a scope, so its results are freed once only backward needs them. */
static opd_tensor *forward(opd_tensor *x) {
    opd_tensor *y = opd_keep(x), *loss;
    for (int i = 0; i < layers; i++) {
        OPD_SCOPED;
        opd_assign(&y, opd_tanh(opd_mm(y, weights[i])));
    }
    loss = opd_mean(opd_mul(y, y));
    opd_release(y);
    return loss;
}

/* Runs forward and backward.  Sets mib to the memory in use between the two, and to the peak. */
static double step(opd_tensor *x, disk *d, double mib[2]) {
    int64_t before;
    double sum = 0;
    for (int i = 0; i < layers; i++) { opd_tensor_set_grad(weights[i], NULL); }
    before = opd_memory_stats().live;
    opd_memory_reset_peak();
    OPD_SCOPE {
        opd_tensor *loss;
        opd_saved_hooks hooks = {.pack = pack, .unpack = unpack, .drop = drop, .user = d};
        if (d) { opd_saved_hooks_begin(&hooks); }
        loss = forward(x);
        if (d) { opd_saved_hooks_end(); }
        mib[0] = (double)(opd_memory_stats().live - before) / 1048576;
        opd_backward(loss);
        mib[1] = (double)(opd_memory_stats().peak - before) / 1048576;
        for (int i = 0; i < layers; i++) { sum += opd_item_f64(opd_sum(opd_abs(opd_tensor_grad(weights[i])))); }
    }
    return sum;
}

int main(int argc, char **argv) {
    layers = argc > 1 ? atoi(argv[1]) : layers;
    if (argc > 2 || layers < 1 || layers > LAYERS) {
        fputs(help, stdout);
        return argc > 1 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    OPD_SCOPE {
        double memory[2], files[2], sum[2];
        disk d = {0, 0, 0};
        opd_tensor *x = opd_randn(OPD_INTS(ROWS, WIDTH), OPD_FLOAT32);
        opd_tensor *scale = opd_full(OPD_INTS(1), OPD_V(1.0 / 16), OPD_FLOAT32);
        for (int i = 0; i < layers; i++) {
            weights[i] = opd_mul(opd_randn(OPD_INTS(WIDTH, WIDTH), OPD_FLOAT32), scale);
            opd_tensor_set_requires_grad(weights[i], true);
        }
        sum[0] = step(x, NULL, memory);
        sum[1] = step(x, &d, files);
        if (!opd_ok()) { return opd_finish(); }
        printf("%d layers, %d rows of %d floats\n", layers, ROWS, WIDTH);
        printf("                       held for backward     at the peak\n");
        printf("saved in memory        %13.1f MiB  %10.1f MiB\n", memory[0], memory[1]);
        printf("saved in files         %13.1f MiB  %10.1f MiB\n", files[0], files[1]);
        printf("%lld files, %.1f MiB written, %.1f MiB read back; the gradients are %s\n", (long long)d.files,
               (double)d.written / 1048576, (double)d.read / 1048576, sum[0] == sum[1] ? "the same" : "DIFFERENT");
    }
    return opd_finish();
}
