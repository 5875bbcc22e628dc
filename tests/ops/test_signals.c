/* Signals: window functions, short-time Fourier transforms and their inverses, and errors, as in PyTorch 2.15. */
#include "../check.h"
#include <math.h>

#define CALL(name, ...) ({ static opd_op *op_; OPD_CALL(OPD_OP(&op_, name), __VA_ARGS__); })
static opd_tensor *counted(int64_t count, opd_scalar_type dtype) {
    return opd_arange_full(opd_value_int(count), opd_value_int(dtype), OPD_NONE, OPD_NONE, OPD_NONE);
}
/* The transform by stft.center of pieces of 8, 2 apart, with a window. */
static opd_tensor *pieces_of(opd_tensor *signal, opd_tensor *window) {
    return CALL("aten::stft.center", signal, 8, 2, 8, window, true, "reflect", false, OPD_NONE, true, OPD_NONE);
}
static opd_tensor *signal_of(opd_tensor *pieces, opd_tensor *window) {
    return CALL("aten::istft", pieces, 8, 2, 8, window);
}

TEST(a_signal_comes_back) {
    opd_tensor *signal = opd_sin(counted(20, OPD_FLOAT64)), *window = opd_hann_window(8, OPD_FLOAT64);
    opd_tensor *back = signal_of(pieces_of(signal, window), window);
    CHECK_OK();
    CHECK_OR_RETURN(back && opd_numel(back) == 20);
    CHECK(opd_item_f64(opd_amax(opd_abs(opd_sub(back, signal)), OPD_INTS(0), false)) < 1e-14);
    back = signal_of(pieces_of(opd_stack(opd_tensors_of(&signal, 1), 0), window), window);
    CHECK_INT(opd_ndim(back), 2);
    CHECK(opd_item_f64(opd_amax(opd_abs(opd_sub(back, signal)), OPD_INTS(0, 1), false)) < 1e-14);
}
/* The gradient through a transform and its inverse equals the gradient of the signal itself. */
TEST(gradients_come_back) {
    opd_tensor *signal = opd_sin(counted(20, OPD_FLOAT64)), *window = opd_hamming_window(8, OPD_FLOAT64), *grad;
    opd_tensor_set_requires_grad(signal, true);
    opd_tensor_set_requires_grad(window, true);
    opd_backward(opd_sum(opd_square(signal_of(pieces_of(signal, window), window))));
    CHECK_OK();
    grad = opd_tensor_grad(signal);
    CHECK(opd_item_f64(opd_amax(opd_abs(opd_sub(grad, opd_mul_Scalar(signal, OPD_V(2)))), OPD_INTS(0), false)) < 1e-13);
    grad = opd_tensor_grad(window);                    /* a change of the window is undone */
    CHECK(opd_item_f64(opd_amax(opd_abs(grad), OPD_INTS(0), false)) < 1e-13);
}
TEST(half_precision_rounds_each_step) {
    static const double want[] = {0, 0.116943359375, 0.413330078125, 0.75, 0.9697265625, 0.9697265625, 0.75048828125,
                                  0.413330078125, 0.11669921875};
    opd_tensor *window = opd_hann_window(9, OPD_FLOAT16);
    for (int64_t i = 0; i < 9; i++) { CHECK_NEAR(opd_item_f64(opd_select(window, 0, i)), want[i], 0); }
}
/* A window of Bessel functions is rounded once. */
TEST(kaiser_windows_are_rounded_once) {
    opd_tensor *once = opd_to_dtype(opd_kaiser_window(200, OPD_FLOAT64), OPD_FLOAT32);
    CHECK(opd_item_f64(opd_amax(opd_abs(opd_sub(opd_kaiser_window(200, OPD_FLOAT32), once)), OPD_INTS(0), false)) == 0);
    CHECK_OK();
}
TEST(windows_that_cannot_be) {
    CHECK(opd_hann_window(-1, OPD_FLOAT32) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "hann_window requires non-negative window_length, got window_length=-1");
    CHECK(opd_kaiser_window(4, OPD_INT64) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "kaiser_window expects floating point dtypes, got: int64");
    CHECK(opd_bartlett_window(4, OPD_COMPLEX64) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for 'complex64'");
    CHECK(opd_blackman_window(INT64_MAX, OPD_FLOAT32) == NULL);
    CHECK(!opd_ok());
    opd_error_clear();
    CHECK(opd_fft_fftfreq(4, 1, OPD_INT64) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "fftfreq requires a floating point or complex dtype");
}
TEST(transforms_that_cannot_be) {
    opd_tensor *signal = counted(20, OPD_FLOAT32), *ones = opd_ones(OPD_INTS(7), OPD_FLOAT32);
    CHECK(CALL("aten::stft", signal, 8) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "for a real input, pass true or false as return_complex");
    CHECK(CALL("aten::stft", signal, 30, OPD_NONE, OPD_NONE, OPD_NONE, false, OPD_NONE, true) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "stft(torch.FloatTensor[20], n_fft=30, hop_length=7, win_length=30, window=None, "
                "normalized=0, onesided=None, return_complex=1, align_to_window=None) : expected 0 < n_fft < 20, but "
                "got n_fft=30");
    CHECK(CALL("aten::stft", signal, 8, 2, 8, ones, false, OPD_NONE, true) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "window=torch.FloatTensor{[7]}, normalized=0, onesided=None, return_complex=1, "
                "align_to_window=None) : expected a 1D window tensor of size equal to win_length=8, but got window with "
                "size [7]");
    CHECK(CALL("aten::stft", signal, 8, 0, 8, OPD_NONE, false, OPD_NONE, true) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "expected hop_length > 0, but got hop_length=0");
    CHECK(CALL("aten::stft", counted(20, OPD_INT64), 8, 2, 8, OPD_NONE, false, OPD_NONE, true) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "stft(torch.LongTensor[20], n_fft=8");
    CHECK(CALL("aten::stft", signal, INT64_MIN, OPD_NONE, OPD_NONE, OPD_NONE, false, OPD_NONE, true) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "expected 0 < n_fft < 20");
    CHECK(CALL("aten::stft.center", signal, 8, OPD_NONE, OPD_NONE, OPD_NONE, true, "reflect", false, OPD_NONE, true,
               true) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "stft align_to_window should only be set when center = false.");
}
TEST(signals_that_cannot_come_back) {
    opd_tensor *pieces = pieces_of(counted(20, OPD_FLOAT32), opd_ones(OPD_INTS(8), OPD_FLOAT32));
    CHECK(CALL("aten::istft", counted(20, OPD_FLOAT32), 8) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "istft requires a complex-valued input tensor");
    CHECK(CALL("aten::istft", pieces, 8, 9) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "istft(CPUComplexFloatType[5, 11], n_fft=8, hop_length=9, win_length=8, window=None, "
                "center=1, normalized=0, onesided=None, length=None, return_complex=0) : expected 0 < hop_length <= "
                "win_length");
    CHECK(CALL("aten::istft", pieces, 8, 2, 8, opd_zeros(OPD_INTS(8), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "return_complex=0) window overlap add min: 1");
    CHECK(CALL("aten::istft", pieces, 8, 2, 8, OPD_NONE, true, false, OPD_NONE, INT64_MAX) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "length is too large");
    CHECK(CALL("aten::istft", opd_select(pieces, 0, 0), 8) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "Dimension out of range");
}
/* The greatest difference of two tensors of complex numbers or real ones. */
static double away(opd_tensor *first, opd_tensor *second) {
    return opd_item_f64(opd_max(opd_abs(opd_sub(first, second))));
}
/* Element `at` of the transform of a line [count] by its definition. */
static void defined_at(const double *line, int64_t count, int64_t at, double result[2]) {
    result[0] = result[1] = 0;
    for (int64_t k = 0; k < count; k++) {
        const double turn = -6.283185307179586476925 * (double)(k * at % count) / (double)count;
        result[0] += line[2 * k] * cos(turn) - line[2 * k + 1] * sin(turn);
        result[1] += line[2 * k] * sin(turn) + line[2 * k + 1] * cos(turn);
    }
}
/* Lines are cut into matrices, transformed side by side or as convolutions: all agree, and come back. */
TEST(transforms_of_many_lengths) {
    static const int lengths[] = {1, 2, 7, 8, 31, 37, 60, 63, 64, 96, 100, 128, 961, 1000, 1009, 1024, 2046, 4096, 5000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t count = lengths[i], places[] = {0, 1 % count, count / 2, count / 3, count - 1};
        OPD_SCOPED;
        opd_tensor *pairs = opd_randn(OPD_INTS(9, count, 2), OPD_FLOAT64), *lines = opd_view_as_complex(pairs);
        opd_tensor *result = opd_fft_fft(lines), *real = opd_contiguous(opd_select(pairs, 2, 0));
        opd_tensor *turned = opd_contiguous(opd_transpose(lines, 0, 1));
        turned = opd_transpose(opd_fft_fft_full(turned, OPD_NONE, 0, NULL), 0, 1);
        CHECK_OR_RETURN(result && turned && real);
        CHECK(away(turned, result) < 1e-12 * (double)count);
        CHECK(away(opd_fft_fft(opd_select(lines, 0, 4)), opd_select(result, 0, 4)) < 1e-12 * (double)count);
        CHECK(away(opd_fft_ifft(result), lines) < 1e-13);
        CHECK(away(opd_fft_irfft_full(opd_fft_rfft(real), OPD_V(count), -1, NULL), real) < 1e-13);
        for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
            double want[2];
            const double *got = (const double *)opd_data(result) + 2 * (4 * count + places[k]);
            defined_at((const double *)opd_data(pairs) + 8 * count, count, places[k], want);
            CHECK(fabs(got[0] - want[0]) < 1e-13 * (double)(count + 9) &&
                  fabs(got[1] - want[1]) < 1e-13 * (double)(count + 9));
        }
    }
    CHECK_OK();
}
CHECK_MAIN()

/* Lines side by side: 17 and 9 of them (groups of sixteen or eight, and one), 3 (too few), along either dim, against
   the sums that define the transforms. */
static double side_cos[4099], side_sin[4099];     // of the parts of a turn
static void side_turns(int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        const double a = 6.283185307179586477 * (double)j / (double)n;
        side_cos[j] = cos(a);
        side_sin[j] = sin(a);
    }
}
static double side_wrong(opd_tensor *have, opd_tensor *x, int64_t n, int64_t line, int64_t k, double way, bool real) {
    const double *in = (const double *)opd_data(x) + 2 * line * n;
    double re = 0, im = 0;
    for (int64_t j = 0, at = 0; j < n; j++, at += at + k < n ? k : k - n) {
        const double c = side_cos[at], s = way * side_sin[at];
        re += in[2 * j] * c - in[2 * j + 1] * s;
        im += in[2 * j] * s + in[2 * j + 1] * c;
    }
    const double *out = (const double *)opd_data(have) + (line * opd_size(have, 1) + k) * (real ? 1 : 2);
    const double off = fabs(out[0] - re) + (real ? fabs(im) : fabs(out[1] - im));
    return off == off ? off : HUGE_VAL;
}
/* The largest difference of a transform of x [lines, n], complex128, whose result `have` is along the last dim, or
   (turned) the first. */
static void side_check(opd_tensor *have, opd_tensor *x, double way, bool real, double most) {
    const int64_t lines = opd_size(x, 0), n = opd_size(x, 1);
    double worst = 0;
    CHECK_OR_RETURN(have != NULL);
    have = opd_contiguous(opd_to_dtype(have, real ? OPD_FLOAT64 : OPD_COMPLEX128));
    const int64_t shown = opd_size(have, 1);
    for (int64_t line = 0; line < lines; line++) {
        for (int64_t k = 0; k < shown; k += shown > 100 ? shown / 7 : 1) {
            worst = fmax(worst, side_wrong(have, x, n, line, k, way, real));
        }
        worst = fmax(worst, side_wrong(have, x, n, line, shown - 1, way, real));
    }
    if (worst > most * (double)n) { printf("n = %d, lines = %d: off by %g\n", (int)n, (int)lines, worst); }
    CHECK(worst <= most * (double)n);
}
static void side_by_side(int64_t n, int64_t lines, bool twice) {
    const double most = twice ? 1e-14 : 5e-6, real_most = twice ? 5e-14 : 1e-5;
    opd_tensor *x = opd_randn(OPD_INTS(lines, n), twice ? OPD_FLOAT64 : OPD_FLOAT32), *wide, *half, *turned;
    opd_tensor *pairs = opd_complex(x, opd_randn_like(x)), *two;
    side_turns(n);
    OPD_SCOPE {
        wide = opd_contiguous(opd_to_dtype(x, OPD_COMPLEX128));
        two = opd_contiguous(opd_to_dtype(pairs, OPD_COMPLEX128));
        turned = opd_contiguous(opd_t(x));
        side_check(opd_fft_rfft(x), wide, -1, false, most);
        side_check(opd_fft_rfft(opd_t(turned)), wide, -1, false, most);
        side_check(opd_t(opd_fft_rfft_full(turned, OPD_NONE, 0, NULL)), wide, -1, false, most);
        side_check(opd_fft_fft(pairs), two, -1, false, most);
        side_check(opd_t(opd_fft_fft_full(opd_contiguous(opd_t(pairs)), OPD_NONE, 0, NULL)), two, -1, false, most);
        side_check(opd_mul_Scalar(opd_fft_ifft(pairs), opd_value_int(n)), two, 1, false, most);
        half = opd_fft_rfft(x);
        wide = opd_contiguous(opd_to_dtype(opd_fft_fft(x), OPD_COMPLEX128));
        side_check(opd_mul_Scalar(opd_fft_irfft_full(half, opd_value_int(n), -1, NULL), opd_value_int(n)), wide, 1, true, real_most);
        side_check(opd_t(opd_mul_Scalar(opd_fft_irfft_full(opd_contiguous(opd_t(half)), opd_value_int(n), 0, NULL), opd_value_int(n))),
                   wide, 1, true, real_most);
    }
}
TEST(lines_side_by_side_are_their_sums) {
    static const int lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 22, 31, 32, 37, 62, 63, 64, 65, 66, 74, 96,
                                  127, 128, 129, 131, 134, 254, 257, 262, 263, 526, 1000, 1009, 1024, 1998, 2017, 4099};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int lines = 1; lines <= 17; lines += lines < 3 ? 2 : lines < 9 ? 6 : 8) {
            OPD_SCOPE { side_by_side(lengths[i], lines, true); }
            OPD_SCOPE { side_by_side(lengths[i], lines, false); }
        }
    }
}

/* How far transforms of floats are off, as a part of them (root mean squares): with a quarter to spare no more than those
   of PyTorch 2.15, of numbers of randn. */
static double part_off(opd_tensor *have, opd_tensor *want) {
    opd_tensor *off = opd_sum(opd_square(opd_abs(opd_sub(have, want))));
    return sqrt(opd_item_f64(off) / opd_item_f64(opd_sum(opd_square(opd_abs(want)))));
}
TEST(floats_are_transformed_as_exactly_as_by_pytorch) {
    static const struct { int64_t points, lines; double fft, rfft, irfft; } known[] = {
        {64, 64, 8.43e-8, 7.6e-8, 7.16e-8}, {1000, 1, 1.24e-7, 1.26e-7, 1.46e-7}, {1009, 1, 2.55e-7, 2.51e-7, 2.02e-7},
        {1024, 1, 1.18e-7, 1.12e-7, 1.1e-7}, {1000, 20, 1.26e-7, 1.27e-7, 1.53e-7}, {1009, 20, 2.51e-7, 2.5e-7, 2.13e-7},
        {1024, 20, 1.18e-7, 1.15e-7, 1.15e-7}, {2027, 20, 2.36e-7, 2.34e-7, 1.71e-7}, {6000, 1, 1.64e-7, 1.42e-7, 1.42e-7},
        {65536, 1, 1.62e-7, 1.59e-7, 1.57e-7}, {65537, 1, 2.66e-7, 2.65e-7, 2.15e-7}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const opd_value points = opd_value_int(known[i].points);
        OPD_SCOPED;
        opd_tensor *real = opd_randn(OPD_INTS(known[i].lines, known[i].points), OPD_FLOAT32);
        opd_tensor *pairs = opd_complex(real, opd_randn_like(real)), *half = opd_fft_rfft(real);
        opd_tensor *wide = opd_to_dtype(pairs, OPD_COMPLEX128), *wide_half = opd_to_dtype(half, OPD_COMPLEX128);
        const double fft = part_off(opd_fft_fft(pairs), opd_fft_fft(wide));
        const double rfft = part_off(half, opd_fft_rfft(opd_to_dtype(real, OPD_FLOAT64)));
        const double irfft = part_off(opd_fft_irfft_full(half, points, -1, NULL),
                                      opd_fft_irfft_full(wide_half, points, -1, NULL));
        CHECK_OK();
        const bool near = fft < known[i].fft * 1.25 && rfft < known[i].rfft * 1.25 && irfft < known[i].irfft * 1.25;
        if (!near) { printf("%d points: off by %.3g, %.3g, %.3g\n", (int)known[i].points, fft, rfft, irfft); }
        CHECK(near);
    }
}

/* The strides of results, of [5, 4, 3] contiguous or with turned dims, are those of PyTorch: the transformed dims are
   innermost. */
TEST(results_are_laid_out_as_by_pytorch) {
    static const struct { const char *op; bool pairs, turned; int64_t dims[3], count, strides[3]; } known[] = {
        {"aten::fft_fftn", false, true, {0, 1, 2}, 3, {1, 3, 12}},
        {"aten::fft_fftn", true, false, {0, 1, 2}, 3, {12, 3, 1}}, {"aten::fft_fftn", true, false, {0}, 1, {1, 15, 5}},
        {"aten::fft_fftn", true, false, {2, 0, 1}, 3, {12, 3, 1}},
        {"aten::fft_fftn", true, false, {2, 0}, 2, {3, 15, 1}}, {"aten::fft_fftn", true, false, {2}, 1, {12, 3, 1}},
        {"aten::fft_fftn", true, true, {1}, 1, {4, 1, 12}}, {"aten::fft_hfftn", false, false, {0}, 1, {1, 24, 8}},
        {"aten::fft_hfftn", false, false, {1, 0}, 2, {1, 8, 32}}, {"aten::fft_hfftn", false, false, {1}, 1, {18, 1, 6}},
        {"aten::fft_hfftn", false, false, {2, 0, 1}, 3, {18, 1, 6}},
        {"aten::fft_hfftn", false, false, {2, 0}, 2, {1, 24, 8}}, {"aten::fft_hfftn", false, false, {2}, 1, {16, 4, 1}},
        {"aten::fft_hfftn", true, false, {0, 1, 2}, 3, {16, 4, 1}},
        {"aten::fft_hfftn", true, true, {0, 1, 2}, 3, {8, 24, 1}},
        {"aten::fft_hfftn", true, true, {1, 0}, 2, {1, 4, 16}}, {"aten::fft_hfftn", true, true, {2}, 1, {8, 24, 1}},
        {"aten::fft_ifftn", false, false, {2, 0, 1}, 3, {12, 3, 1}},
        {"aten::fft_ifftn", true, false, {0, 1, 2}, 3, {12, 3, 1}},
        {"aten::fft_ifftn", true, false, {0}, 1, {1, 15, 5}}, {"aten::fft_ihfftn", false, false, {1}, 1, {9, 1, 3}},
        {"aten::fft_ihfftn", false, false, {2, 0, 1}, 3, {3, 15, 1}},
        {"aten::fft_ihfftn", false, true, {2, 0, 1}, 3, {1, 15, 3}},
        {"aten::fft_ihfftn", false, true, {2}, 1, {3, 9, 1}}, {"aten::fft_irfftn", false, false, {0}, 1, {1, 24, 8}},
        {"aten::fft_irfftn", false, false, {2, 0}, 2, {1, 24, 8}},
        {"aten::fft_irfftn", false, true, {0}, 1, {1, 4, 16}},
        {"aten::fft_irfftn", false, true, {2, 0, 1}, 3, {6, 1, 18}},
        {"aten::fft_irfftn", true, false, {2, 0, 1}, 3, {18, 1, 6}},
        {"aten::fft_rfftn", false, false, {0, 1, 2}, 3, {8, 2, 1}},
        {"aten::fft_rfftn", false, false, {0}, 1, {1, 9, 3}}, {"aten::fft_rfftn", false, false, {1}, 1, {9, 1, 3}},
        {"aten::fft_rfftn", false, false, {2, 0, 1}, 3, {9, 1, 3}},
        {"aten::fft_rfftn", false, false, {2, 0}, 2, {1, 9, 3}}, {"aten::fft_rfftn", false, true, {1, 0}, 2, {1, 2, 8}},
        {"aten::fft_rfftn", false, true, {2, 0, 1}, 3, {3, 1, 9}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        OPD_SCOPED;
        opd_tensor *x = opd_randn(OPD_INTS(5, 4, 3), known[i].pairs ? OPD_COMPLEX64 : OPD_FLOAT32);
        if (known[i].turned) { x = opd_transpose(x, 0, 2); }
        const opd_value dims = opd_value_ints(known[i].dims, (int)known[i].count);
        x = OPD_CALL(opd_find(known[i].op), x, OPD_NONE, dims);
        CHECK_OR_RETURN(x && opd_ndim(x) == 3);
        if (memcmp(opd_strides(x), known[i].strides, sizeof known[i].strides) == 0) { continue; }
        printf("%s, row %d: other strides\n", known[i].op, (int)i);
        CHECK(!"as PyTorch");
    }
}
