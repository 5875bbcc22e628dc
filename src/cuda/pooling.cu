//----------------------------------------------------------------------------------------------------------------------
//  >>cu:pooling     pooling, padding, resampling
//----------------------------------------------------------------------------------------------------------------------

//== padding ===========================================================================================================

/* Pads x with a constant: out = x at positions inside of x, otherwise *value. */
template <class T> struct opdi_cu_pad {
    int n;
    int64_t out_size[OPD_MAX_DIMS], size[OPD_MAX_DIMS], low[OPD_MAX_DIMS], stride[OPD_MAX_DIMS];
    const T *x, *value;
    T *out;
    __device__ void operator()(int64_t i) const {
        int64_t rest = i, at = 0, r;
        bool inside = true;
        for (int d = n - 1; d >= 0; d--) {
            rest = opdi_cu_divide(rest, out_size[d], &r);
            r -= low[d];
            inside = inside && r >= 0 && r < size[d];
            at += r * stride[d];
        }
        out[i] = inside ? x[at] : *value;
    }
};
/* Runs constant_pad_nd(self, pad, value). */
static int opdi_cu_constant_pad_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *staging, *value;
    const opd_ints pad = opd_arg_ints(call, 1);
    const int n = opd_ndim(x);
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    staging = opdi_cu_staging(out, opd_dtype(out));
    value = staging ? opdi_cu_arg_as(call, 2, out, opd_dtype(out)) : NULL;
    if (!value) { return -1; }
    OPDI_CU_SIZES(opd_dtype(x), T, {
        opdi_cu_pad<T> f;
        f.n = 0;
        for (int d = 0; d < n; d++) {             /* joins a dim without padding with the dim before it */
            const int k = 2 * (n - 1 - d), m = f.n - 1;
            const int64_t low = k < (int)pad.n ? pad.data[k] : 0, size = opd_sizes(x)[d];
            if (m >= 0 && low == 0 && opd_sizes(out)[d] == size && f.stride[m] == opd_strides(x)[d] * size) {
                f.low[m] *= size; f.size[m] *= size; f.out_size[m] *= size; f.stride[m] = opd_strides(x)[d];
                continue;
            }
            f.low[f.n] = low; f.size[f.n] = size; f.out_size[f.n] = opd_sizes(out)[d];
            f.stride[f.n++] = opd_strides(x)[d];
        }
        f.x = opdi_cu_data<T>(x); f.value = opdi_cu_data<T>(value); f.out = opdi_cu_data<T>(staging);
        if (opdi_cu_each(opd_numel(staging), f)) { return -1; }
    })
    return opdi_cu_staging_store(out, staging);
}

/* reflection_pad and replication_pad (if `reflect` is false) of the last three dims.  If fewer dims are padded, the
   first of the three have size 1. */
struct opdi_cu_mirror {
    int64_t in[3], out[3], low[3];
    bool reflect;
    /* Returns the coordinate in x of coordinate i of out. */
    __device__ __forceinline__ int64_t from(int d, int64_t i) const {
        const int64_t n = in[d];
        i -= low[d];
        if (!reflect) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
        return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    }
    /* Finds the coordinates of out that are copies of coordinate i of x, along dim d, in rising order.  Returns copy
       number k, or -1 if there is no copy with this number, or -2 if there are no more. */
    __device__ __forceinline__ int64_t to(int d, int64_t i, int64_t k) const {
        const int64_t n = in[d];
        if (reflect) {
            const int64_t o = k == 0 ? low[d] - i : k == 1 ? low[d] + i : low[d] + 2 * (n - 1) - i;
            if (k > 2) { return -2; }
            return o < 0 || o >= out[d] || (k == 0 && i == 0) || (k == 2 && i == n - 1) ? -1 : o;
        }
        const int64_t first = i == 0 ? 0 : i + low[d], last = i == n - 1 ? out[d] - 1 : i + low[d];
        const int64_t o = (first > 0 ? first : 0) + k;
        return o > last || o >= out[d] ? -2 : o;
    }
};
template <class T> struct opdi_cu_mirror_pad {
    opdi_cu_mirror m;
    const T *x;
    T *out;
    __device__ void operator()(int64_t i) const {
        int64_t c[3], p = i;
        for (int d = 2; d >= 0; d--) { p = opdi_cu_divide(p, m.out[d], &c[d]); }
        out[i] = x[((p * m.in[0] + m.from(0, c[0])) * m.in[1] + m.from(1, c[1])) * m.in[2] + m.from(2, c[2])];
    }
};
/* Each element of x's gradient is the sum of the gradients of its copies in the output. */
template <class T> struct opdi_cu_mirror_pad_backward {
    opdi_cu_mirror m;
    const T *g;
    T *out;
    __device__ void operator()(int64_t i) const {
        opdi_cu_acc<T> sum = 0;
        int64_t c[3], o[3], p = i;
        for (int d = 2; d >= 0; d--) { p = opdi_cu_divide(p, m.in[d], &c[d]); }
        for (int64_t a = 0; (o[0] = m.to(0, c[0], a)) != -2; a++) {
            for (int64_t b = 0; o[0] >= 0 && (o[1] = m.to(1, c[1], b)) != -2; b++) {
                for (int64_t e = 0; o[1] >= 0 && (o[2] = m.to(2, c[2], e)) != -2; e++) {
                    if (o[2] < 0) { continue; }
                    const int64_t at = ((p * m.out[0] + o[0]) * m.out[1] + o[1]) * m.out[2] + o[2];
                    sum += opdi_cu_load<opdi_cu_acc<T> >(g + at);
                }
            }
        }
        opdi_cu_store(out + i, sum);
    }
};
static bool opdi_cu_is_named(const opd_call *call, const char *prefix) {
    return strncmp(opd_op_name(opd_call_operator(call)) + strlen("aten::"), prefix, strlen(prefix)) == 0;
}
/* Computes `out` from `from`: by Forth, which moves elements of any type, or, if `back` is true, by Back, which adds
   floats.  Returns 0, or -1 and sets an error. */
template <template <class> class Forth, template <class> class Back, class P>
static int opdi_cu_forth_or_back(const P &p, opd_tensor *from, opd_tensor *out, bool back) {
    opd_tensor *staging = opdi_cu_staging(out, opd_dtype(out));
    if (!staging || !(from = opdi_cu_as(from, opd_dtype(from)))) { return -1; }
    if (back) {
        OPDI_CU_FLOATS(opd_dtype(from), T, {
            const Back<T> f = {p, opdi_cu_data<T>(from), opdi_cu_data<T>(staging)};
            if (opdi_cu_each(opd_numel(staging), f)) { return -1; }
        })
    } else {
        OPDI_CU_SIZES(opd_dtype(from), T, {
            const Forth<T> f = {p, opdi_cu_data<T>(from), opdi_cu_data<T>(staging)};
            if (opdi_cu_each(opd_numel(staging), f)) { return -1; }
        })
    }
    return opdi_cu_staging_store(out, staging);
}
/* Runs a padding with the arguments (self, padding) or, if `back` is true, its gradient with (grad_output, self,
   padding).  Returns 0, or -1 and sets an error. */
static int opdi_cu_mirror_run(opd_call *call, bool back) {
    opd_tensor *from = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, back), *out, *padded;
    const opd_ints pad = opd_arg_ints(call, 1 + back);
    const int nd = (int)pad.n / 2;
    opdi_cu_mirror m;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    padded = back ? from : out;
    m.reflect = opdi_cu_is_named(call, "reflection");
    for (int d = 0; d < 3; d++) {
        const bool there = 3 - d <= nd;
        m.in[d] = there ? opd_size(x, d - 3) : 1;
        m.out[d] = there ? opd_size(padded, d - 3) : 1;
        m.low[d] = there ? pad.data[2 * (2 - d)] : 0;
    }
    return opdi_cu_forth_or_back<opdi_cu_mirror_pad, opdi_cu_mirror_pad_backward>(m, from, out, back);
}
static int opdi_cu_mirror_pad_kernel(opd_call *call) { return opdi_cu_mirror_run(call, false); }
static int opdi_cu_mirror_pad_backward_kernel(opd_call *call) { return opdi_cu_mirror_run(call, true); }

//== pooling ===========================================================================================================

/* The strides of an image [n, c, z, h, w]. */
struct opdi_cu_image {
    int64_t stride[5];
    __device__ __forceinline__ int64_t at(const int64_t *p, int64_t z, int64_t h, int64_t w) const {
        return p[0] * stride[0] + p[1] * stride[1] + z * stride[2] + h * stride[3] + w * stride[4];
    }
};
/* Pooling windows over x, in up to three dims: their number is out, and k, s, p, d are kernel size, stride, padding and
   dilation. */
struct opdi_cu_windows {
    int64_t n, c, in[3], out[3], k[3], s[3], p[3], d[3], divisor;
    opdi_cu_image x, y, at;                       /* layouts of x and its gradient, y and its gradient, and the
                                                     positions of maxima */
    bool adaptive, include_pad, last;             /* last: channels are adjacent in the tensor that is written */
    opdi_cu_guard guard;
    const char *refused;                          /* not NULL: strays are a fault with this text */
    /* Splits position i of the result into plane[] = {n, c} and the coordinates o[3]. */
    __device__ __forceinline__ void split(int64_t i, const int64_t *size, int64_t *plane, int64_t *o) const {
        if (last) { i = opdi_cu_divide(i, c, &plane[1]); }
        for (int e = 2; e >= 0; e--) { i = opdi_cu_divide(i, size[e], &o[e]); }
        if (last) { plane[0] = i; } else { plane[0] = opdi_cu_divide(i, c, &plane[1]); }
    }
    /* Sets *lo and *hi for window o along dim e: the window covers *lo, *lo + d, ... below *hi.  Returns the divisor
       for an average. */
    __device__ __forceinline__ int64_t window(int e, int64_t o, int64_t *lo, int64_t *hi) const {
        if (adaptive) {
            int64_t r;
            *lo = opdi_cu_divide(o * in[e], out[e], &r);
            *hi = 1 + opdi_cu_divide((o + 1) * in[e] - 1, out[e], &r);
            return *hi - *lo;
        }
        const int64_t begin = o * s[e] - p[e], end = begin + k[e] < in[e] + p[e] ? begin + k[e] : in[e] + p[e];
        *lo = begin;
        *hi = begin + d[e] * (k[e] - 1) + 1;
        if (*lo < 0) { *lo += (d[e] - 1 - *lo) / d[e] * d[e]; }
        if (*hi > in[e]) { *hi = in[e]; }
        return include_pad ? end - begin : *hi - *lo;
    }
    /* Sets *lo and *hi for coordinate i along dim e: windows *lo to *hi - 1 may cover it. */
    __device__ __forceinline__ void windows(int e, int64_t i, int64_t *lo, int64_t *hi) const {
        int64_t r;
        if (adaptive) {
            *lo = opdi_cu_divide(i * out[e], in[e], &r);
            *hi = 1 + opdi_cu_divide((i + 1) * out[e] - 1, in[e], &r);
            return;
        }
        const int64_t first = i + p[e] - d[e] * (k[e] - 1);
        *lo = first <= 0 ? 0 : opdi_cu_divide(first + s[e] - 1, s[e], &r);
        *hi = opdi_cu_divide(i + p[e], s[e], &r) + 1;
        if (*hi > out[e]) { *hi = out[e]; }
    }
};
static __device__ __forceinline__ float opdi_cu_lowest(float) { return -INFINITY; }
static __device__ __forceinline__ double opdi_cu_lowest(double) { return -INFINITY; }
static __device__ __forceinline__ int64_t opdi_cu_lowest(int64_t) { return INT64_MIN; }

template <class T> struct opdi_cu_max_pool {
    opdi_cu_windows v;
    const T *x;
    T *y;
    int64_t *at;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t plane[2], o[3], lo[3], hi[3], best;
        A top = opdi_cu_lowest((A)0);
        v.split(i, v.out, plane, o);
        for (int e = 0; e < 3; e++) { (void)v.window(e, o[e], &lo[e], &hi[e]); }
        best = (lo[0] * v.in[1] + lo[1]) * v.in[2] + lo[2];
        for (int64_t a = lo[0]; a < hi[0]; a += v.d[0]) {
            for (int64_t b = lo[1]; b < hi[1]; b += v.d[1]) {
                for (int64_t c = lo[2]; c < hi[2]; c += v.d[2]) {
                    const A u = opdi_cu_load<A>(x + v.x.at(plane, a, b, c));
                    if (u > top || u != u) { top = u; best = (a * v.in[1] + b) * v.in[2] + c; }
                }
            }
        }
        opdi_cu_store(y + v.y.at(plane, o[0], o[1], o[2]), top);
        at[v.at.at(plane, o[0], o[1], o[2])] = best;
    }
};
/* Max pooling for small windows: two dims, K x K elements, no dilation, contiguous tensors with fewer than 2^31
   elements.  A thread computes several outputs, 256 apart, and loads all of their windows before it compares, so that
   all loads are in flight at once. */
enum { OPDI_CU_POOL_EACH = 2 };                   /* outputs of a thread */
struct opdi_cu_small_windows {
    int in[2], out[2], s[2], p[2];
    uint32_t all;                                 /* number of outputs */
    opdi_cu_pointwise_divider rows, columns;      /* for division by out[0] and out[1] */
};
template <class T, int K> __global__ void __launch_bounds__(256)
opdi_cu_max_pool_small(const opdi_cu_small_windows v, const T *x, T *y, int64_t *at) {
    typedef opdi_cu_acc<T> A;
    constexpr int EACH = OPDI_CU_POOL_EACH;
    const uint32_t first = blockIdx.x * (256 * EACH) + threadIdx.x;
    T u[EACH][K][K];
    int row[EACH], col[EACH];
    if (first >= v.all) { return; }
    OPDI_CU_UNROLL
    for (int e = 0; e < EACH; e++) {
        const uint32_t i = first + e * 256 < v.all ? first + e * 256 : first, line = v.columns.of(i);
        const uint32_t plane = v.rows.of(line);
        row[e] = (int)(line - plane * (uint32_t)v.out[0]) * v.s[0] - v.p[0];
        col[e] = (int)(i - line * (uint32_t)v.out[1]) * v.s[1] - v.p[1];
        const T *from = x + plane * (uint32_t)(v.in[0] * v.in[1]);
        OPDI_CU_UNROLL
        for (int a = 0; a < K; a++) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                const int h = row[e] + a, w = col[e] + b;
                u[e][a][b] = T(0.0f);
                if ((uint32_t)h < (uint32_t)v.in[0] && (uint32_t)w < (uint32_t)v.in[1]) {
                    u[e][a][b] = from[h * v.in[1] + w];
                }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int e = 0; e < EACH; e++) {
        A top = opdi_cu_lowest((A)0);
        int best = (row[e] < 0 ? 0 : row[e]) * v.in[1] + (col[e] < 0 ? 0 : col[e]);
        OPDI_CU_UNROLL
        for (int a = 0; a < K; a++) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                const int h = row[e] + a, w = col[e] + b;
                const A now = opdi_cu_cast<A>(u[e][a][b]);
                if ((uint32_t)h < (uint32_t)v.in[0] && (uint32_t)w < (uint32_t)v.in[1] && (now > top || now != now)) {
                    top = now;
                    best = h * v.in[1] + w;
                }
            }
        }
        if (first + e * 256 < v.all) {
            opdi_cu_store(y + first + e * 256, top);
            at[first + e * 256] = best;
        }
    }
}
template <class T> struct opdi_cu_avg_pool {
    opdi_cu_windows v;
    const T *x;
    T *y;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t plane[2], o[3], lo[3], hi[3], n = 1;
        A sum = 0;
        v.split(i, v.out, plane, o);
        for (int e = 0; e < 3; e++) { n *= v.window(e, o[e], &lo[e], &hi[e]); }
        if (v.divisor) { n = v.divisor; }
        for (int64_t a = lo[0]; a < hi[0]; a++) {
            for (int64_t b = lo[1]; b < hi[1]; b++) {
                for (int64_t c = lo[2]; c < hi[2]; c++) { sum += opdi_cu_load<A>(x + v.x.at(plane, a, b, c)); }
            }
        }
        opdi_cu_store(y + v.y.at(plane, o[0], o[1], o[2]), n ? sum / (A)n : (A)0);
    }
};
/* Computes the gradient of x: for each element, adds the gradients y of the windows that may cover it. */
template <class T, bool maximum> struct opdi_cu_pool_backward {
    opdi_cu_windows v;
    const T *y;
    T *x;
    const int64_t *at;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t plane[2], p[3], lo[3], hi[3], l, h;
        A sum = 0;
        v.split(i, v.in, plane, p);
        for (int e = 0; e < 3; e++) { v.windows(e, p[e], &lo[e], &hi[e]); }
        const int64_t me = (p[0] * v.in[1] + p[1]) * v.in[2] + p[2];
        for (int64_t a = lo[0]; a < hi[0]; a++) {
            const int64_t na = maximum ? 1 : v.window(0, a, &l, &h);
            for (int64_t b = lo[1]; b < hi[1]; b++) {
                const int64_t nb = maximum ? 1 : na * v.window(1, b, &l, &h);
                for (int64_t c = lo[2]; c < hi[2]; c++) {
                    const T *g = y + v.y.at(plane, a, b, c);
                    if (maximum) { if (at[v.at.at(plane, a, b, c)] == me) { sum += opdi_cu_load<A>(g); } continue; }
                    const int64_t n = v.divisor ? v.divisor : nb * v.window(2, c, &l, &h);
                    if (n) { sum += opdi_cu_load<A>(g) / (A)n; }
                }
            }
        }
        opdi_cu_store(x + v.x.at(plane, p[0], p[1], p[2]), sum);
    }
};
/* Adds v to *p in one atomic step, for types of 16 bits. */
template <class T> static __device__ void opdi_cu_atomic_add(T *p, T v) {
    unsigned short *at = reinterpret_cast<unsigned short *>(p), seen = opdi_cu_load_common(at), was;
    do {
        union { unsigned short bits; T number; } u = {seen};
        u.number = opdi_cu_cast<T>(opdi_cu_cast<float>(u.number) + opdi_cu_cast<float>(v));
        was = seen;
        seen = atomicCAS(at, was, u.bits);
    } while (seen != was);
}
/* Adds those gradients whose positions lie outside of their window, because opdi_cu_pool_backward does not find them.
   Positions computed by max_pool are always inside. */
template <class T> struct opdi_cu_pool_strays {
    opdi_cu_windows v;
    const T *y;
    T *x;
    const int64_t *at;
    __device__ void operator()(int64_t i) const {
        int64_t plane[2], o[3], p[3], lo, hi, rest;
        bool inside = true;
        v.split(i, v.out, plane, o);
        const int64_t k = at[v.at.at(plane, o[0], o[1], o[2])];
        if (!v.guard.inside(k, v.in[0] * v.in[1] * v.in[2])) { return; }
        rest = opdi_cu_divide(k, v.in[2], &p[2]);
        p[0] = opdi_cu_divide(rest, v.in[1], &p[1]);
        for (int e = 0; e < 3; e++) {
            v.windows(e, p[e], &lo, &hi);
            inside = inside && o[e] >= lo && o[e] < hi;
        }
        if (!inside && v.refused) {
            opdi_cu_guard guard = v.guard;
            guard.text = v.refused;
            guard.note(k, 0);
        } else if (!inside) {
            opdi_cu_atomic_add(x + v.x.at(plane, p[0], p[1], p[2]), y[v.y.at(plane, o[0], o[1], o[2])]);
        }
    }
};
static void opdi_cu_image_of(opdi_cu_image *m, const opd_tensor *t, int nd) {
    const int n = opd_ndim(t);
    m->stride[0] = n == nd + 2 ? opd_strides(t)[0] : 0;
    m->stride[1] = opd_strides(t)[n - nd - 1];
    for (int e = 0; e < 3; e++) { m->stride[2 + e] = e < 3 - nd ? 0 : opd_strides(t)[n - 3 + e]; }
}
/* Reads argument i, an int[nd] or a single number, into the last nd of out[3], and sets the others to `fill`.  If the
   argument is empty and `otherwise` is not NULL, copies `otherwise`. */
static void opdi_cu_pool_list(opd_call *call, int i, int nd, int64_t *out, int64_t fill, const int64_t *otherwise) {
    const opd_ints l = opd_arg_ints(call, i);
    for (int e = 0; e < 3; e++) {
        out[e] = l.n == 0 && otherwise ? otherwise[e] : e < 3 - nd ? fill : l.data[l.n == 1 ? 0 : e - 3 + nd];
    }
}
/* Sets the sizes of the input from x and the number of windows from y, and everything else to its default. */
static void opdi_cu_windows_of(opd_call *call, opdi_cu_windows *v, const opd_tensor *x, const opd_tensor *y, int nd) {
    const int n = opd_ndim(x);
    v->n = n == nd + 2 ? opd_sizes(x)[0] : 1;
    v->c = opd_sizes(x)[n - nd - 1];
    for (int e = 0; e < 3; e++) {
        v->in[e] = e < 3 - nd ? 1 : opd_sizes(x)[n - 3 + e];
        v->out[e] = e < 3 - nd ? 1 : opd_sizes(y)[n - 3 + e];
        v->k[e] = v->s[e] = v->d[e] = 1; v->p[e] = 0;
    }
    opdi_cu_image_of(&v->x, x, nd);
    opdi_cu_image_of(&v->y, y, nd);
    v->divisor = 0;
    v->adaptive = v->include_pad = false;
    v->guard = opdi_cu_guard_of(call, "an element of indices is out of range");
    v->refused = opd_deterministic_mode() == OPD_DETERMINISTIC_ERROR
        ? "indices outside of their windows have no deterministic implementation" : NULL;
}
/* Reads kernel_size, stride and padding, the arguments from number `first` on.  If `maximum` is true, the next argument
   is dilation.  Otherwise, the next arguments are ceil_mode, count_include_pad and divisor_override. */
static void opdi_cu_windows_read(opd_call *call, opdi_cu_windows *v, int first, int nd, bool maximum) {
    opdi_cu_pool_list(call, first, nd, v->k, 1, NULL);
    opdi_cu_pool_list(call, first + 1, nd, v->s, 1, v->k);
    opdi_cu_pool_list(call, first + 2, nd, v->p, 0, NULL);
    if (maximum) { opdi_cu_pool_list(call, first + 3, nd, v->d, 1, NULL); return; }
    v->include_pad = opd_arg_bool(call, first + 4);
    v->divisor = opd_arg_is_none(call, first + 5) ? 0 : opd_arg_int(call, first + 5);
}
/* Returns whether the channels of t are adjacent in memory. */
static bool opdi_cu_channels_last(const opd_tensor *t, int nd) {
    const int n = opd_ndim(t);
    return n == nd + 2 && opd_strides(t)[1] == 1 && opd_sizes(t)[1] > 1 && opd_strides(t)[n - 1] == opd_sizes(t)[1];
}
/* Returns whether opdi_cu_max_pool_small can compute this max pooling. */
static bool opdi_cu_pool_is_small(const opdi_cu_windows *v, const opd_tensor *x, const opd_tensor *y,
                                  const opd_tensor *at) {
    if (v->adaptive || v->in[0] != 1 || v->k[0] != 1 || v->p[0] != 0 || v->k[1] != v->k[2] ||
        (v->k[1] != 2 && v->k[1] != 3) || v->d[1] != 1 || v->d[2] != 1) { return false; }
    return opd_dtype_is_floating(opd_dtype(x)) && opd_is_contiguous(x) && opd_is_contiguous(y) &&
        opd_is_contiguous(at) && opd_numel(x) < INT32_MAX && opd_numel(y) < INT32_MAX;
}
static int opdi_cu_pool_small(const opdi_cu_windows *v, const opd_tensor *x, opd_tensor *y, opd_tensor *at) {
    opdi_cu_small_windows m;
    for (int e = 0; e < 2; e++) {
        m.in[e] = (int)v->in[1 + e]; m.out[e] = (int)v->out[1 + e];
        m.s[e] = (int)v->s[1 + e]; m.p[e] = (int)v->p[1 + e];
    }
    m.all = (uint32_t)opd_numel(y);
    m.rows = opdi_cu_divide_by((uint32_t)m.out[0]);
    m.columns = opdi_cu_divide_by((uint32_t)m.out[1]);
    const dim3 grid((unsigned)opdi_cu_ceil(opd_numel(y), 256 * OPDI_CU_POOL_EACH));
    OPDI_CU_FLOATS(opd_dtype(x), T, return opdi_cu_launch(v->k[1] == 2 ? opdi_cu_max_pool_small<T, 2>
                   : opdi_cu_max_pool_small<T, 3>, grid, dim3(256), 0, m, opdi_cu_data<T>(x), opdi_cu_data<T>(y),
                   opdi_cu_data<int64_t>(at)))
}
static int opdi_cu_pool_forward(opd_call *call, int nd, bool maximum, bool adaptive) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *at = NULL;
    opdi_cu_windows v;
    if (opd_results_from_fake(call) || !(y = opdi_cu_result(call, 0)) ||
        (maximum && !(at = opdi_cu_result(call, 1)))) {
        return -1;
    }
    if (opd_numel(y) == 0) { return 0; }
    opdi_cu_windows_of(call, &v, x, y, nd);
    v.adaptive = adaptive;
    if (!adaptive) { opdi_cu_windows_read(call, &v, 1, nd, maximum); }
    v.last = opdi_cu_channels_last(y, nd);
    if (maximum) { opdi_cu_image_of(&v.at, at, nd); }
    if (maximum && opdi_cu_pool_is_small(&v, x, y, at)) { return opdi_cu_pool_small(&v, x, y, at); }
    OPDI_CU_ALL(opd_dtype(x), T, {
        const T *from = opdi_cu_data<T>(x);
        T *to = opdi_cu_data<T>(y);
        if (maximum) {
            const opdi_cu_max_pool<T> f = {v, from, to, opdi_cu_data<int64_t>(at)};
            return opdi_cu_each(opd_numel(y), f);
        }
        const opdi_cu_avg_pool<T> f = {v, from, to};
        return opdi_cu_each(opd_numel(y), f);
    })
}
/* Computes the gradient of a pooling.  The call's arguments are (grad_output, self, ...).  `at` has the positions of
   the maxima, or is NULL for an average.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pool_gradient(opd_call *call, int nd, opd_tensor *at, bool adaptive) {
    opd_tensor *g = opd_arg_tensor(call, 0), *out;
    opdi_cu_windows v;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_numel(g) == 0) { return opd_zero_(out) ? 0 : -1; }
    opdi_cu_windows_of(call, &v, out, g, nd);
    v.adaptive = adaptive;
    if (!adaptive) { opdi_cu_windows_read(call, &v, 2, nd, at != NULL); }
    v.last = opdi_cu_channels_last(out, nd);
    if (at) { opdi_cu_image_of(&v.at, at, nd); }
    OPDI_CU_FLOATS(opd_dtype(out), T, {
        const T *from = opdi_cu_data<T>(g);
        T *to = opdi_cu_data<T>(out);
        if (!at) {
            const opdi_cu_pool_backward<T, false> f = {v, from, to, NULL};
            return opdi_cu_each(opd_numel(out), f);
        }
        const int64_t *p = opdi_cu_data<int64_t>(at);
        const opdi_cu_pool_backward<T, true> f = {v, from, to, p};
        const opdi_cu_pool_strays<T> strays = {v, from, to, p};
        return opdi_cu_each(opd_numel(out), f) || opdi_cu_each(opd_numel(g), strays) ? -1 : 0;
    })
}
#define OPDI_CU_POOLS(nd)                                                                                   \
    static int opdi_cu_max_pool##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, true, false); } \
    static int opdi_cu_max_pool##nd##d_backward(opd_call *call) {                                           \
        return opdi_cu_pool_gradient(call, nd, opd_arg_tensor(call, 7), false);                             \
    }                                                                                                       \
    static int opdi_cu_avg_pool##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, false, false); } \
    static int opdi_cu_avg_pool##nd##d_backward(opd_call *call) {                                           \
        return opdi_cu_pool_gradient(call, nd, NULL, false);                                                \
    }                                                                                                       \
    static int opdi_cu_adaptive_avg##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, false, true); } \
    static int opdi_cu_adaptive_avg##nd##d_backward(opd_call *call) {                                       \
        return opdi_cu_pool_gradient(call, nd, NULL, true);                                                 \
    }                                                                                                       \
    static int opdi_cu_adaptive_max##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, true, true); } \
    static int opdi_cu_adaptive_max##nd##d_backward(opd_call *call) {                                       \
        return opdi_cu_pool_gradient(call, nd, opd_arg_tensor(call, 2), true);                              \
    }
OPDI_CU_POOLS(2)
OPDI_CU_POOLS(3)

//== im2col, col2im ====================================================================================================

/* The sizes of an image [n, c, h, w] and of its columns [n, c k[0] k[1], out[0] out[1]]. */
struct opdi_cu_blocks {
    int64_t in[2], out[2], k[2], d[2], p[2], s[2];
};
template <class T> struct opdi_cu_im2col {
    opdi_cu_blocks v;
    const T *x;
    T *col;
    __device__ void operator()(int64_t i) const {
        int64_t o[2], t[2], rest = i;
        rest = opdi_cu_divide(rest, v.out[1], &o[1]);
        rest = opdi_cu_divide(rest, v.out[0], &o[0]);
        rest = opdi_cu_divide(rest, v.k[1], &t[1]);
        rest = opdi_cu_divide(rest, v.k[0], &t[0]);
        const int64_t h = o[0] * v.s[0] - v.p[0] + t[0] * v.d[0], w = o[1] * v.s[1] - v.p[1] + t[1] * v.d[1];
        col[i] = h >= 0 && h < v.in[0] && w >= 0 && w < v.in[1] ? x[(rest * v.in[0] + h) * v.in[1] + w] : T();
    }
};
/* Each pixel is the sum of the elements of the columns that are copies of it. */
template <class T> struct opdi_cu_col2im {
    opdi_cu_blocks v;
    const T *col;
    T *x;
    __device__ void operator()(int64_t i) const {
        opdi_cu_acc<T> sum = 0;
        int64_t p[2], o[2], r;
        const int64_t c = opdi_cu_divide(opdi_cu_divide(i, v.in[1], &p[1]), v.in[0], &p[0]);
        for (int64_t a = 0; a < v.k[0]; a++) {
            const int64_t h = p[0] + v.p[0] - a * v.d[0];
            if (h < 0) { break; }
            o[0] = opdi_cu_divide(h, v.s[0], &r);
            if (r || o[0] >= v.out[0]) { continue; }
            for (int64_t b = 0; b < v.k[1]; b++) {
                const int64_t w = p[1] + v.p[1] - b * v.d[1];
                if (w < 0) { break; }
                o[1] = opdi_cu_divide(w, v.s[1], &r);
                if (r || o[1] >= v.out[1]) { continue; }
                sum += opdi_cu_load<opdi_cu_acc<T> >(
                    col + (((c * v.k[0] + a) * v.k[1] + b) * v.out[0] + o[0]) * v.out[1] + o[1]);
            }
        }
        opdi_cu_store(x + i, sum);
    }
};
/* Runs im2col or, if `back` is true, col2im.  The arguments are (self, kernel_size, dilation, padding, stride); col2im
   has output_size after self.  Returns 0, or -1 and sets an error. */
static int opdi_cu_im2col_run(opd_call *call, bool back) {
    opd_tensor *from = opd_arg_tensor(call, 0), *out;
    opdi_cu_blocks v;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_numel(out) == 0) { return 0; }
    for (int e = 0; e < 2; e++) {
        v.in[e] = opd_size(back ? out : from, e - 2);
        v.k[e] = opd_arg_ints(call, 1 + back).data[e];
        v.d[e] = opd_arg_ints(call, 2 + back).data[e];
        v.p[e] = opd_arg_ints(call, 3 + back).data[e];
        v.s[e] = opd_arg_ints(call, 4 + back).data[e];
        v.out[e] = (v.in[e] + 2 * v.p[e] - v.d[e] * (v.k[e] - 1) - 1) / v.s[e] + 1;
    }
    return opdi_cu_forth_or_back<opdi_cu_im2col, opdi_cu_col2im>(v, from, out, back);
}
static int opdi_cu_im2col_kernel(opd_call *call) { return opdi_cu_im2col_run(call, false); }
static int opdi_cu_col2im_kernel(opd_call *call) { return opdi_cu_im2col_run(call, true); }

#define OPDI_CU_PAD_ROWS(name)                                                                              \
    {name, opdi_cu_mirror_pad_kernel}, {name "_backward", opdi_cu_mirror_pad_backward_kernel}
static const opdi_cu_registration opdi_cu_table_pooling[] = {
    {"constant_pad_nd", opdi_cu_constant_pad_kernel},
    OPDI_CU_PAD_ROWS("reflection_pad1d"), OPDI_CU_PAD_ROWS("reflection_pad2d"), OPDI_CU_PAD_ROWS("reflection_pad3d"),
    OPDI_CU_PAD_ROWS("replication_pad1d"), OPDI_CU_PAD_ROWS("replication_pad2d"),
    OPDI_CU_PAD_ROWS("replication_pad3d"),
    {"max_pool2d_with_indices", opdi_cu_max_pool2d}, {"max_pool3d_with_indices", opdi_cu_max_pool3d},
    {"max_pool2d_with_indices_backward", opdi_cu_max_pool2d_backward},
    {"max_pool3d_with_indices_backward", opdi_cu_max_pool3d_backward},
    {"avg_pool2d", opdi_cu_avg_pool2d}, {"avg_pool3d", opdi_cu_avg_pool3d},
    {"avg_pool2d_backward", opdi_cu_avg_pool2d_backward}, {"avg_pool3d_backward", opdi_cu_avg_pool3d_backward},
    {"_adaptive_avg_pool2d", opdi_cu_adaptive_avg2d}, {"_adaptive_avg_pool3d", opdi_cu_adaptive_avg3d},
    {"_adaptive_avg_pool2d_backward", opdi_cu_adaptive_avg2d_backward},
    {"_adaptive_avg_pool3d_backward", opdi_cu_adaptive_avg3d_backward},
    {"adaptive_max_pool2d", opdi_cu_adaptive_max2d}, {"adaptive_max_pool3d", opdi_cu_adaptive_max3d},
    {"adaptive_max_pool2d_backward", opdi_cu_adaptive_max2d_backward},
    {"adaptive_max_pool3d_backward", opdi_cu_adaptive_max3d_backward},
    {"im2col", opdi_cu_im2col_kernel}, {"col2im", opdi_cu_col2im_kernel},
    {NULL, NULL}};

//== resampling ========================================================================================================
//
//  Along each dim, an output reads two inputs, `lo` and the next.  The forward and the backward pass use the same
//  weights.  As `lo` grows with the output's number, the outputs that read an input are neighbours, which a search
//  finds; their gradients are added.

/* A dim to be resampled, from m inputs to n outputs. */
struct opdi_cu_side { int64_t m, n; double scale; bool nearest, corners; };
/* The type in which positions and weights are computed. */
template <typename T> struct opdi_cu_weights_of { typedef float type; };
template <> struct opdi_cu_weights_of<double> { typedef double type; };
struct opdi_cu_taps { int64_t lo, hi; double w[2]; };
template <typename A> __device__ __forceinline__ opdi_cu_taps opdi_cu_taps_of(const opdi_cu_side &s, int64_t i) {
    const A scale = (A)s.scale, to = s.nearest || s.corners ? scale * (A)i : scale * ((A)i + (A)0.5) - (A)0.5;
    const double at = s.m == s.n ? (double)i : s.nearest && s.n == 2 * s.m ? (double)(i / 2)      /* as on the CPU */
        : to > 0 ? (double)to : 0.0;
    opdi_cu_taps l;
    l.lo = (int64_t)at < s.m - 1 ? (int64_t)at : s.m - 1;
    l.hi = l.lo + (l.lo < s.m - 1);
    l.w[1] = s.nearest ? 0 : at - (double)l.lo < 0 ? 0 : at - (double)l.lo > 1 ? 1 : at - (double)l.lo;
    l.w[0] = 1 - l.w[1];
    return l;
}
/* Returns the first output whose `lo` is the given input or a later one. */
template <typename A> __device__ __forceinline__ int64_t opdi_cu_first_tap(const opdi_cu_side &s, int64_t lo) {
    int64_t a = 0, b = s.n;
    while (a < b) {
        const int64_t mid = (a + b) / 2;
        if (opdi_cu_taps_of<A>(s, mid).lo < lo) { a = mid + 1; } else { b = mid; }
    }
    return a;
}
template <typename T> __global__ void opdi_cu_upsample_kernel(const opdi_cu_side r, const opdi_cu_side c, int64_t all,
    const T *x, T *y) {
    typedef typename opdi_cu_weights_of<T>::type A;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const opdi_cu_taps v = opdi_cu_taps_of<A>(r, i / c.n % r.n), h = opdi_cu_taps_of<A>(c, i % c.n);
        const T *p = x + i / c.n / r.n * r.m * c.m, *a = p + v.lo * c.m, *b = p + v.hi * c.m;
        if (r.nearest) { y[i] = a[h.lo]; continue; }
        opdi_cu_store(y + i,
            (A)v.w[0] * ((A)h.w[0] * opdi_cu_load<A>(a + h.lo) + (A)h.w[1] * opdi_cu_load<A>(a + h.hi)) +
            (A)v.w[1] * ((A)h.w[0] * opdi_cu_load<A>(b + h.lo) + (A)h.w[1] * opdi_cu_load<A>(b + h.hi)));
    }
}
/* x[i, j] = the weighted sum of the outputs y that read (i, j) */
template <typename T> __global__ void opdi_cu_upsample_back_kernel(const opdi_cu_side r, const opdi_cu_side c,
    int64_t all, T *x, const T *y) {
    typedef typename opdi_cu_weights_of<T>::type A;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t row = i / c.m % r.m, col = i % c.m, near = r.nearest ? 0 : 1;
        const int64_t r0 = opdi_cu_first_tap<A>(r, row - near), r1 = opdi_cu_first_tap<A>(r, row + 1);
        const int64_t c0 = opdi_cu_first_tap<A>(c, col - near), c1 = opdi_cu_first_tap<A>(c, col + 1);
        const T *p = y + i / c.m / r.m * r.n * c.n;
        A sum = 0;
        for (int64_t a = r0; a < r1; a++) {
            const opdi_cu_taps v = opdi_cu_taps_of<A>(r, a);
            const A wv = (v.lo == row ? (A)v.w[0] : A(0)) + (v.hi == row && !r.nearest ? (A)v.w[1] : A(0));
            for (int64_t b = c0; b < c1; b++) {
                const opdi_cu_taps h = opdi_cu_taps_of<A>(c, b);
                const A wh = (h.lo == col ? (A)h.w[0] : A(0)) + (h.hi == col && !c.nearest ? (A)h.w[1] : A(0));
                sum += wv * wh * opdi_cu_load<A>(p + a * c.n + b);
            }
        }
        opdi_cu_store(x + i, sum);
    }
}
/* Runs an upsampling or, if `back` is true, its gradient.  Argument number `scales` and the next are the scale factors;
   if `nearest` is false, align_corners comes before them.  Returns 0, or -1 and sets an error. */
static int opdi_cu_upsample_of(opd_call *call, bool nearest, bool back) {
    const int scales = 2 + !nearest + back;
    opd_tensor *from = opd_arg_tensor(call, 0), *to, *work;
    opdi_cu_side side[2];
    int rc = -1;
    if (opd_results_from_fake(call)) { return -1; }
    to = opdi_cu_result(call, 0);
    if (opd_numel(to) == 0) { return 0; }
    work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), 4), opd_dtype(to));
    if (!work || !(from = opd_contiguous(from))) { return -1; }
    for (int d = 0; d < 2; d++) {
        opdi_cu_side *s = &side[d];
        const double factor = opd_arg_is_none(call, scales + d) ? 0 : opd_arg_double(call, scales + d);
        s->m = opd_size(back ? to : from, 2 + d);
        s->n = opd_size(back ? from : to, 2 + d);
        s->nearest = nearest;
        s->corners = !nearest && opd_arg_bool(call, scales - 1);
        s->scale = s->corners ? s->n > 1 ? (double)(s->m - 1) / (double)(s->n - 1) : 0
            : factor > 0 ? 1 / factor : (double)s->m / (double)s->n;
    }
    const int64_t all = opd_numel(to);
    if (back) {
        OPDI_CU_FLOATS(opd_dtype(to), T, rc =
            opdi_cu_launch(opdi_cu_upsample_back_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0, side[0],
                                                            side[1], all, opdi_cu_data<T>(work), opdi_cu_data<T>(from)))
    } else {
        OPDI_CU_ALL(opd_dtype(to), T, rc = opdi_cu_launch(opdi_cu_upsample_kernel<T>, opdi_cu_grid(all, 256),
            dim3(256), 0, side[0], side[1],
                                                         all, opdi_cu_data<T>(from), opdi_cu_data<T>(work)))
    }
    return rc || (work != to && !opd_copy_(to, work)) ? -1 : 0;
}
static int opdi_cu_upsample_nearest(opd_call *call) { return opdi_cu_upsample_of(call, true, false); }
static int opdi_cu_upsample_nearest_back(opd_call *call) { return opdi_cu_upsample_of(call, true, true); }
static int opdi_cu_upsample_bilinear(opd_call *call) { return opdi_cu_upsample_of(call, false, false); }
static int opdi_cu_upsample_bilinear_back(opd_call *call) { return opdi_cu_upsample_of(call, false, true); }

//== grid_sampler_2d ===================================================================================================
//
//  As on the CPU, an output reads one, two or four rows and columns of the image.  A thread processes one point of the
//  grid for all channels.  The gradient of the image is added atomically, in any order, as in PyTorch.

/* The sizes and options of a grid sampler.  how: the interpolation mode; outside: the padding mode; corners:
   align_corners. */
struct opdi_cu_grid_params { int64_t n, c, in[2], out[2]; int how, outside; bool corners; };
/* The `count` rows or columns of an image that are read for one coordinate.  at: their indices, or -1 if outside of the
   image; w: their weights; d: the derivatives of the weights with respect to the coordinate. */
template <typename T> struct opdi_cu_lines { int count; int64_t at[4]; T w[4], d[4]; };

template <typename T> __device__ T opdi_cu_grid_inside(const opdi_cu_grid_params &k, T at, int64_t size, T *factor) {
    const T low = k.corners ? (T)0 : (T)-0.5, span = k.corners ? (T)(size - 1) : (T)size;
    if (k.outside == 2) {
        if (!(span > 0)) { *factor = 0; return 0; }
        at -= low;
        if (at < 0) { at = -at; *factor = -*factor; }
        const T times = (T)floor(at / span);
        at = (T)fmod(at, span);
        if (fmod(times, (T)2) > 0) { at = span - at; *factor = -*factor; }
        at += low;
    }
    if (at <= 0) { *factor = 0; return 0; }
    if (at >= (T)(size - 1)) { *factor = 0; return (T)(size - 1); }
    return at;
}
template <typename T> __device__ void opdi_cu_grid_lines(const opdi_cu_grid_params &k, T at, int64_t size,
                                                         opdi_cu_lines<T> *l) {
    T factor = k.corners ? (T)(size - 1) / 2 : (T)size / 2, none = 0;
    at = k.corners ? (at + 1) / 2 * (T)(size - 1) : ((at + 1) * (T)size - 1) / 2;
    if (k.how != 2 && k.outside != 0) { at = opdi_cu_grid_inside(k, at, size, &factor); }
    if (!(at > (T)-1e9 && at < (T)1e9)) { at = -100; }
    l->count = k.how == 1 ? 1 : k.how == 0 ? 2 : 4;
    T first = (T)(l->count == 1 ? rint(at) : floor(at));
    const T t = at - first;
    l->w[0] = 1; l->d[0] = 0;
    if (l->count == 2) { l->w[0] = 1 - t; l->w[1] = t; l->d[0] = -factor; l->d[1] = factor; }
    if (l->count == 4) {
        const T a = (T)-0.75, r = 1 - t, u = t + 1, v = 2 - t;
        first -= 1;
        l->w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
        l->w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        l->w[2] = ((a + 2) * r - (a + 3)) * r * r + 1;
        l->w[3] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a;
        l->d[0] = factor * ((3 * a * u - 10 * a) * u + 8 * a);
        l->d[1] = factor * (3 * (a + 2) * t - 2 * (a + 3)) * t;
        l->d[2] = -factor * (3 * (a + 2) * r - 2 * (a + 3)) * r;
        l->d[3] = -factor * ((3 * a * v - 10 * a) * v + 8 * a);
    }
    for (int i = 0; i < l->count; i++) {
        T line = first + (T)i;
        if (l->count == 4 && k.outside != 0) { line = opdi_cu_grid_inside(k, line, size, &none); }
        l->at[i] = line >= 0 && line < (T)size ? (int64_t)line : -1;
    }
}
/* Processes one point of the grid: computes y or, if g is not NULL, the gradients. */
template <typename T> struct opdi_cu_grid_place {
    opdi_cu_grid_params k;
    const T *x, *grid, *g;
    T *y, *dx, *dgrid;                            /* dx: may be NULL */
    __device__ void operator()(int64_t place) const {
        const int64_t area = k.in[0] * k.in[1], points = k.out[0] * k.out[1], n = place / points, p = place % points;
        opdi_cu_lines<T> r, c;
        T along[2] = {0, 0};
        opdi_cu_grid_lines(k, grid[place * 2 + 1], k.in[0], &r);
        opdi_cu_grid_lines(k, grid[place * 2], k.in[1], &c);
        for (int64_t ch = n * k.c; ch < (n + 1) * k.c; ch++) {
            const T *from = x + ch * area, by = g ? g[ch * points + p] : (T)0;
            T s = 0;
            for (int a = 0; a < r.count; a++) {
                for (int b = 0; b < c.count; b++) {
                    const int64_t at = r.at[a] * k.in[1] + c.at[b];
                    if (r.at[a] < 0 || c.at[b] < 0) { continue; }
                    if (!g) { s += r.w[a] * c.w[b] * from[at]; continue; }
                    if (dx) { atomicAdd(dx + ch * area + at, by * r.w[a] * c.w[b]); }
                    along[0] += by * from[at] * r.w[a] * c.d[b];
                    along[1] += by * from[at] * r.d[a] * c.w[b];
                }
            }
            if (!g) { y[ch * points + p] = s; }
        }
        if (g) { dgrid[place * 2] = along[0]; dgrid[place * 2 + 1] = along[1]; }
    }
};
template <typename T> static int opdi_cu_grid_go(const opdi_cu_grid_params &k, opd_tensor *x, opd_tensor *grid,
                                                 opd_tensor *g, opd_tensor *y, opd_tensor *dx, opd_tensor *dgrid) {
    const opdi_cu_grid_place<T> f = {k, opdi_cu_data<T>(x), opdi_cu_data<T>(grid), g ? opdi_cu_data<T>(g) : NULL,
                                     y ? opdi_cu_data<T>(y) : NULL, dx ? opdi_cu_data<T>(dx) : NULL,
                                     dgrid ? opdi_cu_data<T>(dgrid) : NULL};
    return opdi_cu_each(k.n * k.out[0] * k.out[1], f);
}
/* Runs grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners) or, if `back` is true, its
   gradient, which has grad_output in front of these arguments and output_mask after them. */
static int opdi_cu_grid_of(opd_call *call, bool back) {
    opd_tensor *g = back ? opd_arg_tensor(call, 0) : NULL, *x = opd_arg_tensor(call, back);
    opd_tensor *grid = opd_arg_tensor(call, back + 1), *r[2] = {NULL, NULL}, *staging[2] = {NULL, NULL};
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(x));
    opdi_cu_grid_params k;
    if (opd_results_from_fake(call)) { return -1; }
    const opd_value mask = back ? opd_arg_value(call, 6) : opd_value_none();
    if (back && (!mask.n || mask.u.bools[0]) && opd_deterministic_alert(call, NULL)) { return -1; }
    k.n = opd_sizes(x)[0]; k.c = opd_sizes(x)[1];
    for (int d = 0; d < 2; d++) { k.in[d] = opd_sizes(x)[2 + d]; k.out[d] = opd_sizes(grid)[1 + d]; }
    k.how = (int)opd_arg_int(call, back + 2);
    k.outside = (int)opd_arg_int(call, back + 3);
    k.corners = opd_arg_bool(call, back + 4);
    if (back) {
        const int64_t sizes[4] = {k.n, k.c, k.out[0], k.out[1]};
        g = opd_expand(g, opd_ints_of(sizes, 4));
        if (!g || !(g = opdi_cu_as(g, t))) { return -1; }
    }
    for (int i = 0; i < 1 + back; i++) {
        if (back && i == 0 && mask.n && !mask.u.bools[0]) { continue; }
        r[i] = opdi_cu_result(call, i);
        staging[i] = opdi_cu_staging(r[i], t);
        if (!staging[i] || (back && !opd_zero_(staging[i]))) { return -1; }
    }
    x = opdi_cu_as(x, t);
    grid = opdi_cu_as(grid, t);
    if (!x || !grid) { return -1; }
    if ((t == OPD_FLOAT64
         ? opdi_cu_grid_go<double>(k, x, grid, g, back ? NULL : staging[0], back ? staging[0] : NULL, staging[1])
         : opdi_cu_grid_go<float>(k, x, grid, g, back ? NULL : staging[0], back ? staging[0] : NULL,
                                  staging[1]))) { return -1; }
    for (int i = 0; i < 1 + back; i++) { if (staging[i] && opdi_cu_staging_store(r[i], staging[i])) { return -1; } }
    return 0;
}
static int opdi_cu_grid_kernel(opd_call *call) { return opdi_cu_grid_of(call, false); }
static int opdi_cu_grid_backward_kernel(opd_call *call) { return opdi_cu_grid_of(call, true); }

static const opdi_cu_registration opdi_cu_table_resampling[] = {
    {"grid_sampler_2d", opdi_cu_grid_kernel}, {"grid_sampler_2d_backward", opdi_cu_grid_backward_kernel},
    {"upsample_nearest2d", opdi_cu_upsample_nearest}, {"upsample_nearest2d_backward", opdi_cu_upsample_nearest_back},
    {"upsample_bilinear2d", opdi_cu_upsample_bilinear},
    {"upsample_bilinear2d_backward", opdi_cu_upsample_bilinear_back},
    {NULL, NULL}};

