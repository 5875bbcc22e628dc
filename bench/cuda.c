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

enum { ROUNDS = 9, ROWS = 128, GPT2_PARAMS = 148 };
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
static opd_tensor *w_sort_rows(opd_tensor **in) { return opd_argsort(in[0], 1, false); }
static opd_tensor *w_masked(opd_tensor **in) {
    return opd_scaled_dot_product_attention(in[0], in[1], in[2], in[3], 0, false);
}
static opd_tensor *w_decode(opd_tensor **in) {
    return opd_scaled_dot_product_attention_full(in[0], in[1], in[2], NULL, 0, false, OPD_NONE, true);
}
static opd_tensor *w_linear(opd_tensor **in) { return opd_linear(in[0], in[1], in[2]); }
static opd_tensor *w_rms_norm(opd_tensor **in) {
    return opd_rms_norm(in[0], OPD_INTS(opd_size(in[0], 1)), in[1], OPD_V(1e-5));
}
static opd_tensor *w_embedding_back(opd_tensor **in) {
    return opd_embedding_dense_backward(in[0], in[1], 50257, -1, false);
}
static opd_tensor *w_bicubic(opd_tensor **in) {
    return opd_upsample_bicubic2d(in[0], OPD_INTS(2 * opd_size(in[0], 2), 2 * opd_size(in[0], 3)), false);
}
static opd_tensor *w_topk(opd_tensor **in) {
    opd_tensor *out[2];
    return opd_topk(out, in[0], 50) ? NULL : out[0];
}
static opd_tensor *w_clip(opd_tensor **in) { return opd_clip_grad_norm(in, GPT2_PARAMS, 1e9, 2, false); }
/* A 3x3 or 7x7 convolution with stride 2; in: x, w. */
static opd_tensor *w_conv_2(opd_tensor **in) {
    const int64_t around = opd_size(in[1], 2) / 2;
    return opd_conv2d(in[0], in[1], NULL, OPD_INTS(2, 2), OPD_INTS(around, around));
}
/* The gradient of x of w_conv_2; in: x, w, the gradient of y. */
static opd_tensor *w_conv_2_gx(opd_tensor **in) {
    static const bool wanted[3] = {true, false, false};
    const int64_t around = opd_size(in[1], 2) / 2;
    opd_tensor *out[3];
    if (opd_convolution_backward(out, in[2], in[0], in[1], OPD_NONE, OPD_INTS(2, 2), OPD_INTS(around, around),
                                 OPD_INTS(1, 1), false, OPD_INTS(0, 0), 1, opd_value_bools(wanted, 3))) { return NULL; }
    return out[0];
}
/* The gradients of in[0] ... in[count - 1], of a result whose gradient is gy; gy NULL: 1.  The graph stays. */
static opd_tensor *gradients(opd_tensor *y, opd_tensor *gy, opd_tensor **in, int count) {
    opd_backward_options o = {0};
    opd_tensor *out[8];
    o.grad_outputs = gy ? &gy : NULL;
    o.retain_graph = true;
    return opd_autograd_grad(&y, 1, in, count, &o, out) ? NULL : out[0];
}
static opd_tensor *w_attention_back(opd_tensor **in) { return gradients(in[3], in[4], in, 3); }
static opd_tensor *w_cross_entropy(opd_tensor **in) {
    return gradients(opd_cross_entropy_loss(in[0], in[1]), NULL, in, 1);
}
static opd_tensor *w_lstm(opd_tensor **in) {                /* in: x, four weights, the initial state */
    opd_tensor *out[3];
    if (opd_lstm(out, in[0], OPD_TENSORS(in[5], in[5]), opd_tensors_of(in + 1, 4), true, 1, 0, true, false, false)) {
        return NULL;
    }
    return gradients(opd_sum(out[0]), NULL, in, 5);
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
        bench((row){"log_softmax_f32", "log softmax of 2,048 rows of 50,257",
              8.0 * (double)(rows / 4) * 50257, 0, 0, 0}, w_log_softmax, in);
    }
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(rows / 128, 64, 112, 112), OPD_FLOAT32),
                             random_on(OPD_INTS(64), OPD_FLOAT32)};
        const double image = (double)(rows / 128) * 64 * 112 * 112;
        bench((row){"batch_norm_f32", "batch norm, training, 64 x 64 x 112 x 112",
              12 * image, 0, 0, 0}, w_batch_norm, in);
        bench((row){"max_pool_f32", "max pooling by 2 x 2, of 64 x 64 x 112 x 112",
              7 * image, 0, 0, 0}, w_max_pool, in);
    }
}

/* The sizes of the weights of GPT-2 with 124M parameters: writes 148 tensors that have gradients. */
static void gpt2_params(opd_tensor **out, int64_t c) {
    static const int shapes[12][2] = {{1, 0}, {1, 0}, {3, 1}, {3, 0}, {1, 1},
                                      {1, 0}, {1, 0}, {1, 0}, {4, 1}, {4, 0}, {1, 4}, {1, 0}};
    int n = 0;
    out[n++] = random_on(OPD_INTS(50257 * c / 768, c), OPD_FLOAT32);
    out[n++] = random_on(OPD_INTS(1024, c), OPD_FLOAT32);
    for (int i = 0; i < 146; i++) {
        const int *s = shapes[i % 12];
        out[n++] = s[1] ? random_on(OPD_INTS(s[0] * c, s[1] * c), OPD_FLOAT32)
                        : random_on(OPD_INTS(s[0] * c), OPD_FLOAT32);
    }
    for (int i = 0; i < n; i++) {
        opd_tensor_set_requires_grad(out[i], true);
        opd_tensor_set_grad(out[i], opd_full_like(out[i], OPD_V(1e-3)));
    }
}
/* What decides the time of a transformer's step.  tokens: 1,024 for the measured sizes. */
static void transformers(int64_t tokens) {
    static const struct { const char *key, *what; opd_scalar_type type; double dropout; } back[] = {
        {"attention_back", "the gradients of attention_f16, causal", OPD_FLOAT16, 0},
        {"attention_drop_back", "the same with dropout", OPD_FLOAT16, 0.1},
        {"attention_back_f32", "attention_back in float32", OPD_FLOAT32, 0}};
    const double pairs = 8.0 * 16 * 64 * (double)(tokens * tokens), rows = 8.0 * (double)tokens;
    OPD_SCOPE {
        opd_tensor *in[5];
        for (int k = 0; k < 3; k++) { in[k] = random_on(OPD_INTS(8, 16, tokens, 64), OPD_FLOAT16); }
        in[3] = opd_lt_Scalar(opd_arange(OPD_V(tokens), OPD_INT64), OPD_V(tokens * 3 / 4));
        in[3] = opd_to_device(opd_expand(in[3], OPD_INTS(8, 1, 1, tokens)), gpu, OPD_BOOL);
        bench((row){"attention_mask", "attention_f16 with a mask of bools, [8, 1, 1, 1,024]",
              0, 4 * pairs, 0, 0}, w_masked, in);
    }
    for (int i = 0; i < 3; i++) {
        OPD_SCOPE {
            opd_tensor *in[5];
            for (int k = 0; k < 5; k++) { in[k] = random_on(OPD_INTS(8, 16, tokens, 64), back[i].type); }
            for (int k = 0; k < 3; k++) { opd_tensor_set_requires_grad(in[k], true); }
            in[3] = opd_scaled_dot_product_attention(in[0], in[1], in[2], NULL, back[i].dropout, true);
            bench((row){back[i].key, back[i].what, 0, 5 * pairs, 0, 0}, w_attention_back, in);
        }
    }
    OPD_SCOPE {
        opd_tensor *in[3] = {random_on(OPD_INTS(1, 32, 1, 128), OPD_BFLOAT16), NULL, NULL};
        for (int k = 1; k < 3; k++) { in[k] = random_on(OPD_INTS(1, 8, 8 * tokens, 128), OPD_BFLOAT16); }
        bench((row){"attention_1", "attention of one query to 8,192 keys, 32 heads in 8 groups, bfloat16",
              32.0 * 1024 * (double)tokens, 0, 0, 0}, w_decode, in);
    }
    OPD_SCOPE {
        opd_tensor *in[3] = {random_on(OPD_INTS(8 * tokens, 768), OPD_BFLOAT16),
                             random_on(OPD_INTS(3072, 768), OPD_BFLOAT16),
                             random_on(OPD_INTS(3072), OPD_BFLOAT16)};
        bench((row){"linear_bf16", "linear with bias, 8,192 x 768 to 3,072, bfloat16",
              0, 2 * rows * 768 * 3072, 0, 0}, w_linear, in);
    }
    OPD_SCOPE {
        opd_tensor *in[3] = {random_on(OPD_INTS(1, 4096), OPD_BFLOAT16),
                             random_on(OPD_INTS(14336, 4096), OPD_BFLOAT16), NULL};
        bench((row){"linear_1_bf16", "linear, 1 x 4,096 to 14,336, bfloat16",
              2.0 * 4096 * 14336, 0, 0, 0}, w_linear, in);
    }
    for (int i = 0; i < 2; i++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = i ? OPD_Q8_0 : OPD_Q4_K;
            int64_t bytes = 0;
            const double blocks = 4096.0 * 14336 / (double)opd_dtype_block(dtype, &bytes);
            opd_tensor *some = opd_quantize_blocks(opd_randn(OPD_INTS(112, 4096), OPD_FLOAT32), dtype), *parts[128];
            for (int k = 0; k < 128; k++) { parts[k] = some; }
            opd_tensor *in[3] = {random_on(OPD_INTS(1, 4096), OPD_FLOAT32), NULL, NULL};
            in[1] = opd_to_device(opd_cat(opd_tensors_of(parts, 128), 0), gpu, dtype);
            bench((row){i ? "linear_1_q8" : "linear_1_q4", i ? "linear_1_bf16 in float32 with weights of Q8_0"
                  : "linear_1_bf16 in float32 with weights of Q4_K", blocks * (double)bytes, 0, 0, 0}, w_linear, in);
        }
    }
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(8 * tokens, 4096), OPD_BFLOAT16),
                             random_on(OPD_INTS(4096), OPD_BFLOAT16)};
        bench((row){"rms_norm_bf16", "rms norm of 8,192 rows of 4,096, bfloat16",
              4 * rows * 4096, 0, 0, 0}, w_rms_norm, in);
    }
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(8 * tokens, 50257), OPD_FLOAT32),
                             opd_to_device(opd_randint(50257, OPD_INTS(8 * tokens), OPD_INT64), gpu, OPD_INT64)};
        opd_tensor_set_requires_grad(in[0], true);
        bench((row){"cross_entropy", "cross entropy of 8,192 rows of 50,257, float32, with its gradient",
              12 * rows * 50257, 0, 0, 0}, w_cross_entropy, in);
        in[0] = random_on(OPD_INTS(8 * tokens, 768), OPD_FLOAT32);
        bench((row){"embedding_back", "the gradient of an embedding of 50,257 words, 8,192 tokens, 768 features",
              4 * 768 * (rows + 50257), 0, 0, 0}, w_embedding_back, in);
    }
    OPD_SCOPE {
        opd_tensor *in[GPT2_PARAMS];
        const int64_t c = 768 * tokens / 1024;
        gpt2_params(in, c);
        bench((row){"clip_148", "the norm of the gradients of GPT-2's 148 parameters, and scaling them",
              12.0 * 124e6 * (double)(tokens * tokens) / 1048576, 0, 0, 0}, w_clip, in);
    }
    OPD_SCOPE {
        opd_tensor *in[1] = {random_on(OPD_INTS(8, 128256), OPD_FLOAT32)};
        bench((row){"topk_f32", "the 50 greatest of 128,256 elements, 8 rows", 4.0 * 8 * 128256, 0, 0, 0}, w_topk, in);
    }
}
/* The layers of convolutional networks that differ from a 3x3 convolution of contiguous images. */
static void images(int64_t batch) {
    const double each = 2.0 * (double)batch;
    OPD_SCOPE {
        opd_tensor *in[3] = {random_on(OPD_INTS(batch, 3, 224, 224), OPD_FLOAT16),
                             random_on(OPD_INTS(64, 3, 7, 7), OPD_FLOAT16), NULL};
        bench((row){"stem_f16", "convolution, 7x7, stride 2, 3 to 64 channels, 224x224, batch 64, float16",
              0, each * 49 * 3 * 64 * 112 * 112, 0, 0}, w_conv_2, in);
    }
    OPD_SCOPE {
        opd_tensor *in[3] = {random_on(OPD_INTS(batch, 128, 56, 56), OPD_FLOAT16),
                             random_on(OPD_INTS(128, 128, 3, 3), OPD_FLOAT16),
                             random_on(OPD_INTS(batch, 128, 28, 28), OPD_FLOAT16)};
        const double flops = each * 9 * 128 * 128 * 28 * 28;
        bench((row){"conv_2_f16", "convolution, 3x3, stride 2, 128 channels, 56x56, batch 64, float16",
              0, flops, 0, 0}, w_conv_2, in);
        bench((row){"conv_2_gx_f16", "the gradient of its images", 0, flops, 0, 0}, w_conv_2_gx, in);
        for (int k = 0; k < 3; k++) { in[k] = opd_contiguous_full(in[k], 2); }
        bench((row){"conv_2_gx_last", "the same, channels-last", 0, flops, 0, 0}, w_conv_2_gx, in);
    }
    OPD_SCOPE {
        opd_tensor *in[3] = {opd_contiguous_full(random_on(OPD_INTS(batch, 64, 56, 56), OPD_FLOAT16), 2),
                             opd_contiguous_full(random_on(OPD_INTS(64, 64, 3, 3), OPD_FLOAT16), 2),
                             opd_contiguous_full(random_on(OPD_INTS(batch, 64, 56, 56), OPD_FLOAT16), 2)};
        const double flops = each * 9 * 64 * 64 * 56 * 56;
        bench((row){"conv_last_f16", "the convolution conv_f16, channels-last", 0, flops, 0, 0}, w_conv, in);
        bench((row){"conv_back_last", "both gradients of it", 0, 2 * flops, 0, 0}, w_conv_gradients, in);
        in[1] = random_on(OPD_INTS(64), OPD_FLOAT32);
        in[0] = opd_contiguous_full(random_on(OPD_INTS(batch, 64, 112, 112), OPD_FLOAT16), 2);
        bench((row){"norm_last_f16", "batch norm, training, 64 x 64 x 112 x 112, float16, channels-last",
              3 * each * 64 * 112 * 112, 0, 0, 0}, w_batch_norm, in);
    }
    OPD_SCOPE {
        opd_tensor *in[1] = {random_on(OPD_INTS(batch, 3, 224, 224), OPD_FLOAT32)};
        bench((row){"bicubic_f32", "bicubic resampling, 64 x 3 x 224 x 224 to 448 x 448",
              2 * each * 3 * 5 * 224 * 224, 0, 0, 0}, w_bicubic, in);
    }
}
/* An LSTM of `steps` steps, and sorts. */
static void loops(int64_t steps) {
    OPD_SCOPE {
        opd_tensor *in[6] = {random_on(OPD_INTS(steps, 64, 512), OPD_FLOAT32),
                             random_on(OPD_INTS(2048, 512), OPD_FLOAT32),
                             random_on(OPD_INTS(2048, 512), OPD_FLOAT32), random_on(OPD_INTS(2048), OPD_FLOAT32),
                             random_on(OPD_INTS(2048), OPD_FLOAT32), random_on(OPD_INTS(1, 64, 512), OPD_FLOAT32)};
        for (int k = 0; k < 5; k++) { opd_tensor_set_requires_grad(in[k], true); }
        bench((row){"lstm_f32", "LSTM of 128 steps, batch 64, 512 features, float32, with its gradients",
              0, 3 * 2.0 * 2048 * 1024 * 64 * (double)steps, 0, 0}, w_lstm, in);
    }
    OPD_SCOPE {
        const int64_t n = steps * 131072;
        opd_tensor *in[1] = {random_on(OPD_INTS(n), OPD_FLOAT32)};
        bench((row){"sort_16m_f32", "sort of 16 Mi elements", 0, 0, 0, 0}, w_sort, in);
        in[0] = opd_to_device(opd_randint((int64_t)1 << 40, OPD_INTS(n / 4), OPD_INT64), gpu, OPD_INT64);
        bench((row){"sort_4m_i64", "sort of 4 Mi elements of int64", 0, 0, 0, 0}, w_sort, in);
        in[0] = random_on(OPD_INTS(n / 1024, 1024), OPD_FLOAT32);
        bench((row){"argsort_rows", "argsort of 16,384 rows of 1,024, float32", 0, 0, 0, 0}, w_sort_rows, in);
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
    transformers(quick ? 16 : 1024);
    images(quick ? 1 : 64);
    loops(quick ? 2 : 128);
    OPD_SCOPE {
        opd_tensor *in[2] = {random_on(OPD_INTS(1024), OPD_FLOAT32), random_on(OPD_INTS(1024), OPD_FLOAT32)};
        bench((row){"chain", "one addition of 1,024 elements, in a chain of 1,000 additions",
              0, 0, 1000, 0}, w_chain, in);
    }
    return opd_finish();
}
