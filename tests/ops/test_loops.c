/* Loops for contiguous tensors of one dtype, and searches, beside C and beside the loops for any layout. */
#include "../check.h"

/* Returns a view of the same elements that is not contiguous. */
static opd_tensor *with_gaps(opd_tensor *x) {
    opd_tensor *const wide = opd_stack(OPD_TENSORS(x, x), 1);
    return opd_select(wide, 1, 1);
}
static int64_t differences(opd_tensor *a, opd_tensor *b) {
    return opd_item_i64(opd_sum(opd_ne(a, b)));
}

static const double ends[] = {0.0, -0.0, 1.0, -1.0, 2.0, HUGE_VAL, -HUGE_VAL, 1e-45, -1e-45, 1.17549435e-38,
                              3.4028234e38, -3.4028234e38, 0.1, 5e-324, 2.2250738585072014e-308,
                              1.7976931348623157e308};
enum { ENDS = (int)(sizeof ends / sizeof *ends) };

TEST(next_numbers) {
    OPD_SCOPE {
        opd_tensor *x = opd_zeros(OPD_INTS(ENDS * ENDS + 3), OPD_FLOAT64), *y = opd_zeros_like(x), *next;
        int64_t wrong = 0;
        for (int i = 0; i < ENDS * ENDS; i++) {
            opd_data_f64(x)[i] = ends[i / ENDS];
            opd_data_f64(y)[i] = ends[i % ENDS];
        }
        for (int i = 0; i < 3; i++) {
            opd_data_f64(i == 1 ? y : x)[ENDS * ENDS + i] = (double)NAN;
            if (i == 2) { opd_data_f64(y)[ENDS * ENDS + i] = (double)NAN; }
        }
        next = opd_nextafter(x, y);
        for (int i = 0; i < ENDS * ENDS; i++) {
            const double want = nextafter(opd_data_f64(x)[i], opd_data_f64(y)[i]), is = opd_data_f64(next)[i];
            wrong += want != is || signbit(want) != signbit(is);
        }
        for (int i = 0; i < 3; i++) { wrong += !isnan(opd_data_f64(next)[ENDS * ENDS + i]); }
        CHECK_INT(wrong, 0);
        x = opd_to_dtype(x, OPD_FLOAT32);
        y = opd_to_dtype(y, OPD_FLOAT32);
        next = opd_nextafter(x, y);
        for (int i = 0; i < ENDS * ENDS; i++) {
            const float want = nextafterf(opd_data_f32(x)[i], opd_data_f32(y)[i]), is = opd_data_f32(next)[i];
            wrong += want != is || signbit(want) != signbit(is);
        }
        for (int i = 0; i < 3; i++) { wrong += !isnan(opd_data_f32(next)[ENDS * ENDS + i]); }
        CHECK_INT(wrong, 0);
    }
}

/* Returns x, shifted by y bits, in int64. */
static int64_t shifted(int64_t x, int64_t y, bool left) {
    const bool beyond = y < 0 || y > 63;
    if (left) { return beyond ? 0 : (int64_t)((uint64_t)x << y); }
    return beyond ? (x < 0 ? -1 : 0) : x < 0 ? ~(~x >> y) : x >> y;
}
/* Checks both shifts of tensors of this dtype, by a tensor, and by numbers that may not fit into it. */
static void check_shifts(opd_scalar_type dtype) {
    static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 62, 63, 64, -1, -2, 300};
    enum { COUNTS = (int)(sizeof counts / sizeof *counts), EACH = 13 };
    opd_tensor *y = opd_zeros(OPD_INTS(COUNTS * EACH), OPD_INT64);
    opd_tensor *x = opd_randint(1000000, OPD_INTS(COUNTS * EACH), OPD_INT64);
    x = opd_mul(opd_sub_Scalar(x, OPD_V(500000)), x);
    for (int i = 0; i < COUNTS * EACH; i++) { opd_data_i64(y)[i] = counts[i / EACH]; }
    opd_tensor *const from = opd_to_dtype(x, dtype), *const by = opd_to_dtype(y, dtype);
    x = opd_to_dtype(from, OPD_INT64);
    y = opd_to_dtype(by, OPD_INT64);
    for (int left = 0; left < 2; left++) {
        opd_tensor *(*const shift)(opd_tensor *, opd_tensor *) = left ? opd_bitwise_left_shift
            : opd_bitwise_right_shift;
        opd_tensor *const want = opd_zeros_like(x), *const result = shift(from, by);
        int64_t wrong = 0;
        for (int i = 0; i < COUNTS * EACH; i++) {
            opd_data_i64(want)[i] = shifted(opd_data_i64(x)[i], opd_data_i64(y)[i], left != 0);
        }
        CHECK_INT(opd_dtype(result), dtype);
        CHECK_INT(differences(result, opd_to_dtype(want, dtype)), 0);
        CHECK_INT(differences(result, shift(with_gaps(from), by)), 0);
        for (int i = 0; i < COUNTS; i++) {
            opd_tensor *const number = opd_select(y, 0, i * EACH), *const part = shift(from, number);
            wrong += differences(part, shift(from, opd_select(by, 0, i * EACH)));
            wrong += differences(opd_narrow(part, 0, i * EACH, EACH), opd_narrow(result, 0, i * EACH, EACH));
        }
        CHECK_INT(wrong, 0);
    }
}
TEST(shifts_of_integers) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64};
    for (int i = 0; i < 5; i++) { OPD_SCOPE { check_shifts(dtypes[i]); } }
}
TEST(shifts_in_place_by_an_element_of_self) {
    OPD_SCOPE {
        opd_tensor *x = opd_full(OPD_INTS(500), OPD_V(3), OPD_INT32);
        CHECK(!opd_bitwise_left_shift_(x, opd_select(x, 0, 2)));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "single memory location");
    }
}

/* The smallest integer has no positive counterpart: it is its own absolute value, as in PyTorch. */
TEST(abs_of_integers) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64};
    for (int k = 0; k < 5; k++) {
        OPD_SCOPE {
            opd_tensor *x = opd_sub_Scalar(opd_arange(OPD_V(301), OPD_INT64), OPD_V(150));
            opd_data_i64(x)[299] = INT64_MIN;
            opd_data_i64(x)[70] = k ? INT64_MIN >> (64 - (8 << (k - 1))) : 0;
            opd_tensor *const from = opd_to_dtype(x, dtypes[k]), *const back = opd_to_dtype(from, OPD_INT64);
            opd_tensor *const want = opd_zeros_like(x), *const result = opd_abs(from);
            for (int i = 0; i < 301; i++) {
                const int64_t y = opd_data_i64(back)[i];
                opd_data_i64(want)[i] = y < 0 ? (int64_t)(0 - (uint64_t)y) : y;
            }
            CHECK_INT(opd_dtype(result), dtypes[k]);
            CHECK_INT(differences(result, opd_to_dtype(want, dtypes[k])), 0);
            CHECK_INT(differences(result, opd_abs(with_gaps(from))), 0);
            CHECK_INT(differences(opd_abs_(from), result), 0);
        }
    }
    OPD_SCOPE {
        CHECK(!opd_abs(opd_zeros(OPD_INTS(3), OPD_BOOL)));
        CHECK_ERROR(OPD_ERROR_DTYPE, "bool");
    }
}

/* Fills x with ordinary numbers, and with numbers for which formulas have conditions. */
static opd_tensor *with_special_numbers(opd_scalar_type dtype) {
    static const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, -3, 3, 3.5, -3.5, 1e300, -1e300, 65504};
    opd_tensor *const x = opd_sub_Scalar(opd_mul_Scalar(opd_rand(OPD_INTS(301), OPD_FLOAT64), OPD_V(12)), OPD_V(6));
    for (int i = 0; i < 301; i += 3) { opd_data_f64(x)[i] = special[i / 3 % 12]; }
    return opd_to_dtype(x, dtype);
}
/* Returns true if x is y up to `least`, or if both are NaN or the same infinity. */
static bool number_is_near(double x, double y, double least) {
    return isnan(y) ? isnan(x) : x == y || fabs(x - y) <= least;
}
static void check_conditions(opd_scalar_type dtype, double least) {
    opd_tensor *const x = with_special_numbers(dtype), *const gaps = with_gaps(x);
    const opd_value numbers[] = {OPD_V(INFINITY), OPD_V(-2.5), OPD_V(NAN)};      /* for NaN, infinity and -infinity */
    opd_tensor *const results[] = {opd_hardsigmoid(x), opd_hardswish(x),
                                   opd_nan_to_num_full(x, numbers[0], numbers[1], numbers[2])};
    const double *from = opd_data_f64(opd_to_dtype(x, OPD_FLOAT64)), *is[3];
    int64_t wrong = 0;
    for (int k = 0; k < 3; k++) { is[k] = opd_data_f64(opd_to_dtype(results[k], OPD_FLOAT64)); }
    for (int i = 0; i < 301; i++) {
        const double y = from[i], part = (y < -3 ? 0 : y > 3 ? 6 : y + 3) / 6;
        const double kept = isnan(y) ? INFINITY : y == INFINITY ? -2.5 : y == -INFINITY ? (double)NAN : y;
        wrong += !number_is_near(is[0][i], part, least) + !number_is_near(is[1][i], y * part, least * fabs(y));
        wrong += !number_is_near(is[2][i], kept, 0) + (y == 0 && signbit(is[2][i]) != signbit(y));
    }
    wrong += differences(opd_nan_to_num(opd_hardswish(gaps)), opd_nan_to_num(results[1]));
    wrong += differences(opd_nan_to_num(opd_hardsigmoid(gaps)), opd_nan_to_num(results[0]));
    wrong += differences(opd_nan_to_num(gaps), opd_nan_to_num(x));
    CHECK_INT(wrong, 0);
}
TEST(conditions_of_formulas) {
    OPD_SCOPE { check_conditions(OPD_FLOAT32, 1e-6); }
    OPD_SCOPE { check_conditions(OPD_FLOAT64, 1e-15); }
    OPD_SCOPE { check_conditions(OPD_FLOAT16, 1e-3); }
    OPD_SCOPE { check_conditions(OPD_BFLOAT16, 1e-2); }
}

static bool is_near(opd_tensor *a, opd_tensor *b, double rtol, double atol) {
    return opd_allclose_full(a, b, rtol, atol, true);
}
/* Checks sums and means over one dim of 16-bit floats beside sums in double. */
static void check_sums_of_halves(opd_scalar_type dtype, int64_t rows, int64_t columns) {
    const double unit = dtype == OPD_BFLOAT16 ? 1.0 / 256 : 1.0 / 2048;
    opd_tensor *const x = opd_to_dtype(opd_randn(OPD_INTS(3, rows, columns), OPD_FLOAT64), dtype);
    opd_fill_(opd_select(opd_select(x, 2, columns - 1), 1, rows / 2), OPD_V(INFINITY));
    opd_fill_(opd_select(opd_select(x, 2, columns / 2), 1, rows - 1), OPD_V(NAN));
    opd_tensor *const wide = opd_to_dtype(x, OPD_FLOAT64), *const part = opd_narrow(x, 2, 1, columns - 1);
    for (int64_t k = 0; k < 3; k++) {
        const opd_ints dim = opd_ints_of(&k, 1);
        opd_tensor *const sum = opd_sum_dim(x, dim, false), *const mean = opd_mean_dim(x, dim, false);
        CHECK_INT(opd_dtype(sum), dtype);
        CHECK(is_near(opd_to_dtype(sum, OPD_FLOAT64), opd_sum_dim(wide, dim, false), unit, 1e-3));
        CHECK(is_near(opd_to_dtype(mean, OPD_FLOAT64), opd_mean_dim(wide, dim, false), unit, 1e-5));
        CHECK(is_near(opd_sum_dim(part, dim, false), opd_sum_dim(opd_contiguous(part), dim, false), 2 * unit, 1e-3));
    }
}
TEST(sums_of_halves_over_a_dim) {
    static const int64_t sizes[][2] = {{70, 37}, {5, 1030}, {1000, 9}, {3, 3}, {257, 130}};
    for (int i = 0; i < 10; i++) {
        OPD_SCOPE { check_sums_of_halves(i % 2 ? OPD_BFLOAT16 : OPD_FLOAT16, sizes[i / 2][0], sizes[i / 2][1]); }
    }
}

/* A byte of a bool tensor that is not 0 is true. */
TEST(logic_of_bools) {
    OPD_SCOPE {
        opd_tensor *x = opd_zeros(OPD_INTS(301), OPD_BOOL), *y = opd_zeros_like(x);
        opd_tensor *number = opd_zeros(OPD_INTS(), OPD_BOOL);
        unsigned char *const a = (unsigned char *)opd_data(x), *const b = (unsigned char *)opd_data(y);
        int64_t wrong = 0;
        for (int i = 0; i < 301; i++) {
            a[i] = (unsigned char)i;
            b[i] = (unsigned char)(i % 3 ? 0 : 255 - i);
        }
        *(unsigned char *)opd_data(number) = 2;
        opd_tensor *const results[] = {
            opd_logical_and(x, y), opd_logical_or(x, y), opd_logical_xor(x, y), opd_logical_not(x),
            opd_logical_and(x, number), opd_bitwise_not(y), opd_bitwise_and(x, with_gaps(y))};
        for (int i = 0; i < 301; i++) {
            const int p = a[i] != 0, q = b[i] != 0, want[] = {p & q, p | q, p ^ q, !p, p, !q, p & q};
            for (int k = 0; k < 7; k++) { wrong += ((unsigned char *)opd_data(results[k]))[i] != want[k]; }
        }
        CHECK_INT(wrong, 0);
        opd_logical_xor_(x, x);
        CHECK_INT(opd_item_i64(opd_sum(x)), 0);
    }
}

/* Returns how many elements of x op y, y op x and of x op= y differ from the same results for whole tensors. */
static int64_t rows_differ(int op, opd_tensor *x, opd_tensor *y) {
    static opd_tensor *(*const ops[])(opd_tensor *, opd_tensor *) = {opd_add, opd_sub, opd_mul, opd_div, opd_maximum};
    static opd_tensor *(*const inplace[])(opd_tensor *, opd_tensor *) = {opd_add_, opd_sub_, opd_mul_, opd_div_};
    opd_tensor *const a = opd_contiguous(x), *const b = opd_contiguous(opd_expand_as(y, x));
    int64_t wrong = differences(ops[op](x, y), ops[op](a, b)) + differences(ops[op](y, x), ops[op](b, a));
    if (op < 4) { wrong += differences(inplace[op](opd_clone(x), y), ops[op](a, b)); }
    return wrong;
}
/* In the second operand, one number is repeated along a row, or one row is repeated. */
TEST(rows_and_numbers) {
    static const int64_t sizes[][3] = {{3, 5, 1}, {2, 3, 4}, {5, 2, 7}, {4, 3, 8}, {3, 50, 17}, {2, 9, 33}, {1, 3, 130},
                                       {70, 11, 64}};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16};
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 3; k++) {
            OPD_SCOPE {
                const int64_t high = sizes[i][0], rows = sizes[i][1], cols = sizes[i][2];
                opd_tensor *const floats = opd_randn(OPD_INTS(high, rows, cols + 3), OPD_FLOAT32);
                opd_tensor *const wide = opd_to_dtype(floats, dtypes[k]);
                opd_tensor *const x = opd_contiguous(opd_narrow(wide, 2, 0, cols)), *const parts[] = {
                    opd_narrow(wide, 2, cols, 1), opd_narrow(opd_narrow(wide, 2, 1, 1), 0, 0, 1),
                    opd_narrow(opd_narrow(wide, 2, 1, 1), 1, 0, 1), opd_select(opd_select(wide, 0, 0), 0, 0),
                    opd_narrow(wide, 1, 0, 1), opd_select(opd_select(opd_select(wide, 0, 0), 0, 0), 0, 1)};
                int64_t wrong = 0;
                for (int op = 0; op < 5; op++) {
                    for (int part = 0; part < 6; part++) {
                        opd_tensor *y = parts[part];
                        if (part == 3) { y = opd_narrow(y, 0, 2, cols); }
                        if (part == 4) { y = opd_narrow(y, 2, 1, cols); }
                        wrong += rows_differ(op, x, y) + rows_differ(op, opd_narrow(wide, 2, 0, cols), opd_clone(y));
                    }
                }
                CHECK_INT(wrong, 0);
            }
        }
    }
}
/* A number that is repeated along a row may be NaN, of either sign. */
TEST(rows_and_nan) {
    OPD_SCOPE {
        opd_tensor *const x = opd_full(OPD_INTS(3, 8), OPD_V(1), OPD_FLOAT32);
        opd_tensor *const y = opd_full(OPD_INTS(3, 1), OPD_V(2), OPD_FLOAT32);
        opd_data_f32(y)[0] = copysignf((float)NAN, 1);
        opd_data_f32(y)[2] = copysignf((float)NAN, -1);
        opd_tensor *const all = opd_contiguous(opd_expand_as(y, x));
        CHECK_INT(differences(opd_signbit(opd_sub(x, y)), opd_signbit(opd_sub(x, all))), 0);
        CHECK_INT(differences(opd_signbit(opd_sub(y, x)), opd_signbit(opd_sub(all, x))), 0);
        CHECK_INT(differences(opd_signbit(opd_add(x, y)), opd_signbit(opd_add(x, all))), 0);
        CHECK_INT(differences(opd_signbit(opd_div(x, y)), opd_signbit(opd_div(x, all))), 0);
    }
}
TEST(sums_with_outer_products) {
    OPD_SCOPE {
        opd_tensor *a = opd_randn(OPD_INTS(37), OPD_FLOAT32), *b = opd_randn(OPD_INTS(41), OPD_FLOAT32);
        opd_tensor *const selfs[] = {
            opd_randn(OPD_INTS(37, 41), OPD_FLOAT32), opd_t(opd_randn(OPD_INTS(41, 37), OPD_FLOAT32)),
            opd_randn(OPD_INTS(41), OPD_FLOAT32), opd_randn(OPD_INTS(37, 1), OPD_FLOAT32)};
        for (int i = 0; i < 4; i++) {
            opd_tensor *const self = selfs[i], *const sum = opd_addr(self, a, b);
            /* some compilers round a sum with a product once, and others twice */
            CHECK(opd_allclose_full(sum, opd_add(self, opd_outer(a, b)), 1e-6, 1e-6, false));
            CHECK_INT(opd_strides(sum)[0], opd_strides(opd_add(self, opd_outer(a, b)))[0]);
        }
        opd_tensor *const wide[] = {opd_to_dtype(selfs[0], OPD_FLOAT64), opd_to_dtype(a, OPD_FLOAT64),
                                    opd_to_dtype(b, OPD_FLOAT64)};
        CHECK(opd_allclose_full(opd_addr(wide[0], wide[1], wide[2]), opd_add(wide[0], opd_outer(wide[1], wide[2])),
                                1e-14, 1e-14, false));
        opd_tensor_set_requires_grad(a, true);
        opd_backward(opd_sum(opd_addr(selfs[0], a, b)));
        CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(a), 0, 3)), opd_item_f64(opd_sum(b)), 1e-4);
    }
}

/* Checks losses of x and y, and their gradients by x, beside the same losses of tensors that are not contiguous. */
static void check_losses(opd_tensor *x, opd_tensor *y, opd_tensor *grads, double beta) {
    opd_tensor *const a = with_gaps(x), *const b = with_gaps(y);
    for (int64_t kind = 0; kind < 3; kind++) {
        opd_tensor *const grad = kind ? opd_select(grads, 0, 0) : grads;
        opd_tensor *const two[][2] = {
            {opd_mse_loss_full(x, y, kind), opd_mse_loss_full(a, b, kind)},
            {opd_smooth_l1_loss_full(x, y, kind, beta), opd_smooth_l1_loss_full(a, b, kind, beta)},
            {opd_huber_loss_full(x, y, kind, beta), opd_huber_loss_full(a, b, kind, beta)},
            {opd_mse_loss_backward(grad, x, y, kind), opd_mse_loss_backward(grad, a, b, kind)},
            {opd_smooth_l1_loss_backward(grad, x, y, kind, beta), opd_smooth_l1_loss_backward(grad, a, b, kind, beta)},
            {opd_huber_loss_backward(grad, x, y, kind, beta), opd_huber_loss_backward(grad, a, b, kind, beta)}};
        for (int i = 0; i < 6; i++) { CHECK(is_near(two[i][0], two[i][1], 1e-5, 1e-6)); }
    }
}
TEST(losses_of_contiguous_tensors) {
    static const int64_t counts[] = {1, 15, 16, 255, 256, 1000, 70001};
    for (int i = 0; i < 7; i++) {
        OPD_SCOPE {
            opd_tensor *x = opd_mul_Scalar(opd_randn(OPD_INTS(counts[i]), OPD_FLOAT32), OPD_V(2));
            opd_tensor *const y = opd_randn_like(x);
            opd_tensor *const grads = opd_randn_like(x);
            float *const a = opd_data_f32(x), *const b = opd_data_f32(y);
            if (counts[i] > 100) {                /* differences that are 0, or exactly beta */
                a[3] = b[3];
                a[4] = b[4] = 0;
                a[5] = 0.5f;
                a[6] = -0.5f;
                b[5] = b[6] = 0;
            }
            check_losses(x, y, grads, 0.5);
            check_losses(x, y, grads, 1);
            if (counts[i] > 100) {
                a[7] = (float)NAN;
                a[8] = HUGE_VALF;
            }
            check_losses(x, y, grads, 0.1);
            check_losses(x, y, grads, 1e-42);
            CHECK(is_near(opd_smooth_l1_loss_full(x, y, 0, 0), opd_abs(opd_sub(x, y)), 0, 0));
        }
    }
}
/* With a beta so small that 0.5 / beta or beta itself does not fit into float32, equal numbers have no loss. */
TEST(losses_with_a_tiny_beta) {
    static const double betas[] = {1e-39, 1e-44, 1e-50};
    for (int i = 0; i < 3; i++) {
        OPD_SCOPE {
            opd_tensor *const x = opd_full(OPD_INTS(20), OPD_V(1), OPD_FLOAT32), *const y = opd_clone(x);
            opd_data_f32(x)[5] = 3;
            CHECK_NEAR(opd_item_f64(opd_smooth_l1_loss_full(x, y, 2, betas[i])), 2, 1e-6);
            opd_tensor *const slope = opd_smooth_l1_loss_backward(opd_full_like(x, OPD_V(1)), x, y, 0, betas[i]);
            CHECK_NEAR(opd_data_f32(slope)[4], 0, 0);
            CHECK_NEAR(opd_data_f32(slope)[5], 1, 0);
        }
    }
}
TEST(gates_of_floats) {
    OPD_SCOPE {
        opd_tensor *const x = opd_randn(OPD_INTS(5, 6, 70), OPD_FLOAT32);
        opd_tensor *const weight = opd_randn(OPD_INTS(6), OPD_FLOAT32);
        opd_data_f32(x)[2] = (float)NAN;
        opd_data_f32(x)[3] = -HUGE_VALF;
        opd_tensor *const wide = opd_to_dtype(x, OPD_FLOAT64), *const turned = opd_transpose(x, 0, 2);
        opd_tensor *const parameter = opd_to_dtype(weight, OPD_FLOAT64);
        CHECK(is_near(opd_to_dtype(opd_prelu(x, weight), OPD_FLOAT64), opd_prelu(wide, parameter), 1e-6, 0));
        CHECK(is_near(opd_prelu(turned, weight), opd_transpose(opd_prelu(x, weight), 0, 2), 0, 0));
        CHECK(is_near(opd_to_dtype(opd_glu(x), OPD_FLOAT64), opd_glu(wide), 1e-5, 1e-7));
        CHECK(is_near(opd_to_dtype(opd_glu_full(turned, 1), OPD_FLOAT64),
                   opd_glu_full(opd_transpose(wide, 0, 2), 1), 1e-5, 1e-7));
    }
}

TEST(floats_to_bools_and_complex_numbers) {
    static const int64_t counts[] = {1, 15, 16, 31, 33, 1000, 40001};
    for (int i = 0; i < 7; i++) {
        OPD_SCOPE {
            opd_tensor *const x = opd_randn(OPD_INTS(counts[i]), OPD_FLOAT32);
            int64_t wrong = 0;
            opd_data_f32(x)[counts[i] / 2] = (float)NAN;
            opd_data_f32(x)[counts[i] / 3] = -0.0f;
            opd_tensor *const pairs = opd_to_dtype(x, OPD_COMPLEX64), *const bools = opd_to_dtype(x, OPD_BOOL);
            const float *const from = opd_data_f32(x), *const to = (const float *)opd_data(pairs);
            for (int64_t j = 0; j < counts[i]; j++) {
                wrong += memcmp(&from[j], &to[2 * j], sizeof *from) != 0 || to[2 * j + 1] != 0;
                wrong += ((const unsigned char *)opd_data(bools))[j] != (from[j] != 0);
            }
            CHECK_INT(wrong, 0);
            CHECK_INT(differences(opd_to_dtype(with_gaps(x), OPD_BOOL), bools), 0);
        }
    }
}

/* Checks the positions of `count` values in each row of a sequence of `total` numbers, some of which are equal. */
static void check_search(int64_t total, int64_t count, opd_scalar_type dtype, bool right) {
    opd_tensor *const numbers = opd_randint(total + 3, OPD_INTS(2, total), OPD_INT64);
    opd_tensor *const values = opd_randint(total + 5, OPD_INTS(2, count), OPD_INT64), *sorts[2];
    if (opd_sort(sorts, numbers, -1, false)) { return; }
    opd_tensor *const found = opd_searchsorted_full(opd_to_dtype(sorts[0], dtype), opd_to_dtype(values, dtype), false,
                                                    right, opd_value_none(), opd_value_none());
    opd_tensor *const ordered = opd_searchsorted_full(opd_to_dtype(numbers, dtype), opd_to_dtype(values, dtype), false,
                                                      right, opd_value_none(), OPD_V(sorts[1]));
    int64_t wrong = 0;
    for (int64_t i = 0; i < 2 * count; i++) {
        const int64_t *const row = opd_data_i64(sorts[0]) + i / count * total, value = opd_data_i64(values)[i];
        int64_t want = 0;
        while (want < total && (right ? row[want] <= value : row[want] < value)) { want++; }
        wrong += opd_data_i64(found)[i] != want || opd_data_i64(ordered)[i] != want;
    }
    CHECK_INT(wrong, 0);
}
TEST(positions_in_sorted_rows) {
    for (int64_t total = 1; total < 40; total += 1 + total / 8) {
        for (int64_t count = 1; count < 11; count++) {
            OPD_SCOPE {
                check_search(total, count, OPD_FLOAT32, count % 2 == 0);
                check_search(total, count, OPD_INT64, count % 2 != 0);
            }
        }
    }
}

/* A sorted sequence without NaN is searched in other steps than one with NaN, where the search of PyTorch is repeated:
   for 0 in {1, NaN}, it finds position 2. */
TEST(positions_in_few_numbers) {
    for (int64_t total = 0; total < 40; total++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = total % 3 == 0 ? OPD_INT64 : total % 3 == 1 ? OPD_FLOAT32 : OPD_FLOAT64;
            opd_tensor *const numbers = opd_randint(total + 1, OPD_INTS(total), OPD_INT64), *sorts[2];
            opd_tensor *const values = opd_randint(total + 3, OPD_INTS(total + 50), OPD_INT64);
            CHECK_INT(opd_sort(sorts, numbers, -1, false), 0);
            for (int right = 0; right < 2; right++) {
                opd_tensor *const found = opd_bucketize_full(opd_to_dtype(values, dtype), opd_to_dtype(sorts[0], dtype),
                                                             false, right != 0);
                int64_t wrong = 0;
                for (int64_t i = 0; i < total + 50; i++) {
                    const int64_t *const row = opd_data_i64(sorts[0]), value = opd_data_i64(values)[i];
                    int64_t want = 0;
                    while (want < total && (right ? row[want] <= value : row[want] < value)) { want++; }
                    wrong += opd_data_i64(found)[i] != want;
                }
                CHECK_INT(wrong, 0);
            }
        }
    }
    OPD_SCOPE {
        opd_tensor *const few = opd_ones(OPD_INTS(2), OPD_FLOAT64), *const values = opd_zeros(OPD_INTS(9), OPD_FLOAT64);
        opd_data_f64(values)[4] = (double)NAN;
        CHECK_INT(opd_data_i64(opd_bucketize(values, few))[3], 0);
        CHECK_INT(opd_data_i64(opd_bucketize(values, few))[4], 2);
        opd_data_f64(few)[1] = (double)NAN;
        CHECK_INT(opd_data_i64(opd_bucketize(values, few))[3], 2);
    }
}

/* Integers that lie within 2^32 are sorted as words, from which they are made again; others by keys of 64 bits.  Equal
   integers keep their order. */
TEST(sorted_integers) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_BOOL};
    static const int64_t ranges[] = {1, 200, 60000, 16000000, 4294967296};
    static const int64_t starts[] = {INT64_MIN, -100, INT64_MAX - 4294967296};
    for (int way = 0; way < 6 * 5 * 3 * 2; way++) {
        OPD_SCOPE {
            const int64_t count = 100 + 61 * (way % 7), range = ranges[way / 6 % 5], first = starts[way / 30 % 3];
            const bool descending = way >= 90;
            opd_tensor *x = opd_randint(range + 1, OPD_INTS(count), OPD_INT64), *sorts[2] = {NULL, NULL};
            x = opd_to_dtype(opd_add_Scalar(x, opd_value_int(first)), dtypes[way % 6]);
            CHECK_INT(opd_sort_stable(sorts, x, opd_value_bool(true), 0, descending), 0);
            opd_tensor *const wide = opd_to_dtype(x, OPD_INT64), *const sorted = opd_to_dtype(sorts[0], OPD_INT64);
            int64_t wrong = 0, *const from = opd_data_i64(wide), *const to = opd_data_i64(sorted);
            for (int64_t i = 0; i < count; i++) {
                const int64_t at = opd_data_i64(sorts[1])[i], last = i ? opd_data_i64(sorts[1])[i - 1] : 0;
                wrong += from[at] != to[i];
                if (i) { wrong += descending ? to[i - 1] < to[i] : to[i - 1] > to[i]; }
                if (i && to[i - 1] == to[i]) { wrong += last >= at; }
            }
            CHECK_INT(wrong, 0);
        }
    }
}

/* Lines of bytes are sorted by counting, also if their elements are not neighbours in memory. */
TEST(sorted_columns_of_bytes) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_BOOL};
    for (int way = 0; way < 3 * 2 * 2; way++) {
        OPD_SCOPE {
            const bool descending = way >= 6;
            opd_tensor *x = opd_randint(way / 3 % 2 ? 256 : 3, OPD_INTS(300, 5), OPD_INT64), *sorts[2], *one[2];
            x = opd_to_dtype(x, dtypes[way % 3]);
            CHECK_INT(opd_sort_stable(sorts, x, opd_value_bool(true), 0, descending), 0);
            for (int64_t column = 0; column < 5; column++) {
                opd_tensor *const wide = opd_to_dtype(opd_contiguous(opd_select(x, 1, column)), OPD_INT64);
                CHECK_INT(opd_sort_stable(one, wide, opd_value_bool(true), 0, descending), 0);
                CHECK(opd_equal(opd_to_dtype(opd_select(sorts[0], 1, column), OPD_INT64), one[0]));
                CHECK(opd_equal(opd_select(sorts[1], 1, column), one[1]));
            }
        }
    }
}

/* Tensors are joined some rows at a time.  Rows of different lengths are copied in different ways, and those of strided
   tensors are prefetched. */
TEST(joined_and_copied_rows) {
    static const int64_t widths[] = {1, 5, 16, 17, 63, 256, 300};
    for (int way = 0; way < 7 * 7 * 2; way++) {
        OPD_SCOPE {
            const int64_t first = widths[way % 7], second = widths[way / 7 % 7], rows = way < 49 ? 35 : 3;
            opd_tensor *parts[3];
            parts[0] = parts[2] = opd_randn(OPD_INTS(rows, first), OPD_FLOAT32);
            parts[1] = opd_randn(OPD_INTS(rows, second), OPD_FLOAT32);
            opd_tensor *const all = opd_cat(opd_tensors_of(parts, 3), 1);
            const float *x = opd_data_f32(all);
            opd_tensor *const copy = opd_contiguous(opd_slice(all, 1, OPD_V(first), OPD_V(first + second), 1));
            int64_t wrong = 0;
            for (int64_t i = 0; i < rows; i++) {
                for (int part = 0; part < 3; part++) {
                    const int64_t width = part == 1 ? second : first;
                    for (int64_t j = 0; j < width; j++) { wrong += *x++ != opd_data_f32(parts[part])[i * width + j]; }
                }
            }
            CHECK_INT(wrong, 0);
            CHECK(opd_equal(copy, parts[1]));
        }
    }
}

/* Quotients are computed in double if all numbers of a block are below 2^51. */
static void check_quotients(const int64_t *numbers, int count, int64_t repeats) {
    const int64_t total = count * count * repeats;
    opd_tensor *const x = opd_zeros(OPD_INTS(total), OPD_INT64), *const y = opd_zeros_like(x);
    for (int64_t i = 0; i < total; i++) {
        const int64_t k = i % (count * count);
        opd_data_i64(x)[i] = numbers[k / count];
        opd_data_i64(y)[i] = numbers[k % count] ? numbers[k % count] : 3;
        if (opd_data_i64(x)[i] == INT64_MIN && opd_data_i64(y)[i] == -1) { opd_data_i64(y)[i] = 5; }
    }
    opd_tensor *const floors = opd_floor_divide(x, y), *const signs = opd_remainder(x, y);
    opd_tensor *const rests = opd_fmod(x, y);
    int64_t wrong = 0;
    for (int64_t i = 0; i < total; i++) {
        const int64_t a = opd_data_i64(x)[i], b = opd_data_i64(y)[i], rest = b == -1 ? 0 : a % b;
        const bool moved = rest != 0 && (rest < 0) != (b < 0);
        wrong += opd_data_i64(rests)[i] != rest || opd_data_i64(signs)[i] != (moved ? rest + b : rest);
        wrong += opd_data_i64(floors)[i] != (b == -1 ? -a : a / b) - moved;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(differences(opd_floor_divide(with_gaps(x), y), floors), 0);
    CHECK_INT(differences(opd_remainder_(x, y), signs), 0);
}
TEST(quotients_of_integers) {
    const int64_t least = -((int64_t)1 << 51), small[] = {0, 1, -1, 2, -2, 3, -3, 7, 10, -10, 1000, -999, least,
                                                          -least - 1, least + 1, -least - 2};
    const int64_t medium[] = {1, 3, -7, -least, 1 - least, least - 1, 3 * least + 1, -3 * least + 5};
    const int64_t large[] = {0, 1, -1, 7, -least, least - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, 12345};
    OPD_SCOPE {
        check_quotients(small, 16, 1);
        check_quotients(medium, 8, 2);
        check_quotients(large, 11, 3);
    }
    OPD_SCOPE {                                   /* a divisor that is 0, in a block of small numbers */
        opd_tensor *const ones = opd_ones(OPD_INTS(200), OPD_INT64);
        opd_data_i64(ones)[70] = 0;
        CHECK(!opd_floor_divide(ones, ones));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "divided by zero");
    }
    OPD_SCOPE {                                   /* 2^31 is small for a double, but not for int32 */
        opd_tensor *const least_of_all = opd_full(OPD_INTS(64), opd_value_int(INT32_MIN), OPD_INT32);
        CHECK(!opd_floor_divide(least_of_all, opd_full_like(least_of_all, opd_value_int(-1))));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "does not fit");
    }
}

/* asinh and sinh of float32 beside those of float64. */
TEST(hyperbolic_functions_of_floats) {
    OPD_SCOPE {
        opd_tensor *const x = opd_zeros(OPD_INTS(4003), OPD_FLOAT32);
        for (int i = 0; i < 4000; i++) { opd_data_f32(x)[i] = (float)(exp(-87 + i * 0.0439) * (i % 2 ? 1 : -1)); }
        opd_data_f32(x)[4000] = (float)NAN;
        opd_data_f32(x)[4001] = HUGE_VALF;
        opd_data_f32(x)[4002] = -0.0f;
        for (int i = 0; i < 1000; i++) { opd_data_f32(x)[3 * i] = (float)(i * 0.18 - 90); }
        opd_tensor *const results[] = {opd_asinh(x), opd_sinh(x)};
        for (int k = 0; k < 2; k++) {
            int64_t wrong = 0;
            for (int i = 0; i < 4003; i++) {
                const float at = opd_data_f32(x)[i], is = opd_data_f32(results[k])[i];
                const float want = (float)(k ? sinh((double)at) : asinh((double)at));
                wrong += !number_is_near(is, want, fabs(want) * 5e-7) || (at == at && signbit(is) != signbit(at));
            }
            CHECK_INT(wrong, 0);
        }
    }
}

/* The cumulative maximum and minimum, and the places of the extremes. */
static void check_extremes(opd_scalar_type dtype) {
    opd_tensor *const x = with_special_numbers(dtype), *from = opd_to_dtype(x, OPD_FLOAT64), *pair[2];
    for (int least = 0; least < 2; least++) {
        double best = opd_data_f64(from)[0];
        int64_t at = 0, first = 0, wrong = (least ? opd_cummin : opd_cummax)(pair, x, 0) != 0;
        opd_tensor *const values = opd_to_dtype(pair[0], OPD_FLOAT64);
        for (int i = 0; i < 301; i++) {
            const double y = opd_data_f64(from)[i];
            if (best == best && !(least ? y >= best : y <= best)) { first = i; }
            if (y != y || (best == best && (least ? y <= best : y >= best))) {
                best = y;
                at = i;
            }
            wrong += !number_is_near(opd_data_f64(values)[i], best, 0) || opd_data_i64(pair[1])[i] != at;
        }
        wrong += (least ? opd_min_dim : opd_max_dim)(pair, x, 0, false) != 0 || opd_item_i64(pair[1]) != first;
        CHECK_INT(wrong, 0);
    }
}
TEST(running_extremes) {
    OPD_SCOPE { check_extremes(OPD_FLOAT32); }
    OPD_SCOPE { check_extremes(OPD_FLOAT64); }
    OPD_SCOPE { check_extremes(OPD_INT64); }
}

TEST(sums_without_nan) {
    OPD_SCOPE {
        opd_tensor *const x = opd_ones(OPD_INTS(10000), OPD_FLOAT32);
        CHECK_NEAR(opd_item_f64(opd_nansum(x)), 10000, 0);
        opd_data_f32(x)[3000] = (float)NAN;
        CHECK_NEAR(opd_item_f64(opd_nansum(x)), 9999, 0);
        opd_data_f32(x)[9000] = HUGE_VALF;
        opd_data_f32(x)[9001] = (float)NAN;
        CHECK(opd_item_f64(opd_nansum(x)) == HUGE_VAL);
        opd_data_f32(x)[5] = -HUGE_VALF;
        CHECK(isnan(opd_item_f64(opd_nansum(x))));
    }
}

TEST(counts_of_numbers) {
    OPD_SCOPE {
        opd_tensor *const x = opd_randint(50, OPD_INTS(1003), OPD_INT64);
        opd_data_i64(x)[517] = 70;
        opd_tensor *const counts = opd_bincount(x);
        CHECK_INT(opd_numel(counts), 71);
        CHECK_INT(opd_item_i64(opd_sum(counts)), 1003);
        opd_data_i64(x)[518] = -1;
        CHECK(!opd_bincount(x));
        CHECK_ERROR(OPD_ERROR_INDEX, "non-negative");
    }
}

/* Averages over windows of several sizes, in planes with more columns than are added at a time. */
TEST(averages_of_wide_planes) {
    OPD_SCOPE {
        opd_tensor *const x = opd_randint(1000, OPD_INTS(2, 3, 5, 700), OPD_FLOAT32);
        for (int wide = 1; wide < 700; wide += wide < 4 ? 1 : 113) {
            opd_tensor *const plain = opd_avg_pool2d_full(x, OPD_INTS(2, wide), OPD_INTS(1, 3), OPD_INTS(0, 0), false,
                                                          true, opd_value_none());
            opd_tensor *const parts = opd_unfold(opd_unfold(x, 2, 2, 1), 3, wide, 3);
            opd_tensor *const want = opd_mean_dim(parts, OPD_INTS(-1, -2), false);
            CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(plain, want)))) < 1e-3);
        }
    }
}

/* Sums and products along lines that are one number, or whose elements lie apart. */
TEST(scans_of_expanded_lines) {
    OPD_SCOPE {
        for (int k = 0; k < 6; k++) {
            opd_tensor *const column = opd_randn(OPD_INTS(k < 3 ? 11 : 8, 1), OPD_FLOAT32);
            opd_tensor *const square = opd_randn(OPD_INTS(17, k < 3 ? 11 : 8), OPD_FLOAT32);
            opd_tensor *const x = k % 3 ? opd_expand(column, OPD_INTS(-1, 17)) : opd_transpose(square, 0, 1);
            opd_tensor *const wide = opd_to_dtype(x, OPD_FLOAT64);
            opd_tensor *const found = k % 3 == 1 ? opd_cumsum(x, 1) : opd_cumprod(x, 1);
            opd_tensor *const want = k % 3 == 1 ? opd_cumsum(wide, 1) : opd_cumprod(wide, 1);
            CHECK(opd_allclose(found, opd_to_dtype(want, OPD_FLOAT32)));
        }
    }
}

/* Means of rows that are read sixteen at a time, in tensors with more and fewer rows that are neighbours. */
TEST(means_of_short_rows) {
    OPD_SCOPE {
        for (int k = 0; k < 8; k++) {
            opd_tensor *const wide = opd_randint(100, OPD_INTS(5, 37, 3, k < 4 ? 20 : 9), OPD_FLOAT32);
            opd_tensor *const x = k & 1 ? opd_transpose(wide, 0, 1) : k & 2 ? opd_transpose(wide, 1, 2) : wide;
            opd_tensor *const want = opd_mean_dim(opd_to_dtype(x, OPD_FLOAT64), OPD_INTS(-1), false);
            CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(opd_mean_dim(x, OPD_INTS(-1), false), want)))) < 1e-4);
        }
    }
}

/* A point that is NaN has no vector path if points are mirrored: its whole block is then sampled without vectors. */
TEST(mirrored_points) {
    OPD_SCOPE {
        opd_tensor *const image = opd_randn(OPD_INTS(1, 3, 6, 9), OPD_FLOAT32);
        opd_tensor *const points = opd_mul_Scalar(opd_randn(OPD_INTS(1, 7, 30, 2), OPD_FLOAT32), OPD_V(3));
        for (int i = 0; i < 210; i += 2) { opd_data_f32(points)[i] = (float)(i - 100) / 9; }     /* halves of columns */
        opd_tensor *const other = opd_clone(points);
        opd_data_f32(other)[419] = (float)NAN;
        for (int how = 0; how < 2; how++) {
            for (int corners = 0; corners < 2; corners++) {
                opd_tensor *const plain = opd_grid_sampler_2d(image, points, how, 2, corners != 0);
                opd_tensor *const slow = opd_grid_sampler_2d(image, other, how, 2, corners != 0);
                double worst = 0;
                for (int i = 0; i < 3 * 210; i++) {
                    const double apart = fabs((double)(opd_data_f32(plain)[i] - opd_data_f32(slow)[i]));
                    if (i % 210 != 209) { worst = !(apart <= worst) ? apart : worst; }
                }
                CHECK(how ? worst == 0 : worst < 1e-4);
            }
        }
    }
}
/* Samples of an image, partly outside of it, are samples of the image with zeros around it.  Images have more and fewer
   elements than a point reads.  Those of doubles have an infinite one.  With floats, the product of an infinite element
   and a weight near 0 depends on rounding. */
TEST(points_at_edges) {
    const int64_t sizes[][2] = {{1, 1}, {1, 2}, {3, 1}, {2, 2}, {1, 3}, {2, 3}, {5, 4}, {3, 40}, {40, 3}};
    for (int k = 0; k < 4 * 9; k++) {
        OPD_SCOPE {
            const double high = (double)sizes[k / 4][0], wide = (double)sizes[k / 4][1];
            const double scales[] = {wide / (wide + 8), high / (high + 8)};
            opd_tensor *const image = opd_randn(OPD_INTS(2, 3, sizes[k / 4][0], sizes[k / 4][1]),
                                                k & 2 ? OPD_FLOAT64 : OPD_FLOAT32);
            if (k & 2) { opd_fill_(opd_narrow(opd_view(image, OPD_INTS(-1)), 0, 0, 1), OPD_V((double)INFINITY)); }
            opd_tensor *const points = opd_mul_Scalar(opd_randn(OPD_INTS(2, 9, 37, 2), opd_dtype(image)), OPD_V(1.5));
            opd_tensor *const scale = opd_to_dtype(opd_tensor_from(scales, OPD_INTS(2), OPD_FLOAT64), opd_dtype(image));
            opd_tensor *const found = opd_grid_sampler_2d(image, points, k & 1 ? 2 : 0, 0, false);
            opd_tensor *const around = opd_constant_pad_nd(image, OPD_INTS(4, 4, 4, 4));
            opd_tensor *const want = opd_grid_sampler_2d(around, opd_mul(points, scale), k & 1 ? 2 : 0, 0, false);
            CHECK(opd_allclose_full(found, want, 1e-3, 1e-3, true));
        }
    }
}
/* The nearest of two columns at the same distance is the even one. */
TEST(nearest_points) {
    OPD_SCOPE {
        opd_tensor *const image = opd_view(opd_arange(OPD_V(8), OPD_FLOAT32), OPD_INTS(1, 1, 1, 8));
        opd_tensor *const points = opd_zeros(OPD_INTS(1, 1, 40, 2), OPD_FLOAT32);
        for (int i = 0; i < 40; i++) { opd_data_f32(points)[2 * i] = (float)((i - 4) * 0.25) / 4 - 0.875f; }
        opd_data_f32(points)[78] = (float)NAN;
        opd_tensor *const found = opd_grid_sampler_2d(image, points, 1, 0, false);
        int64_t wrong = opd_data_f32(found)[39] != 0;
        for (int i = 0; i < 39; i++) {
            const double at = nearbyint((i - 4) * 0.25);
            wrong += (double)opd_data_f32(found)[i] != (at >= 0 && at < 8 ? at : 0);
        }
        CHECK_INT(wrong, 0);
    }
}

CHECK_MAIN()
