#include "kernels.h"

//== domains of formulas ===============================================================================================

/* Checks the domain of a formula: returns the largest (w & mask) - least of the 32-bit words w at x.  masks: one for
   each of 64 words in turn; only the high words of doubles count.  words: a multiple of 64. */
OPDI_ALWAYS uint32_t opdi_vmath_most_body(int64_t words, const void *x, const uint32_t *masks, uint32_t least) {
    uint32_t most = 0;
    for (int64_t i = 0; i < words; i += 64) {
        uint32_t part = 0, w;
        for (int k = 0; k < 64; k++) {
            memcpy(&w, (const char *)x + 4 * (i + k), sizeof w);
            part = OPDI_MAX(part, (w & masks[k]) - least);
        }
        most = OPDI_MAX(most, part);
    }
    return most;
}
#if defined(OPDI_X86)
OPDI_AVX2 static uint32_t opdi_vmath_most_avx2(int64_t words, const void *x, const uint32_t *masks, uint32_t least) {
    return opdi_vmath_most_body(words, x, masks, least);
}
#endif
OPDI_INTERNAL uint32_t opdi_vmath_most(int64_t words, const void *x, const uint32_t *masks, uint32_t least) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { return opdi_vmath_most_avx2(words, x, masks, least); }
#endif
    return opdi_vmath_most_body(words, x, masks, least);
}
