OPDI_TARGET static void OPDI_WIDE(depthwise)(const opdi_conv *conv, const float *pad, const float *weight, float bias,
                                             float *y) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(float)) };
    int64_t from[OPDI_MAX_TAPS];
    const int64_t taps = conv->kh * conv->kw;
    for (int64_t tap = 0; tap < taps; tap++) { from[tap] = opdi_unfold_row(conv, tap); }
    for (int64_t i = 0; i < conv->oh; i++) {
        for (int64_t j = 0; j < conv->ow; j += WIDTH) {
            OPDI_V acc = {0};
            const float *at = pad + i * conv->sh * conv->line + j;
            acc += bias;
            for (int64_t tap = 0; tap < taps; tap++) {
                acc += weight[tap] * *(const OPDI_V *)(const void *)(at + from[tap]);
            }
            if (conv->ow - j >= WIDTH) { *(OPDI_V *)(void *)(y + i * conv->ow + j) = acc; }
            else { memcpy(y + i * conv->ow + j, &acc, (size_t)(conv->ow - j) * sizeof(float)); }
        }
    }
}
/* Adds the sums of gy * x over one plane to gw [kh, kw], with a vector of sums for each tap.  Elements of x beyond the
   end of a row may be NaN, so they are masked. */
OPDI_TARGET static void OPDI_WIDE(depthwise_gw)(const opdi_conv *conv, const float *pad, const float *gy, float *gw) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(float)) };
    OPDI_V acc[OPDI_MAX_TAPS];
    int64_t from[OPDI_MAX_TAPS];
    const int64_t taps = conv->kh * conv->kw;
    int bits[WIDTH];
    OPDI_V_INT mask;
    memset(acc, 0, sizeof acc);
    for (int64_t tap = 0; tap < taps; tap++) { from[tap] = opdi_unfold_row(conv, tap); }
    for (int lane = 0; lane < WIDTH; lane++) { bits[lane] = lane < conv->ow % WIDTH ? -1 : 0; }
    memcpy(&mask, bits, sizeof mask);
    for (int64_t i = 0; i < conv->oh; i++) {
        for (int64_t j = 0; j < conv->ow; j += WIDTH) {
            OPDI_V v8f = {0};
            int whole = conv->ow - j >= WIDTH;
            if (whole) { v8f = *(const OPDI_V *)(const void *)(gy + i * conv->ow + j); }
            else { memcpy(&v8f, gy + i * conv->ow + j, (size_t)(conv->ow - j) * sizeof(float)); }
            const float *at = pad + i * conv->sh * conv->line + j;
            for (int64_t tap = 0; tap < taps; tap++) {
                OPDI_V other = *(const OPDI_V *)(const void *)(at + from[tap]);
                acc[tap] += v8f * (whole ? other : (OPDI_V)((OPDI_V_INT)other & mask));
            }
        }
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        for (int lane = 0; lane < WIDTH; lane++) { gw[tap] += acc[tap][lane]; }
    }
}
