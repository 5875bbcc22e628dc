//== sorting ===========================================================================================================
//
//  Rows of pairs (key, index) are sorted.  Keys are unsigned numbers in the order of the values: NaN is greater than
//  all numbers, -0 equals 0, and all bits are inverted for descending order.  If keys are equal, the index decides, so
//  each sorting method is stable.  Tiles are sorted by a bitonic network in shared memory; a tile has several rows if
//  they are short.  The tiles of longer rows are then merged.  Each pass doubles the length of the sorted runs, and a
//  block writes 2,048 elements of the result.

#define OPDI_CU_SORTED 2048
#define OPDI_CU_MERGE_THREADS 512

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
/* Sorts tiles, one per block.  A tile has `tile` elements: tile / seg rows of n <= seg elements or, if seg is tile, a
   piece of a longer row. */
template <typename T> __global__ void opdi_cu_sort_tiles(const opdi_cu_sort<T> s, int tile, int seg) {
    typedef typename opdi_cu_key_of<T>::K K;
    OPDI_CU_SHARED(scratch);
    K *keys = (K *)scratch;
    uint32_t *index = (uint32_t *)(keys + tile);
    const int64_t pieces = s.n > seg ? opdi_cu_ceil(s.n, seg) : 1, rows = tile / seg;      /* rows: number of rows per
                                                                                              tile */
    const int64_t tiles = s.n > seg ? s.rows * pieces : opdi_cu_ceil(s.rows, rows);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row0 = s.n > seg ? t / pieces : t * rows, at0 = s.n > seg ? t % pieces * seg : 0;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < tile; i += (int)blockDim.x) {
            const int64_t row = row0 + i / seg, at = at0 + i % seg;
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
            const int64_t row = row0 + i / seg, at = at0 + i % seg;
            if (row >= s.rows || at >= s.n) { continue; }
            if (s.keys) { s.keys[row * s.n + at] = keys[i]; s.index[row * s.n + at] = index[i]; }
            else if (at < s.k) {
                s.values[row * s.k + at] = s.x[row * s.line + index[i]];
                s.places[row * s.k + at] = index[i];
            }
        }
    }
}
/* Returns how many of the first `diag` elements of the merged runs a and b come from a.  If keys are equal, those of a
   come first. */
template <typename K>
__device__ __forceinline__ int64_t opdi_cu_merge_path(const K *a, int64_t na, const K *b, int64_t nb, int64_t diag) {
    int64_t low = diag > nb ? diag - nb : 0, high = diag < na ? diag : na;
    while (low < high) {
        const int64_t mid = (low + high) / 2;
        if (a[mid] <= b[diag - 1 - mid]) { low = mid + 1; } else { high = mid; }
    }
    return low;
}
/* Does the same as opdi_cu_merge_path, with a whole warp.  Its lanes compare at 32 places at a time, because each
   comparison waits for memory. */
template <typename K>
__device__ __forceinline__ int64_t opdi_cu_merge_path_warp(const K *a, int64_t na, const K *b, int64_t nb,
                                                           int64_t diag) {
    int64_t low = diag > nb ? diag - nb : 0, high = diag < na ? diag : na;
    while (low < high) {
        const int64_t begin = low, span = high - low;
        const int64_t mid = begin + span * (int64_t)(threadIdx.x % OPDI_CU_WARP) / OPDI_CU_WARP;
        const int yes = __popc(__ballot_sync(OPDI_CU_ALL_LANES, a[mid] <= b[diag - 1 - mid]));
        if (yes > 0) { low = begin + span * (yes - 1) / OPDI_CU_WARP + 1; }
        if (yes < OPDI_CU_WARP) { high = begin + span * yes / OPDI_CU_WARP; }
    }
    return low;
}
/* Merges neighbouring sorted runs of `width` elements in rows of n elements. */
template <typename K>
__global__ void __launch_bounds__(OPDI_CU_MERGE_THREADS)
opdi_cu_sort_merge(const K *keys, const uint32_t *index, K *to_keys, uint32_t *to_index, int64_t rows, int64_t n,
                   int64_t width) {
    __shared__ K k[OPDI_CU_SORTED];
    __shared__ uint32_t x[OPDI_CU_SORTED];
    __shared__ int64_t split[2];
    const int64_t pieces = opdi_cu_ceil(n, OPDI_CU_SORTED);
    for (int64_t t = blockIdx.x; t < rows * pieces; t += gridDim.x) {
        const int64_t row = t / pieces * n, out = t % pieces * OPDI_CU_SORTED, pair = out / (2 * width) * 2 * width;
        const int64_t na = n - pair < width ? n - pair : width, nb = n - pair - na < width ? n - pair - na : width;
        const K *a = keys + row + pair, *b = a + na;
        const int64_t from = out - pair, many = na + nb - from < OPDI_CU_SORTED ? na + nb - from : OPDI_CU_SORTED;
        __syncthreads();
        if (threadIdx.x < 2 * OPDI_CU_WARP) {
            const int end = threadIdx.x / OPDI_CU_WARP;
            const int64_t of = opdi_cu_merge_path_warp(a, na, b, nb, from + (end ? many : 0));
            if (threadIdx.x % OPDI_CU_WARP == 0) { split[end] = of; }
        }
        __syncthreads();
        const int ka = (int)(split[1] - split[0]), all = (int)many, kb = all - ka;
        const int64_t a0 = pair + split[0], b0 = pair + na + from - split[0];
        constexpr int each = OPDI_CU_SORTED / OPDI_CU_MERGE_THREADS, apart = OPDI_CU_MERGE_THREADS;
        const int me = (int)threadIdx.x, diag = me * each;
        K merged[each];
        uint32_t places[each];
        OPDI_CU_UNROLL
        for (int m = 0, i = me; m < each; m++, i += apart) {        /* all loads are in flight at once */
            const int64_t at = row + (i < ka ? a0 + i : b0 + i - ka);
            if (i < all) { merged[m] = keys[at]; places[m] = index[at]; }
        }
        OPDI_CU_UNROLL
        for (int m = 0, i = me; m < each; m++, i += apart) { if (i < all) { k[i] = merged[m]; x[i] = places[m]; } }
        __syncthreads();
        if (diag < all) {
            int i = (int)opdi_cu_merge_path(k, ka, k + ka, kb, diag), j = diag - i;
            OPDI_CU_UNROLL
            for (int m = 0; m < each; m++) {
                if (diag + m >= all) { break; }
                const bool first = j >= kb || (i < ka && k[i] <= k[ka + j]);
                const int at = first ? i++ : ka + j++;
                merged[m] = k[at];
                places[m] = x[at];
            }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int m = 0; m < each; m++) { if (diag + m < all) { k[diag + m] = merged[m]; x[diag + m] = places[m]; } }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int m = 0, i = me; m < each; m++, i += apart) {
            if (i < all) { to_keys[row + out + i] = k[i]; to_index[row + out + i] = x[i]; }
        }
    }
}
template <typename T> __global__ void opdi_cu_sort_emit(const opdi_cu_sort<T> s) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.rows * s.k;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = s.rows == 1 ? 0 : i / s.k, at = s.index[row * s.n + i - row * s.k];
        s.values[i] = s.x[row * s.n + at];
        s.places[i] = at;
    }
}
/* Sorts all rows.  If `keep` is true, leaves the sorted rows in s->keys and s->index; otherwise writes s->values and
   s->places.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_sort_run(opdi_cu_sort<T> *s, bool keep) {
    typedef typename opdi_cu_key_of<T>::K K;
    const bool longer = s->n > OPDI_CU_SORTED;
    int seg = 1, tile;
    unsigned threads;
    while (seg < s->n && seg < OPDI_CU_SORTED) { seg *= 2; }
    tile = seg;
    while (tile < OPDI_CU_SORTED && tile / seg < s->rows) { tile *= 2; }
    threads = tile / 4 < 64 ? 64 : (unsigned)tile / 4;
    s->keys = NULL; s->index = NULL;
    if (s->n >= (int64_t)~(uint32_t)0) {
        return opd_fail(OPD_ERROR_SHAPE, "sorting along a dimension of %lld elements is not implemented on CUDA",
                        (long long)s->n);
    }
    if (longer || keep) {
        s->keys = (K *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(K));
        s->index = (uint32_t *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(uint32_t));
        if (!s->keys || !s->index) { return -1; }
    }
    if (opdi_cu_launch(opdi_cu_sort_tiles<T>, opdi_cu_grid_rows(s->n > seg ? s->rows * opdi_cu_ceil(s->n, seg)
                                                                : opdi_cu_ceil(s->rows, tile / seg)), dim3(threads),
                       (size_t)tile * (sizeof(K) + sizeof(uint32_t)), *s, tile, seg)) { return -1; }
    if (longer) {
        K *keys = (K *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(K));
        uint32_t *index = (uint32_t *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(uint32_t));
        if (!keys || !index) { return -1; }
        for (int64_t width = OPDI_CU_SORTED; width < s->n; width *= 2) {
            K *const k = s->keys;
            uint32_t *const i = s->index;
            if (opdi_cu_launch(opdi_cu_sort_merge<K>, opdi_cu_grid_rows(s->rows * opdi_cu_ceil(s->n, OPDI_CU_SORTED)),
                               dim3(OPDI_CU_MERGE_THREADS), 0, (const K *)k, (const uint32_t *)i, keys, index, s->rows,
                               s->n, width)) { return -1; }
            s->keys = keys; s->index = index;
            keys = k; index = i;
        }
    }
    if (longer && !keep) {
        return opdi_cu_launch(opdi_cu_sort_emit<T>, opdi_cu_grid(s->rows * s->k, 256), dim3(256), 0, *s);
    }
    return 0;
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

