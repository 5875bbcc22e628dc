/* Applies the rotations in ctx, an opdi_rotations, to blocks [begin, end) of 64 columns each. */
static void OPDI_TYPED(rotate)(void *ctx, int64_t begin, int64_t end) {
    const opdi_rotations *all = (const opdi_rotations *)ctx;
    const int64_t left = begin * 64, right = OPDI_MIN(end * 64, all->columns);
    void (*piece)(const opdi_rotations *, int64_t, int64_t) = OPDI_TYPED(rotate_piece_plain);
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level == 1) { piece = OPDI_TYPED(rotate_piece_avx2); }
#endif
#if defined(OPDI_X86)
    if (level == 2) { piece = OPDI_TYPED(rotate_piece_avx512); }
#endif
    for (int64_t from = left; from < right; from += 64) { piece(all, from, OPDI_MIN(from + 64, right)); }
}
/* Returns the distance between rows of n elements in working memory: an odd number of cache lines.  If it were a power
   of two, the rows would share a few sets of the cache. */
OPDI_INTERNAL int64_t OPDI_TYPED(row_length)(int64_t n) {
    const int64_t line = 64 / (int64_t)sizeof(OPDI_T);
    return n < 64 ? n : ((n + line - 1) / line | 1) * line;
}
/* Returns how many columns of rows [.., wide] must be rotated if n are used: whole cache lines, if possible. */
static int64_t OPDI_TYPED(columns_used)(int64_t n, int64_t wide) {
    const int64_t line = 64 / (int64_t)sizeof(OPDI_T);
    return OPDI_MIN((n + line - 1) / line * line, wide);
}
/* Sets rows [n, wide] to the identity matrix, padded with zeros. */
OPDI_INTERNAL void OPDI_TYPED(rows_identity)(int64_t n, int64_t wide, OPDI_T *rows) {
    memset(rows, 0, (size_t)(n * wide) * sizeof *rows);
    for (int64_t i = 0; i < n; i++) { rows[i * wide + i] = 1; }
}
/* Returns the largest absolute value in a [count].  If an element is NaN or infinite, returns NaN or infinity. */
OPDI_INTERNAL OPDI_T OPDI_TYPED(largest)(const OPDI_T *a, int64_t count) {
    OPDI_T lanes[16] = {0}, odd[16] = {0}, most = 0;
    bool numbers = true;
    int64_t i = 0;
    OPDI_SIXTEENS(
        const OPDI_T size = OPDI_FN(fabs)(a[j]);
        lanes[lane] = OPDI_MAX(size, lanes[lane]);
        odd[lane] += size - size)                 /* adds 0, or NaN for NaN and infinity */
    for (int lane = 0; lane < 16; lane++) {
        most = OPDI_MAX(lanes[lane], most);
        numbers = numbers && odd[lane] == 0;
    }
    if (!numbers) { most = 0; }
    for (i = numbers ? i : 0; i < count; i++) {
        const OPDI_T size = OPDI_FN(fabs)(a[i]);
        if (size > most || OPDI_IS_NAN(size)) { most = size; }
        if (OPDI_IS_NAN(most)) { return most; }
    }
    return most;
}
/* Runs a step of the reduction to tridiagonal form with the vector instructions of the CPU. */
static void OPDI_TYPED(symmetric_step)(const opdi_symmetric *step) {
    void (*run)(const opdi_symmetric *) = OPDI_TYPED(symmetric_step_plain);
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level == 1) { run = OPDI_TYPED(symmetric_step_avx2); }
#endif
#if defined(OPDI_X86)
    if (level == 2) { run = OPDI_TYPED(symmetric_step_avx512); }
#endif
    run(step);
}
/* Reduces a symmetric matrix a [n, wide], of which both triangular parts are stored, to a tridiagonal matrix with
   diagonal d [n] and off-diagonal e [n - 1].  Stores the vector of reflection i, which changes rows and columns from i
   + 1 on, in row i of a, and its factor in tau [n].  scratch [4, wide] is scratch memory.  `wide` is a multiple of the
   elements of a cache line, and elements of a beyond column n are 0.

   Reflection i subtracts v w^T + w v^T from the matrix.  These sums are subtracted when the matrix is read for the
   product with the vector of the next reflection, which depends only on the row above. */
static void OPDI_TYPED(tridiagonal)(int64_t n, OPDI_T *a, int64_t wide, double *d, double *e, OPDI_T *tau,
                                    OPDI_T *scratch) {
    OPDI_T *v = scratch, *next = v + wide, *w = next + wide, *out = w + wide;
    opdi_symmetric step;
    memset(scratch, 0, (size_t)(4 * wide) * sizeof *scratch);
    step.a = a;
    step.width = wide;
    for (int64_t i = 0; i < n; i++) {
        OPDI_T *const row = a + i * wide, *kept = v, dot = 0;
        for (int64_t j = i; j < n; j++) { row[j] -= w[j] * v[i] + v[j] * w[i]; }
        d[i] = (double)row[i];
        if (i + 1 == n) { break; }
        tau[i] = OPDI_TYPED(reflection)(n - i - 1, row + i + 1, 1);
        e[i] = (double)row[i + 1];
        if (tau[i] != 0) { row[i + 1] = 1; }
        memset(next, 0, (size_t)(i + 1) * sizeof *next);
        for (int64_t j = i + 1; j < n; j++) { next[j] = tau[i] != 0 ? row[j] : 0; }
        memset(out, 0, (size_t)wide * sizeof *out);
        step.v = v;
        step.w = w;
        step.next = next;
        step.out = out;
        step.first = i + 1;
        step.n = n;
        OPDI_TYPED(symmetric_step)(&step);
        for (int64_t j = i + 1; j < n; j++) { dot += out[j] * next[j]; }
        w[i] = 0;
        for (int64_t j = i + 1; j < n; j++) { w[j] = tau[i] * (out[j] - tau[i] / 2 * dot * next[j]); }
        v = next;
        next = kept;
    }
}
/* Computes the eigenvalues of the tridiagonal matrix with diagonal d and off-diagonal e [n], and overwrites d with
   them.  rows [n, wide] (NULL: none) holds the transposed vectors so far, and becomes the eigenvectors.  turns is
   scratch memory.  Returns 0, or the number of the eigenvalue that did not converge.

   The method is implicit QL: the shift comes from the top, and a bulge is moved from the bottom to the top.  Elements
   that are small relative to their neighbours count as zero.  If convergence takes long, elements that are small
   relative to the largest element count as zero, too, because in matrices of low rank many elements are only rounding
   errors. */
static int64_t OPDI_TYPED(ql)(int64_t n, double *d, double *e, OPDI_T *rows, int64_t wide, double *turns) {
    const double least = OPDI_BYTES == 4 ? (double)FLT_EPSILON / 8 : DBL_EPSILON;
    double most = 0;
    if (n > 0) { e[n - 1] = 0; }
    for (int64_t i = 0; i < n; i++) { most = OPDI_MAX(most, fabs(d[i]) + fabs(e[i])); }
    const double tiny = most * 1e-290;            /* denormals have too few digits for rotations, so they are 0 */
    for (int64_t first = 0; first < n; first++) {
        for (int sweep = 0; ; sweep++) {
            const double around = sweep < OPDI_SWEEPS / 3 ? 0 : most;
            int64_t last = first;
            for (; last + 1 < n; last++) {
                const double beside = fabs(d[last]) + fabs(d[last + 1]);
                if (fabs(e[last]) <= OPDI_MAX(tiny, least * OPDI_MAX(beside, around))) { break; }
            }
            if (last == first) { break; }
            if (sweep == OPDI_SWEEPS || !(fabs(d[first]) <= DBL_MAX)) { return first + 1; }
            const double slope = (d[first + 1] - d[first]) / (2 * e[first]), size = opdi_length(slope, 1);
            double lead = d[last] - d[first] + e[first] / (slope + (slope < 0 ? -size : size)), s = 1, c = 1, moved = 0;
            int64_t i;
            for (i = last - 1; i >= first; i--) {
                const double bulge = s * e[i], beside = c * e[i], length = opdi_turned_length(lead, bulge);
                e[i + 1] = length;
                if (length == 0) {
                    d[i + 1] -= moved;
                    e[last] = 0;
                    break;
                }
                s = bulge / length;
                c = lead / length;
                lead = d[i + 1] - moved;
                const double sum = (d[i] - lead) * s + 2 * c * beside;
                moved = s * sum;
                d[i + 1] = lead + moved;
                lead = c * sum - beside;
                turns[2 * (i - first)] = c;
                turns[2 * (i - first) + 1] = -s;
            }
            if (i < first) {
                d[first] -= moved;
                e[first] = lead;
                e[last] = 0;
            }
            if (rows) {
                opdi_rotations all;
                all.rows = rows;
                all.width = wide;
                all.columns = OPDI_TYPED(columns_used)(n, wide);
                all.first = i + 1;
                all.count = last - i - 1;
                all.down = true;
                all.turns = turns + 2 * (i + 1 - first);
                opdi_parallel_for((all.columns + 63) / 64, n < 128 ? n : 1, OPDI_TYPED(rotate), &all);
            }
        }
    }
    return 0;
}
/* Sorts values [n] in ascending order or, if `down`, in descending order.  Exchanges the rows of the two matrices
   (NULL: none) in the same way. */
static void OPDI_TYPED(sort_rows)(int64_t n, double *values, OPDI_T *rows, OPDI_T *other, int64_t width, bool down) {
    for (int64_t i = 0; i < n; i++) {
        const double kept = values[i];
        double most = kept;
        int64_t best = i;
        for (int64_t j = i + 1; j < n; j++) {     /* no branch */
            const bool better = down ? values[j] > most : values[j] < most;
            best = better ? j : best;
            most = better ? values[j] : most;
        }
        if (best == i) { continue; }
        values[i] = values[best];
        values[best] = kept;
        for (int64_t j = 0; rows && j < width; j++) {
            const OPDI_T x = rows[i * width + j];
            rows[i * width + j] = rows[best * width + j];
            rows[best * width + j] = x;
        }
        for (int64_t j = 0; other && j < width; j++) {
            const OPDI_T x = other[i * width + j];
            other[i * width + j] = other[best * width + j];
            other[best * width + j] = x;
        }
    }
}
/* Computes the eigenvalues data[1] [n] of data[0] [n, n] and, if solver->vectors is set, the eigenvectors data[2] [n,
   n].  Reads only one triangular part.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(eigh_one)(const opdi_solver *solver, int64_t at) {
    const int64_t n = solver->rows, wide = OPDI_TYPED(row_length)(n), line = 64 / (int64_t)sizeof(OPDI_T);
    const int64_t width = ((n + line - 1) / line | 1) * line;
    const OPDI_TYPED(block) from = OPDI_TYPED(matrix_at)(solver, 0, at, n),
        to = OPDI_TYPED(matrix_at)(solver, 2, at, n);
    const size_t size = (size_t)(n * (width + wide) + n + 4 * width) * sizeof(OPDI_T) +
        (size_t)(4 * n + 4) * sizeof(double);
    double *const d = (double *)opdi_alloc(size);
    if (!d) { return -1; }
    double *const e = d + n, *const turns = e + n;
    OPDI_T *const a = (OPDI_T *)(void *)(turns + 2 * n + 4), *const rows = a + n * width, *const tau = rows + n * wide,
        *const scratch = tau + n, *const values = OPDI_TYPED(matrix_at)(solver, 1, at, n).at;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            a[i * width + j] = a[j * width + i] = solver->upper ? from.at[j * n + i] : from.at[i * n + j];
        }
        memset(a + i * width + n, 0, (size_t)(width - n) * sizeof *a);
    }
    const OPDI_T most = OPDI_TYPED(largest)(a, n * width);
    const bool finite = most <= (OPDI_BYTES == 4 ? (OPDI_T)FLT_MAX : (OPDI_T)DBL_MAX);
#if defined(OPD_LAPACK)
    const int done = finite ? OPDI_TYPED(lapack_eigh)(solver, at) : 1;
    if (done <= 0) {
        opdi_free(d, size);
        return done;
    }
#endif
    if (finite && most > 0) { OPDI_TYPED(divide)(n * width, a, most); }
    int64_t info = finite ? 0 : OPDI_MAX(n - 1, (int64_t)1);
    int rc = 0;
    if (finite) { OPDI_TYPED(tridiagonal)(n, a, width, d, e, tau, scratch); }
    if (finite && !rc && solver->vectors) {
        const OPDI_TYPED(block) turned = OPDI_TYPED(block_of)(rows, 1, wide);
        OPDI_TYPED(rows_identity)(n, wide, rows);
        if (n > 1) {
            rc = OPDI_TYPED(orgqr)(n - 1, n - 1, n - 1, OPDI_TYPED(block_of)(a + 1, 1, width), tau,
                                   OPDI_TYPED(part)(turned, 1, 1));
        }
    }
    if (finite && !rc) { info = OPDI_TYPED(ql)(n, d, e, solver->vectors ? rows : NULL, wide, turns); }
    if (finite && !rc && !info) {
        OPDI_TYPED(sort_rows)(n, d, solver->vectors ? rows : NULL, NULL, wide, false);
        for (int64_t i = 0; i < n; i++) { values[i] = (OPDI_T)d[i] * most; }
        if (solver->vectors) { OPDI_TYPED(transpose)(n, n, rows, wide, to.at, n); }
    }
    solver->info[at] = (int32_t)info;
    opdi_free(d, size);
    return rc;
}

/* Reduces a [n, n] to a bidiagonal matrix: diagonal d [n], and e [n - 1] above it.  The reflections of columns are
   stored below the diagonal of a, their factors in tau [n]; the reflections of rows right of e, their factors in pie
   [n].  scratch [n] is scratch memory.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(bidiagonal)(int64_t n, OPDI_T *a, double *d, double *e, OPDI_T *tau, OPDI_T *pie,
                                  OPDI_T *scratch) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t rest = n - i - 1;
        OPDI_T *place = a + i * n + i, *v = place + 1;
        tau[i] = OPDI_TYPED(reflection)(rest + 1, place, n);
        d[i] = (double)*place;
        pie[i] = 0;
        if (rest == 0) { continue; }
        OPDI_TYPED(reflect_one)(rest + 1, 1, rest + 1, OPDI_TYPED(block_of)(place, n, 1), tau[i], scratch);
        pie[i] = OPDI_TYPED(reflection)(rest, v, 1);
        e[i] = (double)v[0];
        v[0] = 1;
        if (OPDI_TYPED(block_times)(rest, 1, rest, OPDI_TYPED(block_of)(v + n, n, 1), OPDI_TYPED(block_of)(v, 1, 1), 0,
                                    OPDI_TYPED(block_of)(scratch, 1, 1))) {
            return -1;
        }
        for (int64_t j = 0; j < rest; j++) { scratch[j] *= pie[i]; }
        OPDI_TYPED(skinny_minus)(rest, rest, 1, scratch, 1, 0, v, 0, v + n, n);
    }
    return 0;
}
static void OPDI_TYPED(rotate_all)(OPDI_T *rows, int64_t n, int64_t wide, int64_t first, int64_t count,
                                   const double *turns) {
    opdi_rotations all;
    if (!rows) { return; }
    all.rows = rows;
    all.width = wide;
    all.columns = OPDI_TYPED(columns_used)(n, wide);
    all.first = first;
    all.count = count;
    all.down = false;
    all.turns = turns;
    opdi_parallel_for((all.columns + 63) / 64, n < 128 ? n : 1, OPDI_TYPED(rotate), &all);
}
/* Performs one QR sweep with a shift on rows first .. last of the bidiagonal matrix d, e.  Applies the rotations also
   to left and right [n, wide], the transposed singular vectors, unless they are NULL. */
static void OPDI_TYPED(svd_sweep)(int64_t n, int64_t wide, int64_t first, int64_t last, double *d, double *e,
                                  OPDI_T *left, OPDI_T *right, double *turns) {
    double *others = turns + 2 * n;
    double x = d[first], y = d[last - 1], before = last - 1 > first ? e[last - 2] : 0, h = e[last - 1], z = d[last];
    double shift = ((y - z) * (y + z) + (before - h) * (before + h)) / (2 * h * y), c = 1, s = 1;
    const double size = opdi_length(shift, 1);
    shift = ((x - z) * (x + z) + h * (y / (shift + (shift < 0 ? -size : size)) - h)) / x;
    for (int64_t j = first; j < last; j++) {
        double beside = c * e[j], next = d[j + 1], bulge = s * e[j];
        double length = opdi_turned_length(shift, bulge);
        if (j > first) { e[j - 1] = length; }
        c = length != 0 ? shift / length : 1;
        s = length != 0 ? bulge / length : 0;
        turns[2 * (j - first)] = c;
        turns[2 * (j - first) + 1] = s;
        shift = x * c + beside * s;
        beside = beside * c - x * s;
        bulge = next * s;
        next *= c;
        length = opdi_turned_length(shift, bulge);
        d[j] = length;
        c = length != 0 ? shift / length : 1;
        s = length != 0 ? bulge / length : 0;
        others[2 * (j - first)] = c;
        others[2 * (j - first) + 1] = s;
        shift = c * beside + s * next;
        x = c * next - s * beside;
    }
    e[last - 1] = shift;
    d[last] = x;
    OPDI_TYPED(rotate_all)(right, n, wide, first, last - first, turns);
    OPDI_TYPED(rotate_all)(left, n, wide, first, last - first, others);
}
/* Removes e[first - 1], given that d[first - 1] is negligible, by rotations of row first - 1 with the rows below it. */
static void OPDI_TYPED(svd_cancel)(int64_t wide, int64_t first, int64_t last, double *d, double *e, OPDI_T *left) {
    double bulge = e[first - 1];
    e[first - 1] = 0;
    for (int64_t i = first; i <= last && bulge != 0; i++) {
        const double length = opdi_turned_length(d[i], bulge), c = d[i] / length, s = -bulge / length;
        OPDI_T *x = left ? left + (first - 1) * wide : NULL, *y = left ? left + i * wide : NULL;
        d[i] = length;
        if (i < last) {
            bulge = s * e[i];
            e[i] *= c;
        }
        for (int64_t j = 0; left && j < wide; j++) {
            const OPDI_T kept = x[j];
            x[j] = (OPDI_T)c * kept + (OPDI_T)s * y[j];
            y[j] = (OPDI_T)c * y[j] - (OPDI_T)s * kept;
        }
    }
}
/* Computes the singular values of the bidiagonal matrix d, e [n], and overwrites d with them.  Applies the rotations
   also to left and right [n, wide], unless they are NULL.  Returns 0, or the number of a singular value that did not
   converge. */
static int64_t OPDI_TYPED(svd_values)(int64_t n, int64_t wide, double *d, double *e, OPDI_T *left, OPDI_T *right,
                                      double *turns) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) { most = OPDI_MAX(most, fabs(d[i]) + (i ? fabs(e[i - 1]) : 0)); }
    const double least = most * (OPDI_BYTES == 4 ? (double)FLT_EPSILON / 16 : DBL_EPSILON / 2);
    for (int64_t last = n - 1; last >= 0; last--) {
        for (int sweep = 0; ; sweep++) {
            int64_t first = last;
            while (first > 0 && fabs(e[first - 1]) > least && fabs(d[first - 1]) > least) { first--; }
            if (first > 0 && fabs(e[first - 1]) <= least) { e[first - 1] = 0; }
            else if (first > 0) {
                OPDI_TYPED(svd_cancel)(wide, first, last, d, e, left);
                continue;
            }
            if (first == last) { break; }
            if (sweep >= OPDI_SWEEPS + (int)n || !(fabs(d[last]) <= DBL_MAX)) { return last + 1; }
            OPDI_TYPED(svd_sweep)(n, wide, first, last, d, e, left, right, turns);
        }
        if (d[last] < 0) {
            d[last] = -d[last];
            for (int64_t j = 0; right && j < n; j++) { right[last * wide + j] = -right[last * wide + j]; }
        }
    }
    return 0;
}
/* The working memory of svd_one for a matrix [high, n]; a matrix with more columns than rows is transposed first. */
typedef struct OPDI_TYPED(svd) {
    int64_t high, n, wide, length;                /* wide: number of left vectors; length: of a row of left and of
                                                     right */
    double *d, *e, *turns;
    OPDI_T *w, *q, *a, *left, *right, *tau, *first, *second, *scratch;
} OPDI_TYPED(svd);
/* Factors w = Q R and reduces R [n, n], in a, to d and e.  If `vectors`, sets left and right to the products of the
   reflections, transposed.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(svd_reduce)(const OPDI_TYPED(svd) *svd, bool vectors) {
    const int64_t n = svd->n;
    if (OPDI_TYPED(geqrf)(svd->high, n, OPDI_TYPED(block_of)(svd->w, n, 1), svd->tau)) { return -1; }
    for (int64_t i = 0; i < n * n; i++) { svd->a[i] = i % n >= i / n ? svd->w[i] : 0; }
    if (OPDI_TYPED(bidiagonal)(n, svd->a, svd->d, svd->e, svd->first, svd->second, svd->scratch)) { return -1; }
    if (!vectors) { return 0; }
    const OPDI_TYPED(block) right = OPDI_TYPED(block_of)(svd->right, 1, svd->length);
    OPDI_TYPED(rows_identity)(n, svd->length, svd->right);
    OPDI_TYPED(rows_identity)(n, svd->length, svd->left);
    return OPDI_TYPED(orgqr)(n, n, n, OPDI_TYPED(block_of)(svd->a, n, 1), svd->first,
                             OPDI_TYPED(block_of)(svd->left, 1, svd->length)) ||
        (n > 1 && OPDI_TYPED(orgqr)(n - 1, n - 1, n - 1, OPDI_TYPED(block_of)(svd->a + 1, 1, n), svd->second,
                                    OPDI_TYPED(part)(right, 1, 1))) ? -1 : 0;
}
/* Writes the left singular vectors, multiplied by Q, to big [high, wide], and the transposed right singular vectors to
   inner [n, n].  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(svd_write)(const OPDI_TYPED(svd) *svd, OPDI_TYPED(block) big, OPDI_TYPED(block) inner) {
    const int64_t n = svd->n, high = svd->high, wide = svd->wide;
    const OPDI_TYPED(block) q = OPDI_TYPED(block_of)(svd->q, wide, 1);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) { inner.at[i * inner.rs + j * inner.cs] = svd->right[i * svd->length + j]; }
    }
    if (OPDI_TYPED(orgqr)(high, wide, n, OPDI_TYPED(block_of)(svd->w, n, 1), svd->tau, q)) { return -1; }
    for (int64_t i = 0; i < high; i++) {
        for (int64_t j = n; j < wide; j++) { big.at[i * big.rs + j * big.cs] = q.at[i * wide + j]; }
    }
    return OPDI_TYPED(block_times)(high, n, n, q, OPDI_TYPED(block_of)(svd->left, 1, svd->length), 0, big);
}
/* Computes the singular values data[1] of data[0] [rows, columns] and, if solver->vectors is set, U (data[2]) and V^T
   (data[3]).  U and V^T are square if solver->left is set.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(svd_one)(const opdi_solver *solver, int64_t at) {
    const int64_t rows = solver->rows, columns = solver->columns, n = OPDI_MIN(rows, columns);
    const OPDI_TYPED(block) from = OPDI_TYPED(matrix_at)(solver, 0, at, columns);
    OPDI_T *values = OPDI_TYPED(matrix_at)(solver, 1, at, n).at;
    OPDI_TYPED(svd) svd;
    svd.high = OPDI_MAX(rows, columns);
    svd.n = n;
    svd.wide = solver->left && solver->vectors ? svd.high : n;
    svd.length = OPDI_TYPED(row_length)(n);
    solver->info[at] = 0;
    if (n == 0 && svd.wide == 0) { return 0; }
    const OPDI_T most = OPDI_TYPED(largest)(from.at, rows * columns);
    const bool finite = most <= (OPDI_BYTES == 4 ? (OPDI_T)FLT_MAX : (OPDI_T)DBL_MAX);
    const size_t size = (size_t)(svd.high * (n + svd.wide) + n * n + 2 * n * svd.length + 4 * n) * sizeof(OPDI_T) +
        (size_t)(6 * n + 4) * sizeof(double);
    solver->info[at] = finite ? 0 : -4;                /* the value that LAPACK returns */
    if (!finite) { return 0; }
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_svd)(solver, at);
    if (done <= 0) { return done; }
#endif
    svd.d = (double *)opdi_alloc(size);
    if (!svd.d) { return -1; }
    svd.e = svd.d + n;
    svd.turns = svd.e + n;
    svd.w = (OPDI_T *)(void *)(svd.turns + 4 * n + 4);
    svd.q = svd.w + svd.high * n;
    svd.a = svd.q + svd.high * svd.wide;
    svd.left = svd.a + n * n;
    svd.right = svd.left + n * svd.length;
    svd.tau = svd.right + n * svd.length;
    svd.first = svd.tau + n;
    svd.second = svd.first + n;
    svd.scratch = svd.second + n;
    const OPDI_T scale = most > 0 ? most : 1;
    for (int64_t i = 0; i < svd.high; i++) {
        for (int64_t j = 0; j < n; j++) {
            svd.w[i * n + j] = from.at[rows >= columns ? i * columns + j : j * columns + i];
        }
    }
    OPDI_TYPED(divide)(svd.high * n, svd.w, scale);
    int rc = OPDI_TYPED(svd_reduce)(&svd, solver->vectors);
    OPDI_T *left = solver->vectors ? svd.left : NULL, *right = solver->vectors ? svd.right : NULL;
    if (!rc) {
        solver->info[at] = (int32_t)OPDI_TYPED(svd_values)(n, svd.length, svd.d, svd.e, left, right, svd.turns);
    }
    if (!rc && !solver->info[at]) {
        OPDI_TYPED(sort_rows)(n, svd.d, left, right, svd.length, true);
        for (int64_t i = 0; i < n; i++) { values[i] = (OPDI_T)svd.d[i] * scale; }
        const OPDI_TYPED(block) u = OPDI_TYPED(matrix_at)(solver, 2, at, solver->left ? rows : n);
        const OPDI_TYPED(block) v = OPDI_TYPED(matrix_at)(solver, 3, at, columns);
        if (solver->vectors) {
            rc = rows >= columns ? OPDI_TYPED(svd_write)(&svd, u, v)
                : OPDI_TYPED(svd_write)(&svd, OPDI_TYPED(transposed)(v), OPDI_TYPED(transposed)(u));
        }
    }
    opdi_free(svd.d, size);
    return rc;
}
