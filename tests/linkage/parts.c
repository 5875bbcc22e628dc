/* An operator in parts, for tests/linkage.sh.  Each -DPART=n makes one file, and the linker gets the files in every
   order.  Without PART, this is the program, which tests that all parts are registered. */
#include "opdispatch.h"
#include <stdio.h>

#if PART == 1
static int kernel(opd_call *call) { return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0), OPD_V(2))); }
OPD_LIBRARY(parts, lib) {
    opd_def(lib, "twice(Tensor x) -> Tensor");
    opd_impl_key(lib, "twice", "CPU", kernel, NULL, NULL);
}
#elif PART == 2
static int backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), OPD_V(2)));
}
OPD_LIBRARY_FRAGMENT(parts, lib) { opd_autograd_register(lib, "twice", backward, NULL); }
#elif PART == 3
static int fake(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}
OPD_LIBRARY_FRAGMENT(parts, lib) {
    opd_autocast_register(lib, "twice", OPD_CPU, OPD_AUTOCAST_LOWER);
    opd_vmap_register(lib, "twice", OPD_BATCH_POINTWISE);
    opd_fake_register(lib, "twice", fake);
    opd_jvp_register(lib, "twice", OPD_JVP_LINEAR);
}
#else
int main(void) {
    bool right = true;
    OPD_SCOPE {
        float data[] = {1, 2};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(2), OPD_FLOAT32), true), *y = NULL;
        opd_op *twice = opd_find("parts::twice");
        opd_backward(opd_sum(OPD_CALL(twice, x)));
        OPD_AUTOCAST(OPD_CPU) { y = OPD_CALL(twice, x); }
        right = opd_ok() && opd_data_f32(opd_tensor_grad(x))[1] == 2 && opd_dtype(y) == OPD_BFLOAT16;
        OPD_FAKE_MODE { right = right && OPD_CALL(twice, x) != NULL; }
    }
    if (!right) { printf("wrong: %s\n", opd_error_message()); }
    return opd_finish() || !right;
}
#endif
