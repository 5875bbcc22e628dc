/* Products of bfloat16 and of 8-bit integers: with the instructions that multiply pairs and fours of them, with AMX (in C
   if the processor has none), and without both.
     cc -O2 test_words.c -lm -lpthread && ./a.out           run.sh links this test with the implementation in test_kernels.c */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE                  /* for the registers in ucontext.h */
#endif
#include "../inside.h"
#include "../check.h"

#if defined(__x86_64__) && defined(__linux__) && !defined(__TINYC__) && (defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10)
#define WORDS
#include <cpuid.h>
#include "amx_in_c.h"
#endif

enum { PLAIN = 0, PAIRS = 1, QUADS = 2, TILES = 4, PERMISSION = 8, FAST_PAIRS = 16, FOURS = 32 };

/* A matrix of whole numbers from low to high, as `dtype`.  `way` is its layout: 0 contiguous, 1 transposed, 2 every second
   column of a larger matrix, 3 behind one element (so that words are not aligned), 4 one row for all rows, 5 the first
   columns of a larger matrix, whose other columns are infinite. */
static opd_tensor *words_matrix(int64_t rows, int64_t count, int low, int high, opd_scalar_type dtype, int way) {
    opd_tensor *numbers = opd_randint_low(low, high + 1, OPD_INTS(2 * rows * count + count + 1), OPD_INT32);
    numbers = opd_to_dtype(numbers, dtype);
    if (way == 1) return opd_t(opd_reshape(opd_narrow(numbers, 0, 0, rows * count), OPD_INTS(count, rows)));
    if (way == 2) {
        return opd_select(opd_reshape(opd_narrow(numbers, 0, 0, 2 * rows * count), OPD_INTS(rows, count, 2)), 2, 1);
    }
    if (way == 4) return opd_expand(opd_reshape(opd_narrow(numbers, 0, 0, count), OPD_INTS(1, count)), OPD_INTS(rows, count));
    if (way == 5) {
        opd_tensor *const first = opd_reshape(opd_narrow(numbers, 0, 0, rows * count), OPD_INTS(rows, count));
        opd_tensor *const others = opd_to_dtype(opd_full(OPD_INTS(rows, 70), opd_value_double(INFINITY), OPD_FLOAT32), dtype);
        return opd_narrow(opd_cat(OPD_TENSORS(first, others), 1), 1, 0, count);
    }
    return opd_reshape(opd_narrow(numbers, 0, way == 3, rows * count), OPD_INTS(rows, count));
}
#define WORDS_SIZES (sizeof words_sizes / sizeof *words_sizes)
static const int64_t words_sizes[][3] = {             /* rows, columns, depth */
    {16, 16, 32}, {17, 33, 31}, {32, 32, 64}, {33, 100, 65}, {70, 48, 66}, {64, 64, 600}, {40, 70, 1101}, {200, 300, 40}, {16, 1100, 37},
    {5, 40, 70}, {40, 5, 70}, {1, 64, 128}, {64, 1, 128}, {35, 35, 3}, {1, 1, 40}, {2, 3, 0}, {12, 64, 64},
    {20, 128, 96}, {96, 12, 32}, {9, 50, 160}, {31, 40, 33}};

/* Calls one function of the matrices with each set of instructions and two numbers of threads: all results have the same
   bits, because the sums are whole numbers below 2^24. */
typedef opd_tensor *words_fn(opd_tensor *a, opd_tensor *b);
static void words_compare(words_fn *fn, opd_tensor *a, opd_tensor *b, int has, const char *what) {
    opd_tensor *want = NULL;
    const int sets[4] = {PLAIN, has & ~TILES, has & ~(TILES | FAST_PAIRS), has};
    for (int k = 0; k < 8; k++) {
        inside_words_set(sets[k / 2]);
        opd_threads_set(k % 2 ? 3 : 1);
        opd_tensor *have = fn(a, b);
        CHECK_OR_RETURN(have != NULL);
        if (k == 0) want = have;
        const bool same = opd_item_i64(opd_all(opd_eq(have, want))) != 0;
        if (!same) printf("    %s, instructions %d: other results\n", what, inside_words());
        CHECK(same);
    }
    opd_threads_set(0);
}
static opd_tensor *words_mm(opd_tensor *a, opd_tensor *b) { return opd_mm(a, b); }
static opd_tensor *words_int_mm(opd_tensor *a, opd_tensor *b) { return opd__int_mm(a, b); }
static opd_tensor *words_linear(opd_tensor *a, opd_tensor *b) { return opd_linear(a, opd_t(b), opd_select(b, 0, 0)); }
static opd_tensor *words_addmm(opd_tensor *a, opd_tensor *b) { return opd_addmm(opd_narrow(a, 1, 0, 1), a, b); }
static opd_tensor *words_turned(opd_tensor *a, opd_tensor *b) {       /* the result is written transposed */
    opd_tensor *c = opd_t(opd_empty(OPD_INTS(opd_sizes(b)[1], opd_sizes(a)[0]), opd_dtype(a)));
    static opd_op *mm_out;
    return OPD_CALL(OPD_OP(&mm_out, "aten::mm.out"), a, b, c);
}
static opd_tensor *words_bmm(opd_tensor *a, opd_tensor *b) {
    return opd_bmm(opd_stack(OPD_TENSORS(a, a, opd_neg(a)), 0), opd_stack(OPD_TENSORS(b, opd_neg(b), b), 0));
}
static opd_tensor *words_conv(opd_tensor *x, opd_tensor *w) {
    static const int64_t one[2] = {1, 1}, two[2] = {2, 2}, none[2] = {0, 0};
    return opd_convolution(x, w, NULL, opd_ints_of(two, 2), opd_ints_of(one, 2), opd_ints_of(one, 2), false, opd_ints_of(none, 2), 1);
}
static int words_trapped;                         /* whether AMX runs in C */
#if defined(WORDS)
/* Whether the processor itself has AMX, which OPD_CPU_LEVEL can hide from the library: then nothing traps. */
static bool words_tiles_in_hardware(void) {
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1);
}
#endif
/* Returns the instructions with which the tests run: the instructions of the processor, and AMX if it has the others. */
static int words_begin(void) {
    inside_words_set(-1);
    const int has = inside_words();
    words_trapped = 0;
#if defined(WORDS)
    if ((has & (PAIRS | QUADS | TILES)) == (PAIRS | QUADS) && !words_tiles_in_hardware()) {
        amx_begin();
        words_trapped = 1;
        return has | TILES | PERMISSION;
    }
#endif
    return has;
}
/* Checks that tiles were used and released if AMX ran in C, and ends that. */
static void words_end(void) {
#if defined(WORDS)
    if (words_trapped) {
        CHECK(amx_products > 0 && amx_releases > 0);
        amx_end();
    }
#endif
    inside_words_set(-1);
}

TEST(words_bfloat16) {
    static const struct { const char *name; words_fn *fn; } ways[] = {
        {"mm", words_mm}, {"linear", words_linear}, {"addmm", words_addmm}, {"mm.out, transposed", words_turned}, {"bmm", words_bmm}};
    const int has = words_begin();
    for (size_t i = 0; i < WORDS_SIZES; i++) {
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            for (int way = 0; way < 6; way++) {
                OPD_SCOPED;
                const int64_t *d = words_sizes[i];
                if ((k && (way + k + i) % 6) || !d[2] || !check_visits(6 * i + (size_t)way, 6 * WORDS_SIZES)) continue;
                char what[100];
                snprintf(what, sizeof what, "%s of %d x %d x %d, layout %d", ways[k].name, (int)d[0], (int)d[1], (int)d[2], way);
                words_compare(ways[k].fn, words_matrix(d[0], d[2], -8, 8, OPD_BFLOAT16, way),
                              words_matrix(d[2], d[1], -8, 8, OPD_BFLOAT16, (int)(i + way) % 6), has, what);
            }
        }
    }
    words_end();
}
TEST(words_bytes) {
    const int has = words_begin();
    for (size_t i = 0; i < WORDS_SIZES; i++) {
        for (int way = 0; way < 12; way++) {
            OPD_SCOPED;
            const int64_t *d = words_sizes[i];
            const bool minus = way < 6;
            if (!check_visits(12 * i + (size_t)way, 12 * WORDS_SIZES)) continue;
            char what[100];
            snprintf(what, sizeof what, "_int_mm of %d x %d x %d, layout %d", (int)d[0], (int)d[1], (int)d[2], way);
            words_compare(words_int_mm, words_matrix(d[0], d[2], minus ? -128 : 0, minus ? 127 : 255, minus ? OPD_INT8 : OPD_UINT8, way % 6),
                          words_matrix(d[2], d[1], -128, 127, OPD_INT8, (int)(i + way) % 6), has, what);
        }
    }
    words_end();
}
/* Whether the processor has AVX-VNNI, and the library code for it. */
static bool words_fours(void) {
#if defined(WORDS) && (defined(__clang__) ? __clang_major__ >= 12 && !defined(__apple_build_version__) : __GNUC__ >= 11)
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && a > 0 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
#else
    return false;
#endif
}
/* Sets the level of instructions.  Level 3 is level 1 with AVX-VNNI. */
static void words_level_set(int level, int words) {
    inside_cpu_level_set(level == 3 ? 1 : level);
    inside_words_set(level == 3 ? FOURS : words & ~FOURS);
}
/* Products of uint8 and rows of int8 at each level of instructions, beside sums of single products. */
TEST(bytes_at_each_level) {
    static const int64_t sizes[][3] = {{7, 33, 300}, {65, 16, 513}, {6, 17, 1}, {33, 40, 256}, {5, 9, 31}, {12, 15, 1027}};
    inside_cpu_level_set(-1);
    const int most = inside_cpu_level(), words = inside_words();
    for (int level = 0; level <= (most > 0 && words_fours() ? 3 : most); level++) {
        if (level > most && level < 3) continue;
        words_level_set(level, words);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            OPD_SCOPED;
            const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            const opd_tensor *const x = words_matrix(m, k, 0, 255, OPD_UINT8, 0), *const w = words_matrix(n, k, -128, 127, OPD_INT8, 0);
            const opd_tensor *const y = opd__int_mm((opd_tensor *)(uintptr_t)x, opd_t((opd_tensor *)(uintptr_t)w));
            CHECK_OR_RETURN(y != NULL && opd_dtype(y) == OPD_INT32);
            int wrong = 0;
            for (int64_t at = 0; at < m * n; at++) {
                int32_t sum = 0;
                for (int64_t step = 0; step < k; step++) {
                    sum += ((const uint8_t *)opd_data(x))[at / n * k + step] * ((const int8_t *)opd_data(w))[at % n * k + step];
                }
                wrong += ((const int32_t *)opd_data(y))[at] != sum;
            }
            if (wrong) { printf("    %d x %d x %d, level %d: %d sums differ\n", (int)m, (int)n, (int)k, level, wrong); }
            CHECK_INT(wrong, 0);
        }
    }
    words_level_set(most, words);
}
/* Returns number `at` of the result of a convolution of codes with 3 x 3 elements: the sum, as a whole number. */
static int64_t words_conv_sum(const opd_tensor *x, const opd_tensor *w, int64_t zero, int64_t at) {
    const int64_t c = opd_size(x, 1), wide = opd_size(x, 3), all = opd_size(x, 2) * wide, out = opd_size(w, 0);
    const int64_t image = at / (out * all), j = at / all % out, row = at % all / wide, column = at % wide;
    int64_t sum = 0;
    for (int64_t i = 0; i < c * 9; i++) {
        const int64_t y = row + i % 9 / 3 - 1, across = column + i % 3 - 1;
        if (y < 0 || across < 0 || y >= opd_size(x, 2) || across >= wide) { continue; }
        sum += (((const uint8_t *)opd_data(x))[(image * c + i / 9) * all + y * wide + across] - zero) *
            ((const int8_t *)opd_data(w))[j * c * 9 + i];
    }
    return sum;
}
/* Convolutions of codes at each level of instructions: sums are whole numbers, and scales powers of two.  From 8 on,
   AVX2 multiplies sums of pixels and of weights, and plain floats are not exact; the last ones are as large as can
   be. */
TEST(convolutions_of_bytes_at_each_level) {
    static const int64_t one[1] = {1}, two[1] = {2};
    inside_cpu_level_set(-1);
    const int most = inside_cpu_level(), words = inside_words();
    for (int i = 0; i < 14; i++) {
        OPD_SCOPED;
        const bool squares = i >= 8, largest = i >= 12;
        const int64_t in = largest ? 896 : squares ? i & 1 ? 48 : 16 : i & 1 ? 35 : 4, out = i & 2 ? 66 : 9, side = squares || i & 4 ? 3 : 1;
        opd_tensor *const x = opd_reshape(words_matrix(2, in * 13 * 11, 0, 255, OPD_UINT8, 0), OPD_INTS(2, in, 13, 11));
        opd_tensor *const w = opd_reshape(words_matrix(out, in * side * side, -128, 127, OPD_INT8, 0), OPD_INTS(out, in, side, side));
        opd_value v[16];
        if (largest) {
            (void)opd_fill_(x, OPD_V(255));
            (void)opd_fill_(w, OPD_V(i & 1 ? 127 : -128));
        }
        for (int at = 0; at < 16; at++) { v[at] = opd_value_none(); }
        v[0] = opd_value_tensor(x);
        v[1] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_double(0.5), OPD_FLOAT32));
        v[2] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_int(i % 3 * 100), OPD_INT64));
        v[3] = opd_value_tensor(w);
        v[4] = opd_value_tensor(opd_full(OPD_INTS(out), opd_value_double(0.25), OPD_FLOAT32));
        v[7] = opd_value_ints(i & 1 && !squares ? two : one, 1);
        v[8] = opd_value_ints(one, 1);
        v[9] = opd_value_ints(i & 4 && !squares ? two : one, 1);
        v[10] = opd_value_int(1);
        v[11] = opd_value_bool(true);
        v[15] = opd_value_doubles(NULL, 0);
        opd_tensor *want = NULL;
        for (int level = 0; level <= (most > 0 && words_fours() ? 3 : most); level++) {
            if ((level > most && level < 3) || (squares && level == 0)) { continue; }
            words_level_set(level, words);
            opd_tensor *const y = opd_call_op(opd_find("opdispatch::quantized_convolution"), v, 16);
            CHECK_OR_RETURN(y != NULL);
            want = want ? want : y;
            CHECK(opd_equal(y, want));
            int wrong = 0;
            for (int64_t at = 0; squares && at < opd_numel(y); at += 37) {
                const float sum = (float)words_conv_sum(x, w, i % 3 * 100, at) / 8;
                wrong += opd_data_f32(y)[at] < sum || opd_data_f32(y)[at] > sum;
            }
            CHECK_INT(wrong, 0);
        }
        words_level_set(most, words);
    }
    CHECK_OK();
}
/* Convolutions of bfloat16 multiply floats that are packed as pairs. */
TEST(words_convolutions) {
    const int has = words_begin();
    for (int i = 0; i < 4; i++) {
        OPD_SCOPED;
        const int64_t in = i % 2 ? 33 : 64, out = i < 2 ? 48 : 17;
        opd_tensor *x = opd_reshape(words_matrix(2, in * 196, -8, 8, OPD_BFLOAT16, 0), OPD_INTS(2, in, 14, 14));
        words_compare(words_conv, x, opd_reshape(words_matrix(out, in * 9, -4, 4, OPD_BFLOAT16, 0), OPD_INTS(out, in, 3, 3)), has, "convolution");
    }
    words_end();
}
/* Convolutions of 3 x 3 with stride 1 and many outputs: with tiles, Winograd's method is not used, whose sums are not
   exact. */
TEST(words_convolutions_by_sums) {
    static const int64_t one[2] = {1, 1}, none[2] = {0, 0};
    static const bool mask[3] = {true, true, false};
    const int has = words_begin();
    if (!(has & TILES)) { SKIP("without AVX512_BF16 and AVX512_VNNI, AMX cannot run in C"); }
    OPD_SCOPED;
    opd_tensor *x = opd_reshape(words_matrix(1, 128 * 64, -4, 4, OPD_BFLOAT16, 0), OPD_INTS(1, 128, 8, 8)), *rets[2][3];
    opd_tensor *w = opd_reshape(words_matrix(128, 128 * 9, -2, 2, OPD_BFLOAT16, 0), OPD_INTS(128, 128, 3, 3));
    opd_tensor *gy = opd_reshape(words_matrix(1, 128 * 64, -2, 2, OPD_BFLOAT16, 0), OPD_INTS(1, 128, 8, 8)), *y[2];
    for (int k = 0; k < 2; k++) {
        const opd_scalar_type dtype = k ? OPD_BFLOAT16 : OPD_FLOAT64;
        inside_words_set(has);
        x = opd_to_dtype(x, dtype), w = opd_to_dtype(w, dtype), gy = opd_to_dtype(gy, dtype);
        y[k] = opd_convolution(x, w, NULL, opd_ints_of(one, 2), opd_ints_of(one, 2), opd_ints_of(one, 2), false, opd_ints_of(none, 2), 1);
        CHECK_OR_RETURN(y[k] != NULL);
        CHECK_INT(opd_convolution_backward(rets[k], gy, x, w, OPD_NONE, opd_ints_of(one, 2), opd_ints_of(one, 2), opd_ints_of(one, 2), false,
                                           opd_ints_of(none, 2), 1, opd_value_bools(mask, 3)), 0);
        if (k == 0) continue;
        CHECK(opd_item_i64(opd_all(opd_eq(y[1], opd_to_dtype(y[0], dtype)))) == 1);
        for (int i = 0; i < 2; i++) CHECK(opd_item_i64(opd_all(opd_eq(rets[1][i], opd_to_dtype(rets[0][i], dtype)))) == 1);
    }
    words_end();
}
/* Products with weights in blocks, whose scales are multiples of 2^-14: with and without tiles, they have the same bits. */
TEST(words_blocks) {
    static const opd_scalar_type types[] = {OPD_Q8_0, OPD_Q4_0, OPD_Q5_1, OPD_Q2_0, OPD_IQ4_NL, OPD_Q4_K, OPD_Q5_K, OPD_Q6_K, OPD_IQ4_XS};
    const int has = words_begin();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        OPD_SCOPED;
        int64_t bytes;
        const int64_t k = 3 * 256 + 2 * opd_dtype_block(types[i], &bytes);
        opd_tensor *const w = opd_tensor_new(OPD_INTS(41, k), types[i]), *const x = opd_randn(OPD_INTS(37, k), OPD_FLOAT32);
        const int64_t size = 41 * k / opd_dtype_block(types[i], &bytes) * bytes;
        unsigned char *const at = (unsigned char *)opd_data(w);
        uint32_t seed = 7;
        CHECK_OR_RETURN(at != NULL);
        for (int64_t j = 0; j < size; j++, seed = seed * 1664525u + 1013904223u) { at[j] = (unsigned char)(seed >> 24 & 0x3f); }
        opd_tensor *want = NULL;
        for (int way = 0; way < 4; way++) {
            inside_words_set(way < 2 ? has & ~TILES : has);
            opd_threads_set(way % 2 ? 3 : 1);
            opd_tensor *const y = opd_linear(x, w, NULL);
            CHECK_OR_RETURN(y != NULL);
            if (way == 0) want = y;
            const bool same = memcmp(opd_data(y), opd_data(want), 37 * 41 * sizeof(float)) == 0;
            if (!same) printf("    %s, instructions %d: other results\n", opd_dtype_name(types[i]), inside_words());
            CHECK(same);
        }
    }
    opd_threads_set(0);
    words_end();
}
/* Numbers that are no whole numbers, beside products of doubles. */
TEST(words_accuracy) {
    const int has = words_begin();
    OPD_SCOPED;
    opd_tensor *a = opd_to_dtype(opd_randn(OPD_INTS(80, 700), OPD_FLOAT32), OPD_BFLOAT16);
    opd_tensor *b = opd_to_dtype(opd_randn(OPD_INTS(700, 90), OPD_FLOAT32), OPD_BFLOAT16);
    opd_tensor *want = opd_mm(opd_to_dtype(a, OPD_FLOAT64), opd_to_dtype(b, OPD_FLOAT64));
    opd_tensor *size = opd_mm(opd_abs(opd_to_dtype(a, OPD_FLOAT64)), opd_abs(opd_to_dtype(b, OPD_FLOAT64)));
    for (int k = 0; k < 3; k++) {
        inside_words_set(k == 0 ? PLAIN : k == 1 ? has & ~TILES : has);
        opd_tensor *off = opd_abs(opd_sub(opd_to_dtype(opd_mm(a, b), OPD_FLOAT64), want));
        CHECK(opd_item_f64(opd_max(opd_sub(off, opd_mul(opd_abs(want), opd_scalar_tensor(opd_value_double(1.0 / 256), OPD_FLOAT64))))) <
              1e-6 * opd_item_f64(opd_max(size)));
    }
    words_end();
}
/* Attention of bfloat16: with tiles, the weights are rounded to bfloat16, too.  Weights and results are each wrong by at
   most 1/256 of the largest value. */
TEST(words_attention) {
    static const int64_t sizes[][3] = {
        {64, 64, 64}, {40, 100, 33}, {17, 31, 64}, {5, 64, 32}, {300, 700, 64}};       /* rows, keys, depth */
    const int has = words_begin();
    for (int i = 0; i < 10; i++) {
        OPD_SCOPED;
        const int64_t *d = sizes[i / 2];
        const bool causal = i % 2;
        opd_tensor *q = opd_to_dtype(opd_randn(OPD_INTS(1, 2, d[0], d[2]), OPD_FLOAT32), OPD_BFLOAT16);
        opd_tensor *k = opd_to_dtype(opd_randn(OPD_INTS(1, 2, d[1], d[2]), OPD_FLOAT32), OPD_BFLOAT16);
        opd_tensor *v = opd_to_dtype(opd_randn(OPD_INTS(1, 2, d[1], d[2]), OPD_FLOAT32), OPD_BFLOAT16);
        opd_tensor *want = opd_scaled_dot_product_attention_full(opd_to_dtype(q, OPD_FLOAT64), opd_to_dtype(k, OPD_FLOAT64),
                                                                 opd_to_dtype(v, OPD_FLOAT64), NULL, 0, causal, OPD_NONE, false);
        for (int set = 0; set < 2; set++) {
            inside_words_set(set ? has : PLAIN);
            opd_tensor *have = opd_scaled_dot_product_attention_full(q, k, v, NULL, 0, causal, OPD_NONE, false);
            CHECK_OR_RETURN(have != NULL);
            CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(opd_to_dtype(have, OPD_FLOAT64), want)))), 0,
                       opd_item_f64(opd_max(opd_abs(v))) / 128);
        }
    }
    words_end();
}
CHECK_MAIN()
