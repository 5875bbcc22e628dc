#include "../ops.h"

//== convolution: arguments ============================================================================================

/* Reads `list` into the last ndim elements of out[3], and sets the elements before them to `fill`.  The list has
   ndim numbers, or one number for all ndim dims.  `name` is the argument's name in errors.  Returns 0, or -1 and
   sets an error. */
static int opdi_conv_list(const char *name, opd_ints list, int ndim, int64_t *out, int64_t fill) {
    char text[256];
    for (int i = 0; i < 3; i++) { out[i] = fill; }
    if (list.n != 1 && list.n != ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "expected %s to be a single integer value or a list of %d values to match "
                        "the convolution dimensions, but got %s=%s", name, ndim, name,
                        opdi_sizes_text(list.data, (int)OPDI_MIN(list.n, (int64_t)16), text, sizeof text));
    }
    for (int i = 0; i < ndim; i++) { out[3 - ndim + i] = list.data[list.n == 1 ? 0 : i]; }
    return 0;
}
typedef struct opdi_conv_call {
    /* an ordinary convolution; if transposed is set, its gradient with respect to x is computed */
    opdi_vol vol;
    int64_t sizes[5], opad[3];                    /* sizes: of the result; opad: output_padding */
    int nd;
    bool transposed, last;
} opdi_conv_call;

OPDI_INTERNAL const char *opdi_by_text(const int64_t *ints, int count, char *buf) {
    int at = 0;
    for (int i = 0; i < count; i++) {
        at += snprintf(buf + at, (size_t)(96 - at), i ? " x %lld" : "%lld", (long long)ints[i]);
    }
    return buf;
}
/* Computes the sizes of the result for an input with spatial sizes in[3].  Fails if a dim would be empty
   (at::native::check_shape_forward).  Returns 0, or -1 and sets an error. */
static int opdi_conv_out_sizes(opdi_conv_call *conv, const int64_t *in) {
    opdi_vol *vol = &conv->vol;
    int64_t out[3], padded[3], reach[3];
    char first[96], second[96];
    bool below = false, none = false;
    for (int i = 0; i < 3; i++) {
        const double most = ((double)vol->dilation[i] * (double)vol->kernel[i] +
                             (double)in[i] * (double)OPDI_MAX(vol->stride[i],
                                                              (int64_t)1) + 2.0 * (double)vol->pad[i] +
                             (double)conv->opad[i]);
        if (most > 1e15) { return opd_fail(OPD_ERROR_ARGUMENT, "the padded input or the dilated kernel is too large"); }
        padded[i] = in[i] + 2 * vol->pad[i];
        reach[i] = vol->dilation[i] * (vol->kernel[i] - 1) + 1;
        if (conv->transposed) { out[i] = (in[i] - 1) * vol->stride[i] - 2 * vol->pad[i] + reach[i] + conv->opad[i]; }
        else { out[i] = (padded[i] - reach[i]) / vol->stride[i] + 1; }
        below |= padded[i] < reach[i];
        none |= out[i] < 1;
    }
    if (!conv->transposed && below) {
        return opd_fail(OPD_ERROR_SHAPE, "Calculated padded input size per channel: (%s). Kernel size: "
                        "(%s). Kernel size can't be greater than actual input size",
                        opdi_by_text(padded + 3 - conv->nd, conv->nd, first),
                        opdi_by_text(reach + 3 - conv->nd, conv->nd, second));
    }
    if (none) {
        return opd_fail(OPD_ERROR_SHAPE, "Given input size per channel: (%s). Calculated output size per channel: "
                        "(%s). Output size is too small", opdi_by_text(in + 3 - conv->nd, conv->nd, first),
                        opdi_by_text(out + 3 - conv->nd, conv->nd, second));
    }
    for (int i = 0; i < 3; i++) {
        vol->in[i] = conv->transposed ? out[i] : in[i];
        vol->out[i] = conv->transposed ? in[i] : out[i];
        if (i >= 3 - conv->nd) { conv->sizes[2 + i - (3 - conv->nd)] = out[i]; }
    }
    return 0;
}
static int opdi_conv_numbers(const opdi_conv_call *conv) {
    const opdi_vol *vol = &conv->vol;
    for (int i = 3 - conv->nd; i < 3; i++) {
        if (vol->pad[i] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "negative padding is not supported"); }
        if (conv->opad[i] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "negative output_padding is not supported"); }
        if (vol->stride[i] <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "non-positive stride is not supported"); }
        if (vol->dilation[i] <= 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "dilation should be greater than zero, but got %lld",
                            (long long)vol->dilation[i]);
        }
    }
    if (vol->groups > INT32_MAX) {
        return opd_fail(OPD_ERROR_SHAPE, "Given groups=%lld, expected weight to be at least %lld at dimension 0",
                        (long long)vol->groups, (long long)vol->groups);
    }
    return vol->groups <= 0 ? opd_fail(OPD_ERROR_ARGUMENT, "non-positive groups is not supported") : 0;
}
static int opdi_conv_bias(bool transposed, const opd_tensor *weight, const opd_tensor *bias, int64_t channels) {
    char first[256], second[256];
    if (bias->ndim == 1 && opdi_sizes(bias)[0] == channels) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "Given %sweight of size %s, expected bias to be 1-dimensional with %lld elements, "
                    "but got bias of size %s instead", transposed ? "transposed=1, " : "",
                    opdi_sizes_text(opdi_sizes(weight), weight->ndim, first, sizeof first), (long long)channels,
                    opdi_sizes_text(opdi_sizes(bias), bias->ndim, second, sizeof second));
}
/* Checks the numbers of channels, the sizes of bias (NULL: no bias) and of the kernel, and output_padding.  Returns
   0, or -1 and sets an error. */
static int opdi_conv_shapes(opdi_conv_call *conv, const opd_tensor *input, const opd_tensor *weight,
                            const opd_tensor *bias) {
    const int64_t *xs = opdi_sizes(input), *ws = opdi_sizes(weight), groups = conv->vol.groups;
    const int64_t want = conv->transposed ? ws[0] : ws[1] * groups, oc = conv->transposed ? ws[1] * groups : ws[0];
    char first[256], second[256];
    opdi_sizes_text(ws, weight->ndim, first, sizeof first);
    opdi_sizes_text(xs, input->ndim, second, sizeof second);
    if (input->ndim != weight->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected %d-dimensional input for %d-dimensional weight %s, "
                        "but got %d-dimensional input of size %s instead", weight->ndim, weight->ndim, first,
                        input->ndim, second);
    }
    if (ws[0] < groups || ws[0] % groups) {
        return opd_fail(OPD_ERROR_SHAPE, "Given groups=%lld, expected weight to be %s %lld at dimension 0, but got "
                        "weight of size %s instead",
                        (long long)groups, ws[0] < groups ? "at least" : "divisible by", (long long)groups, first);
    }
    if (xs[1] != want) {
        if (conv->transposed) {
            return opd_fail(OPD_ERROR_SHAPE, "Given transposed=1, weight of size %s, expected input%s to have %lld "
                            "channels, but got %lld channels instead", first, second, (long long)want,
                            (long long)xs[1]);
        }
        return opd_fail(OPD_ERROR_SHAPE, "Given groups=%lld, weight of size %s, expected input%s to have %lld "
                        "channels, but got %lld channels instead",
                        (long long)groups, first, second, (long long)want, (long long)xs[1]);
    }
    if (bias && opdi_conv_bias(conv->transposed, weight, bias, oc)) { return -1; }
    for (int i = 2; i < weight->ndim; i++) {
        if (ws[i] < 1) {
            return opd_fail(OPD_ERROR_SHAPE, "kernel size should be greater than zero, but got weight of size %s",
                            first);
        }
        if (xs[i] < 1) {
            return opd_fail(OPD_ERROR_SHAPE, "Only zero batch or zero channel inputs are supported, but got input "
                            "shape: %s", second);
        }
    }
    if (conv->transposed) {
        for (int i = 3 - conv->nd; i < 3; i++) {
            if (conv->opad[i] >= conv->vol.stride[i] && conv->opad[i] >= conv->vol.dilation[i]) {
                return opd_fail(OPD_ERROR_ARGUMENT, "output padding must be smaller than either stride or dilation, "
                                "but got output_padding: %lld stride: %lld dilation: %lld", (long long)conv->opad[i],
                                (long long)conv->vol.stride[i], (long long)conv->vol.dilation[i]);
            }
        }
    }
    return 0;
}
static int opdi_conv_dims_check(const opd_tensor *weight) {
    if (weight->ndim < 3) { return opd_fail(OPD_ERROR_SHAPE, "weight should have at least three dimensions"); }
    return weight->ndim <= 5 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "weight has %d spatial dimensions, but at most 3 are supported", weight->ndim - 2);
}
/* Reads the arguments from `first` on (stride, padding, dilation, transposed, output_padding, groups) into *conv.
   Returns 0, or -1 and sets an error. */
static int opdi_conv_read(const opd_call *call, int first, const opd_tensor *input, const opd_tensor *weight,
                          const opd_tensor *bias, opdi_conv_call *conv) {
    opdi_vol *vol = &conv->vol;
    int64_t in[3] = {1, 1, 1};
    memset(conv, 0, sizeof *conv);
    if (opdi_conv_dims_check(weight)) { return -1; }
    conv->nd = weight->ndim - 2;
    conv->transposed = opd_arg_bool(call, first + 3);
    vol->groups = opd_arg_int(call, first + 5);
    if (opdi_conv_list("stride", opd_arg_ints(call, first), conv->nd, vol->stride, 1) != 0 ||
        opdi_conv_list("padding", opd_arg_ints(call, first + 1), conv->nd, vol->pad, 0) != 0 ||
        opdi_conv_list("dilation", opd_arg_ints(call, first + 2), conv->nd, vol->dilation, 1) != 0 ||
        opdi_conv_list("output_padding", opd_arg_ints(call, first + 4), conv->nd, conv->opad, 0) != 0 ||
        opdi_conv_numbers(conv) != 0 || opdi_conv_shapes(conv, input, weight, bias) != 0) {
        return -1;
    }
    if (!conv->transposed) { memset(conv->opad, 0, sizeof conv->opad); }
    for (int i = 0; i < 3; i++) { vol->kernel[i] = i < 3 - conv->nd ? 1 : opdi_sizes(weight)[2 + i - (3 - conv->nd)]; }
    for (int i = 3 - conv->nd; i < 3; i++) { in[i] = opdi_sizes(input)[2 + i - (3 - conv->nd)]; }
    conv->sizes[0] = vol->n = opdi_sizes(input)[0];
    conv->sizes[1] = conv->transposed ? opdi_sizes(weight)[1] * vol->groups : opdi_sizes(weight)[0];
    vol->c = conv->transposed ? conv->sizes[1] : opdi_sizes(input)[1];
    vol->oc = conv->transposed ? opdi_sizes(input)[1] : conv->sizes[1];
    if (opdi_sizes(input)[1] == 0) { conv->sizes[1] = 0; }         /* as PyTorch does */
    if (weight->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Input type (%s) and weight type (%s) should be the same",
                        opd_dtype_name(OPDI_DTYPE(input)), opd_dtype_name(OPDI_DTYPE(weight)));
    }
    if (bias && bias->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Input type (%s) and bias type (%s) should be the same",
                        opd_dtype_name(OPDI_DTYPE(input)), opd_dtype_name(OPDI_DTYPE(bias)));
    }
    vol->dtype = opdi_kernel_dtype(OPDI_DTYPE(input), true, "slow_conv2d_cpu");
    vol->exact = OPDI_DTYPE(input) == OPD_BFLOAT16;
    conv->last = opdi_is_channels_last(input) || opdi_is_channels_last(weight);
    return vol->dtype < 0 ? -1 : opdi_conv_out_sizes(conv, in);
}

//== convolution, convolution_backward =================================================================================

/* Computes a convolution of complex numbers from four convolutions of real and imaginary parts, and adds the bias.
   Returns 0, or -1 and sets an error. */
static int opdi_complex_convolution(opd_call *call, opd_tensor *bias) {
    opd_tensor *parts[2];
    opd_value rets[4];
    const int64_t channels = -1;
    int64_t sizes[OPD_MAX_DIMS];
    for (unsigned i = 0; i < 4; i++) { if (opdi_call_parts(call, i, 1u << 2, &rets[i])) { return -1; } }
    parts[0] = opd_sub(rets[0].u.t, rets[3].u.t);
    parts[1] = opd_add(rets[1].u.t, rets[2].u.t);
    if (!parts[0] || !parts[1]) { return -1; }
    if (bias && opdi_conv_bias(opd_arg_bool(call, 6), opd_arg_tensor(call, 1), bias, opdi_sizes(parts[0])[1])) {
        return -1;
    }
    for (int i = 0; i < parts[0]->ndim - 1; i++) { sizes[i] = i ? 1 : channels; }
    for (int i = 0; i < 2 && bias; i++) {
        parts[i] = opd_add(parts[i], opd_reshape(opdi_part_of(bias, i), opd_ints_of(sizes, parts[0]->ndim - 1)));
    }
    return opdi_return_parts(call, 0, parts[0], parts[1]);
}
/* convolution: convolves input with weight and adds bias.  A transposed convolution is computed as the gradient of a
   convolution with respect to its input. */
static int opdi_convolution_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2);
    opdi_conv_call conv;
    if (opdi_is_complex(input) && opdi_same_dtype(input, weight) == 0 && (!bias || opdi_same_dtype(input, bias) == 0)) {
        return opdi_complex_convolution(call, bias);
    }
    if (opdi_conv_read(call, 3, input, weight, bias, &conv) != 0) { return -1; }
    opd_tensor *out = opdi_result_format(call, 0, conv.last, conv.sizes, conv.nd + 2, OPDI_DTYPE(input));
    if (!out) { return -1; }
    if (!out->data || out->numel == 0) { return 0; }
    opd_scalar_type dtype = (opd_scalar_type)conv.vol.dtype;
    input = opdi_dense_as(input, dtype);
    weight = opdi_dense_as(weight, dtype);
    opd_tensor *output = opdi_staging(out, dtype);
    if (bias && !(bias = opdi_dense_as(bias, dtype))) { return -1; }
    if (!input || !weight || !output || opdi_vol_run(&conv.vol, conv.transposed ? OPDI_VOL_GX : OPDI_VOL_Y,
                                                     conv.transposed ? output : input, weight,
                                                     conv.transposed ? input : output, &bias) != 0) {
        return -1;
    }
    if (bias) { opdi_bias_add(output, bias); }
    return opdi_staging_store(out, output);
}
/* The backward function of convolution: calls convolution_backward for the gradients that are needed. */
static int opdi_convolution_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *rets[3];
    bool mask[3];
    opd_ints bias = opd_bw_sizes(bw, 2);
    for (int i = 0; i < 3; i++) { mask[i] = opd_bw_needs(bw, i); }
    if (opd_convolution_backward(rets, grad, opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1),
                                 mask[2] ? opd_value_of_ints(bias) : OPD_NONE, opd_bw_ints(bw, 3),
                                 opd_bw_ints(bw, 4), opd_bw_ints(bw, 5), opd_bw_value(bw, 6).u.i != 0,
                                 opd_bw_ints(bw, 7), opd_bw_value(bw, 8).u.i, opd_value_bools(mask, 3)) != 0) {
        return -1;
    }
    for (int i = 0; i < 3; i++) { OPDI_BW_RETURN(i, rets[i]); }
    return 0;
}
/* The batching rule of convolution.  The examples of the input become samples.  If the weight is batched, too, the
   examples become channels and groups instead. */
static int opdi_convolution_batch(opd_call *call) {
    const bool transposed = opd_arg_bool(call, 6);
    const opd_tensor *one = opd_arg_tensor(call, 0), *each = opd_arg_tensor(call, 1);
    int64_t groups = opd_arg_int(call, 8), shape[OPD_MAX_DIMS];
    int dim[3], at = 0;
    opd_tensor *tensors[3], *output;
    for (int i = 0; i < 3; i++) { tensors[i] = opd_batch_arg(call, i, &dim[i]); }
    if (opd_batch_size() == 0) { return opdi_batch_empty(call); }
    if (one->ndim != each->ndim || one->ndim < 3 || one->ndim > 5 ||
        (tensors[2] && opd_arg_tensor(call, 2)->ndim != 1)) {
        return opdi_batch_unfit(call);
    }
    if (dim[1] < 0 && dim[2] < 0) {
        return opdi_batch_fold(call, call->args, 1, false);
    }
    if (dim[1] < 0 && dim[0] < 0) { output = tensors[0]; }
    else if (dim[1] < 0) { output = opdi_batch_merge(opd_batch_front(tensors[0], dim[0]), 0); }
    else {
        at = 1;
        output = tensors[0];
        if (dim[0] >= 0 || groups > 1) {
            output = opdi_batch_channels(tensors[0], dim[0]);
            tensors[1] = opdi_batch_merge(opd_batch_front(tensors[1], dim[1]), 0);
            groups = opdi_size_times(OPDI_MAX(groups, 0), opd_batch_size());
        } else if (transposed) { tensors[1] = opdi_batch_channels(tensors[1], dim[1]); }
        else { tensors[1] = opdi_batch_merge(opd_batch_front(tensors[1], dim[1]), 0); }
    }
    output = opd_convolution(output, tensors[1], NULL, opd_arg_ints(call, 3), opd_arg_ints(call, 4),
                             opd_arg_ints(call, 5), transposed, opd_arg_ints(call, 7), groups);
    if (!output) { return -1; }
    if (at) { output = opdi_batch_split(output, 1, opdi_sizes(output)[1] / opd_batch_size()); }
    else if (dim[0] >= 0) { output = opdi_batch_split(output, 0, opdi_sizes(one)[0]); }
    else { at = -1; }
    if (output && tensors[2] && output->numel) {  /* bias becomes [B, 1, O, 1, ..], or [B, O, 1, ..] if samples come
                                                     first; images without channels have a result without channels */
        int count = 0;
        if (dim[2] >= 0) {
            shape[count++] = opd_batch_size();
            if (at != 1) { shape[count++] = 1; }
        }
        shape[count++] = opd_arg_tensor(call, 2)->numel;
        for (int i = 2; i < one->ndim; i++) { shape[count++] = 1; }
        output = opd_add(output,
                         opd_reshape(dim[2] > 0 ? opd_batch_front(tensors[2], dim[2]) : tensors[2],
                                     opd_ints_of(shape, count)));
        if (at < 0) { at = 0; }
    }
    return opd_batch_return(call, output, at);
}
static int opdi_convolution_jvp(opd_jvp_call *jv) { return opdi_bilinear_jvp(jv, 0, 1, 2); }
/* opd_convolution: convolution of any kind; if transposed, the adjoint of a convolution */
OPDI_OP(convolution) {
    op->schema = "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
        "bool transposed, int[] output_padding, int groups) -> Tensor";
    op->cpu = op->fake = opdi_convolution_kernel; op->backward = opdi_convolution_backward; op->save = "input, weight";
    op->jvp = opdi_convolution_jvp;
    op->vmap = opdi_convolution_batch; op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_convolution;
    op->out = "convolution.out";
    op->cases = "[2,2,5,4], [3,2,3,2], [3], (1,1), (1,0), (1,1), False, (0,0), 1; [1,4,5], [2,2,2], None, (2,), (1,), "
        "(2,), False, (0,), 2; [2,2,3,3], [2,3,2,2], [3], (2,2), (1,1), (1,1), True, (1,0), 1; [1,2,3,3,3], "
        "[2,2,2,2,2], [2], (1,), (0,), (1,), False, (0,), 1; [1,2,4,4], [6,2,2,2], None, (1,1), (0,0), (1,1), False, "
        "(0,0), 1";
}

OPDI_INTERNAL int opdi_conv_same_sizes(const opd_tensor *grad, const int64_t *sizes, int ndim) {
    if (grad->ndim != ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected a tensor of dimension %d, but got %d", ndim, grad->ndim);
    }
    for (int dim = 0; dim < ndim; dim++) {
        if (opdi_sizes(grad)[dim] != sizes[dim]) {
            return opd_fail(OPD_ERROR_SHAPE, "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: "
                            "dimension %d and tensor.size[%d] = %lld",
                            ndim, dim, (long long)sizes[dim], ndim, dim, (long long)opdi_sizes(grad)[dim]);
        }
    }
    return 0;
}
/* Makes result i of convolution_backward: the gradient of input (0), weight (1) or bias (2), or None if output_mask
   does not select it.  Returns 0, or -1 and sets an error. */
static int opdi_conv_gradient(opd_call *call, int i, const opdi_conv_call *conv, opd_tensor *grad, opd_tensor *input,
                              opd_tensor *weight) {
    const opd_scalar_type type = (opd_scalar_type)conv->vol.dtype, dtype = OPDI_DTYPE(opd_arg_tensor(call, 1));
    const opd_tensor *like = i == 0 ? opd_arg_tensor(call, 1) : opd_arg_tensor(call, 2);
    opd_tensor *out;
    int rc = 0;
    int64_t channels = conv->sizes[1];
    if (!opdi_mask_at(call, 10, i)) { return opd_return_value(call, OPD_NONE); }
    if (channels == 0 && !opd_arg_is_none(call, 3) && opd_arg_ints(call, 3).n == 1) {
        channels = opd_arg_ints(call, 3).data[0];            /* sizes[1] is 0 because input has no channels */
    }
    if (i == 2) { out = opd_result(call, 2, &channels, 1, dtype); }
    else { out = opdi_result_format(call, i, conv->last, opdi_sizes(like), like->ndim, dtype); }
    if (!out) { return -1; }
    if (out->data && out->numel) {
        opd_tensor *output = opdi_staging(out, type);
        if (!output) { return -1; }
        if (i == 2 && channels != conv->sizes[1]) {
            memset(output->data, 0, (size_t)channels * opd_dtype_size((opd_scalar_type)output->dtype));
        } else if (i == 2) { opdi_bias_sum(grad, output); }
        else if (i == 1) {
            rc = opdi_vol_run(&conv->vol, OPDI_VOL_GW, conv->transposed ? grad : input, output,
                              conv->transposed ? input : grad, NULL);
        }
        else {
            rc = opdi_vol_run(&conv->vol, conv->transposed ? OPDI_VOL_Y : OPDI_VOL_GX, conv->transposed ? grad : output,
                              weight, conv->transposed ? output : grad, NULL);
        }
        if (rc != 0 || opdi_staging_store(out, output) != 0) { return -1; }
    }
    return opd_return_tensor(call, out);
}
/* Computes convolution_backward of complex numbers by calls with real and imaginary parts.  A product of two complex
   tensors needs all four combinations of parts.  The gradient of the bias needs only two, because it is linear in
   grad_output.  Returns 0, or -1 and sets an error. */
static int opdi_complex_conv_gradients(opd_call *call) {
    /* the arguments whose imaginary parts are taken: none; all three; input and weight; grad_output */
    static const unsigned parts[4] = {0, 7, 6, 1};
    opd_value rets[4][3];
    for (int i = 0; i < 4; i++) { if (opdi_call_parts(call, parts[i], 0, rets[i])) { return -1; } }
    for (int i = 0; i < 3; i++) {
        if (!opdi_mask_at(call, 10, i)) {
            if (opd_return_value(call, OPD_NONE)) { return -1; }
            continue;
        }
        opd_tensor *none = rets[0][i].u.t, *all = rets[1][i].u.t, *factors = rets[2][i].u.t, *grad = rets[3][i].u.t;
        if (i < 2) {
            none = opd_sub(none, all);
            all = opd_add(factors, grad);
        }
        if (opdi_return_parts(call, i, none, all)) { return -1; }
    }
    return 0;
}
/* convolution_backward: computes from grad_output the gradients of input, weight and bias that output_mask selects. */
static int opdi_convolution_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2);
    opdi_conv_call conv;
    if (opdi_is_complex(grad) && opdi_same_dtype(grad, input) == 0 && opdi_same_dtype(grad, weight) == 0) {
        return opdi_complex_conv_gradients(call);
    }
    if (opdi_conv_read(call, 4, input, weight, NULL, &conv) != 0 ||
        opdi_conv_same_sizes(grad, conv.sizes, conv.nd + 2) != 0 || opdi_same_dtype(input, grad) != 0) {
        return -1;
    }
    opd_scalar_type dtype = (opd_scalar_type)conv.vol.dtype;
    if (dtype == OPD_INT64) { return opdi_dtype_fail("slow_conv2d_backward", OPDI_DTYPE(input)); }
    if (input->data && grad->data && weight->data) {
        grad = opdi_dense_as(grad, dtype);
        if (opdi_mask_at(call, 10, 1)) { input = opdi_dense_as(input, dtype); }
        if (opdi_mask_at(call, 10, 0)) { weight = opdi_dense_as(weight, dtype); }
        if (!grad || !input || !weight) { return -1; }
    }
    for (int i = 0; i < 3; i++) { if (opdi_conv_gradient(call, i, &conv, grad, input, weight) != 0) { return -1; } }
    return 0;
}
/* Returns the convolution of `input` and `weight` with the options of the differentiated convolution_backward. */
static opd_tensor *opdi_conv_double_backward(opd_backward_call *bw, opd_tensor *input, opd_tensor *weight) {
    return opd_convolution(input, weight, NULL, opd_bw_ints(bw, 4), opd_bw_ints(bw, 5), opd_bw_ints(bw, 6),
                           opd_bw_value(bw, 7).u.i != 0, opd_bw_ints(bw, 8), opd_bw_value(bw, 9).u.i);
}
static opd_tensor *opdi_conv_double_backward_of(opd_backward_call *bw, opd_tensor *input, opd_tensor *weight, int i) {
    bool mask[3] = {false, false, false};
    opd_tensor *rets[3];
    mask[i] = true;
    if (opd_convolution_backward(rets, opd_bw_tensor(bw, 0), input, weight, OPD_NONE, opd_bw_ints(bw, 4),
                                 opd_bw_ints(bw, 5), opd_bw_ints(bw, 6), opd_bw_value(bw, 7).u.i != 0,
                                 opd_bw_ints(bw, 8), opd_bw_value(bw, 9).u.i, opd_value_bools(mask, 3)) != 0) {
        return NULL;
    }
    return rets[i];
}
/* Computes the gradients of convolution_backward with respect to grad_output, input and weight.  ggI, ggW and ggb
   are the incoming gradients of its results gI, gW and gb (at::native::_convolution_double_backward).  grad_output
   gets conv(ggI, weight) + conv(input, ggW) + ggb, weight gets gW(ggI, grad_output), and input gets gI(ggW,
   grad_output).  Returns 0, or -1 and sets an error. */
static int opdi_convolution_backward_backward(opd_backward_call *bw) {
    opd_tensor *gi = opd_bw_grad(bw, 0), *gw = opd_bw_grad(bw, 1), *gb = opd_bw_grad(bw, 2);
    opd_tensor *input = opd_bw_tensor(bw, 1), *weight = opd_bw_tensor(bw, 2), *grad_out = opd_bw_tensor(bw, 0),
        *sum = NULL;
    if (!input || !weight || !grad_out) { return -1; }
    if (opd_bw_needs(bw, 0)) {
        if (gi) { sum = opdi_conv_double_backward(bw, gi, weight); }
        if (gw) {
            opd_tensor *output = opdi_conv_double_backward(bw, input, gw);
            sum = sum ? opd_add(sum, output) : output;
        }
        if (gb && opdi_sizes(grad_out)[1]) {
            int64_t sizes[5] = {1, -1, 1, 1, 1};
            opd_tensor *second = opdi_expand_to(opdi_reshape_to(gb, sizes, grad_out->ndim), opdi_sizes(grad_out),
                                                grad_out->ndim);
            sum = sum ? opd_add(sum, second) : second;
        }
        if (opd_bw_return(bw, 0, sum) != 0) { return -1; }
    }
    OPDI_BW_RETURN(1, gw ? opdi_conv_double_backward_of(bw, input, gw, 0) : NULL);
    OPDI_BW_RETURN(2, gi ? opdi_conv_double_backward_of(bw, gi, weight, 1) : NULL);
    return opd_ok() ? 0 : -1;
}
/* Returns gradient i (0: input, 1: weight, 2: bias) of convolution_backward for these tensors and `groups`.  The
   other arguments are those of the call.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_conv_back_one(opd_call *call, opd_tensor *grad, opd_tensor *input, opd_tensor *weight,
                                      int64_t groups, int i) {
    bool mask[3] = {false, false, false};
    opd_tensor *rets[3];
    mask[i] = true;
    return grad && input && weight &&
        opd_convolution_backward(rets, grad, input, weight, OPD_NONE, opd_arg_ints(call, 4), opd_arg_ints(call, 5),
                                 opd_arg_ints(call, 6), opd_arg_bool(call, 7), opd_arg_ints(call, 8), groups,
                                 opd_value_bools(mask, 3)) == 0 ? rets[i] : NULL;
}
/* Returns a placeholder for an argument of which only sizes, dtype and device matter.  It has the dtype and device
   of `like` and the sizes of `one`.  If at >= 0, the size of dim `at` is multiplied by the number of examples. */
static opd_tensor *opdi_batch_blank(opd_tensor *like, const opd_tensor *one, int at) {
    int64_t sizes[OPD_MAX_DIMS];
    memcpy(sizes, opdi_sizes(one), (size_t)one->ndim * sizeof *sizes);
    if (at >= 0) { sizes[at] = opdi_size_times(sizes[at], opd_batch_size()); }
    return opd_expand(opd_new_zeros(like, opd_ints_of(sizes, 0)), opd_ints_of(sizes, one->ndim));
}
/* Returns gradient i (0: input, 1: weight, 2: bias) for all examples of vmap's batch.  Sets *at to the dim of the
   examples in the result, or to -1 if the gradient is the same for all examples. */
static opd_tensor *opdi_conv_back_batch(opd_call *call, int i, int *at) {
    const int64_t groups = opd_arg_int(call, 9);
    const opd_tensor *one = opd_arg_tensor(call, i < 2 ? i + 1 : 0);        /* has one example's sizes */
    int dim[3], count = 0;
    opd_tensor *tensors[3], *result;
    for (int k = 0; k < 3; k++) { tensors[k] = opd_batch_arg(call, k, &dim[k]); }
    *at = i || dim[2] < 0 ? 0 : 1;
    if (i == 2) {
        int64_t dims[4];
        for (int k = 0; k < one->ndim; k++) { if (k != 1) { dims[count++] = k + (dim[0] >= 0); } }
        if (dim[0] < 0) { *at = -1; }
        return opd_sum_dim(dim[0] > 0 ? opd_batch_front(tensors[0], dim[0]) : tensors[0], opd_ints_of(dims, count),
                           false);
    }
    if (dim[0] < 0 && dim[i ? 1 : 2] < 0) {
        *at = -1;
        tensors[i + 1] = opdi_batch_blank(tensors[i + 1], one, -1);
        return opdi_conv_back_one(call, tensors[0], tensors[1], tensors[2], groups, i);
    }
    if (i == 0 && dim[2] < 0) {                   /* the examples become samples */
        result = opdi_conv_back_one(call, opdi_batch_merge(opd_batch_front(tensors[0], dim[0]), 0),
                                    opdi_batch_blank(tensors[1], one, 0), tensors[2], groups, 0);
    } else {                                      /* the examples become channels */
        tensors[0] = opdi_batch_channels(tensors[0], dim[0]);
        tensors[1] = i ? opdi_batch_channels(tensors[1], dim[1]) : opdi_batch_blank(tensors[1], one, 1);
        tensors[2] = i ? opdi_batch_blank(tensors[2], one, 0)
            : opdi_batch_merge(opd_batch_front(tensors[2], dim[2]), 0);
        result = opdi_conv_back_one(call, tensors[0], tensors[1], tensors[2],
                                    opdi_size_times(OPDI_MAX(groups, 0), opd_batch_size()), i);
    }
    return opdi_batch_split(result, *at, opdi_sizes(one)[*at]);
}
/* Returns derivative i of a convolution without results: zeros, which are the same for all examples. */
static opd_tensor *opdi_conv_back_nothing(opd_call *call, int i, int *at) {
    int dim;
    const opd_tensor *const of = i < 2 ? opd_arg_tensor(call, 1 + i) : opd_arg_tensor(call, 0);
    const int64_t channels = opdi_sizes(of)[1];
    const opd_ints sizes = i < 2 ? opd_ints_of(opdi_sizes(of), of->ndim)
        : opd_arg_is_none(call, 3) ? opd_ints_of(&channels, 1) : opd_arg_ints(call, 3);
    *at = -1;
    return opd_new_zeros(opd_batch_arg(call, 0, &dim), sizes);
}
static int opdi_convolution_backward_batch(opd_call *call) {
    const opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1),
        *weight = opd_arg_tensor(call, 2);
    int at;
    if (opd_batch_size() == 0) { return opdi_batch_empty(call); }
    if (grad->ndim != input->ndim || grad->ndim != weight->ndim || grad->ndim < 3 || grad->ndim > 5 ||
        opd_call_args(call)[10].n != 3) {
        return opdi_batch_unfit(call);
    }
    for (int i = 0; i < 3; i++) {
        if (opd_call_args(call)[10].u.bools[i]) {
            opd_tensor *const result = grad->numel ? opdi_conv_back_batch(call, i, &at)
                : opdi_conv_back_nothing(call, i, &at);
            if (opd_batch_return(call, result, at)) { return -1; }
        } else if (opd_return_value(call, OPD_NONE)) { return -1; }
    }
    return 0;
}
/* opd_convolution_backward: those derivatives of convolution by input, weight and bias that output_mask selects */
OPDI_OP(convolution_backward) {
    op->schema = "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, int[] "
        "stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, bool[3] "
        "output_mask) -> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_convolution_backward_kernel; op->backward = opdi_convolution_backward_backward;
    op->save = "grad_output, input, weight";
    op->vmap = opdi_convolution_backward_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_convolution_backward;
    op->out = "convolution_backward.out(out0, out1, out2)";
    op->cases = "[2,3,5,3], [2,2,5,4], [3,2,3,2], (3,), (1,1), (1,0), (1,1), False, (0,0), 1, (True,True,True)";
}

//== operators that call convolution ===================================================================================

static int opdi_under_convolution_kernel(opd_call *call) {
    /* _convolution: ignores the arguments benchmark, deterministic, cudnn_enabled and allow_tf32 */
    const opd_value *arg = opd_call_args(call);
    return opd_return_tensor(call,
                             opd_convolution(arg[0].u.t, arg[1].u.t, opd_arg_tensor(call, 2), opd_arg_ints(call, 3),
                                             opd_arg_ints(call, 4), opd_arg_ints(call, 5), opd_arg_bool(call, 6),
                                             opd_arg_ints(call, 7), opd_arg_int(call, 8)));
}
#define OPDI_CONV_ARGS "Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, " \
                       "bool transposed, int[] output_padding, "                                            \
                       "int groups, bool benchmark, bool deterministic, bool cudnn_enabled"
/* opd_under_convolution: convolution; the flags for other backends are ignored */
OPDI_OP(_convolution) {
    op->schema = "_convolution(" OPDI_CONV_ARGS ", bool allow_tf32) -> Tensor";
    op->composite = opdi_under_convolution_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->out = "_convolution.out";
    op->cases = "[1,2,4,4], [3,2,2,2], [3], (1,1), (0,0), (1,1), False, (0,0), 1, False, False, True, True";
}
/* opd_under_convolution_deprecated: convolution; the flags for other backends are ignored */
OPDI_OP(_convolution_deprecated) {
    op->schema = "_convolution.deprecated(" OPDI_CONV_ARGS ") -> Tensor";
    op->composite = opdi_under_convolution_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,4,4], [3,2,2,2], [3], (1,1), (0,0), (1,1), False, (0,0), 1, False, False, True";
}

/* Returns a convolution with padding='same'.  If the two sides of a dim need different padding, pads both sides by
   the larger number and drops the first output of that dim.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_conv_same(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                  opd_ints dilation, int64_t groups, opd_ints zero) {
    int64_t pad[3], skip[3];
    int ndim = weight->ndim - 2;
    bool uneven = false;
    if (opdi_conv_dims_check(weight)) { return NULL; }
    for (int i = 0; i < stride.n; i++) {
        if (stride.data[i] != 1) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "padding='same' is not supported for strided convolutions");
            return NULL;
        }
    }
    for (int i = 0; i < ndim; i++) {
        const int64_t dim = dilation.n == 0 ? 1
            : dilation.data[dilation.n == 1 ? 0 : OPDI_MIN((int64_t)i, dilation.n - 1)];
        const int64_t total = dim > 0 && dim < (int64_t)1 << 30 ? dim * (opdi_sizes(weight)[2 + i] - 1) : 0;
        pad[i] = total / 2 + total % 2;
        skip[i] = total % 2;
        uneven |= skip[i] != 0;
    }
    opd_tensor *output = opd_convolution(input, weight, bias, stride, opd_ints_of(pad, ndim), dilation, false, zero,
                                         groups);
    if (!uneven) { return output; }
    for (int i = 0; i < ndim; i++) {
        if (skip[i]) { output = opd_slice(output, 2 + i, opd_value_int(1), OPD_NONE, 1); }
    }
    return output ? opd_contiguous_full(output, opdi_format_of(output)) : NULL;
}
/* Runs conv<ndim>d or, if `transposed` is true, conv_transpose<ndim>d.  An input without a batch dim temporarily gets
   one.  Returns 0, or -1 and sets an error. */
static int opdi_conv_nd(opd_call *call, int ndim, bool transposed) {
    static const int64_t zeros[1] = {0};
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2),
        *output;
    const opd_ints stride = opd_arg_ints(call, 3), zero = opd_ints_of(zeros, 1);
    const bool batched = input->ndim == ndim + 2, text = opd_call_args(call)[4].tag == OPD_TAG_STR;
    if (!batched && input->ndim != ndim + 1) {
        char first[256];
        return opd_fail(OPD_ERROR_SHAPE, "Expected %dD (unbatched) or %dD (batched) input to conv%s%dd, but got input "
                        "of size: %s", ndim + 1, ndim + 2, transposed ? "_transpose" : "", ndim,
                        opdi_sizes_text(opdi_sizes(input), input->ndim, first, sizeof first));
    }
    if (!batched) { input = opdi_unsqueeze_at(input, 0); }
    if (!input) { return -1; }
    if (transposed) {
        output = opd_convolution(input, weight, bias, stride, opd_arg_ints(call, 4), opd_arg_ints(call, 7), true,
                                 opd_arg_ints(call, 5), opd_arg_int(call, 6));
    } else if (!text) {
        output = opd_convolution(input, weight, bias, stride, opd_arg_ints(call, 4), opd_arg_ints(call, 5), false, zero,
                                 opd_arg_int(call, 6));
    } else if (strcmp(opd_arg_str(call, 4), "valid") == 0) {
        output = opd_convolution(input, weight, bias, stride, zero, opd_arg_ints(call, 5), false, zero,
                                 opd_arg_int(call, 6));
    } else if (strcmp(opd_arg_str(call, 4), "same") == 0) {
        output = opdi_conv_same(input, weight, bias, stride, opd_arg_ints(call, 5), opd_arg_int(call, 6), zero);
    } else { return opd_fail(OPD_ERROR_ARGUMENT, "Invalid padding string: '%s'", opd_arg_str(call, 4)); }
    return opd_return_tensor(call, batched ? output : opdi_squeeze_at(output, 0));
}
static int opdi_conv1d_kernel(opd_call *call) { return opdi_conv_nd(call, 1, false); }
/* opd_conv1d(input, weight, bias, stride, padding): convolution of [N, C, L]; padding: how many zeros are added at each
   end of each dim */
OPDI_OP(conv1d) {
    op->schema = "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, int[1] "
        "dilation=1, int groups=1) -> Tensor";
    op->composite = opdi_conv1d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,5], [3,2,2], [3]; [2,5], [3,2,2]";
}

/* opd_conv1d_padding(input, weight, bias, stride, padding): convolution of [N, C, L]; padding is "valid" (none) or
   "same" (result as large as input) */
OPDI_OP(conv1d_padding) {
    op->schema = "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str "
        "padding='valid', int[1] dilation=1, int groups=1) -> Tensor";
    op->composite = opdi_conv1d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,5], [3,2,2], [3], 1, 'same'";
}

static int opdi_conv2d_kernel(opd_call *call) { return opdi_conv_nd(call, 2, false); }
/* opd_conv2d(input, weight, bias, stride, padding): convolution of [N, C, H, W]; padding: how many zeros are added at
   each end of each dim */
OPDI_OP(conv2d) {
    op->schema = "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] "
        "dilation=1, int groups=1) -> Tensor";
    op->composite = opdi_conv2d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,5,4], [3,2,2,3], [3]; [2,4,4], [3,2,2,2], None, 2, 1";
}

/* opd_conv2d_padding(input, weight, bias, stride, padding): convolution of [N, C, H, W]; padding is "valid" (none) or
   "same" (result as large as input) */
OPDI_OP(conv2d_padding) {
    op->schema = "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str "
        "padding='valid', int[2] dilation=1, int groups=1) -> Tensor";
    op->composite = opdi_conv2d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,4,4], [3,2,2,3], [3], 1, 'same'";
}

/* _convolution_mode: convolution whose padding is given as text. */
static int opdi_convolution_mode_kernel(opd_call *call) {
    static const int64_t zeros[1] = {0};
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2);
    const opd_ints stride = opd_arg_ints(call, 3), dilation = opd_arg_ints(call, 5), zero = opd_ints_of(zeros, 1);
    const int64_t groups = opd_arg_int(call, 6);
    if (strcmp(opd_arg_str(call, 4), "same") == 0) {
        return opd_return_tensor(call, opdi_conv_same(input, weight, bias, stride, dilation, groups, zero));
    }
    if (strcmp(opd_arg_str(call, 4), "valid") != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Invalid padding string: '%s'", opd_arg_str(call, 4));
    }
    return opd_return_tensor(call, opd_convolution(input, weight, bias, stride, zero, dilation, false, zero, groups));
}
/* opd__convolution_mode: convolution with padding "same" or "valid" */
OPDI_OP(_convolution_mode) {
    op->schema = "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[] stride, str padding, int[] "
        "dilation, int groups) -> Tensor";
    op->composite = opdi_convolution_mode_kernel;
    op->cases = "[1,2,4,4], [3,2,2,3], [3], (1,1), 'same', (1,1), 1; [1,2,5], [3,2,2], [3], (2), 'valid', (1), 1";
}
/* thnn_conv2d: convolves images after reshaping the weight to [out, in, kernel_size]. */
static int opdi_thnn_conv2d_kernel(opd_call *call) {
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1);
    const opd_ints kernel = opd_arg_ints(call, 2);
    char text[256];
    if (input->ndim != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected 4D input tensor, but got: %s",
                        opdi_sizes_text(opdi_sizes(input), input->ndim, text, sizeof text));
    }
    if (kernel.n != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "It is expected kernel_size equals to 2, but got size %lld",
                        (long long)kernel.n);
    }
    if (kernel.data[0] <= 0 || kernel.data[1] <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "kernel size should be greater than zero, but got kernel_height: %lld "
                        "kernel_width: %lld", (long long)kernel.data[0], (long long)kernel.data[1]);
    }
    const int64_t rows = weight->ndim > 0 ? opdi_sizes(weight)[0] : 0;
    const int64_t planes = rows > 0 ? weight->numel / rows / kernel.data[0] / kernel.data[1] : 0;
    if (opdi_sizes(input)[1] != planes) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected a tensor of dimension 4 and tensor.size[1] == %lld but got: "
                        "dimension 4 and tensor.size[1] = %lld", (long long)planes, (long long)opdi_sizes(input)[1]);
    }
    const int64_t sizes[4] = {rows, planes, kernel.data[0], kernel.data[1]};
    return opd_return_tensor(call, opd_convolution(input, opd_reshape(weight, opd_ints_of(sizes, 4)),
                                                   opd_arg_tensor(call, 3), opd_arg_ints(call, 4),
                                                   opd_arg_ints(call, 5), opd_ints_of(ones, 2), false,
                                                   opd_ints_of(zeros, 2), 1));
}
/* opd_thnn_conv2d: conv2d of images by a weight that is reshaped to kernel_size */
OPDI_OP(thnn_conv2d) {
    op->schema = "thnn_conv2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias=None, int[2] stride=1, "
        "int[2] padding=0) -> Tensor";
    op->composite = opdi_thnn_conv2d_kernel;
    op->out = "thnn_conv2d.out";
    op->cases = "[1,2,4,4], [3,2,2,3], (2,3), [3]; [1,2,4,4], [3,12], (2,3), None, (2,2), (1,1)";
}

static int opdi_conv3d_kernel(opd_call *call) { return opdi_conv_nd(call, 3, false); }
/* opd_conv3d(input, weight, bias, stride, padding): convolution of [N, C, D, H, W]; padding: how many zeros are added
   at each end of each dim */
OPDI_OP(conv3d) {
    op->schema = "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, int[3] "
        "dilation=1, int groups=1) -> Tensor";
    op->composite = opdi_conv3d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,3,3,3], [2,2,2,2,2], [2]";
}

/* opd_conv3d_padding(input, weight, bias, stride, padding): convolution of [N, C, D, H, W]; padding is "valid" (none)
   or "same" (result as large as input) */
OPDI_OP(conv3d_padding) {
    op->schema = "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str "
        "padding='valid', int[3] dilation=1, int groups=1) -> Tensor";
    op->composite = opdi_conv3d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,3,3,3], [2,2,2,2,2], [2], 1, 'same'";
}
/* Returns conv_tbc with padding, computed as a sum over the taps of the weight.  Only reads rows that exist, so that
   zeros of the padding are never multiplied by infinities. */
static opd_tensor *opdi_conv_tbc_padded(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, int64_t pad) {
    const int64_t rows = opdi_sizes(input)[0], taps = opdi_sizes(weight)[0], count = rows + 2 * pad - taps + 1;
    const int64_t sizes[] = {count, opdi_sizes(input)[1], opdi_sizes(weight)[2]};
    opd_tensor *sum = opd_expand(bias, opd_ints_of(sizes, 3));
    for (int64_t k = 0; k < taps && sum; k++) {
        const int64_t first = k > pad ? k - pad : 0, above = k > pad ? 0 : pad - k;
        const int64_t there = OPDI_MIN(count - above, rows - first);
        const int64_t sides[] = {0, 0, 0, 0, above, count - above - there};
        if (there <= 0) { continue; }
        opd_tensor *const first_part = opd_narrow(input, 0, first, there),
            *part = opd_matmul(first_part, opd_select(weight, 0, k));
        sum = opd_add(sum, opd_constant_pad_nd(part, opd_ints_of(sides, 6)));
    }
    return sum && taps ? sum : opd_clone(sum);
}
static int opdi_conv_tbc_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2);
    const int64_t one = 1, pad = opd_arg_int(call, 3), there[] = {1, 2, 0}, back[] = {2, 0, 1},
        turned[] = {2, 1, 0};
    if (input->ndim != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "Input must have 3 dims: time, batch, in_channel");
    }
    if (weight->ndim != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.");
    }
    if (bias->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "Bias must be 1-D"); }
    if (opdi_sizes(input)[2] != opdi_sizes(weight)[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "Input dim 2 (input channels) is not == dim 1 in the weight tensor");
    }
    if (opdi_sizes(weight)[2] != opdi_sizes(bias)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "Bias size must equal dim 2 in the weight tensor (output channels).");
    }
    if (pad > 0 && pad < (int64_t)1 << 40 && opdi_sizes(weight)[0] <= opdi_sizes(input)[0] + 2 * pad) {
        return opd_return_tensor(call, opdi_conv_tbc_padded(input, weight, bias, pad));
    }
    opd_tensor *const first_turned = opd_permute(input, opd_ints_of(there, 3)),
        *rows = opd_conv1d_full(first_turned, opd_permute(weight, opd_ints_of(turned, 3)), bias,
        opd_ints_of(&one, 1), opd_ints_of(&pad, 1), opd_ints_of(&one, 1), 1);
    return opd_return_tensor(call, opd_contiguous(opd_permute(rows, opd_ints_of(back, 3))));
}
/* opd_conv_tbc: conv1d of [time, batch, channels] by a weight [width, channels, channels out] */
OPDI_OP(conv_tbc) {
    op->schema = "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor";
    op->composite = opdi_conv_tbc_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->out = "conv_tbc.out";
    op->cases = "[5,2,3], [3,3,4], [4]; [4,1,2], [3,2,2], [2], 1";
}

static int opdi_conv_transpose1d_kernel(opd_call *call) { return opdi_conv_nd(call, 1, true); }
/* opd_conv_transpose1d(input, weight, bias, stride, padding): adjoint of conv1d */
OPDI_OP(conv_transpose1d) {
    op->schema = "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
        "int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor";
    op->composite = opdi_conv_transpose1d_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,4], [2,3,2], [3]";
}

static int opdi_conv_transpose2d_input_kernel(opd_call *call) { return opdi_conv_nd(call, 2, true); }
/* opd_conv_transpose2d(input, weight, bias, stride, padding): adjoint of conv2d */
OPDI_OP(conv_transpose2d_input) {
    op->schema = "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "
        "padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor";
    op->composite = opdi_conv_transpose2d_input_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,3,3], [2,3,2,2], [3], 2, 1, 1";
}

static int opdi_conv_transpose3d_input_kernel(opd_call *call) { return opdi_conv_nd(call, 3, true); }
/* opd_conv_transpose3d(input, weight, bias, stride, padding): adjoint of conv3d */
OPDI_OP(conv_transpose3d_input) {
    op->schema = "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] "
        "padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor";
    op->composite = opdi_conv_transpose3d_input_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->cases = "[1,2,2,2,2], [2,1,2,2,2]";
}
