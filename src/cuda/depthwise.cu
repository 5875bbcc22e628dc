//== depthwise convolutions ============================================================================================
//
//  These kernels are for groups of one channel of x and one of y, 3 x 3 taps and strides of 1 or 2, in two dims.  A
//  thread computes a strip: a few outputs below each other.  It loads all elements that the strip reads before it
//  multiplies any, and uses an element for up to three outputs.  Threads of neighbouring columns read the same elements
//  from the L1 cache.  A weight, which may be infinite or NaN, is not multiplied by a 0 from outside of the image: rows
//  outside are left out, and columns outside have the weight 0.

enum { OPDI_CU_DEPTHWISE_ROWS = 8 };              /* outputs of a strip */
struct opdi_cu_depthwise {
    int in[2], out[2], p[2];                      /* sizes of the image that is read, and of the outputs; padding */
    uint32_t all;                                 /* number of strips of all channels and images */
    opdi_cu_pointwise_divider columns, strips, channels;      /* out[1]; strips below each other; channels */
    bool turned;                                  /* the weights are read backwards */
};
/* The elements of an image that a strip reads. */
template <typename T, int K, int S> struct opdi_cu_depthwise_strip {
    enum { ROWS = OPDI_CU_DEPTHWISE_ROWS, HIGH = (ROWS - 1) * S + K };
    T v[HIGH][K];
    uint32_t plane;                               /* number of the image */
    int row, column, top, left;                   /* the first output; where v begins */
    __device__ __forceinline__ void load(const opdi_cu_depthwise &q, const T *x, uint32_t i) {
        const uint32_t line = q.columns.of(i);
        plane = q.strips.of(line);
        row = (int)(line - plane * q.strips.d) * ROWS;
        column = (int)(i - line * q.columns.d);
        top = row * S - q.p[0];
        left = column * S - q.p[1];
        x += (int64_t)(plane * (uint32_t)(q.in[0] * q.in[1])) + top * q.in[1] + left;
        OPDI_CU_UNROLL
        for (int h = 0; h < HIGH; h++, x += q.in[1]) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                v[h][b] = T(0.0f);
                if (row_inside(q, h) && column_inside(q, b)) { v[h][b] = x[b]; }
            }
        }
    }
    __device__ __forceinline__ bool row_inside(const opdi_cu_depthwise &q, int h) const {
        return (uint32_t)(top + h) < (uint32_t)q.in[0];
    }
    __device__ __forceinline__ bool column_inside(const opdi_cu_depthwise &q, int b) const {
        return (uint32_t)(left + b) < (uint32_t)q.in[1];
    }
};
template <typename T, int K, int S> __global__ void __launch_bounds__(256)
opdi_cu_depthwise_kernel(const opdi_cu_depthwise q, const T *x, const T *w, T *y) {
    typedef opdi_cu_acc<T> A;
    typedef opdi_cu_depthwise_strip<T, K, S> strip;
    const uint32_t i = blockIdx.x * 256 + threadIdx.x;
    strip s;
    A tap[K][K], sum[strip::ROWS];
    if (i >= q.all) { return; }
    s.load(q, x, i);
    w += (s.plane - q.channels.of(s.plane) * q.channels.d) * (K * K);
    OPDI_CU_UNROLL
    for (int t = 0; t < K * K; t++) {             /* 0 in columns outside of the image, where v is 0 too */
        tap[t / K][t % K] = s.column_inside(q, t % K) ? opdi_cu_load<A>(w + (q.turned ? K * K - 1 - t : t)) : (A)0;
    }
    OPDI_CU_UNROLL
    for (int r = 0; r < strip::ROWS; r++) { sum[r] = 0; }
    OPDI_CU_UNROLL
    for (int h = 0; h < strip::HIGH; h++) {
        if (!s.row_inside(q, h)) { continue; }
        OPDI_CU_UNROLL
        for (int r = 0; r < strip::ROWS; r++) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                if (h >= r * S && h < r * S + K) { sum[r] += opdi_cu_cast<A>(s.v[h][b]) * tap[h - r * S][b]; }
            }
        }
    }
    y += s.plane * (uint32_t)(q.out[0] * q.out[1]) + (uint32_t)(s.row * q.out[1] + s.column);
    OPDI_CU_UNROLL
    for (int r = 0; r < strip::ROWS; r++, y += q.out[1]) {
        if (s.row + r < q.out[0]) { opdi_cu_store(y, sum[r]); }
    }
}
/* Computes parts[part][c][t], the sum over i, and over `each` images n, of y[n, c, i] * x[n, c, reads(i, t)].  A block
   computes all taps of channel blockIdx.x, for part blockIdx.y of the images. */
template <typename T, int K, int S> __global__ void __launch_bounds__(256)
opdi_cu_depthwise_gw_kernel(const opdi_cu_depthwise q, const T *x, const T *y, opdi_cu_acc<T> *parts, int each,
                            int images) {
    typedef opdi_cu_acc<T> A;
    typedef opdi_cu_depthwise_strip<T, K, S> strip;
    const uint32_t channels = q.channels.d, c = blockIdx.x, of_image = q.strips.d * q.columns.d;
    const int first = (int)blockIdx.y * each, many = images - first < each ? images - first : each;
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    __shared__ A warps[256 / OPDI_CU_WARP][K * K];
    A sum[K][K];
    OPDI_CU_UNROLL
    for (int t = 0; t < K * K; t++) { sum[t / K][t % K] = 0; }
    OPDI_CU_ROLLED
    for (uint32_t i = threadIdx.x; i < (uint32_t)many * of_image; i += 256) {
        const uint32_t n = q.strips.of(q.columns.of(i)), plane = ((uint32_t)first + n) * channels + c;
        strip s;
        A g[strip::ROWS];
        s.load(q, x, i - n * of_image + plane * of_image);
        const T *ys = y + plane * (uint32_t)(q.out[0] * q.out[1]) + (uint32_t)(s.row * q.out[1] + s.column);
        OPDI_CU_UNROLL
        for (int r = 0; r < strip::ROWS; r++, ys += q.out[1]) {
            g[r] = s.row + r < q.out[0] ? opdi_cu_load<A>(ys) : (A)0;
        }
        OPDI_CU_UNROLL
        for (int r = 0; r < strip::ROWS; r++) {
            OPDI_CU_UNROLL
            for (int a = 0; a < K; a++) {
                if (s.row + r >= q.out[0] || !s.row_inside(q, r * S + a)) { continue; }
                OPDI_CU_UNROLL
                for (int b = 0; b < K; b++) {
                    sum[a][b] += opdi_cu_cast<A>(s.v[r * S + a][b]) * (s.column_inside(q, b) ? g[r] : (A)0);
                }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int t = 0; t < K * K; t++) {
        const A all = opdi_cu_warp_reduce(sum[t / K][t % K], opdi_cu_sum());
        if (lane == 0) { warps[warp][t] = all; }
    }
    __syncthreads();
    if (threadIdx.x < K * K) {
        A all = 0;
        for (int k = 0; k < 256 / OPDI_CU_WARP; k++) { all += warps[k][threadIdx.x]; }
        parts[((int64_t)blockIdx.y * channels + c) * (K * K) + threadIdx.x] = all;
    }
}
/* Sets w[i] to the sum of parts[k][i] over k. */
template <typename A> __global__ void opdi_cu_depthwise_end_kernel(const A *parts, A *w, int count, int all) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    A sum = 0;
    if (i >= all) { return; }
    for (int k = 0; k < count; k++) { sum += parts[(int64_t)k * all + i]; }
    w[i] = sum;
}
static bool opdi_cu_depthwise_fits(const opdi_cu_conv *q, int what) {
    const int64_t x = q->n * q->c * opdi_cu_volume(q->in), y = q->n * q->c * opdi_cu_volume(q->out);
    return q->groups == q->c && q->c == q->oc && q->in[0] == 1 && q->out[0] == 1 && q->k[0] == 1 && q->p[0] == 0 &&
        q->k[1] == 3 && q->k[2] == 3 && q->d[1] == 1 && q->d[2] == 1 && q->s[1] == q->s[2] &&
        (q->s[1] == 1 || (q->s[1] == 2 && what != OPDI_CU_CONV_GX)) && x < (1 << 30) && y < (1 << 30) &&
        q->c * 9 < (1 << 30);
}
/* Computes y, gx or gw, as `what` says.  w has the type of x or, for gw, the type in which sums are computed. */
template <typename T> static int opdi_cu_depthwise_run(const opdi_cu_conv *q, int what, T *x, void *w, T *y) {
    typedef opdi_cu_acc<T> A;
    const bool back = what == OPDI_CU_CONV_GX;
    opdi_cu_depthwise m;
    for (int e = 0; e < 2; e++) {
        m.in[e] = back ? q->out[1 + e] : q->in[1 + e];
        m.out[e] = back ? q->in[1 + e] : q->out[1 + e];
        m.p[e] = back ? q->k[1 + e] - 1 - q->p[1 + e] : q->p[1 + e];
    }
    const int64_t strips = opdi_cu_ceil(m.out[0], OPDI_CU_DEPTHWISE_ROWS), all = q->n * q->c * strips * m.out[1];
    m.all = (uint32_t)all;
    m.columns = opdi_cu_divide_by((uint32_t)m.out[1]);
    m.strips = opdi_cu_divide_by((uint32_t)strips);
    m.channels = opdi_cu_divide_by((uint32_t)q->c);
    m.turned = back;
    if (what != OPDI_CU_CONV_GW) {
        return opdi_cu_launch(q->s[1] == 1 ? opdi_cu_depthwise_kernel<T, 3, 1> : opdi_cu_depthwise_kernel<T, 3, 2>,
                              dim3((unsigned)opdi_cu_ceil(all, 256)), dim3(256), 0, m, (const T *)(back ? y : x),
                              static_cast<const T *>(w), back ? x : y);
    }
    const int64_t want = opdi_cu_ceil(1024, q->c), each = opdi_cu_ceil(q->n, want < q->n ? want : q->n);
    const int64_t count = opdi_cu_ceil(q->n, each);
    A *parts = count == 1 ? static_cast<A *>(w)
        : static_cast<A *>(opdi_cu_scratch(count * q->c * 9 * (int64_t)sizeof(A)));
    if (!parts || opdi_cu_launch(q->s[1] == 1 ? opdi_cu_depthwise_gw_kernel<T, 3, 1>
                                 : opdi_cu_depthwise_gw_kernel<T, 3, 2>, dim3((unsigned)q->c, (unsigned)count),
                                 dim3(256), 0, m, (const T *)x, (const T *)y, parts, (int)each, (int)q->n)) {
        return -1;
    }
    return count == 1 ? 0 : opdi_cu_launch(opdi_cu_depthwise_end_kernel<A>, dim3((unsigned)opdi_cu_ceil(q->c * 9, 256)),
                                           dim3(256), 0, (const A *)parts, static_cast<A *>(w), (int)count,
                                           (int)(q->c * 9));
}
