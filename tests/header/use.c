#include "use.h"
int use_library(void) {
    float one = 1, two = 2, sum = 0;
    opd_scope scope = opd_scope_open();
    int64_t size = 1;
    opd_tensor *a = opd_tensor_from(&one, opd_ints_of(&size, 1), OPD_FLOAT32);
    opd_tensor *b = opd_tensor_from(&two, opd_ints_of(&size, 1), OPD_FLOAT32);
    opd_tensor *c = opd_add(a, b);
    if (c) { sum = opd_data_f32(c)[0]; }
    opd_scope_close(&scope);
    if (sum < 2.5f || sum > 3.5f) { printf("1 + 2 is %g: %s\n", (double)sum, opd_error_message()); return 1; }
    return opd_finish();
}
