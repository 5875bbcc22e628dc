//== Cholesky ==========================================================================================================

/* Computes c -= a a^T for a [rows, depth].  Changes only the lower triangular part of c and some elements above it.
   Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(lower_minus)(int64_t rows, int64_t depth, OPDI_TYPED(block) a, OPDI_TYPED(block) c) {
    const int64_t half = rows / 2;
    const OPDI_TYPED(block) below = OPDI_TYPED(part)(a, half, 0);
    if (rows <= 64) { return OPDI_TYPED(block_minus)(rows, rows, depth, a, OPDI_TYPED(transposed)(a), c); }
    return OPDI_TYPED(block_minus)(rows - half, half, depth, below, OPDI_TYPED(transposed)(a),
                                   OPDI_TYPED(part)(c, half, 0)) ||
        OPDI_TYPED(lower_minus)(half, depth, a, c) ? -1
        : OPDI_TYPED(lower_minus)(rows - half, depth, below, OPDI_TYPED(part)(c, half, half));
}
/* Factors a = L L^T in place.  Reads and writes the lower triangular part and some elements above it.  Returns 0, the
   number (from 1) of the first column whose pivot is not positive, or -1 if memory runs out. */
static int64_t OPDI_TYPED(cholesky)(int64_t n, OPDI_TYPED(block) a) {
    if (n > OPDI_NARROW) {
        const int64_t half = n / 2;
        const OPDI_TYPED(block) below = OPDI_TYPED(part)(a, half, 0), rest = OPDI_TYPED(part)(a, half, half);
        int64_t rc = OPDI_TYPED(cholesky)(half, a);
        if (rc) { return rc; }
        if (OPDI_TYPED(lower_solve)(half, n - half, a, OPDI_TYPED(transposed)(below), false) ||
            OPDI_TYPED(lower_minus)(n - half, half, below, rest)) {
            return -1;
        }
        rc = OPDI_TYPED(cholesky)(n - half, rest);
        return rc > 0 ? rc + half : rc;
    }
    OPDI_T copy[OPDI_NARROW * OPDI_NARROW];
    opdi_factor_step rows;
    memset(&rows, 0, sizeof rows);
    rows.n = n;
    if (a.rs == 1 && n % 16 == 0) {               /* rows consist of whole vectors: no copy is needed */
        rows.ld = a.cs;
        rows.a = a.at;
        return OPDI_TYPED(factor_step)(0, &rows);
    }
    rows.ld = OPDI_NARROW;
    rows.a = copy;
    memset(copy, 0, (size_t)(n * OPDI_NARROW) * sizeof *copy);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) { copy[j * OPDI_NARROW + i] = a.at[i * a.rs + j * a.cs]; }
    }
    const int64_t rc = OPDI_TYPED(factor_step)(0, &rows);
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++) { a.at[i * a.rs + j * a.cs] = copy[j * OPDI_NARROW + i]; }
    }
    return rc;
}
OPDI_INTERNAL int OPDI_TYPED(cholesky_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_cholesky)(solver, at);
    if (done <= 0) { return done; }
#endif
    const int64_t n = solver->rows;
    OPDI_TYPED(block) a = OPDI_TYPED(matrix_at)(solver, 0, at, n);
    if (solver->upper) { a = OPDI_TYPED(transposed)(a); }
    const int64_t rc = OPDI_TYPED(cholesky)(n, a);
    for (int64_t i = 0; i < n; i++) {             /* set the elements above the diagonal to zero */
        const int64_t from = a.cs == 1 ? i + 1 : 0, to = a.cs == 1 ? n : i;
        memset(a.at + i * n + from, 0, (size_t)(to - from) * sizeof *a.at);
    }
    solver->info[at] = (int32_t)OPDI_MAX(rc, (int64_t)0);
    return rc < 0 ? -1 : 0;
}
/* Solves L L^T y = x, where L is data[0]; y overwrites x, which is data[1] [rows, columns].  Returns 0, or -1 if memory
   runs out. */
OPDI_INTERNAL int OPDI_TYPED(cholesky_solve_one)(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    const OPDI_TYPED(block) x = OPDI_TYPED(matrix_at)(solver, 1, at, solver->columns);
    OPDI_TYPED(block) a = OPDI_TYPED(matrix_at)(solver, 0, at, n);
    if (solver->upper != solver->columns_first) { a = OPDI_TYPED(transposed)(a); }
    return OPDI_TYPED(triangle_solve)(n, solver->columns, a, x, false, false) ? -1
        : OPDI_TYPED(triangle_solve)(n, solver->columns, OPDI_TYPED(transposed)(a), x, true, false);
}

//== LU with row exchanges =============================================================================================

/* Exchanges rows i and pivots[i] - 1 of x for i = 0 .. count - 1, in reverse order if `backwards` is set. */
static void OPDI_TYPED(exchange)(OPDI_TYPED(block) x, int64_t columns, const int32_t *pivots, int64_t count,
                                 bool backwards) {
    for (int64_t step = 0; step < count; step++) {
        const int64_t i = backwards ? count - 1 - step : step, other = pivots[i] - 1;
        OPDI_T *to = x.at + i * x.rs, *from = x.at + other * x.rs;
        for (int64_t j = 0; other != i && j < columns; j++) {
            const OPDI_T kept = to[j * x.cs];
            to[j * x.cs] = from[j * x.cs];
            from[j * x.cs] = kept;
        }
    }
}
/* Does the work of lu for a matrix with few columns, one column after another.  Returns 0, or the number (from 1) of
   the first column with a zero on the diagonal of U. */
static int64_t OPDI_TYPED(lu_narrow)(int64_t rows, int64_t columns, OPDI_TYPED(block) a, int32_t *pivots) {
    OPDI_T scratch[OPDI_NARROW];
    int64_t zero = 0;
    opdi_factor_step step;
    memset(&step, 0, sizeof step);
    step.n = rows;
    step.columns = columns;
    step.ld = a.rs;
    step.a = a.at;
    step.scratch = scratch;
    for (int64_t j = 0; j < OPDI_MIN(rows, columns); j++) {
        int64_t best = j;
        for (int64_t i = j + 1; i < rows; i++) {
            if (OPDI_FN(fabs)(a.at[i * a.rs + j]) > OPDI_FN(fabs)(a.at[best * a.rs + j])) { best = i; }
        }
        const OPDI_T pivot = a.at[best * a.rs + j];
        pivots[j] = (int32_t)(best + 1);
        if (pivot == 0 && !zero) { zero = j + 1; }
        if (columns <= OPDI_NARROW) {
            step.k = j;
            step.size = best;
            OPDI_TYPED(factor_step)(1, &step);
            continue;
        }
        for (int64_t k = 0; best != j && k < columns; k++) {
            const OPDI_T kept = a.at[j * a.rs + k];
            a.at[j * a.rs + k] = a.at[best * a.rs + k];
            a.at[best * a.rs + k] = kept;
        }
        /* if the pivot is 0, the elements below it are 0 or NaN, and are not changed */
        for (int64_t i = j + 1; pivot != 0 && i < rows; i++) { a.at[i * a.rs + j] /= pivot; }
        if (j + 1 < columns && j + 1 < rows) {
            OPDI_T *const below = a.at + (j + 1) * a.rs + j;
            OPDI_TYPED(skinny_minus)(rows - j - 1, columns - j - 1, 1, below, a.rs, 0, a.at + j * a.rs + j + 1, 0,
                                  below + 1, a.rs);
        }
    }
    return zero;
}
/* Does the work of lu for a matrix with few rows and columns.  Returns what lu_narrow returns. */
static int64_t OPDI_TYPED(lu_small)(int64_t rows, int64_t columns, OPDI_TYPED(block) a, int32_t *pivots) {
    int64_t zero = 0;
    for (int64_t j = 0; j < OPDI_MIN(rows, columns); j++) {
        OPDI_T *const top = a.at + j * a.rs;
        OPDI_T most = OPDI_FN(fabs)(top[j]);
        int64_t best = j;
        for (int64_t i = j + 1; i < rows; i++) {
            const OPDI_T size = OPDI_FN(fabs)(a.at[i * a.rs + j]);
            best = size > most ? i : best;
            most = size > most ? size : most;
        }
        pivots[j] = (int32_t)(best + 1);
        for (int64_t k = 0; k < columns; k++) {   /* also if best is j: no branch */
            const OPDI_T kept = top[k];
            top[k] = a.at[best * a.rs + k];
            a.at[best * a.rs + k] = kept;
        }
        const OPDI_T pivot = top[j];
        if (pivot == 0 && !zero) { zero = j + 1; }
        for (int64_t i = j + 1; i < rows; i++) {
            /* if the pivot is 0, row[j] is 0 or NaN, and stays as it is */
            OPDI_T *const row = a.at + i * a.rs;
            const OPDI_T factor = pivot != 0 ? row[j] / pivot : row[j];
            row[j] = factor;
            for (int64_t k = j + 1; k < columns; k++) {            /* see lanes_minus */
                OPDI_T product = top[k] * factor;
                OPDI_ROUND_FIRST(product);
                row[k] -= product;
            }
        }
    }
    return zero;
}
/* Factors a = P L U in place.  pivots [min(rows, columns)] tells for each row which row, counted from 1, it was
   exchanged with.  Returns 0, the number (from 1) of the first column with a zero on the diagonal of U, or -1 if memory
   runs out. */
static int64_t OPDI_TYPED(lu)(int64_t rows, int64_t columns, OPDI_TYPED(block) a, int32_t *pivots) {
    const int64_t count = OPDI_MIN(rows, columns), half = count / 2;
    const OPDI_TYPED(block) right = OPDI_TYPED(part)(a, 0, half), below = OPDI_TYPED(part)(a, half, 0),
        rest = OPDI_TYPED(part)(a, half, half);
    if (rows <= 6 && columns <= 6) { return OPDI_TYPED(lu_small)(rows, columns, a, pivots); }
    if (count <= 8 || (columns <= OPDI_NARROW && (columns <= OPDI_NARROW / 2 || rows <= 2 * OPDI_NARROW))) {
        return OPDI_TYPED(lu_narrow)(rows, columns, a, pivots);
    }
    const int64_t zero = OPDI_TYPED(lu)(rows, half, a, pivots);
    if (zero < 0) { return -1; }
    OPDI_TYPED(exchange)(right, columns - half, pivots, half, false);
    if (OPDI_TYPED(lower_solve)(half, columns - half, a, right, true) ||
        OPDI_TYPED(block_minus)(rows - half, columns - half, half, below, right, rest)) {
        return -1;
    }
    const int64_t next = OPDI_TYPED(lu)(rows - half, columns - half, rest, pivots + half);
    OPDI_TYPED(exchange)(below, half, pivots + half, count - half, false);
    for (int64_t i = half; i < count; i++) { pivots[i] += (int32_t)half; }
    return zero || next <= 0 ? next < 0 ? next : zero : next + half;
}
OPDI_INTERNAL int OPDI_TYPED(lu_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_lu)(solver, at);
    if (done <= 0) { return done; }
#endif
    const OPDI_TYPED(block) a = OPDI_TYPED(matrix_at)(solver, 0, at, solver->columns);
    const int64_t rc = OPDI_TYPED(lu)(solver->rows, solver->columns, a, solver->pivots + at * solver->npivots);
    solver->info[at] = (int32_t)OPDI_MAX(rc, (int64_t)0);
    return rc < 0 ? -1 : 0;
}
/* Solves equations with the LU factors data[0] [rows, rows].  The solution overwrites data[1], which is [rows, columns]
   or, if the matrix is on the right (solver->left is false), [columns, rows].  If solver->turned is set, uses the
   transposed matrix.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(lu_solve_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_lu_solve)(solver, at);
    if (done <= 0) { return done; }
#endif
    const int64_t n = solver->rows, columns = solver->columns;
    const int32_t *pivots = solver->pivots + at * solver->npivots;
    const OPDI_TYPED(block) first = OPDI_TYPED(matrix_at)(solver, 0, at, n), second = OPDI_TYPED(transposed)(first);
    const OPDI_TYPED(block) a = solver->columns_first ? second : first, over = solver->columns_first ? first : second;
    OPDI_TYPED(block) x = OPDI_TYPED(matrix_at)(solver, 1, at, solver->left ? columns : n);
    if (!solver->left) { x = OPDI_TYPED(transposed)(x); }
    if (solver->turned != solver->left) {
        OPDI_TYPED(exchange)(x, columns, pivots, n, false);
        return OPDI_TYPED(triangle_solve)(n, columns, a, x, false, true) ? -1
            : OPDI_TYPED(triangle_solve)(n, columns, a, x, true, false);
    }
    if (OPDI_TYPED(triangle_solve)(n, columns, over, x, false, false) ||
        OPDI_TYPED(triangle_solve)(n, columns, over, x, true, true)) {
        return -1;
    }
    OPDI_TYPED(exchange)(x, columns, pivots, n, true);
    return 0;
}
/* Computes the determinant from the LU factors in data[0] and writes it to data[1].  If solver->vectors is set, writes
   its sign to data[1] instead, and the logarithm of its absolute value to data[2].  Returns 0. */
OPDI_INTERNAL int OPDI_TYPED(det_one)(const opdi_solver *solver, int64_t at) {
    const int32_t *pivots = solver->pivots + at * solver->npivots;
    const OPDI_TYPED(block) a = OPDI_TYPED(matrix_at)(solver, 0, at, solver->rows);
    OPDI_T product = 1, sum = 0;
    int odd = 0;                                  /* 1 if the number of row exchanges is odd */
    for (int64_t i = 0; i < solver->rows; i++) {
        const OPDI_T pivot = a.at[i * (a.rs + 1)];
        odd ^= pivots[i] != i + 1;
        product *= solver->vectors ? (OPDI_T)((pivot > 0) - (pivot < 0)) : pivot;
        sum += solver->vectors ? (OPDI_T)opdi_log_f64((double)OPDI_FN(fabs)(pivot)) : 0;
    }
    product *= (OPDI_T)(1 - 2 * odd);
    ((OPDI_T *)(void *)solver->data[1])[at] = product;
    if (solver->vectors) { ((OPDI_T *)(void *)solver->data[2])[at] = sum; }
    return 0;
}

//== QR factorization by reflections ===================================================================================
//
//  A reflection I - tau v v^T maps a vector x to (beta, 0, ..., 0); v[0] is 1.  The product of all reflections of a
//  panel is I - V T V^T with an upper triangular T, so that the rest of the matrix is only changed by matrix products.

/* Makes the reflection for x [count], whose elements are `stride` apart.  Writes beta to x[0], and v[1], v[2] and so on
   to x[1], x[2].  Returns tau. */
OPDI_INTERNAL OPDI_T OPDI_TYPED(reflection)(int64_t count, OPDI_T *x, int64_t stride) {
    const OPDI_T eps = (OPDI_T)(OPDI_BYTES == 4 ? (double)FLT_EPSILON : DBL_EPSILON);
    const OPDI_T least = (OPDI_T)(OPDI_BYTES == 4 ? (double)FLT_MIN : DBL_MIN) / eps;
    OPDI_T most = 0, unit = 1;
    double sum = 0;
    for (int64_t i = 1; i < count; i++) {
        const OPDI_T size = OPDI_FN(fabs)(x[i * stride]);
        most = size > most || OPDI_IS_NAN(size) ? size : most;
    }
    if (most == 0) { return 0; }
    most = OPDI_FN(fabs)(x[0]) > most ? OPDI_FN(fabs)(x[0]) : most;
    if (most < least) {                           /* numbers below FLT_MIN or DBL_MIN have too few digits for beta */
        unit = eps * eps * eps;
        most /= unit;
        for (int64_t i = 0; i < count; i++) { x[i * stride] /= unit; }
    }
    for (int64_t i = 0; i < count; i++) {
        const double part = (double)(x[i * stride] / most);
        sum += part * part;
    }
    const OPDI_T alpha = x[0], size = most * (OPDI_T)sqrt(sum), beta = alpha < 0 ? size : -size;
    const OPDI_T scale = alpha - beta;
    for (int64_t i = 1; i < count; i++) { x[i * stride] /= scale; }
    x[0] = beta * unit;
    return (beta - alpha) / beta;
}
/* Applies a reflection to columns [from, columns) of a [rows, columns], whose rows are contiguous.  The reflection's v
   is column from - 1 of a.  scratch [columns] is scratch memory. */
OPDI_INTERNAL void OPDI_TYPED(reflect_one)(int64_t rows, int64_t from, int64_t columns, OPDI_TYPED(block) a, OPDI_T tau,
                                           OPDI_T *scratch) {
    const int64_t count = columns - from;
    const OPDI_T *v = a.at + a.rs + from - 1;
    if (tau == 0 || count <= 0) { return; }
    for (int64_t j = 0; j < count; j++) { scratch[j] = -a.at[from + j]; }
    OPDI_TYPED(skinny_minus)(1, count, rows - 1, v, 0, a.rs, v + 1, a.rs, scratch, 0);
    for (int64_t j = 0; j < count; j++) {
        scratch[j] *= -tau;
        a.at[from + j] -= scratch[j];
    }
    OPDI_TYPED(skinny_minus)(rows - 1, count, 1, v, a.rs, 0, scratch, 0, a.at + a.rs + from, a.rs);
}
/* Computes t [count, count], the matrix T of a panel of `count` reflections with vectors v [rows, count] and factors
   tau.  dots [count, count] is scratch memory.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(reflect_sum)(int64_t rows, int64_t count, OPDI_T *v, const OPDI_T *tau, OPDI_T *dots, OPDI_T *t) {
    const OPDI_TYPED(block) all = OPDI_TYPED(block_of)(v, count, 1);
    if (OPDI_TYPED(block_times)(count, count, rows, OPDI_TYPED(transposed)(all), all, 0,
                                OPDI_TYPED(block_of)(dots, count, 1))) {
        return -1;
    }
    memset(t, 0, (size_t)(count * count) * sizeof *t);
    for (int64_t j = 0; j < count; j++) {
        for (int64_t i = 0; i < j; i++) {
            OPDI_T sum = 0;
            for (int64_t k = i; k < j; k++) { sum += t[i * count + k] * dots[k * count + j]; }
            t[i * count + j] = -tau[j] * sum;
        }
        t[j * count + j] = tau[j];
    }
    return 0;
}
/* Computes c = (I - V T V^T) c or, if `turned`, c = (I - V T^T V^T) c, for c [rows, columns].  The vectors v of the
   `count` reflections are stored below the diagonal of a.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(reflect)(int64_t rows, int64_t columns, int64_t count, OPDI_TYPED(block) a,
                                      const OPDI_T *tau, OPDI_TYPED(block) c, bool turned) {
    const size_t size = (size_t)(rows * count + 2 * count * count + 2 * count * columns) * sizeof(OPDI_T);
    OPDI_T *v = (OPDI_T *)opdi_alloc(size);
    if (!v) { return -1; }
    OPDI_T *const t = v + rows * count, *const dots = t + count * count, *const sums = dots + count * count;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < count; j++) {
            v[i * count + j] = i > j ? a.at[i * a.rs + j * a.cs] : (OPDI_T)(i == j);
        }
    }
    const OPDI_TYPED(block) all = OPDI_TYPED(block_of)(v, count, 1), sum = OPDI_TYPED(block_of)(sums, columns, 1);
    const OPDI_TYPED(block) next = OPDI_TYPED(block_of)(sums + count * columns, columns, 1);
    OPDI_TYPED(block) factor = OPDI_TYPED(block_of)(t, count, 1);
    if (turned) { factor = OPDI_TYPED(transposed)(factor); }
    const int rc = OPDI_TYPED(reflect_sum)(rows, count, v, tau, dots, t) ||
        OPDI_TYPED(block_times)(count, columns, rows, OPDI_TYPED(transposed)(all), c, 0, sum) ||
        OPDI_TYPED(block_times)(count, columns, count, factor, sum, 0, next) ||
        OPDI_TYPED(block_minus)(rows, columns, count, all, next, c) ? -1 : 0;
    opdi_free(v, size);
    return rc;
}
/* Factors a [rows, columns] = Q R in place.  R is stored on and above the diagonal of a, and the vectors v of the
   reflections below it.  tau is [min(rows, columns)].  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(geqrf)(int64_t rows, int64_t columns, OPDI_TYPED(block) a, OPDI_T *tau) {
    const int64_t count = OPDI_MIN(rows, columns);
    OPDI_T scratch[OPDI_PANEL];
    for (int64_t first = 0; first < count; first += OPDI_PANEL) {
        const int64_t wide = OPDI_MIN((int64_t)OPDI_PANEL, count - first), right = first + wide;
        for (int64_t j = 0; j < wide; j++) {
            const OPDI_TYPED(block) place = OPDI_TYPED(part)(a, first + j, first);
            tau[first + j] = OPDI_TYPED(reflection)(rows - first - j, place.at + j, a.rs);
            OPDI_TYPED(reflect_one)(rows - first - j, j + 1, wide, place, tau[first + j], scratch);
        }
        if (right < columns && OPDI_TYPED(reflect)(rows - first, columns - right, wide,
                                                   OPDI_TYPED(part)(a, first, first), tau + first,
                                                   OPDI_TYPED(part)(a, first, right), true)) {
            return -1;
        }
    }
    return 0;
}
/* Computes c = Q c or, if `turned` is true, c = Q^T c, for c [rows, columns].  Q consists of `count` reflections, whose
   vectors v are stored below the diagonal of a.  If `identity` is true, c begins as the identity, so the columns of c
   left of a panel's diagonal do not change and are skipped.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(ormqr)(int64_t rows, int64_t columns, int64_t count, OPDI_TYPED(block) a, const OPDI_T *tau,
                             OPDI_TYPED(block) c, bool turned, bool identity) {
    const int64_t panels = (count + OPDI_PANEL - 1) / OPDI_PANEL;
    for (int64_t i = 0; i < panels; i++) {
        const int64_t first = (turned ? i : panels - 1 - i) * OPDI_PANEL, from = identity ? first : 0;
        if (OPDI_TYPED(reflect)(rows - first, columns - from, OPDI_MIN((int64_t)OPDI_PANEL, count - first),
                                OPDI_TYPED(part)(a, first, first), tau + first, OPDI_TYPED(part)(c, first, from),
                                turned)) {
            return -1;
        }
    }
    return 0;
}
/* Sets q [rows, columns] to the first columns of Q, which consists of `count` reflections.  Returns 0, or -1 if memory
   runs out. */
OPDI_INTERNAL int OPDI_TYPED(orgqr)(int64_t rows, int64_t columns, int64_t count, OPDI_TYPED(block) a,
                                    const OPDI_T *tau, OPDI_TYPED(block) q) {
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) { q.at[i * q.rs + j * q.cs] = (OPDI_T)(i == j); }
    }
    return OPDI_TYPED(ormqr)(rows, columns, count, a, tau, q, false, true);
}
OPDI_INTERNAL int OPDI_TYPED(geqrf_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_geqrf)(solver, at);
    if (done <= 0) { return done; }
#endif
    return OPDI_TYPED(geqrf)(solver->rows, solver->columns, OPDI_TYPED(matrix_at)(solver, 0, at, solver->columns),
                             OPDI_TYPED(matrix_at)(solver, 1, at, 1).at);
}
/* Computes Q, data[2] [rows, columns], from the reflections in data[0] [rows, npivots] and tau, data[1] [count].
   Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(orgqr_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_orgqr)(solver, at);
    if (done <= 0) { return done; }
#endif
    return OPDI_TYPED(orgqr)(solver->rows, solver->columns, solver->count,
                             OPDI_TYPED(matrix_at)(solver, 0, at, solver->npivots),
                             OPDI_TYPED(matrix_at)(solver, 1, at, 1).at,
                             OPDI_TYPED(matrix_at)(solver, 2, at, solver->columns));
}
/* Multiplies data[2] by Q, which consists of the reflections in data[0] [rows, npivots] and tau, data[1] [count].
   data[2] is [rows, columns] or, if Q is on the right (solver->left is false), [columns, rows].  Returns 0, or -1 if
   memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(ormqr_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_ormqr)(solver, at);
    if (done <= 0) { return done; }
#endif
    OPDI_TYPED(block) c = OPDI_TYPED(matrix_at)(solver, 2, at, solver->left ? solver->columns : solver->rows);
    if (!solver->left) { c = OPDI_TYPED(transposed)(c); }
    return OPDI_TYPED(ormqr)(solver->rows, solver->columns, solver->count,
                             OPDI_TYPED(matrix_at)(solver, 0, at, solver->npivots),
                             OPDI_TYPED(matrix_at)(solver, 1, at, 1).at, c, solver->turned == solver->left, false);
}

//== least squares by QR with column exchanges =========================================================================
//
//  In each step, the column with the largest remaining norm comes next.  So the rank can be read from the upper left
//  corner of R.  The largest and the smallest singular value of this corner are estimated while it grows by one column
//  at a time (opdi_estimate).

#if defined(OPD_LAPACK)
/* Does the work of lstsq_one with LAPACK.  Returns 0, -1 if memory runs out, or 1 for sizes that LAPACK cannot
   process. */
static int OPDI_TYPED(lapack_lstsq)(const opdi_solver *solver, int64_t at) {
    const int32_t rows = (int32_t)solver->rows, columns = (int32_t)solver->columns, count = (int32_t)solver->count;
    const int32_t high = OPDI_MAX(rows, columns), ask = -1;
    const OPDI_T least = (OPDI_T)solver->least;
    const OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, columns).at, *b = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at;
    OPDI_T *x = OPDI_TYPED(matrix_at)(solver, 2, at, count).at, wish = 0;
    int32_t info, rank = 0, *const pivots = solver->pivots + at * solver->npivots;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns) ||
        !OPDI_TYPED(lapack_takes)(solver->rows, solver->count)) {
        return 1;
    }
    OPDI_FORTRAN(gelsy)(&rows, &columns, &count, &wish, &rows, &wish, &high, pivots, &least, &rank, &wish, &ask, &info);
    const int32_t length = OPDI_TYPED(lapack_length)(wish);
    const int64_t more = (int64_t)high * count + length;
    OPDI_T *copy = length ? OPDI_TYPED(lapack_copy)(rows, columns, a, columns, more) : NULL;
    if (!copy) { return length ? -1 : 1; }
    OPDI_T *const other = copy + (int64_t)rows * columns;
    memset(pivots, 0, (size_t)columns * sizeof *pivots);
    OPDI_TYPED(transpose)(rows, count, b, count, other, high);
    OPDI_FORTRAN(gelsy)(&rows, &columns, &count, copy, &rows, other, &high, pivots, &least, &rank,
                        other + (int64_t)high * count, &length, &info);
    OPDI_TYPED(transpose)(count, columns, other, high, x, count);
    solver->info[at] = rank;
    OPDI_TYPED(lapack_free)(copy, rows, columns, more);
    return 0;
}
#endif
/* Returns the norm of column j of a, from row `first` on. */
static double OPDI_TYPED(column_length)(int64_t rows, OPDI_TYPED(block) a, int64_t first, int64_t j) {
    double sum = 0;
    for (int64_t i = first; i < rows; i++) {
        const double x = (double)a.at[i * a.rs + j];
        sum += x * x;
    }
    return sqrt(sum);
}
/* Does the work of geqrf with column exchanges.  Writes the order of the columns, as numbers from 0, to pivots
   [columns].  lengths [2 * columns] and scratch [columns] are scratch memory. */
static void OPDI_TYPED(pivoted_qr)(int64_t rows, int64_t columns, OPDI_TYPED(block) a, OPDI_T *tau, int32_t *pivots,
                                   double *lengths, OPDI_T *scratch) {
    const double few = OPDI_BYTES == 4 ? 3.4526698300124393e-4 : 1.4901161193847656e-8;      /* sqrt(epsilon) */
    for (int64_t j = 0; j < columns; j++) {
        pivots[j] = (int32_t)j;
        lengths[j] = lengths[columns + j] = OPDI_TYPED(column_length)(rows, a, 0, j);
    }
    for (int64_t k = 0; k < OPDI_MIN(rows, columns); k++) {
        int64_t best = k;
        for (int64_t j = k + 1; j < columns; j++) { if (lengths[j] > lengths[best]) { best = j; } }
        for (int64_t i = 0; best != k && i < rows; i++) {
            const OPDI_T kept = a.at[i * a.rs + k];
            a.at[i * a.rs + k] = a.at[i * a.rs + best];
            a.at[i * a.rs + best] = kept;
        }
        const int32_t pivot = pivots[k];
        pivots[k] = pivots[best];
        pivots[best] = pivot;
        lengths[best] = lengths[k];
        lengths[columns + best] = lengths[columns + k];
        const OPDI_TYPED(block) place = OPDI_TYPED(part)(a, k, 0);
        tau[k] = OPDI_TYPED(reflection)(rows - k, place.at + k, a.rs);
        OPDI_TYPED(reflect_one)(rows - k, k + 1, columns, place, tau[k], scratch);
        for (int64_t j = k + 1; j < columns; j++) {
            if (lengths[j] <= 0) { continue; }
            const double part = fabs((double)place.at[j]) / lengths[j], rest = OPDI_MAX(1 - part * part, 0.0);
            const double since = lengths[j] / lengths[columns + j];
            if (rest * since * since > few) { lengths[j] *= sqrt(rest); }
            else { lengths[j] = lengths[columns + j] = OPDI_TYPED(column_length)(rows, a, k + 1, j); }
        }
    }
}
/* Returns the rank: the number of leading columns of the triangular matrix r [n, n] whose smallest singular value is at
   least `least` times the largest.  scratch [2 * n] holds the singular vectors of the largest and the smallest singular
   value. */
static int64_t OPDI_TYPED(corner_rank)(int64_t n, OPDI_TYPED(block) r, double least, double *scratch) {
    double sizes[2], turn[2][2];
    sizes[0] = sizes[1] = n > 0 ? fabs((double)r.at[0]) : 0;
    if (!(sizes[0] > 0)) { return 0; }
    scratch[0] = scratch[n] = 1;
    for (int64_t k = 1; k < n; k++) {
        for (int side = 0; side < 2; side++) {    /* 0: the largest, 1: the smallest */
            double along = 0;
            for (int64_t i = 0; i < k; i++) { along += scratch[side * n + i] * (double)r.at[i * r.rs + k]; }
            sizes[side] = opdi_estimate(side == 1, sizes[side], along, (double)r.at[k * r.rs + k], turn[side]);
        }
        if (!(sizes[0] * least <= sizes[1])) { return k; }
        for (int side = 0; side < 2; side++) {
            for (int64_t i = 0; i < k; i++) { scratch[side * n + i] *= turn[side][0]; }
            scratch[side * n + k] = turn[side][1];
        }
    }
    return n;
}
/* Computes the least squares solution x of smallest norm for rank `rank`, from a = Q R and b.  Overwrites a and b.
   Eliminates the columns right of the corner by a QR factorization of the transpose of the first `rank` rows of R.
   Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(lstsq_solved)(const opdi_solver *solver, int64_t rank, OPDI_TYPED(block) a, const OPDI_T *tau,
                                    OPDI_TYPED(block) b, OPDI_TYPED(block) x, const int32_t *pivots) {
    const int64_t n = solver->columns, count = solver->count;
    const size_t size = (size_t)(n * rank + rank + n * count) * sizeof(OPDI_T);
    OPDI_T *work = (OPDI_T *)opdi_alloc(size + 1);
    if (!work) { return -1; }
    OPDI_T *const second = work + n * rank;
    const OPDI_TYPED(block) turned = OPDI_TYPED(block_of)(work, rank, 1);
    const OPDI_TYPED(block) y = OPDI_TYPED(block_of)(second + rank, count, 1);
    int rc = OPDI_TYPED(ormqr)(solver->rows, count, OPDI_MIN(solver->rows, n), a, tau, b, true, false);
    for (int64_t i = 0; i < n * count; i++) { y.at[i] = i < rank * count ? b.at[i] : 0; }
    for (int64_t i = 0; i < n * rank && rank < n; i++) {
        work[i] = i / rank >= i % rank ? a.at[i % rank * a.rs + i / rank] : 0;
    }
    if (!rc && rank == n) { rc = OPDI_TYPED(triangle_solve)(n, count, a, y, true, false); }
    else if (!rc && rank > 0) {
        rc = OPDI_TYPED(geqrf)(n, rank, turned, second) ||
            OPDI_TYPED(triangle_solve)(rank, count, OPDI_TYPED(transposed)(turned), y, false, false) ||
            OPDI_TYPED(ormqr)(n, count, rank, turned, second, y, false, false) ? -1 : 0;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(x.at + pivots[i] * count, y.at + i * count, (size_t)count * sizeof(OPDI_T));
    }
    opdi_free(work, size + 1);
    return rc;
}
/* Divides x [count] by its largest absolute value, unless that is 0.  Returns this value. */
static OPDI_T OPDI_TYPED(scaled)(int64_t count, OPDI_T *x) {
    OPDI_T lanes[16] = {0}, most = 0;
    int64_t i;
    OPDI_SIXTEENS(lanes[lane] = OPDI_MAX(OPDI_FN(fabs)(x[j]), lanes[lane]))
    for (; i < count; i++) { most = OPDI_MAX(OPDI_FN(fabs)(x[i]), most); }
    for (int lane = 0; lane < 16; lane++) { most = OPDI_MAX(lanes[lane], most); }
    if (most > 0) { OPDI_TYPED(divide)(count, x, most); }
    return most;
}
/* Solves data[0] [rows, columns] x = data[1] [rows, count] by least squares.  Writes x to data[2] [columns, count] and
   the rank to info.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(lstsq_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_lstsq)(solver, at);
    if (done <= 0) { return done; }
#endif
    const int64_t rows = solver->rows, n = solver->columns;
    const OPDI_TYPED(block) a = OPDI_TYPED(matrix_at)(solver, 0, at, n);
    const OPDI_TYPED(block) b = OPDI_TYPED(matrix_at)(solver, 1, at, solver->count),
        x = OPDI_TYPED(matrix_at)(solver, 2, at, solver->count);
    const size_t size = (size_t)(2 * n) * sizeof(double) + (size_t)(2 * n) * sizeof(OPDI_T);
    double *lengths = (double *)opdi_alloc(size + 1);
    if (!lengths) { return -1; }
    OPDI_T *const tau = (OPDI_T *)(void *)(lengths + 2 * n);
    int32_t *const pivots = solver->pivots + at * solver->npivots;
    const OPDI_T most = OPDI_TYPED(scaled)(rows * n, a.at);
    OPDI_TYPED(pivoted_qr)(rows, n, a, tau, pivots, lengths, tau + n);
    const int64_t rank = OPDI_TYPED(corner_rank)(OPDI_MIN(rows, n), a, solver->least, lengths);
    const int rc = OPDI_TYPED(lstsq_solved)(solver, rank, a, tau, b, x, pivots);
    for (int64_t i = 0; most > 0 && i < n * solver->count; i++) { x.at[i] /= most; }
    solver->info[at] = (int32_t)rank;
    opdi_free(lengths, size + 1);
    return rc;
}

//== L D L^T with row and column exchanges =============================================================================
//
//  D has blocks of one or two rows on its diagonal, so that symmetric matrices which are not positive definite have a
//  factorization, too.  If pivots[i] is positive, row i is a block of one row and was exchanged with row pivots[i]
//  (counted from 1).  For a block of two rows, both pivots are -k; its second row was exchanged with row k.

/* Exchanges rows and columns i < j of a symmetric matrix a [n, n], from column i on.  Only the lower triangular part is
   stored. */
static void OPDI_TYPED(ldl_exchange)(int64_t n, OPDI_T *a, int64_t ld, int64_t i, int64_t j) {
    for (int64_t k = i; k < n; k++) {
        if (k == j) { continue; }
        OPDI_T *x = k == i ? a + i * ld + i : a + k * ld + i;
        OPDI_T *y = k == i ? a + j * ld + j : k < j ? a + j * ld + k : a + k * ld + j;
        const OPDI_T kept = *x;
        *x = *y;
        *y = kept;
    }
}
/* Returns the size (1 or 2) of the diagonal block of D that begins at row k.  Sets *other to the row that must be
   exchanged with the last row of the block.  The choice depends on the largest off-diagonal elements (Bunch and
   Kaufman). */
static int OPDI_TYPED(ldl_choose)(int64_t n, const OPDI_T *a, int64_t ld, int64_t k, int64_t *other) {
    const OPDI_T alpha = (OPDI_T)0.6403882032022076, first = OPDI_FN(fabs)(a[k * ld + k]);      /* (1 + sqrt(17)) / 8 */
    OPDI_T most = 0, beside = 0;
    int64_t at = k;
    for (int64_t i = k + 1; i < n; i++) {
        if (OPDI_FN(fabs)(a[i * ld + k]) > most) {
            most = OPDI_FN(fabs)(a[i * ld + k]);
            at = i;
        }
    }
    *other = k;
    if (first >= alpha * most || at == k) { return 1; }
    for (int64_t j = k; j < n; j++) {
        const OPDI_T size = OPDI_FN(fabs)(j < at ? a[at * ld + j] : a[j * ld + at]);
        if (j != at && size > beside) { beside = size; }
    }
    if (first >= alpha * most * (most / beside)) { return 1; }
    *other = at;
    return OPDI_FN(fabs)(a[at * ld + at]) >= alpha * beside ? 1 : 2;
}
/* Eliminates the diagonal block of `size` rows at row k: updates the matrix below and right of it, and writes the
   columns of L to the columns of the block.  scratch [2 ld] is scratch memory. */
static void OPDI_TYPED(ldl_eliminate)(int64_t n, OPDI_T *a, int64_t ld, int64_t k, int size, OPDI_T *scratch) {
    const int64_t from = k + size;
    for (int64_t i = from; i < n; i++) {
        scratch[i] = a[i * ld + k];
        scratch[ld + i] = size == 2 ? a[i * ld + k + 1] : 0;
    }
    if (size == 1) { for (int64_t i = from; i < n; i++) { a[i * ld + k] /= a[k * ld + k]; } }
    else {
        const OPDI_T beside = a[(k + 1) * ld + k], low = a[(k + 1) * ld + k + 1] / beside;
        const OPDI_T high = a[k * ld + k] / beside;
        const OPDI_T scale = 1 / (low * high - 1) / beside;
        for (int64_t j = from; j < n; j++) {
            a[j * ld + k] = scale * (low * scratch[j] - scratch[ld + j]);
            a[j * ld + k + 1] = scale * (high * scratch[ld + j] - scratch[j]);
        }
    }
    opdi_factor_step rows;
    rows.n = rows.columns = n;
    rows.ld = ld;
    rows.k = k;
    rows.size = size;
    rows.a = a;
    rows.scratch = scratch;
    OPDI_TYPED(factor_step)(2, &rows);
}
OPDI_INTERNAL int OPDI_TYPED(ldl_one)(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows, ld = n + 16;
    const size_t length = (size_t)((n + 2) * ld) * sizeof(OPDI_T);
    OPDI_T *const to = OPDI_TYPED(matrix_at)(solver, 0, at, n).at;
    int32_t *pivots = solver->pivots + at * n;
    int64_t other;
    int size;
    OPDI_T *const a = (OPDI_T *)opdi_alloc(length), *const scratch = a ? a + n * ld : NULL;
    solver->info[at] = 0;
    if (!a) { return -1; }
    memset(a, 0, length);
    for (int64_t i = 0; i < n; i++) { memcpy(a + i * ld, to + i * n, (size_t)(i + 1) * sizeof *a); }
    for (int64_t k = 0; k < n; k += size) {
        size = OPDI_TYPED(ldl_choose)(n, a, ld, k, &other);
        pivots[k] = (int32_t)(other + 1);
        if (size == 1 && other == k && a[k * ld + k] == 0) {                /* the column consists of zeros */
            if (!solver->info[at]) { solver->info[at] = (int32_t)(k + 1); }
            continue;
        }
        const int64_t last = k + size - 1;
        if (size == 2) { pivots[k] = pivots[last] = -pivots[k]; }
        if (other != last) {
            OPDI_TYPED(ldl_exchange)(n, a, ld, last, other);
            const OPDI_T kept = a[last * ld + k];
            if (size == 2) {
                a[last * ld + k] = a[other * ld + k];
                a[other * ld + k] = kept;
            }
        }
        OPDI_TYPED(ldl_eliminate)(n, a, ld, k, size, scratch);
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + i * n, a + i * ld, (size_t)(i + 1) * sizeof *a);
        for (int64_t j = i + 1; j < n; j++) { to[i * n + j] = 0; }
    }
    opdi_free(a, length);
    return 0;
}
/* Subtracts `factor` times row `from` of x [.., columns] from row `to`. */
static void OPDI_TYPED(row_minus)(OPDI_T *x, int64_t columns, int64_t to, int64_t from, OPDI_T factor) {
    for (int64_t j = 0; j < columns; j++) { x[to * columns + j] -= factor * x[from * columns + j]; }
}
/* Solves equations with the L D L^T factors in data[0] [rows, rows] and their pivots.  The solution overwrites data[1]
   [rows, columns].  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(ldl_solve_one)(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows, columns = solver->columns;
    const OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, n).at;
    const OPDI_TYPED(block) all = OPDI_TYPED(matrix_at)(solver, 1, at, columns);
    const int32_t *pivots = solver->pivots + at * n;
    OPDI_T *x = all.at;
    for (int64_t k = 0; k < n; k += pivots[k] < 0 ? 2 : 1) {
        const int size = pivots[k] < 0 ? 2 : 1;
        const int64_t last = k + size - 1, other = (pivots[k] < 0 ? -pivots[k] : pivots[k]) - 1;
        int32_t exchange = (int32_t)(other - last + 1);
        OPDI_TYPED(exchange)(OPDI_TYPED(part)(all, last, 0), columns, &exchange, 1, false);
        for (int64_t i = last + 1; i < n; i++) {
            for (int64_t j = k; j <= last; j++) { OPDI_TYPED(row_minus)(x, columns, i, j, a[i * n + j]); }
        }
        const OPDI_T beside = size == 2 ? a[last * n + k] : 1, high = a[k * n + k] / beside,
            low = a[last * n + last] / beside;
        for (int64_t j = 0; j < columns; j++) {
            OPDI_T *top = x + k * columns + j, *bottom = x + last * columns + j;
            const OPDI_T first = *top / beside, second = *bottom / beside;
            *top = size == 1 ? *top / high : (low * first - second) / (high * low - 1);
            if (size == 2) { *bottom = (high * second - first) / (high * low - 1); }
        }
    }
    for (int64_t k = n - 1; k >= 0; k -= pivots[k] < 0 ? 2 : 1) {
        const int64_t first = pivots[k] < 0 ? k - 1 : k, other = (pivots[k] < 0 ? -pivots[k] : pivots[k]) - 1;
        for (int64_t i = k + 1; i < n; i++) {
            for (int64_t j = first; j <= k; j++) { OPDI_TYPED(row_minus)(x, columns, j, i, a[i * n + j]); }
        }
        int32_t exchange = (int32_t)(other - k + 1);
        OPDI_TYPED(exchange)(OPDI_TYPED(part)(all, k, 0), columns, &exchange, 1, false);
    }
    return 0;
}
