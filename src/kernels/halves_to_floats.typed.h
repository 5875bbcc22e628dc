/* Reads 16-bit floats from `at`, as many as two vectors hold as float32, and converts them.  For bfloat16 (if `bf16` is
   true), the first vector gets the elements with even indices, the second those with odd indices.  For float16, the
   first vector gets the first half of the elements, the second the other half. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(longer)(const uint16_t *at, bool bf16, OPDI_V *two) {
    if (!bf16) {
        const OPDI_V_HALVES *const halves = (const OPDI_V_HALVES *)(const void *)at;
        OPDI_ASM_WIDEN(two[0], halves[0]);
        OPDI_ASM_WIDEN(two[1], halves[1]);
        return;
    }
    OPDI_V_BITS words;
    memcpy(&words, at, sizeof words);
    const OPDI_V_BITS even = words << 16, odd = words & 0xffff0000u;
    memcpy(&two[0], &even, sizeof even);
    memcpy(&two[1], &odd, sizeof odd);
}
