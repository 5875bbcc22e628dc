#include "../ops.h"

//== inverses and determinants =========================================================================================

static int opdi_linalg_inv_ex_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_results results;
    if (opdi_square_check(input, "linalg.inv") || opdi_float_check(input, "linalg.inv", true) ||
        opdi_solver_check(input, "linalg_inv_cpu")) {
        return -1;
    }
    const int64_t n = opd_size(input, -1);
    results.out[0] = opdi_solver_result(call, 0, input, n, n, OPDI_DTYPE(input));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, -1, -1, OPD_INT32) : NULL;
    const int rc = opdi_results_open(&results, 2);
    if (rc) { return rc < 0 ? -1 : 0; }
    opd_tensor *factors = opd_empty_like(results.work[0]), *pivots = opdi_new_int32(input, n);
    if (!factors || !pivots || opdi_lu_run(factors, pivots, results.work[1], input) ||
        (opd_arg_bool(call, 1) && opdi_info_check("linalg.inv_ex",
                                                  (const int32_t *)(const void *)results.work[1]->data,
                                                  results.work[1]->numel, input->ndim == 2)) ||
        opdi_matrices_into(results.work[0], opdi_identity_like(input), opdi_sizes(input), input->ndim) ||
        opdi_lu_solve_run(factors, pivots, results.work[0], true, false)) {
        return -1;
    }
    return opdi_results_close(&results);
}
static int opdi_linalg_inv_ex_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *over = opdi_mt(opd_bw_result(bw, 0));
    return grad ? opd_bw_return(bw, 0, opd_neg(opd_matmul(over, opd_matmul(grad, over)))) : 0;
}
/* opd_linalg_inv_ex: the inverse, and info, which is 0 or the number of a zero pivot */
OPDI_OP(linalg_inv_ex) {
    op->schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)";
    op->cpu = op->fake = opdi_linalg_inv_ex_kernel; op->backward = opdi_linalg_inv_ex_backward;
    op->save = "inverse";
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_inv_ex.inverse(inverse, info)";
    op->cases = "[3,3]; [2,3,3]";
}
static int opdi_linalg_inv_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[2];
    return opd_linalg_inv_ex(rets, input) || opdi_errors_of(rets[1], "linalg.inv", input) ? -1
        : opd_return_tensor(call, rets[0]);
}
static int opdi_inverse_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_linalg_inv(opd_arg_tensor(call, 0)));
}
/* opd_linalg_inv: the inverse; fails for singular matrices */
OPDI_OP(linalg_inv) {
    op->schema = "linalg_inv(Tensor A) -> Tensor";
    op->composite = opdi_linalg_inv_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_inv.out";
    op->cases = "[3,3]; [2,3,3]";
}
/* opd_inverse: the same as linalg_inv */
OPDI_OP(inverse) {
    op->schema = "inverse(Tensor self) -> Tensor";
    op->composite = opdi_inverse_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "inverse.out";
    op->cases = "[3,3]";
}

/* Makes the results of a determinant operator: the determinant or, if `both`, its sign and the logarithm of its
   absolute value; then the LU factors and the pivots.  `name` is used in messages.  Returns 0, or -1 and sets an
   error. */
static int opdi_det_any(opd_call *call, const char *name, bool both) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_solver solver;
    opdi_results results;
    if (opdi_square_check(input, name) || opdi_float_check(input, name, both) || opdi_solver_check(input, "lu_cpu")) {
        return -1;
    }
    const int64_t n = opd_size(input, -1);
    const int at = 1 + both;
    results.out[0] = opdi_solver_result(call, 0, input, -1, -1, OPDI_DTYPE(input));
    results.out[1] = both && results.out[0]
        ? opdi_solver_result(call, 1, input, -1, -1, (opd_scalar_type)opdi_real_dtype(input->dtype)) : NULL;
    results.out[at] = results.out[at - 1] ? opdi_solver_result(call, at, input, n, n, OPDI_DTYPE(input)) : NULL;
    results.out[at + 1] = results.out[at] ? opdi_solver_result(call, at + 1, input, n, -1, OPD_INT32) : NULL;
    const int rc = results.out[at + 1] ? opdi_results_open(&results, at + 2) : -1;
    if (rc) { return rc < 0 ? -1 : 0; }
    opd_tensor *info = opdi_new_int32(input, -1);
    if (!info || opdi_lu_run(results.work[at], results.work[at + 1], info, input)) { return -1; }
    memset(&solver, 0, sizeof solver);
    solver.rows = solver.npivots = n;
    solver.vectors = both;
    solver.pivots = (int32_t *)(void *)results.work[at + 1]->data;
    opdi_solver_data(&solver, 0, results.work[at], n * n);
    for (int i = 0; i < at; i++) { opdi_solver_data(&solver, i + 1, results.work[i], 1); }
    return opdi_solver_run(&solver, opdi_batch_of(input), (double)n, OPDI_DTYPE(input), opdi_det_one_f32,
                           opdi_det_one_f64, opdi_det_one_c128) ? -1 : opdi_results_close(&results);
}
static int opdi__linalg_det_kernel(opd_call *call) { return opdi_det_any(call, "linalg.det", false); }
static int opdi__linalg_slogdet_kernel(opd_call *call) { return opdi_det_any(call, "linalg.slogdet", true); }
/* Returns determinants, computed from LU factors and pivots by public operators: the product of the diagonal of U,
   negated if the number of row exchanges is odd. */
static opd_tensor *opdi_lu_determinant(opd_tensor *factors, opd_tensor *pivots) {
    const int64_t last = -1;
    opd_tensor *order = opd_cumsum(opd_ones_like(pivots), -1);
    opd_tensor *odd = opd_sum_dim(opd_ne(pivots, order), opd_ints_of(&last, 1), false);
    opd_tensor *sign = opd_rsub_Scalar(opd_mul_Scalar(opd_remainder_Scalar(odd, opd_value_int(2)), opd_value_int(2)),
                                       opd_value_int(1));
    return opd_mul(opd_prod_dim(opd_diagonal_full(factors, 0, -2, -1), -1, false), sign);
}
/* Returns grad times the cofactor matrices of a = U S V^T, computed by public operators: U P V^T with the sign of det(U
   V^T).  P is diagonal and has, for each singular value, the product of all other singular values.  The result is
   finite for singular matrices, too.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_cofactors(opd_tensor *a, opd_tensor *grad) {
    const int64_t n = opd_size(a, -1), last = -1;
    opd_tensor *rets[3], *parts[2];
    if (opd_linalg_svd_full(rets, a, true, NULL)) { return NULL; }
    opd_tensor *const det = opd_linalg_det(opd_detach(rets[0])),
        *sign = opd_sgn(opd_mul(det, opd_linalg_det(opd_detach(rets[2]))));
    opd_tensor *ones = opd_ones_like(opd_narrow(rets[1], -1, 0, 1));
    parts[0] = ones;
    parts[1] = opd_narrow(rets[1], -1, 0, n - 1);
    opd_tensor *before = opd_cumprod(opd_cat(opd_tensors_of(parts, 2), -1), -1);
    parts[1] = opd_narrow(opd_flip(rets[1], opd_ints_of(&last, 1)), -1, 0, n - 1);
    opd_tensor *behind = opd_cumprod(opd_cat(opd_tensors_of(parts, 2), -1), -1);
    opd_tensor *others = opd_mul(before, opd_flip(behind, opd_ints_of(&last, 1)));
    others = opd_mul(others, opd_unsqueeze(opd_mul(grad, sign), -1));
    return opd_matmul(opd_mul(rets[0], opd_unsqueeze(others, -2)), rets[2]);
}
/* Returns a tensor that is true for each numerically singular matrix of a: if the smallest element on the diagonal of
   its U is negligible.  a must not be empty.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_singular_by_factors(opd_tensor *a) {
    const int64_t n = opd_size(a, -1), last = -1;
    const double least = (double)n * (opdi_real_dtype(a->dtype) == OPD_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON);
    opd_tensor *rets[3];
    if (opd_linalg_lu_factor_ex(rets, a)) { return NULL; }
    opd_tensor *sizes = opd_abs(opd_diagonal_full(rets[0], 0, -2, -1));
    opd_tensor *most = opd_amax(sizes, opd_ints_of(&last, 1), false);
    return opd_le(opd_amin(sizes, opd_ints_of(&last, 1), false), opd_mul_Scalar(most, opd_value_double(least)));
}
/* Returns the gradient conj(det) A^-H grad, computed by operators that can be differentiated again: from the singular
   values for real matrices that are numerically singular, from the inverse for all others.  If both kinds occur, both
   computations run on the whole batch; each replaces the matrices of the other kind by regular matrices. */
static opd_tensor *opdi_det_gradient(opd_tensor *a, opd_tensor *grad, opd_tensor *det) {
    if (opd_size(a, -1) == 0 || opdi_is_complex(a)) { return opdi_times_inverse(a, opd_mul(grad, opdi_conj(det))); }
    opd_tensor *detached = opd_detach(a), *zero = detached ? opdi_singular_by_factors(detached) : NULL;
    if (!zero) { return NULL; }
    const bool known = !(zero->flags & (OPDI_BATCHED | OPDI_TRACED)) && zero->backend != OPD_META;
    const opd_tensor *values = known ? opdi_on_host(opd_contiguous(zero)) : zero;
    bool some = false;
    if (!values) { return NULL; }
    for (int64_t i = 0; known && i < values->numel && !some; i++) { some = ((const bool *)(void *)values->data)[i]; }
    if (!some) { return opdi_times_inverse(a, opd_mul(grad, det)); }
    opd_tensor *mask = opd_unsqueeze(opd_unsqueeze(zero, -1), -1), *one = opdi_identity_like(a);
    opd_tensor *order = opd_mul(one, opd_unsqueeze(opd_cumsum(opd_diagonal_full(one, 0, -2, -1), -1), -1));
    opd_tensor *others = opdi_cofactors(opd_where_self(mask, a, order), grad);
    opd_tensor *const chosen = opd_where_self(mask, one, a);
    return opd_where_self(mask, others, opdi_times_inverse(chosen, opd_mul(grad, det)));
}
/* Computes the gradient conj(det) A^-H grad.  If no second derivative is needed, zeros on the diagonal of U are
   replaced by a tiny number, which hardly changes the result. */
static int opdi__linalg_det_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *factors = opd_bw_result(bw, 1);
    if (!grad) { return 0; }
    if (opdi_differentiated_again(input)) {
        return opd_bw_return(bw, 0, opdi_det_gradient(input, grad, opd_bw_result(bw, 0)));
    }
    const bool twice = opdi_real_dtype((int32_t)opd_bw_dtype(bw, 0)) == OPD_FLOAT64;
    const double least = twice ? DBL_EPSILON : (double)FLT_EPSILON;
    opd_tensor *zero = opd_eq_Scalar(opd_diagonal_full(factors, 0, -2, -1), opd_value_int(0));
    factors = opd_add(factors, opd_diag_embed(opd_mul_Scalar(opd_to_dtype(zero, opd_bw_dtype(bw, 0)),
                                                             opd_value_double(least))));
    grad = opd_mul(grad, opdi_conj(opdi_lu_determinant(factors, opd_bw_result(bw, 2))));
    opd_tensor *diagonal = opd_mul(opdi_identity_like(input), opd_unsqueeze(opd_unsqueeze(grad, -1), -1));
    return opd_bw_return(bw, 0, opd_linalg_lu_solve_full(factors, opd_bw_result(bw, 2), diagonal, true, true));
}
/* Computes the gradient A^-H (grad + i Im(conj(sign) g)), where g is the gradient of the sign, and grad the gradient of
   the logarithm.  A real sign has no derivative.  If no second derivative is needed, the gradient of a singular matrix
   is infinite, and no error is reported. */
static int opdi__linalg_slogdet_backward(opd_backward_call *bw) {
    opd_tensor *turn = opd_bw_grad(bw, 0), *grad = opd_bw_grad(bw, 1), *input = opd_bw_tensor(bw, 0);
    if (turn && opd_dtype_is_complex(opd_bw_dtype(bw, 0))) {
        turn = opd_imag(opd_mul(turn, opdi_conj(opd_bw_result(bw, 0))));
        grad = turn ? opd_complex(grad ? grad : opd_zeros_like(turn), turn) : NULL;
        if (!grad) { return -1; }
    }
    if (!grad) { return 0; }
    if (opd_grad_mode_enabled()) { return opd_bw_return(bw, 0, opdi_times_inverse(input, grad)); }
    opd_tensor *diagonal = opd_mul(opdi_identity_like(input), opd_unsqueeze(opd_unsqueeze(grad, -1), -1)), *rets[2];
    return opd_linalg_solve_ex(rets, opdi_mh(input), diagonal) ? -1 : opd_bw_return(bw, 0, rets[0]);
}
/* Computes the tangents.  If t is the trace of A^-1 dA, the tangent of the logarithm is Re(t), and the tangent of the
   sign is i * Im(t) * sign. */
static int opdi__linalg_slogdet_jvp(opd_jvp_call *jv) {
    opd_tensor *tangent = opd_jvp_tangent(jv, 0), *sign = opd_jvp_result(jv, 0), *rets[2];
    const int64_t last = -1;
    if (!tangent || !sign || opd_linalg_solve_ex(rets, opd_jvp_tensor(jv, 0), tangent)) { return -1; }
    opd_tensor *trace = opd_sum_dim(opd_diagonal_full(rets[0], 0, -2, -1), opd_ints_of(&last, 1), false);
    if (!trace) { return -1; }
    const bool pair = opdi_is_complex(trace);
    opd_tensor *size = pair ? opd_clone(opd_real(trace)) : trace;
    opd_tensor *turn = pair ? opd_mul(opd_sub(trace, size), sign) : opd_zeros_like(sign);
    return opd_jvp_return(jv, 0, turn) ? -1 : opd_jvp_return(jv, 1, size);
}
/* opd__linalg_det: the determinant, and A's LU factors and pivots */
OPDI_OP(_linalg_det) {
    op->schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)";
    op->cpu = op->fake = opdi__linalg_det_kernel; op->backward = opdi__linalg_det_backward;
    op->save = "A, result, LU, pivots"; op->constant = "LU";
    op->vmap = opdi_solver_batch; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "_linalg_det.result(result, LU, pivots)";
    op->cases = "[3,3]; [2,3,3]";
}
/* opd__linalg_slogdet: sign of the determinant, logarithm of its absolute value, and A's LU factors and pivots */
OPDI_OP(_linalg_slogdet) {
    op->schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)";
    op->cpu = op->fake = opdi__linalg_slogdet_kernel; op->backward = opdi__linalg_slogdet_backward;
    op->save = "A, sign"; op->constant = "LU"; op->jvp = opdi__linalg_slogdet_jvp;
    op->vmap = opdi_solver_batch; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "_linalg_slogdet.sign(sign, logabsdet, LU, pivots)";
    op->cases = "[3,3]; [2,3,3]";
}
static int opdi_linalg_det_kernel(opd_call *call) {
    opd_tensor *rets[3];
    return opd__linalg_det(rets, opd_arg_tensor(call, 0)) ? -1 : opd_return_tensor(call, rets[0]);
}
static int opdi_linalg_slogdet_kernel(opd_call *call) {
    opd_tensor *rets[4];
    return opd__linalg_slogdet(rets, opd_arg_tensor(call, 0)) || opd_return_tensor(call, rets[0]) ? -1
        : opd_return_tensor(call, rets[1]);
}
/* logdet: returns the logarithm of the determinant, which is NaN if the determinant is negative, and complex for
   complex matrices. */
static int opdi_logdet_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[4];
    if (opdi_square_check(input, "logdet") || opdi_float_check(input, "logdet", true) ||
        opd__linalg_slogdet(rets, input)) {
        return -1;
    }
    if (opdi_is_complex(input)) { return opd_return_tensor(call, opd_add(opd_log(rets[0]), rets[1])); }
    opd_tensor *negative = opd_eq_Scalar(rets[0], opd_value_int(-1));
    return opd_return_tensor(call, opd_masked_fill_Scalar(rets[1], negative, opd_value_double((double)NAN)));
}
/* opd_linalg_det: the determinants of square matrices */
OPDI_OP(linalg_det) {
    op->schema = "linalg_det(Tensor A) -> Tensor";
    op->composite = opdi_linalg_det_kernel;
    op->out = "linalg_det.out";
    op->cases = "[3,3]; [2,3,3]";
}
/* opd_det: the same as linalg_det */
OPDI_OP(det) {
    op->schema = "det(Tensor self) -> Tensor";
    op->composite = opdi_linalg_det_kernel;
    op->cases = "[3,3]; [2,3,3]";
}
/* opd_linalg_slogdet: the sign of the determinant, and the logarithm of its absolute value */
OPDI_OP(linalg_slogdet) {
    op->schema = "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)";
    op->composite = opdi_linalg_slogdet_kernel;
    op->out = "linalg_slogdet.out(sign, logabsdet)";
    op->cases = "[3,3]; [2,3,3]";
}
/* opd_slogdet: the same as linalg_slogdet */
OPDI_OP(slogdet) {
    op->schema = "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)";
    op->composite = opdi_linalg_slogdet_kernel;
    op->out = "slogdet.out(sign, logabsdet)";
    op->cases = "[3,3]";
}
/* opd_logdet: the logarithm of the determinant */
OPDI_OP(logdet) {
    op->schema = "logdet(Tensor self) -> Tensor";
    op->composite = opdi_logdet_kernel;
    op->cases = "[3,3]d; [2,3,3]d";
}

//== QR: geqrf, linalg_householder_product, ormqr, linalg_qr ===========================================================

/* Computes the QR factorization of input.  Writes R and the reflections to factors [.., rows, columns], and their
   factors to tau [.., min(rows, columns)]; both are contiguous.  Returns 0, or -1 and sets an error. */
static int opdi_geqrf_run(opd_tensor *factors, opd_tensor *tau, opd_tensor *input) {
    opdi_solver solver;
    memset(&solver, 0, sizeof solver);
    if (opdi_copy(factors, input)) { return -1; }
    solver.rows = opd_size(input, -2);
    solver.columns = opd_size(input, -1);
    solver.count = OPDI_MIN(solver.rows, solver.columns);
    opdi_solver_data(&solver, 0, factors, solver.rows * solver.columns);
    opdi_solver_data(&solver, 1, tau, solver.count);
    return opdi_solver_run(&solver, factors->numel ? opdi_batch_of(input) : 0,
                           2 * (double)solver.rows * (double)solver.columns * (double)solver.count, OPDI_DTYPE(input),
                           opdi_geqrf_one_f32, opdi_geqrf_one_f64, opdi_geqrf_one_c128);
}
static int opdi_orgqr_run(opd_tensor *q, opd_tensor *factors, opd_tensor *tau) {
    opdi_solver solver;
    memset(&solver, 0, sizeof solver);
    solver.rows = opd_size(q, -2);
    solver.columns = opd_size(q, -1);
    solver.npivots = opd_size(factors, -1);
    solver.count = opd_size(tau, -1);
    opdi_solver_data(&solver, 0, factors, solver.rows * solver.npivots);
    opdi_solver_data(&solver, 1, tau, solver.count);
    opdi_solver_data(&solver, 2, q, solver.rows * solver.columns);
    return opdi_solver_run(&solver, q->numel ? opdi_batch_of(q) : 0,
                           4 * (double)solver.rows * (double)solver.columns * (double)solver.count, OPDI_DTYPE(q),
                           opdi_orgqr_one_f32, opdi_orgqr_one_f64, opdi_orgqr_one_c128);
}
static int opdi_geqrf_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_results results;
    if (input->ndim < 2) { return opd_fail(OPD_ERROR_SHAPE, "geqrf: input must have at least 2 dimensions."); }
    if (opdi_solver_check(input, "geqrf_cpu")) { return -1; }
    const int64_t rows = opd_size(input, -2), columns = opd_size(input, -1);
    results.out[0] = opdi_solver_result(call, 0, input, rows, columns, OPDI_DTYPE(input));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, OPDI_MIN(rows, columns), -1, OPDI_DTYPE(input))
        : NULL;
    const int rc = opdi_results_open(&results, 2);
    if (rc) { return rc < 0 ? -1 : 0; }
    return opdi_geqrf_run(results.work[0], results.work[1], input) ? -1 : opdi_results_close(&results);
}
/* opd_geqrf: QR factors: R on and above the diagonal, the reflections' vectors below it; tau: their factors */
OPDI_OP(geqrf) {
    op->schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)";
    op->cpu = op->fake = opdi_geqrf_kernel; op->backward = opdi_refused_backward;
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "geqrf.a(a, tau)";
    op->cases = "";
}

/* Checks reflections, whose vectors are in input [.., rows, columns] and whose factors are in tau [.., count].  Returns
   0, or -1 and sets an error. */
static int opdi_reflections_check(const opd_tensor *input, const opd_tensor *tau, const char *name) {
    bool same = tau->ndim == input->ndim - 1;
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: input must have at least 2 dimensions.", name);
    }
    if (tau->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: tau dtype %s does not match input dtype %s", name,
                        opd_dtype_name(OPDI_DTYPE(tau)), opd_dtype_name(OPDI_DTYPE(input)));
    }
    for (int i = 0; same && i < tau->ndim - 1; i++) { same = opdi_sizes(tau)[i] == opdi_sizes(input)[i]; }
    char text[256];
    return same ? 0
        : opd_fail(OPD_ERROR_SHAPE, "%s: Expected batch dimensions of tau to be equal to input.shape[:-2], but got %s",
                   name, opdi_sizes_text(opdi_sizes(tau), OPDI_MAX(0, tau->ndim - 1), text, sizeof text));
}
static int opdi_linalg_householder_product_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *tau = opd_arg_tensor(call, 1);
    const char *name = "linalg.householder_product";
    opdi_results results;
    if (input->ndim >= 2 && opd_size(input, -2) < opd_size(input, -1)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", name);
    }
    if (input->ndim >= 2 && tau->ndim >= 1 && opd_size(tau, -1) > opd_size(input, -1)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", name);
    }
    if (opdi_reflections_check(input, tau, name) || opdi_solver_check(input, "orgqr_cpu")) { return -1; }
    results.out[0] = opdi_solver_result(call, 0, input, opd_size(input, -2), opd_size(input, -1), OPDI_DTYPE(input));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    input = opdi_solver_dense(input);
    tau = opdi_solver_dense(tau);
    return !input || !tau || opdi_orgqr_run(results.work[0], input, tau) ? -1 : opdi_results_close(&results);
}
/* Returns the vector v of reflection i as [.., rows, 1]: zeros, then 1 at row i, then the elements of column i of input
   below row i. */
static opd_tensor *opdi_reflection_of(opd_tensor *input, int64_t i) {
    opd_tensor *column = opd_narrow(input, -1, i, 1);
    const int64_t rows = opd_size(input, -2);
    opd_tensor *pieces[2];
    pieces[0] = opd_narrow(opdi_identity_like(opdi_mt(column)), -1, i, 1);
    pieces[1] = opd_narrow(column, -2, i + 1, rows - i - 1);
    const int64_t pad[4] = {0, 0, i + 1, 0};
    return opd_add(pieces[0], opd_constant_pad_nd(pieces[1], opd_ints_of(pad, 4)));
}
/* Applies a reflection from the left: returns x - tau v (v^H x). */
static opd_tensor *opdi_reflected(opd_tensor *v, opd_tensor *tau, opd_tensor *x) {
    return opd_sub(x, opd_mul(tau, opd_matmul(v, opd_matmul(opdi_mh(v), x))));
}
/* Computes the gradients of Q = H_1 .. H_k E with respect to v and tau of each reflection H_i, where E is the first
   columns of the identity.  Sets grads[0] and grads[1] to the gradients of input and of tau (`all`).  Returns 0, or -1
   and sets an error.

   G is grad multiplied by H_1^H, H_2^H and so on up to H_(i-1)^H.  R is the matrix that H_i was applied to, H_(i+1) ..
   H_k E, which is computed first.  With a = G^H v and b = R^H v, the gradient of tau is -a^H b, and the gradient of v
   is -(conj(tau) G b + tau R a). */
static int opdi_reflections_gradient(opd_tensor *grad, opd_tensor *input, opd_tensor *all, opd_tensor **grads) {
    if (!grad || !input || !all) { return -1; }
    const int64_t count = opd_size(all, -1), columns = opd_size(input, -1), rows = opd_size(input, -2);
    opd_tensor **lists = (opd_tensor **)opdi_scope_alloc((size_t)(4 * count + 4) * sizeof *lists);
    if (!lists) { return -1; }
    opd_tensor **right = lists, **v = right + count + 1, **tau = v + count + 1, **taus = tau + count + 1;
    if (count == 0) {
        grads[0] = opd_zeros_like(input);
        grads[1] = opd_zeros_like(all);
        return grads[0] && grads[1] ? 0 : -1;
    }
    opd_tensor *start = opdi_identity_like(opdi_mt(input));
    right[count] = opdi_expand_to(opd_narrow(start, -1, 0, columns), opdi_sizes(input), input->ndim);
    for (int64_t i = count - 1; i >= 0; i--) {
        v[i] = opdi_reflection_of(input, i);
        tau[i] = opd_unsqueeze(opd_narrow(all, -1, i, 1), -1);
        right[i] = opdi_reflected(v[i], tau[i], right[i + 1]);
        if (!right[i]) { return -1; }
    }
    for (int64_t i = 0; i < count; i++) {
        opd_tensor *a = opd_matmul(opdi_mh(grad), v[i]), *b = opd_matmul(opdi_mh(right[i + 1]), v[i]);
        const int64_t pad[4] = {0, 0, i + 1, 0};
        taus[i] = opd_squeeze_dim(opd_neg(opd_matmul(opdi_mh(a), b)), -1);
        opd_tensor *turned = opdi_conj(tau[i]);
        opd_tensor *const product = opd_mul(turned, opd_matmul(grad, b));
        b = opd_neg(opd_add(product, opd_mul(tau[i], opd_matmul(right[i + 1], a))));
        b = opd_constant_pad_nd(opd_narrow(b, -2, i + 1, rows - i - 1), opd_ints_of(pad, 4));
        grad = opdi_reflected(v[i], turned, grad);
        right[i] = b;
    }
    if (!grad) { return -1; }
    opd_tensor *sum = opd_cat(opd_tensors_of(right, count), -1);
    if (sum && columns > count) {
        const int64_t pad[2] = {0, columns - count};
        sum = opd_constant_pad_nd(sum, opd_ints_of(pad, 2));
    }
    grads[0] = sum;
    grads[1] = opd_cat(opd_tensors_of(taus, count), -1);
    return grads[0] && grads[1] ? 0 : -1;
}
static int opdi_linalg_householder_product_backward(opd_backward_call *bw) {
    opd_tensor *grads[2];
    if (opdi_reflections_gradient(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), grads)) { return -1; }
    OPDI_BW_RETURN(0, grads[0]);
    OPDI_BW_RETURN(1, grads[1]);
    return 0;
}
/* opd_linalg_householder_product: the first columns of Q, given as the reflections that geqrf returns */
OPDI_OP(linalg_householder_product) {
    op->schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor";
    op->cpu = op->fake = opdi_linalg_householder_product_kernel;
    op->backward = opdi_linalg_householder_product_backward; op->save = "input, tau";
    op->vmap = opdi_solver_batch_second; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS;
    op->out = "linalg_householder_product.out";
    op->cases = "[4,3], [2]; [3,3], [3]; [2,3,2], [2,2]";
}
static int opdi_orgqr_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_linalg_householder_product(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
/* opd_orgqr: the same as linalg_householder_product */
OPDI_OP(orgqr) {
    op->schema = "orgqr(Tensor self, Tensor input2) -> Tensor";
    op->composite = opdi_orgqr_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "orgqr.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[4,3], [2]";
}

static int opdi_ormqr_check(const opd_tensor *input, const opd_tensor *tau, const opd_tensor *other, bool left) {
    if (input->ndim < 2) { return opd_fail(OPD_ERROR_SHAPE, "ormqr: input must have at least 2 dimensions."); }
    if (other->ndim < 2) { return opd_fail(OPD_ERROR_SHAPE, "ormqr: other must have at least 2 dimensions."); }
    const int dim = left ? -2 : -1;
    if (opd_size(other, dim) != opd_size(input, -2)) {
        return opd_fail(OPD_ERROR_SHAPE, "ormqr: the size of other at dim %d must equal that of input at dim -2", dim);
    }
    if (tau->ndim < 1 || opd_size(tau, -1) != OPDI_MIN(opd_size(input, -2), opd_size(input, -1))) {
        return opd_fail(OPD_ERROR_SHAPE, "ormqr: the last size of tau must equal the smaller of two sizes: other at "
                        "dim %d, and input at dim -1", dim);
    }
    bool same = other->ndim == input->ndim;
    for (int i = 0; same && i < input->ndim - 2; i++) { same = opdi_sizes(other)[i] == opdi_sizes(input)[i]; }
    if (!same) {
        return opd_fail(OPD_ERROR_SHAPE, "ormqr: other and input must have equal sizes, except for the last two");
    }
    return opdi_reflections_check(input, tau, "ormqr") || opdi_same_dtype(input, other) ||
        opdi_solver_check(input, "ormqr_cpu") ? -1 : 0;
}
static int opdi_ormqr_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *tau = opd_arg_tensor(call, 1), *other = opd_arg_tensor(call, 2);
    opdi_solver solver;
    opdi_results results;
    memset(&solver, 0, sizeof solver);
    solver.left = opd_arg_bool(call, 3);
    solver.turned = opd_arg_bool(call, 4);
    if (opdi_ormqr_check(input, tau, other, solver.left)) { return -1; }
    results.out[0] = opdi_columns_result(call, 0, opdi_sizes(other), other->ndim, OPDI_DTYPE(other));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    input = opdi_solver_dense(input);
    tau = opdi_solver_dense(tau);
    if (!input || !tau || opdi_copy(results.work[0], other)) { return -1; }
    solver.rows = opd_size(input, -2);
    solver.columns = opd_size(other, solver.left ? -1 : -2);
    solver.npivots = opd_size(input, -1);
    solver.count = opd_size(tau, -1);
    opdi_solver_data(&solver, 0, input, solver.rows * solver.npivots);
    opdi_solver_data(&solver, 1, tau, solver.count);
    opdi_solver_data(&solver, 2, results.work[0], solver.rows * solver.columns);
    return opdi_solver_run(&solver, opdi_batch_of(other),
                           4 * (double)solver.rows * (double)solver.columns * (double)solver.count, OPDI_DTYPE(other),
                           opdi_ormqr_one_f32, opdi_ormqr_one_f64, opdi_ormqr_one_c128) ? -1
                               : opdi_results_close(&results);
}
/* Computes the gradients of ormqr.  The gradient of `other` is grad multiplied by the conjugate transpose of the matrix
   that `other` was multiplied by.  The gradients of the reflections are computed as for linalg_householder_product, for
   a square Q. */
static int opdi_ormqr_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *tau = opd_bw_tensor(bw, 1),
        *other = opd_bw_tensor(bw, 2), *grads[2];
    const bool left = opdi_bw_bool(bw, 3), turned = opdi_bw_bool(bw, 4);
    OPDI_BW_RETURN(2, opd_ormqr_full(input, tau, grad, left, !turned));
    if (!opd_bw_needs(bw, 0) && !opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *sum = left ? opd_matmul(grad, opdi_mh(other)) : opd_matmul(opdi_mh(other), grad);
    if (turned) { sum = opdi_mh(sum); }
    const int64_t columns = opd_size(input, -1), rows = opd_size(input, -2), count = opd_size(tau, -1);
    const int64_t pad[2] = {0, rows - count};
    opd_tensor *square = opd_constant_pad_nd(opd_narrow(input, -1, 0, count), opd_ints_of(pad, 2));
    if (opdi_reflections_gradient(sum, square, tau, grads)) { return -1; }
    grads[0] = opd_narrow(grads[0], -1, 0, count);
    if (columns > count) {
        const int64_t more[2] = {0, columns - count};
        grads[0] = opd_constant_pad_nd(grads[0], opd_ints_of(more, 2));
    }
    OPDI_BW_RETURN(0, grads[0]);
    OPDI_BW_RETURN(1, grads[1]);
    return 0;
}
/* opd_ormqr: Q, given by reflections, times input3 or, if left is false, input3 times Q; transpose: with Q^H */
OPDI_OP(ormqr) {
    op->schema = "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor";
    op->cpu = op->fake = opdi_ormqr_kernel; op->backward = opdi_ormqr_backward; op->save = "self, input2, input3";
    op->vmap = opdi_solver_batch_second; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "ormqr.out";
    op->cases = "[3,2], [2], [3,4]; [3,3], [3], [2,3], False, True; [2,4,2], [2,2], [2,3,4], False";
}

/* Returns the number of a mode of linalg_qr: 0 for "reduced", 1 for "complete", 2 for "r".  On failure, returns -1 and
   sets an error. */
static int opdi_qr_mode(const char *mode) {
    const int which = strcmp(mode, "reduced") == 0 ? 0 : strcmp(mode, "complete") == 0 ? 1 : strcmp(mode, "r") == 0 ? 2
        : -1;
    return which >= 0 ? which
        : opd_fail(OPD_ERROR_ARGUMENT, "qr received unrecognized mode '%s' but expected one of 'reduced' (default), "
                   "'r', or 'complete'", mode);
}
static int opdi_linalg_qr_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const int mode = opdi_qr_mode(opd_arg_str(call, 1));
    const int64_t none = 0;
    opdi_results results;
    if (opdi_matrix_check(input, "linalg.qr") || opdi_float_check(input, "linalg.qr", false) || mode < 0 ||
        opdi_solver_check(input, "geqrf_cpu")) {
        return -1;
    }
    const int64_t rows = opd_size(input, -2), columns = opd_size(input, -1), count = OPDI_MIN(rows, columns);
    const int64_t wide = mode == 1 ? rows : count;
    results.out[0] = mode == 2 ? opd_result(call, 0, &none, 1, OPDI_DTYPE(input))
        : opdi_solver_result(call, 0, input, rows, wide, OPDI_DTYPE(input));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, wide, columns, OPDI_DTYPE(input)) : NULL;
    const int rc = opdi_results_open(&results, 2);
    if (rc) { return rc < 0 ? -1 : 0; }
    const opd_scalar_type dtype = opdi_solver_dtype(OPDI_DTYPE(input));
    opd_tensor *factors = opdi_own(opdi_tensor_make(opdi_sizes(input), NULL, input->ndim, dtype, OPD_CPU));
    int64_t sizes[OPD_MAX_DIMS];
    memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
    sizes[input->ndim - 2] = count;
    opd_tensor *tau = opdi_own(opdi_tensor_make(sizes, NULL, input->ndim - 1, dtype, OPD_CPU));
    if (!factors || !tau || opdi_geqrf_run(factors, tau, input)) { return -1; }
    opd_tensor *upper = opd_triu(opd_narrow(factors, -2, 0, wide), 0);
    if (!upper || opdi_copy(results.work[1], upper) || (mode != 2 && opdi_orgqr_run(results.work[0], factors, tau))) {
        return -1;
    }
    return opdi_results_close(&results);
}
/* Returns the gradient for matrices with rows >= columns: (gQ + Q s) R^-H.  gQ and gR are the gradients of Q and R.  s
   is the Hermitian matrix whose upper triangular part is that of gR R^H - Q^H gQ. */
static opd_tensor *opdi_qr_gradient(opd_tensor *q_grad, opd_tensor *r_grad, opd_tensor *q, opd_tensor *r) {
    opd_tensor *sum = NULL, *turned = opdi_mh(r);
    if (r_grad) { sum = opd_matmul(r_grad, turned); }
    if (q_grad) {
        opd_tensor *inner = opd_neg(opd_matmul(opdi_mh(q), q_grad));
        sum = opdi_plus(sum, inner);
    }
    sum = opdi_half_diagonal(opd_triu(sum, 0));
    sum = opd_matmul(q, opd_add(sum, opdi_mh(sum)));
    return opdi_by_triangle(turned, opdi_plus(q_grad, sum), false, false, false);
}
static int opdi_linalg_qr_backward(opd_backward_call *bw) {
    opd_tensor *q_grad = opd_bw_grad(bw, 0), *r_grad = opd_bw_grad(bw, 1), *q = opd_bw_result(bw, 0),
        *r = opd_bw_result(bw, 1), *parts[2];
    const int mode = opdi_qr_mode(opd_bw_value(bw, 1).u.s);
    if (!q_grad && !r_grad) { return 0; }
    if (mode == 2) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "The derivative of linalg.qr depends on Q, which is not computed when "
                        "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to differentiate through "
                        "linalg.qr.");
    }
    const int64_t rows = opd_size(q, -2), columns = opd_size(r, -1);
    if (mode == 1 && rows > columns) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "The QR decomposition is not differentiable when mode='complete' and "
                        "nrows > ncols.");
    }
    if (rows >= columns) { return opd_bw_return(bw, 0, opdi_qr_gradient(q_grad, r_grad, q, r)); }
    opd_tensor *left = opd_narrow(r, -1, 0, rows), *right = opd_narrow(r, -1, rows, columns - rows);
    if (!r_grad) { r_grad = opd_zeros_like(r); }
    opd_tensor *last = opd_narrow(r_grad, -1, rows, columns - rows);
    q_grad = opdi_plus(q_grad, opd_matmul(q, opd_matmul(right, opdi_mh(last))));
    parts[0] = opdi_qr_gradient(q_grad, opd_narrow(r_grad, -1, 0, rows), q, left);
    parts[1] = opd_matmul(q, last);
    return opd_bw_return(bw, 0, opd_cat(opd_tensors_of(parts, 2), -1));
}
/* opd_linalg_qr: Q and R with A = Q R; mode: "reduced", "complete" (square Q), "r" (only R) */
OPDI_OP(linalg_qr) {
    op->schema = "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)";
    op->cpu = op->fake = opdi_linalg_qr_kernel; op->backward = opdi_linalg_qr_backward; op->save = "Q, R";
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "linalg_qr.out(Q, R)";
    op->cases = "[4,3]; [3,3], 'complete'; [2,2,4]";
}
static int opdi_qr_kernel(opd_call *call) {
    opd_tensor *rets[2];
    return opd_linalg_qr_full(rets, opd_arg_tensor(call, 0), opd_arg_bool(call, 1) ? "reduced" : "complete") ||
        opd_return_tensor(call, rets[0]) ? -1 : opd_return_tensor(call, rets[1]);
}
/* opd_qr: linalg_qr; some: reduced, else complete */
OPDI_OP(qr) {
    op->schema = "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)";
    op->composite = opdi_qr_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "qr.Q(Q, R)";
    op->cases = "[4,3]; [2,4]";
}
