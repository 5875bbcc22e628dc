
//== rotation of pairs of features =====================================================================================

/* y = x with pairs of features of each row turned by angles: (a, b) becomes (a cos - b sin, a sin + b cos).  A row has
   `depth` features, of which the first 2 half are in pairs: i and half + i, or if `next` is true, 2 i and 2 i + 1.
   Rows have three dims; strides: of x; table: of cos and sin, 0 if they are repeated along a dim.  y is contiguous.
   cos and sin are of x's type; if `wide` is true, of the type in which the kernel computes. */
struct opdi_cu_rotary {
    const void *x, *cos, *sin;
    void *y;
    int64_t sizes[3], strides[3], table[3], depth, half;
    bool wide, next, back;                        /* back: turns by the negative angles */
};
template <typename T, int W, typename C>
__device__ __forceinline__ void opdi_cu_rotary_table(const void *table, bool wide, int64_t at, C *c) {
    constexpr int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
    if (wide) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w += P) { opdi_cu_load_some<P>((const C *)table + at + w, c + w); }
    } else { opdi_cu_load_some<W>((const T *)table + at, c); }
}
/* W: how many pairs a thread turns. */
template <typename T, int W> __global__ void opdi_cu_rotary_kernel(const opdi_cu_rotary k) {
    typedef opdi_cu_acc<T> C;
    const int64_t turned = k.half / W, units = (k.depth - k.half) / W;
    const int64_t all = k.sizes[0] * k.sizes[1] * k.sizes[2] * units;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = i / units, u = i - row * units, r1 = row / k.sizes[2], r2 = row - r1 * k.sizes[2];
        const int64_t r0 = r1 / k.sizes[1], m = r1 - r0 * k.sizes[1];
        const T *x = (const T *)k.x + r0 * k.strides[0] + m * k.strides[1] + r2 * k.strides[2];
        const int64_t at = r0 * k.table[0] + m * k.table[1] + r2 * k.table[2] + u * W;
        T *y = (T *)k.y + row * k.depth;
        C c[W], s[W], v[2 * W];
        if (u >= turned) {                        /* features that are not turned */
            const int64_t from = u * W + k.half;
            opdi_cu_store_vector<W>(y + from, opdi_cu_load_vector<W>(x + from));
            continue;
        }
        opdi_cu_rotary_table<T, W>(k.cos, k.wide, at, c);
        opdi_cu_rotary_table<T, W>(k.sin, k.wide, at, s);
        const int64_t low = k.next ? 2 * u * W : u * W, high = k.next ? low + W : k.half + low;
        opdi_cu_load_some<W>(x + low, v);
        opdi_cu_load_some<W>(x + high, v + W);
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            const C sine = k.back ? -s[w] : s[w];
            if (k.next) {
                const C a = v[2 * w], b = v[2 * w + 1];
                v[2 * w] = a * c[w] - b * sine;
                v[2 * w + 1] = b * c[w] + a * sine;
            } else {
                const C a = v[w], b = v[W + w];
                v[w] = a * c[w] - b * sine;
                v[W + w] = b * c[w] + a * sine;
            }
        }
        opdi_cu_store_some<W>(y + low, v);
        opdi_cu_store_some<W>(y + high, v + W);
    }
}
/* Runs rotary(Tensor x, Tensor cos, Tensor sin, bool next, bool back) -> Tensor.  x has at most four dims and its
   features one after another; cos and sin have the sizes of x, but `half` features, and stride 1 there.  Their dtype is
   that of x, or float32. */
static int opdi_cu_rotary_run(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const cos = opd_arg_tensor(call, 1),
        *const sin = opd_arg_tensor(call, 2), *y;
    const int last = opd_ndim(x) - 1;
    opdi_cu_rotary k = opdi_cu_rotary();
    k.depth = opd_size(x, last); k.half = opd_size(cos, last);
    k.next = opd_arg_bool(call, 3); k.back = opd_arg_bool(call, 4);
    k.wide = opd_dtype(cos) != opd_dtype(x);
    if (!(y = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x)))) { return -1; }
    k.x = opdi_cu_data<const void>(x); k.cos = opdi_cu_data<const void>(cos); k.sin = opdi_cu_data<const void>(sin);
    k.y = opdi_cu_data<void>(y);
    const int64_t W = 16 / (int64_t)opd_dtype_size(opd_dtype(x));
    bool vec = k.depth % W == 0 && k.half % W == 0 && opdi_cu_aligned(k.x) && opdi_cu_aligned(k.cos) &&
        opdi_cu_aligned(k.sin) && opdi_cu_aligned(k.y);
    for (int d = 0; d < 3; d++) {
        const int of = last - 3 + d;
        k.sizes[d] = of < 0 ? 1 : opd_size(x, of);
        k.strides[d] = of < 0 || k.sizes[d] == 1 ? 0 : opd_strides(x)[of];
        k.table[d] = of < 0 || k.sizes[d] == 1 ? 0 : opd_strides(cos)[of];
        vec = vec && k.strides[d] % W == 0 && k.table[d] % W == 0;
    }
    if (opd_numel(x) > 0) {
        const int64_t units = k.sizes[0] * k.sizes[1] * k.sizes[2] * (k.depth - k.half);
        OPDI_CU_FLOATS(opd_dtype(x), T, {
            constexpr int P = 16 / (int)sizeof(T);
            if (vec ? opdi_cu_launch(opdi_cu_rotary_kernel<T, P>, opdi_cu_grid(units / P, 256), dim3(256), 0, k)
                    : opdi_cu_launch(opdi_cu_rotary_kernel<T, 1>, opdi_cu_grid(units, 256), dim3(256), 0, k)) {
                return -1;
            }
        })
    }
    return opd_return_tensor(call, y);
}
