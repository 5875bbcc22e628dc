#include "compiler.h"

//== lowerings that call other operators ===============================================================================
//
//  A lowering is the kernel of an operator on the lazy device (see >>lowerings).  It returns 0, or -1 and sets an
//  error.

/* Returns the rows of self, along dim, with the `count` indices in `places`, which are known when the graph is
   compiled.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_lower_rows_at(opd_tensor *self, int dim, const int64_t *places, int64_t count) {
    opd_tensor *const host = opd_empty(opd_ints_of(&count, 1), OPD_INT64);
    if (!self || !host) { return NULL; }
    if (count) { memcpy(opd_data_i64(host), places, (size_t)count * sizeof *places); }
    opd_tensor *const at = opd_to_device(host, opd_device_make(OPD_LAZY, 0), OPD_INT64);
    return at ? opd_index_select(self, dim, at) : NULL;
}
/* Returns a tensor on the lazy device with the `count` numbers `numbers`, which are known when the graph is compiled.
   The tensor has `ndim` dims; all but `dim` have size 1, so that it can be broadcast.  On failure, returns NULL and
   sets an error. */
OPDI_INTERNAL opd_tensor *opdi_lower_known(const double *numbers, int64_t count, int dim, int ndim,
                                           opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { sizes[i] = i == dim ? count : 1; }
    opd_tensor *host = opd_empty(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    if (!host) { return NULL; }
    if (count) { memcpy(opd_data_f64(host), numbers, (size_t)count * sizeof *numbers); }
    host = opd_to_dtype(host, dtype);
    return host ? opd_to_device(host, opd_device_make(OPD_LAZY, 0), dtype) : NULL;
}
/* How interpolation along one dim computes its `count` results: from `taps` elements each.  places[k][i] is the index
   of element k for result i, and weights[k][i] its weight. */
typedef struct opdi_lower_taps { int64_t count, *places[4]; double *weights[4]; int taps; } opdi_lower_taps;
/* Computes the weights of four adjacent elements for cubic interpolation (A = -0.75) at a position that is `t` after
   the second element. */
static void opdi_lower_cubic(double t, double weights[4]) {
    const double a = -0.75, x[4] = {t + 1, t, 1 - t, 2 - t};
    for (int k = 0; k < 4; k++) {
        weights[k] = k == 0 || k == 3 ? ((a * x[k] - 5 * a) * x[k] + 8 * a) * x[k] - 4 * a
            : ((a + 2) * x[k] - (a + 3)) * x[k] * x[k] + 1;
    }
}
/* Fills all->places and all->weights for a dim with `in` elements and `out` results.  all->taps is 1 (nearest; if
   `exact` is true, the element whose centre is nearest), 2 (linear) or 4 (cubic).  `factor` is the reciprocal of the
   scale that the user gave, or 0.  `corners` is the argument align_corners.  If `wide` is true, computes in double.
   Returns 0, or -1 and sets an error. */
static int opdi_lower_taps_of(opdi_lower_taps *all, int64_t in, int64_t out, double factor, bool corners, bool exact,
                              bool wide) {
    const double scale = opdi_lower_rounded(corners ? out > 1 ? (double)(in - 1) / (double)(out - 1) : 0
        : factor > 0 ? factor : (double)in / (double)out, wide);
    all->count = out;
    for (int k = 0; k < all->taps; k++) {
        all->places[k] = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)out * sizeof(int64_t));
        all->weights[k] = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)out * sizeof(double));
        if (!all->places[k] || !all->weights[k]) { return -1; }
    }
    for (int64_t i = 0; i < out; i++) {
        const double half = all->taps > 1 || exact ? 0.5 : 0;
        const double middle = opdi_lower_rounded(scale * ((double)i + half), wide);
        double place = corners ? opdi_lower_rounded(scale * (double)i, wide)
            : all->taps > 1 ? opdi_lower_rounded(middle - 0.5, wide) : middle, weights[4] = {1, 0, 0, 0};
        place = all->taps < 4 && place < 0 ? 0 : place;
        int64_t first = (int64_t)floor(place);
        first = all->taps < 4 ? OPDI_MIN(first, in - 1) : first;
        const double t = opdi_lower_rounded(OPDI_MIN(place - (double)first, 1.0), wide);
        if (all->taps == 4) { opdi_lower_cubic(t, weights); }
        if (all->taps == 2) {
            weights[0] = 1 - t;
            weights[1] = t;
        }
        for (int k = 0; k < all->taps; k++) {
            const int64_t at = first + k - (all->taps == 4);
            all->places[k][i] = at < 0 ? 0 : OPDI_MIN(at, in - 1);
            all->weights[k][i] = weights[k];
        }
    }
    return 0;
}
/* Lowers upsample_nearest1d and 3d, linear1d, trilinear3d and bicubic2d, one dim after the other.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_lower_upsample_dims(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool nearest = strstr(name, "nearest") != NULL, cubic = strstr(name, "cubic") != NULL;
    const bool corners = !nearest && opd_arg_bool(call, 2);
    opd_tensor *out = opd_arg_tensor(call, 0);
    if ((!nearest && opdi_lower_not_bytes(out)) || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(out));
    out = nearest ? out : opd_to_dtype(out, wide);
    for (int dim = opd_ndim(result) - 1; dim > 1 && out; dim--) {
        const opd_value given = opd_arg_value(call, (nearest ? 2 : 3) + dim - 2);
        opdi_lower_taps taps;
        opd_tensor *sum = NULL;
        memset(&taps, 0, sizeof taps);
        taps.taps = nearest ? 1 : cubic ? 4 : 2;
        if (opdi_lower_taps_of(&taps, opd_sizes(out)[dim], opd_sizes(result)[dim],
                               given.tag == OPD_TAG_FLOAT && given.u.d > 0 ? 1 / given.u.d : 0, corners,
                               strstr(name, "exact") != NULL, wide == OPD_FLOAT64)) { return -1; }
        for (int k = 0; k < taps.taps && opd_ok(); k++) {
            opd_tensor *part = opdi_lower_rows_at(out, dim, taps.places[k], taps.count);
            if (!nearest && part) {
                opd_tensor *const weights = opdi_lower_known(taps.weights[k], taps.count, dim, opd_ndim(out), wide);
                part = weights ? opd_mul(part, weights) : NULL;
            }
            sum = sum && part ? opd_add(sum, part) : part;
        }
        out = opd_ok() ? sum : NULL;
    }
    return opdi_lower_return(call, 0, out);
}
/* Returns the windows of an adaptive pool over `dim`.  In the result, `dim` counts the `out` windows, and a new dim
   after it counts the `most` elements of a window.  Shorter windows repeat their last element.  Sets lengths[i] to the
   length of window i.  `places` is scratch memory.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_lower_adaptive_windows(opd_tensor *self, int dim, int64_t out, double *lengths, int64_t *places,
                                               int64_t most) {
    const int64_t in = opd_sizes(self)[dim];
    for (int64_t i = 0; i < out; i++) {
        const int64_t first = i * in / out, end = ((i + 1) * in + out - 1) / out;
        lengths[i] = (double)(end - first);
        for (int64_t k = 0; k < most; k++) { places[i * most + k] = OPDI_MIN(first + k, end - 1); }
    }
    opd_tensor *const rows = opdi_lower_rows_at(self, dim, places, out * most);
    const int64_t sizes[2] = {out, most};
    return rows ? opd_unflatten(rows, dim, opd_ints_of(sizes, 2)) : NULL;
}
/* Returns the length of the longest window of an adaptive pool from `in` elements to `out`. */
static int64_t opdi_lower_adaptive_most(int64_t in, int64_t out) {
    int64_t most = 0;
    for (int64_t i = 0; i < out; i++) { most = OPDI_MAX(most, ((i + 1) * in + out - 1) / out - i * in / out); }
    return most;
}
/* Lowers _adaptive_avg_pool2d and 3d if the windows have different lengths: computes means along the last `count` dims,
   one dim after another.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_adaptive_means(opd_call *call, int count) {
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *out = opd_arg_tensor(call, 0);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(out));
    out = opd_to_dtype(out, wide);
    for (int i = 0; i < count && out; i++) {
        const int dim = opd_ndim(result) - count + i;
        const int64_t in = opd_sizes(out)[dim], size = opd_sizes(result)[dim];
        const int64_t most = opdi_lower_adaptive_most(in, size);
        int64_t *const places = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)(size * most + 1) * 8);
        double *const numbers = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)(size * (most + 1) + 1) * 8);
        if (!places || !numbers) { return -1; }
        opd_tensor *windows = opdi_lower_adaptive_windows(out, dim, size, numbers, places, most);
        opd_tensor *lengths = opdi_lower_known(numbers, size, dim, opd_ndim(out), wide);
        for (int64_t k = 0; k < size * most; k++) { numbers[size + k] = (double)(k % most) < numbers[k / most]; }
        opd_tensor *kept = opdi_lower_known(numbers + size, size * most, dim, opd_ndim(out), OPD_BOOL);
        const int64_t sizes[2] = {size, most}, inside = dim + 1;
        kept = kept ? opd_unflatten(kept, dim, opd_ints_of(sizes, 2)) : NULL;
        windows = windows && kept ? opd_where_self(kept, windows, opd_zeros_like(windows)) : NULL;
        out = windows && lengths ? opd_div(opd_sum_dim(windows, opd_ints_of(&inside, 1), false), lengths) : NULL;
    }
    return opdi_lower_return(call, 0, out);
}
OPDI_INTERNAL int opdi_lower_adaptive_3d(opd_call *call) {
    return opd_results_from_fake(call) ? -1 : opdi_lower_adaptive_means(call, 3);
}
/* Sets pair[0] to the largest values along `dim`, and pair[1] to their indices, as pooling operators choose them.
   Returns 0, or -1 and sets an error. */
static int opdi_lower_pooled_rows(opd_tensor *pair[2], opd_tensor *self, int dim) {
    for (int i = 0; i < 2; i++) {
        opd_tensor *const kept = opdi_lower_reduced(self, (uint64_t)1 << dim,
                                                    i ? OPDI_REDUCTION_POOLED : OPDI_REDUCTION_MAX,
                                                    i ? OPD_INT64 : opd_dtype(self));
        if (!kept || !(pair[i] = opd_squeeze_dim(kept, dim))) { return -1; }
    }
    return 0;
}
/* Lowers adaptive_max_pool2d, which returns values, and their indices in the image. */
OPDI_INTERNAL int opdi_lower_adaptive_max(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(self), first = ndim - 2;
    const int64_t *const in = opd_sizes(self) + first, *const out = opd_sizes(result) + first;
    int64_t most[2], *places[2];
    double *lengths = NULL;
    opd_tensor *windows = self, *at[2], *pair[2];
    if (!opd_numel(result)) { return 0; }
    for (int i = 1; i >= 0; i--) {                /* columns first, because the dim of the rows then keeps its number */
        most[i] = opdi_lower_adaptive_most(in[i], out[i]);
        places[i] = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)(out[i] * most[i]) * 8);
        lengths = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)out[i] * 8);
        if (!places[i] || !lengths || !windows) { return -1; }
        windows = opdi_lower_adaptive_windows(windows, first + i, out[i], lengths, places[i], most[i]);
    }
    windows = windows ? opd_flatten(opd_movedim(windows, first + 1, first + 2), first + 2, first + 3) : NULL;
    if (!windows || opdi_lower_pooled_rows(pair, windows, first + 2) ||
        opdi_lower_return(call, 0, pair[0])) { return -1; }
    for (int i = 0; i < 2; i++) {                 /* converts the index in the window to an index in the image */
        opd_tensor *const inside = i ? opd_remainder_Scalar(pair[1], opd_value_int(most[1]))
            : opd_div_Scalar_mode(pair[1], opd_value_int(most[1]), "floor");
        const int64_t step = most[i];
        opd_tensor *begin = inside ? opdi_lower_counts(&out[i], 1, &step, 0) : NULL;
        if (begin && i == 0) { begin = opd_unsqueeze(begin, 1); }
        const int64_t size = out[i] * most[i];
        opd_tensor *const table = begin ? opd_empty(opd_ints_of(&size, 1), OPD_INT64) : NULL;
        if (!table) { return -1; }
        memcpy(opd_data_i64(table), places[i], (size_t)size * 8);
        opd_tensor *const known = opd_to_device(table, opd_device_make(OPD_LAZY, 0), OPD_INT64);
        opd_tensor *const index = known ? opd_add(inside, begin) : NULL;
        at[i] = index ? opd_reshape(opd_index_select(known, 0, opd_flatten(index, 0, -1)),
                                    opd_ints_of(opd_sizes(index), opd_ndim(index))) : NULL;
        if (!at[i]) { return -1; }
    }
    return opdi_lower_return(call, 1, opd_add(opd_mul_Scalar(at[0], opd_value_int(in[1])), at[1]));
}
/* The tensors for positions along one dim of an image.  Each position reads `count` rows or columns of the image: at[k]
   are their indices, weights[k] their weights, and there[k] tells whether they are inside of the image.  `lost` is NaN
   for positions that are not finite, else 0; if `count` is 1 or 2, padding has moved the positions into the image
   before. */
typedef struct opdi_lower_lines { int count; opd_tensor *at[4], *weights[4], *there[4], *lost; } opdi_lower_lines;
/* Moves positions outside of [0, size) into this range: by reflection if `reflects` is true, else to the nearest
   border.  `corners` is the argument align_corners.  Returns the new positions, or NULL and sets an error. */
static opd_tensor *opdi_lower_inside(opd_tensor *at, int64_t size, bool reflects, bool corners) {
    const double low = corners ? 0 : -0.5, span = (double)(corners ? size - 1 : size);
    if (reflects && span > 0) {
        opd_tensor *const off = opd_abs(opd_sub_Scalar(at, opd_value_double(low)));
        opd_tensor *const times = off ? opd_floor(opd_div_Scalar(off, opd_value_double(span))) : NULL;
        opd_tensor *const rest = times ? opd_fmod_Scalar(off, opd_value_double(span)) : NULL;
        opd_tensor *const odd = rest ? opd_gt_Scalar(opd_fmod_Scalar(times, opd_value_int(2)), opd_value_int(0)) : NULL;
        at = odd ? opd_where_self(odd, opd_add_Scalar(opd_neg(rest), opd_value_double(span)), rest) : NULL;
        at = at ? opd_add_Scalar(at, opd_value_double(low)) : NULL;
    } else if (reflects) { at = opd_zeros_like(at); }
    at = at ? opd_where_self(opd_gt_Scalar(at, opd_value_int(0)), at, opd_zeros_like(at)) : NULL;
    return at ? opd_clamp_max(at, opd_value_int(size - 1)) : NULL;
}
/* Fills `lines` for the positions `at`, coordinates from -1 to 1 along a dim with `size` elements.  `outside` is the
   padding mode, `corners` the argument align_corners.  Returns 0, or -1 and sets an error. */
static int opdi_lower_lines_of(opdi_lower_lines *lines, opd_tensor *at, int64_t size, int64_t outside, bool corners) {
    at = opd_add_Scalar(at, opd_value_int(1));
    at = corners ? opd_mul_Scalar(opd_div_Scalar(at, opd_value_int(2)), opd_value_int(size - 1))
        : opd_div_Scalar(opd_sub_Scalar(opd_mul_Scalar(at, opd_value_int(size)), opd_value_int(1)), opd_value_int(2));
    if (at && lines->count < 4 && outside) { at = opdi_lower_inside(at, size, outside == 2, corners); }
    if (!at) { return -1; }
    lines->lost = opd_sub(at, at);
    opd_tensor *const known = opd_lt_Scalar(opd_abs(at), opd_value_double(1e9));
    at = known ? opd_where_self(known, at, opd_full_like(at, opd_value_int(-100))) : NULL;
    opd_tensor *const first = !at ? NULL : lines->count == 1 ? opd_round(at) : opd_floor(at);
    opd_tensor *const t = first ? opd_sub(at, first) : NULL;
    for (int k = 0; k < lines->count && t && opd_ok(); k++) {
        opd_tensor *line = opd_add_Scalar(first, opd_value_int(k - (lines->count == 4))), *w = t;
        if (lines->count == 2) { w = k ? t : opd_add_Scalar(opd_neg(t), opd_value_int(1)); }
        if (lines->count == 4) {                  /* cubic weights (A = -3/4), for the distance to row or column k */
            const double a = -0.75;
            const bool outer = k == 0 || k == 3;
            const double c[4] = {outer ? a : a + 2, outer ? -5 * a : -(a + 3), outer ? 8 * a : 0, outer ? -4 * a : 1};
            opd_tensor *const away = k < 2 ? opd_add_Scalar(t, opd_value_int(1 - k))
                : opd_add_Scalar(opd_neg(t), opd_value_int(k - 1));
            w = opd_add_Scalar(opd_mul_Scalar(away, opd_value_double(c[0])), opd_value_double(c[1]));
            w = opd_add_Scalar(opd_mul(w, away), opd_value_double(c[2]));
            w = opd_add_Scalar(opd_mul(w, away), opd_value_double(c[3]));
            if (outside) { line = opdi_lower_inside(line, size, outside == 2, corners); }
        }
        lines->there[k] = opd_logical_and(opd_ge_Scalar(line, opd_value_int(0)),
                                          opd_lt_Scalar(line, opd_value_int(size)));
        lines->weights[k] = w;
        line = opd_clamp_max(opd_clamp_min(line, opd_value_int(0)), opd_value_int(size - 1));
        lines->at[k] = line ? opd_to_dtype(line, OPD_INT64) : NULL;
    }
    return t && opd_ok() ? 0 : -1;
}
/* Lowers grid_sampler_2d.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_grid(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int64_t how = opd_arg_int(call, 2), outside = opd_arg_int(call, 3);
    opdi_lower_lines lines[2];
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int64_t *const in = opd_sizes(self), *const out = opd_sizes(result);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    opd_tensor *const grid = opd_to_dtype(opd_arg_tensor(call, 1), wide);
    const int64_t flat[3] = {in[0], in[1], in[2] * in[3]}, row[3] = {out[0], 1, out[2] * out[3]};
    const int64_t rows[3] = {out[0], out[1], out[2] * out[3]};
    opd_tensor *const image = opd_reshape(self, opd_ints_of(flat, 3));
    opd_tensor *sum = NULL;
    if (!grid || !image) { return -1; }
    for (int k = 0; k < 2; k++) {
        memset(&lines[k], 0, sizeof lines[k]);
        lines[k].count = how == 1 ? 1 : how == 0 ? 2 : 4;
        if (opdi_lower_lines_of(&lines[k], opd_select(grid, 3, 1 - k), in[2 + k], outside, opd_arg_bool(call, 4))) {
            return -1;
        }
    }
    for (int k = 0; k < lines[0].count * lines[1].count && opd_ok(); k++) {
        const int i = k / lines[0].count, j = k % lines[0].count;
        opd_tensor *at = opd_add(opd_mul_Scalar(lines[0].at[i], opd_value_int(in[3])), lines[1].at[j]);
        at = at ? opd_expand(opd_reshape(at, opd_ints_of(row, 3)), opd_ints_of(rows, 3)) : NULL;
        opd_tensor *part = at ? opd_view(opd_to_dtype(opd_gather(image, 2, at), wide), opd_ints_of(out, 4)) : NULL;
        opd_tensor *const there = opd_unsqueeze(opd_logical_and(lines[0].there[i], lines[1].there[j]), 1);
        part = part && there ? opd_where_self(there, part, opd_zeros_like(part)) : NULL;
        if (part && how != 1) {
            part = opd_mul(part, opd_unsqueeze(opd_mul(lines[0].weights[i], lines[1].weights[j]), 1));
        }
        sum = sum && part ? opd_add(sum, part) : part;
    }
    if (sum && how != 1) { sum = opd_add(sum, opd_unsqueeze(opd_add(lines[0].lost, lines[1].lost), 1)); }
    return opdi_lower_return(call, 0, sum);
}
/* Lowers im2col, which reads the windows of the padded image without copying them first.  Lowers col2im, which adds the
   windows to the image, one position in the window after another.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_columns(opd_call *call) {
    const bool back = strstr(opd_op_name(opd_call_operator(call)), "col2im") != NULL;
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints given[4];                            /* window, dilation, padding, steps */
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], all[4][2], out[2];
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const image = back ? result : self;
    const int ndim = opd_ndim(image), first = ndim - 2;
    for (int k = 0; k < 4; k++) {
        given[k] = opd_arg_ints(call, k + 1 + back);
        for (int i = 0; i < 2; i++) { all[k][i] = given[k].data[given[k].n == 1 ? 0 : i]; }
    }
    for (int i = 0; i < 2; i++) {
        out[i] = (opd_sizes(image)[first + i] + 2 * all[2][i] - all[1][i] * (all[0][i] - 1) - 1) / all[3][i] + 1;
    }
    for (int i = 0; i < first; i++) { sizes[i] = opd_sizes(image)[i]; }
    for (int i = 0; i < 2; i++) {
        sizes[first + i] = opd_sizes(image)[first + i] + 2 * all[2][i];
    }
    opd_tensor *const padded = back ? opdi_lower_empty(sizes, ndim, opdi_lower_wide(opd_dtype(self)))
        : opdi_lower_padded(self, first, all[2], all[2], NULL, opd_value_int(0));
    if (!padded || (back && !opd_fill_(padded, opd_value_int(0)))) { return -1; }
    for (int i = 0; i < first; i++) { strides[i] = opd_strides(padded)[i]; }
    for (int i = 0; i < 2; i++) {
        sizes[first + i] = all[0][i];
        sizes[ndim + i] = out[i];
        strides[first + i] = opd_strides(padded)[first + i] * all[1][i];
        strides[ndim + i] = opd_strides(padded)[first + i] * all[3][i];
    }
    opd_tensor *windows = opd_as_strided_full(padded, opd_ints_of(sizes, ndim + 2), opd_ints_of(strides, ndim + 2),
                                              opd_storage_offset(padded));
    if (!windows) { return -1; }
    if (!back) {
        return opdi_lower_return(call, 0, opd_reshape(opd_contiguous(windows), opd_ints_of(opd_sizes(result),
                                                                                           opd_ndim(result))));
    }
    self = opd_reshape(opd_to_dtype(self, opd_dtype(padded)), opd_ints_of(sizes, ndim + 2));
    for (int64_t k = 0; k < all[0][0] * all[0][1] && self; k++) {
        const int64_t i = k / all[0][1], j = k % all[0][1];
        opd_tensor *const to = opd_select(opd_select(windows, first, i), first, j);
        if (!to || !opd_add_(to, opd_select(opd_select(self, first, i), first, j))) { return -1; }
    }
    for (int i = 0; i < 2 && self; i++) {
        windows = opd_narrow(i ? windows : padded, first + i, all[2][i], opd_sizes(image)[first + i]);
    }
    return self ? opdi_lower_return(call, 0, windows) : -1;
}
/* Lowers count_nonzero, nansum and aminmax.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_counted(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value dims = opd_call_nargs(call) > 1 ? opd_arg_value(call, 1) : opd_value_none();
    const int64_t one = dims.tag == OPD_TAG_INT ? dims.u.i : 0;
    const uint64_t mask = opdi_lower_mask(dims.tag == OPD_TAG_INTS ? opd_arg_ints(call, 1)
        : opd_ints_of(&one, dims.tag == OPD_TAG_INT), opd_ndim(self));
    if (opd_results_from_fake(call)) { return -1; }
    const opd_scalar_type dtype = opd_dtype(opd_call_rets(call)[0].u.t);
    if (strstr(name, "aminmax")) {
        return opdi_lower_return_as(call, 0, opdi_lower_reduced(self, mask, OPDI_REDUCTION_MIN, dtype)) ||
            opdi_lower_return_as(call, 1, opdi_lower_reduced(self, mask, OPDI_REDUCTION_MAX, dtype)) ? -1 : 0;
    }
    self = strstr(name, "nansum") ? opd_masked_fill_Scalar(self, opd_isnan(self), opd_value_int(0))
        : opd_ne_Scalar(self, opd_value_int(0));
    const opd_scalar_type wide = opdi_lower_wide(dtype);
    self = self ? opd_to_dtype(self, wide) : NULL;
    return self ? opdi_lower_return_as(call, 0, opdi_lower_reduced(self, mask, OPDI_REDUCTION_SUM, wide)) : -1;
}
/* Lowers kthvalue and median.dim, which return the element at one index of the sorted order, and its index in self.  A
   median is NaN if any element is NaN. */
OPDI_INTERNAL int opdi_lower_kth(opd_call *call) {
    const bool median = strstr(opd_op_name(opd_call_operator(call)), "median") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int64_t given = opd_arg_int(call, median ? 1 : 2);
    const int ndim = opd_ndim(self), dim = (int)(given < 0 ? given + ndim : given);
    if (!ndim || !opd_numel(self)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "sorting an empty tensor cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    const int64_t k = median ? (opd_sizes(self)[dim] - 1) / 2 : opd_arg_int(call, 1) - 1, one = 1;
    opd_tensor *const order = opdi_lower_order(self, dim, opd_sizes(self)[dim], false);
    opd_tensor *at = order ? opd_narrow(order, dim, k, one) : NULL;
    if (at && median && opd_dtype_is_floating(opd_dtype(self))) {
        opd_tensor *const nan = opd_to_dtype(opd_isnan(self), OPD_INT64);
        opd_tensor *const first = nan ? opd_argmax(nan, opd_value_int(dim), true) : NULL;
        at = first ? opd_where_self(opd_to_dtype(opd_gather(nan, dim, first), OPD_BOOL), first, at) : NULL;
    }
    return at && opdi_lower_return_as(call, 0, opd_gather(self, dim, at)) == 0 ? opdi_lower_return_as(call, 1, at) : -1;
}

OPDI_INTERNAL int opdi_lower_logsumexp(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    const uint64_t mask = opdi_lower_mask(opd_arg_ints(call, 1), opd_ndim(self));
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(opd_call_rets(call)[0].u.t));
    if (!opd_numel(self)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a logsumexp over an empty tensor cannot be compiled");
    }
    self = opd_to_dtype(self, wide);
    opd_tensor *most = self ? opdi_lower_reduced(self, mask, OPDI_REDUCTION_MAX, wide) : NULL;
    most = most ? opd_masked_fill_Scalar(most, opd_isinf(most), opd_value_int(0)) : NULL;
    opd_tensor *const exps = most ? opd_exp(opd_sub(self, most)) : NULL;
    opd_tensor *const sum = exps ? opdi_lower_reduced(exps, mask, OPDI_REDUCTION_SUM, wide) : NULL;
    return opdi_lower_return_as(call, 0, sum ? opd_add(opd_log(sum), most) : NULL);
}
/* Lowers max and min over all elements.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_most(opd_call *call) {
    const bool most = strstr(opd_op_name(opd_call_operator(call)), "max") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (!opd_numel(self)) { return opd_fail(OPD_ERROR_ARGUMENT, "the maximum of an empty tensor cannot be compiled"); }
    return opd_results_from_fake(call) ||
        opdi_lower_reduction(call, 0, opdi_lower_mask(opd_ints_of(NULL, 0), opd_ndim(self)),
                             most ? OPDI_REDUCTION_MAX : OPDI_REDUCTION_MIN) ? -1 : 0;
}
/* Lowers mv, dot and addmv to products with matrices of one column.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_mv(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool more = strstr(name, "addmv") != NULL, dot = strstr(name, "dot") != NULL;
    opd_tensor *const first = opd_arg_tensor(call, more), *const second = opd_arg_tensor(call, more + 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const column = opd_unsqueeze(second, 1), *const rows = dot ? opd_unsqueeze(first, 0) : first;
    const bool same = column && rows && !dot && !more && opdi_lower_chains(rows, opd_size(rows, -1));
    opd_tensor *out = same ? opdi_lower_product_same(NULL, rows, column)
        : column && rows ? opdi_lower_product(rows, column) : NULL;
    out = out ? opd_view(out, opd_ints_of(opd_sizes(result), opd_ndim(result))) : NULL;
    if (out && more) {
        const opd_value beta = opd_arg_value(call, 3);
        const bool none = (beta.tag == OPD_TAG_INT && beta.u.i == 0) || (beta.tag == OPD_TAG_FLOAT && beta.u.d == 0);
        out = opdi_lower_scaled(out, opd_arg_value(call, 4));
        opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(result)));
        if (!none && out) { out = opd_add(out, opdi_lower_scaled(self, beta)); }
    }
    return opdi_lower_return(call, 0, out);
}
OPDI_INTERNAL int opdi_lower_trace(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const diagonal = opd_diagonal(self);
    return diagonal ? opdi_lower_return_as(call, 0, opdi_lower_reduced(diagonal, 1, OPDI_REDUCTION_SUM,
        opdi_lower_wide(opd_dtype(opd_call_rets(call)[0].u.t)))) : -1;
}
/* Lowers reflection_pad and replication_pad of one to three dims.  For each dim, reads rows at indices that are
   computed from the index of the loop.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_pad_rows(opd_call *call) {
    const bool reflects = strstr(opd_op_name(opd_call_operator(call)), "reflection") != NULL;
    const opd_ints pad = opd_arg_ints(call, 1);
    const int64_t one = 1;
    opd_tensor *out = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < (int)pad.n / 2 && out; i++) {
        const int dim = opd_ndim(out) - 1 - i;
        const int64_t last = opd_sizes(out)[dim] - 1, size = last + 1 + pad.data[2 * i] + pad.data[2 * i + 1];
        if (!pad.data[2 * i] && !pad.data[2 * i + 1]) { continue; }
        opd_tensor *at = opdi_lower_counts(&size, 1, &one, -pad.data[2 * i]);
        if (at && reflects) {
            at = opd_abs(opd_sub_Scalar(opd_abs(at), opd_value_int(last)));
            at = opd_add_Scalar(opd_neg(at), opd_value_int(last));
        } else if (at) { at = opd_clamp_max(opd_clamp_min(at, opd_value_int(0)), opd_value_int(last)); }
        out = at ? opd_index_select(out, dim, at) : NULL;
    }
    return opdi_lower_return(call, 0, out);
}
/* Lowers searchsorted and bucketize: counts the elements of the sorted row that are smaller or, if right=True, not
   larger than a value.  NaN counts as larger than all numbers.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_searchsorted(opd_call *call) {
    const bool buckets = strstr(opd_op_name(opd_call_operator(call)), "bucketize") != NULL;
    opd_tensor *row = opd_arg_tensor(call, buckets), *self = opd_arg_tensor(call, !buckets);
    const bool asked = opd_arg_bool(call, 3);
    const int64_t last = -1;
    if (!buckets && (opd_arg_value(call, 4).tag == OPD_TAG_STR || opd_arg_tensor(call, 5))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the arguments side and sorter cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    self = opd_unsqueeze(self, -1);
    row = opd_ndim(row) > 1 ? opd_unsqueeze(row, -2) : row;
    opd_tensor *const beyond = !self || !row ? NULL : asked ? opd_gt(row, self) : opd_ge(row, self);
    opd_tensor *const sum = beyond ? opd_sum_dim(opd_logical_not(beyond), opd_ints_of(&last, 1), false) : NULL;
    return opdi_lower_return(call, 0, sum);
}
/* Returns the norm of order `order` over the dims in `mask`, which have size 1 in the result.  The powers and their sum
   are computed in the dtype of self.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_lower_norm_of(opd_tensor *self, double order, uint64_t mask) {
    const bool most = order > DBL_MAX, least = order < -DBL_MAX;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    if (order == 0) {
        self = opd_to_dtype(opd_ne_Scalar(self, opd_value_int(0)), wide);
    } else { self = order == 2 ? opd_mul(self, self) : opd_abs(self); }
    if (self && order != 0 && order != 1 && order != 2 && !most && !least) {
        self = opd_pow_Tensor_Scalar(self, opd_value_double(order));
    }
    opd_tensor *const out = self ? opdi_lower_reduced(self, mask, most ? OPDI_REDUCTION_MAX : least ? OPDI_REDUCTION_MIN
        : OPDI_REDUCTION_SUM, wide) : NULL;
    if (!out || order == 0 || order == 1 || most || least) { return out; }
    return order == 2 ? opd_sqrt(out) : opd_pow_Tensor_Scalar(out, opd_value_double(1 / order));
}
/* Lowers linalg_vector_norm and the overloads of norm.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_norm(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const opd_value given = opd_arg_value(call, 1);
    const double order = given.tag == OPD_TAG_INT ? (double)given.u.i : given.tag == OPD_TAG_FLOAT ? given.u.d : 2;
    const bool dims = strstr(name, "vector") || strstr(name, "_dim");
    const opd_value list = dims ? opd_arg_value(call, 2) : opd_value_none();
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (!opd_numel(self) && (order < 0 || order > DBL_MAX)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a norm of order %g of an empty tensor cannot be compiled", order);
    }
    if (opd_results_from_fake(call)) { return -1; }
    const uint64_t mask = opdi_lower_mask(list.tag == OPD_TAG_INTS ? opd_arg_ints(call, 2) : opd_ints_of(NULL, 0),
                                          opd_ndim(self));
    opd_tensor *const x = opd_to_dtype(self, OPD_FLOAT64);                /* as the kernel adds */
    return x ? opdi_lower_return_as(call, 0, opdi_lower_norm_of(x, order, mask)) : -1;
}
/* Lowers _cdist_forward and _euclidean_dist: norms of the differences of all pairs of rows.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_lower_cdist(opd_call *call) {
    opd_tensor *const first = opd_arg_tensor(call, 0), *const second = opd_arg_tensor(call, 1);
    const double order = opd_call_nargs(call) > 2 ? opd_arg_double(call, 2) : 2;
    if (opd_results_from_fake(call)) { return -1; }
    if (!opd_numel(first) || !opd_numel(second)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "distances of an empty tensor cannot be compiled");
    }
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(first));
    opd_tensor *const less = opd_sub(opd_unsqueeze(opd_to_dtype(first, wide), -2),
                                     opd_unsqueeze(opd_to_dtype(second, wide), -3));
    const uint64_t last = less ? (uint64_t)1 << (opd_ndim(less) - 1) : 0;
    return less ? opdi_lower_return_as(call, 0, opdi_lower_norm_of(less, order, last)) : -1;
}

/* Lowers take: reads elements of self at indices into the flattened tensor.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_take_flat(opd_call *call) {
    opd_tensor *const flat = opd_flatten(opd_arg_tensor(call, 0), 0, -1), *const index = opd_arg_tensor(call, 1);
    int by[OPD_MAX_DIMS], none = -1;
    if (!flat || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    for (int i = 0; i < opd_ndim(result); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), opd_ndim(result), 0);
    opdi_expr *const load = nest ? opdi_expr_load(flat, &none) : NULL;
    if (!load || opdi_lower_index_by(load, opdi_expr_load(index, by), opd_strides(flat)[0], opd_numel(flat)) ||
        opdi_nest_out(nest, result, by)) { return -1; }
    load->wraps = true;
    return opdi_nest_add(nest, load);
}
/* Lowers put: writes elements of self at indices into the flattened tensor, or adds to them.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_lower_put_flat(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const source = opd_flatten(opd_arg_tensor(call, 2), 0, -1);
    opd_tensor *const index = opd_flatten(opd_arg_tensor(call, 1), 0, -1);
    const bool adds = opd_arg_bool(call, 3);
    int dims[OPD_MAX_DIMS] = {-1};
    if (adds && opd_dtype(self) == OPD_BOOL) {
        return opd_fail(OPD_ERROR_ARGUMENT, "sums of bools cannot be compiled");
    }
    if (!source || !index || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const flat = opd_clone(opd_flatten(opd_to_dtype(self, adds ? opdi_lower_wide(opd_dtype(self))
        : opd_dtype(self)), 0, -1));
    opdi_expr *const place = flat ? opdi_lower_row_place(flat, 0, index, true, dims) : NULL;
    if (!place) { return -1; }
    place->wraps = true;
    if (opd_numel(index) && (adds ? opdi_lower_put_accumulate(flat, source, dims, place, OPD_FORMULA_add)
                             : opdi_lower_put(flat, source, dims, place))) { return -1; }
    return opdi_lower_return_as(call, 0, flat);
}
/* Lowers _softmax_backward_data: grad * out - out * sum(grad * out), and _log_softmax_backward_data: grad - exp(out) *
   sum(grad).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_softmax_back(opd_call *call) {
    const bool logs = strstr(opd_op_name(opd_call_operator(call)), "log") != NULL;
    const int64_t dim = opd_arg_int(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(opd_arg_tensor(call, 0)));
    opd_tensor *grad = opd_to_dtype(opd_arg_tensor(call, 0), wide), *out = opd_to_dtype(opd_arg_tensor(call, 1), wide);
    if (!grad || !out) { return -1; }
    out = logs ? opd_exp(out) : out;
    grad = logs ? grad : opd_mul(grad, out);
    if (!grad || !out) { return -1; }
    opd_tensor *const sum = opdi_lower_reduced(grad, opdi_lower_mask(opd_ints_of(&dim, 1), opd_ndim(grad)),
                                               OPDI_REDUCTION_SUM, wide);
    return sum ? opdi_lower_return(call, 0, opd_sub(grad, opd_mul(out, sum))) : -1;
}
/* For each target of a loss: `at` is its class (0 if the target is ignored), `counts` is false if the target is
   ignored, and `weights` is its weight.  `dim` is the dim of the classes. */
typedef struct opdi_lower_nll { opd_tensor *at, *counts, *weights; int dim; } opdi_lower_nll;
static int opdi_lower_nll_of(opdi_lower_nll *all, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                             int64_t ignored) {
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    all->dim = opd_ndim(self) > 1;
    all->counts = opd_ne_Scalar(target, opd_value_int(ignored));
    all->at = all->counts ? opd_where_self(all->counts, target, opd_zeros_like(target)) : NULL;
    all->at = all->at ? opd_to_dtype(all->at, OPD_INT64) : NULL;
    if (!all->at) { return -1; }
    all->weights = opd_to_dtype(all->counts, wide);
    if (weight) {
        opd_tensor *const of = opd_index_select(opd_to_dtype(weight, wide), 0, opd_flatten(all->at, 0, -1));
        all->weights = of ? opd_where_self(all->counts, opd_view(of, opd_ints_of(opd_sizes(target), opd_ndim(target))),
                                           opd_zeros_like(all->weights)) : NULL;
    }
    all->at = opd_unsqueeze(all->at, all->dim);
    return all->weights && all->at ? 0 : -1;
}
/* Lowers nll_loss_forward and nll_loss2d_forward, which return the loss, and the sum of the weights. */
OPDI_INTERNAL int opdi_lower_nll_forward(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const target = opd_arg_tensor(call, 1);
    const int64_t reduction = opd_arg_int(call, 3);
    const uint64_t everything = opdi_lower_mask(opd_ints_of(NULL, 0), opd_ndim(target));
    opdi_lower_nll all;
    if (opd_results_from_fake(call) || opdi_lower_nll_of(&all, self, target, opd_arg_tensor(call, 2),
                                                         opd_arg_int(call, 4))) { return -1; }
    const opd_scalar_type wide = opd_dtype(all.weights);
    opd_tensor *picked = opd_squeeze_dim(opd_gather(self, all.dim, all.at), all.dim);
    picked = picked ? opd_mul(opd_neg(opd_to_dtype(picked, wide)), all.weights) : NULL;
    picked = picked ? opd_where_self(all.counts, picked, opd_zeros_like(picked)) : NULL;
    if (!picked) { return -1; }
    if (reduction == 0 && opd_ndim(self) > 1) {
        return opdi_lower_return(call, 0, picked) || !opd_fill_(opd_call_rets(call)[1].u.t, opd_value_int(0)) ? -1 : 0;
    }
    if (opdi_same_writes() && opd_dtype(self) == OPD_FLOAT32 && !opd_arg_tensor(call, 2)) {
        opd_tensor *const loss = opdi_lower_ordered(picked, everything, OPDI_ORDER_LINE);
        opd_tensor *const count = opdi_lower_ordered(all.weights, everything, OPDI_ORDER_LINE);
        opdi_lower_vouch();
        return count && opdi_lower_return_as(call, 0, reduction == 1 ? opd_div(loss, count) : loss) == 0
            ? opdi_lower_return_as(call, 1, count) : -1;
    }
    opd_tensor *sum = opdi_lower_reduced(picked, everything, OPDI_REDUCTION_SUM, wide);
    opd_tensor *const total = sum ? opdi_lower_reduced(all.weights, everything, OPDI_REDUCTION_SUM, wide) : NULL;
    sum = total && reduction == 1 ? opd_div(sum, total) : sum;
    return total && opdi_lower_return_as(call, 0, sum) == 0 ? opdi_lower_return_as(call, 1, total) : -1;
}
/* Lowers nll_loss_backward and nll_loss2d_backward: only the class of each target has a gradient.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_lower_nll_backward(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 1), *const target = opd_arg_tensor(call, 2);
    opdi_lower_nll all;
    if (opd_results_from_fake(call) || opdi_lower_nll_of(&all, self, target, opd_arg_tensor(call, 3),
                                                         opd_arg_int(call, 5))) { return -1; }
    const opd_scalar_type wide = opd_dtype(all.weights);
    opd_tensor *grad = opd_to_dtype(opd_arg_tensor(call, 0), wide), *const total = opd_arg_tensor(call, 6);
    const bool each = opd_arg_int(call, 4) == 0 && opd_ndim(self) > 1;
    grad = each ? grad : opd_view(grad, opd_ints_of(NULL, 0));
    if (opd_arg_int(call, 4) == 1) { grad = opd_div(grad, opd_view(opd_to_dtype(total, wide), opd_ints_of(NULL, 0))); }
    opd_tensor *values = grad ? opd_neg(opd_mul(grad, all.weights)) : NULL;
    values = values ? opd_where_self(all.counts, values, opd_zeros_like(values)) : NULL;
    opd_tensor *const zeros = values ? opd_zeros_like_full(self, opd_value_int(wide), opd_value_none(),
                                                           opd_value_none(), opd_value_none(), opd_value_none()) : NULL;
    return zeros ? opdi_lower_return(call, 0, opd_scatter(zeros, all.dim, all.at, opd_unsqueeze(values, all.dim)))
        : -1;
}
/* Lowers embedding_dense_backward: adds the rows of the gradient to the rows at their indices, except at the padding
   index.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_embedding_back(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *const index = opd_flatten(opd_arg_tensor(call, 1), 0, -1);
    const int64_t skip = opd_arg_int(call, 3), d = opd_sizes(grad)[opd_ndim(grad) - 1], rows = -1;
    const int64_t sizes[2] = {rows, d}, table[2] = {opd_arg_int(call, 2), d};
    int dims[OPD_MAX_DIMS];
    if (opd_arg_bool(call, 4) || !opd_numel(grad)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradients of an empty tensor, or with scale_grad_by_freq, cannot be "
                        "compiled");
    }
    if (!index || opd_results_from_fake(call)) { return -1; }
    grad = opd_to_dtype(opd_reshape(grad, opd_ints_of(sizes, 2)), opdi_lower_wide(opd_dtype(grad)));
    opd_tensor *const kept = opd_unsqueeze(opd_ne_Scalar(index, opd_value_int(skip)), 1);
    grad = grad && kept ? opd_where_self(kept, grad, opd_zeros_like(grad)) : NULL;
    opd_tensor *const acc = grad ? opd_new_zeros(grad, opd_ints_of(table, 2)) : NULL;
    if (!acc || opdi_lower_put_accumulate(acc, grad, dims, opdi_lower_row_place(acc, 0, index, true, dims),
                                          OPD_FORMULA_add)) { return -1; }
    return opdi_lower_return(call, 0, acc);
}
/* Lowers median over all elements.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_median(opd_call *call) {
    opd_tensor *const self = opd_flatten(opd_arg_tensor(call, 0), 0, -1);
    opd_tensor *pair[2];
    if (!self || !opd_numel(self)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the median of an empty tensor cannot be compiled");
    }
    if (opd_results_from_fake(call) || opd_median_dim(pair, self, 0, false)) { return -1; }
    return opdi_lower_return_as(call, 0, pair[0]);
}
/* Lowers a special function of one or two tensors to the pointwise formula of the same name, which is computed in
   double.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_special(opd_call *call) {
    const char *name = opd_op_name(opd_call_operator(call)) + 6;
    opdi_expr *in[2] = {NULL, NULL};
    int by[OPD_MAX_DIMS], formula = OPD_FORMULA_COUNT;
    const int count = opd_call_nargs(call);
    name += strncmp(name, "special_", 8) == 0 ? 8 : 0;
    name += strncmp(name, "modified_bessel_", 16) == 0 ? 16 : 0;
    while (formula < OPDI_FORMULAS && strcmp(opdi_formula_names[formula], name) != 0) { formula++; }
    if (formula == OPDI_FORMULAS) { return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled", name); }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    for (int i = 0; i < opd_ndim(result); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), opd_ndim(result), 0);
    if (!nest || opdi_nest_out(nest, result, by)) { return -1; }
    for (int i = 0; i < count; i++) {
        opd_tensor *const x = opd_expand(opd_arg_tensor(call, i), opd_ints_of(opd_sizes(result), opd_ndim(result)));
        in[i] = x ? opdi_expr_cast(opdi_expr_cast(opdi_expr_load(x, by), opd_dtype(result)), OPD_FLOAT64) : NULL;
        if (!in[i]) { return -1; }
    }
    opdi_expr *const value = opdi_expr_formula(OPD_FORMULA_copy, OPD_FLOAT64, in[0], in[1]);
    if (value) { value->formula = formula; }
    return opdi_nest_add(nest, opdi_expr_cast(value, opd_dtype(result)));
}
