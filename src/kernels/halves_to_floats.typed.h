/* Reads as many short floats as two vectors hold, as floats.  For bfloat16, the first vector gets the even elements and
   the second the odd ones; for float16, each gets a half. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(longer)(const uint16_t *at, bool bf16, OPDI_V *two) {
    if (!bf16) {
        const OPDI_V_HALVES *const halves = (const OPDI_V_HALVES *)(const void *)at;
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(two[0]) : "m"(halves[0]));
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(two[1]) : "m"(halves[1]));
        return;
    }
    OPDI_V_BITS words;
    memcpy(&words, at, sizeof words);
    const OPDI_V_BITS even = words << 16, odd = words & 0xffff0000u;
    memcpy(&two[0], &even, sizeof even);
    memcpy(&two[1], &odd, sizeof odd);
}
