//----------------------------------------------------------------------------------------------------------------------
//  >>cu:complex     pointwise formulas of complex numbers
//
//  The functions and formulas are the processor's: the text of src/ops/pointwise/complex_functions.typed.h.  One
//  kernel computes each formula as complex128, for all layouts, and for dtypes that are known only at run time.
//----------------------------------------------------------------------------------------------------------------------

typedef struct opdi_complex { double re, im; } opdi_complex;
#define OPDI_COMPLEX_TEXT static __device__
#define OPDI_INTERNAL static __device__ inline
#define OPDI_LOOP_TEXT static __device__ inline
#define OPDI_LOOPS_BEGIN
#define OPDI_LOOPS_END
#define OPDI_COLD_BEGIN
#define OPDI_COLD_END
#if !defined(DBL_MAX)
#define DBL_MAX 1.7976931348623157e308
#endif
OPDI_INTERNAL opdi_complex opdi_complex_make(double re, double im) { const opdi_complex z = {re, im}; return z; }
OPDI_INTERNAL opdi_complex opdi_complex_add(opdi_complex x, opdi_complex y) {
    return opdi_complex_make(x.re + y.re, x.im + y.im);
}
OPDI_INTERNAL opdi_complex opdi_complex_sub(opdi_complex x, opdi_complex y) {
    return opdi_complex_make(x.re - y.re, x.im - y.im);
}
OPDI_INTERNAL opdi_complex opdi_complex_mul(opdi_complex x, opdi_complex y) {
#if defined(OPD_CUDA_EMULATED)
    return opdi_complex_make(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
#else                                             /* without FMA, so that z * conj(z) is real */
    return opdi_complex_make(__dsub_rn(__dmul_rn(x.re, y.re), __dmul_rn(x.im, y.im)),
                             __dadd_rn(__dmul_rn(x.re, y.im), __dmul_rn(x.im, y.re)));
#endif
}
OPDI_INTERNAL opdi_complex opdi_complex_conj(opdi_complex x) { return opdi_complex_make(x.re, -x.im); }
OPDI_INTERNAL opdi_complex opdi_complex_times(double k, opdi_complex x) {
    return opdi_complex_make(k * x.re, k * x.im);
}
OPDI_INTERNAL bool opdi_complex_zero(opdi_complex x) { return x.re == 0 && x.im == 0; }
/* On the processor, these functions have the same bits everywhere if they are to. */
#define OPDI_CU_OF_DOUBLE(name) OPDI_INTERNAL double opdi_##name##_f64(double x) { return name(x); }
#define OPDI_CU_OF_DOUBLES(name) OPDI_INTERNAL double opdi_##name##_f64(double x, double y) { return name(x, y); }
OPDI_CU_OF_DOUBLE(exp) OPDI_CU_OF_DOUBLE(expm1) OPDI_CU_OF_DOUBLE(log) OPDI_CU_OF_DOUBLE(log1p) OPDI_CU_OF_DOUBLE(erfc)
OPDI_CU_OF_DOUBLE(sin) OPDI_CU_OF_DOUBLE(cos) OPDI_CU_OF_DOUBLE(tan) OPDI_CU_OF_DOUBLE(acos) OPDI_CU_OF_DOUBLE(sinh)
OPDI_CU_OF_DOUBLE(cosh) OPDI_CU_OF_DOUBLE(tanh) OPDI_CU_OF_DOUBLES(pow) OPDI_CU_OF_DOUBLES(hypot)
OPDI_CU_OF_DOUBLES(atan2)
#include "../ops/pointwise/complex_functions.typed.h"
OPDI_INTERNAL opdi_complex opdi_complex_over(opdi_complex x) {
    opdi_complex z;
    opdi_pair_over(x.re, x.im, opdi_pair_scale(x.re, x.im), &z.re, &z.im);
    return z;
}
OPDI_INTERNAL opdi_complex opdi_complex_unit(opdi_complex x) {
    opdi_complex z;
    opdi_pair_unit(x.re, x.im, opdi_pair_scale(x.re, x.im), &z.re, &z.im);
    return z;
}
/* The formulas for which the processor has loops of their own. */
#define OPDI_CU_COMPLEX_OWN(X) \
    X(add, 2, opdi_complex_add(x, y)) X(sub, 2, opdi_complex_sub(x, y)) X(neg, 1, opdi_complex_make(-x.re, -x.im)) \
    X(mul, 2, opdi_complex_mul(x, y)) X(square, 1, opdi_complex_mul(x, x)) X(div, 2, opdi_complex_div(x, y)) \
    X(reciprocal, 1, opdi_complex_over(x)) X(sign, 1, opdi_complex_unit(x)) X(exp, 1, opdi_complex_exp(x)) \
    X(sigmoid, 1, opdi_complex_sigmoid(x)) X(tanh, 1, opdi_complex_tanh(x)) X(sin, 1, opdi_complex_sin(x)) \
    X(cos, 1, opdi_complex_cos(x)) X(asin, 1, opdi_complex_asin(x))
#define OPDI_CU_COMPLEX_ALL(X) OPDI_COMPLEX_FORMULAS(X) OPDI_COMPLEX_TO_REAL(X) OPDI_CU_COMPLEX_OWN(X)

/* a: the number of the formula; in: the inputs that are numbers.  common: see opdi_cu_pointwise_general_args. */
struct opdi_cu_complex_args {
    opdi_cu_pointwise_walk w;
    opdi_complex a, in[3];
    int32_t common;
};
__device__ __forceinline__ opdi_complex opdi_cu_complex_in(const opdi_cu_complex_args &f, int k, int64_t at) {
    const int dtype = f.w.dtype[k];
    if (!f.w.data[k]) { return f.in[k - 1]; }
    opdi_cu_c128 v = dtype == OPD_COMPLEX128 ? static_cast<const opdi_cu_c128 *>(f.w.data[k])[at]
        : dtype == OPD_COMPLEX64 ? opdi_cu_c128(static_cast<const opdi_cu_c64 *>(f.w.data[k])[at])
                                 : opdi_cu_c128(opdi_cu_load_as<double>(f.w.data[k], at, dtype));
    if (f.common == OPD_COMPLEX64) { v = opdi_cu_c64(v); }
    return opdi_complex_make(v.re, v.im);
}
__device__ __forceinline__ void opdi_cu_complex_out(const opdi_cu_complex_args &f, int64_t at,
                                                            opdi_complex z) {
    const opdi_cu_c128 v(z.re, z.im);
    switch (f.w.dtype[0]) {
        case OPD_COMPLEX64: static_cast<opdi_cu_c64 *>(f.w.data[0])[at] = v; break;
        case OPD_COMPLEX128: static_cast<opdi_cu_c128 *>(f.w.data[0])[at] = v; break;
        default: opdi_cu_store_as<double>(f.w.data[0], at, f.w.dtype[0], z.re);
    }
}
template <int F> struct opdi_cu_complex_formula;
#define OPDI_CU_COMPLEX_FORMULA(name, inputs_, formula) \
    template <> struct opdi_cu_complex_formula<OPD_FORMULA_##name> { \
        enum { inputs = inputs_ }; \
        static __device__ __forceinline__ opdi_complex run(opdi_complex x, opdi_complex y, opdi_complex z, \
                                                           opdi_complex a) { \
            (void)y; (void)z; (void)a; \
            return formula; \
        } \
    };
OPDI_CU_COMPLEX_ALL(OPDI_CU_COMPLEX_FORMULA)
template <int F> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_complex_kernel(const __grid_constant__ opdi_cu_complex_args f) {
    constexpr int K = opdi_cu_complex_formula<F>::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0;
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE;
    int64_t at[K];
    OPDI_CU_ROLLED
    for (uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x; i < (uint32_t)f.w.n; i += step) {
        opdi_cu_pointwise_offsets<K>(f.w, i, at);
        const opdi_complex x = opdi_cu_complex_in(f, 1, at[1]);
        const opdi_complex y = K > 2 ? opdi_cu_complex_in(f, 2, at[Y]) : x;
        const opdi_complex z = K > 3 ? opdi_cu_complex_in(f, 3, at[Z]) : x;
        opdi_cu_complex_out(f, at[0], opdi_cu_complex_formula<F>::run(x, y, z, f.a));
    }
}
/* Computes a formula of complex numbers.  Returns 0, 1 if there are too many elements or dims for one launch, or -1 and
   sets an error. */
static int opdi_cu_complex_part(const opd_pointwise *p) {
    void (*kernel)(opdi_cu_complex_args) = NULL;
    opdi_cu_complex_args f;
    if (!opdi_cu_pointwise_walk_of(p, &f.w)) { return 1; }
    f.a.re = p->f64[0]; f.a.im = p->f64[1];
    f.common = p->common;
    for (int k = 1; k < 4; k++) {
        const bool number = k < p->noperands;
        f.in[k - 1].re = number ? p->operands[k].f64[0] : 0;
        f.in[k - 1].im = number ? p->operands[k].f64[1] : 0;
    }
    switch ((int)p->formula) {
#define OPDI_CU_COMPLEX_CASE(name, inputs, formula) \
        case OPD_FORMULA_##name: kernel = opdi_cu_complex_kernel<OPD_FORMULA_##name>; break;
        OPDI_CU_COMPLEX_ALL(OPDI_CU_COMPLEX_CASE)
        default: break;
    }
    return !kernel ? opd_fail(OPD_ERROR_NO_KERNEL, "the CUDA plug-in lacks function %d of complex numbers: compile "
                              "opdispatch_cuda.cu with the opdispatch.h of the program", (int)p->formula)
        : opdi_cu_launch(kernel, opdi_cu_grid(f.w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE, 0, f);
}
