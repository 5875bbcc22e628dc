/* Values, derivatives and errors at the edges of what operators take, as PyTorch 2.15 has them. */
#include "check.h"

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
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"cumsum_out_cpu\" not implemented for 'Bool'");
    CHECK(CALL("aten::cumprod_", b, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"cumprod_out_cpu\" not implemented for 'Bool'");
    CHECK_INT(opd_item_i64(opd_select(opd_cumsum(b, 0), 0, 2)), 2);
}
TEST(outs_of_their_own_dtype) {
    const int64_t at[] = {2, 0};
    opd_tensor *index = opd_tensor_from(at, OPD_INTS(2), OPD_INT64);
    CHECK(CALL("aten::gather.out", counted(3), 0, index, false, opd_zeros(OPD_INTS(2), OPD_FLOAT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype");
    CHECK(CALL("aten::multinomial.out", counted(3), 2, false, OPD_NONE, opd_zeros(OPD_INTS(2), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype Long");
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
            (void)opd_unpack_dual(CALL("aten::linalg_vector_norm", opd_make_dual(opd_zeros_like(ones), ones), orders[i]), &tangent);
            ARE(tangent, 0);
            (void)opd_unpack_dual(CALL("aten::linalg_vector_norm", opd_make_dual(floats(two, 3), ones), orders[i]), &tangent);
            ARE(tangent, 1);
        } }
    }
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
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an element is None");
    v = opd_value_tensor(opd_tensor_new_on(OPD_INTS(3), OPD_FLOAT32, opd_device_of(OPD_META, -1)));
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
CHECK_MAIN()
