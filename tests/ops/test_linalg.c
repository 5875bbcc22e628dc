/* Factorisations of matrices and systems of equations: residuals as small as LAPACK's for all shapes, sides, layouts
   and batches; first and second derivatives equal finite differences; the texts of errors. */
#include "../../opdispatch.h"
#include "../check.h"

/* Numbers between -1 and 1, the same in every run. */
static opd_tensor *noise(opd_ints sizes, int seed, opd_scalar_type dtype) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT64);
    uint32_t x = (uint32_t)seed * 2654435761u + 12345u;
    for (int64_t i = 0; i < opd_numel(t); i++) {
        x = x * 1664525u + 1013904223u;
        opd_data_f64(t)[i] = (double)(x >> 8) / 8388608.0 - 1;
    }
    return opd_to_dtype(t, dtype);
}
static opd_tensor *square(int64_t n, int seed, opd_scalar_type dtype) { return noise(OPD_INTS(n, n), seed, dtype); }
static opd_tensor *positive(opd_tensor *a) {
    opd_tensor *ones = opd_diag_embed(opd_ones_like(opd_diagonal_full(a, 0, -2, -1)));
    return opd_add(opd_matmul(a, opd_mT(a)), ones);
}
static double most(opd_tensor *t) {
    if (!t) { return NAN; }
    return opd_numel(t) ? opd_item_f64(opd_max(opd_abs(opd_to_dtype(t, OPD_FLOAT64)))) : 0;
}
static double eps_of(opd_scalar_type dtype) { return dtype == OPD_FLOAT64 ? 2.3e-16 : 1.2e-7; }
/* |a - b| in units of n eps |b|. */
static double residual(opd_tensor *a, opd_tensor *b) {
    double size = most(b), n = opd_ndim(b) ? (double)opd_size(b, -1) : 1;
    return most(opd_sub(a, b)) / ((size > 0 ? size : 1) * eps_of(opd_dtype(b)) * (n > 8 ? n : 8));
}
static opd_tensor *one(int64_t n, opd_scalar_type dtype) { return opd_eye(n, dtype); }
static opd_tensor *times(opd_tensor *a, opd_tensor *b) { return opd_matmul(a, b); }
static opd_tensor *wide(opd_tensor *t) { return opd_contiguous(opd_mT(opd_contiguous(opd_mT(t)))); }

static const int64_t sizes_tried[] = {0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 70, 97, 113, 130};
enum { SIZES = (int)(sizeof sizes_tried / sizeof *sizes_tried) };

TEST(cholesky_of_many_sizes) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *a = positive(square(sizes_tried[k / 2], k, dtype)), *b = noise(OPD_INTS(sizes_tried[k / 2], 3), k, dtype);
            opd_tensor *lower = opd_linalg_cholesky(a), *upper = opd_linalg_cholesky_full(opd_mT(wide(a)), true);
            CHECK_OK();
            CHECK(residual(times(lower, opd_mT(lower)), a) < 4);
            CHECK(residual(times(opd_mT(upper), upper), a) < 4);
            CHECK(most(opd_triu(lower, 1)) <= 0 && most(opd_tril(upper, -1)) <= 0);
            CHECK(residual(times(a, opd_cholesky_solve(b, lower)), b) < 40);
            CHECK(residual(times(a, opd_cholesky_solve_full(b, upper, true)), b) < 40);
            CHECK(residual(times(a, opd_cholesky_inverse(lower)), one(sizes_tried[k / 2], dtype)) < 40);
        }
    }
}
TEST(triangles_of_all_kinds) {
    for (int k = 0; k < 16 * SIZES; k++) {
        OPD_SCOPE {
            const bool upper = k & 1, left = k & 2, unit = k & 4;
            const opd_scalar_type dtype = k & 8 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = sizes_tried[k / 16];
            opd_tensor *a = opd_add(opd_mul_Scalar(square(n, k, dtype), OPD_V(0.1)), one(n, dtype));
            opd_tensor *b = left ? noise(OPD_INTS(n, 7), k, dtype) : noise(OPD_INTS(7, n), k, dtype);
            opd_tensor *t = upper ? opd_triu(a, 0) : opd_tril(a, 0), *x;
            if (unit) { t = opd_add(opd_sub(t, opd_diag_embed(opd_diagonal(t))), one(n, dtype)); }
            x = opd_linalg_solve_triangular_full(k % 3 ? a : opd_mT(wide(opd_mT(a))), b, upper, left, unit);
            CHECK_OK();
            CHECK(residual(left ? times(t, x) : times(x, t), b) < 40);
        }
    }
}
TEST(lu_of_many_sizes) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = sizes_tried[k / 2];
            opd_tensor *rets[3];
            for (int shape = 0; shape < 3; shape++) {
                opd_tensor *a = noise(OPD_INTS(n + (shape == 1) * 9, n + (shape == 2) * 13), k, dtype);
                CHECK(opd_linalg_lu(rets, a) == 0);
                CHECK(residual(times(rets[0], times(rets[1], rets[2])), a) < 8);
                CHECK(most(rets[1]) <= 1);
            }
        }
    }
}
TEST(equations_inverses_and_determinants) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = sizes_tried[k / 2];
            opd_tensor *a = opd_add(opd_mul_Scalar(square(n, k + 7, dtype), OPD_V(2 / sqrt((double)n + 1))), one(n, dtype));
            opd_tensor *b = noise(OPD_INTS(n, 5), k, dtype), *x = opd_linalg_solve(a, b), *f[2], *rets[2];
            CHECK_OK();
            CHECK(residual(times(a, x), b) < 1000);
            x = opd_linalg_solve_full(a, opd_mT(b), false);
            CHECK(residual(times(x, a), opd_mT(b)) < 1000);
            CHECK(residual(times(a, opd_linalg_inv(a)), one(n, dtype)) < 1000);
            CHECK(opd_linalg_lu_factor(f, a) == 0);
            CHECK(residual(times(opd_mT(a), opd_linalg_lu_solve_full(f[0], f[1], b, true, true)), b) < 1000);
            CHECK(residual(times(opd_linalg_lu_solve_full(f[0], f[1], opd_mT(b), false, true), opd_mT(a)), opd_mT(b)) < 1000);
            CHECK(opd_linalg_slogdet(rets, a) == 0);
            if (n < 60) {
                const double det = opd_item_f64(opd_linalg_det(a));
                CHECK_NEAR(det, opd_item_f64(rets[0]) * exp(opd_item_f64(rets[1])), 1e3 * eps_of(dtype) * (1 + fabs(det)));
            }
            CHECK_OK();
        }
    }
}
TEST(symmetric_factors_and_their_equations) {
    for (int k = 0; k < 4 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = sizes_tried[k / 4];
            opd_tensor *a = square(n, k, dtype), *b = noise(OPD_INTS(n, 3), k, dtype), *rets[3];
            a = opd_add(a, opd_mT(a));
            if (k & 2) { a = opd_sub(a, opd_diag_embed(opd_diagonal(a))); }
            if ((k & 2) && n == 1) { continue; }
            CHECK(opd_linalg_ldl_factor_ex(rets, a) == 0);
            CHECK(n == 0 || opd_item_i64(opd_max(opd_abs(rets[2]))) == 0 || ((k & 2) && n == 1));
            CHECK(residual(times(a, opd_linalg_ldl_solve(rets[0], rets[1], b)), b) < 1000);
            CHECK_OK();
        }
    }
}
TEST(pivots_of_symmetric_factors_are_checked) {
    OPD_SCOPE {
        const int32_t bad[][3] = {{0, 2, 3}, {1, 2, 4}, {1, 2, -3}, {-2, -3, 3}, {2, 1, 3}, {-4, -4, 3}};
        opd_tensor *a = opd_eye(3, OPD_FLOAT64), *rets[2];
        for (int i = 0; i < 6; i++) {
            CHECK(opd_linalg_ldl_solve(a, opd_tensor_from(bad[i], OPD_INTS(3), OPD_INT32), a) == NULL);
            CHECK(strstr(opd_error_message(), "is not a valid pivot") != NULL);
            opd_error_clear();
        }
        CHECK(opd_linalg_ldl_factor(rets, opd_zeros_like(a)) == -1);
        opd_error_clear();
        CHECK(opd_linalg_ldl_factor(rets, opd_add_Scalar(a, OPD_V(NAN))) == 0);
        opd_error_clear();
    }
}
TEST(qr_of_many_shapes) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = sizes_tried[k / 2];
            opd_tensor *rets[2], *a, *both[2];
            for (int shape = 0; shape < 6; shape++) {
                const int64_t rows = n + (shape % 3 == 1) * 9, columns = n + (shape % 3 == 2) * 13;
                a = noise(OPD_INTS(rows, columns), k, dtype);
                CHECK(opd_linalg_qr_full(rets, a, shape < 3 ? "reduced" : "complete") == 0);
                CHECK(residual(times(rets[0], rets[1]), a) < 8);
                CHECK(residual(times(opd_mT(rets[0]), rets[0]), one(opd_size(rets[0], 1), dtype)) < 8);
                CHECK(most(opd_tril(rets[1], -1)) <= 0);
            }
            a = noise(OPD_INTS(n + 9, n), k, dtype);
            CHECK(opd_linalg_qr_full(rets, a, "complete") == 0 && opd_geqrf(both, a) == 0);
            for (int side = 0; side < 4; side++) {
                opd_tensor *c = noise(side & 1 ? OPD_INTS(n + 9, 6) : OPD_INTS(6, n + 9), 3, dtype);
                opd_tensor *q = side & 2 ? opd_mT(rets[0]) : rets[0];
                CHECK(residual(opd_ormqr_full(both[0], both[1], c, side & 1, (side & 2) != 0), side & 1 ? times(q, c) : times(c, q)) < 40);
            }
            CHECK_OK();
        }
    }
}
/* The results for a batch have the same bits as the results of single matrices, with any number of threads. */
TEST(batches_are_their_matrices) {
    for (int threads = 1; threads < 5; threads += 3) {
        OPD_SCOPE {
            opd_tensor *a = noise(OPD_INTS(2, 3, 40, 40), 5, OPD_FLOAT32), *x, *y, *f[2];
            opd_threads_set(threads);
            x = opd_linalg_solve(a, opd_mT(a));
            y = opd_linalg_cholesky(positive(a));
            CHECK(opd_linalg_qr(f, a) == 0);
            for (int i = 0; i < 6; i++) {
                opd_tensor *part = opd_select(opd_select(a, 0, i / 3), 0, i % 3), *g[2];
                CHECK(most(opd_sub(opd_linalg_solve(part, opd_mT(part)), opd_select(opd_select(x, 0, i / 3), 0, i % 3))) <= 0);
                CHECK(most(opd_sub(opd_linalg_cholesky(positive(part)), opd_select(opd_select(y, 0, i / 3), 0, i % 3))) <= 0);
                CHECK(opd_linalg_qr(g, part) == 0);
                CHECK(most(opd_sub(g[0], opd_select(opd_select(f[0], 0, i / 3), 0, i % 3))) <= 0);
            }
            CHECK_OK();
        }
    }
    opd_threads_set(0);
}
static bool same_bits(opd_tensor *a, opd_tensor *b) {
    a = opd_contiguous(a);
    b = opd_contiguous(b);
    return a && b && opd_dtype(a) == opd_dtype(b) && opd_numel(a) == opd_numel(b) &&
        memcmp(opd_data(a), opd_data(b), (size_t)opd_numel(a) * opd_dtype_size(opd_dtype(a))) == 0;
}
/* Small matrices, of which several are factored at a time: the bits do not depend on the batch, on the place in it, or
   on the number of threads.  Some matrices are singular or have NaN or inf. */
TEST(small_matrices_are_alone_in_a_batch) {
    for (int k = 0; k < 28; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = k / 4 + 1, batch = k % 4 < 2 ? 19 : 3, columns = n == 3 ? 17 : 2;
            opd_tensor *a = opd_to_dtype(noise(OPD_INTS(batch, n, n), k, dtype), dtype), *b, *f[3], *g[3], *inverse[2];
            opd_fill_(opd_select(opd_select(a, 0, 1), 0, n - 1), OPD_V(0));
            opd_fill_(opd_select(opd_select(opd_select(a, 0, 2), 0, 0), 0, 0), OPD_V(k % 3 ? (double)NAN : (double)INFINITY));
            b = noise(OPD_INTS(batch, n, columns), k + 1, dtype);
            opd_threads_set(1 + k % 2 * 3);
            CHECK(opd_linalg_lu_factor_ex(f, a) == 0 && opd_linalg_inv_ex(inverse, a) == 0);
            opd_tensor *x = opd_linalg_lu_solve(f[0], f[1], b), *det = opd_linalg_det(a);
            for (int64_t i = 0; i < batch; i++) {
                opd_tensor *part = opd_select(a, 0, i), *other[2];
                CHECK(opd_linalg_lu_factor_ex(g, part) == 0 && opd_linalg_inv_ex(other, part) == 0);
                CHECK(same_bits(opd_select(f[0], 0, i), g[0]));
                CHECK(same_bits(opd_select(f[1], 0, i), g[1]) && same_bits(opd_select(f[2], 0, i), g[2]));
                CHECK_INT(opd_item_i64(g[2]), i == 1 ? n : 0);
                CHECK(same_bits(opd_select(inverse[0], 0, i), other[0]));
                CHECK(same_bits(opd_select(det, 0, i), opd_linalg_det(part)));
                CHECK(same_bits(opd_select(x, 0, i), opd_linalg_lu_solve(g[0], g[1], opd_select(b, 0, i))));
                if (i == 1 || i == 2) { continue; }
                CHECK(opd_lu_unpack(g, g[0], g[1]) == 0);
                CHECK(residual(times(g[0], times(g[1], g[2])), part) < 8 && most(g[1]) <= 1);
                CHECK(residual(times(part, other[0]), one(n, dtype)) < 4 * most(other[0]) + 4);
                CHECK(residual(times(part, opd_select(x, 0, i)), opd_select(b, 0, i)) < 4 * most(other[0]) + 4);
            }
            CHECK_OK();
        }
    }
    opd_threads_set(0);
}
/* Rows that are multiples of one row of small integers: almost all of these matrices are found to be singular, because
   the product of a small integer and a rounded quotient is rounded to the integer that it stands for. */
TEST(multiples_of_a_row_are_singular) {
    double values[9 * 9 * 4];
    for (int64_t at = 0; at < 81; at++) {
        const double x = (double)(at / 9 + 1), y = (double)(at % 9 + 1);
        values[4 * at] = x * 2;
        values[4 * at + 1] = y * 2;
        values[4 * at + 2] = x * 3;
        values[4 * at + 3] = y * 3;
    }
    OPD_SCOPE {
        opd_tensor *a = opd_tensor_from(values, OPD_INTS(81, 2, 2), OPD_FLOAT64), *f[3];
        for (int k = 0; k < 2; k++, a = opd_to_dtype(a, OPD_FLOAT32)) {
            CHECK(opd_linalg_lu_factor_ex(f, a) == 0);
            CHECK_INT(opd_item_i64(opd_sum(opd_eq_Scalar(f[2], opd_value_int(2)))), 81);
            CHECK_NEAR(most(opd_linalg_det(a)), 0, 0);
            for (int i = 0; i < 81; i++) { CHECK_NEAR(most(opd_linalg_det(opd_select(a, 0, i))), 0, 0); }
        }
        CHECK_OK();
    }
}
/* What is left of a matrix of rank 1 is smaller from column to column, until it has only a few digits. */
TEST(vectors_of_rank_one_are_orthonormal) {
    static const opd_scalar_type dtypes[3] = {OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX128};
    for (int k = 0; k < 6; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = dtypes[k / 2];
            opd_tensor *a = noise(k % 2 ? OPD_INTS(1, 70) : OPD_INTS(70, 1), k, dtype), *q[2], *svd[3];
            a = opd_expand(a, OPD_INTS(70, 70));
            CHECK(opd_linalg_qr(q, a) == 0 && opd_linalg_svd(svd, a) == 0);
            CHECK(most(opd_abs(opd_sub(times(opd_mH(q[0]), q[0]), one(70, dtype)))) < 300 * eps_of(dtype));
            CHECK(most(opd_abs(opd_sub(times(opd_mH(svd[0]), svd[0]), one(70, dtype)))) < 300 * eps_of(dtype));
            CHECK(most(opd_abs(opd_sub(times(svd[2], opd_mH(svd[2])), one(70, dtype)))) < 300 * eps_of(dtype));
            CHECK_OK();
        }
    }
}
/* Pivots may come from elsewhere, and exchange a row with a row above it. */
TEST(pivots_above_the_diagonal) {
    OPD_SCOPE {
        const int32_t rows[3] = {2, 1, 1};
        opd_tensor *factors = opd_add(noise(OPD_INTS(9, 3, 3), 1, OPD_FLOAT64), opd_eye(3, OPD_FLOAT64)), *b, *parts[3];
        opd_tensor *pivots = opd_expand(opd_tensor_from(rows, OPD_INTS(3), OPD_INT32), OPD_INTS(9, 3));
        b = noise(OPD_INTS(9, 3, 2), 2, OPD_FLOAT64);
        opd_tensor *x = opd_linalg_lu_solve(factors, pivots, b);
        CHECK(opd_lu_unpack(parts, factors, pivots) == 0);
        CHECK(residual(times(parts[0], times(parts[1], times(parts[2], x))), b) < 100);
        CHECK_OK();
    }
}
TEST(batches_broadcast) {
    OPD_SCOPE {
        opd_tensor *a = noise(OPD_INTS(3, 3), 5, OPD_FLOAT64), *b = noise(OPD_INTS(4, 3, 2), 6, OPD_FLOAT64);
        opd_tensor *v = noise(OPD_INTS(3), 6, OPD_FLOAT64);
        CHECK(residual(times(a, opd_linalg_solve(a, b)), b) < 100);
        CHECK(residual(times(opd_expand(a, OPD_INTS(4, 3, 3)), opd_linalg_solve(opd_expand(a, OPD_INTS(4, 3, 3)), opd_select(b, 0, 1))),
                       opd_expand(opd_select(b, 0, 1), OPD_INTS(4, 3, 2))) < 100);
        CHECK(opd_ndim(opd_linalg_solve(a, v)) == 1);
        CHECK(residual(opd_mv(a, opd_linalg_solve(a, v)), v) < 100);
        CHECK_INT(opd_numel(opd_linalg_solve(opd_zeros(OPD_INTS(0, 3, 3), OPD_FLOAT32), opd_zeros(OPD_INTS(0, 3, 2), OPD_FLOAT32))), 0);
        CHECK_NEAR(opd_item_f64(opd_linalg_det(opd_zeros(OPD_INTS(0, 0), OPD_FLOAT32))), 1, 0);
        CHECK_OK();
    }
}

//-- derivatives -------------------------------------------------------------------------------------------------------

static int by_cholesky(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *factor = opd_linalg_cholesky_full(positive(in[0]), user != NULL);
    (void)n;
    out[0] = factor;
    out[1] = opd_cholesky_solve_full(opd_narrow(in[0], -1, 0, 1), factor, user != NULL);
    out[2] = opd_cholesky_inverse_full(factor, user != NULL);
    return 3;
}
static int by_lu(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *f[2], *parts[3];
    (void)user;
    (void)n;
    if (opd_linalg_lu_factor(f, in[0]) || opd_lu_unpack(parts, f[0], f[1])) { return -1; }
    out[0] = f[0];
    out[1] = parts[1];
    out[2] = parts[2];
    if (opd_size(in[0], -1) != opd_size(in[0], -2)) { return 3; }
    out[3] = opd_linalg_lu_solve(f[0], f[1], opd_sin(in[0]));
    out[4] = opd_linalg_lu_solve_full(f[0], f[1], opd_sin(in[0]), false, false);
    out[5] = opd_linalg_lu_solve_full(f[0], f[1], opd_sin(in[0]), true, true);
    out[6] = opd_linalg_lu_solve_full(f[0], f[1], opd_sin(in[0]), false, true);
    return 7;
}
static int by_inverse(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *rets[2];
    (void)user;
    (void)n;
    if (opd_linalg_slogdet(rets, in[0])) { return -1; }
    out[0] = opd_linalg_inv(in[0]);
    out[1] = opd_linalg_det(in[0]);
    out[2] = rets[1];
    out[3] = opd_linalg_solve_full(in[0], opd_cos(in[0]), false);
    return 4;
}
static int by_qr(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    return opd_linalg_qr(out, in[0]) ? -1 : 2;
}
static void derivatives(opd_gradcheck_fn fn, void *user, opd_tensor *input) {
    opd_gradcheck_options options = opd_gradcheck_defaults();
    opd_tensor *x = opd_tensor_set_requires_grad(opd_contiguous(input), true);
    options.check_forward_ad = options.check_batched_grad = true;
    CHECK(opd_gradcheck(fn, user, &x, 1, &options) == 0);
    CHECK_OK();
    options.check_forward_ad = options.check_batched_grad = false;
    CHECK(opd_gradgradcheck(fn, user, &x, 1, NULL, &options) == 0);
    CHECK_OK();
}
TEST(derivatives_of_factorisations) {
    OPD_SCOPE {
        static int upper;
        derivatives(by_cholesky, NULL, square(3, 4, OPD_FLOAT64));
        derivatives(by_cholesky, &upper, noise(OPD_INTS(2, 2, 2), 5, OPD_FLOAT64));
        derivatives(by_lu, NULL, square(3, 8, OPD_FLOAT64));
        derivatives(by_lu, NULL, noise(OPD_INTS(2, 4), 8, OPD_FLOAT64));
        derivatives(by_lu, NULL, noise(OPD_INTS(2, 4, 2), 8, OPD_FLOAT64));
        derivatives(by_inverse, NULL, noise(OPD_INTS(2, 3, 3), 8, OPD_FLOAT64));
        derivatives(by_qr, NULL, noise(OPD_INTS(4, 3), 8, OPD_FLOAT64));
        derivatives(by_qr, NULL, noise(OPD_INTS(2, 2, 3), 8, OPD_FLOAT64));
    }
}
/* The gradient of a determinant is the matrix of cofactors, also if the determinant is zero. */
TEST(singular_determinants_have_gradients) {
    OPD_SCOPE {
        static const double numbers[] = {1, 2, 2, 4}, want[] = {4, -2, -2, 1};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(2, 2), OPD_FLOAT64), true);
        CHECK(opd_backward(opd_linalg_det(x)) == 0);
        for (int i = 0; i < 4; i++) { CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[i], want[i], 1e-9); }
        CHECK_OK();
    }
}

//-- eigenvalues and singular values -----------------------------------------------------------------------------------

/* An orthogonal matrix with these values between it and another. */
static opd_tensor *with_values(int64_t n, double (*value)(int64_t i), bool symmetric, opd_scalar_type dtype) {
    opd_tensor *q[2], *p[2], *values = opd_tensor_new(OPD_INTS(n), OPD_FLOAT64);
    for (int64_t i = 0; i < n; i++) { opd_data_f64(values)[i] = value(i); }
    if (opd_linalg_qr(q, square(n, 3, OPD_FLOAT64)) || opd_linalg_qr(p, square(n, 4, OPD_FLOAT64))) { return NULL; }
    values = times(opd_mul(q[0], opd_unsqueeze(values, 0)), opd_mT(symmetric ? q[0] : p[0]));
    return opd_to_dtype(symmetric ? opd_mul_Scalar(opd_add(values, opd_mT(values)), OPD_V(0.5)) : values, dtype);
}
static double equal(int64_t i) { (void)i; return 1; }
static double none(int64_t i) { (void)i; return 0; }
static double clustered(int64_t i) { return i % 3 + 1e-9 * (double)i; }
static double graded(int64_t i) { return pow(10, -(double)(i % 20)); }
static double few(int64_t i) { return i < 3 ? 5 - (double)i : 0; }
static double growing(int64_t i) { return (double)(i + 1); }
static double huge(int64_t i) { return 1e30 * (double)(i + 1); }
static double small(int64_t i) { return 1e-30 * (double)(i + 1); }
static double (*const spectra[])(int64_t) = {equal, none, clustered, graded, few, growing, huge, small};
enum { SPECTRA = (int)(sizeof spectra / sizeof *spectra) };

static void eigenvalues_of(opd_tensor *a, bool upper) {
    opd_tensor *v[2], *only;
    const int64_t n = opd_size(a, -1);
    CHECK_OR_RETURN(opd_linalg_eigh_full(v, upper ? opd_triu(a, 0) : opd_tril(a, 0), upper ? "U" : "L") == 0);
    CHECK(residual(times(opd_mul(v[1], opd_unsqueeze(v[0], 0)), opd_mT(v[1])), a) < 30);
    CHECK(residual(times(opd_mT(v[1]), v[1]), one(n, opd_dtype(a))) < 30);
    only = opd_linalg_eigvalsh(a);
    CHECK_OK();
    CHECK(most(opd_sub(only, v[0])) <= 30 * (double)(n + 8) * eps_of(opd_dtype(a)) * most(v[0]));
    for (int64_t i = 1; i < n; i++) { CHECK(opd_item_f64(opd_select(v[0], 0, i)) >= opd_item_f64(opd_select(v[0], 0, i - 1))); }
}
TEST(eigenvalues_of_many_matrices) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *a = square(sizes_tried[k / 2], k, dtype);
            eigenvalues_of(opd_add(a, opd_mT(a)), k / 2 % 2);
        }
    }
    for (int k = 0; k < 2 * SPECTRA; k++) {
        OPD_SCOPE { eigenvalues_of(with_values(40, spectra[k / 2], true, k % 2 ? OPD_FLOAT64 : OPD_FLOAT32), false); }
    }
}
static void singular_values_of(opd_tensor *a) {
    opd_tensor *v[3], *only;
    for (int full = 0; full < 2; full++) {
        CHECK_OR_RETURN(opd_linalg_svd_full(v, a, full != 0, NULL) == 0);
        const int64_t count = opd_size(v[1], 0), rows = opd_size(v[0], 1), columns = opd_size(v[2], 0);
        opd_tensor *u = opd_narrow(v[0], 1, 0, count), *t = opd_narrow(v[2], 0, 0, count);
        CHECK_INT(rows, full ? opd_size(a, 0) : count);
        CHECK(residual(times(opd_mul(u, opd_unsqueeze(v[1], 0)), t), a) < 30);
        CHECK(residual(times(opd_mT(v[0]), v[0]), one(rows, opd_dtype(a))) < 30);
        CHECK(residual(times(v[2], opd_mT(v[2])), one(columns, opd_dtype(a))) < 30);
        for (int64_t i = 0; i < count; i++) {
            const double value = opd_item_f64(opd_select(v[1], 0, i));
            CHECK(value >= 0 && (!i || value <= opd_item_f64(opd_select(v[1], 0, i - 1))));
        }
    }
    only = opd_linalg_svdvals(a);
    CHECK_OK();
    CHECK(most(opd_sub(only, v[1])) <= 30 * (double)(opd_size(only, 0) + 8) * eps_of(opd_dtype(a)) * most(v[1]));
}
TEST(singular_values_of_many_matrices) {
    for (int k = 0; k < 6 * SIZES; k++) {
        OPD_SCOPE {
            const int64_t n = sizes_tried[k / 6];
            singular_values_of(noise(OPD_INTS(n + (k % 3 == 1) * 9, n + (k % 3 == 2) * 13), k, k / 3 % 2 ? OPD_FLOAT64 : OPD_FLOAT32));
        }
    }
    for (int k = 0; k < 2 * SPECTRA; k++) {
        OPD_SCOPE { singular_values_of(with_values(40, spectra[k / 2], false, k % 2 ? OPD_FLOAT64 : OPD_FLOAT32)); }
    }
}
/* What does not depend on the vectors' signs. */
static int by_eigenvalues(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *v[2], *a = opd_add(in[0], opd_mT(in[0]));
    (void)user;
    (void)n;
    if (opd_linalg_eigh(v, a)) { return -1; }
    out[0] = v[0];
    out[1] = opd_mul(v[1], v[1]);
    out[2] = opd_linalg_eigvalsh(a);
    return 3;
}
static int by_singular_values(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *v[3];
    (void)user;
    (void)n;
    if (opd_linalg_svd_full(v, in[0], false, NULL)) { return -1; }
    out[0] = v[1];
    out[1] = opd_mul(v[0], v[0]);
    out[2] = opd_matmul(v[0], v[2]);
    out[3] = opd_linalg_svdvals(in[0]);
    return 4;
}
TEST(derivatives_of_values_and_vectors) {
    OPD_SCOPE {
        derivatives(by_eigenvalues, NULL, square(3, 5, OPD_FLOAT64));
        derivatives(by_eigenvalues, NULL, noise(OPD_INTS(2, 2, 2), 5, OPD_FLOAT64));
        derivatives(by_singular_values, NULL, square(3, 5, OPD_FLOAT64));
        derivatives(by_singular_values, NULL, noise(OPD_INTS(3, 2), 5, OPD_FLOAT64));
        derivatives(by_singular_values, NULL, noise(OPD_INTS(2, 2, 3), 5, OPD_FLOAT64));
    }
}
/* What does not depend on how vectors are turned: values, and the absolute values of vectors. */
static int by_complex_values(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *v[2];
    (void)user;
    (void)n;
    if (opd_linalg_eig(v, in[0])) { return -1; }
    out[0] = opd_abs(v[0]);
    out[1] = opd_abs(v[1]);
    out[2] = opd_real(opd_linalg_eigvals(in[0]));
    out[3] = opd_linalg_matrix_exp(in[0]);
    return 4;
}
TEST(eigenvalues_of_any_matrix) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t n = sizes_tried[k / 2];
            opd_tensor *a = square(n, k, dtype), *v[2];
            CHECK(opd_linalg_eig(v, a) == 0);
            opd_tensor *wide_a = opd_to_dtype(a, opd_dtype(v[1]));
            opd_tensor *left = opd_matmul(wide_a, v[1]), *right = opd_mul(v[1], opd_unsqueeze(v[0], -2));
            CHECK(residual(opd_real(left), opd_real(right)) < 40 && residual(opd_imag(left), opd_imag(right)) < 40);
            opd_tensor *sum = opd_sum(opd_real(opd_linalg_eigvals(a)));
            CHECK(most(opd_sub(sum, opd_trace(a))) <= 10 * eps_of(dtype) * (double)(n * n) * most(a));
            CHECK_OK();
        }
    }
    OPD_SCOPE {
        opd_tensor *bad = opd_full(OPD_INTS(3, 3), OPD_V((double)NAN), OPD_FLOAT32), *v[2];
        CHECK(opd_linalg_eig(v, bad) == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eig: input tensor should not contain infs or NaNs.");
        derivatives(by_complex_values, NULL, square(3, 5, OPD_FLOAT64));
        derivatives(by_complex_values, NULL, noise(OPD_INTS(2, 2, 2), 6, OPD_FLOAT64));
    }
}
TEST(losses_that_turn_complex_vectors_are_refused) {
    OPD_SCOPE {
        static const double numbers[] = {1, 2, -3, 1.5};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(2, 2), OPD_FLOAT64), true), *v[2];
        CHECK(opd_linalg_eig(v, x) == 0);
        CHECK(opd_backward(opd_sum(opd_abs(v[1]))) == 0);
        CHECK(opd_linalg_eig(v, x) == 0);
        CHECK(opd_backward(opd_sum(opd_imag(opd_select(v[1], 1, 0)))) == -1);
        CHECK(strstr(opd_error_message(), "so it is ill-defined") != NULL);
        opd_error_clear();
    }
}
/* Vectors of a symmetric matrix only turn, so that its gradient is symmetric; the numbers are PyTorch's. */
TEST(gradients_of_vectors_are_symmetric) {
    OPD_SCOPE {
        static const double numbers[] = {2, 1, 0.5, 1, 3, -1, 0.5, -1, 1}, weights[] = {1, 2, 3, 4, 5, 6, 7, 8, 10};
        static const double want[] = {-0.237101732688, -0.716960348955, 0.084616292006, -0.716960348955, 0.872520320903,
                                      0.079317251607, 0.084616292006, 0.079317251607, -0.635418588216};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(3, 3), OPD_FLOAT64), true), *v[2];
        CHECK(opd_linalg_eigh(v, x) == 0);
        v[1] = opd_mul(opd_pow_Tensor_Scalar(opd_abs(v[1]), OPD_V(3)), opd_tensor_from(weights, OPD_INTS(3, 3), OPD_FLOAT64));
        CHECK(opd_backward(opd_sum(v[1])) == 0);
        for (int i = 0; i < 9; i++) { CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[i], want[i], 1e-9); }
        CHECK_OK();
    }
}
TEST(products_of_complex_vectors_conjugate) {
    OPD_SCOPE {
        static const double left[] = {1, 2, 3, -1}, right[] = {2, -1, 0, 1};
        opd_tensor *x = opd_view_as_complex(opd_tensor_from(left, OPD_INTS(2, 2), OPD_FLOAT64));
        opd_tensor *y = opd_view_as_complex(opd_tensor_from(right, OPD_INTS(2, 2), OPD_FLOAT64));
        for (int k = 0; k < 2; k++) {
            opd_tensor *sum = opd_view_as_real(opd_linalg_vecdot(k ? opd_unsqueeze(x, 0) : x, k ? opd_unsqueeze(y, 0) : y));
            CHECK_OK();
            CHECK_NEAR(opd_item_f64(opd_select(sum, -1, 0)), -1, 1e-12);
            CHECK_NEAR(opd_item_f64(opd_select(sum, -1, 1)), -2, 1e-12);
        }
    }
}
TEST(values_of_no_numbers_are_errors) {
    OPD_SCOPE {
        for (int k = 0; k < 2; k++) {
            opd_tensor *bad = opd_full(OPD_INTS(20, 20), OPD_V(k ? (double)INFINITY : (double)NAN), OPD_FLOAT32), *rets[3];
            CHECK(opd_linalg_eigh(rets, bad) == -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 19).");
            CHECK(opd_linalg_svd(rets, bad) == -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.");
        }
    }
}

/* One element that is not finite is found, wherever it is; svdvals reads all of them. */
TEST(one_element_that_is_no_number_is_an_error) {
    for (int64_t at = 0; at < 25; at++) {
        OPD_SCOPE {
            opd_tensor *bad = noise(OPD_INTS(5, 5), 3, at % 2 ? OPD_FLOAT64 : OPD_FLOAT32);
            opd_fill_(opd_select(opd_view(bad, OPD_INTS(25)), 0, at), OPD_V(at % 3 ? (double)NAN : -(double)INFINITY));
            CHECK(!opd_linalg_svdvals(bad));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.");
        }
    }
}

//-- refused calls -----------------------------------------------------------------------------------------------------

TEST(errors_are_those_of_pytorch) {
    OPD_SCOPE {
        opd_tensor *zero = opd_zeros(OPD_INTS(3, 3), OPD_FLOAT32), *many = opd_zeros(OPD_INTS(2, 3, 3), OPD_FLOAT32), *rets[4];
        opd_tensor *oblong = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32), *whole = opd_ones(OPD_INTS(3, 3), OPD_INT64);
        opd_tensor *eye = opd_eye(3, OPD_FLOAT32), *line = opd_ones(OPD_INTS(3), OPD_FLOAT32);
        CHECK(!opd_linalg_inv(zero));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.");
        CHECK(!opd_linalg_inv(many));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.inv: (Batch element 0): The diagonal element 1 is zero");
        CHECK(!opd_linalg_inv(oblong));
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices");
        CHECK(!opd_linalg_inv(whole));
        CHECK_ERROR(OPD_ERROR_DTYPE, "linalg.inv: Expected a floating point or complex tensor as input. Got int64");
        CHECK(!opd_linalg_inv(opd_to_dtype(eye, OPD_FLOAT16)));
        CHECK_ERROR(OPD_ERROR_DTYPE, "linalg.inv: Low precision dtypes not supported. Got float16");
        CHECK(!opd_linalg_inv(line));
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.inv: The input tensor A must have at least 2 dimensions.");
        CHECK(!opd_linalg_cholesky(zero));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite).");
        CHECK(!opd_linalg_cholesky(opd_to_dtype(eye, OPD_FLOAT16)));
        CHECK_ERROR(OPD_ERROR_DTYPE, "\"cholesky_cpu\" not implemented for 'float16'");
        CHECK(!opd_linalg_solve(zero, eye));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.solve: The solver failed because the input matrix is singular.");
        CHECK(!opd_linalg_solve(eye, opd_ones(OPD_INTS(4, 2), OPD_FLOAT32)));
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.solve: Incompatible shapes of A and B for the equation AX = B (3x3 and 4x2)");
        CHECK(!opd_linalg_solve(eye, opd_ones(OPD_INTS(3, 2), OPD_FLOAT64)));
        CHECK_ERROR(OPD_ERROR_DTYPE, "linalg.solve: Expected A and B to have the same dtype, but found A of type float32 and B of type float64 instead");
        CHECK(opd_linalg_lu_factor(rets, zero) == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.lu_factor: U[1,1] is zero and using it on lu_solve would result in a division by zero.");
        CHECK(opd_linalg_lu_factor(rets, line) == -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "lu_factor: Expected tensor with 2 or more dimensions. Got size: [3] instead");
        CHECK(opd_linalg_qr_full(rets, eye, "x") == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "qr received unrecognized mode 'x' but expected one of 'reduced' (default), 'r', or 'complete'");
        CHECK(!opd_cholesky_inverse(zero));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "cholesky_inverse: The diagonal element 1 is zero");
        CHECK(opd_linalg_lu_factor(rets, eye) == 0);
        CHECK(!opd_linalg_lu_solve(rets[0], opd_add_Scalar(rets[1], OPD_V(7)), eye));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Pivots given to lu_solve must all be smaller or equal to LU.size(-2).");
        CHECK(!opd_linalg_householder_product(oblong, line));
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]");
        CHECK(opd_linalg_cholesky_ex(rets, zero) == 0);
        CHECK_INT(opd_item_i64(rets[1]), 1);
        CHECK(opd_linalg_inv_ex(rets, zero) == 0);
        CHECK_INT(opd_item_i64(rets[1]), 1);
        CHECK_OK();
    }
}
/* Examples of vectors are no matrix together. */
static int determinant_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_linalg_det(in[0]);
    return out[0] ? 1 : -1;
}
static int solution_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_linalg_solve(in[0], in[0]);
    return out[0] ? 1 : -1;
}
TEST(batched_vectors_are_no_matrices) {
    OPD_SCOPE {
        opd_tensor *eye = opd_eye(3, OPD_FLOAT32), *out[1];
        CHECK(opd_vmap(determinant_of, NULL, &eye, 1, NULL, out, 1) == -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.det: The input tensor A must have at least 2 dimensions.");
        CHECK(opd_vmap(solution_of, NULL, &eye, 1, NULL, out, 1) == -1);
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.solve: The input tensor A must have at least 2 dimensions.");
    }
}
TEST(errors_name_the_operator_that_was_called) {
    OPD_SCOPE {
        opd_tensor *zero = opd_zeros(OPD_INTS(3, 3), OPD_FLOAT32), *half = opd_to_dtype(zero, OPD_FLOAT16), *rets[3];
        CHECK(!opd_logdet(opd_ones(OPD_INTS(2, 3), OPD_FLOAT32)));
        CHECK_ERROR(OPD_ERROR_SHAPE, "logdet: A must be batches of square matrices, but they are 2 by 3 matrices");
        CHECK(!opd_logdet(half));
        CHECK_ERROR(OPD_ERROR_DTYPE, "logdet: Low precision dtypes not supported. Got float16");
        CHECK(!opd_linalg_vander(half));
        CHECK_ERROR(OPD_ERROR_DTYPE, "linalg.vander supports floating point, complex, and integer tensors, but got float16");
        CHECK_INT(opd_ndim(opd_linalg_vander_full(opd_full(OPD_INTS(), OPD_V(2), OPD_FLOAT32), OPD_V(3))), 2);
        CHECK(opd__linalg_check_errors(opd_ones(OPD_INTS(), OPD_INT32), "linalg.svd", true) == -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "too many repeated singular values (error code: 1).");
        CHECK(opd__lu_with_info(rets, zero) == 0);
        CHECK_INT(opd_item_i64(rets[2]), 1);
        CHECK_OK();
    }
}
/* A batch with a huge number of empty matrices must not take long. */
TEST(many_empty_matrices_end) {
    OPD_SCOPE {
        opd_tensor *none_of = opd_zeros(OPD_INTS((int64_t)1 << 40, 0, 0), OPD_FLOAT32), *rets[3];
        opd_tensor *pivots = opd_zeros(OPD_INTS((int64_t)1 << 40, 0), OPD_INT32);
        CHECK(opd_geqrf(rets, none_of) == 0);
        CHECK(opd_lu_unpack(rets, none_of, pivots) == 0);
        CHECK_INT(opd_numel(rets[0]), 0);
        CHECK(opd_lu_unpack(rets, opd_zeros(OPD_INTS(2, 0), OPD_FLOAT32), opd_zeros(OPD_INTS(0), OPD_INT32)) == 0);
        CHECK_NEAR(opd_item_f64(opd_sum(rets[0])), 2, 0);
        CHECK_OK();
    }
}
/* Batches of empty matrices, which have no memory, of every dtype, also fake.  The sanitizers check the pointers. */
TEST(batches_of_empty_matrices) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128};
    static const char *const names[] = {"linalg_svd", "linalg_svdvals", "linalg_qr", "linalg_pinv.atol_rtol_tensor",
                                        "linalg_matrix_rank.atol_rtol_tensor"};
    static const char *const square[] = {"linalg_eigh", "linalg_eigvalsh", "linalg_eig", "linalg_eigvals", "linalg_inv", "linalg_det",
                                         "linalg_slogdet", "linalg_cholesky", "linalg_lu", "linalg_lu_factor", "linalg_ldl_factor",
                                         "linalg_matrix_exp"};
    static const int64_t shapes[][3] = {{2, 0, 0}, {2, 3, 0}, {2, 0, 3}};
    int d, s, i;
    for (d = 0; d < 4; d++) {
        for (s = 0; s < 3; s++) {
            for (i = 0; i < (int)(sizeof names / sizeof *names) + (s ? 0 : (int)(sizeof square / sizeof *square)); i++) {
                const char *const name = i < (int)(sizeof names / sizeof *names) ? names[i]
                    : square[i - (int)(sizeof names / sizeof *names)];
                char full[60];
                opd_value x, out[4];
                OPD_SCOPED;
                (void)snprintf(full, sizeof full, "aten::%s", name);
                opd_op *const op = opd_find(full);
                x = opd_value_tensor(opd_zeros(opd_ints_of(shapes[s], 3), dtypes[d]));
                CHECK(op != NULL && opd_call_all(op, out, &x, 1) == 0);
                OPD_FAKE_MODE { CHECK(opd_call_all(op, out, &x, 1) == 0); }
                if (!opd_ok()) { printf("%s of %s: %s\n", name, opd_dtype_name(dtypes[d]), opd_error_message()); }
                opd_error_clear();
            }
        }
    }
}
TEST(numbers_that_are_none_end) {
    OPD_SCOPE {
        const double hidden[] = {0, 1, (double)NAN, 1}, beside[] = {1, (double)INFINITY, 0, 1};
        opd_tensor *bad = opd_full(OPD_INTS(40, 40), OPD_V((double)NAN), OPD_FLOAT32), *rets[4];
        CHECK(!opd_linalg_cholesky(bad));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the leading minor of order 1 is not positive-definite");
        CHECK(isnan(opd_item_f64(opd_linalg_det(bad))));
        CHECK(isnan(most(opd_linalg_inv(bad))));
        CHECK(opd_linalg_qr(rets, bad) == 0);
        bad = opd_tensor_from(hidden, OPD_INTS(2, 2), OPD_FLOAT64);        /* below a zero */
        CHECK(isnan(opd_item_f64(opd_linalg_det(bad))));
        bad = opd_tensor_from(beside, OPD_INTS(2, 2), OPD_FLOAT64);
        CHECK(opd_linalg_qr(rets, bad) == 0);
        CHECK(isinf(opd_item_f64(opd_select(opd_select(rets[1], 0, 0), 0, 1))));
        CHECK_OK();
    }
}

/* Rows that have a value alone, graded matrices, small values beside large ones: PyTorch's values, in its order. */
TEST(eigenvalues_of_what_needs_balance) {
    static const double graded[] = {1, 1e8, 1e16, 1e-8, 2, 1e8, 1e-16, 1e-8, 4};
    static const double small[] = {0, 1e-17, 0, 1e-17, 0, 0, 0, 0, 1};
    static const double close[] = {1e-17, 1e-17, 0, 0, 2e-17, 0, 0, 0, 1}, plain[] = {1, 0, 0, 49}, below[] = {1, 0, 5, 2};
    static const struct { const double *a; int n; double values[3]; } cases[] = {
        {graded, 3, {4.866198262509023, 0.34455761845016963, 1.789244119040809}}, {small, 3, {1e-17, -1e-17, 1}},
        {close, 3, {1e-17, 2e-17, 1}}, {plain, 2, {1, 49, 0}}, {below, 2, {2, 1, 0}}};
    double triangle[144];
    for (int k = 0; k < 5; k++) {
        const int64_t sizes[2] = {cases[k].n, cases[k].n};
        opd_tensor *a = opd_tensor_from(cases[k].a, opd_ints_of(sizes, 2), OPD_FLOAT64), *pair[2];
        CHECK_INT(opd_linalg_eig(pair, a), 0);
        const double *values = opd_data_f64(opd_contiguous(opd_real(pair[0])));
        for (int i = 0; i < cases[k].n; i++) {
            CHECK(fabs(values[i] - cases[k].values[i]) <= 1e-14 * fabs(cases[k].values[i]));
        }
        if (k == 2) { CHECK_NEAR(opd_item_f64(opd_select(opd_select(opd_real(pair[1]), 0, 0), 0, 1)), sqrt(0.5), 1e-15); }
    }
    for (int i = 0; i < 144; i++) { triangle[i] = i / 12 == i % 12 ? i / 12 + 1 : i / 12 > i % 12 ? 100 : 0; }
    const int64_t sizes[2] = {12, 12};
    opd_tensor *values = opd_linalg_eigvals(opd_tensor_from(triangle, opd_ints_of(sizes, 2), OPD_FLOAT64));
    for (int i = 0; i < 12; i++) { CHECK(opd_item_f64(opd_select(opd_real(values), 0, i)) == 12 - i); }
}
/* Element (i, j) of matrices on which steps of QR may go wrong; x: noise. */
static double awkward(int kind, int64_t n, int64_t i, int64_t j, double x) {
    switch (kind) {
        case 0: return x;
        case 1: return i == 0 ? x : i == j + 1;                                 /* companion */
        case 2: return i == j + 1 ? -1 : j >= i && j <= i + 3;                  /* Toeplitz, values far from stable */
        case 3: return x * pow(10, 16.0 * (double)(j - i) / (double)n);         /* graded */
        case 4: return j >= i ? x : 1e-14 * x;                                  /* nearly triangular */
        case 5: return j + 1 >= i ? x : 0;                                      /* one diagonal below the main one */
        case 6: return (i + 1) % n == j;                                        /* a permutation */
        case 7: return 1;                                                       /* all but one value are rounding */
        case 8: return j + 1 >= i ? (double)(n - (i > j ? i : j)) : 0;          /* ill-conditioned values */
        case 9: return i == j ? 2 : i + 1 == j;                                 /* one vector only */
        case 10: return i / 4 == j / 4 ? (double)((i % 4 + 1) * (j % 4 - 2)) : 0;      /* the same values many times */
        case 11: return (i < n / 2) == (j < n / 2) ? x : 0;                     /* two parts */
        default: return x * (kind == 12 ? 1e-300 : 1e300);
    }
}
TEST(eigenvalues_of_awkward_matrices) {
    static const int64_t sizes[] = {1, 2, 5, 30, 64, 90};
    for (int k = 0; k < 14 * 6 * 2; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int kind = k / 2 % 14;
            const int64_t n = sizes[k / 28];
            opd_tensor *x = square(n, k / 2, OPD_FLOAT64), *v[2];
            double *at = (double *)opd_data(x);
            for (int64_t i = 0; i < n * n; i++) { at[i] = awkward(kind, n, i / n, i % n, at[i]); }
            opd_tensor *a = opd_to_dtype(x, dtype);
            if (!(most(a) < INFINITY)) { a = opd_ones_like(a); }                /* 1e300 is no float */
            CHECK_INT(opd_linalg_eig(v, a), 0);
            opd_tensor *back = opd_matmul(opd_to_dtype(a, opd_dtype(v[1])), v[1]), *alone = opd_linalg_eigvals(a);
            back = opd_abs(opd_sub(back, opd_mul(v[1], opd_unsqueeze(v[0], -2))));
            opd_tensor *sums = opd_matmul(opd_abs(a), opd_ones(OPD_INTS(n, 1), dtype));
            const double unit = eps_of(dtype) * (double)(n > 8 ? n : 8) * most(sums);
            CHECK(most(back) <= unit);
            opd_tensor *lengths = opd_diagonal_full(opd_matmul(opd_conj(opd_mT(v[1])), v[1]), 0, -2, -1);
            CHECK(most(opd_sub(opd_real(lengths), opd_ones(OPD_INTS(n), dtype))) < 100 * eps_of(dtype));
            CHECK(most(opd_sub(opd_real(opd_sum(alone)), opd_trace(a))) <= (double)n * unit);
            CHECK_OK();
        }
    }
}
/* PyTorch's results if a matrix is singular, if b has fewer batch dims, and if rcond is not given. */
TEST(conditions_and_least_squares_at_their_edges) {
    static const int64_t square[2] = {2, 2}, one[3] = {1, 4, 3}, many[2] = {4, 4}, batch[3] = {5, 4, 2}, two[3] = {2, 4, 3};
    static const int64_t vectors[2] = {1, 4}, cell[2] = {1, 1};
    opd_tensor *rets[4], *a = opd_randn(opd_ints_of(one, 3), OPD_FLOAT64);
    CHECK(isinf(opd_item_f64(opd_linalg_cond_full(opd_zeros(opd_ints_of(square, 2), OPD_FLOAT64), opd_value_int(1)))));
    CHECK_INT(opd_linalg_lstsq(rets, a, opd_randn(opd_ints_of(many, 2), OPD_FLOAT64)), 0);
    CHECK(opd_ndim(rets[0]) == 3 && opd_size(rets[0], 1) == 3 && opd_size(rets[0], 2) == 4);
    CHECK(opd_linalg_lstsq(rets, opd_randn(opd_ints_of(two, 3), OPD_FLOAT64), opd_randn(opd_ints_of(vectors, 2), OPD_FLOAT64)) != 0);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input.size(-2) should match other.size(-2)");
    CHECK_INT(opd_linalg_lstsq_full(rets, a, opd_randn(opd_ints_of(batch, 3), OPD_FLOAT64), OPD_NONE, "gelsd"), 0);
    CHECK(opd_numel(rets[2]) == 1 && opd_numel(rets[3]) == 3 && opd_size(rets[0], 0) == 5);
    opd_tensor *low = opd_matmul(opd_narrow(opd_select(a, 0, 0), 1, 0, 1), opd_narrow(opd_t(opd_select(a, 0, 0)), 0, 0, 1));
    CHECK_INT(opd_linalg_lstsq_full(rets, low, opd_narrow(low, 1, 0, 1), opd_value_double(0), "gelsd"), 0);
    CHECK_INT(opd_item_i64(rets[2]), 1);
    CHECK_NEAR(opd_item_f64(opd_linalg_matrix_exp(opd_full(opd_ints_of(cell, 2), opd_value_int(-50), OPD_FLOAT64))), exp(-50), 1e-36);
}
static int asserting(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    if (opd_assert_async_msg(in[0], "one of them is zero")) { return -1; }
    out[0] = opd_functional_assert_async_msg(in[0], "one of them is zero", in[0]);
    return out[0] ? 1 : -1;
}
TEST(assertions_are_of_all_examples) {
    OPD_SCOPE {
        static const double numbers[] = {1, 2, 0};
        opd_tensor *all = opd_tensor_from(numbers, OPD_INTS(3), OPD_FLOAT64), *first = opd_narrow(all, 0, 0, 2), *out[1];
        CHECK_INT(opd_vmap(asserting, NULL, &first, 1, NULL, out, 1), 1);
        CHECK(opd_equal(out[0], first));
        CHECK_INT(opd_vmap(asserting, NULL, &all, 1, NULL, out, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "one of them is zero");
        first = opd_ones(OPD_INTS(2, 2), OPD_FLOAT32);
        CHECK_INT(opd_vmap(asserting, NULL, &first, 1, NULL, out, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "ambiguous");
    }
}
/* Least squares with a matrix of low rank gives the shortest solution, with every driver. */
TEST(least_squares_of_low_rank) {
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 2, 1}, {2, 3, 1}, {6, 6, 3}, {20, 9, 9}, {9, 20, 9}, {40, 33, 5},
                                        {33, 70, 20}, {5, 4, 0}};
    for (int k = 0; k < 18; k++) {
        OPD_SCOPE {
            const int64_t *shape = shapes[k / 2];
            const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *a = times(noise(OPD_INTS(2, shape[0], shape[2]), k, dtype), noise(OPD_INTS(shape[2], shape[1]), k + 50, dtype));
            opd_tensor *b = noise(OPD_INTS(2, shape[0], 3), k + 90, dtype), *rets[4], *others[4];
            const opd_value least = opd_value_double(k % 2 ? 1e-10 : 1e-4);
            CHECK(opd_linalg_lstsq_full(rets, a, b, least, "gelsy") == 0);
            CHECK(opd_linalg_lstsq_full(others, a, b, least, "gelsd") == 0);
            CHECK(most(opd_sub(opd_to_dtype(rets[2], dtype), opd_full(OPD_INTS(2), OPD_V(shape[2]), dtype))) <= 0);
            CHECK(residual(rets[0], others[0]) < 20000 && most(opd_sub(rets[0], others[0])) < (k % 2 ? 1e-9 : 1e-1));
            CHECK_OK();
        }
    }
}
TEST(least_squares_of_nothing) {
    static const char *const drivers[] = {"gels", "gelsy", "gelsd"};
    static const double line[] = {1, 2, 2, 4, 3, 6}, right[] = {1, 0, 2};
    OPD_SCOPE {
        opd_tensor *rets[4], *b = opd_ones(OPD_INTS(3, 1), OPD_FLOAT64), *two[2];
        for (int i = 0; i < 3; i++) {
            CHECK(opd_linalg_lstsq_full(rets, opd_zeros(OPD_INTS(3, 2), OPD_FLOAT64), b, OPD_NONE, drivers[i]) == 0);
            CHECK(opd_size(rets[0], 0) == 2 && most(rets[0]) <= 0);
            CHECK(opd_linalg_lstsq_full(rets, opd_zeros(OPD_INTS(3, 5), OPD_FLOAT64), b, OPD_NONE, drivers[i]) == 0);
            CHECK(opd_size(rets[0], 0) == 5 && most(rets[0]) <= 0);
        }
        two[0] = opd_zeros(OPD_INTS(3, 2), OPD_FLOAT64);
        two[1] = opd_eye_m(3, 2, OPD_FLOAT64);
        CHECK(opd_linalg_lstsq_full(rets, opd_stack(opd_tensors_of(two, 2), 0), opd_ones(OPD_INTS(2, 3, 1), OPD_FLOAT64), OPD_NONE,
                                    "gels") == 0);
        CHECK_NEAR(opd_item_f64(opd_sum(rets[0])), 2, 1e-12);
        CHECK_NEAR(opd_item_f64(opd_sum(rets[1])), 4, 1e-12);
        b = opd_tensor_from(right, OPD_INTS(3, 1), OPD_FLOAT64);
        CHECK(opd_linalg_lstsq(rets, opd_tensor_from(line, OPD_INTS(3, 2), OPD_FLOAT64), b) == 0);
        CHECK_INT(opd_item_i64(rets[2]), 1);
        CHECK_NEAR(opd_item_f64(opd_select(rets[0], 0, 0)), 0.1, 1e-12);
        CHECK_NEAR(opd_item_f64(opd_select(rets[0], 0, 1)), 0.2, 1e-12);
        CHECK(opd_linalg_lstsq_full(rets, opd_mul(opd_eye_m(3, 2, OPD_FLOAT64), opd_tensor_from(line, OPD_INTS(2), OPD_FLOAT64)),
                                    b, OPD_NONE, "gels") == 0);
        CHECK(opd_linalg_lstsq_full(rets, opd_triu(opd_eye_m(3, 2, OPD_FLOAT64), 1), b, OPD_NONE, "gels") == 0);
    }
}
/* Of the cofactors of [a, b; c, d], which are [d, -c; -b, a], weighted: those of the weights. */
TEST(singular_determinants_have_second_derivatives) {
    OPD_SCOPE {
        static const double numbers[] = {1, 2, 2, 4, 3, 1, 1, 1}, weights[] = {1, 2, 3, 4, 1, 2, 3, 4};
        static const double want[] = {4, -3, -2, 1, 4, -3, -2, 1}, cofactors[] = {4, -2, -2, 1, 1, -1, -1, 3};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(2, 2, 2), OPD_FLOAT64), true), *grad[1];
        opd_tensor *sum = opd_sum(opd_linalg_det(x));
        opd_backward_options options;
        memset(&options, 0, sizeof options);
        options.create_graph = true;
        CHECK(opd_autograd_grad(&sum, 1, &x, 1, &options, grad) == 0);
        for (int i = 0; i < 8; i++) { CHECK_NEAR(opd_data_f64(grad[0])[i], cofactors[i], 1e-9); }
        CHECK(opd_backward(opd_sum(opd_mul(grad[0], opd_tensor_from(weights, OPD_INTS(2, 2, 2), OPD_FLOAT64)))) == 0);
        for (int i = 0; i < 8; i++) { CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[i], want[i], 1e-9); }
        CHECK_OK();
    }
}
/* Gradients are infinite or NaN, without an error, as in PyTorch. */
TEST(gradients_at_singular_matrices_end) {
    OPD_SCOPE {
        static const double numbers[] = {1, 2, 2, 4};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(2, 2), OPD_FLOAT64), true), *rets[2];
        CHECK(opd_linalg_slogdet(rets, x) == 0 && opd_backward(rets[1]) == 0);
        CHECK(isinf(opd_data_f64(opd_tensor_grad(x))[0]) && opd_data_f64(opd_tensor_grad(x))[0] < 0);
        CHECK(isinf(opd_data_f64(opd_tensor_grad(x))[1]) && opd_data_f64(opd_tensor_grad(x))[1] > 0);
        CHECK(opd_linalg_solve_ex(rets, x, opd_ones(OPD_INTS(2, 1), OPD_FLOAT64)) == 0 && opd_backward(opd_sum(rets[0])) == 0);
        CHECK_OK();
        CHECK(!OPD_CALL(opd_find("aten::linalg_matrix_exp.out"), opd_detach(x), opd_zeros(OPD_INTS(2, 2), OPD_FLOAT32)));
        CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype float64, but got float32 instead");
    }
}
/* One triangle, or pair of factors, for all right sides, by rows or by columns, and a batch of each. */
TEST(factors_are_read_as_they_lie) {
    for (int k = 0; k < 16; k++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = k & 1 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *a = k & 2 ? noise(OPD_INTS(3, 20, 20), k, dtype) : noise(OPD_INTS(1, 20, 20), k, dtype), *rets[2];
            opd_tensor *b = noise(OPD_INTS(3, 20, 7), k + 20, dtype), *lower = opd_linalg_cholesky(positive(a));
            a = opd_add(a, opd_mul_Scalar(one(20, dtype), OPD_V(5)));
            CHECK(opd_linalg_lu_factor(rets, a) == 0);
            if (k & 4) {
                rets[0] = opd_contiguous(rets[0]);
                lower = opd_contiguous(lower);
            }
            if (!(k & 2) && k & 8) {
                rets[0] = opd_select(rets[0], 0, 0);
                rets[1] = opd_select(rets[1], 0, 0);
                lower = opd_select(lower, 0, 0);
            }
            CHECK(residual(times(a, opd_linalg_lu_solve(rets[0], rets[1], b)), b) < 200);
            opd_tensor *right = opd_linalg_lu_solve_full(rets[0], rets[1], opd_mT(b), false, true);
            CHECK(residual(times(right, opd_mT(a)), opd_mT(b)) < 200);
            CHECK(residual(times(lower, opd_linalg_solve_triangular(lower, b, false)), b) < 200);
            CHECK(residual(times(opd_mT(lower), opd_linalg_solve_triangular(opd_mT(lower), b, true)), b) < 200);
            CHECK(residual(times(times(lower, opd_mT(lower)), opd_cholesky_solve(b, lower)), b) < 2000);
            CHECK_OK();
        }
    }
}
/* Returns the number of columns of a and b that have opposite directions. */
static int64_t turned_columns(opd_tensor *a, opd_tensor *b) {
    opd_tensor *const cosines = opd_real(opd_sum_dim(opd_mul(opd_conj(a), b), OPD_INTS(0), false));
    return opd_item_i64(opd_sum(opd_lt_Scalar(cosines, opd_value_double(0.5))));
}
/* Rounding errors do not choose the signs of singular vectors and eigenvectors: almost equal matrices have the same. */
TEST(vectors_of_almost_equal_matrices) {
    static const int64_t shapes[][2] = {{5, 4}, {3, 4}, {8, 3}, {3, 3}, {12, 12}};
    int64_t turned = 0;
    (void)opd_manual_seed(7);
    for (int i = 0; i < 5 * 30; i++) {
        OPD_SCOPE {
            const opd_ints sizes = opd_ints_of(shapes[i % 5], 2);
            const opd_scalar_type dtype = i / 5 % 2 ? OPD_COMPLEX128 : OPD_FLOAT64;
            opd_tensor *a = opd_randn(sizes, dtype), *x[3], *y[3];
            opd_tensor *b = opd_add(a, opd_mul_Scalar(opd_randn(sizes, dtype), opd_value_double(1e-9)));
            CHECK(opd_linalg_svd_full(x, a, false, NULL) == 0 && opd_linalg_svd_full(y, b, false, NULL) == 0);
            turned += turned_columns(x[0], y[0]) + turned_columns(opd_mH(x[2]), opd_mH(y[2]));
            if (sizes.data[0] == sizes.data[1]) {
                CHECK(opd_linalg_eigh(x, opd_add(a, opd_mH(a))) == 0 && opd_linalg_eigh(y, opd_add(b, opd_mH(b))) == 0);
                turned += turned_columns(x[1], y[1]);
            }
        }
    }
    CHECK_INT(turned, 0);
    CHECK_OK();
}
CHECK_MAIN()
