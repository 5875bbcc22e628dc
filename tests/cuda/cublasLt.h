/* The functions of cuBLASLt that opdispatch_cuda.cu uses: see cublas_v2.h. */
#ifndef OPD_EMU_CUBLASLT_H
#define OPD_EMU_CUBLASLT_H
#include "cublas_v2.h"

typedef cublasHandle_t cublasLtHandle_t;
typedef enum {
    CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_RELU_BIAS = 6
} cublasLtEpilogue_t;
typedef enum { CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F = 0, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F = 3 } cublasLtMatmulMatrixScale_t;
typedef enum {
    CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUBLASLT_MATMUL_DESC_FAST_ACCUM, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
    CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE
} cublasLtMatmulDescAttributes_t;
typedef enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
} cublasLtMatmulPreferenceAttributes_t;
typedef struct {
    cublasComputeType_t compute;
    cublasOperation_t ta, tb;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    int bias_type;                                /* -1: that of D */
    const float *scales[2];
    bool each[2], fast;                           /* each: a scale for each row of op(A), each column of op(B) */
} cublasLtMatmulDescOpaque_t, *cublasLtMatmulDesc_t;
typedef struct { cudaDataType type; uint64_t rows, columns; int64_t leading; } cublasLtMatrixLayoutOpaque_t, *cublasLtMatrixLayout_t;
/* alignment: of A, B, C and D, which the chosen algorithm then needs */
typedef struct { size_t workspace; uint32_t alignment[4]; } cublasLtMatmulPreferenceOpaque_t, *cublasLtMatmulPreference_t;
typedef struct { uint32_t alignment[4]; } cublasLtMatmulAlgo_t;
typedef struct { cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; } cublasLtMatmulHeuristicResult_t;

static inline cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t d, cublasComputeType_t compute, cudaDataType) {
    *d = {compute, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, NULL, -1, {NULL, NULL}, {false, false}, false};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a,
                                                            const void *from, size_t) {
    switch (a) {
        case CUBLASLT_MATMUL_DESC_TRANSA: d->ta = *(const cublasOperation_t *)from; break;
        case CUBLASLT_MATMUL_DESC_TRANSB: d->tb = *(const cublasOperation_t *)from; break;
        case CUBLASLT_MATMUL_DESC_EPILOGUE: d->epilogue = *(const cublasLtEpilogue_t *)from; break;
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER: d->bias = *(const void *const *)from; break;
        case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: d->bias_type = *(const cudaDataType *)from; break;
        case CUBLASLT_MATMUL_DESC_FAST_ACCUM: d->fast = *(const signed char *)from != 0; break;
        case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: d->scales[0] = *(const float *const *)from; break;
        case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: d->scales[1] = *(const float *const *)from; break;
        case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: {
            const char *const old = getenv("OPD_EMU_LT_OLD");                   /* a cublasLt without scales of rows */
            if (old && *old) { return CUBLAS_STATUS_INVALID_VALUE; }
            d->each[a - CUBLASLT_MATMUL_DESC_A_SCALE_MODE] =
                *(const cublasLtMatmulMatrixScale_t *)from == CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
            break;
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}
/* cublasLt multiplies float8 only as AT B, whose rows have multiples of 16 bytes, and not two factors of e5m2. */
static inline bool opd_emu_lt_takes(cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c) {
    const bool eights = opd_emu_element(a->type) == 1;
    const char *const none = getenv("OPD_EMU_LT_NO_EIGHT");       /* a GPU without tensor cores for float8 */
    if (eights && none && *none) { return false; }
    if (!eights) { return a->type == b->type && a->type == c->type && !d->scales[0] && !d->scales[1]; }
    return d->ta == CUBLAS_OP_T && d->tb == CUBLAS_OP_N && a->leading % 16 == 0 && b->leading % 16 == 0 && c->leading % 16 == 0 &&
        opd_emu_element(b->type) == 1 && !(a->type == CUDA_R_8F_E5M2 && b->type == CUDA_R_8F_E5M2) &&
        (d->epilogue == CUBLASLT_EPILOGUE_DEFAULT || d->bias_type == (c->type == CUDA_R_16F ? CUDA_R_16F : CUDA_R_16BF));
}
static inline cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t l, cudaDataType type, uint64_t rows,
                                                      uint64_t columns, int64_t leading) {
    *l = {type, rows, columns, leading};
    return leading >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
static inline cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t p) {
    *p = {0, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t a, const void *from, size_t) {
    if (a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) { p->workspace = *(const size_t *)from; }
    else { p->alignment[a - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = *(const uint32_t *)from; }
    return CUBLAS_STATUS_SUCCESS;
}
static inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t, cublasLtMatmulPreference_t p, int, cublasLtMatmulHeuristicResult_t *found, int *n) {
    *n = 0;
    if (!opd_emu_lt_takes(d, a, b, c)) { return CUBLAS_STATUS_NOT_SUPPORTED; }
    memcpy(found->algo.alignment, p->alignment, sizeof p->alignment);
    found->workspaceSize = p->workspace < 4096 ? p->workspace : 4096;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}
/* D = alpha op(A) op(B) + bias, where the bias has an element for each row of D. */
static inline cublasStatus_t cublasLtMatmul(
    cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *alpha, const void *A, cublasLtMatrixLayout_t la, const void *B,
    cublasLtMatrixLayout_t lb, const void *beta, const void *, cublasLtMatrixLayout_t, void *D, cublasLtMatrixLayout_t ld,
    const cublasLtMatmulAlgo_t *algorithm, void *scratch, size_t bytes, cudaStream_t stream) {
    const int m = (int)ld->rows, n = (int)ld->columns, k = (int)(d->ta == CUBLAS_OP_N ? la->columns : la->rows);
    const void *const at[4] = {A, B, D, D};
    const void *const bias = d->epilogue != CUBLASLT_EPILOGUE_DEFAULT ? d->bias : NULL;
    const cudaDataType type = ld->type;
    if (!opd_emu_lt_takes(d, la, lb, ld)) { return CUBLAS_STATUS_NOT_SUPPORTED; }
    for (int i = 0; i < 4; i++) { if ((uintptr_t)at[i] % algorithm->alignment[i]) { return CUBLAS_STATUS_INVALID_VALUE; } }
    if (*(const float *)beta != 0 || (bytes && !scratch) || (int)(d->tb == CUBLAS_OP_N ? lb->rows : lb->columns) != k ||
        (int)(d->ta == CUBLAS_OP_N ? la->rows : la->columns) != m || (int)(d->tb == CUBLAS_OP_N ? lb->columns : lb->rows) != n) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    (void)h;
    opd_emu::count_product(m, n, k, 1);
    if (opd_emu::only_counts()) { return CUBLAS_STATUS_SUCCESS; }
    const opd_emu_complex al = opd_emu_get(alpha, 0, CUDA_R_32F);
    const cublasLtMatmulDescOpaque_t desc = *d;
    const cublasLtMatrixLayoutOpaque_t a = *la, b = *lb, c = *ld;
    const cudaError_t e = opd_emu::queue(stream, [=] {
        opd_emu::Open open;
        const opd_emu_lines rows(A, a.type, desc.compute, false, true, m, k, desc.ta == CUBLAS_OP_N ? 1 : a.leading,
                                 desc.ta == CUBLAS_OP_N ? a.leading : 1);
        const opd_emu_lines columns(B, b.type, desc.compute, false, true, n, k, desc.tb == CUBLAS_OP_N ? b.leading : 1,
                                    desc.tb == CUBLAS_OP_N ? 1 : b.leading);
        for (int j = 0; j < n; j++) {
            for (int i = 0; i < m; i++) {
                opd_emu_complex r = opd_emu_dot(rows, i, columns, j, k, true);
                r.re *= al.re;
                if (desc.scales[0]) { r.re *= desc.scales[0][desc.each[0] ? i : 0]; }
                if (desc.scales[1]) { r.re *= desc.scales[1][desc.each[1] ? j : 0]; }
                if (bias) { r.re += opd_emu_get(bias, i, desc.bias_type < 0 ? type : (cudaDataType)desc.bias_type).re; }
                if (desc.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) { r.re = r.re > 0 || r.re != r.re ? r.re : 0; }
                opd_emu_set(D, i + (int64_t)j * c.leading, type, r);
            }
        }
        return cudaSuccess;
    });
    return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
#endif
