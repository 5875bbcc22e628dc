/* Weights of integers of 1 to 8 bits with scales (opd_dtype_int_blocks): the dtypes and their names, codes and scales as
   torchao computes them (golden/int_blocks.npz), the parts of a weight, products, and what other mechanisms make of
   them. */
#include "../check.h"
#include <math.h>

static bool fails_with(const char *text) {
    const bool found = !opd_ok() && strstr(opd_error_message(), text) != NULL;
    if (!found) { fprintf(stderr, "error: %s\n", opd_ok() ? "none" : opd_error_message()); }
    opd_error_clear();
    return found;
}
static opd_tensor *numbers(opd_ints sizes, opd_scalar_type dtype, int seed) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; t && i < opd_numel(t); i++) {
        opd_data_f32(t)[i] = (float)((i * 7919 + seed * 104729) % 1009) / 504 - 1;
    }
    return opd_to_dtype(t, dtype);
}
/* Returns the largest difference over the largest number of `b`. */
static double apart(opd_tensor *a, opd_tensor *b) {
    a = opd_to_dtype(a, OPD_FLOAT64);
    b = opd_to_dtype(b, OPD_FLOAT64);
    if (!a || !b || opd_ndim(a) != opd_ndim(b) || opd_numel(a) != opd_numel(b)) { return 1e9; }
    const double most = opd_item_f64(opd_max(opd_abs(b)));
    return opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))) / (most > 0 ? most : 1);
}
/* Returns whether two tensors have the same sizes, dtype and bytes. */
static bool same(opd_tensor *a, opd_tensor *b) {
    a = a ? opd_contiguous(a) : NULL;
    b = b ? opd_contiguous(b) : NULL;
    if (!a || !b || opd_dtype(a) != opd_dtype(b) || opd_numel(a) != opd_numel(b) || opd_ndim(a) != opd_ndim(b)) { return false; }
    int64_t bytes;
    const int64_t block = opd_dtype_block(opd_dtype(a), &bytes);
    return memcmp(opd_data(a), opd_data(b), (size_t)(opd_numel(a) / block * bytes)) == 0;
}

TEST(int_dtypes) {
    OPD_SCOPED;
    int64_t bytes = 0, group = 0;
    bool asymmetric = false;
    const opd_scalar_type dtype = opd_dtype_int_blocks(4, 32, false), other = opd_dtype_int_blocks(3, 1048576, true);
    CHECK_STR(opd_dtype_name(dtype), "int4_group32");
    CHECK_STR(opd_dtype_cname(dtype), "INT4_GROUP32");
    CHECK_STR(opd_dtype_name(other), "int3_group1048576_asymmetric");
    CHECK(opd_dtype_name(dtype) == opd_dtype_name(dtype));
    CHECK(opd_dtype_block(dtype, &bytes) == 32 && bytes == 4 + 16);
    CHECK(opd_dtype_block(other, &bytes) == 1048576 && bytes == 8 + 3 * 131072);
    CHECK(opd_dtype_int_bits(other, &group, &asymmetric) == 3 && group == 1048576 && asymmetric);
    CHECK(opd_dtype_int_bits(dtype, NULL, &asymmetric) == 4 && !asymmetric);
    CHECK(opd_dtype_int_bits(OPD_Q4_0, &group, &asymmetric) == 0 && group == 0 && !asymmetric);
    CHECK(opd_dtype_size(dtype) == 0 && !opd_dtype_is_floating(dtype) && !opd_dtype_is_integral(dtype, true));
    CHECK((int)dtype == 65536 + 32 * 2 + 3);      /* numbers in files stay the same */
    for (int bits = -1; bits < 11; bits++) {
        static const int64_t groups[] = {-8, 0, 1, 7, 8, 12, 24, 32, 4104, 1048576, 1048584, INT64_MAX};
        for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
            const bool good = bits >= 1 && bits <= 8 && groups[i] % 8 == 0 && groups[i] > 0 && groups[i] <= 1048576;
            const opd_scalar_type made = opd_dtype_int_blocks(bits, groups[i], bits & 1);
            CHECK(good == (made != OPD_DTYPE_NONE) && good == opd_ok());
            if (good) { CHECK(opd_dtype_int_bits(made, &group, &asymmetric) == bits && group == groups[i] && asymmetric == (bits & 1)); }
            opd_error_clear();
        }
    }
    CHECK(opd_promote_types(OPD_FLOAT32, dtype) == OPD_DTYPE_NONE && fails_with("opd_dequantize"));
    CHECK(opd_promote_types(dtype, dtype) == dtype && opd_can_cast(dtype, dtype) && !opd_can_cast(dtype, OPD_FLOAT32));
    CHECK(!opd_zeros(OPD_INTS(3, 64), dtype) && fails_with("opd_dequantize"));
    CHECK(!opd_empty(OPD_INTS(3, 40), dtype) && fails_with("int4_group32 is stored in blocks of 32"));
    CHECK(opd_empty(OPD_INTS(0, 7), dtype) && opd_ok());
    CHECK_OK();
}
/* Numbers that are no dtypes are errors wherever a dtype is given. */
TEST(int_dtypes_that_are_none) {
    static const int64_t wrong[] = {107, 128, 255, 65535, 65536, 65551, 65536 + 2097152 + 16, 1 << 28, INT32_MAX,
                                    (INT64_C(1) << 32) + 6, INT64_MIN, -2, -128};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        OPD_SCOPED;
        CHECK_OK();
        opd_tensor *x = numbers(OPD_INTS(2, 64), OPD_FLOAT32, 1);
        const int64_t number = wrong[i];
        const int64_t sizes[2] = {2, 64};
        const opd_value empty[] = {opd_value_ints(sizes, 2), opd_value_int(number)};
        const opd_value cast[] = {opd_value_tensor(x), opd_value_int(number)};
        CHECK(!opd_call_op(opd_find("aten::empty.memory_format"), empty, 2) && !opd_ok());
        opd_error_clear();
        CHECK(!opd_call_op(opd_find("aten::_to_copy"), cast, 2) && !opd_ok());
        opd_error_clear();
        CHECK(!opd_call_op(opd_find("aten::view.dtype"), cast, 2) && !opd_ok());
        opd_error_clear();
        if (number != (int32_t)number) { continue; }
        const opd_scalar_type dtype = (opd_scalar_type)number;
        CHECK(opd_dtype_block(dtype, NULL) == 0 && opd_dtype_int_bits(dtype, NULL, NULL) == 0);
        CHECK_STR(opd_dtype_name(dtype), "?");
        CHECK(!opd_tensor_new(OPD_INTS(2, 64), dtype) && !opd_ok());
        opd_error_clear();
        CHECK(!opd_quantize_blocks(x, dtype) && !opd_ok());
        opd_error_clear();
        CHECK(!opd_tensor_wrap(opd_data(x), OPD_INTS(2, 64), NULL, dtype, NULL, NULL) && !opd_ok());
        opd_error_clear();
        CHECK_OK();
    }
}
static opd_tensor *golden(opd_tensor_file *file, const char *name, const char *what) {
    char text[80];
    (void)snprintf(text, sizeof text, "%s_%s", name, what);
    return opd_tensor_file_find(file, text) >= 0 ? opd_tensor_file_get(file, text) : NULL;
}
/* torchao's codes, scales, zero points and numbers. */
TEST(int_blocks_of_torchao) {
    OPD_SCOPED;
    opd_tensor_file *const file = opd_tensor_file_open(check_path("golden/int_blocks.npz"));
    CHECK_OR_RETURN(file != NULL);
    opd_tensor *const x = opd_tensor_file_get(file, "x");
    int tried = 0;
    for (int bits = 1; bits <= 8; bits++) {
        static const int64_t groups[] = {8, 32, 96};
        for (int i = 0; i < 6; i++) {
            OPD_SCOPED;
            const opd_scalar_type dtype = opd_dtype_int_blocks(bits, groups[i / 2], i % 2);
            opd_tensor *const codes = golden(file, opd_dtype_name(dtype), "codes"), *got[3];
            opd_tensor *const scales = golden(file, opd_dtype_name(dtype), "scales");
            opd_tensor *const zeros = golden(file, opd_dtype_name(dtype), "zeros");
            opd_tensor *const values = golden(file, opd_dtype_name(dtype), "values");
            CHECK_OR_RETURN(codes && scales && values && (zeros != NULL) == (i % 2 != 0));
            opd_tensor *const w = opd_quantize_blocks(x, dtype), *const made = opd_int_blocks(codes, scales, zeros, bits);
            CHECK(w && opd_dtype(w) == dtype && made && opd_dtype(made) == dtype);
            CHECK(same(w, made));
            CHECK(same(opd_dequantize(w), values));
            CHECK(opd_int_blocks_parts(w, &got[0], &got[1], &got[2]) == 0);
            CHECK(same(got[0], codes) && same(got[1], scales));
            CHECK(zeros ? got[2] && same(opd_to_dtype(got[2], OPD_INT32), zeros) : !got[2]);
            CHECK(same(opd_int_blocks(got[0], got[1], got[2], bits), w));
            CHECK(same(opd_dequantize(opd_narrow(w, 0, 2, 3)), opd_narrow(values, 0, 2, 3)));
            tried++;
            CHECK_OK();
        }
    }
    CHECK_INT(tried, 48);
    opd_tensor_file_close(file);
    CHECK_OK();
}
/* The bytes of a block. */
TEST(int_block_bytes) {
    OPD_SCOPED;
    static const int8_t codes[8] = {-4, 3, 0, 1, -1, 2, -3, -2};
    static const uint8_t fours[8] = {1, 15, 0, 8, 7, 2, 3, 4};
    const float one = 0.5f;
    opd_tensor *scale = opd_tensor_from(&one, OPD_INTS(), OPD_FLOAT32), *zero = opd_full(OPD_INTS(), opd_value_int(3), OPD_INT64);
    opd_tensor *w = opd_int_blocks(opd_tensor_from(codes, OPD_INTS(1, 8), OPD_INT8), scale, NULL, 3);
    /* codes + 4: 0 7 4 5 3 6 1 2; in bits, the first one lowest */
    const uint32_t word = 0u | 7u << 3 | 4u << 6 | 5u << 9 | 3u << 12 | 6u << 15 | 1u << 18 | 2u << 21;
    const uint8_t want[7] = {0, 0, 0, 0x3f, (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16)};
    CHECK(w && opd_tensor_storage_bytes(w) == 7 && memcmp(opd_data(w), want, 7) == 0);
    w = opd_int_blocks(opd_tensor_from(fours, OPD_INTS(1, 8), OPD_UINT8), scale, zero, 4);
    const uint8_t bytes[12] = {0, 0, 0, 0x3f, 0, 0, 0x40, 0x40, 0xf1, 0x80, 0x27, 0x43};
    CHECK(w && opd_tensor_storage_bytes(w) == 12 && memcmp(opd_data(w), bytes, 12) == 0);
    for (int i = 0; i < 8; i++) { CHECK(opd_item_f64(opd_select(opd_dequantize(w), 1, i)) == (fours[i] - 3) * 0.5); }
    char text[200];
    (void)opd_tensor_print(w, text, sizeof text);
    CHECK_STR(text, "tensor([[-1.0000,  6.0000, -1.5000,  2.5000,  2.0000, -0.5000,  0.0000,  0.5000]],\n"
                    "       dtype=torch.int4_group8_asymmetric)");
    CHECK_OK();
}
TEST(int_blocks_from_parts) {
    OPD_SCOPED;
    int8_t codes[4 * 64];
    for (int i = 0; i < 4 * 64; i++) { codes[i] = (int8_t)(i * 37 % 256 - 128); }
    opd_tensor *q = opd_tensor_from(codes, OPD_INTS(4, 64), OPD_INT8), *one = numbers(OPD_INTS(1), OPD_FLOAT32, 3);
    opd_tensor *rows = numbers(OPD_INTS(4), OPD_FLOAT32, 4), *groups = numbers(OPD_INTS(4, 8), OPD_FLOAT16, 5);
    opd_tensor *zeros = opd_full(OPD_INTS(4, 8), opd_value_int(-100), OPD_INT8), *f = opd_to_dtype(q, OPD_FLOAT32);
    opd_tensor *w = opd_int_blocks(q, one, NULL, 8);
    CHECK(w && same(opd_dequantize(w), opd_mul(f, one)) && opd_dtype(w) == opd_dtype_int_blocks(8, 64, false));
    w = opd_int_blocks(q, rows, NULL, 8);
    CHECK(w && same(opd_dequantize(w), opd_mul(f, opd_unsqueeze(rows, 1))));
    CHECK(same(opd_int_blocks(q, opd_unsqueeze(rows, 1), NULL, 8), w));
    CHECK(same(opd_int_blocks(opd_t(opd_contiguous(opd_t(q))), rows, NULL, 8), w));
    w = opd_int_blocks(q, groups, zeros, 8);
    CHECK(w && opd_dtype(w) == opd_dtype_int_blocks(8, 8, true));
    CHECK(same(opd_dequantize(w), opd_reshape(opd_mul(opd_add_Scalar(opd_reshape(f, OPD_INTS(4, 8, 8)), opd_value_int(100)),
                                                      opd_unsqueeze(opd_to_dtype(groups, OPD_FLOAT32), 2)), OPD_INTS(4, 64))));
    w = opd_int_blocks(opd_view(q, OPD_INTS(2, 2, 64)), opd_view(rows, OPD_INTS(2, 2)), NULL, 8);
    CHECK(w && opd_ndim(w) == 3 && same(opd_dequantize(opd_select(w, 0, 1)), opd_narrow(opd_mul(f, opd_unsqueeze(rows, 1)), 0, 2, 2)));
    CHECK(opd_int_blocks(opd_empty(OPD_INTS(0, 64), OPD_INT8), opd_empty(OPD_INTS(0), OPD_FLOAT32), NULL, 4) && opd_ok());
    /* half a code as zero point: exact with uint8, and as exact with int8 */
    opd_tensor *half = opd_full(OPD_INTS(4), opd_value_double(0.5), OPD_FLOAT32);
    CHECK(opd_int_blocks(q, rows, half, 8) && opd_ok());

    CHECK(!opd_int_blocks(q, rows, NULL, 7) && fails_with("does not have 7 bits: it must be from -64 to 63"));
    CHECK(!opd_int_blocks(q, rows, NULL, 9) && fails_with("1 to 8 bits, not 9"));
    CHECK(!opd_int_blocks(q, rows, NULL, 0) && fails_with("1 to 8 bits, not 0"));
    CHECK(!opd_int_blocks(f, rows, NULL, 8) && fails_with("codes must be int8 or uint8"));
    CHECK(!opd_int_blocks(q, opd_to_dtype(rows, OPD_FLOAT64), NULL, 8) && fails_with("scales must be float32"));
    CHECK(!opd_int_blocks(q, rows, opd_to_dtype(rows, OPD_FLOAT64), 8) && fails_with("zero points must be integers"));
    CHECK(!opd_int_blocks(q, groups, rows, 8) && fails_with("must have the same sizes"));
    CHECK(!opd_int_blocks(q, numbers(OPD_INTS(4, 16), OPD_FLOAT32, 1), NULL, 8) && fails_with("multiple of 8"));
    CHECK(!opd_int_blocks(q, numbers(OPD_INTS(4, 7), OPD_FLOAT32, 1), NULL, 8) && fails_with("do not fit codes"));
    CHECK(!opd_int_blocks(q, numbers(OPD_INTS(5), OPD_FLOAT32, 1), NULL, 8) && fails_with("do not fit codes"));
    CHECK(!opd_int_blocks(q, rows, opd_full(OPD_INTS(4), opd_value_double(0.3), OPD_FLOAT32), 8) && fails_with("cannot be stored"));
    CHECK(!opd_int_blocks(NULL, rows, NULL, 8) && !opd_ok());
    opd_error_clear();
    opd_tensor *part[3];
    CHECK(opd_int_blocks_parts(f, &part[0], &part[1], &part[2]) == -1 && fails_with("float32 is not a dtype of opd_dtype_int_blocks"));
    w = opd_int_blocks(q, rows, NULL, 8);
    CHECK(opd_int_blocks_parts(opd_t(w), &part[0], &part[1], &part[2]) == -1 && fails_with("last dim"));
    CHECK(opd_int_blocks_parts(w, &part[0], &part[1], NULL) == -1 && fails_with("NULL"));
    CHECK(opd_int_blocks_parts(opd_slice(w, 0, OPD_V(0), OPD_V(4), 2), &part[0], &part[1], &part[2]) == 0);
    CHECK(same(part[0], opd_slice(q, 0, OPD_V(0), OPD_V(4), 2)));
    CHECK_OK();
}
static int sum_of_product(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    out[0] = nin ? opd_sum(opd_sin(opd_linear(in[0], (opd_tensor *)user, NULL))) : NULL;
    return out[0] ? 1 : -1;
}
/* Products of `m` rows with weights [n, k], by the numbers that they stand for. */
static void int_products(opd_scalar_type dtype, int64_t n, int64_t k, int64_t m, double most) {
    OPD_SCOPED;
    opd_tensor *x = numbers(OPD_INTS(m, k), OPD_FLOAT32, 2), *y = numbers(OPD_INTS(m, n), OPD_FLOAT32, 3);
    opd_tensor *w = opd_quantize_blocks(numbers(OPD_INTS(n, k), OPD_FLOAT32, 1), dtype), *f = opd_dequantize(w), *grads[2];
    const double forward = apart(opd_linear(x, w, NULL), opd_linear(x, f, NULL));
    CHECK(forward < most);
    if (forward >= most) { printf("%s, %d rows: %g\n", opd_dtype_name(dtype), (int)m, forward); }
    CHECK(apart(opd_mm(y, w), opd_mm(y, f)) < 1e-5);
    CHECK(apart(opd_linear(opd_to_dtype(x, OPD_FLOAT64), w, NULL),
                opd_linear(opd_to_dtype(x, OPD_FLOAT64), opd_to_dtype(f, OPD_FLOAT64), NULL)) < 1e-13);
    CHECK(opd_grad(sum_of_product, w, &x, 1, NULL, &grads[0], 1) == 1);
    CHECK(opd_grad(sum_of_product, f, &x, 1, NULL, &grads[1], 1) == 1);
    CHECK(apart(grads[0], grads[1]) < (most < 1e-3 ? 1e-4 : 0.2));
    CHECK_OK();
}
TEST(int_products) {
    static const int64_t groups[] = {8, 24, 32, 96, 192, 768};
    for (int exact = 1; exact >= 0; exact--) {
        const bool was = opd_exact_blocks_set(exact != 0);
        for (int bits = 1; bits <= 8; bits++) {
            for (int i = 0; i < 12; i++) {
                const opd_scalar_type dtype = opd_dtype_int_blocks(bits, groups[i / 2], i % 2);
                for (int64_t m = 1; m < 12; m += m < 3 ? 1 : 8) { int_products(dtype, 37, 768, m, exact ? 1e-5 : 0.02); }
            }
        }
        int_products(opd_dtype_int_blocks(4, 40, true), 5, 1000, 9, exact ? 1e-5 : 0.02);    /* rows that are no multiple of 16 */
        int_products(opd_dtype_int_blocks(5, 1000, false), 70, 1000, 3, exact ? 1e-5 : 0.02);
        int_products(opd_dtype_int_blocks(2, 8, false), 3, 8, 1, exact ? 1e-5 : 0.02);
        int_products(opd_dtype_int_blocks(8, 8, true), 3, 8, 20, exact ? 1e-5 : 0.02);
        (void)opd_exact_blocks_set(was);
    }
}
/* Rows, joins, copies, and views as bytes, by which any format of files keeps such a weight. */
TEST(int_blocks_as_tensors) {
    OPD_SCOPED;
    static const int64_t at[4] = {5, 0, 5, 2};
    const opd_scalar_type dtype = opd_dtype_int_blocks(5, 24, true);
    opd_tensor *w = opd_quantize_blocks(numbers(OPD_INTS(6, 72), OPD_FLOAT32, 1), dtype), *f = opd_dequantize(w);
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(4), OPD_INT64), *joined[2] = {w, w};
    CHECK(same(opd_embedding(w, index), opd_embedding(f, index)));
    CHECK(same(opd_dequantize(opd_index_select(w, 0, index)), opd_index_select(f, 0, index)));
    CHECK(same(opd_dequantize(opd_cat(opd_tensors_of(joined, 2), 0)), opd_repeat(f, OPD_INTS(2, 1))));
    CHECK(same(opd_clone(w), w) && same(opd_to_dtype(f, dtype), w));
    CHECK(same(opd_dequantize(opd_narrow(w, 1, 24, 48)), opd_narrow(f, 1, 24, 48)));
    CHECK(!opd_narrow(w, 1, 8, 24) && fails_with("would cut"));
    CHECK(!opd_sin(w) && fails_with("opd_dequantize"));
    CHECK(!opd_tensor_set_requires_grad(w, true) && fails_with("floating point"));
    opd_tensor *bytes = opd_view_dtype(w, OPD_UINT8);
    CHECK(bytes && opd_sizes(bytes)[0] == 6 && opd_sizes(bytes)[1] == 3 * (8 + 15) && opd_data(bytes) == opd_data(w));
    CHECK(same(opd_view_dtype(opd_clone(bytes), dtype), w));
    CHECK(same(opd_view_dtype(opd_narrow(bytes, 0, 2, 3), dtype), opd_narrow(w, 0, 2, 3)));
    CHECK(!opd_view_dtype(opd_narrow(bytes, 1, 0, 24), dtype) && fails_with("whole blocks"));
    CHECK(!opd_view_dtype(opd_narrow(bytes, 1, 3, 23), dtype) && fails_with("whole blocks"));
    CHECK(!opd_view_dtype(opd_t(bytes), dtype) && fails_with("whole blocks"));
    CHECK(!opd_view_dtype(opd_t(w), OPD_UINT8) && fails_with("whole blocks"));
    CHECK(!opd_view_dtype(opd_select(bytes, 1, 0), dtype) && fails_with("whole blocks"));
    CHECK(!opd_view_dtype(w, OPD_INT8) && fails_with("stored in blocks"));
    CHECK(!opd_view_dtype(f, dtype) && fails_with("stored in blocks"));
    const char *name = "w";
    CHECK(opd_safetensors_save("/nowhere/w", &name, opd_tensors_of(&w, 1), NULL) != 0 && fails_with("opd_view_dtype"));
    CHECK(opd_gguf_save("/nowhere/w", &name, opd_tensors_of(&w, 1), NULL, NULL, 0) != 0 && fails_with("GGUF has no dtype int5_group24_asymmetric"));
    CHECK_OK();
}
static int linear_of(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    out[0] = nin ? opd_relu(opd_linear(in[0], (opd_tensor *)user, NULL)) : NULL;
    return out[0] ? 1 : -1;
}
static int gradient_of_sum(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    return opd_grad(sum_of_product, user, in, nin, NULL, out, 1);
}
static int hessian_of_sum(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    opd_tensor *const one = nin ? opd_ones_like(in[0]) : NULL;
    return opd_hvp(sum_of_product, user, in, &one, 1, out, NULL, 1);
}
/* Transforms, autocast, fakes, graphs and compiled graphs. */
TEST(int_blocks_in_mechanisms) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    const opd_scalar_type dtypes[] = {opd_dtype_int_blocks(4, 32, false), opd_dtype_int_blocks(3, 8, true)};
    for (int i = 0; i < 2; i++) {
        OPD_SCOPED;
        const opd_scalar_type dtype = dtypes[i];
        opd_tensor *w = opd_quantize_blocks(numbers(OPD_INTS(48, 64), OPD_FLOAT32, 1), dtype), *f = opd_dequantize(w);
        opd_tensor *x = numbers(OPD_INTS(3, 4, 64), OPD_FLOAT32, 2), *one = opd_select(x, 0, 1), *got[1], *want[1], *y = NULL;
        const int64_t slow = opd_vmap_fallback_count();
        CHECK(opd_vmap(linear_of, w, &x, 1, NULL, got, 1) == 1 && opd_vmap(linear_of, f, &x, 1, NULL, want, 1) == 1);
        CHECK(apart(got[0], want[0]) < 1e-5);
        CHECK(opd_vmap(gradient_of_sum, w, &x, 1, NULL, got, 1) == 1 && opd_vmap(gradient_of_sum, f, &x, 1, NULL, want, 1) == 1);
        CHECK(apart(got[0], want[0]) < 1e-4);
        CHECK(hessian_of_sum(w, &one, 1, got) == 1 && hessian_of_sum(f, &one, 1, want) == 1 && apart(got[0], want[0]) < 1e-4);
        CHECK(opd_vmap_fallback_count() == slow);
        OPD_AUTOCAST(OPD_CPU) { y = opd_linear(one, w, NULL); }
        CHECK(y && opd_dtype(y) == OPD_BFLOAT16 && apart(y, opd_linear(one, f, NULL)) < 0.02);
        OPD_FAKE_MODE {
            opd_tensor *fake = opd_fake_tensor(w);
            y = opd_linear(one, fake, NULL);
            CHECK(fake && opd_dtype(fake) == dtype && opd_tensor_storage_bytes(fake) == opd_tensor_storage_bytes(w));
            CHECK(y && opd_dtype(y) == OPD_FLOAT32 && opd_size(y, 1) == 48);
            y = opd_quantize_blocks(opd_dequantize(fake), dtype);
            CHECK(y && opd_dtype(y) == dtype && !opd_sin(fake) && fails_with("opd_dequantize"));
            y = opd_view_dtype(fake, OPD_UINT8);
            CHECK(y && opd_size(y, 1) == (i ? 8 * (8 + 3) : 2 * 20) && opd_dtype(opd_view_dtype(y, dtype)) == dtype);
        }
        opd_graph *graph = opd_graph_trace(linear_of, w, &one, 1, NULL);
        CHECK_OR_RETURN(graph != NULL && linear_of(w, &one, 1, want) == 1);
        CHECK(opd_graph_run(graph, &one, 1, got, 1) == 1 && same(got[0], want[0]));
        opd_compiled *compiled = opd_graph_compile(graph, NULL);
        if (compiled) { CHECK(opd_compiled_function(compiled, &one, 1, got) == 1 && apart(got[0], want[0]) < 1e-5); }
        opd_error_clear();
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        CHECK_OK();
    }
    (void)opd_exact_blocks_set(was);
}
static int parts_of_both(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    opd_tensor **const from = (opd_tensor **)user, *parts[3];
    opd_tensor *const w = opd_int_blocks(from[0], from[1], from[2], 4);
    if (!nin || !w || opd_int_blocks_parts(w, &parts[0], &parts[1], &parts[2])) { return -1; }
    out[0] = opd_add(opd_linear(in[0], w, NULL), opd_sum(opd_mul(opd_sum(opd_to_dtype(parts[0], OPD_FLOAT32)), parts[1])));
    return out[0] ? 1 : -1;
}
/* Weights of parts, and the parts of weights, have data in traces and fakes, unless what they are made of has none. */
TEST(int_blocks_of_parts_in_traces_and_fakes) {
    OPD_SCOPED;
    opd_tensor *codes = opd_full(OPD_INTS(5, 64), opd_value_int(3), OPD_UINT8), *x = numbers(OPD_INTS(2, 64), OPD_FLOAT32, 1);
    opd_tensor *from[3] = {codes, opd_add_Scalar(opd_abs(numbers(OPD_INTS(5, 2), OPD_FLOAT32, 2)), opd_value_int(1)), NULL};
    opd_tensor *want, *got, *parts[3];
    for (int zeros = 0; zeros < 2; zeros++) {
        if (zeros) { from[2] = opd_ones(OPD_INTS(5, 2), OPD_FLOAT32); }
        CHECK_INT(parts_of_both(from, &x, 1, &want), 1);
        opd_graph *graph = opd_graph_trace(parts_of_both, from, &x, 1, NULL);
        CHECK_OR_RETURN(graph != NULL);
        CHECK_INT(opd_graph_count(graph, "aten::empty"), 0);
        CHECK(opd_graph_run(graph, &x, 1, &got, 1) == 1 && same(got, want));
        opd_graph_free(graph);
    }
    opd_tensor *w = opd_int_blocks(codes, from[1], NULL, 4), *minus = opd_neg(from[1]);
    CHECK(same(opd_int_blocks(codes, opd__neg_view(minus), NULL, 4), w));
    CHECK(same(opd_int_blocks(opd_t(opd_contiguous(opd_t(codes))), opd_expand(opd_narrow(from[1], 0, 0, 1), OPD_INTS(5, 2)), NULL, 4),
               opd_int_blocks(codes, opd_repeat(opd_narrow(from[1], 0, 0, 1), OPD_INTS(5, 1)), NULL, 4)));
    OPD_FAKE_MODE {
        opd_tensor *fake = opd_fake_tensor(w);
        CHECK(opd_int_blocks(codes, from[1], NULL, 4) && opd_data(opd_int_blocks(codes, from[1], NULL, 4)));
        CHECK(opd_int_blocks_parts(w, &parts[0], &parts[1], &parts[2]) == 0 && ((int8_t *)opd_data(parts[0]))[7] == -5);
        CHECK(opd_int_blocks_parts(fake, &parts[0], &parts[1], &parts[2]) == -1 && fails_with("has no data"));
        CHECK(!opd_int_blocks(opd_fake_tensor(codes), from[1], NULL, 4) && fails_with("with data"));
    }
    CHECK_OK();
}
/* A graph's text has the dtype's name, and dtypes as numbers. */
TEST(int_blocks_in_texts) {
    OPD_SCOPED;
    char text[2000];
    const opd_scalar_type dtype = opd_dtype_int_blocks(6, 16, true);
    opd_tensor *x = numbers(OPD_INTS(3, 64), OPD_FLOAT32, 2), *in[2], *out[1];
    opd_tensor *w = opd_quantize_blocks(numbers(OPD_INTS(5, 64), OPD_FLOAT32, 1), dtype);
    (void)snprintf(text, sizeof text, "graph(%%x : Float(3, 64), %%w : INT6_GROUP16_ASYMMETRIC(5, 64, strides=[64, 1])):\n"
                   "  %%n : NoneType = prim::Constant()\n  %%y : Tensor = aten::linear(%%x, %%w, %%n)\n"
                   "  %%d : int = prim::Constant[value=%d]()\n  %%f : bool = prim::Constant[value=0]()\n"
                   "  %%q : Tensor = aten::to(%%x, %%d, %%f, %%f, %%n)\n  %%z : Tensor = aten::linear(%%y, %%w, %%n)\n"
                   "  return (%%y)\n", (int)dtype);
    char *const cut = strstr(text, "  %z");       /* not of sizes that fit */
    memmove(cut, strchr(cut, '\n') + 1, strlen(strchr(cut, '\n') + 1) + 1);
    opd_graph *graph = opd_graph_parse(text);
    CHECK_OR_RETURN(graph != NULL);
    in[0] = x;
    in[1] = w;
    CHECK(opd_graph_run(graph, in, 2, out, 1) == 1 && same(out[0], opd_linear(x, w, NULL)));
    (void)opd_graph_print(graph, text, sizeof text);
    CHECK(strstr(text, "INT6_GROUP16_ASYMMETRIC(5, 64, strides=[64, 1]") != NULL);
    opd_graph *again = opd_graph_parse(text);
    CHECK(again != NULL);
    opd_graph_free(again);
    opd_graph_free(graph);
    CHECK_OK();
}
/* opd_quantize_module takes names of these dtypes. */
TEST(int_blocks_in_modules) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    opd_module *net = opd_module_new();
    opd_tensor *w = numbers(OPD_INTS(8, 64), OPD_FLOAT32, 1);
    CHECK(net && opd_module_add(net, "weight", w, OPD_MODULE_PARAMETER) == 0);
    CHECK(opd_quantize_module(net, "INT4_group32, group 8", NULL) < 0 && fails_with("have no groups"));
    static const char *const wrong[] = {"int9_group16", "int0_group16", "int4_group12", "int4_group0", "int4_group1048584",
                                        "int4_group016", "int4_group", "int4_group16_", "int4_group16_asymmetri",
                                        "int4_group99999999999999999999", "int4_group-8", "int4_group 16", "q4", "q4_"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(opd_quantize_module(net, wrong[i], NULL) < 0 && fails_with("is not understood"));
    }
    CHECK(opd_quantize_module(net, "int4_group32", NULL) >= 0);
    opd_tensor *stored = opd_module_get(net, "weight");
    CHECK(stored && opd_dtype(stored) == opd_dtype_int_blocks(4, 32, false));
    CHECK(same(stored, opd_quantize_blocks(w, opd_dtype_int_blocks(4, 32, false))));
    opd_module_free(net);
    (void)opd_exact_blocks_set(was);
    CHECK_OK();
}
/* opd_opcheck finds no mistake in operators with weights in blocks, also transposed ones. */
TEST(opcheck_of_operators_with_blocks) {
    const opd_scalar_type dtypes[] = {OPD_Q8_0, opd_dtype_int_blocks(4, 32, true)};
    static const int64_t at[2] = {1, 5};
    for (int i = 0; i < 2; i++) {
        OPD_SCOPED;
        opd_tensor *w = opd_quantize_blocks(numbers(OPD_INTS(8, 64), OPD_FLOAT32, 1), dtypes[i]), *two[2] = {w, w};
        opd_tensor *x = numbers(OPD_INTS(3, 64), OPD_FLOAT32, 2), *y = numbers(OPD_INTS(3, 8), OPD_FLOAT32, 3);
        const opd_value v = opd_value_tensor(w), t = opd_value_tensor(opd_t(w)), zero = opd_value_int(0), one = opd_value_int(1);
        const opd_value index = opd_value_tensor(opd_tensor_from(at, OPD_INTS(2), OPD_INT64));
        const opd_value list = opd_value_tensors(two, 2), bytes = opd_value_int(OPD_UINT8);
        const struct { const char *name; opd_value args[3]; int count; } rows[] = {
            {"aten::mm", {opd_value_tensor(x), t, zero}, 2}, {"aten::mm", {opd_value_tensor(y), v, zero}, 2},
            {"aten::linear", {opd_value_tensor(x), v, zero}, 2}, {"aten::matmul", {opd_value_tensor(x), t, zero}, 2},
            {"aten::embedding", {v, index, zero}, 2}, {"aten::index_select", {v, zero, index}, 3},
            {"aten::index_select", {t, one, index}, 3}, {"aten::dequantize.self", {v, zero, zero}, 1},
            {"aten::t", {v, zero, zero}, 1}, {"aten::clone", {v, zero, zero}, 1}, {"aten::cat", {list, zero, zero}, 2},
            {"aten::stack", {list, zero, zero}, 2}, {"aten::stack", {list, one, zero}, 2}, {"aten::view.dtype", {v, bytes, zero}, 2}};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            const int rc = opd_opcheck(opd_find(rows[k].name), rows[k].args, rows[k].count, NULL);
            if (rc) { printf("%s: %s\n", rows[k].name, opd_error_message()); }
            CHECK_INT(rc, 0);
            opd_error_clear();
        }
        CHECK(same(opd_select(opd_stack(opd_tensors_of(two, 2), 1), 1, 1), w));
        CHECK(!opd_stack(opd_tensors_of(two, 2), 2) && fails_with("would cut"));
        CHECK_OK();
    }
}
static int attempt_all(void *arg) {
    const opd_scalar_type dtype = opd_dtype_int_blocks(7, 56, true);
    opd_tensor *x = numbers(OPD_INTS(5, 112), OPD_FLOAT32, 2), *part[3];
    opd_tensor *w = opd_quantize_blocks(numbers(OPD_INTS(8, 112), OPD_FLOAT32, 1), dtype);
    (void)arg;
    if (!w || opd_int_blocks_parts(w, &part[0], &part[1], &part[2])) { return -1; }
    return opd_int_blocks(part[0], part[1], part[2], 7) && opd_linear(x, w, NULL) && opd_view_dtype(w, OPD_UINT8) &&
        opd_dequantize(w) && opd_dtype_name(dtype) ? 0 : -1;
}
TEST(int_blocks_without_memory) { CHECK(check_allocations(attempt_all, NULL, "int blocks", 200, false) > 0); }
CHECK_MAIN()
