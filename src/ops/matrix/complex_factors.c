#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:complex_factor factorizations of complex matrices: Cholesky, LU, QR, L D L^H; triangular solves
//
//  This section is the counterpart of >>op:factor for complex numbers.  It computes in complex128, column by column,
//  without blocks.  Matrices of complex64 are converted first, and results are rounded back.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL opdi_cblock opdi_cblock_of(opdi_complex *at, int64_t rs, int64_t cs) {
    opdi_cblock block;
    block.at = at;
    block.rs = rs;
    block.cs = cs;
    block.conj = false;
    return block;
}
OPDI_INTERNAL opdi_cblock opdi_cblock_part(opdi_cblock block, int64_t i, int64_t j) {
    block.at += i * block.rs + j * block.cs;
    return block;
}
OPDI_INTERNAL opdi_cblock opdi_cblock_transposed(opdi_cblock block) {
    const int64_t rs = block.rs;
    block.rs = block.cs;
    block.cs = rs;
    return block;
}
OPDI_INTERNAL opdi_cblock opdi_cblock_conj(opdi_cblock block) {
    block.conj = !block.conj;
    return block;
}
/* Returns matrix number `at` of tensor solver->data[which], whose rows have `width` elements. */
OPDI_INTERNAL opdi_cblock opdi_cblock_at(const opdi_solver *solver, int which, int64_t at, int64_t width) {
    return opdi_cblock_of((opdi_complex *)opdi_solver_at(solver, which, at, sizeof(opdi_complex)), width, 1);
}
/* Subtracts `factor` times row `from` of x [.., columns] from row `to`.  x must not be marked as conjugated. */
static void opdi_cblock_minus(opdi_cblock x, int64_t columns, int64_t to, opdi_complex factor, int64_t from) {
    for (int64_t j = 0; j < columns; j++) {
        opdi_complex *place = x.at + to * x.rs + j * x.cs;
        *place = opdi_complex_sub(*place, opdi_complex_mul(factor, x.at[from * x.rs + j * x.cs]));
    }
}
OPDI_INTERNAL void opdi_cblock_exchange(opdi_cblock x, int64_t columns, int64_t i, int64_t other) {
    for (int64_t j = 0; i != other && j < columns; j++) {
        const opdi_complex kept = x.at[i * x.rs + j * x.cs];
        x.at[i * x.rs + j * x.cs] = x.at[other * x.rs + j * x.cs];
        x.at[other * x.rs + j * x.cs] = kept;
    }
}
/* Returns |re| + |im|, the size by which LAPACK chooses pivots. */
OPDI_INTERNAL double opdi_complex_size(opdi_complex x) { return fabs(x.re) + fabs(x.im); }
/* Returns the larger of |re| and |im|, or NaN if one of them is NaN. */
OPDI_INTERNAL double opdi_complex_span(opdi_complex x) {
    const double re = fabs(x.re), im = fabs(x.im);
    return re > im || isnan(re) ? re : im;
}

//== triangular solves and Cholesky ====================================================================================

/* Solves t y = x for a triangular matrix t [rows, rows], upper or (if `upper` is false) lower; y overwrites x [rows,
   columns].  If `unit` is true, the diagonal of t counts as ones. */
static void opdi_complex_triangle(int64_t rows, int64_t columns, opdi_cblock t, opdi_cblock x, bool upper, bool unit) {
    for (int64_t step = 0; step < rows; step++) {
        const int64_t i = upper ? rows - 1 - step : step;
        const int64_t from = upper ? i + 1 : 0, to = upper ? rows : i;
        for (int64_t k = from; k < to; k++) { opdi_cblock_minus(x, columns, i, opdi_cblock_get(&t, i, k), k); }
        const opdi_complex pivot = unit ? opdi_complex_make(1, 0) : opdi_cblock_get(&t, i, i);
        for (int64_t j = 0; !unit && j < columns; j++) {
            opdi_complex *place = x.at + i * x.rs + j * x.cs;
            *place = opdi_complex_div(*place, pivot);
        }
    }
}
OPDI_INTERNAL int opdi_triangle_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    opdi_cblock t = opdi_cblock_at(solver, 0, at, n);
    opdi_cblock x = opdi_cblock_at(solver, 1, at, solver->left ? solver->columns : n);
    if (!solver->left) {
        t = opdi_cblock_transposed(t);
        x = opdi_cblock_transposed(x);
    }
    opdi_complex_triangle(n, solver->columns, t, x, solver->upper == solver->left, solver->unit);
    return 0;
}
/* Factors a = L L^H in place, where a is [n, n].  Reads and writes only the lower triangular part, and only the real
   parts of its diagonal.  Returns 0, or the number (from 1) of the first column whose pivot is not positive. */
static int64_t opdi_complex_cholesky(int64_t n, opdi_cblock a) {
    for (int64_t j = 0; j < n; j++) {
        double pivot = opdi_cblock_get(&a, j, j).re;
        for (int64_t k = 0; k < j; k++) {
            const opdi_complex x = opdi_cblock_get(&a, j, k);
            pivot -= x.re * x.re + x.im * x.im;
        }
        if (!(pivot > 0)) { return j + 1; }
        pivot = sqrt(pivot);
        opdi_cblock_put(&a, j, j, opdi_complex_make(pivot, 0));
        for (int64_t i = j + 1; i < n; i++) {
            opdi_complex sum = opdi_cblock_get(&a, i, j);
            for (int64_t k = 0; k < j; k++) {
                const opdi_complex x = opdi_complex_conj(opdi_cblock_get(&a, j, k));
                sum = opdi_complex_sub(sum, opdi_complex_mul(opdi_cblock_get(&a, i, k), x));
            }
            opdi_cblock_put(&a, i, j, opdi_complex_make(sum.re / pivot, sum.im / pivot));
        }
    }
    return 0;
}
/* Returns the lower triangular factor of matrix number `at` in data[0].  If solver->upper is set, data[0] holds U with
   A = U^H U, and the result is U^H. */
static opdi_cblock opdi_complex_lower_at(const opdi_solver *solver, int64_t at) {
    const opdi_cblock a = opdi_cblock_at(solver, 0, at, solver->rows);
    return solver->upper ? opdi_cblock_conj(opdi_cblock_transposed(a)) : a;
}
OPDI_INTERNAL int opdi_cholesky_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    const opdi_cblock a = opdi_complex_lower_at(solver, at);
    solver->info[at] = (int32_t)opdi_complex_cholesky(n, a);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++) { opdi_cblock_put(&a, i, j, opdi_complex_make(0, 0)); }
    }
    return 0;
}
OPDI_INTERNAL int opdi_cholesky_solve_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    const opdi_cblock x = opdi_cblock_at(solver, 1, at, solver->columns), a = opdi_complex_lower_at(solver, at);
    opdi_complex_triangle(n, solver->columns, a, x, false, false);
    opdi_complex_triangle(n, solver->columns, opdi_cblock_conj(opdi_cblock_transposed(a)), x, true, false);
    return 0;
}

//== LU with row exchanges =============================================================================================

OPDI_INTERNAL int opdi_lu_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t rows = solver->rows, columns = solver->columns;
    const opdi_cblock a = opdi_cblock_at(solver, 0, at, columns);
    int32_t *pivots = solver->pivots + at * solver->npivots;
    solver->info[at] = 0;
    for (int64_t j = 0; j < solver->npivots; j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < rows; i++) {
            if (opdi_complex_size(a.at[i * a.rs + j]) > opdi_complex_size(a.at[best * a.rs + j])) { best = i; }
        }
        const opdi_complex pivot = a.at[best * a.rs + j];
        const bool zero = opdi_complex_zero(pivot);
        pivots[j] = (int32_t)(best + 1);
        if (zero && !solver->info[at]) { solver->info[at] = (int32_t)(j + 1); }
        opdi_cblock_exchange(a, columns, j, best);
        for (int64_t i = j + 1; i < rows; i++) {
            opdi_complex *place = a.at + i * a.rs + j;
            if (!zero) { *place = opdi_complex_div(*place, pivot); }
            opdi_cblock_minus(opdi_cblock_part(a, 0, j + 1), columns - j - 1, i, *place, j);
        }
    }
    return 0;
}
/* Solves equations with the LU factors in data[0]; the solution overwrites data[1].  If solver->turned is set, uses
   the conjugate transpose of the matrix.  Returns 0. */
OPDI_INTERNAL int opdi_lu_solve_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows, columns = solver->columns;
    const int32_t *pivots = solver->pivots + at * solver->npivots;
    opdi_cblock a = opdi_cblock_at(solver, 0, at, n);
    opdi_cblock x = opdi_cblock_at(solver, 1, at, solver->left ? columns : n);
    if (!solver->left) { x = opdi_cblock_transposed(x); }
    if (solver->turned) { a = opdi_cblock_conj(a); }
    if (solver->turned != solver->left) {
        for (int64_t i = 0; i < n; i++) { opdi_cblock_exchange(x, columns, i, pivots[i] - 1); }
        opdi_complex_triangle(n, columns, a, x, false, true);
        opdi_complex_triangle(n, columns, a, x, true, false);
        return 0;
    }
    opdi_complex_triangle(n, columns, opdi_cblock_transposed(a), x, false, false);
    opdi_complex_triangle(n, columns, opdi_cblock_transposed(a), x, true, true);
    for (int64_t i = n - 1; i >= 0; i--) { opdi_cblock_exchange(x, columns, i, pivots[i] - 1); }
    return 0;
}
/* Returns x / |x|, or 0 if x is 0. */
static opdi_complex opdi_complex_sgn(opdi_complex x) {
    const double size = opdi_complex_abs(x);
    return size == 0 ? opdi_complex_make(0, 0) : opdi_complex_make(x.re / size, x.im / size);
}
/* Computes the determinant x from the LU factors in data[0].  Writes x to data[1] or, if solver->vectors is set, x /
   |x| to data[1] and the logarithm of |x|, a double, to data[2].  Returns 0. */
OPDI_INTERNAL int opdi_det_one_c128(const opdi_solver *solver, int64_t at) {
    const int32_t *pivots = solver->pivots + at * solver->npivots;
    const opdi_cblock a = opdi_cblock_at(solver, 0, at, solver->rows);
    opdi_complex product = opdi_complex_make(1, 0);
    double sum = 0;
    for (int64_t i = 0; i < solver->rows; i++) {
        const opdi_complex pivot = opdi_cblock_get(&a, i, i);
        if (pivots[i] != i + 1) { product = opdi_complex_make(-product.re, -product.im); }
        product = opdi_complex_mul(product, solver->vectors ? opdi_complex_sgn(pivot) : pivot);
        sum += solver->vectors ? opdi_log_f64(opdi_complex_abs(pivot)) : 0;
    }
    ((opdi_complex *)(void *)solver->data[1])[at] = product;
    if (solver->vectors) { ((double *)(void *)solver->data[2])[at] = sum; }
    return 0;
}

//== QR factorization by reflections ===================================================================================

/* Makes a reflection 1 - tau v v^H whose conjugate transpose maps x [count] to (beta, 0, ..., 0) with a real beta.
   Writes beta to x[0], and v[1], v[2] and so on to x[1], x[2]; v[0] is 1.  Elements of x are `stride` apart.  Returns
   tau. */
OPDI_INTERNAL opdi_complex opdi_complex_reflection(int64_t count, opdi_complex *x, int64_t stride) {
    double most = 0, sum = 0, unit = 1;
    for (int64_t i = 1; i < count; i++) {
        const double size = opdi_complex_span(x[i * stride]);
        most = size > most || isnan(size) ? size : most;
    }
    if (most == 0 && x[0].im == 0) { return opdi_complex_make(0, 0); }
    most = opdi_complex_span(x[0]) > most ? opdi_complex_span(x[0]) : most;
    if (most < DBL_MIN / DBL_EPSILON) {           /* numbers below DBL_MIN have too few digits for beta */
        unit = DBL_EPSILON * DBL_EPSILON * DBL_EPSILON;
        most /= unit;
        for (int64_t i = 0; i < count; i++) {
            x[i * stride] = opdi_complex_make(x[i * stride].re / unit, x[i * stride].im / unit);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        const double re = x[i * stride].re / most, im = x[i * stride].im / most;
        sum += re * re + im * im;
    }
    const opdi_complex alpha = x[0];
    const double size = most * sqrt(sum), beta = alpha.re < 0 ? size : -size;
    const opdi_complex scale = opdi_complex_make(alpha.re - beta, alpha.im);
    for (int64_t i = 1; i < count; i++) { x[i * stride] = opdi_complex_div(x[i * stride], scale); }
    x[0] = opdi_complex_make(beta * unit, 0);
    return opdi_complex_make((beta - alpha.re) / beta, -alpha.im / beta);
}
/* Computes c = (1 - tau v v^H) c for c [rows, columns], which must not be marked as conjugated.  v is column 0 of a,
   except that v[0] is 1, whatever is stored there. */
OPDI_INTERNAL void opdi_complex_reflect(int64_t rows, int64_t columns, opdi_cblock a, opdi_complex tau, opdi_cblock c) {
    opdi_complex sums[8];
    for (int64_t from = 0; from < columns && !opdi_complex_zero(tau); from += 8) {
        const int64_t width = OPDI_MIN((int64_t)8, columns - from);
        opdi_complex *place = c.at + from * c.cs;
        for (int64_t j = 0; j < width; j++) { sums[j] = place[j * c.cs]; }
        for (int64_t i = 1; i < rows; i++) {
            const opdi_complex v = opdi_complex_conj(opdi_cblock_get(&a, i, 0));
            for (int64_t j = 0; j < width; j++) {
                sums[j] = opdi_complex_add(sums[j], opdi_complex_mul(v, place[i * c.rs + j * c.cs]));
            }
        }
        for (int64_t j = 0; j < width; j++) {
            sums[j] = opdi_complex_mul(tau, sums[j]);
            place[j * c.cs] = opdi_complex_sub(place[j * c.cs], sums[j]);
        }
        for (int64_t i = 1; i < rows; i++) {
            const opdi_complex v = opdi_cblock_get(&a, i, 0);
            for (int64_t j = 0; j < width; j++) {
                opdi_complex *to = place + i * c.rs + j * c.cs;
                *to = opdi_complex_sub(*to, opdi_complex_mul(v, sums[j]));
            }
        }
    }
}
/* Applies `count` reflections to c [rows, columns].  The vector v of reflection i is stored below the diagonal in
   column i of a.  The last reflection is applied first or, if `turned`, last.  If `conj`, each tau is conjugated. */
OPDI_INTERNAL void opdi_complex_reflect_all(int64_t rows, int64_t columns, int64_t count, opdi_cblock a,
                                            const opdi_complex *tau, opdi_cblock c, bool turned, bool conj) {
    for (int64_t step = 0; step < count; step++) {
        const int64_t i = turned ? step : count - 1 - step;
        opdi_complex_reflect(rows - i, columns, opdi_cblock_part(a, i, i), conj ? opdi_complex_conj(tau[i]) : tau[i],
                             opdi_cblock_part(c, i, 0));
    }
}
/* Factors a [rows, columns] = Q R in place.  R, with a real diagonal, is stored on and above the diagonal of a; below
   the diagonal are the vectors v of the reflections; tau is [min(rows, columns)]. */
OPDI_INTERNAL void opdi_complex_geqrf(int64_t rows, int64_t columns, opdi_cblock a, opdi_complex *tau) {
    for (int64_t j = 0; j < OPDI_MIN(rows, columns); j++) {
        const opdi_cblock place = opdi_cblock_part(a, j, j);
        tau[j] = opdi_complex_reflection(rows - j, place.at, place.rs);
        opdi_complex_reflect(rows - j, columns - j - 1, place, opdi_complex_conj(tau[j]),
                             opdi_cblock_part(place, 0, 1));
    }
}
OPDI_INTERNAL int opdi_geqrf_one_c128(const opdi_solver *solver, int64_t at) {
    opdi_complex_geqrf(solver->rows, solver->columns, opdi_cblock_at(solver, 0, at, solver->columns),
                       opdi_cblock_at(solver, 1, at, 1).at);
    return 0;
}
OPDI_INTERNAL int opdi_orgqr_one_c128(const opdi_solver *solver, int64_t at) {
    const opdi_cblock q = opdi_cblock_at(solver, 2, at, solver->columns);
    for (int64_t i = 0; i < solver->rows * solver->columns; i++) {
        q.at[i] = opdi_complex_make(i / solver->columns == i % solver->columns, 0);
    }
    opdi_complex_reflect_all(solver->rows, solver->columns, solver->count,
                             opdi_cblock_at(solver, 0, at, solver->npivots), opdi_cblock_at(solver, 1, at, 1).at, q,
                             false, false);
    return 0;
}
/* Multiplies data[2] by Q.  If Q is on the right, computes (c Q)^T = Q^T c^T, where Q^T is made from the conjugates of
   the vectors v.  Returns 0. */
OPDI_INTERNAL int opdi_ormqr_one_c128(const opdi_solver *solver, int64_t at) {
    opdi_cblock c = opdi_cblock_at(solver, 2, at, solver->left ? solver->columns : solver->rows);
    opdi_cblock a = opdi_cblock_at(solver, 0, at, solver->npivots);
    if (!solver->left) {
        c = opdi_cblock_transposed(c);
        a = opdi_cblock_conj(a);
    }
    opdi_complex_reflect_all(solver->rows, solver->columns, solver->count, a, opdi_cblock_at(solver, 1, at, 1).at, c,
                             solver->turned == solver->left, solver->turned);
    return 0;
}

//== L D L^T and L D L^H with row and column exchanges =================================================================
//
//  The method is that of >>op:factor for real numbers.  If the solver's `turned` is set, the matrix is Hermitian:
//  elements above the diagonal are conjugates of the elements below, and the diagonal is real.

static opdi_complex opdi_complex_mirrored(opdi_complex x, bool hermitian) {
    return hermitian ? opdi_complex_conj(x) : x;
}
/* Exchanges rows and columns i < j of the matrix a [n, n], from column i on.  Only the lower triangular part is
   stored. */
static void opdi_complex_ldl_exchange(int64_t n, opdi_complex *a, int64_t i, int64_t j, bool hermitian) {
    for (int64_t k = i; k < n; k++) {
        if (k == j) { continue; }
        const bool between = hermitian && k > i && k < j;
        opdi_complex *x = k == i ? a + i * n + i : a + k * n + i;
        opdi_complex *y = k == i ? a + j * n + j : k < j ? a + j * n + k : a + k * n + j;
        const opdi_complex kept = *x;
        *x = opdi_complex_mirrored(*y, between);
        *y = opdi_complex_mirrored(kept, between);
    }
    a[j * n + i] = opdi_complex_mirrored(a[j * n + i], hermitian);
}
/* Returns the size (1 or 2) of the diagonal block of D that begins at row k.  Sets *other to the row that must be
   exchanged with the last row of the block. */
static int opdi_complex_ldl_choose(int64_t n, const opdi_complex *a, int64_t k, int64_t *other) {
    const double alpha = 0.6403882032022076, first = opdi_complex_size(a[k * n + k]);  /* (1 + sqrt(17)) / 8 */
    double most = 0, beside = 0;
    int64_t at = k;
    for (int64_t i = k + 1; i < n; i++) {
        if (opdi_complex_size(a[i * n + k]) > most) {
            most = opdi_complex_size(a[i * n + k]);
            at = i;
        }
    }
    *other = k;
    if (first >= alpha * most || at == k) { return 1; }
    for (int64_t j = k; j < n; j++) {
        const double size = opdi_complex_size(j < at ? a[at * n + j] : a[j * n + at]);
        if (j != at && size > beside) { beside = size; }
    }
    if (first >= alpha * most * (most / beside)) { return 1; }
    *other = at;
    return opdi_complex_size(a[at * n + at]) >= alpha * beside ? 1 : 2;
}
/* Solves (x, y) D = (first, second) for a 2 x 2 diagonal block D, whose second row is row `last` of a.  *x and *y hold
   first and second before the call. */
static void opdi_complex_ldl_pair(int64_t n, const opdi_complex *a, int64_t last, bool hermitian, opdi_complex *x,
                                  opdi_complex *y) {
    const opdi_complex below = a[last * n + last - 1];
    const double size = 1 / opdi_complex_abs(below);
    const opdi_complex beside = opdi_complex_times(size, below), above = opdi_complex_mirrored(beside, hermitian);
    const opdi_complex low = opdi_complex_times(size, a[last * n + last]);
    const opdi_complex high = opdi_complex_times(size, a[(last - 1) * n + last - 1]);
    const opdi_complex det = opdi_complex_sub(opdi_complex_mul(high, low), opdi_complex_mul(beside, above));
    const opdi_complex first = opdi_complex_times(size, *x), second = opdi_complex_times(size, *y);
    *x = opdi_complex_div(opdi_complex_sub(opdi_complex_mul(low, first), opdi_complex_mul(beside, second)), det);
    *y = opdi_complex_div(opdi_complex_sub(opdi_complex_mul(high, second), opdi_complex_mul(above, first)), det);
}
/* Eliminates the diagonal block of `size` rows at row k: updates the matrix below and right of it, and writes the
   columns of L to the columns of the block. */
static void opdi_complex_ldl_eliminate(int64_t n, opdi_complex *a, int64_t k, int size, bool hermitian) {
    for (int64_t j = k + size; j < n; j++) {
        opdi_complex x = a[j * n + k], y = size == 2 ? a[j * n + k + 1] : opdi_complex_make(0, 0);
        if (size == 2) { opdi_complex_ldl_pair(n, a, k + 1, hermitian, &x, &y); }
        else { x = opdi_complex_div(x, a[k * n + k]); }
        const opdi_complex first = opdi_complex_mirrored(x, hermitian), second = opdi_complex_mirrored(y, hermitian);
        for (int64_t i = j; i < n; i++) {
            opdi_complex *place = a + i * n + j;
            *place = opdi_complex_sub(*place, opdi_complex_mul(a[i * n + k], first));
            if (size == 2) { *place = opdi_complex_sub(*place, opdi_complex_mul(a[i * n + k + 1], second)); }
        }
        if (hermitian) { a[j * n + j].im = 0; }
        a[j * n + k] = x;
        if (size == 2) { a[j * n + k + 1] = y; }
    }
}
OPDI_INTERNAL int opdi_ldl_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    const bool hermitian = solver->turned;
    opdi_complex *a = opdi_cblock_at(solver, 0, at, n).at;
    int32_t *pivots = solver->pivots + at * n;
    int64_t other;
    int size;
    solver->info[at] = 0;
    for (int64_t i = 0; i < n; i++) {
        if (hermitian) { a[i * n + i].im = 0; }
        for (int64_t j = i + 1; j < n; j++) { a[i * n + j] = opdi_complex_make(0, 0); }
    }
    for (int64_t k = 0; k < n; k += size) {
        size = opdi_complex_ldl_choose(n, a, k, &other);
        pivots[k] = (int32_t)(other + 1);
        if (size == 1 && other == k && opdi_complex_zero(a[k * n + k])) {  /* the column consists of zeros */
            if (!solver->info[at]) { solver->info[at] = (int32_t)(k + 1); }
            continue;
        }
        const int64_t last = k + size - 1;
        if (size == 2) { pivots[k] = pivots[last] = -pivots[k]; }
        if (other != last) {
            opdi_complex_ldl_exchange(n, a, last, other, hermitian);
            const opdi_complex kept = a[last * n + k];
            if (size == 2) {
                a[last * n + k] = a[other * n + k];
                a[other * n + k] = kept;
            }
        }
        opdi_complex_ldl_eliminate(n, a, k, size, hermitian);
    }
    return 0;
}
/* Solves D y = x in place of x [.., columns], for the diagonal block of D that ends at row `last` and has `size` rows.
   opdi_complex_ldl_pair solves with D on the right, so for a Hermitian D the numbers are conjugated before and
   after. */
static void opdi_complex_ldl_divide(int64_t n, const opdi_complex *a, int64_t last, int size, bool hermitian,
                                    opdi_complex *x, int64_t columns) {
    for (int64_t j = 0; j < columns; j++) {
        opdi_complex *bottom = x + last * columns + j;
        if (size == 1) {
            *bottom = opdi_complex_div(*bottom, a[last * n + last]);
            continue;
        }
        opdi_complex *top = bottom - columns;
        *top = opdi_complex_mirrored(*top, hermitian);
        *bottom = opdi_complex_mirrored(*bottom, hermitian);
        opdi_complex_ldl_pair(n, a, last, hermitian, top, bottom);
        *top = opdi_complex_mirrored(*top, hermitian);
        *bottom = opdi_complex_mirrored(*bottom, hermitian);
    }
}
OPDI_INTERNAL int opdi_ldl_solve_one_c128(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows, columns = solver->columns;
    const bool hermitian = solver->turned;
    const opdi_complex *a = opdi_cblock_at(solver, 0, at, n).at;
    const opdi_cblock x = opdi_cblock_at(solver, 1, at, columns);
    const int32_t *pivots = solver->pivots + at * n;
    int size;
    for (int64_t k = 0; k < n; k += size) {
        size = pivots[k] < 0 ? 2 : 1;
        const int64_t last = k + size - 1;
        opdi_cblock_exchange(x, columns, last, (pivots[k] < 0 ? -pivots[k] : pivots[k]) - 1);
        for (int64_t i = last + 1; i < n; i++) {
            for (int64_t j = k; j <= last; j++) { opdi_cblock_minus(x, columns, i, a[i * n + j], j); }
        }
        opdi_complex_ldl_divide(n, a, last, size, hermitian, x.at, columns);
    }
    for (int64_t k = n - 1; k >= 0; k -= size) {
        size = pivots[k] < 0 ? 2 : 1;
        for (int64_t i = k + 1; i < n; i++) {
            for (int64_t j = k - size + 1; j <= k; j++) {
                opdi_cblock_minus(x, columns, j, opdi_complex_mirrored(a[i * n + j], hermitian), i);
            }
        }
        opdi_cblock_exchange(x, columns, k, (pivots[k] < 0 ? -pivots[k] : pivots[k]) - 1);
    }
    return 0;
}
