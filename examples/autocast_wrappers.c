/* Operators that choose their dtype under autocast: one by the field `autocast` of its descriptor, two by wrappers.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/autocast_wrappers.c -o autocast_wrappers -lm && ./autocast_wrappers

   A wrapper is a kernel at the autocast key.  mymatmul runs in the dtype of the autocast region, and
   my_multiple_input_op in the widest dtype of its inputs.  Both wrappers come from PyTorch's tutorial on autocast for
   dispatched operators. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>

static int mymatmul_composite(opd_call *call) {
    return opd_return_tensor(call, opd_mm(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
static int my_multiple_input_op_composite(opd_call *call) {
    return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
OPD_LIBRARY(myops, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "mymatmul(Tensor self, Tensor other) -> Tensor", .composite = mymatmul_composite });
    opd_define(lib, &(opd_op_desc){
        .schema = "my_multiple_input_op(Tensor t0, Tensor t1) -> Tensor", .composite = my_multiple_input_op_composite });
    /* the field `autocast` does the same as the wrapper below */
    opd_define(lib, &(opd_op_desc){
        .schema = "mymatmul_by_policy(Tensor self, Tensor other) -> Tensor", .composite = mymatmul_composite,
        .autocast = OPD_AUTOCAST_LOWER });
}

/* A wrapper is a kernel at the autocast key: it excludes this key, casts its arguments, and calls its operator
   again.  The key is excluded until the kernel returns. */
static int mymatmul_autocast(opd_call *call) {
    static opd_op *mymatmul;
    opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("AutocastCPU")));
    return opd_return_tensor(call, OPD_CALL(OPD_OP(&mymatmul, "myops::mymatmul"),
                                            opd_autocast_cast(opd_autocast_dtype(OPD_CPU), opd_arg_tensor(call, 0)),
                                            opd_autocast_cast(opd_autocast_dtype(OPD_CPU), opd_arg_tensor(call, 1))));
}
static int my_multiple_input_op_autocast(opd_call *call) {
    static opd_op *op;
    opd_tensor *inputs[2] = {opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)};
    opd_scalar_type dtype = opd_autocast_promote(opd_autocast_dtype(OPD_CPU), inputs, 2);
    opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("AutocastCPU")));
    return opd_return_tensor(call, OPD_CALL(OPD_OP(&op, "myops::my_multiple_input_op"),
                                            opd_autocast_cast(dtype, inputs[0]), opd_autocast_cast(dtype, inputs[1])));
}
OPD_LIBRARY_IMPL(myops, AutocastCPU, lib) {
    opd_impl(lib, "mymatmul", mymatmul_autocast);
    opd_impl(lib, "my_multiple_input_op", my_multiple_input_op_autocast);
}

static int wrong;
static void show(const char *what, opd_tensor *t, opd_scalar_type expected) {
    printf("%-44s %s\n", what, opd_dtype_name(opd_dtype(t)));
    wrong += opd_dtype(t) != expected;
}

int main(void) {
    opd_op *matmul = opd_find("myops::mymatmul"), *policy = opd_find("myops::mymatmul_by_policy");
    opd_op *multiple = opd_find("myops::my_multiple_input_op");
    OPD_SCOPE {
        opd_tensor *a = opd_randn(OPD_INTS(4, 4), OPD_FLOAT32), *low = opd_to_dtype(a, OPD_BFLOAT16);
        opd_tensor *weight = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(4, 4), OPD_FLOAT32), true);
        show("mymatmul outside", OPD_CALL(matmul, a, weight), OPD_FLOAT32);
        OPD_AUTOCAST(OPD_CPU) {
            opd_tensor *y = OPD_CALL(matmul, a, weight);
            show("mymatmul in a region", y, OPD_BFLOAT16);
            show("mymatmul_by_policy", OPD_CALL(policy, a, weight), OPD_BFLOAT16);      /* uses the cached weight */
            show("my_multiple_input_op(bfloat16, bfloat16)", OPD_CALL(multiple, y, low), OPD_BFLOAT16);
            show("my_multiple_input_op(bfloat16, float32)", OPD_CALL(multiple, y, a), OPD_FLOAT32);
            OPD_AUTOCAST_AS(OPD_CPU, OPD_DTYPE_NONE, false, -1) {
                show("mymatmul where the region is off", OPD_CALL(matmul, a, weight), OPD_FLOAT32);
            }
            opd_backward(opd_sum(y));
        }
        show("the weight's gradient", opd_tensor_grad(weight), OPD_FLOAT32);
    }
    return opd_finish() || wrong;
}
