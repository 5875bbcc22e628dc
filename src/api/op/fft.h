//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:fft        Fourier transforms
//----------------------------------------------------------------------------------------------------------------------

/* _fft_r2c: Fourier transform of real numbers; onesided: half of the last dim */
OPD_API opd_tensor *opd_fft_r2c(opd_tensor *self, opd_ints dim, int64_t normalization, bool onesided);
/* _fft_c2r: inverse of _fft_r2c, last_dim_size long */
OPD_API opd_tensor *opd_fft_c2r(opd_tensor *self, opd_ints dim, int64_t normalization, int64_t last_dim_size);
/* _fft_c2c: Fourier transform of complex numbers, forward or inverse */
OPD_API opd_tensor *opd_fft_c2c(opd_tensor *self, opd_ints dim, int64_t normalization, bool forward);
/* fft_fft: Fourier transform, along a dim */
OPD_API opd_tensor *opd_fft_fft(opd_tensor *self);
OPD_API opd_tensor *opd_fft_fft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm);
/* fft_ifft: inverse of fft, along a dim */
OPD_API opd_tensor *opd_fft_ifft(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ifft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm);
/* fft_rfft: Fourier transform of real numbers, half of it, along a dim */
OPD_API opd_tensor *opd_fft_rfft(opd_tensor *self);
OPD_API opd_tensor *opd_fft_rfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm);
/* fft_irfft: inverse of rfft, along a dim */
OPD_API opd_tensor *opd_fft_irfft(opd_tensor *self);
OPD_API opd_tensor *opd_fft_irfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm);
/* fft_hfft: Fourier transform of what is the conjugate of its mirror image: real, along a dim */
OPD_API opd_tensor *opd_fft_hfft(opd_tensor *self);
OPD_API opd_tensor *opd_fft_hfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm);
/* fft_ihfft: inverse of hfft, along a dim */
OPD_API opd_tensor *opd_fft_ihfft(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ihfft_full(opd_tensor *self, opd_value n, int64_t dim, const char *norm);
/* fft_fft2: Fourier transform, over two dims */
OPD_API opd_tensor *opd_fft_fft2(opd_tensor *self);
OPD_API opd_tensor *opd_fft_fft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_ifft2: inverse of fft, over two dims */
OPD_API opd_tensor *opd_fft_ifft2(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ifft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_rfft2: Fourier transform of real numbers, half of it, over two dims */
OPD_API opd_tensor *opd_fft_rfft2(opd_tensor *self);
OPD_API opd_tensor *opd_fft_rfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_irfft2: inverse of rfft, over two dims */
OPD_API opd_tensor *opd_fft_irfft2(opd_tensor *self);
OPD_API opd_tensor *opd_fft_irfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_hfft2: Fourier transform of what is the conjugate of its mirror image: real, over two dims */
OPD_API opd_tensor *opd_fft_hfft2(opd_tensor *self);
OPD_API opd_tensor *opd_fft_hfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_ihfft2: inverse of hfft, over two dims */
OPD_API opd_tensor *opd_fft_ihfft2(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ihfft2_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_fftn: Fourier transform, over dims */
OPD_API opd_tensor *opd_fft_fftn(opd_tensor *self);
OPD_API opd_tensor *opd_fft_fftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_ifftn: inverse of fft, over dims */
OPD_API opd_tensor *opd_fft_ifftn(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ifftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_rfftn: Fourier transform of real numbers, half of it, over dims */
OPD_API opd_tensor *opd_fft_rfftn(opd_tensor *self);
OPD_API opd_tensor *opd_fft_rfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_irfftn: inverse of rfft, over dims */
OPD_API opd_tensor *opd_fft_irfftn(opd_tensor *self);
OPD_API opd_tensor *opd_fft_irfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_hfftn: Fourier transform of what is the conjugate of its mirror image: real, over dims */
OPD_API opd_tensor *opd_fft_hfftn(opd_tensor *self);
OPD_API opd_tensor *opd_fft_hfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_ihfftn: inverse of hfft, over dims */
OPD_API opd_tensor *opd_fft_ihfftn(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ihfftn_full(opd_tensor *self, opd_ints s, opd_ints dim, const char *norm);
/* fft_fftshift: moves the first element along dims to the middle */
OPD_API opd_tensor *opd_fft_fftshift(opd_tensor *self);
OPD_API opd_tensor *opd_fft_fftshift_full(opd_tensor *self, opd_ints dim);
/* fft_ifftshift: undoes fft_fftshift */
OPD_API opd_tensor *opd_fft_ifftshift(opd_tensor *self);
OPD_API opd_tensor *opd_fft_ifftshift_full(opd_tensor *self, opd_ints dim);
/* fft_fftfreq: the frequencies of n points of a transform, d apart */
OPD_API opd_tensor *opd_fft_fftfreq(int64_t n, double d, opd_scalar_type dtype);
OPD_API opd_tensor *opd_fft_fftfreq_full(int64_t n, double d, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* fft_rfftfreq: the frequencies of n points of a transform of real numbers, d apart */
OPD_API opd_tensor *opd_fft_rfftfreq(int64_t n, double d, opd_scalar_type dtype);
OPD_API opd_tensor *opd_fft_rfftfreq_full(int64_t n, double d, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* hann_window: a window, 0.5 - 0.5 cos, for transforms of pieces */
OPD_API opd_tensor *opd_hann_window(int64_t window_length, opd_scalar_type dtype);
OPD_API opd_tensor *opd_hann_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* hann_window.periodic: a window, 0.5 - 0.5 cos, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_hann_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype);
OPD_API opd_tensor *opd_hann_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* hamming_window: a window, 0.54 - 0.46 cos, for transforms of pieces */
OPD_API opd_tensor *opd_hamming_window(int64_t window_length, opd_scalar_type dtype);
OPD_API opd_tensor *opd_hamming_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* hamming_window.periodic: a window, 0.54 - 0.46 cos, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_hamming_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype);
OPD_API opd_tensor *opd_hamming_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* hamming_window.periodic_alpha: a window, alpha - 0.46 cos, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_hamming_window_periodic_alpha(int64_t window_length, bool periodic, double alpha,
                                        opd_scalar_type dtype);
OPD_API opd_tensor *opd_hamming_window_periodic_alpha_full(int64_t window_length, bool periodic, double alpha,
                                        opd_value dtype, opd_value layout, opd_value device, opd_value pin_memory);
/* hamming_window.periodic_alpha_beta: a window, alpha - beta cos, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_hamming_window_periodic_alpha_beta(int64_t window_length, bool periodic, double alpha,
                                        double beta, opd_scalar_type dtype);
OPD_API opd_tensor *opd_hamming_window_periodic_alpha_beta_full(int64_t window_length, bool periodic, double alpha,
                                        double beta, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* blackman_window: a window of three cosines, for transforms of pieces */
OPD_API opd_tensor *opd_blackman_window(int64_t window_length, opd_scalar_type dtype);
OPD_API opd_tensor *opd_blackman_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* blackman_window.periodic: a window of three cosines, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_blackman_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype);
OPD_API opd_tensor *opd_blackman_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* bartlett_window: a window that is a triangle, for transforms of pieces */
OPD_API opd_tensor *opd_bartlett_window(int64_t window_length, opd_scalar_type dtype);
OPD_API opd_tensor *opd_bartlett_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* bartlett_window.periodic: a window that is a triangle, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_bartlett_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype);
OPD_API opd_tensor *opd_bartlett_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* kaiser_window: a window of Bessel functions, of beta 12, for transforms of pieces */
OPD_API opd_tensor *opd_kaiser_window(int64_t window_length, opd_scalar_type dtype);
OPD_API opd_tensor *opd_kaiser_window_full(int64_t window_length, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory);
/* kaiser_window.periodic: a window of Bessel functions, of beta 12, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_kaiser_window_periodic(int64_t window_length, bool periodic, opd_scalar_type dtype);
OPD_API opd_tensor *opd_kaiser_window_periodic_full(int64_t window_length, bool periodic, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* kaiser_window.beta: a window of Bessel functions, for transforms of pieces, or symmetric */
OPD_API opd_tensor *opd_kaiser_window_beta(int64_t window_length, bool periodic, double beta, opd_scalar_type dtype);
OPD_API opd_tensor *opd_kaiser_window_beta_full(int64_t window_length, bool periodic, double beta, opd_value dtype,
                                        opd_value layout, opd_value device, opd_value pin_memory);
/* stft: Fourier transforms of pieces of a signal, each times a window */
OPD_API opd_tensor *opd_stft(opd_tensor *self, int64_t n_fft);
OPD_API opd_tensor *opd_stft_full(opd_tensor *self, int64_t n_fft, opd_value hop_length, opd_value win_length,
                                  opd_tensor *window, bool normalized, opd_value onesided, opd_value return_complex,
                                  opd_value align_to_window);
/* stft.center: Fourier transforms of pieces of a signal, with elements more at both ends */
OPD_API opd_tensor *opd_stft_center(opd_tensor *self, int64_t n_fft);
OPD_API opd_tensor *opd_stft_center_full(opd_tensor *self, int64_t n_fft, opd_value hop_length, opd_value win_length,
                                        opd_tensor *window, bool center, const char *pad_mode, bool normalized,
                                        opd_value onesided, opd_value return_complex, opd_value align_to_window);
/* istft: the signal from stft's transforms of its pieces */
OPD_API opd_tensor *opd_istft(opd_tensor *self, int64_t n_fft);
OPD_API opd_tensor *opd_istft_full(opd_tensor *self, int64_t n_fft, opd_value hop_length, opd_value win_length,
                                   opd_tensor *window, bool center, bool normalized, opd_value onesided,
                                   opd_value length, bool return_complex);

