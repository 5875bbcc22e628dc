#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:detect    operators of models that detect objects in images: non-maximum suppression, pooling of regions
//
//  These operators are torchvision's, not ATen's: they have no descriptors among the built-in operators and no typed
//  functions.  They are registered when one of their names is looked up and no library has defined it.
//----------------------------------------------------------------------------------------------------------------------

//== boxes =============================================================================================================

/* Returns x rounded to float32 if `single`, else x. */
static double opdi_box_rounded(double x, bool single) { return single ? (double)(float)x : x; }
static double opdi_box_area(const double *box, bool single) {
    return opdi_box_rounded(opdi_box_rounded(box[2] - box[0], single) * opdi_box_rounded(box[3] - box[1], single),
                            single);
}
/* Returns the area of the intersection of two boxes, divided by the area of their union.  If `single` is true, each
   step is rounded to float32. */
static double opdi_box_overlap(const double *one, const double *other, bool single) {
    double sides[2];
    for (int i = 0; i < 2; i++) {
        const double from = one[i] < other[i] ? other[i] : one[i];
        const double to = other[2 + i] < one[2 + i] ? other[2 + i] : one[2 + i];
        const double side = opdi_box_rounded(to - from, single);
        sides[i] = 0 < side ? side : 0;
    }
    const double both = opdi_box_rounded(sides[0] * sides[1], single);
    const double all = opdi_box_rounded(opdi_box_area(one, single) + opdi_box_area(other, single), single);
    return opdi_box_rounded(both / opdi_box_rounded(all - both, single), single);
}
static int opdi_nms_check(const opd_tensor *boxes, const opd_tensor *scores) {
    if (boxes->ndim != 2) {
        return opd_fail(OPD_ERROR_SHAPE, "boxes should be a 2d tensor, got %dD", (int)boxes->ndim);
    }
    if (opdi_sizes(boxes)[1] != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "boxes should have 4 elements in dimension 1, got %lld",
                        (long long)opdi_sizes(boxes)[1]);
    }
    if (scores->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "scores should be a 1d tensor, got %dD", (int)scores->ndim);
    }
    if (opdi_sizes(boxes)[0] != opdi_sizes(scores)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "boxes and scores should have same number of elements in dimension 0, got "
                        "%lld and %lld", (long long)opdi_sizes(boxes)[0], (long long)opdi_sizes(scores)[0]);
    }
    if (boxes->dtype != scores->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "dets should have the same type as scores");
    }
    if (!opd_dtype_is_floating(OPDI_DTYPE(boxes))) { return opdi_dtype_fail("nms_kernel", OPDI_DTYPE(boxes)); }
    return 0;
}
/* nms: returns the indices of the selected boxes.  Selects the box with the highest score, then the next best one,
   and so on.  Skips boxes whose overlap with a selected box is greater than the threshold. */
static int opdi_nms_kernel(opd_call *call) {
    opd_tensor *boxes = opd_arg_tensor(call, 0), *scores = opd_arg_tensor(call, 1), *sorted[2] = {NULL, NULL};
    const double most = opd_arg_double(call, 2);
    const bool single = boxes->dtype != OPD_FLOAT64;
    const int64_t total = boxes->ndim ? opdi_sizes(boxes)[0] : 0;
    int64_t count = 0;
    if (opdi_nms_check(boxes, scores)) { return -1; }
    if (boxes->backend == OPD_META || scores->backend == OPD_META) {
        count = opd_fake_new_size(call, 0, total);
        return count >= 0 && opd_result(call, 0, &count, 1, OPD_INT64) ? 0 : -1;
    }
    boxes = opd_contiguous(opd_to_dtype(boxes, OPD_FLOAT64));
    int64_t *const kept = (int64_t *)opdi_scope_alloc((size_t)(total + 1) * sizeof *kept);
    if (!boxes || !kept || opd_sort_stable(sorted, scores, opd_value_bool(true), 0, true)) { return -1; }
    opd_tensor *const order = opd_contiguous(sorted[1]);
    if (!order) { return -1; }
    const double *const at = (const double *)(const void *)boxes->data;
    for (int64_t i = 0; i < total; i++) {
        const int64_t box = ((const int64_t *)(const void *)order->data)[i];
        bool covered = false;
        for (int64_t k = 0; k < count && !covered; k++) {
            covered = opdi_box_overlap(at + 4 * kept[k], at + 4 * box, single) > most;
        }
        if (!covered) { kept[count++] = box; }
    }
    opd_tensor *const out = opd_result(call, 0, &count, 1, OPD_INT64);
    if (out && count) { memcpy(out->data, kept, (size_t)count * sizeof *kept); }
    return out ? 0 : -1;
}
OPDI_INTERNAL void opdi_vision_nms(opd_op_desc *op) {
    op->schema = "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor";
    op->cpu = op->fake = opdi_nms_kernel; op->any = opd_cpu_fallback; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_dynamic; op->autocast = OPD_AUTOCAST_FP32; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
}

//== regions ===========================================================================================================

/* One axis of a region: its start, the length of a bin, and the number of samples in each bin. */
typedef struct opdi_roi_axis { double start, bin; int64_t samples; } opdi_roi_axis;
/* The arguments of an operator that pools regions: rois, scale, height and width, which are arguments 1 to 4, and then
   sampling_ratio and aligned (see opdi_roi_read). */
typedef struct opdi_roi {
    const double *regions;
    double scale;
    int64_t count, pooled[2], image[4];           /* image: examples, channels, height, width */
    int64_t ratio;
    bool aligned, single;                         /* single: regions are not float64 */
} opdi_roi;

static int opdi_roi_size_fail(int64_t size) {
    return opd_fail(OPD_ERROR_ARGUMENT, "sizes must not be negative, but one is %lld", (long long)size);
}
static int opdi_roi_read(opd_call *call, opdi_roi *roi, const opd_tensor *input, const int64_t *image, int last) {
    opd_tensor *regions = opd_arg_tensor(call, 1);
    if (regions->ndim != 2 || opdi_sizes(regions)[1] != 5) {
        return opd_fail(OPD_ERROR_SHAPE, "rois must have shape as Tensor[K, 5]");
    }
    if (!opd_dtype_is_floating(OPDI_DTYPE(input)) || !opd_dtype_is_floating(OPDI_DTYPE(regions))) {
        return opd_fail(OPD_ERROR_DTYPE, "input and rois must be floating point, but are %s and %s",
                        opd_dtype_name(OPDI_DTYPE(input)), opd_dtype_name(OPDI_DTYPE(regions)));
    }
    roi->scale = opd_arg_double(call, 2);
    roi->count = opdi_sizes(regions)[0];
    for (int i = 0; i < 2; i++) {
        roi->pooled[i] = opd_arg_int(call, 3 + i);
        if (roi->pooled[i] < 0) { return opdi_roi_size_fail(roi->pooled[i]); }
    }
    for (int i = 0; i < 4; i++) {
        roi->image[i] = image[i];
        if (image[i] < 0) { return opdi_roi_size_fail(image[i]); }
    }
    roi->ratio = opd_arg_int(call, last);
    roi->aligned = opd_arg_bool(call, last + 1);
    if (regions->backend == OPD_META || input->backend == OPD_META) { return 0; }
    roi->single = OPDI_DTYPE(regions) != OPD_FLOAT64;
    regions = opd_contiguous(opd_to_dtype(regions, OPD_FLOAT64));
    roi->regions = regions ? (const double *)(const void *)regions->data : NULL;
    for (int64_t i = 0; regions && i < roi->count; i++) {
        const double number = roi->regions[5 * i];
        if (number >= 0 && number < (double)image[0]) { continue; }
        return opd_fail(OPD_ERROR_INDEX, "rois[%lld] names image %g, but there are %lld images", (long long)i, number,
                        (long long)image[0]);
    }
    return regions ? 0 : -1;
}
/* Fills in *made for region number `region` along axis 0 (y) or 1 (x).  Returns 0.  If a bin would have 100000
   samples or more along the axis, returns -1 and sets an error. */
static int opdi_roi_axis_make(const opdi_roi *roi, int64_t region, int axis, opdi_roi_axis *made) {
    const double shift = roi->aligned ? 0.5 : 0, *const box = roi->regions + 5 * region + 2 - axis;
    const bool single = roi->single;              /* float32 rounds each step, as in torchvision */
    const double scale = opdi_box_rounded(roi->scale, single);
    const double start = opdi_box_rounded(opdi_box_rounded(box[0] * scale, single) - shift, single);
    const double end = opdi_box_rounded(opdi_box_rounded(box[2] * scale, single) - shift, single);
    double length = opdi_box_rounded(end - start, single);
    if (!roi->aligned && !(length > 1)) { length = 1; }
    made->start = start;
    made->bin = opdi_box_rounded(length / (double)roi->pooled[axis], single);
    const double samples = roi->ratio > 0 ? (double)roi->ratio : ceil(made->bin);
    if (!(samples < 100000)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "rois[%lld] is too large: each bin would have %g rows or columns of "
                        "samples", (long long)region, samples);
    }
    made->samples = samples > 0 ? (int64_t)samples : 0;
    return 0;
}
/* Finds the two rows or columns of pixels around coordinate `place`, and the weights `parts` of both.  Returns false
   if the coordinate is outside of the image, whose size is `size`. */
static bool opdi_roi_lines(double place, int64_t size, int64_t lines[2], double parts[2]) {
    if (!(place >= -1 && place <= (double)size)) { return false; }
    place = place > 0 ? place : 0;
    lines[0] = (int64_t)place;
    lines[1] = lines[0] + 1;
    if (lines[0] >= size - 1) {
        lines[0] = lines[1] = size - 1;
        place = (double)lines[0];
    }
    parts[1] = place - (double)lines[0];
    parts[0] = 1 - parts[1];
    return true;
}
/* Computes bin `bin` (y, x) of one region, in all channels: adds the mean of its samples of `image` to `pooled`.  If
   `back` is true, adds the gradient of the bin, in `pooled`, to the pixels that the samples were read from. */
static void opdi_roi_bin(const opdi_roi *roi, const opdi_roi_axis *axes, const int64_t *bin, double *image,
                         double *pooled, bool back) {
    const int64_t samples = axes[0].samples * axes[1].samples, area = roi->image[2] * roi->image[3];
    const double share = 1 / (double)OPDI_MAX(samples, 1);
    int64_t lines[2][2];
    double parts[2][2];
    for (int64_t i = 0; i < samples; i++) {
        const int64_t number[2] = {i / axes[1].samples, i % axes[1].samples};
        bool inside = area > 0;
        for (int k = 0; k < 2 && inside; k++) {
            const double step = axes[k].bin, within = opdi_box_rounded(((double)number[k] + 0.5) * step, roi->single);
            double place = axes[k].start + opdi_box_rounded((double)bin[k] * step, roi->single);
            place = opdi_box_rounded(place, roi->single);
            place += opdi_box_rounded(within / (double)axes[k].samples, roi->single);
            place = opdi_box_rounded(place, roi->single);
            inside = opdi_roi_lines(place, roi->image[2 + k], lines[k], parts[k]);
        }
        for (int corner = 0; corner < 4 && inside; corner++) {
            const double part = parts[0][corner / 2] * parts[1][corner % 2] * share;
            double *from = image + lines[0][corner / 2] * roi->image[3] + lines[1][corner % 2];
            double *to = pooled;
            for (int64_t c = 0; c < roi->image[1]; c++) {
                if (back) { *from += part * *to; } else { *to += part * *from; }
                from += area;
                to += roi->pooled[0] * roi->pooled[1];
            }
        }
    }
}
/* Computes all bins of all regions from `image` into `pooled`.  If `back` is true, adds the gradients in `pooled` to
   `image`.  Returns 0, or -1 and sets an error. */
static int opdi_roi_walk(const opdi_roi *roi, double *image, double *pooled, bool back) {
    const int64_t bins = roi->pooled[0] * roi->pooled[1];
    for (int64_t i = 0; bins > 0 && roi->image[1] > 0 && i < roi->count; i++) {
        double *const its = image + (int64_t)roi->regions[5 * i] * roi->image[1] * roi->image[2] * roi->image[3];
        opdi_roi_axis axes[2];
        if (opdi_roi_axis_make(roi, i, 0, &axes[0]) || opdi_roi_axis_make(roi, i, 1, &axes[1])) { return -1; }
        for (int64_t k = 0; k < bins; k++) {
            const int64_t bin[2] = {k / roi->pooled[1], k % roi->pooled[1]};
            opdi_roi_bin(roi, axes, bin, its, pooled + i * roi->image[1] * bins + k, back);
        }
    }
    return 0;
}
/* Copies `made`, which was computed in float64, to `out`, which has the dtype of the result.  Sets the result of the
   call to `out`.  Returns 0, or -1 and sets an error. */
static int opdi_roi_return(opd_call *call, opd_tensor *out, opd_tensor *made) {
    return made && opd_copy_(out, made) ? opd_return_tensor(call, out) : -1;
}
static int opdi_roi_align_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_roi roi;
    memset(&roi, 0, sizeof roi);
    if (input->ndim != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "input must have 4 dimensions, but has %d", (int)input->ndim);
    }
    if (opdi_roi_read(call, &roi, input, opdi_sizes(input), 5)) { return -1; }
    const int64_t sizes[4] = {roi.count, roi.image[1], roi.pooled[0], roi.pooled[1]};
    opd_tensor *const out = opd_result(call, 0, sizes, 4, OPDI_DTYPE(input));
    if (!out || !roi.regions) { return out ? 0 : -1; }
    opd_tensor *const image = opd_contiguous(opd_to_dtype(input, OPD_FLOAT64));
    opd_tensor *const made = opd_zeros(opd_ints_of(sizes, 4), OPD_FLOAT64);
    if (!image || !made || opdi_roi_walk(&roi, (double *)(void *)image->data, (double *)(void *)made->data, false)) {
        return -1;
    }
    return opdi_roi_return(call, out, made);
}
static int opdi_roi_align_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0);
    int64_t sizes[4];
    opdi_roi roi;
    memset(&roi, 0, sizeof roi);
    for (int i = 0; i < 4; i++) { sizes[i] = opd_arg_int(call, 5 + i); }
    if (opdi_roi_read(call, &roi, grad, sizes, 9)) { return -1; }
    const int64_t want[4] = {roi.count, sizes[1], roi.pooled[0], roi.pooled[1]};
    if (!opdi_has_sizes(grad, want, 4)) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "grad must have the sizes of roi_align's result, %s, but has %s",
                        opdi_sizes_text(want, 4, first, sizeof first), opdi_shape_text(grad, second));
    }
    opd_tensor *const out = opd_result(call, 0, sizes, 4, OPDI_DTYPE(grad));
    if (!out || !roi.regions) { return out ? 0 : -1; }
    opd_tensor *const pooled = opd_contiguous(opd_to_dtype(grad, OPD_FLOAT64));
    opd_tensor *const made = opd_zeros(opd_ints_of(sizes, 4), OPD_FLOAT64);
    if (!pooled || !made || opdi_roi_walk(&roi, (double *)(void *)made->data, (double *)(void *)pooled->data, true)) {
        return -1;
    }
    return opdi_roi_return(call, out, made);
}
static int opdi_roi_align_backward(opd_backward_call *bw) {
    static opd_op *op;
    opd_tensor *const input = opd_bw_tensor(bw, 0), *const grad = opd_bw_grad(bw, 0);
    opd_value args[11];
    if (!grad || !input) { return -1; }
    args[0] = opd_value_tensor(grad);
    args[1] = opd_value_tensor(opd_bw_tensor(bw, 1));
    for (int i = 2; i < 5; i++) { args[i] = opd_bw_value(bw, i); }
    for (int i = 0; i < 4; i++) { args[5 + i] = opd_value_int(opd_size(input, i)); }
    for (int i = 0; i < 2; i++) { args[9 + i] = opd_bw_value(bw, 5 + i); }
    OPDI_BW_RETURN(0, opd_call_op(OPD_OP(&op, OPDI_NAME(torchvision, "torchvision::_roi_align_backward")), args, 11));
    return opd_bw_return(bw, 1, NULL);
}
/* The backward function of _roi_align_backward.  roi_align is linear, so the derivative of its gradient with respect
   to grad is roi_align itself. */
static int opdi_roi_align_double_backward(opd_backward_call *bw) {
    static opd_op *op;
    opd_value args[7];
    args[0] = opd_value_tensor(opd_bw_grad(bw, 0));
    args[1] = opd_value_tensor(opd_bw_tensor(bw, 1));
    for (int i = 2; i < 5; i++) { args[i] = opd_bw_value(bw, i); }
    for (int i = 0; i < 2; i++) { args[5 + i] = opd_bw_value(bw, 9 + i); }
    OPDI_BW_RETURN(0, opd_call_op(OPD_OP(&op, OPDI_NAME(torchvision, "torchvision::roi_align")), args, 7));
    return opd_bw_return(bw, 1, NULL);
}
OPDI_INTERNAL void opdi_vision_roi_align(opd_op_desc *op) {
    op->schema = "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "int sampling_ratio, bool aligned) -> Tensor";
    op->cpu = op->fake = opdi_roi_align_kernel; op->any = opd_cpu_fallback;
    op->backward = opdi_roi_align_backward; op->save = "input.sizes, rois";
    op->vmap = OPD_BATCH_LOOP;
}
OPDI_INTERNAL void opdi_vision_roi_align_backward(opd_op_desc *op) {
    op->schema = "_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt "
        "pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool "
        "aligned) -> Tensor";
    op->cpu = op->fake = opdi_roi_align_backward_kernel; op->any = opd_cpu_fallback;
    op->backward = opdi_roi_align_double_backward; op->save = "rois";
    op->vmap = OPD_BATCH_LOOP;
}
