/* Computes one element by a pointwise formula.  x, y, z are inputs and a, b, c are numbers.  Parameters that a formula
   does not use may have any value. */
typedef OPD_T OPDI_LOOP(formula)(OPD_T x, OPD_T y, OPD_T z, OPD_T a, OPD_T b, OPD_T c, const opdi_params *params);
/* Computes one element after another; such loops compile quickly. */
OPDI_LOOP_TEXT void OPDI_LOOP(each)(void *const *data, int64_t count, const opdi_params *params, int inputs,
                                    OPDI_LOOP(formula) *formula) {
    const OPD_T a = params->OPDI_NUMBERS[0], b = params->OPDI_NUMBERS[1], c = params->OPDI_NUMBERS[2];
    const OPD_T *x = (const OPD_T *)data[1], *y = inputs > 1 ? (const OPD_T *)data[2] : x,
        *z = inputs > 2 ? (const OPD_T *)data[3] : x;
    OPD_T *out = (OPD_T *)data[0];
    for (int64_t i = 0; i < count; i++) {
        const OPD_T value = formula(x[i], y[i], z[i], a, b, c, params);
        out[i] = value;
    }
}
/* Computes 16 elements at a time in a loop of constant length, which compilers vectorize by default.  In longer blocks,
   more elements would be left for the slow loop at the end. */
OPDI_LOOP_TEXT void OPDI_LOOP(blocks)(void *const *data, int64_t count, const opdi_params *params, int inputs,
                                      OPDI_LOOP(formula) *formula) {
    const OPD_T a = params->OPDI_NUMBERS[0], b = params->OPDI_NUMBERS[1], c = params->OPDI_NUMBERS[2];
    const OPD_T *x = (const OPD_T *)data[1], *y = inputs > 1 ? (const OPD_T *)data[2] : x,
        *z = inputs > 2 ? (const OPD_T *)data[3] : x;
    OPD_T *out = (OPD_T *)data[0];
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        OPDI_IVDEP
        for (int j = 0; j < 16; j++) {
            const OPD_T value = formula(x[i + j], y[i + j], z[i + j], a, b, c, params);
            out[i + j] = value;
        }
    }
    for (; i < count; i++) {
        const OPD_T value = formula(x[i], y[i], z[i], a, b, c, params);
        out[i] = value;
    }
}
