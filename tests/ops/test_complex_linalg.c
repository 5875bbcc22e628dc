/* Complex matrices: values and gradients of functions equal PyTorch's (golden/complex_linalg.txt); residuals for all
   sizes and kinds, second derivatives, forward mode, and the texts of errors. */
#include "../../opdispatch.h"
#include "../check.h"

/* Numbers between -1 and 1, the same in every run. */
static opd_tensor *noise(opd_ints sizes, int seed) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT64);
    uint32_t x = (uint32_t)seed * 2654435761u + 12345u;
    for (int64_t i = 0; i < opd_numel(t); i++) {
        x = x * 1664525u + 1013904223u;
        opd_data_f64(t)[i] = (double)(x >> 8) / 8388608.0 - 1;
    }
    return t;
}
static opd_tensor *pairs(opd_ints sizes, int seed) { return opd_complex(noise(sizes, seed), noise(sizes, seed + 1000)); }
static opd_tensor *mh(opd_tensor *t) { return opd_conj_physical(opd_mT(t)); }
static opd_tensor *one(int64_t n) { return opd_to_dtype(opd_eye(n, OPD_FLOAT64), OPD_COMPLEX128); }
static opd_tensor *times(opd_tensor *a, opd_tensor *b) { return opd_matmul(a, b); }
static opd_tensor *positive(opd_tensor *a) { return opd_add(times(a, mh(a)), one(opd_size(a, -2))); }
/* The largest size, as a number. */
static double most(opd_tensor *t) {
    if (!t) { return NAN; }
    return opd_numel(t) ? opd_item_f64(opd_max(opd_abs(opd_to_dtype(t, opd_dtype_is_complex(opd_dtype(t)) ? OPD_COMPLEX128
                                                                    : OPD_FLOAT64)))) : 0;
}
/* |a - b| in units of n eps |b|. */
static double residual(opd_tensor *a, opd_tensor *b) {
    const bool single = opd_dtype(b) == OPD_COMPLEX64 || opd_dtype(b) == OPD_FLOAT32;
    const double size = most(b), n = opd_ndim(b) ? (double)opd_size(b, -1) : 1;
    return most(opd_sub(a, b)) / ((size > 0 ? size : 1) * (single ? 1.2e-7 : 2.3e-16) * (n > 8 ? n : 8));
}

//-- PyTorch's answers ---------------------------------------------------------------------------------------------------

static opd_tensor *beside(opd_tensor *x) {
    int64_t sizes[8];
    for (int i = 0; i < opd_ndim(x); i++) { sizes[i] = opd_size(x, i); }
    sizes[opd_ndim(x) - 1] = 2;
    return pairs(opd_ints_of(sizes, opd_ndim(x)), 99);
}
static int by_cholesky(opd_tensor *x, opd_tensor **out) {
    opd_tensor *a = positive(x), *b = beside(x);
    out[0] = opd_linalg_cholesky(a);
    out[1] = opd_linalg_cholesky_full(a, true);
    out[2] = opd_cholesky_solve(b, out[0]);
    out[3] = opd_cholesky_solve_full(b, out[1], true);
    out[4] = opd_cholesky_inverse(out[0]);
    out[5] = opd_cholesky_inverse_full(out[1], true);
    return 6;
}
static int by_lu(opd_tensor *x, opd_tensor **out) {
    opd_tensor *rets[3], *parts[3], *b = beside(x);
    if (opd_linalg_lu_factor(rets, x) || opd_linalg_lu(parts, x)) { return -1; }
    out[0] = rets[0];
    for (int k = 0; k < 4; k++) {
        const bool left = k < 2;
        out[1 + k] = opd_linalg_lu_solve_full(rets[0], rets[1], left ? b : opd_mT(b), left, k % 2 == 0);
    }
    out[5] = parts[1];
    out[6] = parts[2];
    return 7;
}
static int by_solve(opd_tensor *x, opd_tensor **out) {
    opd_tensor *b = beside(x);
    out[0] = opd_linalg_solve(x, b);
    out[1] = opd_linalg_solve_full(x, opd_mT(b), false);
    out[2] = opd_linalg_inv(x);
    out[3] = opd_linalg_det(x);
    if (opd_linalg_slogdet(out + 4, x)) { return -1; }
    out[6] = opd_exp(opd_logdet(x));
    out[7] = opd_linalg_solve_triangular_full(x, b, true, true, false);
    out[8] = opd_linalg_solve_triangular_full(x, opd_mT(b), false, false, false);
    return 9;
}
static int by_eigh(opd_tensor *x, opd_tensor **out) {
    opd_tensor *h = opd_add(x, mh(x)), *v[2];
    if (opd_linalg_eigh(v, h)) { return -1; }
    out[0] = v[0];
    out[1] = opd_abs(v[1]);
    out[2] = times(v[1], opd_mul(opd_unsqueeze(opd_exp(v[0]), -1), mh(v[1])));
    out[3] = opd_linalg_eigvalsh_full(h, "U");
    return 4;
}
static int by_svd(opd_tensor *x, opd_tensor **out) {
    opd_tensor *v[3];
    static const int64_t last[2] = {-2, -1};
    if (opd_linalg_svd_full(v, x, false, NULL)) { return -1; }
    out[0] = v[1];
    out[1] = opd_abs(v[0]);
    out[2] = opd_abs(v[2]);
    out[3] = times(v[0], v[2]);
    out[4] = opd_linalg_svdvals(x);
    out[5] = opd_linalg_matrix_norm_str_ord_full(x, "nuc", opd_ints_of(last, 2), false, OPD_NONE);
    out[6] = opd_linalg_matrix_norm(x, OPD_V(2));
    out[7] = opd_linalg_cond(x);
    return 8;
}
static int by_qr(opd_tensor *x, opd_tensor **out) {
    opd_tensor *rets[4], *b = beside(x);
    if (opd_linalg_qr(out, x)) { return -1; }
    out[2] = opd_linalg_pinv_atol_rtol_float(x);
    if (opd_linalg_lstsq_full(rets, x, b, OPD_NONE, "gelsd")) { return -1; }
    out[3] = rets[0];
    if (opd_linalg_lstsq_full(rets, x, b, OPD_NONE, "gels")) { return -1; }
    out[4] = rets[0];
    return 5;
}
static int by_eig(opd_tensor *x, opd_tensor **out) {
    static const int64_t row = -2, last = -1;
    opd_tensor *v[2];
    if (opd_linalg_eig(v, x)) { return -1; }
    opd_tensor *sums = opd_sum_dim(opd_pow_Tensor_Scalar(opd_abs(v[1]), OPD_V(4)), opd_ints_of(&row, 1), false);
    out[0] = opd_sum_dim(opd_mul(sums, opd_abs(v[0])), opd_ints_of(&last, 1), false);
    out[1] = times(opd_mul(v[1], opd_unsqueeze(opd_mul(v[0], v[0]), -2)), opd_linalg_inv(v[1]));
    out[2] = opd_sum_dim(opd_abs(opd_linalg_eigvals(x)), opd_ints_of(&last, 1), false);
    out[3] = opd_linalg_matrix_exp(x);
    out[4] = opd_linalg_matrix_power(x, 3);
    return 5;
}
typedef int (*matrix_function)(opd_tensor *x, opd_tensor **out);
static const struct { const char *name; matrix_function fn; } functions[] = {
    {"cholesky", by_cholesky}, {"lu", by_lu}, {"solve", by_solve}, {"eigh", by_eigh}, {"svd", by_svd}, {"qr", by_qr},
    {"eig", by_eig}};
enum { FUNCTIONS = (int)(sizeof functions / sizeof *functions) };

static opd_tensor *input_of(const char *kind, const int64_t *sizes, int ndim) {
    opd_tensor *x = pairs(opd_ints_of(sizes, ndim), 7 + ndim + (int)sizes[ndim - 1]);
    if (strcmp(kind, "ill") == 0) {
        opd_tensor *columns = opd_pow_Scalar(OPD_V(10.0), opd_neg(opd_to_dtype(opd_arange(OPD_V(3), OPD_INT64), OPD_FLOAT64)));
        opd_tensor *rows = opd_pow_Scalar(OPD_V(4.0), opd_to_dtype(opd_arange(OPD_V(3), OPD_INT64), OPD_FLOAT64));
        x = opd_mul(opd_mul(x, columns), opd_unsqueeze(rows, -1));
    }
    return x;
}
/* The numbers of t against those of the text, relative to the largest. */
static bool same_numbers(opd_tensor *t, char **text, const char *where) {
    if (!t) { return false; }
    t = opd_contiguous(opd_resolve_conj(t));
    if (opd_dtype_is_complex(opd_dtype(t))) { t = opd_contiguous(opd_view_as_real(t)); }
    double far = 0, size = 1;
    for (int64_t i = 0; i < opd_numel(t); i++) {
        const double want = strtod(*text, text), have = opd_data_f64(t)[i];
        if (!(fabs(want - have) <= far)) { far = fabs(want - have); }
        if (fabs(want) > size) { size = fabs(want); }
    }
    if (!(far <= 2e-8 * size)) { printf("%s: %g of %g\n", where, far, size); }
    return far <= 2e-8 * size;
}
static opd_tensor *weights_of(opd_tensor *t, int seed) {
    const opd_ints sizes = opd_ints_of(opd_sizes(t), opd_ndim(t));
    return opd_dtype_is_complex(opd_dtype(t)) ? pairs(sizes, seed) : noise(sizes, seed);
}
static bool check_line(char *line) {
    char name[32], kind[32], where[100];
    int ndim, used;
    int64_t sizes[8];
    opd_tensor *out[16], *weights[16], *grad;
    if (sscanf(line, "%31s %31s %d%n", name, kind, &ndim, &used) != 3) { return false; }
    char *at = line + used;
    for (int i = 0; i < ndim; i++) { sizes[i] = strtoll(at, &at, 10); }
    const int count = (int)strtol(at, &at, 10);
    opd_tensor *x = opd_tensor_set_requires_grad(input_of(kind, sizes, ndim), true);
    for (int i = 0; i < FUNCTIONS; i++) {
        if (strcmp(functions[i].name, name) == 0 && functions[i].fn(x, out) != count) { return false; }
    }
    bool right = true;
    for (int k = 0; k < count; k++) {
        (void)snprintf(where, sizeof where, "%s %s [%d dims, %d columns], result %d", name, kind, ndim, (int)sizes[ndim - 1], k);
        const int64_t numbers = strtoll(at, &at, 10);
        right = right && out[k] && opd_numel(out[k]) * (1 + opd_dtype_is_complex(opd_dtype(out[k]))) == numbers;
        right = same_numbers(out[k] ? opd_detach(out[k]) : NULL, &at, where) && right;
        if (!right) { return false; }
        weights[k] = weights_of(out[k], 50 + k);
    }
    opd_backward_options how;
    memset(&how, 0, sizeof how);
    how.grad_outputs = weights;
    (void)snprintf(where, sizeof where, "%s %s [%d dims, %d columns], gradient", name, kind, ndim, (int)sizes[ndim - 1]);
    return opd_autograd_grad(out, count, &x, 1, &how, &grad) == 0 && same_numbers(grad, &at, where);
}
TEST(functions_of_complex_matrices_are_pytorchs) {
    static char line[1 << 15];
    FILE *f = check_golden("complex_linalg.txt");
    CHECK_OR_RETURN(f != NULL);
    int lines = 0;
    while (fgets(line, sizeof line, f)) {
        OPD_SCOPE { CHECK(check_line(line)); }
        CHECK_OK();
        lines++;
    }
    (void)fclose(f);
    CHECK_INT(lines, 48);
}

//-- derivatives ---------------------------------------------------------------------------------------------------------

static int by_function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return (*(const matrix_function *)user)(in[0], out);
}
static void derivatives(matrix_function fn, opd_tensor *x, bool second) {
    opd_gradcheck_options how = opd_gradcheck_defaults();
    x = opd_tensor_set_requires_grad(x, true);
    how.check_forward_ad = how.check_batched_grad = true;
    CHECK(opd_gradcheck(by_function, &fn, &x, 1, &how) == 0);
    CHECK_OK();
    opd_error_clear();
    how.check_forward_ad = how.check_batched_grad = false;
    if (second) { CHECK(opd_gradgradcheck(by_function, &fn, &x, 1, NULL, &how) == 0); }
    CHECK_OK();
    opd_error_clear();
}
TEST(derivatives_of_functions_of_complex_matrices) {
    for (int i = 0; i < FUNCTIONS; i++) {
        OPD_SCOPE {
            derivatives(functions[i].fn, pairs(OPD_INTS(2, 2), 5), true);
            derivatives(functions[i].fn, pairs(OPD_INTS(2, 3, 3), 6), false);
        }
    }
    OPD_SCOPE {
        derivatives(by_svd, pairs(OPD_INTS(3, 2), 5), true);
        derivatives(by_svd, pairs(OPD_INTS(2, 3), 5), true);
        derivatives(by_qr, pairs(OPD_INTS(3, 2), 5), true);
        derivatives(by_qr, pairs(OPD_INTS(2, 3), 5), true);
    }
}

//-- sizes and kinds -----------------------------------------------------------------------------------------------------

static const int64_t sizes_tried[] = {0, 1, 2, 3, 7, 16, 33, 70};
enum { SIZES = (int)(sizeof sizes_tried / sizeof *sizes_tried) };
static opd_tensor *as(opd_tensor *t, int single) { return opd_to_dtype(t, single ? OPD_COMPLEX64 : OPD_COMPLEX128); }

TEST(factors_of_many_sizes) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const int64_t n = sizes_tried[k / 2];
            opd_tensor *x = pairs(OPD_INTS(n, n), k), *a = as(positive(x), k & 1), *b = as(pairs(OPD_INTS(n, 3), k), k & 1);
            opd_tensor *lower = opd_linalg_cholesky(a), *upper = opd_linalg_cholesky_full(a, true), *rets[3];
            CHECK(residual(times(lower, mh(lower)), a) < 8 && residual(times(mh(upper), upper), a) < 8);
            CHECK(residual(times(a, opd_cholesky_solve(b, lower)), b) < 1000);
            x = as(x, k & 1);
            CHECK(opd_linalg_lu(rets, x) == 0);
            CHECK(residual(times(rets[0], times(rets[1], rets[2])), x) < 8);
            CHECK(residual(times(x, opd_linalg_solve(x, b)), b) < 20000);
            CHECK(opd_linalg_qr(rets, x) == 0);
            CHECK(residual(times(rets[0], rets[1]), x) < 8);
            CHECK(residual(times(mh(rets[0]), rets[0]), as(one(n), k & 1)) < 8);
            for (int hermitian = 0; hermitian < 2; hermitian++) {
                opd_tensor *h = opd_add(x, hermitian ? mh(x) : opd_mT(x));
                CHECK(opd_linalg_ldl_factor_ex_full(rets, h, hermitian != 0, true) == 0);
                CHECK(residual(times(h, opd_linalg_ldl_solve_full(rets[0], rets[1], b, hermitian != 0)), b) < 20000);
            }
            CHECK_OK();
        }
    }
}
TEST(values_and_vectors_of_many_sizes) {
    for (int k = 0; k < 2 * SIZES; k++) {
        OPD_SCOPE {
            const int64_t n = sizes_tried[k / 2];
            opd_tensor *x = as(pairs(OPD_INTS(n, n + 2), k), k & 1), *v[3];
            for (int shape = 0; shape < 4; shape++) {
                opd_tensor *a = shape & 1 ? opd_mT(x) : x;
                CHECK(opd_linalg_svd_full(v, a, shape > 1, NULL) == 0);
                CHECK(residual(times(mh(v[0]), v[0]), as(one(opd_size(v[0], -1)), k & 1)) < 8);
                CHECK(residual(times(v[2], mh(v[2])), as(one(opd_size(v[2], -2)), k & 1)) < 8);
                opd_tensor *u = opd_narrow(v[0], -1, 0, n), *vh = opd_narrow(v[2], -2, 0, n);
                CHECK(residual(times(opd_mul(u, opd_unsqueeze(v[1], -2)), vh), a) < 8);
                CHECK(residual(opd_linalg_svdvals(a), v[1]) < 8);
            }
            x = as(pairs(OPD_INTS(n, n), k), k & 1);
            opd_tensor *h = opd_add(x, mh(x));
            CHECK(opd_linalg_eigh(v, h) == 0);
            CHECK(residual(times(h, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 16);
            CHECK(residual(times(mh(v[1]), v[1]), as(one(n), k & 1)) < 16);
            CHECK(opd_linalg_eigh_full(v, opd_triu(h, 0), "U") == 0);
            CHECK(residual(times(h, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 16);
            CHECK(opd_linalg_eig(v, x) == 0);
            CHECK(residual(times(x, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 40);
            CHECK_OK();
        }
    }
}
/* Triangles, blocks, multiples of one value, rows and columns of very different sizes. */
TEST(eigenvalues_of_special_matrices) {
    for (int k = 0; k < 6; k++) {
        OPD_SCOPE {
            opd_tensor *x = pairs(OPD_INTS(6, 6), k), *v[2];
            opd_tensor *powers = opd_pow_Scalar(OPD_V(1e4), opd_to_dtype(opd_arange(OPD_V(6), OPD_INT64), OPD_FLOAT64));
            x = k == 0 ? opd_triu(x, 0) : k == 1 ? opd_tril(x, 0) : k == 2 ? opd_mul_Scalar(one(6), OPD_V(3)) : k == 3
                ? opd_zeros_like(x) : k == 4 ? opd_mul(opd_mul(x, powers), opd_unsqueeze(opd_reciprocal(powers), -1))
                : opd_roll(one(6), OPD_INTS(1), OPD_INTS(0));
            CHECK(opd_linalg_eig(v, x) == 0);
            CHECK(residual(times(x, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 40);
            CHECK_OK();
        }
    }
}

/* Matrices of low rank: after the reduction, only rounding errors remain, and some of these are denormals. */
TEST(eigenvalues_of_matrices_of_low_rank) {
    static const int sizes[] = {5, 28, 51, 73, 87, 97, 108, 120, 128, 129, 152};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int n = sizes[k];
        OPD_SCOPE {
            opd_tensor *ones = opd_ones(OPD_INTS(n, n), OPD_FLOAT64), *half = pairs(OPD_INTS(n, 2), 3), *v[2];
            opd_tensor *low = times(half, mh(half)), *same = opd_complex(ones, opd_zeros_like(ones));
            CHECK(opd_linalg_eigh(v, ones) == 0);
            CHECK(residual(times(ones, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 16);
            CHECK(residual(times(mh(v[1]), v[1]), opd_eye(n, OPD_FLOAT64)) < 50);
            CHECK(opd_linalg_eigh(v, same) == 0);
            CHECK(residual(times(same, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 16);
            CHECK(residual(times(mh(v[1]), v[1]), opd_eye(n, OPD_COMPLEX128)) < 50);
            CHECK(opd_linalg_eigh(v, low) == 0);
            CHECK(residual(times(low, v[1]), opd_mul(v[1], opd_unsqueeze(v[0], -2))) < 16);
            CHECK_OK();
            opd_error_clear();
        }
    }
}

//-- results: dtypes, layout, out=, fakes, batches --------------------------------------------------------------------

TEST(results_have_the_right_dtypes_and_lie_by_columns) {
    OPD_SCOPE {
        opd_tensor *x = as(pairs(OPD_INTS(2, 3, 3), 4), 1), *rets[4], *fake;
        CHECK(opd__linalg_slogdet(rets, x) == 0);
        CHECK(opd_dtype(rets[0]) == OPD_COMPLEX64 && opd_dtype(rets[1]) == OPD_FLOAT32 && opd_dtype(rets[2]) == OPD_COMPLEX64);
        CHECK(opd_strides(opd_linalg_inv(x))[1] == 1 && opd_strides(rets[2])[1] == 1);
        CHECK(opd_linalg_svd(rets, x) == 0);
        CHECK(opd_dtype(rets[0]) == OPD_COMPLEX64 && opd_dtype(rets[1]) == OPD_FLOAT32);
        CHECK(opd_linalg_eigh(rets, x) == 0);
        CHECK(opd_dtype(rets[0]) == OPD_FLOAT32 && opd_dtype(rets[1]) == OPD_COMPLEX64);
        CHECK(opd_linalg_lstsq_full(rets, x, x, OPD_NONE, "gelsd") == 0);
        CHECK(opd_dtype(rets[0]) == OPD_COMPLEX64 && opd_dtype(rets[1]) == OPD_FLOAT32 && opd_dtype(rets[3]) == OPD_FLOAT32);
        fake = opd_to_device(x, opd_device_make(OPD_META, -1), OPD_COMPLEX64);
        CHECK(opd_linalg_eigh(rets, fake) == 0);
        CHECK(opd_dtype(rets[0]) == OPD_FLOAT32 && opd_dtype(rets[1]) == OPD_COMPLEX64 && opd_size(rets[1], 0) == 2);
        opd_tensor *out = opd_tensor_new(OPD_INTS(2, 3, 3), OPD_COMPLEX64), *all = opd_linalg_inv(x);
        static opd_op *op;
        opd_value args[2];
        args[0] = opd_value_tensor(x);
        args[1] = opd_value_tensor(out);
        CHECK(opd_call_op(OPD_OP(&op, "aten::linalg_inv.out"), args, 2) != NULL);
        CHECK(most(opd_sub(all, out)) <= 0);
        for (int i = 0; i < 2; i++) { CHECK(most(opd_sub(opd_linalg_inv(opd_select(x, 0, i)), opd_select(all, 0, i))) <= 0); }
        CHECK_OK();
    }
}

//-- refused calls -------------------------------------------------------------------------------------------------------

static opd_tensor *of_numbers(const double *numbers, int64_t n) {
    return opd_view_as_complex(opd_tensor_from(numbers, OPD_INTS(n, n, 2), OPD_FLOAT64));
}
TEST(matrices_without_factors) {
    OPD_SCOPE {
        static const double negative[] = {2, 0, 9, 9, 1, 1, 1, 0}, singular[] = {1, 1, 2, 2, 2, 2, 4, 4};
        opd_tensor *a = of_numbers(negative, 2), *s = of_numbers(singular, 2), *rets[4];
        CHECK(opd_linalg_cholesky(opd_sub(a, opd_mul_Scalar(one(2), OPD_V(0.5)))) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.cholesky: The factorization could not be completed because the input is not "
                    "positive-definite (the leading minor of order 2 is not positive-definite).");
        CHECK(opd_linalg_cholesky_ex(rets, opd_neg(one(3))) == 0 && opd_item_i64(rets[1]) == 1);
        CHECK(opd_linalg_inv(s) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed "
                    "because the input matrix is singular.");
        CHECK(opd_linalg_solve(s, s) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.solve: The solver failed because the input matrix is singular.");
        CHECK(most(opd_linalg_det(s)) <= 0);
        CHECK(opd_linalg_slogdet(rets, s) == 0 && most(rets[0]) <= 0 && isinf(opd_item_f64(rets[1])));
        CHECK(opd_linalg_matrix_rank_atol_rtol_float(s) && opd_item_i64(opd_linalg_matrix_rank_atol_rtol_float(s)) == 1);
        CHECK(isinf(opd_item_f64(opd_linalg_cond_full(s, OPD_V(1)))));
        opd_tensor_set_requires_grad(s, true);
        CHECK(opd_linalg_slogdet(rets, s) == 0 && opd_backward(rets[1]) == 0);
        CHECK_OK();
    }
}
/* NaN and infinities give an error or a result; the functions must end. */
TEST(what_is_not_finite_ends) {
    for (int k = 0; k < 3; k++) {
        for (int place = 0; place < 9; place += 4) {
            OPD_SCOPE {
                opd_tensor *x = pairs(OPD_INTS(3, 3), 3), *rets[4];
                double *parts = (double *)opd_data(x);
                parts[2 * place + (k == 1)] = k == 2 ? INFINITY : NAN;
                CHECK(opd_linalg_svd(rets, x) == -1);
                CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.svd: The algorithm failed to converge because the input matrix contained "
                            "non-finite values.");
                CHECK(opd_linalg_eig(rets, x) == -1);
                CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eig: input tensor should not contain infs or NaNs.");
                if (k != 1) {
                    CHECK(opd_linalg_eigh(rets, x) == -1);
                    CHECK(strstr(opd_error_message(), "linalg.eigh: The algorithm failed to converge") != NULL);
                    opd_error_clear();
                }
                (void)opd_linalg_qr(rets, x);
                (void)opd_linalg_lu_factor_ex(rets, x);
                (void)opd_linalg_det(x);
                (void)opd_linalg_matrix_exp(x);
                (void)opd_linalg_ldl_factor_ex(rets, x);
                (void)opd_linalg_ldl_factor_ex_full(rets, x, true, false);
                (void)opd_linalg_cholesky_ex(rets, x);
                CHECK_OK();
            }
        }
    }
    OPD_SCOPE {
        opd_tensor *huge = opd_mul_Scalar(pairs(OPD_INTS(4, 4), 3), OPD_V(1.7e308)), *tiny = opd_mul_Scalar(pairs(OPD_INTS(4, 4), 3), OPD_V(1e-308));
        opd_tensor *rets[3];
        CHECK(opd_linalg_svd(rets, huge) == 0 && opd_linalg_svd(rets, tiny) == 0);
        CHECK(opd_linalg_eig(rets, huge) == 0 && opd_linalg_eig(rets, tiny) == 0);
        CHECK(opd_linalg_eigh(rets, huge) == 0 && opd_linalg_eigh(rets, tiny) == 0);
        CHECK(opd_linalg_qr(rets, tiny) == 0);
        CHECK_OK();
    }
}
TEST(losses_that_depend_on_phases_are_refused) {
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(pairs(OPD_INTS(3, 3), 3), true), *v[3];
        CHECK(opd_linalg_eigh(v, opd_add(x, mh(x))) == 0 && opd_backward(opd_sum(opd_real(v[1]))) == -1);
        CHECK(strstr(opd_error_message(), "linalg_eigh_backward: The eigenvectors in the complex case") != NULL);
        opd_error_clear();
        CHECK(opd_linalg_svd(v, x) == 0 && opd_backward(opd_sum(opd_real(v[0]))) == -1);
        CHECK(strstr(opd_error_message(), "svd_backward: The singular vectors in the complex case") != NULL);
        opd_error_clear();
        CHECK(opd_linalg_svd(v, x) == 0 && opd_backward(opd_sum(opd_imag(v[2]))) == -1);
        opd_error_clear();
        CHECK(opd_linalg_svd(v, x) == 0 && opd_backward(opd_sum(opd_real(times(v[0], v[2])))) == 0);
        CHECK(opd_linalg_eig(v, x) == 0 && opd_backward(opd_sum(opd_imag(v[1]))) == -1);
        CHECK(strstr(opd_error_message(), "linalg_eig_backward: The eigenvectors in the complex case") != NULL);
        opd_error_clear();
        CHECK(opd_linalg_eig(v, x) == 0 && opd_backward(opd_sum(opd_abs(v[1]))) == 0);
        CHECK_OK();
    }
}
CHECK_MAIN()
