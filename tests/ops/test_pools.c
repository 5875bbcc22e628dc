/* Maxima of windows, with and without their positions, beside loops over all elements of each window. */
#include "../check.h"

typedef struct window { int64_t kernel[3], stride[3], pad[3], dilation[3]; } window;

/* The largest element of the window of output (o[0], o[1], o[2]) in a plane of sizes in[3], and its position. */
static double largest(const double *x, const int64_t *in, const window *w, const int64_t *o, int64_t *at) {
    double best = -INFINITY;
    int64_t a, b, c;
    *at = -1;
    for (a = 0; a < w->kernel[0]; a++) {
        for (b = 0; b < w->kernel[1]; b++) {
            for (c = 0; c < w->kernel[2]; c++) {
                const int64_t i = o[0] * w->stride[0] - w->pad[0] + a * w->dilation[0];
                const int64_t j = o[1] * w->stride[1] - w->pad[1] + b * w->dilation[1];
                const int64_t k = o[2] * w->stride[2] - w->pad[2] + c * w->dilation[2];
                const int64_t place = (i * in[1] + j) * in[2] + k;
                if (i < 0 || j < 0 || k < 0 || i >= in[0] || j >= in[1] || k >= in[2]) { continue; }
                if (*at < 0 || x[place] > best || isnan(x[place])) {
                    best = x[place];
                    *at = place;
                }
            }
        }
    }
    return best;
}
/* Compares values, and positions (or NULL), of a pooling of the last three dims of `in`. */
static void compared(opd_tensor *in, const window *w, opd_tensor *values, opd_tensor *places) {
    opd_tensor *x = opd_contiguous(opd_to_dtype(in, OPD_FLOAT64)), *y = opd_contiguous(opd_to_dtype(values, OPD_FLOAT64));
    opd_tensor *at = places ? opd_contiguous(places) : NULL;
    int64_t i, wrong = 0, o[3];
    const int64_t *sizes, *out;
    CHECK_OR_RETURN(x && y && opd_dtype(values) == opd_dtype(in));
    sizes = opd_sizes(x) + opd_ndim(x) - 3;
    out = opd_sizes(y) + opd_ndim(y) - 3;
    for (i = 0; i < opd_numel(y); i++) {
        const int64_t plane = i / (out[0] * out[1] * out[2]);
        int64_t place;
        double right, is = opd_data_f64(y)[i];
        o[0] = i / (out[1] * out[2]) % out[0];
        o[1] = i / out[2] % out[1];
        o[2] = i % out[2];
        right = largest(opd_data_f64(x) + plane * sizes[0] * sizes[1] * sizes[2], sizes, w, o, &place);
        wrong += isnan(right) ? !isnan(is) : is != right;
        wrong += at && opd_data_i64(at)[i] != place;
    }
    CHECK_INT(wrong, 0);
}
/* Random numbers with ties, infinities and NaNs. */
static opd_tensor *numbers(opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *x = opd_randint(9, sizes, OPD_INT64);
    int64_t i;
    for (i = 0; i < opd_numel(x); i++) { opd_data_i64(x)[i] -= 4; }
    x = opd_to_dtype(x, dtype);
    if (dtype == OPD_INT64) { return x; }
    x = opd_masked_fill_Scalar(x, opd_eq_Scalar(opd_randint(40, sizes, OPD_INT64), OPD_V(0)), OPD_V((double)NAN));
    return opd_masked_fill_Scalar(x, opd_eq_Scalar(opd_randint(5, sizes, OPD_INT64), OPD_V(0)), OPD_V((double)-INFINITY));
}
static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_BFLOAT16};

TEST(maxima_of_one_dim) {
    static const window windows[] = {
        {{1, 1, 3}, {1, 1, 3}, {0, 0, 0}, {1, 1, 1}}, {{1, 1, 2}, {1, 1, 1}, {0, 0, 1}, {1, 1, 1}},
        {{1, 1, 5}, {1, 1, 2}, {0, 0, 2}, {1, 1, 1}}, {{1, 1, 4}, {1, 1, 3}, {0, 0, 1}, {1, 1, 3}},
        {{1, 1, 1}, {1, 1, 7}, {0, 0, 0}, {1, 1, 1}}, {{1, 1, 12}, {1, 1, 1}, {0, 0, 6}, {1, 1, 1}}};
    static const int64_t lengths[] = {12, 15, 16, 17, 50, 64, 301};
    size_t i, k, d;
    for (d = 0; d < 4; d++) {
        for (i = 0; i < 6; i++) {
            for (k = 0; k < 7; k++) {
                OPD_SCOPE {
                    const window *w = &windows[i];
                    opd_tensor *x = numbers(OPD_INTS(2, 3, lengths[k]), dtypes[d]), *rets[2];
                    const opd_ints kernel = opd_ints_of(&w->kernel[2], 1), stride = opd_ints_of(&w->stride[2], 1);
                    const opd_ints pad = opd_ints_of(&w->pad[2], 1), dilation = opd_ints_of(&w->dilation[2], 1);
                    opd_tensor *y = opd_max_pool1d_full(x, kernel, stride, pad, dilation, (k & 1) != 0);
                    CHECK_INT(opd_max_pool1d_with_indices_full(rets, x, kernel, stride, pad, dilation, (k & 1) != 0), 0);
                    compared(opd_unsqueeze(opd_unsqueeze(x, 2), 2), w, opd_unsqueeze(opd_unsqueeze(y, 2), 2), NULL);
                    compared(opd_unsqueeze(opd_unsqueeze(x, 2), 2), w, opd_unsqueeze(opd_unsqueeze(rets[0], 2), 2),
                             opd_unsqueeze(opd_unsqueeze(rets[1], 2), 2));
                }
            }
        }
    }
}

TEST(maxima_of_two_and_three_dims) {
    static const window windows[] = {
        {{1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}}, {{1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
        {{1, 4, 5}, {1, 3, 2}, {0, 2, 1}, {1, 1, 2}}, {{2, 3, 2}, {1, 2, 1}, {1, 1, 1}, {2, 1, 3}}};
    size_t i, d;
    for (d = 0; d < 4; d++) {
        for (i = 0; i < 4; i++) {
            OPD_SCOPE {
                const window *w = &windows[i];
                const bool deep = w->kernel[0] > 1;
                static const int64_t sizes[2][5] = {{2, 3, 13, 41}, {1, 2, 5, 9, 21}};
                opd_tensor *x = numbers(opd_ints_of(sizes[deep], 4 + deep), dtypes[d]), *rets[2], *y;
                const opd_ints kernel = opd_ints_of(w->kernel + !deep, 2 + deep), pad = opd_ints_of(w->pad + !deep, 2 + deep);
                const opd_ints stride = opd_ints_of(w->stride + !deep, 2 + deep);
                const opd_ints dilation = opd_ints_of(w->dilation + !deep, 2 + deep);
                if (i == 1) { x = opd_permute(opd_contiguous(opd_permute(x, OPD_INTS(0, 2, 3, 1))), OPD_INTS(0, 3, 1, 2)); }
                y = (deep ? opd_max_pool3d_full : opd_max_pool2d_full)(x, kernel, stride, pad, dilation, false);
                CHECK_INT((deep ? opd_max_pool3d_with_indices_full : opd_max_pool2d_with_indices_full)
                          (rets, x, kernel, stride, pad, dilation, false), 0);
                if (!deep) {
                    x = opd_unsqueeze(x, 2);
                    y = opd_unsqueeze(y, 2);
                    rets[0] = opd_unsqueeze(rets[0], 2);
                    rets[1] = opd_unsqueeze(rets[1], 2);
                }
                compared(x, w, y, NULL);
                compared(x, w, rets[0], rets[1]);
            }
        }
    }
}

/* A zero of a large window is the first one, whatever its sign. */
TEST(maxima_that_are_zeros) {
    for (int k = 0; k < 4; k++) {
        OPD_SCOPE {
            opd_tensor *const x = opd_zeros(OPD_INTS(1, 1, 4, 20), k & 1 ? OPD_FLOAT32 : OPD_FLOAT64), *rets[2];
            opd_fill_(opd_narrow(x, 3, k & 2 ? 0 : 10, 1), OPD_V(-1));        /* so that a later column has the first zero */
            opd_fill_(opd_narrow(opd_narrow(x, 3, k & 2 ? 1 : 11, 1), 2, 0, 1), OPD_V(-0.0));
            opd_fill_(opd_narrow(opd_narrow(x, 3, k & 2 ? 0 : 10, 1), 2, 2, 1), OPD_V(0.0));
            CHECK_INT(opd_adaptive_max_pool2d(rets, x, OPD_INTS(1, 2)), 0);
            CHECK_INT(opd_data_i64(rets[1])[0], k & 2 ? 1 : 0);
            CHECK_INT(opd_data_i64(rets[1])[1], k & 2 ? 10 : 11);
            CHECK(opd_data_i64(opd_to_dtype(opd_signbit(rets[0]), OPD_INT64))[k & 2 ? 0 : 1] == 1);
            CHECK(opd_data_i64(opd_to_dtype(opd_signbit(rets[0]), OPD_INT64))[k & 2 ? 1 : 0] == 0);
        }
    }
}

TEST(maxima_without_positions_have_no_gradient_and_others_have_one) {
    opd_tensor *x = opd_randn(OPD_INTS(1, 2, 9), OPD_FLOAT32), *y;
    CHECK(!opd_tensor_requires_grad(opd_max_pool1d(x, OPD_INTS(3), opd_ints_of(NULL, 0), OPD_INTS(0))));
    opd_tensor_set_requires_grad(x, true);
    y = opd_max_pool1d(x, OPD_INTS(3), opd_ints_of(NULL, 0), OPD_INTS(0));
    CHECK(opd_tensor_requires_grad(y));
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_item_f64(opd_sum(opd_tensor_grad(x))) == 6);
    CHECK(opd_numel(opd_max_pool2d(opd_zeros(OPD_INTS(0, 2, 4, 4), OPD_FLOAT32), OPD_INTS(2), opd_ints_of(NULL, 0), OPD_INTS(0))) == 0);
    CHECK(opd_max_pool1d(opd_zeros(OPD_INTS(1, 2, 4), OPD_FLOAT32), OPD_INTS(5), opd_ints_of(NULL, 0), OPD_INTS(0)) == NULL);
    opd_error_clear();
}
CHECK_MAIN()
