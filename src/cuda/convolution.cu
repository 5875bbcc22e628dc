//----------------------------------------------------------------------------------------------------------------------
//  >>cu:convolution convolution
//
//  There are three problems: y = conv(x, w), and the gradients gx and gw with respect to x and w.  A transposed
//  convolution is computed like gx, with x and y exchanged.  For float16 and bfloat16, an implicit matrix product runs
//  on tensor cores, or cuBLAS multiplies, if there is one tap.  If the user allows TF32, y and gx of float32 run on
//  tensor cores, too.  Otherwise, 3 x 3 taps of many channels are computed by Winograd's method, and other y and gx by
//  an implicit product of plain multiply-adds.  In all other cases, patches of the image are stored as columns of a
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
/* Returns whether the columns are the input itself: the kernel has one tap, the stride is 1, and nothing is padded, not
   even the output of a transposed convolution. */
static bool opdi_cu_conv_is_product(const opdi_cu_conv *q) {
    for (int i = 0; i < 3; i++) {
        if (q->k[i] != 1 || q->s[i] != 1 || q->p[i] != 0 || q->in[i] != q->out[i]) { return false; }
    }
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

