OPDI_LOOPS_BEGIN

//== cards by family, printed by tests/wrappers.py
typedef void (*opdi_card_fn)(opd_op_desc *op);
static const opdi_card_fn opdi_cards_create[] = {
    opdi_card_empty_memory_format, opdi_card_empty_strided, opdi_card_empty_permuted, opdi_card_zeros, opdi_card_ones,
    opdi_card_full, opdi_card_empty_like, opdi_card_zeros_like, opdi_card_ones_like, opdi_card_full_like,
    opdi_card_new_empty, opdi_card_new_empty_strided, opdi_card_new_zeros, opdi_card_new_ones, opdi_card_new_full,
    opdi_card_scalar_tensor, opdi_card_fill__Scalar, opdi_card_fill__Tensor, opdi_card_zero_, opdi_card_fill_Scalar,
    opdi_card_fill_Tensor, opdi_card_zero, opdi_card_arange, opdi_card_arange_start, opdi_card_arange_start_step,
    opdi_card_range, opdi_card_range_step, opdi_card_linspace, opdi_card_logspace, opdi_card_linspace_Tensor_Tensor,
    opdi_card_linspace_Tensor_Scalar, opdi_card_linspace_Scalar_Tensor, opdi_card_logspace_Tensor_Tensor,
    opdi_card_logspace_Tensor_Scalar, opdi_card_logspace_Scalar_Tensor, opdi_card_eye, opdi_card_eye_m, opdi_card_tril,
    opdi_card_triu, opdi_card_tril_indices, opdi_card_triu_indices, opdi_card_rand, opdi_card_rand_generator,
    opdi_card_randn, opdi_card_randn_generator, opdi_card_randint, opdi_card_randint_generator, opdi_card_randint_low,
    opdi_card_randint_low_generator, opdi_card_randperm, opdi_card_randperm_generator, opdi_card_rand_like,
    opdi_card_rand_like_generator, opdi_card_randn_like, opdi_card_randn_like_generator, opdi_card_randint_like,
    opdi_card_randint_like_generator, opdi_card_randint_like_low_dtype, opdi_card_randint_like_low_generator_dtype,
    opdi_card_randint_like_Tensor, opdi_card_randint_like_Tensor_generator, opdi_card_normal_, opdi_card_uniform_,
    opdi_card_exponential_, opdi_card_random_, opdi_card_random__from, opdi_card_random__to, opdi_card_bernoulli__float,
    opdi_card_bernoulli__Tensor, opdi_card_bernoulli_Tensor, opdi_card_bernoulli, opdi_card_bernoulli_p,
    opdi_card_normal_functional, opdi_card_normal_Tensor_float, opdi_card_normal_float_Tensor,
    opdi_card_normal_Tensor_Tensor, opdi_card_normal_float_float, opdi_card_uniform, opdi_card_random,
    opdi_card_random_from, opdi_card_random_to, opdi_card_exponential, opdi_card_geometric, opdi_card_geometric_,
    opdi_card_cauchy, opdi_card_cauchy_, opdi_card_log_normal, opdi_card_log_normal_, opdi_card_poisson,
    opdi_card_binomial, opdi_card__standard_gamma, opdi_card__sample_dirichlet
};
static const opdi_card_fn opdi_cards_view[] = {
    opdi_card_view, opdi_card__unsafe_view, opdi_card__reshape_alias, opdi_card_reshape, opdi_card_expand,
    opdi_card_transpose_int, opdi_card_t, opdi_card_permute, opdi_card_select_int, opdi_card_slice_Tensor,
    opdi_card_unsqueeze, opdi_card_squeeze, opdi_card_squeeze_dim, opdi_card_squeeze_dims, opdi_card_detach,
    opdi_card_alias, opdi_card_as_strided, opdi_card_select_backward, opdi_card_slice_backward,
    opdi_card_as_strided_backward, opdi_card_flatten_using_ints, opdi_card_expand_as, opdi_card_view_as,
    opdi_card_reshape_as, opdi_card_copy_, opdi_card_copy, opdi_card_clone, opdi_card__to_copy, opdi_card_contiguous,
    opdi_card_to_dtype, opdi_card__local_scalar_dense, opdi_card_item, opdi_card_view_dtype, opdi_card_diagonal,
    opdi_card_linalg_diagonal, opdi_card_diagonal_backward, opdi_card_unfold, opdi_card_unfold_backward,
    opdi_card_split_with_sizes, opdi_card_split_Tensor, opdi_card_unbind_int, opdi_card_split_sizes, opdi_card_chunk,
    opdi_card_unsafe_split_Tensor, opdi_card_unsafe_split_with_sizes, opdi_card_unsafe_chunk,
    opdi_card_tensor_split_sections, opdi_card_tensor_split_indices, opdi_card_tensor_split_tensor_indices_or_sections,
    opdi_card_hsplit_int, opdi_card_hsplit_array, opdi_card_vsplit_int, opdi_card_vsplit_array, opdi_card_dsplit_int,
    opdi_card_dsplit_array, opdi_card_narrow, opdi_card_narrow_Tensor, opdi_card_narrow_copy, opdi_card_movedim_int,
    opdi_card_movedim_intlist, opdi_card_moveaxis_int, opdi_card_moveaxis_intlist, opdi_card_swapaxes,
    opdi_card_swapdims, opdi_card_numpy_T, opdi_card_mT, opdi_card_mH, opdi_card_matrix_H, opdi_card_adjoint,
    opdi_card_unflatten_int, opdi_card_ravel, opdi_card_broadcast_to, opdi_card_meshgrid, opdi_card_meshgrid_indexing,
    opdi_card_broadcast_tensors, opdi_card_to_device, opdi_card_to_other, opdi_card_to_dtype_layout, opdi_card_chalf,
    opdi_card_type_as, opdi_card_lift_fresh_copy, opdi_card_lift_fresh, opdi_card_repeat, opdi_card_tile,
    opdi_card_flip, opdi_card_fliplr, opdi_card_flipud, opdi_card_roll, opdi_card_rot90, opdi_card_transpose_,
    opdi_card_t_, opdi_card_unsqueeze_, opdi_card_squeeze_, opdi_card_squeeze__dim, opdi_card_squeeze__dims,
    opdi_card_swapaxes_, opdi_card_swapdims_, opdi_card_as_strided_, opdi_card_detach_, opdi_card_resize_,
    opdi_card_resize_as_, opdi_card_storage_offset, opdi_card_is_floating_point, opdi_card_is_complex,
    opdi_card_is_nonzero, opdi_card_sym_size_int, opdi_card_sym_stride_int, opdi_card_sym_numel,
    opdi_card_sym_is_contiguous, opdi_card_sym_storage_offset, opdi_card__assert_tensor_metadata,
    opdi_card__assert_scalar, opdi_card__functional_assert_scalar, opdi_card__assert_async, opdi_card__assert_async_msg,
    opdi_card__functional_assert_async_msg, opdi_card_sym_constrain_range, opdi_card_sym_constrain_range_for_size,
    opdi_card__functional_sym_constrain_range, opdi_card__functional_sym_constrain_range_for_size,
    opdi_card_is_same_size, opdi_card_size_int, opdi_card_stride_int, opdi_card_numel, opdi_card_dim,
    opdi_card_view_copy, opdi_card_view_copy_dtype, opdi_card__reshape_alias_copy, opdi_card_expand_copy,
    opdi_card_transpose_copy_int, opdi_card_t_copy, opdi_card_permute_copy, opdi_card_select_copy_int,
    opdi_card_slice_copy_Tensor, opdi_card_unsqueeze_copy, opdi_card_squeeze_copy, opdi_card_squeeze_copy_dim,
    opdi_card_squeeze_copy_dims, opdi_card_detach_copy, opdi_card_alias_copy, opdi_card_as_strided_copy,
    opdi_card_diagonal_copy, opdi_card_unfold_copy, opdi_card_split_copy_Tensor, opdi_card_split_with_sizes_copy,
    opdi_card_unbind_copy_int, opdi_card_view_as_real, opdi_card_view_as_complex, opdi_card_view_as_real_copy,
    opdi_card_view_as_complex_copy, opdi_card__conj_copy, opdi_card__neg_view_copy, opdi_card_real, opdi_card_imag,
    opdi_card__conj_physical, opdi_card_conj_physical, opdi_card_conj, opdi_card__conj, opdi_card__neg_view,
    opdi_card_resolve_conj, opdi_card_resolve_neg, opdi_card_angle, opdi_card_complex, opdi_card_polar,
    opdi_card_isreal, opdi_card_positive, opdi_card_diag_embed, opdi_card_diag, opdi_card_diagflat,
    opdi_card_atleast_1d, opdi_card_atleast_2d, opdi_card_atleast_3d, opdi_card_atleast_1d_Sequence,
    opdi_card_atleast_2d_Sequence, opdi_card_atleast_3d_Sequence
};
#if defined(OPD_NO_OPERATORS)
#define opdi_cards_pointwise NULL
#else
static const opdi_card_fn opdi_cards_pointwise[] = {
    opdi_card_exp, opdi_card_exp2, opdi_card_expm1, opdi_card_log, opdi_card_log2, opdi_card_log10, opdi_card_log1p,
    opdi_card_sqrt, opdi_card_rsqrt, opdi_card_reciprocal, opdi_card_square, opdi_card_sin, opdi_card_cos,
    opdi_card_tan, opdi_card_asin, opdi_card_acos, opdi_card_atan, opdi_card_sinh, opdi_card_cosh, opdi_card_asinh,
    opdi_card_acosh, opdi_card_atanh, opdi_card_tanh, opdi_card_erf, opdi_card_erfc, opdi_card_sigmoid, opdi_card_sinc,
    opdi_card_floor, opdi_card_frac, opdi_card_sign, opdi_card_abs, opdi_card_hardsigmoid, opdi_card_hardswish,
    opdi_card_mish, opdi_card_ceil, opdi_card_round, opdi_card_trunc, opdi_card_sgn, opdi_card_isnan, opdi_card_isinf,
    opdi_card_isfinite, opdi_card_isposinf, opdi_card_isneginf, opdi_card_signbit, opdi_card_logical_not, opdi_card_neg,
    opdi_card_bitwise_not, opdi_card_relu, opdi_card_silu, opdi_card_clamp, opdi_card_clamp_min, opdi_card_clamp_max,
    opdi_card_hardtanh, opdi_card_relu6, opdi_card_gelu, opdi_card_leaky_relu, opdi_card_elu, opdi_card_selu,
    opdi_card_celu, opdi_card_softplus, opdi_card_threshold, opdi_card_round_decimals, opdi_card_softshrink,
    opdi_card_hardshrink, opdi_card_softshrink_backward, opdi_card_hardshrink_backward, opdi_card_nan_to_num,
    opdi_card_deg2rad, opdi_card_rad2deg, opdi_card_logit, opdi_card_logit_backward, opdi_card_add_Tensor,
    opdi_card_add_Scalar, opdi_card_sub_Tensor, opdi_card_sub_Scalar, opdi_card_rsub_Tensor, opdi_card_rsub_Scalar,
    opdi_card_mul_Tensor, opdi_card_mul_Scalar, opdi_card_div_Tensor, opdi_card_div_Scalar, opdi_card_div_Tensor_mode,
    opdi_card_div_Scalar_mode, opdi_card_floor_divide, opdi_card_floor_divide_Scalar, opdi_card_fmod_Tensor,
    opdi_card_fmod_Scalar, opdi_card_remainder_Tensor, opdi_card_remainder_Scalar, opdi_card_remainder_Scalar_Tensor,
    opdi_card_pow_Tensor_Tensor, opdi_card_pow_Tensor_Scalar, opdi_card_pow_Scalar, opdi_card_maximum,
    opdi_card_minimum, opdi_card_fmax, opdi_card_fmin, opdi_card_clamp_Tensor, opdi_card_clamp_min_Tensor,
    opdi_card_clamp_max_Tensor, opdi_card_eq_Tensor, opdi_card_eq_Scalar, opdi_card_ne_Tensor, opdi_card_ne_Scalar,
    opdi_card_lt_Tensor, opdi_card_lt_Scalar, opdi_card_le_Tensor, opdi_card_le_Scalar, opdi_card_gt_Tensor,
    opdi_card_gt_Scalar, opdi_card_ge_Tensor, opdi_card_ge_Scalar, opdi_card_logical_and, opdi_card_logical_or,
    opdi_card_logical_xor, opdi_card_bitwise_and_Tensor, opdi_card_bitwise_and_Scalar,
    opdi_card_bitwise_and_Scalar_Tensor, opdi_card_bitwise_or_Tensor, opdi_card_bitwise_or_Scalar,
    opdi_card_bitwise_or_Scalar_Tensor, opdi_card_bitwise_xor_Tensor, opdi_card_bitwise_xor_Scalar,
    opdi_card_bitwise_xor_Scalar_Tensor, opdi_card_bitwise_left_shift_Tensor,
    opdi_card_bitwise_left_shift_Tensor_Scalar, opdi_card_bitwise_left_shift_Scalar_Tensor,
    opdi_card_bitwise_right_shift_Tensor, opdi_card_bitwise_right_shift_Tensor_Scalar,
    opdi_card_bitwise_right_shift_Scalar_Tensor, opdi_card___and___Tensor, opdi_card___iand___Tensor,
    opdi_card___and___Scalar, opdi_card___iand___Scalar, opdi_card___or___Tensor, opdi_card___ior___Tensor,
    opdi_card___or___Scalar, opdi_card___ior___Scalar, opdi_card___xor___Tensor, opdi_card___ixor___Tensor,
    opdi_card___xor___Scalar, opdi_card___ixor___Scalar, opdi_card___lshift___Tensor, opdi_card___ilshift___Tensor,
    opdi_card___lshift___Scalar, opdi_card___ilshift___Scalar, opdi_card___rshift___Tensor,
    opdi_card___irshift___Tensor, opdi_card___rshift___Scalar, opdi_card___irshift___Scalar, opdi_card_gcd,
    opdi_card_lcm, opdi_card_atan2, opdi_card_hypot, opdi_card_xlogy_Tensor, opdi_card_xlogy_Scalar_Other,
    opdi_card_xlogy_Scalar_Self, opdi_card_logaddexp, opdi_card_logaddexp2, opdi_card_copysign_Tensor,
    opdi_card_copysign_Scalar, opdi_card_nextafter, opdi_card_heaviside, opdi_card_where_self,
    opdi_card_where_ScalarOther, opdi_card_where_ScalarSelf, opdi_card_masked_fill_Scalar, opdi_card_masked_fill_Tensor,
    opdi_card_lerp_Scalar, opdi_card_lerp_Tensor, opdi_card_addcmul, opdi_card_addcdiv, opdi_card_tanh_backward,
    opdi_card_sigmoid_backward, opdi_card_threshold_backward, opdi_card_hardtanh_backward,
    opdi_card_leaky_relu_backward, opdi_card_hardsigmoid_backward, opdi_card_hardswish_backward,
    opdi_card_softplus_backward, opdi_card_silu_backward, opdi_card_mish_backward, opdi_card_gelu_backward,
    opdi_card_elu_backward, opdi_card_true_divide_Tensor, opdi_card_true_divide_Scalar, opdi_card_ldexp_Tensor,
    opdi_card_absolute, opdi_card_arccos, opdi_card_arccosh, opdi_card_arcsin, opdi_card_arcsinh, opdi_card_arctan,
    opdi_card_arctanh, opdi_card_fix, opdi_card_negative, opdi_card_arctan2, opdi_card_clip, opdi_card_clip_Tensor,
    opdi_card_subtract_Tensor, opdi_card_subtract_Scalar, opdi_card_multiply_Tensor, opdi_card_multiply_Scalar,
    opdi_card_divide_Tensor, opdi_card_divide_Scalar, opdi_card_divide_Tensor_mode, opdi_card_divide_Scalar_mode,
    opdi_card_greater_Tensor, opdi_card_greater_Scalar, opdi_card_greater_equal_Tensor, opdi_card_greater_equal_Scalar,
    opdi_card_less_Tensor, opdi_card_less_Scalar, opdi_card_less_equal_Tensor, opdi_card_less_equal_Scalar,
    opdi_card_not_equal_Tensor, opdi_card_not_equal_Scalar, opdi_card_float_power_Tensor_Tensor,
    opdi_card_float_power_Scalar, opdi_card_float_power_Tensor_Scalar
};
#endif
#if defined(OPD_NO_OPERATORS)
#define opdi_cards_reduce NULL
#else
static const opdi_card_fn opdi_cards_reduce[] = {
    opdi_card_sum, opdi_card_sum_dim_IntList, opdi_card_nansum, opdi_card_mean, opdi_card_mean_dim, opdi_card_prod,
    opdi_card_prod_dim_int, opdi_card_var, opdi_card_std, opdi_card_var_mean, opdi_card_std_mean, opdi_card_var_dim,
    opdi_card_std_dim, opdi_card_var_mean_dim, opdi_card_std_mean_dim, opdi_card_var_correction,
    opdi_card_std_correction, opdi_card_var_mean_correction, opdi_card_std_mean_correction, opdi_card_amax,
    opdi_card_amin, opdi_card_max, opdi_card_min, opdi_card_max_dim, opdi_card_min_dim, opdi_card_argmax,
    opdi_card_argmin, opdi_card_max_other, opdi_card_min_other, opdi_card_aminmax,
    opdi_card_value_selecting_reduction_backward, opdi_card_any, opdi_card_all, opdi_card_any_dim, opdi_card_all_dim,
    opdi_card_any_dims, opdi_card_all_dims, opdi_card_count_nonzero_dim_IntList, opdi_card_count_nonzero,
    opdi_card_linalg_vector_norm, opdi_card_linalg__powsum, opdi_card_renorm, opdi_card_norm_Scalar,
    opdi_card_norm_ScalarOpt_dtype, opdi_card_norm_ScalarOpt_dim, opdi_card_norm_ScalarOpt_dim_dtype,
    opdi_card_frobenius_norm_dim, opdi_card_dist, opdi_card_logsumexp, opdi_card_special_logsumexp,
    opdi_card_sum_to_size, opdi_card_nanmean, opdi_card_trace, opdi_card_equal, opdi_card_isclose, opdi_card_allclose,
    opdi_card_nonzero, opdi_card__softmax, opdi_card__log_softmax, opdi_card__softmax_backward_data,
    opdi_card__log_softmax_backward_data, opdi_card_softmax_int, opdi_card_log_softmax_int, opdi_card_special_softmax,
    opdi_card_special_log_softmax, opdi_card_diff, opdi_card_cumsum, opdi_card_cumprod, opdi_card_logcumsumexp,
    opdi_card_cumprod_backward, opdi_card_cummax, opdi_card_cummin, opdi_card_sort, opdi_card_sort_stable,
    opdi_card_topk, opdi_card_kthvalue, opdi_card_median_dim, opdi_card_nanmedian_dim, opdi_card_mode, opdi_card_median,
    opdi_card_nanmedian, opdi_card_argsort, opdi_card_argsort_stable, opdi_card_msort, opdi_card_trapezoid_x,
    opdi_card_trapezoid_dx, opdi_card_trapz_x, opdi_card_trapz_dx, opdi_card_cumulative_trapezoid_x,
    opdi_card_cumulative_trapezoid_dx, opdi_card_gradient_scalarint, opdi_card_gradient_scalararray,
    opdi_card_gradient_array, opdi_card_gradient_scalarrayint, opdi_card_gradient_scalarrayarray,
    opdi_card_gradient_tensorarrayint, opdi_card_gradient_tensorarray, opdi_card_quantile, opdi_card_quantile_scalar,
    opdi_card_nanquantile, opdi_card_nanquantile_scalar, opdi_card_cov, opdi_card_corrcoef
};
#endif
#if defined(OPD_NO_OPERATORS)
#define opdi_cards_linalg NULL
#else
static const opdi_card_fn opdi_cards_linalg[] = {
    opdi_card_mm, opdi_card_mm_dtype, opdi_card_bmm, opdi_card_bmm_dtype, opdi_card_addmm, opdi_card_addmm_dtype,
    opdi_card__addmm_activation, opdi_card__int_mm, opdi_card_baddbmm, opdi_card_baddbmm_dtype, opdi_card_addbmm,
    opdi_card_mv, opdi_card_addmv, opdi_card_dot, opdi_card_vdot, opdi_card_outer, opdi_card_ger, opdi_card_addr,
    opdi_card_matmul, opdi_card_einsum, opdi_card_linear, opdi_card_tensordot, opdi_card_inner, opdi_card_kron,
    opdi_card_norm_except_dim, opdi_card__trilinear, opdi_card_bilinear
};
#endif
#if defined(OPD_NO_OP_CONV)
#define opdi_cards_conv NULL
#else
static const opdi_card_fn opdi_cards_conv[] = {
    opdi_card_convolution, opdi_card_convolution_backward, opdi_card__convolution, opdi_card__convolution_deprecated,
    opdi_card_conv1d, opdi_card_conv1d_padding, opdi_card_conv2d, opdi_card_conv2d_padding, opdi_card_conv3d,
    opdi_card_conv3d_padding, opdi_card_conv_tbc, opdi_card_thnn_conv2d, opdi_card__convolution_mode,
    opdi_card_conv_transpose1d, opdi_card_conv_transpose2d_input, opdi_card_conv_transpose3d_input
};
#endif
#if defined(OPD_NO_OP_POOL)
#define opdi_cards_pool NULL
#else
static const opdi_card_fn opdi_cards_pool[] = {
    opdi_card_max_pool2d_with_indices, opdi_card_max_pool2d_with_indices_backward, opdi_card_max_pool3d_with_indices,
    opdi_card_max_pool3d_with_indices_backward, opdi_card_max_pool2d, opdi_card_max_pool3d,
    opdi_card_max_pool1d_with_indices, opdi_card_max_pool1d, opdi_card_avg_pool2d, opdi_card_avg_pool2d_backward,
    opdi_card_avg_pool3d, opdi_card_avg_pool3d_backward, opdi_card_avg_pool1d, opdi_card__adaptive_avg_pool2d,
    opdi_card__adaptive_avg_pool2d_backward, opdi_card__adaptive_avg_pool3d, opdi_card__adaptive_avg_pool3d_backward,
    opdi_card_adaptive_max_pool2d, opdi_card_adaptive_max_pool2d_backward, opdi_card_adaptive_max_pool3d,
    opdi_card_adaptive_max_pool3d_backward, opdi_card_adaptive_avg_pool1d, opdi_card_adaptive_avg_pool2d,
    opdi_card_adaptive_avg_pool3d, opdi_card_adaptive_max_pool1d, opdi_card_max_unpool2d, opdi_card_max_unpool3d,
    opdi_card_fractional_max_pool2d, opdi_card_fractional_max_pool2d_backward, opdi_card_fractional_max_pool3d,
    opdi_card_fractional_max_pool3d_backward
};
#endif
#if defined(OPD_NO_OP_RESAMPLE)
#define opdi_cards_resample NULL
#else
static const opdi_card_fn opdi_cards_resample[] = {
    opdi_card_im2col, opdi_card_col2im, opdi_card_pixel_shuffle, opdi_card_pixel_unshuffle,
    opdi_card_upsample_nearest2d, opdi_card_upsample_nearest2d_backward, opdi_card_upsample_nearest2d_vec,
    opdi_card_upsample_nearest2d_backward_vec, opdi_card_upsample_bilinear2d, opdi_card_upsample_bilinear2d_backward,
    opdi_card_upsample_bilinear2d_vec, opdi_card_upsample_bilinear2d_backward_vec, opdi_card_upsample_nearest1d,
    opdi_card_upsample_nearest1d_backward, opdi_card_upsample_nearest1d_vec, opdi_card_upsample_nearest1d_backward_vec,
    opdi_card_upsample_nearest3d, opdi_card_upsample_nearest3d_backward, opdi_card_upsample_nearest3d_vec,
    opdi_card_upsample_nearest3d_backward_vec, opdi_card__upsample_nearest_exact1d,
    opdi_card__upsample_nearest_exact1d_backward, opdi_card__upsample_nearest_exact1d_vec,
    opdi_card__upsample_nearest_exact2d, opdi_card__upsample_nearest_exact2d_backward,
    opdi_card__upsample_nearest_exact2d_vec, opdi_card__upsample_nearest_exact3d,
    opdi_card__upsample_nearest_exact3d_backward, opdi_card__upsample_nearest_exact3d_vec, opdi_card_upsample_linear1d,
    opdi_card_upsample_linear1d_backward, opdi_card_upsample_linear1d_vec, opdi_card_upsample_linear1d_backward_vec,
    opdi_card_upsample_trilinear3d, opdi_card_upsample_trilinear3d_backward, opdi_card_upsample_trilinear3d_vec,
    opdi_card_upsample_trilinear3d_backward_vec, opdi_card_upsample_bicubic2d, opdi_card_upsample_bicubic2d_backward,
    opdi_card_upsample_bicubic2d_vec, opdi_card_upsample_bicubic2d_backward_vec, opdi_card__upsample_bilinear2d_aa,
    opdi_card__upsample_bilinear2d_aa_backward, opdi_card__upsample_bilinear2d_aa_vec, opdi_card__upsample_bicubic2d_aa,
    opdi_card__upsample_bicubic2d_aa_backward, opdi_card__upsample_bicubic2d_aa_vec, opdi_card_grid_sampler_2d,
    opdi_card_grid_sampler_2d_backward, opdi_card_grid_sampler, opdi_card_affine_grid_generator,
    opdi_card_affine_grid_generator_backward, opdi_card_channel_shuffle, opdi_card_native_channel_shuffle,
    opdi_card_grid_sampler_3d, opdi_card_grid_sampler_3d_backward
};
#endif
#if defined(OPD_NO_OP_DISTANCE)
#define opdi_cards_distance NULL
#else
static const opdi_card_fn opdi_cards_distance[] = {
    opdi_card__cdist_forward, opdi_card__cdist_backward, opdi_card__euclidean_dist, opdi_card_cdist,
    opdi_card__pdist_forward, opdi_card__pdist_backward, opdi_card_pdist
};
#endif
#if defined(OPD_NO_OP_FFT)
#define opdi_cards_fft NULL
#else
static const opdi_card_fn opdi_cards_fft[] = {
    opdi_card__fft_r2c, opdi_card__fft_c2r, opdi_card__fft_c2c, opdi_card_fft_fft, opdi_card_fft_ifft,
    opdi_card_fft_rfft, opdi_card_fft_irfft, opdi_card_fft_hfft, opdi_card_fft_ihfft, opdi_card_fft_fft2,
    opdi_card_fft_ifft2, opdi_card_fft_rfft2, opdi_card_fft_irfft2, opdi_card_fft_hfft2, opdi_card_fft_ihfft2,
    opdi_card_fft_fftn, opdi_card_fft_ifftn, opdi_card_fft_rfftn, opdi_card_fft_irfftn, opdi_card_fft_hfftn,
    opdi_card_fft_ihfftn, opdi_card_fft_fftshift, opdi_card_fft_ifftshift, opdi_card_fft_fftfreq,
    opdi_card_fft_rfftfreq, opdi_card_hann_window, opdi_card_hann_window_periodic, opdi_card_hamming_window,
    opdi_card_hamming_window_periodic, opdi_card_hamming_window_periodic_alpha,
    opdi_card_hamming_window_periodic_alpha_beta, opdi_card_blackman_window, opdi_card_blackman_window_periodic,
    opdi_card_bartlett_window, opdi_card_bartlett_window_periodic, opdi_card_kaiser_window,
    opdi_card_kaiser_window_periodic, opdi_card_kaiser_window_beta, opdi_card_stft, opdi_card_stft_center,
    opdi_card_istft
};
#endif
#if defined(OPD_NO_OP_SOLVE)
#define opdi_cards_solve NULL
#else
static const opdi_card_fn opdi_cards_solve[] = {
    opdi_card__linalg_check_errors, opdi_card_linalg_cholesky_ex, opdi_card_linalg_cholesky, opdi_card_cholesky,
    opdi_card_cholesky_solve, opdi_card_cholesky_inverse, opdi_card_linalg_solve_triangular, opdi_card_triangular_solve,
    opdi_card_linalg_lu_factor_ex, opdi_card_linalg_lu_factor, opdi_card__lu_with_info, opdi_card_lu_unpack,
    opdi_card_linalg_lu, opdi_card_linalg_lu_solve, opdi_card_lu_solve, opdi_card__linalg_solve_ex,
    opdi_card_linalg_solve_ex, opdi_card_linalg_solve, opdi_card_linalg_ldl_factor_ex, opdi_card_linalg_ldl_factor,
    opdi_card_linalg_ldl_solve, opdi_card_linalg_inv_ex, opdi_card_linalg_inv, opdi_card_inverse, opdi_card__linalg_det,
    opdi_card__linalg_slogdet, opdi_card_linalg_det, opdi_card_det, opdi_card_linalg_slogdet, opdi_card_slogdet,
    opdi_card_logdet, opdi_card_geqrf, opdi_card_linalg_householder_product, opdi_card_orgqr, opdi_card_ormqr,
    opdi_card_linalg_qr, opdi_card_qr, opdi_card__linalg_eigh, opdi_card_linalg_eigh, opdi_card_linalg_eigvalsh,
    opdi_card_linalg_eig, opdi_card__linalg_eigvals, opdi_card_linalg_eigvals, opdi_card__linalg_svd,
    opdi_card_linalg_svd, opdi_card_linalg_svdvals, opdi_card_linalg_cross, opdi_card_cross, opdi_card_linalg_vecdot,
    opdi_card_linalg_matrix_power, opdi_card_matrix_power, opdi_card_linalg_vander, opdi_card_vander,
    opdi_card_linalg_matmul, opdi_card_linalg_tensorinv, opdi_card_linalg_matrix_norm,
    opdi_card_linalg_matrix_norm_str_ord, opdi_card_linalg_norm, opdi_card_linalg_norm_ord_str, opdi_card_nuclear_norm,
    opdi_card_nuclear_norm_dim, opdi_card_linalg_cond, opdi_card_linalg_cond_p_str, opdi_card_linalg_matrix_rank,
    opdi_card_linalg_matrix_rank_tol_tensor, opdi_card_linalg_matrix_rank_atol_rtol_float,
    opdi_card_linalg_matrix_rank_atol_rtol_tensor, opdi_card_linalg_pinv_atol_rtol_tensor,
    opdi_card_linalg_pinv_atol_rtol_float, opdi_card_linalg_pinv, opdi_card_linalg_pinv_rcond_tensor,
    opdi_card_pinverse, opdi_card_linalg_multi_dot, opdi_card_chain_matmul, opdi_card_linalg_matrix_exp,
    opdi_card_matrix_exp, opdi_card_linalg_tensorsolve, opdi_card_svd, opdi_card_linalg_lstsq
};
#endif
#if defined(OPD_NO_OP_SPECIAL)
#define opdi_cards_special NULL
#else
static const opdi_card_fn opdi_cards_special[] = {
    opdi_card_lgamma, opdi_card_digamma, opdi_card_polygamma, opdi_card_polygamma_, opdi_card_mvlgamma,
    opdi_card_erfinv, opdi_card_special_ndtri, opdi_card_special_log_ndtr, opdi_card_special_erfcx,
    opdi_card_special_entr, opdi_card_special_ndtr, opdi_card_i0, opdi_card_special_i0e, opdi_card_special_i1,
    opdi_card_special_i1e, opdi_card_special_modified_bessel_i0, opdi_card_special_modified_bessel_i1,
    opdi_card_special_modified_bessel_k0, opdi_card_special_modified_bessel_k1,
    opdi_card_special_scaled_modified_bessel_k0, opdi_card_special_scaled_modified_bessel_k1,
    opdi_card_special_bessel_j0, opdi_card_special_bessel_j1, opdi_card_special_bessel_y0, opdi_card_special_bessel_y1,
    opdi_card_special_spherical_bessel_j0, opdi_card_special_airy_ai, opdi_card_igamma, opdi_card_igammac,
    opdi_card_special_zeta, opdi_card_special_xlog1py, opdi_card_special_xlog1py_self_scalar,
    opdi_card_special_xlog1py_other_scalar, opdi_card_special_zeta_self_scalar, opdi_card_special_zeta_other_scalar,
    opdi_card_special_chebyshev_polynomial_t, opdi_card_special_chebyshev_polynomial_t_x_scalar,
    opdi_card_special_chebyshev_polynomial_t_n_scalar, opdi_card_special_chebyshev_polynomial_u,
    opdi_card_special_chebyshev_polynomial_u_x_scalar, opdi_card_special_chebyshev_polynomial_u_n_scalar,
    opdi_card_special_chebyshev_polynomial_v, opdi_card_special_chebyshev_polynomial_v_x_scalar,
    opdi_card_special_chebyshev_polynomial_v_n_scalar, opdi_card_special_chebyshev_polynomial_w,
    opdi_card_special_chebyshev_polynomial_w_x_scalar, opdi_card_special_chebyshev_polynomial_w_n_scalar,
    opdi_card_special_shifted_chebyshev_polynomial_t, opdi_card_special_shifted_chebyshev_polynomial_t_x_scalar,
    opdi_card_special_shifted_chebyshev_polynomial_t_n_scalar, opdi_card_special_shifted_chebyshev_polynomial_u,
    opdi_card_special_shifted_chebyshev_polynomial_u_x_scalar,
    opdi_card_special_shifted_chebyshev_polynomial_u_n_scalar, opdi_card_special_shifted_chebyshev_polynomial_v,
    opdi_card_special_shifted_chebyshev_polynomial_v_x_scalar,
    opdi_card_special_shifted_chebyshev_polynomial_v_n_scalar, opdi_card_special_shifted_chebyshev_polynomial_w,
    opdi_card_special_shifted_chebyshev_polynomial_w_x_scalar,
    opdi_card_special_shifted_chebyshev_polynomial_w_n_scalar, opdi_card_special_hermite_polynomial_h,
    opdi_card_special_hermite_polynomial_h_x_scalar, opdi_card_special_hermite_polynomial_h_n_scalar,
    opdi_card_special_hermite_polynomial_he, opdi_card_special_hermite_polynomial_he_x_scalar,
    opdi_card_special_hermite_polynomial_he_n_scalar, opdi_card_special_laguerre_polynomial_l,
    opdi_card_special_laguerre_polynomial_l_x_scalar, opdi_card_special_laguerre_polynomial_l_n_scalar,
    opdi_card_special_legendre_polynomial_p, opdi_card_special_legendre_polynomial_p_x_scalar,
    opdi_card_special_legendre_polynomial_p_n_scalar, opdi_card_frexp_Tensor, opdi_card_special_psi,
    opdi_card_special_digamma, opdi_card_special_gammaln, opdi_card_special_multigammaln, opdi_card_special_polygamma,
    opdi_card_special_gammainc, opdi_card_special_gammaincc, opdi_card_special_i0, opdi_card_special_erf,
    opdi_card_special_erfc, opdi_card_special_erfinv, opdi_card_special_exp2, opdi_card_special_expm1,
    opdi_card_special_log1p, opdi_card_special_expit, opdi_card_special_logit, opdi_card_special_sinc,
    opdi_card_special_round, opdi_card_special_xlogy, opdi_card_special_xlogy_self_scalar,
    opdi_card_special_xlogy_other_scalar, opdi_card__standard_gamma_grad, opdi_card__dirichlet_grad
};
#endif
#if defined(OPD_NO_OP_NORM)
#define opdi_cards_norm NULL
#else
static const opdi_card_fn opdi_cards_norm[] = {
    opdi_card_native_layer_norm, opdi_card_native_layer_norm_backward, opdi_card_layer_norm,
    opdi_card_native_group_norm, opdi_card_native_group_norm_backward, opdi_card_group_norm,
    opdi_card_native_batch_norm, opdi_card_native_batch_norm_backward, opdi_card_batch_norm, opdi_card_instance_norm,
    opdi_card__native_batch_norm_legit, opdi_card__native_batch_norm_legit_no_stats,
    opdi_card__native_batch_norm_legit_no_training, opdi_card__native_batch_norm_legit_functional,
    opdi_card__batch_norm_with_update, opdi_card__batch_norm_with_update_functional, opdi_card__batch_norm_no_update,
    opdi_card_batch_norm_backward, opdi_card_rms_norm, opdi_card__fused_rms_norm, opdi_card__weight_norm,
    opdi_card__weight_norm_interface, opdi_card__weight_norm_interface_backward,
    opdi_card__weight_norm_differentiable_backward, opdi_card_native_dropout, opdi_card_native_dropout_backward,
    opdi_card_dropout, opdi_card_dropout_, opdi_card_feature_dropout, opdi_card_feature_dropout_,
    opdi_card_fake_quantize_per_tensor_affine, opdi_card_fake_quantize_per_tensor_affine_tensor_qparams,
    opdi_card_fake_quantize_per_tensor_affine_cachemask,
    opdi_card__fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
    opdi_card_fake_quantize_per_tensor_affine_cachemask_backward, opdi_card_fake_quantize_per_channel_affine,
    opdi_card_fake_quantize_per_channel_affine_cachemask, opdi_card_fake_quantize_per_channel_affine_cachemask_backward,
    opdi_card_alpha_dropout, opdi_card_feature_alpha_dropout, opdi_card_alpha_dropout_, opdi_card_feature_alpha_dropout_
};
#endif
#if defined(OPD_NO_OP_SEQUENCE)
#define opdi_cards_sequence NULL
#else
static const opdi_card_fn opdi_cards_sequence[] = {
    opdi_card__safe_softmax, opdi_card__masked_softmax, opdi_card__masked_softmax_backward,
    opdi_card_scaled_dot_product_attention, opdi_card__scaled_dot_product_attention,
    opdi_card__scaled_dot_product_attention_forward, opdi_card__scaled_dot_product_attention_math,
    opdi_card__scaled_dot_product_flash_attention_for_cpu,
    opdi_card__scaled_dot_product_flash_attention_for_cpu_backward, opdi_card_lstm_input, opdi_card_gru_input,
    opdi_card_rnn_tanh_input, opdi_card_rnn_relu_input, opdi_card__pack_padded_sequence,
    opdi_card__pack_padded_sequence_backward, opdi_card_pad_sequence, opdi_card__pad_packed_sequence,
    opdi_card_lstm_data, opdi_card_lstm_cell, opdi_card_gru_data, opdi_card_gru_cell, opdi_card_rnn_tanh_data,
    opdi_card_rnn_tanh_cell, opdi_card_rnn_relu_data, opdi_card_rnn_relu_cell, opdi_card__native_multi_head_attention,
    opdi_card__transformer_encoder_layer_fwd
};
#endif
#if defined(OPD_NO_OP_LOSS)
#define opdi_cards_loss NULL
#else
static const opdi_card_fn opdi_cards_loss[] = {
    opdi_card_nll_loss_forward, opdi_card_nll_loss_backward, opdi_card_nll_loss2d_forward,
    opdi_card_nll_loss2d_backward, opdi_card_nll_loss, opdi_card_nll_loss2d, opdi_card_nll_loss_nd,
    opdi_card_cross_entropy_loss, opdi_card_mse_loss, opdi_card_mse_loss_backward, opdi_card_l1_loss,
    opdi_card_smooth_l1_loss, opdi_card_smooth_l1_loss_backward, opdi_card_huber_loss, opdi_card_huber_loss_backward,
    opdi_card_binary_cross_entropy, opdi_card_binary_cross_entropy_backward, opdi_card_binary_cross_entropy_with_logits,
    opdi_card_log_sigmoid_forward, opdi_card_log_sigmoid_backward, opdi_card_log_sigmoid, opdi_card_soft_margin_loss,
    opdi_card_soft_margin_loss_backward, opdi_card_kl_div, opdi_card_hinge_embedding_loss,
    opdi_card_margin_ranking_loss, opdi_card_cosine_similarity, opdi_card_cosine_embedding_loss,
    opdi_card_pairwise_distance, opdi_card_triplet_margin_loss, opdi_card_poisson_nll_loss, opdi_card_glu,
    opdi_card_glu_backward, opdi_card_prelu, opdi_card_prelu_backward, opdi_card__prelu_kernel,
    opdi_card__prelu_kernel_backward, opdi_card_multi_margin_loss, opdi_card_multi_margin_loss_backward,
    opdi_card_multilabel_margin_loss, opdi_card_multilabel_margin_loss_forward,
    opdi_card_multilabel_margin_loss_backward, opdi_card_rrelu, opdi_card_rrelu_with_noise_functional,
    opdi_card_rrelu_with_noise, opdi_card_rrelu_with_noise_out, opdi_card_rrelu_with_noise_,
    opdi_card_rrelu_with_noise_backward, opdi_card__ctc_loss, opdi_card__ctc_loss_backward, opdi_card_ctc_loss_Tensor,
    opdi_card_ctc_loss_IntList, opdi_card__ctc_loss_Tensor, opdi_card__ctc_loss_backward_Tensor
};
#endif
#if defined(OPD_NO_OP_INDEX)
#define opdi_cards_index NULL
#else
static const opdi_card_fn opdi_cards_index[] = {
    opdi_card_gather, opdi_card_scatter_src, opdi_card_scatter_value, opdi_card_scatter_reduce,
    opdi_card_scatter_value_reduce, opdi_card_scatter_add, opdi_card_scatter_reduce_two, opdi_card_index_select,
    opdi_card_index_select_backward, opdi_card_index_add, opdi_card_index_copy, opdi_card_index_fill_int_Scalar,
    opdi_card_index_fill_int_Tensor, opdi_card_index_reduce, opdi_card_index_Tensor, opdi_card_index_put,
    opdi_card__unsafe_index_Tensor, opdi_card__unsafe_index_put, opdi_card__unsafe_masked_index,
    opdi_card__unsafe_masked_index_put_accumulate, opdi_card__index_put_impl_, opdi_card_take, opdi_card_put,
    opdi_card_take_along_dim, opdi_card_masked_select, opdi_card_masked_scatter, opdi_card_where_Scalar,
    opdi_card_where, opdi_card_cat, opdi_card_stack, opdi_card_hstack, opdi_card_vstack, opdi_card_dstack,
    opdi_card_column_stack, opdi_card_row_stack, opdi_card_concat, opdi_card_concatenate, opdi_card__chunk_cat,
    opdi_card_constant_pad_nd, opdi_card_reflection_pad1d, opdi_card_reflection_pad1d_backward,
    opdi_card_reflection_pad2d, opdi_card_reflection_pad2d_backward, opdi_card_reflection_pad3d,
    opdi_card_reflection_pad3d_backward, opdi_card_replication_pad1d, opdi_card_replication_pad1d_backward,
    opdi_card_replication_pad2d, opdi_card_replication_pad2d_backward, opdi_card_replication_pad3d,
    opdi_card_replication_pad3d_backward, opdi_card_pad, opdi_card__pad_circular, opdi_card_embedding,
    opdi_card_embedding_dense_backward, opdi_card_embedding_renorm, opdi_card_embedding_backward,
    opdi_card__embedding_bag, opdi_card__embedding_bag_forward_only, opdi_card_embedding_bag,
    opdi_card_embedding_bag_padding_idx, opdi_card__embedding_bag_backward, opdi_card__embedding_bag_dense_backward,
    opdi_card__embedding_bag_per_sample_weights_backward, opdi_card_one_hot, opdi_card_bincount, opdi_card_histc,
    opdi_card__unique2, opdi_card_unique_dim, opdi_card_unique_consecutive, opdi_card_unique_dim_consecutive,
    opdi_card_multinomial, opdi_card_slice_scatter, opdi_card_select_scatter, opdi_card_diagonal_scatter,
    opdi_card_fill_diagonal_, opdi_card_as_strided_scatter, opdi_card_repeat_interleave_Tensor,
    opdi_card_repeat_interleave_self_Tensor, opdi_card_repeat_interleave_self_int, opdi_card_searchsorted_Tensor,
    opdi_card_searchsorted_Scalar, opdi_card_bucketize_Tensor, opdi_card_bucketize_Scalar, opdi_card_block_diag,
    opdi_card_segment_reduce, opdi_card__segment_reduce_backward, opdi_card_isin_Tensor_Tensor,
    opdi_card_isin_Tensor_Scalar, opdi_card_isin_Scalar_Tensor, opdi_card_argwhere, opdi_card_hash_tensor,
    opdi_card__is_all_true, opdi_card__is_any_true, opdi_card_nonzero_numpy, opdi_card_nonzero_static,
    opdi_card_combinations, opdi_card_cartesian_prod, opdi_card__histogramdd_bin_edges,
    opdi_card__histogramdd_from_bin_cts, opdi_card__histogramdd_from_bin_tensors, opdi_card_histogram_bins_tensor,
    opdi_card_histogram_bin_ct, opdi_card_histogramdd, opdi_card_histogramdd_int_bins,
    opdi_card_histogramdd_TensorList_bins
};
#endif
#if defined(OPD_NO_OP_TRAIN)
#define opdi_cards_train NULL
#else
static const opdi_card_fn opdi_cards_train[] = {
    opdi_card__fused_sgd_, opdi_card__fused_sgd__tensor_lr, opdi_card__fused_adam_, opdi_card__fused_adam__tensor_lr,
    opdi_card__fused_adamw_, opdi_card__fused_adamw__tensor_lr, opdi_card__amp_foreach_non_finite_check_and_unscale_,
    opdi_card__amp_update_scale_, opdi_card__foreach_abs, opdi_card__foreach_abs_, opdi_card__foreach_acos,
    opdi_card__foreach_acos_, opdi_card__foreach_add_List, opdi_card__foreach_add_Scalar,
    opdi_card__foreach_add_ScalarList, opdi_card__foreach_add_Tensor, opdi_card__foreach_add__List,
    opdi_card__foreach_add__Scalar, opdi_card__foreach_add__ScalarList, opdi_card__foreach_add__Tensor,
    opdi_card__foreach_addcdiv_Scalar, opdi_card__foreach_addcdiv_ScalarList, opdi_card__foreach_addcdiv_Tensor,
    opdi_card__foreach_addcdiv__Scalar, opdi_card__foreach_addcdiv__ScalarList, opdi_card__foreach_addcdiv__Tensor,
    opdi_card__foreach_addcmul_Scalar, opdi_card__foreach_addcmul_ScalarList, opdi_card__foreach_addcmul_Tensor,
    opdi_card__foreach_addcmul__Scalar, opdi_card__foreach_addcmul__ScalarList, opdi_card__foreach_addcmul__Tensor,
    opdi_card__foreach_asin, opdi_card__foreach_asin_, opdi_card__foreach_atan, opdi_card__foreach_atan_,
    opdi_card__foreach_ceil, opdi_card__foreach_ceil_, opdi_card__foreach_clamp_max_List,
    opdi_card__foreach_clamp_max_Scalar, opdi_card__foreach_clamp_max_ScalarList, opdi_card__foreach_clamp_max__List,
    opdi_card__foreach_clamp_max__Scalar, opdi_card__foreach_clamp_max__ScalarList, opdi_card__foreach_clamp_min_List,
    opdi_card__foreach_clamp_min_Scalar, opdi_card__foreach_clamp_min_ScalarList, opdi_card__foreach_clamp_min__List,
    opdi_card__foreach_clamp_min__Scalar, opdi_card__foreach_clamp_min__ScalarList, opdi_card__foreach_clone,
    opdi_card__foreach_copy, opdi_card__foreach_copy_, opdi_card__foreach_cos, opdi_card__foreach_cos_,
    opdi_card__foreach_cosh, opdi_card__foreach_cosh_, opdi_card__foreach_div_List, opdi_card__foreach_div_Scalar,
    opdi_card__foreach_div_ScalarList, opdi_card__foreach_div_Tensor, opdi_card__foreach_div__List,
    opdi_card__foreach_div__Scalar, opdi_card__foreach_div__ScalarList, opdi_card__foreach_div__Tensor,
    opdi_card__foreach_erf, opdi_card__foreach_erf_, opdi_card__foreach_erfc, opdi_card__foreach_erfc_,
    opdi_card__foreach_exp, opdi_card__foreach_exp_, opdi_card__foreach_expm1, opdi_card__foreach_expm1_,
    opdi_card__foreach_floor, opdi_card__foreach_floor_, opdi_card__foreach_frac, opdi_card__foreach_frac_,
    opdi_card__foreach_lerp_List, opdi_card__foreach_lerp_Scalar, opdi_card__foreach_lerp_ScalarList,
    opdi_card__foreach_lerp__List, opdi_card__foreach_lerp__Scalar, opdi_card__foreach_lerp__ScalarList,
    opdi_card__foreach_lgamma, opdi_card__foreach_lgamma_, opdi_card__foreach_log, opdi_card__foreach_log10,
    opdi_card__foreach_log10_, opdi_card__foreach_log1p, opdi_card__foreach_log1p_, opdi_card__foreach_log2,
    opdi_card__foreach_log2_, opdi_card__foreach_log_, opdi_card__foreach_max, opdi_card__foreach_maximum_List,
    opdi_card__foreach_maximum_Scalar, opdi_card__foreach_maximum_ScalarList, opdi_card__foreach_maximum__List,
    opdi_card__foreach_maximum__Scalar, opdi_card__foreach_maximum__ScalarList, opdi_card__foreach_minimum_List,
    opdi_card__foreach_minimum_Scalar, opdi_card__foreach_minimum_ScalarList, opdi_card__foreach_minimum__List,
    opdi_card__foreach_minimum__Scalar, opdi_card__foreach_minimum__ScalarList, opdi_card__foreach_mm,
    opdi_card__foreach_mul_List, opdi_card__foreach_mul_Scalar, opdi_card__foreach_mul_ScalarList,
    opdi_card__foreach_mul_Tensor, opdi_card__foreach_mul__List, opdi_card__foreach_mul__Scalar,
    opdi_card__foreach_mul__ScalarList, opdi_card__foreach_mul__Tensor, opdi_card__foreach_neg, opdi_card__foreach_neg_,
    opdi_card__foreach_norm_Scalar, opdi_card__foreach_powsum_Scalar, opdi_card__foreach_pow_List,
    opdi_card__foreach_pow_Scalar, opdi_card__foreach_pow_ScalarAndTensor, opdi_card__foreach_pow_ScalarList,
    opdi_card__foreach_pow__List, opdi_card__foreach_pow__Scalar, opdi_card__foreach_pow__ScalarList,
    opdi_card__foreach_reciprocal, opdi_card__foreach_reciprocal_, opdi_card__foreach_round, opdi_card__foreach_round_,
    opdi_card__foreach_rsqrt, opdi_card__foreach_rsqrt_, opdi_card__foreach_sigmoid, opdi_card__foreach_sigmoid_,
    opdi_card__foreach_sign, opdi_card__foreach_sign_, opdi_card__foreach_sin, opdi_card__foreach_sin_,
    opdi_card__foreach_sinh, opdi_card__foreach_sinh_, opdi_card__foreach_sqrt, opdi_card__foreach_sqrt_,
    opdi_card__foreach_sub_List, opdi_card__foreach_sub_Scalar, opdi_card__foreach_sub_ScalarList,
    opdi_card__foreach_sub__List, opdi_card__foreach_sub__Scalar, opdi_card__foreach_sub__ScalarList,
    opdi_card__foreach_tan, opdi_card__foreach_tan_, opdi_card__foreach_tanh, opdi_card__foreach_tanh_,
    opdi_card__foreach_trunc, opdi_card__foreach_trunc_, opdi_card__foreach_zero, opdi_card__foreach_zero_
};
#endif
static const struct { int n; const opdi_card_fn *cards; const char *macro; } opdi_families[] = {
    {92, opdi_cards_create, ""},
    {175, opdi_cards_view, ""},
    {220, opdi_cards_pointwise, "OPD_NO_OPERATORS"},
    {103, opdi_cards_reduce, "OPD_NO_OPERATORS"},
    {27, opdi_cards_linalg, "OPD_NO_OPERATORS"},
    {16, opdi_cards_conv, "OPD_NO_OP_CONV"},
    {31, opdi_cards_pool, "OPD_NO_OP_POOL"},
    {56, opdi_cards_resample, "OPD_NO_OP_RESAMPLE"},
    {7, opdi_cards_distance, "OPD_NO_OP_DISTANCE"},
    {41, opdi_cards_fft, "OPD_NO_OP_FFT"},
    {79, opdi_cards_solve, "OPD_NO_OP_SOLVE"},
    {95, opdi_cards_special, "OPD_NO_OP_SPECIAL"},
    {42, opdi_cards_norm, "OPD_NO_OP_NORM"},
    {27, opdi_cards_sequence, "OPD_NO_OP_SEQUENCE"},
    {54, opdi_cards_loss, "OPD_NO_OP_LOSS"},
    {106, opdi_cards_index, "OPD_NO_OP_INDEX"},
    {156, opdi_cards_train, "OPD_NO_OP_TRAIN"}
};
