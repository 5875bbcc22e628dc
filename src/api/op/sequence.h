//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:sequence   attention, recurrent layers
//----------------------------------------------------------------------------------------------------------------------

/* _safe_softmax: softmax; 0 where self is all -inf along dim */
OPD_API opd_tensor *opd_safe_softmax(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_safe_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype);
/* _masked_softmax: softmax of what a mask leaves, 0 where it is true */
OPD_API opd_tensor *opd__masked_softmax(opd_tensor *self, opd_tensor *mask);
OPD_API opd_tensor *opd__masked_softmax_full(opd_tensor *self, opd_tensor *mask, opd_value dim, opd_value mask_type);
/* _masked_softmax_backward: derivative of _masked_softmax */
OPD_API opd_tensor *opd__masked_softmax_backward(opd_tensor *grad_output, opd_tensor *output, opd_tensor *mask);
OPD_API opd_tensor *opd__masked_softmax_backward_full(opd_tensor *grad_output, opd_tensor *output, opd_tensor *mask,
                                        opd_value dim);
/* scaled_dot_product_attention: softmax(query key^T scale + attn_mask) value */
OPD_API opd_tensor *opd_scaled_dot_product_attention(opd_tensor *query, opd_tensor *key, opd_tensor *value);
OPD_API opd_tensor *opd_scaled_dot_product_attention_full(opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                        opd_tensor *attn_mask, double dropout_p, bool is_causal, opd_value scale,
                                        bool enable_gqa);
/* _scaled_dot_product_attention: the output, and the weights, in programs of PyTorch 1.13 */
OPD_API int opd__scaled_dot_product_attention(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value);
OPD_API int opd__scaled_dot_product_attention_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, opd_tensor *attn_mask, double dropout_p,
                                        bool need_attn_weights, bool is_causal);
/* _scaled_dot_product_attention_forward: the same */
OPD_API int opd__scaled_dot_product_attention_forward(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value);
OPD_API int opd__scaled_dot_product_attention_forward_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, opd_tensor *attn_mask, double dropout_p,
                                        bool need_attn_weights, bool is_causal);
/* _scaled_dot_product_attention_math: scaled_dot_product_attention in parts, and the softmax */
OPD_API int opd_scaled_dot_product_attention_math(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value);
OPD_API int opd_scaled_dot_product_attention_math_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, opd_tensor *attn_mask, double dropout_p, bool is_causal,
                                        opd_tensor *dropout_mask, opd_value scale, bool enable_gqa);
/* _scaled_dot_product_flash_attention_for_cpu: scaled_dot_product_attention in one kernel, and log(sum e^x) */
OPD_API int opd_scaled_dot_product_flash_attention_for_cpu(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value);
OPD_API int opd_scaled_dot_product_flash_attention_for_cpu_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, double dropout_p, bool is_causal, opd_tensor *attn_mask,
                                        opd_value scale);
/* _scaled_dot_product_flash_attention_for_cpu_backward: derivatives of that */
OPD_API int opd_scaled_dot_product_flash_attention_for_cpu_backward(opd_tensor **rets, opd_tensor *grad_out,
                                        opd_tensor *query, opd_tensor *key, opd_tensor *value, opd_tensor *out,
                                        opd_tensor *logsumexp, double dropout_p, bool is_causal);
OPD_API int opd_scaled_dot_product_flash_attention_for_cpu_backward_full(opd_tensor **rets, opd_tensor *grad_out,
                                        opd_tensor *query, opd_tensor *key, opd_tensor *value, opd_tensor *out,
                                        opd_tensor *logsumexp, double dropout_p, bool is_causal, opd_tensor *attn_mask,
                                        opd_value scale);

/* lstm.input: long short-term memory over sequences: outputs, and both states at the end */
OPD_API int opd_lstm(opd_tensor **rets, opd_tensor *input, opd_tensors hx, opd_tensors params, bool has_biases,
                     int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
/* gru.input: gated recurrent units over sequences: outputs, and the state at the end */
OPD_API int opd_gru(opd_tensor **rets, opd_tensor *input, opd_tensor *hx, opd_tensors params, bool has_biases,
                    int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
/* rnn_tanh.input: h = tanh(w_ih x + w_hh h) over sequences: outputs, and the state at the end */
OPD_API int opd_rnn_tanh(opd_tensor **rets, opd_tensor *input, opd_tensor *hx, opd_tensors params, bool has_biases,
                         int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
/* rnn_relu.input: h = relu(w_ih x + w_hh h) over sequences: outputs, and the state at the end */
OPD_API int opd_rnn_relu(opd_tensor **rets, opd_tensor *input, opd_tensor *hx, opd_tensors params, bool has_biases,
                         int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first);
/* _pack_padded_sequence: [steps, examples, ...] step by step, only those that there are; and how many each step has */
OPD_API int opd__pack_padded_sequence(opd_tensor **rets, opd_tensor *input, opd_tensor *lengths, bool batch_first);
/* _pack_padded_sequence_backward: the gradient of its input */
OPD_API opd_tensor *opd__pack_padded_sequence_backward(opd_tensor *grad, opd_ints input_size, opd_tensor *batch_sizes,
                                        bool batch_first);
/* pad_sequence: sequences side by side, filled up with padding_value to the longest; padding_side: right or left */
OPD_API opd_tensor *opd_pad_sequence(opd_tensors sequences);
OPD_API opd_tensor *opd_pad_sequence_full(opd_tensors sequences, bool batch_first, double padding_value,
                                        const char *padding_side);
/* _pad_packed_sequence: packed sequences filled up with padding_value, to total_length if > 0; and their lengths */
OPD_API int opd__pad_packed_sequence(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, bool batch_first,
                                     opd_value padding_value, int64_t total_length);
/* lstm.data: long short-term memory over packed sequences; batch_sizes: how many examples each step has */
OPD_API int opd_lstm_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensors hx,
                          opd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                          bool bidirectional);
/* lstm_cell: a step of long short-term memory: the new states */
OPD_API int opd_lstm_cell(opd_tensor **rets, opd_tensor *input, opd_tensors hx, opd_tensor *w_ih, opd_tensor *w_hh);
OPD_API int opd_lstm_cell_full(opd_tensor **rets, opd_tensor *input, opd_tensors hx, opd_tensor *w_ih, opd_tensor *w_hh,
                               opd_tensor *b_ih, opd_tensor *b_hh);
/* gru.data: gated recurrent units over packed sequences; batch_sizes: how many examples each step has */
OPD_API int opd_gru_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensor *hx,
                         opd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                         bool bidirectional);
/* gru_cell: a step of gated recurrent units: the new state */
OPD_API opd_tensor *opd_gru_cell(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh);
OPD_API opd_tensor *opd_gru_cell_full(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh,
                                      opd_tensor *b_ih, opd_tensor *b_hh);
/* rnn_tanh.data: h = tanh(w_ih x + w_hh h) over packed sequences; batch_sizes: how many examples each step has */
OPD_API int opd_rnn_tanh_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensor *hx,
                              opd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                              bool bidirectional);
/* rnn_tanh_cell: a step of rnn_tanh: the new state */
OPD_API opd_tensor *opd_rnn_tanh_cell(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh);
OPD_API opd_tensor *opd_rnn_tanh_cell_full(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh,
                                        opd_tensor *b_ih, opd_tensor *b_hh);
/* rnn_relu.data: h = relu(w_ih x + w_hh h) over packed sequences; batch_sizes: how many examples each step has */
OPD_API int opd_rnn_relu_data(opd_tensor **rets, opd_tensor *data, opd_tensor *batch_sizes, opd_tensor *hx,
                              opd_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train,
                              bool bidirectional);
/* rnn_relu_cell: a step of rnn_relu: the new state */
OPD_API opd_tensor *opd_rnn_relu_cell(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh);
OPD_API opd_tensor *opd_rnn_relu_cell_full(opd_tensor *input, opd_tensor *hx, opd_tensor *w_ih, opd_tensor *w_hh,
                                        opd_tensor *b_ih, opd_tensor *b_hh);
/* _native_multi_head_attention: multi-head attention with its projections, and the weights; True in mask hides */
OPD_API int opd__native_multi_head_attention(opd_tensor **rets, opd_tensor *query, opd_tensor *key, opd_tensor *value,
                                        int64_t embed_dim, int64_t num_head, opd_tensor *qkv_weight,
                                        opd_tensor *qkv_bias, opd_tensor *proj_weight, opd_tensor *proj_bias);
OPD_API int opd__native_multi_head_attention_full(opd_tensor **rets, opd_tensor *query, opd_tensor *key,
                                        opd_tensor *value, int64_t embed_dim, int64_t num_head, opd_tensor *qkv_weight,
                                        opd_tensor *qkv_bias, opd_tensor *proj_weight, opd_tensor *proj_bias,
                                        opd_tensor *mask, bool need_weights, bool average_attn_weights,
                                        opd_value mask_type);
/* _transformer_encoder_layer_fwd: attention and feed-forward of a transformer's layer, normalised before or after */
OPD_API opd_tensor *opd__transformer_encoder_layer_fwd(opd_tensor *src, int64_t embed_dim, int64_t num_heads,
                                        opd_tensor *qkv_weight, opd_tensor *qkv_bias, opd_tensor *proj_weight,
                                        opd_tensor *proj_bias, bool use_gelu, bool norm_first, double eps,
                                        opd_tensor *norm_weight_1, opd_tensor *norm_bias_1, opd_tensor *norm_weight_2,
                                        opd_tensor *norm_bias_2, opd_tensor *ffn_weight_1, opd_tensor *ffn_bias_1,
                                        opd_tensor *ffn_weight_2, opd_tensor *ffn_bias_2);
OPD_API opd_tensor *opd__transformer_encoder_layer_fwd_full(opd_tensor *src, int64_t embed_dim, int64_t num_heads,
                                        opd_tensor *qkv_weight, opd_tensor *qkv_bias, opd_tensor *proj_weight,
                                        opd_tensor *proj_bias, bool use_gelu, bool norm_first, double eps,
                                        opd_tensor *norm_weight_1, opd_tensor *norm_bias_1, opd_tensor *norm_weight_2,
                                        opd_tensor *norm_bias_2, opd_tensor *ffn_weight_1, opd_tensor *ffn_bias_1,
                                        opd_tensor *ffn_weight_2, opd_tensor *ffn_bias_2, opd_tensor *mask,
                                        opd_value mask_type);

