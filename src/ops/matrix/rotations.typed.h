/* Applies the rotations *all to columns [from, to) of the rows.  A row that takes part in two consecutive rotations
   stays in registers between them. */
OPDI_TARGET static void OPDI_WIDE(rotate_piece)(const opdi_rotations *all, int64_t from, int64_t to) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t count = all->count, width = all->width;
    OPDI_T *rows = (OPDI_T *)all->rows + all->first * width;
    int64_t j = from;
    for (; j + 2 * WIDTH <= to && count > 0; j += 2 * WIDTH) {
        OPDI_V *place = (OPDI_V *)(void *)(rows + (all->down ? count * width : 0) + j), left = place[0],
            right = place[1];
        for (int64_t step = 0; step < count; step++) {
            const int64_t i = all->down ? count - 1 - step : step;
            const OPDI_T c = (OPDI_T)all->turns[2 * i], s = (OPDI_T)all->turns[2 * i + 1];
            OPDI_V *x = (OPDI_V *)(void *)(rows + i * width + j), *y = (OPDI_V *)(void *)(rows + (i + 1) * width + j);
            if (all->down) {                      /* the lower row is in registers */
                const OPDI_V first = x[0], second = x[1];
                y[0] = left * c - first * s;
                y[1] = right * c - second * s;
                left = first * c + left * s;
                right = second * c + right * s;
                continue;
            }
            const OPDI_V first = y[0], second = y[1];
            x[0] = left * c + first * s;
            x[1] = right * c + second * s;
            left = first * c - left * s;
            right = second * c - right * s;
        }
        place = (OPDI_V *)(void *)(rows + (all->down ? 0 : count * width) + j);
        place[0] = left;
        place[1] = right;
    }
    for (int64_t step = 0; j < to && step < count; step++) {
        const int64_t i = all->down ? count - 1 - step : step;
        const OPDI_T c = (OPDI_T)all->turns[2 * i], s = (OPDI_T)all->turns[2 * i + 1];
        OPDI_T *x = rows + i * width, *y = x + width;
        int64_t k = j;
        for (; k + WIDTH <= to; k += WIDTH) {
            OPDI_V *const up = (OPDI_V *)(void *)(x + k), *const low = (OPDI_V *)(void *)(y + k);
            const OPDI_V kept = *up;
            *up = kept * c + *low * s;
            *low = *low * c - kept * s;
        }
        for (; k < to; k++) {
            const OPDI_T kept = x[k];
            x[k] = c * kept + s * y[k];
            y[k] = c * y[k] - s * kept;
        }
    }
}
/* Subtracts v w^T + w v^T from rows [first, n) of a symmetric matrix, and adds the product of the result and `next` to
   out.  Of the matrix, only the upper triangular part is used, and whole blocks on the diagonal that are as wide as a
   vector.  Elements of `next` before `first` are 0. */
OPDI_TARGET static void OPDI_WIDE(symmetric_step)(const opdi_symmetric *step) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *const v = (const OPDI_T *)step->v, *const w = (const OPDI_T *)step->w,
        *const next = (const OPDI_T *)step->next;
    OPDI_T *const out = (OPDI_T *)step->out;
    for (int64_t i = step->first; i < step->n; i++) {
        OPDI_T *const row = (OPDI_T *)step->a + i * step->width;
        const OPDI_T x = v[i], y = w[i], z = next[i];
        int64_t j = i / WIDTH * WIDTH;
        OPDI_V sums = *(const OPDI_V *)(const void *)(row + j);
        sums -= *(const OPDI_V *)(const void *)(w + j) * x + *(const OPDI_V *)(const void *)(v + j) * y;
        *(OPDI_V *)(void *)(row + j) = sums;
        sums *= *(const OPDI_V *)(const void *)(next + j);
        for (j += WIDTH; j < step->n; j += WIDTH) {
            OPDI_V number = *(const OPDI_V *)(const void *)(row + j);
            number -= *(const OPDI_V *)(const void *)(w + j) * x + *(const OPDI_V *)(const void *)(v + j) * y;
            *(OPDI_V *)(void *)(row + j) = number;
            sums += number * *(const OPDI_V *)(const void *)(next + j);
            *(OPDI_V *)(void *)(out + j) += number * z;
        }
#if OPDI_LEVEL > 0
        out[i] += OPDI_WIDE(lanes_sum)(sums);
#else
        out[i] += sums;
#endif
    }
}
