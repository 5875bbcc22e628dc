/* Numbers in blocks of few bits: the values of random blocks, and the blocks of rows, as llama.cpp computes them
   (golden/gguf/dequantise.npz); extreme numbers; each set of instructions.
     cc -O2 test_block_formats.c -lm -lpthread && ./a.out   run.sh links this test with the implementation in test_kernels.c */
#include "../inside.h"
#include "../check.h"

/* The formats, and how opdi_blocks_encode writes them: with llama.cpp's bytes, or with an error that is no larger. */
typedef struct blocks_format { opd_scalar_type dtype; const char *name; bool readable; int written; } blocks_format;
enum { NOT_WRITTEN, NO_LARGER_ERROR, SAME_BYTES };
static const blocks_format blocks_formats[] = {
    {OPD_Q4_0, "Q4_0", true, SAME_BYTES}, {OPD_Q4_1, "Q4_1", true, SAME_BYTES}, {OPD_Q5_0, "Q5_0", true, SAME_BYTES},
    {OPD_Q5_1, "Q5_1", true, SAME_BYTES}, {OPD_Q8_0, "Q8_0", true, SAME_BYTES},
    {OPD_Q8_1, "Q8_1", true, NO_LARGER_ERROR}, {OPD_Q8_K, "Q8_K", true, NO_LARGER_ERROR},
    {OPD_Q2_K, "Q2_K", true, NO_LARGER_ERROR}, {OPD_Q3_K, "Q3_K", true, NO_LARGER_ERROR},
    {OPD_Q4_K, "Q4_K", true, NO_LARGER_ERROR}, {OPD_Q5_K, "Q5_K", true, NO_LARGER_ERROR},
    {OPD_Q6_K, "Q6_K", true, NO_LARGER_ERROR}, {OPD_IQ4_NL, "IQ4_NL", true, NO_LARGER_ERROR},
    {OPD_IQ4_XS, "IQ4_XS", true, NO_LARGER_ERROR}, {OPD_TQ1_0, "TQ1_0", true, NO_LARGER_ERROR},
    {OPD_TQ2_0, "TQ2_0", true, NO_LARGER_ERROR}, {OPD_MXFP4, "MXFP4", true, NO_LARGER_ERROR},
    {OPD_NVFP4, "NVFP4", true, NO_LARGER_ERROR}, {OPD_Q1_0, "Q1_0", true, NO_LARGER_ERROR},
    {OPD_Q2_0, "Q2_0", true, NO_LARGER_ERROR}, {OPD_IQ1_S, "IQ1_S", false, NOT_WRITTEN},
    {OPD_IQ1_M, "IQ1_M", false, NOT_WRITTEN}, {OPD_IQ2_XXS, "IQ2_XXS", false, NOT_WRITTEN},
    {OPD_IQ2_XS, "IQ2_XS", false, NOT_WRITTEN}, {OPD_IQ2_S, "IQ2_S", false, NOT_WRITTEN},
    {OPD_IQ3_XXS, "IQ3_XXS", false, NOT_WRITTEN}, {OPD_IQ3_S, "IQ3_S", false, NOT_WRITTEN}};
#define BLOCKS_FORMATS (sizeof blocks_formats / sizeof *blocks_formats)

/* Returns an array of the golden file, such as Q4_0_values; NULL if it has none of this name. */
static opd_tensor *blocks_golden(const blocks_format *format, const char *what) {
    char name[60];
    opd_tensor_file *const file = opd_tensor_file_open(check_path("golden/gguf/dequantise.npz"));
    CHECK(file != NULL);
    (void)snprintf(name, sizeof name, "%s_%s", format->name, what);
    opd_tensor *const tensor = opd_tensor_file_find(file, name) >= 0 ? opd_clone(opd_tensor_file_get(file, name)) : NULL;
    opd_tensor_file_close(file);
    return tensor;
}
/* Levels of instructions that this processor has: 0 to the result. */
static int blocks_levels(void) {
    (void)inside_cpu_level_set(-1);
    return inside_cpu_level();
}
static uint32_t blocks_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

TEST(blocks_decode) {
    const int levels = blocks_levels();
    for (size_t i = 0; i < BLOCKS_FORMATS; i++) {
        OPD_SCOPED;
        const blocks_format *const format = &blocks_formats[i];
        opd_tensor *const bytes = blocks_golden(format, "bytes"), *const values = blocks_golden(format, "values");
        if (!format->readable || !bytes) { continue; }
        const int64_t n = opd_numel(values), size = opd_numel(bytes);
        CHECK(n <= 2048 && size < 2400);
        for (int level = 0; level <= levels; level++) {
            for (int shift = 0; shift < 4; shift++) {
                static float out[2100];
                static uint8_t blocks[2500];
                int wrong = 0;
                (void)inside_cpu_level_set(level);
                memcpy(blocks + shift, opd_data(bytes), (size_t)size);
                memset(out, 0x55, sizeof out);
                CHECK(inside_blocks_decode(format->dtype, blocks + shift, out + shift, n) == 0);
                for (int64_t k = 0; k < n; k++) {
                    wrong += blocks_bits(out[k + shift]) != blocks_bits(opd_data_f32(values)[k]);
                }
                if (wrong) { printf("    %s, level %d: %d numbers differ\n", format->name, level, wrong); }
                CHECK(wrong == 0);
                CHECK(blocks_bits(out[n + shift]) == 0x55555555u);
            }
        }
    }
    (void)inside_cpu_level_set(-1);
}
TEST(blocks_not_readable) {
    for (size_t i = 0; i < BLOCKS_FORMATS; i++) {
        const blocks_format *const format = &blocks_formats[i];
        float out[256] = {0};
        const uint8_t blocks[300] = {0};
        CHECK((inside_blocks_readable(format->dtype) == 0) == format->readable);
        if (format->readable) { continue; }
        CHECK_ERROR(OPD_ERROR_DTYPE, "the tables of vectors of this format are not in this library");
        CHECK(inside_blocks_decode(format->dtype, blocks, out, 256) == -1);
        CHECK_ERROR(OPD_ERROR_DTYPE, opd_dtype_name(format->dtype));
    }
    CHECK(inside_blocks_readable(OPD_FLOAT32) == -1);
    CHECK_ERROR(OPD_ERROR_DTYPE, "dtype float32 does not store numbers in blocks");
    CHECK(inside_blocks_readable((opd_scalar_type)1000) == -1);
    CHECK_ERROR(OPD_ERROR_DTYPE, "does not store numbers in blocks");
}
/* Returns the sum of the squared differences between rows of numbers and their blocks. */
static double blocks_error(opd_scalar_type dtype, const float *x, const uint8_t *blocks, int64_t n, float *out) {
    double error = 0;
    CHECK(inside_blocks_decode(dtype, blocks, out, n) == 0);
    for (int64_t i = 0; i < n; i++) { error += ((double)x[i] - (double)out[i]) * ((double)x[i] - (double)out[i]); }
    return error;
}
TEST(blocks_encode) {
    const int levels = blocks_levels();
    for (size_t i = 0; i < BLOCKS_FORMATS; i++) {
        OPD_SCOPED;
        const blocks_format *const format = &blocks_formats[i];
        opd_tensor *const in = blocks_golden(format, "quantise_in"), *const theirs = blocks_golden(format, "quantise_out");
        if (format->written == NOT_WRITTEN || !in) { continue; }
        const int64_t rows = opd_sizes(in)[0], n = opd_sizes(in)[1], bytes = opd_sizes(theirs)[1];
        uint8_t first[4][300], ours[300];
        float out[256];
        for (int level = 0; level <= levels; level++) {
            (void)inside_cpu_level_set(level);
            for (int64_t row = 0; row < rows; row++) {
                const float *const x = opd_data_f32(in) + row * n;
                const uint8_t *const right = (const uint8_t *)opd_data(theirs) + row * bytes;
                memset(ours, 0x55, sizeof ours);
                CHECK(inside_blocks_encode(format->dtype, x, ours, n) == 0);
                CHECK(ours[bytes] == 0x55);
                if (level == 0) { memcpy(first[row], ours, sizeof ours); }
                CHECK(memcmp(first[row], ours, sizeof ours) == 0);
                if (format->written == SAME_BYTES) { CHECK(memcmp(ours, right, (size_t)bytes) == 0); }
                const double our_error = blocks_error(format->dtype, x, ours, n, out);
                const double their_error = blocks_error(format->dtype, x, right, n, out);
                CHECK(our_error <= their_error);
                if (level == 0 && getenv("BLOCKS_ERRORS")) {
                    printf("    %-7s row %d: error %12.6g, llama.cpp's %12.6g, ratio %.4f\n", format->name, (int)row, our_error,
                           their_error, their_error > 0 ? our_error / their_error : 1.0);
                }
            }
        }
    }
    (void)inside_cpu_level_set(-1);
}
CHECK_MAIN()
