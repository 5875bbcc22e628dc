/* Measures products with weights in blocks: y = x wT with few and many rows of x, and gradients y = x w.
   cc -O2 bench/blocks.c -o bench_blocks -lm -lpthread -ldl
   ./bench_blocks [--quick] [--filter TEXT] [--threads N] [--level LEVEL] [--help]
   ci: --quick --filter q4_0

   Without --threads, measures one thread, and two if the processor has them.  First, the program adds up a large tensor,
   which shows how fast it can read memory: the limit for products with one row.  A row of the table has a type of
   weights.  GB/s: the bytes of the weights, by the time of a product with one row of x; `limit`: the same, divided by the
   rate of reading; `f32`: the time of the product of floats with one row, divided by the time of the row's product.
   GFLOP/s and the next `f32`: the same for 128 rows.  `back`: times of gradients, divided by the time of the same
   gradient of floats (small is good).  Times are the smallest of several rounds: processor time with one thread, else
   time. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include "level.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Returns the processor time with one thread, else the time. */
static double now(void) {
    struct timespec time;
    (void)clock_gettime(opd_threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
/* Returns the smallest time of a product x wT, or if `back` is true, x w. */
static double timed(opd_tensor *x, opd_tensor *w, bool back, int rounds) {
    double best = 1e30;
    for (int i = 0; i < rounds; i++) {
        OPD_SCOPED;
        const double begin = now();
        if (!(back ? opd_mm(x, w) : opd_linear(x, w, NULL))) { printf("%s\n", opd_error_message()); exit(1); }
        best = fmin(best, now() - begin);
    }
    return best;
}
/* Returns numbers from -0.5 to 0.5. */
static opd_tensor *numbers(int64_t rows, int64_t columns) {
    opd_tensor *const t = opd_tensor_new(OPD_INTS(rows, columns), OPD_FLOAT32);
    if (!t) { printf("%s\n", opd_error_message()); exit(1); }
    for (int64_t i = 0; i < rows * columns; i++) { opd_data_f32(t)[i] = (float)((i * 7919) % 1000) / 1000 - 0.5f; }
    return t;
}
static const opd_scalar_type types[] = {
    OPD_WEIGHT_F16, OPD_WEIGHT_BF16,
    OPD_Q8_0, OPD_Q4_0, OPD_Q4_K, OPD_Q6_K, OPD_Q5_K, OPD_Q5_0, OPD_Q4_1, OPD_Q5_1, OPD_IQ4_NL, OPD_MXFP4, OPD_Q3_K,
    OPD_Q2_K, OPD_IQ4_XS, OPD_NVFP4, OPD_Q1_0, OPD_Q2_0, OPD_TQ1_0, OPD_TQ2_0};

/* The times of a weight [rows, 4096] with one row of x, and of its first `some` rows with 128 rows of x. */
typedef struct times { double one, many, back_one, back_many; } times;
static times measure(opd_tensor *w, opd_tensor *const x[4], int64_t some, int rounds, int back_rounds) {
    opd_tensor *const part = opd_narrow(w, 0, 0, some);
    const times t = {timed(x[0], w, false, rounds), timed(x[1], part, false, rounds), timed(x[2], w, true, back_rounds),
                     timed(x[3], part, true, back_rounds)};
    return t;
}
/* Prints the table for a number of threads. */
static void table(int threads, bool quick, const char *filter) {
    const int64_t k = 4096, rows = quick ? 4096 : 24576, n = quick ? 1024 : 4096, m = 128;
    const int rounds = quick ? 3 : 7;
    const double flops = 2.0 * (double)m * (double)n * (double)k, bytes = 4.0 * (double)rows * (double)k;
    double read = 1e30;
    opd_threads_set(threads);
    OPD_SCOPE {
        opd_tensor *const floats = numbers(rows, k);
        opd_tensor *const x[4] = {numbers(1, k), numbers(m, k), numbers(1, rows), numbers(m, n)};
        for (int i = 0; i < rounds; i++) {
            const double begin = now();
            (void)opd_sum(floats);
            read = fmin(read, now() - begin);
        }
        read = bytes / read;
        const times f = measure(floats, x, n, rounds, rounds);
        printf("\n%d thread%s: reading %.1f GB/s, floats %.1f GB/s and %.0f GFLOP/s\n", threads, threads > 1 ? "s" : "",
               read * 1e-9, bytes / f.one * 1e-9, flops / f.many * 1e-9);
        printf("%-8s %8s %6s %6s   %8s %6s   %8s %8s\n", "weights", "GB/s", "limit", "f32", "GFLOP/s", "f32", "back 1",
               "back 128");
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            OPD_SCOPED;
            int64_t block_bytes;
            const int64_t block = opd_dtype_block(types[i], &block_bytes), size = rows * k / block * block_bytes;
            if (filter && !strstr(opd_dtype_name(types[i]), filter)) { continue; }
            opd_tensor *const w = opd_tensor_new(OPD_INTS(rows, k), types[i]);
            unsigned char *const at = (unsigned char *)opd_data(w);
            for (int64_t j = 0; at && j < size; j++) { at[j] = (unsigned char)((j * 2654435761u) >> 13 & 0x3f); }
            for (int64_t j = 0; at && types[i] == OPD_MXFP4 && j < size; j += block_bytes) {
                at[j] = 120;                      /* other scales would be denormal */
            }
            const times t = measure(w, x, n, rounds, quick ? 1 : 3);
            printf("%-8s %8.1f %6.2f %6.2f   %8.0f %6.2f   %8.2f %8.2f\n", opd_dtype_name(types[i]),
                   (double)size / t.one * 1e-9, (double)size / t.one / read, f.one / t.one, flops / t.many * 1e-9,
                   f.many / t.many, t.back_one / f.back_one, t.back_many / f.back_many);
            fflush(stdout);
        }
    }
}
int main(int argc, char **argv) {
    bool quick = false;
    const char *filter = NULL;
    int threads = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick")) { quick = true; }
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc) { filter = argv[++i]; }
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc) { threads = atoi(argv[++i]); }
        else if (!strcmp(argv[i], "--level") && i + 1 < argc && bench_level(argv[i + 1])) { i++; }
        else {
            printf("usage: bench_blocks [--quick] [--filter TEXT] [--threads N] [--level LEVEL]\n" BENCH_LEVEL_HELP);
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
