#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:equations  linear equations, inverses and determinants, computed from factorizations
//
//  Results have PyTorch's memory layout.  Each kernel runs the functions of >>op:factor on the matrices of a batch.
//  The backward functions call other operators: matrix products and triangular solves.
//----------------------------------------------------------------------------------------------------------------------

//== functions that all kernels use ====================================================================================

static void opdi_solver_range(void *ctx, int64_t begin, int64_t end) {
    opdi_solver *solver = (opdi_solver *)ctx;
    if (solver->lanes) {
        solver->lanes(solver, begin, end);
        return;
    }
    for (int64_t at = begin; at < end; at++) {
        if (solver->run(solver, at)) { OPDI_STORE(&solver->failed, 1); }
    }
}
/* Runs the solver on each of the `batch` matrices: the function `single` for float32, `twice` for float64, complex_one
   for complex numbers.  `work` is roughly the number of steps for one matrix.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_solver_run(opdi_solver *solver, int64_t batch, double work, opd_scalar_type dtype,
                                  int (*single)(const opdi_solver *, int64_t),
                                  int (*twice)(const opdi_solver *, int64_t),
                                  int (*complex_one)(const opdi_solver *, int64_t)) {
    solver->run = dtype == OPD_FLOAT64 ? twice : single;
    if (opd_dtype_is_complex(dtype)) {
        if (opdi_complex_left_out()) { return -1; }
        solver->run = complex_one;
    }
    solver->failed = 0;
    if (work >= 1e6 && batch < opd_threads()) { opdi_solver_range(solver, 0, batch); }
    else { opdi_parallel_for(batch, (int64_t)OPDI_MAX(1.0, 1e5 / (work + 100)), opdi_solver_range, solver); }
    return solver->failed ? opdi_buffer_fail() : 0;
}
OPDI_INTERNAL void opdi_solver_data(opdi_solver *solver, int which, const opd_tensor *tensor, int64_t step) {
    solver->data[which] = tensor->data;
    solver->step[which] = step * (tensor->numel > 0);
}
OPDI_INTERNAL double opdi_cube(int64_t n) { return (double)n * (double)n * (double)n; }

/* Checks that the tensor has at least two dims.  Returns 0, or -1 and sets PyTorch's error. */
OPDI_INTERNAL int opdi_matrix_check(const opd_tensor *tensor, const char *name) {
    return tensor->ndim >= 2 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "%s: The input tensor A must have at least 2 dimensions.", name);
}
OPDI_INTERNAL int opdi_square_check(const opd_tensor *tensor, const char *name) {
    if (opdi_matrix_check(tensor, name)) { return -1; }
    const int64_t rows = opd_size(tensor, -2), columns = opd_size(tensor, -1);
    return rows == columns ? 0
        : opd_fail(OPD_ERROR_SHAPE, "%s: A must be batches of square matrices, but they are %lld by %lld matrices",
                   name, (long long)rows, (long long)columns);
}
/* Checks that the dtype is a float or complex dtype and, if `halves` is true, that it is not a 16-bit float.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_float_check(const opd_tensor *tensor, const char *name, bool halves) {
    const opd_scalar_type dtype = opd_dtype(tensor);
    if (!opd_dtype_is_floating(dtype) && !opd_dtype_is_complex(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: Expected a floating point or complex tensor as input. Got %s", name,
                        opd_dtype_name(dtype));
    }
    return !halves || dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64 || opd_dtype_is_complex(dtype) ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: Low precision dtypes not supported. Got %s", name, opd_dtype_name(dtype));
}
/* Checks that the kernels are compiled for the tensor's dtype.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_solver_check(const opd_tensor *tensor, const char *kernel) {
    const opd_scalar_type dtype = opd_dtype(tensor);
    if (opd_dtype_is_complex(dtype) && opdi_complex_left_out()) { return -1; }
    return dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64 || dtype == OPD_COMPLEX64 || dtype == OPD_COMPLEX128 ? 0
        : opdi_dtype_fail(kernel, dtype);
}
/* Returns the dtype in which matrices of this dtype are factored: complex128 for all complex numbers. */
OPDI_INTERNAL opd_scalar_type opdi_solver_dtype(opd_scalar_type dtype) {
    return opd_dtype_is_complex(dtype) ? OPD_COMPLEX128 : dtype;
}
OPDI_INTERNAL opd_tensor *opdi_solver_dense(opd_tensor *tensor) {
    return opdi_dense_as(tensor, opdi_solver_dtype(OPDI_DTYPE(tensor)));
}
/* Makes result i of a kernel.  Its matrices are stored column by column, as in LAPACK and PyTorch.  On failure,
   returns NULL and sets an error; if there are too many elements, the error names the sizes of this result. */
OPDI_INTERNAL opd_tensor *opdi_columns_result(opd_call *call, int i, const int64_t *sizes, int ndim,
                                              opd_scalar_type dtype) {
    int64_t strides[OPD_MAX_DIMS];
    if (ndim < 2) { return opd_result(call, i, sizes, ndim, dtype); }
    strides[ndim - 2] = 1;
    strides[ndim - 1] = OPDI_MAX(sizes[ndim - 2], (int64_t)1);
    for (int dim = ndim - 3, last = ndim - 1; dim >= 0; last = dim--) {
        strides[dim] = (int64_t)((uint64_t)strides[last] * (uint64_t)OPDI_MAX(sizes[last], (int64_t)1));
    }
    return opd_result_strided(call, i, sizes, strides, ndim, dtype, opdi_call_device(call));
}
/* Makes result i of a kernel.  It has the batch dims of `like`, then dims of size `rows` and `columns`; a size of -1
   means that there is no such dim.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_solver_result(opd_call *call, int i, const opd_tensor *like, int64_t rows,
                                             int64_t columns, opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = like->ndim - 2;
    memcpy(sizes, opdi_sizes(like), (size_t)ndim * sizeof *sizes);
    if (rows >= 0) { sizes[ndim++] = rows; }
    if (columns >= 0) { sizes[ndim++] = columns; }
    return rows >= 0 && columns >= 0 ? opdi_columns_result(call, i, sizes, ndim, dtype)
        : opd_result(call, i, sizes, ndim, dtype);
}
/* Returns the product of all sizes except the last `less` ones. */
OPDI_INTERNAL int64_t opdi_matrices_of(const opd_tensor *tensor, int less) {
    int64_t count = 1;
    for (int i = 0; i < tensor->ndim - less; i++) { count *= opdi_sizes(tensor)[i]; }
    return count;
}
OPDI_INTERNAL int64_t opdi_batch_of(const opd_tensor *tensor) { return opdi_matrices_of(tensor, 2); }
OPDI_INTERNAL bool opdi_no_data(const opd_tensor *tensor) { return tensor->numel > 0 && !tensor->data; }

/* Prepares results->work: for each of the first `count` results, the memory in which a kernel computes it (see
   opdi_staging).  Returns 0, or 1 if the results have no data (fake tensors) and nothing must be computed, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_results_open(opdi_results *results, int count) {
    results->count = count;
    for (int i = 0; i < count; i++) { if (!results->out[i]) { return -1; } }
    for (int i = 0; i < count; i++) { if (opdi_no_data(results->out[i])) { return 1; } }
    bool wide = false;
    for (int i = 0; i < count; i++) { wide = wide || opdi_is_complex(results->out[i]); }
    for (int i = 0; i < count; i++) {
        const opd_scalar_type dtype = OPDI_DTYPE(results->out[i]);
        results->work[i] = opdi_staging(results->out[i], wide && dtype == OPD_FLOAT32 ? OPD_FLOAT64
                                        : opdi_solver_dtype(dtype));
        if (!results->work[i]) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL int opdi_results_close(opdi_results *results) {
    for (int i = 0; i < results->count; i++) {
        if (opdi_staging_store(results->out[i], results->work[i])) { return -1; }
    }
    return 0;
}
/* Returns matrices, expanded to the batch sizes batch[ndim - 2], as a contiguous tensor of the dtype in which they are
   factored; returns `tensor` itself if it already is such a tensor.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_matrices_as(opd_tensor *tensor, const int64_t *batch, int ndim) {
    int64_t sizes[OPD_MAX_DIMS];
    if (!tensor) { return NULL; }
    memcpy(sizes, batch, (size_t)(ndim - 2) * sizeof *sizes);
    sizes[ndim - 2] = opd_size(tensor, -2);
    sizes[ndim - 1] = opd_size(tensor, -1);
    return opdi_dense_as(opdi_expand_to(tensor, sizes, ndim), opdi_solver_dtype(OPDI_DTYPE(tensor)));
}
/* Returns the matrices in `tensor` for a kernel that only reads them.  Unlike opdi_matrices_as, does not copy real
   matrices that are stored by rows or by columns, if `tensor` has one matrix for the whole batch or one for each batch
   element.  Sets *step to the distance from one matrix to the next (0: one for all), and *turned to true if the
   matrices are stored by columns.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_matrices_read(opd_tensor *tensor, const int64_t *batch, int ndim, int64_t *step,
                                             bool *turned) {
    const int64_t square = opd_size(tensor, -1) * opd_size(tensor, -2);
    const bool one = tensor->numel == square, by_rows = opd_is_contiguous(tensor), pair = opdi_is_complex(tensor);
    opd_tensor *other = by_rows ? NULL : opdi_mt(tensor);
    bool same = tensor->ndim == ndim;
    for (int i = 0; same && i < ndim - 2; i++) { same = opdi_sizes(tensor)[i] == batch[i]; }
    *turned = other && opd_is_contiguous(other);
    *step = one ? 0 : square;
    if (!by_rows && !other) { return NULL; }
    if (!pair && (by_rows || *turned) && (one || same)) { return tensor; }
    *turned = false;
    *step = square;
    return opdi_matrices_as(tensor, batch, ndim);
}
/* Copies matrices into out, expanded to sizes[ndim].  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_matrices_into(opd_tensor *out, opd_tensor *tensor, const int64_t *sizes, int ndim) {
    opd_tensor *expanded = opdi_expand_to(tensor, sizes, ndim);
    return expanded ? opdi_copy(out, expanded) : -1;
}
/* Broadcasts the batch dims of two tensors.  Sets `sizes` to the batch dims of the result, and *ndim to their number
   plus 2, for the dims of the matrices.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batches_join(const opd_tensor *tensor, const opd_tensor *other, int64_t *sizes, int *ndim) {
    opd_tensor first = *tensor, second = *other;
    first.ndim = (uint8_t)(first.ndim - 2);
    second.ndim = (uint8_t)(second.ndim - 2);
    *ndim = 0;
    if (opdi_broadcast_into(sizes, ndim, &first) || opdi_broadcast_into(sizes, ndim, &second)) { return -1; }
    *ndim += 2;
    return *ndim <= OPD_MAX_DIMS ? 0 : opdi_dims_fail(*ndim);
}

/* Sets PyTorch's error for matrix number `at`, for which LAPACK returned `info` (not 0).  Returns -1.  If `single`, the
   tensor has no batch dims, and the message has no number. */
static int opdi_info_fail(const char *name, int64_t info, int64_t at, bool single) {
    char place[64] = "";
    if (!single) { (void)snprintf(place, sizeof place, "(Batch element %lld): ", (long long)at); }
    if (strstr(name, "inv")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %sThe diagonal element %lld is zero, the inversion could not be "
                        "completed because the input matrix is singular.", name, place, (long long)info);
    }
    if (strstr(name, "cholesky")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %sThe factorization could not be completed because the input is not "
                        "positive-definite (the leading minor of order %lld is not positive-definite).", name, place,
                        (long long)info);
    }
    const bool svd = strstr(name, "svd") != NULL;
    if (svd && info == -4) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %sThe algorithm failed to converge because the input matrix "
                        "contained non-finite values.", name, place);
    }
    if (svd || strstr(name, "eig") || strstr(name, "syevd")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %sThe algorithm failed to converge because the input matrix is "
                        "ill-conditioned or has too many repeated %s (error code: %lld).", name, place,
                        svd ? "singular values" : "eigenvalues", (long long)info);
    }
    if (strstr(name, "lu_factor")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %sU[%lld,%lld] is zero and using it on lu_solve would result in a "
                        "division by zero. If you still want to perform the factorization, consider calling "
                        "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)", name, place, (long long)info,
                        (long long)info);
    }
    return strstr(name, "solve")
        ? opd_fail(OPD_ERROR_ARGUMENT, "%s: %sThe solver failed because the input matrix is singular.", name, place)
        : opd_fail(OPD_ERROR_ARGUMENT, "%s: %sUnknown error code: %lld.", name, place, (long long)info);
}
/* Checks that info[count] are all 0.  Returns 0, or -1 and sets the error for the first matrix whose info is not 0. */
OPDI_INTERNAL int opdi_info_check(const char *name, const int32_t *info, int64_t count, bool single) {
    for (int64_t i = 0; i < count; i++) { if (info[i]) { return opdi_info_fail(name, info[i], i, single); } }
    return 0;
}
static int opdi__linalg_check_errors_kernel(opd_call *call) {
    opd_tensor *info = opd_arg_tensor(call, 0);
    if (opdi_no_data(info)) { return 0; }
    info = opdi_dense_as(info, OPD_INT32);
    return info ? opdi_info_check(opd_arg_str(call, 1), (const int32_t *)(const void *)info->data, info->numel,
                                  opd_arg_bool(call, 2)) : -1;
}
static int opdi__linalg_check_errors_batch(opd_call *call) {
    int dim;
    return opd__linalg_check_errors(opd_batch_arg(call, 0, &dim), opd_arg_str(call, 1), false);
}
/* opd__linalg_check_errors: fails with PyTorch's message for the operator api_name if any info is not 0 */
OPDI_OP(_linalg_check_errors) {
    op->schema = "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()";
    op->cpu = op->fake = opdi__linalg_check_errors_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi__linalg_check_errors_batch;
    op->cases = "[2]i1, 'linalg.inv', is_matrix=False";
}
OPDI_INTERNAL int opdi_errors_of(opd_tensor *info, const char *name, const opd_tensor *input) {
    return opd__linalg_check_errors(info, name, input->ndim == 2);
}

/* Returns true if op is the built-in operator number `number`. */
static bool opdi_is_builtin(const opd_op *op, opd_op_id number) {
    return op == OPDI_ACQUIRE(&opdi_registry.builtin[number]);
}
/* Returns true if the caller did not ask for result i; such a result has the size [0], without batch dims. */
static bool opdi_solver_left_out(const opd_call *call, int i) {
    const opd_op *const op = call->op;
    if (opdi_is_builtin(op, OPD_OP__linalg_eigh)) { return i == 1 && !opd_arg_bool(call, 2); }
    if (opdi_is_builtin(op, OPD_OP__linalg_svd)) { return i != 1 && !opd_arg_bool(call, 2); }
    if (opdi_is_builtin(op, OPD_OP_lu_unpack)) { return !opd_arg_bool(call, i ? 2 : 3); }
    return opdi_is_builtin(op, OPD_OP_linalg_qr) && i == 0 && strcmp(opd_arg_str(call, 1), "r") == 0;
}
/* Batches a solver: the examples become the first batch dim of the matrices, and all matrices get the same number of
   dims.  `vector` is the number of the argument that has one dim less than the matrices, or -1.  Returns 0, or -1 and
   sets an error. */
static int opdi_solver_batch_with(opd_call *call, int vector) {
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    int ndim = 0;
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_tensor *tensor = call->args[i].tag == OPD_TAG_TENSOR ? call->args[i].u.t : NULL;
        args[i] = call->args[i];
        if (tensor && tensor->ndim + (i == vector) < 2) { return opdi_batch_unfit(call); }
        if (tensor) { ndim = OPDI_MAX(ndim, (int)tensor->ndim + (i == vector)); }
    }
    for (int i = 0; i < call->op->nargs; i++) {
        int64_t sizes[OPD_MAX_DIMS + 1];
        int dim;
        if (args[i].tag != OPD_TAG_TENSOR) { continue; }
        opd_tensor *tensor = opd_batch_value(args[i].u.t, &dim);
        if (dim >= 0) { tensor = opd_batch_front(tensor, dim); }
        else if (tensor && tensor->ndim < OPD_MAX_DIMS) {
            sizes[0] = opd_batch_size();
            memcpy(sizes + 1, opdi_sizes(tensor), (size_t)tensor->ndim * sizeof *sizes);
            tensor = opdi_expand_to(tensor, sizes, tensor->ndim + 1);
        }
        args[i].u.t = opdi_batch_pad(tensor, ndim - (i == vector));
        if (!args[i].u.t) { return -1; }
    }
    if (opd_call_all(call->op, rets, args, call->op->nargs)) { return -1; }
    for (int i = 0; i < call->op->nrets; i++) {
        if (opd_batch_return(call, rets[i].u.t, opdi_solver_left_out(call, i) ? -1 : 0)) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL int opdi_solver_batch(opd_call *call) { return opdi_solver_batch_with(call, -1); }
OPDI_INTERNAL int opdi_solver_batch_second(opd_call *call) { return opdi_solver_batch_with(call, 1); }

/* Returns identity matrices of like's size and dtype. */
OPDI_INTERNAL opd_tensor *opdi_identity_like(opd_tensor *like) {
    const int64_t n = opd_size(like, -1);
    return opd_diag_embed(opd_new_ones(like, opd_ints_of(&n, 1)));
}
/* Returns the matrices with their diagonals halved. */
OPDI_INTERNAL opd_tensor *opdi_half_diagonal(opd_tensor *tensor) {
    opd_tensor *diagonal = opd_diagonal_full(tensor, 0, -2, -1);
    return opd_sub(tensor, opd_diag_embed(opd_mul_Scalar(diagonal, opd_value_double(0.5))));
}
/* Returns the conjugate transposes of the matrices. */
OPDI_INTERNAL opd_tensor *opdi_mh(opd_tensor *tensor) { return opdi_conj(opdi_mt(tensor)); }
/* Returns a copy of tensor in which matrices are stored column by column. */
static opd_tensor *opdi_by_columns(opd_tensor *tensor) {
    return opdi_mt(opd_clone_full(opdi_mt(tensor), opd_value_int(OPDI_FORMAT_CONTIGUOUS)));
}
/* Returns a^-1 b or, if `left` is false, b a^-1, for triangular matrices a: upper triangular if `upper`, with ones on
   the diagonal if `unit`. */
OPDI_INTERNAL opd_tensor *opdi_by_triangle(opd_tensor *a, opd_tensor *b, bool upper, bool left, bool unit) {
    return opd_linalg_solve_triangular_full(a, b, upper, left, unit);
}
/* Returns factor * a^-H, where `factor` has one number for each matrix a.  This is the gradient of factor *
   log(det(a)). */
OPDI_INTERNAL opd_tensor *opdi_times_inverse(opd_tensor *a, opd_tensor *factor) {
    opd_tensor *diagonal = opd_mul(opdi_identity_like(a), opd_unsqueeze(opd_unsqueeze(factor, -1), -1));
    return opd_linalg_solve(opdi_mh(a), diagonal);
}

//== Cholesky: linalg_cholesky_ex, cholesky_solve, cholesky_inverse ====================================================

static int opdi_linalg_cholesky_ex_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_solver solver;
    opdi_results results;
    if (opdi_square_check(input, "linalg.cholesky") || opdi_float_check(input, "linalg.cholesky", false) ||
        opdi_solver_check(input, "cholesky_cpu")) {
        return -1;
    }
    memset(&solver, 0, sizeof solver);
    const int64_t n = opd_size(input, -1), batch = opdi_batch_of(input);
    results.out[0] = opdi_solver_result(call, 0, input, n, n, OPDI_DTYPE(input));
    results.out[1] = results.out[0] ? opdi_solver_result(call, 1, input, -1, -1, OPD_INT32) : NULL;
    solver.upper = opd_arg_bool(call, 1);
    if (!solver.upper && results.out[1]) {        /* compute the upper factor of the transposed matrices instead */
        results.out[0] = opdi_mt(results.out[0]);
        input = opdi_mt(input);
        solver.upper = true;
        if (!input) { return -1; }
    }
    const int rc = opdi_results_open(&results, 2);
    if (rc) { return rc < 0 ? -1 : 0; }
    if (opdi_copy(results.work[0], input)) { return -1; }
    solver.rows = n;
    opdi_solver_data(&solver, 0, results.work[0], n * n);
    solver.info = (int32_t *)(void *)results.work[1]->data;
    if (opdi_solver_run(&solver, batch, opdi_cube(n) / 3, OPDI_DTYPE(input), opdi_cholesky_one_f32,
                        opdi_cholesky_one_f64, opdi_cholesky_one_c128) ||
        (opd_arg_bool(call, 2) && opdi_info_check("linalg.cholesky_ex", solver.info, batch, input->ndim == 2))) {
        return -1;
    }
    return opdi_results_close(&results);
}
/* Computes the gradient L^-H phi(L^H g) L^-1, made Hermitian, where g is the gradient of L.  phi(x) is the lower
   triangular part of x with its diagonal halved. */
static int opdi_linalg_cholesky_ex_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *factor = opd_bw_result(bw, 0);
    if (!grad) { return 0; }
    if (opdi_bw_bool(bw, 1)) {
        grad = opdi_mh(grad);
        factor = opdi_mh(factor);
    }
    opd_tensor *sum = opdi_half_diagonal(opd_tril(opd_matmul(opdi_mh(factor), grad), 0));
    sum = opd_mul_Scalar(opd_add(sum, opdi_mh(sum)), opd_value_double(0.5));
    sum = opdi_by_triangle(opdi_mh(factor), sum, true, true, false);
    return opd_bw_return(bw, 0, opdi_by_triangle(factor, sum, false, false, false));
}
/* opd_linalg_cholesky_ex: L with self = L L^H (upper: L^H); info is 0, or the order of the first non-positive minor */
OPDI_OP(linalg_cholesky_ex) {
    op->schema = "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor "
        "info)";
    op->cpu = op->fake = opdi_linalg_cholesky_ex_kernel; op->backward = opdi_linalg_cholesky_ex_backward;
    op->save = "L";
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "linalg_cholesky_ex.L(L, info)";
    op->cases = "[1,1]+; [2,1,1]+, upper=True, check_errors=True";
}
static int opdi_linalg_cholesky_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[2];
    return opd_linalg_cholesky_ex_full(rets, input, opd_arg_bool(call, 1), false) ||
        opdi_errors_of(rets[1], "linalg.cholesky", input) ? -1 : opd_return_tensor(call, rets[0]);
}
/* opd_linalg_cholesky: L with self = L L^H (upper: L^H); fails if self is not positive definite */
OPDI_OP(linalg_cholesky) {
    op->schema = "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor";
    op->composite = opdi_linalg_cholesky_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_cholesky.out";
    op->cases = "[1,1]+; [2,1,1]+, upper=True";
}
/* cholesky, an older name of linalg_cholesky: returns the lower factor or, if upper is true, its conjugate
   transpose. */
static int opdi_cholesky_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_linalg_cholesky_full(opd_arg_tensor(call, 0), opd_arg_bool(call, 1)));
}
/* opd_cholesky: the same as linalg_cholesky */
OPDI_OP(cholesky) {
    op->schema = "cholesky(Tensor self, bool upper=False) -> Tensor";
    op->composite = opdi_cholesky_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "cholesky.out";
    op->cases = "[1,1]+; [2,1,1]+, True";
}

/* Solves A x = b, where `input` is the Cholesky factor of A.  Copies b to result 0 of the call, and overwrites it there
   with x.  If `upper` is true, the factor is upper triangular.  Returns 0, or -1 and sets an error. */
static int opdi_cholesky_solved(opd_call *call, opd_tensor *b, opd_tensor *input, bool upper) {
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    opdi_solver solver;
    opdi_results results;
    memset(&solver, 0, sizeof solver);
    if (opdi_batches_join(b, input, sizes, &ndim)) { return -1; }
    const int64_t n = opd_size(input, -1), columns = opd_size(b, -1);
    sizes[ndim - 2] = n;
    sizes[ndim - 1] = columns;
    results.out[0] = opdi_columns_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    int64_t step;
    input = opdi_matrices_read(input, sizes, ndim, &step, &solver.columns_first);
    if (!input || opdi_matrices_into(results.work[0], b, sizes, ndim)) { return -1; }
    solver.rows = n;
    solver.columns = columns;
    solver.upper = upper;
    opdi_solver_data(&solver, 0, input, step);
    opdi_solver_data(&solver, 1, results.work[0], n * columns);
    return opdi_solver_run(&solver, opdi_batch_of(results.work[0]), (double)n * (double)n * 2 * (double)columns,
                           OPDI_DTYPE(b), opdi_cholesky_solve_one_f32, opdi_cholesky_solve_one_f64,
                           opdi_cholesky_solve_one_c128) ? -1
        : opdi_results_close(&results);
}
static int opdi_cholesky_solve_kernel(opd_call *call) {
    opd_tensor *b = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    if (b->ndim < 2 || input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "%s should have at least 2 dimensions, but has %d dimensions instead",
                        b->ndim < 2 ? "b" : "u", b->ndim < 2 ? b->ndim : input->ndim);
    }
    const int64_t n = opd_size(input, -1), rows = opd_size(input, -2);
    if (n != rows) {
        return opd_fail(OPD_ERROR_SHAPE, "A must be batches of square matrices, but they are %lld by %lld matrices",
                        (long long)rows, (long long)n);
    }
    if (opd_size(b, -2) != n) {
        return opd_fail(OPD_ERROR_SHAPE, "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by "
                        "%lld but each b matrix is %lld by %lld", (long long)n, (long long)n,
                        (long long)opd_size(b, -2),
                        (long long)opd_size(b, -1));
    }
    if (b->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected b and A to have the same dtype, but found b of type %s and A of "
                        "type %s instead.", opd_dtype_name(OPDI_DTYPE(b)), opd_dtype_name(OPDI_DTYPE(input)));
    }
    return opdi_solver_check(b, "cholesky_solve_cpu") ? -1
        : opdi_cholesky_solved(call, b, input, opd_arg_bool(call, 2));
}
/* Returns -(sum + sum^H) L, the gradient of the factor L of A = L L^H, where `sum` is minus the gradient of A.  If
   `upper` is true, returns the gradient of L^H instead. */
static opd_tensor *opdi_factor_gradient(opd_tensor *sum, opd_tensor *factor, bool upper) {
    sum = opd_add(sum, opdi_mh(sum));
    return opd_neg(upper ? opd_matmul(factor, sum) : opd_matmul(sum, factor));
}
static int opdi_cholesky_solve_backward(opd_backward_call *bw) {
    opd_tensor *factor = opd_bw_tensor(bw, 1);
    const bool upper = opdi_bw_bool(bw, 2);
    opd_tensor *grad = opd_cholesky_solve_full(opd_bw_grad(bw, 0), factor, upper);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(1, opdi_factor_gradient(opd_matmul(grad, opdi_mh(opd_bw_result(bw, 0))), factor, upper));
    return 0;
}
/* opd_cholesky_solve: solves A x = self, given the Cholesky factor input2 of A */
OPDI_OP(cholesky_solve) {
    op->schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor";
    op->cpu = op->fake = opdi_cholesky_solve_kernel; op->backward = opdi_cholesky_solve_backward;
    op->save = "input2, result(input2)";
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS;
    op->out = "cholesky_solve.out";
    op->cases = "[1,3], [1,1]+; [1,2], [2,1,1]+, True";
}
/* Computes (L L^H)^-1 by solving L L^H x = identity. */
static int opdi_cholesky_inverse_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_results results;
    opdi_solver solver;
    if (opdi_square_check(input, "cholesky_inverse") || opdi_solver_check(input, "cholesky_inverse_out_cpu")) {
        return -1;
    }
    memset(&solver, 0, sizeof solver);
    const int64_t n = opd_size(input, -1), batch = opdi_batch_of(input);
    results.out[0] = opdi_solver_result(call, 0, input, n, n, OPDI_DTYPE(input));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    opd_tensor *diagonal = opd_contiguous(opd_eq_Scalar(opd_diagonal_full(input, 0, -2, -1), opd_value_int(0)));
    for (int64_t i = 0; diagonal && i < diagonal->numel; i++) {
        if (((const bool *)(const void *)diagonal->data)[i]) {
            return opdi_info_fail("cholesky_inverse", i % n + 1, i / n, input->ndim == 2);
        }
    }
    solver.rows = solver.columns = n;
    solver.upper = opd_arg_bool(call, 1);
    input = opdi_solver_dense(input);
    if (!diagonal || !input || opdi_matrices_into(results.work[0], opdi_identity_like(input), opdi_sizes(input),
                                                   input->ndim)) {
        return -1;
    }
    opdi_solver_data(&solver, 0, input, n * n);
    opdi_solver_data(&solver, 1, results.work[0], n * n);
    return opdi_solver_run(&solver, batch, opdi_cube(n) * 2, OPDI_DTYPE(input), opdi_cholesky_solve_one_f32,
                           opdi_cholesky_solve_one_f64, opdi_cholesky_solve_one_c128) ? -1
                               : opdi_results_close(&results);
}
static int opdi_cholesky_inverse_backward(opd_backward_call *bw) {
    opd_tensor *inverse = opdi_mh(opd_bw_result(bw, 0));
    opd_tensor *sum = opd_matmul(inverse, opd_matmul(opd_bw_grad(bw, 0), inverse));
    return opd_bw_return(bw, 0, opdi_factor_gradient(sum, opd_bw_tensor(bw, 0), opdi_bw_bool(bw, 1)));
}
/* opd_cholesky_inverse: the inverse of A, given the Cholesky factor self of A */
OPDI_OP(cholesky_inverse) {
    op->schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor";
    op->cpu = op->fake = opdi_cholesky_inverse_kernel; op->backward = opdi_cholesky_inverse_backward;
    op->save = "self, result";
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->out = "cholesky_inverse.out";
    op->cases = "[1,1]+; [2,1,1]+, True";
}

//== triangular equations: linalg_solve_triangular, triangular_solve ===================================================

static const char *opdi_equation(bool left) { return left ? "AX = B" : "XA = B"; }
/* Checks that matrices tensor [.., n, n] fit b, which must be [.., n, columns] if `left`, else [.., columns, n].
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_equation_check(const opd_tensor *tensor, const opd_tensor *b, bool left, const char *name) {
    if (opd_size(tensor, -1) == opd_size(b, left ? -2 : -1)) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "%s: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)",
                    name, opdi_equation(left), (long long)opd_size(tensor, -2), (long long)opd_size(tensor, -1),
                    (long long)opd_size(b, -2), (long long)opd_size(b, -1));
}
OPDI_INTERNAL int opdi_b_check(const opd_tensor *b, const char *name) {
    return b->ndim >= 2 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "%s: The input tensor B must have at least 2 dimensions.", name);
}
static int opdi_linalg_solve_triangular_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    const bool left = opd_arg_bool(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    opdi_solver solver;
    opdi_results results;
    if (opdi_square_check(input, "linalg.solve_triangular") || opdi_b_check(b, "linalg.solve_triangular") ||
        opdi_equation_check(input, b, left, "linalg.solve_triangular") || opdi_same_dtype(input, b) ||
        opdi_solver_check(input, "triangular_solve_cpu") || opdi_batches_join(input, b, sizes, &ndim)) {
        return -1;
    }
    memset(&solver, 0, sizeof solver);
    solver.rows = opd_size(input, -1);
    solver.columns = opd_size(b, left ? -1 : -2);
    solver.upper = opd_arg_bool(call, 2);
    solver.left = left;
    solver.unit = opd_arg_bool(call, 4);
    sizes[ndim - 2] = opd_size(b, -2);
    sizes[ndim - 1] = opd_size(b, -1);
    results.out[0] = opdi_columns_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    const int rc = opdi_results_open(&results, 1);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    int64_t step;
    input = opdi_matrices_read(input, sizes, ndim, &step, &solver.columns_first);
    if (!input || opdi_matrices_into(results.work[0], b, sizes, ndim)) { return -1; }
    opdi_solver_data(&solver, 0, input, step);
    opdi_solver_data(&solver, 1, results.work[0], solver.rows * solver.columns);
    return opdi_solver_run(&solver, opdi_batch_of(results.work[0]),
                           (double)solver.rows * (double)solver.rows * (double)solver.columns, OPDI_DTYPE(b),
                           opdi_triangle_one_f32, opdi_triangle_one_f64, opdi_triangle_one_c128) ? -1
        : opdi_results_close(&results);
}
static int opdi_linalg_solve_triangular_backward(opd_backward_call *bw) {
    const bool upper = opdi_bw_bool(bw, 2), left = opdi_bw_bool(bw, 3), unit = opdi_bw_bool(bw, 4);
    opd_tensor *grad = opdi_by_triangle(opdi_mt(opd_bw_tensor(bw, 0)), opd_bw_grad(bw, 0), !upper, left, unit);
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *turned = opdi_mt(opd_bw_result(bw, 0));
        opd_tensor *sum = opd_neg(left ? opd_matmul(grad, turned) : opd_matmul(turned, grad));
        sum = upper ? opd_triu(sum, unit) : opd_tril(sum, -(int64_t)unit);
        if (opd_bw_return(bw, 0, sum)) { return -1; }
    }
    OPDI_BW_RETURN(1, grad);
    return 0;
}
/* opd_linalg_solve_triangular: solves self x = B or, if left is false, x self = B, for a triangular matrix self */
OPDI_OP(linalg_solve_triangular) {
    op->schema = "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
        "unitriangular=False) -> Tensor";
    op->cpu = op->fake = opdi_linalg_solve_triangular_kernel; op->backward = opdi_linalg_solve_triangular_backward;
    op->save = "self, result(self)";
    op->vmap = opdi_solver_batch;
    op->out = "linalg_solve_triangular.out";
    op->cases = "[3,3]g, [3,2], upper=True; [2,2]g, [3,2,2], upper=False, unitriangular=True; [2,3,3]g, [4,3], "
        "upper=True, left=False; [3,3]g, [2,3], upper=False, left=False";
}
static int opdi_triangular_solve_kernel(opd_call *call) {
    opd_tensor *b = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    const bool upper = opd_arg_bool(call, 2), turned = opd_arg_bool(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    if (b->ndim < 2 || input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "triangular_solve: Expected %s to have at least 2 dimensions, but it "
                        "has %d dimensions instead", b->ndim < 2 ? "b" : "A", b->ndim < 2 ? b->ndim : input->ndim);
    }
    const int64_t rows = opd_size(input, -2), n = opd_size(input, -1);
    if (n != rows) {
        return opd_fail(OPD_ERROR_SHAPE, "A must be batches of square matrices, but they are %lld by %lld matrices",
                        (long long)rows, (long long)n);
    }
    if (opd_size(b, -2) != n) {
        return opd_fail(OPD_ERROR_SHAPE, "Incompatible matrix sizes for triangular_solve: each A matrix is %lld by "
                        "%lld but each b matrix is %lld by %lld", (long long)n, (long long)n,
                        (long long)opd_size(b, -2),
                        (long long)opd_size(b, -1));
    }
    if (opdi_batches_join(b, input, sizes, &ndim)) { return -1; }
    sizes[ndim - 2] = sizes[ndim - 1] = n;
    return opd_return_tensor(call, opdi_by_triangle(turned ? opdi_mt(input) : input, b, upper != turned, true,
                                                    opd_arg_bool(call, 4))) ? -1
        : opd_return_tensor(call, opdi_by_columns(opdi_expand_to(input, sizes, ndim)));
}
/* opd_triangular_solve: solves A x = self for a triangular matrix A */
OPDI_OP(triangular_solve) {
    op->schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
        "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)";
    op->composite = opdi_triangular_solve_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "triangular_solve.X(X, M)";
    op->cases = "[3,2], [3,3]g; [3,2], [3,3]g, False, True, True";
}
