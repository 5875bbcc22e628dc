/* Products with weights in blocks, at each level of instructions and with several numbers of threads.  golden/gguf/products.npz
   has weights, activations, products and gradients in float64, made from the values of the `gguf` package.
     cc -O2 test_block_products.c -lm -lpthread && ./a.out      run.sh links this test with the implementation in test_kernels.c */
#include "../inside.h"
#include "../check.h"
#include "block_ways.h"

static const struct { const char *name; opd_scalar_type dtype; } block_names[] = {
    {"Q8_0", OPD_Q8_0}, {"Q4_0", OPD_Q4_0}, {"Q4_1", OPD_Q4_1}, {"Q5_0", OPD_Q5_0}, {"Q5_1", OPD_Q5_1}, {"Q2_K", OPD_Q2_K},
    {"Q3_K", OPD_Q3_K}, {"Q4_K", OPD_Q4_K}, {"Q5_K", OPD_Q5_K}, {"Q6_K", OPD_Q6_K}, {"IQ4_NL", OPD_IQ4_NL}, {"MXFP4", OPD_MXFP4}};

/* Returns the array NAME_what of the golden file. */
static opd_tensor *blocks_golden(const opd_tensor_file *file, const char *name, const char *what) {
    char key[40];
    (void)snprintf(key, sizeof key, "%s_%s", name, what);
    opd_tensor *const array = opd_tensor_file_get(file, key);
    CHECK(array != NULL);
    return array;
}
/* Returns the largest difference of `count` numbers, divided by the largest number wanted. */
static double blocks_off(const float *have, const float *want, int64_t count) {
    double off = 0, most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double by = fabs((double)have[i] - (double)want[i]);
        if (!(by <= off)) off = by == by ? by : INFINITY;
        if (fabs((double)want[i]) > most) most = fabs((double)want[i]);
    }
    return off / most;
}

/* Products and gradients of the golden file: exact ones to 1e-5 of the largest, rounded ones to 2 %. */
TEST(block_products_golden) {
    char path[60];
    (void)snprintf(path, sizeof path, "golden/gguf/products.npz");
    opd_tensor_file *const file = opd_tensor_file_open(check_path(path));
    CHECK_OR_RETURN(file != NULL);
    for (int way = blocks_begin(); blocks_way(way); way++) {
        for (size_t i = 0; i < sizeof block_names / sizeof *block_names; i++) {
            OPD_SCOPED;
            const char *const name = block_names[i].name;
            const opd_tensor *w = blocks_golden(file, name, "w"), *x = blocks_golden(file, name, "x");
            const opd_tensor *y = blocks_golden(file, name, "y"), *gy = blocks_golden(file, name, "gy");
            const opd_tensor *gx = blocks_golden(file, name, "gx");
            float have[5 * 512];
            inside_block_job job = {block_names[i].dtype, true, false, 5, 24, 512, opd_data(w), opd_sizes(w)[1],
                (const float *)opd_data(x), 512, have, 24};
            CHECK_INT(inside_block_product(&job), 0);
            CHECK(blocks_off(have, (const float *)opd_data(y), 120) < 1e-5);
            job.exact = false;
            CHECK_INT(inside_block_product(&job), 0);
            CHECK(blocks_off(have, (const float *)opd_data(y), 120) < 2e-2);
            job.back = true;
            job.x = (const float *)opd_data(gy);
            job.x_stride = 24;
            job.y_stride = 512;
            CHECK_INT(inside_block_product(&job), 0);
            CHECK(blocks_off(have, (const float *)opd_data(gx), 5 * 512) < 1e-5);
        }
    }
    blocks_end();
    opd_tensor_file_close(file);
}

/* Formats, and where their blocks have float16 scales (-1: nowhere).  `chunk` is the number of elements of x that share a
   scale (0: x is not rounded). */
static const struct { opd_scalar_type dtype; int first, second, chunk; } block_formats[] = {
    {OPD_Q8_0, 0, -1, 32}, {OPD_Q4_0, 0, -1, 32}, {OPD_Q4_1, 0, 2, 32}, {OPD_Q5_0, 0, -1, 32}, {OPD_Q5_1, 0, 2, 32},
    {OPD_Q1_0, 0, -1, 32}, {OPD_Q2_0, 0, -1, 32}, {OPD_IQ4_NL, 0, -1, 32}, {OPD_MXFP4, -1, -1, 32}, {OPD_NVFP4, -1, -1, 32},
    {OPD_Q2_K, 80, 82, 256}, {OPD_Q3_K, 108, -1, 256}, {OPD_Q4_K, 0, 2, 256}, {OPD_Q5_K, 0, 2, 256}, {OPD_Q6_K, 208, -1, 256},
    {OPD_IQ4_XS, 0, -1, 256}, {OPD_TQ1_0, 52, -1, 256}, {OPD_TQ2_0, 64, -1, 256},
    {OPD_WEIGHT_F16, -1, -1, 0}, {OPD_WEIGHT_BF16, -1, -1, 0}};
enum { BLOCK_FORMATS = sizeof block_formats / sizeof *block_formats };

/* Returns a row of random blocks whose scales are between 0.06 and 0.12, negative in half of them. */
static void blocks_random(int format, uint8_t *w, int64_t bytes, uint64_t *seed) {
    int64_t size;
    (void)opd_dtype_block(block_formats[format].dtype, &size);
    for (int64_t i = 0; i < bytes; i++) {
        *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        w[i] = (uint8_t)(*seed >> 40);
    }
    for (int64_t at = 0; at < bytes; at += size) {
        const int places[2] = {block_formats[format].first, block_formats[format].second};
        for (int i = 0; i < 2; i++) {
            if (places[i] >= 0) w[at + places[i] + 1] = (uint8_t)((w[at + places[i] + 1] & 0x83) | 0x2c);
        }
        for (int i = 1; block_formats[format].chunk == 0 && i < 64; i += 2) w[at + i] = (uint8_t)((w[at + i] & 0x83) | 0x3c);
        if (block_formats[format].dtype == OPD_MXFP4) w[at] = (uint8_t)(120 + w[at] % 8);
        for (int i = 0; block_formats[format].dtype == OPD_NVFP4 && i < 4; i++) w[at + i] &= 0x3f;
    }
}
/* Rounds a row of x to 8 bits as the rounded products do. */
static void blocks_round(const float *x, int64_t k, int chunk, double *out) {
    for (int64_t at = 0; at < k; at += chunk) {
        float most = 0;
        for (int i = 0; i < chunk; i++) most = fabsf(x[at + i]) > most ? fabsf(x[at + i]) : most;
        const float by = most > 0 ? 127.0f / most : 0;
        for (int i = 0; i < chunk; i++) out[at + i] = nearbyint((double)(x[at + i] * by)) * (double)most / 127.0;
    }
}
/* Compares one product with products of doubles. */
static void blocks_compare(int format, int64_t m, int64_t n, int64_t k, bool exact, bool back, uint64_t seed) {
    const opd_scalar_type dtype = block_formats[format].dtype;
    int64_t size;
    const int64_t block = opd_dtype_block(dtype, &size), stride = k / block * size + 7 - n % 2;         /* odd and even */
    const int64_t in = back ? n : k, out = back ? k : n, xs = in + 3, ys = out + 5;
    uint8_t *const w = (uint8_t *)malloc((size_t)(n * stride + 1));
    float *const floats = (float *)malloc((size_t)(n * k + 1) * sizeof(float)), *const x = (float *)malloc((size_t)(m * xs) * sizeof(float));
    float *const y = (float *)malloc((size_t)(m * ys) * sizeof(float)), *const again = (float *)malloc((size_t)(m * ys) * sizeof(float));
    double *const near = (double *)malloc((size_t)in * sizeof(double)), *const want = (double *)malloc((size_t)(m * ys) * sizeof(double));
    CHECK_OR_RETURN(w && floats && x && y && again && near && want);
    for (int64_t j = 0; j < n; j++) {
        blocks_random(format, w + j * stride, k / block * size, &seed);
        CHECK_INT(inside_blocks_decode(dtype, w + j * stride, floats + j * k, k), 0);
    }
    for (int64_t i = 0; i < m * xs; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        x[i] = (float)((double)(seed >> 11) / 4503599627370496.0 - 1.0);
    }
    double most = 0;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < in; j++) near[j] = (double)x[i * xs + j];
        if (!exact && !back && block_formats[format].chunk) blocks_round(x + i * xs, k, block_formats[format].chunk, near);
        for (int64_t j = 0; j < out; j++) {
            double sum = 0;
            for (int64_t step = 0; step < in; step++) sum += near[step] * (double)(back ? floats[step * k + j] : floats[j * k + step]);
            want[i * ys + j] = sum;
            most = fabs(sum) > most ? fabs(sum) : most;
        }
    }
    for (int way = blocks_begin(); blocks_way(way); way++) {
        inside_block_job job = {dtype, exact, back, m, n, k, w, stride, x, xs, y, ys};
        for (int64_t i = 0; i < m * ys; i++) y[i] = 77.0f;
        CHECK_INT(inside_block_product(&job), 0);
        double off = 0;
        bool others = true, same = true;
        for (int64_t i = 0; i < m; i++) {
            for (int64_t j = 0; j < ys && i * ys + j < m * ys; j++) {
                const double by = fabs((double)y[i * ys + j] - want[i * ys + j]);
                if (j >= out) others = others && y[i * ys + j] == 77.0f;
                else if (!(by <= off)) off = by == by ? by : HUGE_VAL;
            }
        }
        if (blocks_way_same(way)) for (int64_t i = 0; i < m * ys; i++) same = same && memcmp(&y[i], &again[i], sizeof *y) == 0;
        memcpy(again, y, (size_t)(m * ys) * sizeof(float));
        const bool right = off <= (exact || back ? 1e-5 : 1e-4) * most;
        if (!right || !others || !same) {
            printf("    %s, %d x %d x %d, %s%s, way %d: %g of %g\n", opd_dtype_name(dtype), (int)m, (int)n, (int)k,
                   exact ? "exact" : "rounded", back ? ", back" : "", way, off, most);
        }
        CHECK(right);
        CHECK(others);
        CHECK(same);
    }
    blocks_end();
    free(w), free(floats), free(x), free(y), free(again), free(near), free(want);
}
/* Random weights of each format: odd numbers of rows, rows with other elements between them, one block and many. */
TEST(block_products_random) {
    static const int64_t sizes[][3] = {{1, 1, 1}, {1, 67, 5}, {2, 33, 3}, {3, 20, 2}, {4, 45, 4}, {5, 65, 1}, {9, 33, 7}, {18, 70, 3}, {37, 40, 18}};
    for (int format = 0; format < BLOCK_FORMATS; format++) {
        const int64_t block = opd_dtype_block(block_formats[format].dtype, NULL);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            if (!check_visits((size_t)format * 9 + i, BLOCK_FORMATS * 9)) continue;
            for (int kind = 0; kind < 3; kind++) {
                blocks_compare(format, sizes[i][0], sizes[i][1], sizes[i][2] * block, kind == 1, kind == 2, (uint64_t)(format * 100 + (int)i));
            }
        }
    }
}
/* Infinite and NaN elements of x: their rows are what exact products give, and other rows do not change.  Very large and very
   small elements are rounded like others. */
TEST(block_products_special) {
    static const float specials[4] = {INFINITY, -INFINITY, NAN, 3e38f};
    for (int format = 0; format < BLOCK_FORMATS; format++) {
        const opd_scalar_type dtype = block_formats[format].dtype;
        int64_t size;
        const int64_t block = opd_dtype_block(dtype, &size), k = 256 > block ? 256 : block, n = 5, m = 9, stride = k / block * size;
        uint64_t seed = 7;
        uint8_t w[5 * 512];
        float x[9 * 256], y[9 * 5], exact[9 * 5], whole[9 * 5];
        for (int64_t j = 0; j < n; j++) blocks_random(format, w + j * stride, stride, &seed);
        for (int64_t i = 0; i < m * k; i++) x[i] = (float)(i % 17) * 0.25f - 2.0f;
        for (int way = blocks_begin(); blocks_way(way); way++) {
            for (int64_t rows = 1; rows <= m; rows += 4) {
                for (int i = 0; i < 3; i++) {
                    inside_block_job job = {dtype, false, false, rows, n, k, w, stride, x, k, whole, n};
                    const float old = x[k / 2];
                    CHECK_INT(inside_block_product(&job), 0);
                    x[k / 2] = specials[i];
                    job.y = y;
                    CHECK_INT(inside_block_product(&job), 0);
                    job.y = exact;
                    job.exact = true;
                    CHECK_INT(inside_block_product(&job), 0);
                    x[k / 2] = old;
                    bool same = true, others = true, special = true;
                    for (int64_t j = 0; j < n; j++) {
                        special = special && !(fabsf(exact[j]) < INFINITY);
                        same = same && (y[j] == exact[j] || (y[j] != y[j] && exact[j] != exact[j]));
                    }
                    for (int64_t j = n; j < rows * n; j++) others = others && y[j] == whole[j];
                    CHECK(same);
                    CHECK(others);
                    CHECK(special);
                }
            }
        }
        blocks_end();
    }
}
/* A row whose elements have sizes from the smallest to the largest. */
TEST(block_products_scales) {
    static const float sizes[] = {1e-44f, 1e-38f, 1e-36f, 1e-30f, 1e-10f, 1e30f, 1e36f};
    uint64_t seed = 3;
    uint8_t w[2 * 272];
    float x[256], y[2], want[2];
    blocks_random(0, w, 544, &seed);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int way = blocks_begin(); blocks_way(way); way++) {
            inside_block_job job = {OPD_Q8_0, false, false, 1, 1, 256, w, 272, x, 256, y, 1};
            for (int j = 0; j < 256; j++) x[j] = 1.0f;
            CHECK_INT(inside_block_product(&job), 0);
            want[0] = y[0] * sizes[i];
            for (int j = 0; j < 256; j++) x[j] = sizes[i];
            CHECK_INT(inside_block_product(&job), 0);
            CHECK_NEAR((double)y[0], (double)want[0], fabs((double)want[0]) * 1e-5 + 2e-43);
        }
        blocks_end();
    }
}
/* Compares the products of `n` rows of w by a row of x, rounded in chunks of 32, with products of doubles.  Returns whether
   they are near, and whether all ways with vectors gave the same bits. */
static bool blocks_row_near(opd_scalar_type dtype, const uint8_t *w, int64_t n, int64_t k, const float *x, bool *same) {
    int64_t size;
    const int64_t block = opd_dtype_block(dtype, &size), stride = k / block * size;
    float *const floats = (float *)malloc((size_t)(n * k) * sizeof(float)), y[8], first[8];
    double *const near = (double *)malloc((size_t)k * sizeof(double));
    bool right = floats && near && n <= 8;
    if (right) blocks_round(x, k, 32, near);
    for (int64_t j = 0; right && j < n; j++) right = inside_blocks_decode(dtype, w + j * stride, floats + j * k, k) == 0;
    *same = true;
    for (int way = blocks_begin(); right && blocks_way(way); way++) {
        inside_block_job job = {dtype, false, false, 1, n, k, w, stride, x, k, y, n};
        right = inside_block_product(&job) == 0;
        for (int64_t j = 0; right && j < n; j++) {
            double sum = 0, sizes = 0;
            for (int64_t i = 0; i < k; i++) {
                sum += near[i] * (double)floats[j * k + i];
                sizes += fabs(near[i] * (double)floats[j * k + i]);
            }
            right = fabs((double)y[j] - sum) <= 1e-6 * sizes + 1e-42;
            if (!right) printf("    %s, k %d, way %d, row %d: %g, not %g\n", opd_dtype_name(dtype), (int)k, way, (int)j, (double)y[j], sum);
        }
        if (way == 2) memcpy(first, y, sizeof first);
        if (way > 2 && memcmp(first, y, (size_t)n * sizeof *y)) *same = false;
    }
    blocks_end();
    free(floats), free(near);
    return right;
}
/* Integers of 4 and 8 bits: groups that share an opdi_block_four, fill it, or do not divide it, and rows that end within it. */
TEST(block_products_ints) {
    static const int groups[] = {32, 64, 96, 128, 160, 256, 384}, counts[] = {1, 2, 3, 5, 9};
    uint64_t seed = 5;
    for (int i = 0; i < 7 * 5 * 4; i++) {
        if (i % 4 == 3) continue;                 /* 8 bits with zero points are not multiplied in integers */
        const opd_scalar_type dtype = opd_dtype_int_blocks(i % 2 ? 8 : 4, groups[i / 4 % 7], i / 2 % 2);
        int64_t size;
        const int64_t block = opd_dtype_block(dtype, &size), count = counts[i / 28], k = count * block;
        uint8_t *const w = (uint8_t *)malloc((size_t)(7 * count * size));
        float *const x = (float *)malloc((size_t)k * sizeof(float));
        bool same;
        CHECK_OR_RETURN(w && x);
        for (int64_t j = 0; j < 7 * count * size; j++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            w[j] = (uint8_t)(seed >> 40);
        }
        for (int64_t at = 0; at < 7 * count; at++) {
            const float numbers[2] = {(float)(at % 9 + 1) * 0.03f, (float)(at % 13)};
            memcpy(w + at * size, numbers, i / 2 % 2 ? 8 : 4);
        }
        for (int64_t j = 0; j < k; j++) x[j] = (float)((j * 7919 + i) % 1009) / 504 - 1;
        CHECK(blocks_row_near(dtype, w, 7, k, x, &same));
        CHECK(same);
        free(w), free(x);
    }
}
/* All scales of NVFP4, and the scales of MXFP4 whose numbers are finite. */
TEST(block_products_powers) {
    uint64_t seed = 9;
    float x[192];
    uint8_t w[8 * 108];
    bool same;
    for (int j = 0; j < 192; j++) x[j] = (float)(j * 7919 % 1009) / 5 - 100;
    for (int scale = 0; scale < 256; scale++) {
        blocks_random(8, w, sizeof w, &seed);
        for (int i = 0; i < 24; i++) memset(w + 36 * i, scale, 4);
        CHECK(blocks_row_near(OPD_NVFP4, w, 8, 192, x, &same));
        if (scale > 240) continue;
        blocks_random(8, w, sizeof w, &seed);
        for (int i = 0; i < 48; i++) w[17 * i] = (uint8_t)scale;
        CHECK(blocks_row_near(OPD_MXFP4, w, 8, 192, x, &same));
    }
}
/* Sizes of 0: nothing is written, or zeros. */
TEST(block_products_empty) {
    uint8_t w[4 * 18] = {0};
    float x[4 * 32] = {0}, y[4 * 32];
    for (int way = blocks_begin(); blocks_way(way); way++) {
        for (int i = 0; i < 12; i++) {
            inside_block_job job = {OPD_Q4_0, i % 4 > 1, i % 4 == 1, 3, 4, 32, w, 18, x, 32, y, 32};
            for (int j = 0; j < 4 * 32; j++) y[j] = 5.0f;
            if (i / 4 == 0) job.m = 0;
            if (i / 4 == 1) job.n = 0;
            if (i / 4 == 2) job.k = 0;
            CHECK_INT(inside_block_product(&job), 0);
            const int64_t columns = job.back ? job.k : job.n;
            const bool zeros = job.m && columns;
            for (int64_t j = 0; j < 4 * 32; j++) CHECK(y[j] == (zeros && j < 3 * 32 && j % 32 < columns ? 0.0f : 5.0f));
        }
    }
    blocks_end();
}
/* The last byte of the weights is the last byte of their memory, which sanitizers check. */
static int blocks_attempt(void *arg) { return inside_block_product((const inside_block_job *)arg); }
TEST(block_products_allocations) {
    for (int i = 0; i < 12; i++) {
        const int64_t m = i / 3 % 2 ? 2 : 20;
        const int format = i < 6 ? 12 : 19;
        const int64_t bytes = i < 6 ? 144 : 512;
        uint64_t seed = 11;
        uint8_t *const w = (uint8_t *)malloc((size_t)(70 * bytes));
        float *const x = (float *)calloc(20 * 256, sizeof(float)), *const y = (float *)calloc(20 * 256, sizeof(float));
        CHECK_OR_RETURN(w && x && y);
        for (int j = 0; j < 70; j++) blocks_random(format, w + bytes * j, bytes, &seed);
        inside_block_job job = {block_formats[format].dtype, i % 3 == 1, i % 3 == 2, m, 70, 256, w, bytes, x, 256, y, 256};
        opd_threads_set(3);
        (void)check_allocations(blocks_attempt, &job, "a product of blocks", 20, false);
        opd_threads_set(0);
        free(w), free(x), free(y);
    }
}
CHECK_MAIN()
