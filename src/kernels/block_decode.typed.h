/* Writes d * q[i] for all i < count, a multiple of 16.  16 at a time, because that is what was stored at once: loads
   of the results of two stores have to wait. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(times)(const int8_t *q, int count, float d, float *y) {
    for (int i = 0; i < count; i += 16) {
        for (int j = 0; j < 16; j++) { y[i + j] = d * (float)q[i + j]; }
    }
}
/* Writes d * q[i] + m.  The product is exact, so it does not matter if it is fused with the sum. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(times_plus)(const int8_t *q, int count, float d, float m, float *y) {
    for (int i = 0; i < count; i += 16) {
        for (int j = 0; j < 16; j++) { y[i + j] = d * (float)q[i + j] + m; }
    }
}
/* Reads a float16. */
OPDI_TARGET OPDI_ALWAYS float OPDI_WIDE(half)(const uint8_t *at) {
#if OPDI_LEVEL > 0 && defined(OPDI_X86)
    float f;
    __asm__("vmovd %1, %0\n\tvcvtph2ps %0, %0" : "=x"(f) : "r"(opdi_u16_at(at)));
    return f;
#else
    return opdi_f16_at(at);
#endif
}
/* Writes the low four bits of `count` bytes, minus `less`, then their high four bits. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(nibbles)(const uint8_t *at, int count, int less, int8_t *q) {
    for (int j = 0; j < count; j++) {
        q[j] = (int8_t)((at[j] & 15) - less);
        q[j + count] = (int8_t)((at[j] >> 4) - less);
    }
}
/* Writes the numbers of a table for 16 indices, each of 4 bits in one of 16 bytes. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(look_up)(const uint8_t *indices, const int8_t *table, int8_t *q) {
#if OPDI_LEVEL > 0
    opdi_block_bytes numbers, places;
    memcpy(&numbers, table, 16);
    memcpy(&places, indices, 16);
#if defined(OPDI_NEON)
    __asm__("tbl %0.16b, {%0.16b}, %1.16b" : "+w"(numbers) : "w"(places));
#else
    __asm__("vpshufb %1, %0, %0" : "+x"(numbers) : "x"(places));
#endif
    memcpy(q, &numbers, 16);
#else
    for (int j = 0; j < 16; j++) { q[j] = table[indices[j]]; }
#endif
}
/* Writes d times the numbers of a table for the low four bits of 16 bytes, then for their high four bits. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(looked_up)(const uint8_t *at, const int8_t *table, float d, float *y) {
    uint8_t low[16], high[16];
    int8_t q[32];
    for (int j = 0; j < 16; j++) { low[j] = at[j] & 15; }
    for (int j = 0; j < 16; j++) { high[j] = at[j] >> 4; }
    OPDI_WIDE(look_up)(low, table, q);
    OPDI_WIDE(look_up)(high, table, q + 16);
    OPDI_WIDE(times)(q, 32, d, y);
}
/* Writes the bits of `count` bytes, times 16, as bytes. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(bits_times_16)(const uint8_t *at, int count, uint8_t *bits) {
    for (int j = 0; j < count; j += 2) {
#if OPDI_LEVEL > 0
        opdi_block_words pair = {at[j] * UINT64_C(0x0101010101010101), at[j + 1] * UINT64_C(0x0101010101010101)};
        pair = ((pair & OPDI_BIT_OF_BYTE) + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 3 & UINT64_C(0x1010101010101010);
        memcpy(bits + 8 * j, &pair, 16);
#else
        for (int k = j; k < j + 2; k++) {
            const uint64_t spread = at[k] * UINT64_C(0x0101010101010101) & OPDI_BIT_OF_BYTE;
            const uint64_t eight = (spread + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 3 & UINT64_C(0x1010101010101010);
            memcpy(bits + 8 * k, &eight, 8);
        }
#endif
    }
}
/* Writes four numbers of two bits, minus `less`, of each of 32 or 16 bytes: first the lowest two bits of all bytes. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(pairs_of_bits)(const uint8_t *at, int less, int8_t *q) {
    for (int k = 0; k < 4; k++) {
        for (int j = 0; j < 32; j++) { q[32 * k + j] = (int8_t)((at[j] >> 2 * k & 3) - less); }
    }
}

OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q4)(const uint8_t *at, float *y, bool minimum) {
    int8_t q[32];
    OPDI_WIDE(nibbles)(at + (minimum ? 4 : 2), 16, minimum ? 0 : 8, q);
    if (minimum) { OPDI_WIDE(times_plus)(q, 32, OPDI_WIDE(half)(at), OPDI_WIDE(half)(at + 2), y); }
    else { OPDI_WIDE(times)(q, 32, OPDI_WIDE(half)(at), y); }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q5)(const uint8_t *at, float *y, bool minimum) {
    int8_t q[32];
    uint8_t fifth[32];
    const uint8_t *const h = at + (minimum ? 4 : 2);
    OPDI_WIDE(bits_times_16)(h, 4, fifth);
    OPDI_WIDE(nibbles)(h + 4, 16, minimum ? 0 : 16, q);
    for (int j = 0; j < 16; j++) { q[j] = (int8_t)(q[j] + fifth[j]); }
    for (int j = 16; j < 32; j++) { q[j] = (int8_t)(q[j] + fifth[j]); }
    if (minimum) { OPDI_WIDE(times_plus)(q, 32, OPDI_WIDE(half)(at), OPDI_WIDE(half)(at + 2), y); }
    else { OPDI_WIDE(times)(q, 32, OPDI_WIDE(half)(at), y); }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q8)(const uint8_t *at, int count, float d, float *y) {
    for (int i = 0; i < count; i += 16) {
        int8_t q[16];
        memcpy(q, at + i, 16);
        OPDI_WIDE(times)(q, 16, d, y + i);
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q1_0)(const uint8_t *at, float *y) {
    uint8_t bits[128];
    int8_t q[128];
    OPDI_WIDE(bits_times_16)(at + 2, 16, bits);
    for (int i = 0; i < 128; i++) { q[i] = (int8_t)((bits[i] >> 3) - 1); }
    OPDI_WIDE(times)(q, 128, OPDI_WIDE(half)(at), y);
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q2_0)(const uint8_t *at, float *y) {
    int8_t q[64];
    for (int j = 0; j < 16; j++) {
        for (int k = 0; k < 4; k++) { q[4 * j + k] = (int8_t)((at[2 + j] >> 2 * k & 3) - 1); }
    }
    OPDI_WIDE(times)(q, 64, OPDI_WIDE(half)(at), y);
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_nvfp4)(const uint8_t *at, float *y) {
    for (int g = 0; g < 4; g++) {
        uint8_t indices[16];
        int8_t q[16];
#if OPDI_LEVEL > 0
        uint64_t eight;
        memcpy(&eight, at + 4 + 8 * g, 8);
        const opdi_block_words words = {eight, eight >> 4}, codes = words & UINT64_C(0x0f0f0f0f0f0f0f0f);
        memcpy(indices, &codes, 16);
#else
        for (int j = 0; j < 8; j++) {
            indices[j] = at[4 + 8 * g + j] & 15;
            indices[j + 8] = at[4 + 8 * g + j] >> 4;
        }
#endif
        OPDI_WIDE(look_up)(indices, opdi_fp4_numbers, q);
        OPDI_WIDE(times)(q, 16, opdi_nvfp4_scale(at[g]), y + 16 * g);
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q2_K)(const uint8_t *at, float *y) {
    const float d = OPDI_WIDE(half)(at + 80), dmin = OPDI_WIDE(half)(at + 82);
    int8_t q[256];
    OPDI_WIDE(pairs_of_bits)(at + 16, 0, q);
    OPDI_WIDE(pairs_of_bits)(at + 48, 0, q + 128);
    for (int k = 0; k < 16; k++) {
        OPDI_WIDE(times_plus)(q + 16 * k, 16, d * (float)(at[k] & 15), -(dmin * (float)(at[k] >> 4)), y + 16 * k);
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q3_K)(const uint8_t *at, float *y) {
    const float d = OPDI_WIDE(half)(at + 108);
    int8_t q[256], scales[16];
    OPDI_WIDE(pairs_of_bits)(at + 32, 4, q);
    OPDI_WIDE(pairs_of_bits)(at + 64, 4, q + 128);
    for (int k = 0; k < 8; k++) {
        for (int j = 0; j < 32; j++) { q[32 * k + j] = (int8_t)(q[32 * k + j] + ((at[j] >> k & 1) << 2)); }
    }
    opdi_q3_K_scales(at + 96, scales);
    for (int k = 0; k < 16; k++) { OPDI_WIDE(times)(q + 16 * k, 16, d * (float)scales[k], y + 16 * k); }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q4_K)(const uint8_t *at, float *y, bool fifth) {
    const float d = OPDI_WIDE(half)(at), dmin = OPDI_WIDE(half)(at + 2);
    int8_t q[256];
    uint8_t scales[8], minima[8];
    opdi_q4_K_scales(at + 4, scales, minima);
    for (int k = 0; k < 4; k++) { OPDI_WIDE(nibbles)(at + (fifth ? 48 : 16) + 32 * k, 32, 0, q + 64 * k); }
    for (int b = 0; fifth && b < 8; b++) {
        for (int j = 0; j < 32; j++) { q[32 * b + j] = (int8_t)(q[32 * b + j] | (at[16 + j] >> b & 1) << 4); }
    }
    for (int b = 0; b < 8; b++) {
        OPDI_WIDE(times_plus)(q + 32 * b, 32, d * (float)scales[b], -(dmin * (float)minima[b]), y + 32 * b);
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_q6_K)(const uint8_t *at, float *y) {
    const float d = OPDI_WIDE(half)(at + 208);
    int8_t q[256], high[128];
    for (int h = 0; h < 2; h++) {
        OPDI_WIDE(nibbles)(at + 64 * h, 64, 32, q + 128 * h);
        OPDI_WIDE(pairs_of_bits)(at + 128 + 32 * h, 0, high);
        for (int j = 0; j < 128; j++) { q[128 * h + j] = (int8_t)(q[128 * h + j] + (high[j] << 4)); }
    }
    for (int k = 0; k < 16; k++) {
        OPDI_WIDE(times)(q + 16 * k, 16, d * (float)opdi_signed_byte(at[192 + k]), y + 16 * k);
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_iq4_xs)(const uint8_t *at, float *y) {
    const float d = OPDI_WIDE(half)(at);
    int8_t scales[8];
    opdi_iq4_xs_scales(at, scales);
    for (int b = 0; b < 8; b++) {
        OPDI_WIDE(looked_up)(at + 8 + 16 * b, opdi_iq4_numbers, d * (float)scales[b], y + 32 * b);
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_tq2_0)(const uint8_t *at, float *y) {
    int8_t q[256];
    OPDI_WIDE(pairs_of_bits)(at, 1, q);
    OPDI_WIDE(pairs_of_bits)(at + 32, 1, q + 128);
    OPDI_WIDE(times)(q, 256, OPDI_WIDE(half)(at + 64), y);
}
/* Writes digit n of `count` numbers with base 3, for all n < digits.  A byte is a fraction of 256: the first digit is
   the whole part of three times the fraction. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(digits)(const uint8_t *at, int count, int digits, int8_t *q) {
    uint8_t rest[32];
    memcpy(rest, at, (size_t)count);
    for (int n = 0; n < digits; n++) {
        for (int m = 0; m < count; m++) {
            const uint16_t thrice = (uint16_t)(rest[m] * 3);
            q[n * count + m] = (int8_t)((thrice >> 8) - 1);
            rest[m] = (uint8_t)thrice;
        }
    }
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(decode_tq1_0)(const uint8_t *at, float *y) {
    int8_t q[256];
    OPDI_WIDE(digits)(at, 32, 5, q);
    OPDI_WIDE(digits)(at + 32, 16, 5, q + 160);
    OPDI_WIDE(digits)(at + 48, 4, 4, q + 240);
    OPDI_WIDE(times)(q, 256, OPDI_WIDE(half)(at + 52), y);
}
/* Decodes blocks, see opdi_blocks_decode.  OPDI_EACH_BLOCK is a loop over blocks. */
#define OPDI_EACH_BLOCK(bytes, elements, decode) \
    for (int64_t i = 0; i < blocks; i++, at += bytes, y += elements) { decode; } \
    break
OPDI_TARGET static void OPDI_WIDE(decode)(opd_scalar_type dtype, const uint8_t *at, float *y, int64_t blocks) {
    switch (dtype) {
        case OPD_WEIGHT_F16:
            OPDI_EACH_BLOCK(64, 32, for (int j = 0; j < 32; j++) { y[j] = OPDI_WIDE(half)(at + 2 * j); });
        case OPD_WEIGHT_BF16:
            OPDI_EACH_BLOCK(64, 32, for (int j = 0; j < 32; j++) { y[j] = opdi_float(opdi_u16_at(at + 2 * j) << 16); });
        case OPD_Q4_0: OPDI_EACH_BLOCK(18, 32, OPDI_WIDE(decode_q4)(at, y, false));
        case OPD_Q4_1: OPDI_EACH_BLOCK(20, 32, OPDI_WIDE(decode_q4)(at, y, true));
        case OPD_Q5_0: OPDI_EACH_BLOCK(22, 32, OPDI_WIDE(decode_q5)(at, y, false));
        case OPD_Q5_1: OPDI_EACH_BLOCK(24, 32, OPDI_WIDE(decode_q5)(at, y, true));
        case OPD_Q8_0: OPDI_EACH_BLOCK(34, 32, OPDI_WIDE(decode_q8)(at + 2, 32, OPDI_WIDE(half)(at), y));
        case OPD_Q8_1: OPDI_EACH_BLOCK(36, 32, OPDI_WIDE(decode_q8)(at + 4, 32, OPDI_WIDE(half)(at), y));
        case OPD_Q8_K: OPDI_EACH_BLOCK(292, 256, OPDI_WIDE(decode_q8)(at + 4, 256, opdi_f32_at(at), y));
        case OPD_Q1_0: OPDI_EACH_BLOCK(18, 128, OPDI_WIDE(decode_q1_0)(at, y));
        case OPD_Q2_0: OPDI_EACH_BLOCK(18, 64, OPDI_WIDE(decode_q2_0)(at, y));
        case OPD_IQ4_NL:
            OPDI_EACH_BLOCK(18, 32, OPDI_WIDE(looked_up)(at + 2, opdi_iq4_numbers, OPDI_WIDE(half)(at), y));
        case OPD_MXFP4:
            OPDI_EACH_BLOCK(17, 32, OPDI_WIDE(looked_up)(at + 1, opdi_fp4_numbers, opdi_mxfp4_scale(at[0]), y));
        case OPD_NVFP4: OPDI_EACH_BLOCK(36, 64, OPDI_WIDE(decode_nvfp4)(at, y));
        case OPD_Q2_K: OPDI_EACH_BLOCK(84, 256, OPDI_WIDE(decode_q2_K)(at, y));
        case OPD_Q3_K: OPDI_EACH_BLOCK(110, 256, OPDI_WIDE(decode_q3_K)(at, y));
        case OPD_Q4_K: OPDI_EACH_BLOCK(144, 256, OPDI_WIDE(decode_q4_K)(at, y, false));
        case OPD_Q5_K: OPDI_EACH_BLOCK(176, 256, OPDI_WIDE(decode_q4_K)(at, y, true));
        case OPD_Q6_K: OPDI_EACH_BLOCK(210, 256, OPDI_WIDE(decode_q6_K)(at, y));
        case OPD_IQ4_XS: OPDI_EACH_BLOCK(136, 256, OPDI_WIDE(decode_iq4_xs)(at, y));
        case OPD_TQ2_0: OPDI_EACH_BLOCK(66, 256, OPDI_WIDE(decode_tq2_0)(at, y));
        default: OPDI_EACH_BLOCK(54, 256, OPDI_WIDE(decode_tq1_0)(at, y));
    }
}
#undef OPDI_EACH_BLOCK
