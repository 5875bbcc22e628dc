/* Values, derivatives and errors at the limits of the arguments of operators, as in PyTorch 2.15. */
#include "../check.h"

#define CALL(name, ...) ({ static opd_op *op_; OPD_CALL(OPD_OP(&op_, name), __VA_ARGS__); })
static opd_tensor *floats(const float *v, int n) { return opd_tensor_from(v, OPD_INTS(n), OPD_FLOAT32); }
static opd_tensor *counted(int n) { return opd_arange_full(opd_value_int(n), opd_value_int(OPD_FLOAT32), OPD_NONE, OPD_NONE, OPD_NONE); }
static void are(const opd_tensor *t, const double *want, int n) {
    int i;
    CHECK_OK();
    CHECK_OR_RETURN(t && opd_numel(t) == n);
    t = opd_contiguous((opd_tensor *)(uintptr_t)t);
    for (i = 0; i < n; i++) { CHECK_NEAR(opd_data_f32((opd_tensor *)(uintptr_t)t)[i], want[i], 1e-5); }
}
#define ARE(t, ...) do { const double want_[] = {__VA_ARGS__}; are(t, want_, (int)(sizeof want_ / sizeof *want_)); } while (0)

TEST(subtraction_of_truth) {
    opd_tensor *x = counted(3), *b = opd_gt_Scalar(x, opd_value_int(1));
    static const char *const text = "Subtraction, the `-` operator, with a bool tensor is not supported.";
    CHECK(opd_sub(x, opd_tensor_wrapped_number(opd_value_bool(true))) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(opd_sub_Scalar(x, opd_value_bool(true)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(opd_sub(x, b) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(opd_sub(b, b) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "with two bool tensors");
}
TEST(sums_of_truth_in_place) {
    opd_tensor *b = opd_gt_Scalar(counted(3), opd_value_int(0));
    CHECK(CALL("aten::cumsum_", b, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"cumsum_out_cpu\" not implemented for 'bool'");
    CHECK(CALL("aten::cumprod_", b, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"cumprod_out_cpu\" not implemented for 'bool'");
    CHECK_INT(opd_item_i64(opd_select(opd_cumsum(b, 0), 0, 2)), 2);
}
TEST(outs_of_their_own_dtype) {
    const int64_t at[] = {2, 0};
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(2), OPD_INT64);
    CHECK(CALL("aten::gather.out", counted(3), 0, index, false, opd_zeros(OPD_INTS(2), OPD_FLOAT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype");
    CHECK(CALL("aten::multinomial.out", counted(3), 2, false, OPD_NONE, opd_zeros(OPD_INTS(2), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype int64");
}
TEST(copies_where_there_is_no_view) {
    opd_tensor *t = opd_t(opd_view(counted(6), OPD_INTS(2, 3)));
    ARE(CALL("aten::view_copy", t, OPD_INTS(6)), 0, 3, 1, 4, 2, 5);
}
TEST(detach_of_an_inference_tensor) {
    opd_tensor *x = NULL;
    OPD_INFERENCE_MODE(true) { x = opd_ones(OPD_INTS(2), OPD_FLOAT32); }
    CHECK(CALL("aten::detach_", x) == x);
    CHECK_OK();
    CHECK(CALL("aten::mul_.Scalar", x, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Inplace update to inference tensor");
}
TEST(index_add_into_nothing) {
    const int64_t zero = 0;
    opd_tensor *index = opd_tensor_from(&zero, OPD_INTS(1), OPD_INT64), *none = opd_zeros(OPD_INTS(0, 3), OPD_FLOAT32);
    CHECK(CALL("aten::index_add_", none, 0, index, opd_ones(OPD_INTS(1, 3), OPD_FLOAT32)) == none);
    CHECK(CALL("aten::index_add_", opd_zeros(OPD_INTS(0), OPD_FLOAT32), 0, index, opd_ones(OPD_INTS(1), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "index out of range in self");
}
TEST(hardtanh_of_integers) {
    opd_tensor *x = opd_to_dtype(counted(4), OPD_UINT8);
    ARE(opd_to_dtype(CALL("aten::hardtanh", x, -0.5, 0.5), OPD_FLOAT32), 0, 0, 0, 0);
    ARE(opd_to_dtype(CALL("aten::hardtanh", x, -1.5, 2.5), OPD_FLOAT32), 0, 1, 2, 2);
}
/* Zeros are filled by bytes, and negative zeros are not. */
TEST(fill_keeps_the_sign_of_zero) {
    for (int k = 0; k < 4; k++) {
        opd_tensor *const x = opd_to_dtype(opd_ones(OPD_INTS(3, 700), OPD_FLOAT32), k & 2 ? OPD_FLOAT64 : OPD_FLOAT16);
        opd_fill_(opd_narrow(x, 0, 1, 1), OPD_V(k & 1 ? -0.0 : 0.0));
        opd_tensor *const signs = opd_to_dtype(opd_signbit(x), OPD_INT64);
        CHECK(opd_item_f64(opd_sum(signs)) == (k & 1 ? 700 : 0) && opd_item_f64(opd_sum(x)) == 1400);
    }
}
/* Padding all dims at once, which is possible without gradients, gives the same as indices along each dim. */
TEST(circular_padding_of_several_dims) {
    const opd_scalar_type dtypes[] = {OPD_BOOL, OPD_FLOAT16, OPD_FLOAT32, OPD_INT64, OPD_COMPLEX128};
    const int64_t sizes[][5] = {{6, 10, 4}, {3, 2, 10, 4}, {2, 1, 3, 10, 4}}, sides[] = {1, 4, 0, 2, 3, 1};
    for (int k = 0; k < 2 * 3 * 5; k++) {
        const int ndim = 1 + k / 2 % 3;
        opd_tensor *const numbers = opd_to_dtype(opd_randint(100, OPD_INTS(240), OPD_INT64), dtypes[k / 6]);
        opd_tensor *const wide = opd_view(numbers, opd_ints_of(sizes[ndim - 1], ndim + 2));
        opd_tensor *const x = k & 1 ? opd_transpose(wide, 0, -2) : wide;
        opd_tensor *want = x;
        for (int dim = 0; dim < ndim; dim++) {
            const int64_t size = opd_size(x, -1 - dim);
            opd_tensor *const at = opd_arange_start(OPD_V(-sides[2 * dim]), OPD_V(size + sides[2 * dim + 1]), OPD_INT64);
            want = opd_index_select(want, -1 - dim, opd_remainder_Scalar(at, OPD_V(size)));
        }
        CHECK(opd_equal(opd_pad(x, opd_ints_of(sides, 2 * ndim), "circular", opd_value_none()), want));
    }
}
TEST(circular_padding_without_sides) {
    ARE(opd__pad_circular(counted(3), opd_ints_of(NULL, 0)), 0, 1, 2);
    ARE(opd__pad_circular(opd_view(counted(4), OPD_INTS(2, 2)), opd_ints_of(NULL, 0)), 0, 1, 2, 3);
}
TEST(circular_padding_with_negative_sides) {
    opd_tensor *x = opd_view(counted(4), OPD_INTS(1, 1, 4));
    ARE(CALL("aten::pad", x, OPD_INTS(-1, 1), "circular"), 1, 2, 3, 1);
    ARE(CALL("aten::pad", x, OPD_INTS(1, -2), "circular"), 1, 0, 1);
    ARE(CALL("aten::pad", x, OPD_INTS(-1, 3), "circular"), 1, 2, 3, 1, 2, 3);
    ARE(CALL("aten::pad", x, OPD_INTS(2, -1), "circular"), 1, 2, 0, 1, 2);
    ARE(CALL("aten::pad", opd_view(counted(6), OPD_INTS(1, 1, 2, 3)), OPD_INTS(-1, 2, 1, -1), "circular"), 1, 2, 1, 2, 1, 2, 1, 2);
    CHECK(CALL("aten::pad", x, OPD_INTS(-1, 4), "circular") == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "wrapping around more than once");
    CHECK(CALL("aten::pad", x, OPD_INTS(-3, -2), "circular") == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "empty dimension");
}
TEST(grid_places_that_are_nowhere) {
    const float at[] = {NAN, 0, INFINITY, 0, 0, 0, 0, -INFINITY};
    opd_tensor *grid = opd_view(floats(at, 8), OPD_INTS(1, 1, 4, 2)), *x = opd_view(counted(4), OPD_INTS(1, 1, 2, 2));
    ARE(CALL("aten::grid_sampler_2d", x, grid, 0, 0, false), NAN, NAN, 1.5, NAN);
    ARE(CALL("aten::grid_sampler_2d", x, grid, 0, 1, false), 1, 2, 1.5, 0.5);
    ARE(CALL("aten::grid_sampler_2d", x, grid, 0, 2, true), 1, 1, 1.5, 0.5);
    ARE(CALL("aten::grid_sampler_2d", x, grid, 1, 0, false), 0, 0, 0, 0);
    ARE(CALL("aten::grid_sampler_2d", x, grid, 2, 0, false), NAN, NAN, 2.115234375, NAN);
    ARE(CALL("aten::grid_sampler_2d", x, grid, 2, 1, true), NAN, NAN, 1.5, NAN);
}
TEST(norms_at_zero_in_forward_mode) {
    static const double orders[] = {0.5, 1, 1.5, 2, 3, 3.5, INFINITY};
    size_t i;
    for (i = 0; i < sizeof orders / sizeof *orders; i++) {
        OPD_SCOPE { OPD_DUAL_LEVEL {
            opd_tensor *ones = opd_ones(OPD_INTS(3), OPD_FLOAT32), *tangent = NULL;
            const float two[] = {0, 2, 0};
            (void)opd_dual_unpack(CALL("aten::linalg_vector_norm", opd_dual_new(opd_zeros_like(ones), ones), orders[i]), &tangent);
            ARE(tangent, 0);
            (void)opd_dual_unpack(CALL("aten::linalg_vector_norm", opd_dual_new(floats(two, 3), ones), orders[i]), &tangent);
            ARE(tangent, 1);
        } }
    }
}
TEST(norms_are_not_narrowed) {
    opd_tensor *ones = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    CHECK(CALL("aten::linalg_vector_norm", ones, 2, OPD_NONE, false, OPD_FLOAT16) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "linalg.vector_norm: the dtype of the input (float32) should be convertible without "
                "narrowing to the specified dtype (float16)");
    CHECK(CALL("aten::norm.ScalarOpt_dtype", opd_to_dtype(ones, OPD_COMPLEX64), 2, OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "dtype should be complex for complex inputs, but got float32");
    CHECK(CALL("aten::linalg_vector_norm", ones, 2, OPD_NONE, false, OPD_COMPLEX64) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "dtype should be real for real inputs, but got complex64");
    CHECK(CALL("aten::linalg_vector_norm", ones, 2, OPD_NONE, false, OPD_INT64) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "dtype should be floating point or complex");
    CHECK(opd_dtype(CALL("aten::linalg_vector_norm", ones, 2, OPD_NONE, false, OPD_FLOAT64)) == OPD_FLOAT64);
}
/* The gradient, and that of the sum of it, at x. */
static void both_gradients(opd_tensor *x, opd_tensor *y, opd_tensor **first, opd_tensor **second) {
    opd_backward_options again;
    opd_tensor *sum = opd_sum(y);
    memset(&again, 0, sizeof again);
    again.create_graph = true;
    *first = *second = NULL;
    if (opd_autograd_grad(&sum, 1, &x, 1, &again, first)) { return; }
    sum = opd_sum(*first);
    (void)opd_autograd_grad(&sum, 1, &x, 1, NULL, second);
}
TEST(softplus_far_below_zero) {
    const float at[] = {-50, -1, 0, 5};
    opd_tensor *x = floats(at, 4), *first, *second;
    (void)opd_tensor_set_requires_grad(x, true);
    both_gradients(x, CALL("aten::softplus", x, 3.0), &first, &second);
    ARE(first, 0, 0.0474259, 0.5, 1);
    ARE(second, 0, 0.13553, 0.75, 1.0729e-06);
}
TEST(xlogy_of_nothing_by_zero) {
    opd_tensor *x = opd_zeros(OPD_INTS(0), OPD_FLOAT32), *y = opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT32), *first, *second;
    (void)opd_tensor_set_requires_grad(x, true);
    (void)opd_tensor_set_requires_grad(y, true);
    both_gradients(y, opd_xlogy(x, y), &first, &second);
    ARE(first, 0);
    ARE(second, 0);
    {
        opd_tensor *in[2], *g[2], *sum = opd_sum(opd_xlogy(x, y));
        opd_backward_options again;
        memset(&again, 0, sizeof again);
        again.create_graph = true;
        in[0] = x; in[1] = y;
        CHECK_INT(opd_autograd_grad(&sum, 1, in, 2, &again, g), 0);
        sum = opd_add(opd_sum(g[0]), opd_sum(g[1]));
        CHECK_INT(opd_autograd_grad(&sum, 1, in, 2, NULL, g), 0);
        ARE(g[1], 0);
    }
}
TEST(calls_at_a_key_that_lack_what_its_kernel_reads) {
    opd_tensor *none[1];
    opd_value v, r;
    none[0] = NULL;
    v = opd_value_tensors(none, 1);
    CHECK_INT(opd_call_at(opd_find("aten::column_stack"), "CPU", &r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an element is NULL");
    v = opd_value_tensor(opd_tensor_new_on(OPD_INTS(3), OPD_FLOAT32, opd_device_make(OPD_META, -1)));
    CHECK_INT(opd_call_at(opd_find("aten::ceil"), "CPU", &r, &v, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a call at CPU with a tensor of the meta device");
    CHECK_INT(opd_call_at(opd_find("aten::ceil"), "Meta", &r, &v, 1), 0);
}
TEST(indices_of_triangles) {
    int64_t rows, cols, offset, i, k;
    int lower;
    for (lower = 0; lower < 2; lower++) {
        for (rows = 0; rows < 5; rows++) {
            for (cols = 0; cols < 5; cols++) {
                for (offset = -6; offset < 7; offset++) {
                    opd_tensor *t = lower ? CALL("aten::tril_indices", rows, cols, offset) : CALL("aten::triu_indices", rows, cols, offset);
                    int64_t n = 0;
                    CHECK_OR_RETURN(t != NULL);
                    for (i = 0; i < rows; i++) {
                        for (k = 0; k < cols; k++) {
                            if (lower ? k - i > offset : k - i < offset) { continue; }
                            CHECK_OR_RETURN(n < opd_size(t, 1) && opd_data_i64(t)[n] == i && opd_data_i64(t)[opd_size(t, 1) + n] == k);
                            n++;
                        }
                    }
                    CHECK_INT(opd_size(t, 1), n);
                }
            }
        }
    }
    CHECK(CALL("aten::tril_indices", 2147483647, 2147483647, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "do not fit into memory");
}
/* The gradients of the sum of an operator's result by its first n arguments, one after the other. */
static void slopes(const char *name, opd_value *args, int n, const double *want) {
    opd_op *op = opd_find(name);
    opd_tensor *in[3], *grads[3], *y;
    opd_value r;
    int i;
    for (i = 0; i < n; i++) {
        in[i] = opd_tensor_set_requires_grad(opd_clone(args[i].u.t), true);
        args[i] = opd_value_tensor(in[i]);
    }
    CHECK_OR_RETURN(opd_call_all(op, &r, args, opd_schema_nargs(opd_op_schema(op))) == 0);
    y = opd_sum(r.u.t);
    CHECK_OR_RETURN(y && opd_autograd_grad(&y, 1, in, n, NULL, grads) == 0);
    for (i = 0; i < n; i++) { are(grads[i], want + 8 * i, 8); }
}
static const float tie_x[] = {0, 0, 1, -1, 0, 2, -2, 0.5f}, tie_low[] = {0, 1, 0, 0, -1, 0, 0, 0}, tie_high[] = {0, 2, 1, 1, 0, 1, 1, 1};
TEST(gradients_at_the_bounds) {
    static const double both[] = {0, 0, 0, 0, 0, 0, 0, 1}, least[] = {0, 0, 1, 0, 0, 1, 0, 1}, most[] = {0, 0, 0, 1, 0, 0, 1, 0};
    opd_value args[3];
    args[0] = opd_value_tensor(floats(tie_x, 8)); args[1] = opd_value_int(0); args[2] = opd_value_int(1);
    slopes("aten::clamp", args, 1, both);
    slopes("aten::clamp_min", args, 1, least);
    slopes("aten::clamp_max", args, 1, most);
}
TEST(gradients_at_ties) {
    static const double tensors[] = {1, 0, .5, 0, .5, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, .5, 0, .5, 1, 0, 0};
    static const double swapped[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
    static const double larger[] = {.5, 0, 1, 0, 1, 1, 0, 1, .5, 1, 0, 1, 0, 0, 1, 0}, next[] = {0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    static const double smaller[] = {.5, 1, 0, 1, 0, 0, 1, 0, .5, 0, 1, 0, 1, 1, 0, 1};
    static const char *const large[] = {"aten::maximum", "aten::fmax", "aten::clamp_min.Tensor"};
    static const char *const small[] = {"aten::minimum", "aten::fmin", "aten::clamp_max.Tensor"};
    opd_value args[3], flip[3];
    int i;
    args[0] = opd_value_tensor(floats(tie_x, 8)); args[1] = opd_value_tensor(floats(tie_low, 8)); args[2] = opd_value_tensor(floats(tie_high, 8));
    flip[0] = args[0]; flip[1] = args[2]; flip[2] = args[1];
    slopes("aten::clamp.Tensor", args, 3, tensors);
    slopes("aten::clamp.Tensor", flip, 3, swapped);
    for (i = 0; i < 3; i++) { slopes(large[i], args, 2, larger); slopes(small[i], args, 2, smaller); }
    slopes("aten::nextafter", args, 2, next);
}
TEST(gradients_between_equal_bounds) {
    const float x[] = {-1, 0, 1, 5, -1, 0, 1, 5}, low[] = {0, 0, 0, 1, 0, 0, 0, 1}, high[] = {0, 0, 0, 0, 0, 0, 0, 0};
    static const double want[] = {0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1};
    opd_value args[3];
    args[0] = opd_value_tensor(floats(x, 8)); args[1] = opd_value_tensor(floats(low, 8)); args[2] = opd_value_tensor(floats(high, 8));
    slopes("aten::clamp.Tensor", args, 3, want);
}
TEST(gradient_where_fmax_has_nan) {
    const float x[] = {0, NAN, 0, NAN, 1, 1, 1, 1}, y[] = {NAN, 0, 1, NAN, 0, 0, 0, 0};
    static const double want[] = {1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0};
    opd_value args[2];
    args[0] = opd_value_tensor(floats(x, 8)); args[1] = opd_value_tensor(floats(y, 8));
    slopes("aten::fmax", args, 2, want);
}
TEST(second_derivative_of_binary_cross_entropy) {
    const float x[] = {1, 0, 0.5f};
    opd_tensor *p = opd_tensor_set_requires_grad(floats(x, 3), true), *g, *y;
    y = opd_sum(CALL("aten::binary_cross_entropy_backward", opd_ones(OPD_INTS(), OPD_FLOAT32), p, floats(x, 3), OPD_NONE, 0));
    CHECK_OR_RETURN(y && opd_autograd_grad(&y, 1, &p, 1, NULL, &g) == 0);
    ARE(g, 0, 0, 4);
}
TEST(bounds_of_nan) {
    opd_tensor *t = CALL("aten::hardtanh", counted(3), 0, opd_value_double(NAN));
    CHECK_INT(opd_item_i64(opd_sum(opd_isnan(t))), 3);
}
TEST(copies_of_views_are_in_rows) {
    opd_tensor *x = opd_view(counted(6), OPD_INTS(2, 3)), *y = opd_t(x), *list[4];
    int i, n = 0;
    list[n++] = CALL("aten::transpose_copy.int", x, 0, 1);
    list[n++] = CALL("aten::t_copy", x);
    list[n++] = CALL("aten::permute_copy", x, OPD_INTS(1, 0));
    list[n++] = CALL("aten::unsqueeze_copy", y, 0);
    CHECK_OK();
    for (i = 0; i < n; i++) {
        CHECK_OR_RETURN(list[i] != NULL);
        CHECK(opd_is_contiguous(list[i]));
        ARE(list[i], 0, 3, 1, 4, 2, 5);
    }
}
TEST(numbers_that_do_not_fit) {
    static const char *const text = "without overflow";
    const uint8_t bytes[] = {1, 2};
    const int64_t zero = 0;
    opd_tensor *t = opd_tensor_from(bytes, OPD_INTS(2), OPD_UINT8), *at = opd_tensor_from(&zero, OPD_INTS(1), OPD_INT64);
    opd_tensor *b = opd_gt_Scalar(t, opd_value_int(1));
    CHECK(CALL("aten::where.ScalarOther", b, t, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::where.ScalarSelf", b, 300, t) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::index_fill.int_Scalar", t, 0, at, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::scatter.value", t, 0, at, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::constant_pad_nd", t, OPD_INTS(1, 1), 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::masked_fill.Scalar", opd_to_dtype(t, OPD_FLOAT16), b, 65536) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::full", OPD_INTS(2), 1e300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::full", OPD_INTS(2), opd_value_double(INFINITY)) != NULL);
    CHECK_OK();
}
TEST(dtypes_that_do_not_meet) {
    opd_tensor *x = counted(3), *d = opd_to_dtype(x, OPD_FLOAT64), *i = opd_to_dtype(x, OPD_INT64), *m = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32);
    CHECK(CALL("aten::addmv", d, m, x) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "addmv input tensors must have the same dtype, but got float64, float32, and float32");
    CHECK(CALL("aten::addr", m, x, x, opd_value_bool(true)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Boolean beta only supported for Boolean results.");
    CHECK(CALL("aten::cumsum_", x, 0, OPD_UINT8) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Bad in-place call: input tensor dtype float32 and output tensor dtype uint8");
    CHECK(CALL("aten::cumsum_", i, 0) == i);
    CHECK(CALL("aten::frobenius_norm.dim", opd_to_dtype(m, OPD_INT64), OPD_INTS(0, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "input dtype should be either floating point or complex. Got int64");
    CHECK(CALL("aten::glu_backward", opd_to_dtype(opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_INT32), opd_ones(OPD_INTS(2), OPD_FLOAT32), 0) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Found dtype int32 but expected float32");
    CHECK(CALL("aten::glu_backward", opd_ones(OPD_INTS(3, 1), OPD_FLOAT32), opd_ones(OPD_INTS(2), OPD_FLOAT32), 0) == NULL);
    opd_error_clear();
    CHECK(opd_equal(x, d));                      /* these meet in double */
    CHECK(!opd_equal(opd_full(OPD_INTS(1), opd_value_double(0.1), OPD_FLOAT32), opd_full(OPD_INTS(1), opd_value_double(0.1), OPD_FLOAT64)));
    CHECK_INT(opd_item_i64(CALL("aten::searchsorted.Tensor", i, opd_full(OPD_INTS(1), opd_value_double(0.5), OPD_FLOAT32))), 1);
    CHECK_INT(opd_item_i64(CALL("aten::bucketize.Tensor", opd_full(OPD_INTS(1), opd_value_double(0.5), OPD_FLOAT32), i)), 1);
    CHECK_OK();
}
TEST(statistics_that_are_no_numbers_with_fractions) {
    opd_tensor *x = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32), *n = opd_zeros(OPD_INTS(3), OPD_INT64);
    CHECK(CALL("aten::native_batch_norm", x, OPD_NONE, OPD_NONE, n, n, true, 0.1, 1e-5) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "expected scalar type float32 but found int64");
}
TEST(what_a_reduction_can_be) {
    opd_tensor *x = counted(3);
    CHECK(CALL("aten::mse_loss", x, x, 7) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "reduction must be 0 (none), 1 (mean) or 2 (sum), got 7");
    CHECK(CALL("aten::l1_loss", x, x, -2) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "reduction must be");
    CHECK(CALL("aten::cross_entropy_loss", opd_view(x, OPD_INTS(1, 3)), opd_view(x, OPD_INTS(1, 3)), OPD_NONE, 3) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "reduction must be");
}
TEST(sizes_that_are_given_wrong) {
    opd_tensor *x = opd_ones(OPD_INTS(1, 2, 4, 4), OPD_FLOAT32);
    CHECK(CALL("aten::adaptive_avg_pool2d", x, OPD_INTS(2, 2, 2)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "adaptive_avg_pool2d: output_size must be 2");
    CHECK(CALL("aten::adaptive_avg_pool3d", x, OPD_INTS(1, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "adaptive_avg_pool3d: output_size must be 3");
}
TEST(indices_there_are_none_of) {
    opd_value args[2], r;
    opd_tensor *none[1] = {NULL}, *truth = opd_gt_Scalar(opd_sum(counted(3)), opd_value_int(0));
    args[0] = opd_value_tensor(counted(3)); args[1] = opd_value_tensors(none, 0);
    CHECK_INT(opd_call_all(opd_find("aten::index.Tensor"), &r, args, 2), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "at least one index must be provided");
    args[0] = opd_value_tensor(truth);
    CHECK_OR_RETURN(opd_call_all(opd_find("aten::where"), &r, args, 1) == 0);
    CHECK_INT(r.n, 1);                            /* where it is, of a tensor of one dim */
    CHECK_INT(opd_item_i64(r.u.tensors[0]), 0);
}
TEST(ranges_of_fractions_in_int64) {
    opd_tensor *t = opd_arange_full(opd_value_double(3.1), opd_value_int(OPD_INT64), OPD_NONE, OPD_NONE, OPD_NONE);
    CHECK_OR_RETURN(t != NULL);
    CHECK_INT(opd_numel(t), 4);
    t = CALL("aten::arange.start_step", opd_value_int(5), opd_value_int(0), opd_value_double(-1.5), OPD_INT64);
    CHECK_OR_RETURN(t && opd_numel(t) == 4);
    CHECK_INT(opd_data_i64(t)[3], 2);
}
TEST(extremes_of_a_number) {
    opd_value args[3], r[2];
    args[0] = opd_value_tensor(opd_sum(counted(3))); args[1] = opd_value_int(0); args[2] = opd_value_bool(true);
    CHECK_OR_RETURN(opd_call_all(opd_find("aten::aminmax"), r, args, 3) == 0);
    CHECK_INT(opd_ndim(r[0].u.t), 0);
}
TEST(upsampling_by_nothing_and_by_two) {
    opd_tensor *x = opd_view(counted(4), OPD_INTS(1, 1, 1, 4));
    ARE(CALL("aten::upsample_nearest2d", x, OPD_INTS(1, 4), OPD_NONE, 0.5), 0, 1, 2, 3);
    ARE(CALL("aten::upsample_nearest2d", x, OPD_INTS(1, 8), OPD_NONE, 0.5), 0, 0, 1, 1, 2, 2, 3, 3);
    ARE(CALL("aten::upsample_bilinear2d", x, OPD_INTS(2, 4), false, OPD_NONE, 0.5), 0, 1, 2, 3, 0, 1, 2, 3);
}
TEST(upsampling_in_other_ways) {
    opd_tensor *line = opd_view(counted(4), OPD_INTS(1, 1, 4)), *plane = opd_expand(opd_view(line, OPD_INTS(1, 1, 1, 4)),
                                                                                 OPD_INTS(1, 1, 2, 4));
    ARE(CALL("aten::_upsample_nearest_exact1d", line, OPD_INTS(3)), 0, 2, 3);
    ARE(CALL("aten::upsample_nearest1d", line, OPD_INTS(3)), 0, 1, 2);
    ARE(CALL("aten::upsample_nearest1d", line, OPD_INTS(4), 0.5), 0, 2, 3, 3);
    ARE(CALL("aten::upsample_linear1d", line, OPD_INTS(8), false), 0, .25, .75, 1.25, 1.75, 2.25, 2.75, 3);
    ARE(CALL("aten::_upsample_nearest_exact2d", plane, OPD_INTS(2, 3)), 0, 2, 3, 0, 2, 3);
    ARE(CALL("aten::upsample_bicubic2d", plane, OPD_INTS(2, 2), false), .40625, 2.59375, .40625, 2.59375);
    ARE(opd_mul_Scalar(CALL("aten::_upsample_bilinear2d_aa", plane, OPD_INTS(1, 2), false), opd_value_int(7)), 5, 16);
    plane = opd_unsqueeze(plane, 2);
    ARE(CALL("aten::upsample_trilinear3d", plane, OPD_INTS(1, 1, 3), true), 0, 1.5, 3);
    ARE(CALL("aten::upsample_nearest3d", plane, OPD_INTS(1, 1, 3)), 0, 1, 2);
    ARE(CALL("aten::_upsample_nearest_exact3d", plane, OPD_INTS(1, 1, 3)), 0, 2, 3);
}
/* Packed examples of one and of two steps give the same final states as each example separately. */
TEST(packed_sequences) {
    const int64_t numbers[] = {2, 1}, wrong[] = {1, 2};
    const float data[] = {1, 2, 3}, weight[] = {.5f};
    opd_tensor *sizes = opd_tensor_from(numbers, OPD_INTS(2), OPD_INT64), *w[2], *packed[2], *first[2],
        *x = opd_tensor_from(data, OPD_INTS(3, 1), OPD_FLOAT32), *h = opd_zeros(OPD_INTS(1, 2, 1), OPD_FLOAT32);
    w[0] = w[1] = opd_tensor_from(weight, OPD_INTS(1, 1), OPD_FLOAT32);
    CHECK_OR_RETURN(opd_rnn_relu_data(packed, x, sizes, h, opd_tensors_of(w, 2), false, 1, 0, false, false) == 0);
    ARE(packed[0], .5, 1, 1.75);
    ARE(packed[1], 1.75, 1);
    w[0] = opd_tensor_from(wrong, OPD_INTS(2), OPD_INT64);
    CHECK(opd_rnn_relu_data(first, x, w[0], h, opd_tensors_of(w, 2), false, 1, 0, false, false) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "must not increase");
    CHECK(opd_rnn_relu_data(first, opd_zeros(OPD_INTS(4, 1), OPD_FLOAT32), sizes, h, opd_tensors_of(w + 1, 1), false, 1,
                            0, false, false) != 0);
    CHECK_ERROR(OPD_ERROR_SHAPE, "rows, the sum of batch_sizes");
    w[0] = w[1] = opd_ones(OPD_INTS(3, 1), OPD_FLOAT32);
    CHECK(opd_rnn_relu_data(first, x, sizes, h, opd_tensors_of(w, 2), false, 1, 0, false, false) != 0);
    CHECK_ERROR(OPD_ERROR_SHAPE, "rows, but they have 3");
    CHECK(CALL("aten::rnn_tanh_cell", x, x, w[0], w[1]) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "rows, but they have 3");
}
/* Fake quantization: numbers are quantized and converted back.  The gradient passes through unchanged within the
   range. */
TEST(fake_quantisation) {
    const float data[] = {-2, -.26f, .04f, .26f, 0, 3}, scales[] = {.5f, .25f}, rows[] = {.5f, -1, .25f, 2, .1f, -.3f};
    const int32_t zeros[] = {0, 1};
    opd_tensor *x = floats(data, 6), *scale = floats(scales, 2), *zero = opd_tensor_from(zeros, OPD_INTS(2), OPD_INT32);
    opd_data_f32(x)[4] = NAN;
    (void)opd_tensor_set_requires_grad(x, true);
    opd_tensor *y = opd_fake_quantize_per_tensor_affine(x, .1, 3, -8, 7);
    ARE(y, -1.1, -.3, 0, .3, -1.1, .4);
    CHECK_OR_RETURN(opd_backward(opd_sum(y)) == 0);
    ARE(opd_tensor_grad(x), 0, 1, 1, 1, 0, 0);
    opd_tensor *m = opd_tensor_from(rows, OPD_INTS(2, 3), OPD_FLOAT32);
    (void)opd_tensor_set_requires_grad(m, true);
    y = opd_fake_quantize_per_channel_affine(m, scale, zero, 0, -2, 3);
    ARE(y, .5, -1, 0, .5, 0, -.25);
    CHECK_OR_RETURN(opd_backward(opd_sum(y)) == 0);
    ARE(opd_tensor_grad(m), 1, 1, 1, 0, 1, 1);
    scale = opd_mul_Scalar(opd_narrow(scale, 0, 0, 1), opd_value_double(.4));
    ARE(CALL("aten::fake_quantize_per_tensor_affine.tensor_qparams", m, scale, opd_narrow(zero, 0, 1, 1), 0, 15),
        .4, -.2, .2, 2, 0, -.2);
    CHECK(opd_fake_quantize_per_tensor_affine(x, .1, 8, -8, 7) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "`zero_point` must be between");
    CHECK(opd_fake_quantize_per_channel_affine(m, opd_narrow(scale, 0, 0, 1), zero, 0, -2, 3) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "same dimensions");
}
TEST(pools_and_grids_of_other_kinds) {
    const float theta[] = {1, 0, .5f, 0, 2, 0}, values[] = {5, 7}, place[] = {0, .5f, -.25f}, samples[] = {.9f, .1f};
    const int64_t at[] = {3, 1}, far_off[] = {4, 1};
    opd_tensor *list[2], *index = opd_tensor_from(at, OPD_INTS(1, 1, 2), OPD_INT64), *rets[2],
        *x = opd_tensor_from(values, OPD_INTS(1, 1, 2), OPD_FLOAT32);
    ARE(opd_affine_grid_generator(opd_tensor_from(theta, OPD_INTS(1, 2, 3), OPD_FLOAT32), OPD_INTS(1, 1, 2, 2), false),
        0, -1, 1, -1, 0, 1, 1, 1);
    ARE(opd_max_unpool2d(x, index, OPD_INTS(2, 2)), 0, 7, 0, 5);
    CHECK(opd_max_unpool2d(x, opd_tensor_from(far_off, OPD_INTS(1, 1, 2), OPD_INT64), OPD_INTS(2, 2)) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds");
    ARE(opd_grid_sampler(opd_view(counted(8), OPD_INTS(1, 1, 2, 2, 2)),
                         opd_tensor_from(place, OPD_INTS(1, 1, 1, 1, 3), OPD_FLOAT32), 0, 0, true), 3.5);
    ARE(opd_channel_shuffle(opd_view(counted(4), OPD_INTS(1, 4, 1)), 2), 0, 2, 1, 3);
    CHECK_OR_RETURN(opd_fractional_max_pool2d(rets, opd_view(counted(16), OPD_INTS(1, 4, 4)), OPD_INTS(2, 2),
        OPD_INTS(2, 2), opd_tensor_from(samples, OPD_INTS(1, 1, 2), OPD_FLOAT32)) == 0);
    ARE(rets[0], 5, 7, 13, 15);
    ARE(opd_to_dtype(rets[1], OPD_FLOAT32), 5, 7, 13, 15);
    list[0] = floats(values, 2);
    list[1] = opd_ones(OPD_INTS(0), OPD_FLOAT32);
    ARE(opd_block_diag(opd_tensors_of(list, 2)), 5, 7, 0, 0);
}
TEST(losses_of_margins_and_products_of_three) {
    const float first[] = {.1f, .5f, .9f}, second[] = {.1f, .2f, .4f, .8f};
    const int64_t one = 1, labels[] = {3, 0, -1, 1};
    opd_tensor *x = floats(first, 3), *y = floats(second, 4), *rets[2];
    ARE(opd_multi_margin_loss(x, opd_tensor_from(&one, OPD_INTS(1), OPD_INT64)), 2 / 3.);
    ARE(opd_multilabel_margin_loss(y, opd_tensor_from(labels, OPD_INTS(4), OPD_INT64)), .85);
    ARE(opd_bilinear_full(counted(2), opd_ones(OPD_INTS(2), OPD_FLOAT32), opd_view(counted(4), OPD_INTS(1, 2, 2)), NULL),
        5);
    ARE(CALL("aten::rrelu", opd_neg(x), .2, .4), -.03, -.15, -.27);
    CHECK_OR_RETURN(opd_rrelu_with_noise_functional_full(rets, opd_neg(x), x, opd_value_double(.5), opd_value_double(.5), true,
                                                         NULL) == 0);
    ARE(rets[0], -.05, -.25, -.45);
    ARE(rets[1], .5, .5, .5);
}
TEST(batches_and_powers) {
    opd_tensor *b = opd_ones(OPD_INTS(1, 2, 2), OPD_FLOAT32);
    CHECK(CALL("aten::baddbmm", opd_ones(OPD_INTS(2), OPD_INT64), b, b) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Input dtypes must be the same, got: input int64, batch1: float32, batch2: float32");
    CHECK_INT(opd_item_i64(CALL("aten::logspace", opd_value_double(1.53), 2, 1, 10.0, OPD_INT64)), 33);
    ARE(CALL("aten::huber_loss_backward", opd_ones(OPD_INTS(), OPD_FLOAT32), counted(2), opd_zeros(OPD_INTS(2), OPD_FLOAT32), 2, 0.0), 0, 0);
}
TEST(indices_of_int32) {
    const int32_t at[] = {2, 0};
    opd_tensor *list[1];
    opd_value args[4], r;
    list[0] = opd_tensor_from(at, OPD_INTS(2), OPD_INT32);
    args[0] = opd_value_tensor(counted(3)); args[1] = opd_value_tensors(list, 1);
    CHECK_OR_RETURN(opd_call_all(opd_find("aten::index.Tensor"), &r, args, 2) == 0);
    ARE(r.u.t, 2, 0);
    args[2] = opd_value_tensor(opd_full(OPD_INTS(2), opd_value_double(7), OPD_FLOAT32)); args[3] = opd_value_bool(false);
    CHECK_OR_RETURN(opd_call_all(opd_find("aten::index_put"), &r, args, 4) == 0);
    ARE(r.u.t, 7, 1, 7);
}
TEST(mirrored_integers) {
    opd_tensor *x = opd_view(opd_to_dtype(counted(3), OPD_INT64), OPD_INTS(1, 3)), *b = opd_gt_Scalar(x, opd_value_int(0));
    ARE(opd_to_dtype(CALL("aten::reflection_pad1d", x, OPD_INTS(1, 2)), OPD_FLOAT32), 1, 0, 1, 2, 1, 0);
    ARE(opd_to_dtype(CALL("aten::replication_pad1d", x, OPD_INTS(1, 1)), OPD_FLOAT32), 0, 0, 1, 2, 2);
    CHECK(CALL("aten::reflection_pad1d", b, OPD_INTS(1, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"reflection_pad1d\" not implemented for 'bool'");
}
TEST(numbers_beyond_their_tensors) {
    static const char *const text = "without overflow";
    const uint8_t bytes[] = {1, 200};
    opd_tensor *t = opd_tensor_from(bytes, OPD_INTS(2), OPD_UINT8), *x = counted(2), *m = opd_ones(OPD_INTS(2, 2), OPD_FLOAT32);
    static const char *const one[] = {"aten::leaky_relu", "aten::hardshrink", "aten::celu", "aten::softplus", "aten::clamp_min", "aten::elu"};
    size_t i;
    for (i = 0; i < sizeof one / sizeof *one; i++) {
        opd_value args[2], r;
        args[0] = opd_value_tensor(x); args[1] = opd_value_double(1e300);
        CHECK_INT(opd_call_all(opd_find(one[i]), &r, args, 2), -1);
        CHECK_ERROR(OPD_ERROR_DTYPE, text);
        args[0] = opd_value_tensor(opd_to_dtype(x, OPD_FLOAT64));
        CHECK_INT(opd_call_all(opd_find(one[i]), &r, args, 2), 0);
        CHECK_OK();
    }
    CHECK(CALL("aten::add.Tensor", t, t, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::add.Tensor", x, x, 1e300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::addcmul", t, t, t, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::addmm", m, m, m, 1e300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::lerp.Scalar", x, x, 1e300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::pow.Tensor_Scalar", t, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::linspace", opd_value_int(0), opd_value_int(300), 4, OPD_UINT8) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::uniform_", x, 0.0, 1e300) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::softshrink", x, opd_value_double(NAN)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "lambda must be in range [0, 3.40282e+38] for input dtype float32, but found nan");
    CHECK(CALL("aten::clamp", t, 300) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Clamp min value 300 is outside the representable range of uint8");
    CHECK(CALL("aten::clamp_max", t, -3) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Clamp max value -3 is outside the representable range of uint8");
    ARE(opd_to_dtype(CALL("aten::clamp", t, -5, 300), OPD_FLOAT32), 1, 200);
    ARE(CALL("aten::clamp_max", x, opd_value_double(INFINITY)), 0, 1);
    ARE(CALL("aten::pdist", opd_view(counted(4), OPD_INTS(2, 2)), 1e300), 2);
    ARE(CALL("aten::cdist", m, opd_view(counted(4), OPD_INTS(2, 2)), 1e300), 1, 2, 1, 2);
}
TEST(hardswish_at_its_kinks) {
    const float at[] = {-4, -3, 0, 3, 4};
    ARE(CALL("aten::hardswish_backward", opd_ones(OPD_INTS(5), OPD_FLOAT32), floats(at, 5)), 0, 0, 0.5, 1, 1);
}
TEST(losses_of_two_dtypes) {
    opd_tensor *x = counted(3), *h = opd_to_dtype(x, OPD_BFLOAT16), *i = opd_to_dtype(x, OPD_INT64), *b = opd_gt_Scalar(x, opd_value_int(0));
    opd_tensor *half = opd_full(OPD_INTS(3), opd_value_double(0.5), OPD_FLOAT32), *first, *second;
    static const char *const text = "result type float32 can't be cast to the desired output type int64";
    ARE(CALL("aten::mse_loss", x, b, 0), 0, 0, 1);
    ARE(CALL("aten::smooth_l1_loss", x, b, 0), 0, 0, 0.5);
    ARE(CALL("aten::huber_loss", x, b, 0, 2.0), 0, 0, 0.5);
    CHECK_INT(opd_dtype(CALL("aten::huber_loss", h, x, 0)), OPD_BFLOAT16);
    CHECK_INT(opd_dtype(CALL("aten::soft_margin_loss", x, opd_to_dtype(x, OPD_FLOAT64), 0)), OPD_FLOAT32);
    CHECK(CALL("aten::huber_loss", i, x) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::soft_margin_loss", i, i) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::mse_loss_backward", x, i, x, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::smooth_l1_loss_backward", x, i, x, 0, 1.0) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, text);
    CHECK(CALL("aten::kl_div", x, i) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "kl_div: Integral inputs not supported.");
    ARE(CALL("aten::binary_cross_entropy", half, half, i, 0), 0, 0.693147, 1.386294);
    (void)opd_tensor_set_requires_grad(x, true);     /* the target's gradient is of the target's dtype */
    both_gradients(x, CALL("aten::mse_loss", i, x, 2), &first, &second);
    ARE(first, 0, 0, 0);
    ARE(second, 2, 2, 2);
    both_gradients(x, CALL("aten::huber_loss", h, x, 2, 1.0), &first, &second);
    ARE(first, 0, 0, 0);
}
TEST(arguments_of_losses) {
    opd_tensor *x = opd_view(counted(6), OPD_INTS(2, 3)), *y = opd_zeros(OPD_INTS(2), OPD_INT64);
    CHECK(CALL("aten::cross_entropy_loss", x, y, OPD_NONE, -1, -100, 0.1) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "reduction must be");
    CHECK(CALL("aten::cosine_similarity", x, x, 1, -1.0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "eps must be non-negative, got: -1");
    CHECK(CALL("aten::huber_loss", x, x, 1, NAN) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "huber_loss does not support non-positive values for delta.");
    CHECK(CALL("aten::smooth_l1_loss", x, x, 1, NAN) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "smooth_l1_loss does not support negative values for beta.");
    CHECK(CALL("aten::histc", x, 5, -1, NAN) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "histc: range of [-1, nan] is not finite");
    CHECK(CALL("aten::to.dtype_layout", x, OPD_FLOAT64, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "only strided tensors are supported");
    CHECK(CALL("aten::reflection_pad1d_backward", opd_ones(OPD_INTS(2, 5), OPD_FLOAT64), x, OPD_INTS(1, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "expected scalar type float64 but found float32");
}
TEST(targets_that_are_no_probabilities) {
    const float at[] = {0.5, 1.5};
    CHECK(CALL("aten::binary_cross_entropy", opd_full(OPD_INTS(2), opd_value_double(0.5), OPD_FLOAT32), floats(at, 2)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "all elements of target should be between 0 and 1");
}
TEST(deviations_whose_squares_are_no_floats) {
    const float large[] = {-1e30f, 1e30f}, small[] = {-1e-30f, 1e-30f};
    CHECK_NEAR(opd_item_f64(CALL("aten::std.correction", floats(large, 2), OPD_NONE, 0)) / 1e30, 1, 1e-6);
    CHECK_NEAR(opd_item_f64(CALL("aten::std.correction", floats(small, 2), OPD_NONE, 0)) / 1e-30, 1, 1e-6);
    CHECK_OK();
}
TEST(elements_at_indices_of_int32) {
    const int32_t at[] = {2, 0};
    const float put[] = {5, 7};
    opd_tensor *x = counted(3), *i = opd_tensor_from(at, OPD_INTS(2), OPD_INT32), *y = floats(put, 2);
    ARE(opd_gather(x, 0, i), 2, 0);
    ARE(CALL("aten::scatter.src", x, 0, i, y), 7, 1, 5);
    ARE(CALL("aten::scatter.value", x, 0, i, 4), 4, 1, 4);
    ARE(CALL("aten::scatter_add", x, 0, i, y), 7, 1, 7);
    ARE(CALL("aten::scatter_reduce.two", x, 0, i, y, "prod"), 0, 1, 10);
    (void)opd_tensor_set_requires_grad(x, true);
    CHECK_INT(opd_backward(opd_sum(opd_gather(x, 0, i))), 0);
    ARE(opd_tensor_grad(x), 1, 0, 1);
    CHECK(opd_gather(x, 0, opd_to_dtype(i, OPD_INT16)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "gather(): Expected dtype int32/int64 for index");
}
TEST(steps_by_nan) {
    opd_tensor *x = opd_ones(OPD_INTS(9), OPD_FLOAT32), *g = opd_ones(OPD_INTS(9), OPD_FLOAT32), *b = opd_ones(OPD_INTS(9), OPD_FLOAT32);
    const opd_tensors xs = opd_tensors_of(&x, 1), gs = opd_tensors_of(&g, 1), bs = opd_tensors_of(&b, 1);
    const double nowhere = NAN;
    (void)CALL("aten::_fused_sgd_", xs, gs, bs, nowhere, 0.9, 0.1, 0.0, false, false, false);
    CHECK_OK();
    CHECK(isnan(opd_data_f32(x)[0]) && isnan(opd_data_f32(x)[8]));
}
TEST(indexed_sums_times_large_numbers) {              /* beyond 2^53 a double has no odd numbers */
    const int64_t at[] = {1, 1}, put[] = {1, 2}, large = ((int64_t)1 << 53) + 1;
    opd_tensor *x = opd_zeros(OPD_INTS(2), OPD_INT64), *i = opd_tensor_from(at, OPD_INTS(2), OPD_INT64);
    opd_tensor *y = opd_index_add_full(x, 0, i, opd_tensor_from(put, OPD_INTS(2), OPD_INT64), opd_value_int(large));
    CHECK(y && opd_data_i64(y)[1] == 3 * large);
    y = opd_index_add_full(x, 0, i, opd_tensor_from(put, OPD_INTS(2), OPD_INT64), opd_value_int(-large));
    CHECK(y && opd_data_i64(y)[1] == -3 * large);
}
TEST(second_derivatives_of_losses_beside_truth_values) {
    const float put[] = {0.5f, 3, -0.25f};
    const bool want[] = {true, false, false};
    opd_tensor *x = opd_tensor_set_requires_grad(floats(put, 3), true), *b = opd_tensor_from(want, OPD_INTS(3), OPD_BOOL);
    CHECK_INT(opd_backward(opd_sum(opd_smooth_l1_loss_backward(opd_ones(OPD_INTS(1), OPD_FLOAT32), x, b, 2, 1.0))), 0);
    ARE(opd_tensor_grad(x), 1, 0, 1);
    CHECK_INT(opd_backward(opd_sum(opd_huber_loss_backward(opd_ones(OPD_INTS(1), OPD_FLOAT32), x, b, 2, 1.0))), 0);
    ARE(opd_tensor_grad(x), 2, 0, 2);
}
/* einsum contracts operands in another order if this saves multiplications: the same result with fewer operations. */
TEST(einsum_finds_an_order) {
    enum { N = 120 };
    static const char *const equations[] = {"ab,bc,cd,d->a", "ab,bc,cd,d->", "zab,zbc,cd,d,a->z", "...ab,bc,cd,...d->...a"};
    const int64_t square[2] = {N, N}, many[3] = {2, N, N}, rows[2] = {2, N};
    for (int k = 0; k < 4; k++) {
        opd_tensor *m = opd_div_Scalar(opd_randn(opd_ints_of(square, 2), OPD_FLOAT64), opd_value_double(10));
        opd_tensor *b = opd_div_Scalar(opd_randn(opd_ints_of(many, 3), OPD_FLOAT64), opd_value_double(10));
        opd_tensor *v = opd_randn(opd_ints_of(square, 1), OPD_FLOAT64), *w = opd_randn(opd_ints_of(rows, 2), OPD_FLOAT64);
        opd_tensor *list[5] = {k > 1 ? b : m, k == 2 ? b : m, m, k == 3 ? w : v, v};
        const int n = k == 2 ? 5 : 4;
        int64_t path[8];
        for (int i = 0; i < n - 1; i++) { path[2 * i] = 0; path[2 * i + 1] = i ? n - 1 - i : 1; }   /* as they stand */
        opd_cost *cost = opd_cost_begin();
        (void)opd_einsum(equations[k], opd_tensors_of(list, n));
        opd_cost_end(cost);
        CHECK(opd_cost_total(cost).flops > 0 && opd_cost_total(cost).flops < 2e6);      /* one after the other: 6.9e6 and more */
        opd_cost_free(cost);
        opd_tensor *found = opd_einsum(equations[k], opd_tensors_of(list, n));
        opd_tensor *told = opd_einsum_full(equations[k], opd_tensors_of(list, n), opd_ints_of(path, 2 * (n - 1)));
        CHECK(found && told && opd_numel(found) == opd_numel(told));
        CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(found, told)))) <= 1e-9 * (1 + opd_item_f64(opd_max(opd_abs(told)))));
    }
}
/* nll_loss(x, [1]) of x [3], as of x [1, 3]; what backward gives; nll_loss(x, [1, 2]). */
TEST(a_list_of_one_target) {
    static const int64_t places[] = {1, 2};
    opd_tensor *x = opd_tensor_set_requires_grad(counted(3), true), *one = opd_tensor_from(places, OPD_INTS(1), OPD_INT64);
    ARE(CALL("aten::nll_loss", x, one), -1);
    ARE(CALL("aten::nll_loss", x, one, OPD_NONE, 0), -1);
    ARE(CALL("aten::cross_entropy_loss", x, one), 1.407606f);
    CHECK_INT(opd_backward(CALL("aten::nll_loss", x, one)), 0);
    ARE(opd_tensor_grad(x), 0, -1, 0);
    CHECK(CALL("aten::nll_loss", x, opd_tensor_from(places, OPD_INTS(2), OPD_INT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "For 1D input, 1D target must have size 1, but got target size: 2");
}
/* logaddexp(complex(-inf, 1), complex(-inf, 2)), and of the two in the other order; logcumsumexp([the two, 1 + 1j], 0). */
TEST(sum_of_two_complex_logarithms_of_nothing) {
    static const float parts[] = {-INFINITY, 1, -INFINITY, 2, 1, 1};
    opd_tensor *both = opd_view_as_complex(opd_tensor_from(parts, OPD_INTS(3, 2), OPD_FLOAT32));
    ARE(opd_view_as_real(opd_logaddexp(opd_select(both, 0, 0), opd_select(both, 0, 1))), -INFINITY, 2);
    ARE(opd_view_as_real(opd_logaddexp(opd_select(both, 0, 1), opd_select(both, 0, 0))), -INFINITY, 1);
    ARE(opd_view_as_real(opd_logcumsumexp(both, 0)), -INFINITY, 0, -INFINITY, 0, 1, 1);
}
/* instance_norm in training, of one example, writes its running statistics, which its derivative does not read again. */
TEST(instance_norm_of_one_example_can_be_differentiated) {
    opd_tensor *const x = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(1, 3, 4, 4), OPD_FLOAT32), true);
    opd_tensor *const mean = opd_zeros(OPD_INTS(3), OPD_FLOAT32), *const var = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    opd_tensor *const y = opd_instance_norm(x, NULL, NULL, mean, var, true, 0.1, 1e-5, true);
    CHECK(y != NULL);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, y))), 0);
    CHECK(opd_tensor_grad(x) != NULL);
    CHECK(!opd_equal(mean, opd_zeros(OPD_INTS(3), OPD_FLOAT32)));
    CHECK_OK();
}
/* torch.instance_norm(torch.arange(12.).view(3, 1, 4), None, None, mean, var, True, 0.1, 1e-5, False) with mean 0 and variance 1 of
   one channel. */
TEST(instance_norm_of_one_channel_writes_its_statistics) {
    const float one = 0, two = 1;
    opd_tensor *const x = opd_tensor_set_requires_grad(opd_reshape(opd_arange(opd_value_int(12), OPD_FLOAT32), OPD_INTS(3, 1, 4)), true);
    opd_tensor *const mean = opd_tensor_from(&one, OPD_INTS(1), OPD_FLOAT32), *const var = opd_tensor_from(&two, OPD_INTS(1), OPD_FLOAT32);
    opd_tensor *const y = opd_instance_norm(x, NULL, NULL, mean, var, true, 0.1, 1e-5, true);
    CHECK_OR_RETURN(y != NULL);
    ARE(opd_reshape(y, OPD_INTS(-1)), -1.341635, -0.4472118, 0.4472118, 1.341635, -1.341635, -0.4472118, 0.4472118, 1.341635,
        -1.341635, -0.4472118, 0.4472118, 1.341635);
    ARE(mean, 0.55);
    ARE(var, 1.066667);
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_mul(y, y), y))), 0);
    CHECK(opd_tensor_grad(x) != NULL);
    CHECK_OK();
}
/* If all is dropped, no random numbers are drawn, as in PyTorch: so this also works in vmap that forbids random operators. */
static int drop_all(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_dropout(in[0], 1, true);
    out[1] = opd_feature_dropout(in[0], 1, true);
    out[2] = opd_dropout_(opd_clone(in[0]), 1, true);
    return out[2] ? 3 : -1;
}
TEST(dropping_all_draws_no_numbers) {
    opd_tensor *const x = opd_ones(OPD_INTS(2, 3, 2), OPD_FLOAT32);
    opd_tensor *out[3];
    opd_manual_seed(4);
    opd_tensor *const first = opd_rand(OPD_INTS(3), OPD_FLOAT32);
    opd_manual_seed(4);
    CHECK_INT(opd_vmap(drop_all, NULL, &x, 1, NULL, out, 3), 3);
    for (int i = 0; i < 3; i++) { CHECK(out[i] && opd_equal(out[i], opd_zeros(OPD_INTS(2, 3, 2), OPD_FLOAT32))); }
    CHECK(opd_equal(opd_rand(OPD_INTS(3), OPD_FLOAT32), first));
    CHECK_OK();
}
CHECK_MAIN()
/* torch.ops.aten.ctc_loss.IntList(log_softmax(x, 2), [[0, 0], [1, 0]], [4, 3], [2, 1], 2), its mean, and what backward gives. */
TEST(alignments_of_targets) {
    static const double want[] = {-0.1798944, 0.0611821, 0.1187123, 0.04501529, -0.001323316, -0.04369197, -0.03153188, 0.06118214,
                                  -0.02965026, 0.1193133, -0.124043, 0.004729701, -0.08870596, 0.1621636, -0.07345761, 0.1193133,
                                  -0.1061907, -0.0131226, -0.1427455, 0.1621635, -0.01941806, 0, 0, 0};
    static const int64_t labels[] = {0, 0, 1, 0}, beyond[] = {0, 3, 1, 0}, sizes[] = {2, 1};
    static const int32_t times[] = {4, 3};
    const double mean = 1.538484;
    float values[24];
    opd_tensor *x, *targets, *loss, *log_probs;
    int i;
    for (i = 0; i < 24; i++) { values[i] = (float)(i * 37 % 11) / 4 - 1; }
    x = opd_tensor_set_requires_grad(opd_tensor_from(values, OPD_INTS(4, 2, 3), OPD_FLOAT32), true);
    targets = opd_tensor_from(labels, OPD_INTS(2, 2), OPD_INT64);
    log_probs = opd_log_softmax(x, 2);
    loss = opd_ctc_loss_IntList_full(log_probs, targets, OPD_INTS(4, 3), OPD_INTS(2, 1), 2, 1, false);
    are(loss, &mean, 1);
    are(CALL("aten::ctc_loss.Tensor", log_probs, targets, opd_tensor_from(times, OPD_INTS(2), OPD_INT32), opd_tensor_from(sizes, OPD_INTS(2), OPD_INT64), 2),
        &mean, 1);
    CHECK(CALL("aten::ctc_loss.Tensor", log_probs, targets, opd_rand(OPD_INTS(2), OPD_FLOAT32), opd_tensor_from(sizes, OPD_INTS(2), OPD_INT64), 2) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "input_lengths must be integral");
    CHECK(opd_backward(loss) == 0);
    are(opd_tensor_grad(x), want, 24);
    targets = opd_tensor_from(beyond, OPD_INTS(2, 2), OPD_INT64);
    CHECK(!opd_ctc_loss_IntList_full(log_probs, targets, OPD_INTS(4, 3), OPD_INTS(2, 1), 2, 1, false));
    CHECK(strstr(opd_error_message(), "out of range"));
    opd_error_clear();
    CHECK(!opd_ctc_loss_IntList_full(log_probs, targets, OPD_INTS(5, 3), OPD_INTS(1, 1), 2, 1, false));
    CHECK(strstr(opd_error_message(), "at most 4"));
    opd_error_clear();
}
/* A NaN together with a probability of zero gives NaN, as in PyTorch.  Targets may have any dtype. */
TEST(alignments_with_nan_and_targets_of_any_dtype) {
    const float put[] = {-0.5f, -1, -0.25f, -1.5f};
    const float with_nan[] = {-(float)INFINITY, (float)NAN, -0.25f, -1.5f};
    const int64_t one = 1;
    opd_tensor *probs = opd_tensor_from(put, OPD_INTS(2, 1, 2), OPD_FLOAT32), *targets = opd_tensor_from(&one, OPD_INTS(1, 1), OPD_INT64);
    opd_tensor *want = opd_ctc_loss_IntList(probs, targets, OPD_INTS(2), OPD_INTS(1));
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_ctc_loss_IntList(probs, opd_to_dtype(targets, OPD_UINT8), OPD_INTS(2), OPD_INTS(1))), opd_item_f64(want), 0);
    CHECK_NEAR(opd_item_f64(opd_ctc_loss_IntList(probs, opd_to_dtype(targets, OPD_FLOAT32), OPD_INTS(2), OPD_INTS(1))), opd_item_f64(want), 0);
    opd_tensor *input = opd_mul_Scalar(targets, opd_value_int(2)), *target = opd_to_dtype(opd_flatten(targets, 0, -1), OPD_INT32);
    CHECK_NEAR(opd_item_f64(opd_ctc_loss_Tensor(probs, targets, opd_flatten(input, 0, -1), target)), opd_item_f64(want), 0);
    CHECK(!opd_ctc_loss_Tensor(probs, targets, opd_flatten(input, 0, -1), opd_to_dtype(target, OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "target_lengths must be integral");
    CHECK(!opd_ctc_loss_Tensor(probs, targets, opd_to_device(opd_flatten(input, 0, -1), opd_device_make(OPD_META, 0), OPD_INT64), target));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has no data to read");
    probs = opd_tensor_from(with_nan, OPD_INTS(2, 1, 2), OPD_FLOAT32);
    CHECK(isnan(opd_item_f64(opd_ctc_loss_IntList(probs, targets, OPD_INTS(2), OPD_INTS(1)))));
    CHECK_OK();
}
static int alignment_loss(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t labels[] = {0, 0, 1, 0};
    (void)n;
    out[0] = opd_ctc_loss_IntList_full(opd_log_softmax(in[0], 2), opd_tensor_from(labels, OPD_INTS(2, 2), OPD_INT64),
                                       OPD_INTS(4, 3), OPD_INTS(2, 1), 2, *(const int *)user, true);
    return out[0] ? 1 : -1;
}
static int slope_of_alignment(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(alignment_loss, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* The derivative along a direction is the difference quotient.  Second derivatives are refused. */
TEST(alignments_in_forward_mode) {
    opd_tensor *x = opd_view(opd_sin(opd_arange(OPD_V(24), OPD_FLOAT64)), OPD_INTS(4, 2, 3));
    opd_tensor *const along = opd_view(opd_cos(opd_arange(OPD_V(24), OPD_FLOAT64)), OPD_INTS(4, 2, 3)), *y, *slope;
    for (int reduction = 0; reduction < 3; reduction++) {
        opd_tensor *at[2], *value[2];
        CHECK_INT(opd_jvp(alignment_loss, &reduction, &x, &along, 1, NULL, &y, &slope, 1), 1);
        for (int i = 0; i < 2; i++) {
            at[i] = opd_add(x, opd_mul_Scalar(along, opd_value_double(i ? -1e-6 : 1e-6)));
            CHECK_INT(alignment_loss(&reduction, &at[i], 1, &value[i]), 1);
        }
        CHECK(opd_allclose_full(slope, opd_mul_Scalar(opd_sub(value[0], value[1]), opd_value_double(5e5)), 1e-7, 1e-8, false));
        CHECK_INT(opd_jvp(slope_of_alignment, &reduction, &x, &along, 1, NULL, &y, &slope, 1), -1);
        CHECK(strstr(opd_error_message(), reduction ? "_ctc_loss_backward" : "scalar"));
        opd_error_clear();
    }
}
TEST(samples_that_have_no_derivative_or_integral) {
    opd_tensor *x = counted(3), *truth = opd_gt_Scalar(x, opd_value_int(0)), *none;
    const double unit[] = {0, 1};
    const int64_t dim = -1;
    CHECK(CALL("aten::gradient.array", opd_to_dtype(x, OPD_UINT8), opd_ints_of(&dim, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "gradient does not support uint8 input.");
    CHECK(CALL("aten::gradient.array", opd_select(x, 0, 1), opd_ints_of(&dim, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "Dimension specified as -1 but tensor has no dimensions");
    CHECK(CALL("aten::trapezoid.dx", x, opd_value_bool(true)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "trapezoid: Currently, we only support dx as a real number.");
    CHECK(CALL("aten::cumulative_trapezoid.dx", x, opd_value_complex(unit)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "cumulative_trapezoid: Currently, we only support dx as a real number.");
    CHECK(CALL("aten::trapezoid.dx", truth) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "received a bool input for `y`");
    none = CALL("aten::trapezoid.dx", opd_zeros(OPD_INTS(2, 0), OPD_BOOL));
    CHECK(none && opd_dtype(none) == OPD_BOOL && opd_numel(none) == 2 && opd_ndim(none) == 1);
    none = CALL("aten::trapezoid.x", opd_zeros(OPD_INTS(0, 3), OPD_INT32), opd_zeros(OPD_INTS(0), OPD_FLOAT32), 0);
    CHECK(none && opd_dtype(none) == OPD_INT32 && opd_numel(none) == 3);
    CHECK_OK();
}
TEST(parts_and_weights_with_nan) {
    const float parts[] = {0.5f, (float)NAN}, weights[] = {1, (float)NAN, 2};
    CHECK(opd_quantile(counted(3), floats(parts, 2), OPD_NONE, false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "quantile() q values must be in the range [0, 1]");
    CHECK(CALL("aten::cov", counted(3), 1, OPD_NONE, floats(weights, 3)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cov(): aweights cannot be negative");
}
TEST(fourier_transforms_over_no_dims) {
    opd_tensor *y = opd_fft_fftn(opd_select(counted(4), 0, 3));
    CHECK(y && opd_dtype(y) == OPD_COMPLEX64 && opd_ndim(y) == 0);
    ARE(opd_view_as_real(y), 3, 0);
    ARE(opd_view_as_real(CALL("aten::fft_ifftn", counted(2), OPD_NONE, opd_ints_of(NULL, 0))), 0, 0, 1, 0);
}
TEST(sets_and_histograms_that_are_refused) {
    opd_tensor *x = counted(3), *truth = opd_gt_Scalar(x, opd_value_int(0)), *row = opd_zeros(OPD_INTS(2, 65), OPD_FLOAT32), *pair[2], *edges[65];
    int i;
    CHECK(opd_isin_Tensor_Tensor(x, truth) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Unsupported input type encountered for isin(): bool");
    CHECK(opd_isin_Tensor_Scalar(x, opd_value_bool(true)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Unsupported input type encountered for isin(): bool");
    CHECK(opd_mvlgamma(truth, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "The input tensor may not be a boolean tensor.");
    CHECK(opd_histogram_bins_tensor(pair, x, counted(1)) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "bins must be > 0, but got 0 for dimension 0");
    for (i = 0; i < 65; i++) { edges[i] = counted(2); }
    CHECK(CALL("aten::_histogramdd_from_bin_tensors", row, opd_tensors_of(edges, 65)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "at most 64 dimensions, but the input has 65 columns");
    CHECK(opd_combinations_full(x, 65, false) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "r must be at most 64, but got 65");
}
TEST(segments_and_rows_as_long_as_they_may_be) {
    const int64_t lengths[] = {2, 0, 3}, few[] = {2, 1}, many[] = {4, 4}, twice[] = {0, 0}, outside[] = {1, 2};
    const float rows[] = {3, 4, 0, 1};
    opd_tensor *x = counted(5), *at = opd_tensor_from(lengths, OPD_INTS(3), OPD_INT64), *w = opd_tensor_from(rows, OPD_INTS(2, 2), OPD_FLOAT32);
    opd_tensor *max, *mean;
    opd_tensor_set_requires_grad(x, true);
    max = CALL("aten::segment_reduce", x, "max", at);
    mean = CALL("aten::segment_reduce", x, "mean", at);
    ARE(max, 1, -INFINITY, 4);
    ARE(mean, .5, NAN, 3);
    CHECK_INT(opd_backward(opd_nansum(mean)), 0);
    ARE(opd_tensor_grad(x), .5, .5, 1 / 3., 1 / 3., 1 / 3.);
    CHECK(CALL("aten::segment_reduce", x, "sum", opd_tensor_from(few, OPD_INTS(2), OPD_INT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected all rows of lengths along axis to sum to");
    CHECK(CALL("aten::segment_reduce", x, "sum", opd_tensor_from(many, OPD_INTS(2), OPD_INT64), OPD_NONE, OPD_NONE, 0, true) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "segments must lie in the 5 elements of data along axis");
    ARE(CALL("aten::embedding_renorm_", w, opd_tensor_from(twice, OPD_INTS(2), OPD_INT64), 1.0, 2.0), .6, .8, 0, 1);
    CHECK(CALL("aten::embedding_renorm_", w, opd_tensor_from(outside, OPD_INTS(2), OPD_INT64), 0.5, 2.0) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "index 2 is out of range for 2 rows");
    ARE(w, .6, .8, 0, 1);
    CHECK(opd_renorm(w, opd_value_int(0), 0, opd_value_int(1)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "renorm: non-positive-norm not supported");
}
/* A bool to the power of a bool is a bool; to the power of a number it has the number's kind. */
TEST(powers_of_truth) {
    opd_tensor *b = opd_gt_Scalar(counted(3), opd_value_int(0)), *got = opd_pow_Tensor_Scalar(b, opd_value_bool(true));
    CHECK(got && opd_dtype(got) == OPD_BOOL);
    ARE(opd_to_dtype(got, OPD_FLOAT32), 0, 1, 1);
    ARE(opd_to_dtype(opd_pow_Tensor_Scalar(b, opd_value_bool(false)), OPD_FLOAT32), 1, 1, 1);
    CHECK(opd_dtype(opd_pow_Tensor_Scalar(b, opd_value_int(2))) == OPD_INT64);
    CHECK(opd_pow_Tensor_Tensor(b, b) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for 'bool'");
}
TEST(dtypes_that_are_refused) {
    opd_tensor *x = counted(3), *bytes = opd_ones(OPD_INTS(3), OPD_UINT8), *out = opd_zeros(OPD_INTS(5), OPD_FLOAT32);
    CHECK(opd_masked_scatter(x, bytes, x) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "only supports boolean masks, but got mask with dtype uint8");
    CHECK(CALL("aten::tril_indices", 2, 2, 0, (int64_t)OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"tril_indices\" not implemented for 'float32'");
    CHECK(CALL("aten::triu_indices.out", 2, 2, 0, out) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"triu_indices\" not implemented for 'float32'");
    CHECK_INT(opd_numel(out), 5);
    CHECK(opd_normal_Tensor_Tensor(x, opd_to_dtype(x, OPD_COMPLEX64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "normal expects standard deviation to be non-complex");
}
/* Histograms of float16 with a given range, with counts above the integers that float16 can represent. */
TEST(histograms_of_halves) {
    const double range[] = {-2, 2};
    opd_tensor *pair[2], *x = opd_to_dtype(counted(3), OPD_BFLOAT16), *many = opd_zeros(OPD_INTS(300), OPD_BFLOAT16);
    CHECK(opd_histogram_bin_ct(pair, x) != 0);
    CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for 'bfloat16'");
    CHECK(opd_histogram_bin_ct_full(pair, x, 4, opd_value_doubles(range, 2), NULL, true) == 0);
    CHECK(opd_dtype(pair[0]) == OPD_BFLOAT16 && opd_dtype(pair[1]) == OPD_BFLOAT16);
    ARE(opd_to_dtype(pair[1], OPD_FLOAT32), -2, -1, 0, 1, 2);
    ARE(opd_to_dtype(opd_mul_Scalar(pair[0], opd_value_int(3)), OPD_FLOAT32), 0, 0, 1, 2);
    CHECK(opd_histogram_bin_ct_full(pair, many, 2, opd_value_doubles(range, 2), NULL, false) == 0);
    ARE(opd_to_dtype(pair[0], OPD_FLOAT32), 0, 300);
}
/* Means of complex numbers: each part has half the variance. */
TEST(normal_numbers_around_complex_means) {
    const int64_t few = 1;
    opd_tensor *mean = opd_to_dtype(opd_ones(OPD_INTS(40000), OPD_FLOAT32), OPD_COMPLEX64), *got, *parts;
    ARE(opd_view_as_real(opd_normal_Tensor_float(opd_narrow(mean, 0, 0, few), 0)), 1, 0);
    got = opd_normal_Tensor_float(mean, 2);
    CHECK(got && opd_dtype(got) == OPD_COMPLEX64);
    parts = opd_view_as_real(got);
    CHECK_NEAR(opd_item_f64(opd_var(opd_select(parts, 1, 0))), 2, 0.1);
    CHECK_NEAR(opd_item_f64(opd_var(opd_select(parts, 1, 1))), 2, 0.1);
    CHECK_NEAR(opd_item_f64(opd_mean(opd_select(parts, 1, 0))), 1, 0.05);
    CHECK_NEAR(opd_item_f64(opd_mean(opd_mul(opd_select(parts, 1, 0), opd_select(parts, 1, 1)))), 0, 0.1);
    got = opd_normal_Tensor_Tensor(opd_to_dtype(mean, OPD_COMPLEX128), opd_zeros(OPD_INTS(2, 1), OPD_FLOAT64));
    CHECK(got && opd_dtype(got) == OPD_COMPLEX128 && opd_size(got, 0) == 2);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_real(got))), 80000, 0);
}
/* What torch.embedding_renorm_ gives for rows (3+4i, 0) and (1, i); along a row its unit vector does not change. */
TEST(complex_rows_as_long_as_they_may_be) {
    const double values[] = {3, 4, 0, 0, 1, 0, 0, 1};
    const int64_t rows[] = {0, 1};
    opd_tensor *index = opd_tensor_from(rows, OPD_INTS(2), OPD_INT64);
    opd_tensor *w = opd_view_as_complex(opd_tensor_from(values, OPD_INTS(2, 2, 2), OPD_FLOAT64)), *cube;
    ARE(opd_to_dtype(opd_view_as_real(opd_embedding_renorm(w, index, 1, 1)), OPD_FLOAT32), .6, .8, 0, 0, .5, 0, 0, .5);
    cube = opd_view_as_real(opd_embedding_renorm(opd_to_dtype(w, OPD_COMPLEX64), index, 1, 3));
    ARE(cube, .6, .8, 0, 0, .793700525984, 0, 0, .793700525984);
    opd_tensor_set_requires_grad(w, true);
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_view_as_real(opd_embedding_renorm(w, index, 1, 2)),
                                           opd_view_as_real(opd_detach(w))))), 0);
    ARE(opd_to_dtype(opd_view_as_real(opd_tensor_grad(w)), OPD_FLOAT32), 0, 0, 0, 0, 0, 0, 0, 0);
}
TEST(parts_of_numbers_and_slopes_that_are_written) {
    const float numbers[] = {0, 8, -INFINITY, -3};
    opd_tensor *rets[2], *x = opd_neg(counted(3)), *noise = opd_zeros(OPD_INTS(3), OPD_FLOAT32);
    CHECK_OR_RETURN(opd_frexp_Tensor(rets, floats(numbers, 4)) == 0);
    ARE(rets[0], 0, .5, -INFINITY, -.75);
    CHECK(opd_dtype(rets[1]) == OPD_INT32);
    ARE(opd_to_dtype(rets[1], OPD_FLOAT32), 0, 4, 0, 2);
    ARE(CALL("aten::rrelu_with_noise", x, noise, .5, .5, true), 0, -.5, -1);
    ARE(noise, .5, .5, .5);
    ARE(CALL("aten::rrelu_with_noise_", x, noise, .25, .25, true), 0, -.25, -.5);
    ARE(x, 0, -.25, -.5);
    ARE(noise, .25, .25, .25);
    ARE(CALL("aten::rrelu_with_noise", x, opd_ones(OPD_INTS(1), OPD_FLOAT32), .5, .5, false), 0, -.125, -.25);
    CHECK(CALL("aten::rrelu_with_noise", x, opd_ones(OPD_INTS(1), OPD_FLOAT32), .5, .5, true) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "noise must have self's sizes");
}
TEST(items_of_complex_tensors) {
    const float parts[] = {1.5f, 0, 1.5f, -2};
    opd_tensor *both = opd_view_as_complex(opd_tensor_from(parts, OPD_INTS(2, 2), OPD_FLOAT32));
    CHECK_NEAR(opd_item_f64(opd_select(both, 0, 0)), 1.5, 0);
    CHECK_INT(opd_item_i64(opd_select(both, 0, 0)), 1);
    CHECK_NEAR(opd_item_f64(opd_select(both, 0, 1)), 0, 0);
    CHECK_ERROR(OPD_ERROR_DTYPE, "item: 1.5-2j has an imaginary part");
    CHECK_INT(opd_item_i64(opd_select(both, 0, 1)), 0);
    CHECK_ERROR(OPD_ERROR_DTYPE, "read real and imag");
}
TEST(powers_into_what_is_no_double) {
    opd_tensor *x = counted(3), *wide = opd_to_dtype(x, OPD_FLOAT64);
    CHECK(CALL("aten::float_power_.Scalar", x, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "the base given to float_power_ has dtype float32 but the operation's result requires dtype float64");
    CHECK(CALL("aten::float_power.Tensor_Tensor_out", x, x, opd_zeros(OPD_INTS(3), OPD_COMPLEX128)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "the output given to float_power has dtype complex128 but the operation's result requires dtype float64");
    ARE(x, 0, 1, 2);
    CHECK(CALL("aten::float_power_.Tensor", wide, x) == wide);
    ARE(opd_to_dtype(wide, OPD_FLOAT32), 1, 1, 4);
}
/* grid_sampler_3d at places that are no numbers; along x, which has two of the eight values 1 to 8. */
TEST(places_in_three_dims_that_are_nowhere) {
    static const float at[] = {NAN, INFINITY, -INFINITY, 3};
    int k;
    for (k = 0; k < 3; k++) {
        opd_tensor *input = opd_view(opd_add_Scalar(counted(8), opd_value_int(1)), OPD_INTS(1, 1, 2, 2, 2)), *out, *ones;
        opd_tensor *grid = opd_full_full(OPD_INTS(4, 3), opd_value_double(-.3), opd_value_int(OPD_FLOAT32), OPD_NONE, OPD_NONE, OPD_NONE);
        opd_copy_(opd_select(grid, 1, 0), floats(at, 4));
        grid = opd_view(grid, OPD_INTS(1, 1, 1, 4, 3));
        opd_tensor_set_requires_grad(input, true);
        opd_tensor_set_requires_grad(grid, true);
        out = CALL("aten::grid_sampler_3d", input, grid, 0, k, false);
        ones = opd_ones_like(opd_detach(out));
        if (k == 0) { ARE(out, 0, 0, 0, 0); }
        if (k == 1) { ARE(out, 3.2, 3.2, 2.2, 3.2); }
        if (k == 2) { ARE(out, 3.2, 3.2, 3.2, 2.2); }
        CHECK_INT(opd_backward(opd_sum(out)), 0);
        if (k == 0) { ARE(opd_tensor_grad(input), 0, 0, 0, 0, 0, 0, 0, 0); }
        if (k == 1) { ARE(opd_tensor_grad(input), .64, 1.28, .16, .32, .16, .32, .04, .08); }
        if (k == 2) { ARE(opd_tensor_grad(input), .64, 0, .16, 0, .16, 0, .04, 0); }
        if (k == 0) { ARE(opd_tensor_grad(grid), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); }
        if (k == 1) { ARE(opd_tensor_grad(grid), 0, 0, 0, 0, 2, 4, 0, 2, 4, 0, 2, 4); }
        if (k == 2) { ARE(opd_tensor_grad(grid), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4); }
        {
            opd_value args[7], rets[2];
            opd_op *op = opd_find("aten::grid_sampler_3d_backward");
            bool both[2] = {true, true};
            args[0] = opd_value_tensor(ones); args[1] = opd_value_tensor(opd_detach(input)); args[2] = opd_value_tensor(opd_detach(grid));
            args[3] = opd_value_int(0); args[4] = opd_value_int(k); args[5] = opd_value_bool(false); args[6] = opd_value_bools(both, 2);
            CHECK_OR_RETURN(opd_call_all(op, rets, args, 7) == 0);
            CHECK(opd_equal(rets[0].u.t, opd_tensor_grad(input)));
            CHECK(opd_allclose(rets[1].u.t, opd_tensor_grad(grid)));
        }
    }
}
TEST(slopes_of_what_is_not_made_shorter) {
    const float rows[] = {3, 4, 0, 1};
    const double parts[] = {2, 0};
    opd_tensor *x = opd_tensor_from(rows, OPD_INTS(2, 2), OPD_FLOAT32);
    const opd_value one = opd_value_int(1), two = opd_value_int(2);
    opd_tensor_set_requires_grad(x, true);
    CHECK_INT(opd_backward(opd_sum(opd_renorm(x, two, 0, opd_value_double(INFINITY)))), 0);
    ARE(opd_tensor_grad(x), 1, 1, 1, 1);
    opd_tensor_set_grad(x, NULL);
    CHECK_INT(opd_backward(opd_sum(opd_renorm(x, two, 0, one))), 0);
    ARE(opd_tensor_grad(x), .032, -.024, 1, 1);
    CHECK(opd_renorm(x, opd_value_complex(parts), 0, one) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "renorm: p must be real-valued");
    CHECK(opd_renorm(x, two, 0, opd_value_complex(parts)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "renorm: maxnorm must be real-valued");
    CHECK(CALL("aten::renorm.out", opd_detach(x), 2, 0, 1, opd_zeros(OPD_INTS(2, 2), OPD_FLOAT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "the output given to renorm has dtype float64 but the operation's result requires dtype float32");
}
TEST(noise_is_used_and_kept) {
    opd_tensor *x = opd_neg(counted(3)), *noise = opd_mul_Scalar(opd_ones(OPD_INTS(3), OPD_FLOAT32), opd_value_double(.5));
    ARE(CALL("aten::rrelu_with_noise_backward", counted(3), x, noise, .1, .1, true, false), 0, .5, 1);
    ARE(CALL("aten::rrelu_with_noise_backward", counted(3), x, noise, .1, .3, false, false), 0, .2, .4);
    opd_tensor_set_requires_grad(x, true);
    CHECK(CALL("aten::rrelu_with_noise_", x, noise, .25, .25, true) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation.");
    ARE(noise, .5, .5, .5);
}
TEST(exponents_into_what_holds_none) {
    opd_tensor *x = counted(3), *doubles = opd_zeros(OPD_INTS(3), OPD_FLOAT64), *whole = opd_zeros(OPD_INTS(3), OPD_INT32);
    CHECK(CALL("aten::frexp.Tensor_out", x, doubles, whole) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "frexp() expects mantissa to have dtype float32 but got float64");
    CHECK(CALL("aten::frexp.Tensor_out", x, opd_zeros(OPD_INTS(3), OPD_FLOAT32), opd_zeros(OPD_INTS(3), OPD_INT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "frexp() expects exponent to have dtype int32 but got int64");
}
static void segment_slopes(const float *data, const char *how, float first, const double *want) {
    const int64_t lengths[] = {3, 2};
    float grads[2] = {0, 10};
    opd_tensor *x = floats(data, 5);
    grads[0] = first;
    opd_tensor_set_requires_grad(x, true);
    opd_tensor *out = CALL("aten::segment_reduce", x, how, opd_tensor_from(lengths, OPD_INTS(2), OPD_INT64));
    CHECK_INT(opd_backward(opd_sum(opd_mul(out, floats(grads, 2)))), 0);
    are(opd_tensor_grad(x), want, 5);
}
TEST(slopes_of_segments_with_what_is_no_number) {
    static const float far[] = {1, INFINITY, INFINITY, 2, 3}, lost[] = {0, NAN, 2, 3, 3}, more[] = {NAN, 2, 3, 0, NAN};
    static const double most[] = {0, INFINITY, INFINITY, 0, 10}, least[] = {INFINITY, 0, 0, 10, 0};
    static const double first[] = {INFINITY, NAN, NAN, 30, 20}, second[] = {NAN, 0, NAN, 30, 30}, third[] = {6, NAN, NAN, NAN, 0};
    segment_slopes(far, "max", INFINITY, most);
    segment_slopes(far, "min", INFINITY, least);
    segment_slopes(far, "prod", 1, first);
    segment_slopes(lost, "prod", 1, second);
    segment_slopes(more, "prod", 1, third);
}
TEST(powers_of_examples_into_what_is_no_double) {
    opd_tensor *x = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32), *wide = opd_ones(OPD_INTS(2, 3), OPD_FLOAT64), *example;
    const int level = opd_vmap_begin(2, OPD_RANDOM_ERROR);
    CHECK_OR_RETURN(level >= 0);
    example = opd_vmap_wrap(x, 0, level);
    CHECK(CALL("aten::float_power_.Scalar", example, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "the base given to float_power_ has dtype float32 but the operation's result requires dtype float64");
    CHECK(CALL("aten::float_power.Tensor_Scalar_out", example, 2, opd_vmap_wrap(opd_zeros(OPD_INTS(2, 3), OPD_FLOAT32), 0, level)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "the output given to float_power has dtype float32");
    CHECK(CALL("aten::float_power_.Scalar", opd_vmap_wrap(wide, 0, level), 2) != NULL);
    CHECK_INT(opd_vmap_end(level), 0);
}
TEST(regions_of_no_dtype) {
    opd_autocast_region region = opd_autocast_begin(OPD_CPU, (opd_scalar_type)99, true, -1);
    CHECK(!region.open);
    CHECK_ERROR(OPD_ERROR_DTYPE, "99 is not a dtype");
    CHECK(!opd_autocast_enabled(OPD_CPU));
}
static void slopes_at_nan(opd_tensor *x, opd_tensor *y, double want) {
    opd_tensor *grad, *sum;
    CHECK_OK();
    CHECK_OR_RETURN(y);
    sum = opd_sum(y);
    CHECK_OR_RETURN(opd_autograd_grad(&sum, 1, &x, 1, NULL, &grad) == 0 && grad);
    CHECK(isnan(want) ? isnan(opd_data_f32(grad)[0]) : opd_data_f32(grad)[0] == (float)want);
}
TEST(slopes_at_what_is_no_number) {
    static const float lost[] = {NAN, 2, -2};
    opd_tensor *x = floats(lost, 3);
    opd_tensor_set_requires_grad(x, true);
    slopes_at_nan(x, opd_hardtanh(x), 0);
    slopes_at_nan(x, opd_relu6(x), 0);
    slopes_at_nan(x, opd_softshrink(x), 0);
    slopes_at_nan(x, opd_hardshrink(x), 0);
    slopes_at_nan(x, opd_angle(x), 0);
    slopes_at_nan(x, opd_elu(x), NAN);
    slopes_at_nan(x, opd_selu(x), NAN);
    slopes_at_nan(x, opd_celu(x), NAN);
    CHECK(isnan(opd_data_f32(opd_angle(x))[0]));
}
TEST(random_numbers_that_are_complex) {
    opd_tensor *parts, *x;
    opd_manual_seed(5);
    x = opd_randn(OPD_INTS(20000), OPD_COMPLEX64);
    parts = opd_view_as_real(x);
    CHECK_NEAR(opd_item_f64(opd_std_full(parts, true)), sqrt(0.5), 0.02);
    CHECK_NEAR(opd_item_f64(opd_mean(parts)), 0, 0.02);
    CHECK(CALL("aten::normal_", x, 2.0, 3.0) == x);
    CHECK_NEAR(opd_item_f64(opd_std_full(parts, true)), 3 * sqrt(0.5), 0.06);
    CHECK_NEAR(opd_item_f64(opd_mean(parts)), 2, 0.06);
    parts = opd_view_as_real(opd_rand(OPD_INTS(20000), OPD_COMPLEX128));
    CHECK_NEAR(opd_item_f64(opd_mean(parts)), 0.5, 0.02);
    CHECK(opd_item_f64(opd_max(parts)) < 1 && opd_item_f64(opd_min(parts)) >= 0);
    CHECK_OK();
}
TEST(indices_from_the_end) {
    const int64_t at[] = {-1, 0, -3, 2}, beyond[] = {-4}, past[] = {3};
    opd_tensor *x = opd_view(counted(6), OPD_INTS(2, 3)), *index = opd_tensor_from(at, OPD_INTS(2, 2), OPD_INT64);
    ARE(CALL("aten::take_along_dim", x, index, 1), 2, 0, 3, 5);
    CHECK(CALL("aten::take_along_dim", x, opd_tensor_from(beyond, OPD_INTS(1, 1), OPD_INT64), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "index -1 is out of bounds for dimension 1 with size 3");
    CHECK(CALL("aten::take_along_dim", x, opd_tensor_from(past, OPD_INTS(1, 1), OPD_INT64), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "index 3 is out of bounds");
}
/* Matrix products of bool tensors work if they have no elements. */
TEST(products_of_no_bools) {
    opd_tensor *a = opd_zeros(OPD_INTS(2, 0), OPD_BOOL), *b = opd_zeros(OPD_INTS(0, 3), OPD_BOOL);
    opd_tensor *none = opd_zeros(OPD_INTS(0), OPD_BOOL), *ones = opd_ones(OPD_INTS(2), OPD_BOOL);
    opd_tensor *full = opd_ones(OPD_INTS(3, 3), OPD_BOOL);
    opd_tensor *made[] = {opd_mm(a, b), opd_mv(a, none), opd_mm(b, full), opd_matmul(a, b),
                          opd_bmm(opd_unsqueeze(a, 0), opd_unsqueeze(b, 0))};
    static const int sizes[] = {6, 2, 0, 6, 6};
    for (int i = 0; i < 5; i++) {
        CHECK_OR_RETURN(made[i] != NULL);
        CHECK(opd_dtype(made[i]) == OPD_BOOL && opd_numel(made[i]) == sizes[i]);
        CHECK(opd_item_f64(opd_sum(made[i])) == 0);
    }
    CHECK(opd_item_f64(opd_sum(opd_addmv(ones, a, none))) == 2);
    CHECK(opd_mm(full, full) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"addmm_impl_cpu_\" not implemented for 'bool'");
    CHECK(opd_dot(none, none) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"dot\" not implemented for 'bool'");
}
TEST(what_sequences_and_norms_refuse) {
    static const double unit[2] = {0, 1};
    opd_tensor *x = opd_ones(OPD_INTS(3), OPD_FLOAT32), *wide = opd_zeros(OPD_INTS(3), OPD_COMPLEX128);
    CHECK(opd_item_f64(opd_sum(opd_linspace(OPD_V(-2), OPD_V(5), 1, OPD_BOOL))) == 1);
    CHECK_INT(opd_numel(opd_linspace(OPD_V(-2), OPD_V(5), 0, OPD_BOOL)), 0);
    CHECK(opd_linspace(OPD_V(0), OPD_V(1), 2, OPD_BOOL) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"linspace_cpu\" not implemented for 'bool'");
    CHECK(opd_logspace(opd_value_complex(unit), OPD_V(1), 2, 10, OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "the results are complex, so they cannot be stored");
    CHECK(opd_logspace(OPD_V(0), OPD_V(1), 2, 10, OPD_COMPLEX32) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"logspace_cpu\" not implemented for 'complex32'");
    CHECK(opd_group_norm(opd_zeros(OPD_INTS(2, 0, 3), OPD_FLOAT32), 1, NULL, NULL, 1e-5) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected number of channels to be greater than 0, got 0");
    CHECK(CALL("aten::complex.out", x, x, wide) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "requires dtype complex64");
    CHECK(CALL("aten::polar.out", x, x, wide) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "requires dtype complex64");
}
TEST(random_slopes_written_elsewhere) {
    opd_tensor *x = opd_full(OPD_INTS(50), OPD_V(-1), OPD_FLOAT32), *noise = opd_zeros(OPD_INTS(50), OPD_FLOAT32);
    opd_tensor *out = opd_zeros(OPD_INTS(0), OPD_FLOAT32);
    CHECK(opd_rrelu_with_noise_out(x, noise, OPD_V(0.25), OPD_V(0.5), true, NULL, out) == out);
    CHECK_INT(opd_numel(out), 50);
    for (int i = 0; i < 50; i++) {
        CHECK(opd_data_f32(out)[i] == -opd_data_f32(noise)[i]);
        CHECK(opd_data_f32(noise)[i] >= 0.25f && opd_data_f32(noise)[i] <= 0.5f);
    }
    CHECK(opd_rrelu_with_noise_out(x, noise, OPD_V(0.25), OPD_V(0.5), true, NULL, opd_zeros(OPD_INTS(50), OPD_FLOAT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype float32, but got float64 instead");
}
TEST(whole_exponents_change_no_dtype) {
    const int64_t powers[] = {3, -2, 200};
    opd_tensor *n = opd_tensor_from(powers, OPD_INTS(3), OPD_INT64);
    static const opd_scalar_type dtypes[] = {OPD_BFLOAT16, OPD_FLOAT16, OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX64, OPD_INT32};
    for (int i = 0; i < 6; i++) {
        opd_tensor *made = opd_ldexp(opd_ones(OPD_INTS(3), dtypes[i]), n);
        CHECK_OR_RETURN(made != NULL);
        CHECK(opd_dtype(made) == (dtypes[i] == OPD_INT32 ? OPD_FLOAT32 : dtypes[i]));
        CHECK_NEAR(opd_item_f64(opd_select(opd_to_dtype(made, OPD_FLOAT64), 0, 1)), 0.25, 0);
    }
    CHECK_NEAR(opd_data_f64(opd_ldexp(opd_ones(OPD_INTS(3), OPD_FLOAT64), n))[2], ldexp(1, 200), 0);
}
TEST(slopes_of_atan2_at_the_origin) {
    static const float ys[] = {0, 0, 1, 1e-30f}, xs[] = {0, 1, 0, 1e-30f};
    opd_tensor *y = opd_tensor_set_requires_grad(floats(ys, 4), true), *x = opd_tensor_set_requires_grad(floats(xs, 4), true);
    opd_backward(opd_sum(opd_atan2(y, x)));
    CHECK_OK();
    ARE(opd_tensor_grad(y), 0, 1, 0, 0);
    ARE(opd_tensor_grad(x), 0, 0, -1, 0);
}
TEST(rows_and_channels_last) {
    opd_tensor *rows = opd_zeros(OPD_INTS(2, 3, 4, 5), OPD_FLOAT32), *last = opd_permute(opd_zeros(OPD_INTS(2, 4, 5, 3), OPD_FLOAT32), OPD_INTS(0, 3, 1, 2));
    CHECK(opd_sym_is_contiguous(rows) && !opd_sym_is_contiguous(last));
    CHECK(!opd_sym_is_contiguous_full(rows, 2) && opd_sym_is_contiguous_full(last, 2));
    CHECK(opd_sym_is_contiguous_full(rows, 1) && !opd_sym_is_contiguous_full(last, 3));
    CHECK_OK();
    (void)opd_sym_is_contiguous_full(rows, 4);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "unsupported memory format 4");
}
TEST(dims_that_do_not_lie_last) {                     /* the same as of the transposed copy, whose rows are walked */
    static const struct { const char *name; int with_dims; double bound; } ops[] = {
        {"aten::sum.dim_IntList", 1, 1e-4}, {"aten::amax", 1, 0}, {"aten::amin", 1, 0}, {"aten::argmax", 0, 0},
        {"aten::argmin", 0, 0}, {"aten::prod.dim_int", 0, 1e-3}, {"aten::any.dim", 0, 0}, {"aten::all.dim", 0, 0},
        {"aten::count_nonzero.dim_IntList", 1, 0}, {"aten::var.dim", 1, 1e-4}, {"aten::logsumexp", 1, 1e-4},
        {"aten::norm.ScalarOpt_dim", 2, 1e-4}, {"aten::nansum", 1, 1e-4}, {"aten::cumsum", 3, 1e-4}, {"aten::softmax.int", 3, 1e-5}};
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_INT64, OPD_INT32, OPD_BOOL};
    static const int64_t sizes[][2] = {{67, 300}, {33, 9}, {1500, 130}, {2, 1100}, {64, 8}, {700, 24}, {513, 64}};
    int i, k, j, last;
    opd_manual_seed(5);
    for (k = 0; k < 7; k++) {
        for (j = 0; j < 6; j++) {
            opd_tensor *x = opd_randn(OPD_INTS(sizes[k][0], sizes[k][1]), OPD_FLOAT32), *first = NULL;
            x = opd_to_dtype(j > 2 ? opd_mul_Scalar(x, opd_value_int(3)) : x, types[j]);
            if (j < 2) {
                CALL("aten::fill_.Scalar", opd_select(opd_select(x, 1, 3), 0, 1), (double)NAN);
                CALL("aten::fill_.Scalar", opd_select(opd_select(x, 1, 4), 0, 0), (double)HUGE_VAL);
                CALL("aten::fill_.Scalar", opd_select(x, 1, 5), (double)-HUGE_VAL);
            }
            for (i = 0; i < 15; i++) {
                opd_tensor *r[2] = {NULL, NULL};
                opd_op *op = opd_find(ops[i].name);
                CHECK_OR_RETURN(op != NULL);
                for (last = 0; last < 2; last++) {
                    opd_tensor *of = last ? opd_contiguous(opd_t(x)) : x;
                    const int64_t dim = last;
                    r[last] = ops[i].with_dims == 2 ? OPD_CALL(op, of, 2, opd_value_ints(&dim, 1))
                        : ops[i].with_dims == 1 ? OPD_CALL(op, of, opd_value_ints(&dim, 1)) : OPD_CALL(op, of, dim);
                    if (last && ops[i].with_dims == 3) { r[1] = opd_t(r[1]); }
                }
                first = r[0];
                if (!opd_ok()) {                      /* not for this dtype */
                    CHECK(r[0] == NULL && r[1] == NULL);
                    opd_error_clear();
                    continue;
                }
                CHECK(opd_allclose_full(opd_to_dtype(first, OPD_FLOAT64), opd_to_dtype(r[1], OPD_FLOAT64),
                                        types[j] == OPD_BFLOAT16 ? 2 * ops[i].bound + (ops[i].bound > 0 ? 1e-2 : 0)
                                        : ops[i].bound, ops[i].bound, true));
            }
        }
    }
    CHECK_OK();
}
TEST(casts_of_rows_that_do_not_fit) {                 /* in vectors as one by one */
    static const float from[] = {0, -0.5f, 2147483520.0f, 2147483648.0f, -2147483648.0f, -2147483904.0f, 1e20f, -1e20f,
                                 9223371487098961920.0f, 9223372036854775808.0f, -9223372036854775808.0f, 3.99f, -7.6f};
    float x[77];
    int i;
    for (i = 0; i < 77; i++) { x[i] = i == 50 ? NAN : i == 51 ? HUGE_VALF : i == 52 ? -HUGE_VALF : from[i % 13]; }
    opd_tensor *all = opd_tensor_from(x, OPD_INTS(77), OPD_FLOAT32);
    opd_tensor *narrow = opd_to_dtype(all, OPD_INT32), *wide = opd_to_dtype(all, OPD_INT64);
    for (i = 0; i < 77; i++) {
        const bool fits = x[i] >= -2147483648.0f && x[i] < 2147483648.0f;
        CHECK_INT(((int32_t *)opd_data(narrow))[i], fits ? (int32_t)x[i] : INT32_MIN);
        CHECK_INT(((int64_t *)opd_data(wide))[i], fabsf(x[i]) < 9223372036854775808.0f ? (int64_t)x[i] : INT64_MIN);
    }
}
TEST(long_lines_sorted) {                             /* in order, equal ones in that of their places */
    static const opd_scalar_type types[] = {OPD_UINT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT32, OPD_FLOAT64,
                                            OPD_BFLOAT16};
    static const int64_t counts[] = {100, 3000, 9000, 20000}, most[] = {7, 30000, INT64_C(1) << 40};
    int down, i, k, type;
    int64_t j;
    opd_manual_seed(6);
    for (type = 0; type < 7; type++) {
        for (i = 0; i < 4; i++) {
            for (k = 0; k < 3; k++) {
                for (down = 0; down < 2; down++) {
                    opd_tensor *x = opd_sub_Scalar(opd_randint(most[k], OPD_INTS(counts[i]), OPD_INT64), OPD_V(most[k] / 2));
                    x = opd_to_dtype(x, types[type]);
                    opd_tensor *sorted[2];
                    const opd_value args[3] = {opd_value_tensor(x), opd_value_int(-1), opd_value_bool(down != 0)};
                    CHECK_OR_RETURN(opd_call_tensors(opd_find("aten::sort"), sorted, args, 3) == 0);
                    CHECK(opd_equal(sorted[0], opd_index_select(x, 0, sorted[1])));
                    const double *value = (const double *)opd_data(opd_to_dtype(sorted[0], OPD_FLOAT64));
                    const int64_t *place = (const int64_t *)opd_data(sorted[1]);
                    for (j = 1; j < counts[i]; j++) {
                        const double step = down ? value[j - 1] - value[j] : value[j] - value[j - 1];
                        if (!(step > 0 || (step == 0 && place[j] > place[j - 1]))) { break; }
                    }
                    CHECK_INT(j, counts[i]);
                }
            }
        }
    }
    CHECK_OK();
}
TEST(softmax_of_what_is_all_masked) {
    const float inf = HUGE_VALF, x[12] = {-inf, -inf, -inf, 0, -inf, 0, NAN, -inf, -inf, inf, 0, -inf};
    const float *y;
    opd_tensor *made = opd_safe_softmax(opd_tensor_from(x, OPD_INTS(4, 3), OPD_FLOAT32), -1);
    CHECK_OR_RETURN(made != NULL);
    y = opd_data_f32(made);
    CHECK(y[0] == 0 && y[1] == 0 && y[2] == 0 && y[3] == 0.5f && y[4] == 0 && y[5] == 0.5f);
    CHECK(isnan(y[6]) && isnan(y[7]) && isnan(y[8]) && isnan(y[9]));
    made = opd_safe_softmax(opd_zeros(OPD_INTS(2, 0), OPD_FLOAT32), -1);
    CHECK(made && opd_numel(made) == 0 && opd_size(made, 0) == 2);
    made = opd_safe_softmax(opd_full(OPD_INTS(), opd_value_double(-(double)inf), OPD_FLOAT64), 0);
    CHECK(made && opd_item_f64(made) == 0);
    CHECK_OK();
}
TEST(halves_beside_numbers) {                         /* a factor and a divisor are not made halves first */
    const float x[] = {3.01f, 1.5f, 7.3f, -0.83f, 12.9f, 5.05f};
    opd_tensor *f = opd_to_dtype(floats(x, 6), OPD_FLOAT16), *b = opd_to_dtype(floats(x, 6), OPD_BFLOAT16);
    opd_tensor *tenth = opd_full(opd_ints_of(NULL, 0), opd_value_double(0.1), OPD_FLOAT32);
    ARE(opd_to_dtype(opd_mul_Scalar(f, opd_value_double(0.1)), OPD_FLOAT32),
        0.301025390625, 0.1500244140625, 0.72998046875, -0.0830078125, 1.2900390625, 0.5048828125);
    ARE(opd_to_dtype(opd_mul(f, tenth), OPD_FLOAT32),
        0.301025390625, 0.1500244140625, 0.72998046875, -0.0830078125, 1.2900390625, 0.5048828125);
    ARE(opd_to_dtype(opd_mul(tenth, f), OPD_FLOAT32),
        0.30078125, 0.14990234375, 0.72998046875, -0.0830078125, 1.2890625, 0.5048828125);
    ARE(opd_to_dtype(opd_mul_(opd_clone(b), tenth), OPD_FLOAT32), 0.30078125, 0.150390625, 0.73046875, -0.0830078125, 1.2890625, 0.5078125);
    ARE(opd_to_dtype(opd_div_Scalar(b, opd_value_double(0.7)), OPD_FLOAT32), 4.3125, 2.140625, 10.4375, -1.1796875, 18.375, 7.21875);
    ARE(opd_to_dtype(CALL("aten::floor_divide.Scalar", f, 0.7), OPD_FLOAT32), 4, 2, 10, -2, 18, 7);
    ARE(opd_to_dtype(CALL("aten::div.Scalar_mode", f, 0.1, "trunc"), OPD_FLOAT32), 30, 15, 73, -8, 128, 50);
    ARE(opd_to_dtype(opd_add_Scalar(f, opd_value_double(0.1)), OPD_FLOAT32), 3.109375, 1.599609375, 7.40234375, -0.72998046875, 13, 5.15234375);
}
TEST(quotients_of_halves) {                           /* are halves before they are cut */
    const float x[] = {-12.8125f, 5.37890625f}, y[] = {-0.474609375f, 2}, u[] = {5.37890625f, 9}, v[] = {0.11956787109375f, 2};
    opd_tensor *b = opd_to_dtype(floats(y, 2), OPD_BFLOAT16), *f = opd_to_dtype(floats(v, 2), OPD_FLOAT16);
    ARE(opd_to_dtype(opd_div_Tensor_mode(opd_to_dtype(floats(x, 2), OPD_BFLOAT16), b, "trunc"), OPD_FLOAT32), 27, 2);
    ARE(opd_to_dtype(opd_div_Tensor_mode_(opd_to_dtype(floats(u, 2), OPD_FLOAT16), f, "trunc"), OPD_FLOAT32), 45, 4);
}
TEST(neighbours_of_halves) {
    const float least = ldexpf(1, -24), least_normal = ldexpf(1, -14);
    const float x[] = {0, 1, 1, -least_normal, 65504, -HUGE_VALF, least}, y[] = {-1, 2, 0, 0, HUGE_VALF, 0, 0};
    const float want[] = {-least, 1 + ldexpf(1, -10), 1 - ldexpf(1, -11), least - least_normal, HUGE_VALF, -65504, 0};
    opd_tensor *t = opd_nextafter(opd_to_dtype(floats(x, 7), OPD_FLOAT16), opd_to_dtype(floats(y, 7), OPD_FLOAT16));
    int i;
    CHECK_OR_RETURN(t && opd_dtype(t) == OPD_FLOAT16);
    t = opd_to_dtype(t, OPD_FLOAT32);
    for (i = 0; i < 7; i++) { CHECK(opd_data_f32(t)[i] == want[i]); }
}
TEST(zero_to_complex_powers) {                        /* the derivative by the exponent is 0 for real ones only */
    const float x[] = {0, 0, 0, 0, 0, 0}, e[] = {0, 1, 1, 1, 2, 0};
    opd_tensor *base = opd_view_as_complex(opd_view(floats(x, 6), OPD_INTS(3, 2)));
    opd_tensor *power = opd_clone(opd_view_as_complex(opd_view(floats(e, 6), OPD_INTS(3, 2)))), *grad;
    (void)opd_tensor_set_requires_grad(power, true);
    opd_backward(opd_sum(opd_abs(opd_pow_Tensor_Tensor(base, power))));
    opd_error_clear();
    grad = opd_tensor_grad(power);
    CHECK_OR_RETURN(grad != NULL);
    grad = opd_contiguous(opd_view_as_real(opd_resolve_conj(opd_detach(grad))));
    CHECK(isnan(opd_data_f32(grad)[0]) && isnan(opd_data_f32(grad)[2]));
    CHECK(opd_data_f32(grad)[4] == 0 && opd_data_f32(grad)[5] == 0);
}
static void lie(const opd_tensor *t, opd_ints want) {
    int64_t i;
    CHECK_OK();
    CHECK_OR_RETURN(t && opd_ndim(t) == want.n);
    for (i = 0; i < want.n; i++) { CHECK_INT(opd_strides(t)[i], want.data[i]); }
}
TEST(order_of_dims_of_results) {                      /* is that of the walk over the arguments */
    opd_tensor *a = opd_permute(opd_view(counted(24), OPD_INTS(2, 3, 4)), OPD_INTS(2, 0, 1)), *c = opd_view(counted(24), OPD_INTS(4, 2, 3));
    lie(opd_complex(a, c), OPD_INTS(1, 12, 4));
    lie(opd_complex(c, a), OPD_INTS(6, 3, 1));
    lie(opd_polar(a, opd_select(c, 0, 1)), OPD_INTS(1, 12, 4));
    CHECK(opd_equal(opd_imag(opd_complex(a, c)), c));
    a = opd_t(opd_view(opd_div_Scalar(counted(6), opd_value_int(8)), OPD_INTS(3, 2)));
    c = opd_view(opd_div_Scalar(counted(6), opd_value_int(8)), OPD_INTS(2, 3));
    lie(CALL("aten::binary_cross_entropy", c, a, OPD_NONE, 0), OPD_INTS(3, 1));
    lie(CALL("aten::binary_cross_entropy", a, c, OPD_NONE, 0), OPD_INTS(1, 2));
}
static bool hashed(opd_tensor *t, int count, const uint64_t *want) {
    return t && opd_dtype(t) == OPD_UINT64 && opd_numel(t) == count && memcmp(opd_data(t), want, (size_t)count * sizeof *want) == 0;
}
TEST(hashes_of_tensors) {                             /* the numbers are PyTorch's */
    const uint64_t columns[] = {UINT64_C(4613937818241073152), UINT64_C(9214364837600034816), UINT64_C(5629499534213120)};
    const uint64_t rows[] = {UINT64_C(9218868437227405312), UINT64_C(4615063718147915776)}, all[] = {UINT64_C(4610560118520545280)};
    const uint64_t minus[] = {UINT64_MAX}, two[] = {UINT64_C(4611686018427387904)};
    const int8_t less[] = {-1};
    opd_tensor *t = opd_view(counted(6), OPD_INTS(2, 3)), *out = opd_empty(OPD_INTS(3), OPD_UINT64);
    CHECK(hashed(opd_hash_tensor(t), 1, all));
    CHECK(hashed(opd_hash_tensor_full(t, OPD_INTS(0), false, 0), 3, columns));
    CHECK(hashed(opd_hash_tensor_full(opd_t(opd_contiguous(opd_t(t))), OPD_INTS(0), false, 0), 3, columns));
    CHECK(hashed(opd_hash_tensor_full(t, OPD_INTS(-1), true, 0), 2, rows));
    CHECK(hashed(opd_hash_tensor_full(opd_to_dtype(t, OPD_BFLOAT16), OPD_INTS(1, 0), true, 0), 1, all));
    CHECK(hashed(opd_hash_tensor(opd_tensor_from(less, OPD_INTS(1), OPD_INT8)), 1, minus));
    CHECK(hashed(opd_hash_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_int(2), OPD_FLOAT32)), 1, two));
    CHECK(hashed(CALL("aten::hash_tensor.out", t, OPD_INTS(0), false, 0, out), 3, columns));
    CHECK_INT(opd_numel(opd_hash_tensor_full(opd_empty(OPD_INTS(0, 3), OPD_FLOAT32), OPD_INTS(1), false, 0)), 0);
    CHECK_OK();
    CHECK(!CALL("aten::hash_tensor.out", t, OPD_INTS(0), false, 0, opd_empty(OPD_INTS(3), OPD_INT64)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected result to be of dtype uint64");
    CHECK(!opd_hash_tensor(opd_empty(OPD_INTS(0, 3), OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_INDEX, "Expected reduction dim to be specified");
    CHECK(!opd_hash_tensor_full(t, OPD_INTS(0), false, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Unknown hash_tensor mode: 1");
}
TEST(parts_side_by_side_are_refused) {                /* _chunk_cat */
    opd_tensor *list[] = {opd_view(counted(6), OPD_INTS(2, 3)), counted(3)};
    CHECK(!opd__chunk_cat(opd_tensors_of(list, 2), 1, 2));
    CHECK_ERROR(OPD_ERROR_SHAPE, "_chunk_cat expects dim < ndim for all input tensors");
    CHECK(!opd__chunk_cat(opd_tensors_of(list, 2), 0, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "_chunk_cat expects positive num_chunks");
    list[1] = opd_empty(OPD_INTS(0), OPD_FLOAT32);
    CHECK(!opd__chunk_cat(opd_tensors_of(list, 2), 0, 2));
    CHECK_ERROR(OPD_ERROR_SHAPE, "_chunk_cat expects non-empty tensor");
}
TEST(products_of_bytes) {
    const int8_t a[] = {127, -128, 3, 127}, b[] = {127, 1, -128, 2};
    const uint8_t u[] = {255, 254, 3, 4};
    opd_tensor *second = opd_tensor_from(b, OPD_INTS(2, 2), OPD_INT8);
    opd_tensor *t = opd__int_mm(opd_tensor_from(a, OPD_INTS(2, 2), OPD_INT8), second);
    CHECK_OR_RETURN(t && opd_dtype(t) == OPD_INT32);
    ARE(opd_to_dtype(t, OPD_FLOAT32), 32513, -129, -15875, 257);
    ARE(opd_to_dtype(opd__int_mm(opd_tensor_from(u, OPD_INTS(2, 2), OPD_UINT8), second), OPD_FLOAT32), -127, 763, -131, 11);
    CHECK(!opd__int_mm(second, opd_tensor_from(u, OPD_INTS(2, 2), OPD_UINT8)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected mat2 to be int8");
}
TEST(alpha_dropout_in_place) {
    opd_tensor *t = opd_ones(OPD_INTS(1000), OPD_FLOAT32), *kept;
    CHECK(opd_alpha_dropout_(t, 0.5, true) == t);
    kept = opd_gt_Scalar(t, opd_value_int(0));       /* 0.8864 + 0.7792, -1.5584 + 0.7792 */
    CHECK(opd_allclose_full(t, opd_where_self(kept, opd_full(OPD_INTS(1), opd_value_double(1.66565), OPD_FLOAT32),
                                         opd_full(OPD_INTS(1), opd_value_double(-0.77919), OPD_FLOAT32)), 1e-3, 1e-3, false));
    CHECK(opd_feature_alpha_dropout_(t, 0.5, false) == t);
    CHECK(!opd_feature_alpha_dropout_(t, 0.5, true));
    CHECK_ERROR(OPD_ERROR_SHAPE, "Feature dropout requires at least 2 dimensions in the input");
    t = opd_chalf(opd_ones(OPD_INTS(2), OPD_FLOAT32));
    CHECK(t && opd_dtype(t) == OPD_COMPLEX32);
}
TEST(running_statistics_alone) {
    const float values[] = {1, 2, 3, 6};
    opd_tensor *const x = opd_tensor_from(values, OPD_INTS(2, 2), OPD_FLOAT32), *rets[2];
    opd_tensor *const mean = opd_zeros(OPD_INTS(2), OPD_FLOAT32), *const var = opd_ones(OPD_INTS(2), OPD_FLOAT32);
    CHECK_INT(opd_batch_norm_update_stats(rets, x, mean, var, 0.5), 0);
    ARE(rets[0], 2, 4);
    ARE(rets[1], 1, 4);
    ARE(mean, 1, 2);
    ARE(var, 1.5, 4.5);
    CHECK_INT(opd_batch_norm_update_stats(rets, opd_to_dtype(x, OPD_BFLOAT16), mean, NULL, 0.5), 0);
    CHECK(opd_dtype(rets[0]) == OPD_FLOAT32);
    ARE(mean, 1.5, 3);
    CHECK_INT(opd_batch_norm_update_stats(rets, opd_narrow(x, 0, 0, 1), NULL, var, 0.5), 0);       /* of one number */
    ARE(rets[1], 0, 0);
    CHECK(isnan(opd_item_f64(opd_select(var, 0, 1))));
    CHECK_INT(opd_batch_norm_update_stats(rets, opd_empty(OPD_INTS(0, 2), OPD_FLOAT32), mean, var, 0.5), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "at least one element");
    CHECK_INT(opd_batch_norm_update_stats(rets, x, opd_zeros(OPD_INTS(3), OPD_FLOAT32), NULL, 0.5), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "running_mean should contain 2 elements not 3");
    CHECK_INT(opd_batch_norm_update_stats(rets, x, opd_zeros(OPD_INTS(2), OPD_FLOAT64), NULL, 0.5), -1);
    CHECK_ERROR(OPD_ERROR_DTYPE, "expected scalar type float32");
    (void)opd_zero_(mean);                           /* a call that fails changes neither statistic */
    CHECK_INT(opd_batch_norm_update_stats(rets, x, mean, opd_expand(opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_INTS(2)), 0.5), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "refers to a single memory location");
    ARE(mean, 0, 0);
}
TEST(batches_of_nothing) {                            /* leave running statistics as they are; sums over them are 0 */
    opd_tensor *mean = counted(3), *var = opd_ones(OPD_INTS(3), OPD_FLOAT32), *w = opd_ones(OPD_INTS(3), OPD_FLOAT32), *b = counted(3), *y;
    (void)opd_tensor_set_requires_grad(w, true);
    (void)opd_tensor_set_requires_grad(b, true);
    y = CALL("aten::batch_norm", opd_empty(OPD_INTS(0, 3, 4), OPD_FLOAT32), w, b, mean, var, true, 0.1, 1e-5, false);
    CHECK(y && opd_numel(y) == 0);
    ARE(mean, 0, 1, 2);
    ARE(var, 1, 1, 1);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_OR_RETURN(opd_tensor_grad(w) && opd_tensor_grad(b));
    ARE(opd_tensor_grad(w), 0, 0, 0);
    ARE(opd_tensor_grad(b), 0, 0, 0);
    y = CALL("aten::instance_norm", opd_empty(OPD_INTS(2, 3, 0), OPD_FLOAT32), w, b, OPD_NONE, OPD_NONE, true, 0.1, 1e-5, false);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    ARE(opd_tensor_grad(w), 0, 0, 0);
}
TEST(windows_of_bools) {                              /* are copied; what meets in one place is true if any is */
    const bool x[] = {true, false, false, false, true, false, false, false, false};
    const bool want[] = {true, false, false, true, false, false, true, false, false, true, false, false, true, false, false, false};
    opd_tensor *t = opd_view(opd_tensor_from(x, OPD_INTS(9), OPD_BOOL), OPD_INTS(1, 1, 3, 3)), *columns, *back;
    columns = CALL("aten::im2col", t, OPD_INTS(2, 2), OPD_INTS(1, 1), OPD_INTS(0, 0), OPD_INTS(1, 1));
    CHECK_OR_RETURN(columns && opd_dtype(columns) == OPD_BOOL && opd_numel(columns) == 16);
    CHECK(memcmp(opd_data(columns), want, sizeof want) == 0);
    back = CALL("aten::col2im", columns, OPD_INTS(3, 3), OPD_INTS(2, 2), OPD_INTS(1, 1), OPD_INTS(0, 0), OPD_INTS(1, 1));
    CHECK(back && opd_dtype(back) == OPD_BOOL && opd_equal(back, t));
}
TEST(padding_of_conv_tbc_is_not_multiplied) {
    opd_tensor *weight = opd_full(OPD_INTS(3, 1, 1), opd_value_double(1), OPD_FLOAT32), *bias = opd_zeros(OPD_INTS(1), OPD_FLOAT32);
    opd_fill_(opd_select(weight, 0, 0), opd_value_double(INFINITY));
    opd_tensor *t = opd_conv_tbc_full(opd_view(counted(3), OPD_INTS(3, 1, 1)), weight, bias, 1);
    CHECK_OR_RETURN(t && opd_numel(t) == 3);          /* rows 0, 1, 2: no row stands before the first */
    CHECK_NEAR(opd_item_f64(opd_select(opd_view(t, OPD_INTS(3)), 0, 0)), 1, 0);
    CHECK(isnan(opd_item_f64(opd_select(opd_view(t, OPD_INTS(3)), 0, 1))));        /* 0 infinity */
    CHECK(isinf(opd_item_f64(opd_select(opd_view(t, OPD_INTS(3)), 0, 2))));
    CHECK_INT(opd_size(opd_conv_tbc_full(opd_ones(OPD_INTS(1, 2, 1), OPD_FLOAT32), weight, bias, 4), 0), 7);
    CHECK_OK();
}
TEST(products_widen_halves) {
    opd_tensor *a = opd_to_dtype(opd_view(counted(6), OPD_INTS(2, 3)), OPD_BFLOAT16), *b = opd_t(a);
    const opd_value one = opd_value_int(1);
    opd_tensor *t = opd_mm_dtype(a, b, OPD_FLOAT32), *batches = opd_unsqueeze(a, 0);
    CHECK_OR_RETURN(t && opd_dtype(t) == OPD_FLOAT32);
    ARE(t, 5, 14, 14, 50);
    ARE(opd_bmm_dtype(batches, opd_transpose(batches, 1, 2), OPD_FLOAT32), 5, 14, 14, 50);
    t = opd_full(OPD_INTS(2), opd_value_double(0.25), OPD_FLOAT32);
    ARE(opd_addmm_dtype_full(t, a, b, OPD_FLOAT32, opd_value_int(4), one), 6, 15, 15, 51);
    ARE(opd_baddbmm_dtype(t, batches, opd_transpose(batches, 1, 2), OPD_FLOAT32), 5.25f, 14.25f, 14.25f, 50.25f);
    CHECK(opd_dtype(opd_mm_dtype(a, b, OPD_BFLOAT16)) == OPD_BFLOAT16);
    CHECK(!opd_mm_dtype(a, b, OPD_FLOAT64));
    CHECK_ERROR(OPD_ERROR_DTYPE, "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
    CHECK(!opd_mm_dtype(a, opd_to_dtype(b, OPD_FLOAT32), OPD_FLOAT32));
    CHECK_ERROR(OPD_ERROR_DTYPE, "input dtypes must be the same");
    CHECK(!opd_addmm_dtype(opd_to_dtype(t, OPD_FLOAT16), a, b, OPD_FLOAT32));
    CHECK_ERROR(OPD_ERROR_DTYPE, "self dtype must match either out_dtype or mat1 dtype");
    CHECK(!opd_baddbmm_dtype(opd_to_dtype(t, OPD_FLOAT16), batches, opd_transpose(batches, 1, 2), OPD_FLOAT32));
    CHECK_ERROR(OPD_ERROR_DTYPE, "self dtype must match either out_dtype or batch1 dtype");
    CHECK(!opd_addmm_dtype(t, a, opd_to_dtype(b, OPD_FLOAT32), OPD_FLOAT32));
    CHECK_ERROR(OPD_ERROR_DTYPE, "mat1 and mat2 must have the same dtype, but got bfloat16 and float32");
    CHECK(!opd_bmm_dtype(batches, opd_to_dtype(opd_transpose(batches, 1, 2), OPD_FLOAT32), OPD_FLOAT32));
    CHECK_ERROR(OPD_ERROR_DTYPE, "batch1 and batch2 must have the same dtype");
}
TEST(masks_of_softmax) {
    opd_tensor *x = opd_zeros(OPD_INTS(2, 1, 2, 2), OPD_FLOAT32), *mask = opd_zeros(OPD_INTS(2, 2), OPD_BOOL), *t;
    opd_fill_(opd_select(mask, 0, 0), opd_value_bool(true));
    t = opd__masked_softmax_full(x, mask, opd_value_int(3), opd_value_int(1));
    CHECK_OR_RETURN(t != NULL);                       /* nothing is left of the first batch */
    CHECK(isnan(opd_item_f64(opd_select(opd_view(t, OPD_INTS(8)), 0, 3))));
    CHECK_NEAR(opd_item_f64(opd_select(opd_view(t, OPD_INTS(8)), 0, 4)), 0.5, 1e-7);
    CHECK(!opd__masked_softmax(x, mask));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Mask Type should be defined");
    CHECK(!opd__masked_softmax_full(x, x, OPD_NONE, opd_value_int(2)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "Mask should be a boolean tensor");
    CHECK(!opd__masked_softmax_full(x, opd_zeros(OPD_INTS(3, 2), OPD_BOOL), OPD_NONE, opd_value_int(1)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "For mask_type == 1 mask shape should be (B, L)");
    CHECK(!opd__masked_softmax_full(x, mask, OPD_NONE, opd_value_int(2)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "For mask_type == 2 mask shape should match input shape");
    CHECK(!opd__masked_softmax_backward(t, t, mask));
    CHECK_ERROR(OPD_ERROR_SHAPE, "Mask shape should match grad shape");
}
TEST(circular_sides_and_kernels_are_checked) {
    opd_tensor *x = opd_zeros(OPD_INTS(1, 2, 4), OPD_FLOAT32);
    const int64_t sides[] = {1, 1}, over[] = {5, 0}, kernel[] = {2, 2};
    CHECK(!opd__pad_circular(opd_zeros(OPD_INTS(4), OPD_FLOAT32), opd_ints_of(sides, 2)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "expected 1 or 2 non-padded dimensions, which would be equivalent to padding of length 0 or -2 respectively but got 2");
    CHECK(!opd__pad_circular(x, opd_ints_of(over, 2)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "Padding value causes wrapping around more than once.");
    CHECK(!opd_thnn_conv2d(opd_zeros(OPD_INTS(1, 2, 4, 4), OPD_FLOAT32), opd_zeros(OPD_INTS(3, 2, 2, 3), OPD_FLOAT32), opd_ints_of(kernel, 2)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "tensor.size[1] == 3 but got: dimension 4 and tensor.size[1] = 2");
    CHECK(!opd_thnn_conv2d(opd_zeros(OPD_INTS(1, 2, 4, 4), OPD_FLOAT32), opd_zeros(OPD_INTS(3, 2, 2, 3), OPD_FLOAT32), OPD_INTS(INT64_MAX, -2)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "kernel size should be greater than zero");
    CHECK(!opd_thnn_conv2d(opd_zeros(OPD_INTS(1, 2, 4, 4), OPD_FLOAT32), opd_zeros(OPD_INTS(3, 2, 2, 3), OPD_FLOAT32), OPD_INTS(INT64_MAX, 2)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "tensor.size[1] == 0 but got");
    CHECK(!opd_conv_tbc_full(x, opd_zeros(OPD_INTS(1, 4, 1), OPD_FLOAT32), opd_zeros(OPD_INTS(1), OPD_FLOAT32), INT64_MAX));
    opd_error_clear();
    CHECK(!opd_thnn_conv2d(x, opd_zeros(OPD_INTS(3, 2, 2, 3), OPD_FLOAT32), opd_ints_of(kernel, 2)));
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected 4D input tensor, but got: [1, 2, 4]");
}
TEST(strided_views_of_what_begins_within_its_memory) {
    opd_tensor *base = counted(6), *part = opd_narrow(base, 0, 2, 3), *src = opd_full(OPD_INTS(2), opd_value_int(9), OPD_FLOAT32);
    opd_tensor *gaps = opd_slice(base, 0, opd_value_int(1), OPD_NONE, 2), *out = opd_zeros(OPD_INTS(3), OPD_FLOAT32);
    ARE(opd_as_strided_scatter_full(part, src, OPD_INTS(2), OPD_INTS(1), opd_value_int(3)), 2, 9, 9);
    ARE(opd_as_strided_scatter_full(part, src, OPD_INTS(2), OPD_INTS(2), opd_value_int(0)), 9, 3, 4);
    ARE(opd_as_strided_scatter_full(part, src, OPD_INTS(2), OPD_INTS(1), OPD_NONE), 9, 9, 4);
    ARE(opd_as_strided_scatter_full(gaps, src, OPD_INTS(2), OPD_INTS(1), opd_value_int(2)), 1, 9, 5);
    ARE(CALL("aten::as_strided_scatter.out", gaps, src, OPD_INTS(2), OPD_INTS(2), 3, out), 1, 9, 9);
    ARE(base, 0, 1, 2, 3, 4, 5);
    CHECK(opd_strides(opd_as_strided_scatter_full(gaps, src, OPD_INTS(2), OPD_INTS(1), opd_value_int(2)))[0] == 2);
    CHECK(!opd_as_strided_scatter_full(part, src, OPD_INTS(2), OPD_INTS(4), opd_value_int(2)));
    CHECK_ERROR(OPD_ERROR_INDEX, "out of bounds for storage");
    opd_tensor_set_requires_grad(part, true);
    CHECK(!opd_as_strided_scatter_full(part, src, OPD_INTS(2), OPD_INTS(1), opd_value_int(3)));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "contiguous inputs with storage offset 0");
    opd_tensor *y = opd_as_strided_scatter_full(part, src, OPD_INTS(2), OPD_INTS(1), OPD_NONE);
    CHECK(y && opd_backward(opd_sum(y)) == 0);
    ARE(opd_tensor_grad(part), 0, 0, 1);
}
TEST(similarity_of_two_dtypes) {
    opd_tensor *x = opd_to_dtype(opd_view(counted(6), OPD_INTS(2, 3)), OPD_BFLOAT16), *y = opd_to_dtype(x, OPD_INT64);
    opd_tensor *t = opd_cosine_similarity(x, y);
    CHECK_OR_RETURN(t != NULL);
    CHECK(opd_dtype(t) == OPD_BFLOAT16);
    CHECK_NEAR(opd_item_f64(opd_select(t, 0, 1)), 1, 0.01);
}
/* Columns of one element, of every size of an element, between wider ones. */
TEST(columns_are_joined) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_BFLOAT16, OPD_FLOAT32, OPD_INT64, OPD_COMPLEX128};
    for (int k = 0; k < 5; k++) {
        OPD_SCOPE {
            opd_tensor *all = opd_to_dtype(opd_view(counted(35), OPD_INTS(7, 5)), dtypes[k]), *parts[5], *columns[3];
            for (int i = 0; i < 5; i++) { parts[i] = opd_contiguous(opd_select(all, 1, i)); }
            CHECK(opd_equal(opd_stack(opd_tensors_of(parts, 5), -1), all));
            columns[0] = opd_unsqueeze(parts[0], 1);
            columns[1] = opd_contiguous(opd_narrow(all, 1, 1, 3));
            columns[2] = opd_unsqueeze(parts[4], 1);
            CHECK(opd_equal(opd_cat(opd_tensors_of(columns, 3), 1), all));
        }
    }
}
/* Vectors shorter than eps count as long as eps, also in the gradient; squares of long ones need not be floats. */
TEST(similarity_of_short_and_long_vectors) {
    static const float rows[] = {1e-10f, 0, 3e25f, 4e25f, 0, 0}, others[] = {2, 0, 6e25f, 8e25f, 0, 5};
    opd_tensor *x = opd_tensor_from(rows, OPD_INTS(3, 2), OPD_FLOAT32), *y = opd_tensor_from(others, OPD_INTS(3, 2), OPD_FLOAT32);
    opd_tensor_set_requires_grad(x, true);
    opd_tensor *t = opd_cosine_similarity(x, y);
    CHECK_OR_RETURN(t && opd_backward(opd_sum(t)) == 0);
    CHECK_NEAR(opd_data_f32(t)[0], 0.01, 1e-8);
    CHECK_NEAR(opd_data_f32(t)[1], 1, 1e-6);
    CHECK_NEAR(opd_data_f32(t)[2], 0, 0);
    const float *grad = opd_data_f32(opd_tensor_grad(x));
    CHECK_NEAR(grad[0], 1e8, 10);
    CHECK_NEAR(grad[5], 1e8, 10);
    CHECK(fabsf(grad[1]) <= 0 && fabsf(grad[2]) < 1e-25f && fabsf(grad[3]) < 1e-25f && fabsf(grad[4]) <= 0);
}
static void lies(const opd_tensor *t, int n, const int64_t *want) {
    CHECK_OR_RETURN(t && opd_ndim(t) == n);
    for (int i = 0; i < n; i++) { CHECK(opd_strides(t)[i] == want[i]); }
}
#define LIES(t, n, ...) do { const int64_t want_[] = {__VA_ARGS__}; lies(t, n, want_); } while (0)
TEST(picked_elements_lie_in_the_order_of_dims_that_they_had) {
    static const int64_t two[] = {0, 2}, six[] = {0, 1, 1, 2, 0, 0};
    opd_tensor *a = opd_view(counted(60), OPD_INTS(3, 4, 5)), *t, *flat;
    opd_tensor *i = opd_tensor_from(two, OPD_INTS(2), OPD_INT64), *ii = opd_tensor_from(six, OPD_INTS(3, 2), OPD_INT64);
    opd_tensor *turned = opd_permute(a, OPD_INTS(2, 1, 0)), *list[3] = {i, NULL, NULL};
    opd_tensor *last = opd_permute(opd_zeros(OPD_INTS(2, 4, 5, 3), OPD_FLOAT32), OPD_INTS(0, 3, 1, 2));
    t = opd_index(turned, opd_tensors_of(list, 1));
    flat = opd_index(opd_contiguous(turned), opd_tensors_of(list, 1));
    LIES(t, 3, 12, 1, 4);
    LIES(flat, 3, 12, 3, 1);
    CHECK(opd_equal(t, flat));
    list[1] = i;
    LIES(opd_index(turned, opd_tensors_of(list, 2)), 2, 3, 1);
    list[0] = NULL;
    LIES(opd_index(turned, opd_tensors_of(list, 2)), 3, 1, 5, 10);
    list[1] = ii;
    t = opd_index(opd_permute(a, OPD_INTS(1, 2, 0)), opd_tensors_of(list, 2));
    LIES(t, 4, 1, 8, 4, 24);
    CHECK(opd_equal(t, opd_index(opd_contiguous(opd_permute(a, OPD_INTS(1, 2, 0))), opd_tensors_of(list, 2))));
    list[1] = opd_t(ii);
    LIES(opd_index(turned, opd_tensors_of(list, 2)), 4, 1, 5, 10, 30);
    list[0] = opd_t(ii);
    LIES(opd_index(a, opd_tensors_of(list, 1)), 4, 20, 40, 5, 1);
    list[0] = opd_narrow(ii, 1, 0, 1);
    list[1] = i;
    LIES(opd_index(opd_permute(a, OPD_INTS(0, 2, 1)), opd_tensors_of(list, 2)), 3, 8, 4, 1);
    list[0] = list[1] = NULL;
    list[2] = i;
    LIES(opd_index(last, opd_tensors_of(list, 3)), 4, 30, 1, 3, 6);
    LIES(opd__unsafe_index_put(last, opd_tensors_of(list, 3), opd_zeros(OPD_INTS(1), OPD_FLOAT32)), 4, 60, 1, 15, 3);
    LIES(opd_index_put(turned, opd_tensors_of(list, 3), opd_zeros(OPD_INTS(1), OPD_FLOAT32), false), 3, 1, 5, 20);
}
TEST(expanded_tensors_are_filled) {
    opd_tensor *x = opd_zeros(OPD_INTS(3, 1), OPD_FLOAT32), *all = opd_expand(x, OPD_INTS(3, 4));
    CHECK(opd_fill_(all, opd_value_int(2)) == all);
    ARE(x, 2, 2, 2);
    CHECK(!CALL("aten::fill_.Tensor", all, opd_full(OPD_INTS(), opd_value_int(3), OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than one element of the written-to tensor");
    ARE(x, 2, 2, 2);
    CHECK(opd_zero_(all) == all);
    ARE(x, 0, 0, 0);
    CHECK(!opd_add_(all, opd_ones(OPD_INTS(1), OPD_FLOAT32)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than one element of the written-to tensor");
}
TEST(lists_without_repetition_along_their_only_dim) {
    opd_tensor *rets[3], *x = opd_zeros(OPD_INTS(5), OPD_INT64);
    CHECK(opd_unique_consecutive_full(rets, x, false, true, opd_value_int(0)) == 0);
    CHECK(opd_numel(rets[0]) == 1 && opd_numel(rets[1]) == 0 && opd_item_f64(rets[2]) == 5);
    CHECK(opd_unique_consecutive_full(rets, x, false, true, opd_value_int(-1)) == 0);
    CHECK(opd_numel(rets[1]) == 5);
}
TEST(bags_of_doubles_say_which_bag_an_index_is_in) {
    opd_tensor *rets[4], *w = opd_ones(OPD_INTS(5, 3), OPD_FLOAT32), *offsets = opd_zeros(OPD_INTS(1), OPD_INT64);
    opd_tensor *at = opd_arange_full(opd_value_int(4), opd_value_int(OPD_INT64), OPD_NONE, OPD_NONE, OPD_NONE);
    CHECK(opd_embedding_bag(rets, w, at, offsets) == 0 && opd_numel(rets[1]) == 0);
    CHECK(opd_embedding_bag(rets, opd_to_dtype(w, OPD_FLOAT64), at, offsets) == 0 && opd_numel(rets[1]) == 4);
}
TEST(masks_of_bytes_are_refused) {
    opd_tensor *x = counted(3), *bytes = opd_to_dtype(opd_gt_Scalar(x, opd_value_int(0)), OPD_UINT8);
    CHECK(opd_masked_fill_Scalar(x, bytes, opd_value_int(2)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "masked_fill only supports boolean masks, but got mask with dtype uint8");
    CHECK(CALL("aten::masked_fill_.Tensor", x, bytes, opd_full(OPD_INTS(), opd_value_int(3), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "masked_fill only supports boolean masks, but got mask with dtype uint8");
    CHECK(opd_masked_select(x, bytes) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "masked_select: expected BoolTensor for mask");
    ARE(x, 0, 1, 2);
}
TEST(shifts_of_no_dims_are_refused) {
    CHECK(opd_fft_fftshift_full(counted(4), OPD_INTS()) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "`shifts` required");
    CHECK(opd_fft_ifftshift_full(counted(4), OPD_INTS()) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "`shifts` required");
}
/* torch.nn.functional.binary_cross_entropy_with_logits of 0 1 2 and 1 1 1, weight 1 and pos_weight 2 in float64 */
TEST(cross_entropy_of_two_dtypes_has_the_targets) {
    opd_tensor *x = counted(3), *y = opd_ones(OPD_INTS(3), OPD_FLOAT32), *two = opd_full(OPD_INTS(3), opd_value_int(2), OPD_FLOAT64);
    CHECK_INT(opd_dtype(opd_binary_cross_entropy_with_logits(opd_to_dtype(x, OPD_FLOAT64), y)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_binary_cross_entropy_with_logits(x, opd_to_dtype(y, OPD_FLOAT64))), OPD_FLOAT64);
    ARE(opd_binary_cross_entropy_with_logits_full(x, y, two, two, 0), 2.7725887, 1.2530467, 0.5077120);
    CHECK(opd_binary_cross_entropy_with_logits(x, opd_to_dtype(y, OPD_INT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "result type float32 can't be cast to the desired output type int64");
}
TEST(groups_of_no_elements_are_refused) {
    CHECK(opd_group_norm(opd_zeros(OPD_INTS(1, 2, 0), OPD_FLOAT32), 1, NULL, NULL, 1e-5) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected HxW to be greater than 0, got 0");
    CHECK(opd_group_norm(opd_zeros(OPD_INTS(0, 2, 3), OPD_FLOAT32), 1, NULL, NULL, 1e-5) != NULL);
    CHECK_OK();
}
TEST(a_complex_convolution_wants_its_bias_as_others_do) {
    opd_tensor *x = opd_ones(OPD_INTS(1, 2, 4, 4), OPD_COMPLEX64), *w = opd_ones(OPD_INTS(3, 2, 2, 2), OPD_COMPLEX64);
    CHECK(CALL("aten::conv2d", x, w, opd_ones(OPD_INTS(1, 3), OPD_COMPLEX64)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "expected bias to be 1-dimensional with 3 elements, but got bias of size [1, 3] instead");
    CHECK(CALL("aten::conv2d", x, w, opd_ones(OPD_INTS(1), OPD_COMPLEX64)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "expected bias to be 1-dimensional with 3 elements, but got bias of size [1] instead");
    CHECK(CALL("aten::conv2d", x, w, opd_ones(OPD_INTS(3), OPD_COMPLEX64)) != NULL);
    CHECK_OK();
}
TEST(random_integers_below_a_tensor) {
    opd_tensor *x = opd_zeros(OPD_INTS(1000), OPD_FLOAT32), *five = opd_full(OPD_INTS(), opd_value_int(5), OPD_INT64);
    opd_tensor *r = opd_randint_like_Tensor(x, five);
    CHECK_OK();
    CHECK_INT(opd_dtype(r), OPD_FLOAT32);
    CHECK(opd_item_f64(opd_max(r)) == 4 && opd_item_f64(opd_min(r)) == 0);
    CHECK(opd_randint_like_Tensor(x, opd_zeros(OPD_INTS(2), OPD_INT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "high must be a scalar tensor and on CPU");
}
/* Images of bytes, [1, 2, 5, 4] with (37 i + 11) mod 256, resized to 3 x 6; without and with align_corners. */
TEST(bytes_are_resized_as_pytorch_rounds_them) {
    static const char *const names[] = {"aten::upsample_bilinear2d", "aten::upsample_bicubic2d", "aten::_upsample_bilinear2d_aa", "aten::_upsample_bicubic2d_aa"};
    static const unsigned char want[4][2][36] = {
        {{60, 79, 103, 128, 111, 86, 51, 70, 94, 119, 144, 162, 127, 146, 156, 124, 135, 153, 203, 137, 75, 100, 125, 143, 23, 42, 66, 91, 116, 134, 99, 118, 142, 167, 149, 125},
         {11, 33, 55, 78, 100, 122, 51, 73, 95, 118, 140, 162, 91, 113, 135, 158, 180, 202, 239, 108, 27, 50, 72, 94, 23, 45, 67, 90, 112, 134, 63, 85, 107, 130, 152, 174}},
        {{61, 79, 110, 138, 112, 76, 48, 66, 96, 117, 147, 165, 130, 157, 165, 118, 126, 152, 221, 138, 66, 99, 132, 150, 20, 38, 68, 89, 119, 137, 102, 120, 152, 178, 154, 116},
         {11, 30, 57, 76, 103, 122, 51, 70, 97, 116, 143, 162, 91, 110, 137, 156, 183, 202, 239, 101, 5, 42, 75, 94, 23, 42, 69, 88, 115, 134, 63, 82, 109, 128, 155, 174}},
        {{74, 93, 117, 142, 113, 76, 108, 127, 141, 129, 116, 105, 137, 156, 162, 114, 121, 139, 193, 139, 89, 114, 139, 157, 80, 99, 123, 148, 144, 134, 109, 128, 152, 177, 147, 111},
         {80, 95, 117, 139, 139, 96, 125, 140, 162, 127, 104, 107, 118, 133, 155, 139, 135, 158, 162, 133, 89, 111, 133, 156, 97, 112, 134, 156, 159, 124, 90, 105, 127, 149, 158, 143}},
        {{69, 86, 117, 153, 115, 71, 112, 133, 150, 130, 110, 97, 135, 159, 166, 104, 116, 144, 200, 138, 77, 109, 143, 165, 74, 96, 130, 158, 149, 132, 107, 124, 153, 184, 144, 101},
         {74, 87, 114, 150, 149, 91, 126, 145, 166, 124, 95, 105, 114, 130, 154, 139, 138, 169, 173, 137, 86, 101, 132, 163, 89, 106, 138, 168, 166, 117, 86, 100, 126, 152, 161, 145}},
    };
    unsigned char v[40];
    int i, k, n;
    for (i = 0; i < 40; i++) { v[i] = (unsigned char)(37 * i + 11); }
    for (k = 0; k < 8; k++) {
        opd_tensor *t = OPD_CALL(opd_find(names[k / 2]), opd_tensor_from(v, OPD_INTS(1, 2, 5, 4), OPD_UINT8), OPD_INTS(3, 6), k % 2 == 1);
        CHECK_OK();
        CHECK_OR_RETURN(t && opd_dtype(t) == OPD_UINT8 && opd_numel(t) == 36);
        for (i = n = 0; i < 36; i++) { n += ((const unsigned char *)opd_data(t))[i] == want[k / 2][k % 2][i]; }
        CHECK_INT(n, 36);
    }
}
/* Numbers beside bfloat16, and steps that are rounded, as PyTorch's kernels have them: of (7 i mod 23 - 11) / 8 * 1.05.
   Sums are those of its vectors (of 64 equal elements): what is left over of them PyTorch rounds once more. */
static void halves_are(opd_tensor *t, const double *want, int n, const char *text) {
    int i, right = 0;
    CHECK_OK();
    CHECK_OR_RETURN(t && opd_dtype(t) == OPD_BFLOAT16 && opd_numel(t) == n);
    t = opd_to_dtype(t, OPD_FLOAT32);
    for (i = 0; i < n; i++) {
        const double x = (double)opd_data_f32(t)[i];
        right += x == want[i] || (x != x && want[i] != want[i]);
    }
    if (right != n) { printf("%s: %d of %d\n", text, right, n); }
    CHECK_INT(right, n);
}
TEST(steps_of_halves_are_rounded_as_in_pytorch) {
    static const double add[] = {-0.328125, -0.96875, -1.6171875, 2.875, -0.7890625, -1.4296875, 3.0625, -0.6015625, -1.25, 3.25,
        -0.421875, -1.0703125, -1.7109375, 2.796875, -0.87890625, -1.5234375, 2.96875, -0.6953125, -1.34375, 3.15625,
        -0.5078125, -1.15625, -1.8046875};
    static const double sub[] = {-1.640625, -0.4453125, 0.75, 1.0390625, -0.7890625, 0.40625, 0.69140625, -1.125, 0.06640625, 0.353515625,
        -1.46875, -0.275390625, 0.91796875, 1.2109375, -0.6171875, 0.578125, 0.86328125, -0.95703125, 0.2373046875, 0.5234375,
        -1.296875, -0.1044921875, 1.09375};
    static const double softshrink[] = {-1.140625, -0.22265625, 0.09375, 1.015625, -0.48828125, 0.0, 0.74609375, -0.74609375, -0.0, 0.48828125,
        -1.015625, -0.09375, 0.22265625, 1.140625, -0.35546875, 0.0, 0.87890625, -0.6171875, 0.0, 0.6171875,
        -0.87890625, -0.0, 0.35546875};
    static const double rad2deg[] = {-83.0, -30.0, 22.625, 75.0, -45.25, 7.5, 60.0, -60.0, -7.5, 45.25,
        -75.0, -22.625, 30.0, 83.0, -37.5, 15.0, 67.5, -52.5, 0.0, 52.5,
        -67.5, -15.0, 37.5};
    static const double log_sigmoid[] = {-1.65625, -0.98828125, -0.515625, -0.23828125, -1.1640625, -0.62890625, -0.30078125, -1.3515625, -0.76171875, -0.375,
        -1.5546875, -0.91015625, -0.46484375, -0.2119140625, -1.0703125, -0.5703125, -0.267578125, -1.2578125, -0.69140625, -0.3359375,
        -1.4453125, -0.83203125, -0.41796875};
    static const double glu[] = {-0.58203125, -0.328125, 0.318359375, 0.44921875, -0.4453125, 0.10009765625, 0.298828125, -0.5234375, -0.09375, 0.185546875,
        -0.5703125};
    static const double logit[] = {-0.57421875, -1.890625, -2.21875, -0.71875, -1.40625, -3.390625, -1.03125, -1.03125, -3.390625, -1.40625,
        -0.71875, -2.21875, -1.890625, -0.57421875, -1.625, -2.65625, -0.8671875, -1.2109375, -INFINITY, -1.2109375,
        -0.8671875, -2.65625, -1.625};
    static const double logit_eps[] = {-0.57421875, -1.890625, -2.1875, -0.71875, -1.40625, -2.1875, -1.03125, -1.03125, -2.1875, -1.40625,
        -0.71875, -2.1875, -1.890625, -0.57421875, -1.625, -2.1875, -0.8671875, -1.2109375, -2.1875, -1.2109375,
        -0.8671875, -2.1875, -1.625};
    static const double xlogy[] = {1.46875, 1.0625, -0.9140625, -1.46875, 1.28125, -0.447265625, -1.40625, 1.40625, 0.447265625, -1.28125,
        1.46875, 0.9140625, -1.0625, -1.46875, 1.1875, -0.71484375, -1.4375, 1.3515625, 0.0, -1.3515625,
        1.4375, 0.71484375, -1.1875};
    opd_tensor *x, *y, *p;
    const int64_t first = 0;
    float v[23];
    int i;
    for (i = 0; i < 23; i++) { v[i] = (float)((i * 7 % 23 - 11) / 8. * 1.05); }
    x = opd_to_dtype(floats(v, 23), OPD_BFLOAT16);
    y = opd_flip(x, opd_ints_of(&first, 1));
    p = opd_clamp_max(opd_div_Scalar(opd_abs(x), opd_value_int(4)), opd_value_double(.98));
    halves_are(opd_add_full(x, y, opd_value_double(1.7)), add, 23, "add");
    halves_are(opd_sub_full(x, y, opd_value_double(.3)), sub, 23, "sub");
    halves_are(opd_softshrink_full(x, opd_value_double(.3)), softshrink, 23, "softshrink");
    halves_are(opd_rad2deg(x), rad2deg, 23, "rad2deg");
    halves_are(opd_log_sigmoid(x), log_sigmoid, 23, "log_sigmoid");
    halves_are(opd_glu(opd_narrow(x, 0, 0, 22)), glu, 11, "glu");
    halves_are(opd_logit(p), logit, 23, "logit");
    halves_are(opd_logit_full(p, opd_value_double(.1)), logit_eps, 23, "logit_eps");
    halves_are(opd_xlogy(x, p), xlogy, 23, "xlogy");
}
/* Where a step of the search for a smaller range does not change a large number, the search ends. */
TEST(ranges_of_large_numbers) {
    static const float numbers[8] = {1e8f, 1e8f + 64, 1e8f + 8, 1e8f + 16, 1e8f + 24, 1e8f + 32, 1e8f + 40, 1e8f + 48};
    OPD_SCOPED;
    opd_tensor *x = opd_reshape(floats(numbers, 8), OPD_INTS(1, 8)), *codes, *back;
    codes = CALL("quantized::embedding_bag_4bit_prepack", x, OPD_V(true), OPD_V(200), OPD_V(0.16));
    back = CALL("quantized::embedding_bag_4bit_unpack", codes);
    CHECK_OK();
    CHECK(codes && opd_size(codes, 1) == 8 && back && opd_size(back, 1) == 8);
}
/* A mapping to a row of a weight without rows. */
TEST(rows_of_an_empty_weight) {
    static const int32_t mapping[2] = {0, -1};
    static const int64_t ids[1] = {0};
    OPD_SCOPED;
    opd_tensor *weight = opd_zeros(OPD_INTS(0, 12), OPD_UINT8), *map = opd_tensor_from(mapping, OPD_INTS(2), OPD_INT32);
    opd_tensor *indices = opd_tensor_from(ids, OPD_INTS(1), OPD_INT64), *offsets = opd_zeros(OPD_INTS(1), OPD_INT64);
    CHECK(!CALL("quantized::embedding_bag_byte_rowwise_offsets", weight, indices, offsets, OPD_V(false), OPD_V(0), OPD_V(true),
                (opd_tensor *)NULL, map, OPD_V(false)));
    CHECK_STR(opd_error_message(), "quantized::embedding_bag_byte_rowwise_offsets: index 0 is 0, but the weight has rows 0 to -1");
    opd_error_clear();
}
