//----------------------------------------------------------------------------------------------------------------------
//  >>cu:copy        strided and converting copies
//----------------------------------------------------------------------------------------------------------------------

template <typename To, typename From> struct opdi_cu_pointwise_moved {
    static __device__ __forceinline__ To of(From v) { return opdi_cu_cast<To>(v); }
};
template <typename To, typename P> struct opdi_cu_pointwise_moved<To, opdi_cu_pair_of<P> > {
    static __device__ __forceinline__ To of(opdi_cu_pair_of<P> v) { return opdi_cu_cast<To>(v.re); }
};
template <typename P> struct opdi_cu_pointwise_moved<bool, opdi_cu_pair_of<P> > {
    static __device__ __forceinline__ bool of(opdi_cu_pair_of<P> v) { return v.re != 0 || v.im != 0; }
};
template <typename Q, typename From> struct opdi_cu_pointwise_moved<opdi_cu_pair_of<Q>, From> {
    static __device__ __forceinline__ opdi_cu_pair_of<Q> of(From v) {
        return opdi_cu_pair_of<Q>(opdi_cu_cast<Q>(v));
    }
};
template <typename Q, typename P> struct opdi_cu_pointwise_moved<opdi_cu_pair_of<Q>,
    opdi_cu_pair_of<P> > {
    static __device__ __forceinline__ opdi_cu_pair_of<Q> of(opdi_cu_pair_of<P> v) {
        return opdi_cu_pair_of<Q>(v);
    }
};

/* Copies elements of one dtype, contiguous or not.  Dtypes of the same size share a type T, from uint8_t to opdi_cu_16.
   If the source is NULL, writes `number` everywhere.  If `run` is true, w.n is the number of runs of 16 bytes; if there
   is only one dim, `rest` single elements follow the runs. */
template <typename T> struct opdi_cu_pointwise_move { opdi_cu_pointwise_walk w; T number; int32_t run, rest; };
template <typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_copy_same(const opdi_cu_pointwise_move<T> m) {
    constexpr int N = 16 / sizeof(T), U = 4;
    T *out = (T *)m.w.data[0];
    const T *in = (const T *)m.w.data[1];
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE, n = (uint32_t)m.w.n;
    uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
    if (m.run) {
        const bool repeated = m.w.strides[1][0] == 0;
        OPDI_CU_ROLLED
        for (; repeated && i < n; i += step) {
            opdi_cu_vector<T, N> v;
            int64_t at[2];
            opdi_cu_pointwise_offsets<2>(m.w, i * N, at);
            const T one = in ? in[at[1]] : m.number;
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) { v.at[j] = one; }
            opdi_cu_store_vector<N>(out + at[0], v);
        }
        OPDI_CU_ROLLED
        for (; !repeated && i < n; i += U * step) {
            uint4 v[U];
            int64_t at[U][2];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (i + u * step >= n) { continue; }
                opdi_cu_pointwise_offsets<2>(m.w, (i + u * step) * N, at[u]);
                v[u] = *reinterpret_cast<const uint4 *>(in + at[u][1]);
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (i + u * step < n) { *reinterpret_cast<uint4 *>(out + at[u][0]) = v[u]; }
            }
        }
        i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
        if (i < (uint32_t)m.rest) {
            const int64_t last = (int64_t)n * N + i;
            out[last] = !in ? m.number : repeated ? *in : in[last];
        }
        return;
    }
    OPDI_CU_ROLLED
    for (; i < n; i += U * step) {
        T v[U];
        int64_t at[U][2];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (i + u * step >= n) { continue; }
            opdi_cu_pointwise_offsets<2>(m.w, i + u * step, at[u]);
            v[u] = in ? in[at[u][1]] : m.number;
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { if (i + u * step < n) { out[at[u][0]] = v[u]; } }
    }
}
/* A transposition by tiles through shared memory.  The destination has stride 1 along dim 0, the source along dim 1.
   The other dims are batches.  blockIdx.x counts the tiles along dims 0 and 1, blockIdx.y the batches.  Tiles of short
   elements are larger, so that as many bytes are in flight as with long elements.  A row of a tile is padded by a word
   to avoid bank conflicts. */
__host__ __device__ constexpr int opdi_cu_turned_side(int size) { return size <= 2 ? 64 : 32; }
template <typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE, 4)
opdi_cu_copy_transposed(const opdi_cu_pointwise_walk w, int batches) {
    constexpr int S = opdi_cu_turned_side(sizeof(T)), rows = OPDI_CU_BLOCK_SIZE / S;
    __shared__ T tile[S][S + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
    const int x = threadIdx.x % S, y = threadIdx.x / S;
    const uint32_t n0 = w.sizes[0].d, n1 = w.sizes[1].d, across = (n0 + S - 1) / S;
    const uint32_t from0 = blockIdx.x % across * S, from1 = blockIdx.x / across * S;
    for (int batch = blockIdx.y; batch < batches; batch += gridDim.y) {
        int64_t at[2];
        opdi_cu_pointwise_offsets<2>(w, (uint32_t)batch * n0 * n1, at);
        const T *in = (const T *)w.data[1] + at[1] + from0 * w.strides[1][0] + (from1 + x) * w.strides[1][1];
        T *out = (T *)w.data[0] + at[0] + (from0 + x) * w.strides[0][0] + from1 * w.strides[0][1];
        T v[S / rows];
        OPDI_CU_UNROLL
        for (int r = y, k = 0; k < S / rows; r += rows, k++) {
            if (from0 + r < n0 && from1 + x < n1) { v[k] = in[r * w.strides[1][0]]; }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int r = y, k = 0; k < S / rows; r += rows, k++) {
            if (from0 + r < n0 && from1 + x < n1) { tile[r][x] = v[k]; }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int r = y, k = 0; k < S / rows; r += rows, k++) {
            if (from1 + r < n1 && from0 + x < n0) { out[r * w.strides[0][1]] = tile[x][r]; }
        }
    }
}
/* Loads N neighbouring elements, in pieces of at most 16 bytes.  (opdi_cu_store_pieces stores them in the same way.) */
template <int N, typename T> __device__ __forceinline__ void opdi_cu_load_pieces(const T *p, T *to /*[N]*/) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int k = 0; k < N; k += P) {
        const opdi_cu_vector<T, P> v = opdi_cu_load_vector<P>(p + k);
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { to[k + j] = v.at[j]; }
    }
}
template <int N, typename T> __device__ __forceinline__ void opdi_cu_store_pieces(T *p, const T *from /*[N]*/) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int k = 0; k < N; k += P) {
        opdi_cu_vector<T, P> v;
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { v.at[j] = from[k + j]; }
        opdi_cu_store_vector<P>(p + k, v);
    }
}
#define OPDI_CU_CONVERTED 8
template <typename To, typename From> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_copy_convert(const opdi_cu_pointwise_walk w, int run, int rest) {
    constexpr int N = OPDI_CU_CONVERTED;
    To *out = (To *)w.data[0];
    const From *in = (const From *)w.data[1];
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE, first = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
    int64_t at[2];
    if constexpr (sizeof(To) <= 4 && sizeof(From) <= 4) {
        if (run) {
            OPDI_CU_ROLLED
            for (uint32_t i = first; i < (uint32_t)w.n; i += step) {
                From v[N];
                To r[N];
                opdi_cu_pointwise_offsets<2>(w, i * N, at);
                opdi_cu_load_pieces<N>(in + at[1], v);
                OPDI_CU_UNROLL
                for (int j = 0; j < N; j++) { r[j] = opdi_cu_pointwise_moved<To, From>::of(v[j]); }
                opdi_cu_store_pieces<N>(out + at[0], r);
            }
            if (first < (uint32_t)rest) {
                const int64_t last = (int64_t)w.n * N + first;
                out[last] = opdi_cu_pointwise_moved<To, From>::of(in[last]);
            }
            return;
        }
    }
    OPDI_CU_ROLLED
    for (uint32_t i = first; i < (uint32_t)w.n; i += step) {
        opdi_cu_pointwise_offsets<2>(w, i, at);
        out[at[0]] = opdi_cu_pointwise_moved<To, From>::of(in[at[1]]);
    }
}
/* Prepares a walk over two operands in runs of n elements, and returns whether this is possible.  If there is only one
   dim, sets *rest to the number of elements after the last run. */
static bool opdi_cu_pointwise_runs(opdi_cu_pointwise_walk *w, int n, int32_t *rest) {
    const opdi_cu_pointwise_divider size = w->sizes[0];
    *rest = 0;
    if (w->ndim == 1 && size.d >= (uint32_t)n) {
        *rest = (int32_t)(size.d % (uint32_t)n);
        w->sizes[0].d = size.d - (uint32_t)*rest;
    }
    if (!opdi_cu_pointwise_in_runs(w, 2, n)) { w->sizes[0] = size; *rest = 0; return false; }
    w->n /= n;
    return true;
}
template <typename To> static int opdi_cu_copy_from(opdi_cu_pointwise_walk w, opd_scalar_type from) {
    const size_t widest = opd_dtype_size((opd_scalar_type)w.dtype[0]) > opd_dtype_size(from)
        ? opd_dtype_size((opd_scalar_type)w.dtype[0]) : opd_dtype_size(from);
    int32_t rest = 0;
    const int run = widest <= 4 && w.strides[1][0] == 1 && opdi_cu_pointwise_runs(&w, OPDI_CU_CONVERTED, &rest);
    void (*kernel)(opdi_cu_pointwise_walk, int, int) = NULL;
    switch ((int)from) {
#define OPDI_CU_FROM_CASE(number, T) case number: kernel = opdi_cu_copy_convert<To, T>; break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_FROM_CASE)
        OPDI_CU_FROM_CASE(OPD_COMPLEX64, opdi_cu_c64) OPDI_CU_FROM_CASE(OPD_COMPLEX128, opdi_cu_c128)
        default: return opdi_cu_no_dtype(from);
    }
    return opdi_cu_launch(kernel, opdi_cu_grid(w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE, 0, w, run, rest);
}
/* Moves dim `d` of a walk to position 1, and the dims from 1 to d - 1 up by one position. */
static void opdi_cu_pointwise_walk_move_dim(opdi_cu_pointwise_walk *w, int d) {
    const opdi_cu_pointwise_divider size = w->sizes[d];
    const int64_t a = w->strides[0][d], b = w->strides[1][d];
    for (; d > 1; d--) {
        w->sizes[d] = w->sizes[d - 1];
        w->strides[0][d] = w->strides[0][d - 1];
        w->strides[1][d] = w->strides[1][d - 1];
    }
    w->sizes[1] = size; w->strides[0][1] = a; w->strides[1][1] = b;
}
template <typename T> static int opdi_cu_copy_one_type(opdi_cu_pointwise_walk *w, T number) {
    opdi_cu_pointwise_move<T> m;
    int d;
    for (d = 1; w->data[1] && w->strides[0][0] == 1 && w->strides[1][0] > 1 && d < w->ndim; d++) {
        if (w->strides[1][d] != 1 || w->sizes[d].d < 8 || w->sizes[0].d < 8) { continue; }
        opdi_cu_pointwise_walk_move_dim(w, d);
        const int side = opdi_cu_turned_side(sizeof(T));
        const int64_t tiles = opdi_cu_ceil(w->sizes[0].d, side) * opdi_cu_ceil(w->sizes[1].d, side);
        const int batches = (int)(w->n / ((int64_t)w->sizes[0].d * w->sizes[1].d));
        return opdi_cu_launch(opdi_cu_copy_transposed<T>, dim3((unsigned)tiles, batches < 65535 ? batches : 65535),
                              OPDI_CU_BLOCK_SIZE, 0, *w, batches);
    }
    m.w = *w;
    m.number = number;
    m.rest = 0;
    m.run = sizeof(T) < 16 && opdi_cu_pointwise_runs(&m.w, 16 / (int)sizeof(T), &m.rest);
    return opdi_cu_launch(opdi_cu_copy_same<T>, opdi_cu_grid(opdi_cu_ceil(m.w.n, 4), OPDI_CU_BLOCK_SIZE),
                          OPDI_CU_BLOCK_SIZE, 0, m);
}
/* Writes the number of an operand, as an element of dtype `t`, into the bytes of out[2]. */
template <typename T> static void opdi_cu_pointwise_element_put(double *out, T v) { memcpy(out, &v, sizeof v); }
static void opdi_cu_pointwise_element(const opd_operand *o, opd_scalar_type t, double *out /*[2]*/) {
    const bool whole = opd_dtype_is_integral(o->dtype, true);
    const float pair[2] = {(float)o->f64[0], (float)o->f64[1]};
    out[0] = out[1] = 0;
    switch ((int)t) {
#define OPDI_CU_ELEMENT_CASE(number, T) \
        case number: \
            if (whole) { opdi_cu_pointwise_element_put<T>(out, opdi_cu_cast<T>(o->i64)); } \
            else { opdi_cu_pointwise_element_put<T>(out, opdi_cu_cast<T>(o->f64[0])); } \
            break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_ELEMENT_CASE)
        case OPD_COMPLEX64: memcpy(out, pair, sizeof pair); break;
        case OPD_COMPLEX128: out[0] = o->f64[0]; out[1] = o->f64[1]; break;
        default: break;
    }
}
/* Copies a part of a tensor.  Returns 0, 1 if the part is too large for one launch, or -1 and sets an error. */
static int opdi_cu_copy_part(const opd_pointwise *p) {
    const opd_scalar_type to = p->operands[0].dtype, from = p->operands[1].dtype;
    opdi_cu_pointwise_walk w;
    double element[2];
    if (!opdi_cu_pointwise_walk_of(p, &w)) { return 1; }
    if (!w.data[1] || to == from) {
        opdi_cu_pointwise_element(&p->operands[1], to, element);
        w.dtype[1] = w.dtype[0];
        OPDI_CU_SIZES(to, T, T number; memcpy(&number, element, sizeof number);
                      return opdi_cu_copy_one_type<T>(&w, number))
    }
    switch ((int)to) {
#define OPDI_CU_TO_CASE(number, T) case number: return opdi_cu_copy_from<T>(w, from);
        OPDI_CU_EACH_DTYPE(OPDI_CU_TO_CASE)
        OPDI_CU_TO_CASE(OPD_COMPLEX64, opdi_cu_c64) OPDI_CU_TO_CASE(OPD_COMPLEX128, opdi_cu_c128)
        default: return opdi_cu_no_dtype(to);
    }
}

