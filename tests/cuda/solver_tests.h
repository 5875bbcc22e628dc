/* Tests of factorizations by cuSOLVER.  Part of test_cuda.c.  OPD_TEST_CUSOLVER: it is there (1), or the text with which
   it fails. */

enum { SOLVER_LAYOUTS = 4 };
/* Matrices [2,3,rows,columns] in one of several layouts; positive definite ones if `definite`. */
static opd_tensor *solver_input(int64_t rows, int64_t columns, opd_scalar_type type, int layout, bool definite) {
    opd_tensor *x = opd_randn(OPD_INTS(2, 3, rows, columns), type);
    if (definite) { x = opd_add(opd_matmul(x, opd_conj(opd_transpose(x, -2, -1))), opd_mul_Scalar(opd_eye(rows, type), opd_value_double(2))); }
    if (layout == 1) { return opd_transpose(opd_contiguous(opd_transpose(x, -2, -1)), -2, -1); }
    if (layout == 2) { return opd_slice(opd_repeat_interleave_full(x, 2, opd_value_int(-1), OPD_NONE), -1, opd_value_int(0), opd_value_int(2 * columns), 2); }
    return layout == 3 ? opd_clone(opd_select(opd_select(x, 0, 1), 0, 2)) : x;
}
static const opd_scalar_type solver_types[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128};
enum { SOLVER_TYPES = 4 };
static bool is_wide(opd_scalar_type t) { return t == OPD_FLOAT64 || t == OPD_COMPLEX128; }
/* The sum of the squares of all absolute values. */
static opd_tensor *squares_of(opd_tensor *x) { return opd_sum(opd_square(x && opd_dtype_is_complex(opd_dtype(x)) ? opd_abs(x) : x)); }
/* Compares two gradients, as parts of the largest element. */
static void same_gradients(const char *name, opd_tensor *on, opd_tensor *host, double near) {
    const double most = host ? opd_item_f64(opd_max(opd_abs(host))) + 1e-30 : 1;
    complex_as_on_host(name, opd_div_Scalar(on, opd_value_double(most)), opd_div_Scalar(host, opd_value_double(most)), near);
}
static void same_strides(opd_tensor *got, opd_tensor *want) {
    CHECK(got && want && opd_ndim(got) == opd_ndim(want) && memcmp(opd_strides(got), opd_strides(want), (size_t)opd_ndim(want) * sizeof(int64_t)) == 0);
}
enum { SOLVERS = 15 };
/* Sets out[] to the results of an operator; returns their number. */
static int solved(int kind, opd_tensor *a, opd_tensor *b, opd_tensor **out) {
    opd_tensor *lu[3];
    const bool adjoint = kind == 5 || kind == 7, left = kind < 6;
    switch (kind) {
        case 0: case 1: return opd_linalg_cholesky_ex_full(out, a, kind == 1, true) ? 0 : 2;
        case 2: return opd_linalg_lu_factor_ex_full(out, a, true, true) ? 0 : 3;
        case 3: return opd_linalg_lu_factor_ex_full(out, opd_narrow(a, -2, 0, opd_size(a, -2) - 1), true, false) ? 0 : 3;
        case 4: case 5: case 6: case 7:
            if (opd_linalg_lu_factor_ex(lu, a)) { return 0; }
            out[0] = opd_linalg_lu_solve_full(lu[0], lu[1], left ? b : opd_transpose(b, -2, -1), left, adjoint);
            return out[0] ? 1 : 0;
        case 8: return opd__linalg_solve_ex_full(out, a, b, true, true) ? 0 : 4;
        case 9: return opd__linalg_solve_ex_full(out, a, opd_transpose(b, -2, -1), false, false) ? 0 : 4;
        case 10: return opd__linalg_solve_ex_full(out, a, opd_select(b, -1, 0), true, false) ? 0 : 4;
        case 11: return opd_linalg_inv_ex_full(out, a, true) ? 0 : 2;
        case 12: return opd__linalg_det(out, a) ? 0 : 3;
        case 13: return opd__linalg_slogdet(out, a) ? 0 : 4;
        default: return opd_linalg_lu_factor_ex_full(out, opd_narrow(a, -1, 0, opd_size(a, -1) - 1), true, true) ? 0 : 3;
    }
}
/* The same results as on the CPU, and no work on the CPU; the same derivatives. */
TEST(solvers_of_all_kinds) {
    const bool quick = getenv("OPD_TEST_CUSOLVER") != NULL;
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < SOLVERS * SOLVER_LAYOUTS * SOLVER_TYPES * 2; k++) {
        if (!quick && !check_visits((size_t)k, SOLVERS * SOLVER_LAYOUTS * SOLVER_TYPES * 2)) { continue; }
        OPD_SCOPE {
            const int kind = k % SOLVERS, layout = k / SOLVERS % SOLVER_LAYOUTS, n = k / SOLVERS / SOLVER_LAYOUTS / SOLVER_TYPES ? 2 : 7;
            const opd_scalar_type type = solver_types[k / SOLVERS / SOLVER_LAYOUTS % SOLVER_TYPES];
            opd_tensor *a = solver_input(n, n, type, layout, kind < 2), *b = solver_input(n, 3, type, layout, false), *out[2][4], *g[2];
            opd_tensor *on = to_gpu(a), *by = to_gpu(b);
            const double near = is_wide(type) ? 1e-8 : 5e-3;
            const int64_t before = opd_cpu_fallback_count();
            const int count = solved(kind, on, by, out[1]);
            if (quick) { CHECK_INT(opd_cpu_fallback_count(), before); }
            CHECK(count > 0 && solved(kind, a, b, out[0]) == count);
            char name[80];
            (void)snprintf(name, sizeof name, "solver %d, layout %d of %s", kind, layout, opd_dtype_name(type));
            for (int i = 0; i < count && opd_ok(); i++) {
                complex_as_on_host(name, opd_detach(out[1][i]), opd_detach(out[0][i]), near);
                same_strides(out[1][i], out[0][i]);
            }
            for (int at = 0; at < 2 && opd_ok(); at++) {
                const int64_t earlier = opd_cpu_fallback_count();
                opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(at ? on : a), true), *sum;
                if (!solved(kind, leaf, at ? by : b, out[at])) { break; }
                sum = squares_of(out[at][kind == 13 ? 1 : 0]);
                if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
                if (at) { same_gradients("its derivative", g[1], g[0], near); }
                if (at && quick) { CHECK_INT(opd_cpu_fallback_count(), earlier); }
            }
        }
    }
    CHECK_OK();
}
/* Without elements; singular matrices, with infos and with errors; tensors of other dtypes; written results. */
TEST(solvers_at_the_limits) {
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *out[2][4], *const zeros = opd_zeros(OPD_INTS(2, 3, 3), OPD_FLOAT32);
        opd_tensor *const bad = opd_cat(opd_tensors_of((opd_tensor *[]){opd_unsqueeze(opd_eye(3, OPD_FLOAT32), 0), opd_narrow(zeros, 0, 0, 1)}, 2), 0);
        for (int k = 0; k < SOLVERS; k++) {
            opd_tensor *const none = opd_zeros(k % 2 ? OPD_INTS(0, 3, 3) : OPD_INTS(2, 0, 0), OPD_FLOAT32), *const b = opd_zeros(k % 2 ? OPD_INTS(0, 3, 2) : OPD_INTS(2, 0, 2), OPD_FLOAT32);
            if (k == 3 || k == 14) { continue; }
            const int count = solved(k, none, b, out[0]);
            CHECK(count > 0 && solved(k, to_gpu(none), to_gpu(b), out[1]) == count);
            for (int i = 0; i < count && opd_ok(); i++) { as_on_host("without elements", out[1][i], out[0][i], 0); }
        }
        for (int k = 0; k < SOLVERS; k++) {       /* the same errors */
            char text[400];
            if (k == 2 || k > 7) {
                opd_tensor *const b = opd_ones(OPD_INTS(2, 3, 2), OPD_FLOAT32);
                CHECK((solved(k, bad, b, out[0]) == 0) == (k == 2 || k == 8 || k == 11 || k == 14));
                if (opd_ok()) { opd_error_clear(); continue; }
                (void)snprintf(text, sizeof text, "%s", opd_error_message());
                opd_error_clear();
                CHECK(solved(k, to_gpu(bad), to_gpu(b), out[1]) == 0);
            CHECK(strcmp(text, opd_error_message()) == 0);
                opd_error_clear();
            }
        }
        for (int i = 0; i < 2; i++) {
            opd_tensor *const x = i ? to_gpu(bad) : bad;
            CHECK_INT(opd_linalg_lu_factor_ex(out[i], x), 0);
            out[i][0] = out[i][2];
            CHECK(opd_linalg_cholesky_ex(out[i] + 1, x) == 0);
            out[i][1] = opd_linalg_det(x);
            CHECK(!opd_linalg_cholesky(x));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "(Batch element 1): The factorization could not be completed because the input is not positive-definite (the leading minor of order 1");
            CHECK(!opd_linalg_inv(opd_select(x, 0, 1)));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.inv: The diagonal element 1 is zero");
            CHECK(!opd_linalg_inv(opd_to_dtype(x, OPD_FLOAT16)));
            CHECK_ERROR(OPD_ERROR_DTYPE, "Low precision dtypes not supported");
            CHECK(!opd_linalg_inv(opd_narrow(x, -1, 0, 2)));
            CHECK_ERROR(OPD_ERROR_SHAPE, "must be batches of square matrices");
        }
        for (int i = 0; i < 3 && opd_ok(); i++) { as_on_host("info", out[1][i == 1 ? 2 : i == 2 ? 1 : 0], out[0][i == 1 ? 2 : i == 2 ? 1 : 0], 0); }
        /* pivots that are out of range are never used */
        const int32_t far[] = {1, 9, 3, 1, 2, -4};
        opd_tensor *const x = to_gpu(opd_add(bad, opd_eye(3, OPD_FLOAT32))), *const pivots = to_gpu(opd_tensor_from(far, OPD_INTS(2, 3), OPD_INT32));
        opd_tensor *const y = opd_linalg_lu_solve(x, pivots, x);
        if (y) { (void)opd_device_synchronize(gpu(-1)); }
        CHECK(strstr(opd_error_message(), "Pivots given to lu_solve must all be") != NULL);
        opd_error_clear();
    }
    CHECK_OK();
}
/* A capture of one fails with its name; the stream works afterwards. */
TEST(solvers_in_a_capture) {
    if (!there() || !getenv("OPD_TEST_CUSOLVER")) { SKIP("no cuSOLVER"); }
    OPD_SCOPE {
        opd_stream s = opd_stream_new(gpu(-1)), was;
        opd_tensor *const x = to_gpu(opd_eye(3, OPD_FLOAT32)), *out[2];
        (void)opd_stream_wait(s, opd_stream_current(gpu(-1)));
        was = opd_stream_set(s);
        CHECK_INT(opd_linalg_inv_ex(out, x), 0);
        CHECK_INT(opd_capture_begin(s), 0);
        CHECK(opd_linalg_inv_ex(out, x) != 0);
        CHECK_ERROR(OPD_ERROR_KERNEL, "aten::linalg_inv_ex cannot be captured");
        CHECK(!opd_capture_end(s));
        opd_error_clear();
        CHECK_INT(opd_linalg_inv_ex(out, x), 0);
        as_on_host("after a capture", out[0], opd_eye(3, OPD_FLOAT32), 0);
        opd_stream_set(was);
        opd_stream_free(s);
    }
    CHECK_OK();
}
/* Products of factors, whose signs are free, give the matrix back; what is unique is as on the CPU. */
static opd_tensor *adjoint_of(opd_tensor *x) { return opd_conj(opd_transpose(x, -2, -1)); }
static void orthonormal(opd_tensor *q, double near) {
    opd_tensor *const x = to_host(q), *const product = opd_matmul(adjoint_of(x), x);
    complex_as_on_host("orthogonal columns", to_gpu(product), opd_expand(opd_eye(opd_size(x, -1), opd_dtype(x)), opd_ints_of(opd_sizes(product), opd_ndim(x))), near);
}
static opd_tensor *of_columns(opd_tensor *u, opd_tensor *s, opd_tensor *vh) {
    const int64_t n = opd_size(s, -1);
    return opd_matmul(opd_mul(opd_narrow(u, -1, 0, n), opd_unsqueeze(s, -2)), opd_narrow(vh, -2, 0, n));
}
static void like_on_host(opd_tensor *got, opd_tensor *want) {
    CHECK(got && want && opd_dtype(got) == opd_dtype(want) && same_shape(got, want) && opd_tensor_device(got).type == OPD_CUDA);
    CHECK(got && want && memcmp(opd_strides(got), opd_strides(want), (size_t)opd_ndim(want) * sizeof(int64_t)) == 0);
}
/* kind: QR, reduced, complete or only R; eigenvalues with vectors of L and U, or without vectors; singular values with
   few and all vectors, or without vectors. */
static int factored(int kind, opd_tensor *x, opd_tensor **out) {
    static const char *const modes[] = {"reduced", "complete", "r"};
    if (kind < 3) { return opd_linalg_qr_full(out, x, modes[kind]) ? 0 : 2; }
    if (kind < 6) { return opd__linalg_eigh_full(out, x, kind == 4 ? "U" : "L", kind != 5) ? 0 : 2; }
    return opd__linalg_svd_full(out, x, kind == 7, kind != 8, NULL) ? 0 : 3;
}
TEST(solvers_with_free_signs) {
    static const int64_t shapes[][2] = {{5, 5}, {6, 3}, {3, 6}, {1, 4}, {4, 1}};
    const bool quick = getenv("OPD_TEST_CUSOLVER") != NULL;
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 9 * 5 * SOLVER_LAYOUTS * 2; k++) {
        if (!quick && !check_visits((size_t)k, 9 * 5 * SOLVER_LAYOUTS * 2)) { continue; }
        OPD_SCOPE {
            const int kind = k % 9, layout = k / 45 % SOLVER_LAYOUTS, pair = k / 45 / SOLVER_LAYOUTS;
            const int64_t rows = shapes[k / 9 % 5][0], columns = kind > 2 && kind < 6 ? rows : shapes[k / 9 % 5][1];
            const opd_scalar_type type = solver_types[2 * pair + (kind + layout) % 2];
            const double near = is_wide(type) ? 1e-10 : 1e-4;
            opd_tensor *const a = solver_input(rows, columns, type, layout, false), *const on = to_gpu(a), *out[2][3], *g[2], *product;
            const int64_t before = opd_cpu_fallback_count();
            const int count = factored(kind, on, out[1]);
            if (quick) { CHECK_INT(opd_cpu_fallback_count(), before); }
            CHECK(count > 0 && factored(kind, a, out[0]) == count);
            for (int i = 0; i < count && opd_ok(); i++) { like_on_host(out[1][i], out[0][i]); }
            if (!opd_ok()) { break; }
            const int values = kind < 3 ? 1 : kind < 6 ? 0 : 1;
            as_on_host("values", opd_abs(out[1][values]), opd_abs(out[0][values]), near);       /* of R, too */
            if (kind < 2) {
                opd_tensor *const r = to_host(out[1][1]);
                complex_as_on_host("Q R", opd_matmul(out[1][0], out[1][1]), a, near);
                complex_as_on_host("R", out[1][1], opd_triu(r, 0), 0);
                orthonormal(out[1][0], near);
            } else if (kind == 3 || kind == 4) {
                opd_tensor *const half = kind == 3 ? opd_tril(a, -1) : opd_triu(a, 1);
                opd_tensor *const diagonal = opd_diagonal_full(a, 0, -2, -1);
                opd_tensor *const whole = opd_add(opd_add(half, adjoint_of(half)), opd_diag_embed(pair ? opd_real(diagonal) : diagonal));
                complex_as_on_host("V L V^H", of_columns(out[1][1], out[1][0], adjoint_of(out[1][1])), whole, near);
                orthonormal(out[1][1], near);
            } else if (kind == 6 || kind == 7) {
                complex_as_on_host("U S V^H", of_columns(out[1][0], out[1][1], out[1][2]), a, near);
                orthonormal(out[1][0], near);
                orthonormal(adjoint_of(out[1][2]), near);
            }
            for (int at = 0; at < 2 && opd_ok() && kind != 2 && (kind != 1 || rows <= columns); at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(at ? on : a), true), *sum;
                if (!factored(kind, leaf, out[at])) { break; }
                product = opd_square(pair && kind < 2 ? opd_abs(out[at][values]) : out[at][values]);
                sum = opd_sum(opd_mul(product, opd_square(product)));
                if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
                if (at) { same_gradients("its derivative", g[1], g[0], 10 * near); }
                if (at && quick) { CHECK_INT(opd_cpu_fallback_count(), before); }
            }
        }
    }
    CHECK_OK();
}
/* Sums of powers of the eigenvalues, which do not depend on their order. */
static opd_tensor *powers_of(opd_tensor *w) {
    opd_tensor *list[4];
    for (int i = 0; i < 4; i++) { list[i] = i == 3 ? opd_sum_dim(opd_abs(w), OPD_INTS(-1), false) : opd_abs(opd_sum_dim(i ? opd_mul(w, i == 2 ? opd_mul(w, w) : w) : w, OPD_INTS(-1), false)); }
    return opd_stack(opd_tensors_of(list, 4), 0);
}
/* A V = V L, with vectors of length 1, and the eigenvalues and derivatives of the CPU. */
TEST(solvers_of_eigenvalues) {
    static const int64_t sizes[] = {1, 2, 5, 66};
    const bool quick = getenv("OPD_TEST_CUSOLVER") != NULL;
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < SOLVER_LAYOUTS * SOLVER_TYPES * 4; k++) {
        if (!quick && !check_visits((size_t)k, SOLVER_LAYOUTS * SOLVER_TYPES * 4)) { continue; }
        OPD_SCOPE {
            const int layout = k % SOLVER_LAYOUTS;
            const int64_t n = sizes[k / SOLVER_LAYOUTS / SOLVER_TYPES];
            const opd_scalar_type type = solver_types[k / SOLVER_LAYOUTS % SOLVER_TYPES];
            opd_tensor *const a = solver_input(n, n, type, layout, false), *const on = to_gpu(a), *out[2][2], *values, *g[2], *sum;
            const double near = is_wide(type) ? 1e-8 : 5e-3;
            const bool there_ = quick && (layout == 3 || n > 60), old = getenv("OPD_TEST_OLD_CUSOLVER") != NULL;
            const int64_t before = opd_cpu_fallback_count();
            CHECK_INT(opd_linalg_eig(out[1], on), 0);
            values = opd_linalg_eigvals(on);
            if (quick) { CHECK_INT(opd_cpu_fallback_count() - before, there_ && !old ? 0 : 2); }
            CHECK_INT(opd_linalg_eig(out[0], a), 0);
            for (int i = 0; i < 2 && opd_ok(); i++) { like_on_host(out[1][i], out[0][i]); }
            if (!opd_ok()) { break; }
            as_on_host("eigenvalues", powers_of(values), powers_of(out[0][0]), near * 50 * (double)(n * n));
            as_on_host("eigenvalues with vectors", powers_of(out[1][0]), powers_of(out[0][0]), near * 50 * (double)(n * n));
            opd_tensor *const wide = opd_to_dtype(to_host(on), opd_dtype(out[1][1])), *const v = to_host(out[1][1]);
            complex_as_on_host("V L", opd_mul(out[1][1], opd_unsqueeze(out[1][0], -2)), opd_matmul(wide, v), near * (double)n);
            opd_tensor *const squares = opd_sum_dim(opd_square(opd_abs(v)), OPD_INTS(-2), false);
            as_on_host("lengths", to_gpu(squares), opd_ones_like(squares), near);
            for (int at = 0; at < 2 && opd_ok(); at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(at ? on : a), true), *pair[2];
                if (opd_linalg_eig(pair, leaf)) { break; }
                sum = opd_sum(opd_mul(opd_square(opd_abs(pair[0])), opd_add_Scalar(opd_abs(pair[0]), opd_value_int(1))));
                if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
                if (at && n < 60) { same_gradients("its derivative", g[1], g[0], 100 * near); }
            }
        }
    }
    OPD_SCOPE {
        opd_tensor *out[2][2], *const nan = opd_full(OPD_INTS(2, 70, 70), opd_value_double(NAN), OPD_FLOAT32), *none = opd_zeros(OPD_INTS(0, 3, 3), OPD_FLOAT64);
        for (int i = 0; i < 2; i++) {
            CHECK(opd_linalg_eig(out[1], to_gpu(i ? nan : opd_select(nan, 0, 0))) != 0);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eig: input tensor should not contain infs or NaNs.");
        }
        CHECK(opd_linalg_eig(out[1], to_gpu(opd_zeros(OPD_INTS(3, 4), OPD_FLOAT32))) != 0);
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.eig: A must be batches of square matrices");
        CHECK(opd_linalg_eig(out[0], none) == 0 && opd_linalg_eig(out[1], to_gpu(none)) == 0);
        for (int i = 0; i < 2 && opd_ok(); i++) { like_on_host(out[1][i], out[0][i]); }
        /* no distance between eigenvalues, and no vectors but one */
        opd_tensor *const defective = opd_triu(opd_ones(OPD_INTS(5, 5), OPD_FLOAT64), 0);
        CHECK_INT(opd_linalg_eig(out[1], to_gpu(defective)), 0);
        as_on_host("equal eigenvalues", opd_real(out[1][0]), opd_ones(OPD_INTS(5), OPD_FLOAT64), 1e-2);
        as_on_host("zero", opd_abs(opd_linalg_eigvals(to_gpu(opd_zeros(OPD_INTS(4, 4), OPD_FLOAT32)))), opd_zeros(OPD_INTS(4), OPD_FLOAT32), 0);
    }
    CHECK_OK();
}
/* L D L^T or L D L^H with the factors and pivots of the CPU; solutions, and their derivatives; one side for many matrices. */
static opd_tensor *mirrored(opd_tensor *x, int layout, bool hermitian, bool definite) {
    x = opd_add(x, hermitian ? adjoint_of(x) : opd_transpose(x, -2, -1));
    if (definite) { x = opd_add(x, opd_mul_Scalar(opd_eye(opd_size(x, -1), opd_dtype(x)), opd_value_int(90))); }
    return layout == 1 ? opd_transpose(opd_contiguous(opd_transpose(x, -2, -1)), -2, -1) : x;
}
TEST(solvers_of_symmetric_matrices) {
    static const int64_t sizes[] = {1, 2, 3, 9, 40, 300};
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (int k = 0; k < SOLVER_LAYOUTS * SOLVER_TYPES * 6 * 4; k++) {
        const int layout = k % SOLVER_LAYOUTS, form = k / SOLVER_LAYOUTS % 4;
        const int64_t n = sizes[k / SOLVER_LAYOUTS / 4 % 6];
        const opd_scalar_type type = solver_types[k / SOLVER_LAYOUTS / 4 / 6];
        if (n == 300 && (layout < 3 || form)) { continue; }
        OPD_SCOPE {
            const bool hermitian = form % 2, wide = is_wide(type);
            const double near = wide ? 1e-7 : 0.05;
            opd_tensor *const a = mirrored(solver_input(n, n, type, layout, false), layout, hermitian, form > 1), *const on = to_gpu(a), *out[2][3];
            opd_tensor *const b = solver_input(n, 3, type, layout, false), *g[2], *x[2];
            (void)opd_fill_(opd_select(opd_diagonal_full(a, 0, -2, -1), -1, 0), opd_value_int(0));          /* a block of two rows, unless there is one */
            (void)opd_copy_(on, a);
            CHECK_INT(opd_linalg_ldl_factor_ex_full(out[1], on, hermitian, false), 0);
            CHECK_INT(opd_linalg_ldl_factor_ex_full(out[0], a, hermitian, false), 0);
            for (int i = 0; i < 3 && opd_ok(); i++) { like_on_host(out[1][i], out[0][i]); }
            if (!opd_ok()) { break; }
            const bool same = opd_equal(to_host(out[1][1]), out[0][1]);
            /* rounding in another dtype may choose another of two pivots */
            if (!same && wide) { CHECK(!"pivots"); }
            CHECK(opd_equal(to_host(out[1][2]), out[0][2]));
            if (same && n < 300) { complex_as_on_host("LD", out[1][0], out[0][0], near); }
            if (n == 1) { continue; }             /* the only number is 0 */
            for (int at = 0; at < 2; at++) {
                opd_tensor *const right = opd_tensor_set_requires_grad(opd_detach(at ? to_gpu(b) : b), true), *leaf = right, *sum;
                x[at] = opd_linalg_ldl_solve_full(out[at][0], out[at][1], right, hermitian);
                sum = squares_of(x[at]);
                g[at] = NULL;
                (void)opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at]);
            }
            opd_tensor *const back = opd_matmul(on, opd_detach(x[1]));
            if (wide) { complex_as_on_host("A x", back, b, n == 300 ? 1e-4 : 1e-6); same_gradients("its derivative", g[1], g[0], 1e-5); }
            CHECK(x[0] && x[1] && opd_ndim(x[0]) == opd_ndim(x[1]));
            same_strides(x[1], x[0]);
        }
    }
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
TEST(solvers_of_symmetric_matrices_at_the_limits) {
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *const a = opd_linalg_ldl_solve(opd_eye(3, OPD_FLOAT64), opd_tensor_from((int32_t[]){1, 2, 3}, OPD_INTS(3), OPD_INT32), opd_ones(OPD_INTS(2, 3, 2), OPD_FLOAT64));
        opd_tensor *out[2][3], *const zero = opd_zeros(OPD_INTS(2, 3, 3), OPD_FLOAT64), *const nan = opd_full(OPD_INTS(5, 5), opd_value_double(NAN), OPD_FLOAT32);
        opd_tensor *const some[] = {opd_zeros(OPD_INTS(0, 3, 3), OPD_FLOAT32), opd_zeros(OPD_INTS(2, 0, 0), OPD_COMPLEX64), zero, opd_triu(opd_ones(OPD_INTS(4, 4), OPD_FLOAT32), 1)};
        for (int i = 0; i < 4; i++) {
            for (int at = 0; at < 2; at++) { CHECK_INT(opd_linalg_ldl_factor_ex_full(out[at], at ? to_gpu(some[i]) : some[i], i == 1, false), 0); }
            for (int r = 0; r < 3 && opd_ok(); r++) { like_on_host(out[1][r], out[0][r]); complex_as_on_host("of zeros", opd_to_dtype(out[1][r], OPD_FLOAT64), opd_to_dtype(out[0][r], OPD_FLOAT64), 0); }
        }
        CHECK_INT(opd_linalg_ldl_factor_ex_full(out[1], to_gpu(nan), false, false), 0);         /* ends */
        CHECK(opd_linalg_ldl_factor_ex_full(out[1], to_gpu(zero), false, true) != 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.ldl_factor_ex: (Batch element 0):");
        CHECK(opd_linalg_ldl_factor_ex_full(out[1], to_gpu(opd_zeros(OPD_INTS(2, 3), OPD_FLOAT32)), false, true) != 0);
        CHECK_ERROR(OPD_ERROR_SHAPE, "linalg.ldl_factor_ex: A must be batches of square matrices");
        CHECK(!opd_linalg_ldl_solve(to_gpu(opd_eye(3, OPD_FLOAT64)), to_gpu(opd_ones(OPD_INTS(2), OPD_INT32)), to_gpu(opd_ones(OPD_INTS(3, 2), OPD_FLOAT64))));
        CHECK_ERROR(OPD_ERROR_SHAPE, "pivots");
        CHECK(!opd_linalg_ldl_solve(to_gpu(opd_eye(3, OPD_FLOAT64)), to_gpu(opd_ones(OPD_INTS(3), OPD_INT32)), to_gpu(opd_ones(OPD_INTS(3, 2), OPD_FLOAT32))));
        CHECK_ERROR(OPD_ERROR_DTYPE, "");
        /* one matrix for many right sides, no sides, and pivots of int64 */
        as_on_host("expanded", opd_linalg_ldl_solve(to_gpu(opd_eye(3, OPD_FLOAT64)), to_gpu(opd_tensor_from((int64_t[]){1, 2, 3}, OPD_INTS(3), OPD_INT64)),
                                                    to_gpu(opd_ones(OPD_INTS(2, 3, 2), OPD_FLOAT64))), a, 0);
        opd_tensor *const no_side = opd_linalg_ldl_solve(to_gpu(opd_eye(3, OPD_FLOAT64)), to_gpu(opd_ones(OPD_INTS(3), OPD_INT32)), to_gpu(opd_ones(OPD_INTS(3, 0), OPD_FLOAT64)));
        CHECK(no_side && opd_numel(no_side) == 0);
        static const int32_t wrong[][3] = {{1, 1, 3}, {1, 2, 4}, {1, 2, 0}, {1, 2, -3}, {-2, -3, 3}, {-2147483647 - 1, -2147483647 - 1, 3}, {2147483647, 2, 3}};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            opd_tensor *const pivots = opd_tensor_from((void *)(uintptr_t)wrong[i], OPD_INTS(3), OPD_INT32), *const b = opd_ones(OPD_INTS(3, 2), OPD_FLOAT64);
            CHECK(!opd_linalg_ldl_solve(opd_eye(3, OPD_FLOAT64), pivots, b));
            opd_error_clear();
            opd_tensor *const x = opd_linalg_ldl_solve(to_gpu(opd_eye(3, OPD_FLOAT64)), to_gpu(pivots), to_gpu(b));
            CHECK(!x || opd_device_synchronize(gpu(-1)) != 0);
            CHECK(strstr(opd_error_message(), "aten::linalg_ldl_solve on CUDA: a pivot is not valid"));
            opd_error_clear();
        }
    }
    CHECK_OK();
}
/* Errors of arguments, matrices that are not finite, and infos of algorithms that do not converge. */
TEST(solvers_with_free_signs_at_the_limits) {
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *out[2][3], *const nan = opd_full(OPD_INTS(2, 2, 2), opd_value_double(NAN), OPD_FLOAT32);
        for (int k = 0; k < 9; k++) {
            opd_tensor *const none = opd_zeros(k % 2 ? OPD_INTS(0, 3, 3) : OPD_INTS(2, 0, 0), OPD_FLOAT32);
            const int count = factored(k, none, out[0]);
            CHECK(count > 0 && factored(k, to_gpu(none), out[1]) == count);
            for (int i = 0; i < count && opd_ok(); i++) { like_on_host(out[1][i], out[0][i]); }
        }
        CHECK(factored(1, opd_zeros(OPD_INTS(3, 0), OPD_FLOAT32), out[0]) && factored(1, to_gpu(opd_zeros(OPD_INTS(3, 0), OPD_FLOAT32)), out[1]));
        as_on_host("Q without columns of A", out[1][0], out[0][0], 0);
        CHECK(opd__linalg_svd(out[1], to_gpu(nan)) != 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "(Batch element 0): The algorithm failed to converge because the input matrix contained non-finite values");
        opd_tensor *const half = opd_clone(opd_full(OPD_INTS(2, 4, 4), opd_value_double(2), OPD_FLOAT32));
        (void)opd_fill_(opd_select(opd_select(half, 1, 0), 1, 3), opd_value_double(INFINITY));          /* above the diagonal */
        CHECK_INT(opd__linalg_eigh_full(out[0], half, "L", true), 0);
        CHECK_INT(opd__linalg_eigh_full(out[1], to_gpu(half), "L", true), 0);
        as_on_host("the triangle that is read", out[1][0], out[0][0], 1e-5);
        for (int at = 0; at < 2; at++) {
            CHECK(opd__linalg_eigh_full(out[at], at ? to_gpu(half) : half, "U", true) != 0);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "(Batch element 0): The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
                        "repeated eigenvalues (error code: 3)");
        }
        CHECK(opd_linalg_qr_full(out[1], to_gpu(nan), "all") != 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "qr received unrecognized mode 'all'");
        CHECK(opd__linalg_eigh_full(out[1], to_gpu(nan), "X", true) != 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected UPLO argument to be 'L' or 'U'");
        CHECK(opd__linalg_svd_full(out[1], to_gpu(nan), true, true, "gesvd") != 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "driver");
    }
    CHECK_OK();
}
/* Many small matrices are one call; few large ones are computed one after the other, with the same results. */
TEST(solvers_of_many_matrices) {
    if (!there() || !getenv("OPD_TEST_CUSOLVER")) { SKIP("no cuSOLVER"); }
    void *const library = dlopen(getenv("OPD_CUSOLVER"), RTLD_NOW);
    long (*calls)(void) = NULL;
    void *const found = library ? dlsym(library, "opd_emu_cusolver_calls") : NULL;
    memcpy(&calls, &found, sizeof found);
    for (int k = 0; calls && k < SOLVER_TYPES; k++) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(50, 4, 4), solver_types[k]), *out[2][4];
            x = opd_add(opd_matmul(x, adjoint_of(x)), opd_eye(4, solver_types[k]));
            opd_tensor *const y = to_gpu(x);
            const double near = is_wide(solver_types[k]) ? 1e-8 : 5e-3;
            const long before = calls();
            CHECK_INT(opd_linalg_cholesky_ex(out[1], y), 0);
            CHECK_INT(calls() - before, 1);
            CHECK_INT(opd__linalg_eigh(out[1] + 1, y), 0);
            CHECK_INT(calls() - before, 3);
            CHECK_INT(opd__linalg_svd(out[1] + 1, y), 0);
            CHECK(calls() - before <= 7);
            out[1][3] = opd_linalg_solve(y, opd_narrow(y, 2, 0, 1));
            CHECK(calls() - before <= 7);
            CHECK_INT(opd_linalg_cholesky_ex(out[0], x), 0);
            CHECK_INT(opd__linalg_svd(out[0] + 1, x), 0);
            complex_as_on_host("many Cholesky factors", out[1][0], out[0][0], near);
            complex_as_on_host("many singular values", out[1][2], out[0][2], near);
            complex_as_on_host("many solutions", out[1][3], opd_linalg_solve(x, opd_narrow(x, 2, 0, 1)), near);
        }
    }
    CHECK(calls != NULL);
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(2, 513, 513), OPD_FLOAT64), *out[2];
        const long before = calls();
        x = opd_add(x, opd_mul_Scalar(opd_eye(513, OPD_FLOAT64), opd_value_double(100)));
        opd_tensor *const y = to_gpu(x), *const b = opd_narrow(x, 2, 0, 2);
        as_on_host("two large matrices", opd_linalg_solve(y, to_gpu(b)), opd_linalg_solve(x, b), 1e-9);
        CHECK_INT(calls() - before, 2 * 2 + 1);
        x = opd_add(x, opd_transpose(x, 1, 2));
        CHECK_INT(opd_linalg_cholesky_ex(out, to_gpu(x)), 0);
        CHECK_INT(calls() - before, 2 * 2 + 1 + 2 + 1);
        as_on_host("two large factors", out[0], opd_linalg_cholesky(x), 1e-9);
    }
    if (library) { dlclose(library); }
    CHECK_OK();
}
/* Derivatives of complex vectors stay on the GPU; if the loss depends on their phase, a later wait fails. */
TEST(solvers_with_a_phase) {
    static const char *const texts[] = {"linalg_eigh_backward: The eigenvectors in the complex case", "svd_backward: The singular vectors in the complex case"};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4; k++) {
        OPD_SCOPE {
            const bool singular = k & 1, wrong = k & 2;
            opd_tensor *const x = opd_randn(OPD_INTS(2, 4, 4), OPD_COMPLEX128), *g[2], *out[3];
            opd_tensor *const weights = opd_randn(OPD_INTS(2, 4, 4), OPD_FLOAT64), *const a = opd_add(x, adjoint_of(x));
            const int64_t before = opd_cpu_fallback_count();
            for (int at = 0; at < 2; at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(at ? to_gpu(a) : opd_detach(a), true), *sum;
                if (singular ? opd__linalg_svd(out, leaf) : opd__linalg_eigh(out, leaf)) { break; }
                opd_tensor *const vectors = out[singular ? 0 : 1];
                sum = opd_sum(opd_mul(wrong ? opd_real(vectors) : opd_square(opd_abs(vectors)), at ? to_gpu(weights) : weights));
                const int rc = opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at]);
                if (wrong) {
                    if (!rc && at) { (void)opd_device_synchronize(gpu(-1)); }
                    CHECK(strstr(opd_error_message(), texts[singular]) != NULL);
                    opd_error_clear();
                }
            }
            if (getenv("OPD_TEST_CUSOLVER")) { CHECK_INT(opd_cpu_fallback_count(), before); }
            if (!wrong && opd_ok()) { same_gradients("of vectors", g[1], g[0], 1e-6); }
        }
    }
    CHECK_OK();
}
/* Second derivatives of determinants, also of singular matrices, are as on the CPU. */
TEST(determinants_twice) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 3; k++) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(2, 3, 3), OPD_FLOAT64), *g[2];
            if (k) { (void)opd_copy_(opd_select(x, 1, 2), opd_mul_Scalar(opd_select(x, 1, 0), opd_value_int(k))); }      /* of rank 2 */
            for (int at = 0; at < 2 && opd_ok(); at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(at ? to_gpu(x) : opd_detach(x), true), *sum = opd_sum(opd_linalg_det(leaf));
                opd_backward_options options;
                memset(&options, 0, sizeof options);
                options.create_graph = true;
                if (opd_autograd_grad(&sum, 1, &leaf, 1, &options, &g[at])) { break; }
                sum = squares_of(g[at]);
                if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
            }
            if (opd_ok()) { same_gradients("of a gradient", g[1], g[0], 1e-9); }
        }
    }
    CHECK_OK();
}
/* Triangular matrices whose inverses are of about their size, of sizes n, in one of several layouts. */
static opd_tensor *triangular_input(opd_ints sizes, opd_scalar_type type, int layout, bool ones) {
    const int64_t n = sizes.data[sizes.n - 1];
    opd_tensor *x = opd_mul_Scalar(opd_randn(sizes, type), opd_value_double(1.0 / (double)(n + 1)));
    if (!ones) { x = opd_add(x, opd_mul_Scalar(opd_eye(n, type), opd_value_double(1.5))); }
    if (layout == 1) { return opd_transpose(opd_contiguous(opd_transpose(x, -2, -1)), -2, -1); }
    if (layout == 2) { return opd_slice(opd_repeat_interleave_full(x, 2, opd_value_int(-1), OPD_NONE), -1, opd_value_int(0), opd_value_int(2 * n), 2); }
    return layout == 3 && sizes.n > 2 ? opd_transpose(opd_contiguous(opd_transpose(x, 0, 1)), 0, 1) : x;
}
enum { TRIANGULAR_KINDS = 16 };
/* kind: bits for upper, left, unit and, below 8, linalg_solve_triangular; above, triangular_solve, and Cholesky. */
static opd_tensor *triangular_solved(int kind, opd_tensor *a, opd_tensor *b) {
    opd_tensor *out[2];
    const bool upper = kind & 1, left = kind & 2, unit = kind & 4;
    if (kind < 8) { return opd_linalg_solve_triangular_full(a, left ? b : opd_transpose(b, -2, -1), upper, left, unit); }
    if (kind < 14) { return opd_triangular_solve_full(out, b, a, upper, left, unit) ? NULL : out[0]; }
    return opd_cholesky_solve_full(b, a, upper);
}
TEST(triangular_equations) {
    /* sizes of a and b: the same batch, others, one matrix for many, many for one, larger ones */
    static const int64_t sizes[][8] = {{2, 3, 5, 5, 2, 3, 5, 2}, {2, 1, 4, 4, 1, 3, 4, 3}, {1, 1, 6, 6, 3, 4, 6, 2}, {3, 2, 3, 3, 1, 1, 3, 1},
                                       {1, 1, 1, 1, 1, 1, 1, 4}, {1, 3, 66, 66, 1, 3, 66, 2}, {3, 3, 65, 65, 3, 3, 65, 1}};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 7 * TRIANGULAR_KINDS * SOLVER_LAYOUTS * SOLVER_TYPES; k++) {
        const int shape = k % 7, kind = k / 7 % TRIANGULAR_KINDS, layout = k / 7 / TRIANGULAR_KINDS % SOLVER_LAYOUTS;
        if (!check_visits((size_t)k, 7 * TRIANGULAR_KINDS * SOLVER_LAYOUTS * SOLVER_TYPES) || (shape > 4 && (layout > 1 || k % 3))) { continue; }
        OPD_SCOPE {
            const int64_t *const n = sizes[shape];
            const opd_scalar_type type = solver_types[k / 7 / TRIANGULAR_KINDS / SOLVER_LAYOUTS];
            const double near = is_wide(type) ? 1e-10 : 1e-4;
            opd_tensor *a = triangular_input(shape == 2 && kind % 2 ? OPD_INTS(n[2], n[3]) : OPD_INTS(n[0], n[1], n[2], n[3]), type, layout, kind & 4 && kind < 14);
            opd_tensor *b = solver_input(n[6], n[7], type, (layout + kind) % 3, false), *g[2][2], *leaves[2][2], *out[2];
            b = opd_contiguous(opd_expand(opd_narrow(opd_narrow(b, 0, 0, 1), 1, 0, 1), OPD_INTS(n[4], n[5], n[6], n[7])));
            b = opd_add(b, opd_randn(OPD_INTS(n[4], n[5], n[6], n[7]), type));
            const int64_t before = opd_cpu_fallback_count();
            char name[80];
            (void)snprintf(name, sizeof name, "triangular %d, shape %d, layout %d of %s", kind, shape, layout, opd_dtype_name(type));
            for (int at = 0; at < 2 && opd_ok(); at++) {
                leaves[at][0] = opd_tensor_set_requires_grad(at ? to_gpu(a) : opd_detach(a), true);
                leaves[at][1] = opd_tensor_set_requires_grad(at ? to_gpu(b) : opd_detach(b), true);
                out[at] = triangular_solved(kind, leaves[at][0], leaves[at][1]);
                opd_tensor *sum = squares_of(out[at]);
                if (opd_autograd_grad(&sum, 1, leaves[at], 2, NULL, g[at])) { break; }
            }
            CHECK_INT(opd_cpu_fallback_count(), before);
            if (!opd_ok()) { printf("%s: %s\n", name, opd_error_message()); break; }
            complex_as_on_host(name, opd_detach(out[1]), opd_detach(out[0]), near);
            same_strides(out[1], out[0]);
            for (int i = 0; i < 2; i++) { same_gradients("its derivative", g[1][i], g[0][i], 10 * near); }
        }
    }
    CHECK_OK();
}
/* The other operators of factors; returns the number of results. */
enum { FURTHER_SOLVERS = 17 };
static int further_solved(int kind, opd_tensor *a, opd_tensor *b, opd_tensor **out) {
    static const char *const drivers[] = {"gels", "gelsd", NULL};
    opd_tensor *lu[3];
    const int64_t rows = opd_size(a, -2), columns = opd_size(a, -1), count = rows < columns ? rows : columns;
    switch (kind) {
        case 0: case 1: return (out[0] = opd_cholesky_inverse_full(opd_narrow(opd_narrow(a, -1, 0, count), -2, 0, count), kind)) ? 1 : 0;
        case 2: case 3: case 4:
            return opd_linalg_lu_factor_ex(lu, a) || opd_lu_unpack_full(out, opd_mul_Scalar(lu[0], opd_value_int(1)), lu[1], kind != 3, kind != 4) ? 0 : 3;
        case 5: return opd_linalg_lu_full(out, a, true) ? 0 : 3;
        case 6: return opd__lu_with_info(out, a) ? 0 : 3;
        case 7: return (out[0] = opd_linalg_matrix_exp(opd_narrow(opd_narrow(a, -1, 0, count), -2, 0, count))) ? 1 : 0;
        case 8: case 9: case 10: return opd_linalg_lstsq_full(out, a, b, OPD_NONE, drivers[kind - 8]) ? 0 : kind == 8 ? 2 : 4;
        case 11:                                  /* Q of reflections, which need not be those of a matrix */
            if (rows < columns) { a = opd_transpose(a, -2, -1); }
            return (out[0] = opd_linalg_householder_product(a, opd_select(opd_narrow(a, -1, 0, count > 1 ? count - 1 : 1), -2, 0))) ? 1 : 0;
        case 12: case 13: case 14: case 15:
            b = opd_matmul(b, opd_transpose(b, -2, -1));
            return (out[0] = opd_ormqr_full(a, opd_select(opd_narrow(opd_matmul(a, opd_transpose(a, -2, -1)), -1, 0, count), -2, 0), kind & 1 ? opd_narrow(b, -1, 0, rows) : b,
                                            kind < 14, kind & 1)) ? 1 : 0;
        default: return (out[0] = opd_linalg_pinv_atol_rtol_tensor(a)) ? 1 : 0;
    }
}
TEST(solvers_from_factors) {
    static const int64_t shapes[][2] = {{4, 4}, {6, 3}, {3, 5}, {1, 3}};
    const bool quick = getenv("OPD_TEST_CUSOLVER") != NULL;
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4 * FURTHER_SOLVERS * SOLVER_LAYOUTS * SOLVER_TYPES; k++) {
        if (!check_visits((size_t)k, 4 * FURTHER_SOLVERS * SOLVER_LAYOUTS * SOLVER_TYPES)) { continue; }
        OPD_SCOPE {
            const int kind = k / 4 % FURTHER_SOLVERS, layout = k / 4 / FURTHER_SOLVERS % SOLVER_LAYOUTS;
            const int64_t rows = shapes[k % 4][0], columns = shapes[k % 4][1];
            const opd_scalar_type type = solver_types[k / 4 / FURTHER_SOLVERS / SOLVER_LAYOUTS];
            const double near = is_wide(type) ? 1e-8 : 5e-3;
            opd_tensor *a = opd_add(solver_input(rows, columns, type, layout, false), opd_eye_m(rows, columns, type)), *const b = solver_input(rows, 2, type, layout, false);
            opd_tensor *out[2][4], *g[2];
            int counts[2] = {0, 0};
            char name[80];
            (void)snprintf(name, sizeof name, "factors %d, %d x %d, layout %d of %s", kind, (int)rows, (int)columns, layout, opd_dtype_name(type));
            const int64_t before = opd_cpu_fallback_count();
            for (int at = 0; at < 2 && opd_ok(); at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(at ? to_gpu(a) : opd_detach(a), true), *sum;
                g[at] = NULL;
                counts[at] = further_solved(kind, leaf, at ? to_gpu(b) : b, out[at]);
                if (!counts[at] || kind == 4) { continue; }
                sum = squares_of(out[at][kind == 2 || kind == 5 ? 1 : 0]);
                if (kind == 2 || kind == 5) { sum = opd_add(sum, squares_of(out[at][2])); }
                if (kind != 3 && opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
            }
            if (quick) { CHECK_INT(opd_cpu_fallback_count(), before); }
            if (!opd_ok()) { printf("%s: %s\n", name, opd_error_message()); break; }
            CHECK(counts[0] > 0 && counts[0] == counts[1]);
            for (int i = 0; i < counts[0]; i++) {
                complex_as_on_host(name, opd_detach(out[1][i]), opd_detach(out[0][i]), near);
                same_strides(out[1][i], out[0][i]);
            }
            if (g[0]) { same_gradients(name, g[1], g[0], 10 * near); }
        }
    }
    CHECK_OK();
}
/* Calls with wrong or unusual arguments; sets out[] to results.  Returns their number, or 0 if the call fails. */
enum { UNUSUAL_SOLVERS = 26 };
static int unusual(int kind, bool on, opd_scalar_type type, opd_tensor **out) {
    static const int32_t far[] = {1, 5, 3};
    opd_tensor *x = opd_zeros(OPD_INTS(2, 3, 3), type), *b = opd_ones(OPD_INTS(2, 3, 2), type), *row = opd_ones(OPD_INTS(3), type), *pivots = opd_ones(OPD_INTS(2, 3), OPD_INT32);
    opd_tensor *none = opd_zeros(OPD_INTS(2, 0, 0), type), *few = opd_zeros(OPD_INTS(0, 3, 3), type), *empty = opd_zeros(OPD_INTS(2, 3, 0), type), *half = opd_ones(OPD_INTS(2, 3, 3), OPD_FLOAT16);
    opd_tensor *some = opd_add(opd_eye(3, type), x), *line = opd_zeros(OPD_INTS(2, 0), type), *other = opd_ones(OPD_INTS(2, 3, 3), type == OPD_FLOAT64 ? OPD_FLOAT32 : OPD_FLOAT64);
    opd_tensor **const all[] = {&x, &b, &row, &pivots, &none, &few, &empty, &half, &some, &line, &other};
    (void)opd_fill_(opd_select(opd_select(opd_select(some, 0, 1), 0, 1), 0, 1), opd_value_int(0));
    for (size_t i = 0; on && i < sizeof all / sizeof *all; i++) { *all[i] = to_gpu(*all[i]); }
    memset(out, 0, 4 * sizeof *out);
    switch (kind) {
        case 0: return (out[0] = opd_linalg_solve_triangular(x, b, true)) ? 1 : 0;               /* divides by 0 */
        case 1: return (out[0] = opd_linalg_solve_triangular(none, opd_narrow(b, 1, 0, 0), true)) ? 1 : 0;
        case 2: return (out[0] = opd_linalg_solve_triangular(few, opd_narrow(b, 0, 0, 0), true)) ? 1 : 0;
        case 3: return (out[0] = opd_linalg_solve_triangular(x, empty, false)) ? 1 : 0;
        case 4: return (out[0] = opd_linalg_solve_triangular(x, row, false)) ? 1 : 0;
        case 5: return (out[0] = opd_linalg_solve_triangular(row, b, false)) ? 1 : 0;
        case 6: return (out[0] = opd_linalg_solve_triangular_full(x, b, false, false, false)) ? 1 : 0;
        case 7: return (out[0] = opd_linalg_solve_triangular(b, b, false)) ? 1 : 0;
        case 8: return (out[0] = opd_linalg_solve_triangular(x, other, false)) ? 1 : 0;
        case 9: return (out[0] = opd_linalg_solve_triangular(half, half, false)) ? 1 : 0;
        case 10: return (out[0] = opd_cholesky_solve(none, none)) ? 1 : 0;
        case 11: return (out[0] = opd_cholesky_solve(b, opd_narrow(x, 2, 0, 2))) ? 1 : 0;
        case 12: return (out[0] = opd_cholesky_inverse(some)) ? 1 : 0;       /* a 0 on the diagonal of matrix 1 */
        case 13: return (out[0] = opd_cholesky_inverse(opd_select(some, 0, 1))) ? 1 : 0;
        case 14: return (out[0] = opd_cholesky_inverse(none)) ? 1 : 0;
        case 15: return opd_lu_unpack(out, none, opd_narrow(pivots, 1, 0, 0)) ? 0 : 3;
        case 16: return opd_lu_unpack(out, empty, opd_narrow(pivots, 1, 0, 0)) ? 0 : 3;
        case 17: return opd_lu_unpack(out, x, opd_narrow(pivots, 1, 0, 2)) ? 0 : 3;
        case 18: return opd_lu_unpack(out, x, opd_to_dtype(pivots, OPD_INT64)) ? 0 : 3;
        case 19: return (out[0] = opd_linalg_householder_product(b, line)) ? 1 : 0;
        case 20: return (out[0] = opd_linalg_householder_product(opd_transpose(b, 1, 2), line)) ? 1 : 0;
        case 21: return (out[0] = opd_linalg_matrix_exp(none)) ? 1 : 0;
        case 22: return opd_linalg_lstsq_full(out, some, b, OPD_NONE, "gels") ? 0 : 2;       /* not of full rank */
        case 23: return opd_linalg_lstsq_full(out, some, b, OPD_NONE, "gelsx") ? 0 : 2;
        case 24: return (out[0] = opd_ormqr(x, row, b)) ? 1 : 0;
        default: {
            opd_tensor *const wrong = opd_tensor_from(far, OPD_INTS(3), OPD_INT32);
            const int rc = opd_lu_unpack(out, opd_select(x, 0, 0), on ? to_gpu(wrong) : wrong);
            if (on) { (void)opd_device_synchronize(gpu(-1)); }
            return rc || !opd_ok() ? 0 : 3;
        }
    }
}
TEST(triangular_equations_at_the_limits) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < UNUSUAL_SOLVERS * SOLVER_TYPES; k++) {
        OPD_SCOPE {
            const int kind = k % UNUSUAL_SOLVERS;
            const opd_scalar_type type = solver_types[k / UNUSUAL_SOLVERS];
            opd_tensor *out[2][4];
            char text[400];
            const int count = unusual(kind, false, type, out[0]);
            (void)snprintf(text, sizeof text, "%s", opd_error_message());
            opd_error_clear();
            CHECK_INT(unusual(kind, true, type, out[1]), count);
            const char *const said = opd_error_message(), *const from = strstr(text, "pivots passed");
            /* a kernel's error has another beginning */
            if (!count && !(from ? strstr(said, from) != NULL : strcmp(said, text) == 0)) { printf("unusual %d: %s\n   on the CPU: %s\n", kind, said, text); CHECK(false); }
            CHECK((count == 0) == (*text != 0));
            opd_error_clear();
            for (int i = 0; i < count; i++) {
                opd_tensor *const got = to_host(out[1][i]);
                CHECK(same_shape(got, out[0][i]) && opd_dtype(got) == opd_dtype(out[0][i]));
                if (kind == 0 && type < OPD_COMPLEX64) { CHECK(opd_equal(opd_isfinite(got), opd_isfinite(out[0][i]))); }
                else if (kind) { CHECK(opd_equal(got, out[0][i])); }
            }
        }
    }
    CHECK_OK();
}
/* Triangular equations can be captured, but not what waits for the host, or what cuSOLVER computes. */
TEST(triangular_equations_in_a_capture) {
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_stream s = opd_stream_new(gpu(-1)), was;
        opd_tensor *const a = to_gpu(opd_add(opd_eye(3, OPD_FLOAT32), opd_ones(OPD_INTS(2, 3, 3), OPD_FLOAT32))), *const b = to_gpu(opd_ones(OPD_INTS(2, 3, 2), OPD_FLOAT32));
        opd_tensor *const seen = to_gpu(opd_zeros(OPD_INTS(2, 3, 2), OPD_FLOAT32)), *lu[3], *want = opd_linalg_solve_triangular(to_host(a), to_host(b), true);
        opd_capture *c;
        (void)opd_stream_wait(s, opd_stream_current(gpu(-1)));
        was = opd_stream_set(s);
        (void)opd_linalg_solve_triangular(a, b, true);
        CHECK_INT(opd_capture_begin(s), 0);
        CHECK(opd_copy_(seen, opd_linalg_solve_triangular(a, b, true)) != NULL);
        CHECK((c = opd_capture_end(s)) != NULL);
        CHECK_INT(opd_capture_replay(c, s), 0);
        CHECK_INT(opd_stream_synchronize(s), 0);
        as_on_host("replayed", seen, want, 1e-6);
        CHECK_OK();
        opd_capture_free(c);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(opd_capture_begin(s), 0);
            if (i == 0) { CHECK(!opd_cholesky_inverse(a)); CHECK_ERROR(OPD_ERROR_KERNEL, "aten::cholesky_inverse cannot be captured"); }
            if (i == 1) { CHECK(opd__linalg_check_errors(to_gpu(opd_zeros(OPD_INTS(1), OPD_INT32)), "x", true) != 0); CHECK(opd_error_message()[0]); opd_error_clear(); }
            if (i == 2 && getenv("OPD_TEST_CUSOLVER")) { CHECK(opd_geqrf(lu, a) != 0); CHECK_ERROR(OPD_ERROR_KERNEL, "aten::geqrf cannot be captured"); }
            c = opd_capture_end(s);
            if (c) { opd_capture_free(c); }
            opd_error_clear();
        }
        opd_stream_set(was);
        opd_stream_free(s);
    }
    CHECK_OK();
}
/* Host memory that runs out. */
static int allocating_solvers(void *arg) {
    opd_tensor *const *const x = (opd_tensor *const *)arg, *out[4];
    return opd_linalg_solve_triangular(x[0], x[1], true) && opd_cholesky_solve(x[1], x[0]) && opd_cholesky_inverse(x[0]) && !opd_linalg_lu(out, x[0]) &&
        !opd_linalg_qr(out, x[0]) && !opd__linalg_eigh(out, x[0]) && !opd__linalg_svd(out, x[0]) && !opd_linalg_eig(out, opd_select(x[0], 0, 0)) && !opd_linalg_cholesky_ex(out, x[0]) && opd_linalg_inv(x[0]) ? 0 : -1;
}
TEST(solvers_without_memory) {
    if (!there() || !emulated()) { SKIP("no emulation"); }
    OPD_SCOPE {
        opd_tensor *const x[] = {to_gpu(opd_add(opd_eye(3, OPD_FLOAT32), opd_ones(OPD_INTS(2, 3, 3), OPD_FLOAT32))), to_gpu(opd_ones(OPD_INTS(2, 3, 2), OPD_FLOAT32))};
        (void)check_allocations(allocating_solvers, (void *)(uintptr_t)x, "solvers", 300, false);
    }
    CHECK_OK();
}
/* OPD_EMU_CUSOLVER_INFO=3: eigenvalues do not converge. */
TEST(cusolver_that_does_not_converge) {
    opd_tensor *out[3], *x;
    if (!there() || !getenv("OPD_EMU_CUSOLVER_INFO")) { SKIP("it converges"); }
    x = to_gpu(opd_eye(4, OPD_FLOAT32));
    CHECK(opd__linalg_eigh(out, x) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 3)");
    CHECK(opd__linalg_svd(out, x) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: 3)");
    CHECK(opd_linalg_eig(out, x) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eig: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 3)");
    CHECK(!opd_linalg_eigvals(x));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eigvals: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 3)");
}
TEST(cusolver_that_fails) {
    const char *const text = getenv("OPD_TEST_CUSOLVER");
    opd_tensor *out[2];
    if (!there() || !text || strlen(text) < 2) { SKIP("no cuSOLVER that fails"); }
    CHECK(opd_linalg_cholesky_ex(out, to_gpu(opd_eye(4, OPD_FLOAT32))) != 0);
    CHECK(strstr(opd_error_message(), text) != NULL);
    opd_error_clear();
}
/* OPD_EMU_CUBLAS_FAILS=3: cuBLAS has no memory; 14: it fails. */
TEST(cublas_that_fails_in_solvers) {
    const char *const fails = getenv("OPD_EMU_CUBLAS_FAILS");
    if (!there() || !fails) { SKIP("no cuBLAS that fails"); }
    for (int many = 0; many < 2; many++) {
        opd_tensor *const x = to_gpu(opd_zeros(many ? OPD_INTS(3, 2, 2) : OPD_INTS(2, 2), OPD_FLOAT64));
        CHECK(!opd_linalg_solve_triangular(x, x, true));
        CHECK_ERROR(atoi(fails) == 3 ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuBLAS error: failed in cublas trsm");
    }
}
