//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:resample   windows as columns, pixels as channels, other sizes, sampling at places
//----------------------------------------------------------------------------------------------------------------------

/* im2col: windows [N, C, H, W] as columns [N, C * window, places] */
OPD_API opd_tensor *opd_im2col(opd_tensor *self, opd_ints kernel_size, opd_ints dilation, opd_ints padding,
                               opd_ints stride);
/* col2im: columns summed into images of output_size */
OPD_API opd_tensor *opd_col2im(opd_tensor *self, opd_ints output_size, opd_ints kernel_size, opd_ints dilation,
                               opd_ints padding, opd_ints stride);
/* pixel_shuffle: channels as pixels: [.., C r^2, H, W] to [.., C, H r, W r] */
OPD_API opd_tensor *opd_pixel_shuffle(opd_tensor *self, int64_t upscale_factor);
/* pixel_unshuffle: pixels as channels: [.., C, H r, W r] to [.., C r^2, H, W] */
OPD_API opd_tensor *opd_pixel_unshuffle(opd_tensor *self, int64_t downscale_factor);
/* upsample_nearest2d: [N, C, H, W] in another size, by the nearest */
OPD_API opd_tensor *opd_upsample_nearest2d(opd_tensor *self, opd_ints output_size);
OPD_API opd_tensor *opd_upsample_nearest2d_full(opd_tensor *self, opd_ints output_size, opd_value scales_h,
                                        opd_value scales_w);
/* upsample_nearest2d_backward: derivative of upsample_nearest2d */
OPD_API opd_tensor *opd_upsample_nearest2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size);
OPD_API opd_tensor *opd_upsample_nearest2d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales_h, opd_value scales_w);
/* upsample_nearest2d.vec: [N, C, H, W] in another size, by the nearest */
OPD_API opd_tensor *opd_upsample_nearest2d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors);
/* upsample_nearest2d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_nearest2d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scale_factors);
/* upsample_bilinear2d: [N, C, H, W] in another size, linear between pixels */
OPD_API opd_tensor *opd_upsample_bilinear2d(opd_tensor *self, opd_ints output_size, bool align_corners);
OPD_API opd_tensor *opd_upsample_bilinear2d_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_h, opd_value scales_w);
/* upsample_bilinear2d_backward: derivative of upsample_bilinear2d */
OPD_API opd_tensor *opd_upsample_bilinear2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners);
OPD_API opd_tensor *opd_upsample_bilinear2d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w);
/* upsample_bilinear2d.vec: [N, C, H, W] in another size, linear between pixels */
OPD_API opd_tensor *opd_upsample_bilinear2d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors);
/* upsample_bilinear2d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_bilinear2d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scale_factors);
/* upsample_nearest1d: [N, C, L] in another size, by the nearest */
OPD_API opd_tensor *opd_upsample_nearest1d(opd_tensor *self, opd_ints output_size);
OPD_API opd_tensor *opd_upsample_nearest1d_full(opd_tensor *self, opd_ints output_size, opd_value scales);
/* upsample_nearest1d_backward: derivative of upsample_nearest1d */
OPD_API opd_tensor *opd_upsample_nearest1d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size);
OPD_API opd_tensor *opd_upsample_nearest1d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales);
/* upsample_nearest1d.vec: [N, C, L] in another size, by the nearest */
OPD_API opd_tensor *opd_upsample_nearest1d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors);
/* upsample_nearest1d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_nearest1d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scale_factors);
/* upsample_nearest3d: [N, C, D, H, W] in another size, by the nearest */
OPD_API opd_tensor *opd_upsample_nearest3d(opd_tensor *self, opd_ints output_size);
OPD_API opd_tensor *opd_upsample_nearest3d_full(opd_tensor *self, opd_ints output_size, opd_value scales_d,
                                        opd_value scales_h, opd_value scales_w);
/* upsample_nearest3d_backward: derivative of upsample_nearest3d */
OPD_API opd_tensor *opd_upsample_nearest3d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size);
OPD_API opd_tensor *opd_upsample_nearest3d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales_d, opd_value scales_h,
                                        opd_value scales_w);
/* upsample_nearest3d.vec: [N, C, D, H, W] in another size, by the nearest */
OPD_API opd_tensor *opd_upsample_nearest3d_vec(opd_tensor *input, opd_value output_size, opd_value scale_factors);
/* upsample_nearest3d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_nearest3d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scale_factors);
/* _upsample_nearest_exact1d: [N, C, L] in another size, by the nearest to the middle */
OPD_API opd_tensor *opd__upsample_nearest_exact1d(opd_tensor *self, opd_ints output_size);
OPD_API opd_tensor *opd__upsample_nearest_exact1d_full(opd_tensor *self, opd_ints output_size, opd_value scales);
/* _upsample_nearest_exact1d_backward: derivative of _upsample_nearest_exact1d */
OPD_API opd_tensor *opd__upsample_nearest_exact1d_backward(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size);
OPD_API opd_tensor *opd__upsample_nearest_exact1d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales);
/* _upsample_nearest_exact1d.vec: [N, C, L] in another size, by the nearest to the middle */
OPD_API opd_tensor *opd__upsample_nearest_exact1d_vec(opd_tensor *input, opd_value output_size,
                                        opd_value scale_factors);
/* _upsample_nearest_exact2d: [N, C, H, W] in another size, by the nearest to the middle */
OPD_API opd_tensor *opd__upsample_nearest_exact2d(opd_tensor *self, opd_ints output_size);
OPD_API opd_tensor *opd__upsample_nearest_exact2d_full(opd_tensor *self, opd_ints output_size, opd_value scales_h,
                                        opd_value scales_w);
/* _upsample_nearest_exact2d_backward: derivative of _upsample_nearest_exact2d */
OPD_API opd_tensor *opd__upsample_nearest_exact2d_backward(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size);
OPD_API opd_tensor *opd__upsample_nearest_exact2d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales_h, opd_value scales_w);
/* _upsample_nearest_exact2d.vec: [N, C, H, W] in another size, by the nearest to the middle */
OPD_API opd_tensor *opd__upsample_nearest_exact2d_vec(opd_tensor *input, opd_value output_size,
                                        opd_value scale_factors);
/* _upsample_nearest_exact3d: [N, C, D, H, W] in another size, by the nearest to the middle */
OPD_API opd_tensor *opd__upsample_nearest_exact3d(opd_tensor *self, opd_ints output_size);
OPD_API opd_tensor *opd__upsample_nearest_exact3d_full(opd_tensor *self, opd_ints output_size, opd_value scales_d,
                                        opd_value scales_h, opd_value scales_w);
/* _upsample_nearest_exact3d_backward: derivative of _upsample_nearest_exact3d */
OPD_API opd_tensor *opd__upsample_nearest_exact3d_backward(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size);
OPD_API opd_tensor *opd__upsample_nearest_exact3d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, opd_value scales_d, opd_value scales_h,
                                        opd_value scales_w);
/* _upsample_nearest_exact3d.vec: [N, C, D, H, W] in another size, by the nearest to the middle */
OPD_API opd_tensor *opd__upsample_nearest_exact3d_vec(opd_tensor *input, opd_value output_size,
                                        opd_value scale_factors);
/* upsample_linear1d: [N, C, L] in another size, linear between */
OPD_API opd_tensor *opd_upsample_linear1d(opd_tensor *self, opd_ints output_size, bool align_corners);
OPD_API opd_tensor *opd_upsample_linear1d_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales);
/* upsample_linear1d_backward: derivative of upsample_linear1d */
OPD_API opd_tensor *opd_upsample_linear1d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners);
OPD_API opd_tensor *opd_upsample_linear1d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales);
/* upsample_linear1d.vec: [N, C, L] in another size, linear between */
OPD_API opd_tensor *opd_upsample_linear1d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors);
/* upsample_linear1d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_linear1d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scale_factors);
/* upsample_trilinear3d: [N, C, D, H, W] in another size, linear between */
OPD_API opd_tensor *opd_upsample_trilinear3d(opd_tensor *self, opd_ints output_size, bool align_corners);
OPD_API opd_tensor *opd_upsample_trilinear3d_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_d, opd_value scales_h, opd_value scales_w);
/* upsample_trilinear3d_backward: derivative of upsample_trilinear3d */
OPD_API opd_tensor *opd_upsample_trilinear3d_backward(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners);
OPD_API opd_tensor *opd_upsample_trilinear3d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales_d, opd_value scales_h,
                                        opd_value scales_w);
/* upsample_trilinear3d.vec: [N, C, D, H, W] in another size, linear between */
OPD_API opd_tensor *opd_upsample_trilinear3d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors);
/* upsample_trilinear3d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_trilinear3d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scale_factors);
/* upsample_bicubic2d: [N, C, H, W] in another size, cubic between */
OPD_API opd_tensor *opd_upsample_bicubic2d(opd_tensor *self, opd_ints output_size, bool align_corners);
OPD_API opd_tensor *opd_upsample_bicubic2d_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_h, opd_value scales_w);
/* upsample_bicubic2d_backward: derivative of upsample_bicubic2d */
OPD_API opd_tensor *opd_upsample_bicubic2d_backward(opd_tensor *grad_output, opd_ints output_size, opd_ints input_size,
                                        bool align_corners);
OPD_API opd_tensor *opd_upsample_bicubic2d_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w);
/* upsample_bicubic2d.vec: [N, C, H, W] in another size, cubic between */
OPD_API opd_tensor *opd_upsample_bicubic2d_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors);
/* upsample_bicubic2d_backward.vec: its derivative, in programs of PyTorch 1 */
OPD_API opd_tensor *opd_upsample_bicubic2d_backward_vec(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scale_factors);
/* _upsample_bilinear2d_aa: [N, C, H, W] in another size, linear, smoothed where it shrinks */
OPD_API opd_tensor *opd__upsample_bilinear2d_aa(opd_tensor *self, opd_ints output_size, bool align_corners);
OPD_API opd_tensor *opd__upsample_bilinear2d_aa_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_h, opd_value scales_w);
/* _upsample_bilinear2d_aa_backward: derivative of _upsample_bilinear2d_aa */
OPD_API opd_tensor *opd__upsample_bilinear2d_aa_backward(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners);
OPD_API opd_tensor *opd__upsample_bilinear2d_aa_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w);
/* _upsample_bilinear2d_aa.vec: [N, C, H, W] in another size, linear, smoothed where it shrinks */
OPD_API opd_tensor *opd__upsample_bilinear2d_aa_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors);
/* _upsample_bicubic2d_aa: [N, C, H, W] in another size, cubic, smoothed where it shrinks */
OPD_API opd_tensor *opd__upsample_bicubic2d_aa(opd_tensor *self, opd_ints output_size, bool align_corners);
OPD_API opd_tensor *opd__upsample_bicubic2d_aa_full(opd_tensor *self, opd_ints output_size, bool align_corners,
                                        opd_value scales_h, opd_value scales_w);
/* _upsample_bicubic2d_aa_backward: derivative of _upsample_bicubic2d_aa */
OPD_API opd_tensor *opd__upsample_bicubic2d_aa_backward(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners);
OPD_API opd_tensor *opd__upsample_bicubic2d_aa_backward_full(opd_tensor *grad_output, opd_ints output_size,
                                        opd_ints input_size, bool align_corners, opd_value scales_h,
                                        opd_value scales_w);
/* _upsample_bicubic2d_aa.vec: [N, C, H, W] in another size, cubic, smoothed where it shrinks */
OPD_API opd_tensor *opd__upsample_bicubic2d_aa_vec(opd_tensor *input, opd_value output_size, bool align_corners,
                                        opd_value scale_factors);
/* grid_sampler_2d: input [N, C, H, W] at the places grid [N, h, w, 2], -1 to 1 */
OPD_API opd_tensor *opd_grid_sampler_2d(opd_tensor *input, opd_tensor *grid, int64_t interpolation_mode,
                                        int64_t padding_mode, bool align_corners);
/* grid_sampler_2d_backward: derivatives of grid_sampler_2d */
OPD_API int opd_grid_sampler_2d_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *input,
                                        opd_tensor *grid, int64_t interpolation_mode, int64_t padding_mode,
                                        bool align_corners, opd_value output_mask);
/* grid_sampler: grid_sampler_2d */
OPD_API opd_tensor *opd_grid_sampler(opd_tensor *input, opd_tensor *grid, int64_t interpolation_mode,
                                     int64_t padding_mode, bool align_corners);

/* affine_grid_generator: places of an output [N, C, ..] of `size` where theta sends them, for grid_sampler */
OPD_API opd_tensor *opd_affine_grid_generator(opd_tensor *theta, opd_ints size, bool align_corners);
/* affine_grid_generator_backward: derivative of affine_grid_generator */
OPD_API opd_tensor *opd_affine_grid_generator_backward(opd_tensor *grad, opd_ints size, bool align_corners);
/* channel_shuffle: channels of groups by turns: [N, groups, C / groups, ..] to [N, C / groups, groups, ..] */
OPD_API opd_tensor *opd_channel_shuffle(opd_tensor *self, int64_t groups);
/* native_channel_shuffle: channel_shuffle */
OPD_API opd_tensor *opd_native_channel_shuffle(opd_tensor *self, int64_t groups);
/* grid_sampler_3d: input at the places of grid [N, D, H, W, 3], from -1 to 1 */
OPD_API opd_tensor *opd_grid_sampler_3d(opd_tensor *input, opd_tensor *grid, int64_t interpolation_mode,
                                        int64_t padding_mode, bool align_corners);
/* grid_sampler_3d_backward: derivatives of grid_sampler_3d */
OPD_API int opd_grid_sampler_3d_backward(opd_tensor **rets, opd_tensor *grad_output, opd_tensor *input,
                                        opd_tensor *grid, int64_t interpolation_mode, int64_t padding_mode,
                                        bool align_corners, opd_value output_mask);

