//----------------------------------------------------------------------------------------------------------------------
//  >>cu:resampling  resampling of images, volumes and sequences
//
//  Along each dim, an output is a weighted sum of neighbouring inputs.  A kernel writes these weights to a table for
//  each dim, once per call.  In the same way, the gradient of an input is a weighted sum of neighbouring outputs: those
//  that read it.  So one kernel serves both passes, and no atomic addition is needed.  A thread computes the same place
//  in several planes, because their weights are equal.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_NEAREST, OPDI_CU_EXACT, OPDI_CU_LINEAR, OPDI_CU_CUBIC, OPDI_CU_LINEAR_AA, OPDI_CU_CUBIC_AA };
/* A dim to be resampled, from m inputs to n outputs.  Output i reads `count[i]` inputs from number `first[i]` on, with
   the weights weight[i * most ...].  For the gradient, `low[j]` and `high[j]` are the first output that reads input j
   and the one behind the last. */
typedef struct opdi_cu_axis {
    int64_t m, n, most;
    double scale;
    int how, dims;
    bool corners;
    int32_t *first, *count, *low, *high;          /* first is NULL: m and n are 1, and the weight is 1 */
    void *weight;                                 /* doubles or floats */
} opdi_cu_axis;

/* Returns the weight at distance x of the cubic filter with parameter a. */
template <typename A> __device__ __forceinline__ A opdi_cu_cubic(A x, A a) {
    x = x < 0 ? -x : x;
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : A(0);
}
/* Adds weight w for input `at`, limited to the inputs that there are, to output i. */
template <typename A>
__device__ __forceinline__ void opdi_cu_axis_add(const opdi_cu_axis &s, int64_t i, int64_t at, A w) {
    A *weight = (A *)s.weight + i * s.most;
    at = at < 0 ? 0 : at < s.m - 1 ? at : s.m - 1;
    if (s.count[i] == 0) { s.first[i] = (int32_t)at; }
    const int k = (int)(at - s.first[i]);
    if (k < s.count[i]) { weight[k] += w; } else { weight[k] = w; s.count[i] = k + 1; }
}
/* Writes the row of output i of the table, as the CPU kernel does. */
template <typename A> __device__ void opdi_cu_axis_row(const opdi_cu_axis &s, int64_t i) {
    const A scale = (A)s.scale;
    const bool whole = s.how == OPDI_CU_NEAREST || s.corners;
    const A place = whole ? scale * (A)i : scale * ((A)i + (A)0.5) - (A)0.5;
    s.count[i] = 0;
    if (s.m == s.n && (s.how == OPDI_CU_NEAREST ? s.dims == 2
                       : s.how != OPDI_CU_EXACT && (s.how != OPDI_CU_CUBIC || s.m == 1))) {
        opdi_cu_axis_add(s, i, i, A(1));          /* sizes are equal: the scale does not matter */
    } else if (s.how == OPDI_CU_LINEAR_AA || s.how == OPDI_CU_CUBIC_AA) {
        const A wide = scale >= 1 ? scale : A(1), support = s.how == OPDI_CU_CUBIC_AA ? 2 * wide : wide;
        const A center = scale * ((A)i + (A)0.5);
        const double low = (double)(A)(center - support) + 0.5, high = (double)(A)(center + support) + 0.5;
        const int64_t from = low > 0 ? low < (double)s.m ? (int64_t)low : s.m : 0;
        int64_t many = (high > 0 ? high < (double)s.m ? (int64_t)high : s.m : 0) - from;
        A *weight = (A *)s.weight + i * s.most, sum = 0;
        many = many < s.most ? many : s.most;
        for (int64_t k = 0; k < many; k++) {
            const A x = ((A)(k + from) - center + (A)0.5) / wide, d = x < 0 ? -x : x;
            weight[k] = s.how == OPDI_CU_CUBIC_AA ? opdi_cu_cubic(x, (A)-0.5) : d < 1 ? 1 - d : A(0);
            sum += weight[k];
        }
        for (int64_t k = 0; k < many && sum != 0; k++) { weight[k] /= sum; }
        if (many <= 0) { weight[0] = 0; }
        s.first[i] = (int32_t)(from < s.m - 1 ? from : s.m - 1);
        s.count[i] = (int32_t)(many > 1 ? many : 1);
    } else if (s.how == OPDI_CU_CUBIC) {
        const A held = place < -4 ? A(-4) : place < (A)(s.m - 1) ? place : (A)(s.m - 1);
        const A at = (A)floor(held);
        const A t = place - at < 0 ? A(0) : place - at < 1 ? place - at : A(1);
        for (int k = 0; k < 4; k++) {
            opdi_cu_axis_add(s, i, (int64_t)at + k - 1, opdi_cu_cubic((A)(t + 1 - (A)k), (A)-0.75));
        }
    } else {
        A at = place > 0 ? place : A(0);
        if (s.how == OPDI_CU_NEAREST && s.dims == 2 && s.n == 2 * s.m) { at = (A)(i / 2); }
        if (s.how == OPDI_CU_EXACT) { at += (A)0.5; }
        const int64_t lo = at < (A)(s.m - 1) ? (int64_t)at : s.m - 1;
        const A t = at - (A)lo < 0 ? A(0) : at - (A)lo < 1 ? at - (A)lo : A(1);
        opdi_cu_axis_add(s, i, lo, s.how == OPDI_CU_LINEAR ? 1 - t : A(1));
        if (s.how == OPDI_CU_LINEAR) { opdi_cu_axis_add(s, i, lo + 1, t); }
    }
}
/* The tables of three dims: depth, rows, columns. */
template <typename A> struct opdi_cu_axes {
    opdi_cu_axis s[3];
    __device__ void operator()(int64_t i) const {
        int d = 0;
        for (; d < 2 && i >= s[d].n; d++) { i -= s[d].n; }
        if (s[d].first) { opdi_cu_axis_row<A>(s[d], i); }
    }
};
/* Finds which outputs read each input.  Both ends of what an output reads grow with its number. */
struct opdi_cu_axes_readers {
    opdi_cu_axis s[3];
    __device__ static void find(const opdi_cu_axis &s, int64_t j) {
        int64_t a = 0, b = s.n;
        while (a < b) {
            const int64_t mid = (a + b) / 2;
            if (s.first[mid] + s.count[mid] <= j) { a = mid + 1; } else { b = mid; }
        }
        s.low[j] = (int32_t)a;
        b = s.n;
        while (a < b) {
            const int64_t mid = (a + b) / 2;
            if (s.first[mid] <= j) { a = mid + 1; } else { b = mid; }
        }
        s.high[j] = (int32_t)a;
    }
    __device__ void operator()(int64_t j) const {
        int d = 0;
        for (; d < 2 && j >= s[d].m; d++) { j -= s[d].m; }
        if (s[d].first) { find(s[d], j); }
    }
};
/* What place `at` of a dim reads: `count` places from `first` on, with the weights of(0), of(1), ... */
template <typename A, bool back> struct opdi_cu_read_along {
    const opdi_cu_axis &s;
    int at, first, count;
    __device__ __forceinline__ opdi_cu_read_along(const opdi_cu_axis &s_, int64_t i) : s(s_), at((int)i),
        first(!s.first ? 0 : back ? s.low[i] : s.first[i]),
        count(!s.first ? 1 : back ? s.high[i] - s.low[i] : s.count[i]) { }
    __device__ __forceinline__ A of(int k) const {
        if (!s.first) { return A(1); }
        const int64_t o = back ? first + k : at;
        return ((const A *)s.weight)[o * s.most + (back ? at - s.first[o] : k)];
    }
};
/* The layout of both tensors.  A plane is one channel of one example; it has `from` places in x and `to` in y.  A
   thread computes a group of neighbouring planes.  If `last` is true, channels are the innermost dim in memory, and
   `groups` is the number of groups in an example, otherwise in all. */
struct opdi_cu_planes { int64_t examples, channels, groups, from, to; bool last; };
template <typename T, bool back, int P> __global__ void __launch_bounds__(256)
opdi_cu_resample_kernel(const opdi_cu_axes<typename opdi_cu_weights_of<T>::type> axes, const opdi_cu_planes p,
                        const T *x, T *y) {
    typedef typename opdi_cu_weights_of<T>::type A;
    const opdi_cu_axis &sz = axes.s[0], &sy = axes.s[1], &sx = axes.s[2];
    const int64_t my = back ? sy.n : sy.m, mx = back ? sx.n : sx.m, ny = back ? sy.m : sy.n, nx = back ? sx.m : sx.n;
    const int64_t all = p.groups * p.to * (p.last ? p.examples : 1), step = (int64_t)gridDim.x * blockDim.x;
    const int64_t apart_x = p.last ? 1 : p.from, apart_y = p.last ? 1 : p.to;      /* distance of neighbouring planes */
    const int64_t most = p.last ? p.channels : p.examples * p.channels, wide = p.last ? p.channels : 1;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        int64_t place, group, col, row, example = 0;
        if (p.last) { example = opdi_cu_divide(opdi_cu_divide(i, p.groups, &group), p.to, &place); }
        else { group = opdi_cu_divide(i, p.to, &place); }
        const int64_t plane = group * P;
        const T *const from = x + example * p.from * p.channels + plane * apart_x;
        T *const to = y + example * p.to * p.channels + plane * apart_y + place * wide;
        const int64_t depth = opdi_cu_divide(opdi_cu_divide(place, nx, &col), ny, &row);
        const opdi_cu_read_along<A, back> rz(sz, depth), ry(sy, row), rx(sx, col);
        A sum[P];
        OPDI_CU_UNROLL
        for (int q = 0; q < P; q++) { sum[q] = 0; }
        for (int a = 0; a < rz.count; a++) {
            for (int b = 0; b < ry.count; b++) {
                const A w = rz.of(a) * ry.of(b);
                const T *const line = from + (((rz.first + a) * my + ry.first + b) * mx + rx.first) * wide;
                for (int c = 0; c < rx.count; c++) {
                    const A v = w * rx.of(c);
                    OPDI_CU_UNROLL
                    for (int q = 0; q < P; q++) {
                        if (plane + q < most) { sum[q] += v * opdi_cu_load<A>(line + c * wide + q * apart_x); }
                    }
                }
            }
        }
        OPDI_CU_UNROLL
        for (int q = 0; q < P; q++) { if (plane + q < most) { opdi_cu_store(to + q * apart_y, sum[q]); } }
    }
}
/* Fills in the axes from the sizes of both tensors and the arguments of the call; the scale factors are arguments
   number `scales` and the next.  Returns 0, or -1 and sets an error. */
template <typename A> static int opdi_cu_axes_make(opd_call *call, opdi_cu_axes<A> *axes, const int64_t *in,
                                                   const int64_t *out, int how, int dims, bool corners, int scales,
                                                   bool back) {
    for (int d = 0; d < 3; d++) {
        opdi_cu_axis *s = &axes->s[d];
        const int at = scales + d - 3 + dims, of = d - 3 + dims;
        const double factor = at < scales || opd_arg_is_none(call, at) ? 0 : opd_arg_double(call, at);
        s->m = of < 0 ? 1 : in[2 + of];
        s->n = of < 0 ? 1 : out[2 + of];
        s->how = how; s->dims = dims; s->corners = corners;
        s->first = NULL;
        s->scale = corners ? s->n > 1 ? (double)(s->m - 1) / (double)(s->n - 1) : 0
            : factor > 0 ? 1 / factor : (double)s->m / (double)s->n;
        if (of < 0) { continue; }
        const double scale = sizeof(A) == 4 ? (double)(float)s->scale : s->scale;
        const double most = ceil((how == OPDI_CU_CUBIC_AA ? 2 : 1) * (scale > 1 ? scale : 1)) * 2 + 1;
        s->most = how <= OPDI_CU_EXACT ? 1 : how == OPDI_CU_LINEAR ? 2 : how == OPDI_CU_CUBIC ? 4
            : most < (double)s->m ? (int64_t)most : s->m;
        s->first = (int32_t *)opdi_cu_scratch((2 * s->n + 2 * s->m) * 4);
        s->weight = opdi_cu_scratch(s->n * s->most * (int64_t)sizeof(A));
        if (!s->first || !s->weight) { return -1; }
        s->count = s->first + s->n;
        s->low = s->count + s->n;
        s->high = s->low + s->m;
    }
    const opdi_cu_axes_readers readers = {{axes->s[0], axes->s[1], axes->s[2]}};
    if (opdi_cu_each(axes->s[0].n + axes->s[1].n + axes->s[2].n, *axes)) { return -1; }
    return back ? opdi_cu_each(axes->s[0].m + axes->s[1].m + axes->s[2].m, readers) : 0;
}
template <typename T, int P> static int opdi_cu_resample_go(opd_call *call, const opd_tensor *from, opd_tensor *to,
                                                            int how, int dims, bool corners, int scales, bool back,
                                                            bool last) {
    opdi_cu_axes<typename opdi_cu_weights_of<T>::type> axes;
    opdi_cu_planes p;
    p.examples = opd_size(to, 0); p.channels = opd_size(to, 1); p.last = last;
    p.from = opd_numel(from) / (p.examples * p.channels); p.to = opd_numel(to) / (p.examples * p.channels);
    p.groups = opdi_cu_ceil(last ? p.channels : p.examples * p.channels, P);
    if (opdi_cu_axes_make(call, &axes, opd_sizes(back ? to : from), opd_sizes(back ? from : to), how, dims, corners,
                          scales, back)) { return -1; }
    const dim3 grid = opdi_cu_grid(p.groups * p.to * (last ? p.examples : 1), 256);
    return back ? opdi_cu_launch(opdi_cu_resample_kernel<T, true, P>, grid, dim3(256), 0, axes, p,
                                 opdi_cu_data<T>(from), opdi_cu_data<T>(to))
        : opdi_cu_launch(opdi_cu_resample_kernel<T, false, P>, grid, dim3(256), 0, axes, p, opdi_cu_data<T>(from),
                         opdi_cu_data<T>(to));
}
/* Returns whether t, with channels as dim 1, has channels as the innermost dim in memory. */
static bool opdi_cu_is_last(const opd_tensor *t) {
    int64_t stride = opd_size(t, 1);
    bool last = opd_strides(t)[1] == 1 && opd_size(t, 1) > 1;
    for (int d = opd_ndim(t) - 1; last && d >= 0; d--) {
        if (d == 1) { continue; }
        last = opd_size(t, d) == 1 || opd_strides(t)[d] == stride;
        stride *= opd_size(t, d);
    }
    return last;
}
/* Runs a resampling or, if `back` is true, its gradient.  Returns 0, or -1 and sets an error. */
static int opdi_cu_resample(opd_call *call, int how, int dims, bool back) {
    opd_tensor *from = opd_arg_tensor(call, 0), *to, *work;
    const bool asks = how > OPDI_CU_EXACT;        /* there is an argument align_corners */
    const int scales = 2 + asks + back;
    bool small = opd_dtype_is_floating(opd_dtype(from));
    const opd_ints sizes = opd_arg_ints(call, back ? 2 : 1);
    for (int d = 0; d < opd_ndim(from); d++) { small = small && opd_size(from, d) < (1 << 30); }
    for (int64_t d = 0; d < sizes.n; d++) { small = small && sizes.data[d] < (1 << 30); }
    if (!small) { return opd_cpu_fallback(call); }                     /* images of bytes, for example */
    if (opd_results_from_fake(call)) { return -1; }
    to = opdi_cu_result(call, 0);
    if (opd_numel(to) == 0) { return 0; }
    const bool last = opdi_cu_is_last(from) && opdi_cu_is_last(to);
    const bool corners = asks && opd_arg_bool(call, scales - 1);
    work = last || opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), opd_dtype(to));
    if (!work || (!last && !(from = opd_contiguous(from)))) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(to), T, {
        if (opdi_cu_resample_go<T, 4>(call, from, work, how, dims, corners, scales, back, last)) { return -1; }
    })
    return work != to && !opd_copy_(to, work) ? -1 : 0;
}
#define OPDI_CU_RESAMPLE(name, how, dims) \
    static int opdi_cu_##name(opd_call *call) { return opdi_cu_resample(call, how, dims, false); } \
    static int opdi_cu_##name##_backward(opd_call *call) { return opdi_cu_resample(call, how, dims, true); }
OPDI_CU_RESAMPLE(upsample_nearest1d, OPDI_CU_NEAREST, 1)
OPDI_CU_RESAMPLE(upsample_nearest3d, OPDI_CU_NEAREST, 3)
OPDI_CU_RESAMPLE(upsample_nearest_exact1d, OPDI_CU_EXACT, 1)
OPDI_CU_RESAMPLE(upsample_nearest_exact2d, OPDI_CU_EXACT, 2)
OPDI_CU_RESAMPLE(upsample_nearest_exact3d, OPDI_CU_EXACT, 3)
OPDI_CU_RESAMPLE(upsample_linear1d, OPDI_CU_LINEAR, 1)
OPDI_CU_RESAMPLE(upsample_trilinear3d, OPDI_CU_LINEAR, 3)
OPDI_CU_RESAMPLE(upsample_bicubic2d, OPDI_CU_CUBIC, 2)
OPDI_CU_RESAMPLE(upsample_bilinear2d_aa, OPDI_CU_LINEAR_AA, 2)
OPDI_CU_RESAMPLE(upsample_bicubic2d_aa, OPDI_CU_CUBIC_AA, 2)

#define OPDI_CU_BOTH(name, function) {name, function}, {name "_backward", function##_backward}
static const opdi_cu_registration opdi_cu_table_filters[] = {
    OPDI_CU_BOTH("upsample_nearest1d", opdi_cu_upsample_nearest1d),
    OPDI_CU_BOTH("upsample_nearest3d", opdi_cu_upsample_nearest3d),
    OPDI_CU_BOTH("_upsample_nearest_exact1d", opdi_cu_upsample_nearest_exact1d),
    OPDI_CU_BOTH("_upsample_nearest_exact2d", opdi_cu_upsample_nearest_exact2d),
    OPDI_CU_BOTH("_upsample_nearest_exact3d", opdi_cu_upsample_nearest_exact3d),
    OPDI_CU_BOTH("upsample_linear1d", opdi_cu_upsample_linear1d),
    OPDI_CU_BOTH("upsample_trilinear3d", opdi_cu_upsample_trilinear3d),
    OPDI_CU_BOTH("upsample_bicubic2d", opdi_cu_upsample_bicubic2d),
    OPDI_CU_BOTH("_upsample_bilinear2d_aa", opdi_cu_upsample_bilinear2d_aa),
    OPDI_CU_BOTH("_upsample_bicubic2d_aa", opdi_cu_upsample_bicubic2d_aa),
    {NULL, NULL}};

