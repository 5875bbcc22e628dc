/* Writes columns [begin, begin + count) of a line of the output, before lines are combined, to y: each is the sum of
   elements of line x of the input. */
static void OPDI_TYPED(upsample_line)(const opdi_upsample *upsample, const OPDI_T *x, OPDI_T *y, int64_t begin,
                                      int64_t count) {
    const opdi_taps *taps = &upsample->side[2];
    const OPDI_T *weight = (const OPDI_T *)taps->weight + begin * taps->most;
    const int64_t *at = taps->at + begin * taps->most;
    if (taps->most == 2) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = weight[2 * i] * x[at[2 * i]];
            if (taps->count[begin + i] > 1) { y[i] += weight[2 * i + 1] * x[at[2 * i + 1]]; }
        }
        return;
    }
    for (int64_t i = 0; i < count; i++, at += taps->most, weight += taps->most) {
        OPDI_T sum = weight[0] * x[at[0]];
        for (int64_t k = 1; k < taps->count[begin + i]; k++) { sum += weight[k] * x[at[k]]; }
        y[i] = sum;
    }
}
/* Adds line x, times factor, to line y.  If `first` is true, sets line y instead. */
static void OPDI_TYPED(upsample_add)(OPDI_T factor, const OPDI_T *x, OPDI_T *y, int64_t count, bool first) {
    int64_t i;
    if (first) { OPDI_COLUMN_EACH(y[j] = factor * x[j]) }
    else { OPDI_COLUMN_EACH(y[j] = y[j] + factor * x[j]) }
}
/* Computes the derivative of upsample_line: adds the gradient x of an output line, times factor, to line y of
   the input's gradient. */
static void OPDI_TYPED(upsample_line_back)(const opdi_upsample *upsample, OPDI_T factor, const OPDI_T *x, OPDI_T *y) {
    const opdi_taps *taps = &upsample->side[2];
    const OPDI_T *weight = (const OPDI_T *)taps->weight;
    if (upsample->how <= OPDI_UPSAMPLE_EXACT) {
        for (int64_t i = 0; i < upsample->out[2]; i++) { y[taps->at[i]] += x[i]; }
        return;
    }
    for (int64_t i = 0; i < upsample->out[2]; i++) {
        const int64_t *at = taps->at + i * taps->most;
        for (int64_t k = 0; k < taps->count[i]; k++) { y[at[k]] += factor * weight[i * taps->most + k] * x[i]; }
    }
}
/* Computes columns [begin, begin + count) of line number `place` of the output.  lines[] has the last lines that
   upsample_line made, and held[] the numbers of the lines of the input that they were made of. */
static void OPDI_TYPED(upsample_part)(const opdi_upsample *upsample, const OPDI_T *x, OPDI_T *y, int64_t place,
                                      int64_t begin, int64_t count, OPDI_T (*lines)[OPDI_UPSAMPLE_WIDE],
                                      int64_t *held) {
    const opdi_taps *planes = &upsample->side[0], *rows = &upsample->side[1];
    const int64_t *in = upsample->in, i = place / upsample->out[1], j = place % upsample->out[1];
    for (int64_t a = 0; a < planes->count[i]; a++) {
        for (int64_t b = 0; b < rows->count[j]; b++) {
            const OPDI_T factor = ((const OPDI_T *)planes->weight)[i * planes->most + a] *
                                  ((const OPDI_T *)rows->weight)[j * rows->most + b];
            const int64_t line = planes->at[i * planes->most + a] * in[1] + rows->at[j * rows->most + b];
            const int64_t slot = line % OPDI_UPSAMPLE_LINES;
            if (held[slot] != line) {
                OPDI_TYPED(upsample_line)(upsample, x + line * in[2], lines[slot], begin, count);
                held[slot] = line;
            }
            OPDI_TYPED(upsample_add)(factor, lines[slot], y + place * upsample->out[2] + begin, count, a + b == 0);
        }
    }
}
/* Resizes one image by repeating or leaving out elements.  Lines of the output that are made of the same line of the
   input are copied. */
static void OPDI_TYPED(upsample_nearest)(const opdi_upsample *upsample, const OPDI_T *x, OPDI_T *y) {
    const int64_t *const at = upsample->side[2].at, wide = upsample->out[2];
    int64_t last = -1;
    for (int64_t place = 0; place < upsample->out[0] * upsample->out[1]; place++, y += wide) {
        const int64_t line = upsample->side[0].at[place / upsample->out[1]] * upsample->in[1] +
            upsample->side[1].at[place % upsample->out[1]];
        const OPDI_T *const from = x + line * upsample->in[2];
        if (line == last) { memcpy(y, y - wide, (size_t)wide * sizeof *y); }
        else { for (int64_t i = 0; i < wide; i++) { y[i] = from[at[i]]; } }
        last = line;
    }
}
/* Does the reverse of upsample: x is the gradient of the output; adds its contributions to y, the gradient of the
   input. */
static void OPDI_TYPED(upsample_back)(const opdi_upsample *upsample, const OPDI_T *x, OPDI_T *y) {
    const opdi_taps *planes = &upsample->side[0], *rows = &upsample->side[1];
    const int64_t *in = upsample->in, *out = upsample->out;
    for (int64_t place = 0; place < out[0] * out[1]; place++) {
        const int64_t i = place / out[1], j = place % out[1];
        for (int64_t a = 0; a < planes->count[i]; a++) {
            for (int64_t b = 0; b < rows->count[j]; b++) {
                const OPDI_T factor = ((const OPDI_T *)planes->weight)[i * planes->most + a] *
                                      ((const OPDI_T *)rows->weight)[j * rows->most + b];
                const int64_t line = planes->at[i * planes->most + a] * in[1] + rows->at[j * rows->most + b];
                OPDI_TYPED(upsample_line_back)(upsample, factor, x + place * out[2], y + line * in[2]);
            }
        }
    }
}
/* Resizes one image x, of sizes upsample->in, to y, of sizes upsample->out.  If upsample->back is set, does the
   reverse. */
static void OPDI_TYPED(upsample)(const opdi_upsample *upsample, const OPDI_T *x, OPDI_T *y) {
    OPDI_T lines[OPDI_UPSAMPLE_LINES][OPDI_UPSAMPLE_WIDE];
    if (upsample->back) { OPDI_TYPED(upsample_back)(upsample, x, y); }
    else if (upsample->how <= OPDI_UPSAMPLE_EXACT) { OPDI_TYPED(upsample_nearest)(upsample, x, y); }
    else {
        for (int64_t begin = 0; begin < upsample->out[2]; begin += OPDI_UPSAMPLE_WIDE) {
            int64_t held[OPDI_UPSAMPLE_LINES];
            for (int slot = 0; slot < OPDI_UPSAMPLE_LINES; slot++) { held[slot] = -1; }
            for (int64_t place = 0; place < upsample->out[0] * upsample->out[1]; place++) {
                OPDI_TYPED(upsample_part)(upsample, x, y, place, begin,
                                          OPDI_MIN((int64_t)OPDI_UPSAMPLE_WIDE, upsample->out[2] - begin), lines, held);
            }
        }
    }
}
