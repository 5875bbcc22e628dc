#include "opdispatch.h"
#include <stdio.h>
#include <string.h>
#include "ask_tools.h"
int main(void) {
    float data[2] = {0, 1};
    int64_t size = 2;
    opd_scope scope = opd_scope_open();
    opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(data, opd_ints_of(&size, 1), OPD_FLOAT32), true), *grad;
    int level = opd_dual_level_begin();
    if (opd_backward(opd_sum(opd_mul(opd_exp(x), opd_exp(x))))) { puts(opd_error_message()); return 1; }
    if (!(grad = opd_tensor_grad(x)) || opd_data_f32(grad)[0] < 1.9f || opd_data_f32(grad)[0] > 2.1f) { return 2; }
    (void)opd_dual_unpack(opd_exp(opd_dual_new(opd_detach(x), opd_detach(x))), &grad);
    if (!grad || opd_data_f32(grad)[1] < 2.7f || opd_data_f32(grad)[1] > 2.8f) { return 3; }
    if (opd_dual_level_end(level)) { return 4; }
    opd_key_guard traced = opd_keys_include(opd_keyset_make(OPD_BIT_OF(OPD_F_TRACER), 0));
    if (!opd_add(x, x)) { puts(opd_error_message()); return 6; }                     /* as without a graph */
    opd_keys_restore(traced);
    if (ask_tools()) { return 5; }
    opd_scope_close(&scope);
    return opd_finish();
}
