//----------------------------------------------------------------------------------------------------------------------
//  >>cu:matmul      matrix products
//
//  cuBLAS computes products of floats and complex numbers, a simple kernel products of integers.  Each product has the
//  form out[n] = alpha * a[n] * b[n] + beta * out[n], with a [n, m, k], b [n, k, p] and contiguous out [n, m, p].  A
//  vector counts as a row or a column.  For products on one stream, cuBLAS gives the same bits each time.  If a thread
//  computes on several streams at once, the last bits may differ.
//----------------------------------------------------------------------------------------------------------------------

static int opdi_cu_blas_failed(cublasStatus_t s, const char *what) {
    (void)cudaGetLastError();
    return opd_fail(s == CUBLAS_STATUS_ALLOC_FAILED ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuBLAS error: %s in %s",
                    cublasGetStatusString(s), what);
}
/* The cuBLAS handles of a thread, one per device.  When the thread ends, other threads may take its handles.  They are
   not destroyed, because that waits for the device, which would break a capture. */
static std::mutex opdi_cu_handles_lock;
static std::vector<cublasHandle_t> *opdi_cu_idle_handles;     /* [OPDI_CU_MAX_DEVICES]; never destroyed */
struct opdi_cu_handles {
    cublasHandle_t at[OPDI_CU_MAX_DEVICES];
    ~opdi_cu_handles() {
        std::lock_guard<std::mutex> guard(opdi_cu_handles_lock);
        for (int i = 0; i < OPDI_CU_MAX_DEVICES; i++) { if (at[i]) { opdi_cu_idle_handles[i].push_back(at[i]); } }
    }
};
static thread_local opdi_cu_handles opdi_cu_blas_handles;
/* If this thread has no handle for the current device, takes an idle handle or makes a new one.  Returns false and sets
   *s if it fails. */
static bool opdi_cu_blas_take(cublasStatus_t *s) {
    const int index = opdi_cu_current();
    cublasHandle_t *h = &opdi_cu_blas_handles.at[index];
    *s = CUBLAS_STATUS_SUCCESS;
    if (*h) { return true; }
    {
        std::lock_guard<std::mutex> guard(opdi_cu_handles_lock);
        std::vector<cublasHandle_t> &idle = opdi_cu_idle_handles[index];
        if (!idle.empty()) { *h = idle.back(); idle.pop_back(); }
    }
    if (!*h && (*s = cublasCreate(h)) != CUBLAS_STATUS_SUCCESS) { (void)cudaGetLastError(); *h = NULL; }
    return *h != NULL;
}
/* Returns the current device's handle, set to the current stream, or NULL and sets an error. */
static cublasHandle_t opdi_cu_blas() {
    cublasHandle_t h = NULL;
    cublasStatus_t s;
    if (opdi_cu_blas_take(&s)) {
        h = opdi_cu_blas_handles.at[opdi_cu_current()];
        s = cublasSetStream(h, opdi_cu_stream());
    }
    if (s == CUBLAS_STATUS_SUCCESS) { return h; }
    (void)opdi_cu_blas_failed(s, "cublasCreate");
    return NULL;
}

/* A batch of matrices [n, rows, cols]; the strides are in elements. */
struct opdi_cu_matrix { const void *data; int64_t batch, row, col; };
/* A batch of n products: out [m, p] = a [m, k] * b [k, p].  The matrices of `out` are contiguous, and out_batch
   elements apart. */
struct opdi_cu_product { int64_t n, m, k, p; opdi_cu_matrix a, b; void *out; int64_t out_batch; };

/* Returns whether cuBLAS can read a matrix without a copy.  Sets *ld to its leading dimension, and *turned to whether
   it is column-major. */
static bool opdi_cu_leading(const opdi_cu_matrix *x, int64_t rows, int64_t cols, int64_t *ld, bool *turned) {
    const int64_t row = rows == 1 ? cols : x->row, col = cols == 1 ? (rows == 1 || row != 1 ? 1 : rows) : x->col;
    *turned = col != 1;
    *ld = *turned ? col : row;
    return *ld <= INT32_MAX && *ld >= (*turned ? rows : cols) && *ld >= 1 && (*turned ? row == 1 : true);
}
static bool opdi_cu_cuda_type(opd_scalar_type t, cudaDataType *type) {
    switch (t) {
        case OPD_FLOAT32: *type = CUDA_R_32F; return true;
        case OPD_FLOAT64: *type = CUDA_R_64F; return true;
        case OPD_FLOAT16: *type = CUDA_R_16F; return true;
        case OPD_BFLOAT16: *type = CUDA_R_16BF; return true;
        default: return false;
    }
}

static double opdi_cu_number(opd_value v) {
    return v.tag == OPD_TAG_FLOAT ? v.u.d : v.tag == OPD_TAG_COMPLEX ? v.u.c[0] : (double)v.u.i;
}
static double opdi_cu_number_imaginary(opd_value v) { return v.tag == OPD_TAG_COMPLEX ? v.u.c[1] : 0; }
static bool opdi_cu_number_is(opd_value v, double x) {
    return opdi_cu_number(v) == x && opdi_cu_number_imaginary(v) == 0;
}
/* Computes out = alpha * a * b + beta * out.  cuBLAS assumes column-major matrices, so it is asked for out^T = b^T *
   a^T.  out_dtype may be float32 if the factors are 16-bit floats.  out_row: elements from one row of out to the next,
   0 for q->p.  Returns 0, or -1 and sets an error. */
static int opdi_cu_gemm(const opdi_cu_product *q, opd_scalar_type dtype, opd_scalar_type out_dtype, double alpha,
    double beta, int64_t out_row = 0) {
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    const bool wide = dtype == OPD_FLOAT64;
    int64_t lda = 0, ldb = 0;
    bool ta = false, tb = false;
    cudaDataType type = CUDA_R_32F, out_type = CUDA_R_32F;
    cublasHandle_t h = opdi_cu_blas();
    cublasStatus_t s;
    if (!h || !opdi_cu_cuda_type(dtype, &type) || !opdi_cu_cuda_type(out_dtype, &out_type)) { return -1; }
    (void)opdi_cu_leading(&q->a, q->m, q->k, &lda, &ta);
    (void)opdi_cu_leading(&q->b, q->k, q->p, &ldb, &tb);
    s = cublasGemmStridedBatchedEx(h, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)q->p,
        (int)q->m, (int)q->k, wide ? (const void *)&alpha : &alpha32, q->b.data, type, (int)ldb, q->b.batch, q->a.data,
        type, (int)lda,
        q->a.batch, wide ? (const void *)&beta : &beta32, q->out, out_type, (int)(out_row ? out_row : q->p),
        q->out_batch, (int)q->n,
        wide ? CUBLAS_COMPUTE_64F : dtype == OPD_FLOAT32 && opd_float32_matmul_precision() == OPD_MATMUL_HIGH
            ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmStridedBatchedEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmStridedBatchedEx");
    return opdi_cu_debug ? opdi_cu_faults() : 0;
}
/* What cublasLt needs to choose an algorithm for a product, and the algorithm. */
struct opdi_cu_biased {
    int64_t m, k, p, lda, ldb;
    int32_t ta, tb, types[3], compute, epilogue, bias, scaled, fast, device;
    int32_t aligned[3];                           /* the addresses of a, b and out */
    bool operator<(const opdi_cu_biased &o) const { return memcmp(this, &o, sizeof *this) < 0; }
};
struct opdi_cu_algorithm { bool there; cublasLtMatmulAlgo_t algorithm; size_t scratch; };
static std::mutex opdi_cu_algorithms_lock;
static std::map<opdi_cu_biased, opdi_cu_algorithm> *opdi_cu_algorithms;    /* never destroyed */

static int32_t opdi_cu_alignment(const void *p) {
    int32_t n = 256;
    while ((uintptr_t)p % (uintptr_t)n) { n /= 2; }
    return n;
}
/* Returns the algorithm for a product: the one that cublasLt thought best when it was asked first. */
static opdi_cu_algorithm opdi_cu_algorithm_of(const opdi_cu_biased *key, cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t *layouts /*[3]*/) {
    static const cublasLtMatmulPreferenceAttributes_t attributes[4] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t most = (size_t)32 << 20;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found;
    opdi_cu_algorithm a = opdi_cu_algorithm();
    int n = 0;
    std::lock_guard<std::mutex> guard(opdi_cu_algorithms_lock);
    if (!opdi_cu_algorithms) { opdi_cu_algorithms = new std::map<opdi_cu_biased, opdi_cu_algorithm>(); }
    auto i = opdi_cu_algorithms->find(*key);
    if (i != opdi_cu_algorithms->end()) { return i->second; }
    bool good = cublasLtMatmulPreferenceInit(&preference) == CUBLAS_STATUS_SUCCESS &&
        cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                             sizeof most) == CUBLAS_STATUS_SUCCESS;
    for (int k = 0; k < 4; k++) {
        const uint32_t bytes = (uint32_t)key->aligned[k < 2 ? k : 2];
        good = good && cublasLtMatmulPreferenceSetAttribute(&preference, attributes[k], &bytes, sizeof bytes) ==
            CUBLAS_STATUS_SUCCESS;
    }
    a.there = good && cublasLtMatmulAlgoGetHeuristic(h, desc, layouts[0], layouts[1], layouts[2], layouts[2],
                                                     &preference, 1, &found, &n) == CUBLAS_STATUS_SUCCESS && n > 0;
    if (a.there) { a.algorithm = found.algo; a.scratch = found.workspaceSize; }
    (*opdi_cu_algorithms)[*key] = a;
    return a;
}
/* A product for cublasLt: out [m, p] = what the epilogue makes of alpha * a * b, with a bias [p] or NULL.  Factors of
   float8 have scales: one number for each, or if `rows` is true, one for each row of a and each column of b. */
struct opdi_cu_lt {
    const opdi_cu_product *q;
    cudaDataType types[3], bias_type;             /* of a, b and out */
    cublasComputeType_t compute;
    cublasLtEpilogue_t epilogue;
    double alpha;
    const void *bias;
    const float *scales[2];                       /* of a and b, or NULL */
    bool rows, fast;                              /* fast: sums of float8 with fewer bits */
};
template <typename V>
static bool opdi_cu_lt_set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const V &value) {
    return cublasLtMatmulDescSetAttribute(d, a, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
}
/* Sets what a product has besides its factors.  Returns false if cublasLt does not know this. */
static bool opdi_cu_lt_describe(const opdi_cu_lt &p, cublasLtMatmulDesc_t d) {
    bool good = opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    if (p.bias) {
        good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias) &&
            opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.bias_type);
    }
    if (p.fast) { good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_FAST_ACCUM, (int8_t)1); }
    if (p.scales[0]) {                            /* cublasLt's first factor is our second: see opdi_cu_gemm */
        good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, (const void *)p.scales[1]) &&
            opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, (const void *)p.scales[0]);
    }
    if (p.rows) {
#if defined(OPD_CUDA_EMULATED) || (defined(CUBLAS_VERSION) && CUBLAS_VERSION >= 120900)
        const cublasLtMatmulMatrixScale_t each = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
        good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, each) &&
            opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, each);
#else
        good = false;
#endif
    }
    return good;
}
/* Computes a product by cublasLt.  Returns 1, or 0 if cublasLt cannot do this, or -1 and sets an error. */
static int opdi_cu_lt_run(const opdi_cu_lt &p) {
    const opdi_cu_product *const q = p.q;
    const float alpha = (float)p.alpha, zero = 0;
    cublasOperation_t ta, tb;
    bool turned[2] = {false, false};
    opdi_cu_biased key;
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t layouts[3];
    cublasLtMatrixLayout_t l[3] = {&layouts[0], &layouts[1], &layouts[2]};
    void *scratch = NULL;
    memset(&key, 0, sizeof key);
    (void)opdi_cu_leading(&q->a, q->m, q->k, &key.lda, &turned[0]);
    (void)opdi_cu_leading(&q->b, q->k, q->p, &key.ldb, &turned[1]);
    ta = turned[0] ? CUBLAS_OP_T : CUBLAS_OP_N; tb = turned[1] ? CUBLAS_OP_T : CUBLAS_OP_N;
    key.m = q->m; key.k = q->k; key.p = q->p; key.ta = ta; key.tb = tb; key.compute = p.compute;
    for (int i = 0; i < 3; i++) { key.types[i] = p.types[i]; }
    key.epilogue = p.epilogue; key.bias = p.bias ? (int32_t)p.bias_type + 1 : 0;
    key.scaled = (p.scales[0] != NULL) + p.rows; key.fast = p.fast; key.device = opdi_cu_current();
    key.aligned[0] = opdi_cu_alignment(q->a.data); key.aligned[1] = opdi_cu_alignment(q->b.data);
    key.aligned[2] = opdi_cu_alignment(q->out);
    const cublasLtHandle_t h = (cublasLtHandle_t)opdi_cu_blas();            /* a handle of cuBLAS is one of cublasLt */
    if (!h) { return -1; }
    if (cublasLtMatmulDescInit(&desc, p.compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
        !opdi_cu_lt_set(&desc, CUBLASLT_MATMUL_DESC_TRANSA, tb) ||
        !opdi_cu_lt_set(&desc, CUBLASLT_MATMUL_DESC_TRANSB, ta) || !opdi_cu_lt_describe(p, &desc) ||
        cublasLtMatrixLayoutInit(&layouts[0], p.types[1], (uint64_t)(turned[1] ? q->k : q->p),
                                 (uint64_t)(turned[1] ? q->p : q->k), key.ldb) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutInit(&layouts[1], p.types[0], (uint64_t)(turned[0] ? q->m : q->k),
                                 (uint64_t)(turned[0] ? q->k : q->m), key.lda) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutInit(&layouts[2], p.types[2], (uint64_t)q->p, (uint64_t)q->m, q->p) !=
        CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    const opdi_cu_algorithm a = opdi_cu_algorithm_of(&key, h, &desc, l);
    if (!a.there) { (void)cudaGetLastError(); return 0; }
    if (a.scratch > 0 && !(scratch = opdi_cu_scratch((int64_t)a.scratch))) { return -1; }
    const cublasStatus_t s = cublasLtMatmul(h, &desc, &alpha, q->b.data, l[0], q->a.data, l[1], &zero, q->out, l[2],
                                            q->out, l[2], &a.algorithm, scratch, a.scratch, opdi_cu_stream());
    if (s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE) { (void)cudaGetLastError(); return 0; }
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasLtMatmul"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasLtMatmul");
    return opdi_cu_debug && opdi_cu_faults() ? -1 : 1;
}
/* Computes out [m, p] = what `epilogue` makes of alpha * a * b + bias [p] by cublasLt, which does this before it stores
   the product.  Returns 1, or 0 if cublasLt cannot do this, or -1 and sets an error. */
static int opdi_cu_gemm_biased(const opdi_cu_product *q, opd_scalar_type dtype, double alpha, const void *bias,
                               cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS) {
    opdi_cu_lt p = opdi_cu_lt();
    cudaDataType type = CUDA_R_32F;
    if (q->n != 1 || q->m < 2 || dtype == OPD_FLOAT64 || !opdi_cu_aligned(bias) || !opdi_cu_cuda_type(dtype, &type)) {
        return 0;
    }
    p.q = q; p.types[0] = p.types[1] = p.types[2] = p.bias_type = type;
    p.compute = dtype == OPD_FLOAT32 && opd_float32_matmul_precision() == OPD_MATMUL_HIGH
        ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    p.epilogue = epilogue; p.alpha = alpha; p.bias = bias;
    return opdi_cu_lt_run(p);
}
/* Computes the product with one thread per element of the result. */
template <typename T> __global__ void opdi_cu_product_kernel(opdi_cu_product q, opdi_cu_acc<T> alpha,
    opdi_cu_acc<T> beta) {
    typedef opdi_cu_acc<T> A;
    const int64_t all = q.n * q.m * q.p, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t j = i % q.p, r = i / q.p % q.m, n = i / q.p / q.m;
        const T *a = static_cast<const T *>(q.a.data) + n * q.a.batch + r * q.a.row;
        const T *b = static_cast<const T *>(q.b.data) + n * q.b.batch + j * q.b.col;
        T *out = static_cast<T *>(q.out) + n * q.out_batch + r * q.p + j;
        A sum = 0;
        for (int64_t l = 0; l < q.k; l++) {
            sum += opdi_cu_load<A>(a + l * q.a.col) * opdi_cu_load<A>(b + l * q.b.row);
        }
        opdi_cu_store(out, beta == A(0) ? alpha * sum : alpha * sum + beta * opdi_cu_load<A>(out));
    }
}
template <typename A> struct opdi_cu_factor_of {
    static A of(opd_value v) { return v.tag == OPD_TAG_FLOAT ? (A)v.u.d : (A)v.u.i; }
};
template <> struct opdi_cu_factor_of<opdi_cu_c128> {
    static opdi_cu_c128 of(opd_value v) { return opdi_cu_c128(opdi_cu_number(v), opdi_cu_number_imaginary(v)); }
};
template <typename T> static int opdi_cu_product_plain(const opdi_cu_product *q, opd_value alpha, opd_value beta) {
    typedef opdi_cu_acc<T> A;
    const A al = opdi_cu_factor_of<A>::of(alpha), be = opdi_cu_factor_of<A>::of(beta);
    return opdi_cu_launch(opdi_cu_product_kernel<T>, opdi_cu_grid(q->n * q->m * q->p, 256), dim3(256), 0, *q, al, be);
}
/* Computes out = alpha * a * b + beta * out for complex numbers: see opdi_cu_gemm. */
static int opdi_cu_gemm_complex(const opdi_cu_product *q, opd_scalar_type dtype, opd_value alpha, opd_value beta) {
    const bool wide = dtype == OPD_COMPLEX128;
    const opdi_cu_c128 al(opdi_cu_number(alpha), opdi_cu_number_imaginary(alpha)),
        be(opdi_cu_number(beta), opdi_cu_number_imaginary(beta));
    const opdi_cu_c64 al64(al), be64(be);
    const cudaDataType type = wide ? CUDA_C_64F : CUDA_C_32F;
    int64_t lda = 0, ldb = 0;
    bool ta = false, tb = false;
    cublasHandle_t h = opdi_cu_blas();
    if (!h) { return -1; }
    (void)opdi_cu_leading(&q->a, q->m, q->k, &lda, &ta);
    (void)opdi_cu_leading(&q->b, q->k, q->p, &ldb, &tb);
    const cublasStatus_t s = cublasGemmStridedBatchedEx(h, tb ? CUBLAS_OP_T : CUBLAS_OP_N,
        ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)q->p, (int)q->m, (int)q->k, wide ? (const void *)&al : &al64, q->b.data,
        type, (int)ldb, q->b.batch, q->a.data, type, (int)lda, q->a.batch, wide ? (const void *)&be : &be64, q->out,
        type, (int)q->p, q->out_batch, (int)q->n,
        wide ? CUBLAS_COMPUTE_64F : opd_float32_matmul_precision() == OPD_MATMUL_HIGH ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                                       : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmStridedBatchedEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmStridedBatchedEx");
    return opdi_cu_debug ? opdi_cu_faults() : 0;
}
/* Computes a product of any sizes and dtype.  Returns 0, or -1 and sets an error. */
static int opdi_cu_product_run(const opdi_cu_product *q, opd_scalar_type dtype, opd_value alpha, opd_value beta) {
    const bool fits = q->m <= INT32_MAX && q->k <= INT32_MAX && q->p <= INT32_MAX && q->n <= INT32_MAX;
    cudaDataType type;
    if (q->n == 0 || q->m == 0 || q->p == 0) { return 0; }
    if (q->k > 0 && fits && opdi_cu_cuda_type(dtype, &type)) {
        return opdi_cu_gemm(q, dtype, dtype, opdi_cu_number(alpha), opdi_cu_number(beta));
    }
    if (opd_dtype_is_complex(dtype)) {
        if (q->k > 0 && fits) { return opdi_cu_gemm_complex(q, dtype, alpha, beta); }
        OPDI_CU_COMPLEX(dtype, T, return opdi_cu_product_plain<T>(q, alpha, beta))
    }
    OPDI_CU_ALL(dtype, T, return opdi_cu_product_plain<T>(q, alpha, beta))
    return -1;
}

/* Reads a factor [rows, cols] or [n, rows, cols] into *x.  A vector becomes a column if `column` is true, otherwise a
   row.  If cuBLAS cannot read the factor, it is copied; `copied` says that this has been done.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_factor(opd_tensor *t, bool column, opdi_cu_matrix *x, bool copied) {
    const int64_t *sizes = opd_sizes(t), *strides = opd_strides(t);
    const int nd = opd_ndim(t);
    int64_t ld;
    bool turned;
    x->batch = nd == 3 && sizes[0] > 1 ? strides[0] : 0;
    x->row = nd > 1 ? strides[nd - 2] : column ? strides[0] : sizes[0];
    x->col = nd > 1 ? strides[nd - 1] : column ? 1 : strides[0];
    x->data = opd_device_data(t, OPD_CUDA);
    if (!x->data && opd_numel(t)) { return -1; }
    if (copied || opdi_cu_leading(x, nd > 1 ? sizes[nd - 2] : column ? sizes[0] : 1,
        nd > 1 ? sizes[nd - 1] : column ? 1 : sizes[0], &ld, &turned)) {
        return 0;
    }
    t = opd_contiguous(t);
    return t ? opdi_cu_factor(t, column, x, true) : -1;
}
/* Sets result 0 of the call to beta * self + alpha * a * b; self may be NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_product_of(opd_call *call, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta,
    opd_value alpha) {
    opdi_cu_product q;
    opd_tensor *out, *work;
    const int na = opd_ndim(a), nb = opd_ndim(b);
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    work = opd_is_contiguous(out) && opd_dtype(out) == opd_dtype(a) ? out
        : opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), opd_dtype(a));
    if (!work || opdi_cu_factor(a, false, &q.a, false) || opdi_cu_factor(b, true, &q.b, false)) { return -1; }
    q.n = na == 3 ? opd_size(a, 0) : 1;
    q.m = na == 1 ? 1 : opd_size(a, na - 2);
    q.k = opd_size(a, na - 1);
    q.p = nb == 1 ? 1 : opd_size(b, nb - 1);
    q.out = opd_device_data(work, OPD_CUDA);
    q.out_batch = q.m * q.p;
    if (!self || opdi_cu_number_is(beta, 0)) { beta = opd_value_int(0); }
    else if (opdi_cu_number_is(beta, 1) && q.k > 0 && q.n == 1 && opd_numel(self) == q.p && opd_ndim(self) > 0 &&
             opd_size(self, -1) == q.p && opd_is_contiguous(self) && opd_dtype(self) == opd_dtype(a)) {
        const int done = opdi_cu_gemm_biased(&q, opd_dtype(a), opdi_cu_number(alpha), opdi_cu_data<void>(self));
        if (done < 0) { return -1; }
        if (done > 0) { return work == out || opd_copy_(out, work) ? 0 : -1; }
        if (!opd_copy_(work, self)) { return -1; }
    }
    else if (work != self && !opd_copy_(work, self)) { return -1; }
    if (opdi_cu_product_run(&q, opd_dtype(a), alpha, beta)) { return -1; }
    return work == out || opd_copy_(out, work) ? 0 : -1;
}
static int opdi_cu_mm(opd_call *call) {
    return opdi_cu_product_of(call, NULL, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_value_int(0),
        opd_value_int(1));
}
static int opdi_cu_addmm(opd_call *call) {
    return opdi_cu_product_of(call, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                              opd_arg_value(call, 3), opd_arg_value(call, 4));
}
/* Runs addbmm: adds the products of a batch to the result, one after another. */
static int opdi_cu_addbmm(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2), *sum = NULL;
    const opd_value alpha = opd_arg_value(call, 4);
    opd_value beta = opd_arg_value(call, 3);
    opd_tensor *out;
    int64_t i;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_size(a, 0) == 0) {
        const opd_scalar_type t = opd_dtype(out);
        sum = opdi_cu_number_is(beta, 0) ? opd_zeros_like(out) : opd_mul_Scalar(self, beta);
        return sum && opd_copy_(out, opd_to_dtype(sum, t)) ? 0 : -1;
    }
    for (i = 0; i < opd_size(a, 0); i++, beta = opd_value_int(1)) {
        sum = opd_addmm_full(sum ? sum : self, opd_select(a, 0, i), opd_select(b, 0, i), beta, alpha);
        if (!sum) { return -1; }
    }
    return opd_copy_(out, sum) ? 0 : -1;
}

/* Computes parts of the dot product, the sum of a[i] * b[i]: each block computes one part.  Another kernel adds the
   parts. */
template <typename T> __global__ void opdi_cu_dot_kernel(const T *a, int64_t sa, const T *b, int64_t sb, int64_t n,
    opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    A sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        sum += opdi_cu_load<A>(a + i * sa) * opdi_cu_load<A>(b + i * sb);
    }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), A(0));
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; }
}
template <typename T> __global__ void opdi_cu_dot_end_kernel(const opdi_cu_acc<T> *parts, int n, T *out) {
    typedef opdi_cu_acc<T> A;
    A sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { sum += parts[i]; }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), A(0));
    if (threadIdx.x == 0) { opdi_cu_store(out, sum); }
}
template <typename T> static int opdi_cu_dot_run(opd_tensor *a, opd_tensor *b, opd_tensor *out) {
    const int64_t n = opd_numel(a), blocks = n < 512 * 1024 ? opdi_cu_ceil(n, 2048) : 512;
    const dim3 grid((unsigned)(blocks < 1 ? 1 : blocks));
    opdi_cu_acc<T> *parts = static_cast<opdi_cu_acc<T> *>(opdi_cu_scratch((int64_t)grid.x * (int64_t)sizeof *parts));
    if (!parts || opdi_cu_launch(opdi_cu_dot_kernel<T>, grid, dim3(256), 0, opdi_cu_data<T>(a), opd_strides(a)[0],
                                 opdi_cu_data<T>(b), opd_strides(b)[0], n, parts)) { return -1; }
    return opdi_cu_launch(opdi_cu_dot_end_kernel<T>, dim3(1), dim3(256), 0, parts, (int)grid.x, opdi_cu_data<T>(out));
}
/* Sets result 0 of the call to the sum of a[i] * b[i], with b argument 1. */
static int opdi_cu_dot_of(opd_call *call, opd_tensor *a) {
    opd_tensor *b = opd_arg_tensor(call, 1), *out;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_dtype_is_complex(opd_dtype(a))) { OPDI_CU_COMPLEX(opd_dtype(a), T, return opdi_cu_dot_run<T>(a, b, out)) }
    OPDI_CU_ALL(opd_dtype(a), T, return opdi_cu_dot_run<T>(a, b, out))
    return -1;
}
static int opdi_cu_dot(opd_call *call) { return opdi_cu_dot_of(call, opd_arg_tensor(call, 0)); }
static int opdi_cu_vdot(opd_call *call) {
    opd_tensor *const a = opd_conj_physical(opd_arg_tensor(call, 0));
    return a ? opdi_cu_dot_of(call, a) : -1;
}

/* Computes out [m, p] of int32 = a [m, k] * bT [p, k] of int8, which are contiguous, on tensor cores.  Returns 1, or 0
   if cuBLAS cannot, or -1 and sets an error. */
static int opdi_cu_bytes_product(const opd_tensor *a, const opd_tensor *turned, opd_tensor *out) {
    const int64_t m = opd_size(a, 0), k = opd_size(a, 1), p = opd_size(turned, 0);
    const int32_t one = 1, zero = 0;
    if (!opdi_cu_aligned(opdi_cu_data<void>(a)) || !opdi_cu_aligned(opdi_cu_data<void>(turned)) || !opd_ok()) {
        return opd_ok() ? 0 : -1;
    }
    cublasHandle_t h = opdi_cu_blas();
    if (!h) { return -1; }
    const cublasStatus_t s = cublasGemmEx(h, CUBLAS_OP_T, CUBLAS_OP_N, (int)p, (int)m, (int)k, &one,
                                          opdi_cu_data<void>(turned), CUDA_R_8I, (int)k, opdi_cu_data<void>(a),
                                          CUDA_R_8I, (int)k, &zero, opdi_cu_data<void>(out), CUDA_R_32I, (int)p,
                                          CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT);
    if (s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE) { return 0; }
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmEx");
    return 1;
}
/* _int_mm: on tensor cores if the sizes are multiples of 8, else as a product of int32. */
static int opdi_cu_int_mm(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *out;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    const int64_t m = opd_size(a, 0), k = opd_size(a, 1), p = opd_size(b, 1);
    if (opd_dtype(a) == OPD_INT8 && k > 0 && k % 8 == 0 && p % 8 == 0 && opd_is_contiguous(out) && m <= INT32_MAX &&
        k <= INT32_MAX && p <= INT32_MAX) {
        opd_tensor *const turned = opd_contiguous(opd_t(b));
        if (!turned || !(a = opd_contiguous(a))) { return -1; }
        const int done = opdi_cu_bytes_product(a, turned, out);
        if (done) { return done < 0 ? -1 : 0; }
    }
    opd_tensor *const product = opd_mm(opd_to_dtype(a, OPD_INT32), opd_to_dtype(b, OPD_INT32));
    return product && opd_copy_(out, product) ? 0 : -1;
}

//== products whose results go on ======================================================================================

/* Returns x as a contiguous tensor at a multiple of 16 bytes, or NULL and sets an error. */
static opd_tensor *opdi_cu_in_lines(opd_tensor *x) {
    opd_tensor *lines = opd_contiguous(x);
    return lines && !opdi_cu_aligned(opdi_cu_data<void>(lines)) ? opd_clone(lines) : lines;
}
/* Runs linear_relu(Tensor bias, Tensor a, Tensor b) -> Tensor?: relu(a b + bias) in one kernel of cublasLt, or None if
   it cannot do this. */
static int opdi_cu_linear_relu(opd_call *call) {
    opd_tensor *const bias = opd_arg_tensor(call, 0), *const a = opd_arg_tensor(call, 1),
        *const b = opd_arg_tensor(call, 2);
    opdi_cu_product q;
    memset(&q, 0, sizeof q);
    opd_tensor *const out = opdi_cu_new(OPD_INTS(opd_size(a, 0), opd_size(b, 1)), opd_dtype(a));
    if (!out || opdi_cu_factor(a, false, &q.a, false) || opdi_cu_factor(b, true, &q.b, false)) { return -1; }
    q.n = 1; q.m = opd_size(a, 0); q.k = opd_size(a, 1); q.p = opd_size(b, 1);
    q.out = opdi_cu_data<void>(out);
    const int done = q.m == 0 || q.k == 0 || q.p == 0 ? 0
        : opdi_cu_gemm_biased(&q, opd_dtype(a), 1, opdi_cu_data<void>(bias), CUBLASLT_EPILOGUE_RELU_BIAS);
    return done < 0 ? -1 : done ? opd_return_tensor(call, out) : opd_return_value(call, opd_value_none());
}
/* Computes out [m, p] of float8 factors, by tensor cores.  rows: a scale for each row and column; scales NULL: none.
   Returns 1, or 0 if cublasLt cannot do this, or -1 and sets an error. */
static int opdi_cu_scaled_run(opdi_cu_lt *p, opd_tensor *const *scales, bool rows, const opd_tensor *bias,
                              opd_scalar_type out_type) {
    const opd_scalar_type fit = out_type == OPD_FLOAT16 ? OPD_FLOAT16 : OPD_BFLOAT16;     /* the dtype of a bias */
    if (!opdi_cu_cuda_type(out_type, &p->types[2]) || (bias && (opd_dtype(bias) != fit || !opd_is_contiguous(bias) ||
                                                                !opdi_cu_aligned(opdi_cu_data<void>(bias))))) {
        return 0;
    }
    p->rows = rows;
    p->bias = bias ? opdi_cu_data<const void>(bias) : NULL;
    p->epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    p->bias_type = fit == OPD_FLOAT16 ? CUDA_R_16F : CUDA_R_16BF;
    for (int i = 0; i < 2; i++) { p->scales[i] = scales ? opdi_cu_data<const float>(scales[i]) : NULL; }
    return opdi_cu_lt_run(*p);
}
/* Runs scaled_mm(Tensor a, Tensor b, Tensor left, Tensor right, Tensor? bias, int kinds, int dtype, bool fast) ->
   Tensor?: the product of matrices of float8, which are given as bytes, times the scales `left` (one, or one for each
   row of a) and `right` (one, or one for each column of b), plus the bias.  kinds: bit 0 says that a is float8_e5m2,
   otherwise float8_e4m3fn; bit 1 says this of b.  None if cublasLt cannot do this. */
static int opdi_cu_scaled_mm(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *turned, *scales[2], *const bias = opd_arg_tensor(call, 4), *out, *work;
    const int64_t m = opd_size(a, 0), k = opd_size(a, 1), n = opd_size(opd_arg_tensor(call, 1), 1),
        kinds = opd_arg_int(call, 5);
    const opd_scalar_type type = (opd_scalar_type)opd_arg_int(call, 6);
    opdi_cu_product q;
    opdi_cu_lt p = opdi_cu_lt();
    memset(&q, 0, sizeof q);
    for (int i = 0; i < 2; i++) {
        if (!(scales[i] = opdi_cu_as(opd_arg_tensor(call, 2 + i), OPD_FLOAT32))) { return -1; }
    }
    const bool rows = opd_numel(scales[0]) > 1 || opd_numel(scales[1]) > 1;
    cudaDataType known;
    if (m == 0 || k == 0 || k % 16 || n % 16 || n == 0 || m > INT32_MAX || k > INT32_MAX || n > INT32_MAX ||
        kinds == 3 || type == OPD_FLOAT64 || !opdi_cu_cuda_type(type, &known)) {
        return opd_return_value(call, opd_value_none());
    }
    a = opdi_cu_in_lines(a);
    turned = a ? opdi_cu_in_lines(opd_t(opd_arg_tensor(call, 1))) : NULL;
    if (!turned || !(out = opdi_cu_new(OPD_INTS(m, n), type))) { return -1; }
    q.n = 1; q.m = m; q.k = k; q.p = n;
    const opdi_cu_matrix left = {opdi_cu_data<const void>(a), 0, k, 1};
    const opdi_cu_matrix right = {opdi_cu_data<const void>(turned), 0, 1, k};
    q.a = left; q.b = right; q.out = opdi_cu_data<void>(out);
    p.q = &q; p.alpha = 1; p.compute = CUBLAS_COMPUTE_32F; p.fast = opd_arg_bool(call, 7);
    p.types[0] = kinds & 1 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3; p.types[1] = kinds & 2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
    const bool both = opd_numel(scales[0]) == m && opd_numel(scales[1]) == n;
    int done = !rows || both ? opdi_cu_scaled_run(&p, scales, rows, bias, type) : 0;
    if (done < 0) { return -1; }
    if (done) { return opd_return_tensor(call, out); }
    if (!(work = opdi_cu_new(OPD_INTS(m, n), OPD_FLOAT32))) { return -1; }    /* scales by other kernels */
    q.out = opdi_cu_data<void>(work);
    done = opdi_cu_scaled_run(&p, NULL, false, NULL, OPD_FLOAT32);
    if (done <= 0) { return done < 0 ? -1 : opd_return_value(call, opd_value_none()); }
    work = opd_mul(opd_mul(work, opd_reshape(scales[0], OPD_INTS(-1, 1))), opd_reshape(scales[1], OPD_INTS(1, -1)));
    if (bias) { work = opd_add(work, opd_to_dtype(opd_reshape(bias, OPD_INTS(-1)), OPD_FLOAT32)); }
    work = opd_to_dtype(work, type);
    return work ? opd_return_tensor(call, work) : -1;
}

static const opdi_cu_registration opdi_cu_table_matmul[] = {
    {"mm", opdi_cu_mm}, {"bmm", opdi_cu_mm}, {"mv", opdi_cu_mm}, {"addmm", opdi_cu_addmm}, {"baddbmm", opdi_cu_addmm},
    {"addmv", opdi_cu_addmm}, {"addbmm", opdi_cu_addbmm}, {"dot", opdi_cu_dot}, {"vdot", opdi_cu_vdot},
    {"_int_mm", opdi_cu_int_mm},
    {NULL, NULL}};

