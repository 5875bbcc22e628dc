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
CHECK_MAIN()
