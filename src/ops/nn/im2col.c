#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:resample  windows as columns, pixels as channels, resizing
//----------------------------------------------------------------------------------------------------------------------

//== im2col, col2im, pixel_shuffle =====================================================================================

/* Reads kernel_size, dilation, padding and stride, the arguments from `first` on, into *vol, whose in[] has the
   image's height and width.  Computes vol->out.  Returns 0, or -1 and sets an error. */
static int opdi_im2col_read(const opd_call *call, int first, opdi_vol *vol) {
    static const char *const names[] = {"kernel_size", "dilation", "padding", "stride"};
    int64_t *to[4];
    to[0] = vol->kernel;
    to[1] = vol->dilation;
    to[2] = vol->pad;
    to[3] = vol->stride;
    for (int k = 0; k < 4; k++) {
        const opd_ints list = opd_arg_ints(call, first + k);
        if (list.n != 2) {
            return opd_fail(OPD_ERROR_ARGUMENT, "It is expected %s equals to 2, but got size %lld", names[k],
                            (long long)list.n);
        }
        to[k][0] = k == 2 ? 0 : 1;
        for (int i = 0; i < 2; i++) {
            to[k][1 + i] = list.data[i];
            if (list.data[i] < (k == 2 ? 0 : 1) || list.data[i] >= (int64_t)1 << 31) {
                return k == 2 ? opd_fail(OPD_ERROR_ARGUMENT, "padding should be non-negative, but got pad_height: %lld "
                                         "pad_width: %lld", (long long)list.data[0], (long long)list.data[1])
                    : opd_fail(OPD_ERROR_ARGUMENT, "%s should be greater than zero, but got %lld and %lld", names[k],
                               (long long)list.data[0], (long long)list.data[1]);
            }
        }
    }
    vol->in[0] = vol->out[0] = 1;
    for (int i = 1; i < 3; i++) {
        vol->out[i] = opdi_floor_div(vol->in[i] + 2 * vol->pad[i] - vol->dilation[i] * (vol->kernel[i] - 1) - 1,
                                     vol->stride[i]) + 1;
    }
    return 0;
}
static int opdi_im2col_run(opd_tensor *image, opd_tensor *col, const opdi_vol *vol, bool back) {
    const int64_t channels = opdi_sizes(image)[image->ndim - 3], size = (int64_t)opd_dtype_size(OPDI_DTYPE(image)),
        area = opdi_vol_area(vol->out);
    const int64_t one = channels * opdi_vol_area(vol->in) * size,
        cols = channels * opdi_vol_area(vol->kernel) * area * size;
    const int64_t count = image->ndim == 4 ? opdi_sizes(image)[0] : 1;
    if (back) { memset(image->data, 0, (size_t)(count * one)); }
    for (int64_t i = 0; i < count; i++) {
        opdi_vol_unfold(vol, channels, image->data + i * one, col->data + i * cols, area, back);
    }
    return 0;
}
/* Returns the dtype in which windows are copied and summed.  For bools it is float32: a sum of bools is true if it is
   not 0.  On failure, returns -1 and sets PyTorch's error for the kernel `what`. */
static int opdi_columns_dtype(const opd_tensor *input, const char *what) {
    return input->dtype == OPD_BOOL ? OPD_FLOAT32 : opdi_kernel_dtype(OPDI_DTYPE(input), false, what);
}
/* im2col: copies the windows of images [n, c, h, w] or [c, h, w] to columns [n, c * kernel, windows] or [c * kernel,
   windows], where kernel is the number of elements of a window in one channel. */
static int opdi_im2col_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    if (opdi_is_complex(input)) { return opdi_by_parts(call); }
    const int64_t *other_sizes = opdi_sizes(input), t = opdi_columns_dtype(input, "im2col_out_cpu");
    int64_t sizes[3];
    opdi_vol vol;
    const int ndim = input->ndim;
    if (t < 0) { return -1; }
    memset(&vol, 0, sizeof vol);
    if ((ndim != 3 && ndim != 4) || other_sizes[ndim - 1] == 0 || other_sizes[ndim - 2] == 0 ||
        other_sizes[ndim - 3] == 0) {
        char text[256];
        return opd_fail(OPD_ERROR_SHAPE, "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other "
                        "non-zero dimensions for input, but got: %s",
                        opdi_sizes_text(other_sizes, ndim, text, sizeof text));
    }
    vol.in[1] = other_sizes[ndim - 2];
    vol.in[2] = other_sizes[ndim - 1];
    vol.dtype = (int)t;
    if (opdi_im2col_read(call, 1, &vol) != 0) { return -1; }
    if (vol.out[1] < 1 || vol.out[2] < 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), "
                        "dilation=(%lld, %lld), padding=(%lld, %lld), calculated shape of the array of sliding "
                        "blocks as (%lld, %lld), but its components must be at least one.", (long long)vol.in[1],
                        (long long)vol.in[2], (long long)vol.kernel[1], (long long)vol.kernel[2],
                        (long long)vol.dilation[1], (long long)vol.dilation[2], (long long)vol.pad[1],
                        (long long)vol.pad[2], (long long)vol.out[1], (long long)vol.out[2]);
    }
    sizes[0] = other_sizes[0];
    sizes[1] = opdi_size_times(other_sizes[ndim - 3], opdi_size_times(vol.kernel[1], vol.kernel[2]));
    sizes[2] = opdi_size_times(vol.out[1], vol.out[2]);
    if ((double)other_sizes[ndim - 3] * (double)vol.kernel[1] * (double)vol.kernel[2] > 1e15) {
        return (int)opdi_count_error(sizes, 3);
    }
    opd_tensor *out = opd_result(call, 0, ndim == 4 ? sizes : sizes + 1, ndim - 1, OPDI_DTYPE(input));
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    input = opdi_dense_as(input, (opd_scalar_type)t);
    opd_tensor *output = opdi_staging(out, (opd_scalar_type)t);
    if (!input || !output || opdi_im2col_run(input, output, &vol, false) != 0) { return -1; }
    return opdi_staging_store(out, output);
}
/* col2im: sums the columns [n, c * kernel, windows] or [c * kernel, windows] into images [n, c, h, w] or [c, h, w],
   whose height and width are output_size. */
static int opdi_col2im_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const opd_ints to = opd_arg_ints(call, 1);
    if (opdi_is_complex(input)) { return opdi_by_parts(call); }
    const int64_t *other_sizes = opdi_sizes(input), t = opdi_columns_dtype(input, "col2im_out_cpu");
    int64_t sizes[4];
    opdi_vol vol;
    const int ndim = input->ndim;
    if (t < 0) { return -1; }
    memset(&vol, 0, sizeof vol);
    if (to.n != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "It is expected output_size equals to 2, but got size %lld",
                        (long long)to.n);
    }
    if (to.data[0] < 1 || to.data[1] < 1 || to.data[0] >= (int64_t)1 << 31 || to.data[1] >= (int64_t)1 << 31) {
        return opd_fail(OPD_ERROR_ARGUMENT, "output_size should be greater than zero, but got output_height: %lld "
                        "output_width: %lld", (long long)to.data[0], (long long)to.data[1]);
    }
    if ((ndim != 2 && ndim != 3) || other_sizes[ndim - 1] == 0 || other_sizes[ndim - 2] == 0) {
        char text[256];
        return opd_fail(OPD_ERROR_SHAPE, "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size "
                        "and non-zero dimensions for input, but got: %s",
                        opdi_sizes_text(other_sizes, ndim, text, sizeof text));
    }
    vol.in[1] = to.data[0];
    vol.in[2] = to.data[1];
    vol.dtype = (int)t;
    if (opdi_im2col_read(call, 2, &vol) != 0) { return -1; }
    if (vol.kernel[1] > other_sizes[ndim - 2] || vol.kernel[2] > other_sizes[ndim - 2] ||
        other_sizes[ndim - 2] % (vol.kernel[1] * vol.kernel[2])) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected size of input's dimension 1 to be divisible by the product of "
                        "kernel_size, but got input.size(1)=%lld and "
                        "kernel_size=(%lld, %lld).", (long long)other_sizes[ndim - 2], (long long)vol.kernel[1],
                        (long long)vol.kernel[2]);
    }
    if (vol.out[1] < 1 || vol.out[2] < 1 || opdi_size_times(vol.out[1], vol.out[2]) != other_sizes[ndim - 1]) {
        return opd_fail(OPD_ERROR_SHAPE, "Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, "
                        "%lld), padding=(%lld, %lld), stride=(%lld, %lld), expected size of input's dimension 2 to "
                        "match the calculated number of sliding blocks %lld * %lld = %lld, but got input.size(2)=%lld.",
                        (long long)vol.in[1], (long long)vol.in[2], (long long)vol.kernel[1], (long long)vol.kernel[2],
                        (long long)vol.dilation[1], (long long)vol.dilation[2], (long long)vol.pad[1],
                        (long long)vol.pad[2], (long long)vol.stride[1], (long long)vol.stride[2],
                        (long long)vol.out[1], (long long)vol.out[2],
                        (long long)opdi_size_times(vol.out[1], vol.out[2]), (long long)other_sizes[ndim - 1]);
    }
    sizes[0] = other_sizes[0];
    sizes[1] = other_sizes[ndim - 2] / (vol.kernel[1] * vol.kernel[2]);
    sizes[2] = vol.in[1];
    sizes[3] = vol.in[2];
    opd_tensor *out = opd_result(call, 0, ndim == 3 ? sizes : sizes + 1, ndim + 1, OPDI_DTYPE(input));
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    input = opdi_dense_as(input, (opd_scalar_type)t);
    opd_tensor *output = opdi_staging(out, (opd_scalar_type)t);
    if (!input || !output || opdi_im2col_run(output, input, &vol, true) != 0) { return -1; }
    return opdi_staging_store(out, output);
}
static int opdi_im2col_backward(opd_backward_call *bw) {
    const opd_ints list = opd_bw_sizes(bw, 0);
    if (list.n < 2) { return 0; }
    return opd_bw_return(bw, 0,
                         opd_col2im(opd_bw_grad(bw, 0), opd_ints_of(list.data + list.n - 2, 2), opd_bw_ints(bw, 1),
                                    opd_bw_ints(bw, 2), opd_bw_ints(bw, 3), opd_bw_ints(bw, 4)));
}
static int opdi_col2im_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_im2col(opd_bw_grad(bw, 0), opd_bw_ints(bw, 2), opd_bw_ints(bw, 3),
                                           opd_bw_ints(bw, 4), opd_bw_ints(bw, 5)));
}
/* opd_im2col: the windows of images [N, C, H, W] as columns [N, C * window, places] */
OPDI_OP(im2col) {
    op->schema = "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor";
    op->cpu = op->fake = opdi_im2col_kernel; op->backward = opdi_im2col_backward;
    op->vmap = opdi_batch_fold_2d;
    op->out = "im2col.out";
    op->cases = "[1,2,4,5], (2,3), (1,1), (1,0), (2,1)";
}
/* opd_col2im: columns summed into images of output_size */
OPDI_OP(col2im) {
    op->schema = "col2im(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
        "int[2] stride) -> Tensor";
    op->cpu = op->fake = opdi_col2im_kernel; op->backward = opdi_col2im_backward;
    op->vmap = opdi_batch_fold_1d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "col2im.out";
    op->cases = "[1,8,9], (4,4), (2,2), (1,1), (0,0), (1,1)";
}

#define OPDI_MEMORY_LAST opd_value_int(2)
/* pixel_shuffle by r: rearranges [.., channels * r * r, height, width] to [.., channels, height * r, width * r].  If
   `back` is true, does the inverse (pixel_unshuffle).  Returns 0, or -1 and sets an error. */
static int opdi_pixel_shuffle_any(opd_call *call, bool back) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const int64_t row = opd_arg_int(call, 1);
    const int ndim = input->ndim, second = ndim - 3;
    int64_t split[OPD_MAX_DIMS], order[OPD_MAX_DIMS], out[OPD_MAX_DIMS];
    if (ndim < 3) {
        return opd_fail(OPD_ERROR_SHAPE, "pixel_%sshuffle expects input to have at least 3 dimensions, but got input "
                        "with %d dimension(s)", back ? "un" : "", ndim);
    }
    if (row <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "pixel_%sshuffle expects a positive %sscale_factor, but got %lld", back
                        ? "un" : "", back ? "down" : "up", (long long)row);
    }
    if (ndim + 2 > OPD_MAX_DIMS) { return opdi_dims_fail(ndim + 2); }
    if (row >= (int64_t)1 << 31) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%sscale_factor must be less than 2^31, but is %lld", back ? "down" : "up",
                        (long long)row);
    }
    int64_t channels = opdi_sizes(input)[second];
    int64_t height = opdi_sizes(input)[second + 1];
    int64_t width = opdi_sizes(input)[second + 2];
    if (!back && channels % (row * row)) {
        return opd_fail(OPD_ERROR_SHAPE, "pixel_shuffle expects its input's 'channel' dimension to be divisible by "
                        "the square of upscale_factor, but input.size(-3)=%lld "
                        "is not divisible by %lld", (long long)channels, (long long)(row * row));
    }
    if (back && (height % row || width % row)) {
        return opd_fail(OPD_ERROR_SHAPE, "pixel_unshuffle expects %s to be divisible by downscale_factor, but "
                        "input.size(%d)=%lld is not divisible by %lld", height % row ? "height" : "width",
                        height % row ? -2 : -1, (long long)(height % row ? height : width), (long long)row);
    }
    for (int dim = 0; dim < second; dim++) {
        out[dim] = split[dim] = opdi_sizes(input)[dim];
        order[dim] = dim;
    }
    if (!back) {
        split[second] = out[second] = channels / (row * row);
        split[second + 1] = split[second + 2] = row;
        split[second + 3] = height;
        split[second + 4] = width;
        order[second] = second;
        order[second + 1] = second + 3;
        order[second + 2] = second + 1;
        order[second + 3] = second + 4;
        order[second + 4] = second + 2;
        out[second + 1] = height * row;
        out[second + 2] = width * row;
    } else {
        split[second] = channels;
        split[second + 1] = out[second + 1] = height / row;
        split[second + 2] = split[second + 4] = row;
        split[second + 3] = out[second + 2] = width / row;
        order[second] = second;
        order[second + 1] = second + 2;
        order[second + 2] = second + 4;
        order[second + 3] = second + 1;
        order[second + 4] = second + 3;
        out[second] = channels * row * row;
    }
    bool last = opdi_is_channels_last(input) && ndim == 4;
    opd_tensor *output = opdi_permute_to(opdi_reshape_to(input, split, ndim + 2), order, ndim + 2);
    if (last) { return opd_return_tensor(call, opd_clone_full(opdi_reshape_to(output, out, ndim), OPDI_MEMORY_LAST)); }
    /* the result is never a view of self */
    return opd_return_tensor(call, opdi_reshape_to(opd_clone_full(output, OPDI_MEMORY_DENSE), out, ndim));
}
static int opdi_pixel_shuffle_kernel(opd_call *call) { return opdi_pixel_shuffle_any(call, false); }
static int opdi_pixel_unshuffle_kernel(opd_call *call) { return opdi_pixel_shuffle_any(call, true); }
/* opd_pixel_shuffle: moves channels to pixels: [.., C r^2, H, W] to [.., C, H r, W r] */
OPDI_OP(pixel_shuffle) {
    op->schema = "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor";
    op->composite = opdi_pixel_shuffle_kernel;
    op->out = "pixel_shuffle.out";
    op->cases = "[1,8,2,3], 2";
}
/* opd_pixel_unshuffle: moves pixels to channels: [.., C, H r, W r] to [.., C r^2, H, W] */
OPDI_OP(pixel_unshuffle) {
    op->schema = "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor";
    op->composite = opdi_pixel_unshuffle_kernel;
    op->out = "pixel_unshuffle.out";
    op->cases = "[1,2,4,6], 2";
}
