#if defined(OPDI_VECTORS)
OPDI_AVX2 static int64_t OPDI_TYPED(adam_avx2)(void *const *data, int64_t count, int64_t i, const opdi_adam *other);
OPDI_AVX2 static int64_t OPDI_TYPED(sgd_avx2)(void *const *data, int64_t count, int64_t i, const opdi_sgd *other);
#endif
static void OPDI_TYPED(adam)(void *const *data, int64_t count, const opdi_params *params) {
    const opdi_adam *adam = (const opdi_adam *)(const void *)params;
    int64_t i = 0;
#if defined(OPDI_VECTORS)
    if (opdi_cpu_level() > 0) { i = OPDI_TYPED(adam_avx2)(data, count, i, adam); }
#endif
    (void)OPDI_TYPED(adam_plain)(data, count, i, adam);
}
static void OPDI_TYPED(sgd)(void *const *data, int64_t count, const opdi_params *params) {
    const opdi_sgd *sgd = (const opdi_sgd *)(const void *)params;
    int64_t i = 0;
#if defined(OPDI_VECTORS)
    if (opdi_cpu_level() > 0) { i = OPDI_TYPED(sgd_avx2)(data, count, i, sgd); }
#endif
    (void)OPDI_TYPED(sgd_plain)(data, count, i, sgd);
}
/* Computes out = x * scale for `count` elements.  If a number x is not finite (all bits of its exponent are set), sets
   *params->zero to 1. */
static void OPDI_TYPED(unscale)(void *const *data, int64_t count, const opdi_params *params) {
    const OPDI_T *x = (const OPDI_T *)data[1], scale = (OPDI_T)params->f64[0];
    OPDI_T *out = (OPDI_T *)data[0];
    OPDI_BITS bad = 0;
    for (int64_t i = 0; i < count; i++) {
        OPDI_BITS bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (bits & OPDI_EXPONENT) == OPDI_EXPONENT;
        out[i] = x[i] * scale;
    }
    if (bad) { OPDI_STORE(params->zero, 1); }
}
