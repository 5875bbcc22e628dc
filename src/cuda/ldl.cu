//----------------------------------------------------------------------------------------------------------------------
//  >>cu:ldl         L D L^T and L D L^H with row and column exchanges
//
//  The method, the exchanges and the form of the results are the processor's.  A block of threads factors a matrix of
//  up to 1,024 rows, or solves equations with it for one right side; the processor computes with larger matrices.
//  Numbers are computed in double, and stored in the dtype of the matrix.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_LDL_MOST = 1024, OPDI_CU_LDL_THREADS = 256 };

template <typename T> static __device__ __forceinline__ opdi_complex opdi_cu_ldl_get(const T *p) {
    if constexpr (std::is_arithmetic<T>::value) { return opdi_complex_make((double)*p, 0); }
    else { return opdi_complex_make((double)p->re, (double)p->im); }
}
template <typename T> static __device__ __forceinline__ void opdi_cu_ldl_set(T *p, opdi_complex x) {
    if constexpr (std::is_arithmetic<T>::value) { *p = (T)x.re; }
    else { p->re = (decltype(p->re))x.re; p->im = (decltype(p->im))x.im; }
}
template <typename T> static __device__ __forceinline__ double opdi_cu_ldl_size(const T *p) {
    const opdi_complex x = opdi_cu_ldl_get(p);
    return fabs(x.re) + fabs(x.im);
}
static __device__ __forceinline__ opdi_complex opdi_cu_ldl_mirrored(opdi_complex x, bool hermitian) {
    return hermitian ? opdi_complex_conj(x) : x;
}
/* Solves (x, y) D = (first, second) for a block D = [high, .; below, low]; x and y hold first and second before. */
static __device__ __forceinline__ void opdi_cu_ldl_pair(opdi_complex high, opdi_complex below, opdi_complex low,
                                                        bool hermitian, opdi_complex *x, opdi_complex *y) {
    const double size = 1 / opdi_complex_abs(below);
    const opdi_complex beside = opdi_complex_times(size, below), above = opdi_cu_ldl_mirrored(beside, hermitian);
    low = opdi_complex_times(size, low);
    high = opdi_complex_times(size, high);
    const opdi_complex det = opdi_complex_sub(opdi_complex_mul(high, low), opdi_complex_mul(beside, above));
    const opdi_complex first = opdi_complex_times(size, *x), second = opdi_complex_times(size, *y);
    *x = opdi_complex_div(opdi_complex_sub(opdi_complex_mul(low, first), opdi_complex_mul(beside, second)), det);
    *y = opdi_complex_div(opdi_complex_sub(opdi_complex_mul(high, second), opdi_complex_mul(above, first)), det);
}
/* Returns the largest of the block's numbers `size`, and sets *at to the smallest of the numbers *at of the threads
   that have it.  sizes and places: shared memory for the block. */
static __device__ double opdi_cu_ldl_largest(double size, int *at, double *sizes, int *places) {
    const int thread = (int)threadIdx.x;
    __syncthreads();
    sizes[thread] = size; places[thread] = *at;
    for (int half = OPDI_CU_LDL_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread >= half) { continue; }
        const double other = sizes[thread + half];
        if (other > sizes[thread] || (other == sizes[thread] && places[thread + half] < places[thread])) {
            sizes[thread] = other; places[thread] = places[thread + half];
        }
    }
    __syncthreads();
    *at = places[0];
    return sizes[0];
}
/* Returns the size (1 or 2) of the diagonal block of D that begins at row k of a [n, n].  Sets *other to the row that
   must be exchanged with the last row of the block. */
template <typename T> static __device__ int opdi_cu_ldl_choose(const T *a, int n, int k, int *other, double *sizes,
                                                               int *places) {
    const double alpha = 0.6403882032022076;      /* (1 + sqrt(17)) / 8 */
    double most = 0, beside = 0;
    int at = n, unused = 0;
    for (int i = k + 1 + (int)threadIdx.x; i < n; i += OPDI_CU_LDL_THREADS) {
        const double size = opdi_cu_ldl_size(a + (int64_t)i * n + k);
        if (size > most) { most = size; at = i; }
    }
    most = opdi_cu_ldl_largest(most, &at, sizes, places);
    const double first = opdi_cu_ldl_size(a + (int64_t)k * n + k);
    *other = k;
    if (first >= alpha * most || at == n) { return 1; }
    for (int j = k + (int)threadIdx.x; j < n; j += OPDI_CU_LDL_THREADS) {
        const double size = opdi_cu_ldl_size(j < at ? a + (int64_t)at * n + j : a + (int64_t)j * n + at);
        if (j != at && size > beside) { beside = size; }
    }
    beside = opdi_cu_ldl_largest(beside, &unused, sizes, places);
    if (first >= alpha * most * (most / beside)) { return 1; }
    *other = at;
    return opdi_cu_ldl_size(a + (int64_t)at * n + at) >= alpha * beside ? 1 : 2;
}
/* Exchanges rows and columns i < j of a [n, n], from column i on, and elements i and j of column k, unless k is i. */
template <typename T> static __device__ void opdi_cu_ldl_exchange(T *a, int n, int k, int i, int j, bool hermitian) {
    for (int row = i + (int)threadIdx.x; row < n; row += OPDI_CU_LDL_THREADS) {
        T *const x = a + (int64_t)row * n + i;
        if (row == j) {
            opdi_cu_ldl_set(x, opdi_cu_ldl_mirrored(opdi_cu_ldl_get(x), hermitian));
            continue;
        }
        T *const y = row == i ? a + (int64_t)j * n + j : row < j ? a + (int64_t)j * n + row : a + (int64_t)row * n + j;
        const bool between = hermitian && row > i && row < j;
        const opdi_complex kept = opdi_cu_ldl_get(x);
        opdi_cu_ldl_set(x, opdi_cu_ldl_mirrored(opdi_cu_ldl_get(y), between));
        opdi_cu_ldl_set(y, opdi_cu_ldl_mirrored(kept, between));
    }
    if (k != i && threadIdx.x == 0) {
        const T kept = a[(int64_t)i * n + k];
        a[(int64_t)i * n + k] = a[(int64_t)j * n + k];
        a[(int64_t)j * n + k] = kept;
    }
    __syncthreads();
}
/* Eliminates the diagonal block of `size` rows at row k of a [n, n].  columns: shared memory for 2 n numbers, in which
   the columns of L are kept until all elements of the matrix have been updated. */
template <typename T> static __device__ void opdi_cu_ldl_eliminate(T *a, int n, int k, int size, bool hermitian,
                                                                   opdi_complex *columns) {
    constexpr int lanes = 32, rows = OPDI_CU_LDL_THREADS / lanes;
    const int from = k + size, lane = (int)threadIdx.x % lanes;
    const opdi_complex high = opdi_cu_ldl_get(a + (int64_t)k * n + k);
    for (int j = from + (int)threadIdx.x; j < n; j += OPDI_CU_LDL_THREADS) {
        opdi_complex x = opdi_cu_ldl_get(a + (int64_t)j * n + k), y = opdi_complex_make(0, 0);
        if (size == 2) {
            y = opdi_cu_ldl_get(a + (int64_t)j * n + k + 1);
            opdi_cu_ldl_pair(high, opdi_cu_ldl_get(a + (int64_t)(k + 1) * n + k),
                             opdi_cu_ldl_get(a + (int64_t)(k + 1) * n + k + 1), hermitian, &x, &y);
        } else { x = opdi_complex_div(x, high); }
        columns[2 * j] = x; columns[2 * j + 1] = y;
    }
    __syncthreads();
    for (int i = from + (int)threadIdx.x / lanes; i < n; i += rows) {
        const opdi_complex x = opdi_cu_ldl_get(a + (int64_t)i * n + k);
        const opdi_complex y = size == 2 ? opdi_cu_ldl_get(a + (int64_t)i * n + k + 1) : opdi_complex_make(0, 0);
        for (int j = from + lane; j <= i; j += lanes) {
            T *const place = a + (int64_t)i * n + j;
            if constexpr (std::is_arithmetic<T>::value) {
                *place = (T)((double)*place - x.re * columns[2 * j].re - y.re * columns[2 * j + 1].re);
            } else {
                opdi_complex v = opdi_complex_sub(opdi_cu_ldl_get(place), opdi_complex_mul(
                    x, opdi_cu_ldl_mirrored(columns[2 * j], hermitian)));
                v = opdi_complex_sub(v, opdi_complex_mul(y, opdi_cu_ldl_mirrored(columns[2 * j + 1], hermitian)));
                if (hermitian && i == j) { v.im = 0; }
                opdi_cu_ldl_set(place, v);
            }
        }
    }
    __syncthreads();
    for (int j = from + (int)threadIdx.x; j < n; j += OPDI_CU_LDL_THREADS) {
        opdi_cu_ldl_set(a + (int64_t)j * n + k, columns[2 * j]);
        if (size == 2) { opdi_cu_ldl_set(a + (int64_t)j * n + k + 1, columns[2 * j + 1]); }
    }
    __syncthreads();
}
/* Factors matrices a [batch, n, n], of which only the lower triangle is read, in place; the rest becomes 0. */
template <typename T> __global__ void __launch_bounds__(OPDI_CU_LDL_THREADS)
opdi_cu_ldl_factor(T *matrices, int32_t *all_pivots, int32_t *infos, int n, int64_t batch, bool hermitian) {
    __shared__ double sizes[OPDI_CU_LDL_THREADS];
    __shared__ int places[OPDI_CU_LDL_THREADS];
    OPDI_CU_SHARED(shared);
    for (int64_t m = blockIdx.x; m < batch; m += gridDim.x) {
        T *const a = matrices + m * n * n;
        int32_t *const pivots = all_pivots + m * n;
        int info = 0, size, other;
        for (int i = (int)threadIdx.x; i < n * n; i += OPDI_CU_LDL_THREADS) {
            if (i % n > i / n) { opdi_cu_ldl_set(a + i, opdi_complex_make(0, 0)); }
            if (hermitian && i % n == i / n) {
                opdi_cu_ldl_set(a + i, opdi_complex_make(opdi_cu_ldl_get(a + i).re, 0));
            }
        }
        __syncthreads();
        for (int k = 0; k < n; k += size) {
            size = opdi_cu_ldl_choose(a, n, k, &other, sizes, places);
            const int last = k + size - 1;
            if (threadIdx.x == 0) {
                pivots[k] = size == 2 ? -(other + 1) : other + 1;
                if (size == 2) { pivots[last] = pivots[k]; }
            }
            if (size == 1 && other == k && opdi_complex_zero(opdi_cu_ldl_get(a + (int64_t)k * n + k))) {
                info = info ? info : k + 1;       /* the column consists of zeros */
                continue;
            }
            __syncthreads();
            if (other != last) { opdi_cu_ldl_exchange(a, n, k, last, other, hermitian); }
            opdi_cu_ldl_eliminate(a, n, k, size, hermitian, (opdi_complex *)shared);
        }
        if (threadIdx.x == 0) { infos[m] = info; }
    }
}
/* Adds up x and y over the threads of the block; only thread 0 gets the sums. */
static __device__ void opdi_cu_ldl_sums(opdi_complex *x, opdi_complex *y, opdi_complex *sums) {
    const int thread = (int)threadIdx.x;
    sums[2 * thread] = *x; sums[2 * thread + 1] = *y;
    for (int half = OPDI_CU_LDL_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread >= half) { continue; }
        for (int i = 0; i < 2; i++) {
            sums[2 * thread + i] = opdi_complex_add(sums[2 * thread + i], sums[2 * (thread + half) + i]);
        }
    }
    if (thread == 0) { *x = sums[0]; *y = sums[1]; }
}
/* Returns whether pivots [n] are such as the factorization makes; thread 0 of the block calls it. */
static __device__ bool opdi_cu_ldl_valid(const int32_t *pivots, int n, const opdi_cu_guard &guard) {
    for (int k = 0; k < n; k++) {
        const bool two = pivots[k] < 0;
        const int64_t last = two ? k + 1 : k, other = (two ? -(int64_t)pivots[k] : pivots[k]) - 1;
        if (other < last || other >= n || (two && (last == n || pivots[last] != pivots[k]))) {
            guard.note(other, n);
            return false;
        }
        k = (int)last;
    }
    return true;
}
/* Solves equations for x, a column in shared memory; the block's threads take part. */
template <typename T> static __device__ void opdi_cu_ldl_solve_one(const T *a, const int32_t *pivots, int n,
                                                                   bool hermitian, opdi_complex *x,
                                                                   opdi_complex *sums) {
    int size;
    for (int k = 0; k < n; k += size) {
        size = pivots[k] < 0 ? 2 : 1;
        const int last = k + size - 1, other = (pivots[k] < 0 ? -pivots[k] : pivots[k]) - 1;
        if (threadIdx.x == 0) {
            const opdi_complex kept = x[last];
            x[last] = x[other];
            x[other] = kept;
        }
        __syncthreads();
        for (int i = last + 1 + (int)threadIdx.x; i < n; i += OPDI_CU_LDL_THREADS) {
            for (int j = k; j <= last; j++) {
                x[i] = opdi_complex_sub(x[i], opdi_complex_mul(opdi_cu_ldl_get(a + (int64_t)i * n + j), x[j]));
            }
        }
        __syncthreads();
        if (threadIdx.x == 0 && size == 1) { x[k] = opdi_complex_div(x[k], opdi_cu_ldl_get(a + (int64_t)k * n + k)); }
        if (threadIdx.x == 0 && size == 2) {      /* D is on the left: of the conjugates, if it is Hermitian */
            opdi_complex top = opdi_cu_ldl_mirrored(x[k], hermitian), low = opdi_cu_ldl_mirrored(x[last], hermitian);
            opdi_cu_ldl_pair(opdi_cu_ldl_get(a + (int64_t)k * n + k), opdi_cu_ldl_get(a + (int64_t)last * n + k),
                             opdi_cu_ldl_get(a + (int64_t)last * n + last), hermitian, &top, &low);
            x[k] = opdi_cu_ldl_mirrored(top, hermitian);
            x[last] = opdi_cu_ldl_mirrored(low, hermitian);
        }
    }
    for (int k = n - 1; k >= 0; k -= size) {
        size = pivots[k] < 0 ? 2 : 1;
        opdi_complex sum[2] = {opdi_complex_make(0, 0), opdi_complex_make(0, 0)};
        __syncthreads();
        for (int i = k + 1 + (int)threadIdx.x; i < n; i += OPDI_CU_LDL_THREADS) {
            OPDI_CU_UNROLL
            for (int j = 0; j < 2; j++) {
                if (j == size) { continue; }
                const opdi_complex of = opdi_cu_ldl_get(a + (int64_t)i * n + k - j);
                sum[j] = opdi_complex_add(sum[j], opdi_complex_mul(opdi_cu_ldl_mirrored(of, hermitian), x[i]));
            }
        }
        opdi_cu_ldl_sums(sum, sum + 1, sums);
        if (threadIdx.x == 0) {
            const int other = (pivots[k] < 0 ? -pivots[k] : pivots[k]) - 1;
            x[k] = opdi_complex_sub(x[k], sum[0]);
            if (size == 2) { x[k - 1] = opdi_complex_sub(x[k - 1], sum[1]); }
            const opdi_complex kept = x[k];
            x[k] = x[other];
            x[other] = kept;
        }
    }
    __syncthreads();
}
/* Solves equations with the factors a [batch, n, n] for x [batch, n, columns], one column in each block. */
template <typename T> __global__ void __launch_bounds__(OPDI_CU_LDL_THREADS)
opdi_cu_ldl_solve_kernel(const T *matrices, const int32_t *all_pivots, T *all, int n, int64_t columns, int64_t batch,
                         bool hermitian, opdi_cu_guard guard) {
    __shared__ opdi_complex sums[2 * OPDI_CU_LDL_THREADS];
    __shared__ bool valid;
    OPDI_CU_SHARED(shared);
    opdi_complex *const x = (opdi_complex *)shared;
    for (int64_t at = blockIdx.x; at < batch * columns; at += gridDim.x) {
        const int64_t m = at / columns;
        const int32_t *const pivots = all_pivots + m * n;
        T *const own = all + m * n * columns + at % columns;
        if (threadIdx.x == 0) { valid = opdi_cu_ldl_valid(pivots, n, guard); }
        for (int i = (int)threadIdx.x; i < n; i += OPDI_CU_LDL_THREADS) { x[i] = opdi_cu_ldl_get(own + i * columns); }
        __syncthreads();
        if (valid) { opdi_cu_ldl_solve_one(matrices + m * n * n, pivots, n, hermitian, x, sums); }
        for (int i = (int)threadIdx.x; i < n; i += OPDI_CU_LDL_THREADS) { opdi_cu_ldl_set(own + i * columns, x[i]); }
        __syncthreads();
    }
}
static bool opdi_cu_ldl_takes(const opd_tensor *a) {
    return opd_ndim(a) >= 2 && opdi_cu_solver_kind(opd_dtype(a)) >= 0 && opd_numel(a) > 0 &&
        opd_size(a, -1) <= OPDI_CU_LDL_MOST;
}
/* Runs the statements with T the C++ type of a dtype for which there are factorizations. */
#define OPDI_CU_LDL_TYPES(dtype, T, ...) switch (dtype) { \
        OPDI_CU_CASE(OPD_FLOAT32, float, T, __VA_ARGS__) OPDI_CU_CASE(OPD_FLOAT64, double, T, __VA_ARGS__) \
        OPDI_CU_CASE(OPD_COMPLEX64, opdi_cu_c64, T, __VA_ARGS__) \
        OPDI_CU_CASE(OPD_COMPLEX128, opdi_cu_c128, T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* linalg_ldl_factor_ex.  The host waits only to check for errors. */
static int opdi_cu_ldl_factor_of(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *pivots, *info;
    const bool check = opd_arg_bool(call, 2);
    if (!opdi_cu_ldl_takes(input)) { return opd_cpu_fallback(call); }
    if (check ? opdi_cu_solver_begin(call) : opd_results_from_fake(call)) { return -1; }
    const int64_t n = opd_size(input, -1), batch = opd_numel(input) / (n * n);
    const bool hermitian = opd_arg_bool(call, 1) && opd_dtype_is_complex(opd_dtype(input));
    a = opdi_cu_solver_copy(input);
    pivots = opdi_cu_solver_new(input, 2, n, -1, OPD_INT32);
    info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!a || !pivots || !info) { return -1; }
    OPDI_CU_LDL_TYPES(opd_dtype(a), T, if (opdi_cu_launch(opdi_cu_ldl_factor<T>, opdi_cu_grid_rows(batch),
        dim3(OPDI_CU_LDL_THREADS), 2 * (size_t)n * sizeof(opdi_complex), opdi_cu_data<T>(a),
        opdi_cu_data<int32_t>(pivots), opdi_cu_data<int32_t>(info), (int)n, batch, hermitian)) { return -1; })
    return (check && opdi_cu_solver_check(info, "linalg.ldl_factor_ex", input)) || opdi_cu_solver_return(call, 0, a) ||
        opdi_cu_solver_return(call, 1, pivots) || opdi_cu_solver_return(call, 2, info) ? -1 : 0;
}
/* linalg_ldl_solve */
static int opdi_cu_ldl_solve(opd_call *call) {
    opd_tensor *factors = opd_arg_tensor(call, 0), *pivots = opd_arg_tensor(call, 1), *x;
    if (!opdi_cu_ldl_takes(factors)) { return opd_cpu_fallback(call); }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    const int64_t n = opd_size(factors, -1), columns = opd_size(out, -1), batch = opd_numel(out) / (n * columns);
    const bool hermitian = opd_arg_bool(call, 3) && opd_dtype_is_complex(opd_dtype(factors));
    x = opdi_cu_solver_copy(opdi_cu_solver_expanded(opd_arg_tensor(call, 2), out));
    factors = x ? opdi_cu_solver_as(factors, 2, x) : NULL;
    pivots = factors ? opdi_cu_solver_as(opd_to_dtype(pivots, OPD_INT32), 1, x) : NULL;
    if (!pivots) { return -1; }
    const opdi_cu_guard guard = opdi_cu_guard_of(call, "a pivot is not valid. Did you properly pass the result of "
                                                 "ldl_factor?");
    OPDI_CU_LDL_TYPES(opd_dtype(x), T, if (opdi_cu_launch(
        opdi_cu_ldl_solve_kernel<T>, opdi_cu_grid_rows(batch * columns), dim3(OPDI_CU_LDL_THREADS),
        (size_t)n * sizeof(opdi_complex), opdi_cu_data<const T>(factors), opdi_cu_data<const int32_t>(pivots),
        opdi_cu_data<T>(x), (int)n, columns, batch, hermitian, guard)) { return -1; })
    return opdi_cu_solver_return(call, 0, x);
}
static const opdi_cu_registration opdi_cu_table_ldl[] = {
    {"linalg_ldl_factor_ex", opdi_cu_ldl_factor_of}, {"linalg_ldl_solve", opdi_cu_ldl_solve},
    {NULL, NULL}};
