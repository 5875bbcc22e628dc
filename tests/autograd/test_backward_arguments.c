/* A backward function reads arguments that are not tensors, as a kernel does. */
#include "../../opdispatch.h"
#include "../check.h"

static int kernel(opd_call *call) { return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0), OPD_V(2))); }
static int reads;                                 /* the test in progress: what the backward function reads wrongly */
static int backward(opd_backward_call *bw) {
    const opd_ints ints = opd_bw_ints(bw, 5);
    const opd_doubles doubles = opd_bw_doubles(bw, 6);
    if (reads == 0) {
        CHECK_INT(opd_bw_int(bw, 1), 7);
        CHECK(opd_bw_double(bw, 2) == 2.5);
        CHECK(opd_bw_bool(bw, 3));
        CHECK_STR(opd_bw_str(bw, 4), "same");
        CHECK(ints.n == 2 && ints.data[1] == 4);
        CHECK(doubles.n == 1 && doubles.data[0] == 0.5);
        CHECK(opd_bw_is_none(bw, 7) && opd_bw_int(bw, 7) == 0 && !opd_bw_is_none(bw, 1));
        CHECK(opd_bw_value(bw, 8).u.d == 1.5);
        CHECK(!opd_bw_bool(bw, 9) && opd_bw_is_none(bw, 9));
    }
    if (reads == 1) { CHECK_INT(opd_bw_int(bw, 2), 0); }
    if (reads == 2) { CHECK(opd_bw_double(bw, 1) == 0); }
    if (reads == 3) { CHECK(!opd_bw_bool(bw, 1)); }
    if (reads == 4) { CHECK(!opd_bw_str(bw, 5)); }
    if (reads == 5) { CHECK_INT(opd_bw_ints(bw, 6).n, 0); }
    if (reads == 6) { CHECK_INT(opd_bw_doubles(bw, 5).n, 0); }
    if (reads == 7) { CHECK_INT(opd_bw_int(bw, 10), 0); }
    if (reads == 8) { CHECK_INT(opd_bw_int(bw, -1), 0); }
    if (reads == 9) { CHECK_INT(opd_bw_int(bw, 0), 0); }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
TEST(arguments_that_are_no_tensors) {
    static const char *const errors[] = {
        "", "argument 2 ('b') with opd_bw_int, but it is a value of type float: read it with opd_bw_double",
        "argument 1 ('a') with opd_bw_double, but it is a value of type int: read it with opd_bw_int",
        "argument 1 ('a') with opd_bw_bool, but it is a value of type int: read it with opd_bw_int",
        "argument 5 ('e') with opd_bw_str, but it is a value of type List[int]: read it with opd_bw_ints",
        "argument 6 ('f') with opd_bw_ints, but it is a value of type List[float]: read it with opd_bw_doubles",
        "argument 5 ('e') with opd_bw_doubles, but it is a value of type List[int]: read it with opd_bw_ints",
        "argument 10 of back::args, which does not exist", "argument -1 of back::args, which does not exist",
        "argument 0 of back::args, which is not named in `save`"};
    opd_library *const lib = opd_library_open(OPD_DEF, "back", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "args(Tensor x, int a, float b, bool c, str d, int[] e, float[] f, int? g, Scalar h, bool? i) -> Tensor";
    d.any = kernel;
    d.backward = backward;
    CHECK_INT(opd_define(lib, &d), 0);
    for (reads = 0; reads < (int)(sizeof errors / sizeof *errors); reads++) {
        OPD_SCOPED;
        const int64_t ints[2] = {3, 4};
        const double doubles[1] = {0.5};
        opd_tensor *const x = opd_ones(OPD_INTS(2), OPD_FLOAT64);
        opd_value args[10];
        opd_tensor_set_requires_grad(x, true);
        args[0] = opd_value_tensor(x);
        args[1] = opd_value_int(7);
        args[2] = opd_value_double(2.5);
        args[3] = opd_value_bool(true);
        args[4] = opd_value_str("same");
        args[5] = opd_value_ints(ints, 2);
        args[6] = opd_value_doubles(doubles, 1);
        args[7] = args[9] = opd_value_none();
        args[8] = opd_value_double(1.5);
        opd_backward(opd_sum(opd_call_op(opd_find("back::args"), args, 10)));
        if (reads == 0) { CHECK_OK(); }
        else { CHECK_ERROR(OPD_ERROR_AUTOGRAD, errors[reads]); }
    }
    opd_library_close(lib);
}

CHECK_MAIN()
