/* Packed sequences: packing and padding, and recurrent layers over them, against each example by itself. */
#include "check.h"

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
    return a && b && opd_ndim(a) == opd_ndim(b) && opd_numel(a) == opd_numel(b) && opd_allclose(a, b).u.i && opd_ok();
}
/* Rows of all first steps, of all second ones; and back, with more steps and another number. */
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
    CHECK_INT(opd__pad_packed_sequence(padded, packed[0], packed[1], true, opd_value_float(-2.5), 7), 0);
    CHECK(opd_ndim(padded[0]) == 3 && opd_size(padded[0], 0) == EXAMPLES && opd_size(padded[0], 1) == 7);
    for (i = 0; opd_ok() && i < EXAMPLES; i++) {
        CHECK_INT(opd_data_i64(padded[1])[i], lengths[i]);
        part = opd_select(padded[0], 0, i);
        CHECK(near(opd_narrow(part, 0, 0, lengths[i]), opd_narrow(opd_select(x, 1, i), 0, 0, lengths[i])));
        part = opd_narrow(part, 0, lengths[i], 7 - lengths[i]);
        CHECK(near(part, opd_full(opd_ints_of(opd_sizes(part), 2), opd_value_float(-2.5), OPD_FLOAT64)));
    }
    CHECK_OK();
}
/* The gradient of packing, by the tape and by its own operator. */
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
/* Lstm over packed sequences, both ways and in two layers, gives each example what it gets alone; gradients too. */
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
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "lengths must be at least 1 and never grow, but element 1 is 3");
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(none, 3), false), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "element 2 is 0");
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(few, 2), false), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected `len(lengths)` to be equal to batch_size, but got 2 (batch_size=3)");
    CHECK_INT(opd__pack_padded_sequence(out, x, lengths_of(many, 3), false), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected a length of at most 5");
    CHECK_INT(opd__pad_packed_sequence(out, x, lengths_of(few, 2), false, opd_value_int(0), -1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "data must be [8, ...]");
    CHECK_INT(opd__pad_packed_sequence(out, numbers(OPD_INTS(8, 2), 1), lengths_of(few, 2), false, opd_value_int(0), 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "got total_length=1 and max sequence length being 2");
}
CHECK_MAIN()
