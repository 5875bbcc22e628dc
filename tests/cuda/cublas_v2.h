/* The functions of cuBLAS that opdispatch_cuda.cu uses, as plain loops with sums in double, for the emulation: see
   cuda_runtime.h. */
#ifndef OPD_EMU_CUBLAS_V2_H
#define OPD_EMU_CUBLAS_V2_H
#include "cuda_runtime.h"
#include "cuda_fp16.h"
#include "cuda_bf16.h"

typedef enum {
    CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_C_32F = 4, CUDA_C_64F = 5, CUDA_R_32I = 10,
    CUDA_R_16BF = 14, CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2 = 29
} cudaDataType_t;
typedef cudaDataType_t cudaDataType;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
    CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_32I = 72
} cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0, CUBLAS_TF32_TENSOR_OP_MATH = 3, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
struct opd_emu_cublas { cudaStream_t stream; int device; };
typedef struct opd_emu_cublas *cublasHandle_t;

static inline const char *cublasGetStatusString(cublasStatus_t s) {
    return s == CUBLAS_STATUS_SUCCESS ? "success" : s == CUBLAS_STATUS_INVALID_VALUE ? "an invalid value"
        : s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : s == CUBLAS_STATUS_NOT_INITIALIZED ? "not initialized" : "failed";
}
static inline cublasStatus_t cublasCreate(cublasHandle_t *h) {
    *h = NULL;
    if (opd_emu::usable() != cudaSuccess) { return CUBLAS_STATUS_NOT_INITIALIZED; }
    *h = new opd_emu_cublas();
    (*h)->device = opd_emu::current_device;
    opd_emu::counts.handles++;
    return CUBLAS_STATUS_SUCCESS;
}
/* It waits for the device: see what that does to a capture. */
static inline cublasStatus_t cublasDestroy(cublasHandle_t h) {
    opd_emu::counts.destroyed++;
    (void)cudaDeviceSynchronize();
    delete h;
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s) { h->stream = s; return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }
static inline cublasStatus_t cublasGetVersion(cublasHandle_t, int *v) { *v = 130000; return CUBLAS_STATUS_SUCCESS; }

struct opd_emu_complex { double re, im; };
static inline size_t opd_emu_element(cudaDataType t) {
    switch (t) {
        case CUDA_R_32F: case CUDA_R_32I: return 4;
        case CUDA_R_64F: case CUDA_C_32F: return 8;
        case CUDA_R_16F: case CUDA_R_16BF: return 2;
        case CUDA_C_64F: return 16;
        case CUDA_R_8I: case CUDA_R_8F_E4M3: case CUDA_R_8F_E5M2: return 1;
    }
    return 0;
}
/* A float of 8 bits with `bits` bits after the point. */
static inline double opd_emu_eight(unsigned char code, int bits) {
    const int exponent = (code & 127) >> bits, part = code & ((1 << bits) - 1), bias = bits == 2 ? 15 : 7;
    const double sign = code & 128 ? -1 : 1;
    if (bits == 2 && exponent == 31) { return part ? NAN : sign * INFINITY; }
    if (bits == 3 && (code & 127) == 127) { return NAN; }
    return sign * (exponent ? scalbn(1 + scalbn(part, -bits), exponent - bias) : scalbn(part, 1 - bias - bits));
}
static inline opd_emu_complex opd_emu_get(const void *p, int64_t i, cudaDataType t) {
    opd_emu_complex v = {0, 0};
    OPD_EMU_TELL(races_library((const char *)p + i * (int64_t)opd_emu_element(t), opd_emu_element(t), false));
    switch (t) {
        case CUDA_R_32F: v.re = ((const float *)p)[i]; break;
        case CUDA_R_64F: v.re = ((const double *)p)[i]; break;
        case CUDA_R_16F: v.re = (float)((const __half *)p)[i]; break;
        case CUDA_R_16BF: v.re = (float)((const __nv_bfloat16 *)p)[i]; break;
        case CUDA_R_8I: v.re = ((const signed char *)p)[i]; break;
        case CUDA_R_8F_E4M3: v.re = opd_emu_eight(((const unsigned char *)p)[i], 3); break;
        case CUDA_R_8F_E5M2: v.re = opd_emu_eight(((const unsigned char *)p)[i], 2); break;
        case CUDA_R_32I: v.re = ((const int *)p)[i]; break;
        case CUDA_C_32F: v.re = ((const float *)p)[2 * i]; v.im = ((const float *)p)[2 * i + 1]; break;
        case CUDA_C_64F: v.re = ((const double *)p)[2 * i]; v.im = ((const double *)p)[2 * i + 1]; break;
    }
    return v;
}
static inline void opd_emu_set(void *p, int64_t i, cudaDataType t, opd_emu_complex v) {
    OPD_EMU_TELL(races_library((const char *)p + i * (int64_t)opd_emu_element(t), opd_emu_element(t), true));
    switch (t) {
        case CUDA_R_32F: ((float *)p)[i] = (float)v.re; break;
        case CUDA_R_64F: ((double *)p)[i] = v.re; break;
        case CUDA_R_16F: ((__half *)p)[i] = __half((float)v.re); break;
        case CUDA_R_16BF: ((__nv_bfloat16 *)p)[i] = __nv_bfloat16((float)v.re); break;
        case CUDA_R_8I: ((signed char *)p)[i] = (signed char)v.re; break;
        case CUDA_R_8F_E4M3: case CUDA_R_8F_E5M2: break;          /* results are no floats of 8 bits here */
        case CUDA_R_32I: ((int *)p)[i] = (int)v.re; break;
        case CUDA_C_32F: ((float *)p)[2 * i] = (float)v.re; ((float *)p)[2 * i + 1] = (float)v.im; break;
        case CUDA_C_64F: ((double *)p)[2 * i] = v.re; ((double *)p)[2 * i + 1] = v.im; break;
    }
}
/* What a factor is multiplied as: TF32 has 10 bits after the point. */
static inline opd_emu_complex opd_emu_factor(const void *p, int64_t i, cudaDataType t, cublasComputeType_t compute) {
    opd_emu_complex v = opd_emu_get(p, i, t);
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32 && v.re != 0 && std::isfinite(v.re)) {
        const int exponent = ilogb(v.re);
        v.re = scalbn(nearbyint(scalbn(v.re, 10 - exponent)), exponent - 10);
    }
    return v;
}
/* The type of alpha and beta. */
static inline cudaDataType opd_emu_scale(cublasComputeType_t compute, cudaDataType c) {
    if (c == CUDA_C_32F || c == CUDA_C_64F) { return c; }
    return compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : compute == CUBLAS_COMPUTE_16F ? CUDA_R_16F
        : compute == CUBLAS_COMPUTE_32I ? CUDA_R_32I : CUDA_R_32F;
}
/* The factors of a product: `lines` lines of n elements, each of which was read once.  No im if they are real. */
struct opd_emu_lines {
    std::vector<double> re, im;
    opd_emu_lines(const void *p, cudaDataType t, cublasComputeType_t compute, bool conjugate, bool real, int lines, int n,
                  int64_t line_step, int64_t step) : re((size_t)lines * n), im(real ? 0 : (size_t)lines * n) {
        size_t to = 0;
        for (int line = 0; line < lines; line++) {
            for (int l = 0; l < n; l++, to++) {
                const opd_emu_complex v = opd_emu_factor(p, line * line_step + l * step, t, compute);
                re[to] = v.re;
                if (!real) { im[to] = conjugate ? -v.im : v.im; }
            }
        }
    }
};
/* The sum of the products of line i of a and line j of b.  In a real sum, imaginary parts would make NaN of inf * 0. */
static inline opd_emu_complex opd_emu_dot(const opd_emu_lines &a, int i, const opd_emu_lines &b, int j, int n, bool real) {
    opd_emu_complex sum = {0, 0};
    const double *x = a.re.data() + (size_t)i * n, *y = b.re.data() + (size_t)j * n;
    for (int l = 0; l < n; l++) { sum.re += x[l] * y[l]; }
    if (real) { return sum; }
    const double *xi = a.im.data() + (size_t)i * n, *yi = b.im.data() + (size_t)j * n;
    for (int l = 0; l < n; l++) { sum.re -= xi[l] * yi[l]; sum.im += x[l] * yi[l] + xi[l] * y[l]; }
    return sum;
}
/* C = alpha op(A) op(B) + beta C, columns one after another, for each of a batch. */
static inline cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *A,
    cudaDataType at, int lda, long long sa, const void *B, cudaDataType bt, int ldb, long long sb, const void *beta, void *C,
    cudaDataType ct, int ldc, long long sc, int batch, cublasComputeType_t compute, cublasGemmAlgo_t) {
    const cudaDataType scale = opd_emu_scale(compute, ct);
    const opd_emu_complex al = opd_emu_get(alpha, 0, scale), be = opd_emu_get(beta, 0, scale);
    if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < std::max(1, ta == CUBLAS_OP_N ? m : k) ||
        ldb < std::max(1, tb == CUBLAS_OP_N ? k : n) || ldc < std::max(1, m)) { return CUBLAS_STATUS_INVALID_VALUE; }
    if (at != bt || (compute == CUBLAS_COMPUTE_64F) != (ct == CUDA_R_64F || ct == CUDA_C_64F)) { return CUBLAS_STATUS_NOT_SUPPORTED; }
    if (at == CUDA_R_8I && (compute != CUBLAS_COMPUTE_32I || ct != CUDA_R_32I)) { return CUBLAS_STATUS_NOT_SUPPORTED; }
    const bool real = scale != CUDA_C_32F && scale != CUDA_C_64F;
    opd_emu::count_product(m, n, k, batch);
    if (opd_emu::only_counts()) { return CUBLAS_STATUS_SUCCESS; }
    const cudaError_t e = opd_emu::queue(h->stream, [=] {
        opd_emu::Open open;
        for (int b = 0; b < batch; b++) {
            const char *const of_a = (const char *)A + b * sa * (int64_t)opd_emu_element(at);
            const char *const of_b = (const char *)B + b * sb * (int64_t)opd_emu_element(bt);
            const opd_emu_lines rows(of_a, at, compute, ta == CUBLAS_OP_C, real, m, k, ta == CUBLAS_OP_N ? 1 : lda,
                                     ta == CUBLAS_OP_N ? lda : 1);
            const opd_emu_lines columns(of_b, bt, compute, tb == CUBLAS_OP_C, real, n, k, tb == CUBLAS_OP_N ? ldb : 1,
                                        tb == CUBLAS_OP_N ? 1 : ldb);
            for (int j = 0; j < n; j++) {
                for (int i = 0; i < m; i++) {
                    const int64_t at_c = b * sc + i + (int64_t)j * ldc;
                    const opd_emu_complex sum = opd_emu_dot(rows, i, columns, j, k, real);
                    opd_emu_complex c = {0, 0};
                    if (be.re != 0 || be.im != 0) { c = opd_emu_get(C, at_c, ct); }
                    const opd_emu_complex r = {al.re * sum.re - al.im * sum.im + be.re * c.re - be.im * c.im,
                                               al.re * sum.im + al.im * sum.re + be.re * c.im + be.im * c.re};
                    opd_emu_set(C, at_c, ct, r);
                }
            }
        }
        return cudaSuccess;
    });
    return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
static inline cublasStatus_t cublasGemmEx(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *A,
    cudaDataType at, int lda, const void *B, cudaDataType bt, int ldb, const void *beta, void *C, cudaDataType ct, int ldc,
    cublasComputeType_t compute, cublasGemmAlgo_t algo) {
    return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, A, at, lda, 0, B, bt, ldb, 0, beta, C, ct, ldc, 0, 1, compute, algo);
}

/* Numbers of a matrix that is stored column by column, for the functions below. */
static inline opd_emu_complex opd_emu_times(opd_emu_complex x, opd_emu_complex y) {
    if (x.im == 0 && y.im == 0) { return {x.re * y.re, 0}; }
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
static inline opd_emu_complex opd_emu_minus(opd_emu_complex x, opd_emu_complex y) { return {x.re - y.re, x.im - y.im}; }
static inline opd_emu_complex opd_emu_over(opd_emu_complex x, opd_emu_complex y) {
    if (y.im == 0) { return {x.re / y.re, x.im == 0 ? 0 : x.im / y.re}; }
    const double size = y.re * y.re + y.im * y.im;
    return {(x.re * y.re + x.im * y.im) / size, (x.im * y.re - x.re * y.im) / size};
}
/* Solves T x = b for a triangular matrix with elements t(i, j) and the vector with elements at(i), which x overwrites. */
template <typename T, typename V>
static inline void opd_emu_substitute(int n, bool upper, bool unit, T t, V at, void *B, cudaDataType type) {
    for (int step = 0; step < n; step++) {
        const int i = upper ? n - 1 - step : step;
        opd_emu_complex sum = opd_emu_get(B, at(i), type);
        for (int j = upper ? i + 1 : 0; j < (upper ? n : i); j++) {
            sum = opd_emu_minus(sum, opd_emu_times(t(i, j), opd_emu_get(B, at(j), type)));
        }
        opd_emu_set(B, at(i), type, unit ? sum : opd_emu_over(sum, t(i, i)));
    }
}
static inline void opd_emu_trsm_one(cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op, cublasDiagType_t diagonal,
                                    int m, int n, const void *A, int lda, void *B, int ldb, cudaDataType type) {
    const bool left = side == CUBLAS_SIDE_LEFT, plain = op == CUBLAS_OP_N;
    const auto element = [&](int i, int j) {               /* (i, j) of op(A), or of its transpose on the right */
        const bool as_is = plain == left;
        opd_emu_complex v = opd_emu_get(A, (as_is ? i : j) + (int64_t)(as_is ? j : i) * lda, type);
        if (op == CUBLAS_OP_C) { v.im = -v.im; }
        return v;
    };
    for (int64_t j = 0; j < (left ? n : m); j++) {
        opd_emu_substitute(left ? m : n, (part == CUBLAS_FILL_MODE_UPPER) == (plain == left), diagonal == CUBLAS_DIAG_UNIT, element,
                           [&](int64_t i) { return left ? i + j * ldb : j + i * ldb; }, B, type);
    }
}
static inline bool opd_emu_trsm_fits(cublasSideMode_t side, int m, int n, const void *alpha, const void *A, int lda, const void *B, int ldb,
                                     cudaDataType type) {
    const opd_emu_complex one = alpha ? opd_emu_get(alpha, 0, type) : opd_emu_complex();
    return m > 0 && n > 0 && A && B && lda >= (side == CUBLAS_SIDE_LEFT ? m : n) && ldb >= m && one.re == 1 && one.im == 0;
}
static inline cublasStatus_t opd_emu_queued(cudaError_t e) { return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED; }
static inline long &opd_emu_blas_calls() { static long calls; return calls; }
/* OPD_EMU_CUBLAS_FAILS=14: the functions below fail with this status. */
static inline int opd_emu_blas_fails() { const char *fails = getenv("OPD_EMU_CUBLAS_FAILS"); return fails && *fails ? atoi(fails) : 0; }
static inline cublasStatus_t opd_emu_trsm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op, cublasDiagType_t diagonal,
                                          int m, int n, const void *alpha, const void *A, int lda, void *B, int ldb, cudaDataType type) {
    if (opd_emu_blas_fails()) { return (cublasStatus_t)opd_emu_blas_fails(); }
    if (!opd_emu_trsm_fits(side, m, n, alpha, A, lda, B, ldb, type)) { return CUBLAS_STATUS_INVALID_VALUE; }
    return opd_emu_queued(opd_emu::queue(h->stream, [=] {
        opd_emu::Open open;
        opd_emu_trsm_one(side, part, op, diagonal, m, n, A, lda, B, ldb, type);
        return cudaSuccess;
    }));
}
static inline cublasStatus_t opd_emu_trsm_batched(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op,
                                                  cublasDiagType_t diagonal, int m, int n, const void *alpha, const void *const *A, int lda, void *const *B,
                                                  int ldb, int batch, cudaDataType type) {
    if (opd_emu_blas_fails()) { return (cublasStatus_t)opd_emu_blas_fails(); }
    if (batch < 1 || !opd_emu_trsm_fits(side, m, n, alpha, A, lda, B, ldb, type)) { return CUBLAS_STATUS_INVALID_VALUE; }
    return opd_emu_queued(opd_emu::queue(h->stream, [=] {
        opd_emu::Open open;
        for (int i = 0; i < batch; i++) { opd_emu_trsm_one(side, part, op, diagonal, m, n, A[i], lda, B[i], ldb, type); }
        return cudaSuccess;
    }));
}
/* P A = L U by rows with the largest |re| + |im| as pivots, which are numbers from 1. */
static inline int opd_emu_getrf(int n, void *A, int lda, int *pivots, cudaDataType type) {
    int info = 0;
    const auto get = [&](int i, int j) { return opd_emu_get(A, i + (int64_t)j * lda, type); };
    const auto set = [&](int i, int j, opd_emu_complex v) { opd_emu_set(A, i + (int64_t)j * lda, type, v); };
    const auto size = [&](int i, int j) { const opd_emu_complex v = get(i, j); return fabs(v.re) + fabs(v.im); };
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++) { if (size(i, k) > size(best, k)) { best = i; } }
        pivots[k] = best + 1;
        if (size(best, k) == 0) { info = info ? info : k + 1; continue; }
        for (int j = 0; best != k && j < n; j++) { const opd_emu_complex v = get(k, j); set(k, j, get(best, j)); set(best, j, v); }
        for (int i = k + 1; i < n; i++) {
            set(i, k, opd_emu_over(get(i, k), get(k, k)));
            for (int j = k + 1; j < n; j++) { set(i, j, opd_emu_minus(get(i, j), opd_emu_times(get(i, k), get(k, j)))); }
        }
    }
    return info;
}
static inline cublasStatus_t opd_emu_getrf_batched(cublasHandle_t h, int n, void *const *A, int lda, int *pivots, int *info, int batch, cudaDataType type) {
    if (opd_emu_blas_fails()) { return (cublasStatus_t)opd_emu_blas_fails(); }
    if (n < 1 || batch < 1 || lda < n || !A || !pivots || !info) { return CUBLAS_STATUS_INVALID_VALUE; }
    return opd_emu_queued(opd_emu::queue(h->stream, [=] {
        opd_emu::Open open;
        for (int i = 0; i < batch; i++) { info[i] = opd_emu_getrf(n, A[i], lda, pivots + (int64_t)i * n, type); }
        opd_emu_blas_calls() += batch;
        return cudaSuccess;
    }));
}
static inline cublasStatus_t opd_emu_getrs_batched(cublasHandle_t h, cublasOperation_t op, int n, int columns, const void *const *A, int lda, const int *pivots,
                                                   void *const *B, int ldb, int *info, int batch, cudaDataType type) {
    if (opd_emu_blas_fails()) { return (cublasStatus_t)opd_emu_blas_fails(); }
    if (!info) { return CUBLAS_STATUS_INVALID_VALUE; }
    *info = n < 1 ? -2 : columns < 1 ? -3 : lda < n ? -5 : ldb < n ? -8 : batch < 1 ? -10 : 0;
    if (*info || !A || !pivots || !B) { return CUBLAS_STATUS_INVALID_VALUE; }
    return opd_emu_queued(opd_emu::queue(h->stream, [=] {
        opd_emu::Open open;
        for (int b = 0; b < batch; b++) {
            const int *const own = pivots + (int64_t)b * n;
            const auto exchange = [&](int k) {
                if (own[k] < 1 || own[k] > n) { abort(); }
                for (int64_t j = 0; j < columns; j++) {
                    const opd_emu_complex v = opd_emu_get(B[b], k + j * ldb, type);
                    opd_emu_set(B[b], k + j * ldb, type, opd_emu_get(B[b], own[k] - 1 + j * ldb, type));
                    opd_emu_set(B[b], own[k] - 1 + j * ldb, type, v);
                }
            };
            for (int k = 0; op == CUBLAS_OP_N && k < n; k++) { exchange(k); }
            for (int step = 0; step < 2; step++) {
                const bool lower = (step == 0) == (op == CUBLAS_OP_N);
                opd_emu_trsm_one(CUBLAS_SIDE_LEFT, lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, op,
                                 lower ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, n, columns, A[b], lda, B[b], ldb, type);
            }
            for (int k = n - 1; op != CUBLAS_OP_N && k >= 0; k--) { exchange(k); }
        }
        return cudaSuccess;
    }));
}
#define OPD_EMU_BLAS_TYPED(letter, type) \
    static inline cublasStatus_t cublas##letter##trsm(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op, \
        cublasDiagType_t diagonal, int m, int n, const void *alpha, const void *A, int lda, void *B, int ldb) { \
        return opd_emu_trsm(h, side, part, op, diagonal, m, n, alpha, A, lda, B, ldb, type); \
    } \
    static inline cublasStatus_t cublas##letter##trsmBatched(cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t op, \
        cublasDiagType_t diagonal, int m, int n, const void *alpha, const void *const *A, int lda, void *const *B, int ldb, int batch) { \
        return opd_emu_trsm_batched(h, side, part, op, diagonal, m, n, alpha, A, lda, B, ldb, batch, type); \
    } \
    static inline cublasStatus_t cublas##letter##getrfBatched(cublasHandle_t h, int n, void *const *A, int lda, int *pivots, int *info, int batch) { \
        return opd_emu_getrf_batched(h, n, A, lda, pivots, info, batch, type); \
    } \
    static inline cublasStatus_t cublas##letter##getrsBatched(cublasHandle_t h, cublasOperation_t op, int n, int columns, const void *const *A, int lda, \
        const int *pivots, void *const *B, int ldb, int *info, int batch) { \
        return opd_emu_getrs_batched(h, op, n, columns, A, lda, pivots, B, ldb, info, batch, type); \
    }
OPD_EMU_BLAS_TYPED(S, CUDA_R_32F)
OPD_EMU_BLAS_TYPED(D, CUDA_R_64F)
OPD_EMU_BLAS_TYPED(C, CUDA_C_32F)
OPD_EMU_BLAS_TYPED(Z, CUDA_C_64F)
#endif
