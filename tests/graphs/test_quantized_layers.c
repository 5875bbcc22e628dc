/* Layers of quantised models: opd_graph_fuse_quantized replaces them by operators that compute with integers or convert
   a few weights at a time.  Both give equal results; gradients, vmap and shapes without data work; layers whose codes
   are written stay. */
#include "../../opdispatch.h"
#include "../check.h"

#define QD "quantized_decomposed::"
#define AO "torchao::"
static opd_tensor *numbers(opd_ints sizes, int seed) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; i < opd_numel(x); i++) {
        opd_data_f32(x)[i] = (float)((i * 7919 + seed * 104729) % 1009) / 504 - 1;
    }
    return x;
}
static opd_tensor *codes(opd_ints sizes, int seed) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_INT8);
    for (int64_t i = 0; i < opd_numel(x); i++) {
        ((int8_t *)opd_data(x))[i] = (int8_t)((i * 7919 + seed * 31) % 256 - 128);
    }
    return x;
}

/* What a layer is made of: the input as floats (FLOATS), as uint8 or int8 codes, with an own scale for each row
   (TOKENS) or scales found at run time (FOUND); the weight with one scale, one for each row, for each group of 8, or
   none; BITS: groups of 8 codes of 4 bits without zero points. */
enum { FLOATS, BYTES, CHARS, TOKENS, FOUND };
enum { ONE, ROWS, GROUPS, BITS, NONE };
enum { LINEAR, MM, ADDMM, CONV };
typedef struct layer { int input, weight, kind; } layer;

static opd_graph_value *input_of(opd_graph *graph, const layer *its, opd_graph_value *x, int64_t k) {
    const bool minus = its->input == CHARS || its->input == TOKENS;
    const int dtype = minus ? OPD_INT8 : OPD_UINT8, low = minus ? -128 : 0;
    const int high = low + 255, zero = low + 120;
    if (its->input == FLOATS) { return x; }
    if (its->input == TOKENS) {
        const int64_t block[2] = {1, k};
        opd_graph_value *scale = OPD_GRAPH_CALL(graph, AO "choose_qparams_affine", x, "ASYMMETRIC",
                                                opd_ints_of(block, 2), dtype, low, high);
        opd_graph_value *at = opd_graph_node_output(opd_graph_value_node(scale), 1);
        x = OPD_GRAPH_CALL(graph, AO "quantize_affine", x, opd_ints_of(block, 2), scale, at, dtype, low, high);
        return OPD_GRAPH_CALL(graph, AO "dequantize_affine", x, opd_ints_of(block, 2), scale, at, dtype, low, high);
    }
    if (its->input == FOUND) {
        opd_graph_value *scale = OPD_GRAPH_CALL(graph, QD "choose_qparams.tensor", x, low, high, 1e-5,
                                                dtype);
        opd_graph_value *at = opd_graph_node_output(opd_graph_value_node(scale), 1);
        x = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor.tensor", x, scale, at, low, high, dtype);
        return OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor.tensor", x, scale, at, low, high, dtype);
    }
    x = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", x, 0.0083, zero, low, high, dtype);
    return OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", x, 0.0083, zero, low, high, dtype);
}
static opd_graph_value *weight_of(opd_graph *graph, const layer *its, opd_graph_value *const *in) {
    const int64_t block[2] = {1, 8};
    opd_graph_value *w = in[1];
    switch (its->weight) {
    case ONE: w = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", w, 0.013, 0, -128, 127, OPD_INT8); break;
    case ROWS: w = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", w, in[2], in[3], 0, -128, 127,
                                  OPD_INT8); break;
    case BITS:
    case GROUPS: w = OPD_GRAPH_CALL(graph, AO "dequantize_affine", w, opd_ints_of(block, 2), in[2], in[3], OPD_INT8,
                                    -128, 127); break;
    default: w = OPD_GRAPH_CALL(graph, "aten::to.dtype", OPD_GRAPH_CALL(graph, "aten::t", w), OPD_FLOAT32); break;
    }
    if (its->kind != MM && its->kind != ADDMM) { return w; }
    return its->weight == NONE ? w : OPD_GRAPH_CALL(graph, "aten::t", w);
}
/* The inputs of the graph are x, the codes, scales, zero points and the bias. */
static opd_graph *graph_of(const layer *its, int64_t k) {
    static const char *const names[5] = {"x", "w", "s", "z", "b"};
    opd_graph *graph = opd_graph_new();
    opd_graph_value *in[5], *y;
    for (int i = 0; i < 5; i++) { in[i] = opd_graph_input(graph, names[i], NULL); }
    opd_graph_value *x = input_of(graph, its, in[0], k), *w = weight_of(graph, its, in);
    switch (its->kind) {
    case MM: y = OPD_GRAPH_CALL(graph, "aten::mm", x, w); break;
    case ADDMM: y = OPD_GRAPH_CALL(graph, "aten::addmm", in[4], x, w); break;
    case CONV: y = OPD_GRAPH_CALL(graph, "aten::conv2d", x, w, in[4], OPD_INTS(2, 1), OPD_INTS(1, 2), OPD_INTS(1, 2),
                                  1); break;
    default: y = OPD_GRAPH_CALL(graph, "aten::linear", x, w, in[4]); break;
    }
    CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
    return graph;
}
static void inputs_of(const layer *its, int64_t m, int64_t n, int64_t k, opd_tensor **in) {
    const bool conv = its->kind == CONV;
    in[0] = conv ? numbers(OPD_INTS(2, k, m, 11), 1) : numbers(OPD_INTS(m, k), 1);
    in[1] = conv ? codes(OPD_INTS(n, k, 3, 2), 2) : codes(OPD_INTS(n, k), 2);
    const int64_t groups = its->weight == GROUPS || its->weight == BITS ? k / 8 : 1;
    if (its->weight == BITS) { (void)opd_copy_(in[1], opd_clamp(in[1], opd_value_int(-8), opd_value_int(7))); }
    in[2] = opd_add_Scalar(opd_abs(numbers(OPD_INTS(n * groups), 3)), opd_value_double(0.01));
    in[3] = its->weight == GROUPS ? codes(OPD_INTS(n * groups), 4) : opd_zeros(OPD_INTS(n * groups), OPD_INT64);
    in[4] = numbers(OPD_INTS(n), 5);
}
static bool near(opd_tensor *got, opd_tensor *want) {
    if (opd_equal(opd_isnan(got), opd_isnan(want))) {
        got = opd_nan_to_num(got);
        want = opd_nan_to_num(want);
    }
    const double most = opd_item_f64(opd_max(opd_abs(want))), off = opd_item_f64(opd_max(opd_abs(opd_sub(got, want))));
    if (!(off <= 2e-6 * most)) { printf("off by %g of %g\n", off, most); }
    return off <= 2e-6 * most;
}
static void check_layer(const layer *its, int64_t m, int64_t n, int64_t k) {
    opd_tensor *in[5], *want = NULL, *got = NULL;
    inputs_of(its, m, n, k, in);
    opd_graph *graph = graph_of(its, k), *fused = opd_graph_copy(graph);
    CHECK_INT(opd_graph_fuse_quantized(fused), 1);
    CHECK_INT(opd_graph_check(fused), 0);
    CHECK_INT(opd_graph_count(fused, QD "dequantize_per_channel"), 0);
    CHECK_INT(opd_graph_run(graph, in, 5, &want, 1), 1);
    CHECK_INT(opd_graph_run(fused, in, 5, &got, 1), 1);
    const bool right = opd_ok() && near(got, want);
    CHECK(right);
    if (!right) {
        printf("input %d, weight %d, kind %d, %d x %d x %d\n", its->input, its->weight, its->kind, (int)m, (int)n,
               (int)k);
    }
    CHECK_INT(opd_graph_infer(fused, in, 5), 0);
    opd_graph_free(graph);
    opd_graph_free(fused);
}
TEST(layers_give_the_results_of_the_layers_they_replace) {
    static const int64_t sizes[][3] = {{1, 3, 8}, {1, 37, 200}, {5, 16, 64}, {40, 33, 136}};
    for (int input = FLOATS; input <= FOUND; input++) {
        for (int weight = ONE; weight <= NONE; weight++) {
            for (int kind = LINEAR; kind <= ADDMM; kind++) {
                const layer its = {input, weight, kind};
                if (weight == NONE && kind == LINEAR) { continue; }
                for (int i = 0; i < 4; i++) { OPD_SCOPE { check_layer(&its, sizes[i][0], sizes[i][1], sizes[i][2]); } }
            }
        }
    }
    CHECK_OK();
}
TEST(convolutions_give_the_results_of_the_layers_they_replace) {
    static const int64_t sizes[][3] = {{6, 3, 2}, {9, 40, 16}};
    for (int input = BYTES; input <= FOUND; input++) {
        for (int weight = ONE; weight <= ROWS; weight++) {
            const layer its = {input, weight, CONV};
            for (int i = 0; i < 2 && input != TOKENS; i++) {
                OPD_SCOPE { check_layer(&its, sizes[i][0], sizes[i][1], sizes[i][2]); }
            }
        }
    }
    CHECK_OK();
}

//-- scales and zero points of other forms -----------------------------------------------------------------------------

static void check_same(opd_graph *graph, opd_graph_value *y, opd_tensor *const *in, int n) {
    opd_tensor *want = NULL, *got = NULL;
    CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
    opd_graph *fused = opd_graph_copy(graph);
    CHECK_INT(opd_graph_fuse_quantized(fused), 1);
    CHECK_INT(opd_graph_run(graph, in, n, &want, 1), 1);
    CHECK_INT(opd_graph_run(fused, in, n, &got, 1), 1);
    CHECK(opd_ok() && opd_dtype(got) == opd_dtype(want) && opd_ndim(got) == opd_ndim(want) && near(got, want));
    CHECK_OK();
    opd_graph_free(graph);
    opd_graph_free(fused);
}
static opd_graph *graph_with(opd_graph_value **in, int n) {
    static const char *const names[5] = {"x", "w", "s", "t", "z"};
    opd_graph *graph = opd_graph_new();
    for (int i = 0; i < n; i++) { in[i] = opd_graph_input(graph, names[i], NULL); }
    return graph;
}
TEST(inputs_with_scales_for_groups) {
    for (int dims = 2; dims < 4; dims++) {
        const int64_t block[3] = {1, dims == 2 ? 16 : 1, 16};
        opd_graph_value *in[5];
        opd_graph *graph = graph_with(in, 5);
        opd_tensor *x = dims == 2 ? codes(OPD_INTS(3, 64), 1) : codes(OPD_INTS(2, 3, 64), 1);
        const int64_t groups = opd_numel(x) / 16;
        opd_tensor *rest[5] = {x, codes(OPD_INTS(8, 64), 2), numbers(OPD_INTS(8), 3), numbers(OPD_INTS(groups), 4),
                               codes(OPD_INTS(groups), 5)};
        opd_graph_value *wide = OPD_GRAPH_CALL(graph, AO "dequantize_affine", in[0], opd_ints_of(block, dims), in[3], in[4], OPD_INT8,
                                               -128, 127);
        opd_graph_value *w = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[1], in[2], opd_value_none(), 0, -128, 127,
                                            OPD_INT8);
        check_same(graph, OPD_GRAPH_CALL(graph, "aten::linear", wide, w), rest, 5);
    }
}
/* kind 0: a zero point that is no integer; 1: an infinite scale; 2: scales of float64 that require grad. */
TEST(unusual_scales_and_zero_points) {
    for (int kind = 0; kind < 3; kind++) {
        for (int conv = 0; conv < 2; conv++) {
            opd_graph_value *in[5];
            opd_graph *graph = graph_with(in, 5);
            opd_tensor *x = conv ? codes(OPD_INTS(2, 4, 6, 5), 1) : codes(OPD_INTS(3, 64), 1);
            opd_tensor *w = conv ? codes(OPD_INTS(8, 4, 3, 3), 2) : codes(OPD_INTS(8, 64), 2);
            opd_tensor *scales = opd_to_dtype(numbers(OPD_INTS(8), 3), kind == 2 ? OPD_FLOAT64 : OPD_FLOAT32);
            opd_tensor *zero = opd_full(OPD_INTS(1), OPD_V(kind ? 3 : 3.7), kind ? OPD_INT64 : OPD_FLOAT32);
            opd_tensor *scale = opd_full(OPD_INTS(1), OPD_V(kind == 1 ? (double)INFINITY : 0.3), OPD_FLOAT64);
            if (kind == 1) { opd_fill_(x, OPD_V(3)); }                  /* 0 times infinity is no number */
            opd_tensor_set_requires_grad(scales, kind == 2);
            opd_tensor *rest[5] = {x, w, scales, scale, zero};
            opd_graph_value *wide[2];
            wide[0] = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor.tensor", in[0], in[3], in[4], -128, 127, OPD_INT8);
            wide[1] = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[1], in[2], opd_value_none(), 0, -128, 127, OPD_INT8);
            check_same(graph, conv ? OPD_GRAPH_CALL(graph, "aten::conv2d", wide[0], wide[1])
                       : OPD_GRAPH_CALL(graph, "aten::linear", wide[0], wide[1]), rest, 5);
        }
    }
}
/* Rows: a weight whose codes only become floats; scales for each row of each plane; an image without a batch. */
TEST(convolutions_of_other_forms) {
    for (int kind = 0; kind < 3; kind++) {
        static const int64_t block[4] = {1, 1, 1, 3};
        opd_graph_value *in[3];
        opd_graph *graph = graph_with(in, 3);
        opd_tensor *rest[3] = {kind == 2 ? codes(OPD_INTS(4, 6, 5), 1) : codes(OPD_INTS(2, 4, 6, 5), 1),
                               codes(OPD_INTS(8, 4, 3, 3), 2), kind == 1 ? numbers(OPD_INTS(8, 4, 3, 1), 3) : numbers(OPD_INTS(8), 3)};
        opd_graph_value *x = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", in[0], 0.3, 5, -128, 127, OPD_INT8), *w;
        if (kind == 0) { w = OPD_GRAPH_CALL(graph, "aten::to.dtype", in[1], OPD_FLOAT32); }
        else if (kind == 1) {
            w = OPD_GRAPH_CALL(graph, AO "dequantize_affine", in[1], opd_ints_of(block, 4), in[2], opd_value_none(), OPD_INT8, -128, 127);
        }
        else { w = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[1], in[2], opd_value_none(), 0, -128, 127, OPD_INT8); }
        check_same(graph, OPD_GRAPH_CALL(graph, "aten::conv2d", x, w), rest, 3);
    }
}

//-- what follows a layer ----------------------------------------------------------------------------------------------

/* Chains of layers: conv, (add), limit, quantise, (max_pool2d), conv ... */
enum { RELU, RELU_, TANH, CLAMP, PLAIN, GELU, GELU_TANH, SILU, RELU_SILU };
typedef struct chain { int limit, dtype, stride, dilation; bool add, pool, linear; } chain;

static opd_graph_value *coded(opd_graph *graph, const chain *its, opd_graph_value *x, double scale, int zero) {
    const int low = its->dtype == OPD_INT8 ? -128 : 0;
    x = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", x, scale, low + zero, low, low + 255, its->dtype);
    return OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", x, scale, low + zero, low, low + 255, its->dtype);
}
static opd_graph_value *limited(opd_graph *graph, const chain *its, opd_graph_value *x) {
    switch (its->limit) {
    case RELU: return OPD_GRAPH_CALL(graph, "aten::relu", x);
    case RELU_: return OPD_GRAPH_CALL(graph, "aten::relu_", x);
    case TANH: return OPD_GRAPH_CALL(graph, "aten::hardtanh", x, 0.0, 0.6);
    case CLAMP: return OPD_GRAPH_CALL(graph, "aten::clamp", x, -0.5, opd_value_none());
    case GELU: return OPD_GRAPH_CALL(graph, "aten::gelu", x);
    case GELU_TANH: return OPD_GRAPH_CALL(graph, "aten::gelu", x, "tanh");
    case SILU: return OPD_GRAPH_CALL(graph, "aten::silu_", x);
    case RELU_SILU: return OPD_GRAPH_CALL(graph, "aten::silu", OPD_GRAPH_CALL(graph, "aten::relu", x));
    default: return x;
    }
}
/* apart: the floats of layers are outputs, too, so that nothing that follows can be joined to them. */
static opd_graph *chain_of(const chain *its, bool apart) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *in[7], *out[4], *w[2];
    static const char *const names[7] = {"x", "w", "s", "b", "v", "t", "c"};
    int n = 1;
    for (int i = 0; i < 7; i++) { in[i] = opd_graph_input(graph, names[i], NULL); }
    for (int i = 0; i < 2; i++) {
        w[i] = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[3 * i + 1], in[3 * i + 2], opd_value_none(), 0, -128, 127,
                              OPD_INT8);
    }
    opd_graph_value *x = coded(graph, its, in[0], 0.0083, 120), *y;
    const int64_t stride[1] = {its->stride}, padding[1] = {its->dilation}, dilation[1] = {its->dilation}, one[1] = {1};
    y = its->linear ? OPD_GRAPH_CALL(graph, "aten::linear", x, w[0], in[3])
        : OPD_GRAPH_CALL(graph, "aten::conv2d", x, w[0], in[3], opd_ints_of(stride, 1), opd_ints_of(padding, 1),
                         opd_ints_of(dilation, 1), 1);
    if (apart) { out[n++] = OPD_GRAPH_CALL(graph, "aten::mul.Scalar", y, 1.0); }
    y = coded(graph, its, limited(graph, its, y), 0.0121, its->limit == RELU ? 0 : 90);
    if (its->pool) {
        const int64_t two[1] = {2}, none[1] = {1};
        y = OPD_GRAPH_CALL(graph, "aten::max_pool2d", y, opd_ints_of(two, 1), opd_ints_of(two, 1), opd_ints_of(none, 1));
        y = coded(graph, its, y, 0.0121, its->limit == RELU ? 0 : 90);
    }
    opd_graph_value *z = its->linear ? OPD_GRAPH_CALL(graph, "aten::linear", y, w[1], in[6])
        : OPD_GRAPH_CALL(graph, "aten::conv2d", y, w[1], in[6], opd_ints_of(one, 1), opd_ints_of(one, 1), opd_ints_of(one, 1), 1);
    if (apart) { out[n++] = OPD_GRAPH_CALL(graph, "aten::mul.Scalar", z, 1.0); }
    if (its->add) { z = OPD_GRAPH_CALL(graph, "aten::add.Tensor", z, y); }
    out[0] = coded(graph, its, limited(graph, its, z), 0.021, 70);
    CHECK_INT(opd_graph_output(graph, out, n, false), 0);
    return graph;
}
static void check_chain(const chain *its, int64_t channels, int64_t wide, int64_t size) {
    opd_tensor *in[7], *want[3] = {NULL}, *got = NULL;
    opd_graph *graph = chain_of(its, false), *apart = chain_of(its, true);
    in[0] = its->linear ? numbers(OPD_INTS(size, channels), 1) : numbers(OPD_INTS(2, channels, size, size + 3), 1);
    in[1] = its->linear ? codes(OPD_INTS(wide, channels), 2) : codes(OPD_INTS(wide, channels, 3, 3), 2);
    in[4] = its->linear ? codes(OPD_INTS(wide, wide), 3) : codes(OPD_INTS(wide, wide, 3, 3), 3);
    for (int i = 0; i < 2; i++) {
        in[3 * i + 2] = opd_mul_Scalar(opd_add_Scalar(opd_abs(numbers(OPD_INTS(wide), 4 + i)), opd_value_double(0.1)), opd_value_double(0.01));
        in[3 * i + 3] = numbers(OPD_INTS(wide), 6 + i);
    }
    CHECK_INT(opd_graph_fuse_quantized(graph), 2);
    CHECK_INT(opd_graph_fuse_quantized(apart), 2);
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_graph_count(graph, QD "quantize_per_tensor"), 1);
    CHECK_INT(opd_graph_count(graph, "aten::add.Tensor") + opd_graph_count(graph, "aten::relu_") +
              opd_graph_count(graph, "aten::max_pool2d") + opd_graph_count(graph, "aten::hardtanh") +
              opd_graph_count(graph, "aten::gelu") + opd_graph_count(graph, "aten::silu") +
              opd_graph_count(graph, "aten::silu_"), 0);
    CHECK_INT(opd_graph_run(apart, in, 7, want, 3), 3);
    CHECK_INT(opd_graph_run(graph, in, 7, &got, 1), 1);
    const bool right = opd_ok() && opd_equal(got, want[0]) && opd_item_f64(opd_max(got)) > opd_item_f64(opd_min(got));
    CHECK(right);
    if (!right) {
        printf("limit %d, %s, stride %d, dilation %d, %d %d %d; %d -> %d, %d\n", its->limit, opd_dtype_name((opd_scalar_type)its->dtype),
               its->stride, its->dilation, its->add, its->pool, its->linear, (int)channels, (int)wide, (int)size);
    }
    CHECK_INT(opd_graph_infer(graph, in, 7), 0);
    CHECK_INT(opd_graph_run(graph, in, 7, &got, 1), 1);               /* with what the graph now knows of sizes */
    CHECK(opd_ok() && opd_equal(got, want[0]));
    opd_tensor_set_requires_grad(in[3], true);                        /* now operators compute what follows, one by one */
    CHECK_INT(opd_graph_run(graph, in, 7, &got, 1), 1);
    CHECK(opd_ok() && opd_dtype(got) == OPD_FLOAT32 && opd_item_f64(opd_max(opd_abs(opd_sub(got, want[0])))) < 0.1);
    opd_graph_free(graph);
    opd_graph_free(apart);
}
/* The results are equal to the bit: the sums become floats, which are multiplied, added, limited and quantised as the
   separate operators do. */
TEST(layers_with_what_follows_give_equal_results) {
    static const chain chains[] = {
        {RELU, OPD_UINT8, 1, 1, false, true, false}, {RELU_, OPD_INT8, 2, 1, true, false, false},
        {TANH, OPD_UINT8, 1, 2, true, true, false}, {CLAMP, OPD_INT8, 3, 1, false, true, false},
        {PLAIN, OPD_UINT8, 2, 2, true, false, false}, {RELU_, OPD_UINT8, 1, 1, true, false, true},
        {TANH, OPD_INT8, 1, 1, false, false, true}, {PLAIN, OPD_INT8, 1, 1, true, true, false},
        {GELU, OPD_UINT8, 1, 1, true, false, true}, {GELU_TANH, OPD_INT8, 1, 1, false, false, true},
        {SILU, OPD_UINT8, 2, 1, true, true, false}, {RELU_SILU, OPD_INT8, 1, 1, true, false, false}};
    static const int64_t sizes[][3] = {{3, 5, 7}, {16, 33, 9}, {70, 64, 5}};
    for (int i = 0; i < 12; i++) {
        for (int k = 0; k < 3; k++) { OPD_SCOPE { check_chain(&chains[i], sizes[k][0], sizes[k][1], sizes[k][2] + 6 * (i % 3)); } }
    }
    CHECK_OK();
}
/* A value that something else uses, too, or an output, does not become codes inside of a layer; the result of add with a
   factor neither. */
TEST(what_has_other_users_stays) {
    static const chain its = {RELU, OPD_UINT8, 1, 1, false, false, true};
    for (int kind = 0; kind < 3; kind++) {
        opd_graph_value *in[5], *y[2];
        opd_graph *graph = graph_with(in, 3);
        opd_graph_value *w = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[1], in[2], opd_value_none(), 0, -128, 127,
                                            OPD_INT8), *x = coded(graph, &its, in[0], 0.0083, 120);
        y[0] = OPD_GRAPH_CALL(graph, "aten::linear", x, w);
        y[1] = kind == 1 ? y[0] : OPD_GRAPH_CALL(graph, "aten::add.Tensor", y[0], x, 2);
        y[0] = kind == 2 ? y[1] : OPD_GRAPH_CALL(graph, "aten::relu", kind ? y[0] : y[1]);
        CHECK_INT(opd_graph_output(graph, y, 2, false), 0);
        opd_graph *fused = opd_graph_copy(graph);
        opd_tensor *rest[3] = {numbers(OPD_INTS(4, 16), 1), codes(OPD_INTS(16, 16), 2), numbers(OPD_INTS(16), 3)}, *want[2], *got[2];
        CHECK_INT(opd_graph_fuse_quantized(fused), 1);
        CHECK_INT(opd_graph_count(fused, "aten::relu"), kind != 2);
        CHECK_INT(opd_graph_run(graph, rest, 3, want, 2), 2);
        CHECK_INT(opd_graph_run(fused, rest, 3, got, 2), 2);
        CHECK(near(got[0], want[0]) && near(got[1], want[1]));
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
    CHECK_OK();
}

//-- operators and scales that look like layers ------------------------------------------------------------------------

/* A graph of dequantised codes [4, 16], in[0], and weights [16, 16], in[1]. */
static opd_graph *codes_with(opd_graph_value *wide[2]) {
    opd_graph *graph = opd_graph_new();
    wide[0] = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", opd_graph_input(graph, "x", NULL), 0.01, 5, -128, 127, OPD_INT8);
    wide[1] = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", opd_graph_input(graph, "w", NULL), 0.02, 0, -128, 127, OPD_INT8);
    return graph;
}
/* Runs a graph and a copy of it, in which `count` layers are replaced, with copies of the inputs; both must give the
   same results, or fail. */
static void check_both(opd_graph *graph, opd_graph_value **y, int ny, int count, opd_tensor *const *in, int n) {
    opd_tensor *got[2][2] = {{NULL}}, *again[5];
    int rc[2];
    CHECK_INT(opd_graph_output(graph, y, ny, false), 0);
    opd_graph *graphs[2] = {graph, opd_graph_copy(graph)};
    CHECK_INT(opd_graph_fuse_quantized(graphs[1]), count);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < n; i++) { again[i] = opd_clone(in[i]); }
        rc[turn] = opd_graph_run(graphs[turn], again, n, got[turn], ny);
        if (rc[turn] < 0) { opd_error_clear(); }
    }
    CHECK_INT(rc[1], rc[0]);
    for (int i = 0; i < ny && rc[0] == ny && rc[1] == ny; i++) {
        CHECK(opd_dtype(got[0][i]) == opd_dtype(got[1][i]) && near(opd_to_dtype(got[1][i], OPD_FLOAT64), opd_to_dtype(got[0][i], OPD_FLOAT64)));
    }
    opd_graph_free(graphs[0]);
    opd_graph_free(graphs[1]);
    CHECK_OK();
}
/* Overloads that write into a tensor, or give another dtype. */
TEST(other_overloads_are_no_layers) {
    static const char *const names[] = {"aten::relu.out", "aten::clamp.out", "aten::mm.out", "aten::mm.dtype", "aten::view.dtype"};
    for (int i = 0; i < 5; i++) {
        OPD_SCOPED;
        opd_graph_value *wide[2], *y[2];
        opd_graph *graph = codes_with(wide);
        opd_tensor *in[3] = {codes(OPD_INTS(4, 16), 1), codes(OPD_INTS(16, 16), 2), opd_zeros(OPD_INTS(4, 16), OPD_FLOAT32)};
        opd_graph_value *buffer = opd_graph_input(graph, "buffer", NULL), *layer = NULL;
        if (i < 2) { layer = OPD_GRAPH_CALL(graph, "aten::linear", wide[0], wide[1]); }
        else if (i == 3) { layer = OPD_GRAPH_CALL(graph, "aten::to.dtype", OPD_GRAPH_CALL(graph, "aten::t", opd_graph_input(graph, "v", NULL)), OPD_BFLOAT16); }
        else { layer = OPD_GRAPH_CALL(graph, "aten::t", wide[1]); }
        switch (i) {
        case 0: y[0] = OPD_GRAPH_CALL(graph, names[i], layer, buffer); break;
        case 1: y[0] = OPD_GRAPH_CALL(graph, names[i], layer, -0.1, 0.1, buffer); break;
        case 2: y[0] = OPD_GRAPH_CALL(graph, names[i], wide[0], layer, buffer); break;
        case 3: y[0] = OPD_GRAPH_CALL(graph, names[i], OPD_GRAPH_CALL(graph, "aten::to.dtype", wide[0], OPD_BFLOAT16), layer, OPD_FLOAT32); break;
        default: y[0] = OPD_GRAPH_CALL(graph, names[i], wide[0], OPD_INT32); break;
        }
        y[1] = OPD_GRAPH_CALL(graph, "aten::add.Tensor", buffer, buffer);
        opd_tensor *all[4] = {in[0], in[1], in[2], in[1]};
        check_both(graph, y, 2, i < 2, all, i == 3 ? 4 : 3);
    }
}
/* Scales of dequantize_per_token broadcast; they may belong to columns, or to a part of the rows. */
TEST(scales_of_tokens_broadcast) {
    static const int64_t sizes[][3] = {{0, 0, 16}, {0, 4, 1}, {1, 4, 1}, {2, 1, 1}};
    for (int i = 0; i < 4; i++) {
        OPD_SCOPED;
        opd_graph_value *in[4];
        opd_graph *graph = graph_with(in, 4);
        const opd_ints shape = opd_ints_of(sizes[i] + (i == 0 ? 2 : i == 1), i == 0 ? 1 : i == 1 ? 2 : 3);
        opd_tensor *rest[4] = {i == 0 ? codes(OPD_INTS(16, 16), 1) : i == 1 ? codes(OPD_INTS(4, 16), 1) : codes(OPD_INTS(2, 4, 16), 1),
                               codes(OPD_INTS(16, 16), 2), numbers(shape, 3), opd_ones(shape, OPD_INT64)};
        opd_graph_value *x = OPD_GRAPH_CALL(graph, QD "dequantize_per_token", in[0], in[2], in[3], -128, 127, OPD_INT8, OPD_FLOAT32);
        opd_graph_value *w = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", in[1], 0.02, 0, -128, 127, OPD_INT8);
        opd_graph_value *y = OPD_GRAPH_CALL(graph, "aten::linear", x, w);
        check_both(graph, &y, 1, 1, rest, 4);
    }
}
/* Tokens are multiplied as integers if each row is known to have its own scale. */
TEST(scales_of_tokens_from_rows) {
    OPD_SCOPED;
    opd_graph *graph = opd_graph_new();
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *scale = OPD_GRAPH_CALL(graph, QD "choose_qparams_per_token_asymmetric", x, OPD_INT8);
    opd_graph_value *zero = opd_graph_node_output(opd_graph_value_node(scale), 1);
    x = OPD_GRAPH_CALL(graph, QD "quantize_per_token", x, scale, zero, -128, 127, OPD_INT8);
    x = OPD_GRAPH_CALL(graph, QD "dequantize_per_token", x, scale, zero, -128, 127, OPD_INT8, OPD_FLOAT32);
    opd_graph_value *w = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", opd_graph_input(graph, "w", NULL), 0.02, 0, -128, 127, OPD_INT8);
    opd_graph_value *y = OPD_GRAPH_CALL(graph, "aten::linear", x, w);
    opd_tensor *in[2] = {numbers(OPD_INTS(2, 4, 16), 1), codes(OPD_INTS(16, 16), 2)};
    CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
    opd_graph *fused = opd_graph_copy(graph);
    CHECK_INT(opd_graph_fuse_quantized(fused), 1);
    CHECK_INT(opd_graph_count(fused, QD "dequantize_per_token"), 0);
    opd_graph_free(fused);
    check_both(graph, &y, 1, 1, in, 2);
}
/* 0: products of scales that are infinite, times sums that are 0; 1: so small that digits get lost; 2 and 3: limits that
   are infinite; 4: a range that the dtype does not have; 5: a bias with too many dims. */
TEST(numbers_that_only_floats_have) {
    for (int kind = 0; kind < 6; kind++) {
        for (int conv = 0; conv < (kind < 2 ? 2 : 1); conv++) {
            OPD_SCOPED;
            opd_graph_value *in[4];
            opd_graph *graph = graph_with(in, 4);
            const double scale = kind == 0 ? 1e30 : kind == 1 ? 1e-22 : 0.02;
            opd_tensor *rest[4] = {conv ? codes(OPD_INTS(1, 4, 6, 5), 1) : codes(OPD_INTS(4, 16), 1), conv ? codes(OPD_INTS(16, 4, 3, 3), 2) : codes(OPD_INTS(16, 16), 2),
                                   opd_full(OPD_INTS(16), OPD_V(scale), OPD_FLOAT32), opd_ones(OPD_INTS(2, 4, 16), OPD_FLOAT32)};
            if (kind == 0) { opd_fill_(rest[0], OPD_V(5)); }
            opd_graph_value *x = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", in[0], scale, 5, -128, 127, OPD_INT8), *y;
            opd_graph_value *w = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[1], in[2], opd_value_none(), 0, -128, 127, OPD_INT8);
            if (kind == 5) { y = OPD_GRAPH_CALL(graph, "aten::addmm", in[3], x, OPD_GRAPH_CALL(graph, "aten::t", w)); }
            else { y = conv ? OPD_GRAPH_CALL(graph, "aten::conv2d", x, w) : OPD_GRAPH_CALL(graph, "aten::linear", x, w); }
            if (kind == 1) { y = OPD_GRAPH_CALL(graph, "aten::mul.Scalar", OPD_GRAPH_CALL(graph, "aten::mul.Scalar", y, 1e20), 1e20); }
            if (kind == 2) { y = OPD_GRAPH_CALL(graph, "aten::clamp", y, (double)INFINITY); }
            if (kind == 3) { y = OPD_GRAPH_CALL(graph, "aten::clamp", y, opd_value_none(), -(double)INFINITY); }
            if (kind == 2 || kind == 3) { y = OPD_GRAPH_CALL(graph, "aten::reciprocal", y); }
            if (kind == 4) { y = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", y, 0.1, 3, -1000, 1000, OPD_UINT8); }
            check_both(graph, &y, 1, 1, rest, 4);
        }
    }
}

//-- embeddings and lists ----------------------------------------------------------------------------------------------

static int rows_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor **rest = (opd_tensor **)user, *all[4] = {rest[1], rest[2], rest[3], in[0]};
    (void)n;
    return opd_graph_run((opd_graph *)(void *)rest[0], all, 4, out, 1);
}
/* An embedding reads codes: with a scale for each row, with zero points, or with one scale; kind 3: the codes are
   written, so that it stays. */
TEST(embeddings_of_codes_read_only_their_rows) {
    for (int kind = 0; kind < 4; kind++) {
        OPD_SCOPED;
        static const char *const names[] = {"w", "s", "z", "i"};
        opd_graph *graph = opd_graph_new();
        opd_graph_value *in[4], *wide, *y;
        opd_tensor *rest[4] = {codes(OPD_INTS(50, 24), 1), opd_abs(numbers(OPD_INTS(50), 2)), NULL, NULL};
        rest[2] = opd_sub_Scalar(opd_arange(opd_value_int(50), OPD_INT64), opd_value_int(20));
        rest[3] = opd_remainder_Scalar(opd_mul_Scalar(opd_reshape(opd_arange(opd_value_int(12), OPD_INT64), OPD_INTS(3, 4)),
                                                      opd_value_int(7)), opd_value_int(50));
        for (int i = 0; i < 4; i++) { in[i] = opd_graph_input(graph, names[i], NULL); }
        if (kind == 2) { wide = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", in[0], 0.013, 5, -128, 127, OPD_INT8); }
        else {
            opd_graph_value *const scales = opd_graph_constant(graph, opd_value_tensor(rest[1]));
            opd_graph_value *const zeros = kind ? in[2] : opd_graph_constant(graph, opd_value_none());
            wide = OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[0], scales, zeros, 0, -128, 127, OPD_INT8);
        }
        if (kind == 3) { (void)OPD_GRAPH_CALL(graph, "aten::neg_", in[0]); }
        y = OPD_GRAPH_CALL(graph, "aten::embedding", wide, in[3]);
        CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
        opd_graph *fused = opd_graph_copy(graph);
        CHECK_INT(opd_graph_fuse_quantized(fused), kind < 2);
        CHECK_INT(opd_graph_check(fused), 0);
        CHECK_INT(opd_graph_count(fused, QD "dequantize_per_channel"), kind == 3);
        opd_tensor *want = NULL, *got = NULL, *again = opd_clone(rest[0]);
        CHECK_INT(opd_graph_run(graph, rest, 4, &want, 1), 1);
        if (kind == 3) { (void)opd_copy_(rest[0], again); }
        CHECK_INT(opd_graph_run(fused, rest, 4, &got, 1), 1);
        CHECK(got && opd_dtype(got) == OPD_FLOAT32 && opd_equal(got, want));
        if (kind < 3) {
            opd_tensor *user[4] = {(opd_tensor *)(void *)fused, rest[0], rest[1], rest[2]}, *mapped_rows = NULL;
            CHECK_INT(opd_vmap(rows_of, user, &rest[3], 1, NULL, &mapped_rows, 1), 1);
            CHECK(mapped_rows && opd_equal(mapped_rows, want));
            rest[3] = opd_full(OPD_INTS(1), opd_value_int(50), OPD_INT64);
            CHECK_INT(opd_graph_run(fused, rest, 4, &got, 1), -1);
            opd_error_clear();
        }
        CHECK_OK();
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
}
/* Codes are joined if all have the same numbers and surely the same dtype (kind 0), and not otherwise. */
TEST(lists_of_codes_are_joined) {
    for (int kind = 0; kind < 3; kind++) {
        OPD_SCOPED;
        opd_graph_value *in[2], *wide[2], *y;
        opd_graph *graph = graph_with(in, 2);
        opd_tensor *rest[2] = {codes(OPD_INTS(3, 5), 1), codes(OPD_INTS(4, 5), 2)}, *want = NULL, *got = NULL;
        for (int i = 0; i < 2; i++) {
            const double scale = i && kind == 1 ? 0.02 : 0.01;
            if (kind < 2) {
                rest[i] = numbers(OPD_INTS(3 + i, 5), i);
                in[i] = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", in[i], scale, 5, -128, 127, OPD_INT8);
            }
            wide[i] = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", in[i], scale, 5, -128, 127, OPD_INT8);
        }
        y = OPD_GRAPH_CALL(graph, "aten::cat", opd_graph_list(graph, "Tensor", wide, 2), 0);
        y = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", y, 0.01, 5, -128, 127, OPD_INT8);
        CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
        opd_graph *fused = opd_graph_copy(graph);
        CHECK_INT(opd_graph_fuse_quantized(fused), 0);
        CHECK_INT(opd_graph_check(fused), 0);
        CHECK_INT(opd_graph_count(fused, QD "quantize_per_tensor"), kind == 0 ? 2 : kind == 1 ? 3 : 1);
        CHECK_INT(opd_graph_run(graph, rest, 2, &want, 1), 1);
        CHECK_INT(opd_graph_run(fused, rest, 2, &got, 1), 1);
        CHECK(got && want && opd_dtype(got) == OPD_INT8 && opd_equal(got, want));
        CHECK_OK();
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
}

//-- gradients and transforms ------------------------------------------------------------------------------------------

TEST(gradients_flow_through_fused_layers) {
    static const layer its = {FLOATS, ROWS, LINEAR};
    opd_tensor *in[5], *out = NULL, *grads[2][3];
    opd_graph *graph = graph_of(&its, 64), *fused = opd_graph_copy(graph);
    CHECK_INT(opd_graph_fuse_quantized(fused), 1);
    for (int turn = 0; turn < 2; turn++) {
        inputs_of(&its, 5, 16, 64, in);
        for (int i = 0; i < 3; i++) { opd_tensor_set_requires_grad(in[i == 0 ? 0 : i == 1 ? 2 : 4], true); }
        CHECK_INT(opd_graph_run(turn ? fused : graph, in, 5, &out, 1), 1);
        opd_backward(opd_sum(opd_mul(out, out)));
        for (int i = 0; i < 3; i++) { grads[turn][i] = opd_tensor_grad(in[i == 0 ? 0 : i == 1 ? 2 : 4]); }
    }
    for (int i = 0; i < 3; i++) { CHECK(grads[1][i] && near(grads[1][i], grads[0][i])); }
    CHECK_OK();
    opd_graph_free(graph);
    opd_graph_free(fused);
}
TEST(gradients_flow_to_zero_points) {
    static opd_op *op;
    opd_tensor *scale = opd_full(OPD_INTS(1), OPD_V(0.5), OPD_FLOAT32), *zero = opd_full(OPD_INTS(1), OPD_V(2.5), OPD_FLOAT32);
    opd_tensor_set_requires_grad(zero, true);
    opd_tensor *wide = OPD_CALL(OPD_OP(&op, QD "dequantize_per_tensor.tensor"), codes(OPD_INTS(6), 1), scale, zero, -128, 127, OPD_INT8);
    CHECK(opd_tensor_requires_grad(wide));
    opd_backward(opd_sum(wide));
    CHECK(opd_tensor_grad(zero) && opd_item_f64(opd_tensor_grad(zero)) == -3);
    CHECK_OK();
}
TEST(autocast_lowers_fused_layers) {
    static const layer kinds[] = {{FLOATS, ROWS, LINEAR}, {BYTES, ROWS, LINEAR}, {BYTES, ROWS, CONV}};
    for (int i = 0; i < 3; i++) {
        opd_tensor *in[5], *out[2] = {NULL, NULL};
        opd_graph *graph = graph_of(&kinds[i], 64), *fused = opd_graph_copy(graph);
        CHECK_INT(opd_graph_fuse_quantized(fused), 1);
        inputs_of(&kinds[i], 5, 16, 64, in);
        for (int turn = 0; turn < 2; turn++) {
            OPD_AUTOCAST_AS(OPD_CPU, OPD_BFLOAT16, true, -1) { opd_graph_run(turn ? fused : graph, in, 5, &out[turn], 1); }
        }
        CHECK(out[0] && out[1] && opd_dtype(out[0]) == OPD_BFLOAT16 && opd_dtype(out[1]) == OPD_BFLOAT16);
        CHECK(near(opd_to_dtype(out[1], OPD_FLOAT32), opd_to_dtype(out[0], OPD_FLOAT32)));
        CHECK_OK();
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
}
static int mapped(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor **rest = (opd_tensor **)user, *all[5] = {in[0], rest[1], rest[2], rest[3], rest[4]};
    (void)n;
    return opd_graph_run((opd_graph *)(void *)rest[0], all, 5, out, 1);
}
TEST(vmap_maps_fused_layers) {
    static const layer its = {BYTES, ROWS, LINEAR};
    opd_tensor *in[5], *out = NULL, *want = NULL;
    opd_graph *fused = graph_of(&its, 64);
    CHECK_INT(opd_graph_fuse_quantized(fused), 1);
    inputs_of(&its, 6, 16, 64, in);
    CHECK_INT(opd_graph_run(fused, in, 5, &want, 1), 1);
    opd_tensor *x = opd_reshape(in[0], OPD_INTS(3, 2, 64));
    in[0] = (opd_tensor *)(void *)fused;
    CHECK_INT(opd_vmap(mapped, in, &x, 1, NULL, &out, 1), 1);
    CHECK(out && near(opd_reshape(out, OPD_INTS(6, 16)), want));
    CHECK_OK();
    opd_graph_free(fused);
}

//-- layers that stay, and failures ------------------------------------------------------------------------------------

TEST(layers_whose_codes_are_written_stay) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *w = opd_graph_input(graph, "w", NULL), *y;
    opd_graph_value *wide = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", w, 0.013, 0, -128, 127,
                                           OPD_INT8);
    (void)OPD_GRAPH_CALL(graph, "aten::neg_", w);
    y = OPD_GRAPH_CALL(graph, "aten::linear", x, wide);
    CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
    CHECK_INT(opd_graph_fuse_quantized(graph), 0);
    opd_graph_free(graph);
    CHECK_INT(opd_graph_fuse_quantized(NULL), -1);
    opd_error_clear();
}
static int attempt(void *arg) {
    static const layer kinds[] = {{BYTES, ROWS, LINEAR}, {FLOATS, ROWS, ADDMM}, {BYTES, ROWS, CONV}};
    int rc = 0;
    for (int i = 0; i < 3 && rc >= 0; i++) {
        opd_graph *const graph = opd_graph_copy(((opd_graph **)arg)[i]);
        opd_tensor *out, *in[5];
        rc = graph ? opd_graph_fuse_quantized(graph) : -1;
        if (rc >= 0) {
            opd_scope scope = opd_scope_open();
            inputs_of(&kinds[i], 5, 16, 64, in);
            rc = opd_ok() ? opd_graph_run(graph, in, 5, &out, 1) : -1;
            opd_scope_close(&scope);
        }
        opd_graph_free(graph);
    }
    return rc;
}
TEST(fusing_fails_cleanly_if_memory_runs_out) {
    static const layer kinds[] = {{BYTES, ROWS, LINEAR}, {FLOATS, ROWS, ADDMM}, {BYTES, ROWS, CONV}};
    opd_graph *graphs[3];
    for (int i = 0; i < 3; i++) { graphs[i] = graph_of(&kinds[i], 64); }
    CHECK(check_allocations(attempt, graphs, "fusing", 400, false) > 20);
    for (int i = 0; i < 3; i++) { opd_graph_free(graphs[i]); }
}

/* The graph and inputs of a chain. */
typedef struct chain_run { opd_graph *graph; opd_tensor *in[7]; } chain_run;
static int attempt_chain(void *arg) {
    const chain_run *const its = (const chain_run *)arg;
    opd_graph *const graph = opd_graph_copy(its->graph);
    opd_tensor *out;
    int rc = graph ? opd_graph_fuse_quantized(graph) : -1;
    OPD_SCOPE { rc = rc >= 0 ? opd_graph_run(graph, its->in, 7, &out, 1) : -1; }
    opd_graph_free(graph);
    return rc;
}
TEST(chains_fail_cleanly_if_memory_runs_out) {
    static const chain chains[] = {{RELU_, OPD_UINT8, 1, 1, true, true, false}, {TANH, OPD_INT8, 1, 1, true, false, true}};
    for (int i = 0; i < 2; i++) {
        OPD_SCOPED;
        chain_run its;
        its.graph = chain_of(&chains[i], false);
        its.in[0] = i ? numbers(OPD_INTS(5, 6), 1) : numbers(OPD_INTS(1, 6, 5, 5), 1);
        its.in[1] = i ? codes(OPD_INTS(8, 6), 2) : codes(OPD_INTS(8, 6, 3, 3), 2);
        its.in[4] = i ? codes(OPD_INTS(8, 8), 3) : codes(OPD_INTS(8, 8, 3, 3), 3);
        its.in[2] = its.in[3] = its.in[5] = its.in[6] = opd_full(OPD_INTS(8), OPD_V(0.01), OPD_FLOAT32);
        CHECK(check_allocations(attempt_chain, &its, "a chain", 600, false) > 20);
        opd_graph_free(its.graph);
    }
}

//-- codes -------------------------------------------------------------------------------------------------------------

TEST(codes_of_ties_and_of_numbers_out_of_range) {
    static const float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e30f, -1e30f, 127.5f, 254.5f, 3};
    static const uint8_t want[] = {10, 12, 12, 10, 8, 255, 0, 138, 255, 13};
    static opd_op *op;
    opd_tensor *numbers = opd_tensor_from(x, OPD_INTS(10), OPD_FLOAT32);
    opd_tensor *made = OPD_CALL(OPD_OP(&op, QD "quantize_per_tensor"), numbers, 1.0, 10, 0, 255, OPD_UINT8);
    for (int i = 0; i < 10; i++) { CHECK_INT(((const uint8_t *)opd_data(made))[i], want[i]); }
    CHECK_OK();
}
/* Packs codes in blocks of 32 or 64 rows, as PyTorch does. */
TEST(packed_codes_tell_how_they_are_packed) {
    opd_tensor *q = opd_tensor_new(OPD_INTS(128, 64), OPD_INT32), *scales = opd_ones(OPD_INTS(2, 128, 2), OPD_FLOAT32);
    opd_tensor *x = numbers(OPD_INTS(3, 64), 7), *many = numbers(OPD_INTS(9, 64), 8);
    for (int64_t i = 0; i < 128 * 64; i++) {              /* each group of 32 columns has one 0 and one 15 */
        const int64_t at = (i % 32 * 7 + i / 32 * 11) % 32;
        ((int32_t *)opd_data(q))[i] = at == 0 ? 0 : at == 1 ? 15 : (int32_t)(1 + at * 5 % 14);
    }
    opd_tensor *w = opd_sub_Scalar(opd_to_dtype(q, OPD_FLOAT32), opd_value_int(7));      /* (q - 8) * 1 + 1 */
    CHECK_INT(opd_int4_block(), 0);
    for (int block = 32; block <= 64; block += 32) {
        CHECK_INT(opd_int4_block_set(block), 0);
        opd_tensor *packed = opd__convert_weight_to_int4pack_for_cpu(q, 1);
        CHECK_INT(opd_int4_block_set(0), block);
        CHECK(near(opd__weight_int4pack_mm_for_cpu(x, packed, 32, scales), opd_linear(x, w, NULL)));
        CHECK(near(opd__weight_int4pack_mm_for_cpu(many, packed, 32, scales), opd_linear(many, w, NULL)));
        /* a caller may know the blocks, which codes without 0 and 15 do not tell */
        opd_value args[5];
        opd_tensor *const equal = opd_remainder_Scalar(opd_to_dtype(q, OPD_INT32), OPD_V(5));
        CHECK_INT(opd_int4_block_set(block), 0);
        packed = opd__convert_weight_to_int4pack_for_cpu(equal, 1);
        opd_tensor *const want = opd__weight_int4pack_mm_for_cpu(many, packed, 32, scales);
        CHECK_INT(opd_int4_block_set(0), block);
        args[0] = opd_value_tensor(many);
        args[1] = opd_value_tensor(packed);
        args[2] = opd_value_int(32);
        args[3] = opd_value_tensor(scales);
        args[4] = opd_value_int(block);
        CHECK(near(opd_call_op(opd_find("opdispatch::int4pack_mm"), args, 5), want));
    }
    CHECK_OK();
    CHECK_INT(opd_int4_block_set(16), -1);
    opd_error_clear();
}
/* Convolutions of each channel by itself, with all that may follow; and of groups of several channels, which are
   computed in floats. */
TEST(convolutions_of_channels_by_themselves) {
    static const int64_t channels[] = {2, 31, 33, 70};
    for (int at = 0; at < 32; at++) {
        OPD_SCOPED;
        const int64_t c = channels[at % 4], each = at == 5 || at == 10 ? 2 : 1, groups = at == 10 ? 1 : c;
        const layer its = {at & 4 ? CHARS : BYTES, ROWS, CONV};
        opd_graph *graph = opd_graph_new();
        opd_graph_value *in[5], *y;
        static const char *const names[5] = {"x", "w", "s", "z", "b"};
        for (int i = 0; i < 5; i++) { in[i] = opd_graph_input(graph, names[i], NULL); }
        opd_graph_value *x = input_of(graph, &its, in[0], c), *w = weight_of(graph, &its, in);
        y = OPD_GRAPH_CALL(graph, "aten::conv2d", x, w, in[4], OPD_INTS(1 + (at & 1), 2), OPD_INTS(1, at & 2),
                           OPD_INTS(1, 1 + (at & 1)), groups);
        if (at & 8) { y = OPD_GRAPH_CALL(graph, "aten::relu", y); }
        if (at & 16) { y = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", y, 0.07, 3, 0, 255, OPD_UINT8); }
        CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
        opd_graph *fused = opd_graph_copy(graph);
        CHECK_INT(opd_graph_fuse_quantized(fused), 1);
        opd_tensor *args[5], *want = NULL, *got = NULL;
        args[0] = numbers(OPD_INTS(2, c, 9, 75), 1);
        args[1] = codes(OPD_INTS(c * each, groups == 1 ? c : 1, 3, 2), 2);
        args[2] = opd_add_Scalar(opd_abs(numbers(OPD_INTS(c * each), 3)), opd_value_double(0.01));
        args[3] = opd_zeros(OPD_INTS(c * each), OPD_INT64);
        args[4] = numbers(OPD_INTS(c * each), 5);
        CHECK_INT(opd_graph_run(graph, args, 5, &want, 1), 1);
        CHECK_INT(opd_graph_run(fused, args, 5, &got, 1), 1);
        if (at & 16) {                            /* a tie may be rounded to the next code */
            const double most = opd_item_f64(opd_max(opd_abs(opd_sub(opd_to_dtype(got, OPD_INT32),
                                                                     opd_to_dtype(want, OPD_INT32)))));
            CHECK(opd_dtype(got) == OPD_UINT8 && most <= 1);
        } else { CHECK(near(got, want)); }
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
    CHECK_OK();
}
/* Weights that a graph packs for oneDNN's layers are read where they are, unless the graph writes them, or uses what
   was packed in another way. */
TEST(weights_that_are_packed_in_the_graph) {
    static const char *const texts[] = {
        "graph(%x : Tensor, %w : Char(5, 16, strides=[16, 1], device=cpu), %s : Tensor, %z : Tensor):\n"
        "  %n : NoneType = prim::Constant()\n  %scale : float = prim::Constant[value=0.02]()\n"
        "  %i : int = prim::Constant[value=3]()\n  %one : float = prim::Constant[value=1.]()\n"
        "  %f32 : int = prim::Constant[value=6]()\n  %o : int = prim::Constant[value=0]()\n"
        "  %t : str = prim::Constant[value=\"none\"]()\n  %l : Scalar[] = prim::ListConstruct()\n"
        "  %p : Tensor = onednn::qlinear_prepack(%w, %n)\n"
        "  %y : Tensor = onednn::qlinear_pointwise(%x, %scale, %i, %p, %s, %z, %n, %one, %o, %f32, %t, %l, %t)\n",
        "  %zero : Tensor = aten::zero_(%w)\n", "  %y.2 : Tensor = aten::abs(%p)\n"};
    for (int other = 0; other < 3; other++) {
        OPD_SCOPED;
        char text[2000];
        snprintf(text, sizeof text, "%s%s  return (%%y)\n", texts[0], other ? texts[other] : "");
        opd_graph *graph = opd_graph_parse(text), *fused = graph ? opd_graph_copy(graph) : NULL;
        CHECK_OR_RETURN(fused != NULL);
        CHECK_INT(opd_graph_fuse_quantized(fused), !other);
        CHECK_INT(opd_graph_count(fused, "onednn::qlinear_prepack"), other != 0);
        for (int run = 0; run < 2; run++) {
            opd_tensor *in[4], *want, *got;
            in[0] = opd_to_dtype(opd_abs(numbers(OPD_INTS(run ? 3 : 40, 16), 1)), OPD_UINT8);
            in[1] = codes(OPD_INTS(5, 16), 2);
            in[2] = opd_abs(numbers(OPD_INTS(5), 3));
            in[3] = opd_zeros(OPD_INTS(5), OPD_INT64);
            CHECK_INT(opd_graph_run(graph, in, 4, &want, 1), 1);
            in[1] = codes(OPD_INTS(5, 16), 2);
            CHECK_INT(opd_graph_run(fused, in, 4, &got, 1), 1);
            CHECK(opd_ok() && opd_equal(got, want));
        }
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
}
/* Two transposes of a matrix cancel; two permutations of a weight of planes need not. */
TEST(weights_that_are_permuted_twice) {
    for (int conv = 0; conv < 2; conv++) {
        OPD_SCOPED;
        opd_graph *graph = opd_graph_new();
        opd_graph_value *x = opd_graph_input(graph, "x", NULL), *w = opd_graph_input(graph, "w", NULL), *y;
        const layer its = {BYTES, ONE, conv ? CONV : LINEAR};
        x = input_of(graph, &its, x, 3);
        w = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", w, 0.013, 0, -128, 127, OPD_INT8);
        w = OPD_GRAPH_CALL(graph, "aten::transpose.int", OPD_GRAPH_CALL(graph, "aten::numpy_T", w), 0, 1);
        y = conv ? OPD_GRAPH_CALL(graph, "aten::conv2d", x, w) : OPD_GRAPH_CALL(graph, "aten::linear", x, w);
        CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
        opd_graph *fused = opd_graph_copy(graph);
        CHECK_INT(opd_graph_fuse_quantized(fused), !conv);
        opd_tensor *in[2] = {conv ? numbers(OPD_INTS(1, 3, 5, 5), 1) : numbers(OPD_INTS(4, 3), 1), NULL}, *want, *got;
        in[1] = conv ? codes(OPD_INTS(3, 3, 3, 3), 2) : codes(OPD_INTS(3, 3), 2);
        CHECK_INT(opd_graph_run(graph, in, 2, &want, 1), 1);
        CHECK_INT(opd_graph_run(fused, in, 2, &got, 1), 1);
        CHECK(near(got, want));
        opd_graph_free(graph);
        opd_graph_free(fused);
    }
    CHECK_OK();
}
/* Sums of groups are multiplied by the scales of the input last: without these, they must not overflow. */
TEST(large_scales_of_groups) {
    OPD_SCOPED;
    opd_value v[11];
    for (int i = 5; i < 10; i++) { v[i] = opd_value_none(); }
    v[0] = opd_value_tensor(opd_full(OPD_INTS(2, 64), opd_value_int(200), OPD_UINT8));
    v[1] = opd_value_tensor(opd_full(OPD_INTS(2), opd_value_double(1e-3), OPD_FLOAT32));
    v[2] = opd_value_tensor(opd_full(OPD_INTS(2), opd_value_int(190), OPD_INT64));
    v[3] = opd_value_tensor(opd_full(OPD_INTS(3, 64), opd_value_int(7), OPD_INT8));
    v[4] = opd_value_tensor(opd_full(OPD_INTS(3, 2), opd_value_double(1e34), OPD_FLOAT32));
    v[10] = opd_value_doubles(NULL, 0);
    opd_tensor *const y = opd_call_op(opd_find("opdispatch::quantized_linear"), v, 11);
    CHECK(y && fabs(opd_item_f64(opd_max(y)) / (64 * 70e31) - 1) < 1e-5);
    CHECK(y && fabs(opd_item_f64(opd_min(y)) / (64 * 70e31) - 1) < 1e-5);
    CHECK_OK();
}
/* Rules that no graph has: numbers of operators and dims that do not exist are errors. */
TEST(rules_that_do_not_exist) {
    static const int64_t wrong[][2] = {{-1, 0}, {6, 0}, {INT64_MAX, 0}, {INT64_MIN, 0}, {5, -1}, {5, 65}, {5, INT64_MIN}};
    OPD_SCOPED;
    opd_tensor *const x = opd_ones(OPD_INTS(2, 4), OPD_UINT8), *const w = opd_ones(OPD_INTS(3, 4), OPD_INT8);
    opd_tensor *const scale = opd_ones(OPD_INTS(1), OPD_FLOAT32), *const zero = opd_zeros(OPD_INTS(1), OPD_INT64);
    for (int k = 0; k < 7 * 3; k++) {
        int64_t rules[9] = {1, OPD_UINT8, 0, 0, 1, OPD_INT8, 0, 0, 0};
        opd_value v[12];
        const int at = k % 3 * 4;                 /* the input's rule, the weight's, and that of an embedding */
        rules[at % 8] = wrong[k / 3][0];
        rules[at % 8 + 3] = wrong[k / 3][1];
        for (int i = 0; i < 12; i++) { v[i] = opd_value_none(); }
        v[0] = opd_value_tensor(at == 8 ? w : x);
        v[1] = opd_value_tensor(scale);
        v[2] = opd_value_tensor(zero);
        v[3] = opd_value_tensor(at == 8 ? opd_zeros(OPD_INTS(1), OPD_INT64) : w);
        v[4] = at == 8 ? opd_value_int(-1) : v[1];
        for (int i = 5; i < 7 && at == 8; i++) { v[i] = opd_value_bool(false); }
        v[7] = at == 8 ? opd_value_ints(rules, 4) : v[7];
        v[10] = opd_value_doubles(NULL, 0);
        v[11] = opd_value_ints(rules, 9);
        CHECK(opd_call_op(opd_find(at == 8 ? "opdispatch::quantized_embedding" : "opdispatch::quantized_linear"), v,
                          at == 8 ? 8 : 12) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "must begin with the number of an operator");
    }
    CHECK_OK();
}
TEST(sums_of_bytes_are_exact) {
    CHECK(opd_find("opdispatch::quantized_linear") != NULL);          /* from now on, sums of bytes have their own way */
    opd_tensor *w = codes(OPD_INTS(37, 200), 6);
    for (int64_t dim = 0; dim < 2; dim++) {
        opd_tensor *view = dim ? w : opd_t(w);
        opd_tensor *got = opd_sum_dim_full(view, opd_ints_of(&dim, 1), true, opd_value_int(OPD_INT32));
        CHECK(opd_equal(got, opd_sum_dim_full(opd_to_dtype(view, OPD_INT32), opd_ints_of(&dim, 1), true,
                                              opd_value_int(OPD_INT32))));
    }
    CHECK_OK();
}
CHECK_MAIN()
