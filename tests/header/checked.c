#define OPDISPATCH_IMPLEMENTATION
#include "opdispatch.h"
#include <stdio.h>
#include <string.h>
static int twice(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    for (int64_t i = 0; i < opd_numel(x); i++) { opd_data_f32(y)[i] = 2 * opd_data_f32(x)[i]; }
    return opd_return_tensor(call, y);
}
static int nothing(opd_call *call) {
    int64_t *to = opd_data_i64(NULL);
    bool *from = opd_data_bool(opd_arg_tensor(call, 0));
    for (int64_t i = 0; i < 10; i++) { to[i] = from[i]; }
    return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
OPD_LIBRARY(m, lib) {
    opd_def(lib, "twice(Tensor x) -> Tensor");
    opd_impl_key(lib, "twice", "CompositeExplicitAutograd", twice, NULL, NULL);
    opd_def(lib, "nothing(Tensor x) -> Tensor");
    opd_impl_key(lib, "nothing", "CPU", nothing, NULL, NULL);
}
static void fails(const char *name, opd_tensor *x, const char *why) {
    opd_tensor *y = OPD_CALL(opd_find(name), x);
    if (y || !strstr(opd_error_message(), why)) { printf("%s: %s, not %s\n", name, opd_error_message(), why); }
    opd_error_clear();
}
int main(void) {
    OPD_USE_LIBRARY(m);
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(3), OPD_FLOAT32), *meta;
        if (opd_data_f32(OPD_CALL(opd_find("m::twice"), x))[2] != 2) { printf("it does not compute\n"); }
        fails("m::twice", opd_ones(OPD_INTS(2), OPD_FLOAT64), "m::twice: opd_data_f32: the tensor of sizes [2] has dtype float64, not float32");
        fails("m::twice", opd_ones(OPD_INTS(1000, 1000), OPD_FLOAT16), "has dtype float16");
        fails("m::twice", opd_ones(OPD_INTS(700, 1000), OPD_BOOL), "has dtype bool");
        meta = opd_tensor_new_on(OPD_INTS(500000), OPD_FLOAT32, opd_device_make(OPD_META, -1));
        fails("m::twice", meta, "has no data to read");
        if (opd_data(meta)) { printf("a meta tensor has data\n"); }
        fails("m::nothing", x, "m::nothing: reading the data: the tensor is NULL");
    }
    return opd_finish();
}
