//----------------------------------------------------------------------------------------------------------------------
//  >>cu:triangles   equations with triangular matrices, and operators that unpack factors
//
//  cuBLAS solves the equations, all matrices of a batch at once if they are small or many.  It stores a matrix column
//  by column, so that a kernel works on contiguous tensors [.., columns, rows], as in >>cu:solver.
//----------------------------------------------------------------------------------------------------------------------

typedef cublasStatus_t opdi_cu_trsm_fn(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                       cublasDiagType_t, int, int, const void *, const void *, int, void *, int);
typedef cublasStatus_t opdi_cu_trsm_all_fn(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
                                           cublasDiagType_t, int, int, const void *, const void *const *, int,
                                           void *const *, int, int);
static opdi_cu_trsm_fn *const opdi_cu_trsm[] = OPDI_CU_BLAS_TYPED(opdi_cu_trsm_fn, trsm);
static opdi_cu_trsm_all_fn *const opdi_cu_trsm_all[] = OPDI_CU_BLAS_TYPED(opdi_cu_trsm_all_fn, trsmBatched);

/* Triangular matrices A [n, n] on the device, `step` bytes apart (0: one for all).  turned: they are stored row by row,
   so that cuBLAS reads A^T.  unit: the diagonal, which is not read, has ones. */
struct opdi_cu_triangular {
    char *data;
    int64_t n, step;
    bool upper, unit, turned;
};
/* Reads the matrices a for equations with the batch dims of x, and copies them if cuBLAS cannot read them; `columns`:
   they must be stored column by column.  Returns 0, or -1 and sets an error. */
static int opdi_cu_triangle_read(opdi_cu_triangular *t, opd_tensor *a, const opd_tensor *x, bool columns) {
    opd_tensor *turned = opdi_cu_solver_turned(a);
    if (!turned) { return -1; }
    t->n = opd_size(a, -1);
    const bool one = opd_numel(a) == t->n * t->n, whole = one ||
        (opd_ndim(a) == opd_ndim(x) && memcmp(opd_sizes(a), opd_sizes(x), (size_t)(opd_ndim(x) - 2) * 8) == 0);
    t->turned = !columns && whole && opd_is_contiguous(a);
    t->step = one ? 0 : t->n * t->n * opd_dtype_size(opd_dtype(a));
    if (t->turned) { turned = a; }
    else if (!whole || !opd_is_contiguous(turned)) {
        turned = one ? opd_contiguous(turned) : opdi_cu_solver_as(turned, 2, x);
    }
    return turned && (t->data = opdi_cu_data<char>(turned)) ? 0 : -1;
}
/* Overwrites x with the solution of A x = b or, if `left` is false, x A = b, where x begins as b; `adjoint`: with A^H,
   for which complex matrices are stored column by column.  Returns 0, or -1 and sets an error. */
static int opdi_cu_triangle_solve(const opdi_cu_triangular &t, const opdi_cu_solver_matrices &x, bool left,
                                  bool adjoint) {
    static const double one64[] = {1, 0};
    static const float one32[] = {1, 0};
    const void *const one = x.kind % 2 ? (const void *)one64 : one32;
    const cublasSideMode_t side = left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
    const cublasFillMode_t part = t.upper != t.turned ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    const cublasOperation_t op = t.turned == adjoint ? CUBLAS_OP_N : t.turned ? CUBLAS_OP_T : CUBLAS_OP_C;
    const cublasDiagType_t diagonal = t.unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    const int n = (int)t.n, rows = (int)x.rows;
    const int64_t wide = left && t.step == 0 ? x.columns * x.batch : x.columns;     /* one matrix for all: one call */
    const int64_t batch = wide <= INT32_MAX && left && t.step == 0 ? 1 : x.batch;
    const int columns = (int)(batch == 1 ? wide : x.columns);
    cublasHandle_t h = opdi_cu_blas();
    cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
    if (!h) { return -1; }
    if (batch == 1 || (batch <= 8 && n >= 64) || batch > INT32_MAX) {
        for (int64_t i = 0; i < batch && s == CUBLAS_STATUS_SUCCESS; i++) {
            s = opdi_cu_trsm[x.kind](h, side, part, op, diagonal, rows, columns, one, t.data + i * t.step, n, x.at(i),
                                     rows);
        }
    } else {
        void **const a = opdi_cu_solver_addresses(t.data, t.step, batch), **const b = a
            ? opdi_cu_solver_addresses(x.data, x.step, batch) : NULL;
        if (!b) { return -1; }
        s = opdi_cu_trsm_all[x.kind](h, side, part, op, diagonal, rows, columns, one, a, n, b, rows, (int)batch);
    }
    return opdi_cu_blas_ran(s, "cublas trsm");
}
/* Returns whether cuBLAS solves equations with the matrices a, and b on the right; otherwise the CPU does. */
static bool opdi_cu_triangle_takes(const opd_tensor *a, const opd_tensor *b) {
    if (opd_ndim(a) < 2 || opd_ndim(b) < 2 || opdi_cu_solver_kind(opd_dtype(a)) < 0) { return false; }
    return opd_size(a, -1) <= INT32_MAX && opd_size(b, -1) <= INT32_MAX && opd_size(b, -2) <= INT32_MAX;
}
/* Returns b, expanded to the sizes of result 0 of the call, as a new tensor [.., columns, rows]. */
static opd_tensor *opdi_cu_triangle_begin(opd_call *call, opd_tensor *b) {
    b = opdi_cu_solver_expanded(b, opdi_cu_result(call, 0));
    return opdi_cu_solver_copy(opdi_cu_solver_turned(b));
}
/* linalg_solve_triangular */
static int opdi_cu_solve_triangular(opd_call *call) {
    opd_tensor *const a = opd_arg_tensor(call, 0), *const b = opd_arg_tensor(call, 1), *x;
    opdi_cu_triangular t = opdi_cu_triangular();
    if (!opdi_cu_triangle_takes(a, b)) { return opd_cpu_fallback(call); }
    if (opd_results_from_fake(call)) { return -1; }
    if (opd_numel(opdi_cu_result(call, 0)) == 0) { return 0; }
    t.upper = opd_arg_bool(call, 2); t.unit = opd_arg_bool(call, 4);
    x = opdi_cu_triangle_begin(call, b);
    return !x || opdi_cu_triangle_read(&t, a, x, false) ||
        opdi_cu_triangle_solve(t, opdi_cu_solver_matrices(x), opd_arg_bool(call, 3), false) ? -1
        : opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(x));
}
/* Sets result 0 of the call to x with L L^H x = b or, if `upper`, U^H U x = b, where x begins as b.  Returns 0, or -1
   and sets an error. */
static int opdi_cu_cholesky_solved(opd_call *call, opd_tensor *factor, opd_tensor *x, bool upper) {
    opdi_cu_triangular t = opdi_cu_triangular();
    t.upper = upper;
    if (!x || opdi_cu_triangle_read(&t, factor, x, opd_dtype_is_complex(opd_dtype(factor)))) { return -1; }
    const opdi_cu_solver_matrices m(x);
    return opdi_cu_triangle_solve(t, m, true, upper) || opdi_cu_triangle_solve(t, m, true, !upper) ? -1
        : opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(x));
}
/* cholesky_solve */
static int opdi_cu_cholesky_solve(opd_call *call) {
    opd_tensor *const b = opd_arg_tensor(call, 0), *const factor = opd_arg_tensor(call, 1);
    if (!opdi_cu_triangle_takes(factor, b)) { return opd_cpu_fallback(call); }
    if (opd_results_from_fake(call)) { return -1; }
    return opd_numel(opdi_cu_result(call, 0)) == 0 ? 0
        : opdi_cu_cholesky_solved(call, factor, opdi_cu_triangle_begin(call, b), opd_arg_bool(call, 2));
}
/* cholesky_inverse.  A zero on the diagonal is an error, for which the host waits. */
static int opdi_cu_cholesky_inverse(opd_call *call) {
    opd_tensor *const factor = opd_arg_tensor(call, 0), *zero, *before, *info, *x;
    const int64_t last = -1;
    if (!opdi_cu_triangle_takes(factor, factor)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    if (opd_numel(factor) == 0) { return 0; }
    zero = opd_eq_Scalar(opd_diagonal_full(factor, 0, -2, -1), opd_value_int(0));
    before = opd_sum_dim(opd_eq_Scalar(opd_cumsum(zero, -1), opd_value_int(0)), opd_ints_of(&last, 1), false);
    info = opd_where_ScalarOther(opd_ne_Scalar(before, opd_value_int(opd_size(factor, -1))),
                                 opd_add_Scalar(before, opd_value_int(1)), opd_value_int(0));
    if (opdi_cu_solver_check(info, "cholesky_inverse", opd_ndim(factor) == 2)) { return -1; }
    x = opdi_cu_solver_identity(factor);
    return x ? opdi_cu_cholesky_solved(call, factor, x, opd_arg_bool(call, 1)) : -1;
}

//== lu_unpack =========================================================================================================

/* Makes the row exchanges in `pivots` [batch, count], one thread for each matrix: row i of the result is order[i]. */
__global__ void opdi_cu_lu_order(const int32_t *pivots, int64_t count, int64_t rows, int64_t batch, int32_t *order,
                                 opdi_cu_guard guard) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < batch; at += step) {
        int32_t *const own = order + at * rows;
        for (int64_t i = 0; i < rows; i++) { own[i] = (int32_t)i; }
        for (int64_t i = 0; i < count; i++) {
            const int64_t other = (int64_t)pivots[at * count + i] - 1;
            if (!guard.inside(other, rows)) { continue; }
            const int32_t kept = own[i];
            own[i] = own[other];
            own[other] = kept;
        }
    }
}
/* Sets out [.., rows, rows] to the permutation matrices of the row exchanges.  Returns 0, or -1 and sets an error. */
static int opdi_cu_lu_permutation(opd_call *call, opd_tensor *out, opd_tensor *pivots) {
    const int64_t rows = opd_size(out, -1), batch = opd_numel(out) / (rows * rows), count = opd_size(pivots, -1);
    opd_tensor *const list = opd_contiguous(pivots), *const order = opdi_cu_solver_new(pivots, 1, rows, -1, OPD_INT32);
    if (!list || !order || opdi_cu_launch(opdi_cu_lu_order, opdi_cu_grid(batch, 32), dim3(32), 0,
                                          opdi_cu_data<const int32_t>(list), count, rows, batch,
                                          opdi_cu_data<int32_t>(order), opdi_cu_guard_of(call, "pivots passed to "
                                          "lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass "
                                          "the result of lu_factor?"))) { return -1; }
    opd_tensor *const ones = opd_ones_like(opd_select(opd_reshape(order, OPD_INTS(-1, rows)), 0, 0));
    opd_tensor *const row = opd_sub_Scalar(opd_cumsum(ones, 0), opd_value_int(1));
    return opd_copy_(out, opd_eq(opd_unsqueeze(order, -2), opd_unsqueeze(row, -1))) ? 0 : -1;
}
static int opdi_cu_lu_unpack(opd_call *call) {
    opd_tensor *const factors = opd_arg_tensor(call, 0), *lower, *out;
    if (opd_ndim(factors) < 2 || opdi_cu_solver_kind(opd_dtype(factors)) < 0 || opd_numel(factors) == 0 ||
        opd_size(factors, -2) > INT32_MAX) { return opd_cpu_fallback(call); }
    if (opd_results_from_fake(call)) { return -1; }
    const int64_t rows = opd_size(factors, -2), columns = opd_size(factors, -1);
    const int64_t count = rows < columns ? rows : columns;
    if (opd_arg_bool(call, 2)) {
        lower = opd_tril(opd_narrow(factors, -1, 0, count), -1);
        if (!lower || !opd_fill_(opd_diagonal_full(lower, 0, -2, -1), opd_value_int(1)) ||
            opdi_cu_solver_return(call, 1, lower) ||
            opdi_cu_solver_return(call, 2, opd_triu(opd_narrow(factors, -2, 0, count), 0))) { return -1; }
    }
    out = opdi_cu_result(call, 0);
    return opd_arg_bool(call, 3) ? opdi_cu_lu_permutation(call, out, opd_arg_tensor(call, 1)) : 0;
}
/* _linalg_check_errors, for which the host waits. */
static int opdi_cu_solver_errors(opd_call *call) {
    opd_tensor *const info = opd_arg_tensor(call, 0);
    return opd_numel(info) == 0 ? 0 : opdi_cu_uncaptured(opdi_cu_stream(), opd_op_name(opd_call_operator(call)))
        ? -1 : opdi_cu_solver_check(info, opd_arg_str(call, 1), opd_arg_bool(call, 2));
}

static const opdi_cu_registration opdi_cu_table_triangles[] = {
    {"linalg_solve_triangular", opdi_cu_solve_triangular}, {"cholesky_solve", opdi_cu_cholesky_solve},
    {"cholesky_inverse", opdi_cu_cholesky_inverse}, {"lu_unpack", opdi_cu_lu_unpack},
    {"_linalg_check_errors", opdi_cu_solver_errors},
    {NULL, NULL}};
