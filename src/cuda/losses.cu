//----------------------------------------------------------------------------------------------------------------------
//  >>cu:losses      losses
//----------------------------------------------------------------------------------------------------------------------

//== nll_loss ==========================================================================================================

/* Input x [n, c, inner] and targets [n, inner].  Targets equal to `ignore` do not count.  Targets that are out of range
   do not count either, and the kernel reports them as a fault. */
template <typename T> struct opdi_cu_nll {
    const T *x, *w;                               /* w: weights of the classes, or NULL */
    const int64_t *target;
    int64_t n, c, inner, ignore;
    opdi_cu_guard guard;
    /* Returns the weight of target i, and sets *at to the position of its element in x, or to -1 if the target does not
       count. */
    __device__ __forceinline__ opdi_cu_acc<T> weight(int64_t i, int64_t *at) const {
        const int64_t t = target[i];
        *at = -1;
        if (t == ignore || !guard.inside(t, c)) { return 0; }
        *at = (i / inner * c + t) * inner + i % inner;
        return w ? opdi_cu_load<opdi_cu_acc<T> >(w + t) : (opdi_cu_acc<T>)1;
    }
};
template <typename T> __global__ void opdi_cu_nll_each(const opdi_cu_nll<T> k, T *y, T *total) {
    typedef opdi_cu_acc<T> A;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < k.n * k.inner;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at;
        const A w = k.weight(i, &at);
        opdi_cu_store(y + i, at < 0 ? (A)0 : -w * opdi_cu_load<A>(k.x + at));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) { opdi_cu_store(total, (A)0); }
}
/* Sums the losses and the weights.  parts [2][gridDim.x] gets the sums of each block, which opdi_cu_nll_total then
   adds. */
template <typename T> __global__ void opdi_cu_nll_sums(const opdi_cu_nll<T> k, opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    A sum = 0, weights = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < k.n * k.inner;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at;
        const A w = k.weight(i, &at);
        weights += w;
        if (at >= 0) { sum -= w * opdi_cu_load<A>(k.x + at); }
    }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), (A)0);
    weights = opdi_cu_block_reduce(weights, opdi_cu_sum(), (A)0);
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; parts[gridDim.x + blockIdx.x] = weights; }
}
template <typename T>
__global__ void opdi_cu_nll_total(const opdi_cu_acc<T> *parts, int blocks, bool mean, T *y, T *total) {
    typedef opdi_cu_acc<T> A;
    const int i = (int)threadIdx.x;
    const A sum = opdi_cu_block_reduce(i < blocks ? parts[i] : (A)0, opdi_cu_sum(), (A)0);
    const A weights = opdi_cu_block_reduce(i < blocks ? parts[blocks + i] : (A)0, opdi_cu_sum(), (A)0);
    if (i == 0) { opdi_cu_store(y, mean ? sum / weights : sum); opdi_cu_store(total, weights); }
}
/* Sets *to to the total weight for a backward pass.  If *given is the sum in `parts`, rounded to T, this is the sum,
   because a 16-bit float may not hold a count. */
template <typename T> __global__ void opdi_cu_nll_unrounded(const opdi_cu_acc<T> *parts, int blocks, const T *given,
                                                            opdi_cu_acc<T> *to) {
    typedef opdi_cu_acc<T> A;
    const int i = (int)threadIdx.x;
    const A weights = opdi_cu_block_reduce(i < blocks ? parts[blocks + i] : (A)0, opdi_cu_sum(), (A)0);
    if (i != 0) { return; }
    T rounded;
    opdi_cu_store(&rounded, weights);
    const A total = opdi_cu_load<A>(given);
    *to = opdi_cu_load<A>(&rounded) == total ? weights : total;
}
/* dx [n, c, inner] is -w * g at the target, and 0 elsewhere.  If `one` is true, the same g serves all targets; if also
   `mean` is true, it is divided by the total weight. */
template <typename T> __global__ void opdi_cu_nll_back(const opdi_cu_nll<T> k, const T *g, bool one, bool mean,
                                                       const opdi_cu_acc<T> *total, T *dx) {
    typedef opdi_cu_acc<T> A;
    const A scale = !one ? (A)1 : mean ? opdi_cu_load<A>(g) / *total : opdi_cu_load<A>(g);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < k.n * k.c * k.inner;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t q = i / k.inner, t = q / k.c * k.inner + i % k.inner;
        A v = 0;
        int64_t at;
        if (q % k.c == 0 || k.target[t] == q % k.c) {             /* the thread of the first class also checks the
                                                                     target */
            const A w = k.weight(t, &at);
            if (at == i) { v = -w * (one ? scale : opdi_cu_load<A>(g + t)); }
        }
        opdi_cu_store(dx + i, v);
    }
}
/* Reads the arguments of nll_loss into *k.  Arguments from number `input` on are x, target and weight; argument number
   `first` is the reduction.  Returns 0, or -1 and sets an error. */
template <typename T>
static int opdi_cu_nll_of(opd_call *call, int input, int first, opdi_cu_nll<T> *k) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, input)),
        *target = opd_contiguous(opd_arg_tensor(call, input + 1)),
        *w = opd_arg_tensor(call, input + 2);
    if (!x || !target || (w && !(w = opd_contiguous(w)))) { return -1; }
    k->x = opdi_cu_data<T>(x); k->w = w ? opdi_cu_data<T>(w) : NULL; k->target = opdi_cu_data<int64_t>(target);
    k->n = opd_ndim(x) == 1 ? 1 : opd_size(x, 0);
    k->c = opd_size(x, opd_ndim(x) == 1 ? 0 : 1);
    k->inner = opd_ndim(x) == 4 ? opd_size(x, 2) * opd_size(x, 3) : 1;
    k->ignore = opd_arg_int(call, first + 1);
    k->guard = opdi_cu_guard_of(call);
    return 0;
}
/* Sums the losses and the weights of *blocks blocks, and sets *blocks.  Returns the sums in scratch memory, or NULL and
   sets an error. */
template <typename T> static opdi_cu_acc<T> *opdi_cu_nll_parts(const opdi_cu_nll<T> &k, int *blocks) {
    const int64_t want = opdi_cu_ceil(k.n * k.inner, 1024);
    *blocks = (int)(want < 1 ? 1 : want < 256 ? want : 256);
    opdi_cu_acc<T> *parts = (opdi_cu_acc<T> *)opdi_cu_scratch(2 * *blocks * (int64_t)sizeof *parts);
    return parts && opdi_cu_launch(opdi_cu_nll_sums<T>, dim3((unsigned)*blocks), dim3(256), 0, k, parts) == 0
        ? parts : NULL;
}
static int opdi_cu_nll_forward(opd_call *call) {
    const int64_t reduction = opd_arg_int(call, 3);               /* 0 none, 1 mean, 2 sum */
    opd_tensor *y, *total, *staging;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0); total = opdi_cu_result(call, 1);
    staging = opdi_cu_staging(y);
    if (!staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(y), T, {
        opdi_cu_nll<T> k;
        T *to = opdi_cu_data<T>(staging), *weight = opdi_cu_data<T>(total);
        if (opdi_cu_nll_of<T>(call, 0, 3, &k)) { return -1; }
        if (reduction == 0 && opd_ndim(opd_arg_tensor(call, 0)) > 1) {
            if (opdi_cu_launch(opdi_cu_nll_each<T>, opdi_cu_grid(k.n * k.inner, 256), dim3(256), 0, k, to, weight)) {
                return -1;
            }
        } else {
            int blocks;
            opdi_cu_acc<T> *parts = opdi_cu_nll_parts<T>(k, &blocks);
            if (!parts || opdi_cu_launch(opdi_cu_nll_total<T>, dim3(1), dim3(256), 0, (const opdi_cu_acc<T> *)parts,
                                         blocks, reduction == 1, to, weight)) { return -1; }
        }
    })
    return opdi_cu_staging_store(y, staging);
}
static int opdi_cu_nll_backward(opd_call *call) {
    const int64_t reduction = opd_arg_int(call, 4);
    opd_tensor *g = opd_arg_tensor(call, 0), *total = opd_arg_tensor(call, 6), *dx, *staging;
    bool one;
    if (opd_results_from_fake(call)) { return -1; }
    dx = opdi_cu_result(call, 0);
    if (opd_numel(dx) == 0) { return 0; }
    one = reduction != 0 || opd_ndim(dx) == 1;
    staging = opdi_cu_staging(dx);
    g = opd_contiguous(opd_to_dtype(g, opd_dtype(dx)));
    total = opd_to_dtype(total, opd_dtype(dx));
    if (!staging || !g || !total) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(dx), T, {
        opdi_cu_nll<T> k;
        opdi_cu_acc<T> *weights = (opdi_cu_acc<T> *)opdi_cu_data<void>(total);
        if (opdi_cu_nll_of<T>(call, 1, 4, &k)) { return -1; }
        if (sizeof(T) == 2 && reduction == 1) {
            int blocks;
            opdi_cu_acc<T> *parts = opdi_cu_nll_parts<T>(k, &blocks);
            weights = parts ? (opdi_cu_acc<T> *)opdi_cu_scratch((int64_t)sizeof *weights) : NULL;
            if (!weights || opdi_cu_launch(opdi_cu_nll_unrounded<T>, dim3(1), dim3(256), 0,
                                           (const opdi_cu_acc<T> *)parts, blocks, (const T *)opdi_cu_data<T>(total),
                                           weights)) { return -1; }
        }
        if (opdi_cu_launch(opdi_cu_nll_back<T>, opdi_cu_grid(opd_numel(dx), 256), dim3(256), 0, k,
                           (const T *)opdi_cu_data<T>(g), one, reduction == 1, (const opdi_cu_acc<T> *)weights,
                           opdi_cu_data<T>(staging))) { return -1; }
    })
    return opdi_cu_staging_store(dx, staging);
}

static const opdi_cu_registration opdi_cu_table_losses[] = {
    {"nll_loss_forward", opdi_cu_nll_forward}, {"nll_loss2d_forward", opdi_cu_nll_forward},
    {"nll_loss_backward", opdi_cu_nll_backward}, {"nll_loss2d_backward", opdi_cu_nll_backward},
    {NULL, NULL}};

//== cross entropy =====================================================================================================
//
//  The loss of row x[n] is top - x[target] + rest, with top = max(x) and rest = log(sum(exp(x - top))), so that the
//  logits are read once, and no log_softmax is written.  The gradient is (exp(x - top - rest) - (i == target)) * g.
//  top + rest is never rounded to one number, which would lose the digits of rest for large logits.  Rows whose target
//  is `ignore` have no loss and no gradient.

enum { OPDI_CU_ENTROPY_THREADS = 512 };
template <typename T> struct opdi_cu_entropy {
    typedef opdi_cu_acc<T> A;
    const T *x;
    T *dx;                                        /* backward */
    const int64_t *target;
    int64_t rows, ignore;
    int n;
    A *lse, *loss, *total;                        /* lse [2, rows]: top and rest of each row; loss of each row; total:
                                                     the number of rows that count */
    const A *g;                                   /* of each row or, if `one` is true, of all; with `mean`, divided by
                                                     *total */
    bool one, mean;
    opdi_cu_guard guard;
};
/* A block computes a row in each round. */
template <typename T> __global__ void __launch_bounds__(OPDI_CU_ENTROPY_THREADS)
opdi_cu_entropy_rows(const opdi_cu_entropy<T> k) {
    typedef opdi_cu_acc<T> A;
    constexpr int W = 16 / sizeof(T), U = 2;
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    const opdi_cu_exps<A> none = {opdi_cu_lowest<A>(), 0};
    for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
        const T *x = k.x + row * k.n;
        const opdi_cu_long_row<T, W> a(x, k.n);
        opdi_cu_exps<A> e = none;
        A v[W];
        if (thread < a.lead && thread < k.n) { v[0] = opdi_cu_load<A>(x + thread); e.template take<1>(v); }
        OPDI_CU_ROLLED
        for (int p = thread; p < a.packs; p += U * threads) {
            opdi_cu_vector<T, W> in[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * threads < a.packs) { in[u] = opdi_cu_load_vector<W>(x + a.lead + (p + u * threads) * W); }
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * threads >= a.packs) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { v[w] = opdi_cu_taken<A>(in[u], w); }
                e.template take<W>(v);
            }
        }
        if (thread < a.tail) { v[0] = opdi_cu_load<A>(x + k.n - a.tail + thread); e.template take<1>(v); }
        e = opdi_cu_block_reduce(e, opdi_cu_exps_join(), none);
        if (thread == 0) {
            const int64_t t = k.target[row];
            const A rest = (A)log(e.total());
            k.lse[row] = e.top;
            k.lse[k.rows + row] = rest;
            k.loss[row] = t != k.ignore && k.guard.inside(t, k.n) ? e.top - opdi_cu_load<A>(x + t) + rest : (A)0;
        }
    }
}
/* Adds the losses of all rows, and counts the rows that count.  y: the sum or, if `mean` is true, the mean. */
template <typename T> __global__ void __launch_bounds__(1024) opdi_cu_entropy_total(const opdi_cu_entropy<T> k,
                                                                                    opdi_cu_acc<T> *y) {
    typedef opdi_cu_acc<T> A;
    A sum = 0, count = 0;
    for (int64_t row = threadIdx.x; row < k.rows; row += blockDim.x) {
        const int64_t t = k.target[row];
        sum += k.loss[row];
        count += t != k.ignore && (uint64_t)t < (uint64_t)k.n ? (A)1 : (A)0;
    }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), (A)0);
    count = opdi_cu_block_reduce(count, opdi_cu_sum(), (A)0);
    if (threadIdx.x == 0) { *k.total = count; *y = k.mean ? sum / count : sum; }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_ENTROPY_THREADS)
opdi_cu_entropy_backward(const opdi_cu_entropy<T> k) {
    typedef opdi_cu_acc<T> A;
    constexpr int W = 16 / sizeof(T), U = 2;
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
        const T *x = k.x + row * k.n;
        T *dx = k.dx + row * k.n;
        const opdi_cu_long_row<T, W> a(x, k.n);
        const int64_t t = k.target[row];
        const bool counts = t != k.ignore && (uint64_t)t < (uint64_t)k.n;
        const A top = k.lse[row], rest = k.lse[k.rows + row];
        const A g = !counts ? (A)0 : !k.one ? k.g[row] : k.mean ? *k.g / *k.total : *k.g;
        const auto put = [&](int i) {
            opdi_cu_store(dx + i, (opdi_cu_exp(opdi_cu_load<A>(x + i) - top - rest) - (A)(i == t)) * g);
        };
        if (thread < a.lead && thread < k.n) { put(thread); }
        OPDI_CU_ROLLED
        for (int p = thread; p < a.packs; p += U * threads) {
            opdi_cu_vector<T, W> in[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * threads < a.packs) { in[u] = opdi_cu_load_vector<W>(x + a.lead + (p + u * threads) * W); }
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const int i = a.lead + (p + u * threads) * W;
                A v[W];
                if (p + u * threads >= a.packs) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    v[w] = (opdi_cu_exp(opdi_cu_taken<A>(in[u], w) - top - rest) - (A)(i + w == t)) * g;
                }
                opdi_cu_store_some<W>(dx + i, v);
            }
        }
        if (thread < a.tail) { put(k.n - a.tail + thread); }
    }
}
/* Reads x [rows, n], which must be contiguous, and its targets [rows] into *k.  x is copied if it does not begin at a
   multiple of 16 bytes. */
template <typename T> static int opdi_cu_entropy_of(opd_call *call, opd_tensor **x, opd_tensor *target,
                                                    opdi_cu_entropy<T> *k) {
    target = opd_contiguous(target);
    *x = opd_contiguous(*x);
    if (*x && !opdi_cu_aligned(opdi_cu_data<T>(*x))) { *x = opd_clone(*x); }
    if (!*x || !target) { return -1; }
    memset(k, 0, sizeof *k);
    k->x = opdi_cu_data<T>(*x); k->target = opdi_cu_data<int64_t>(target);
    k->rows = opd_size(*x, 0); k->n = (int)opd_size(*x, 1);
    k->guard = opdi_cu_guard_of(call);
    return 0;
}
/* Runs cross_entropy(Tensor x, Tensor target, int reduction, int ignore) -> (Tensor, Tensor, Tensor): the loss in the
   type of the computation, top and rest of each row, and the number of rows that count (unless the reduction is 0,
   none). */
static int opdi_cu_cross_entropy(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *loss, *lse, *total, *y;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const int64_t reduction = opd_arg_int(call, 2), rows = opd_size(x, 0);
    loss = opdi_cu_new(opd_ints_of(&rows, 1), acc); lse = opdi_cu_new(OPD_INTS(2, rows), acc);
    total = opdi_cu_new(opd_ints_of(NULL, 0), acc); y = reduction ? opdi_cu_new(opd_ints_of(NULL, 0), acc) : loss;
    if (!loss || !lse || !total || !y) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        opdi_cu_entropy<T> k;
        if (opdi_cu_entropy_of<T>(call, &x, opd_arg_tensor(call, 1), &k)) { return -1; }
        k.ignore = opd_arg_int(call, 3); k.mean = reduction == 1;
        k.lse = opdi_cu_data<A>(lse); k.loss = opdi_cu_data<A>(loss); k.total = opdi_cu_data<A>(total);
        if (opdi_cu_launch(opdi_cu_entropy_rows<T>, opdi_cu_grid_rows(rows), OPDI_CU_ENTROPY_THREADS, 0, k) ||
            (reduction && opdi_cu_launch(opdi_cu_entropy_total<T>, dim3(1), dim3(1024), 0, k, opdi_cu_data<A>(y)))) {
            return -1;
        }
    })
    return opd_return_tensor(call, y) || opd_return_tensor(call, lse) ? -1 : opd_return_tensor(call, total);
}
/* Runs cross_entropy_backward(Tensor g, Tensor x, Tensor target, Tensor lse, Tensor total, int reduction, int ignore)
   -> Tensor. */
static int opdi_cu_cross_entropy_backward(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 1), *lse = opd_arg_tensor(call, 3), *total = opd_arg_tensor(call, 4), *dx, *g;
    const int64_t reduction = opd_arg_int(call, 5);
    g = opdi_cu_as(opd_arg_tensor(call, 0), opd_dtype(lse));
    dx = g ? opdi_cu_new(opd_ints_of(opd_sizes(x), 2), opd_dtype(x)) : NULL;
    if (!dx) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        opdi_cu_entropy<T> k;
        if (opdi_cu_entropy_of<T>(call, &x, opd_arg_tensor(call, 2), &k)) { return -1; }
        k.ignore = opd_arg_int(call, 6); k.one = reduction != 0; k.mean = reduction == 1;
        k.lse = opdi_cu_data<A>(lse); k.total = opdi_cu_data<A>(total); k.g = opdi_cu_data<A>(g);
        k.dx = opdi_cu_data<T>(dx);
        if (opdi_cu_launch(opdi_cu_entropy_backward<T>, opdi_cu_grid_rows(k.rows), OPDI_CU_ENTROPY_THREADS, 0, k)) {
            return -1;
        }
    })
    return opd_return_tensor(call, dx);
}

//== distances between the rows of matrices ============================================================================
//
//  d_ij = (sum_k |x_ik - y_jk|^p)^(1/p).  If there is only one matrix (y is x), the result has the pairs i < j, one
//  after another.  A block computes tiles of 16 x 16 distances, for which it copies rows to shared memory.  For the
//  gradient with respect to an element of x, one thread sums over the rows of y.

enum { OPDI_CU_TILE = 16 };
enum opdi_cu_norm_kind { OPDI_CU_NORM_0, OPDI_CU_NORM_1, OPDI_CU_NORM_2, OPDI_CU_NORM_P, OPDI_CU_NORM_MAX };
/* x is [b, n, k] and y is [b, m, k].  g (gradients) and d (distances) are [b, n, m] or, if `pairs` is true, the pairs
   of one matrix.  out has the sizes of g for distances, or the sizes of x for the gradient. */
template <typename T> struct opdi_cu_distances {
    int64_t b, n, m, k;
    T p;
    bool pairs;
    const T *x, *y, *g, *d;
    T *out;
    __device__ __forceinline__ int64_t at(int64_t b, int64_t i, int64_t j) const {
        if (!pairs) { return (b * n + i) * m + j; }
        return i < j ? i * n - i * (i + 1) / 2 + j - i - 1 : j * n - j * (j + 1) / 2 + i - j - 1;
    }
};
template <int KIND, typename T> __device__ __forceinline__ T opdi_cu_distance_fold(T s, T v, T p) {
    const T size = v < 0 ? -v : v;
    switch (KIND) {
        case OPDI_CU_NORM_0: return s + (T)(v < 0 || v > 0 || !(v <= v));
        case OPDI_CU_NORM_1: return s + size;
        case OPDI_CU_NORM_2: return s + v * v;
        case OPDI_CU_NORM_P: return s + (T)pow(size, p);
        default: return size > s || !(size <= size) ? size : s;
    }
}
template <int KIND, typename T> __global__ void opdi_cu_distances_kernel(const opdi_cu_distances<T> k) {
    __shared__ T xs[OPDI_CU_TILE][OPDI_CU_TILE + 1], ys[OPDI_CU_TILE][OPDI_CU_TILE + 1];
    const int64_t across = opdi_cu_ceil(k.m, OPDI_CU_TILE), down = opdi_cu_ceil(k.n, OPDI_CU_TILE);
    const int u = threadIdx.x % OPDI_CU_TILE, v = threadIdx.x / OPDI_CU_TILE;
    for (int64_t t = blockIdx.x; t < k.b * down * across; t += gridDim.x) {
        const int64_t b = t / across / down, i0 = t / across % down * OPDI_CU_TILE, j0 = t % across * OPDI_CU_TILE;
        const T *x = k.x + (b * k.n + i0 + v) * k.k, *y = k.y + (b * k.m + j0 + v) * k.k;
        T s = 0;
        for (int64_t c = 0; c < k.k; c += OPDI_CU_TILE) {
            xs[v][u] = i0 + v < k.n && c + u < k.k ? x[c + u] : (T)0;
            ys[v][u] = j0 + v < k.m && c + u < k.k ? y[c + u] : (T)0;
            __syncthreads();
            for (int q = 0; q < OPDI_CU_TILE; q++) { s = opdi_cu_distance_fold<KIND>(s, xs[v][q] - ys[u][q], k.p); }
            __syncthreads();
        }
        if (KIND == OPDI_CU_NORM_2) { s = (T)sqrt(s); }
        if (KIND == OPDI_CU_NORM_P) { s = (T)pow(s, 1 / k.p); }
        if (i0 + v < k.n && j0 + u < k.m && (!k.pairs || i0 + v < j0 + u)) { k.out[k.at(b, i0 + v, j0 + u)] = s; }
    }
}
/* Returns the part of the gradient of x that comes from one distance d between two rows.  v is the difference of the
   two elements:  g * sign(v) * |v|^(p-1) / d^(p-1), or 0 if the rows are equal. */
template <int KIND, typename T> __device__ __forceinline__ T opdi_cu_distance_back(T v, T g, T d, T p) {
    const T size = v < 0 ? -v : v, one = (T)((v > 0) - (v < 0));
    switch (KIND) {
        case OPDI_CU_NORM_0: return 0;
        case OPDI_CU_NORM_1: return g * one;
        case OPDI_CU_NORM_2: return d == 0 ? (T)0 : g / d * v;
        case OPDI_CU_NORM_P: return d == 0 || v == 0 ? (T)0 : g / (T)pow(d, p - 1) * one * (T)pow(size, p - 1);
        default: return d == 0 ? (T)0 : g * one * (T)(size == d);
    }
}
template <int KIND, typename T> __global__ void opdi_cu_distances_back_kernel(const opdi_cu_distances<T> k) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x, all = k.b * k.n * k.k;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step) {
        const int64_t b = e / k.k / k.n, i = e / k.k % k.n, c = e % k.k;
        const T *y = k.y + b * k.m * k.k + c, x = k.x[e];
        T s = 0;
        for (int64_t j = 0; j < k.m; j++) {
            if (k.pairs && j == i) { continue; }
            const int64_t at = k.at(b, i, j);
            s += opdi_cu_distance_back<KIND>(x - y[j * k.k], k.g[at], k.d[at], k.p);
        }
        k.out[e] = s;
    }
}
template <int KIND, typename T> static int opdi_cu_distances_go(const opdi_cu_distances<T> &k, bool back) {
    const int64_t tiles = k.b * opdi_cu_ceil(k.n, OPDI_CU_TILE) * opdi_cu_ceil(k.m, OPDI_CU_TILE);
    if (back) {
        return opdi_cu_launch(opdi_cu_distances_back_kernel<KIND, T>, opdi_cu_grid(k.b * k.n * k.k, 256), dim3(256), 0,
                              k);
    }
    return opdi_cu_launch(opdi_cu_distances_kernel<KIND, T>, opdi_cu_grid_rows(tiles),
        dim3(OPDI_CU_TILE * OPDI_CU_TILE),
                          0, k);
}
template <typename T> static int opdi_cu_distances_of(opd_tensor *out, opd_tensor *x, opd_tensor *y, opd_tensor *g,
                                                     opd_tensor *d, double p) {
    const int64_t n = opd_size(x, -2), m = opd_size(y ? y : x, -2), k = opd_size(x, -1);
    const opdi_cu_distances<T> f = {
        g ? opd_numel(out) / n / k : !y ? 1 : opd_numel(out) / n / m, n, m, k, (T)p, !y, opdi_cu_data<T>(x),
        opdi_cu_data<T>(y ? y : x), g ? opdi_cu_data<T>(g) : NULL, g ? opdi_cu_data<T>(d) : NULL, opdi_cu_data<T>(out)};
    return p == 0 ? opdi_cu_distances_go<OPDI_CU_NORM_0>(f, g) : p == 1 ? opdi_cu_distances_go<OPDI_CU_NORM_1>(f, g)
        : p == 2 ? opdi_cu_distances_go<OPDI_CU_NORM_2>(f, g)
        : p > 1e300 ? opdi_cu_distances_go<OPDI_CU_NORM_MAX>(f, g) : opdi_cu_distances_go<OPDI_CU_NORM_P>(f, g);
}
/* Computes result 0 of the call: the distances of the rows of x and y or, if y is NULL, of the pairs of rows of x.  If
   g and d are given, computes the gradient with respect to x.  Returns 0, or -1 and sets an error. */
static int opdi_cu_distances_run(opd_call *call, opd_tensor *x, opd_tensor *y, opd_tensor *g, opd_tensor *d, double p) {
    opd_tensor *out = opdi_cu_result(call, 0), *staging;
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(out));
    if (opd_numel(out) == 0) { return 0; }
    staging = opdi_cu_staging(out, t);
    x = staging ? opdi_cu_as(x, t) : NULL;
    if (!x || (y && !(y = opdi_cu_as(y, t)))) { return -1; }
    if (g && (!(g = opdi_cu_as(g, t)) || !(d = opdi_cu_as(d, t)))) { return -1; }
    return (t == OPD_FLOAT64 ? opdi_cu_distances_of<double>(staging, x, y, g, d, p)
            : opdi_cu_distances_of<float>(staging, x, y, g, d, p)) ? -1 : opdi_cu_staging_store(out, staging);
}
/* Returns t [.., a, b], expanded to the batch dims of out. */
static opd_tensor *opdi_cu_batched_as(opd_tensor *t, const opd_tensor *out) {
    int64_t sizes[OPD_MAX_DIMS];
    const int n = opd_ndim(out);
    memcpy(sizes, opd_sizes(out), (size_t)n * sizeof *sizes);
    sizes[n - 2] = opd_size(t, -2); sizes[n - 1] = opd_size(t, -1);
    return opd_expand(t, opd_ints_of(sizes, n));
}
/* Runs _cdist_forward(x1, x2, p, compute_mode).  If there are many rows and p is 2, uses a matrix product, as on the
   CPU. */
static int opdi_cu_cdist_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1), *out;
    const int64_t mode = opd_arg_is_none(call, 3) ? 0 : opd_arg_int(call, 3);
    const double p = opd_arg_double(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    if (opd_numel(x) == 0) { return opd_zero_(out) ? 0 : -1; }
    if (p == 2 && (mode == 1 || (mode == 0 && (opd_size(x, -2) > 25 || opd_size(y, -2) > 25)))) {
        opd_tensor *d = opd_euclidean_dist(x, y);
        return d && opd_copy_(out, d) ? 0 : -1;
    }
    x = opdi_cu_batched_as(x, out);
    y = opdi_cu_batched_as(y, out);
    return x && y ? opdi_cu_distances_run(call, x, y, NULL, NULL, p) : -1;
}
/* Runs _cdist_backward(grad, x1, x2, p, cdist). */
static int opdi_cu_cdist_backward_kernel(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *y = opd_arg_tensor(call, 2);
    opd_tensor *d = opd_arg_tensor(call, 4), *out;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0 || opd_numel(y) == 0) { return opd_zero_(out) ? 0 : -1; }
    x = opdi_cu_batched_as(x, out);
    y = opdi_cu_batched_as(y, out);
    g = opdi_cu_batched_as(g, out);
    d = opdi_cu_batched_as(d, out);
    return x && y && g && d ? opdi_cu_distances_run(call, x, y, g, d, opd_arg_double(call, 3)) : -1;
}
static int opdi_cu_pdist_kernel(opd_call *call) {
    return opd_results_from_fake(call) ? -1
        : opdi_cu_distances_run(call, opd_arg_tensor(call, 0), NULL, NULL, NULL, opd_arg_double(call, 1));
}
/* Runs _pdist_backward(grad, self, p, pdist). */
static int opdi_cu_pdist_backward_kernel(opd_call *call) {
    return opd_results_from_fake(call) ? -1
        : opdi_cu_distances_run(call, opd_arg_tensor(call, 1), NULL, opd_arg_tensor(call, 0), opd_arg_tensor(call, 3),
                                opd_arg_double(call, 2));
}
static const opdi_cu_registration opdi_cu_table_distances[] = {
    {"_cdist_forward", opdi_cu_cdist_kernel}, {"_cdist_backward", opdi_cu_cdist_backward_kernel},
    {"_pdist_forward", opdi_cu_pdist_kernel}, {"_pdist_backward", opdi_cu_pdist_backward_kernel},
    {NULL, NULL}};

