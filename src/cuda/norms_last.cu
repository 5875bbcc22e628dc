//== norms of channels-last tensors ====================================================================================
//
//  These kernels see a tensor as rows of c channels: [a, rows, c], where a is 1 for a batch norm and the number of
//  images for a group norm.  A thread has W neighbouring channels (16 bytes), whose coefficients stay in registers, and
//  walks down the rows.  A block has blockDim.x such columns and blockDim.y rows at a time.  blockIdx.x counts blocks
//  of columns, blockIdx.y parts of `each` rows, blockIdx.z images.

/* The coefficients of a channel: forward, y = (x - mean) * scale + shift; backward, dx = scale * g - shift - (x - mean)
   * slope. */
template <typename A> struct opdi_cu_channel { A mean, scale, shift, slope; };
struct opdi_cu_last { int64_t rows, c, each, per; int parts; };  /* per: channels that share a mean and rstd */
/* The mean of n numbers, and the sum of the squares of their distances from it. */
template <typename A> struct opdi_cu_spread {
    A mean, squares;
    /* Joins m numbers with n numbers; either may be 0, but not both. */
    __device__ __forceinline__ void join(A n, const opdi_cu_spread &with, A m) {
        const A part = m / (n + m), d = with.mean - mean;
        if (m == 0) { return; }
        if (n == 0) { *this = with; return; }
        mean += d - d == 0 ? d * part : with.mean;                   /* infinities give the same mean as a sum would */
        squares += with.squares + d * d * (n * part);
    }
};
/* Sets parts[a][part][0][c] to the mean of each channel in a part of the rows, and parts[a][part][1][c] to the sum of
   the squares of distances from it. */
template <typename T, int W> __global__ void __launch_bounds__(256)
opdi_cu_last_spread_kernel(const opdi_cu_last k, const T *x, opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    typedef opdi_cu_spread<A> S;
    constexpr int U = sizeof(T) == 8 ? 4 : 8;
    OPDI_CU_SHARED(scratch);
    S *const shared = reinterpret_cast<S *>(scratch) + threadIdx.x * W;       /* [down][across][W] */
    const int across = (int)blockDim.x * W, down = (int)blockDim.y, y = (int)threadIdx.y;
    const int64_t column = (int64_t)blockIdx.x * across + threadIdx.x * W, begin = blockIdx.y * k.each;
    const int64_t rows = k.rows - begin < k.each ? k.rows - begin : k.each;
    const bool there = column < k.c;
    const T *from = x + ((int64_t)blockIdx.z * k.rows + begin) * k.c + column;
    S s[W];
    int64_t r = y;
    A n = 0;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { s[w].mean = s[w].squares = 0; }
    OPDI_CU_ROLLED
    for (; there && r + (U - 1) * down < rows; r += U * down) {
        opdi_cu_vector<T, W> v[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { v[u] = opdi_cu_load_vector<W>(from + (r + u * down) * k.c); }
        /* joins the means of U numbers each with the means of the numbers before, all W with the same count */
        const A part = (A)U / (n + U), m = n * part;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            A mean = 0, squares = 0;
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { mean += opdi_cu_taken<A>(v[u], w); }
            mean *= (A)1 / U;
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { const A d = opdi_cu_taken<A>(v[u], w) - mean; squares += d * d; }
            const A d = mean - s[w].mean;
            s[w].mean += d - d == 0 ? d * part : mean;
            s[w].squares += squares + d * d * m;
        }
        n += U;
    }
    OPDI_CU_ROLLED
    for (; there && r < rows; r += down) {
        const opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>(from + r * k.c);
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            S one;
            one.mean = opdi_cu_taken<A>(v, w); one.squares = 0;
            s[w].join(n, one, 1);
        }
        n += 1;
    }
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { shared[y * across + w] = s[w]; }
    /* joins the rows of the block in pairs; thread y has the numbers of threads y, y + 1, ... y + 2 * half - 1 */
    for (int half = 1; half < down; half *= 2) {
        __syncthreads();
        if (y % (2 * half) == 0 && y + half < down) {
            A with = 0;
            for (int i = y + half; i < down && i < y + 2 * half; i++) {
                with += i < rows ? (A)((rows - i + down - 1) / down) : (A)0;
            }
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                s[w].join(n, shared[(y + half) * across + w], with);
                shared[y * across + w] = s[w];
            }
            n += with;
        }
    }
    if (y == 0 && there) {
        A *to = parts + ((int64_t)blockIdx.z * k.parts + blockIdx.y) * 2 * k.c + column;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { to[w] = s[w].mean; to[k.c + w] = s[w].squares; }
    }
}
/* Sets parts[a][part][0][c] to the sum over a part of the rows of g * (x - mean), and parts[a][part][1][c] to the sum
   of g. */
template <typename T, int W> __global__ void __launch_bounds__(256)
opdi_cu_last_sums_kernel(const opdi_cu_last k, const T *x, const T *g, const opdi_cu_acc<T> *mean,
                         opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    constexpr int U = 4;
    OPDI_CU_SHARED(scratch);
    A *const shared = reinterpret_cast<A *>(scratch) + threadIdx.x * 2 * W;   /* [down][across][2][W] */
    const int across = (int)blockDim.x * W, down = (int)blockDim.y, y = (int)threadIdx.y;
    const int64_t column = (int64_t)blockIdx.x * across + threadIdx.x * W, begin = blockIdx.y * k.each;
    const int64_t rows = k.rows - begin < k.each ? k.rows - begin : k.each;
    const int64_t first = ((int64_t)blockIdx.z * k.rows + begin) * k.c + column;
    const bool there = column < k.c;
    A sums[2][W], middle[W];
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        sums[0][w] = sums[1][w] = 0;
        middle[w] = there ? mean[(blockIdx.z * k.c + column + w) / k.per] : (A)0;
    }
    const auto add = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            const A gw = opdi_cu_taken<A>(gv, w);
            sums[0][w] += gw * (opdi_cu_taken<A>(xv, w) - middle[w]);
            sums[1][w] += gw;
        }
    };
    int64_t r = y;
    OPDI_CU_ROLLED
    for (; there && r + (U - 1) * down < rows; r += U * down) {
        opdi_cu_vector<T, W> xv[U], gv[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            xv[u] = opdi_cu_load_vector<W>(x + first + (r + u * down) * k.c);
            gv[u] = opdi_cu_load_vector<W>(g + first + (r + u * down) * k.c);
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { add(xv[u], gv[u]); }
    }
    OPDI_CU_ROLLED
    for (; there && r < rows; r += down) {
        add(opdi_cu_load_vector<W>(x + first + r * k.c), opdi_cu_load_vector<W>(g + first + r * k.c));
    }
    OPDI_CU_UNROLL
    for (int i = 0; i < 2; i++) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { shared[(y * 2 * across) + i * W + w] = sums[i][w]; }
    }
    __syncthreads();
    for (int half = down / 2; half > 0; half /= 2) {              /* `down` is a power of two */
        for (int e = 0; y < half && e < 2 * W; e++) {
            shared[y * 2 * across + e] += shared[(y + half) * 2 * across + e];
        }
        __syncthreads();
    }
    if (y == 0 && there) {
        A *to = parts + ((int64_t)blockIdx.z * k.parts + blockIdx.y) * 2 * k.c + column;
        for (int w = 0; w < W; w++) { to[w] = shared[w]; to[k.c + w] = shared[W + w]; }
    }
}
/* Joins the parts of each of a * c channels: sets mean and var, or, if rstd is given, the two sums, the first times
   rstd.  A block has 32 channels; each of its 8 rows of threads takes every 8th part. */
template <typename A> __global__ void opdi_cu_last_join_kernel(const opdi_cu_last k, const A *parts, A *first,
                                                               A *second, const A *rstd) {
    __shared__ opdi_cu_spread<A> all[8][32];
    const int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x;
    const int y = (int)threadIdx.y;
    const bool spread = !rstd;
    const A *from = parts + (int64_t)blockIdx.z * k.parts * 2 * k.c + c;
    opdi_cu_spread<A> s;
    A n = 0;
    s.mean = s.squares = 0;
    const auto count = [&](int p) {
        const int64_t left = k.rows - p * k.each;
        return (A)(left < k.each ? left : k.each);
    };
#pragma unroll 4
    for (int p = y; p < k.parts && c < k.c; p += 8) {
        opdi_cu_spread<A> with;
        with.mean = from[p * 2 * k.c]; with.squares = from[(p * 2 + 1) * k.c];
        if (spread) { s.join(n, with, count(p)); n += count(p); }
        else { s.mean += with.mean; s.squares += with.squares; }
    }
    all[y][threadIdx.x] = s;
    __syncthreads();
    if (y > 0 || c >= k.c) { return; }
    for (int i = 1; i < 8; i++) {
        A m = 0;
        for (int p = i; p < k.parts && spread; p += 8) { m += count(p); }
        if (spread) { s.join(n, all[i][threadIdx.x], m); n += m; }
        else { s.mean += all[i][threadIdx.x].mean; s.squares += all[i][threadIdx.x].squares; }
    }
    first[blockIdx.z * k.c + c] = spread ? s.mean : s.mean * rstd[(blockIdx.z * k.c + c) / k.per];
    second[blockIdx.z * k.c + c] = spread ? s.squares / (A)k.rows : s.squares;
}
/* Applies the coefficients of each channel: y = (x - mean) * scale + shift or, with g, y = g * scale - shift -
   (x - mean) * slope.  With `eval`, the gradient does not read x. */
template <typename T, int W> __global__ void __launch_bounds__(256)
opdi_cu_last_apply_kernel(const opdi_cu_last k, const T *x, const T *g, T *to, const void *channels, bool eval) {
    typedef opdi_cu_acc<T> A;
    constexpr int U = 4;
    const int across = (int)blockDim.x * W, down = (int)blockDim.y;
    const int64_t column = (int64_t)blockIdx.x * across + threadIdx.x * W, begin = blockIdx.y * k.each;
    const int64_t rows = k.rows - begin < k.each ? k.rows - begin : k.each;
    const int64_t first = ((int64_t)blockIdx.z * k.rows + begin) * k.c + column;
    if (column >= k.c) { return; }
    A mean[W], scale[W], shift[W], slope[W];
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        const opdi_cu_channel<A> of = ((const opdi_cu_channel<A> *)channels)[blockIdx.z * k.c + column + w];
        mean[w] = of.mean; scale[w] = of.scale; shift[w] = of.shift; slope[w] = of.slope;
    }
    const auto put = [&](int64_t r, const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv) {
        opdi_cu_vector<T, W> v;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            const A d = opdi_cu_taken<A>(xv, w) - mean[w], gw = opdi_cu_taken<A>(gv, w);
            v.at[w] = opdi_cu_cast<T>(!g ? d * scale[w] + shift[w]
                                      : eval ? scale[w] * gw : scale[w] * gw - shift[w] - d * slope[w]);
        }
        opdi_cu_store_vector<W>(to + first + r * k.c, v);
    };
    const T *second = g ? g : x;
    int64_t r = threadIdx.y;
    OPDI_CU_ROLLED
    for (; r + (U - 1) * down < rows; r += U * down) {
        opdi_cu_vector<T, W> xv[U], gv[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (!g || !eval) { xv[u] = opdi_cu_load_vector<W>(x + first + (r + u * down) * k.c); }
            if (g) { gv[u] = opdi_cu_load_vector<W>(g + first + (r + u * down) * k.c); }
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { put(r + u * down, xv[u], gv[u]); }
    }
    OPDI_CU_ROLLED
    for (; r < rows; r += down) {
        put(r, opdi_cu_load_vector<W>(x + first + r * k.c), opdi_cu_load_vector<W>(second + first + r * k.c));
    }
}
static opdi_cu_last opdi_cu_last_of(int64_t rows, int64_t c, int64_t per) {
    const opdi_cu_last k = {rows, c, 0, per, 0};
    return k;
}
/* Sets *k, and the grid and block, for tensors [a, rows, c] of which a thread has W channels. */
static void opdi_cu_last_plan(opdi_cu_last *k, int64_t a, int W, dim3 *grid, dim3 *block) {
    const int64_t chunks = opdi_cu_ceil(k->c, W);
    int across = 1;
    while (across < 32 && across < chunks) { across *= 2; }
    const int down = 256 / across;
    const int64_t wide = opdi_cu_ceil(chunks, across), most = opdi_cu_ceil(k->rows, (int64_t)down * 8),
        want = opdi_cu_ceil((int64_t)opdi_cu_properties()->multiprocessors * 16, wide * a);
    int64_t parts = want < most ? want : most;
    parts = parts < 1 ? 1 : parts > 4096 ? 4096 : parts;
    k->each = opdi_cu_ceil(opdi_cu_ceil(k->rows, parts), down) * down;
    k->parts = (int)opdi_cu_ceil(k->rows, k->each);
    *grid = dim3((unsigned)wide, (unsigned)k->parts, (unsigned)a);
    *block = dim3((unsigned)across, (unsigned)down);
}
template <typename T> static bool opdi_cu_last_vector(const opdi_cu_last *k, const T *x, const T *g, const T *y) {
    return k->c % (16 / (int)sizeof(T)) == 0 && opdi_cu_aligned(x) && opdi_cu_aligned(g) && opdi_cu_aligned(y);
}
/* Computes for each of a * c channels of x [a, rows, c] its mean and variance or, if g is given, the sums of g * (x -
   mean) * rstd and of g.  `first` and `second` are the results, of the type in which sums are computed.  Returns 0, or
   -1 and sets an error. */
template <typename T> static int opdi_cu_last_sums(opdi_cu_last k, int64_t a, const T *x, const T *g,
    const opdi_cu_acc<T> *mean, const opdi_cu_acc<T> *rstd, opdi_cu_acc<T> *first, opdi_cu_acc<T> *second) {
    typedef opdi_cu_acc<T> A;
    const int W = 16 / (int)sizeof(T);
    const bool vector = opdi_cu_last_vector<T>(&k, x, g, NULL);
    dim3 grid, block;
    opdi_cu_last_plan(&k, a, vector ? W : 1, &grid, &block);
    A *parts = static_cast<A *>(opdi_cu_scratch(a * k.parts * 2 * k.c * (int64_t)sizeof(A)));
    const size_t shared = 256 * 2 * sizeof(A) * (size_t)(vector ? W : 1);
    if (!parts) { return -1; }
    if (g ? opdi_cu_launch(vector ? opdi_cu_last_sums_kernel<T, W> : opdi_cu_last_sums_kernel<T, 1>, grid, block,
                           shared, k, x, g, mean, parts)
          : opdi_cu_launch(vector ? opdi_cu_last_spread_kernel<T, W> : opdi_cu_last_spread_kernel<T, 1>, grid, block,
                           shared, k, x, parts)) { return -1; }
    return opdi_cu_launch(opdi_cu_last_join_kernel<A>, dim3((unsigned)opdi_cu_ceil(k.c, 32), 1, (unsigned)a),
                          dim3(32, 8), 0, k, (const A *)parts, first, second, rstd);
}
/* Applies the coefficients of each channel to x or, in a gradient, to g and x.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_last_apply(opdi_cu_last k, int64_t a, const T *x, const T *g, T *y,
                                                    const void *channels, bool eval) {
    const int W = 16 / (int)sizeof(T);
    const bool vector = opdi_cu_last_vector<T>(&k, x, g, y);
    dim3 grid, block;
    opdi_cu_last_plan(&k, a, vector ? W : 1, &grid, &block);
    return opdi_cu_launch(vector ? opdi_cu_last_apply_kernel<T, W> : opdi_cu_last_apply_kernel<T, 1>, grid, block, 0,
                          k, x, g, y, channels, eval);
}

/* Returns whether t is stored in channels-last order, as the library's convolutions expect and produce it: dim 1 has
   stride 1; the last dim has the next larger stride, then the dim before it, and so on. */
static bool opdi_cu_is_channels_last(const opd_tensor *t) {
    int64_t next = opd_ndim(t) > 2 ? opd_size(t, 1) : 0;
    if (opd_ndim(t) < 4 || opd_strides(t)[1] != 1) { return false; }
    for (int d = opd_ndim(t) - 1; d > 1; d--) {
        if (opd_strides(t)[d] != next) { return false; }
        next *= opd_size(t, d);
    }
    return opd_strides(t)[0] == next;
}
/* Returns a new tensor with t's sizes in channels-last order, or t itself if it has this order.  If `copied` is true,
   it has t's elements.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_as_last(opd_tensor *t, opd_scalar_type dtype, bool copied) {
    int64_t strides[OPD_MAX_DIMS], next = opd_size(t, 1);
    const int nd = opd_ndim(t);
    if (opdi_cu_is_channels_last(t) && opd_dtype(t) == dtype) { return t; }
    for (int d = nd - 1; d > 1; d--) { strides[d] = next; next *= opd_size(t, d); }
    strides[0] = next; strides[1] = 1;
    opd_tensor *to = opdi_cu_new(opd_ints_of(opd_sizes(t), nd), dtype);
    to = to ? opd_tensor_view(to, opd_sizes(t), strides, nd, opd_tensor_offset(to)) : NULL;
    return to && copied && !opd_copy_(to, t) ? NULL : to;
}
static bool opdi_cu_alike(const opd_tensor *a, const opd_tensor *b) {
    bool alike = opd_ndim(a) == opd_ndim(b);
    for (int d = 0; alike && d < opd_ndim(a); d++) { alike = opd_size(a, d) == opd_size(b, d); }
    return alike;
}
