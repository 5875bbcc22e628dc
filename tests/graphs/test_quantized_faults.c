/* What graphs of codes do with wrong scales, zero points, dtypes and ranges: a graph whose layers
   opd_graph_fuse_quantized has replaced gives the results of the graph itself, or an error of the same kind; also if
   sizes and dtypes are unknown when it replaces them, or are others in the run. */
#include "../../opdispatch.h"
#include "../check.h"

#define QD "quantized_decomposed::"
#define AO "torchao::"
/* What uses the codes. */
enum { LINEAR, MM, ADDMM, CONV, LINEAR_ENDS, CONV_ADD, EMBED, CAT, AGAIN, POOL, RESHAPE, USES };
/* How codes become floats. */
enum { BY_NUMBERS, BY_TENSORS, BY_CHANNEL, BY_TOKEN, BY_GROUP, BY_BLOCK, WAYS };
/* What is wrong with the codes of the input or of the weight. */
enum { NOTHING, CODES, DECLARED, SCALES, ZEROS, SCALE_DTYPE, ZERO_DTYPE, ZERO, RANGE, GROUP_SIZE };
typedef struct fault { int what; int64_t number; } fault;
static const fault faults[] = {
    {NOTHING, 0}, {CODES, OPD_UINT8}, {CODES, OPD_INT16}, {CODES, OPD_INT32}, {CODES, OPD_BOOL}, {CODES, OPD_FLOAT32},
    {DECLARED, OPD_UINT8}, {DECLARED, OPD_INT16}, {DECLARED, OPD_INT32}, {SCALES, 0}, {SCALES, 1}, {SCALES, 3},
    {SCALES, 7}, {SCALES, 8}, {SCALES, 16}, {SCALES, 64}, {ZEROS, 0}, {ZEROS, 1}, {ZEROS, 3}, {ZEROS, 7}, {ZEROS, 8},
    {ZEROS, 16}, {ZEROS, 64}, {SCALE_DTYPE, OPD_FLOAT64}, {SCALE_DTYPE, OPD_FLOAT16}, {SCALE_DTYPE, OPD_INT64},
    {ZERO_DTYPE, OPD_INT8}, {ZERO_DTYPE, OPD_UINT8}, {ZERO_DTYPE, OPD_INT32}, {ZERO_DTYPE, OPD_INT16},
    {ZERO_DTYPE, OPD_FLOAT32}, {ZERO_DTYPE, OPD_FLOAT16}, {ZERO, 100}, {ZERO, 1000}, {ZERO, -70000}, {RANGE, 7},
    {RANGE, 200}, {RANGE, -1}, {GROUP_SIZE, 4}, {GROUP_SIZE, 5}, {GROUP_SIZE, 1}, {GROUP_SIZE, 32}};
enum { FAULTS = (int)(sizeof faults / sizeof faults[0]) };
typedef struct program { int use, ways[2], at; fault wrong; } program;   /* at: the operand, 0 or 1, that is wrong */

static opd_tensor *filled(opd_ints sizes, int seed, opd_scalar_type dtype) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_INT64);
    for (int64_t i = 0; i < opd_numel(x); i++) {
        const int64_t code = (i * 7919 + seed * 31) % 100;
        ((int64_t *)opd_data(x))[i] = dtype == OPD_UINT8 || dtype == OPD_BOOL ? code : code - 50;
    }
    return opd_to_dtype(x, dtype);
}
/* The sizes of the operands: 4 rows of 16 and 8 rows of 16, or images. */
static opd_ints sizes_of(int use, int operand) {
    static const int64_t x[2] = {4, 16}, w[2] = {8, 16}, image[4] = {1, 4, 5, 16}, planes[4] = {8, 4, 3, 16};
    static const int64_t added[4] = {1, 8, 5, 16};
    if (use == CONV_ADD && !operand) { return opd_ints_of(added, 4); }
    if (use == CONV || use == CONV_ADD) { return opd_ints_of(operand ? planes : image, 4); }
    if (use == POOL) { return opd_ints_of(image, 4); }
    return opd_ints_of(operand ? w : x, 2);
}
/* The number of scales that operand needs. */
static int64_t steps_of(const program *its, int operand) {
    const opd_ints sizes = sizes_of(its->use, operand);
    int64_t rows = 1;
    for (int i = 0; i < sizes.n - 1; i++) { rows *= sizes.data[i]; }
    switch (its->ways[operand]) {
    case BY_CHANNEL: return sizes.data[0];
    case BY_TOKEN: return rows;
    case BY_GROUP:
    case BY_BLOCK: return 2 * rows;
    default: return 1;
    }
}
static opd_tensor *column(opd_tensor *steps, const program *its, int operand) {
    int64_t sizes[4] = {1, 1, 1, 1};
    const opd_ints all = sizes_of(its->use, operand);
    if (its->ways[operand] != BY_TOKEN) { return steps; }
    for (int i = 0; i < all.n - 1; i++) { sizes[i] = all.data[i]; }
    if (opd_numel(steps) != steps_of(its, operand)) {
        for (int i = 0; i < all.n; i++) { sizes[i] = 1; }
        sizes[opd_numel(steps) == 16 ? all.n - 1 : all.n - 2] = opd_numel(steps);
    }
    return opd_reshape(steps, opd_ints_of(sizes, all.n));
}
/* Makes the codes, scales and zero points of an operand.  right: nothing is wrong with them. */
static void operand_of(const program *its, int operand, bool right, opd_tensor **out) {
    const bool wrong = !right && its->at == operand;
    const int what = wrong ? its->wrong.what : NOTHING;
    const int64_t number = its->wrong.number, count = steps_of(its, operand);
    opd_tensor *scales = opd_abs(filled(OPD_INTS(what == SCALES ? number : count), 3 + operand, OPD_FLOAT32)), *zeros;
    zeros = filled(OPD_INTS(what == ZEROS ? number : count), 5 + operand, OPD_INT64);
    if (operand) { (void)opd_zero_(zeros); }
    if (what == ZERO) { (void)opd_fill_(zeros, opd_value_int(number)); }
    if (what == ZERO_DTYPE) {
        zeros = opd_to_dtype(opd_add_Scalar(zeros, opd_value_int(100)), (opd_scalar_type)number);
    }
    scales = opd_mul_Scalar(opd_add_Scalar(scales, opd_value_int(3)), opd_value_double(0.01));
    if (what == SCALE_DTYPE) {
        scales = opd_to_dtype(opd_mul_Scalar(scales, opd_value_int(100)), (opd_scalar_type)number);
    }
    out[0] = filled(sizes_of(its->use, operand), 1 + operand, what == CODES ? (opd_scalar_type)number : OPD_INT8);
    out[1] = column(scales, its, operand);
    out[2] = column(zeros, its, operand);
}
/* Returns the floats of an operand; in: its codes, scales and zero points. */
static opd_graph_value *wide_of(opd_graph *graph, const program *its, int operand, opd_graph_value *const *in) {
    const bool wrong = its->at == operand;
    const int what = wrong ? its->wrong.what : NOTHING;
    const int64_t number = its->wrong.number, group = what == GROUP_SIZE ? number : 8;
    const int dtype = what == DECLARED ? (int)number : OPD_INT8, low = what == RANGE ? -(int)number : -128;
    const int high = what == RANGE ? (int)number : 127, last = (int)sizes_of(its->use, operand).n - 1;
    int64_t block[4] = {1, 1, 1, 1};
    block[last] = group;
    switch (its->ways[operand]) {
    case BY_NUMBERS:
        return OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", in[0], 0.013,
                              what == ZERO ? (int)number : operand ? 0 : 5, low, high, dtype);
    case BY_TENSORS:
        return OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor.tensor", in[0], in[1], in[2], low, high, dtype);
    case BY_CHANNEL:
        return OPD_GRAPH_CALL(graph, QD "dequantize_per_channel", in[0], in[1], in[2], 0, low, high, dtype);
    case BY_TOKEN:
        return OPD_GRAPH_CALL(graph, QD "dequantize_per_token", in[0], in[1], in[2], low, high, dtype, OPD_FLOAT32);
    case BY_GROUP:
        return OPD_GRAPH_CALL(graph, QD "dequantize_per_channel_group", in[0], in[1], in[2], low, high, dtype,
                              (int)group, OPD_FLOAT32);
    default:
        return OPD_GRAPH_CALL(graph, AO "dequantize_affine", in[0], opd_ints_of(block, last + 1), in[1], in[2], dtype,
                              low, high);
    }
}
/* The zero point, quant_min, quant_max and dtype of the codes that a graph makes. */
static const int endings[][4] = {
    {5, -128, 127, OPD_INT8}, {5, 0, 255, OPD_UINT8}, {0, -8, 7, OPD_INT8}, {300, 0, 255, OPD_UINT8},
    {-100000, -128, 127, OPD_INT8}, {5, -1, 255, OPD_UINT8}, {5, -129, 127, OPD_INT8}, {5, -128, 128, OPD_INT8},
    {5, 0, 127, OPD_INT8}, {5, 100, 50, OPD_UINT8}, {5, 0, 1000, OPD_INT16}, {5, 0, 100, OPD_INT32},
    {5, 0, 100, OPD_FLOAT32}, {5, 0, 1, OPD_BOOL}};
static int ending;
static opd_graph_value *coded(opd_graph *graph, opd_graph_value *x) {
    const int *const with = endings[ending];
    return OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", x, 0.013, with[0], with[1], with[2], with[3]);
}
/* The inputs of the graph are codes, scales and zero points of both operands, and indices. */
static opd_graph *graph_of(const program *its) {
    static const char *const names[7] = {"x", "s", "z", "w", "t", "v", "i"};
    opd_graph *graph = opd_graph_new();
    opd_graph_value *in[7], *wide[2], *y;
    for (int i = 0; i < 7; i++) { in[i] = opd_graph_input(graph, names[i], NULL); }
    for (int i = 0; i < 2; i++) { wide[i] = wide_of(graph, its, i, in + 3 * i); }
    opd_graph_value *turned = its->use == MM || its->use == ADDMM ? OPD_GRAPH_CALL(graph, "aten::t", wide[1]) : NULL;
    switch (its->use) {
    case LINEAR: y = OPD_GRAPH_CALL(graph, "aten::linear", wide[0], wide[1]); break;
    case MM: y = OPD_GRAPH_CALL(graph, "aten::mm", wide[0], turned); break;
    case ADDMM: y = OPD_GRAPH_CALL(graph, "aten::addmm", in[6], wide[0], turned); break;
    case LINEAR_ENDS:
        y = OPD_GRAPH_CALL(graph, "aten::gelu", OPD_GRAPH_CALL(graph, "aten::linear", wide[0], wide[1]));
        y = coded(graph, y);
        break;
    case CONV: y = OPD_GRAPH_CALL(graph, "aten::conv2d", wide[0], wide[1]); break;
    case CONV_ADD:
        y = OPD_GRAPH_CALL(graph, QD "quantize_per_tensor", in[6], 0.02, 3, -128, 127, OPD_INT8);
        y = OPD_GRAPH_CALL(graph, QD "dequantize_per_tensor", y, 0.02, 3, -128, 127, OPD_INT8);
        y = OPD_GRAPH_CALL(graph, "aten::conv2d", y, wide[1]);      /* the codes that are added are wrong */
        y = coded(graph, OPD_GRAPH_CALL(graph, "aten::relu", OPD_GRAPH_CALL(graph, "aten::add.Tensor", y, wide[0])));
        break;
    case EMBED: y = OPD_GRAPH_CALL(graph, "aten::embedding", wide[1], in[6]); break;
    case CAT:
        y = coded(graph, OPD_GRAPH_CALL(graph, "aten::cat", opd_graph_list(graph, "Tensor", wide, 2), 0));
        break;
    case AGAIN: y = coded(graph, wide[0]); break;
    case POOL: y = coded(graph, OPD_GRAPH_CALL(graph, "aten::max_pool2d", wide[0], OPD_INTS(2, 2))); break;
    default: y = coded(graph, OPD_GRAPH_CALL(graph, "aten::reshape", wide[0], OPD_INTS(-1))); break;
    }
    CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
    return graph;
}
static opd_tensor *rest_of(int use) {
    if (use == ADDMM) { return filled(OPD_INTS(8), 9, OPD_FLOAT32); }
    if (use == CONV_ADD) {
        return opd_mul_Scalar(filled(OPD_INTS(1, 4, 7, 31), 9, OPD_FLOAT32), opd_value_double(0.02));
    }
    return opd_remainder_Scalar(opd_abs(filled(OPD_INTS(2, 3), 9, OPD_INT64)), opd_value_int(8));
}
static bool near(opd_tensor *got, opd_tensor *want, double room) {
    if (opd_dtype(got) != opd_dtype(want) || opd_ndim(got) != opd_ndim(want)) { return false; }
    for (int i = 0; i < opd_ndim(got); i++) { if (opd_size(got, i) != opd_size(want, i)) { return false; } }
    if (opd_numel(want) == 0) { return true; }
    if (opd_dtype(want) == OPD_INT8) { room = 1; }                     /* a tie may be rounded to the next code */
    got = opd_to_dtype(got, OPD_FLOAT64);
    want = opd_to_dtype(want, OPD_FLOAT64);
    const double most = opd_item_f64(opd_max(opd_abs(want))), off = opd_item_f64(opd_max(opd_abs(opd_sub(got, want))));
    return off <= (room < 1 ? room * most : room);
}
static int run(opd_graph *graph, opd_tensor *const *in, opd_tensor **out, char *text) {
    const int rc = opd_graph_run(graph, in, 7, out, 1);
    const int code = rc < 0 ? (int)opd_error_code() : 0;
    text[0] = 0;
    if (rc < 0) { (void)snprintf(text, 200, "%s", opd_error_message()); }
    opd_error_clear();
    return code;
}
static int compared, fused_in_all, right_in_all, failures;
/* known: 0: the graph knows nothing of its inputs; 1: it knows these; 2: it knows right ones. */
static void check_program(const program *its, int known) {
    opd_tensor *in[7], *right[7], *want = NULL, *got = NULL;
    char texts[2][200];
    for (int i = 0; i < 2; i++) {
        operand_of(its, i, false, in + 3 * i);
        operand_of(its, i, true, right + 3 * i);
    }
    in[6] = right[6] = rest_of(its->use);
    if (!opd_ok()) {
        CHECK_OK();
        return;
    }
    opd_graph *graph = graph_of(its), *fused = opd_graph_copy(graph);
    if (known) { (void)opd_graph_infer(fused, known == 1 ? in : right, 7); }
    opd_error_clear();                            /* a wrong program cannot be inferred */
    const int count = opd_graph_fuse_quantized(fused);
    CHECK(count >= 0 && opd_graph_check(fused) == 0);
    const int codes[2] = {run(graph, in, &want, texts[0]), run(fused, in, &got, texts[1])};
    const bool same = codes[0] == codes[1] && (codes[0] || near(got, want, 4e-6));
    CHECK(same);
    if (!same && failures++ < 20) {
        printf("use %d, ways %d and %d, operand %d, fault %d %lld, known %d, fused %d: '%s', but fused '%s'\n",
               its->use, its->ways[0], its->ways[1], its->at, its->wrong.what, (long long)its->wrong.number, known,
               count, texts[0], texts[1]);
    }
    compared++;
    fused_in_all += count > 0;
    right_in_all += same && !codes[0];
    opd_graph_free(graph);
    opd_graph_free(fused);
}
static void check_use(int use) {
    program its;
    its.use = use;
    for (int x = 0; x < WAYS; x++) {
        for (int w = 0; w < WAYS; w++) {
            const bool alone = use == AGAIN || use == POOL || use == RESHAPE;
            its.ways[0] = x;
            its.ways[1] = w;
            if (x == BY_CHANNEL || x == BY_GROUP || w == BY_TOKEN || (alone && w) || (use == EMBED && x) ||
                (w == BY_GROUP && (use == CONV || use == CONV_ADD))) { continue; }
            if (use == CAT && (x || w)) { continue; }
            for (int at = 0; at < 2 * FAULTS * 3; at++) {
                its.at = at & 1;
                its.wrong = faults[at / 6];
                if ((its.at == 1 && alone) || (its.at == 0 && use == EMBED)) { continue; }
                OPD_SCOPE { check_program(&its, at / 2 % 3); }
            }
        }
    }
}
TEST(linear_layers) {
    for (int use = LINEAR; use <= ADDMM; use++) { check_use(use); }
    check_use(LINEAR_ENDS);
    CHECK_OK();
}
TEST(convolutions) {
    check_use(CONV);
    check_use(CONV_ADD);
    CHECK_OK();
}
TEST(embeddings_and_lists) {
    for (int use = EMBED; use < USES; use++) { check_use(use); }
    CHECK_OK();
}
TEST(quantisations_behind_operators) {
    static const fault right = {NOTHING, 0};
    for (ending = 0; ending < (int)(sizeof endings / sizeof endings[0]); ending++) {
        for (int use = 0; use < USES; use++) {
            program its;
            its.use = use;
            its.ways[0] = its.ways[1] = BY_NUMBERS;
            its.at = 0;
            its.wrong = right;
            for (int known = 0; known < 3; known++) { OPD_SCOPE { check_program(&its, known); } }
        }
    }
    ending = 0;
    CHECK_OK();
}
TEST(most_graphs_are_fused_and_half_of_them_are_right) {
    CHECK(compared > 30000 && 10 * fused_in_all > 8 * compared && 2 * right_in_all > compared);
}
CHECK_MAIN()
