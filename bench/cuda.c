/* Measures operators on a GPU, beside a copy on the same GPU and beside PyTorch.
   cc -O2 bench/cuda.c -o bench_cuda -lm -lpthread
   ./bench_cuda --load ./opdispatch_cuda.so [--quick] [--filter TEXT] [--help]

   The first comment of opdispatch_cuda.cu shows how to build the CUDA plug-in.  The program calls an operator many
   times, waits once for the GPU, and takes the wall-clock time.  A time is the median of several rounds.  A rate in
   GB/s counts the bytes that an operator has to read and write, and is compared with the rate of the copy.  PyTorch's
   figures come from bench/peers/torch_cuda.py, which runs with the Python that $OPD_TORCH_PYTHON names (default:
   python3), if it has PyTorch with CUDA.  Without a GPU, the program says so and measures nothing. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, ROWS = 64 };
static bool quick;
static const char *filter = "";
static opd_device gpu;
static double copy_gbs;                           /* GB/s of the copy in this run */

/* A row: the call, the bytes that it moves, and its number of floating-point operations. */
typedef struct row { const char *key, *what; double bytes, flops, ops, target; } row;
typedef opd_tensor *(*work)(opd_tensor **in);

static double now(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Returns the nanoseconds of one call.  Measures rounds of up to 2000 calls, which together take some milliseconds. */
static double measure(work f, opd_tensor **in) {
    double rounds[ROUNDS], start;
    int calls = 1;
    for (int r = -2; r < (quick ? 3 : ROUNDS) && opd_ok(); r++) {
        opd_device_synchronize(gpu);
        start = now();
        for (int k = 0; k < calls; k++) { OPD_SCOPE { f(in); } }
        opd_device_synchronize(gpu);
        start = (now() - start) / calls;
        if (r < 0) {
            const double want = (quick ? 2e6 : 2e7) / (start + 1);
            calls = want < 1 ? 1 : want > 2000 ? 2000 : (int)want;
        }
        else { rounds[r] = start; }
    }
    qsort(rounds, (size_t)(quick ? 3 : ROUNDS), sizeof rounds[0], compare);
    return rounds[(quick ? 3 : ROUNDS) / 2];
}

//-- PyTorch's figures --------------------------------------------------------------------------------------------

static struct { char key[48]; double ns; } peer[ROWS];
static int npeers;
static void read_peer(void) {
    const char *python = getenv("OPD_TORCH_PYTHON");
    char command[600], line[200];
    FILE *f;
    (void)snprintf(command, sizeof command, "%s bench/peers/torch_cuda.py%s 2>/dev/null",
                   python ? python : "python3", quick ? " --quick" : "");
    f = popen(command, "r");
    while (f && npeers < ROWS && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%47s %lf", peer[npeers].key, &peer[npeers].ns) == 2) { npeers++; }
    }
    if (f) { (void)pclose(f); }
    if (!npeers) { printf("no PyTorch with CUDA: its column stays empty\n"); }
}

static void print_row(row r, double ns) {
    char figure[32] = "", part[32] = "", ratio[32] = "";
    if (r.bytes > 0) {
        (void)snprintf(figure, sizeof figure, "%.0f GB/s", r.bytes / ns);
        if (copy_gbs > 0) { (void)snprintf(part, sizeof part, "%.0f%% of copy", 100 * r.bytes / ns / copy_gbs); }
    } else if (r.flops > 0) { (void)snprintf(figure, sizeof figure, "%.1f TFLOP/s", r.flops / ns / 1e3); }
    for (int i = 0; i < npeers; i++) {
        if (strcmp(peer[i].key, r.key) == 0) {
            (void)snprintf(ratio, sizeof ratio, "%.2f of PyTorch's time", ns / peer[i].ns);
        }
    }
    printf("%-16s %-66s %12.0f ns %14s %14s %s\n", r.key, r.what, ns / (r.ops > 0 ? r.ops : 1), figure, part, ratio);
}
static void bench(row r, work f, opd_tensor **in) {
    if (!strstr(r.key, filter) && !strstr(r.what, filter)) { return; }
    const double ns = measure(f, in);
    if (!opd_ok()) { printf("%-16s %s\n", r.key, opd_error_message()); opd_error_clear(); return; }
    if (strcmp(r.key, "copy") == 0) { copy_gbs = r.bytes / ns; }
    print_row(r, ns);
}

//-- the measured calls -------------------------------------------------------------------------------------------

static opd_tensor *w_copy(opd_tensor **in) { return opd_copy_(in[1], in[0]); }
static opd_tensor *w_add(opd_tensor **in) { return opd_add(in[0], in[1]); }
static opd_tensor *w_exp(opd_tensor **in) { return opd_exp(in[0]); }
static opd_tensor *w_gelu(opd_tensor **in) { return opd_gelu(in[0]); }
static opd_tensor *w_half(opd_tensor **in) { return opd_to_device(in[0], gpu, OPD_FLOAT16); }
static opd_tensor *w_turn(opd_tensor **in) { return opd_contiguous(opd_transpose(in[0], 0, 1)); }
static opd_tensor *w_sum(opd_tensor **in) { return opd_sum(in[0]); }
static opd_tensor *w_sum_rows(opd_tensor **in) { return opd_sum_dim(in[0], OPD_INTS(1), false); }
static opd_tensor *w_sum_columns(opd_tensor **in) { return opd_sum_dim(in[0], OPD_INTS(0), false); }
static opd_tensor *w_softmax(opd_tensor **in) { return opd_softmax(in[0], -1); }
static opd_tensor *w_layer_norm(opd_tensor **in) { return opd_layer_norm(in[0], OPD_INTS(opd_size(in[0], 1)), NULL, NULL, 1e-5); }
static opd_tensor *w_mm(opd_tensor **in) { return opd_mm(in[0], in[1]); }
static int64_t groups_of(opd_tensor **in) { return opd_size(in[0], 1) / opd_size(in[1], 1); }
static opd_tensor *w_conv(opd_tensor **in) {
    return opd_convolution(in[0], in[1], NULL, OPD_INTS(1, 1), OPD_INTS(1, 1), OPD_INTS(1, 1), false, OPD_INTS(0, 0), groups_of(in));
}
static opd_tensor *w_conv_gradients(opd_tensor **in) {      /* in: x, w, the gradient of y */
    static const bool wanted[3] = {true, true, false};
    opd_tensor *out[3];
    if (opd_convolution_backward(out, in[2], in[0], in[1], OPD_NONE, OPD_INTS(1, 1), OPD_INTS(1, 1), OPD_INTS(1, 1), false, OPD_INTS(0, 0), groups_of(in), opd_value_bools(wanted, 3))) { return NULL; }
    return out[0];
}
static opd_tensor *w_attention(opd_tensor **in) { return opd_scaled_dot_product_attention(in[0], in[1], in[2], NULL, 0, false); }
static opd_tensor *w_log_softmax(opd_tensor **in) { return opd_log_softmax(in[0], -1); }
static opd_tensor *w_cumsum(opd_tensor **in) { return opd_cumsum(in[0], 1); }
static opd_tensor *w_dropout(opd_tensor **in) { return opd_dropout(in[0], 0.5, true); }
static opd_tensor *w_randn(opd_tensor **in) { return opd_normal_(in[0], 0, 1); }
static opd_tensor *w_batch_norm(opd_tensor **in) { return opd_batch_norm(in[0], in[1], in[1], NULL, NULL, true, 0.1, 1e-5, true); }
static opd_tensor *w_max_pool(opd_tensor **in) { return opd_max_pool2d(in[0], OPD_INTS(2, 2), opd_ints_of(NULL, 0), OPD_INTS(0)); }
static opd_tensor *w_index_select(opd_tensor **in) { return opd_index_select(in[0], 0, in[1]); }
static opd_tensor *w_index_add(opd_tensor **in) { return opd_index_add_(in[2], 0, in[1], in[0]); }
static opd_tensor *w_sort(opd_tensor **in) {
    opd_tensor *out[2];
    return opd_sort(out, in[0], -1, false) ? NULL : out[0];
}
static opd_tensor *w_chain(opd_tensor **in) {     /* a thousand launches */
    opd_tensor *x = in[0];
    for (int i = 0; i < 1000; i++) { x = opd_add(x, in[1]); }
    return x;
}
static opd_tensor *random_on(opd_ints sizes, opd_scalar_type dtype) {
    return opd_to_device(opd_mul_Scalar(opd_randn(sizes, OPD_FLOAT32), OPD_V(0.1)), gpu, dtype);
}

static void memory_bound(int64_t rows, opd_scalar_type dtype, const char *suffix) {
    const double size = (double)opd_dtype_size(dtype), n = (double)rows * 8192;
    static char keys[16][24];
    static const struct { const char *key, *what; double moved; work f; } table[] = {
        {"add", "x + y", 3, w_add}, {"exp", "exp(x)", 2, w_exp}, {"gelu", "gelu(x)", 2, w_gelu},
        {"turn", "x.t().contiguous()", 2, w_turn},
        {"sum", "sum of all elements", 1, w_sum}, {"sum_rows", "sums of rows of 8192", 1, w_sum_rows},
        {"sum_columns", "sums of columns", 1, w_sum_columns},
        {"softmax", "softmax of rows of 8192", 2, w_softmax}, {"layer_norm", "layer norm of rows of 8192", 2, w_layer_norm}};
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(rows, 8192), dtype), random_on(OPD_INTS(rows, 8192), dtype)};
        for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
            (void)snprintf(keys[i], sizeof keys[i], "%s_%s", table[i].key, suffix);
            bench((row){keys[i], table[i].what, table[i].moved * size * n, 0, 0, 0}, table[i].f, in);
        }
    }
}
static void products(int64_t n) {
    static const struct { const char *key, *what; opd_scalar_type dtype; } table[] = {
        {"mm_f32", "matrix product, 4096 x 4096 x 4096, float32", OPD_FLOAT32}, {"mm_f16", "the same in float16", OPD_FLOAT16},
        {"mm_bf16", "the same in bfloat16", OPD_BFLOAT16}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        OPD_SCOPE {
            opd_tensor *in[2] = {random_on(OPD_INTS(n, n), table[i].dtype), random_on(OPD_INTS(n, n), table[i].dtype)};
            bench((row){table[i].key, table[i].what, 0, 2.0 * (double)n * (double)n * (double)n, 0, 0}, w_mm, in);
        }
    }
}
static void convolutions(int64_t batch) {
    static const struct { const char *key, *what; opd_scalar_type dtype; int64_t channels, side, of_group; work f; } table[] = {
        {"conv_f16", "convolution, 3x3, 64 channels, 56x56, batch 64, float16", OPD_FLOAT16, 64, 56, 64, w_conv},
        {"conv_f32", "the same in float32", OPD_FLOAT32, 64, 56, 64, w_conv},
        {"conv256_f32", "convolution, 3x3, 256 channels, 14x14, batch 64, float32", OPD_FLOAT32, 256, 14, 256, w_conv},
        {"conv_back_f16", "both gradients of the convolution conv_f16", OPD_FLOAT16, 64, 56, 64, w_conv_gradients},
        {"conv_back_f32", "both gradients of the convolution conv_f32", OPD_FLOAT32, 64, 56, 64, w_conv_gradients},
        {"depthwise_f32", "depthwise convolution, 3x3, 64 channels, 56x56, batch 64, float32", OPD_FLOAT32, 64, 56, 1,
         w_conv},
        {"depthback_f32", "both gradients of the convolution depthwise_f32", OPD_FLOAT32, 64, 56, 1, w_conv_gradients}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        OPD_SCOPE {
            const int64_t c = table[i].channels, side = table[i].side;
            const double each = 2.0 * 9 * (double)(c * table[i].of_group * side * side * batch);
            opd_tensor *in[3] = {random_on(OPD_INTS(batch, c, side, side), table[i].dtype),
                                 random_on(OPD_INTS(c, table[i].of_group, 3, 3), table[i].dtype),
                                 random_on(OPD_INTS(batch, c, side, side), table[i].dtype)};
            bench((row){table[i].key, table[i].what, 0, table[i].f == w_conv_gradients ? 2 * each : each, 0, 0}, table[i].f, in);
        }
    }
}
static void attention(int64_t tokens) {
    static const struct { const char *key, *what; opd_scalar_type dtype; } table[] = {
        {"attention_f16", "attention, 8 sequences, 16 heads of 64, 1,024 tokens, float16", OPD_FLOAT16},
        {"attention_f32", "the same in float32", OPD_FLOAT32}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        OPD_SCOPE {
            opd_tensor *in[3];
            for (int k = 0; k < 3; k++) { in[k] = random_on(OPD_INTS(8, 16, tokens, 64), table[i].dtype); }
            bench((row){table[i].key, table[i].what, 0, 4.0 * 8 * 16 * 64 * (double)(tokens * tokens), 0, 0}, w_attention, in);
        }
    }
}
/* Measures operators of networks on rows of 8,192 float32 numbers. */
static void others(int64_t rows) {
    const double n = (double)rows * 8192;
    OPD_SCOPE {
        opd_tensor *in[3] = {random_on(OPD_INTS(rows, 8192), OPD_FLOAT32), NULL, NULL};
        bench((row){"cumsum_f32", "cumsum of rows of 8192", 8 * n, 0, 0, 0}, w_cumsum, in);
        bench((row){"dropout_f32", "dropout", 9 * n, 0, 0, 0}, w_dropout, in);
        bench((row){"normal_f32", "normally distributed random numbers", 4 * n, 0, 0, 0}, w_randn, in);
        in[1] = opd_to_device(opd_randint(rows, OPD_INTS(rows), OPD_INT64), gpu, OPD_INT64);
        in[2] = opd_zeros_like(in[0]);
        bench((row){"index_select_f32", "index_select of 8,192 rows", 8 * n, 0, 0, 0}, w_index_select, in);
        bench((row){"index_add_f32", "index_add_ of 8,192 rows", 12 * n, 0, 0, 0}, w_index_add, in);
        in[0] = opd_view(opd_narrow(in[0], 0, 0, rows / 64), OPD_INTS(rows / 64 * 8192));
        bench((row){"sort_f32", "sort of 1,048,576 elements", 0, 0, 0, 0}, w_sort, in);
    }
    OPD_SCOPE {
        opd_tensor *in[1] = {random_on(OPD_INTS(rows / 4, 50257), OPD_FLOAT32)};
        bench((row){"log_softmax_f32", "log softmax of 2,048 rows of 50,257", 8.0 * (double)(rows / 4) * 50257, 0, 0, 0}, w_log_softmax, in);
    }
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(rows / 128, 64, 112, 112), OPD_FLOAT32), random_on(OPD_INTS(64), OPD_FLOAT32)};
        const double image = (double)(rows / 128) * 64 * 112 * 112;
        bench((row){"batch_norm_f32", "batch norm, training, 64 x 64 x 112 x 112", 12 * image, 0, 0, 0}, w_batch_norm, in);
        bench((row){"max_pool_f32", "max pooling by 2 x 2, of 64 x 64 x 112 x 112", 7 * image, 0, 0, 0}, w_max_pool, in);
    }
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0) { quick = true; }
        else if (strcmp(argv[i], "--filter") == 0 && more) { filter = argv[++i]; }
        else if (strcmp(argv[i], "--load") == 0 && more) { if (!opd_plugin_load(argv[++i])) { return opd_finish(); } }
        else {
            printf("bench_cuda: measures operators on a GPU\n  --load FILE    loads the CUDA plug-in (opdispatch_cuda.so)\n"
                   "  --quick        smaller tensors, fewer rounds\n  --filter TEXT  only rows whose name or text contains TEXT\n");
            return strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 ? 0 : 2;
        }
    }
    if (opd_device_count(OPD_CUDA) == 0) {
        printf("there is no GPU, or no CUDA plug-in (--load): nothing was measured\n");
        return opd_finish();
    }
    gpu = opd_device_make(OPD_CUDA, 0);
    read_peer();
    const int64_t rows = quick ? 64 : 8192;       /* 64 Mi elements */
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(rows, 8192), OPD_FLOAT32),
                             random_on(OPD_INTS(rows, 8192), OPD_FLOAT32)};
        bench((row){"copy", "copy on the GPU, float32", 8.0 * (double)rows * 8192, 0, 0, 0}, w_copy, in);
        bench((row){"to_half", "cast from float32 to float16", 6.0 * (double)rows * 8192, 0, 0, 0}, w_half, in);
    }
    memory_bound(rows, OPD_FLOAT32, "f32");
    memory_bound(rows, OPD_FLOAT16, "f16");
    products(quick ? 64 : 4096);
    convolutions(quick ? 1 : 64);
    attention(quick ? 64 : 1024);
    others(quick ? 128 : 8192);
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(1024), OPD_FLOAT32), random_on(OPD_INTS(1024), OPD_FLOAT32)};
        bench((row){"chain", "one addition of 1,024 elements, in a chain of 1,000 additions", 0, 0, 1000, 0}, w_chain, in);
    }
    return opd_finish();
}
