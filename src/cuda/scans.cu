//----------------------------------------------------------------------------------------------------------------------
//  >>cu:scans       scans and sorting
//----------------------------------------------------------------------------------------------------------------------

//== scans =============================================================================================================
//
//  A line along the dim is processed in tiles, with 4 elements per thread.  Each thread scans its elements, and the
//  totals of the threads are scanned within and across warps.  The total so far is carried to the next tile.  A short
//  line is processed by a warp or, if neighbouring lines are adjacent in memory, by a thread.  If there are few long
//  lines, they are cut into chunks: first, the totals of the chunks are computed, then each chunk is scanned, beginning
//  with the total of the chunks before it.  join(a, b) joins b after a.

template <typename A> __device__ __forceinline__ A opdi_cu_shuffle_up(A v, int by) {
    static_assert(sizeof(A) % 4 == 0, "whole words");
    union { A v; int w[sizeof(A) / 4]; } u = {v};
    OPDI_CU_UNROLL
    for (int i = 0; i < (int)(sizeof(A) / 4); i++) {
        u.w[i] = __shfl_up_sync(OPDI_CU_ALL_LANES, u.w[i], (unsigned)by);
    }
    return u.v;
}
template <typename C> struct opdi_cu_scan_value { C v; };
template <typename C> struct opdi_cu_scan_place { C v; int64_t at; };
template <typename T> struct opdi_cu_scan_sum {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_value<C> S;
    static __device__ __forceinline__ S none() { const S s = {0}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x}; return s; }
    static __device__ __forceinline__ S join(S a, S b) { a.v = opdi_cu_plus(a.v, b.v); return a; }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *, int64_t i) { opdi_cu_store(y + i, s.v); }
};
template <typename T> struct opdi_cu_scan_prod {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_value<C> S;
    static __device__ __forceinline__ S none() { const S s = {1}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x}; return s; }
    static __device__ __forceinline__ S join(S a, S b) { a.v = opdi_cu_times(a.v, b.v); return a; }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *, int64_t i) { opdi_cu_store(y + i, s.v); }
};
/* log(sum exp) in two parts: the largest term m, and the sum of exp(x - m) of the other terms.  Thus, the result is
   rounded only once, at the end. */
template <typename C> struct opdi_cu_scan_terms { C m, others; };
template <typename T> struct opdi_cu_scan_exps {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_terms<C> S;
    static __device__ __forceinline__ S none() { const S s = {opdi_cu_lowest<C>(), 0}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x, 0}; return s; }
    static __device__ __forceinline__ S join(S a, S b) {
        if (a.m < b.m || b.m != b.m) { const S t = a; a = b; b = t; }
        a.others += (1 + b.others) * (a.m == b.m ? (C)1 : opdi_cu_exp(b.m - a.m));
        return a;
    }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *, int64_t i) {
        opdi_cu_store(y + i, s.m + (C)log1p(s.others));
    }
};
/* The same of complex numbers.  Lines are scanned from the first element to the last, as on the CPU: in another order,
   imaginary parts might differ by multiples of 2 pi. */
template <typename P> struct opdi_cu_scan_exps<opdi_cu_pair_of<P> > {
    typedef opdi_cu_c128 C;
    typedef opdi_cu_scan_value<C> S;
    static __device__ __forceinline__ S none() { const S s = {C(-(double)INFINITY)}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x}; return s; }
    static __device__ __forceinline__ S join(S a, S b) {
        const opdi_complex z = opdi_complex_logaddexp(opdi_complex_make(b.v.re, b.v.im),
                                                      opdi_complex_make(a.v.re, a.v.im));
        a.v = C(z.re, z.im);
        return a;
    }
    static __device__ __forceinline__ void store(const S &s, opdi_cu_pair_of<P> *y, int64_t *, int64_t i) {
        y[i] = s.v;
    }
};
/* The largest element so far (the smallest, if LEAST) and its index; of equal elements, the last.  Once there has been
   a NaN, it stays. */
template <typename T, bool LEAST> struct opdi_cu_scan_extreme {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_place<C> S;
    static __device__ __forceinline__ S none() { const S s = {0, -1}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t at) { const S s = {x, at}; return s; }
    static __device__ __forceinline__ S join(S a, S b) {
        if (a.at < 0 || (b.at >= 0 && (b.v != b.v || (a.v == a.v && (LEAST ? b.v <= a.v : b.v >= a.v))))) { return b; }
        return a;
    }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *index, int64_t i) {
        opdi_cu_store(y + i, s.v);
        index[i] = s.at;
    }
};
template <typename T> using opdi_cu_scan_max = opdi_cu_scan_extreme<T, false>;
template <typename T> using opdi_cu_scan_min = opdi_cu_scan_extreme<T, true>;

/* The plan of a scan of lines [outer, n, inner].  Each line has `chunks` chunks of `chunk` elements.  If there are
   several, a first pass, in which `totals` is true, writes the total of each chunk to `states` [lines][chunks].  Then
   these totals are scanned. */
typedef struct opdi_cu_scan_plan {
    opdi_cu_line l;
    int64_t chunk, chunks;
    void *states;
    bool totals, vector;                          /* vector: four neighbouring elements are loaded at once */
} opdi_cu_scan_plan;
/* Scans chunks, with blockDim.x threads (one warp or several) per chunk, and blockDim.y chunks per block. */
template <typename T, typename L>
__global__ void opdi_cu_scan_lines(const opdi_cu_scan_plan k, const T *x, T *y, int64_t *index) {
    typedef typename L::C C;
    typedef typename L::S S;
    __shared__ __align__(16) unsigned char scratch[OPDI_CU_WARP * sizeof(S)];
    S *warps = reinterpret_cast<S *>(scratch);
    const int lanes = (int)blockDim.x, me = (int)threadIdx.x, lane = me % OPDI_CU_WARP, I = 4;
    const int64_t items = k.l.outer * k.l.inner * k.chunks;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < items; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t item = first + threadIdx.y, line = item / k.chunks, c = item % k.chunks;
        const bool in = item < items;
        const int64_t base = line / k.l.inner * k.l.n * k.l.inner + line % k.l.inner, begin = c * k.chunk;
        const int64_t end = !in ? begin : begin + k.chunk < k.l.n ? begin + k.chunk : k.l.n;
        S carry = L::none();
        if (k.chunks > 1 && !k.totals && in && c > 0) { carry = ((const S *)k.states)[item - 1]; }
        for (int64_t tile = begin; tile < begin + k.chunk; tile += (int64_t)lanes * I) {
            const int64_t from = tile + (int64_t)me * I;
            S s[I], all = L::none(), before;
            T v[I];
            if (k.vector && from + I <= end) { opdi_cu_load_pieces<I>(x + base + from, v); }
            else {
                OPDI_CU_UNROLL
                for (int i = 0; i < I; i++) { if (from + i < end) { v[i] = x[base + (from + i) * k.l.inner]; } }
            }
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) {
                if (from + i < end) {
                    const S now = L::of(opdi_cu_cast<C>(v[i]), from + i);
                    all = i ? L::join(all, now) : now;
                }
                s[i] = all;
            }
            for (int by = 1; by < OPDI_CU_WARP; by *= 2) {
                const S other = opdi_cu_shuffle_up(all, by);
                if (lane >= by) { all = L::join(other, all); }
            }
            before = opdi_cu_shuffle_up(all, 1);
            if (lane == 0) { before = L::none(); }
            if (lanes > OPDI_CU_WARP) {
                __syncthreads();
                if (lane == OPDI_CU_WARP - 1) { warps[me / OPDI_CU_WARP] = all; }
                __syncthreads();
                S outside = L::none(), total = L::none();
                for (int w = 0; w < lanes / OPDI_CU_WARP; w++) {
                    if (w == me / OPDI_CU_WARP) { outside = total; }
                    total = w ? L::join(total, warps[w]) : warps[0];
                }
                before = L::join(outside, before);
                all = total;
            } else {
                union { S s; int w[sizeof(S) / 4]; } u = {all};
                for (int i = 0; i < (int)(sizeof(S) / 4); i++) {
                    u.w[i] = __shfl_sync(OPDI_CU_ALL_LANES, u.w[i], OPDI_CU_WARP - 1);
                }
                all = u.s;
            }
            before = L::join(carry, before);
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) {
                if (k.totals || from + i >= end) { continue; }
                L::store(L::join(before, s[i]), y, index, base + (from + i) * k.l.inner);
            }
            carry = L::join(carry, all);
        }
        if (k.totals && in && me == 0) { ((S *)k.states)[item] = carry; }
    }
}
/* Scans the totals of each line's chunks, of which there are at most 512.  A block processes one line. */
template <typename L> __global__ void __launch_bounds__(512) opdi_cu_scan_totals(typename L::S *states, int chunks) {
    typedef typename L::S S;
    __shared__ __align__(16) unsigned char scratch[512 * sizeof(S)];
    S *all = reinterpret_cast<S *>(scratch);
    const int c = (int)threadIdx.x;
    S s = L::none();
    states += (int64_t)blockIdx.x * chunks;
    if (c < chunks) { s = states[c]; }
    for (int by = 1; by < chunks; by *= 2) {
        all[c] = s;
        __syncthreads();
        if (c >= by) { s = L::join(all[c - by], s); }
        __syncthreads();
    }
    if (c < chunks) { states[c] = s; }
}
/* Scans lines, one per thread.  The threads of a warp have adjacent lines. */
template <typename T, typename L>
__global__ void opdi_cu_scan_columns(const opdi_cu_line l, const T *x, T *y, int64_t *index) {
    typedef typename L::C C;
    const int64_t lines = l.outer * l.inner;
    for (int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; line < lines;
         line += (int64_t)gridDim.x * blockDim.x) {
        int64_t at = line / l.inner * l.n * l.inner + line % l.inner;
        typename L::S s = L::none();
        for (int64_t i = 0; i < l.n; i++, at += l.inner) {
            const typename L::S now = L::of(opdi_cu_load<C>(x + at), i);
            s = i ? L::join(s, now) : now;
            L::store(s, y, index, at);
        }
    }
}
template <typename T, typename L>
static int opdi_cu_scan_columns_run(opdi_cu_line l, const T *x, T *y, int64_t *index) {
    return opdi_cu_launch(opdi_cu_scan_columns<T, L>, opdi_cu_grid(l.outer * l.inner, 128), dim3(128), 0, l, x, y,
                          index);
}
template <typename T, typename L> static int opdi_cu_scan_run(opdi_cu_line l, const T *x, T *y, int64_t *index) {
    typedef typename L::S S;
    const int64_t lines = l.outer * l.inner;
    opdi_cu_scan_plan k = {l, l.n, 1, NULL, false, l.inner == 1 && l.n % 4 == 0 && opdi_cu_aligned(x)};
    dim3 block = l.n <= 1024 ? dim3(OPDI_CU_WARP, 4) : dim3(256, 1);
    if (l.n <= 8 || (l.inner >= 16 && lines >= 4096)) {
        return opdi_cu_scan_columns_run<T, L>(l, x, y, index);
    }
    if (lines < 128 && l.n >= 32768) {
        k.chunks = 512 / lines < l.n / 8192 ? 512 / lines : l.n / 8192;
        k.chunk = opdi_cu_ceil(opdi_cu_ceil(l.n, k.chunks), 1024) * 1024;
        k.chunks = opdi_cu_ceil(l.n, k.chunk);
        k.states = opdi_cu_scratch(lines * k.chunks * (int64_t)sizeof(S));
        if (!k.states) { return -1; }
        k.totals = true;
        if (opdi_cu_launch(opdi_cu_scan_lines<T, L>, opdi_cu_grid_rows(lines * k.chunks), block, 0, k, x, y, index) ||
            opdi_cu_launch(opdi_cu_scan_totals<L>, dim3((unsigned)lines), dim3(512), 0, (S *)k.states, (int)k.chunks)) {
            return -1;
        }
        k.totals = false;
    }
    return opdi_cu_launch(opdi_cu_scan_lines<T, L>, opdi_cu_grid_rows(opdi_cu_ceil(lines * k.chunks, block.y)), block,
                          0, k, x, y, index);
}
/* Scans along the dim that argument 1 names.  Writes result 0 and, if `two` is true, the indices as result 1.  If there
   are scans of complex numbers (PAIRS), but not of integers, a thread scans a complex line in order.  Returns 0, or -1
   and sets an error. */
template <template <class> class L, bool INTEGERS, bool PAIRS = false>
static int opdi_cu_scan_of(opd_call *call, bool two) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *index = NULL, *staging, *index_staging = NULL;
    const opdi_cu_line l = opdi_cu_line_of(x, opd_arg_int(call, 1));
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    staging = opdi_cu_staging(y);
    if (two) { index = opdi_cu_result(call, 1); index_staging = opdi_cu_staging(index); }
    if (!staging || (two && !index_staging)) { return -1; }
    if (opd_numel(y) == 0) { return 0; }
    x = opd_contiguous(opd_dtype(x) == opd_dtype(y) ? x : opd_to_dtype(x, opd_dtype(y)));
    if (!x) { return -1; }
#define OPDI_CU_SCAN_RUN(T, run)                                                                                      \
    if (run<T, L<T> >(l, opdi_cu_data<T>(x), opdi_cu_data<T>(staging),                                                \
                      two ? opdi_cu_data<int64_t>(index_staging) : NULL)) { return -1; }
    if (opd_dtype_is_complex(opd_dtype(y))) {
        if constexpr (PAIRS && INTEGERS) { OPDI_CU_COMPLEX(opd_dtype(y), T, OPDI_CU_SCAN_RUN(T, opdi_cu_scan_run)) }
        else if constexpr (PAIRS) { OPDI_CU_COMPLEX(opd_dtype(y), T, OPDI_CU_SCAN_RUN(T, opdi_cu_scan_columns_run)) }
        else { return opdi_cu_no_dtype(opd_dtype(y)); }
    } else if constexpr (INTEGERS) { OPDI_CU_ALL(opd_dtype(y), T, OPDI_CU_SCAN_RUN(T, opdi_cu_scan_run)) }
    else { OPDI_CU_FLOATS(opd_dtype(y), T, OPDI_CU_SCAN_RUN(T, opdi_cu_scan_run)) }
#undef OPDI_CU_SCAN_RUN
    return opdi_cu_staging_store(y, staging) || (two && opdi_cu_staging_store(index, index_staging)) ? -1 : 0;
}
static int opdi_cu_cumsum(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_sum, true, true>(call, false); }
static int opdi_cu_cumprod(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_prod, true, true>(call, false); }
static int opdi_cu_logcumsumexp(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_exps, false, true>(call, false); }
static int opdi_cu_cummax(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_max, true>(call, true); }
static int opdi_cu_cummin(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_min, true>(call, true); }

