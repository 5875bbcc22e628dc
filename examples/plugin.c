/* A plug-in: operators in a shared library, which a program loads while it runs.
   cc -O2 -shared -fPIC -DOPDISPATCH_PLUGIN examples/plugin.c -o plugin.so

   examples/plugin_host.c loads this plug-in.  The code has nothing special to plug-ins: without -DOPDISPATCH_PLUGIN,
   the same file can be compiled into a program. */
#include "../opdispatch.h"

/* The sum of x[i] * w[i]: one loop in place of a product and a sum.  As `fake`, makes only the result. */
static int dot(opd_call *call) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *w = opd_contiguous(opd_arg_tensor(call, 1));
    OPD_CHECK(opd_is_same_size(x, w), "x and w must have the same sizes");
    opd_tensor *out = opd_result(call, 0, NULL, 0, OPD_FLOAT32);
    if (!out || !opd_data(out)) { return out ? 0 : -1; }          /* an error; or, as `fake`, only sizes */
    const float *a = opd_data_f32(x), *b = opd_data_f32(w);       /* NULL, with an error, for another dtype */
    if (!a || !b) { return -1; }
    double sum = 0;
    for (int64_t i = 0; i < opd_numel(x); i++) { sum += (double)a[i] * (double)b[i]; }
    *opd_data_f32(out) = (float)sum;
    return 0;
}

/* Each argument's gradient is the other one times the gradient of the result. */
static int dot_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0)) { opd_bw_return(bw, 0, opd_mul(opd_bw_tensor(bw, 1), grad)); }
    if (opd_bw_needs(bw, 1)) { opd_bw_return(bw, 1, opd_mul(opd_bw_tensor(bw, 0), grad)); }
    return opd_ok() ? 0 : -1;
}

OPD_LIBRARY(plugin, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "dot(Tensor x, Tensor w) -> Tensor", .cpu = dot, .fake = dot,
        .backward = dot_backward, .save = "x, w", .vmap = OPD_BATCH_LOOP });
}
