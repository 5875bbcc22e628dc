/* Fake quantisation with an observer (fused_moving_avg_obs_fake_quant): values and gradients are among the calls of
   golden/calls.txt.  Here: training, and what other mechanisms make of the operators. */
#include "../check.h"

static opd_tensor *numbers(opd_ints sizes, int seed) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; i < opd_numel(x); i++) {
        opd_data_f32(x)[i] = (float)((i * 7919 + seed * 104729) % 1009) / 504 - 1;
    }
    return x;
}
/* Sets the arguments of an observer of tensors with `rows` rows (0: one state for all elements).  Returns their
   number. */
static int observer(opd_value *v, opd_tensor *x, int64_t rows) {
    const int64_t count = rows ? rows : 1;
    v[0] = opd_value_tensor(x);
    v[1] = opd_value_tensor(opd_ones(OPD_INTS(1), OPD_INT64));
    v[2] = opd_value_tensor(opd_ones(OPD_INTS(1), OPD_INT64));
    v[3] = opd_value_tensor(opd_full(OPD_INTS(count), opd_value_double((double)INFINITY), OPD_FLOAT32));
    v[4] = opd_value_tensor(opd_full(OPD_INTS(count), opd_value_double(-(double)INFINITY), OPD_FLOAT32));
    v[5] = opd_value_tensor(opd_ones(OPD_INTS(count), OPD_FLOAT32));
    v[6] = opd_value_tensor(opd_zeros(OPD_INTS(count), OPD_INT32));
    v[7] = opd_value_double(0.01);
    v[8] = opd_value_int(rows ? -8 : 0);
    v[9] = opd_value_int(rows ? 7 : 255);
    v[10] = opd_value_int(0);
    v[11] = opd_value_bool(rows > 0);
    v[12] = opd_value_bool(rows > 0);
    return 13;
}
/* A layer whose input and weight are quantised learns; the states follow. */
TEST(a_quantised_layer_is_trained) {
    OPD_SCOPED;
    opd_op *fused = opd_find("aten::fused_moving_avg_obs_fake_quant");
    opd_tensor *x = numbers(OPD_INTS(16, 8), 1), *target = numbers(OPD_INTS(16, 3), 2), *w = numbers(OPD_INTS(3, 8), 3);
    opd_value ofx[13], ofw[13];
    double first = 0, last = 0;
    const int n = observer(ofx, x, 0);
    (void)observer(ofw, w, 3);
    CHECK_OR_RETURN(fused != NULL && opd_tensor_set_requires_grad(w, true) != NULL);
    for (int step = 0; step < 60; step++) {
        OPD_SCOPED;
        opd_tensor *y = opd_linear(opd_call_op(fused, ofx, n), opd_call_op(fused, ofw, n), NULL);
        opd_tensor *loss = opd_mse_loss(y, target);
        CHECK_OR_RETURN(opd_ok() && opd_backward(loss) == 0);
        last = opd_item_f64(loss);
        first = step ? first : last;
        opd_tensor *grad = opd_tensor_grad(w);
        const bool mode = opd_grad_mode_set(false);
        CHECK(opd_sub_(w, opd_mul_Scalar(grad, OPD_V(0.3))) != NULL);
        (void)opd_grad_mode_set(mode);
        CHECK_INT(opd_zero_(grad) != NULL, 1);
    }
    CHECK(last < 0.8 * first);
    CHECK(opd_item_f64(opd_min(ofx[3].u.t)) >= -1 && opd_item_f64(opd_max(ofx[4].u.t)) <= 1);
    CHECK(opd_item_f64(opd_max(ofw[5].u.t)) < 0.3 && opd_item_f64(ofx[6].u.t) > 100);
    CHECK_OK();
}
TEST(operators_pass_their_checks) {
    for (int rows = 0; rows < 4; rows += 3) {
        OPD_SCOPED;
        opd_value v[13];
        const int n = observer(v, numbers(OPD_INTS(3, 5), 4), rows);
        CHECK_INT(opd_opcheck(opd_find("aten::_fused_moving_avg_obs_fq_helper_functional"), v, n, NULL), 0);
        CHECK_INT(opd_opcheck(opd_find("aten::_fused_moving_avg_obs_fq_helper"), v, n, NULL), 0);
        CHECK_OK();
    }
}
/* Without an observer, the scale follows the range that an earlier call left; as in PyTorch 2.15. */
TEST(a_call_that_only_quantises_chooses_the_scale) {
    for (int rows = 0; rows < 4; rows += 3) {
        OPD_SCOPED;
        opd_value v[13], whole[13];
        opd_tensor *x = numbers(OPD_INTS(3, 5), 4);
        const int n = observer(v, x, rows);
        (void)observer(whole, x, rows);
        opd_op *fused = opd_find("aten::fused_moving_avg_obs_fake_quant");
        opd_tensor *want = opd_call_op(fused, whole, n), *off = opd_zeros(OPD_INTS(1), OPD_INT64);
        v[2] = opd_value_tensor(off);
        CHECK(opd_call_op(fused, v, n) != NULL && opd_item_f64(opd_min(v[5].u.t)) == 1);
        v[2] = v[1];
        v[1] = opd_value_tensor(off);
        opd_tensor *const got = opd_call_op(fused, v, n);
        CHECK(got && opd_equal(got, want));
        for (int i = 3; i < 7; i++) { CHECK(opd_equal(v[i].u.t, whole[i].u.t)); }
        CHECK_OK();
    }
}
/* NaN is not hidden by a scale of other numbers; as in PyTorch 2.15. */
TEST(nan_remains) {
    for (int rows = 0; rows < 4; rows += 3) {
        OPD_SCOPED;
        opd_value v[13];
        opd_tensor *x = numbers(OPD_INTS(3, 5), 4);
        opd_data_f32(x)[1] = NAN;
        const int n = observer(v, x, rows);
        opd_tensor *const y = opd_call_op(opd_find("aten::fused_moving_avg_obs_fake_quant"), v, n);
        CHECK_OR_RETURN(y != NULL);
        CHECK(isnan(opd_data_f32(y)[0]) && isnan(opd_data_f32(v[5].u.t)[0]) && isnan(opd_data_f32(y)[5]) == (rows == 0));
        CHECK_OK();
    }
}
/* Empty states get a size for each row, also if nothing is observed. */
TEST(empty_states_get_sizes) {
    OPD_SCOPED;
    opd_value v[13];
    const int n = observer(v, numbers(OPD_INTS(3, 5), 4), 3);
    v[1] = opd_value_tensor(opd_zeros(OPD_INTS(1), OPD_INT64));
    for (int i = 3; i < 7; i++) {
        v[i] = opd_value_tensor(opd_zeros(OPD_INTS(0), i < 6 ? OPD_FLOAT32 : OPD_INT32));
    }
    CHECK_INT(opd_opcheck(opd_find("aten::_fused_moving_avg_obs_fq_helper_functional"), v, n, NULL), 0);
    CHECK(opd_call_op(opd_find("aten::fused_moving_avg_obs_fake_quant"), v, n) != NULL);
    for (int i = 3; i < 7; i++) { CHECK_INT(opd_numel(v[i].u.t), 3); }
    CHECK(isinf(opd_item_f64(opd_max(v[3].u.t))) && opd_item_f64(opd_max(v[5].u.t)) == opd_item_f64(opd_min(v[5].u.t)));
    CHECK_OK();
}
/* An error changes no state. */
TEST(errors_change_nothing) {
    OPD_SCOPED;
    opd_value v[13];
    const int n = observer(v, numbers(OPD_INTS(3, 5), 4), 0);
    v[9] = opd_value_int(-1);
    CHECK(!opd_call_op(opd_find("aten::fused_moving_avg_obs_fake_quant"), v, n) && !opd_ok());
    opd_error_clear();
    CHECK(isinf(opd_item_f64(v[3].u.t)) && opd_item_f64(v[5].u.t) == 1);
    CHECK_OK();
}
CHECK_MAIN()
