/* Images that are resized, padded and sampled, and elements that are found and picked by indices, beside loops over
   all elements. */
#include "../check.h"

//== resizing ==========================================================================================================

static opd_tensor *turned(opd_tensor *x) { return opd_contiguous(opd_transpose(x, 2, 3)); }
static opd_tensor *resized(int how, opd_tensor *x, int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    const opd_ints to = opd_ints_of(sizes, 2);
    if (how == 0) { return opd_upsample_nearest2d(x, to); }
    if (how == 1) { return opd_upsample_bilinear2d(x, to, false); }
    if (how == 2) { return opd_upsample_bilinear2d(x, to, true); }
    return how == 3 ? opd_upsample_bicubic2d(x, to, false) : opd__upsample_bilinear2d_aa(x, to, false);
}
/* Rows and columns are resized by different code: a turned image must give the turned result. */
static void turns(int how, int64_t rows, int64_t columns, int64_t to_rows, int64_t to_columns, opd_scalar_type dtype) {
    opd_tensor *x = opd_randn(OPD_INTS(2, 3, rows, columns), dtype), *y, *z;
    opd_tensor *factor = opd_randn(OPD_INTS(2, 3, to_rows, to_columns), dtype), *grad;
    const double tol = dtype == OPD_FLOAT64 ? 1e-12 : 1e-4;
    opd_tensor_set_requires_grad(x, true);
    y = resized(how, x, to_rows, to_columns);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, factor))), 0);
    grad = opd_tensor_grad(x);
    x = turned(opd_detach(x));
    opd_tensor_set_requires_grad(x, true);
    z = resized(how, x, to_columns, to_rows);
    CHECK_INT(opd_backward(opd_sum(opd_mul(z, turned(factor)))), 0);
    CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(opd_detach(y), turned(opd_detach(z)))))) <= tol);
    CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(grad, turned(opd_tensor_grad(x)))))) <= 10 * tol);
}
TEST(resized_images_turn) {
    int how, twice;
    for (how = 0; how < 5; how++) {
        for (twice = 0; twice < 2; twice++) {
            OPD_SCOPE {
                const opd_scalar_type dtype = twice ? OPD_FLOAT64 : OPD_FLOAT32;
                turns(how, 5, 7, 10, 14, dtype);
                turns(how, 3, 300, 7, 1100, dtype);
                turns(how, 9, 30, 4, 13, dtype);
                turns(how, 1, 1, 3, 2, dtype);
                turns(how, 6, 5, 6, 20, dtype);
            }
        }
    }
}
TEST(resized_images_beside_formulas) {
    OPD_SCOPE {
        const int64_t rows = 5, columns = 260, to[2] = {11, 530};
        opd_tensor *x = opd_randn(OPD_INTS(1, 1, rows, columns), OPD_FLOAT64), *near, *linear;
        const double *in = opd_data_f64(x);
        double worst = 0;
        int64_t i, j, wrong = 0;
        near = opd_upsample_nearest2d(x, opd_ints_of(to, 2));
        linear = opd_upsample_bilinear2d(x, opd_ints_of(to, 2), false);
        for (i = 0; i < to[0]; i++) {
            for (j = 0; j < to[1]; j++) {
                const double r = fmax(0, ((double)i + 0.5) * (double)rows / (double)to[0] - 0.5);
                const double c = fmax(0, ((double)j + 0.5) * (double)columns / (double)to[1] - 0.5);
                const int64_t r0 = (int64_t)r, c0 = (int64_t)c, r1 = r0 + (r0 < rows - 1), c1 = c0 + (c0 < columns - 1);
                const double above = in[r0 * columns + c0] * (1 - c + (double)c0) + in[r0 * columns + c1] * (c - (double)c0);
                const double below = in[r1 * columns + c0] * (1 - c + (double)c0) + in[r1 * columns + c1] * (c - (double)c0);
                const double right = above * (1 - r + (double)r0) + below * (r - (double)r0);
                const double off = fabs(right - opd_data_f64(linear)[i * to[1] + j]);
                if (!(off <= worst)) { worst = off == off ? off : HUGE_VAL; }
                wrong += opd_data_f64(near)[i * to[1] + j] != in[i * rows / to[0] * columns + j * columns / to[1]];
            }
        }
        CHECK(worst < 1e-12);
        CHECK_INT(wrong, 0);
    }
}

//== sampling at points ================================================================================================

static double pixel(const float *x, int64_t rows, int64_t columns, double r, double c) {
    return r >= 0 && c >= 0 && r < (double)rows && c < (double)columns ? (double)x[(int64_t)r * columns + (int64_t)c] : 0;
}
/* Points in and around an image; the image has an infinite element at `odd`, if that is not negative. */
static void sampled(int64_t odd) {
    const int64_t rows = 6, columns = 9, high = 13, wide = 45;
    opd_tensor *x = opd_randn(OPD_INTS(2, 3, rows, columns), OPD_FLOAT32);
    opd_tensor *grid = opd_randn(OPD_INTS(2, high, wide, 2), OPD_FLOAT32), *y;
    int64_t i, wrong = 0;
    if (odd >= 0) { opd_data_f32(x)[odd] = INFINITY; }
    opd_data_f32(grid)[4] = NAN;
    y = opd_grid_sampler_2d(x, grid, 0, 0, false);
    for (i = 0; y && i < opd_numel(y); i++) {
        const int64_t plane = i / (high * wide), point = plane / 3 * high * wide + i % (high * wide);
        const float *at = opd_data_f32(grid) + 2 * point, *image = opd_data_f32(x) + plane * rows * columns;
        const double c = (((double)at[0] + 1) * (double)columns - 1) / 2, r = (((double)at[1] + 1) * (double)rows - 1) / 2;
        const double c0 = floor(c), r0 = floor(r), is = (double)opd_data_f32(y)[i];
        const double p[4] = {pixel(image, rows, columns, r0, c0), pixel(image, rows, columns, r0, c0 + 1),
                             pixel(image, rows, columns, r0 + 1, c0), pixel(image, rows, columns, r0 + 1, c0 + 1)};
        const double right = p[0] * (1 - r + r0) * (1 - c + c0) + p[1] * (1 - r + r0) * (c - c0) + p[2] * (r - r0) * (1 - c + c0) +
            p[3] * (r - r0) * (c - c0);
        wrong += isnan(right) || isnan(is) ? isnan(right) != isnan(is) : isinf(right) ? is != right : fabs(is - right) > 1e-4;
    }
    CHECK(y != NULL);
    CHECK_INT(wrong, 0);
}
TEST(samples_beside_formulas) {
    const int64_t odd[] = {-1, 0, 54, 60};
    int i;
    for (i = 0; i < 4; i++) { OPD_SCOPE { sampled(odd[i]); } }
}
/* Points at the centers of the elements give the elements, in each mode. */
TEST(samples_at_centers) {
    int how, outside;
    for (how = 0; how < 3; how++) {
        for (outside = 0; outside < 3; outside++) {
            OPD_SCOPE {
                opd_tensor *x = opd_randn(OPD_INTS(2, 2, 20, 31), OPD_FLOAT64), *grid = opd_empty(OPD_INTS(2, 20, 31, 2), OPD_FLOAT64);
                int64_t i;
                for (i = 0; i < 2 * 20 * 31; i++) {
                    opd_data_f64(grid)[2 * i] = (double)(i % 31) / 15 - 1;
                    opd_data_f64(grid)[2 * i + 1] = (double)(i / 31 % 20) / 9.5 - 1;
                }
                CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(opd_grid_sampler_2d(x, grid, how, outside, true), x)))) < 1e-9);
            }
        }
    }
}

/* At points inside of the image, all three kinds of padding give the same samples.  Outside, border gives the same
   samples as zeros do for an image that is padded by its border. */
TEST(samples_do_not_depend_on_padding_inside) {
    for (int k = 0; k < 4; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k & 1 ? OPD_FLOAT64 : OPD_FLOAT32;
            const bool corners = k > 1;
            opd_tensor *const x = opd_randn(OPD_INTS(2, 3, 5, 9), dtype);
            opd_tensor *const places = opd_rand(OPD_INTS(2, 7, 43, 2), dtype);
            opd_tensor *const grid = opd_sub_Scalar(opd_mul_Scalar(places, OPD_V(1.5)), OPD_V(0.75));
            opd_tensor *const y = opd_grid_sampler_2d(x, grid, 0, 2, corners);
            CHECK(opd_allclose(opd_grid_sampler_2d(x, grid, 0, 0, corners), y));
            CHECK(opd_allclose(opd_grid_sampler_2d(x, grid, 0, 1, corners), y));
            opd_tensor *const wide = opd_replication_pad2d(x, OPD_INTS(9, 9, 5, 5));
            opd_tensor *const far = opd_grid_sampler_2d(x, opd_mul_Scalar(grid, OPD_V(3)), 0, 1, false);
            CHECK(opd_allclose_full(opd_grid_sampler_2d(wide, grid, 0, 0, false), far, 1e-4, 1e-4, false));
        }
    }
}

/* The gradient of one sample with respect to the image has the weights of the elements, which are also the samples of
   images with one element that is 1.  Both must be the same numbers: they must come from the same coordinates. */
TEST(weights_of_samples_and_of_gradients_are_equal) {
    enum { ROWS = 5, COLUMNS = 9, POINTS = 301 };
    for (int k = 0; k < 8; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k & 1 ? OPD_FLOAT64 : OPD_FLOAT32;
            const bool corners = k & 2;
            static const bool wanted[] = {true, false};
            opd_tensor *const ones = opd_eye(ROWS * COLUMNS, dtype), *grads[2];
            opd_tensor *const grid = opd_sub_Scalar(opd_mul_Scalar(opd_rand(OPD_INTS(1, 1, POINTS, 2), dtype), OPD_V(3)),
                                                    OPD_V(1.5));
            opd_tensor *const y = opd_grid_sampler_2d(opd_reshape(ones, OPD_INTS(1, -1, ROWS, COLUMNS)), grid, 0, k / 4,
                                                      corners);
            CHECK_INT(opd_grid_sampler_2d_backward(grads, opd_ones(OPD_INTS(POINTS, 1, 1, 1), dtype),
                                                   opd_zeros(OPD_INTS(POINTS, 1, ROWS, COLUMNS), dtype),
                                                   opd_reshape(grid, OPD_INTS(POINTS, 1, 1, 2)), 0, k / 4, corners,
                                                   opd_value_bools(wanted, 2)), 0);
            opd_tensor *const weights = opd_reshape(grads[0], OPD_INTS(POINTS, -1));
            CHECK(opd_equal(opd_reshape(y, OPD_INTS(-1, POINTS)), opd_t(weights)));
        }
    }
}

//== padding ===========================================================================================================

TEST(padded_images) {
    static const int64_t pads[][4] = {{1, 1, 1, 1}, {3, 0, 2, 1}, {-1, 2, 0, -2}, {-2, -3, 3, 3}, {4, 4, 0, 0}, {2, -6, 0, 1}};
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_BFLOAT16, OPD_FLOAT32, OPD_INT64, OPD_COMPLEX128};
    int i, d, reflect;
    for (i = 0; i < 6; i++) {
        for (d = 0; d < 5; d++) {
            for (reflect = 0; reflect < 2; reflect++) {
                OPD_SCOPE {
                    const int64_t rows = 5, columns = 7, *p = pads[i];
                    opd_tensor *x = opd_to_dtype(opd_randint(100, OPD_INTS(2, 3, rows, columns), OPD_INT64), dtypes[d]);
                    opd_tensor *y = OPD_CALL(opd_find(reflect ? "aten::reflection_pad2d" : "aten::replication_pad2d"), x,
                                             opd_ints_of(p, 4));
                    const size_t size = opd_dtype_size(dtypes[d]);
                    const int64_t high = rows + p[2] + p[3], wide = columns + p[0] + p[1];
                    int64_t k, wrong = 0;
                    CHECK_OR_RETURN(y && opd_size(y, 2) == high && opd_size(y, 3) == wide);
                    for (k = 0; k < opd_numel(y); k++) {
                        int64_t r = k / wide % high - p[2], c = k % wide - p[0];
                        if (reflect) {
                            r = llabs(r) < rows ? llabs(r) : 2 * (rows - 1) - r;
                            c = llabs(c) < columns ? llabs(c) : 2 * (columns - 1) - c;
                        } else {
                            r = r < 0 ? 0 : r < rows ? r : rows - 1;
                            c = c < 0 ? 0 : c < columns ? c : columns - 1;
                        }
                        wrong += memcmp((char *)opd_data(y) + (size_t)k * size, (char *)opd_data(x) +
                                        (size_t)((k / (high * wide) * rows + r) * columns + c) * size, size) != 0;
                    }
                    CHECK_INT(wrong, 0);
                }
            }
        }
    }
}

//== indices ===========================================================================================================

TEST(places_of_elements_that_are_not_zero) {
    static const int64_t sizes[][3] = {{1, 1, 0}, {1, 1, 1}, {1, 1, 700}, {3, 2, 530}, {2, 600, 3}, {7, 5, 2}, {600, 1, 1}, {2, 20, 40}, {1, 7, 614}};
    static const opd_scalar_type dtypes[] = {OPD_BOOL, OPD_UINT8, OPD_INT64, OPD_FLOAT32, OPD_FLOAT16, OPD_FLOAT64, OPD_COMPLEX64};
    int i, d;
    for (i = 0; i < 9; i++) {
        for (d = 0; d < 7; d++) {
            OPD_SCOPE {
                opd_tensor *counts = opd_randint(3, opd_ints_of(sizes[i], 3), OPD_INT64), *x, *y;
                int64_t k, row = 0, wrong = 0;
                if (d == 3 && opd_numel(counts)) { opd_data_i64(counts)[0] = 1; }
                x = opd_to_dtype(counts, dtypes[d]);
                if (d == 3 && opd_numel(counts)) { opd_data_f32(x)[0] = NAN; }
                y = opd_contiguous(opd_nonzero(x));
                for (k = 0; y && k < opd_numel(counts); k++) {
                    if (opd_data_i64(counts)[k] == 0) { continue; }
                    if (row >= opd_size(y, 0)) { wrong++; break; }
                    wrong += opd_data_i64(y)[3 * row] != k / (sizes[i][1] * sizes[i][2]) ||
                        opd_data_i64(y)[3 * row + 1] != k / sizes[i][2] % sizes[i][1] ||
                        opd_data_i64(y)[3 * row + 2] != k % sizes[i][2];
                    row++;
                }
                CHECK(y && opd_size(y, 1) == 3 && opd_size(y, 0) == row);
                CHECK_INT(wrong, 0);
            }
        }
    }
}

TEST(elements_picked_by_indices) {
    static const opd_scalar_type dtypes[] = {OPD_BOOL, OPD_INT16, OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX128};
    int d, gaps;
    for (d = 0; d < 5; d++) {
        for (gaps = 0; gaps < 2; gaps++) {
            OPD_SCOPE {
                const int64_t rows = 9, columns = 70, picks = 45;
                const size_t size = opd_dtype_size(dtypes[d]);
                opd_tensor *all = opd_to_dtype(opd_randint(2, OPD_INTS(rows, columns + 3), OPD_INT64), dtypes[d]);
                opd_tensor *x = gaps ? opd_narrow(all, 1, 2, columns) : opd_contiguous(opd_narrow(all, 1, 2, columns));
                opd_tensor *index = opd_empty(OPD_INTS(rows, picks), OPD_INT64), *y, *z, *plain = opd_contiguous(x);
                int64_t k, wrong = 0;
                for (k = 0; k < rows * picks; k++) { opd_data_i64(index)[k] = (k % picks * 19 + k / picks) % columns; }
                y = opd_contiguous(opd_gather(x, 1, index));
                z = opd_scatter(opd_zeros(OPD_INTS(rows, columns), dtypes[d]), 1, index, opd_narrow(x, 1, 0, picks));
                for (k = 0; y && z && k < rows * picks; k++) {
                    const int64_t row = k / picks, at = opd_data_i64(index)[k];
                    const char *from = (char *)opd_data(plain);
                    wrong += memcmp((char *)opd_data(y) + (size_t)k * size, from + (size_t)(row * columns + at) * size, size) != 0;
                    wrong += memcmp((char *)opd_data(z) + (size_t)(row * columns + at) * size,
                                    from + (size_t)(row * columns + k % picks) * size, size) != 0;
                }
                CHECK(y && z);
                CHECK_INT(wrong, 0);
                for (k = 0; k < rows * picks; k += 101) {
                    const int64_t was = opd_data_i64(index)[k];
                    opd_data_i64(index)[k] = k % 2 ? columns : -1;
                    CHECK(opd_gather(x, 1, index) == NULL);
                    CHECK(strstr(opd_error_message(), "is out of bounds for dimension 1 with size 70") != NULL);
                    opd_error_clear();
                    opd_data_i64(index)[k] = was;
                }
            }
        }
    }
}
CHECK_MAIN()
