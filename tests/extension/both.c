/* Operators with arguments and results of each kind, which in_torch.py loads into PyTorch. */
#include "../../opdispatch.h"

static int scale(opd_call *call) {
    return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0), opd_value_double(opd_arg_double(call, 1))));
}
static int scale_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_value_double(opd_bw_value(bw, 1).u.d)));
}
static int scale_fake(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}
static int add_one(opd_call *call) {
    return opd_return_tensor(call, opd_add_Scalar_(opd_arg_tensor(call, 0), opd_value_int(1)));
}
/* Results of several kinds. */
static int parts(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    opd_tensor *turned[8];
    for (int64_t i = 0; i < list.n && i < 8; i++) { turned[i] = opd_neg(list.data[i]); }
    (void)opd_return_tensors(call, turned, list.n);
    (void)opd_return_int(call, opd_arg_ints(call, 1).n);
    (void)opd_return_value(call, opd_value_str(opd_arg_str(call, 2)));
    (void)opd_return_value(call, opd_arg_is_none(call, 3) ? opd_value_none()
                           : opd_value_double(opd_numel(opd_arg_tensor(call, 3))));
    return opd_return_bool(call, !opd_arg_bool(call, 4));
}
static int dtype_of(opd_call *call) {
    return opd_return_tensor(call, opd_zeros(opd_arg_ints(call, 0), opd_arg_dtype(call, 1, OPD_FLOAT64)));
}
/* Composed of operators that are differentiated. */
static int norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_sqrt(opd_sum(opd_mul(x, x))));
}

OPD_LIBRARY(both_worlds, lib) {
    opd_op_desc desc = {0};
    desc.schema = "scale(Tensor x, float by) -> Tensor";
    desc.any = scale;
    desc.fake = scale_fake;
    desc.backward = scale_backward;
    opd_define(lib, &desc);
    opd_op_desc others = {0};
    others.schema = "add_one_(Tensor(a!) x) -> Tensor(a!)";
    others.any = add_one;
    opd_define(lib, &others);
    others.schema = "parts(Tensor[] xs, int[] sizes, str s, Tensor? y=None, bool flag=True) -> "
        "(Tensor[], int, str, float?, bool)";
    others.any = parts;
    opd_define(lib, &others);
    others.schema = "filled(int[] size, ScalarType? dtype=None) -> Tensor";
    others.any = dtype_of;
    opd_define(lib, &others);
    others.schema = "norm(Tensor x) -> Tensor";
    others.any = NULL;
    others.composite = norm;
    opd_define(lib, &others);
}
