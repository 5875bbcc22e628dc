/* Quick start: a custom operator with a CPU kernel, a fake kernel and a derivative.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/quickstart.c -o quickstart -lm && ./quickstart

   The first half defines myops::myadd and calls it.  The second half implements the same derivative in another way: in
   a kernel at the Autograd key, which calls the operator below this key. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>

/* Makes the result; this is all that runs on the meta device.  opd_result returns the result (or out=, or self). */
static opd_tensor *myadd_result(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    if (!opd_is_same_size(self, other)) {
        opd_fail(OPD_ERROR_SHAPE, "self and other must have the same sizes");
        return NULL;
    }
    return opd_result(call, 0, opd_sizes(self), opd_ndim(self), opd_dtype(self));
}
static int myadd_fake(opd_call *call) { return myadd_result(call) ? 0 : -1; }

/* The kernel: float32 and float64, of contiguous tensors. */
static int myadd_f64(opd_tensor *out, opd_tensor *a, opd_tensor *b) {
    const double *x = opd_data_f64(a), *y = opd_data_f64(b);
    double *o = opd_data_f64(out);
    if (!opd_ok()) { return -1; }
    for (int64_t i = 0; i < opd_numel(out); i++) { o[i] = x[i] + y[i]; }
    return 0;
}
static int myadd_cpu(opd_call *call) {
    opd_tensor *out = myadd_result(call), *to = opd_contiguous(out);   /* out= may have other strides */
    opd_tensor *a = opd_contiguous(opd_arg_tensor(call, 0)), *b = opd_contiguous(opd_arg_tensor(call, 1));
    const float *x, *y;
    float *o;
    if (opd_ok() && opd_dtype(out) == OPD_FLOAT64) {
        if (myadd_f64(to, a, b)) { return -1; }
    } else {
        x = opd_data_f32(a);                      /* NULL, with an error, for another dtype */
        y = opd_data_f32(b);
        o = opd_data_f32(to);
        if (!opd_ok()) { return -1; }
        for (int64_t i = 0; i < opd_numel(out); i++) { o[i] = x[i] + y[i]; }
    }
    return opd_data(to) == opd_data(out) || opd_copy_(out, to) ? 0 : -1;
}

/* The derivative: both arguments get the gradient of the result. */
static int myadd_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    opd_bw_return(bw, 0, grad);
    return opd_bw_return(bw, 1, grad);
}

/* The same at a lower level: calls the operator below the Autograd keys, and gives its result a backward function. */
static int byhand_autograd(opd_call *call) {
    opd_keyset below = opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER));
    opd_tensor *inputs[2], *result;
    if (opd_redispatch(call, below)) { return -1; }
    inputs[0] = opd_arg_tensor(call, 0);
    inputs[1] = opd_arg_tensor(call, 1);
    result = opd_call_rets(call)[0].u.t;
    return opd_autograd_record("ByHand", myadd_backward, inputs, 2, NULL, 0, NULL, 0, &result, 1);
}

OPD_LIBRARY(myops, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "myadd(Tensor self, Tensor other) -> Tensor",
        .cpu = myadd_cpu, .fake = myadd_fake, .backward = myadd_backward,
        .inplace = "myadd_", .out = "myadd.out", .vmap = OPD_BATCH_LOOP,
    });
    opd_def(lib, "byhand(Tensor self, Tensor other) -> Tensor");       /* the two-step form */
}
OPD_LIBRARY_IMPL(myops, CPU, lib) { opd_impl(lib, "byhand", myadd_cpu); }
OPD_LIBRARY_IMPL(myops, Meta, lib) { opd_impl(lib, "byhand", myadd_fake); }
OPD_LIBRARY_IMPL(myops, Autograd, lib) { opd_impl(lib, "byhand", byhand_autograd); }

int main(void) {
    static opd_op *myadd, *byhand;
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_from((float[]){1, 2, 3}, OPD_INTS(3), OPD_FLOAT32);
        opd_tensor *y, *meta;
        opd_tensor_set_requires_grad(x, true);

        y = OPD_CALL(OPD_OP(&myadd, "myops::myadd"), x, opd_exp(x));
        opd_print(y);
        opd_backward(opd_sum(opd_tanh(y)));
        opd_print(opd_tensor_grad(x));

        opd_tensor_set_grad(x, NULL);
        opd_backward(opd_sum(opd_tanh(OPD_CALL(OPD_OP(&byhand, "myops::byhand"), x, opd_exp(x)))));
        opd_print(opd_tensor_grad(x));

        /* A tensor with sizes, but without memory. */
        meta = opd_tensor_new_on(OPD_INTS(1000000, 1000000), OPD_FLOAT32, opd_device_make(OPD_META, -1));
        opd_print(OPD_CALL(myadd, meta, meta));

        /* A mistake sets an error.  Calls after it do nothing. */
        y = opd_mul(OPD_CALL(myadd, x, opd_tensor_new(OPD_INTS(4), OPD_FLOAT32)), x);
        printf("%s\n", opd_error_message());
        opd_error_clear();
    }
    return opd_finish();
}
