/* Tensors of dtypes that are stored in blocks: making, viewing, copying and printing them, products with them and their
   gradients, and the errors of operators that have no form for them. */
#include "../check.h"
#include <math.h>

/* Returns the path of a file that is not there: nothing here writes one. */
static const char *place(const char *name) {
    static char path[400];
    const char *const tmp = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/%s", tmp && *tmp ? tmp : "/tmp", name);
    return path;
}

static opd_tensor *numbers(opd_ints sizes, opd_scalar_type dtype, int seed) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; t && i < opd_numel(t); i++) {
        opd_data_f32(t)[i] = (float)((i * 7919 + seed * 104729) % 1009) / 504 - 1;
    }
    return opd_to_dtype(t, dtype);
}
static opd_tensor *weight_of(opd_ints sizes, opd_scalar_type dtype, int seed) {
    return opd_quantize_blocks(numbers(sizes, OPD_FLOAT32, seed), dtype);
}
/* Returns the largest difference over the largest number of `b`. */
static double apart(opd_tensor *a, opd_tensor *b) {
    a = opd_to_dtype(a, OPD_FLOAT64);
    b = opd_to_dtype(b, OPD_FLOAT64);
    if (!a || !b || opd_ndim(a) != opd_ndim(b) || opd_numel(a) != opd_numel(b)) { return 1e9; }
    const double most = opd_item_f64(opd_max(opd_abs(b)));
    return opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))) / (most > 0 ? most : 1);
}
static bool fails_with(const char *text) {
    const bool found = !opd_ok() && strstr(opd_error_message(), text) != NULL;
    if (!found) { fprintf(stderr, "error: %s\n", opd_ok() ? "none" : opd_error_message()); }
    opd_error_clear();
    return found;
}

TEST(sizes_and_bytes) {
    OPD_SCOPED;
    opd_tensor *w = opd_tensor_new(OPD_INTS(3, 512), OPD_Q4_K);
    int64_t bytes = 0;
    CHECK(opd_dtype_block(OPD_Q4_K, &bytes) == 256 && bytes == 144 && opd_dtype_block(OPD_FLOAT32, &bytes) == 1 && bytes == 4);
    CHECK(opd_dtype_block((opd_scalar_type)64, &bytes) == 0 && bytes == 0);
    CHECK(w && opd_dtype(w) == OPD_Q4_K && opd_numel(w) == 1536 && opd_is_contiguous(w));
    CHECK_INT(opd_tensor_storage_bytes(w), 3 * 2 * 144);
    CHECK(!opd_dtype_is_floating(OPD_Q4_K) && !opd_can_cast(OPD_FLOAT32, OPD_Q4_K));
    CHECK(!opd_tensor_new(OPD_INTS(3, 500), OPD_Q4_K) && fails_with("blocks of 256"));
    CHECK(!opd_empty(OPD_INTS(), OPD_Q8_0) && fails_with("blocks of 32"));
    CHECK(opd_empty(OPD_INTS(0, 7), OPD_Q8_0) && opd_ok());
    CHECK(opd_promote_types(OPD_FLOAT32, OPD_Q8_0) == OPD_DTYPE_NONE && fails_with("opd_dequantize"));
    CHECK(!opd_tensor_set_requires_grad(w, true) && fails_with("floating point"));
    CHECK(!opd_zeros(OPD_INTS(3, 512), OPD_Q4_K) && fails_with("opd_dequantize"));
    CHECK_OK();
}
TEST(wrapped_memory) {
    OPD_SCOPED;
    char bytes[2 * 34 + 1];
    memset(bytes, 0, sizeof bytes);
    bytes[1] = 0;
    bytes[2] = 0x3c;                              /* a scale of 1, at an odd address */
    for (int i = 0; i < 32; i++) { bytes[3 + i] = (char)(i - 16); }
    opd_tensor *w = opd_tensor_wrap(bytes + 1, OPD_INTS(2, 32), NULL, OPD_Q8_0, NULL, NULL);
    opd_tensor *x = opd_dequantize(w);
    for (int i = 0; x && i < 32; i++) { CHECK(opd_data_f32(x)[i] == (float)(i - 16) && opd_data_f32(x)[32 + i] == 0); }
    CHECK(opd_data(opd_select(w, 0, 1)) == (void *)(bytes + 35));
    CHECK_OK();
}
/* Views of rows and of leading dims share memory; a view that would cut a block fails. */
TEST(views) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(4, 3, 64), OPD_Q8_0, 1), *x = opd_dequantize(w);
    CHECK(w && opd_tensor_storage_bytes(w) == 4 * 3 * 2 * 34);
    struct { opd_tensor *view, *same; } pairs[] = {
        {opd_select(w, 0, 2), opd_select(x, 0, 2)},
        {opd_select(w, 1, -1), opd_select(x, 1, -1)},
        {opd_narrow(w, 0, 1, 2), opd_narrow(x, 0, 1, 2)},
        {opd_slice(w, 0, OPD_V(1), OPD_V(4), 2), opd_slice(x, 0, OPD_V(1), OPD_V(4), 2)},
        {opd_narrow(w, 2, 32, 32), opd_narrow(x, 2, 32, 32)},
        {opd_view(w, OPD_INTS(12, 64)), opd_view(x, OPD_INTS(12, 64))},
        {opd_view(w, OPD_INTS(4, 3, 2, 32)), opd_view(x, OPD_INTS(4, 3, 2, 32))},
        {opd_reshape(w, OPD_INTS(-1)), opd_reshape(x, OPD_INTS(-1))},
        {opd_flatten(w, 0, 1), opd_flatten(x, 0, 1)},
        {opd_unsqueeze(w, -1), opd_unsqueeze(x, -1)},
        {opd_squeeze(opd_unsqueeze(w, 0)), x},
        {opd_transpose(w, 1, 2), opd_transpose(x, 1, 2)},
        {opd_permute(w, OPD_INTS(2, 0, 1)), opd_permute(x, OPD_INTS(2, 0, 1))},
        {opd_expand(opd_unsqueeze(w, 0), OPD_INTS(5, 4, 3, 64)), opd_expand(opd_unsqueeze(x, 0), OPD_INTS(5, 4, 3, 64))},
        {opd_detach(w), x}, {opd_alias(w), x},
        {opd_t(opd_select(w, 0, 3)), opd_t(opd_select(x, 0, 3))}
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK(pairs[i].view && pairs[i].same && opd_tensor_same_storage(pairs[i].view, w));
        CHECK(opd_tensor_offset(pairs[i].view) == opd_tensor_offset(pairs[i].same));
        CHECK(opd_equal(opd_dequantize(pairs[i].view), pairs[i].same));
        CHECK_OK();
    }
    CHECK(!opd_narrow(w, 2, 16, 32) && fails_with("blocks of 32"));
    CHECK(!opd_narrow(w, 2, 0, 48) && fails_with("blocks of 32"));
    CHECK(!opd_select(w, 2, 0) && fails_with("blocks of 32"));
    CHECK(!opd_view(w, OPD_INTS(48, 16)) && fails_with("blocks of 32"));
    CHECK(!opd_slice(w, 2, OPD_V(0), OPD_V(64), 2) && fails_with("blocks of 32"));
    CHECK(!opd_as_strided(w, OPD_INTS(2, 32), OPD_INTS(33, 1)) && fails_with("blocks of 32"));
    CHECK(!opd_as_strided_full(w, OPD_INTS(2, 32), OPD_INTS(32, 1), opd_value_int(5)) && fails_with("blocks of 32"));
    CHECK(!opd_as_strided_full(w, OPD_INTS(2, 32), OPD_INTS(32, 1), opd_value_int(768)) && fails_with("out of bounds"));
    CHECK(!opd_view_dtype(w, OPD_INT16) && fails_with("opd_dequantize"));
    CHECK(!opd_view_dtype(x, OPD_Q8_0) && fails_with("stored in blocks"));
    CHECK(!opd_unfold(w, 2, 32, 16) && fails_with("blocks of 32"));
    CHECK(opd_numel(opd_narrow(w, 2, 5, 0)) == 0 && opd_ok());
    const opd_tensors parts = opd_unbind(w);
    CHECK(parts.n == 4 && opd_equal(opd_dequantize(parts.data[3]), opd_select(x, 0, 3)));
    CHECK_OK();
}
TEST(copies) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(4, 3, 64), OPD_Q4_0, 1), *x = opd_dequantize(w), *part = opd_select(w, 1, 1);
    opd_tensor *copy = opd_clone(w), *list[2];
    CHECK(copy && opd_dtype(copy) == OPD_Q4_0 && !opd_tensor_same_storage(copy, w));
    CHECK(memcmp(opd_data(copy), opd_data(w), 4 * 3 * 2 * 18) == 0);
    copy = opd_contiguous(part);
    CHECK(copy && opd_is_contiguous(copy) && opd_equal(opd_dequantize(copy), opd_select(x, 1, 1)));
    copy = opd_empty_like(w);
    CHECK(opd_copy_(copy, opd_expand(opd_select(w, 0, 1), OPD_INTS(4, 3, 64))));
    CHECK(opd_equal(opd_dequantize(copy), opd_expand(opd_select(x, 0, 1), OPD_INTS(4, 3, 64))));
    CHECK(opd_copy_(opd_select(copy, 1, 0), part) && opd_equal(opd_dequantize(opd_select(copy, 1, 0)),
                                                               opd_select(x, 1, 1)));
    CHECK(!opd_contiguous(opd_t(part)) && fails_with("would cut"));
    CHECK(!opd_contiguous(opd_t(weight_of(OPD_INTS(32, 64), OPD_Q4_0, 2))) && fails_with("blocks of q4_0 lie along dim"));
    CHECK(opd_equal(opd_to_dtype(w, OPD_FLOAT64), opd_to_dtype(x, OPD_FLOAT64)));
    CHECK(opd_equal(opd_to_dtype(opd_transpose(w, 0, 2), OPD_BFLOAT16), opd_to_dtype(opd_transpose(x, 0, 2),
                                                                                     OPD_BFLOAT16)));
    CHECK(opd_equal(opd_dequantize(opd_to_dtype(opd_to_dtype(x, OPD_FLOAT64), OPD_Q4_0)), x));
    CHECK(opd_equal(opd_dequantize(opd_quantize_blocks(opd_transpose(x, 0, 2), OPD_Q4_0)), opd_transpose(x, 0, 2)));
    CHECK(apart(opd_dequantize(opd_to_dtype(w, OPD_Q8_0)), x) < 0.01);
    opd_tensor *floats = opd_empty(OPD_INTS(2, 4, 3, 64), OPD_FLOAT64);
    CHECK(opd_copy_(floats, w) && opd_equal(opd_select(floats, 0, 1), opd_to_dtype(x, OPD_FLOAT64)));
    CHECK(!opd_copy_(w, opd_to_dtype(x, OPD_COMPLEX64)) && fails_with("complex"));
    CHECK(!opd_copy_(w, opd_full(OPD_INTS(64), opd_value_double(NAN), OPD_FLOAT32)) && fails_with("NaN"));
    CHECK(!opd_quantize_blocks(x, OPD_FLOAT32) && fails_with("not a dtype in blocks"));
    CHECK(!opd_quantize_blocks(NULL, OPD_Q8_0) && fails_with("NULL"));
    list[0] = w;
    list[1] = opd_narrow(w, 0, 1, 2);
    CHECK(opd_equal(opd_dequantize(opd_cat(opd_tensors_of(list, 2), 0)),
                    opd_cat(opd_tensors_of((list[0] = x, list[1] = opd_narrow(x, 0, 1, 2), list), 2), 0)));
    list[0] = w;
    list[1] = x;
    CHECK(!opd_cat(opd_tensors_of(list, 2), 0) && fails_with("opd_dequantize"));
    const int64_t at[3] = {2, 0, 2};
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(3), OPD_INT64);
    CHECK(opd_equal(opd_dequantize(opd_index_select(w, 0, index)), opd_index_select(x, 0, index)));
    CHECK(opd_equal(opd_dequantize(opd_index_select(w, 1, index)), opd_index_select(x, 1, index)));
    CHECK(!opd_index_select(w, 2, index) && fails_with("cannot be cut"));
    CHECK(!opd_index_select(w, 1, opd_add_Scalar(index, opd_value_int(2))) && fails_with("out of range"));
    CHECK_OK();
}
TEST(printing) {
    OPD_SCOPED;
    char text[4096], other[4096];
    opd_tensor *w = weight_of(OPD_INTS(2, 32), OPD_Q8_0, 1);
    (void)opd_tensor_print(w, text, sizeof text);
    (void)opd_tensor_print(opd_dequantize(w), other, sizeof other);
    CHECK(strncmp(text, other, strlen(other) - 1) == 0 && strstr(text, "dtype=torch.q8_0"));
    (void)opd_tensor_print(opd_t(w), text, sizeof text);
    (void)opd_tensor_print(opd_t(opd_dequantize(w)), other, sizeof other);
    CHECK(strncmp(text, other, strlen(other) - 1) == 0);
    w = opd_tensor_new(OPD_INTS(2, 256), OPD_IQ1_S);
    memset(opd_data(w), 0, 100);
    (void)opd_tensor_print(w, text, sizeof text);
    CHECK_STR(text, "tensor(..., size=(2, 256), dtype=torch.iq1_s)");
    CHECK_OK();
    CHECK(!opd_dequantize(w) && fails_with("iq1_s"));
    w = opd_tensor_new(OPD_INTS(3, 1024), OPD_Q8_0);
    memset(opd_data(w), 0, (size_t)opd_tensor_storage_bytes(w));
    (void)opd_tensor_print(w, text, sizeof text);
    CHECK(strstr(text, "[0., 0., 0.,  ..., 0., 0., 0.]"));
    CHECK_OK();
}

static opd_tensor *twice(opd_tensor *x) {
    opd_tensor *list[2];
    list[0] = list[1] = x;
    return opd_cat(opd_tensors_of(list, 2), 0);
}
/* The exact products of all forms are those with the dequantised weight. */
static void products_of(opd_scalar_type dtype, opd_scalar_type of, double most) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(48, 256), dtype, 1), *f = opd_to_dtype(w, OPD_FLOAT64);
    opd_tensor *x = numbers(OPD_INTS(5, 256), of, 2), *gy = numbers(OPD_INTS(5, 48), of, 3), *b = numbers(OPD_INTS(48), of, 4);
    opd_tensor *x3 = numbers(OPD_INTS(2, 3, 256), of, 5), *x1 = numbers(OPD_INTS(256), of, 6), *self = numbers(OPD_INTS(5, 48), of, 7);
#define F(t) opd_to_dtype(t, OPD_FLOAT64)
    struct { opd_tensor *got, *want; } pairs[] = {
        {opd_linear(x, w, NULL), opd_linear(F(x), f, NULL)},
        {opd_linear(x, w, b), opd_linear(F(x), f, F(b))},
        {opd_linear(x3, w, NULL), opd_linear(F(x3), f, NULL)},
        {opd_linear(x3, w, b), opd_linear(F(x3), f, F(b))},
        {opd_linear(opd_transpose(x3, 0, 1), w, b), opd_linear(F(opd_transpose(x3, 0, 1)), f, F(b))},
        {opd_linear(x1, w, b), opd_linear(F(x1), f, F(b))},
        {opd_linear(opd_expand(x1, OPD_INTS(2, 256)), w, b), opd_linear(opd_expand(F(x1), OPD_INTS(2, 256)), f, F(b))},
        {opd_linear(opd_t(opd_contiguous(opd_t(x))), w, b), opd_linear(F(x), f, F(b))},
        {opd_linear(opd_narrow(x, 0, 0, 0), w, b), opd_linear(F(opd_narrow(x, 0, 0, 0)), f, F(b))},
        {opd_mm(x, opd_t(w)), opd_mm(F(x), opd_t(f))},
        {opd_mm(gy, w), opd_mm(F(gy), f)},
        {opd_mm(w, opd_t(x)), opd_mm(f, opd_t(F(x)))},
        {opd_mm(opd_t(w), opd_t(gy)), opd_mm(opd_t(f), opd_t(F(gy)))},
        {opd_addmm_full(opd_select(b, 0, 0), w, opd_t(x), opd_value_double(2), opd_value_double(3)),
         opd_addmm_full(F(opd_select(b, 0, 0)), f, opd_t(F(x)), opd_value_double(2), opd_value_double(3))},
        {opd_mv(w, x1), opd_mv(f, F(x1))},
        {opd_matmul(opd_view(w, OPD_INTS(2, 24, 256)), x1), opd_matmul(opd_view(f, OPD_INTS(2, 24, 256)), F(x1))},
        {opd_matmul(x3, opd_t(w)), opd_matmul(F(x3), opd_t(f))},
        {opd_matmul(x1, opd_t(w)), opd_matmul(F(x1), opd_t(f))},
        {opd_addmm(b, x, opd_t(w)), opd_addmm(F(b), F(x), opd_t(f))},
        {opd_addmm_full(self, x, opd_t(w), opd_value_double(0.5), opd_value_double(2)),
         opd_addmm_full(F(self), F(x), opd_t(f), opd_value_double(0.5), opd_value_double(2))},
        {opd_addmm_full(x, gy, w, opd_value_double(0), opd_value_double(3)),
         opd_addmm_full(F(x), F(gy), f, opd_value_double(0), opd_value_double(3))},
        {opd_linear(x, opd_narrow(w, 0, 16, 8), NULL), opd_linear(F(x), opd_narrow(f, 0, 16, 8), NULL)},
        {opd_linear(x, opd_slice(w, 0, OPD_V(1), OPD_V(48), 5), NULL), opd_linear(F(x), opd_slice(f, 0, OPD_V(1), OPD_V(48), 5), NULL)},
        {opd_bmm(opd_view(twice(x), OPD_INTS(2, 5, 256)),
                 opd_transpose(opd_view(w, OPD_INTS(2, 24, 256)), 1, 2)),
         opd_bmm(F(opd_view(twice(x), OPD_INTS(2, 5, 256))),
                 opd_transpose(opd_view(f, OPD_INTS(2, 24, 256)), 1, 2))},
        {opd_matmul(x, opd_transpose(opd_view(w, OPD_INTS(2, 24, 256)), 1, 2)),
         opd_matmul(F(x), opd_transpose(opd_view(f, OPD_INTS(2, 24, 256)), 1, 2))}
    };
#undef F
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK(pairs[i].got && opd_dtype(pairs[i].got) == of);
        CHECK(opd_numel(pairs[i].got) == 0 || apart(pairs[i].got, pairs[i].want) < most);
        if (opd_numel(pairs[i].got) && apart(pairs[i].got, pairs[i].want) >= most) {
            printf("product %d, %s with %s: %g\n", (int)i, opd_dtype_name(of), opd_dtype_name(dtype),
                   apart(pairs[i].got, pairs[i].want));
        }
        CHECK_OK();
    }
}
TEST(exact_products) {
    const bool was = opd_exact_blocks_set(true);
    CHECK(!was && opd_exact_blocks());
    static const opd_scalar_type dtypes[] = {OPD_Q8_0, OPD_Q4_0, OPD_Q4_K, OPD_Q6_K, OPD_IQ4_NL, OPD_MXFP4, OPD_TQ2_0,
                                             OPD_WEIGHT_F16, OPD_WEIGHT_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        products_of(dtypes[i], OPD_FLOAT32, 1e-5);
        products_of(dtypes[i], OPD_FLOAT64, 1e-13);
        if (i % 3) { continue; }
        products_of(dtypes[i], OPD_BFLOAT16, 1e-2);
        products_of(dtypes[i], OPD_FLOAT16, 2e-3);
    }
    (void)opd_exact_blocks_set(was);
    for (size_t i = 0; i < 3; i++) { products_of(dtypes[i], OPD_FLOAT32, 0.03); }
}
static int sum_of_product(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    out[0] = nin ? opd_sum(opd_sin(opd_linear(in[0], (opd_tensor *)user, NULL))) : NULL;
    return out[0] ? 1 : -1;
}
/* Floats of 16 bits as weights for float32: a view of the same memory, whose numbers are not rounded again, and products that do
   not round the activations. */
TEST(weights_of_16_bits) {
    static const opd_scalar_type dtypes[][2] = {{OPD_FLOAT16, OPD_WEIGHT_F16}, {OPD_BFLOAT16, OPD_WEIGHT_BF16}};
    const uint16_t one = 1;
    unsigned char low;
    memcpy(&low, &one, 1);
    for (int i = 0; i < 2; i++) {
        OPD_SCOPED;
        opd_tensor *plain = numbers(OPD_INTS(40, 96), dtypes[i][0], 5), *wide = opd_to_dtype(plain, OPD_FLOAT32), *w;
        if (low == 0) {                           /* big-endian: blocks have the lowest byte first */
            CHECK(!opd_view_dtype(plain, dtypes[i][1]) && fails_with("stored in blocks"));
            w = opd_quantize_blocks(plain, dtypes[i][1]);
        } else {
            w = opd_view_dtype(plain, dtypes[i][1]);
            CHECK(w && opd_tensor_same_storage(w, plain) && opd_data(w) == opd_data(plain));
            CHECK(opd_equal(opd_view_dtype(w, dtypes[i][0]), plain) && opd_tensor_storage_bytes(w) == 40 * 96 * 2);
            opd_tensor *made = opd_quantize_blocks(wide, dtypes[i][1]);
            CHECK(made && memcmp(opd_data(made), opd_data(plain), 40 * 96 * 2) == 0);
            CHECK(!opd_view_dtype(plain, dtypes[1 - i][1]) && fails_with("stored in blocks"));
            CHECK(!opd_view_dtype(w, OPD_FLOAT32) && fails_with("stored in blocks"));
            CHECK(!opd_view_dtype(opd_narrow(plain, 1, 0, 40), dtypes[i][1]) && fails_with("blocks of 32"));
            CHECK(opd_equal(opd_dequantize(opd_view_dtype(opd_select(opd_view(plain, OPD_INTS(4, 10, 96)), 0, 2), dtypes[i][1])),
                            opd_narrow(wide, 0, 20, 10)));
        }
        CHECK(opd_equal(opd_dequantize(w), wide) && opd_equal(opd_dequantize(opd_select(w, 0, 7)), opd_select(wide, 0, 7)));
        for (int rows = 1; rows < 40; rows += rows < 4 ? 1 : 17) {
            opd_tensor *x = numbers(OPD_INTS(rows, 96), OPD_FLOAT32, rows), *y = numbers(OPD_INTS(rows, 40), OPD_FLOAT32, rows);
            CHECK(apart(opd_linear(x, w, NULL), opd_linear(x, wide, NULL)) < 1e-6);
            CHECK(apart(opd_mm(y, w), opd_mm(y, wide)) < 1e-6);
            CHECK(apart(opd_linear(opd_to_dtype(x, OPD_FLOAT64), w, NULL),
                        opd_linear(opd_to_dtype(x, OPD_FLOAT64), opd_to_dtype(wide, OPD_FLOAT64), NULL)) < 1e-13);
            opd_tensor *grads[2];
            CHECK(opd_grad(sum_of_product, w, &x, 1, NULL, &grads[0], 1) == 1);
            CHECK(opd_grad(sum_of_product, wide, &x, 1, NULL, &grads[1], 1) == 1);
            CHECK(apart(grads[0], grads[1]) < 1e-5);
        }
        CHECK(!opd_quantize_blocks(opd_full(OPD_INTS(32), opd_value_double(i ? 3.4e38 : 65520), OPD_FLOAT32), dtypes[i][1]) &&
              fails_with("too large"));
        CHECK(opd_quantize_blocks(opd_full(OPD_INTS(32), opd_value_double(i ? 3.39e38 : 65519), OPD_FLOAT32), dtypes[i][1]));
        CHECK_OK();
    }
}
TEST(embeddings) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(10, 256), OPD_Q5_K, 1), *x = opd_dequantize(w);
    const int64_t at[6] = {9, 0, 3, 3, 1, 9};
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(2, 3), OPD_INT64);
    opd_tensor *rows = opd_embedding(w, index);
    CHECK(rows && opd_dtype(rows) == OPD_FLOAT32 && opd_equal(rows, opd_embedding(x, index)));
    CHECK(opd_equal(opd_embedding(opd_narrow(w, 0, 0, 10), opd_to_dtype(index, OPD_INT32)), rows));
    CHECK(!opd_embedding(opd_narrow(w, 0, 0, 9), index) && fails_with("out of range"));
    CHECK(!opd_embedding(w, opd_neg(index)) && fails_with("out of range"));
    CHECK(!opd_embedding(x, w) && fails_with("opd_dequantize"));
    CHECK_OK();
}
/* Products of llama.cpp's blocks with their values in float64. */
TEST(golden_products) {
    OPD_SCOPED;
    static const struct { const char *name; opd_scalar_type dtype; } rows[] = {
        {"Q8_0", OPD_Q8_0}, {"Q4_0", OPD_Q4_0}, {"Q4_1", OPD_Q4_1}, {"Q5_0", OPD_Q5_0}, {"Q5_1", OPD_Q5_1},
        {"Q4_K", OPD_Q4_K}, {"Q6_K", OPD_Q6_K}, {"Q5_K", OPD_Q5_K}, {"Q3_K", OPD_Q3_K}, {"Q2_K", OPD_Q2_K},
        {"IQ4_NL", OPD_IQ4_NL}, {"MXFP4", OPD_MXFP4}};
    opd_tensor_file *file = opd_tensor_file_open("tests/golden/gguf/products.npz");
    const bool was = opd_exact_blocks_set(true);
    CHECK_OR_RETURN(file != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        opd_tensor *part[5];
        for (int k = 0; k < 5; k++) {
            static const char *const suffixes[] = {"w", "x", "y", "gy", "gx"};
            char name[32];
            (void)snprintf(name, sizeof name, "%s_%s", rows[i].name, suffixes[k]);
            part[k] = opd_tensor_file_get(file, name);
        }
        CHECK_OR_RETURN(opd_ok());
        opd_tensor *w = opd_tensor_wrap(opd_data(part[0]), OPD_INTS(24, 512), NULL, rows[i].dtype, NULL, NULL);
        opd_tensor *x = opd_tensor_set_requires_grad(opd_clone(part[1]), true), *y = opd_linear(x, w, NULL);
        CHECK(apart(opd_detach(y), part[2]) < 1e-6);
        CHECK_INT(opd_backward(opd_sum(opd_mul(y, part[3]))), 0);
        CHECK(apart(opd_tensor_grad(x), part[4]) < 1e-6);
        CHECK_OK();
    }
    (void)opd_exact_blocks_set(was);
    opd_tensor_file_close(file);
}

/* Functions of an input x [.., 256] and, if there are two inputs, a bias [48]; `user` is the weight. */
static int layer(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    out[0] = opd_linear(in[0], (opd_tensor *)user, nin > 1 ? in[1] : NULL);
    return out[0] ? 1 : -1;
}
static int loss_of_layer(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    opd_tensor *y = opd_linear(in[0], (opd_tensor *)user, nin > 1 ? in[1] : NULL);
    out[0] = opd_sum(opd_mul(opd_tanh(y), y));
    return out[0] ? 1 : -1;
}
static int gradient_of_loss(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    static const int both[2] = {0, 1};
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = both;
    options.nargnums = nin > 1 ? 2 : 1;
    return opd_grad(loss_of_layer, user, in, nin, &options, out, OPD_TRANSFORM_OUTPUTS);
}
static int product_with_hessian(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    (void)nin;
    opd_tensor *one = opd_ones_like(in[0]);
    return opd_hvp(loss_of_layer, user, in, &one, 1, out, NULL, OPD_TRANSFORM_OUTPUTS);
}
static int tangent_of_gradient(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    opd_tensor *tangents[1], *plain[OPD_TRANSFORM_OUTPUTS];
    (void)nin;
    tangents[0] = opd_ones_like(in[0]);
    return opd_jvp(gradient_of_loss, user, in, tangents, 1, NULL, plain, out, OPD_TRANSFORM_OUTPUTS);
}
static int examples_of(opd_transform_fn fn, void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    const int dims[2] = {0, OPD_NO_DIM};
    opd_vmap_options options;
    memset(&options, 0, sizeof options);
    options.in_dims = dims;
    options.nin_dims = nin;
    return opd_vmap(fn, user, in, nin, &options, out, OPD_TRANSFORM_OUTPUTS);
}
static int per_example_gradients(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    return examples_of(gradient_of_loss, user, in, nin, out);
}
static int per_example_hessians(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    return examples_of(product_with_hessian, user, in, nin, out);
}
static int vmapped_layer(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    return examples_of(layer, user, in, nin, out);
}
static int vmapped_tangent(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    return examples_of(tangent_of_gradient, user, in, nin, out);
}
static int tangent_of_bias(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    opd_tensor *tangents[2], *plain[OPD_TRANSFORM_OUTPUTS];
    tangents[0] = NULL;
    tangents[1] = opd_ones_like(in[1]);
    return opd_jvp(layer, user, in, tangents, nin, NULL, plain, out, OPD_TRANSFORM_OUTPUTS);
}
/* Compositions of transforms give the same with a weight in blocks as with the dequantised weight. */
TEST(transforms) {
    const bool was = opd_exact_blocks_set(true);
    static const struct { opd_transform_fn fn; int nin; const char *name; } rows[] = {
        {layer, 1, "layer"}, {layer, 2, "layer"}, {gradient_of_loss, 1, "grad"}, {gradient_of_loss, 2, "grad"},
        {product_with_hessian, 1, "hvp"}, {tangent_of_gradient, 1, "jvp of grad"}, {vmapped_layer, 2, "vmap"},
        {per_example_gradients, 1, "vmap of grad"}, {per_example_gradients, 2, "vmap of grad"},
        {per_example_hessians, 1, "vmap of hvp"}, {tangent_of_bias, 2, "jvp"}, {vmapped_tangent, 1, "vmap of jvp of grad"}};
    for (int batch = 2; batch < 4; batch++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            OPD_SCOPED;
            opd_tensor *w = weight_of(OPD_INTS(48, 256), batch == 2 ? OPD_Q4_K : OPD_WEIGHT_BF16, 1), *f = opd_dequantize(w);
            opd_tensor *in[2], *got[OPD_TRANSFORM_OUTPUTS], *want[OPD_TRANSFORM_OUTPUTS];
            in[0] = batch == 2 ? numbers(OPD_INTS(5, 256), OPD_FLOAT32, 2) : numbers(OPD_INTS(3, 4, 256), OPD_FLOAT32, 2);
            in[0] = opd_div_Scalar(in[0], OPD_V(8));
            in[1] = numbers(OPD_INTS(48), OPD_FLOAT32, 3);
            const int64_t slow = opd_vmap_fallback_count();
            const int count = rows[i].fn(w, in, rows[i].nin, got);
            CHECK(opd_vmap_fallback_count() == slow);
            CHECK(count > 0 && rows[i].fn(f, in, rows[i].nin, want) == count);
            for (int k = 0; k < count; k++) {
                const double error = apart(got[k], want[k]);
                if (error >= 1e-5) { printf("%s, %d inputs: %g\n", rows[i].name, rows[i].nin, error); }
                CHECK(error < 1e-5);
            }
            CHECK_OK();
        }
    }
    (void)opd_exact_blocks_set(was);
}
static void gradients_of(int layout) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(48, 256), OPD_Q6_K, 1), *f = opd_to_dtype(w, OPD_FLOAT64), *grads[2][2];
    for (int i = 0; i < 2; i++) {
        opd_tensor *x = numbers(OPD_INTS(5, 256), OPD_FLOAT64, 2);
        if (layout) { x = opd_t(opd_contiguous(opd_t(x))); }
        x = opd_tensor_set_requires_grad(opd_detach(x), true);
        opd_tensor *b = opd_tensor_set_requires_grad(numbers(OPD_INTS(48), OPD_FLOAT64, 3), true);
        opd_tensor *y = opd_linear(x, i ? f : w, b);
        CHECK(opd_tensor_requires_grad(y));
        CHECK_INT(opd_backward(opd_sum(opd_mul(y, y))), 0);
        grads[i][0] = opd_tensor_grad(x);
        grads[i][1] = opd_tensor_grad(b);
    }
    for (int k = 0; k < 2; k++) { CHECK(apart(grads[0][k], grads[1][k]) < 1e-12); }
    CHECK(!opd_tensor_requires_grad(opd_dequantize(w)) && !opd_tensor_requires_grad(w));
    CHECK(!opd_tensor_requires_grad(opd_quantize_blocks(opd_tensor_set_requires_grad(numbers(OPD_INTS(32), OPD_FLOAT32, 1),
                                                                                     true), OPD_Q8_0)));
    opd_tensor *in[1], *out[1];
    in[0] = w;
    CHECK_INT(opd_grad(loss_of_layer, f, in, 1, NULL, out, 1), -1);
    CHECK(fails_with("floating point"));
    CHECK_OK();
}
TEST(gradients) { for (int layout = 0; layout < 2; layout++) { gradients_of(layout); } }
/* vmap over the weights of experts. */
static int expert(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    (void)nin;
    out[0] = opd_linear(*(opd_tensor **)user, in[0], NULL);
    return out[0] ? 1 : -1;
}
TEST(experts) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    opd_tensor *w = weight_of(OPD_INTS(3, 48, 256), OPD_Q4_0, 1), *f = opd_dequantize(w), *in[1], *out[1], *same[1];
    opd_tensor *x = numbers(OPD_INTS(5, 256), OPD_FLOAT32, 2);
    in[0] = w;
    CHECK_INT(opd_vmap(expert, &x, in, 1, NULL, out, 1), 1);
    in[0] = f;
    CHECK_INT(opd_vmap(expert, &x, in, 1, NULL, same, 1), 1);
    CHECK(apart(out[0], same[0]) < 1e-5);
    const int last = 2;
    opd_vmap_options options;
    memset(&options, 0, sizeof options);
    options.in_dims = &last;
    options.nin_dims = 1;
    in[0] = w;
    CHECK_INT(opd_vmap(expert, &x, in, 1, &options, out, 1), -1);
    CHECK(fails_with("would cut"));
    CHECK_OK();
    (void)opd_exact_blocks_set(was);
}

TEST(autocast) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    opd_tensor *w = weight_of(OPD_INTS(48, 256), OPD_Q8_0, 1), *x = numbers(OPD_INTS(5, 256), OPD_FLOAT32, 2);
    opd_tensor *b = numbers(OPD_INTS(48), OPD_FLOAT32, 3), *y = NULL, *z = NULL;
    x = opd_tensor_set_requires_grad(x, true);
    OPD_AUTOCAST(OPD_CPU) {
        y = opd_linear(x, w, b);
        z = opd_matmul(x, opd_t(w));
    }
    CHECK(y && z && opd_dtype(y) == OPD_BFLOAT16 && opd_dtype(z) == OPD_BFLOAT16 && opd_dtype(w) == OPD_Q8_0);
    CHECK(apart(opd_detach(y), opd_linear(opd_detach(x), opd_dequantize(w), b)) < 0.02);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_dtype(opd_tensor_grad(x)) == OPD_FLOAT32);
    CHECK_OK();
    (void)opd_exact_blocks_set(was);
}
TEST(fakes) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(48, 256), OPD_Q4_K, 1), *x = numbers(OPD_INTS(5, 256), OPD_BFLOAT16, 2);
    const int64_t at[2] = {1, 2};
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(2), OPD_INT64);
    OPD_FAKE_MODE {
        opd_tensor *fake = opd_fake_tensor(w), *y = opd_linear(x, fake, NULL), *made = opd_empty(OPD_INTS(3, 512), OPD_Q4_K);
        CHECK(fake && opd_dtype(fake) == OPD_Q4_K && opd_tensor_storage_bytes(fake) == 48 * 144);
        CHECK(y && opd_dtype(y) == OPD_BFLOAT16 && opd_size(y, 0) == 5 && opd_size(y, 1) == 48);
        CHECK(opd_tensor_storage_bytes(made) == 3 * 2 * 144);
        CHECK(opd_tensor_offset(opd_select(made, 0, 1)) == 512);
        y = opd_embedding(fake, index);
        CHECK(y && opd_dtype(y) == OPD_FLOAT32 && opd_size(y, 1) == 256);
        y = opd_dequantize(fake);
        CHECK(y && opd_dtype(y) == OPD_FLOAT32 && opd_size(y, 0) == 48 && opd_numel(y) == 48 * 256);
        y = opd_quantize_blocks(y, OPD_Q8_0);
        CHECK(y && opd_dtype(y) == OPD_Q8_0 && opd_tensor_storage_bytes(y) == 48 * 8 * 34);
        CHECK(!opd_sin(fake) && fails_with("opd_dequantize"));
        CHECK(!opd_narrow(fake, 1, 0, 100) && fails_with("would cut"));
    }
    CHECK_OK();
}
TEST(graphs) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    opd_tensor *w = weight_of(OPD_INTS(48, 256), OPD_Q4_K, 1), *x = numbers(OPD_INTS(5, 256), OPD_FLOAT32, 2), *out[2];
    opd_tensor *want = opd_linear(x, w, NULL), *in[2];
    char text[4096];
    opd_graph *graph = opd_graph_trace(layer, w, &x, 1, NULL);
    CHECK_OR_RETURN(graph != NULL);
    CHECK(opd_graph_run(graph, &x, 1, out, 2) == 1 && opd_equal(out[0], want));
    (void)opd_graph_print(graph, text, sizeof text);
    CHECK(strstr(text, "Q4_K(48, 256, strides=[256, 1]") != NULL);
    CHECK_INT(opd_graph_cse(graph), 0);
    (void)opd_graph_dce(graph);
    CHECK(opd_graph_run(graph, &x, 1, out, 2) == 1 && opd_equal(out[0], want));
    CHECK_INT(opd_graph_save(graph, place("blocks.graph")), -1);
    CHECK(fails_with("opd_gguf_save"));
    CHECK_INT(opd_graph_save_text(graph, place("blocks.graph")), -1);
    CHECK(fails_with("opd_gguf_save"));
    opd_graph_free(graph);
    graph = opd_graph_parse("graph(%x : Float(5, 256, strides=[256, 1], requires_grad=0, device=cpu),\n"
                            "      %w : Q4_K(48, 256, strides=[256, 1], requires_grad=0, device=cpu)):\n"
                            "  %n : NoneType = prim::Constant()\n"
                            "  %y : Float(5, 48, strides=[48, 1], requires_grad=0, device=cpu) = aten::linear(%x, %w, %n)\n"
                            "  return (%y)\n");
    CHECK(graph != NULL);
    if (!graph) { printf("%s\n", opd_error_message()); }
    in[0] = x;
    in[1] = w;
    CHECK(opd_graph_run(graph, in, 2, out, 2) == 1 && opd_equal(out[0], want));
    CHECK_OK();
    opd_graph_free(graph);
    (void)opd_exact_blocks_set(was);
}
static int two_layers(void *user, opd_tensor *const *in, int nin, opd_tensor **out) {
    (void)nin;
    opd_tensor *y = opd_relu(opd_linear(in[0], (opd_tensor *)user, NULL));
    out[0] = opd_mul(opd_add(y, y), opd_sigmoid(y));
    return out[0] ? 1 : -1;
}
TEST(compiled) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(48, 256), OPD_Q4_0, 1), *x = numbers(OPD_INTS(5, 256), OPD_FLOAT32, 2), *out[1];
    opd_tensor *want[1];
    opd_c_options options;
    opd_graph *graph = opd_graph_trace(two_layers, w, &x, 1, NULL);
    CHECK_OR_RETURN(graph != NULL);
    CHECK_INT(two_layers(w, &x, 1, want), 1);
    opd_compiled *compiled = opd_graph_compile(graph, NULL);
    CHECK(compiled != NULL);
    for (int i = 0; compiled && i < 3; i++) {
        CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1);
        CHECK(apart(out[0], want[0]) < 1e-5);
        CHECK_OK();
        x = opd_neg(opd_neg(x));
    }
    CHECK(compiled && !opd_compiled_reason(compiled));
    if (compiled && opd_compiled_reason(compiled)) { printf("uncompiled: %s\n", opd_compiled_reason(compiled)); }
    CHECK(opd_copy_(w, numbers(OPD_INTS(48, 256), OPD_FLOAT32, 9)));         /* the code reads the new numbers */
    CHECK_INT(two_layers(w, &x, 1, want), 1);
    CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1);
    CHECK(apart(out[0], want[0]) < 1e-5);
    memset(&options, 0, sizeof options);
    CHECK_INT(opd_graph_write_c(graph, &x, 1, "build", &options), -1);
    CHECK(fails_with("q4_0"));
    options.calls = true;
    CHECK_INT(opd_graph_write_c(graph, &x, 1, "build", &options), -1);
    CHECK(fails_with("q4_0"));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}
TEST(files) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(4, 32), OPD_Q8_0, 1);
    const char *const name = "w";
    const opd_value value = opd_value_tensor(w);
    CHECK(opd_npy_save(place("blocks.npy"), w) == -1 && fails_with("opd_gguf_save"));
    CHECK(opd_npz_save(place("blocks.npz"), &name, opd_tensors_of(&w, 1)) == -1 && fails_with("opd_gguf_save"));
    CHECK(opd_safetensors_save(place("blocks.st"), &name, opd_tensors_of(&w, 1), NULL) == -1 && fails_with("opd_gguf_save"));
    CHECK(opd_checkpoint_file_save(place("blocks.pt"), &name, &value, 1) == -1 && fails_with("opd_gguf_save"));
    CHECK(!opd_dlpack_export(w, 0) && fails_with("opd_gguf_save"));
    CHECK_OK();
}
static opd_tensor *product_into(opd_tensor *x, opd_tensor *w, opd_tensor *out) {
    opd_value args[3];
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(w);
    args[2] = opd_value_tensor(out);
    return opd_call_op(opd_find("aten::mm.out"), args, 3);
}
/* In-place forms, out= and formulas fail, or do what they say. */
TEST(refusals) {
    OPD_SCOPED;
    opd_tensor *w = weight_of(OPD_INTS(4, 32), OPD_Q8_0, 1), *x = numbers(OPD_INTS(2, 32), OPD_FLOAT32, 1), *f = opd_dequantize(w);
    CHECK(!opd_sin(w) && fails_with("\"sin_cpu\" not implemented for 'q8_0': opd_dequantize"));
    CHECK(!opd_add(w, w) && fails_with("opd_dequantize"));
    CHECK(!opd_add(f, w) && fails_with("opd_dequantize"));
    CHECK(!opd_add_(w, w) && fails_with("opd_dequantize"));
    CHECK(!opd_mul_Scalar(w, OPD_V(2)) && fails_with("opd_dequantize"));
    CHECK(!opd_zero_(w) && fails_with("opd_dequantize"));
    CHECK(!opd_sum(w) && fails_with("opd_dequantize"));
    CHECK(!opd_mm(w, opd_t(w)) && fails_with("opd_dequantize"));
    CHECK(!opd_addmm(w, x, opd_t(w)) && fails_with("opd_dequantize"));
    CHECK(!opd_mm(opd_to_dtype(x, OPD_INT64), opd_t(w)) && fails_with("opd_dequantize"));
    CHECK(!opd_linear(x, opd_narrow(w, 0, 0, 2), opd_to_dtype(opd_select(x, 1, 0), OPD_FLOAT64)) && fails_with("same dtype"));
    CHECK(!opd_linear(opd_narrow(x, 1, 0, 16), w, NULL) && fails_with("cannot be multiplied"));
    CHECK(!opd_mul(opd_unsqueeze(x, 1), w) && fails_with("opd_dequantize"));
    CHECK(!opd_equal(w, w) && fails_with("opd_dequantize"));
    opd_tensor *out = opd_empty(OPD_INTS(2, 4), OPD_FLOAT32);
    CHECK(product_into(x, opd_t(w), out) == out && apart(out, opd_mm(x, opd_t(f))) < 0.03);
    CHECK(!product_into(x, opd_t(w), opd_empty(OPD_INTS(2, 32), OPD_Q8_0)) && !opd_ok());
    opd_error_clear();
    CHECK_OK();
}

/* A device whose memory is the host's, but which only copies bytes. */
static void *device_alloc(void *user, int index, size_t bytes) { (void)user; (void)index; return malloc(bytes); }
static void device_free(void *user, int index, void *data, size_t bytes) {
    (void)user;
    (void)index;
    (void)bytes;
    free(data);
}
static size_t device_bytes;
static int device_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    (void)user;
    (void)to_index;
    (void)from_index;
    device_bytes = bytes;
    memcpy(to, from, bytes);
    return 0;
}
static opd_tensor *moved(opd_tensor *t, opd_device device) { return opd_to_device(t, device, opd_dtype(t)); }
TEST(devices) {
    OPD_SCOPED;
    opd_backend_desc desc;
    const bool was = opd_exact_blocks_set(true);
    memset(&desc, 0, sizeof desc);
    desc.name = "blockdevice";
    desc.alloc = device_alloc;
    desc.free = device_free;
    desc.copy = device_copy;
    CHECK_INT(opd_backend_register(OPD_PRIVATEUSE1, &desc), 0);
    const opd_device device = opd_device_make(OPD_PRIVATEUSE1, 0), host = opd_device_make(OPD_CPU, -1);
    opd_tensor *w = weight_of(OPD_INTS(6, 64), OPD_Q5_1, 1), *x = numbers(OPD_INTS(3, 64), OPD_FLOAT32, 2);
    opd_tensor *there = moved(w, device);
    CHECK(there && opd_tensor_device(there).type == OPD_PRIVATEUSE1 && opd_dtype(there) == OPD_Q5_1);
    CHECK_INT(device_bytes, 6 * 2 * 24);
    opd_tensor *back = moved(opd_narrow(there, 0, 1, 3), host);
    CHECK(back && opd_equal(opd_dequantize(back), opd_narrow(opd_dequantize(w), 0, 1, 3)));
    back = moved(opd_slice(there, 0, OPD_V(0), OPD_V(6), 2), host);
    CHECK(back && opd_equal(opd_dequantize(back), opd_slice(opd_dequantize(w), 0, OPD_V(0), OPD_V(6), 2)));
    char text[4096];
    opd_library *lib = opd_library_open(OPD_IMPL, "_", "PrivateUse1", __FILE__, __LINE__);
    CHECK_INT(opd_fallback(lib, opd_cpu_fallback), 0);
    (void)opd_tensor_print(there, text, sizeof text);
    CHECK(strstr(text, "device='blockdevice") && strstr(text, "dtype=torch.q5_1") && strstr(text, "0."));
    opd_tensor *y = opd_linear(moved(x, device), there, NULL);
    CHECK(y && opd_tensor_device(y).type == OPD_PRIVATEUSE1);
    CHECK(y && apart(moved(y, host), opd_linear(x, w, NULL)) < 1e-6);
    y = opd_dequantize(there);
    CHECK(y && opd_equal(moved(y, host), opd_dequantize(w)));
    CHECK_OK();
    opd_library_close(lib);
    (void)opd_exact_blocks_set(was);
}
static int attempt_all(void *arg) {
    opd_tensor *x = numbers(OPD_INTS(5, 256), OPD_BFLOAT16, 2), *w = weight_of(OPD_INTS(48, 256), OPD_Q4_K, 1);
    (void)arg;
    x = opd_tensor_set_requires_grad(x, true);
    opd_tensor *y = opd_linear(x, w, numbers(OPD_INTS(48), OPD_BFLOAT16, 3));
    if (opd_backward(opd_sum(y))) { return -1; }
    const int64_t at[2] = {1, 2};
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(2), OPD_INT64);
    if (!opd_embedding(w, index) || !opd_index_select(w, 0, index) || !opd_dequantize(opd_t(w))) { return -1; }
    opd_tensor *list[2];
    list[0] = list[1] = w;
    return opd_cat(opd_tensors_of(list, 2), 0) && opd_clone(opd_narrow(w, 0, 2, 3)) && opd_mv(w, opd_select(x, 0, 0)) &&
        opd_linear(opd_to_dtype(x, OPD_FLOAT64), w, NULL) ? 0 : -1;
}
TEST(allocations) { CHECK(check_allocations(attempt_all, NULL, "blocks", 200, false) > 0); }
/* A compiled graph whose constant in blocks has changed runs uncompiled. */
TEST(a_compiled_constant_that_changes) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    opd_tensor *const w = weight_of(OPD_INTS(64, 256), OPD_Q4_K, 1), *x = numbers(OPD_INTS(3, 256), OPD_FLOAT32, 2);
    opd_tensor *out[1];
    opd_graph *const graph = opd_graph_trace(layer, w, &x, 1, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    if (!compiled) { opd_error_clear(); SKIP("no compiler"); }
    CHECK(opd_compiled_function(compiled, &x, 1, out) == 1 && apart(out[0], opd_linear(x, w, NULL)) < 1e-6);
    CHECK_INT(opd_tensor_set_data(w, weight_of(OPD_INTS(32, 256), OPD_Q4_K, 5)), 0);
    CHECK(opd_compiled_function(compiled, &x, 1, out) == 1 && apart(out[0], opd_linear(x, w, NULL)) < 1e-6);
    CHECK(opd_size(out[0], 1) == opd_size(w, 0));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    (void)opd_exact_blocks_set(was);
    CHECK_OK();
}
/* A copy that fails counts as a write, because it may have written some rows. */
TEST(a_copy_that_fails_is_noticed_by_backward) {
    OPD_SCOPED;
    opd_tensor *const w = weight_of(OPD_INTS(64, 256), OPD_Q8_0, 1);
    opd_tensor *const x = opd_tensor_set_requires_grad(numbers(OPD_INTS(3, 256), OPD_FLOAT32, 2), true);
    opd_tensor *const y = opd_sum(opd_linear(x, w, NULL)), *const bad = numbers(OPD_INTS(64, 256), OPD_FLOAT32, 4);
    opd_data_f32(bad)[60 * 256 + 7] = NAN;
    CHECK(!opd_copy_(w, bad) && fails_with("is NaN"));
    CHECK(opd_backward(y) != 0 && fails_with("modified by an inplace operation"));
}
TEST(numbers_that_blocks_cannot_be_scaled_by) {
    OPD_SCOPED;
    opd_tensor *const w = weight_of(OPD_INTS(4, 32), OPD_Q8_0, 1), *const x = numbers(OPD_INTS(3, 32), OPD_FLOAT32, 2);
    const double i[2] = {1, 1};
    CHECK(!opd_addmm_full(opd_ones(OPD_INTS(3, 4), OPD_FLOAT32), x, opd_t(w), opd_value_complex(i), opd_value_complex(i)));
    CHECK(fails_with("without overflow"));
}
/* Products of batches with transposed weights, and slices of transposed weights: copies keep blocks along their dim. */
TEST(batches_of_transposed_weights) {
    OPD_SCOPED;
    const bool was = opd_exact_blocks_set(true);
    static const int64_t at[3] = {5, 1, 1};
    opd_tensor *const w = weight_of(OPD_INTS(2, 3, 8, 64), OPD_Q8_0, 1), *const f = opd_dequantize(w);
    opd_tensor *const x = numbers(OPD_INTS(4, 1, 3, 5, 64), OPD_FLOAT32, 2), *const index = opd_tensor_from(at, OPD_INTS(3), OPD_INT64);
    opd_tensor *const y = numbers(OPD_INTS(6, 1, 5, 64), OPD_FLOAT32, 3), *const z = numbers(OPD_INTS(3, 2, 5, 64), OPD_FLOAT32, 4);
    CHECK(apart(opd_matmul(x, opd_transpose(w, 2, 3)), opd_matmul(x, opd_transpose(f, 2, 3))) < 1e-5);
    CHECK(apart(opd_matmul(y, opd_transpose(opd_select(w, 0, 1), 1, 2)), opd_matmul(y, opd_transpose(opd_select(f, 0, 1), 1, 2))) < 1e-5);
    CHECK(apart(opd_matmul(z, opd_transpose(opd_transpose(w, 0, 1), 2, 3)),
                opd_matmul(z, opd_transpose(opd_transpose(f, 0, 1), 2, 3))) < 1e-5);
    CHECK(apart(opd_matmul(opd_transpose(opd_matmul(x, opd_transpose(f, 2, 3)), 3, 4), x),
                opd_matmul(opd_transpose(opd_matmul(x, opd_transpose(w, 2, 3)), 3, 4), x)) < 1e-5);
    for (int dim = 0; dim < 4; dim++) {
        opd_tensor *const some = opd_index_select(opd_transpose(w, 2, 3), dim, opd_remainder_Scalar(index, OPD_V(2)));
        if (dim == 2) { CHECK(!some && fails_with("cannot be cut")); continue; }
        CHECK(some && opd_equal(opd_dequantize(some), opd_index_select(opd_transpose(f, 2, 3), dim, opd_remainder_Scalar(index, OPD_V(2)))));
    }
    OPD_FAKE_MODE {
        opd_tensor *const fake = opd_index_select(opd_transpose(opd_fake_tensor(w), 2, 3), 3, opd_fake_tensor(index));
        CHECK(fake && opd_size(fake, 3) == 3 && opd_strides(fake)[2] == 1);
    }
    (void)opd_exact_blocks_set(was);
    CHECK_OK();
}
static int looked_up(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_embedding(in[0], in[1]);
    return out[0] ? 1 : -1;
}
/* vmap over the weight of an embedding gives floats, as the plain call does. */
TEST(embeddings_of_each_example) {
    OPD_SCOPED;
    opd_tensor *const w = weight_of(OPD_INTS(3, 10, 32), OPD_Q8_0, 1), *const rows = opd_arange(OPD_V(4), OPD_INT64);
    opd_tensor *const in[] = {w, rows};
    opd_tensor *out[1];
    const int dims[] = {0, OPD_NO_DIM};
    opd_vmap_options options;
    memset(&options, 0, sizeof options);
    options.in_dims = dims;
    options.nin_dims = 2;
    CHECK_INT(opd_vmap(looked_up, NULL, in, 2, &options, out, 1), 1);
    CHECK(out[0] && opd_dtype(out[0]) == OPD_FLOAT32);
    CHECK(apart(out[0], opd_narrow(opd_dequantize(w), 1, 0, 4)) == 0);
    CHECK_OK();
}
CHECK_MAIN()
