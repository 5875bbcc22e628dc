/* Runs a loop of two inputs (OPDI_TWO_..) with vector instructions.  The loop `each` computes the elements for which
   the vector instructions give no valid result, and all elements on CPUs without these instructions. */
static void OPDI_TYPED(two)(int function, void *const *data, int64_t count, const opdi_params *params,
                              opdi_loop each) {
#if defined(OPDI_VECTORS)
    OPDI_T out[256], x[256], y[256];
    OPDI_BITS flags[256];
    for (int64_t from = 0, rows; opdi_cpu_level() > 0 && from < count; from += rows) {
        rows = OPDI_MIN(count - from, (int64_t)256);
        const int64_t whole = (rows + 15) & ~(int64_t)15;
        memcpy(x, (const OPDI_T *)data[1] + from, (size_t)rows * sizeof *x);
        memcpy(y, (const OPDI_T *)data[2] + from, (size_t)rows * sizeof *y);
        for (int64_t i = rows; i < whole; i++) { x[i] = y[i] = 1; }
        if (OPDI_TYPED(two_wide)(function, whole, out, x, y, flags)) {
            for (int64_t i = 0; i < rows; i++) {
                void *one[3];
                one[0] = out + i;
                one[1] = x + i;
                one[2] = y + i;
                if (flags[i] && function == OPDI_TWO_POW && opd_same_bits()) {
                    out[i] = (OPDI_T)opdi_pow_f64((double)x[i], (double)y[i]);
                } else if (flags[i]) { each(one, 1, params); }
            }
        }
        memcpy((OPDI_T *)data[0] + from, out, (size_t)rows * sizeof *out);
    }
    if (opdi_cpu_level() > 0) { return; }
#endif
    (void)function;
    each(data, count, params);
}
