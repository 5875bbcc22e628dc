/* Tests of factorizations by cuSOLVER.  Part of test_cuda.c.  OPD_TEST_CUSOLVER: it is there (1), or the text with which
   it fails. */

enum { SOLVER_LAYOUTS = 4 };
/* Matrices [2,3,rows,columns] in one of several layouts; positive definite ones if `definite`. */
static opd_tensor *solver_input(int64_t rows, int64_t columns, opd_scalar_type type, int layout, bool definite) {
    opd_tensor *x = opd_randn(OPD_INTS(2, 3, rows, columns), type);
    if (definite) { x = opd_add(opd_matmul(x, opd_transpose(x, -2, -1)), opd_mul_Scalar(opd_eye(rows, type), opd_value_double(2))); }
    if (layout == 1) { return opd_transpose(opd_contiguous(opd_transpose(x, -2, -1)), -2, -1); }
    if (layout == 2) { return opd_slice(opd_repeat_interleave_full(x, 2, opd_value_int(-1), OPD_NONE), -1, opd_value_int(0), opd_value_int(2 * columns), 2); }
    return layout == 3 ? opd_clone(opd_select(opd_select(x, 0, 1), 0, 2)) : x;
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
    for (int k = 0; k < SOLVERS * SOLVER_LAYOUTS * 4; k++) {
        if (!quick && !check_visits((size_t)k, SOLVERS * SOLVER_LAYOUTS * 4)) { continue; }
        OPD_SCOPE {
            const int kind = k % SOLVERS, layout = k / SOLVERS % SOLVER_LAYOUTS, n = k / SOLVERS / SOLVER_LAYOUTS < 2 ? 7 : 2;
            const opd_scalar_type type = k / SOLVERS / SOLVER_LAYOUTS % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *a = solver_input(n, n, type, layout, kind < 2), *b = solver_input(n, 3, type, layout, false), *out[2][4], *g[2];
            opd_tensor *on = to_gpu(a), *by = to_gpu(b);
            const double near = type == OPD_FLOAT64 ? 1e-9 : 2e-3;
            const int64_t before = opd_cpu_fallback_count();
            const int count = solved(kind, on, by, out[1]);
            if (quick) { CHECK_INT(opd_cpu_fallback_count(), before); }
            CHECK(count > 0 && solved(kind, a, b, out[0]) == count);
            char name[80];
            (void)snprintf(name, sizeof name, "solver %d, layout %d of %s", kind, layout, opd_dtype_name(type));
            for (int i = 0; i < count && opd_ok(); i++) {
                as_on_host(name, opd_detach(out[1][i]), opd_detach(out[0][i]), near);
                CHECK(memcmp(opd_strides(out[1][i]), opd_strides(out[0][i]), (size_t)opd_ndim(out[0][i]) * sizeof(int64_t)) == 0);
            }
            for (int at = 0; at < 2 && opd_ok(); at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(at ? on : a), true), *sum;
                if (!solved(kind, leaf, at ? by : b, out[at])) { break; }
                sum = opd_sum(opd_square(out[at][kind == 13 ? 1 : 0]));
                if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
                if (at) { as_on_host("its derivative", opd_div_Scalar(g[1], opd_value_double(opd_item_f64(opd_max(opd_abs(g[0]))))), opd_div_Scalar(g[0], opd_value_double(opd_item_f64(opd_max(opd_abs(g[0]))))), near); }
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
static void orthonormal(opd_tensor *q, double near) {
    opd_tensor *const x = to_host(q);
    as_on_host("orthogonal columns", to_gpu(opd_matmul(opd_transpose(x, -2, -1), x)), opd_expand(opd_eye(opd_size(x, -1), opd_dtype(x)), opd_ints_of(opd_sizes(opd_matmul(opd_transpose(x, -2, -1), x)), opd_ndim(x))), near);
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
    for (int k = 0; k < 9 * 5 * SOLVER_LAYOUTS; k++) {
        if (!quick && !check_visits((size_t)k, 9 * 5 * SOLVER_LAYOUTS)) { continue; }
        OPD_SCOPE {
            const int kind = k % 9, layout = k / 45;
            const int64_t rows = shapes[k / 9 % 5][0], columns = kind > 2 && kind < 6 ? rows : shapes[k / 9 % 5][1];
            const opd_scalar_type type = (kind + layout) % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
            const double near = type == OPD_FLOAT64 ? 1e-10 : 1e-4;
            opd_tensor *const a = solver_input(rows, columns, type, layout, false), *const on = to_gpu(a), *out[2][3], *g[2], *product;
            const int64_t before = opd_cpu_fallback_count();
            const int count = factored(kind, on, out[1]);
            if (quick) { CHECK_INT(opd_cpu_fallback_count(), before); }
            CHECK(count > 0 && factored(kind, a, out[0]) == count);
            for (int i = 0; i < count && opd_ok(); i++) { like_on_host(out[1][i], out[0][i]); }
            if (!opd_ok()) { break; }
            const int values = kind < 3 ? 1 : kind < 6 ? 0 : 1;
            as_on_host("values", opd_abs(out[1][values]), opd_abs(out[0][values]), near);
            if (kind < 2) {
                opd_tensor *const r = to_host(out[1][1]);
                as_on_host("Q R", opd_matmul(out[1][0], out[1][1]), a, near);
                as_on_host("R", out[1][1], opd_triu(r, 0), 0);
                orthonormal(out[1][0], near);
            } else if (kind == 3 || kind == 4) {
                opd_tensor *const half = kind == 3 ? opd_tril(a, -1) : opd_triu(a, 1);
                opd_tensor *const whole = opd_add(opd_add(half, opd_transpose(half, -2, -1)), opd_diag_embed(opd_diagonal_full(a, 0, -2, -1)));
                as_on_host("V L V^T", of_columns(out[1][1], out[1][0], opd_transpose(out[1][1], -2, -1)), whole, near);
                orthonormal(out[1][1], near);
            } else if (kind == 6 || kind == 7) {
                as_on_host("U S V^T", of_columns(out[1][0], out[1][1], out[1][2]), a, near);
                orthonormal(out[1][0], near);
                orthonormal(opd_transpose(out[1][2], -2, -1), near);
            }
            for (int at = 0; at < 2 && opd_ok() && kind != 2 && (kind != 1 || rows <= columns); at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(at ? on : a), true), *sum;
                if (!factored(kind, leaf, out[at])) { break; }
                product = opd_square(out[at][values]);
                sum = opd_sum(opd_mul(product, opd_square(product)));
                if (opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
                if (at) { as_on_host("its derivative", g[1], g[0], 100 * near); }
            }
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
/* OPD_EMU_CUSOLVER_INFO=3: eigenvalues do not converge. */
TEST(cusolver_that_does_not_converge) {
    opd_tensor *out[3], *x;
    if (!there() || !getenv("OPD_EMU_CUSOLVER_INFO")) { SKIP("it converges"); }
    x = to_gpu(opd_eye(4, OPD_FLOAT32));
    CHECK(opd__linalg_eigh(out, x) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: 3)");
    CHECK(opd__linalg_svd(out, x) != 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "linalg.svd: The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: 3)");
}
TEST(cusolver_that_fails) {
    const char *const text = getenv("OPD_TEST_CUSOLVER");
    opd_tensor *out[2];
    if (!there() || !text || strlen(text) < 2) { SKIP("no cuSOLVER that fails"); }
    CHECK(opd_linalg_cholesky_ex(out, to_gpu(opd_eye(4, OPD_FLOAT32))) != 0);
    CHECK(strstr(opd_error_message(), text) != NULL);
    opd_error_clear();
}
