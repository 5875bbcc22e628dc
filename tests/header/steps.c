#include "opdispatch.h"
int main(void) {
    opd_scope scope = opd_scope_open();
    int64_t size = 66;
    opd_tensor *x = opd_ones(opd_ints_of(&size, 1), OPD_FLOAT32), *y = opd_add(x, x);
    opd_tensor_set_requires_grad(x, true);
    y = opd_sum(opd_mul(opd_add(x, x), x));
    opd_backward(y);
    opd_scope_close(&scope);
    return opd_finish();
}
