/* Computes the cumulative maximum of a line or, if lines->flag is set, the cumulative minimum, and its index.  Of
   several equal elements, the last one counts.  From the first NaN on, the results are NaN.  tmp holds the state
   between pieces. */
static void OPDI_TYPED(line_cummax)(const opdi_lines *lines, const opdi_piece *part, const void *const *in,
                                    void *const *out, char *tmp) {
    const OPDI_T *x = (const OPDI_T *)in[0];
    OPDI_T *to = (OPDI_T *)out[0], best = 0;
    int64_t *index = (int64_t *)out[1], at = 0;
    if (part->from) {
        memcpy(&best, tmp, sizeof best);
        memcpy(&at, tmp + 8, sizeof at);
    }
    for (int64_t i = 0; i < part->count; i++) {
        if (part->from + i == 0 || OPDI_IS_NAN(x[i]) ||
            (!OPDI_IS_NAN(best) && (lines->flag ? x[i] <= best : x[i] >= best))) {
            best = x[i];
            at = part->from + i;
        }
        to[i] = best;
        index[i] = at;
    }
    memcpy(tmp, &best, sizeof best);
    memcpy(tmp + 8, &at, sizeof at);
}
