//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:pool       pooling
//----------------------------------------------------------------------------------------------------------------------

/* max_pool2d_with_indices: the greatest of each window [.., H, W], and where */
OPD_API int opd_max_pool2d_with_indices(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size);
OPD_API int opd_max_pool2d_with_indices_full(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                        opd_ints padding, opd_ints dilation, bool ceil_mode);
/* max_pool2d_with_indices_backward: derivative of max_pool2d_with_indices */
OPD_API opd_tensor *opd_max_pool2d_with_indices_backward(opd_tensor *grad_output, opd_tensor *self,
                                        opd_ints kernel_size, opd_ints stride, opd_ints padding, opd_ints dilation,
                                        bool ceil_mode, opd_tensor *indices);
/* max_pool3d_with_indices: the greatest of each window [.., D, H, W], and where */
OPD_API int opd_max_pool3d_with_indices(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size);
OPD_API int opd_max_pool3d_with_indices_full(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                        opd_ints padding, opd_ints dilation, bool ceil_mode);
/* max_pool3d_with_indices_backward: derivative of max_pool3d_with_indices */
OPD_API opd_tensor *opd_max_pool3d_with_indices_backward(opd_tensor *grad_output, opd_tensor *self,
                                        opd_ints kernel_size, opd_ints stride, opd_ints padding, opd_ints dilation,
                                        bool ceil_mode, opd_tensor *indices);
/* max_pool2d: the greatest of each window [.., H, W] */
OPD_API opd_tensor *opd_max_pool2d(opd_tensor *self, opd_ints kernel_size);
OPD_API opd_tensor *opd_max_pool2d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                        opd_ints dilation, bool ceil_mode);
/* max_pool3d: the greatest of each window [.., D, H, W] */
OPD_API opd_tensor *opd_max_pool3d(opd_tensor *self, opd_ints kernel_size);
OPD_API opd_tensor *opd_max_pool3d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                        opd_ints dilation, bool ceil_mode);
/* max_pool1d_with_indices: the greatest of each window [.., L], and where */
OPD_API int opd_max_pool1d_with_indices(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size);
OPD_API int opd_max_pool1d_with_indices_full(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints stride,
                                        opd_ints padding, opd_ints dilation, bool ceil_mode);
/* max_pool1d: the greatest of each window [.., L] */
OPD_API opd_tensor *opd_max_pool1d(opd_tensor *self, opd_ints kernel_size);
OPD_API opd_tensor *opd_max_pool1d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                        opd_ints dilation, bool ceil_mode);
/* avg_pool2d: the mean of each window [.., H, W] */
OPD_API opd_tensor *opd_avg_pool2d(opd_tensor *self, opd_ints kernel_size);
OPD_API opd_tensor *opd_avg_pool2d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                        bool ceil_mode, bool count_include_pad, opd_value divisor_override);
/* avg_pool2d_backward: derivative of avg_pool2d */
OPD_API opd_tensor *opd_avg_pool2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints stride, opd_ints padding, bool ceil_mode, bool count_include_pad,
                                        opd_value divisor_override);
/* avg_pool3d: the mean of each window [.., D, H, W] */
OPD_API opd_tensor *opd_avg_pool3d(opd_tensor *self, opd_ints kernel_size);
OPD_API opd_tensor *opd_avg_pool3d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                        bool ceil_mode, bool count_include_pad, opd_value divisor_override);
/* avg_pool3d_backward: derivative of avg_pool3d */
OPD_API opd_tensor *opd_avg_pool3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints stride, opd_ints padding, bool ceil_mode, bool count_include_pad,
                                        opd_value divisor_override);
/* avg_pool1d: the mean of each window [.., L] */
OPD_API opd_tensor *opd_avg_pool1d(opd_tensor *self, opd_ints kernel_size);
OPD_API opd_tensor *opd_avg_pool1d_full(opd_tensor *self, opd_ints kernel_size, opd_ints stride, opd_ints padding,
                                        bool ceil_mode, bool count_include_pad);
/* _adaptive_avg_pool2d: adaptive_avg_pool2d of more than one place */
OPD_API opd_tensor *opd_under_adaptive_avg_pool2d(opd_tensor *self, opd_ints output_size);
/* _adaptive_avg_pool2d_backward: derivative of adaptive_avg_pool2d */
OPD_API opd_tensor *opd_adaptive_avg_pool2d_backward(opd_tensor *grad_output, opd_tensor *self);
/* _adaptive_avg_pool3d: adaptive_avg_pool3d of more than one place */
OPD_API opd_tensor *opd_under_adaptive_avg_pool3d(opd_tensor *self, opd_ints output_size);
/* _adaptive_avg_pool3d_backward: derivative of adaptive_avg_pool3d */
OPD_API opd_tensor *opd_adaptive_avg_pool3d_backward(opd_tensor *grad_output, opd_tensor *self);
/* adaptive_max_pool2d: the greatest of output_size windows [.., H, W], and where */
OPD_API int opd_adaptive_max_pool2d(opd_tensor **rets, opd_tensor *self, opd_ints output_size);
/* adaptive_max_pool2d_backward: derivative of adaptive_max_pool2d */
OPD_API opd_tensor *opd_adaptive_max_pool2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *indices);
/* adaptive_max_pool3d: the greatest of output_size windows [.., D, H, W], and where */
OPD_API int opd_adaptive_max_pool3d(opd_tensor **rets, opd_tensor *self, opd_ints output_size);
/* adaptive_max_pool3d_backward: derivative of adaptive_max_pool3d */
OPD_API opd_tensor *opd_adaptive_max_pool3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *indices);
/* adaptive_avg_pool1d: the means of output_size windows [.., L] */
OPD_API opd_tensor *opd_adaptive_avg_pool1d(opd_tensor *self, opd_ints output_size);
/* adaptive_avg_pool2d: the means of output_size windows [.., H, W] */
OPD_API opd_tensor *opd_adaptive_avg_pool2d(opd_tensor *self, opd_ints output_size);
/* adaptive_avg_pool3d: the means of output_size windows [.., D, H, W] */
OPD_API opd_tensor *opd_adaptive_avg_pool3d(opd_tensor *self, opd_ints output_size);
/* adaptive_max_pool1d: the greatest of output_size windows [.., L], and where */
OPD_API int opd_adaptive_max_pool1d(opd_tensor **rets, opd_tensor *self, opd_ints output_size);

/* max_unpool2d: zeros [.., H, W] with elements where max_pool2d found them */
OPD_API opd_tensor *opd_max_unpool2d(opd_tensor *self, opd_tensor *indices, opd_ints output_size);
/* max_unpool3d: zeros [.., D, H, W] with elements where max_pool3d found them */
OPD_API opd_tensor *opd_max_unpool3d(opd_tensor *self, opd_tensor *indices, opd_ints output_size, opd_ints stride,
                                     opd_ints padding);
/* fractional_max_pool2d: the greatest of windows that begin at random, and where */
OPD_API int opd_fractional_max_pool2d(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints output_size,
                                      opd_tensor *random_samples);
/* fractional_max_pool2d_backward: derivative of fractional_max_pool2d */
OPD_API opd_tensor *opd_fractional_max_pool2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints output_size, opd_tensor *indices);
/* fractional_max_pool3d: the greatest of windows that begin at random, and where */
OPD_API int opd_fractional_max_pool3d(opd_tensor **rets, opd_tensor *self, opd_ints kernel_size, opd_ints output_size,
                                      opd_tensor *random_samples);
/* fractional_max_pool3d_backward: derivative of fractional_max_pool3d */
OPD_API opd_tensor *opd_fractional_max_pool3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints kernel_size,
                                        opd_ints output_size, opd_tensor *indices);

