//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:loss       losses, similarities, gates with parameters
//----------------------------------------------------------------------------------------------------------------------

/* nll_loss_forward: nll_loss, and the sum of weights */
OPD_API int opd_nll_loss_forward(opd_tensor **rets, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                 int64_t reduction, int64_t ignore_index);
/* nll_loss_backward: derivative of nll_loss */
OPD_API opd_tensor *opd_nll_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        opd_tensor *weight, int64_t reduction, int64_t ignore_index,
                                        opd_tensor *total_weight);
/* nll_loss2d_forward: nll_loss2d, and the sum of weights */
OPD_API int opd_nll_loss2d_forward(opd_tensor **rets, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                   int64_t reduction, int64_t ignore_index);
/* nll_loss2d_backward: derivative of nll_loss2d */
OPD_API opd_tensor *opd_nll_loss2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        opd_tensor *weight, int64_t reduction, int64_t ignore_index,
                                        opd_tensor *total_weight);
/* nll_loss: -self[target], weighted; reduction 0: each, 1: mean, 2: sum */
OPD_API opd_tensor *opd_nll_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_nll_loss_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                                      int64_t ignore_index);
/* nll_loss2d: nll_loss of [N, C, H, W] */
OPD_API opd_tensor *opd_nll_loss2d(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_nll_loss2d_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                                        int64_t ignore_index);
/* nll_loss_nd: nll_loss of any number of dims */
OPD_API opd_tensor *opd_nll_loss_nd(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_nll_loss_nd_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                                        int64_t ignore_index);
/* cross_entropy_loss: nll_loss of log_softmax, or of probabilities */
OPD_API opd_tensor *opd_cross_entropy_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_cross_entropy_loss_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                        int64_t reduction, int64_t ignore_index, double label_smoothing);
/* mse_loss: (self - target)^2; reduction 0: each, 1: mean, 2: sum */
OPD_API opd_tensor *opd_mse_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_mse_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction);
/* mse_loss_backward: derivative of mse_loss */
OPD_API opd_tensor *opd_mse_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction);
/* l1_loss: |self - target| */
OPD_API opd_tensor *opd_l1_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_l1_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction);
/* smooth_l1_loss: l1_loss, a parabola within beta of 0 */
OPD_API opd_tensor *opd_smooth_l1_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_smooth_l1_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction, double beta);
/* smooth_l1_loss_backward: derivative of smooth_l1_loss */
OPD_API opd_tensor *opd_smooth_l1_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction, double beta);
/* huber_loss: a parabola within delta of 0, straight beyond */
OPD_API opd_tensor *opd_huber_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_huber_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction, double delta);
/* huber_loss_backward: derivative of huber_loss */
OPD_API opd_tensor *opd_huber_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction, double delta);
/* binary_cross_entropy: -(target log(self) + (1 - target) log(1 - self)) */
OPD_API opd_tensor *opd_binary_cross_entropy(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_binary_cross_entropy_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                        int64_t reduction);
/* binary_cross_entropy_backward: derivative of binary_cross_entropy */
OPD_API opd_tensor *opd_binary_cross_entropy_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_binary_cross_entropy_backward_full(opd_tensor *grad_output, opd_tensor *self,
                                        opd_tensor *target, opd_tensor *weight, int64_t reduction);
/* binary_cross_entropy_with_logits: binary_cross_entropy of sigmoid(self) */
OPD_API opd_tensor *opd_binary_cross_entropy_with_logits(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_binary_cross_entropy_with_logits_full(opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                                        opd_tensor *pos_weight, int64_t reduction);
/* log_sigmoid_forward: log_sigmoid, and what its derivative uses */
OPD_API int opd_log_sigmoid_forward(opd_tensor **rets, opd_tensor *self);
/* log_sigmoid_backward: derivative of log_sigmoid */
OPD_API opd_tensor *opd_log_sigmoid_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *buffer);
/* log_sigmoid: log(sigmoid(self)) */
OPD_API opd_tensor *opd_log_sigmoid(opd_tensor *self);
/* soft_margin_loss: log(1 + e^(-target self)) */
OPD_API opd_tensor *opd_soft_margin_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_soft_margin_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction);
/* soft_margin_loss_backward: derivative of soft_margin_loss */
OPD_API opd_tensor *opd_soft_margin_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction);
/* kl_div: target * (log(target) - self) */
OPD_API opd_tensor *opd_kl_div(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_kl_div_full(opd_tensor *self, opd_tensor *target, int64_t reduction, bool log_target);
/* hinge_embedding_loss: self where target is 1, max(0, margin - self) where -1 */
OPD_API opd_tensor *opd_hinge_embedding_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_hinge_embedding_loss_full(opd_tensor *self, opd_tensor *target, double margin,
                                        int64_t reduction);
/* margin_ranking_loss: max(0, -target (input1 - input2) + margin) */
OPD_API opd_tensor *opd_margin_ranking_loss(opd_tensor *input1, opd_tensor *input2, opd_tensor *target);
OPD_API opd_tensor *opd_margin_ranking_loss_full(opd_tensor *input1, opd_tensor *input2, opd_tensor *target,
                                        double margin, int64_t reduction);
/* cosine_similarity: x1 . x2 / (|x1| |x2|) along dim */
OPD_API opd_tensor *opd_cosine_similarity(opd_tensor *x1, opd_tensor *x2);
OPD_API opd_tensor *opd_cosine_similarity_full(opd_tensor *x1, opd_tensor *x2, int64_t dim, double eps);
/* cosine_embedding_loss: 1 - cosine where target is 1, max(0, cosine - margin) where -1 */
OPD_API opd_tensor *opd_cosine_embedding_loss(opd_tensor *input1, opd_tensor *input2, opd_tensor *target);
OPD_API opd_tensor *opd_cosine_embedding_loss_full(opd_tensor *input1, opd_tensor *input2, opd_tensor *target,
                                        double margin, int64_t reduction);
/* pairwise_distance: the p-norm of x1 - x2 + eps along the last dim */
OPD_API opd_tensor *opd_pairwise_distance(opd_tensor *x1, opd_tensor *x2);
OPD_API opd_tensor *opd_pairwise_distance_full(opd_tensor *x1, opd_tensor *x2, double p, double eps, bool keepdim);
/* triplet_margin_loss: max(0, d(anchor, positive) - d(anchor, negative) + margin) */
OPD_API opd_tensor *opd_triplet_margin_loss(opd_tensor *anchor, opd_tensor *positive, opd_tensor *negative);
OPD_API opd_tensor *opd_triplet_margin_loss_full(opd_tensor *anchor, opd_tensor *positive, opd_tensor *negative,
                                        double margin, double p, double eps, bool swap, int64_t reduction);
/* poisson_nll_loss: e^input - target * input (log_input), or input - target log(input) */
OPD_API opd_tensor *opd_poisson_nll_loss(opd_tensor *input, opd_tensor *target, bool log_input, bool full, double eps,
                                        int64_t reduction);
/* glu: the first half of dim times sigmoid of the second */
OPD_API opd_tensor *opd_glu(opd_tensor *self);
OPD_API opd_tensor *opd_glu_full(opd_tensor *self, int64_t dim);
/* glu_backward: derivative of glu */
OPD_API opd_tensor *opd_glu_backward(opd_tensor *grad_output, opd_tensor *self, int64_t dim);
/* prelu: self, times weight (one for all, or one a channel) below 0 */
OPD_API opd_tensor *opd_prelu(opd_tensor *self, opd_tensor *weight);
/* prelu_backward: derivatives of prelu */
OPD_API int opd_prelu_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *self, opd_tensor *weight);
/* _prelu_kernel: self, times weight (broadcast) below 0 */
OPD_API opd_tensor *opd__prelu_kernel(opd_tensor *self, opd_tensor *weight);
/* _prelu_kernel_backward: derivatives of _prelu_kernel, of the broadcast sizes */
OPD_API int opd__prelu_kernel_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *self,
                                       opd_tensor *weight);
/* multi_margin_loss: max(0, margin - x[target] + x[i])^p of all other classes i */
OPD_API opd_tensor *opd_multi_margin_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_multi_margin_loss_full(opd_tensor *self, opd_tensor *target, opd_value p, opd_value margin,
                                        opd_tensor *weight, int64_t reduction);
/* multi_margin_loss_backward: derivative of multi_margin_loss */
OPD_API opd_tensor *opd_multi_margin_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        opd_value p, opd_value margin);
OPD_API opd_tensor *opd_multi_margin_loss_backward_full(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        opd_value p, opd_value margin, opd_tensor *weight, int64_t reduction);
/* multilabel_margin_loss: max(0, 1 - x[t] + x[i]) of targets t and all other classes i */
OPD_API opd_tensor *opd_multilabel_margin_loss(opd_tensor *self, opd_tensor *target);
OPD_API opd_tensor *opd_multilabel_margin_loss_full(opd_tensor *self, opd_tensor *target, int64_t reduction);
/* multilabel_margin_loss_forward: multilabel_margin_loss, and 1 for each class that is a target */
OPD_API int opd_multilabel_margin_loss_forward(opd_tensor **rets, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction);
/* multilabel_margin_loss_backward: derivative of multilabel_margin_loss_forward */
OPD_API opd_tensor *opd_multilabel_margin_loss_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *target,
                                        int64_t reduction, opd_tensor *is_target);
/* rrelu: leaky_relu with a slope drawn for each element */
OPD_API opd_tensor *opd_rrelu(opd_tensor *self);
OPD_API opd_tensor *opd_rrelu_full(opd_tensor *self, opd_value lower, opd_value upper, bool training,
                                   opd_generator *generator);
OPD_API opd_tensor *opd_rrelu_(opd_tensor *self);
OPD_API opd_tensor *opd_rrelu_full_(opd_tensor *self, opd_value lower, opd_value upper, bool training,
                                    opd_generator *generator);
/* rrelu_with_noise_functional: rrelu, and the slopes (1 of what is positive) */
OPD_API int opd_rrelu_with_noise_functional(opd_tensor **rets, opd_tensor *self, opd_tensor *noise);
OPD_API int opd_rrelu_with_noise_functional_full(opd_tensor **rets, opd_tensor *self, opd_tensor *noise,
                                        opd_value lower, opd_value upper, bool training, opd_generator *generator);
/* rrelu_with_noise: rrelu, with the slopes (1 of what is positive) written into noise */
OPD_API opd_tensor *opd_rrelu_with_noise(opd_tensor *self, opd_tensor *noise);
OPD_API opd_tensor *opd_rrelu_with_noise_full(opd_tensor *self, opd_tensor *noise, opd_value lower, opd_value upper,
                                        bool training, opd_generator *generator);
/* rrelu_with_noise.out: rrelu into out, with the slopes written into noise */
OPD_API opd_tensor *opd_rrelu_with_noise_out(opd_tensor *self, opd_tensor *noise, opd_value lower, opd_value upper,
                                        bool training, opd_generator *generator, opd_tensor *out);
/* rrelu_with_noise_: rrelu into self, with the slopes written into noise */
OPD_API opd_tensor *opd_rrelu_with_noise_(opd_tensor *self, opd_tensor *noise);
OPD_API opd_tensor *opd_rrelu_with_noise_full_(opd_tensor *self, opd_tensor *noise, opd_value lower, opd_value upper,
                                        bool training, opd_generator *generator);
/* rrelu_with_noise_backward: derivative of rrelu_with_noise */
OPD_API opd_tensor *opd_rrelu_with_noise_backward(opd_tensor *grad_output, opd_tensor *self, opd_tensor *noise,
                                        opd_value lower, opd_value upper, bool training, bool self_is_result);
/* _ctc_loss: minus the logs of the chances of targets over all alignments, and the logs of their beginnings */
OPD_API int opd__ctc_loss(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                          opd_ints target_lengths);
OPD_API int opd__ctc_loss_full(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                               opd_ints target_lengths, int64_t blank, bool zero_infinity);
/* _ctc_loss_backward: derivative of _ctc_loss, for log_probs that are logs of chances */
OPD_API opd_tensor *opd__ctc_loss_backward(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_ints input_lengths, opd_ints target_lengths, opd_tensor *neg_log_likelihood,
                                        opd_tensor *log_alpha, int64_t blank);
OPD_API opd_tensor *opd__ctc_loss_backward_full(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_ints input_lengths, opd_ints target_lengths, opd_tensor *neg_log_likelihood,
                                        opd_tensor *log_alpha, int64_t blank, bool zero_infinity);
/* ctc_loss.Tensor: ctc_loss.IntList with lengths that are tensors */
OPD_API opd_tensor *opd_ctc_loss_Tensor(opd_tensor *log_probs, opd_tensor *targets, opd_tensor *input_lengths,
                                        opd_tensor *target_lengths);
OPD_API opd_tensor *opd_ctc_loss_Tensor_full(opd_tensor *log_probs, opd_tensor *targets, opd_tensor *input_lengths,
                                        opd_tensor *target_lengths, int64_t blank, int64_t reduction,
                                        bool zero_infinity);
/* ctc_loss.IntList: connectionist temporal classification of targets [N, S] or one behind the other */
OPD_API opd_tensor *opd_ctc_loss_IntList(opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                                        opd_ints target_lengths);
OPD_API opd_tensor *opd_ctc_loss_IntList_full(opd_tensor *log_probs, opd_tensor *targets, opd_ints input_lengths,
                                        opd_ints target_lengths, int64_t blank, int64_t reduction, bool zero_infinity);
/* _ctc_loss.Tensor: _ctc_loss with the lengths in tensors */
OPD_API int opd__ctc_loss_Tensor(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets,
                                 opd_tensor *input_lengths, opd_tensor *target_lengths);
OPD_API int opd__ctc_loss_Tensor_full(opd_tensor **rets, opd_tensor *log_probs, opd_tensor *targets,
                                      opd_tensor *input_lengths, opd_tensor *target_lengths, int64_t blank,
                                      bool zero_infinity);
/* _ctc_loss_backward.Tensor: derivative of _ctc_loss.Tensor */
OPD_API opd_tensor *opd__ctc_loss_backward_Tensor(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_tensor *input_lengths, opd_tensor *target_lengths,
                                        opd_tensor *neg_log_likelihood, opd_tensor *log_alpha, int64_t blank);
OPD_API opd_tensor *opd__ctc_loss_backward_Tensor_full(opd_tensor *grad, opd_tensor *log_probs, opd_tensor *targets,
                                        opd_tensor *input_lengths, opd_tensor *target_lengths,
                                        opd_tensor *neg_log_likelihood, opd_tensor *log_alpha, int64_t blank,
                                        bool zero_infinity);

