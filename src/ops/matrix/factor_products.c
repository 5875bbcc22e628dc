#include "../ops.h"

#if !defined(OPD_NO_OP_SOLVE)

//----------------------------------------------------------------------------------------------------------------------
//  >>op:factor    factorizations of matrices: Cholesky, LU, QR, L D L^T; triangular solves
//
//  Each kernel copies the input matrices into its results, row by row, and works there.  Factorizations split a matrix
//  into halves recursively, so that nearly all work consists of matrix products.  The matrices of a batch are divided
//  among the threads; within a large matrix, the matrix product uses threads.
//
//  A block (a view of a matrix) has two strides, which may be negative.  So the code for solving with a lower
//  triangular matrix on the left also serves upper triangular matrices and matrices on the right.  Matrix
//  products are computed by >>op:linalg.
//----------------------------------------------------------------------------------------------------------------------

OPDI_LOOPS_BEGIN

//== batches of matrices ===============================================================================================

OPDI_SOLVER_FN(cholesky_one)
OPDI_SOLVER_FN(cholesky_solve_one)
OPDI_SOLVER_FN(triangle_one)
OPDI_SOLVER_FN(lu_one)
OPDI_SOLVER_FN(lu_solve_one)
OPDI_SOLVER_FN(det_one)
OPDI_SOLVER_FN(geqrf_one)
OPDI_SOLVER_FN(orgqr_one)
OPDI_SOLVER_FN(ormqr_one)
OPDI_SOLVER_FN(ldl_one)
OPDI_SOLVER_FN(ldl_solve_one)
OPDI_SOLVER_FN(lstsq_one)
/* Estimates how the largest (or, if `smallest` is true, the smallest) singular value of a triangular matrix changes
   when a column is added.  `size` is its value so far, `along` the dot product of the singular vector with the new
   column, and gamma the new element on the diagonal.  Returns the new singular value: one of the matrix [size, along;
   0, gamma].  Sets turn[0] to the factor for the singular vector, and turn[1] to the vector's next element. */
static double opdi_estimate(bool smallest, double size, double along, double gamma, double turn[2]) {
    const double sum = size * size + along * along + gamma * gamma, det = fabs(size * gamma);
    const double gap = fabs(size) - fabs(gamma), root = sqrt((gap * gap + along * along) * (sum + 2 * det));
    const double square = (sum + root) / 2, high = square - size * size - along * along, low = square - gamma * gamma;
    const double cross = along * gamma;
    double first = low > high ? low : cross, second = low > high ? cross : high;
    const double length = opdi_hypot_f64(first, second);
    first = length > 0 ? first / length : 1;
    second = length > 0 ? second / length : 0;
    turn[0] = smallest ? -second : first;
    turn[1] = smallest ? first : second;
    return !smallest ? sqrt(square) : square > 0 ? det / sqrt(square) : 0;
}
/* A product c -= a * b with few rows or small depth.  c [rows, columns] and b [depth, columns] have contiguous rows,
   which are ldc and ldb elements apart.  Element (i, k) of a is a[i * rs + k * cs]. */
typedef struct opdi_skinny {
    int64_t rows, columns, depth;
    const void *a;
    int64_t rs, cs;
    const void *b;
    int64_t ldb;
    void *c;
    int64_t ldc;
} opdi_skinny;
static void opdi_skinny_minus_plain_f32(const opdi_skinny *skinny);
static void opdi_skinny_minus_plain_f64(const opdi_skinny *skinny);
enum { OPDI_NARROW = 32 };                          /* matrices with at most this many columns are not split */
/* One step of a factorization (Cholesky, LU or L D L^T) of a [n, columns], whose rows are ld apart.  Steps of
   Cholesky and of L D L^T access whole vectors, so there must be memory for another vector after the last row. */
typedef struct opdi_factor_step {
    int64_t n, columns, ld, k, size;   /* k: number of the step; size: rows of its block (for LU: row of the pivot) */
    void *a, *scratch;
} opdi_factor_step;
typedef int64_t opdi_factor_fn(const opdi_factor_step *rows);
#define OPDI_FACTOR_FN(name) \
    static int64_t opdi_##name##_plain_f32(const opdi_factor_step *rows); \
    static int64_t opdi_##name##_plain_f64(const opdi_factor_step *rows);
OPDI_FACTOR_FN(cholesky_rows)
OPDI_FACTOR_FN(lu_rows)
OPDI_FACTOR_FN(ldl_rows)
#if defined(OPDI_VECTORS)
#define OPDI_FACTOR_AVX2_FN(name) \
    OPDI_AVX2 static int64_t opdi_##name##_avx2_f32(const opdi_factor_step *rows); \
    OPDI_AVX2 static int64_t opdi_##name##_avx2_f64(const opdi_factor_step *rows);
OPDI_FACTOR_AVX2_FN(cholesky_rows)
OPDI_FACTOR_AVX2_FN(lu_rows)
OPDI_FACTOR_AVX2_FN(ldl_rows)
OPDI_AVX2 static void opdi_skinny_minus_avx2_f32(const opdi_skinny *skinny);
OPDI_AVX2 static void opdi_skinny_minus_avx2_f64(const opdi_skinny *skinny);
#endif
#if defined(OPDI_X86)
#define OPDI_FACTOR_AVX512_FN(name) \
    OPDI_AVX512 static int64_t opdi_##name##_avx512_f32(const opdi_factor_step *rows); \
    OPDI_AVX512 static int64_t opdi_##name##_avx512_f64(const opdi_factor_step *rows);
OPDI_FACTOR_AVX512_FN(cholesky_rows)
OPDI_FACTOR_AVX512_FN(lu_rows)
OPDI_FACTOR_AVX512_FN(ldl_rows)
OPDI_AVX512 static void opdi_skinny_minus_avx512_f32(const opdi_skinny *skinny);
OPDI_AVX512 static void opdi_skinny_minus_avx512_f64(const opdi_skinny *skinny);
#endif
#if defined(OPD_LAPACK)
/* Declares LAPACK's routines for float and double.  Fortran passes the lengths of strings after all arguments, as
   size_t. */
#define OPDI_LAPACK_FN(name, arguments) \
    void s##name##_ arguments; \
    void d##name##_ arguments;
#if defined(__cplusplus)
extern "C" {
#endif
OPDI_LAPACK_FN(potrf, (const char *uplo, const int32_t *n, void *a, const int32_t *lda, int32_t *info, size_t))
OPDI_LAPACK_FN(getrf, (const int32_t *m, const int32_t *n, void *a, const int32_t *lda, int32_t *pivots, int32_t *info))
OPDI_LAPACK_FN(getrs, (const char *trans, const int32_t *n, const int32_t *nrhs, const void *a, const int32_t *lda,
                       const int32_t *pivots, void *b, const int32_t *ldb, int32_t *info, size_t))
OPDI_LAPACK_FN(geqrf, (const int32_t *m, const int32_t *n, void *a, const int32_t *lda, void *tau, void *work,
                       const int32_t *lwork, int32_t *info))
OPDI_LAPACK_FN(orgqr, (const int32_t *m, const int32_t *n, const int32_t *k, void *a, const int32_t *lda,
                       const void *tau, void *work, const int32_t *lwork, int32_t *info))
OPDI_LAPACK_FN(ormqr, (const char *side, const char *trans, const int32_t *m, const int32_t *n, const int32_t *k,
                       const void *a, const int32_t *lda, const void *tau, void *c, const int32_t *ldc, void *work,
                       const int32_t *lwork, int32_t *info, size_t, size_t))
OPDI_LAPACK_FN(gelsy, (const int32_t *m, const int32_t *n, const int32_t *nrhs, void *a, const int32_t *lda, void *b,
                       const int32_t *ldb, int32_t *jpvt, const void *rcond, int32_t *rank, void *work,
                       const int32_t *lwork, int32_t *info))
OPDI_LAPACK_FN(syevd, (const char *jobz, const char *uplo, const int32_t *n, void *a, const int32_t *lda, void *w,
                       void *work, const int32_t *lwork, int32_t *iwork, const int32_t *liwork, int32_t *info, size_t,
                       size_t))
OPDI_LAPACK_FN(gesdd, (const char *jobz, const int32_t *m, const int32_t *n, void *a, const int32_t *lda, void *s,
                       void *u, const int32_t *ldu, void *vt, const int32_t *ldvt, void *work, const int32_t *lwork,
                       int32_t *iwork, int32_t *info, size_t))
OPDI_LAPACK_FN(geev, (const char *jobvl, const char *jobvr, const int32_t *n, void *a, const int32_t *lda, void *wr,
                      void *wi, void *vl, const int32_t *ldvl, void *vr, const int32_t *ldvr, void *work,
                      const int32_t *lwork, int32_t *info, size_t, size_t))
#if defined(__cplusplus)
}
#endif
enum { OPDI_LAPACK_MOST = 20000 };                /* the largest number of rows: 4 * rows^2 must fit into 32 bits */
#endif
#include "../../typed/f32.h"
#include "skinny_updates.typed.h"
#include "matrix_blocks.typed.h"
#include "factors.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f32_avx2.h"
#include "skinny_updates.typed.h"
#if !defined(OPD_LAPACK)
#include "small_matrices.typed.h"
#endif
#endif
#if defined(OPDI_X86)
#include "../../typed/f32_avx512.h"
#include "skinny_updates.typed.h"
#endif
#include "../../typed/f64.h"
#include "skinny_updates.typed.h"
#include "matrix_blocks.typed.h"
#include "factors.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f64_avx2.h"
#include "skinny_updates.typed.h"
#if !defined(OPD_LAPACK)
#include "small_matrices.typed.h"
#endif
#endif
#if defined(OPDI_X86)
#include "../../typed/f64_avx512.h"
#include "skinny_updates.typed.h"
#endif
#include "../../typed/end.h"
/* If opdi_solver.lanes can do the work on these matrices, sets it: to lu_solve_lanes if `solve`, else to lu_lanes. */
OPDI_INTERNAL void opdi_lanes_choose(opdi_solver *solver, const opd_tensor *matrices, bool solve) {
#if defined(OPDI_VECTORS) && !defined(OPD_LAPACK)
    if (opdi_cpu_level() == 0 || solver->rows > OPDI_LANES_ROWS || opdi_is_complex(matrices)) { return; }
    if (matrices->dtype == OPD_FLOAT64) {
        solver->lanes = solve ? opdi_lu_solve_lanes_avx2_f64 : opdi_lu_lanes_avx2_f64;
    } else {
        solver->lanes = solve ? opdi_lu_solve_lanes_avx2_f32 : opdi_lu_lanes_avx2_f32;
    }
#else
    (void)solver;
    (void)matrices;
    (void)solve;
#endif
}
OPDI_LOOPS_END
#endif
