/* opd_graph_fold_batch_norms: each layer with each batch norm gives the same results as before; and the cases in which
   a batch norm must remain. */
#include "../check.h"
#include <math.h>
#include <string.h>

/* What the traced function computes. */
static struct {
    const char *norm;
    opd_scalar_type dtype, stats;                 /* the dtypes of the layer and of the batch norm */
    int layer, groups;
    bool bias, affine, training, twice, used, exposed, input, infinite;
} how;
enum { LAYERS = 9, CHANNELS = 4 };

static opd_tensor *numbers(opd_ints sizes, opd_scalar_type dtype, double least) {
    opd_tensor *const x = opd_empty(sizes, OPD_FLOAT64);
    for (int64_t i = 0; x && i < opd_numel(x); i++) { opd_data_f64(x)[i] = least + (double)(i * 7 % 13) / 8; }
    return opd_to_dtype(x, dtype);
}
static opd_tensor *input_of(void) {
    const int dims = how.layer < 3 ? how.layer + 1 : how.layer < 6 ? how.layer - 2 : how.layer < 8 ? 2 : 0;
    const int64_t sizes[] = {2, 4, 5, 5, 5};
    return numbers(opd_ints_of(sizes, 2 + dims), how.dtype, -0.5);
}
/* The constants, which are made before the trace. */
static struct { opd_tensor *weight, *bias, *scale, *shift, *mean, *var; } made;
/* Returns the result of the layer: conv1d to conv3d, conv_transpose1d to conv_transpose3d, convolution (both ways), and
   linear. */
static opd_tensor *layer_of(opd_tensor *x, opd_tensor *weight) {
    static const char *const names[LAYERS] = {"conv1d", "conv2d", "conv3d", "conv_transpose1d",
        "conv_transpose2d.input", "conv_transpose3d.input", "convolution", "convolution", "linear"};
    static const int64_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    char name[60];
    const int l = how.layer, dims = l < 3 ? l + 1 : l < 6 ? l - 2 : 2;
    const opd_ints one = opd_ints_of(ones, dims), zero = opd_ints_of(zeros, dims);
    opd_tensor *const bias = made.bias;
    (void)snprintf(name, sizeof name, "aten::%s", names[l]);
    opd_op *const op = opd_find(name);
    if (l < 3) { return OPD_CALL(op, x, weight, bias, one, one, one, (int64_t)how.groups); }
    if (l < 6) { return OPD_CALL(op, x, weight, bias, one, zero, zero, (int64_t)how.groups, one); }
    if (l < 8) { return OPD_CALL(op, x, weight, bias, one, one, one, l == 7, zero, (int64_t)how.groups); }
    return OPD_CALL(op, x, weight, bias);
}
static opd_tensor *weight_of(void) {
    const int64_t sizes[] = {4, 4 / how.groups, 3, 3, 3};
    const int dims = how.layer < 3 ? how.layer + 1 : how.layer < 6 ? how.layer - 2 : how.layer < 8 ? 2 : 0;
    opd_tensor *const weight = numbers(opd_ints_of(sizes, 2 + dims), how.dtype, -0.75);
    return how.infinite ? opd_mul_Scalar(weight, opd_value_double(1e38)) : weight;
}
static void make_constants(void) {
    const int64_t channels = CHANNELS;
    const opd_ints size = opd_ints_of(&channels, 1);
    made.weight = weight_of();
    made.bias = how.bias ? numbers(size, how.dtype, -1) : NULL;
    made.scale = how.affine ? numbers(size, how.stats, 0.5) : NULL;
    made.shift = how.affine ? numbers(size, how.stats, -2) : NULL;
    made.mean = numbers(size, how.stats, -0.25);
    made.var = numbers(size, how.stats, how.infinite ? 1e-5 : 0.125);
}
static opd_tensor *norm_of(opd_tensor *x) {
    char name[60];
    (void)snprintf(name, sizeof name, "aten::%s", how.norm);
    opd_op *const op = opd_find(name);
    if (strcmp(how.norm, "batch_norm") == 0) {
        return OPD_CALL(op, x, made.scale, made.shift, made.mean, made.var, how.training, 0.1, 1e-3, false);
    }
    opd_value args[8], rets[8];
    int n = 0;
    opd_tensor *const all[] = {x, made.scale, made.shift, made.mean, made.var};
    for (; n < 5; n++) { args[n] = all[n] ? opd_value_tensor(all[n]) : opd_value_none(); }
    if (strcmp(how.norm, "native_batch_norm") == 0) { args[n++] = opd_value_bool(false); }
    args[n++] = opd_value_double(0.1);
    args[n++] = opd_value_double(1e-3);
    return opd_call_all(op, rets, args, n) == 0 ? rets[0].u.t : NULL;
}
static int net(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const weight = how.input ? in[1] : made.weight;
    (void)user;
    (void)n;
    out[0] = layer_of(in[0], weight);
    out[1] = how.used ? out[0] : how.exposed ? opd_neg(opd_view(weight, OPD_INTS(-1))) : in[0];
    out[0] = norm_of(out[0]);
    if (how.twice) { out[0] = norm_of(out[0]); }
    out[0] = opd_relu_(out[0]);
    return 2;
}
/* Traces the net, folds its batch norms, and compares the results.  Returns the number of batch norms folded. */
static int fold(void) {
    opd_tensor *want[2], *got[2], *x[2];
    OPD_SCOPED;
    x[0] = input_of();
    make_constants();
    x[1] = made.weight;
    opd_graph *const graph = opd_graph_trace(net, NULL, x, how.input ? 2 : 1, NULL);
    CHECK(graph != NULL);
    if (!graph) { return -1; }
    const int count = how.input ? 2 : 1, nodes = opd_graph_count(graph, NULL);
    CHECK_INT(opd_graph_run(graph, x, count, want, 2), 2);
    const int folded = opd_graph_fold_batch_norms(graph);
    CHECK(folded ? opd_graph_count(graph, NULL) < nodes : opd_graph_count(graph, NULL) == nodes);
    CHECK_INT(opd_graph_run(graph, x, count, got, 2), 2);
    const double most = how.dtype == OPD_FLOAT64 ? 1e-12 : how.dtype == OPD_FLOAT32 ? 1e-4 : 0.06;
    for (int i = 0; i < 2; i++) {
        CHECK(opd_dtype(got[i]) == opd_dtype(want[i]));
        CHECK(how.infinite || opd_allclose_full(opd_to_dtype(got[i], OPD_FLOAT64), opd_to_dtype(want[i], OPD_FLOAT64),
                                                most, most, false));
    }
    opd_graph_free(graph);
    return folded;
}
static void begin(int layer) {
    memset(&how, 0, sizeof how);
    how.norm = "batch_norm";
    how.dtype = how.stats = OPD_FLOAT64;
    how.layer = layer;
    how.groups = 1;
    how.affine = how.bias = true;
}
TEST(layers_and_norms) {
    static const char *const norms[] = {"batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training",
                                        "_batch_norm_no_update"};
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int i = 0; i < 4; i++) {
            begin(layer);
            how.norm = norms[i];
            how.bias = i % 2 == 0;
            how.affine = i < 2;
            how.groups = layer < 8 && i > 0 ? 2 : 1;
            CHECK_INT(fold(), 1);
        }
        begin(layer);
        how.twice = true;
        CHECK_INT(fold(), 2);
    }
}
TEST(dtypes_of_norms) {
    static const opd_scalar_type dtypes[][2] = {{OPD_FLOAT32, OPD_FLOAT32}, {OPD_BFLOAT16, OPD_BFLOAT16},
                                                {OPD_BFLOAT16, OPD_FLOAT32}};
    for (int i = 0; i < 3; i++) {
        begin(1);
        how.dtype = dtypes[i][0];
        how.stats = dtypes[i][1];
        how.bias = i < 2;
        CHECK_INT(fold(), 1);
    }
}
TEST(norms_that_remain) {
    begin(1);
    how.training = true;
    CHECK_INT(fold(), 0);
    begin(1);
    how.used = true;
    CHECK_INT(fold(), 0);
    begin(1);
    how.exposed = true;
    CHECK_INT(fold(), 0);
    begin(1);
    how.input = true;
    CHECK_INT(fold(), 0);
    begin(1);
    how.dtype = how.stats = OPD_FLOAT32;
    how.infinite = true;
    CHECK_INT(fold(), 0);
    begin(1);                                     /* [4, 5, 5]: the channels of the batch norm would be rows */
    OPD_SCOPE {
        opd_tensor *x = numbers(OPD_INTS(4, 4, 5), OPD_FLOAT64, -0.5);
        make_constants();
        opd_graph *const graph = opd_graph_trace(net, NULL, &x, 1, NULL);
        CHECK_INT(opd_graph_fold_batch_norms(graph), 0);
        opd_graph_free(graph);
    }
    CHECK_INT(opd_graph_fold_batch_norms(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_fold_batch_norms: the graph is NULL");
}
/* A layer or a batch norm that writes a tensor: others see what it writes. */
TEST(calls_that_write_stay) {
    static const int64_t none[2] = {0, 0}, one[2] = {1, 1};
    for (int kind = 0; kind < 2; kind++) {
        OPD_SCOPED;
        opd_graph *graph = opd_graph_new();
        opd_graph_value *x = opd_graph_input(graph, "x", "Float(2, 3, 5, 5, strides=[75, 25, 5, 1], device=cpu)");
        opd_graph_value *to = opd_graph_input(graph, "to", "Float(2, 4, 3, 3, strides=[36, 9, 3, 1], device=cpu)"), *y[2];
        opd_graph_value *more[2] = {opd_graph_input(graph, "m", NULL), opd_graph_input(graph, "v", NULL)};
        opd_tensor *const ones = opd_ones(OPD_INTS(4), OPD_FLOAT32), *want[2], *got[2];
        opd_graph_value *w = opd_graph_constant(graph, opd_value_tensor(opd_randn(OPD_INTS(4, 3, 3, 3), OPD_FLOAT32)));
        opd_graph_value *c = opd_graph_constant(graph, opd_value_tensor(opd_mul_Scalar(ones, opd_value_int(3))));
        const opd_value no = opd_value_bool(false), bias = opd_value_none();
        const opd_ints twice = opd_ints_of(one, 2), zeros = opd_ints_of(none, 2);
        if (kind == 0) {
            y[0] = OPD_GRAPH_CALL(graph, "aten::convolution.out", x, w, bias, twice, zeros, twice, no, zeros, 1, to);
            y[0] = OPD_GRAPH_CALL(graph, "aten::batch_norm", y[0], c, c, c, c, no, 0.1, 1e-5, no);
        } else {
            y[0] = OPD_GRAPH_CALL(graph, "aten::convolution", x, w, bias, twice, zeros, twice, no, zeros, 1);
            y[0] = OPD_GRAPH_CALL(graph, "aten::native_batch_norm.out", y[0], c, c, c, c, no, 0.1, 1e-5, to, more[0], more[1]);
        }
        y[1] = OPD_GRAPH_CALL(graph, "aten::neg", to);
        CHECK_INT(opd_graph_output(graph, y, 2, false), 0);
        opd_tensor *in[4] = {opd_randn(OPD_INTS(2, 3, 5, 5), OPD_FLOAT32), opd_zeros(OPD_INTS(2, 4, 3, 3), OPD_FLOAT32),
                             opd_zeros(OPD_INTS(0), OPD_FLOAT32), opd_zeros(OPD_INTS(0), OPD_FLOAT32)};
        CHECK_INT(opd_graph_run(graph, in, 4, want, 2), 2);
        want[0] = opd_clone(want[0]);
        opd_zero_(in[1]);
        CHECK_INT(opd_graph_infer(graph, in, 4), 0);
        CHECK_INT(opd_graph_fold_batch_norms(graph), 0);
        CHECK_INT(opd_graph_run(graph, in, 4, got, 2), 2);
        CHECK(opd_equal(got[0], want[0]) && opd_equal(got[1], want[1]));
        opd_graph_free(graph);
    }
    CHECK_OK();
}
CHECK_MAIN()
