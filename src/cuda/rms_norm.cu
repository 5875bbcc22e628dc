
//== rms norm ==========================================================================================================

/* rms norm of rows of n elements: y = x * rstd * w with rstd = 1 / sqrt(mean(x^2) + eps).  w is NULL, or of x's type;
   if `wide` is true, of the type in which the kernel computes.  If r is not NULL, x + r is stored in `sum` and takes
   the place of x.  Backward: y is the gradient dx, to which r is added unless it is NULL, and `parts`, unless it is
   NULL, gets sums of g * x * rstd over rows for dw: a row for each blockIdx.x and threadIdx.y. */
enum { OPDI_CU_RMS_THREADS = 1024 };             /* threads of a multiprocessor in the backward pass */
typedef struct opdi_cu_rms {
    const void *x, *g, *w, *r;
    void *y, *rstd, *parts, *sum;
    double eps;
    int64_t rows, n;
    bool wide;
} opdi_cu_rms;
template <typename T, int W, typename C>
__device__ __forceinline__ void opdi_cu_rms_weights(const opdi_cu_rms &k, int64_t i, C *c) {
    constexpr int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
    if (!k.w) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { c[w] = 1; }
    } else if (k.wide) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w += P) { opdi_cu_load_some<P>((const C *)k.w + i + w, c + w); }
    } else { opdi_cu_load_some<W>((const T *)k.w + i, c); }
}
template <typename T, int W, typename C>
__device__ __forceinline__ void opdi_cu_rms_put(const opdi_cu_rms &k, T *y, const opdi_cu_vector<T, W> &v, C rstd,
                                                int64_t i) {
    C a[W], c[W];
    opdi_cu_rms_weights<T, W>(k, i, a);
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { c[w] = opdi_cu_taken<C>(v, w) * rstd * a[w]; }
    opdi_cu_store_some<W>(y + i, c);
}
/* Returns x + r from element `at` on, rounded, and stores it in `sum`. */
template <typename T, int W>
__device__ __forceinline__ opdi_cu_vector<T, W> opdi_cu_rms_added(const opdi_cu_rms &k, const opdi_cu_vector<T, W> &x,
                                                                  int64_t at) {
    return opdi_cu_norm_added(k.r, k.sum, x, at);
}
template <typename T, int W, int PACKS> __global__ void __launch_bounds__(1024) opdi_cu_rms_rows(const opdi_cu_rms k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n;
        T *y = (T *)k.y + row * n;
        opdi_cu_vector<T, W> v[PACKS ? PACKS : 1];
        C squares = 0;
        int there = 0;
        const auto add = [&](const opdi_cu_vector<T, W> &pack) {
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) { const C a = opdi_cu_taken<C>(pack, w); squares += a * a; }
        };
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, v);
            OPDI_CU_EACH_PACK(p, i) { if (p < there && k.r) { v[p] = opdi_cu_rms_added(k, v[p], row * n + i); } }
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { add(v[p]); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                const opdi_cu_vector<T, W> pack = opdi_cu_load_vector<W>(x + i);
                add(k.r ? opdi_cu_rms_added(k, pack, row * n + i) : pack);
            }
            x = k.r ? (const T *)k.sum + row * n : x;         /* what this thread has stored */
        }
        squares = opdi_cu_row_reduce(squares, opdi_cu_sum(), (C)0, lanes);
        const C rstd = (C)1 / (C)sqrt(squares / (C)n + (C)k.eps);
        if (in && lane == 0) { ((C *)k.rstd)[row] = rstd; }
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { opdi_cu_rms_put(k, y, v[p], rstd, i); } }
        } else { OPDI_CU_EACH_ROUND(i) { opdi_cu_rms_put(k, y, opdi_cu_load_vector<W>(x + i), rstd, i); } }
    }
}
/* Computes dx = rstd * (w * g - x * rstd^2 * mean(w * g * x)) and, if PACKS > 0, the parts of dw. */
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(512) opdi_cu_rms_backward_rows(const opdi_cu_rms k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    C dw[PACKS ? PACKS : 1][W];
    OPDI_CU_UNROLL
    for (int p = 0; p < (PACKS ? PACKS : 1); p++) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { dw[p][w] = 0; }
    }
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n, *g = (const T *)k.g + row * n;
        T *dx = (T *)k.y + row * n;
        const C rstd = in ? ((const C *)k.rstd)[row] : (C)0;
        opdi_cu_vector<T, W> xs[PACKS ? PACKS : 1], gs[PACKS ? PACKS : 1];
        C sum = 0;
        int there = 0;
        const auto add = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, int64_t i) {
            C a[W];
            opdi_cu_rms_weights<T, W>(k, i, a);
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) { sum += a[w] * opdi_cu_taken<C>(gv, w) * opdi_cu_taken<C>(xv, w); }
        };
        const auto put = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, C *to, int64_t i) {
            C a[W];
            opdi_cu_rms_weights<T, W>(k, i, a);
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                const C xw = opdi_cu_taken<C>(xv, w), gw = opdi_cu_taken<C>(gv, w);
                to[w] += gw * xw * rstd;
                a[w] = rstd * (a[w] * gw - xw * sum);
            }
            if (k.r) {
                const opdi_cu_vector<T, W> r = opdi_cu_load_vector<W>((const T *)k.r + (dx - (T *)k.y) + i);
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { a[w] += opdi_cu_taken<C>(r, w); }
            }
            opdi_cu_store_some<W>(dx + i, a);
        };
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, xs);
            (void)opdi_cu_load_packs<W, PACKS>(g, (int)n, lane, lanes, in, gs);
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { add(xs[p], gs[p], i); } }
        } else {
            OPDI_CU_EACH_ROUND(i) { add(opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), i); }
        }
        sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes) * rstd * rstd / (C)n;
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { put(xs[p], gs[p], dw[p], i); } }
        } else {
            OPDI_CU_EACH_ROUND(i) { put(opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), dw[0], i); }
        }
    }
    if constexpr (PACKS > 0) {
        constexpr int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
        if (!k.parts) { return; }
        C *parts = (C *)k.parts + ((int64_t)blockIdx.x * blockDim.y + threadIdx.y) * n;
        OPDI_CU_EACH_PACK(p, i) {
            if (i >= n) { continue; }
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w += P) { opdi_cu_store_some<P>(parts + i + w, dw[p] + w); }
        }
    }
}
/* Runs rms_norm(Tensor x, Tensor? w, int n, float eps, Tensor? r) -> (Tensor, Tensor, Tensor): the norm of rows of n
   elements, and rstd of each row, as one dim.  w has n elements, and x's dtype or float32.  If r, with the sizes and
   dtype of x, is not None: the norm of x + r, and third x + r, otherwise None. */
static int opdi_cu_rms_norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *r = opd_arg_tensor(call, 4), *y, *rstd,
        *sum = NULL;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    opdi_cu_rms k = opdi_cu_rms();
    bool bad = false;
    k.n = opd_arg_int(call, 2); k.eps = opd_arg_double(call, 3);
    k.rows = k.n > 0 ? opd_numel(x) / k.n : 0;
    x = opdi_cu_norm_in(x, opd_dtype(x), &bad); w = opdi_cu_norm_in(w, w ? opd_dtype(w) : acc, &bad);
    r = opdi_cu_norm_in(r, x ? opd_dtype(x) : acc, &bad);
    if (r && !bad && !(sum = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x)))) { return -1; }
    y = bad ? NULL : opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x));
    rstd = y ? opdi_cu_new(opd_ints_of(&k.rows, 1), acc) : NULL;
    if (!rstd) { return -1; }
    k.x = opdi_cu_norm_data(x); k.w = opdi_cu_norm_data(w); k.wide = w && opd_dtype(w) != opd_dtype(x);
    k.y = (void *)opdi_cu_norm_data(y); k.rstd = (void *)opdi_cu_norm_data(rstd);
    k.r = opdi_cu_norm_data(r); k.sum = (void *)opdi_cu_norm_data(sum);
    if (k.rows > 0) {
        OPDI_CU_FLOATS(opd_dtype(x), T, {
            const int W = 16 / (int)sizeof(T), most = sizeof(T) == 8 ? 2 : 4;
            const bool vec = k.n % W == 0 && opdi_cu_aligned(k.x) && opdi_cu_aligned(k.w) && opdi_cu_aligned(k.r);
            const opdi_cu_row_plan p = opdi_cu_row_plan_of(k.rows, k.n, W, vec, most);
            if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_rms_rows, T, most), p.grid, p.block, 0, k)) { return -1; }
        })
    }
    return opd_return_tensor(call, y) || opd_return_tensor(call, rstd) ? -1
        : sum ? opd_return_tensor(call, sum) : opd_return_value(call, opd_value_none());
}
/* Computes dx and, if dw is not NULL, dw [n] of the type of the computation. */
template <typename T> static int opdi_cu_rms_backward_of(opdi_cu_rms k, opd_tensor *x, opd_tensor *g, opd_tensor *rstd,
                                                         opd_tensor *dw) {
    const int W = 16 / (int)sizeof(T), most = 2;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool vec = k.n % W == 0 && opdi_cu_aligned(k.x) && opdi_cu_aligned(k.g) && opdi_cu_aligned(k.w) &&
        opdi_cu_aligned(k.r);
    opdi_cu_row_plan p = opdi_cu_row_plan_of(k.rows, k.n, W, vec, most);
    if (p.block.x > 512) { p.packs = 0; p.block = dim3(512); }
    if (p.packs == 0 || !dw) {
        opd_tensor *mean = dw ? opd_zeros_like(rstd) : NULL;
        if (dw && !mean) { return -1; }
        return opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_rms_backward_rows, T, most), p.grid, p.block, 0, k) ? -1
            : dw ? opdi_cu_pair_sums(x, g, k.rows, k.n, 1, 1, mean, rstd, 0, dw, NULL) : 0;
    }
    const int64_t at_once = (int64_t)opdi_cu_properties()->multiprocessors *
        (OPDI_CU_RMS_THREADS / (int)(p.block.x * p.block.y));
    p.grid.x = p.grid.x < at_once ? p.grid.x : (unsigned)at_once;
    const int64_t sizes[2] = {(int64_t)p.grid.x * p.block.y, k.n};
    opd_tensor *parts = opdi_cu_new(opd_ints_of(sizes, 2), acc);
    k.parts = (void *)opdi_cu_norm_data(parts);
    if (!parts || opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_rms_backward_rows, T, most), p.grid, p.block, 0, k)) {
        return -1;
    }
    return opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_FI>(parts, 1, dw, NULL, opdi_cu_fold_make(0), false);
}
/* Runs rms_norm_backward(Tensor g, Tensor x, Tensor? w, Tensor rstd, int n, bool need, Tensor? r) -> (Tensor, Tensor?):
   dx, to which r is added unless it is None, and dw [n] in w's dtype if `need` is true, else None. */
static int opdi_cu_rms_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2),
        *rstd = opd_arg_tensor(call, 3), *r = opd_arg_tensor(call, 6), *dx, *dw = NULL;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool need = opd_arg_bool(call, 5) && w;
    opdi_cu_rms k = opdi_cu_rms();
    bool bad = false;
    k.n = opd_arg_int(call, 4);
    k.rows = k.n > 0 ? opd_numel(x) / k.n : 0;
    g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad);
    w = opdi_cu_norm_in(w, w ? opd_dtype(w) : acc, &bad); rstd = opdi_cu_norm_in(rstd, acc, &bad);
    r = opdi_cu_norm_in(r, x ? opd_dtype(x) : acc, &bad);
    dx = bad ? NULL : opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x));
    if (!dx || (need && !(dw = opdi_cu_new(opd_ints_of(&k.n, 1), acc)))) { return -1; }
    k.x = opdi_cu_norm_data(x); k.g = opdi_cu_norm_data(g); k.w = opdi_cu_norm_data(w);
    k.wide = w && opd_dtype(w) != opd_dtype(x);
    k.r = opdi_cu_norm_data(r);
    k.y = (void *)opdi_cu_norm_data(dx); k.rstd = (void *)opdi_cu_norm_data(rstd);
    if (k.rows == 0) { if (dw && !opd_zero_(dw)) { return -1; } }
    else { OPDI_CU_FLOATS(opd_dtype(x), T, if (opdi_cu_rms_backward_of<T>(k, x, g, rstd, dw)) { return -1; }) }
    if (dw && opd_dtype(dw) != opd_dtype(w) && !(dw = opd_to_dtype(dw, opd_dtype(w)))) { return -1; }
    return opd_return_tensor(call, dx) ? -1 : dw ? opd_return_tensor(call, dw)
        : opd_return_value(call, opd_value_none());
}
