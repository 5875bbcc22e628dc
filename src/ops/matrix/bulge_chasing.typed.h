/* Applies the reflection f to `count` rows (2 or 3) that begin at x and are ld apart.  f holds v[1], v[2], tau, tau
   v[1] and tau v[2] of the reflection 1 - tau v v^T, whose v[0] is 1. */
OPDI_TARGET static void OPDI_WIDE(chase_rows)(OPDI_T *x, int64_t ld, int64_t columns, int count, const OPDI_T *f) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (int64_t j = 0; count == 3 && j < columns; j += WIDTH) {
        OPDI_V *a = (OPDI_V *)(void *)(x + j), *b = (OPDI_V *)(void *)(x + ld + j);
        OPDI_V *c = (OPDI_V *)(void *)(x + 2 * ld + j);
        const OPDI_V sum = *a + *b * f[0] + *c * f[1];
        *a -= sum * f[2];
        *b -= sum * f[3];
        *c -= sum * f[4];
    }
    for (int64_t j = 0; count == 2 && j < columns; j += WIDTH) {
        OPDI_V *a = (OPDI_V *)(void *)(x + j), *b = (OPDI_V *)(void *)(x + ld + j);
        const OPDI_V sum = *a + *b * f[0];
        *a -= sum * f[2];
        *b -= sum * f[3];
    }
}
OPDI_TARGET static void OPDI_WIDE(chase_columns)(OPDI_T *x, int64_t ld, int64_t rows, int count, const OPDI_T *f) {
    const OPDI_T v1 = f[0], v2 = f[1], t0 = f[2], t1 = f[3], t2 = f[4];
    for (int64_t i = 0; count == 3 && i < rows; i++, x += ld) {
        const OPDI_T sum = x[0] + x[1] * v1 + x[2] * v2;
        x[0] -= sum * t0;
        x[1] -= sum * t1;
        x[2] -= sum * t2;
    }
    for (int64_t i = 0; count == 2 && i < rows; i++, x += ld) {
        const OPDI_T sum = x[0] + x[1] * v1;
        x[0] -= sum * t0;
        x[1] -= sum * t1;
    }
}
OPDI_TARGET static void OPDI_WIDE(chase)(const opdi_chase *chase) {
    const int64_t ld = chase->ld, ldq = chase->ldq, last = chase->last;
    OPDI_T *const h = (OPDI_T *)chase->h, *const q = (OPDI_T *)chase->q;
    for (int64_t k = chase->from; k < chase->to; k++) {
        const int count = k + 2 <= last ? 3 : 2;
        const bool fresh = chase->shifts && k == chase->from;
        OPDI_T *const row = h + k * ld + k;
        double v[3];
        if (fresh) {
            const double top[5] = {(double)row[0], (double)row[1], (double)row[ld], (double)row[ld + 1],
                count == 3 ? (double)row[2 * ld + 1] : 0};
            opdi_chase_start(top, chase->shifts, v);
        }
        else {
            v[0] = (double)row[-1];
            v[1] = (double)row[ld - 1];
            v[2] = count == 3 ? (double)row[2 * ld - 1] : 0;
        }
        const double tau = opdi_chase_reflection(v);
        const OPDI_T f[5] = {(OPDI_T)v[1], (OPDI_T)v[2], (OPDI_T)tau, (OPDI_T)(tau * v[1]), (OPDI_T)(tau * v[2])};
        if (fresh && k > chase->first) { row[-1] *= (OPDI_T)(1 - tau); }
        if (!fresh) {
            row[-1] = (OPDI_T)v[0];
            row[ld - 1] = 0;
            if (count == 3) { row[2 * ld - 1] = 0; }
        }
        if (tau == 0) { continue; }
        OPDI_WIDE(chase_rows)(row, ld, chase->right - k, count, f);
        OPDI_WIDE(chase_columns)(h + chase->top * ld + k, ld, OPDI_MIN(k + 3, last) - chase->top + 1, count, f);
        if (q) { OPDI_WIDE(chase_rows)(q + (k - chase->base) * ldq, ldq, chase->width, count, f); }
    }
}
