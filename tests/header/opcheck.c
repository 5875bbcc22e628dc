#include "opdispatch.h"
#include <stdio.h>
int main(void) {
    opd_scope scope = opd_scope_open();
    int64_t size = 3;
    opd_value x = opd_value_tensor(opd_ones(opd_ints_of(&size, 1), OPD_FLOAT32));
    opd_opcheck_options options = {0};
    options.tests = OPD_OPCHECK_VMAP;
    if (opd_opcheck(opd_find("aten::exp"), &x, 1, NULL)) { puts(opd_error_message()); return 1; }
    if (!opd_opcheck(opd_find("aten::exp"), &x, 1, &options)) { puts("vmap is checked without vmap"); return 2; }
    opd_error_clear();
    opd_scope_close(&scope);
    return opd_finish();
}
