/* Conditions and loops over functions (opd_cond, opd_while, opd_scan, opd_map): values, derivatives, vmap, fakes,
   errors.  The numbers with many digits are PyTorch's. */
#include "../../opdispatch.h"
#include "../control_bodies.h"

static void near_all(opd_tensor *tensor, const double *want, int64_t count) {
    CHECK_OR_RETURN(tensor != NULL);
    CHECK_INT(opd_numel(tensor), count);
    opd_tensor *const flat = opd_reshape(tensor, opd_ints_of(&count, 1));
    for (int64_t i = 0; i < count && opd_ok(); i++) { CHECK_NEAR(opd_item_f64(opd_select(flat, 0, i)), want[i], 1e-9); }
    CHECK_OK();
}

//-- functions ---------------------------------------------------------------------------------------------------------

BODY(wide) { UNUSED(); out[0] = opd_cat(OPD_TENSORS(in[0], in[0]), 0); DONE(1); }
BODY(singles) { UNUSED(); out[0] = opd_to_dtype(in[0], OPD_FLOAT32); DONE(1); }
BODY(twice) { UNUSED(); out[0] = out[1] = in[0]; return 2; }
BODY(fails) { UNUSED(); (void)opd_grad_mode_set(false); return opd_fail(OPD_ERROR_USER, "the function gives up"); }
BODY(below_100) { UNUSED(); out[0] = opd_lt_Scalar(in[0], OPD_V(100)); DONE(1); }
BODY(pair_sum) { UNUSED(); out[0] = out[1] = opd_add(in[0], in[1]); DONE(2); }
BODY(scaled) { UNUSED(); out[0] = opd_mul(in[0], in[1]); out[1] = opd_sum(in[0]); DONE(2); }

//-- values and derivatives --------------------------------------------------------------------------------------------

static const double xs_values[] = {0.5, -1.0, 2.0, 0.25};
static const double first[] = {0.3216275326015259, 0.45946790371646556, -0.5786936196231127, 0.3994096395354618,
                               1.1897418822739956, 0.6197161409113487};
static const double second[] = {0.4044029948298249, -0.07866415555234384, 0.5559785912577863, 0.2675016373318252,
                                -1.0872906159221172, -0.8156511001779334};
static const double stacked[] = {0.26559518542831856, 0.3185334212784832, 0.8508348358685339, 0.5100677874172437};

/* h0, x, w -> the last h plus the sum of all y */
BODY(recurrent) {
    UNUSED();
    opd_tensor *got[2];
    if (opd_scan(step, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_add(got[0], opd_sum(got[1]));
    DONE(1);
}
static const int all_three[] = {0, 1, 2};
static opd_transform_options by_three(void) {
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = all_three;
    options.nargnums = 3;
    return options;
}
/* The derivative of `recurrent` with respect to w. */
BODY(recurrent_by_w) {
    UNUSED();
    static const int last[] = {2};
    opd_transform_options options = by_three();
    options.argnums = last;
    options.nargnums = 1;
    return opd_grad(recurrent, NULL, in, 3, &options, out, 1);
}
TEST(scans_values_and_derivatives) {
    OPD_SCOPED;
    opd_tensor *in[] = {number(0.1), numbers(xs_values, 4), number(0.7)}, *out[3], *ways[3], *along[3];
    const opd_transform_options options = by_three();
    CHECK_INT(opd_scan(step, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, out, 2), 2);
    CHECK_NEAR(opd_item_f64(out[0]), 0.7141903019624697, 1e-12);
    near_all(out[1], stacked, 4);
    CHECK_INT(opd_grad(recurrent, NULL, in, 3, &options, out, 3), 3);
    near_all(out[0], first, 1);
    near_all(out[1], first + 1, 4);
    near_all(out[2], first + 5, 1);
    CHECK_INT(opd_grad(recurrent_by_w, NULL, in, 3, &options, out, 3), 3);
    near_all(out[0], second, 1);
    near_all(out[1], second + 1, 4);
    near_all(out[2], second + 5, 1);
    ways[0] = ways[1] = NULL;                     /* forward mode along w */
    ways[2] = number(1);
    CHECK_INT(opd_jvp(recurrent, NULL, in, ways, 3, NULL, out, along, 1), 1);
    near_all(along[0], first + 5, 1);
    in[2] = opd_tensor_set_requires_grad(number(0.7), true);        /* backward */
    CHECK_INT(recurrent(NULL, in, 3, out), 1);
    CHECK_INT(opd_backward(out[0]), 0);
    near_all(opd_tensor_grad(in[2]), first + 5, 1);
    CHECK_OK();
}
TEST(scans_go_along_a_dim_and_backwards) {
    OPD_SCOPED;
    const double rows[] = {1, 3, 6, 4, 9, 15}, back[] = {6, 5, 3, 15, 11, 6};
    opd_tensor *x = opd_reshape(opd_arange_start(OPD_V(1), OPD_V(7), OPD_FLOAT64), OPD_INTS(2, 3)), *out[2];
    opd_tensor *zero = opd_zeros(OPD_INTS(2), OPD_FLOAT64);
    opd_scan_options options = {1, false};
    for (options.dim = 1; options.dim >= -1; options.dim -= 2) {
        options.reverse = false;
        CHECK_INT(opd_scan(pair_sum, NULL, &zero, 1, &x, 1, NONE, &options, out, 2), 2);
        near_all(out[1], rows, 6);
        options.reverse = true;
        CHECK_INT(opd_scan(pair_sum, NULL, &zero, 1, &x, 1, NONE, &options, out, 2), 2);
        near_all(out[1], back, 6);
    }
    options.dim = 1;
    CHECK_INT(opd_scan(pair_sum, NULL, &zero, 1, &x, 1, NONE, &options, out, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_scan: there are 2 outputs, but the array for them has room for 1");
}
BODY(mapped) {
    UNUSED();
    opd_tensor *got[2];
    if (opd_map(scaled, NULL, in, 1, in + 1, 1, got, 2) != 2) { return -1; }
    out[0] = opd_add(opd_sum(got[0]), opd_sum(opd_mul(got[1], got[1])));
    DONE(1);
}
TEST(maps_values_and_derivatives) {
    OPD_SCOPED;
    const double values[] = {1, 4, 3, 8}, sums[] = {3, 7}, by_x[] = {7, 8, 15, 16}, by_w[] = {4, 6};
    const opd_transform_options options = {all_three, 2, 0, 0, OPD_RANDOM_ERROR, false};
    opd_tensor *in[2], *out[2];
    in[0] = opd_reshape(opd_arange_start(OPD_V(1), OPD_V(5), OPD_FLOAT64), OPD_INTS(2, 2));
    in[1] = opd_arange_start(OPD_V(1), OPD_V(3), OPD_FLOAT64);
    CHECK_INT(opd_map(scaled, NULL, in, 1, in + 1, 1, out, 2), 2);
    near_all(out[0], values, 4);
    near_all(out[1], sums, 2);
    CHECK_INT(opd_grad(mapped, NULL, in, 2, &options, out, 2), 2);
    near_all(out[0], by_x, 4);
    near_all(out[1], by_w, 2);
}
BODY(grows) { UNUSED(); return opd_while(below_100, grown, NULL, in, 1, NONE, out, 1); }
BODY(grows_by) { return opd_grad(grows, user, in, n, NULL, out, 1); }
TEST(whiles_values_and_derivatives) {
    OPD_SCOPED;
    opd_tensor *x = number(3), *out[2], *one = number(1), *way;
    CHECK_INT(opd_while(below_100, grown, NULL, &x, 1, NONE, out, 1), 1);
    CHECK_NEAR(opd_item_f64(out[0]), 107.811, 1e-9);
    CHECK_INT(grows_by(NULL, &x, 1, out), 1);
    CHECK_NEAR(opd_item_f64(out[0]), 143.748, 1e-9);
    CHECK_INT(opd_grad(grows_by, NULL, &x, 1, NULL, out, 1), 1);
    CHECK_NEAR(opd_item_f64(out[0]), 143.748, 1e-9);
    CHECK_INT(opd_jvp(grows, NULL, &x, &one, 1, NULL, out, &way, 1), 1);
    CHECK_NEAR(opd_item_f64(way), 143.748, 1e-9);
    x = number(1000);                             /* no round */
    CHECK_INT(opd_while(below_100, grown, NULL, &x, 1, NONE, out, 1), 1);
    CHECK(out[0] && opd_item_f64(out[0]) > 999);
}
BODY(chosen) { UNUSED(); return opd_cond(opd_gt_Scalar(in[0], OPD_V(1)), squared, doubled, NULL, in, 1, out, 1); }
TEST(conds_values_and_derivatives) {
    OPD_SCOPED;
    for (int k = 0; k < 2; k++) {
        opd_tensor *x = number(k ? 3 : 0.5), *out[1];
        CHECK_INT(chosen(NULL, &x, 1, out), 1);
        CHECK_NEAR(opd_item_f64(out[0]), k ? 9 : 1, 1e-12);
        CHECK_INT(opd_grad(chosen, NULL, &x, 1, NULL, out, 1), 1);
        CHECK_NEAR(opd_item_f64(out[0]), k ? 6 : 2, 1e-12);
    }
}

//-- vmap and fakes ----------------------------------------------------------------------------------------------------

BODY(chosen_by) { return opd_grad(chosen, user, in, n, NULL, out, 1); }
TEST(examples_choose_for_themselves) {
    OPD_SCOPED;
    const double x[] = {0.5, 3, -1, 20}, conds[] = {1, 9, -2, 400}, by[] = {2, 6, 2, 40};
    const double loops[] = {1.1 * 1.1, 107.811, 200, 440};
    const double start[] = {1, 3, 200, 20};
    opd_tensor *in = numbers(x, 4), *out[2];
    CHECK_INT(opd_vmap(chosen, NULL, &in, 1, NULL, out, 1), 1);
    near_all(out[0], conds, 4);
    CHECK_INT(opd_vmap(chosen_by, NULL, &in, 1, NULL, out, 1), 1);
    near_all(out[0], by, 4);
    in = numbers(start + 1, 3);
    CHECK_INT(opd_vmap(grows, NULL, &in, 1, NULL, out, 1), 1);
    near_all(out[0], loops + 1, 3);
    opd_tensor *h[] = {numbers(start, 2), opd_reshape(numbers(x, 4), OPD_INTS(2, 2)), number(1)};
    const int dims[] = {0, 0, OPD_NO_DIM};
    const opd_vmap_options options = {dims, 3, NULL, 0, OPD_RANDOM_ERROR, 0, NULL};
    CHECK_INT(opd_vmap(recurrent, NULL, h, 3, &options, out, 1), 1);
    for (int k = 0; k < 2; k++) {
        opd_tensor *one[3], *alone[1];
        for (int i = 0; i < 3; i++) { one[i] = i < 2 ? opd_select(h[i], 0, k) : h[i]; }
        CHECK_INT(recurrent(NULL, one, 3, alone), 1);
        CHECK_NEAR(opd_item_f64(opd_select(out[0], 0, k)), opd_item_f64(alone[0]), 1e-12);
    }
    CHECK_OK();
}
TEST(fakes_run_both_branches_and_one_round) {
    OPD_SCOPED;
    OPD_FAKE_MODE {
        opd_tensor *x = opd_zeros(OPD_INTS(2, 3), OPD_FLOAT64), *pred = opd_zeros(opd_ints_of(NULL, 0), OPD_BOOL);
        opd_tensor *out[2], *at = opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT64);
        CHECK_INT(opd_cond(pred, squared, doubled, NULL, &x, 1, out, 1), 1);
        CHECK_INT(opd_size(out[0], 1), 3);
        CHECK_INT(opd_cond(pred, squared, wide, NULL, &x, 1, out, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_cond: output 0 of then_fn is a float64 tensor of sizes [2, 3], but that "
                    "of else_fn is a float64 tensor of sizes [4, 3]; sizes and dtypes must be the same");
        CHECK_INT(opd_cond(pred, squared, singles, NULL, &x, 1, out, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "float32");
        CHECK_INT(opd_cond(pred, twice, squared, NULL, &x, 1, out, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_cond: then_fn returns 2 outputs, but else_fn returns 1");
        CHECK_INT(opd_while(below_100, doubled, NULL, &at, 1, NONE, out, 1), 1);
        CHECK_INT(opd_map(squared, NULL, &x, 1, NONE, out, 1), 1);
        CHECK_INT(opd_ndim(out[0]), 2);
    }
    CHECK_OK();
}

BODY(products) { UNUSED(); out[0] = opd_mm(in[0], in[0]); DONE(1); }
BODY(leaves_modes) {
    UNUSED();
    (void)opd_grad_mode_set(false);
    (void)opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, -1);
    out[0] = opd_mm(in[0], in[0]);
    DONE(1);
}
TEST(modes_are_kept) {
    OPD_SCOPED;
    opd_tensor *x = opd_ones(OPD_INTS(2, 2), OPD_FLOAT32), *one = number(1), *out[1];
    OPD_AUTOCAST(OPD_CPU) {
        CHECK_INT(opd_cond(one, products, same, NULL, &x, 1, out, 1), 1);
        CHECK_INT(opd_dtype(out[0]), OPD_BFLOAT16);
    }
    CHECK_INT(opd_cond(one, leaves_modes, same, NULL, &x, 1, out, 1), 1);
    CHECK_INT(opd_dtype(out[0]), OPD_BFLOAT16);
    CHECK(opd_grad_mode_enabled());
    CHECK_INT(opd_dtype(opd_mm(x, x)), OPD_FLOAT32);
    CHECK_OK();
}

//-- errors ------------------------------------------------------------------------------------------------------------

BODY(counted) {
    UNUSED();
    int *const calls = (int *)user;
    out[0] = in[0];
    return ++*calls < 50 ? 1 : opd_fail(OPD_ERROR_USER, "call 50");
}
BODY(forever) { UNUSED(); out[0] = opd_ones(opd_ints_of(NULL, 0), OPD_BOOL); DONE(1); }
BODY(uneven) {
    UNUSED();
    out[0] = opd_item_f64(in[0]) > 2 ? opd_reshape(in[0], OPD_INTS(1)) : in[0];
    DONE(1);
}
static const char *const wrong[] = {
    "opd_cond: pred must be a tensor with one element, not with 3", "opd_cond: else_fn is NULL", "opd_cond: pred",
    "opd_cond: operands[1] is NULL", "opd_cond: operands is NULL", "the function gives up",
    "opd_cond: there are 2 outputs, but the array for them has room for 1",
    "opd_while: output 0 of body_fn is a float64 tensor of sizes [6], but the value that it replaces is a float64 "
    "tensor of sizes [3]",
    "opd_while: output 0 of body_fn is a float32 tensor",
    "opd_while: body_fn must return the 1 carried tensors, but returns 2",
    "opd_while: cond_fn must return one tensor, not 2",
    "opd_while: the condition must be a tensor with one element, not with 3", "opd_while: cond_fn is NULL",
    "opd_while: there must be at least one carried tensor", "call 50", "opd_scan: xs[0] has no slices along dim 0",
    "opd_scan: all xs must have the same size along dim 0, but xs[0] has 3 and xs[1] has 2",
    "opd_scan: dim 1 is out of range for xs[0], which has 1 dims", "opd_scan: xs has no tensors",
    "opd_scan: fn returns 1 outputs, but must return the 2 carried tensors first", "opd_scan: fn is NULL",
    "opd_scan: output 0 of fn is a float32 tensor",
    "opd_map: output 0 of fn is a float64 tensor of sizes [1], but the one of the first call is",
    "opd_scan: the number of init is negative", "the array of outputs is NULL"};
static int mistake(int k, opd_tensor **out) {
    static const double three[] = {1, 2, 3};
    int calls = 0;
    const opd_scan_options along = {1, false};
    opd_tensor *const x = numbers(three, 3), *const one = number(1), *const pair = numbers(three, 2);
    opd_tensor *const empty = opd_zeros(OPD_INTS(0), OPD_FLOAT64), *both[2], *lone[2];
    both[0] = x;
    both[1] = pair;
    lone[0] = one;
    lone[1] = NULL;
    switch (k) {
    case 0: return opd_cond(x, same, same, NULL, &x, 1, out, 1);
    case 1: return opd_cond(one, same, NULL, NULL, &x, 1, out, 1);
    case 2: return opd_cond(NULL, same, same, NULL, &x, 1, out, 1);
    case 3: return opd_cond(one, same, same, NULL, lone, 2, out, 1);
    case 4: return opd_cond(one, same, same, NULL, NULL, 2, out, 1);
    case 5: return opd_cond(one, fails, same, NULL, &x, 1, out, 1);
    case 6: return opd_cond(one, twice, same, NULL, &x, 1, out, 1);
    case 7: return opd_while(forever, wide, NULL, &x, 1, NONE, out, 1);
    case 8: return opd_while(forever, singles, NULL, &x, 1, NONE, out, 1);
    case 9: return opd_while(forever, twice, NULL, &x, 1, NONE, out, 1);
    case 10: return opd_while(twice, same, NULL, &x, 1, NONE, out, 1);
    case 11: return opd_while(same, same, NULL, &x, 1, NONE, out, 1);
    case 12: return opd_while(NULL, same, NULL, &x, 1, NONE, out, 1);
    case 13: return opd_while(same, same, NULL, NONE, NONE, out, 1);
    case 14: return opd_while(forever, counted, &calls, &x, 1, NONE, out, 1);
    case 15: return opd_scan(pair_sum, NULL, &one, 1, &empty, 1, NONE, NULL, out, 2);
    case 16: return opd_scan(pair_sum, NULL, &one, 1, both, 2, NONE, NULL, out, 2);
    case 17: return opd_scan(pair_sum, NULL, &one, 1, &x, 1, NONE, &along, out, 2);
    case 18: return opd_scan(pair_sum, NULL, &one, 1, NONE, NONE, NULL, out, 2);
    case 19: return opd_scan(same, NULL, both, 2, &x, 1, NONE, NULL, out, 2);
    case 20: return opd_scan(NULL, NULL, both, 2, &x, 1, NONE, NULL, out, 2);
    case 21: return opd_scan(singles, NULL, &one, 1, &x, 1, NONE, NULL, out, 2);
    case 22: return opd_map(uneven, NULL, &x, 1, NONE, out, 1);
    case 23: return opd_scan(pair_sum, NULL, &one, -1, &x, 1, NONE, NULL, out, 2);
    default: return opd_map(same, NULL, &x, 1, NONE, NULL, 1);
    }
}
TEST(mistakes_are_named) {
    for (int k = 0; k < (int)(sizeof wrong / sizeof *wrong); k++) {
        OPD_SCOPED;
        opd_tensor *out[2];
        const opd_scope_info before = opd_scope_stats();
        CHECK_INT(mistake(k, out), -1);
        CHECK_ERROR(k == 17 ? OPD_ERROR_INDEX : k == 5 || k == 14 ? OPD_ERROR_USER : OPD_ERROR_ARGUMENT, wrong[k]);
        CHECK_INT(opd_scope_stats().depth, before.depth);
        CHECK(opd_grad_mode_enabled());
        if (k < 24) { CHECK(!out[0]); }
    }
}
TEST(results_are_on_their_own) {
    OPD_SCOPED;
    opd_tensor *x = number(2), *out[1];           /* the array of inputs may be the array of outputs */
    out[0] = x;
    CHECK_INT(opd_cond(x, doubled, same, NULL, out, 1, out, 1), 1);
    CHECK_NEAR(opd_item_f64(out[0]), 4, 0);
    OPD_SCOPE { CHECK_INT(opd_cond(x, same, same, NULL, &x, 1, out, 1), 1); }
    CHECK_NEAR(opd_item_f64(x), 2, 0);
    CHECK_INT(opd_scope_stats().handles > 0, 1);
}

//-- arguments that are not read --------------------------------------------------------------------------------------

BODY(first_two) { UNUSED(); out[0] = opd_mul(in[0], in[1]); out[1] = opd_exp(in[1]); out[2] = opd_gt(in[0], in[1]); DONE(3); }
BODY(last_one) { UNUSED(); out[0] = opd_sin(in[2]); out[1] = opd_ones_like(in[2]); out[2] = opd_lt(in[0], in[1]); DONE(3); }
BODY(complex_first) { UNUSED(); out[0] = opd_exp(in[0]); DONE(1); }
BODY(counts_up) { UNUSED(); out[0] = opd_mul(in[0], in[0]); DONE(1); }
BODY(only_slice) { UNUSED(); out[0] = in[0]; out[1] = opd_sin(in[1]); DONE(2); }
BODY(only_more) { UNUSED(); out[0] = opd_exp(in[1]); DONE(1); }
static void all_zeros(opd_tensor *gradient, const opd_tensor *like) {
    CHECK_OR_RETURN(gradient != NULL);
    CHECK(opd_is_same_size(gradient, (opd_tensor *)(uintptr_t)like) && opd_dtype(gradient) == opd_dtype(like));
    CHECK(opd_item_f64(opd_sum(opd_abs(gradient))) == 0);
}
/* Each output of a condition gives a gradient to all operands, as in PyTorch: zeros to those that it does not read. */
TEST(operands_that_are_not_read_have_gradients_of_zeros) {
    for (int side = 0; side < 2; side++) {
        for (int k = 0; k < 2; k++) {
            OPD_SCOPED;
            opd_tensor *const x = opd_tensor_set_requires_grad(opd_reshape(numbers(xs_values, 4), OPD_INTS(2, 2)), true);
            opd_tensor *const pred = opd_full(opd_ints_of(NULL, 0), OPD_V(side == 0), OPD_BOOL);
            opd_tensor *in[3], *out[3], *made[3], *sum;
            opd_tensor *const both = opd_stack(OPD_TENSORS(x, opd_mul_Scalar(x, OPD_V(2))), 0);
            const opd_tensors parts = opd_unbind(both);               /* results of one node */
            in[0] = parts.data[0];
            in[1] = parts.data[1];
            in[2] = opd_tensor_set_requires_grad(opd_detach(opd_t(opd_cos(x))), true);   /* not contiguous */
            CHECK_INT(opd_cond(pred, first_two, last_one, NULL, in, 3, out, 3), 3);
            CHECK(!opd_tensor_requires_grad(out[2]) && opd_dtype(out[2]) == OPD_BOOL);
            CHECK(opd_equal(opd_detach(out[k]), opd_detach(k ? side ? opd_ones_like(x) : opd_exp(in[1])
                                                           : side ? opd_sin(in[2]) : opd_mul(in[0], in[1]))));
            sum = opd_sum(out[k]);
            CHECK_INT(opd_autograd_grad(&sum, 1, in, 3, NULL, made), 0);
            CHECK_OK();
            if (side == 0 && k == 0) { CHECK(opd_equal(made[0], opd_detach(in[1])) && opd_equal(made[1], opd_detach(in[0]))); }
            else { all_zeros(made[0], in[0]); }
            if (side == 0 && k == 1) { CHECK(opd_allclose(made[1], opd_detach(opd_exp(in[1])))); }
            if (side == 1) { all_zeros(made[1], in[1]); }
            if (side == 1 && k == 0) { CHECK(opd_allclose(made[2], opd_detach(opd_cos(in[2])))); }
            else { all_zeros(made[2], in[2]); }
        }
    }
    CHECK_OK();
}
TEST(arguments_that_loops_do_not_read_have_gradients_of_zeros) {
    OPD_SCOPED;
    opd_tensor *in[3], *out[2], *made[3], *sum;
    in[0] = opd_tensor_set_requires_grad(number(3), true);
    in[1] = opd_tensor_set_requires_grad(numbers(xs_values, 4), true);
    in[2] = opd_tensor_set_requires_grad(numbers(xs_values, 2), true);
    for (int i = 0; i < 2; i++) {                 /* with rounds, and without one */
        opd_tensor *carried = i ? opd_mul_Scalar(in[0], OPD_V(100)) : in[0];
        CHECK_INT(opd_while(below_100, counts_up, NULL, &carried, 1, in + 1, 2, out, 2), 1);
        sum = opd_sum(out[0]);
        CHECK_INT(opd_autograd_grad(&sum, 1, in, 3, NULL, made), 0);
        CHECK_NEAR(opd_item_f64(made[0]), i ? 100 : 8 * pow(3, 7), 1e-9);
        all_zeros(made[1], in[1]);
        all_zeros(made[2], in[2]);
    }
    CHECK_INT(opd_scan(only_slice, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, out, 2), 2);
    sum = opd_sum(out[1]);
    CHECK_INT(opd_autograd_grad(&sum, 1, in, 3, NULL, made), 0);
    all_zeros(made[0], in[0]);
    CHECK(opd_allclose(made[1], opd_detach(opd_cos(in[1]))));
    all_zeros(made[2], in[2]);
    CHECK_INT(opd_map(only_more, NULL, in + 1, 1, in + 2, 1, out, 1), 1);
    sum = opd_sum(out[0]);
    CHECK_INT(opd_autograd_grad(&sum, 1, in + 1, 2, NULL, made), 0);
    all_zeros(made[0], in[1]);
    CHECK(opd_allclose(made[1], opd_detach(opd_mul_Scalar(opd_exp(in[2]), OPD_V(4)))));
    CHECK_OK();
}
/* The zeros change neither dtypes nor, without gradients, which tensor is returned; and they pass through transforms. */
BODY(chooses_of_three) {
    UNUSED();
    if (opd_cond(opd_gt_Scalar(opd_sum(in[0]), OPD_V(0)), first_two, last_one, NULL, in, 3, out, 3) != 3) { return -1; }
    out[0] = opd_sum(opd_mul(out[0], out[0]));
    DONE(1);
}
BODY(slopes_of_three) {
    UNUSED();
    const opd_transform_options options = by_three();
    return opd_grad(chooses_of_three, NULL, in, 3, &options, out, 3);
}
TEST(zeros_for_operands_keep_dtypes_and_pass_through_transforms) {
    OPD_SCOPED;
    opd_tensor *const yes = opd_ones(opd_ints_of(NULL, 0), OPD_BOOL);
    opd_tensor *in[3], *out[3], *each[3], *x = number(0.5);
    in[0] = opd_tensor_set_requires_grad(opd_to_dtype(number(0.5), OPD_COMPLEX64), true);
    in[1] = opd_tensor_set_requires_grad(number(2), true);
    CHECK_INT(opd_cond(yes, complex_first, complex_first, NULL, in, 2, out, 1), 1);
    CHECK_INT(opd_dtype(out[0]), OPD_COMPLEX64);
    CHECK_INT(opd_cond(yes, same, same, NULL, &x, 1, out, 1), 1);
    CHECK(out[0] == x);
    for (int i = 0; i < 3; i++) { in[i] = opd_mul_Scalar(opd_reshape(numbers(xs_values, 4), OPD_INTS(4, 1)), OPD_V(i + 1)); }
    CHECK_INT(opd_vmap(slopes_of_three, NULL, in, 3, NULL, out, 3), 3);
    CHECK_OK();
    for (int64_t row = 0; row < 4 && opd_ok(); row++) {
        opd_tensor *one[3];
        for (int i = 0; i < 3; i++) { one[i] = opd_select(in[i], 0, row); }
        CHECK_INT(slopes_of_three(NULL, one, 3, each), 3);
        for (int i = 0; i < 3; i++) { CHECK(opd_allclose(opd_select(out[i], 0, row), each[i])); }
    }
    CHECK_OK();
}

CHECK_MAIN()
