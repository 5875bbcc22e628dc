/* _foreach_ operators: one call for each tensor of a list, its errors, its gradients. */
#include "../opdispatch.h"
#include "cases.h"

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
    CHECK_NEAR(first_of(opd_foreach_add_ScalarList(list, opd_value_floats(numbers, 2)), 1), 5.5, 0);
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
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "leaf Variable that requires grad");
}
/* Each form in place gives what the other one does. */
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
