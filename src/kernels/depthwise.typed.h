static void OPDI_TYPED(depthwise)(const opdi_conv *conv, const OPDI_T *pad, const OPDI_T *weight, OPDI_T bias,
                                  OPDI_T *y) {
    for (int64_t i = 0; i < conv->oh; i++) {
        for (int64_t j = 0; j < conv->ow; j += 16) {
            OPDI_T acc[16];
            int64_t count = OPDI_MIN(conv->ow - j, 16);
            for (int lane = 0; lane < 16; lane++) { acc[lane] = bias; }
            for (int64_t ki = 0; ki < conv->kh; ki++) {
                for (int64_t kj = 0; kj < conv->kw; kj++) {
                    OPDI_T f = weight[ki * conv->kw + kj];
                    const OPDI_T *at = pad + (i * conv->sh + ki * conv->dh) * conv->line + j +
                        opdi_conv_column(conv, kj);
                    for (int lane = 0; lane < 16; lane++) { acc[lane] += f * at[lane]; }
                }
            }
            memcpy(y + i * conv->ow + j, acc, (size_t)count * sizeof(OPDI_T));
        }
    }
}
static void OPDI_TYPED(depthwise_gw)(const opdi_conv *conv, const OPDI_T *pad, const OPDI_T *gy, OPDI_T *gw) {
    for (int64_t ki = 0; ki < conv->kh; ki++) {
        for (int64_t kj = 0; kj < conv->kw; kj++) {
            OPDI_T acc[16] = {0};
            for (int64_t i = 0; i < conv->oh; i++) {
                const OPDI_T *there = gy + i * conv->ow,
                    *at = pad + (i * conv->sh + ki * conv->dh) * conv->line + opdi_conv_column(conv, kj);
                for (int64_t j = 0; j < conv->ow; j++) { acc[j & 15] += there[j] * at[j]; }
            }
            for (int lane = 0; lane < 16; lane++) { gw[ki * conv->kw + kj] += acc[lane]; }
        }
    }
}
