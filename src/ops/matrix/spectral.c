#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:spectral  eigenvalues of Hermitian matrices, and singular values
//
//  Reflections first reduce a matrix to a tridiagonal one (eigenvalues) or to a bidiagonal one (singular values);
//  rotations with shifts then make it diagonal.  The rotations of a sweep are recorded.  Then they are applied to the
//  rows of the transposed vectors; the columns are divided among the threads.  This section uses >>op:equations.
//----------------------------------------------------------------------------------------------------------------------

/* Rotations of rows first + i and first + i + 1 for i = 0 .. count - 1, in this order or, if `down`, in reverse
   order. */
typedef struct opdi_rotations {
    void *rows;                                   /* [.., width], of which columns [columns, width) are not used */
    int64_t width, columns, first, count;
    bool down;
    const double *turns;                          /* [count, 2]: cosine and sine */
} opdi_rotations;
/* A step of the reduction of a symmetric matrix a [n, width] to a tridiagonal matrix.  v, w, next and out [width] are
   vectors.  Elements of all arrays beyond column n are 0. */
typedef struct opdi_symmetric {
    void *a, *out;
    const void *v, *w, *next;
    int64_t first, n, width;
} opdi_symmetric;
static void opdi_symmetric_step_plain_f32(const opdi_symmetric *step);
static void opdi_symmetric_step_plain_f64(const opdi_symmetric *step);
#if defined(OPDI_VECTORS)
OPDI_AVX2 static void opdi_symmetric_step_avx2_f32(const opdi_symmetric *step);
OPDI_AVX2 static void opdi_symmetric_step_avx2_f64(const opdi_symmetric *step);
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_symmetric_step_avx512_f32(const opdi_symmetric *step);
OPDI_AVX512 static void opdi_symmetric_step_avx512_f64(const opdi_symmetric *step);
#endif
static void opdi_rotate_piece_plain_f32(const opdi_rotations *all, int64_t from, int64_t to);
static void opdi_rotate_piece_plain_f64(const opdi_rotations *all, int64_t from, int64_t to);
#if defined(OPDI_VECTORS)
OPDI_AVX2 static void opdi_rotate_piece_avx2_f32(const opdi_rotations *all, int64_t from, int64_t to);
OPDI_AVX2 static void opdi_rotate_piece_avx2_f64(const opdi_rotations *all, int64_t from, int64_t to);
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_rotate_piece_avx512_f32(const opdi_rotations *all, int64_t from, int64_t to);
OPDI_AVX512 static void opdi_rotate_piece_avx512_f64(const opdi_rotations *all, int64_t from, int64_t to);
#endif
/* Returns hypot(x, y), but calls hypot, which is several times slower, only if the squares overflow or underflow. */
OPDI_ALWAYS double opdi_length(double x, double y) {
    const double sum = x * x + y * y;
    return sum > 1e-280 && sum < 1e280 ? sqrt(sum) : opdi_hypot_f64(x, y);
}
/* Returns the length of (x, y) with the sign of x, for a rotation that turns (x, y) to (length, 0).  Then the cosine is
   not negative.  So a rotation by rounding errors does not change the signs of vectors: these are the same for
   matrices that are almost the same. */
OPDI_ALWAYS double opdi_turned_length(double x, double y) {
    return x < 0 ? -opdi_length(x, y) : opdi_length(x, y);
}
static void opdi_rotate_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_rotate_f64(void *ctx, int64_t begin, int64_t end);
static int64_t opdi_ql_f64(int64_t n, double *d, double *e, double *rows, int64_t wide, double *turns);
static void opdi_sort_rows_f64(int64_t n, double *values, double *rows, double *other, int64_t width, bool down);
static int64_t opdi_svd_values_f64(int64_t n, int64_t wide, double *d, double *e, double *left, double *right,
                                   double *turns);
OPDI_SOLVER_FN(eigh_one)
OPDI_SOLVER_FN(svd_one)
#include "../../typed/f32.h"
#include "rotations.typed.h"
#include "symmetric_eig_and_svd.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f32_avx2.h"
#include "rotations.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f32_avx512.h"
#include "rotations.typed.h"
#endif
#include "../../typed/f64.h"
#include "rotations.typed.h"
#include "symmetric_eig_and_svd.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f64_avx2.h"
#include "rotations.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f64_avx512.h"
#include "rotations.typed.h"
#endif
#include "../../typed/end.h"
OPDI_COLD_BEGIN

//== Hermitian matrices, and singular values of complex matrices =======================================================
//
//  After the reflections, the numbers on the diagonals are real.  So the functions for real matrices compute the values
//  and the rotations of the vectors; then the reflections are applied to the vectors.

/* Returns the largest absolute value of the real and imaginary parts in a [count].  If one of them is NaN or infinite,
   returns NaN or infinity. */
OPDI_INTERNAL double opdi_complex_largest(const opdi_complex *a, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double size = opdi_complex_span(a[i]);
        if (size > most || isnan(size)) { most = size; }
        if (isnan(most)) { return most; }
    }
    return most;
}
/* Reduces a Hermitian matrix a [n, n], of which both triangular parts are stored, to a tridiagonal matrix with real
   diagonal d [n] and real off-diagonal e [n - 1].  Stores the vector of reflection i, which changes rows and columns
   from i + 1 on, in column i of a, and its factor in tau [n].  scratch [2 n] is scratch memory. */
static void opdi_complex_tridiagonal(int64_t n, opdi_complex *a, double *d, double *e, opdi_complex *tau,
                                     opdi_complex *scratch) {
    opdi_complex *v = scratch, *w = scratch + n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t rest = n - i - 1;
        opdi_complex *const below = a + (i + 1) * n + i, *const square = below + 1;
        opdi_complex dot = opdi_complex_make(0, 0);
        d[i] = a[i * n + i].re;
        if (rest == 0) { return; }
        tau[i] = opdi_complex_reflection(rest, below, n);
        e[i] = below[0].re;
        if (opdi_complex_zero(tau[i])) { continue; }
        for (int64_t j = 0; j < rest; j++) { v[j] = j ? below[j * n] : opdi_complex_make(1, 0); }
        for (int64_t j = 0; j < rest; j++) {
            opdi_complex sum = opdi_complex_make(0, 0);
            for (int64_t k = 0; k < rest; k++) {
                sum = opdi_complex_add(sum, opdi_complex_mul(square[j * n + k], v[k]));
            }
            w[j] = opdi_complex_mul(tau[i], sum);
            dot = opdi_complex_add(dot, opdi_complex_mul(opdi_complex_conj(w[j]), v[j]));
        }
        dot = opdi_complex_mul(opdi_complex_times(0.5, tau[i]), dot);
        for (int64_t j = 0; j < rest; j++) { w[j] = opdi_complex_sub(w[j], opdi_complex_mul(dot, v[j])); }
        for (int64_t j = 0; j < rest; j++) {
            for (int64_t k = 0; k < rest; k++) {
                opdi_complex *place = square + j * n + k;
                *place = opdi_complex_sub(*place, opdi_complex_mul(v[j], opdi_complex_conj(w[k])));
                *place = opdi_complex_sub(*place, opdi_complex_mul(w[j], opdi_complex_conj(v[k])));
            }
        }
    }
}
/* Computes the eigenvalues data[1] (double) of the complex Hermitian matrix data[0] [n, n] and, if solver->vectors is
   set, the eigenvectors data[2] [n, n].  Reads only one triangular part.  Returns 0, or -1 if memory runs out. */
static int opdi_eigh_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    opdi_cblock from = opdi_cblock_at(solver, 0, at, n);
    const opdi_cblock to = opdi_cblock_at(solver, 2, at, n);
    const size_t size = (size_t)(n * n + 4 * n + 4) * sizeof(double) + (size_t)(n * n + 3 * n) * sizeof(opdi_complex);
    opdi_complex *const a = (opdi_complex *)opdi_alloc(size);
    if (!a) { return -1; }
    opdi_complex *const tau = a + n * n, *const scratch = tau + n;
    double *const d = (double *)(void *)(scratch + 2 * n), *const e = d + n, *const turns = e + n;
    double *const rows = solver->vectors ? turns + 2 * n + 4 : NULL;
    double *const values = (double *)opdi_solver_at(solver, 1, at, sizeof(double));
    if (solver->upper) { from = opdi_cblock_conj(opdi_cblock_transposed(from)); }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            a[i * n + j] = opdi_cblock_get(&from, i, j);
            if (i == j) { a[i * n + j].im = 0; }
            a[j * n + i] = opdi_complex_conj(a[i * n + j]);
        }
    }
    const double most = opdi_complex_largest(a, n * n);
    const bool finite = most <= DBL_MAX;
    for (int64_t i = 0; finite && most > 0 && i < n * n; i++) {
        a[i] = opdi_complex_make(a[i].re / most, a[i].im / most);
    }
    if (finite) { opdi_complex_tridiagonal(n, a, d, e, tau, scratch); }
    for (int64_t i = 0; rows && i < n * n; i++) { rows[i] = i % (n + 1) == 0; }
    const int64_t info = finite ? opdi_ql_f64(n, d, e, rows, n, turns) : OPDI_MAX(n - 1, (int64_t)1);
    solver->info[at] = (int32_t)info;
    if (!info) {
        opdi_sort_rows_f64(n, d, rows, NULL, n, false);
        for (int64_t i = 0; i < n; i++) { values[i] = d[i] * most; }
        for (int64_t i = 0; rows && i < n * n; i++) { to.at[i] = opdi_complex_make(rows[i % n * n + i / n], 0); }
    }
    if (!info && rows && n > 1) {
        opdi_complex_reflect_all(n - 1, n, n - 1, opdi_cblock_of(a + n, n, 1), tau, opdi_cblock_part(to, 1, 0), false,
                                 false);
    }
    opdi_free(a, size);
    return 0;
}

/* The working memory of svd_one_c128 for a matrix [high, n]; a matrix with more columns than rows is transposed first.
   left and right [n, n] are the transposed singular vectors of the real bidiagonal matrix, or NULL. */
typedef struct opdi_csvd {
    int64_t high, n, wide;                        /* wide: number of left vectors */
    opdi_complex *w, *a, *tau, *first, *second;   /* [high, n], [n, n], three times [n] */
    double *d, *e, *turns, *left, *right;
} opdi_csvd;
/* Factors w = Q R.  Copies R to a and reduces it there to a bidiagonal matrix, which has d on the diagonal and e above
   it.  The reflections of columns are stored below the diagonal of a, the reflections of rows right of it. */
static void opdi_csvd_reduce(const opdi_csvd *svd) {
    const int64_t n = svd->n;
    opdi_complex_geqrf(svd->high, n, opdi_cblock_of(svd->w, n, 1), svd->tau);
    for (int64_t i = 0; i < n * n; i++) { svd->a[i] = i % n >= i / n ? svd->w[i] : opdi_complex_make(0, 0); }
    for (int64_t i = 0; i < n; i++) {
        const int64_t rest = n - i - 1;
        opdi_complex *place = svd->a + i * n + i, *row = place + 1;
        svd->first[i] = opdi_complex_reflection(rest + 1, place, n);
        svd->d[i] = place->re;
        svd->second[i] = opdi_complex_make(0, 0);
        if (rest == 0) { return; }
        opdi_complex_reflect(rest + 1, rest, opdi_cblock_of(place, n, 1), opdi_complex_conj(svd->first[i]),
                             opdi_cblock_of(row, n, 1));
        for (int64_t j = 0; j < rest; j++) { row[j] = opdi_complex_conj(row[j]); }
        svd->second[i] = opdi_complex_reflection(rest, row, 1);
        svd->e[i] = row->re;
        opdi_complex_reflect(rest, rest, opdi_cblock_conj(opdi_cblock_of(row, 1, n)), svd->second[i],
                             opdi_cblock_of(row + n, 1, n));
    }
}
/* Writes the left singular vectors to big [high, wide], and the conjugate transpose of the right singular vectors to
   inner [n, n]. */
static void opdi_csvd_write(const opdi_csvd *svd, opdi_cblock big, opdi_cblock inner) {
    const int64_t n = svd->n;
    for (int64_t i = 0; i < svd->high; i++) {
        for (int64_t j = 0; j < svd->wide; j++) {
            const double value = i < n && j < n ? svd->left[j * n + i] : (double)(i == j);
            opdi_cblock_put(&big, i, j, opdi_complex_make(value, 0));
        }
    }
    for (int64_t i = 0; i < n * n; i++) {
        opdi_cblock_put(&inner, i / n, i % n, opdi_complex_make(svd->right[i], 0));
    }
    opdi_complex_reflect_all(n, n, n, opdi_cblock_of(svd->a, n, 1), svd->first, big, false, false);
    opdi_complex_reflect_all(svd->high, svd->wide, n, opdi_cblock_of(svd->w, n, 1), svd->tau, big, false, false);
    if (n > 1) {
        opdi_complex_reflect_all(n - 1, n, n - 1, opdi_cblock_conj(opdi_cblock_of(svd->a + 1, 1, n)), svd->second,
                                 opdi_cblock_part(opdi_cblock_transposed(inner), 1, 0), false, true);
    }
}
static int opdi_csvd_alloc(opdi_csvd *svd, bool vectors, size_t *size) {
    const int64_t n = svd->n;
    *size = (size_t)(svd->high * n + n * n + 3 * n) * sizeof(opdi_complex) +
        (size_t)(2 * n * n + 6 * n + 4) * sizeof(double);
    svd->w = (opdi_complex *)opdi_alloc(*size);
    if (!svd->w) { return -1; }
    svd->a = svd->w + svd->high * n;
    svd->tau = svd->a + n * n;
    svd->first = svd->tau + n;
    svd->second = svd->first + n;
    svd->d = (double *)(void *)(svd->second + n);
    svd->e = svd->d + n;
    svd->turns = svd->e + n;
    svd->left = vectors ? svd->turns + 4 * n + 4 : NULL;
    svd->right = vectors ? svd->left + n * n : NULL;
    for (int64_t i = 0; vectors && i < n * n; i++) { svd->left[i] = svd->right[i] = i % (n + 1) == 0; }
    return 0;
}
/* Computes the singular values data[1] (double) of the complex matrix data[0] [rows, columns] and, if solver->vectors
   is set, U (data[2]) and V^H (data[3]).  U and V^H are square if solver->left is set.  Returns 0, or -1 if memory runs
   out. */
static int opdi_svd_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t rows = solver->rows, columns = solver->columns, n = OPDI_MIN(rows, columns);
    const opdi_cblock from = opdi_cblock_at(solver, 0, at, columns);
    double *const values = (double *)opdi_solver_at(solver, 1, at, sizeof(double));
    opdi_csvd svd;
    size_t size;
    svd.high = OPDI_MAX(rows, columns);
    svd.n = n;
    svd.wide = solver->left && solver->vectors ? svd.high : n;
    solver->info[at] = 0;
    if (n == 0 && svd.wide == 0) { return 0; }
    const double most = opdi_complex_largest(from.at, rows * columns), scale = most > 0 ? most : 1;
    if (!(most <= DBL_MAX)) {
        solver->info[at] = -4;                         /* the value that LAPACK returns */
        return 0;
    }
    if (opdi_csvd_alloc(&svd, solver->vectors, &size)) { return -1; }
    const opdi_cblock tall = rows >= columns ? from : opdi_cblock_transposed(from);
    for (int64_t i = 0; i < svd.high * n; i++) {
        const opdi_complex value = opdi_cblock_get(&tall, i / n, i % n);
        svd.w[i] = opdi_complex_make(value.re / scale, value.im / scale);
    }
    opdi_csvd_reduce(&svd);
    solver->info[at] = (int32_t)opdi_svd_values_f64(n, n, svd.d, svd.e, svd.left, svd.right, svd.turns);
    if (!solver->info[at]) {
        opdi_sort_rows_f64(n, svd.d, svd.left, svd.right, n, true);
        for (int64_t i = 0; i < n; i++) { values[i] = svd.d[i] * scale; }
    }
    if (!solver->info[at] && solver->vectors) {
        const opdi_cblock u = opdi_cblock_at(solver, 2, at, solver->left ? rows : n);
        const opdi_cblock v = opdi_cblock_at(solver, 3, at, columns);
        if (rows >= columns) { opdi_csvd_write(&svd, u, v); }
        else { opdi_csvd_write(&svd, opdi_cblock_transposed(v), opdi_cblock_transposed(u)); }
    }
    opdi_free(svd.w, size);
    return 0;
}

//== eigenvalues of symmetric matrices: _linalg_eigh ===================================================================

static int opdi__linalg_eigh_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const char *triangle = opd_arg_str(call, 1);
    const bool vectors = opd_arg_bool(call, 2), lower = *triangle == 'L' || *triangle == 'l';
    const int64_t none = 0;
    opdi_solver solver;
    opdi_results results;
    if (opdi_square_check(input, "linalg.eigh") || opdi_solver_check(input, "linalg_eigh_cpu")) { return -1; }
    if ((!lower && *triangle != 'U' && *triangle != 'u') || triangle[1]) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected UPLO argument to be 'L' or 'U', but got %s", triangle);
    }
    memset(&solver, 0, sizeof solver);
    const int64_t n = opd_size(input, -1), batch = opdi_batch_of(input);
    results.out[0] = opdi_solver_result(call, 0, input, n, -1, (opd_scalar_type)opdi_real_dtype(input->dtype));
    results.out[1] = !results.out[0] ? NULL : vectors ? opdi_solver_result(call, 1, input, n, n, OPDI_DTYPE(input))
        : opd_result(call, 1, &none, 1, OPDI_DTYPE(input));
    const int rc = opdi_results_open(&results, 2);
    if (rc || results.out[0]->numel == 0) { return rc < 0 ? -1 : 0; }
    opd_tensor *info = opdi_new_int32(input, -1);
    input = opdi_solver_dense(input);
    if (!info || !input) { return -1; }
    solver.rows = n;
    solver.upper = !lower;
    solver.vectors = vectors;
    solver.info = (int32_t *)(void *)info->data;
    opdi_solver_data(&solver, 0, input, n * n);
    opdi_solver_data(&solver, 1, results.work[0], n);
    opdi_solver_data(&solver, 2, results.work[1], n * n);
    return opdi_solver_run(&solver, batch, 10 * opdi_cube(n), OPDI_DTYPE(input), opdi_eigh_one_f32,
                           opdi_eigh_one_f64, opdi_eigh_one_c128) ||
        opdi_info_check("linalg.eigh", solver.info, batch, input->ndim == 2) ? -1 : opdi_results_close(&results);
}
/* Returns the differences x_j - x_i of the numbers in the last dim, as a matrix (i, j) with ones on its diagonal. */
static opd_tensor *opdi_gaps(opd_tensor *x) {
    opd_tensor *const column = opd_unsqueeze(x, -2), *gaps = opd_sub(column, opd_unsqueeze(x, -1));
    return opd_add(gaps, opdi_identity_like(gaps));
}
/* Fails if a gradient depends on the phase of complex eigenvectors, which is arbitrary.  `diagonal` is the diagonal of
   V^H gV, whose imaginary part must be 0.  Returns 0, or -1 and sets an error that names the function `name`. */
OPDI_INTERNAL int opdi_phase_check(opd_tensor *diagonal, const char *name) {
    char text[320];
    (void)snprintf(text, sizeof text, "%s: The eigenvectors in the complex case are specified up to multiplication by "
                   "e^{i phi}. The specified loss function depends on this quantity, so it is ill-defined.", name);
    opd_tensor *turns = opd_abs(opd_imag(diagonal));
    return opd_assert_async_msg(opd_all(opd_le_Scalar(turns, opd_value_double(0.01))), text);
}
/* Computes the gradient V (diag(gL) + skew(V^H gV) / gaps) V^H with skew(x) = (x - x^H) / 2.  V and L are the
   eigenvectors and eigenvalues, gV and gL their gradients.  Eigenvectors can only rotate, so only the skew part of V^H
   gV counts. */
static int opdi__linalg_eigh_backward(opd_backward_call *bw) {
    opd_tensor *value_grad = opd_bw_grad(bw, 0), *grad = opd_bw_grad(bw, 1), *rets[2], *sum = NULL;
    rets[0] = opd_bw_result(bw, 0);
    rets[1] = opd_bw_result(bw, 1);
    if (!value_grad && !grad) { return 0; }
    if (opd_bw_value(bw, 2).u.i == 0 &&
        opd__linalg_eigh_full(rets, opd_bw_tensor(bw, 0), opd_bw_value(bw, 1).u.s, true)) {
        return -1;
    }
    opd_tensor *turned = opdi_mh(rets[1]);
    if (grad && opd_bw_value(bw, 2).u.i) {
        sum = opd_matmul(turned, grad);
        opd_tensor *diagonal = opd_diagonal_full(sum, 0, -2, -1);
        if (opdi_is_complex(sum) && opdi_phase_check(diagonal, "linalg_eigh_backward")) { return -1; }
        sum = opd_sub(sum, opd_diag_embed(diagonal));
        opd_tensor *const scaled = opdi_muls(opd_sub(sum, opdi_mh(sum)), 0.5);
        sum = opd_div(scaled, opdi_gaps(rets[0]));
    }
    if (value_grad && !sum) { sum = opd_mul(rets[1], opd_unsqueeze(value_grad, -2)); }
    else if (sum) { sum = opd_matmul(rets[1], value_grad ? opd_add(sum, opd_diag_embed(value_grad)) : sum); }
    return sum || !opd_ok() ? opd_bw_return(bw, 0, opd_matmul(sum, turned)) : 0;
}
/* Computes the tangents of the eigenvalues L and the eigenvectors V.  With X = V^H dA V, made Hermitian: dL = diag(X),
   and dV = V (X / gaps), with 0 for the diagonal of X / gaps. */
static int opdi__linalg_eigh_jvp(opd_jvp_call *jv) {
    const bool given = opd_jvp_value(jv, 2).u.i != 0;
    opd_tensor *tangent = opd_jvp_tangent(jv, 0), *rets[2];
    for (int i = 0; i < 2; i++) { rets[i] = opd_jvp_result(jv, i); }
    if (!tangent || (!given && opd__linalg_eigh_full(rets, opd_jvp_tensor(jv, 0), opd_jvp_value(jv, 1).u.s, true))) {
        return -1;
    }
    opd_tensor *const turned = opdi_mh(rets[1]), *inner = opd_matmul(turned, opd_matmul(tangent, rets[1]));
    inner = opdi_muls(opd_add(inner, opdi_mh(inner)), 0.5);
    opd_tensor *diagonal = opd_diagonal_full(inner, 0, -2, -1);
    if (opd_jvp_return(jv, 0, opd_clone(opdi_is_complex(diagonal) ? opd_real(diagonal) : diagonal))) { return -1; }
    opd_tensor *const difference = opd_sub(inner, opd_diag_embed(diagonal));
    inner = opd_div(difference, opdi_gaps(rets[0]));
    return given ? opd_jvp_return(jv, 1, opd_matmul(rets[1], inner)) : 0;
}
/* opd__linalg_eigh: eigenvalues, ascending, and eigenvectors as columns; reads only the triangular part UPLO ("L",
   "U") */
OPDI_OP(_linalg_eigh) {
    op->schema = "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor "
        "eigenvectors)";
    op->cpu = op->fake = opdi__linalg_eigh_kernel; op->backward = opdi__linalg_eigh_backward;
    op->save = "A, eigenvalues, eigenvectors"; op->jvp = opdi__linalg_eigh_jvp;
    op->vmap = opdi_solver_batch; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "_linalg_eigh.eigenvalues(eigenvalues, eigenvectors)";
    op->cases = "[1,1]; [2,1,1], 'U'; [1,1], 'L', False";
}
static int opdi_linalg_eigh_kernel(opd_call *call) {
    opd_tensor *rets[2];
    return opd__linalg_eigh_full(rets, opd_arg_tensor(call, 0), opd_arg_str(call, 1), true) ||
        opd_return_tensor(call, rets[0]) ? -1 : opd_return_tensor(call, rets[1]);
}
static int opdi_linalg_eigvalsh_kernel(opd_call *call) {
    opd_tensor *rets[2];
    return opd__linalg_eigh_full(rets, opd_arg_tensor(call, 0), opd_arg_str(call, 1), false) ? -1
        : opd_return_tensor(call, rets[0]);
}
/* opd_linalg_eigh: eigenvalues, in ascending order, and eigenvectors of a symmetric or Hermitian matrix */
OPDI_OP(linalg_eigh) {
    op->schema = "linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)";
    op->composite = opdi_linalg_eigh_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_eigh.eigvals(eigvals, eigvecs)";
    op->cases = "[1,1]";
}
/* opd_linalg_eigvalsh: the eigenvalues, in ascending order, of a symmetric or Hermitian matrix */
OPDI_OP(linalg_eigvalsh) {
    op->schema = "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor";
    op->composite = opdi_linalg_eigvalsh_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_eigvalsh.out";
    op->cases = "[1,1]; [2,1,1]";
}

//== singular values: _linalg_svd ======================================================================================

static int opdi__linalg_svd_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const bool full = opd_arg_bool(call, 1), vectors = opd_arg_bool(call, 2);
    const int64_t none = 0;
    opdi_solver solver;
    opdi_results results;
    if (opdi_matrix_check(input, "linalg.svd") || opdi_float_check(input, "linalg.svd", false) ||
        opdi_solver_check(input, "linalg_svd_cpu")) {
        return -1;
    }
    if (!opd_arg_is_none(call, 3)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "linalg.svd: the argument driver is only supported on CUDA "
                        "inputs with cuSOLVER backend. Pass NULL as driver.");
    }
    const opd_scalar_type dtype = OPDI_DTYPE(input), real = (opd_scalar_type)opdi_real_dtype(input->dtype);
    const int64_t rows = opd_size(input, -2), columns = opd_size(input, -1), count = OPDI_MIN(rows, columns);
    const int64_t wide = full ? rows : count, high = full ? columns : count, batch = opdi_batch_of(input);
    results.out[1] = NULL;
    results.out[0] = vectors ? opdi_solver_result(call, 0, input, rows, wide, dtype)
        : opd_result(call, 0, &none, 1, dtype);
    if (results.out[0]) { results.out[1] = opdi_solver_result(call, 1, input, count, -1, real); }
    results.out[2] = !results.out[1] ? NULL : vectors ? opdi_solver_result(call, 2, input, high, columns, dtype)
        : opd_result(call, 2, &none, 1, dtype);
    const int rc = results.out[2] ? opdi_results_open(&results, 3) : -1;
    if (rc) { return rc < 0 ? -1 : 0; }
    memset(&solver, 0, sizeof solver);
    opd_tensor *info = opdi_new_int32(input, -1);
    input = opdi_solver_dense(input);
    if (!info || !input) { return -1; }
    solver.rows = rows;
    solver.columns = columns;
    solver.left = full;
    solver.vectors = vectors;
    solver.info = (int32_t *)(void *)info->data;
    opdi_solver_data(&solver, 0, input, rows * columns);
    opdi_solver_data(&solver, 1, results.work[1], count);
    opdi_solver_data(&solver, 2, results.work[0], rows * wide);
    opdi_solver_data(&solver, 3, results.work[2], high * columns);
    return opdi_solver_run(&solver, batch, 20 * (double)rows * (double)columns * (double)count, dtype,
                           opdi_svd_one_f32, opdi_svd_one_f64, opdi_svd_one_c128) ||
        opdi_info_check("linalg.svd", solver.info, batch, input->ndim == 2) ? -1 : opdi_results_close(&results);
}
/* Fails if a gradient depends on the common phase of pairs of complex singular vectors, which is arbitrary.  `left` and
   `right` are the diagonals of U^H gU and of V^H gV; the imaginary part of their sum must be 0.  Returns 0, or -1 and
   sets an error. */
static int opdi_svd_phase_check(opd_tensor *left, opd_tensor *right) {
    opd_tensor *turns = opd_abs(opd_imag(opdi_plus(left, right)));
    return opd_assert_async_msg(opd_all(opd_le_Scalar(turns, opd_value_double(0.01))),
                                "svd_backward: The singular vectors in the complex case are specified up to "
                                "multiplication by e^{i phi}. The specified loss function depends on this phase "
                                "term, making it ill-defined.");
}
/* Returns the gradient U ((skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gS + skew(U^H gU) / (2 S))) V^H, plus the
   parts of gU and gV outside of the spaces spanned by U and V.  E_ij = S_j^2 - S_i^2, or 1 on the diagonal, and skew(x)
   = x - x^H.  gU, gS and gV are the gradients in grads[3]; some of them may be NULL. */
static opd_tensor *opdi_svd_gradient(opd_tensor **grads, opd_tensor *u, opd_tensor *s, opd_tensor *vh) {
    opd_tensor *line = opd_unsqueeze(s, -2), *column = opd_unsqueeze(s, -1), *sum = NULL, *part;
    opd_tensor *turns[2] = {NULL, NULL};
    const int64_t rows = opd_size(u, -2), columns = opd_size(vh, -1), count = opd_size(s, -1);
    if (grads[0] || grads[2]) {
        opd_tensor *const difference = opd_sub(line, column), *gaps = opd_mul(difference, opd_add(line, column));
        gaps = opd_add(gaps, opdi_identity_like(gaps));
        if (grads[0]) {
            part = opd_matmul(opdi_mh(u), grads[0]);
            part = opd_sub(part, opdi_mh(part));
            turns[0] = opd_diagonal_full(part, 0, -2, -1);
            sum = opd_mul(opd_div(part, gaps), line);
        }
        if (grads[2]) {
            part = opd_matmul(vh, opdi_mh(grads[2]));
            part = opd_sub(part, opdi_mh(part));
            turns[1] = opd_diagonal_full(part, 0, -2, -1);
            sum = opdi_plus(sum, opd_mul(column, opd_div(part, gaps)));
        }
        if (opdi_is_complex(u)) {
            if (opdi_svd_phase_check(turns[0], turns[1])) { return NULL; }
            sum = opd_sub(sum, opd_diag_embed(opd_diagonal_full(sum, 0, -2, -1)));
            if (turns[0]) { sum = opd_add(sum, opd_diag_embed(opd_div(turns[0], opdi_muls(s, 2)))); }
        }
    }
    if (grads[1] && !sum) { return opd_matmul(opd_mul(u, opd_unsqueeze(grads[1], -2)), vh); }
    if (grads[1]) { sum = opd_add(sum, opd_diag_embed(grads[1])); }
    if (!sum) { return NULL; }
    if (rows > count && grads[0]) {
        part = opd_sub(grads[0], opd_matmul(u, opd_matmul(opdi_mh(u), grads[0])));
        opd_tensor *const product = opd_matmul(u, sum);
        return opd_matmul(opd_add(product, opd_div(part, line)), vh);
    }
    sum = opd_matmul(sum, vh);
    if (columns > count && grads[2]) {
        part = opd_sub(grads[2], opd_matmul(opd_matmul(grads[2], opdi_mh(vh)), vh));
        sum = opd_add(sum, opd_div(part, column));
    }
    return opd_matmul(u, sum);
}
static int opdi__linalg_svd_backward(opd_backward_call *bw) {
    opd_tensor *grads[3], *rets[3];
    const bool full = opd_bw_value(bw, 1).u.i != 0, vectors = opd_bw_value(bw, 2).u.i != 0;
    for (int i = 0; i < 3; i++) {
        grads[i] = i == 1 || vectors ? opd_bw_grad(bw, i) : NULL;
        rets[i] = opd_bw_result(bw, i);
    }
    if (!grads[0] && !grads[1] && !grads[2]) { return 0; }
    if (!vectors && opd__linalg_svd(rets, opd_bw_tensor(bw, 0))) { return -1; }
    const int64_t count = opd_size(rets[1], -1);
    if (vectors && full) {                        /* only the first columns depend on A */
        rets[0] = opd_narrow(rets[0], -1, 0, count);
        rets[2] = opd_narrow(rets[2], -2, 0, count);
        if (grads[0]) { grads[0] = opd_narrow(grads[0], -1, 0, count); }
        if (grads[2]) { grads[2] = opd_narrow(grads[2], -2, 0, count); }
    }
    return opd_bw_return(bw, 0, opdi_svd_gradient(grads, rets[0], rets[1], rets[2]));
}
/* Computes the tangents of U and V^H, padded with zeros to their sizes.  P = U^H dA V, X is P without its diagonal, and
   E_ij = S_j^2 - S_i^2.  U^H dU = (X S + S X^H) / E + i Im(diag(P)) / S and V^H dV = (S X + X^H S) / E. */
static int opdi_svd_vectors_jvp(opd_jvp_call *jv, opd_tensor *tangent, opd_tensor *u, opd_tensor *s, opd_tensor *vh) {
    const int64_t rows = opd_size(u, -2), columns = opd_size(vh, -1), count = opd_size(s, -1);
    int64_t pad[4] = {0, 0, 0, 0};
    opd_tensor *line = opd_unsqueeze(s, -2), *column = opd_unsqueeze(s, -1);
    opd_tensor *half = opd_matmul(opdi_mh(u), tangent), *inner = opd_matmul(half, opdi_mh(vh));
    opd_tensor *diagonal = opd_diagonal_full(inner, 0, -2, -1);
    opd_tensor *const difference = opd_sub(line, column), *gaps = opd_mul(difference, opd_add(line, column));
    gaps = opd_add(gaps, opdi_identity_like(gaps));
    opd_tensor *beside = opd_sub(inner, opd_diag_embed(diagonal)), *turned = opdi_mh(beside);
    opd_tensor *const product = opd_mul(beside, line),
        *left = opd_div(opd_add(product, opd_mul(column, turned)), gaps);
    opd_tensor *const first_product = opd_mul(column, beside),
        *right = opd_div(opd_add(first_product, opd_mul(turned, line)), gaps);
    if (opdi_is_complex(u)) {
        opd_tensor *turns = opdi_muls(opd_sub(diagonal, opdi_conj(diagonal)), 0.5);
        left = opd_add(left, opd_diag_embed(opd_div(turns, s)));
    }
    left = opd_matmul(u, left);
    right = opd_neg(opd_matmul(right, vh));
    if (rows > count) {
        opd_tensor *const other_product = opd_matmul(tangent, opdi_mh(vh)),
            *rest = opd_sub(other_product, opd_matmul(u, inner));
        left = opd_add(left, opd_div(rest, line));
    }
    if (columns > count) { right = opd_add(right, opd_div(opd_sub(half, opd_matmul(inner, vh)), column)); }
    pad[1] = opd_size(opd_jvp_result(jv, 0), -1) - count;
    if (pad[1]) { left = opd_constant_pad_nd(left, opd_ints_of(pad, 2)); }
    pad[1] = 0;
    pad[3] = opd_size(opd_jvp_result(jv, 2), -2) - count;
    if (pad[3]) { right = opd_constant_pad_nd(right, opd_ints_of(pad, 4)); }
    return opd_jvp_return(jv, 0, left) ? -1 : opd_jvp_return(jv, 2, right);
}
static int opdi__linalg_svd_jvp(opd_jvp_call *jv) {
    const bool given = opd_jvp_value(jv, 2).u.i != 0;
    opd_tensor *tangent = opd_jvp_tangent(jv, 0), *rets[3];
    for (int i = 0; i < 3; i++) { rets[i] = opd_jvp_result(jv, i); }
    if (!tangent || (!given && opd__linalg_svd(rets, opd_jvp_tensor(jv, 0)))) { return -1; }
    const int64_t count = opd_size(rets[1], -1);
    opd_tensor *u = opd_narrow(rets[0], -1, 0, count), *vh = opd_narrow(rets[2], -2, 0, count);
    if (!u || !vh || (given && opdi_svd_vectors_jvp(jv, tangent, u, rets[1], vh))) { return -1; }
    opd_tensor *const product = opd_matmul(opdi_mh(u), tangent), *inner = opd_mul(product, opdi_conj(vh));
    const int64_t last = -1;
    inner = opd_sum_dim(inner, opd_ints_of(&last, 1), false);                  /* the diagonal of U^H dA V */
    return opd_jvp_return(jv, 1, inner && opdi_is_complex(inner) ? opd_clone(opd_real(inner)) : inner);
}
/* opd__linalg_svd: U, S and V^H with A = U diag(S) V^H, singular values in descending order */
OPDI_OP(_linalg_svd) {
    op->schema = "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> "
        "(Tensor U, Tensor S, Tensor Vh)";
    op->cpu = op->fake = opdi__linalg_svd_kernel; op->backward = opdi__linalg_svd_backward; op->save = "A, U, S, Vh";
    op->jvp = opdi__linalg_svd_jvp;
    op->vmap = opdi_solver_batch; op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "_linalg_svd.U(U, S, Vh)";
    op->cases = "[2,3], False, False; [2,3,2], False, False";
}
static int opdi_linalg_svd_kernel(opd_call *call) {
    const char *driver = opd_arg_is_none(call, 2) ? NULL : opd_arg_str(call, 2);
    opd_tensor *rets[3];
    if (opd__linalg_svd_full(rets, opd_arg_tensor(call, 0), opd_arg_bool(call, 1), true, driver)) { return -1; }
    return opd_return_tensor(call, rets[0]) || opd_return_tensor(call, rets[1]) ? -1
        : opd_return_tensor(call, rets[2]);
}
static int opdi_linalg_svdvals_kernel(opd_call *call) {
    const char *driver = opd_arg_is_none(call, 1) ? NULL : opd_arg_str(call, 1);
    opd_tensor *rets[3];
    return opd__linalg_svd_full(rets, opd_arg_tensor(call, 0), false, false, driver) ? -1
        : opd_return_tensor(call, rets[1]);
}
/* opd_linalg_svd: U, S and V^H with A = U diag(S) V^H; full_matrices: square U and V */
OPDI_OP(linalg_svd) {
    op->schema = "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor "
        "Vh)";
    op->composite = opdi_linalg_svd_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_svd.U(U, S, Vh)";
    op->cases = "";
}
/* opd_linalg_svdvals: the singular values, in descending order */
OPDI_OP(linalg_svdvals) {
    op->schema = "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor";
    op->composite = opdi_linalg_svdvals_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_svdvals.out";
    op->cases = "[2,3]; [3,2,2]";
}
OPDI_COLD_END
