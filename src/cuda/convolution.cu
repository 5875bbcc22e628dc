//----------------------------------------------------------------------------------------------------------------------
//  >>cu:convolution convolution
//
//  There are three problems: y = conv(x, w), and the gradients gx and gw with respect to x and w.  A transposed
//  convolution is computed like gx, with x and y exchanged.  For float16 and bfloat16, an implicit matrix product runs
//  on tensor cores.  For float32, 3 x 3 taps of many channels are computed by Winograd's method, and otherwise y and gx
//  by an implicit product of plain multiply-adds.  In all other cases, patches of the image are stored as columns of a
//  matrix, which cuBLAS multiplies.  Integers, and convolutions with few channels per group, have a simple kernel.
//  There are up to three spatial dims.  If there are fewer, they are the last of the three, and the others have size 1.
//----------------------------------------------------------------------------------------------------------------------

/* The sizes of a convolution of x [n, c, in] with w [oc, c / groups, k] to y [n, oc, out].  s: strides, p: padding, d:
   dilation. */
struct opdi_cu_conv { int64_t n, c, oc, groups; int in[3], out[3], k[3], s[3], p[3], d[3]; };
static __host__ __device__ __forceinline__ int64_t opdi_cu_volume(const int *v) { return (int64_t)v[0] * v[1] * v[2]; }

/* These two functions find the element that a tap of the kernel reads: an element of x to compute y or, if BACK, an
   element of y to compute gx.  opdi_cu_conv_place sets at[3] to the position of element `o` of the result, from which
   its taps are counted.  opdi_cu_conv_reads returns the element that tap[3] reads from there, or -1 if it is outside of
   the image.  In comments, reads(i, t) is the element that tap number t reads for element i. */
template <bool BACK> static __device__ __forceinline__ void opdi_cu_conv_place(const opdi_cu_conv &q, int o, int *at) {
    const int *side = BACK ? q.in : q.out;
    const int line = o / side[2], slice = line / side[1];
    at[0] = slice; at[1] = line - slice * side[1]; at[2] = o - line * side[2];
    OPDI_CU_UNROLL
    for (int d = 0; d < 3; d++) { at[d] = BACK ? at[d] + q.p[d] : at[d] * q.s[d] - q.p[d]; }
}
template <bool BACK>
static __device__ __forceinline__ int opdi_cu_conv_reads(const opdi_cu_conv &q, const int *at, const int *tap) {
    const int *side = BACK ? q.out : q.in;
    int to[3];
    bool inside = true;
    OPDI_CU_UNROLL
    for (int d = 0; d < 3; d++) {
        const int p = BACK ? at[d] - tap[d] * q.d[d] : at[d] + tap[d] * q.d[d];
        to[d] = BACK && q.s[d] != 1 ? p / q.s[d] : p;
        inside = inside && p >= 0 && to[d] < side[d] && (!BACK || q.s[d] == 1 || to[d] * q.s[d] == p);
    }
    return inside ? (to[0] * side[1] + to[1]) * side[2] + to[2] : -1;
}
/* A loop over the taps of q.  Its statement can use the tap's coordinates tap[3] and its number t. */
#define OPDI_CU_TAPS(q, tap, t) \
    for (int tap[3] = {0, 0, 0}, t = 0; tap[0] < (q).k[0]; tap[0]++) \
        for (tap[1] = 0; tap[1] < (q).k[1]; tap[1]++) \
            for (tap[2] = 0; tap[2] < (q).k[2]; tap[2]++, t++)

//== convolutions with few channels per group ==========================================================================

/* Computes to[n, r, i], the sum over c and t of from[n, c, reads(i, t)] * w[...], with one thread per element.
   Computes y from x or, if BACK, gx from y. */
struct opdi_cu_conv_sides { opdi_cu_pointwise_divider area, rows, groups; };
template <typename T, bool BACK>
__global__ void opdi_cu_conv_each_kernel(opdi_cu_conv q, opdi_cu_conv_sides by, const T *from, const T *w, T *to) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(BACK ? q.in : q.out), image = opdi_cu_volume(BACK ? q.out : q.in),
        taps = opdi_cu_volume(q.k), cg = q.c / q.groups, og = q.oc / q.groups;
    const int64_t rows = BACK ? cg : og, channels = BACK ? og : cg, across = BACK ? cg * taps : taps;
    const uint32_t all = (uint32_t)(q.n * q.groups * rows * area), step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint32_t plane = by.area.of(i), ng = by.rows.of(plane), r = plane - ng * (uint32_t)rows;
        const uint32_t g = ng - by.groups.of(ng) * (uint32_t)q.groups;
        const T *xs = from + ng * channels * image, *ws = w + (BACK ? g * og * cg + r : (g * og + r) * cg) * taps;
        int at[3];
        A sum = 0;
        opdi_cu_conv_place<BACK>(q, (int)(i - plane * (uint32_t)area), at);
        OPDI_CU_TAPS(q, tap, t) {
            const int reads = opdi_cu_conv_reads<BACK>(q, at, tap);
            if (reads < 0) { continue; }
            for (int64_t c = 0; c < channels; c++) {
                sum += opdi_cu_load<A>(xs + c * image + reads) * opdi_cu_load<A>(ws + c * across + t);
            }
        }
        opdi_cu_store(to + i, sum);
    }
}
/* Computes y or (BACK) gx.  Launches the kernel several times, each time for as many images as have at most 2^30
   elements in their results. */
template <typename T, bool BACK> static int opdi_cu_conv_each(opdi_cu_conv q, const T *from, const T *w, T *to) {
    const int64_t area = opdi_cu_volume(BACK ? q.in : q.out), channels = BACK ? q.c : q.oc, one = area * channels;
    const int64_t read = opdi_cu_volume(BACK ? q.out : q.in) * (BACK ? q.oc : q.c), images = q.n;
    if (one >= INT32_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "an image of a convolution on CUDA must have fewer than 2^31 - 1 "
                        "elements, but has %lld", (long long)one);
    }
    const opdi_cu_conv_sides by = {opdi_cu_divide_by((uint32_t)area),
                                   opdi_cu_divide_by((uint32_t)(channels / q.groups)),
                                   opdi_cu_divide_by((uint32_t)q.groups)};
    const int64_t most = ((int64_t)1 << 30) / one > 1 ? ((int64_t)1 << 30) / one : 1;
    for (int64_t n = 0; n < images; n += most) {
        q.n = images - n < most ? images - n : most;
        if (opdi_cu_launch(opdi_cu_conv_each_kernel<T, BACK>, opdi_cu_grid(q.n * one, 256), dim3(256), 0, q, by,
                           from + n * read, w, to + n * one)) { return -1; }
    }
    return 0;
}
/* Computes gw[o, c, t], the sum over n and i of y[n, o, i] * x[n, c, reads(i, t)], with one block per element. */
template <typename T> __global__ void __launch_bounds__(256)
    opdi_cu_conv_each_gw_kernel(opdi_cu_conv q, const T *x, const T *y, opdi_cu_acc<T> *w) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k),
        cg = q.c / q.groups, og = q.oc / q.groups, all = q.oc * cg * taps;
    for (int64_t e = blockIdx.x; e < all; e += gridDim.x) {
        const int t = (int)(e % taps);
        const int64_t o = e / taps / cg, c = o / og * cg + e / taps % cg;
        const int tap[3] = {t / q.k[2] / q.k[1], t / q.k[2] % q.k[1], t % q.k[2]};
        A sum = 0;
        for (int64_t n = 0; n < q.n; n++) {
            const T *xs = x + (n * q.c + c) * image, *ys = y + (n * q.oc + o) * area;
            for (int i = (int)threadIdx.x; i < (int)area; i += 256) {
                int at[3];
                opdi_cu_conv_place<false>(q, i, at);
                const int reads = opdi_cu_conv_reads<false>(q, at, tap);
                if (reads >= 0) { sum += opdi_cu_load<A>(xs + reads) * opdi_cu_load<A>(ys + i); }
            }
        }
        sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), A(0));
        if (threadIdx.x == 0) { w[e] = sum; }
    }
}

//== convolutions as products with a matrix of columns =================================================================

/* The layout of the columns: the element for tap t, output position o, channel c and image n is at n * image + (c *
   taps + t) * row + o. */
struct opdi_cu_columns { int64_t image, row; };
/* Sets col[n, c, t, o] to x[n, c, reads(o, t)] for `images` images, or 0 where a tap reads outside of the image.  A
   thread handles one output position of one channel: it computes the position once, and then writes the elements for
   all taps. */
template <typename T> __global__ void opdi_cu_unfold_kernel(opdi_cu_conv q, int64_t images, const T *x, T *col,
                                                            opdi_cu_columns to) {
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k);
    const int64_t all = images * q.c * area, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / area, n = plane / q.c, c = plane - n * q.c;
        const int o = (int)(i - plane * area);
        const T *from = x + plane * image;
        T *put = col + n * to.image + c * taps * to.row + o;
        int at[3];
        opdi_cu_conv_place<false>(q, o, at);
        OPDI_CU_TAPS(q, tap, t) {
            const int reads = opdi_cu_conv_reads<false>(q, at, tap);
            put[t * to.row] = reads >= 0 ? from[reads] : T(0.0f);
        }
    }
}
/* Sets to[c, n, i] to x[n, c, i]. */
template <typename T> __global__ void opdi_cu_planes_kernel(const T *x, T *to, int64_t images, int64_t channels,
                                                            int64_t area) {
    const int64_t all = images * channels * area, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / area, n = plane / channels, c = plane - n * channels;
        to[(c * images + n) * area + (i - plane * area)] = x[i];
    }
}
/* Sets x[n, c, i] to the sum over t of col[n, c, t, reads(i, t)]. */
template <typename T> __global__ void opdi_cu_fold_kernel(opdi_cu_conv q, int64_t images, const T *col, T *x) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k);
    const int64_t all = images * q.c * image, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / image;
        int at[3];
        A sum = 0;
        opdi_cu_conv_place<true>(q, (int)(i - plane * image), at);
        OPDI_CU_TAPS(q, tap, t) {
            const int reads = opdi_cu_conv_reads<true>(q, at, tap);
            if (reads >= 0) { sum += opdi_cu_load<A>(col + (plane * taps + t) * area + reads); }
        }
        opdi_cu_store(x + i, sum);
    }
}
enum { OPDI_CU_CONV_Y, OPDI_CU_CONV_GX, OPDI_CU_CONV_GW };
/* Returns whether the columns are the input itself: the kernel has one tap, the stride is 1, and nothing is padded. */
static bool opdi_cu_conv_is_product(const opdi_cu_conv *q) {
    for (int i = 0; i < 3; i++) { if (q->k[i] != 1 || q->s[i] != 1 || q->p[i] != 0) { return false; } }
    return true;
}
/* Multiplies the columns [kk, area] of `images` images by the weights.  A batched product covers the images of a group,
   or the groups of an image, whichever are more.  `what` is OPDI_CU_CONV_Y: y = w col, or OPDI_CU_CONV_GX: col = w^T y.
   Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_products(const opdi_cu_conv *q, int what, int64_t images, opd_scalar_type dtype, void *col,
    void *w, void *y) {
    const int64_t area = opdi_cu_volume(q->out), og = q->oc / q->groups, kk = q->c / q->groups * opdi_cu_volume(q->k);
    const int64_t size = (int64_t)opd_dtype_size(dtype);
    const bool by_group = images >= q->groups;
    const int64_t outer = by_group ? q->groups : images, inner = by_group ? images : q->groups;
    for (int64_t i = 0; i < outer; i++) {
        char *c = (char *)col + (by_group ? i * kk : i * q->groups * kk) * area * size;
        char *ys = (char *)y + (by_group ? i * og : i * q->oc) * area * size,
            *ws = (char *)w + (by_group ? i * og * kk : 0) * size;
        const int64_t c_batch = by_group ? q->groups * kk * area : kk * area,
            y_batch = by_group ? q->oc * area : og * area;
        const int64_t w_batch = by_group ? 0 : og * kk;
        opdi_cu_product b;
        opdi_cu_matrix cm = {c, c_batch, area, 1}, wm = {ws, w_batch, kk, 1}, wt = {ws, w_batch, 1, kk},
            ym = {ys, y_batch, area, 1};
        b.n = inner;
        if (what == OPDI_CU_CONV_Y) {
            b.m = og; b.k = kk; b.p = area; b.a = wm; b.b = cm; b.out = ys; b.out_batch = y_batch;
        } else { b.m = kk; b.k = og; b.p = area; b.a = wt; b.b = ym; b.out = c; b.out_batch = c_batch; }
        if (opdi_cu_gemm(&b, dtype, dtype, 1, 0)) { return -1; }
    }
    return 0;
}
/* Computes w = y col^T in w_dtype or, if `add` is true, adds it to w.  There is one product per group, over the
   positions of all images, which follow each other in y [oc, images, area] and col [c * taps, images, area].  Returns
   0, or -1 and sets an error. */
static int opdi_cu_conv_gw_product(const opdi_cu_conv *q, int64_t images, opd_scalar_type dtype, void *col, void *w,
    void *y, opd_scalar_type w_dtype, bool add) {
    const int64_t places = images * opdi_cu_volume(q->out), og = q->oc / q->groups,
        kk = q->c / q->groups * opdi_cu_volume(q->k);
    opdi_cu_product b;
    opdi_cu_matrix ct = {col, kk * places, 1, places}, ym = {y, og * places, places, 1};
    b.n = q->groups; b.m = og; b.k = places; b.p = kk; b.a = ym; b.b = ct; b.out = w; b.out_batch = og * kk;
    return opdi_cu_gemm(&b, dtype, w_dtype, 1, add ? 1 : 0);
}
/* Computes y, gx or gw, as `what` says, with as many images at a time as fit into 256 MiB of columns.  The gradient gw
   of 16-bit floats is computed in float32.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_conv_columns(const opdi_cu_conv *q, int what, opd_scalar_type dtype, T *x,
    void *w, T *y) {
    const int64_t area = opdi_cu_volume(q->out), image = opdi_cu_volume(q->in),
        one = q->c * opdi_cu_volume(q->k) * area;
    const bool gw = what == OPDI_CU_CONV_GW, direct = opdi_cu_conv_is_product(q) && (!gw || q->n == 1);
    const int64_t most = ((int64_t)256 << 20) / (one * (int64_t)sizeof(T));
    const int64_t n = most < 1 ? 1 : most < q->n ? most : q->n;
    T *col = direct ? NULL : static_cast<T *>(opdi_cu_scratch(n * one * (int64_t)sizeof(T)));
    T *turned = gw && n > 1 ? static_cast<T *>(opdi_cu_scratch(n * q->oc * area * (int64_t)sizeof(T))) : NULL;
    if ((!direct && !col) || (gw && n > 1 && !turned)) { return -1; }
    for (int64_t i = 0; i < q->n; i += n) {
        const int64_t images = n < q->n - i ? n : q->n - i;
        const opdi_cu_columns to = {gw ? area : one, gw ? images * area : area};
        T *xs = x + i * q->c * image, *ys = y + i * q->oc * area, *c = direct ? xs : col;
        if (!direct && what != OPDI_CU_CONV_GX &&
            opdi_cu_launch(opdi_cu_unfold_kernel<T>, opdi_cu_grid(images * q->c * area, 256), dim3(256), 0, *q, images,
                           xs, c, to)) { return -1; }
        if (gw && images > 1) {
            if (opdi_cu_launch(opdi_cu_planes_kernel<T>, opdi_cu_grid(images * q->oc * area, 256), dim3(256), 0, ys,
                               turned, images, q->oc, area)) { return -1; }
            ys = turned;
        }
        if (gw ? opdi_cu_conv_gw_product(q, images, dtype, c, w, ys, sizeof(T) == 2 ? OPD_FLOAT32 : dtype, i > 0)
               : opdi_cu_conv_products(q, what, images, dtype, c, w, ys)) { return -1; }
        if (!direct && what == OPDI_CU_CONV_GX &&
            opdi_cu_launch(opdi_cu_fold_kernel<T>, opdi_cu_grid(images * q->c * image, 256), dim3(256), 0, *q, images,
                           c, xs)) { return -1; }
    }
    return 0;
}

//== float32 convolutions by multiply-adds =============================================================================
//
//  The product is the same as in the kernel for tensor cores: to [n, rows, places] = weights^T [rows, taps * c] *
//  patches [taps * c, n * places].  A block computes a tile of ROWS channels and 128 places (output positions), of
//  which a thread has 8 x 8 (4 x 8 if ROWS is 32).  The patches are not stored in memory: eight rows of the inner
//  dimension are read into shared memory while the previous eight are multiplied.  A thread reads elements of only one
//  place.  All threads of a warp read the same tap and channel, and the tap's position is computed once for all
//  channels.  The speed is limited by the multiply-adds: 64 for 16 numbers from shared memory.

enum { OPDI_CU_IM_PLACES = 128, OPDI_CU_IM_K = 8 };
#define OPDI_CU_IM_THREADS(rows) ((rows) == 128 ? 256 : 128)
/* The matrix product that the kernel computes. */
struct opdi_cu_im {
    opdi_cu_conv q;
    int channels, rows, padded;                   /* channels: read, per group; rows: channels written, per group;
                                                     padded: rows, rounded up to a multiple of ROWS */
    int tiles;                                    /* tiles of rows, per group */
    int from_area, area, places;                 /* number of positions: from_area: of an image that is read; area: of
                                                    an image that is written; places: of all images that are written */
    bool back;                                    /* true: computes gx from y */
};
/* to[g, t, c, r] is the weight of tap t from input channel c to output channel r.  For r >= `rows`, it is padding and
   0. */
static __global__ void opdi_cu_im_weights_kernel(opdi_cu_im m, const float *w, float *to, int64_t all) {
    const int taps = (int)opdi_cu_volume(m.q.k), cg = m.back ? m.rows : m.channels;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int r = (int)(i % m.padded);
        const int64_t rest = i / m.padded, g = rest / m.channels / taps;
        const int c = (int)(rest % m.channels), t = (int)(rest / m.channels % taps);
        const int64_t o = g * (m.q.oc / m.q.groups) + (m.back ? c : r);
        to[i] = r < m.rows ? w[(o * cg + (m.back ? r : c)) * taps + t] : 0.0f;
    }
}
template <int ROWS, bool BACK>
__global__ void __launch_bounds__(OPDI_CU_IM_THREADS(ROWS), ROWS == 128 ? 2 : BACK ? 3 : 4)
    opdi_cu_im_kernel(opdi_cu_im m, const float *from, const float *weights, const float *bias, float *to) {
    enum { THREADS = OPDI_CU_IM_THREADS(ROWS), OWN = ROWS == 32 ? 4 : 8, K = OPDI_CU_IM_K, P = OPDI_CU_IM_PLACES };
    enum { LOADS = K * P / THREADS, QUADS = ROWS / 4 };           /* loads of a thread; groups of four in a row of
                                                                     weights */
    typedef opdi_cu_vector<float, 4> quad;
    __shared__ __align__(16) float a[2][K][ROWS], b[2][K][P];
    const int tid = (int)threadIdx.x, group = (int)blockIdx.z;
    const int row = (int)(blockIdx.x % (unsigned)m.tiles) * ROWS, place = (int)(blockIdx.x / (unsigned)m.tiles) * P;
    const int taps = (int)opdi_cu_volume(m.q.k), inner = taps * m.channels;
    /* this thread reads place `mine`, and LOADS of the K rows of a stage, from row `first` on */
    const int mine = place + tid % P, first = tid / P * LOADS;
    const int n = mine / m.area;
    int at[3], tap[3] = {0, 0, 0}, c = first, k = first;
    opdi_cu_conv_place<BACK>(m.q, mine - n * m.area, at);
    const float *source = from + ((int64_t)n * m.q.groups + group) * m.channels * m.from_area;
    const float *weight = weights + (int64_t)group * inner * m.padded + row;
    float held[LOADS], sums[OWN][8];
    quad four = {{0, 0, 0, 0}};
    int reads = -1;
    bool moved = true;                            /* c belongs to a new tap, whose position has not been computed yet */
    const int x = tid % 16, y = tid / 16;        /* this thread has places x * 4 .. and 64 + x * 4 .., and rows y * 4
                                                    .. */
    OPDI_CU_UNROLL
    for (int i = 0; i < OWN; i++) {
        OPDI_CU_UNROLL
        for (int j = 0; j < 8; j++) { sums[i][j] = 0; }
    }
    /* stage s is multiplied while stage s + 1 is read */
    const int stages = (inner + K - 1) / K;
    OPDI_CU_ROLLED
    for (int s = -1; s < stages; s++) {
        const bool more = s + 1 < stages;
        if (more) {
            OPDI_CU_UNROLL
            for (int i = 0; i < LOADS; i++) {
                while (c >= m.channels) {
                    c -= m.channels;
                    moved = true;
                    if (++tap[2] == m.q.k[2]) { tap[2] = 0; if (++tap[1] == m.q.k[1]) { tap[1] = 0; tap[0]++; } }
                }
                if (moved) { reads = mine < m.places ? opdi_cu_conv_reads<BACK>(m.q, at, tap) : -1; moved = false; }
                held[i] = k < inner && reads >= 0 ? source[c * m.from_area + reads] : 0.0f;
                c++; k++;
            }
            c += K - LOADS; k += K - LOADS;
            const int kk = (s + 1) * K + tid / QUADS;
            if (tid < K * QUADS) {
                four = kk < inner ? opdi_cu_load_vector<4>(weight + (int64_t)kk * m.padded + tid % QUADS * 4)
                    : quad{{0, 0, 0, 0}};
            }
        }
        if (s >= 0) {
            const int h = s & 1;
            OPDI_CU_UNROLL
            for (int kk = 0; kk < K; kk++) {
                quad u[OWN / 4], v[2];
                OPDI_CU_UNROLL
                for (int i = 0; i < OWN / 4; i++) { u[i] = opdi_cu_load_vector<4>(&a[h][kk][i * (ROWS / 2) + y * 4]); }
                OPDI_CU_UNROLL
                for (int i = 0; i < 2; i++) { v[i] = opdi_cu_load_vector<4>(&b[h][kk][i * 64 + x * 4]); }
                OPDI_CU_UNROLL
                for (int i = 0; i < OWN; i++) {
                    OPDI_CU_UNROLL
                    for (int j = 0; j < 8; j++) { sums[i][j] += u[i / 4].at[i % 4] * v[j / 4].at[j % 4]; }
                }
            }
        }
        if (more) {
            const int h = (s + 1) & 1;
            OPDI_CU_UNROLL
            for (int i = 0; i < LOADS; i++) { b[h][first + i][tid % P] = held[i]; }
            if (tid < K * QUADS) { opdi_cu_store_vector<4>(&a[h][tid / QUADS][tid % QUADS * 4], four); }
        }
        __syncthreads();
    }
    /* this thread has 4 rows from y * 4 on, 4 more in the lower half of the tile unless ROWS is 32, and 4 places in
       each half */
    const bool whole = m.area % 4 == 0 && opdi_cu_aligned(to);
    OPDI_CU_UNROLL
    for (int j = 0; j < 8; j += 4) {
        const int p = place + j * 16 + x * 4;
        OPDI_CU_UNROLL
        for (int i = 0; i < OWN; i++) {
            const int r = row + i / 4 * (ROWS / 2) + y * 4 + i % 4;
            if (r >= m.rows) { continue; }
            const float more = bias ? bias[group * m.rows + r] : 0.0f;
            if (whole) {
                if (p >= m.places) { continue; }
                const int image = p / m.area;
                float *put = to + (((int64_t)image * m.q.groups + group) * m.rows + r) * m.area + (p - image * m.area);
                quad sum;
                OPDI_CU_UNROLL
                for (int e = 0; e < 4; e++) { sum.at[e] = sums[i][j + e] + more; }
                opdi_cu_store_vector<4>(put, sum);
                continue;
            }
            OPDI_CU_UNROLL
            for (int e = 0; e < 4; e++) {
                const int image = (p + e) / m.area;
                if (p + e >= m.places) { break; }
                to[(((int64_t)image * m.q.groups + group) * m.rows + r) * m.area + (p + e - image * m.area)] =
                    sums[i][j + e] + more;
            }
        }
    }
}
/* Returns the height ROWS of a tile for a product with `rows` output channels. */
static int opdi_cu_im_tile(int64_t rows) { return rows > 64 ? 128 : rows > 32 ? 64 : 32; }
/* Returns whether the float32 kernel is worth using: the product keeps most multiprocessors busy, and its places can be
   counted in 32 bits. */
static bool opdi_cu_im_fits(const opdi_cu_conv *q, int what) {
    const bool back = what == OPDI_CU_CONV_GX;
    const int64_t rows = (back ? q->c : q->oc) / q->groups, channels = (back ? q->oc : q->c) / q->groups;
    const int64_t in = opdi_cu_volume(q->in), out = opdi_cu_volume(q->out), taps = opdi_cu_volume(q->k);
    const int64_t tile = opdi_cu_im_tile(rows);
    const int64_t blocks = opdi_cu_ceil(q->n * (back ? in : out), OPDI_CU_IM_PLACES) * opdi_cu_ceil(rows, tile) *
        q->groups;
    return what != OPDI_CU_CONV_GW && q->groups <= 65535 && rows >= 8 && (channels >= 4 || q->groups == 1) &&
        !opdi_cu_conv_is_product(q) && blocks >= opdi_cu_properties()->multiprocessors &&
        channels * (back ? out : in) < INT32_MAX && q->n * (back ? in : out) < INT32_MAX - OPDI_CU_IM_PLACES &&
        channels * taps < (1 << 24) && blocks / q->groups < INT32_MAX;
}
/* Computes y = conv(x, w) + bias, or gx from gy, as `what` says.  `from` is read and `to` is written; both are
   contiguous.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_im(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to) {
    opdi_cu_im m;
    m.q = *q;
    m.back = what == OPDI_CU_CONV_GX;
    m.channels = (int)((m.back ? q->oc : q->c) / q->groups);
    m.rows = (int)((m.back ? q->c : q->oc) / q->groups);
    m.from_area = (int)opdi_cu_volume(m.back ? q->out : q->in);
    m.area = (int)opdi_cu_volume(m.back ? q->in : q->out);
    m.places = (int)(q->n * m.area);
    const int tile = opdi_cu_im_tile(m.rows);
    m.tiles = (int)opdi_cu_ceil(m.rows, tile);
    m.padded = m.tiles * tile;
    const int64_t all = q->groups * opdi_cu_volume(q->k) * m.channels * m.padded;
    float *turned = static_cast<float *>(opdi_cu_scratch(all * 4));
    if (!turned || opdi_cu_launch(opdi_cu_im_weights_kernel, opdi_cu_grid(all, 256), dim3(256), 0, m, w, turned, all)) {
        return -1;
    }
    const dim3 grid((unsigned)(opdi_cu_ceil(m.places, OPDI_CU_IM_PLACES) * m.tiles), 1, (unsigned)q->groups);
    return opdi_cu_launch(m.back ? tile == 128 ? opdi_cu_im_kernel<128, true> : tile == 64 ? opdi_cu_im_kernel<64, true>
                                                                                       : opdi_cu_im_kernel<32, true>
                              : tile == 128 ? opdi_cu_im_kernel<128, false> : tile == 64 ? opdi_cu_im_kernel<64, false>
                                                                                         : opdi_cu_im_kernel<32, false>,
                          grid, dim3(OPDI_CU_IM_THREADS(tile)), 0, m, from, (const float *)turned, bias, to);
}

//== convolutions on tensor cores ======================================================================================
//
//  y [pixels, oc] = patches [pixels, taps * c] * w^T.  A block of four warps computes a tile of 128 pixels and 64
//  channels (64 x 32 per warp).  Channels are the last dim, and padded to a multiple of 8, so that 16 bytes belong to
//  one tap.  A stage is 32 rows of the inner dimension.  Stages are copied into shared memory without passing through
//  registers (from compute capability 8.0 on), two stages ahead of the one that is multiplied, with zeros for positions
//  outside of the image.  Offsets that are the same for all taps of a pixel are computed before the loop.  A stage is
//  12 KiB for 2 * 128 * 64 * 32 = 524,288 operations, or 43 per byte.  Most of its pixels have already been read for
//  the previous tap, so they come from L1.  The speed is limited by shared memory: a stage moves 36 KiB through it,
//  which takes 288 clocks at 128 bytes, while the tensor cores need about 205 (with 16 x 8 x 16 products by mma.sync,
//  not Hopper's own wgmma).

#define OPDI_CU_TC_M 128
#define OPDI_CU_TC_N 64
#define OPDI_CU_TC_K 32
#define OPDI_CU_TC_LD (OPDI_CU_TC_K + 8)          /* row length in shared memory: rows begin in different banks */
#define OPDI_CU_TC_STAGES 3
#define OPDI_CU_TC_THREADS 128

/* Whether products of T were compiled: products of bfloat16 exist only for compute capability 8.0 or newer.  The host
   calls opdi_cu_tc_compiled to find out.  A kernel without compiled products traps. */
template <typename T> struct opdi_cu_tc_there {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    enum { yes = std::is_same<T, opdi_cu_f16>::value };
#else
    enum { yes = true };
#endif
};
#if defined(OPD_CUDA_EMULATED)
#define OPDI_CU_TC_STOP(T) if (!std::is_same<T, opdi_cu_f16>::value && opd_emu::compiled() < 80) { __trap(); }
#else
#define OPDI_CU_TC_STOP(T) if constexpr (!opdi_cu_tc_there<T>::yes) { __trap(); }
#endif
/* opdi_cu_stage_16 begins to copy 16 bytes from device memory to shared memory or, if `there` is false, writes zeros.
   opdi_cu_stages_commit ends a stage.  opdi_cu_stages_wait<n> waits until all stages but the last n have arrived for
   the calling thread. */
__device__ __forceinline__ void opdi_cu_stage_16(void *to, const void *from, bool there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" : : "r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0) : "memory");
#else
    const uint4 none = {0, 0, 0, 0};
    *reinterpret_cast<uint4 *>(to) = there ? *reinterpret_cast<const uint4 *>(from) : none;
#endif
}
__device__ __forceinline__ void opdi_cu_stages_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
template <int N> __device__ __forceinline__ void opdi_cu_stages_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}

/* Packs two 16-bit floats into one word, `a` in the low half. */
__device__ __forceinline__ uint32_t opdi_cu_two(opdi_cu_f16 a, opdi_cu_f16 b) {
    return (uint32_t)__half_as_ushort(b) << 16 | __half_as_ushort(a);
}
__device__ __forceinline__ uint32_t opdi_cu_two(opdi_cu_bf16 a, opdi_cu_bf16 b) {
    return (uint32_t)__bfloat16_as_ushort(b) << 16 | __bfloat16_as_ushort(a);
}
/* Products of 16 x 16 x 16 by a warp: s += a * b, for tiles in shared memory.  a is [m][k] (if TURNED, [k][m]) and b is
   [n][k] (if TURNED, [k][n]); rows are `ld` elements apart.  place_a and place_b return the distance from a tile's
   first element to the element that a lane loads.  From compute capability 8.0 on, the instructions are used directly,
   because CUDA's fragments compute addresses for each load, and load bfloat16 word by word. */
template <typename T, bool TURNED> struct opdi_cu_mma {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    struct Part { uint32_t r[4]; };
    typedef Part A;
    typedef Part B;
    struct S { float x[8]; };                     /* two tiles of 16 x 8 */
    static __device__ __forceinline__ int place_a(int ld) {
        const int lane = threadIdx.x % 32, outer = lane / 16 * 8, inner = lane % 16;
        return TURNED ? (outer + lane % 8) * ld + inner / 8 * 8 : inner * ld + outer;
    }
    static __device__ __forceinline__ int place_b(int ld) {
        const int lane = threadIdx.x % 32, outer = lane / 16 * 8, half = lane / 8 % 2 * 8;
        return TURNED ? (half + lane % 8) * ld + outer : (outer + lane % 8) * ld + half;
    }
    static __device__ __forceinline__ void load(Part &p, const T *from, int) {
        const unsigned at = (unsigned)__cvta_generic_to_shared(from);
        if (TURNED) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.r[0]), "=r"(p.r[1]), "=r"(p.r[2]), "=r"(p.r[3]) : "r"(at) : "memory");
        } else {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.r[0]), "=r"(p.r[1]), "=r"(p.r[2]), "=r"(p.r[3]) : "r"(at) : "memory");
        }
    }
    static __device__ __forceinline__ void zero(S &s) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { s.x[i] = 0; }
    }
#define OPDI_CU_MMA(type) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 " \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) \
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * i]), "r"(b.r[2 * i + 1]));
    template <typename OfB> static __device__ __forceinline__ void add(S &s, const A &a, const OfB &b) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 2; i++) {
            float *x = s.x + 4 * i;
            if (std::is_same<T, opdi_cu_f16>::value) { OPDI_CU_MMA("f16") } else { OPDI_CU_MMA("bf16") }
        }
    }
    /* row(i) and column(i) are the position of element i of a lane's sums; of_two(i) tells in which of the lane's two
       rows it is.  An even element and the next element are neighbours in a row. */
    static __device__ __forceinline__ int row(int i) { return threadIdx.x % 32 / 4 + i / 2 % 2 * 8; }
    static __device__ __forceinline__ int column(int i) { return threadIdx.x % 4 * 2 + i % 2 + i / 4 * 8; }
    static __device__ __forceinline__ constexpr int of_two(int i) { return i / 2 % 2; }
    /* row_most and row_sum return the maximum and the sum of `v` over the lanes that have elements of the same row. */
    static __device__ __forceinline__ float row_most(float v) {
        v = fmaxf(v, __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1));
        return fmaxf(v, __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 2));
    }
    static __device__ __forceinline__ float row_sum(float v) {
        v += __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1);
        return v + __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 2);
    }
    /* Stores element (m, n) of the sums in to[m * down + n * across]. */
    static __device__ __forceinline__ void store(float *to, const S &s, int down, int across) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { to[row(i) * down + column(i) * across] = s.x[i]; }
    }
    /* Rounds the sums to T and makes them the first factor of another product. */
    static __device__ __forceinline__ void turn(A &a, const S &s) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 4; i++) {
            a.r[i] = opdi_cu_two(opdi_cu_cast<T>(s.x[2 * i]), opdi_cu_cast<T>(s.x[2 * i + 1]));
        }
    }
#else
    typedef nvcuda::wmma::row_major R;
    typedef nvcuda::wmma::col_major C;
    typedef typename std::conditional<TURNED, C, R>::type OfA;
    typedef typename std::conditional<TURNED, R, C>::type OfB;
    typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, T, OfA> A;
    typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, T, OfB> B;
    typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> S;
    static __device__ __forceinline__ int place_a(int) { return 0; }
    static __device__ __forceinline__ int place_b(int) { return 0; }
    template <typename P> static __device__ __forceinline__ void load(P &p, const T *from, int ld) {
        nvcuda::wmma::load_matrix_sync(p, from, (unsigned)ld);
    }
    static __device__ __forceinline__ void zero(S &s) { nvcuda::wmma::fill_fragment(s, 0.0f); }
    template <typename OtherB> static __device__ __forceinline__ void add(S &s, const A &a, const OtherB &b) {
        nvcuda::wmma::mma_sync(s, a, b, s);
    }
    /* These functions describe the emulation's layout of sums.  They are not called for older GPUs. */
    static __device__ __forceinline__ int row(int) { return threadIdx.x % 32 / 2; }
    static __device__ __forceinline__ int column(int i) { return threadIdx.x % 2 * 8 + i; }
    static __device__ __forceinline__ constexpr int of_two(int) { return 0; }
    static __device__ __forceinline__ float row_most(float v) {
        return fmaxf(v, __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1));
    }
    static __device__ __forceinline__ float row_sum(float v) { return v + __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1); }
    static __device__ __forceinline__ void turn(A &a, const S &s) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { a.x[i] = opdi_cu_cast<T>(s.x[i]); }
    }
    static __device__ __forceinline__ void store(float *to, const S &s, int down, int across) {
        if (across == 1) { nvcuda::wmma::store_matrix_sync(to, s, (unsigned)down, nvcuda::wmma::mem_row_major); }
        else { nvcuda::wmma::store_matrix_sync(to, s, (unsigned)across, nvcuda::wmma::mem_col_major); }
    }
#endif
};

/* Sets to[n, i, g, c] to from[n, g, c, i], or to 0 for c from cg to cp - 1. */
template <typename T> __global__ void __launch_bounds__(256)
opdi_cu_channels_last_kernel(const T *from, T *to, int64_t n, int64_t groups, int64_t cg, int64_t cp, int64_t area) {
    constexpr int S = 64, rows = 256 / S;
    __shared__ T tile[S][S + 4 / sizeof(T)];
    const int x = threadIdx.x % S, y = threadIdx.x / S;
    const int64_t tiles_i = opdi_cu_ceil(area, S), tiles_c = opdi_cu_ceil(cp, S), all = n * groups * tiles_i * tiles_c;
    for (int64_t b = blockIdx.x; b < all; b += gridDim.x) {
        const int64_t i0 = b % tiles_i * S, q = b / tiles_i, c0 = q % tiles_c * S, ng = q / tiles_c;
        const T *in = from + (ng * cg + c0) * area + i0 + x;
        T *out = to + ((ng / groups * area + i0) * groups + ng % groups) * cp + c0 + x;
        T v[S / rows];
        OPDI_CU_UNROLL
        for (int k = 0, r = y; k < S / rows; k++, r += rows) {
            v[k] = T(0.0f);
            if (c0 + r < cg && i0 + x < area) { v[k] = in[r * area]; }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int k = 0, r = y; k < S / rows; k++, r += rows) { tile[r][x] = v[k]; }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int r = y; r < S; r += rows) {
            if (c0 + x < cp && i0 + r < area) { out[r * groups * cp] = tile[x][r]; }
        }
    }
}
/* A row of the matrix of patches: the element that its first tap reads (which may be outside of the image), and a bit
   for each tap that is inside.  Bits 0 to 11 are for the taps along the last dim, 12 to 21 for the dim before, 22 to 30
   for the first. */
#define OPDI_CU_TC_TAPS {9, 10, 12}
struct opdi_cu_pixel { int at; uint32_t inside; };
__device__ __forceinline__ uint32_t opdi_cu_taps_inside(int from, int taps, int apart, int size) {
    uint32_t bits = 0;
    OPDI_CU_ROLLED
    for (int t = 0; t < taps; t++) { bits |= (uint32_t)((unsigned)(from + t * apart) < (unsigned)size) << t; }
    return bits;
}
__device__ __forceinline__ opdi_cu_pixel opdi_cu_pixel_of(const opdi_cu_conv &q, uint32_t m, uint32_t pixels,
                                                          int line) {
    const uint32_t ow = (uint32_t)q.out[2], oh = (uint32_t)q.out[1], oz = (uint32_t)q.out[0];
    const uint32_t r = m / ow, plane = r / oh, image = plane / oz;
    const int w = (int)(m - r * ow) * q.s[2] - q.p[2], h = (int)(r - plane * oh) * q.s[1] - q.p[1];
    const int z = (int)(plane - image * oz) * q.s[0] - q.p[0];
    opdi_cu_pixel p;
    p.at = ((((int)image * q.in[0] + z) * q.in[1] + h) * q.in[2] + w) * line;
    p.inside = opdi_cu_taps_inside(w, q.k[2], q.d[2], q.in[2]) | opdi_cu_taps_inside(h, q.k[1], q.d[1], q.in[1]) << 12 |
        opdi_cu_taps_inside(z, q.k[0], q.d[0], q.in[0]) << 22;
    if (m >= pixels) { p.inside = 0; }
    return p;
}
/* The position of a group of eight channels on its way through the inner dimension: the channel c, the tap z, h, w, the
   distance `at` from the patch's first element to the tap's elements, and the bits of the tap. */
struct opdi_cu_walk {
    int c, z, h, w, at;
    uint32_t bits;
    __device__ __forceinline__ void settle(const opdi_cu_conv &q, int cp, int line) {
        while (c >= cp) {
            c -= cp;
            if (++w == q.k[2]) { w = 0; if (++h == q.k[1]) { h = 0; z++; } }
            at = ((z * q.d[0] * q.in[1] + h * q.d[1]) * q.in[2] + w * q.d[2]) * line;
            bits = 1u << w | 1u << (12 + h) | 1u << (22 + z);
        }
    }
};
/* Computes a tile of y.  x [n, in, groups, cp] and w [oc, taps, cp] have padded channels.  y is [n, oc, out] or, if
   LAST, [n, out, oc]. */
template <typename T, bool LAST>
__device__ __forceinline__ void opdi_cu_conv_tile(const opdi_cu_conv &q, const T *x, const T *w, const T *bias, T *y,
                                                  int cp, int tiles_n, unsigned char *scratch) {
    typedef opdi_cu_mma<T, false> M;
    constexpr int LD = OPDI_CU_TC_LD, stage = (OPDI_CU_TC_M + OPDI_CU_TC_N) * LD, A = OPDI_CU_TC_M / 32,
        B = OPDI_CU_TC_N / 32;
    T *tiles = reinterpret_cast<T *>(scratch);    /* per stage: patches [128][40], then weights [64][40] */
    const int t = threadIdx.x, warp = t / 32, og = (int)(q.oc / q.groups), group = blockIdx.z,
        line = (int)q.groups * cp;
    const int m0 = (int)(blockIdx.x / tiles_n) * OPDI_CU_TC_M, n0 = (int)(blockIdx.x % tiles_n) * OPDI_CU_TC_N;
    const int area = (int)opdi_cu_volume(q.out), pixels = (int)q.n * area, kk = (int)opdi_cu_volume(q.k) * cp;
    const int chunk = t % 4 * 8, row = t / 4;     /* this thread copies rows row, row + 32, ... of patches and
                                                     weights */
    const int wm = warp % 2 * 64, wn = warp / 2 * 32, steps = (kk + OPDI_CU_TC_K - 1) / OPDI_CU_TC_K;
    typename M::S sum[4][2];
    opdi_cu_pixel px[A];
    opdi_cu_walk walk = {chunk, 0, 0, 0, 0, 1u | 1u << 12 | 1u << 22};
    const T *wrow = w + (int64_t)(group * og + n0 + row) * kk + chunk;
    T *to = tiles + row * LD + chunk;             /* this thread's part of the next stage */
    int left = kk - chunk, slot = 0;
    OPDI_CU_UNROLL
    for (int i = 0; i < A; i++) {
        px[i] = opdi_cu_pixel_of(q, (uint32_t)(m0 + row + 32 * i), (uint32_t)pixels, line);
        px[i].at += group * cp;
    }
    OPDI_CU_UNROLL
    for (int i = 0; i < 4; i++) { for (int j = 0; j < 2; j++) { M::zero(sum[i][j]); } }
    const auto bring = [&]() {                    /* begins to copy the next stage, if there is one */
        if (left > -OPDI_CU_TC_K) {
            const bool tap = left > 0;
            walk.settle(q, cp, line);
            const int at = walk.at + walk.c;
            OPDI_CU_UNROLL
            for (int i = 0; i < A; i++) {
                opdi_cu_stage_16(to + 32 * i * LD, x + (px[i].at + at), tap && (px[i].inside & walk.bits) == walk.bits);
            }
            OPDI_CU_UNROLL
            for (int i = 0; i < B; i++) {
                opdi_cu_stage_16(to + (OPDI_CU_TC_M + 32 * i) * LD, wrow + 32 * i * kk, tap && n0 + row + 32 * i < og);
            }
            walk.c += OPDI_CU_TC_K;
            wrow += OPDI_CU_TC_K;
            left -= OPDI_CU_TC_K;
        }
        to += stage;
        if (++slot == OPDI_CU_TC_STAGES) { slot = 0; to -= OPDI_CU_TC_STAGES * stage; }
        opdi_cu_stages_commit();
    };
    for (int s = 0; s < OPDI_CU_TC_STAGES - 1; s++) { bring(); }
    const T *as = tiles + wm * LD + M::place_a(LD), *bs = tiles + (OPDI_CU_TC_M + wn) * LD + M::place_b(LD);
    OPDI_CU_ROLLED
    for (int s = 0, at = 0; s < steps; s++) {
        opdi_cu_stages_wait<OPDI_CU_TC_STAGES - 2>();
        __syncthreads();                          /* all parts of the stage have arrived, and the previous stage is
                                                     finished */
        bring();
        OPDI_CU_UNROLL
        for (int l = 0; l < OPDI_CU_TC_K; l += 16) {
            typename M::A fa[4];
            typename M::B fb[2];
            OPDI_CU_UNROLL
            for (int j = 0; j < 2; j++) { M::load(fb[j], bs + 16 * j * LD + l, LD); }
            OPDI_CU_UNROLL
            for (int i = 0; i < 4; i++) { M::load(fa[i], as + 16 * i * LD + l, LD); }
            OPDI_CU_UNROLL
            for (int i = 0; i < 4; i++) { for (int j = 0; j < 2; j++) { M::add(sum[i][j], fa[i], fb[j]); } }
        }
        as += stage; bs += stage;
        if (++at == OPDI_CU_TC_STAGES) { at = 0; as -= OPDI_CU_TC_STAGES * stage; bs -= OPDI_CU_TC_STAGES * stage; }
    }
    opdi_cu_stages_wait<0>();
    __syncthreads();                              /* the sums take the place of the stages: [64][132] or, if LAST,
                                                     [128][68] */
    float *out = reinterpret_cast<float *>(scratch);
    constexpr int ld = LAST ? OPDI_CU_TC_N + 4 : OPDI_CU_TC_M + 4, across = LAST ? OPDI_CU_TC_N / 8 : OPDI_CU_TC_M / 8;
    OPDI_CU_UNROLL
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 2; j++) {
            if (LAST) { M::store(out + (wm + 16 * i) * ld + wn + 16 * j, sum[i][j], ld, 1); }
            else { M::store(out + (wn + 16 * j) * ld + wm + 16 * i, sum[i][j], 1, ld); }
        }
    }
    __syncthreads();
    /* writes eight neighbouring channels or pixels of the result at a time, by one store if they are aligned */
    const bool whole = opdi_cu_aligned(y) && (LAST ? og % 8 == 0 && q.oc % 8 == 0 : area % 8 == 0);
    OPDI_CU_ROLLED
    for (int i = t; i < OPDI_CU_TC_M * OPDI_CU_TC_N / 8; i += OPDI_CU_TC_THREADS) {
        const int r = i / across, c = i % across * 8, n = n0 + (LAST ? c : r), m = m0 + (LAST ? r : c);
        opdi_cu_vector<T, 8> v;
        if (n >= og || m >= pixels) { continue; }
        OPDI_CU_UNROLL
        for (int k = 0; k < 8; k++) {
            const int o = LAST && n + k < og ? n + k : n;
            v.at[k] = opdi_cu_cast<T>(out[r * ld + c + k] + (bias ? opdi_cu_load<float>(bias + group * og + o) : 0.0f));
        }
        const int64_t o = (int64_t)group * og + n;
        if (whole) {
            const int image = m / area;
            T *to = y + (LAST ? (int64_t)m * q.oc + o : (image * q.oc + o) * area + (m - image * area));
            uint4 all;
            all.x = opdi_cu_two(v.at[0], v.at[1]); all.y = opdi_cu_two(v.at[2], v.at[3]);
            all.z = opdi_cu_two(v.at[4], v.at[5]); all.w = opdi_cu_two(v.at[6], v.at[7]);
#if defined(OPD_CUDA_EMULATED)
            *reinterpret_cast<uint4 *>(to) = all;
#else                                             /* assembly, because the compiler would split an ordinary store */
            asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(__cvta_generic_to_global(to)),
                         "r"(all.x), "r"(all.y), "r"(all.z), "r"(all.w) : "memory");
#endif
            continue;
        }
        OPDI_CU_UNROLL
        for (int k = 0; k < 8; k++) {
            const int pixel = LAST ? m : m + k;
            if (LAST ? n + k >= og : pixel >= pixels) { continue; }
            y[LAST ? (int64_t)m * q.oc + o + k : (pixel / area * q.oc + o) * area + pixel % area] = v.at[k];
        }
    }
}
template <typename T, bool LAST> __global__ void __launch_bounds__(OPDI_CU_TC_THREADS, 3)
opdi_cu_conv_tc_kernel(const __grid_constant__ opdi_cu_conv q, const T *x, const T *w, const T *bias, T *y, int cp,
                       int tiles_n) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
    if constexpr (opdi_cu_tc_there<T>::yes) { opdi_cu_conv_tile<T, LAST>(q, x, w, bias, y, cp, tiles_n, scratch); }
}

/* Computes the gradient with respect to w in parts [split][oc, taps, cp].  Each part is a sum over some of the pixels
   of y [pixels, groups, op] and of the patches of x.  A block computes 64 x 64 channels for one tap and one part, in
   stages of 32 pixels.  The parts are then added in a fixed order. */
#define OPDI_CU_GW_SIDE 64
#define OPDI_CU_GW_K 32
#define OPDI_CU_GW_LD (OPDI_CU_GW_SIDE + 8)
struct opdi_cu_gw { opdi_cu_pointwise_divider w, h, z; int op, cp, tiles_o, tiles_c, splits; };
template <typename T>
__device__ __forceinline__ void opdi_cu_conv_gw_tile(const opdi_cu_conv &q, const opdi_cu_gw &k, const T *x, const T *y,
                                                     float *parts, unsigned char *scratch) {
    typedef opdi_cu_mma<T, true> M;
    constexpr int LD = OPDI_CU_GW_LD, stage = 2 * OPDI_CU_GW_K * LD, R = OPDI_CU_GW_K / 16;
    T *tiles = reinterpret_cast<T *>(scratch);    /* per stage: y [32][72], then x [32][72] */
    const int t = threadIdx.x, warp = t / 32, group = blockIdx.z, tile = blockIdx.x / (k.tiles_o * k.tiles_c);
    const int o0 = (int)blockIdx.x % k.tiles_o * OPDI_CU_GW_SIDE,
        c0 = (int)blockIdx.x / k.tiles_o % k.tiles_c * OPDI_CU_GW_SIDE;
    const int tw = tile % q.k[2] * q.d[2], th = tile / q.k[2] % q.k[1] * q.d[1], tz = tile / q.k[2] / q.k[1] * q.d[0];
    const int pixels = (int)(q.n * opdi_cu_volume(q.out)), lane = t % 8 * 8, row = t / 8;
    const int each = ((pixels + k.splits - 1) / k.splits + OPDI_CU_GW_K - 1) / OPDI_CU_GW_K * OPDI_CU_GW_K;
    const int64_t begin = (int64_t)blockIdx.y * each, end = begin + each < pixels ? begin + each : pixels;
    const int steps = begin < end ? (int)((end - begin + OPDI_CU_GW_K - 1) / OPDI_CU_GW_K) : 0;
    const int wm = warp % 2 * 32, wn = warp / 2 * 32;
    const bool o_there = o0 + lane < k.op, c_there = c0 + lane < k.cp;
    typename M::S sum[2][2];
    OPDI_CU_UNROLL
    for (int i = 0; i < 2; i++) { for (int j = 0; j < 2; j++) { M::zero(sum[i][j]); } }
    const auto bring = [&](int s) {
        T *ys = tiles + s % OPDI_CU_TC_STAGES * stage + row * LD + lane, *xs = ys + OPDI_CU_GW_K * LD;
        OPDI_CU_UNROLL
        for (int i = 0; i < R && s < steps; i++) {
            const int64_t m = begin + s * OPDI_CU_GW_K + row + 16 * i;
            const uint32_t p = m < end ? (uint32_t)m : 0, r = k.w.of(p), plane = k.h.of(r), image = k.z.of(plane);
            const int w = (int)(p - r * (uint32_t)q.out[2]) * q.s[2] - q.p[2] + tw;
            const int h = (int)(r - plane * (uint32_t)q.out[1]) * q.s[1] - q.p[1] + th;
            const int z = (int)(plane - image * (uint32_t)q.out[0]) * q.s[0] - q.p[0] + tz;
            const bool of_y = m < end && o_there, there = m < end && c_there && (unsigned)z < (unsigned)q.in[0] &&
                (unsigned)h < (unsigned)q.in[1] && (unsigned)w < (unsigned)q.in[2];
            const int64_t at = (((int64_t)image * q.in[0] + z) * q.in[1] + h) * q.in[2] + w;
            opdi_cu_stage_16(ys + 16 * i * LD, of_y ? y + (m * q.groups + group) * k.op + o0 + lane : y, of_y);
            opdi_cu_stage_16(xs + 16 * i * LD, there ? x + (at * q.groups + group) * k.cp + c0 + lane : x, there);
        }
        opdi_cu_stages_commit();
    };
    for (int s = 0; s < OPDI_CU_TC_STAGES - 1; s++) { bring(s); }
    for (int s = 0; s < steps; s++) {
        const T *ys = tiles + s % OPDI_CU_TC_STAGES * stage + wm + M::place_a(LD);
        const T *xs = tiles + s % OPDI_CU_TC_STAGES * stage + OPDI_CU_GW_K * LD + wn + M::place_b(LD);
        opdi_cu_stages_wait<OPDI_CU_TC_STAGES - 2>();
        __syncthreads();
        bring(s + OPDI_CU_TC_STAGES - 1);
        OPDI_CU_UNROLL
        for (int l = 0; l < OPDI_CU_GW_K; l += 16) {
            typename M::A fa[2];
            typename M::B fb[2];
            OPDI_CU_UNROLL
            for (int i = 0; i < 2; i++) {
                M::load(fa[i], ys + l * LD + 16 * i, LD);
                M::load(fb[i], xs + l * LD + 16 * i, LD);
            }
            OPDI_CU_UNROLL
            for (int i = 0; i < 2; i++) { for (int j = 0; j < 2; j++) { M::add(sum[i][j], fa[i], fb[j]); } }
        }
    }
    opdi_cu_stages_wait<0>();
    __syncthreads();
    float *out = reinterpret_cast<float *>(scratch);
    constexpr int ld = OPDI_CU_GW_SIDE + 4;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            M::store(out + (wm + 16 * i) * ld + wn + 16 * j, sum[i][j], ld, 1);
        }
    }
    __syncthreads();
    const int og = (int)(q.oc / q.groups);
    const int64_t taps = opdi_cu_volume(q.k), base = blockIdx.y * q.oc + (int64_t)group * og;
    for (int i = t; i < OPDI_CU_GW_SIDE * OPDI_CU_GW_SIDE; i += OPDI_CU_TC_THREADS) {
        const int r = i / OPDI_CU_GW_SIDE, o = o0 + r, c = c0 + i % OPDI_CU_GW_SIDE;
        if (o < og && c < k.cp) { parts[((base + o) * taps + tile) * k.cp + c] = out[r * ld + c - c0]; }
    }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_TC_THREADS)
opdi_cu_conv_gw_kernel(const __grid_constant__ opdi_cu_conv q, const __grid_constant__ opdi_cu_gw k, const T *x,
                       const T *y, float *parts) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
    if constexpr (opdi_cu_tc_there<T>::yes) { opdi_cu_conv_gw_tile<T>(q, k, x, y, parts, scratch); }
}
/* Sets w[o, c, t] to the sum of parts[split][o, t, c] over all splits. */
template <typename T> __global__ void opdi_cu_conv_gw_end_kernel(const float *parts, T *w, int splits, int64_t cg,
                                                                 int64_t cp, int64_t taps, int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t c = i % cp, t = i / cp % taps, o = i / cp / taps;
        float sum = 0;
#pragma unroll 4
        for (int s = 0; s < splits; s++) { sum += parts[s * all + i]; }
        if (c < cg) { opdi_cu_store(w + (o * cg + c) * taps + t, sum); }
    }
}
/* Sets to[o, t, c] to w[o, c, t].  If `back` is true, input and output channels are exchanged and the order of taps is
   reversed: to[g, c, t, o] = w[g, o, c, taps - 1 - t].  Elements from `inner` to cp - 1 are padding and become 0. */
template <typename T> __global__ void opdi_cu_conv_weights_kernel(opdi_cu_conv q, const T *w, T *to, int cp,
    bool back) {
    const int64_t taps = opdi_cu_volume(q.k), cg = q.c / q.groups, og = q.oc / q.groups, rows = back ? q.c : q.oc,
        inner = back ? og : cg;
    const int64_t all = rows * taps * cp, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t c = i % cp, t = i / cp % taps, r = i / cp / taps;
        const int64_t at = back ? ((r / cg * og + c) * cg + r % cg) * taps + taps - 1 - t : (r * cg + c) * taps + t;
        to[i] = c < inner ? w[at] : T(0.0f);
    }
}
/* Sets to[line, c] to from[line, c], or to 0 for c from cg to cp - 1.  `all` elements are written. */
template <typename T> __global__ void opdi_cu_channels_padded_kernel(const T *from, T *to, int64_t cg, int64_t cp,
                                                                     int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        to[i] = i % cp < cg ? from[i / cp * cg + i % cp] : T(0.0f);
    }
}
/* Returns x [n, groups * cg, image] in channels-last order (if `last` is true, x has this order), with each group's
   channels padded to a multiple of 8: x itself if it needs no change.  Returns NULL and sets an error if it fails. */
template <typename T> static const T *opdi_cu_conv_turned(const opdi_cu_conv *q, const T *x, bool last, int64_t cg,
                                                         int64_t image) {
    const int64_t cp = opdi_cu_ceil(cg, 8) * 8, lines = q->n * image * q->groups;
    const int64_t tiles = q->n * q->groups * opdi_cu_ceil(image, 64) * opdi_cu_ceil(cp, 64);
    if (last && cp == cg && opdi_cu_aligned(x)) { return x; }
    T *to = static_cast<T *>(opdi_cu_scratch(lines * cp * (int64_t)sizeof(T)));
    return to && (last ? opdi_cu_launch(opdi_cu_channels_padded_kernel<T>, opdi_cu_grid(lines * cp, 256), dim3(256), 0,
                                        x, to, cg, cp, lines * cp)
                  : opdi_cu_launch(opdi_cu_channels_last_kernel<T>, opdi_cu_grid_rows(tiles), dim3(256), 0, x, to, q->n,
                                   q->groups, cg, cp, image)) == 0 ? to : NULL;
}
template <typename T> static int opdi_cu_conv_tc(opdi_cu_conv q, const T *x, const T *w, const T *bias, T *y,
    bool x_last, bool y_last, bool back) {
    const int64_t rows = back ? q.c : q.oc, cg = back ? q.oc / q.groups : q.c / q.groups, cp = opdi_cu_ceil(cg, 8) * 8;
    const int64_t taps = opdi_cu_volume(q.k), image = opdi_cu_volume(back ? q.out : q.in);
    T *wt = static_cast<T *>(opdi_cu_scratch(rows * taps * cp * (int64_t)sizeof(T)));
    if (!wt || !(x = opdi_cu_conv_turned(&q, x, x_last, cg, image))) { return -1; }
    if (opdi_cu_launch(opdi_cu_conv_weights_kernel<T>, opdi_cu_grid(rows * taps * cp, 256), dim3(256), 0, q, w, wt,
        (int)cp, back)) {
        return -1;
    }
    if (back) {                                   /* gx = conv(gy, reversed weights) with a stride of 1 */
        opdi_cu_conv b = q;
        b.c = q.oc; b.oc = q.c;
        for (int i = 0; i < 3; i++) { b.in[i] = q.out[i]; b.out[i] = q.in[i]; b.p[i] = q.d[i] * (q.k[i] - 1) - q.p[i]; }
        q = b;
    }
    const int64_t tiles_n = opdi_cu_ceil(q.oc / q.groups, OPDI_CU_TC_N),
        tiles_m = opdi_cu_ceil(q.n * opdi_cu_volume(q.out), OPDI_CU_TC_M);
    return opdi_cu_launch(y_last ? opdi_cu_conv_tc_kernel<T, true> : opdi_cu_conv_tc_kernel<T, false>,
                          dim3((unsigned)(tiles_m * tiles_n), 1, (unsigned)q.groups), dim3(OPDI_CU_TC_THREADS),
                          OPDI_CU_TC_STAGES * (OPDI_CU_TC_M + OPDI_CU_TC_N) * OPDI_CU_TC_LD * sizeof(T), q, x, wt,
                          bias, y, (int)cp, (int)tiles_n);
}
/* Computes gw.  Splits the pixels into parts of at least 512, so that there are about 512 blocks.  Returns 0, or -1 and
   sets an error. */
template <typename T> static int opdi_cu_conv_gw(const opdi_cu_conv *q, const T *x, T *w, const T *y, bool x_last,
                                                  bool y_last) {
    const int64_t cg = q->c / q->groups, og = q->oc / q->groups, taps = opdi_cu_volume(q->k),
        pixels = q->n * opdi_cu_volume(q->out);
    opdi_cu_gw k;
    k.w = opdi_cu_divide_by((uint32_t)q->out[2]);
    k.h = opdi_cu_divide_by((uint32_t)q->out[1]);
    k.z = opdi_cu_divide_by((uint32_t)q->out[0]);
    k.cp = (int)opdi_cu_ceil(cg, 8) * 8; k.op = (int)opdi_cu_ceil(og, 8) * 8;
    k.tiles_c = (int)opdi_cu_ceil(k.cp, OPDI_CU_GW_SIDE); k.tiles_o = (int)opdi_cu_ceil(k.op, OPDI_CU_GW_SIDE);
    const int64_t tiles = taps * k.tiles_c * k.tiles_o, most = opdi_cu_ceil(pixels, 512);
    const int64_t want = opdi_cu_ceil(512, tiles * q->groups);
    k.splits = (int)(want < most ? want : most);
    const int64_t all = q->oc * taps * k.cp,
        scratch = OPDI_CU_TC_STAGES * 2 * OPDI_CU_GW_K * OPDI_CU_GW_LD * (int64_t)sizeof(T);
    float *parts = static_cast<float *>(opdi_cu_scratch(k.splits * all * 4));
    if (!parts || !(x = opdi_cu_conv_turned(q, x, x_last, cg, opdi_cu_volume(q->in))) ||
        !(y = opdi_cu_conv_turned(q, y, y_last, og, opdi_cu_volume(q->out)))) { return -1; }
    if (opdi_cu_launch(opdi_cu_conv_gw_kernel<T>, dim3((unsigned)tiles, (unsigned)k.splits, (unsigned)q->groups),
                       dim3(OPDI_CU_TC_THREADS), (size_t)scratch, *q, k, x, y, parts)) { return -1; }
    return opdi_cu_launch(opdi_cu_conv_gw_end_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0, (const float *)parts, w,
                          k.splits, cg, (int64_t)k.cp, taps, all);
}
/* Returns whether the code for the current device was compiled for compute capability 8.0 or newer.  This may be code
   for this device, or code for an older one that the driver has recompiled.  The answer is cached. */
static bool opdi_cu_tc_compiled() {
    static std::atomic<signed char> known[OPDI_CU_MAX_DEVICES];       /* 1: yes, -1: no */
    std::atomic<signed char> &k = known[opdi_cu_current()];
    cudaFuncAttributes a;
    if (k == 0) {
        const cudaError_t e = cudaFuncGetAttributes(&a, (const void *)opdi_cu_conv_tc_kernel<opdi_cu_bf16, false>);
        if (e != cudaSuccess) { (void)cudaGetLastError(); return false; }
        k = a.ptxVersion >= 80 ? 1 : -1;
    }
    return k > 0;
}
/* Returns whether the kernel for tensor cores is worth using and its grid is possible. */
static bool opdi_cu_conv_tc_fits(const opdi_cu_conv *q, int what, opd_scalar_type dtype) {
    const int64_t cg = q->c / q->groups, og = q->oc / q->groups, taps = opdi_cu_volume(q->k);
    if (dtype != OPD_FLOAT16 && (dtype != OPD_BFLOAT16 || !opdi_cu_tc_compiled())) { return false; }
    if (cg < 8 || og < 8 || q->groups > 65535 || q->n * opdi_cu_volume(q->out) > (1 << 30) ||
        q->n * opdi_cu_volume(q->in) > (1 << 30) || cg * taps > (1 << 24) || og * taps > (1 << 24)) { return false; }
    const int64_t x_all = q->n * q->groups * opdi_cu_volume(q->in) * (cg + 8),
        y_all = q->n * q->groups * opdi_cu_volume(q->out) * (og + 8);
    const int most[3] = OPDI_CU_TC_TAPS;
    if (what != OPDI_CU_CONV_GW && (what == OPDI_CU_CONV_Y ? x_all : y_all) > INT32_MAX) { return false; }
    for (int i = 0; i < 3 && what != OPDI_CU_CONV_GW; i++) {
        if (q->k[i] > most[i]) { return false; }
        if (what == OPDI_CU_CONV_GX && (q->s[i] != 1 || q->d[i] * (q->k[i] - 1) < q->p[i])) { return false; }
    }
    return true;
}

//== choosing a kernel =================================================================================================

struct opdi_cu_conv_call { opdi_cu_conv v; bool transposed; };
/* Reads stride, padding, dilation, transposed and groups from the arguments from number `first` on, which the Meta
   kernel has checked.  y is the result of the convolution.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_read(opd_call *call, int first, const opd_tensor *x, const opd_tensor *w, const opd_tensor *y,
    opdi_cu_conv_call *q) {
    const opd_ints s = opd_arg_ints(call, first), p = opd_arg_ints(call, first + 1), d = opd_arg_ints(call, first + 2);
    const int nd = opd_ndim(w) - 2;
    const opd_tensor *small, *big;
    q->transposed = opd_arg_bool(call, first + 3);
    big = q->transposed ? y : x;
    small = q->transposed ? x : y;
    q->v.groups = opd_arg_int(call, first + 5);
    q->v.n = opd_size(x, 0);
    q->v.c = opd_size(big, 1);
    q->v.oc = opd_size(small, 1);
    for (int i = 0; i < 3; i++) {
        const int j = i - (3 - nd);
        const bool there = j >= 0;
        const int64_t in = there ? opd_size(big, 2 + j) : 1, out = there ? opd_size(small, 2 + j) : 1,
            k = there ? opd_size(w, 2 + j) : 1;
        const int64_t st = there ? s.data[s.n == 1 ? 0 : j] : 1, pd = there ? p.data[p.n == 1 ? 0 : j] : 0,
            di = there ? d.data[d.n == 1 ? 0 : j] : 1;
        if (in > INT32_MAX || out > INT32_MAX || k > INT32_MAX || st > INT32_MAX || pd > INT32_MAX / 4 ||
            di * k > INT32_MAX / 4) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "a size, stride, padding or dilation is too large for a convolution on CUDA");
        }
        q->v.in[i] = (int)in; q->v.out[i] = (int)out; q->v.k[i] = (int)k;
        q->v.s[i] = (int)st; q->v.p[i] = (int)pd; q->v.d[i] = (int)di;
    }
    return 0;
}
/* Returns whether t is stored in channels-last order, as the library's convolutions expect and produce it: dim 1 has
   stride 1; the last dim has the next larger stride, then the dim before it, and so on. */
static bool opdi_cu_is_channels_last(const opd_tensor *t) {
    int64_t next = opd_ndim(t) > 2 ? opd_size(t, 1) : 0;
    if (opd_ndim(t) < 4 || opd_strides(t)[1] != 1) { return false; }
    for (int d = opd_ndim(t) - 1; d > 1; d--) {
        if (opd_strides(t)[d] != next) { return false; }
        next *= opd_size(t, d);
    }
    return opd_strides(t)[0] == next;
}
static bool opdi_cu_wino_fits(const opdi_cu_conv *q, int what);
static int opdi_cu_wino_run(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to);
static int opdi_cu_wino_gw(const opdi_cu_conv *q, const float *x, const float *gy, float *gw);
static bool opdi_cu_depthwise_fits(const opdi_cu_conv *q, int what);
template <typename T> static int opdi_cu_depthwise_run(const opdi_cu_conv *q, int what, T *x, void *w, T *y);
/* Computes y or gx, as `what` says, for contiguous tensors of one dtype.  The result must not be empty.  Returns 0, or
   -1 and sets an error. */
template <typename T> static int opdi_cu_conv_typed(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w,
    opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ws = opdi_cu_data<T>(w), *ys = opdi_cu_data<T>(y);
    const int64_t cg = q->c / q->groups;
    cudaDataType type;
    if constexpr (!std::is_same<opdi_cu_acc<T>, int64_t>::value) {
        if (opdi_cu_depthwise_fits(q, what)) { return opdi_cu_depthwise_run<T>(q, what, xs, ws, ys); }
    }
    if ((cg < 4 && q->groups > 1) || !opdi_cu_cuda_type(opd_dtype(x), &type)) {
        return what == OPDI_CU_CONV_Y ? opdi_cu_conv_each<T, false>(*q, xs, ws, ys)
            : opdi_cu_conv_each<T, true>(*q, ys, ws, xs);
    }
    return opdi_cu_conv_columns<T>(q, what, opd_dtype(x), xs, ws, ys);
}
template <typename T> static int opdi_cu_conv_typed_gw(const opdi_cu_conv *q, opd_tensor *x, opd_tensor *w,
    opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ys = opdi_cu_data<T>(y);
    void *ws = opdi_cu_data<void>(w);             /* of the type in which sums are computed */
    if (q->c / q->groups >= 4 || q->groups == 1) {
        return opdi_cu_conv_columns<T>(q, OPDI_CU_CONV_GW, opd_dtype(x), xs, ws, ys);
    }
    if (opdi_cu_depthwise_fits(q, OPDI_CU_CONV_GW)) { return opdi_cu_depthwise_run<T>(q, OPDI_CU_CONV_GW, xs, ws, ys); }
    return opdi_cu_launch(opdi_cu_conv_each_gw_kernel<T>, opdi_cu_grid_rows(opd_numel(w)), dim3(256), 0, *q, xs, ys,
                          static_cast<opdi_cu_acc<T> *>(ws));
}
template <typename T> static int opdi_cu_conv_short(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w,
    opd_tensor *y, opd_tensor *bias) {
    opd_tensor *from = what == OPDI_CU_CONV_Y ? x : y, *to = what == OPDI_CU_CONV_Y ? y : x;
    if (what == OPDI_CU_CONV_GW) {
        return opdi_cu_conv_gw<T>(q, opdi_cu_data<T>(x), opdi_cu_data<T>(w), opdi_cu_data<T>(y),
                                  opdi_cu_is_channels_last(x), opdi_cu_is_channels_last(y));
    }
    return opdi_cu_conv_tc<T>(*q, opdi_cu_data<T>(from), opdi_cu_data<T>(w), bias ? opdi_cu_data<T>(bias) : NULL,
                              opdi_cu_data<T>(to), opdi_cu_is_channels_last(from), opdi_cu_is_channels_last(to),
                              what == OPDI_CU_CONV_GX);
}
/* Adds b [c] to y [n, c, area]. */
template <typename T> __global__ void opdi_cu_bias_kernel(T *y, const T *b, int64_t c, int64_t area, int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        opdi_cu_store(y + i, opdi_cu_load<opdi_cu_acc<T>>(y + i) + opdi_cu_load<opdi_cu_acc<T>>(b + i / area % c));
    }
}
static int opdi_cu_bias(opd_tensor *y, opd_tensor *b) {
    const int64_t c = opd_size(y, 1), all = opd_numel(y);
    if (!(b = opd_contiguous(b))) { return -1; }
    OPDI_CU_ALL(opd_dtype(y), T, return opdi_cu_launch(opdi_cu_bias_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0,
        opdi_cu_data<T>(y), opdi_cu_data<T>(b), c, all / opd_size(y, 0) / c, all))
    return -1;
}
/* Computes the result that `what` says: y, gx (in x) or gw (in w).  The tensors may have any strides.  `bias` is added
   to y, unless it is NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_run(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w, opd_tensor *y,
    opd_tensor *bias) {
    opd_tensor *to = what == OPDI_CU_CONV_Y ? y : what == OPDI_CU_CONV_GX ? x : w, *work;
    const opd_scalar_type t = opd_dtype(to);
    const bool shorter = t == OPD_FLOAT16 || t == OPD_BFLOAT16, wino = t == OPD_FLOAT32 && opdi_cu_wino_fits(q, what);
    int rc = -1;
    if (opd_numel(to) == 0) { return 0; }
    if (opd_numel(x) == 0 || opd_numel(w) == 0 || opd_numel(y) == 0) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        if (!work || !opd_zero_(work) || (bias && opdi_cu_bias(work, bias))) { return -1; }
        return work == to || opd_copy_(to, work) ? 0 : -1;
    }
    if (shorter && opdi_cu_conv_tc_fits(q, what, t)) {
        const bool last = what != OPDI_CU_CONV_GW && opdi_cu_is_channels_last(to);
        work = opd_is_contiguous(to) || last ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        x = to == x ? work : opdi_cu_is_channels_last(x) ? x : opd_contiguous(x);
        y = to == y ? work : opdi_cu_is_channels_last(y) ? y : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        bias = bias ? opd_contiguous(bias) : NULL;
        if (!work || !x || !y || !w) { return -1; }
        rc = t == OPD_FLOAT16 ? opdi_cu_conv_short<opdi_cu_f16>(q, what, x, w, y, bias)
            : opdi_cu_conv_short<opdi_cu_bf16>(q, what, x, w, y, bias);
        bias = NULL;
    } else if (wino || (t == OPD_FLOAT32 && opdi_cu_im_fits(q, what))) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        x = to == x ? work : opd_contiguous(x);
        y = to == y ? work : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        bias = bias ? opd_contiguous(bias) : NULL;
        if (!x || !y || !w || !work) { return -1; }
        float *xs = opdi_cu_data<float>(x), *ys = opdi_cu_data<float>(y), *ws = opdi_cu_data<float>(w);
        rc = what == OPDI_CU_CONV_GW ? opdi_cu_wino_gw(q, xs, ys, ws)
            : (wino ? opdi_cu_wino_run : opdi_cu_conv_im)(q, what, what == OPDI_CU_CONV_GX ? ys : xs, ws,
                                                          bias ? opdi_cu_data<float>(bias) : NULL,
                                                          what == OPDI_CU_CONV_GX ? xs : ys);
        bias = NULL;
    } else {
        const opd_scalar_type sums = what == OPDI_CU_CONV_GW && shorter ? OPD_FLOAT32 : t;
        work = opd_is_contiguous(to) && sums == t ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), sums);
        x = to == x ? work : opd_contiguous(x);
        y = to == y ? work : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        if (!x || !y || !w || !work) { return -1; }
        if (what == OPDI_CU_CONV_GW) {
            OPDI_CU_FLOATS(opd_dtype(x), T, rc = opdi_cu_conv_typed_gw<T>(q, x, w, y))
        } else { OPDI_CU_ALL(t, T, rc = opdi_cu_conv_typed<T>(q, what, x, w, y)) }
    }
    if (rc || (bias && opdi_cu_bias(work, bias))) { return -1; }
    return work == to || opd_copy_(to, work) ? 0 : -1;
}
static int opdi_cu_convolution(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2), *y;
    opdi_cu_conv_call q;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (opdi_cu_conv_read(call, 3, x, w, y, &q)) { return -1; }
    return opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_GX : OPDI_CU_CONV_Y, q.transposed ? y : x, w,
        q.transposed ? x : y, bias);
}
static int opdi_cu_convolution_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2);
    opd_tensor *gx, *gw, *gb;
    opdi_cu_conv_call q;
    if (opd_results_from_fake(call)) { return -1; }
    gx = opdi_cu_result(call, 0); gw = opdi_cu_result(call, 1); gb = opdi_cu_result(call, 2);
    if (opdi_cu_conv_read(call, 4, x, w, g, &q)) { return -1; }
    if (gx && opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_Y : OPDI_CU_CONV_GX, q.transposed ? g : gx, w,
        q.transposed ? gx : g, NULL)) {
        return -1;
    }
    if (gw && opdi_cu_conv_run(&q.v, OPDI_CU_CONV_GW, q.transposed ? g : x, gw, q.transposed ? x : g, NULL)) {
        return -1;
    }
    if (gb && opd_numel(gb)) {
        int64_t dims[5];
        int n = 0;
        for (int d = 0; d < opd_ndim(g); d++) { if (d != 1) { dims[n++] = d; } }
        opd_tensor *sum = opd_size(g, 1) ? opd_sum_dim(g, opd_ints_of(dims, n), false) : NULL;
        if (opd_size(g, 1) ? !sum || !opd_copy_(gb, sum) : !opd_zero_(gb)) { return -1; }
    }
    return 0;
}

static const opdi_cu_registration opdi_cu_table_convolution[] = {
    {"convolution", opdi_cu_convolution}, {"convolution_backward", opdi_cu_convolution_backward},
    {NULL, NULL}};

