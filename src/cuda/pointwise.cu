//----------------------------------------------------------------------------------------------------------------------
//  >>cu:pointwise   pointwise formulas
//
//  Each pointwise formula becomes a functor, which three kernels can run.  Contiguous operands of the same dtype are
//  processed 16 bytes at a time.  Operands of the same dtype that have strides or repeated elements are processed in
//  the same way along the innermost dim, if that is possible.  All other operands are processed one element at a time,
//  with dtypes that are known only at run time.
//----------------------------------------------------------------------------------------------------------------------

/* The numbers of a pointwise formula: its parameters a, b, c, and in `in` those operands that are numbers instead of
   tensors. */
template <typename C> struct opdi_cu_pointwise_numbers { C a, b, c, in[3]; };

template <int F, typename C> struct opdi_cu_pointwise_formula;
/* heavy: whether a formula is more than plain arithmetic; the code of heavy formulas is compiled in few variants */
#define OPDI_CU_HEAVY_W 0
#define OPDI_CU_HEAVY_V 0
#define OPDI_CU_HEAVY_S 1
#define OPDI_CU_HEAVY_D 1
#define OPDI_CU_HEAVY_M 1
#define OPDI_CU_HEAVY_N 1
#define OPDI_CU_FORMULA(name, inputs_, kind, formula) \
    template <> struct opdi_cu_pointwise_formula<OPD_FORMULA_##name, OPD_T> { \
        enum { inputs = inputs_, heavy = OPDI_CU_HEAVY_##kind }; \
        static __device__ __forceinline__ OPD_T run(OPD_T x, OPD_T y, OPD_T z, OPD_T a, OPD_T b, OPD_T c) { \
            (void)y; (void)z; (void)a; (void)b; (void)c; \
            return (OPD_T)(formula); \
        } \
    };
#define OPD_FORMULA_QUALIFIERS static __device__ inline
#define OPD_ADD(x, y) ((x) + (y))
#define OPD_SUB(x, y) ((x) - (y))
#define OPD_MUL(x, y) ((x) * (y))
#define OPD_NEG(x) (-(x))
#define OPD_T float
#define OPD_FN(name) name##f
#define OPD_H(name) opdi_cu_f32_##name
#define OPD_FORMULA_HELPERS_FLOAT
#include "opdispatch.h"
OPD_FORMULAS_ALL(OPDI_CU_FORMULA)
OPD_FORMULAS_FLOAT(OPDI_CU_FORMULA)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#define OPD_T double
#define OPD_FN(name) name
#define OPD_H(name) opdi_cu_f64_##name
#define OPD_FORMULA_HELPERS_FLOAT
#include "opdispatch.h"
OPD_FORMULAS_ALL(OPDI_CU_FORMULA)
OPD_FORMULAS_FLOAT(OPDI_CU_FORMULA)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#define OPD_T int64_t
#define OPD_H(name) opdi_cu_i64_##name
#define OPD_HELPER(name) opdi_cu_i64_##name
#define OPD_ADD(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define OPD_SUB(x, y) ((int64_t)((uint64_t)(x) - (uint64_t)(y)))
#define OPD_MUL(x, y) ((int64_t)((uint64_t)(x) * (uint64_t)(y)))
#define OPD_NEG(x) ((int64_t)(0 - (uint64_t)(x)))
#define OPD_NOTES
#define OPD_PASS_NOTES
#define OPD_NOTE(k)                               /* notes nothing: the result is 0 where PyTorch's is undefined */
#define OPD_SMALLEST INT64_MIN
#define OPD_FORMULA_HELPERS_INT
#include "opdispatch.h"
OPD_FORMULAS_ALL(OPDI_CU_FORMULA)
OPD_FORMULAS_INT(OPDI_CU_FORMULA)
#undef OPD_T
#undef OPD_H
#undef OPD_HELPER
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#undef OPD_NOTES
#undef OPD_PASS_NOTES
#undef OPD_NOTE
#undef OPD_SMALLEST

/* Returns whether the fast kernels store bool for pointwise formula f (a comparison, for example), instead of the
   inputs' type.  (`where` reads a bool, but does not store it.) */
__host__ __device__ constexpr bool opdi_cu_asks(int f) {
    return f == OPD_FORMULA_eq || f == OPD_FORMULA_ne || f == OPD_FORMULA_lt || f == OPD_FORMULA_le ||
           f == OPD_FORMULA_gt || f == OPD_FORMULA_ge || f == OPD_FORMULA_logical_not ||
           f == OPD_FORMULA_logical_and || f == OPD_FORMULA_logical_or || f == OPD_FORMULA_logical_xor ||
           f == OPD_FORMULA_isnan || f == OPD_FORMULA_isinf || f == OPD_FORMULA_isfinite ||
           f == OPD_FORMULA_isposinf || f == OPD_FORMULA_isneginf || f == OPD_FORMULA_signbit;
}
template <bool B, typename T> struct opdi_cu_or_bool { typedef T type; };
template <typename T> struct opdi_cu_or_bool<true, T> { typedef bool type; };

//== kernels for contiguous operands ===================================================================================

#define OPDI_CU_BLOCK_SIZE 256

template <typename C> struct opdi_cu_pointwise_flat_args {
    void *out;
    const void *in[3];                            /* NULL: the operand is a number */
    int64_t n;
    int32_t numbers;                              /* bit k: in[k] is NULL */
    opdi_cu_pointwise_numbers<C> s;
};
/* Loads the first `runs` of U runs of N elements, which are `step` apart.  If p is NULL, the operand is a number, and
   nothing is loaded.  A kernel loads the runs of all operands before it uses any, so that all loads are in flight at
   once.  Afterwards, the kernel finds out from the mask `numbers` which operands are numbers; the compiler does not
   know that this is the same condition. */
template <int N, int U, typename T>
__device__ __forceinline__ void opdi_cu_pointwise_fetch(opdi_cu_vector<T, N> *to /*[U]*/, const T *p, int64_t i,
                                                        int step, int runs) {
    if (p) {
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { if (u < runs) { to[u] = opdi_cu_load_vector<N>(p + i + u * step); } }
    }
}
template <typename C, typename T, int N>
__device__ __forceinline__ C opdi_cu_pointwise_taken(const opdi_cu_vector<T, N> &v, int j, bool number, C s) {
    return number ? s : opdi_cu_taken<C>(v, j);
}
/* Returns the number of runs of 16 bytes that a thread computes: enough to keep loads in flight with one or two
   operands, but with few copies of the code of heavy formulas. */
__host__ __device__ constexpr int opdi_cu_pointwise_unrolled(int formula, int inputs, bool heavy, int size) {
    return !heavy ? inputs == 1 ? 4 : 2 : inputs == 1 && (size >= 4 || formula == OPD_FORMULA_gelu ||
        formula == OPD_FORMULA_gelu_tanh || formula == OPD_FORMULA_sigmoid || formula == OPD_FORMULA_silu) ? 2 : 1;
}
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_flat(const opdi_cu_pointwise_flat_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    typedef typename opdi_cu_or_bool<opdi_cu_asks(F), T>::type R;
    typedef typename opdi_cu_or_bool<F == OPD_FORMULA_where, T>::type X;
    constexpr int N = 16 / sizeof(T), K = formula::inputs, step = OPDI_CU_BLOCK_SIZE * N;
    constexpr int U = opdi_cu_pointwise_unrolled(F, K, formula::heavy, sizeof(T));
    R *out = (R *)f.out;
    const X *xp = (const X *)f.in[0];
    const T *yp = (const T *)f.in[1], *zp = (const T *)f.in[2];
    const int64_t i = (int64_t)blockIdx.x * (step * U) + (int)threadIdx.x * N, left = f.n - i;
    const int runs = left >= step * U ? U : left < N ? 0 : (int)((uint32_t)(left - N) / (uint32_t)step) + 1;
    opdi_cu_vector<X, N> x[U];
    opdi_cu_vector<T, N> y[U], z[U];
    opdi_cu_pointwise_fetch<N, U>(x, xp, i, step, runs);
    if (K > 1) { opdi_cu_pointwise_fetch<N, U>(y, yp, i, step, runs); }
    if (K > 2) { opdi_cu_pointwise_fetch<N, U>(z, zp, i, step, runs); }
    OPDI_CU_UNROLL
    for (int u = 0; u < U; u++) {
        opdi_cu_vector<R, N> r;
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) {
            const C a = opdi_cu_pointwise_taken(x[u], j, f.numbers & 1, f.s.in[0]);
            const C b = K > 1 ? opdi_cu_pointwise_taken(y[u], j, f.numbers & 2, f.s.in[1]) : a;
            const C c = K > 2 ? opdi_cu_pointwise_taken(z[u], j, f.numbers & 4, f.s.in[2]) : a;
            r.at[j] = opdi_cu_cast<R>(formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
        }
        if (u < runs) { opdi_cu_store_vector<N>(out + i + u * step, r); }
    }
    const int64_t last = f.n / N * N + threadIdx.x;             /* elements after the last run */
    if (blockIdx.x == gridDim.x - 1 && last < f.n) {
        const C a = xp ? opdi_cu_load<C>(xp + last) : f.s.in[0];
        const C b = K > 1 ? (yp ? opdi_cu_load<C>(yp + last) : f.s.in[1]) : a;
        const C c = K > 2 ? (zp ? opdi_cu_load<C>(zp + last) : f.s.in[2]) : a;
        opdi_cu_store(out + last, formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
    }
}

//== kernels for operands with strides =================================================================================

#define OPDI_CU_POINTWISE_DIMS 12
/* Computes n / d for n below 2^31 as ((n * m >> 32) + n) >> s. */
struct opdi_cu_pointwise_divider {
    uint32_t d, m, s;
    __device__ __forceinline__ uint32_t of(uint32_t n) const { return (__umulhi(n, m) + n) >> s; }
};
static opdi_cu_pointwise_divider opdi_cu_divide_by(uint32_t d) {
    opdi_cu_pointwise_divider r = {d, 0, 0};
    while ((uint64_t)1 << r.s < d) { r.s++; }
    r.m = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << r.s) - d)) / d + 1);
    return r;
}
/* The layout of up to four operands with fewer than 2^31 elements.  Dim 0 is the innermost; strides are in elements. */
struct opdi_cu_pointwise_walk {
    int32_t ndim, n;
    opdi_cu_pointwise_divider sizes[OPDI_CU_POINTWISE_DIMS];
    int64_t strides[4][OPDI_CU_POINTWISE_DIMS];
    void *data[4];                                /* NULL: the operand is a number */
    int32_t dtype[4];
};
/* Computes the offset of element i in each of K operands. */
template <int K> __device__ __forceinline__ void opdi_cu_pointwise_offsets(const opdi_cu_pointwise_walk &w, uint32_t i,
                                                                           int64_t *at) {
#pragma unroll
    for (int k = 0; k < K; k++) { at[k] = 0; }
#pragma unroll 1
    for (int d = 0; d < w.ndim - 1; d++) {
        const uint32_t q = w.sizes[d].of(i);
        const int64_t r = i - q * w.sizes[d].d;
#pragma unroll
        for (int k = 0; k < K; k++) { at[k] += r * w.strides[k][d]; }
        i = q;
    }
#pragma unroll
    for (int k = 0; k < K; k++) { at[k] += (int64_t)i * w.strides[k][w.ndim - 1]; }
}
/* The arguments of the kernel for operands with strides.  A thread processes element i or, if `run` is true, the N
   elements from i * N on, which are contiguous in each operand, or the same element. */
template <typename C> struct opdi_cu_pointwise_strided_args {
    opdi_cu_pointwise_walk w;
    opdi_cu_pointwise_numbers<C> s;
    int32_t run, numbers;
};
/* Loads the N elements at p + at.  If `stride` is 0, they are the same element, which is only stored as to->at[0]. */
template <int N, typename T>
__device__ __forceinline__ void opdi_cu_pointwise_fetch_run(opdi_cu_vector<T, N> *to, const T *p, int64_t at,
                                                            int64_t stride) {
    if (!p) { return; }
    if (stride) { *to = opdi_cu_load_vector<N>(p + at); } else { to->at[0] = p[at]; }
}
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_strided(const opdi_cu_pointwise_strided_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    typedef typename opdi_cu_or_bool<opdi_cu_asks(F), T>::type R;
    typedef typename opdi_cu_or_bool<F == OPD_FORMULA_where, T>::type X;
    constexpr int N = 16 / sizeof(T), K = formula::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0;
    R *out = (R *)f.w.data[0];
    const X *xp = (const X *)f.w.data[1];
    const T *yp = (const T *)f.w.data[2], *zp = (const T *)f.w.data[3];
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE;
    int64_t at[K];
    if (f.run) {
        const bool xs = f.w.strides[1][0] != 0, ys = f.w.strides[2][0] != 0, zs = f.w.strides[3][0] != 0;
        OPDI_CU_ROLLED
        for (uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x; i < (uint32_t)f.w.n; i += step) {
            opdi_cu_vector<X, N> x;
            opdi_cu_vector<T, N> y, z;
            opdi_cu_vector<R, N> r;
            opdi_cu_pointwise_offsets<K>(f.w, i * N, at);
            opdi_cu_pointwise_fetch_run<N>(&x, xp, at[1], f.w.strides[1][0]);
            if (K > 2) { opdi_cu_pointwise_fetch_run<N>(&y, yp, at[Y], f.w.strides[2][0]); }
            if (K > 3) { opdi_cu_pointwise_fetch_run<N>(&z, zp, at[Z], f.w.strides[3][0]); }
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) {
                const C a = opdi_cu_cast<C>(xs ? x.at[j] : x.at[0]);
                const C b = opdi_cu_cast<C>(ys ? y.at[j] : y.at[0]), c = opdi_cu_cast<C>(zs ? z.at[j] : z.at[0]);
                const C av = f.numbers & 1 ? f.s.in[0] : a;
                r.at[j] = opdi_cu_cast<R>(formula::run(av, K > 2 ? (f.numbers & 2 ? f.s.in[1] : b) : av,
                                                       K > 3 ? (f.numbers & 4 ? f.s.in[2] : c) : av, f.s.a, f.s.b,
                                                       f.s.c));
            }
            opdi_cu_store_vector<N>(out + at[0], r);
        }
        return;
    }
    OPDI_CU_ROLLED
    for (uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x; i < (uint32_t)f.w.n; i += step) {
        opdi_cu_pointwise_offsets<K>(f.w, i, at);
        const C x = xp ? opdi_cu_load<C>(xp + at[1]) : f.s.in[0];
        const C y = K > 2 ? (yp ? opdi_cu_load<C>(yp + at[Y]) : f.s.in[1]) : x;
        const C z = K > 3 ? (zp ? opdi_cu_load<C>(zp + at[Z]) : f.s.in[2]) : x;
        opdi_cu_store(out + at[0], formula::run(x, y, z, f.s.a, f.s.b, f.s.c));
    }
}

/* Computes a heavy formula in f.run runs of N elements, of which a thread processes U.  If there is only one dim, there
   may be up to N - 1 more elements, which the last block processes. */
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_heavy(const opdi_cu_pointwise_strided_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    typedef typename opdi_cu_or_bool<opdi_cu_asks(F), T>::type R;
    constexpr int N = 16 / sizeof(T), K = formula::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0;
    constexpr int U = opdi_cu_pointwise_unrolled(F, K - 1, true, sizeof(T));
    R *out = (R *)f.w.data[0];
    const T *xp = (const T *)f.w.data[1], *yp = (const T *)f.w.data[2], *zp = (const T *)f.w.data[3];
    const uint32_t first = blockIdx.x * (OPDI_CU_BLOCK_SIZE * U) + threadIdx.x;
    const bool xs = f.w.strides[1][0] != 0, ys = f.w.strides[2][0] != 0, zs = f.w.strides[3][0] != 0;
    opdi_cu_vector<T, N> x[U], y[U], z[U];
    int64_t at[U][K];
    OPDI_CU_UNROLL
    for (int u = 0; u < U; u++) {
        const uint32_t i = first + u * OPDI_CU_BLOCK_SIZE;
        if (i >= (uint32_t)f.run) { break; }
        opdi_cu_pointwise_offsets<K>(f.w, i * N, at[u]);
        opdi_cu_pointwise_fetch_run<N>(&x[u], xp, at[u][1], f.w.strides[1][0]);
        if (K > 2) { opdi_cu_pointwise_fetch_run<N>(&y[u], yp, at[u][Y], f.w.strides[2][0]); }
        if (K > 3) { opdi_cu_pointwise_fetch_run<N>(&z[u], zp, at[u][Z], f.w.strides[3][0]); }
    }
    OPDI_CU_UNROLL
    for (int u = 0; u < U; u++) {
        opdi_cu_vector<R, N> r;
        if (first + u * OPDI_CU_BLOCK_SIZE >= (uint32_t)f.run) { break; }
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) {
            const C a = f.numbers & 1 ? f.s.in[0] : opdi_cu_cast<C>(xs ? x[u].at[j] : x[u].at[0]);
            const C b = K < 3 ? a : f.numbers & 2 ? f.s.in[1] : opdi_cu_cast<C>(ys ? y[u].at[j] : y[u].at[0]);
            const C c = K < 4 ? a : f.numbers & 4 ? f.s.in[2] : opdi_cu_cast<C>(zs ? z[u].at[j] : z[u].at[0]);
            r.at[j] = opdi_cu_cast<R>(formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
        }
        opdi_cu_store_vector<N>(out + at[u][0], r);
    }
    const int64_t last = (int64_t)f.run * N + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && last < f.w.n) {
        const C a = xp ? opdi_cu_load<C>(xp + (xs ? last : 0)) : f.s.in[0];
        const C b = K < 3 ? a : yp ? opdi_cu_load<C>(yp + (ys ? last : 0)) : f.s.in[1];
        const C c = K < 4 ? a : zp ? opdi_cu_load<C>(zp + (zs ? last : 0)) : f.s.in[2];
        opdi_cu_store(out + last, formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
    }
}

//== kernels for dtypes known at run time ==============================================================================

#define OPDI_CU_EACH_DTYPE(X) \
    X(OPD_FLOAT32, float) X(OPD_FLOAT64, double) X(OPD_FLOAT16, opdi_cu_f16) X(OPD_BFLOAT16, opdi_cu_bf16) \
    X(OPD_UINT8, uint8_t) X(OPD_INT8, int8_t) X(OPD_INT16, int16_t) X(OPD_INT32, int32_t) X(OPD_INT64, int64_t) \
    X(OPD_BOOL, bool)
template <typename C> __device__ OPDI_CU_NOINLINE C opdi_cu_load_as(const void *p, int64_t i, int dtype) {
    switch (dtype) {
#define OPDI_CU_LOAD_CASE(number, T) case number: return opdi_cu_load<C>((const T *)p + i);
        OPDI_CU_EACH_DTYPE(OPDI_CU_LOAD_CASE)
        default: return C(0);
    }
}
template <typename C> __device__ OPDI_CU_NOINLINE void opdi_cu_store_as(void *p, int64_t i, int dtype, C v) {
    switch (dtype) {
#define OPDI_CU_STORE_CASE(number, T) case number: opdi_cu_store((T *)p + i, v); break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_STORE_CASE)
        default: break;
    }
}
/* Returns v converted to `dtype` and back. */
template <typename C> __device__ OPDI_CU_NOINLINE C opdi_cu_through(C v, int dtype) {
    switch (dtype) {
#define OPDI_CU_THROUGH_CASE(number, T) case number: return opdi_cu_cast<C>(opdi_cu_cast<T>(v));
        OPDI_CU_EACH_DTYPE(OPDI_CU_THROUGH_CASE)
        default: return v;
    }
}
/* N numbers of type C: the same three functions for runs of N elements, which are contiguous and aligned to 16 bytes or
   to the size of the run.  The numbers stay in registers. */
template <typename C, int N> struct opdi_cu_many { C at[N]; };
template <int N, typename C, typename T> __device__ __forceinline__ void opdi_cu_load_many(C *to, const T *p) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int i = 0; i < N; i += P) {
        const opdi_cu_vector<T, P> v = opdi_cu_load_vector<P>(p + i);
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { to[i + j] = opdi_cu_taken<C>(v, j); }
    }
}
template <int N, typename C, typename T> __device__ __forceinline__ void opdi_cu_store_many(T *p, const C *from) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int i = 0; i < N; i += P) {
        opdi_cu_vector<T, P> v;
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { v.at[j] = opdi_cu_cast<T>(from[i + j]); }
        opdi_cu_store_vector<P>(p + i, v);
    }
}
template <typename C, int N>
__device__ OPDI_CU_NOINLINE opdi_cu_many<C, N> opdi_cu_load_run_as(const void *p, int64_t i, int dtype) {
    opdi_cu_many<C, N> r;
    switch (dtype) {
#define OPDI_CU_LOAD_RUN_CASE(number, T) case number: opdi_cu_load_many<N>(r.at, (const T *)p + i); break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_LOAD_RUN_CASE)
        default: OPDI_CU_UNROLL for (int j = 0; j < N; j++) { r.at[j] = C(0); }
    }
    return r;
}
template <typename C, int N>
__device__ OPDI_CU_NOINLINE void opdi_cu_store_run_as(void *p, int64_t i, int dtype, opdi_cu_many<C, N> v) {
    switch (dtype) {
#define OPDI_CU_STORE_RUN_CASE(number, T) case number: opdi_cu_store_many<N>((T *)p + i, v.at); break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_STORE_RUN_CASE)
        default: break;
    }
}
template <typename C, int N>
__device__ OPDI_CU_NOINLINE opdi_cu_many<C, N> opdi_cu_run_through(opdi_cu_many<C, N> v, int dtype) {
    switch (dtype) {
#define OPDI_CU_RUN_THROUGH_CASE(number, T) \
        case number: \
            OPDI_CU_UNROLL \
            for (int j = 0; j < N; j++) { v.at[j] = opdi_cu_cast<C>(opdi_cu_cast<T>(v.at[j])); } \
            break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_RUN_THROUGH_CASE)
        default: break;
    }
    return v;
}
enum { OPDI_CU_GENERAL_RUN = 8 };
/* runs: the number of runs of OPDI_CU_GENERAL_RUN elements with which the walk begins.
   common: the dtype to which inputs of other dtypes are converted first; -1: they are only converted to the compute
   type. */
template <typename C> struct opdi_cu_pointwise_general_args {
    opdi_cu_pointwise_walk w;
    opdi_cu_pointwise_numbers<C> s;
    int32_t runs, common;
};
template <typename C>
__device__ __forceinline__ C opdi_cu_pointwise_general_in(const opdi_cu_pointwise_general_args<C> &f, int k,
                                                          int64_t at) {
    if (!f.w.data[k]) { return f.s.in[k - 1]; }
    const C v = opdi_cu_load_as<C>(f.w.data[k], at, f.w.dtype[k]);
    return f.common < 0 || f.common == f.w.dtype[k] ? v : opdi_cu_through<C>(v, f.common);
}
template <int N, typename C>
__device__ __forceinline__ void opdi_cu_pointwise_general_run(const opdi_cu_pointwise_general_args<C> &f, int k,
                                                              int64_t at, opdi_cu_many<C, N> *to) {
    if (f.w.data[k] && f.w.strides[k][0] != 0) {
        *to = opdi_cu_load_run_as<C, N>(f.w.data[k], at, f.w.dtype[k]);
        if (f.common >= 0 && f.common != f.w.dtype[k]) { *to = opdi_cu_run_through<C, N>(*to, f.common); }
        return;
    }
    const C one = opdi_cu_pointwise_general_in(f, k, at);
    OPDI_CU_UNROLL
    for (int j = 0; j < N; j++) { to->at[j] = one; }
}
/* Moves each number to the place before it, and `last` to the last place.  A loop that is not unrolled can thus read
   and write all places, but keep the numbers in registers. */
template <typename C, int N> __device__ __forceinline__ void opdi_cu_move_on(opdi_cu_many<C, N> *v, C last) {
    OPDI_CU_UNROLL
    for (int j = 0; j + 1 < N; j++) { v->at[j] = v->at[j + 1]; }
    v->at[N - 1] = last;
}
template <int F, typename C> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_general(const opdi_cu_pointwise_general_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    constexpr int K = formula::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0, N = OPDI_CU_GENERAL_RUN;
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE, first = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
    int64_t at[K];
    OPDI_CU_ROLLED
    for (uint32_t i = first; i < (uint32_t)f.runs; i += step) {
        opdi_cu_many<C, N> x, y, z;
        opdi_cu_pointwise_offsets<K>(f.w, i * N, at);
        opdi_cu_pointwise_general_run<N>(f, 1, at[1], &x);
        if (K > 2) { opdi_cu_pointwise_general_run<N>(f, 2, at[Y], &y); }
        if (K > 3) { opdi_cu_pointwise_general_run<N>(f, 3, at[Z], &z); }
        if constexpr (formula::heavy) {
            OPDI_CU_ROLLED
            for (int j = 0; j < N; j++) {
                const C r = formula::run(x.at[0], K > 2 ? y.at[0] : x.at[0], K > 3 ? z.at[0] : x.at[0], f.s.a, f.s.b,
                                         f.s.c);
                if (K > 2) { opdi_cu_move_on(&y, C(0)); }
                if (K > 3) { opdi_cu_move_on(&z, C(0)); }
                opdi_cu_move_on(&x, r);
            }
        } else {
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) {
                x.at[j] = formula::run(x.at[j], K > 2 ? y.at[j] : x.at[j], K > 3 ? z.at[j] : x.at[j], f.s.a, f.s.b,
                                       f.s.c);
            }
        }
        opdi_cu_store_run_as<C, N>(f.w.data[0], at[0], f.w.dtype[0], x);
    }
    OPDI_CU_ROLLED
    for (uint32_t i = (uint32_t)f.runs * N + first; i < (uint32_t)f.w.n; i += step) {
        opdi_cu_pointwise_offsets<K>(f.w, i, at);
        const C x = opdi_cu_pointwise_general_in(f, 1, at[1]);
        const C y = K > 2 ? opdi_cu_pointwise_general_in(f, 2, at[Y]) : x;
        const C z = K > 3 ? opdi_cu_pointwise_general_in(f, 3, at[Z]) : x;
        opdi_cu_store_as<C>(f.w.data[0], at[0], f.w.dtype[0], formula::run(x, y, z, f.s.a, f.s.b, f.s.c));
    }
}

//== choosing a kernel =================================================================================================

/* The kernels of a pointwise formula that compute in the type C.  A kernel is NULL if there is none for the dtype or
   formula: heavy formulas have only a strided kernel (opdi_cu_pointwise_heavy), which needs runs. */
template <typename C> struct opdi_cu_pointwise_kernels {
    void (*flat[3])(opdi_cu_pointwise_flat_args<C>); /* by opdi_cu_fast_dtype */
    void (*strided[3])(opdi_cu_pointwise_strided_args<C>);
    void (*general)(opdi_cu_pointwise_general_args<C>);
    int inputs;
    bool heavy;
};
/* Sets the kernels for operands of type T, number `at` of the kernels of their dtypes. */
template <int F, typename T, typename C> static void opdi_cu_kernels_for(opdi_cu_pointwise_kernels<C> *k, int at) {
    if constexpr (opdi_cu_pointwise_formula<F, C>::heavy) { k->strided[at] = opdi_cu_pointwise_heavy<F, C, T>; }
    else {
        k->flat[at] = opdi_cu_pointwise_flat<F, C, T>;
        if constexpr (sizeof(C) == 4 || sizeof(T) == 8) { k->strided[at] = opdi_cu_pointwise_strided<F, C, T>; }
    }
}
template <int F, typename C> static opdi_cu_pointwise_kernels<C> opdi_cu_kernels_start() {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    const opdi_cu_pointwise_kernels<C> k = {{NULL, NULL, NULL}, {NULL, NULL, NULL}, opdi_cu_pointwise_general<F, C>,
                                            formula::inputs, formula::heavy != 0};
    return k;
}
template <int F> static opdi_cu_pointwise_kernels<float> opdi_cu_kernels_f32() {
    opdi_cu_pointwise_kernels<float> k = opdi_cu_kernels_start<F, float>();
    opdi_cu_kernels_for<F, float>(&k, 0);
    opdi_cu_kernels_for<F, opdi_cu_f16>(&k, 1);
    opdi_cu_kernels_for<F, opdi_cu_bf16>(&k, 2);
    return k;
}
template <int F> static opdi_cu_pointwise_kernels<double> opdi_cu_kernels_f64() {
    opdi_cu_pointwise_kernels<double> k = opdi_cu_kernels_start<F, double>();
    opdi_cu_kernels_for<F, double>(&k, 0);
    return k;
}
template <int F> static opdi_cu_pointwise_kernels<int64_t> opdi_cu_kernels_i64() {
    opdi_cu_pointwise_kernels<int64_t> k = opdi_cu_kernels_start<F, int64_t>();
    opdi_cu_kernels_for<F, int64_t>(&k, 0);
    opdi_cu_kernels_for<F, int32_t>(&k, 1);
    return k;
}
#define OPDI_CU_PICK_f32(name, inputs, kind, formula) \
    case OPD_FORMULA_##name: return opdi_cu_kernels_f32<OPD_FORMULA_##name>();
#define OPDI_CU_PICK_f64(name, inputs, kind, formula) \
    case OPD_FORMULA_##name: return opdi_cu_kernels_f64<OPD_FORMULA_##name>();
#define OPDI_CU_PICK_i64(name, inputs, kind, formula) \
    case OPD_FORMULA_##name: return opdi_cu_kernels_i64<OPD_FORMULA_##name>();
static opdi_cu_pointwise_kernels<float> opdi_cu_pointwise_kernels_of(int formula, float) {
    switch (formula) {
        OPD_FORMULAS_ALL(OPDI_CU_PICK_f32) OPD_FORMULAS_FLOAT(OPDI_CU_PICK_f32)
        default: return opdi_cu_pointwise_kernels<float>();
    }
}
static opdi_cu_pointwise_kernels<double> opdi_cu_pointwise_kernels_of(int formula, double) {
    switch (formula) {
        OPD_FORMULAS_ALL(OPDI_CU_PICK_f64) OPD_FORMULAS_FLOAT(OPDI_CU_PICK_f64)
        default: return opdi_cu_pointwise_kernels<double>();
    }
}
static opdi_cu_pointwise_kernels<int64_t> opdi_cu_pointwise_kernels_of(int formula, int64_t) {
    switch (formula) {
        OPD_FORMULAS_ALL(OPDI_CU_PICK_i64) OPD_FORMULAS_INT(OPDI_CU_PICK_i64)
        default: return opdi_cu_pointwise_kernels<int64_t>();
    }
}
/* Returns the index in opdi_cu_pointwise_kernels of the fast kernels for a dtype, or -1 if there are none. */
static int opdi_cu_fast_dtype(opd_scalar_type t, float) {
    return t == OPD_FLOAT32 ? 0 : t == OPD_FLOAT16 ? 1 : t == OPD_BFLOAT16 ? 2 : -1;
}
static int opdi_cu_fast_dtype(opd_scalar_type t, double) { return t == OPD_FLOAT64 ? 0 : -1; }
static int opdi_cu_fast_dtype(opd_scalar_type t, int64_t) { return t == OPD_INT64 ? 0 : t == OPD_INT32 ? 1 : -1; }
/* Returns the dtype of the first tensor among the inputs if inputs are only converted to the compute type, else
   p->common.  The two differ if a 16-bit float is combined with a number that is not rounded to 16 bits. */
static opd_scalar_type opdi_cu_pointwise_dtype(const opd_pointwise *p) {
    for (int k = p->formula == OPD_FORMULA_where ? 2 : 1; k < p->noperands && p->common == p->compute; k++) {
        if (p->operands[k].data) { return p->operands[k].dtype; }
    }
    return p->common;
}
/* Returns the index of the fast kernels for these operands, or -1 if their dtypes differ, or if there are no fast
   kernels for the dtype. */
template <typename C> static int opdi_cu_pointwise_fast(const opd_pointwise *p) {
    const opd_scalar_type dtype = opdi_cu_pointwise_dtype(p);
    const int which = opdi_cu_fast_dtype(dtype, C(0));
    int k;
    if (which < 0 || p->operands[0].dtype != (opdi_cu_asks(p->formula) ? OPD_BOOL : dtype)) { return -1; }
    for (k = 1; k < p->noperands; k++) {
        const opd_operand *o = &p->operands[k];
        if (!o->data) { continue; }
        if (o->dtype != (p->formula == OPD_FORMULA_where && k == 1 ? OPD_BOOL : dtype)) { return -1; }
    }
    return which;
}
static float opdi_cu_pointwise_number(const opd_operand *o, float) { return (float)o->f64[0]; }
static double opdi_cu_pointwise_number(const opd_operand *o, double) { return o->f64[0]; }
static int64_t opdi_cu_pointwise_number(const opd_operand *o, int64_t) { return o->i64; }
static const float *opdi_cu_abc(const opd_pointwise *p, float) { return p->f32; }
static const double *opdi_cu_abc(const opd_pointwise *p, double) { return p->f64; }
static const int64_t *opdi_cu_abc(const opd_pointwise *p, int64_t) { return p->i64; }
template <typename C> static opdi_cu_pointwise_numbers<C> opdi_cu_pointwise_numbers_of(const opd_pointwise *p) {
    const C *abc = opdi_cu_abc(p, C(0));
    opdi_cu_pointwise_numbers<C> s = {abc[0], abc[1], abc[2], {C(0), C(0), C(0)}};
    int k;
    for (k = 1; k < p->noperands; k++) { s.in[k - 1] = opdi_cu_pointwise_number(&p->operands[k], C(0)); }
    return s;
}
/* Returns a mask: bit k - 1 is set if operand k is a number. */
static int32_t opdi_cu_pointwise_which_numbers(const opd_pointwise *p) {
    int32_t bits = 0;
    int k;
    for (k = 1; k < p->noperands; k++) { bits |= p->operands[k].data ? 0 : 1 << (k - 1); }
    return bits;
}
/* Makes a walk over all elements.  Returns false if there are too many elements or dims. */
static bool opdi_cu_pointwise_walk_of(const opd_pointwise *p, opdi_cu_pointwise_walk *w) {
    int k, d;
    if (p->ndim > OPDI_CU_POINTWISE_DIMS || p->numel > INT32_MAX) { return false; }
    memset(w, 0, sizeof *w);
    w->ndim = p->ndim;
    w->n = (int32_t)p->numel;
    for (d = 0; d < p->ndim; d++) { w->sizes[d] = opdi_cu_divide_by((uint32_t)p->sizes[d]); }
    for (k = 0; k < p->noperands; k++) {
        const opd_operand *o = &p->operands[k];
        w->data[k] = o->data;
        w->dtype[k] = o->dtype;
        for (d = 0; o->data && d < p->ndim; d++) { w->strides[k][d] = p->ndim == 1 && p->linear ? 1 : o->strides[d]; }
    }
    return true;
}
/* Returns the number of runs of n elements with which the walk begins: at each multiple of n, the next n elements of an
   operand are contiguous and aligned, or the same element.  If there is more than one dim, the runs have all elements,
   or the number is 0. */
static int32_t opdi_cu_pointwise_in_runs(const opdi_cu_pointwise_walk *w, int nops, int n) {
    int k, d;
    if ((w->ndim > 1 && w->sizes[0].d % (uint32_t)n) || w->strides[0][0] != 1) { return 0; }
    for (k = 0; k < nops; k++) {
        const int64_t size = w->data[k] ? (int64_t)opd_dtype_size((opd_scalar_type)w->dtype[k]) * n : 0;
        if (!w->data[k] || w->strides[k][0] == 0) { continue; }
        if (w->strides[k][0] != 1 || (uintptr_t)w->data[k] % (uintptr_t)(size < 16 ? size : 16)) { return 0; }
        for (d = 1; d < w->ndim; d++) { if (w->strides[k][d] % n) { return 0; } }
    }
    return w->n / n;
}
template <typename C> static int opdi_cu_pointwise_part(const opd_pointwise *p) {
    const opdi_cu_pointwise_kernels<C> kernels = opdi_cu_pointwise_kernels_of(p->formula, C(0));
    const int fast = opdi_cu_pointwise_fast<C>(p);
    const opdi_cu_pointwise_numbers<C> s = opdi_cu_pointwise_numbers_of<C>(p);
    opdi_cu_pointwise_walk w;
    bool aligned = true;
    int k;
    if (!kernels.general) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "the CUDA plug-in lacks pointwise function %d: compile opdispatch_cuda.cu "
                        "with the opdispatch.h of the program", (int)p->formula);
    }
    for (k = 0; k < p->noperands; k++) { aligned = aligned && opdi_cu_aligned(p->operands[k].data); }
    if (p->linear && fast >= 0 && aligned && kernels.flat[fast]) {
        const int size = (int)opd_dtype_size(opdi_cu_pointwise_dtype(p));
        const int per_thread = 16 / size * opdi_cu_pointwise_unrolled(p->formula, kernels.inputs, kernels.heavy, size);
        opdi_cu_pointwise_flat_args<C> f =
            {p->operands[0].data, {NULL, NULL, NULL}, p->numel, opdi_cu_pointwise_which_numbers(p), s};
        for (k = 1; k < p->noperands; k++) { f.in[k - 1] = p->operands[k].data; }
        return opdi_cu_launch(kernels.flat[fast],
                              dim3((unsigned)opdi_cu_ceil(p->numel, OPDI_CU_BLOCK_SIZE * per_thread)),
                              OPDI_CU_BLOCK_SIZE, 0, f);
    }
    if (!opdi_cu_pointwise_walk_of(p, &w)) { return 1; }
    if (fast >= 0 && kernels.strided[fast]) {
        const int size = (int)opd_dtype_size(opdi_cu_pointwise_dtype(p)), n = 16 / size;
        const int32_t runs = opdi_cu_pointwise_in_runs(&w, p->noperands, n);
        opdi_cu_pointwise_strided_args<C> f = {w, s, runs, opdi_cu_pointwise_which_numbers(p)};
        if (kernels.heavy && runs) {
            const int per_block = OPDI_CU_BLOCK_SIZE *
                opdi_cu_pointwise_unrolled(p->formula, kernels.inputs, kernels.heavy, size);
            return opdi_cu_launch(kernels.strided[fast], dim3((unsigned)opdi_cu_ceil(runs, per_block)),
                                  OPDI_CU_BLOCK_SIZE, 0, f);
        }
        if (!kernels.heavy) {
            if (runs * n != w.n) { f.run = 0; }
            if (f.run) { f.w.n /= n; }
            return opdi_cu_launch(kernels.strided[fast], opdi_cu_grid(f.w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE,
                                  0, f);
        }
    }
    opdi_cu_pointwise_general_args<C> f = {w, s, opdi_cu_pointwise_in_runs(&w, p->noperands, OPDI_CU_GENERAL_RUN),
                                           p->common == p->compute ? -1 : (int32_t)p->common};
    return opdi_cu_launch(kernels.general, opdi_cu_grid(f.runs ? f.runs : w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE,
                          0, f);
}
static int opdi_cu_copy_part(const opd_pointwise *p);
static int opdi_cu_complex_part(const opd_pointwise *p);
static int opdi_cu_pointwise_one(const opd_pointwise *p) {
    if (p->formula == OPD_FORMULA_copy) { return opdi_cu_copy_part(p); }
    if (p->compute == OPD_COMPLEX128) { return opdi_cu_complex_part(p); }
    return p->compute == OPD_FLOAT32 ? opdi_cu_pointwise_part<float>(p)
        : p->compute == OPD_FLOAT64 ? opdi_cu_pointwise_part<double>(p) : opdi_cu_pointwise_part<int64_t>(p);
}
/* Computes a pointwise formula by `part`, a function such as opdi_cu_pointwise_one.  If there are too many elements or
   dims for one launch, splits the outermost dim.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pointwise_split(const opd_pointwise *p, int (*part)(const opd_pointwise *)) {
    const int rc = part(p), last = p->ndim - 1;
    const int64_t size = p->sizes[last], half_size = opdi_cu_ceil(size, 2);  /* the second half stays aligned */
    const int64_t step = p->ndim > OPDI_CU_POINTWISE_DIMS ? 1
        : size < 32 ? half_size : opdi_cu_ceil(half_size, 16) * 16;
    int64_t sizes[OPD_MAX_DIMS], at;
    opd_pointwise half = *p;
    int k;
    if (rc <= 0) { return rc; }
    memcpy(sizes, p->sizes, (size_t)p->ndim * sizeof *sizes);
    half.sizes = sizes;
    for (at = 0; at < p->sizes[last]; at += step) {
        sizes[last] = p->sizes[last] - at < step ? p->sizes[last] - at : step;
        half.numel = p->numel / p->sizes[last] * sizes[last];
        half.ndim = p->ndim > OPDI_CU_POINTWISE_DIMS ? last : p->ndim;
        for (k = 0; k < p->noperands; k++) {
            const opd_operand *o = &p->operands[k];
            const int64_t stride = p->linear ? 1 : o->strides[last];
            if (o->data) { half.operands[k].data = (char *)o->data + at * stride * (int64_t)opd_dtype_size(o->dtype); }
        }
        if (opdi_cu_pointwise_split(&half, part)) { return -1; }
    }
    return 0;
}
static bool opdi_cu_gather_add(int index, const opd_pointwise *p);           /* see >>cu:lists */
static int opdi_cu_pointwise(void *user, int index, const opd_pointwise *p) {
    (void)user;
    if (opdi_cu_gather_add(index, p)) { return 0; }
    const opdi_cu_on on(index);
    return opdi_cu_pointwise_split(p, opdi_cu_pointwise_one);
}

