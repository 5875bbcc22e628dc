#include "../ops.h"

//== eigenvalues of general complex matrices ===========================================================================
//
//  The method is the same as for real matrices, but the result is an upper triangular matrix (no 2 x 2 blocks).  Each
//  step uses a single shift and consists of rotations.

/* A complex matrix that is being reduced to upper triangular form (its Schur form).  h [n, n] is the matrix so far.
   q [n, n], stored by columns, satisfies a = q h q^H, where a is the balanced matrix; q is NULL if eigenvectors are not
   needed.  range and scale describe the balancing (see opdi_balance_f64). */
typedef struct opdi_cschur {
    int64_t n, range[2];
    opdi_complex *h, *q;
    double *scale;
} opdi_cschur;
/* Converts an eigenvector x [n] of the balanced matrix to an eigenvector of the original matrix, in place. */
static void opdi_cschur_back(const opdi_cschur *schur, opdi_complex *x) {
    const int64_t low = schur->range[0], high = schur->range[1];
    for (int64_t i = low; i <= high; i++) { x[i] = opdi_complex_times(schur->scale[i], x[i]); }
    for (int64_t k = 0; k < schur->n; k++) {       /* undo exchanges, beginning with the last one */
        const int64_t i = k < low ? low - 1 - k : k, to = (int64_t)schur->scale[i];
        if (i >= low && i <= high) { continue; }
        const opdi_complex was = x[i];
        x[i] = x[to];
        x[to] = was;
    }
}
/* Scales a vector x [n] to length 1, with a complex factor that makes its largest element real. */
static void opdi_cschur_normalize(int64_t n, opdi_complex *x) {
    int64_t best = 0;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum = opdi_hypot_f64(sum, opdi_hypot_f64(x[i].re, x[i].im));
        if (opdi_hypot_f64(x[i].re, x[i].im) > opdi_hypot_f64(x[best].re, x[best].im)) { best = i; }
    }
    const double size = sum * opdi_hypot_f64(x[best].re, x[best].im);
    const opdi_complex factor = opdi_complex_times(1 / size, opdi_complex_conj(x[best]));
    for (int64_t i = 0; i < n; i++) { x[i] = opdi_complex_mul(x[i], factor); }
    x[best].im = 0;
}
static void opdi_cschur_exchange(const opdi_cschur *schur, int64_t i) {
    const int64_t n = schur->n, other = (int64_t)schur->scale[i];
    opdi_cblock_exchange(opdi_cblock_of(schur->h, n, 1), n, i, other);
    opdi_cblock_exchange(opdi_cblock_of(schur->h, 1, n), n, i, other);
}
/* Balances the matrix.  The factors and exchanges are chosen from the absolute values of its elements, for which
   `sizes` [n, n] is scratch memory. */
static void opdi_cschur_balance(opdi_cschur *schur, double *sizes) {
    const int64_t n = schur->n;
    for (int64_t i = 0; i < n * n; i++) { sizes[i] = opdi_complex_size(schur->h[i]); }
    opdi_balance_f64(n, sizes, n, schur->scale, schur->range);
    for (int64_t i = n - 1; i > schur->range[1]; i--) { opdi_cschur_exchange(schur, i); }
    for (int64_t i = 0; i < schur->range[0]; i++) { opdi_cschur_exchange(schur, i); }
    for (int64_t i = schur->range[0]; i <= schur->range[1]; i++) {
        for (int64_t k = 0; k < n; k++) {
            schur->h[i * n + k] = opdi_complex_times(1 / schur->scale[i], schur->h[i * n + k]);
        }
        for (int64_t k = 0; k < n; k++) {
            schur->h[k * n + i] = opdi_complex_times(schur->scale[i], schur->h[k * n + i]);
        }
    }
}
/* Applies a reflection from the left to c [rows, columns], whose rows are ld apart: c -= tau v (v^H c).  sums [columns]
   is scratch memory. */
static void opdi_cschur_rows(int64_t rows, int64_t columns, const opdi_complex *v, opdi_complex tau, opdi_complex *c,
                             int64_t ld, opdi_complex *sums) {
    for (int64_t j = 0; j < columns; j++) { sums[j] = opdi_complex_make(0, 0); }
    for (int64_t i = 0; i < rows; i++) {
        const opdi_complex factor = opdi_complex_conj(v[i]), *row = c + i * ld;
        for (int64_t j = 0; j < columns; j++) { sums[j] = opdi_complex_add(sums[j], opdi_complex_mul(factor, row[j])); }
    }
    for (int64_t i = 0; i < rows; i++) {
        const opdi_complex factor = opdi_complex_mul(tau, v[i]);
        opdi_complex *row = c + i * ld;
        for (int64_t j = 0; j < columns; j++) { row[j] = opdi_complex_sub(row[j], opdi_complex_mul(factor, sums[j])); }
    }
}
/* Applies a reflection from the right to c [rows, columns], whose rows are ld apart: c -= tau (c v) v^H.  over
   [columns] has the conjugates of v. */
static void opdi_cschur_columns(int64_t rows, int64_t columns, const opdi_complex *v, const opdi_complex *over,
                                opdi_complex tau, opdi_complex *c, int64_t ld) {
    for (int64_t i = 0; i < rows; i++, c += ld) {
        opdi_complex sum = opdi_complex_make(0, 0);
        for (int64_t j = 0; j < columns; j++) { sum = opdi_complex_add(sum, opdi_complex_mul(c[j], v[j])); }
        sum = opdi_complex_mul(tau, sum);
        for (int64_t j = 0; j < columns; j++) { c[j] = opdi_complex_sub(c[j], opdi_complex_mul(sum, over[j])); }
    }
}
/* Reduces the matrix to Hessenberg form: all elements below the first subdiagonal become 0.  scratch [3 n] is scratch
   memory. */
static void opdi_cschur_start(const opdi_cschur *schur, opdi_complex *scratch) {
    const int64_t n = schur->n;
    opdi_complex *const v = scratch, *const over = scratch + n;
    for (int64_t k = schur->range[0]; k + 1 < schur->range[1]; k++) {
        const int64_t count = schur->range[1] - k;
        opdi_complex *const below = schur->h + (k + 1) * n + k;
        for (int64_t i = 0; i < count; i++) { v[i] = below[i * n]; }
        const opdi_complex tau = opdi_complex_reflection(count, v, 1);
        for (int64_t i = 0; i < count; i++) { below[i * n] = i ? opdi_complex_make(0, 0) : v[0]; }
        v[0] = opdi_complex_make(1, 0);
        for (int64_t i = 0; i < count; i++) { over[i] = opdi_complex_conj(v[i]); }
        if (opdi_complex_zero(tau)) { continue; }
        opdi_cschur_rows(count, n - k - 1, v, opdi_complex_conj(tau), below + 1, n, over + n);
        opdi_cschur_columns(schur->range[1] + 1, count, v, over, tau, schur->h + k + 1, n);
        if (schur->q) { opdi_cschur_rows(count, n, over, tau, schur->q + (k + 1) * n, n, over + n); }
    }
}
/* Rotates the vectors x and y, of `count` elements each, `step` apart: x becomes c x + s y, and y becomes c y - conj(s)
   x. */
static void opdi_cschur_rotate(opdi_complex *x, opdi_complex *y, int64_t count, int64_t step, double c,
                               opdi_complex s) {
    for (int64_t i = 0; i < count * step; i += step) {
        const opdi_complex left = x[i], right = y[i];
        x[i].re = c * left.re + (s.re * right.re - s.im * right.im);
        x[i].im = c * left.im + (s.re * right.im + s.im * right.re);
        y[i].re = c * right.re - (s.re * left.re + s.im * left.im);
        y[i].im = c * right.im - (s.re * left.im - s.im * left.re);
    }
}
/* Performs one QR step with a shift on rows first .. last.  If q is NULL, only elements in these rows and columns
   change. */
static void opdi_cschur_step(const opdi_cschur *schur, int64_t first, int64_t last, opdi_complex shift) {
    const int64_t n = schur->n, right = schur->q ? n : last + 1, top = schur->q ? 0 : first;
    opdi_complex *h = schur->h;
    opdi_complex x = opdi_complex_sub(h[first * (n + 1)], shift), y = h[(first + 1) * n + first];
    for (int64_t k = first; k < last; k++) {
        const double left = opdi_complex_abs(x), length = opdi_hypot_f64(left, opdi_complex_abs(y));
        const int64_t from = k > first ? k - 1 : first, to = OPDI_MIN(k + 3, last + 1);
        if (length > 0) {
            const opdi_complex phase = left > 0 ? opdi_complex_times(1 / left, x) : opdi_complex_make(1, 0);
            const opdi_complex s = opdi_complex_mul(phase, opdi_complex_times(1 / length, opdi_complex_conj(y)));
            const opdi_complex over = opdi_complex_conj(s);
            opdi_cschur_rotate(h + k * n + from, h + (k + 1) * n + from, right - from, 1, left / length, s);
            opdi_cschur_rotate(h + top * n + k, h + top * n + k + 1, to - top, n, left / length, over);
            if (schur->q) { opdi_cschur_rotate(schur->q + k * n, schur->q + (k + 1) * n, n, 1, left / length, over); }
        }
        if (k > first) { h[(k + 1) * n + k - 1] = opdi_complex_make(0, 0); }
        if (k + 2 <= last) {
            x = h[(k + 1) * n + k];
            y = h[(k + 2) * n + k];
        }
    }
}
/* Returns true if the element below the diagonal in row k is negligible compared to the elements around it (Ahues and
   Tisseur, as in LAPACK). */
static bool opdi_cschur_splits(const opdi_cschur *schur, int64_t k) {
    const int64_t n = schur->n;
    const opdi_complex *h = schur->h + k * n + k;
    const double below = opdi_complex_size(h[-1]), above = opdi_complex_size(h[-n]), least = opdi_schur_least(n);
    double beside = opdi_complex_size(h[-n - 1]) + opdi_complex_size(h[0]);
    if (below <= least) { return true; }
    if (beside == 0 && k > 1) { beside += opdi_complex_size(h[-n - 2]); }
    if (beside == 0 && k + 1 < n) { beside += opdi_complex_size(h[n]); }
    if (below > DBL_EPSILON * beside) { return false; }
    const double gap = opdi_complex_size(opdi_complex_sub(h[-n - 1], h[0])), own = opdi_complex_size(h[0]);
    const double more = OPDI_MAX(below, above), less = OPDI_MIN(below, above);
    const double large = OPDI_MAX(own, gap), lesser = OPDI_MIN(own, gap), sum = large + more;
    return less * (more / sum) <= OPDI_MAX(least, DBL_EPSILON * (lesser * (large / sum)));
}
/* Returns Wilkinson's shift for the 2 x 2 block whose lower right element is h[0]: the eigenvalue of the block that is
   closer to this element.  n is the length of a row. */
static opdi_complex opdi_cschur_shift(const opdi_complex *h, int64_t n) {
    const opdi_complex half = opdi_complex_times(0.5, opdi_complex_sub(h[-n - 1], h[0]));
    const opdi_complex product = opdi_complex_mul(h[-1], h[-n]);
    opdi_complex root = opdi_complex_sqrt(opdi_complex_add(opdi_complex_mul(half, half), product));
    if (half.re * root.re + half.im * root.im < 0) { root = opdi_complex_make(-root.re, -root.im); }
    const opdi_complex sum = opdi_complex_add(half, root);
    return opdi_complex_zero(sum) ? h[0] : opdi_complex_sub(h[0], opdi_complex_div(product, sum));
}
/* Reduces h to upper triangular form.  Returns 0, or the number (from 1) of an eigenvalue that did not converge. */
static int64_t opdi_cschur_run(const opdi_cschur *schur) {
    const int64_t n = schur->n;
    opdi_complex *h = schur->h;
    int sweep = 0;
    for (int64_t last = n - 1; last > 0; ) {
        int64_t first = last;
        for (; first > 0; first--) {
            if (opdi_cschur_splits(schur, first)) {
                h[first * n + first - 1] = opdi_complex_make(0, 0);
                break;
            }
        }
        if (first == last) {
            last--;
            sweep = 0;
            continue;
        }
        if (++sweep > OPDI_SWEEPS) { return last + 1; }
        opdi_complex shift = opdi_cschur_shift(h + last * (n + 1), n);
        if (sweep % 10 == 0) {                    /* every tenth time, use another shift to prevent endless cycles */
            shift = h[last * (n + 1)];
            shift.re += 0.75 * opdi_complex_size(h[last * n + last - 1]);
        }
        opdi_cschur_step(schur, first, last, shift);
    }
    return 0;
}
/* Computes the eigenvector x [n] for eigenvalue number k.  First computes the eigenvector y of h.  Then converts q y to
   an eigenvector of the original matrix, and scales it to length 1 with a real largest element.  y [n] is scratch
   memory. */
static void opdi_cschur_vector(const opdi_cschur *schur, int64_t k, opdi_complex *y, opdi_complex *x) {
    const int64_t n = schur->n;
    const opdi_complex *h = schur->h, value = h[k * (n + 1)];
    const double least = OPDI_MAX(DBL_EPSILON * opdi_complex_size(value), opdi_schur_least(n));
    y[k] = opdi_complex_make(1, 0);
    for (int64_t i = k - 1; i >= 0; i--) {
        opdi_complex sum = opdi_complex_make(0, 0), below = opdi_complex_sub(h[i * (n + 1)], value);
        for (int64_t j = i + 1; j <= k; j++) { sum = opdi_complex_sub(sum, opdi_complex_mul(h[i * n + j], y[j])); }
        if (opdi_complex_size(below) < least) { below = opdi_complex_make(least, 0); }
        y[i] = opdi_complex_div(sum, below);
        const double most = opdi_complex_size(y[i]);
        for (int64_t j = i; most > 1e100 && j <= k; j++) { y[j] = opdi_complex_times(1 / most, y[j]); }
    }
    for (int64_t i = 0; i < n; i++) { x[i] = opdi_complex_make(0, 0); }
    for (int64_t j = 0; j <= k; j++) {
        const opdi_complex factor = y[j], *row = schur->q + j * n;
        for (int64_t i = 0; i < n; i++) { x[i] = opdi_complex_add(x[i], opdi_complex_mul(factor, row[i])); }
    }
    opdi_cschur_back(schur, x);
    opdi_cschur_normalize(n, x);
}
/* Computes the eigenvalues data[1] [n] of the matrix data[0] [n, n] and, if solver->vectors is set, the eigenvectors
   data[2] [n, n].  Returns 0, or -1 if memory runs out. */
static int opdi_eig_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    const opdi_complex *from = opdi_cblock_at(solver, 0, at, n).at;
    opdi_complex *values = opdi_cblock_at(solver, 1, at, 1).at;
    opdi_complex *vectors = solver->vectors ? opdi_cblock_at(solver, 2, at, n).at : NULL;
    const size_t size = (size_t)(2 * n * n + 5 * n) * sizeof(opdi_complex) + (size_t)(n * n + n) * sizeof(double);
    int power = 0;
    opdi_cschur schur;
    schur.h = (opdi_complex *)opdi_alloc(size);
    if (!schur.h) { return -1; }
    schur.q = vectors ? schur.h + n * n : NULL;
    opdi_complex *const scratch = schur.h + 2 * n * n, *const x = scratch + n;
    double *const sizes = (double *)(void *)(scratch + 5 * n);
    schur.n = n;
    schur.scale = sizes + n * n;
    (void)frexp(opdi_complex_largest(from, n * n), &power);       /* sets power to 0 if all elements are 0 */
    for (int64_t i = 0; i < n * n; i++) {
        schur.h[i] = opdi_complex_make(ldexp(from[i].re, -power), ldexp(from[i].im, -power));
        if (vectors) { schur.q[i] = opdi_complex_make(i % (n + 1) == 0, 0); }
    }
    opdi_cschur_balance(&schur, sizes);
    opdi_cschur_start(&schur, x + n);
    solver->info[at] = (int32_t)opdi_cschur_run(&schur);
    for (int64_t k = 0; !solver->info[at] && k < n; k++) {
        const opdi_complex value = schur.h[k * (n + 1)];
        values[k] = opdi_complex_make(ldexp(value.re, power), ldexp(value.im, power));
        if (vectors) { opdi_cschur_vector(&schur, k, scratch, x); }
        for (int64_t i = 0; vectors && i < n; i++) { vectors[i * n + k] = x[i]; }
    }
    opdi_free(schur.h, size);
    return 0;
}

//== linalg_eig, linalg_eigvals ========================================================================================

OPDI_COLD_BEGIN

static int opdi_eig_any(opd_call *call, const char *name, bool vectors) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_solver solver;
    opdi_results results;
    if (opdi_square_check(input, name) || opdi_float_check(input, name, false) ||
        opdi_solver_check(input, "linalg_eig_out_cpu")) {
        return -1;
    }
    const bool pair = opdi_is_complex(input);
    const opd_scalar_type dtype = opdi_real_dtype(input->dtype) == OPD_FLOAT64 ? OPD_COMPLEX128 : OPD_COMPLEX64;
    const int64_t n = opd_size(input, -1), batch = opdi_batch_of(input);
    opd_tensor *out[2];
    out[0] = opdi_solver_result(call, 0, input, n, -1, dtype);
    out[1] = out[0] && vectors ? opdi_solver_result(call, 1, input, n, n, dtype) : out[0];
    if (!out[1] || out[0]->numel == 0 || opdi_no_data(out[0])) { return out[1] ? 0 : -1; }
    opd_tensor *info = opdi_new_int32(input, -1);
    const opd_scalar_type work = pair ? OPD_COMPLEX128 : OPDI_DTYPE(input);
    input = opdi_dense_as(input, work);
    results.count = 1 + vectors;
    for (int i = 0; i < results.count; i++) {
        results.out[i] = out[i];
        if (!(results.work[i] = opdi_staging(out[i], pair ? OPD_COMPLEX128 : dtype))) { return -1; }
    }
    if (!info || !input) { return -1; }
    for (int64_t i = 0; i < input->numel * (1 + pair); i++) {
        const double x = work == OPD_FLOAT32 ? (double)((const float *)(const void *)input->data)[i]
            : ((const double *)(const void *)input->data)[i];
        if (!(fabs(x) <= DBL_MAX)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "linalg.eig: input tensor should not contain infs or NaNs.");
        }
    }
    memset(&solver, 0, sizeof solver);
    solver.rows = n;
    solver.vectors = vectors;
    solver.info = (int32_t *)(void *)info->data;
    opdi_solver_data(&solver, 0, input, n * n);
    opdi_solver_data(&solver, 1, results.work[0], n);
    if (vectors) { opdi_solver_data(&solver, 2, results.work[1], n * n); }
    return opdi_solver_run(&solver, batch, 25 * opdi_cube(n), OPDI_DTYPE(input), opdi_eig_one_f32, opdi_eig_one_f64,
                           opdi_eig_one_c128) ||
        opdi_info_check(name, solver.info, batch, info->ndim == 0) ? -1 : opdi_results_close(&results);
}
static int opdi_linalg_eig_kernel(opd_call *call) { return opdi_eig_any(call, "linalg.eig", true); }
static int opdi__linalg_eigvals_kernel(opd_call *call) { return opdi_eig_any(call, "linalg.eigvals", false); }
/* Returns the gradient V^-H (diag(gL) + (V^H gV - V^H V diag(re(V^H gV))) / conj(L_j - L_i)) V^H of the matrix.  V and
   L are the eigenvectors and eigenvalues, gV and gL their gradients; the division is elementwise, and its diagonal is
   0.  If `real` is true, the matrix is real, and its gradient is the real part. */
static opd_tensor *opdi_eig_gradient(opd_tensor *value_grad, opd_tensor *grad, opd_tensor *values,
                                     opd_tensor *vectors, bool real) {
    opd_tensor *turned = opdi_mh(vectors), *sum = NULL;
    if (grad) {
        opd_tensor *inner = opd_matmul(turned, grad), *diagonal = opd_diagonal_full(inner, 0, -2, -1);
        if (opdi_phase_check(diagonal, "linalg_eig_backward")) { return NULL; }
        opd_tensor *const column = opd_unsqueeze(values, -2), *gaps = opd_sub(column, opd_unsqueeze(values, -1));
        gaps = opdi_conj(opd_add(gaps, opdi_identity_like(gaps)));
        opd_tensor *const product = opd_matmul(turned, vectors);
        sum = opd_sub(inner, opd_mul(product, opd_unsqueeze(opd_real(diagonal), -2)));
        sum = opd_div(sum, gaps);
        sum = opd_sub(sum, opd_diag_embed(opd_diagonal_full(sum, 0, -2, -1)));
    }
    if (value_grad) { sum = opdi_plus(sum, opd_diag_embed(value_grad)); }
    sum = opd_linalg_solve(turned, opd_matmul(sum, turned));
    return real ? opd_real(sum) : sum;
}
static int opdi_linalg_eig_backward(opd_backward_call *bw) {
    opd_tensor *value_grad = opd_bw_grad(bw, 0), *grad = opd_bw_grad(bw, 1);
    if (!value_grad && !grad) { return 0; }
    return opd_bw_return(bw, 0, opdi_eig_gradient(value_grad, grad, opd_bw_result(bw, 0), opd_bw_result(bw, 1),
                                                  !opd_dtype_is_complex(opd_bw_dtype(bw, 0))));
}
static int opdi__linalg_eigvals_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *rets[2];
    if (!grad) { return 0; }
    return opd_linalg_eig(rets, opd_bw_tensor(bw, 0)) ? -1
        : opd_bw_return(bw, 0, opdi_eig_gradient(grad, NULL, rets[0], rets[1],
                                                 !opd_dtype_is_complex(opd_bw_dtype(bw, 0))));
}
/* Computes the tangents of the eigenvalues L and the eigenvectors V.  With X = V^-1 dA V, dL is diag(X), and dV is V (X
   / (L_j - L_i)), without the components that would change the lengths of the eigenvectors. */
static int opdi_linalg_eig_jvp(opd_jvp_call *jv) {
    opd_tensor *tangent = opd_jvp_tangent(jv, 0), *values = opd_jvp_result(jv, 0), *vectors = opd_jvp_result(jv, 1);
    if (!tangent || !values) { return -1; }
    opd_tensor *inner = opd_matmul(opd_to_dtype(tangent, opd_dtype(values)), vectors);
    inner = opd_linalg_solve(vectors, inner);
    opd_tensor *diagonal = opd_diagonal_full(inner, 0, -2, -1);
    opd_tensor *const column = opd_unsqueeze(values, -2), *gaps = opd_sub(column, opd_unsqueeze(values, -1));
    opd_tensor *const difference = opd_sub(inner, opd_diag_embed(diagonal));
    inner = opd_div(difference, opd_add(gaps, opdi_identity_like(gaps)));
    inner = opd_matmul(vectors, inner);
    opd_tensor *longer = opd_real(opd_diagonal_full(opd_matmul(opdi_mh(vectors), inner), 0, -2, -1));
    inner = opd_sub(inner, opd_mul(vectors, opd_unsqueeze(longer, -2)));
    return opd_jvp_return(jv, 0, opd_clone(diagonal)) ? -1 : opd_jvp_return(jv, 1, inner);
}
/* opd_linalg_eig: eigenvalues and eigenvectors of general square matrices, as complex numbers */
OPDI_OP(linalg_eig) {
    op->schema = "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)";
    op->cpu = op->fake = opdi_linalg_eig_kernel; op->backward = opdi_linalg_eig_backward;
    op->save = "eigenvalues, eigenvectors"; op->jvp = opdi_linalg_eig_jvp;
    op->vmap = opdi_solver_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS;
    op->out = "linalg_eig.out(eigenvalues, eigenvectors)";
    op->cases = "";
}
/* opd__linalg_eigvals: the eigenvalues of general square matrices, as complex numbers */
OPDI_OP(_linalg_eigvals) {
    op->schema = "_linalg_eigvals(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi__linalg_eigvals_kernel; op->backward = opdi__linalg_eigvals_backward; op->save = "self";
    op->vmap = opdi_solver_batch;
    op->tags = OPDI_OPTAG_CONJUGATES;
    op->cases = "[2,2]";
}
static int opdi_linalg_eigvals_kernel(opd_call *call) {
    return opd_return_tensor(call, opd__linalg_eigvals(opd_arg_tensor(call, 0)));
}
/* opd_linalg_eigvals: the eigenvalues of general square matrices, as complex numbers */
OPDI_OP(linalg_eigvals) {
    op->schema = "linalg_eigvals(Tensor self) -> Tensor";
    op->composite = opdi_linalg_eigvals_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_eigvals.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,2]; [2,2,2]";
}
OPDI_COLD_END
