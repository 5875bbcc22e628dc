//== index, index_put, put: lists of index tensors =====================================================================

enum { OPDI_CU_READ = 0, OPDI_CU_WRITE, OPDI_CU_ACCUMULATE };
/* The indexing of `self` by a list of index tensors.  The values are [before][q][after], where q counts the positions
   of the index tensors, and `before` and `after` are the dims of `self` before and after the indexed dims.  If the
   indexed dims are not neighbours, all other dims count as `after`. */
struct opdi_cu_list {
    int n;                                        /* number of indexed dims */
    const int64_t *index[OPD_MAX_DIMS];           /* by indexed dim: [nq] */
    int64_t size[OPD_MAX_DIMS], stride[OPD_MAX_DIMS];
    opdi_cu_strided<1> before, after;
    int64_t nb, nq, na;
    int64_t one;                                  /* stride of values: 1, or 0 if there is only one value */
    opdi_cu_guard guard;
    /* Returns the offset in `self` of position q of the indices, or -1 if an index is out of range. */
    __device__ __forceinline__ int64_t place(int64_t q) const {
        int64_t at = 0;
        for (int d = 0; d < n; d++) {
            int64_t k = index[d][q];
            if (k < 0) { k += size[d]; }
            if ((uint64_t)k >= (uint64_t)size[d]) { guard.note(index[d][q], size[d]); return -1; }
            at += k * stride[d];
        }
        return at;
    }
    __device__ __forceinline__ int64_t rest(int64_t b, int64_t a) const {
        int64_t x, y;
        before.at(b, &x);
        after.at(a, &y);
        return x + y;
    }
};
template <class T> struct opdi_cu_list_move {
    opdi_cu_list list;
    T *self, *values;
    bool back;
    __device__ void operator()(int64_t i) const {
        int64_t a, q;
        const int64_t b = opdi_cu_divide(opdi_cu_divide(i, list.na, &a), list.nq, &q), at = list.place(q);
        if (at < 0) { return; }
        T *p = self + at + list.rest(b, a);
        if (back) { *p = values[i * list.one]; } else { values[i] = *p; }
    }
};
/* Sets keys[q] to the offset in `self` of position q of the indices.  The keys are then sorted. */
struct opdi_cu_list_keys {
    opdi_cu_list list;
    int64_t *keys, skip;                          /* skip: an offset that is ignored, or -1 */
    __device__ void operator()(int64_t q) const {
        const int64_t at = list.place(q);
        keys[q] = skip >= 0 && at == skip ? -1 : at;
    }
};
/* Adds to each element of `self` the sum of its values, always in the same order.  The sorted keys are cut into pieces
   of OPDI_CU_PIECE.  If a key continues in the next piece, the sum so far is stored in `partial`, and joined
   afterwards. */
enum { OPDI_CU_PIECE = 32 };
template <class T> struct opdi_cu_list_sum {
    opdi_cu_list list;
    const int64_t *keys, *order;                  /* [nq] sorted keys, and their positions before sorting */
    T *self;
    const T *values;
    T *partial;                                   /* [nb][pieces][2][na]: sums of the first and of the last key of a
                                                     piece */
    int64_t pieces;
    bool scale;                                   /* divide each sum by the number of its values */
    __device__ __forceinline__ void split(int64_t i, int64_t *b, int64_t *piece, int64_t *a) const {
        *b = opdi_cu_divide(opdi_cu_divide(i, list.na, a), pieces, piece);
    }
    __device__ __forceinline__ T *part(int64_t b, int64_t piece, int64_t a, int last) const {
        return partial + ((b * pieces + piece) * 2 + last) * list.na + a;
    }
    __device__ __forceinline__ int64_t end(int64_t piece) const {
        return piece + 1 < pieces ? (piece + 1) * OPDI_CU_PIECE : list.nq;
    }
    __device__ void put(int64_t key, int64_t b, int64_t a, T sum, int64_t n) const {
        self[key + list.rest(b, a)] += scale ? opdi_cu_share<T>::divide(sum, n) : sum;
    }
    __device__ void operator()(int64_t i) const {
        int64_t a, b, piece;
        split(i, &b, &piece, &a);
        const int64_t begin = piece * OPDI_CU_PIECE, stop = end(piece);
        for (int64_t q = begin, from = q; q < stop; from = q) {
            const int64_t key = keys[q];
            T sum = 0;
            for (; q < stop && keys[q] == key; q++) {
                if (key >= 0) { sum += values[((b * list.nq + order[q]) * list.na + a) * list.one]; }
            }
            const bool before = from == begin && begin > 0 && keys[begin - 1] == key;
            const bool after = q == stop && stop < list.nq && keys[stop] == key;
            if (key < 0) { continue; }
            if (before || after) { *part(b, piece, a, !before) = sum; } else { put(key, b, a, sum, q - from); }
        }
    }
};
/* Joins the sums of a key whose values begin in one piece and continue in the next. */
template <class T> struct opdi_cu_list_join : opdi_cu_list_sum<T> {
    explicit opdi_cu_list_join(const opdi_cu_list_sum<T> &x) : opdi_cu_list_sum<T>(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t a, b, piece;
        this->split(i, &b, &piece, &a);
        const int64_t *keys = this->keys, begin = piece * OPDI_CU_PIECE, stop = this->end(piece);
        int64_t from = stop - 1, q = stop;
        if (stop >= this->list.nq || keys[stop] < 0 || keys[from] != keys[stop]) { return; }
        while (from > begin && keys[from - 1] == keys[stop]) { from--; }
        if (from == begin && begin > 0 && keys[begin - 1] == keys[stop]) { return; }
        T sum = *this->part(b, piece, a, 1);
        for (piece++; piece < this->pieces && keys[piece * OPDI_CU_PIECE] == keys[stop]; piece++) {
            sum += *this->part(b, piece, a, 0);
            q = this->end(piece);
            if (keys[q - 1] != keys[stop]) {
                while (keys[q - 1] != keys[stop]) { q--; }
                break;
            }
        }
        this->put(keys[stop], b, a, sum, q - from);
    }
};
template <class T> static int opdi_cu_list_sums(const opdi_cu_list *p, opd_tensor *const *sorted, opd_tensor *self,
                                                opd_tensor *values, bool scale) {
    opdi_cu_list_sum<T> f;
    f.list = *p;
    f.keys = opdi_cu_data<int64_t>(sorted[0]); f.order = opdi_cu_data<int64_t>(sorted[1]);
    f.self = opdi_cu_data<T>(self); f.values = opdi_cu_data<T>(values); f.scale = scale;
    f.pieces = opdi_cu_ceil(p->nq, OPDI_CU_PIECE);
    const int64_t n = p->nb * f.pieces * p->na;
    f.partial = (T *)opdi_cu_scratch(2 * n * (int64_t)sizeof(T));
    if (!f.partial || !opd_ok()) { return -1; }
    return opdi_cu_each(n, f) || (f.pieces > 1 && opdi_cu_each(n, opdi_cu_list_join<T>(f))) ? -1 : 0;
}
/* The same for the dtype of `self`. */
static int opdi_cu_list_sums_of(const opdi_cu_list *p, opd_tensor *const *sorted, opd_tensor *self,
                                opd_tensor *values, bool scale) {
    return opd_dtype(self) == OPD_FLOAT32 ? opdi_cu_list_sums<float>(p, sorted, self, values, scale)
        : opd_dtype(self) == OPD_FLOAT64 ? opdi_cu_list_sums<double>(p, sorted, self, values, scale)
        : opdi_cu_list_sums<int64_t>(p, sorted, self, values, scale);
}
/* Replaces a mask by an index tensor for each of its dims: the coordinates of the elements that are true.  Returns 0,
   or -1 and sets an error. */
static int opdi_cu_mask_index(opd_tensor *mask, opd_tensor **out) {
    opd_tensor *at = opd_nonzero(mask);
    for (int d = 0; d < opd_ndim(mask); d++) {
        out[d] = opd_select(at, 1, d);
        if (!out[d]) { return -1; }
    }
    return 0;
}
/* Sets index[d] to the index tensor of each dim of `self`, or to NULL for the whole dim (as at::native::expandTensors
   does).  Returns 0, or -1 and sets an error. */
static int opdi_cu_list_expand(const opd_tensor *self, opd_tensors list, opd_tensor **index) {
    const int ndim = opd_ndim(self);
    int n = 0;
    for (int64_t k = 0; k < list.n; k++) {
        opd_tensor *t = list.data[k];
        const bool mask = t && (opd_dtype(t) == OPD_BOOL || opd_dtype(t) == OPD_UINT8);
        const int width = mask ? opd_ndim(t) : 1;
        if (n + width > ndim) {
            return opd_fail(OPD_ERROR_INDEX, "too many indices for tensor of dimension %d (got %lld)", ndim,
                            (long long)(list.n > n + width ? list.n : n + width));
        }
        if (!mask) {
            if (t && opd_dtype(t) == OPD_INT32 && !(t = opd_to_dtype(t, OPD_INT64))) { return -1; }
            if (t && opd_dtype(t) != OPD_INT64) {
                return opd_fail(OPD_ERROR_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
            }
            index[n++] = t;
            continue;
        }
        for (int d = 0; d < width; d++) {
            if (opd_sizes(t)[d] != opd_sizes(self)[n + d]) {
                return opd_fail(OPD_ERROR_INDEX, "The shape of the mask at index %d does not match the shape of the "
                                "indexed tensor at index %d: %lld and %lld", d, n + d, (long long)opd_sizes(t)[d],
                                (long long)opd_sizes(self)[n + d]);
            }
        }
        if (width == 0) {
            return opd_fail(OPD_ERROR_INDEX, "a mask without dimensions is not supported as an index");
        }
        if (opdi_cu_mask_index(t, index + n)) { return -1; }
        n += width;
    }
    for (; n < ndim; n++) { index[n] = NULL; }
    return 0;
}
/* Makes the plan *p of self[list], and writes the sizes of the result to `out`, and their number to *nout.  Returns 0,
   or -1 and sets an error. */
static int opdi_cu_list_make(const opd_call *call, opdi_cu_list *p, const opd_tensor *self, opd_tensors list,
                             int64_t *out, int *nout) {
    const int ndim = opd_ndim(self);
    opd_tensor *index[OPD_MAX_DIMS], *some[OPD_MAX_DIMS];
    const opd_tensor *shape = NULL;
    int first = -1, last = -1, d, k;
    p->n = 0; p->nq = 1; p->one = 1;
    p->guard = opdi_cu_guard_of(call);
    p->before.begin(); p->after.begin();
    if (opdi_cu_list_expand(self, list, index)) { return -1; }
    for (d = 0; d < ndim; d++) {
        if (!index[d]) { continue; }
        if (first < 0) { first = d; }
        last = d;
        p->size[p->n] = opd_sizes(self)[d];
        p->stride[p->n] = opd_strides(self)[d];
        some[p->n++] = index[d];
    }
    if (p->n) {
        const opd_tensors wide = opd_broadcast_tensors(opd_tensors_of(some, p->n));
        for (k = 0; k < p->n; k++) {
            opd_tensor *t = wide.n == p->n ? opdi_cu_as(wide.data[k], OPD_INT64) : NULL;
            p->index[k] = opdi_cu_data<int64_t>(t);
            if (!t || !opd_ok()) { return -1; }
            shape = t;
        }
        p->nq = opd_numel(shape);
        if (last - first + 1 != p->n) { first = 0; }
    } else { first = ndim; }
    if (ndim - p->n + opd_ndim(shape) > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions, not %d", OPD_MAX_DIMS,
                        ndim - p->n + opd_ndim(shape));
    }
    *nout = 0;
    p->nb = p->na = 1;
    for (d = 0; d < first; d++) {
        if (index[d]) { break; }
        p->before.add(opd_sizes(self)[d], opd_strides(self) + d);
        p->nb *= out[(*nout)++] = opd_sizes(self)[d];
    }
    for (k = 0; k < opd_ndim(shape); k++) { out[(*nout)++] = opd_sizes(shape)[k]; }
    for (; d < ndim; d++) {
        if (index[d]) { continue; }
        p->after.add(opd_sizes(self)[d], opd_strides(self) + d);
        p->na *= out[(*nout)++] = opd_sizes(self)[d];
    }
    return 0;
}
/* Changes the plan to copy units larger than an element, if all strides and addresses allow it.  Returns the size of a
   unit in bytes. */
static int64_t opdi_cu_list_units(opdi_cu_list *p, int64_t bytes, const void *self, const void *values) {
    int64_t all = bytes, unit, f;
    int d;
    if (p->after.n != 1 || p->after.stride[0][0] != 1 || !p->one) { return bytes; }
    for (d = 0; d < p->n; d++) { all |= p->stride[d] * bytes; }
    for (d = 0; d < p->before.n; d++) { all |= p->before.stride[0][d] * bytes; }
    all = (all & ~bytes) | (p->na * bytes);       /* a row must consist of whole units, an element need not */
    unit = opdi_cu_unit(all, (uintptr_t)self, (uintptr_t)values);
    if (unit <= bytes) { return bytes; }
    f = unit / bytes;
    for (d = 0; d < p->n; d++) { p->stride[d] /= f; }
    for (d = 0; d < p->before.n; d++) { p->before.stride[0][d] /= f; }
    p->na /= f;
    p->after.size[0] = p->na;
    return unit;
}
static int opdi_cu_list_write_ordered(opdi_cu_list *p, opd_tensor *self, opd_tensor *values);
static int opdi_cu_list_run(opdi_cu_list *p, opd_tensor *self, opd_tensor *values, bool back) {
    void *s = opdi_cu_data<void>(self), *v = opdi_cu_data<void>(values);
    if (back && p->nq > 1 && p->one && opd_deterministic_mode() != OPD_DETERMINISTIC_OFF) {
        return opdi_cu_list_write_ordered(p, self, values);
    }
    const int64_t unit = opdi_cu_list_units(p, (int64_t)opd_dtype_size(opd_dtype(self)), s, v);
    OPDI_CU_UNITS(unit, T, {
        const opdi_cu_list_move<T> f = {*p, (T *)s, (T *)v, back};
        return opdi_cu_each(p->nb * p->nq * p->na, f);
    })
    return 0;
}
/* Makes a result.  The order of its dims in memory is that of the dims of `self` and the index tensors, as on the CPU.
   The Meta kernel finds this order.  If there are masks, it cannot, because the number of elements then depends on the
   data; the result is then contiguous.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_index_result(opd_call *call, opd_tensor *self, opd_tensors list, const int64_t *sizes,
                                        int n) {
    const opd_device meta = opd_device_make(OPD_META, 0);
    opd_tensor *fakes[OPD_MAX_DIMS], *like = opd_to_device(self, meta, opd_dtype(self));
    for (int64_t i = 0; i < list.n; i++) {
        opd_tensor *const t = list.data[i];
        if (t && (opd_dtype(t) == OPD_BOOL || opd_dtype(t) == OPD_UINT8)) { like = NULL; }
        fakes[i] = t && like ? opd_to_device(t, meta, opd_dtype(t)) : NULL;
    }
    like = like ? opd_index(like, opd_tensors_of(fakes, (int)list.n)) : NULL;
    return opd_result_strided(call, 0, sizes, like ? opd_strides(like) : NULL, n, opd_dtype(self),
                              opd_tensor_device(self));
}
static int opdi_cu_index_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out, *staging;
    int64_t sizes[OPD_MAX_DIMS];
    opdi_cu_list p;
    int n;
    if (opdi_cu_list_make(call, &p, self, opd_arg_tensors(call, 1), sizes, &n)) { return -1; }
    out = opd_ok() ? opdi_cu_index_result(call, self, opd_arg_tensors(call, 1), sizes, n) : NULL;
    staging = out ? opdi_cu_staging(out, opd_dtype(self)) : NULL;
    return staging && opdi_cu_list_run(&p, self, staging, false) == 0 ? opdi_cu_staging_store(out, staging) : -1;
}
/* Adds `values` to `self` at the listed positions; both have a dtype in which kernels compute (float32, float64 or
   int64).  Values for the offset `skip` are ignored.  If `scale` is true, each sum is divided by the number of its
   values.  Returns 0, or -1 and sets an error. */
static int opdi_cu_list_add(const opdi_cu_list *p, opd_tensor *self, opd_tensor *values, int64_t skip, bool scale) {
    opd_tensor *keys = opdi_cu_new(opd_ints_of(&p->nq, 1), OPD_INT64), *sorted[2];
    const int64_t n = p->nb * p->nq * p->na;
    if (!keys) { return -1; }
    if (n == 0) { return 0; }
    const opdi_cu_list_keys f = {*p, opdi_cu_data<int64_t>(keys), skip};
    if (opdi_cu_each(p->nq, f) || opd_sort_stable(sorted, keys, opd_value_bool(true), 0, false)) { return -1; }
    return opdi_cu_list_sums_of(p, sorted, self, values, scale);
}
/* Writes `values` to the listed positions of `out` or, if `accumulate` is true, adds them.  Returns 0, or -1 and sets
   an error. */
static int opdi_cu_list_put(const opd_call *call, opd_tensor *out, opd_tensors list, opd_tensor *values,
                            bool accumulate) {
    int64_t sizes[OPD_MAX_DIMS];
    opdi_cu_list p;
    int n;
    if (accumulate && opd_dtype_is_complex(opd_dtype(out))) {        /* the parts are the elements of one more dim */
        values = opd_tensor_device(values).type == OPD_CUDA ? opdi_cu_as(values, opd_dtype(out))
            : opd_to_device(values, opd_tensor_device(out), opd_dtype(out));
        out = opd_view_as_real(out);
        values = values ? opd_view_as_real(values) : NULL;
        return out && values ? opdi_cu_list_put(call, out, list, values, true) : -1;
    }
    const opd_scalar_type t = accumulate ? opdi_cu_compute_dtype(opd_dtype(out)) : opd_dtype(out);
    opd_tensor *staging = t == opd_dtype(out) ? out : opdi_cu_staging_filled(out, t);
    if (!staging || opdi_cu_list_make(call, &p, staging, list, sizes, &n)) { return -1; }
    if (opd_tensor_device(values).type != OPD_CUDA) {
        values = opd_to_device(values, opd_tensor_device(out), opd_dtype(values));
    }
    if (values && opd_numel(values) == 1 && opd_ndim(values) == 0) { p.one = 0; }
    else { values = values ? opd_expand(values, opd_ints_of(sizes, n)) : NULL; }
    values = values ? opdi_cu_as(values, t) : NULL;
    if (!values || (accumulate ? opdi_cu_list_add(&p, staging, values, -1, false)
                    : opdi_cu_list_run(&p, staging, values, true))) {
        return -1;
    }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_index_put_kernel(opd_call *call) {
    if (opd_arg_bool(call, 3) && opdi_cu_parts_fit_no_dim(call)) { return opd_cpu_fallback(call); }
    opd_tensor *out = opd_result_update(call);
    return !out ? -1 : opdi_cu_list_put(call, out, opd_arg_tensors(call, 1), opd_arg_tensor(call, 2),
                                        opd_arg_bool(call, 3));
}
/* Runs put(self, index, source, accumulate), which indexes `self` as if it had one dim. */
static int opdi_cu_put_kernel(opd_call *call) {
    opd_tensor *out = opd_result_update(call), *staging, *flat, *index, *src;
    staging = !out ? NULL : opd_is_contiguous(out) ? out : opdi_cu_staging_filled(out, opd_dtype(out));
    flat = staging ? opdi_cu_flat(staging) : NULL;
    index = flat ? opdi_cu_flat(opd_arg_tensor(call, 1)) : NULL;
    src = index ? opdi_cu_flat(opd_arg_tensor(call, 2)) : NULL;
    if (!src || opdi_cu_list_put(call, flat, opd_tensors_of(&index, 1), src, opd_arg_bool(call, 3))) { return -1; }
    return opdi_cu_staging_store(out, staging);
}
/* Runs embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq). */
static int opdi_cu_embedding_backward_kernel(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *out, *staging;
    int64_t sizes[OPD_MAX_DIMS], skip = opd_arg_int(call, 3);
    opdi_cu_list p;
    int n;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_dtype_is_complex(opd_dtype(out))) {   /* the parts are the elements of one more dim */
        out = opd_view_as_real(out);
        g = opd_view_as_real(opd_contiguous(g));
    }
    staging = opdi_cu_staging(out, opdi_cu_compute_dtype(opd_dtype(out)));
    x = staging && opd_zero_(staging) ? opdi_cu_as(x, OPD_INT64) : NULL;
    g = x ? opdi_cu_as(g, opd_dtype(staging)) : NULL;
    if (!g || opdi_cu_list_make(call, &p, staging, opd_tensors_of(&x, 1), sizes, &n)) { return -1; }
    if (opd_numel(staging) == 0) { return 0; }
    skip = skip < 0 ? -1 : skip * opd_strides(staging)[0];
    return opdi_cu_list_add(&p, staging, g, skip, opd_arg_bool(call, 4)) ? -1 : opdi_cu_staging_store(out, staging);
}

//== cat, stack ========================================================================================================

enum { OPDI_CU_PIECES = 64 };
/* Tensors to be joined: tensor k, [outer][len[k]], becomes columns at[k] .. of `out`, [outer][row]. */
template <class T> struct opdi_cu_pieces {
    const T *from[OPDI_CU_PIECES];
    int64_t len[OPDI_CU_PIECES], at[OPDI_CU_PIECES];
    T *out;
    int64_t outer, row;
};
template <class T> __global__ void opdi_cu_join_kernel(opdi_cu_pieces<T> p) {
    const int64_t len = p.len[blockIdx.y], at = p.at[blockIdx.y], n = p.outer * len;
    const T *from = p.from[blockIdx.y];
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        int64_t c;
        const int64_t o = opdi_cu_divide(i, len, &c);
        p.out[o * p.row + at + c] = from[i];
    }
}
/* Copies the *n tensors that were collected, in one launch, and sets *n to 0.  Returns 0, or -1 and sets an error. */
template <class T> static int opdi_cu_join_some(opdi_cu_pieces<T> *p, int *n) {
    int64_t most = 0;
    const int count = *n;
    for (int k = 0; k < count; k++) { most = p->len[k] > most ? p->len[k] : most; }
    *n = 0;
    if (count == 0 || most * p->outer == 0) { return 0; }
    dim3 grid = opdi_cu_grid(most * p->outer, 256);
    grid.y = (unsigned)count;
    return opdi_cu_launch(opdi_cu_join_kernel<T>, grid, 256, 0, *p);
}
static bool opdi_cu_join_skips(const opd_tensor *t, bool stack) {
    return !stack && opd_ndim(t) == 1 && opd_numel(t) == 0;
}
/* Returns the number of positions along the result's dim `dim` that tensor t fills. */
static int64_t opdi_cu_join_size(const opd_tensor *t, int dim, bool stack) { return stack ? 1 : opd_sizes(t)[dim]; }
template <class T> static int opdi_cu_join_units(opd_tensor *out, opd_tensors list, int dim, bool stack) {
    const int64_t bytes = (int64_t)opd_dtype_size(opd_dtype(out));
    int64_t at = 0;
    opdi_cu_pieces<T> p;
    int n = 0;
    p.out = opdi_cu_data<T>(out);
    p.outer = opdi_cu_span(opd_sizes(out), 0, dim);
    p.row = opd_numel(out) / p.outer * bytes / (int64_t)sizeof(T);
    for (int64_t k = 0; k < list.n; k++) {
        const opd_tensor *t = list.data[k];
        if (opdi_cu_join_skips(t, stack)) { continue; }
        p.from[n] = opdi_cu_data<T>(t); p.at[n] = at;
        p.len[n] = opd_numel(t) / p.outer * bytes / (int64_t)sizeof(T);
        at += p.len[n++];
        if (n == OPDI_CU_PIECES && opdi_cu_join_some(&p, &n)) { return -1; }
    }
    return opdi_cu_join_some(&p, &n);
}
static int opdi_cu_join(opd_call *call, bool stack) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    int64_t at = 0, unit = 16, k;
    bool straight;
    opd_tensor *out;
    int dim;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_numel(out) == 0) { return 0; }
    dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    straight = opd_is_contiguous(out);
    for (k = 0; k < list.n && straight; k++) {
        const opd_tensor *t = list.data[k];
        const int64_t bytes = (int64_t)opd_dtype_size(opd_dtype(t));
        if (opdi_cu_join_skips(t, stack)) { continue; }
        straight = opd_dtype(t) == opd_dtype(out) && opd_is_contiguous(t);
        if (opd_numel(t) == 0) { continue; }
        const int64_t u = opdi_cu_unit(opd_numel(t) / opdi_cu_span(opd_sizes(out), 0, dim) * bytes,
                                       (uintptr_t)opdi_cu_data<void>(t), (uintptr_t)opdi_cu_data<void>(out));
        unit = u < unit ? u : unit;
    }
    if (straight) { OPDI_CU_UNITS(unit, T, return opdi_cu_join_units<T>(out, list, dim, stack)) }
    for (k = 0; k < list.n; k++) {                /* tensors with other strides or dtypes are copied one by one */
        opd_tensor *t = list.data[k], *piece;
        int64_t strides[OPD_MAX_DIMS];
        if (opdi_cu_join_skips(t, stack)) { continue; }
        for (int d = 0; d < opd_ndim(t); d++) { strides[d] = opd_strides(out)[d + (stack && d >= dim)]; }
        piece = opd_tensor_view(out, opd_sizes(t), strides, opd_ndim(t),
                                opd_tensor_offset(out) + at * opd_strides(out)[dim]);
        if (!piece || !opd_copy_(piece, t)) { return -1; }
        at += opdi_cu_join_size(t, dim, stack);
    }
    return 0;
}
static int opdi_cu_cat_kernel(opd_call *call) { return opdi_cu_join(call, false); }
static int opdi_cu_stack_kernel(opd_call *call) { return opdi_cu_join(call, true); }

//== writing through a view: slice_scatter and similar operators =======================================================

/* Returns a tensor with the strides and contents of `self`, for a view that is defined by positions in memory.  Returns
   `out` itself if it has these strides, or if a dim of `self` has the stride 0.  Returns NULL and sets an error if it
   fails. */
static opd_tensor *opdi_cu_lies_as(opd_tensor *self, opd_tensor *out) {
    const opd_value none = opd_value_none();
    bool same = true;
    opd_tensor *staging;
    for (int d = 0; d < opd_ndim(self); d++) {
        if (opd_sizes(self)[d] > 1 && opd_strides(self)[d] == 0) { return out; }
        same = same && opd_strides(self)[d] == opd_strides(out)[d];
    }
    if (same) { return out; }
    staging = opd_empty_strided_full(opd_ints_of(opd_sizes(self), opd_ndim(self)),
                                     opd_ints_of(opd_strides(self), opd_ndim(self)), opd_value_int(opd_dtype(self)),
                                     none, opd_value_device(opd_tensor_device(self)), none);
    return staging ? opd_copy_(staging, self) : NULL;
}
static int opdi_cu_view_scatter(opd_call *call, const char *view, int nargs, bool flat) {
    opd_tensor *out = opd_result_update(call), *staging, *place;
    opd_value v[6];
    if (!out || !(staging = flat ? opdi_cu_lies_as(opd_arg_tensor(call, 0), out) : out)) { return -1; }
    v[0] = opd_value_tensor(staging);
    for (int i = 1; i < nargs; i++) { v[i] = opd_arg_value(call, i + 1); }
    place = opd_call_op(opd_find(view), v, nargs);
    if (!place || !opd_copy_(place, opd_arg_tensor(call, 1))) { return -1; }
    return staging == out || opd_copy_(out, staging) ? 0 : -1;
}
static int opdi_cu_slice_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::slice.Tensor", 5, false);
}
static int opdi_cu_select_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::select.int", 3, false);
}
static int opdi_cu_diagonal_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::diagonal", 4, false);
}
static int opdi_cu_as_strided_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::as_strided", 4, true);
}

//== one_hot, repeat_interleave, searchsorted, bucketize ===============================================================

struct opdi_cu_one_hot {
    const int64_t *x;
    int64_t *out, n;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i) const {
        int64_t c;
        const int64_t v = x[opdi_cu_divide(i, n, &c)];
        out[i] = v == c;
        if (c == 0) { (void)guard.inside(v, n); }
    }
};
static int opdi_cu_one_hot_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *staging;
    int64_t n = opd_arg_int(call, 1), sizes[OPD_MAX_DIMS];
    if (n == -1 && opd_numel(x) > 0 && opd_ndim(x) < OPD_MAX_DIMS && opd_dtype(x) == OPD_INT64) {
        n = opd_item_i64(opd_max(x)) + 1;         /* waits for the device */
        if (!opd_ok()) { return -1; }
        for (int d = 0; d < opd_ndim(x); d++) { sizes[d] = opd_sizes(x)[d]; }
        sizes[opd_ndim(x)] = n < 1 ? 1 : n;
        out = opd_result(call, 0, sizes, opd_ndim(x) + 1, OPD_INT64);
    } else { out = opd_results_from_fake(call) ? NULL : opdi_cu_result(call, 0); }
    staging = out ? opdi_cu_staging(out, OPD_INT64) : NULL;
    x = staging ? opdi_cu_as(x, OPD_INT64) : NULL;
    if (!x) { return -1; }
    const opdi_cu_one_hot f = {opdi_cu_data<int64_t>(x), opdi_cu_data<int64_t>(staging), opd_sizes(out)[opd_ndim(x)],
                               opdi_cu_guard_of(call, "Class values must be non-negative and smaller than "
                                                "num_classes.")};
    return opdi_cu_each(opd_numel(staging), f) ? -1 : opdi_cu_staging_store(out, staging);
}

template <class T> struct opdi_cu_repeats {       /* ends[i] = repeats[i], or an impossible number if repeats[i] is
                                                     negative */
    const T *x;
    int64_t *ends;
    __device__ void operator()(int64_t i) const {
        const int64_t v = (int64_t)x[i];
        ends[i] = v < 0 ? INT64_MIN / 2 : v;
    }
};
/* Sets out[i] to the number j for which begins[j] <= i < begins[j + 1]. */
template <class T> struct opdi_cu_repeat {
    const int64_t *begins;                        /* [n + 1] */
    int64_t n;
    T *out;
    __device__ void operator()(int64_t i) const {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2;
            if (begins[mid + 1] <= i) { low = mid + 1; } else { high = mid; }
        }
        out[i] = (T)low;
    }
};
template <class T> static int opdi_cu_repeat_of(opd_call *call, opd_tensor *r) {
    const int64_t n = opd_numel(r);
    int64_t *begins = (int64_t *)opdi_cu_scratch((n + 1) * 8), total;
    const opdi_cu_repeats<T> f = {opdi_cu_data<T>(r), begins};
    opd_tensor *out, *staging;
    if (!begins || opdi_cu_each(n, f) || opdi_cu_offsets(begins, n)) { return -1; }
    total = opdi_cu_fetch(begins + n);
    if (!opd_ok()) { return -1; }
    if (total < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "repeats can not be negative"); }
    if (!opd_arg_is_none(call, 1) && opd_arg_int(call, 1) != total) {
        return opd_fail(OPD_ERROR_SHAPE, "allocated size does not match required size");
    }
    out = opd_result(call, 0, &total, 1, opd_dtype(r));
    staging = out ? opdi_cu_staging(out, opd_dtype(r)) : NULL;
    if (!staging) { return -1; }
    const opdi_cu_repeat<T> g = {begins, n, opdi_cu_data<T>(staging)};
    return opdi_cu_each(total, g) ? -1 : opdi_cu_staging_store(out, staging);
}
static int opdi_cu_repeat_interleave_kernel(opd_call *call) {
    opd_tensor *r = opd_arg_tensor(call, 0);
    if (opd_ndim(r) != 1) { return opd_fail(OPD_ERROR_SHAPE, "repeat_interleave only accept 1D vector as repeat"); }
    if (opd_dtype(r) != OPD_INT64 && opd_dtype(r) != OPD_INT32) {
        return opd_fail(OPD_ERROR_DTYPE, "repeats must be an int64 or int32 tensor");
    }
    if (!(r = opdi_cu_as(r, opd_dtype(r)))) { return -1; }
    OPDI_CU_INDEX(opd_dtype(r), T, return opdi_cu_repeat_of<T>(call, r))
}

/* Finds the first position whose number is not less than the value or, if `right` is true, the first whose number is
   greater.  Integers are compared as int64, other numbers as double. */
template <class T, class C, class O> struct opdi_cu_search {
    const T *seq, *values;
    const int64_t *order;
    O *out;
    int64_t n, m;                             /* lengths of a row of seq and of values; m is 0 if seq is one row for all
                                                 values */
    C number;                                     /* the value, if `values` is NULL */
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i, bool right) const {
        const int64_t row = m ? i / m : 0;
        const T *s = seq + row * n;
        const C x = values ? opdi_cu_load<C>(values + i) : number;
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2, at = order ? order[row * n + mid] : mid;
            if (!guard.inside(at, n)) { break; }
            const C y = opdi_cu_load<C>(s + at);
            if (right ? !(y > x) : !(y >= x)) { low = mid + 1; } else { high = mid; }
        }
        out[i] = (O)low;
    }
};
template <class F, bool right> struct opdi_cu_search_side : F {
    explicit opdi_cu_search_side(const F &f) : F(f) { }
    __device__ void operator()(int64_t i) const { F::operator()(i, right); }
};
template <class T, class O> static int opdi_cu_search_of(const opd_call *call, opd_tensor *out, opd_tensor *seq,
                                                         opd_tensor *values, opd_value number, opd_tensor *sorter,
                                                         bool right) {
    typedef typename std::conditional<std::is_same<opdi_cu_acc<T>, int64_t>::value, int64_t, double>::type C;
    typedef opdi_cu_search<T, C, O> F;
    F f;
    f.seq = opdi_cu_data<T>(seq); f.values = values ? opdi_cu_data<T>(values) : NULL;
    f.order = sorter ? opdi_cu_data<int64_t>(sorter) : NULL; f.out = opdi_cu_data<O>(out);
    f.n = opd_size(seq, -1); f.m = opd_ndim(seq) > 1 ? opd_size(values, -1) : 0;
    f.number = number.tag == OPD_TAG_FLOAT ? (C)number.u.d : (C)number.u.i;
    f.guard = opdi_cu_guard_of(call, "torch.searchsorted(): sorter index out of range");
    return right ? opdi_cu_each(opd_numel(out), opdi_cu_search_side<F, true>(f))
        : opdi_cu_each(opd_numel(out), opdi_cu_search_side<F, false>(f));
}
static int opdi_cu_search_run(opd_call *call, opd_tensor *seq, opd_value v, opd_tensor *sorter, bool right) {
    opd_tensor *out = opdi_cu_result(call, 0), *staging, *values = v.tag == OPD_TAG_TENSOR ? v.u.t : NULL;
    if (!out || !(staging = opdi_cu_staging(out, opd_dtype(out))) || opd_numel(out) == 0) { return out ? 0 : -1; }
    if (values && opd_tensor_device(values).type != OPD_CUDA) {              /* a value on the host */
        v = opd_dtype_is_floating(opd_dtype(values)) ? opd_value_double(opd_item_f64(values))
            : opd_value_int(opd_item_i64(values));
        values = NULL;
    } else if (values && !(values = opdi_cu_as(values, opd_dtype(seq)))) { return -1; }
    seq = opdi_cu_as(seq, opd_dtype(seq));
    sorter = sorter ? opdi_cu_as(sorter, OPD_INT64) : NULL;
    if (!seq || !opd_ok()) { return -1; }
    if (opd_dtype(out) == OPD_INT32) {
        OPDI_CU_ALL(opd_dtype(seq), T, {
            if (opdi_cu_search_of<T, int32_t>(call, staging, seq, values, v, sorter, right)) { return -1; }
        })
    } else {
        OPDI_CU_ALL(opd_dtype(seq), T, {
            if (opdi_cu_search_of<T, int64_t>(call, staging, seq, values, v, sorter, right)) { return -1; }
        })
    }
    return opdi_cu_staging_store(out, staging);
}
/* Runs searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter). */
static int opdi_cu_searchsorted_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_search_run(call, opd_arg_tensor(call, 0), opd_arg_value(call, 1), opd_arg_tensor(call, 5),
                              opd_arg_is_none(call, 4) ? opd_arg_bool(call, 3) : *opd_arg_str(call, 4) == 'r');
}
/* Runs bucketize(self, boundaries, *, out_int32, right). */
static int opdi_cu_bucketize_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_search_run(call, opd_arg_tensor(call, 1), opd_arg_value(call, 0), NULL, opd_arg_bool(call, 3));
}

//== tril, triu, flip ==================================================================================================

template <class T> struct opdi_cu_triangle {
    const T *x;
    T *out;
    int64_t rows, cols, diagonal;
    bool lower;
    __device__ void operator()(int64_t i) const {
        int64_t r, c;
        (void)opdi_cu_divide(opdi_cu_divide(i, cols, &c), rows, &r);
        out[i] = (lower ? c - r <= diagonal : c - r >= diagonal) ? x[i] : T();
    }
};
static int opdi_cu_triangle_run(opd_call *call, bool lower) {
    const int64_t diagonal = opd_arg_int(call, 1);
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *staging;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    staging = opdi_cu_staging(out, opd_dtype(out));
    x = staging ? opdi_cu_as(x, opd_dtype(x)) : NULL;
    if (!x) { return -1; }
    OPDI_CU_SIZES(opd_dtype(x), T, {
        const opdi_cu_triangle<T> f = {opdi_cu_data<T>(x), opdi_cu_data<T>(staging), opd_size(x, -2), opd_size(x, -1),
                                       diagonal, lower};
        if (opdi_cu_each(opd_numel(x), f)) { return -1; }
    })
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_tril_kernel(opd_call *call) { return opdi_cu_triangle_run(call, true); }
static int opdi_cu_triu_kernel(opd_call *call) { return opdi_cu_triangle_run(call, false); }

/* Copies x to out.  Flipped dims have negative strides in x. */
template <class T> struct opdi_cu_walk_copy {
    opdi_cu_strided<2> walk;
    T *out;
    const T *x;
    __device__ void operator()(int64_t i) const {
        int64_t o[2];
        walk.at(i, o);
        out[o[0]] = x[o[1]];
    }
};
static int opdi_cu_flip_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    int64_t strides[OPD_MAX_DIMS], at = 0;
    int order[OPD_MAX_DIMS], d, k;
    const int n = opd_ndim(x);
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    for (d = 0; d < n; d++) { strides[d] = opd_strides(x)[d]; }
    for (k = 0; k < (int)dims.n && n > 0 && opd_numel(x) > 0; k++) {
        d = opdi_cu_dim(dims.data[k], x);
        at += (opd_sizes(x)[d] - 1) * strides[d];
        strides[d] = -strides[d];
    }
    for (d = 0; d < n; d++) {                     /* sorts the dims by their order in out's memory */
        for (k = d; k > 0 && opd_strides(out)[order[k - 1]] < opd_strides(out)[d]; k--) { order[k] = order[k - 1]; }
        order[k] = d;
    }
    OPDI_CU_SIZES(opd_dtype(x), T, {
        opdi_cu_walk_copy<T> f;
        f.walk.begin();
        for (d = 0; d < n; d++) {
            const int64_t s[2] = {opd_strides(out)[order[d]], strides[order[d]]};
            f.walk.add(opd_sizes(x)[order[d]], s);
        }
        f.out = opdi_cu_data<T>(out); f.x = opdi_cu_data<T>(x) + at;
        return opdi_cu_each(opd_numel(out), f);
    })
    return 0;
}

//== embedding_bag =====================================================================================================

/* Each thread computes one element of the result of a bag (a range of indices of rows of w).  mode: 0 sum, 1 mean, 2
   maximum. */
template <typename T> struct opdi_cu_bags {
    int64_t n, bags, offsets, d, rows, skip;      /* n: number of indices; rows: of w; d: length of a row; skip: an
                                                     index that is ignored */
    int mode;
    const T *w, *factors;                         /* factors: NULL, or a factor for each index */
    const int64_t *index, *at;                    /* at [offsets]: where bags begin; the last may be the end */
    T *out;
    int64_t *counts, *most;                       /* counts [bags]; most: NULL, or [bags, d] */
    opdi_cu_guard guard, starts;
    __device__ void operator()(int64_t e) const {
        typedef opdi_cu_acc<T> A;
        const int64_t wide = d ? d : 1, b = e / wide, c = e % wide, end = b + 1 < offsets ? at[b + 1] : n;
        int64_t count = 0, from = 0;
        A s = 0;
        if (at[b] < 0 || end > n || at[b] > end || (b == 0 && at[0] != 0)) { starts.note(at[b], n); return; }
        for (int64_t i = at[b]; i < end; i++) {
            const int64_t r = index[i];
            if (!guard.inside(r, rows) || r == skip) { continue; }
            if (c < d) {
                const A v = opdi_cu_load<A>(w + r * d + c);
                if (mode != 2) { s += factors ? opdi_cu_load<A>(factors + i) * v : v; }
                else if (count == 0 || v > s) { s = v; from = r; }
            }
            count++;
        }
        if (mode == 1 && count > 1) { s /= (A)count; }
        if (c < d) {
            opdi_cu_store(out + e, s);
            if (most) { most[e] = from; }
        }
        if (c == 0) { counts[b] = mode == 0 ? 0 : count; }
    }
};
/* Finds the bag of index number i: the number of offsets that are not greater than i, minus 1. */
struct opdi_cu_bag_of {
    int64_t offsets;
    const int64_t *at;
    int64_t *bags;
    __device__ void operator()(int64_t i) const {
        int64_t a = 0, b = offsets;
        while (a < b) {
            const int64_t mid = (a + b) / 2;
            if (at[mid] <= i) { a = mid + 1; } else { b = mid; }
        }
        bags[i] = a - 1;
    }
};
/* Runs _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
   include_last_offset, padding_idx). */
static int opdi_cu_embedding_bag_kernel(opd_call *call) {
    opd_tensor *w = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *at = opd_arg_tensor(call, 2);
    opd_tensor *factors = opd_arg_tensor(call, 6), *r[4], *staging[4];
    if (opd_results_from_fake(call)) { return -1; }
    const int mode = (int)opd_arg_int(call, 4);
    const int64_t bags = opd_sizes(opdi_cu_result(call, 0))[0];
    w = opdi_cu_as(w, opd_dtype(w));
    x = opdi_cu_as(x, OPD_INT64);
    at = opdi_cu_as(at, OPD_INT64);
    if (!w || !x || !at || (factors && !(factors = opdi_cu_as(factors, opd_dtype(w))))) { return -1; }
    for (int k = 0; k < 4; k++) {
        r[k] = opdi_cu_result(call, k);
        staging[k] = opdi_cu_staging(r[k], k ? OPD_INT64 : opd_dtype(r[k]));
        if (!staging[k] || (k == 2 && !opd_zero_(staging[k]))) { return -1; }
    }
    OPDI_CU_FLOATS(opd_dtype(w), T, {
        const opdi_cu_bags<T> f = {
            opd_numel(x), bags, opd_numel(at), opd_sizes(w)[1], opd_sizes(w)[0], opd_arg_int(call, 8), mode,
            opdi_cu_data<T>(w), factors ? opdi_cu_data<T>(factors) : NULL, opdi_cu_data<int64_t>(x),
            opdi_cu_data<int64_t>(at), opdi_cu_data<T>(staging[0]), opdi_cu_data<int64_t>(staging[2]),
            mode == 2 ? opdi_cu_data<int64_t>(staging[3]) : NULL, opdi_cu_guard_of(call),
            opdi_cu_guard_of(call, "offsets must begin with 0, must not decrease, and must not exceed input's length")};
        if (opdi_cu_each(bags * (f.d ? f.d : 1), f)) { return -1; }
    })
    if (opd_numel(staging[1])) {
        const opdi_cu_bag_of f = {opd_numel(at), opdi_cu_data<int64_t>(at), opdi_cu_data<int64_t>(staging[1])};
        if (opdi_cu_each(opd_numel(staging[1]), f)) { return -1; }
    }
    if (mode != 2 && !opd_copy_(staging[3], staging[2])) { return -1; }
    for (int k = 0; k < 4; k++) { if (opdi_cu_staging_store(r[k], staging[k])) { return -1; } }
    return 0;
}

static const opdi_cu_registration opdi_cu_table_indexing[] = {
    {"gather", opdi_cu_gather_kernel}, {"scatter.src", opdi_cu_scatter_kernel},
    {"scatter.value", opdi_cu_scatter_kernel}, {"scatter.reduce", opdi_cu_scatter_reduce_kernel},
    {"scatter.value_reduce", opdi_cu_scatter_reduce_kernel}, {"scatter_add", opdi_cu_scatter_add_kernel},
    {"scatter_reduce.two", opdi_cu_scatter_reduce_two_kernel}, {"index_select", opdi_cu_index_select_kernel},
    {"index_add", opdi_cu_index_add_kernel}, {"index_copy", opdi_cu_index_copy_kernel},
    {"index_fill.int_Scalar", opdi_cu_index_fill_kernel}, {"index_fill.int_Tensor", opdi_cu_index_fill_kernel},
    {"index_reduce", opdi_cu_index_reduce_kernel}, {"index.Tensor", opdi_cu_index_kernel},
    {"index_put", opdi_cu_index_put_kernel}, {"take", opdi_cu_take_kernel}, {"put", opdi_cu_put_kernel},
    {"masked_select", opdi_cu_masked_select_kernel}, {"masked_scatter", opdi_cu_masked_scatter_kernel},
    {"masked_fill.Tensor", opdi_cu_masked_fill_kernel}, {"nonzero", opdi_cu_nonzero_kernel},
    {"cat", opdi_cu_cat_kernel}, {"stack", opdi_cu_stack_kernel}, {"embedding", opdi_cu_embedding_kernel},
    {"_embedding_bag", opdi_cu_embedding_bag_kernel}, {"_embedding_bag_forward_only", opdi_cu_embedding_bag_kernel},
    {"embedding_dense_backward", opdi_cu_embedding_backward_kernel}, {"one_hot", opdi_cu_one_hot_kernel},
    {"slice_scatter", opdi_cu_slice_scatter_kernel}, {"select_scatter", opdi_cu_select_scatter_kernel},
    {"diagonal_scatter", opdi_cu_diagonal_scatter_kernel},
    {"as_strided_scatter", opdi_cu_as_strided_scatter_kernel},
    {"repeat_interleave.Tensor", opdi_cu_repeat_interleave_kernel},
    {"searchsorted.Tensor", opdi_cu_searchsorted_kernel}, {"searchsorted.Scalar", opdi_cu_searchsorted_kernel},
    {"bucketize.Tensor", opdi_cu_bucketize_kernel}, {"bucketize.Scalar", opdi_cu_bucketize_kernel},
    {"tril", opdi_cu_tril_kernel}, {"triu", opdi_cu_triu_kernel}, {"flip", opdi_cu_flip_kernel},
    {NULL, NULL}};

