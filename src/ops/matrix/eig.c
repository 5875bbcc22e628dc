#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:eig       eigenvalues and eigenvectors of general square matrices
//
//  The steps are:
//  1. Balancing: rows and columns with an isolated eigenvalue are moved to the ends, and the other rows and columns
//  are scaled so that their norms become similar (Parlett and Reinsch).
//  2. Reflections reduce the matrix to Hessenberg form; panels of reflections are applied as matrix products
//  (Dongarra, Hammarling and Sorensen).
//  3. Double-shift QR steps reduce the Hessenberg form to the Schur form (Francis): an upper triangular matrix, except
//  for blocks of two rows on the diagonal for pairs of complex eigenvalues.  In large matrices, many pairs of shifts
//  follow each other through a window, and the reflections of a window are applied to the rest of the matrix as one
//  product.  A window of the last rows is searched for converged eigenvalues (Braman, Byers and Mathias).
//  4. The eigenvectors are computed from the Schur form by back substitution, many at a time.
//  This section uses >>op:spectral.
//----------------------------------------------------------------------------------------------------------------------

enum {
    OPDI_SCHUR_SMALL = 64,                        /* matrices up to this size are reduced by double steps without
                                                     windows */
    OPDI_SCHUR_PAIRS = 16,                        /* pairs of shifts that follow each other */
    OPDI_SCHUR_STEPS = 48,                        /* steps of each pair of shifts within one window */
    OPDI_SCHUR_AHEAD = 48,                        /* number of last rows that are searched for converged eigenvalues */
    OPDI_SCHUR_WINDOW = 3 * OPDI_SCHUR_PAIRS + OPDI_SCHUR_STEPS + 2,
    OPDI_SCHUR_ROW = 128,                         /* elements from one row of a window to the next, more than a row
                                                     needs */
    OPDI_SCHUR_VECTORS = 32                       /* number of eigenvectors that are computed together */
};
/* A chase of a bulge: for k = from .. to - 1, a reflection is applied to rows and columns k .. k + 2 of h.  It removes
   the elements that the previous reflection left below the subdiagonal, and so moves them one row further.

   The chase changes the rows of h from `top` on and the columns before `right`.  It also changes `width` elements of
   each row of q (NULL: no q), whose first row belongs to row `base` of h.  first and last are the ends of the diagonal
   block.  The spare elements after `right` and `width` in a row are overwritten. */
typedef struct opdi_chase {
    void *h, *q;
    int64_t ld, ldq, width, base, first, last, from, to, top, right;
    const double *shifts;                         /* for the first reflection; NULL: continue a chase */
} opdi_chase;
static void opdi_chase_plain_f32(const opdi_chase *chase);
static void opdi_chase_plain_f64(const opdi_chase *chase);
#if defined(OPDI_VECTORS)
OPDI_AVX2 static void opdi_chase_avx2_f32(const opdi_chase *chase);
OPDI_AVX2 static void opdi_chase_avx2_f64(const opdi_chase *chase);
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_chase_avx512_f32(const opdi_chase *chase);
OPDI_AVX512 static void opdi_chase_avx512_f64(const opdi_chase *chase);
#endif
OPDI_INTERNAL void opdi_balance_f64(int64_t n, double *h, int64_t ld, double *scale, int64_t range[2]);
OPDI_INTERNAL int opdi_eig_one_f32(const opdi_solver *solver, int64_t at);
OPDI_INTERNAL int opdi_eig_one_f64(const opdi_solver *solver, int64_t at);
/* Returns the smallest number that is not treated as 0 if elements of the matrix are about 1. */
OPDI_INTERNAL double opdi_schur_least(int64_t n) { return DBL_MIN * (double)n / DBL_EPSILON; }
/* Sets v[3] to the first column of (h - s1) (h - s2), divided by a number that prevents overflow.  h[5] holds the
   elements (0, 0), (0, 1), (1, 0), (1, 1) and (2, 1) of the matrix.  shifts[4] holds the real and imaginary part of s1,
   then of s2. */
OPDI_ALWAYS void opdi_chase_start(const double h[5], const double shifts[4], double v[3]) {
    const double size = fabs(h[0] - shifts[2]) + fabs(shifts[3]) + fabs(h[2]);
    v[0] = v[1] = v[2] = 0;
    if (size == 0) { return; }
    const double below = h[2] / size;
    v[0] = below * h[1] + (h[0] - shifts[0]) * ((h[0] - shifts[2]) / size) - shifts[1] * (shifts[3] / size);
    v[1] = below * (h[0] + h[3] - shifts[0] - shifts[2]);
    v[2] = below * h[4];
}
/* Makes a reflection 1 - tau w w^T, with w = (1, v[1], v[2]), that maps the old v to (v[0], 0, 0).  Here, v[0], v[1]
   and v[2] are the new values that the function writes to v.  Returns tau. */
OPDI_ALWAYS double opdi_chase_reflection(double v[3]) {
    const double sizes[3] = {fabs(v[0]), fabs(v[1]), fabs(v[2])};
    double most = OPDI_MAX(sizes[1], sizes[2]), scale = 1;
    if (most == 0) { return 0; }
    most = OPDI_MAX(most, sizes[0]);
    if (most < 1e-140 || most > 1e140) {          /* squares would overflow or underflow */
        scale = most;
        for (int i = 0; i < 3; i++) { v[i] /= most; }
    }
    const double size = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]), beta = v[0] < 0 ? size : -size;
    const double tau = (beta - v[0]) / beta, over = 1 / (v[0] - beta);
    v[0] = beta * scale;
    v[1] *= over;
    v[2] *= over;
    return tau;
}
/* Solves (h - value) y = x, where h [size, size] is a diagonal block of one or two rows; y overwrites x.  Divisors that
   are too small are replaced by `least`.  Returns a factor by which y is also multiplied, so that it does not grow far
   beyond `limit`; the caller must multiply the rest of the vector by the factor. */
static double opdi_schur_solve(int size, const double *h, opdi_complex value, double least, double limit,
                               opdi_complex *x) {
    opdi_complex high = opdi_complex_sub(opdi_complex_make(h[0], 0), value), det = high;
    opdi_complex low = opdi_complex_sub(opdi_complex_make(h[3], 0), value);
    double right = h[1], left = h[2], scale = 1, most = 0, factor = 1;
    if (size == 2) {                              /* divide the block by its largest element */
        scale = OPDI_MAX(opdi_hypot_f64(high.re, high.im), opdi_hypot_f64(low.re, low.im));
        scale = OPDI_MAX(OPDI_MAX(scale, least), OPDI_MAX(fabs(right), fabs(left)));
        high = opdi_complex_make(high.re / scale, high.im / scale);
        low = opdi_complex_make(low.re / scale, low.im / scale);
        right /= scale;
        left /= scale;
        det = opdi_complex_sub(opdi_complex_mul(high, low), opdi_complex_make(right * left, 0));
    }
    if (opdi_hypot_f64(det.re, det.im) < least / scale) { det = opdi_complex_make(least / scale, 0); }
    const double bound = opdi_hypot_f64(det.re, det.im) * scale;
    for (int i = 0; i < size; i++) { most = OPDI_MAX(most, fabs(x[i].re) + fabs(x[i].im)); }
    if (most > limit * OPDI_MIN(bound, 1.0)) { factor = 1 / most; }
    for (int i = 0; factor != 1 && i < size; i++) { x[i] = opdi_complex_times(factor, x[i]); }
    const opdi_complex first = x[0];
    if (size == 1) { x[0] = opdi_complex_div(first, det); }
    else {
        x[0] = opdi_complex_sub(opdi_complex_mul(low, first), opdi_complex_times(right, x[1]));
        x[1] = opdi_complex_sub(opdi_complex_mul(high, x[1]), opdi_complex_times(left, first));
        for (int i = 0; i < 2; i++) {
            x[i] = opdi_complex_div(x[i], det);
            x[i] = opdi_complex_make(x[i].re / scale, x[i].im / scale);
        }
    }
    most = 0;
    for (int i = 0; i < size; i++) { most = OPDI_MAX(most, fabs(x[i].re) + fabs(x[i].im)); }
    if (!(most > limit)) { return factor; }
    for (int i = 0; i < size; i++) { x[i] = opdi_complex_times(1 / most, x[i]); }
    return factor / most;
}
/* Solves a x = b for a matrix a [n, n] with n <= 4, with row exchanges; x overwrites b [n].  Pivots below `least` are
   replaced by `least`. */
static void opdi_small_solve(int n, double a[4][4], double *b, double least) {
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++) { if (fabs(a[i][k]) > fabs(a[best][k])) { best = i; } }
        for (int j = 0; j < n; j++) {
            const double kept = a[k][j];
            a[k][j] = a[best][j];
            a[best][j] = kept;
        }
        const double right = b[k];
        b[k] = b[best];
        b[best] = right;
        if (fabs(a[k][k]) < least) { a[k][k] = least; }
        for (int i = k + 1; i < n; i++) {
            const double factor = a[i][k] / a[k][k];
            for (int j = k; j < n; j++) { a[i][j] -= factor * a[k][j]; }
            b[i] -= factor * b[k];
        }
    }
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) { b[k] -= a[k][j] * b[j]; }
        b[k] /= a[k][k];
    }
}
/* For d = [a, c; 0, b], where a is [p, p] and b is [q, q], computes q vectors x [q, p + q] that span the invariant
   subspace with the eigenvalues of b.  The vectors are (-y, 1), where y solves a y - y b = c. */
static void opdi_swap_span(int p, int q, double d[4][4], double x[2][4]) {
    double system[4][4] = {{0}}, right[4], most = 0;
    for (int i = 0; i < p + q; i++) { for (int j = 0; j < p + q; j++) { most = OPDI_MAX(most, fabs(d[i][j])); } }
    for (int i = 0; i < p; i++) {
        for (int j = 0; j < q; j++) {
            right[i * q + j] = d[i][p + j];
            for (int k = 0; k < p; k++) { system[i * q + j][k * q + j] += d[i][k]; }
            for (int k = 0; k < q; k++) { system[i * q + j][i * q + k] -= d[p + k][p + j]; }
        }
    }
    opdi_small_solve(p * q, system, right, OPDI_MAX(DBL_EPSILON * most, DBL_MIN / DBL_EPSILON));
    for (int j = 0; j < q; j++) {
        for (int i = 0; i < p; i++) { x[j][i] = -right[i * q + j]; }
        for (int i = 0; i < q; i++) { x[j][p + i] = i == j; }
    }
}
/* Makes a reflection 1 - tau v v^T that sets elements first + 1 .. count - 1 of x to 0.  Only elements first .. count -
   1 of v are not 0.  Returns tau. */
static double opdi_swap_reflection(int first, int count, const double *x, double *v) {
    double most = 0, sum = 0;
    for (int i = 0; i < count; i++) { v[i] = 0; }
    for (int i = first; i < count; i++) { most = OPDI_MAX(most, fabs(x[i])); }
    if (most == 0) { return 0; }
    for (int i = first; i < count; i++) { sum += x[i] / most * (x[i] / most); }
    const double size = sqrt(sum), lead = x[first] / most, beta = lead < 0 ? size : -size;
    v[first] = 1;
    for (int i = first + 1; i < count; i++) { v[i] = x[i] / most / (lead - beta); }
    return (beta - lead) / beta;
}
/* Applies a reflection of opdi_swap_reflection to rows and columns of d and, unless x is NULL, to x. */
static void opdi_swap_apply(int count, const double *v, double tau, double d[4][4], double *x) {
    double dot = 0;
    for (int i = 0; i < count; i++) { dot += x ? v[i] * x[i] : 0; }
    for (int i = 0; x && i < count; i++) { x[i] -= tau * dot * v[i]; }
    for (int j = 0; j < count; j++) {
        double sum = 0;
        for (int i = 0; i < count; i++) { sum += v[i] * d[i][j]; }
        for (int i = 0; i < count; i++) { d[i][j] -= tau * sum * v[i]; }
    }
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int j = 0; j < count; j++) { sum += v[j] * d[i][j]; }
        for (int j = 0; j < count; j++) { d[i][j] -= tau * sum * v[j]; }
    }
}
#include "../../typed/f32.h"
#include "bulge_chasing.typed.h"
#include "eig.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f32_avx2.h"
#include "bulge_chasing.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f32_avx512.h"
#include "bulge_chasing.typed.h"
#endif
#include "../../typed/f64.h"
#include "bulge_chasing.typed.h"
#include "eig.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f64_avx2.h"
#include "bulge_chasing.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f64_avx512.h"
#include "bulge_chasing.typed.h"
#endif
#include "../../typed/end.h"
