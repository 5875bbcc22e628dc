/* Operators of torchvision for detection models.  The results equal torchvision's (golden/detection.npz). */
#include "../../opdispatch.h"
#include "../check.h"

static opd_tensor_file *golden;

static bool open_golden(void) {
    golden = opd_tensor_file_open(check_path("golden/detection.npz"));
    CHECK_OK();
    return golden != NULL;
}
static opd_tensor *numbered(const char *name, int i) {
    char key[64];
    (void)snprintf(key, sizeof key, "%s%d", name, i);
    return opd_tensor_file_get(golden, key);
}
static opd_tensor *nms(opd_tensor *boxes, opd_tensor *scores, double most) {
    opd_value args[3] = {opd_value_tensor(boxes), opd_value_tensor(scores), opd_value_double(most)};
    return opd_call_op(opd_find("torchvision::nms"), args, 3);
}
static const struct { double scale; int ratio; bool aligned; } ways[] = {
    {0.25, 2, true}, {0.25, -1, false}, {1, 0, true}, {0.5, 1, false}};
static opd_tensor *roi_align(opd_tensor *image, opd_tensor *rois, int way) {
    opd_value args[7] = {opd_value_tensor(image), opd_value_tensor(rois), opd_value_double(ways[way].scale),
                         opd_value_int(2), opd_value_int(3), opd_value_int(ways[way].ratio),
                         opd_value_bool(ways[way].aligned)};
    return opd_call_op(opd_find("torchvision::roi_align"), args, 7);
}
static double apart(opd_tensor *first, opd_tensor *second) {
    return opd_item_f64(opd_max(opd_abs(opd_sub(first, second))));
}

static bool same(opd_tensor *first, opd_tensor *second) {
    return first && second && opd_dtype(first) == opd_dtype(second) && opd_numel(first) == opd_numel(second) &&
        opd_item_i64(opd_all(opd_eq(first, second))) != 0;
}

TEST(boxes_are_suppressed) {
    OPD_SCOPED;
    static const double most[] = {0.5, 0, 1};
    CHECK_OR_RETURN(open_golden());
    opd_tensor *boxes = opd_tensor_file_get(golden, "boxes"), *scores = opd_tensor_file_get(golden, "scores");
    for (int i = 0; i < 3; i++) {
        CHECK(same(nms(boxes, scores, most[i]), numbered("kept", i)));
        CHECK(same(nms(opd_to_dtype(boxes, OPD_FLOAT64), opd_to_dtype(scores, OPD_FLOAT64), most[i]),
                   numbered("kept_double", i)));
    }
    CHECK_INT(opd_numel(nms(opd_slice(boxes, 0, OPD_NONE, opd_value_int(0), 1),
                            opd_slice(scores, 0, OPD_NONE, opd_value_int(0), 1), 0.5)), 0);
    CHECK_OK();
    opd_tensor_file_close(golden);
}
TEST(regions_are_pooled) {
    OPD_SCOPED;
    CHECK_OR_RETURN(open_golden());
    opd_tensor *rois = opd_tensor_file_get(golden, "rois");
    for (int i = 0; i < 4; i++) {
        opd_tensor *image = opd_tensor_set_requires_grad(opd_clone(opd_tensor_file_get(golden, "image")), true);
        opd_tensor *pooled = roi_align(image, rois, i);
        CHECK_OR_RETURN(pooled != NULL);
        CHECK(apart(opd_detach(pooled), numbered("pooled", i)) < 1e-5);
        opd_tensor *numbers = opd_arange(opd_value_int(opd_numel(pooled)), OPD_FLOAT32);
        CHECK_INT(opd_backward(opd_sum(opd_mul(pooled, opd_sin(opd_view_as(numbers, pooled))))), 0);
        CHECK(apart(opd_tensor_grad(image), numbered("slope", i)) < 1e-5);
    }
    CHECK_OK();
    opd_tensor_file_close(golden);
}
static int pooled_way(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    (void)ninputs;
    outputs[0] = roi_align(inputs[0], (opd_tensor *)user, 1);
    return outputs[0] ? 1 : -1;
}
TEST(regions_have_derivatives_and_pass_the_checks) {
    OPD_SCOPED;
    static const float numbers[] = {0, 1, 2, 20, 30, 1, -5, -5, 8, 8};
    opd_tensor *rois = opd_tensor_from(numbers, OPD_INTS(2, 5), OPD_FLOAT32);
    opd_tensor *image = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(2, 2, 5, 4), OPD_FLOAT64), true);
    CHECK_INT(opd_gradcheck(pooled_way, rois, &image, 1, NULL), 0);
    CHECK_INT(opd_gradgradcheck(pooled_way, rois, &image, 1, NULL, NULL), 0);
    opd_value args[7] = {opd_value_tensor(image), opd_value_tensor(rois), opd_value_double(0.25), opd_value_int(2),
                         opd_value_int(3), opd_value_int(-1), opd_value_bool(true)};
    CHECK_INT(opd_opcheck(opd_find("torchvision::roi_align"), args, 7, NULL), 0);
    CHECK_OK();
}
TEST(wrong_boxes_and_regions) {
    OPD_SCOPED;
    opd_tensor *boxes = opd_ones(OPD_INTS(3, 4), OPD_FLOAT32), *scores = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    CHECK(!nms(scores, scores, 0.5));
    CHECK_ERROR(OPD_ERROR_SHAPE, "boxes should be a 2d tensor, got 1D");
    CHECK(!nms(opd_ones(OPD_INTS(3, 5), OPD_FLOAT32), scores, 0.5));
    CHECK_ERROR(OPD_ERROR_SHAPE, "boxes should have 4 elements in dimension 1, got 5");
    CHECK(!nms(boxes, opd_ones(OPD_INTS(2), OPD_FLOAT32), 0.5));
    CHECK_ERROR(OPD_ERROR_SHAPE, "same number of elements in dimension 0, got 3 and 2");
    CHECK(!nms(boxes, opd_to_dtype(scores, OPD_FLOAT64), 0.5));
    CHECK_ERROR(OPD_ERROR_DTYPE, "dets should have the same type as scores");
    opd_tensor *image = opd_ones(OPD_INTS(1, 2, 3, 3), OPD_FLOAT32);
    CHECK(!roi_align(image, boxes, 0));
    CHECK_ERROR(OPD_ERROR_SHAPE, "rois must have shape as Tensor[K, 5]");
    CHECK(!roi_align(image, opd_ones(OPD_INTS(1, 5), OPD_FLOAT32), 0));
    CHECK_ERROR(OPD_ERROR_INDEX, "rois[0] names image 1, but there are 1 images");
    static const float far[] = {0, 0, 0, 3e38f, 3};
    CHECK(!roi_align(image, opd_tensor_from(far, OPD_INTS(1, 5), OPD_FLOAT32), 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "rows or columns of samples");
}
/* Bins are counted in the dtype of the regions, as PyTorch does: 16.1f - 0.1f is 16, and each bin has one sample. */
TEST(samples_are_counted_in_the_dtype_of_regions) {
    OPD_SCOPED;
    static const float box[] = {0, .1f, .1f, 16.1f, 16.1f};
    opd_tensor *image = opd_reshape(opd_sin(opd_arange(OPD_V(1024), OPD_FLOAT32)), OPD_INTS(1, 1, 32, 32));
    opd_tensor *rois = opd_tensor_from(box, OPD_INTS(1, 5), OPD_FLOAT32), *out;
    const opd_value args[7] = {opd_value_tensor(image), opd_value_tensor(rois), opd_value_double(1), opd_value_int(16),
                               opd_value_int(16), opd_value_int(-1), opd_value_bool(true)};
    CHECK_OR_RETURN((out = opd_call_op(opd_find("torchvision::roi_align"), args, 7)) != NULL);
    CHECK_NEAR(opd_data_f32(out)[0], 0.1353599, 1e-6);
}
/* Without bins or channels, loops must not run for a long time. */
TEST(regions_without_bins_or_channels) {
    OPD_SCOPED;
    opd_tensor *rois = opd_zeros(OPD_INTS(1, 5), OPD_FLOAT32), *out;
    for (int i = 0; i < 2; i++) {
        opd_tensor *image = opd_ones(OPD_INTS(1, i, 3, 3), OPD_FLOAT32);
        const opd_value args[7] = {opd_value_tensor(image), opd_value_tensor(rois), opd_value_double(1),
                                   opd_value_int(i ? 0 : 200000), opd_value_int(20000), opd_value_int(-1),
                                   opd_value_bool(true)};
        CHECK((out = opd_call_op(opd_find("torchvision::roi_align"), args, 7)) != NULL && opd_numel(out) == 0);
        CHECK_OK();
    }
}
/* Regions have no gradient, and may require one. */
TEST(regions_that_require_grad) {
    OPD_SCOPED;
    opd_tensor *image = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1, 1, 3, 3), OPD_FLOAT32), true);
    opd_tensor *rois = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(1, 5), OPD_FLOAT32), true);
    opd_tensor *pooled = roi_align(image, rois, 0);
    CHECK_OR_RETURN(pooled != NULL);
    opd_backward(opd_sum(pooled));
    CHECK_OK();
    CHECK(opd_tensor_grad(image) != NULL && opd_tensor_grad(rois) == NULL);
    pooled = roi_align(opd_ones(OPD_INTS(1, 1, 3, 3), OPD_FLOAT32), rois, 0);      /* they alone */
    opd_backward(opd_sum(pooled));
    CHECK_OK();
    CHECK(opd_tensor_grad(rois) == NULL);
}
/* With fake tensors: the sizes of pooled results; the number of boxes that nms keeps is unknown. */
TEST(regions_of_fakes) {
    OPD_SCOPED;
    opd_device meta;
    CHECK_INT(opd_device_parse("meta", &meta), 0);
    opd_tensor *image = opd_to_device(opd_ones(OPD_INTS(1, 2, 3, 3), OPD_FLOAT32), meta, OPD_FLOAT32);
    opd_tensor *rois = opd_to_device(opd_ones(OPD_INTS(4, 5), OPD_FLOAT32), meta, OPD_FLOAT32);
    opd_tensor *pooled = roi_align(image, rois, 0);
    CHECK(pooled && opd_size(pooled, 0) == 4 && opd_size(pooled, 1) == 2 && opd_size(pooled, 3) == 3);
    CHECK_OK();
}
CHECK_MAIN()
