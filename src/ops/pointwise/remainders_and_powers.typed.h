/* Returns fmod(x, y), computed as x - trunc(x / y) * y with an FMA, so without rounding errors.  If x / y was rounded
   up to the next whole number, the remainder has the wrong sign, and is corrected: |y| with the sign of x is added to
   it.  If `python` is true, returns the remainder of Python's %, which has the sign of y. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(mod1)(OPDI_T x, OPDI_T y, bool python) {
    const OPDI_T count = OPDI_FN(trunc)(x / y);
    OPDI_T rest = OPDI_FN(__builtin_fma)(-count, y, x);
    rest = ((rest != 0) & ((rest < 0) != (x < 0))) ? rest + OPDI_FN(copysign)(y, x) : rest;
    rest = OPDI_FN(copysign)(rest, x);
    return (python & (rest != 0) & ((y < 0) != (rest < 0))) ? rest + y : rest;
}
/* Returns x / y rounded down, computed as OPD_H(div_floor) does. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(floor1)(OPDI_T x, OPDI_T y) {
    const OPDI_T mod = OPDI_TYPED(mod1)(x, y, false), whole = (x - mod) / y;
    const OPDI_T q = ((mod != 0) & ((y < 0) != (mod < 0))) ? whole - 1 : whole, f = OPDI_FN(floor)(q);
    const OPDI_T nearest = q - f > (OPDI_T)0.5 ? f + 1 : f;
    return q == 0 ? OPDI_FN(copysign)((OPDI_T)0, x / y) : nearest;
}
/* Returns 1 if mod1 cannot compute the result, because the quotient is too large or NaN, or y is infinite; else 0. */
OPDI_ALWAYS OPDI_BITS OPDI_TYPED(mod_bad)(OPDI_T x, OPDI_T y) {
    return ((OPDI_FN(fabs)(x / y) < (OPDI_T)4194304) & (OPDI_FN(fabs)(y) < (OPDI_T)HUGE_VAL)) ? 0u : 1u;
}
/* Computes out[i] = value and flags[i] = flag for `count` elements, a multiple of 16.  A flag is not 0 if its value is
   not valid.  Sets any[16] to the bitwise or of the flags. */
#define OPDI_TWO_EACH(value, flag) \
    for (int64_t i = 0; i < count; i += 16) { \
        OPDI_IVDEP \
        for (int j = 0; j < 16; j++) { out[i + j] = value; } \
        OPDI_IVDEP \
        for (int j = 0; j < 16; j++) { flags[i + j] = flag; } \
        for (int j = 0; j < 16; j++) { any[j] |= flags[i + j]; } \
    }
OPDI_ALWAYS bool OPDI_TYPED(two_body)(int function, int64_t count, OPDI_T *out, const OPDI_T *x, const OPDI_T *y,
                                        OPDI_BITS *flags) {
    OPDI_BITS any[16] = {0};
    switch (function) {
        case OPDI_TWO_POW:
            OPDI_TWO_EACH(OPDI_TYPED(pow1)(x[i + j], y[i + j], 0), OPDI_TYPED(pow_bad)(x[i + j], y[i + j]))
            break;
        case OPDI_TWO_FMOD:
            OPDI_TWO_EACH(OPDI_TYPED(mod1)(x[i + j], y[i + j], false), OPDI_TYPED(mod_bad)(x[i + j], y[i + j]))
            break;
        case OPDI_TWO_DIV_FLOOR:
            OPDI_TWO_EACH(OPDI_TYPED(floor1)(x[i + j], y[i + j]), OPDI_TYPED(mod_bad)(x[i + j], y[i + j]))
            break;
        default: OPDI_TWO_EACH(OPDI_TYPED(mod1)(x[i + j], y[i + j], true), OPDI_TYPED(mod_bad)(x[i + j], y[i + j]))
    }
    for (int j = 1; j < 16; j++) { any[0] |= any[j]; }
    return any[0] != 0;
}
#undef OPDI_TWO_EACH
OPDI_AVX2 static bool OPDI_TYPED(two_avx2)(int function, int64_t count, OPDI_T *out, const OPDI_T *x, const OPDI_T *y,
                                             OPDI_BITS *flags) {
    return OPDI_TYPED(two_body)(function, count, out, x, y, flags);
}
#if defined(OPDI_X86)
OPDI_AVX512 static bool OPDI_TYPED(two_avx512)(int function, int64_t count, OPDI_T *out, const OPDI_T *x,
                                                 const OPDI_T *y, OPDI_BITS *flags) {
    return OPDI_TYPED(two_body)(function, count, out, x, y, flags);
}
#endif
static bool OPDI_TYPED(two_wide)(int function, int64_t count, OPDI_T *out, const OPDI_T *x, const OPDI_T *y,
                                   OPDI_BITS *flags) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() == 1) { return OPDI_TYPED(two_avx2)(function, count, out, x, y, flags); }
    return OPDI_TYPED(two_avx512)(function, count, out, x, y, flags);
#else
    return OPDI_TYPED(two_avx2)(function, count, out, x, y, flags);
#endif
}
