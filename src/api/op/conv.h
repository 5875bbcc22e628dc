//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:conv       convolution
//----------------------------------------------------------------------------------------------------------------------

/* convolution: convolution of any kind; transposed: its adjoint */
OPD_API opd_tensor *opd_convolution(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    opd_ints padding, opd_ints dilation, bool transposed, opd_ints output_padding,
                                    int64_t groups);
/* convolution_backward: derivatives of convolution by input, weight and bias, as output_mask says */
OPD_API int opd_convolution_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *input, opd_tensor *weight,
                                     opd_value bias_sizes, opd_ints stride, opd_ints padding, opd_ints dilation,
                                     bool transposed, opd_ints output_padding, int64_t groups, opd_value output_mask);
/* _convolution: convolution, with switches that are not used here */
OPD_API opd_tensor *opd_under_convolution(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        opd_ints padding, opd_ints dilation, bool transposed, opd_ints output_padding,
                                        int64_t groups, bool benchmark, bool deterministic, bool cudnn_enabled,
                                        bool allow_tf32);
/* _convolution.deprecated: convolution, with switches that are not used here */
OPD_API opd_tensor *opd_under_convolution_deprecated(opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                        opd_ints stride, opd_ints padding, opd_ints dilation, bool transposed,
                                        opd_ints output_padding, int64_t groups, bool benchmark, bool deterministic,
                                        bool cudnn_enabled);
/* conv1d: convolution [N, C, L]; padding by numbers, "valid" or "same" */
OPD_API opd_tensor *opd_conv1d(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv1d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    opd_ints padding, opd_ints dilation, int64_t groups);
/* conv1d.padding: convolution [N, C, L]; padding by numbers, "valid" or "same" */
OPD_API opd_tensor *opd_conv1d_padding(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv1d_padding_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        const char *padding, opd_ints dilation, int64_t groups);
/* conv2d: convolution [N, C, H, W]; padding by numbers, "valid" or "same" */
OPD_API opd_tensor *opd_conv2d(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv2d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    opd_ints padding, opd_ints dilation, int64_t groups);
/* conv2d.padding: convolution [N, C, H, W]; padding by numbers, "valid" or "same" */
OPD_API opd_tensor *opd_conv2d_padding(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv2d_padding_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        const char *padding, opd_ints dilation, int64_t groups);
/* conv3d: convolution [N, C, D, H, W]; padding by numbers, "valid" or "same" */
OPD_API opd_tensor *opd_conv3d(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv3d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                    opd_ints padding, opd_ints dilation, int64_t groups);
/* conv3d.padding: convolution [N, C, D, H, W]; padding by numbers, "valid" or "same" */
OPD_API opd_tensor *opd_conv3d_padding(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv3d_padding_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        const char *padding, opd_ints dilation, int64_t groups);
/* conv_tbc: conv1d of [time, batch, channels] by a weight [width, channels, channels out] */
OPD_API opd_tensor *opd_conv_tbc(opd_tensor *self, opd_tensor *weight, opd_tensor *bias);
OPD_API opd_tensor *opd_conv_tbc_full(opd_tensor *self, opd_tensor *weight, opd_tensor *bias, int64_t pad);
/* thnn_conv2d: conv2d of images, with the kernel's size */
OPD_API opd_tensor *opd_thnn_conv2d(opd_tensor *self, opd_tensor *weight, opd_ints kernel_size);
OPD_API opd_tensor *opd_thnn_conv2d_full(opd_tensor *self, opd_tensor *weight, opd_ints kernel_size, opd_tensor *bias,
                                        opd_ints stride, opd_ints padding);
/* _convolution_mode: convolution with padding "same" or "valid" */
OPD_API opd_tensor *opd__convolution_mode(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        const char *padding, opd_ints dilation, int64_t groups);
/* conv_transpose1d: adjoint of conv1d */
OPD_API opd_tensor *opd_conv_transpose1d(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv_transpose1d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        opd_ints padding, opd_ints output_padding, int64_t groups, opd_ints dilation);
/* conv_transpose2d.input: adjoint of conv2d */
OPD_API opd_tensor *opd_conv_transpose2d(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv_transpose2d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        opd_ints padding, opd_ints output_padding, int64_t groups, opd_ints dilation);
/* conv_transpose3d.input: adjoint of conv3d */
OPD_API opd_tensor *opd_conv_transpose3d(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_conv_transpose3d_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_ints stride,
                                        opd_ints padding, opd_ints output_padding, int64_t groups, opd_ints dilation);

