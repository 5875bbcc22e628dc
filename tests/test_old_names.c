/* Functions under the names of version 0.2 do what those of today do. */
#include "../opdispatch.h"
#include "check.h"
#include <string.h>

static int twice(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_add(x, x));
}
static int twice_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_add(opd_bw_grad(bw, 0), opd_bw_grad(bw, 0)));
}

TEST(registrations) {
    opd_library *lib = opd_library_open(OPD_DEF, "oldnames", NULL, "t", 1);
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    CHECK_INT(opd_def(lib, "twice(Tensor self) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "twice", "CPU", twice, NULL, NULL), 0);
    CHECK_INT(opd_register_autograd(lib, "twice", twice_backward, NULL), 0);
    CHECK_INT(opd_register_fake(lib, "twice", twice), 0);
    CHECK_INT(opd_register_vmap(lib, "twice", OPD_BATCH_POINTWISE), 0);
    CHECK_INT(opd_register_autocast(lib, "twice", OPD_CPU, OPD_AUTOCAST_FP32), 0);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(opd_find("oldnames::twice"), x))), 0);
    CHECK_NEAR(opd_data_f32(opd_tensor_grad(x))[1], 2, 0);
    opd_library_close(lib);
    CHECK(opd_load_library("no-such-file.so") == NULL && !opd_ok());
    opd_error_clear();
}
TEST(modes) {
    bool was = opd_grad_set(false);
    opd_dispatch_state state;
    int level;
    CHECK(was && !opd_grad_enabled());
    CHECK(!opd_grad_set(true));
    state = opd_inference_set(true);
    CHECK(opd_inference_enabled());
    (void)opd_dispatch_state_set(state);
    CHECK(!opd_inference_enabled());
    level = opd_dual_enter();
    CHECK(level >= 0);
    {
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32), *tangent = NULL;
        opd_tensor *dual = opd_make_dual(x, opd_ones(OPD_INTS(2), OPD_FLOAT32));
        (void)opd_unpack_dual(opd_mul(dual, dual), &tangent);
        CHECK_NEAR(opd_data_f32(tangent)[0], 2, 0);
    }
    CHECK_INT(opd_dual_exit(level), 0);
    CHECK_OK();
}
TEST(training) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    opd_optimizer *adam = opd_adam(&x, 1, NULL), *adamw = opd_adamw(&x, 1, NULL), *sgd = opd_sgd(&x, 1, NULL);
    opd_scaler *scaler = opd_scaler_make(NULL);
    CHECK(adam && adamw && sgd && scaler);
    opd_optimizer_free(adam);
    opd_optimizer_free(adamw);
    opd_optimizer_free(sgd);
    opd_scaler_free(scaler);
    CHECK_INT(opd_promote_type(OPD_BFLOAT16, &x, 1), OPD_FLOAT32);
    opd_autocast_clear_cache();
    CHECK_OK();
}

CHECK_MAIN()
