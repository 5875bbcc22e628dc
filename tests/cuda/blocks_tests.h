/* Tests of weights in blocks of few bits on a GPU, of products of bytes, and of floats of 8 bits.  Part of test_cuda.c. */

static const opd_scalar_type block_dtypes[] = {
    OPD_WEIGHT_F16, OPD_WEIGHT_BF16, OPD_Q4_0, OPD_Q4_1, OPD_Q5_0, OPD_Q5_1, OPD_Q8_0, OPD_Q8_1, OPD_Q8_K, OPD_Q1_0, OPD_Q2_0, OPD_IQ4_NL,
    OPD_MXFP4, OPD_NVFP4, OPD_Q2_K, OPD_Q3_K, OPD_Q4_K, OPD_Q5_K, OPD_Q6_K, OPD_IQ4_XS, OPD_TQ2_0, OPD_TQ1_0};
enum { BLOCK_DTYPES = (int)(sizeof block_dtypes / sizeof *block_dtypes), INT_DTYPES = 16 };
/* Integers of 1 to 8 bits with and without zero points, in groups of 8, 64 and 512. */
static opd_scalar_type block_dtype(int k) {
    static const int64_t groups[] = {8, 64, 512};
    if (k < BLOCK_DTYPES) { return block_dtypes[k]; }
    k -= BLOCK_DTYPES;
    return opd_dtype_int_blocks(k / 2 + 1, groups[k % 3], k % 2 != 0);
}
/* A weight in blocks on the host and on the GPU. */
static void weight_of(opd_ints sizes, opd_scalar_type dtype, opd_tensor **weight /*[2]*/) {
    weight[0] = opd_quantize_blocks(opd_randn(sizes, OPD_FLOAT32), dtype);
    weight[1] = opd_to_device(weight[0], gpu(-1), dtype);
}
TEST(numbers_of_blocks) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < BLOCK_DTYPES + INT_DTYPES; k++) {
        OPD_SCOPE {
            static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16};
            opd_tensor *weight[2], *index = opd_randint(13, OPD_INTS(2, 5), k % 2 ? OPD_INT32 : OPD_INT64);
            const int64_t before = opd_cpu_fallback_count();
            weight_of(OPD_INTS(13, 512), block_dtype(k), weight);
            for (int t = 0; t < 3; t++) {         /* to the bit */
                as_on_host(opd_dtype_name(block_dtype(k)), opd_to_dtype(weight[1], types[t]), opd_to_dtype(weight[0], types[t]), 0);
            }
            as_on_host("rows of them", opd_embedding(weight[1], to_gpu(index)), opd_embedding(weight[0], index), 0);
            as_on_host("some of them", opd_dequantize(opd_narrow(weight[1], 0, 3, 7)), opd_dequantize(opd_narrow(weight[0], 0, 3, 7)), 0);
            CHECK_INT(opd_cpu_fallback_count(), before);
        }
    }
    CHECK_OK();
}
/* Products of few and of many rows by a weight, its transpose, and with the weight first; with and without a bias. */
TEST(products_of_blocks) {
    static const int64_t rows[] = {1, 3, 8, 20};
    const bool was = opd_exact_blocks_set(true);
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < BLOCK_DTYPES + INT_DTYPES; k++) {
        for (int t = 0; t < 3 && opd_ok(); t++) {
            OPD_SCOPE {
                static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16};
                const opd_scalar_type type = types[t];
                const int64_t m = rows[(k + t) % 4], before = opd_cpu_fallback_count();
                const double near = t ? 2 * rounding(type) : 1e-5;
                opd_tensor *weight[2], *x[2], *g[2], *bias[2];
                weight_of(OPD_INTS(13, 512), block_dtype(k), weight);
                x[0] = normal_of(OPD_INTS(m, 512), type); x[1] = to_gpu(x[0]);
                g[0] = normal_of(OPD_INTS(m, 13), type); g[1] = to_gpu(g[0]);
                bias[0] = normal_of(OPD_INTS(13), type); bias[1] = to_gpu(bias[0]);
                opd_tensor *out[2][6];
                for (int i = 0; i < 2; i++) {
                    out[i][0] = opd_linear(x[i], weight[i], NULL);
                    out[i][1] = opd_linear(x[i], weight[i], bias[i]);
                    out[i][2] = opd_mm(g[i], weight[i]);
                    out[i][3] = opd_mm(weight[i], opd_t(x[i]));
                    out[i][4] = opd_mv(weight[i], opd_select(x[i], 0, 0));
                    out[i][5] = opd_bmm(opd_unsqueeze(x[i], 0), opd_transpose(opd_unsqueeze(weight[i], 0), 1, 2));
                }
                for (int i = 0; i < 6; i++) { as_on_host(opd_dtype_name(block_dtype(k)), out[1][i], out[0][i], near); }
                CHECK_INT(opd_cpu_fallback_count(), before);
            }
        }
    }
    (void)opd_exact_blocks_set(was);
    CHECK_OK();
}
/* Forms of products that need more than one kernel; strides; experts of a stack; gradients; float64, which runs on the
   CPU. */
TEST(products_of_blocks_in_all_forms) {
    const bool was = opd_exact_blocks_set(true);
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *stack[2], *x[2], *self[2], *out[2][8], *grads[2];
        weight_of(OPD_INTS(3, 70, 256), OPD_Q4_K, stack);
        x[0] = normal_of(OPD_INTS(256, 9), OPD_FLOAT32); self[0] = normal_of(OPD_INTS(9, 70), OPD_FLOAT32);
        for (int i = 0; i < 2; i++) {
            if (i) { x[1] = to_gpu(x[0]); self[1] = to_gpu(self[0]); }
            opd_tensor *const strided = opd_t(x[i]), *const weight = opd_select(stack[i], 0, 2), *const turned = opd_t(weight);
            out[i][0] = opd_addmm_full(self[i], strided, turned, OPD_V(0.5), OPD_V(2));
            out[i][1] = opd_addmm_full(opd_select(self[i], 0, 0), opd_narrow(strided, 0, 0, 2), turned, OPD_V(1), OPD_V(1));
            out[i][2] = opd_addmm_full(opd_narrow(self[i], 1, 0, 1), strided, turned, OPD_V(3), OPD_V(1));
            out[i][3] = opd_bmm(opd_expand(strided, OPD_INTS(3, 9, 256)), opd_transpose(stack[i], 1, 2));
            out[i][4] = opd_mm(opd_to_dtype(strided, OPD_FLOAT64), turned);
            out[i][5] = opd_index_select(weight, 0, opd_to_device(opd_arange_start(opd_value_int(1), opd_value_int(4), OPD_INT64), opd_tensor_device(weight), OPD_INT64));
            out[i][5] = opd_dequantize(out[i][5]);
            opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(strided), true);
            opd_tensor *sum = opd_sum(opd_mul(opd_linear(leaf, weight, NULL), self[i]));
            if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &grads[i])) { break; }
            out[i][6] = grads[i];
            out[i][7] = opd_mm(opd_narrow(strided, 0, 0, 0), turned);
        }
        for (int i = 0; i < 8 && opd_ok(); i++) { as_on_host("a form of a product", out[1][i], out[0][i], i == 4 ? 1e-12 : 1e-5); }
    }
    (void)opd_exact_blocks_set(was);
    CHECK_OK();
}
TEST(errors_of_blocks) {
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *weight[2], *x;
        weight_of(OPD_INTS(13, 512), OPD_Q8_0, weight);
        x = to_gpu(opd_randn(OPD_INTS(2, 512), OPD_FLOAT32));
        CHECK(!opd_mm(x, weight[1]));
        CHECK_ERROR(OPD_ERROR_SHAPE, "cannot be multiplied");
        CHECK(!opd_linear(to_host(x), weight[1], NULL));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "device");
        CHECK(!opd_linear(opd_to_device(opd_ones(OPD_INTS(2, 512), OPD_INT32), gpu(-1), OPD_INT32), weight[1], NULL));
        CHECK_ERROR(OPD_ERROR_DTYPE, "int32");
        if (opd_device_count(OPD_CUDA) > 1) {     /* the weight is on gpu(-1) */
            const opd_device other = opd_device_make(OPD_CUDA, opd_tensor_device(weight[1]).index == 0);
            opd_tensor *const both[2] = {weight[1], opd_to_device(weight[1], other, OPD_Q8_0)};
            CHECK(!opd_linear(opd_to_device(x, other, OPD_FLOAT32), weight[1], NULL));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "on the same device, but found at least two devices, cuda:");
            CHECK(!opd_embedding(weight[1], opd_to_device(opd_ones(OPD_INTS(2), OPD_INT64), other, OPD_INT64)));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "checking argument for argument indices in method aten::embedding");
            CHECK(!opd_cat(opd_tensors_of(both, 2), 0));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "same device");
        }
        (void)opd_embedding(weight[1], to_gpu(opd_full(OPD_INTS(2), opd_value_int(13), OPD_INT64)));
        if (opd_ok()) { (void)opd_device_synchronize(gpu(-1)); }
        CHECK_ERROR(OPD_ERROR_INDEX, "index 13 is out of bounds");
    }
    CHECK_OK();
}
/* On tensor cores or, if sizes are no multiples of 8 or a factor is uint8, not; strided factors; without elements. */
TEST(products_of_bytes) {
    static const int64_t sizes[][3] = {{17, 32, 24}, {1, 8, 8}, {5, 30, 8}, {20, 16, 7}, {3, 0, 8}, {0, 8, 8}};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 6 * 3; k++) {
        OPD_SCOPE {
            const int64_t *n = sizes[k / 3];
            const opd_scalar_type first = k % 3 == 2 ? OPD_UINT8 : OPD_INT8;
            opd_tensor *a = opd_to_dtype(opd_randint_low(k % 3 == 2 ? 0 : -128, 127, OPD_INTS(n[0], n[1]), OPD_INT64), first);
            opd_tensor *b = opd_to_dtype(opd_randint_low(-128, 127, k % 3 ? OPD_INTS(n[2], n[1]) : OPD_INTS(n[1], n[2]), OPD_INT64), OPD_INT8);
            opd_tensor *on[2] = {to_gpu(a), to_gpu(b)};
            if (k % 3) { b = opd_t(b); on[1] = opd_t(on[1]); }
            as_on_host("a product of bytes", opd__int_mm(on[0], on[1]), opd__int_mm(a, b), 0);
        }
    }
    CHECK(!opd__int_mm(opd_ones(OPD_INTS(2, 8), OPD_FLOAT32), opd_ones(OPD_INTS(8, 8), OPD_INT8)));
    opd_error_clear();
    CHECK(!opd__int_mm(to_gpu(opd_ones(OPD_INTS(2, 8), OPD_FLOAT32)), to_gpu(opd_ones(OPD_INTS(8, 8), OPD_INT8))));
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected self to be int8 or uint8, but got float32");
}
/* All codes of floats of 8 bits, and numbers of all sizes, to the bit; also of strided tensors; products with scales. */
TEST(floats_of_8_bits) {
    static const opd_scalar_type eights[] = {OPD_FLOAT8_E5M2, OPD_FLOAT8_E4M3FN, OPD_FLOAT8_E5M2FNUZ, OPD_FLOAT8_E4M3FNUZ, OPD_FLOAT8_E8M0FNU};
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 15; k++) {
        OPD_SCOPE {
            const opd_scalar_type eight = eights[k / 3], type = types[k % 3];
            opd_tensor *codes = opd_view_dtype(opd_to_dtype(opd_arange(opd_value_int(256), OPD_INT64), OPD_UINT8), eight);
            opd_tensor *on = opd_to_dtype(to_gpu(codes), type), *x;
            CHECK(opd_tensor_device(on).type == OPD_CUDA);
            opd_tensor *odd = opd_narrow(to_gpu(codes), 0, 3, 102);
            const long before = launches();
            odd = opd_to_dtype(odd, type);
            CHECK(!opd_emu_count || launches() - before == 1);
            as_on_host("numbers at an odd address", odd, opd_to_dtype(opd_narrow(codes, 0, 3, 102), type), 0);
            CHECK(opd_equal(opd_view_dtype(to_host(on), type == OPD_FLOAT32 ? OPD_INT32 : OPD_INT16), opd_view_dtype(opd_to_dtype(codes, type), type == OPD_FLOAT32 ? OPD_INT32 : OPD_INT16)));
            x = opd_mul(opd_randn(OPD_INTS(7, 143), OPD_FLOAT32), opd_exp(opd_mul_Scalar(opd_randn(OPD_INTS(7, 143), OPD_FLOAT32), opd_value_double(6))));
            (void)opd_fill_(opd_narrow(x, 1, 0, 1), opd_value_double(k % 2 ? INFINITY : NAN));
            x = opd_to_dtype(x, type);
            if (k % 2) { x = opd_t(x); }
            CHECK(opd_equal(opd_view_dtype(opd_contiguous(to_host(opd_to_dtype(to_gpu(x), eight))), OPD_UINT8), opd_view_dtype(opd_contiguous(opd_to_dtype(x, eight)), OPD_UINT8)));
        }
    }
    OPD_SCOPE {
        opd_tensor *a = opd_to_dtype(opd_randn(OPD_INTS(16, 32), OPD_FLOAT32), OPD_FLOAT8_E4M3FN), *b = opd_t(opd_to_dtype(opd_randn(OPD_INTS(16, 32), OPD_FLOAT32), OPD_FLOAT8_E4M3FN));
        opd_tensor *s = opd_full(OPD_INTS(1), opd_value_double(0.5), OPD_FLOAT32);
        opd_tensor *got = opd__scaled_mm_full(to_gpu(a), to_gpu(b), to_gpu(s), to_gpu(s), NULL, NULL, opd_value_int(OPD_FLOAT32), false);
        as_on_host("a product with scales", got, opd__scaled_mm_full(a, b, s, s, NULL, NULL, opd_value_int(OPD_FLOAT32), false), 1e-5);
    }
    CHECK_OK();
}
