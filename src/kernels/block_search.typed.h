/* The functions of opdi_block_search, see there.  Each trial has its own lane.  So there are no sums over lanes, and
   the results are the same at each level of instructions. */
OPDI_TARGET static void OPDI_WIDE(try_codes)(const float *x, int n, const opdi_block_numbers *numbers,
                                             opdi_block_trials *trials) {
    const float low = numbers->low, high = numbers->high;
    float inverse[OPDI_TRIALS], xq[OPDI_TRIALS] = {0}, qq[OPDI_TRIALS] = {0}, q[OPDI_TRIALS];
    memcpy(inverse, trials->inverse, sizeof inverse);
    for (int i = 0; i < n; i++) {
        const float value = x[i];
        for (int j = 0; j < OPDI_TRIALS; j++) {
            float code = value * inverse[j];
            code = code < low ? low : code;
            code = code > high ? high : code;
            q[j] = OPDI_ROUNDED(float, code + OPDI_MAGIC) - OPDI_MAGIC;
        }
        for (int j = 0; j < OPDI_TRIALS; j++) { xq[j] += value * q[j]; }
        for (int j = 0; j < OPDI_TRIALS; j++) { qq[j] += q[j] * q[j]; }
    }
    memcpy(trials->xq, xq, sizeof xq);
    memcpy(trials->qq, qq, sizeof qq);
}
OPDI_TARGET static void OPDI_WIDE(try_numbers)(const float *x, int n, const opdi_block_numbers *numbers,
                                               opdi_block_trials *trials) {
    float inverse[OPDI_TRIALS], xq[OPDI_TRIALS] = {0}, qq[OPDI_TRIALS] = {0}, q[OPDI_TRIALS], scaled[OPDI_TRIALS];
    memcpy(inverse, trials->inverse, sizeof inverse);
    for (int i = 0; i < n; i++) {
        const float value = x[i];
        for (int j = 0; j < OPDI_TRIALS; j++) {
            scaled[j] = value * inverse[j];
            q[j] = numbers->low;
        }
        for (int k = 0; k < 15; k++) {
            const float bound = numbers->bounds[k], gap = numbers->gaps[k];
            for (int j = 0; j < OPDI_TRIALS; j++) { q[j] += scaled[j] > bound ? gap : 0.0f; }
        }
        for (int j = 0; j < OPDI_TRIALS; j++) { xq[j] += value * q[j]; }
        for (int j = 0; j < OPDI_TRIALS; j++) { qq[j] += q[j] * q[j]; }
    }
    memcpy(trials->xq, xq, sizeof xq);
    memcpy(trials->qq, qq, sizeof qq);
}
OPDI_TARGET static void OPDI_WIDE(try_ranges)(const float *x, int n, float high, opdi_block_trials *trials) {
    float inverse[OPDI_TRIALS], minimum[OPDI_TRIALS], q[OPDI_TRIALS];
    float xq[OPDI_TRIALS] = {0}, qq[OPDI_TRIALS] = {0}, qs[OPDI_TRIALS] = {0};
    memcpy(inverse, trials->inverse, sizeof inverse);
    memcpy(minimum, trials->minimum, sizeof minimum);
    for (int i = 0; i < n; i++) {
        const float value = x[i];
        for (int j = 0; j < OPDI_TRIALS; j++) {
            float code = (value + minimum[j]) * inverse[j];
            code = code < 0.0f ? 0.0f : code;
            code = code > high ? high : code;
            q[j] = OPDI_ROUNDED(float, code + OPDI_MAGIC) - OPDI_MAGIC;
        }
        for (int j = 0; j < OPDI_TRIALS; j++) { xq[j] += value * q[j]; }
        for (int j = 0; j < OPDI_TRIALS; j++) { qq[j] += q[j] * q[j]; }
        for (int j = 0; j < OPDI_TRIALS; j++) { qs[j] += q[j]; }
    }
    memcpy(trials->xq, xq, sizeof xq);
    memcpy(trials->qq, qq, sizeof qq);
    memcpy(trials->qs, qs, sizeof qs);
}
OPDI_TARGET static void OPDI_WIDE(invert_scales)(opdi_block_trials *trials) {
    for (int j = 0; j < OPDI_TRIALS; j++) {
        const float scale = trials->scale[j], size = fabsf(scale);
        trials->inverse[j] = size > OPDI_BLOCK_TINY ? 1.0f / scale : 0.0f;
    }
}
OPDI_TARGET static void OPDI_WIDE(fit_scales)(opdi_block_trials *trials, double *error) {
    for (int j = 0; j < OPDI_TRIALS; j++) {
        const double xq = (double)trials->xq[j], qq = (double)trials->qq[j];
        const double best = xq / (qq > 0 ? qq : 1.0);
        trials->scale[j] = (float)best;
        error[j] = -xq * best;
    }
}
OPDI_TARGET static void OPDI_WIDE(fit_ranges)(int n, double sum, opdi_block_trials *trials, double *error) {
    for (int j = 0; j < OPDI_TRIALS; j++) {
        const double xq = (double)trials->xq[j], qq = (double)trials->qq[j], qs = (double)trials->qs[j];
        const double determinant = qq * n - qs * qs;
        const double over = 1.0 / (determinant > 0 ? determinant : 1.0), alone = xq / (qq > 0 ? qq : 1.0);
        double s = (xq * n - sum * qs) * over, m = (xq * qs - sum * qq) * over;
        s = m > 0 ? s : alone;
        m = m > 0 ? m : 0.0;
        s = determinant > 0 ? s : alone;
        m = determinant > 0 ? m : 0.0;
        const double e = s * (s * qq - 2 * xq) + m * (n * m + 2 * sum) - 2 * s * m * qs;
        trials->scale[j] = (float)s;
        trials->minimum[j] = (float)m;
        error[j] = s > 0 ? e : 1e300;
    }
}
OPDI_TARGET static void OPDI_WIDE(find_errors)(int n, double sum, const opdi_block_trials *trials, double *error) {
    for (int j = 0; j < OPDI_TRIALS; j++) {
        const double xq = (double)trials->xq[j], qq = (double)trials->qq[j], qs = (double)trials->qs[j];
        const double s = (double)trials->scale[j], m = (double)trials->minimum[j];
        error[j] = s * (s * qq - 2 * xq) + m * (n * m + 2 * sum) - 2 * s * m * qs;
    }
}
