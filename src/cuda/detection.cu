//----------------------------------------------------------------------------------------------------------------------
//  >>cu:detection   operators of models that detect objects in images
//
//  torchvision's nms and roi_align.  As on the CPU, places and overlaps are computed in the type of the boxes.
//----------------------------------------------------------------------------------------------------------------------

//== non-maximum suppression ===========================================================================================
//
//  The first kernel compares each box with the boxes after it, in the order of falling scores, and writes a bit for
//  each overlap that is too large.  The second goes through the boxes in order, in one block, and keeps those that no
//  kept box covers.  The host waits for their number, which is the size of the result.

enum { OPDI_CU_NMS = 64 };                        /* boxes that a word has bits for */
template <typename A> struct opdi_cu_boxes {
    const A *boxes;                               /* [n][4] */
    const int64_t *order;                         /* [n], by falling scores */
    int64_t n, words;                             /* words: of a row of covers */
    double most;
    unsigned long long *covers;                   /* [n][words]: bit k of word w of row i: box i covers box 64 w + k */
};
/* Returns x * y, which the compiler does not join with a sum. */
template <typename A> __device__ __forceinline__ A opdi_cu_rounded_product(A x, A y) {
    return opdi_cu_mul_add(x, y, A(0));
}
template <typename A> __device__ __forceinline__ bool opdi_cu_overlaps(const A *a, const A *b, double most) {
    const A left = a[0] < b[0] ? b[0] : a[0], right = b[2] < a[2] ? b[2] : a[2];
    const A top = a[1] < b[1] ? b[1] : a[1], bottom = b[3] < a[3] ? b[3] : a[3];
    const A w = right - left > 0 ? right - left : A(0), h = bottom - top > 0 ? bottom - top : A(0);
    const A both = opdi_cu_rounded_product(w, h), one = opdi_cu_rounded_product(a[2] - a[0], a[3] - a[1]);
    const A all = one + opdi_cu_rounded_product(b[2] - b[0], b[3] - b[1]);
    return (double)(both / (all - both)) > most;
}
template <typename A> __global__ void __launch_bounds__(OPDI_CU_NMS) opdi_cu_nms_compare(const opdi_cu_boxes<A> p) {
    __shared__ A others[OPDI_CU_NMS][4];
    for (int64_t t = blockIdx.x; t < p.words * p.words; t += gridDim.x) {
        int64_t w;
        const int64_t row0 = opdi_cu_divide(t, p.words, &w) * OPDI_CU_NMS, at0 = w * OPDI_CU_NMS;
        const int64_t i = row0 + threadIdx.x, other = at0 + threadIdx.x;
        if (at0 < row0) { continue; }
        __syncthreads();
        for (int k = 0; k < 4; k++) { others[threadIdx.x][k] = other < p.n ? p.boxes[p.order[other] * 4 + k] : A(0); }
        __syncthreads();
        if (i >= p.n) { continue; }
        A mine[4];
        unsigned long long bits = 0;
        for (int k = 0; k < 4; k++) { mine[k] = p.boxes[p.order[i] * 4 + k]; }
        const int many = p.n - at0 < OPDI_CU_NMS ? (int)(p.n - at0) : OPDI_CU_NMS;
        for (int k = at0 == row0 ? (int)threadIdx.x + 1 : 0; k < many; k++) {
            if (opdi_cu_overlaps(mine, others[k], p.most)) { bits |= 1ull << k; }
        }
        p.covers[i * p.words + w] = bits;
    }
}
/* Writes the kept boxes to `kept`, and their number to *count.  gone: `words` zeros, the bits of covered boxes. */
static __global__ void __launch_bounds__(1024)
opdi_cu_nms_keep(const unsigned long long *covers, const int64_t *order, int64_t n, int64_t words,
                 unsigned long long *gone, int64_t *kept, int64_t *count) {
    __shared__ unsigned long long now;            /* the bits of the boxes of this word that are kept */
    int64_t many = 0;
    for (int64_t w = 0; w < words; w++) {
        const int64_t first = w * OPDI_CU_NMS, some = n - first < OPDI_CU_NMS ? n - first : OPDI_CU_NMS;
        __shared__ unsigned long long inside[OPDI_CU_NMS];
        __syncthreads();
        if ((int64_t)threadIdx.x < some) { inside[threadIdx.x] = covers[(first + threadIdx.x) * words + w]; }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned long long lost = gone[w], keep = 0;
            for (int64_t k = 0; k < some; k++) {
                if (lost >> k & 1) { continue; }
                keep |= 1ull << k;
                lost |= inside[k];
                kept[many + __popcll(keep) - 1] = order[first + k];
            }
            now = keep;
        }
        __syncthreads();
        const unsigned long long keep = now;
        many += __popcll(keep);
        for (int64_t v = w + 1 + threadIdx.x; v < words; v += blockDim.x) {
            unsigned long long lost = gone[v], left = keep;
            while (left) {
                const int k = __ffsll((long long)left) - 1;
                left &= left - 1;
                lost |= covers[(first + k) * words + v];
            }
            gone[v] = lost;
        }
    }
    if (threadIdx.x == 0) { *count = many; }
}
template <typename A> static int opdi_cu_nms_run(opd_tensor *boxes, opd_tensor *order, double most,
                                                 unsigned long long *covers, int64_t words, int64_t *kept) {
    const int64_t n = opd_size(boxes, 0);
    const opdi_cu_boxes<A> p = {opdi_cu_data<A>(boxes), opdi_cu_data<int64_t>(order), n, words, most, covers};
    unsigned long long *gone = covers + n * words;
    OPDI_CU_TRY(cudaMemsetAsync(gone, 0, (size_t)words * 8, opdi_cu_stream()), "nms");
    if (opdi_cu_launch(opdi_cu_nms_compare<A>, opdi_cu_grid_rows(words * words), OPDI_CU_NMS, 0, p)) { return -1; }
    return opdi_cu_launch(opdi_cu_nms_keep, dim3(1), dim3(1024), 0, (const unsigned long long *)covers, p.order, n,
                          words, gone, kept + 1, kept);
}
static int opdi_cu_nms(opd_call *call) {
    opd_tensor *boxes = opd_arg_tensor(call, 0), *scores = opd_arg_tensor(call, 1), *sorted[2], *out;
    const opd_scalar_type t = opd_dtype(boxes) == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const int64_t n = opd_ndim(boxes) == 2 ? opd_size(boxes, 0) : 0, words = opdi_cu_ceil(n, OPDI_CU_NMS);
    if (opd_ndim(boxes) != 2 || opd_size(boxes, 1) != 4 || opd_ndim(scores) != 1 || opd_size(scores, 0) != n ||
        opd_dtype(boxes) != opd_dtype(scores) || !opd_dtype_is_floating(opd_dtype(boxes))) {
        return opd_cpu_fallback(call);            /* reports what is wrong */
    }
    if (n == 0) { return opd_return_tensor(call, opdi_cu_new(opd_ints_of(&n, 1), OPD_INT64)); }
    if (opd_sort_stable(sorted, scores, opd_value_bool(true), 0, true)) { return -1; }
    const int64_t room = n + 1;
    opd_tensor *order = opdi_cu_as(sorted[1], OPD_INT64), *all = opdi_cu_new(opd_ints_of(&room, 1), OPD_INT64);
    unsigned long long *covers = (unsigned long long *)opdi_cu_scratch((n + 1) * words * 8);
    if (!order || !all || !covers || !(boxes = opdi_cu_as(boxes, t))) { return -1; }
    int64_t *kept = opdi_cu_data<int64_t>(all);
    if (t == OPD_FLOAT64 ? opdi_cu_nms_run<double>(boxes, order, opd_arg_double(call, 2), covers, words, kept)
        : opdi_cu_nms_run<float>(boxes, order, opd_arg_double(call, 2), covers, words, kept)) { return -1; }
    const int64_t count = opd_item_i64(opd_select(all, 0, 0));                    /* waits for the device */
    out = opd_ok() ? opd_narrow(all, 0, 1, count) : NULL;
    return out ? opd_return_tensor(call, opd_clone(out)) : -1;
}

//== roi_align =========================================================================================================
//
//  A bin is the mean of its samples, each of which lies between four pixels.  A thread computes one bin of one channel.
//  In the backward pass, it adds the bin's gradient to the pixels by atomic additions.

template <typename T, typename R> struct opdi_cu_roi {
    const R *rois;                                /* [count][5]: number of the image, x, y, x, y */
    int64_t images, channels, height, width, bins[2], ratio;
    R scale;
    bool aligned;
    opdi_cu_guard image, size;                    /* for numbers of images, and sizes of regions */
    const T *x;                                   /* forward: images; backward: gradients of bins */
    T *y;
    opdi_cu_acc<T> *sums;                         /* backward: gradients of images */
};
/* One axis of a region: its start, the length of a bin, and the number of samples in each bin (-1: too many). */
template <typename R> struct opdi_cu_roi_axis { R start, bin; int samples; };
/* Returns axis 0 (y) or 1 (x) of a region whose corner is box[0] and, two further on, box[2]. */
template <typename T, typename R>
__device__ __forceinline__ opdi_cu_roi_axis<R> opdi_cu_roi_axis_of(const opdi_cu_roi<T, R> &p, const R *box, int axis) {
    const R shift = p.aligned ? R(0.5) : R(0), start = opdi_cu_rounded_product(box[0], p.scale) - shift;
    R length = opdi_cu_rounded_product(box[2], p.scale) - shift - start;
    opdi_cu_roi_axis<R> a;
    if (!p.aligned && !(length > 1)) { length = 1; }
    a.start = start;
    a.bin = length / (R)p.bins[axis];
    const double samples = p.ratio > 0 ? (double)p.ratio : ceil((double)a.bin);
    a.samples = !(samples < 100000) ? -1 : samples > 0 ? (int)samples : 0;
    return a;
}
/* Finds the two rows or columns around sample number `i` of bin `bin`, and their weights.  Returns false if the sample
   is outside of the image, which has `size` rows or columns. */
template <typename R>
__device__ __forceinline__ bool opdi_cu_roi_lines(const opdi_cu_roi_axis<R> &a, int64_t bin, int i, int64_t size,
                                                  int64_t *lines /*[2]*/, R *parts /*[2]*/) {
    R place = a.start + opdi_cu_rounded_product((R)bin, a.bin);
    place += opdi_cu_rounded_product((R)i + R(0.5), a.bin) / (R)a.samples;
    if (!(place >= -1 && place <= (R)size)) { return false; }
    place = place > 0 ? place : R(0);
    lines[0] = (int64_t)place;
    lines[1] = lines[0] + 1;
    if (lines[0] >= size - 1) {
        lines[0] = lines[1] = size - 1;
        place = (R)lines[0];
    }
    parts[1] = place - (R)lines[0];
    parts[0] = 1 - parts[1];
    return true;
}
template <typename T, typename R, bool back> struct opdi_cu_roi_bins {
    opdi_cu_roi<T, R> p;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t column, row, channel;
        const int64_t region = opdi_cu_divide(opdi_cu_divide(opdi_cu_divide(i, p.bins[1], &column), p.bins[0], &row),
                                              p.channels, &channel);
        const R *box = p.rois + 5 * region;
        const bool there = box[0] >= 0 && box[0] < (R)p.images;
        const opdi_cu_roi_axis<R> v = opdi_cu_roi_axis_of(p, box + 2, 0), h = opdi_cu_roi_axis_of(p, box + 1, 1);
        if (!there) { p.image.note(region, p.images); }
        else if (v.samples < 0 || h.samples < 0) { p.size.note(region, p.images); }
        const bool empty = !there || v.samples < 0 || h.samples < 0 || p.height * p.width == 0;
        const int64_t plane = empty ? 0 : ((int64_t)box[0] * p.channels + channel) * p.height * p.width;
        const int64_t many = empty ? 0 : (int64_t)v.samples * h.samples;
        const A share = A(1) / (A)(many > 1 ? many : 1), given = back ? opdi_cu_load<A>(p.x + i) * share : A(0);
        A sum = 0;
        for (int a = 0; many > 0 && a < v.samples; a++) {
            int64_t rows[2], columns[2];
            R up[2], side[2];
            if (!opdi_cu_roi_lines(v, row, a, p.height, rows, up)) { continue; }
            for (int b = 0; b < h.samples; b++) {
                if (!opdi_cu_roi_lines(h, column, b, p.width, columns, side)) { continue; }
                OPDI_CU_UNROLL
                for (int k = 0; k < 4; k++) {
                    const int64_t at = plane + rows[k / 2] * p.width + columns[k % 2];
                    const A w = (A)(up[k / 2] * side[k % 2]);
                    if (back) { opdi_cu_atomic_add(p.sums + at, given * w); }
                    else { sum += w * opdi_cu_load<A>(p.x + at); }
                }
            }
        }
        if (!back) { opdi_cu_store(p.y + i, sum * share); }
    }
};
template <typename T, typename R>
static int opdi_cu_roi_go(opd_call *call, opd_tensor *x, opd_tensor *rois, opd_tensor *y, bool back) {
    const opd_tensor *const image = back ? y : x, *const pooled = back ? x : y;
    const int last = back ? 9 : 5;
    opdi_cu_roi<T, R> p;
    p.rois = opdi_cu_data<R>(rois);
    if (opd_size(image, 0) == 0 && opd_size(rois, 0) > 0) {
        return opd_fail(OPD_ERROR_INDEX, "rois names an image, but there are 0 images");
    }
    p.images = opd_size(image, 0); p.channels = opd_size(image, 1);
    p.height = opd_size(image, 2); p.width = opd_size(image, 3);
    p.bins[0] = opd_size(pooled, 2); p.bins[1] = opd_size(pooled, 3);
    p.ratio = opd_arg_int(call, last); p.aligned = opd_arg_bool(call, last + 1);
    p.scale = (R)opd_arg_double(call, 2);
    p.image = opdi_cu_guard_of(call, "a region names an image that there is not");
    p.size = opdi_cu_guard_of(call, "a region is too large: a bin would have 100000 rows or columns of samples");
    p.x = opdi_cu_data<T>(x); p.y = back ? NULL : opdi_cu_data<T>(y);
    p.sums = back ? opdi_cu_data<opdi_cu_acc<T>>(y) : NULL;
    const opdi_cu_roi_bins<T, R, false> forth = {p};
    const opdi_cu_roi_bins<T, R, true> rear = {p};
    return back ? opdi_cu_each(opd_numel(pooled), rear) : opdi_cu_each(opd_numel(pooled), forth);
}
/* Runs roi_align or, if `back` is true, its gradient. */
static int opdi_cu_roi_align_of(opd_call *call, bool back) {
    opd_tensor *x = opd_arg_tensor(call, 0), *rois = opd_arg_tensor(call, 1), *out, *work;
    if (opd_results_from_fake(call) || (back && opd_deterministic_alert(call, NULL))) { return -1; }
    out = opdi_cu_result(call, 0);
    const opd_scalar_type t = opd_dtype(x), r = opd_dtype(rois) == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    work = back ? opd_zeros_full(opd_ints_of(opd_sizes(out), opd_ndim(out)), opd_value_int(opdi_cu_compute_dtype(t)),
                                 opd_value_none(), opd_value_device(opd_tensor_device(x)), opd_value_none())
        : opdi_cu_staging(out);
    x = opdi_cu_as(x, t);
    rois = opdi_cu_as(rois, r);
    if (!work || !x || !rois) { return -1; }
    OPDI_CU_FLOATS(t, T, {
        if (r == OPD_FLOAT64 ? opdi_cu_roi_go<T, double>(call, x, rois, work, back)
            : opdi_cu_roi_go<T, float>(call, x, rois, work, back)) { return -1; }
    })
    return back ? opd_copy_(out, work) ? 0 : -1 : opdi_cu_staging_store(out, work);
}
static int opdi_cu_roi_align(opd_call *call) { return opdi_cu_roi_align_of(call, false); }
static int opdi_cu_roi_align_backward(opd_call *call) { return opdi_cu_roi_align_of(call, true); }
static const opdi_cu_registration opdi_cu_table_vision[] = {
    {"nms", opdi_cu_nms}, {"roi_align", opdi_cu_roi_align}, {"_roi_align_backward", opdi_cu_roi_align_backward},
    {NULL, NULL}};

