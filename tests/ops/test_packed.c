/* Packed sequences: packing and padding.  Recurrent layers over packed sequences give the same as for each example
   separately. */
#include "../check.h"
#include <math.h>

enum { STEPS = 5, EXAMPLES = 3, FEATURES = 4, HIDDEN = 2 };
static const int64_t lengths[EXAMPLES] = {5, 3, 1};

static opd_tensor *numbers(opd_ints sizes, int seed) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT64);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { opd_data_f64(t)[i] = (double)((i * 7 + seed * 5) % 13) / 8 - 0.7; }
    return t;
}
static opd_tensor *lengths_of(const int64_t *values, int64_t n) {
    opd_tensor *t = opd_tensor_new(opd_ints_of(&n, 1), OPD_INT64);
    if (t) { memcpy(opd_data_i64(t), values, (size_t)n * sizeof *values); }
    return t;
}
static bool near(opd_tensor *a, opd_tensor *b) {
    return a && b && opd_ndim(a) == opd_ndim(b) && opd_numel(a) == opd_numel(b) && opd_allclose(a, b) && opd_ok();
}
/* Packed rows are the rows of all first steps, then the rows of all second steps, and so on.  Padding can add steps
   with another value. */
TEST(packing_and_padding) {
    OPD_SCOPED;
    opd_tensor *x = numbers(OPD_INTS(STEPS, EXAMPLES, FEATURES), 1), *packed[2], *padded[2], *again[2], *part;
    int i;
    CHECK_INT(opd__pack_padded_sequence(packed, x, lengths_of(lengths, EXAMPLES), false), 0);
    CHECK_INT(opd_size(packed[0], 0), 9);
    CHECK_INT(opd_numel(packed[1]), 5);
    CHECK_INT(opd_data_i64(packed[1])[0], 3);
    CHECK_INT(opd_data_i64(packed[1])[4], 1);
    CHECK(near(opd_select(packed[0], 0, 3), opd_select(opd_select(x, 0, 1), 0, 0)));
    CHECK_INT(opd__pack_padded_sequence(again, opd_transpose(x, 0, 1), lengths_of(lengths, EXAMPLES), true), 0);
    CHECK(near(packed[0], again[0]));
    CHECK_INT(opd__pad_packed_sequence(padded, packed[0], packed[1], true, opd_value_double(-2.5), 7), 0);
    CHECK(opd_ndim(padded[0]) == 3 && opd_size(padded[0], 0) == EXAMPLES && opd_size(padded[0], 1) == 7);
    for (i = 0; opd_ok() && i < EXAMPLES; i++) {
        CHECK_INT(opd_data_i64(padded[1])[i], lengths[i]);
        part = opd_select(padded[0], 0, i);
        CHECK(near(opd_narrow(part, 0, 0, lengths[i]), opd_narrow(opd_select(x, 1, i), 0, 0, lengths[i])));
        part = opd_narrow(part, 0, lengths[i], 7 - lengths[i]);
        CHECK(near(part, opd_full(opd_ints_of(opd_sizes(part), 2), opd_value_double(-2.5), OPD_FLOAT64)));
    }
    CHECK_OK();
}
/* The gradient of packing, with autograd and with its backward operator. */
TEST(gradient_of_packing) {
    OPD_SCOPED;
    static const int64_t sizes[3] = {STEPS + 1, EXAMPLES, 2};
    opd_tensor *x = opd_tensor_set_requires_grad(numbers(opd_ints_of(sizes, 3), 2), true), *packed[2], *grad;
    CHECK_INT(opd__pack_padded_sequence(packed, x, lengths_of(lengths, EXAMPLES), false), 0);
    grad = numbers(OPD_INTS(9, 2), 3);
    CHECK_INT(opd_backward(opd_sum(opd_mul(packed[0], grad))), 0);
    CHECK(near(opd_tensor_grad(x), opd__pack_padded_sequence_backward(grad, opd_ints_of(sizes, 3), packed[1], false)));
    CHECK_OK();
}
/* The operators for the cells of an lstm and a gru, and their gradients, first and second, give the same as the formulas
   that other operators compute.  Rows [B, n H] of gates, H = 2. */
static opd_tensor *cell_by_formulas(bool lstm, opd_tensor *const *in, opd_tensor **c) {
    opd_tensor *first = opd_add(in[0], in[3]), *second = opd_add(in[1], in[4]), *part[4], *both;
    both = opd_add(first, second);
    for (int i = 0; i < 2; i++) { part[i] = opd_sigmoid(opd_narrow(both, 1, 2 * i, 2)); }
    if (!lstm) {
        part[2] = opd_tanh(opd_add(opd_narrow(first, 1, 4, 2), opd_mul(part[0], opd_narrow(second, 1, 4, 2))));
        return opd_add(part[2], opd_mul(part[1], opd_sub(in[2], part[2])));
    }
    part[2] = opd_tanh(opd_narrow(both, 1, 4, 2));
    part[3] = opd_sigmoid(opd_narrow(both, 1, 6, 2));
    *c = opd_add(opd_mul(part[1], in[2]), opd_mul(part[0], part[2]));
    return opd_mul(part[3], opd_tanh(*c));
}
TEST(cells_as_one_operator) {
    OPD_SCOPED;
    for (int kind = 0; kind < 8; kind++) {        /* bits: lstm; only the second result; second derivatives */
        const bool lstm = kind & 1, twice = kind & 4;
        const int64_t wide = lstm ? 8 : 6;
        opd_tensor *in[5], *grads[2][5];
        if ((kind & 2) && !lstm) { continue; }
        for (int i = 0; i < 5; i++) {
            const int64_t sizes[] = {3, i == 2 ? 2 : wide};
            in[i] = numbers(opd_ints_of(i < 3 ? sizes : &wide, i < 3 ? 2 : 1), i + kind);
            in[i] = opd_tensor_set_requires_grad(in[i], true);
        }
        for (int way = 0; way < 2; way++) {
            opd_backward_options options;
            opd_tensor *rets[3] = {NULL, NULL, NULL}, *c = NULL, *h, *sum;
            memset(&options, 0, sizeof options);
            options.create_graph = twice;
            if (way == 0) { h = cell_by_formulas(lstm, in, &c); }
            else {
                CHECK_INT(lstm ? opd__thnn_fused_lstm_cell_full(rets, in[0], in[1], in[2], in[3], in[4])
                          : opd__thnn_fused_gru_cell_full(rets, in[0], in[1], in[2], in[3], in[4]), 0);
                h = rets[0];
                c = lstm ? rets[1] : NULL;
                CHECK(!opd_tensor_requires_grad(rets[lstm ? 2 : 1]));
            }
            sum = kind & 2 ? opd_sum(opd_sin(c)) : opd_sum(opd_sin(h));
            if (c && !(kind & 2)) { sum = opd_add(sum, opd_sum(opd_mul(c, c))); }
            CHECK_INT(opd_autograd_grad(&sum, 1, in, 5, &options, grads[way]), 0);
            if (!twice) { continue; }
            sum = NULL;
            for (int i = 0; i < 5; i++) {
                opd_tensor *const square = opd_sum(opd_mul(grads[way][i], grads[way][i]));
                sum = sum ? opd_add(sum, square) : square;
            }
            memset(&options, 0, sizeof options);
            CHECK_INT(opd_autograd_grad(&sum, 1, in, 5, &options, grads[way]), 0);
        }
        for (int i = 0; opd_ok() && i < 5; i++) { CHECK(near(grads[1][i], grads[0][i])); }
    }
    opd_tensor *rets[3], *x = numbers(OPD_INTS(3, 8), 1);
    CHECK(opd__thnn_fused_lstm_cell(rets, x, x, numbers(OPD_INTS(3, 3), 1)) != 0);
    CHECK(strstr(opd_error_message(), "gates") != NULL);
    opd_error_clear();
    CHECK_OK();
}
/* A bidirectional LSTM of two layers over packed sequences gives the same as for each example separately, also for
   gradients. */
TEST(layers_over_packed_sequences) {
    OPD_SCOPED;
    opd_tensor *weights[16], *x = numbers(OPD_INTS(STEPS, EXAMPLES, FEATURES), 4), *packed[2], *rets[3], *padded[2], *alone[3];
    opd_tensor *state[2], *own[2], *whole, *sum = NULL, *mine = NULL, *grads[2];
    int i, k;
    for (i = 0; i < 16; i++) {
        const int64_t rows = 4 * HIDDEN, columns = i % 4 == 1 ? HIDDEN : i < 8 ? FEATURES : 2 * HIDDEN;
        weights[i] = i % 4 < 2 ? numbers(OPD_INTS(rows, columns), i) : numbers(OPD_INTS(rows), i);
    }
    (void)opd_tensor_set_requires_grad(weights[0], true);
    (void)opd_tensor_set_requires_grad(x, true);
    for (i = 0; i < 2; i++) { state[i] = numbers(OPD_INTS(4, EXAMPLES, HIDDEN), 20 + i); }
    CHECK_INT(opd__pack_padded_sequence(packed, x, lengths_of(lengths, EXAMPLES), false), 0);
    CHECK_INT(opd_lstm_data(rets, packed[0], packed[1], opd_tensors_of(state, 2), opd_tensors_of(weights, 16), true, 2, 0, false,
                            true), 0);
    CHECK_INT(opd__pad_packed_sequence(padded, rets[0], packed[1], false, opd_value_int(0), -1), 0);
    sum = opd_sum(opd_mul(padded[0], opd_detach(padded[0])));
    for (i = 0; opd_ok() && i < EXAMPLES; i++) {
        for (k = 0; k < 2; k++) { own[k] = opd_narrow(state[k], 1, i, 1); }
        whole = opd_narrow(opd_narrow(x, 1, i, 1), 0, 0, lengths[i]);
        CHECK_INT(opd_lstm(alone, whole, opd_tensors_of(own, 2), opd_tensors_of(weights, 16), true, 2, 0, false, true, false), 0);
        CHECK(near(alone[0], opd_narrow(opd_narrow(padded[0], 1, i, 1), 0, 0, lengths[i])));
        CHECK(near(alone[1], opd_narrow(rets[1], 1, i, 1)));
        CHECK(near(alone[2], opd_narrow(rets[2], 1, i, 1)));
        whole = opd_sum(opd_mul(alone[0], opd_detach(alone[0])));
        mine = mine ? opd_add(mine, whole) : whole;
    }
    CHECK_INT(opd_backward(sum), 0);
    grads[0] = opd_clone(opd_tensor_grad(x));
    grads[1] = opd_clone(opd_tensor_grad(weights[0]));
    (void)opd_tensor_set_grad(x, NULL);
    (void)opd_tensor_set_grad(weights[0], NULL);
    CHECK_INT(opd_backward(mine), 0);
    CHECK(near(grads[0], opd_tensor_grad(x)));
    CHECK(near(grads[1], opd_tensor_grad(weights[0])));
    CHECK_OK();
}
TEST(what_packing_refuses) {
    OPD_SCOPED;
    static const int64_t growing[] = {1, 3, 5}, none[] = {5, 3, 0}, few[] = {5, 3}, many[] = {6, 3, 1};
    opd_tensor *x = numbers(OPD_INTS(STEPS, EXAMPLES, FEATURES), 1), *out[2];
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(growing, 3), false), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "lengths must be at least 1 and must not increase, but element 1 is 3");
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(none, 3), false), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "element 2 is 0");
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(few, 2), false), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected `len(lengths)` to be equal to batch_size, but got 2 (batch_size=3)");
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(many, 3), false), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected lengths of at most 5");
    CHECK_INT(opd__pad_packed_sequence(out, x, lengths_of(few, 2), false, opd_value_int(0), -1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "data must have 8 rows");
    CHECK_INT(opd__pad_packed_sequence(out, numbers(OPD_INTS(8, 2), 1), lengths_of(few, 2), false, opd_value_int(0), 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "got total_length=1 and max sequence length being 2");
}
CHECK_MAIN()

/* An lstm of floats is one function on the tape, one of doubles is made of operators: outputs, gradients and gradients
   of these are the same. */
typedef struct layer_case { int steps, examples, features, hidden; } layer_case;
typedef struct layer_run { opd_tensor *in[20], *outs[3], *grads[20]; int count; } layer_run;
static void layer_inputs(const layer_case *one, bool biases, int layers, int ways, layer_run *single, layer_run *twice) {
    const int64_t wide = 4 * one->hidden;
    int seed = 1;
    single->count = 0;
    for (int i = 0; i < 3; i++) {
        single->in[single->count++] = i ? numbers(OPD_INTS(layers * ways, one->examples, one->hidden), seed++)
            : numbers(OPD_INTS(one->steps, one->examples, one->features), seed++);
    }
    for (int i = 0; i < layers * ways; i++) {
        const int64_t features = i < ways ? one->features : ways * one->hidden;
        single->in[single->count++] = numbers(OPD_INTS(wide, features), seed++);
        single->in[single->count++] = numbers(OPD_INTS(wide, one->hidden), seed++);
        for (int k = 0; k < 2 && biases; k++) { single->in[single->count++] = numbers(OPD_INTS(wide), seed++); }
    }
    twice->count = single->count;
    for (int i = 0; i < single->count; i++) {
        const double scale = i < 3 ? 1 : 0.6 / sqrt((double)opd_size(single->in[i], -1));
        single->in[i] = opd_to_dtype(opd_mul(single->in[i], opd_full(opd_ints_of(NULL, 0), opd_value_double(scale), OPD_FLOAT64)), OPD_FLOAT32);
        twice->in[i] = opd_to_dtype(single->in[i], OPD_FLOAT64);
        (void)opd_tensor_set_requires_grad(single->in[i], true);
        (void)opd_tensor_set_requires_grad(twice->in[i], true);
    }
}
/* Outputs and gradients, or those of the gradients' squares; `used`: bits of the outputs that count. */
static int layer_grads(layer_run *run, bool biases, int layers, bool both, int used, bool second) {
    opd_backward_options options;
    opd_tensor *sum = NULL, *again = NULL;
    if (opd_lstm(run->outs, run->in[0], opd_tensors_of(run->in + 1, 2), opd_tensors_of(run->in + 3, run->count - 3),
                 biases, layers, 0, false, both, false)) {
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        opd_tensor *const part = used >> i & 1 ? opd_sum(opd_sin(run->outs[i])) : NULL;
        if (part) { sum = sum ? opd_add(sum, part) : part; }
    }
    memset(&options, 0, sizeof options);
    options.create_graph = second;
    options.allow_unused = options.materialize_grads = true;
    if (opd_autograd_grad(&sum, 1, run->in, run->count, &options, run->grads)) { return -1; }
    if (!second) { return 0; }
    for (int i = 0; i < run->count; i++) {
        opd_tensor *const part = opd_sum(opd_square(run->grads[i]));
        again = again ? opd_add(again, part) : part;
    }
    options.create_graph = false;
    return opd_autograd_grad(&again, 1, run->in, run->count, &options, run->grads);
}
/* The largest difference, of the largest number and one. */
static double layer_apart(opd_tensor *single, opd_tensor *twice) {
    opd_tensor *const all = opd_reshape(opd_abs(opd_sub(opd_to_dtype(single, OPD_FLOAT64), twice)), OPD_INTS(-1)),
        *const large = opd_reshape(opd_abs(twice), OPD_INTS(-1));
    const opd_tensor *const worst = all ? opd_max(all) : NULL, *const most = large ? opd_max(large) : NULL;
    return worst && most ? opd_data_f64((opd_tensor *)(uintptr_t)worst)[0] /
        (1 + opd_data_f64((opd_tensor *)(uintptr_t)most)[0]) : 1e9;
}
TEST(lstm_as_one_function) {
    static const layer_case cases[] = {{5, 3, 4, 7}, {1, 1, 1, 1}, {4, 16, 8, 32}, {3, 2, 5, 33}, {4, 1, 3, 140},
                                       {6, 5, 16, 17}, {3, 9, 5, 70}, {2, 8, 4, 300}};
    for (int k = 0; k < 8 * 16; k++) {
        if (!check_visits((size_t)(k + k / 16), 8 * 16)) { continue; }
        OPD_SCOPE {
            const bool biases = k & 1, both = k >> 1 & 1, second = k >> 2 & 1;
            const int layers = 1 + (k >> 3 & 1), used = 1 + (k * 5 + k / 16) % 7;
            layer_run single, twice;
            layer_inputs(&cases[k / 16], biases, layers, both ? 2 : 1, &single, &twice);
            CHECK_INT(layer_grads(&single, biases, layers, both, used, second), 0);
            CHECK_INT(layer_grads(&twice, biases, layers, both, used, second), 0);
            for (int i = 0; opd_ok() && i < 3; i++) { CHECK(layer_apart(single.outs[i], twice.outs[i]) < 2e-6); }
            for (int i = 0; opd_ok() && i < single.count; i++) {
                CHECK(layer_apart(single.grads[i], twice.grads[i]) < 2e-5);
            }
            OPD_NO_GRAD {
                opd_tensor *alone[3];
                CHECK_INT(opd_lstm(alone, single.in[0], opd_tensors_of(single.in + 1, 2),
                                   opd_tensors_of(single.in + 3, single.count - 3), biases, layers, 0, false, both,
                                   false), 0);
                for (int i = 0; opd_ok() && i < 3; i++) { CHECK(opd_equal(alone[i], single.outs[i])); }
            }
            CHECK_OK();
        }
    }
}
/* Turned operands, the same bits with any number of threads, several gradients in one vmap, and NaN. */
TEST(lstm_of_other_operands) {
    OPD_SCOPED;
    static const layer_case one = {6, 9, 5, 64};
    layer_run first, other, twice;
    opd_tensor *ways[2], *several, *got[20];
    opd_backward_options options;
    const int threads = opd_threads();
    layer_inputs(&one, true, 1, 1, &first, &twice);
    CHECK_INT(layer_grads(&first, true, 1, false, 7, false), 0);
    opd_threads_set(3);
    other = first;
    CHECK_INT(layer_grads(&other, true, 1, false, 7, false), 0);
    opd_threads_set(threads);
    for (int i = 0; opd_ok() && i < first.count; i++) { CHECK(opd_equal(first.grads[i], other.grads[i])); }
    other.in[0] = opd_transpose(opd_contiguous(opd_transpose(first.in[0], 0, 2)), 0, 2);
    other.in[4] = opd_t(opd_contiguous(opd_t(first.in[4])));
    CHECK_INT(layer_grads(&other, true, 1, false, 7, false), 0);
    for (int i = 0; opd_ok() && i < first.count; i++) {
        CHECK(layer_apart(other.grads[i], opd_to_dtype(first.grads[i], OPD_FLOAT64)) < 1e-5);
    }
    ways[0] = opd_sin(first.outs[0]);
    ways[1] = opd_cos(first.outs[0]);
    CHECK_INT(opd_lstm(other.outs, first.in[0], opd_tensors_of(first.in + 1, 2), opd_tensors_of(first.in + 3, 4), true,
                       1, 0, false, false, false), 0);
    several = opd_detach(opd_stack(opd_tensors_of(ways, 2), 0));
    memset(&options, 0, sizeof options);
    options.grad_outputs = &several;
    options.is_grads_batched = options.retain_graph = true;
    options.allow_unused = true;
    CHECK_INT(opd_autograd_grad(other.outs, 1, first.in, first.count, &options, got), 0);
    options.is_grads_batched = false;
    for (int way = 0; opd_ok() && way < 2; way++) {
        opd_tensor *const grad = opd_select(several, 0, way);
        options.grad_outputs = &grad;
        CHECK_INT(opd_autograd_grad(other.outs, 1, first.in, first.count, &options, other.grads), 0);
        for (int i = 0; opd_ok() && i < first.count; i++) {
            CHECK(layer_apart(opd_select(got[i], 0, way), opd_to_dtype(other.grads[i], OPD_FLOAT64)) < 1e-5);
        }
    }
    opd_data_f32(opd_detach(first.in[1]))[3] = NAN;
    OPD_NO_GRAD {
        CHECK_INT(opd_lstm(other.outs, first.in[0], opd_tensors_of(first.in + 1, 2), opd_tensors_of(first.in + 3, 4),
                           true, 1, 0, false, false, false), 0);
    }
    const float *const at = opd_data_f32(other.outs[0]);
    for (int64_t i = 0; at && i < 9 * 64; i++) { CHECK((at[i] != at[i]) == (i < 64)); }
    CHECK_OK();
}
