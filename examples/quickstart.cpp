/* Quick start in C++11: a custom operator with a CPU kernel, a fake kernel and a derivative.
   c++ -O2 -std=c++11 examples/quickstart.cpp -o quickstart_cpp -lm && ./quickstart_cpp */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <cstdio>

static opd_tensor *myadd_result(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    if (!opd_is_same_size(self, other)) {
        opd_fail(OPD_ERROR_SHAPE, "self and other must have the same sizes");
        return nullptr;
    }
    return opd_result(call, 0, opd_sizes(self), opd_ndim(self), opd_dtype(self));
}
static int myadd_fake(opd_call *call) { return myadd_result(call) ? 0 : -1; }

static int myadd_f64(opd_tensor *out, opd_tensor *a, opd_tensor *b) {
    const double *x = opd_data_f64(a), *y = opd_data_f64(b);
    double *o = opd_data_f64(out);
    if (!opd_ok()) { return -1; }
    for (int64_t i = 0; i < opd_numel(out); i++) { o[i] = x[i] + y[i]; }
    return 0;
}
static int myadd_cpu(opd_call *call) {
    opd_tensor *out = myadd_result(call);
    opd_tensor *a = opd_contiguous(opd_arg_tensor(call, 0)), *b = opd_contiguous(opd_arg_tensor(call, 1));
    if (opd_ok() && opd_dtype(out) == OPD_FLOAT64) { return myadd_f64(out, a, b); }
    const float *x = opd_data_f32(a), *y = opd_data_f32(b);      // nullptr, with an error, for another dtype
    float *o = opd_data_f32(out);
    if (!opd_ok()) { return -1; }
    for (int64_t i = 0; i < opd_numel(out); i++) { o[i] = x[i] + y[i]; }
    return 0;
}

static int myadd_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    opd_bw_return(bw, 0, grad);
    return opd_bw_return(bw, 1, grad);
}

OPD_LIBRARY(myops, lib) {
    opd_op_desc d = opd_op_desc();
    d.schema = "myadd(Tensor self, Tensor other) -> Tensor";
    d.cpu = myadd_cpu;
    d.fake = myadd_fake;
    d.backward = myadd_backward;
    d.vmap = OPD_BATCH_LOOP;
    opd_define(lib, &d);
}

int main() {
    static opd_op *myadd;
    OPD_SCOPE {
        const float data[] = {1, 2, 3};
        opd_tensor *x = opd_tensor_from(data, OPD_INTS(3), OPD_FLOAT32);
        opd_tensor_set_requires_grad(x, true);
        opd_tensor *y = OPD_CALL(OPD_OP(&myadd, "myops::myadd"), x, opd_exp(x));
        opd_print(y);
        opd_backward(opd_sum(opd_tanh(y)));
        opd_print(opd_tensor_grad(x));
        opd_print(OPD_CALL(myadd, x, 1));               /* an error: the number becomes a tensor with other sizes */
        std::printf("%s\n", opd_error_message());
        opd_error_clear();
    }
    return opd_finish();
}
