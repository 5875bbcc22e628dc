//== sorting ===========================================================================================================
//
//  Rows of pairs (key, index) are sorted.  Keys are unsigned numbers in the order of the values: NaN is greater than
//  all numbers, -0 equals 0, and all bits are inverted for descending order.  If keys are equal, the index decides, so
//  each sorting method is stable.  Rows of up to 2,048 elements are sorted by a bitonic network in shared memory, as
//  tiles of several rows if they are short.

#define OPDI_CU_SORTED 2048

template <typename T> struct opdi_cu_key_of { typedef uint32_t K; };
template <> struct opdi_cu_key_of<int64_t> { typedef uint64_t K; };
template <> struct opdi_cu_key_of<double> { typedef uint64_t K; };
static __device__ __forceinline__ uint64_t opdi_cu_key(int64_t v) { return (uint64_t)v ^ (uint64_t)1 << 63; }
static __device__ __forceinline__ uint64_t opdi_cu_key(double v) {
    const uint64_t u = (uint64_t)__double_as_longlong(v == 0 ? 0.0 : v);
    return v != v ? ~(uint64_t)0 : u >> 63 ? ~u : u | (uint64_t)1 << 63;
}
static __device__ __forceinline__ uint32_t opdi_cu_key(int32_t v) { return (uint32_t)v ^ 0x80000000u; }
static __device__ __forceinline__ uint32_t opdi_cu_key(float v) {
    const uint32_t u = __float_as_uint(v == 0 ? 0.0f : v);
    return v != v ? ~(uint32_t)0 : u >> 31 ? ~u : u | 0x80000000u;
}
/* The type from which a key is made: float for 16-bit floats, int32_t for bool and integers of up to 32 bits. */
template <typename T> struct opdi_cu_key_from { typedef int32_t type; };
template <> struct opdi_cu_key_from<int64_t> { typedef int64_t type; };
template <> struct opdi_cu_key_from<double> { typedef double type; };
template <> struct opdi_cu_key_from<float> { typedef float type; };
template <> struct opdi_cu_key_from<opdi_cu_f16> { typedef float type; };
template <> struct opdi_cu_key_from<opdi_cu_bf16> { typedef float type; };

/* The arguments for sorting rows of n elements.  Either the first k elements of each row are written to values and
   places [rows][k], or the whole sorted rows are left in keys and index. */
template <typename T> struct opdi_cu_sort {
    typedef typename opdi_cu_key_of<T>::K K;
    const T *x;
    int64_t rows, n, k;
    const uint32_t *picked;                       /* if not NULL, [rows][n] positions in rows of `line` elements: only
                                                     these are sorted */
    int64_t line;
    bool descending;
    K *keys;                                      /* NULL: values and places are written */
    uint32_t *index;
    T *values;
    int64_t *places;
};
template <typename T>
__device__ __forceinline__ typename opdi_cu_key_of<T>::K opdi_cu_key_made(const opdi_cu_sort<T> &s, T v) {
    const typename opdi_cu_key_of<T>::K key = opdi_cu_key(opdi_cu_cast<typename opdi_cu_key_from<T>::type>(v));
    return s.descending ? ~key : key;
}
template <typename T>
__device__ __forceinline__ typename opdi_cu_key_of<T>::K opdi_cu_key_at(const opdi_cu_sort<T> &s, int64_t row,
                                                                        int64_t at) {
    return opdi_cu_key_made(s, s.x[row * s.line + at]);
}
/* Sorts tiles, one per block.  A tile has tile / seg rows of n <= seg elements. */
template <typename T> __global__ void opdi_cu_sort_tiles(const opdi_cu_sort<T> s, int tile, int seg) {
    typedef typename opdi_cu_key_of<T>::K K;
    OPDI_CU_SHARED(scratch);
    K *keys = (K *)scratch;
    uint32_t *index = (uint32_t *)(keys + tile);
    const int64_t rows = tile / seg, tiles = opdi_cu_ceil(s.rows, rows);       /* rows: number of rows per tile */
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row0 = t * rows;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < tile; i += (int)blockDim.x) {
            const int64_t row = row0 + i / seg, at = i % seg;
            keys[i] = ~(K)0; index[i] = ~(uint32_t)0;
            if (row < s.rows && at < s.n) {
                const uint32_t place = s.picked ? s.picked[row * s.n + at] : (uint32_t)at;
                keys[i] = opdi_cu_key_at(s, row, place);
                index[i] = place;
            }
        }
        for (int size = 2; size <= seg; size *= 2) {
            for (int apart = size / 2; apart > 0; apart /= 2) {
                __syncthreads();
                for (int p = (int)threadIdx.x; p < tile / 2; p += (int)blockDim.x) {
                    const int i = 2 * p - (p & (apart - 1)), j = i + apart;       /* apart: a power of two */
                    const K a = keys[i], b = keys[j];
                    const uint32_t c = index[i], d = index[j];
                    const bool later = a > b || (a == b && c > d), up = !(i & size & (seg - 1));
                    if (later == up) { keys[i] = b; keys[j] = a; index[i] = d; index[j] = c; }
                }
            }
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < tile; i += (int)blockDim.x) {
            const int64_t row = row0 + i / seg, at = i % seg;
            if (row >= s.rows || at >= s.n) { continue; }
            if (s.keys) { s.keys[row * s.n + at] = keys[i]; s.index[row * s.n + at] = index[i]; }
            else if (at < s.k) {
                s.values[row * s.k + at] = s.x[row * s.line + index[i]];
                s.places[row * s.k + at] = index[i];
            }
        }
    }
}
//== sorting long rows by radix ========================================================================================
//
//  Rows of pairs (element, index) are sorted digit by digit of 8 bits, beginning with the lowest digit; each pass is
//  stable.  An element is stored as an unsigned number of its size, in the order of the values, from which the value
//  can be made again.  Only the digits see -0 as 0 and each NaN as the greatest number, so that ties are decided by the
//  order in which they came.  A row of up to a tile is sorted by one block in shared memory.  Longer rows are cut into
//  tiles.  One kernel counts the digits of all passes.  A pass is one kernel: a block ranks the digits of its tile,
//  publishes its counts, and adds the counts of the tiles before it, which their blocks publish (a tile waits only for
//  tiles whose blocks have begun).

enum { OPDI_CU_RADIX = 256, OPDI_CU_RADIX_THREADS = 512, OPDI_CU_RADIX_WARPS = OPDI_CU_RADIX_THREADS / OPDI_CU_WARP };

/* The unsigned type of so many bytes. */
template <int bytes> struct opdi_cu_radix_bits;
template <> struct opdi_cu_radix_bits<1> { typedef uint8_t type; };
template <> struct opdi_cu_radix_bits<2> { typedef uint16_t type; };
template <> struct opdi_cu_radix_bits<4> { typedef uint32_t type; };
template <> struct opdi_cu_radix_bits<8> { typedef uint64_t type; };
/* Elements as unsigned numbers: `in` makes the number, `out` makes the element again, and `digits` returns the number
   whose digits are sorted. */
template <typename T> struct opdi_cu_radix_key {
    typedef typename opdi_cu_radix_bits<sizeof(T)>::type K;
    static constexpr bool floating = std::is_same<T, float>::value || std::is_same<T, double>::value ||
        std::is_same<T, opdi_cu_f16>::value || std::is_same<T, opdi_cu_bf16>::value;
    static constexpr bool negative = floating || (std::is_signed<T>::value && !std::is_same<T, bool>::value);
    static constexpr K top = (K)((K)1 << (sizeof(K) * 8 - 1));
    /* the largest key of a number that is not NaN: that of infinity */
    static constexpr K last = (K)(top | (sizeof(T) == 8 ? (K)0x7ff0000000000000ull : sizeof(T) == 4 ? (K)0x7f800000u
                                         : std::is_same<T, opdi_cu_f16>::value ? (K)0x7c00u : (K)0x7f80u));
    static __device__ __forceinline__ K in(T v) {
        K k;
        memcpy(&k, &v, sizeof k);
        return !negative ? k : floating && (k & top) ? (K)~k : (K)(k ^ top);
    }
    static __device__ __forceinline__ T out(K k) {
        T v;
        if (negative) { k = floating && !(k & top) ? (K)~k : (K)(k ^ top); }
        memcpy(&v, &k, sizeof v);
        return v;
    }
    static __device__ __forceinline__ K digits(K k, bool descending) {
        if (floating) { k = k > last || k < (K)~last ? (K)~(K)0 : k == (K)(top - 1) ? top : k; }
        return descending ? (K)~k : k;
    }
};
/* How many elements a thread sorts: of a row that fits into a block, and of a tile; and how many blocks with tiles
   share a multiprocessor (two leave 64 registers to a thread; with smaller integers, the compiler needs some more). */
template <typename T> struct opdi_cu_radix_each {
    enum {
        of_row = sizeof(T) == 8 ? 8 : 16, of_tile = sizeof(T) == 8 ? 6 : 12,
        blocks = sizeof(T) == 8 || opdi_cu_radix_key<T>::floating ? 2 : 1
    };
};
/* The memory that a block shares. */
template <typename K, int E> struct opdi_cu_radix_shared {
    uint32_t counts[OPDI_CU_RADIX_WARPS][OPDI_CU_RADIX];      /* of each digit in a warp's elements, then in all warps
                                                                 before */
    uint32_t first[OPDI_CU_RADIX], sums[OPDI_CU_WARP];        /* first: the rank of the first element with a digit */
    uint32_t to[OPDI_CU_RADIX];                               /* where the element of rank 0 would be written, if it had
                                                                 this digit, modulo 2^32 */
    unsigned tile;
    union { K keys[OPDI_CU_RADIX_THREADS * E]; uint32_t index[OPDI_CU_RADIX_THREADS * E]; } u;
};
/* Adds to rank[e], whose low 16 bits are 0, the rank of the thread's element e, with the digit digit_of(e), among the
   block's elements, which are in the order of their positions: element e of lane l of warp w is at
   w * 32 * E + e * 32 + l.  Returns how many elements have the digit threadIdx.x; s->first[threadIdx.x] is the rank of
   the first. */
template <typename K, int E, typename F>
__device__ __forceinline__ uint32_t opdi_cu_radix_rank(opdi_cu_radix_shared<K, E> *s, uint32_t *rank,
                                                       const F &digit_of) {
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP, me = (int)threadIdx.x;
    uint32_t *counts = s->counts[warp], sum = 0, all;
    for (int d = lane; d < OPDI_CU_RADIX; d += OPDI_CU_WARP) { counts[d] = 0; }
    __syncwarp();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const uint32_t digit = digit_of(e);
        unsigned alike = OPDI_CU_ALL_LANES;
        OPDI_CU_UNROLL
        for (int b = 0; b < 8; b++) {
            const unsigned yes = __ballot_sync(OPDI_CU_ALL_LANES, digit >> b & 1);
            alike &= digit >> b & 1 ? yes : ~yes;
        }
        const int before = __popc(alike & ((1u << lane) - 1));
        const uint32_t was = counts[digit];
        __syncwarp();
        if (before == 0) { counts[digit] = was + (uint32_t)__popc(alike); }
        __syncwarp();
        rank[e] += was + (uint32_t)before;
    }
    __syncthreads();
    if (me < OPDI_CU_RADIX) {
        OPDI_CU_UNROLL
        for (int w = 0; w < OPDI_CU_RADIX_WARPS; w++) {
            const uint32_t of = s->counts[w][me];
            s->counts[w][me] = sum;
            sum += of;
        }
    }
    all = sum;
    for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
        const uint32_t left = __shfl_up_sync(OPDI_CU_ALL_LANES, all, d);
        if (lane >= d) { all += left; }
    }
    if (lane == OPDI_CU_WARP - 1) { s->sums[warp] = all; }
    __syncthreads();
    if (me < OPDI_CU_RADIX) {
        for (int w = 0; w < warp; w++) { all += s->sums[w]; }
        s->first[me] = all - sum;
    }
    __syncthreads();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) { rank[e] += s->first[digit_of(e)] + counts[digit_of(e)]; }
    return sum;
}
/* Writes the element at place `at` of the sorted row `row`, or its key. */
template <typename T>
__device__ __forceinline__ void opdi_cu_radix_put(const opdi_cu_sort<T> &s, int64_t row, int64_t at, T v) {
    if (s.keys) { s.keys[row * s.n + at] = opdi_cu_key_made(s, v); }
    else if (at < s.k) { s.values[row * s.k + at] = v; }
}
/* Writes the index of the element at place `at` of the sorted row `row`. */
template <typename T>
__device__ __forceinline__ void opdi_cu_radix_put_index(const opdi_cu_sort<T> &s, int64_t row, int64_t at, uint32_t i) {
    if (s.keys) { s.index[row * s.n + at] = i; }
    else if (at < s.k) { s.places[row * s.k + at] = i; }
}
/* Sorts rows of at most OPDI_CU_RADIX_THREADS * E elements, one per block. */
template <typename T, int E> __global__ void __launch_bounds__(OPDI_CU_RADIX_THREADS)
opdi_cu_radix_rows(const opdi_cu_sort<T> s) {
    typedef opdi_cu_radix_key<T> R;
    typedef typename R::K K;
    OPDI_CU_SHARED(scratch);
    opdi_cu_radix_shared<K, E> *shared = (opdi_cu_radix_shared<K, E> *)scratch;
    const int lane = threadIdx.x % OPDI_CU_WARP, from = (int)threadIdx.x / OPDI_CU_WARP * OPDI_CU_WARP * E + lane;
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        K key[E];
        uint32_t index[E];                        /* the index of the element in the high half; its rank in the low */
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) {
            const int at = from + e * OPDI_CU_WARP;
            index[e] = (uint32_t)at << 16;
            key[e] = at < s.n ? R::in(s.x[row * s.n + at]) : K(0);
        }
        OPDI_CU_ROLLED
        for (int shift = 0; shift < (int)sizeof(K) * 8; shift += 8) {
            (void)opdi_cu_radix_rank<K, E>(shared, index, [&](int e) {            /* places behind the row stay there */
                const uint32_t digit = (uint32_t)(R::digits(key[e], s.descending) >> shift) & 255;
                return from + e * OPDI_CU_WARP < s.n ? digit : 255u;
            });
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { shared->u.keys[index[e] & 0xffff] = key[e]; }
            __syncthreads();
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { key[e] = shared->u.keys[from + e * OPDI_CU_WARP]; }
            __syncthreads();
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { shared->u.index[index[e] & 0xffff] = index[e] & 0xffff0000u; }
            __syncthreads();
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { index[e] = shared->u.index[from + e * OPDI_CU_WARP]; }
        }
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) {
            const int at = from + e * OPDI_CU_WARP;
            if (at >= s.n) { continue; }
            opdi_cu_radix_put(s, row, at, R::out(key[e]));
            opdi_cu_radix_put_index(s, row, at, index[e] >> 16);
        }
        __syncthreads();
    }
}
/* The passes over long rows.  keys and index [2][rows][n]: a pass reads one half and writes the other; the first reads
   s.x, the last writes the results of s.  counts: [rows][passes][256], the number of elements with each digit, then
   with smaller digits.  words: [tiles][256], the published counts: the low 32 bits are a count, the high 32 bits are
   2 * pass + 1 if it is the tile's own, 2 * pass + 2 if it includes all tiles of the row before.  tickets: [passes]. */
template <typename T> struct opdi_cu_radix_long {
    opdi_cu_sort<T> s;
    typename opdi_cu_radix_key<T>::K *keys;
    uint32_t *index, *counts, *tickets;
    unsigned long long *words;
    int64_t tiles, chunk;                         /* tiles: of a row; chunk: elements that a block counts */
};
template <typename T> __global__ void __launch_bounds__(OPDI_CU_RADIX_THREADS)
opdi_cu_radix_count(const opdi_cu_radix_long<T> p) {
    typedef opdi_cu_radix_key<T> R;
    const int passes = (int)sizeof(T), step = OPDI_CU_RADIX_THREADS, U = 4;
    __shared__ unsigned counts[sizeof(T) * OPDI_CU_RADIX];
    for (int64_t row = blockIdx.y; row < p.s.rows; row += gridDim.y) {
        const int64_t begin = blockIdx.x * p.chunk, end = begin + p.chunk < p.s.n ? begin + p.chunk : p.s.n;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < passes * OPDI_CU_RADIX; i += step) { counts[i] = 0; }
        __syncthreads();
        OPDI_CU_ROLLED
        for (int64_t at = begin + threadIdx.x; at < end; at += U * step) {
            T v[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { v[u] = p.s.x[row * p.s.n + (at + u * step < end ? at + u * step : at)]; }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const typename R::K k = R::digits(R::in(v[u]), p.s.descending);
                OPDI_CU_UNROLL
                for (int i = 0; i < passes; i++) {
                    if (at + u * step < end) { atomicAdd(&counts[i * OPDI_CU_RADIX + (int)(k >> i * 8 & 255)], 1u); }
                }
            }
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < passes * OPDI_CU_RADIX; i += step) {
            if (counts[i]) { atomicAdd(&p.counts[row * passes * OPDI_CU_RADIX + i], counts[i]); }
        }
    }
}
/* Replaces the counts of each pass by the number of elements with smaller digits; a block of 256 threads processes one
   pass of a row. */
static __global__ void __launch_bounds__(256) opdi_cu_radix_sums(uint32_t *counts, int64_t n) {
    __shared__ uint32_t sums[OPDI_CU_RADIX / OPDI_CU_WARP];
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const uint32_t mine = counts[i * OPDI_CU_RADIX + threadIdx.x];
        uint32_t all = mine;
        for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
            const uint32_t left = __shfl_up_sync(OPDI_CU_ALL_LANES, all, d);
            if (lane >= d) { all += left; }
        }
        __syncthreads();
        if (lane == OPDI_CU_WARP - 1) { sums[warp] = all; }
        __syncthreads();
        for (int w = 0; w < warp; w++) { all += sums[w]; }
        counts[i * OPDI_CU_RADIX + threadIdx.x] = all - mine;
    }
}
/* Publishes that `mine` elements of tile number `tile` have the calling thread's digit, and returns how many have it in
   the tiles of the row before it, `before` of them. */
template <typename T>
__device__ __forceinline__ uint32_t opdi_cu_radix_before(const opdi_cu_radix_long<T> &p, int pass, int64_t tile,
                                                         int64_t before, uint32_t mine) {
    volatile unsigned long long *word = p.words + tile * OPDI_CU_RADIX + threadIdx.x;
    const unsigned long long own = (unsigned long long)(2 * pass + 1) << 32, all = own + ((unsigned long long)1 << 32);
    uint32_t sum = 0;
    if (before > 0) { *word = own | mine; }
    for (int64_t k = 1; k <= before; k++) {
        volatile unsigned long long *const other = p.words + (tile - k) * OPDI_CU_RADIX + threadIdx.x;
        unsigned long long got = *other;
        while (got < own) { got = *other; }
        sum += (uint32_t)got;
        if (got >= all) { break; }
    }
    *word = all | (sum + mine);
    return sum;
}
template <typename T, int E> __global__ void
__launch_bounds__(OPDI_CU_RADIX_THREADS, opdi_cu_radix_each<T>::blocks)
opdi_cu_radix_pass(const opdi_cu_radix_long<T> p, int pass) {
    typedef opdi_cu_radix_key<T> R;
    typedef typename R::K K;
    OPDI_CU_SHARED(scratch);
    opdi_cu_radix_shared<K, E> *shared = (opdi_cu_radix_shared<K, E> *)scratch;
    const int lane = threadIdx.x % OPDI_CU_WARP, shift = pass * 8, passes = (int)sizeof(K);
    const int from = (int)threadIdx.x / OPDI_CU_WARP * OPDI_CU_WARP * E + lane, whole = OPDI_CU_RADIX_THREADS * E;
    if (threadIdx.x == 0) { shared->tile = atomicAdd(p.tickets + pass, 1u); }
    __syncthreads();
    const int64_t tile = shared->tile, row = tile / p.tiles, before = tile - row * p.tiles, at0 = before * whole;
    const int64_t half = p.s.rows * p.s.n, base = row * p.s.n + at0, in = base + (pass % 2 ? 0 : half);
    const int many = p.s.n - at0 < whole ? (int)(p.s.n - at0) : whole;
    K key[E];
    uint32_t rank[E];
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const int at = from + e * OPDI_CU_WARP;
        rank[e] = 0;
        key[e] = at >= many ? K(0) : pass == 0 ? R::in(p.s.x[base + at]) : p.keys[in + at];
    }
    const uint32_t mine = opdi_cu_radix_rank<K, E>(shared, rank, [&](int e) {
        const uint32_t digit = (uint32_t)(R::digits(key[e], p.s.descending) >> shift) & 255;
        return from + e * OPDI_CU_WARP < many ? digit : 255u;                    /* behind the row: ranked last */
    });
    if (threadIdx.x < OPDI_CU_RADIX) {
        const uint32_t others = opdi_cu_radix_before(p, pass, tile, before, mine);
        shared->to[threadIdx.x] = p.counts[(row * passes + pass) * OPDI_CU_RADIX + threadIdx.x] + others -
            shared->first[threadIdx.x];
    }
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) { shared->u.keys[rank[e]] = key[e]; }
    __syncthreads();
    const int64_t out = row * p.s.n + (pass % 2 ? half : 0);
    uint32_t to[E];
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {                 /* neighbours write to neighbouring places */
        const int at = (int)threadIdx.x + e * OPDI_CU_RADIX_THREADS;
        const K k = shared->u.keys[at];
        to[e] = shared->to[(uint32_t)(R::digits(k, p.s.descending) >> shift) & 255] + (uint32_t)at;
        if (at >= many) { continue; }
        if (pass + 1 < passes) { p.keys[out + to[e]] = k; }
        else { opdi_cu_radix_put(p.s, row, to[e], R::out(k)); }
    }
    __syncthreads();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const int at = from + e * OPDI_CU_WARP;
        shared->u.index[rank[e]] = pass == 0 ? (uint32_t)(at0 + at) : at < many ? p.index[in + at] : 0;
    }
    __syncthreads();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const int at = (int)threadIdx.x + e * OPDI_CU_RADIX_THREADS;
        const uint32_t i = shared->u.index[at];
        if (at >= many) { continue; }
        if (pass + 1 < passes) { p.index[out + to[e]] = i; } else { opdi_cu_radix_put_index(p.s, row, to[e], i); }
    }
}
/* Sorts rows of more than one tile; s->keys, s->index or s->values, s->places have memory for the results.  Returns 0,
   or -1 and sets an error. */
template <typename T, int E> static int opdi_cu_radix_run(const opdi_cu_sort<T> *s) {
    typedef typename opdi_cu_radix_key<T>::K K;
    const int64_t passes = (int64_t)sizeof(T), all = s->rows * s->n, tile = OPDI_CU_RADIX_THREADS * E;
    opdi_cu_radix_long<T> p;
    p.s = *s;
    p.tiles = opdi_cu_ceil(s->n, tile);
    const int64_t words = s->rows * p.tiles * OPDI_CU_RADIX * 8, counts = s->rows * passes * OPDI_CU_RADIX * 4;
    char *zeros = (char *)opdi_cu_scratch(words + counts + passes * 4);
    p.keys = (K *)opdi_cu_scratch(passes > 1 ? 2 * all * (int64_t)sizeof(K) : 1);
    p.index = (uint32_t *)opdi_cu_scratch(passes > 1 ? 2 * all * 4 : 1);
    if (!zeros || !p.keys || !p.index) { return -1; }
    if (s->rows * p.tiles > INT32_MAX) {
        return opd_fail(OPD_ERROR_SHAPE, "sorting %lld elements at once is not implemented on CUDA", (long long)all);
    }
    p.words = (unsigned long long *)zeros;
    p.counts = (uint32_t *)(zeros + words);
    p.tickets = (uint32_t *)(zeros + words + counts);
    OPDI_CU_TRY(cudaMemsetAsync(zeros, 0, (size_t)(words + counts + passes * 4), opdi_cu_stream()), "sort");
    const int64_t chunks = opdi_cu_ceil(1024, s->rows), most = opdi_cu_ceil(s->n, 8192);
    p.chunk = opdi_cu_ceil(s->n, chunks < most ? chunks : most);
    const dim3 grid((unsigned)opdi_cu_ceil(s->n, p.chunk), s->rows < 65535 ? (unsigned)s->rows : 65535u);
    if (opdi_cu_launch(opdi_cu_radix_count<T>, grid, dim3(OPDI_CU_RADIX_THREADS), 0, p) ||
        opdi_cu_launch(opdi_cu_radix_sums, opdi_cu_grid_rows(s->rows * passes), dim3(256), 0, p.counts,
                       s->rows * passes)) { return -1; }
    for (int pass = 0; pass < (int)passes; pass++) {
        if (opdi_cu_launch(opdi_cu_radix_pass<T, E>, dim3((unsigned)(s->rows * p.tiles)), dim3(OPDI_CU_RADIX_THREADS),
                           sizeof(opdi_cu_radix_shared<K, E>), p, pass)) { return -1; }
    }
    return 0;
}
/* Sorts all rows.  If `keep` is true, leaves the sorted rows in s->keys and s->index; otherwise writes s->values and
   s->places.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_sort_run(opdi_cu_sort<T> *s, bool keep) {
    typedef typename opdi_cu_key_of<T>::K K;
    enum { E = opdi_cu_radix_each<T>::of_row };
    typedef opdi_cu_radix_shared<typename opdi_cu_radix_key<T>::K, E> shared;
    int seg = 1, tile;
    while (seg < s->n && seg < OPDI_CU_SORTED) { seg *= 2; }
    tile = seg;
    while (tile < OPDI_CU_SORTED && tile / seg < s->rows) { tile *= 2; }
    s->keys = NULL; s->index = NULL;
    if (s->n >= (int64_t)~(uint32_t)0) {
        return opd_fail(OPD_ERROR_SHAPE, "sorting along a dimension of %lld elements is not implemented on CUDA",
                        (long long)s->n);
    }
    if (keep) {
        s->keys = (K *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(K));
        s->index = (uint32_t *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(uint32_t));
        if (!s->keys || !s->index) { return -1; }
    }
    if (s->n > OPDI_CU_RADIX_THREADS * E) { return opdi_cu_radix_run<T, opdi_cu_radix_each<T>::of_tile>(s); }
    if (s->n > OPDI_CU_SORTED) {
        return opdi_cu_launch(opdi_cu_radix_rows<T, E>, opdi_cu_grid_rows(s->rows), dim3(OPDI_CU_RADIX_THREADS),
                              sizeof(shared), *s);
    }
    return opdi_cu_launch(opdi_cu_sort_tiles<T>, opdi_cu_grid_rows(opdi_cu_ceil(s->rows, tile / seg)),
                          dim3(tile / 4 < 64 ? 64 : (unsigned)tile / 4),
                          (size_t)tile * (sizeof(K) + sizeof(uint32_t)), *s, tile, seg);
}
//== selecting the first k elements of long rows, or the k-th ==========================================================
//
//  The k-th element of a row is found without sorting, digit by digit of 11 bits: first the digits of the key, then
//  those of the index.  Because of the index, no two elements are equal, and ties are decided as by a stable sort.  For
//  each digit, a kernel counts the elements whose higher digits match those found so far; if there are few rows,
//  several blocks share a row.  Another kernel then picks the digit of the k-th element.  To get the first k elements,
//  all elements up to the k-th are gathered in any order, and sorted as one tile.  The counts are integers, so results
//  are the same each time.

enum { OPDI_CU_DIGIT_BITS = 11, OPDI_CU_DIGITS = 1 << OPDI_CU_DIGIT_BITS, OPDI_CU_SELECT_THREADS = 512 };
/* The state of the search for a row's k-th element: its highest digits found so far (key, index), and how many elements
   with these digits come before it (before).  done: all elements with these digits are among the first k, so that no
   more digits are needed.  gathered: number of elements gathered. */
typedef struct opdi_cu_found { uint64_t key; uint32_t index, before; int32_t done, gathered; } opdi_cu_found;
enum { OPDI_CU_DIGIT_OF_KEY, OPDI_CU_DIGIT_OF_INDEX, OPDI_CU_DIGIT_NAN };
typedef struct opdi_cu_select {
    opdi_cu_found *found;                         /* [rows] */
    unsigned *counts;                             /* [rows][OPDI_CU_DIGITS]; all 0 before and after each digit */
    uint32_t *picked;                             /* [rows][k] */
    int64_t chunk;                                /* elements of a row that a block processes */
    int what, shift, bits;                        /* what: a member of the enum above; shift, bits: the digit in it */
} opdi_cu_select;

/* Calls f(position, key) for the calling thread's share of the block's chunk of a row. */
template <typename T, typename F>
__device__ __forceinline__ void opdi_cu_select_each(const opdi_cu_sort<T> &s, int64_t row, int64_t chunk, const F &f) {
    const int64_t begin = blockIdx.x * chunk, end = begin + chunk < s.n ? begin + chunk : s.n;
    const int U = 4, step = OPDI_CU_SELECT_THREADS;
    OPDI_CU_ROLLED
    for (int64_t at = begin + threadIdx.x; at < end; at += U * step) {
        T v[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { v[u] = s.x[row * s.n + (at + u * step < end ? at + u * step : at)]; }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (at + u * step < end) { f((uint32_t)(at + u * step), opdi_cu_key_made(s, v[u])); }
        }
    }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_SELECT_THREADS)
opdi_cu_select_count(const opdi_cu_sort<T> s, const opdi_cu_select k) {
    typedef typename opdi_cu_key_of<T>::K K;
    __shared__ unsigned counts[OPDI_CU_DIGITS];
    for (int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
        const opdi_cu_found f = k.found[row];
        const int top = k.shift + k.bits;
        const uint64_t key = f.key >> (top < 64 ? top : 0);
        if (f.done) { continue; }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < OPDI_CU_DIGITS; i += OPDI_CU_SELECT_THREADS) { counts[i] = 0; }
        __syncthreads();
        opdi_cu_select_each(s, row, k.chunk, [&](uint32_t at, K of) {
            const uint64_t x = k.what == OPDI_CU_DIGIT_OF_INDEX ? at : of;
            bool alike = top >= 64 || x >> top == key;
            if (k.what == OPDI_CU_DIGIT_OF_INDEX) {
                alike = (uint64_t)of == f.key && (top >= 32 || at >> top == f.index >> top);
            }
            if (k.what == OPDI_CU_DIGIT_NAN) { alike = of == ~(K)0; }
            const uint64_t digit = k.what == OPDI_CU_DIGIT_NAN ? 0 : x >> k.shift & ((1u << k.bits) - 1);
            if (alike) { atomicAdd(&counts[digit], 1u); }
        });
        __syncthreads();
        for (int i = (int)threadIdx.x; i < OPDI_CU_DIGITS; i += OPDI_CU_SELECT_THREADS) {
            if (counts[i]) { atomicAdd(&k.counts[row * OPDI_CU_DIGITS + i], counts[i]); }
        }
    }
}
/* Begins the search for element number kth of each row, counted from 1.  If kth is 0, it is the median, as in
   opdi_cu_sort_pick. */
static __global__ void opdi_cu_select_start(const opdi_cu_select k, int64_t rows, int64_t n, int64_t kth, bool skip) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const opdi_cu_found none = {0, 0, 0, 0, 0};
    if (row >= rows) { return; }
    const int64_t numbers = n - (int64_t)k.counts[row * OPDI_CU_DIGITS];
    k.counts[row * OPDI_CU_DIGITS] = 0;
    k.found[row] = none;
    k.found[row].before = (uint32_t)(kth ? kth - 1 : numbers == n ? (n - 1) / 2 : !skip ? numbers : numbers == 0 ? 0
                                     : (numbers - 1) / 2);
}
/* Picks the digit of the wanted element; a block processes one row.  If `early` is true, the search ends when all
   elements with these digits are among the first k. */
static __global__ void __launch_bounds__(256) opdi_cu_select_digit(const opdi_cu_select k, bool early) {
    __shared__ unsigned warps[8];
    const int each = OPDI_CU_DIGITS / 256, lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    unsigned *counts = k.counts + (int64_t)blockIdx.x * OPDI_CU_DIGITS + threadIdx.x * each;
    opdi_cu_found *f = k.found + blockIdx.x;
    const unsigned before = f->before;
    unsigned mine[each], sum = 0, all, from;
    if (f->done) { return; }
    OPDI_CU_UNROLL
    for (int i = 0; i < each; i++) { mine[i] = counts[i]; sum += mine[i]; counts[i] = 0; }
    all = sum;
    for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
        const unsigned left = __shfl_up_sync(OPDI_CU_ALL_LANES, all, d);
        if (lane >= d) { all += left; }
    }
    if (lane == OPDI_CU_WARP - 1) { warps[warp] = all; }
    __syncthreads();
    from = all - sum;
    for (int w = 0; w < warp; w++) { from += warps[w]; }
    OPDI_CU_UNROLL
    for (int i = 0; i < each; i++) {
        if (before >= from && before - from < mine[i]) {
            const uint64_t digit = (uint64_t)(threadIdx.x * each + i) << k.shift;
            if (k.what == OPDI_CU_DIGIT_OF_KEY) { f->key |= digit; } else { f->index |= (uint32_t)digit; }
            f->before = before - from;
            if (early && before - from + 1 == mine[i]) {
                const uint64_t rest = ((uint64_t)1 << k.shift) - 1;
                f->done = 1;
                if (k.what == OPDI_CU_DIGIT_OF_KEY) { f->key |= rest; f->index = ~(uint32_t)0; }
                else { f->index |= (uint32_t)rest; }
            }
        }
        from += mine[i];
    }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_SELECT_THREADS)
opdi_cu_select_gather(const opdi_cu_sort<T> s, const opdi_cu_select k) {
    for (int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
        const uint64_t last = k.found[row].key;       /* not the whole struct, as other threads change `gathered` */
        const uint32_t index = k.found[row].index;
        opdi_cu_select_each(s, row, k.chunk, [&](uint32_t at, typename opdi_cu_key_of<T>::K key) {
            if (key < last || (key == last && at <= index)) {
                const int slot = atomicAdd(&k.found[row].gathered, 1);
                if (slot < s.k) { k.picked[row * s.k + slot] = at; }
            }
        });
    }
}
template <typename T> __global__ void opdi_cu_select_emit(const opdi_cu_sort<T> s, const opdi_cu_select k) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= s.rows) { return; }
    s.values[row] = s.x[row * s.n + k.found[row].index];
    if (s.places) { s.places[row] = k.found[row].index; }
}
/* Returns the number of bits of v, without leading zeros. */
static int opdi_cu_bits(uint64_t v) {
    int bits = 0;
    for (; v; v >>= 1) { bits++; }
    return bits;
}
/* Returns whether it is less work to select the first k of n elements than to sort all. */
static bool opdi_cu_select_pays(int64_t n, int64_t k) {
    return n >= 8 * OPDI_CU_SORTED && k <= OPDI_CU_SORTED && n < (int64_t)~(uint32_t)0;
}
/* Finds element number kth of each row, counted from 1, or, if kth is 0, the median.  `floating`: there may be NaN.
   `skip`: see opdi_cu_sort_pick; `early`: see opdi_cu_select_digit.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_select_run(const opdi_cu_sort<T> *s, opdi_cu_select *k, int64_t kth,
                                                    bool floating, bool skip, bool early) {
    const int64_t chunks = opdi_cu_ceil(2048, s->rows), most = s->n / 8192;
    const int of[2] = {(int)sizeof(typename opdi_cu_key_of<T>::K) * 8, opdi_cu_bits((uint64_t)s->n - 1)};
    k->chunk = opdi_cu_ceil(s->n, chunks < most ? chunks : most);
    k->found = (opdi_cu_found *)opdi_cu_scratch(s->rows * (int64_t)sizeof(opdi_cu_found));
    k->counts = (unsigned *)opdi_cu_scratch(s->rows * OPDI_CU_DIGITS * 4);
    if (!k->found || !k->counts) { return -1; }
    OPDI_CU_TRY(cudaMemsetAsync(k->found, 0, (size_t)s->rows * sizeof(opdi_cu_found), opdi_cu_stream()), "topk");
    OPDI_CU_TRY(cudaMemsetAsync(k->counts, 0, (size_t)s->rows * OPDI_CU_DIGITS * 4, opdi_cu_stream()), "topk");
    const dim3 grid((unsigned)opdi_cu_ceil(s->n, k->chunk), s->rows < 65535 ? (unsigned)s->rows : 65535u);
    k->what = OPDI_CU_DIGIT_NAN; k->shift = k->bits = 0;
    if (kth == 0 && floating &&
        opdi_cu_launch(opdi_cu_select_count<T>, grid, OPDI_CU_SELECT_THREADS, 0, *s, *k)) { return -1; }
    if (opdi_cu_launch(opdi_cu_select_start, (unsigned)opdi_cu_ceil(s->rows, 64), 64, 0, *k, s->rows, s->n, kth,
                       skip)) { return -1; }
    for (k->what = OPDI_CU_DIGIT_OF_KEY; k->what <= OPDI_CU_DIGIT_OF_INDEX; k->what++) {
        for (int left = of[k->what]; left > 0; left = k->shift) {
            k->bits = left < OPDI_CU_DIGIT_BITS ? left : OPDI_CU_DIGIT_BITS;
            k->shift = left - k->bits;
            if (opdi_cu_launch(opdi_cu_select_count<T>, grid, OPDI_CU_SELECT_THREADS, 0, *s, *k) ||
                opdi_cu_launch(opdi_cu_select_digit, (unsigned)s->rows, 256, 0, *k, early)) { return -1; }
        }
    }
    return 0;
}
/* Writes the first s->k elements of each row, sorted, to s->values and s->places.  Returns 0, or -1 and sets an
   error. */
template <typename T> static int opdi_cu_select_first(opdi_cu_sort<T> *s) {
    opdi_cu_select k;
    k.picked = (uint32_t *)opdi_cu_scratch(s->rows * s->k * 4);
    if (!k.picked || opdi_cu_select_run(s, &k, s->k, false, false, true)) { return -1; }
    const dim3 grid((unsigned)opdi_cu_ceil(s->n, k.chunk), s->rows < 65535 ? (unsigned)s->rows : 65535u);
    if (opdi_cu_launch(opdi_cu_select_gather<T>, grid, OPDI_CU_SELECT_THREADS, 0, *s, k)) { return -1; }
    s->picked = k.picked;
    s->n = s->k;
    return opdi_cu_sort_run(s, false);
}
template <typename T> static int opdi_cu_select_one(opdi_cu_sort<T> *s, int64_t kth, bool floating, bool skip) {
    opdi_cu_select k;
    k.picked = NULL;
    if (opdi_cu_select_run(s, &k, kth, floating, skip, false)) { return -1; }
    return opdi_cu_launch(opdi_cu_select_emit<T>, (unsigned)opdi_cu_ceil(s->rows, 64), 64, 0, *s, k);
}
/* Returns t with `dim` as its last dim: as a contiguous tensor if `copy` is true, otherwise as a view. */
static opd_tensor *opdi_cu_dim_last(opd_tensor *t, int64_t dim, bool copy) {
    if (t && opd_ndim(t) > 1) { t = opd_movedim(t, dim, -1); }
    return t && copy ? opd_contiguous(t) : t;
}
/* Writes the first k elements along dim (all, if k < 0), sorted, and their indices to the call's two results.  Returns
   0, or -1 and sets an error. */
static int opdi_cu_sort_of(opd_call *call, int64_t dim, int64_t k, bool descending) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out[2], *last[2], *staging[2];
    if (opd_results_from_fake(call)) { return -1; }
    x = opdi_cu_dim_last(x, dim, true);
    if (!x) { return -1; }
    for (int i = 0; i < 2; i++) {
        out[i] = opdi_cu_result(call, i);
        last[i] = opdi_cu_dim_last(out[i], dim, false);
        if (!last[i] || !(staging[i] = opdi_cu_staging(last[i]))) { return -1; }
    }
    if (opd_numel(out[0]) == 0) { return 0; }
    OPDI_CU_ALL(opd_dtype(x), T, {
        opdi_cu_sort<T> s;
        s.x = opdi_cu_data<T>(x);
        s.n = s.line = opd_ndim(x) ? opd_size(x, -1) : 1;
        s.rows = opd_numel(x) / s.n;
        s.picked = NULL;
        s.k = k < 0 ? s.n : k;
        s.descending = descending;
        s.values = opdi_cu_data<T>(staging[0]); s.places = opdi_cu_data<int64_t>(staging[1]);
        if (opdi_cu_select_pays(s.n, s.k) ? opdi_cu_select_first(&s) : opdi_cu_sort_run(&s, false)) { return -1; }
    })
    return opdi_cu_staging_store(last[0], staging[0]) || opdi_cu_staging_store(last[1], staging[1]) ? -1 : 0;
}
static int opdi_cu_sort_plain(opd_call *call) {
    return opdi_cu_sort_of(call, opd_arg_int(call, 1), -1, opd_arg_bool(call, 2));
}
static int opdi_cu_sort_stable(opd_call *call) {
    return opdi_cu_sort_of(call, opd_arg_int(call, 2), -1, opd_arg_bool(call, 3));
}
static int opdi_cu_topk(opd_call *call) {
    return opdi_cu_sort_of(call, opd_arg_int(call, 2), opd_arg_int(call, 1), opd_arg_bool(call, 3));
}

//== kthvalue, median, mode ============================================================================================

/* Picks element number k of each sorted row, counted from 1.  If k is 0, picks the median (of two, the lower).  The
   median is NaN if the row has a NaN; if `skip` is true, NaN is ignored. */
template <typename T> __global__ void opdi_cu_sort_pick(const opdi_cu_sort<T> s, int64_t k, bool floating, bool skip) {
    typedef typename opdi_cu_key_of<T>::K K;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < s.rows;
         row += (int64_t)gridDim.x * blockDim.x) {
        const K *keys = s.keys + row * s.n;
        int64_t at = k - 1;
        if (k == 0) {
            int64_t low = 0, high = s.n;          /* finds the first NaN */
            while (floating && low < high) {
                const int64_t mid = (low + high) / 2;
                if (keys[mid] == ~(K)0) { high = mid; } else { low = mid + 1; }
            }
            const int64_t numbers = high;
            at = numbers == s.n ? (s.n - 1) / 2 : !skip ? numbers : numbers == 0 ? 0 : (numbers - 1) / 2;
        }
        at = s.index[row * s.n + at];
        s.values[row] = s.x[row * s.n + at];
        if (s.places) { s.places[row] = at; }
    }
}
/* A run of `many` equal elements of a sorted row, which begins at `first`.  The mode is the value of the longest run
   (of several, the smallest value), and its index is that of the run's last element.  A block processes one row. */
typedef struct opdi_cu_run { int64_t many, first; } opdi_cu_run;
struct opdi_cu_run_join {
    __device__ __forceinline__ opdi_cu_run operator()(opdi_cu_run a, opdi_cu_run b) const {
        return b.many > a.many || (b.many == a.many && b.first < a.first) ? b : a;
    }
};
template <typename T> __global__ void opdi_cu_sort_mode(const opdi_cu_sort<T> s) {
    typedef typename opdi_cu_key_of<T>::K K;
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        const K *keys = s.keys + row * s.n;
        const opdi_cu_run none = {0, 0};
        opdi_cu_run best = none;
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
            int64_t low = i + 1, high, step = 1;
            const K key = keys[i];
            if (i > 0 && keys[i - 1] == key) { continue; }
            while (low + step <= s.n && keys[low + step - 1] == key) { low += step; step *= 2; }
            high = low + step - 1 < s.n ? low + step - 1 : s.n;   /* the run ends at a position from low to high */
            while (low < high) {
                const int64_t mid = (low + high) / 2;
                if (keys[mid] == key) { low = mid + 1; } else { high = mid; }
            }
            const opdi_cu_run run = {low - i, i};
            best = best.many == 0 ? run : opdi_cu_run_join()(best, run);
        }
        best = opdi_cu_block_reduce(best, opdi_cu_run_join(), none);
        if (threadIdx.x == 0) {
            const int64_t at = s.index[row * s.n + best.first + best.many - 1];
            s.values[row] = s.x[row * s.n + at];
            s.places[row] = at;
        }
    }
}
enum { OPDI_CU_PICK, OPDI_CU_MODE };
/* Picks one element from each row of x, a contiguous tensor whose last dim holds the rows: if `what` is OPDI_CU_PICK,
   element number k (see opdi_cu_sort_pick), otherwise the mode.  Writes the elements to `values` and, unless it is
   NULL, their indices to `places`.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pick_rows(opd_tensor *x, opd_tensor *values, opd_tensor *places, int what, int64_t k, bool skip) {
    OPDI_CU_ALL(opd_dtype(x), T, {
        opdi_cu_sort<T> s;
        s.x = opdi_cu_data<T>(x);
        s.n = s.line = opd_ndim(x) ? opd_size(x, -1) : 1;
        s.rows = opd_numel(x) / s.n;
        s.picked = NULL;
        s.k = 1;
        s.descending = false;
        s.values = opdi_cu_data<T>(values); s.places = places ? opdi_cu_data<int64_t>(places) : NULL;
        if (what == OPDI_CU_PICK && opdi_cu_select_pays(s.n, 1)) {
            return opdi_cu_select_one(&s, k, opd_dtype_is_floating(opd_dtype(x)), skip);
        }
        if (opdi_cu_sort_run(&s, true)) { return -1; }
        if (what == OPDI_CU_MODE) {
            return opdi_cu_launch(opdi_cu_sort_mode<T>, opdi_cu_grid_rows(s.rows), dim3(s.n < 256 ? 32 : 256), 0, s);
        }
        return opdi_cu_launch(opdi_cu_sort_pick<T>, opdi_cu_grid(s.rows, 64), dim3(64), 0, s, k,
                              opd_dtype_is_floating(opd_dtype(x)), skip);
    })
    return 0;
}
static int opdi_cu_pick_of(opd_call *call, int64_t dim, int what, int64_t k, bool skip) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out[2], *staging[2];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 2; i++) {
        out[i] = opdi_cu_result(call, i);
        if (!(staging[i] = opdi_cu_staging(out[i]))) { return -1; }
    }
    if (opd_numel(out[0]) == 0) { return 0; }
    x = opdi_cu_dim_last(x, dim, true);
    if (!x || opdi_cu_pick_rows(x, staging[0], staging[1], what, k, skip)) { return -1; }
    return opdi_cu_staging_store(out[0], staging[0]) || opdi_cu_staging_store(out[1], staging[1]) ? -1 : 0;
}
static int opdi_cu_kthvalue(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 2), OPDI_CU_PICK, opd_arg_int(call, 1), false);
}
static int opdi_cu_median_dim(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 1), OPDI_CU_PICK, 0, false);
}
static int opdi_cu_nanmedian_dim(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 1), OPDI_CU_PICK, 0, true);
}
static int opdi_cu_mode(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 1), OPDI_CU_MODE, 0, false);
}
/* Computes the median of all elements; `skip`: see opdi_cu_sort_pick.  If there are no elements, the result is NaN for
   floating types, the smallest number for int64 and int32, and 0 for other types.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_median_all(opd_call *call, bool skip) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const int64_t n = opd_numel(x);
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (n == 0) {
        const opd_scalar_type t = opd_dtype(x);
        return opd_fill_(y, opd_dtype_is_floating(t) ? opd_value_double((double)NAN)
                         : opd_value_int(t == OPD_INT64 ? INT64_MIN : t == OPD_INT32 ? INT32_MIN : 0)) ? 0 : -1;
    }
    x = opdi_cu_seen_as(opd_contiguous(x), &n, 1);
    return x ? opdi_cu_pick_rows(x, y, NULL, OPDI_CU_PICK, 0, skip) : -1;
}
static int opdi_cu_median(opd_call *call) { return opdi_cu_median_all(call, false); }
static int opdi_cu_nanmedian(opd_call *call) { return opdi_cu_median_all(call, true); }

static const opdi_cu_registration opdi_cu_table_scans[] = {
    {"cumsum", opdi_cu_cumsum}, {"cumprod", opdi_cu_cumprod}, {"logcumsumexp", opdi_cu_logcumsumexp},
    {"cummax", opdi_cu_cummax}, {"cummin", opdi_cu_cummin},
    {"sort", opdi_cu_sort_plain}, {"sort.stable", opdi_cu_sort_stable}, {"topk", opdi_cu_topk},
    {"kthvalue", opdi_cu_kthvalue}, {"median.dim", opdi_cu_median_dim}, {"nanmedian.dim", opdi_cu_nanmedian_dim},
    {"mode", opdi_cu_mode}, {"median", opdi_cu_median}, {"nanmedian", opdi_cu_nanmedian},
    {NULL, NULL}};

