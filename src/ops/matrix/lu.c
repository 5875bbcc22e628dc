#include "../ops.h"

//== LU: linalg_lu_factor_ex, lu_unpack, linalg_lu =====================================================================

/* Copies input to `factors` [.., rows, columns], which is contiguous, and factors it there.  Writes the pivots and
   info.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lu_run(opd_tensor *factors, opd_tensor *pivots, opd_tensor *info, opd_tensor *input) {
    opdi_solver solver;
    memset(&solver, 0, sizeof solver);
    if (opdi_copy(factors, input)) { return -1; }
    solver.rows = opd_size(input, -2);
    solver.columns = opd_size(input, -1);
    solver.npivots = OPDI_MIN(solver.rows, solver.columns);
    solver.pivots = (int32_t *)(void *)pivots->data;
    solver.info = (int32_t *)(void *)info->data;
    opdi_solver_data(&solver, 0, factors, solver.rows * solver.columns);
    if (solver.rows == solver.columns) { opdi_lanes_choose(&solver, input, false); }
    return opdi_solver_run(&solver, opdi_batch_of(input),
                           (double)solver.rows * (double)solver.columns * (double)solver.npivots,
                           OPDI_DTYPE(input), opdi_lu_one_f32, opdi_lu_one_f64, opdi_lu_one_c128);
}
OPDI_INTERNAL opd_tensor *opdi_new_int32(const opd_tensor *like, int64_t columns) {
    int64_t sizes[OPD_MAX_DIMS];
    memcpy(sizes, opdi_sizes(like), (size_t)like->ndim * sizeof *sizes);
    sizes[like->ndim - 2] = columns;
    return opdi_own(opdi_tensor_make(sizes, NULL, like->ndim - 1 - (columns < 0), OPD_INT32, OPD_CPU));
}
static int opdi_linalg_lu_factor_ex_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_results results;
    if (input->ndim < 2) {
        char text[256];
        return opd_fail(OPD_ERROR_SHAPE, "lu_factor: Expected tensor with 2 or more dimensions. Got size: %s "
                        "instead", opdi_sizes_text(opdi_sizes(input), input->ndim, text, sizeof text));
    }
    if (opdi_solver_check(input, "lu_cpu")) { return -1; }
    if (!opd_arg_bool(call, 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
    }
    const int64_t rows = opd_size(input, -2), columns = opd_size(input, -1);
    results.out[0] = opdi_solver_result(call, 0, input, rows, columns, OPDI_DTYPE(input));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, OPDI_MIN(rows, columns), -1, OPD_INT32) : NULL;
    results.out[2] = results.out[1] ? opdi_solver_result(call, 2, input, -1, -1, OPD_INT32) : NULL;
    const int rc = opdi_results_open(&results, 3);
    if (rc) { return rc < 0 ? -1 : 0; }
    if (opdi_lu_run(results.work[0], results.work[1], results.work[2], input) ||
        (opd_arg_bool(call, 2) && opdi_info_check("linalg.lu_factor_ex",
                                                  (const int32_t *)(const void *)results.work[2]->data,
                                                  results.work[2]->numel, input->ndim == 2))) {
        return -1;
    }
    return opdi_results_close(&results);
}
/* Returns the gradient of A = P L U, computed from the gradients of L and U, either of which may be NULL.  L1 and U1
   are the square upper left parts of L and U.  The gradient of the columns right of U1 (or of the rows below L1) is
   first converted to a contribution to the gradients of these parts. */
static opd_tensor *opdi_lu_gradient(opd_tensor *lower_grad, opd_tensor *upper_grad, opd_tensor *permutation,
                                    opd_tensor *lower, opd_tensor *upper) {
    const int64_t rows = opd_size(lower, -2), columns = opd_size(upper, -1), count = OPDI_MIN(rows, columns);
    if (!lower_grad) { lower_grad = opd_zeros_like(lower); }
    if (!upper_grad) { upper_grad = opd_zeros_like(upper); }
    opd_tensor *first = opd_narrow(lower, -2, 0, count), *second = opd_narrow(upper, -1, 0, count), *rest[2];
    opd_tensor *const turned = opdi_mt(first), *below = opd_matmul(turned, opd_narrow(lower_grad, -2, 0, count));
    opd_tensor *const part = opd_narrow(upper_grad, -1, 0, count), *above = opd_matmul(part, opdi_mt(second));
    if (columns > count) {
        rest[1] = opd_narrow(upper_grad, -1, count, columns - count);
        below = opd_sub(below, opd_matmul(rest[1], opdi_mt(opd_narrow(upper, -1, count, columns - count))));
    }
    if (rows > count) {
        rest[1] = opd_narrow(lower_grad, -2, count, rows - count);
        above = opd_sub(above, opd_matmul(opdi_mt(opd_narrow(lower, -2, count, rows - count)), rest[1]));
    }
    opd_tensor *const first_below = opd_tril(below, -1);
    rest[0] = opd_add(first_below, opd_triu(above, 0));
    rest[0] = opdi_by_triangle(opdi_mt(second), rest[0], false, false, false);
    if (columns > count) { rest[0] = opd_cat(opd_tensors_of(rest, 2), -1); }
    rest[0] = opdi_by_triangle(opdi_mt(first), rest[0], true, true, true);
    if (rows > count) {
        rest[1] = opdi_by_triangle(opdi_mt(second), rest[1], false, false, false);
        rest[0] = opd_cat(opd_tensors_of(rest, 2), -2);
    }
    return opd_matmul(permutation, rest[0]);
}
static int opdi_linalg_lu_factor_ex_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *factors = opd_bw_result(bw, 0), *parts[3];
    if (!grad) { return 0; }
    const int64_t count = OPDI_MIN(opd_size(factors, -2), opd_size(factors, -1));
    if (opd_lu_unpack(parts, factors, opd_bw_result(bw, 1))) { return -1; }
    opd_tensor *const below = opd_tril(opd_narrow(grad, -1, 0, count), -1);
    return opd_bw_return(bw, 0,
        opdi_lu_gradient(below, opd_triu(opd_narrow(grad, -2, 0, count), 0), parts[0], parts[1], parts[2]));
}
/* opd_linalg_lu_factor_ex: L below the diagonal, U on and above it; pivots: exchanged rows from 1; info */
OPDI_OP(linalg_lu_factor_ex) {
    op->schema = "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor "
        "pivots, Tensor info)";
    op->cpu = op->fake = opdi_linalg_lu_factor_ex_kernel; op->backward = opdi_linalg_lu_factor_ex_backward;
    op->save = "LU, pivots";
    op->vmap = opdi_solver_batch;
    op->out = "linalg_lu_factor_ex.out(LU, pivots, info)";
    op->cases = "[3,3]; [2,4,2]; [3,5]";
}
static int opdi_linalg_lu_factor_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[3];
    return opd_linalg_lu_factor_ex_full(rets, input, opd_arg_bool(call, 1), false) ||
        opdi_errors_of(rets[2], "linalg.lu_factor", input) || opd_return_tensor(call, rets[0]) ? -1
        : opd_return_tensor(call, rets[1]);
}
/* opd_linalg_lu_factor: LU and pivots; fails for singular matrices */
OPDI_OP(linalg_lu_factor) {
    op->schema = "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)";
    op->composite = opdi_linalg_lu_factor_kernel;
    op->out = "linalg_lu_factor.out(LU, pivots)";
    op->cases = "[3,3]; [2,4,2]";
}
/* _lu_with_info: calls linalg_lu_factor_ex; ignores check_errors, as PyTorch does. */
static int opdi__lu_with_info_kernel(opd_call *call) {
    opd_tensor *rets[3];
    if (opd_linalg_lu_factor_ex_full(rets, opd_arg_tensor(call, 0), opd_arg_bool(call, 1), false)) { return -1; }
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, rets[i])) { return -1; } }
    return 0;
}
/* opd__lu_with_info: the same as linalg_lu_factor_ex */
OPDI_OP(_lu_with_info) {
    op->schema = "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, "
        "Tensor info)";
    op->composite = opdi__lu_with_info_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "[3,3]";
}

/* Sets out [.., rows, rows] to the permutation matrices P of the row exchanges in pivots.  Returns 0, or -1 and sets an
   error if a pivot is out of range. */
static int opdi_permutation_write(opd_tensor *out, const opd_tensor *pivots, int64_t rows) {
    const int64_t count = opd_size(pivots, -1), batch = rows ? opdi_matrices_of(pivots, 1) : 0;
    const bool twice = out->dtype == OPD_FLOAT64, pair = opdi_is_complex(out);     /* complex: complex128 */
    int64_t *order = (int64_t *)opdi_scope_alloc((size_t)rows * sizeof *order);
    if (!order || opdi_fill_with(out, opd_value_int(0))) { return -1; }
    for (int64_t at = 0; at < batch; at++) {
        const int32_t *list = count ? (const int32_t *)(const void *)pivots->data + at * count : NULL;
        for (int64_t i = 0; i < rows; i++) { order[i] = i; }
        for (int64_t i = 0; i < count; i++) {
            if (list[i] < 1 || list[i] > rows) {
                return opd_fail(OPD_ERROR_ARGUMENT, "pivots passed to lu_unpack must be between 1 and LU.size(-2) "
                                "inclusive.Did you properly pass the result of lu_factor?");
            }
            const int64_t kept = order[i];
            order[i] = order[list[i] - 1];
            order[list[i] - 1] = kept;
        }
        for (int64_t i = 0; i < rows; i++) {
            const int64_t place = (at * rows + order[i]) * rows + i;
            if (twice || pair) { ((double *)(void *)out->data)[pair ? 2 * place : place] = 1; }
            else { ((float *)(void *)out->data)[place] = 1; }
        }
    }
    return 0;
}
static int opdi_pivots_check(const opd_tensor *factors, const opd_tensor *pivots, bool unpack) {
    const int64_t count = OPDI_MIN(opd_size(factors, -2), opd_size(factors, -1));
    char text[256], want[256];
    bool same = pivots->ndim == factors->ndim - 1 && opd_size(pivots, -1) == count;
    if (pivots->dtype != OPD_INT32) {
        return opd_fail(OPD_ERROR_DTYPE, unpack ? "lu_unpack: LU_pivots is expected to be a contiguous tensor "
                        "of int32 dtype."
                        : "linalg.lu_solve: pivots should be a Tensor of dtype int32");
    }
    for (int i = 0; same && i < factors->ndim - 2; i++) { same = opdi_sizes(pivots)[i] == opdi_sizes(factors)[i]; }
    if (same) { return 0; }
    if (!unpack) {
        return opd_fail(OPD_ERROR_SHAPE, "linalg.lu_solve: Number of pivots per batch should be same as the "
                        "dimension of the matrix");
    }
    int64_t sizes[OPD_MAX_DIMS];
    memcpy(sizes, opdi_sizes(factors), (size_t)factors->ndim * sizeof *sizes);
    sizes[factors->ndim - 2] = count;
    return opd_fail(OPD_ERROR_SHAPE, "Expected LU_pivots to have shape %s but got %s instead.",
                    opdi_sizes_text(sizes, factors->ndim - 1, want, sizeof want),
                    opdi_sizes_text(opdi_sizes(pivots), pivots->ndim, text, sizeof text));
}
static int opdi_lu_unpack_kernel(opd_call *call) {
    opd_tensor *factors = opd_arg_tensor(call, 0), *pivots = opd_arg_tensor(call, 1), *out[3];
    const bool data = opd_arg_bool(call, 2), exchanged = opd_arg_bool(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    char text[256];
    if (factors->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "lu_unpack: Expected tensor with 2 or more dimensions. Got size: %s "
                        "instead", opdi_sizes_text(opdi_sizes(factors), factors->ndim, text, sizeof text));
    }
    if ((exchanged && opdi_pivots_check(factors, pivots, true)) || opdi_solver_check(factors, "lu_unpack_cpu")) {
        return -1;
    }
    const int64_t rows = opd_size(factors, -2), columns = opd_size(factors, -1), count = OPDI_MIN(rows, columns);
    memcpy(sizes, opdi_sizes(factors), (size_t)factors->ndim * sizeof *sizes);
    for (int i = 0; i < 3; i++) {
        int64_t none = 0, *last = sizes + factors->ndim - 2;
        const bool wanted = i ? data : exchanged;
        last[0] = i == 2 ? count : rows;
        last[1] = i == 0 ? rows : i == 1 ? count : columns;
        out[i] = opd_result(call, i, wanted ? sizes : &none, wanted ? factors->ndim : 1, OPDI_DTYPE(factors));
        if (!out[i]) { return -1; }
    }
    for (int i = 0; i < 3; i++) { if (opdi_no_data(out[i])) { return 0; } }
    if (data) {
        opd_tensor *lower = opd_tril(opd_narrow(factors, -1, 0, count), -1);
        opd_tensor *diagonal = lower ? opd_diagonal_full(lower, 0, -2, -1) : NULL;
        if (!diagonal || opdi_fill_with(diagonal, opd_value_int(1)) || opdi_copy(out[1], lower)) { return -1; }
        opd_tensor *upper = opd_triu(opd_narrow(factors, -2, 0, count), 0);
        if (!upper || opdi_copy(out[2], upper)) { return -1; }
    }
    if (!exchanged) { return 0; }
    opd_tensor *work = opdi_staging(out[0], opdi_solver_dtype(OPDI_DTYPE(factors)));
    pivots = opdi_dense_as(pivots, OPD_INT32);
    return !work || !pivots || opdi_permutation_write(work, pivots, rows) ? -1 : opdi_staging_store(out[0], work);
}
static int opdi_lu_unpack_backward(opd_backward_call *bw) {
    opd_tensor *lower = opd_bw_grad(bw, 1), *upper = opd_bw_grad(bw, 2);
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    int64_t pad[4] = {0, 0, 0, 0};
    if ((!lower && !upper) || !opd_bw_needs(bw, 0)) { return opd_bw_return(bw, 1, NULL); }
    const int64_t rows = sizes.data[sizes.n - 2], columns = sizes.data[sizes.n - 1], count = OPDI_MIN(rows, columns);
    if (lower) { lower = opd_tril(lower, -1); }
    if (upper) { upper = opd_triu(upper, 0); }
    if (lower && columns > count) {
        pad[1] = columns - count;
        lower = opd_constant_pad_nd(lower, opd_ints_of(pad, 2));
    }
    if (upper && rows > count) {
        pad[1] = 0;
        pad[3] = rows - count;
        upper = opd_constant_pad_nd(upper, opd_ints_of(pad, 4));
    }
    return opd_bw_return(bw, 0, opdi_plus(lower, upper));
}
/* opd_lu_unpack: P, L and U, given the results of linalg_lu_factor */
OPDI_OP(lu_unpack) {
    op->schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> "
        "(Tensor P, Tensor L, Tensor U)";
    op->cpu = op->fake = opdi_lu_unpack_kernel; op->backward = opdi_lu_unpack_backward; op->constant = "P";
    op->vmap = opdi_solver_batch_second;
    op->out = "lu_unpack.out(P, L, U)";
    op->cases = "[3,3], [3]i3, True, False; [2,3], [2]i3, unpack_pivots=False; [2,4,3], [2,3]i3, True, False";
}
static int opdi_linalg_lu_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[3], *parts[3];
    char text[256];
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "linalg.lu: Expected tensor with 2 or more dimensions. Got size: %s instead",
                        opdi_sizes_text(opdi_sizes(input), input->ndim, text, sizeof text));
    }
    if (opd_linalg_lu_factor_ex_full(rets, input, opd_arg_bool(call, 1), false) ||
        opd_lu_unpack(parts, rets[0], rets[1])) {
        return -1;
    }
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, parts[i])) { return -1; } }
    return 0;
}
/* opd_linalg_lu: the factors P, L and U of A = P L U */
OPDI_OP(linalg_lu) {
    op->schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)";
    op->composite = opdi_linalg_lu_kernel;
    op->out = "linalg_lu.out(P, L, U)";
    op->cases = "[3,3]; [2,4,2]; [3,5]";
}

//== linear equations: linalg_lu_solve, _linalg_solve_ex, linalg_solve =================================================

/* Returns pivots [.., n] as contiguous int32, expanded to the batch sizes batch[ndim - 2].  On failure, returns NULL
   and sets an error. */
static opd_tensor *opdi_pivots_as(opd_tensor *pivots, const int64_t *batch, int ndim) {
    int64_t sizes[OPD_MAX_DIMS];
    memcpy(sizes, batch, (size_t)(ndim - 2) * sizeof *sizes);
    sizes[ndim - 2] = opd_size(pivots, -1);
    return opdi_dense_as(opdi_expand_to(pivots, sizes, ndim - 1), OPD_INT32);
}
/* Solves equations with LU factors and pivots; the solution overwrites x.  The factors have x's batch dims, or there is
   only one matrix for the whole batch.  The matrix is on the left if `left` is true.  If `turned` is true, its
   conjugate transpose is used.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lu_solve_run(opd_tensor *factors, opd_tensor *pivots, opd_tensor *x, bool left, bool turned) {
    opdi_solver solver;
    int64_t step;
    memset(&solver, 0, sizeof solver);
    if (x->numel == 0) { return 0; }
    factors = opdi_matrices_read(factors, opdi_sizes(x), x->ndim, &step, &solver.columns_first);
    if (!factors) { return -1; }
    solver.rows = solver.npivots = opd_size(factors, -1);
    if (pivots->numel == solver.rows) { solver.npivots = 0; }
    else if (!(pivots = opdi_pivots_as(pivots, opdi_sizes(x), x->ndim))) { return -1; }
    solver.columns = opd_size(x, left ? -1 : -2);
    solver.left = left;
    solver.turned = turned;
    solver.pivots = (int32_t *)(void *)pivots->data;
    opdi_solver_data(&solver, 0, factors, step);
    opdi_solver_data(&solver, 1, x, solver.rows * solver.columns);
    if (left && !turned && !solver.columns_first && solver.columns <= 16) { opdi_lanes_choose(&solver, x, true); }
    return opdi_solver_run(&solver, opdi_batch_of(x),
                           2 * (double)solver.rows * (double)solver.rows * (double)solver.columns, OPDI_DTYPE(x),
                           opdi_lu_solve_one_f32, opdi_lu_solve_one_f64, opdi_lu_solve_one_c128);
}
static int opdi_pivots_within(const opd_tensor *pivots) {
    const int64_t n = opd_size(pivots, -1);
    for (int64_t i = 0; i < pivots->numel; i++) {
        const int32_t pivot = ((const int32_t *)(const void *)pivots->data)[i];
        if (pivot < 1) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the "
                            "result of lu_factor?");
        }
        if (pivot > n) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Pivots given to lu_solve must all be smaller or equal to "
                            "LU.size(-2). Did you properly pass the result of lu_factor?");
        }
    }
    return 0;
}
static int opdi_linalg_lu_solve_kernel(opd_call *call) {
    opd_tensor *factors = opd_arg_tensor(call, 0), *pivots = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    const bool left = opd_arg_bool(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    opdi_results results;
    if (factors->ndim >= 2 && factors->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of "
                        "type %s and B of type %s instead", opd_dtype_name(OPDI_DTYPE(factors)),
                        opd_dtype_name(OPDI_DTYPE(b)));
    }
    if (opdi_square_check(factors, "linalg.lu_solve") || opdi_b_check(b, "linalg.lu_solve") ||
        opdi_pivots_check(factors, pivots, false) || opdi_equation_check(factors, b, left, "linalg.lu_solve") ||
        opdi_solver_check(b, "linalg.lu_solve") || opdi_batches_join(factors, b, sizes, &ndim)) {
        return -1;
    }
    sizes[ndim - 2] = opd_size(b, -2);
    sizes[ndim - 1] = opd_size(b, -1);
    results.out[0] = left ? opdi_columns_result(call, 0, sizes, ndim, OPDI_DTYPE(b))
        : opd_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    pivots = opdi_dense_as(pivots, OPD_INT32);
    return !pivots || opdi_pivots_within(pivots) || opdi_matrices_into(results.work[0], b, sizes, ndim) ||
        opdi_lu_solve_run(factors, pivots, results.work[0], left, opd_arg_bool(call, 4)) ? -1
            : opdi_results_close(&results);
}
/* Returns the gradient of LU, computed from the solution x of an equation.  The equation's matrix is A = P L U or, if
   `turned` is true, its conjugate transpose.  `grad` is the gradient of the right-hand side. */
static opd_tensor *opdi_lu_solve_gradient(opd_backward_call *bw, opd_tensor *grad, bool left, bool turned) {
    opd_tensor *parts[3], *x = opd_bw_result(bw, 0);
    if (opd_lu_unpack_full(parts, opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), true, left == turned)) { return NULL; }
    opd_tensor *over = opdi_mh(parts[1]);
    if (left != turned) {
        if (left) { x = opdi_mh(x); } else { grad = opdi_mh(grad); }
        opd_tensor *sum = opd_neg(opd_matmul(grad, x));
        sum = opdi_by_triangle(opdi_mh(parts[2]), sum, false, true, false);
        opd_tensor *below = opdi_by_triangle(over, opd_matmul(sum, opdi_mh(parts[2])), true, true, true);
        opd_tensor *const first_below = opd_tril(below, -1);
        return opd_add(first_below, opd_triu(sum, 0));
    }
    if (left) { grad = opdi_mh(grad); } else { x = opdi_mh(x); }
    opd_tensor *sum = opd_matmul(x, grad);
    sum = opd_neg(opd_matmul(opd_matmul(opdi_mh(parts[0]), sum), parts[0]));
    sum = opdi_by_triangle(over, sum, true, false, true);
    opd_tensor *const first_turned = opdi_mh(parts[2]),
        *above = opdi_by_triangle(first_turned, opd_matmul(over, sum), false, false, false);
    opd_tensor *const other_below = opd_tril(sum, -1);
    return opd_add(other_below, opd_triu(above, 0));
}
static int opdi_linalg_lu_solve_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const bool left = opdi_bw_bool(bw, 3), turned = opdi_bw_bool(bw, 4);
    OPDI_BW_RETURN(0, opdi_lu_solve_gradient(bw, grad, left, turned));
    OPDI_BW_RETURN(2, opd_linalg_lu_solve_full(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), grad, left, !turned));
    return 0;
}
/* opd_linalg_lu_solve: solves A x = B or x A = B (adjoint: with A^H), given LU and pivots of A */
OPDI_OP(linalg_lu_solve) {
    op->schema = "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor";
    op->cpu = op->fake = opdi_linalg_lu_solve_kernel; op->backward = opdi_linalg_lu_solve_backward;
    op->save = "LU, pivots, result(LU)";
    op->vmap = opdi_solver_batch_second; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "linalg_lu_solve.out";
    op->cases = "";
}
static int opdi_lu_solve_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_linalg_lu_solve(opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                                       opd_arg_tensor(call, 0)));
}
/* opd_lu_solve: linalg_lu_solve with its arguments in another order */
OPDI_OP(lu_solve) {
    op->schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor";
    op->composite = opdi_lu_solve_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "lu_solve.out";
    op->cases = "";
}

/* Returns true if b consists of one vector for each matrix of a: if it has one dim, or all dims of a except the
   last. */
static bool opdi_is_vectors(const opd_tensor *a, const opd_tensor *b) {
    if (b->ndim == 1) { return true; }
    if (b->ndim != a->ndim - 1) { return false; }
    for (int i = 0; i < b->ndim; i++) { if (opdi_sizes(b)[i] != opdi_sizes(a)[i]) { return false; } }
    return true;
}
static int opdi_solve_check(const opd_tensor *input, const opd_tensor *b) {
    if (opdi_float_check(input, "linalg.solve", false)) { return -1; }
    if (input->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "linalg.solve: Expected A and B to have the same dtype, but found A of type "
                        "%s and B of type %s instead", opd_dtype_name(OPDI_DTYPE(input)),
                        opd_dtype_name(OPDI_DTYPE(b)));
    }
    return opdi_square_check(input, "linalg.solve") || opdi_solver_check(input, "linalg_solve_cpu") ? -1 : 0;
}
static int opdi__linalg_solve_ex_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    const bool left = opd_arg_bool(call, 2);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    opdi_results results;
    if (opdi_solve_check(input, b)) { return -1; }
    const bool vectors = opdi_is_vectors(input, b);
    if (!vectors && opdi_b_check(b, "linalg.solve")) { return -1; }
    if (vectors && !left) {
        return opd_fail(OPD_ERROR_ARGUMENT, "linalg.solve: Vector broadcasting of the left hand side is not "
                        "supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)");
    }
    opd_tensor *matrices = vectors ? opdi_unsqueeze_at(b, -1) : b;
    if (!matrices || opdi_equation_check(input, matrices, left, "linalg.solve") ||
        opdi_batches_join(input, matrices, sizes, &ndim)) {
        return -1;
    }
    const int64_t n = opd_size(input, -1);
    sizes[ndim - 2] = opd_size(matrices, -2);
    sizes[ndim - 1] = opd_size(matrices, -1);
    results.out[0] = left ? opdi_columns_result(call, 0, sizes, ndim - vectors, OPDI_DTYPE(b))
        : opd_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, n, n, OPDI_DTYPE(input)) : NULL;
    results.out[2] = results.out[1] ? opdi_solver_result(call, 2, input, n, -1, OPD_INT32) : NULL;
    results.out[3] = results.out[2] ? opdi_solver_result(call, 3, input, -1, -1, OPD_INT32) : NULL;
    const int rc = opdi_results_open(&results, 4);
    if (rc) { return rc < 0 ? -1 : 0; }
    opd_tensor *x = results.work[0];
    if (vectors && !(x = opdi_unsqueeze_at(x, -1))) { return -1; }
    if (opdi_lu_run(results.work[1], results.work[2], results.work[3], input) ||
        (opd_arg_bool(call, 3) && opdi_info_check("linalg.solve_ex",
                                                  (const int32_t *)(const void *)results.work[3]->data,
                                                  results.work[3]->numel, input->ndim == 2))) {
        return -1;
    }
    if (x->numel == 0) { return opdi_results_close(&results); }
    return opdi_matrices_into(x, matrices, sizes, ndim) ||
        opdi_lu_solve_run(results.work[1], results.work[2], x, left, false) ? -1 : opdi_results_close(&results);
}
static int opdi__linalg_solve_ex_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *x = opd_bw_result(bw, 0);
    const bool left = opdi_bw_bool(bw, 2);
    if (!grad) { return 0; }
    const bool vectors = x->ndim == 1 || x->ndim < input->ndim;
    if (vectors) {
        grad = opd_unsqueeze(grad, -1);
        x = opd_unsqueeze(x, -1);
    }
    /* The saved factors suffice if no second derivative is needed, because they have no history. */
    const bool again = opdi_differentiated_again(input);
    if (again || opdi_is_complex(input)) { grad = opd_linalg_solve_full(opdi_mt(input), grad, left); }
    else { grad = opd_linalg_lu_solve_full(opd_bw_result(bw, 1), opd_bw_result(bw, 2), grad, left, true); }
    OPDI_BW_RETURN(0, opd_neg(left ? opd_matmul(grad, opdi_mt(x)) : opd_matmul(opdi_mt(x), grad)));
    OPDI_BW_RETURN(1, vectors ? opd_squeeze_dim(grad, -1) : grad);
    return 0;
}
/* Batches _linalg_solve_ex: moves the examples to the first batch dim.  Vectors temporarily get a last dim.  A and b
   are given equal numbers of dims, so that matrices are not mistaken for vectors. */
static int opdi__linalg_solve_ex_batch(opd_call *call) {
    opd_value args[4], rets[4];
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    if (a->ndim < 2 || b->ndim < 1) { return opdi_batch_unfit(call); }
    const bool vectors = opdi_is_vectors(a, b);
    const int ndim = OPDI_MAX((int)a->ndim, (int)b->ndim + vectors);
    for (int i = 0; i < 4; i++) { args[i] = call->args[i]; }
    for (int i = 0; i < 2; i++) {
        int dim;
        opd_tensor *tensor = opd_batch_value(args[i].u.t, &dim);
        tensor = dim >= 0 ? opd_batch_front(tensor, dim) : opd_unsqueeze(tensor, 0);
        if (tensor && i == 0) {
            int64_t sizes[OPD_MAX_DIMS];
            memcpy(sizes, opdi_sizes(tensor), (size_t)tensor->ndim * sizeof *sizes);
            sizes[0] = opd_batch_size();
            tensor = opdi_expand_to(tensor, sizes, tensor->ndim);
        } else if (vectors) { tensor = opd_unsqueeze(tensor, -1); }
        if (!(args[i].u.t = opdi_batch_pad(tensor, ndim))) { return -1; }
    }
    if (opd_call_all(call->op, rets, args, 4)) { return -1; }
    if (vectors) { rets[0].u.t = opd_squeeze_dim(rets[0].u.t, -1); }
    for (int i = 0; i < 4; i++) {
        opd_tensor *tensor = rets[i].u.t;
        int64_t sizes[OPD_MAX_DIMS + 1];
        sizes[0] = opd_batch_size();
        memcpy(sizes + 1, opdi_sizes(a), (size_t)a->ndim * sizeof *sizes);
        if (i) { tensor = opdi_reshape_to(tensor, sizes, a->ndim + 2 - i); }
        if (opd_batch_return(call, tensor, 0)) { return -1; }
    }
    return 0;
}
/* opd__linalg_solve_ex: linalg_solve_ex that also returns A's LU factors and pivots */
OPDI_OP(_linalg_solve_ex) {
    op->schema = "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
        "result, Tensor LU, Tensor pivots, Tensor info)";
    op->cpu = op->fake = opdi__linalg_solve_ex_kernel; op->backward = opdi__linalg_solve_ex_backward;
    op->save = "A, result, LU, pivots"; op->constant = "LU";
    op->vmap = opdi__linalg_solve_ex_batch;
    op->out = "_linalg_solve_ex.result(result, LU, pivots, info)";
    op->cases = "[3,3], [3,2]; [3,3], [3]; [2,3,3], [2,4,3], left=False; [3,3], [2,3,1]; [2,3,3], [2,3]";
}
static int opdi_solve_return(opd_call *call, opd_tensor **rets, const char *name, bool info) {
    if (name && opdi_errors_of(rets[3], name, opd_arg_tensor(call, 0))) { return -1; }
    return opd_return_tensor(call, rets[0]) ? -1 : info ? opd_return_tensor(call, rets[3]) : 0;
}
static int opdi_linalg_solve_ex_kernel(opd_call *call) {
    opd_tensor *rets[4];
    return opd__linalg_solve_ex_full(rets, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_bool(call, 2),
                                     opd_arg_bool(call, 3)) ? -1 : opdi_solve_return(call, rets, NULL, true);
}
/* opd_linalg_solve_ex: linalg_solve that returns info instead of failing for singular matrices */
OPDI_OP(linalg_solve_ex) {
    op->schema = "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, "
        "Tensor info)";
    op->composite = opdi_linalg_solve_ex_kernel;
    op->out = "linalg_solve_ex.out(result, info)";
    op->cases = "[3,3], [3,2]";
}
static int opdi_linalg_solve_kernel(opd_call *call) {
    opd_tensor *rets[4];
    return opd__linalg_solve_ex_full(rets, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_bool(call, 2),
                                     false) ? -1 : opdi_solve_return(call, rets, "linalg.solve", false);
}
/* opd_linalg_solve: solves A x = B or, if left is false, x A = B */
OPDI_OP(linalg_solve) {
    op->schema = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor";
    op->composite = opdi_linalg_solve_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_solve.out";
    op->cases = "[3,3], [3,2]; [3,3], [4,3], left=False";
}

//== L D L^T: linalg_ldl_factor_ex, linalg_ldl_solve ===================================================================

static int opdi_linalg_ldl_factor_ex_kernel(opd_call *call) {
    const char *name = "linalg.ldl_factor_ex";
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_solver solver;
    opdi_results results;
    if (opdi_square_check(input, name) || opdi_float_check(input, name, true) ||
        opdi_solver_check(input, "ldl_factor_cpu")) {
        return -1;
    }
    const int64_t n = opd_size(input, -1), batch = opdi_batch_of(input);
    results.out[0] = opdi_solver_result(call, 0, input, n, n, OPDI_DTYPE(input));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, n, -1, OPD_INT32) : NULL;
    results.out[2] = results.out[1] ? opdi_solver_result(call, 2, input, -1, -1, OPD_INT32) : NULL;
    const int rc = opdi_results_open(&results, 3);
    if (rc) { return rc < 0 ? -1 : 0; }
    if (opdi_copy(results.work[0], input)) { return -1; }
    memset(&solver, 0, sizeof solver);
    solver.rows = n;
    solver.turned = opd_arg_bool(call, 1);
    solver.pivots = (int32_t *)(void *)results.work[1]->data;
    solver.info = (int32_t *)(void *)results.work[2]->data;
    opdi_solver_data(&solver, 0, results.work[0], n * n);
    if (opdi_solver_run(&solver, batch, opdi_cube(n) / 3, OPDI_DTYPE(input), opdi_ldl_one_f32, opdi_ldl_one_f64,
                        opdi_ldl_one_c128) ||
        (opd_arg_bool(call, 2) && opdi_info_check(name, solver.info, batch, input->ndim == 2))) {
        return -1;
    }
    return opdi_results_close(&results);
}
/* opd_linalg_ldl_factor_ex: L and the block diagonal D in one with P^T self P = L D L^T; exchanged rows; info */
OPDI_OP(linalg_ldl_factor_ex) {
    op->schema = "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor LD, "
        "Tensor pivots, Tensor info)";
    op->cpu = op->fake = opdi_linalg_ldl_factor_ex_kernel; op->backward = opdi_refused_backward;
    op->vmap = opdi_solver_batch;
    op->out = "linalg_ldl_factor_ex.out(LD, pivots, info)";
    op->cases = "";
}
static int opdi_linalg_ldl_factor_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[3];
    return opd_linalg_ldl_factor_ex_full(rets, input, opd_arg_bool(call, 1), false) ||
        opdi_errors_of(rets[2], "linalg.ldl_factor", input) || opd_return_tensor(call, rets[0]) ? -1
        : opd_return_tensor(call, rets[1]);
}
/* opd_linalg_ldl_factor: LD and pivots; fails for singular matrices */
OPDI_OP(linalg_ldl_factor) {
    op->schema = "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)";
    op->composite = opdi_linalg_ldl_factor_kernel;
    op->out = "linalg_ldl_factor.out(LD, pivots)";
    op->cases = "";
}
static int opdi_ldl_check(const opd_tensor *factors, const opd_tensor *pivots, const opd_tensor *b) {
    const char *name = "linalg.ldl_solve";
    char text[256];
    if (opdi_square_check(factors, name) || opdi_float_check(factors, name, true) ||
        opdi_solver_check(factors, "ldl_solve_cpu") || opdi_b_check(b, name)) {
        return -1;
    }
    const int64_t n = opd_size(factors, -1);
    if (opd_size(b, -2) != n) {
        return opd_fail(OPD_ERROR_SHAPE, "Incompatible matrix sizes for %s: each A matrix is %lld by %lld but each b "
                        "matrix is %lld by %lld", name, (long long)n, (long long)n, (long long)opd_size(b, -2),
                        (long long)opd_size(b, -1));
    }
    if (pivots->ndim != factors->ndim - 1 || memcmp(opdi_sizes(pivots), opdi_sizes(factors),
                                                    (size_t)pivots->ndim * sizeof(int64_t)) != 0) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots "
                        "with shape %s instead", name,
                        opdi_sizes_text(opdi_sizes(pivots), pivots->ndim, text, sizeof text));
    }
    if (!opd_dtype_is_integral(opd_dtype(pivots), false)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: Expected pivots to be integers. Got %s", name,
                        opd_dtype_name(opd_dtype(pivots)));
    }
    return factors->dtype == b->dtype ? 0
        : opd_fail(OPD_ERROR_DTYPE, "Expected b and A to have the same dtype, but found b of type %s and A of type %s "
                   "instead.", opd_dtype_name(OPDI_DTYPE(b)), opd_dtype_name(OPDI_DTYPE(factors)));
}
/* Checks that pivots are row numbers (from 1) that the exchanges allow, and that negative pivots come in pairs.
   Returns 0, or -1 and sets an error. */
static int opdi_ldl_pivots_within(const opd_tensor *pivots) {
    const int64_t n = opd_size(pivots, -1);
    const int32_t *list = (const int32_t *)(const void *)pivots->data;
    for (int64_t i = 0; i < pivots->numel; i++) {
        const int64_t k = i % n, last = list[i] < 0 ? k + 1 : k;
        const int64_t other = list[i] < 0 ? -(int64_t)list[i] : list[i];
        if (other <= last || other > n || (list[i] < 0 && (last == n || list[i + 1] != list[i]))) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%d is not a valid pivot for row %lld of %lld. Did you properly "
                            "pass the result of ldl_factor?", list[i], (long long)k, (long long)n);
        }
        i += last - k;
    }
    return 0;
}
static int opdi_linalg_ldl_solve_kernel(opd_call *call) {
    opd_tensor *factors = opd_arg_tensor(call, 0), *pivots = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    opdi_solver solver;
    opdi_results results;
    if (opdi_ldl_check(factors, pivots, b) || opdi_batches_join(factors, b, sizes, &ndim)) { return -1; }
    const int64_t n = opd_size(factors, -1), columns = opd_size(b, -1);
    sizes[ndim - 2] = n;
    sizes[ndim - 1] = columns;
    results.out[0] = opdi_columns_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    factors = opdi_matrices_as(factors, sizes, ndim);
    pivots = opdi_pivots_as(pivots, sizes, ndim);
    if (!factors || !pivots || opdi_ldl_pivots_within(pivots) || opdi_matrices_into(results.work[0], b, sizes, ndim)) {
        return -1;
    }
    memset(&solver, 0, sizeof solver);
    solver.rows = n;
    solver.columns = columns;
    solver.turned = opd_arg_bool(call, 3);
    solver.pivots = (int32_t *)(void *)pivots->data;
    opdi_solver_data(&solver, 0, factors, n * n);
    opdi_solver_data(&solver, 1, results.work[0], n * columns);
    return opdi_solver_run(&solver, opdi_batch_of(factors), (double)n * (double)n * 2 * (double)columns, OPDI_DTYPE(b),
                           opdi_ldl_solve_one_f32, opdi_ldl_solve_one_f64, opdi_ldl_solve_one_c128) ? -1
        : opdi_results_close(&results);
}
/* Computes the gradient of B: A^-H g.  If A is symmetric, this is conj(A^-1 conj(g)); if it is Hermitian, A^-1 g. */
static int opdi_linalg_ldl_solve_backward(opd_backward_call *bw) {
    const bool hermitian = opdi_bw_bool(bw, 3);
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (!hermitian) { grad = opdi_conj(grad); }
    grad = opd_linalg_ldl_solve_full(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), grad, hermitian);
    OPDI_BW_RETURN(2, hermitian ? grad : opdi_conj(grad));
    return 0;
}
/* opd_linalg_ldl_solve: solves A x = B, given the factors LD and pivots of A */
OPDI_OP(linalg_ldl_solve) {
    op->schema = "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor";
    op->cpu = op->fake = opdi_linalg_ldl_solve_kernel; op->backward = opdi_linalg_ldl_solve_backward;
    op->save = "LD, pivots"; op->constant = "LD";
    op->vmap = opdi_solver_batch_second; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "linalg_ldl_solve.out";
    op->cases = "";
}
