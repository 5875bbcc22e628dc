//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:norm       normalisation and dropout
//----------------------------------------------------------------------------------------------------------------------

/* native_layer_norm: layer_norm, with means and 1 / deviations */
OPD_API int opd_native_layer_norm(opd_tensor **rets, opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight,
                                  opd_tensor *bias, double eps);
/* native_layer_norm_backward: derivatives of native_layer_norm, as output_mask says */
OPD_API int opd_native_layer_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input,
                                        opd_ints normalized_shape, opd_tensor *mean, opd_tensor *rstd,
                                        opd_tensor *weight, opd_tensor *bias, opd_value output_mask);
/* layer_norm: mean 0, variance 1 over the last dims, times weight plus bias */
OPD_API opd_tensor *opd_layer_norm(opd_tensor *input, opd_ints normalized_shape);
OPD_API opd_tensor *opd_layer_norm_full(opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight,
                                        opd_tensor *bias, double eps, bool cudnn_enable);
/* native_group_norm: group_norm, with means and 1 / deviations */
OPD_API int opd_native_group_norm(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias, int64_t n,
                                  int64_t c, int64_t hxw, int64_t group, double eps);
/* native_group_norm_backward: derivatives of native_group_norm, as output_mask says */
OPD_API int opd_native_group_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input, opd_tensor *mean,
                                        opd_tensor *rstd, opd_tensor *weight, int64_t n, int64_t c, int64_t hxw,
                                        int64_t group, opd_value output_mask);
/* group_norm: mean 0, variance 1 over groups of channels, times weight plus bias */
OPD_API opd_tensor *opd_group_norm(opd_tensor *input, int64_t num_groups);
OPD_API opd_tensor *opd_group_norm_full(opd_tensor *input, int64_t num_groups, opd_tensor *weight, opd_tensor *bias,
                                        double eps, bool cudnn_enabled);
/* native_batch_norm: batch_norm, with means and 1 / deviations */
OPD_API int opd_native_batch_norm(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                  opd_tensor *running_mean, opd_tensor *running_var, bool training, double momentum,
                                  double eps);
/* native_batch_norm_backward: derivatives of native_batch_norm, as output_mask says */
OPD_API int opd_native_batch_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input,
                                        opd_tensor *weight, opd_tensor *running_mean, opd_tensor *running_var,
                                        opd_tensor *save_mean, opd_tensor *save_invstd, bool train, double eps,
                                        opd_value output_mask);
/* batch_norm: mean 0, variance 1 over all but channels; training writes the running ones, else they are used */
OPD_API opd_tensor *opd_batch_norm(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_tensor *running_mean,
                                   opd_tensor *running_var, bool training, double momentum, double eps,
                                   bool cudnn_enabled);
/* instance_norm: mean 0, variance 1 of each channel of each example */
OPD_API opd_tensor *opd_instance_norm(opd_tensor *input, opd_tensor *weight, opd_tensor *bias, opd_tensor *running_mean,
                                      opd_tensor *running_var, bool use_input_stats, double momentum, double eps,
                                      bool cudnn_enabled);
/* _native_batch_norm_legit: native_batch_norm whose schema says what it writes */
OPD_API int opd_native_batch_norm_legit(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                        opd_tensor *running_mean, opd_tensor *running_var, bool training,
                                        double momentum, double eps);
/* _native_batch_norm_legit.no_stats: native_batch_norm without running statistics */
OPD_API int opd_native_batch_norm_legit_no_stats(opd_tensor **rets, opd_tensor *input, opd_tensor *weight,
                                        opd_tensor *bias, bool training, double momentum, double eps);
/* _native_batch_norm_legit_no_training: native_batch_norm in evaluation */
OPD_API int opd_native_batch_norm_legit_no_training(opd_tensor **rets, opd_tensor *input, opd_tensor *weight,
                                        opd_tensor *bias, opd_tensor *running_mean, opd_tensor *running_var,
                                        double momentum, double eps);
/* _native_batch_norm_legit_functional: native_batch_norm, and the new running statistics */
OPD_API int opd_native_batch_norm_legit_functional(opd_tensor **rets, opd_tensor *input, opd_tensor *weight,
                                        opd_tensor *bias, opd_tensor *running_mean, opd_tensor *running_var,
                                        bool training, double momentum, double eps);
/* _batch_norm_with_update: native_batch_norm in training, and memory that backward may use */
OPD_API int opd_batch_norm_with_update(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                       opd_tensor *running_mean, opd_tensor *running_var, double momentum, double eps);
/* _batch_norm_with_update_functional: _batch_norm_with_update, and the new running statistics */
OPD_API int opd_batch_norm_with_update_functional(opd_tensor **rets, opd_tensor *input, opd_tensor *weight,
                                        opd_tensor *bias, opd_tensor *running_mean, opd_tensor *running_var,
                                        double momentum, double eps);
/* _batch_norm_no_update: native_batch_norm in evaluation, and memory that backward may use */
OPD_API int opd_batch_norm_no_update(opd_tensor **rets, opd_tensor *input, opd_tensor *weight, opd_tensor *bias,
                                     opd_tensor *running_mean, opd_tensor *running_var, double momentum, double eps);
/* batch_norm_backward: derivatives of batch norms that have such memory, as output_mask says */
OPD_API int opd_batch_norm_backward(opd_tensor **rets, opd_tensor *grad_out, opd_tensor *input, opd_tensor *weight,
                                    opd_tensor *running_mean, opd_tensor *running_var, opd_tensor *save_mean,
                                    opd_tensor *save_var, bool update, double eps, opd_value output_mask,
                                    opd_tensor *reserve);
/* rms_norm: input by the root of its mean square over the last dims, times weight */
OPD_API opd_tensor *opd_rms_norm(opd_tensor *input, opd_ints normalized_shape);
OPD_API opd_tensor *opd_rms_norm_full(opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight, opd_value eps);
/* _fused_rms_norm: rms_norm, and 1 / the root */
OPD_API int opd_fused_rms_norm(opd_tensor **rets, opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight,
                               opd_value eps);
/* _weight_norm: v with norms g; a norm is over all dims but dim, or over all with -1 */
OPD_API opd_tensor *opd_weight_norm(opd_tensor *v, opd_tensor *g);
OPD_API opd_tensor *opd_weight_norm_full(opd_tensor *v, opd_tensor *g, int64_t dim);
/* _weight_norm_interface: _weight_norm of the first or last dim, and the norms of v */
OPD_API int opd_weight_norm_interface(opd_tensor **rets, opd_tensor *v, opd_tensor *g);
OPD_API int opd_weight_norm_interface_full(opd_tensor **rets, opd_tensor *v, opd_tensor *g, int64_t dim);
/* _weight_norm_interface_backward: derivatives of _weight_norm_interface */
OPD_API int opd_weight_norm_interface_backward(opd_tensor **rets, opd_tensor *grad_w, opd_tensor *saved_v,
                                        opd_tensor *saved_g, opd_tensor *saved_norms, int64_t dim);
/* _weight_norm_differentiable_backward: derivatives of _weight_norm_interface */
OPD_API int opd_weight_norm_differentiable_backward(opd_tensor **rets, opd_tensor *grad_w, opd_tensor *saved_v,
                                        opd_tensor *saved_g, opd_tensor *saved_norms, int64_t dim);
/* native_dropout: dropout, and what was kept */
OPD_API int opd_native_dropout(opd_tensor **rets, opd_tensor *input, double p, opd_value train);
/* native_dropout_backward: derivative of native_dropout */
OPD_API opd_tensor *opd_native_dropout_backward(opd_tensor *grad_output, opd_tensor *mask, double scale);
/* dropout: 0 with probability p, else input / (1 - p); input itself unless train */
OPD_API opd_tensor *opd_dropout(opd_tensor *input, double p, bool train);
/* dropout_: dropout of self itself */
OPD_API opd_tensor *opd_dropout_(opd_tensor *self, double p, bool train);
/* feature_dropout: dropout of whole channels */
OPD_API opd_tensor *opd_feature_dropout(opd_tensor *input, double p, bool train);
/* feature_dropout_: feature_dropout of self itself */
OPD_API opd_tensor *opd_feature_dropout_(opd_tensor *self, double p, bool train);

/* fake_quantize_per_tensor_affine: self rounded to quant_min..quant_max, which stand for (n - zero_point) scale */
OPD_API opd_tensor *opd_fake_quantize_per_tensor_affine(opd_tensor *self, double scale, int64_t zero_point,
                                        int64_t quant_min, int64_t quant_max);
/* fake_quantize_per_tensor_affine.tensor_qparams: the same with scale and zero_point in tensors */
OPD_API opd_tensor *opd_fake_quantize_per_tensor_affine_tensor_qparams(opd_tensor *self, opd_tensor *scale,
                                        opd_tensor *zero_point, int64_t quant_min, int64_t quant_max);
/* fake_quantize_per_tensor_affine_cachemask: the same, and where self was in range */
OPD_API int opd_fake_quantize_per_tensor_affine_cachemask(opd_tensor **rets, opd_tensor *self, double scale,
                                        int64_t zero_point, int64_t quant_min, int64_t quant_max);
/* _fake_quantize_per_tensor_affine_cachemask_tensor_qparams: the same of tensors, where fake_quant_enabled is not 0 */
OPD_API int opd__fake_quantize_per_tensor_affine_cachemask_tensor_qparams(opd_tensor **rets, opd_tensor *self,
                                        opd_tensor *scale, opd_tensor *zero_point, opd_tensor *fake_quant_enabled,
                                        int64_t quant_min, int64_t quant_max);
/* fake_quantize_per_tensor_affine_cachemask_backward: derivative of fake_quantize_per_tensor_affine */
OPD_API opd_tensor *opd_fake_quantize_per_tensor_affine_cachemask_backward(opd_tensor *grad, opd_tensor *mask);
/* fake_quantize_per_channel_affine: the same with a scale and zero_point for each index of axis */
OPD_API opd_tensor *opd_fake_quantize_per_channel_affine(opd_tensor *self, opd_tensor *scale, opd_tensor *zero_point,
                                        int64_t axis, int64_t quant_min, int64_t quant_max);
/* fake_quantize_per_channel_affine_cachemask: the same, and where self was in range */
OPD_API int opd_fake_quantize_per_channel_affine_cachemask(opd_tensor **rets, opd_tensor *self, opd_tensor *scale,
                                        opd_tensor *zero_point, int64_t axis, int64_t quant_min, int64_t quant_max);
/* fake_quantize_per_channel_affine_cachemask_backward: derivative of fake_quantize_per_channel_affine */
OPD_API opd_tensor *opd_fake_quantize_per_channel_affine_cachemask_backward(opd_tensor *grad, opd_tensor *mask);
/* alpha_dropout: dropout that keeps mean and variance of what SELU gives */
OPD_API opd_tensor *opd_alpha_dropout(opd_tensor *input, double p, bool train);
/* feature_alpha_dropout: alpha_dropout of whole channels */
OPD_API opd_tensor *opd_feature_alpha_dropout(opd_tensor *input, double p, bool train);
/* alpha_dropout_: alpha_dropout, in place */
OPD_API opd_tensor *opd_alpha_dropout_(opd_tensor *self, double p, bool train);
/* feature_alpha_dropout_: feature_alpha_dropout, in place */
OPD_API opd_tensor *opd_feature_alpha_dropout_(opd_tensor *self, double p, bool train);

