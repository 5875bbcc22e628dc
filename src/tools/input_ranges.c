#include "tools.h"

//== the ranges of inputs ==============================================================================================
//
//  The observers of torch.ao.quantization, in float32 as there: MinMaxObserver and HistogramObserver.  A percentile is
//  taken from the same histogram.

/* Returns `old`, a histogram of [low, high], as a histogram of the larger range [to_low, to_high]: each part is divided
   into 16, which are counted where their middles are.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_range_widen(opd_tensor *old, float low, float high, float to_low, float to_high) {
    enum { FINE = 16, BINS = OPDI_RANGE_BINS };
    const float size = (high - low) / (BINS * FINE);
    opd_tensor *const counts = opd_div_Scalar(opd_repeat_interleave(old, FINE), opd_value_int(FINE));
    opd_tensor *middles = opd_linspace(opd_value_double(low), opd_value_double(high), BINS * FINE + 1, OPD_FLOAT32);
    middles = opd_add_Scalar(opd_narrow(middles, 0, 0, BINS * FINE), opd_value_double(0.5 * size));
    opd_tensor *const ends = opd_linspace(opd_value_double(to_low), opd_value_double(to_high), BINS + 1, OPD_FLOAT32);
    opd_tensor *at = opd_sub_Scalar(opd_bucketize_full(middles, ends, false, true), opd_value_int(1));
    at = opd_clamp(at, opd_value_int(0), opd_value_int(BINS - 1));
    return opd_bincount_full(at, counts, BINS);
}
/* Adds the numbers of x, a contiguous float32 tensor on the CPU from `low` to `high`, to the histogram; the range was
   [was_low, was_high] before.  Returns 0, or -1 and sets an error. */
static int opdi_range_count(opdi_input_range *range, opd_tensor *x, float was_low, float was_high) {
    const opd_value low = opd_value_double(range->low), high = opd_value_double(range->high);
    opd_tensor *counts = opd_histc_full(x, OPDI_RANGE_BINS, low, high), *old = range->counts;
    if (!counts) { return -1; }
    if (old && was_low <= was_high && was_low >= was_high && range->low < range->high) {
        opd_tensor *const one = opd_scalar_tensor(opd_value_double(was_low), OPD_FLOAT32);
        opd_tensor *const first_counts = opd_histc_full(one, OPDI_RANGE_BINS, low, high);
        old = opd_mul(first_counts, opd_sum(old));
    } else if (old && (was_low > range->low || was_high < range->high)) {
        old = opdi_range_widen(old, was_low, was_high, range->low, range->high);
    }
    if (range->counts) { counts = old ? opd_to_dtype(opd_add(counts, old), OPD_FLOAT32) : NULL; }
    if (!counts || !opd_ok()) { return -1; }
    opd_tensor *const before = range->counts;
    range->counts = opdi_keep(counts);
    if (before) { opdi_release(before); }
    return 0;
}
/* Adds the numbers of an input to a range.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_range_add(opdi_input_range *range, opd_tensor *input, bool histogram) {
    opd_tensor *ends[2];
    opd_tensor *const x = opd_contiguous(opd_to_device(input, opd_device_make(OPD_CPU, -1), OPD_FLOAT32));
    if (!x || !x->numel) { return x ? 0 : -1; }
    if (opd_aminmax(ends, x)) { return -1; }
    const float low = (float)opd_item_f64(ends[0]), high = (float)opd_item_f64(ends[1]);
    const float was_low = range->low, was_high = range->high;
    if (!(low - low == 0) || !(high - high == 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "an input has a number that is not finite");
    }
    range->low = range->seen ? OPDI_MIN(range->low, low) : low;
    range->high = range->seen ? OPDI_MAX(range->high, high) : high;
    range->seen = true;
    return histogram ? opdi_range_count(range, x, was_low, was_high) : 0;
}
/* Returns the density times the integral of x^2 from `from` to `to`. */
static float opdi_range_norm(float from, float to, float density) {
    return density * ((to * to * to - from * from * from) / 3);
}
/* Returns the square error of rounding the numbers of a histogram to 256 steps between the beginning of part `first`
   and the end of part `last`. */
static double opdi_range_error(const opdi_input_range *range, const float *counts, int64_t first, int64_t last) {
    const double width = ((double)range->high - (double)range->low) / OPDI_RANGE_BINS;
    const double step = width * (double)(last - first + 1) / 256;
    const float w = (float)width, s = (float)step, half = (float)(step / 2);
    double sum = 0;
    for (int64_t i = 0; i < OPDI_RANGE_BINS && step > 0; i++) {
        const float begin = (float)(i - first) * w, end = begin + w, density = counts[i] / w;
        const float from = OPDI_MIN(OPDI_MAX(floorf(begin / s), 0.0f), 255.0f);
        const float to = OPDI_MIN(OPDI_MAX(floorf(end / s), 0.0f), 255.0f);
        sum += opdi_range_norm(begin - (from + 0.5f) * s, half, density) +
            (to - from - 1) * opdi_range_norm(-half, half, density) +
            opdi_range_norm(-half, end - (to * s + half), density);
    }
    return sum;
}
/* Sets *low and *high to the range of a histogram that gives the smallest error: parts are left out at the ends, a
   quantile of 1e-5 of the numbers at a time, until the error grows. */
static void opdi_range_search(const opdi_input_range *range, const float *counts, const float *sums, double total,
                              float *low, float *high) {
    const float width = (range->high - range->low) / OPDI_RANGE_BINS;
    double alpha = 0, beta = 1, least = INFINITY;
    int64_t first = 0, last = OPDI_RANGE_BINS - 1;
    while (alpha < beta) {
        const double more = alpha + 1e-5, less = beta - 1e-5;
        int64_t left = first, right = last;
        while (left < last && sums[left] < (float)(more * total)) { left++; }
        while (right > first && sums[right] > (float)(less * total)) { right--; }
        const bool begin = left - first > last - right;
        if (begin) { alpha = more; }
        else { beta = less; }
        if (begin ? left == first : right == last) { continue; }
        const double error = opdi_range_error(range, counts, begin ? left : first, begin ? last : right);
        if (error > least) { break; }
        least = error;
        if (begin) { first = left; }
        else { last = right; }
    }
    *low = range->low + width * (float)first;
    *high = range->low + width * (float)(last + 1);
}
/* Sets *low and *high to the range in which `percent` of the numbers of a histogram are, as many outside of it at each
   end. */
static void opdi_range_middle(const opdi_input_range *range, const float *sums, double percent, float *low,
                              float *high) {
    const float width = (range->high - range->low) / OPDI_RANGE_BINS;
    const double total = sums[OPDI_RANGE_BINS - 1], out = total * (100 - percent) / 200;
    int64_t first = 0, last = OPDI_RANGE_BINS - 1;
    while (first < last && sums[first] <= out) { first++; }
    while (last > first && total - sums[last - 1] <= out) { last--; }
    *low = range->low + width * (float)first;
    *high = range->low + width * (float)(last + 1);
}
/* Finds the scale and the zero point to which inputs are rounded, for integers from -128 to 127, and writes them and
   the range to `row`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_range_choose(const opdi_input_range *range, const opdi_quantize_how *how, opd_quantized *row) {
    float low = range->low, high = range->high;
    if (range->counts) {
        opd_tensor *const counts = opd_contiguous(range->counts), *const sums = counts ? opd_cumsum(counts, 0) : NULL;
        opd_tensor *const total = sums ? opd_sum(counts) : NULL;
        if (!total) { return -1; }
        const float *const each = (const float *)(const void *)counts->data;
        const float *const running = (const float *)(const void *)sums->data;
        if (how->ranges == OPDI_RANGE_PERCENTILE) { opdi_range_middle(range, running, how->percent, &low, &high); }
        else { opdi_range_search(range, each, running, opd_item_f64(total), &low, &high); }
    }
    row->input_min = low;
    row->input_max = high;
    low = OPDI_MIN(low, 0.0f);
    high = OPDI_MAX(high, 0.0f);
    const float scale = OPDI_MAX((high - low) / 255.0f, FLT_EPSILON);
    const float zero = -128.0f - nearbyintf(low / scale);
    row->input_scale = scale;
    row->input_zero_point = (int64_t)OPDI_MIN(OPDI_MAX(zero, -128.0f), 127.0f);
    return 0;
}
