/* _foreach_ operators: one call for each tensor of a list, errors, gradients. */
#include "../../opdispatch.h"
#include "../cases.h"

#define CALL(name, ...) ({ static opd_op *op_; OPD_CALL(OPD_OP(&op_, name), __VA_ARGS__); })
static opd_tensor *filled(int64_t count, double value) { return opd_full(OPD_INTS(count), OPD_V(value), OPD_FLOAT32); }
static double first_of(opd_tensors list, int at) {
    CHECK_OK();
    return at < list.n && list.data[at] ? opd_item_f64(opd_select(list.data[at], 0, 0)) : NAN;
}

TEST(each_tensor_of_a_list) {
    opd_tensor *pair[2] = {filled(3, 2), filled(2, 3)};
    const opd_tensors list = opd_tensors_of(pair, 2);
    const double numbers[] = {1, 2.5};
    CHECK_NEAR(first_of(opd_foreach_mul_List(list, list), 1), 9, 0);
    CHECK_NEAR(first_of(opd_foreach_add_ScalarList(list, opd_value_doubles(numbers, 2)), 1), 5.5, 0);
    CHECK_NEAR(first_of(opd_foreach_maximum_Scalar(list, OPD_V(2.5)), 0), 2.5, 0);
    CHECK_NEAR(first_of(opd_foreach_pow_ScalarAndTensor(OPD_V(2), list), 1), 8, 0);
    CHECK_NEAR(opd_item_f64(opd_foreach_norm_Scalar(list).data[0]), 3.46410162, 1e-6);
    CHECK_NEAR(opd_item_f64(opd_foreach_max(list).data[1]), 3, 0);
    CHECK(opd_foreach_add_List_full_(list, list, OPD_V(2)) == 0);
    CHECK_NEAR(first_of(list, 0), 6, 0);
    CHECK(opd_foreach_zero_(list) == 0);
    CHECK_NEAR(first_of(list, 1), 0, 0);
}
TEST(packed_numbers_are_one_for_each) {
    opd_tensor *pair[2] = {filled(3, 2), filled(2, 3)};
    const opd_tensors list = opd_tensors_of(pair, 2);
    const float numbers[] = {10, 100};
    opd_tensor *packed = opd_tensor_from(numbers, OPD_INTS(2), OPD_FLOAT32);
    CHECK_NEAR(first_of(opd_foreach_addcmul_Tensor(list, list, list, packed), 0), 42, 0);
    CHECK_NEAR(first_of(opd_foreach_addcdiv_Tensor(list, list, list, packed), 1), 103, 0);
}
TEST(lists_that_do_not_fit) {
    opd_tensor *pair[2] = {filled(3, 2), filled(2, 3)}, *other[2] = {filled(3, 1), filled(4, 1)};
    const opd_tensors list = opd_tensors_of(pair, 2), none = opd_tensors_of(pair, 0);
    CHECK(opd_foreach_abs(none).data == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Tensor list must have at least one tensor.");
    CHECK(opd_foreach_mul_List(list, opd_tensors_of(pair, 1)).data == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Tensor lists must have the same number of tensors, got 2 and 1");
    CHECK(opd_foreach_mul_Tensor(list, pair[0]).data == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "scalar tensor expected to be 0 dim but it has 1 dimensions and 3 elements.");
    CHECK(opd_foreach_addcmul_Tensor(list, list, list, pair[0]).data == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Expected length of scalars to match input of length 2 but got 3 instead.");
    CHECK(opd_foreach_add_List_(list, opd_tensors_of(other, 2)) != 0);
    CHECK_ERROR(OPD_ERROR_SHAPE, "size of tensor a (2) must match the size of tensor b (4)");
    CHECK_NEAR(first_of(list, 0), 2, 0);               /* nothing was written */
    pair[1] = filled(0, 0);
    CHECK(opd_foreach_max(list).data == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "_foreach_max cannot compute the maximum of an empty tensor");
}
TEST(gradients_of_lists) {
    opd_tensor *pair[2] = {filled(3, 2), filled(2, 3)};
    opd_tensors squares;
    opd_tensor_set_requires_grad(pair[0], true);
    opd_tensor_set_requires_grad(pair[1], true);
    squares = opd_foreach_mul_List(opd_tensors_of(pair, 2), opd_tensors_of(pair, 2));
    CHECK_OK();
    CHECK(opd_foreach_mul_Scalar_(squares, OPD_V(2)) == 0);
    opd_backward(opd_add(opd_sum(squares.data[0]), opd_sum(squares.data[1])));
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(pair[1]), 0, 0)), 12, 0);
    CHECK(opd_foreach_zero_(opd_tensors_of(pair, 2)) != 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "leaf tensor that requires grad");
}
TEST(copies_of_lists) {
    opd_tensor *pair[2] = {filled(3, 2), filled(2, 3)}, *other[2] = {filled(3, 5), filled(2, 6)};
    const opd_tensors list = opd_tensors_of(pair, 2), src = opd_tensors_of(other, 2);
    CHECK_NEAR(first_of(opd_foreach_copy(list, src), 1), 6, 0);
    CHECK_NEAR(first_of(opd_foreach_copy_full(list, src, true), 0), 5, 0);
    CHECK_NEAR(first_of(list, 0), 2, 0);
}
/* If a later tensor is a leaf that must not be written, the earlier ones are not written either.  Without recording,
   all are written. */
TEST(nothing_is_written_before_a_leaf) {
    opd_tensor *pair[2] = {filled(3, 2), filled(2, 3)};
    const opd_tensors list = opd_tensors_of(pair, 2);
    opd_tensor_set_requires_grad(pair[1], true);
    CHECK(opd_foreach_mul_Scalar_(list, OPD_V(2)) != 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation.");
    CHECK_NEAR(first_of(list, 0), 2, 0);
    OPD_NO_GRAD { CHECK(opd_foreach_mul_Scalar_(list, OPD_V(2)) == 0); }
    CHECK_NEAR(first_of(list, 0), 4, 0);
    CHECK_NEAR(first_of(list, 1), 6, 0);
}
/* If the operator refuses a later tensor because of its dtype or its number, the earlier ones are not written. */
TEST(nothing_is_written_before_a_dtype) {
    const int64_t three = 3;
    opd_tensor *mixed[2] = {filled(3, 2), opd_tensor_from(&three, OPD_INTS(1), OPD_INT64)};
    opd_tensor *ints[2] = {opd_tensor_from(&three, OPD_INTS(1), OPD_INT64), opd_tensor_from(&three, OPD_INTS(1), OPD_INT64)};
    const opd_tensors list = opd_tensors_of(mixed, 2), whole = opd_tensors_of(ints, 2);
    const double fits[] = {2, 4};
    const int64_t powers[] = {2, -1};
    CHECK(opd_foreach_mul_Scalar_(list, OPD_V(2.5)) != 0);
    CHECK_ERROR(OPD_ERROR_DTYPE, "result type float32 can't be cast to the desired output type int64");
    CHECK(opd_foreach_sigmoid_(list) != 0);
    CHECK_ERROR(OPD_ERROR_DTYPE, "can't be cast to the desired output type int64");
    CHECK(opd_foreach_add_ScalarList_(list, opd_value_doubles(fits, 2)) != 0);
    CHECK_ERROR(OPD_ERROR_DTYPE, "can't be cast to the desired output type int64");
    CHECK(opd_foreach_pow_ScalarList_(whole, opd_value_ints(powers, 2)) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Integers to negative integer powers are not allowed.");
    CHECK_NEAR(first_of(list, 0), 2, 0);
    CHECK_NEAR(first_of(whole, 0), 3, 0);
    CHECK(opd_foreach_mul_Scalar_(list, OPD_V(2)) == 0);
    CHECK_NEAR(first_of(list, 0), 4, 0);
    CHECK_NEAR(first_of(list, 1), 6, 0);
}
/* Sums of powers as PyTorch 2.15 gives them: 0^0 is 1, and there is no integer form. */
TEST(sums_of_powers) {
    const float values[] = {1, -2, 3};
    const int64_t three = 3;
    const double orders[] = {0, 0.5, 1, 2, 3, -1, -INFINITY}, sums[] = {3, 4.1462644, 6, 14, 36, 1.8333333, 1};
    opd_tensor *one[1] = {opd_tensor_from(values, OPD_INTS(3), OPD_FLOAT32)};
    const opd_tensors list = opd_tensors_of(one, 1);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const opd_tensors got = opd_foreach_powsum_Scalar_full(list, OPD_V(orders[i]), opd_value_none());
        CHECK_NEAR(opd_item_f64(got.data[0]), sums[i], 1e-6);
    }
    CHECK(opd_dtype(opd_foreach_powsum_Scalar_full(list, OPD_V(2), opd_value_int(OPD_FLOAT64)).data[0]) == OPD_FLOAT64);
    one[0] = opd_to_dtype(one[0], OPD_BFLOAT16);
    CHECK(opd_dtype(opd_foreach_powsum_Scalar(list).data[0]) == OPD_BFLOAT16);
    one[0] = opd_zeros(OPD_INTS(0), OPD_FLOAT32);
    CHECK_NEAR(opd_item_f64(opd_foreach_powsum_Scalar(list).data[0]), 0, 0);
    one[0] = opd_tensor_from(&three, OPD_INTS(1), OPD_INT64);
    CHECK(opd_foreach_powsum_Scalar(list).data == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"powsum_cpu\" not implemented for 'int64'");
    opd_tensor *into[1] = {opd_zeros(OPD_INTS(2), OPD_FLOAT32)};
    one[0] = opd_tensor_from(values, OPD_INTS(3), OPD_FLOAT32);
    static opd_op *with_out;
    (void)OPD_CALL(OPD_OP(&with_out, "aten::_foreach_powsum.Scalar_out"), list, 2, OPD_NONE, opd_tensors_of(into, 1));
    CHECK(opd_ok() && opd_ndim(into[0]) == 0);
    CHECK_NEAR(opd_item_f64(into[0]), 14, 0);
}
/* Packed scalars are numbers: they change no dtype, and are rounded as numbers are. */
TEST(packed_scalars_are_numbers) {
    const int64_t three = 3;
    const double both[] = {2, 1};
    opd_tensor *one[1] = {filled(2, 3)}, *whole[1] = {opd_tensor_from(&three, OPD_INTS(1), OPD_INT64)};
    const opd_tensors list = opd_tensors_of(one, 1), ints = opd_tensors_of(whole, 1);
    const opd_tensors got = opd_foreach_addcmul_Tensor(list, list, list, opd_full(OPD_INTS(1), OPD_V(2), OPD_FLOAT64));
    CHECK_NEAR(first_of(got, 0), 21, 0);
    CHECK(opd_dtype(got.data[0]) == OPD_FLOAT32);
    CHECK(opd_foreach_addcmul_Tensor_(ints, ints, ints, opd_full(OPD_INTS(1), OPD_V(2.5), OPD_FLOAT32)) == 0);
    CHECK_NEAR(first_of(ints, 0), 21, 0);              /* 3 + 2 * 3 * 3 */
    CHECK(opd_foreach_addcdiv_Tensor(ints, ints, ints, filled(1, 2)).data == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Integer division with addcdiv is no longer supported");
    opd_tensor *pairs = opd_full(OPD_INTS(1), opd_value_complex(both), OPD_COMPLEX64);
    CHECK(opd_foreach_addcmul_Tensor(list, list, list, pairs).data == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "without overflow");
}
TEST(gradients_of_bounds) {
    const float values[] = {1, 2, 3, NAN};
    opd_tensor *one[1] = {opd_tensor_from(values, OPD_INTS(4), OPD_FLOAT32)};
    const opd_tensors list = opd_tensors_of(one, 1);
    const double larger[] = {0, 0.5, 1, 1}, smaller[] = {1, 0.5, 0, 1}, bound[] = {2};
    opd_tensor_set_requires_grad(one[0], true);
    for (int i = 0; i < 4; i++) {
        const opd_value all = opd_value_doubles(bound, 1);
        const opd_tensors got = i == 0 ? opd_foreach_maximum_Scalar(list, OPD_V(2.0))
            : i == 1 ? opd_foreach_maximum_ScalarList(list, all)
            : i == 2 ? opd_foreach_minimum_Scalar(list, OPD_V(2.0)) : opd_foreach_minimum_ScalarList(list, all);
        CHECK_OK();
        opd_tensor_set_grad(one[0], NULL);
        opd_backward(opd_sum(got.data[0]));
        opd_tensor *grad = opd_tensor_grad(one[0]);
        for (int k = 0; k < 4; k++) {
            CHECK_NEAR(opd_item_f64(opd_select(grad, 0, k)), (i < 2 ? larger : smaller)[k], 0);
        }
    }
    one[0] = opd_mul(one[0], one[0]);
    CHECK(opd_foreach_maximum_Scalar_(list, OPD_V(2)) != 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for aten::_foreach_maximum_.Scalar is not implemented");
    one[0] = opd_to_dtype(filled(1, 1), OPD_FLOAT16);
    CHECK(opd_foreach_maximum_Scalar(list, OPD_V(70000.0)).data == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "without overflow");
}
/* Each in-place form gives the same as the functional form. */
TEST(in_place_as_elsewhere) {
    int count = 0;
    opd_op *op;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const char *name = opd_op_name(op), *dot = name + strcspn(name, ".");
        char other[100];
        const opd_op *form;
        if (strncmp(name, "aten::_foreach_", 15) != 0 || dot[-1] != '_') { continue; }
        (void)snprintf(other, sizeof other, "%.*s%s", (int)(dot - name - 1), name, dot);
        form = opd_find(other);
        CHECK_OR_RETURN(form != NULL);
        OPD_SCOPE {
            const char *text = opd_op_card(form)->cases;
            static op_case c;
            opd_value got, rets[1];
            memset(&c, 0, sizeof c);
            c.op = form;
            c.dtype = OPD_FLOAT32;
            CHECK(case_read_next(&c, &text));
            (void)snprintf(what, sizeof what, "%s", name);
            if (went_well(opd_call_all((opd_op *)(uintptr_t)form, &got, c.args, c.nargs)) &&
                went_well(opd_call_all(op, rets, c.args, c.nargs))) {
                for (int k = 0; k < got.n; k++) { same_values(c.args[0].u.tensors[k], got.u.tensors[k], 0); }
                count++;
            }
        }
    }
    CHECK_INT(count, 71);
}
CHECK_MAIN()
