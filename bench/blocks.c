/* Measures products with weights in blocks: y = x wT with few and many rows of x, and gradients y = x w.
   cc -O2 bench/blocks.c -o bench_blocks -lm -lpthread -ldl
   ./bench_blocks [--quick] [--filter TEXT] [--threads N] [--help]
   ci: --quick --filter q4_0

   Without --threads, measures one thread, and two if the processor has them.  First, the program reads a large buffer,
   the limit for products with one row.  A row of the table has a type of weights.  GB/s: the bytes of the weights, by
   the time of a product with one row of x; `limit`: the same, divided by the rate of reading; `f32`: the time of the
   product of floats with one row, divided by the time of the row's product.  GFLOP/s and the next `f32`: the same for
   128 rows.  `back`: times of gradients, divided by the time of the same gradient of floats (small is good).  Times are
   the smallest of several rounds: processor time with one thread, else time. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>
#include <time.h>

/* Returns the processor time with one thread, else the time. */
static double now(void) {
    struct timespec time;
    (void)clock_gettime(opd_threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
static int product(opd_scalar_type dtype, bool back, int64_t m, int64_t n, int64_t k, const void *w, const float *x, float *y) {
    const int64_t in = back ? n : k, out = back ? k : n;
    opdi_block_job job;
    int64_t bytes;
    const int64_t block = opd_dtype_block(dtype, &bytes);
    if (dtype == OPD_FLOAT32) {
        return back ? opdi_gemm_f32(m, k, n, x, n, 1, (const float *)w, k, 1, 0, y, k, 1)
            : opdi_gemm_f32(m, n, k, x, k, 1, (const float *)w, 1, k, 0, y, n, 1);
    }
    memset(&job, 0, sizeof job);
    job.dtype = dtype;
    job.m = m, job.n = n, job.k = k;
    job.w = w;
    job.w_stride = k / block * bytes;
    job.x = x, job.x_stride = in;
    job.y = y, job.y_stride = out;
    return back ? opdi_block_product_back(&job) : opdi_block_product(&job);
}
/* Returns the smallest time of a product. */
static double timed(opd_scalar_type dtype, bool back, int64_t m, int64_t n, int64_t k, const void *w, const float *x, float *y,
                    int rounds) {
    double best = 1e30;
    for (int i = 0; i < rounds; i++) {
        const double begin = now();
        if (product(dtype, back, m, n, k, w, x, y)) { printf("%s\n", opd_error_message()); exit(1); }
        best = OPDI_MIN(best, now() - begin);
    }
    return best;
}
/* An opdi_range_fn that reads memory. */
static void reads(void *ctx, int64_t begin, int64_t end) {
    const uint64_t *const at = (const uint64_t *)ctx;
    static volatile uint64_t sink;
    uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int64_t i = begin; i + 8 <= end; i += 8) {
        s0 ^= at[i] ^ at[i + 4];
        s1 ^= at[i + 1] ^ at[i + 5];
        s2 ^= at[i + 2] ^ at[i + 6];
        s3 ^= at[i + 3] ^ at[i + 7];
    }
    sink = s0 ^ s1 ^ s2 ^ s3;
    (void)sink;
}
static const opd_scalar_type types[] = {OPD_Q8_0, OPD_Q4_0, OPD_Q4_K, OPD_Q6_K, OPD_Q5_K, OPD_Q5_0, OPD_Q4_1, OPD_Q5_1, OPD_IQ4_NL,
    OPD_MXFP4, OPD_Q3_K, OPD_Q2_K, OPD_IQ4_XS, OPD_NVFP4, OPD_Q1_0, OPD_Q2_0, OPD_TQ1_0, OPD_TQ2_0};

/* Prints the table for a number of threads. */
static void table(int threads, bool quick, const char *filter) {
    const int64_t k = 4096, rows = quick ? 4096 : 24576, n = quick ? 1024 : 4096, m = 128;
    const int rounds = quick ? 3 : 7;
    const size_t bytes = (size_t)(rows * k * 4);
    unsigned char *const w = (unsigned char *)malloc(bytes);
    float *const x = (float *)malloc((size_t)(m * rows * 4)), *const y = (float *)malloc((size_t)(m * rows * 4));
    if (!w || !x || !y) { printf("out of memory\n"); exit(1); }
    for (int64_t i = 0; i < m * rows; i++) { x[i] = (float)((i * 7919) % 1000) / 1000 - 0.5f; }
    for (int64_t i = 0; i < rows * k; i++) { ((float *)w)[i] = (float)((i * 7919) % 1000) / 1000 - 0.5f; }
    opd_threads_set(threads);
    double read = 1e30;
    for (int i = 0; i < rounds; i++) {
        const double begin = now();
        opdi_parallel_for((int64_t)bytes / 8, 65536, reads, w);
        read = OPDI_MIN(read, now() - begin);
    }
    read = (double)bytes / read;
    const double f1 = timed(OPD_FLOAT32, false, 1, rows, k, w, x, y, rounds), fm = timed(OPD_FLOAT32, false, m, n, k, w, x, y, rounds);
    const double b1 = timed(OPD_FLOAT32, true, 1, rows, k, w, x, y, rounds), bm = timed(OPD_FLOAT32, true, m, n, k, w, x, y, rounds);
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    printf("\n%d thread%s: reading %.1f GB/s, floats %.1f GB/s and %.0f GFLOP/s\n", threads, threads > 1 ? "s" : "", read * 1e-9,
           (double)bytes / f1 * 1e-9, flops / fm * 1e-9);
    printf("%-8s %8s %6s %6s   %8s %6s   %8s %8s\n", "weights", "GB/s", "limit", "f32", "GFLOP/s", "f32", "back 1", "back 128");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int64_t block_bytes;
        const int64_t block = opd_dtype_block(types[i], &block_bytes);
        const double size = (double)(rows * k / block * block_bytes);
        if (filter && !strstr(opd_dtype_name(types[i]), filter)) { continue; }
        for (int64_t at = 0; at < rows * k / block * block_bytes; at++) { w[at] = (unsigned char)((at * 2654435761u) >> 13 & 0x3f); }
        const double t1 = timed(types[i], false, 1, rows, k, w, x, y, rounds), tm = timed(types[i], false, m, n, k, w, x, y, rounds);
        const double r1 = timed(types[i], true, 1, rows, k, w, x, y, quick ? 1 : 3), rm = timed(types[i], true, m, n, k, w, x, y, quick ? 1 : 3);
        printf("%-8s %8.1f %6.2f %6.2f   %8.0f %6.2f   %8.2f %8.2f\n", opd_dtype_name(types[i]), size / t1 * 1e-9, size / t1 / read,
               f1 / t1, flops / tm * 1e-9, fm / tm, r1 / b1, rm / bm);
        fflush(stdout);
    }
    free(w);
    free(x);
    free(y);
}
int main(int argc, char **argv) {
    bool quick = false;
    const char *filter = NULL;
    int threads = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick")) { quick = true; }
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc) { filter = argv[++i]; }
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc) { threads = atoi(argv[++i]); }
        else {
            printf("usage: bench_blocks [--quick] [--filter TEXT] [--threads N]\n");
            return strcmp(argv[i], "--help") != 0;
        }
    }
    if (threads) { table(threads, quick, filter); }
    else {
        table(1, quick, filter);
        if (opd_threads() > 1) { table(2, quick, filter); }
    }
    return 0;
}
