/* OpenCV's warpPerspective as an operator, in C++11.  The operator is traced into a graph, which examples/warp_run.c
   runs.
   c++ -O2 -std=c++11 examples/warp_perspective.cpp -o warp_perspective -I/usr/include/opencv4 \
       -lopencv_imgproc -lopencv_core -lm && ./warp_perspective
   c++ -O2 -std=c++11 -shared -fPIC -DOPDISPATCH_PLUGIN examples/warp_perspective.cpp -o warp.so \
       -I/usr/include/opencv4 -lopencv_imgproc -lopencv_core
   ci: $tmp/warp.opd

   The second command makes a plug-in from this file, which contains only the operator.  OpenCV reads and writes the
   memory of the tensors.  An image is copied first only if its pixels are not contiguous.  An exception of OpenCV
   becomes an error of the call.
   Needs the development files of OpenCV: libopencv-imgproc-dev of Debian. */
#if !defined(OPDISPATCH_PLUGIN)
#define OPDISPATCH_IMPLEMENTATION
#endif
#include "../opdispatch.h"
#include <opencv2/imgproc.hpp>
#include <climits>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

/* Returns whether OpenCV can use t, (height, width) or (height, width, channels): pixels of a row must be
   contiguous, but there may be gaps between rows. */
static bool rows_only(opd_tensor *t) {
    const int64_t *size = opd_sizes(t), *stride = opd_strides(t), channels = opd_ndim(t) == 3 ? size[2] : 1;
    return stride[1] == channels && (opd_ndim(t) == 2 || stride[2] == 1) && stride[0] >= size[1] * channels;
}
/* Returns OpenCV's type for a dtype.  OpenCV reports an error if a function does not support it. */
static int depth_of(opd_tensor *t) {
    switch (opd_dtype(t)) {
    case OPD_UINT8: return CV_8U;
    case OPD_INT8: return CV_8S;
    case OPD_INT16: return CV_16S;
    case OPD_INT32: return CV_32S;
    case OPD_FLOAT32: return CV_32F;
    case OPD_FLOAT64: return CV_64F;
    default: throw std::invalid_argument(std::string("OpenCV has no dtype ") + opd_dtype_name(opd_dtype(t)));
    }
}
static cv::Mat mat_of(opd_tensor *t) {
    const int64_t *size = opd_sizes(t);
    if (size[0] > INT_MAX || size[1] > INT_MAX) { throw std::length_error("the image is larger than OpenCV supports"); }
    const int type = CV_MAKETYPE(depth_of(t), opd_ndim(t) == 3 ? static_cast<int>(size[2]) : 1);
    return cv::Mat(static_cast<int>(size[0]), static_cast<int>(size[1]), type, opd_data(t),
                   static_cast<size_t>(opd_strides(t)[0]) * opd_dtype_size(opd_dtype(t)));
}

/* Sizes and dtype of the result, of the kernel and of the fake kernel: those of the image. */
static opd_tensor *warp_result(opd_call *call) {
    opd_tensor *image = opd_arg_tensor(call, 0), *warp = opd_arg_tensor(call, 1);
    const int64_t *size = opd_sizes(image);
    if (opd_ndim(image) < 2 || opd_ndim(image) > 3 || (opd_ndim(image) == 3 && (size[2] < 1 || size[2] > 4))) {
        opd_fail(OPD_ERROR_SHAPE, "image must be (height, width) or (height, width, channels), with 1 to 4 channels");
        return nullptr;
    }
    if (opd_ndim(warp) != 2 || opd_sizes(warp)[0] != 3 || opd_sizes(warp)[1] != 3) {
        opd_fail(OPD_ERROR_SHAPE, "warp must be (3, 3)");
        return nullptr;
    }
    return opd_result(call, 0, size, opd_ndim(image), opd_dtype(image));
}
static int warp_fake(opd_call *call) { return warp_result(call) ? 0 : -1; }

static int warp_cpu(opd_call *call) {
    opd_tensor *image = opd_arg_tensor(call, 0), *warp = opd_contiguous(opd_arg_tensor(call, 1));
    opd_tensor *out = warp_result(call);
    if (out && !rows_only(image)) { image = opd_contiguous(image); }
    if (!opd_ok()) { return -1; }
    cv::Mat to = mat_of(out);
    cv::warpPerspective(mat_of(image), to, mat_of(warp), to.size());   /* throws an exception for invalid arguments */
    if (to.data != opd_data(out)) { return opd_fail(OPD_ERROR_USER, "OpenCV allocated other memory for the result"); }
    return 0;
}

OPD_LIBRARY(my_ops, lib) {
    opd_op_desc d = opd_op_desc();
    d.schema = "warp_perspective(Tensor image, Tensor warp) -> Tensor";
    d.cpu = OPD_CATCH(warp_cpu);
    d.fake = warp_fake;
    d.backward = OPD_NOT_DIFFERENTIABLE;
    d.vmap = OPD_BATCH_LOOP;
    opd_define(lib, &d);
}

#if !defined(OPDISPATCH_PLUGIN)

static opd_tensor *warp_perspective(opd_tensor *image, opd_tensor *warp) {
    static opd_op *op;
    return OPD_CALL(OPD_OP(&op, "my_ops::warp_perspective"), image, warp);
}

/* The function that is traced: the operator, together with built-in ones. */
static int compute(void *, opd_tensor *const *in, int, opd_tensor **out) {
    opd_tensor *sum = opd_add(opd_relu(warp_perspective(in[0], in[1])), in[0]);
    out[0] = opd_div(sum, opd_max(sum));
    return out[0] ? 1 : -1;
}

int main(int argc, char **argv) {
    const char *path = argc > 1 ? argv[1] : "warp.opd", *const names[] = {"image", "warp"};
    bool thrown = false;
    OPD_SCOPE {
        const float matrix[] = {0, 1, 0,  1, 0, 0,  0, 0, 1};               /* swaps x and y */
        opd_tensor *image = opd_reshape(opd_arange(OPD_V(12), OPD_FLOAT32), OPD_INTS(3, 4));
        opd_tensor *warp = opd_tensor_from(matrix, OPD_INTS(3, 3), OPD_FLOAT32), *in[] = {image, warp};
        opd_print(warp_perspective(image, warp));
        warp_perspective(image, opd_to_dtype(warp, OPD_INT32));
        thrown = std::strstr(opd_error_message(), "OpenCV(") != nullptr;    /* cv::Exception's what() */
        std::printf("thrown: %s\n", opd_error_message());
        opd_error_clear();
        const opd_value args[] = {opd_value_tensor(image), opd_value_tensor(warp)};
        const int wrong = opd_opcheck(opd_find("my_ops::warp_perspective"), args, 2, nullptr);
        std::printf("opcheck: %s\n", wrong ? "no" : "yes");

        char text[4000];
        opd_trace_options o = opd_trace_options();
        o.names = names;
        o.nnames = 2;
        o.check = true;
        opd_graph *graph = opd_graph_trace(compute, nullptr, in, 2, &o);
        if (graph && opd_graph_print(graph, text, sizeof text)) { std::printf("%s", text); }
        if (graph && opd_graph_save(graph, path) == 0) { std::printf("saved as %s\n", path); }
        opd_graph_free(graph);
    }
    return opd_finish() || !thrown;
}
#endif
