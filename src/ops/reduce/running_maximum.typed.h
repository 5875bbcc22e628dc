/* Writes the running maximum (if `smallest`, minimum) of x [count] to `to`, and its index to index.  `first` is the
   index of x[0].  *best and *at hold the maximum and the index so far.  Most elements take only one comparison. */
OPDI_ALWAYS void OPDI_TYPED(running)(const OPDI_T *x, int64_t count, int64_t first, bool smallest, OPDI_T *to,
                                     int64_t *index, OPDI_T *best, int64_t *at) {
    OPDI_T most = *best;
    int64_t place = *at;
    for (int64_t i = 0; i < count; i++) {
        if (OPDI_UNLIKELY(!(smallest ? x[i] > most : x[i] < most)) && (OPDI_IS_NAN(x[i]) || !OPDI_IS_NAN(most))) {
            most = x[i];
            place = first + i;
        }
        to[i] = most;
        index[i] = place;
    }
    *best = most;
    *at = place;
}
/* Computes the cumulative maximum of a line or, if lines->flag is set, the cumulative minimum, and its index.  Of
   several equal elements, the last one counts.  From the first NaN on, the results are NaN.  tmp holds the state
   between pieces. */
static void OPDI_TYPED(line_cummax)(const opdi_lines *lines, const opdi_piece *part, const void *const *in,
                                    void *const *out, char *tmp) {
    const OPDI_T *x = (const OPDI_T *)in[0];
    OPDI_T *to = (OPDI_T *)out[0], best = part->count ? x[0] : 0;
    int64_t *index = (int64_t *)out[1], at = 0;
    if (part->from) {
        memcpy(&best, tmp, sizeof best);
        memcpy(&at, tmp + 8, sizeof at);
    }
    if (lines->flag) { OPDI_TYPED(running)(x, part->count, part->from, true, to, index, &best, &at); }
    else { OPDI_TYPED(running)(x, part->count, part->from, false, to, index, &best, &at); }
    memcpy(tmp, &best, sizeof best);
    memcpy(tmp + 8, &at, sizeof at);
}
