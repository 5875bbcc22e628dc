//== float32 convolutions by Winograd's method =========================================================================
//
//  For 3 x 3 taps, stride 1 and one group, in two dims.  A tile of 4 x 4 results is computed from a patch of 6 x 6
//  elements: the patch and the weights are transformed into 36 numbers each, which are multiplied and summed over the
//  channels, and the sums are transformed into the results.  This takes 36 multiplications instead of 144.  For each of
//  the 36, the sums over the channels are a matrix product, which cuBLAS computes.
//      y  = A^T [(G w G^T) . (B^T x B)] A
//      gx: the same, with gy instead of x and turned weights
//      gw = G^T [(A gy A^T) . (B^T x B)] G
//  Accuracy, for normally distributed numbers, in the emulation: the largest error of y and gx is 2.1e-6 to 2.6e-6 of
//  the largest result, which is 1.2 to 3.7 times as much as with direct sums.  Errors are relative to the largest
//  elements of a tile.  An infinity or NaN would make all results of its tiles NaN, so results that are not finite are
//  computed again, as direct sums.  OPD_WINOGRAD=0 in the environment switches the method off.
//  Follows: A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016, F(4 x 4, 3 x 3).

/* OPDI_CU_WINO_PLACES: the fewest results of a channel, in all images, for which the method is used.
   OPDI_CU_WINO_PRODUCTS: the fewest products of a result and two channels. */
enum { OPDI_CU_WINO_TILE = 4, OPDI_CU_WINO_ALL = 36, OPDI_CU_WINO_PLACES = 512, OPDI_CU_WINO_PRODUCTS = 1 << 24 };
/* Transforms of IN numbers, which are `apart` from each other, into OUT numbers. */
struct opdi_cu_wino_patch {                       /* B^T */
    enum { IN = 6, OUT = 6 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x0 = x[0], x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart], x4 = x[4 * apart],
            x5 = x[5 * apart];
        const float even = x4 - 4 * x2, odd = x3 - 4 * x1, far = x4 - x2, near = 2 * (x3 - x1);
        y[0] = 4 * x0 - 5 * x2 + x4;
        y[1] = even + odd; y[2] = even - odd; y[3] = far + near; y[4] = far - near;
        y[5] = 4 * x1 - 5 * x3 + x5;
    }
};
struct opdi_cu_wino_result {                      /* A^T */
    enum { IN = 6, OUT = 4 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart], x4 = x[4 * apart];
        y[0] = x[0] + (x1 + x2) + (x3 + x4);
        y[1] = (x1 - x2) + 2 * (x3 - x4);
        y[2] = (x1 + x2) + 4 * (x3 + x4);
        y[3] = (x1 - x2) + 8 * (x3 - x4) + x[5 * apart];
    }
};
struct opdi_cu_wino_gradient {                    /* A */
    enum { IN = 4, OUT = 6 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x0 = x[0], x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart];
        y[0] = x0;
        y[1] = (x0 + x2) + (x1 + x3); y[2] = (x0 + x2) - (x1 + x3);
        y[3] = (x0 + 4 * x2) + (2 * x1 + 8 * x3); y[4] = (x0 + 4 * x2) - (2 * x1 + 8 * x3);
        y[5] = x3;
    }
};
struct opdi_cu_wino_weights {                     /* G */
    enum { IN = 3, OUT = 6 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x0 = x[0], x1 = x[apart], x2 = x[2 * apart];
        y[0] = x0 / 4;
        y[1] = -(x0 + x2 + x1) / 6; y[2] = -(x0 + x2 - x1) / 6;
        y[3] = x0 / 24 + x2 / 6 + x1 / 12; y[4] = x0 / 24 + x2 / 6 - x1 / 12;
        y[5] = x2;
    }
};
struct opdi_cu_wino_turned {                      /* G^T */
    enum { IN = 6, OUT = 3 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart], x4 = x[4 * apart];
        y[0] = x[0] / 4 - (x1 + x2) / 6 + (x3 + x4) / 24;
        y[1] = (x2 - x1) / 6 + (x3 - x4) / 12;
        y[2] = (x3 + x4) / 6 - (x1 + x2) / 6 + x[5 * apart];
    }
};
/* Transforms the columns of a matrix, then the rows. */
template <class F> __device__ __forceinline__ void opdi_cu_wino_apply(const float (*x)[F::IN], float (*y)[F::OUT]) {
    float half[F::IN][F::OUT];
    OPDI_CU_UNROLL
    for (int j = 0; j < F::IN; j++) { F::apply(&x[0][j], F::IN, half[j]); }
    OPDI_CU_UNROLL
    for (int i = 0; i < F::OUT; i++) { F::apply(&half[0][i], F::OUT, y[i]); }
}
/* Images, and their division into tiles.  Matrices of transformed tiles are [part][36][channel][place].  A part has the
   tiles of some images: `places` is their number. */
struct opdi_cu_wino {
    int64_t images, of_part, channels, places;    /* images: of all parts */
    int in[2], out[2], p[2];                      /* sizes of the image that is read, and of the image that is divided
                                                     into tiles; padding */
    opdi_cu_pointwise_divider by_places, by_tiles, by_across;     /* places; tiles of an image; tiles side by side */
};
/* Finds the image and the corner of tile number `place` of a part.  Returns false if there is no such image. */
static __device__ __forceinline__ bool opdi_cu_wino_find(const opdi_cu_wino &q, uint32_t part, uint32_t place,
                                                         int64_t *image, int *row, int *column) {
    const uint32_t n = q.by_tiles.of(place), tile = place - n * q.by_tiles.d, line = q.by_across.of(tile);
    *image = part * q.of_part + n;
    *row = (int)line * OPDI_CU_WINO_TILE;
    *column = (int)(tile - line * q.by_across.d) * OPDI_CU_WINO_TILE;
    return *image < q.images;
}
/* Transforms the tiles of x [images, channels, in] by F, which reads F::IN x F::IN elements of each.  Elements outside
   of the image are 0.  A thread transforms one tile of one channel. */
template <class F> __global__ void opdi_cu_wino_spread_kernel(opdi_cu_wino q, const float *x, float *to, uint32_t all) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint32_t line = q.by_places.of(i), place = i - line * q.by_places.d;
        const uint32_t part = line / (uint32_t)q.channels, channel = line - part * (uint32_t)q.channels;
        int64_t image;
        int row, column;
        float v[F::IN][F::IN], made[6][6];
        const bool there = opdi_cu_wino_find(q, part, place, &image, &row, &column);
        row -= q.p[0]; column -= q.p[1];
        const float *from = x + (image * q.channels + channel) * q.in[0] * q.in[1];
        OPDI_CU_UNROLL
        for (int r = 0; r < F::IN; r++) {
            OPDI_CU_UNROLL
            for (int c = 0; c < F::IN; c++) {
                const bool inside = there && (unsigned)(row + r) < (unsigned)q.in[0] &&
                    (unsigned)(column + c) < (unsigned)q.in[1];
                v[r][c] = inside ? from[(row + r) * q.in[1] + column + c] : 0.0f;
            }
        }
        opdi_cu_wino_apply<F>(v, made);
        float *put = to + ((int64_t)part * OPDI_CU_WINO_ALL * q.channels + channel) * q.places + place;
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { put[e * q.channels * q.places] = made[e / 6][e % 6]; }
    }
}
/* Transforms products [36][channels][places] into the images y, and adds the bias, unless it is NULL.  Sets *mend to 1
   if a result is not finite. */
static __global__ void opdi_cu_wino_result_kernel(opdi_cu_wino q, const float *from, const float *bias, float *y,
                                                  float *mend, uint32_t all) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint32_t channel = q.by_places.of(i), place = i - channel * q.by_places.d;
        int64_t image;
        int row, column;
        float v[6][6], made[4][4];
        (void)opdi_cu_wino_find(q, 0, place, &image, &row, &column);
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { v[e / 6][e % 6] = from[e * q.channels * q.places + i]; }
        opdi_cu_wino_apply<opdi_cu_wino_result>(v, made);
        const float more = bias ? bias[channel] : 0.0f;
        float *to = y + ((image * q.channels + channel) * q.out[0] + row) * q.out[1] + column;
        OPDI_CU_UNROLL
        for (int r = 0; r < 4; r++) {
            OPDI_CU_UNROLL
            for (int c = 0; c < 4; c++) {
                if (row + r >= q.out[0] || column + c >= q.out[1]) { continue; }
                to[r * q.out[1] + c] = made[r][c] + more;
                if (!isfinite(made[r][c])) { *mend = 1; }
            }
        }
    }
}
/* Computes results that are not finite again, as sums of products with the weights w, if *mend is not 0.  x [images,
   reads, in] is read, and y [images, channels, out] is written. */
static __global__ void opdi_cu_wino_mend_kernel(opdi_cu_wino q, int reads, bool back, const float *x, const float *w,
                                                const float *bias, const float *mend, float *y) {
    const int64_t area = (int64_t)q.out[0] * q.out[1], image = (int64_t)q.in[0] * q.in[1];
    const int64_t all = q.images * q.channels * area, step = (int64_t)gridDim.x * blockDim.x;
    if (*mend == 0) { return; }
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / area, n = plane / q.channels, channel = plane - n * q.channels;
        const int row = (int)(i % area / q.out[1]) - q.p[0], column = (int)(i % q.out[1]) - q.p[1];
        float sum = 0;
        if (isfinite(y[i])) { continue; }
        for (int c = 0; c < reads && sum == sum; c++) {
            const float *from = x + (n * reads + c) * image;
            const float *weights = w + 9 * (back ? c * q.channels + channel : channel * reads + c);
            for (int t = 0; t < 9; t++) {
                const int r = row + t / 3, at = column + t % 3;
                if ((unsigned)r >= (unsigned)q.in[0] || (unsigned)at >= (unsigned)q.in[1]) { continue; }
                sum += from[(int64_t)r * q.in[1] + at] * weights[back ? 8 - t : t];
            }
        }
        y[i] = bias ? sum + bias[channel] : sum;
    }
}
/* Transforms the weights w [oc, c, 3, 3] into to[36][rows][channels], and writes a 0 after them.  If `back` is true,
   the rows are the channels c, and the weights are turned by 180 degrees. */
static __global__ void opdi_cu_wino_weights_kernel(const float *w, float *to, int rows, int channels, bool back) {
    const int all = rows * channels, step = (int)(gridDim.x * blockDim.x);
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < all; i += step) {
        const int r = i / channels, c = i - r * channels;
        const float *from = w + 9 * (int64_t)(back ? c * rows + r : i);
        float v[3][3], made[6][6];
        if (i == 0) { to[(int64_t)OPDI_CU_WINO_ALL * all] = 0; }
        OPDI_CU_UNROLL
        for (int t = 0; t < 9; t++) { v[t / 3][t % 3] = from[back ? 8 - t : t]; }
        opdi_cu_wino_apply<opdi_cu_wino_weights>(v, made);
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { to[(int64_t)e * all + i] = made[e / 6][e % 6]; }
    }
}
/* Sets w [all, 3, 3] to the transformed sums over all parts of from[part][36][all]. */
static __global__ void opdi_cu_wino_gw_kernel(const float *from, float *w, int parts, int all) {
    const int step = (int)(gridDim.x * blockDim.x);
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < all; i += step) {
        float v[6][6], made[3][3];
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { v[e / 6][e % 6] = 0; }
        for (int part = 0; part < parts; part++) {
            OPDI_CU_UNROLL
            for (int e = 0; e < OPDI_CU_WINO_ALL; e++) {
                v[e / 6][e % 6] += from[((int64_t)part * OPDI_CU_WINO_ALL + e) * all + i];
            }
        }
        opdi_cu_wino_apply<opdi_cu_wino_turned>(v, made);
        OPDI_CU_UNROLL
        for (int t = 0; t < 9; t++) { w[(int64_t)i * 9 + t] = made[t / 3][t % 3]; }
    }
}
/* Computes elements of gw [oc, c, 3, 3] that are not finite again, as sums over all images. */
static __global__ void opdi_cu_wino_mend_gw_kernel(opdi_cu_wino q, int64_t oc, const float *x, const float *gy,
                                                   float *gw) {
    const int64_t all = oc * q.channels * 9, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t o = i / 9 / q.channels, c = i / 9 % q.channels;
        const int row = (int)(i % 9) / 3 - q.p[0], column = (int)(i % 3) - q.p[1];
        float sum = 0;
        if (isfinite(gw[i])) { continue; }
        for (int64_t line = 0; line < q.images * q.out[0] && sum == sum; line++) {
            const int64_t n = line / q.out[0], r = line % q.out[0];
            const float *ys = gy + ((n * oc + o) * q.out[0] + r) * q.out[1];
            const float *xs = x + ((n * q.channels + c) * q.in[0] + r + row) * q.in[1] + column;
            if ((uint64_t)(r + row) >= (uint64_t)q.in[0]) { continue; }
            for (int at = 0; at < q.out[1]; at++) {
                if ((unsigned)(at + column) < (unsigned)q.in[1]) { sum += xs[at] * ys[at]; }
            }
        }
        gw[i] = sum;
    }
}
/* OPDI_CU_WINO_BYTES: the bytes of transformed tiles that are computed at a time; in the emulation few, so that small
   tests also compute them in several passes.  OPDI_CU_WINO_PARTS: the fewest products of 64 x 64 sums that keep a GPU
   busy, of 36 each. */
#if defined(OPD_CUDA_EMULATED)
enum { OPDI_CU_WINO_BYTES = 5 << 20 };
#else
enum { OPDI_CU_WINO_BYTES = 128 << 20 };
#endif
enum { OPDI_CU_WINO_PARTS = 16 };
static bool opdi_cu_no_winograd;                  /* OPD_WINOGRAD=0 */
static int64_t opdi_cu_wino_tiles(const int *out) {
    return opdi_cu_ceil(out[1], OPDI_CU_WINO_TILE) * opdi_cu_ceil(out[2], OPDI_CU_WINO_TILE);
}
/* Returns whether the method can compute what `what` says and is worth using: there are enough channels and images, and
   less than half of the tiles' elements are outside of the image. */
static bool opdi_cu_wino_fits(const opdi_cu_conv *q, int what) {
    const int *out = what == OPDI_CU_CONV_GX ? q->in : q->out;
    const int64_t area = (int64_t)out[1] * out[2], tiles = opdi_cu_wino_tiles(out);
    for (int i = 0; i < 3; i++) {
        if (q->k[i] != (i ? 3 : 1) || q->s[i] != 1 || q->d[i] != 1 || q->p[i] > (i ? 2 : 0)) { return false; }
    }
    return !opdi_cu_no_winograd && q->groups == 1 && q->in[0] == 1 && q->c >= 32 && q->oc >= 32 &&
        q->c * q->oc < (1 << 26) && area < (1 << 26) && tiles * (q->c > q->oc ? q->c : q->oc) < (1 << 26) &&
        q->n < (1 << 26) && tiles * OPDI_CU_WINO_TILE * OPDI_CU_WINO_TILE < 2 * area &&
        q->n * area >= OPDI_CU_WINO_PLACES &&
        q->n * area * q->c * q->oc >= OPDI_CU_WINO_PRODUCTS;
}
/* Sets *w to the division of images into parts of `images` images. */
static void opdi_cu_wino_set(opdi_cu_wino *w, const int *in, const int *out, const int *p, int64_t images,
    int64_t all_images, int64_t channels, bool back) {
    const int64_t across = opdi_cu_ceil(out[2], OPDI_CU_WINO_TILE), tiles = opdi_cu_wino_tiles(out);
    w->images = all_images;
    w->of_part = images;
    w->channels = channels;
    w->places = images * tiles;
    for (int i = 0; i < 2; i++) {
        w->in[i] = in[1 + i]; w->out[i] = out[1 + i]; w->p[i] = back ? 2 - p[1 + i] : p[1 + i];
    }
    w->by_places = opdi_cu_divide_by((uint32_t)w->places);
    w->by_tiles = opdi_cu_divide_by((uint32_t)tiles);
    w->by_across = opdi_cu_divide_by((uint32_t)across);
}
template <class F> static int opdi_cu_wino_spread(const opdi_cu_wino &w, int64_t parts, const float *x, float *to) {
    const int64_t all = parts * w.channels * w.places;
    return opdi_cu_launch(opdi_cu_wino_spread_kernel<F>, opdi_cu_grid(all, 256), dim3(256), 0, w, x, to, (uint32_t)all);
}
/* Returns how many images of `one` bytes of transformed tiles are computed at a time. */
static int64_t opdi_cu_wino_images(int64_t images, int64_t one) {
    const int64_t most = OPDI_CU_WINO_BYTES / one;
    return most < 1 ? 1 : most < images ? most : images;
}
/* Computes a batch of products of float32 without TF32, also if the user allows TF32: Winograd's method would enlarge
   its errors.  The matrices of b.a are row-major; those of b.b too, or (`turned`) column-major.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_wino_product(const opdi_cu_product *b, bool turned, float beta) {
    const float one = 1;
    cublasHandle_t h = opdi_cu_blas();
    if (!h) { return -1; }
    const cublasStatus_t s = cublasGemmStridedBatchedEx(
        h, turned ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)b->p, (int)b->m, (int)b->k, &one, b->b.data,
        CUDA_R_32F, (int)(turned ? b->b.col : b->b.row), b->b.batch, b->a.data, CUDA_R_32F, (int)b->a.row, b->a.batch,
        &beta, b->out, CUDA_R_32F, (int)b->p, b->out_batch, (int)b->n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmStridedBatchedEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmStridedBatchedEx");
    return opdi_cu_debug ? opdi_cu_faults() : 0;
}
/* Computes y = conv(x, w) + bias, or gx from gy, as `what` says.  `from` is read and `to` is written; both are
   contiguous.  Returns 0, or -1 and sets an error. */
static int opdi_cu_wino_run(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to) {
    const bool back = what == OPDI_CU_CONV_GX;
    const int *in = back ? q->out : q->in, *out = back ? q->in : q->out;
    const int64_t channels = back ? q->oc : q->c, rows = back ? q->c : q->oc, tiles = opdi_cu_wino_tiles(out);
    const int64_t n = opdi_cu_wino_images(q->n, OPDI_CU_WINO_ALL * (channels + rows) * tiles * 4);
    float *weights = static_cast<float *>(opdi_cu_scratch((OPDI_CU_WINO_ALL * channels * rows + 1) * 4));
    float *patches = static_cast<float *>(opdi_cu_scratch(OPDI_CU_WINO_ALL * channels * n * tiles * 4));
    float *products = static_cast<float *>(opdi_cu_scratch(OPDI_CU_WINO_ALL * rows * n * tiles * 4));
    if (!weights || !patches || !products ||
        opdi_cu_launch(opdi_cu_wino_weights_kernel, opdi_cu_grid(channels * rows, 128), dim3(128), 0, w, weights,
                       (int)rows, (int)channels, back)) { return -1; }
    float *mend = weights + OPDI_CU_WINO_ALL * channels * rows;
    opdi_cu_wino tile;
    for (int64_t i = 0; i < q->n; i += n) {
        const int64_t images = n < q->n - i ? n : q->n - i, places = images * tiles;
        opdi_cu_wino_set(&tile, in, out, q->p, images, images, channels, back);
        opdi_cu_product b;
        const opdi_cu_matrix wm = {weights, channels * rows, channels, 1}, pm = {patches, channels * places, places, 1};
        b.n = OPDI_CU_WINO_ALL; b.m = rows; b.k = channels; b.p = places; b.a = wm; b.b = pm; b.out = products;
        b.out_batch = rows * places;
        if (opdi_cu_wino_spread<opdi_cu_wino_patch>(tile, 1, from + i * channels * in[1] * in[2], patches) ||
            opdi_cu_wino_product(&b, false, 0)) { return -1; }
        tile.channels = rows;
        if (opdi_cu_launch(opdi_cu_wino_result_kernel, opdi_cu_grid(rows * places, 256), dim3(256), 0, tile,
                           (const float *)products, bias, to + i * rows * out[1] * out[2], mend,
                           (uint32_t)(rows * places))) { return -1; }
    }
    tile.images = q->n;
    return opdi_cu_launch(opdi_cu_wino_mend_kernel, opdi_cu_grid(q->n * rows * out[1] * out[2], 256), dim3(256), 0,
                          tile, (int)channels, back, from, w, bias, (const float *)mend, to);
}
/* Computes gw from x and gy.  So that there are enough products to keep a GPU busy, the images are divided into parts,
   whose sums are added in a fixed order.  Returns 0, or -1 and sets an error. */
static int opdi_cu_wino_gw(const opdi_cu_conv *q, const float *x, const float *gy, float *gw) {
    const int64_t tiles = opdi_cu_wino_tiles(q->out), all = q->c * q->oc;
    const int64_t parts = opdi_cu_ceil(OPDI_CU_WINO_PARTS, opdi_cu_ceil(q->c, 64) * opdi_cu_ceil(q->oc, 64));
    const int64_t images = opdi_cu_wino_images(opdi_cu_ceil(q->n, parts),
                                               parts * OPDI_CU_WINO_ALL * (q->c + q->oc) * tiles * 4);
    const int64_t places = images * tiles, planes = parts * OPDI_CU_WINO_ALL;
    float *patches = static_cast<float *>(opdi_cu_scratch(planes * q->c * places * 4));
    float *gradients = static_cast<float *>(opdi_cu_scratch(planes * q->oc * places * 4));
    float *sums = static_cast<float *>(opdi_cu_scratch(planes * all * 4));
    if (!patches || !gradients || !sums) { return -1; }
    opdi_cu_wino of_x, of_y;
    for (int64_t i = 0; i < q->n; i += parts * images) {
        const int64_t left = q->n - i, some = left < parts * images ? opdi_cu_ceil(left, images) : parts;
        const int no_padding[3] = {0, 0, 0};
        opdi_cu_wino_set(&of_x, q->in, q->out, q->p, images, left, q->c, false);
        opdi_cu_wino_set(&of_y, q->out, q->out, no_padding, images, left, q->oc, false);
        opdi_cu_product b;
        const opdi_cu_matrix ym = {gradients, q->oc * places, places, 1}, xm = {patches, q->c * places, 1, places};
        b.n = some * OPDI_CU_WINO_ALL; b.m = q->oc; b.k = places; b.p = q->c; b.a = ym; b.b = xm;
        b.out = sums; b.out_batch = all;
        if (opdi_cu_wino_spread<opdi_cu_wino_patch>(of_x, some, x + i * q->c * q->in[1] * q->in[2], patches) ||
            opdi_cu_wino_spread<opdi_cu_wino_gradient>(of_y, some, gy + i * q->oc * q->out[1] * q->out[2],
                                                       gradients) ||
            opdi_cu_wino_product(&b, true, i > 0 ? 1.0f : 0.0f)) { return -1; }
    }
    of_x.images = q->n;
    return opdi_cu_launch(opdi_cu_wino_gw_kernel, opdi_cu_grid(all, 128), dim3(128), 0, (const float *)sums, gw,
                          (int)(q->n < parts * images ? opdi_cu_ceil(q->n, images) : parts), (int)all) ||
        opdi_cu_launch(opdi_cu_wino_mend_gw_kernel, opdi_cu_grid(all * 9, 256), dim3(256), 0, of_x, q->oc, x,
                       gy, gw) ? -1 : 0;
}

