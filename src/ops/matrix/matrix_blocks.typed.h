//== matrix products and triangular solves =============================================================================

/* Writes the transpose of from [rows, columns] to `to` [columns, rows], in square pieces that fit into cache lines.
   Rows are ldf and ldt apart. */
OPDI_INTERNAL void OPDI_TYPED(transpose)(int64_t rows, int64_t columns, const OPDI_T *from, int64_t ldf, OPDI_T *to,
                                         int64_t ldt) {
    for (int64_t i = 0; i < rows; i += 16) {
        for (int64_t j = 0; j < columns; j += 16) {
            const int64_t high = OPDI_MIN(i + 16, rows), wide = OPDI_MIN(j + 16, columns);
            for (int64_t k = j; k < wide; k++) {
                for (int64_t row = i; row < high; row++) { to[k * ldt + row] = from[row * ldf + k]; }
            }
        }
    }
}
/* Divides x [count] by a number. */
OPDI_INTERNAL void OPDI_TYPED(divide)(int64_t count, OPDI_T *x, OPDI_T number) {
    int64_t i;
    OPDI_COLUMN_EACH(x[j] /= number)
}
/* Computes c = a * b + beta * c for matrices a [rows, depth] and b [depth, columns].  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int OPDI_TYPED(block_times)(int64_t rows, int64_t columns, int64_t depth, OPDI_TYPED(block) a,
                                          OPDI_TYPED(block) b, double beta, OPDI_TYPED(block) c) {
    const int dtype = OPDI_BYTES == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    const opdi_gemm_in left = opdi_gemm_in_of(a.at, dtype, a.rs, a.cs),
        right = opdi_gemm_in_of(b.at, dtype, b.rs, b.cs);
    return opdi_gemm(OPDI_BYTES, rows, columns, depth, &left, &right, beta, c.at, c.rs, c.cs);
}
/* Computes c -= a * b for a matrix c [rows, columns] with few rows or small depth; see opdi_skinny.  The rows of b and
   c are contiguous. */
OPDI_INTERNAL void OPDI_TYPED(skinny_minus)(int64_t rows, int64_t columns, int64_t depth, const OPDI_T *a, int64_t rs,
                                            int64_t cs, const OPDI_T *b, int64_t ldb, OPDI_T *c, int64_t ldc) {
    opdi_skinny skinny;
    skinny.rows = rows;
    skinny.columns = columns;
    skinny.depth = depth;
    skinny.a = a;
    skinny.rs = rs;
    skinny.cs = cs;
    skinny.b = b;
    skinny.ldb = ldb;
    skinny.c = c;
    skinny.ldc = ldc;
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
#if defined(OPDI_X86)
    if (level == 2) {
        OPDI_TYPED(skinny_minus_avx512)(&skinny);
        return;
    }
#endif
    if (level == 1) {
        OPDI_TYPED(skinny_minus_avx2)(&skinny);
        return;
    }
#endif
    OPDI_TYPED(skinny_minus_plain)(&skinny);
}
/* Runs one of the functions for factorization steps: cholesky_rows (0), lu_rows (1) or ldl_rows (2), for this CPU.
   Returns the function's result. */
static int64_t OPDI_TYPED(factor_step)(int which, const opdi_factor_step *rows) {
    static opdi_factor_fn *const plain[3] = {OPDI_TYPED(cholesky_rows_plain), OPDI_TYPED(lu_rows_plain),
        OPDI_TYPED(ldl_rows_plain)};
#if defined(OPDI_VECTORS)
    static opdi_factor_fn *const avx2[3] = {OPDI_TYPED(cholesky_rows_avx2), OPDI_TYPED(lu_rows_avx2),
        OPDI_TYPED(ldl_rows_avx2)};
#if defined(OPDI_X86)
    static opdi_factor_fn *const avx512[3] = {OPDI_TYPED(cholesky_rows_avx512), OPDI_TYPED(lu_rows_avx512),
        OPDI_TYPED(ldl_rows_avx512)};
#endif
    const int level = opdi_cpu_level();
    if (level > 0) { return OPDI_WIDEST(level, avx512, avx2)[which](rows); }
#endif
    return plain[which](rows);
}
static void OPDI_TYPED(block_minus_small)(int64_t rows, int64_t columns, int64_t depth, OPDI_TYPED(block) a,
                                          OPDI_TYPED(block) b, OPDI_TYPED(block) c) {
    if (b.cs == 1 && c.cs == 1) {
        OPDI_TYPED(skinny_minus)(rows, columns, depth, a.at, a.rs, a.cs, b.at, b.rs, c.at, c.rs);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        OPDI_T *to = c.at + i * c.rs;
        for (int64_t k = 0; k < depth; k++) {
            const OPDI_T factor = a.at[i * a.rs + k * a.cs], *from = b.at + k * b.rs;
            for (int64_t j = 0; j < columns; j++) { to[j * c.cs] -= factor * from[j * b.cs]; }
        }
    }
}
/* Computes c -= a * b for matrices a [rows, depth] and b [depth, columns]: negates a copy of the smaller factor, then
   adds the product.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(block_minus)(int64_t rows, int64_t columns, int64_t depth, OPDI_TYPED(block) a,
                                          OPDI_TYPED(block) b, OPDI_TYPED(block) c) {
    if (c.cs != 1 && c.rs == 1) {
        const OPDI_TYPED(block) other = OPDI_TYPED(transposed)(a);
        const int64_t count = rows;
        a = OPDI_TYPED(transposed)(b);
        b = other;
        c = OPDI_TYPED(transposed)(c);
        rows = columns;
        columns = count;
    }
    if (rows <= 0 || columns <= 0 || depth <= 0) { return 0; }
    if (rows * columns * depth <= 4096) {
        OPDI_TYPED(block_minus_small)(rows, columns, depth, a, b, c);
        return 0;
    }
    const bool first = rows <= columns;
    const int64_t high = first ? rows : depth, wide = first ? depth : columns;
    const OPDI_TYPED(block) from = first ? a : b;
    const size_t size = (size_t)(high * wide) * sizeof(OPDI_T);
    OPDI_T *copy = (OPDI_T *)opdi_alloc(size);
    if (!copy) { return -1; }
    for (int64_t i = 0; i < high; i++) {
        for (int64_t j = 0; j < wide; j++) { copy[i * wide + j] = -from.at[i * from.rs + j * from.cs]; }
    }
    if (first) { a = OPDI_TYPED(block_of)(copy, wide, 1); }
    else { b = OPDI_TYPED(block_of)(copy, wide, 1); }
    const int rc = OPDI_TYPED(block_times)(rows, columns, depth, a, b, 1, c);
    opdi_free(copy, size);
    return rc;
}
/* Solves t y = x for a lower triangular matrix t [rows, rows]; y overwrites x [rows, columns].  If `unit`, the diagonal
   of t counts as ones.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(lower_solve)(int64_t rows, int64_t columns, OPDI_TYPED(block) t, OPDI_TYPED(block) x, bool unit) {
    if (rows > 16) {
        const int64_t half = rows / 2;
        const OPDI_TYPED(block) below = OPDI_TYPED(part)(x, half, 0);
        return OPDI_TYPED(lower_solve)(half, columns, t, x, unit) ||
            OPDI_TYPED(block_minus)(rows - half, columns, half, OPDI_TYPED(part)(t, half, 0), x, below) ? -1
            : OPDI_TYPED(lower_solve)(rows - half, columns, OPDI_TYPED(part)(t, half, half), below, unit);
    }
    if (x.cs == 1 && columns > 1) {
        for (int64_t i = 0; i < rows; i++) {
            OPDI_T *to = x.at + i * x.rs;
            const OPDI_T pivot = unit ? 1 : t.at[i * (t.rs + t.cs)];
            if (columns > 8) {
                OPDI_TYPED(skinny_minus)(1, columns, i, t.at + i * t.rs, 0, t.cs, x.at, x.rs, to, 0);
            } else {
                for (int64_t k = 0; k < i; k++) {
                    const OPDI_T factor = t.at[i * t.rs + k * t.cs], *const from = x.at + k * x.rs;
                    for (int64_t j = 0; j < columns; j++) { to[j] -= factor * from[j]; }
                }
            }
            if (!unit) { for (int64_t j = 0; j < columns; j++) { to[j] /= pivot; } }
        }
        return 0;
    }
    for (int64_t j = 0; j < columns; j++) {
        OPDI_T *to = x.at + j * x.cs;
        for (int64_t i = 0; i < rows; i++) {
            OPDI_T sum = to[i * x.rs];
            for (int64_t k = 0; k < i; k++) { sum -= t.at[i * t.rs + k * t.cs] * to[k * x.rs]; }
            to[i * x.rs] = unit ? sum : sum / t.at[i * (t.rs + t.cs)];
        }
    }
    return 0;
}
/* Solves like lower_solve, but t is upper triangular if `upper` is true: with rows and columns in reverse order, it is
   lower triangular.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(triangle_solve)(int64_t rows, int64_t columns, OPDI_TYPED(block) t, OPDI_TYPED(block) x,
                                      bool upper, bool unit) {
    if (upper && rows > 0) {
        t = OPDI_TYPED(part)(t, rows - 1, rows - 1);
        x = OPDI_TYPED(part)(x, rows - 1, 0);
        t.rs = -t.rs;
        t.cs = -t.cs;
        x.rs = -x.rs;
    }
    return OPDI_TYPED(lower_solve)(rows, columns, t, x, unit);
}
/* Solves equations with the triangular matrix data[0] [rows, rows].  The solution overwrites data[1], which is [rows,
   columns] or, if the matrix is on the right (solver->left is false), [columns, rows].  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int OPDI_TYPED(triangle_one)(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows;
    OPDI_TYPED(block) t = OPDI_TYPED(matrix_at)(solver, 0, at, n);
    OPDI_TYPED(block) x = OPDI_TYPED(matrix_at)(solver, 1, at, solver->left ? solver->columns : n);
    if (solver->columns_first) { t = OPDI_TYPED(transposed)(t); }
    if (!solver->left) {
        t = OPDI_TYPED(transposed)(t);
        x = OPDI_TYPED(transposed)(x);
    }
    return OPDI_TYPED(triangle_solve)(n, solver->columns, t, x, solver->upper == solver->left, solver->unit);
}

//== LAPACK, if OPD_LAPACK is defined ==================================================================================
//
//  Each function lapack_NAME does the work of the function NAME or NAME_one below.  It returns 0, -1 if memory runs
//  out, or 1 for sizes that LAPACK cannot process: zero, or too large.  Matrices are stored by rows here, so LAPACK's
//  routines see each matrix transposed.  If the transposed problem is equivalent, they get the matrix itself; otherwise
//  they get copies.

#if defined(OPD_LAPACK)
static bool OPDI_TYPED(lapack_takes)(int64_t rows, int64_t columns) {
    return rows > 0 && columns > 0 && rows <= OPDI_LAPACK_MOST && columns <= OPDI_LAPACK_MOST;
}
/* Returns the length of the working memory that a routine asks for.  The routine gives it as `wish`, a number of the
   matrix's type, which may have been rounded.  Returns 0 if the length exceeds 32 bits. */
static int32_t OPDI_TYPED(lapack_length)(OPDI_T wish) {
    const double length = (double)wish * 1.000001 + 1;
    return wish >= 0 && length < 2147483647.0 ? (int32_t)length : 0;
}
/* Returns a copy of a [rows, columns], whose rows are `wide` elements apart.  The copy is stored by columns, and memory
   for `more` elements follows it.  The caller frees it by lapack_free.  Returns NULL if memory runs out. */
static OPDI_T *OPDI_TYPED(lapack_copy)(int64_t rows, int64_t columns, const OPDI_T *a, int64_t wide, int64_t more) {
    OPDI_T *copy = (OPDI_T *)opdi_alloc((size_t)(rows * columns + more) * sizeof(OPDI_T));
    if (copy) { OPDI_TYPED(transpose)(rows, columns, a, wide, copy, rows); }
    return copy;
}
static void OPDI_TYPED(lapack_free)(OPDI_T *copy, int64_t rows, int64_t columns, int64_t more) {
    opdi_free(copy, (size_t)(rows * columns + more) * sizeof(OPDI_T));
}
static int OPDI_TYPED(lapack_cholesky)(const opdi_solver *solver, int64_t at) {
    const int32_t n = (int32_t)solver->rows;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->rows)) { return 1; }
    OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, n).at;
    OPDI_FORTRAN(potrf)(solver->upper ? "L" : "U", &n, a, &n, &solver->info[at], 1);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) { a[solver->upper ? i * n + j : j * n + i] = 0; }
        if (solver->info[at] == 0 && !(a[i * n + i] > 0)) { solver->info[at] = (int32_t)(i + 1); }     /* NaN pivot */
    }
    return 0;
}
static int OPDI_TYPED(lapack_lu)(const opdi_solver *solver, int64_t at) {
    const int32_t rows = (int32_t)solver->rows, columns = (int32_t)solver->columns;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns)) { return 1; }
    OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, columns).at;
    OPDI_T *copy = OPDI_TYPED(lapack_copy)(rows, columns, a, columns, 0);
    if (!copy) { return -1; }
    OPDI_FORTRAN(getrf)(&rows, &columns, copy, &rows, solver->pivots + at * solver->npivots, &solver->info[at]);
    OPDI_TYPED(transpose)(columns, rows, copy, rows, a, columns);
    OPDI_TYPED(lapack_free)(copy, rows, columns, 0);
    return 0;
}
static int OPDI_TYPED(lapack_lu_solve)(const opdi_solver *solver, int64_t at) {
    const int32_t n = (int32_t)solver->rows, columns = (int32_t)solver->columns;
    int32_t info;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns)) { return 1; }
    OPDI_T *x = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at;
    const int64_t more = solver->left ? (int64_t)n * columns : 0;
    OPDI_T *const a = OPDI_TYPED(matrix_at)(solver, 0, at, n).at;
    OPDI_T *copy = OPDI_TYPED(lapack_copy)(n, n, a, n, more), *other = x;
    if (!copy) { return -1; }
    if (solver->columns_first) { memcpy(copy, a, (size_t)n * (size_t)n * sizeof(OPDI_T)); }
    if (solver->left) {
        other = copy + (int64_t)n * n;
        OPDI_TYPED(transpose)(n, columns, x, columns, other, n);
    }
    OPDI_FORTRAN(getrs)(solver->turned == solver->left ? "T" : "N", &n, &columns, copy, &n,
                        solver->pivots + at * solver->npivots, other, &n, &info, 1);
    if (solver->left) { OPDI_TYPED(transpose)(columns, n, other, n, x, columns); }
    OPDI_TYPED(lapack_free)(copy, n, n, more);
    return 0;
}
static int OPDI_TYPED(lapack_geqrf)(const opdi_solver *solver, int64_t at) {
    const int32_t rows = (int32_t)solver->rows, columns = (int32_t)solver->columns, ask = -1;
    OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, columns).at, *tau = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at;
    OPDI_T wish = 0;
    int32_t info;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns)) { return 1; }
    OPDI_FORTRAN(geqrf)(&rows, &columns, a, &rows, tau, &wish, &ask, &info);
    const int32_t length = OPDI_TYPED(lapack_length)(wish);
    OPDI_T *copy = length ? OPDI_TYPED(lapack_copy)(rows, columns, a, columns, length) : NULL;
    if (!copy) { return length ? -1 : 1; }
    OPDI_FORTRAN(geqrf)(&rows, &columns, copy, &rows, tau, copy + (int64_t)rows * columns, &length, &info);
    OPDI_TYPED(transpose)(columns, rows, copy, rows, a, columns);
    OPDI_TYPED(lapack_free)(copy, rows, columns, length);
    return 0;
}
static int OPDI_TYPED(lapack_orgqr)(const opdi_solver *solver, int64_t at) {
    const int32_t rows = (int32_t)solver->rows, columns = (int32_t)solver->columns, count = (int32_t)solver->count;
    const int32_t ask = -1;
    const OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, 1).at, *tau = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at;
    OPDI_T *q = OPDI_TYPED(matrix_at)(solver, 2, at, columns).at, wish = 0;
    int32_t info;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns) || solver->columns > solver->rows ||
        solver->count > solver->columns) {
        return 1;
    }
    OPDI_FORTRAN(orgqr)(&rows, &columns, &count, q, &rows, tau, &wish, &ask, &info);
    const int32_t length = OPDI_TYPED(lapack_length)(wish);
    OPDI_T *copy = length ? OPDI_TYPED(lapack_copy)(rows, count, a, solver->npivots,
                                                    (int64_t)rows * (columns - count) + length) : NULL;
    if (!copy) { return length ? -1 : 1; }
    OPDI_FORTRAN(orgqr)(&rows, &columns, &count, copy, &rows, tau, copy + (int64_t)rows * columns, &length, &info);
    OPDI_TYPED(transpose)(columns, rows, copy, rows, q, columns);
    OPDI_TYPED(lapack_free)(copy, rows, columns, length);
    return 0;
}
/* Does the work of ormqr_one: computes Q c for matrices stored by rows as c^T Q^T for matrices stored by columns. */
static int OPDI_TYPED(lapack_ormqr)(const opdi_solver *solver, int64_t at) {
    const int32_t rows = (int32_t)solver->rows, columns = (int32_t)solver->columns, count = (int32_t)solver->count;
    const int32_t high = solver->left ? columns : rows, wide = solver->left ? rows : columns, ask = -1;
    const char *side = solver->left ? "R" : "L", *trans = solver->turned ? "N" : "T";
    const OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, 1).at, *tau = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at;
    OPDI_T *c = OPDI_TYPED(matrix_at)(solver, 2, at, 1).at, wish = 0;
    int32_t info;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns) || count == 0 || solver->count > solver->rows) {
        return 1;
    }
    OPDI_FORTRAN(ormqr)(side, trans, &high, &wide, &count, a, &rows, tau, c, &high, &wish, &ask, &info, 1, 1);
    const int32_t length = OPDI_TYPED(lapack_length)(wish);
    OPDI_T *copy = length ? OPDI_TYPED(lapack_copy)(rows, count, a, solver->npivots, length) : NULL;
    if (!copy) { return length ? -1 : 1; }
    OPDI_FORTRAN(ormqr)(side, trans, &high, &wide, &count, copy, &rows, tau, c, &high, copy + (int64_t)rows * count,
                        &length, &info, 1, 1);
    OPDI_TYPED(lapack_free)(copy, rows, count, length);
    return 0;
}
/* Does the work of eigh_one if data[0] [n, n] has only finite elements: computes the eigenvalues data[1] and, if
   solver->vectors is set, the eigenvectors data[2]. */
static int OPDI_TYPED(lapack_eigh)(const opdi_solver *solver, int64_t at) {
    const int32_t n = (int32_t)solver->rows, ask = -1;
    const char *job = solver->vectors ? "V" : "N", *uplo = solver->upper ? "L" : "U";
    OPDI_T *values = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at, *a = OPDI_TYPED(matrix_at)(solver, 0, at, 1).at;
    OPDI_T wish = 0;
    int32_t whole = 0;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->rows)) { return 1; }
    OPDI_FORTRAN(syevd)(job, uplo, &n, a, &n, values, &wish, &ask, &whole, &ask, &solver->info[at], 1, 1);
    const int32_t length = whole > 0 ? OPDI_TYPED(lapack_length)(wish) : 0;
    const size_t size = ((size_t)n * (size_t)n + (size_t)length) * sizeof(OPDI_T) + (size_t)whole * sizeof(int32_t);
    OPDI_T *copy = length ? (OPDI_T *)opdi_alloc(size) : NULL;
    if (!copy) { return length ? -1 : 1; }
    OPDI_T *const work = copy + (int64_t)n * n;
    memcpy(copy, a, (size_t)n * (size_t)n * sizeof(OPDI_T));
    OPDI_FORTRAN(syevd)(job, uplo, &n, copy, &n, values, work, &length, (int32_t *)(void *)(work + length), &whole,
                        &solver->info[at], 1, 1);
    if (solver->vectors) {
        OPDI_TYPED(transpose)(n, n, copy, n, OPDI_TYPED(matrix_at)(solver, 2, at, n).at, n);
    }
    opdi_free(copy, size);
    return 0;
}
/* Does the work of svd_one for finite numbers.  LAPACK sees the transposed matrix, so its left vectors are V and its
   right vectors U^T. */
static int OPDI_TYPED(lapack_svd)(const opdi_solver *solver, int64_t at) {
    const int32_t rows = (int32_t)solver->rows, columns = (int32_t)solver->columns, ask = -1;
    const int32_t least = OPDI_MIN(rows, columns), wide = solver->left ? rows : least;
    const char *job = !solver->vectors ? "N" : solver->left ? "A" : "S";
    OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, 1).at, *values = OPDI_TYPED(matrix_at)(solver, 1, at, 1).at;
    OPDI_T *u = OPDI_TYPED(matrix_at)(solver, 2, at, 1).at, *v = OPDI_TYPED(matrix_at)(solver, 3, at, 1).at, wish = 0;
    int32_t none = 0;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->columns)) { return 1; }
    OPDI_FORTRAN(gesdd)(job, &columns, &rows, a, &columns, values, v, &columns, u, &wide, &wish, &ask, &none,
                        &solver->info[at], 1);
    const int32_t length = OPDI_TYPED(lapack_length)(wish);
    const size_t count = (size_t)rows * (size_t)columns;
    const size_t size = (count + (size_t)length) * sizeof(OPDI_T) + (size_t)least * 8 * sizeof(int32_t);
    OPDI_T *copy = length ? (OPDI_T *)opdi_alloc(size) : NULL;
    if (!copy) { return length ? -1 : 1; }
    memcpy(copy, a, count * sizeof(OPDI_T));
    OPDI_FORTRAN(gesdd)(job, &columns, &rows, copy, &columns, values, v, &columns, u, &wide, copy + count, &length,
                        (int32_t *)(void *)(copy + count + length), &solver->info[at], 1);
    opdi_free(copy, size);
    return 0;
}
/* Does the work of eig_one.  For a pair of complex eigenvalues, LAPACK returns the real part of the eigenvector as one
   column and the imaginary part as the next column. */
static int OPDI_TYPED(lapack_eig)(const opdi_solver *solver, int64_t at) {
    const int32_t n = (int32_t)solver->rows, ask = -1;
    const char *job = solver->vectors ? "V" : "N";
    const OPDI_T *a = OPDI_TYPED(matrix_at)(solver, 0, at, 1).at;
    OPDI_T *values = (OPDI_T *)opdi_solver_at(solver, 1, at, 2 * sizeof(OPDI_T));
    OPDI_T *vectors = solver->vectors ? (OPDI_T *)opdi_solver_at(solver, 2, at, 2 * sizeof(OPDI_T)) : NULL;
    OPDI_T wish = 0;
    if (!OPDI_TYPED(lapack_takes)(solver->rows, solver->rows)) { return 1; }
    OPDI_FORTRAN(geev)("N", job, &n, &wish, &n, &wish, &wish, &wish, &n, &wish, &n, &wish, &ask, &solver->info[at], 1,
                       1);
    const int32_t length = OPDI_TYPED(lapack_length)(wish);
    const int64_t square = (int64_t)n * n, more = square + 2 * (int64_t)n + length;
    OPDI_T *copy = length ? OPDI_TYPED(lapack_copy)(n, n, a, n, more) : NULL;
    if (!copy) { return length ? -1 : 1; }
    OPDI_T *const v = copy + square, *const re = v + square, *const im = re + n;
    OPDI_FORTRAN(geev)("N", job, &n, copy, &n, re, im, copy, &n, v, &n, im + n, &length, &solver->info[at], 1, 1);
    for (int64_t j = 0; !solver->info[at] && j < n; j++) {
        const bool second = im[j] < 0 && j > 0;
        values[2 * j] = re[j];
        values[2 * j + 1] = im[j];
        for (int64_t i = 0; vectors && i < n; i++) {
            const OPDI_T *column = v + (j - second) * n + i;
            vectors[2 * (i * n + j)] = column[0];
            vectors[2 * (i * n + j) + 1] = im[j] > 0 ? column[n] : second ? -column[n] : 0;
        }
    }
    OPDI_TYPED(lapack_free)(copy, n, n, more);
    return 0;
}
#endif
