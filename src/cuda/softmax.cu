//----------------------------------------------------------------------------------------------------------------------
//  >>cu:softmax     softmax and norms over rows
//----------------------------------------------------------------------------------------------------------------------

//== kernels for rows ==================================================================================================
//
//  These kernels (softmax, layer norm and group norm) process rows of n contiguous elements.  threadIdx.x is the number
//  of a thread (its lane) among the threads that share a row, and threadIdx.y is the row in the block.  Of each lanes *
//  W elements, a thread has W neighbours, called a pack (16 bytes, or one element).  If PACKS > 0, a thread loads its
//  PACKS packs of the row once and keeps them in registers.  If PACKS is 0, it loads them again in each pass, from the
//  cache for rows of this length.

/* Two loops.  OPDI_CU_EACH_PACK(p, i) runs over the packs that a thread keeps in registers: p is the number of a pack,
   and i is its first element, which may be past the end of the row.  OPDI_CU_EACH_ROUND(i) runs over all packs of a
   thread if PACKS is 0. */
#define OPDI_CU_EACH_PACK(p, i)                                                                                       \
    OPDI_CU_UNROLL                                                                                                    \
    for (int p = 0, i = lane * W; p < (PACKS ? PACKS : 1); p++, i += lanes * W)
#define OPDI_CU_EACH_ROUND(i)                                                                                         \
    for (int64_t i = (int64_t)lane * W; in && i < n; i += (int64_t)lanes * W)
/* Loads all packs of this thread before any is used, so that all loads are in flight at once.  Returns how many of the
   packs are in the row. */
template <int W, int PACKS, typename T>
__device__ __forceinline__ int opdi_cu_load_packs(const T *row, int n, int lane, int lanes, bool in,
                                                  opdi_cu_vector<T, W> *v /*[PACKS]*/) {
    int there = 0;
    OPDI_CU_EACH_PACK(p, i) { if (in && i < n) { v[p] = opdi_cu_load_vector<W>(row + i); there = p + 1; } }
    return there;
}

/* Makes the compiler believe that packs of bfloat16 have changed.  The compiler then converts them to float again,
   instead of keeping the floats in registers. */
template <typename T, int W> __device__ __forceinline__ void opdi_cu_opaque(opdi_cu_vector<T, W> *v, int n) {
#if !defined(OPD_CUDA_EMULATED)
    if constexpr (std::is_same<T, opdi_cu_bf16>::value && W % 2 == 0) {
        OPDI_CU_UNROLL
        for (int k = 0; k < n * W / 2; k++) {
            uint32_t two;
            memcpy(&two, v[k / (W / 2)].at + k % (W / 2) * 2, sizeof two);
            asm("" : "+r"(two));
            memcpy(v[k / (W / 2)].at + k % (W / 2) * 2, &two, sizeof two);
        }
    }
#else
    (void)v; (void)n;
#endif
}
template <int W, typename T, typename C> __device__ __forceinline__ void opdi_cu_load_some(const T *p, C *c) {
    const opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>(p);
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { c[w] = opdi_cu_cast<C>(v.at[w]); }
}
template <int W, typename T, typename C> __device__ __forceinline__ void opdi_cu_store_some(T *p, const C *c) {
    opdi_cu_vector<T, W> v;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { v.at[w] = opdi_cu_cast<T>(c[w]); }
    opdi_cu_store_vector<W>(p, v);
}
/* Combines the values v of the threads that share a row by f, whose neutral value is `none`.  Each thread gets the
   result. */
template <typename A, typename F> __device__ __forceinline__ A opdi_cu_row_reduce(A v, F f, A none, int lanes) {
    if (lanes > OPDI_CU_WARP) { return opdi_cu_block_reduce(v, f, none); }
    for (int m = lanes / 2; m > 0; m /= 2) { v = f(v, opdi_cu_shuffle_xor(v, m)); }
    return v;
}
struct opdi_cu_top {
    template <typename A> __device__ __forceinline__ A operator()(A a, A b) const { return a > b ? a : b; }
};
/* The distribution of rows over threads and blocks. */
typedef struct opdi_cu_row_plan { dim3 grid, block; int packs; bool vec; } opdi_cu_row_plan;
/* Plans rows of n elements.  As n grows, there are first up to 32 threads per row with one pack each, then up to `most`
   packs (1, 2 or 4) per thread, then up to 1,024 threads.  For longer rows, `packs` is 0. */
static opdi_cu_row_plan opdi_cu_row_plan_of(int64_t rows, int64_t n, int W, bool vec, int most) {
    opdi_cu_row_plan p;
    int lanes = 1;
    if (!vec) { W = 1; }
    while (lanes < OPDI_CU_WARP && (int64_t)lanes * W < n) { lanes *= 2; }
    p.packs = 1;
    while (p.packs < most && (int64_t)lanes * p.packs * W < n) { p.packs *= 2; }
    while (lanes < 1024 && (int64_t)lanes * p.packs * W < n) { lanes *= 2; }
    if ((int64_t)lanes * p.packs * W < n) { p.packs = 0; }
    if (!vec && p.packs > 0) { p.packs = most; }  /* without vectors, there is only the kernel for `most` packs */
    p.vec = vec;
    p.block = dim3((unsigned)lanes, lanes < 128 ? (unsigned)(128 / lanes) : 1u);
    if (lanes > OPDI_CU_WARP) { p.block.y = 1; }
    p.grid = opdi_cu_grid_rows(opdi_cu_ceil(rows, p.block.y));
    return p;
}
/* Selects the variant of a kernel template <T, W, PACKS> for a plan.  MOST is 2 or 4. */
#define OPDI_CU_ROW_KERNEL(plan, kernel, T, MOST)                                                                     \
    (!(plan).vec ? (plan).packs ? kernel<T, 1, MOST> : kernel<T, 1, 0>                                                \
     : (plan).packs == 1 ? kernel<T, 16 / (int)sizeof(T), 1> : (plan).packs == 2 ? kernel<T, 16 / (int)sizeof(T), 2>  \
     : (plan).packs == 4 ? kernel<T, 16 / (int)sizeof(T), MOST> : kernel<T, 16 / (int)sizeof(T), 0>)
/* Returns contiguous memory in which to compute y: y itself, or a new tensor, which opdi_cu_staging_store then copies
   to y. */
static opd_tensor *opdi_cu_staging(opd_tensor *y) {
    return !y || opd_is_contiguous(y) ? y : opdi_cu_new(opd_ints_of(opd_sizes(y), opd_ndim(y)), opd_dtype(y));
}
static int opdi_cu_staging_store(opd_tensor *y, opd_tensor *staging) {
    return y == staging || opd_copy_(y, staging) ? 0 : -1;
}
static opd_scalar_type opdi_cu_acc_dtype(opd_scalar_type dtype) {
    return dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
}

//== softmax ===========================================================================================================

/* The largest element `top` and the sum of exp(x - top) of the elements read so far.  A row that has only -inf, or an
   inf or NaN, gives NaN. */
template <typename C> struct opdi_cu_exps {
    C top, sum;
    template <int W> __device__ __forceinline__ void take(const C *x) {
        C now = top;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { now = x[w] > now ? x[w] : now; }
        if (now > top) { sum *= opdi_cu_exp(top - now); top = now; }
        const C shift = top > opdi_cu_lowest<C>() ? top : (C)0;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { sum += opdi_cu_exp(x[w] - shift); }
    }
    __device__ __forceinline__ C total() const { return top > opdi_cu_lowest<C>() ? sum : (C)NAN; }
    /* Makes a row that has only -inf give zeros.  Then writes top + log(sum) to *lse, unless it is NULL. */
    __device__ __forceinline__ void safe(C *lse) {
        if (!(top > opdi_cu_lowest<C>())) { top = 0; sum = sum == 0 ? (C)1 : sum; }
        if (lse) { *lse = top + (C)log(sum); }
    }
};
struct opdi_cu_exps_join {
    template <typename E> __device__ __forceinline__ E operator()(E a, E b) const {
        if (b.top > a.top) { const E t = a; a = b; b = t; }
        if (a.top > b.top) { b.sum *= opdi_cu_exp(b.top - a.top); }
        a.sum += b.sum;
        return a;
    }
};
/* Writes exp(x - top) / sum or, if `logarithm` is true, x - top - log(sum).  If lse is not NULL, writes top + log(sum)
   of each row to it, and a row that has only -inf gives zeros instead of NaN, and 0 in lse. */
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_softmax_rows(const T *x, T *y, int64_t rows, int64_t n,
                                                             bool logarithm, opdi_cu_acc<T> *lse) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < rows;
        const T *from = x + row * n;
        T *to = y + row * n;
        if constexpr (PACKS > 0) {
            opdi_cu_vector<T, W> raw[PACKS];
            C v[PACKS][W], top = opdi_cu_lowest<C>(), sum = 0;
            const int there = opdi_cu_load_packs<W, PACKS>(from, (int)n, lane, lanes, in, raw);
            OPDI_CU_EACH_PACK(p, i) {             /* elements after the row count as -inf */
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    v[p][w] = p < there ? opdi_cu_cast<C>(raw[p].at[w]) : opdi_cu_lowest<C>();
                    top = v[p][w] > top ? v[p][w] : top;
                }
            }
            top = opdi_cu_row_reduce(top, opdi_cu_top(), opdi_cu_lowest<C>(), lanes);
            if (lse && !(top > opdi_cu_lowest<C>())) { top = 0; }
            OPDI_CU_EACH_PACK(p, i) {
                if (p >= there) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    const C d = v[p][w] - top, e = opdi_cu_exp(d);
                    sum += e;
                    v[p][w] = logarithm ? d : e;
                }
            }
            sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes);
            if (lse && sum == 0) { sum = 1; }
            if (lse && in && lane == 0) { lse[row] = top + (C)log(sum); }
            sum = logarithm ? (C)log(sum) : (C)1 / sum;
            OPDI_CU_EACH_PACK(p, i) {
                if (p >= there) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { v[p][w] = logarithm ? v[p][w] - sum : v[p][w] * sum; }
                opdi_cu_store_some<W>(to + i, v[p]);
            }
        } else {
            const opdi_cu_exps<C> none = {opdi_cu_lowest<C>(), 0};
            opdi_cu_exps<C> e = none;
            C v[W], sum;
            OPDI_CU_EACH_ROUND(i) {
                opdi_cu_load_some<W>(from + i, v);
                e.template take<W>(v);
            }
            e = opdi_cu_row_reduce(e, opdi_cu_exps_join(), none, lanes);
            if (lse) { e.safe(in && lane == 0 ? lse + row : NULL); }
            sum = logarithm ? (C)log(e.total()) : (C)1 / e.total();
            OPDI_CU_EACH_ROUND(i) {
                opdi_cu_load_some<W>(from + i, v);
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    v[w] = logarithm ? v[w] - e.top - sum : opdi_cu_exp(v[w] - e.top) * sum;
                }
                opdi_cu_store_some<W>(to + i, v);
            }
        }
    }
}
/* The numbers of aligned packs in a row of n elements, and of the elements before and after them.  A row can begin
   anywhere, so these are up to W - 1 elements at each end. */
template <typename T, int W> struct opdi_cu_long_row {
    int lead, packs, tail;                        /* elements before the packs; packs; elements after them */
    __device__ __forceinline__ opdi_cu_long_row(const T *row, int n) {
        lead = (int)((W - (uintptr_t)row / sizeof(T) % W) % W);
        packs = (n - lead) / W;
        tail = n - lead - packs * W;
    }
};
/* Computes the same as opdi_cu_softmax_rows, for rows that are too long for registers, but fit into shared memory.  x
   and y begin at multiples of 16 bytes.  A block reads each row once: while it writes a row, it loads its next row to
   the same places in shared memory.  So in its first round, it only loads.  A thread uses only packs that it has stored
   itself, so no barrier is needed for them.  It keeps one element of each end of the row in a register (ends). */
template <typename T> __global__ void __launch_bounds__(1024)
opdi_cu_softmax_long_rows(const T *x, T *y, int64_t rows, int n, bool logarithm, opdi_cu_acc<T> *lse) {
    typedef opdi_cu_acc<T> C;
    constexpr int W = 16 / sizeof(T), U = 2;      /* U: packs of a thread in flight */
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    const opdi_cu_exps<C> none = {opdi_cu_lowest<C>(), 0};
    opdi_cu_exps<C> e = none;
    C ends[2] = {0, 0}, sum = 0;
    OPDI_CU_SHARED(scratch);
    T *kept = reinterpret_cast<T *>(scratch);
    for (int64_t row = (int64_t)blockIdx.x - gridDim.x; row < rows; row += gridDim.x) {
        const int64_t next = row + gridDim.x;
        const bool write = row >= 0, read = next < rows;
        T *to = y + row * n;
        const T *from = x + next * n;
        const opdi_cu_long_row<T, W> a(to, n), b(from, n);
        if (write) {
            e = opdi_cu_block_reduce(e, opdi_cu_exps_join(), none);
            if (lse) { e.safe(thread == 0 ? lse + row : NULL); }
            sum = logarithm ? (C)log(e.total()) : (C)1 / e.total();
            if (thread < a.lead) {
                opdi_cu_store(to + thread, logarithm ? ends[0] - e.top - sum : opdi_cu_exp(ends[0] - e.top) * sum);
            }
            if (thread < a.tail) {
                opdi_cu_store(to + n - a.tail + thread,
                              logarithm ? ends[1] - e.top - sum : opdi_cu_exp(ends[1] - e.top) * sum);
            }
        }
        const C top = e.top;
        const int mine = write ? a.packs : 0, theirs = read ? b.packs : 0;
        e = none;
        if (read && thread < b.lead) { ends[0] = opdi_cu_load<C>(from + thread); e.template take<1>(ends); }
        if (read && thread < b.tail) {
            ends[1] = opdi_cu_load<C>(from + n - b.tail + thread);
            e.template take<1>(ends + 1);
        }
        OPDI_CU_ROLLED
        for (int p = thread; p < mine || p < theirs; p += U * threads) {
            opdi_cu_vector<T, W> in[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const int q = p + u * threads;
                if (q < theirs) { in[u] = opdi_cu_load_vector<W>(from + b.lead + q * W); }
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const int q = p + u * threads;
                C v[W];
                if (q < mine) {
                    opdi_cu_load_some<W>(kept + q * W, v);
                    OPDI_CU_UNROLL
                    for (int w = 0; w < W; w++) {
                        v[w] = logarithm ? v[w] - top - sum : opdi_cu_exp(v[w] - top) * sum;
                    }
                    opdi_cu_store_some<W>(to + a.lead + q * W, v);
                }
                if (q < theirs) {
                    opdi_cu_store_vector<W>(kept + q * W, in[u]);
                    OPDI_CU_UNROLL
                    for (int w = 0; w < W; w++) { v[w] = opdi_cu_cast<C>(in[u].at[w]); }
                    e.template take<W>(v);
                }
            }
        }
    }
}
/* The gradient is y * (g - sum(g * y)) or, if `logarithm` is true, g - exp(y) * sum(g).  This function returns a pack's
   part of sum(g * y) or sum(g); opdi_cu_softmax_gradient writes a pack of the gradient. */
template <typename C, typename T, int W>
__device__ __forceinline__ C opdi_cu_softmax_product(const opdi_cu_vector<T, W> &g, const opdi_cu_vector<T, W> &y,
                                                     bool logarithm) {
    C sum = 0;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        const C a = opdi_cu_cast<C>(g.at[w]);
        sum += logarithm ? a : a * opdi_cu_cast<C>(y.at[w]);
    }
    return sum;
}
template <typename C, typename T, int W>
__device__ __forceinline__ void opdi_cu_softmax_gradient(T *dx, const opdi_cu_vector<T, W> &g,
                                                         const opdi_cu_vector<T, W> &y, C sum, bool logarithm) {
    C v[W];
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        const C a = opdi_cu_cast<C>(g.at[w]), b = opdi_cu_cast<C>(y.at[w]);
        v[w] = logarithm ? a - opdi_cu_exp(b) * sum : b * (a - sum);
    }
    opdi_cu_store_some<W>(dx, v);
}
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_softmax_backward_rows(const T *g, const T *y, T *dx, int64_t rows,
                                                                      int64_t n, bool logarithm) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < rows;
        const int64_t at = row * n;
        opdi_cu_vector<T, W> gs[PACKS ? PACKS : 1], ys[PACKS ? PACKS : 1];
        C sum = 0;
        if constexpr (PACKS > 0) {
            const int there = opdi_cu_load_packs<W, PACKS>(g + at, (int)n, lane, lanes, in, gs);
            (void)opdi_cu_load_packs<W, PACKS>(y + at, (int)n, lane, lanes, in, ys);
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { sum += opdi_cu_softmax_product<C>(gs[p], ys[p], logarithm); } }
            sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes);
            OPDI_CU_EACH_PACK(p, i) {
                if (p < there) { opdi_cu_softmax_gradient(dx + at + i, gs[p], ys[p], sum, logarithm); }
            }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                gs[0] = opdi_cu_load_vector<W>(g + at + i);
                ys[0] = opdi_cu_load_vector<W>(y + at + i);
                sum += opdi_cu_softmax_product<C>(gs[0], ys[0], logarithm);
            }
            sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes);
            OPDI_CU_EACH_ROUND(i) {
                gs[0] = opdi_cu_load_vector<W>(g + at + i);
                ys[0] = opdi_cu_load_vector<W>(y + at + i);
                opdi_cu_softmax_gradient(dx + at + i, gs[0], ys[0], sum, logarithm);
            }
        }
    }
}
/* Computes softmax along a dim with `inner` elements after it.  threadIdx.x runs over columns.  The elements of a
   column are divided among blockDim.y threads. */
template <typename T> __global__ void opdi_cu_softmax_columns(const T *x, T *y, int64_t outer, int64_t n, int64_t inner,
                                                              bool logarithm) {
    typedef opdi_cu_acc<T> C;
    __shared__ __align__(16) unsigned char scratch[256 * sizeof(opdi_cu_exps<C>)];
    opdi_cu_exps<C> *shared = reinterpret_cast<opdi_cu_exps<C> *>(scratch);
    const int down = (int)blockDim.y, slot = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    const int64_t tiles = opdi_cu_ceil(inner, blockDim.x);
    for (int64_t item = blockIdx.x; item < tiles * outer; item += gridDim.x) {
        const int64_t column = item % tiles * blockDim.x + threadIdx.x, base = item / tiles * n * inner + column;
        const bool in = column < inner;
        opdi_cu_exps<C> e = {opdi_cu_lowest<C>(), 0};
        int64_t i = threadIdx.y;
        for (; in && i + 3 * down < n; i += 4 * down) {
            C v[4];
            OPDI_CU_UNROLL
            for (int k = 0; k < 4; k++) { v[k] = opdi_cu_load<C>(x + base + (i + k * down) * inner); }
            e.template take<4>(v);
        }
        OPDI_CU_ROLLED
        for (; in && i < n; i += down) {
            const C v = opdi_cu_load<C>(x + base + i * inner);
            e.template take<1>(&v);
        }
        shared[slot] = e;
        for (int half = down / 2; half > 0; half /= 2) {
            __syncthreads();
            if ((int)threadIdx.y < half) {
                shared[slot] = opdi_cu_exps_join()(shared[slot], shared[slot + half * (int)blockDim.x]);
            }
        }
        __syncthreads();
        e = shared[threadIdx.x];
        __syncthreads();
        const C sum = logarithm ? (C)log(e.total()) : (C)1 / e.total();
        for (i = threadIdx.y; in && i < n; i += down) {
            const C v = opdi_cu_load<C>(x + base + i * inner);
            opdi_cu_store(y + base + i * inner, logarithm ? v - e.top - sum : opdi_cu_exp(v - e.top) * sum);
        }
    }
}
template <typename T> __global__ void opdi_cu_softmax_backward_columns(const T *g, const T *y, T *dx, int64_t outer,
                                                                       int64_t n, int64_t inner, bool logarithm) {
    typedef opdi_cu_acc<T> C;
    __shared__ __align__(16) unsigned char scratch[256 * sizeof(C)];
    C *shared = reinterpret_cast<C *>(scratch);
    const int down = (int)blockDim.y, slot = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    const int64_t tiles = opdi_cu_ceil(inner, blockDim.x);
    for (int64_t item = blockIdx.x; item < tiles * outer; item += gridDim.x) {
        const int64_t column = item % tiles * blockDim.x + threadIdx.x, base = item / tiles * n * inner + column;
        const bool in = column < inner;
        C sum = 0;
        for (int64_t i = threadIdx.y; in && i < n; i += down) {
            const C a = opdi_cu_load<C>(g + base + i * inner);
            sum += logarithm ? a : a * opdi_cu_load<C>(y + base + i * inner);
        }
        shared[slot] = sum;
        for (int half = down / 2; half > 0; half /= 2) {
            __syncthreads();
            if ((int)threadIdx.y < half) { shared[slot] += shared[slot + half * (int)blockDim.x]; }
        }
        __syncthreads();
        sum = shared[threadIdx.x];
        __syncthreads();
        for (int64_t i = threadIdx.y; in && i < n; i += down) {
            const C a = opdi_cu_load<C>(g + base + i * inner), b = opdi_cu_load<C>(y + base + i * inner);
            opdi_cu_store(dx + base + i * inner, logarithm ? a - opdi_cu_exp(b) * sum : b * (a - sum));
        }
    }
}
/* The product of the sizes before dim, the size of dim, and the product of the sizes after it. */
typedef struct opdi_cu_line { int64_t outer, n, inner; } opdi_cu_line;
static opdi_cu_line opdi_cu_line_of(const opd_tensor *x, int64_t dim) {
    opdi_cu_line l = {1, 1, 1};
    const int at = (int)(dim < 0 ? dim + opd_ndim(x) : dim);
    for (int d = 0; d < opd_ndim(x); d++) { *(d < at ? &l.outer : d == at ? &l.n : &l.inner) *= opd_sizes(x)[d]; }
    return l;
}
/* Returns the sizes of a block: threads in x run along `inner`, and the elements of each column are divided among the
   threads in y. */
static dim3 opdi_cu_column_block(opdi_cu_line l) {
    unsigned wide = 1, down = 1;
    while (wide < 32 && wide < l.inner) { wide *= 2; }
    while (wide * down < 256 && down * 4 < l.n) { down *= 2; }
    while (wide * down < 256 && wide < l.inner) { wide *= 2; }
    return dim3(wide, down);
}
/* Returns whether a row of n elements, and the kernel's own __shared__ variables, fit into shared memory. */
static bool opdi_cu_long_row_fits(int64_t n, size_t size) {
    return n < INT32_MAX && n * (int64_t)size + OPDI_CU_STATIC_SHARED <= opdi_cu_properties()->shared;
}
/* Plans at most as many blocks as run at the same time, and about 1,024 threads for each multiprocessor. */
static opdi_cu_row_plan opdi_cu_long_row_plan(int64_t rows, int64_t n, size_t size) {
    const opdi_cu_device *d = opdi_cu_properties();
    const int64_t fit = d->shared / (n * (int64_t)size + OPDI_CU_STATIC_SHARED);
    const int64_t want = opdi_cu_ceil(rows, d->multiprocessors);
    const int64_t blocks = want < fit ? want : fit, most = (blocks < 8 ? blocks : 8) * d->multiprocessors;
    unsigned threads = 1024;
    opdi_cu_row_plan p;
    while (threads > 128 && threads * blocks > 1024) { threads /= 2; }
    p.packs = 0; p.vec = true;
    p.block = dim3(threads);
    p.grid = dim3((unsigned)(rows < most ? rows : most));
    return p;
}
/* Runs softmax of contiguous rows of n elements.  y may be x.  lse may be NULL, see opdi_cu_softmax_rows. */
template <typename T> static int opdi_cu_softmax_run(const T *x, T *y, int64_t rows, int64_t n, bool logarithm,
                                                     opdi_cu_acc<T> *lse) {
    const int W = 16 / (int)sizeof(T), most = sizeof(T) == 4 ? 4 : 2;                         /* limited by registers */
    const bool aligned = opdi_cu_aligned(x) && opdi_cu_aligned(y);
    const opdi_cu_row_plan p = opdi_cu_row_plan_of(rows, n, W, n % W == 0 && aligned, most);
    if (p.packs == 0 && aligned && opdi_cu_long_row_fits(n, sizeof(T))) {
        const opdi_cu_row_plan q = opdi_cu_long_row_plan(rows, n, sizeof(T));
        return opdi_cu_launch(opdi_cu_softmax_long_rows<T>, q.grid, q.block, (size_t)n * sizeof(T), x, y, rows, (int)n,
                              logarithm, lse);
    }
    return opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_softmax_rows, T, most), p.grid, p.block, 0, x, y, rows, n,
                          logarithm, lse);
}
static int opdi_cu_softmax_of(opd_call *call, bool logarithm) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *staging;
    const opdi_cu_line l = opdi_cu_line_of(x, opd_arg_int(call, 1));
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (opd_numel(y) == 0) { return 0; }
    x = opd_contiguous(x);
    staging = opdi_cu_staging(y);
    if (!x || !staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const T *from = opdi_cu_data<T>(x);
        T *to = opdi_cu_data<T>(staging);
        if (l.inner == 1) {
            if (opdi_cu_softmax_run<T>(from, to, l.outer, l.n, logarithm, NULL)) { return -1; }
        } else {
            const dim3 block = opdi_cu_column_block(l);
            if (opdi_cu_launch(opdi_cu_softmax_columns<T>, opdi_cu_grid_rows(opdi_cu_ceil(l.inner, block.x) * l.outer),
                               block, 0, from, to, l.outer, l.n, l.inner, logarithm)) { return -1; }
        }
    })
    return opdi_cu_staging_store(y, staging);
}
static int opdi_cu_softmax_backward_of(opd_call *call, bool logarithm) {
    opd_tensor *g = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1), *dx, *staging;
    const opdi_cu_line l = opdi_cu_line_of(g, opd_arg_int(call, 2));
    if (opd_results_from_fake(call)) { return -1; }
    dx = opdi_cu_result(call, 0);
    if (opd_numel(dx) == 0) { return 0; }
    g = opd_contiguous(g);
    y = opd_contiguous(y);
    staging = opdi_cu_staging(dx);
    if (!g || !y || !staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(g), T, {
        const T *gs = opdi_cu_data<T>(g), *ys = opdi_cu_data<T>(y);
        T *to = opdi_cu_data<T>(staging);
        const int W = 16 / (int)sizeof(T);
        if (l.inner == 1) {
            const bool vec = l.n % W == 0 && opdi_cu_aligned(gs) && opdi_cu_aligned(ys) && opdi_cu_aligned(to);
            const opdi_cu_row_plan p = opdi_cu_row_plan_of(l.outer, l.n, W, vec, 2);
            if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_softmax_backward_rows, T, 2), p.grid, p.block, 0, gs, ys,
                               to, l.outer, l.n, logarithm)) { return -1; }
        } else {
            const dim3 block = opdi_cu_column_block(l),
                grid = opdi_cu_grid_rows(opdi_cu_ceil(l.inner, block.x) * l.outer);
            if (opdi_cu_launch(opdi_cu_softmax_backward_columns<T>, grid, block, 0, gs, ys, to, l.outer, l.n, l.inner,
                               logarithm)) { return -1; }
        }
    })
    return opdi_cu_staging_store(dx, staging);
}
static int opdi_cu_softmax(opd_call *call) { return opdi_cu_softmax_of(call, false); }
static int opdi_cu_log_softmax(opd_call *call) { return opdi_cu_softmax_of(call, true); }
static int opdi_cu_softmax_backward(opd_call *call) { return opdi_cu_softmax_backward_of(call, false); }
static int opdi_cu_log_softmax_backward(opd_call *call) { return opdi_cu_softmax_backward_of(call, true); }

