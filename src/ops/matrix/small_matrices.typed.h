/* The functions of this file process several small matrices of a batch at a time, one in each lane of the vectors.
   They choose pivots and exchange rows without branches, which a processor would guess wrong. */

/* Returns a where the bits of mask are ones, and b where they are zeros. */
OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(lanes_select)(OPDI_V_BITS mask, OPDI_V a, OPDI_V b) {
    return (OPDI_V)((mask & (OPDI_V_BITS)a) | (~mask & (OPDI_V_BITS)b));
}
OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(lanes_all)(int64_t number) {
    const OPDI_V zero = {0};
    return zero + (OPDI_T)number;
}
/* Writes elements 0, step, 2 * step and so on of `count` matrices to the lanes of to[elements].  `from` is the first
   matrix; the others are `next` elements apart.  Lanes without a matrix get the last matrix. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(lanes_load)(OPDI_V *to, const OPDI_T *from, int64_t next, int64_t count,
                                                   int64_t step, int64_t elements) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    OPDI_T *const lanes = (OPDI_T *)(void *)to;
    for (int64_t i = 0; i < elements; i++) {
        OPDI_UNROLL
        for (int lane = 0; lane < WIDTH; lane++) {
            lanes[i * WIDTH + lane] = from[OPDI_MIN((int64_t)lane, count - 1) * next + i * step];
        }
    }
}
/* Does the reverse of lanes_load. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(lanes_store)(const OPDI_V *from, OPDI_T *to, int64_t next, int64_t count,
                                                    int64_t step, int64_t elements) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *const lanes = (const OPDI_T *)(const void *)from;
    for (int64_t lane = 0; lane < count; lane++) {
        for (int64_t i = 0; i < elements; i++) { to[lane * next + i * step] = lanes[i * WIDTH + lane]; }
    }
}
/* Subtracts a * b from *to in two steps.  With one rounding, as compilers do where they may, a row of [[3, 6], [1, 2]]
   minus a third of the other would not be 0, and singular matrices of small integers would not be found. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(lanes_minus)(OPDI_V *to, OPDI_V a, OPDI_V b) {
    OPDI_V product = a * b;
#if defined(OPDI_NEON)
    __asm__("" : "+w"(product));
#elif defined(OPDI_X86)
    __asm__("" : "+x"(product));
#endif
    *to -= product;
}
/* Factors matrices m [n, n], and writes the pivots, as numbers.  Returns the numbers (from 1) of the first columns with
   a zero on the diagonal of U, or 0. */
OPDI_TARGET static OPDI_V OPDI_WIDE(lanes_lu)(int64_t n, OPDI_V *m, OPDI_V *pivots) {
    const OPDI_V none = {0};
    const OPDI_BITS sign = (OPDI_BITS)1 << (8 * sizeof(OPDI_T) - 1);
    OPDI_V zero = none;
    for (int64_t j = 0; j < n; j++) {
        OPDI_V *const top = m + j * n;
        OPDI_V most = (OPDI_V)((OPDI_V_BITS)top[j] & ~sign), best = OPDI_WIDE(lanes_all)(j + 1);
        for (int64_t i = j + 1; i < n; i++) {
            const OPDI_V size = (OPDI_V)((OPDI_V_BITS)m[i * n + j] & ~sign);
            const OPDI_V_BITS more = (OPDI_V_BITS)(size > most);
            best = OPDI_WIDE(lanes_select)(more, OPDI_WIDE(lanes_all)(i + 1), best);
            most = OPDI_WIDE(lanes_select)(more, size, most);
        }
        pivots[j] = best;
        for (int64_t i = j + 1; i < n; i++) {
            const OPDI_V_BITS here = (OPDI_V_BITS)(best == OPDI_WIDE(lanes_all)(i + 1));
            for (int64_t k = 0; k < n; k++) {
                const OPDI_V first = top[k], second = m[i * n + k];
                top[k] = OPDI_WIDE(lanes_select)(here, second, first);
                m[i * n + k] = OPDI_WIDE(lanes_select)(here, first, second);
            }
        }
        const OPDI_V pivot = top[j];
        const OPDI_V_BITS flat = (OPDI_V_BITS)(pivot == none);
        zero = OPDI_WIDE(lanes_select)(flat & (OPDI_V_BITS)(zero == none), OPDI_WIDE(lanes_all)(j + 1), zero);
        for (int64_t i = j + 1; i < n; i++) {
            /* if the pivot is 0, row[j] is 0 or NaN, and stays as it is */
            OPDI_V *const row = m + i * n;
            const OPDI_V factor = OPDI_WIDE(lanes_select)(flat, row[j], row[j] / pivot);
            row[j] = factor;
            for (int64_t k = j + 1; k < n; k++) { OPDI_WIDE(lanes_minus)(&row[k], top[k], factor); }
        }
    }
    return zero;
}
/* Does the work of lu_one for matrices [begin, end) of a batch.  They are square and have at most OPDI_LANES_ROWS
   rows. */
OPDI_TARGET static void OPDI_WIDE(lu_lanes)(const opdi_solver *solver, int64_t begin, int64_t end) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t n = solver->rows;
    OPDI_ON_LINE OPDI_V m[OPDI_LANES_ROWS * OPDI_LANES_ROWS];
    OPDI_V pivots[OPDI_LANES_ROWS];
    for (int64_t at = begin; at < end; at += WIDTH) {
        const int64_t count = OPDI_MIN(end - at, (int64_t)WIDTH);
        OPDI_T *const first = (OPDI_T *)opdi_solver_at(solver, 0, at, sizeof(OPDI_T));
        OPDI_WIDE(lanes_load)(m, first, n * n, count, 1, n * n);
        const OPDI_V zero = OPDI_WIDE(lanes_lu)(n, m, pivots);
        OPDI_WIDE(lanes_store)(m, first, n * n, count, 1, n * n);
        for (int64_t lane = 0; lane < count; lane++) {
            for (int64_t i = 0; i < n; i++) { solver->pivots[(at + lane) * n + i] = (int32_t)pivots[i][lane]; }
            solver->info[at + lane] = (int32_t)zero[lane];
        }
    }
}
/* Does the work of lu_solve_one for equations [begin, end) of a batch.  Their matrices are on the left, stored by rows,
   not turned, and have at most OPDI_LANES_ROWS rows. */
OPDI_TARGET static void OPDI_WIDE(lu_solve_lanes)(const opdi_solver *solver, int64_t begin, int64_t end) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t n = solver->rows, columns = solver->columns;
    OPDI_ON_LINE OPDI_V m[OPDI_LANES_ROWS * OPDI_LANES_ROWS];
    OPDI_ON_LINE OPDI_V x[OPDI_LANES_ROWS];
    OPDI_V pivots[OPDI_LANES_ROWS];
    for (int64_t at = begin; at < end; at += WIDTH) {
        const int64_t count = OPDI_MIN(end - at, (int64_t)WIDTH);
        OPDI_T *const first = (OPDI_T *)opdi_solver_at(solver, 1, at, sizeof(OPDI_T));
        const OPDI_T *const factors = (const OPDI_T *)opdi_solver_at(solver, 0, at, sizeof(OPDI_T));
        OPDI_WIDE(lanes_load)(m, factors, solver->step[0], count, 1, n * n);
        bool upward = false;                      /* whether a row is exchanged with a row above it */
        for (int64_t i = 0; i < n * WIDTH; i++) {
            const int64_t matrix = at + OPDI_MIN(i % WIDTH, count - 1);
            const int32_t pivot = solver->pivots[matrix * solver->npivots + i / WIDTH];
            ((OPDI_T *)(void *)pivots)[i] = (OPDI_T)pivot;
            upward = upward || pivot <= i / WIDTH;
        }
        for (int64_t column = 0; column < columns; column++) {
            OPDI_WIDE(lanes_load)(x, first + column, n * columns, count, columns, n);
            for (int64_t i = 0; i < n; i++) {
                for (int64_t other = upward ? 0 : i + 1; other < n; other++) {
                    const OPDI_V_BITS here = (OPDI_V_BITS)(pivots[i] == OPDI_WIDE(lanes_all)(other + 1));
                    const OPDI_V first_kept = x[i], second_kept = x[other];
                    x[i] = OPDI_WIDE(lanes_select)(here, second_kept, first_kept);
                    x[other] = OPDI_WIDE(lanes_select)(here, first_kept, second_kept);
                }
            }
            for (int64_t i = 0; i < n; i++) {
                for (int64_t k = 0; k < i; k++) { x[i] -= m[i * n + k] * x[k]; }
            }
            for (int64_t i = n; i-- > 0;) {
                for (int64_t k = n; k-- > i + 1;) { x[i] -= m[i * n + k] * x[k]; }
                x[i] /= m[i * n + i];
            }
            OPDI_WIDE(lanes_store)(x, first + column, n * columns, count, columns, n);
        }
    }
}
