//----------------------------------------------------------------------------------------------------------------------
//  >>cu:special     special functions
//
//  The functions are the processor's: the texts of src/ops/special/.  They compute in double for all dtypes.  Each
//  function has one kernel, which computes one element at a time, for all layouts, and for dtypes that are known only
//  at run time.
//----------------------------------------------------------------------------------------------------------------------

#undef OPDI_INTERNAL
#define OPDI_INTERNAL static __device__
#define OPDI_SHARED_TEXT static __device__
#define OPDI_SHARED_LARGE static __device__ OPDI_CU_NOINLINE
#define OPDI_ALWAYS static __device__ __forceinline__
#define OPDI_LOOPS_BEGIN
#define OPDI_LOOPS_END
#define OPDI_INF ((double)INFINITY)
#include "../kernels/erfcx_scaled.typed.h"
#include "../ops/special/bessel_zeros.typed.h"
#include "../ops/special/special_functions.typed.h"
#include "../ops/special/sample_derivatives.typed.h"

/* The functions opdi_special_NAME of one number and of two. */
#define OPDI_CU_SPECIAL_ONE(X) \
    X(lgamma) X(digamma) X(erfinv) X(ndtri) X(log_ndtr) X(erfcx) X(entr) X(i0) X(i0e) X(i1) X(i1e) X(k0) X(k1) \
    X(scaled_k0) X(scaled_k1) X(j0) X(j1) X(y0) X(y1) X(spherical_j0) X(airy_ai)
#define OPDI_CU_SPECIAL_TWO(X) \
    X(polygamma) X(igamma) X(igammac) X(zeta) X(xlog1py) X(gamma_moves) X(chebyshev_t) X(chebyshev_u) X(chebyshev_v) \
    X(chebyshev_w) X(shifted_t) X(shifted_u) X(shifted_v) X(shifted_w) X(hermite_h) X(hermite_he) X(laguerre_l) \
    X(legendre_p)
enum opdi_cu_special {
#define OPDI_CU_SPECIAL_NUMBER(name) OPDI_CU_SPECIAL_##name,
    OPDI_CU_SPECIAL_ONE(OPDI_CU_SPECIAL_NUMBER) OPDI_CU_SPECIAL_TWO(OPDI_CU_SPECIAL_NUMBER)
    OPDI_CU_SPECIAL_beta_moves, OPDI_CU_SPECIALS
};
template <int F> struct opdi_cu_special_function;
#define OPDI_CU_SPECIAL_RUN(name, count, call) \
    template <> struct opdi_cu_special_function<OPDI_CU_SPECIAL_##name> { \
        enum { inputs = count }; \
        static __device__ __forceinline__ double run(double x, double y, double z) { (void)y; (void)z; return call; } \
    };
#define OPDI_CU_SPECIAL_RUN_ONE(name) OPDI_CU_SPECIAL_RUN(name, 1, opdi_special_##name(x))
#define OPDI_CU_SPECIAL_RUN_TWO(name) OPDI_CU_SPECIAL_RUN(name, 2, opdi_special_##name(x, y))
OPDI_CU_SPECIAL_ONE(OPDI_CU_SPECIAL_RUN_ONE)
OPDI_CU_SPECIAL_TWO(OPDI_CU_SPECIAL_RUN_TWO)
OPDI_CU_SPECIAL_RUN(beta_moves, 3, opdi_beta_moves(x, y, z))

/* in: the inputs that are numbers.  common: the dtype to which inputs are converted first; it is the result's. */
struct opdi_cu_special_args {
    opdi_cu_pointwise_walk w;
    double in[3];
    int32_t common;
};
__device__ __forceinline__ double opdi_cu_special_in(const opdi_cu_special_args &f, int k, int64_t at) {
    if (!f.w.data[k]) { return f.in[k - 1]; }
    if (f.common == OPD_FLOAT64) { return opdi_cu_load_as<double>(f.w.data[k], at, f.w.dtype[k]); }
    const float v = opdi_cu_load_as<float>(f.w.data[k], at, f.w.dtype[k]);
    return f.common == OPD_FLOAT32 || f.common == f.w.dtype[k] ? v : opdi_cu_through<float>(v, f.common);
}
template <int F> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_special_kernel(const opdi_cu_special_args f) {
    constexpr int K = opdi_cu_special_function<F>::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0;
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE;
    int64_t at[K];
    OPDI_CU_ROLLED
    for (uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x; i < (uint32_t)f.w.n; i += step) {
        opdi_cu_pointwise_offsets<K>(f.w, i, at);
        const double x = opdi_cu_special_in(f, 1, at[1]), y = K > 2 ? opdi_cu_special_in(f, 2, at[Y]) : 0;
        const double z = K > 3 ? opdi_cu_special_in(f, 3, at[Z]) : 0, r = opdi_cu_special_function<F>::run(x, y, z);
        if (f.common == OPD_FLOAT64) { opdi_cu_store_as<double>(f.w.data[0], at[0], OPD_FLOAT64, r); }
        else { opdi_cu_store_as<float>(f.w.data[0], at[0], f.common, (float)r); }
    }
}
/* Computes a function, whose number is p->i64[0].  Returns 0, 1 if there are too many elements or dims for one launch,
   or -1 and sets an error. */
static int opdi_cu_special_part(const opd_pointwise *p) {
    static void (*const kernels[OPDI_CU_SPECIALS])(opdi_cu_special_args) = {
#define OPDI_CU_SPECIAL_KERNEL(name) opdi_cu_special_kernel<OPDI_CU_SPECIAL_##name>,
        OPDI_CU_SPECIAL_ONE(OPDI_CU_SPECIAL_KERNEL) OPDI_CU_SPECIAL_TWO(OPDI_CU_SPECIAL_KERNEL)
        opdi_cu_special_kernel<OPDI_CU_SPECIAL_beta_moves>};
    opdi_cu_special_args f;
    if (!opdi_cu_pointwise_walk_of(p, &f.w)) { return 1; }
    for (int k = 1; k < 4; k++) { f.in[k - 1] = k < p->noperands ? p->operands[k].f64[0] : 0; }
    f.common = (int32_t)p->common;
    return opdi_cu_launch(kernels[p->i64[0]], opdi_cu_grid(f.w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE, 0, f);
}

//== operators =========================================================================================================

/* The dims of a computation, the innermost first, and the strides of its operands. */
struct opdi_cu_special_dims { int64_t sizes[OPD_MAX_DIMS], strides[4][OPD_MAX_DIMS]; };
/* Fills in p->ndim, p->sizes and the strides for the result t[0] and the inputs t[k], which are broadcast; t[k] is NULL
   for a number.  Sorts the dims by the strides of the result, and merges dims that are adjacent in all operands. */
static void opdi_cu_special_order(opd_pointwise *p, opd_tensor *const *t, opdi_cu_special_dims *dims) {
    const int ndim = opd_ndim(t[0]), nops = p->noperands;
    int by[OPD_MAX_DIMS], n = 0, k;
    for (int d = ndim - 1; d >= 0; d--) {
        int at = n;
        if (opd_sizes(t[0])[d] == 1) { continue; }
        for (n++; at > 0 && opd_strides(t[0])[by[at - 1]] > opd_strides(t[0])[d]; at--) { by[at] = by[at - 1]; }
        by[at] = d;
    }
    p->ndim = 0;
    for (int i = 0; i < n; i++) {
        const int64_t size = opd_sizes(t[0])[by[i]];
        int64_t strides[4] = {0, 0, 0, 0};
        bool merged = p->ndim > 0;
        for (k = 0; k < nops; k++) {
            const int d = t[k] ? by[i] - (ndim - opd_ndim(t[k])) : -1, last = p->ndim - 1;
            if (d >= 0 && opd_sizes(t[k])[d] != 1) { strides[k] = opd_strides(t[k])[d]; }
            merged = merged && strides[k] == dims->strides[k][last] * dims->sizes[last];
        }
        if (merged) { dims->sizes[p->ndim - 1] *= size; continue; }
        dims->sizes[p->ndim] = size;
        for (k = 0; k < nops; k++) { dims->strides[k][p->ndim] = strides[k]; }
        p->ndim++;
    }
    if (p->ndim == 0) {                           /* one element */
        for (k = 0; k < 4; k++) { dims->strides[k][0] = 1; }
        dims->sizes[p->ndim++] = 1;
    }
    p->sizes = dims->sizes;
    for (k = 0; k < nops; k++) { p->operands[k].strides = dims->strides[k]; }
}
/* Returns a number, converted to the dtype `common`: the integer v if `whole` is true, else d. */
static double opdi_cu_special_number(bool whole, int64_t v, double d, opd_scalar_type common) {
    const float f = whole ? (float)v : (float)d;
    return common == OPD_FLOAT64 ? whole ? (double)v : d
        : common == OPD_FLOAT16 ? opdi_cu_cast<float>(opdi_cu_cast<opdi_cu_f16>(f))
        : common == OPD_BFLOAT16 ? opdi_cu_cast<float>(opdi_cu_cast<opdi_cu_bf16>(f)) : f;
}
/* Fills in operand k for argument k - 1 of the call.  Returns the argument if it is a tensor of the device, or NULL if
   it is a number: a Scalar, or a tensor of the CPU without dims. */
static opd_tensor *opdi_cu_special_operand(opd_call *call, opd_pointwise *p, int k) {
    const opd_value v = opd_call_args(call)[k - 1];
    opd_operand *o = &p->operands[k];
    o->dtype = p->common;
    if (v.tag != OPD_TAG_TENSOR) {
        o->f64[0] = p->i64[0] == OPDI_CU_SPECIAL_polygamma ? (double)v.u.i
            : opdi_cu_special_number(v.tag != OPD_TAG_FLOAT, v.tag == OPD_TAG_FLOAT ? 0 : v.u.i,
                                     v.tag == OPD_TAG_FLOAT ? v.u.d : 0, p->common);
        return NULL;
    }
    if (opd_tensor_device(v.u.t).type == OPD_CPU) {
        const bool whole = opd_dtype_is_integral(opd_dtype(v.u.t), true);
        o->f64[0] = opdi_cu_special_number(whole, whole ? opd_item_i64(v.u.t) : 0, whole ? 0 : opd_item_f64(v.u.t),
                                           p->common);
        return NULL;
    }
    o->dtype = opd_dtype(v.u.t);
    o->data = opdi_cu_data<void>(v.u.t);
    return v.u.t;
}
/* Returns whether the result overlaps an input without having the same elements in the same places.  The library does
   not compare dense tensors before it calls a pointwise kernel. */
static bool opdi_cu_special_overlaps(const opd_tensor *out, const opd_tensor *in, const opd_pointwise *p, int k) {
    const int64_t mine = opd_numel(out) * (int64_t)opd_dtype_size(opd_dtype(out));
    bool same = p->operands[0].data == p->operands[k].data && opd_dtype(out) == opd_dtype(in);
    for (int d = 0; d < p->ndim; d++) { same = same && p->operands[0].strides[d] == p->operands[k].strides[d]; }
    return !same && opdi_cu_dense(out) && opdi_cu_dense(in) &&
        opdi_cu_overlap(p->operands[0].data, mine, p->operands[k].data,
                        opd_numel(in) * (int64_t)opd_dtype_size(opd_dtype(in)));
}
/* The kernel of all operators below.  call->user is the number of the function. */
static int opdi_cu_special_run(opd_call *call) {
    const int function = (int)(uintptr_t)opd_call_user(call);
    opdi_cu_special_dims dims;
    opd_tensor *t[4] = {NULL, NULL, NULL, NULL};
    opd_pointwise p;
    if (opd_results_from_fake(call)) { return -1; }
    t[0] = opdi_cu_result(call, 0);
    if (opd_numel(t[0]) == 0) { return 0; }
    memset(&p, 0, sizeof p);
    p.noperands = opd_call_nargs(call) + 1;
    p.i64[0] = function;
    p.common = p.operands[0].dtype = opd_dtype(t[0]);
    p.numel = opd_numel(t[0]);
    p.operands[0].data = opdi_cu_data<void>(t[0]);
    for (int k = 1; k < p.noperands; k++) { t[k] = opdi_cu_special_operand(call, &p, k); }
    opdi_cu_special_order(&p, t, &dims);
    for (int k = 1; k < p.noperands; k++) {
        if (!t[k] || !opdi_cu_special_overlaps(t[0], t[k], &p, k)) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "unsupported operation: some elements of the input tensor and the "
                        "written-to tensor refer to a single memory location. Please clone() the tensor before "
                        "performing the operation.");
    }
    return opd_ok() ? opdi_cu_pointwise_split(&p, opdi_cu_special_part) : -1;
}
typedef struct opdi_cu_special_row { const char *name; int function; } opdi_cu_special_row;
#define OPDI_CU_SPECIAL_POLYNOMIAL(name, function) \
    {name, OPDI_CU_SPECIAL_##function}, {name ".x_scalar", OPDI_CU_SPECIAL_##function}, \
    {name ".n_scalar", OPDI_CU_SPECIAL_##function},
static const opdi_cu_special_row opdi_cu_special_rows[] = {
    {"lgamma", OPDI_CU_SPECIAL_lgamma}, {"digamma", OPDI_CU_SPECIAL_digamma},
    {"polygamma", OPDI_CU_SPECIAL_polygamma}, {"erfinv", OPDI_CU_SPECIAL_erfinv},
    {"special_ndtri", OPDI_CU_SPECIAL_ndtri}, {"special_log_ndtr", OPDI_CU_SPECIAL_log_ndtr},
    {"special_erfcx", OPDI_CU_SPECIAL_erfcx}, {"special_entr", OPDI_CU_SPECIAL_entr},
    {"i0", OPDI_CU_SPECIAL_i0}, {"special_i0e", OPDI_CU_SPECIAL_i0e},
    {"special_i1", OPDI_CU_SPECIAL_i1}, {"special_i1e", OPDI_CU_SPECIAL_i1e},
    {"special_modified_bessel_i0", OPDI_CU_SPECIAL_i0}, {"special_modified_bessel_i1", OPDI_CU_SPECIAL_i1},
    {"special_modified_bessel_k0", OPDI_CU_SPECIAL_k0}, {"special_modified_bessel_k1", OPDI_CU_SPECIAL_k1},
    {"special_scaled_modified_bessel_k0", OPDI_CU_SPECIAL_scaled_k0},
    {"special_scaled_modified_bessel_k1", OPDI_CU_SPECIAL_scaled_k1},
    {"special_bessel_j0", OPDI_CU_SPECIAL_j0}, {"special_bessel_j1", OPDI_CU_SPECIAL_j1},
    {"special_bessel_y0", OPDI_CU_SPECIAL_y0}, {"special_bessel_y1", OPDI_CU_SPECIAL_y1},
    {"special_spherical_bessel_j0", OPDI_CU_SPECIAL_spherical_j0}, {"special_airy_ai", OPDI_CU_SPECIAL_airy_ai},
    {"igamma", OPDI_CU_SPECIAL_igamma}, {"igammac", OPDI_CU_SPECIAL_igammac}, {"special_zeta", OPDI_CU_SPECIAL_zeta},
    {"special_xlog1py", OPDI_CU_SPECIAL_xlog1py}, {"_standard_gamma_grad", OPDI_CU_SPECIAL_gamma_moves},
    {"_dirichlet_grad", OPDI_CU_SPECIAL_beta_moves},
    OPDI_CU_SPECIAL_POLYNOMIAL("special_chebyshev_polynomial_t", chebyshev_t)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_chebyshev_polynomial_u", chebyshev_u)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_chebyshev_polynomial_v", chebyshev_v)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_chebyshev_polynomial_w", chebyshev_w)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_shifted_chebyshev_polynomial_t", shifted_t)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_shifted_chebyshev_polynomial_u", shifted_u)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_shifted_chebyshev_polynomial_v", shifted_v)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_shifted_chebyshev_polynomial_w", shifted_w)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_hermite_polynomial_h", hermite_h)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_hermite_polynomial_he", hermite_he)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_laguerre_polynomial_l", laguerre_l)
    OPDI_CU_SPECIAL_POLYNOMIAL("special_legendre_polynomial_p", legendre_p)};
static void opdi_cu_special_register(opd_library *lib) {
    for (const opdi_cu_special_row &r : opdi_cu_special_rows) {
        (void)opd_impl_key(lib, r.name, "CUDA", opdi_cu_special_run, (void *)(uintptr_t)r.function, NULL);
    }
}
