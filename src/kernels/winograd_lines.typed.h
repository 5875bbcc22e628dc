#define OPDI_AT(p) (*(const OPDI_V *)(const void *)(p))
#define OPDI_TO(p) (*(OPDI_V *)(void *)(p))
OPDI_TARGET static void OPDI_WIDE(grouped_line)(const opdi_conv *conv, const float *const *lines, const float *weights,
                                                const float *bias, int64_t count, float *out) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)), ALONG = 8 };
    const int64_t step = conv->sw * OPDI_TILE_BLOCK;
    for (int part = 0; part < OPDI_TILE_BLOCK; part += WIDTH) {
        /* the last group of eight overlaps the one before if count is not a multiple of eight; buffers hold at least 8
           results */
        for (int64_t x = 0; x < count; x += ALONG) {
            x = OPDI_MIN(x, OPDI_MAX(count - ALONG, 0));
            OPDI_V a0 = OPDI_AT(bias + part), a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0;
            for (int64_t ki = 0; ki < conv->kh; ki++) {
                const float *at = lines[ki] + x * step + part, *w = weights + ki * conv->kw * OPDI_TILE_BLOCK + part;
                for (int64_t kj = 0; kj < conv->kw; kj++, at += conv->dw * OPDI_TILE_BLOCK, w += OPDI_TILE_BLOCK) {
                    const OPDI_V tap = OPDI_AT(w);
                    OPDI_ASM_FMA("p" OPDI_ASM, a0, tap, OPDI_AT(at));
                    OPDI_ASM_FMA("p" OPDI_ASM, a1, tap, OPDI_AT(at + step));
                    OPDI_ASM_FMA("p" OPDI_ASM, a2, tap, OPDI_AT(at + 2 * step));
                    OPDI_ASM_FMA("p" OPDI_ASM, a3, tap, OPDI_AT(at + 3 * step));
                    OPDI_ASM_FMA("p" OPDI_ASM, a4, tap, OPDI_AT(at + 4 * step));
                    OPDI_ASM_FMA("p" OPDI_ASM, a5, tap, OPDI_AT(at + 5 * step));
                    OPDI_ASM_FMA("p" OPDI_ASM, a6, tap, OPDI_AT(at + 6 * step));
                    OPDI_ASM_FMA("p" OPDI_ASM, a7, tap, OPDI_AT(at + 7 * step));
                }
            }
            float *const to = out + x * OPDI_TILE_BLOCK + part;
            OPDI_TO(to) = a0;
            OPDI_TO(to + OPDI_TILE_BLOCK) = a1;
            OPDI_TO(to + 2 * OPDI_TILE_BLOCK) = a2;
            OPDI_TO(to + 3 * OPDI_TILE_BLOCK) = a3;
            OPDI_TO(to + 4 * OPDI_TILE_BLOCK) = a4;
            OPDI_TO(to + 5 * OPDI_TILE_BLOCK) = a5;
            OPDI_TO(to + 6 * OPDI_TILE_BLOCK) = a6;
            OPDI_TO(to + 7 * OPDI_TILE_BLOCK) = a7;
        }
    }
}
/* Adds the contribution of one line `grad` of the output's gradient to `sums` [taps, OPDI_TILE_BLOCK], the gradient of
   the weights.  `lines` are the rows of the input that this line reads.  Handles four taps of a row at a time. */
OPDI_TARGET static void OPDI_WIDE(grouped_sum)(const opdi_conv *conv, const float *const *lines, const float *grad,
                                               int64_t count, float *sums) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t step = conv->sw * OPDI_TILE_BLOCK, apart = conv->dw * OPDI_TILE_BLOCK;
    for (int64_t tap = 0; tap < conv->kh * conv->kw; tap++) {
        const int64_t kj = tap % conv->kw, left = OPDI_MIN(4, conv->kw - kj);
        const int64_t s1 = left > 1 ? apart : 0, s2 = left > 2 ? 2 * apart : 0, s3 = left > 3 ? 3 * apart : 0;
        for (int part = 0; part < OPDI_TILE_BLOCK; part += WIDTH) {
            const float *at = lines[tap / conv->kw] + kj * apart + part, *g = grad + part;
            float *const to = sums + tap * OPDI_TILE_BLOCK + part;
            OPDI_V a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
            for (int64_t x = 0; x < count; x++, at += step, g += OPDI_TILE_BLOCK) {
                const OPDI_V there = OPDI_AT(g);
                OPDI_ASM_FMA("p" OPDI_ASM, a0, there, OPDI_AT(at));
                OPDI_ASM_FMA("p" OPDI_ASM, a1, there, OPDI_AT(at + s1));
                OPDI_ASM_FMA("p" OPDI_ASM, a2, there, OPDI_AT(at + s2));
                OPDI_ASM_FMA("p" OPDI_ASM, a3, there, OPDI_AT(at + s3));
            }
            OPDI_TO(to) += a0;
            if (left > 1) { OPDI_TO(to + OPDI_TILE_BLOCK) += a1; }
            if (left > 2) { OPDI_TO(to + 2 * OPDI_TILE_BLOCK) += a2; }
            if (left > 3) { OPDI_TO(to + 3 * OPDI_TILE_BLOCK) += a3; }
        }
        tap += left - 1;
    }
}
#undef OPDI_AT
#undef OPDI_TO
