/* The operators of tests/linkage.sh.  The same source is compiled into a program, an archive, a linked library and a
   plug-in, as C and as C++. */
#include "opdispatch.h"

#ifdef __cplusplus
#define NOTHING opd_op_desc()
#else
#define NOTHING {0}
#endif

/* x * x + 1 */
static int square_plus(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    opd_tensor *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    int64_t i;
    if (!out) { return -1; }
    if (opd_data(out)) {
        const float *from = opd_data_f32(x);
        float *to = opd_data_f32(out);
        if (!opd_ok()) { return opd_fail(OPD_ERROR_DTYPE, "float32 only, not %s", opd_dtype_name(opd_dtype(x))); }
        for (i = 0; i < opd_numel(x); i++) { to[i] = from[i] * from[i] + 1; }
    }
    return opd_return_tensor(call, out);
}
static int square_plus_backward(opd_backward_call *bw) {
    opd_tensor *twice = opd_mul_Scalar(opd_bw_tensor(bw, 0), opd_value_double(2));
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), twice));
}
/* Says where it stands: an address in this library. */
static int here(opd_call *call) {
    static int64_t place;
    place = (int64_t)(uintptr_t)&place;
    return opd_return_int(call, place);
}

#ifdef __cplusplus
extern "C"
#endif
OPD_EXPORT void linkage_use(void);

OPD_LIBRARY(linkage, lib) {
    opd_op_desc square = NOTHING;
    square.schema = "square_plus(Tensor x) -> Tensor";
    square.cpu = square.fake = square_plus;
    square.backward = square_plus_backward;
    square.save = "x";
    square.vmap = OPD_BATCH_POINTWISE;
    square.out = "square_plus.out";
    opd_define(lib, &square);
}
OPD_LIBRARY_FRAGMENT(linkage, lib) {
    opd_op_desc other = NOTHING;
    other.schema = "here() -> int";
    other.composite = here;
    other.backward = OPD_NOT_DIFFERENTIABLE;
    opd_define(lib, &other);
}
OPD_LIBRARY_IMPL(linkage, Tracer, lib) { opd_impl(lib, "square_plus", OPD_FALLTHROUGH); }
OPD_LIBRARY_IMPL(linkage, Tracer, lib) { opd_impl(lib, "here", OPD_FALLTHROUGH); }

void linkage_use(void) {
    OPD_USE_LIBRARY(linkage);
    OPD_USE_LIBRARY(linkage_Tracer);
}
