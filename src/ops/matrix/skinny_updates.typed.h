OPDI_TARGET static void OPDI_WIDE(skinny_minus)(const opdi_skinny *skinny) {
    const int64_t columns = skinny->columns, depth = skinny->depth, ldb = skinny->ldb;
    /* Subtracts four rows of b, or one, from the columns from j on, as long as they fill such a vector. */
#define OPDI_SKINNY_LANES(vector) ((int64_t)(sizeof(vector) / sizeof(OPDI_T)))
#define OPDI_SKINNY_FOUR(vector) \
    for (; j + OPDI_SKINNY_LANES(vector) <= columns; j += OPDI_SKINNY_LANES(vector)) { \
        *(vector *)(void *)(c + j) -= (*(const vector *)(const void *)(b + j) * x0 + \
            *(const vector *)(const void *)(b + ldb + j) * x1) + \
            (*(const vector *)(const void *)(b + 2 * ldb + j) * x2 + \
             *(const vector *)(const void *)(b + 3 * ldb + j) * x3); \
    }
#define OPDI_SKINNY_ONE(vector) \
    for (; j + OPDI_SKINNY_LANES(vector) <= columns; j += OPDI_SKINNY_LANES(vector)) { \
        *(vector *)(void *)(c + j) -= *(const vector *)(const void *)(b + j) * x0; \
    }
    /* vectors of all lanes first, then shorter ones, and at last numbers */
#if OPDI_LEVEL == 2
    typedef OPDI_T opdi_half __attribute__((vector_size(32), aligned(OPDI_BYTES), may_alias));
    typedef OPDI_T opdi_quarter __attribute__((vector_size(16), aligned(OPDI_BYTES), may_alias));
#define OPDI_SKINNY(step) step(OPDI_V) step(opdi_half) step(opdi_quarter) step(OPDI_T)
#else
#define OPDI_SKINNY(step) step(OPDI_V) step(OPDI_T)
#endif
    for (int64_t i = 0; i < skinny->rows; i++) {
        const OPDI_T *a = (const OPDI_T *)skinny->a + i * skinny->rs, *b = (const OPDI_T *)skinny->b;
        OPDI_T *c = (OPDI_T *)skinny->c + i * skinny->ldc;
        int64_t k = 0;
        for (; k + 4 <= depth; k += 4, b += 4 * ldb) {
            const OPDI_T x0 = a[k * skinny->cs], x1 = a[(k + 1) * skinny->cs], x2 = a[(k + 2) * skinny->cs],
                x3 = a[(k + 3) * skinny->cs];
            int64_t j = 0;
            OPDI_SKINNY(OPDI_SKINNY_FOUR)
        }
        for (; k < depth; k++, b += ldb) {
            const OPDI_T x0 = a[k * skinny->cs];
            int64_t j = 0;
            OPDI_SKINNY(OPDI_SKINNY_ONE)
        }
    }
#undef OPDI_SKINNY
#undef OPDI_SKINNY_LANES
#undef OPDI_SKINNY_FOUR
#undef OPDI_SKINNY_ONE
}
/* Overwrites the upper triangular part of a [n, n], row by row, with the rows of L^T, where L L^T = a.  Computes each
   row from all rows above it in one pass, in four separate sums.  Returns 0, or the number (from 1) of the first row
   whose pivot is not positive. */
OPDI_TARGET static int64_t OPDI_WIDE(cholesky_rows)(const opdi_factor_step *rows) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t n = rows->n, ld = rows->ld;
    OPDI_T *const a = (OPDI_T *)rows->a;
    for (int64_t j = 0; j < n; j++) {
        OPDI_T *const row = a + j * ld;
        const int64_t first = j / WIDTH * WIDTH;
        for (int64_t c = first; c < n; c += WIDTH) {
            OPDI_V s0 = *(const OPDI_V *)(const void *)(row + c), s1 = s0 - s0, s2 = s1, s3 = s1;
            const OPDI_T *above = a;
            int64_t k = 0;
            for (; k + 4 <= j; k += 4, above += 4 * ld) {
                s0 -= *(const OPDI_V *)(const void *)(above + c) * above[j];
                s1 -= *(const OPDI_V *)(const void *)(above + ld + c) * above[ld + j];
                s2 -= *(const OPDI_V *)(const void *)(above + 2 * ld + c) * above[2 * ld + j];
                s3 -= *(const OPDI_V *)(const void *)(above + 3 * ld + c) * above[3 * ld + j];
            }
            for (; k < j; k++, above += ld) { s0 -= *(const OPDI_V *)(const void *)(above + c) * above[j]; }
            *(OPDI_V *)(void *)(row + c) = (s0 + s1) + (s2 + s3);
        }
        if (!(row[j] > 0)) { return j + 1; }
        const OPDI_T pivot = OPDI_FN(sqrt)(row[j]);
        for (int64_t c = first; c < n; c += WIDTH) { *(OPDI_V *)(void *)(row + c) /= pivot; }
        row[j] = pivot;
    }
    return 0;
}
/* Exchanges row k and the row with the pivot.  Then divides the column below the pivot by the pivot, and subtracts
   multiples of the new row k from the rows below it.  scratch [columns] holds a copy of row k with zeros up to column
   k, so that whole vectors can be subtracted; quotients that are not finite are treated separately. */
OPDI_TARGET static int64_t OPDI_WIDE(lu_rows)(const opdi_factor_step *rows) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t ld = rows->ld, columns = rows->columns, k = rows->k, first = (k + 1) / WIDTH * WIDTH;
    OPDI_T *const a = (OPDI_T *)rows->a, *const top = a + k * ld, *const other = a + rows->size * ld;
    OPDI_T *const scratch = (OPDI_T *)rows->scratch;
    int64_t c = 0;
    for (; top != other && c + WIDTH <= columns; c += WIDTH) {
        const OPDI_V kept = *(const OPDI_V *)(const void *)(top + c);
        *(OPDI_V *)(void *)(top + c) = *(const OPDI_V *)(const void *)(other + c);
        *(OPDI_V *)(void *)(other + c) = kept;
    }
    for (; top != other && c < columns; c++) {
        const OPDI_T kept = top[c];
        top[c] = other[c];
        other[c] = kept;
    }
    const OPDI_T pivot = top[k];
    for (int64_t j = first; j < columns; j++) { scratch[j] = j > k ? top[j] : 0; }
    for (int64_t i = k + 1; i < rows->n; i++) {
        /* if the pivot is 0, row[k] is 0 or NaN, and is stored unchanged */
        OPDI_T *const row = a + i * ld, factor = pivot != 0 ? row[k] / pivot : row[k];
        const bool number = factor >= -1 && factor <= 1;
        for (c = number ? first : columns; c + WIDTH <= columns; c += WIDTH) {
            *(OPDI_V *)(void *)(row + c) -= *(const OPDI_V *)(const void *)(scratch + c) * factor;
        }
        row[k] = factor;                          /* stored last, because vector loads from the row would have to wait
                                                     for it */
        for (c = number && c > k ? c : k + 1; c < columns; c++) { row[c] -= scratch[c] * factor; }
    }
    return 0;
}
/* Eliminates the diagonal block of `size` rows at row k from the rows below it, up to a few columns right of the
   diagonal.  The block's columns in a are already those of L; `scratch` holds their original elements. */
OPDI_TARGET static int64_t OPDI_WIDE(ldl_rows)(const opdi_factor_step *rows) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t n = rows->n, ld = rows->ld, from = rows->k + rows->size;
    const OPDI_T *const first = (const OPDI_T *)rows->scratch, *const second = first + ld;
    for (int64_t i = from; i < n; i++) {
        OPDI_T *const row = (OPDI_T *)rows->a + i * ld, x = row[rows->k], y = rows->size == 2 ? row[rows->k + 1] : 0;
        for (int64_t c = from; rows->size == 1 && c <= i; c += WIDTH) {
            *(OPDI_V *)(void *)(row + c) -= *(const OPDI_V *)(const void *)(first + c) * x;
        }
        for (int64_t c = from; rows->size == 2 && c <= i; c += WIDTH) {
            *(OPDI_V *)(void *)(row + c) -= *(const OPDI_V *)(const void *)(first + c) * x +
                *(const OPDI_V *)(const void *)(second + c) * y;
        }
    }
    return 0;
}
