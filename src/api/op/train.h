//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:train      steps of optimizers, called through opd_optimizer_step and opd_scaler_step
//----------------------------------------------------------------------------------------------------------------------

/* _fused_sgd_: a step of SGD */
OPD_API int opd_fused_sgd_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list, double weight_decay,
                           double momentum, double lr, double dampening, bool nesterov, bool maximize,
                           bool is_first_step);
OPD_API int opd_fused_sgd_full_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list,
                                double weight_decay, double momentum, double lr, double dampening, bool nesterov,
                                bool maximize, bool is_first_step, opd_tensor *grad_scale, opd_tensor *found_inf);
/* _fused_sgd_.tensor_lr: a step of SGD */
OPD_API int opd_fused_sgd_tensor_lr_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list,
                                     double weight_decay, double momentum, opd_tensor *lr, double dampening,
                                     bool nesterov, bool maximize, bool is_first_step);
OPD_API int opd_fused_sgd_tensor_lr_full_(opd_tensors self, opd_tensors grads, opd_tensors momentum_buffer_list,
                                        double weight_decay, double momentum, opd_tensor *lr, double dampening,
                                        bool nesterov, bool maximize, bool is_first_step, opd_tensor *grad_scale,
                                        opd_tensor *found_inf);
/* _fused_adam_: a step of Adam */
OPD_API int opd_fused_adam_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                            opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1, double beta2,
                            double weight_decay, double eps, bool amsgrad, bool maximize);
OPD_API int opd_fused_adam_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                                 opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1,
                                 double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                                 opd_tensor *grad_scale, opd_tensor *found_inf);
/* _fused_adam_.tensor_lr: a step of Adam */
OPD_API int opd_fused_adam_tensor_lr_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs,
                                      opd_tensors exp_avg_sqs, opd_tensors max_exp_avg_sqs, opd_tensors state_steps,
                                      opd_tensor *lr, double beta1, double beta2, double weight_decay, double eps,
                                      bool amsgrad, bool maximize);
OPD_API int opd_fused_adam_tensor_lr_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs,
                                        opd_tensors exp_avg_sqs, opd_tensors max_exp_avg_sqs, opd_tensors state_steps,
                                        opd_tensor *lr, double beta1, double beta2, double weight_decay, double eps,
                                        bool amsgrad, bool maximize, opd_tensor *grad_scale, opd_tensor *found_inf);
/* _fused_adamw_: a step of AdamW */
OPD_API int opd_fused_adamw_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                             opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1,
                             double beta2, double weight_decay, double eps, bool amsgrad, bool maximize);
OPD_API int opd_fused_adamw_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs, opd_tensors exp_avg_sqs,
                                  opd_tensors max_exp_avg_sqs, opd_tensors state_steps, double lr, double beta1,
                                  double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                                  opd_tensor *grad_scale, opd_tensor *found_inf);
/* _fused_adamw_.tensor_lr: a step of AdamW */
OPD_API int opd_fused_adamw_tensor_lr_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs,
                                       opd_tensors exp_avg_sqs, opd_tensors max_exp_avg_sqs, opd_tensors state_steps,
                                       opd_tensor *lr, double beta1, double beta2, double weight_decay, double eps,
                                       bool amsgrad, bool maximize);
OPD_API int opd_fused_adamw_tensor_lr_full_(opd_tensors self, opd_tensors grads, opd_tensors exp_avgs,
                                        opd_tensors exp_avg_sqs, opd_tensors max_exp_avg_sqs, opd_tensors state_steps,
                                        opd_tensor *lr, double beta1, double beta2, double weight_decay, double eps,
                                        bool amsgrad, bool maximize, opd_tensor *grad_scale, opd_tensor *found_inf);
/* _amp_foreach_non_finite_check_and_unscale_: gradients times inv_scale; found_inf: 1 where any is not finite */
OPD_API int opd_amp_unscale_(opd_tensors self, opd_tensor *found_inf, opd_tensor *inv_scale);
/* _amp_update_scale_: the loss scale after a step */
OPD_API opd_tensor *opd_amp_update_scale_(opd_tensor *self, opd_tensor *growth_tracker, opd_tensor *found_inf,
                                        double scale_growth_factor, double scale_backoff_factor,
                                        int64_t growth_interval);
/* _foreach_abs: abs of each tensor of a list */
OPD_API opd_tensors opd_foreach_abs(opd_tensors self);
/* _foreach_abs_: abs of each tensor of a list, in place */
OPD_API int opd_foreach_abs_(opd_tensors self);
/* _foreach_acos: acos of each tensor of a list */
OPD_API opd_tensors opd_foreach_acos(opd_tensors self);
/* _foreach_acos_: acos of each tensor of a list, in place */
OPD_API int opd_foreach_acos_(opd_tensors self);
/* _foreach_add.List: add of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_add_List(opd_tensors self, opd_tensors other);
OPD_API opd_tensors opd_foreach_add_List_full(opd_tensors self, opd_tensors other, opd_value alpha);
/* _foreach_add.Scalar: add of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_add_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_add.ScalarList: add of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_add_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_add.Tensor: add of each tensor of a list, with a tensor */
OPD_API opd_tensors opd_foreach_add_Tensor(opd_tensors self, opd_tensor *other);
OPD_API opd_tensors opd_foreach_add_Tensor_full(opd_tensors self, opd_tensor *other, opd_value alpha);
/* _foreach_add_.List: add of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_add_List_(opd_tensors self, opd_tensors other);
OPD_API int opd_foreach_add_List_full_(opd_tensors self, opd_tensors other, opd_value alpha);
/* _foreach_add_.Scalar: add of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_add_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_add_.ScalarList: add of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_add_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_add_.Tensor: add of each tensor of a list, with a tensor, in place */
OPD_API int opd_foreach_add_Tensor_(opd_tensors self, opd_tensor *other);
OPD_API int opd_foreach_add_Tensor_full_(opd_tensors self, opd_tensor *other, opd_value alpha);
/* _foreach_addcdiv.Scalar: addcdiv of each tensor of a list */
OPD_API opd_tensors opd_foreach_addcdiv_Scalar(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2);
OPD_API opd_tensors opd_foreach_addcdiv_Scalar_full(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value value);
/* _foreach_addcdiv.ScalarList: addcdiv of each tensor of a list */
OPD_API opd_tensors opd_foreach_addcdiv_ScalarList(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value scalars);
/* _foreach_addcdiv.Tensor: addcdiv of each tensor of a list */
OPD_API opd_tensors opd_foreach_addcdiv_Tensor(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_tensor *scalars);
/* _foreach_addcdiv_.Scalar: addcdiv of each tensor of a list, in place */
OPD_API int opd_foreach_addcdiv_Scalar_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2);
OPD_API int opd_foreach_addcdiv_Scalar_full_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value value);
/* _foreach_addcdiv_.ScalarList: addcdiv of each tensor of a list, in place */
OPD_API int opd_foreach_addcdiv_ScalarList_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value scalars);
/* _foreach_addcdiv_.Tensor: addcdiv of each tensor of a list, in place */
OPD_API int opd_foreach_addcdiv_Tensor_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_tensor *scalars);
/* _foreach_addcmul.Scalar: addcmul of each tensor of a list */
OPD_API opd_tensors opd_foreach_addcmul_Scalar(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2);
OPD_API opd_tensors opd_foreach_addcmul_Scalar_full(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value value);
/* _foreach_addcmul.ScalarList: addcmul of each tensor of a list */
OPD_API opd_tensors opd_foreach_addcmul_ScalarList(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value scalars);
/* _foreach_addcmul.Tensor: addcmul of each tensor of a list */
OPD_API opd_tensors opd_foreach_addcmul_Tensor(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_tensor *scalars);
/* _foreach_addcmul_.Scalar: addcmul of each tensor of a list, in place */
OPD_API int opd_foreach_addcmul_Scalar_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2);
OPD_API int opd_foreach_addcmul_Scalar_full_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value value);
/* _foreach_addcmul_.ScalarList: addcmul of each tensor of a list, in place */
OPD_API int opd_foreach_addcmul_ScalarList_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_value scalars);
/* _foreach_addcmul_.Tensor: addcmul of each tensor of a list, in place */
OPD_API int opd_foreach_addcmul_Tensor_(opd_tensors self, opd_tensors tensor1, opd_tensors tensor2,
                                        opd_tensor *scalars);
/* _foreach_asin: asin of each tensor of a list */
OPD_API opd_tensors opd_foreach_asin(opd_tensors self);
/* _foreach_asin_: asin of each tensor of a list, in place */
OPD_API int opd_foreach_asin_(opd_tensors self);
/* _foreach_atan: atan of each tensor of a list */
OPD_API opd_tensors opd_foreach_atan(opd_tensors self);
/* _foreach_atan_: atan of each tensor of a list, in place */
OPD_API int opd_foreach_atan_(opd_tensors self);
/* _foreach_ceil: ceil of each tensor of a list */
OPD_API opd_tensors opd_foreach_ceil(opd_tensors self);
/* _foreach_ceil_: ceil of each tensor of a list, in place */
OPD_API int opd_foreach_ceil_(opd_tensors self);
/* _foreach_clamp_max.List: clamp_max of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_clamp_max_List(opd_tensors self, opd_tensors other);
/* _foreach_clamp_max.Scalar: clamp_max of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_clamp_max_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_clamp_max.ScalarList: clamp_max of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_clamp_max_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_clamp_max_.List: clamp_max of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_clamp_max_List_(opd_tensors self, opd_tensors other);
/* _foreach_clamp_max_.Scalar: clamp_max of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_clamp_max_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_clamp_max_.ScalarList: clamp_max of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_clamp_max_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_clamp_min.List: clamp_min of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_clamp_min_List(opd_tensors self, opd_tensors other);
/* _foreach_clamp_min.Scalar: clamp_min of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_clamp_min_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_clamp_min.ScalarList: clamp_min of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_clamp_min_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_clamp_min_.List: clamp_min of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_clamp_min_List_(opd_tensors self, opd_tensors other);
/* _foreach_clamp_min_.Scalar: clamp_min of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_clamp_min_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_clamp_min_.ScalarList: clamp_min of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_clamp_min_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_clone: clone of each tensor of a list */
OPD_API opd_tensors opd_foreach_clone(opd_tensors self);
OPD_API opd_tensors opd_foreach_clone_full(opd_tensors self, opd_value memory_format);
/* _foreach_copy: copy of each tensor of a list */
OPD_API opd_tensors opd_foreach_copy(opd_tensors self, opd_tensors src);
OPD_API opd_tensors opd_foreach_copy_full(opd_tensors self, opd_tensors src, bool non_blocking);
/* _foreach_copy_: copy of each tensor of a list, in place */
OPD_API int opd_foreach_copy_(opd_tensors self, opd_tensors src);
OPD_API int opd_foreach_copy_full_(opd_tensors self, opd_tensors src, bool non_blocking);
/* _foreach_cos: cos of each tensor of a list */
OPD_API opd_tensors opd_foreach_cos(opd_tensors self);
/* _foreach_cos_: cos of each tensor of a list, in place */
OPD_API int opd_foreach_cos_(opd_tensors self);
/* _foreach_cosh: cosh of each tensor of a list */
OPD_API opd_tensors opd_foreach_cosh(opd_tensors self);
/* _foreach_cosh_: cosh of each tensor of a list, in place */
OPD_API int opd_foreach_cosh_(opd_tensors self);
/* _foreach_div.List: div of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_div_List(opd_tensors self, opd_tensors other);
/* _foreach_div.Scalar: div of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_div_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_div.ScalarList: div of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_div_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_div.Tensor: div of each tensor of a list, with a tensor */
OPD_API opd_tensors opd_foreach_div_Tensor(opd_tensors self, opd_tensor *other);
/* _foreach_div_.List: div of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_div_List_(opd_tensors self, opd_tensors other);
/* _foreach_div_.Scalar: div of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_div_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_div_.ScalarList: div of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_div_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_div_.Tensor: div of each tensor of a list, with a tensor, in place */
OPD_API int opd_foreach_div_Tensor_(opd_tensors self, opd_tensor *other);
/* _foreach_erf: erf of each tensor of a list */
OPD_API opd_tensors opd_foreach_erf(opd_tensors self);
/* _foreach_erf_: erf of each tensor of a list, in place */
OPD_API int opd_foreach_erf_(opd_tensors self);
/* _foreach_erfc: erfc of each tensor of a list */
OPD_API opd_tensors opd_foreach_erfc(opd_tensors self);
/* _foreach_erfc_: erfc of each tensor of a list, in place */
OPD_API int opd_foreach_erfc_(opd_tensors self);
/* _foreach_exp: exp of each tensor of a list */
OPD_API opd_tensors opd_foreach_exp(opd_tensors self);
/* _foreach_exp_: exp of each tensor of a list, in place */
OPD_API int opd_foreach_exp_(opd_tensors self);
/* _foreach_expm1: expm1 of each tensor of a list */
OPD_API opd_tensors opd_foreach_expm1(opd_tensors self);
/* _foreach_expm1_: expm1 of each tensor of a list, in place */
OPD_API int opd_foreach_expm1_(opd_tensors self);
/* _foreach_floor: floor of each tensor of a list */
OPD_API opd_tensors opd_foreach_floor(opd_tensors self);
/* _foreach_floor_: floor of each tensor of a list, in place */
OPD_API int opd_foreach_floor_(opd_tensors self);
/* _foreach_frac: frac of each tensor of a list */
OPD_API opd_tensors opd_foreach_frac(opd_tensors self);
/* _foreach_frac_: frac of each tensor of a list, in place */
OPD_API int opd_foreach_frac_(opd_tensors self);
/* _foreach_lerp.List: lerp of each tensor of a list */
OPD_API opd_tensors opd_foreach_lerp_List(opd_tensors self, opd_tensors tensors1, opd_tensors weights);
/* _foreach_lerp.Scalar: lerp of each tensor of a list */
OPD_API opd_tensors opd_foreach_lerp_Scalar(opd_tensors self, opd_tensors tensors1, opd_value weight);
/* _foreach_lerp.ScalarList: lerp of each tensor of a list */
OPD_API opd_tensors opd_foreach_lerp_ScalarList(opd_tensors self, opd_tensors tensors1, opd_value weight);
/* _foreach_lerp_.List: lerp of each tensor of a list, in place */
OPD_API int opd_foreach_lerp_List_(opd_tensors self, opd_tensors tensors1, opd_tensors weights);
/* _foreach_lerp_.Scalar: lerp of each tensor of a list, in place */
OPD_API int opd_foreach_lerp_Scalar_(opd_tensors self, opd_tensors tensors1, opd_value weight);
/* _foreach_lerp_.ScalarList: lerp of each tensor of a list, in place */
OPD_API int opd_foreach_lerp_ScalarList_(opd_tensors self, opd_tensors tensors1, opd_value weight);
/* _foreach_lgamma: lgamma of each tensor of a list */
OPD_API opd_tensors opd_foreach_lgamma(opd_tensors self);
/* _foreach_lgamma_: lgamma of each tensor of a list, in place */
OPD_API int opd_foreach_lgamma_(opd_tensors self);
/* _foreach_log: log of each tensor of a list */
OPD_API opd_tensors opd_foreach_log(opd_tensors self);
/* _foreach_log10: log10 of each tensor of a list */
OPD_API opd_tensors opd_foreach_log10(opd_tensors self);
/* _foreach_log10_: log10 of each tensor of a list, in place */
OPD_API int opd_foreach_log10_(opd_tensors self);
/* _foreach_log1p: log1p of each tensor of a list */
OPD_API opd_tensors opd_foreach_log1p(opd_tensors self);
/* _foreach_log1p_: log1p of each tensor of a list, in place */
OPD_API int opd_foreach_log1p_(opd_tensors self);
/* _foreach_log2: log2 of each tensor of a list */
OPD_API opd_tensors opd_foreach_log2(opd_tensors self);
/* _foreach_log2_: log2 of each tensor of a list, in place */
OPD_API int opd_foreach_log2_(opd_tensors self);
/* _foreach_log_: log of each tensor of a list, in place */
OPD_API int opd_foreach_log_(opd_tensors self);
/* _foreach_max: max of each tensor of a list */
OPD_API opd_tensors opd_foreach_max(opd_tensors self);
/* _foreach_maximum.List: maximum of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_maximum_List(opd_tensors self, opd_tensors other);
/* _foreach_maximum.Scalar: maximum of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_maximum_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_maximum.ScalarList: maximum of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_maximum_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_maximum_.List: maximum of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_maximum_List_(opd_tensors self, opd_tensors other);
/* _foreach_maximum_.Scalar: maximum of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_maximum_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_maximum_.ScalarList: maximum of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_maximum_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_minimum.List: minimum of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_minimum_List(opd_tensors self, opd_tensors other);
/* _foreach_minimum.Scalar: minimum of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_minimum_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_minimum.ScalarList: minimum of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_minimum_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_minimum_.List: minimum of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_minimum_List_(opd_tensors self, opd_tensors other);
/* _foreach_minimum_.Scalar: minimum of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_minimum_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_minimum_.ScalarList: minimum of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_minimum_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_mm: mm of each tensor of a list */
OPD_API opd_tensors opd_foreach_mm(opd_tensors self, opd_tensors mat2);
/* _foreach_mul.List: mul of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_mul_List(opd_tensors self, opd_tensors other);
/* _foreach_mul.Scalar: mul of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_mul_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_mul.ScalarList: mul of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_mul_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_mul.Tensor: mul of each tensor of a list, with a tensor */
OPD_API opd_tensors opd_foreach_mul_Tensor(opd_tensors self, opd_tensor *other);
/* _foreach_mul_.List: mul of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_mul_List_(opd_tensors self, opd_tensors other);
/* _foreach_mul_.Scalar: mul of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_mul_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_mul_.ScalarList: mul of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_mul_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_mul_.Tensor: mul of each tensor of a list, with a tensor, in place */
OPD_API int opd_foreach_mul_Tensor_(opd_tensors self, opd_tensor *other);
/* _foreach_neg: neg of each tensor of a list */
OPD_API opd_tensors opd_foreach_neg(opd_tensors self);
/* _foreach_neg_: neg of each tensor of a list, in place */
OPD_API int opd_foreach_neg_(opd_tensors self);
/* _foreach_norm.Scalar: norm of each tensor of a list */
OPD_API opd_tensors opd_foreach_norm_Scalar(opd_tensors self);
OPD_API opd_tensors opd_foreach_norm_Scalar_full(opd_tensors self, opd_value ord, opd_value dtype);
/* _foreach_powsum.Scalar: linalg__powsum of each tensor of a list */
OPD_API opd_tensors opd_foreach_powsum_Scalar(opd_tensors self);
OPD_API opd_tensors opd_foreach_powsum_Scalar_full(opd_tensors self, opd_value ord, opd_value dtype);
/* _foreach_pow.List: pow of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_pow_List(opd_tensors self, opd_tensors exponent);
/* _foreach_pow.Scalar: pow of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_pow_Scalar(opd_tensors self, opd_value exponent);
/* _foreach_pow.ScalarAndTensor: pow of each tensor of a list, of a number */
OPD_API opd_tensors opd_foreach_pow_ScalarAndTensor(opd_value self, opd_tensors exponent);
/* _foreach_pow.ScalarList: pow of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_pow_ScalarList(opd_tensors self, opd_value exponent);
/* _foreach_pow_.List: pow of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_pow_List_(opd_tensors self, opd_tensors exponent);
/* _foreach_pow_.Scalar: pow of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_pow_Scalar_(opd_tensors self, opd_value exponent);
/* _foreach_pow_.ScalarList: pow of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_pow_ScalarList_(opd_tensors self, opd_value exponent);
/* _foreach_reciprocal: reciprocal of each tensor of a list */
OPD_API opd_tensors opd_foreach_reciprocal(opd_tensors self);
/* _foreach_reciprocal_: reciprocal of each tensor of a list, in place */
OPD_API int opd_foreach_reciprocal_(opd_tensors self);
/* _foreach_round: round of each tensor of a list */
OPD_API opd_tensors opd_foreach_round(opd_tensors self);
/* _foreach_round_: round of each tensor of a list, in place */
OPD_API int opd_foreach_round_(opd_tensors self);
/* _foreach_rsqrt: rsqrt of each tensor of a list */
OPD_API opd_tensors opd_foreach_rsqrt(opd_tensors self);
/* _foreach_rsqrt_: rsqrt of each tensor of a list, in place */
OPD_API int opd_foreach_rsqrt_(opd_tensors self);
/* _foreach_sigmoid: sigmoid of each tensor of a list */
OPD_API opd_tensors opd_foreach_sigmoid(opd_tensors self);
/* _foreach_sigmoid_: sigmoid of each tensor of a list, in place */
OPD_API int opd_foreach_sigmoid_(opd_tensors self);
/* _foreach_sign: sign of each tensor of a list */
OPD_API opd_tensors opd_foreach_sign(opd_tensors self);
/* _foreach_sign_: sign of each tensor of a list, in place */
OPD_API int opd_foreach_sign_(opd_tensors self);
/* _foreach_sin: sin of each tensor of a list */
OPD_API opd_tensors opd_foreach_sin(opd_tensors self);
/* _foreach_sin_: sin of each tensor of a list, in place */
OPD_API int opd_foreach_sin_(opd_tensors self);
/* _foreach_sinh: sinh of each tensor of a list */
OPD_API opd_tensors opd_foreach_sinh(opd_tensors self);
/* _foreach_sinh_: sinh of each tensor of a list, in place */
OPD_API int opd_foreach_sinh_(opd_tensors self);
/* _foreach_sqrt: sqrt of each tensor of a list */
OPD_API opd_tensors opd_foreach_sqrt(opd_tensors self);
/* _foreach_sqrt_: sqrt of each tensor of a list, in place */
OPD_API int opd_foreach_sqrt_(opd_tensors self);
/* _foreach_sub.List: sub of each tensor of a list, with the tensors of another list */
OPD_API opd_tensors opd_foreach_sub_List(opd_tensors self, opd_tensors other);
OPD_API opd_tensors opd_foreach_sub_List_full(opd_tensors self, opd_tensors other, opd_value alpha);
/* _foreach_sub.Scalar: sub of each tensor of a list, with a number */
OPD_API opd_tensors opd_foreach_sub_Scalar(opd_tensors self, opd_value scalar);
/* _foreach_sub.ScalarList: sub of each tensor of a list, with a number for each */
OPD_API opd_tensors opd_foreach_sub_ScalarList(opd_tensors self, opd_value scalars);
/* _foreach_sub_.List: sub of each tensor of a list, with the tensors of another list, in place */
OPD_API int opd_foreach_sub_List_(opd_tensors self, opd_tensors other);
OPD_API int opd_foreach_sub_List_full_(opd_tensors self, opd_tensors other, opd_value alpha);
/* _foreach_sub_.Scalar: sub of each tensor of a list, with a number, in place */
OPD_API int opd_foreach_sub_Scalar_(opd_tensors self, opd_value scalar);
/* _foreach_sub_.ScalarList: sub of each tensor of a list, with a number for each, in place */
OPD_API int opd_foreach_sub_ScalarList_(opd_tensors self, opd_value scalars);
/* _foreach_tan: tan of each tensor of a list */
OPD_API opd_tensors opd_foreach_tan(opd_tensors self);
/* _foreach_tan_: tan of each tensor of a list, in place */
OPD_API int opd_foreach_tan_(opd_tensors self);
/* _foreach_tanh: tanh of each tensor of a list */
OPD_API opd_tensors opd_foreach_tanh(opd_tensors self);
/* _foreach_tanh_: tanh of each tensor of a list, in place */
OPD_API int opd_foreach_tanh_(opd_tensors self);
/* _foreach_trunc: trunc of each tensor of a list */
OPD_API opd_tensors opd_foreach_trunc(opd_tensors self);
/* _foreach_trunc_: trunc of each tensor of a list, in place */
OPD_API int opd_foreach_trunc_(opd_tensors self);
/* _foreach_zero: zero of each tensor of a list */
OPD_API opd_tensors opd_foreach_zero(opd_tensors self);
/* _foreach_zero_: zero of each tensor of a list, in place */
OPD_API int opd_foreach_zero_(opd_tensors self);
