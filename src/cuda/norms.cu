//== layer and group norm ==============================================================================================

/* A norm of rows of n elements.  In a layer norm (hw is 0), each element of a row has its own weight.  In a group norm,
   each channel has a weight: there are c channels, and a row has `per` channels of hw elements each. */
typedef struct opdi_cu_norm {
    const void *x, *g, *w, *b;                    /* w, b: NULL, or of x's type; if `wide` is true, of the type in which
                                                     the kernel computes */
    void *y, *save_mean, *save_rstd;              /* the result; the saved statistics, of dtype `stat` */
    const void *mean, *rstd;                      /* saved by the forward pass, in the type in which the kernel
                                                     computes */
    const void *r;                                /* of a norm of x + r, which is stored in sum */
    void *sum;
    double eps;
    int64_t rows, n, hw, per, c;
    int stat;
    bool wide;
} opdi_cu_norm;
/* Loads the W weights of elements i, i + 1, ... of a row whose first channel is number `channel`. */
template <typename T, int W, typename C, typename I>
__device__ __forceinline__ void opdi_cu_norm_weights(const opdi_cu_norm &k, const void *p, int64_t channel, I i,
                                                     C *c) {
    const int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
    if (k.hw > 0) {
        const int64_t at = channel + (sizeof(I) == 4 ? (int64_t)((uint32_t)i / (uint32_t)k.hw) : (int64_t)i / k.hw);
        const C v = k.wide ? ((const C *)p)[at] : opdi_cu_load<C>((const T *)p + at);
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { c[w] = v; }
    } else if (k.wide) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w += P) { opdi_cu_load_some<P>((const C *)p + i + w, c + w); }
    } else { opdi_cu_load_some<W>((const T *)p + i, c); }
}
struct opdi_cu_var_join {
    template <typename S> __device__ __forceinline__ S operator()(S a, const S &b) const {
        opdi_cu_fold_var<decltype(a.mean)>::join(a, b);
        return a;
    }
};
/* Computes y = (x - mean) * rstd * w + b, for W elements from number i on. */
template <typename T, int W, typename C, typename I>
__device__ __forceinline__ void opdi_cu_norm_put(const opdi_cu_norm &k, T *y, const opdi_cu_vector<T, W> &v, C mean,
                                                 C rstd, int64_t channel, I i) {
    C c[W], a[W], b[W];
    if (k.w) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, a); }
    if (k.b) { opdi_cu_norm_weights<T, W>(k, k.b, channel, i, b); }
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        c[w] = (opdi_cu_taken<C>(v, w) - mean) * rstd;
        if (k.w) { c[w] *= a[w]; }
        if (k.b) { c[w] += b[w]; }
    }
    opdi_cu_store_some<W>(y + i, c);
}
/* Returns x + r from element `at` of r on, rounded, and stores it in `sum`. */
template <typename T, int W>
__device__ __forceinline__ opdi_cu_vector<T, W> opdi_cu_norm_added(const void *r, void *sum,
                                                                   const opdi_cu_vector<T, W> &x, int64_t at) {
    const opdi_cu_vector<T, W> more = opdi_cu_load_vector<W>((const T *)r + at);
    opdi_cu_vector<T, W> added;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        added.at[w] = opdi_cu_cast<T>(opdi_cu_taken<opdi_cu_acc<T>>(x, w) + opdi_cu_taken<opdi_cu_acc<T>>(more, w));
    }
    opdi_cu_store_vector<W>((T *)sum + at, added);
    return added;
}
template <typename T, int W, int PACKS, bool ADDS>
__device__ __forceinline__ void opdi_cu_norm_rows_of(const opdi_cu_norm &k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y, channel = k.hw > 0 ? row * k.per % k.c : 0;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n;
        T *y = (T *)k.y + row * n;
        opdi_cu_vector<T, W> v[PACKS ? PACKS : 1];
        C mean = 0, squares = 0, rstd;
        int there = 0;
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, v);
            if constexpr (ADDS) {
                OPDI_CU_EACH_PACK(p, i) {
                    if (p < there) { v[p] = opdi_cu_norm_added(k.r, k.sum, v[p], row * n + i); }
                }
            }
            OPDI_CU_EACH_PACK(p, i) {
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { mean += p < there ? opdi_cu_taken<C>(v[p], w) : (C)0; }
            }
            mean = opdi_cu_row_reduce(mean, opdi_cu_sum(), (C)0, lanes) / (C)n;
            opdi_cu_opaque(v, PACKS);
            OPDI_CU_EACH_PACK(p, i) {
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    const C d = p < there ? opdi_cu_taken<C>(v[p], w) - mean : (C)0;
                    squares += d * d;
                }
            }
            squares = opdi_cu_row_reduce(squares, opdi_cu_sum(), (C)0, lanes);
            opdi_cu_opaque(v, PACKS);
        } else {
            typedef typename opdi_cu_fold_var<C>::State S;
            const S none = opdi_cu_fold_var<C>().init(0);
            S s = none;
            OPDI_CU_EACH_ROUND(i) {
                C c[W];
                if constexpr (ADDS) {
                    const opdi_cu_vector<T, W> pack =
                        opdi_cu_norm_added(k.r, k.sum, opdi_cu_load_vector<W>(x + i), row * n + i);
                    OPDI_CU_UNROLL
                    for (int w = 0; w < W; w++) { c[w] = opdi_cu_taken<C>(pack, w); }
                } else { opdi_cu_load_some<W>(x + i, c); }
                opdi_cu_fold_var<C>().template take<W>(s, c, 0, 0);
            }
            if constexpr (ADDS) { x = (const T *)k.sum + row * n; }           /* what this thread has stored */
            s = opdi_cu_row_reduce(s, opdi_cu_var_join(), none, lanes);
            mean = s.mean; squares = s.squares;
        }
        rstd = (C)1 / (C)sqrt(squares / (C)n + (C)k.eps);
        if (in && lane == 0) {
            opdi_cu_put_float(k.save_mean, k.stat, row, mean);
            opdi_cu_put_float(k.save_rstd, k.stat, row, rstd);
        }
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { opdi_cu_norm_put(k, y, v[p], mean, rstd, channel, i); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                opdi_cu_norm_put(k, y, opdi_cu_load_vector<W>(x + i), mean, rstd, channel, i);
            }
        }
    }
}
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_norm_rows(const opdi_cu_norm k) {
    opdi_cu_norm_rows_of<T, W, PACKS, false>(k);
}
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_norm_sum_rows(const opdi_cu_norm k) {
    opdi_cu_norm_rows_of<T, W, PACKS, true>(k);
}
/* Computes dx = rstd * (w * g - mean(w * g) - (x - mean) * rstd^2 * mean(w * g * (x - mean))), with means over a
   row. */
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_norm_backward_rows(const opdi_cu_norm k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y, channel = k.hw > 0 ? row * k.per % k.c : 0;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n, *g = (const T *)k.g + row * n;
        T *dx = (T *)k.y + row * n;
        const C mean = in ? ((const C *)k.mean)[row] : (C)0, rstd = in ? ((const C *)k.rstd)[row] : (C)0;
        opdi_cu_vector<T, W> xs[PACKS ? PACKS : 1], gs[PACKS ? PACKS : 1];
        C a = 0, b = 0, f[PACKS ? PACKS : 1][W];
        const auto add = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, const C *weights) {
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                const C wg = opdi_cu_taken<C>(gv, w) * (k.w ? weights[w] : (C)1);
                a += wg;
                b += wg * (opdi_cu_taken<C>(xv, w) - mean);
            }
        };
        const auto put = [&](T *to, const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, const C *weights) {
            C c[W];
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                const C wg = opdi_cu_taken<C>(gv, w) * (k.w ? weights[w] : (C)1);
                c[w] = rstd * (wg - a - (opdi_cu_taken<C>(xv, w) - mean) * b);
            }
            opdi_cu_store_some<W>(to, c);
        };
        int there = 0;
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, xs);
            (void)opdi_cu_load_packs<W, PACKS>(g, (int)n, lane, lanes, in, gs);
            OPDI_CU_EACH_PACK(p, i) {
                if (k.w && p < there) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, f[p]); }
            }
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { add(xs[p], gs[p], f[p]); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                if (k.w) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, f[0]); }
                add(opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), f[0]);
            }
        }
        a = opdi_cu_row_reduce(a, opdi_cu_sum(), (C)0, lanes) / (C)n;
        b = opdi_cu_row_reduce(b, opdi_cu_sum(), (C)0, lanes) * rstd * rstd / (C)n;
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { put(dx + i, xs[p], gs[p], f[p]); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                if (k.w) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, f[0]); }
                put(dx + i, opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), f[0]);
            }
        }
    }
}
/* Computes the sums of g and of g * (x - mean) * rstd.  If `per` is greater than 0, `per` consecutive rows of this
   reduction share a mean and rstd.  If it is 0, the element with index i in a row uses mean[i] and rstd[i]. */
template <class A> struct opdi_cu_fold_pairs {
    typedef opdi_cu_pair<A> C;
    typedef struct State { A gx, g, mean, rstd; } State;
    const A *mean, *rstd;
    int64_t per;
    __device__ __forceinline__ State init(int64_t row) const {
        State s;
        s.gx = s.g = s.mean = s.rstd = 0;
        if (per > 0) { s.mean = mean[row / per]; s.rstd = rstd[row / per]; }
        return s;
    }
    __device__ __forceinline__ void one(State &s, C c, int64_t at) const {
        s.gx += per > 0 ? c.g * (c.x - s.mean) : c.g * (c.x - mean[at]) * rstd[at];
        s.g += c.g;
    }
    OPDI_CU_TAKE_EACH
    __device__ __forceinline__ void join(State &s, const State &with) const { s.gx += with.gx; s.g += with.g; }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        if (out.data[0]) { opdi_cu_put(out.data[0], out.dtype[0], out.at[0], per > 0 ? s.gx * s.rstd : s.gx); }
        if (out.data[1]) { opdi_cu_put(out.data[1], out.dtype[1], out.at[1], s.g); }
    }
};
/* Returns a view of a contiguous tensor with other sizes, or NULL if t is NULL. */
static opd_tensor *opdi_cu_seen_as(opd_tensor *t, const int64_t *sizes, int ndim) {
    int64_t strides[4], n = 1;
    if (!t) { return NULL; }
    for (int d = ndim - 1; d >= 0; d--) { strides[d] = n; n *= sizes[d]; }
    return opd_tensor_view(t, sizes, strides, ndim, opd_tensor_offset(t));
}
/* Computes the sums of opdi_cu_fold_pairs of x and `second` (g), both [a, c, n], over the dims in `mask`.  The results
   gx and g are contiguous and have the other dims; either may be NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pair_sums(opd_tensor *x, opd_tensor *second, int64_t a, int64_t c, int64_t n, uint64_t mask,
                             opd_tensor *mean, opd_tensor *rstd, int64_t per, opd_tensor *gx, opd_tensor *g) {
    const int64_t sizes[3] = {a, c, n}, left[3] = {mask & 1 ? 1 : a, mask & 2 ? 1 : c, mask & 4 ? 1 : n};
    opd_tensor *outs[2] = {gx, g};
    opdi_cu_reduction r;
    if (!gx && !g) { return 0; }
    x = opdi_cu_seen_as(x, sizes, 3);
    for (int k = 0; k < 2; k++) { if (outs[k] && !(outs[k] = opdi_cu_seen_as(outs[k], left, 3))) { return -1; } }
    if (!x || opdi_cu_reduce_plan(&r, x, mask, outs[0] ? outs[0] : outs[1], outs[1] ? outs[1] : outs[0], false)) {
        return -1;
    }
    for (int k = 0; k < 2; k++) { if (!outs[k]) { r.out.data[k] = NULL; } }
    r.second = opdi_cu_data<char>(second);
    r.odd = ((uintptr_t)r.x ^ (uintptr_t)r.second) & 15;
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        const opdi_cu_fold_pairs<A> f = {opdi_cu_data<A>(mean), opdi_cu_data<A>(rstd), per};
        typedef typename std::conditional<sizeof(T) == 2, opdi_cu_halves, T>::type R;
        return r.outer ? opdi_cu_reduce_launch<opdi_cu_pairs<R> >(&r, f) : 0;
    })
    return 0;
}
/* Returns t as a contiguous tensor of this dtype, or NULL if t is NULL.  Sets *bad to true if it fails. */
static opd_tensor *opdi_cu_norm_in(opd_tensor *t, opd_scalar_type dtype, bool *bad) {
    if (!t) { return NULL; }
    if (opd_dtype(t) != dtype) { t = opd_to_dtype(t, dtype); }
    t = opd_contiguous(t);
    if (!t) { *bad = true; }
    return t;
}
static const void *opdi_cu_norm_data(opd_tensor *t) { return t ? opd_device_data(t, OPD_CUDA) : NULL; }
/* Makes the weight w and the bias b contiguous, and sets w, b and wide of *k.  Returns 0, or -1 and sets an error. */
static int opdi_cu_norm_params(opdi_cu_norm *k, opd_tensor *x, opd_tensor *w, opd_tensor *b) {
    const opd_scalar_type dtype = w ? opd_dtype(w) : b ? opd_dtype(b) : opd_dtype(x);
    bool bad = false;
    w = opdi_cu_norm_in(w, dtype, &bad);
    b = opdi_cu_norm_in(b, dtype, &bad);
    k->w = opdi_cu_norm_data(w);
    k->b = opdi_cu_norm_data(b);
    k->wide = dtype != opd_dtype(x);
    return bad ? -1 : 0;
}
static bool opdi_cu_norm_vector(const opdi_cu_norm *k, int W) {
    return k->n % W == 0 && k->hw % W == 0 && opdi_cu_aligned(k->x) && opdi_cu_aligned(k->y) && opdi_cu_aligned(k->g) &&
        (k->hw || (opdi_cu_aligned(k->w) && opdi_cu_aligned(k->b)));
}
/* Runs the forward pass of the norm *k, in which the caller has set rows, n, hw, per and c.  Returns 0, or -1 and sets
   an error. */
static int opdi_cu_norm_forward(opd_call *call, opd_tensor *x, opd_tensor *w, opd_tensor *b, double eps,
                                opdi_cu_norm *k) {
    opd_tensor *out[3], *staging[3];
    x = opd_contiguous(x);
    if (!x || opdi_cu_norm_params(k, x, w, b)) { return -1; }
    for (int i = 0; i < 3; i++) {
        out[i] = opdi_cu_result(call, i);
        if (!(staging[i] = opdi_cu_staging(out[i]))) { return -1; }
    }
    if (k->rows == 0) { return 0; }
    k->x = opdi_cu_data<char>(x); k->y = opdi_cu_data<char>(staging[0]);
    k->save_mean = opdi_cu_data<char>(staging[1]); k->save_rstd = opdi_cu_data<char>(staging[2]);
    k->stat = opd_dtype(staging[1]);
    k->eps = eps;
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const int W = 16 / (int)sizeof(T);
        const opdi_cu_row_plan p = opdi_cu_row_plan_of(k->rows, k->n, W, opdi_cu_norm_vector(k, W), 4);
        if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_norm_rows, T, 4), p.grid, p.block, 0, *k)) { return -1; }
    })
    for (int i = 0; i < 3; i++) { if (opdi_cu_staging_store(out[i], staging[i])) { return -1; } }
    return 0;
}
/* Computes dx, the gradient with respect to x.  x and g are contiguous; mean and rstd have the dtype in which the
   kernel computes.  Returns 0, or -1 and sets an error. */
static int opdi_cu_norm_dx(opd_tensor *dx, opd_tensor *g, opd_tensor *x, opd_tensor *mean, opd_tensor *rstd,
                           opd_tensor *w, opdi_cu_norm *k) {
    opd_tensor *staging = opdi_cu_staging(dx);
    if (!dx || opd_numel(dx) == 0) { return 0; }
    if (!staging || opdi_cu_norm_params(k, x, w, NULL)) { return -1; }
    k->x = opdi_cu_data<char>(x); k->g = opdi_cu_data<char>(g); k->y = opdi_cu_data<char>(staging);
    k->mean = opdi_cu_data<char>(mean); k->rstd = opdi_cu_data<char>(rstd);
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const int W = 16 / (int)sizeof(T);
        const opdi_cu_row_plan p = opdi_cu_row_plan_of(k->rows, k->n, W, opdi_cu_norm_vector(k, W), 2);
        if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_norm_backward_rows, T, 2), p.grid, p.block, 0, *k)) {
            return -1;
        }
    })
    return opdi_cu_staging_store(dx, staging);
}
static int64_t opdi_cu_count(opd_ints sizes) {
    int64_t n = 1;
    for (int64_t i = 0; i < sizes.n; i++) { n *= sizes.data[i]; }
    return n;
}
static int opdi_cu_layer_norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    opdi_cu_norm k = opdi_cu_norm();
    if (opd_results_from_fake(call)) { return -1; }
    k.n = opdi_cu_count(opd_arg_ints(call, 1));
    k.rows = k.n ? opd_numel(x) / k.n : opd_numel(opdi_cu_result(call, 1));
    return opdi_cu_norm_forward(call, x, opd_arg_tensor(call, 2), opd_arg_tensor(call, 3), opd_arg_double(call, 4), &k);
}
/* Runs layer_norm_sum(Tensor x, Tensor r, Tensor? w, Tensor? b, int n, float eps) -> (Tensor, Tensor): the layer norm
   of rows of n elements of x + r, which have one dtype and the same sizes, and x + r. */
static int opdi_cu_layer_norm_sum(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *r = opd_arg_tensor(call, 1), *y, *sum, *stats;
    opdi_cu_norm k = opdi_cu_norm();
    k.n = opd_arg_int(call, 4); k.eps = opd_arg_double(call, 5);
    k.rows = k.n > 0 ? opd_numel(x) / k.n : 0;
    x = opd_contiguous(x); r = opd_contiguous(r);
    if (!x || !r || opdi_cu_norm_params(&k, x, opd_arg_tensor(call, 2), opd_arg_tensor(call, 3))) { return -1; }
    const int64_t two = 2 * k.rows;
    y = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x));
    sum = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x));
    stats = opdi_cu_new(opd_ints_of(&two, 1), opdi_cu_acc_dtype(opd_dtype(x)));
    if (!y || !sum || !stats) { return -1; }
    k.x = opdi_cu_norm_data(x); k.r = opdi_cu_norm_data(r);
    k.y = (void *)opdi_cu_norm_data(y); k.sum = (void *)opdi_cu_norm_data(sum);
    k.stat = opd_dtype(stats);
    k.save_mean = opdi_cu_data<char>(stats);
    k.save_rstd = (char *)k.save_mean + k.rows * opd_dtype_size(opd_dtype(stats));
    if (k.rows > 0) {
        OPDI_CU_FLOATS(opd_dtype(x), T, {
            const int W = 16 / (int)sizeof(T);
            const bool vec = opdi_cu_norm_vector(&k, W) && opdi_cu_aligned(k.r) && opdi_cu_aligned(k.sum);
            const opdi_cu_row_plan p = opdi_cu_row_plan_of(k.rows, k.n, W, vec, 4);
            if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_norm_sum_rows, T, 4), p.grid, p.block, 0, k)) {
                return -1;
            }
        })
    }
    return opd_return_tensor(call, y) || opd_return_tensor(call, sum) ? -1 : 0;
}
static int opdi_cu_layer_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *mean = opd_arg_tensor(call, 3),
        *rstd = opd_arg_tensor(call, 4), *dw, *db, *wstaging, *bstaging;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    opdi_cu_norm k = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    k.n = opdi_cu_count(opd_arg_ints(call, 2));
    k.rows = opd_numel(mean);
    mean = opdi_cu_norm_in(mean, acc, &bad); rstd = opdi_cu_norm_in(rstd, acc, &bad);
    g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad);
    if (bad || opdi_cu_norm_dx(opdi_cu_result(call, 0), g, x, mean, rstd, opd_arg_tensor(call, 5), &k)) { return -1; }
    dw = opdi_cu_result(call, 1); wstaging = opdi_cu_staging(dw);
    db = opdi_cu_result(call, 2); bstaging = opdi_cu_staging(db);
    if (opdi_cu_pair_sums(x, g, k.rows, k.n, 1, 1, mean, rstd, 0, wstaging, bstaging)) { return -1; }
    return opdi_cu_staging_store(dw, wstaging) || opdi_cu_staging_store(db, bstaging) ? -1 : 0;
}
/* Reads N, C, HxW and group, which are the arguments from number `first` on, into *k. */
static void opdi_cu_group_norm_read(opd_call *call, int first, opdi_cu_norm *k) {
    const int64_t groups = opd_arg_int(call, first + 3);
    k->c = opd_arg_int(call, first + 1);
    k->hw = opd_arg_int(call, first + 2);
    k->per = k->c / groups;
    k->rows = opd_arg_int(call, first) * groups;
    k->n = k->per * k->hw;
}
/* Computes the sums over g * (x - mean) * rstd and over g for each of a * c channels of x and g [a, rows, c].  `per`
   channels share a mean and rstd.  Returns 0, or -1 and sets an error. */
static int opdi_cu_last_pair_sums(opd_tensor *x, opd_tensor *g, int64_t a, int64_t c, int64_t per, opd_tensor *mean,
                                  opd_tensor *rstd, opd_tensor *gx, opd_tensor *gs) {
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        return opdi_cu_last_sums<T>(opdi_cu_last_of(opd_numel(x) / c / a, c, per), a, opdi_cu_data<T>(x),
                                    opdi_cu_data<T>(g), opdi_cu_data<A>(mean), opdi_cu_data<A>(rstd),
                                    opdi_cu_data<A>(gx), opdi_cu_data<A>(gs));
    })
    return 0;
}
/* Computes for each group of `per` channels of each image its mean and rstd from means and variances of its channels
   [a, c], and the coefficients of the channels. */
template <typename T> __global__ void opdi_cu_group_channels(const opdi_cu_norm k, const opdi_cu_acc<T> *means,
                                                             const opdi_cu_acc<T> *vars, opdi_cu_acc<T> *channels) {
    typedef opdi_cu_acc<T> A;
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, first = row * k.per;
    A mean = 0, squares = 0;
    if (row >= k.rows) { return; }
    for (int64_t i = 0; i < k.per; i++) { mean += means[first + i]; }
    mean /= (A)k.per;
    for (int64_t i = 0; i < k.per; i++) {
        const A d = means[first + i] - mean;
        squares += vars[first + i] + d * d;
    }
    const A rstd = (A)1 / (A)sqrt(squares / (A)k.per + (A)k.eps);
    opdi_cu_put_float(k.save_mean, k.stat, row, mean);
    opdi_cu_put_float(k.save_rstd, k.stat, row, rstd);
    for (int64_t i = 0; i < k.per; i++) {
        opdi_cu_channel<A> &to = ((opdi_cu_channel<A> *)channels)[first + i];
        const int64_t c = (first + i) % k.c;
        to.mean = mean;
        to.scale = !k.w ? rstd : rstd * (k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c));
        to.shift = !k.b ? (A)0 : k.wide ? ((const A *)k.b)[c] : opdi_cu_load<A>((const T *)k.b + c);
        to.slope = 0;
    }
}
/* Computes the coefficients of the channels for the gradient from the sums of opdi_cu_last_sums [a, c]. */
template <typename T> __global__ void opdi_cu_group_backward_channels(const opdi_cu_norm k, const opdi_cu_acc<T> *gx,
                                                                      const opdi_cu_acc<T> *gs,
                                                                      opdi_cu_acc<T> *channels) {
    typedef opdi_cu_acc<T> A;
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, first = row * k.per;
    if (row >= k.rows) { return; }
    const A mean = ((const A *)k.mean)[row], rstd = ((const A *)k.rstd)[row];
    A a = 0, b = 0;
    const auto weight = [&](int64_t i) {
        const int64_t c = (first + i) % k.c;
        return !k.w ? (A)1 : k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c);
    };
    for (int64_t i = 0; i < k.per; i++) { a += weight(i) * gs[first + i]; b += weight(i) * gx[first + i]; }
    for (int64_t i = 0; i < k.per; i++) {
        opdi_cu_channel<A> &to = ((opdi_cu_channel<A> *)channels)[first + i];
        to.mean = mean;
        to.scale = rstd * weight(i);
        to.shift = rstd * a / (A)k.n;
        to.slope = rstd * rstd * b / (A)k.n;
    }
}
/* Computes a group norm of x in channels-last order.  Returns 0, or -1 and sets an error. */
static int opdi_cu_group_norm_last(opd_call *call, opd_tensor *x, opdi_cu_norm *k) {
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const int64_t images = opd_size(x, 0), all = images * k->c;
    opd_tensor *y = opdi_cu_result(call, 0), *stats[2], *to = opdi_cu_as_last(y, opd_dtype(y), false), *saved[2],
        *channels[2];
    const int64_t four = 4 * all;
    if (!to || opdi_cu_norm_params(k, x, opd_arg_tensor(call, 1), opd_arg_tensor(call, 2))) { return -1; }
    for (int i = 0; i < 2; i++) {
        stats[i] = opdi_cu_new(opd_ints_of(&all, 1), acc);
        channels[i] = i ? NULL : opdi_cu_new(opd_ints_of(&four, 1), acc);
        saved[i] = opdi_cu_staging(opdi_cu_result(call, 1 + i));
        if (!stats[i] || !saved[i] || !channels[0]) { return -1; }
    }
    k->save_mean = opdi_cu_data<char>(saved[0]); k->save_rstd = opdi_cu_data<char>(saved[1]);
    k->stat = opd_dtype(saved[0]);
    k->eps = opd_arg_double(call, 7);
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        const opdi_cu_last l = opdi_cu_last_of(k->hw, k->c, k->per);
        if (opdi_cu_last_sums<T>(l, images, opdi_cu_data<T>(x), NULL, NULL, NULL, opdi_cu_data<A>(stats[0]),
                                 opdi_cu_data<A>(stats[1])) ||
            opdi_cu_launch(opdi_cu_group_channels<T>, dim3((unsigned)opdi_cu_ceil(k->rows, 64)), dim3(64), 0, *k,
                           opdi_cu_data<A>(stats[0]), opdi_cu_data<A>(stats[1]), opdi_cu_data<A>(channels[0])) ||
            opdi_cu_last_apply<T>(l, images, opdi_cu_data<T>(x), NULL, opdi_cu_data<T>(to),
                                  opdi_cu_data<A>(channels[0]), false)) { return -1; }
    })
    for (int i = 0; i < 2; i++) { if (opdi_cu_staging_store(opdi_cu_result(call, 1 + i), saved[i])) { return -1; } }
    return opdi_cu_staging_store(y, to);
}
/* Returns whether the kernels for channels-last tensors compute a group norm of x. */
static bool opdi_cu_group_norm_is_last(const opd_tensor *x, const opdi_cu_norm *k) {
    return opdi_cu_is_channels_last(x) && opd_numel(x) > 0 && opd_size(x, 0) <= 65535 && opd_size(x, 1) == k->c &&
        opd_size(x, 0) * k->c == k->rows * k->per;
}
static int opdi_cu_group_norm(opd_call *call) {
    opdi_cu_norm k = opdi_cu_norm();
    if (opd_results_from_fake(call)) { return -1; }
    opdi_cu_group_norm_read(call, 3, &k);
    if (opdi_cu_group_norm_is_last(opd_arg_tensor(call, 0), &k)) {
        return opdi_cu_group_norm_last(call, opd_arg_tensor(call, 0), &k);
    }
    return opdi_cu_norm_forward(call, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                opd_arg_double(call, 7), &k);
}
/* Computes dx of a group norm of x in channels-last order, from the sums of opdi_cu_last_pair_sums.  Returns 0, or -1
   and sets an error. */
static int opdi_cu_group_norm_dx_last(opd_call *call, opd_tensor *g, opd_tensor *x, opd_tensor *const *sums,
                                      opdi_cu_norm *k) {
    const int64_t four = 4 * opd_size(x, 0) * k->c;
    opd_tensor *dx = opdi_cu_result(call, 0), *to = dx ? opdi_cu_as_last(dx, opd_dtype(dx), false) : NULL,
        *channels = opdi_cu_new(opd_ints_of(&four, 1), opdi_cu_acc_dtype(opd_dtype(x)));
    if (!dx) { return 0; }
    if (!to || !channels || opdi_cu_norm_params(k, x, opd_arg_tensor(call, 4), NULL)) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        if (opdi_cu_launch(opdi_cu_group_backward_channels<T>, dim3((unsigned)opdi_cu_ceil(k->rows, 64)), dim3(64), 0,
                           *k, opdi_cu_data<A>(sums[0]), opdi_cu_data<A>(sums[1]), opdi_cu_data<A>(channels)) ||
            opdi_cu_last_apply<T>(opdi_cu_last_of(k->hw, k->c, k->per), opd_size(x, 0), opdi_cu_data<T>(x),
                                  opdi_cu_data<T>(g), opdi_cu_data<T>(to), opdi_cu_data<A>(channels), false)) {
            return -1;
        }
    })
    return opdi_cu_staging_store(dx, to);
}
static int opdi_cu_group_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *mean = opd_arg_tensor(call, 2),
        *rstd = opd_arg_tensor(call, 3), *sums[2], *out;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const int64_t a = opd_arg_int(call, 5), sizes[2] = {a, opd_arg_int(call, 6)};
    opdi_cu_norm k = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    opdi_cu_group_norm_read(call, 5, &k);
    mean = opdi_cu_norm_in(mean, acc, &bad); rstd = opdi_cu_norm_in(rstd, acc, &bad);
    const bool last = opdi_cu_group_norm_is_last(x, &k) && opdi_cu_alike(x, g);
    if (last) { g = opdi_cu_as_last(g, opd_dtype(x), true); }
    else { g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad); }
    /* sums over the pixels of each channel, then over the images */
    for (int i = 0; i < 2; i++) {
        sums[i] = last || opdi_cu_result(call, 1 + i) ? opdi_cu_new(opd_ints_of(sizes, 2), acc) : NULL;
        if ((last || opdi_cu_result(call, 1 + i)) && !sums[i]) { return -1; }
    }
    if (bad || !g) { return -1; }
    if (last) {
        k.mean = opdi_cu_norm_data(mean); k.rstd = opdi_cu_norm_data(rstd);
        if (opdi_cu_last_pair_sums(x, g, a, k.c, k.per, mean, rstd, sums[0], sums[1]) ||
            opdi_cu_group_norm_dx_last(call, g, x, sums, &k)) { return -1; }
    } else if (opdi_cu_norm_dx(opdi_cu_result(call, 0), g, x, mean, rstd, opd_arg_tensor(call, 4), &k) ||
               opdi_cu_pair_sums(x, g, a, k.c, k.hw, 4, mean, rstd, k.per, sums[0], sums[1])) { return -1; }
    for (int i = 0; i < 2; i++) {
        out = opdi_cu_result(call, 1 + i);
        if (out && opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_FI>(sums[i], 1, out, NULL, opdi_cu_fold_make(0), false)) {
            return -1;
        }
    }
    return 0;
}

//== batch norm ========================================================================================================

typedef struct opdi_cu_batch {
    int64_t c;
    const void *mean, *var, *w, *b;               /* mean, var: of the batch, or running; in the type of the
                                                     computation */
    bool wide, eval;
    const void *run_mean, *run_var;               /* previous running values, or NULL */
    void *new_mean, *new_var, *save_mean, *save_rstd;      /* new running and saved values, of dtype `stat` */
    int stat;
    double eps, momentum, count;
    const void *rstd, *gx, *g;                    /* backward: rstd, and the sums of g * (x - mean) * rstd and of g */
    void *channels;
} opdi_cu_batch;
template <typename T> __global__ void opdi_cu_batch_channels(const opdi_cu_batch k) {
    typedef opdi_cu_acc<T> A;
    const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    opdi_cu_channel<A> to;
    if (c >= k.c) { return; }
    const double var = (double)((const A *)k.var)[c], now = (double)((const A *)k.mean)[c];
    const A rstd = (A)(1 / sqrt(var + k.eps));
    to.mean = (A)now;
    to.scale = !k.w ? rstd : rstd * (k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c));
    to.shift = !k.b ? (A)0 : k.wide ? ((const A *)k.b)[c] : opdi_cu_load<A>((const T *)k.b + c);
    to.slope = 0;
    ((opdi_cu_channel<A> *)k.channels)[c] = to;
    if (k.eval) { return; }
    opdi_cu_put(k.save_mean, k.stat, c, to.mean);
    opdi_cu_put(k.save_rstd, k.stat, c, rstd);
    if (k.new_mean) {
        ((A *)k.new_mean)[c] = (A)(k.momentum * now + (1 - k.momentum) * (double)((const A *)k.run_mean)[c]);
    }
    if (k.new_var) {
        ((A *)k.new_var)[c] = (A)(k.momentum * ((k.count > 0 ? var * k.count : 0) / (k.count - 1)) +
                                  (1 - k.momentum) * (double)((const A *)k.run_var)[c]);
    }
}
/* Computes the coefficients of each channel for the gradient.  With statistics of the batch, shift is the mean of g,
   and slope is the mean of g * (x - mean) * rstd^2, both times scale.  With running statistics (`eval`), both are 0. */
template <typename T> __global__ void opdi_cu_batch_backward_channels(const opdi_cu_batch k) {
    typedef opdi_cu_acc<T> A;
    const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    opdi_cu_channel<A> to;
    if (c >= k.c) { return; }
    const A rstd = ((const A *)k.rstd)[c];
    to.mean = ((const A *)k.mean)[c];
    to.scale = !k.w ? rstd : rstd * (k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c));
    to.shift = k.eval ? (A)0 : to.scale * (A)((double)((const A *)k.g)[c] / k.count);
    to.slope = k.eval ? (A)0 : to.scale * (A)((double)((const A *)k.gx)[c] * (double)rstd / k.count);
    ((opdi_cu_channel<A> *)k.channels)[c] = to;
}
/* Applies the coefficients of each channel to x [a, c, hw] or, in the backward pass, to x and g; in the forward pass, g
   is NULL.  If W > 1, hw is a multiple of W, or hw is 1 and c is a multiple of W. */
template <typename T, int W> __global__ void opdi_cu_batch_apply(const T *x, const T *g, T *y, int64_t total, int64_t c,
                                                                 int64_t hw, const void *channels, bool eval) {
    typedef opdi_cu_acc<T> A;
    const opdi_cu_channel<A> *const all = (const opdi_cu_channel<A> *)channels;
    const int64_t step = (int64_t)gridDim.x * blockDim.x * W;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * W; i < total; i += step) {
        const int64_t q = total >> 32 ? i / hw : (int64_t)((uint32_t)i / (uint32_t)hw);
        const int64_t at = total >> 32 ? q % c : (int64_t)((uint32_t)q % (uint32_t)c);
        const opdi_cu_channel<A> k = all[at];
        A v[W], gs[W];
        if (!g || !eval) { opdi_cu_load_some<W>(x + i, v); }
        if (g) { opdi_cu_load_some<W>(g + i, gs); }
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            v[w] = !g ? (v[w] - k.mean) * k.scale + k.shift
                : eval ? k.scale * gs[w] : k.scale * gs[w] - k.shift - (v[w] - k.mean) * k.slope;
        }
        opdi_cu_store_some<W>(y + i, v);
    }
}
/* Computes mean and variance of each channel of x [rows, c]; x may be in channels-last order.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_batch_stats(opd_tensor *x, opd_tensor *mean, opd_tensor *var) {
    const int64_t c = opd_size(x, 1);
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        return opdi_cu_last_sums<T>(opdi_cu_last_of(opd_numel(x) / c, c, 1), 1, opdi_cu_data<T>(x), NULL, NULL, NULL,
                                    opdi_cu_data<A>(mean), opdi_cu_data<A>(var));
    })
    return 0;
}
/* Computes y from x or, if g is given, the gradient y, by the coefficients k->channels. x, g and y are [a, c, hw] or,
   if hw is 1, in channels-last order.  Returns 0, or -1 and sets an error. */
static int opdi_cu_batch_run(opd_tensor *x, opd_tensor *g, opd_tensor *y, const opdi_cu_batch *k, int64_t hw) {
    const int64_t total = opd_numel(x);
    if (total == 0) { return 0; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const int W = 16 / (int)sizeof(T);
        const T *xs = opdi_cu_data<T>(x), *gs = g ? opdi_cu_data<T>(g) : NULL;
        T *ys = opdi_cu_data<T>(y);
        if (hw == 1) {
            return opdi_cu_last_apply<T>(opdi_cu_last_of(total / k->c, k->c, 1), 1, xs, gs, ys, k->channels, k->eval);
        }
        const bool vec = hw % W == 0 && opdi_cu_aligned(xs) && opdi_cu_aligned(gs) && opdi_cu_aligned(ys);
        return opdi_cu_launch(vec ? opdi_cu_batch_apply<T, W> : opdi_cu_batch_apply<T, 1>,
                              opdi_cu_grid(total / (vec ? W : 1), 256), dim3(256), 0, xs, gs, ys, total, k->c, hw,
                              k->channels, k->eval);
    })
    return 0;
}
static int64_t opdi_cu_pixels(const opd_tensor *x) {
    return opdi_cu_count(opd_ints_of(opd_sizes(x) + 2, opd_ndim(x) - 2));
}
static int opdi_cu_batch_norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *run[2] = {opd_arg_tensor(call, 3), opd_arg_tensor(call, 4)}, *was[2],
        *now[2] = {NULL, NULL}, *out[3], *staging[3], *mean, *var;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool train = opd_arg_bool(call, 5);
    const int64_t c = opd_size(x, 1), hw = opdi_cu_pixels(x), three[3] = {opd_size(x, 0), c, hw};
    const bool last = opdi_cu_is_channels_last(x), rows = (last || hw == 1) && opd_numel(x) != 0;
    opdi_cu_batch k = opdi_cu_batch();
    opdi_cu_norm weights = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 3; i++) {
        out[i] = opdi_cu_result(call, i);
        staging[i] = last && !i ? opdi_cu_as_last(out[i], opd_dtype(out[i]), false) : opdi_cu_staging(out[i]);
        if (!staging[i]) { return -1; }
    }
    x = last ? x : opd_contiguous(x);
    if (c == 0) { return 0; }
    for (int i = 0; i < 2; i++) { was[i] = opdi_cu_norm_in(run[i], acc, &bad); }
    if (!x || bad || opdi_cu_norm_params(&weights, x, opd_arg_tensor(call, 1), opd_arg_tensor(call, 2))) { return -1; }
    mean = train ? opdi_cu_new(opd_ints_of(&c, 1), acc) : was[0];
    var = train ? opdi_cu_new(opd_ints_of(&c, 1), acc) : was[1];
    if (!mean || !var) { return -1; }
    if (train && (rows ? opdi_cu_batch_stats(x, mean, var)
                  : opdi_cu_reduce<opdi_cu_fold_var, OPDI_CU_F>(opdi_cu_seen_as(x, three, 3), 5, var, mean,
                                                                opdi_cu_fold_make(2), false))) { return -1; }
    for (int i = 0; i < 2 && train && opd_numel(x) != 0; i++) {      /* an empty batch does not change the running
                                                                        values */
        if (run[i] && !(now[i] = opdi_cu_new(opd_ints_of(&c, 1), acc))) { return -1; }
    }
    k.c = c; k.count = (double)(three[0] * hw); k.eval = !train;
    k.mean = opdi_cu_norm_data(mean); k.var = opdi_cu_norm_data(var);
    k.w = weights.w; k.b = weights.b; k.wide = weights.wide;
    k.run_mean = opdi_cu_norm_data(was[0]); k.run_var = opdi_cu_norm_data(was[1]);
    k.new_mean = (void *)opdi_cu_norm_data(now[0]); k.new_var = (void *)opdi_cu_norm_data(now[1]);
    k.save_mean = (void *)opdi_cu_norm_data(staging[1]); k.save_rstd = (void *)opdi_cu_norm_data(staging[2]);
    k.stat = opd_dtype(staging[1]);
    k.momentum = opd_arg_double(call, 6); k.eps = opd_arg_double(call, 7);
    k.channels = opdi_cu_scratch(c * 4 * (int64_t)opd_dtype_size(acc));
    if (!k.channels) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        if (opdi_cu_launch(opdi_cu_batch_channels<T>, dim3((unsigned)opdi_cu_ceil(c, 256)), dim3(256), 0, k)) {
            return -1;
        }
    })
    for (int i = 0; i < 2; i++) { if (now[i] && !opd_copy_(run[i], now[i])) { return -1; } }
    if (opdi_cu_batch_run(x, NULL, staging[0], &k, rows ? 1 : hw)) { return -1; }
    for (int i = 0; i < 3; i++) { if (opdi_cu_staging_store(out[i], staging[i])) { return -1; } }
    return 0;
}
static int opdi_cu_batch_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *mean, *rstd, *sums[2], *dx, *staging, *out;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool train = opd_arg_bool(call, 7);
    int64_t c;
    opdi_cu_batch k = opdi_cu_batch();
    opdi_cu_norm weights = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    c = opd_size(x, 1);
    mean = opdi_cu_norm_in(opd_arg_tensor(call, train ? 5 : 3), acc, &bad);
    rstd = opdi_cu_norm_in(opd_arg_tensor(call, train ? 6 : 4), acc, &bad);
    if (!train && !bad) {
        rstd = opd_rsqrt(opd_add(rstd, opd_tensor_wrapped_number(opd_value_double(opd_arg_double(call, 8)))));
    }
    const bool last = opdi_cu_is_channels_last(x), rows = (last || opdi_cu_pixels(x) == 1) && opd_numel(x) != 0;
    if (last) { g = opdi_cu_as_last(g, opd_dtype(x), true); }
    else { g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad); }
    for (int i = 0; i < 2; i++) { if (!(sums[i] = opdi_cu_new(opd_ints_of(&c, 1), acc))) { return -1; } }
    if (bad || !g || !rstd || opdi_cu_norm_params(&weights, x, opd_arg_tensor(call, 2), NULL)) { return -1; }
    if (rows ? opdi_cu_last_pair_sums(x, g, 1, c, 1, mean, rstd, sums[0], sums[1])
        : opdi_cu_pair_sums(x, g, opd_size(x, 0), c, opdi_cu_pixels(x), 5, mean, rstd, 1, sums[0], sums[1])) {
        return -1;
    }
    if (opd_numel(x) == 0 && !opd_zero_(sums[0])) { return -1; }             /* the sums are 0, even if the mean is
                                                                                NaN */
    for (int i = 0; i < 2; i++) {
        out = opdi_cu_result(call, 1 + i);
        if (out && !opd_copy_(out, sums[i])) { return -1; }
    }
    dx = opdi_cu_result(call, 0);
    if (!dx || opd_numel(dx) == 0) { return 0; }
    staging = last ? opdi_cu_as_last(dx, opd_dtype(dx), false) : opdi_cu_staging(dx);
    k.c = c; k.count = (double)(opd_numel(x) / c); k.eval = !train;
    k.mean = opdi_cu_norm_data(mean); k.rstd = opdi_cu_norm_data(rstd);
    k.w = weights.w; k.wide = weights.wide;
    k.gx = opdi_cu_norm_data(sums[0]); k.g = opdi_cu_norm_data(sums[1]);
    k.channels = opdi_cu_scratch(c * 4 * (int64_t)opd_dtype_size(acc));
    if (!k.channels || !staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        if (opdi_cu_launch(opdi_cu_batch_backward_channels<T>, dim3((unsigned)opdi_cu_ceil(c, 256)), dim3(256), 0, k)) {
            return -1;
        }
    })
    return opdi_cu_batch_run(x, g, staging, &k, rows ? 1 : opdi_cu_pixels(x)) ? -1 : opdi_cu_staging_store(dx, staging);
}

static const opdi_cu_registration opdi_cu_table_softmax[] = {
    {"_softmax", opdi_cu_softmax}, {"_log_softmax", opdi_cu_log_softmax},
    {"_softmax_backward_data", opdi_cu_softmax_backward},
    {"_log_softmax_backward_data", opdi_cu_log_softmax_backward},
    {"native_layer_norm", opdi_cu_layer_norm}, {"native_layer_norm_backward", opdi_cu_layer_norm_backward},
    {"native_group_norm", opdi_cu_group_norm}, {"native_group_norm_backward", opdi_cu_group_norm_backward},
    {"native_batch_norm", opdi_cu_batch_norm}, {"native_batch_norm_backward", opdi_cu_batch_norm_backward},
    {"_native_batch_norm_legit", opdi_cu_batch_norm},
    {NULL, NULL}};

