/* Counts, sums without NaN, scans, norms, distances, and factors of small matrices, beside loops over all elements. */
#include "../check.h"

#include <float.h>

TEST(histograms) {
    static const int64_t counts[] = {0, 1, 511, 512, 513, 5000};
    int i, twice, given;
    for (i = 0; i < 6; i++) {
        for (twice = 0; twice < 2; twice++) {
            for (given = 0; given < 2; given++) {
                OPD_SCOPE {
                    const int64_t bins = 37, n = counts[i];
                    opd_tensor *x = opd_randn(OPD_INTS(n), twice ? OPD_FLOAT64 : OPD_FLOAT32), *y;
                    double low = -0.75, high = 1.5;
                    int64_t right[37] = {0}, k, wrong = 0;
                    for (k = 0; given && k + 4 < n && k < 37 * 11; k++) {      /* numbers around the edges of the bins */
                        const double edge = low + (high - low) * (double)(k / 11) / (double)bins;
                        if (twice) { opd_data_f64(x)[k] = edge + (double)(k % 11 - 5) * 1e-16; }
                        else { opd_data_f32(x)[k] = (float)(edge + (double)(k % 11 - 5) * 4e-8); }
                    }
                    if (given && n > 3) { opd_fill_(opd_select(x, 0, 2), OPD_V((double)NAN)); }
                    if (!given && n > 1) { low = opd_item_f64(opd_min(x)); high = opd_item_f64(opd_max(x)); }
                    if (!given && n <= 1) { low = n ? opd_item_f64(x) - 1 : -1; high = low + 2; }
                    y = opd_to_dtype(opd_histc_full(x, bins, OPD_V(given ? low : 0.), OPD_V(given ? high : 0.)), OPD_INT64);
                    for (k = 0; k < n; k++) {
                        int64_t at = bins;
                        if (twice) {
                            const double v = opd_data_f64(x)[k];
                            if (v >= low && v <= high) { at = (int64_t)((v - low) * (double)bins / (high - low)); }
                        } else {
                            const float v = opd_data_f32(x)[k], l = (float)low, h = (float)high;
                            if (v >= l && v <= h) { at = (int64_t)((v - l) * (float)bins / (h - l)); }
                        }
                        if (at < bins) { right[at]++; }
                        else if (twice ? opd_data_f64(x)[k] == high : opd_data_f32(x)[k] == (float)high) { right[bins - 1]++; }
                    }
                    for (k = 0; y && k < bins; k++) { wrong += opd_data_i64(y)[k] != right[k]; }
                    CHECK(y != NULL);
                    if (n != 1 || given) { CHECK_INT(wrong, 0); }
                    else { CHECK_INT(opd_item_i64(opd_sum(y)), 1); }
                }
            }
        }
    }
}

TEST(counts_of_numbers) {
    OPD_SCOPE {
        opd_tensor *x = opd_randint(1000, OPD_INTS(4003), OPD_INT64), *y = opd_bincount(x);
        opd_tensor *weight = opd_randn(OPD_INTS(4003), OPD_FLOAT32), *z = opd_bincount_full(x, weight, 1200);
        int64_t k, sums = 0, right[1000] = {0};
        double all = 0;
        for (k = 0; k < 4003; k++) { right[opd_data_i64(x)[k]]++; }
        CHECK_INT(opd_numel(y), opd_item_i64(opd_max(x)) + 1);
        for (k = 0; k < opd_numel(y); k++) { sums += opd_data_i64(y)[k] != right[k]; }
        CHECK_INT(sums, 0);
        CHECK_INT(opd_numel(z), 1200);
        for (k = 0; k < 4003; k++) { all += (double)opd_data_f32(weight)[k]; }
        CHECK_NEAR(opd_item_f64(opd_sum(z)), all, 1e-3);
        CHECK_INT(opd_numel(opd_bincount(opd_zeros(OPD_INTS(0), OPD_INT64))), 0);
        for (k = 0; k < 5; k++) {
            opd_data_i64(x)[4002 - k] = -1 - k;
            CHECK(opd_bincount(x) == NULL);
            CHECK(strstr(opd_error_message(), "non-negative") != NULL);
            opd_error_clear();
            opd_data_i64(x)[4002 - k] = 3;
        }
    }
}

/* As a bool, each element that is not 0 counts, before it is rounded: sums are true if there is one, products if there
   are only such. */
TEST(sums_as_bool) {
    static const float given[] = {0.25f, -0.5f, 0, 0, 0, 0.125f, 1, -1, 2, 0};
    opd_tensor *x = opd_tensor_from(given, OPD_INTS(5, 2), OPD_FLOAT32), *out = opd_zeros(OPD_INTS(5), OPD_BOOL), *t;
    static const int64_t one = 1;                 /* in C++, what OPD_INTS makes would end with its statement */
    const opd_value as_bool = opd_value_dtype(OPD_BOOL), dim = opd_value_ints(&one, 1);
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_COMPLEX64};
    static const bool sums[] = {true, false, true, true, true}, products[] = {true, false, false, true, false};
    for (int i = 0; i < 4; i++) {
        t = opd_sum_dim_full(opd_to_dtype(x, dtypes[i]), OPD_INTS(1), false, as_bool);
        CHECK(t && memcmp(opd_data(t), sums, sizeof sums) == 0);
        t = opd_prod_dim_full(opd_to_dtype(x, dtypes[i]), 1, false, as_bool);
        CHECK(t && memcmp(opd_data(t), products, sizeof products) == 0);
        t = opd_sum_full(opd_narrow(opd_to_dtype(x, dtypes[i]), 0, 3, 1), as_bool);       /* 1 and -1 */
        CHECK(t && opd_item(t).u.i);
    }
    CHECK(OPD_CALL(opd_find("aten::sum.IntList_out"), x, OPD_V(1), false, OPD_NONE, out) == out);
    CHECK(memcmp(opd_data(out), sums, sizeof sums) == 0);
    t = opd_nansum_full(x, dim, false, as_bool);
    CHECK(t && memcmp(opd_data(t), sums, sizeof sums) == 0);
    CHECK_OK();
}
TEST(sums_without_nan) {
    int64_t n, i, k;
    for (n = 1; n < 6000; n = n < 40 ? n + 1 : n * 2 + 3) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(3, n), OPD_FLOAT32), *y;
            for (i = 0; i < 3 * n; i += 7) { opd_data_f32(x)[i] = NAN; }
            y = opd_nansum_full(x, OPD_V(OPD_INTS(1)), false, OPD_NONE);
            for (i = 0; y && i < 3; i++) {
                double right = 0, most = 1;
                for (k = 0; k < n; k++) {
                    const double v = (double)opd_data_f32(x)[i * n + k];
                    right += isnan(v) ? 0 : v;
                    most += isnan(v) ? 0 : fabs(v);
                }
                CHECK_NEAR(opd_data_f32(y)[i], right, 1e-6 * most);
            }
            CHECK(y != NULL);
        }
    }
}

TEST(distances_of_rows) {
    static const int64_t depths[] = {1, 7, 16, 33, 64};
    int i, twice;
    for (i = 0; i < 5; i++) {
        for (twice = 0; twice < 2; twice++) {
            OPD_SCOPE {
                const int64_t n = 13, k = depths[i];
                opd_tensor *x = opd_randn(OPD_INTS(n, k), twice ? OPD_FLOAT64 : OPD_FLOAT32);
                opd_tensor *y = opd_to_dtype(opd_pdist(x), OPD_FLOAT64);
                int64_t a, b, c, at = 0;
                x = opd_to_dtype(x, OPD_FLOAT64);
                CHECK_OR_RETURN(y && opd_numel(y) == n * (n - 1) / 2);
                for (a = 0; a < n; a++) {
                    for (b = a + 1; b < n; b++, at++) {
                        double sum = 0;
                        for (c = 0; c < k; c++) {
                            const double v = opd_data_f64(x)[a * k + c] - opd_data_f64(x)[b * k + c];
                            sum += v * v;
                        }
                        CHECK_NEAR(opd_data_f64(y)[at], sqrt(sum), 1e-5 * (1 + sqrt(sum)));
                    }
                }
            }
        }
    }
}

/* Cumulative sums and products of rows whose elements lie side by side, apart, or are one number; also in place. */
TEST(scans_of_rows) {
    static const int64_t counts[] = {1, 2, 7, 130};
    for (int i = 0; i < 4 * 7 * 8; i++) {
        OPD_SCOPE {
            const int64_t k = counts[i % 4], n = i / 4 % 7 + 1;
            const int shape = i / 28 % 4;
            const bool product = i / 112;
            opd_tensor *x = opd_randn(shape == 1 ? OPD_INTS(k, n) : shape == 2 ? OPD_INTS(n, 1) : OPD_INTS(n, k), OPD_FLOAT32);
            x = shape == 1 ? opd_t(x) : shape == 2 ? opd_expand(x, OPD_INTS(n, k)) : x;
            if (n > 2) { opd_fill_(opd_select(opd_select(x, 0, 1), 0, k / 2), OPD_V((double)NAN)); }
            opd_tensor *wide = opd_contiguous(opd_to_dtype(x, OPD_FLOAT64)), *y;
            if (shape == 3) { y = product ? opd_cumprod_(x, 1) : opd_cumsum_(x, 1); }
            else { y = product ? opd_cumprod(x, 1) : opd_cumsum(x, 1); }
            CHECK_OR_RETURN(y && opd_data_f32(y = opd_contiguous(y)));
            for (int64_t row = 0; row < n; row++) {
                double sum = product;
                for (int64_t at = row * k; at < (row + 1) * k; at++) {
                    sum = product ? sum * opd_data_f64(wide)[at] : sum + opd_data_f64(wide)[at];
                    const float want = (float)sum, got = opd_data_f32(y)[at];
                    CHECK(memcmp(&want, &got, sizeof got) == 0 || (want != want && got != got));
                }
            }
        }
    }
}
/* Powers of numbers, with the most columns of one row that vectors turn round, and one less and more. */
TEST(powers_in_columns) {
    for (int64_t n = 15; n <= 17; n++) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(41), OPD_FLOAT32), *y = opd_vander_full(x, OPD_V(n), false);
            CHECK_OR_RETURN(y && opd_numel(y) == 41 * n);
            for (int64_t i = 0; i < 41; i++) {
                double power = 1;
                for (int64_t j = n; j-- > 0; power *= (double)opd_data_f32(x)[i]) {
                    CHECK_NEAR(opd_data_f32(opd_contiguous(y))[i * n + j], power, 1e-6 * fabs(power) + 2e-45);
                }
            }
        }
    }
}
/* Norms of rows, also of numbers whose squares are no floats, and of rows that do not lie in memory one by one. */
TEST(norms_of_rows) {
    static const int64_t counts[] = {1, 31, 32, 33, 100, 257, 5000};
    for (int i = 0; i < 28; i++) {
        OPD_SCOPE {
            const int64_t n = 5, k = counts[i / 4], last = -1;
            opd_tensor *x = opd_randn(i & 2 ? OPD_INTS(k, n) : OPD_INTS(n, k), i & 1 ? OPD_FLOAT64 : OPD_FLOAT32), *y;
            x = i & 2 ? opd_t(x) : x;
            opd_mul_Scalar_(opd_select(x, 0, 1), OPD_V(1e30));
            opd_mul_Scalar_(opd_select(x, 0, 2), OPD_V(1e-30));
            opd_fill_(opd_select(opd_select(x, 0, 3), 0, k / 2), OPD_V(-(double)INFINITY));
            opd_fill_(opd_select(opd_select(x, 0, 4), 0, k - 1), OPD_V((double)NAN));
            y = opd_to_dtype(opd_norm_dim(x, OPD_V(2), opd_ints_of(&last, 1), false), OPD_FLOAT64);
            x = opd_contiguous(opd_to_dtype(x, OPD_FLOAT64));
            CHECK_OR_RETURN(y && x);
            for (int64_t row = 0; row < 3; row++) {
                double sum = 0;
                for (int64_t j = 0; j < k; j++) { sum += opd_data_f64(x)[row * k + j] * opd_data_f64(x)[row * k + j]; }
                CHECK_NEAR(opd_data_f64(y)[row], sqrt(sum), 1e-7 * sqrt(sum));
            }
            CHECK(opd_data_f64(y)[3] > DBL_MAX && opd_data_f64(y)[4] != opd_data_f64(y)[4]);
        }
    }
}
/* In distances of long rows, NaN and inf stay, and equal rows have distance 0. */
TEST(distances_of_rows_that_are_not_finite) {
    static const int64_t depths[] = {3, 16, 37, 97};
    for (int i = 0; i < 8; i++) {
        OPD_SCOPE {
            const int64_t k = depths[i / 2];
            opd_tensor *x = opd_randn(OPD_INTS(4, k), i % 2 ? OPD_FLOAT64 : OPD_FLOAT32), *y;
            opd_copy_(opd_select(x, 0, 1), opd_select(x, 0, 0));
            opd_fill_(opd_select(opd_select(x, 0, 2), 0, k - 1), OPD_V((double)INFINITY));
            opd_fill_(opd_select(opd_select(x, 0, 3), 0, k / 2), OPD_V((double)NAN));
            y = opd_to_dtype(opd_cdist(x, x, 2), OPD_FLOAT64);
            CHECK_OR_RETURN(y != NULL);
            CHECK(opd_data_f64(y)[1] <= 0 && opd_data_f64(y)[4] <= 0);
            CHECK(opd_data_f64(y)[2] > DBL_MAX && opd_data_f64(y)[9] > DBL_MAX && opd_data_f64(y)[10] != opd_data_f64(y)[10]);
            CHECK(opd_data_f64(y)[3] != opd_data_f64(y)[3] && opd_data_f64(y)[12] != opd_data_f64(y)[12]);
        }
    }
}

/* The determinant of the leading n x n numbers of rows of 8, by the formula of the first row. */
static double determinant(const double *a, int n) {
    double minor[64], sum = 0;
    int column, i, j;
    if (n == 1) { return a[0]; }
    for (column = 0; column < n; column++) {
        for (i = 1; i < n; i++) {
            for (j = 0; j < n - 1; j++) { minor[(i - 1) * 8 + j] = a[i * 8 + j + (j >= column)]; }
        }
        sum += (column & 1 ? -1 : 1) * a[column] * determinant(minor, n - 1);
    }
    return sum;
}
TEST(small_matrices) {
    int n, twice;
    for (n = 1; n <= 8; n++) {
        for (twice = 0; twice < 2; twice++) {
            OPD_SCOPE {
                const double tol = twice ? 1e-8 : 2e-2;
                opd_tensor *a = opd_randn(OPD_INTS(9, n, n), twice ? OPD_FLOAT64 : OPD_FLOAT32), *b, *det, *wide;
                opd_tensor *one = opd_eye(n, opd_dtype(a)), *rets[3];
                int i, j, k;
                a = opd_add(a, opd_mul_Scalar(one, OPD_V(2.5)));
                if (n > 1) { opd_fill_(opd_select(opd_select(a, 1, 0), 1, 0), OPD_V(0)); }   /* needs exchanges of rows */
                b = opd_matmul(opd_linalg_inv(a), a);
                CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(b, one)))) < tol * 10);
                det = opd_to_dtype(opd_linalg_det(a), OPD_FLOAT64);
                wide = opd_to_dtype(a, OPD_FLOAT64);
                for (i = 0; i < 9; i++) {
                    double rows[64] = {0}, right;
                    for (j = 0; j < n; j++) {
                        for (k = 0; k < n; k++) { rows[j * 8 + k] = opd_data_f64(wide)[(i * n + j) * n + k]; }
                    }
                    right = determinant(rows, n);
                    CHECK_NEAR(opd_data_f64(det)[i], right, tol * (1 + fabs(right)));
                }
                CHECK_INT(opd_linalg_inv_ex(rets, opd_zeros(OPD_INTS(2, n, n), opd_dtype(a))), 0);
                CHECK_INT(opd_item_i64(opd_select(rets[1], 0, 1)), 1);
                CHECK_INT(opd_linalg_lu_factor_ex(rets, opd_cat(opd_tensors_of(&a, 1), 1)), 0);
                b = opd_narrow(opd_cat(opd_tensors_of(&a, 1), 2), 2, 0, n > 1 ? n - 1 : 1);
                CHECK_INT(opd_linalg_lu(rets, b), 0);
                CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(opd_matmul(rets[0], opd_matmul(rets[1], rets[2])), b)))) < tol);
            }
        }
    }
}
TEST(gates) {
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(3, 5, 14), OPD_FLOAT32), *y = opd_contiguous(opd_glu(x));
        int64_t i;
        for (i = 0; y && i < 3 * 5 * 7; i++) {
            const float *row = opd_data_f32(x) + i / 7 * 14;
            CHECK_NEAR(opd_data_f32(y)[i], (double)row[i % 7] / (1 + exp(-(double)row[7 + i % 7])), 1e-5);
        }
        CHECK(y != NULL);
    }
}
/* A 16-bit float cannot hold a count: float16 ends at 65,504, and counting by ones ends at 2,048 in float16 and at 256 in
   bfloat16.  Results and gradients of calls that count, beside float64.  x has 70,000 or 3,000 elements from 0.5 to 1,
   multiples of 1/8; o is 1, i and j are 0. */
static const char *const counting_calls[] = {
    "torch.amax(x * 0 + o, [0])", "torch.amin(x * 0 + o, [0])", "torch.max(x * 0 + o)", "torch.min(x * 0 + o)", "torch.amax(x, [0])",
    "torch.max(x)", "torch.median(x)", "torch.aminmax(x)[0]", "torch.aminmax(x)[1]", "torch.mean(x)", "torch.mean(x, [0])", "torch.nanmean(x * 0.5)",
    "torch.var(x)", "torch.std(x)", "torch.var_mean(x)[0]", "torch.std_mean(x)[1]", "torch.logsumexp(x, [0])",
    "torch.softmax(x, 0) / 4", "torch.linalg_vector_norm(x)", "torch.linalg_vector_norm(x, float('inf'))",
    "torch.linalg_vector_norm(x * 0 + o, float('inf'))", "torch.linalg_vector_norm(x * 0 + o, -float('inf'))", "torch.norm(x)",
    "torch.scatter_reduce(x[:1] * 0, 0, i, x, 'mean', include_self=False)", "torch.scatter_reduce(x[:1] * 0, 0, i, x, 'mean')",
    "torch.scatter_reduce(x[:1] * 0, 0, i, x, 'amax')", "torch.scatter_reduce(x[:1], 0, i, x, 'amin')",
    "torch.scatter_reduce(x[:1] * 0, 0, i, x * 0 + o, 'amax', include_self=False)", "torch.scatter_reduce(x[:1], 0, i, x * 0 + o, 'prod')",
    "torch.index_reduce(x[:1] * 0, 0, i, x, 'mean')", "torch.index_reduce(x[:1] * 0, 0, i, x, 'mean', include_self=False)",
    "torch.index_reduce(x[:1] * 0, 0, i, x * 0 + o, 'amax')", "torch.index_reduce(x[:1] * 0, 0, i, x * 0 + o, 'prod', include_self=False)",
    "torch.segment_reduce(x, 'mean', lengths=n)", "torch.segment_reduce(x, 'max', lengths=n)", "torch.segment_reduce(x * 0 + o, 'max', lengths=n)",
    "torch.segment_reduce(x * 0 + o, 'min', lengths=n)", "torch.segment_reduce(x * 0 + o, 'prod', lengths=n)",
    "torch.embedding(x.view(-1, 1)[:2], i, -1, True)", "torch.embedding_bag(x.view(-1, 1), j, i[:1], False, 1)[0]",
    "torch.embedding_bag(x.view(-1, 1), i, i[:1], False, 1)[0]", "torch.embedding_bag(x.view(-1, 1), j, i[:1], True, 1)[0]",
    "torch.mse_loss(x, o * 0)", "torch.l1_loss(x, o * 0)", "torch.huber_loss(x, o * 0)", "torch.smooth_l1_loss(x, o * 0)", "torch.soft_margin_loss(x, o)",
    "torch.binary_cross_entropy(x * 0.5, o)", "torch.binary_cross_entropy_with_logits(x, o)", "torch.kl_div(x, o)", "torch.poisson_nll_loss(x, o, True, False, 1e-8, 1)",
    "torch.hinge_embedding_loss(x, o)", "torch.margin_ranking_loss(x, o, o)", "torch.cosine_embedding_loss(x.view(-1, 2), o.view(-1, 2), o[:x.numel() // 2])",
    "torch.triplet_margin_loss(x.view(-1, 1), o.view(-1, 1) * 2, o.view(-1, 1))", "torch.nll_loss(x.view(-1, 1), i)", "torch.nll_loss(x.view(-1, 1), i, o[:1])",
    "torch.nll_loss2d(x.view(1, 1, -1, 1), i.view(1, -1, 1))", "torch.cross_entropy_loss(x.view(-1, 2), i[:x.numel() // 2])",
    "torch.cross_entropy_loss(x.view(-1, 2), i[:x.numel() // 2], None, 1, -100, 0.1)", "torch.multi_margin_loss(x.view(-1, 2), i[:x.numel() // 2])",
    "torch.multilabel_margin_loss(x.view(-1, 1), i.view(-1, 1) - 1)", "torch.batch_norm(x.view(-1, 1), None, None, None, None, True, 0.1, 1e-2, False)",
    "torch.layer_norm(x, [x.numel()])", "torch.group_norm(x.view(1, 2, -1), 2)", "torch.instance_norm(x.view(1, 1, -1), None, None, None, None, True, 0.1, 1e-5, False)",
    "torch.avg_pool1d(x.view(1, 1, -1), [x.numel()])", "torch.avg_pool2d(x.view(1, 1, 100, -1), [100, x.numel() // 100])",
    "torch.adaptive_avg_pool1d(x.view(1, 1, -1), 1)", "torch.adaptive_avg_pool2d(x.view(1, 1, 100, -1), [1, 1])", "torch.adaptive_avg_pool3d(x.view(1, 1, 10, 10, -1), [1, 1, 1])",
    "torch.logcumsumexp(x, 0)[-1]", "torch.trapezoid(x / x.numel())", "torch.cov(x.view(2, -1))", "torch.corrcoef(x.view(2, -1))[0]", "torch.rms_norm(x, [x.numel()])",
    "torch.upsample_linear1d(x.view(1, 1, -1), [7], False)", "torch.upsample_nearest1d(x.view(1, 1, -1), [7])", "torch._upsample_bilinear2d_aa(x.view(1, 1, 100, -1), [2, 2], False)",
    "torch.histc(x, 4, 0., 2.) / 4", "torch.count_nonzero(x)", "torch.bincount(i, x / 4) / 4", "torch.special_logit(x * 0.5).mean()", "torch.cdist(x.view(1, -1), o.view(1, -1) * 2)",
    "torch.nansum(x / x.numel())", "torch.std(x, [0], correction=0)", "torch.var(x, [0], correction=2)", "torch.renorm(x.view(1, -1), 2., 0, 1.) / 4", "torch.dist(x, o * 2)",
    "torch.cummax(x, 0)[0]", "torch.linspace(0., 1., x.numel(), dtype=x.dtype)", "torch.topk(x, 2)[0]"};
/* Runs call number k with a copy of x in dtype.  Returns the result and the gradient of x, or NULL, in float64. */
static void counting_call(int k, opd_tensor *x, opd_scalar_type dtype, opd_tensor **to) {
    char source[400];
    const int64_t n = opd_numel(x);
    opd_value args[5], result;
    opd_script *script;
    (void)snprintf(source, sizeof source, "def f(x, o, i, j, n):\n    return %s\n", counting_calls[k]);
    script = opd_script_compile(source, NULL);
    x = opd_tensor_set_requires_grad(opd_clone(opd_to_dtype(x, dtype)), true);
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(opd_ones(OPD_INTS(n), dtype));
    args[2] = opd_value_tensor(opd_zeros(OPD_INTS(n), OPD_INT64));
    args[3] = opd_value_tensor(opd_arange(OPD_V(n), OPD_INT64));
    args[4] = opd_value_tensor(opd_full(OPD_INTS(1), OPD_V(n), OPD_INT64));
    to[0] = to[1] = NULL;
    if (script && opd_script_run(script, "f", args, 5, &result) == 0) {
        to[0] = opd_to_dtype(opd_detach(result.u.t), OPD_FLOAT64);
        if (opd_tensor_requires_grad(result.u.t)) {
            opd_tensor *const odd = opd_fmod_Scalar(opd_arange(OPD_V(opd_numel(result.u.t)), OPD_INT64), OPD_V(2));
            (void)opd_backward(opd_sum(opd_mul(opd_flatten(result.u.t, 0, -1), opd_add_Scalar(odd, OPD_V(1)))));
            to[1] = opd_tensor_grad(x) ? opd_to_dtype(opd_tensor_grad(x), OPD_FLOAT64) : NULL;
        }
    }
    opd_script_free(script);
}
TEST(counts_in_short_floats) {
    static const opd_scalar_type types[] = {OPD_FLOAT16, OPD_BFLOAT16};
    for (int k = 0; k < (int)(sizeof counting_calls / sizeof *counting_calls); k++) {
        for (int64_t n = 3000; n <= 70000; n += 67000) {
            OPD_SCOPED;
            opd_tensor *x = opd_div(opd_to_dtype(opd_randint_low(4, 9, OPD_INTS(n), OPD_INT64), OPD_FLOAT64), opd_full(OPD_INTS(1), OPD_V(8.), OPD_FLOAT64));
            opd_tensor *want[2], *have[2];
            counting_call(k, x, OPD_FLOAT64, want);
            if (!opd_ok()) { printf("    %s: %s\n", counting_calls[k], opd_error_message()); opd_error_clear(); CHECK(0); continue; }
            for (int t = 0; t < 2; t++) {
                counting_call(k, x, types[t], have);
                if (!opd_ok()) { printf("    %s of %s: %s\n", counting_calls[k], opd_dtype_name(types[t]), opd_error_message()); opd_error_clear(); CHECK(0); continue; }
                for (int i = 0; i < 2; i++) {
                    if (!want[i] && !have[i]) continue;
                    if (!want[i] || !have[i]) { printf("    %s of %s: one has no %s\n", counting_calls[k], opd_dtype_name(types[t]), i ? "gradient" : "result"); CHECK(0); continue; }
                    /* a part in 20 of the largest element, and float16's smallest step */
                    const double most = 1e-6 + opd_item_f64(opd_max(opd_abs(want[i]))), far = opd_item_f64(opd_max(opd_abs(opd_sub(have[i], want[i]))));
                    if (!(far <= most / 20 + 1e-7)) {
                        printf("    %s of %d numbers of %s: %s differs by %g of %g\n", counting_calls[k], (int)n, opd_dtype_name(types[t]), i ? "the gradient" : "the result", far, most);
                    }
                    CHECK(far <= most / 20 + 1e-7);
                }
            }
        }
    }
}
CHECK_MAIN()
