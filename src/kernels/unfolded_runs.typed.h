/* Copies a row of a panel: `ld` elements.  At level 0 (plain C), ld may be any number; with vectors, the row is one or
   two vectors. */
#if OPDI_LEVEL == 0
#define OPDI_LINE_COPY(o, at) { memcpy(o, at, (size_t)ld * sizeof(OPDI_T)); }
#else
#define OPDI_LINE_COPY(o, at) { \
        const OPDI_V *v8f = (const OPDI_V *)(const void *)(at); \
        OPDI_V *q = (OPDI_V *)(void *)(o); \
        q[0] = v8f[0]; \
        if ((size_t)ld * sizeof(OPDI_T) > sizeof(OPDI_V)) { q[1] = v8f[1]; } \
    }
#endif
OPDI_TARGET static void OPDI_WIDE(unfold_runs)(const opdi_unfold *unfold, int64_t k0, int64_t kc, int64_t j0,
                                               int64_t nc, int64_t ld, void *out) {
    const opdi_conv *conv = unfold->conv;
    int64_t to[OPDI_MAX_NR], from[OPDI_MAX_NR];
    int runs = 0;
    for (int64_t j = 0; j < nc; runs++) {
        int64_t y = (j0 + j) / conv->ow, x = (j0 + j) % conv->ow;
        to[runs] = j;
        from[runs] = y / conv->oh * unfold->image + y % conv->oh * conv->sh * conv->line + x;
        j += OPDI_MIN(conv->ow - x, nc - j);
    }
    int64_t kj = k0 % conv->kw, ki = k0 / conv->kw % conv->kh, channel = k0 / conv->kw / conv->kh;
    const OPDI_T *pad = (const OPDI_T *)(const void *)unfold->pad;
    const OPDI_T *row = pad + (channel * conv->hp + ki * conv->dh) * conv->line;
    OPDI_T *o = (OPDI_T *)out;
    for (int64_t step = 1; step <= kc; step++, o += ld) {
        const OPDI_T *const at = row + opdi_conv_column(conv, kj);
        OPDI_LINE_COPY(o, at + from[0])
        for (int run = 1; run < runs; run++) {
            if (step < kc) { OPDI_LINE_COPY(o + to[run], at + from[run]) }
            else { memcpy(o + to[run], at + from[run], (size_t)(ld - to[run]) * sizeof(OPDI_T)); }
        }
        if (++kj < conv->kw) { continue; }
        kj = 0;
        if (++ki == conv->kh) {
            ki = 0;
            channel++;
        }
        row = pad + (channel * conv->hp + ki * conv->dh) * conv->line;
    }
}
#undef OPDI_LINE_COPY
