/* Adds the contribution of line x of the input, times factor, to line y of the output.  If `first` is true, sets
   line y instead. */
static void OPDI_TYPED(upsample_line)(const opdi_upsample *upsample, OPDI_T factor, const OPDI_T *x, OPDI_T *y,
                                      bool first) {
    const opdi_taps *taps = &upsample->side[2];
    const OPDI_T *weight = (const OPDI_T *)taps->weight;
    for (int64_t i = 0; i < upsample->out[2]; i++) {
        const int64_t *at = taps->at + i * taps->most;
        OPDI_T sum = weight[i * taps->most] * x[at[0]];
        for (int64_t k = 1; k < taps->count[i]; k++) { sum += weight[i * taps->most + k] * x[at[k]]; }
        y[i] = first ? factor * sum : y[i] + factor * sum;
    }
}
/* Computes the derivative of upsample_line: adds the gradient x of an output line, times factor, to line y of
   the input's gradient. */
static void OPDI_TYPED(upsample_line_back)(const opdi_upsample *upsample, OPDI_T factor, const OPDI_T *x, OPDI_T *y) {
    const opdi_taps *taps = &upsample->side[2];
    const OPDI_T *weight = (const OPDI_T *)taps->weight;
    for (int64_t i = 0; i < upsample->out[2]; i++) {
        const int64_t *at = taps->at + i * taps->most;
        for (int64_t k = 0; k < taps->count[i]; k++) { y[at[k]] += factor * weight[i * taps->most + k] * x[i]; }
    }
}
/* Resizes one image x, of sizes upsample->in, to y, of sizes upsample->out.  If upsample->back is set, does the
   reverse: x is the gradient of the output, and its contributions are added to y, the gradient of the input. */
static void OPDI_TYPED(upsample)(const opdi_upsample *upsample, const OPDI_T *x, OPDI_T *y) {
    const opdi_taps *planes = &upsample->side[0], *rows = &upsample->side[1];
    const int64_t *in = upsample->in, *out = upsample->out;
    for (int64_t place = 0; place < out[0] * out[1]; place++) {
        const int64_t i = place / out[1], j = place % out[1];
        for (int64_t a = 0; a < planes->count[i]; a++) {
            for (int64_t b = 0; b < rows->count[j]; b++) {
                const OPDI_T factor = ((const OPDI_T *)planes->weight)[i * planes->most + a] *
                                      ((const OPDI_T *)rows->weight)[j * rows->most + b];
                const int64_t line = planes->at[i * planes->most + a] * in[1] + rows->at[j * rows->most + b];
                if (upsample->back) {
                    OPDI_TYPED(upsample_line_back)(upsample, factor, x + place * out[2], y + line * in[2]);
                }
                else {
                    OPDI_TYPED(upsample_line)(upsample, factor, x + line * in[2], y + place * out[2], a + b == 0);
                }
            }
        }
    }
}
