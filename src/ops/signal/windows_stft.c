#include "../ops.h"

//== window functions, and sample frequencies ==========================================================================
//
//  Windows are computed by operators in the requested dtype, in the same steps as in PyTorch, so that 16-bit floats
//  are rounded as in PyTorch.

enum { OPDI_WINDOW_BARTLETT, OPDI_WINDOW_BLACKMAN, OPDI_WINDOW_COSINE, OPDI_WINDOW_KAISER };
/* Returns the numbers start, start + 1, ... below end, with the given dtype and the device of options. */
static opd_tensor *opdi_window_steps(const opdi_options *options, int64_t start, int64_t end, opd_scalar_type dtype) {
    return opd_arange_start_full(opd_value_int(start), opd_value_int(end), opd_value_int(dtype), opd_value_none(),
                                 opd_value_device(options->device), opd_value_none());
}
/* Returns the bartlett window of `points` elements: 2 k / (points - 1) for step k of the first half, and 2 minus
   this value in the second half. */
static opd_tensor *opdi_window_bartlett(opd_tensor *steps, int64_t points) {
    const int64_t half = (points - 1) / 2 + 1;
    opd_tensor *window = opdi_muls(steps, 2 / (double)(points - 1));
    opd_tensor *rest = opd_narrow(window, 0, half, points - half);
    return opd_copy_(rest, opdi_adds(opdi_muls(rest, -1), 2)) ? window : NULL;
}
/* Returns the blackman window: 0.08 cos(4 a) - 0.5 cos(2 a) + 0.42 with a = pi k / (points - 1), for each step k. */
static opd_tensor *opdi_window_blackman(opd_tensor *steps, int64_t points) {
    opd_tensor *angle = opdi_muls(steps, 3.14159265358979323846 / (double)(points - 1));
    opd_tensor *fast = opdi_muls(opd_cos(opdi_muls(angle, 4)), 0.08);
    opd_tensor *slow = opdi_muls(opd_cos(opdi_muls(angle, 2)), 0.5);
    return opdi_adds(opd_sub(fast, slow), 0.42);
}
/* Returns the window alpha - beta cos(2 pi k / (points - 1)), for each step k. */
static opd_tensor *opdi_window_cosine(opd_tensor *steps, int64_t points, double alpha, double beta) {
    opd_tensor *angle = opdi_muls(steps, 6.28318530717958647693 / (double)(points - 1));
    return opdi_adds(opdi_muls(opd_cos(angle), -beta), alpha);
}
/* Returns the kaiser window: i0(beta sqrt(1 - x^2)) / i0(beta) with x = 2 k / (points - 1) - 1, for each step k. */
static opd_tensor *opdi_window_kaiser(opd_tensor *steps, int64_t points, double beta) {
    opd_tensor *x = opdi_adds(opdi_muls(steps, 2 / (double)(points - 1)), -1);
    opd_tensor *root = opd_sqrt(opd_clamp_min(opd_rsub_Scalar(opd_mul(x, x), opd_value_int(1)), opd_value_int(0)));
    opd_tensor *most = opd_i0(opd_full(opd_ints_of(NULL, 0), opd_value_double(beta), OPD_FLOAT64));
    if (!most) { return NULL; }
    return opdi_muls(opd_i0(opdi_muls(root, beta)), 1 / opd_item_f64(most));
}
/* Runs the operators *_window: makes a window of this kind, with the length in argument 0.  A periodic window is made
   with one more point, and the last point is then cut off.  Returns 0, or -1 and sets an error. */
static int opdi_window_make(opd_call *call, int kind, double alpha, double beta) {
    const char *name = call->op->schema->name;
    const int64_t length = opd_arg_int(call, 0);
    const int at = call->op->nargs - 4;
    opdi_options options;
    if (opdi_options_read(call, at, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    if (!opd_dtype_is_floating(options.dtype) && !opd_dtype_is_complex(options.dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s expects floating point dtypes, got: %s", name,
                        opd_dtype_name(options.dtype));
    }
    if (length < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s requires non-negative window_length, got window_length=%lld", name,
                        (long long)length);
    }
    opd_tensor *out = opdi_result_sized(call, opd_ints_of(&length, 1), &options);
    if (!out || !out->data || length == 0) { return out ? 0 : -1; }
    if (length == 1) { return opdi_fill_with(out, opd_value_int(1)); }
    const int64_t points = length + (at < 2 || opd_arg_bool(call, 1));
    /* like PyTorch, computes a Kaiser window in double and rounds it once */
    const bool wide = kind == OPDI_WINDOW_KAISER && opd_dtype_is_floating(options.dtype);
    opd_tensor *window = opdi_window_steps(&options, 0, points, wide ? OPD_FLOAT64 : options.dtype);
    switch (kind) {
    case OPDI_WINDOW_BARTLETT: window = opdi_window_bartlett(window, points); break;
    case OPDI_WINDOW_BLACKMAN: window = opdi_window_blackman(window, points); break;
    case OPDI_WINDOW_KAISER: window = opdi_window_kaiser(window, points, beta); break;
    default: window = opdi_window_cosine(window, points, alpha, beta); break;
    }
    window = opd_narrow(window, 0, 0, length);
    return window ? opdi_copy(out, window) : -1;
}
static void opdi_window_card(opd_op_desc *op, opd_kernel kernel) {
    op->any = kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
}
static int opdi_hann_window_kernel(opd_call *call) {
    return opdi_window_make(call, OPDI_WINDOW_COSINE, 0.5, 0.5);
}
static int opdi_hamming_window_kernel(opd_call *call) {
    return opdi_window_make(call, OPDI_WINDOW_COSINE, call->op->nargs > 6 ? opd_arg_double(call, 2) : 0.54,
                            call->op->nargs > 7 ? opd_arg_double(call, 3) : 0.46);
}
static int opdi_blackman_window_kernel(opd_call *call) { return opdi_window_make(call, OPDI_WINDOW_BLACKMAN, 0, 0); }
static int opdi_bartlett_window_kernel(opd_call *call) { return opdi_window_make(call, OPDI_WINDOW_BARTLETT, 0, 0); }
static int opdi_kaiser_window_kernel(opd_call *call) {
    return opdi_window_make(call, OPDI_WINDOW_KAISER, 0, call->op->nargs > 6 ? opd_arg_double(call, 2) : 12);
}
/* opd_hann_window: the window 0.5 - 0.5 cos(2 pi k / n) of n elements, for short-time transforms (stft) */
OPDI_OP(hann_window) {
    op->schema = "hann_window(int window_length, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_hann_window_kernel);
    op->out = "hann_window.out";
    op->cases = "6; 1; 0; 5, dtype=7";
}
/* opd_hann_window_periodic: hann_window, periodic (for short-time transforms) or symmetric */
OPDI_OP(hann_window_periodic) {
    op->schema = "hann_window.periodic(int window_length, bool periodic, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_hann_window_kernel);
    op->out = "hann_window.periodic_out";
    op->cases = "6, False; 7, True; 1, False; 2, False";
}
/* opd_hamming_window: the window 0.54 - 0.46 cos(2 pi k / n) of n elements, for short-time transforms (stft) */
OPDI_OP(hamming_window) {
    op->schema = "hamming_window(int window_length, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_hamming_window_kernel);
    op->out = "hamming_window.out";
    op->cases = "6; 1; 0; 5, dtype=7";
}
/* opd_hamming_window_periodic: hamming_window, periodic (for short-time transforms) or symmetric */
OPDI_OP(hamming_window_periodic) {
    op->schema = "hamming_window.periodic(int window_length, bool periodic, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_hamming_window_kernel);
    op->out = "hamming_window.periodic_out";
    op->cases = "6, False; 7, True";
}
/* opd_hamming_window_periodic_alpha: hamming_window with alpha instead of 0.54, periodic or symmetric */
OPDI_OP(hamming_window_periodic_alpha) {
    op->schema = "hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, *, " OPDI_OPTIONS_TEXT
        ") -> Tensor";
    opdi_window_card(op, opdi_hamming_window_kernel);
    op->out = "hamming_window.periodic_alpha_out";
    op->cases = "6, False, 0.6; 7, True, 0.3";
}
/* opd_hamming_window_periodic_alpha_beta: hamming_window with alpha and beta instead of 0.54 and 0.46 */
OPDI_OP(hamming_window_periodic_alpha_beta) {
    op->schema = "hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, *, "
        OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_hamming_window_kernel);
    op->out = "hamming_window.periodic_alpha_beta_out";
    op->cases = "6, False, 0.6, 0.2; 7, True, 0.3, 0.9";
}
/* opd_blackman_window: a sum of three cosines, a window for short-time transforms (stft) */
OPDI_OP(blackman_window) {
    op->schema = "blackman_window(int window_length, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_blackman_window_kernel);
    op->out = "blackman_window.out";
    op->cases = "6; 1; 0; 5, dtype=7";
}
/* opd_blackman_window_periodic: a sum of three cosines; periodic (for short-time transforms) or symmetric */
OPDI_OP(blackman_window_periodic) {
    op->schema = "blackman_window.periodic(int window_length, bool periodic, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_blackman_window_kernel);
    op->out = "blackman_window.periodic_out";
    op->cases = "6, False; 7, True";
}
/* opd_bartlett_window: a triangular window for short-time transforms (stft) */
OPDI_OP(bartlett_window) {
    op->schema = "bartlett_window(int window_length, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_bartlett_window_kernel);
    op->out = "bartlett_window.out";
    op->cases = "6; 1; 0; 5, dtype=7";
}
/* opd_bartlett_window_periodic: a triangular window; periodic (for short-time transforms) or symmetric */
OPDI_OP(bartlett_window_periodic) {
    op->schema = "bartlett_window.periodic(int window_length, bool periodic, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_bartlett_window_kernel);
    op->out = "bartlett_window.periodic_out";
    op->cases = "6, False; 7, True; 2, False; 3, False";
}
/* opd_kaiser_window: a quotient of Bessel functions with beta 12, a window for short-time transforms (stft) */
OPDI_OP(kaiser_window) {
    op->schema = "kaiser_window(int window_length, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_kaiser_window_kernel);
    op->out = "kaiser_window.out";
    op->cases = "6; 1; 0; 5, dtype=7";
}
/* opd_kaiser_window_periodic: kaiser_window with beta 12, periodic or symmetric */
OPDI_OP(kaiser_window_periodic) {
    op->schema = "kaiser_window.periodic(int window_length, bool periodic, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_kaiser_window_kernel);
    op->out = "kaiser_window.periodic_out";
    op->cases = "6, False; 7, True";
}
/* opd_kaiser_window_beta: kaiser_window with beta, periodic or symmetric */
OPDI_OP(kaiser_window_beta) {
    op->schema = "kaiser_window.beta(int window_length, bool periodic, float beta, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_kaiser_window_kernel);
    op->out = "kaiser_window.beta_out";
    op->cases = "6, False, 4.0; 7, True, 0.0";
}

/* Runs fftfreq or, if `half` is true, rfftfreq: returns the frequencies of a transform of n points at distance d.
   rfftfreq returns only the n / 2 + 1 frequencies that are not negative. */
static int opdi_fft_frequencies(opd_call *call, bool half) {
    const int64_t points = opd_arg_int(call, 0), count = half ? points / 2 + 1 : points;
    const double whole = (double)points * opd_arg_double(call, 1);
    opd_tensor *parts[2];
    opdi_options options;
    if (opdi_options_read(call, 2, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    if (!opd_dtype_is_floating(options.dtype) && !opd_dtype_is_complex(options.dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s requires a floating point or complex dtype",
                        half ? "rfftfreq" : "fftfreq");
    }
    opd_tensor *out = opdi_result_sized(call, opd_ints_of(&count, 1), &options);
    if (!out || !out->data || count == 0) { return out ? 0 : -1; }
    parts[0] = opdi_window_steps(&options, 0, half ? count : (points + 1) / 2, options.dtype);
    parts[1] = opdi_window_steps(&options, half ? 0 : -(points / 2), 0, options.dtype);
    if (!parts[0] || !parts[1]) { return -1; }
    opd_tensor *steps = opdi_muls(opd_cat(opd_tensors_of(parts, 2), 0), 1 / whole);
    return steps ? opdi_copy(out, steps) : -1;
}
static int opdi_fft_fftfreq_kernel(opd_call *call) { return opdi_fft_frequencies(call, false); }
static int opdi_fft_rfftfreq_kernel(opd_call *call) { return opdi_fft_frequencies(call, true); }
/* opd_fft_fftfreq: the frequencies of a transform of n points at distance d */
OPDI_OP(fft_fftfreq) {
    op->schema = "fft_fftfreq(int n, float d=1., *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_fft_fftfreq_kernel);
    op->out = "fft_fftfreq.out";
    op->cases = "6; 5, 0.5; 1; 0; 4, 2.0, dtype=7";
}
/* opd_fft_rfftfreq: the frequencies of a transform of n real numbers at distance d */
OPDI_OP(fft_rfftfreq) {
    op->schema = "fft_rfftfreq(int n, float d=1., *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    opdi_window_card(op, opdi_fft_rfftfreq_kernel);
    op->out = "fft_rfftfreq.out";
    op->cases = "6; 5, 0.5; 1; 4, 2.0, dtype=7";
}

//== short-time Fourier transforms and their inverse: stft, istft ======================================================
//
//  These are composite operators.  A signal is split into overlapping pieces of n_fft elements, which begin hop_length
//  elements apart and are views of the signal (unfold).  Each piece is multiplied by a window and transformed.

/* The arguments of stft or istft, with defaults filled in, and the call as text for errors. */
typedef struct opdi_stft {
    opd_tensor *self, *window;                    /* window: NULL if there is none */
    int64_t points, hop, width;
    char text[1600];
} opdi_stft;
static void opdi_stft_name(const opd_tensor *tensor, const char *open, const char *close, char *text, size_t cap) {
    char sizes[400];
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    (void)opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, sizes, sizeof sizes);
    if (opd_dtype_is_complex(dtype)) {
        (void)snprintf(text, cap, "CPU%sType%s%s%s", opd_dtype_cname(dtype), open, sizes, close);
    } else { (void)snprintf(text, cap, "torch.%sTensor%s%s%s", opd_dtype_cname(dtype), open, sizes, close); }
}
/* Writes stft->text, the call's name and arguments, which errors quote. */
static void opdi_stft_describe(const opd_call *call, opdi_stft *stft) {
    char one[500];
    size_t used = 0;
    for (int i = 0; i < call->op->nargs && used < sizeof stft->text; i++) {
        const char *name = call->op->schema->args[i].name;
        const opd_value value = opd_arg_value(call, i);
        if (value.tag == OPD_TAG_STR || (i == 5 && call->op->nargs == 11)) { continue; }   /* skips center, pad_mode */
        if (value.tag == OPD_TAG_TENSOR) {
            opdi_stft_name(value.u.t, i ? "{" : "", i ? "}" : "", one, sizeof one);
        } else if (value.tag == OPD_TAG_NONE && i != 2 && i != 3) { (void)snprintf(one, sizeof one, "None"); }
        else {
            (void)snprintf(one, sizeof one, "%lld", (long long)(i == 2 ? stft->hop : i == 3 ? stft->width : value.u.i));
        }
        const size_t available = sizeof stft->text - used;
        const int length = i ? snprintf(stft->text + used, available, ", %s=%s", name, one)
            : snprintf(stft->text, available, "%s(%s", call->op->schema->name, one);
        used += (size_t)OPDI_MAX(length, 0);
    }
    if (used < sizeof stft->text) { (void)snprintf(stft->text + used, sizeof stft->text - used, ")"); }
}
static void opdi_stft_read(const opd_call *call, opdi_stft *stft) {
    stft->self = opd_arg_tensor(call, 0);
    stft->points = opd_arg_int(call, 1);
    stft->hop = opd_arg_is_none(call, 2) ? (stft->points >= 0 ? stft->points / 4 : ~(~stft->points / 4))
        : opd_arg_int(call, 2);
    stft->width = opd_arg_is_none(call, 3) ? stft->points : opd_arg_int(call, 3);
    stft->window = opd_arg_tensor(call, 4);
    opdi_stft_describe(call, stft);
}
static bool opdi_stft_is_complex(const opd_tensor *tensor) {
    return tensor && opd_dtype_is_complex((opd_scalar_type)tensor->dtype);
}
/* Returns the window, filled up with zeros on both sides to n_fft elements.  If the call has no window, uses ones
   with the dtype and device of `like`. */
static opd_tensor *opdi_stft_window(const opdi_stft *stft, opd_tensor *like) {
    opd_tensor *window = stft->window ? stft->window : opd_new_ones(like, opd_ints_of(&stft->width, 1));
    int64_t pad[2];
    if (stft->width == stft->points) { return window; }
    pad[0] = (stft->points - stft->width) / 2;
    pad[1] = stft->points - stft->width - pad[0];
    return opd_constant_pad_nd(window, opd_ints_of(pad, 2));
}
/* Checks the sizes in *stft for a signal of `length` elements.  Returns 0, or -1 and sets an error. */
static int opdi_stft_check(const opdi_stft *stft, int64_t length) {
    char sizes[400];
    if (stft->points <= 0 || stft->points > length) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : expected 0 < n_fft < %lld, but got n_fft=%lld", stft->text,
                        (long long)length, (long long)stft->points);
    }
    if (stft->hop <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s : expected hop_length > 0, but got hop_length=%lld", stft->text,
                        (long long)stft->hop);
    }
    if (stft->width <= 0 || stft->width > stft->points) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : expected 0 < win_length <= n_fft, but got win_length=%lld", stft->text,
                        (long long)stft->width);
    }
    if (!stft->window || (stft->window->ndim == 1 && opdi_sizes(stft->window)[0] == stft->width)) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "%s : expected a 1D window tensor of size equal to win_length=%lld, but got "
                    "window with size %s", stft->text, (long long)stft->width,
                    opdi_sizes_text(opdi_sizes(stft->window), stft->window->ndim, sizes, sizeof sizes));
}
/* Returns input [batch, length] padded by points / 2 elements at both ends; `mode` is the kind of padding. */
static opd_tensor *opdi_stft_centered(opd_tensor *input, int64_t points, const char *mode) {
    int64_t pad[2];
    pad[0] = pad[1] = points / 2;
    input = opd_pad(opd_unsqueeze(input, 0), opd_ints_of(pad, 2), mode, opd_value_none());
    return opd_squeeze_dim(input, 0);
}
/* stft and stft.center (which has 11 arguments): returns [batch, frequencies, pieces], without the batch dim if self
   has none. */
static int opdi_stft_kernel(opd_call *call) {
    const int at = call->op->nargs == 11 ? 7 : 5;    /* index of the argument `normalized` */
    const bool center = at == 7 && opd_arg_bool(call, 5), aligned = !opd_arg_is_none(call, at + 3);
    opdi_stft stft;
    int64_t pad[2];
    opdi_stft_read(call, &stft);
    if (center && aligned) {
        return opd_fail(OPD_ERROR_ARGUMENT, "stft align_to_window should only be set when center = false.");
    }
    bool pairs = opdi_stft_is_complex(stft.self) || opdi_stft_is_complex(stft.window);
    if (!pairs && opd_arg_is_none(call, at + 2)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "for a real input, pass true or false as return_complex: true for a "
                        "complex result");
    }
    if (!opd_dtype_is_floating((opd_scalar_type)stft.self->dtype) && !opdi_stft_is_complex(stft.self)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s : expected a tensor of floating point or complex values", stft.text);
    }
    if (stft.self->ndim > 2 || stft.self->ndim < 1) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : expected a 1D or 2D tensor", stft.text);
    }
    opd_tensor *input = stft.self->ndim == 1 ? opd_unsqueeze(stft.self, 0) : stft.self;
    if (center && stft.points > 0) { input = opdi_stft_centered(input, stft.points, opd_arg_str(call, 6)); }
    if (!input || opdi_stft_check(&stft, opdi_sizes(input)[1])) { return -1; }
    if (aligned && opd_arg_bool(call, at + 3)) {
        pad[0] = (stft.points - stft.width) / 2;
        pad[1] = stft.points - stft.width - pad[0];
        input = opd_constant_pad_nd(input, opd_ints_of(pad, 2));
    }
    input = opd_unfold(input, 1, stft.points, stft.hop);
    if (stft.window || stft.width < stft.points) { input = opd_mul(input, opdi_stft_window(&stft, stft.self)); }
    if (!input) { return -1; }
    const bool onesided = opd_arg_is_none(call, at + 1) ? !pairs : opd_arg_bool(call, at + 1);
    const int64_t dim = 2, norm = opd_arg_bool(call, at) ? 1 : 0;
    if (pairs && onesided) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Cannot have onesided output if window or input is complex");
    }
    opd_tensor *out = pairs ? opd_fft_c2c(input, opd_ints_of(&dim, 1), norm, true)
        : opd_fft_r2c(input, opd_ints_of(&dim, 1), norm, onesided);
    out = opd_transpose(out, 1, 2);
    if (stft.self->ndim == 1) { out = opd_squeeze_dim(out, 0); }
    if (!opd_arg_is_none(call, at + 2)) { pairs = opd_arg_bool(call, at + 2); }
    return opd_return_tensor(call, pairs ? out : opd_view_as_real(out));
}
/* opd_stft: Fourier transforms of overlapping pieces of a signal, each multiplied by a window */
OPDI_OP(stft) {
    op->schema = "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
        "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor";
    opdi_fft_card(op, opdi_stft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->cases = "[12], 4, return_complex=True; [2,12], 5, 2, 5, [5], True, return_complex=True; [9], 4, 3, 2, [2], "
        "onesided=False, return_complex=False; [10], 6, 2, 2, align_to_window=True, return_complex=False";
}
/* opd_stft_center: stft of a signal that is first padded at both ends */
OPDI_OP(stft_center) {
    op->schema = "stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
        "bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? "
        "return_complex=None, bool? align_to_window=None) -> Tensor";
    opdi_fft_card(op, opdi_stft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->cases = "[12], 4, return_complex=True; [2,12], 5, 2, 5, [5], True, 'constant', True, return_complex=True; [9], "
        "4, 3, 2, [2], True, 'replicate', onesided=False, return_complex=False; [9], 4, 2, 4, [4], False, "
        "return_complex=True";
}

/* Checks the sizes of istft's input, [.., frequencies, pieces, 2].  If `half` is true, the input has only the
   frequencies that are not negative.  Returns 0, or -1 and sets an error. */
static int opdi_istft_check(const opdi_stft *stft, bool half) {
    const opd_tensor *self = stft->self;
    if (self->ndim != 2 && self->ndim != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : expected a tensor with 3 or 4 dimensions, but got %d", stft->text,
                        self->ndim + 1);
    }
    const int64_t have = opdi_sizes(self)[self->ndim - 2];
    if (half ? stft->points / 2 + 1 != have : stft->points != have) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : expected the frequency dimension (3rd to the last) of the input tensor "
                        "to match n_fft%s, but got %lld", stft->text, half ? " / 2 + 1 when onesided=True"
                        : " when onesided=False", (long long)have);
    }
    if (stft->hop <= 0 || stft->hop > stft->width) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s : expected 0 < hop_length <= win_length", stft->text);
    }
    if (stft->width <= 0 || stft->width > stft->points) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : expected 0 < win_length <= n_fft", stft->text);
    }
    if (!stft->window || (stft->window->ndim == 1 && opdi_sizes(stft->window)[0] == stft->width)) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "%s : Invalid window shape. window has to be 1D and length of `win_length`",
                    stft->text);
}
/* Adds pieces [batch, pieces, points], which begin hop_length elements apart, into a signal of `length` elements.
   Returns elements start .. end - 1 of the sum, as [batch, end - start]. */
static opd_tensor *opdi_istft_overlap(const opdi_stft *stft, opd_tensor *pieces, int64_t length, int64_t start,
                                      int64_t end) {
    int64_t sizes[2];
    if (!pieces) { return NULL; }
    sizes[0] = opdi_sizes(pieces)[0];
    sizes[1] = length;
    pieces = opd_unfold_backward(pieces, opd_ints_of(sizes, 2), 1, stft->points, stft->hop);
    return opd_slice(pieces, 1, opd_value_int(start), opd_value_int(end), 1);
}
/* Returns the pieces of a signal, [batch, pieces, points], from their transforms.  If `half` is true, the transforms
   have only half of the frequencies.  If `pairs` is true, the signal is complex.  `norm` is the normalization that
   _fft_c2r takes. */
static opd_tensor *opdi_istft_pieces(const opdi_stft *stft, bool half, bool pairs, int64_t norm) {
    const int64_t dim = 2;
    opd_tensor *input = stft->self->ndim == 2 ? opd_unsqueeze(stft->self, 0) : stft->self;
    input = opd_transpose(input, 1, 2);
    if (pairs) { return opd_fft_c2c(input, opd_ints_of(&dim, 1), norm, false); }
    if (!half) { input = opd_narrow(input, -1, 0, stft->points / 2 + 1); }
    return opd_fft_c2r(input, opd_ints_of(&dim, 1), norm, stft->points);
}
/* Fails if the sum of the squared windows is 0 at some element.  Returns 0, or -1 and sets an error. */
static int opdi_istft_covered(const opdi_stft *stft, opd_tensor *envelope) {
    char text[sizeof stft->text + 40];
    opd_tensor *lowest = opd_lt_Scalar(opd_min(opd_abs(envelope)), opd_value_double(1e-11));
    (void)snprintf(text, sizeof text, "%s window overlap add min: 1", stft->text);
    return !lowest || opd_assert_async_msg(opd_logical_not(lowest), text) ? -1 : 0;
}
/* istft: adds the pieces, each multiplied by the window, and divides by the sum of the squared windows. */
static int opdi_istft_kernel(opd_call *call) {
    opdi_stft stft;
    int64_t sizes[3], pad[2];
    opdi_stft_read(call, &stft);
    const bool center = opd_arg_bool(call, 5), pairs = opd_arg_bool(call, 9);
    if (!opdi_stft_is_complex(stft.self)) {
        return opd_fail(OPD_ERROR_DTYPE, "istft requires a complex-valued input tensor matching the output from stft "
                        "with return_complex.");
    }
    if (stft.self->ndim < 2) { return opdi_dim_of(-3, stft.self->ndim + 1) < 0 ? -1 : 0; }
    if (stft.self->numel == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "%s : input tensor cannot be empty.", stft.text);
    }
    const bool half = opd_arg_is_none(call, 7) ? opdi_sizes(stft.self)[stft.self->ndim - 2] != stft.points
        : opd_arg_bool(call, 7);
    if (opdi_istft_check(&stft, half)) { return -1; }
    if (pairs && half) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Cannot have onesided output if window or input is complex");
    }
    if (!pairs && opdi_stft_is_complex(stft.window)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Complex windows are only possible with return_complex");
    }
    sizes[0] = 1;
    sizes[1] = opdi_sizes(stft.self)[stft.self->ndim - 1];
    sizes[2] = stft.points;
    const int64_t total = stft.points + stft.hop * (sizes[1] - 1), start = center ? stft.points / 2 : 0;
    const bool cut = !opd_arg_is_none(call, 8);
    if (cut && opd_arg_int(call, 8) > INT64_MAX - start) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s : length is too large", stft.text);
    }
    const int64_t end = cut ? start + opd_arg_int(call, 8) : center ? -(stft.points / 2) : total;
    opd_tensor *pieces = opdi_istft_pieces(&stft, half, pairs, opd_arg_bool(call, 6) ? 1 : 2);
    if (!pieces) { return -1; }
    opd_tensor *window = opdi_stft_window(&stft, pieces);
    opd_tensor *out = opdi_istft_overlap(&stft, opd_mul(pieces, window), total, start, end);
    opd_tensor *squares = opd_expand(opd_pow_Tensor_Scalar(window, opd_value_int(2)), opd_ints_of(sizes, 3));
    opd_tensor *envelope = opdi_istft_overlap(&stft, squares, total, start, end);
    if (!out || !envelope || opdi_istft_covered(&stft, envelope)) { return -1; }
    out = opd_div(out, envelope);
    if (stft.self->ndim == 2) { out = opd_squeeze_dim(out, 0); }
    if (end > total) {
        pad[0] = 0;
        pad[1] = end - total;
        out = opd_constant_pad_nd(out, opd_ints_of(pad, 2));
    }
    return opd_return_tensor(call, out);
}
/* opd_istft: the signal whose stft is self */
OPDI_OP(istft) {
    op->schema = "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
        "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> "
        "Tensor";
    opdi_fft_card(op, opdi_istft_kernel, OPD_AUTOCAST_KEEP);
    op->cases = "";
}
