//----------------------------------------------------------------------------------------------------------------------
//  >>cu:reductions  sums, extremes, norms
//----------------------------------------------------------------------------------------------------------------------

/* A reduction treats its input as `outer` rows of n elements.  The kept dims and the reduced dims are each sorted by
   stride and joined if possible.  Reduced dims keep their order if the result is an index.  There are two kernels:
     rows     if a reduced dim has the smallest stride: 1 to 256 threads walk along a row, 16 bytes a load
     columns  if a kept dim has it: threads lie along that dim, each with 16 bytes of columns, and walk down the rows
   Few long rows are cut into chunks, whose states a third kernel joins.  The order of additions depends only on the
   sizes, so results are the same each time.  No atomics are used.

   A fold defines the operation: F<C> has a State, and init, take (elements in), join (two states), store (results). */

/* Where results are stored: element at[k] of data[k]. */
typedef struct opdi_cu_results { void *data[2]; int dtype[2]; int64_t at[2]; } opdi_cu_results;
#define OPDI_CU_REDUCE_DIMS 12                    /* after dims were joined; a tensor with more dims is copied first */
typedef struct opdi_cu_reduction {
    const char *x;
    const char *second;                           /* in a reduction of pairs, the second tensor, which has the layout of
                                                     the first; else NULL */
    int dtype, bytes;                             /* dtype: dtype of the input; bytes: bytes of an element */
    bool odd;                                     /* loads of 16 bytes are not possible */
    int nred, nkept;                              /* numbers of reduced and kept dims, at least 1; innermost dims come
                                                     first */
    int64_t rsize[OPDI_CU_REDUCE_DIMS], rstride[OPDI_CU_REDUCE_DIMS];
    opdi_cu_pointwise_divider by[OPDI_CU_REDUCE_DIMS]; /* for division by rsize, if n is below 2^31 */
    bool far;                                     /* n is at least 2^31, and several dims are reduced */
    int64_t ksize[OPDI_CU_REDUCE_DIMS], kstride[OPDI_CU_REDUCE_DIMS], ostride[2][OPDI_CU_REDUCE_DIMS];
    int64_t n, outer;                             /* n: elements of a row; outer: number of rows */
    int64_t chunk;                                /* elements of a chunk of a row */
    int chunks;                                   /* chunks per row; if there are several, their states are stored in
                                                     `states` [chunks][outer] */
    void *states;
    opdi_cu_results out;
} opdi_cu_reduction;

/* Reads elements of type T and converts them to C, the type in which folds compute: one element, or W neighbours at an
   address that is a multiple of W elements.  W elements are first loaded unchanged (as Raw), and converted when all
   loads are in flight. */
template <class T> struct opdi_cu_reader {
    typedef opdi_cu_acc<T> C;
    enum { W = 16 / sizeof(T) };
    typedef opdi_cu_vector<T, W> Raw;
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &) {
        return opdi_cu_load<C>((const T *)p + i);
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &, Raw *raw) {
        *raw = opdi_cu_load_vector<W>((const T *)p + i);
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &, C *c) {
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { c[k] = opdi_cu_cast<C>(raw.at[k]); }
    }
};
/* For few kernels, some types are distinguished only at run time: float16 and bfloat16 (opdi_cu_halves), and integers
   and bool (opdi_cu_integers). */
struct opdi_cu_halves {};
template <> struct opdi_cu_reader<opdi_cu_halves> {
    typedef float C;
    enum { W = 8 };
    typedef opdi_cu_vector<uint16_t, W> Raw;
    static __device__ __forceinline__ float of(uint16_t v, bool brain) {
        return brain ? __bfloat162float(__ushort_as_bfloat16(v)) : __half2float(__ushort_as_half(v));
    }
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &r) {
        return of(((const uint16_t *)p)[i], r.dtype == OPD_BFLOAT16);
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &, Raw *raw) {
        *raw = opdi_cu_load_vector<W>((const uint16_t *)p + i);
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &r, C *c) {
        if (r.dtype == OPD_BFLOAT16) {
            OPDI_CU_UNROLL
            for (int k = 0; k < W; k++) { c[k] = of(raw.at[k], true); }
        } else {
            OPDI_CU_UNROLL
            for (int k = 0; k < W; k++) { c[k] = of(raw.at[k], false); }
        }
    }
};
struct opdi_cu_integers {};
template <> struct opdi_cu_reader<opdi_cu_integers> {
    typedef int64_t C;
    enum { W = 4 };
    struct Raw { uint64_t w[W]; };                /* large enough for W elements of each integer type */
    template <class T> static __device__ __forceinline__ void some(const char *p, int64_t i, Raw *raw) {
        const opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>((const T *)p + i);
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { raw->w[k] = v.at[k]; }
    }
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &r) {
        switch (r.dtype) {
            case OPD_INT64: return ((const int64_t *)p)[i];
            case OPD_INT32: return ((const int32_t *)p)[i];
            case OPD_INT16: return ((const int16_t *)p)[i];
            case OPD_INT8: return ((const int8_t *)p)[i];
            default: return ((const uint8_t *)p)[i];
        }
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &r, Raw *raw) {
        switch (r.bytes) {
            case 8: {
                const opdi_cu_vector<uint64_t, 2> a = opdi_cu_load_vector<2>((const uint64_t *)p + i),
                    b = opdi_cu_load_vector<2>((const uint64_t *)p + i + 2);
                raw->w[0] = a.at[0]; raw->w[1] = a.at[1]; raw->w[2] = b.at[0]; raw->w[3] = b.at[1];
                break;
            }
            case 4: some<uint32_t>(p, i, raw); break;
            case 2: some<uint16_t>(p, i, raw); break;
            default: some<uint8_t>(p, i, raw);
        }
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &r, C *c) {
        const int up = r.dtype == OPD_BOOL || r.dtype == OPD_UINT8 ? 0 : 64 - 8 * r.bytes;      /* sign extension */
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { c[k] = (int64_t)(raw.w[k] << up) >> up; }
    }
};
/* Reads two tensors of T at once, whose elements form pairs. */
template <class A> struct opdi_cu_pair { A x, g; };
template <class T> struct opdi_cu_pairs {};
template <class T> struct opdi_cu_reader<opdi_cu_pairs<T> > {
    typedef opdi_cu_reader<T> R;
    typedef typename R::C A;
    typedef opdi_cu_pair<A> C;
    enum { W = R::W };
    struct Raw { typename R::Raw x, g; };
    static __device__ __forceinline__ const char *second(const char *p, const opdi_cu_reduction &r) {
        return r.second + (p - r.x);
    }
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &r) {
        const C c = {R::one(p, i, r), R::one(second(p, r), i, r)};
        return c;
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &r, Raw *raw) {
        R::load(p, i, r, &raw->x);
        R::load(second(p, r), i, r, &raw->g);
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &r, C *c) {
        A x[W], g[W];
        R::cast(raw.x, r, x);
        R::cast(raw.g, r, g);
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { c[k].x = x[k]; c[k].g = g[k]; }
    }
};

/* Converts v to a dtype and stores it as element i of the memory at p. */
template <class V> __device__ __forceinline__ void opdi_cu_put(void *p, int dtype, int64_t i, V v) {
    switch (dtype) {
        case OPD_FLOAT32: opdi_cu_store((float *)p + i, v); break;
        case OPD_FLOAT64: opdi_cu_store((double *)p + i, v); break;
        case OPD_FLOAT16: opdi_cu_store((opdi_cu_f16 *)p + i, v); break;
        case OPD_BFLOAT16: opdi_cu_store((opdi_cu_bf16 *)p + i, v); break;
        case OPD_INT64: opdi_cu_store((int64_t *)p + i, v); break;
        case OPD_INT32: opdi_cu_store((int32_t *)p + i, v); break;
        case OPD_INT16: opdi_cu_store((int16_t *)p + i, v); break;
        case OPD_INT8: opdi_cu_store((int8_t *)p + i, v); break;
        case OPD_BOOL: opdi_cu_store((bool *)p + i, v); break;
        default: opdi_cu_store((uint8_t *)p + i, v);
    }
}

__device__ __forceinline__ void opdi_cu_put(void *p, int dtype, int64_t i, opdi_cu_c128 v) {
    if (dtype == OPD_COMPLEX64) { static_cast<opdi_cu_c64 *>(p)[i] = v; }
    else { static_cast<opdi_cu_c128 *>(p)[i] = v; }
}

/* Joins the states s of `lanes` neighbouring threads; lanes is a power of two.  If lanes > 32, these are all threads of
   the block along x, and only the first warp gets the result.  Otherwise, each thread gets it.  `scratch` has space for
   32 states. */
template <class F> __device__ __forceinline__ void opdi_cu_fold_lanes(const F &f, typename F::State &s, int lanes,
                                                                      typename F::State *scratch) {
    for (int bits = (lanes < 32 ? lanes : 32) / 2; bits > 0; bits /= 2) {
        f.join(s, opdi_cu_shuffle_xor(s, bits));
    }
    if (lanes > 32) {
        const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
        __syncthreads();
        if (lane == 0) { scratch[warp] = s; }
        __syncthreads();
        if (warp == 0) {
            s = f.init(0);
            if (lane < lanes / 32) { s = scratch[lane]; }
        }
        for (int bits = 16; bits > 0; bits /= 2) {
            const typename F::State other = opdi_cu_shuffle_xor(s, bits);
            if (warp == 0) { f.join(s, other); }
        }
    }
}

/* Same as opdi_cu_put, for floating dtypes only. */
template <class V> __device__ __forceinline__ void opdi_cu_put_float(void *p, int dtype, int64_t i, V v) {
    switch (dtype) {
        case OPD_FLOAT32: opdi_cu_store((float *)p + i, v); break;
        case OPD_FLOAT64: opdi_cu_store((double *)p + i, v); break;
        case OPD_FLOAT16: opdi_cu_store((opdi_cu_f16 *)p + i, v); break;
        default: opdi_cu_store((opdi_cu_bf16 *)p + i, v);
    }
}

//== folds =============================================================================================================

/* The arguments of a fold: p is a number given to the operator, n the number of elements of a row; kind and flag choose
   a variant (see each fold). */
typedef struct opdi_cu_fold { double p; int64_t n; int kind, flag; } opdi_cu_fold;
/* Defines `take` of a fold by its function `one`, which takes a single element. */
#define OPDI_CU_TAKE_EACH                                                                                             \
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t at, int64_t step) const {    \
        OPDI_CU_UNROLL                                                                                               \
        for (int i = 0; i < N; i++) { one(s, x[i], at + i * step); }                                                  \
    }

template <class C> __device__ __forceinline__ C opdi_cu_plus(C a, C b) { return a + b; }
template <> __device__ __forceinline__ int64_t opdi_cu_plus<int64_t>(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
template <class C> __device__ __forceinline__ C opdi_cu_times(C a, C b) { return a * b; }
template <> __device__ __forceinline__ int64_t opdi_cu_times<int64_t>(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
/* The term that a sum adds for x: x itself (opdi_cu_map_same), or (opdi_cu_map_flag), as `flag` says,
   x without NaN (0 instead), |x| or x^2. */
enum { OPDI_CU_NANSUM, OPDI_CU_ABS, OPDI_CU_SQUARE };
struct opdi_cu_map_same {
    template <class C> static __device__ __forceinline__ C of(C x, const opdi_cu_fold &) { return x; }
};
struct opdi_cu_map_flag {
    template <class C> static __device__ __forceinline__ C of(C x, const opdi_cu_fold &how) {
        return how.flag == OPDI_CU_NANSUM ? (x == x ? x : (C)0) : how.flag == OPDI_CU_ABS ? (x < 0 ? -x : x) : x * x;
    }
};
/* Sums.  kind: the result is the sum, the sum divided by n, its square root, or its p-th root. */
enum { OPDI_CU_PLAIN, OPDI_CU_MEAN, OPDI_CU_ROOT, OPDI_CU_ROOT_P };
template <class C_, class MAP> struct opdi_cu_fold_sums {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; return s; }
    /* Adds the N elements pairwise first, which shortens the chain of additions and makes rounding errors smaller. */
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        C v[N];
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { v[i] = MAP::of(x[i], how); }
        OPDI_CU_UNROLL
        for (int half = N / 2; half > 0; half /= 2) {
            OPDI_CU_UNROLL
            for (int i = 0; i < half; i++) { v[i] = opdi_cu_plus(v[i], v[i + half]); }
        }
        s.v = opdi_cu_plus(s.v, v[0]);
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { s.v = opdi_cu_plus(s.v, with.v); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        C v = s.v;
        if constexpr (std::is_same<C, opdi_cu_c128>::value) {
            if (how.kind == OPDI_CU_MEAN) { v = C(v.re / (double)how.n, v.im / (double)how.n); }
        } else {
            if (how.kind == OPDI_CU_MEAN) { v = v / (C)how.n; }
            if (how.kind == OPDI_CU_ROOT) { v = (C)sqrt((double)v); }
            if (how.kind == OPDI_CU_ROOT_P) { v = (C)pow((double)v, 1.0 / how.p); }
        }
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
    }
};
template <class C> using opdi_cu_fold_sum = opdi_cu_fold_sums<C, opdi_cu_map_same>;
template <class C> using opdi_cu_fold_mapped = opdi_cu_fold_sums<C, opdi_cu_map_flag>;

template <class C_> struct opdi_cu_fold_prod {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 1; return s; }
    __device__ __forceinline__ void one(State &s, C x, int64_t) const { s.v = opdi_cu_times(s.v, x); }
    OPDI_CU_TAKE_EACH
    __device__ __forceinline__ void join(State &s, const State &with) const { one(s, with.v, 0); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
    }
};

/* The exclusive or of integers. */
template <class C_> struct opdi_cu_fold_xor {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; return s; }
    __device__ __forceinline__ void one(State &s, C x, int64_t) const { s.v ^= x; }
    OPDI_CU_TAKE_EACH
    __device__ __forceinline__ void join(State &s, const State &with) const { s.v ^= with.v; }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
    }
};

/* Infinity and -infinity for floating types, or the limits of int64_t. */
template <class C> __device__ __forceinline__ C opdi_cu_highest() { return (C)INFINITY; }
template <> __device__ __forceinline__ int64_t opdi_cu_highest<int64_t>() { return INT64_MAX; }
template <class C> __device__ __forceinline__ C opdi_cu_lowest() { return -(C)INFINITY; }
template <> __device__ __forceinline__ int64_t opdi_cu_lowest<int64_t>() { return INT64_MIN; }

/* Finds the largest element (the smallest, if flag is 1), or NaN if there is a NaN.  kind 1: compares absolute values;
   if there are no elements, the result is 0 (infinity, if flag is 1). */
template <class C_> struct opdi_cu_fold_extreme {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const {
        State s;
        s.v = how.flag ? opdi_cu_highest<C>() : how.kind ? (C)0 : opdi_cu_lowest<C>();
        return s;
    }
    __device__ __forceinline__ void one(State &s, C x, int64_t) const {
        if (how.kind) { x = x < 0 ? -x : x; }
        if ((how.flag ? x < s.v : x > s.v) || x != x) { s.v = x; }
    }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        C v = s.v;
        if (how.kind || how.flag) {
            OPDI_CU_UNROLL
            for (int i = 0; i < N; i++) {
                const C a = how.kind && x[i] < 0 ? -x[i] : x[i];
                v = (how.flag ? a < v : a > v) || a != a ? a : v;
            }
        } else {
            OPDI_CU_UNROLL
            for (int i = 0; i < N; i++) { v = x[i] > v || x[i] != x[i] ? x[i] : v; }
        }
        s.v = v;
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { one(s, with.v, 0); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
    }
};
/* Finds the first of the largest elements (the smallest, if flag is 1), or the first NaN, and its index.  kind 1: only
   the index is stored. */
template <class C_> struct opdi_cu_fold_where {
    typedef C_ C;
    typedef struct State { C v; int64_t at; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; s.at = -1; return s; }
    __device__ __forceinline__ void one(State &s, C x, int64_t at) const {
        const bool nan = x != x, had = s.v != s.v;
        const bool better = nan == had ? (how.flag ? x < s.v : x > s.v) : nan;
        const bool equal = nan ? had : x == s.v;
        if (at >= 0 && (s.at < 0 || better || (equal && at < s.at))) { s.v = x; s.at = at; }
    }
    /* Finds the best of the N elements first.  Computes its index only if it may be better than the best so far, which
       is rare. */
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t at, int64_t step) const {
        C top = x[0];
        OPDI_CU_UNROLL
        for (int i = 1; i < N; i++) {
            top = top != top ? top : (how.flag ? x[i] < top : x[i] > top) || x[i] != x[i] ? x[i] : top;
        }
        if (s.at >= 0 && s.v == s.v && (how.flag ? top > s.v : top < s.v)) { return; }
        int first = 0;
        OPDI_CU_UNROLL
        for (int i = N - 1; i >= 0; i--) { if (x[i] == top || x[i] != x[i]) { first = i; } }
        OPDI_CU_UNROLL
        for (int i = 1; i < N; i++) { if (i == first) { top = x[i]; } }
        if (first == 0) { top = x[0]; }
        one(s, top, at + first * step);
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { one(s, with.v, with.at); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        if (how.kind) { ((int64_t *)out.data[0])[out.at[0]] = s.at; return; }
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
        ((int64_t *)out.data[1])[out.at[1]] = s.at;
    }
};
/* Counts the elements that are not 0 after their highest `flag` bits (of 64) were dropped.  (Floating types are read as
   integers; the sign of a zero must not count.)  kind 0: the result is the number; 1: whether any element is not 0; 2:
   whether all n are not 0. */
template <class C_> struct opdi_cu_fold_count {
    typedef C_ C;
    typedef struct State { int64_t v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; return s; }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        int count = 0;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { count += (uint64_t)x[i] << how.flag != 0; }
        s.v += count;
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { s.v += with.v; }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        const int64_t v = how.kind == 0 ? s.v : how.kind == 1 ? s.v > 0 : s.v == how.n;
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
    }
};
/* Computes the mean and the sum of squared deviations of chunks, and joins them by the method of Chan, Golub and
   LeVeque.  kind 0: the result is the variance; 1: its square root; 2, 3: the same, and the mean is the second result.
   p: the correction, which is subtracted from the number of elements. */
template <class C_> struct opdi_cu_fold_var {
    typedef C_ C;
    typedef struct State { C mean, squares; int64_t n; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.mean = s.squares = 0; s.n = 0; return s; }
    /* For means a, b and sums of squares of m and k elements, and n = m + k, d = b - a: the joined mean is a + d * k /
       n, and d^2 * m * k / n is added to the sums of squares. */
    static __device__ __forceinline__ void join(State &s, const State &with) {
        if (with.n == 0) { return; }
        const int64_t n = s.n + with.n;
        const C part = (C)with.n / (C)n, d = with.mean - s.mean;
        s.mean += d - d == 0 ? d * part : with.mean;                 /* infinities give the same mean as a sum would */
        s.squares += with.squares + d * d * ((C)s.n * part);
        s.n = n;
    }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        State piece;
        piece.mean = 0; piece.squares = 0; piece.n = N;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { piece.mean += x[i]; }
        piece.mean *= (C)1 / (C)N;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { const C d = x[i] - piece.mean; piece.squares += d * d; }
        join(s, piece);
    }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        const double n = (double)s.n - how.p;
        double v = (double)s.squares / (n > 0 ? n : 0);
        if (how.kind & 1) { v = sqrt(v); }
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
        if (how.kind >= 2) { opdi_cu_put(out.data[1], out.dtype[1], out.at[1], s.n ? (double)s.mean : (double)NAN); }
    }
};
template <class C> __device__ __forceinline__ C opdi_cu_exp(C x) { return (C)exp(x); }
template <> __device__ __forceinline__ float opdi_cu_exp<float>(float x) { return expf(x); }
/* Computes the logarithm of the sum of exponentials.  `top` is the largest finite element so far, and `sum` is the sum
   of exp(x - top) so far.  Infinities and NaN make the sum infinite or NaN. */
template <class C_> struct opdi_cu_fold_lse {
    typedef C_ C;
    typedef struct State { C top, sum; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.top = opdi_cu_lowest<C>(); s.sum = 0; return s; }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        C top = s.top;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { if (x[i] > top && x[i] < opdi_cu_highest<C>()) { top = x[i]; } }
        if (top > s.top) {
            if (s.top > opdi_cu_lowest<C>()) { s.sum *= opdi_cu_exp(s.top - top); }
            s.top = top;
        }
        if (!(top > opdi_cu_lowest<C>())) { top = 0; }
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { s.sum += opdi_cu_exp(x[i] - top); }
    }
    __device__ __forceinline__ void join(State &s, const State &with) const {
        const C low = opdi_cu_lowest<C>();
        if (with.top > s.top) {
            s.sum = (s.top > low ? s.sum * opdi_cu_exp(s.top - with.top) : s.sum) + with.sum;
            s.top = with.top;
        } else { s.sum += with.top > low ? with.sum * opdi_cu_exp(with.top - s.top) : with.sum; }
    }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        const C v = (C)log(s.sum) + (s.top > opdi_cu_lowest<C>() ? s.top : (C)0);
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
    }
};

//== kernels ===========================================================================================================

/* Writes i as a number whose digit d has the radix sizes[d], lowest digit first, and returns the sum of the digits
   times the strides.  Divides in 32 bits if they suffice, and not at all for one dim. */
__device__ __forceinline__ int64_t opdi_cu_offset(int64_t i, const int64_t *sizes, const int64_t *strides, int ndim) {
    int64_t at = 0;
    OPDI_CU_ROLLED
    for (int d = 0; d < ndim - 1; d++) {
        const int64_t q = ((uint64_t)i | (uint64_t)sizes[d]) >> 32 ? i / sizes[d]
            : (int64_t)((uint32_t)i / (uint32_t)sizes[d]);
        at += (i - q * sizes[d]) * strides[d];
        i = q;
    }
    return at + i * strides[ndim - 1];
}
__device__ OPDI_CU_NOINLINE int64_t opdi_cu_far_offset(const opdi_cu_reduction &r, int64_t i) {
    return opdi_cu_offset(i, r.rsize, r.rstride, r.nred);
}
/* Computes the offsets of U elements of a row: elements number first, first + step, and so on. */
template <int U>
__device__ __forceinline__ void opdi_cu_reduce_at(const opdi_cu_reduction &r, int64_t first, int64_t step,
                                                  int64_t *at /*[U]*/) {
    if (r.nred == 1) {
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { at[u] = (first + u * step) * r.rstride[0]; }
    } else if (r.far) {
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { at[u] = opdi_cu_far_offset(r, first + u * step); }
    } else {
        uint32_t i[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { i[u] = (uint32_t)(first + u * step); at[u] = 0; }
        OPDI_CU_ROLLED
        for (int d = 0; d < r.nred - 1; d++) {
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const uint32_t q = r.by[d].of(i[u]);
                at[u] += (int64_t)(i[u] - q * r.by[d].d) * r.rstride[d];
                i[u] = q;
            }
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { at[u] += (int64_t)i[u] * r.rstride[r.nred - 1]; }
    }
}
/* Stores the result of a row.  If `part` is true, s is only the state of a chunk, and is stored for
   opdi_cu_reduce_chunks. */
template <class F>
__device__ __forceinline__ void opdi_cu_reduce_put(const opdi_cu_reduction &r, const F &f, int64_t row,
                                                   const typename F::State &s, bool part) {
    opdi_cu_results out = r.out;
    if (part) { ((typename F::State *)r.states)[blockIdx.y * r.outer + row] = s; return; }
    out.at[0] = opdi_cu_offset(row, r.ksize, r.ostride[0], r.nkept);
    out.at[1] = opdi_cu_offset(row, r.ksize, r.ostride[1], r.nkept);
    f.store(s, out);
}
/* Adds elements of the row at x to state s: N elements from each of the positions first, first + step, ... below `end`.
   Loads from four positions at a time. */
template <class T, class F, int N>
__device__ __forceinline__ void opdi_cu_reduce_walk(const opdi_cu_reduction &r, const F &f, const char *x,
                                                    int64_t first, int64_t end, int64_t step, typename F::State &s) {
    typedef opdi_cu_reader<T> R;
    typedef typename R::C C;
    const int U = 4;
    int64_t i = first, at[U];
    OPDI_CU_ROLLED
    for (; i + (U - 1) * step < end; i += U * step) {
        opdi_cu_reduce_at<U>(r, i, step, at);
        if constexpr (N == 1) {
            C c[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { c[u] = R::one(x, at[u], r); }
            f.template take<U>(s, c, i, step);
        } else {
            typename R::Raw raw[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { R::load(x, at[u], r, raw + u); }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                C c[N];
                R::cast(raw[u], r, c);
                f.template take<N>(s, c, i + u * step, 1);
            }
        }
    }
    OPDI_CU_ROLLED
    for (; i < end; i += step) {
        C c[N];
        opdi_cu_reduce_at<1>(r, i, step, at);
        if constexpr (N == 1) { c[0] = R::one(x, at[0], r); }
        else {
            typename R::Raw raw;
            R::load(x, at[0], r, &raw);
            R::cast(raw, r, c);
        }
        f.template take<N>(s, c, i, 1);
    }
}
/* Adds elements [begin, end) of the row at x to the states of `lanes` threads; the calling thread is number `lane`, and
   its state is s.  Between the first and the last aligned address, loads 16 bytes at a time.  If several dims are
   reduced, rows begin and end at aligned addresses. */
template <class T, class F, bool VEC>
__device__ __forceinline__ void opdi_cu_reduce_part(const opdi_cu_reduction &r, const F &f, const char *x,
                                                    int64_t begin, int64_t end, int lane, int lanes,
                                                    typename F::State &s) {
    typedef opdi_cu_reader<T> R;
    const int W = VEC ? (int)R::W : 1;
    if (VEC && r.nred == 1) {
        int64_t head = (W - (int64_t)((uint64_t)(uintptr_t)x / r.bytes + (uint64_t)begin) % W) % W;
        if (head > end - begin) { head = end - begin; }
        const int64_t whole = begin + head + (end - begin - head) / W * W;
        OPDI_CU_ROLLED
        for (int64_t k = lane; k < head + end - whole; k += lanes) {
            const int64_t i = k < head ? begin + k : whole + k - head;
            const typename R::C c = R::one(x, i, r);
            f.template take<1>(s, &c, i, 1);
        }
        begin += head;
        end = whole;
    }
    opdi_cu_reduce_walk<T, F, W>(r, f, x, begin + (int64_t)lane * W, end, (int64_t)lanes * W, s);
}
/* Reduces rows, with blockDim.x threads per row and blockDim.y rows per block.  blockIdx.y is the number of the chunk
   of each row. */
template <class T, class F, bool VEC> __global__ void
opdi_cu_reduce_rows(const __grid_constant__ opdi_cu_reduction r, const F f) {
    __shared__ __align__(16) unsigned char scratch[OPDI_CU_WARP * sizeof(typename F::State)];
    const int lanes = (int)blockDim.x;
    const int64_t begin = blockIdx.y * r.chunk, end = begin + r.chunk < r.n ? begin + r.chunk : r.n;
    OPDI_CU_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < r.outer; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        typename F::State s = f.init(row < r.outer ? row : 0);
        if (row < r.outer) {
            const char *x = r.x + opdi_cu_offset(row, r.ksize, r.kstride, r.nkept) * r.bytes;
            opdi_cu_reduce_part<T, F, VEC>(r, f, x, begin, end, (int)threadIdx.x, lanes, s);
        }
        opdi_cu_fold_lanes(f, s, lanes, (typename F::State *)scratch);
        if (threadIdx.x == 0 && row < r.outer) { opdi_cu_reduce_put(r, f, row, s, r.chunks > 1); }
    }
}
/* Joins the states of the threads of a block that have the same columns, N per thread.  The threads with threadIdx.y =
   0 get the results. */
template <int N, class F>
__device__ __forceinline__ void opdi_cu_fold_down(const F &f, typename F::State *s /*[N]*/,
                                                  typename F::State *shared) {
    const int wide = (int)blockDim.x, me = (int)threadIdx.x, y = (int)threadIdx.y;
    OPDI_CU_ROLLED
    for (int half = (int)blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y >= half && y < 2 * half) {
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { shared[((y - half) * N + k) * wide + me] = s[k]; }
        }
        __syncthreads();
        if (y < half) {
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { f.join(s[k], shared[(y * N + k) * wide + me]); }
        }
    }
}
/* Reduces columns.  Each of blockDim.x neighbouring threads has N columns.  The rows of these columns are divided among
   blockDim.y threads.  blockIdx.y is the number of the chunk of the rows. */
template <class T, class F, bool VEC> __global__ void
__launch_bounds__(256, std::is_same<T, opdi_cu_halves>::value && sizeof(typename F::State) == 4 ? 3 : 1)
opdi_cu_reduce_columns(const __grid_constant__ opdi_cu_reduction r, const F f) {
    typedef opdi_cu_reader<T> R;
    typedef typename R::C C;
    typedef typename F::State S;
    const int N = VEC ? (int)R::W : 1, U = 4;
    OPDI_CU_SHARED(scratch);
    const int wide = (int)blockDim.x * N, down = (int)blockDim.y, me = (int)threadIdx.x, y = (int)threadIdx.y;
    const int64_t begin = blockIdx.y * r.chunk, end = begin + r.chunk < r.n ? begin + r.chunk : r.n;
    const int64_t tiles = (r.ksize[0] + wide - 1) / wide, items = tiles * (r.outer / r.ksize[0]);
    OPDI_CU_ROLLED
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t column = item % tiles * wide + me * N, first = item / tiles * r.ksize[0];
        const bool in = column < r.ksize[0];      /* if VEC, the number of columns is a multiple of N */
        const char *x = r.x + (opdi_cu_offset(first, r.ksize, r.kstride, r.nkept) + column * r.kstride[0]) * r.bytes;
        S s[N];
        int64_t i = begin + y, at[U];
        OPDI_CU_UNROLL
        for (int k = 0; k < N; k++) { s[k] = f.init(in ? first + column + k : 0); }
        OPDI_CU_ROLLED
        for (; in && i + (U - 1) * down < end; i += U * down) {
            C c[U][N];
            opdi_cu_reduce_at<U>(r, i, down, at);
            if constexpr (VEC) {
                typename R::Raw raw[U];
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { R::load(x, at[u], r, raw + u); }
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { R::cast(raw[u], r, c[u]); }
            } else {
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { c[u][0] = R::one(x, at[u], r); }
            }
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) {
                C v[U];
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { v[u] = c[u][k]; }
                f.template take<U>(s[k], v, i, down);
            }
        }
        OPDI_CU_ROLLED
        for (; in && i < end; i += down) {
            C c[N];
            opdi_cu_reduce_at<1>(r, i, down, at);
            if constexpr (VEC) {
                typename R::Raw raw;
                R::load(x, at[0], r, &raw);
                R::cast(raw, r, c);
            } else { c[0] = R::one(x, at[0], r); }
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { f.template take<1>(s[k], c + k, i, 1); }
        }
        opdi_cu_fold_down<N>(f, s, (S *)scratch);
        if (y == 0 && in) {
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { opdi_cu_reduce_put(r, f, first + column + k, s[k], r.chunks > 1); }
        }
    }
}
/* Joins the states of a row's chunks and stores the result, with blockDim.y threads per row.  threadIdx.x runs over
   rows, so that neighbouring threads read adjacent states. */
template <class F> __global__ void __launch_bounds__(512)
opdi_cu_reduce_chunks(const __grid_constant__ opdi_cu_reduction r, const F f) {
    OPDI_CU_SHARED(scratch);
    const typename F::State *states = (const typename F::State *)r.states;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.x; first < r.outer; first += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = first + threadIdx.x;
        typename F::State s = f.init(row < r.outer ? row : 0);
#pragma unroll 4
        for (int k = (int)threadIdx.y; row < r.outer && k < r.chunks; k += (int)blockDim.y) {
            f.join(s, states[k * r.outer + row]);
        }
        opdi_cu_fold_down<1>(f, &s, (typename F::State *)scratch);
        if (threadIdx.y == 0 && row < r.outer) { opdi_cu_reduce_put(r, f, row, s, false); }
    }
}

//== plans =============================================================================================================

/* Returns a mask with one bit for each reduced dim.  An empty list means that all dims are reduced. */
static uint64_t opdi_cu_dims_mask(opd_ints dims, int ndim) {
    uint64_t mask = dims.n ? 0 : ~(uint64_t)0;
    for (int64_t i = 0; i < dims.n; i++) {
        const int64_t d = dims.data[i];
        mask |= (uint64_t)1 << (d < 0 ? d + ndim : d);
    }
    return mask;
}
/* Lists the dims of x that are in `mask` or, if `in` is false, those that are not, innermost first.  Sorts them by
   stride unless `ordered` is true.  Returns their number. */
static int opdi_cu_dims_order(const opd_tensor *x, uint64_t mask, bool in, bool ordered, int *dims) {
    const int64_t *sizes = opd_sizes(x), *strides = opd_strides(x);
    int n = 0, i;
    for (int d = opd_ndim(x) - 1; d >= 0; d--) {
        if ((mask >> d & 1) != in || sizes[d] == 1) { continue; }
        for (i = n++; i > 0 && !ordered && strides[dims[i - 1]] > strides[d]; i--) { dims[i] = dims[i - 1]; }
        dims[i] = d;
    }
    return n;
}
/* Describes in *r the reduction of the dims of x in `mask`, with the results y0 and y1; y1 may be NULL.  If `ordered`
   is true, the order of the elements stays.  Returns 0, or -1 (without an error) if there are too many dims. */
static int opdi_cu_reduce_plan(opdi_cu_reduction *r, const opd_tensor *x, uint64_t mask, opd_tensor *y0, opd_tensor *y1,
                               bool ordered) {
    const int64_t *sizes = opd_sizes(x), *strides = opd_strides(x);
    opd_tensor *const outs[2] = {y0, y1 ? y1 : y0};
    const bool keep = opd_ndim(y0) == opd_ndim(x);
    int dims[OPD_MAX_DIMS], at[OPD_MAX_DIMS], m, i, k, n = 0;
    memset(r, 0, sizeof *r);
    r->x = opdi_cu_data<char>(x);
    r->dtype = opd_dtype(x);
    r->bytes = (int)opd_dtype_size(opd_dtype(x));
    for (i = 0; i < opd_ndim(x); i++) { at[i] = keep ? i : mask >> i & 1 ? 0 : n++; }
    r->n = r->outer = 1;
    m = opdi_cu_dims_order(x, mask, true, ordered, dims);
    for (i = 0; i < m; i++) {
        const int64_t size = sizes[dims[i]], stride = strides[dims[i]];
        const int last = r->nred - 1;
        r->n *= size;
        if (last >= 0 && r->rstride[last] * r->rsize[last] == stride) { r->rsize[last] *= size; continue; }
        if (r->nred == OPDI_CU_REDUCE_DIMS) { return -1; }
        r->rsize[r->nred] = size; r->rstride[r->nred++] = stride;
    }
    m = opdi_cu_dims_order(x, mask, false, false, dims);
    for (i = 0; i < m; i++) {
        const int64_t size = sizes[dims[i]], stride = strides[dims[i]];
        const int last = r->nkept - 1;
        bool join = last >= 0 && r->kstride[last] * r->ksize[last] == stride;
        r->outer *= size;
        for (k = 0; k < 2 && join; k++) {
            join = r->ostride[k][last] * r->ksize[last] == opd_strides(outs[k])[at[dims[i]]];
        }
        if (join) { r->ksize[last] *= size; continue; }
        if (r->nkept == OPDI_CU_REDUCE_DIMS) { return -1; }
        for (k = 0; k < 2; k++) { r->ostride[k][r->nkept] = opd_strides(outs[k])[at[dims[i]]]; }
        r->ksize[r->nkept] = size; r->kstride[r->nkept++] = stride;
    }
    if (r->nred == 0) { r->rsize[r->nred++] = 1; }
    r->far = r->nred > 1 && r->n > INT32_MAX;
    for (i = 0; i < r->nred && r->nred > 1 && !r->far && r->n > 0; i++) {
        r->by[i] = opdi_cu_divide_by((uint32_t)r->rsize[i]);
    }
    if (r->nkept == 0) { r->ksize[r->nkept++] = 1; }
    for (k = 0; k < 2; k++) { r->out.data[k] = opdi_cu_data<void>(outs[k]); r->out.dtype[k] = opd_dtype(outs[k]); }
    r->chunk = r->n; r->chunks = 1;
    return 0;
}
/* Returns whether each load of W elements begins at a multiple of W.  Loads go along the innermost reduced dim if
   `rows` is true, otherwise along the innermost kept dim; its stride is 1.  Another dim may also have stride 1, if
   elements are used more than once. */
static bool opdi_cu_reduce_even(const opdi_cu_reduction *r, int W, bool rows) {
    bool even = (uintptr_t)r->x / (size_t)r->bytes % (size_t)W == 0 && (rows ? r->rsize : r->ksize)[0] % W == 0;
    for (int d = rows; d < r->nred; d++) { even = even && r->rstride[d] % W == 0; }
    for (int d = !rows; d < r->nkept; d++) { even = even && r->kstride[d] % W == 0; }
    return even;
}
/* If there would be fewer than 512 blocks, cuts rows into chunks, so that there are about 1,024 blocks.  A chunk has at
   least `least` elements. */
static void opdi_cu_reduce_cut(opdi_cu_reduction *r, int64_t blocks, int64_t least) {
    int64_t chunks = blocks < 512 ? 1024 / blocks : 1;
    if (chunks > r->n / least) { chunks = r->n / least; }
    if (chunks <= 1) { return; }
    r->chunk = opdi_cu_ceil(opdi_cu_ceil(r->n, chunks), 16) * 16;
    r->chunks = (int)opdi_cu_ceil(r->n, r->chunk);
}
template <class T, class F> static int opdi_cu_reduce_launch(opdi_cu_reduction *r, F f) {
    typedef typename F::State S;
    const int W = opdi_cu_reader<T>::W, U = 4;
    const bool rows = r->rsize[0] > 1 && (r->rstride[0] == 1 || (r->kstride[0] != 1 && r->rstride[0] <= r->kstride[0])),
        rows1 = rows || r->outer == 1;
    bool vec;
    dim3 grid, block;
    size_t shared = 0;
    if (rows1) {
        int lanes = 1, down;
        vec = !r->odd && r->rstride[0] == 1 &&
            (r->nred == 1 ? r->n >= 2 * W : opdi_cu_reduce_even(r, W, true));
        while (lanes < OPDI_CU_WARP && lanes * 2 * (vec ? W : 1) <= r->n) { lanes *= 2; }
        while (lanes >= OPDI_CU_WARP && lanes < 256 && r->outer * lanes < 512 * 1024 &&
               (int64_t)lanes * 2 * (vec ? W : 1) * U <= r->n) { lanes *= 2; }
        down = lanes < 256 ? 256 / lanes : 1;
        if (lanes > OPDI_CU_WARP) { down = 1; }
        block = dim3((unsigned)lanes, (unsigned)down);
        opdi_cu_reduce_cut(r, opdi_cu_ceil(r->outer, down), (int64_t)lanes * (vec ? W : 1) * U * 2);
        grid = opdi_cu_grid_rows(opdi_cu_ceil(r->outer, down));
    } else {
        int wide = 1, down = 1, N;
        int64_t columns, items;
        vec = !r->odd && r->kstride[0] == 1 && opdi_cu_reduce_even(r, W, false);
        N = vec ? W : 1;
        columns = r->ksize[0] / N;
        while (wide < 32 && wide < columns) { wide *= 2; }
        while (wide * down < 256 && r->n >= (int64_t)down * 2 * U) { down *= 2; }
        while (wide * down < 256 && wide < columns) { wide *= 2; }
        block = dim3((unsigned)wide, (unsigned)down);
        shared = (size_t)(down / 2) * (size_t)(wide * N) * sizeof(S);
        items = opdi_cu_ceil(columns, wide) * (r->outer / r->ksize[0]);
        opdi_cu_reduce_cut(r, items, (int64_t)down * U * 4);
        grid = opdi_cu_grid_rows(items);
    }
    grid.y = (unsigned)r->chunks;
    if (r->chunks > 1 && !(r->states = opdi_cu_scratch(r->outer * r->chunks * (int64_t)sizeof(S)))) { return -1; }
    if (opdi_cu_launch(rows1 ? vec ? opdi_cu_reduce_rows<T, F, true> : opdi_cu_reduce_rows<T, F, false>
                       : vec ? opdi_cu_reduce_columns<T, F, true> : opdi_cu_reduce_columns<T, F, false>,
                       grid, block, shared, *r, f)) { return -1; }
    if (r->chunks == 1) { return 0; }
    block = dim3(1, 1);
    while (block.x < OPDI_CU_WARP && block.x < r->outer) { block.x *= 2; }
    while (block.x * block.y < 512 && (int)block.y < r->chunks) { block.y *= 2; }
    return opdi_cu_launch(opdi_cu_reduce_chunks<F>, opdi_cu_grid_rows(opdi_cu_ceil(r->outer, block.x)), block,
                          block.x * (block.y / 2) * sizeof(S), *r, f);
}
/* The kinds of dtypes that a fold supports: floating, integers, complex.  Other dtypes have been converted before. */
enum { OPDI_CU_F = 1, OPDI_CU_I = 2, OPDI_CU_FI = 3, OPDI_CU_C = 4, OPDI_CU_FIC = 7 };
template <template <class> class F, int KINDS> static int opdi_cu_reduce_typed(opdi_cu_reduction *r, opdi_cu_fold how) {
    const bool integers = opd_dtype_is_integral((opd_scalar_type)r->dtype, true);
    if constexpr ((KINDS & OPDI_CU_I) != 0) {
        if (integers) { const F<int64_t> f = {how}; return opdi_cu_reduce_launch<opdi_cu_integers>(r, f); }
    }
    if constexpr ((KINDS & OPDI_CU_F) != 0) {
        switch (r->dtype) {
            case OPD_FLOAT32: { const F<float> f = {how}; return opdi_cu_reduce_launch<float>(r, f); }
            case OPD_FLOAT64: { const F<double> f = {how}; return opdi_cu_reduce_launch<double>(r, f); }
            case OPD_FLOAT16:
            case OPD_BFLOAT16: { const F<float> f = {how}; return opdi_cu_reduce_launch<opdi_cu_halves>(r, f); }
            default: break;
        }
    }
    if constexpr ((KINDS & OPDI_CU_C) != 0) {
        const F<opdi_cu_c128> f = {how};
        if (r->dtype == OPD_COMPLEX64) { return opdi_cu_reduce_launch<opdi_cu_c64>(r, f); }
        if (r->dtype == OPD_COMPLEX128) { return opdi_cu_reduce_launch<opdi_cu_c128>(r, f); }
    }
    return opdi_cu_no_dtype((opd_scalar_type)r->dtype);
}
/* Reduces the dims of x in `mask` by the fold F, to the results y0 and y1; y1 may be NULL.  `ordered`: see
   opdi_cu_reduce_plan.  Returns 0, or -1 and sets an error. */
template <template <class> class F, int KINDS>
static int opdi_cu_reduce(opd_tensor *x, uint64_t mask, opd_tensor *y0, opd_tensor *y1, opdi_cu_fold how,
                          bool ordered) {
    opdi_cu_reduction r;
    if (!x || !y0) { return -1; }
    if (opd_numel(y0) == 0) { return 0; }
    if (opdi_cu_reduce_plan(&r, x, mask, y0, y1, ordered)) {
        x = opd_contiguous(x);
        if (!x || opdi_cu_reduce_plan(&r, x, mask, y0, y1, ordered)) {
            return opd_ok() ? opd_fail(OPD_ERROR_SHAPE, "this reduction has too many dimensions for CUDA") : -1;
        }
    }
    how.n = r.n;
    if (KINDS == OPDI_CU_I && !opd_dtype_is_integral((opd_scalar_type)r.dtype, true)) {     /* only the bits are read */
        how.flag = 65 - 8 * r.bytes;
        r.dtype = r.bytes == 8 ? OPD_INT64 : r.bytes == 4 ? OPD_INT32 : OPD_INT16;
    }
    return opdi_cu_reduce_typed<F, KINDS>(&r, how);
}
static opdi_cu_fold opdi_cu_fold_make(int kind, int flag = 0, double p = 0) {
    const opdi_cu_fold how = {p, 0, kind, flag};
    return how;
}
/* Converts x for a fold whose result has dtype `dtype`: for bool, to bool; for an integer result, floats become int64;
   for a floating result, integers become floats; between real and complex numbers, to dtype.  Returns NULL and sets an
   error if it fails. */
static opd_tensor *opdi_cu_reduce_input(opd_tensor *x, opd_scalar_type dtype) {
    if (x && (opd_dtype_is_complex(dtype) || opd_dtype_is_complex(opd_dtype(x)))) { return opd_to_dtype(x, dtype); }
    if (dtype == OPD_BOOL) { return opd_to_dtype(x, OPD_BOOL); }
    const bool whole = x && opd_dtype_is_integral(opd_dtype(x), true);
    if (opd_dtype_is_integral(dtype, true)) { return whole ? x : opd_to_dtype(x, OPD_INT64); }
    if (dtype == OPD_FLOAT64) { return opd_to_dtype(x, OPD_FLOAT64); }
    return whole ? opd_to_dtype(x, OPD_FLOAT32) : x;
}

//== sum, nansum, mean, prod ===========================================================================================

template <template <class> class F, int KINDS = OPDI_CU_FIC>
static int opdi_cu_sum_of(opd_call *call, opd_ints dims, int kind) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    return opdi_cu_reduce<F, KINDS>(opdi_cu_reduce_input(x, opd_dtype(y)), opdi_cu_dims_mask(dims, opd_ndim(x)), y,
                                       NULL, opdi_cu_fold_make(kind), false);
}
static opd_ints opdi_cu_no_dims() { return opd_ints_of(NULL, 0); }
static int opdi_cu_sum_all(opd_call *call) { return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opdi_cu_no_dims(), 0); }
static int opdi_cu_sum_dim(opd_call *call) { return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opd_arg_ints(call, 1), 0); }
static int opdi_cu_nansum(opd_call *call) {
    const opd_scalar_type dtype = opd_dtype(opd_arg_tensor(call, 0));
    if (opd_dtype_is_integral(dtype, true) || opd_dtype_is_integral(opd_arg_dtype(call, 3, dtype), true)) {
        return opdi_cu_sum_dim(call);
    }
    return opdi_cu_sum_of<opdi_cu_fold_mapped, OPDI_CU_F>(call, opd_arg_ints(call, 1), OPDI_CU_PLAIN);
}
static int opdi_cu_mean_all(opd_call *call) {
    return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opdi_cu_no_dims(), OPDI_CU_MEAN);
}
static int opdi_cu_mean_dim(opd_call *call) {
    return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opd_arg_ints(call, 1), OPDI_CU_MEAN);
}
static int opdi_cu_prod_all(opd_call *call) { return opdi_cu_sum_of<opdi_cu_fold_prod>(call, opdi_cu_no_dims(), 0); }
static int opdi_cu_prod_dim(opd_call *call) {
    const int64_t dim = opd_arg_int(call, 1);
    return opdi_cu_sum_of<opdi_cu_fold_prod>(call, opd_ints_of(&dim, 1), 0);
}
/* Runs trace: sums the diagonal, which is a view with one dim. */
static int opdi_cu_trace(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    int64_t n, stride;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    n = opd_size(x, 0) < opd_size(x, 1) ? opd_size(x, 0) : opd_size(x, 1);
    stride = opd_strides(x)[0] + opd_strides(x)[1];
    x = opd_tensor_view(x, &n, &stride, 1, opd_tensor_offset(x));
    return opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_FIC>(x, ~(uint64_t)0, y, NULL, opdi_cu_fold_make(0), false);
}

/* Runs hash_tensor: the exclusive or of the bits of elements, which are converted to double or int64_t. */
static int opdi_cu_hash_tensor(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const bool whole = opd_dtype_is_integral(opd_dtype(x), true);
    if (opd_results_from_fake(call)) { return -1; }
    y = opd_view_dtype(opdi_cu_result(call, 0), OPD_INT64);
    x = opd_to_dtype(x, whole ? OPD_INT64 : OPD_FLOAT64);
    if (!whole) { x = opd_view_dtype(x, OPD_INT64); }
    return !x || !y ? -1
        : opdi_cu_reduce<opdi_cu_fold_xor, OPDI_CU_I>(x, opdi_cu_dims_mask(opd_arg_ints(call, 1), opd_ndim(x)), y, NULL,
                                                      opdi_cu_fold_make(0), false);
}

//== var, std ==========================================================================================================

/* Does the work of opdi_cu_var_of for complex numbers: adds the variances of the real and imaginary parts. */
static int opdi_cu_var_complex(opd_call *call, int kind) {
    opd_tensor *x = opd_arg_tensor(call, 0), *parts = opd_view_as_real(x), *var = NULL;
    opd_value args[4], one;
    if (opd_results_from_fake(call)) { return -1; }
    memcpy(args, opd_call_args(call), sizeof args);
    for (int part = 0; part < 2 && parts; part++) {
        args[0] = opd_value_tensor(opd_select(parts, -1, part));
        if (!args[0].u.t || opd_call_all(opd_find("aten::var.correction"), &one, args, 4)) { return -1; }
        var = part ? opd_add(var, one.u.t) : one.u.t;
    }
    if (!var || !opd_copy_(opdi_cu_result(call, 0), kind & 1 ? opd_sqrt(var) : var)) { return -1; }
    return kind < 2 || opd_copy_(opdi_cu_result(call, 1), opd_mean_dim(x, opd_arg_ints(call, 1), opd_arg_bool(call, 3)))
        ? 0 : -1;
}
static int opdi_cu_var_of(opd_call *call, int kind) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_dtype_is_complex(opd_dtype(x))) { return opdi_cu_var_complex(call, kind); }
    const opd_value c = opd_call_args(call)[2];
    const double correction = c.tag == OPD_TAG_NONE ? 1.0 : c.tag == OPD_TAG_FLOAT ? c.u.d : (double)c.u.i;
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_var, OPDI_CU_F>(x, opdi_cu_dims_mask(opd_arg_ints(call, 1), opd_ndim(x)),
                                                   opdi_cu_result(call, 0), kind >= 2 ? opdi_cu_result(call, 1) : NULL,
                                                   opdi_cu_fold_make(kind, 0, correction), false);
}
static int opdi_cu_var(opd_call *call) { return opdi_cu_var_of(call, 0); }
static int opdi_cu_std(opd_call *call) { return opdi_cu_var_of(call, 1); }
static int opdi_cu_var_mean(opd_call *call) { return opdi_cu_var_of(call, 2); }
static int opdi_cu_std_mean(opd_call *call) { return opdi_cu_var_of(call, 3); }

//== max, min and their indices ========================================================================================

static int opdi_cu_extreme_of(opd_call *call, opd_ints dims, bool least) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_extreme, OPDI_CU_FI>(x, opdi_cu_dims_mask(dims, opd_ndim(x)),
                                                           opdi_cu_result(call, 0), NULL, opdi_cu_fold_make(0, least),
                                                           false);
}
static int opdi_cu_amax(opd_call *call) { return opdi_cu_extreme_of(call, opd_arg_ints(call, 1), false); }
static int opdi_cu_amin(opd_call *call) { return opdi_cu_extreme_of(call, opd_arg_ints(call, 1), true); }
static int opdi_cu_max_all(opd_call *call) { return opdi_cu_extreme_of(call, opdi_cu_no_dims(), false); }
static int opdi_cu_min_all(opd_call *call) { return opdi_cu_extreme_of(call, opdi_cu_no_dims(), true); }
/* Returns argument i, a dim or None for all dims, as a mask of dims. */
static uint64_t opdi_cu_dim_mask(opd_call *call, int i) {
    const int64_t dim = opd_arg_int(call, i);
    return opdi_cu_dims_mask(opd_ints_of(&dim, opd_arg_is_none(call, i) ? 0 : 1), opd_ndim(opd_arg_tensor(call, 0)));
}
static int opdi_cu_where_of(opd_call *call, bool index_only, bool least) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_where, OPDI_CU_FI>(x, opdi_cu_dim_mask(call, 1), opdi_cu_result(call, 0),
                                                    index_only ? NULL : opdi_cu_result(call, 1),
                                                    opdi_cu_fold_make(index_only, least), true);
}
static int opdi_cu_max_dim(opd_call *call) { return opdi_cu_where_of(call, false, false); }
static int opdi_cu_min_dim(opd_call *call) { return opdi_cu_where_of(call, false, true); }
static int opdi_cu_argmax(opd_call *call) { return opdi_cu_where_of(call, true, false); }
static int opdi_cu_argmin(opd_call *call) { return opdi_cu_where_of(call, true, true); }
static int opdi_cu_aminmax(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 2; i++) {
        if (opdi_cu_reduce<opdi_cu_fold_extreme, OPDI_CU_FI>(x, opdi_cu_dim_mask(call, 1), opdi_cu_result(call, i),
                                                                 NULL, opdi_cu_fold_make(0, i == 0),
                                                                 false)) { return -1; }
    }
    return 0;
}

//== any, all, count_nonzero, equal ====================================================================================

/* Counts the elements that are not 0.  kind 0: the result is their number; 1: whether there are any; 2: whether all
   elements are not 0.  Returns 0, or -1 and sets an error. */
static int opdi_cu_count_of(opd_call *call, uint64_t mask, int kind) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    if (opd_dtype_is_complex(opd_dtype(x))) { x = opd_ne_Scalar(x, opd_value_int(0)); }
    return opdi_cu_reduce<opdi_cu_fold_count, OPDI_CU_I>(x, mask, opdi_cu_result(call, 0), NULL,
                                                    opdi_cu_fold_make(kind), false);
}
static uint64_t opdi_cu_dims_of(opd_call *call, int i) {
    return opdi_cu_dims_mask(opd_arg_ints(call, i), opd_ndim(opd_arg_tensor(call, 0)));
}
static int opdi_cu_any_all(opd_call *call) { return opdi_cu_count_of(call, ~(uint64_t)0, 1); }
static int opdi_cu_any_dim(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dim_mask(call, 1), 1); }
static int opdi_cu_any_dims(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dims_of(call, 1), 1); }
static int opdi_cu_all_all(opd_call *call) { return opdi_cu_count_of(call, ~(uint64_t)0, 2); }
static int opdi_cu_all_dim(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dim_mask(call, 1), 2); }
static int opdi_cu_all_dims(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dims_of(call, 1), 2); }
static int opdi_cu_count_dim(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dim_mask(call, 1), 0); }
static int opdi_cu_count_dims(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dims_of(call, 1), 0); }
static int opdi_cu_equal(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *all;
    bool same = opd_ndim(a) == opd_ndim(b);
    if (opd_dtype(a) != opd_dtype(b)) {
        return opd_fail(OPD_ERROR_DTYPE,
                        "Expected object of data type %s but got data type %s for argument 'other' in call to equal",
                        opd_dtype_name(opd_dtype(a)), opd_dtype_name(opd_dtype(b)));
    }
    for (int d = 0; d < opd_ndim(a) && same; d++) { same = opd_sizes(a)[d] == opd_sizes(b)[d]; }
    if (!same) { return opd_return_bool(call, false); }
    all = opd_all(opd_eq(a, b));
    return all ? opd_return_bool(call, opd_item_i64(all) != 0) : -1;
}

//== norms, logsumexp ==================================================================================================

/* Returns whether argument i is complex.  Kernels that compute in a real type leave such calls to the CPU. */
static bool opdi_cu_is_complex(opd_call *call, int i) {
    return opd_dtype_is_complex(opd_dtype(opd_arg_tensor(call, i)));
}
static int opdi_cu_norm_of(opd_call *call, opd_ints dims) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const opd_value v = opd_call_args(call)[1];
    const double p = v.tag == OPD_TAG_NONE ? 2.0 : v.tag == OPD_TAG_FLOAT ? v.u.d : (double)v.u.i;
    const uint64_t mask = opdi_cu_dims_mask(dims, opd_ndim(x));
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (opd_dtype_is_complex(opd_dtype(x))) { x = opd_abs(x); }
    x = opdi_cu_reduce_input(x, opd_dtype(y));
    if (p == 0) { return opdi_cu_reduce<opdi_cu_fold_count, OPDI_CU_I>(x, mask, y, NULL, opdi_cu_fold_make(0), false); }
    if (p == 1 || p == 2) {
        const opdi_cu_fold how = p == 1 ? opdi_cu_fold_make(OPDI_CU_PLAIN, OPDI_CU_ABS)
            : opdi_cu_fold_make(OPDI_CU_ROOT, OPDI_CU_SQUARE);
        return opdi_cu_reduce<opdi_cu_fold_mapped, OPDI_CU_F>(x, mask, y, NULL, how, false);
    }
    if (p - p != 0) {                             /* p is infinite */
        return opdi_cu_reduce<opdi_cu_fold_extreme, OPDI_CU_FI>(x, mask, y, NULL, opdi_cu_fold_make(1, p < 0), false);
    }
    if (opd_dtype(x) == OPD_FLOAT16 || opd_dtype(x) == OPD_BFLOAT16) { x = opd_to_dtype(x, OPD_FLOAT32); }
    x = x ? opd_pow_Tensor_Scalar(opd_abs(x), opd_value_double(p)) : NULL;
    return opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_F>(x, mask, y, NULL, opdi_cu_fold_make(OPDI_CU_ROOT_P, 0, p),
                                                       false);
}
static int opdi_cu_norm_all(opd_call *call) { return opdi_cu_norm_of(call, opdi_cu_no_dims()); }
static int opdi_cu_norm_dims(opd_call *call) { return opdi_cu_norm_of(call, opd_arg_ints(call, 2)); }
static int opdi_cu_logsumexp(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const uint64_t mask = opdi_cu_dims_of(call, 1);
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    return opdi_cu_reduce<opdi_cu_fold_lse, OPDI_CU_F>(opdi_cu_reduce_input(x, opd_dtype(y)), mask, y, NULL,
                                                       opdi_cu_fold_make(0), false);
}

//== assertions ========================================================================================================

__global__ void opdi_cu_assert_kernel(const bool *holds, opdi_cu_guard guard) { if (!*holds) { guard.note(0, 0); } }
/* Returns a copy of text that is never freed, as a kernel may note it at any time.  After many texts, returns the text
   of assertions without one. */
static const char *opdi_cu_kept_text(const char *text) {
    static std::mutex lock;
    static std::set<std::string> *const kept = new std::set<std::string>();
    try {
        std::lock_guard<std::mutex> guard(lock);
        if (kept->count(text) || kept->size() < 1000) { return kept->insert(text).first->c_str(); }
    } catch (const std::exception &) { }
    return "Expected Tensor with single nonzero value, but got zero";
}
/* Checks that argument 0, a number, is not 0.  The host does not wait, but a later wait fails.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_assert_that(opd_call *call, const char *text) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const holds = opd_ne_Scalar(self, opd_value_int(0));
    if (opd_numel(self) != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Boolean value of Tensor with %s is ambiguous",
                        opd_numel(self) ? "more than one value" : "no values");
    }
    return !holds ? -1 : opdi_cu_launch(opdi_cu_assert_kernel, dim3(1), dim3(1), 0, opdi_cu_data<const bool>(holds),
                                        opdi_cu_guard_of(call, opdi_cu_kept_text(text)));
}
static int opdi_cu_assert_async(opd_call *call) {
    return opdi_cu_assert_that(call, "Expected Tensor with single nonzero value, but got zero");
}
static int opdi_cu_assert_async_text(opd_call *call) { return opdi_cu_assert_that(call, opd_arg_str(call, 1)); }
static int opdi_cu_functional_assert(opd_call *call) {
    return opdi_cu_assert_async_text(call) ? -1 : opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 2)));
}

static const opdi_cu_registration opdi_cu_table_reductions[] = {
    {"sum", opdi_cu_sum_all}, {"sum.dim_IntList", opdi_cu_sum_dim}, {"nansum", opdi_cu_nansum},
    {"mean", opdi_cu_mean_all}, {"mean.dim", opdi_cu_mean_dim}, {"prod", opdi_cu_prod_all},
    {"prod.dim_int", opdi_cu_prod_dim}, {"trace", opdi_cu_trace}, {"hash_tensor", opdi_cu_hash_tensor},
    {"_assert_async", opdi_cu_assert_async}, {"_assert_async.msg", opdi_cu_assert_async_text},
    {"_functional_assert_async.msg", opdi_cu_functional_assert},
    {"var.correction", opdi_cu_var}, {"std.correction", opdi_cu_std}, {"var_mean.correction", opdi_cu_var_mean},
    {"std_mean.correction", opdi_cu_std_mean},
    {"amax", opdi_cu_amax}, {"amin", opdi_cu_amin}, {"max", opdi_cu_max_all}, {"min", opdi_cu_min_all},
    {"max.dim", opdi_cu_max_dim}, {"min.dim", opdi_cu_min_dim}, {"argmax", opdi_cu_argmax}, {"argmin", opdi_cu_argmin},
    {"aminmax", opdi_cu_aminmax},
    {"any", opdi_cu_any_all}, {"any.dim", opdi_cu_any_dim}, {"any.dims", opdi_cu_any_dims},
    {"all", opdi_cu_all_all}, {"all.dim", opdi_cu_all_dim}, {"all.dims", opdi_cu_all_dims},
    {"count_nonzero", opdi_cu_count_dim}, {"count_nonzero.dim_IntList", opdi_cu_count_dims}, {"equal", opdi_cu_equal},
    {"linalg_vector_norm", opdi_cu_norm_dims}, {"norm.Scalar", opdi_cu_norm_all},
    {"norm.ScalarOpt_dtype", opdi_cu_norm_all}, {"norm.ScalarOpt_dim", opdi_cu_norm_dims},
    {"norm.ScalarOpt_dim_dtype", opdi_cu_norm_dims}, {"logsumexp", opdi_cu_logsumexp},
    {NULL, NULL}};

