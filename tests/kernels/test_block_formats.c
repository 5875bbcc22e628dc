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
        CHECK_ERROR(OPD_ERROR_NO_KERNEL, "the format needs tables of vectors that this library does not have");
        CHECK(inside_blocks_decode(format->dtype, blocks, out, 256) == -1);
        CHECK_ERROR(OPD_ERROR_NO_KERNEL, opd_dtype_name(format->dtype));
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
static uint32_t blocks_state = 12345;
static uint32_t blocks_random(void) {
    blocks_state = blocks_state * 1664525u + 1013904223u;
    return blocks_state >> 8;
}
static float blocks_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
/* Random bytes as blocks: with each set of instructions, the numbers are the same. */
TEST(blocks_decode_random) {
    static uint8_t blocks[300 * 8];
    static float first[2048], out[2048];
    const int levels = blocks_levels();
    for (size_t i = 0; i < BLOCKS_FORMATS * 40; i++) {
        const blocks_format *const format = &blocks_formats[i % BLOCKS_FORMATS];
        if (!format->readable) { continue; }
        const int64_t elements = opd_dtype_block(format->dtype, NULL), n = elements * (1 + (int64_t)(blocks_random() % 8));
        for (size_t k = 0; k < sizeof blocks; k++) { blocks[k] = (uint8_t)blocks_random(); }
        for (int level = 0; level <= levels; level++) {
            int wrong = 0;
            (void)inside_cpu_level_set(level);
            CHECK(inside_blocks_decode(format->dtype, blocks, level ? out : first, n) == 0);
            for (int64_t k = 0; level && k < n; k++) {
                wrong += blocks_bits(out[k]) != blocks_bits(first[k]) && !(out[k] != out[k] && first[k] != first[k]);
            }
            CHECK_INT(wrong, 0);
        }
    }
    (void)inside_cpu_level_set(-1);
}
/* Any floats, in several ranges, as numbers: the blocks are the same with each set of instructions, and their numbers are
   finite and not larger; or there is an error that names a number, which is not finite or large. */
TEST(blocks_encode_any) {
    static uint8_t blocks[300 * 4], first[300 * 4];
    static float x[1024], out[1024];
    const int levels = blocks_levels();
    int refused = 0;
    for (size_t i = 0; i < BLOCKS_FORMATS * 120; i++) {
        const blocks_format *const format = &blocks_formats[i % BLOCKS_FORMATS];
        if (format->written == NOT_WRITTEN) { continue; }
        int64_t bytes;
        const int64_t elements = opd_dtype_block(format->dtype, &bytes), count = 1 + (int64_t)(blocks_random() % 4);
        const int64_t n = elements * count;
        const uint32_t middle = blocks_random() % 255, width = 1 + blocks_random() % (i % 5 ? 6 : 60);
        float top = 0;
        int wrong = 0, rc = 0;
        for (int64_t k = 0; k < n; k++) {
            const uint32_t exponent = (middle + blocks_random() % width) % (i % 7 ? 255 : 256);
            x[k] = blocks_float((blocks_random() & 1u) << 31 | exponent << 23 | (blocks_random() & 0x7fffffu));
            if (blocks_random() % 16 == 0) { x[k] = 0; }
            if (!(fabsf(x[k]) <= top)) { top = fabsf(x[k]); }
        }
        for (int level = 0; level <= levels; level++) {
            char name[40];
            (void)inside_cpu_level_set(level);
            memset(blocks, 0x55, sizeof blocks);
            rc = inside_blocks_encode(format->dtype, x, blocks, n);
            if (rc) {
                long long at = 0;
                refused++;
                CHECK(sscanf(opd_error_message(), "quantize: number %lld", &at) == 1 && at >= 0 && at < n);
                CHECK(!(fabsf(x[at]) <= 2700));
                (void)snprintf(name, sizeof name, "%s", opd_dtype_name(format->dtype));
                CHECK_ERROR(OPD_ERROR_ARGUMENT, name);
                continue;
            }
            CHECK(blocks[bytes * count] == 0x55);
            if (level == 0) { memcpy(first, blocks, sizeof first); }
            if (memcmp(blocks, first, sizeof first) != 0) { printf("    %s: level %d differs\n", format->name, level); }
            CHECK(memcmp(blocks, first, sizeof first) == 0);
        }
        if (rc) { continue; }
        CHECK(top < INFINITY && inside_blocks_decode(format->dtype, blocks, out, n) == 0);
        for (int64_t k = 0; k < n; k++) { wrong += !(fabsf(out[k]) <= 1.6f * top); }
        if (wrong) { printf("    %s: %d numbers are larger than %g\n", format->name, wrong, (double)top); }
        CHECK_INT(wrong, 0);
    }
    CHECK(refused > 300);
    (void)inside_cpu_level_set(-1);
}
/* Numbers that blocks can represent, with the largest code, become blocks with the same numbers. */
TEST(blocks_encode_again) {
    static const struct { opd_scalar_type dtype; int scale_at, code_at, code; } cases[] = {
        {OPD_Q4_0, 0, 5, 0x70}, {OPD_Q5_0, 0, 9, 0}, {OPD_Q8_0, 0, 9, 127}, {OPD_Q8_1, 0, 9, 129}, {OPD_Q1_0, 0, 9, 1},
        {OPD_TQ2_0, 64, 9, 1}, {OPD_TQ1_0, 52, 9, 1}, {OPD_MXFP4, -1, 9, 0x77}, {OPD_NVFP4, -1, 9, 0x77}};
    uint8_t blocks[300], again[300];
    float x[256], out[256];
    for (int i = 0; i < 900; i++) {
        const int k = i % (int)(sizeof cases / sizeof *cases);
        const int64_t n = opd_dtype_block(cases[k].dtype, NULL);
        int wrong = 0;
        for (size_t j = 0; j < sizeof blocks; j++) {
            blocks[j] = (uint8_t)blocks_random();
            if (blocks[j] == 0x80) { blocks[j] = 0x81; }           /* -128, which is larger than 127 */
        }
        if (cases[k].scale_at >= 0) {                  /* a positive float16 that is normal */
            blocks[cases[k].scale_at + 1] = (uint8_t)(4 + blocks_random() % 64);
        } else if (cases[k].dtype == OPD_MXFP4) {
            blocks[0] = (uint8_t)(blocks_random() % 250);
        } else {
            for (int g = 0; g < 4; g++) {
                blocks[g] = (uint8_t)(1 + blocks_random() % 126);
                blocks[4 + 8 * g] = 0x77;
            }
        }
        if (cases[k].dtype == OPD_Q5_0) { memset(blocks + 2, 0, 4); }
        if (cases[k].dtype != OPD_NVFP4) { blocks[cases[k].code_at] = (uint8_t)cases[k].code; }
        if (cases[k].dtype == OPD_TQ2_0) {
            for (int j = 0; j < 64; j++) { blocks[j] &= (uint8_t)(0x55u | (blocks[j] ^ 0xffu) << 1); }      /* no code of 3 */
        }
        CHECK(inside_blocks_decode(cases[k].dtype, blocks, x, n) == 0);
        CHECK(inside_blocks_encode(cases[k].dtype, x, again, n) == 0);
        CHECK(inside_blocks_decode(cases[k].dtype, again, out, n) == 0);
        for (int64_t j = 0; j < n; j++) { wrong += !(x[j] == out[j]); }
        if (wrong) { printf("    %s: %d numbers differ\n", opd_dtype_name(cases[k].dtype), wrong); }
        CHECK_INT(wrong, 0);
    }
}
TEST(blocks_not_written) {
    float x[256];
    uint8_t blocks[300];
    for (int i = 0; i < 256; i++) { x[i] = (float)i / 256; }
    for (size_t i = 0; i < BLOCKS_FORMATS; i++) {
        const blocks_format *const format = &blocks_formats[i];
        const int64_t n = opd_dtype_block(format->dtype, NULL);
        if (format->written == NOT_WRITTEN) {
            CHECK(inside_blocks_encode(format->dtype, x, blocks, 256) == -1);
            CHECK_ERROR(OPD_ERROR_NO_KERNEL, opd_dtype_name(format->dtype));
            continue;
        }
        x[n - 3] = NAN;
        CHECK(inside_blocks_encode(format->dtype, x, blocks, 256) == -1);
        CHECK(strstr(opd_error_message(), opd_dtype_name(format->dtype)) != NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "is NaN, which cannot be stored as ");
        x[n - 3] = -INFINITY;
        CHECK(inside_blocks_encode(format->dtype, x, blocks, 256) == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "is infinite");
        x[n - 3] = 0;
        if (format->dtype == OPD_MXFP4 || format->dtype == OPD_Q8_K) { continue; }
        x[n - 2] = -1e30f;
        CHECK(inside_blocks_encode(format->dtype, x, blocks, 256) == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "-1e+30, is too large for ");
        x[n - 2] = 0;
    }
}
/* Returns the float16 at an address: the first number of a block of Q8_0 with this scale. */
static float blocks_half(const uint8_t *at) {
    const uint8_t block[34] = {at[0], at[1], 1};
    float out[32];
    CHECK(inside_blocks_decode(OPD_Q8_0, block, out, 32) == 0);
    return out[0];
}
/* The numbers of Q8_1 and Q8_K, which no file holds: scales, integers, and the sums of integers. */
TEST(blocks_with_sums) {
    float x[256];
    uint8_t blocks[300];
    int sum = 0, first = 0;
    for (int i = 0; i < 256; i++) { x[i] = (float)(i - 128) / 128; }
    CHECK(inside_blocks_encode(OPD_Q8_1, x, blocks, 32) == 0);
    for (int i = 0; i < 32; i++) { sum += (signed char)blocks[4 + i]; }
    CHECK_INT((signed char)blocks[4], -127);
    CHECK_NEAR(blocks_half(blocks), 1.0 / 127, 1e-5);
    CHECK_NEAR(blocks_half(blocks + 2), sum / 127.0, 0.02);
    CHECK(inside_blocks_encode(OPD_Q8_K, x, blocks, 256) == 0);
    for (int i = 240; i < 256; i++) { first += (signed char)blocks[4 + i]; }
    CHECK_INT((signed char)blocks[4], -127);
    CHECK_INT((int16_t)(blocks[290] | blocks[291] << 8), first);
    CHECK_NEAR(blocks_float(blocks[0] | (uint32_t)blocks[1] << 8 | (uint32_t)blocks[2] << 16 | (uint32_t)blocks[3] << 24), 1.0 / 127,
               1e-8);
}
CHECK_MAIN()
