/* A matrix h [n, n] that is being reduced to its Schur form.  q [n, n] satisfies a = q^T h q, where a is the balanced
   matrix; q is NULL if eigenvectors are not needed.  Rows of h and q are ld apart.  For i in low .. high, balancing
   divided row i by scale[i] and multiplied column i by it (see balance).

   A window is a square part of h on the diagonal that is processed on its own.  `window` holds its elements, and `turn`
   the product of its reflections.  `other` is scratch memory for [OPDI_SCHUR_WINDOW, ld] numbers or, if n <=
   OPDI_SCHUR_SMALL (then there are no windows), for (2 * OPDI_SCHUR_VECTORS + 4) * n numbers. */
typedef struct OPDI_TYPED(schur) OPDI_TYPED(schur);
struct OPDI_TYPED(schur) {
    int64_t n, ld, low, high;
    OPDI_T *h, *q, *scale, *window, *turn, *other;
};
static double OPDI_TYPED(epsilon)(void) { return OPDI_BYTES == 4 ? (double)FLT_EPSILON : DBL_EPSILON; }
static double OPDI_TYPED(schur_least)(int64_t n) {
    return OPDI_BYTES == 4 ? (double)FLT_MIN * (double)n / (double)FLT_EPSILON : opdi_schur_least(n);
}
static void OPDI_TYPED(chase)(const opdi_chase *chase) {
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
#if defined(OPDI_X86)
    if (level == 2) {
        OPDI_TYPED(chase_avx512)(chase);
        return;
    }
#endif
    if (level == 1) {
        OPDI_TYPED(chase_avx2)(chase);
        return;
    }
#endif
    OPDI_TYPED(chase_plain)(chase);
}

/* Exchanges rows i and j, and columns i and j, of h [n, n]. */
static void OPDI_TYPED(balance_exchange)(int64_t n, OPDI_T *h, int64_t ld, int64_t i, int64_t j) {
    for (int64_t k = 0; k < n && i != j; k++) {
        const OPDI_T x = h[k * ld + i];
        h[k * ld + i] = h[k * ld + j];
        h[k * ld + j] = x;
    }
    for (int64_t k = 0; k < n && i != j; k++) {
        const OPDI_T x = h[i * ld + k];
        h[i * ld + k] = h[j * ld + k];
        h[j * ld + k] = x;
    }
}
/* Returns the number of the last row in range[0] .. range[1] that is 0 outside of the diagonal or, if `columns` is
   true, the number of the last such column.  Returns -1 if there is none. */
static int64_t OPDI_TYPED(balance_alone)(const OPDI_T *h, int64_t ld, const int64_t range[2], bool columns) {
    const int64_t along = columns ? ld : 1, across = columns ? 1 : ld;
    for (int64_t i = range[1]; i >= range[0]; i--) {
        bool alone = true;
        for (int64_t k = range[0]; k <= range[1] && alone; k++) { alone = k == i || h[i * across + k * along] == 0; }
        if (alone) { return i; }
    }
    return -1;
}
/* Returns the Euclidean norm of `count` elements of x, which are `step` apart. */
static double OPDI_TYPED(balance_length)(const OPDI_T *x, int64_t step, int64_t count) {
    double most = 0, sum = 0;
    for (int64_t i = 0; i < count; i++) { most = OPDI_MAX(most, fabs((double)x[i * step])); }
    for (int64_t i = 0; most > 0 && i < count; i++) {
        const double part = (double)x[i * step] / most;
        sum += part * part;
    }
    return most * sqrt(sum);
}
/* Multiplies column i and divides row i by a power of two that makes their norms similar, if this reduces the sum of
   the norms by more than 5%.  Returns true if it did.  The norms include the diagonal element.  So a nearly triangular
   matrix is not scaled, which would make its eigenvectors less accurate (James, Langou and Lowery). */
static bool OPDI_TYPED(balance_scale)(int64_t n, OPDI_T *h, int64_t ld, OPDI_T *scale, const int64_t range[2],
                                      int64_t i) {
    const double most = OPDI_BYTES == 4 ? 1e12 : 1e100, all_most = OPDI_BYTES == 4 ? 1e30 : 1e250;
    const int64_t count = range[1] - range[0] + 1;
    double column = OPDI_TYPED(balance_length)(h + range[0] * ld + i, ld, count), factor = 1;
    double row = OPDI_TYPED(balance_length)(h + i * ld + range[0], 1, count);
    const double before = column + row;
    if (column == 0 || row == 0) { return false; }
    for (; column < row / 2 && factor < most; column *= 2) {
        factor *= 2;
        row /= 2;
    }
    for (; column >= row * 2 && factor > 1 / most; column /= 2) {
        factor /= 2;
        row *= 2;
    }
    const double all = (double)scale[i] * factor;
    if (column + row >= 0.95 * before || all > all_most || all < 1 / all_most) { return false; }
    scale[i] = (OPDI_T)all;
    for (int64_t k = range[0]; k < n; k++) { h[i * ld + k] *= (OPDI_T)(1 / factor); }
    for (int64_t k = 0; k <= range[1]; k++) { h[k * ld + i] *= (OPDI_T)factor; }
    return true;
}
/* Balances h [n, n].  Sets range[2] to the first and the last row that were scaled.  For a row i in this range,
   scale[i] is the number by which row i was divided and column i multiplied.  For each row i outside, scale[i] is the
   row that it was exchanged with. */
OPDI_INTERNAL void OPDI_TYPED(balance)(int64_t n, OPDI_T *h, int64_t ld, OPDI_T *scale, int64_t range[2]) {
    int64_t at;
    range[0] = 0;
    range[1] = n - 1;
    while (range[1] >= 0 && (at = OPDI_TYPED(balance_alone)(h, ld, range, false)) >= 0) {
        scale[range[1]] = (OPDI_T)at;
        OPDI_TYPED(balance_exchange)(n, h, ld, at, range[1]--);
    }
    while (range[0] <= range[1] && (at = OPDI_TYPED(balance_alone)(h, ld, range, true)) >= 0) {
        scale[range[0]] = (OPDI_T)at;
        OPDI_TYPED(balance_exchange)(n, h, ld, at, range[0]++);
    }
    for (int64_t i = range[0]; i <= range[1]; i++) { scale[i] = 1; }
    for (int round = 0, more = 1; more && round < 100; round++) {
        more = 0;
        for (int64_t i = range[0]; i <= range[1]; i++) {
            more |= OPDI_TYPED(balance_scale)(n, h, ld, scale, range, i);
        }
    }
}
/* Undoes the balancing: converts eigenvectors x [n, columns] of the balanced matrix to eigenvectors of the original
   matrix. */
static void OPDI_TYPED(balance_back)(const OPDI_TYPED(schur) *schur, OPDI_T *x, int64_t columns) {
    for (int64_t i = schur->low; i <= schur->high; i++) {
        for (int64_t j = 0; j < columns; j++) { x[i * columns + j] *= schur->scale[i]; }
    }
    for (int64_t k = 0; k < schur->n; k++) {      /* undo exchanges, beginning with the last one */
        const int64_t i = k < schur->low ? schur->low - 1 - k : k, to = (int64_t)schur->scale[i];
        for (int64_t j = 0; (i < schur->low || i > schur->high) && j < columns; j++) {
            const OPDI_T was = x[i * columns + j];
            x[i * columns + j] = x[to * columns + j];
            x[to * columns + j] = was;
        }
    }
}

/* Applies a reflection from the left: a -= tau v (v^T a) for rows a [count, columns], which are ld apart.
   scratch [columns] is scratch memory. */
static void OPDI_TYPED(householder_rows)(int64_t count, int64_t columns, const OPDI_T *v, OPDI_T tau, OPDI_T *a,
                                         int64_t ld, OPDI_T *scratch) {
    memset(scratch, 0, (size_t)columns * sizeof *scratch);
    OPDI_TYPED(skinny_minus)(1, columns, count, v, 0, 1, a, ld, scratch, 0);
    for (int64_t j = 0; j < columns; j++) { scratch[j] *= -tau; }
    OPDI_TYPED(skinny_minus)(count, columns, 1, v, 1, 0, scratch, 0, a, ld);
}
/* Applies a reflection from the right: a -= tau (a v) v^T for columns a [rows, count].  scratch [rows] is scratch
   memory. */
static void OPDI_TYPED(householder_columns)(int64_t rows, int64_t count, const OPDI_T *v, OPDI_T tau, OPDI_T *a,
                                            int64_t ld, OPDI_T *scratch) {
    opdi_dots(sizeof(OPDI_T), rows, count, a, ld, v, 0, 0, scratch, 1);
    for (int64_t i = 0; i < rows; i++) { scratch[i] *= tau; }
    OPDI_TYPED(skinny_minus)(rows, count, 1, scratch, 1, 0, v, 0, a, ld);
}
/* Reduces rows and columns low .. high of chase->h to Hessenberg form, one reflection after another.  Also applies
   the reflections to the rows from chase->top on, to the columns before n = chase->right and, unless q is NULL, to
   rows of q [.., width].  scratch [2 n + width] is scratch memory. */
static void OPDI_TYPED(hessenberg_steps)(const opdi_chase *chase, int64_t low, int64_t high, OPDI_T *scratch) {
    const int64_t ld = chase->ld, n = chase->right;
    OPDI_T *const h = (OPDI_T *)chase->h, *const q = (OPDI_T *)chase->q, *const v = scratch + OPDI_MAX(n, chase->width);
    for (int64_t k = low; k + 2 <= high; k++) {
        const int64_t count = high - k;
        for (int64_t i = 0; i < count; i++) { v[i] = h[(k + 1 + i) * ld + k]; }
        const OPDI_T tau = OPDI_TYPED(reflection)(count, v, 1);
        for (int64_t i = 0; i < count; i++) { h[(k + 1 + i) * ld + k] = i ? 0 : v[0]; }
        if (tau == 0) { continue; }
        v[0] = 1;
        OPDI_TYPED(householder_rows)(count, n - k - 1, v, tau, h + (k + 1) * ld + k + 1, ld, scratch);
        OPDI_TYPED(householder_columns)(high + 1 - chase->top, count, v, tau, h + chase->top * ld + k + 1, ld, scratch);
        if (q) {
            OPDI_TYPED(householder_rows)(count, chase->width, v, tau, q + (k + 1) * chase->ldq, chase->ldq, scratch);
        }
    }
}
/* Makes reflections number k .. k + wide - 1, a panel.  Their columns in rows k + 1 .. high must already include the
   effect of earlier panels.  Stores the vectors v below the diagonal of h.  Also stores them as rows of schur->other,
   followed there by the rows of y = a v t.  t [OPDI_PANEL, OPDI_PANEL] is the triangular matrix for which the product
   of the reflections is 1 - v t v^T. */
static void OPDI_TYPED(hessenberg_panel)(const OPDI_TYPED(schur) *schur, int64_t k, int64_t wide, OPDI_T *tau,
                                         OPDI_T *t) {
    const int64_t ld = schur->ld, count = schur->high - k;
    OPDI_T *const vs = schur->other, *const ys = vs + OPDI_PANEL * ld, *const b = ys + OPDI_PANEL * ld;
    OPDI_T dots[OPDI_PANEL], sums[OPDI_PANEL];
    for (int64_t j = 0; j < wide; j++) {
        OPDI_T *const column = schur->h + (k + 1) * ld + k + j, *const v = vs + j * ld, *const y = ys + j * ld;
        for (int64_t i = 0; i < count; i++) { b[i] = column[i * ld]; }
        if (j > 0) {
            OPDI_TYPED(skinny_minus)(1, count, j, vs + j - 1, 0, ld, ys, ld, b, 0);
            opdi_dots(sizeof(OPDI_T), j, count, vs, ld, b, 0, 0, dots, 1);
            for (int64_t m = 0; m < j; m++) {
                sums[m] = 0;
                for (int64_t p = 0; p <= m; p++) { sums[m] += t[p * OPDI_PANEL + m] * dots[p]; }
            }
            OPDI_TYPED(skinny_minus)(1, count, j, sums, 0, 1, vs, ld, b, 0);
        }
        tau[k + j] = OPDI_TYPED(reflection)(count - j, b + j, 1);
        for (int64_t i = 0; i < count; i++) { column[i * ld] = b[i]; }
        for (int64_t i = 0; i < count; i++) { v[i] = i < j ? 0 : i == j ? 1 : b[i]; }
        opdi_dots(sizeof(OPDI_T), count, count - j, schur->h + (k + 1) * ld + k + 1 + j, ld, v + j, 0, 0, y, 1);
        opdi_dots(sizeof(OPDI_T), j, count - j, vs + j, ld, v + j, 0, 0, dots, 1);
        OPDI_TYPED(skinny_minus)(1, count, j, dots, 0, 1, ys, ld, y, 0);
        for (int64_t i = 0; i < count; i++) { y[i] *= tau[k + j]; }
        for (int64_t m = 0; m <= j; m++) {
            OPDI_T sum = 0;
            for (int64_t p = m; p < j; p++) { sum += t[m * OPDI_PANEL + p] * dots[p]; }
            t[m * OPDI_PANEL + j] = m == j ? tau[k + j] : -tau[k + j] * sum;
        }
    }
}
/* Reduces the matrix to Hessenberg form and computes q.  tau [n] is scratch memory.  Returns 0, or -1 if memory runs
   out. */
static int OPDI_TYPED(hessenberg)(const OPDI_TYPED(schur) *schur, OPDI_T *tau) {
    const int64_t n = schur->n, ld = schur->ld, low = schur->low, end = schur->high + 1;
    const OPDI_TYPED(block) h = OPDI_TYPED(block_of)(schur->h, ld, 1);
    OPDI_T t[OPDI_PANEL * OPDI_PANEL];
    memset(t, 0, sizeof t);
    for (int64_t k = low, wide; k + 2 < end; k += wide) {
        wide = OPDI_MIN((int64_t)OPDI_PANEL, end - 2 - k);
        const int64_t next = k + wide;
        const OPDI_TYPED(block) panel = OPDI_TYPED(part)(h, k + 1, k), rest = OPDI_TYPED(part)(h, k + 1, next);
        const OPDI_TYPED(block) y = OPDI_TYPED(block_of)(schur->other + OPDI_PANEL * ld, 1, ld);
        const OPDI_TYPED(block) v = OPDI_TYPED(block_of)(schur->other + wide - 1, ld, 1);
        OPDI_TYPED(hessenberg_panel)(schur, k, wide, tau, t);
        if (OPDI_TYPED(block_minus)(end - k - 1, end - next, wide, y, v, rest) ||
            OPDI_TYPED(reflect)(end - k - 1, n - next, wide, panel, tau + k, rest, true) ||
            OPDI_TYPED(reflect)(end - k - 1, k + 1, wide, panel, tau + k,
                                OPDI_TYPED(transposed)(OPDI_TYPED(part)(h, 0, k + 1)), true)) {
            return -1;
        }
    }
    if (schur->q && end - low > 2 &&
        OPDI_TYPED(orgqr)(end - low - 1, end - low - 1, end - low - 2, OPDI_TYPED(part)(h, low + 1, low), tau + low,
                          OPDI_TYPED(block_of)(schur->q + (low + 1) * (ld + 1), 1, ld))) {
        return -1;
    }
    for (int64_t i = low + 2; i < end; i++) {
        memset(schur->h + i * ld + low, 0, (size_t)(i - 1 - low) * sizeof(OPDI_T));
    }
    return 0;
}

/* Returns true if the element below the diagonal in row k is negligible compared to the elements around it (Ahues and
   Tisseur, as in LAPACK).  `low` and `high` are the first and last row of the diagonal block. */
static bool OPDI_TYPED(schur_splits)(const OPDI_T *at, int64_t ld, int64_t k, int64_t low, int64_t high, double least) {
    const double epsilon = OPDI_TYPED(epsilon)();
    const OPDI_T *const h = at + k * ld + k;
    const double below = fabs((double)h[-1]), above = fabs((double)h[-ld]), own = fabs((double)h[0]);
    double beside = fabs((double)h[-ld - 1]) + own;
    if (below <= least) { return true; }
    if (beside == 0 && k - 1 > low) { beside += fabs((double)h[-ld - 2]); }
    if (beside == 0 && k < high) { beside += fabs((double)h[ld]); }
    if (below > epsilon * beside) { return false; }
    const double gap = fabs((double)h[-ld - 1] - (double)h[0]), more = OPDI_MAX(below, above);
    const double less = OPDI_MIN(below, above), large = OPDI_MAX(own, gap), lesser = OPDI_MIN(own, gap);
    const double sum = large + more;
    return less * (more / sum) <= OPDI_MAX(least, epsilon * (lesser * (large / sum)));
}
/* Returns the first row of the diagonal block that ends at row `last`.  If this row is not `low`, the element that
   couples it to the row above is negligible, and is set to 0. */
static int64_t OPDI_TYPED(schur_first)(OPDI_T *h, int64_t ld, int64_t low, int64_t last, int64_t high, double least) {
    for (int64_t k = last; k > low; k--) {
        if (OPDI_TYPED(schur_splits)(h, ld, k, low, high, least)) {
            h[k * ld + k - 1] = 0;
            return k;
        }
    }
    return low;
}
/* Returns the eigenvalue of the 1 x 1 or 2 x 2 block that begins at row k; of a complex pair, the one with a positive
   imaginary part.  Sets *size to the number of rows of the block. */
static opdi_complex OPDI_TYPED(schur_value)(const OPDI_T *at, int64_t ld, int64_t n, int64_t k, int *size) {
    const OPDI_T *const h = at + k * ld + k;
    *size = k + 1 < n && h[ld] != 0 ? 2 : 1;
    if (*size == 1) { return opdi_complex_make((double)h[0], 0); }
    const double half = ((double)h[0] - (double)h[ld + 1]) / 2;
    return opdi_complex_make((double)h[0] - half, sqrt(fabs(half * half + (double)h[1] * (double)h[ld])));
}
/* If the eigenvalues of the 2 x 2 block at row k are real, makes the block triangular by a rotation. */
static void OPDI_TYPED(schur_part)(const opdi_chase *chase, int64_t k) {
    const int64_t ld = chase->ld;
    OPDI_T *const h = (OPDI_T *)chase->h + k * ld + k;
    const double half = ((double)h[0] - (double)h[ld + 1]) / 2, square = half * half + (double)h[1] * (double)h[ld];
    if (square < 0) { return; }
    const double x = half + (half < 0 ? -sqrt(square) : sqrt(square)), y = (double)h[ld], length = opdi_hypot_f64(x, y);
    const OPDI_T c = (OPDI_T)(length > 0 ? x / length : 1), s = (OPDI_T)(length > 0 ? y / length : 0);
    for (int row = 0; row < (chase->q ? 2 : 1); row++) {                   /* 0: rows of h, 1: rows of q */
        OPDI_T *const a = row ? (OPDI_T *)chase->q + (k - chase->base) * chase->ldq : h;
        const int64_t step = row ? chase->ldq : ld, count = row ? chase->width : chase->right - k;
        for (int64_t j = 0; j < count; j++) {
            const OPDI_T kept = a[j];
            a[j] = c * kept + s * a[step + j];
            a[step + j] = c * a[step + j] - s * kept;
        }
    }
    for (int64_t i = chase->top; i < k + 2; i++) {
        OPDI_T *const a = (OPDI_T *)chase->h + i * ld + k, kept = a[0];
        a[0] = c * kept + s * a[1];
        a[1] = c * a[1] - s * kept;
    }
    h[ld] = 0;
}
/* Computes a pair of shifts for a QR step on rows first .. last: usually the eigenvalues of the last two rows.  In
   every tenth sweep, uses other shifts, made from elements below the diagonal, to prevent endless cycles. */
static void OPDI_TYPED(schur_shifts)(const OPDI_T *at, int64_t ld, int64_t first, int64_t last, int sweep,
                                     double shifts[4]) {
    const OPDI_T *const h = at + last * ld + last;
    const double x = (double)h[0], y = (double)h[-ld - 1], half = (x + y) / 2, gap = (x - y) / 2;
    const double square = gap * gap + (double)h[-1] * (double)h[-ld];
    shifts[0] = shifts[2] = half;
    shifts[1] = sqrt(fabs(square));
    if (square > 0) {                             /* if the shifts are real, both become the one that is closer to the
                                                     last element */
        shifts[0] = shifts[2] = half + (x < y ? -shifts[1] : shifts[1]);
        shifts[1] = 0;
    }
    if (sweep % 10 == 0) {
        const bool low = sweep % 20 == 0;
        const OPDI_T *const top = at + first * ld + first;
        const double size = low ? fabs((double)h[-1]) + fabs((double)h[-ld - 2])
            : fabs((double)top[ld]) + fabs((double)top[2 * ld + 1]);
        shifts[0] = shifts[2] = 0.75 * size + (double)(low ? h[0] : top[0]);
        shifts[1] = 0.66143782776614768 * size;
    }
    shifts[3] = -shifts[1];
}
/* Returns the row at which a double step on rows first .. last may begin: the last row at which two small elements
   below the diagonal allow this. */
static int64_t OPDI_TYPED(schur_start)(const OPDI_T *at, int64_t ld, int64_t first, int64_t last,
                                       const double *shifts) {
    for (int64_t k = last - 2; k > first; k--) {
        const OPDI_T *const h = at + k * ld + k;
        const double top[5] = {(double)h[0], (double)h[1], (double)h[ld], (double)h[ld + 1], (double)h[2 * ld + 1]};
        const double around = fabs((double)h[-ld - 1]) + fabs(top[0]) + fabs(top[3]);
        double v[3];
        opdi_chase_start(top, shifts, v);
        const double rest = fabs(v[1]) + fabs(v[2]);
        if (fabs((double)h[-1]) * rest <= OPDI_TYPED(epsilon)() * fabs(v[0]) * around) { return k; }
    }
    return first;
}
/* Reduces rows low .. high to Schur form by double steps.  Applies the reflections to everything that `chase` describes
   or, if `whole` is false, only to the diagonal block.  Returns 0, or the number of an eigenvalue that did not
   converge. */
static int64_t OPDI_TYPED(schur_steps)(opdi_chase *chase, int64_t low, int64_t high, bool whole, double least) {
    const int64_t ld = chase->ld;
    OPDI_T *const h = (OPDI_T *)chase->h;
    int sweep = 0;
    for (int64_t last = high; last > low; ) {
        const int64_t first = OPDI_TYPED(schur_first)(h, ld, low, last, high, least);
        chase->first = first;
        chase->last = last;
        if (!whole) {
            chase->top = first;
            chase->right = last + 1;
        }
        if (first + 1 >= last) {
            if (first + 1 == last) { OPDI_TYPED(schur_part)(chase, first); }
            last = first - 1;
            sweep = 0;
            continue;
        }
        if (++sweep > 5 * OPDI_SWEEPS) { return last + 1; }
        double shifts[4];
        OPDI_TYPED(schur_shifts)(h, ld, first, last, sweep, shifts);
        chase->shifts = shifts;
        chase->from = OPDI_TYPED(schur_start)(h, ld, first, last, shifts);
        chase->to = last;
        OPDI_TYPED(chase)(chase);
    }
    return 0;
}

/* Copies rows and columns first .. last of h to schur->window. */
static void OPDI_TYPED(window_open)(const OPDI_TYPED(schur) *schur, int64_t first, int64_t last) {
    const size_t size = (size_t)(last - first + 1) * sizeof(OPDI_T);
    memset(schur->window, 0, (size_t)((last - first + 1) * OPDI_SCHUR_ROW) * sizeof(OPDI_T));
    for (int64_t i = first; i <= last; i++) {
        memcpy(schur->window + (i - first) * OPDI_SCHUR_ROW, schur->h + i * schur->ld + first, size);
    }
}
/* Returns a chase in a window of `count` columns.  The chase accumulates its reflections in the matrix schur->turn,
   which begins as the identity [turned, turned] and belongs to rows base .. base + turned - 1 of the window. */
static opdi_chase OPDI_TYPED(window_chase)(const OPDI_TYPED(schur) *schur, int64_t count, int64_t base,
                                           int64_t turned) {
    opdi_chase chase;
    memset(&chase, 0, sizeof chase);
    chase.h = schur->window;
    chase.q = schur->turn;
    chase.ld = chase.ldq = OPDI_SCHUR_ROW;
    chase.base = base;
    chase.width = turned;
    chase.right = count;
    OPDI_TYPED(rows_identity)(turned, OPDI_SCHUR_ROW, schur->turn);
    return chase;
}
/* Applies the reflections that were accumulated in schur->turn, for the window of rows first .. first + count - 1, to
   the rest of the matrix (right of the window and above it) and to q.  top and last are the ends of the diagonal block.
   Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(window_apply)(const OPDI_TYPED(schur) *schur, int64_t top, int64_t first, int64_t count,
                                    int64_t last) {
    const int64_t ld = schur->ld, from = first + count, right = schur->q ? schur->n : last + 1;
    const int64_t above = schur->q ? 0 : top;
    const OPDI_TYPED(block) turn = OPDI_TYPED(block_of)(schur->turn, OPDI_SCHUR_ROW, 1);
    OPDI_T *const other = schur->other;
    for (int part = 0; part < 2; part++) {        /* 0: rows of h, 1: rows of q */
        const int64_t start = part ? 0 : from, columns = (part ? schur->n : right) - start;
        if ((part && !schur->q) || columns <= 0) { continue; }
        OPDI_T *const at = (part ? schur->q : schur->h) + first * ld + start;
        if (OPDI_TYPED(block_times)(count, columns, count, turn, OPDI_TYPED(block_of)(at, ld, 1), 0,
                                    OPDI_TYPED(block_of)(other, ld, 1))) {
            return -1;
        }
        for (int64_t i = 0; i < count; i++) { memcpy(at + i * ld, other + i * ld, (size_t)columns * sizeof *other); }
    }
    if (first <= above) { return 0; }
    if (OPDI_TYPED(block_times)(first - above, count, count, OPDI_TYPED(block_of)(schur->h + above * ld + first, ld, 1),
                                OPDI_TYPED(transposed)(turn), 0, OPDI_TYPED(block_of)(other, count, 1))) {
        return -1;
    }
    for (int64_t i = above; i < first; i++) {
        memcpy(schur->h + i * ld + first, other + (i - above) * count, (size_t)count * sizeof *other);
    }
    return 0;
}
/* Moves `pairs` pairs of shifts through rows first .. last in one sweep.  Each pair follows three rows behind the pair
   before it.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(schur_sweep)(const OPDI_TYPED(schur) *schur, int64_t first, int64_t last, int pairs,
                                   double (*shifts)[4]) {
    const int64_t total = last - first + 3 * (pairs - 1);
    for (int64_t time = 0; time < total; time += OPDI_SCHUR_STEPS) {
        const int64_t later = OPDI_MIN(time + OPDI_SCHUR_STEPS, total);
        const int64_t low = OPDI_MAX(first, first + time - 3 * (pairs - 1)), high = OPDI_MIN(last, first + later + 1);
        const int64_t start = low > first ? low - 1 : first, end = OPDI_MIN(high + 1, last);
        OPDI_TYPED(window_open)(schur, start, end);
        opdi_chase chase = OPDI_TYPED(window_chase)(schur, high + 1 - start, low - start, high - low + 1);
        chase.first = first - start;
        chase.last = last - start;
        chase.top = low - start;
        for (int j = 0; j < pairs; j++) {
            const int64_t from = first + time - 3 * j;
            chase.shifts = from <= first ? shifts[j] : NULL;
            chase.from = OPDI_MAX(from, first) - start;
            chase.to = OPDI_MIN(first + later - 3 * j, last) - start;
            OPDI_TYPED(chase)(&chase);
        }
        for (int64_t i = low; i <= end; i++) {
            memcpy(schur->h + i * schur->ld + start, schur->window + (i - start) * OPDI_SCHUR_ROW,
                   (size_t)(high - start + 1) * sizeof(OPDI_T));
        }
        if (OPDI_TYPED(window_apply)(schur, first, low, high - low + 1, last)) { return -1; }
    }
    return 0;
}

/* Exchanges the diagonal block of p rows at row k with the block of q rows after it (Bai and Demmel).  If their
   eigenvalues are too close to be told apart, changes nothing and returns false. */
static bool OPDI_TYPED(schur_swap)(const opdi_chase *chase, int64_t k, int p, int q, OPDI_T *scratch) {
    const int count = p + q;
    OPDI_T *const h = (OPDI_T *)chase->h + k * chase->ld + k;
    double d[4][4], x[2][4], v[2][4], tau[2], most = 0, left = 0;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            d[i][j] = i >= p && j < p ? 0 : (double)h[i * chase->ld + j];
            most = OPDI_MAX(most, fabs(d[i][j]));
        }
    }
    opdi_swap_span(p, q, d, x);
    for (int m = 0; m < q; m++) {
        tau[m] = opdi_swap_reflection(m, count, x[m], v[m]);
        opdi_swap_apply(count, v[m], tau[m], d, m + 1 < q ? x[m + 1] : NULL);
    }
    for (int i = q; i < count; i++) { for (int j = 0; j < q; j++) { left = OPDI_MAX(left, fabs(d[i][j])); } }
    if (!(left <= 10 * OPDI_TYPED(epsilon)() * most)) { return false; }
    for (int m = 0; m < q; m++) {
        OPDI_T w[4];
        for (int i = 0; i < count; i++) { w[i] = (OPDI_T)v[m][i]; }
        OPDI_TYPED(householder_rows)(count, chase->right - k, w, (OPDI_T)tau[m], h, chase->ld, scratch);
        OPDI_TYPED(householder_columns)(k + count, count, w, (OPDI_T)tau[m], (OPDI_T *)chase->h + k, chase->ld,
                                        scratch);
        OPDI_TYPED(householder_rows)(count, chase->width, w, (OPDI_T)tau[m], (OPDI_T *)chase->q + k * chase->ldq,
                                     chase->ldq, scratch);
    }
    for (int i = q; i < count; i++) { for (int j = 0; j < q; j++) { h[i * chase->ld + j] = 0; } }
    if (q == 2) { OPDI_TYPED(schur_part)(chase, k); }
    if (p == 2) { OPDI_TYPED(schur_part)(chase, k + q); }
    return true;
}
/* Returns the number of rows (1 or 2) of the diagonal block of the window whose last row is end - 1. */
static int OPDI_TYPED(block_before)(const opdi_chase *chase, int64_t end) {
    return end > 1 && ((const OPDI_T *)chase->h)[(end - 1) * chase->ld + end - 2] != 0 ? 2 : 1;
}
/* Finds the converged rows of a window of `count` rows in Schur form (aggressive early deflation).  `spike` is the
   absolute value of the element left of the window, which the reduction has spread over a column.  A block has
   converged if its part of this column is negligible.  Moves the blocks that have not converged to the top, and returns
   their number of rows; the converged blocks are then at the end. */
static int64_t OPDI_TYPED(schur_deflate)(const opdi_chase *chase, int64_t count, double spike, double least,
                                         OPDI_T *scratch) {
    const OPDI_T *const h = (const OPDI_T *)chase->h, *const q = (const OPDI_T *)chase->q;
    const int64_t ld = chase->ld;
    for (int64_t done = 0; done < count; ) {      /* done: rows that have not converged and were moved to the top */
        const int size = OPDI_TYPED(block_before)(chase, count);
        const OPDI_T *const at = h + (count - size) * (ld + 1), *const part = q + (count - size) * chase->ldq;
        double own = fabs((double)at[0]), most = fabs((double)part[0]);
        if (size == 2) {
            own = fabs((double)at[ld + 1]) + sqrt(fabs((double)at[1])) * sqrt(fabs((double)at[ld]));
            most = OPDI_MAX(most, fabs((double)part[chase->ldq]));
        }
        if (own == 0) { own = spike; }
        if (spike * most <= OPDI_MAX(least, OPDI_TYPED(epsilon)() * own)) {
            count -= size;
            continue;
        }
        int64_t at_row = count - size;
        while (at_row > done) {
            const int other = OPDI_TYPED(block_before)(chase, at_row);
            if (!OPDI_TYPED(schur_swap)(chase, at_row - other, other, size, scratch)) { break; }
            at_row -= other;
        }
        done = at_row + size;
    }
    return count;
}
/* Makes shifts from the eigenvalues of the first `count` rows of h, which are already in Schur form.  Stores them in
   pairs in `shifts`.  Returns the number of pairs. */
static int OPDI_TYPED(schur_gather)(const OPDI_T *h, int64_t ld, int64_t count, double (*shifts)[4]) {
    int pairs = 0, size;
    bool half = false;
    for (int64_t k = 0; k < count && pairs < OPDI_SCHUR_PAIRS; k += size) {
        const opdi_complex value = OPDI_TYPED(schur_value)(h, ld, count, k, &size);
        double *const to = shifts[pairs];
        if (size == 2) {
            if (half) { memcpy(shifts[pairs + 1], to, 4 * sizeof *to); }      /* the unpaired real shift becomes part
                                                                                 of the next pair */
            to[0] = to[2] = value.re;
            to[1] = value.im;
            to[3] = -value.im;
            pairs++;
            continue;
        }
        if (!half) { to[0] = value.re; }
        to[2] = value.re;
        to[1] = to[3] = 0;
        pairs += half;
        half = !half;
    }
    return pairs > 0 || !half ? pairs : 1;
}
/* Reduces the window of the last `count` rows up to row `last` to Schur form.  Splits off the converged blocks, and
   restores the Hessenberg form of the rest.  Sets *pairs to the number of pairs of shifts that are made from the other
   rows.  Returns the number of converged rows, -1 if memory runs out, or -2 if eigenvalues of the window did not
   converge. */
static int64_t OPDI_TYPED(schur_window)(const OPDI_TYPED(schur) *schur, int64_t first, int64_t last, int64_t count,
                                        int *pairs, double (*shifts)[4]) {
    const int64_t top = last + 1 - count, ld = OPDI_SCHUR_ROW;
    const double least = OPDI_TYPED(schur_least)(schur->n);
    OPDI_T *const before = top > first ? schur->h + top * schur->ld + top - 1 : NULL, *const h = schur->window;
    OPDI_T *const scratch = schur->other;
    OPDI_TYPED(window_open)(schur, top, last);
    opdi_chase chase = OPDI_TYPED(window_chase)(schur, count, 0, count);
    *pairs = 0;
    if (OPDI_TYPED(schur_steps)(&chase, 0, count - 1, true, least)) { return -2; }
    const double spike = before ? fabs((double)*before) : 0;
    const int64_t rest = OPDI_TYPED(schur_deflate)(&chase, count, spike, least, scratch);
    *pairs = OPDI_TYPED(schur_gather)(h, ld, rest, shifts);
    if (rest == count) { return 0; }
    if (rest > 1) {
        OPDI_T *const v = scratch + 2 * ld;
        for (int64_t i = 0; i < rest; i++) { v[i] = schur->turn[i * ld]; }
        const OPDI_T tau = OPDI_TYPED(reflection)(rest, v, 1);
        v[0] = 1;
        OPDI_TYPED(householder_rows)(rest, count, v, tau, h, ld, scratch);
        OPDI_TYPED(householder_columns)(rest, rest, v, tau, h, ld, scratch);
        OPDI_TYPED(householder_rows)(rest, count, v, tau, schur->turn, ld, scratch);
        OPDI_TYPED(hessenberg_steps)(&chase, 0, rest - 1, scratch);
    }
    if (before) { *before = rest > 0 ? *before * schur->turn[0] : 0; }
    for (int64_t i = 0; i < count; i++) {
        memcpy(schur->h + (top + i) * schur->ld + top, h + i * ld, (size_t)count * sizeof *h);
    }
    return OPDI_TYPED(window_apply)(schur, first, top, count, last) ? -1 : count - rest;
}
/* Reduces h to Schur form.  Returns 0, the number of an eigenvalue that did not converge, or -1 if memory runs out. */
static int64_t OPDI_TYPED(schur_run)(const OPDI_TYPED(schur) *schur) {
    const int64_t ld = schur->ld, most = OPDI_SCHUR_SMALL;
    const double least = OPDI_TYPED(schur_least)(schur->n);
    double shifts[OPDI_SCHUR_PAIRS + 1][4];
    int stalled = 0, pairs;
    for (int64_t last = schur->high; last > schur->low; ) {
        const int64_t first = OPDI_TYPED(schur_first)(schur->h, ld, schur->low, last, schur->high, least);
        const int64_t size = last - first + 1, window = size <= most ? size : (int64_t)OPDI_SCHUR_AHEAD;
        if (size == 1) {
            last--;
            continue;
        }
        const int64_t gone = OPDI_TYPED(schur_window)(schur, first, last, window, &pairs, shifts);
        if (gone == -1) { return -1; }
        if ((gone < 0 && window == size) || ++stalled > OPDI_SWEEPS) { return last + 1; }
        if (gone > 0) {
            last -= gone;
            stalled = 0;
        }
        /* enough rows have converged, or few are left: try another window before a sweep */
        if (7 * gone > window || last - first < most / 2) { continue; }
        if (pairs == 0 || stalled % 6 == 5) {     /* use other shifts to prevent endless cycles */
            for (pairs = 0; pairs < OPDI_SCHUR_PAIRS; pairs++) {
                OPDI_TYPED(schur_shifts)(schur->h, ld, first, last - pairs, 20, shifts[pairs]);
            }
        }
        if (OPDI_TYPED(schur_sweep)(schur, first, last, pairs, shifts)) { return -1; }
    }
    return 0;
}

/* Solves for rows [from, to) of the eigenvectors y [.., ldy], where the rows to .. known - 1 are already computed.  The
   columns of y are the eigenvectors first .. first + columns - 1. */
static void OPDI_TYPED(vectors_rows)(const OPDI_TYPED(schur) *schur, int64_t from, int64_t to, int64_t first,
                                     int64_t columns, OPDI_T *y, int64_t known) {
    const int64_t ld = schur->ld, ldy = OPDI_SCHUR_VECTORS + 1;
    const double smallest = OPDI_TYPED(schur_least)(schur->n), limit = OPDI_BYTES == 4 ? 1e20 : 1e150;
    for (int64_t row = to - 1, size; row >= from; row -= size) {
        size = row > 0 && schur->h[row * ld + row - 1] != 0 ? 2 : 1;
        const int64_t top = row + 1 - size;
        const OPDI_T *const h = schur->h + top * ld + top;
        const double block[4] = {(double)h[0], size == 2 ? (double)h[1] : 0, size == 2 ? (double)h[ld] : 0,
            size == 2 ? (double)h[ld + 1] : 0};
        for (int64_t i = top; i <= row; i++) {
            OPDI_TYPED(skinny_minus)(1, columns, to - 1 - row, schur->h + i * ld + row + 1, 0, 1, y + (row + 1) * ldy,
                                     ldy, y + i * ldy, 0);
        }
        int wide;
        for (int64_t j = 0; j < columns; j += wide) {
            const opdi_complex value = OPDI_TYPED(schur_value)(schur->h, ld, schur->n, first + j, &wide);
            opdi_complex x[2];
            if (row >= first + j) { continue; }
            for (int64_t i = 0; i < size; i++) {
                const OPDI_T *const at = y + (top + i) * ldy + j;
                x[i] = opdi_complex_make((double)at[0], wide == 2 ? (double)at[1] : 0);
            }
            const double least = OPDI_MAX(OPDI_TYPED(epsilon)() * (fabs(value.re) + fabs(value.im)), smallest);
            const double factor = opdi_schur_solve((int)size, block, value, least, limit, x);
            for (int64_t i = 0; factor != 1 && i < known; i++) {
                for (int k = 0; k < wide; k++) { y[i * ldy + j + k] = (OPDI_T)((double)y[i * ldy + j + k] * factor); }
            }
            for (int64_t i = 0; i < size; i++) {
                OPDI_T *const at = y + (top + i) * ldy + j;
                at[0] = (OPDI_T)x[i].re;
                if (wide == 2) { at[1] = (OPDI_T)x[i].im; }
            }
        }
    }
}
/* Computes the eigenvectors of the Schur form h for the eigenvalues in rows first .. first + columns - 1.  Writes
   them as columns of y, whose rows are OPDI_SCHUR_VECTORS + 1 apart.  Only rows 0 .. first + columns - 1 can be
   nonzero.  The vectors are scaled so that their largest element is about 1.  Returns 0, or -1 if memory runs out. */
static int OPDI_TYPED(vectors_solve)(const OPDI_TYPED(schur) *schur, int64_t first, int64_t columns, OPDI_T *y) {
    const int64_t ld = schur->ld, ldy = OPDI_SCHUR_VECTORS + 1, known = first + columns;
    int wide;
    memset(y, 0, (size_t)(known * ldy) * sizeof *y);
    for (int64_t j = 0; j < columns; j += wide) {
        const OPDI_T *const h = schur->h + (first + j) * (ld + 1);
        const opdi_complex value = OPDI_TYPED(schur_value)(schur->h, ld, schur->n, first + j, &wide);
        OPDI_T *const at = y + (first + j) * ldy + j;
        at[0] = 1;
        if (wide == 1) { continue; }
        /* a 2 x 2 block: computes its vector from the row with the larger element off the diagonal */
        const bool upper = OPDI_FN(fabs)(h[1]) > OPDI_FN(fabs)(h[ld]);
        const OPDI_T most = upper ? h[1] : h[ld], im = (OPDI_T)value.im / most;
        const OPDI_T re = (OPDI_T)(value.re - (double)(upper ? h[0] : h[ld + 1])) / most;
        at[0] = upper ? 1 : re;
        at[1] = upper ? 0 : im;
        at[ldy] = upper ? re : 1;
        at[ldy + 1] = upper ? im : 0;
    }
    for (int64_t to = known, from; to > 0; to = from) {
        from = OPDI_MAX(to - OPDI_SCHUR_VECTORS, (int64_t)0);
        if (from > 0 && schur->h[from * ld + from - 1] != 0) { from--; }
        OPDI_TYPED(vectors_rows)(schur, from, to, first, columns, y, known);
        if (OPDI_TYPED(block_minus)(from, columns, to - from, OPDI_TYPED(block_of)(schur->h + from, ld, 1),
                                    OPDI_TYPED(block_of)(y + from * ldy, ldy, 1), OPDI_TYPED(block_of)(y, ldy, 1))) {
            return -1;
        }
    }
    for (int64_t j = 0; j < columns; j++) {
        OPDI_T most = 0;
        for (int64_t i = 0; i < known; i++) { most = OPDI_MAX(most, OPDI_FN(fabs)(y[i * ldy + j])); }
        if (j + first + 1 < schur->n && schur->h[(first + j + 1) * ld + first + j] != 0) {
            for (int64_t i = 0; i < known; i++) { most = OPDI_MAX(most, OPDI_FN(fabs)(y[i * ldy + j + 1])); }
            for (int64_t i = 0; i < known; i++) { y[i * ldy + j] /= most; }
            j++;
        }
        for (int64_t i = 0; i < known; i++) { y[i * ldy + j] /= most; }
    }
    return 0;
}
/* Writes a vector x [n], scaled to length 1, to a column of a complex matrix [n, n] that begins at `to`.  Elements of x
   are `step` apart.  If `wide` is 2, the elements of x are complex (two numbers each); then the largest element is made
   real, and the conjugate vector is written to the next column. */
static void OPDI_TYPED(vectors_write)(int64_t n, const OPDI_T *x, int64_t step, int wide, OPDI_T *to) {
    double most = 0, sum = 0, best = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) { most = OPDI_MAX(most, fabs((double)x[i * step])); }
    for (int64_t i = 0; wide == 2 && i < n; i++) { most = OPDI_MAX(most, fabs((double)x[i * step + 1])); }
    for (int64_t i = 0; i < n; i++) {
        const double re = (double)x[i * step] / most, im = wide == 2 ? (double)x[i * step + 1] / most : 0;
        const double square = re * re + im * im;
        sum += square;
        if (square > best) {
            best = square;
            at = i;
        }
    }
    opdi_complex factor = opdi_complex_make(1 / sqrt(sum), 0);
    if (wide == 2) {
        factor = opdi_complex_times(1 / (sqrt(sum) * sqrt(best)),
                                    opdi_complex_make((double)x[at * step] / most, -(double)x[at * step + 1] / most));
    }
    for (int64_t i = 0; i < n; i++) {
        const double re = (double)x[i * step] / most, im = wide == 2 ? (double)x[i * step + 1] / most : 0;
        const opdi_complex y = opdi_complex_mul(opdi_complex_make(re, im), factor);
        OPDI_T *const row = to + 2 * i * n;
        row[0] = (OPDI_T)y.re;
        row[1] = wide == 2 && i != at ? (OPDI_T)y.im : 0;
        if (wide == 2) {
            row[2] = row[0];
            row[3] = -row[1];
        }
    }
}
/* Computes the eigenvectors of the original matrix from its Schur form, and writes them as the columns of the complex
   matrix `vectors` [n, n].  scratch is scratch memory for two matrices [n, OPDI_SCHUR_VECTORS + 1].  Returns 0, or -1
   if memory runs out. */
static int OPDI_TYPED(schur_vectors)(const OPDI_TYPED(schur) *schur, OPDI_T *vectors, OPDI_T *scratch) {
    const int64_t n = schur->n, ld = schur->ld, ldy = OPDI_SCHUR_VECTORS + 1;
    OPDI_T *const y = scratch, *const x = scratch + n * ldy;
    for (int64_t first = 0, columns; first < n; first += columns) {
        int wide;
        columns = OPDI_MIN((int64_t)OPDI_SCHUR_VECTORS, n - first);
        if (first + columns < n && schur->h[(first + columns) * ld + first + columns - 1] != 0) { columns++; }
        if (OPDI_TYPED(vectors_solve)(schur, first, columns, y) ||
            OPDI_TYPED(block_times)(n, columns, first + columns, OPDI_TYPED(block_of)(schur->q, 1, ld),
                                    OPDI_TYPED(block_of)(y, ldy, 1), 0, OPDI_TYPED(block_of)(x, columns, 1))) {
            return -1;
        }
        OPDI_TYPED(balance_back)(schur, x, columns);
        for (int64_t j = 0; j < columns; j += wide) {
            (void)OPDI_TYPED(schur_value)(schur->h, ld, n, first + j, &wide);
            OPDI_TYPED(vectors_write)(n, x + j, columns, wide, vectors + 2 * (first + j));
        }
    }
    return 0;
}
/* Scales a [n, n] by 2^-power, balances it and reduces it to its Schur form.  Returns the same as schur_run. */
static int64_t OPDI_TYPED(schur_of)(OPDI_TYPED(schur) *schur, const OPDI_T *a, int power) {
    const int64_t n = schur->n, ld = schur->ld;
    int64_t range[2];
    memset(schur->h, 0, (size_t)(n * ld) * sizeof *a);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            schur->h[i * ld + j] = power ? (OPDI_T)ldexp((double)a[i * n + j], -power) : a[i * n + j];
        }
    }
    if (schur->q) { OPDI_TYPED(rows_identity)(n, ld, schur->q); }
    OPDI_TYPED(balance)(n, schur->h, ld, schur->scale, range);
    schur->low = range[0];
    schur->high = range[1];
    if (n > OPDI_SCHUR_SMALL) {
        return OPDI_TYPED(hessenberg)(schur, schur->scale + n) ? -1 : OPDI_TYPED(schur_run)(schur);
    }
    opdi_chase chase;
    memset(&chase, 0, sizeof chase);
    chase.h = schur->h;
    chase.q = schur->q;
    chase.ld = chase.ldq = ld;
    chase.right = n;
    chase.width = schur->q ? n : 0;
    OPDI_TYPED(hessenberg_steps)(&chase, schur->low, schur->high, schur->other);
    return OPDI_TYPED(schur_steps)(&chase, schur->low, schur->high, schur->q != NULL, OPDI_TYPED(schur_least)(n));
}
/* Computes the complex eigenvalues data[1] [n] of data[0] [n, n] and, if solver->vectors is set, the eigenvectors
   data[2] [n, n].  Matrices with very large or very small elements are scaled by a power of two first.  Returns 0, or
   -1 if memory runs out. */
OPDI_INTERNAL int OPDI_TYPED(eig_one)(const opdi_solver *solver, int64_t at) {
#if defined(OPD_LAPACK)
    const int done = OPDI_TYPED(lapack_eig)(solver, at);
    if (done <= 0) { return done; }
#endif
    const int64_t n = solver->rows, ld = OPDI_TYPED(row_length)(n + 16);
    const bool large = n > OPDI_SCHUR_SMALL;
    const int64_t windows = large ? OPDI_SCHUR_WINDOW * OPDI_SCHUR_ROW : 0;
    const int64_t other = large ? OPDI_SCHUR_WINDOW * ld : (2 * OPDI_SCHUR_VECTORS + 4) * n;
    const OPDI_T *from = (const OPDI_T *)opdi_solver_at(solver, 0, at, sizeof(OPDI_T));
    OPDI_T *values = (OPDI_T *)opdi_solver_at(solver, 1, at, 2 * sizeof(OPDI_T));
    OPDI_T *vectors = solver->vectors ? (OPDI_T *)opdi_solver_at(solver, 2, at, 2 * sizeof(OPDI_T)) : NULL;
    const size_t size = (size_t)(2 * n * ld + 2 * windows + other + 2 * n) * sizeof(OPDI_T);
    const int range = OPDI_BYTES == 4 ? 40 : 460;
    int power = 0, wide;
    OPDI_TYPED(schur) schur;
    schur.n = n;
    schur.ld = ld;
    schur.h = (OPDI_T *)opdi_alloc(size);
    if (!schur.h) { return -1; }
    schur.q = vectors ? schur.h + n * ld : NULL;
    schur.window = schur.h + 2 * n * ld;
    schur.turn = schur.window + windows;
    schur.other = schur.turn + windows;
    schur.scale = schur.other + other;
    (void)frexp((double)OPDI_TYPED(largest)(from, n * n), &power);       /* sets power to 0 if all elements are 0 */
    power = power > range ? power - range : power < -range ? power + range : 0;
    const int64_t number = OPDI_TYPED(schur_of)(&schur, from, power);
    int rc = number < 0 ? -1 : 0;
    solver->info[at] = (int32_t)OPDI_MAX(number, (int64_t)0);
    for (int64_t k = 0; number == 0 && k < n; k += wide) {
        const opdi_complex value = OPDI_TYPED(schur_value)(schur.h, ld, n, k, &wide);
        for (int i = 0; i < wide; i++) {
            values[2 * (k + i)] = (OPDI_T)ldexp(value.re, power);
            values[2 * (k + i) + 1] = (OPDI_T)ldexp(i ? -value.im : value.im, power);
        }
    }
    if (number == 0 && vectors) { rc = OPDI_TYPED(schur_vectors)(&schur, vectors, schur.other); }
    opdi_free(schur.h, size);
    return rc;
}
