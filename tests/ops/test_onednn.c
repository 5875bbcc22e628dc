/* Operators of oneDNN for quantised layers: their values are among the calls of golden/calls.txt.  Here: operations with
   parameters after layers (golden/onednn_ends.npz, made by golden/make_onednn_ends.py), what other mechanisms make of
   the operators, and layers that are large enough for integers. */
#include "../check.h"

static opd_tensor *codes(opd_ints sizes, opd_scalar_type dtype, int seed) {
    opd_tensor *x = opd_tensor_new(sizes, dtype);
    for (int64_t i = 0; i < opd_numel(x); i++) { ((uint8_t *)opd_data(x))[i] = (uint8_t)((i * 7919 + seed * 31) % 253); }
    return x;
}
static opd_tensor *scales(int64_t n) {
    return opd_add_Scalar(opd_mul_Scalar(opd_arange(opd_value_int(n), OPD_FLOAT32), OPD_V(1e-5)), OPD_V(1e-4));
}
/* The arguments of qlinear_pointwise, for a result of dtype. */
static int linear_args(opd_value *v, int64_t m, int64_t n, int64_t k, opd_scalar_type dtype, const char *after) {
    opd_tensor *w = codes(OPD_INTS(n, k), OPD_INT8, 3);
    const opd_value none = opd_value_none();
    const bool floats = dtype == OPD_FLOAT32;
    opd_value pack[2];
    pack[0] = opd_value_tensor(w);
    pack[1] = none;
    v[0] = opd_value_tensor(codes(OPD_INTS(m, k), OPD_UINT8, 1));
    v[1] = opd_value_double(0.02);
    v[2] = opd_value_int(117);
    v[3] = opd_value_tensor(opd_call_op(opd_find("onednn::qlinear_prepack"), pack, 2));
    v[4] = opd_value_tensor(scales(n));
    v[5] = opd_value_tensor(opd_zeros(OPD_INTS(n), OPD_INT64));
    v[6] = opd_value_tensor(opd_sub_Scalar(scales(n), OPD_V(3e-4)));
    v[7] = opd_value_double(floats ? 1 : 0.03);
    v[8] = opd_value_int(floats ? 0 : 4);
    v[9] = opd_value_int(dtype);
    v[10] = opd_value_str(after);
    v[11] = opd_value_list(NULL, 0);
    v[12] = opd_value_str("none");
    return 13;
}
static opd_tensor *wide(opd_tensor *x, int zero) {
    return opd_sub_Scalar(opd_to_dtype(x, OPD_FLOAT32), opd_value_int(zero));
}
static bool near(opd_tensor *got, opd_tensor *want, double most) {
    const double off = got && want ? opd_item_f64(opd_max(opd_abs(opd_sub(opd_to_dtype(got, OPD_FLOAT32), want)))) : 1e9;
    if (!(off <= most)) { printf("off by %g\n", off); }
    return off <= most;
}
TEST(linear_layers_equal_layers_of_floats) {
    static const int64_t sizes[][3] = {{1, 3, 8}, {3, 70, 200}, {40, 33, 513}};
    for (int i = 0; i < 3; i++) {
        for (int form = 0; form < 4; form++) {
            OPD_SCOPED;
            opd_value v[13];
            const bool relu = form & 1, floats = form & 2;
            const int n = linear_args(v, sizes[i][0], sizes[i][1], sizes[i][2], floats ? OPD_FLOAT32 : OPD_UINT8,
                                      relu ? "relu" : "none");
            opd_tensor *got = opd_call_op(opd_find("onednn::qlinear_pointwise"), v, n);
            opd_tensor *w = opd_mul(wide(opd_t(v[3].u.t), 0), opd_unsqueeze(v[4].u.t, 1));
            opd_tensor *y = opd_linear(opd_mul_Scalar(wide(v[0].u.t, 117), OPD_V(0.02)), w, v[6].u.t);
            if (relu) { y = opd_relu(y); }
            CHECK(floats || opd_dtype(got) == OPD_UINT8);
            if (!floats) { y = opd_clamp(opd_add_Scalar(opd_div_Scalar(y, OPD_V(0.03)), OPD_V(4)), OPD_V(0), OPD_V(255)); }
            CHECK(near(got, y, floats ? 1e-5 * opd_item_f64(opd_max(opd_abs(y))) : 0.501));
            CHECK_OK();
        }
    }
}
/* gelu and silu of floats, and the codes of them, with and without a sum: as by operators called one by one, which
   compute them if a derivative is wanted. */
TEST(functions_follow_a_layer_without_another_pass) {
    static const char *const names[] = {"gelu", "gelu", "swish"};
    for (int form = 0; form < 12; form++) {
        OPD_SCOPED;
        opd_value v[13], plain[13], args[6];
        const bool floats = form & 1, few = form & 2;
        const int at = form / 4, n = linear_args(v, few ? 3 : 33, 70, 200, floats ? OPD_FLOAT32 : OPD_UINT8, names[at]);
        v[12] = opd_value_str(at == 1 ? "tanh" : "none");
        memcpy(plain, v, sizeof v);
        plain[7] = opd_value_double(1);
        plain[8] = opd_value_int(0);
        plain[9] = opd_value_int(OPD_FLOAT32);
        plain[10] = opd_value_str("none");
        opd_tensor *y = opd_call_op(opd_find("onednn::qlinear_pointwise"), plain, n);
        opd_tensor *const got = opd_call_op(opd_find("onednn::qlinear_pointwise"), v, n);
        y = at == 2 ? opd_silu(y) : opd_gelu_full(y, at ? "tanh" : "none");
        args[0] = opd_value_tensor(y);
        args[1] = opd_value_double(0.03);
        args[2] = opd_value_int(4);
        args[3] = opd_value_int(0);
        args[4] = opd_value_int(255);
        args[5] = opd_value_int(OPD_UINT8);
        opd_tensor *const want = floats ? y : opd_call_op(opd_find("quantized_decomposed::quantize_per_tensor"), args, 6);
        CHECK(got && want && opd_dtype(got) == opd_dtype(want) && opd_equal(got, want));
        CHECK(opd_tensor_set_requires_grad(v[6].u.t, true) != NULL);
        opd_tensor *const other = opd_call_op(opd_find("onednn::qlinear_pointwise"), v, n);
        CHECK(near(other, opd_to_dtype(want, OPD_FLOAT32), floats ? 2e-6 * opd_item_f64(opd_max(opd_abs(want))) : 1));
        CHECK_OK();
    }
}
/* What may follow a layer; the first CONVOLUTIONS rows may also follow a convolution. */
enum { CONVOLUTIONS = 6, ENDS = 11 };
static const struct { const char *name, *way; int count; double numbers[2]; } ends[ENDS] = {
    {"none", "", 0, {0, 0}}, {"relu", "", 0, {0, 0}}, {"hardtanh", "", 2, {-0.5, 1.5}}, {"hardtanh", "", 2, {0, 6}},
    {"hardswish", "", 0, {0, 0}}, {"swish", "", 0, {0, 0}}, {"leaky_relu", "", 1, {0.25, 0}},
    {"leaky_relu", "", 1, {-2, 0}}, {"tanh", "", 0, {0, 0}}, {"gelu", "none", 0, {0, 0}}, {"gelu", "tanh", 0, {0, 0}}};
/* Compares a layer with PyTorch's result: floats, bfloat16 within their last digits, and codes, of which one in 200 may
   be rounded to the next one. */
static void check_end(const opd_tensor_file *file, const char *kind, opd_value *v, int n, int at, int end, int form) {
    static const double scale[4] = {1, 1, 0.05, 0.05}, room[4] = {2e-5, 0.04, 1, 1};
    static const int zero[4] = {0, 0, 100, -3}, dtype[4] = {OPD_FLOAT32, OPD_BFLOAT16, OPD_UINT8, OPD_INT8};
    char name[40], key[40];
    opd_value numbers[2];
    for (int i = 0; i < 2; i++) { numbers[i] = opd_value_double(ends[end].numbers[i]); }
    v[at] = opd_value_double(scale[form]);
    v[at + 1] = opd_value_int(zero[form]);
    v[at + 2] = opd_value_int(dtype[form]);
    v[at + 3] = opd_value_str(ends[end].name);
    v[at + 4] = opd_value_list(numbers, ends[end].count);
    v[at + 5] = opd_value_str(ends[end].way);
    (void)snprintf(name, sizeof name, "onednn::q%s_pointwise", kind);
    (void)snprintf(key, sizeof key, "%s_%d_%d", kind, end, form);
    opd_tensor *const got = opd_call_op(opd_find(name), v, n), *const want = opd_tensor_file_get(file, key);
    CHECK_OR_RETURN(got && want);
    CHECK(opd_dtype(got) == (opd_scalar_type)dtype[form] && near(got, want, room[form]));
    const int64_t off = opd_item_i64(opd_sum(opd_ne(opd_to_dtype(got, OPD_FLOAT32), want)));
    CHECK(form < 2 || 200 * off <= opd_numel(want));
}
TEST(operations_with_parameters_give_what_pytorch_gives) {
    OPD_SCOPED;
    char path[1100];
    static const int64_t ones[2] = {1, 1};
    const char *const slash = strrchr(__FILE__, '/');
    (void)snprintf(path, sizeof path, "%.*s../golden/onednn_ends.npz", slash ? (int)(slash - __FILE__ + 1) : 0, __FILE__);
    opd_tensor_file *file = opd_tensor_file_open(path);
    CHECK_OR_RETURN(file != NULL);
    opd_value v[13], c[17], pack[2];
    pack[0] = opd_value_tensor(opd_tensor_file_get(file, "w"));
    pack[1] = opd_value_none();
    v[0] = opd_value_tensor(opd_tensor_file_get(file, "x"));
    v[1] = opd_value_double(0.02);
    v[2] = opd_value_int(120);
    v[3] = opd_value_tensor(opd_call_op(opd_find("onednn::qlinear_prepack"), pack, 2));
    v[4] = opd_value_tensor(opd_tensor_file_get(file, "s"));
    v[5] = opd_value_tensor(opd_zeros(OPD_INTS(19), OPD_INT64));
    v[6] = opd_value_tensor(opd_tensor_file_get(file, "b"));
    for (int i = 0; i < 3; i++) { c[i] = v[i]; }
    c[0] = opd_value_tensor(opd_tensor_file_get(file, "image"));
    c[3] = opd_value_tensor(opd_tensor_file_get(file, "kernel"));
    c[4] = opd_value_tensor(opd_tensor_file_get(file, "scales"));
    c[5] = opd_value_tensor(opd_zeros(OPD_INTS(21), OPD_INT64));
    c[6] = opd_value_tensor(opd_tensor_file_get(file, "bias"));
    for (int i = 7; i < 10; i++) { c[i] = opd_value_ints(ones, 2); }
    c[10] = opd_value_int(1);
    for (int end = 0; end < ENDS; end++) {
        for (int form = 0; form < 4; form++) {
            check_end(file, "linear", v, 13, 7, end, form);
            if (end < CONVOLUTIONS) { check_end(file, "conv", c, 17, 11, end, form); }
        }
    }
    opd_tensor_file_close(file);
    CHECK_OK();
}
TEST(packed_weights_are_tensors_of_their_own) {
    OPD_SCOPED;
    opd_value v[13];
    (void)linear_args(v, 2, 3, 8, OPD_FLOAT32, "none");
    CHECK_INT(opd_size(v[3].u.t, 0), 8);
    CHECK_INT(opd_size(v[3].u.t, 1), 3);
    CHECK(opd_call_op(opd_find("aten::zero_"), v + 3, 1) != NULL);
    CHECK_OK();
}
TEST(operators_pass_their_checks) {
    OPD_SCOPED;
    opd_value v[17], conv[17], two[9];
    static const int64_t ones[2] = {1, 1};
    int n = linear_args(v, 3, 5, 16, OPD_FLOAT32, "relu");
    CHECK_INT(opd_opcheck(opd_find("onednn::qlinear_pointwise"), v, n, NULL), 0);
    v[7] = opd_value_double(0.03);
    v[9] = opd_value_int(OPD_UINT8);
    CHECK_INT(opd_opcheck(opd_find("onednn::qlinear_pointwise"), v, n, NULL), 0);
    for (int i = 0; i < 3; i++) { conv[i] = v[i]; }
    conv[0] = opd_value_tensor(codes(OPD_INTS(2, 4, 6, 5), OPD_UINT8, 1));
    conv[3] = opd_value_tensor(codes(OPD_INTS(5, 4, 3, 3), OPD_INT8, 2));
    for (int i = 4; i < 7; i++) { conv[i] = v[i]; }
    for (int i = 7; i < 10; i++) { conv[i] = opd_value_ints(ones, 2); }
    conv[10] = opd_value_int(1);
    for (int i = 11; i < 17; i++) { conv[i] = v[i - 4]; }
    CHECK_INT(opd_opcheck(opd_find("onednn::qconv_pointwise"), conv, 17, NULL), 0);
    two[0] = two[3] = opd_value_tensor(codes(OPD_INTS(3, 5), OPD_UINT8, 1));
    two[1] = two[4] = two[6] = opd_value_double(0.1);
    two[2] = two[5] = two[7] = opd_value_int(9);
    two[8] = opd_value_int(OPD_UINT8);
    CHECK_INT(opd_opcheck(opd_find("onednn::qadd.tensor"), two, 9, NULL), 0);
    CHECK_INT(opd_opcheck(opd_find("onednn::qmul.tensor"), two, 9, NULL), 0);
    CHECK_OK();
}
/* A bias has the gradient that the layer of floats gives it. */
TEST(a_bias_has_a_gradient) {
    OPD_SCOPED;
    opd_value v[13];
    const int n = linear_args(v, 3, 5, 16, OPD_FLOAT32, "none");
    v[6] = opd_value_tensor(opd_ones(OPD_INTS(5), OPD_FLOAT32));
    CHECK_OR_RETURN(opd_tensor_set_requires_grad(v[6].u.t, true) != NULL);
    opd_tensor *y = opd_call_op(opd_find("onednn::qlinear_pointwise"), v, n);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(near(opd_tensor_grad(v[6].u.t), opd_full(OPD_INTS(5), OPD_V(3), OPD_FLOAT32), 0));
    CHECK_OK();
}

/* Codes of 8-bit floats that are added have a scale, too. */
TEST(sums_of_float8_have_a_scale) {
    OPD_SCOPED;
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    const opd_value text = opd_value_str("none"), none = opd_value_none();
    opd_tensor *x = opd_to_dtype(opd_sub_Scalar(opd_to_dtype(codes(OPD_INTS(6, 4), OPD_UINT8, 1), OPD_FLOAT32), OPD_V(99)),
                                 OPD_FLOAT8_E4M3FN);
    opd_tensor *w = opd_to_dtype(scales(12), OPD_FLOAT32);
    w = opd_to_dtype(opd_reshape(opd_mul_Scalar(w, OPD_V(1e3)), OPD_INTS(3, 4)), OPD_FLOAT8_E4M3FN);
    opd_tensor *other = opd_to_dtype(opd_reshape(opd_arange(opd_value_int(18), OPD_FLOAT32), OPD_INTS(6, 3)),
                                     OPD_FLOAT8_E4M3FN);
    opd_tensor *y = opd_linear(opd_to_dtype(x, OPD_FLOAT32), opd_to_dtype(w, OPD_FLOAT32), NULL);
    y = opd_mul_Scalar(opd_add(y, opd_mul_Scalar(opd_to_dtype(other, OPD_FLOAT32), OPD_V(0.25))), OPD_V(2));
    y = opd_to_dtype(opd_to_dtype(y, OPD_FLOAT8_E4M3FN), OPD_FLOAT32);
    opd_value v[18], c[22];
    const opd_value head[7] = {opd_value_tensor(x), opd_value_double(1), opd_value_int(0), opd_value_tensor(opd_t(w)),
                               opd_value_tensor(opd_ones(OPD_INTS(1), OPD_FLOAT32)),
                               opd_value_tensor(opd_zeros(OPD_INTS(1), OPD_INT64)), opd_value_tensor(other)};
    const opd_value tail[10] = {opd_value_double(0.5), opd_value_int(0), opd_value_int(OPD_FLOAT8_E4M3FN),
                                opd_value_double(0.25), opd_value_int(0), opd_value_str("sum"), opd_value_double(1), text,
                                opd_value_list(NULL, 0), text};
    for (int i = 0; i < 7; i++) { v[i] = c[i] = head[i]; }
    for (int i = 0; i < 10; i++) { v[8 + i] = c[12 + i] = tail[i]; }
    v[7] = none;
    CHECK(near(opd_call_op(opd_find("onednn::qlinear_pointwise.binary"), v, 18), y, 0));
    opd_tensor *image = opd_reshape(x, OPD_INTS(6, 4, 1, 1)), *sum = opd_clone(opd_reshape(other, OPD_INTS(6, 3, 1, 1)));
    c[0] = opd_value_tensor(image);
    c[3] = opd_value_tensor(opd_reshape(w, OPD_INTS(3, 4, 1, 1)));
    c[6] = opd_value_tensor(sum);
    c[7] = none;
    c[8] = c[10] = opd_value_ints(ones, 2);
    c[9] = opd_value_ints(zeros, 2);
    c[11] = opd_value_int(1);
    CHECK(near(opd_call_op(opd_find("onednn::qconv2d_pointwise.binary"), c, 22), opd_reshape(y, OPD_INTS(6, 3, 1, 1)), 0));
    CHECK(near(sum, opd_reshape(y, OPD_INTS(6, 3, 1, 1)), 0));
    CHECK_OK();
}
/* Codes lie as floats do: channels-last tensors, transposed ones, and parts of tensors. */
TEST(codes_keep_the_order_of_their_dims) {
    for (int form = 0; form < 4; form++) {
        OPD_SCOPED;
        opd_tensor *x = codes(OPD_INTS(4, 6, 8, 5), OPD_UINT8, 1);
        x = form == 0 ? opd_permute(x, OPD_INTS(0, 3, 1, 2)) : form == 1 ? opd_permute(x, OPD_INTS(3, 2, 1, 0))
            : form == 2 ? opd_slice(x, 1, opd_value_int(1), opd_value_int(5), 2) : opd_permute(x, OPD_INTS(0, 2, 3, 1));
        opd_value two[9], q[7];
        for (int i = 0; i < 6; i += 3) {
            two[i] = opd_value_tensor(x);
            two[i + 1] = opd_value_double(0.01);
            two[i + 2] = opd_value_int(3);
        }
        two[6] = opd_value_double(0.05);
        two[7] = opd_value_int(9);
        two[8] = opd_value_int(OPD_UINT8);
        CHECK_INT(opd_opcheck(opd_find("onednn::qadd.tensor"), two, 9, NULL), 0);
        for (int i = 1; i < 3; i++) { q[i] = two[5 + i]; }
        q[0] = opd_value_tensor(x);
        q[3] = opd_value_int(0);
        q[4] = opd_value_int(255);
        q[5] = two[8];
        CHECK_INT(opd_opcheck(opd_find("quantized_decomposed::dequantize_per_tensor"), q, 6, NULL), 0);
        opd_tensor *wide = opd_to_dtype(x, OPD_FLOAT32), *floats = opd_sub_Scalar(wide, OPD_V(100));
        q[0] = opd_value_tensor(form == 2 ? opd_slice(opd_to_dtype(codes(OPD_INTS(4, 6), OPD_UINT8, 1), OPD_FLOAT32), 1,
                                                      opd_value_int(1), opd_value_int(5), 2) : floats);
        CHECK_INT(opd_opcheck(opd_find("quantized_decomposed::quantize_per_tensor"), q, 6, NULL), 0);
        opd_tensor *got = opd_call_op(opd_find("quantized_decomposed::quantize_per_tensor"), q, 6);
        opd_tensor *want = opd_clamp(opd_add_Scalar(opd_round(opd_mul_Scalar(q[0].u.t, OPD_V(20))), OPD_V(9)), OPD_V(0),
                                     OPD_V(255));
        CHECK(near(got, want, 0));
        q[1] = opd_value_tensor(opd_add_Scalar(scales(opd_size(q[0].u.t, 0)), OPD_V(0.05)));
        q[2] = opd_value_tensor(opd_zeros(OPD_INTS(opd_size(q[0].u.t, 0)), OPD_INT64));
        q[6] = q[5]; q[5] = q[4]; q[4] = q[3]; q[3] = opd_value_int(0);
        CHECK_INT(opd_opcheck(opd_find("quantized_decomposed::quantize_per_channel"), q, 7, NULL), 0);
        got = opd_call_op(opd_find("quantized_decomposed::quantize_per_channel"), q, 7);
        opd_tensor *each = opd_reciprocal(q[1].u.t);
        while (opd_ndim(each) < opd_ndim(q[0].u.t)) { each = opd_unsqueeze(each, -1); }
        CHECK(near(got, opd_clamp(opd_round(opd_mul(q[0].u.t, each)), OPD_V(0), OPD_V(255)), 0));
        CHECK_OK();
    }
}

/* Autocast changes no layer, as in PyTorch: products stay as exact as they are, and results keep their dtypes. */
TEST(autocast_lowers_no_layer) {
    static const char *const names[3] = {"onednn::qlinear_pointwise", "onednn::linear_dynamic_fp16", "aten::_grouped_mm"};
    OPD_SCOPED;
    opd_value v[3][13];
    const int n[3] = {linear_args(v[0], 3, 5, 16, OPD_FLOAT32, "gelu"), 3, 2};
    opd_tensor *const x = opd_mul_Scalar(wide(codes(OPD_INTS(4, 16), OPD_UINT8, 1), 100), OPD_V(0.0123));
    opd_tensor *const w = opd_mul_Scalar(wide(codes(OPD_INTS(16, 5), OPD_UINT8, 2), 100), OPD_V(0.0123));
    v[1][0] = opd_value_tensor(x);
    v[1][1] = opd_value_tensor(opd_to_dtype(w, OPD_FLOAT16));
    v[1][2] = opd_value_none();
    v[2][0] = opd_value_tensor(opd_to_dtype(opd_unsqueeze(x, 0), OPD_BFLOAT16));
    v[2][1] = opd_value_tensor(opd_to_dtype(opd_unsqueeze(opd_contiguous(opd_narrow(w, 0, 0, 16)), 0), OPD_BFLOAT16));
    for (int i = 0; i < 3; i++) {
        for (int k = n[i]; i == 2 && k < 5; k++) { v[i][k] = opd_value_none(); }
        opd_tensor *const want = opd_call_op(opd_find(names[i]), v[i], i == 2 ? 5 : n[i]);
        opd_autocast_region region = opd_autocast_begin(OPD_CPU, i == 2 ? OPD_FLOAT16 : OPD_BFLOAT16, true, -1);
        opd_tensor *const got = opd_call_op(opd_find(names[i]), v[i], i == 2 ? 5 : n[i]);
        opd_autocast_end(&region);
        CHECK_OR_RETURN(got && want);
        CHECK_INT(opd_dtype(got), opd_dtype(want));
        CHECK(near(got, opd_to_dtype(want, OPD_FLOAT32), i ? 0 : 1e-6));
        CHECK_OK();
    }
}
/* Calls an operator, which has to fail with an error that contains `text`. */
static void check_fails(const char *name, const opd_value *v, int n, const char *text) {
    opd_tensor *const y = opd_call_op(opd_find(name), v, n);
    const bool right = !y && !opd_ok() && strstr(opd_error_message(), text);
    CHECK(right);
    if (!right) { printf("'%s', expected '%s'\n", opd_error_message(), text); }
    opd_error_clear();
}
/* Mistakes that golden/calls.txt does not have. */
TEST(mistakes) {
    OPD_SCOPED;
    static const int64_t ones[3] = {1, 1, 1};
    const opd_value none[2] = {opd_value_none(), opd_value_none()};
    const opd_value three[3] = {opd_value_double(-1), opd_value_double(1), opd_value_double(-2)}, *const two = three;
    opd_value v[13], c[17], pack[9];
    const int n = linear_args(v, 3, 5, 16, OPD_FLOAT32, "hardtanh");
    v[11] = opd_value_list(two, 2);
    CHECK(opd_call_op(opd_find("onednn::qlinear_pointwise"), v, n) != NULL);
    v[11] = opd_value_list(none, 2);
    check_fails("onednn::qlinear_pointwise", v, n, "hardtanh needs two numbers");
    v[11] = opd_value_list(three, 3);
    check_fails("onednn::qlinear_pointwise", v, n, "hardtanh needs two numbers, min_val and max_val, but got 3");
    v[11] = opd_value_list(two + 1, 2);
    check_fails("onednn::qlinear_pointwise", v, n, "hardtanh needs min_val of at most max_val, but got 1 and -2");
    v[10] = opd_value_str("leaky_relu");
    check_fails("onednn::qlinear_pointwise", v, n, "leaky_relu needs one number, but got 2");
    v[11] = opd_value_list(none, 1);
    check_fails("onednn::qlinear_pointwise", v, n, "its negative slope");
    v[10] = opd_value_str("none");
    for (int i = 0; i < 7; i++) { c[i] = v[i]; }
    for (int i = 7; i < 10; i++) { c[i] = opd_value_ints(ones, 2); }
    c[10] = opd_value_int(1);
    for (int i = 11; i < 17; i++) { c[i] = v[i - 4]; }
    c[0] = opd_value_tensor(codes(OPD_INTS(2, 4, 6, 5), OPD_UINT8, 1));
    c[3] = opd_value_tensor(codes(OPD_INTS(5, 4, 3, 3), OPD_INT8, 2));
    CHECK(opd_call_op(opd_find("onednn::qconv_pointwise"), c, 17) != NULL);
    c[8] = opd_value_ints(ones, 3);
    check_fails("onednn::qconv_pointwise", c, 17, "padding must have 2 numbers, but has 3");
    c[0] = opd_value_tensor(codes(OPD_INTS(4, 6), OPD_UINT8, 1));
    check_fails("onednn::qconv_pointwise", c, 17, "qx must have 3, 4 or 5 dims");
    pack[0] = opd_value_tensor(codes(OPD_INTS(4, 8, 2), OPD_INT8, 1));
    pack[1] = opd_value_tensor(opd_ones(OPD_INTS(3), OPD_FLOAT32));
    pack[2] = opd_value_double(1);
    pack[3] = opd_value_int(0);
    for (int i = 4; i < 7; i++) { pack[i] = opd_value_ints(ones, 1); }
    pack[7] = opd_value_int(3);
    pack[8] = none[0];
    check_fails("onednn::qconv_prepack", pack, 9, "groups must divide its first size");
    pack[7] = opd_value_int(1);
    check_fails("onednn::qconv_prepack", pack, 9, "w_scales must have 1 or 4 elements");
    CHECK_OK();
}
CHECK_MAIN()
